//! Kernels whose lanes part between barriers of the block, and leave before some. No lane waits for one that waits for
//! it.
//!
//! Each kernel of `barriers/` takes a buffer of 4,096 bytes. The reference is the same kernel with warps of one lane:
//! there nobody waits but at barriers.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Warp instructions that a warp may issue (*assumed*: the kernels take some hundreds).
const BUDGET: u64 = 200_000;
/// Words of the buffer.
const WORDS: usize = 1024;

/// Settings as [`Options::set`] takes them.
const SETTINGS: [&[&str]; 6] = [
    &[],
    &["opt_level=none"],
    &["unroll=off"],
    &["if_convert=false"],
    &["regalloc_algorithm=single_pass"],
    &["opt_level=none", "if_convert=false", "sched=serial"],
];

/// The buffer after a launch of one block.
fn result(text: &str, setting: &[&str], config: SimConfig, at: &str) -> Vec<u32> {
    let mut options = Options::default();
    setting.iter().for_each(|text| options.set(text).unwrap());
    let code = common::compile_with(options, text);
    let device = Device::simulator(config);
    let buffer = device.upload(&[0u32; WORDS]).unwrap();
    let grid = common::block(64);
    common::run(&device, &code, "k", grid, &[&buffer], at);
    buffer.to_vec().unwrap()
}

fn check(name: &str, text: &str) {
    let base = SimConfig {
        budget: BUDGET,
        ..SimConfig::default()
    };
    let alone = SimConfig {
        warp_lanes: 1,
        ..base
    };
    let expected = result(text, &[], alone, name);
    assert!(expected.iter().any(|word| *word != 0), "{name}");
    for setting in SETTINGS {
        let (timed, weak) = (true, Some(7));
        let modes = [
            base,
            SimConfig { timed, ..base },
            SimConfig { weak, ..base },
        ];
        for config in modes {
            let at = format!("{name} {setting:?} {config:?}");
            assert_eq!(result(text, setting, config, &at), expected, "{at}");
        }
    }
}

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            check(stringify!($name), include_str!(concat!("barriers/", stringify!($name), ".clif")));
        }
    )*};
}

kernels!(
    conditional_barrier,
    leaving_lanes,
    loop_in_cycle,
    one_of_three_leaves,
    two_entries,
    two_entries_in_turn,
    two_ways_to_a_barrier,
    vote_before_trap,
    voting_function,
);
