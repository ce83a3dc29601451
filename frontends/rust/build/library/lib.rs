//! What a program of kernels needs of Rust's runtime on the device: the message of a panic, and a heap.
//!
//! This file is no part of the workspace. rustc compiles it together with the bodies that `core` and `alloc` have in
//! its own distribution (`thisgpu_build::library`), and kernels are linked with the result. The host finds the two
//! objects by their symbols.

#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::fmt::Write;
use core::panic::PanicInfo;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

unsafe extern "C" {
    #[link_name = "__thisgpu_tid_x"]
    safe fn tid_x() -> u32;
    #[link_name = "__thisgpu_tid_y"]
    safe fn tid_y() -> u32;
    #[link_name = "__thisgpu_tid_z"]
    safe fn tid_z() -> u32;
    #[link_name = "__thisgpu_ctaid_x"]
    safe fn ctaid_x() -> u32;
    #[link_name = "__thisgpu_ctaid_y"]
    safe fn ctaid_y() -> u32;
    #[link_name = "__thisgpu_ctaid_z"]
    safe fn ctaid_z() -> u32;
    #[link_name = "__thisgpu_ntid_x"]
    safe fn ntid_x() -> u32;
    #[link_name = "__thisgpu_ntid_y"]
    safe fn ntid_y() -> u32;
    #[link_name = "__thisgpu_nctaid_x"]
    safe fn nctaid_x() -> u32;
    #[link_name = "__thisgpu_nctaid_y"]
    safe fn nctaid_y() -> u32;
    /// Where a panic has been written down: back to who called, who traps at the place of the panic.
    #[link_name = "__thisgpu_panicked"]
    safe fn panicked() -> !;
}

/// Bytes of a panic in front of its text.
const HEADER_BYTES: usize = 52;
/// Bytes for the name of a file and a message together: with what is in front of them 4 KiB, and nothing behind them.
const TEXT_BYTES: usize = 4096 - HEADER_BYTES;
const _: () = assert!(size_of::<Panic>() == HEADER_BYTES + TEXT_BYTES);

/// The first panic of a launch, as the host reads it.
#[repr(C)]
struct Panic {
    /// The thread that writes: 0 as long as none does, else one more than its number in the block, and above that its
    /// block's.
    writer: AtomicU64,
    /// 1 when all is written.
    written: AtomicU32,
    /// Block and thread, three numbers each.
    who: UnsafeCell<[u32; 6]>,
    line: UnsafeCell<u32>,
    column: UnsafeCell<u32>,
    /// Bytes of the file's name, with which the text begins.
    file: UnsafeCell<u32>,
    /// Bytes of file and message together; more than `TEXT_BYTES` if not all is there.
    length: UnsafeCell<u32>,
    text: UnsafeCell<[u8; TEXT_BYTES]>,
}

// SAFETY: what is in cells is written by the thread that has made itself the writer.
unsafe impl Sync for Panic {}

#[unsafe(export_name = "__thisgpu_panic")]
static PANIC: Panic = Panic {
    writer: AtomicU64::new(0),
    written: AtomicU32::new(0),
    who: UnsafeCell::new([0; 6]),
    line: UnsafeCell::new(0),
    column: UnsafeCell::new(0),
    file: UnsafeCell::new(0),
    length: UnsafeCell::new(0),
    text: UnsafeCell::new([0; TEXT_BYTES]),
};

/// Writes behind what is there, and counts what finds no room.
struct Text {
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let start = PANIC.text.get().cast::<u8>();
        for byte in text.bytes() {
            if self.length < TEXT_BYTES {
                // SAFETY: inside the text, which is this thread's.
                unsafe { start.add(self.length).write(byte) };
            }
            self.length += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let who = [ctaid_x(), ctaid_y(), ctaid_z(), tid_x(), tid_y(), tid_z()];
    let block = who[0] + nctaid_x() * (who[1] + nctaid_y() * who[2]);
    let thread = who[3] + ntid_x() * (who[4] + ntid_y() * who[5]);
    let me = u64::from(block) << 32 | u64::from(thread + 1);
    let found = PANIC.writer.compare_exchange(0, me, AcqRel, Acquire);
    if found.is_ok() {
        // SAFETY: this thread's.
        unsafe { PANIC.who.get().write(who) };
        let mut text = Text { length: 0 };
        if let Some(place) = info.location() {
            let _ = text.write_str(place.file());
            // SAFETY: this thread's.
            unsafe {
                PANIC.line.get().write(place.line());
                PANIC.column.get().write(place.column());
                PANIC.file.get().write(text.length as u32);
            }
        }
        let message = info.message();
        let _ = match message.as_str() {
            Some(message) => text.write_str(message),
            None => write!(text, "{message}"),
        };
        // SAFETY: this thread's.
        unsafe { PANIC.length.get().write(text.length as u32) };
        PANIC.written.store(1, Release);
    }
    // The launch ends with the first trap, so others wait until all is written; but not one that panics while it
    // writes.
    while found != Err(me) && PANIC.written.load(Acquire) == 0 {}
    panicked()
}

/// Free blocks are kept by the power of two that their bytes are.
const CLASSES: usize = 40;
/// The smallest block has 2^4 bytes.
const SMALLEST: u32 = 4;
/// Bytes in front of a block, and what it is aligned to.
const HEADER: usize = 16;

/// Memory of a launch, in blocks whose bytes are powers of two. A block that is given back goes to others of its size;
/// all of them end with the launch.
#[repr(C)]
struct Heap {
    /// Its address, and its bytes: the host's.
    start: AtomicU64,
    bytes: AtomicU64,
    /// Bytes from the beginning that are or were in use.
    taken: AtomicU64,
    /// For each class the first free block, whose header says the next: its distance from the start in headers, plus
    /// 1, 0 for none. In the upper half is a number that every change increases.
    free: [AtomicU64; CLASSES],
}

#[unsafe(export_name = "__thisgpu_heap")]
static HEAP: Heap = Heap {
    start: AtomicU64::new(0),
    bytes: AtomicU64::new(0),
    taken: AtomicU64::new(0),
    free: [const { AtomicU64::new(0) }; CLASSES],
};

/// The class of a size; none if no heap has so many bytes.
fn class(size: usize) -> Option<usize> {
    let log = size.max(1 << SMALLEST).checked_next_power_of_two()?.ilog2();
    let class = (log - SMALLEST) as usize;
    (class < CLASSES).then_some(class)
}

impl Heap {
    /// The next block behind a free one.
    fn next(&self, block: u32) -> *const AtomicU32 {
        let start = self.start.load(Relaxed) as usize as *const u8;
        start.wrapping_add((block - 1) as usize * HEADER).cast()
    }

    /// Bytes that nobody has had, aligned to a header.
    fn fresh(&self, bytes: usize) -> Option<usize> {
        let end = self.bytes.load(Relaxed);
        let bytes = (bytes as u64).checked_next_multiple_of(HEADER as u64)?;
        let more = |taken: u64| taken.checked_add(bytes).filter(|all| *all <= end);
        let taken = self.taken.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some((self.start.load(Relaxed) + taken) as usize)
    }

    /// A free block of a class.
    fn reused(&self, class: usize) -> Option<*mut u8> {
        let first = &self.free[class];
        let mut seen = first.load(Acquire);
        loop {
            let block = seen as u32;
            if block == 0 {
                return None;
            }
            // SAFETY: a header, which nobody accesses in another way, even if another thread has the block by now.
            let next = unsafe { (*self.next(block)).load(Relaxed) };
            let changed = ((seen >> 32) + 1) << 32 | u64::from(next);
            match first.compare_exchange(seen, changed, AcqRel, Acquire) {
                Ok(_) => return Some(self.next(block).cast::<u8>().wrapping_add(HEADER).cast_mut()),
                Err(now) => seen = now,
            }
        }
    }
}

// SAFETY: blocks lie in the heap, are as large and aligned as asked for, and have nothing in common.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let found = || {
            if layout.align() > HEADER {
                // Such blocks are rare, and not used again.
                let room = layout.size().checked_add(layout.align())?;
                return Some(self.fresh(room)?.next_multiple_of(layout.align()) as *mut u8);
            }
            let class = class(layout.size())?;
            self.reused(class).or_else(|| {
                let block = self.fresh(HEADER + (1 << (class as u32 + SMALLEST)))?;
                Some((block + HEADER) as *mut u8)
            })
        };
        found().unwrap_or(core::ptr::null_mut())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let (true, Some(class)) = (layout.align() <= HEADER, class(layout.size())) else {
            return;
        };
        let distance = pointer as usize - HEADER - self.start.load(Relaxed) as usize;
        let block = (distance / HEADER) as u32 + 1;
        let first = &self.free[class];
        let mut seen = first.load(Relaxed);
        loop {
            // SAFETY: the header of a block that is this thread's.
            unsafe { (*self.next(block)).store(seen as u32, Relaxed) };
            let changed = ((seen >> 32) + 1) << 32 | u64::from(block);
            match first.compare_exchange(seen, changed, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if layout.align() <= HEADER && class(layout.size()) == class(size) {
            return pointer;
        }
        // SAFETY: the caller's promises are those of the three functions.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                core::ptr::copy_nonoverlapping(pointer, moved, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }
}

#[global_allocator]
static GLOBAL: Global = Global;

/// The heap of the launch.
struct Global;

// SAFETY: the heap's.
unsafe impl GlobalAlloc for Global {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises.
        unsafe { HEAP.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises.
        unsafe { HEAP.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promises.
        unsafe { HEAP.realloc(pointer, layout, size) }
    }
}
