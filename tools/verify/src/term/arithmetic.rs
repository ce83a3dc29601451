//! Sums, products and quotients.

use super::{Operation, Sort, Term, mask, ordered};

impl Term {
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
            Some(n) if width <= 32 => {
                return Term::make(Operation::Multiple(x, Term::number(n, width)), x.sort());
            }
            _ => {}
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
    pub(super) fn word_product(self, other: Term) -> Term {
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
            (Some(m), Some(n)) => Term::number(m * n, 64),
            (Some(0), _) | (_, Some(0)) => Term::number(0, 64),
            (Some(ONES), _) => wide(b).up(32).minus(wide(b)),
            (_, Some(ONES)) => wide(a).up(32).minus(wide(a)),
            (Some(n), None) if n.is_power_of_two() => wide(b).up(n.trailing_zeros()),
            (None, Some(n)) if n.is_power_of_two() => wide(a).up(n.trailing_zeros()),
            // A number stands second.
            (Some(_), None) => Term::make(Operation::Product(b, a), Sort::Bits(64)),
            _ => Term::make(Operation::Product(a, b), Sort::Bits(64)),
        }
    }

    /// The quotient of unsigned numbers; what it is where the divisor is zero nobody says.
    pub fn quotient(self, divisor: Term) -> Term {
        let width = self.width();
        match (self.as_number(), divisor.as_number()) {
            (Some(a), Some(b)) if b != 0 => Term::number(a / b, width),
            (_, Some(1)) => self,
            (_, Some(b)) if b.is_power_of_two() => self.down(b.trailing_zeros()),
            (_, Some(b)) if b != 0 && [32, 64].contains(&width) => self.quotient_by(b as u64),
            _ => Term::make(Operation::Quotient(self, divisor), self.sort()),
        }
    }

    /// The quotient of N = 32 or 64 bits by a number that is no power of two, as a product and a shift: where
    /// 2^(N + s) ≤ m·d ≤ 2^(N + s) + 2^s, it is floor(m·x / 2^(N + s)) for all x (Granlund and Montgomery, *Division by
    /// Invariant Integers using Multiplication*, 1994, theorem 4.2). The least s is taken.
    fn quotient_by(self, divisor: u64) -> Term {
        let width = self.width();
        let (m, s) = multiplier(divisor, width);
        // m has N + 1 bits at most; the uppermost adds x itself.
        let wide = |t: Term| t.zero_extended(2 * width);
        let low = Term::number(m & mask(width), 2 * width);
        let high = wide(self).times(low).part(width, width);
        // Less than x, since the factor is less than 2^N.
        self.is_below(high).not().assume();
        let whole = match m >> width {
            0 => high.zero_extended(width + 1),
            _ => high
                .zero_extended(width + 1)
                .plus(self.zero_extended(width + 1)),
        };
        let rest = width + 1 - s;
        whole
            .part(s, rest)
            .part(0, rest.min(width))
            .zero_extended(width)
    }

    /// The quotient of 32 or 64 bits, both read as signed, by a number d from 3 on or from −3 down, cut towards zero: q =
    /// floor(m·x / 2^p), and one more where that is negative, where m has the sign of d, and m and p are those of Warren,
    /// *Hacker's Delight*, 2nd edition, section 10-1.
    pub fn signed_quotient_by(self, divisor: i64) -> Term {
        let width = self.width();
        let (m, p) = signed_multiplier(divisor, width);
        let m = if divisor < 0 { m.wrapping_neg() } else { m };
        let product = self
            .sign_extended(2 * width)
            .times(Term::number(m, 2 * width));
        let shift = Term::number((p - width).into(), width);
        let quotient = product.part(width, width).shifted_down_signed(shift);
        quotient.plus(quotient.part(width - 1, 1).zero_extended(width))
    }

    /// The remainder of unsigned numbers; what it is where the divisor is zero nobody says.
    pub fn remainder(self, divisor: Term) -> Term {
        match (self.as_number(), divisor.as_number()) {
            (Some(a), Some(b)) if b != 0 => Term::number(a % b, self.width()),
            (_, Some(b)) if b.is_power_of_two() => self.and(Term::number(b - 1, self.width())),
            (_, Some(b)) if b != 0 && self.width() >= 32 => {
                let minus = Term::number(b.wrapping_neg(), self.width());
                self.plus(self.quotient(divisor).times(minus))
            }
            _ => Term::make(Operation::Remainder(self, divisor), self.sort()),
        }
    }
}

/// A word of ones.
const ONES: u128 = u32::MAX as u128;

/// The least s, and m, with 2^(width + s) ≤ m·d ≤ 2^(width + s) + 2^s. m has at most width + 1 bits.
fn multiplier(divisor: u64, width: u32) -> (u128, u32) {
    let d = u128::from(divisor);
    let most = 64 - (divisor - 1).leading_zeros();
    for s in 0..most {
        let power = 1_u128 << (width + s);
        let m = power.div_ceil(d);
        if m * d - power <= 1 << s {
            return (m, s);
        }
    }
    // 2^width + 2^width·(2^s − d) / d + 1, which needs a bit more.
    let power = ((1_u128 << most) - d) << width;
    ((1 << width) + power / d + 1, most)
}

/// The least p from the width on, and the magnitude of m, for quotients of signed numbers by one from 3 on or from −3
/// down. A negative divisor has a dividend more, which is why its m may be another.
fn signed_multiplier(divisor: i64, width: u32) -> (u128, u32) {
    let d = u128::from(divisor.unsigned_abs());
    let half = (1_u128 << (width - 1)) + u128::from(divisor < 0);
    let largest = half - 1 - half % d;
    let fits = |p: u32| {
        let rest = d - (1_u128 << p) % d;
        (1_u128 << p) > largest * rest
    };
    let p = (width..2 * width - 1)
        .find(|&p| fits(p))
        .unwrap_or(2 * width - 1);
    let power = 1_u128 << p;
    ((power + d - power % d) / d, p)
}
