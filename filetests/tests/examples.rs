//! The examples on a device that makes every launch twice, as ever and in the debugger ([`Stepping`]): memory, counts,
//! faults and findings are the same, and from random points back and forward leads to where it began.

#[path = "../../examples/device_call.rs"]
mod device_call;
#[path = "../../examples/elf_cache.rs"]
mod elf_cache;
#[path = "../../examples/faults.rs"]
mod faults;
#[path = "../../examples/halves.rs"]
mod halves;
#[path = "../../examples/histogram.rs"]
mod histogram;
#[path = "../../examples/module_data.rs"]
mod module_data;
#[path = "../../examples/own_driver.rs"]
mod own_driver;
#[path = "../../examples/parallel_compile.rs"]
mod parallel_compile;
#[path = "../../examples/reduction.rs"]
mod reduction;
#[path = "../../examples/saxpy.rs"]
mod saxpy;
#[path = "../../examples/wide.rs"]
mod wide;

use cranelift_thisgpu::Device;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::driver::simulate_with;
use std::error::Error;
use std::fs;
use std::sync::{Arc, LazyLock};
use thisgpu_filetests::stepping::{Stepping, Tally};

/// Points of each launch from which a session goes back.
const POINTS: u32 = 5;
const SEED: u64 = 1;

static TALLY: LazyLock<Arc<Tally>> = LazyLock::new(Arc::default);

fn stepping(config: SimConfig) -> Device {
    Device::new(Stepping::new(config, POINTS, SEED, TALLY.clone()))
}

/// The `main` of an example.
type Main = fn() -> Result<(), Box<dyn Error>>;

/// The examples by name, without `million`, whose million elements take minutes.
const EXAMPLES: [(&str, Main); 11] = [
    ("device_call", device_call::main),
    ("elf_cache", elf_cache::main),
    ("faults", faults::main),
    ("halves", halves::main),
    ("histogram", histogram::main),
    ("module_data", module_data::main),
    ("own_driver", own_driver::main),
    ("parallel_compile", parallel_compile::main),
    ("reduction", reduction::main),
    ("saxpy", saxpy::main),
    ("wide", wide::main),
];

#[test]
fn examples_that_are_stepped_are_as_ever() {
    simulate_with(stepping);
    for (name, main) in EXAMPLES {
        let before = TALLY.launches();
        main().unwrap_or_else(|error| panic!("{name}, seed {SEED}: {error}"));
        let launches = TALLY.launches() - before;
        assert_eq!(
            launches > 0,
            name != "own_driver",
            "{name}: {launches} launches"
        );
    }
    println!("{}", *TALLY);
}

#[test]
fn all_examples_are_here() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut found: Vec<String> = (fs::read_dir(folder).expect("the examples"))
        .map(|entry| entry.expect("a file").path())
        // A folder is a workspace of its own.
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name != "million")
        .collect();
    found.sort();
    assert_eq!(found, EXAMPLES.map(|(name, _)| name));
}
