//! Every function against a second derivation: the documents' own examples, formulas in wide integers written from the
//! documents without looking at the functions, and exact arithmetic libraries.

mod float;
mod float_convert;
mod half;
mod integer;
mod logic;
mod oracle;
mod planted;
mod rows;
pub(crate) mod shift;
mod transcendental;
mod uniform;

/// All members of an enumeration, in the order of their codes.
fn all<T: crate::isa::inst::FieldEnum>() -> Vec<T> {
    (0..256).filter_map(T::from_code).collect()
}
