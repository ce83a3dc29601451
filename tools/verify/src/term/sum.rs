//! Sums. All that is added is taken apart into terms at places, so that a sum has one form however it was computed.
//!
//! Code adds and multiplies numbers of several words word by word: it adds products at their places, and carries to the
//! next word. CLIF says the same with one operation on wide numbers. Here both become the same sum, by these rules:
//!
//! - What is joined of parts is the sum of its parts at their places; parts of one number side by side are that number.
//! - A sum in a sum is no term of its own if it cannot overflow.
//! - An upper part of a sum or product that is added at place 0 is the upper part of a wider sum: below it there is
//!   nothing else that carries. A carry is such a part, one bit of it.
//! - A term twice is the term one place further up, and a term with its complement is all ones.

use super::{Operation, Sort, Term, mask};
use smallvec::SmallVec;

/// What is added up, modulo 2^`width`.
struct Sum {
    width: u32,
    /// Terms, and the place of the lowest bit of each.
    terms: SmallVec<[(u32, Term); 8]>,
    number: u128,
    /// So many of the first terms are no pairs.
    settled: usize,
}

/// The product of the largest words.
pub const LARGEST_PRODUCT: u128 = 0xffff_fffe_0000_0001;

/// Most terms of a sum that is taken apart, and that is looked through for pairs.
const MOST: usize = 24;

impl Sum {
    fn new(width: u32) -> Self {
        Sum {
            width,
            terms: SmallVec::new(),
            number: 0,
            settled: 0,
        }
    }

    /// Adds a term at a place.
    fn add(&mut self, term: Term, place: u32) {
        if place >= self.width {
            return;
        }
        let term = match self.width - place {
            room if room < term.width() => term.part(0, room),
            _ => term,
        };
        match term.operation() {
            Operation::Number(n) => self.number = self.number.wrapping_add(n << place),
            Operation::Concat(high, low) => {
                self.add(low, place);
                self.add(high, place + low.width());
            }
            Operation::Add(a, b)
                if self.terms.len() < MOST
                    && (place + term.width() == self.width || !term.can_overflow()) =>
            {
                self.add(a, place);
                self.add(b, place);
            }
            _ => self.terms.push((place, term)),
        }
    }

    /// Makes one of two terms where that is possible.
    fn join_pair(&mut self) -> bool {
        for i in self.settled..self.terms.len().min(MOST) {
            for j in 0..i {
                let ((p, a), (q, b)) = (self.terms[i], self.terms[j]);
                let joined = match p {
                    _ if p == q && a == b => Some((a, p + 1)),
                    _ if p == q && a == b.not() => {
                        Some((Term::number(mask(a.width()), a.width()), p))
                    }
                    _ if p == q + b.width() => whole(a, b).map(|t| (t, q)),
                    _ if q == p + a.width() => whole(b, a).map(|t| (t, p)),
                    _ => None,
                };
                if let Some((term, place)) = joined {
                    self.terms.remove(i);
                    self.terms.remove(j);
                    self.settled -= usize::from(j < self.settled);
                    self.add(term, place);
                    return true;
                }
            }
            self.settled = i + 1;
        }
        false
    }

    /// The sum in more bits of which this is the upper part, and how many more.
    fn widened(&self) -> Option<(Sum, u32)> {
        let uppers: SmallVec<[Upper; 4]> = (0..self.terms.len())
            .filter_map(|index| self.upper(index))
            .collect();
        // A carry of what is below one of the others: that with what is added to it below.
        let with_carry = uppers.iter().find_map(|carry| {
            let mut others = uppers.iter();
            others.find_map(|upper| Some((carry, upper, carry.other_addend(upper)?)))
        });
        if let Some((carry, upper, other)) = with_carry {
            let mut wide = self.raised(upper.from, &[carry.index, upper.index]);
            wide.add(upper.whole, 0);
            wide.add(other, 0);
            wide.number = wide.number.wrapping_add(carry.number());
            return Some((wide, upper.from));
        }
        // The longest, so that it does not depend on the order in which they are there.
        let upper = uppers
            .iter()
            .max_by_key(|upper| (upper.from, upper.whole))?;
        let mut wide = self.raised(upper.from, &[upper.index]);
        wide.add(upper.whole, 0);
        Some((wide, upper.from))
    }

    /// The term with an index as the upper part of a sum or a product, which can be added in more bits.
    fn upper(&self, index: usize) -> Option<Upper> {
        let (place, term) = self.terms[index];
        let Operation::Extract(whole, from) = term.operation() else {
            return None;
        };
        let is_upper = place == 0 && from + term.width() == whole.width();
        let is_sum = matches!(
            whole.operation(),
            Operation::Add(..) | Operation::Product(..)
        );
        // The upper words of something, or a carry: what is above all that is added.
        let is_word = from % 32 == 0 || (term.width() == 1 && whole.significant() <= from);
        (is_upper && is_sum && is_word && self.width + from <= 128).then_some(Upper {
            index,
            whole,
            from,
        })
    }

    /// The sum with more bits below, without some of its terms.
    fn raised(&self, more: u32, without: &[usize]) -> Sum {
        let mut wide = Sum::new(self.width + more);
        wide.number = self.number << more;
        for (index, &(place, term)) in self.terms.iter().enumerate() {
            if !without.contains(&index) {
                wide.add(term, place + more);
            }
        }
        wide
    }

    /// The term.
    fn finish(mut self) -> Term {
        while self.join_pair() {}
        match self.widened() {
            Some((wide, more)) => wide.finish().part(more, self.width),
            None => self.in_rows(),
        }
    }

    /// The term, where no pairs and no wider sum are looked for.
    fn in_rows(mut self) -> Term {
        self.terms.sort_unstable();
        // Terms that do not overlap stand in one number.
        let mut rows: SmallVec<[Term; 4]> = SmallVec::new();
        for &(place, term) in &self.terms {
            let found = rows.iter_mut().find(|row| row.width() <= place);
            let row = match found {
                Some(row) => row,
                None => {
                    rows.push(match place {
                        0 => term,
                        place => term.above_zeros(place),
                    });
                    continue;
                }
            };
            *row = term.above(row.zero_extended(place));
        }
        let number = self.number & mask(self.width);
        let mut rest = rows.into_iter().map(|row| row.zero_extended(self.width));
        let Some(first) = rest.next() else {
            return Term::number(number, self.width);
        };
        let add = |a, b| Term::make(Operation::Add(a, b), Sort::Bits(self.width));
        let sum = rest.fold(first, add);
        match number {
            0 => sum,
            number => add(sum, Term::number(number, self.width)),
        }
    }
}

/// A term of a sum that is the upper part of something, from a bit on.
struct Upper {
    index: usize,
    whole: Term,
    from: u32,
}

impl Upper {
    /// Of a carry, the two numbers that it is one of, without what is always zero.
    fn addends(&self) -> Option<[Term; 2]> {
        let Operation::Add(a, b) = self.whole.operation() else {
            return None;
        };
        let (a, b) = match (a.operation(), b.as_number()) {
            (Operation::Add(x, y), Some(_)) => (x, y),
            (_, None) => (a, b),
            _ => return None,
        };
        let is_carry = self.whole.width() == self.from + 1;
        is_carry.then(|| [a, b].map(|t| t.part(0, self.from)))
    }

    /// Of a carry, what is added to the bits below another upper part, if these are one of its two numbers.
    fn other_addend(&self, upper: &Upper) -> Option<Term> {
        let [x, y] = self.addends()?;
        if upper.from != self.from || upper.index == self.index {
            return None;
        }
        match upper.whole.part(0, upper.from) {
            below if below == x => Some(y),
            below if below == y => Some(x),
            _ => None,
        }
    }

    /// The number that is added to these two.
    fn number(&self) -> u128 {
        match self.whole.operation() {
            Operation::Add(_, number) => number.as_number().unwrap_or(0),
            _ => 0,
        }
    }
}

/// What two terms are the upper and the lower bits of.
fn whole(high: Term, low: Term) -> Option<Term> {
    let joined = high.above(low);
    (!matches!(joined.operation(), Operation::Concat(..))).then_some(joined)
}

impl Term {
    /// The sum.
    pub fn plus(self, other: Term) -> Term {
        let mut sum = Sum::new(self.width());
        sum.add(self, 0);
        // They have been looked through when the sum was made.
        if matches!(self.operation(), Operation::Add(..)) {
            sum.settled = sum.terms.len();
        }
        sum.add(other, 0);
        sum.finish()
    }

    /// A number that it is not above, as far as zeros in it are known; sums are not looked into.
    fn most(self) -> u128 {
        match self.operation() {
            Operation::Number(n) => n,
            Operation::Concat(high, low) => high.most() << low.width() | low.most(),
            Operation::Product(..) => LARGEST_PRODUCT,
            _ => mask(self.width()),
        }
    }

    /// The sum of the numbers that the terms of a sum are not above, if it has so many bits.
    fn most_of_sum(self) -> Option<u128> {
        let (mut rest, mut sum) = (self, 0_u128);
        while let Operation::Add(more, last) = rest.operation() {
            sum = sum.checked_add(last.most())?;
            rest = more;
        }
        sum.checked_add(rest.most())
    }

    /// Whether it is a sum of which more than its bits may be left out.
    fn can_overflow(self) -> bool {
        self.most_of_sum()
            .is_none_or(|sum| sum > mask(self.width()))
    }

    /// The bits that a sum may have set, without zeros above.
    pub(super) fn significant_of_sum(self) -> u32 {
        let most = self.most_of_sum().unwrap_or(u128::MAX);
        (128 - most.leading_zeros()).min(self.width())
    }

    /// The bits that a sum or its terms may have set, without zeros above.
    pub(super) fn significant(self) -> u32 {
        let bits = |t: Term| 128 - t.most().leading_zeros();
        let (mut rest, mut most) = (self, 0);
        while let Operation::Add(more, last) = rest.operation() {
            most = most.max(bits(last));
            rest = more;
        }
        most.max(bits(rest))
    }

    /// The low bits of a sum, as a sum: its terms are cut one by one, since a sum that is cut would be added up again.
    pub(super) fn low_sum(self, bits: u32) -> Term {
        let mut sum = Sum::new(bits);
        let mut rest = self;
        while let Operation::Add(more, last) = rest.operation() {
            sum.add(last, 0);
            rest = more;
        }
        sum.add(rest, 0);
        sum.in_rows()
    }

    /// A sum of so many bits and one more, of which this is the upper part where the rest of it is left out: what is
    /// above `bits` is a carry.
    pub(super) fn sum_with_carry(self, bits: u32) -> Option<Term> {
        let Operation::Add(a, b) = self.operation() else {
            return None;
        };
        let is_one_bit = self.most_of_sum()? <= mask(bits + 1) && bits + 1 < self.width();
        is_one_bit.then(|| a.part(0, bits + 1).plus(b.part(0, bits + 1)))
    }
}
