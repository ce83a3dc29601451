//! Laid out code takes the same way as the blocks that it was made from.

use super::testing::{block, jump, kernel, linear, mov, random_terminator, words};
use super::*;
use crate::isa::table::Effects;
use crate::isa::{Optype, PInst, PReg, Role, build, decode};
use crate::linear::LinearError;
use crate::sched::control::Waiting;
use crate::testing::Random;
use crate::vcode::{Attachment, Entry, Guard, SymbolKind, Terminator, VCode};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Exit,
    Trap(u64),
    Return,
    Endless,
}

/// Blocks with a marker leave its number behind; branches depend on what was left so far.
#[derive(Default, Debug, PartialEq, Eq)]
struct Trace(Vec<u32>);

impl Trace {
    fn decision(&self) -> u64 {
        self.0.iter().fold(self.0.len() as u64 ^ 0x9e37, |h, &x| {
            (h ^ u64::from(x)).wrapping_mul(0x100_0000_01b3)
        }) >> 17
    }

    fn predicate(&self, negated: bool) -> bool {
        (self.decision() & 1 != 0) != negated
    }
}

const LIMIT: usize = 60;

fn run_blocks(code: &VCode<PReg>) -> (Trace, End) {
    let mut trace = Trace::default();
    let mut at = block(0);
    for _ in 0..10 * LIMIT {
        if trace.0.len() > LIMIT {
            break;
        }
        for entry in code.block_insts(at) {
            trace.0.push(entry.inst.number(Role::B).unwrap() as u32);
        }
        at = match &code.blocks[at].terminator {
            Terminator::Jump { target, .. } => *target,
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                ..
            } => {
                if trace.predicate(guard.negated) {
                    *taken
                } else {
                    *fallthrough
                }
            }
            Terminator::Table { targets, .. } => targets[trace.decision() as usize % targets.len()],
            Terminator::Exit => return (trace, End::Exit),
            Terminator::Trap(code) => return (trace, End::Trap(u64::from(*code))),
            Terminator::Return { .. } => return (trace, End::Return),
            Terminator::TailCall { .. } => unreachable!(),
        };
    }
    trace.0.truncate(LIMIT);
    (trace, End::Endless)
}

/// Runs words; register n of a branch by table stands for the nth of `tables` (offset, entries).
fn run_words(code: &Code, constants: &Constants, tables: &[(u32, usize)]) -> (Trace, End) {
    let mut trace = Trace::default();
    let mut pc: i64 = 0;
    for _ in 0..100 * LIMIT {
        if trace.0.len() > LIMIT {
            break;
        }
        assert_eq!(pc % 16, 0);
        let (inst, _) = decode(code.words[pc as usize / 16]).unwrap();
        let next = pc + 16;
        let label = || i64::from(inst.field(inst.label().unwrap().field) as u32 as i32);
        let (guard, negated) = inst.guard();
        let taken = match guard {
            Some(_) => trace.predicate(negated),
            None => !negated,
        };
        pc = next;
        if !taken {
            continue;
        }
        match inst.optype() {
            Optype::MOV => trace.0.push(inst.number(Role::B).unwrap() as u32),
            Optype::BRA => pc = next + label(),
            Optype::BRX_REL => {
                let (offset, entries) = tables[inst.reg(Role::A).unwrap().number() as usize];
                let place = offset as usize + 4 * (trace.decision() as usize % entries);
                let entry: [u8; 4] = constants.bytes()[place..place + 4].try_into().unwrap();
                pc = next + label() + i64::from(i32::from_le_bytes(entry));
            }
            Optype::EXIT => return (trace, End::Exit),
            Optype::RET => return (trace, End::Return),
            Optype::TRAP => {
                return (trace, End::Trap(inst.number(Role::Code).unwrap()));
            }
            other => panic!("{other:?}"),
        }
    }
    trace.0.truncate(LIMIT);
    (trace, End::Endless)
}

#[test]
fn random_graphs_run_the_same_before_and_after() {
    let mut random = Random::for_test("layout");
    for _ in 0..3000 {
        let len = 1 + random.below(10) as usize;
        let mut constants = Constants::new();
        let mut tables = Vec::new();
        let blocks = (0..len)
            .map(|b| {
                let marks = random.below(3).saturating_sub(u64::from(random.flip()));
                let insts = (0..marks)
                    .map(|i| mov(9, 10 * b as u32 + i as u32))
                    .collect();
                let terminator = random_terminator(&mut random, len, |entries| {
                    tables.push((constants.reserve_jump_table(entries).unwrap(), entries));
                    (
                        PReg::gpr(tables.len() as u8 - 1),
                        tables[tables.len() - 1].0,
                    )
                });
                (insts, terminator)
            })
            .collect();
        let mut code = kernel(blocks);
        code.blocks
            .values_mut()
            .for_each(|b| b.cold = random.below(6) == 0);
        let laid_out = linear(&code).unwrap();
        assert_eq!(laid_out.verify(), Ok(()), "{code}{laid_out}");
        let emitted = words(&code, Waiting::Serial, &mut constants).unwrap();
        assert_eq!(
            run_blocks(&code),
            run_words(&emitted, &constants, &tables),
            "{code}"
        );
    }
}

#[test]
fn what_layout_promises_is_checked() {
    let code = kernel(vec![
        (vec![mov(0, 1)], branch(1, 2)),
        (vec![mov(0, 2)], jump(2)),
        (vec![mov(0, 3)], Terminator::Exit),
    ]);
    let good = linear(&code).unwrap();
    assert_eq!(good.verify(), Ok(()));
    let mut empty = good.clone();
    empty.blocks[1].body = 0..0;
    empty.blocks[1].branches = 0..0;
    assert_eq!(empty.verify(), Err(LinearError::Empty(1)));
    let mut early = good.clone();
    let first = early.blocks[0].body.start as usize;
    let branch = early.blocks[0].branches.start as usize;
    early.insts.swap(first, branch);
    assert_eq!(early.verify(), Err(LinearError::LeavesEarly(0)));
    let mut open = good.clone();
    open.blocks.last_mut().unwrap().branches = 0..0;
    assert_eq!(open.verify(), Err(LinearError::NoBlock { from: 2, to: 3 }));
}

/// None of this may take time that grows faster than the function.
#[test]
fn long_rows_of_blocks_are_laid_out_at_once() {
    const LENGTH: usize = 30_000;
    let mut blocks: Vec<_> = (0..LENGTH).map(|b| (vec![], jump(b + 1))).collect();
    blocks.push((vec![mov(0, 1)], Terminator::Exit));
    assert_eq!(optypes(&kernel(blocks)).len(), 2);
    // An endless loop of empty blocks is one branch to itself, and so are the ways to it.
    let mut blocks: Vec<_> = (0..LENGTH).map(|b| (vec![], jump(b + 1))).collect();
    blocks[LENGTH - 1].1 = jump(LENGTH / 2);
    assert_eq!(optypes(&kernel(blocks)), [(Optype::BRA, true)]);
    // Loops one after another.
    let mut blocks: Vec<_> = (0..LENGTH)
        .map(|b| (vec![mov(0, b as u32)], branch(b.max(1), b + 1)))
        .collect();
    blocks.push((vec![], Terminator::Exit));
    // The first block is no loop, the last branch has the exit before it.
    assert_eq!(optypes(&kernel(blocks)).len(), 2 * LENGTH);
}

fn branch(taken: usize, fallthrough: usize) -> Terminator<PReg> {
    let guard = Guard {
        reg: PReg::predicate(0),
        negated: false,
    };
    Terminator::Branch {
        guard,
        taken: block(taken),
        fallthrough: block(fallthrough),
        divergent: false,
    }
}

fn optypes(code: &VCode<PReg>) -> Vec<(Optype, bool)> {
    let linear = linear(code).unwrap();
    linear
        .runs()
        .flatten()
        .map(|i| (i.inst.optype(), i.inst.is_unguarded()))
        .collect()
}

#[test]
fn a_branch_to_an_exit_becomes_a_guarded_exit() {
    let code = kernel(vec![
        (vec![], branch(1, 2)),
        (vec![], Terminator::Exit),
        (vec![mov(0, 1)], jump(1)),
    ]);
    assert_eq!(
        optypes(&code),
        [
            (Optype::EXIT, false),
            (Optype::MOV, true),
            (Optype::EXIT, true)
        ]
    );
}

#[test]
fn a_loop_takes_one_branch_a_turn() {
    let code = kernel(vec![
        (vec![mov(0, 1)], jump(1)),
        (vec![mov(0, 2)], branch(3, 2)),
        (vec![mov(0, 3)], jump(1)),
        (vec![mov(0, 4)], Terminator::Exit),
    ]);
    let kinds: Vec<Optype> = optypes(&code).into_iter().map(|o| o.0).collect();
    assert_eq!(
        kinds,
        [
            Optype::MOV,
            Optype::BRA,
            Optype::MOV,
            Optype::MOV,
            Optype::BRA,
            Optype::MOV,
            Optype::EXIT
        ]
    );
    let resources = words(&code, Waiting::Needed, &mut Constants::new())
        .unwrap()
        .resources;
    assert_eq!(
        (resources.instructions, resources.loops, resources.registers),
        (7, vec![3], 1)
    );
}

#[test]
fn labels_and_symbols_are_filled_in_and_recorded() {
    let mut code = kernel(vec![
        (
            vec![
                build::bssy_x(0),
                build::call_i([PReg::gpr(2), PReg::gpr(3)]),
            ],
            branch(1, 2),
        ),
        (vec![mov(0, 1)], jump(2)),
        (vec![build::bsync_x(0)], Terminator::Exit),
    ]);
    let meet = code.attachments.push(Attachment::Label(block(2)));
    code.insts[0].attachment = Some(meet);
    let call = crate::vcode::CallInfo {
        meeting: crate::vcode::Meeting::Together,
        callee: Some("callee".to_string()),
        uses: Vec::new(),
        defs: Vec::new(),
    };
    let call = code.attachments.push(Attachment::Call(Box::new(call)));
    code.insts[1].attachment = Some(call);
    let emitted = words(&code, Waiting::Serial, &mut Constants::new()).unwrap();
    // BSSY CALL @!P0 BRA MOV BSYNC EXIT
    assert_eq!(emitted.words[0] >> 32 & 0xffff_ffff, 3 * 16);
    let call = &emitted.relocations[0];
    assert_eq!(
        (call.offset, call.kind, call.name.as_str()),
        (16, SymbolKind::Relative, "callee")
    );
    assert!(!emitted.resources.calls_by_address);
    assert_eq!(
        emitted.lines,
        [(0, SourceLine(1)), (48, SourceLine(2)), (64, SourceLine(3))]
    );
    assert_eq!(emitted.resources.registers, 4);
    assert!(
        decode(emitted.words[1])
            .unwrap()
            .0
            .info()
            .optype
            .info()
            .effects
            .contains(Effects::CALL)
    );
}

#[test]
fn an_instruction_that_the_description_forbids_is_an_error() {
    let code = kernel(vec![(vec![mov(0, 1), misaligned()], Terminator::Exit)]);
    let error = words(&code, Waiting::Serial, &mut Constants::new()).unwrap_err();
    assert!(
        matches!(
            error,
            EmitError::Illegal {
                offset: 16,
                reason: Illegal::Misaligned { .. },
                ..
            }
        ),
        "{error}"
    );
    let no_table = Terminator::Table {
        index: PReg::gpr(0),
        table: None,
        targets: vec![block(1)],
        divergent: false,
    };
    let code = kernel(vec![(vec![], no_table), (vec![], Terminator::Exit)]);
    assert!(matches!(linear(&code), Err(LayoutError::NoTable { .. })));
}

fn misaligned() -> PInst {
    build::ret_r([PReg::gpr(3), PReg::gpr(4)])
}

#[test]
fn attachments_without_a_field_are_an_error() {
    let mut code = kernel(vec![(vec![mov(0, 1)], Terminator::Exit)]);
    let label = code.attachments.push(Attachment::Label(block(0)));
    code.insts[0] = Entry {
        attachment: Some(label),
        ..code.insts[0]
    };
    assert!(matches!(linear(&code), Err(LayoutError::NoField { .. })));
}
