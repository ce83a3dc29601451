//! Shifts, parts of terms, and terms joined.

use super::{Operation, Sort, Term, mask};

impl Term {
    /// Shifted up by a known number, zeros below.
    pub fn up(self, by: u32) -> Term {
        let width = self.width();
        match by {
            0 => self,
            by if by >= width => Term::number(0, width),
            by => self.part(0, width - by).above_zeros(by),
        }
    }

    /// Shifted down by a known number, zeros above.
    pub fn down(self, by: u32) -> Term {
        let width = self.width();
        match by {
            0 => self,
            by if by >= width => Term::number(0, width),
            by => self.part(by, width - by).zero_extended(width),
        }
    }

    /// Shifted up, zeros below.
    pub fn shifted_up(self, by: Term) -> Term {
        match by.as_number() {
            Some(n) => self.up(n.min(128) as u32),
            None => Term::make(Operation::ShiftLeft(self, by), self.sort()),
        }
    }

    /// Shifted down, zeros above.
    pub fn shifted_down(self, by: Term) -> Term {
        match by.as_number() {
            Some(n) => self.down(n.min(128) as u32),
            None => Term::make(Operation::ShiftRight(self, by), self.sort()),
        }
    }

    /// Shifted down, copies of the sign above.
    pub fn shifted_down_signed(self, by: Term) -> Term {
        let width = self.width();
        match by.as_number() {
            Some(0) => self,
            Some(n) => {
                let by = n.min(u128::from(width) - 1) as u32;
                self.part(by, width - by).sign_extended(width)
            }
            None => Term::make(Operation::ShiftRightSigned(self, by), self.sort()),
        }
    }

    /// So many bits from a bit on.
    pub fn part(self, from: u32, bits: u32) -> Term {
        let width = self.width();
        if bits == width {
            return self;
        }
        match self.operation() {
            Operation::Number(value) => Term::number(value >> from, bits),
            Operation::Extract(inner, first) => inner.part(first + from, bits),
            Operation::Concat(high, low) => {
                let split = low.width();
                if from >= split {
                    high.part(from - split, bits)
                } else if from + bits <= split {
                    low.part(from, bits)
                } else {
                    high.part(0, from + bits - split)
                        .above(low.part(from, split - from))
                }
            }
            Operation::Not(a) => a.part(from, bits).not(),
            Operation::And(a, b) => a.part(from, bits).and(b.part(from, bits)),
            Operation::Or(a, b) => a.part(from, bits).or(b.part(from, bits)),
            Operation::Xor(a, b) => a.part(from, bits).xor(b.part(from, bits)),
            Operation::Choose(c, a, b) => Term::choose(c, a.part(from, bits), b.part(from, bits)),
            // Low bits of sums depend on low bits.
            Operation::Add(a, b) if from == 0 => a.part(0, bits).plus(b.part(0, bits)),
            Operation::Add(a, b) if from + bits < width => {
                let low = from + bits;
                let sum = a.part(0, low).plus(b.part(0, low));
                match sum.operation() {
                    Operation::Add(..) => {
                        Term::make(Operation::Extract(sum, from), Sort::Bits(bits))
                    }
                    _ => sum.part(from, bits),
                }
            }
            Operation::Multiple(a, b) if from == 0 => a.part(0, bits).times(b.part(0, bits)),
            _ => Term::make(Operation::Extract(self, from), Sort::Bits(bits)),
        }
    }

    /// These bits above others.
    pub fn above(self, low: Term) -> Term {
        let (high_width, low_width) = (self.width(), low.width());
        let width = high_width + low_width;
        // A whole that was taken apart: low parts go down into what it is made of, so they do not look like parts.
        if let Operation::Extract(whole, from) = self.operation()
            && from == low_width
            && whole.part(0, from) == low
        {
            return whole.part(0, width);
        }
        match (self.operation(), low.operation()) {
            (Operation::Number(high), Operation::Number(low)) => {
                return Term::number(high << low_width | low, width);
            }
            // Two parts side by side are one.
            (Operation::Extract(a, from), Operation::Extract(b, first))
                if a == b && from == first + low_width =>
            {
                return a.part(first, width);
            }
            // Joins lean to the right, so that there is one way to write them.
            (Operation::Concat(high, middle), _) => return high.above(middle.above(low)),
            (_, Operation::Concat(middle, rest)) => {
                let joined = match (self.operation(), middle.operation()) {
                    (Operation::Number(_), Operation::Number(_)) => Some(self.above(middle)),
                    (Operation::Extract(a, from), Operation::Extract(b, first))
                        if a == b && from == first + middle.width() =>
                    {
                        Some(self.above(middle))
                    }
                    _ => None,
                };
                if let Some(joined) = joined {
                    return joined.above(rest);
                }
            }
            _ => {}
        }
        Term::make(Operation::Concat(self, low), Sort::Bits(width))
    }

    /// These bits above so many zeros.
    pub fn above_zeros(self, zeros: u32) -> Term {
        match zeros {
            0 => self,
            zeros => self.above(Term::number(0, zeros)),
        }
    }

    /// With zeros above to a width.
    pub fn zero_extended(self, width: u32) -> Term {
        match width - self.width() {
            0 => self,
            more => Term::number(0, more).above(self),
        }
    }

    /// With copies of the sign above to a width.
    pub fn sign_extended(self, width: u32) -> Term {
        let own = self.width();
        if width == own {
            return self;
        }
        let sign = self.part(own - 1, 1).equals(Term::number(1, 1));
        // A sign alone is a choice between all ones and nothing.
        if own == 1 {
            return Term::choose(
                sign,
                Term::number(mask(width), width),
                Term::number(0, width),
            );
        }
        let more = width - own;
        let signs = Term::choose(sign, Term::number(mask(more), more), Term::number(0, more));
        signs.above(self)
    }
}
