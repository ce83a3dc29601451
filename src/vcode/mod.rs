//! Functions as machine instructions in blocks, before (`VCode<VReg>`) and after (`VCode<PReg>`) register allocation.
//!
//! A block is a run of instructions and one [`Terminator`]; branches are no instructions until layout. Values travel
//! between blocks only as arguments of [`Terminator::Jump`], so an edge that carries arguments leaves a block with one
//! successor (critical edges are split when the blocks are made). What belongs to few instructions – values kept under
//! a false guard, calls, symbols – is attached to them by index ([`Attachment`]), not stored in each.

mod build;
mod order;
pub(crate) mod print;
mod verify;

pub use build::{BlockFacts, Offer, VCodeBuilder};
pub use order::{AtomicSpace, MemoryEffect, MemoryOrder};

use crate::isa::inst::Registers;
use crate::isa::operand::Predicate;
use crate::isa::{Inst, PReg, Register, Role, VReg};
use crate::values::Holder;
use cranelift_codegen::entity::{EntityRef, PrimaryMap, entity_impl};
use cranelift_codegen::ir::{self, StackSlot};
use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A block of a [`VCode`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(u32);
entity_impl!(Block, "block");

/// What is attached to an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentId(u32);
entity_impl!(AttachmentId, "attachment");

/// A place in the source: the line of the CLIF text or whatever number the front end put into `srcloc`; 0 means
/// unknown.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SourceLine(pub u32);

/// A function of the machine.
#[derive(Clone, Debug)]
pub struct VCode<R: Register> {
    /// Symbol name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Instructions of all blocks; a block's are consecutive.
    pub insts: Vec<Entry<R>>,
    /// Attachments of instructions.
    pub attachments: PrimaryMap<AttachmentId, Attachment<R>>,
    /// Blocks in reverse postorder; the first is the entry.
    pub blocks: PrimaryMap<Block, BlockData<R>>,
    /// Registers that hold a value at entry: arguments of a device function and its return address.
    pub entry: Vec<(R, PReg)>,
    /// Number of virtual registers: every [`VReg::index`] is below it. 0 after allocation.
    pub vreg_count: u32,
    /// Local memory of the frame.
    pub frame: Frame,
    /// What holds values of the source, if somebody wants to know. Empty after allocation.
    pub(crate) holders: Vec<Holder>,
}

/// Kernel or device function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FunctionKind {
    /// Started by a launch; parameters are in constant bank 0.
    Kernel(KernelInfo),
    /// Called; parameters are in registers and on the stack.
    Device,
}

/// What a launch must know of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
    /// Static shared memory in bytes.
    pub shared_bytes: u32,
    /// Threads of a block, at most, where the kernel says so.
    pub max_threads: Option<u32>,
    /// Blocks that are to be resident together in a multiprocessor, where the kernel says so.
    pub min_blocks: Option<u32>,
}

/// A kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Byte offset in constant bank 0.
    pub offset: u32,
    /// CLIF type.
    #[serde(with = "crate::type_name")]
    pub ty: ir::Type,
}

/// An instruction with its place in the source.
#[derive(Clone, Copy, Debug)]
pub struct Entry<R> {
    /// The instruction.
    pub inst: Inst<R>,
    /// Where it comes from.
    pub line: SourceLine,
    /// What else belongs to it.
    pub attachment: Option<AttachmentId>,
    /// How it takes part in the orders of memory, if it accesses any.
    pub order: MemoryOrder,
    /// Its number among the accesses and fences as they were lowered, if there are ordered ones, to find it again; 0
    /// otherwise.
    pub label: u32,
}

impl<R> Entry<R> {
    /// An instruction with nothing beside it.
    pub fn new(inst: Inst<R>, line: SourceLine) -> Self {
        Entry {
            inst,
            line,
            attachment: None,
            order: MemoryOrder::default(),
            label: 0,
        }
    }

    /// The same with an attachment, if there is one.
    #[must_use]
    pub fn with(self, attachment: Option<AttachmentId>) -> Self {
        Entry { attachment, ..self }
    }
}

/// What belongs to one instruction beside its operands.
#[derive(Clone, Debug)]
pub enum Attachment<R> {
    /// Values that the results hold when the guard is false, one for each register that the instruction defines, in the
    /// order of [`Inst::definitions`]; none where the old value is dead.
    Else(SmallVec<[Option<R>; 2]>),
    /// The operands that a call has by its convention.
    Call(Box<CallInfo<R>>),
    /// A field of the word that holds an address known later.
    Symbol(SymbolUse),
    /// The label field holds the distance to the start of a block (the meeting point of a BSSY).
    Label(Block),
    /// The predicates that a P2R before register allocation writes to its result, each to the bit of the register that
    /// it will be in.
    Pack(SmallVec<[R; 6]>),
    /// The bit of one of them in the result, which a LOP3 before register allocation tests.
    Bit(Bit),
}

/// A bit of a register that holds several predicates. Which one it is is known after register allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// The [`Attachment::Pack`].
    pub pack: AttachmentId,
    /// The predicate, by its place there.
    pub place: u8,
}

/// Operands of a call beside those of the instruction.
#[derive(Clone, Debug, Default)]
pub struct CallInfo<R> {
    /// Callee, when it is known.
    pub callee: Option<String>,
    /// Arguments in registers.
    pub uses: Vec<(R, PReg)>,
    /// Results in registers.
    pub defs: Vec<(R, PReg)>,
    /// Where the lanes that call meet again: [`Meeting::Together`] directly behind the call.
    pub meeting: Meeting,
}

/// Where lanes go on together that a block's end or a call parts; decided in `analysis::meeting`, used up by
/// `simt::convergence`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meeting {
    /// They do not part.
    #[default]
    Together,
    /// At the start of a block.
    At(Block),
    /// Each group by itself.
    Nowhere,
}

/// An address that linking fills in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolUse {
    /// The operand that takes it.
    pub role: Role,
    /// Which part of the address.
    pub kind: SymbolKind,
    /// The symbol.
    pub name: String,
    /// Added to its address.
    pub addend: i64,
}

/// Parts of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SymbolKind {
    /// Low 32 bits of the absolute address.
    AbsoluteLow,
    /// High 32 bits of the absolute address.
    AbsoluteHigh,
    /// Distance from the next instruction.
    Relative,
    /// Byte offset in the constant bank.
    Constant,
}

/// A block.
#[derive(Clone, Debug)]
pub struct BlockData<R> {
    /// Range of its instructions in [`VCode::insts`].
    pub insts: std::ops::Range<u32>,
    /// Block parameters. None of the entry block: see [`VCode::entry`].
    pub params: Vec<R>,
    /// How it ends.
    pub terminator: Terminator<R>,
    /// Place of the terminator.
    pub line: SourceLine,
    /// May run while some of the warp's live lanes are elsewhere: no write to a uniform register may stand here.
    pub divergent: bool,
    /// Number of loops around it.
    pub loop_depth: u32,
    /// Expected to run rarely (traps).
    pub cold: bool,
    /// Where the lanes meet that part at its end.
    pub meeting: Meeting,
}

/// A guard: `@P0`, `@!P0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard<R> {
    /// The predicate.
    pub reg: R,
    /// Whether it is `!`.
    pub negated: bool,
}

impl<R: Register> From<Guard<R>> for Predicate<R> {
    fn from(guard: Guard<R>) -> Self {
        Predicate {
            reg: Some(guard.reg),
            negated: guard.negated,
        }
    }
}

/// How a block ends.
#[derive(Clone, Debug)]
pub enum Terminator<R> {
    /// Go on at `target`; the only edge with arguments.
    Jump {
        /// Successor.
        target: Block,
        /// One for each parameter of the successor.
        args: Vec<R>,
    },
    /// Two ways.
    Branch {
        /// Condition of `taken`.
        guard: Guard<R>,
        /// Successor for lanes whose guard is true.
        taken: Block,
        /// Successor for the other lanes.
        fallthrough: Block,
        /// Lanes of a warp may disagree.
        divergent: bool,
    },
    /// A jump table. The index is below the number of targets.
    Table {
        /// Without a `table` the 32-bit index; with one the code offset that was read from it.
        index: R,
        /// Byte offset of the table in the function's constants, or from the bank's end on in its data
        /// ([`Constants::in_data`](crate::emit::Constants::in_data)), once the code that reads it exists
        /// (`simt::tables`).
        table: Option<u32>,
        /// Successors by index; may repeat.
        targets: Vec<Block>,
        /// Lanes of a warp may disagree.
        divergent: bool,
    },
    /// Return from a device function.
    Return {
        /// Return address, low and high word.
        address: [R; 2],
        /// Results in their registers.
        values: Vec<(R, PReg)>,
    },
    /// Leave by jumping to another function with the arguments in their registers; the return address is among
    /// `values`.
    TailCall {
        /// The callee's symbol, or the registers of its address.
        callee: Callee<R>,
        /// Arguments in their registers.
        values: Vec<(R, PReg)>,
    },
    /// The thread ends.
    Exit,
    /// A fault with this code (CLIF's trap code).
    Trap(u8),
}

/// Who is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee<R> {
    /// A function by name.
    Symbol(String),
    /// The address in a pair of registers.
    Registers([R; 2]),
}

/// The frame in local memory, addressed from R1 after the prologue.
///
/// From low to high: outgoing stack arguments, spill slots, stack slots. Incoming stack arguments start at R1 + size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Bytes for arguments of callees.
    pub outgoing_bytes: u32,
    /// Bytes of stack slots.
    pub slot_bytes: u32,
    /// Bytes of spill slots; known after allocation.
    pub spill_bytes: u32,
    /// Bytes of the caller's frame that hold arguments, and take results, which are not in registers.
    pub incoming_bytes: u32,
    /// Parts of the slot area that nothing may use, by offset; from R1 once the frame is laid out.
    pub redzones: Vec<crate::abi::Redzone>,
    /// By number where each stack slot is in the slot area, if somebody wants to know; none of one that is left out.
    /// From R1 once the frame is laid out.
    pub slots: Vec<Option<u32>>,
    /// Whether it calls.
    pub has_calls: bool,
    /// Whether a dynamic use of R1 exists (stack addresses).
    pub uses_pointer: bool,
}

impl Frame {
    /// Symbol of the stack slots; the addend is the offset among them.
    pub const SLOTS: &str = "$frame.slots";
    /// Symbol of the incoming stack arguments; the addend is the offset among them.
    pub const INCOMING: &str = "$frame.incoming";

    /// Where a stack slot is, from R1 once the frame is laid out; none if it is left out, or nobody wants to know.
    pub fn offset_of(&self, slot: StackSlot) -> Option<u32> {
        self.slots.get(slot.index()).copied().flatten()
    }

    /// Size in bytes, a multiple of 16.
    pub fn size(&self) -> u32 {
        (self.outgoing_bytes.next_multiple_of(16)
            + self.spill_bytes.next_multiple_of(16)
            + self.slot_bytes)
            .next_multiple_of(16)
    }

    /// Offset of the spill area from R1.
    pub fn spill_offset(&self) -> u32 {
        self.outgoing_bytes.next_multiple_of(16)
    }
}

impl<R> Attachment<R> {
    /// Visits every register.
    pub fn for_each_register(&mut self, mut visit: impl FnMut(&mut R)) {
        match self {
            Attachment::Else(values) => values.iter_mut().flatten().for_each(visit),
            Attachment::Call(call) => call
                .uses
                .iter_mut()
                .chain(&mut call.defs)
                .for_each(|(r, _)| visit(r)),
            Attachment::Pack(values) => values.iter_mut().for_each(visit),
            Attachment::Symbol(_) | Attachment::Label(_) | Attachment::Bit(_) => {}
        }
    }
}

impl<R: Register> Terminator<R> {
    /// Visits every register.
    pub fn for_each_register(&mut self, mut visit: impl FnMut(&mut R)) {
        match self {
            Terminator::Jump { args, .. } => args.iter_mut().for_each(visit),
            Terminator::Branch { guard, .. } => visit(&mut guard.reg),
            Terminator::Table { index, .. } => visit(index),
            Terminator::Return { address, values } => {
                address.iter_mut().for_each(&mut visit);
                values.iter_mut().for_each(|(r, _)| visit(r));
            }
            Terminator::TailCall { callee, values } => {
                if let Callee::Registers(address) = callee {
                    address.iter_mut().for_each(&mut visit);
                }
                values.iter_mut().for_each(|(r, _)| visit(r));
            }
            Terminator::Exit | Terminator::Trap(_) => {}
        }
    }

    /// Successors in order; a block may repeat.
    pub fn successors(&self) -> SmallVec<[Block; 2]> {
        match self {
            Terminator::Jump { target, .. } => SmallVec::from_slice(&[*target]),
            Terminator::Branch {
                taken, fallthrough, ..
            } => SmallVec::from_slice(&[*taken, *fallthrough]),
            Terminator::Table { targets, .. } => SmallVec::from_slice(targets),
            Terminator::Return { .. }
            | Terminator::TailCall { .. }
            | Terminator::Exit
            | Terminator::Trap(_) => SmallVec::new(),
        }
    }

    /// Visits every successor for change.
    pub fn for_each_target(&mut self, mut visit: impl FnMut(&mut Block)) {
        match self {
            Terminator::Jump { target, .. } => visit(target),
            Terminator::Branch {
                taken, fallthrough, ..
            } => {
                visit(taken);
                visit(fallthrough);
            }
            Terminator::Table { targets, .. } => targets.iter_mut().for_each(visit),
            Terminator::Return { .. }
            | Terminator::TailCall { .. }
            | Terminator::Exit
            | Terminator::Trap(_) => {}
        }
    }

    /// Registers it reads, arguments of edges included.
    pub fn uses(&self) -> TerminatorUses<'_, R> {
        let (plain, fixed): (&[R], &[(R, PReg)]) = match self {
            Terminator::Jump { args, .. } => (args, &[]),
            Terminator::Branch { guard, .. } => (std::slice::from_ref(&guard.reg), &[]),
            Terminator::Table { index, .. } => (std::slice::from_ref(index), &[]),
            Terminator::Return { address, values } => (address, values),
            Terminator::TailCall { callee, values } => match callee {
                Callee::Registers(address) => (address, values),
                Callee::Symbol(_) => (&[], values),
            },
            Terminator::Exit | Terminator::Trap(_) => (&[], &[]),
        };
        TerminatorUses {
            plain: plain.iter(),
            fixed: fixed.iter(),
        }
    }
}

/// Registers that a terminator reads; see [`Terminator::uses`].
#[derive(Clone, Debug)]
pub struct TerminatorUses<'a, R> {
    plain: std::slice::Iter<'a, R>,
    fixed: std::slice::Iter<'a, (R, PReg)>,
}

impl<R: Register> Iterator for TerminatorUses<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        match self.plain.next() {
            Some(reg) => Some(*reg),
            None => self.fixed.next().map(|(reg, _)| *reg),
        }
    }
}

impl<R: Register> VCode<R> {
    /// The entry block.
    pub fn entry_block(&self) -> Block {
        Block(0)
    }

    /// The instructions of a block.
    pub fn block_insts(&self, block: Block) -> &[Entry<R>] {
        let range = &self.blocks[block].insts;
        &self.insts[range.start as usize..range.end as usize]
    }

    /// Values kept by a guarded instruction when its guard is false.
    pub fn else_values(&self, entry: &Entry<R>) -> &[Option<R>] {
        match entry.attachment.map(|a| &self.attachments[a]) {
            Some(Attachment::Else(values)) => values,
            _ => &[],
        }
    }

    /// The convention's operands, when the instruction is a call.
    pub fn call(&self, entry: &Entry<R>) -> Option<&CallInfo<R>> {
        match entry.attachment.map(|a| &self.attachments[a]) {
            Some(Attachment::Call(info)) => Some(info),
            _ => None,
        }
    }

    /// The predicates that an instruction packs into its result.
    pub fn packed(&self, entry: &Entry<R>) -> &[R] {
        match entry.attachment.map(|a| &self.attachments[a]) {
            Some(Attachment::Pack(values)) => values,
            _ => &[],
        }
    }

    /// The predicate whose bit an instruction tests.
    pub fn bit(&self, entry: &Entry<R>) -> Option<R> {
        match entry.attachment.map(|a| &self.attachments[a]) {
            Some(Attachment::Bit(Bit { pack, place })) => match &self.attachments[*pack] {
                Attachment::Pack(values) => values.get(usize::from(*place)).copied(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Every register that an instruction reads: operands, values kept, a call's arguments, predicates that it packs.
    pub fn uses<'a>(&'a self, entry: &'a Entry<R>) -> Uses<'a, R> {
        let mut uses = Uses {
            operands: entry.inst.uses(),
            kept: [].iter(),
            call: [].iter(),
            packed: [].iter(),
        };
        match entry.attachment.map(|a| &self.attachments[a]) {
            Some(Attachment::Else(values)) => uses.kept = values.iter(),
            Some(Attachment::Call(info)) => uses.call = info.uses.iter(),
            Some(Attachment::Pack(values)) => uses.packed = values.iter(),
            _ => {}
        }
        uses
    }

    /// Every register that an instruction writes: operands and a call's results.
    pub fn definitions<'a>(&'a self, entry: &'a Entry<R>) -> Uses<'a, R> {
        let call: &[(R, PReg)] = self.call(entry).map_or(&[], |info| &info.defs);
        Uses {
            operands: entry.inst.definitions(),
            kept: [].iter(),
            call: call.iter(),
            packed: [].iter(),
        }
    }

    /// Predecessors of every block; a block that branches twice to the same one is listed twice.
    pub fn predecessors(
        &self,
    ) -> cranelift_codegen::entity::SecondaryMap<Block, SmallVec<[Block; 2]>> {
        let mut map = cranelift_codegen::entity::SecondaryMap::with_capacity(self.blocks.len());
        for (block, data) in self.blocks.iter() {
            for s in data.terminator.successors() {
                let list: &mut SmallVec<[Block; 2]> = &mut map[s];
                list.push(block);
            }
        }
        map
    }
}

/// Registers of an instruction with those that its attachment names; see [`VCode::uses`] and [`VCode::definitions`].
#[derive(Clone, Debug)]
pub struct Uses<'a, R> {
    operands: Registers<'a, R>,
    kept: std::slice::Iter<'a, Option<R>>,
    call: std::slice::Iter<'a, (R, PReg)>,
    packed: std::slice::Iter<'a, R>,
}

impl<R: Register> Iterator for Uses<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        self.operands
            .next()
            .or_else(|| self.kept.by_ref().copied().flatten().next())
            .or_else(|| self.call.next().map(|(r, _)| *r))
            .or_else(|| self.packed.next().copied())
    }

    #[inline]
    fn fold<B, F: FnMut(B, R) -> B>(self, init: B, mut f: F) -> B {
        let result = self.operands.fold(init, &mut f);
        let result = self.kept.copied().flatten().fold(result, &mut f);
        let result = self.call.map(|(r, _)| *r).fold(result, &mut f);
        self.packed.copied().fold(result, f)
    }
}

impl VCode<VReg> {
    /// Drops the parameters of blocks for which `keep` does not hold, and what is passed for them.
    pub fn retain_params(&mut self, keep: impl Fn(VReg) -> bool) {
        let params: Vec<Vec<VReg>> = (self.blocks.values())
            .map(|data| data.params.clone())
            .collect();
        for data in self.blocks.values_mut() {
            data.params.retain(|param| keep(*param));
            if let Terminator::Jump { target, args } = &mut data.terminator {
                let mut params = params[target.index()].iter();
                args.retain(|_| params.next().is_some_and(|param| keep(*param)));
            }
        }
    }

    /// Says that registers have another meaning than before: they hold no values of the source any more.
    pub(crate) fn drop_holders(&mut self, of: &HashSet<VReg>) {
        if !of.is_empty() {
            let is_one = |register: VReg| of.contains(&register);
            (self.holders).retain(|holder| !holder.held.registers().any(is_one));
        }
    }

    /// A new virtual register.
    pub fn new_vreg(&mut self, class: crate::isa::RegisterClass) -> VReg {
        self.vreg_count += 1;
        VReg::new(class, self.vreg_count - 1)
    }
}
