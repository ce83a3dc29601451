//! All operations that can be generated, from Cranelift's own table of opcodes.
//!
//! An [`Operation`] is an opcode with its types. The list is that of [`operations`], which the coverage test takes too,
//! and the table gives the format of the instruction; written down here are only the opcodes whose result CLIF leaves
//! open, or that leave the function. What control flow needs (branches, calls, returns, addresses, constants) is
//! written by the generator itself.

use crate::random::Random;
use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{
    AtomicRmwOp, ConstantData, Endianness, Inst, InstBuilderBase, InstructionData, MemFlagsData,
    Opcode, TrapCode, Type, Value, types,
};
use std::fmt;
use thisgpu_filetests::operations;
pub use thisgpu_filetests::operations::TYPES;

/// Opcodes with types that no program of the generator has, and why.
pub const EXCLUDED: [(Opcode, &str); 7] = [
    (Opcode::StackSwitch, "leaves the stack"),
    (Opcode::SetPinnedReg, "names a register of the host"),
    (Opcode::Blendv, "open unless lanes of the mask are uniform"),
    (Opcode::X86Pshufb, "names an instruction of another machine"),
    (
        Opcode::X86Pmulhrsw,
        "names an instruction of another machine",
    ),
    (
        Opcode::X86Pmaddubsw,
        "names an instruction of another machine",
    ),
    (
        Opcode::X86Cvtt2dq,
        "names an instruction of another machine",
    ),
];

/// The code of traps that the generator writes.
pub const TRAP: TrapCode = TrapCode::unwrap_user(7);

/// An opcode with its types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The opcode.
    pub opcode: Opcode,
    /// Its controlling type, [`types::INVALID`] if it has none.
    pub control: Type,
    /// The type of the operand that the controlling type does not determine, if there is one.
    pub free: Option<Type>,
    /// Byte order of an access to memory other than the target's own.
    pub big_endian: bool,
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A value of a type.
    Value(Type),
    /// The address of memory that may be accessed.
    Address,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.opcode)?;
        if self.control != types::INVALID {
            write!(f, ".{}", self.control)?;
        }
        if let Some(free) = self.free {
            write!(f, " {free}")?;
        }
        if self.big_endian {
            f.write_str(" big")?;
        }
        Ok(())
    }
}

impl Operation {
    /// All of them, in the order of the table.
    pub fn all() -> Vec<Operation> {
        let mut all = Vec::new();
        for &opcode in Opcode::all() {
            let excluded = EXCLUDED.iter().any(|(excluded, _)| *excluded == opcode);
            if !excluded && is_generated(opcode.format()) {
                of_opcode(opcode, &mut all);
            }
        }
        all
    }

    /// Position of the address among the operands of an access to memory.
    pub fn address(self) -> Option<usize> {
        match self.opcode.format() {
            InstructionFormat::Load | InstructionFormat::AtomicRmw => Some(0),
            InstructionFormat::AtomicCas => Some(0),
            InstructionFormat::LoadNoOffset if self.opcode != Opcode::Bitcast => Some(0),
            InstructionFormat::Store | InstructionFormat::StoreNoOffset => Some(1),
            _ => None,
        }
    }

    /// True if the address must be a multiple of the size.
    pub fn is_atomic(self) -> bool {
        self.address().is_some()
            && !matches!(
                self.opcode.format(),
                InstructionFormat::Load | InstructionFormat::Store
            )
    }

    /// Its operands.
    pub fn operands(self) -> Vec<Operand> {
        let constraints = self.opcode.constraints();
        (0..constraints.num_fixed_value_arguments())
            .map(|index| {
                if self.address() == Some(index) {
                    return Operand::Address;
                }
                match constraints.value_argument_constraint(index, self.control) {
                    ResolvedConstraint::Bound(ty) => Operand::Value(ty),
                    ResolvedConstraint::Free(_) => Operand::Value(self.free.unwrap_or(types::I32)),
                }
            })
            .collect()
    }

    /// The types of its results.
    pub fn results(self) -> Vec<Type> {
        let constraints = self.opcode.constraints();
        (0..constraints.num_fixed_results())
            .map(|index| constraints.result_type(index, self.control))
            .collect()
    }

    /// False for types that the table lets through though they mean nothing: conversions that change the number of
    /// lanes, and addresses of another width than those of stack slots.
    fn is_sound(self) -> bool {
        let constraints = self.opcode.constraints();
        let address = self
            .address()
            .map(|index| constraints.value_argument_constraint(index, self.control));
        match self.opcode {
            Opcode::FcvtToUint
            | Opcode::FcvtToSint
            | Opcode::FcvtToUintSat
            | Opcode::FcvtToSintSat
            | Opcode::FcvtFromUint
            | Opcode::FcvtFromSint => self
                .free
                .is_none_or(|free| free.lane_count() == self.control.lane_count()),
            _ => !matches!(address, Some(ResolvedConstraint::Bound(ty)) if ty != types::I64),
        }
    }

    /// True if all its operands and results are in `set`.
    pub fn within(self, set: &[Type]) -> bool {
        let operands = self.operands().into_iter();
        let types = operands.filter_map(|operand| match operand {
            Operand::Value(ty) => Some(ty),
            Operand::Address => None,
        });
        types.chain(self.results()).all(|ty| set.contains(&ty))
    }

    /// Writes the instruction; what is no value in it is random. An address has `aligned` bytes that are a multiple of
    /// the size.
    pub fn insert(
        self,
        pos: &mut FuncCursor<'_>,
        args: &[Value],
        aligned: bool,
        random: &mut Random,
    ) -> Inst {
        let data = self.data(pos, args, aligned, random);
        pos.ins().build(data, self.control).0
    }

    fn data(
        self,
        pos: &mut FuncCursor<'_>,
        args: &[Value],
        aligned: bool,
        random: &mut Random,
    ) -> InstructionData {
        let opcode = self.opcode;
        let lanes = || match self.control.lane_count() {
            0 => 1,
            lanes => lanes as usize,
        };
        match opcode.format() {
            InstructionFormat::Unary => InstructionData::Unary {
                opcode,
                arg: args[0],
            },
            InstructionFormat::Binary => InstructionData::Binary {
                opcode,
                args: [args[0], args[1]],
            },
            InstructionFormat::Ternary => InstructionData::Ternary {
                opcode,
                args: [args[0], args[1], args[2]],
            },
            InstructionFormat::BinaryImm8 => InstructionData::BinaryImm8 {
                opcode,
                arg: args[0],
                imm: random.below(lanes()) as u8,
            },
            InstructionFormat::TernaryImm8 => InstructionData::TernaryImm8 {
                opcode,
                args: [args[0], args[1]],
                imm: random.below(lanes()) as u8,
            },
            InstructionFormat::IntCompare => InstructionData::IntCompare {
                opcode,
                args: [args[0], args[1]],
                cond: random.pick(IntCC::all()),
            },
            InstructionFormat::FloatCompare => InstructionData::FloatCompare {
                opcode,
                args: [args[0], args[1]],
                cond: random.pick(FloatCC::all()),
            },
            InstructionFormat::Shuffle => {
                let mask: Vec<u8> = (0..16).map(|_| random.below(32) as u8).collect();
                InstructionData::Shuffle {
                    opcode,
                    args: [args[0], args[1]],
                    imm: pos.func.dfg.immediates.push(ConstantData::from(&mask[..])),
                }
            }
            InstructionFormat::IntAddTrap => InstructionData::IntAddTrap {
                opcode,
                args: [args[0], args[1]],
                code: TRAP,
            },
            InstructionFormat::CondTrap => InstructionData::CondTrap {
                opcode,
                arg: args[0],
                code: TRAP,
            },
            InstructionFormat::NullAry => InstructionData::NullAry { opcode },
            format => self.access(format, pos, args, aligned, random),
        }
    }

    /// The instructions with memory flags.
    fn access(
        self,
        format: InstructionFormat,
        pos: &mut FuncCursor<'_>,
        args: &[Value],
        aligned: bool,
        random: &mut Random,
    ) -> InstructionData {
        let opcode = self.opcode;
        let mut data = MemFlagsData::new();
        if opcode == Opcode::Bitcast {
            data.set_endianness(Endianness::Little);
        } else {
            if aligned && random.once_in(2) {
                data.set_aligned();
            }
            if random.once_in(2) {
                data.set_notrap();
            }
            if self.big_endian {
                data.set_endianness(Endianness::Big);
            } else if random.once_in(4) && !self.is_atomic() {
                data.set_endianness(Endianness::Little);
            }
        }
        let dfg = &mut pos.func.dfg;
        let flags = dfg
            .mem_flags
            .insert(data)
            .expect("a function has room for the few combinations of flags");
        match format {
            InstructionFormat::Load => InstructionData::Load {
                opcode,
                arg: args[0],
                flags,
                offset: 0.into(),
            },
            InstructionFormat::Store => InstructionData::Store {
                opcode,
                args: [args[0], args[1]],
                flags,
                offset: 0.into(),
            },
            InstructionFormat::StoreNoOffset => InstructionData::StoreNoOffset {
                opcode,
                args: [args[0], args[1]],
                flags,
            },
            InstructionFormat::AtomicRmw => InstructionData::AtomicRmw {
                opcode,
                args: [args[0], args[1]],
                flags,
                op: random.pick(AtomicRmwOp::all()),
            },
            InstructionFormat::AtomicCas => InstructionData::AtomicCas {
                opcode,
                args: [args[0], args[1], args[2]],
                flags,
            },
            // `is_generated` lets no other format through.
            _ => InstructionData::LoadNoOffset {
                opcode,
                arg: args[0],
                flags,
            },
        }
    }
}

/// True for formats that [`Operation::insert`] can write.
fn is_generated(format: InstructionFormat) -> bool {
    matches!(
        format,
        InstructionFormat::Unary
            | InstructionFormat::Binary
            | InstructionFormat::Ternary
            | InstructionFormat::BinaryImm8
            | InstructionFormat::TernaryImm8
            | InstructionFormat::IntCompare
            | InstructionFormat::FloatCompare
            | InstructionFormat::Shuffle
            | InstructionFormat::IntAddTrap
            | InstructionFormat::CondTrap
            | InstructionFormat::Load
            | InstructionFormat::Store
            | InstructionFormat::LoadNoOffset
            | InstructionFormat::StoreNoOffset
            | InstructionFormat::AtomicRmw
            | InstructionFormat::AtomicCas
    )
}

/// Adds the operations of an opcode.
fn of_opcode(opcode: Opcode, all: &mut Vec<Operation>) {
    for typed in operations::of_opcode(opcode, &TYPES) {
        let plain = Operation {
            opcode,
            control: typed.control,
            free: None,
            big_endian: false,
        };
        let operands = operations::free_operands(opcode, typed.control).map(|(operand, _)| operand);
        let (addresses, values): (Vec<_>, Vec<_>) = operands
            .zip(typed.free)
            .partition(|(operand, _)| plain.address() == Some(*operand));
        // Addresses are those of stack slots.
        if addresses.iter().any(|(_, ty)| *ty != types::I64) {
            continue;
        }
        let free = values.first().map(|(_, ty)| *ty);
        let both = plain.address().is_some() && !plain.is_atomic() && !plain.control.is_vector();
        for &big_endian in if both { &[false, true][..] } else { &[false] } {
            let operation = Operation {
                free,
                big_endian,
                ..plain
            };
            if operation.within(&TYPES) && operation.is_sound() {
                all.push(operation);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_it_should() {
        let all = Operation::all();
        let names: Vec<String> = all.iter().map(Operation::to_string).collect();
        for name in [
            "iadd.i128",
            "ishl.i8 i128",
            "uextend.i64 i16",
            "bitcast.f32 i32",
            "select.f64 i8",
            "fcvt_to_uint_sat.i64 f32",
            "load.i32 big",
            "sload8x8.i64",
            "atomic_rmw.i8",
            "extractlane.i32x4",
            "isplit.i128",
            "uadd_overflow_trap.i32",
            "shuffle",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert!(!names.iter().any(|name| name.starts_with("stack_switch")));
        assert!(!names.contains(&"brif".to_owned()));
        let mut sorted = all.clone();
        sorted.sort_by_key(Operation::to_string);
        sorted.dedup();
        assert_eq!(sorted.len(), all.len(), "no operation twice");
    }
}
