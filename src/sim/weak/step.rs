//! What is issued, what it waits for, and how an access is performed.

use super::Block;
use super::pending::{Pending, What, first_before};
use super::view::Device;
use crate::isa::Role;
use crate::isa::generated::MemScope;
use crate::launch::AccessKind;
use crate::sim::decode::action::{Access, Action};
use crate::sim::decode::program::Op;
use crate::sim::execute::access::{extended, number};
use crate::sim::execute::stop::Stop;
use crate::sim::execute::{Environment, Issued};
use crate::sim::memory::atomic;
use crate::sim::memory::strong::Concurrency;
use crate::sim::memory::{Location, Memories};
use crate::sim::warp::Warp;
use crate::sim::warp::registers::lanes;

/// Accesses of a warp that may be pending, at most (assigned); the oldest is performed before there are more.
const PENDING: usize = 256;
/// Accesses that are performed while an instruction waits for more, at most (assigned).
const WAITED: usize = 8;
/// One in so many accesses that mostly stay pending does not (assigned).
const SLOW: usize = 32;

/// What a step was.
pub(super) struct Stepped {
    /// The instruction, unless it waits.
    pub issued: Option<Issued>,
    /// Whether it has to do with memory: something for others to look at.
    pub matters: bool,
}

/// What an instruction waits for: the accesses of these lanes that signal one of these scoreboards, and all accesses of
/// those.
struct Wait {
    lanes: u32,
    boards: u8,
    all: u32,
}

impl Wait {
    fn is_for(&self, access: &Pending) -> bool {
        let board = self.lanes >> access.lane & 1 != 0 && self.boards & access.boards != 0;
        board || self.all >> access.lane & 1 != 0
    }
}

impl Block {
    /// Between two instructions: now and then something is performed that nobody waits for.
    pub fn meanwhile(&mut self, device: &mut Device, warps: &mut [Warp], env: &mut Environment) {
        if device.random.one_in(self.mood.drains) {
            self.view.drain_one(device);
        }
        if !device.random.one_in(self.mood.performs) {
            return;
        }
        let index = device.random.below(warps.len());
        let count = self.pending[index].len();
        if count == 0 {
            return;
        }
        for _ in 0..=device.random.below(count) {
            let access = device.random.below(self.pending[index].len().max(1));
            let (slow, salt) = (self.mood.slow, self.mood.salt ^ (index as u64) << 32);
            let is_slow = |access| slow(access, salt);
            let is_slow = self.pending[index].get(access).is_some_and(is_slow);
            if !is_slow || device.random.one_in(SLOW) {
                self.perform(device, index, access, &mut warps[index], env);
            }
        }
    }

    /// Issues the next instruction of the warp of this index, which is ready, or performs some of what it waits for.
    ///
    /// # Errors
    /// The fault, with everything that was performed before it done.
    pub fn step(
        &mut self,
        device: &mut Device,
        index: usize,
        warp: &mut Warp,
        env: &mut Environment,
    ) -> Result<Stepped, Box<Stop>> {
        let stepped = |issued, matters| Stepped { issued, matters };
        let group = warp.group();
        let program = env.program;
        let Some(op) = program.ops.get(group.pc as usize) else {
            return warp.step(env).map(|issued| stepped(Some(issued), false));
        };
        let mask = group.mask & warp.registers.holds(op.guard);
        let orders = matches!(
            op.action,
            Action::Fence(_) | Action::WarpSync | Action::CtaBarrier | Action::Exit
        );
        let wait = Wait {
            lanes: group.mask,
            boards: op.control.wait(),
            all: if orders { mask } else { 0 },
        };
        if self.waits(device, index, &wait, warp, env) {
            return Ok(stepped(None, true));
        }
        if let Some(access) = accessed(op).filter(|_| mask != 0) {
            warp.count(env, group.mask)?;
            warp.broadcast(op, env.banks, mask)?;
            self.issue(device, index, (op, access, mask), warp, env)?;
            warp.advance();
            let pc = group.pc;
            return Ok(stepped(Some(Issued { pc, mask }), true));
        }
        let issued = warp.step(env)?;
        if let Action::Fence(MemScope::Gl | MemScope::Sys) = op.action
            && mask != 0
        {
            self.view.fence(device);
        }
        Ok(stepped(Some(issued), orders))
    }

    /// Whether something is still pending that is waited for; some of it is performed.
    fn waits(
        &mut self,
        device: &mut Device,
        index: usize,
        wait: &Wait,
        warp: &mut Warp,
        env: &mut Environment,
    ) -> bool {
        let is_full = self.pending[index].len() >= PENDING;
        if is_full {
            self.perform(device, index, 0, warp, env);
        }
        if wait.boards == 0 && wait.all == 0 {
            return is_full;
        }
        let is_waited = |access: &Pending| wait.is_for(access);
        if !device.random.one_in(self.mood.hurries) && self.pending[index].iter().any(is_waited) {
            return true;
        }
        for _ in 0..=device.random.below(WAITED) {
            let waited = |access: &&Pending| wait.is_for(access);
            let count = self.pending[index].iter().filter(waited).count();
            if count == 0 {
                return false;
            }
            let choice = device.random.below(count);
            let pending = self.pending[index].iter().enumerate();
            let mut waited = pending.filter(|(_, access)| wait.is_for(access));
            if let Some((access, _)) = waited.nth(choice) {
                self.perform(device, index, access, warp, env);
            }
        }
        true
    }

    /// An instruction's access becomes pending in the lanes of a mask; of local memory it is performed.
    fn issue(
        &mut self,
        device: &mut Device,
        index: usize,
        (op, access, mask): (&Op, Access, u32),
        warp: &mut Warp,
        env: &mut Environment,
    ) -> Result<(), Box<Stop>> {
        let (bytes, shared) = (u32::from(access.bytes), warp.shared_part(op, access));
        let (b, c, d) = (
            op.operand(Role::B),
            op.operand(Role::C),
            op.operand(Role::D),
        );
        for lane in lanes(mask) {
            let (kind, what) = match op.action {
                Action::Store(_) => (
                    AccessKind::Store,
                    What::Store(number(warp.registers.words(b, lane))),
                ),
                Action::Atomic(atomic) => (
                    AccessKind::Atomic,
                    What::Atomic {
                        d,
                        atomic,
                        source: warp.registers.pair(b, lane),
                        swap: warp.registers.pair(c, lane),
                    },
                ),
                _ => (AccessKind::Load, What::Load(d, access)),
            };
            let address = warp.address(op, access, shared, lane);
            let memories = Memories {
                global: env.global,
                shared: env.shared,
                local: &mut warp.local,
            };
            let place = memories.locate(kind, access.window, address, bytes);
            let place = place.map_err(|kind| Stop::new(kind, lane))?;
            self.pending[index].push(Pending {
                lane,
                place,
                bytes,
                strong: access.strong || kind == AccessKind::Atomic,
                boards: op.control.write.map_or(0, |board| 1 << board.number()),
                what,
            });
            if let Location::Local(_) = place {
                let last = self.pending[index].len() - 1;
                self.perform(device, index, last, warp, env);
            }
        }
        Ok(())
    }

    /// Performs an access, or one of the same thread that has to be performed before it.
    fn perform(
        &mut self,
        device: &mut Device,
        index: usize,
        access: usize,
        warp: &mut Warp,
        env: &mut Environment,
    ) {
        let pending = &mut self.pending[index];
        let Some(wanted) = pending.get(access) else {
            return;
        };
        if let (What::Load(d, of), false) = (wanted.what, wanted.strong)
            && let Some(value) = forwarded(&pending[..access], wanted)
            && device.random.one_in(2)
        {
            let lane = wanted.lane;
            warp.registers.set_words(d, lane, extended(value, of));
            pending.remove(access);
            return;
        }
        let first = first_before(pending, access);
        let Pending {
            lane,
            place,
            bytes,
            strong,
            what,
            ..
        } = pending.remove(first);
        let view = &mut self.view;
        let is_global = matches!(place, Location::Global(..));
        let mut memories = Memories {
            global: env.global,
            shared: env.shared,
            local: &mut warp.local,
        };
        match what {
            What::Load(d, access) => {
                let value = if is_global && !strong {
                    let old = device.random.one_in(self.mood.keeps);
                    view.load(device, place, bytes, old)
                } else {
                    view.see(device, place, bytes);
                    memories.load(lane, place, bytes)
                };
                warp.registers.set_words(d, lane, extended(value, access));
            }
            What::Store(value) if !is_global => memories.store(lane, place, bytes, value),
            What::Store(value) if strong => view.store_strong(device, place, bytes, value),
            What::Store(value) => view.store(device, place, bytes, value),
            What::Atomic {
                d,
                atomic,
                source,
                swap,
            } => {
                view.change(device, place, bytes);
                // Registers hold more than an atomic on one or two bytes compares and stores.
                let operand = u64::MAX >> (64 - 8 * bytes);
                let old =
                    memories.modify(lane, place, bytes, Concurrency::Alone, |old| {
                        match atomic.op {
                            Some((op, ty)) => Some(atomic::apply(op, ty, old, source)),
                            None => (old == source & operand).then_some(swap & operand),
                        }
                    });
                let words = [old as u32, (old >> 32) as u32, 0, 0];
                warp.registers.set_words(d, lane, words);
            }
        }
    }
}

/// The access of an instruction that may become pending.
fn accessed(op: &Op) -> Option<Access> {
    match op.action {
        Action::Load(access) | Action::Store(access) => Some(access),
        Action::Atomic(atomic) => Some(atomic.access),
        _ => None,
    }
}

/// The value of a load whose bytes are all stored by the last access of its thread to them that is still pending.
fn forwarded(earlier: &[Pending], load: &Pending) -> Option<u128> {
    let touches = |access: &&Pending| access.lane == load.lane && access.overlaps(load);
    let store = earlier.iter().rev().find(touches)?;
    let shift = load.distance(store)?;
    let value = store.stored()? >> (8 * shift);
    Some(value & u128::MAX >> (128 - 8 * load.bytes))
}
