//! Truths, bitwise operations, choices and comparisons.

use super::{Operation, Sort, Term, mask, ordered, signed};

impl Term {
    /// All bits, or the truth, turned around.
    #[expect(clippy::should_implement_trait, reason = "terms have no operators")]
    pub fn not(self) -> Term {
        match self.operation() {
            Operation::Number(value) => Term::number(!value, self.width()),
            Operation::Known(value) => Term::known(!value),
            Operation::Not(inner) => inner,
            Operation::Concat(high, low) => high.not().above(low.not()),
            _ => Term::make(Operation::Not(self), self.sort()),
        }
    }

    /// A term of two operands of bits that goes part by part, where one of them is joined of parts.
    pub(super) fn by_parts(self, other: Term, f: fn(Term, Term) -> Term) -> Option<Term> {
        let split = |a: Term, b: Term| match (a.operation(), b.operation()) {
            (Operation::Concat(high, low), Operation::Concat(..) | Operation::Number(_)) => {
                Some((high.width(), low.width()))
            }
            _ => None,
        };
        let (high, low) = split(self, other).or_else(|| split(other, self))?;
        let upper = f(self.part(low, high), other.part(low, high));
        let lower = f(self.part(0, low), other.part(0, low));
        Some(upper.above(lower))
    }

    /// The bits, or truths, that both have.
    pub fn and(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        let width = a.width();
        match (a.operation(), b.operation()) {
            _ if a == b => return a,
            (Operation::Known(known), _) => return if known { b } else { a },
            (_, Operation::Known(known)) => return if known { a } else { b },
            (Operation::Number(x), Operation::Number(y)) => return Term::number(x & y, width),
            (Operation::Number(n), _) | (_, Operation::Number(n)) => {
                let (x, number) = if a.as_number().is_some() {
                    (b, a)
                } else {
                    (a, b)
                };
                if n == 0 {
                    return number;
                }
                if n == mask(width) {
                    return x;
                }
                // A run of ones is a part with zeros around it.
                let (from, ones) = (n.trailing_zeros(), n.count_ones());
                if n >> from == mask(ones) {
                    return x
                        .part(from, ones)
                        .zero_extended(width - from)
                        .above_zeros(from);
                }
            }
            (Operation::Not(x), _) if x == b => return a.zeros(),
            (_, Operation::Not(y)) if y == a => return a.zeros(),
            _ => {}
        }
        // All or nothing.
        for (choice, other) in [(a, b), (b, a)] {
            if let Operation::Choose(condition, yes, no) = choice.operation()
                && (yes.as_number(), no.as_number()) == (Some(0), Some(mask(width)))
            {
                return Term::choose(condition, yes, other);
            }
        }
        if let Some(parts) = a.by_parts(b, Term::and) {
            return parts;
        }
        Term::make(Operation::And(a, b), a.sort())
    }

    /// The bits, or truths, that one of both has.
    pub fn or(self, other: Term) -> Term {
        if self.sort() == Sort::Truth {
            return self.not().and(other.not()).not();
        }
        let (a, b) = ordered(self, other);
        match (a.operation(), b.operation()) {
            _ if a == b => return a,
            (Operation::Number(x), Operation::Number(y)) => return Term::number(x | y, a.width()),
            (Operation::Number(0), _) => return b,
            (_, Operation::Number(0)) => return a,
            (Operation::Number(n), _) if n == mask(a.width()) => return a,
            (_, Operation::Number(n)) if n == mask(a.width()) => return b,
            _ => {}
        }
        if let Some(parts) = a.by_parts(b, Term::or) {
            return parts;
        }
        Term::make(Operation::Or(a, b), a.sort())
    }

    /// The bits, or truths, that exactly one of both has.
    pub fn xor(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        match (a.operation(), b.operation()) {
            _ if a == b => return a.zeros(),
            (Operation::Known(known), _) => return if known { b.not() } else { b },
            (_, Operation::Known(known)) => return if known { a.not() } else { a },
            (Operation::Number(x), Operation::Number(y)) => return Term::number(x ^ y, a.width()),
            (Operation::Number(0), _) => return b,
            (_, Operation::Number(0)) => return a,
            (Operation::Number(n), _) if n == mask(a.width()) => return b.not(),
            (_, Operation::Number(n)) if n == mask(a.width()) => return a.not(),
            (Operation::Not(x), _) => return x.xor(b).not(),
            (_, Operation::Not(y)) => return a.xor(y).not(),
            _ => {}
        }
        if let Some(parts) = a.by_parts(b, Term::xor) {
            return parts;
        }
        Term::make(Operation::Xor(a, b), a.sort())
    }

    /// Zeros, or what does not hold, of its sort.
    pub(super) fn zeros(self) -> Term {
        match self.sort() {
            Sort::Bits(width) => Term::number(0, width),
            Sort::Truth | Sort::Memory => Term::known(false),
        }
    }

    /// The first where a truth holds, else the second.
    pub fn choose(condition: Term, yes: Term, no: Term) -> Term {
        if yes == no {
            return yes;
        }
        match condition.operation() {
            Operation::Known(true) => return yes,
            Operation::Known(false) => return no,
            Operation::Not(inner) => return Term::choose(inner, no, yes),
            _ => {}
        }
        if yes.sort() == Sort::Truth {
            let both = condition.and(yes);
            return both.or(condition.not().and(no));
        }
        // A choice under the same condition has been made.
        let under = |t: Term, first: bool| match t.operation() {
            Operation::Choose(c, a, b) if c == condition => {
                if first {
                    a
                } else {
                    b
                }
            }
            _ => t,
        };
        let (yes, no) = (under(yes, true), under(no, false));
        if yes == no {
            return yes;
        }
        // A bit as a number.
        if let Operation::Equal(zero, bit) = condition.operation()
            && (zero.as_number(), bit.width()) == (Some(0), 1)
            && (yes.as_number(), no.as_number()) == (Some(0), Some(1))
        {
            return bit.zero_extended(yes.width());
        }
        Term::make(Operation::Choose(condition, yes, no), yes.sort())
    }

    /// Whether both are the same.
    pub fn equals(self, other: Term) -> Term {
        let (a, b) = ordered(self, other);
        if a == b {
            return Term::known(true);
        }
        if a.sort() == Sort::Truth {
            return a.xor(b).not();
        }
        match (a.operation(), b.operation()) {
            (Operation::Number(_), Operation::Number(_)) => return Term::known(false),
            // A bit is one where it is not zero.
            (Operation::Number(1), _) if a.width() == 1 => {
                return b.equals(Term::number(0, 1)).not();
            }
            (_, Operation::Number(1)) if a.width() == 1 => {
                return a.equals(Term::number(0, 1)).not();
            }
            // What is above a sum is its carry.
            (Operation::Number(0), Operation::Extract(sum, from))
            | (Operation::Extract(sum, from), Operation::Number(0))
                if from + a.width() == sum.width() =>
            {
                if let Some(sum) = sum.sum_with_carry(from) {
                    return sum.part(from, 1).equals(Term::number(0, 1));
                }
            }
            // A choice between numbers that is compared with one is its condition.
            (Operation::Choose(c, x, y), Operation::Number(_))
                if x.as_number().is_some() || y.as_number().is_some() =>
            {
                return Term::choose(c, x.equals(b), y.equals(b));
            }
            (Operation::Number(_), Operation::Choose(c, x, y))
                if x.as_number().is_some() || y.as_number().is_some() =>
            {
                return Term::choose(c, x.equals(a), y.equals(a));
            }
            (Operation::Concat(high, low), _) | (_, Operation::Concat(high, low)) => {
                let whole = if matches!(a.operation(), Operation::Concat(..)) {
                    b
                } else {
                    a
                };
                let upper = high.equals(whole.part(low.width(), high.width()));
                return upper.and(low.equals(whole.part(0, low.width())));
            }
            (Operation::Not(x), Operation::Number(n)) => {
                return x.equals(Term::number(!n, x.width()));
            }
            (Operation::Number(n), Operation::Not(x)) => {
                return x.equals(Term::number(!n, x.width()));
            }
            (Operation::Not(x), Operation::Not(y)) => return x.equals(y),
            // A sum is a number where the rest is the difference.
            (Operation::Add(x, m), Operation::Number(n))
            | (Operation::Number(n), Operation::Add(x, m))
                if m.as_number().is_some() =>
            {
                let m = m.as_number().unwrap_or(0);
                return x.equals(Term::number(n.wrapping_sub(m), x.width()));
            }
            _ => {}
        }
        Term::make(Operation::Equal(a, b), Sort::Truth)
    }

    /// Whether this is less, both unsigned.
    pub fn is_below(self, other: Term) -> Term {
        match (self.as_number(), other.as_number()) {
            _ if self == other => Term::known(false),
            (Some(a), Some(b)) => Term::known(a < b),
            (_, Some(0)) => Term::known(false),
            (Some(0), _) => other.equals(other.zeros()).not(),
            (_, Some(1)) => self.equals(self.zeros()),
            _ => Term::make(Operation::Below(self, other), Sort::Truth),
        }
    }

    /// Whether this is less, both signed.
    pub fn is_less(self, other: Term) -> Term {
        let width = self.width();
        match (self.as_number(), other.as_number()) {
            _ if self == other => Term::known(false),
            (Some(a), Some(b)) => Term::known(signed(a, width) < signed(b, width)),
            // Below zero: the sign.
            (_, Some(0)) => self.part(width - 1, 1).equals(Term::number(1, 1)),
            _ => Term::make(Operation::Less(self, other), Sort::Truth),
        }
    }

    /// Whether a truth holds or does not where this condition holds, if it is one of the truths that this is made of.
    pub fn decides(self, truth: Term) -> Option<bool> {
        let opposite = truth.not();
        let mut work = vec![self];
        while let Some(part) = work.pop() {
            if part == truth {
                return Some(true);
            }
            if part == opposite {
                return Some(false);
            }
            if let Operation::And(a, b) = part.operation() {
                work.extend([a, b]);
            }
        }
        truth.as_known()
    }
}
