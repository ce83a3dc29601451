//! Output of kernels: [`println!`](crate::println) writes the number of its format and its raw arguments to a buffer,
//! which the host formats when the launch has ended. What finds no room is counted.

/// What may be printed with `{:?}`: as words of a record. `#[derive(Print)]` makes structures such.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot print `{Self}`",
    note = "numbers, `bool`, `char`, `&str`, pointers, `F16` can be printed; slices, arrays, tuples and options of them, \
     and structures with #[derive(Print)], with `{{:?}}`; `format!` makes a text of everything else"
)]
pub trait Print {
    /// How many words it has.
    #[doc(hidden)]
    fn printed_words(&self) -> usize;
    /// Writes them: what it is, and that.
    #[doc(hidden)]
    fn print_to(&self, writer: &mut Writer);
}

/// What may be printed with `{}` and the other specifications.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot print `{Self}` with `{{}}`",
    note = "numbers, `bool`, `char`, `&str`, pointers, `F16` can be printed so; others with `{{:?}}`"
)]
pub trait PrintDisplay: Print {}

/// What the words of an argument begin with: what it is, and above that, of an integer, its bytes.
mod kind {
    pub const UNSIGNED: u32 = 1;
    pub const SIGNED: u32 = 2;
    pub const SINGLE: u32 = 3;
    pub const DOUBLE: u32 = 4;
    pub const BOOL: u32 = 5;
    pub const CHAR: u32 = 6;
    pub const POINTER: u32 = 7;
    pub const TEXT: u32 = 8;
    pub const LIST: u32 = 9;
    pub const OPTION: u32 = 10;
    pub const STRUCTURE: u32 = 11;
}

macro_rules! prints {
    ($($type:ty = $kind:ident |$value:ident| $bits:expr),* $(,)?) => {
        $(
            impl Print for $type {
                #[inline(always)]
                fn printed_words(&self) -> usize {
                    3
                }

                #[inline(always)]
                fn print_to(&self, writer: &mut Writer) {
                    let $value = *self;
                    let bits: u64 = $bits;
                    writer.put(kind::$kind | (size_of::<$type>() as u32) << 8);
                    writer.put(bits as u32);
                    writer.put((bits >> 32) as u32);
                }
            }

            impl PrintDisplay for $type {}
        )*
    };
}

prints!(
    u8 = UNSIGNED | x | x.into(),
    i8 = SIGNED | x | x as u64,
    u16 = UNSIGNED | x | x.into(),
    i16 = SIGNED | x | x as u64,
    u32 = UNSIGNED | x | x.into(),
    i32 = SIGNED | x | x as u64,
    u64 = UNSIGNED | x | x,
    i64 = SIGNED | x | x as u64,
    usize = UNSIGNED | x | x as u64,
    isize = SIGNED | x | x as u64,
    f32 = SINGLE | x | x.to_bits().into(),
    f64 = DOUBLE | x | x.to_bits(),
    bool = BOOL | x | x.into(),
    char = CHAR | x | x.into(),
    crate::F16 = SINGLE | x | x.to_f32().to_bits().into(),
);

macro_rules! prints_wide {
    ($($type:ty = $kind:ident),*) => {
        $(
            impl Print for $type {
                #[inline(always)]
                fn printed_words(&self) -> usize {
                    5
                }

                #[inline(always)]
                fn print_to(&self, writer: &mut Writer) {
                    writer.put(kind::$kind | 16 << 8);
                    for word in 0..4 {
                        writer.put((*self >> (32 * word)) as u32);
                    }
                }
            }

            impl PrintDisplay for $type {}
        )*
    };
}

prints_wide!(u128 = UNSIGNED, i128 = SIGNED);

macro_rules! prints_tuples {
    ($(($($type:ident $index:tt),*)),* $(,)?) => {
        $(
            impl<$($type: Print),*> Print for ($($type,)*) {
                #[inline(always)]
                fn printed_words(&self) -> usize {
                    structure_words("", [$(("", self.$index.printed_words())),*])
                }

                #[inline(always)]
                fn print_to(&self, writer: &mut Writer) {
                    begin_structure(writer, "", [$($index),*].len());
                    $(
                        "".print_to(writer);
                        self.$index.print_to(writer);
                    )*
                }
            }
        )*
    };
}

prints_tuples!(
    (A 0),
    (A 0, B 1),
    (A 0, B 1, C 2),
    (A 0, B 1, C 2, D 3),
    (A 0, B 1, C 2, D 3, E 4),
    (A 0, B 1, C 2, D 3, E 4, F 5),
);

impl<T> Print for *const T {
    #[inline(always)]
    fn printed_words(&self) -> usize {
        3
    }

    #[inline(always)]
    fn print_to(&self, writer: &mut Writer) {
        writer.put(kind::POINTER);
        writer.put(self.addr() as u32);
        writer.put((self.addr() as u64 >> 32) as u32);
    }
}

impl<T> PrintDisplay for *const T {}

impl<T: Print + ?Sized> Print for &T {
    #[inline(always)]
    fn printed_words(&self) -> usize {
        T::printed_words(self)
    }

    #[inline(always)]
    fn print_to(&self, writer: &mut Writer) {
        T::print_to(self, writer);
    }
}

impl<T: PrintDisplay + ?Sized> PrintDisplay for &T {}

impl<T: Print + ?Sized> Print for &mut T {
    #[inline(always)]
    fn printed_words(&self) -> usize {
        T::printed_words(self)
    }

    #[inline(always)]
    fn print_to(&self, writer: &mut Writer) {
        T::print_to(self, writer);
    }
}

impl<T: PrintDisplay + ?Sized> PrintDisplay for &mut T {}

impl Print for str {
    fn printed_words(&self) -> usize {
        2 + self.len().div_ceil(4)
    }

    fn print_to(&self, writer: &mut Writer) {
        writer.put(kind::TEXT);
        writer.put(self.len() as u32);
        let (mut word, mut filled) = (0u32, 0u32);
        for byte in self.as_bytes() {
            word |= u32::from(*byte) << filled;
            filled += 8;
            if filled == 32 {
                writer.put(word);
                (word, filled) = (0, 0);
            }
        }
        if filled > 0 {
            writer.put(word);
        }
    }
}

impl PrintDisplay for str {}

impl<T: Print> Print for [T] {
    fn printed_words(&self) -> usize {
        let mut words = 2;
        for of in self {
            words += of.printed_words();
        }
        words
    }

    fn print_to(&self, writer: &mut Writer) {
        writer.put(kind::LIST);
        writer.put(self.len() as u32);
        for of in self {
            of.print_to(writer);
        }
    }
}

impl<T: Print, const N: usize> Print for [T; N] {
    #[inline(always)]
    fn printed_words(&self) -> usize {
        self.as_slice().printed_words()
    }

    #[inline(always)]
    fn print_to(&self, writer: &mut Writer) {
        self.as_slice().print_to(writer);
    }
}

impl<T: Print> Print for Option<T> {
    #[inline(always)]
    fn printed_words(&self) -> usize {
        2 + match self {
            Some(of) => of.printed_words(),
            None => 0,
        }
    }

    #[inline(always)]
    fn print_to(&self, writer: &mut Writer) {
        writer.put(kind::OPTION);
        writer.put(u32::from(self.is_some()));
        if let Some(of) = self {
            of.print_to(writer);
        }
    }
}

/// A structure as its fields, for what `#[derive(Print)]` writes; fields of tuples have no names.
#[doc(hidden)]
pub fn structure_words<const N: usize>(name: &str, fields: [(&str, usize); N]) -> usize {
    let mut words = 2 + name.printed_words();
    for (name, field) in fields {
        words += name.printed_words() + field;
    }
    words
}

/// The beginning of a structure; its fields follow, each a name and a value.
#[doc(hidden)]
pub fn begin_structure(writer: &mut Writer, name: &str, fields: usize) {
    writer.put(kind::STRUCTURE);
    writer.put(fields as u32);
    name.print_to(writer);
}

#[doc(hidden)]
#[inline(always)]
pub fn debug<T: Print + ?Sized>(value: &T) -> &T {
    value
}

#[doc(hidden)]
#[inline(always)]
pub fn display<T: PrintDisplay + ?Sized>(value: &T) -> &T {
    value
}

/// Where the words of a record go; what finds no room is left out.
#[derive(Debug)]
pub struct Writer {
    next: usize,
    end: usize,
}

impl Writer {
    #[inline(always)]
    fn put(&mut self, word: u32) {
        if self.next < self.end {
            #[cfg(thisgpu)]
            // SAFETY: inside the buffer, since the end is, and nobody else's.
            unsafe {
                let words = BUFFER.words.as_ptr().cast::<u32>().cast_mut();
                words.add(self.next).write(word);
            }
            #[cfg(not(thisgpu))]
            let _ = word;
            self.next += 1;
        }
    }
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

/// Asks for room for a record and writes its beginning: its words, and the format's number. The arguments, which have
/// so many words, follow.
#[doc(hidden)]
#[inline(always)]
pub fn record(format: u32, arguments: usize) -> Option<Writer> {
    let words = arguments.saturating_add(2);
    #[cfg(thisgpu)]
    let first = {
        use core::sync::atomic::Ordering::Relaxed;
        // More than there ever is: nothing is asked for.
        let first = match words <= WORDS {
            true => BUFFER.asked.fetch_add(words as u32, Relaxed) as usize,
            false => WORDS,
        };
        if first + words > WORDS {
            BUFFER.lost.fetch_add(1, Relaxed);
            return None;
        }
        first
    };
    #[cfg(not(thisgpu))]
    let first = 0;
    let mut writer = Writer {
        next: first,
        end: first + words,
    };
    writer.put(words as u32);
    writer.put(format);
    Some(writer)
}
