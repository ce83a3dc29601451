//! The functions of bit vectors on words of another kind: rows of single bits, with arithmetic made of gates. They have
//! to give what they give on numbers of the host, and so have the operations of [`Bits`] themselves.

use crate::bits::{Bits, Joined, Truth, Word};
use crate::isa::encode::all_forms;
use crate::isa::generated::*;
use crate::isa::random::Random;
use crate::isa::semantics::{Gather, PureOperation, Scatter};
use crate::sim::semantics::{BrevReading, Readings, Reference};

/// A single bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wire(bool);

const OFF: Wire = Wire(false);
const ON: Wire = Wire(true);

impl Truth for Wire {
    fn known(value: bool) -> Wire {
        Wire(value)
    }

    fn not(&self) -> Wire {
        Wire(!self.0)
    }

    fn and(&self, other: &Wire) -> Wire {
        Wire(self.0 && other.0)
    }

    fn or(&self, other: &Wire) -> Wire {
        Wire(self.0 || other.0)
    }

    fn xor(&self, other: &Wire) -> Wire {
        Wire(self.0 != other.0)
    }
}

/// Bits, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row<const N: usize>([Wire; N]);

impl<const N: usize> Row<N> {
    /// The low bits of a number.
    fn of(value: u128) -> Row<N> {
        Row(std::array::from_fn(|i| Wire(value >> i & 1 != 0)))
    }

    /// The number.
    fn value(&self) -> u128 {
        let bits = self.0.iter().rev();
        bits.fold(0, |value, bit| value << 1 | u128::from(bit.0))
    }

    /// The sum with a carry, and the carry out.
    fn sum(&self, other: &Row<N>, mut carry: Wire) -> (Row<N>, Wire) {
        let sum = std::array::from_fn(|i| {
            let (a, b) = (self.0[i], other.0[i]);
            let either = a.xor(&b);
            let sum = either.xor(&carry);
            carry = a.and(&b).or(&either.and(&carry));
            sum
        });
        (Row(sum), carry)
    }

    /// Bit `i` of each, by a gate.
    fn bitwise(&self, other: &Row<N>, gate: impl Fn(&Wire, &Wire) -> Wire) -> Row<N> {
        Row(std::array::from_fn(|i| gate(&self.0[i], &other.0[i])))
    }

    /// Shifted by one power of two after the other, each where the amount has it: up or down, `fill` for what comes in.
    fn barrel(&self, by: &Row<N>, up: bool, fill: Wire) -> Row<N> {
        let mut row = self.clone();
        for (k, wanted) in by.0.iter().enumerate() {
            let distance = if k < 16 { 1 << k } else { N };
            let moved = Row(std::array::from_fn(|i| {
                let from = if up {
                    i.checked_sub(distance)
                } else {
                    Some(i + distance)
                };
                from.and_then(|from| row.0.get(from))
                    .map_or(fill, |bit| *bit)
            }));
            row = Row::choose(wanted, &moved, &row);
        }
        row
    }
}

impl<const N: usize> Bits for Row<N> {
    const WIDTH: u32 = N as u32;
    type Bit = Wire;

    fn number(value: u64) -> Self {
        Row::of(value.into())
    }

    fn plus(&self, other: &Self) -> Self {
        self.sum(other, OFF).0
    }

    fn minus(&self, other: &Self) -> Self {
        self.sum(&other.complement(), ON).0
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self::zero();
        for (i, factor) in other.0.iter().enumerate() {
            let shifted = Row(std::array::from_fn(|k| {
                k.checked_sub(i).map_or(OFF, |k| self.0[k].and(factor))
            }));
            product = product.plus(&shifted);
        }
        product
    }

    fn complement(&self) -> Self {
        Row(self.0.map(|bit| bit.not()))
    }

    fn and(&self, other: &Self) -> Self {
        self.bitwise(other, Truth::and)
    }

    fn or(&self, other: &Self) -> Self {
        self.bitwise(other, Truth::or)
    }

    fn xor(&self, other: &Self) -> Self {
        self.bitwise(other, Truth::xor)
    }

    fn shifted_up(&self, by: &Self) -> Self {
        self.barrel(by, true, OFF)
    }

    fn shifted_down(&self, by: &Self) -> Self {
        self.barrel(by, false, OFF)
    }

    fn shifted_down_signed(&self, by: &Self) -> Self {
        self.barrel(by, false, self.0[N - 1])
    }

    fn equals(&self, other: &Self) -> Wire {
        let differences = self.xor(other);
        differences.0.iter().fold(OFF, |any, bit| any.or(bit)).not()
    }

    fn is_below(&self, other: &Self) -> Wire {
        self.sum(&other.complement(), ON).1.not()
    }

    fn is_less(&self, other: &Self) -> Wire {
        let flipped = |row: &Self| {
            let mut row = row.clone();
            row.0[N - 1] = row.0[N - 1].not();
            row
        };
        flipped(self).is_below(&flipped(other))
    }

    fn choose(condition: &Wire, yes: &Self, no: &Self) -> Self {
        yes.bitwise(no, |yes, no| {
            condition.and(yes).or(&condition.not().and(no))
        })
    }

    fn count_ones(&self) -> Self {
        let bits = self.0.iter();
        bits.fold(Self::zero(), |count, bit| count.sum(&Self::zero(), *bit).0)
    }

    fn leading_zeros(&self) -> Self {
        let mut below = ON;
        let bits = self.0.iter().rev();
        bits.fold(Self::zero(), |count, bit| {
            below = below.and(&bit.not());
            count.sum(&Self::zero(), below).0
        })
    }

    fn reversed(&self) -> Self {
        Row(std::array::from_fn(|i| self.0[N - 1 - i]))
    }
}

macro_rules! halves {
    ($($whole:literal $half:literal;)*) => {$(
        impl Joined for Row<$whole> {
            type Half = Row<$half>;

            fn join(high: &Row<$half>, low: &Row<$half>) -> Self {
                Row(std::array::from_fn(|i| match i.checked_sub($half) {
                    Some(i) => high.0[i],
                    None => low.0[i],
                }))
            }

            fn low(&self) -> Row<$half> {
                Row(std::array::from_fn(|i| self.0[i]))
            }

            fn high(&self) -> Row<$half> {
                Row(std::array::from_fn(|i| self.0[i + $half]))
            }
        }
    )*};
}

halves! {
    16 8;
    32 16;
    64 32;
    128 64;
}

impl Word for Row<32> {
    type Byte = Row<8>;
    type Short = Row<16>;
    type Pair = Row<64>;
    type Quad = Row<128>;
}

/// Sources of a lane: a number for each role, which depends on the seed alone.
struct Values(u64);

impl Values {
    fn value(&self, role: Role, width: u32) -> u64 {
        // Once in a while all sources are the same.
        let role = if self.0.is_multiple_of(8) {
            0
        } else {
            role as u64
        };
        Random::new(self.0).fork(role).number(width)
    }
}

impl Gather for Values {
    fn word(&self, role: Role) -> u32 {
        self.value(role, 32) as u32
    }

    fn pair(&self, role: Role) -> u64 {
        self.value(role, 64)
    }

    fn quad(&self, role: Role) -> u128 {
        let mut random = Random::new(self.0).fork(role as u64);
        u128::from(random.number(64)) << 64 | u128::from(random.number(64))
    }

    fn predicate(&self, role: Role) -> bool {
        Random::new(self.0).fork(role as u64).one_in(2)
    }

    fn predicates(&self) -> u8 {
        Random::new(!self.0).bits() as u8
    }

    fn number(&self, role: Role) -> u32 {
        self.value(role, 8) as u32
    }

    fn signed(&self, role: Role) -> i32 {
        self.value(role, 32) as i32
    }
}

impl Gather<Row<32>> for Values {
    fn word(&self, role: Role) -> Row<32> {
        Row::of(Gather::<u32>::word(self, role).into())
    }

    fn pair(&self, role: Role) -> Row<64> {
        Row::of(Gather::<u32>::pair(self, role).into())
    }

    fn quad(&self, role: Role) -> Row<128> {
        Row::of(Gather::<u32>::quad(self, role))
    }

    fn predicate(&self, role: Role) -> Wire {
        Wire(Gather::<u32>::predicate(self, role))
    }

    fn predicates(&self) -> Row<8> {
        Row::of(Gather::<u32>::predicates(self).into())
    }

    fn number(&self, role: Role) -> u32 {
        Gather::<u32>::number(self, role)
    }

    fn signed(&self, role: Role) -> i32 {
        Gather::<u32>::signed(self, role)
    }
}

/// Results of a lane, by role; none for the set of predicates.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given(Vec<(Option<Role>, u128)>);

impl Scatter for Given {
    fn word(&mut self, role: Role, value: u32) {
        self.0.push((Some(role), value.into()));
    }

    fn pair(&mut self, role: Role, value: u64) {
        self.0.push((Some(role), value.into()));
    }

    fn quad(&mut self, role: Role, value: u128) {
        self.0.push((Some(role), value));
    }

    fn predicate(&mut self, role: Role, value: bool) {
        self.0.push((Some(role), value.into()));
    }

    fn predicates(&mut self, value: u8) {
        self.0.push((None, value.into()));
    }
}

impl Scatter<Row<32>> for Given {
    fn word(&mut self, role: Role, value: Row<32>) {
        self.0.push((Some(role), value.value()));
    }

    fn pair(&mut self, role: Role, value: Row<64>) {
        self.0.push((Some(role), value.value()));
    }

    fn quad(&mut self, role: Role, value: Row<128>) {
        self.0.push((Some(role), value.value()));
    }

    fn predicate(&mut self, role: Role, value: Wire) {
        self.0.push((Some(role), value.0.into()));
    }

    fn predicates(&mut self, value: Row<8>) {
        self.0.push((None, value.value()));
    }
}

/// What an operation gives on words of a kind.
fn results<W: Word, O: PureOperation<W>>(
    reference: Reference,
    form: Form,
    word: u128,
    values: &Values,
) -> Given
where
    Values: Gather<W>,
    Given: Scatter<W>,
{
    let mut given = Given::default();
    let sources = O::gather(values);
    O::scatter(
        O::evaluate(&reference, &O::decode(form, word), &sources),
        &mut given,
    );
    given
}

/// Runs an operation with random modifiers on random numbers, on the host and in rows.
fn agrees<O: PureOperation + PureOperation<Row<32>>>() {
    const CASES: u64 = 200;
    let operation = <O as PureOperation>::OPTYPE;
    let mut random = Random::new(operation as u64);
    for form in all_forms().filter(|form| form.info().optype == operation) {
        for _ in 0..CASES {
            let word = random.instruction(form).word();
            let seed = random.bits();
            for brev in [BrevReading::Complement, BrevReading::Reverse] {
                let reference = Reference {
                    readings: Readings {
                        brev,
                        ..Readings::default()
                    },
                    ..Reference::default()
                };
                assert_eq!(
                    results::<Row<32>, O>(reference, form, word, &Values(seed)),
                    results::<u32, O>(reference, form, word, &Values(seed)),
                    "{form:?} {word:#x} {seed:#x}"
                );
            }
        }
    }
}

macro_rules! agreement {
    ($($name:ident $module:ident;)*) => {
        #[test]
        fn operations_agree_with_gates() {
            $(agrees::<$module::Operation>();)*
        }
    };
}
for_each_bit_vector_operation!(agreement);

/// Compares every operation of [`Bits`] on a number of the host with the same on a row.
macro_rules! arithmetic {
    ($($number:ident $width:literal;)*) => {
        #[test]
        fn numbers_agree_with_gates() {
            let mut random = Random::new(1);
            for case in 0..500u32 {
                $({
                    type Wires = Row<$width>;
                    let mut number = || {
                        u128::from(random.number(64)) << 64 | u128::from(random.number(64))
                    };
                    let a = number() as $number;
                    // Also amounts of shifts about the width, and numbers that are the same.
                    let b = match case % 4 {
                        0 => (number() % (2 * $width)) as $number,
                        1 => a,
                        _ => number() as $number,
                    };
                    let (x, y) = (Wires::of(a.into()), Wires::of(b.into()));
                    let binary: [(fn(&$number, &$number) -> $number, fn(&Wires, &Wires) -> Wires); 11] = [
                        (Bits::plus, Bits::plus),
                        (Bits::minus, Bits::minus),
                        (Bits::times, Bits::times),
                        (Bits::and, Bits::and),
                        (Bits::or, Bits::or),
                        (Bits::xor, Bits::xor),
                        (Bits::shifted_up, Bits::shifted_up),
                        (Bits::shifted_down, Bits::shifted_down),
                        (Bits::shifted_down_signed, Bits::shifted_down_signed),
                        (Bits::lower, Bits::lower),
                        (|a, b| a.limited(b, &a.complement()), |a, b| a.limited(b, &a.complement())),
                    ];
                    for (i, (host, gates)) in binary.iter().enumerate() {
                        let host: u128 = host(&a, &b).into();
                        assert_eq!(gates(&x, &y).value(), host, "{i}: {a:#x} {b:#x}");
                    }
                    let unary: [(fn(&$number) -> $number, fn(&Wires) -> Wires); 6] = [
                        (Bits::complement, Bits::complement),
                        (Bits::negated, Bits::negated),
                        (Bits::count_ones, Bits::count_ones),
                        (Bits::leading_zeros, Bits::leading_zeros),
                        (Bits::reversed, Bits::reversed),
                        (Bits::signs, Bits::signs),
                    ];
                    for (i, (host, gates)) in unary.iter().enumerate() {
                        let host: u128 = host(&a).into();
                        assert_eq!(gates(&x).value(), host, "{i}: {a:#x}");
                    }
                    assert_eq!(x.equals(&y).0, Bits::equals(&a, &b));
                    assert_eq!(x.is_below(&y).0, Bits::is_below(&a, &b));
                    assert_eq!(x.is_less(&y).0, Bits::is_less(&a, &b));
                })*
            }
        }
    };
}

arithmetic! {
    u8 8;
    u16 16;
    u32 32;
    u64 64;
    u128 128;
}
