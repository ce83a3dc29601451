//! Branches that meet again, cascades of them, switches and early returns.

use super::Writer;
use crate::swarm::Form;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, BlockArg, BlockCall, InstBuilder, JumpTableData, Type, Value, types,
};

/// Entries of a jump table that fill the constant bank.
const LARGE_TABLE: usize = 1 << 14;

pub(super) fn block_args(values: &[Value]) -> Vec<BlockArg> {
    values.iter().copied().map(BlockArg::Value).collect()
}

impl Writer<'_> {
    pub(super) fn new_block(&mut self) -> Block {
        let block = self.func.dfg.make_block();
        self.func.layout.append_block(block);
        block
    }

    /// Some types of the function.
    pub(super) fn some_types(&mut self, most: usize) -> Vec<Type> {
        let palette = self.palette.clone();
        let truths = self.swarm.has_form(Form::Truths) && self.random.once_in(4);
        let most = if truths { 2 * most } else { most };
        (0..self.random.between(1, most))
            .map(|_| match truths && self.random.once_in(2) {
                true => types::I8,
                false => self.random.pick(&palette),
            })
            .collect()
    }

    /// An integer that decides something.
    pub(super) fn decision(&mut self) -> Value {
        if self.random.once_in(3) {
            return self.comparison();
        }
        let ty = self.some_integer();
        self.operand(ty)
    }

    /// An integer type of the function.
    pub(super) fn some_integer(&mut self) -> Type {
        let integers: Vec<Type> = self
            .palette
            .iter()
            .copied()
            .filter(|ty| ty.is_int())
            .collect();
        self.random.pick(&integers)
    }

    /// Whether two integers are in some order.
    fn comparison(&mut self) -> Value {
        let ty = self.some_integer();
        let (x, y) = (self.operand(ty), self.operand(ty));
        let code = self.random.pick(IntCC::all());
        self.cost += self.turns;
        self.pos().ins().icmp(code, x, y)
    }

    /// What control passes on: a value of a type, of truths often one that is new.
    fn passed(&mut self, ty: Type) -> Value {
        let new = ty == types::I8 && self.swarm.has_form(Form::Truths) && self.random.once_in(2);
        if new {
            self.comparison()
        } else {
            self.operand(ty)
        }
    }

    pub(super) fn operands(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.passed(*ty)).collect()
    }

    pub(super) fn closed_operands(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|ty| self.closed_operand(*ty)).collect()
    }

    /// Parameters of a block. Floats among them count as open: what comes in may be.
    pub(super) fn params(&mut self, block: Block, types: &[Type], open: bool) -> Vec<Value> {
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
        if !self.random.once_in(4) {
            self.inner_statements();
        }
        let results = self.operands(types);
        self.pos().ins().jump(join, &block_args(&results));
        self.scope.return_to(mark);
    }

    /// Continues in a block, whose parameters become known.
    pub(super) fn continue_in(&mut self, block: Block, params: &[Value]) {
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

    /// Conditions one after the other, each of which leads to where all meet.
    pub(super) fn cascade(&mut self) {
        let types = self.some_types(6);
        let join = self.new_block();
        let params = self.params(join, &types, true);
        let mark = self.scope.mark();
        for _ in 0..self.random.between(2, 4) {
            let (condition, next) = (self.decision(), self.new_block());
            if self.random.once_in(2) {
                let results = self.operands(&types);
                let results = block_args(&results);
                self.pos().ins().brif(condition, join, &results, next, &[]);
            } else {
                let yes = self.new_block();
                self.pos().ins().brif(condition, yes, &[], next, &[]);
                let inner = self.scope.mark();
                self.block = yes;
                self.operations(2);
                let results = self.operands(&types);
                self.pos().ins().jump(join, &block_args(&results));
                self.scope.return_to(inner);
            }
            self.block = next;
            self.operations(2);
        }
        let results = self.operands(&types);
        self.pos().ins().jump(join, &block_args(&results));
        self.scope.return_to(mark);
        self.continue_in(join, &params);
    }

    /// Several sides, chosen by a number of which a part is out of range.
    pub(super) fn switch(&mut self) {
        let types = self.some_types(5);
        let arms: Vec<Block> = (0..self.random.between(1, 5))
            .map(|_| self.new_block())
            .collect();
        let join = self.new_block();
        let params = self.params(join, &types, true);
        self.branch_to_some(&arms);
        for arm in arms {
            self.arm(arm, join, &types);
        }
        self.continue_in(join, &params);
    }

    /// Ends the block with a switch to some of the blocks.
    pub(super) fn branch_to_some(&mut self, arms: &[Block]) {
        let index = self.operand(types::I32);
        let index = if self.random.once_in(3) {
            index
        } else {
            let mut pos = self.pos();
            let mask = pos.ins().iconst(types::I32, 7);
            pos.ins().band(index, mask)
        };
        let large = self.swarm.has_form(Form::LargeTables) && self.random.once_in(60);
        let count = match large {
            // Other tables and numbers fill what it leaves.
            true => LARGE_TABLE - self.random.below(200),
            false => self.random.between(1, 7),
        };
        let entries: Vec<Block> = (0..count).map(|_| self.random.pick(arms)).collect();
        let default = self.random.pick(arms);
        let pool = &mut self.func.dfg.value_lists;
        let call = |block, pool: &mut _| BlockCall::new(block, [], pool);
        let default = call(default, pool);
        let entries: Vec<_> = entries.into_iter().map(|block| call(block, pool)).collect();
        let table = self
            .func
            .create_jump_table(JumpTableData::new(default, &entries));
        self.pos().ins().br_table(index, table);
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
