//! LLVM IR as rustc prints it, read and translated to CLIF: errors are errors.

#![no_main]

libfuzzer_sys::fuzz_target!(init: cranelift_thisgpu_fuzz::begin(), |bytes: &[u8]| {
    cranelift_thisgpu_fuzz::llvm(bytes);
});
