//! [`fuzz::targets::launches::launch`] for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(init: cranelift_thisgpu_fuzz::begin(), |bytes: &[u8]| {
    fuzz::targets::launches::launch(bytes);
});
