//! The loops that run a pure operation over the lanes of a warp.
//!
//! A loop is compiled for an operation, a [`Choice`] of its modifiers and a [`Host`]: modifiers that the choice knows
//! when it is compiled leave nothing of the cases that they exclude. Sources are columns, results go to columns beside
//! the registers first and then to the lanes that run: so the compiler of the host sees loops without aliases that it
//! makes vector instructions of, and keeps what is beside the registers in registers of its own. Predicates are read
//! from and put together to masks. What an operation means is said by its semantics alone, whatever the choice and the
//! host.

use crate::isa::Role;
use crate::isa::semantics::{Gather, PureOperation, Scatter};
use crate::sim::decode::host::Host;
use crate::sim::semantics::Reference;
use crate::sim::warp::registers::{
    BITS, Column, DISCARD, LANES, Operand, Operands, PT, Registers, lanes,
};
use std::marker::PhantomData;

/// A pure operation with its modifiers, ready to run over lanes.
pub trait LaneLoop: Send + Sync {
    /// Runs it in every lane of `mask`, which are not none.
    fn run(&self, operands: &Operands, registers: &mut Registers, mask: u32);
    /// Runs it once, its word results going to uniform registers.
    fn run_once(&self, operands: &Operands, registers: &mut Registers, lane: usize);
}

/// What is known of an instruction when it is decoded.
pub trait Choice<O: PureOperation>: Send + Sync + 'static {
    /// Whether all lanes of a warp are computed at once, also those that do not run: worth it where that becomes vector
    /// instructions.
    const WHOLE: bool;
    /// The modifiers.
    fn modifiers(&self) -> O::Modifiers;
    /// What operations mean for it: the same as `reference`, with less to look at where more is known.
    #[inline(always)]
    fn semantics(&self, reference: Reference) -> Reference {
        reference
    }
    /// A source that is the same for all lanes and always.
    #[inline(always)]
    fn source(&self, _: Role) -> Option<u32> {
        None
    }
}

/// Any modifiers.
pub struct Any<O: PureOperation>(pub O::Modifiers);

impl<O: PureOperation + 'static> Choice<O> for Any<O> {
    const WHOLE: bool = false;

    #[inline(always)]
    fn modifiers(&self) -> O::Modifiers {
        self.0
    }
}

/// [`LaneLoop`] of an operation. `PREDICATES`: its results in predicates are written.
pub struct Pure<O, C, H, const PREDICATES: bool> {
    choice: C,
    host: H,
    semantics: Reference,
    operation: PhantomData<fn() -> O>,
}

/// The loop of an operation with this choice of modifiers.
pub fn chosen<O, C, H, const PREDICATES: bool>(
    choice: C,
    host: H,
    semantics: Reference,
) -> Box<dyn LaneLoop>
where
    O: PureOperation + 'static,
    C: Choice<O>,
    H: Host,
{
    Box::new(Pure::<O, C, H, PREDICATES> {
        choice,
        host,
        semantics,
        operation: PhantomData,
    })
}

impl<O: PureOperation + 'static, C: Choice<O>, H: Host, const PREDICATES: bool>
    Pure<O, C, H, PREDICATES>
{
    /// One lane. `UNIFORM`: word results go to uniform registers.
    #[inline(always)]
    fn lane<const UNIFORM: bool>(
        &self,
        operands: &Operands,
        registers: &mut Registers,
        lane: usize,
    ) {
        let mut view = Lane::<UNIFORM> {
            registers,
            operands,
            lane,
        };
        let sources = O::gather(&view);
        let results = O::evaluate(
            &H::semantics(&self.semantics),
            &self.choice.modifiers(),
            &sources,
        );
        O::scatter(results, &mut view);
    }

    /// All lanes; those of `mask` are written. What the operation does not give is no variable of the loop when it is
    /// compiled.
    #[inline(always)]
    fn whole(&self, operands: &Operands, registers: &mut Registers, mask: u32) {
        let modifiers = self.choice.modifiers();
        let semantics = H::semantics(&self.choice.semantics(self.semantics));
        let [mut first, mut second, mut third, mut fourth] = [[0; LANES]; WORDS];
        let (mut pu, mut pv) = (0, 0);
        let mut all: Option<[u32; PT]> = None;
        for lane in 0..LANES {
            let sources = O::gather(&Sources {
                registers: &*registers,
                operands,
                choice: &self.choice,
                lane,
                operation: PhantomData,
            });
            let mut given = LaneResult::default();
            O::scatter(O::evaluate(&semantics, &modifiers, &sources), &mut given);
            if O::WORDS > 0 {
                put(&mut first, lane, given.words[0]);
            }
            if O::WORDS > 1 {
                put(&mut second, lane, given.words[1]);
            }
            if O::WORDS > 2 {
                put(&mut third, lane, given.words[2]);
                put(&mut fourth, lane, given.words[3]);
            }
            if PREDICATES {
                pu |= if given.predicates[0] { bit(lane) } else { 0 };
                pv |= if given.predicates[1] { bit(lane) } else { 0 };
            }
            if let Some(value) = given.all {
                for (i, mask) in all.get_or_insert_default().iter_mut().enumerate() {
                    *mask |= u32::from(value >> i & 1) << lane;
                }
            }
        }
        let d = operands[Role::D as usize];
        let wanted = |word: u8| usize::from(word) < O::WORDS && word < d.words;
        if wanted(0) && d.column != DISCARD {
            registers.set_column(d.column, &first, mask);
        }
        if wanted(1) {
            registers.set_column(d.column + 1, &second, mask);
        }
        if wanted(2) {
            registers.set_column(d.column + 2, &third, mask);
        }
        if wanted(3) {
            registers.set_column(d.column + 3, &fourth, mask);
        }
        if PREDICATES {
            registers.set_predicate(operands[Role::Pu as usize], mask, pu);
            registers.set_predicate(operands[Role::Pv as usize], mask, pv);
        }
        if let Some(all) = all {
            for (old, new) in registers.predicates.iter_mut().zip(all) {
                *old = *old & !mask | new & mask;
            }
        }
    }
}

/// The bit of a lane.
#[inline(always)]
fn bit(lane: usize) -> u32 {
    BITS[lane]
}

/// Sets the value of a lane.
#[inline(always)]
fn put(column: &mut Column, lane: usize, value: u32) {
    column[lane] = value;
}

impl<O, C, H, const PREDICATES: bool> LaneLoop for Pure<O, C, H, PREDICATES>
where
    O: PureOperation + 'static,
    C: Choice<O>,
    H: Host,
{
    #[inline]
    fn run(&self, operands: &Operands, registers: &mut Registers, mask: u32) {
        self.host.run(
            #[inline(always)]
            || {
                if C::WHOLE || mask == u32::MAX {
                    self.whole(operands, registers, mask);
                } else {
                    for lane in lanes(mask) {
                        self.lane::<false>(operands, registers, lane);
                    }
                }
            },
        );
    }

    fn run_once(&self, operands: &Operands, registers: &mut Registers, lane: usize) {
        self.host.run(
            #[inline(always)]
            || self.lane::<true>(operands, registers, lane & (LANES - 1)),
        );
    }
}

/// A lane of the sources.
struct Sources<'a, O, C> {
    registers: &'a Registers,
    operands: &'a Operands,
    choice: &'a C,
    lane: usize,
    operation: PhantomData<O>,
}

impl<O: PureOperation, C: Choice<O>> Sources<'_, O, C> {
    #[inline(always)]
    fn operand(&self, role: Role) -> Operand {
        self.operands[role as usize]
    }
}

impl<O: PureOperation, C: Choice<O>> Gather for Sources<'_, O, C> {
    #[inline(always)]
    fn word(&self, role: Role) -> u32 {
        match self.choice.source(role) {
            Some(value) => value,
            None => self.registers.column(self.operand(role).column)[self.lane],
        }
    }

    #[inline(always)]
    fn pair(&self, role: Role) -> u64 {
        self.registers.pair(self.operand(role), self.lane)
    }

    #[inline(always)]
    fn quad(&self, role: Role) -> u128 {
        quad(self.registers, self.operand(role), self.lane)
    }

    #[inline(always)]
    fn predicate(&self, role: Role) -> bool {
        self.registers.holds(self.operand(role)) & BITS[self.lane] != 0
    }

    #[inline(always)]
    fn predicates(&self) -> u8 {
        predicates(self.registers, self.lane)
    }

    #[inline(always)]
    fn number(&self, role: Role) -> u32 {
        self.word(role)
    }

    #[inline(always)]
    fn signed(&self, role: Role) -> i32 {
        self.word(role) as i32
    }
}

/// Words that a result has, at most.
const WORDS: usize = 4;

/// What an operation gives for one lane.
#[derive(Default)]
struct LaneResult {
    words: [u32; WORDS],
    /// Pu and Pv.
    predicates: [bool; 2],
    /// P0 to P6 where the operation writes them all.
    all: Option<u8>,
}

impl Scatter for LaneResult {
    #[inline(always)]
    fn word(&mut self, _: Role, value: u32) {
        self.words[0] = value;
    }

    #[inline(always)]
    fn pair(&mut self, _: Role, value: u64) {
        self.words[0] = value as u32;
        self.words[1] = (value >> 32) as u32;
    }

    #[inline(always)]
    fn quad(&mut self, _: Role, value: u128) {
        self.words = words(value);
    }

    #[inline(always)]
    fn predicate(&mut self, role: Role, value: bool) {
        self.predicates[usize::from(role as usize == Role::Pv as usize)] = value;
    }

    #[inline(always)]
    fn predicates(&mut self, value: u8) {
        self.all = Some(value);
    }
}

/// P0 to P7 of a lane.
#[inline(always)]
fn predicates(registers: &Registers, lane: usize) -> u8 {
    let bits = registers.predicates.iter().enumerate();
    bits.fold(0, |set, (i, mask)| set | ((mask >> lane & 1) as u8) << i)
}

/// 128 bits of a lane.
#[inline(always)]
fn quad(registers: &Registers, operand: Operand, lane: usize) -> u128 {
    let words = registers.words(operand, lane);
    (words.iter().rev()).fold(0, |value, word| value << 32 | u128::from(*word))
}

/// The words of a value.
#[inline(always)]
fn words(value: u128) -> [u32; WORDS] {
    [0, 32, 64, 96].map(|shift| (value >> shift) as u32)
}

/// One lane of the registers, seen through the operands of an instruction. `UNIFORM`: word results go to uniform
/// registers.
struct Lane<'a, const UNIFORM: bool> {
    registers: &'a mut Registers,
    operands: &'a Operands,
    lane: usize,
}

impl<const UNIFORM: bool> Lane<'_, UNIFORM> {
    #[inline(always)]
    fn operand(&self, role: Role) -> Operand {
        self.operands[role as usize]
    }
}

impl<const UNIFORM: bool> Gather for Lane<'_, UNIFORM> {
    #[inline(always)]
    fn word(&self, role: Role) -> u32 {
        self.registers.column(self.operand(role).column)[self.lane]
    }

    #[inline(always)]
    fn pair(&self, role: Role) -> u64 {
        self.registers.pair(self.operand(role), self.lane)
    }

    #[inline(always)]
    fn quad(&self, role: Role) -> u128 {
        quad(self.registers, self.operand(role), self.lane)
    }

    #[inline(always)]
    fn predicate(&self, role: Role) -> bool {
        self.registers.holds(self.operand(role)) >> self.lane & 1 != 0
    }

    #[inline(always)]
    fn predicates(&self) -> u8 {
        predicates(self.registers, self.lane)
    }

    #[inline(always)]
    fn number(&self, role: Role) -> u32 {
        self.word(role)
    }

    #[inline(always)]
    fn signed(&self, role: Role) -> i32 {
        self.word(role) as i32
    }
}

impl<const UNIFORM: bool> Scatter for Lane<'_, UNIFORM> {
    #[inline(always)]
    fn word(&mut self, role: Role, value: u32) {
        let operand = self.operand(role);
        if UNIFORM {
            self.registers.set_uniform(operand.column as usize, value);
        } else if operand.words != 0 {
            self.registers.column_mut(operand.column)[self.lane] = value;
        }
    }

    #[inline(always)]
    fn pair(&mut self, role: Role, value: u64) {
        self.quad(role, u128::from(value));
    }

    #[inline(always)]
    fn quad(&mut self, role: Role, value: u128) {
        let operand = self.operand(role);
        let words = words(value);
        if UNIFORM {
            for (i, word) in words.into_iter().enumerate().take(operand.words as usize) {
                self.registers
                    .set_uniform(operand.column as usize + i, word);
            }
        } else {
            self.registers.set_words(operand, self.lane, words);
        }
    }

    #[inline(always)]
    fn predicate(&mut self, role: Role, value: bool) {
        let operand = self.operand(role);
        self.registers
            .set_predicate(operand, 1 << self.lane, u32::from(value) << self.lane);
    }

    #[inline(always)]
    fn predicates(&mut self, value: u8) {
        let bit = 1 << self.lane;
        for (i, mask) in self.registers.predicates.iter_mut().enumerate().take(PT) {
            *mask = (*mask & !bit) | if value >> i & 1 != 0 { bit } else { 0 };
        }
    }
}
