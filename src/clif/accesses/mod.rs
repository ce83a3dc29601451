//! Adjacent accesses to memory become one wide access: pairs of 8 bytes and quads of 16, whatever the pieces are.
//!
//! Before that, generic addresses of shared memory become words ([`narrow`]), and constants inside addresses become
//! offsets ([`address`]), by which accesses side by side are known.
//!
//! Takes a function whose operations are all legal; changes instructions, never blocks. A block is looked at in
//! *segments*: runs of instructions in which nothing waits, traps, calls, or orders memory ([`scan`]). In a segment the
//! accesses to places of one base at constant offsets are sorted, and those that tile an aligned window of 16 or 8
//! bytes without a gap are candidates ([`group`]). Loads go up to the first of them, stores down to the last, if no
//! other access on the way may touch the same bytes. [`build`] then writes the wide access, and takes it apart or puts
//! it together with lanes, which cost no instructions.
//!
//! Alignment must be proven: by [`crate::analysis::alignment`], or by another access of the segment that promises it
//! for a place of the same base. Every access of a segment is executed whenever one of them is, or a fault ends the
//! thread before.
//!
//! What is not merged: accesses with gaps between them, since reading what the program does not read may fault or race;
//! big-endian ones; accesses that are far apart, which would only keep registers.

mod address;
mod build;
mod group;
mod narrow;
mod scan;

use crate::analysis::alignment::Alignment;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::provenance::Provenance;
use crate::error::line_of;
use crate::intrinsics::resolve::Intrinsics;
use crate::remarks::{Missed, Remarks};
use crate::values::tracking::Tracking;
use crate::vcode::SourceLine;
use cranelift_codegen::ir::{Function, Inst};
use group::{Grouping, Reason};
use scan::Segment;
use std::cell::OnceCell;

/// What is known of the function.
#[derive(Clone, Copy)]
pub struct AccessContext<'a> {
    /// Its control flow.
    pub flow: &'a ControlFlow,
    /// Which of its calls are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Whether it is a kernel: then its pointer parameters are global.
    pub kernel: bool,
    /// Trust that every access is naturally aligned.
    pub assume_aligned: bool,
    /// What became of the values of the source.
    pub tracking: &'a Tracking,
}

/// Facts that are computed when the first candidates turn up.
#[derive(Default)]
struct Facts {
    provenance: OnceCell<Provenance>,
    alignment: OnceCell<Alignment>,
}

impl Facts {
    fn provenance(&self, func: &Function, given: &AccessContext) -> &Provenance {
        (self.provenance)
            .get_or_init(|| Provenance::compute(func, given.flow, given.intrinsics, given.kernel))
    }

    fn alignment(&self, func: &Function, given: &AccessContext) -> &Alignment {
        (self.alignment).get_or_init(|| Alignment::compute(func, given.flow, given.intrinsics))
    }
}

/// Makes generic addresses of shared memory words, and takes constants out of addresses, into the offsets of accesses;
/// whether there were any. See [`narrow`] and [`address`].
pub fn split_addresses(func: &mut Function, given: &AccessContext) -> bool {
    let mut changed = false;
    if narrow::concerns(func, given.intrinsics) {
        let facts = Facts::default();
        let provenance = facts.provenance(func, given);
        changed = narrow::narrow(func, given.intrinsics, given.flow, provenance);
        if changed {
            super::merge::drop_unused(func, given.intrinsics, given.flow.postorder());
        }
    }
    address::split(func, given) || changed
}

/// Merges what can be merged; how many accesses went. `remarks` hear of accesses side by side that stay alone. Loads
/// that nobody reads and that cannot trap go first: they would make others wider.
pub fn merge(func: &mut Function, given: &AccessContext, remarks: &mut Remarks) -> usize {
    super::merge::drop_unused(func, given.intrinsics, given.flow.postorder());
    let facts = Facts::default();
    let mut segment = Segment::default();
    let mut insts: Vec<Inst> = Vec::new();
    let mut merged = 0;
    let mut next = func.layout.entry_block();
    while let Some(block) = next {
        next = func.layout.next_block(block);
        insts.clear();
        insts.extend(func.layout.block_insts(block));
        let mut rest = &insts[..];
        while !rest.is_empty() {
            rest = segment.fill(func, given.intrinsics, rest);
            if !segment.has_neighbours() {
                continue;
            }
            // Everything new has facts that say nothing, and is no base.
            let provenance = facts.provenance(func, given);
            segment.count_others(|value| provenance.space(func, value));
            let grouping = Grouping {
                segment: &segment,
                alignment: facts.alignment(func, given),
                assume_aligned: given.assume_aligned,
            };
            let groups = grouping.find(func, &mut |inst, reason| {
                let line = SourceLine(line_of(func.srcloc(inst)).unwrap_or(0));
                remarks.missed(line, Missed::Merging, || reason.text());
            });
            for group in groups {
                merged += group.members.len() - 1;
                build::write(func, &group);
            }
        }
    }
    merged
}

impl Reason {
    fn text(self) -> String {
        match self {
            Reason::Alignment { known, needed } => format!(
                "the address of these {needed} bytes is known to be a multiple of {known}; %gpu_assume_aligned can \
                 promise more"
            ),
            Reason::Between => "an access between may be to the same place".to_owned(),
            Reason::Distance => {
                "it is far from the accesses next to it and would keep registers".to_owned()
            }
        }
    }
}
