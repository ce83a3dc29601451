//! Output of kernels: [`println!`](crate::println) writes the number of its format and its raw arguments to a buffer,
//! which the host formats when the launch has ended. What finds no room is counted.

/// What may be printed: 64 bits, and what they are.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot print `{Self}`",
    note = "numbers, `bool`, `char`, pointers, `F16` can be printed"
)]
pub trait Print {
    /// What the bits are.
    #[doc(hidden)]
    const KIND: u32;
    /// The bits.
    #[doc(hidden)]
    fn bits(&self) -> u64;
}

macro_rules! prints {
    ($($type:ty = $kind:literal |$value:ident| $bits:expr),* $(,)?) => {
        $(
            impl Print for $type {
                const KIND: u32 = $kind;
                #[inline(always)]
                fn bits(&self) -> u64 {
                    let $value = *self;
                    $bits
                }
            }
        )*
    };
}

prints!(
    u8 = 1 | x | x.into(),
    i8 = 2 | x | x as u64,
    u16 = 1 | x | x.into(),
    i16 = 2 | x | x as u64,
    u32 = 1 | x | x.into(),
    i32 = 2 | x | x as u64,
    u64 = 1 | x | x,
    i64 = 2 | x | x as u64,
    usize = 1 | x | x as u64,
    isize = 2 | x | x as u64,
    f32 = 3 | x | x.to_bits().into(),
    f64 = 4 | x | x.to_bits(),
    bool = 5 | x | x.into(),
    char = 6 | x | x.into(),
    crate::F16 = 3 | x | x.to_f32().to_bits().into(),
);

impl<T> Print for *const T {
    const KIND: u32 = 7;
    #[inline(always)]
    fn bits(&self) -> u64 {
        self.addr() as u64
    }
}

impl<T: Print> Print for &T {
    const KIND: u32 = T::KIND;
    #[inline(always)]
    fn bits(&self) -> u64 {
        T::bits(self)
    }
}

#[doc(hidden)]
#[inline(always)]
pub fn argument<T: Print>(value: &T) -> (u32, u64) {
    (T::KIND, value.bits())
}

/// Words of the buffer.
#[cfg(thisgpu)]
const WORDS: usize = 1 << 16;

#[cfg(thisgpu)]
#[repr(C)]
struct Buffer {
    /// Words that have been asked for.
    asked: core::sync::atomic::AtomicU32,
    /// Records that found no room.
    lost: core::sync::atomic::AtomicU32,
    words: [core::cell::UnsafeCell<u32>; WORDS],
}

// SAFETY: each record is written by the thread that has asked for its words.
#[cfg(thisgpu)]
unsafe impl Sync for Buffer {}

#[cfg(thisgpu)]
#[unsafe(export_name = "__thisgpu_print_buffer")]
static BUFFER: Buffer = Buffer {
    asked: core::sync::atomic::AtomicU32::new(0),
    lost: core::sync::atomic::AtomicU32::new(0),
    words: [const { core::cell::UnsafeCell::new(0) }; WORDS],
};

/// Writes a record: its words, the format's number, and for each argument its kind and its bits.
#[doc(hidden)]
#[inline(always)]
pub fn record<const N: usize>(format: u32, arguments: [(u32, u64); N]) {
    #[cfg(thisgpu)]
    {
        use core::sync::atomic::Ordering::Relaxed;
        let words = 2 + 3 * N;
        let first = BUFFER.asked.fetch_add(words as u32, Relaxed) as usize;
        if first + words > WORDS {
            BUFFER.lost.fetch_add(1, Relaxed);
            return;
        }
        // SAFETY: inside the buffer, and nobody else's.
        let put = |index: usize, word: u32| unsafe {
            BUFFER
                .words
                .as_ptr()
                .cast::<u32>()
                .cast_mut()
                .add(first + index)
                .write(word);
        };
        put(0, words as u32);
        put(1, format);
        for (index, (kind, bits)) in arguments.into_iter().enumerate() {
            put(2 + 3 * index, kind);
            put(3 + 3 * index, bits as u32);
            put(4 + 3 * index, (bits >> 32) as u32);
        }
    }
    #[cfg(not(thisgpu))]
    let _ = (format, arguments);
}
