//! Loads of several turns before what is computed from the first.
//!
//! Takes a block of copied turns. The order pass fills the time until a load arrives, but gives up no registers for it
//! that the function does not need anyway (`sched::order`). A load of the next copies is what there is to fill it with,
//! so loads, and what their addresses are computed from, go first here, as many as [`ROOM`] registers hold; then what
//! is left; and so on.
//!
//! A load passes a store only if both are at known distances from the same pointer, and apart. It passes nothing else
//! that writes, orders memory, acts on the active lanes or may end the kernel.

use super::shape::words;
use super::sorted_set::SortedSet;
use crate::analysis::uses::{for_each_operand, has_effect};
use crate::constants::integer;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};

/// Registers that loads fill before something is computed from them (*assumed*: with them a function is still below the
/// 32 registers up to which as many warps as there can be have room).
const ROOM: u32 = 16;

/// Bytes of memory: so many from so far behind a pointer on.
#[derive(Clone, Copy)]
struct MemoryRange {
    pointer: Value,
    offset: i64,
    bytes: u32,
}

impl MemoryRange {
    /// What a load or store accesses.
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let (mut pointer, mut offset, value) = match func.dfg.insts[inst] {
            InstructionData::Load { arg, offset, .. } => (
                arg,
                i64::from(i32::from(offset)),
                func.dfg.first_result(inst),
            ),
            InstructionData::Store { args, offset, .. } => {
                (args[1], i64::from(i32::from(offset)), args[0])
            }
            _ => return None,
        };
        // A load that extends takes fewer bytes.
        let bytes = func.dfg.value_type(value).bytes();
        while let Some(def) = func.dfg.value_def(pointer).inst()
            && let InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [base, constant],
            } = func.dfg.insts[def]
            && let Some(more) = integer(func, constant)
        {
            pointer = base;
            offset = offset.checked_add(more)?;
        }
        Some(MemoryRange {
            pointer,
            offset,
            bytes,
        })
    }

    /// Whether no byte belongs to both. The distances are small enough not to go round the address space.
    fn is_apart(self, other: MemoryRange) -> bool {
        let near = |place: MemoryRange| place.offset.unsigned_abs() < 1 << 30;
        let ends = |place: MemoryRange| place.offset + i64::from(place.bytes);
        self.pointer == other.pointer
            && near(self)
            && near(other)
            && (ends(self) <= other.offset || ends(other) <= self.offset)
    }
}

/// Puts the loads of `block` as far up as they may go.
pub(super) fn overlap(func: &mut Function, intrinsics: &Intrinsics, block: Block) {
    let insts: Vec<Inst> = func.layout.block_insts(block).collect();
    let Some((&branch, insts)) = insts.split_last() else {
        return;
    };
    let mut rest = insts;
    let mut order: Vec<Inst> = Vec::with_capacity(insts.len());
    while !rest.is_empty() {
        let taken = run(func, intrinsics, rest);
        if taken == 0 {
            order.push(rest[0]);
            rest = &rest[1..];
            continue;
        }
        let (now, later) = rest.split_at(taken);
        arrange(func, now, &mut order);
        rest = later;
    }
    for &inst in &order {
        func.layout.remove_inst(inst);
        func.layout.insert_inst(inst, branch);
    }
}

/// How many of `insts` can be arranged at once: up to what no load may pass, or until there is no room for more loads.
fn run(func: &Function, intrinsics: &Intrinsics, insts: &[Inst]) -> usize {
    let mut stores: Vec<MemoryRange> = Vec::new();
    let mut room = ROOM;
    for (index, &inst) in insts.iter().enumerate() {
        match func.dfg.insts[inst] {
            InstructionData::Load { opcode, .. } if is_plain(opcode) => {
                let place = MemoryRange::of(func, inst);
                let passes =
                    |store: &MemoryRange| place.is_some_and(|place| place.is_apart(*store));
                let needed = words(func.dfg.value_type(func.dfg.first_result(inst)));
                if needed > room || !stores.iter().all(passes) {
                    return index;
                }
                room -= needed;
            }
            InstructionData::Store { .. } => match MemoryRange::of(func, inst) {
                Some(place) => stores.push(place),
                None => return index,
            },
            _ if has_effect(func, inst, intrinsics) => return index,
            _ => {}
        }
    }
    insts.len()
}

/// A load that is no atomic one.
pub(super) fn is_plain(opcode: Opcode) -> bool {
    opcode.can_load() && !opcode.can_store() && opcode != Opcode::AtomicLoad
}

/// Appends `insts` to `order`, the loads and what they depend on first.
fn arrange(func: &Function, insts: &[Inst], order: &mut Vec<Inst>) {
    let mut first: SortedSet<Inst> = SortedSet::default();
    for &inst in insts.iter().rev() {
        let opcode = func.dfg.insts[inst].opcode();
        if opcode.can_load() || first.contains(inst) {
            first.insert(inst);
            for_each_operand(func, inst, |value| {
                if let Some(def) = func.dfg.value_def(value).inst() {
                    first.insert(def);
                }
            });
        }
    }
    let goes_first =
        |inst: &&Inst| first.contains(**inst) && !func.dfg.insts[**inst].opcode().can_store();
    order.extend(insts.iter().filter(goes_first));
    order.extend(insts.iter().filter(|inst| !goes_first(inst)));
}
