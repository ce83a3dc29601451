//! What changes while a launch goes on, and what stops it.

use super::history::History;
use super::session::{Pause, WORD};
use super::state::{Machine, Next, State};
use super::stop::{SetBreakpoint, Space, Stop, Thread, Watched, Watchpoint};
use crate::launch::{AccessKind, Window};
use crate::sim::execute::access::Accesses;
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use crate::sim::memory::{in_window, little_endian};
use crate::sim::warp::registers::LANES;

/// What changes while a launch goes on.
pub(super) struct Live {
    pub(super) state: State,
    pub(super) history: History,
    pub(super) breakpoints: Vec<SetBreakpoint>,
    pub(super) watchpoints: Vec<(u32, Watchpoint)>,
    /// Numbers of breakpoints and watchpoints that were given.
    pub(super) ids: u32,
    /// The position at which a breakpoint was told: going on from there passes it.
    pub(super) told: Option<u64>,
    /// How many of what the checks have found was told.
    pub(super) told_findings: usize,
}

/// A watched access that is about to be made.
struct Touch {
    watched: Watched,
    space: Space,
}

impl Live {
    /// Why it cannot go on.
    pub(super) fn over(&self) -> Stop {
        match &self.state.fault {
            Some(fault) => Stop::Fault(Box::new(fault.clone())),
            None => Stop::End,
        }
    }

    /// What the checks have found and nobody was told of.
    pub(super) fn found(&mut self, machine: &Machine) -> Option<Stop> {
        let before = std::mem::replace(&mut self.told_findings, self.state.findings());
        if self.told_findings <= before {
            return None;
        }
        let new = self.state.checker.as_ref()?.findings[before..].to_vec();
        Some(Stop::Finding(
            machine.loaded.findings(&machine.request, new),
        ))
    }

    /// Goes back to the last snapshot at `position` or before it.
    pub(super) fn restore(&mut self, machine: &Machine, position: u64) {
        self.state = self.history.restore(machine.global, position);
        self.told = None;
        self.told_findings = self.state.findings();
    }

    pub(super) fn step(&mut self, machine: &Machine) -> Stop {
        let Some(next) = self.state.next(machine) else {
            return self.over();
        };
        let watched = self.issue(machine, next);
        if let Some(finding) = self.found(machine) {
            return finding;
        }
        match self.state.fault.is_some() {
            _ if !watched.is_empty() => Stop::Watchpoint(watched),
            true => self.over(),
            false => Stop::Step,
        }
    }

    /// Goes to a position, and looks at nothing but whether somebody asks for a pause.
    pub(super) fn go_to(&mut self, machine: &Machine, position: u64, pause: &Pause) -> Stop {
        if position < self.state.position() || self.state.fault.is_some() {
            self.restore(machine, position);
        }
        self.told = None;
        while self.state.position() < position {
            let Some(next) = self.state.next(machine) else {
                self.told_findings = self.state.findings();
                return self.over();
            };
            self.issue(machine, next);
            if pause.take() {
                self.told_findings = self.state.findings();
                return Stop::Paused;
            }
        }
        self.told_findings = self.state.findings();
        match position {
            0 => Stop::Beginning,
            _ => Stop::Step,
        }
    }

    /// The breakpoint at what is next.
    pub(super) fn breakpoint(&self, machine: &Machine, next: Next) -> Option<Stop> {
        if self.breakpoints.is_empty() {
            return None;
        }
        let grid = machine.run.shape.grid;
        let block = Shape::number(grid, self.state.running[next.cta].block);
        self.breakpoints.iter().find_map(|set| {
            let lanes = set.lanes(machine, &self.state, next, block);
            let warp = self.state.warp(next).index;
            (lanes != 0).then(|| Stop::Breakpoint {
                id: set.id,
                thread: Thread {
                    block,
                    thread: warp * LANES as u32 + lanes.trailing_zeros(),
                },
                lanes,
            })
        })
    }

    /// Issues what is next; the watched accesses that it made.
    pub(super) fn issue(&mut self, machine: &Machine, next: Next) -> Vec<Watched> {
        self.history.pass(&self.state);
        let touches = self.look(machine, next).unwrap_or_default();
        self.state.issue(machine, next);
        // What faulted was not done.
        let done = touches.into_iter().filter(|_| self.state.fault.is_none());
        let done = done.map(|Touch { mut watched, space }| {
            watched.new = self.value(machine, space, watched.address, watched.bytes);
            watched
        });
        done.collect()
    }

    /// What an instruction is about to write goes to the history; what it is about to touch that is watched, for each
    /// watchpoint.
    fn look(&mut self, machine: &Machine, next: Next) -> Option<Vec<Touch>> {
        let op = machine.loaded.program.ops.get(next.group.pc as usize)?;
        let cta = &mut self.state.running[next.cta];
        let block = Shape::number(machine.run.shape.grid, cta.block);
        let warp = &mut cta.warps[next.warp];
        let index = warp.index;
        let mask = next.group.mask & warp.registers.holds(op.guard);
        let Accesses {
            kind,
            access,
            addresses,
        } = warp.about_to_access(op, &machine.run.banks, mask)?;
        let bytes = u32::from(access.bytes);
        let mut touches: Vec<Touch> = Vec::new();
        for (lane, address) in addresses {
            let (window, place) = in_window(access.window, address);
            if window == Window::Global
                && kind != AccessKind::Load
                && let Some((allocation, offset)) = machine.global.find(place, bytes.into())
            {
                self.history
                    .write(machine.global, allocation, offset, bytes as usize);
            }
            let thread = Thread {
                block,
                thread: index * LANES as u32 + lane as u32,
            };
            let space = match window {
                Window::Global => Space::Global,
                Window::Shared => Space::Shared { block },
                Window::Local => Space::Local(thread),
            };
            for (id, watchpoint) in &self.watchpoints {
                let Watchpoint {
                    space: watched,
                    address: start,
                    bytes: size,
                    watch,
                } = *watchpoint;
                let apart = place >= start.saturating_add(size)
                    || start >= place.saturating_add(bytes.into());
                if watched != space || !watch.takes(kind) || apart {
                    continue;
                }
                if let Some(touch) = touches.iter_mut().find(|touch| touch.watched.id == *id) {
                    touch.watched.lanes |= 1 << lane;
                    continue;
                }
                let old = self.value(machine, space, place, bytes);
                touches.push(Touch {
                    space,
                    watched: Watched {
                        id: *id,
                        kind,
                        thread,
                        lanes: 1 << lane,
                        pc: next.group.pc * WORD,
                        address: place,
                        bytes,
                        old,
                        new: old,
                    },
                });
            }
        }
        Some(touches)
    }

    /// What is in memory; 0 where there is none.
    fn value(&self, machine: &Machine, space: Space, address: u64, bytes: u32) -> u128 {
        let grid = machine.run.shape.grid;
        let read = self.read(machine.global, grid, space, address, bytes as usize);
        read.map_or(0, |data| little_endian(&data, 0, bytes))
    }

    pub(super) fn read(
        &self,
        global: &Table,
        grid: [u32; 3],
        space: Space,
        address: u64,
        bytes: usize,
    ) -> Result<Vec<u8>, String> {
        let missing = || format!("{bytes} bytes at {address:#x} are not there");
        match space {
            Space::Global => {
                let found = global.find(address, bytes as u64);
                let (allocation, offset) = found.ok_or_else(missing)?;
                let mut data = vec![0; bytes];
                global.words(allocation).read(offset, &mut data);
                Ok(data)
            }
            Space::Shared { block } => {
                let coordinates = Shape::coordinates(grid, block);
                let cta = self
                    .state
                    .running
                    .iter()
                    .find(|cta| cta.block == coordinates);
                let cta = cta.ok_or_else(|| format!("block {block} does not run"))?;
                let start = usize::try_from(address).map_err(|_| missing())?;
                let end = start.checked_add(bytes).ok_or_else(missing)?;
                let data = cta.shared().data().get(start..end);
                data.map(<[u8]>::to_vec).ok_or_else(missing)
            }
            Space::Local(thread) => {
                let warp = self.state.warp_of(grid, thread);
                let warp = warp.ok_or_else(|| {
                    format!(
                        "thread {} of block {} does not run",
                        thread.thread, thread.block
                    )
                })?;
                let size = u64::from(warp.local.size());
                let end = address.checked_add(bytes as u64).filter(|&end| end <= size);
                let end = end.ok_or_else(missing)?;
                let byte = |offset: u64| warp.local.load(thread.lane(), offset as usize, 1) as u8;
                Ok((address..end).map(byte).collect())
            }
        }
    }
}
