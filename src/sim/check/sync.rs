//! Barriers and what must be the same in all lanes.

use super::{Checker, Spot};
use crate::isa::register::RegisterClass;
use crate::launch::{FindingKind, Resource};
use crate::sim::decode::action::Action;
use crate::sim::decode::program::Op;
use crate::sim::warp::registers::lanes;
use crate::sim::warp::{Group, Warp};

/// The barriers of a CTA.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Barriers {
    /// That opened.
    opened: u32,
    /// Threads that have left.
    gone: u32,
    /// Where the first left, and the barriers opened before.
    first: Option<(Spot, u32)>,
}

impl Checker {
    /// Uniform registers, convergence barriers, threads that leave.
    pub(super) fn synchronisation(&mut self, warp: &Warp, op: &Op, group: Group, mask: u32) {
        let (index, current) = (warp.index, self.current);
        let cta = &mut self.ctas[current];
        self.order.resume(&mut cta.threads, index, group.mask);
        if mask == 0 {
            return;
        }
        match op.action {
            Action::Exit => {
                let spot = self.spot(mask.trailing_zeros());
                let cta = &mut self.ctas[current];
                self.order.leave(&mut cta.threads, index, mask);
                let barriers = &mut cta.barriers;
                barriers.gone += mask.count_ones();
                barriers.first = barriers.first.or(Some((spot, barriers.opened)));
            }
            Action::Reconverge(barrier) => {
                let unset = lanes(mask).find(|lane| warp.barrier(barrier, *lane) == 0);
                if let Some(lane) = unset {
                    self.report(FindingKind::UnsetBarrier { barrier }, lane as u32, None);
                }
            }
            _ => {}
        }
        if mask == warp.live {
            return;
        }
        let uniform = |register: &Resource| register.class() == Some(RegisterClass::Uniform);
        let written = op.footprint.writes.iter().map(|w| w.0).find(uniform);
        if let Some(register) = written {
            let kind = FindingKind::DivergentUniformWrite {
                register,
                active: mask,
                live: warp.live,
            };
            self.report(kind, mask.trailing_zeros(), None);
        }
    }

    /// The barrier of the present CTA opens for the threads that are live; the first of them waits in `warp` at `pc`.
    pub fn cta_synchronised(&mut self, warp: u32, lane: u32, pc: u32, live: u32) {
        (self.warp, self.pc) = (warp, pc);
        let cta = &mut self.ctas[self.current];
        self.order.barrier(&mut cta.threads);
        cta.barriers.opened += 1;
        let Barriers {
            opened,
            gone,
            first,
        } = cta.barriers;
        if let Some((spot, passed)) = first {
            let kind = FindingKind::PartialBarrier {
                arrived: live,
                threads: live + gone,
                number: opened,
                passed,
            };
            self.report(kind, lane, Some(spot));
        }
    }

    /// The lanes of `mask` of the present warp come to a WARPSYNC of the lanes `wanted`.
    pub fn warp_synchronised(&mut self, mask: u32, wanted: u32) {
        let cta = &mut self.ctas[self.current];
        self.order.arrive(&mut cta.threads, self.warp, mask, wanted);
    }
}
