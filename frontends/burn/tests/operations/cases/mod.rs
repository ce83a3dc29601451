//! The operations, by family.

pub mod arithmetic;
pub mod indexing;
pub mod integers;
pub mod modules;
pub mod reductions;
pub mod shapes;

use crate::compare::Float;
use crate::run::Run;
use burn::tensor::DType;

/// An operation.
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// How far results may be apart in f32 and f64, in steps ([`compare`](crate::compare)).
    steps: f64,
    /// The same in f16 and bf16.
    steps_of_halves: f64,
    /// What it does.
    pub run: fn(&mut Run) -> Result<(), String>,
}

impl Case {
    /// How far results of a type may be apart, in steps.
    pub fn steps_in(&self, float: Float) -> f64 {
        match float.dtype {
            DType::F32 | DType::F64 => self.steps,
            _ => self.steps_of_halves,
        }
    }
}

/// Cases: a name, how many steps results may be apart in f32 and f64, and in halves, and what is done. Numbers are
/// twice what was measured with twenty seeds, and with two seeds with fusion and autotune.
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
