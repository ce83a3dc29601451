//! Convergence barriers: lanes that part at a divergent branch go on together where their ways meet.
//!
//! Takes code after if-conversion and returns it with BSSY where a region starts and BSYNC where it ends
//! ([`super::regions`]); edges that lack a place for them get a block first. A call is such a region too, because lanes
//! may come back from it one by one: the callee of an indirect call may differ, and a callee may end in a tail call.
//! Where lanes meet, if they do, is in the blocks ([`Meeting`]). Barriers are callee-saved: a device function puts
//! aside those that it uses.

use super::barriers::{Assignment, BARRIERS, Extent, LiveRange, assign};
use super::edit::Editor;
use super::masks::{Home, Masks};
use super::meet_later::meet_later;
use super::meeting::Meetings;
use super::region::{EdgeSplit, EdgeSplitKind, Extents, Regions};
use super::regions::regions;
use crate::isa::table::Effects;
use crate::isa::{Register, RegisterClass, VReg, build};
use crate::vcode::{Attachment, Block, BlockData, Entry, FunctionKind, Meeting, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use thiserror::Error;

/// Inserts convergence barriers.
///
/// # Errors
/// See [`ConvergenceError`].
pub fn insert_barriers(code: VCode<VReg>) -> Result<VCode<VReg>, ConvergenceError> {
    insert_barriers_around(code, regions, BARRIERS)
}

/// [`insert_barriers`], with the search for regions to use, on a machine of so many barriers.
pub(super) fn insert_barriers_around(
    code: VCode<VReg>,
    find: impl Fn(&Meetings) -> Regions,
    barriers: u8,
) -> Result<VCode<VReg>, ConvergenceError> {
    let parts = |data: &BlockData<VReg>| data.meeting != Meeting::Together;
    if !code.blocks.values().any(parts) && !code.insts.iter().any(is_call) {
        return Ok(code);
    }
    let mut code = split_at_calls(code);
    meet_later(&mut code);
    let (mut code, meetings, regions) = make_places(code, find);
    check_uniform_writes(&mut code, &regions.apart)?;
    let ranges = sorted_ranges(&code, &meetings, regions);
    let assignments = assign(&ranges, code.blocks.len(), barriers);
    let mut editor = Editor::new(code);
    let mut masks = Masks::default();
    for (range, Assignment { number, aside }) in ranges.iter().zip(&assignments) {
        let home = aside.map(|level| masks.home(&mut editor, level, range.starts.len()));
        insert(&mut editor, range, *number, home);
    }
    let used: BTreeSet<u8> = assignments.iter().map(|a| a.number).collect();
    if editor.code().kind == FunctionKind::Device {
        used.into_iter()
            .for_each(|number| keep_for_caller(&mut editor, number));
    }
    for block in editor.blocks() {
        editor.data(block).meeting = Meeting::Together;
    }
    Ok(editor.finish())
}

/// Why lanes cannot be kept together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConvergenceError {
    /// A uniform register is written where lanes may be apart: lowering expected them to meet before.
    #[error("{block} writes a uniform register, and lanes do not meet before it")]
    Apart {
        /// The block.
        block: String,
    },
}

/// Marks blocks that may run while some lanes are elsewhere, and refuses writes to uniform registers there.
fn check_uniform_writes(code: &mut VCode<VReg>, apart: &[bool]) -> Result<(), ConvergenceError> {
    for block in (0..code.blocks.len()).filter(|&b| apart[b]).map(Block::new) {
        let uniform = |r: VReg| r.class() == RegisterClass::Uniform;
        let written = code
            .block_insts(block)
            .iter()
            .any(|e| code.definitions(e).any(uniform));
        if !code.blocks[block].divergent
            && (written || code.blocks[block].params.iter().any(|&p| uniform(p)))
        {
            return Err(ConvergenceError::Apart {
                block: block.to_string(),
            });
        }
        code.blocks[block].divergent = true;
    }
    Ok(())
}

fn is_call(entry: &Entry<VReg>) -> bool {
    entry.inst.optype().info().effects.contains(Effects::CALL)
}

/// The call directly in front of a trap: who comes back need not wait for the others.
fn call_before_trap(body: &[Entry<VReg>], end: &Terminator<VReg>) -> Option<usize> {
    let is_last = matches!(end, Terminator::Trap(_)) && body.last().is_some_and(is_call);
    is_last.then(|| body.len() - 1)
}

/// Puts every call into a block of its own, with a block before and behind it that no other edge enters or leaves; but
/// for those in front of a trap.
fn split_at_calls(code: VCode<VReg>) -> VCode<VReg> {
    if !code.insts.iter().any(is_call) {
        return code;
    }
    let mut editor = Editor::new(code);
    for block in editor.blocks() {
        let mut current = block;
        let body = std::mem::take(editor.body(block));
        let alone = call_before_trap(&body, &editor.data(block).terminator);
        for (at, entry) in body.into_iter().enumerate() {
            if !is_call(&entry) || alone == Some(at) {
                editor.body(current).push(entry);
                continue;
            }
            let line = entry.line;
            // The last block takes over how the first one ended.
            let last = editor.data(current).clone();
            let meeting = match entry
                .attachment
                .map(|id| &mut editor.code().attachments[id])
            {
                Some(Attachment::Call(call)) => std::mem::take(&mut call.meeting),
                _ => Meeting::Together,
            };
            let behind = editor.add_block(
                BlockData {
                    params: Vec::new(),
                    ..last.clone()
                },
                Vec::new(),
            );
            let jump = |target| Terminator::Jump {
                target,
                args: Vec::new(),
            };
            let calling = editor.add_block(
                BlockData {
                    params: Vec::new(),
                    terminator: jump(behind),
                    line,
                    meeting: Meeting::Together,
                    ..last
                },
                vec![entry],
            );
            let before = editor.data(current);
            (before.terminator, before.meeting) = (jump(calling), meeting);
            // On the way to the call.
            before.line = line;
            current = behind;
        }
    }
    editor.finish()
}

/// Adds the blocks that regions lack, until all have a block to start at the end of and a meeting point that only they
/// reach.
fn make_places(
    mut code: VCode<VReg>,
    find: impl Fn(&Meetings) -> Regions,
) -> (VCode<VReg>, Meetings, Regions) {
    loop {
        let meetings = Meetings::of(&code);
        let regions = find(&meetings);
        if regions.found.iter().all(|region| region.places.is_empty()) {
            return (code, meetings, regions);
        }
        let mut editor = Editor::new(code);
        let mut at: HashMap<usize, usize> = HashMap::new();
        let mut by_target: Vec<Vec<&EdgeSplit>> = Vec::new();
        for place in regions.found.iter().flat_map(|region| &region.places) {
            let index = *at.entry(place.target).or_insert(by_target.len());
            if index == by_target.len() {
                by_target.push(Vec::new());
            }
            by_target[index].push(place);
        }
        for mut places in by_target {
            // Of regions in each other that lanes enter at one block, the outer ones begin before the place of the
            // inner ones. What a new block changes for other regions there is seen in the next round.
            let kind = places[0].kind;
            places.retain(|place| place.kind == kind);
            match kind {
                EdgeSplitKind::Entry => places.sort_by_key(|place| Reverse(place.origins.len())),
                EdgeSplitKind::Meeting => places.truncate(1),
            }
            let mut inner = &places[0].origins;
            let mut next = Block::new(places[0].target);
            for (index, place) in places.iter().enumerate() {
                // They are in the same order.
                let mut among = inner.iter();
                let within = place.origins.iter().all(|o| among.any(|other| other == o));
                if index > 0 && (place.origins.len() == inner.len() || !within) {
                    continue;
                }
                inner = &place.origins;
                next = divert(&mut editor, &place.origins, next);
                for &branch in &place.branches {
                    editor.data(Block::new(branch)).meeting = Meeting::At(next);
                }
            }
        }
        code = editor.finish();
    }
}

/// Leads the edges to `target` from `origins` through a new block.
fn divert(editor: &mut Editor<VReg>, origins: &[usize], target: Block) -> Block {
    let data = editor.data(target).clone();
    let params: Vec<VReg> = data
        .params
        .iter()
        .map(|p| editor.code().new_vreg(p.class()))
        .collect();
    let terminator = Terminator::Jump {
        target,
        args: params.clone(),
    };
    let own = editor.add_block(
        BlockData {
            params,
            terminator,
            meeting: Meeting::Together,
            ..data
        },
        Vec::new(),
    );
    for &block in origins {
        let terminator = &mut editor.data(Block::new(block)).terminator;
        terminator.for_each_target(|t| {
            if *t == target {
                *t = own;
            }
        });
    }
    own
}

/// Where the barriers of divergent branches and of calls are in use, outer ones first.
fn sorted_ranges(code: &VCode<VReg>, meetings: &Meetings, regions: Regions) -> Vec<LiveRange> {
    let found = regions.found.into_iter().enumerate();
    let mut ranges: Vec<LiveRange> = found
        .map(|(index, region)| LiveRange {
            starts: region.starts,
            meeting: region.meeting,
            call: None,
            extent: match &regions.extents {
                Extents::Nested(nesting) => Extent::Nested {
                    around: nesting.around(index),
                    blocks: nesting.blocks(index),
                },
                Extents::Sets(sets) => Extent::Set(sets[index].clone()),
            },
        })
        .collect();
    for block in code.blocks.keys().filter(|&b| {
        let ends = matches!(code.blocks[b].terminator, Terminator::Trap(_));
        !ends && code.block_insts(b).last().is_some_and(is_call)
    }) {
        let calling = block.index();
        let start = meetings
            .graph()
            .predecessors(calling)
            .next()
            .expect("the block before a call");
        // Lanes that come back apart have a region like those of a branch, or none.
        if meetings.parts(start) {
            continue;
        }
        let meeting = meetings
            .graph()
            .successors(calling)
            .next()
            .expect("the block behind a call");
        ranges.push(LiveRange {
            starts: vec![start],
            meeting,
            call: Some(calling),
            extent: match &regions.extents {
                Extents::Nested(nesting) => Extent::Nested {
                    around: nesting.around_block(start),
                    blocks: 2,
                },
                Extents::Sets(_) => Extent::Set([start, calling].into_iter().collect()),
            },
        });
    }
    let depth = |r: &LiveRange| {
        r.starts
            .iter()
            .map(|&s| meetings.dominators().depth(s))
            .min()
    };
    ranges.sort_by_cached_key(|r| (depth(r), Reverse(r.extent.len()), r.meeting));
    ranges
}

/// Sets the barrier `number` where the region starts, and waits for it where it ends; `home` has the mask in between.
fn insert(editor: &mut Editor<VReg>, range: &LiveRange, number: u8, home: Option<Home>) {
    let meeting = Block::new(range.meeting);
    for start in range.starts.iter().map(|&s| Block::new(s)) {
        let line = editor.data(start).line;
        let label = editor.attach(Attachment::Label(meeting));
        editor
            .body(start)
            .push(Entry::new(build::bssy_x(number), line).with(label));
        if let Some(home) = home {
            let saving = home.save(editor, number, line);
            editor.body(start).extend(saving);
        }
    }
    // Who comes back from a call is still at it.
    let line = editor.line_at_start(range.call.map_or(meeting, Block::new));
    let mut closing = match home {
        Some(home) => home.restore(editor, number, line),
        None => Vec::new(),
    };
    closing.push(Entry::new(build::bsync_x(number), line));
    editor.body(meeting).splice(0..0, closing);
}

/// Puts a barrier aside at the entry of a device function and back before its end.
fn keep_for_caller(editor: &mut Editor<VReg>, number: u8) {
    let entry = Block::new(0);
    let mask = editor.code().new_vreg(RegisterClass::Gpr);
    let line = editor.line_at_start(entry);
    editor
        .body(entry)
        .insert(0, Entry::new(build::bmov_x(mask, number), line));
    for block in editor.blocks() {
        if matches!(
            editor.terminator(block),
            Terminator::Return { .. } | Terminator::TailCall { .. }
        ) {
            let line = editor.data(block).line;
            editor
                .body(block)
                .push(Entry::new(build::bmov_r(number, mask), line));
        }
    }
}
