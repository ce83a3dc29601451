//! Loads and stores of a warp under `--check` whose lanes are all in one memory, judged and done for all lanes at once.
//!
//! What needs a finding about a register or about what was never written, accesses to parts of words, strong ones and
//! local memory are left to the lane by lane way of [`crate::sim::execute::access`].

use crate::isa::Role;
use crate::launch::Window;
use crate::sim::check::{Checker, MemoryObject, Target};
use crate::sim::decode::action::{Access, Action};
use crate::sim::decode::program::Op;
use crate::sim::execute::Environment;
use crate::sim::execute::together::{Memory, MemoryMut, Places, Repeats, WORD, load_any, window};
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Table;
use crate::sim::memory::words::Words;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{Column, LANES, Registers, ZERO, lanes};

/// A memory with a mark for each byte that was written.
trait Marked: Memory + MemoryMut {
    /// Whether all of a range were written.
    fn is_written(&self, offset: usize, bytes: usize) -> bool;
    /// Marks a range as written.
    fn mark(&mut self, offset: usize, bytes: usize);
}

impl Marked for &Words {
    #[inline(always)]
    fn is_written(&self, offset: usize, bytes: usize) -> bool {
        Words::is_written(self, offset, bytes)
    }

    #[inline(always)]
    fn mark(&mut self, offset: usize, bytes: usize) {
        Words::mark(self, offset, bytes);
    }
}

impl Marked for &mut Bytes {
    #[inline(always)]
    fn is_written(&self, offset: usize, bytes: usize) -> bool {
        Bytes::is_written(self, offset, bytes)
    }

    #[inline(always)]
    fn mark(&mut self, offset: usize, bytes: usize) {
        Bytes::mark(self, offset, bytes);
    }
}

/// What a store of `N` words a lane changes.
struct Storing<'a, M, const N: usize> {
    memory: M,
    values: [&'a Column; N],
}

impl<M: Marked, const N: usize> Target for Storing<'_, M, N> {
    #[inline(always)]
    fn is_there(&self, lane: usize, offset: usize, word: usize) -> bool {
        let [there]: [u32; 1] = self.memory.group(offset + word * WORD);
        there == self.values[word][lane]
    }

    #[inline(always)]
    fn put(&mut self, lane: usize, offset: usize) {
        let values = self.values.map(|column| column[lane]);
        self.memory.put_group(offset, values);
        self.memory.mark(offset, N * WORD);
    }

    #[inline(always)]
    fn put_row(&mut self, offset: usize) {
        self.memory.put_row(offset, self.values);
        self.memory.mark(offset, N * WORD * LANES);
    }
}

/// A plain access of lanes to whole words of one memory.
struct Together<'a> {
    op: &'a Op,
    access: Access,
    place: MemoryObject,
    places: &'a Places,
    mask: u32,
}

impl Together<'_> {
    /// Whether all that the lanes are about to load was written.
    #[inline(always)]
    fn is_written(&self, memory: &impl Marked, repeats: Repeats) -> bool {
        let bytes = usize::from(self.access.bytes);
        match self.places {
            Places::Row(offset) => memory.is_written(*offset, bytes * LANES),
            Places::Each(offsets) => {
                lanes(repeats.firsts).all(|lane| memory.is_written(offsets[lane] as usize, bytes))
            }
        }
    }

    /// Judges and does it; false if a finding other than a race is due, and then nothing is done.
    #[inline(always)]
    fn run(
        &self,
        memory: impl Marked,
        checker: &mut Checker,
        registers: &mut Registers,
        global: &Table,
    ) -> bool {
        if let Action::Store(_) = self.op.action {
            if !checker.is_defined(self.op, self.mask) {
                return false;
            }
            return match usize::from(self.access.bytes) / WORD {
                1 => self.store::<1>(memory, checker, registers, global),
                2 => self.store::<2>(memory, checker, registers, global),
                _ => self.store::<4>(memory, checker, registers, global),
            };
        }
        let (place, places, mask) = (self.place, self.places, self.mask);
        let bytes = usize::from(self.access.bytes);
        let repeats = match places {
            Places::Row(_) => Repeats::NONE,
            Places::Each(offsets) => Repeats::of(offsets, mask, bytes),
        };
        if !self.is_written(&memory, repeats) || !checker.keeps_marks(self.place.window, &[]) {
            return false;
        }
        match bytes / WORD {
            1 => checker.load_together::<1>(place, places, mask, repeats),
            2 => checker.load_together::<2>(place, places, mask, repeats),
            _ => checker.load_together::<4>(place, places, mask, repeats),
        }
        let d = self.op.operand(Role::D);
        load_any(&memory, self.access, places, registers, d, mask);
        true
    }

    /// Stores `N` words a lane; false as [`Together::run`].
    #[inline(always)]
    fn store<const N: usize>(
        &self,
        memory: impl Marked,
        checker: &mut Checker,
        registers: &Registers,
        global: &Table,
    ) -> bool {
        let b = self.op.operand(Role::B);
        let values: [&Column; N] = std::array::from_fn(|word| {
            let there = word < usize::from(b.words);
            registers.column(if there { b.column + word as u16 } else { ZERO })
        });
        if !checker.keeps_marks(self.place.window, &values) {
            return false;
        }
        let target = Storing { memory, values };
        checker.store_together::<N>(global, self.place, self.places, self.mask, target);
        true
    }
}

impl Warp {
    /// A load or store for all lanes at once under the checks; false if that is not possible, and then nothing is done.
    #[inline(always)]
    pub(in crate::sim) fn access_checked(
        &mut self,
        op: &Op,
        env: &mut Environment,
        mask: u32,
    ) -> bool {
        let (Action::Load(access) | Action::Store(access)) = op.action else {
            return false;
        };
        if access.strong || usize::from(access.bytes) < WORD {
            return false;
        }
        let Some(addresses) = self.addresses(op, env, access, mask) else {
            return false;
        };
        let Some(checker) = env.checker.as_deref_mut() else {
            return false;
        };
        let (global, registers) = (env.global, &mut self.registers);
        let together = |place, places| Together {
            op,
            access,
            place,
            places,
            mask,
        };
        match window(access, addresses.first) {
            (Window::Global, _) => {
                let Some(index) = global.index(addresses.first) else {
                    return false;
                };
                if matches!(op.action, Action::Store(_)) && !global.is_writable(index) {
                    return false;
                }
                let (base, size) = global.extent(index);
                let Some(places) = addresses.places(base, size) else {
                    return false;
                };
                let together = together(MemoryObject::global(index, base), &places);
                together.run(global.words(index), checker, registers, global)
            }
            (Window::Shared, base) => {
                let shared: &mut Bytes = env.shared;
                let Some(places) = addresses.places(base, shared.data().len() as u64) else {
                    return false;
                };
                let together = together(MemoryObject::SHARED, &places);
                together.run(shared, checker, registers, global)
            }
            (Window::Local, _) => false,
        }
    }
}
