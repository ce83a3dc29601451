//! How values reach the semantics of pure operations and leave them.
//!
//! The generated types (`imad::Sources`, …) name operands by [`Role`]; a simulator implements [`Gather`] and
//! [`Scatter`] for one lane and runs any operation through [`PureOperation`].

use super::generated::{Form, Optype, Role, Semantics};
use crate::bits::Word;

/// Reads operands of one lane, made of words of a kind: numbers of the host where it is not said.
#[allow(
    dead_code,
    reason = "the generator knows operands that no operation has today"
)]
pub trait Gather<W: Word = u32> {
    /// 32 bits.
    fn word(&self, role: Role) -> W;
    /// 64 bits, low word first.
    fn pair(&self, role: Role) -> W::Pair;
    /// 128 bits, low word first.
    fn quad(&self, role: Role) -> W::Quad;
    /// A predicate, its `!` applied.
    fn predicate(&self, role: Role) -> W::Bit;
    /// P0 to P6 in bits 0 to 6, bit 7 set (errata I-41).
    fn predicates(&self) -> W::Byte;
    /// An immediate that says what the operation does (`lut`, `shiftamt`): known whatever the words are.
    fn number(&self, role: Role) -> u32;
    /// A signed immediate.
    fn signed(&self, role: Role) -> i32;
}

/// Writes operands of one lane, made of words of a kind: numbers of the host where it is not said.
pub trait Scatter<W: Word = u32> {
    /// 32 bits.
    fn word(&mut self, role: Role, value: W);
    /// 64 bits, low word first; 32 where the form's operand is narrower.
    fn pair(&mut self, role: Role, value: W::Pair);
    /// 128 bits, low word first.
    #[allow(
        dead_code,
        reason = "what is generated calls it for results of 128 bits, which no operation has yet"
    )]
    fn quad(&mut self, role: Role, value: W::Quad);
    /// A predicate.
    fn predicate(&mut self, role: Role, value: W::Bit);
    /// P0 to P6 from bits 0 to 6.
    fn predicates(&mut self, value: W::Byte);
}

/// An operation without effects: its results are a function of its modifiers and sources.
///
/// One of bit vectors is this for words of every kind, one of floating-point numbers for those of the host alone.
#[allow(
    dead_code,
    reason = "the generator names the operation of each implementation"
)]
pub trait PureOperation<W: Word = u32> {
    /// Which.
    const OPTYPE: Optype;
    /// Words of its result in registers; 0 where it has results in predicates alone.
    const WORDS: usize;
    /// Modifiers, decoded once.
    type Modifiers: Copy + Send + Sync + 'static;
    /// Values read.
    type Sources;
    /// Values written.
    type Results;
    /// The modifiers in a legal word.
    fn decode(form: Form, word: u128) -> Self::Modifiers;
    /// Reads the operands of a lane.
    fn gather<G: Gather<W>>(lane: &G) -> Self::Sources;
    /// Writes the results of a lane.
    fn scatter<S: Scatter<W>>(results: Self::Results, lane: &mut S);
    /// The operation itself.
    fn evaluate<X: Semantics<W>>(
        semantics: &X,
        modifiers: &Self::Modifiers,
        sources: &Self::Sources,
    ) -> Self::Results;
}
