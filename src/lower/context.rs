//! The context of the rules, as the ISLE compiler wants it: every question of the rules is a method of [`Lower`] in the
//! module of its subject, and the constructors of the machine are generated here.

use super::operation::mode::Source;
use super::rules::types::*;
use super::source::output;
use super::state::Lower;
use super::typed::Operand;
use crate::isa::generated::*;

include!(concat!(env!("OUT_DIR"), "/rules_context.rs"));
