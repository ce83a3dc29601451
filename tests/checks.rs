//! Planted mistakes and their correct twins under `--check`: a mistake is found with its kernel, block, threads,
//! instructions and lines of the source, the twin is not blamed. In both speeds of the simulator. Mistakes that no CLIF
//! makes are in the simulator's own tests.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::{Device, Grid, Module};
use cranelift_thisgpu::launch::FindingKind;
use cranelift_thisgpu::launch::{AccessKind, Place, Window};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{FaultKind, Report, SimConfig};

#[path = "../examples/million.rs"]
#[allow(
    dead_code,
    reason = "the kernels of the example are used, its main is not"
)]
mod million;

const KERNELS: &str = include_str!("checks/kernels.clif");

/// A pair of kernels, its launch, and what is expected of the one with the mistake.
struct Case {
    name: &'static str,
    blocks: u32,
    threads: u32,
    is_expected: fn(&FindingKind) -> bool,
    /// Parts of the two instructions, that of the finding first; which access of a race comes first is up to the
    /// device.
    instructions: (&'static str, &'static str),
}

const CASES: [Case; 10] = [
    Case {
        name: "shared_race",
        blocks: 1,
        threads: 64,
        is_expected: |kind| {
            matches!(
                kind,
                FindingKind::Race {
                    window: Window::Shared,
                    ..
                }
            )
        },
        instructions: ("LDS", "STS"),
    },
    Case {
        name: "global_race",
        blocks: 1,
        threads: 64,
        is_expected: is_global_race,
        instructions: ("LD", "ST"),
    },
    Case {
        name: "blocks_race",
        blocks: 3,
        threads: 1,
        is_expected: is_global_race,
        instructions: ("LD", "ST"),
    },
    Case {
        name: "plain_atomic",
        blocks: 1,
        threads: 32,
        is_expected: is_global_race,
        instructions: ("LD", "ATOM"),
    },
    Case {
        name: "lock",
        blocks: 8,
        threads: 1,
        is_expected: is_global_race,
        instructions: ("LD", "ST"),
    },
    Case {
        name: "flag",
        blocks: 5,
        threads: 1,
        is_expected: is_global_race,
        instructions: ("LD", "ST"),
    },
    Case {
        name: "last_block",
        blocks: 4,
        threads: 64,
        is_expected: is_global_race,
        instructions: ("LD", "ST"),
    },
    Case {
        name: "narrow",
        blocks: 1,
        threads: 64,
        is_expected: is_global_race,
        instructions: ("LD", "ATOM"),
    },
    Case {
        name: "partial_barrier",
        blocks: 1,
        threads: 64,
        is_expected: |kind| {
            matches!(
                kind,
                FindingKind::PartialBarrier {
                    arrived: 32,
                    threads: 64,
                    number: 1,
                    passed: 0
                }
            )
        },
        instructions: ("BAR.SYNC", "EXIT"),
    },
    Case {
        name: "barrier_count",
        blocks: 1,
        threads: 96,
        is_expected: |kind| {
            matches!(
                kind,
                FindingKind::PartialBarrier {
                    arrived: 64,
                    threads: 96,
                    number: 2,
                    passed: 1
                }
            )
        },
        instructions: ("BAR.SYNC", "EXIT"),
    },
];

fn is_global_race(kind: &FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::Race {
            window: Window::Global,
            ..
        }
    )
}

/// `line N of <clif>` of the line that is marked so.
fn line_of(mark: &str) -> Option<String> {
    let found = KERNELS.lines().position(|line| line.ends_with(mark));
    found.map(|index| format!("line {} of <clif>", index + 1))
}

/// With gaps around stack slots, so that overruns are found.
fn compile(text: &str) -> Code {
    let options = Options {
        stack_redzones: true,
        ..Options::default()
    };
    common::compile_with(options, text)
}

fn launch(module: &Module, device: &Device, name: &str, blocks: u32, threads: u32) -> Report {
    let buffer = device.upload(&[0u32; 1024]).unwrap();
    let kernel = module.kernel(name).unwrap();
    kernel
        .launch(Grid::new([blocks, 1, 1], [threads, 1, 1]))
        .arg(&buffer)
        .run_to_report()
        .unwrap()
}

/// The devices that judge: both speeds.
fn devices() -> [Device; 2] {
    [false, true].map(|timed| {
        Device::simulator(SimConfig {
            timed,
            check: true,
            ..SimConfig::default()
        })
    })
}

fn assert_clean(report: &Report, name: &str) {
    assert!(report.fault.is_none(), "{name}: {:?}", report.fault);
    let findings: Vec<String> = report.findings.iter().map(|f| f.to_string()).collect();
    assert_eq!(findings, [""; 0], "{name}");
}

#[test]
fn planted_mistakes_are_found_and_their_twins_are_not_blamed() {
    let code = compile(KERNELS);
    for device in devices() {
        let module = device.load(&code).unwrap();
        for case in &CASES {
            let twin = format!("{}_twin", case.name);
            let report = launch(&module, &device, &twin, case.blocks, case.threads);
            assert_clean(&report, &twin);

            let bug = format!("{}_bug", case.name);
            let report = launch(&module, &device, &bug, case.blocks, case.threads);
            assert!(report.fault.is_none(), "{bug}: {:?}", report.fault);
            let texts: Vec<String> = report.findings.iter().map(|f| f.to_string()).collect();
            let here = line_of(&format!("; {} here", case.name));
            let there = line_of(&format!("; {} other", case.name));
            let found = report.findings.iter().find(|finding| {
                let Some(other) = &finding.other else {
                    return false;
                };
                let is_at = |place: &Place, line: &Option<String>, instruction| {
                    place.kernel == bug
                        && (line.is_none() || place.source == *line)
                        && place.instruction.contains(instruction)
                };
                let is_pair = |place, other| {
                    is_at(place, &here, case.instructions.0)
                        && is_at(other, &there, case.instructions.1)
                };
                let is_race = matches!(finding.kind, FindingKind::Race { .. });
                (case.is_expected)(&finding.kind)
                    && (is_pair(&finding.place, other) || is_race && is_pair(other, &finding.place))
                    && (finding.place.block, finding.place.thread) != (other.block, other.thread)
            });
            assert!(found.is_some(), "{bug}: {texts:#?}");
        }
    }
}

#[test]
fn overruns_of_stack_slots_are_found() {
    let code = compile(KERNELS);
    let object = code.clone().into_object().write().unwrap();
    for device in devices() {
        // The object file says it too.
        for module in [
            device.load(&code).unwrap(),
            device.load_elf(&object).unwrap(),
        ] {
            for (name, own, slots) in [
                ("neighbour_slot", true, (Some(0), Some(1))),
                ("callers_slot", false, (Some(1), None)),
            ] {
                assert_clean(
                    &launch(&module, &device, &format!("{name}_twin"), 2, 40),
                    name,
                );
                let report = launch(&module, &device, &format!("{name}_bug"), 2, 40);
                let [finding] = &report.findings[..] else {
                    panic!("{name}: {:#?}", report.findings);
                };
                let expected = FindingKind::StackOverrun {
                    access: AccessKind::Store,
                    bytes: 4,
                    own,
                    below: slots.0,
                    above: slots.1,
                };
                assert_eq!(finding.kind, expected, "{finding}");
                let line = line_of(&format!("; {name} here"));
                assert_eq!(finding.place.source, line, "{finding}");
                assert!(finding.place.instruction.contains("ST"), "{finding}");
            }
        }
    }
}

#[test]
fn warps_at_different_barriers_are_a_fault() {
    let code = compile(KERNELS);
    for check in [false, true] {
        let device = Device::simulator(SimConfig {
            check,
            ..SimConfig::default()
        });
        let module = device.load(&code).unwrap();
        assert_clean(
            &launch(&module, &device, "two_barriers_twin", 2, 64),
            "twin",
        );
        let report = launch(&module, &device, "two_barriers_bug", 2, 64);
        let fault = report.fault.expect("a fault");
        let FaultKind::DifferentBarriers { other_thread, .. } = fault.kind else {
            panic!("{fault}");
        };
        assert_eq!(
            (other_thread, fault.place.thread),
            (0, [32, 0, 0]),
            "{fault}"
        );
        assert_eq!(
            fault.place.source,
            line_of("; two_barriers here"),
            "{fault}"
        );
    }
}

#[test]
fn the_kernels_of_the_example_are_not_blamed() {
    let code = compile(million::KERNELS);
    for device in devices() {
        let module = device.load(&code).unwrap();
        let n = 1000u32;
        let input = device.upload(&vec![0x3c00_4000u32; n as usize]).unwrap();
        let output = device.upload(&vec![0u32; n as usize]).unwrap();
        let hash = module.kernel("hash").unwrap();
        let grid = || Grid::for_elems(n, 128);
        let launch = hash.launch(grid()).arg(n).arg(7u64);
        let report = launch.arg(&input).arg(&output).run_to_report().unwrap();
        assert_clean(&report, "hash");
        let saxpy = module.kernel("saxpy").unwrap();
        let launch = saxpy.launch(grid()).arg(n).arg(0x3c00_3c00u32);
        let report = launch.arg(&input).arg(&output).run_to_report().unwrap();
        assert_clean(&report, "saxpy");
    }
}
