//! What a load has brought that nobody wrote.
//!
//! A copy of such bytes is no mistake: the room between the fields of a structure, behind the end of a vector, the
//! other variants of an enumeration. So a load does not blame them; it leaves a *gap* in the register, with the place
//! it came from, and what uses the value names both. MOV, SEL, FSEL and stores carry gaps along byte by byte, PRMT,
//! LOP3 and SHF word by word ([`super::init`] tells them apart); every other instruction closes those of its results.

use super::Spot;
use crate::launch::{Resource, Window};
use crate::sim::memory::Location;
use crate::sim::warp::registers::{GENERAL, LANES, lanes};
use hashbrown::HashMap;

/// All bytes of a word.
pub(super) const WHOLE: u8 = 0xF;

/// Bytes of a register that a load has found unwritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    /// Which bytes of the word.
    pub missing: u8,
    /// The access: where, and how large.
    pub window: Window,
    /// Offset in the window or the allocation.
    pub offset: u64,
    /// Size.
    pub bytes: u32,
    /// Who loaded it.
    pub loaded: Spot,
}

impl Gap {
    /// Of a load from a place.
    pub fn of(place: Location, bytes: u32, loaded: Spot) -> Gap {
        let (window, offset) = match place {
            Location::Local(offset) => (Window::Local, offset),
            Location::Shared(offset) => (Window::Shared, offset),
            Location::Global(_, offset) => (Window::Global, offset),
        };
        Gap {
            missing: 0,
            window,
            offset: offset as u64,
            bytes,
            loaded,
        }
    }
}

/// The gaps of a warp's general registers. Mostly there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    registers: HashMap<u16, Box<[Option<Gap>; LANES]>>,
}

impl Gaps {
    /// No register has one.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    /// All are forgotten.
    pub fn clear(&mut self) {
        self.registers.clear();
    }

    /// Whether one of these registers has any, by their numbers among all resources.
    pub fn meets(&self, mut registers: impl Iterator<Item = usize>) -> bool {
        !self.is_empty()
            && registers.any(|register| self.registers.contains_key(&(register as u16)))
    }

    /// The gap of a register in a lane.
    pub fn get(&self, register: usize, lane: usize) -> Option<Gap> {
        self.registers.get(&(register as u16))?[lane]
    }

    /// Opens a gap.
    pub fn open(&mut self, register: usize, lane: usize, gap: Gap) {
        if register < GENERAL {
            let of = self.registers.entry(register as u16);
            of.or_insert_with(|| Box::new([None; LANES]))[lane] = Some(gap);
        }
    }

    /// The lanes of `mask` in which the word of a register has gaps and yet something was written.
    pub fn partial(&self, register: Resource, mask: u32) -> u32 {
        let Some(gaps) = self.registers.get(&(register.index() as u16)) else {
            return 0;
        };
        let partial = |lane: &usize| gaps[*lane].is_some_and(|gap| gap.missing != WHOLE);
        lanes(mask)
            .filter(partial)
            .fold(0, |all, lane| all | 1 << lane)
    }

    /// Results of an instruction in the lanes of `mask`: the gaps that they have from here on, by register and lane,
    /// are those of `from`.
    pub fn write(
        &mut self,
        register: Resource,
        mask: u32,
        from: impl Fn(&Gaps, usize) -> Option<Gap>,
    ) {
        let coming = std::array::from_fn(|lane| match mask >> lane & 1 {
            0 => self.get(register.index(), lane),
            _ => from(self, lane),
        });
        let number = register.index() as u16;
        if coming.iter().any(Option::is_some) {
            self.registers.insert(number, Box::new(coming));
        } else {
            self.registers.remove(&number);
        }
    }
}
