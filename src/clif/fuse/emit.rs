//! The calls that a tree becomes, in front of its root. Values that are no word are taken apart and put together by
//! operations that cost selection nothing: it reads the words of a wide value, and of a narrow one no more than the
//! bytes that PRMT picks.

use super::dot::{Dot, Factor};
use super::limits::Limits;
use super::logic::Logic;
use super::word::{Byte, Source, Steps, is_in_place, sources, steps};
use super::{Fusion, Word};
use crate::intrinsics::Lowering;
use crate::intrinsics::resolve::Intrinsics;
use crate::isa::generated::PRMTMode;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::types::{I16, I32, I32X4, I64};
use cranelift_codegen::ir::{Endianness, Function, Inst, InstBuilder, MemFlagsData, Type, Value};

/// Replaces the result of an instruction. Its aliases are left to be resolved.
pub(super) fn replace(
    func: &mut Function,
    intrinsics: &mut Intrinsics,
    inst: Inst,
    fusion: &Fusion,
) {
    let result = func.dfg.first_result(inst);
    let ty = func.dfg.value_type(result);
    let location = func.srcloc(inst);
    let mut emitter = Emitter {
        pos: FuncCursor::new(func).at_inst(inst).with_srcloc(location),
        intrinsics,
    };
    let value = match fusion {
        Fusion::Dot(dot) => emitter.dot(dot),
        Fusion::Logic(logic) => emitter.logic(logic),
        Fusion::Words(words) => match &words[..] {
            [low, high] => emitter.pair(ty, low, high),
            words => emitter.low_bytes(ty, &words[0]),
        },
    };
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, value);
    func.layout.remove_inst(inst);
}

struct Emitter<'a, 'f> {
    pos: FuncCursor<'f>,
    intrinsics: &'a mut Intrinsics,
}

impl Emitter<'_, '_> {
    fn call(&mut self, lowering: Lowering, args: &[Value]) -> Value {
        let ty = args
            .first()
            .map_or(I32, |&arg| self.pos.func.dfg.value_type(arg));
        let callee = self.intrinsics.declare(self.pos.func, lowering, ty);
        let callee = callee.expect("the table has a row for what is fused");
        let call = self.pos.ins().call(callee, args);
        self.pos.func.dfg.first_result(call)
    }

    fn constant(&mut self, number: u32) -> Value {
        self.pos.ins().iconst(I32, i64::from(number as i32))
    }

    fn cast(&mut self, ty: Type, value: Value) -> Value {
        let little = MemFlagsData::new().with_endianness(Endianness::Little);
        match self.pos.func.dfg.value_type(value) == ty {
            true => value,
            false => self.pos.ins().bitcast(ty, little, value),
        }
    }

    /// A word of a value as an i32; of a narrow value what is above is zero.
    fn word_of(&mut self, source: Source) -> Value {
        let Some((value, word)) = source else {
            return self.constant(0);
        };
        let ty = self.pos.func.dfg.value_type(value);
        match ty.bits() {
            8 | 16 => {
                let bits = Type::int(ty.bits() as u16).unwrap_or(I16);
                let bits = self.cast(bits, value);
                self.pos.ins().uextend(I32, bits)
            }
            64 => {
                let bits = self.cast(I64, value);
                let bits = match word {
                    0 => bits,
                    _ => self.pos.ins().ushr_imm_u(bits, 32),
                };
                self.pos.ins().ireduce(I32, bits)
            }
            128 => {
                let words = self.cast(I32X4, value);
                self.pos.ins().extractlane(words, word)
            }
            _ => self.cast(I32, value),
        }
    }

    fn word(&mut self, word: &Word) -> Value {
        match word {
            Word::Packed(limits) => self.packed(limits),
            Word::Moved(bytes) => self.moved(*bytes),
        }
    }

    fn moved(&mut self, bytes: [Byte; 4]) -> Value {
        let dfg = &self.pos.func.dfg;
        let Steps { first, joined } = steps(bytes, |source| match source {
            Some((value, word)) => {
                let size = dfg.value_type(value).bytes() as usize;
                size.saturating_sub(4 * usize::from(word)).min(4)
            }
            None => 4,
        });
        let mut value = self.word_of(first);
        for (source, selector) in joined {
            let other = self.word_of(source);
            let selector = self.constant(selector);
            value = self.call(Lowering::Permute(PRMTMode::Idx), &[value, other, selector]);
        }
        value
    }

    /// Two at a time, from the top; the earlier ones move up.
    fn packed(&mut self, limits: &Limits) -> Value {
        let mut above = self.constant(0);
        for parts in limits.parts.rchunks(2) {
            let &[low, high] = parts else { continue };
            above = self.call(Lowering::Pack(limits.format), &[high, low, above]);
        }
        above
    }

    fn dot(&mut self, dot: &Dot) -> Value {
        let [a, b] = dot
            .factors
            .map(|Factor { value, word, .. }| Some((value, word)));
        let rest = match dot.rest[..] {
            [] => self.constant(0),
            [x] => x,
            [x, y, ..] => self.pos.ins().iadd(x, y),
        };
        let words = [self.word_of(a), self.word_of(b), rest];
        self.call(dot.lowering, &words)
    }

    fn logic(&mut self, logic: &Logic) -> Value {
        let [a, b, c] = logic.inputs;
        let table = self.constant(logic.table.into());
        self.call(Lowering::Lop3, &[a, b, c, table])
    }

    /// The low bytes of a word as a value of a type.
    fn low_bytes(&mut self, ty: Type, word: &Word) -> Value {
        // What is all of another value is that.
        if let Word::Moved(bytes) = word
            && is_in_place(*bytes)
            && let [Some((value, 0))] = sources(*bytes)[..]
            && self.pos.func.dfg.value_type(value).bits() == ty.bits()
        {
            return self.cast(ty, value);
        }
        let word = self.word(word);
        let bits = match ty.bits() {
            16 => self.pos.ins().ireduce(I16, word),
            _ => word,
        };
        self.cast(ty, bits)
    }

    /// Two words as a value of a type. Zeros and signs above stay an extension, which others fold.
    fn pair(&mut self, ty: Type, low: &Word, high: &Word) -> Value {
        let zeros = matches!(high, Word::Moved(bytes) if *bytes == [Byte::Zero; 4]);
        let first = self.word(low);
        let bits = if zeros {
            self.pos.ins().uextend(I64, first)
        } else if signs_above(low, high) {
            self.pos.ins().sextend(I64, first)
        } else {
            let second = self.word(high);
            self.pos.ins().iconcat(first, second)
        };
        self.cast(ty, bits)
    }
}

/// Whether all bytes of a word are the sign of the one below.
fn signs_above(low: &Word, high: &Word) -> bool {
    match (low, high) {
        (Word::Moved(low), Word::Moved(high)) => {
            let is_byte = matches!(low[3], Byte::Of { .. });
            is_byte && high.iter().all(|&byte| byte == low[3].sign())
        }
        _ => false,
    }
}
