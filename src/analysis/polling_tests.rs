//! Which small loops poll, and which do not.

use super::*;
use crate::analysis::advance::counting;
use crate::analysis::calls::{Callees, Summary};
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::{ExternalName, InstructionData, Opcode, Value};

/// Addresses are in one object if they are one value, and made by `stack_addr` if they are the thread's own.
struct Plainly<'a>(&'a Function);

impl Plainly<'_> {
    fn opcode(&self, inst: Inst) -> Opcode {
        self.0.dfg.insts[inst].opcode()
    }

    fn address(&self, inst: Inst) -> Option<Value> {
        match self.0.dfg.insts[inst] {
            InstructionData::Load { arg, .. } | InstructionData::LoadNoOffset { arg, .. } => {
                Some(arg)
            }
            InstructionData::Store { args, .. } | InstructionData::StoreNoOffset { args, .. } => {
                Some(args[1])
            }
            InstructionData::AtomicRmw { args, .. } => Some(args[0]),
            InstructionData::AtomicCas { args, .. } => Some(args[0]),
            _ => None,
        }
    }

    fn places(&self, inst: Inst) -> Places {
        let def = |address| self.0.dfg.value_def(address).inst();
        match self.address(inst).map(def) {
            None => Places::NONE,
            Some(Some(def)) if self.opcode(def) == Opcode::StackAddr => Places::OWN,
            Some(_) => Places::GLOBAL,
        }
    }
}

impl Accesses for Plainly<'_> {
    fn observes(&self, inst: Inst) -> bool {
        matches!(
            self.opcode(inst),
            Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas
        )
    }

    fn leaves(&self, _: Inst) -> Places {
        Places::NONE
    }

    fn counts_up(&self, inst: Inst) -> bool {
        counting(self.0, inst).is_some()
    }

    fn overwrites(&self, inst: Inst, on: Inst) -> bool {
        self.opcode(inst).can_store() && self.address(inst) == self.address(on)
    }

    fn writes(&self, inst: Inst) -> Places {
        match self.opcode(inst).can_store() {
            true => self.places(inst),
            false => Places::NONE,
        }
    }

    fn reads(&self, inst: Inst) -> Places {
        match self.opcode(inst).can_load() {
            true => self.places(inst),
            false => Places::NONE,
        }
    }

    fn convergent(&self, _: Inst) -> bool {
        false
    }
}

/// The numbers of the blocks of polling cycles of a function with the parameters `v0: i64, v1: i32`.
fn polled(body: &str) -> Vec<u32> {
    let text = format!(
        "function %f(i64, i32) {{\nss0 = explicit_slot 4\nblock0(v0: i64, v1: i32):\n{body}\n}}"
    );
    let func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
    let name = |reference| match &func.dfg.ext_funcs[reference].name {
        ExternalName::TestCase(name) => Some(String::from_utf8_lossy(name.raw()).into_owned()),
        _ => None,
    };
    let callees = Callees::of(&func, &Intrinsics::default(), &name, &|_| Summary::NONE);
    let flow = ControlFlow::compute(&func, true, &callees);
    let mut blocks: Vec<u32> = polled_cycles(&func, &flow, &Plainly(&func))
        .iter()
        .flat_map(|cycle| cycle.blocks.iter().map(|block| block.as_u32()))
        .collect();
    blocks.sort_unstable();
    blocks
}

const NONE: [u32; 0] = [];

#[test]
fn locks_poll() {
    let cas = "v2 = iconst.i32 0
        jump block1
        block1:
        v3 = atomic_cas.i32 v0, v2, v1
        brif v3, block1, block2
        block2:
        return";
    assert_eq!(polled(cas), [1]);
    let exchange = cas.replace("atomic_cas.i32 v0, v2, v1", "atomic_rmw.i32 xchg v0, v1");
    assert_eq!(polled(&exchange), [1]);
    let load = cas.replace("atomic_cas.i32 v0, v2, v1", "atomic_load.i32 v0");
    assert_eq!(polled(&load), [1]);
    let plain = cas.replace("atomic_cas.i32 v0, v2, v1", "load.i32 v0");
    assert_eq!(polled(&plain), NONE, "who waits uses atomics");
}

#[test]
fn a_spin_in_a_loop_polls_and_the_loop_does_not() {
    let text = "jump block1(v1)
        block1(v2: i32):
        jump block2
        block2:
        v3 = atomic_load.i32 v0
        brif v3, block2, block3
        block3:
        v4 = isub v2, v1
        brif v4, block1(v4), block4
        block4:
        return";
    assert_eq!(polled(text), [2]);
}

#[test]
fn two_ways_around_through_one_header_poll() {
    let text = "jump block1
        block1:
        v3 = atomic_load.i32 v0
        brif v3, block2, block3
        block2:
        jump block1
        block3:
        brif v1, block1, block4
        block4:
        return";
    assert_eq!(polled(text), [1, 2]);
}

#[test]
fn retries_that_read_anew_do_not_poll() {
    let with = |expected: &str| {
        format!(
            "v2 = iconst.i32 0
            v3 = atomic_load.i32 v0
            jump block1(v3)
            block1(v4: i32):
            v5 = iadd v4, v1
            v6 = atomic_cas.i32 v0, {expected}, v5
            v7 = icmp eq v6, {expected}
            brif v7, block2, block1(v6)
            block2:
            return"
        )
    };
    assert_eq!(polled(&with("v4")), NONE);
    assert_eq!(
        polled(&with("v3")),
        [1],
        "the value is stale in the second turn"
    );
    assert_eq!(polled(&with("v2")), [1]);
    let reload = "jump block1
        block1:
        v4 = load.i32 v0
        v5 = iadd v4, v1
        v6 = atomic_cas.i32 v0, v4, v5
        v7 = icmp ne v6, v4
        brif v7, block1, block2
        block2:
        return";
    assert_eq!(polled(reload), NONE);
}

#[test]
fn counting_up_is_no_waiting() {
    let with = |operand: &str| {
        format!(
            "v2 = iconst.i32 1
            v3 = iconst.i32 0
            jump block1
            block1:
            v4 = atomic_rmw.i32 add v0, {operand}
            v5 = icmp ult v4, v1
            brif v5, block1, block2
            block2:
            return"
        )
    };
    assert_eq!(polled(&with("v2")), NONE);
    assert_eq!(polled(&with("v3")), [1]);
    assert_eq!(polled(&with("v1")), [1]);
}

#[test]
fn results_that_decide_nothing_do_not_poll() {
    let text = "jump block1(v1)
        block1(v2: i32):
        v3 = atomic_rmw.i32 umax v0, v2
        brif v3, block2, block3
        block2:
        store v3, v0
        jump block3
        block3:
        v4 = isub v2, v1
        brif v4, block1(v4), block4
        block4:
        return";
    assert_eq!(polled(text), NONE);
    let steered = text.replace("brif v4, block1(v4)", "brif v4, block1(v3)");
    assert_eq!(
        polled(&steered),
        [1, 2, 3],
        "the next turn starts from what was read"
    );
}

#[test]
fn counters_that_come_round_poll() {
    let with = |amount: &str, condition: &str| {
        format!(
            "v2 = iconst.i32 {amount}
            v3 = iconst.i32 1000
            v10 = sextend.i64 v1
            jump block1
            block1:
            v4 = atomic_rmw.i32 add v0, v2
            {condition}
            brif v5, block1, block2
            block2:
            return"
        )
    };
    let below = "v5 = icmp ult v4, v1";
    assert_eq!(polled(&with("1", below)), NONE);
    // Of an unknown bound the last values may be jumped over.
    assert_eq!(polled(&with("2", below)), [1]);
    assert_eq!(polled(&with("2", "v5 = icmp ult v4, v3")), NONE);
    assert_eq!(polled(&with("1000", "v5 = icmp ule v4, v3")), NONE);
    assert_eq!(
        polled(&with("2", "v6 = iconst.i32 -2\nv5 = icmp ult v4, v6")),
        NONE
    );
    assert_eq!(
        polled(&with("2", "v6 = iconst.i32 -2\nv5 = icmp ule v4, v6")),
        [1]
    );
    assert_eq!(
        polled(&with("2", "v6 = iconst.i32 -2\nv5 = icmp sle v4, v6")),
        NONE
    );
    assert_eq!(polled(&with("1", "v5 = icmp ugt v3, v4")), NONE);
    assert_eq!(
        polled(&with("1", "v6 = icmp ult v4, v1\nv5 = uextend.i32 v6")),
        NONE
    );
    // The other way, equality, and what was changed.
    assert_eq!(polled(&with("1", "v5 = icmp ugt v4, v1")), [1]);
    assert_eq!(polled(&with("-1", below)), [1]);
    assert_eq!(polled(&with("-1", "v5 = icmp ugt v4, v1")), NONE);
    assert_eq!(polled(&with("1", "v5 = icmp ne v4, v1")), [1]);
    assert_eq!(
        polled(&with("1", "v6 = band v4, v3\nv5 = icmp ult v6, v1")),
        [1]
    );
    assert_eq!(
        polled(&with("1", "v6 = imul v4, v3\nv5 = icmp ult v6, v1")),
        [1]
    );
    assert_eq!(
        polled(&with(
            "1",
            "v6 = ireduce.i8 v4\nv7 = ireduce.i8 v3\nv5 = icmp ult v6, v7"
        )),
        [1]
    );
    // Extended it is in the same order, but as a signed number among unsigned ones.
    assert_eq!(
        polled(&with("1", "v6 = uextend.i64 v4\nv5 = icmp ult v6, v10")),
        NONE
    );
    assert_eq!(
        polled(&with("1", "v6 = sextend.i64 v4\nv5 = icmp slt v6, v10")),
        NONE
    );
    assert_eq!(
        polled(&with("1", "v6 = sextend.i64 v4\nv5 = icmp ult v6, v10")),
        [1]
    );
    // A bound that moves.
    let moving = with("1", below)
        .replace("v4, v1", "v4, v8")
        .replace("block1:", "block1(v8: i32):");
    let moving = moving.replace("jump block1", "jump block1(v1)");
    assert_eq!(polled(&moving.replace("v5, block1", "v5, block1(v1)")), [1]);
    assert_eq!(polled(&moving.replace("v5, block1", "v5, block1(v4)")), [1]);
    // A turn that does not add reads nothing either: it waits for nobody.
    let still = with("1", below).replace("v5, block1", "v5, block3")
        + "\nblock3:\nbrif v1, block1, block4\nblock4:\nbrif v5, block3, block2";
    assert_eq!(polled(&still), NONE);
}

#[test]
fn a_swap_that_expects_what_this_thread_has_changed_polls() {
    let with = |read: &str, between: &str| {
        format!(
            "v2 = iconst.i32 1
            jump block1
            block1:
            v4 = {read}
            {between}
            v5 = iadd v4, v1
            v6 = atomic_cas.i32 v0, v4, v5
            v7 = icmp ne v6, v4
            brif v7, block1, block2
            block2:
            return"
        )
    };
    assert_eq!(polled(&with("load.i32 v0", "")), NONE);
    assert_eq!(polled(&with("atomic_load.i32 v0", "")), NONE);
    assert_eq!(polled(&with("atomic_rmw.i32 add v0, v2", "")), [1]);
    assert_eq!(polled(&with("atomic_cas.i32 v0, v1, v2", "")), [1]);
    assert_eq!(polled(&with("load.i32 v0", "store v2, v0")), [1]);
    assert_eq!(
        polled(&with("load.i32 v0", "v8 = atomic_rmw.i32 add v0, v2")),
        [1]
    );
}

#[test]
fn what_was_read_is_followed_through_all_memory() {
    for pointer in ["v0", "v9"] {
        let text = format!(
            "v9 = stack_addr.i64 ss0
            v2 = iconst.i32 0
            jump block1
            block1:
            v3 = atomic_cas.i32 v0, v2, v1
            store v3, {pointer}
            v4 = load.i32 {pointer}
            brif v4, block1, block2
            block2:
            return"
        );
        assert_eq!(polled(&text), [1]);
        let other = text.replace(
            &format!("load.i32 {pointer}"),
            if pointer == "v0" {
                "load.i32 v9"
            } else {
                "load.i32 v0"
            },
        );
        assert_eq!(polled(&other), NONE, "other memory");
    }
}

#[test]
fn loops_that_read_nothing_do_not_poll() {
    let text = "jump block1
        block1:
        v3 = atomic_rmw.i32 and v0, v1
        jump block2(v3)
        block2(v4: i32):
        v5 = isub v4, v1
        brif v5, block2(v5), block3
        block3:
        v6 = icmp ult v3, v1
        brif v6, block1, block4
        block4:
        return";
    assert_eq!(polled(text), [1, 2, 3]);
    let counted = text.replace("v6 = icmp ult v3, v1", "v6 = icmp ult v1, v1");
    assert_eq!(polled(&counted), NONE);
}
