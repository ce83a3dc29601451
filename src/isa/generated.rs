//! Generated from `src/isa/description` by `tools/isagen`: forms, enumerations, typed fields and the types of the
//! semantics.

#![allow(
    dead_code,
    reason = "the tables are whole, whatever the compiler uses of them"
)]
#![allow(missing_docs, unused_parens, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/isa.rs"));
