//! What the host's back ends lack, rewritten with what they have.
//!
//! Half precision: operands become f32, exactly, and the result of a sum, product, quotient or root is rounded again,
//! which is right because f32 has more than twice the digits of f16 and two; `fma` and the roundings are calls of
//! functions built on an exact arithmetic library. Bitwise and sign operations work on integers. Accesses in the other
//! byte order reverse bytes. Conversions to narrow integers go through i32, minimum and maximum of i128 through a
//! comparison. The function that the target compiles is not touched.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F16, F32, F64, I8, I16, I32, I64, I128};
use cranelift_codegen::ir::{
    Endianness, FuncRef, Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type,
    Value,
};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// A function in Rust that code on the host calls.
pub struct Helper {
    /// Its name.
    pub name: &'static str,
    /// Types of its parameters; an f16 is the low half of an i32.
    pub params: &'static [Type],
    /// Type of its result.
    pub result: Type,
    /// Where it is: an `extern "C"` function of these types.
    pub address: fn() -> *const u8,
}

/// All of them, in the order of [`Calls`].
pub const HELPERS: [Helper; 4] = [
    Helper {
        name: "fuzz_half_to_single",
        params: &[I32],
        result: F32,
        address: || half_to_single as *const u8,
    },
    Helper {
        name: "fuzz_single_to_half",
        params: &[F32],
        result: I32,
        address: || single_to_half as *const u8,
    },
    Helper {
        name: "fuzz_double_to_half",
        params: &[F64],
        result: I32,
        address: || double_to_half as *const u8,
    },
    Helper {
        name: "fuzz_half_fma",
        params: &[I32, I32, I32],
        result: I32,
        address: || half_fma as *const u8,
    },
];

extern "C" fn half_to_single(bits: u32) -> f32 {
    let half = Half::from_bits(u128::from(bits & 0xffff));
    let single: Single = half.convert(&mut false).value;
    f32::from_bits(single.to_bits() as u32)
}

extern "C" fn single_to_half(value: f32) -> u32 {
    let single = Single::from_bits(u128::from(value.to_bits()));
    let half: Half = single.convert_r(Round::NearestTiesToEven, &mut false).value;
    half.to_bits() as u32
}

extern "C" fn double_to_half(value: f64) -> u32 {
    let double = Double::from_bits(u128::from(value.to_bits()));
    let half: Half = double.convert_r(Round::NearestTiesToEven, &mut false).value;
    half.to_bits() as u32
}

extern "C" fn half_fma(x: u32, y: u32, z: u32) -> u32 {
    let [x, y, z] = [x, y, z].map(|bits| Half::from_bits(u128::from(bits & 0xffff)));
    x.mul_add(y, z).value.to_bits() as u32
}

/// The helpers as a function names them.
#[derive(Clone, Copy)]
pub struct Calls {
    /// As [`HELPERS`].
    pub functions: [FuncRef; HELPERS.len()],
}

/// Whether [`rewrite`] would change an instruction.
pub fn is_rewritten(func: &Function, inst: Inst) -> bool {
    Rewrite::of(func, inst).is_some()
}

/// Rewrites all of them.
pub fn rewrite(func: &mut Function, calls: Calls) {
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    for inst in insts {
        let Some(rewrite) = Rewrite::of(func, inst) else {
            continue;
        };
        let old = func.dfg.inst_results(inst).first().copied();
        let mut host = Host {
            pos: FuncCursor::new(func).at_inst(inst),
            calls,
        };
        let new = host.replacement(inst, rewrite);
        let func = host.pos.func;
        if let (Some(old), Some(new)) = (old, new) {
            func.dfg.clear_results(inst);
            func.dfg.change_to_alias(old, new);
        }
        func.layout.remove_inst(inst);
    }
    func.dfg.resolve_all_aliases();
}

/// How an instruction is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rewrite {
    /// On f32, rounded to f16 if the result is one.
    AsSingle,
    /// On the bits of f16 as i16.
    AsBits,
    /// f16 fused.
    Fma,
    /// A float rounded to f16.
    Demote,
    /// An integer rounded to f16.
    FromInteger,
    /// To i8 or i16 through i32.
    ToNarrow,
    /// By comparison.
    MinMax(IntCC),
    /// Bytes reversed.
    BigEndian,
}

impl Rewrite {
    fn of(func: &Function, inst: Inst) -> Option<Rewrite> {
        let dfg = &func.dfg;
        let opcode = dfg.insts[inst].opcode();
        let result = dfg.inst_results(inst).first().map(|v| dfg.value_type(*v));
        let operand = dfg.inst_args(inst).last().map(|v| dfg.value_type(*v));
        let half = operand == Some(F16);
        match opcode {
            Opcode::Fadd
            | Opcode::Fsub
            | Opcode::Fmul
            | Opcode::Fdiv
            | Opcode::Sqrt
            | Opcode::Fmin
            | Opcode::Fmax
            | Opcode::Ceil
            | Opcode::Floor
            | Opcode::Trunc
            | Opcode::Nearest
            | Opcode::Fcmp
            | Opcode::Fpromote
                if half =>
            {
                Some(Rewrite::AsSingle)
            }
            Opcode::Fneg
            | Opcode::Fabs
            | Opcode::Fcopysign
            | Opcode::Band
            | Opcode::Bor
            | Opcode::Bxor
            | Opcode::Bnot
            | Opcode::Bitselect
                if half =>
            {
                Some(Rewrite::AsBits)
            }
            Opcode::Fma if half => Some(Rewrite::Fma),
            Opcode::Fdemote if result == Some(F16) => Some(Rewrite::Demote),
            Opcode::FcvtFromSint | Opcode::FcvtFromUint
                if result == Some(F16) && operand != Some(I128) =>
            {
                Some(Rewrite::FromInteger)
            }
            Opcode::FcvtToSint
            | Opcode::FcvtToUint
            | Opcode::FcvtToSintSat
            | Opcode::FcvtToUintSat => match result {
                Some(I8 | I16) => Some(Rewrite::ToNarrow),
                _ if half => Some(Rewrite::AsSingle),
                _ => None,
            },
            Opcode::Smin if result == Some(I128) => Some(Rewrite::MinMax(IntCC::SignedLessThan)),
            Opcode::Smax if result == Some(I128) => Some(Rewrite::MinMax(IntCC::SignedGreaterThan)),
            Opcode::Umin if result == Some(I128) => Some(Rewrite::MinMax(IntCC::UnsignedLessThan)),
            Opcode::Umax if result == Some(I128) => {
                Some(Rewrite::MinMax(IntCC::UnsignedGreaterThan))
            }
            _ => match dfg.insts[inst] {
                InstructionData::Load { flags, .. } | InstructionData::Store { flags, .. }
                    if dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big) =>
                {
                    Some(Rewrite::BigEndian)
                }
                _ => None,
            },
        }
    }
}

/// Writes replacements.
struct Host<'a> {
    pos: FuncCursor<'a>,
    calls: Calls,
}

fn plain() -> MemFlagsData {
    MemFlagsData::new()
}

impl Host<'_> {
    fn type_of(&self, value: Value) -> Type {
        self.pos.func.dfg.value_type(value)
    }

    fn call(&mut self, helper: usize, args: &[Value]) -> Value {
        let call = self.pos.ins().call(self.calls.functions[helper], args);
        self.pos.func.dfg.first_result(call)
    }

    /// The bits of an f16 as i32.
    fn half_bits(&mut self, value: Value) -> Value {
        let bits = self.pos.ins().bitcast(I16, plain(), value);
        self.pos.ins().uextend(I32, bits)
    }

    fn half_of(&mut self, bits: Value) -> Value {
        let bits = self.pos.ins().ireduce(I16, bits);
        self.pos.ins().bitcast(F16, plain(), bits)
    }

    /// An f16 as f32, anything else as it is.
    fn single(&mut self, value: Value) -> Value {
        if self.type_of(value) != F16 {
            return value;
        }
        let bits = self.half_bits(value);
        self.call(0, &[bits])
    }

    fn rounded(&mut self, value: Value) -> Value {
        let helper = if self.type_of(value) == F64 { 2 } else { 1 };
        let bits = self.call(helper, &[value]);
        self.half_of(bits)
    }

    /// Repeats an instruction on other operands; `to` is the type of its result.
    fn again(&mut self, inst: Inst, args: &[Value], to: Type) -> Value {
        let opcode = self.pos.func.dfg.insts[inst].opcode();
        let data = self.pos.func.dfg.insts[inst];
        let ins = self.pos.ins();
        let (inst, dfg) = match (data, args) {
            (InstructionData::FloatCompare { cond, .. }, [x, y]) => {
                return ins.fcmp(cond, *x, *y);
            }
            (_, [x]) => ins.Unary(opcode, to, *x),
            (_, [x, y]) => ins.Binary(opcode, to, *x, *y),
            (_, args) => ins.Ternary(opcode, to, args[0], args[1], args[2]),
        };
        dfg.first_result(inst)
    }

    fn replacement(&mut self, inst: Inst, rewrite: Rewrite) -> Option<Value> {
        let dfg = &self.pos.func.dfg;
        let args: Vec<Value> = dfg.inst_args(inst).to_vec();
        let opcode = dfg.insts[inst].opcode();
        let result = dfg.inst_results(inst).first().map(|v| dfg.value_type(*v));
        if rewrite == Rewrite::BigEndian {
            return self.reversed(inst, opcode, &args, result);
        }
        let result = result?;
        Some(match rewrite {
            Rewrite::AsSingle => {
                let singles: Vec<Value> = args.iter().map(|arg| self.single(*arg)).collect();
                match (opcode, result) {
                    (Opcode::Fpromote, F32) => singles[0],
                    (_, F16) => {
                        let value = self.again(inst, &singles, F32);
                        self.rounded(value)
                    }
                    _ => self.again(inst, &singles, result),
                }
            }
            Rewrite::AsBits => {
                let bits: Vec<Value> = args
                    .iter()
                    .map(|arg| self.pos.ins().bitcast(I16, plain(), *arg))
                    .collect();
                let value = self.on_bits(inst, opcode, &bits);
                self.pos.ins().bitcast(F16, plain(), value)
            }
            Rewrite::Fma => {
                let bits: Vec<Value> = args.iter().map(|arg| self.half_bits(*arg)).collect();
                let value = self.call(3, &bits);
                self.half_of(value)
            }
            Rewrite::Demote => self.rounded(args[0]),
            Rewrite::FromInteger => {
                // Up to 65,520 every integer is exact in f64, and all others are infinite in f16.
                let wide = match (self.type_of(args[0]), opcode) {
                    (I64, _) => args[0],
                    (_, Opcode::FcvtFromSint) => self.pos.ins().sextend(I64, args[0]),
                    _ => self.pos.ins().uextend(I64, args[0]),
                };
                let value = self.again(inst, &[wide], F64);
                self.rounded(value)
            }
            Rewrite::ToNarrow => {
                let single = self.single(args[0]);
                let value = self.again(inst, &[single], I32);
                let value = self.limited(opcode, value, result);
                self.pos.ins().ireduce(result, value)
            }
            Rewrite::MinMax(condition) => {
                let first = self.pos.ins().icmp(condition, args[0], args[1]);
                self.pos.ins().select(first, args[0], args[1])
            }
            Rewrite::BigEndian => return None,
        })
    }

    /// A sign or bitwise operation on the bits of f16.
    fn on_bits(&mut self, inst: Inst, opcode: Opcode, bits: &[Value]) -> Value {
        let sign = self.pos.ins().iconst(I16, 0x8000);
        let rest = self.pos.ins().iconst(I16, 0x7fff);
        match opcode {
            Opcode::Fneg => self.pos.ins().bxor(bits[0], sign),
            Opcode::Fabs => self.pos.ins().band(bits[0], rest),
            Opcode::Fcopysign => self.pos.ins().bitselect(sign, bits[1], bits[0]),
            _ => self.again(inst, bits, I16),
        }
    }

    /// The i32 within the limits of a narrower type, if the conversion saturates.
    fn limited(&mut self, opcode: Opcode, value: Value, to: Type) -> Value {
        let limit = |bits: u32| (1i64 << bits) - 1;
        match opcode {
            Opcode::FcvtToUintSat => {
                let most = self.pos.ins().iconst(I32, limit(to.bits()));
                self.pos.ins().umin(value, most)
            }
            Opcode::FcvtToSintSat => {
                let most = limit(to.bits() - 1);
                let least = self.pos.ins().iconst(I32, !most & 0xffff_ffff);
                let most = self.pos.ins().iconst(I32, most);
                let value = self.pos.ins().smin(value, most);
                self.pos.ins().smax(value, least)
            }
            _ => value,
        }
    }

    /// An access in the other byte order.
    fn reversed(
        &mut self,
        inst: Inst,
        opcode: Opcode,
        args: &[Value],
        result: Option<Type>,
    ) -> Option<Value> {
        let value = if result.is_none() {
            args.first().copied()
        } else {
            None
        };
        let ty = result.or_else(|| value.map(|value| self.type_of(value)))?;
        let memory = match opcode {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => I8,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => I16,
            Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => I32,
            _ => Type::int(ty.bits() as u16)?,
        };
        let offset = self.pos.func.dfg.insts[inst].load_store_offset()?;
        if let Some(value) = value {
            let value = match opcode {
                Opcode::Store if ty == memory => value,
                Opcode::Store => self.pos.ins().bitcast(memory, plain(), value),
                _ if ty == memory => value,
                _ => self.pos.ins().ireduce(memory, value),
            };
            let value = self.swapped(value);
            self.pos.ins().store(plain(), value, args[1], offset);
            return None;
        }
        let loaded = self.pos.ins().load(memory, plain(), args[0], offset);
        let loaded = self.swapped(loaded);
        Some(match opcode {
            _ if ty == memory => loaded,
            Opcode::Load => self.pos.ins().bitcast(ty, plain(), loaded),
            Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => {
                self.pos.ins().sextend(ty, loaded)
            }
            _ => self.pos.ins().uextend(ty, loaded),
        })
    }

    fn swapped(&mut self, value: Value) -> Value {
        if self.type_of(value) == I8 {
            return value;
        }
        self.pos.ins().bswap(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!(single_to_half(1.0), 0x3c00);
        assert_eq!(single_to_half(65519.9), 0x7bff);
        assert_eq!(single_to_half(65520.0), 0x7c00);
        // Half of the last place above 1, from above and to the even side.
        assert_eq!(double_to_half(1.0 + 2f64.powi(-11)), 0x3c00);
        assert_eq!(
            double_to_half(1.0 + 2f64.powi(-11) + 2f64.powi(-40)),
            0x3c01
        );
        assert_eq!(half_to_single(0x0001), 2f32.powi(-24));
    }

    #[test]
    fn a_fused_product_is_rounded_once() {
        // (1 + 2^-10)^2 - 1 = 2^-9 + 2^-20, which f16 has.
        let x = 0x3c01;
        let exact = 2f64.powi(-9) + 2f64.powi(-20);
        assert_eq!(half_fma(x, x, 0xbc00), double_to_half(exact));
    }
}
