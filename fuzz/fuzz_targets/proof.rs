//! [`fuzz::targets::structured::proof`] for libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(init: cranelift_thisgpu_fuzz::begin(), |bytes: &[u8]| {
    fuzz::targets::structured::proof(bytes);
});
