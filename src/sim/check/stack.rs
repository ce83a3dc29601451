//! Accesses next to stack slots, and to frames that have returned.
//!
//! A function compiled with `stack_redzones` has gaps around its stack slots, and its object says where they are from
//! R1 on. Nothing that the compiler makes itself (spills, saved registers, arguments) lies there, so every access to a
//! gap comes from a slot that was overrun. Between prologue and epilogue R1 is the bottom of the frame; for the frames
//! of callers it is kept from CALL to RET, lane by lane. What jumps over a gap is not found.
//!
//! What lies below R1 is nobody's: an access there uses a slot of a function that has returned, by a pointer that
//! outlived it. Which one is kept from RET on, until another frame takes the place. A slot whose place is a living
//! frame's again is not told apart from that frame's.

use super::{Checker, Spot, Touched};
use crate::abi::{Redzone, STACK_POINTER};
use crate::isa::Optype;
use crate::launch::AccessKind;
use crate::launch::FindingKind;
use crate::launch::Image;
use crate::sim::decode::action::Action;
use crate::sim::decode::program::{Op, WORD_BYTES};
use crate::sim::memory::Location;
use crate::sim::warp::Warp;
use crate::sim::warp::registers::{Column, LANES, lanes};

/// A frame: its bottom, and the function by its number.
#[derive(Clone, Copy, Debug)]
struct Frame {
    bottom: u32,
    function: u32,
}

/// A frame that has returned.
#[derive(Clone, Copy, Debug)]
struct Returned {
    /// It lay below this.
    end: u32,
    /// Where it returned.
    at: Spot,
}

/// The frames of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Callers {
    /// Those of its callers, the outermost first.
    frames: Vec<Frame>,
    /// Those that have returned, the lowest first.
    returned: Vec<Returned>,
}

impl Callers {
    /// The innermost function returns.
    fn leave(&mut self, at: Spot) {
        let Some(Frame { bottom: end, .. }) = self.frames.pop() else {
            return;
        };
        while self.returned.last().is_some_and(|older| older.end >= end) {
            self.returned.pop();
        }
        self.returned.push(Returned { end, at });
    }

    /// Where the frame returned that had this offset, which is below R1.
    fn returned(&self, offset: u32) -> Option<Spot> {
        let index = self.returned.partition_point(|frame| frame.end <= offset);
        self.returned.get(index).map(|frame| frame.at)
    }
}

/// The redzones of a module.
#[derive(Clone, Debug, Default)]
pub(super) struct Redzones {
    /// Index of the first instruction and redzones of each function, in the order of the code; none when no function
    /// has redzones.
    functions: Vec<(u32, Vec<Redzone>)>,
    /// R1 of the present warp.
    pointers: Column,
}

impl Redzones {
    pub fn of(image: &Image) -> Redzones {
        let functions = image.functions.iter();
        let any = functions.clone().any(|f| !f.redzones.is_empty());
        let start = |address: u32| address / WORD_BYTES as u32;
        Redzones {
            functions: functions
                .filter(|_| any)
                .map(|f| (start(f.address), f.redzones.clone()))
                .collect(),
            pointers: [0; LANES],
        }
    }

    /// Whether no function has any.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    fn function_of(&self, pc: u32) -> u32 {
        let after = self.functions.partition_point(|f| f.0 <= pc);
        after.saturating_sub(1) as u32
    }
}

impl Checker {
    /// Follows R1, calls and returns.
    pub(super) fn frames(&mut self, warp: &Warp, op: &Op, mask: u32) {
        if self.redzones.functions.is_empty() {
            return;
        }
        self.redzones.pointers = *warp.registers.column(u16::from(STACK_POINTER.number()));
        let function = self.redzones.function_of(self.pc);
        let first = self.warp as usize * LANES;
        let spot = self.spot(0);
        let callers = &mut self.ctas[self.current].callers;
        match op.action {
            Action::Call(_) | Action::CallIndirect => {
                for lane in lanes(mask) {
                    callers[first + lane].frames.push(Frame {
                        bottom: self.redzones.pointers[lane],
                        function,
                    });
                }
            }
            Action::Indirect if op.optype == Some(Optype::RET) => {
                for lane in lanes(mask) {
                    let thread = (first + lane) as u32;
                    callers[first + lane].leave(Spot { thread, ..spot });
                }
            }
            _ => {}
        }
    }

    /// An access to the lane's own memory.
    pub(super) fn stack_access(&mut self, touched: Touched, access: AccessKind) {
        let Location::Local(offset) = touched.place else {
            return;
        };
        if self.redzones.functions.is_empty() {
            return;
        }
        let (offset, bytes) = (offset as u32, touched.bytes);
        let own = self.redzones.pointers[touched.lane];
        let thread = self.thread(touched.lane) as usize;
        if offset < own {
            let other = self.ctas[self.current].callers[thread].returned(offset);
            let kind = FindingKind::DeadStack { access, bytes };
            self.report(kind, touched.lane as u32, other);
            return;
        }
        let callers = &self.ctas[self.current].callers[thread].frames;
        // The bottoms fall; a function without a frame has its caller's.
        let caller = callers.get(callers.partition_point(|f| f.bottom > offset));
        let own = Frame {
            bottom: own,
            function: self.redzones.function_of(self.pc),
        };
        let frame = caller.unwrap_or(&own);
        let Some(start) = offset.checked_sub(frame.bottom) else {
            return;
        };
        let zones = &self.redzones.functions[frame.function as usize].1;
        let index = zones.partition_point(|zone| zone.offset + zone.bytes <= start);
        let Some(zone) = zones.get(index).filter(|zone| zone.offset < start + bytes) else {
            return;
        };
        let kind = FindingKind::StackOverrun {
            access,
            bytes,
            own: caller.is_none(),
            below: zone.below,
            above: zone.above,
        };
        self.report(kind, touched.lane as u32, None);
    }
}
