//! Programs before they run: words are decoded once, and what is known then is not looked for again.
//!
//! [`program`] holds the decoded instructions with what they read and write ([`footprint`]). Each has an [`action`]; a
//! pure operation's is the lane loop that [`specialised`] finds for its operands ([`lane_loop`]), compiled for the
//! vector instructions of the [`host`].

pub(crate) mod action;
pub(crate) mod footprint;
pub(crate) mod host;
pub(crate) mod lane_loop;
pub(crate) mod program;
pub(crate) mod specialised;
