//! Reports of small functions.

use crate::compile::{Compiler, Pass};
use crate::settings::Options;
use std::sync::{Arc, Mutex};

use super::purpose::Purpose;
use super::{CodeReport, InstructionReport};

fn report_of(text: &str, settings: &[&str]) -> CodeReport {
    let mut options = Options::default();
    for setting in settings {
        options.set(setting).expect("a setting");
    }
    let mut compiler = Compiler::new(options);
    compiler.report_code(true);
    let found = Arc::new(Mutex::new(None));
    let sink = Arc::clone(&found);
    compiler.dump_after(
        &[Pass::Control],
        Box::new(move |dump| *sink.lock().unwrap() = dump.report.cloned()),
    );
    compiler.compile_clif(text).expect("right");
    found.lock().unwrap().take().expect("a report")
}

const LOOP: &str = "; kernel
function %f(i32, i64) {
fn0 = %gpu_tid_x() -> i32
block0(v0: i32, v1: i64):
v2 = call fn0()
v3 = iconst.i32 0
jump block1(v2, v3)
block1(v4: i32, v5: i32):
v6 = iadd v5, v4
v11 = iconst.i32 1
v7 = ushr v4, v11
brif v7, block1(v7, v6), block2
block2:
v8 = uextend.i64 v2
v12 = iconst.i32 2
v9 = ishl v8, v12
v10 = iadd v1, v9
store.i32 aligned v6, v10
return
}";

#[test]
fn a_divergent_loop_has_its_barrier_its_life_and_its_time() {
    let report = report_of(LOOP, &["unroll=off"]);
    let body = report
        .blocks
        .iter()
        .position(|b| b.depth == 1)
        .expect("a loop");
    let block = &report.blocks[body];
    assert!(block.successors.contains(&body) && block.divergent);
    assert_eq!(block.header, Some(body));
    let set = report
        .blocks
        .iter()
        .flat_map(|b| &b.sets)
        .collect::<Vec<_>>();
    let met: Vec<_> = report.blocks.iter().flat_map(|b| &b.meets).collect();
    assert_eq!(set.len(), 1);
    assert_eq!(met, [&set[0].0]);
    let (barrier, place) = set[0];
    let place = place.expect("a block of the function");
    assert!(report.blocks[place].meets.contains(barrier));
    // The barrier is alive from where it is set to where the lanes meet.
    assert!(block.alive.contains(barrier));
    assert!(!report.instructions.last().unwrap().alive.contains(barrier));
    assert!(report.blocks[0].alive.is_empty(), "{:?}", report.blocks[0]);
    for block in &report.blocks {
        let all = &report.instructions[block.first..block.first + block.count];
        assert!(all.windows(2).all(|pair| pair[0].issue < pair[1].issue));
        assert!(all.iter().all(|inst| inst.issue < block.cycles));
    }
    // What is read behind an instruction was alive there.
    for block in &report.blocks {
        let all = &report.instructions[block.first..block.first + block.count];
        for pair in all.windows(2) {
            for read in &pair[1].reads {
                assert!(pair[0].alive.contains(read), "{read} in {pair:?}");
            }
        }
    }
}

#[test]
fn arguments_of_calls_and_results_are_alive() {
    let text = "function %f(i32, i32) -> i32 {
fn0 = %g(i32) -> i32
block0(v0: i32, v1: i32):
v2 = call fn0(v0)
v3 = iadd v2, v1
return v3
}";
    let report = report_of(text, &[]);
    let call = report
        .instructions
        .iter()
        .position(|i| i.text.starts_with("CALL"));
    let call = call.expect("a call");
    assert!(
        report.instructions[call - 1]
            .alive
            .iter()
            .any(|r| r == "R4")
    );
    assert!(report.instructions[call].alive.iter().any(|r| r == "R4"));
    let end = report
        .instructions
        .iter()
        .position(|i| i.text.starts_with("RET"));
    let end = end.expect("a return");
    assert!(report.instructions[end - 1].alive.iter().any(|r| r == "R4"));
    assert!(report.blocks[0].alive.iter().any(|r| r == "R5"));
}

#[test]
fn returns_keep_no_arguments_of_tail_calls_alive() {
    let text = "function %f(i32, i32, i32) -> i32 tail {
fn0 = %g(i32, i32, i32) -> i32 tail
block0(v0: i32, v1: i32, v2: i32):
brif v0, block1, block2
block1:
v4 = imul v1, v2
return_call fn0(v4, v0, v2)
block2:
v3 = iadd v1, v2
return v3
}";
    let report = report_of(text, &[]);
    let before = |name: &str| {
        let is_end = |i: &InstructionReport| i.text.starts_with(name);
        let end = report.instructions.iter().rposition(is_end);
        &report.instructions[end.expect("an end") - 1].alive
    };
    assert_eq!(before("RET"), &["R2", "R3", "R4"]);
    assert_eq!(before("BRA"), &["R2", "R3", "R4", "R5", "R6"]);
}

#[test]
fn spills_are_told() {
    let values: String = (0..40)
        .map(|i| format!("    v{} = load.i32 aligned v1+{}\n", 10 + i, 4 * i))
        .collect();
    let stores: String = (0..40)
        .map(|i| {
            format!(
                "    store.i32 aligned v{}, v0+{}\n",
                10 + (i * 7) % 40,
                4 * i
            )
        })
        .collect();
    let text = format!(
        "; kernel\nfunction %f(i64, i64) {{\nblock0(v0: i64, v1: i64):\n{values}    fence\n{stores}    return\n}}"
    );
    let report = report_of(&text, &["regs=24", "merge_accesses=false"]);
    let of = |purpose| {
        let all = report.instructions.iter();
        all.filter(|i| i.purpose == Some(purpose)).count()
    };
    assert!(of(Purpose::Spill) > 0 && of(Purpose::Reload) > 0);
}
