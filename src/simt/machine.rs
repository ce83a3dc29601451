//! A machine of a few lanes that decide at random, for tests: what is said of BSSY, BSYNC and BMOV, and nothing else.

use crate::emit::testing::block;
use crate::isa::{Form, Optype, Role, VReg};
use crate::testing::Random;
use crate::vcode::{Attachment, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashMap;
use std::collections::BTreeMap;

const LANES: usize = 4;

/// A block, and an instruction of it.
type ProgramCounter = (usize, usize);

struct Machine<'a> {
    code: &'a VCode<VReg>,
    /// Lanes that run together, and where.
    groups: Vec<(Vec<usize>, ProgramCounter)>,
    /// Where each waiting lane waits, and for which barrier.
    waiting: BTreeMap<usize, (ProgramCounter, usize)>,
    live: Vec<usize>,
    barriers: Vec<[Vec<usize>; 16]>,
    registers: HashMap<(usize, VReg), Vec<usize>>,
    /// Of the frame, by offset.
    slots: HashMap<(usize, i64), Vec<usize>>,
}

impl Machine<'_> {
    /// Runs to the end, a deadlock or a limit; false for a deadlock.
    fn run(
        &mut self,
        random: &mut Random,
        visit: &mut impl FnMut(usize, &[usize], &[usize]),
    ) -> bool {
        for _ in 0..1000 {
            self.release();
            if self.groups.is_empty() {
                return self.waiting.is_empty();
            }
            let index = random.below(self.groups.len() as u64) as usize;
            let (lanes, place) = self.groups.swap_remove(index);
            self.step(random, lanes, place, visit);
        }
        true
    }

    fn release(&mut self) {
        loop {
            let free: Vec<usize> = self
                .waiting
                .iter()
                .filter(|(lane, (place, number))| {
                    self.barriers[**lane][*number].iter().all(|l| {
                        !self.live.contains(l) || self.waiting.get(l) == Some(&(*place, *number))
                    })
                })
                .map(|(lane, _)| *lane)
                .collect();
            let Some(&first) = free.first() else { return };
            let (place, number) = self.waiting[&first];
            let lanes: Vec<usize> = free
                .into_iter()
                .filter(|l| self.waiting[l] == (place, number))
                .collect();
            self.waiting.retain(|l, _| !lanes.contains(l));
            self.groups.push((lanes, (place.0, place.1 + 1)));
        }
    }

    fn step(
        &mut self,
        random: &mut Random,
        lanes: Vec<usize>,
        (at, index): ProgramCounter,
        visit: &mut impl FnMut(usize, &[usize], &[usize]),
    ) {
        let body = self.code.block_insts(block(at));
        let Some(entry) = body.get(index) else {
            return self.leave(random, lanes, at);
        };
        let inst = &entry.inst;
        let value = |role| inst.number(role).unwrap() as usize;
        match inst.optype() {
            Optype::MOV => visit(value(Role::B), &lanes, &self.live),
            Optype::BSSY => {
                lanes
                    .iter()
                    .for_each(|&l| self.barriers[l][value(Role::Bn)] = lanes.clone());
                let Some(Attachment::Label(label)) =
                    entry.attachment.map(|a| &self.code.attachments[a])
                else {
                    panic!("no label")
                };
                let reload = |o: &Optype| matches!(o, Optype::LDL | Optype::BMOV);
                let mut there = self.code.block_insts(*label).iter();
                let meeting = (there.by_ref().map(|e| e.inst.optype())).find(|o| !reload(o));
                assert_eq!(meeting, Some(Optype::BSYNC));
            }
            Optype::BSYNC => {
                self.waiting.extend(
                    lanes
                        .into_iter()
                        .map(|l| (l, ((at, index), value(Role::Bn)))),
                );
                return;
            }
            Optype::BMOV => {
                for &lane in &lanes {
                    if inst.form() == Form::BMOV_X {
                        self.registers.insert(
                            (lane, inst.reg(Role::D).unwrap()),
                            self.barriers[lane][value(Role::Bs)].clone(),
                        );
                    } else {
                        self.barriers[lane][value(Role::Bn)] =
                            self.registers[&(lane, inst.reg(Role::A).unwrap())].clone();
                    }
                }
            }
            Optype::STL | Optype::LDL => {
                let Some(Attachment::Symbol(slot)) =
                    entry.attachment.map(|a| &self.code.attachments[a])
                else {
                    panic!("no slot")
                };
                for &lane in &lanes {
                    if inst.optype() == Optype::STL {
                        let mask = self.registers[&(lane, inst.reg(Role::B).unwrap())].clone();
                        self.slots.insert((lane, slot.addend), mask);
                    } else {
                        let mask = self.slots[&(lane, slot.addend)].clone();
                        self.registers
                            .insert((lane, inst.reg(Role::D).unwrap()), mask);
                    }
                }
            }
            Optype::CALL => {
                // The callee uses all barriers and restores them; lanes come back as they like.
                let (some, others): (Vec<usize>, Vec<usize>) =
                    lanes.into_iter().partition(|_| random.flip());
                self.groups.extend(
                    [some, others]
                        .into_iter()
                        .filter(|g| !g.is_empty())
                        .map(|g| (g, (at, index + 1))),
                );
                return;
            }
            other => panic!("{other:?}"),
        }
        self.groups.push((lanes, (at, index + 1)));
    }

    fn leave(&mut self, random: &mut Random, lanes: Vec<usize>, at: usize) {
        let terminator = &self.code.blocks[block(at)].terminator;
        let successors = terminator.successors();
        if successors.is_empty() {
            self.live.retain(|l| !lanes.contains(l));
            return;
        }
        let divergent = matches!(
            terminator,
            Terminator::Branch {
                divergent: true,
                ..
            }
        );
        let together = random.below(successors.len() as u64) as usize;
        let mut ways: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for lane in lanes {
            let way = if divergent {
                random.below(successors.len() as u64) as usize
            } else {
                together
            };
            ways.entry(way).or_default().push(lane);
        }
        // A branch to a block that only ends lanes becomes a guarded EXIT or TRAP: those lanes are gone at once.
        let ends = |way: usize| {
            let mut target = successors[way];
            for _ in 0..self.code.blocks.len() {
                match self.code.blocks[target].terminator {
                    Terminator::Jump { target: next, .. }
                        if self.code.block_insts(target).is_empty() =>
                    {
                        target = next
                    }
                    _ => break,
                }
            }
            self.code.block_insts(target).is_empty()
                && self.code.blocks[target].terminator.successors().is_empty()
        };
        let gone: Vec<usize> = ways
            .iter()
            .filter(|(way, _)| ends(**way))
            .flat_map(|(_, lanes)| lanes.clone())
            .collect();
        self.live.retain(|l| !gone.contains(l));
        ways.values_mut()
            .for_each(|lanes| lanes.retain(|l| !gone.contains(l)));
        ways.retain(|_, lanes| !lanes.is_empty());
        self.groups.extend(
            ways.into_iter()
                .map(|(way, lanes)| (lanes, (successors[way].index(), 0))),
        );
    }
}

/// Runs a function once; false for a deadlock. `visit` is called with every mark, the lanes there, and the live ones.
pub(super) fn run(
    code: &VCode<VReg>,
    random: &mut Random,
    visit: &mut impl FnMut(usize, &[usize], &[usize]),
) -> bool {
    let mut machine = Machine {
        code,
        groups: vec![((0..LANES).collect(), (0, 0))],
        waiting: BTreeMap::new(),
        live: (0..LANES).collect(),
        barriers: vec![Default::default(); LANES],
        registers: HashMap::new(),
        slots: HashMap::new(),
    };
    machine.run(random, visit)
}
