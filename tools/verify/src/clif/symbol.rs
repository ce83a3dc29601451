//! Values of the thread and the launch, and shared memory: symbols and calls of `%gpu_NAME` without operands.

use super::Walk;
use crate::machine::{constant, special};
use crate::outcome::Open;
use crate::term::Term;
use cranelift_codegen::ir::{ExternalName, FuncRef, GlobalValue, GlobalValueData};
use cranelift_thisgpu::unstable::abi::SHARED_WINDOW;

/// Where a value of a thread comes from.
enum Source {
    /// A special register.
    Special(&'static str),
    /// A word of constant bank 0 (`docs/guide/abi.md`).
    Constant(u32),
}

/// Values by the names of their intrinsics.
const VALUES: [(&str, Source); 14] = [
    ("tid_x", Source::Special("SR_TID_X")),
    ("tid_y", Source::Special("SR_TID_Y")),
    ("tid_z", Source::Special("SR_TID_Z")),
    ("ctaid_x", Source::Special("SR_CTAID_X")),
    ("ctaid_y", Source::Special("SR_CTAID_Y")),
    ("ctaid_z", Source::Special("SR_CTAID_Z")),
    ("laneid", Source::Special("SR_LANEID")),
    ("ntid_x", Source::Constant(0x0)),
    ("ntid_y", Source::Constant(0x4)),
    ("ntid_z", Source::Constant(0x8)),
    ("nctaid_x", Source::Constant(0xc)),
    ("nctaid_y", Source::Constant(0x10)),
    ("nctaid_z", Source::Constant(0x14)),
    ("dynamic_shared", Source::Constant(0x18)),
];

/// The value of a name without `%gpu_`.
fn named(name: &str) -> Option<Term> {
    let (_, source) = VALUES.iter().find(|value| value.0 == name)?;
    Some(match source {
        Source::Special(register) => special(register),
        Source::Constant(offset) => constant(0, *offset),
    })
}

/// The name behind `%gpu_`.
fn intrinsic(name: &ExternalName) -> Option<&str> {
    match name {
        ExternalName::TestCase(name) => std::str::from_utf8(name.raw()).ok()?.strip_prefix("gpu_"),
        _ => None,
    }
}

impl Walk<'_> {
    /// Whether a callee is an intrinsic; the value that it gives if it has a name here.
    pub(super) fn intrinsic(&self, callee: FuncRef) -> Option<Option<Term>> {
        let name = &self.func.dfg.ext_funcs[callee].name;
        intrinsic(name).map(named)
    }

    /// The value of a symbol.
    pub(super) fn symbol(&self, value: GlobalValue, width: u32) -> Result<Term, Open> {
        let open = || Open::new("the address of a symbol");
        let GlobalValueData::Symbol { name, offset, .. } = &self.func.global_values[value] else {
            return Err(open());
        };
        let offset = i64::from(*offset) as u128;
        match intrinsic(name) {
            Some("shared") if width == 64 => Ok(Term::number(
                u128::from(SHARED_WINDOW).wrapping_add(offset),
                64,
            )),
            Some("shared") => Ok(Term::number(offset, width)),
            Some(other) => named(other).ok_or_else(open),
            None => Err(open()),
        }
    }
}
