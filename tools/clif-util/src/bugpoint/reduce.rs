//! Taking parts of a function away.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{
    Block, Function, Inst, InstBuilder, Opcode, TrapCode, Type, Value, types,
};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;

/// Makes functions smaller that fail.
pub struct Reducer<'a> {
    /// Whether a function fails.
    pub fails: &'a dyn Fn(&Function) -> bool,
    /// Tell what helped.
    pub verbose: bool,
}

/// One way to make a function smaller, at a place; `None` when there are no more places.
type Step = fn(&mut Function, usize) -> Option<()>;

const STEPS: [(&str, Step); 3] = [
    ("block ends in a trap", end_in_trap),
    ("instruction gone", drop_instruction),
    ("unused declaration gone", drop_slot),
];

impl Reducer<'_> {
    /// The smallest function that still fails.
    pub fn reduce(&self, mut func: Function) -> Function {
        loop {
            let mut progress = false;
            for (what, step) in STEPS {
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
                            eprintln!("{what}: {} instructions left", size(&func).0);
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

/// What gets smaller: instructions that are no constants, then all, then bytes of slots.
fn size(func: &Function) -> (usize, usize, u32) {
    let insts = || {
        func.layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
    };
    let constant = |inst: &Inst| {
        matches!(
            func.dfg.insts[*inst].opcode(),
            Opcode::Iconst | Opcode::F32const | Opcode::F64const
        )
    };
    let slots = func.sized_stack_slots.values().map(|slot| slot.size).sum();
    (
        insts().filter(|inst| !constant(inst)).count(),
        insts().count(),
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
        types::F32 => position.ins().f32const(Ieee32::with_bits(0)),
        types::F64 => position.ins().f64const(Ieee64::with_bits(0)),
        _ if ty.is_int() && ty.bits() <= 64 => position.ins().iconst(ty, 0),
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
