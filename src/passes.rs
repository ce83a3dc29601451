//! The passes, in the order in which they run.
//!
//! One list names everything that is done to a function, from CLIF to words: what dumps, times and traces name, where a
//! compilation can stop, and what can be left out. What each does stands where it is done: those on CLIF are rows of
//! `clif::pipeline`, the others steps of `compile`.

use std::fmt;

/// A pass, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Pass {
    /// Cranelift's verifier, and the rules for kernels.
    Verify,
    /// Intrinsics found and checked, thread and launch values rewritten.
    Intrinsics,
    /// Structures passed by value copied.
    ByValue,
    /// Atomics that the machine lacks expanded.
    Atomics,
    /// Conversions that the machine lacks expanded.
    Conversions,
    /// What the mid-end fails on put in other words.
    Detours,
    /// Unreachable blocks gone.
    Unreachable,
    /// Calls that ask for unrolled loops taken out.
    UnrollHints,
    /// Stack slots in SSA form, equal intrinsic calls merged.
    Promote,
    /// Cranelift's mid-end, then the merging again.
    MidEnd,
    /// Loops with less to do in each turn.
    Loops,
    /// Loads of tables whose contents are known replaced by constants.
    Tables,
    /// What the mid-end leaves put in fewer instructions of the machine.
    Rewrite,
    /// Wide divisions and operations on lanes rewritten.
    Legalize,
    /// One return for each device function.
    Returns,
    /// Addresses in parts that are uniform and parts that are not.
    SplitAddresses,
    /// Adjacent accesses merged.
    MergeAccesses,
    /// Trees of operations that one instruction does, as calls of intrinsics.
    Fuse,
    /// Places for lanes to meet.
    Places,
    /// The function as selection sees it.
    Clif,
    /// Uniformity, alignment, provenance, uses.
    Analyze,
    /// Instructions selected.
    Lower,
    /// Jump tables read, lanes kept together.
    Converge,
    /// Instructions ordered within blocks.
    Order,
    /// Registers allocated.
    Allocate,
    /// Blocks in order, branches as instructions.
    Layout,
    /// Control bits.
    Control,
    /// Words.
    Emit,
}

/// A pass, its name, and whether a function may do without it.
type Row = (Pass, &'static str, Need);

/// Whether a function may do without a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// Code is wrong, or there is none, without it.
    Required,
    /// Code is slower without it.
    Optional,
}

use Need::{Optional, Required};

/// All passes in order.
const ROWS: [Row; Pass::COUNT] = [
    (Pass::Verify, "verify", Required),
    (Pass::Intrinsics, "intrinsics", Required),
    (Pass::ByValue, "by-value", Required),
    (Pass::Atomics, "atomics", Required),
    (Pass::Conversions, "conversions", Required),
    (Pass::Detours, "detours", Required),
    (Pass::Unreachable, "unreachable", Required),
    (Pass::UnrollHints, "unroll-hints", Required),
    (Pass::Promote, "promote", Optional),
    (Pass::MidEnd, "mid-end", Optional),
    (Pass::Loops, "loops", Optional),
    (Pass::Tables, "tables", Optional),
    (Pass::Rewrite, "rewrite", Optional),
    (Pass::Legalize, "legalize", Required),
    (Pass::Returns, "returns", Required),
    (Pass::SplitAddresses, "split-addresses", Optional),
    (Pass::MergeAccesses, "merge-accesses", Optional),
    (Pass::Fuse, "fuse", Optional),
    (Pass::Places, "places", Required),
    (Pass::Clif, "clif", Required),
    (Pass::Analyze, "analyze", Required),
    (Pass::Lower, "lower", Required),
    (Pass::Converge, "converge", Required),
    (Pass::Order, "order", Optional),
    (Pass::Allocate, "allocate", Required),
    (Pass::Layout, "layout", Required),
    (Pass::Control, "control", Required),
    (Pass::Emit, "emit", Required),
];

impl Pass {
    /// How many there are.
    const COUNT: usize = 28;

    /// All passes in order.
    pub const ALL: [Pass; Pass::COUNT] = {
        let mut all = [Pass::Verify; Pass::COUNT];
        let mut index = 0;
        while index < all.len() {
            all[index] = ROWS[index].0;
            index += 1;
        }
        all
    };

    /// The passes after which the function looks different to somebody who reads it: what is between them is told with
    /// the next.
    pub const PHASES: [Pass; 16] = [
        Pass::Verify,
        Pass::Intrinsics,
        Pass::Promote,
        Pass::MidEnd,
        Pass::Loops,
        Pass::Rewrite,
        Pass::Legalize,
        Pass::Clif,
        Pass::Analyze,
        Pass::Lower,
        Pass::Converge,
        Pass::Order,
        Pass::Allocate,
        Pass::Layout,
        Pass::Control,
        Pass::Emit,
    ];

    /// The last pass before register allocation.
    pub const BEFORE_ALLOCATION: Pass = Pass::Lower;

    /// Name for options, dumps and the table of times.
    pub const fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// The pass of this name.
    pub fn from_name(name: &str) -> Option<Pass> {
        Self::ALL.into_iter().find(|pass| pass.name() == name)
    }

    /// Whether it may be left out: code is only slower without it.
    pub fn is_optional(self) -> bool {
        ROWS[self as usize].2 == Optional
    }

    /// Whether it may be left out.
    ///
    /// # Errors
    /// That it may not, with the passes that may.
    pub fn check_optional(self) -> Result<(), String> {
        if self.is_optional() {
            return Ok(());
        }
        let optional = Self::ALL.into_iter().filter(|pass| pass.is_optional());
        let names: Vec<&str> = optional.map(Self::name).collect();
        let names = names.join(", ");
        Err(format!(
            "{self} is required, code is wrong without it; optional are {names}"
        ))
    }
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_known_by_name() {
        for (index, pass) in Pass::ALL.into_iter().enumerate() {
            assert_eq!(pass as usize, index, "{pass}");
            assert_eq!(Pass::from_name(pass.name()), Some(pass));
        }
        assert_eq!(Pass::from_name("nothing"), None);
        assert!(Pass::PHASES.is_sorted());
    }
}
