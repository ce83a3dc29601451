//! Block parameters that registers cannot hold.
//!
//! On an edge all arguments of the target block are in registers at the same time; spilling can move everything else to memory, but not these. A block with more
//! parameters than a part of the registers holds, as the common return of a function with many wide results may be, gets its last ones through stack
//! slots: each edge stores the arguments, the block loads them. An edge from a branch with several targets gets a block of its own for the stores. This runs
//! last, so that nothing puts the values back.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::flowgraph::{BlockPredecessor, ControlFlowGraph};
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, Function, Inst, InstBuilder, MemFlagsData, StackSlot,
    StackSlotData, StackSlotKind, Type, Value, types,
};

/// Lets no block have more than `budget` words of parameters. True if the graph has changed.
pub fn narrow(func: &mut Function, cfg: &ControlFlowGraph, budget: u32) -> bool {
    let wide: Vec<(Block, Vec<Value>)> = func
        .layout
        .blocks()
        .skip(1)
        .filter_map(|block| {
            let excess = excess(func, block, budget);
            (!excess.is_empty()).then_some((block, excess))
        })
        .collect();
    let mut edges: Vec<(Block, Vec<Inst>)> = Vec::new();
    for (block, _) in &wide {
        let mut branches: Vec<Inst> = cfg
            .pred_iter(*block)
            .map(|BlockPredecessor { inst, .. }| inst)
            .collect();
        // A branch may come to the block more than once.
        branches.sort();
        branches.dedup();
        edges.push((*block, branches));
    }
    for ((block, params), (_, branches)) in wide.iter().zip(edges) {
        through_memory(func, *block, params, &branches);
    }
    if !wide.is_empty() {
        func.dfg.resolve_all_aliases();
    }
    !wide.is_empty()
}

fn words(ty: Type) -> u32 {
    ty.bits().div_ceil(32)
}

/// The last parameters of a block, beyond those that `budget` words hold.
fn excess(func: &Function, block: Block, budget: u32) -> Vec<Value> {
    let mut sum = 0;
    let params = func.dfg.block_params(block).iter().copied();
    params
        .filter(|param| {
            sum += words(func.dfg.value_type(*param));
            sum > budget
        })
        .collect()
}

/// Hands `params` of a block over in stack slots.
fn through_memory(func: &mut Function, block: Block, params: &[Value], branches: &[Inst]) {
    let slots: Vec<(usize, StackSlot)> = params
        .iter()
        .map(|param| {
            let bytes = func.dfg.value_type(*param).bytes();
            let align = bytes.next_power_of_two().trailing_zeros() as u8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, align);
            let position = func.dfg.block_params(block).iter().position(|p| p == param);
            // They are parameters of this block.
            let position = position.unwrap_or_default();
            (position, func.create_sized_stack_slot(data))
        })
        .collect();
    for &branch in branches {
        store_on_edges(func, block, &slots, branch);
    }
    let flags = MemFlagsData::trusted();
    for (param, (_, slot)) in params.iter().zip(&slots) {
        let ty = func.dfg.value_type(*param);
        func.dfg.remove_block_param(*param);
        let mut pos = FuncCursor::new(func).at_first_insertion_point(block);
        let address = pos.ins().stack_addr(types::I64, *slot, 0);
        let value = pos.ins().load(ty, flags, address, 0);
        func.dfg.change_to_alias(*param, value);
    }
}

/// Stores the arguments for `slots` wherever `branch` goes to `block`, and takes them out of the branch.
fn store_on_edges(func: &mut Function, block: Block, slots: &[(usize, StackSlot)], branch: Inst) {
    let dfg = &func.dfg;
    let calls = dfg.insts[branch].branch_destination(&dfg.jump_tables, &dfg.exception_tables);
    let count = calls.len();
    let calls: Vec<(usize, Vec<BlockArg>)> = calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.block(&dfg.value_lists) == block)
        .map(|(index, call)| (index, call.args(&dfg.value_lists).collect()))
        .collect();
    for (index, args) in calls {
        let kept: Vec<BlockArg> = (0..args.len())
            .filter(|position| slots.iter().all(|(moved, _)| moved != position))
            .map(|position| args[position])
            .collect();
        let location = func.srcloc(branch);
        let mut pos = FuncCursor::new(func);
        if count == 1 {
            pos.goto_inst(branch);
        } else {
            let between = pos.func.dfg.make_block();
            pos.func.layout.insert_block(between, block);
            pos.goto_bottom(between);
        }
        let mut pos = pos.with_srcloc(location);
        for (position, slot) in slots {
            // Only exceptions pass something else, and the target has none.
            if let Some(value) = args[*position].as_value() {
                let address = pos.ins().stack_addr(types::I64, *slot, 0);
                pos.ins().store(MemFlagsData::trusted(), value, address, 0);
            }
        }
        let target = if count == 1 {
            (block, kept)
        } else {
            pos.ins().jump(block, &kept);
            (pos.current_block().unwrap_or(block), Vec::new())
        };
        let dfg = &mut func.dfg;
        let call = BlockCall::new(target.0, target.1, &mut dfg.value_lists);
        dfg.insts[branch].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables)
            [index] = call;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::settings::{self, Flags};

    fn narrowed(text: &str, budget: u32) -> Function {
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let cfg = ControlFlowGraph::with_function(&func);
        assert!(narrow(&mut func, &cfg, budget));
        let flags = Flags::new(settings::builder());
        cranelift_codegen::verify_function(&func, &flags).unwrap();
        let cfg = ControlFlowGraph::with_function(&func);
        assert!(!narrow(&mut func, &cfg, budget), "one time is enough");
        func
    }

    #[test]
    fn a_jump_stores_before_it() {
        let func = narrowed(
            "function %f(i64, i128, i32) -> i32 {
            block0(v0: i64, v1: i128, v2: i32):
                jump block1(v0, v1, v2)
            block1(v3: i64, v4: i128, v5: i32):
                return v5
            }",
            3,
        );
        let text = func.to_string();
        assert_eq!(func.sized_stack_slots.len(), 2, "{text}");
        assert!(text.contains("jump block1(v0)\n"), "{text}");
    }

    #[test]
    fn an_edge_of_a_branch_gets_a_block() {
        let func = narrowed(
            "function %f(i64, i64) -> i64 {
            block0(v0: i64, v1: i64):
                jump block1(v0, v1)
            block1(v2: i64, v3: i64):
                brif v2, block1(v3, v2), block1(v2, v2)
            }",
            2,
        );
        let text = func.to_string();
        assert_eq!(func.layout.blocks().count(), 4, "{text}");
        assert!(
            text.contains("jump block1(v3)") || text.contains("jump block1(v2)"),
            "{text}"
        );
    }
}
