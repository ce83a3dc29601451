//! What is uniform: which values of a kernel live in uniform registers, decided when all is selected.
//!
//! In: a function in which a value that is the same for all lanes is computed twice, in general registers and on the
//! uniform datapath, and the list of these values ([`Offer`]). Out: the function with one of the two. An offer is kept
//! if the value is computed wholly on the uniform datapath: from other such values, immediates, constant memory and
//! special registers of the block. It is worth it under this cost model:
//!
//! - every instruction that stays and reads the value can read it from a uniform register: it has a form with the one
//!   operand that may be uniform ([`crate::isa::sibling`]) in the right place, and nothing else stands there. What
//!   selection fused into its user (a product into IMAD, a shift into LEA) nobody reads;
//! - a group of values that are computed from each other takes no more instructions than in general registers: what is
//!   added and what is not needed any more is counted ([`groups`]);
//! - a result arrives after 6 cycles instead of 4 (latency.isa, *assumed*), so a chain of several that a loop carries
//!   from round to round must be hidden by the loop's other instructions ([`rounds`]). UISETP in turn gives its
//!   predicate after 6 cycles, ISETP after 13.
//!
//! In this order: values without a definition, long chains of loops, values with readers that cannot ([`search`]),
//! crowded blocks, and groups that lose are dropped; then the function is written ([`rewrite`]). What is computed in a
//! block that runs with part of the warp moves to the end of the nearest block above that does not: its operands are
//! there, and it cannot trap. Where the registers run out, allocation brings values back to general registers.
//!
//! Only kernels without calls have such values: across a call they would have to be made again, and in a device
//! function nothing says which lanes are together.

mod convert;
mod groups;
mod lists;
mod rewrite;
mod rounds;
mod search;
#[cfg(test)]
mod tests;

use crate::isa::VReg;
use crate::vcode::{Offer, VCode};
use search::Search;

/// Keeps of each offered value the better way to compute it.
pub fn run(code: VCode<VReg>, offers: &[Offer]) -> VCode<VReg> {
    if offers.is_empty() {
        return code;
    }
    let mut search = Search::new(&code, offers);
    search.drop_not_hidden();
    search.settle();
    search.drop_crowded_parameters();
    search.drop_losing_groups();
    let decision = search.finish();
    rewrite::rewrite(code, decision)
}
