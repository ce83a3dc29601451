//! The examples run and check themselves against the host. (`examples/million.rs` is a step of its own in `.ci/run`: a
//! million elements take a while.)

#[path = "../examples/device_call.rs"]
mod device_call;
#[path = "../examples/elf_cache.rs"]
mod elf_cache;
#[path = "../examples/faults.rs"]
mod faults;
#[path = "../examples/halves.rs"]
mod halves;
#[path = "../examples/histogram.rs"]
mod histogram;
#[path = "../examples/module_data.rs"]
mod module_data;
#[path = "../examples/own_driver.rs"]
mod own_driver;
#[path = "../examples/parallel_compile.rs"]
mod parallel_compile;
#[path = "../examples/reduction.rs"]
mod reduction;
#[path = "../examples/saxpy.rs"]
mod saxpy;
#[path = "../examples/wide.rs"]
mod wide;

use std::fs;

/// A test for the `main` of each example, and one that none is missing.
macro_rules! examples {
    ($($test:ident: $name:ident),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                $name::main().unwrap_or_else(|error| panic!("{error}"));
            }
        )*

        #[test]
        fn all_are_here() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
            let mut found: Vec<String> = fs::read_dir(folder)
                .expect("the examples")
                .map(|entry| entry.expect("a file").path())
                // A folder is a workspace of its own.
                .filter(|path| path.extension().is_some_and(|end| end == "rs"))
                .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
                .filter(|name| name != "million")
                .collect();
            found.sort();
            assert_eq!(found, [$(stringify!($name)),*]);
        }
    };
}

examples!(
    functions_call: device_call,
    objects_are_kept: elf_cache,
    faults_are_values: faults,
    halves_are_packed: halves,
    bytes_are_counted: histogram,
    modules_have_data: module_data,
    drivers_can_be_written: own_driver,
    modules_compile_on_threads: parallel_compile,
    blocks_sum_up: reduction,
    saxpy_is_built: saxpy,
    wide_integers_are_integers: wide,
);
