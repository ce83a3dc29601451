//! Every function against a second derivation: the documents' own examples, formulas in wide integers written from the documents
//! without looking at the functions, and exact arithmetic libraries.

mod integer;
mod logic;
mod random;
mod shift;
