//! Terms as the words that the semantics of instructions are written over.

use crate::term::{Sort, Term};
use cranelift_thisgpu::unstable::bits::{Bits, Joined, Truth, Word};

/// A term of `WIDTH` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector<const WIDTH: u32>(pub Term);

/// A term that is a truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition(pub Term);

impl Truth for Condition {
    fn known(value: bool) -> Self {
        Condition(Term::known(value))
    }

    fn not(&self) -> Self {
        Condition(self.0.not())
    }

    fn and(&self, other: &Self) -> Self {
        Condition(self.0.and(other.0))
    }

    fn or(&self, other: &Self) -> Self {
        Condition(self.0.or(other.0))
    }

    fn xor(&self, other: &Self) -> Self {
        Condition(self.0.xor(other.0))
    }
}

impl<const WIDTH: u32> Bits for Vector<WIDTH> {
    const WIDTH: u32 = WIDTH;
    type Bit = Condition;

    fn number(value: u64) -> Self {
        Vector(Term::number(value.into(), WIDTH))
    }

    fn plus(&self, other: &Self) -> Self {
        Vector(self.0.plus(other.0))
    }

    fn minus(&self, other: &Self) -> Self {
        Vector(self.0.minus(other.0))
    }

    fn times(&self, other: &Self) -> Self {
        Vector(self.0.times(other.0))
    }

    fn complement(&self) -> Self {
        Vector(self.0.not())
    }

    fn and(&self, other: &Self) -> Self {
        Vector(self.0.and(other.0))
    }

    fn or(&self, other: &Self) -> Self {
        Vector(self.0.or(other.0))
    }

    fn xor(&self, other: &Self) -> Self {
        Vector(self.0.xor(other.0))
    }

    fn shifted_up(&self, by: &Self) -> Self {
        Vector(self.0.shifted_up(by.0))
    }

    fn shifted_down(&self, by: &Self) -> Self {
        Vector(self.0.shifted_down(by.0))
    }

    fn shifted_down_signed(&self, by: &Self) -> Self {
        Vector(self.0.shifted_down_signed(by.0))
    }

    fn equals(&self, other: &Self) -> Condition {
        Condition(self.0.equals(other.0))
    }

    fn is_below(&self, other: &Self) -> Condition {
        Condition(self.0.is_below(other.0))
    }

    fn is_less(&self, other: &Self) -> Condition {
        Condition(self.0.is_less(other.0))
    }

    fn choose(condition: &Condition, yes: &Self, no: &Self) -> Self {
        Vector(Term::choose(condition.0, yes.0, no.0))
    }

    fn count_ones(&self) -> Self {
        Vector(count_ones(self.0))
    }

    fn leading_zeros(&self) -> Self {
        Vector(leading_zeros(self.0))
    }

    fn reversed(&self) -> Self {
        Vector(reversed(self.0))
    }
}

/// How many bits of a term are set, in a term of its width.
pub fn count_ones(term: Term) -> Term {
    let width = term.width();
    let bits = (0..width).map(|i| term.part(i, 1).zero_extended(width));
    bits.reduce(Term::plus).unwrap_or(term)
}

/// How many zeros are above the highest bit of a term that is set, in a term of its width.
pub fn leading_zeros(term: Term) -> Term {
    let width = term.width();
    // Of several words: those of the upper half, or of the lower one and all above. So code counts them.
    if width > 32 && width.is_multiple_of(2) {
        let half = width / 2;
        let [low, high] = [0, half].map(|from| term.part(from, half));
        let count = |t: Term| leading_zeros(t).zero_extended(width);
        let below = count(low).plus(Term::number(half.into(), width));
        return Term::choose(high.equals(Term::number(0, half)), below, count(high));
    }
    let none = Term::number(width.into(), width);
    (0..width).fold(none, |below, i| {
        let is_set = term.part(i, 1).equals(Term::number(1, 1));
        Term::choose(is_set, Term::number((width - 1 - i).into(), width), below)
    })
}

/// The bits of a term in reverse order.
pub fn reversed(term: Term) -> Term {
    let bits = (0..term.width()).map(|i| term.part(i, 1));
    bits.reduce(Term::above).unwrap_or(term)
}

/// [`Joined`] of a width, with its half.
macro_rules! joined {
    ($($width:literal $half:literal;)*) => {$(
        impl Joined for Vector<$width> {
            type Half = Vector<$half>;

            fn join(high: &Self::Half, low: &Self::Half) -> Self {
                Vector(high.0.above(low.0))
            }

            fn low(&self) -> Self::Half {
                Vector(self.0.part(0, $half))
            }

            fn high(&self) -> Self::Half {
                Vector(self.0.part($half, $half))
            }
        }
    )*};
}

joined! {
    16 8;
    32 16;
    64 32;
    128 64;
}

impl Word for Vector<32> {
    type Byte = Vector<8>;
    type Short = Vector<16>;
    type Pair = Vector<64>;
    type Quad = Vector<128>;
}

/// A variable of so many bits.
pub fn variable(name: &str, width: u32) -> Term {
    Term::variable(name, Sort::Bits(width))
}
