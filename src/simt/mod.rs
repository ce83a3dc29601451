//! What a machine function needs because its lanes run in groups.
//!
//! From lowered code, in this order: device functions get one place to return from ([`returns`]), jump tables the code that reads them
//! ([`tables`]), and divergent branches convergence barriers ([`convergence`]).

mod barriers;
pub mod convergence;
mod edit;
mod meeting;
mod regions;
pub mod returns;
pub mod tables;
#[cfg(test)]
mod tests;

pub use barriers::{BARRIERS, TooManyBarriers};
pub use convergence::{ConvergenceError, insert_barriers};
pub use returns::join_returns;
pub use tables::load_jump_tables;
