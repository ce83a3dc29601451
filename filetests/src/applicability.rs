//! Which of upstream's tests cannot apply to this target, and why.
//!
//! Looked at only with a forced target: a file that names `thisgpu` itself is meant for it, and what it asks for must
//! work.

use cranelift_codegen::ir::types::{F128, I128};
use cranelift_codegen::ir::{Endianness, Function, Opcode, Type};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::unstable::clif::source::Header;
use std::fmt;

/// Why a test does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The file is for targets whose pointers have 32 bits.
    NarrowPointers,
    /// Atomics on big-endian memory.
    BigEndianAtomics,
    /// The register that a function may reserve.
    PinnedRegister,
    /// Calls that can end in a handler.
    Exceptions,
    /// 128-bit floats.
    Float128,
    /// Vectors whose size is known at run time.
    DynamicVectors,
    /// Bits of NaN results that CLIF leaves open and one architecture promises; a matter of a single run line.
    OtherArchitecture,
    /// Floats to i128: no back end of upstream has it, and the interpreter saturates unsigned results to the signed
    /// range.
    FloatToInt128,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NarrowPointers => "32-bit pointers",
            Self::BigEndianAtomics => "big-endian atomics",
            Self::PinnedRegister => "pinned register",
            Self::Exceptions => "exceptions",
            Self::Float128 => "f128",
            Self::DynamicVectors => "dynamic vectors",
            Self::OtherArchitecture => "NaN bits of another architecture",
            Self::FloatToInt128 => "float to i128, defined by the interpreter only",
        })
    }
}

/// Targets with 32-bit pointers, as `target` lines begin.
const NARROW_TARGETS: [&str; 2] = ["pulley32", "pulley32be"];

/// Why no function of the file can be tested.
pub fn of_file(file: &SourceFile) -> Option<Reason> {
    if only_narrow_targets(&file.header) {
        return Some(Reason::NarrowPointers);
    }
    let pinned = |word: &String| {
        matches!(
            word.as_str(),
            "enable_pinned_reg" | "enable_pinned_reg=true"
        )
    };
    let settings = file.header.settings.iter().flat_map(|line| &line.words);
    settings
        .into_iter()
        .any(pinned)
        .then_some(Reason::PinnedRegister)
}

/// True if the header names targets and all of them have narrow pointers.
fn only_narrow_targets(header: &Header) -> bool {
    let targets = || header.targets.iter().filter_map(|line| line.words.first());
    targets().next().is_some() && targets().all(|name| NARROW_TARGETS.contains(&name.as_str()))
}

/// Why a function cannot be compiled for this target.
pub fn of_function(func: &Function) -> Option<Reason> {
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts
        .into_iter()
        .find_map(|inst| of_instruction(func, inst))
        .or_else(|| {
            func.dfg
                .values()
                .find_map(|v| of_type(func.dfg.value_type(v)))
        })
        .or_else(|| {
            func.signature
                .params
                .iter()
                .chain(&func.signature.returns)
                .find_map(|param| of_type(param.value_type))
        })
}

fn of_instruction(func: &Function, inst: cranelift_codegen::ir::Inst) -> Option<Reason> {
    let data = &func.dfg.insts[inst];
    match data.opcode() {
        Opcode::GetPinnedReg | Opcode::SetPinnedReg => Some(Reason::PinnedRegister),
        Opcode::TryCall | Opcode::TryCallIndirect | Opcode::GetExceptionHandlerAddress => {
            Some(Reason::Exceptions)
        }
        Opcode::FcvtToSint | Opcode::FcvtToUint | Opcode::FcvtToSintSat | Opcode::FcvtToUintSat
            if func.dfg.value_type(func.dfg.first_result(inst)) == I128 =>
        {
            Some(Reason::FloatToInt128)
        }
        Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas => {
            let flags = func.dfg.mem_flags[data.memflags()?];
            (flags.explicit_endianness() == Some(Endianness::Big))
                .then_some(Reason::BigEndianAtomics)
        }
        _ => None,
    }
}

fn of_type(ty: Type) -> Option<Reason> {
    if ty.is_dynamic_vector() {
        Some(Reason::DynamicVectors)
    } else {
        (ty.lane_type() == F128).then_some(Reason::Float128)
    }
}
