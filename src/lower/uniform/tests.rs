//! The decision itself, where code would show it only in part.

use super::Plan;
use crate::analysis;
use crate::clif::source::SourceFile;
use crate::clif::{self, KernelOptions, Preparer};
use crate::lower::{Facts, Input};
use crate::vcode::{FunctionKind, KernelInfo, Parameter};
use cranelift_codegen::ir::{Function, Opcode, types};
use std::fmt::Write;

/// The kernel `(i64, i32, i32)` with these lines after v10, the number of the block, and v11, that of the thread: its
/// plan and what it is for.
fn decide(lines: &str) -> (Function, Plan) {
    decide_with(lines, false)
}

/// The same as if there were calls.
fn decide_with(lines: &str, has_calls: bool) -> (Function, Plan) {
    let text = format!(
        "; kernel\nfunction %k(i64, i32, i32) {{\nfn0 = %gpu_ctaid_x() -> i32\nfn1 = %gpu_tid_x() -> i32\nblock0(v0: i64, v1: i32, v2: i32):\n\
         v10 = call fn0()\nv11 = call fn1()\n{lines}\n}}"
    );
    let function = (SourceFile::parse("k.clif", &text).unwrap().functions).remove(0);
    let options = clif::Options {
        kernel: Some(KernelOptions::default()),
        ..clif::Options::DEVICE
    };
    let prepared = (Preparer::new())
        .prepare(function.func, &options, &mut |_, _| {})
        .unwrap();
    let facts = analysis::Facts::compute(&prepared.subject());
    let at = [
        (0x160, types::I64),
        (0x168, types::I32),
        (0x16c, types::I32),
    ];
    let parameters = at.map(|(offset, ty)| Parameter { offset, ty }).to_vec();
    let input = Input {
        func: &prepared.func,
        name: "k",
        kind: FunctionKind::Kernel(KernelInfo {
            parameters,
            shared_bytes: 0,
            max_threads: None,
            min_blocks: None,
        }),
        facts: Facts {
            flow: &prepared.flow,
            meetings: &prepared.meetings,
            uniformity: &facts.uniformity,
            provenance: &facts.provenance,
            alignment: &facts.alignment,
            users: &facts.users,
            intrinsics: &prepared.intrinsics,
            ordering: &facts.ordering,
        },
        names: &|_| String::new(),
        assume_aligned: false,
        stack_redzones: false,
    };
    let plan = Plan::new(&input, has_calls);
    (prepared.func, plan)
}

/// How many results of an opcode live in uniform registers, and how many there are.
fn count((func, plan): &(Function, Plan), opcode: Opcode) -> (usize, usize) {
    let insts = func
        .layout
        .blocks()
        .flat_map(|b| func.layout.block_insts(b));
    let of = insts.filter(|&i| func.dfg.insts[i].opcode() == opcode);
    let values: Vec<_> = of.map(|i| func.dfg.first_result(i)).collect();
    let uniform = values.iter().filter(|&&v| plan.is_uniform(v)).count();
    (uniform, values.len())
}

/// Parameters of the block, how many live in uniform registers.
fn parameters((func, plan): &(Function, Plan)) -> usize {
    let all = (func.layout.blocks()).flat_map(|block| func.dfg.block_params(block));
    all.filter(|&&v| plan.is_uniform(v)).count()
}

#[test]
fn a_value_stays_when_many_that_are_made_of_it_go() {
    // Stores need general registers: forty products go, and what they are made of is the other factor of a
    // multiplication.
    let mut lines = "v20 = iadd v10, v1\n".to_owned();
    for i in 0..40 {
        let (factor, product) = (100 + 2 * i, 101 + 2 * i);
        writeln!(lines, "v{factor} = load.i32 v0+{}", 4 * i).unwrap();
        writeln!(lines, "v{product} = imul v20, v{factor}").unwrap();
        writeln!(lines, "store v{product}, v0+{}", 4 * i + 256).unwrap();
        // Uniform itself, until it is stored.
        writeln!(lines, "v{} = bxor v20, v11", 300 + 2 * i).unwrap();
        writeln!(lines, "v{} = isub v20, v{}", 301 + 2 * i, 300 + 2 * i).unwrap();
        writeln!(lines, "store v{}, v0+{}", 301 + 2 * i, 4 * i + 512).unwrap();
    }
    let decided = decide(&(lines + "return"));
    assert_eq!(count(&decided, Opcode::Iadd), (1, 1), "{}", decided.0);
    let (uniform, all) = count(&decided, Opcode::Imul);
    assert!(uniform == 0 && all > 0, "{}", decided.0);
}

#[test]
fn only_what_a_loop_carries_counts_as_its_chain() {
    let around = |before: &str, inside: &str| {
        format!(
            "v20 = iconst.i32 0\nv21 = iconst.i32 1\n{before}\njump block1(v20, v11)\nblock1(v30: i32, v31: i32):\n{inside}\nv33 = bxor v31, v30\n\
             v34 = icmp ult v32, v2\nbrif v34, block1(v32, v33), block2\nblock2:\nstore v33, v0\nreturn"
        )
    };
    let far = "v22 = iadd v10, v1\nv23 = imul v22, v2\nv24 = isub v23, v22\nv25 = imul v24, v23\nv26 = isub v25, v24";
    // One addition from round to round, of a value that takes long but is there before.
    let invariant = decide(&around(far, "v32 = iadd v30, v26"));
    assert_eq!(parameters(&invariant), 1, "{}", invariant.0);
    // The same operations on what is carried.
    let chain = "v22 = iadd v30, v1\nv23 = imul v22, v2\nv24 = isub v23, v22\nv25 = imul v24, v23\nv32 = isub v25, v24";
    let carried = decide(&around("", chain));
    assert_eq!(parameters(&carried), 0, "{}", carried.0);
}

#[test]
fn what_is_moved_up_stands_in_order() {
    // A divergent block in another one: all of it is computed in the entry, operands first.
    let decided = decide(
        "brif v11, block1, block4\nblock1:\nv20 = iadd v10, v1\nv21 = imul v20, v2\nv22 = isub v21, v20\nv23 = bxor v11, v22\n\
         v24 = icmp ult v23, v11\nbrif v24, block2, block4\nblock2:\nv25 = isub v22, v2\nv26 = bxor v23, v25\nstore v26, v0\njump block4\nblock4:\nstore v11, v0+8\nreturn",
    );
    let (func, plan) = &decided;
    let entry = func.layout.entry_block().unwrap();
    let moved = plan.moved(entry);
    assert_eq!(count(&decided, Opcode::Isub), (2, 2), "{func}");
    assert!(moved.len() >= 4, "{func}");
    assert!(moved.iter().all(|&inst| plan.is_elsewhere(inst)));
    for (at, &inst) in moved.iter().enumerate() {
        for &arg in func.dfg.inst_args(inst) {
            let before = |&other: &_| func.dfg.first_result(other) == arg;
            let late = moved[at..].iter().any(before);
            assert!(!late, "{arg} in\n{func}");
        }
    }
}

#[test]
fn nothing_is_uniform_beside_a_call() {
    let text = "v20 = iadd v10, v1\nv21 = bxor v11, v20\nstore v21, v0\nreturn";
    assert_eq!(count(&decide(text), Opcode::Iadd), (1, 1));
    assert_eq!(count(&decide_with(text, true), Opcode::Iadd), (0, 1));
}
