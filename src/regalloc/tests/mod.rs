//! Random functions, executed before and after allocation.

mod campaign;
mod forms;
mod generate;
mod interpret;
mod locations;
mod loops;
mod planted;
mod reduce;

use super::{Algorithm, Allocated, AllocationBuffers, Fallback, MOST_WORK, Options, allocate};
use crate::remarks::{Missed, Remarks};
use generate::Shape;

fn plain(size: usize, window: usize) -> Shape {
    Shape {
        size,
        window,
        predicate_window: 3,
        uniform_window: 8,
        wide: 0,
        guarded: 0,
        calls: 0,
        control: 0,
        device: false,
        tail_calls: 0,
    }
}

fn check(seeds: std::ops::Range<u64>, shape: &Shape, options: &Options) {
    let mut scratch = AllocationBuffers::default();
    for seed in seeds {
        let code = generate::function(seed, shape);
        code.verify()
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{code}"));
        let Allocated {
            code: after,
            report,
            ..
        } = allocate(code.clone(), options, &mut scratch)
            .unwrap_or_else(|e| panic!("seed {seed}, {shape:?}: {e}\n{code}"));
        after
            .verify_shape()
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{after}"));
        for input in 0..3 {
            let (old, new) = (
                interpret::run(&code, input, 300),
                interpret::run(&after, input, 300),
            );
            assert!(
                old == new,
                "seed {seed}, input {input}, {shape:?}, {report:?}:\n{code}\n{after}"
            );
        }
    }
}

fn paths() -> [Options; 2] {
    [Algorithm::SinglePass, Algorithm::Backtracking].map(|algorithm| Options {
        algorithm,
        ..Options::default()
    })
}

#[test]
fn straight() {
    for options in paths() {
        check(0..5, &plain(120, 12), &options);
        check(
            40..80,
            &Shape {
                wide: 40,
                ..plain(120, 20)
            },
            &options,
        );
    }
}

#[test]
fn control_flow() {
    for options in paths() {
        check(
            0..60,
            &Shape {
                control: 40,
                ..plain(200, 12)
            },
            &options,
        );
        check(
            60..120,
            &Shape {
                control: 40,
                wide: 30,
                ..plain(200, 20)
            },
            &options,
        );
    }
}

#[test]
fn guards() {
    for options in paths() {
        check(
            0..60,
            &Shape {
                guarded: 40,
                control: 20,
                ..plain(150, 12)
            },
            &options,
        );
        check(
            60..120,
            &Shape {
                guarded: 40,
                control: 20,
                wide: 30,
                ..plain(150, 12)
            },
            &options,
        );
    }
}

#[test]
fn device_functions() {
    for options in paths() {
        check(
            0..60,
            &Shape {
                device: true,
                control: 20,
                wide: 20,
                guarded: 10,
                ..plain(150, 30)
            },
            &options,
        );
    }
}

#[test]
fn calls() {
    for options in paths() {
        check(
            0..40,
            &Shape {
                calls: 5,
                control: 20,
                ..plain(100, 10)
            },
            &options,
        );
        check(
            40..80,
            &Shape {
                calls: 5,
                control: 20,
                wide: 20,
                device: true,
                ..plain(100, 10)
            },
            &options,
        );
        check(
            80..100,
            &Shape {
                calls: 3,
                control: 20,
                wide: 20,
                guarded: 20,
                device: true,
                ..plain(150, 40)
            },
            &options,
        );
    }
}

#[test]
fn predicates_and_uniforms_beyond_their_files() {
    for options in paths() {
        check(
            0..40,
            &Shape {
                predicate_window: 12,
                control: 20,
                guarded: 20,
                ..plain(200, 10)
            },
            &options,
        );
        check(
            40..50,
            &Shape {
                uniform_window: 90,
                control: 10,
                ..plain(900, 10)
            },
            &options,
        );
    }
}

#[test]
fn few_registers() {
    for options in paths() {
        let options = Options {
            gpr_limit: 24,
            ..options
        };
        check(
            0..40,
            &Shape {
                control: 20,
                ..plain(200, 60)
            },
            &options,
        );
        check(
            40..80,
            &Shape {
                control: 20,
                wide: 30,
                guarded: 10,
                ..plain(200, 60)
            },
            &options,
        );
        check(
            80..100,
            &Shape {
                control: 20,
                wide: 30,
                calls: 3,
                device: true,
                ..plain(200, 60)
            },
            &options,
        );
    }
}

#[test]
fn a_function_that_is_too_long_for_regalloc2_says_so() {
    let options = Options {
        verify: false,
        ..Options::default()
    };
    let mut scratch = AllocationBuffers::default();
    for (size, fallback) in [(200, None), (MOST_WORK + 1_000, Some(Fallback::Long))] {
        let code = generate::function(7, &plain(size, 12));
        assert_eq!(code.insts.len() > MOST_WORK, fallback.is_some());
        let Allocated { report, .. } =
            allocate(code, &options, &mut scratch).expect("it has an allocation");
        assert_eq!(report.source.fallback, fallback);
        let mut remarks = Remarks::new(true);
        report.remark(&mut remarks);
        let told = remarks.finish("f");
        let told = told.iter().any(|r| r.missed == Missed::Backtracking);
        assert_eq!(told, fallback.is_some());
    }
}
