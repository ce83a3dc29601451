//! Branches that meet again, loops, switches and early returns.

use super::Writer;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, InstBuilder, JumpTableData, Type, Value, types,
};

/// Turns of a loop, at most: a power of two.
const MAX_TURNS: u64 = 8;

fn block_args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().copied().map(BlockArg::Value).collect()
}

impl Writer<'_> {
    pub(super) fn new_block(&mut self) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        block
    }

    /// Some types of the function.
    fn some_types(&mut self, most: usize) -> Vec<Type> {
        let palette = self.palette.clone();
        (0..self.random.between(1, most))
            .map(|_| self.random.pick(&palette))
            .collect()
    }

    /// An integer that decides something.
    fn decision(&mut self) -> Value {
        let integers: Vec<Type> = self
            .palette
            .iter()
            .copied()
            .filter(|ty| ty.is_int())
            .collect();
        let ty = self.random.pick(&integers);
        self.operand(ty)
    }

    fn operands(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.operand(*ty)).collect()
    }

    fn closed_operands(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.closed_operand(*ty)).collect()
    }

    /// Parameters of a block. Floats among them count as open: what comes in may be.
    fn params(&mut self, block: Block, types: &[Type], open: bool) -> Vec<Value> {
        let mut params = Vec::new();
        for &ty in types {
            let param = self.func.dfg.append_block_param(block, ty);
            if open && ty.lane_type().is_float() {
                self.open.insert(param);
            }
            params.push(param);
        }
        params
    }

    /// Writes the inside of an arm that ends with a jump to `join`; nothing in it can be read after it.
    fn arm(&mut self, block: Block, join: Block, types: &[Type]) {
        let mark = self.scope.mark();
        self.block = block;
        self.inner_statements();
        let results = self.operands(types);
        self.pos().ins().jump(join, &block_args(&results));
        self.scope.return_to(mark);
    }

    /// Continues in a block, whose parameters become known.
    fn continue_in(&mut self, block: Block, params: &[Value]) {
        self.block = block;
        for &param in params {
            self.define(param);
        }
    }

    /// Two sides, or one, that meet again.
    pub(super) fn diamond(&mut self) {
        let types = self.some_types(4);
        let condition = self.decision();
        let (yes, join) = (self.new_block(), self.new_block());
        let params = self.params(join, &types, true);
        if self.random.once_in(3) {
            let skipped = self.operands(&types);
            self.pos()
                .ins()
                .brif(condition, yes, &[], join, &block_args(&skipped));
        } else {
            let no = self.new_block();
            self.pos().ins().brif(condition, yes, &[], no, &[]);
            self.arm(no, join, &types);
        }
        self.arm(yes, join, &types);
        self.continue_in(join, &params);
    }

    /// Several sides, chosen by a number of which a part is out of range.
    pub(super) fn switch(&mut self) {
        let types = self.some_types(3);
        let index = self.operand(types::I32);
        let arms: Vec<Block> = (0..self.random.between(1, 5))
            .map(|_| self.new_block())
            .collect();
        let join = self.new_block();
        let params = self.params(join, &types, true);
        let index = if self.random.once_in(3) {
            index
        } else {
            let mut pos = self.pos();
            let mask = pos.ins().iconst(types::I32, 7);
            pos.ins().band(index, mask)
        };
        let entries: Vec<Block> = (0..self.random.between(1, 7))
            .map(|_| self.random.pick(&arms))
            .collect();
        let default = self.random.pick(&arms);
        let pool = &mut self.func.dfg.value_lists;
        let call = |block, pool: &mut _| BlockCall::new(block, [], pool);
        let default = call(default, pool);
        let entries: Vec<_> = entries.into_iter().map(|block| call(block, pool)).collect();
        let table = self
            .func
            .create_jump_table(JumpTableData::new(default, &entries));
        self.pos().ins().br_table(index, table);
        for arm in arms {
            self.arm(arm, join, &types);
        }
        self.continue_in(join, &params);
    }

    /// A loop that changes some values and counts down.
    pub(super) fn repetition(&mut self) {
        let most = if self.random.once_in(6) { 12 } else { 3 };
        let types = self.some_types(most);
        let count = self.operand(types::I32);
        let mask = self.constant_of(types::I32, u128::from(MAX_TURNS - 1).to_le_bytes());
        let turns = self.pos().ins().band(count, mask);
        let (body, after) = (self.new_block(), self.new_block());
        let mut carried = self.params(body, &types, false);
        let left = self.func.dfg.append_block_param(body, types::I32);
        let results = self.params(after, &types, false);
        let mut starts = self.closed_operands(&types);
        starts.push(turns);
        self.pos().ins().jump(body, &block_args(&starts));

        let mark = self.scope.mark();
        carried.push(left);
        self.continue_in(body, &carried);
        self.turns *= MAX_TURNS;
        self.inner_statements();
        if self.random.once_in(3) {
            // Another way out.
            let leave = self.decision();
            let (values, go_on) = (self.closed_operands(&types), self.new_block());
            self.pos()
                .ins()
                .brif(leave, after, &block_args(&values), go_on, &[]);
            self.block = go_on;
            self.operations(3);
        }
        self.turns /= MAX_TURNS;
        let next = self.closed_operands(&types);
        let mut pos = self.pos();
        let minus_one = pos.ins().iconst(types::I32, -1);
        let fewer = pos.ins().iadd(left, minus_one);
        let mut again = next.clone();
        again.push(fewer);
        pos.ins()
            .brif(left, body, &block_args(&again), after, &block_args(&next));
        self.scope.return_to(mark);
        self.continue_in(after, &results);
    }

    /// A way out of the function.
    pub(super) fn early_return(&mut self) {
        let condition = self.decision();
        let (leave, stay) = (self.new_block(), self.new_block());
        self.pos().ins().brif(condition, leave, &[], stay, &[]);
        let mark = self.scope.mark();
        self.block = leave;
        self.operations(3);
        self.return_values(None);
        self.scope.return_to(mark);
        self.block = stay;
    }
}
