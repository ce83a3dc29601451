//! The analysis against a warp interpreter: whatever it calls uniform must be the same in all lanes that execute it
//! together, on random functions, and it must not call everything divergent on the usual ones.

use super::*;
use crate::analysis::calls::{Callees, Summary};
use crate::analysis::meeting::{Meeting, Meetings};
use crate::analysis::progress::Progress;
use crate::analysis::testing::{Rng, random_function};
use crate::intrinsics::resolve;
use cranelift_codegen::ir::InstructionData;
use cranelift_codegen::ir::condcodes::IntCC;
use hashbrown::HashMap;

const LANES: usize = 4;
const STEPS: usize = 400;

struct Facts {
    func: Function,
    intrinsics: Intrinsics,
    flow: ControlFlow,
    meetings: Meetings,
    uniformity: Uniformity,
}

fn facts_of(mut func: Function, kernel: bool) -> Facts {
    let intrinsics = resolve::resolve(&mut func, &|_| None).unwrap();
    // Calls do nothing that matters here.
    let callees = Callees::of(&func, &intrinsics, &|_| Some(String::new()), &|_| {
        Summary::NONE
    });
    let flow = ControlFlow::compute(&func, kernel, &callees);
    let progress = Progress::of(&func, &flow, &intrinsics, &callees, kernel);
    let meetings = Meetings::of(&func, &flow, &callees, &progress, kernel);
    let provenance = Provenance::compute(&func, &flow, &intrinsics, kernel);
    let users = Users::compute(&func);
    let uniformity = Uniformity::compute(&UniformityInput {
        func: &func,
        flow: &flow,
        meetings: &meetings,
        intrinsics: &intrinsics,
        provenance: &provenance,
        users: &users,
        kernel,
    });
    Facts {
        func,
        intrinsics,
        flow,
        meetings,
        uniformity,
    }
}

fn analyse(text: &str, kernel: bool) -> Facts {
    facts_of(
        cranelift_reader::parse_functions(text).unwrap().remove(0),
        kernel,
    )
}

type Lanes = [bool; LANES];

/// Executes a warp with lanes that wait for each other at the post-dominator of a divergent branch.
struct Warp<'a> {
    facts: &'a Facts,
    values: HashMap<Value, [i64; LANES]>,
    live: Lanes,
    steps: usize,
    seed: u64,
    /// Branches that parted lanes.
    parted: usize,
}

impl Warp<'_> {
    /// Runs `active` from `block` until they reach `stop`. False when the steps are used up.
    fn run(&mut self, mut active: Lanes, mut block: Block, stop: Option<Block>) -> bool {
        loop {
            if Some(block) == stop || !any(&self.alive(active)) {
                return true;
            }
            active = self.alive(active);
            if self.steps == 0 {
                return false;
            }
            self.steps -= 1;
            let func = &self.facts.func;
            if active != self.live {
                assert!(
                    self.facts.uniformity.divergent_block(block),
                    "seed {}: {block} runs in part\n{func}",
                    self.seed
                );
            }
            for param in func.dfg.block_params(block) {
                self.check(*param, block, active);
            }
            let insts: Vec<Inst> = func.layout.block_insts(block).collect();
            let (last, body) = insts.split_last().unwrap();
            for inst in body {
                self.execute(*inst, active);
                for result in func.dfg.inst_results(*inst) {
                    self.check(*result, block, active);
                }
                for arg in func.dfg.inst_values(*inst) {
                    self.check_use(arg, block, active);
                }
            }
            let targets: Vec<Option<usize>> = (0..LANES)
                .map(|lane| self.leave(*last, lane, active))
                .collect();
            let calls = func.dfg.insts[*last]
                .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
            let mut groups: Vec<(usize, Lanes)> = Vec::new();
            for lane in 0..LANES {
                let Some(edge) = targets[lane] else { continue };
                match groups.iter_mut().find(|(other, _)| *other == edge) {
                    Some((_, lanes)) => lanes[lane] = true,
                    None => {
                        let mut lanes = [false; LANES];
                        lanes[lane] = true;
                        groups.push((edge, lanes));
                    }
                }
            }
            let target = |edge: usize| calls[edge].block(&func.dfg.value_lists);
            match &groups[..] {
                [] => return true,
                [(edge, _)] => block = target(*edge),
                _ => {
                    self.parted += 1;
                    assert!(
                        self.facts.uniformity.divergent_branch(*last),
                        "seed {}: {} parts lanes\n{func}",
                        self.seed,
                        func.dfg.display_inst(*last)
                    );
                    let meeting = match self.facts.meetings.branch(block) {
                        Meeting::At(meeting) => Some(meeting),
                        Meeting::Nowhere => None,
                    };
                    // Lanes that only end do so at once.
                    for (edge, lanes) in &groups {
                        if !self.facts.flow.continues(block, target(*edge)) {
                            (0..LANES)
                                .filter(|lane| lanes[*lane])
                                .for_each(|lane| self.live[lane] = false);
                        }
                    }
                    for (edge, lanes) in &groups {
                        if !self.run(*lanes, target(*edge), meeting) {
                            return false;
                        }
                    }
                    match meeting {
                        Some(meeting) => block = meeting,
                        None => return true,
                    }
                }
            }
        }
    }

    fn alive(&self, active: Lanes) -> Lanes {
        std::array::from_fn(|lane| active[lane] && self.live[lane])
    }

    /// Passes the block arguments of one lane; the edge it takes, or `None` if it ends.
    fn leave(&mut self, inst: Inst, lane: usize, active: Lanes) -> Option<usize> {
        if !active[lane] {
            return None;
        }
        let dfg = &self.facts.func.dfg;
        let edge = match dfg.insts[inst] {
            InstructionData::Jump { .. } => 0,
            InstructionData::Brif { arg, .. } => usize::from(self.values[&arg][lane] == 0),
            InstructionData::BranchTable { arg, table, .. } => {
                let cases = dfg.jump_tables[table].as_slice().len();
                let index = self.values[&arg][lane] as u32 as usize;
                if index < cases { index + 1 } else { 0 }
            }
            _ => {
                self.live[lane] = false;
                return None;
            }
        };
        let call =
            dfg.insts[inst].branch_destination(&dfg.jump_tables, &dfg.exception_tables)[edge];
        let block = call.block(&dfg.value_lists);
        let passed: Vec<i64> = call
            .args(&dfg.value_lists)
            .map(|arg| self.values[&arg.as_value().unwrap()][lane])
            .collect();
        for (param, value) in dfg.block_params(block).iter().zip(passed) {
            self.values.entry(*param).or_default()[lane] = value;
        }
        Some(edge)
    }

    fn execute(&mut self, inst: Inst, active: Lanes) {
        let facts = self.facts;
        let dfg = &facts.func.dfg;
        let args = dfg.inst_args(inst);
        for lane in (0..LANES).filter(|lane| active[*lane]) {
            let arg = |index: usize| self.values[&args[index]][lane];
            let value = match dfg.insts[inst] {
                InstructionData::UnaryImm { imm, .. } => imm.bits(),
                InstructionData::UnaryGlobalValue { .. } => {
                    match facts.intrinsics.of_symbol_value(&facts.func, inst) {
                        Some(GpuSymbol::Special(row)) if row.name == "tid_x" => lane as i64,
                        _ => 3,
                    }
                }
                InstructionData::IntCompare {
                    cond: IntCC::UnsignedLessThan,
                    ..
                } => i64::from((arg(0) as u32) < arg(1) as u32),
                _ => match dfg.insts[inst].opcode() {
                    Opcode::Iadd => i64::from((arg(0) as i32).wrapping_add(arg(1) as i32)),
                    Opcode::Band => arg(0) & arg(1),
                    Opcode::Uextend => arg(0),
                    Opcode::Select => {
                        if arg(0) != 0 {
                            arg(1)
                        } else {
                            arg(2)
                        }
                    }
                    Opcode::Nop => continue,
                    other => panic!("the generator makes no {other}"),
                },
            };
            self.values.entry(dfg.first_result(inst)).or_default()[lane] = value;
        }
    }

    fn same(&self, value: Value, active: Lanes) -> bool {
        let Some(lanes) = self.values.get(&value) else {
            return true;
        };
        let mut seen = (0..LANES)
            .filter(|lane| active[*lane])
            .map(|lane| lanes[lane]);
        let first = seen.next();
        seen.all(|other| Some(other) == first)
    }

    fn check(&self, value: Value, block: Block, active: Lanes) {
        if self.facts.uniformity.uniform_at_definition(value) {
            assert!(
                self.same(value, active),
                "seed {}: {value} in {block} is {:?} in {active:?}\n{}",
                self.seed,
                self.values[&value],
                self.facts.func
            );
        }
    }

    fn check_use(&self, value: Value, block: Block, active: Lanes) {
        if self.facts.uniformity.uniform(value) {
            assert!(
                self.same(value, active),
                "seed {}: {value} used in {block} is {:?} in {active:?}\n{}",
                self.seed,
                self.values[&value],
                self.facts.func
            );
        }
    }
}

fn any(lanes: &Lanes) -> bool {
    lanes.iter().any(|lane| *lane)
}

/// Runs one random function; how many branches parted lanes, and how many values are called uniform of how many.
fn try_seed(seed: u64, kernel: bool) -> (usize, usize, usize) {
    let mut rng = Rng::new(seed);
    let facts = facts_of(random_function(&mut rng, 12), kernel);
    let entry = facts.func.layout.entry_block().unwrap();
    let mut values = HashMap::new();
    for param in facts.func.dfg.block_params(entry) {
        let uniform = rng.below(3) as i64;
        values.insert(
            *param,
            std::array::from_fn(|_| if kernel { uniform } else { rng.below(3) as i64 }),
        );
    }
    let mut warp = Warp {
        facts: &facts,
        values,
        live: [true; LANES],
        steps: STEPS,
        seed,
        parted: 0,
    };
    warp.run([true; LANES], entry, None);
    let defined: Vec<Value> = warp.values.keys().copied().collect();
    let uniform = defined
        .iter()
        .filter(|value| facts.uniformity.uniform(**value))
        .count();
    (warp.parted, uniform, defined.len())
}

#[test]
fn what_is_uniform_is_the_same_in_all_lanes() {
    let (mut parted, mut uniform, mut defined) = (0, 0, 0);
    for seed in 0..300 {
        let (p, u, d) = try_seed(seed, true);
        (parted, uniform, defined) = (parted + p, uniform + u, defined + d);
        try_seed(seed, false);
    }
    // The test must see both sides: parted lanes and uniform values.
    assert!(parted > 200, "{parted} branches parted lanes");
    assert!(
        uniform * 3 > defined,
        "{uniform} of {defined} values are uniform"
    );
}

#[test]
fn a_planted_error_is_found() {
    let mut found = 0;
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut facts = facts_of(random_function(&mut rng, 12), true);
        // Forget the joins: call every block parameter uniform.
        for block in facts.func.layout.blocks() {
            for param in facts.func.dfg.block_params(block) {
                facts.uniformity.divergent[*param] = false;
            }
        }
        let entry = facts.func.layout.entry_block().unwrap();
        let values = facts
            .func
            .dfg
            .block_params(entry)
            .iter()
            .map(|param| (*param, [1; LANES]))
            .collect();
        let mut warp = Warp {
            facts: &facts,
            values,
            live: [true; LANES],
            steps: STEPS,
            seed,
            parted: 0,
        };
        let run = std::panic::AssertUnwindSafe(|| warp.run([true; LANES], entry, None));
        found += usize::from(std::panic::catch_unwind(run).is_err());
    }
    assert!(found > 3, "only {found} of 60 functions show the error");
}

fn value(number: u32) -> Value {
    Value::from_u32(number)
}

fn block(number: u32) -> Block {
    Block::from_u32(number)
}

#[test]
fn a_guarded_kernel_stays_together() {
    let facts = analyse(
        "function %k(i64, i32) {
            fn0 = %gpu_tid_x() -> i32
            fn1 = %gpu_ctaid_x() -> i32
        block0(v0: i64, v1: i32):
            v2 = call fn0()
            v3 = call fn1()
            v4 = icmp uge v2, v1
            brif v4, block2, block1
        block1:
            v5 = uextend.i64 v3
            v6 = iadd v0, v5
            v7 = load.i32 v6
            store v7, v0
            jump block2
        block2:
            return
        }",
        true,
    );
    let u = &facts.uniformity;
    assert!(!u.divergent_block(block(1)) && !u.uniform(value(4)));
    assert!(
        u.uniform(value(3)) && u.uniform(value(6)) && u.uniform(value(7)),
        "a global load at a uniform address"
    );
}

const LOOP: &str = "function %k(i64, i32) {
        fn0 = %gpu_tid_x() -> i32
    block0(v0: i64, v1: i32):
        v2 = call fn0()
        v3 = iconst.i32 0
        v4 = iconst.i32 1
        jump block1(v3)
    block1(v5: i32):
        v6 = iadd v5, v4
        v7 = icmp ult v6, LIMIT
        brif v7, block1(v6), block2
    block2:
        store v6, v0
        v8 = iadd v1, v4
        store v8, v0
        return
    }";

#[test]
fn a_uniform_loop_is_uniform() {
    let facts = analyse(&LOOP.replace("LIMIT", "v1"), true);
    assert!((5..9).all(|number| facts.uniformity.uniform(value(number))));
    assert!(!facts.uniformity.divergent_block(block(1)));
}

#[test]
fn a_loop_left_in_different_rounds_is_uniform_inside_only() {
    let facts = analyse(&LOOP.replace("LIMIT", "v2"), true);
    let u = &facts.uniformity;
    assert!(
        u.uniform_at_definition(value(6)) && !u.uniform(value(6)),
        "v6 is stored outside"
    );
    assert!(u.uniform(value(5)), "v5 is only used inside");
    assert!(u.divergent_block(block(1)) && !u.divergent_block(block(2)));
    assert!(u.uniform(value(8)));
    let lp = facts.flow.innermost_loop(block(1)).unwrap();
    assert!(u.divergent_exit(lp));
}

#[test]
fn joins_diverge_where_sides_meet_and_nowhere_else() {
    let facts = analyse(
        "function %k(i64, i32) {
            fn0 = %gpu_laneid() -> i32
        block0(v0: i64, v1: i32):
            v2 = call fn0()
            v3 = iconst.i32 0
            v4 = iconst.i32 1
            brif v2, block1, block4(v3)
        block1:
            jump block2(v3)
        block2(v5: i32):
            v6 = iadd v5, v4
            v7 = icmp ult v6, v1
            brif v7, block2(v6), block3
        block3:
            jump block4(v4)
        block4(v8: i32):
            store v8, v0
            store v6, v0
            return
        }"
        .replace("store v6, v0\n", "\n")
        .as_str(),
        true,
    );
    let u = &facts.uniformity;
    assert!(!u.uniform(value(8)), "both sides meet in block4");
    assert!(
        u.uniform(value(5)) && u.uniform(value(7)),
        "the loop on one side is in step"
    );
    assert!(
        [1, 2, 3]
            .iter()
            .all(|number| u.divergent_block(block(*number)))
            && !u.divergent_block(block(4))
    );
}

#[test]
fn memory_and_calls_diverge_as_designed() {
    let facts = analyse(
        "function %k(i64, i32) {
            ss0 = explicit_slot 8
            fn0 = %helper(i32) -> i32
            fn1 = %gpu_ballot(i8) -> i32
            fn2 = %gpu_ex2_f32(f32) -> f32
            fn3 = %gpu_tid_y() -> i32
        block0(v0: i64, v1: i32):
            v2 = stack_addr.i64 ss0
            v3 = load.i32 v2
            v4 = load.i64 v0
            v5 = load.i32 v4
            v6 = call fn0(v1)
            v7 = call fn3()
            v8 = icmp ult v7, v1
            v9 = call fn1(v8)
            v10 = f32const 0x1.0p0
            v11 = call fn2(v10)
            v12 = atomic_rmw.i32 add v0, v1
            v13 = load.i32 v1
            v14 = load.i32 v7
            return
        }",
        true,
    );
    let divergent: Vec<u32> = (0..15)
        .filter(|number| !facts.uniformity.uniform(value(*number)))
        .collect();
    assert_eq!(divergent, [3, 5, 6, 7, 8, 12, 14]);
}

#[test]
fn a_budget_overrun_is_coarse_but_sound() {
    let mut coarser = 0;
    for seed in 0..300 {
        let func = random_function(&mut Rng::new(seed), 12);
        let precise = facts_of(func, true);
        if precise.flow.is_irreducible() {
            continue;
        }
        let provenance =
            Provenance::compute(&precise.func, &precise.flow, &precise.intrinsics, true);
        let given = UniformityInput {
            func: &precise.func,
            flow: &precise.flow,
            meetings: &precise.meetings,
            intrinsics: &precise.intrinsics,
            provenance: &provenance,
            users: &Users::compute(&precise.func),
            kernel: true,
        };
        let mut analysis = Analysis::new(&given, Uniformity::default());
        analysis.search.visits_left = 0;
        analysis.seed();
        analysis.propagate();
        for value in precise.func.dfg.values() {
            let (exact, coarse) = (
                precise.uniformity.uniform(value),
                analysis.result.uniform(value),
            );
            assert!(exact || !coarse, "seed {seed}: {value}\n{}", precise.func);
            coarser += usize::from(exact && !coarse);
        }
    }
    assert!(coarser > 0, "the coarse way was never taken");
}

#[test]
fn lanes_leave_the_loops_that_they_do_not_meet_in() {
    let mut left = 0;
    for seed in 0..500 {
        let facts = facts_of(random_function(&mut Rng::new(seed), 24), true);
        let (flow, u) = (&facts.flow, &facts.uniformity);
        let branches = || {
            let last = |block: &Block| facts.func.layout.last_inst(*block);
            let blocks = flow.reverse_postorder().iter();
            blocks.filter(move |b| last(b).is_some_and(|inst| u.divergent_branch(inst)))
        };
        for lp in flow.loops() {
            let leaves = |block: Block| {
                flow.is_in_loop(block, lp)
                    && match facts.meetings.branch(block) {
                        Meeting::At(meeting) => !flow.is_in_loop(meeting, lp),
                        Meeting::Nowhere => true,
                    }
            };
            let expected = branches().any(|block| leaves(*block));
            assert_eq!(
                u.divergent_exit(lp),
                expected,
                "seed {seed}: {lp:?}\n{}",
                facts.func
            );
            left += usize::from(expected);
        }
    }
    assert!(left > 50, "lanes leave {left} loops");
}
