//! Vectors up to 128 bits: their lanes in place, lane 0 in the low bits. Other operations on lanes are scalar by now
//! (`clif::legalize`).

use super::Lower;
use super::integer::{TABLE_A, TABLE_B};
use super::source::{PSrc, Regs, Source, Src, words_of_bits};
use crate::analysis::uses::UseCount;
use crate::isa::generated::{CompOp, I2IPDType, IType, i2ip};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::{InstructionData, Opcode, Type, Value};
use smallvec::SmallVec;

/// PRMT: the bytes of the first register in place.
const IDENTITY: u32 = 0x3210;
/// PRMT: the low halves of two registers.
pub(super) const LOW_HALVES: u32 = 0x5410;
/// PRMT: the low bytes of two registers, below zeros of neither (the upper half repeats byte 0).
pub(super) const LOW_BYTES: u32 = 0x0040;

/// PRMT: the lane of 8 or 16 bits from `byte` on, sign-extended.
pub(super) fn signed_lane(byte: u32, bits: u32) -> u32 {
    let last = byte + bits / 8 - 1;
    let sign = 8 | last;
    let middle = if bits == 16 { last } else { sign };
    sign << 12 | sign << 8 | middle << 4 | byte
}

/// The lanes of a vector that is put together: each inserted one, above a vector that has the others.
struct Build {
    base: Base,
    lanes: SmallVec<[Option<Value>; 16]>,
}

enum Base {
    Zero,
    Vector(Value),
}

impl Lower<'_> {
    /// `splat`.
    pub(super) fn splat(&mut self, ty: Type, x: Value) -> Regs {
        let lane = self.src(x);
        let unit = match ty.lane_bits() {
            8 => Regs::one(self.permute(lane, Src::ZERO, Src::imm(0))),
            16 => Regs::one(self.permute(lane, Src::ZERO, Src::imm(0x1010))),
            _ => self.gpr(lane),
        };
        let words = words_of_bits(ty.bits());
        let regs: SmallVec<[VReg; 4]> = unit
            .as_slice()
            .iter()
            .copied()
            .cycle()
            .take(words)
            .collect();
        Regs::new(&regs)
    }

    /// `extractlane`; zeros above a lane that was not at the bottom of its word.
    pub(super) fn extract_lane(&mut self, vector: Value, lane: u8) -> Regs {
        let bits = self.type_of(vector).lane_bits();
        let src = self.src(vector);
        let first = u32::from(lane) * bits;
        let word = src.slice((first / 32) as u8, words_of_bits(bits) as u8);
        if bits >= 32 || first.is_multiple_of(32) {
            return self.gpr(word);
        }
        let byte = first % 32 / 8;
        let selector = if bits == 8 { 0x4440 | byte } else { 0x4432 };
        Regs::one(self.permute(word, Src::ZERO, Src::imm(selector)))
    }

    /// `insertlane` and `scalar_to_vector`: a chain of insertions that nobody else sees is one construction.
    pub(super) fn insert_lanes(&mut self, vector: Value) -> Regs {
        let ty = self.type_of(vector);
        let build = self.collect_lanes(vector, ty);
        let bits = ty.lane_bits();
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        if bits >= 32 {
            let words = (bits / 32) as u8;
            for (i, lane) in build.lanes.iter().enumerate() {
                let src = match (lane, &build.base) {
                    (Some(value), _) => self.src(*value),
                    (None, Base::Zero) => Src::wide_imm(0, words),
                    (None, Base::Vector(base)) => self.src(*base).slice(i as u8 * words, words),
                };
                regs.extend_from_slice(self.gpr(src).as_slice());
            }
            return Regs::new(&regs);
        }
        let per_word = (32 / bits) as usize;
        for (word, lanes) in build.lanes.chunks(per_word).enumerate() {
            let base = match build.base {
                Base::Zero => Src::ZERO,
                Base::Vector(base) if lanes.iter().all(Option::is_some) => {
                    let _ = base;
                    Src::ZERO
                }
                Base::Vector(base) => self.src(base).slice(word as u8, 1),
            };
            let register = self.lanes_of_word(base, lanes, bits);
            regs.push(register);
        }
        Regs::new(&regs)
    }

    /// One word with these lanes over those of `base`.
    fn lanes_of_word(&mut self, base: Src, lanes: &[Option<Value>], bits: u32) -> VReg {
        if let Some(word) = self.limited_lanes(lanes, bits) {
            return word;
        }
        if let [Some(a), Some(b)] = *lanes
            && bits == 16
        {
            let (a, b) = (self.src(a), self.src(b));
            return self.permute(a, b, Src::imm(LOW_HALVES));
        }
        if let [Some(a), Some(b), Some(c), Some(d)] = *lanes {
            let (a, b, c, d) = (self.src(a), self.src(b), self.src(c), self.src(d));
            let low = self.permute(a, b, Src::imm(LOW_BYTES));
            let high = self.permute(c, d, Src::imm(LOW_BYTES));
            return self.permute(Src::reg(low), Src::reg(high), Src::imm(LOW_HALVES));
        }
        let mut word = base;
        for (i, lane) in lanes.iter().enumerate() {
            let Some(lane) = *lane else { continue };
            let (lane, at) = (self.src(lane), 4 * i as u32 * bits / 8);
            let (mask, bytes) = if bits == 8 { (0xf, 0x4) } else { (0xff, 0x54) };
            let selector = IDENTITY & !(mask << at) | bytes << at;
            word = Src::reg(self.permute(word, lane, Src::imm(selector)));
        }
        self.gpr(word).word(0)
    }

    /// I2IP: lanes that are words limited to the range of a lane.
    fn limited_lanes(&mut self, lanes: &[Option<Value>], bits: u32) -> Option<VReg> {
        let mut words: SmallVec<[Value; 4]> = SmallVec::new();
        let mut kind = None;
        for &lane in lanes {
            let (word, signed) = self.limited(lane?, bits)?;
            if *kind.get_or_insert(signed) != signed {
                return None;
            }
            words.push(word);
        }
        let format = match (bits, kind?) {
            (8, true) => I2IPDType::S8,
            (8, false) => I2IPDType::U8,
            (_, true) => I2IPDType::S16,
            (_, false) => I2IPDType::U16,
        };
        // Two lanes at a time from the top; the earlier ones move up.
        let mut packed = Src::ZERO;
        for pair in words.chunks(2).rev() {
            let (low, high) = (self.sign_extended(pair[0]), self.sign_extended(pair[1]));
            let out = self.operation(
                Optype::I2IP,
                i2ip::Options::new(format).word(),
                &[
                    (Role::A, Source::Value(high)),
                    (Role::B, Source::Value(low)),
                    (Role::C, Source::Value(packed)),
                ],
            );
            packed = out.src();
        }
        Some(self.gpr(packed).word(0))
    }

    /// The value that `lane`, of `bits` bits, is the limited form of, and whether the limits are those of signed lanes.
    fn limited(&self, lane: Value, bits: u32) -> Option<(Value, bool)> {
        let Some(InstructionData::Unary {
            opcode: Opcode::Ireduce,
            arg,
        }) = self.def_data(lane)
        else {
            return None;
        };
        let side = |value: Value, opcode: Opcode| match self.def_data(value)? {
            InstructionData::Binary {
                opcode: found,
                args: [x, limit],
            } if found == opcode => Some((x, self.signed_constant_of(limit)?)),
            _ => None,
        };
        let (below, least) = side(arg, Opcode::Smax)?;
        let (value, greatest) = side(below, Opcode::Smin)?;
        let signed = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        let fits = self.type_of(value).bits() <= 32;
        match (least, greatest) {
            limits if fits && limits == signed => Some((value, true)),
            (0, greatest) if fits && greatest == (1 << bits) - 1 => Some((value, false)),
            _ => None,
        }
    }

    fn collect_lanes(&self, vector: Value, ty: Type) -> Build {
        let mut lanes: SmallVec<[Option<Value>; 16]> =
            SmallVec::from_elem(None, ty.lane_count() as usize);
        let mut value = vector;
        loop {
            let own = value == vector || self.input.facts.uses.of(value) == UseCount::Once;
            match self.def_data(value) {
                Some(InstructionData::TernaryImm8 {
                    opcode: Opcode::Insertlane,
                    args: [below, lane],
                    imm,
                }) if own => {
                    lanes[imm as usize].get_or_insert(lane);
                    value = below;
                }
                Some(InstructionData::Unary {
                    opcode: Opcode::ScalarToVector,
                    arg,
                }) if own => {
                    lanes[0].get_or_insert(arg);
                    return Build {
                        base: Base::Zero,
                        lanes,
                    };
                }
                _ => {
                    return Build {
                        base: Base::Vector(value),
                        lanes,
                    };
                }
            }
        }
    }

    /// `shuffle`: the bytes of two vectors by a constant list, word by word: the first permutation joins two source words, each
    /// further one adds another.
    pub(super) fn shuffle(&mut self, a: Value, b: Value, mask: &[u8]) -> Regs {
        let (a, b) = (self.src(a), self.src(b));
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for picks in mask.chunks(4) {
            let mut word: Option<Src> = None;
            let mut sources: SmallVec<[u8; 4]> = SmallVec::new();
            for pick in picks {
                let source = (pick & 31) / 4;
                if !sources.contains(&source) {
                    sources.push(source);
                }
            }
            let part = |source: u8| {
                if source < 4 {
                    a.slice(source, 1)
                } else {
                    b.slice(source - 4, 1)
                }
            };
            let nibble = |i: usize, base: u32| (u32::from(picks[i]) % 4 + base) << (4 * i);
            let mut rest = sources.iter().copied();
            let first = rest.next().expect("a word has bytes");
            let second = rest.next();
            let selector = (0..4).fold(0, |s, i| {
                let source = (picks[i] & 31) / 4;
                let base = if Some(source) == second { 4 } else { 0 };
                s | nibble(i, base)
            });
            if second.is_none() && selector == IDENTITY {
                regs.push(self.gpr(part(first)).word(0));
                continue;
            }
            let other = second.map_or(Src::ZERO, part);
            word.replace(Src::reg(self.permute(
                part(first),
                other,
                Src::imm(selector),
            )));
            for source in rest {
                let selector = (0..4).fold(0, |s, i| {
                    if (picks[i] & 31) / 4 == source {
                        s | nibble(i, 4)
                    } else {
                        s | (i as u32) << (4 * i)
                    }
                });
                let before = word.expect("joined above");
                word = Some(Src::reg(self.permute(
                    before,
                    part(source),
                    Src::imm(selector),
                )));
            }
            let word = word.expect("joined above");
            regs.push(self.gpr(word).word(0));
        }
        Regs::new(&regs)
    }

    /// `vany_true`: whether any bit is set.
    pub(super) fn any_true(&mut self, vector: Value) -> PSrc {
        let src = self.zero_extended(vector);
        let mut word = src.slice(0, 1);
        for i in 1..src.words {
            word = Src::reg(self.logic3(word, src.slice(i, 1), Src::ZERO, TABLE_A | TABLE_B));
        }
        self.compare_word(CompOp::Ne, IType::U32, word, Src::ZERO, None)
    }

    /// `vhigh_bits`: the signs of all lanes as a number.
    ///
    /// The signs of four bytes come together by one multiplication: each factor bit brings one of them to bits 24 to 27, and no two
    /// partial products meet.
    pub(super) fn high_bits(&mut self, ty: Type, vector: Value) -> Regs {
        /// Bits 3, 10, 17 and 24.
        const GATHER_BYTES: u32 = 0x0102_0408;
        let (src, lane_bits) = (self.src(vector), self.type_of(vector).lane_bits());
        let lanes = self.type_of(vector).lane_count();
        let mut result: Option<VReg> = None;
        let mut first_lane = 0;
        let words_per_lane = (lane_bits / 32).max(1);
        let per_word = (32 / lane_bits).max(1);
        while first_lane < lanes {
            let top = (first_lane / per_word) * words_per_lane + words_per_lane - 1;
            let word = src.slice(top as u8, 1);
            let here = per_word.min(lanes - first_lane);
            let signs = match lane_bits {
                8 => {
                    let mask: u32 = (0..here).map(|i| 0x80 << (8 * i)).sum();
                    let signs = self.logic3(word, Src::imm(mask), Src::ZERO, TABLE_A & TABLE_B);
                    let low = self.shift_right(Src::reg(signs), Src::imm(7), false, false);
                    let gathered =
                        self.multiply_add(Src::reg(low), Src::imm(GATHER_BYTES), Src::ZERO);
                    let down = self.shift_right(Src::reg(gathered), Src::imm(24), false, false);
                    self.logic3(Src::reg(down), Src::imm(0xf), Src::ZERO, TABLE_A & TABLE_B)
                }
                16 => {
                    let low = self.shift_right(word, Src::imm(15), false, false);
                    let high = self.shift_right(word, Src::imm(30), false, false);
                    // Bit 0 from the one, bit 1 from the other, nothing above.
                    let one = self.logic3(Src::reg(low), Src::imm(1), Src::ZERO, TABLE_A & TABLE_B);
                    let two =
                        self.logic3(Src::reg(high), Src::imm(2), Src::ZERO, TABLE_A & TABLE_B);
                    self.add(Src::reg(one), Src::reg(two))
                }
                _ => self.shift_right(word, Src::imm(31), false, false),
            };
            result = Some(match result {
                None => signs,
                Some(below) => {
                    let factor = Src::imm(1 << first_lane);
                    self.multiply_add(Src::reg(signs), factor, Src::reg(below))
                }
            });
            first_lane += here;
        }
        let low = result.expect("a vector has lanes");
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::from_slice(&[low]);
        let words = words_of_bits(ty.bits());
        if words > 1 {
            let zero = self.gpr(Src::ZERO).word(0);
            regs.resize(words, zero);
        }
        Regs::new(&regs)
    }
}
