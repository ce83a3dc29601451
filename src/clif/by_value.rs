//! Structures passed by value: the caller copies them into its frame.
//!
//! A parameter `sarg(SIZE)` is a pointer to SIZE bytes that belong to the callee. Before each call with such parameters
//! the bytes are copied to a stack slot, and the slot's address is passed instead. One slot serves all calls of a
//! function for the parameters of the same size that stand at the same place in order: a copy is dead when its call
//! returns. Nothing is known of the pointer's alignment, so a copy is made of accesses whose alignment the analyses
//! find out. Up to [`UNROLLED`] bytes they stand one after the other, beyond that in a loop.
//!
//! Tail calls with structures, structures larger than local memory, and pointers of another type than i64 have been
//! refused by [`super::signatures`].

use super::signatures::has_structures;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    ArgumentPurpose, BlockArg, Function, Inst, InstBuilder, MemFlagsData, StackSlot, StackSlotData,
    StackSlotKind, Type, Value, types,
};
use hashbrown::HashMap;

/// Most bytes that are copied without a loop (*assumed*: 32 instructions where the alignment is known).
const UNROLLED: u32 = 256;
/// Bytes of a turn of the loop.
const STEP: u32 = 16;
/// 2 to this power is the alignment of a copy.
const ALIGN_SHIFT: u8 = crate::abi::STACK_ALIGNMENT.trailing_zeros() as u8;

/// Copies the structures that the calls of `func` pass by value. True if the graph has changed.
pub fn expand(func: &mut Function) -> bool {
    if !func.dfg.signatures.values().any(has_structures) {
        return false;
    }
    let calls: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter(|&inst| func.dfg.call_signature(inst).is_some())
        .collect();
    let mut slots: HashMap<(usize, u32), StackSlot> = HashMap::new();
    let mut split = false;
    for inst in calls {
        let Some(signature) = func.dfg.call_signature(inst) else {
            continue;
        };
        // The first operand of an indirect call is what is called.
        let params = &func.dfg.signatures[signature].params;
        let first = func.dfg.inst_args(inst).len() - params.len();
        let structures: Vec<(usize, u32)> = (params.iter().enumerate())
            .filter_map(|(index, param)| match param.purpose {
                ArgumentPurpose::StructArgument(size) if size > 0 => Some((first + index, size)),
                _ => None,
            })
            .collect();
        for (order, (argument, size)) in structures.into_iter().enumerate() {
            let slot = *slots.entry((order, size)).or_insert_with(|| {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, ALIGN_SHIFT);
                func.create_sized_stack_slot(data)
            });
            let mut pos = FuncCursor::new(func).at_inst(inst);
            pos.use_srcloc(inst);
            let from = pos.func.dfg.inst_args(inst)[argument];
            let to = pos.ins().stack_addr(types::I64, slot, 0);
            split |= copy(&mut pos, from, to, size);
            func.dfg.inst_args_mut(inst)[argument] = to;
        }
    }
    split
}

/// Copies before the cursor's instruction; true if blocks were added.
fn copy(pos: &mut FuncCursor<'_>, from: Value, to: Value, size: u32) -> bool {
    if size <= UNROLLED {
        copy_pieces(pos, from, to, 0, size);
        return false;
    }
    let turns_end = size / STEP * STEP;
    let inst = pos.current_inst().expect("the cursor is at a call");
    let (turn, rest) = (pos.func.dfg.make_block(), pos.func.dfg.make_block());
    let start = pos.ins().iconst(types::I64, 0);
    pos.ins().jump(turn, &[BlockArg::Value(start)]);
    // Everything from the call on moves to `rest`.
    pos.func.layout.split_block(rest, inst);
    pos.func.layout.insert_block(turn, rest);
    let at = pos.func.dfg.append_block_param(turn, types::I64);
    pos.goto_bottom(turn);
    let (source, target) = (pos.ins().iadd(from, at), pos.ins().iadd(to, at));
    copy_pieces(pos, source, target, 0, STEP);
    let next = pos.ins().iadd_imm_s(at, i64::from(STEP));
    let more = pos
        .ins()
        .icmp_imm_u(IntCC::UnsignedLessThan, next, i64::from(turns_end));
    pos.ins()
        .brif(more, turn, &[BlockArg::Value(next)], rest, &[]);
    pos.goto_inst(inst);
    copy_pieces(pos, from, to, turns_end, size);
    true
}

/// Copies the bytes from offset `start` to `end`.
fn copy_pieces(pos: &mut FuncCursor<'_>, from: Value, to: Value, start: u32, end: u32) {
    const SIZES: [(u32, Type); 5] = [
        (16, types::I8X16),
        (8, types::I64),
        (4, types::I32),
        (2, types::I16),
        (1, types::I8),
    ];
    let mut at = start;
    while at < end {
        let fitting = SIZES.into_iter().find(|&(bytes, _)| bytes <= end - at);
        let (bytes, ty) = fitting.unwrap_or((1, types::I8));
        // Larger structures have been refused.
        let offset = at as i32;
        let value = pos.ins().load(ty, MemFlagsData::new(), from, offset);
        pos.ins().store(MemFlagsData::new(), value, to, offset);
        at += bytes;
    }
}
