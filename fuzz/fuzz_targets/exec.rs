//! [`cranelift_thisgpu_fuzz::exec::states`] for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(init: cranelift_thisgpu_fuzz::begin(), |bytes: &[u8]| {
    cranelift_thisgpu_fuzz::exec::states(bytes);
});
