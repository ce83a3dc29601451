//! What the passes ask of a loop, and the edits that they share.

use super::sorted_set::SortedSet;
use crate::analysis::control_flow::destinations;
use crate::analysis::uses::for_each_operand;
use crate::values::tracking::Tracking;
use crate::vcode::SourceLine;
use cranelift_codegen::Context;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{
    Block, BlockArg, Function, Inst, InstructionData, Opcode, Type, Value,
};
use cranelift_codegen::loop_analysis::Loop;
use smallvec::SmallVec;

/// Whether `inst` makes a constant.
pub(super) fn is_constant(func: &Function, inst: Inst) -> bool {
    matches!(
        func.dfg.insts[inst].opcode(),
        Opcode::Iconst | Opcode::F16const | Opcode::F32const | Opcode::F64const
    )
}

/// Registers that a value of the type fills.
pub(super) fn words(ty: Type) -> u32 {
    ty.bits().div_ceil(32)
}

/// The block that is entered last before `lp`, whichever way it is entered, if it lies in no other loop: what stands at
/// its end is computed once for all turns.
pub(super) fn preheader(context: &Context, lp: Loop) -> Option<Block> {
    let loops = &context.loop_analysis;
    let before = context.domtree.idom(loops.loop_header(lp))?;
    (loops.innermost_loop(before) == loops.loop_parent(lp)).then_some(before)
}

/// A way from block to block: which of the destinations of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: Block,
    pub(super) branch: Inst,
    pub(super) index: usize,
}

impl Edge {
    /// Where it leads.
    pub(super) fn to(self, func: &Function) -> Block {
        destinations(func, self.branch)[self.index].block(&func.dfg.value_lists)
    }

    /// The values that are handed over.
    pub(super) fn args(self, func: &Function) -> Vec<Value> {
        let call = destinations(func, self.branch)[self.index];
        (call.args(&func.dfg.value_lists))
            .filter_map(|arg| arg.as_value())
            .collect()
    }

    /// Lets it lead to `block` with these values.
    pub(super) fn redirect(self, func: &mut Function, block: Block, args: &[Value]) {
        let args = args.iter().map(|&value| BlockArg::Value(value));
        let call = func.dfg.block_call(block, &args.collect::<Vec<_>>());
        let dfg = &mut func.dfg;
        let calls = dfg.insts[self.branch]
            .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        calls[self.index] = call;
    }
}

/// How often a branch passes a value, whichever way it goes.
pub(super) fn passed(func: &Function, edge: Edge, value: Value) -> usize {
    let calls = destinations(func, edge.branch).iter();
    let args = calls.flat_map(|call| call.args(&func.dfg.value_lists));
    args.filter(|arg| arg.as_value() == Some(value)).count()
}

/// A loop.
pub(super) struct Body {
    pub(super) header: Block,
    /// All its blocks in reverse postorder, the header first.
    pub(super) blocks: Vec<Block>,
    /// The same as a set.
    within: SortedSet<Block>,
    /// Where it is left.
    pub(super) exits: SmallVec<[Edge; 2]>,
    /// Where the next turn begins.
    pub(super) latches: SmallVec<[Edge; 2]>,
    /// Whether its blocks end in jumps and two-way branches only.
    pub(super) plain: bool,
}

impl Body {
    /// All innermost loops of the function, whose analyses are up to date.
    pub(super) fn innermost(context: &Context) -> Vec<Body> {
        let loops = &context.loop_analysis;
        let outer = parents(context, loops.loops());
        Self::all(context, |lp| !outer.contains(lp))
    }

    /// All loops that hold only innermost ones, and at least one.
    pub(super) fn around_innermost(context: &Context) -> Vec<Body> {
        let outer = parents(context, context.loop_analysis.loops());
        if outer.is_empty() {
            return Vec::new();
        }
        let further = parents(context, outer.iter());
        Self::all(context, |lp| outer.contains(lp) && !further.contains(lp))
    }

    /// Those that are `wanted`, none of which holds another; in those that they hold no other loop lies.
    fn all(context: &Context, wanted: impl Fn(Loop) -> bool) -> Vec<Body> {
        let loops = &context.loop_analysis;
        let mut blocks: SecondaryMap<Loop, Vec<Block>> = SecondaryMap::new();
        for &block in context.domtree.cfg_rpo() {
            let innermost = loops.innermost_loop(block);
            let around = innermost.and_then(|lp| loops.loop_parent(lp));
            if let Some(lp) = [innermost, around]
                .into_iter()
                .flatten()
                .find(|lp| wanted(*lp))
            {
                blocks[lp].push(block);
            }
        }
        let found = loops.loops().filter(|lp| wanted(*lp));
        found
            .map(|lp| Self::of(&context.func, std::mem::take(&mut blocks[lp])))
            .collect()
    }

    /// Of these blocks, without exits and latches.
    pub(super) fn new(blocks: Vec<Block>) -> Self {
        Body {
            header: blocks[0],
            within: blocks.iter().copied().collect(),
            exits: SmallVec::new(),
            latches: SmallVec::new(),
            plain: true,
            blocks,
        }
    }

    fn of(func: &Function, blocks: Vec<Block>) -> Self {
        let mut body = Body::new(blocks);
        for &from in &body.blocks {
            let Some(branch) = func.layout.last_inst(from) else {
                continue;
            };
            body.plain &= matches!(func.dfg.insts[branch].opcode(), Opcode::Jump | Opcode::Brif);
            for index in 0..destinations(func, branch).len() {
                let edge = Edge {
                    from,
                    branch,
                    index,
                };
                let to = edge.to(func);
                if to == body.header {
                    body.latches.push(edge);
                } else if !body.holds(to) {
                    body.exits.push(edge);
                }
            }
        }
        body
    }

    /// Whether a block is one of the loop's.
    pub(super) fn holds(&self, block: Block) -> bool {
        self.within.contains(block)
    }

    /// All its instructions.
    pub(super) fn insts<'a>(&'a self, func: &'a Function) -> impl Iterator<Item = Inst> + 'a {
        self.blocks
            .iter()
            .flat_map(|&block| func.layout.block_insts(block))
    }

    /// The ways into it from outside.
    pub(super) fn entries(&self, context: &Context) -> Vec<Edge> {
        let func = &context.func;
        let mut found = Vec::new();
        for pred in context.cfg.pred_iter(self.header) {
            if self.holds(pred.block) {
                continue;
            }
            for index in 0..destinations(func, pred.inst).len() {
                let edge = Edge {
                    from: pred.block,
                    branch: pred.inst,
                    index,
                };
                if edge.to(func) == self.header {
                    found.push(edge);
                }
            }
        }
        found
    }

    /// The way into it, if there is one only. The graph may be as it was before other loops were changed.
    pub(super) fn only_entry(&self, context: &Context) -> Option<Edge> {
        let preds = context.cfg.pred_iter(self.header);
        let outside = preds.filter(|pred| !self.holds(pred.block)).count();
        // A block in between takes a way away that the graph still has.
        match self.entries(context)[..] {
            [entry] if outside == 1 => Some(entry),
            _ => None,
        }
    }

    /// The only way into it and the only way back, if there is one of each.
    pub(super) fn only_ways(&self, context: &Context) -> Option<(Edge, Edge)> {
        match self.latches[..] {
            [latch] => Some((self.only_entry(context)?, latch)),
            _ => None,
        }
    }

    /// The line where it begins.
    pub(super) fn line(&self, func: &Function) -> SourceLine {
        let lines = func.layout.block_insts(self.header).map(|inst| {
            let location = func.srcloc(inst);
            if location.is_default() {
                0
            } else {
                location.bits()
            }
        });
        SourceLine(lines.filter(|line| *line != 0).min().unwrap_or(0))
    }
}

/// The loops that hold these directly.
fn parents(context: &Context, loops: impl Iterator<Item = Loop>) -> EntitySet<Loop> {
    let mut found = EntitySet::new();
    found.extend(loops.filter_map(|lp| context.loop_analysis.loop_parent(lp)));
    found
}

/// The instructions that read each value, kept while the function changes.
pub(super) struct Uses(SecondaryMap<Value, Vec<Inst>>);

impl Uses {
    /// Of all values. Aliases are resolved.
    pub(super) fn of(func: &Function) -> Self {
        let mut uses = Uses(SecondaryMap::new());
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                uses.add(func, inst);
            }
        }
        uses
    }

    /// Takes note of what `inst` reads.
    pub(super) fn add(&mut self, func: &Function, inst: Inst) {
        for_each_operand(func, inst, |value| {
            if self.0[value].last() != Some(&inst) {
                self.0[value].push(inst);
            }
        });
    }

    /// The instructions that read `value`, or have done so.
    pub(super) fn of_value(&self, value: Value) -> &[Inst] {
        &self.0[value]
    }

    /// Lets the readers of `old` for which `there` is true read `new`.
    pub(super) fn replace(
        &mut self,
        func: &mut Function,
        (old, new): (Value, Value),
        there: impl Fn(&Function, Block) -> bool,
    ) {
        let readers = std::mem::take(&mut self.0[old]);
        let (theirs, rest): (Vec<Inst>, Vec<Inst>) = readers
            .into_iter()
            .partition(|&inst| (func.layout.inst_block(inst)).is_some_and(|at| there(func, at)));
        for &inst in &theirs {
            let other = |value| if value == old { new } else { value };
            func.dfg.map_inst_values(inst, other);
        }
        self.0[old] = rest;
        self.0[new].extend(theirs);
    }
}

/// The values that `block` defines, parameters first.
pub(super) fn definitions(func: &Function, block: Block) -> Vec<Value> {
    let results = func
        .layout
        .block_insts(block)
        .flat_map(|inst| func.dfg.inst_results(inst).iter().copied());
    let params = func.dfg.block_params(block).iter().copied();
    params.chain(results).collect()
}

/// Lets everything that is read outside of `body` leave it as an argument of `exit`, the only way out. The block that
/// `exit` leads to has no other way in then.
pub(super) fn close(
    func: &mut Function,
    uses: &mut Uses,
    body: &Body,
    exit: Edge,
    alone: bool,
    tracking: &Tracking,
) {
    let outside = |func: &Function, inst: Inst| {
        let block = func.layout.inst_block(inst);
        block.is_some_and(|block| !body.holds(block))
    };
    let mut leaving: Vec<Value> = Vec::new();
    for &block in &body.blocks {
        let read = |value: &Value| {
            uses.of_value(*value)
                .iter()
                .any(|&inst| outside(func, inst))
        };
        leaving.extend(definitions(func, block).into_iter().filter(read));
    }
    let (target, args) = (exit.to(func), exit.args(func));
    // Other ways to the target have nothing to hand over: a block in between takes the parameters.
    let block = if alone {
        target
    } else {
        let block = func.dfg.make_block();
        func.layout.insert_block(block, target);
        block
    };
    let mut handed = if alone { args.clone() } else { Vec::new() };
    for value in leaving {
        let ty = func.dfg.value_type(value);
        let param = func.dfg.append_block_param(block, ty);
        tracking.also(value, param);
        uses.replace(func, (value, param), |_, at| !body.holds(at));
        handed.push(value);
    }
    if !alone {
        // What the target gets is handed through as well.
        let mut passed = Vec::new();
        for arg in args {
            let ty = func.dfg.value_type(arg);
            let param = func.dfg.append_block_param(block, ty);
            handed.push(arg);
            passed.push(param);
        }
        let jump = jump(func, block, target, &passed);
        func.srclocs[jump] = func.srclocs[exit.branch];
        uses.add(func, jump);
    }
    exit.redirect(func, block, &handed);
    uses.add(func, exit.branch);
}

/// Ends `block` with a jump.
pub(super) fn jump(func: &mut Function, block: Block, target: Block, args: &[Value]) -> Inst {
    let args: Vec<BlockArg> = args.iter().map(|&value| BlockArg::Value(value)).collect();
    let destination = func.dfg.block_call(target, &args);
    let inst = func.dfg.make_inst(InstructionData::Jump {
        opcode: Opcode::Jump,
        destination,
    });
    func.layout.append_inst(inst, block);
    inst
}

/// Ends `block` with a branch: to the first destination if `condition` is not 0.
pub(super) fn branch(
    func: &mut Function,
    block: Block,
    condition: Value,
    targets: [(Block, &[Value]); 2],
) -> Inst {
    let blocks = targets.map(|(target, args)| {
        let args: Vec<BlockArg> = args.iter().map(|&value| BlockArg::Value(value)).collect();
        func.dfg.block_call(target, &args)
    });
    let inst = func.dfg.make_inst(InstructionData::Brif {
        opcode: Opcode::Brif,
        arg: condition,
        blocks,
    });
    func.layout.append_inst(inst, block);
    inst
}
