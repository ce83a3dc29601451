//! What a launch tells: faults and findings with their places, hazards, profiles and traces.

use super::loaded::Loaded;
use crate::isa::decode;
use crate::launch::is_library;
use crate::launch::profile::{Counts, InstructionProfile, Profile};
use crate::launch::trace::Trace;
use crate::launch::{
    CodeRange, Fault, FaultKind, Finding, Hazard, LaunchRequest, Place, Report, Turning,
};
use crate::locations::Location;
use crate::locations::name_of;
use crate::sim::check::{Checker, RawFinding, Spot};
use crate::sim::decode::action::Action;
use crate::sim::decode::program::WORD_BYTES;
use crate::sim::execute::stop::{Stop, Stopped};
use crate::sim::launch::cta::{Cta, Run};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::timing::profile::Recorder;
use crate::sim::warp::registers::{GENERAL, LANES, PT};
use crate::sim::warp::{Group, GroupState, Warp};
use std::collections::{BTreeMap, BTreeSet};

/// Reports of one kind that are kept with their place.
const KEPT: usize = 100;

impl Loaded {
    /// The first findings, with their places.
    pub(in crate::sim) fn findings(
        &self,
        request: &LaunchRequest,
        found: Vec<RawFinding>,
    ) -> Vec<Finding> {
        let found = found.into_iter().take(KEPT);
        let with_place = |finding: RawFinding| {
            let place = |spot: Spot| self.place(request, spot.block, spot.thread, spot.pc);
            Finding {
                kind: finding.kind,
                place: place(finding.at),
                other: finding.other.map(place),
            }
        };
        found.map(with_place).collect()
    }

    /// Adds what was recorded to the report.
    pub(super) fn tell(&self, recorder: Recorder, request: &LaunchRequest, report: &mut Report) {
        let stats = report.stats;
        if let Some(counts) = recorder.counts {
            let spent = |counts: &Counts| counts.issues > 0 || counts.stalls.total() > 0;
            let all = (0u32..).zip(counts).filter(|(_, counts)| spent(counts));
            let instructions = all.map(|(pc, counts)| {
                let address = pc * WORD_BYTES as u32;
                let location = self.image.line_at(address).map(|line| line.location);
                let function = self.image.function_at(address);
                InstructionProfile {
                    address,
                    text: self.text(pc),
                    function: function.map(|f| f.name.clone()),
                    offset: address - function.map_or(0, |f| f.address),
                    file: location
                        .and_then(|at| name_of(&self.image.files, at.file))
                        .map(String::from),
                    line: location.map_or(0, |at| at.line),
                    counts,
                }
            });
            report.profile = Some(Profile {
                kernel: request.kernel.to_string(),
                cycles: stats.cycles,
                instructions: instructions.collect(),
            });
        }
        if let Some(events) = recorder.events {
            let named: BTreeSet<u32> = events.iter().map(|event| event.what.address()).collect();
            let text = |address| (address, self.text(address / WORD_BYTES as u32));
            report.trace = Some(Trace {
                kernel: request.kernel.to_string(),
                cycles: stats.cycles,
                warp_instructions: stats.warp_instructions,
                texts: named.into_iter().map(text).collect(),
                events,
                dropped: recorder.dropped,
            });
        }
    }

    pub(in crate::sim) fn place(
        &self,
        request: &LaunchRequest,
        block: [u32; 3],
        thread: u32,
        pc: u32,
    ) -> Place {
        let address = pc * WORD_BYTES as u32;
        Place {
            kernel: request.kernel.to_string(),
            function: self.image.function_at(address).map(|f| f.name.clone()),
            block,
            thread: Shape::coordinates(request.block, u64::from(thread)),
            pc: address,
            instruction: self.text(pc),
            source: self.image.source_at(address),
            location: (self.image.line_at(address))
                .map_or(Location::default(), |line| line.location),
            library: is_library(address, &self.image),
        }
    }

    /// An instruction as text.
    pub(in crate::sim) fn text(&self, pc: u32) -> String {
        match self.program.words.get(pc as usize) {
            None => "(no instruction)".to_string(),
            Some(word) => match decode(*word) {
                Ok((inst, _)) => inst.to_string(),
                Err(_) => format!("{word:#034x}"),
            },
        }
    }

    pub(in crate::sim) fn fault(
        &self,
        cta: &Cta,
        run: &Run,
        request: &LaunchRequest,
        stopped: Stopped,
    ) -> Fault {
        let Stopped { stop, warp, pc } = self.at_barrier(cta, stopped);
        let lane = usize::from(stop.lane);
        let Warp {
            registers, index, ..
        } = &cta.warps[warp];
        let values = (0..GENERAL.min(run.program.registers))
            .map(|n| (n as u8, registers.column(n as u16)[lane]));
        let predicates = registers.predicates.iter().take(PT).enumerate();
        let is_ended = matches!(
            stop.kind,
            FaultKind::BudgetExhausted { .. }
                | FaultKind::LaunchBudgetExhausted { .. }
                | FaultKind::Cancelled { .. }
                | FaultKind::TimeLimit { .. }
        );
        let calls = cta.warps[warp].calls.frames(lane, &self.image);
        let turning = is_ended.then(|| {
            let callers = calls.iter().map(|frame| frame.pc / WORD_BYTES as u32);
            let mut loops = std::iter::once(pc)
                .chain(callers)
                .map(|pc| self.loops_around(pc));
            Turning {
                warp: *index,
                loops: loops.find(|loops| !loops.is_empty()).unwrap_or_default(),
            }
        });
        Fault {
            kind: stop.kind,
            place: self.place(request, cta.block, index * LANES as u32 + lane as u32, pc),
            registers: values.filter(|v| v.1 != 0).collect(),
            predicates: predicates.fold(0, |set, (i, mask)| set | ((mask >> lane & 1) as u8) << i),
            calls,
            depth: cta.warps[warp].calls.depth(lane),
            waits: Vec::new(),
            near: None,
            turning,
        }
    }

    /// What lanes that wait for the rest of their warp just in front of a barrier of the block cannot go on for: a
    /// barrier that only a part comes to.
    fn at_barrier(&self, cta: &Cta, stopped: Stopped) -> Stopped {
        let warp = &cta.warps[stopped.warp];
        let ops = &self.program.ops;
        let at_barrier = |group: &&Group| {
            let next = ops.get(group.pc as usize + 1);
            group.state == GroupState::AtWarpSync(u32::MAX)
                && next.is_some_and(|op| matches!(op.action, Action::CtaBarrier))
        };
        match (&stopped.stop.kind, warp.groups().iter().find(at_barrier)) {
            (FaultKind::Deadlock { .. }, Some(group)) => Stopped {
                stop: Stop::lanes(
                    FaultKind::BarrierDivergence {
                        arrived: group.mask,
                        live: warp.live,
                    },
                    group.mask,
                ),
                pc: group.pc + 1,
                ..stopped
            },
            _ => stopped,
        }
    }

    /// The loops around an instruction, the innermost first: what lies between a branch back and its target.
    fn loops_around(&self, pc: u32) -> Vec<CodeRange> {
        let words = self.program.ops.len() as u32;
        let function = |pc: u32| {
            let function = self.image.function_at(pc * WORD_BYTES as u32);
            function.map(|function| function.address / WORD_BYTES as u32)
        };
        let start = function(pc).unwrap_or(0);
        let behind = self
            .image
            .functions
            .iter()
            .map(|f| f.address / WORD_BYTES as u32);
        let end = behind.filter(|&first| first > start).min().unwrap_or(words);
        // Several branches may lead back to one target: the loop ends with the last of them.
        let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
        for branch in pc..end.min(words) {
            if let Action::Branch(target) = self.program.ops[branch as usize].action
                && (start..=pc).contains(&target)
            {
                ends.insert(target, branch);
            }
        }
        let loops = ends.iter().rev().map(|(&first, &last)| {
            let bytes = WORD_BYTES as u32;
            CodeRange::at(first * bytes..=last * bytes, bytes, &self.image)
        });
        loops.collect()
    }

    /// Adds who waits for whom to a fault, if it is that these blocks could not go on.
    pub(in crate::sim) fn add_waits(
        &self,
        fault: &mut Fault,
        request: &LaunchRequest,
        running: &[Cta],
        checker: Option<&Checker>,
        global: &Table,
    ) {
        let is_stuck = matches!(
            fault.kind,
            FaultKind::Endless { .. }
                | FaultKind::Deadlock { .. }
                | FaultKind::BudgetExhausted { .. }
                | FaultKind::LaunchBudgetExhausted { .. }
        );
        if is_stuck {
            fault.waits = self.waits(request, running, checker, global);
        }
    }

    /// Adds a CTA's hazards to the report.
    pub(super) fn collect(&self, cta: &Cta, request: &LaunchRequest, report: &mut Report) {
        if let Some(timing) = &cta.timing {
            report.stats.hazards += timing.count;
            for hazard in &timing.hazards {
                let earlier = (
                    hazard.earlier * WORD_BYTES as u32,
                    self.text(hazard.earlier),
                );
                let known = |h: &Hazard| {
                    (h.kind, h.register, h.place.pc, h.earlier.0)
                        == (
                            hazard.kind,
                            hazard.register,
                            hazard.pc * WORD_BYTES as u32,
                            earlier.0,
                        )
                };
                if report.hazards.len() < KEPT && !report.hazards.iter().any(known) {
                    let place = self.place(request, cta.block, hazard.thread, hazard.pc);
                    report.hazards.push(Hazard {
                        kind: hazard.kind,
                        register: hazard.register,
                        place,
                        earlier,
                        cycle: hazard.cycle,
                    });
                }
            }
        }
    }
}
