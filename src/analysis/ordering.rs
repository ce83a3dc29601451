//! Where a fence stands: which accesses must be ordered behind what the thread did before, and the machine would not do
//! so by itself.
//!
//! Takes a function as it is lowered, with the spaces of its addresses; gives the accesses that need a MEMBAR directly
//! before them, its scope, and the read-modify-writes that nobody reads and whose completion must be waited for all the
//! same. `docs/memory.md` says what CLIF promises and what the machine gives; "Where a fence stands" there is this
//! pass.
//!
//! A MEMBAR stands before the access that needs one, never behind the one that caused the need: a loop that polls has
//! none inside, neither the first nor the last atomic of a kernel needs one, and one serves all that was before. What
//! may need one is found by forward dataflow: some [`Pending`] facts at the borders of blocks, joined by union, until
//! nothing changes. Which loads and atomics are waited for by scoreboards is not decided here but where those are
//! (`sched::access`).
//!
//! Where a loop needs a fence only for what was pending when it was entered, the MEMBAR stands in front of the loop
//! instead: that is tried for all innermost loops with fences at once, and taken back for those where a fence stays.
//!
//! Functions that have no atomic accesses and call none that has are not walked.

use super::Subject;
use super::calls::{Callees, Summary};
use super::control_flow::ControlFlow;
use super::provenance::{Provenance, Space};
use crate::intrinsics::{Intrinsic, Lowering, resolve::Intrinsics};
use crate::isa::generated::MemScope;
use crate::vcode::MemoryOrder;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstructionData, MemFlags, Opcode, Value, types,
};

/// The fences of a function.
#[derive(Debug, Default)]
pub struct Ordering {
    /// By instruction, the scope of the MEMBAR directly before it.
    fences: SecondaryMap<Inst, Option<MemScope>>,
    /// By instruction, whether accesses behind it wait for it although nobody reads its result.
    awaited: SecondaryMap<Inst, bool>,
    /// By block, what may be pending where it is entered.
    entries: SecondaryMap<Block, Option<Pending>>,
    /// By block, whether an access may come behind its start that has to wait for a read-modify-write before it.
    waits: SecondaryMap<Block, bool>,
    /// By header, the scope of the MEMBAR in front of its loop.
    loops: SecondaryMap<Block, Option<MemScope>>,
}

/// What an instruction does in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What CLIF says of it.
    pub order: MemoryOrder,
    /// What it does.
    pub kind: Kind,
    /// Where.
    pub address: Value,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It does both at one time.
    Modify,
}

impl Access {
    /// The access that an instruction makes, if it makes one.
    pub fn of(func: &Function, intrinsics: &Intrinsics, inst: Inst) -> Option<Access> {
        let dfg = &func.dfg;
        let atomic = |flags: MemFlags| match dfg.mem_flags[flags].can_move() {
            true => MemoryOrder::Relaxed,
            false => MemoryOrder::Ordered,
        };
        let (order, kind, address) = match dfg.insts[inst] {
            InstructionData::Load { flags, arg, .. } => {
                let order = match dfg.mem_flags[flags].readonly() {
                    true => MemoryOrder::Private,
                    false => MemoryOrder::Weak,
                };
                (order, Kind::Load, arg)
            }
            InstructionData::Store { args, .. } => (MemoryOrder::Weak, Kind::Store, args[1]),
            InstructionData::LoadNoOffset {
                opcode: Opcode::AtomicLoad,
                flags,
                arg,
            } => (atomic(flags), Kind::Load, arg),
            InstructionData::StoreNoOffset {
                opcode: Opcode::AtomicStore,
                flags,
                args,
            } => (atomic(flags), Kind::Store, args[1]),
            InstructionData::AtomicRmw { flags, args, .. } => {
                (atomic(flags), Kind::Modify, args[0])
            }
            InstructionData::AtomicCas { flags, args, .. } => {
                (atomic(flags), Kind::Modify, args[0])
            }
            InstructionData::Call { ref args, .. } => {
                let Lowering::AtomicAdd(_) = intrinsics.of_call(func, inst)?.lowering else {
                    return None;
                };
                let address = *args.as_slice(&dfg.value_lists).first()?;
                (MemoryOrder::Ordered, Kind::Modify, address)
            }
            _ => return None,
        };
        Some(Access {
            order,
            kind,
            address,
        })
    }
}

/// What an instruction means for the order of accesses.
#[derive(Clone, Copy, Debug)]
enum OrderEvent {
    /// Nothing.
    Nothing,
    /// An access in a space that others see, and whether somebody reads its result.
    Access(MemoryOrder, Kind, Space, bool),
    /// A fence of the CLIF, of block or of device scope.
    Fence(MemScope),
    /// A meeting of threads of the block.
    Meeting,
    /// Another function.
    Call(Summary),
    /// The function ends, and what called it may do anything.
    Return,
}

/// What may have happened before a point so that a later access has to be ordered behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending(u8);

impl Pending {
    /// A store of the thread may not have been performed for the block.
    const STORE: Pending = Pending(1);
    /// A RED of global memory may not have been performed.
    const REDUCTION: Pending = Pending(1 << 1);
    /// What has been performed for the block may not have been for the device.
    const DEVICE: Pending = Pending(1 << 2);
    /// A sequentially consistent store may not have been performed.
    const ORDERED_STORE: Pending = Pending(1 << 3);
    /// The thread may have acquired what other blocks wrote, and the block may have kept something older.
    const ACQUIRED: Pending = Pending(1 << 4);
    /// It may have read with a relaxed load what others will be ordered behind that meet it.
    const READ: Pending = Pending(1 << 5);
    const ALL: Pending = Pending((1 << 6) - 1);

    const fn or(self, other: Pending) -> Pending {
        Pending(self.0 | other.0)
    }

    fn has(self, any: Pending) -> bool {
        self.0 & any.0 != 0
    }

    const fn without(self, other: Pending) -> Pending {
        Pending(self.0 & !other.0)
    }

    /// Behind a MEMBAR.
    fn behind(self, scope: MemScope) -> Pending {
        match scope {
            MemScope::Cta => self.without(BLOCK),
            MemScope::Gl | MemScope::Sys => Pending::default(),
        }
    }
}

/// What a fence of block scope settles.
const BLOCK: Pending = Pending::STORE
    .or(Pending::REDUCTION)
    .or(Pending::ORDERED_STORE);

/// What a function does anywhere: threads of a block run the same.
#[derive(Clone, Copy, Debug, Default)]
struct Presence {
    /// Weak stores to memory of the device, which are performed for the block first.
    stores: bool,
    /// Weak loads of it, which the block may answer.
    loads: bool,
}

/// A function to be looked at.
struct Walk<'a> {
    func: &'a Function,
    intrinsics: &'a Intrinsics,
    callees: &'a Callees,
    provenance: &'a Provenance,
    /// Whether somebody reads the result of an instruction.
    is_read: &'a dyn Fn(Value) -> bool,
    presence: Presence,
    flow: &'a ControlFlow,
    is_kernel: bool,
}

/// The scope of a fence that is also one of another.
fn wider(known: Option<MemScope>, scope: MemScope) -> MemScope {
    match known {
        Some(known) if scope == MemScope::Cta => known,
        _ => scope,
    }
}

/// Whether others than the block may see a space.
fn is_seen_by_device(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic)
}

impl Ordering {
    /// The scope of the MEMBAR that stands directly before an instruction.
    pub fn fence_before(&self, inst: Inst) -> Option<MemScope> {
        self.fences[inst]
    }

    /// Whether accesses behind a read-modify-write wait for it, so that it must say when it has been performed.
    pub fn is_awaited(&self, inst: Inst) -> bool {
        self.awaited[inst]
    }

    /// Forgets everything: of a function without atomic accesses.
    pub fn forget(&mut self) {
        self.fences.clear();
        self.awaited.clear();
    }

    /// Looks at a function; `is_read` says whether somebody reads a value.
    pub fn recompute(
        &mut self,
        subject: &Subject<'_>,
        provenance: &Provenance,
        is_read: &dyn Fn(Value) -> bool,
    ) {
        self.forget();
        self.entries.clear();
        self.waits.clear();
        let mut walk = Walk {
            func: subject.func,
            intrinsics: subject.intrinsics,
            callees: subject.callees,
            provenance,
            is_read,
            presence: Presence::default(),
            flow: subject.flow,
            is_kernel: subject.is_kernel,
        };
        walk.presence = walk.presence();
        let order = subject.flow.reverse_postorder();
        self.loops.clear();
        self.find_waits(&walk, order);
        self.find_pending(&walk, order);
        if self.try_before_loops(&walk, order) {
            self.find_pending(&walk, order);
            if self.take_back(&walk, order) {
                self.find_pending(&walk, order);
            }
        }
        for &block in order {
            let pending = self.place(&walk, block, |fences, inst, scope| {
                fences[inst] = Some(scope);
            });
            let Some(last) = walk.func.layout.last_inst(block) else {
                continue;
            };
            for next in walk.func.block_successors(block) {
                let Some(scope) = self.scope_between(&walk, block, next) else {
                    continue;
                };
                if pending.behind(scope) != pending {
                    self.fences[last] = Some(wider(self.fences[last], scope));
                }
            }
        }
    }

    /// Shows the fences of a block to `visit`; what is pending behind it.
    fn place(
        &mut self,
        walk: &Walk<'_>,
        block: Block,
        mut visit: impl FnMut(&mut SecondaryMap<Inst, Option<MemScope>>, Inst, MemScope),
    ) -> Pending {
        let Some(mut pending) = self.entries[block] else {
            return Pending::default();
        };
        for inst in walk.func.layout.block_insts(block) {
            let step = walk.step(inst);
            if let Some(scope) = step.needs(pending) {
                visit(&mut self.fences, inst, scope);
            }
            pending = walk.after(step, pending, self.awaited[inst]);
        }
        pending
    }

    /// The scope of the MEMBAR between two blocks: in front of a loop.
    fn scope_between(&self, walk: &Walk<'_>, from: Block, to: Block) -> Option<MemScope> {
        let scope = self.loops[to]?;
        let lp = walk.flow.loop_tree().is_loop_header(to)?;
        (!walk.flow.is_in_loop(from, lp)).then_some(scope)
    }

    /// Puts the fences in innermost loops in front of those that are entered by jumps only; whether there are any.
    fn try_before_loops(&mut self, walk: &Walk<'_>, order: &[Block]) -> bool {
        let mut found = false;
        for &block in order {
            let Some(lp) = walk.flow.innermost_loop(block) else {
                continue;
            };
            let mut scope = None;
            self.place(walk, block, |_, _, needed| {
                scope = Some(wider(scope, needed))
            });
            let header = walk.flow.loop_header(lp);
            let mut before = walk.flow.predecessors(header);
            let jumps = |from| {
                let last = walk.func.layout.last_inst(from);
                last.is_some_and(|last| walk.func.dfg.insts[last].opcode() == Opcode::Jump)
            };
            if let Some(scope) = scope
                && before.all(|from| walk.flow.is_in_loop(from, lp) || jumps(from))
            {
                self.loops[header] = Some(wider(self.loops[header], scope));
                found = true;
            }
        }
        found
    }

    /// Takes those back in front of loops where a fence stays; whether there are any.
    fn take_back(&mut self, walk: &Walk<'_>, order: &[Block]) -> bool {
        let mut found = false;
        for &block in order {
            let Some(lp) = walk.flow.innermost_loop(block) else {
                continue;
            };
            let mut stays = false;
            self.place(walk, block, |_, _, _| stays = true);
            let before = &mut self.loops[walk.flow.loop_header(lp)];
            if stays && before.is_some() {
                *before = None;
                found = true;
            }
        }
        found
    }

    /// Finds the read-modify-writes that something behind has to wait for, from the last block to the first.
    fn find_waits(&mut self, walk: &Walk<'_>, order: &[Block]) {
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().rev() {
                let mut waits = walk
                    .func
                    .block_successors(block)
                    .any(|next| self.waits[next]);
                let mut next = walk.func.layout.last_inst(block);
                while let Some(inst) = next {
                    next = walk.func.layout.prev_inst(inst);
                    match walk.step(inst) {
                        OrderEvent::Nothing => {}
                        OrderEvent::Fence(_) | OrderEvent::Meeting => waits = false,
                        OrderEvent::Call(_) | OrderEvent::Return => waits = true,
                        OrderEvent::Access(order, kind, space, _) => {
                            let modifies = kind == Kind::Modify && is_seen_by_device(space);
                            // What is behind a RED by a generic address is in order with those of one of two spaces,
                            // nobody knows which.
                            let is_awaited = waits || space == Space::Generic;
                            if modifies && order == MemoryOrder::Ordered && is_awaited {
                                self.awaited[inst] = true;
                            }
                            waits |= !modifies;
                        }
                    }
                }
                changed |= waits != std::mem::replace(&mut self.waits[block], waits);
            }
        }
    }

    /// Finds what may be pending where blocks are entered.
    fn find_pending(&mut self, walk: &Walk<'_>, order: &[Block]) {
        let Some(&entry) = order.first() else { return };
        self.entries.clear();
        self.entries[entry] = Some(match walk.is_kernel {
            true => Pending::default(),
            false => Pending::ALL,
        });
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order {
                let Some(mut pending) = self.entries[block] else {
                    continue;
                };
                for inst in walk.func.layout.block_insts(block) {
                    pending = walk.after(walk.step(inst), pending, self.awaited[inst]);
                }
                for next in walk.func.block_successors(block) {
                    let known = self.entries[next];
                    let passed = match self.scope_between(walk, block, next) {
                        Some(scope) => pending.behind(scope),
                        None => pending,
                    };
                    let joined = known.unwrap_or_default().or(passed);
                    if known != Some(joined) {
                        self.entries[next] = Some(joined);
                        changed = true;
                    }
                }
            }
        }
    }
}

impl Walk<'_> {
    /// What the function does to memory of the device. Of other functions nothing is known.
    fn presence(&self) -> Presence {
        let mut found = Presence {
            stores: !self.is_kernel,
            loads: !self.is_kernel,
        };
        let layout = &self.func.layout;
        for inst in layout.blocks().flat_map(|block| layout.block_insts(block)) {
            match self.step(inst) {
                OrderEvent::Call(_) => {
                    return Presence {
                        stores: true,
                        loads: true,
                    };
                }
                OrderEvent::Access(MemoryOrder::Weak, kind, space, _)
                    if is_seen_by_device(space) =>
                {
                    found.stores |= kind == Kind::Store;
                    found.loads |= kind == Kind::Load;
                }
                _ => {}
            }
        }
        found
    }

    fn call(&self, inst: Inst) -> OrderEvent {
        let call = self.callees.call(self.func, inst);
        OrderEvent::Call(call.map_or(Summary::UNKNOWN, |call| call.summary))
    }

    fn step(&self, inst: Inst) -> OrderEvent {
        let func = self.func;
        if let Some(access) = Access::of(func, self.intrinsics, inst) {
            let mut space = self.provenance.space(func, access.address);
            // What has not become an offset in shared memory by now may become a generic access.
            if space == Space::Shared && func.dfg.value_type(access.address) == types::I64 {
                space = Space::Generic;
            }
            if space == Space::Local || access.order == MemoryOrder::Private {
                return OrderEvent::Nothing;
            }
            let mut results = func.dfg.inst_results(inst).iter();
            let is_read = results.any(|&result| (self.is_read)(result));
            return OrderEvent::Access(access.order, access.kind, space, is_read);
        }
        let opcode = func.dfg.insts[inst].opcode();
        match opcode {
            Opcode::Fence => OrderEvent::Fence(MemScope::Gl),
            // Where a kernel ends all is performed.
            Opcode::Return if self.is_kernel => OrderEvent::Nothing,
            Opcode::Return => OrderEvent::Return,
            _ if opcode.is_call() => match self.intrinsics.of_call(func, inst) {
                Some(intrinsic) => of_intrinsic(intrinsic),
                None => self.call(inst),
            },
            _ => OrderEvent::Nothing,
        }
    }

    /// What is pending behind an instruction, with the fence before it.
    fn after(&self, step: OrderEvent, pending: Pending, awaited: bool) -> Pending {
        let pending = match step.needs(pending) {
            Some(scope) => pending.behind(scope),
            None => pending,
        };
        // What threads of the block that are ordered before this one have done may not have been performed for the
        // device.
        let device = match self.presence.stores {
            true => Pending::DEVICE,
            false => Pending::default(),
        };
        let kept = |pending| match self.presence.loads {
            true => pending,
            false => Pending::default(),
        };
        match step {
            OrderEvent::Nothing | OrderEvent::Return => pending,
            OrderEvent::Call(_) => Pending::ALL,
            OrderEvent::Fence(MemScope::Cta) | OrderEvent::Meeting => {
                pending.behind(MemScope::Cta).or(device)
            }
            OrderEvent::Fence(scope) => pending.behind(scope),
            OrderEvent::Access(order, kind, space, is_read) => {
                let by_device = is_seen_by_device(space);
                let acquired = match space {
                    Space::Global => kept(Pending::ACQUIRED),
                    Space::Generic => kept(Pending::ACQUIRED).or(device),
                    _ => device,
                };
                let reduced = match space {
                    _ if kind != Kind::Modify || is_read || awaited => Pending::default(),
                    Space::Global => Pending::REDUCTION,
                    Space::Generic => Pending::STORE,
                    _ => Pending::default(),
                };
                let added = match (order, kind) {
                    (MemoryOrder::Private, _) | (MemoryOrder::Weak, Kind::Load) => {
                        Pending::default()
                    }
                    (MemoryOrder::Weak, _) if by_device => Pending::STORE.or(Pending::DEVICE),
                    (MemoryOrder::Weak | MemoryOrder::Relaxed, Kind::Store) => Pending::STORE,
                    (MemoryOrder::Ordered, Kind::Store) => {
                        Pending::STORE.or(Pending::ORDERED_STORE)
                    }
                    (MemoryOrder::Relaxed, _) if by_device && is_read => kept(Pending::READ),
                    (MemoryOrder::Weak | MemoryOrder::Relaxed, _) => reduced,
                    (MemoryOrder::Ordered, _) => acquired.or(reduced),
                };
                pending.or(added)
            }
        }
    }
}

fn of_intrinsic(intrinsic: &Intrinsic) -> OrderEvent {
    match intrinsic.lowering {
        Lowering::MemoryBarrier(scope) => OrderEvent::Fence(scope),
        Lowering::BarSync | Lowering::WarpSync => OrderEvent::Meeting,
        _ => OrderEvent::Nothing,
    }
}

impl OrderEvent {
    /// The fence that it needs directly before it.
    fn needs(self, pending: Pending) -> Option<MemScope> {
        const ACQUIRED: Pending = Pending::ACQUIRED.or(Pending::READ);
        let (device, block) = match self {
            OrderEvent::Nothing
            | OrderEvent::Return
            | OrderEvent::Fence(MemScope::Gl | MemScope::Sys) => {
                return None;
            }
            // A callee that has no order of its own is not looked at: its loads need what is needed here.
            OrderEvent::Call(callee) if callee.acquires => return None,
            OrderEvent::Call(_) => (Pending::ACQUIRED, Pending::default()),
            // Who is ordered behind this thread must find what it acquired.
            OrderEvent::Fence(MemScope::Cta) | OrderEvent::Meeting => {
                (ACQUIRED, Pending::default())
            }
            OrderEvent::Access(MemoryOrder::Weak, Kind::Load, Space::Shared, _) => return None,
            OrderEvent::Access(MemoryOrder::Weak, Kind::Load, ..) => {
                (Pending::ACQUIRED, Pending::default())
            }
            OrderEvent::Access(MemoryOrder::Ordered, Kind::Load, Space::Shared, _) => {
                (Pending::default(), Pending::ORDERED_STORE)
            }
            OrderEvent::Access(MemoryOrder::Ordered, Kind::Load, ..) => {
                (Pending::ORDERED_STORE, Pending::default())
            }
            OrderEvent::Access(MemoryOrder::Ordered, _, Space::Shared, _) => {
                (Pending::ACQUIRED, Pending::STORE.or(Pending::REDUCTION))
            }
            OrderEvent::Access(MemoryOrder::Ordered, kind, space, _) => {
                let mut device = Pending::STORE.or(Pending::DEVICE);
                if kind == Kind::Store {
                    device = device.or(Pending::REDUCTION);
                }
                // It may be shared memory after all.
                if space == Space::Generic {
                    device = device.or(Pending::ACQUIRED);
                }
                (device, Pending::default())
            }
            OrderEvent::Access(..) => return None,
        };
        if pending.has(device) {
            Some(MemScope::Gl)
        } else {
            pending.has(block).then_some(MemScope::Cta)
        }
    }
}
