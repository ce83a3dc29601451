//! Where lanes wait for other threads, and what lets those go on.
//!
//! Lanes that wait at a convergence barrier must not keep anybody from going on for whom lanes of the same region wait
//! in a loop: a lock whose holder waits for those who want it would never be free again. [`Progress`] finds, in one
//! function,
//!
//! - *polling*: a cycle that is left depending on what an atomic operation (`atomic_load` too) or a call has read.
//!   Plain loads never count: who waits uses atomics (`docs/clif.md`). What was read is followed through memory of
//!   all kinds, and through callees. Exempt are cycles that end without help: every turn passes an edge on which it
//!   surely got somewhere ([`super::advance`]). A call of a function that polls is polling too, but not in front of a
//!   trap (a message is written there), and so is a uniform loop: only some lanes of a warp may be in it;
//! - *releases*: writes that a polling thread may wait for: an atomic write or a store to an object that is polled, or
//!   where one of both is unknown; calls that may write; the return of a device function, behind which anything may
//!   follow. Two parameters of a kernel may point to the same object for an atomic write. A plain store releases only
//!   through the pointer that is polled.
//!
//! Everything that polls is taken together, and everything that releases any of it: a lane may wait for one lock and
//! hold another.

use super::advance::counting;
use super::calls::{Callees, Summary};
use super::control_flow::ControlFlow;
use super::endings::{Trapping, traps};
use super::polling::{Cycle, Observed, observed, polled_cycles};
use super::provenance::Provenance;
use super::roots::Root;
use super::taint::{Accesses, Places};
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{
    Block, Function, GlobalValueData, Inst, InstructionData, Opcode, Value,
};

/// What is known of one function.
#[derive(Default)]
pub struct Progress {
    /// Number of the polling cycle that a block is in, from 1; 0 for none.
    cycles: SecondaryMap<Block, u32>,
    /// Blocks through which polling cycles lead.
    headers: EntitySet<Block>,
    /// Blocks with a call of a function that polls.
    calls: SecondaryMap<Block, bool>,
    polls: bool,
    releases: EntitySet<Inst>,
}

/// The operations without one of which there is nothing to find: those that may read atomically or wait.
pub const SOURCES: [Opcode; 9] = [
    Opcode::AtomicLoad,
    Opcode::AtomicRmw,
    Opcode::AtomicCas,
    Opcode::Call,
    Opcode::CallIndirect,
    Opcode::ReturnCall,
    Opcode::ReturnCallIndirect,
    Opcode::TryCall,
    Opcode::TryCallIndirect,
];

/// A write to memory, or what may be one.
#[derive(Clone, Copy, Debug)]
enum Write {
    Atomic(Value),
    Plain(Value),
    Call,
}

impl Progress {
    /// Looks at `func`, whose control flow is `flow`.
    pub fn of(
        func: &Function,
        flow: &ControlFlow,
        intrinsics: &Intrinsics,
        callees: &Callees,
        kernel: bool,
    ) -> Self {
        let mut found = Progress::default();
        if !has_atomics(func, callees) {
            return found;
        }
        let blocks = flow.reverse_postorder();
        let insts = || blocks.iter().flat_map(|&b| func.layout.block_insts(b));
        let polls = |inst: Inst| {
            callees
                .call(func, inst)
                .is_some_and(|call| call.summary.polls)
        };
        let provenance = Provenance::compute(func, flow, intrinsics, kernel);
        let root = |address| Root::of(func, flow, &provenance, kernel, address);
        let accesses = Memory {
            func,
            callees,
            root: &root,
            moves: Some(moves(func, callees, &root)),
        };
        let mut polled: Vec<Root> = Vec::new();
        for (number, cycle) in (1..).zip(polled_cycles(func, flow, &accesses)) {
            let Cycle {
                blocks,
                headers,
                atomics,
            } = cycle;
            blocks.iter().for_each(|&b| found.cycles[b] = number);
            found.headers.extend(headers);
            for inst in atomics {
                let root = atomic_address(func, inst).map_or(Root::Unknown, root);
                if !polled.contains(&root) {
                    polled.push(root);
                }
            }
            found.polls = true;
        }
        let in_block = |block: Block| {
            func.layout
                .block_insts(block)
                .map(move |inst| (block, inst))
        };
        let mut calls = (blocks.iter().flat_map(|&block| in_block(block)))
            .filter(|(_, inst)| polls(*inst))
            .peekable();
        let trapping = (calls.peek().is_some()).then(|| Trapping::find(func, flow));
        for (block, inst) in calls {
            // Where lanes wait that only trap, they keep nobody from going on.
            if trapping.as_ref().is_some_and(|traps| traps.contain(block)) {
                continue;
            }
            found.calls[block] = true;
            found.polls = true;
            // Lanes that wait for lanes wait for no memory.
            if !callees.call(func, inst).is_some_and(|call| call.pairs) {
                polled = vec![Root::Unknown];
            }
        }
        if found.polls {
            let releases = |inst: &Inst| match write(func, callees, *inst) {
                None => false,
                Some(Write::Call) => true,
                Some(Write::Atomic(to)) => polled.iter().any(|p| may_meet(root(to), *p)),
                Some(Write::Plain(to)) => polled.iter().any(|p| is_through(func, root(to), *p)),
            };
            found.releases.extend(insts().filter(releases));
        }
        found
    }

    /// Whether anything in the function waits for other threads.
    pub fn polls(&self) -> bool {
        self.polls
    }

    /// Whether a call in `block` may wait for other threads.
    pub fn calls_polling(&self, block: Block) -> bool {
        self.calls[block]
    }

    /// The polling cycle that `block` is in.
    pub fn cycle(&self, block: Block) -> Option<u32> {
        Some(self.cycles[block]).filter(|number| *number != 0)
    }

    /// Whether cycles that poll lead through `block`: the others through blocks that [`Progress::cycle`] names end by
    /// themselves.
    pub fn polls_through(&self, block: Block) -> bool {
        self.headers.contains(block)
    }

    /// Whether a thread that polls somewhere in the function may wait for `inst`.
    pub fn releases(&self, inst: Inst) -> bool {
        self.releases.contains(inst)
    }
}

/// What the writes of a function do to the objects that they may reach, each kind once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moves {
    /// An atomic operation; by which sign it moves what it reads, if it does nothing else.
    Atomic(Root, Option<i64>),
    Plain(Root),
    Call,
}

fn moves(func: &Function, callees: &Callees, root: &dyn Fn(Value) -> Root) -> Vec<Moves> {
    let mut found: Vec<Moves> = Vec::new();
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    for inst in insts {
        let moves = match write(func, callees, inst) {
            None => continue,
            Some(Write::Call) => Moves::Call,
            Some(Write::Atomic(to)) => Moves::Atomic(root(to), counting(func, inst)),
            Some(Write::Plain(to)) => Moves::Plain(root(to)),
        };
        if !found.contains(&moves) {
            found.push(moves);
        }
    }
    found
}

/// The kinds of memory that an address may be in.
fn places(root: Root) -> Places {
    match root {
        Root::Private => Places::OWN,
        Root::Shared => Places::SHARED,
        Root::Parameter(_) => Places::GLOBAL,
        // The generic address of shared memory is a symbol.
        Root::Symbol(_) => Places::GLOBAL.or(Places::SHARED),
        Root::Unknown => Places::ALL,
    }
}

/// What the instructions of a function do to memory.
struct Memory<'a> {
    func: &'a Function,
    callees: &'a Callees,
    root: &'a dyn Fn(Value) -> Root,
    /// What the writes of the function do; without it nothing counts up.
    moves: Option<Vec<Moves>>,
}

impl Accesses for Memory<'_> {
    fn observes(&self, inst: Inst) -> bool {
        match atomic_address(self.func, inst) {
            Some(address) => (self.root)(address) != Root::Private,
            None => reads_atomically(self.func, self.callees, inst),
        }
    }

    fn leaves(&self, inst: Inst) -> Places {
        match self.callees.call(self.func, inst) {
            Some(call) if !call.intrinsic && call.summary.observes && call.summary.releases => {
                Places::ALL
            }
            _ => Places::NONE,
        }
    }

    fn counts_up(&self, inst: Inst) -> bool {
        let (Some(direction), Some(place), Some(moves)) = (
            counting(self.func, inst),
            atomic_address(self.func, inst),
            &self.moves,
        ) else {
            return false;
        };
        let place = (self.root)(place);
        moves.iter().all(|other| match *other {
            Moves::Call => false,
            Moves::Atomic(to, by) => by == Some(direction) || !may_meet(to, place),
            Moves::Plain(to) => !is_through(self.func, to, place),
        })
    }

    fn overwrites(&self, inst: Inst, on: Inst) -> bool {
        let Some(place) = atomic_address(self.func, on).map(self.root) else {
            return true;
        };
        match write(self.func, self.callees, inst) {
            None => false,
            Some(Write::Call) => true,
            Some(Write::Atomic(to)) => may_meet((self.root)(to), place),
            Some(Write::Plain(to)) => is_through(self.func, (self.root)(to), place),
        }
    }

    fn writes(&self, inst: Inst) -> Places {
        let func = self.func;
        if let Some(call) = self.callees.call(func, inst) {
            let address = func.dfg.inst_args(inst).first();
            return match (call.intrinsic, address) {
                (true, Some(address)) if call.summary.observes => places((self.root)(*address)),
                (false, _) if call.summary.releases => Places::ALL,
                _ => Places::NONE,
            };
        }
        match write(func, self.callees, inst) {
            Some(Write::Atomic(to) | Write::Plain(to)) => places((self.root)(to)),
            _ if func.dfg.insts[inst].opcode().can_store() => Places::ALL,
            _ => Places::NONE,
        }
    }

    fn reads(&self, inst: Inst) -> Places {
        let func = self.func;
        let opcode = func.dfg.insts[inst].opcode();
        if let Some(call) = self.callees.call(func, inst) {
            return match call.intrinsic {
                true => Places::NONE,
                false => Places::ALL,
            };
        }
        match (func.dfg.insts[inst], atomic_address(func, inst)) {
            (_, Some(address)) | (InstructionData::Load { arg: address, .. }, _) => {
                places((self.root)(address))
            }
            _ if opcode.can_load() => Places::ALL,
            _ => Places::NONE,
        }
    }

    fn convergent(&self, inst: Inst) -> bool {
        self.callees.is_convergent(self.func, inst)
    }
}

/// Whether anything in `func` gives a value that an atomic operation read, or may wait for other threads.
pub fn has_atomics(func: &Function, callees: &Callees) -> bool {
    let mut insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts.any(|inst| match func.dfg.insts[inst].opcode() {
        Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas => true,
        opcode if opcode.is_call() => callees
            .call(func, inst)
            .is_some_and(|call| call.summary.polls || call.summary.observes),
        _ => false,
    })
}

/// What depends on atomic reads in a device function; `recurs` says which of its calls lead back to it.
pub fn observed_by(
    func: &Function,
    flow: &ControlFlow,
    callees: &Callees,
    recurs: &dyn Fn(Inst) -> bool,
) -> Observed {
    let provenance = Provenance::compute(func, flow, &Intrinsics::default(), false);
    let root = |address| Root::of(func, flow, &provenance, false, address);
    let accesses = Memory {
        func,
        callees,
        root: &root,
        moves: None,
    };
    observed(func, flow, &accesses, recurs)
}

/// Whether `inst` gives a value that an atomic operation read.
fn reads_atomically(func: &Function, callees: &Callees, inst: Inst) -> bool {
    match func.dfg.insts[inst].opcode() {
        Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas => true,
        _ => callees
            .call(func, inst)
            .is_some_and(|call| call.summary.observes),
    }
}

/// The address of an atomic operation of CLIF that reads.
fn atomic_address(func: &Function, inst: Inst) -> Option<Value> {
    match func.dfg.insts[inst].opcode() {
        Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas => {
            func.dfg.inst_args(inst).first().copied()
        }
        _ => None,
    }
}

fn write(func: &Function, callees: &Callees, inst: Inst) -> Option<Write> {
    let args = func.dfg.inst_args(inst);
    match func.dfg.insts[inst].opcode() {
        Opcode::AtomicRmw | Opcode::AtomicCas => Some(Write::Atomic(args[0])),
        Opcode::AtomicStore => Some(Write::Atomic(args[1])),
        _ => match func.dfg.insts[inst] {
            InstructionData::Store { args, .. } => Some(Write::Plain(args[1])),
            _ => callees
                .call(func, inst)
                .filter(|call| call.summary.releases)
                .map(|_| Write::Call),
        },
    }
}

/// Whether two addresses may be in one object.
fn may_meet(a: Root, b: Root) -> bool {
    match (a, b) {
        (Root::Private, _) | (_, Root::Private) => false,
        // A parameter of a kernel points into global memory.
        (Root::Shared, Root::Parameter(_)) | (Root::Parameter(_), Root::Shared) => false,
        _ => true,
    }
}

/// Whether a plain store through the pointer `to` goes to what is polled through `polled`.
fn is_through(func: &Function, to: Root, polled: Root) -> bool {
    let name = |gv| match &func.global_values[gv] {
        GlobalValueData::Symbol { name, .. } => Some(name.clone()),
        _ => None,
    };
    match (to, polled) {
        (Root::Private, _) | (_, Root::Private) => false,
        (Root::Unknown, _) | (_, Root::Unknown) => true,
        (Root::Symbol(a), Root::Symbol(b)) => name(a) == name(b),
        // The generic address of shared memory is a symbol.
        (Root::Shared, Root::Symbol(_)) | (Root::Symbol(_), Root::Shared) => true,
        (a, b) => a == b,
    }
}

/// What `func` may do, but for [`Summary::polls`] and [`Summary::observes`], which take more than a look at each
/// instruction.
pub fn effects(func: &Function, callees: &Callees) -> Summary {
    let mut found = Summary::NONE;
    let returns = func.layout.blocks().any(|block| {
        let last = func.layout.last_inst(block);
        last.is_some_and(|last| func.dfg.insts[last].opcode().is_return())
    });
    for block in func.layout.blocks() {
        // A call directly in front of a trap says what is wrong, while the others go on.
        let says_what_is_wrong = returns && traps(func, block);
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            if let Some(call) = callees.call(func, inst) {
                let counts = call.intrinsic || !says_what_is_wrong;
                found = found.or(Summary {
                    polls: false,
                    observes: false,
                    gathers: false,
                    convergent: call.summary.convergent && counts,
                    counts_all: call.summary.counts_all && counts,
                    acquires: call.summary.acquires && counts,
                    ..call.summary
                });
                continue;
            }
            found.releases |= data.opcode().can_store();
            found.acquires |= matches!(
                data.opcode(),
                Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::Fence
            );
        }
    }
    found.gathers = gathers_first(func, callees);
    found
}

/// Whether the first thing that `func` does beside computing is an operation for which the whole warp has to be there.
fn gathers_first(func: &Function, callees: &Callees) -> bool {
    let Some(entry) = func.layout.entry_block() else {
        return false;
    };
    for inst in func.layout.block_insts(entry) {
        let opcode = func.dfg.insts[inst].opcode();
        match callees.call(func, inst) {
            Some(call) if call.gathers => return true,
            Some(call) if call.summary == Summary::NONE => {}
            Some(_) => return false,
            None if opcode.can_store() || opcode.is_terminator() => return false,
            None => {}
        }
    }
    false
}
