//! Known low bits of integer values, to prove alignment.
//!
//! For every integer value the analysis knows how many of its low bits are constant, and which constant they are: a
//! value is ≡ r mod 2^k. That is more than an alignment, since `base + 4` from a 16-aligned base is known mod 16 and so
//! `base + 4 + 12` is 16-aligned again. Facts come from constants, stack slots (16), shifts, sums, products and masks;
//! parameters and loads give none. Block parameters are solved optimistically to a fixpoint; every value only ever
//! loses bits, so it ends, after a few rounds in practice.

use super::control_flow::ControlFlow;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics, symbol_offset};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};

/// Alignment of every stack slot in bytes (fixed by the memory model), unless the slot asks for more.
const STACK_SLOT_ALIGNMENT: u32 = 16;

/// Alignment in bytes of the start of shared memory, of data objects, and the largest that a query answers.
const MAX_ALIGNMENT: u32 = 16;

/// A value is ≡ `bits` mod 2^`known`; `known` is at most 64, and `bits` has no bit from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LowBits {
    known: u32,
    bits: u64,
}

impl LowBits {
    const NOTHING: Self = Self { known: 0, bits: 0 };

    fn new(known: u32, bits: u64) -> Self {
        let known = known.min(64);
        Self {
            known,
            bits: bits & mask(known),
        }
    }

    fn constant(value: i64) -> Self {
        Self::new(64, value as u64)
    }

    /// A multiple of a power of two.
    fn multiple_of(power: u32) -> Self {
        Self::new(power.trailing_zeros(), 0)
    }

    /// Number of low bits that are certainly zero.
    fn zeros(self) -> u32 {
        self.bits.trailing_zeros().min(self.known)
    }

    /// The one of two true facts that says more.
    fn or_better(self, other: Self) -> Self {
        if other.known > self.known {
            other
        } else {
            self
        }
    }

    fn join(self, other: Self) -> Self {
        let same = (self.bits ^ other.bits).trailing_zeros();
        Self::new(self.known.min(other.known).min(same), self.bits)
    }

    fn add(self, other: Self) -> Self {
        Self::new(
            self.known.min(other.known),
            self.bits.wrapping_add(other.bits),
        )
    }

    fn sub(self, other: Self) -> Self {
        Self::new(
            self.known.min(other.known),
            self.bits.wrapping_sub(other.bits),
        )
    }

    /// With a = r + 2^k·x and b = s + 2^l·y, ab − rs is a multiple of 2^min(k + zeros(s), l + zeros(r), k + l).
    fn mul(self, other: Self) -> Self {
        let known = (self.known + other.zeros()).min(other.known + self.zeros());
        Self::new(known, self.bits.wrapping_mul(other.bits))
    }

    fn shl(self, amount: u32) -> Self {
        Self::new(
            self.known + amount,
            self.bits.checked_shl(amount).unwrap_or(0),
        )
    }

    /// Right shift within a type of `width` bits; `signed` says what a fully known value is extended by.
    fn shr(self, amount: u32, width: u32, signed: bool) -> Self {
        if self.known >= width {
            let value = if signed {
                (sign_extend(self.bits, width) >> amount) as u64
            } else {
                (self.bits & mask(width)) >> amount
            };
            return Self::new(width, value);
        }
        Self::new(self.known.saturating_sub(amount), self.bits >> amount)
    }

    fn and(self, other: Self) -> Self {
        let (a, b) = (self.certain(), other.certain());
        Self::from_masks(a.0 | b.0, a.1 & b.1)
    }

    fn or(self, other: Self) -> Self {
        let (a, b) = (self.certain(), other.certain());
        Self::from_masks(a.0 & b.0, a.1 | b.1)
    }

    fn xor(self, other: Self) -> Self {
        Self::new(self.known.min(other.known), self.bits ^ other.bits)
    }

    /// Which bits are certainly zero and which certainly one.
    fn certain(self) -> (u64, u64) {
        (!self.bits & mask(self.known), self.bits)
    }

    fn from_masks(zeros: u64, ones: u64) -> Self {
        Self::new((zeros | ones).trailing_ones(), ones)
    }
}

/// The low `bits` bits set.
fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// The low `width` bits of a value, sign-extended.
fn sign_extend(bits: u64, width: u32) -> i64 {
    let unused = 64 - width.clamp(1, 64);
    ((bits << unused) as i64) >> unused
}

/// Known low bits of all integer values of a function.
#[derive(Default)]
pub struct Alignment(SecondaryMap<Value, Option<LowBits>>);

impl Alignment {
    /// Analyses `func`.
    pub fn compute(func: &Function, flow: &ControlFlow, intrinsics: &Intrinsics) -> Self {
        let mut known = Self::default();
        known.recompute(func, flow, intrinsics);
        known
    }

    /// The same in the memory of the function before.
    pub fn recompute(&mut self, func: &Function, flow: &ControlFlow, intrinsics: &Intrinsics) {
        self.0.clear();
        self.0.resize(func.dfg.num_values());
        if let Some(entry) = func.layout.entry_block() {
            for &param in func.dfg.block_params(entry) {
                let promised = intrinsics.promised(param).map(LowBits::multiple_of);
                self.0[param] = Some(promised.unwrap_or(LowBits::NOTHING));
            }
        }
        let blocks = flow.reverse_postorder();
        loop {
            for &block in blocks {
                self.join(func, flow, block);
                for inst in func.layout.block_insts(block) {
                    let results = func.dfg.inst_results(inst);
                    let alone = results.len() == 1;
                    for &result in results {
                        if func.dfg.value_type(result).is_int() {
                            // A value without a fact counts as one that is still to come, so that every value has to
                            // get one.
                            let new = if alone {
                                self.result(func, intrinsics, inst)
                            } else {
                                Some(LowBits::NOTHING)
                            };
                            self.weaken(result, new);
                        }
                    }
                }
            }
            // In reverse postorder only what comes round a cycle is not yet there when it is asked for, and only
            // parameters take it.
            let mut changed = false;
            if flow.has_cycles() {
                (blocks.iter()).for_each(|&block| changed |= self.join(func, flow, block));
            }
            if !changed {
                return;
            }
        }
    }

    /// Joins what is passed to the parameters of a block; true if a fact has become weaker.
    fn join(&mut self, func: &Function, flow: &ControlFlow, block: Block) -> bool {
        // What is known of the function's own parameters is there.
        if Some(block) == func.layout.entry_block() {
            return false;
        }
        let mut changed = false;
        for (index, param) in func.dfg.block_params(block).iter().enumerate() {
            if !func.dfg.value_type(*param).is_int() {
                continue;
            }
            let new = self.join_arguments(func, flow, block, index);
            changed |= self.weaken(*param, new);
        }
        changed
    }

    /// Nothing is known of any value from here on.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The largest power of two, at most [`MAX_ALIGNMENT`], that divides `address + offset`.
    pub fn alignment(&self, address: Value, offset: i32) -> u32 {
        let sum = self.of(address).add(LowBits::constant(offset.into()));
        1 << sum.zeros().min(MAX_ALIGNMENT.trailing_zeros())
    }

    /// The value's constant low bits: `(k, r)` if it is certainly ≡ r mod 2^k.
    pub fn low_bits(&self, value: Value) -> (u32, u64) {
        let bits = self.of(value);
        (bits.known, bits.bits)
    }

    fn of(&self, value: Value) -> LowBits {
        self.0[value].unwrap_or(LowBits::NOTHING)
    }

    /// Takes a new fact; facts only get weaker, whatever the order of evaluation.
    fn weaken(&mut self, value: Value, new: Option<LowBits>) -> bool {
        let old = self.0[value];
        let joined = match (old, new) {
            (Some(old), Some(new)) => Some(old.join(new)),
            (old, new) => old.or(new),
        };
        self.0[value] = joined;
        joined != old
    }

    /// What all predecessors pass; those not reached yet pass nothing.
    fn join_arguments(
        &self,
        func: &Function,
        flow: &ControlFlow,
        block: Block,
        index: usize,
    ) -> Option<LowBits> {
        let mut joined: Option<LowBits> = None;
        for (_, argument) in flow.arguments(func, block, index) {
            let fact = argument.map_or(Some(LowBits::NOTHING), |value| self.0[value]);
            joined = match (joined, fact) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (a, b) => a.or(b),
            };
        }
        joined
    }

    /// The fact about a single result; `None` while an operand is not reached yet.
    fn result(&self, func: &Function, intrinsics: &Intrinsics, inst: Inst) -> Option<LowBits> {
        let dfg = &func.dfg;
        let data = &dfg.insts[inst];
        let args = dfg.inst_args(inst);
        let width = dfg.value_type(dfg.first_result(inst)).bits();
        let arg = |index: usize| self.0[args[index]];
        let amount = |index: usize| {
            self.0[args[index]]
                .filter(|a| a.known >= 8)
                .map(|a| a.bits as u32 & (width - 1))
        };
        Some(match data.opcode() {
            Opcode::Iconst => match *data {
                InstructionData::UnaryImm { imm, .. } => LowBits::constant(imm.bits()),
                _ => LowBits::NOTHING,
            },
            Opcode::Iadd => arg(0)?.add(arg(1)?),
            Opcode::Isub => arg(0)?.sub(arg(1)?),
            Opcode::Ineg => LowBits::constant(0).sub(arg(0)?),
            Opcode::Imul => arg(0)?.mul(arg(1)?),
            Opcode::Band => arg(0)?.and(arg(1)?),
            Opcode::Bor => arg(0)?.or(arg(1)?),
            Opcode::Bxor => arg(0)?.xor(arg(1)?),
            Opcode::Bnot => arg(0)?.xor(LowBits::constant(-1)),
            Opcode::Ishl => match amount(1) {
                Some(amount) => arg(0)?.shl(amount),
                // Whatever the amount, zeros stay zeros.
                None => arg(1).and(arg(0)).map(|a| LowBits::new(a.zeros(), 0))?,
            },
            opcode @ (Opcode::Ushr | Opcode::Sshr) => match amount(1) {
                Some(amount) if width <= 64 => arg(0)?.shr(amount, width, opcode == Opcode::Sshr),
                _ => LowBits::NOTHING,
            },
            opcode @ (Opcode::Uextend | Opcode::Sextend) => {
                let from = dfg.value_type(args[0]).bits();
                let a = arg(0)?;
                if a.known < from {
                    a
                } else if opcode == Opcode::Sextend {
                    LowBits::constant(sign_extend(a.bits, from))
                } else {
                    LowBits::constant((a.bits & mask(from)) as i64)
                }
            }
            Opcode::Ireduce => arg(0)?,
            Opcode::Select | Opcode::SelectSpectreGuard => match (arg(1), arg(2)) {
                (Some(a), Some(b)) => a.join(b),
                (a, b) => return a.or(b),
            },
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => arg(0)?.join(arg(1)?),
            Opcode::StackAddr => match *data {
                InstructionData::StackAddr {
                    stack_slot, offset, ..
                } => {
                    let asked = 1u32
                        .checked_shl(func.sized_stack_slots[stack_slot].align_shift.into())
                        .unwrap_or(1);
                    let base =
                        LowBits::multiple_of(STACK_SLOT_ALIGNMENT.max(asked.min(MAX_ALIGNMENT)));
                    base.add(LowBits::constant(i32::from(offset).into()))
                }
                _ => LowBits::NOTHING,
            },
            Opcode::Call => match intrinsics.alignment(func, inst) {
                Some((value, power)) => {
                    let promised = LowBits::multiple_of(power);
                    self.0[value]?.or_better(promised)
                }
                None => LowBits::NOTHING,
            },
            Opcode::SymbolValue => match *data {
                // Static shared memory starts at offset 0 of its window; thread and launch values are any number.
                // Nothing is known about the data objects of an embedding.
                InstructionData::UnaryGlobalValue { global_value, .. }
                    if matches!(intrinsics.symbol(global_value), Some(GpuSymbol::Shared)) =>
                {
                    LowBits::multiple_of(MAX_ALIGNMENT)
                        .add(LowBits::constant(symbol_offset(func, global_value)))
                }
                _ => LowBits::NOTHING,
            },
            _ => LowBits::NOTHING,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::calls::Callees;
    use crate::analysis::testing::Rng;

    /// All values below 2^8 that a fact about an 8-bit value allows.
    fn members(fact: LowBits) -> Vec<u64> {
        (0..256)
            .filter(|v| v & mask(fact.known.min(8)) == fact.bits & 0xff & mask(fact.known))
            .collect()
    }

    #[test]
    fn every_rule_holds_for_all_values() {
        let facts: Vec<LowBits> = [0, 1, 2, 3, 5]
            .iter()
            .flat_map(|k| (0..1 << k).map(|r| LowBits::new(*k, r)))
            .collect();
        for &a in &facts {
            for &b in &facts {
                for x in members(a).into_iter().step_by(3) {
                    for y in members(b).into_iter().step_by(5) {
                        for (name, fact, value) in [
                            ("add", a.add(b), x + y),
                            ("sub", a.sub(b), x.wrapping_sub(y)),
                            ("mul", a.mul(b), x * y),
                            ("and", a.and(b), x & y),
                            ("or", a.or(b), x | y),
                            ("xor", a.xor(b), x ^ y),
                            ("join", a.join(b), x),
                            ("shl", a.shl(3), x << 3),
                            ("shr", a.shr(2, 8, false), x >> 2),
                        ] {
                            assert_eq!(
                                value & mask(fact.known),
                                fact.bits,
                                "{name} {a:?} {b:?}: {x} {y} gives {fact:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_rules_are_not_vacuous() {
        let (four, six) = (LowBits::new(2, 0), LowBits::new(3, 6));
        assert_eq!(four.mul(six), LowBits::new(3, 0));
        assert_eq!(
            LowBits::new(4, 4).add(LowBits::constant(12)),
            LowBits::new(4, 0)
        );
        assert_eq!(
            LowBits::NOTHING.and(LowBits::constant(-16)),
            LowBits::new(4, 0)
        );
        assert_eq!(
            LowBits::constant(-8).shr(1, 32, true),
            LowBits::new(32, -4i64 as u64)
        );
        let mut rng = Rng::new(1);
        for _ in 0..1000 {
            let value = rng.bits() as i64;
            assert_eq!(
                LowBits::constant(value).shr(7, 64, true),
                LowBits::constant(value >> 7)
            );
        }
    }

    fn analyse(text: &str) -> (Function, Alignment) {
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let intrinsics = crate::intrinsics::resolve::resolve(&mut func, &|_| None).unwrap();
        let flow = ControlFlow::compute(&func, true, &Callees::default());
        let alignment = Alignment::compute(&func, &flow, &intrinsics);
        (func, alignment)
    }

    #[test]
    fn addresses_are_aligned_as_computed() {
        let (_, alignment) = analyse(
            "function %f(i64, i32) {
                ss0 = explicit_slot 64
            block0(v0: i64, v1: i32):
                v2 = stack_addr.i64 ss0+8
                v3 = iconst.i32 3
                v4 = ishl v1, v3
                v5 = uextend.i64 v4
                v6 = iadd v2, v5
                v7 = iconst.i64 -64
                v8 = band v0, v7
                v9 = iadd v8, v5
                jump block1(v8)
            block1(v10: i64):
                v11 = iconst.i64 12
                v12 = iadd v10, v11
                brif v1, block1(v12), block2
            block2:
                return
            }",
        );
        let of = |number, offset| alignment.alignment(Value::from_u32(number), offset);
        assert_eq!(
            [of(0, 0), of(2, 0), of(2, 8), of(6, 0), of(6, 4)],
            [1, 8, 16, 8, 4]
        );
        assert_eq!(
            [
                of(8, 0),
                of(8, 2),
                of(9, 0),
                of(10, 0),
                of(12, 0),
                of(12, 1)
            ],
            [16, 2, 8, 4, 4, 1]
        );
    }

    /// The value of an instruction, with registers of 64 bits; memory and stack are anywhere they may be.
    fn evaluate(func: &Function, rng: &mut Rng, inst: Inst, args: &[u64]) -> u64 {
        let dfg = &func.dfg;
        match dfg.insts[inst] {
            InstructionData::UnaryImm { imm, .. } => return imm.bits() as u64,
            InstructionData::StackAddr { offset, .. } => {
                return (rng.bits() << 4).wrapping_add(i64::from(i32::from(offset)) as u64);
            }
            _ => {}
        }
        match dfg.insts[inst].opcode() {
            Opcode::Iadd => args[0].wrapping_add(args[1]),
            Opcode::Isub => args[0].wrapping_sub(args[1]),
            Opcode::Imul => args[0].wrapping_mul(args[1]),
            Opcode::Band => args[0] & args[1],
            Opcode::Bor => args[0] | args[1],
            Opcode::Ishl => args[0] << (args[1] & 63),
            Opcode::Ushr => args[0] >> (args[1] & 63),
            Opcode::Sshr => (args[0] as i64 >> (args[1] & 63)) as u64,
            Opcode::Ireduce => args[0] & 0xffff_ffff,
            Opcode::Uextend => args[0] & 0xffff_ffff,
            Opcode::Sextend => args[0] as i32 as i64 as u64,
            Opcode::Select => args[1 + rng.below(2)],
            Opcode::Umin => args[0].min(args[1]),
            Opcode::Load => rng.bits(),
            other => panic!("the generator makes no {other}"),
        }
    }

    #[test]
    fn facts_hold_on_random_paths() {
        let (mut checked, mut known_bits) = (0u32, 0u32);
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let func = crate::analysis::testing::random_addresses(&mut rng, 8);
            let flow = ControlFlow::compute(&func, true, &Callees::default());
            let alignment = Alignment::compute(&func, &flow, &Intrinsics::default());
            for _ in 0..4 {
                let params = [rng.bits(), rng.bits()];
                let mut step = |rng: &mut Rng, inst, args: &[u64]| evaluate(&func, rng, inst, args);
                for (value, number) in
                    crate::analysis::testing::random_walk(&func, &mut rng, 40, &params, &mut step)
                {
                    let (bits, low) = alignment.low_bits(value);
                    let bits = bits.min(func.dfg.value_type(value).bits());
                    assert_eq!(
                        number & mask(bits),
                        low & mask(bits),
                        "seed {seed}: {value} is {number:#x}\n{func}"
                    );
                    checked += 1;
                    known_bits += u32::from(bits > 0 && bits < 32);
                }
            }
        }
        assert!(
            checked > 5_000 && known_bits > 300,
            "{checked} values, {known_bits} with known low bits"
        );
    }
}
