//! Loads, stores and atomics of a warp: addresses, places, values; constants by computed offsets.

use crate::isa::Role;
use crate::launch::AccessKind;
use crate::sim::check::{Checker, Touched};
use crate::sim::decode::action::{Access, Action, Atomic};
use crate::sim::decode::program::Op;
use crate::sim::execute::stop::Stop;
use crate::sim::execute::{Environment, Executed};
use crate::sim::memory::Memories;
use crate::sim::memory::atomic;
use crate::sim::memory::banks::Banks;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::lanes;

/// What an instruction is about to access.
pub(in crate::sim) struct Accesses {
    /// How.
    pub kind: AccessKind,
    /// Size, and the window of the addresses.
    pub access: Access,
    /// Lanes and their addresses.
    pub addresses: Vec<(usize, u64)>,
}

impl Warp {
    /// The part of an address that all lanes share: uniform register and offset.
    pub(in crate::sim) fn shared_part(&self, op: &Op, access: Access) -> u64 {
        let uniform = if access.uniform {
            self.registers.pair(op.operand(Role::C), 0)
        } else {
            0
        };
        uniform.wrapping_add(access.offset as i64 as u64)
    }

    #[inline(always)]
    pub(in crate::sim) fn address(&self, op: &Op, access: Access, shared: u64, lane: usize) -> u64 {
        let sum = self
            .registers
            .pair(op.operand(Role::A), lane)
            .wrapping_add(shared);
        if access.wide {
            sum
        } else {
            u64::from(sum as u32)
        }
    }

    /// What an instruction is about to access in the lanes of `mask`, by address, if it accesses memory.
    pub(in crate::sim) fn about_to_access(
        &mut self,
        op: &Op,
        banks: &Banks,
        mask: u32,
    ) -> Option<Accesses> {
        let (kind, access) = match op.action {
            Action::Load(access) => (AccessKind::Load, access),
            Action::Store(access) => (AccessKind::Store, access),
            Action::Atomic(atomic) => (AccessKind::Atomic, atomic.access),
            _ => return None,
        };
        // A constant that is not there is a fault of the instruction.
        self.broadcast(op, banks, mask).ok()?;
        let shared = self.shared_part(op, access);
        let address = |lane| (lane, self.address(op, access, shared, lane));
        Some(Accesses {
            kind,
            access,
            addresses: lanes(mask).map(address).collect(),
        })
    }

    pub(in crate::sim) fn load(
        &mut self,
        op: &Op,
        env: &mut Environment,
        access: Access,
        mask: u32,
    ) -> Executed {
        let (d, bytes, shared) = (
            op.operand(Role::D),
            u32::from(access.bytes),
            self.shared_part(op, access),
        );
        let mut touches = env.touches(bytes);
        let concurrency = env.concurrency;
        for lane in lanes(mask) {
            let address = self.address(op, access, shared, lane);
            let (memories, checker) = self.memories(env);
            let place = memories
                .locate(AccessKind::Load, access.window, address, bytes)
                .map_err(|k| Stop::new(k, lane))?;
            if let Some(touches) = &mut touches {
                touches.push(lane, place, address);
            }
            if let Some(checker) = checker {
                let strong = access.strong;
                let touched = Touched {
                    lane,
                    place,
                    address,
                    bytes,
                    strong,
                };
                checker.load(&memories, op, touched);
            }
            let value = match access.strong {
                true => memories.load_strong(lane, place, bytes, concurrency),
                false => memories.load(lane, place, bytes),
            };
            self.registers.set_words(d, lane, extended(value, access));
        }
        env.touched(self.group().pc, &touches);
        Ok(())
    }

    pub(in crate::sim) fn load_constant(
        &mut self,
        op: &Op,
        env: &Environment,
        bank: u8,
        access: Access,
        mask: u32,
    ) -> Executed {
        let (d, bytes, shared) = (
            op.operand(Role::D),
            u32::from(access.bytes),
            self.shared_part(op, access),
        );
        for lane in lanes(mask) {
            let offset = self.address(op, access, shared, lane);
            let value = env
                .banks
                .load(bank, offset, bytes)
                .map_err(|k| Stop::new(k, lane))?;
            self.registers.set_words(d, lane, extended(value, access));
        }
        Ok(())
    }

    pub(in crate::sim) fn store(
        &mut self,
        op: &Op,
        env: &mut Environment,
        access: Access,
        mask: u32,
    ) -> Executed {
        let (b, bytes, shared) = (
            op.operand(Role::B),
            u32::from(access.bytes),
            self.shared_part(op, access),
        );
        let mut touches = env.touches(bytes);
        if let Some(checker) = env.checker.as_deref_mut() {
            checker.activity.examine();
        }
        let concurrency = env.concurrency;
        for lane in lanes(mask) {
            let address = self.address(op, access, shared, lane);
            let value = number(self.registers.words(b, lane));
            let (mut memories, checker) = self.memories(env);
            let place = memories
                .locate(AccessKind::Store, access.window, address, bytes)
                .map_err(|k| Stop::new(k, lane))?;
            if let Some(touches) = &mut touches {
                touches.push(lane, place, address);
            }
            let mut undefined = 0;
            if let Some(checker) = checker {
                let strong = access.strong;
                let touched = Touched {
                    lane,
                    place,
                    address,
                    bytes,
                    strong,
                };
                undefined = checker.store(&memories, op, touched, value);
                let new = value & (u128::MAX >> (128 - 8 * bytes));
                checker.writes(touched, memories.load(lane, place, bytes) != new);
            }
            match access.strong {
                true => memories.store_strong(lane, place, bytes, value, concurrency),
                false => memories.store(lane, place, bytes, value),
            }
            for byte in lanes(u32::from(undefined)) {
                memories.forget(lane, place.plus(byte), 1);
            }
        }
        env.touched(self.group().pc, &touches);
        Ok(())
    }

    pub(in crate::sim) fn atomic(
        &mut self,
        op: &Op,
        env: &mut Environment,
        atomic: Atomic,
        mask: u32,
    ) -> Executed {
        let access = atomic.access;
        let (d, b, c) = (
            op.operand(Role::D),
            op.operand(Role::B),
            op.operand(Role::C),
        );
        let (bytes, shared) = (u32::from(access.bytes), self.shared_part(op, access));
        let mut touches = env.touches(bytes);
        if let Some(checker) = env.checker.as_deref_mut() {
            checker.activity.examine();
        }
        let concurrency = env.concurrency;
        for lane in lanes(mask) {
            let address = self.address(op, access, shared, lane);
            let (source, swap) = (self.registers.pair(b, lane), self.registers.pair(c, lane));
            let (mut memories, checker) = self.memories(env);
            let place = memories
                .locate(AccessKind::Atomic, access.window, address, bytes)
                .map_err(|k| Stop::new(k, lane))?;
            if let Some(touches) = &mut touches {
                touches.push(lane, place, address);
            }
            let operand = u64::MAX >> (64 - 8 * bytes);
            let change = |old: u64| match atomic.op {
                Some((op, ty)) => Some(atomic::apply(op, ty, old, source)),
                None => (old == source & operand).then_some(swap & operand),
            };
            if let Some(checker) = checker {
                let touched = Touched {
                    lane,
                    place,
                    address,
                    bytes,
                    strong: true,
                };
                let old = memories.load(lane, place, bytes) as u64;
                let new = change(old);
                checker.atomic(&memories, op, touched, new.is_some());
                checker.writes(touched, new.is_some_and(|new| new != old));
            }
            let old = memories.modify(lane, place, bytes, concurrency, change);
            self.registers
                .set_words(d, lane, [old as u32, (old >> 32) as u32, 0, 0]);
        }
        env.touched(self.group().pc, &touches);
        Ok(())
    }

    /// The memories this warp sees, and the checks.
    fn memories<'a>(
        &'a mut self,
        env: &'a mut Environment,
    ) -> (Memories<'a>, Option<&'a mut Checker>) {
        let memories = Memories {
            global: env.global,
            shared: env.shared,
            local: &mut self.local,
        };
        (memories, env.checker.as_deref_mut())
    }
}

/// The words of a loaded value; narrow signed ones get their sign.
pub(in crate::sim) fn extended(value: u128, access: Access) -> [u32; 4] {
    let low = match (access.bytes, access.signed) {
        (1, true) => value as u8 as i8 as u32,
        (2, true) => value as u16 as i16 as u32,
        _ => value as u32,
    };
    [
        low,
        (value >> 32) as u32,
        (value >> 64) as u32,
        (value >> 96) as u32,
    ]
}

/// The value of words.
pub(in crate::sim) fn number(words: [u32; 4]) -> u128 {
    words
        .iter()
        .rev()
        .fold(0, |value, word| value << 32 | u128::from(*word))
}
