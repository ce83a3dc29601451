//! What there is to cover: every opcode with every type it can have.
//!
//! Cranelift's own constraints say which types those are, so an opcode that Cranelift gains is in the list without anybody adding it.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint, ValueTypeSet};
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, Function, Inst, InstructionData, MemFlagsData, Opcode, Type, types,
};
use std::fmt;

/// One operation to be covered: an opcode with its types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub opcode: Opcode,
    /// The controlling type; invalid where there is none.
    pub ty: Type,
    /// Types of the operands that the controlling type leaves free: amounts of shifts, sources of conversions, addresses, …
    pub free: Vec<Type>,
    pub variant: Variant,
}

/// Which of the operations under one opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    Only,
    Integers(IntCC),
    Floats(FloatCC),
    Modify(AtomicRmwOp),
    /// Byte order of an access, or of a cast.
    Order(Endianness),
}

/// All types that a case can have: scalars, vectors of at most 128 bits, and a specimen of what lies beyond.
pub fn universe() -> Vec<Type> {
    let lanes = [
        types::I8,
        types::I16,
        types::I32,
        types::I64,
        types::I128,
        types::F16,
        types::F32,
        types::F64,
    ];
    let counts = [1, 2, 4, 8, 16];
    let mut all: Vec<Type> = counts
        .iter()
        .flat_map(|&count| lanes.iter().filter_map(move |lane| lane.by(count)))
        .filter(|ty| ty.bits() <= 128)
        .collect();
    all.extend([types::F128, types::I32X8]);
    all
}

/// True for the specimens: what this target has no registers for.
pub fn is_beyond(ty: Type) -> bool {
    ty == types::F128 || ty.bits() > 128
}

impl Case {
    /// All cases of the opcodes that Cranelift has, as far as its constraints tell; some of them its verifier refuses.
    pub fn all() -> Vec<Self> {
        Opcode::all()
            .iter()
            .flat_map(|&opcode| Self::of_opcode(opcode))
            .collect()
    }

    fn of_opcode(opcode: Opcode) -> Vec<Self> {
        if crate::unsupported::WITHOUT_CASES
            .iter()
            .any(|(other, _)| *other == opcode)
        {
            return Vec::new();
        }
        let constraints = opcode.constraints();
        let controlling = match constraints.ctrl_typeset() {
            Some(set) => members(set),
            None => vec![types::INVALID],
        };
        let mut cases = Vec::new();
        for ty in controlling {
            for free in free_types(opcode, ty) {
                cases.extend(Variant::of_opcode(opcode).into_iter().map(|variant| Self {
                    opcode,
                    ty,
                    free: free.clone(),
                    variant,
                }));
            }
        }
        cases
    }

    /// The case that an instruction is.
    pub fn of_inst(func: &Function, inst: Inst) -> Self {
        let data = &func.dfg.insts[inst];
        let opcode = data.opcode();
        let ty = func.dfg.ctrl_typevar(inst);
        let constraints = opcode.constraints();
        let args = func.dfg.inst_args(inst);
        let free = (0..constraints.num_fixed_value_arguments())
            .filter(|&n| is_free(opcode, n, ty))
            .map(|n| func.dfg.value_type(args[n]))
            .collect();
        Self {
            opcode,
            ty,
            free,
            variant: Variant::of_inst(func, data),
        }
    }

    /// The types that it has: controlling type and free operands.
    pub fn types(&self) -> impl Iterator<Item = Type> + '_ {
        std::iter::once(self.ty)
            .chain(self.free.iter().copied())
            .filter(|ty| !ty.is_invalid())
    }
}

impl Variant {
    fn of_opcode(opcode: Opcode) -> Vec<Self> {
        let orders = || {
            [Endianness::Little, Endianness::Big]
                .map(Self::Order)
                .to_vec()
        };
        match opcode.format() {
            InstructionFormat::IntCompare => {
                IntCC::all().iter().map(|&cc| Self::Integers(cc)).collect()
            }
            InstructionFormat::FloatCompare => {
                FloatCC::all().iter().map(|&cc| Self::Floats(cc)).collect()
            }
            InstructionFormat::AtomicRmw => AtomicRmwOp::all()
                .iter()
                .map(|&op| Self::Modify(op))
                .collect(),
            InstructionFormat::Load
            | InstructionFormat::Store
            | InstructionFormat::LoadNoOffset => orders(),
            InstructionFormat::StoreNoOffset | InstructionFormat::AtomicCas => orders(),
            _ => vec![Self::Only],
        }
    }

    fn of_inst(func: &Function, data: &InstructionData) -> Self {
        let order = |flags| {
            let flags: MemFlagsData = func.dfg.mem_flags[flags];
            Self::Order(flags.endianness(Endianness::Little))
        };
        match *data {
            InstructionData::IntCompare { cond, .. } => Self::Integers(cond),
            InstructionData::FloatCompare { cond, .. } => Self::Floats(cond),
            InstructionData::AtomicRmw { op, .. } => Self::Modify(op),
            _ => data.memflags().map_or(Self::Only, order),
        }
    }
}

/// The types of the universe in a set.
fn members(set: ValueTypeSet) -> Vec<Type> {
    universe()
        .into_iter()
        .filter(|&ty| set.contains(ty))
        .collect()
}

fn is_free(opcode: Opcode, operand: usize, ty: Type) -> bool {
    let constraint = opcode.constraints().value_argument_constraint(operand, ty);
    matches!(constraint, ResolvedConstraint::Free(_))
}

/// All combinations of types of the free operands.
fn free_types(opcode: Opcode, ty: Type) -> Vec<Vec<Type>> {
    let constraints = opcode.constraints();
    let mut combinations = vec![Vec::new()];
    for n in 0..constraints.num_fixed_value_arguments() {
        let ResolvedConstraint::Free(set) = constraints.value_argument_constraint(n, ty) else {
            continue;
        };
        let extended = combinations.iter().flat_map(|types: &Vec<Type>| {
            members(set)
                .into_iter()
                .map(|ty| types.iter().copied().chain([ty]).collect())
        });
        combinations = extended.collect();
    }
    combinations
}

/// `OPCODE.TYPE`, then the condition or the like, then the types of free operands.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.opcode)?;
        if !self.ty.is_invalid() {
            write!(f, ".{}", self.ty)?;
        }
        match self.variant {
            Variant::Only | Variant::Order(Endianness::Little) => {}
            Variant::Order(Endianness::Big) => f.write_str(" big")?,
            Variant::Integers(cc) => write!(f, " {cc}")?,
            Variant::Floats(cc) => write!(f, " {cc}")?,
            Variant::Modify(op) => write!(f, " {op}")?,
        }
        for ty in &self.free {
            write!(f, " {ty}")?;
        }
        Ok(())
    }
}
