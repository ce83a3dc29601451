//! What holds the values of the source: registers that were made for them, or constants.
//!
//! Looked at when everything is selected, so nothing is made for their sake. What was folded into its readers has no
//! holder, but where it is only put together from other values, or a constant is added to one. The same goes for what
//! is not computed any more since loops were rewritten.

use super::Lower;
use super::home::Run;
use super::source::{Base, Src};
use crate::abi;
use crate::constants::integer;
use crate::isa::VReg;
use crate::values::tracking::Name;
use crate::values::{Held, Holder, Place, Word};
use crate::vcode::Offer;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Values that are looked through, at most.
const DEPTH: u32 = 8;

type Words = SmallVec<[Word; 2]>;

impl Lower<'_> {
    /// All holders of values with names; none if nobody wants to know.
    pub(super) fn holders(&mut self) -> Vec<Holder> {
        let mut holders = Vec::new();
        let Some(tracking) = self.input.tracking else {
            return holders;
        };
        let dfg = &self.input.func.dfg;
        tracking.each_named(|value, names| {
            if dfg.value_is_valid(value) && dfg.value_is_real(value) {
                self.hold(value, names, &mut holders);
            }
        });
        holders
    }

    /// What holds one value.
    fn hold(&self, value: Value, names: &[Name], holders: &mut Vec<Holder>) {
        let mut add = |held: &Held| {
            for name in names {
                holders.push(Holder {
                    name: *name,
                    held: held.clone(),
                });
            }
        };
        if !self.is_real(value) {
            return;
        }
        let src = self.src(value);
        if let Some(words) = self.words_of_source(value, &src, DEPTH) {
            add(&Held::Words(words, 0));
        } else if let Some((words, addend)) = self.sum_held(value) {
            add(&Held::Words(words, addend));
        }
        if let Base::Value { value: whole, .. } = src.base {
            let home = self.homes[whole];
            if let Some(run) = home.uniform {
                add(&Held::Words(self.words_of_run(run), 0));
            }
            if let Some(register) = home.predicate {
                let opposite = self.holds_opposite(whole);
                add(&Held::Predicate(self.builder.resolve(register), opposite));
            }
        }
    }

    fn words_of_run(&self, run: Run) -> Words {
        let mut words = Words::new();
        for register in run.regs().as_slice() {
            words.push(Word::Register(self.builder.resolve(*register)));
        }
        words
    }

    /// The words of a value: constants, registers that were made for it, or for its parts where it is only put
    /// together.
    fn words_held(&self, value: Value, depth: u32) -> Option<Words> {
        self.is_real(value)
            .then(|| self.words_of_source(value, &self.src(value), depth))?
    }

    /// The words of a value that comes from `src`.
    fn words_of_source(&self, value: Value, src: &Src, depth: u32) -> Option<Words> {
        let words = self.words_of(value);
        match src.base {
            Base::Imm(bits) => {
                let mut found = Words::new();
                for word in 0..words {
                    found.push(Word::Always(Place::Constant((bits >> (32 * word)) as u32)));
                }
                return Some(found);
            }
            Base::Constant { bank, offset } if bank == abi::LAUNCH_BANK => {
                let word = |word: u32| Word::Always(Place::Launch(offset + 4 * word));
                return Some((0..words as u32).map(word).collect());
            }
            Base::Value { value: whole, .. } => {
                if let Some(run) = self.homes[whole].regs {
                    return Some(self.words_of_run(run)).filter(|run| run.len() == words);
                }
            }
            _ => return None,
        }
        let depth = depth.checked_sub(1)?;
        let held = |value: Value| self.words_held(value, depth);
        let inst = self.func.dfg.value_def(value).inst()?;
        let bits = |value: Value| self.type_of(value).bits();
        let is_whole = |value: Value| bits(value).is_multiple_of(32);
        let lane_words = |vector: Value| self.type_of(vector).lane_bits() as usize / 32;
        let args = self.func.dfg.inst_args(inst);
        let held = match (self.func.dfg.insts[inst].opcode(), args) {
            (Opcode::Iconcat, &[low, high]) if is_whole(low) => {
                let mut words = held(low)?;
                words.extend(held(high)?);
                words
            }
            (Opcode::Isplit, &[whole]) if is_whole(value) => {
                let is_high = self.func.dfg.inst_results(inst)[0] != value;
                held(whole)?
                    .into_iter()
                    .skip(if is_high { words } else { 0 })
                    .take(words)
                    .collect()
            }
            // The other lanes are zeros.
            (Opcode::Uextend | Opcode::ScalarToVector, &[low]) if is_whole(low) => {
                let mut found = held(low)?;
                found.resize(words, Word::Always(Place::Constant(0)));
                found
            }
            (Opcode::Ireduce, &[whole]) => held(whole)?.into_iter().take(words).collect(),
            (Opcode::Bitcast, &[same]) => held(same)?,
            (Opcode::Splat, &[lane]) if is_whole(lane) => {
                let lane = held(lane)?;
                lane.iter().copied().cycle().take(words).collect()
            }
            (Opcode::Extractlane, &[vector]) if lane_words(vector) > 0 => {
                let first = self.lane_of(inst)? * lane_words(vector);
                held(vector)?.into_iter().skip(first).take(words).collect()
            }
            (Opcode::Insertlane, &[vector, lane]) if lane_words(vector) > 0 => {
                let first = self.lane_of(inst)? * lane_words(vector);
                let mut found = held(vector)?;
                for (word, lane) in held(lane)?.into_iter().enumerate() {
                    *found.get_mut(first + word)? = lane;
                }
                found
            }
            _ => return None,
        };
        Some(held).filter(|held| held.len() == words)
    }

    /// The words of a value to which constants are added; a sum that its readers add themselves.
    fn sum_held(&self, value: Value) -> Option<(Words, i64)> {
        let ty = self.type_of(value);
        let (mut base, mut addend) = (value, 0i64);
        for _ in 0..DEPTH {
            let inst = self
                .func
                .dfg
                .value_def(base)
                .inst()
                .filter(|_| ty.is_int())?;
            let (Opcode::Iadd, &[a, b]) = (
                self.func.dfg.insts[inst].opcode(),
                self.func.dfg.inst_args(inst),
            ) else {
                return None;
            };
            let constant = self.is_real(b).then(|| integer(self.func, b))?;
            addend = addend.wrapping_add(constant?);
            base = Some(a).filter(|a| self.is_real(*a))?;
            if let Some(words) = self.words_held(base, DEPTH) {
                return Some((words, addend));
            }
        }
        None
    }

    fn is_real(&self, value: Value) -> bool {
        self.func.dfg.value_is_real(value)
    }

    /// The lane that an instruction names.
    fn lane_of(&self, inst: Inst) -> Option<usize> {
        match self.func.dfg.insts[inst] {
            InstructionData::BinaryImm8 { imm, .. } | InstructionData::TernaryImm8 { imm, .. } => {
                Some(imm.into())
            }
            _ => None,
        }
    }
}

/// The holders, and what the uniform datapath may compute in their place.
pub(super) fn with_offers(mut holders: Vec<Holder>, offers: &[Offer]) -> Vec<Holder> {
    if holders.is_empty() || offers.is_empty() {
        return holders;
    }
    let of = |offer: &'_ Offer| {
        offer
            .index
            .is_none()
            .then(|| offer.general.first().copied())?
    };
    let by_first: HashMap<VReg, &Offer> = (offers.iter())
        .filter_map(|offer| Some((of(offer)?, offer)))
        .collect();
    let mut more = Vec::new();
    for holder in &holders {
        let first = holder.held.registers().next();
        let Some(offer) = first.and_then(|first| by_first.get(&first)) else {
            continue;
        };
        let registers: SmallVec<[VReg; 4]> = holder.held.registers().collect();
        if offer.general[..] == registers[..] {
            let mut held = holder.held.clone();
            held.rename(|register| {
                let word = registers.iter().position(|r| *r == register);
                word.map_or(register, |word| offer.uniform[word])
            });
            more.push(Holder {
                name: holder.name,
                held,
            });
        }
    }
    holders.extend(more);
    holders
}
