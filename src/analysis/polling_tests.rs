//! Which small loops poll, and which do not.

use super::*;
use crate::analysis::calls::{Callees, Summary};
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::ExternalName;

/// The numbers of the blocks of polling cycles of a function with the parameters `v0: i64, v1: i32`.
fn polled(body: &str) -> Vec<u32> {
    let text = format!("function %f(i64, i32) {{\nblock0(v0: i64, v1: i32):\n{body}\n}}");
    let func = cranelift_reader::parse_functions(&text).unwrap().remove(0);
    let name = |reference| match &func.dfg.ext_funcs[reference].name {
        ExternalName::TestCase(name) => Some(String::from_utf8_lossy(name.raw()).into_owned()),
        _ => None,
    };
    let callees = Callees::of(&func, &Intrinsics::default(), &name, &|_| Summary::NONE);
    let flow = ControlFlow::compute(&func, true, &callees);
    let opcode = |inst: Inst| func.dfg.insts[inst].opcode();
    let accesses = Accesses {
        observes: &|inst| {
            matches!(
                opcode(inst),
                Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas
            )
        },
        counts_up: &|inst| counting(&func, inst).is_some(),
        may_be_private: &|inst| {
            let address = func.dfg.inst_args(inst).last().copied();
            address.is_some_and(|address| {
                let def = func.dfg.value_def(address).inst();
                def.is_some_and(|def| opcode(def) == Opcode::StackAddr)
            })
        },
    };
    let mut blocks: Vec<u32> = polled_cycles(&func, &flow, &accesses)
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
