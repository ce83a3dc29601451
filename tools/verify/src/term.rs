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
mod substitute;
mod sum;

pub use substitute::{rebuilt, substituted};
pub use sum::LARGEST_PRODUCT;

use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};
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
    /// An unknown function, by its number, of a list of terms, by its number. What holds for any function holds for
    /// that one.
    Apply(u32, u32),
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
    variable_numbers: HashMap<(String, Sort), u32>,
    functions: Vec<Unknown>,
    function_numbers: HashMap<Unknown, u32>,
    lists: Vec<List>,
    list_numbers: HashMap<List, u32>,
    facts: Vec<Term>,
    /// Parts that have been taken: the term, the lowest bit and how many.
    parts: HashMap<(Term, u32, u32), Term>,
}

/// The operands of a term.
pub type List = SmallVec<[Term; 3]>;

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

/// An unknown function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unknown {
    /// Its name.
    pub name: String,
    /// Whether its first two operands may change places.
    pub is_symmetric: bool,
}

/// The unknown function with a number.
pub fn function_of(number: u32) -> Unknown {
    ARENA.with_borrow(|arena| arena.functions[number as usize].clone())
}

/// What holds whatever the inputs are.
pub fn facts() -> Vec<Term> {
    ARENA.with_borrow(|arena| arena.facts.clone())
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
    pub fn operands(self) -> List {
        use Operation::*;
        match self {
            Variable(_) | Number(_) | Known(_) => List::new(),
            Not(a) | Extract(a, _) => smallvec![a],
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
            | Byte(a, b) => smallvec![a, b],
            Choose(a, b, c) | Store(a, b, c) => smallvec![a, b, c],
            Apply(_, list) => ARENA.with_borrow(|arena| arena.lists[list as usize].clone()),
        }
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

    /// The variable of a name; of one name and sort there is one.
    pub fn variable(name: &str, sort: Sort) -> Term {
        let number = ARENA.with_borrow_mut(|arena| {
            let Arena {
                variables,
                variable_numbers,
                ..
            } = arena;
            let key = (name.to_owned(), sort);
            *variable_numbers.entry(key).or_insert_with(|| {
                variables.push((name.to_owned(), sort));
                variables.len() as u32 - 1
            })
        });
        Term::make(Operation::Variable(number), sort)
    }

    /// An unknown function of terms; of one name, sorts of operands and sort there is one.
    pub fn apply(function: &Unknown, operands: &[Term], sort: Sort) -> Term {
        let mut operands = List::from_slice(operands);
        if function.is_symmetric
            && let [a, b, ..] = &mut operands[..]
            && *b < *a
        {
            std::mem::swap(a, b);
        }
        let operation = ARENA.with_borrow_mut(|arena| {
            let Arena {
                functions,
                function_numbers,
                lists,
                list_numbers,
                ..
            } = arena;
            let function = *function_numbers.entry_ref(function).or_insert_with(|| {
                functions.push(function.clone());
                functions.len() as u32 - 1
            });
            let list = *list_numbers.entry(operands).or_insert_with_key(|list| {
                lists.push(list.clone());
                lists.len() as u32 - 1
            });
            Operation::Apply(function, list)
        });
        Term::make(operation, sort)
    }

    /// Notes that this holds whatever the inputs are: solvers are told.
    pub(crate) fn assume(self) {
        ARENA.with_borrow_mut(|arena| {
            if !arena.facts.contains(&self) {
                arena.facts.push(self);
            }
        });
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
