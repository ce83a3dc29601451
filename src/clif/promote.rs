//! Turns stack slots whose address goes nowhere into SSA values.
//!
//! A slot qualifies part by part. Its address may only be the base of loads and stores, directly or with constants
//! added. Each range of bytes that is always accessed whole becomes a variable, called a cell here; ranges that overlap
//! without being equal, atomics, big-endian accesses and vector-extending loads stay in memory, while the slot's other
//! cells are still promoted. A slot whose address goes anywhere else, out of its bounds or into a stack map stays
//! altogether. Accesses of one cell with different types of the same size are joined by `bitcast`, narrow ones by
//! extension and reduction. A read before any write gives zero.
//!
//! The construction is the classical one: parameters are placed on the iterated dominance frontier of the stores,
//! pruned by liveness ([`placement`]; Cytron et al., "Efficiently Computing Static Single Assignment Form and the
//! Control Dependence Graph"), then one walk over the dominator tree renames. Parameters with a single source go in
//! Cranelift's constant-phi pass. Parameters that would not fit into registers are not made: n slots that live through
//! n nested loops would need n^2 of them. Such a cell stays in memory.
//!
//! Takes a function without unreachable blocks. A slot with nothing left in it gets size 0, so that it takes no place
//! in the frame. CLIF 0.135 has no `stack_load` and `stack_store`; all accesses go through `stack_addr`.

mod placement;

use crate::analysis::control_flow::destinations;
use crate::constants::integer;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    Block, Endianness, Function, Inst, InstBuilder, InstructionData, JumpTable, MemFlagsData,
    Opcode, StackSlot, Type, Value, types,
};
use hashbrown::HashSet;

/// What the pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promoted {
    /// Slots that are not in memory any more.
    pub slots: usize,
    /// Variables that were made, some perhaps of slots that stay.
    pub cells: usize,
}

/// Promotes what can be promoted, as long as the parameters of a block take at most `words` words. The graph and the
/// dominator tree must be up to date and stay so.
pub fn promote(
    func: &mut Function,
    cfg: &ControlFlowGraph,
    domtree: &DominatorTree,
    words: u32,
) -> Promoted {
    if func.sized_stack_slots.is_empty() {
        return Promoted::default();
    }
    let mut cells = find_cells(func, domtree);
    if cells.types.is_empty() {
        return Promoted {
            slots: drop_unused_slots(func),
            cells: 0,
        };
    }
    separate_jump_tables(func);
    let (params, promoted) = placement::place(func, cfg, domtree, &mut cells, words);
    Renamer::new(func, &cells, params).run(domtree);
    remove_dead_addresses(func);
    Promoted {
        slots: drop_unused_slots(func),
        cells: promoted,
    }
}

/// Number of a cell.
type Cell = usize;

/// How an access reads or writes its cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A load of the whole value.
    Load,
    /// A load that zero-extends to the result type.
    LoadUnsigned,
    /// A load that sign-extends to the result type.
    LoadSigned,
    /// A store of the whole value.
    Store,
    /// A store of the value's low bits.
    StoreLow,
}

/// The cells and the instructions that access them.
#[derive(Default)]
struct Cells {
    /// Type of each cell's variable.
    types: Vec<Type>,
    accesses: SecondaryMap<Inst, Option<(Cell, Kind)>>,
}

/// A candidate: one memory instruction on a slot.
#[derive(Clone)]
struct Access {
    inst: Inst,
    kind: Option<Kind>,
    offset: i64,
    ty: Type,
}

/// Finds the cells of all slots.
fn find_cells(func: &Function, domtree: &DominatorTree) -> Cells {
    let mut addresses: SecondaryMap<Value, Option<(StackSlot, i64)>> = SecondaryMap::new();
    let mut accesses: SecondaryMap<StackSlot, Vec<Access>> = SecondaryMap::new();
    let mut escaped: HashSet<StackSlot> = HashSet::new();
    let insts: Vec<Inst> = domtree
        .cfg_rpo()
        .flat_map(|block| func.layout.block_insts(*block))
        .collect();
    for inst in insts {
        let data = &func.dfg.insts[inst];
        if let InstructionData::StackAddr {
            stack_slot, offset, ..
        } = *data
        {
            let offset = i64::from(i32::from(offset));
            addresses[func.dfg.first_result(inst)] = Some((stack_slot, offset));
            continue;
        }
        for entry in func.dfg.user_stack_map_entries(inst).unwrap_or_default() {
            escaped.insert(entry.slot);
        }
        if let Some((address, moved)) = constant_offset(func, inst)
            && let Some((slot, offset)) = addresses[func.dfg.resolve_aliases(address)]
        {
            let moved = offset.wrapping_add(moved);
            addresses[func.dfg.first_result(inst)] = Some((slot, moved));
            continue;
        }
        let access = memory_access(func, inst);
        for (position, value) in func.dfg.inst_values(inst).enumerate() {
            let Some((slot, base)) = addresses[func.dfg.resolve_aliases(value)] else {
                continue;
            };
            match access {
                Some((address, offset, ty, kind)) if address == position => {
                    accesses[slot].push(Access {
                        inst,
                        kind,
                        offset: base.wrapping_add(offset),
                        ty,
                    });
                }
                _ => {
                    escaped.insert(slot);
                }
            }
        }
    }
    let mut cells = Cells::default();
    for (slot, data) in func.sized_stack_slots.iter() {
        let size = i64::from(data.size);
        let within =
            |a: &Access| a.offset >= 0 && a.offset.saturating_add(a.ty.bytes().into()) <= size;
        if !escaped.contains(&slot) && accesses[slot].iter().all(within) {
            add_cells(std::mem::take(&mut accesses[slot]), &mut cells);
        }
    }
    cells
}

/// Splits the accesses of one slot into groups that overlap, and makes a cell of each group that is regular.
fn add_cells(mut accesses: Vec<Access>, cells: &mut Cells) {
    accesses.sort_by_key(|access| access.offset);
    let mut rest = &accesses[..];
    while let Some(first) = rest.first() {
        let mut end = first.offset + i64::from(first.ty.bytes());
        let count = rest
            .iter()
            .take_while(|access| {
                let overlaps = access.offset < end;
                if overlaps {
                    end = end.max(access.offset + i64::from(access.ty.bytes()));
                }
                overlaps
            })
            .count();
        let (group, others) = rest.split_at(count.max(1));
        rest = others;
        let regular = group.iter().all(|a| {
            a.kind.is_some() && a.offset == first.offset && a.ty.bytes() == first.ty.bytes()
        });
        if regular {
            // Most accesses of a cell have one type; whole accesses say more about it than narrow ones.
            let whole = group
                .iter()
                .find(|a| matches!(a.kind, Some(Kind::Load | Kind::Store)))
                .unwrap_or(first);
            let cell = cells.types.len();
            cells.types.push(whole.ty);
            for access in group {
                cells.accesses[access.inst] = access.kind.map(|kind| (cell, kind));
            }
        }
    }
}

/// `address + constant`, if that is what `inst` computes.
fn constant_offset(func: &Function, inst: Inst) -> Option<(Value, i64)> {
    let InstructionData::Binary {
        opcode: Opcode::Iadd,
        args: [a, b],
    } = func.dfg.insts[inst]
    else {
        return None;
    };
    integer(func, b)
        .map(|offset| (a, offset))
        .or_else(|| integer(func, a).map(|offset| (b, offset)))
}

/// Position of the address among the operands, offset, type in memory, and kind of a load or store; the kind is `None`
/// if the access must stay in memory.
fn memory_access(func: &Function, inst: Inst) -> Option<(usize, i64, Type, Option<Kind>)> {
    let dfg = &func.dfg;
    let (position, offset, opcode, flags, value) = match dfg.insts[inst] {
        InstructionData::Load {
            opcode,
            flags,
            offset,
            ..
        } => (0, offset, opcode, flags, dfg.first_result(inst)),
        InstructionData::Store {
            opcode,
            args,
            flags,
            offset,
        } => (1, offset, opcode, flags, args[0]),
        _ => return None,
    };
    let whole = dfg.value_type(value);
    let (ty, kind) = match opcode {
        _ if whole.is_dynamic_vector() => (types::I64, None),
        Opcode::Load => (whole, Some(Kind::Load)),
        Opcode::Store => (whole, Some(Kind::Store)),
        Opcode::Uload8 => (types::I8, Some(Kind::LoadUnsigned)),
        Opcode::Sload8 => (types::I8, Some(Kind::LoadSigned)),
        Opcode::Uload16 => (types::I16, Some(Kind::LoadUnsigned)),
        Opcode::Sload16 => (types::I16, Some(Kind::LoadSigned)),
        Opcode::Uload32 => (types::I32, Some(Kind::LoadUnsigned)),
        Opcode::Sload32 => (types::I32, Some(Kind::LoadSigned)),
        Opcode::Istore8 => (types::I8, Some(Kind::StoreLow)),
        Opcode::Istore16 => (types::I16, Some(Kind::StoreLow)),
        Opcode::Istore32 => (types::I32, Some(Kind::StoreLow)),
        // The vector loads that extend their lanes read 8 bytes.
        _ => (types::I64, None),
    };
    let big = dfg.mem_flags[flags].explicit_endianness() == Some(Endianness::Big) && ty.bytes() > 1;
    Some((
        position,
        i64::from(i32::from(offset)),
        ty,
        kind.filter(|_| !big),
    ))
}

/// Gives every `br_table` a table of its own, since arguments are about to be added to its entries.
fn separate_jump_tables(func: &mut Function) {
    let mut seen: HashSet<JumpTable> = HashSet::new();
    let mut shared = Vec::new();
    for block in func.layout.blocks() {
        if let Some(inst) = func.layout.last_inst(block)
            && let InstructionData::BranchTable { table, .. } = func.dfg.insts[inst]
            && !seen.insert(table)
        {
            shared.push((inst, table));
        }
    }
    for (inst, table) in shared {
        let mut copy = func.dfg.jump_tables[table].clone();
        for call in copy.all_branches_mut() {
            *call = call.deep_clone(&mut func.dfg.value_lists);
        }
        let copy = func.create_jump_table(copy);
        if let InstructionData::BranchTable { table, .. } = &mut func.dfg.insts[inst] {
            *table = copy;
        }
    }
}

/// The cells that need a parameter in each block, in the order of the parameters to be.
type Params = SecondaryMap<Block, Vec<Cell>>;

/// Replaces accesses by values, walking down the dominator tree.
struct Renamer<'a> {
    func: &'a mut Function,
    cells: &'a Cells,
    params: Params,
    /// Present value of each cell; none where nothing was stored.
    current: Vec<Option<Value>>,
    /// What a cell is where nothing was stored, once somebody asked for it.
    zeros: Vec<Option<Value>>,
    /// What to restore when the walk leaves a block.
    undo: Vec<(Cell, Option<Value>)>,
}

impl<'a> Renamer<'a> {
    fn new(func: &'a mut Function, cells: &'a Cells, params: Params) -> Self {
        let current = vec![None; cells.types.len()];
        let zeros = current.clone();
        Self {
            func,
            cells,
            params,
            current,
            zeros,
            undo: Vec::new(),
        }
    }

    fn run(mut self, domtree: &DominatorTree) {
        let Some(entry) = self.func.layout.entry_block() else {
            return;
        };
        for block in domtree.cfg_rpo() {
            for cell in self.params[*block].clone() {
                self.func
                    .dfg
                    .append_block_param(*block, self.cells.types[cell]);
            }
        }
        let mut stack = vec![(entry, None)];
        while let Some((block, leaving)) = stack.pop() {
            if let Some(mark) = leaving {
                while self.undo.len() > mark {
                    let (cell, old) = self.undo.pop().expect("longer than the mark");
                    self.current[cell] = old;
                }
                continue;
            }
            stack.push((block, Some(self.undo.len())));
            self.block(block);
            stack.extend(domtree.children(block).map(|child| (child, None)));
        }
    }

    fn set(&mut self, cell: Cell, value: Value) {
        let old = self.current[cell].replace(value);
        self.undo.push((cell, old));
    }

    fn block(&mut self, block: Block) {
        let cells = self.params[block].clone();
        let first = self.func.dfg.num_block_params(block) - cells.len();
        for (index, cell) in cells.into_iter().enumerate() {
            let param = self.func.dfg.block_params(block)[first + index];
            self.set(cell, param);
        }
        let insts: Vec<Inst> = self.func.layout.block_insts(block).collect();
        for inst in &insts {
            match self.cells.accesses[*inst] {
                Some((cell, kind @ (Kind::Store | Kind::StoreLow))) => {
                    self.store(*inst, cell, kind)
                }
                Some((cell, kind)) => self.load(*inst, cell, kind),
                None => {}
            }
        }
        if let Some(last) = insts.last() {
            self.pass_arguments(*last);
        }
    }

    fn store(&mut self, inst: Inst, cell: Cell, kind: Kind) {
        let ty = self.cells.types[cell];
        let location = self.func.srcloc(inst);
        let mut cursor = FuncCursor::new(self.func)
            .at_inst(inst)
            .with_srcloc(location);
        let mut value = cursor
            .func
            .dfg
            .resolve_aliases(cursor.func.dfg.inst_args(inst)[0]);
        if kind == Kind::StoreLow {
            let stored = memory_access(cursor.func, inst)
                .expect("a store accesses memory")
                .2;
            if cursor.func.dfg.value_type(value) != stored {
                value = cursor.ins().ireduce(stored, value);
            }
        }
        let value = cast(&mut cursor, ty, value);
        self.func.layout.remove_inst(inst);
        self.set(cell, value);
    }

    fn load(&mut self, inst: Inst, cell: Cell, kind: Kind) {
        let value = self.value_of(cell);
        let location = self.func.srcloc(inst);
        let mut cursor = FuncCursor::new(self.func)
            .at_inst(inst)
            .with_srcloc(location);
        let result = cursor.func.dfg.first_result(inst);
        let wanted = cursor.func.dfg.value_type(result);
        let loaded = memory_access(cursor.func, inst)
            .expect("a load accesses memory")
            .2;
        let value = cast(&mut cursor, loaded, value);
        let value = match kind {
            Kind::LoadUnsigned if wanted != loaded => cursor.ins().uextend(wanted, value),
            Kind::LoadSigned if wanted != loaded => cursor.ins().sextend(wanted, value),
            _ => value,
        };
        self.func.dfg.clear_results(inst);
        self.func.dfg.change_to_alias(result, value);
        self.func.layout.remove_inst(inst);
    }

    /// The present value of a cell; zero at the start of the function if nothing was stored.
    fn value_of(&mut self, cell: Cell) -> Value {
        if let Some(value) = self.current[cell].or(self.zeros[cell]) {
            return value;
        }
        let entry = self
            .func
            .layout
            .entry_block()
            .expect("an access is in a block");
        // The entry dominates whatever the walk stands on: this holds until the end.
        let zero = zero(self.func, entry, self.cells.types[cell]);
        self.zeros[cell] = Some(zero);
        zero
    }

    /// Adds the present values to the arguments of the branch `inst`.
    fn pass_arguments(&mut self, inst: Inst) {
        let dfg = &self.func.dfg;
        let calls = destinations(self.func, inst);
        let targets: Vec<Block> = calls
            .iter()
            .map(|call| call.block(&dfg.value_lists))
            .collect();
        for (index, target) in targets.into_iter().enumerate() {
            for cell in self.params[target].clone() {
                let value = self.value_of(cell);
                let dfg = &mut self.func.dfg;
                let calls = dfg.insts[inst]
                    .branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
                calls[index].append_argument(value, &mut dfg.value_lists);
            }
        }
    }
}

/// `value` in another type of the same size.
fn cast(cursor: &mut FuncCursor, ty: Type, value: Value) -> Value {
    let from = cursor.func.dfg.value_type(value);
    if from == ty {
        return value;
    }
    let mut flags = MemFlagsData::new();
    if from.lane_count() != ty.lane_count() {
        flags.set_endianness(Endianness::Little);
    }
    cursor.ins().bitcast(ty, flags, value)
}

/// A zero of any type at the start of `entry`.
fn zero(func: &mut Function, entry: Block, ty: Type) -> Value {
    let bytes = vec![0u8; ty.bytes() as usize];
    let mut cursor = FuncCursor::new(func).at_first_insertion_point(entry);
    match ty {
        types::I128 => {
            let low = cursor.ins().iconst(types::I64, 0);
            cursor.ins().uextend(types::I128, low)
        }
        types::F16 => cursor
            .ins()
            .f16const(cranelift_codegen::ir::immediates::Ieee16::with_bits(0)),
        types::F32 => cursor.ins().f32const(0.0),
        types::F64 => cursor.ins().f64const(0.0),
        types::F128 => {
            let constant = cursor.func.dfg.constants.insert(bytes.into());
            cursor.ins().f128const(constant)
        }
        _ if ty.is_int() => cursor.ins().iconst(ty, 0),
        _ => {
            let constant = cursor.func.dfg.constants.insert(bytes.into());
            cursor.ins().vconst(ty, constant)
        }
    }
}

/// Removes the address computations that nothing uses any more, so that their slots are seen to be unused.
fn remove_dead_addresses(func: &mut Function) {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::new();
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    for inst in &insts {
        for value in func.dfg.inst_values(*inst) {
            uses[func.dfg.resolve_aliases(value)] += 1;
        }
    }
    // Operands are defined before their users in some order of the blocks; sums of addresses are few, so go on until
    // nothing changes.
    let mut changed = true;
    let mut gone: HashSet<Inst> = HashSet::new();
    while changed {
        changed = false;
        for inst in insts.iter().rev() {
            let opcode = func.dfg.insts[*inst].opcode();
            if !matches!(opcode, Opcode::StackAddr | Opcode::Iadd | Opcode::Iconst)
                || gone.contains(inst)
                || uses[func.dfg.first_result(*inst)] > 0
            {
                continue;
            }
            for value in func.dfg.inst_values(*inst).collect::<Vec<_>>() {
                uses[func.dfg.resolve_aliases(value)] -= 1;
            }
            func.layout.remove_inst(*inst);
            gone.insert(*inst);
            changed = true;
        }
    }
}

/// Takes the size of slots that no instruction names; how many those are now. None, if an address points behind its
/// slot: such code counts on the slots standing one behind the other.
fn drop_unused_slots(func: &mut Function) -> usize {
    if addresses_leave_slots(func) {
        return 0;
    }
    let mut used: HashSet<StackSlot> = HashSet::new();
    for inst in func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
    {
        used.extend(func.dfg.insts[inst].stack_slot());
        used.extend(
            func.dfg
                .user_stack_map_entries(inst)
                .unwrap_or_default()
                .iter()
                .map(|entry| entry.slot),
        );
    }
    let mut dropped = 0;
    for slot in func.sized_stack_slots.keys() {
        let data = &mut func.sized_stack_slots[slot];
        if !used.contains(&slot) && data.size > 0 {
            data.size = 0;
            dropped += 1;
        }
    }
    dropped
}

/// True if the address of a slot is taken at an offset outside of it.
fn addresses_leave_slots(func: &Function) -> bool {
    func.layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .any(|inst| match func.dfg.insts[inst] {
            InstructionData::StackAddr {
                stack_slot, offset, ..
            } => {
                let size = i64::from(func.sized_stack_slots[stack_slot].size);
                !(0..size.max(1)).contains(&i64::from(i32::from(offset)))
            }
            _ => false,
        })
}

#[cfg(test)]
#[path = "promote_tests.rs"]
mod tests;
