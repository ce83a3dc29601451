//! Runs `.clif` test files for the thisgpu target.

pub mod applicability;
pub mod checks;
pub mod expectation;
pub mod interpret;
pub mod report;
pub mod trampoline;
