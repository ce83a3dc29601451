//! CubeCL's own tests, which it generates for a runtime and types, and the record of what came of them.
//!
//! `cargo test -p cubecl-thisgpu --test cubecl recorded` runs them all, one process each, and compares with
//! `results.txt`; `CRANELIFT_TEST_BLESS=1` writes it.

mod recorded;

mod tests {
    use cubecl_core::prelude::*;
    pub use half::{bf16, f16};

    pub type TestRuntime = cubecl_thisgpu::ThisgpuRuntime;

    cubecl_core::testgen_all!(f32: [f16, bf16, f32, f64], i32: [i8, i16, i32, i64], u32: [u8, u16, u32, u64]);
    cubecl_std::testgen!();
    cubecl_std::testgen_tensor_identity!([f16, bf16, f32, u32]);
    cubecl_std::testgen_tensor_into_contiguous!();
    cubecl_std::testgen_quantized_view!(f32);
    cubecl_core::testgen_complex_validation!();
}
