//! Bits of fixed width: numbers of the host, or terms that stand for any number.
//!
//! What an instruction computes is written once ([`crate::sim::semantics`]), over these traits. The simulator runs it
//! on `u32` and the like, where every operation is one of the host's; a proof runs it on terms and gets a formula. The
//! operations are those of SMT-LIB's theory of fixed-size bit vectors: arithmetic is modulo 2^[`Bits::WIDTH`], a shift
//! by the width or more leaves zeros or signs. So both readings agree on what they mean, also at the ends of the range.

/// A truth.
pub trait Truth: Clone {
    /// One that is known.
    fn known(value: bool) -> Self;
    /// Whether it does not hold.
    fn not(&self) -> Self;
    /// Whether both hold.
    fn and(&self, other: &Self) -> Self;
    /// Whether one of both holds.
    fn or(&self, other: &Self) -> Self;
    /// Whether exactly one of both holds.
    fn xor(&self, other: &Self) -> Self;
}

/// So many bits.
pub trait Bits: Clone {
    /// How many.
    const WIDTH: u32;
    /// What comparisons give.
    type Bit: Truth;

    /// A number that is known, modulo 2^[`Bits::WIDTH`].
    fn number(value: u64) -> Self;
    /// The sum.
    fn plus(&self, other: &Self) -> Self;
    /// The difference.
    fn minus(&self, other: &Self) -> Self;
    /// The product.
    fn times(&self, other: &Self) -> Self;
    /// The complement.
    fn complement(&self) -> Self;
    /// The bits that both have.
    fn and(&self, other: &Self) -> Self;
    /// The bits that one of both has.
    fn or(&self, other: &Self) -> Self;
    /// The bits that exactly one of both has.
    fn xor(&self, other: &Self) -> Self;
    /// Shifted up, zeros below.
    fn shifted_up(&self, by: &Self) -> Self;
    /// Shifted down, zeros above.
    fn shifted_down(&self, by: &Self) -> Self;
    /// Shifted down, copies of the sign above.
    fn shifted_down_signed(&self, by: &Self) -> Self;
    /// Whether both are the same.
    fn equals(&self, other: &Self) -> Self::Bit;
    /// Whether this is less, both unsigned.
    fn is_below(&self, other: &Self) -> Self::Bit;
    /// Whether this is less, both signed.
    fn is_less(&self, other: &Self) -> Self::Bit;
    /// The first where the condition holds, else the second.
    fn choose(condition: &Self::Bit, yes: &Self, no: &Self) -> Self;
    /// How many bits are set.
    fn count_ones(&self) -> Self;
    /// How many zeros are above the highest bit that is set: all where there is none.
    fn leading_zeros(&self) -> Self;
    /// The bits in reverse order.
    fn reversed(&self) -> Self;

    /// Nothing.
    #[inline(always)]
    fn zero() -> Self {
        Self::number(0)
    }

    /// All ones.
    #[inline(always)]
    fn ones() -> Self {
        Self::zero().complement()
    }

    /// One where the condition holds, else nothing.
    #[inline(always)]
    fn one_if(condition: &Self::Bit) -> Self {
        Self::choose(condition, &Self::number(1), &Self::zero())
    }

    /// The negative.
    #[inline(always)]
    fn negated(&self) -> Self {
        Self::zero().minus(self)
    }

    /// The complement where `really`.
    #[inline(always)]
    fn complement_if(&self, really: bool) -> Self {
        if really {
            self.complement()
        } else {
            self.clone()
        }
    }

    /// The negative where `really`.
    #[inline(always)]
    fn negated_if(&self, really: bool) -> Self {
        if really { self.negated() } else { self.clone() }
    }

    /// Shifted up by a number that is known.
    #[inline(always)]
    fn up(&self, by: u32) -> Self {
        self.shifted_up(&Self::number(u64::from(by)))
    }

    /// Shifted down by a number that is known, zeros above.
    #[inline(always)]
    fn down(&self, by: u32) -> Self {
        self.shifted_down(&Self::number(u64::from(by)))
    }

    /// Whether any bit is set.
    #[inline(always)]
    fn is_any(&self) -> Self::Bit {
        self.equals(&Self::zero()).not()
    }

    /// Whether it is negative, read as signed.
    #[inline(always)]
    fn is_negative(&self) -> Self::Bit {
        self.is_less(&Self::zero())
    }

    /// Whether bit `index` is set.
    #[inline(always)]
    fn bit(&self, index: u32) -> Self::Bit {
        self.down(index).and(&Self::number(1)).is_any()
    }

    /// All ones where it is negative, else nothing.
    #[inline(always)]
    fn signs(&self) -> Self {
        self.shifted_down_signed(&Self::number(u64::from(Self::WIDTH - 1)))
    }

    /// The lesser, both unsigned.
    #[inline(always)]
    fn lower(&self, other: &Self) -> Self {
        Self::choose(&self.is_below(other), self, other)
    }

    /// This, but no less than `least` and no more than `greatest`, all signed.
    #[inline(always)]
    fn limited(&self, least: &Self, greatest: &Self) -> Self {
        let above = Self::choose(&self.is_less(least), least, self);
        Self::choose(&greatest.is_less(&above), greatest, &above)
    }
}

/// Bits that are two halves.
pub trait Joined: Bits {
    /// A half.
    type Half: Bits<Bit = Self::Bit>;

    /// Both halves.
    fn join(high: &Self::Half, low: &Self::Half) -> Self;
    /// The lower half.
    fn low(&self) -> Self::Half;
    /// The upper half.
    fn high(&self) -> Self::Half;

    /// A half with zeros above.
    #[inline(always)]
    fn of_unsigned(low: &Self::Half) -> Self {
        Self::join(&Self::Half::zero(), low)
    }

    /// A half with copies of its sign above.
    #[inline(always)]
    fn of_signed(low: &Self::Half) -> Self {
        Self::join(&low.signs(), low)
    }
}

/// A register's bits, and what is made of several or of parts.
pub trait Word: Joined<Half = <Self as Word>::Short> + 'static {
    /// 8 bits.
    type Byte: Bits<Bit = Self::Bit>;
    /// 16 bits.
    type Short: Joined<Bit = Self::Bit, Half = Self::Byte>;
    /// Two words.
    type Pair: Joined<Bit = Self::Bit, Half = Self>;
    /// Four words.
    type Quad: Joined<Bit = Self::Bit, Half = Self::Pair>;
}

impl Truth for bool {
    #[inline(always)]
    fn known(value: bool) -> bool {
        value
    }

    #[inline(always)]
    fn not(&self) -> bool {
        !*self
    }

    #[inline(always)]
    fn and(&self, other: &bool) -> bool {
        self & other
    }

    #[inline(always)]
    fn or(&self, other: &bool) -> bool {
        self | other
    }

    #[inline(always)]
    fn xor(&self, other: &bool) -> bool {
        self ^ other
    }
}

/// [`Bits`] of a number of the host, with its signed sibling.
macro_rules! numbers {
    ($($number:ident $signed:ident;)*) => {$(
        impl Bits for $number {
            const WIDTH: u32 = $number::BITS;
            type Bit = bool;

            #[inline(always)]
            fn number(value: u64) -> Self {
                value as $number
            }

            #[inline(always)]
            fn plus(&self, other: &Self) -> Self {
                self.wrapping_add(*other)
            }

            #[inline(always)]
            fn minus(&self, other: &Self) -> Self {
                self.wrapping_sub(*other)
            }

            #[inline(always)]
            fn times(&self, other: &Self) -> Self {
                self.wrapping_mul(*other)
            }

            #[inline(always)]
            fn complement(&self) -> Self {
                !self
            }

            #[inline(always)]
            fn and(&self, other: &Self) -> Self {
                self & other
            }

            #[inline(always)]
            fn or(&self, other: &Self) -> Self {
                self | other
            }

            #[inline(always)]
            fn xor(&self, other: &Self) -> Self {
                self ^ other
            }

            #[inline(always)]
            fn shifted_up(&self, by: &Self) -> Self {
                let fits = *by < Self::WIDTH as $number;
                if fits { self << by } else { 0 }
            }

            #[inline(always)]
            fn shifted_down(&self, by: &Self) -> Self {
                let fits = *by < Self::WIDTH as $number;
                if fits { self >> by } else { 0 }
            }

            #[inline(always)]
            fn shifted_down_signed(&self, by: &Self) -> Self {
                let most = Self::WIDTH as $number - 1;
                (*self as $signed >> (*by).min(most)) as $number
            }

            #[inline(always)]
            fn equals(&self, other: &Self) -> bool {
                self == other
            }

            #[inline(always)]
            fn is_below(&self, other: &Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn is_less(&self, other: &Self) -> bool {
                (*self as $signed) < *other as $signed
            }

            #[inline(always)]
            fn choose(condition: &bool, yes: &Self, no: &Self) -> Self {
                if *condition { *yes } else { *no }
            }

            #[inline(always)]
            fn count_ones(&self) -> Self {
                $number::count_ones(*self) as $number
            }

            #[inline(always)]
            fn leading_zeros(&self) -> Self {
                $number::leading_zeros(*self) as $number
            }

            #[inline(always)]
            fn reversed(&self) -> Self {
                self.reverse_bits()
            }
        }
    )*};
}

numbers! {
    u8 i8;
    u16 i16;
    u32 i32;
    u64 i64;
    u128 i128;
}

/// [`Joined`] of a number of the host, with its half.
macro_rules! joined {
    ($($number:ident $half:ident;)*) => {$(
        impl Joined for $number {
            type Half = $half;

            #[inline(always)]
            fn join(high: &$half, low: &$half) -> $number {
                $number::from(*high) << $half::BITS | $number::from(*low)
            }

            #[inline(always)]
            fn low(&self) -> $half {
                *self as $half
            }

            #[inline(always)]
            fn high(&self) -> $half {
                (*self >> $half::BITS) as $half
            }
        }
    )*};
}

joined! {
    u16 u8;
    u32 u16;
    u64 u32;
    u128 u64;
}

impl Word for u32 {
    type Byte = u8;
    type Short = u16;
    type Pair = u64;
    type Quad = u128;
}

/// Byte `index` of a word.
#[cfg(feature = "sim")]
#[inline(always)]
pub fn byte<W: Word>(word: &W, index: u32) -> W::Byte {
    let shifted = word.down(8 * index);
    shifted.low().low()
}

/// A word of a byte: its value, or with copies of its sign above.
#[cfg(feature = "sim")]
#[inline(always)]
pub fn word_of_byte<W: Word>(byte: &W::Byte, signed: bool) -> W {
    match signed {
        true => W::of_signed(&W::Short::of_signed(byte)),
        false => W::of_unsigned(&W::Short::of_unsigned(byte)),
    }
}

/// A word of a half: its value, or with copies of its sign above.
#[cfg(feature = "sim")]
#[inline(always)]
pub fn word_of_short<W: Word>(short: &W::Short, signed: bool) -> W {
    match signed {
        true => W::of_signed(short),
        false => W::of_unsigned(short),
    }
}
