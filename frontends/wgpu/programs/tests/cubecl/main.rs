//! CubeCL's own tests by a second route: its runtime for wgpu makes WGSL of its kernels, which naga and this project's
//! back end of wgpu take. `recorded.rs` says what must come of them.

mod recorded;
mod route;

mod tests {
    use cubecl_core::prelude::*;

    pub type TestRuntime = crate::route::Route;

    cubecl_core::testgen_all!(f32: [f32], i32: [i32], u32: [u32]);
    cubecl_std::testgen!();
}
