//! Which rules are proven: a catalogue of all ISLE rules, each with functions for whose code it fired.
//!
//! In: the files of `isle/` ([`source`]) and many functions ([`corpus`]). They are compiled, and the compiler says which
//! rules fire for which types of instructions ([`fired`]). Then, for each rule and type, the smallest functions are
//! proven until one is ([`catalogue`]). Out: a page for people and for tests ([`page`]). Rules of floats are also run
//! ([`numbers`]).
//!
//! A rule is not proven for all functions by that. What is proven is the whole code of functions in which it had a part,
//! for all their inputs: a rule that is wrong for its operands cannot hide there.

mod calls;
pub mod catalogue;
pub mod corpus;
pub mod fired;
pub mod numbers;
pub mod page;
pub mod source;
