//! Taking parts of a function away as long as it still fails.
//!
//! A [`Reducer`] tries its steps at every place of the function, over and over until none of them helps; what it tries
//! is valid CLIF and smaller.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::immediates::{Ieee16, Ieee32, Ieee64};
use cranelift_codegen::ir::{
    Block, BlockArg, ConstantData, Function, Inst, InstBuilder, Opcode, TrapCode, Type, Value,
    types,
};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;
use std::io::Write;

/// Makes functions smaller that fail.
pub struct Reducer<'a> {
    /// Whether a function fails.
    pub fails: &'a dyn Fn(&Function) -> bool,
    /// What is tried, in this order.
    pub steps: &'a [(&'static str, Step)],
    /// Tell what helped.
    pub verbose: bool,
}

/// One way to make a function smaller, at a place; `None` when there are no more places.
pub type Step = fn(&mut Function, usize) -> Option<()>;

/// All steps, for what need not run.
pub const STEPS: [(&str, Step); 4] = [
    ("block ends in a trap", end_in_trap),
    ("branch goes one way", go_one_way),
    ("instruction gone", drop_instruction),
    ("unused declaration gone", drop_slot),
];

/// The steps that leave a function able to run to its end.
pub const RUNNABLE_STEPS: [(&str, Step); 3] = [
    ("branch goes one way", go_one_way),
    ("instruction gone", drop_instruction),
    ("operand replaced", use_operand),
];

/// The steps for kernels that run: whoever makes them smaller bounds how long they may.
pub const STEPS_OF_LAUNCHES: [(&str, Step); 4] = [
    ("branch goes one way", go_one_way),
    ("instruction gone", drop_instruction),
    ("operand replaced", use_operand),
    ("unused declaration gone", drop_slot),
];

impl Reducer<'_> {
    /// The smallest function that still fails.
    pub fn reduce(&self, mut func: Function) -> Function {
        loop {
            let mut progress = false;
            for (what, step) in self.steps {
                let mut place = 0;
                loop {
                    let mut smaller = func.clone();
                    if step(&mut smaller, place).is_none() {
                        break;
                    }
                    remove_unreachable(&mut smaller);
                    let valid = verify_function(&smaller, &Flags::new(settings::builder())).is_ok();
                    if valid && size(&smaller) < size(&func) && (self.fails)(&smaller) {
                        func = smaller;
                        progress = true;
                        if self.verbose {
                            let left = size(&func).0;
                            // Whoever has closed standard error wants no messages.
                            let _ = writeln!(std::io::stderr(), "{what}: {left} instructions left");
                        }
                    } else {
                        place += 1;
                    }
                }
            }
            if !progress {
                return func;
            }
        }
    }
}

/// What gets smaller: instructions that are no constants, then all, then ways of branches, then bytes of slots.
fn size(func: &Function) -> (usize, usize, usize, u32) {
    let insts = || {
        func.layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
    };
    let constant = |inst: &Inst| {
        matches!(
            func.dfg.insts[*inst].opcode(),
            Opcode::Iconst
                | Opcode::F16const
                | Opcode::F32const
                | Opcode::F64const
                | Opcode::Vconst
                | Opcode::Uextend
        )
    };
    let ways = |inst: Inst| {
        let tables = &func.dfg.jump_tables;
        let calls = func.dfg.insts[inst].branch_destination(tables, &func.dfg.exception_tables);
        calls.len()
    };
    let slots = func.sized_stack_slots.values().map(|slot| slot.size).sum();
    (
        insts().filter(|inst| !constant(inst)).count(),
        insts().count(),
        insts().map(ways).sum(),
        slots,
    )
}

/// Replaces the terminator of a block by a trap.
fn end_in_trap(func: &mut Function, place: usize) -> Option<()> {
    let block = func.layout.blocks().nth(place)?;
    let last = func.layout.last_inst(block)?;
    FuncCursor::new(func)
        .at_inst(last)
        .ins()
        .trap(TrapCode::unwrap_user(1));
    func.layout.remove_inst(last);
    Some(())
}

/// Replaces a branch by a jump to one of its targets.
fn go_one_way(func: &mut Function, place: usize) -> Option<()> {
    let mut ways = func.layout.blocks().flat_map(|block| {
        let last = func.layout.last_inst(block);
        let targets = last.map_or(0, |last| {
            let tables = &func.dfg.jump_tables;
            let calls = func.dfg.insts[last].branch_destination(tables, &func.dfg.exception_tables);
            // A jump has nothing to lose.
            if calls.len() > 1 { calls.len() } else { 0 }
        });
        last.into_iter()
            .flat_map(move |last| (0..targets).map(move |way| (last, way)))
    });
    let (last, way) = ways.nth(place)?;
    let call = func.dfg.insts[last]
        .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables)[way];
    let target = call.block(&func.dfg.value_lists);
    let args: Vec<BlockArg> = call.args(&func.dfg.value_lists).collect();
    FuncCursor::new(func)
        .at_inst(last)
        .ins()
        .jump(target, &args);
    func.layout.remove_inst(last);
    Some(())
}

/// Replaces the result of an instruction by an operand of the same type.
fn use_operand(func: &mut Function, place: usize) -> Option<()> {
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    let mut choices = insts.flat_map(|inst| {
        let dfg = &func.dfg;
        let result = match dfg.inst_results(inst) {
            [result] => Some(*result),
            _ => None,
        };
        result.into_iter().flat_map(move |result| {
            let same = move |arg: &Value| dfg.value_type(*arg) == dfg.value_type(result);
            dfg.inst_args(inst)
                .iter()
                .copied()
                .filter(same)
                .map(move |arg| (inst, result, arg))
        })
    });
    let (inst, result, arg) = choices.nth(place)?;
    func.dfg.clear_results(inst);
    func.dfg.change_to_alias(result, arg);
    func.layout.remove_inst(inst);
    func.dfg.resolve_all_aliases();
    Some(())
}

/// Removes an instruction; its results become zeros.
fn drop_instruction(func: &mut Function, place: usize) -> Option<()> {
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    let inst = insts
        .filter(|inst| !func.dfg.insts[*inst].opcode().is_terminator())
        .nth(place)?;
    let results: Vec<Value> = func
        .dfg
        .inst_results(inst)
        .iter()
        .copied()
        .filter(|value| is_used(func, *value))
        .collect();
    let mut position = FuncCursor::new(func).at_inst(inst);
    let mut zeros = Vec::new();
    for value in &results {
        let ty = position.func.dfg.value_type(*value);
        zeros.push(zero(&mut position, ty));
    }
    // A function without the instruction and without its values does not verify, and is not taken.
    position.func.dfg.clear_results(inst);
    for (value, zero) in results.into_iter().zip(zeros) {
        if let Some(zero) = zero {
            position.func.dfg.change_to_alias(value, zero);
        }
    }
    func.layout.remove_inst(inst);
    func.dfg.resolve_all_aliases();
    Some(())
}

/// True if an instruction or a branch reads the value.
fn is_used(func: &Function, value: Value) -> bool {
    let mut insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| {
        func.dfg
            .inst_values(inst)
            .any(|used| func.dfg.resolve_aliases(used) == value)
    })
}

/// A zero of a type, where one instruction makes it.
fn zero(position: &mut FuncCursor<'_>, ty: Type) -> Option<Value> {
    Some(match ty {
        types::F16 => position.ins().f16const(Ieee16::with_bits(0)),
        types::F32 => position.ins().f32const(Ieee32::with_bits(0)),
        types::F64 => position.ins().f64const(Ieee64::with_bits(0)),
        _ if ty.is_int() && ty.bits() <= 64 => position.ins().iconst(ty, 0),
        types::I128 => {
            let low = position.ins().iconst(types::I64, 0);
            position.ins().uextend(ty, low)
        }
        _ if ty.is_vector() && ty.bytes() <= 16 => {
            let zeros = [0; 16];
            let data = ConstantData::from(&zeros[..ty.bytes() as usize]);
            let handle = position.func.dfg.constants.insert(data);
            position.ins().vconst(ty, handle)
        }
        _ => return None,
    })
}

/// Takes the bytes of a stack slot away.
fn drop_slot(func: &mut Function, place: usize) -> Option<()> {
    let slot = func.sized_stack_slots.keys().nth(place)?;
    func.sized_stack_slots[slot].size = 0;
    Some(())
}

/// Removes blocks that control cannot reach.
fn remove_unreachable(func: &mut Function) {
    let graph = ControlFlowGraph::with_function(func);
    let tree = DominatorTree::with_function(func, &graph);
    let dead: Vec<Block> = func
        .layout
        .blocks()
        .filter(|block| !tree.is_reachable(*block))
        .collect();
    for block in dead {
        while let Some(inst) = func.layout.first_inst(block) {
            func.layout.remove_inst(inst);
        }
        func.layout.remove_block(block);
    }
}
