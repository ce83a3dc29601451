//! Control bits of random code hold on every path, and the verifier finds what is taken away.

use super::control::{Waiting, schedule};
use crate::emit::testing::{self, jump, kernel, random_terminator};
use crate::emit::{self, Code, Constants};
use crate::hazards::redundancy::{RedundancyKind, redundancies};
use crate::hazards::verify::{HazardKind, verify};
use crate::isa::encode::{all_forms, decode};
use crate::isa::table::{Direction, Effects, FieldType};
use crate::isa::{Control, Form, Optype, PInst, PReg, Register, RegisterClass, Role, Scoreboard};
use crate::testing::Random;
use crate::vcode::{Callee, FunctionKind, Terminator, VCode};
use hashbrown::HashMap;

/// Forms that random code is made of.
fn forms() -> Vec<Form> {
    let control = Effects::BRANCH
        .union(Effects::CALL)
        .union(Effects::RETURN)
        .union(Effects::EXIT)
        .union(Effects::TRAP);
    all_forms()
        .filter(|f| !f.info().optype.info().effects.intersects(control))
        .collect()
}

/// A random instruction on few registers; none where random fields give no legal word.
fn random_inst(random: &mut Random, forms: &[Form]) -> Option<PInst> {
    let mut inst = PInst::new(random.pick(forms));
    let info = inst.info();
    for operand in info.operands.iter().filter(|o| o.role != Role::Pg) {
        let Some(class) = operand.class else { continue };
        let count = inst.register_count(operand) as u8;
        let limit = if class == RegisterClass::Predicate {
            3
        } else {
            12
        };
        let first = random.below(u64::from(limit / count)) as u8 * count;
        let regs: Vec<Option<PReg>> = (first..first + count)
            .map(|n| Some(PReg::new(class, n)))
            .collect();
        if random.below(6) != 0 {
            inst.set_regs(operand, &regs);
        }
    }
    if random.below(4) == 0 {
        inst.set_guard(Some(PReg::predicate(random.below(3) as u8)), random.flip());
    }
    inst.encode(Control::default()).ok().map(|_| inst)
}

fn random_code(random: &mut Random, forms: &[Form], constants: &mut Constants) -> VCode<PReg> {
    let len = 1 + random.below(6) as usize;
    let blocks = (0..len)
        .map(|_| {
            let count = random.below(12);
            let insts = (0..count)
                .filter_map(|_| random_inst(random, forms))
                .collect();
            let terminator = random_terminator(random, len, |entries| {
                (PReg::gpr(1), constants.reserve_jump_table(entries).unwrap())
            });
            let tail = Terminator::TailCall {
                callee: Callee::Symbol("other".to_string()),
                values: vec![],
            };
            (
                insts,
                if random.below(10) == 0 {
                    tail
                } else {
                    terminator
                },
            )
        })
        .collect();
    let mut code = kernel(blocks);
    code.kind = FunctionKind::Device;
    code
}

fn compiled(code: &VCode<PReg>, waiting: Waiting, constants: &mut Constants) -> Code {
    testing::words(code, waiting, constants).unwrap()
}

#[derive(Clone, Copy)]
struct Pending {
    arrives: u64,
    variable: bool,
    boards: [Option<u8>; 2],
}

/// A register, or a convergence barrier.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Cell {
    Register(PReg),
    Barrier(u64),
}

/// An in-order machine of one lane that looks at each register.
#[derive(Default)]
pub(super) struct InOrder {
    now: u64,
    writes: HashMap<Cell, Pending>,
    reads: Vec<(Cell, Pending)>,
}

impl InOrder {
    /// Issues an instruction; whether it came too early for anything before it. Where its guard is false it only waits
    /// and reads the guard.
    pub(super) fn issue(&mut self, inst: &PInst, control: Control, guard: bool) -> bool {
        let now = self.now;
        let latency = inst.optype().info().latency;
        let waited = |p: &Pending| {
            p.boards
                .iter()
                .flatten()
                .any(|b| control.wait() >> b & 1 != 0)
        };
        self.writes.retain(|_, w| {
            if w.variable {
                w.boards[0].is_none_or(|b| control.wait() >> b & 1 == 0)
            } else {
                w.arrives > now
            }
        });
        self.reads.retain(|(_, r)| !waited(r));
        self.now += u64::from(control.stall().max(1));
        let register = |r: &PReg| Cell::Register(*r);
        if !guard {
            let (reg, _) = inst.guard();
            return reg.is_some_and(|r| self.writes.contains_key(&register(&r)));
        }
        // Operands without registers: the set of all predicates, and convergence barriers.
        let (mut used, mut defined) = (Vec::new(), Vec::new());
        used.extend(inst.uses().map(|r| register(&r)));
        for operand in inst.info().operands.iter().filter(|o| o.class.is_none()) {
            let field = inst.info().fields.get(usize::from(operand.field));
            let (cells, cycles): (Vec<Cell>, _) = match field {
                None => {
                    let all = (0..7).map(|n| Cell::Register(PReg::predicate(n)));
                    (all.collect(), latency.predicate)
                }
                Some(field) if matches!(field.ty, FieldType::Convergence) => {
                    (vec![Cell::Barrier(field.get(inst.word()))], latency.result)
                }
                Some(_) => continue,
            };
            match operand.direction {
                Direction::Out => defined.extend(cells.into_iter().map(|c| (c, u64::from(cycles)))),
                _ => used.extend(cells),
            }
        }
        for operand in inst
            .operands()
            .filter(|o| o.info.direction == Direction::Out)
        {
            for reg in operand.regs.iter().flatten() {
                let cycles = match reg.class() {
                    RegisterClass::Predicate => latency.predicate,
                    _ if operand.regs.len() > 1 => latency.wide,
                    _ => latency.result,
                };
                defined.push((register(reg), u64::from(cycles)));
            }
        }
        if used.iter().any(|r| self.writes.contains_key(r)) {
            return true;
        }
        for (reg, cycles) in &defined {
            let own = now + if latency.variable { 1 } else { *cycles };
            if self
                .writes
                .get(reg)
                .is_some_and(|w| w.variable || w.arrives >= own)
                || self.reads.iter().any(|(r, _)| r == reg)
            {
                return true;
            }
        }
        let boards = [control.write, control.read].map(|b| b.map(|b| b.number()));
        let pending = |arrives| Pending {
            arrives,
            variable: latency.variable,
            boards,
        };
        for (reg, cycles) in defined {
            self.writes.insert(reg, pending(now + cycles));
        }
        if latency.sources > 0 {
            let late = inst
                .operands()
                .filter(|o| o.info.role != Role::Pg && o.info.direction != Direction::Out);
            for operand in late {
                let regs = operand.regs.iter().flatten();
                self.reads.extend(regs.map(|r| (register(r), pending(0))));
            }
        }
        false
    }

    /// Whether anything is on its way.
    fn is_busy(&self) -> bool {
        let mut writes = self.writes.values();
        !self.reads.is_empty() || writes.any(|w| w.variable || w.arrives > self.now)
    }
}

/// Runs one random path; whether something came too early.
fn path_has_hazard(code: &Code, random: &mut Random) -> bool {
    let mut pc = 0usize;
    let mut machine = InOrder::default();
    for _ in 0..120 {
        let (inst, control) = decode(code.words[pc]).unwrap();
        if machine.issue(&inst, control, true) {
            return true;
        }
        let taken = match inst.guard() {
            (None, _) => true,
            _ => random.flip(),
        };
        let offset = (pc * 16) as u32;
        let away =
            inst.optype() == Optype::RET || code.relocations.iter().any(|r| r.offset == offset);
        if away && taken {
            return machine.is_busy();
        }
        pc = match inst.optype() {
            Optype::EXIT | Optype::TRAP if taken => return false,
            Optype::BRX_REL => {
                let targets = &code.tables.iter().find(|t| t.0 == offset).unwrap().1;
                random.pick(targets) as usize / 16
            }
            Optype::BRA if taken => {
                let distance = inst.number(Role::Label).unwrap() as u32 as i32;
                (pc as i32 + 1 + distance / 16) as usize
            }
            _ => pc + 1,
        };
    }
    false
}

fn paths_have_hazard(code: &Code, random: &mut Random, paths: usize) -> bool {
    (0..paths).any(|_| path_has_hazard(code, random))
}

/// Tables that are kept are never emptied as a whole.
#[test]
fn nothing_is_left_of_the_function_before() {
    let mut random = Random::for_test("kept tables");
    let forms = forms();
    let mut kept = emit::EmitBuffers::default();
    for round in 0..300 {
        let mut constants = Constants::new();
        let code = random_code(&mut random, &forms, &mut constants);
        let waiting = if round % 7 == 0 {
            Waiting::Serial
        } else {
            Waiting::Needed
        };
        let linear = emit::layout(code.clone(), &mut kept).unwrap();
        let scheduled = schedule(linear, waiting, &mut kept.control);
        let again = emit::emit(scheduled, true, &mut constants.clone(), &mut kept).unwrap();
        assert_eq!(again, compiled(&code, waiting, &mut constants), "{code}");
    }
}

#[test]
fn computed_control_bits_hold_on_every_path() {
    let mut random = Random::for_test("control bits");
    let forms = forms();
    let (mut waits, mut redundant) = (0, 0);
    for round in 0..600 {
        let mut constants = Constants::new();
        let code = random_code(&mut random, &forms, &mut constants);
        let waiting = if round % 4 == 0 {
            Waiting::Serial
        } else {
            Waiting::Needed
        };
        let emitted = compiled(&code, waiting, &mut constants);
        let hazards = verify(&emitted);
        assert!(hazards.is_empty(), "{waiting:?} {hazards:#?}\n{code}");
        if waiting == Waiting::Needed {
            let controls = emitted.words.iter().map(|w| decode(*w).unwrap().1);
            waits += controls
                .map(|c| c.wait().count_ones() as usize)
                .sum::<usize>();
            for redundancy in redundancies(&emitted) {
                let kind = redundancy.kind;
                assert!(
                    matches!(kind, RedundancyKind::Wait(_)),
                    "{redundancy}\n{code}"
                );
                redundant += 1;
            }
        }
        assert!(
            !paths_have_hazard(&emitted, &mut random, 10),
            "round {round}\n{code}"
        );
    }
    // Where a loop waits for what an earlier turn left, what comes behind it may wait again: rare even in such dense
    // code.
    println!("{waits} waits, {redundant} of them redundant");
    assert!(redundant * 500 < waits, "{redundant} of {waits} waits");
}

/// Weakens the control bits of one instruction: a shorter stall, a wait less, a scoreboard less or another one. Says
/// whether anything was changed.
pub(super) fn mutate(code: &mut Code, random: &mut Random) -> bool {
    let index = random.below(code.words.len() as u64) as usize;
    let (inst, mut control) = decode(code.words[index]).unwrap();
    let before = control;
    let other = Scoreboard::new(random.below(6) as u8);
    match random.below(7) {
        0 => control.set_stall(control.stall() / 2),
        1 => control.set_stall(control.stall().saturating_sub(1)),
        2 => control.set_wait(control.wait() & !(1 << random.below(6))),
        3 => control.write = None,
        4 => control.read = None,
        5 => control.write = control.write.and(other),
        _ => control.read = control.read.and(other),
    }
    code.words[index] = inst.encode(control).unwrap();
    control != before
}

#[test]
fn the_verifier_finds_what_a_path_finds() {
    let mut random = Random::for_test("planted hazards");
    let forms = forms();
    let (mut planted, mut reported, mut seen) = (0, 0, 0);
    while planted < 600 {
        let mut constants = Constants::new();
        let code = random_code(&mut random, &forms, &mut constants);
        let mut emitted = compiled(&code, Waiting::Needed, &mut constants);
        if !mutate(&mut emitted, &mut random) {
            continue;
        }
        planted += 1;
        let found = !verify(&emitted).is_empty();
        let on_path = paths_have_hazard(&emitted, &mut random, 20);
        assert!(
            found || !on_path,
            "the verifier misses what a path meets\n{code}"
        );
        reported += usize::from(found);
        seen += usize::from(on_path);
    }
    // Much of what is taken away was needed (not: waits on one of several paths, scoreboards that nobody waits for),
    // and nearly all of what is reported can be met in a few random runs.
    assert!(
        seen * 5 > planted && seen * 10 > reported * 8,
        "{planted} planted, {reported} reported, {seen} met"
    );
}

fn load(result: u8, address: u8) -> PInst {
    testing::load(PReg::gpr(result), [address, address + 1].map(PReg::gpr))
}

fn add(result: u8, a: u8, b: u8) -> PInst {
    testing::add(PReg::gpr(result), PReg::gpr(a), PReg::gpr(b))
}

fn controls(insts: Vec<PInst>) -> Vec<Control> {
    let code = kernel(vec![(insts, Terminator::Exit)]);
    testing::scheduled(&code, Waiting::Needed)
        .controls(0)
        .to_vec()
}

#[test]
fn loads_overlap_and_their_first_use_waits() {
    let found = controls(vec![load(0, 4), load(1, 6), add(4, 8, 9), add(2, 0, 1)]);
    let [a, b] = [found[0].write.unwrap(), found[1].write.unwrap()];
    assert_ne!(a, b);
    // The address of the first load is overwritten, that of the second is not.
    assert!(found[0].read.is_some() && found[1].read.is_none());
    assert_eq!(found[2].wait(), 1 << found[0].read.unwrap().number());
    assert_eq!(found[3].wait(), 1 << a.number() | 1 << b.number());
    assert_eq!([found[0].stall(), found[1].stall()], [1, 1]);
}

#[test]
fn a_fixed_latency_is_covered_by_what_lies_between() {
    let found = controls(vec![add(0, 4, 5), add(1, 4, 5), add(2, 0, 5)]);
    assert_eq!([found[0].stall(), found[1].stall()], [1, 3]);
}

#[test]
fn nothing_is_waited_for_on_edges_that_do_not_need_it() {
    // A load before a loop that does not touch its result: only the use behind the loop waits.
    let mut guard_last = vec![add(8, 8, 9)];
    guard_last.push(add(9, 8, 8));
    let guard = crate::vcode::Guard {
        reg: PReg::predicate(0),
        negated: false,
    };
    let back = Terminator::Branch {
        guard,
        taken: crate::emit::testing::block(1),
        fallthrough: crate::emit::testing::block(2),
        divergent: false,
    };
    let code = kernel(vec![
        (vec![load(0, 4)], jump(1)),
        (guard_last, back),
        (vec![add(1, 0, 0)], Terminator::Exit),
    ]);
    let scheduled = testing::scheduled(&code, Waiting::Needed);
    assert!(scheduled.controls(1).iter().all(|c| c.wait() == 0));
    assert_ne!(scheduled.controls(2)[0].wait(), 0);
}

#[test]
fn everything_is_waited_for_before_a_return() {
    let back = Terminator::Return {
        address: [PReg::gpr(2), PReg::gpr(3)],
        values: vec![],
    };
    let code = kernel(vec![(vec![load(0, 4), add(1, 8, 9)], back)]);
    let scheduled = testing::scheduled(&code, Waiting::Needed);
    let ret = scheduled.controls(0)[2];
    assert_ne!(ret.wait(), 0);
    assert!(ret.stall() >= 3);
    let mut emitted = compiled(&code, Waiting::Needed, &mut Constants::new());
    let (inst, mut control) = decode(emitted.words[2]).unwrap();
    control.set_stall(1);
    emitted.words[2] = inst.encode(control).unwrap();
    assert_eq!(verify(&emitted)[0].kind, HazardKind::NotComplete);
}
