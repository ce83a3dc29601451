//! Shifts, parts of terms, and terms joined.

use super::{ARENA, Operation, Sort, Term, mask};

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
        if bits == self.width() {
            return self;
        }
        match self.operation() {
            Operation::Number(value) => Term::number(value >> from, bits),
            Operation::Variable(_) => Term::make(Operation::Extract(self, from), Sort::Bits(bits)),
            Operation::Extract(inner, first) => inner.part(first + from, bits),
            _ => {
                // Terms are shared, so parts of what they are made of are asked for again and again.
                let key = (self, from, bits);
                if let Some(known) = ARENA.with_borrow(|arena| arena.parts.get(&key).copied()) {
                    return known;
                }
                let part = self.part_of_operation(from, bits);
                ARENA.with_borrow_mut(|arena| arena.parts.insert(key, part));
                part
            }
        }
    }

    fn part_of_operation(self, from: u32, bits: u32) -> Term {
        let width = self.width();
        match self.operation() {
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
            // Low bits of sums depend on low bits. Others are parts of the whole sum, so that there is one of it.
            Operation::Add(a, b) if from == 0 => a.part(0, bits).plus(b.part(0, bits)),
            Operation::Add(..) if self.significant_of_sum() < from + bits => {
                let known = self.significant_of_sum();
                match known.saturating_sub(from) {
                    0 => Term::number(0, bits),
                    some => self.part(from, some).zero_extended(bits),
                }
            }
            Operation::Add(..) if self.significant_of_sum() < width => {
                self.low_sum(self.significant_of_sum()).part(from, bits)
            }
            Operation::Add(..)
                if self.significant() < width && from + bits <= self.significant() =>
            {
                self.low_sum(self.significant()).part(from, bits)
            }
            // Low bits of a product by a number too.
            Operation::Product(a, b) if from == 0 && bits <= 32 && b.as_number().is_some() => {
                a.part(0, bits).times(b.part(0, bits))
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
            && low_width <= from
            && whole.part(0, from).part(from - low_width, low_width) == low
        {
            return whole.part(from - low_width, width);
        }
        match (self.operation(), low.operation()) {
            (Operation::Number(high), Operation::Number(low)) => {
                return Term::number(high << low_width | low, width);
            }
            // What is turned around of a whole is so too.
            (Operation::Not(a), Operation::Not(b)) => {
                let whole = a.above(b);
                if !matches!(whole.operation(), Operation::Concat(..)) {
                    return whole.not();
                }
            }
            // Signs above a sign.
            (Operation::Choose(c, a, b), _)
                if low_width == 1
                    && c == low.equals(Term::number(0, 1))
                    && a.as_number() == Some(0)
                    && b.as_number() == Some(mask(high_width)) =>
            {
                return low.sign_extended(width);
            }
            // Choices by one condition are one, where that joins what was taken apart.
            (Operation::Choose(c, a, b), Operation::Choose(d, x, y)) if c == d => {
                let (yes, no) = (a.above(x), b.above(y));
                let is_whole = |t: Term| !matches!(t.operation(), Operation::Concat(..));
                if is_whole(yes) && is_whole(no) {
                    return Term::choose(c, yes, no);
                }
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
