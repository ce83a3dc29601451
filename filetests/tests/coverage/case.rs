//! What there is to cover: every opcode with every type it can have ([`operations`]), and the conditions and the like
//! under one opcode.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, Function, Inst, InstructionData, MemFlagsData, Opcode, Type, types,
};
use std::fmt;
use thisgpu_filetests::operations;

/// One operation to be covered: an opcode with its types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    pub opcode: Opcode,
    /// The controlling type; invalid where there is none.
    pub ty: Type,
    /// Types of the operands that the controlling type leaves free: amounts of shifts, sources of conversions,
    /// addresses, …
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

/// All types that a case can have: those of values, and a specimen of what lies beyond.
fn universe() -> Vec<Type> {
    let beyond = [types::F128, types::I32X8];
    operations::TYPES.into_iter().chain(beyond).collect()
}

/// True for the specimens: what this target has no registers for.
pub fn is_beyond(ty: Type) -> bool {
    ty == types::F128 || ty.bits() > 128
}

impl Case {
    /// All cases of the opcodes that Cranelift has, as far as its constraints tell; some of them its verifier refuses.
    pub fn all() -> Vec<Self> {
        let universe = universe();
        let opcodes = Opcode::all().iter();
        opcodes
            .flat_map(|&opcode| operations::of_opcode(opcode, &universe))
            .flat_map(|operation| {
                let variants = Variant::of_opcode(operation.opcode).into_iter();
                variants.map(move |variant| Self {
                    opcode: operation.opcode,
                    ty: operation.control,
                    free: operation.free.clone(),
                    variant,
                })
            })
            .collect()
    }

    /// The case that an instruction is.
    pub fn of_inst(func: &Function, inst: Inst) -> Self {
        let data = &func.dfg.insts[inst];
        let opcode = data.opcode();
        let ty = func.dfg.ctrl_typevar(inst);
        let args = func.dfg.inst_args(inst);
        let free = operations::free_operands(opcode, ty)
            .map(|(operand, _)| func.dfg.value_type(args[operand]))
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
