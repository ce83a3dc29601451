//! Generated from `src/isa/description` by `tools/isagen`: forms, enumerations, typed fields and the types of the semantics.

#![allow(missing_docs, unused_parens, clippy::all)]

include!(concat!(env!("OUT_DIR"), "/isa.rs"));
