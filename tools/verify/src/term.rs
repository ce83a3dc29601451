//! Terms: what a value is as a function of the inputs, in SMT-LIB's theories of bit vectors and arrays.
//!
//! Every term stands once in an arena of its thread, so that equal terms are the same number and a comparison of terms
//! is one of numbers. Constructors simplify: constants are computed, shifts by constants are parts and joins, and parts
//! go down to where the bits come from. What two sides of a proof compute in the same way is then the same term, and no
//! solver need be asked.
//!
//! A product is made of products of words ([`Operation::Product`]), which a solver may take for an unknown function: an
//! equation that holds for any function holds for multiplication, and is found at once.

mod arithmetic;
mod logic;
mod memory;
mod parts;

use hashbrown::HashMap;
use std::cell::RefCell;

/// The sort of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// A truth.
    Truth,
    /// So many bits, 1 to 128.
    Bits(u32),
    /// 2^64 bytes by their addresses.
    Memory,
}

/// A term of this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term(u32);

/// What a term is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An input, by its number among the variables.
    Variable(u32),
    /// A number.
    Number(u128),
    /// A truth that is known.
    Known(bool),
    /// `bvnot`, `not`.
    Not(Term),
    /// `bvand`, `and`.
    And(Term, Term),
    /// `bvor`, `or`.
    Or(Term, Term),
    /// `bvxor`, `xor`.
    Xor(Term, Term),
    /// `bvadd`.
    Add(Term, Term),
    /// `bvmul` of two terms of which one is a number.
    Multiple(Term, Term),
    /// The 64 bits of the product of two words, unsigned.
    Product(Term, Term),
    /// `bvudiv` where the divisor is not zero.
    Quotient(Term, Term),
    /// `bvurem` where the divisor is not zero.
    Remainder(Term, Term),
    /// `bvshl`.
    ShiftLeft(Term, Term),
    /// `bvlshr`.
    ShiftRight(Term, Term),
    /// `bvashr`.
    ShiftRightSigned(Term, Term),
    /// `concat`, the upper bits first.
    Concat(Term, Term),
    /// `extract` from this bit on; the sort says how many.
    Extract(Term, u32),
    /// `ite`.
    Choose(Term, Term, Term),
    /// `=`.
    Equal(Term, Term),
    /// `bvult`.
    Below(Term, Term),
    /// `bvslt`.
    Less(Term, Term),
    /// `select`: the byte at an address.
    Byte(Term, Term),
    /// `store` of a byte at an address.
    Store(Term, Term, Term),
}

/// A term's operation and sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it is made of.
    pub operation: Operation,
    /// Its sort.
    pub sort: Sort,
}

#[derive(Default)]
struct Arena {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Term>,
    variables: Vec<(String, Sort)>,
}

thread_local! {
    static ARENA: RefCell<Arena> = RefCell::default();
}

/// Forgets all terms of this thread, of which none may be used any more.
pub fn clear() {
    ARENA.with_borrow_mut(|arena| *arena = Arena::default());
}

/// The name and sort of a variable.
pub fn variable_of(number: u32) -> (String, Sort) {
    ARENA.with_borrow(|arena| arena.variables[number as usize].clone())
}

/// All ones of a width.
pub fn mask(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

/// A number read as signed.
pub fn signed(value: u128, width: u32) -> i128 {
    (value as i128) << (128 - width) >> (128 - width)
}

impl Operation {
    /// The terms that it is made of.
    pub fn operands(self) -> impl Iterator<Item = Term> {
        use Operation::*;
        let list = match self {
            Variable(_) | Number(_) | Known(_) => [None; 3],
            Not(a) | Extract(a, _) => [Some(a), None, None],
            And(a, b)
            | Or(a, b)
            | Xor(a, b)
            | Add(a, b)
            | Multiple(a, b)
            | Product(a, b)
            | Quotient(a, b)
            | Remainder(a, b)
            | ShiftLeft(a, b)
            | ShiftRight(a, b)
            | ShiftRightSigned(a, b)
            | Concat(a, b)
            | Equal(a, b)
            | Below(a, b)
            | Less(a, b)
            | Byte(a, b) => [Some(a), Some(b), None],
            Choose(a, b, c) | Store(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        list.into_iter().flatten()
    }
}

/// Both in the order of their numbers, for operations that commute.
fn ordered(a: Term, b: Term) -> (Term, Term) {
    if a <= b { (a, b) } else { (b, a) }
}

impl Term {
    fn make(operation: Operation, sort: Sort) -> Term {
        let node = Node { operation, sort };
        ARENA.with_borrow_mut(|arena| {
            let Arena { nodes, numbers, .. } = arena;
            *numbers.entry(node).or_insert_with(|| {
                nodes.push(node);
                Term(nodes.len() as u32 - 1)
            })
        })
    }

    /// Its operation and sort.
    pub fn node(self) -> Node {
        ARENA.with_borrow(|arena| arena.nodes[self.0 as usize])
    }

    /// What it is made of.
    pub fn operation(self) -> Operation {
        self.node().operation
    }

    /// Its sort.
    pub fn sort(self) -> Sort {
        self.node().sort
    }

    /// How many bits it has; none of a truth and of memory.
    pub fn width(self) -> u32 {
        match self.sort() {
            Sort::Bits(width) => width,
            Sort::Truth | Sort::Memory => 0,
        }
    }

    /// The number that it is.
    pub fn as_number(self) -> Option<u128> {
        match self.operation() {
            Operation::Number(value) => Some(value),
            _ => None,
        }
    }

    /// The truth that it is.
    pub fn as_known(self) -> Option<bool> {
        match self.operation() {
            Operation::Known(value) => Some(value),
            _ => None,
        }
    }

    /// The variable of a name; of one name there is one.
    pub fn variable(name: &str, sort: Sort) -> Term {
        let number = ARENA.with_borrow_mut(|arena| {
            let found = arena.variables.iter().position(|v| v.0 == name);
            found.unwrap_or_else(|| {
                arena.variables.push((name.to_owned(), sort));
                arena.variables.len() - 1
            })
        });
        Term::make(Operation::Variable(number as u32), sort)
    }

    /// A number of so many bits.
    pub fn number(value: u128, width: u32) -> Term {
        Term::make(Operation::Number(value & mask(width)), Sort::Bits(width))
    }

    /// A truth that is known.
    pub fn known(value: bool) -> Term {
        Term::make(Operation::Known(value), Sort::Truth)
    }
}
