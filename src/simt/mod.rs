//! What a machine function needs because its lanes run in groups.
//!
//! From lowered code, in this order: jump tables get the code that reads them ([`tables`]), constants that both sides of
//! a branch pass on are loaded in front of it ([`passed`]), short sides of branches become guarded ([`if_convert`]), what
//! both sides computed is computed once ([`cse`]), what is chosen is computed under guards ([`choices`]), lanes meet once
//! where two places have nothing between them ([`meet_later`]), and what is left of divergent branches gets convergence
//! barriers ([`convergence`]).

mod barriers;
mod block_set;
mod choices;
pub mod convergence;
pub(crate) mod edit;
pub mod if_convert;
#[cfg(test)]
mod if_convert_tests;
#[cfg(test)]
mod machine;
mod masks;
mod meet_later;
mod meeting;
mod nesting;
#[cfg(test)]
mod nesting_tests;
mod passed;
mod region;
mod regions;
pub mod tables;
#[cfg(test)]
mod tests;

use crate::cse;
use crate::emit::{Constants, ConstantsFull};
use crate::isa::VReg;
use crate::remarks::Remarks;
use crate::vcode::VCode;
use thiserror::Error;

#[cfg(test)]
pub use barriers::BARRIERS;
pub use choices::guard_choices;
pub use convergence::{ConvergenceError, insert_barriers};
pub use if_convert::convert_ifs;
pub use tables::load_jump_tables;

/// Why a function cannot be made ready for lanes in groups.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimtError {
    /// No room for a jump table.
    #[error(transparent)]
    Constants(#[from] ConstantsFull),
    /// See [`ConvergenceError`].
    #[error(transparent)]
    Convergence(#[from] ConvergenceError),
}

/// All passes of this module on lowered code; `if_convert` says whether short sides of branches become guarded;
/// `remarks` hear of those that do not.
///
/// # Errors
/// See [`SimtError`].
pub fn run(
    code: VCode<VReg>,
    constants: &mut Constants,
    if_convert: bool,
    remarks: &mut Remarks,
) -> Result<VCode<VReg>, SimtError> {
    let code = passed::share(load_jump_tables(code, constants)?);
    let code = if if_convert {
        let blocks = code.blocks.len();
        let code = convert_ifs(code, remarks);
        // What both sides of a branch computed is in one block now.
        let has_changed = code.blocks.len() != blocks;
        guard_choices(if has_changed {
            cse::eliminate(code)
        } else {
            code
        })
    } else {
        code
    };
    Ok(insert_barriers(code)?)
}
