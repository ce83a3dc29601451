//! Which bytes of a value may be zero whatever it is computed from: where none can be, the walk down a tree ends at
//! once.
//!
//! Sums join bytes only where one of the two is zero. Most sums of a function are those of numbers, and to follow all
//! their operands down to a leaf each time costs more than the rest of the search. So one pass over the function, in
//! an order that has definitions before users, keeps eight bits for every value: never less than what a walk
//! ([`super::bytes`]) would find, so that what ends early would have found nothing.

use super::bytes::count;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::definitions::Definitions;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{InstructionData, Opcode, Value};

/// A bit for each byte of a value that may be zero, the lowest first.
pub(super) struct Zeros(SecondaryMap<Value, u8>);

impl Zeros {
    /// Those of all values of a function.
    pub(super) fn of(definitions: &Definitions, flow: &ControlFlow) -> Zeros {
        let func = definitions.func;
        let mut zeros = Zeros(SecondaryMap::new());
        zeros.0.resize(func.dfg.num_values());
        for &block in flow.reverse_postorder() {
            for inst in func.layout.block_insts(block) {
                if let &[result] = func.dfg.inst_results(inst) {
                    zeros.0[result] = zeros.result(definitions, result, func.dfg.insts[inst]);
                }
            }
        }
        zeros
    }

    /// Whether each of the lowest `size` bytes may be zero in one of the two.
    pub(super) fn may_complement(&self, [x, y]: [Value; 2], size: usize) -> bool {
        let all = u8::MAX >> (8 - size);
        (self.0[x] | self.0[y]) & all == all
    }

    fn result(&self, definitions: &Definitions, result: Value, data: InstructionData) -> u8 {
        let size = count(definitions.type_of(result));
        let of = |value: Value| self.0[value];
        // All or none, where the bytes do not stay where they are.
        let any = |zeros: u8| if zeros == 0 { 0 } else { u8::MAX };
        let constant = |value: Value| definitions.constant_of(value);
        match data {
            _ if size == 0 => 0,
            InstructionData::UnaryImm { imm, .. } => match imm.bits() {
                0 => u8::MAX,
                _ => 0,
            },
            InstructionData::Load { opcode, .. } => match opcode {
                Opcode::Uload8 => !0b1,
                Opcode::Uload16 => !0b11,
                _ => 0,
            },
            InstructionData::Unary { opcode, arg } => match opcode {
                Opcode::Uextend => of(arg) | above(count(definitions.type_of(arg))),
                Opcode::Sextend | Opcode::Ireduce | Opcode::Bswap | Opcode::Splat => any(of(arg)),
                _ => 0,
            },
            InstructionData::Binary {
                opcode,
                args: [x, y],
            } => match (opcode, constant(y)) {
                (Opcode::Iadd | Opcode::Bor | Opcode::Bxor, _) => of(x) & of(y),
                (Opcode::Band, Some(mask)) => (0..size).fold(of(x), |zeros, byte| {
                    zeros | u8::from(mask >> (8 * byte) & 0xff == 0) << byte
                }),
                (Opcode::Ishl, Some(n)) if n % 8 == 0 => {
                    let by = n as usize / 8 % size;
                    of(x) << by | !above(by)
                }
                (Opcode::Ushr, Some(n)) => {
                    let bits = 8 * size as u32;
                    let by = n as u32 % bits;
                    let kept = above((bits - by).div_ceil(8) as usize);
                    kept | of(x) >> (by / 8)
                }
                (Opcode::Sshr | Opcode::Rotl | Opcode::Rotr, Some(n)) if n % 8 == 0 => any(of(x)),
                (Opcode::Imul | Opcode::Umin | Opcode::Smin | Opcode::Smax, Some(_)) => u8::MAX,
                (Opcode::Iconcat, _) => of(x) & !above(size / 2) | of(y) << (size / 2),
                _ => 0,
            },
            // A lane, a vector as a word, one of two values: of what they are made of.
            InstructionData::LoadNoOffset { arg, .. } | InstructionData::BinaryImm8 { arg, .. } => {
                any(of(arg))
            }
            InstructionData::TernaryImm8 { args: [x, y], .. } => any(of(x) | of(y)),
            InstructionData::Ternary {
                opcode: Opcode::Bitselect,
                args: [_, x, y],
            } => of(x) | of(y),
            _ => 0,
        }
    }
}

/// A bit for each byte from the one with this number on.
fn above(bytes: usize) -> u8 {
    u8::MAX.checked_shl(bytes as u32).unwrap_or(0)
}
