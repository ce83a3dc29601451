//! Sums, products and quotients.

use super::{Operation, Sort, Term, mask, ordered};

impl Term {
    /// The sum. A number stands behind all else.
    pub fn plus(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        let width = a.width();
        let split = |t: Term| match t.operation() {
            Operation::Number(n) => (None, n),
            Operation::Add(x, y) => match y.operation() {
                Operation::Number(n) => (Some(x), n),
                _ => (Some(t), 0),
            },
            _ => (Some(t), 0),
        };
        let ((x, m), (y, n)) = (split(a), split(b));
        let number = m.wrapping_add(n) & mask(width);
        let rest = match (x, y) {
            (None, None) => return Term::number(number, width),
            (Some(x), None) | (None, Some(x)) => x,
            (Some(x), Some(y)) => {
                let (x, y) = ordered(x, y);
                match (x.operation(), y.operation()) {
                    // x + ~x.
                    (Operation::Not(inner), _) if inner == y => {
                        return Term::number(mask(width), width).plus(Term::number(number, width));
                    }
                    (_, Operation::Not(inner)) if inner == x => {
                        return Term::number(mask(width), width).plus(Term::number(number, width));
                    }
                    _ => Term::make(Operation::Add(x, y), x.sort()),
                }
            }
        };
        if number == 0 {
            return rest;
        }
        Term::make(
            Operation::Add(rest, Term::number(number, width)),
            rest.sort(),
        )
    }

    /// The difference.
    pub fn minus(self, other: Term) -> Term {
        if self == other {
            return self.zeros();
        }
        self.plus(other.not()).plus(Term::number(1, self.width()))
    }

    /// The product. It is made of products of words.
    pub fn times(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        let width = a.width();
        let (x, number) = match (a.as_number(), b.as_number()) {
            (Some(m), Some(n)) => return Term::number(m.wrapping_mul(n), width),
            (Some(n), None) => (b, Some(n)),
            (None, Some(n)) => (a, Some(n)),
            (None, None) => (a, None),
        };
        match number {
            Some(0) => return Term::number(0, width),
            Some(n) if n.is_power_of_two() => return x.up(n.trailing_zeros()),
            Some(n) => {
                return Term::make(Operation::Multiple(x, Term::number(n, width)), x.sort());
            }
            None => {}
        }
        if width < 32 {
            let product = a.zero_extended(32).times(b.zero_extended(32));
            return product.part(0, width);
        }
        let words = width.div_ceil(32);
        let word = |t: Term, i: u32| t.part(32 * i, 32);
        let mut sum = Term::number(0, width);
        for i in 0..words {
            for j in 0..words - i {
                let product = word(a, i).word_product(word(b, j));
                let fits = product.part(0, (width - 32 * (i + j)).min(64));
                let in_place = fits.above_zeros(32 * (i + j));
                sum = sum.plus(in_place.zero_extended(width));
            }
        }
        sum
    }

    /// The 64 bits of the product of two words, unsigned.
    fn word_product(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        let wide = |t: Term| t.zero_extended(64);
        // A word of signs is a choice between numbers, so this is one between multiples.
        for (x, y) in [(a, b), (b, a)] {
            if let Operation::Choose(condition, yes, no) = x.operation()
                && (yes.as_number().is_some() || no.as_number().is_some())
            {
                return Term::choose(condition, yes.word_product(y), no.word_product(y));
            }
        }
        match (a.as_number(), b.as_number()) {
            (None, None) => Term::make(Operation::Product(a, b), Sort::Bits(64)),
            _ => wide(a).times(wide(b)),
        }
    }

    /// The quotient of unsigned numbers; what it is where the divisor is zero nobody says.
    pub fn quotient(self, divisor: Term) -> Term {
        match (self.as_number(), divisor.as_number()) {
            (Some(a), Some(b)) if b != 0 => Term::number(a / b, self.width()),
            (_, Some(1)) => self,
            (_, Some(b)) if b.is_power_of_two() => self.down(b.trailing_zeros()),
            _ => Term::make(Operation::Quotient(self, divisor), self.sort()),
        }
    }

    /// The remainder of unsigned numbers; what it is where the divisor is zero nobody says.
    pub fn remainder(self, divisor: Term) -> Term {
        match (self.as_number(), divisor.as_number()) {
            (Some(a), Some(b)) if b != 0 => Term::number(a % b, self.width()),
            (_, Some(b)) if b.is_power_of_two() => self.and(Term::number(b - 1, self.width())),
            _ => Term::make(Operation::Remainder(self, divisor), self.sort()),
        }
    }
}
