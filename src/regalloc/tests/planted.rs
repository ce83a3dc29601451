//! Mistakes are planted into allocated code: in what the writer does, the spiller and the frame. The check must find
//! each that a run can show. Every third is tried, with `THISGPU_HEAVY=1` all.

use super::generate::{self, Shape};
use super::{interpret, plain};
use crate::abi;
use crate::isa::generated::Role;
use crate::isa::table::Direction;
use crate::isa::{Form, PInst, PReg, Register, RegisterClass, VReg};
use crate::regalloc::frame::SLOTS;
use crate::regalloc::{Algorithm, AllocationBuffers, Options, assign, check, finish};
use crate::vcode::{Attachment, VCode};
use std::collections::{BTreeMap, BTreeSet};

/// A right allocation.
struct Case {
    before: VCode<VReg>,
    code: VCode<PReg>,
    origin: Vec<u32>,
    limit: u8,
    /// Offset of the saved registers from R1.
    saved: u64,
    /// What runs of the code before show.
    shown: Vec<Vec<u64>>,
}

/// Inputs that wrong code is run with, and how many blocks at most.
const INPUTS: u64 = 4;
const BLOCKS: usize = 100;

/// What came of the mistakes of one kind.
#[derive(Default)]
struct Tally {
    planted: u32,
    found: u32,
    /// Not found, and no run shows anything.
    harmless: u32,
}

impl Case {
    fn new(seed: u64, shape: &Shape, limit: u8, scratch: &mut AllocationBuffers) -> Case {
        let options = Options {
            gpr_limit: limit,
            algorithm: Algorithm::SinglePass,
            verify: true,
        };
        let before = generate::function(seed, shape);
        let constrained =
            assign(before.clone(), options.verify, &options, scratch).expect("an allocation");
        let spilled = &constrained.code.frame;
        let saved = spilled.spill_offset() + spilled.spill_bytes.next_multiple_of(16);
        let (code, _, origin) = finish(constrained, &scratch.allocation);
        let shown = (0..INPUTS).map(|input| interpret::run(&before, input, BLOCKS));
        let case = Case {
            shown: shown.collect(),
            before,
            code,
            origin: origin.expect("recorded"),
            limit,
            saved: u64::from(saved),
        };
        let verdict = case.check(&case.code, &case.origin);
        assert!(
            verdict.is_ok(),
            "{verdict:?}\n{}\n{}",
            case.before,
            case.code
        );
        case
    }

    fn check(&self, code: &VCode<PReg>, origin: &[u32]) -> Result<(), String> {
        check::check(&self.before, code, origin, self.limit)
    }

    fn is_added(&self, index: usize) -> bool {
        self.origin[index] == check::ADDED
    }

    /// Every single mistake, with its kind.
    fn mistakes(&self, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        for index in 0..self.code.insts.len() {
            self.in_operands(index, plant);
            if !self.is_added(index) {
                self.in_offset(index, plant);
                continue;
            }
            let inst = &self.code.insts[index].inst;
            let stack = inst.definitions().any(|r| r == abi::STACK_POINTER);
            let kind = match (inst.form(), self.is_saved(index)) {
                _ if stack => "frame: missing adjustment of R1",
                (Form::P2R_RI, _) => "packs: not written",
                (Form::R2P_RI, _) => "packs: not brought back",
                (Form::STL_RR, true) => "frame: missing save",
                (Form::LDL_R, true) => "frame: missing restore",
                (Form::STL_RR, false) => "spiller: dropped store",
                (Form::LDL_R, false) => "spiller: dropped reload",
                _ if inst.uses().next().is_none() => "spiller: value not made again",
                _ => "writer: dropped copy",
            };
            self.without(index, kind, plant);
            if stack {
                self.with_number(index, Role::B, 16, "frame: wrong adjustment of R1", plant);
            } else {
                self.in_place(index, plant);
                self.in_bits(index, plant);
                self.reordered(index, plant);
            }
        }
        self.shared_slots(plant);
    }

    /// Whether an access is of the area of saved registers.
    fn is_saved(&self, index: usize) -> bool {
        let inst = &self.code.insts[index].inst;
        let access = matches!(inst.form(), Form::STL_RR | Form::LDL_R);
        access && self.is_added(index) && inst.number(Role::Addr) >= Some(self.saved)
    }

    /// Another register of the same file, below every limit; runs stay aligned.
    fn other(r: PReg) -> PReg {
        let number = match (r.class(), r.number()) {
            (RegisterClass::Predicate, n) => (n + 1) % RegisterClass::Predicate.hardwired(),
            (_, n @ ..20) => n + 4,
            (_, n) => n - 4,
        };
        PReg::new(r.class(), number)
    }

    /// Each operand in another register.
    fn in_operands(
        &self,
        index: usize,
        plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>),
    ) {
        let inst = &self.code.insts[index].inst;
        for operand in inst.operands().filter(|o| o.regs[0].is_some()) {
            let kind = match (self.is_added(index), self.is_saved(index)) {
                (_, true) => "frame: wrong register saved or restored",
                (true, _) => "writer: wrong register of a copy",
                _ if operand.info.direction == Direction::In => "writer: wrong source",
                _ => "writer: wrong result",
            };
            let mut moved = self.code.clone();
            let other: Vec<_> = operand.regs.iter().map(|r| r.map(Self::other)).collect();
            moved.insts[index].inst.set_regs(operand.info, &other);
            plant(kind, moved, self.origin.clone());
            if operand.regs.len() == 2 {
                let mut swapped = self.code.clone();
                let other = [operand.regs[1], operand.regs[0]];
                swapped.insts[index].inst.set_regs(operand.info, &other);
                plant("writer: swapped pair", swapped, self.origin.clone());
            }
        }
    }

    /// A wrong offset where lowering left a symbol of the frame.
    fn in_offset(&self, index: usize, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        let old = &self.before.insts[self.origin[index] as usize];
        let symbol = old.attachment.map(|a| &self.before.attachments[a]);
        if matches!(symbol, Some(Attachment::Symbol(s)) if s.name == SLOTS) {
            self.with_number(index, Role::Addr, 4, "frame: wrong offset of a slot", plant);
        }
    }

    fn with_number(
        &self,
        index: usize,
        role: Role,
        more: u64,
        kind: &'static str,
        plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>),
    ) {
        let mut code = self.code.clone();
        let inst = &mut code.insts[index].inst;
        if let Some(number) = inst.number(role) {
            inst.set_number(role, number.wrapping_add(more));
            plant(kind, code, self.origin.clone());
        }
    }

    /// Another word of memory, another constant.
    fn in_place(&self, index: usize, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        let inst = &self.code.insts[index].inst;
        match inst.form() {
            Form::STL_RR | Form::LDL_R => {
                let kind = if self.is_saved(index) {
                    "frame: wrong offset of a saved register"
                } else {
                    "spiller: wrong slot"
                };
                let data = if inst.form() == Form::LDL_R {
                    Role::D
                } else {
                    Role::B
                };
                let words = inst.operand(data).map_or(1, |o| inst.register_count(o)) as u64;
                for more in [4 * words, (4 * words).wrapping_neg()] {
                    self.with_number(index, Role::Addr, more, kind, plant);
                }
            }
            _ if inst.uses().next().is_none() => {
                self.with_number(index, Role::B, 4, "spiller: wrong constant", plant);
            }
            _ => {}
        }
    }

    /// Packed predicates: a bit that is another's, one that is not written, a P2R too early, an R2P too late.
    fn in_bits(&self, index: usize, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        let form = self.code.insts[index].inst.form();
        if !matches!(form, Form::P2R_RI | Form::R2P_RI | Form::LOP3_RIR) {
            return;
        }
        let mask = self.code.insts[index].inst.number(Role::B).unwrap_or(0);
        for bit in (0..8).map(|n| 1 << n).filter(|bit| mask & bit != 0) {
            let (kind, other) = match form {
                Form::LOP3_RIR => ("packs: wrong bit tested", 2 * bit),
                Form::P2R_RI => ("packs: wrong bit written", mask ^ bit),
                _ => ("packs: wrong bit brought back", mask ^ bit),
            };
            let mut code = self.code.clone();
            code.insts[index].inst.set_number(Role::B, other);
            plant(kind, code, self.origin.clone());
        }
        let blocks = self.code.blocks.values().map(|b| b.insts.clone());
        let mut blocks = blocks.map(|b| b.start as usize..b.end as usize);
        let block = blocks.find(|b| b.contains(&index)).expect("it is in one");
        let packed = |r: PReg| r.class() == RegisterClass::Predicate && mask >> r.number() & 1 != 0;
        let inst = |i: usize| &self.code.insts[i].inst;
        let (mut code, mut origin) = (self.code.clone(), self.origin.clone());
        if form == Form::P2R_RI {
            let mut earlier = (block.start..index).rev();
            if let Some(writer) = earlier.find(|i| inst(*i).definitions().any(packed)) {
                code.insts[writer..=index].rotate_right(1);
                origin[writer..=index].rotate_right(1);
                plant("packs: written too early", code, origin);
            }
        } else if form == Form::R2P_RI {
            let mut later = index + 1..block.end;
            if let Some(reader) = later.find(|i| inst(*i).uses().any(packed)) {
                code.insts[index..=reader].rotate_left(1);
                origin[index..=reader].rotate_left(1);
                plant("packs: brought back too late", code, origin);
            }
        }
    }

    /// Without one instruction.
    fn without(
        &self,
        index: usize,
        kind: &'static str,
        plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>),
    ) {
        let (mut code, mut origin) = (self.code.clone(), self.origin.clone());
        code.insts.remove(index);
        origin.remove(index);
        for data in code.blocks.values_mut() {
            data.insts.start -= u32::from(data.insts.start as usize > index);
            data.insts.end -= u32::from(data.insts.end as usize > index);
        }
        plant(kind, code, origin);
    }

    /// Two neighbours that were added change their places, or their sources.
    fn reordered(&self, index: usize, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        let one_block =
            self.code.blocks.values().any(|b| {
                b.insts.contains(&(index as u32)) && b.insts.contains(&(index as u32 + 1))
            });
        if !one_block || !self.is_added(index + 1) {
            return;
        }
        let [a, b] = [index, index + 1].map(|i| self.code.insts[i].inst);
        let meet = |x: &PInst, y: &PInst| {
            x.definitions()
                .any(|r| y.uses().chain(y.definitions()).any(|u| u == r))
        };
        if meet(&a, &b) || meet(&b, &a) {
            let mut code = self.code.clone();
            code.insts.swap(index, index + 1);
            plant("writer: reordered copies", code, self.origin.clone());
        }
        if a.form() == b.form() && a.word() == b.word() {
            let mut code = self.code.clone();
            for (at, other) in [(index, b), (index + 1, a)] {
                for o in other
                    .operands()
                    .filter(|o| o.info.direction == Direction::In)
                {
                    code.insts[at].inst.set_regs(o.info, o.regs);
                }
            }
            plant("writer: exchanged sources", code, self.origin.clone());
        }
    }

    /// Two slots become one.
    fn shared_slots(&self, plant: &mut impl FnMut(&'static str, VCode<PReg>, Vec<u32>)) {
        let slot = |index: &usize| {
            let inst = &self.code.insts[*index].inst;
            let access = matches!(inst.form(), Form::STL_RR | Form::LDL_R);
            let own = access && self.is_added(*index) && !self.is_saved(*index);
            own.then(|| inst.number(Role::Addr)).flatten()
        };
        let slots: BTreeSet<u64> = (0..self.code.insts.len())
            .filter_map(|i| slot(&i))
            .collect();
        for (first, second) in slots.iter().zip(slots.iter().skip(1)) {
            let mut code = self.code.clone();
            for index in (0..code.insts.len()).filter(|i| slot(i) == Some(*second)) {
                code.insts[index].inst.set_number(Role::Addr, *first);
            }
            plant("spiller: overlapping slots", code, self.origin.clone());
        }
    }

    /// Whether a run of wrong code shows that it is wrong.
    fn shows(&self, code: &VCode<PReg>) -> bool {
        let mut inputs = (0..).zip(&self.shown);
        inputs.any(|(input, shown)| interpret::run(code, input, BLOCKS) != *shown)
    }
}

#[test]
fn planted_mistakes_are_found() {
    let device = |size, window| Shape {
        device: true,
        control: 25,
        wide: 15,
        guarded: 15,
        predicate_window: 8,
        ..plain(size, window)
    };
    let shapes = [
        (device(60, 10), 64),
        (device(120, 50), 24),
        (
            Shape {
                calls: 6,
                ..device(80, 30)
            },
            24,
        ),
        (
            Shape {
                calls: 8,
                control: 0,
                wide: 0,
                predicate_window: 5,
                ..device(40, 10)
            },
            64,
        ),
        (
            Shape {
                device: false,
                uniform_window: 40,
                ..device(150, 50)
            },
            24,
        ),
    ];
    let all = std::env::var_os("THISGPU_HEAVY").is_some_and(|v| v == "1");
    let mut number = 0;
    let mut scratch = AllocationBuffers::default();
    let mut tallies: BTreeMap<&'static str, Tally> = BTreeMap::new();
    let mut missed = Vec::new();
    for (shape, limit) in &shapes {
        for seed in 1..3 {
            let case = Case::new(seed, shape, *limit, &mut scratch);
            case.mistakes(&mut |kind, code, origin| {
                number += 1;
                // There are few packs.
                if number % 3 != 0 && !all && !kind.starts_with("packs") {
                    return;
                }
                let tally = tallies.entry(kind).or_default();
                tally.planted += 1;
                if case.check(&code, &origin).is_err() {
                    tally.found += 1;
                } else if case.shows(&code) {
                    missed.push(format!(
                        "{kind}, seed {seed}, {shape:?}:\n{}\n{code}",
                        case.code
                    ));
                } else {
                    tally.harmless += 1;
                }
            });
        }
    }
    for (
        kind,
        Tally {
            planted,
            found,
            harmless,
        },
    ) in &tallies
    {
        println!("{kind}: {planted} planted, {found} found, {harmless} harmless");
    }
    assert!(
        missed.is_empty(),
        "{} missed, the first: {}",
        missed.len(),
        missed[0]
    );
    assert_eq!(tallies.len(), 27, "kinds of mistakes");
    for (kind, tally) in &tallies {
        assert!(
            tally.found > 0 && 4 * tally.harmless < tally.planted,
            "{kind}"
        );
    }
}
