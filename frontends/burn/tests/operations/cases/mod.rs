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
    /// How far results may be apart in f32, in its steps.
    pub steps: f64,
    /// The same in f16 and bf16.
    pub steps_of_halves: f64,
    /// What it does.
    pub run: fn(&mut Run) -> Result<(), String>,
}

/// Cases: a name, how many steps results may be apart in f32 and in halves, and what is done. Numbers are twice what
/// was measured with three seeds, with fusion and autotune and without.
macro_rules! cases {
    ($($name:ident($run:ident, $steps:expr, $of_halves:expr) $body:block)*) => {
        pub const CASES: &[crate::cases::Case] = &[$(crate::cases::Case {
            name: stringify!($name),
            steps: $steps,
            steps_of_halves: $of_halves,
            run: |$run| $body,
        }),*];
    };
}
pub(crate) use cases;
