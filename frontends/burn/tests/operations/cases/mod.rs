//! The operations, by family.

pub mod arithmetic;
pub mod indexing;
pub mod integers;
pub mod modules;
pub mod reductions;
pub mod shapes;

use crate::run::Run;

/// An operation.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// How far results may be apart, in steps of the type.
    pub tolerance: f64,
    /// What it does.
    pub run: fn(&mut Run) -> Result<(), String>,
}

/// Cases: a name, how many steps results may be apart, and what is done.
macro_rules! cases {
    ($($name:ident($run:ident, $tolerance:expr) $body:block)*) => {
        pub const CASES: &[crate::cases::Case] = &[$(crate::cases::Case {
            name: stringify!($name),
            tolerance: $tolerance,
            run: |$run| $body,
        }),*];
    };
}
pub(crate) use cases;
