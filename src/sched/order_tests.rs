//! Reordered blocks keep what depends on each other in order, use no more registers than allowed, and are found faster
//! where they are.

use super::dependence::keeps_its_place;
use super::order::{OrderBuffers, order};
use crate::abi::MAX_GPR;
use crate::emit::testing::{self, kernel};
use crate::isa::encode::all_forms;
use crate::isa::generated::{AccessOrder, StoreSize, sts};
use crate::isa::table::{Direction, Effects};
use crate::isa::{Form, Inst, Optype, Register, RegisterClass, Role, VReg, build};
use crate::testing::Random;
use crate::vcode::{Entry, Terminator, VCode};
use hashbrown::{HashMap, HashSet};

/// A random instruction that reads what there is and makes new values.
fn random_inst(
    random: &mut Random,
    forms: &[Form],
    values: &mut HashMap<RegisterClass, Vec<VReg>>,
    count: &mut u32,
) -> Inst<VReg> {
    let mut inst = Inst::new(random.pick(forms));
    for operand in inst.info().operands.iter().filter(|o| o.role != Role::Pg) {
        let Some(class) = operand.class else { continue };
        let known = values.entry(class).or_default();
        let out = operand.direction == Direction::Out;
        if !out && known.is_empty() {
            continue;
        }
        let regs: Vec<Option<VReg>> = (0..inst.register_count(operand))
            .map(|_| {
                if out {
                    *count += 1;
                    Some(VReg::new(class, *count - 1))
                } else {
                    Some(random.pick(known))
                }
            })
            .collect();
        inst.set_regs(operand, &regs);
    }
    let made: Vec<VReg> = inst.definitions().collect();
    for reg in made {
        values.entry(reg.class()).or_default().push(reg);
    }
    inst
}

fn random_block(random: &mut Random, forms: &[Form], most: u64) -> VCode<VReg> {
    let (mut values, mut count) = (HashMap::new(), 0);
    let len = random.below(most);
    let insts = (0..len)
        .map(|_| random_inst(random, forms, &mut values, &mut count))
        .collect();
    let mut code = kernel(vec![(insts, Terminator::Exit)]);
    code.vreg_count = count;
    code
}

/// Whether the order of two instructions may be seen, from their effects.
fn must_stay_in_order(a: &Inst<VReg>, b: &Inst<VReg>) -> bool {
    let effects = |i: &Inst<VReg>| i.optype().info().effects;
    let (x, y) = (effects(a), effects(b));
    let writes = Effects::STORE.union(Effects::ATOMIC);
    let memory = writes.union(Effects::LOAD);
    let apart = [Effects::GLOBAL, Effects::SHARED, Effects::LOCAL];
    // Different windows never overlap; constant memory is never written.
    let disjoint = apart
        .iter()
        .any(|s| x.contains(*s) && apart.iter().any(|t| t != s && y.contains(*t)));
    let constant = x.contains(Effects::CONSTANT) || y.contains(Effects::CONSTANT);
    let seen = x.intersects(memory)
        && y.intersects(memory)
        && (x.intersects(writes) || y.intersects(writes))
        && !disjoint
        && !constant;
    // A barrier of the CTA keeps memory in order, and uniform registers are written where the lanes are together.
    let computes = |i: &Inst<VReg>| {
        let mut results = i.definitions();
        effects(i) == Effects::default() && results.all(|r| r.class() != RegisterClass::Uniform)
    };
    let crosses = |a: &Inst<VReg>, b: &Inst<VReg>| a.optype() == Optype::BAR && computes(b);
    let stays = |a: &Inst<VReg>, b: &Inst<VReg>| keeps_its_place(a) && !crosses(a, b);
    seen || x.contains(Effects::CONVERGENT) && y.contains(Effects::CONVERGENT)
        || stays(a, b)
        || stays(b, a)
}

#[test]
fn what_depends_on_each_other_stays_in_order() {
    let mut random = Random::for_test("order");
    let forms: Vec<Form> = all_forms().collect();
    let moved = stays_in_order(&mut random, &forms, 40, 1500);
    assert!(moved > 500, "{moved}");
}

/// Long blocks in which many values are alive, so that some are computed early.
#[test]
fn what_depends_on_each_other_stays_in_order_under_pressure() {
    let mut random = Random::for_test("order under pressure");
    let plain = |form: &Form| {
        let inst = Inst::<VReg>::new(*form);
        inst.optype() == Optype::BAR || !keeps_its_place(&inst)
    };
    let forms: Vec<Form> = all_forms().filter(plain).collect();
    let moved = stays_in_order(&mut random, &forms, 250, 60);
    assert!(moved > 20, "{moved}");
}

/// Orders so many random blocks of at most so many instructions; how many of them change.
fn stays_in_order(random: &mut Random, forms: &[Form], most: u64, blocks: usize) -> usize {
    let (mut moved, mut scratch) = (0, OrderBuffers::default());
    for _ in 0..blocks {
        let code = random_block(random, forms, most);
        let done = order(code.clone(), MAX_GPR, &mut scratch);
        assert_eq!(code.insts.len(), done.insts.len());
        // Nothing is left of the function before.
        let alone = order(code.clone(), MAX_GPR, &mut OrderBuffers::default());
        assert_eq!(done.to_string(), alone.to_string());
        let mut left: Vec<usize> = (0..code.insts.len()).collect();
        // Instructions make distinct values or are taken for the first equal one that is left.
        let places: Vec<usize> = done
            .insts
            .iter()
            .map(|e: &Entry<VReg>| {
                let at = left
                    .iter()
                    .position(|&i| code.insts[i].inst == e.inst)
                    .expect("the same instructions");
                left.remove(at)
            })
            .collect();
        moved += usize::from(!places.is_sorted());
        for (i, &a) in places.iter().enumerate() {
            for &b in &places[i + 1..] {
                // b now stands behind a; if it stood before, nothing may have told them apart.
                let (first, second) = (&code.insts[b].inst, &code.insts[a].inst);
                assert!(
                    a < b || !must_stay_in_order(first, second),
                    "{first} // {second}\n{code}\n{done}"
                );
            }
        }
        let mut known = HashSet::new();
        for entry in &done.insts {
            assert!(
                entry.inst.uses().all(|r| known.contains(&r)),
                "{code}\n{done}"
            );
            known.extend(entry.inst.definitions());
        }
    }
    moved
}

/// All operands of many sums are loaded before the first sum, and a barrier stands between.
#[test]
fn sums_are_made_early_where_operands_take_all_registers() {
    let reg = |n| VReg::new(RegisterClass::Gpr, n);
    let count = 80;
    let loads = (0..count).map(|n| testing::load(reg(10 + n), [reg(0), reg(1)]));
    let sums = (0..count).map(|n| match n {
        0 => testing::add(reg(200), reg(2), reg(10)),
        _ => testing::add(reg(200 + n), reg(199 + n), reg(10 + n)),
    });
    let barrier = Inst::new(Form::BAR_X);
    let store = testing::store([reg(0), reg(1)], reg(199 + count));
    let insts = loads.chain([barrier]).chain(sums).chain([store]).collect();
    let mut code = kernel(vec![(insts, Terminator::Exit)]);
    code.vreg_count = 300;
    code.entry = (0..3)
        .map(|n| (reg(n), crate::isa::PReg::gpr(4 + n as u8)))
        .collect();
    let done = order(code.clone(), MAX_GPR, &mut OrderBuffers::default());
    let most = |code: &VCode<VReg>| {
        let mut alive = HashSet::new();
        let walk = code.insts.iter().rev().map(|entry| {
            entry.inst.definitions().for_each(|r| {
                alive.remove(&r);
            });
            alive.extend(entry.inst.uses());
            alive.len()
        });
        walk.max().unwrap_or(0)
    };
    assert!(most(&code) > 80, "{}", most(&code));
    assert!(most(&done) <= 56, "{}\n{done}", most(&done));
}

#[test]
fn loads_are_issued_before_the_first_waits() {
    let reg = |n| VReg::new(RegisterClass::Gpr, n);
    let load = |result, address| testing::load(reg(result), [reg(address), reg(address + 1)]);
    let add = |result, a, b| testing::add(reg(result), reg(a), reg(b));
    let store = |address, value| {
        let options = sts::Options::new(StoreSize::W32, AccessOrder::Weak);
        build::sts_rr(options, reg(address), 0, reg(value))
    };
    let insts = vec![
        load(10, 0),
        add(11, 10, 10),
        load(12, 2),
        add(13, 12, 12),
        add(14, 11, 13),
        store(4, 14),
    ];
    let mut code = kernel(vec![(insts, Terminator::Exit)]);
    code.vreg_count = 20;
    code.entry = (0..6)
        .map(|n| (reg(n), crate::isa::PReg::gpr(4 + n as u8)))
        .collect();
    let kinds: Vec<Optype> = order(code, MAX_GPR, &mut OrderBuffers::default())
        .insts
        .iter()
        .map(|e| e.inst.optype())
        .collect();
    assert_eq!(kinds[..2], [Optype::LDG, Optype::LDG]);
}

/// A loop that loads a word, works on it, stores it at an address and adds to the address; the next iteration gets
/// `next` for the address, and the sum in any case.
fn stepping(next: u32) -> VCode<VReg> {
    let reg = |n| VReg::new(RegisterClass::Gpr, n);
    let add = |result, a, b| testing::add(reg(result), reg(a), reg(b));
    let options = sts::Options::new(StoreSize::W32, AccessOrder::Weak);
    let insts = vec![
        testing::load(reg(10), [reg(0), reg(1)]),
        add(11, 10, 10),
        add(12, 11, 11),
        build::sts_rr(options, reg(2), 0, reg(12)),
        add(13, 2, 2),
    ];
    let head = testing::block(1);
    let jump = |args: [u32; 2]| Terminator::Jump {
        target: head,
        args: args.map(reg).to_vec(),
    };
    // So many values before the loop that registers are no reason in it.
    let before = (0..12).map(|n| add(20 + n, 0, 0));
    let after = (0..12).map(|n| add(40 + n, 20 + n, 0));
    let first = before.chain(after).collect();
    let mut code = kernel(vec![(first, jump([0, 0])), (insts, jump([next, 13]))]);
    code.blocks[head].params = vec![reg(2), reg(4)];
    code.vreg_count = 60;
    code.entry = [0, 1]
        .map(|n| (reg(n), crate::isa::PReg::gpr(4 + n as u8)))
        .to_vec();
    code
}

#[test]
fn what_a_loop_hands_on_stays_behind_the_last_read_of_what_it_replaces() {
    let place = |next| {
        let done = order(stepping(next), MAX_GPR, &mut OrderBuffers::default());
        let result = VReg::new(RegisterClass::Gpr, 13);
        done.block_insts(testing::block(1))
            .iter()
            .position(|e| e.inst.definitions().any(|r| r == result))
    };
    assert_eq!(place(13), Some(4));
    // Where the sum is not the next address, it fills the time until the load is there.
    assert_eq!(place(0), Some(1));
}

/// A kernel whose loop tests the bound at its top and a bit of `%1` behind it; the last block ends the kernel.
fn testing_twice() -> VCode<VReg> {
    let gpr = |n| VReg::new(RegisterClass::Gpr, n);
    let predicate = |n| VReg::new(RegisterClass::Predicate, n);
    let branch = |condition, taken, fallthrough| Terminator::Branch {
        guard: crate::vcode::Guard {
            reg: predicate(condition),
            negated: false,
        },
        taken: testing::block(taken),
        fallthrough: testing::block(fallthrough),
        divergent: false,
    };
    let jump = |target, args: &[u32]| Terminator::Jump {
        target: testing::block(target),
        args: args.iter().map(|&n| gpr(n)).collect(),
    };
    let mut code = kernel(vec![
        (vec![], jump(1, &[0])),
        (
            vec![testing::equal(predicate(2), gpr(1), gpr(5))],
            branch(2, 5, 2),
        ),
        (
            vec![
                testing::equal(predicate(3), gpr(1), gpr(6)),
                testing::add(gpr(4), gpr(1), gpr(6)),
                testing::store([gpr(5), gpr(6)], gpr(6)),
            ],
            branch(3, 3, 4),
        ),
        (vec![testing::store([gpr(5), gpr(6)], gpr(5))], jump(4, &[])),
        (vec![], jump(1, &[4])),
        (vec![], Terminator::Exit),
    ]);
    for block in 1..5 {
        code.blocks[testing::block(block)].loop_depth = 1;
    }
    code.blocks[testing::block(1)].params = vec![gpr(1)];
    code.entry = [0, 5, 6]
        .map(|n| (gpr(n), crate::isa::PReg::gpr(4 + n as u8)))
        .to_vec();
    code.vreg_count = 10;
    code
}

/// Which operations stand in a block.
fn operations(code: &VCode<VReg>, block: usize) -> Vec<Optype> {
    let insts = code.block_insts(testing::block(block)).iter();
    insts.map(|e| e.inst.optype()).collect()
}

#[test]
fn what_only_computes_fills_the_time_before_a_branch() {
    let done = order(testing_twice(), MAX_GPR, &mut OrderBuffers::default());
    let [first, second] = [1, 2].map(|block| operations(&done, block));
    assert_eq!(
        first,
        [Optype::ISETP, Optype::ISETP, Optype::IADD],
        "{done}"
    );
    assert_eq!(second, [Optype::STG], "{done}");
}

#[test]
fn what_replaces_a_value_that_is_still_read_is_not_computed_ahead() {
    let mut code = testing_twice();
    // Behind the loop, the old value is wanted.
    let gpr = |n| VReg::new(RegisterClass::Gpr, n);
    let last = testing::store([gpr(5), gpr(6)], gpr(1));
    code.insts.push(Entry {
        inst: last,
        ..code.insts[0]
    });
    code.blocks[testing::block(5)].insts = 5..6;
    let done = order(code, MAX_GPR, &mut OrderBuffers::default());
    assert_eq!(
        operations(&done, 1),
        [Optype::ISETP, Optype::ISETP],
        "{done}"
    );
    assert!(operations(&done, 2).contains(&Optype::IADD), "{done}");
}

#[test]
fn nothing_is_computed_ahead_that_has_to_be_waited_for() {
    let mut code = testing_twice();
    // The bit is of a value whose time is not known: another parameter of the loop.
    let gpr = |n| VReg::new(RegisterClass::Gpr, n);
    code.blocks[testing::block(1)].params.push(gpr(7));
    for (block, args) in [(0, [0, 0]), (4, [4, 6])] {
        code.blocks[testing::block(block)].terminator = Terminator::Jump {
            target: testing::block(1),
            args: args.map(gpr).to_vec(),
        };
    }
    code.insts[1].inst = testing::equal(VReg::new(RegisterClass::Predicate, 3), gpr(7), gpr(6));
    let done = order(code, MAX_GPR, &mut OrderBuffers::default());
    assert_eq!(
        operations(&done, 1),
        [Optype::ISETP, Optype::IADD],
        "{done}"
    );
}
