//! When instructions issue, whether their control bits keep them apart, and what is told of that.
//!
//! [`timed`] is the issue model of a block, [`pending`] what is on its way in a warp; [`foreseen`] is the same for
//! warps whose lanes all run together, with states that are computed once. [`profile`] records counts and events.

pub(crate) mod foreseen;
pub(crate) mod pending;
pub(crate) mod profile;
pub(crate) mod timed;
