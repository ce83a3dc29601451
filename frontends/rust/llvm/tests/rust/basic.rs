#![no_std]
#![crate_type = "lib"]
//! Small kernels of ordinary Rust.

unsafe extern "C" {
    safe fn __thisgpu_tid_x() -> u32;
    safe fn __thisgpu_ntid_x() -> u32;
    safe fn __thisgpu_ctaid_x() -> u32;
    safe fn __thisgpu_bar_sync();
    safe fn __thisgpu_shfl_bfly(value: u32, lanes: u32) -> u32;
    safe fn sinf(x: f32) -> f32;
}

fn thread() -> usize {
    (__thisgpu_ctaid_x() * __thisgpu_ntid_x() + __thisgpu_tid_x()) as usize
}

/// y = a x + y.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn saxpy(n: u32, a: f32, x: *const f32, y: *mut f32) {
    let i = thread();
    if i < n as usize {
        unsafe { *y.add(i) += a * *x.add(i) }
    }
}

/// Length of Collatz's sequence.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn collatz(x: *const u32, y: *mut u32) {
    let i = thread();
    let start = u64::from(unsafe { *x.add(i) });
    let next = |n: &u64| (*n != 1).then(|| if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
    unsafe { *y.add(i) = core::iter::successors(Some(start), next).count() as u32 }
}

/// Sorts a row of 40 numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sort_rows(x: *mut u32) {
    let row = unsafe { core::slice::from_raw_parts_mut(x.add(40 * thread()), 40) };
    row.sort_unstable();
}

trait Shape {
    fn area(&self, scale: f32) -> f32;
}
struct Square(f32);
struct Circle(f32);
impl Shape for Square {
    fn area(&self, scale: f32) -> f32 {
        self.0 * self.0 * scale
    }
}
impl Shape for Circle {
    fn area(&self, scale: f32) -> f32 {
        3.0 * self.0 * self.0 * scale
    }
}

static NAMES: [&str; 4] = ["", "a", "bc", "def"];

/// Vtables, string slices, and a function of the library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shapes(x: *const f32, y: *mut f32) {
    let i = thread();
    let side = unsafe { *x.add(i) };
    let (square, circle) = (Square(side), Circle(side));
    let shape: &dyn Shape = if i % 3 == 0 { &square } else { &circle };
    let letters = NAMES[i % 4].bytes().map(u32::from).sum::<u32>();
    unsafe { *y.add(i) = core::hint::black_box(shape).area(sinf(side)) + letters as f32 }
}

/// The sum over a warp.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warp_sum(x: *const u32, y: *mut u32) {
    let i = thread();
    let mut sum = unsafe { *x.add(i) };
    for step in 0..5 {
        sum += __thisgpu_shfl_bfly(sum, 1 << step);
    }
    unsafe { *y.add(i) = sum }
}

#[unsafe(export_name = "__thisgpu_static_shared_tile")]
static mut TILE: core::mem::MaybeUninit<[u32; 64]> = core::mem::MaybeUninit::uninit();

/// A block's numbers in reverse order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reverse(x: *const u32, y: *mut u32) {
    let (i, t) = (thread(), __thisgpu_tid_x() as usize);
    let tile = (&raw mut TILE).cast::<u32>();
    unsafe { *tile.add(t) = *x.add(i) };
    __thisgpu_bar_sync();
    unsafe { *y.add(i) = *tile.add(63 - t) };
}

/// Counts how often a number occurs modulo 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn histogram(x: *const u32, counts: *const core::sync::atomic::AtomicU32) {
    use core::sync::atomic::Ordering;
    let value = unsafe { *x.add(thread()) };
    let count = unsafe { &*counts.add((value % 8) as usize) };
    count.fetch_add(1, Ordering::Relaxed);
}

/// Takes an element that may not be there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pick(x: *const u32, length: usize, y: *mut u32) {
    let values = unsafe { core::slice::from_raw_parts(x, length) };
    let i = thread();
    unsafe { *y.add(i) = values[i] }
}

#[inline(always)]
fn inner_of(at: u32, values: &[u32]) -> u32 {
    let at = at as usize;
    values[at]
}

#[inline(always)]
fn outer_of(at: u32, values: &[u32]) -> u32 {
    let values = &values[..4];
    inner_of(at, values) + 1
}

/// Panics in a function that was inlined into one that was inlined.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nested(x: *const u32, at: u32, y: *mut u32) {
    let values = unsafe { core::slice::from_raw_parts(x, 4) };
    let sum = outer_of(at, values);
    unsafe { *y = sum }
}

/// Calls something of `core` that has no body here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bodiless(x: *const u8, y: *mut u32) {
    let bytes = unsafe { core::slice::from_raw_parts(x, 5) };
    unsafe { *y = core::str::from_utf8(bytes).is_ok() as u32 }
}

/// Assembly of the host.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn assembled(y: *mut u32) {
    unsafe {
        core::arch::asm!("nop");
        *y = 1;
    }
}
