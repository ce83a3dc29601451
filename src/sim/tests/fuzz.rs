//! Random legal programs: nothing they do may panic, and timing and checks must not change what they compute.

use super::super::SimConfig;
use super::super::launch::Loaded;
use super::{ADDRESS, Bench, words};
use crate::isa::encode::all_forms;
use crate::isa::random::Random;
use crate::isa::{Form, Role};
use crate::launch::{Image, Stats};

/// A program: addresses in R[2:3], then random instructions whose addresses come from there half of the time.
fn program(random: &mut Random, forms: &[Form], count: usize) -> Vec<u128> {
    let mut code = words(ADDRESS);
    while code.len() < count {
        let form = *random.pick(forms);
        let mut inst = random.instruction(form);
        let address = inst.operand(Role::A).filter(|a| {
            a.class == Some(crate::isa::RegisterClass::Gpr) && inst.register_count(a) == 2
        });
        if let Some(operand) = address
            && random.one_in(2)
        {
            inst.set_regs(
                operand,
                &[
                    Some(crate::isa::PReg::gpr(2)),
                    Some(crate::isa::PReg::gpr(3)),
                ],
            );
            if inst.number(Role::Addr).is_some() {
                inst.set_number(Role::Addr, 16 * (random.bits() % 4));
            }
        }
        if let Some(label) = inst.label() {
            let distance = (16 * (random.bits() % 16)).wrapping_sub(16 * 8);
            inst.set_field(label.field, distance);
        }
        code.push(inst.encode(random.control()).expect("a legal instruction"));
    }
    code
}

/// What a launch leaves: memory, the fault, instruction counts.
fn outcome(config: SimConfig, code: &[u128]) -> (Vec<u32>, Option<String>, Stats) {
    let mut bench = Bench::with(
        config,
        "EXIT_X",
        &(0..64).map(|i| i * 0x0101_0101).collect::<Vec<u32>>(),
    );
    bench.loaded = Loaded::new(
        Image {
            words: code.to_vec(),
            ..Image::default()
        },
        &config,
    );
    let report = bench.launch(2, 40, &[]);
    let stats = Stats {
        cycles: 0,
        hazards: 0,
        ..report.stats
    };
    (bench.words(64), report.fault.map(|f| f.to_string()), stats)
}

#[test]
fn random_programs() {
    let seed = 0x5EED_0001;
    let mut random = Random::new(seed);
    let forms: Vec<Form> = all_forms().collect();
    // Without the clock, which timing may change.
    let calm: Vec<Form> = forms
        .iter()
        .copied()
        .filter(|f| !f.info().optype.info().name.starts_with("S2"))
        .collect();
    let (mut faults, mut ends) = (0, 0);
    for round in 0..400 {
        let code = program(&mut random, if round % 2 == 0 { &forms } else { &calm }, 24);
        let config = SimConfig {
            budget: 300,
            ..SimConfig::default()
        };
        let plain = outcome(config, &code);
        let timed = outcome(
            SimConfig {
                timed: true,
                ..config
            },
            &code,
        );
        let checked = outcome(
            SimConfig {
                check: true,
                ..config
            },
            &code,
        );
        assert_eq!(
            plain, checked,
            "checks change the result, seed {seed:#x}, round {round}"
        );
        // Warps interleave differently: with one warp to a CTA all must be equal.
        let one = |config: SimConfig| {
            let mut bench = Bench::with(config, "EXIT_X", &[7; 64]);
            bench.loaded = Loaded::new(
                Image {
                    words: code.clone(),
                    ..Image::default()
                },
                &config,
            );
            let report = bench.launch(1, 32, &[]);
            (
                bench.words(64),
                report.fault.map(|f| f.to_string()),
                report.stats.warp_instructions,
            )
        };
        if round % 2 == 1 {
            assert_eq!(
                one(config),
                one(SimConfig {
                    timed: true,
                    ..config
                }),
                "timing changes the result, seed {seed:#x}, round {round}"
            );
        }
        if timed.1.is_some() {
            faults += 1
        } else {
            ends += 1
        }
    }
    assert!(faults > 0 && ends + faults == 400);
}

/// Words that are not even instructions.
#[test]
fn random_words() {
    let mut random = Random::new(0x5EED_0002);
    for _ in 0..2000 {
        let word = u128::from(random.bits()) | u128::from(random.bits()) << 64;
        let code = [word, words("EXIT_X")[0]];
        let _ = outcome(
            SimConfig {
                budget: 100,
                ..SimConfig::default()
            },
            &code,
        );
    }
}
