//! Random functions for the tests of the analyses. Everything is determined by the seed.

use super::control_flow::destinations;
use crate::isa::random::Random as Sequence;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, ExternalName, Function, GlobalValue, GlobalValueData, Inst,
    InstBuilder, JumpTableData, MemFlagsData, Signature, StackSlotData, StackSlotKind, TrapCode,
    Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use hashbrown::HashMap;

/// Reproducible numbers.
pub struct Rng(Sequence);

impl Rng {
    /// A generator that depends on nothing but the seed.
    pub fn new(seed: u64) -> Self {
        Self(Sequence::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// How a block of a [`Shape`] ends.
#[derive(Clone, Debug)]
enum End {
    Return,
    Trap,
    Jump(usize),
    Branch(usize, usize),
    Table(Vec<usize>),
}

/// A random graph with at most `max` blocks whose block 0 is the entry and no branch's target.
fn shape(rng: &mut Rng, max: usize) -> Vec<End> {
    let count = 1 + rng.below(max);
    // Some graphs jump anywhere, others mostly forwards, which gives more structure.
    let forward = rng.below(3) > 0;
    (0..count)
        .map(|index| {
            let target = |rng: &mut Rng| {
                if forward && index + 1 < count && rng.below(5) > 0 {
                    index + 1 + rng.below((count - index - 1).min(3))
                } else {
                    1 + rng.below(count - 1)
                }
            };
            match rng.below(10) {
                _ if count == 1 => End::Return,
                0 if index > 0 => End::Return,
                1 if index > 0 => End::Trap,
                2..=4 => End::Jump(target(rng)),
                5 => End::Table((0..1 + rng.below(4)).map(|_| target(rng)).collect()),
                _ => End::Branch(target(rng), target(rng)),
            }
        })
        .collect()
}

/// A function with a random graph and next to no instructions. Some blocks hold a `nop`, so that not every returning
/// block is a lone return.
pub fn random_graph(rng: &mut Rng, max: usize) -> Function {
    let shape = shape(rng, max);
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(types::I32));
    let mut func = Function::with_name_signature(UserFuncName::testcase("graph"), signature);
    let blocks: Vec<Block> = shape.iter().map(|_| func.dfg.make_block()).collect();
    let condition = func.dfg.append_block_param(blocks[0], types::I32);
    for block in &blocks {
        func.layout.append_block(*block);
    }
    for (block, end) in blocks.iter().zip(&shape) {
        let mut cursor = FuncCursor::new(&mut func).at_bottom(*block);
        if rng.below(2) == 0 {
            cursor.ins().nop();
        }
        terminate(
            &mut cursor,
            end,
            condition,
            &mut |_, _, target| (blocks[target], Vec::new()),
            rng,
        );
    }
    func
}

/// Gives the block of a node and arguments for its parameters.
type MakeCall<'a> = dyn FnMut(&mut Function, &mut Rng, usize) -> (Block, Vec<BlockArg>) + 'a;

/// Appends the terminator; `call` gives target block and arguments.
fn terminate(
    cursor: &mut FuncCursor,
    end: &End,
    condition: Value,
    call: &mut MakeCall,
    rng: &mut Rng,
) {
    match end {
        End::Return => {
            cursor.ins().return_(&[]);
        }
        End::Trap => {
            cursor.ins().trap(TrapCode::unwrap_user(1));
        }
        End::Jump(target) => {
            let (block, args) = call(cursor.func, rng, *target);
            cursor.ins().jump(block, &args);
        }
        End::Branch(then, otherwise) => {
            let (then, then_args) = call(cursor.func, rng, *then);
            let (otherwise, else_args) = call(cursor.func, rng, *otherwise);
            cursor
                .ins()
                .brif(condition, then, &then_args, otherwise, &else_args);
        }
        End::Table(targets) => {
            let calls: Vec<_> = targets
                .iter()
                .map(|target| {
                    let (block, args) = call(cursor.func, rng, *target);
                    cursor.func.dfg.block_call(block, &args)
                })
                .collect();
            let table = cursor
                .func
                .create_jump_table(JumpTableData::new(calls[0], &calls[1..]));
            cursor.ins().br_table(condition, table);
        }
    }
}

/// Appends a random instruction with one result, of operands among the values given.
type MakeInst<'a> = dyn FnMut(&mut FuncCursor, &mut Rng, &[Value]) -> Value + 'a;

/// A random function over i32 values with thread and block ids, arithmetic, comparisons, block parameters and branches,
/// without memory: what a warp interpreter can run. `max` bounds the blocks. Returns nothing.
pub fn random_function(rng: &mut Rng, max: usize) -> Function {
    let special = |func: &mut Function, name: &str| {
        func.create_global_value(GlobalValueData::Symbol {
            name: ExternalName::testcase(name),
            offset: 0.into(),
            colocated: true,
            tls: false,
        })
    };
    let mut specials: Option<[GlobalValue; 2]> = None;
    let mut make = |cursor: &mut FuncCursor, rng: &mut Rng, known: &[Value]| {
        let [tid, ctaid] = *specials.get_or_insert_with(|| {
            ["gpu_tid_x", "gpu_ctaid_x"].map(|name| special(cursor.func, name))
        });
        match rng.below(8) {
            0 => cursor.ins().iconst(types::I32, rng.below(4) as i64),
            1 if rng.below(2) == 0 => cursor.ins().symbol_value(types::I32, tid),
            1 | 2 => cursor.ins().symbol_value(types::I32, ctaid),
            _ if known.is_empty() => cursor.ins().iconst(types::I32, 1),
            3 => {
                let less =
                    cursor
                        .ins()
                        .icmp(IntCC::UnsignedLessThan, rng.pick(known), rng.pick(known));
                cursor.ins().uextend(types::I32, less)
            }
            4 => cursor
                .ins()
                .select(rng.pick(known), rng.pick(known), rng.pick(known)),
            _ => cursor.ins().iadd(rng.pick(known), rng.pick(known)),
        }
    };
    random_body(rng, max, types::I32, &mut make)
}

/// A random function over i64 values with the operations that make addresses, and block parameters and branches.
/// Nothing in it can be executed in earnest; [`random_walk`] goes along its paths. `max` bounds the blocks.
pub fn random_addresses(rng: &mut Rng, max: usize) -> Function {
    let ty = types::I64;
    let mut slot = None;
    let mut make = |cursor: &mut FuncCursor, rng: &mut Rng, known: &[Value]| {
        let constant = |cursor: &mut FuncCursor, rng: &mut Rng| {
            let value = rng.pick(&[0, 1, 3, 4, 8, 12, 16, -8, -16, 0x1_0000, 100]);
            cursor.ins().iconst(ty, value)
        };
        match rng.below(14) {
            0 | 1 => constant(cursor, rng),
            2 => {
                let slot = *slot.get_or_insert_with(|| {
                    cursor.func.create_sized_stack_slot(StackSlotData::new(
                        StackSlotKind::ExplicitSlot,
                        64,
                        0,
                    ))
                });
                cursor.ins().stack_addr(ty, slot, rng.below(5) as i32 * 4)
            }
            _ if known.is_empty() => constant(cursor, rng),
            3 => {
                let narrow = cursor.ins().ireduce(types::I32, rng.pick(known));
                if rng.below(2) == 0 {
                    cursor.ins().uextend(ty, narrow)
                } else {
                    cursor.ins().sextend(ty, narrow)
                }
            }
            4 => {
                let amount = cursor.ins().iconst(ty, rng.below(5) as i64);
                match rng.below(3) {
                    0 => cursor.ins().ishl(rng.pick(known), amount),
                    1 => cursor.ins().ushr(rng.pick(known), amount),
                    _ => cursor.ins().sshr(rng.pick(known), amount),
                }
            }
            5 => cursor.ins().imul(rng.pick(known), rng.pick(known)),
            6 => cursor.ins().isub(rng.pick(known), rng.pick(known)),
            7 => cursor
                .ins()
                .select(rng.pick(known), rng.pick(known), rng.pick(known)),
            8 => {
                let mask = constant(cursor, rng);
                cursor.ins().band(rng.pick(known), mask)
            }
            9 => cursor
                .ins()
                .load(ty, MemFlagsData::new(), rng.pick(known), 0),
            10 => {
                let bits = constant(cursor, rng);
                cursor.ins().bor(rng.pick(known), bits)
            }
            11 => cursor.ins().umin(rng.pick(known), rng.pick(known)),
            _ => cursor.ins().iadd(rng.pick(known), rng.pick(known)),
        }
    };
    random_body(rng, max, ty, &mut make)
}

/// A random function with two parameters of `ty` and instructions by `make`, which all give values of `ty`.
fn random_body(rng: &mut Rng, max: usize, ty: Type, make: &mut MakeInst) -> Function {
    let shape = shape(rng, max);
    let mut signature = Signature::new(CallConv::Fast);
    signature
        .params
        .extend([AbiParam::new(ty), AbiParam::new(ty)]);
    let mut func = Function::with_name_signature(UserFuncName::testcase("random"), signature);
    let blocks: Vec<Block> = shape.iter().map(|_| func.dfg.make_block()).collect();
    for (index, block) in blocks.iter().enumerate() {
        func.layout.append_block(*block);
        let params = if index == 0 { 2 } else { rng.below(3) };
        for _ in 0..params {
            func.dfg.append_block_param(*block, ty);
        }
    }
    // First the instructions, each reading what is above it in its own block; the graph exists only afterwards, so
    // values of dominating blocks are brought in by a second pass over the finished graph.
    let mut conditions = Vec::new();
    for block in &blocks {
        let mut known: Vec<Value> = func.dfg.block_params(*block).to_vec();
        let mut cursor = FuncCursor::new(&mut func).at_bottom(*block);
        for _ in 0..1 + rng.below(4) {
            let value = make(&mut cursor, rng, &known);
            known.push(value);
        }
        let one = cursor.ins().iconst(ty, 1 + rng.below(3) as i64);
        let condition = cursor.ins().band(rng.pick(&known), one);
        known.push(condition);
        conditions.push((condition, known));
    }
    for (index, end) in shape.iter().enumerate() {
        let (mut condition, known) = (conditions[index].0, &conditions[index].1);
        let mut cursor = FuncCursor::new(&mut func).at_bottom(blocks[index]);
        if matches!(end, End::Table(_)) && ty != types::I32 {
            condition = cursor.ins().ireduce(types::I32, condition);
        }
        let mut call = |func: &mut Function, rng: &mut Rng, target: usize| {
            let count = func.dfg.num_block_params(blocks[target]);
            let args = (0..count).map(|_| rng.pick(known).into()).collect();
            (blocks[target], args)
        };
        terminate(&mut cursor, end, condition, &mut call, rng);
    }
    read_across_blocks(&mut func, rng, ty);
    func
}

/// Goes along a random path of at most `steps` blocks, whatever the conditions say, and computes every value: the
/// function's parameters are `params`, results are what `evaluate` makes of the operands. Gives what was computed, in
/// order; a value in a loop appears several times. What an analysis without conditions says must hold on every path.
pub fn random_walk<T: Clone>(
    func: &Function,
    rng: &mut Rng,
    steps: usize,
    params: &[T],
    evaluate: &mut dyn FnMut(&mut Rng, Inst, &[T]) -> T,
) -> Vec<(Value, T)> {
    let mut present: HashMap<Value, T> = HashMap::new();
    let mut computed = Vec::new();
    let Some(mut block) = func.layout.entry_block() else {
        return computed;
    };
    let mut passed = params.to_vec();
    for _ in 0..steps {
        for (param, value) in func.dfg.block_params(block).iter().zip(passed) {
            present.insert(*param, value.clone());
            computed.push((*param, value));
        }
        for inst in func.layout.block_insts(block) {
            let args: Vec<T> = func
                .dfg
                .inst_args(inst)
                .iter()
                .map(|arg| present[arg].clone())
                .collect();
            if let [result] = *func.dfg.inst_results(inst) {
                let value = evaluate(rng, inst, &args);
                present.insert(result, value.clone());
                computed.push((result, value));
            }
        }
        let last = func.layout.last_inst(block).expect("blocks end");
        let calls = destinations(func, last);
        if calls.is_empty() {
            break;
        }
        let call = calls[rng.below(calls.len())];
        let args = call.args(&func.dfg.value_lists);
        passed = args
            .map(|arg| present[&arg.as_value().expect("a value")].clone())
            .collect();
        block = call.block(&func.dfg.value_lists);
    }
    computed
}

/// Redirects some operands to values of strictly dominating blocks.
fn read_across_blocks(func: &mut Function, rng: &mut Rng, ty: Type) {
    let cfg = ControlFlowGraph::with_function(func);
    let domtree = DominatorTree::with_function(func, &cfg);
    let order: Vec<Block> = domtree.cfg_rpo().copied().collect();
    for block in order {
        let mut above = Vec::new();
        let mut up = domtree.idom(block);
        while let Some(dominator) = up {
            above.extend_from_slice(func.dfg.block_params(dominator));
            for inst in func.layout.block_insts(dominator) {
                above.extend_from_slice(func.dfg.inst_results(inst));
            }
            up = domtree.idom(dominator);
        }
        above.retain(|value| func.dfg.value_type(*value) == ty);
        if above.is_empty() {
            continue;
        }
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            let dfg = &mut func.dfg;
            let wide: Vec<Value> = dfg
                .inst_values(inst)
                .filter(|v| dfg.value_type(*v) == ty)
                .collect();
            dfg.map_inst_values(inst, |value| {
                if wide.contains(&value) && rng.below(3) == 0 {
                    rng.pick(&above)
                } else {
                    value
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::settings;

    #[test]
    fn random_functions_are_valid() {
        let flags = settings::Flags::new(settings::builder());
        for seed in 0..200 {
            let make = [random_function, random_addresses];
            for func in make.map(|make| make(&mut Rng::new(seed), 10)) {
                cranelift_codegen::verify_function(&func, &flags)
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
            }
        }
    }
}
