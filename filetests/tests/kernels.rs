//! The kernels of `filetests/kernels` against references on the host, with both allocators, in both modes of the
//! simulator, without hazards.

use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::launch::trace::Row;
use cranelift_thisgpu::settings::Algorithm;
use cranelift_thisgpu::settings::{Options, Unroll};
use cranelift_thisgpu::sim::SimConfig;
use libtest_mimic::{Arguments, Trial};
use std::collections::BTreeMap;
use std::sync::Arc;
use thisgpu_filetests::kernels::{self, Example};
use thisgpu_filetests::stepping::{Stepping, Tally};

fn main() {
    let mut trials = vec![Trial::test("loops_need_no_copies", || {
        loops_need_no_copies();
        Ok(())
    })];
    for example in kernels::ALL {
        for algorithm in [Algorithm::Backtracking, Algorithm::SinglePass] {
            let name = format!("{} {algorithm:?}", example.name);
            trials.push(Trial::test(name, move || {
                let code = compile(&example, algorithm);
                for timed in [false, true] {
                    kernels::run(&example, &code, timed).map_err(|failure| failure.to_string())?;
                }
                Ok(())
            }));
        }
    }
    for example in kernels::ALL {
        let name = format!("{} recorded", example.name);
        trials.push(Trial::test(name, move || {
            recorded(&example);
            Ok(())
        }));
    }
    for example in kernels::ALL {
        let name = format!("{} stepped", example.name);
        trials.push(Trial::test(name, move || {
            stepped(&example);
            Ok(())
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A debugger that goes an instruction at a time, and back, leaves what a launch does.
fn stepped(example: &Example) {
    let code = compile(example, Algorithm::Backtracking);
    for check in [false, true] {
        let config = SimConfig {
            check,
            ..SimConfig::default()
        };
        let tally = Arc::new(Tally::default());
        let stepping = Stepping::new(config, 3, 1, tally.clone());
        let reports = kernels::run_on(example, &code, Device::new(stepping));
        let reports = reports.unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(tally.launches(), reports.len() as u64);
        assert_eq!(tally.points(), 3 * tally.launches());
    }
}

/// Profiles and traces of the kernels add up to what their launches count, and change nothing.
fn recorded(example: &Example) {
    let code = compile(example, Algorithm::Backtracking);
    let plain = SimConfig {
        timed: true,
        ..SimConfig::default()
    };
    let recording = SimConfig {
        profile: true,
        trace_events: Some(1 << 22),
        ..plain
    };
    let [plain, reports] = [plain, recording].map(|config| {
        let reports = kernels::reports(example, &code, config);
        reports.unwrap_or_else(|failure| panic!("{failure}"))
    });
    assert_eq!(plain.len(), reports.len());
    for (plain, report) in plain.iter().zip(&reports) {
        assert_eq!(plain.stats, report.stats);
        let profile = report.profile.as_ref().expect("wanted");
        let trace = report.trace.as_ref().expect("wanted");
        assert_eq!(
            (profile.cycles, trace.cycles),
            (plain.stats.cycles, plain.stats.cycles)
        );
        assert_eq!(trace.dropped, 0);
        let mut issues = 0;
        let mut lanes = 0;
        let mut spent = 0;
        for instruction in &profile.instructions {
            let counts = &instruction.counts;
            issues += counts.issues;
            lanes += counts.lanes;
            spent += counts.issues + counts.stalls.total();
        }
        assert_eq!(issues, plain.stats.warp_instructions);
        assert_eq!(lanes, plain.stats.thread_instructions);
        // Where each row begins, and where it ends so far: a warp does something in every cycle, a scoreboard is raised
        // once at a time.
        let mut rows: BTreeMap<([u32; 3], u32, Row), (u64, u64)> = BTreeMap::new();
        for event in &trace.events {
            let row = (event.block, event.warp, event.row);
            let (_, end) = rows.entry(row).or_insert((event.start, event.start));
            match event.row {
                Row::Warp => assert_eq!(event.start, *end, "{event:?}"),
                Row::Scoreboard(_) => assert!(event.start >= *end, "{event:?}"),
            }
            *end = event.start + event.cycles;
        }
        let warps = || rows.iter().filter(|((_, _, row), _)| *row == Row::Warp);
        assert_eq!(
            warps().map(|(_, (start, end))| end - start).sum::<u64>(),
            spent
        );
        assert_eq!(
            warps().map(|(_, (_, end))| *end).max(),
            Some(plain.stats.cycles)
        );
    }
}

fn compile(example: &Example, algorithm: Algorithm) -> cranelift_thisgpu::compile::Code {
    let options = Options {
        regalloc_algorithm: Some(algorithm),
        ..Options::default()
    };
    example
        .compile(&options)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// What loops carry from one iteration to the next stays where it is, and what is stored together at the end stands
/// together: no loop is longer than its work, nothing is copied behind it. Loops are as they are written, not unrolled.
fn loops_need_no_copies() {
    let options = Options {
        unroll: Unroll::Off,
        ..Options::default()
    };
    let lengths = |name: &str| {
        let example = kernels::ALL.iter().find(|e| e.name == name).unwrap();
        let code = (example.compile(&options)).unwrap_or_else(|errors| panic!("{errors}"));
        let kernel = code.kernels().iter().find(|k| k.name == name).unwrap();
        (kernel.instructions, kernel.loops.clone())
    };
    let (_, loops) = lengths("i64_loop");
    assert!(loops[0] <= 9, "{loops:?}");
    let (_, loops) = lengths("softmax");
    assert!(
        loops[0] <= 7 && loops[1] <= 12 && loops[2] <= 9,
        "{loops:?}"
    );
    let (instructions, loops) = lengths("matmul_rt8x8");
    assert!(instructions <= 656, "{instructions}");
    assert!(loops[0] <= 567, "{loops:?}");
}
