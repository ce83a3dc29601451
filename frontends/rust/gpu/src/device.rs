//! The device's own operations, each with what it means where the crate is compiled for the host.
//!
//! On the device each is a function of the code generator's (`%gpu_NAME` in its table of intrinsics, or one CLIF
//! instruction on a type that stable Rust has no name for). On the host the crate behaves as a launch of one thread:
//! its indices are 0, its extents 1, it is alone at every barrier and in its warp. So `cargo test` runs the pure parts
//! of a kernel crate, and whole kernels of one thread.

#[cfg(not(thisgpu))]
use crate::float::Float;
#[cfg(not(thisgpu))]
use crate::host;

/// Declares `name(parameters) -> result`, whose body is what the host does.
macro_rules! device {
    ($(
        $(#[$attribute:meta])*
        $symbol:literal fn $name:ident($($parameter:ident: $type:ty),*) $(-> $result:ty)? $host:block
    )*) => {
        #[cfg(thisgpu)]
        mod imported {
            unsafe extern "C" {
                $(
                    #[link_name = concat!("__thisgpu_", $symbol)]
                    pub safe fn $name($($parameter: $type),*) $(-> $result)?;
                )*
            }
        }
        $(
            $(#[$attribute])*
            #[inline(always)]
            #[cfg(thisgpu)]
            pub(crate) fn $name($($parameter: $type),*) $(-> $result)? {
                imported::$name($($parameter),*)
            }
            $(#[$attribute])*
            #[cfg(not(thisgpu))]
            pub(crate) fn $name($($parameter: $type),*) $(-> $result)? $host
        )*
        /// What the code generator must know, by the names that it has for them.
        #[cfg(test)]
        pub(crate) const SYMBOLS: &[&str] = &[$($symbol),*];
    };
}

device! {
    "tid_x" fn tid_x() -> u32 { 0 }
    "tid_y" fn tid_y() -> u32 { 0 }
    "tid_z" fn tid_z() -> u32 { 0 }
    "ntid_x" fn ntid_x() -> u32 { 1 }
    "ntid_y" fn ntid_y() -> u32 { 1 }
    "ntid_z" fn ntid_z() -> u32 { 1 }
    "ctaid_x" fn ctaid_x() -> u32 { 0 }
    "ctaid_y" fn ctaid_y() -> u32 { 0 }
    "ctaid_z" fn ctaid_z() -> u32 { 0 }
    "nctaid_x" fn nctaid_x() -> u32 { 1 }
    "nctaid_y" fn nctaid_y() -> u32 { 1 }
    "nctaid_z" fn nctaid_z() -> u32 { 1 }
    "laneid" fn laneid() -> u32 { 0 }
    "warpid" fn warpid() -> u32 { 0 }
    "bar_sync" fn bar_sync() {}
    "warp_sync" fn warp_sync(_mask: u32) {}
    "membar_cta" fn membar_cta() { core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst) }
    "membar_gl" fn membar_gl() { core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst) }
    "membar_sys" fn membar_sys() { core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst) }
    "shfl_idx" fn shfl_idx(value: u32, _lane: u32) -> u32 { value }
    "shfl_up" fn shfl_up(value: u32, _distance: u32) -> u32 { value }
    "shfl_down" fn shfl_down(value: u32, _distance: u32) -> u32 { value }
    "shfl_bfly" fn shfl_bfly(value: u32, _mask: u32) -> u32 { value }
    "ballot" fn ballot(predicate: u8) -> u32 { u32::from(predicate != 0) }
    "vote_all" fn vote_all(predicate: u8) -> u8 { u8::from(predicate != 0) }
    "vote_any" fn vote_any(predicate: u8) -> u8 { u8::from(predicate != 0) }
    "activemask" fn activemask() -> u32 { 1 }
    "match_any" fn match_any(_value: u32) -> u32 { 1 }
    "ex2_f32" fn ex2_f32(x: f32) -> f32 { Float::exp2(x) }
    "lg2_f32" fn lg2_f32(x: f32) -> f32 { Float::log2(x) }
    "rcp_f32" fn rcp_f32(x: f32) -> f32 { 1.0 / x }
    "rsq_f32" fn rsq_f32(x: f32) -> f32 { 1.0 / Float::sqrt(x) }
    "sqrt_f32" fn sqrt_f32(x: f32) -> f32 { Float::sqrt(x) }
    "sin_f32" fn sin_f32(x: f32) -> f32 { Float::sin(x) }
    "cos_f32" fn cos_f32(x: f32) -> f32 { Float::cos(x) }
    "tanh_f32" fn tanh_f32(x: f32) -> f32 { Float::tanh(x) }
    "dp4a_s8s8" fn dp4a_s8s8(a: u32, b: u32, c: u32) -> u32 {
        host::dot(a.to_le_bytes().map(|x| i32::from(x as i8)), b.to_le_bytes().map(|x| i32::from(x as i8)), c)
    }
    "dp4a_u8u8" fn dp4a_u8u8(a: u32, b: u32, c: u32) -> u32 {
        host::dot(a.to_le_bytes().map(i32::from), b.to_le_bytes().map(i32::from), c)
    }
    "assume_aligned" fn assume_aligned(place: *const u8, _bytes: u32) -> *const u8 { place }
    "atomic_add_f32" fn atomic_add_f32(place: *mut f32, value: f32) -> f32 {
        host::changed(place.cast(), |old| (f32::from_bits(old) + value).to_bits(), f32::from_bits)
    }
    "atomic_add_f16x2" fn atomic_add_f16x2(place: *mut u32, value: u32) -> u32 {
        host::changed(place, |old| fadd_f16x2(old, value), |old| old)
    }
    "clif_fadd_f16" fn fadd_f16(a: u16, b: u16) -> u16 { host::rounded(a, b, |a, b| a + b) }
    "clif_fsub_f16" fn fsub_f16(a: u16, b: u16) -> u16 { host::rounded(a, b, |a, b| a - b) }
    "clif_fmul_f16" fn fmul_f16(a: u16, b: u16) -> u16 { host::rounded(a, b, |a, b| a * b) }
    "clif_fmin_f16" fn fmin_f16(a: u16, b: u16) -> u16 { host::lesser(a, b) }
    "clif_fmax_f16" fn fmax_f16(a: u16, b: u16) -> u16 { host::greater(a, b) }
    "clif_fma_f16" fn fma_f16(a: u16, b: u16, c: u16) -> u16 { host::fused(a, b, c) }
    "clif_fpromote_f16" fn fpromote_f16(a: u16) -> f32 { host::widened(a) }
    "clif_fdemote_f16" fn fdemote_f16(a: f32) -> u16 { host::narrowed(a.into()) }
    "clif_fadd_f16x2" fn fadd_f16x2(a: u32, b: u32) -> u32 { host::each(a, b, fadd_f16) }
    "clif_fsub_f16x2" fn fsub_f16x2(a: u32, b: u32) -> u32 { host::each(a, b, fsub_f16) }
    "clif_fmul_f16x2" fn fmul_f16x2(a: u32, b: u32) -> u32 { host::each(a, b, fmul_f16) }
    "clif_fmin_f16x2" fn fmin_f16x2(a: u32, b: u32) -> u32 { host::each(a, b, fmin_f16) }
    "clif_fmax_f16x2" fn fmax_f16x2(a: u32, b: u32) -> u32 { host::each(a, b, fmax_f16) }
    "clif_fma_f16x2" fn fma_f16x2(a: u32, b: u32, c: u32) -> u32 {
        let low = fma_f16(a as u16, b as u16, c as u16);
        let high = fma_f16((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
        u32::from(low) | u32::from(high) << 16
    }
    "clif_fcmp_lt_f16x2" fn fcmp_lt_f16x2(a: u32, b: u32) -> u32 { host::compared(a, b, |a, b| a < b) }
    "clif_fcmp_le_f16x2" fn fcmp_le_f16x2(a: u32, b: u32) -> u32 { host::compared(a, b, |a, b| a <= b) }
    "clif_fcmp_eq_f16x2" fn fcmp_eq_f16x2(a: u32, b: u32) -> u32 { host::compared(a, b, |a, b| a == b) }
    "ex2_f16x2" fn ex2_f16x2(a: u32) -> u32 { host::each(a, 0, |a, _| host::rounded(a, 0, |a, _| Float::exp2(a))) }
    "tanh_f16x2" fn tanh_f16x2(a: u32) -> u32 { host::each(a, 0, |a, _| host::rounded(a, 0, |a, _| Float::tanh(a))) }
    "hfma2_f16x2_relu" fn hfma2_f16x2_relu(a: u32, b: u32, c: u32) -> u32 {
        host::each(fma_f16x2(a, b, c), 0, |half, _| host::not_negative(half))
    }
    "hfma2_f16x2_sat" fn hfma2_f16x2_sat(a: u32, b: u32, c: u32) -> u32 {
        host::each(fma_f16x2(a, b, c), 0, |half, _| host::saturated(half))
    }
}

#[cfg(test)]
mod tests {
    /// The code generator's own table.
    const TABLE: &str = include_str!("../../../../docs/intrinsics.md");

    #[test]
    fn the_code_generator_knows_every_symbol() {
        let unknown: Vec<_> = super::SYMBOLS
            .iter()
            .filter(|symbol| {
                !symbol.starts_with("clif_") && !TABLE.contains(&format!("`%gpu_{symbol}("))
            })
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
