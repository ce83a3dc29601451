//! Random functions for the tests of the analyses. Everything is determined by the seed.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, ExternalName, Function, GlobalValue, GlobalValueData, InstBuilder,
    JumpTableData, Signature, TrapCode, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;

/// SplitMix64.
pub struct Rng(u64);

impl Rng {
    /// A generator that depends on nothing but the seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
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

/// A random function over i32 values with thread and block ids, arithmetic, comparisons, block parameters and branches,
/// without memory: what a warp interpreter can run. `max` bounds the blocks. Returns nothing.
pub fn random_function(rng: &mut Rng, max: usize) -> Function {
    let shape = shape(rng, max);
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(types::I32));
    signature.params.push(AbiParam::new(types::I32));
    let mut func = Function::with_name_signature(UserFuncName::testcase("random"), signature);
    let specials: Vec<GlobalValue> = ["gpu_tid_x", "gpu_ctaid_x"]
        .iter()
        .map(|name| {
            func.create_global_value(GlobalValueData::Symbol {
                name: ExternalName::testcase(name),
                offset: 0.into(),
                colocated: true,
                tls: false,
            })
        })
        .collect();
    let blocks: Vec<Block> = shape.iter().map(|_| func.dfg.make_block()).collect();
    for (index, block) in blocks.iter().enumerate() {
        func.layout.append_block(*block);
        let params = if index == 0 { 2 } else { rng.below(3) };
        for _ in 0..params {
            func.dfg.append_block_param(*block, types::I32);
        }
    }
    // First the instructions, each reading what is above it in its own block; the graph exists only afterwards, so
    // values of dominating blocks are brought in by a second pass over the finished graph.
    let mut conditions = Vec::new();
    for block in &blocks {
        let mut known: Vec<Value> = func.dfg.block_params(*block).to_vec();
        let mut cursor = FuncCursor::new(&mut func).at_bottom(*block);
        for _ in 0..1 + rng.below(4) {
            let value = match rng.below(8) {
                0 => cursor.ins().iconst(types::I32, rng.below(4) as i64),
                1 if rng.below(2) == 0 => cursor.ins().symbol_value(types::I32, specials[0]),
                1 | 2 => cursor.ins().symbol_value(types::I32, specials[1]),
                _ if known.is_empty() => cursor.ins().iconst(types::I32, 1),
                3 => {
                    let (a, b) = (rng.pick(&known), rng.pick(&known));
                    let less = cursor.ins().icmp(IntCC::UnsignedLessThan, a, b);
                    cursor.ins().uextend(types::I32, less)
                }
                4 => {
                    let (a, b, c) = (rng.pick(&known), rng.pick(&known), rng.pick(&known));
                    cursor.ins().select(a, b, c)
                }
                _ => {
                    let (a, b) = (rng.pick(&known), rng.pick(&known));
                    cursor.ins().iadd(a, b)
                }
            };
            known.push(value);
        }
        let one = cursor.ins().iconst(types::I32, 1 + rng.below(3) as i64);
        let condition = cursor.ins().band(rng.pick(&known), one);
        known.push(condition);
        conditions.push((condition, known));
    }
    for (index, end) in shape.iter().enumerate() {
        let (condition, known) = &conditions[index];
        let mut cursor = FuncCursor::new(&mut func).at_bottom(blocks[index]);
        let mut call = |func: &mut Function, rng: &mut Rng, target: usize| {
            let count = func.dfg.num_block_params(blocks[target]);
            (
                blocks[target],
                (0..count).map(|_| rng.pick(known).into()).collect(),
            )
        };
        terminate(&mut cursor, end, *condition, &mut call, rng);
    }
    read_across_blocks(&mut func, rng);
    func
}

/// Redirects some operands to values of strictly dominating blocks.
fn read_across_blocks(func: &mut Function, rng: &mut Rng) {
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
        above.retain(|value| func.dfg.value_type(*value) == types::I32);
        if above.is_empty() {
            continue;
        }
        let insts: Vec<_> = func.layout.block_insts(block).collect();
        for inst in insts {
            let dfg = &mut func.dfg;
            let wide: Vec<Value> = dfg
                .inst_values(inst)
                .filter(|v| dfg.value_type(*v) == types::I32)
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
            let func = random_function(&mut Rng::new(seed), 10);
            cranelift_codegen::verify_function(&func, &flags)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
        }
    }
}
