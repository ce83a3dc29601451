//! A session goes on, and back.

use super::session::{Session, WORD};
use super::stack::FrameId;
use super::state::{Machine, Next, State};
use super::stop::{Stop, Thread};
use crate::locations::Location;
use crate::sim::launch::shape::Shape;

impl Session {
    /// Issues one instruction, of whichever warp is next.
    pub fn step(&mut self) -> Stop {
        self.moved(|machine, live, _| live.step(machine))
    }

    /// Goes on until something stops it.
    pub fn resume(&mut self) -> Stop {
        self.go(|_, _, _| false)
    }

    /// Goes on until a thread has issued an instruction, or something stops it.
    pub fn step_instruction(&mut self, thread: Thread) -> Stop {
        let grid = self.request.grid;
        let mut has_issued = false;
        self.go(move |_, state, next| {
            let done = has_issued || state.has_ended(grid, thread);
            has_issued |= is_of(grid, state, next, thread);
            done
        })
    }

    /// Goes on until a thread is at another line or has left its function, or something stops it; into calls, those
    /// that were inlined among them.
    pub fn step_into(&mut self, thread: Thread) -> Stop {
        self.step_line(thread, None)
    }

    /// Goes on until a thread is at another line of a function that it is in, or has left it, or something stops it;
    /// over calls, those that were inlined among them.
    pub fn step_over(&mut self, thread: Thread, frame: FrameId) -> Stop {
        self.step_line(thread, Some(frame))
    }

    fn step_line(&mut self, thread: Thread, over: Option<FrameId>) -> Stop {
        let grid = self.request.grid;
        let FrameId { call, inlined } = over.unwrap_or_default();
        let (places, depth) = self.places_and_depth(thread, call);
        let places = places.get(inlined as usize..).unwrap_or_default();
        let line = |place: &Location| (place.file, place.line);
        let (first, outer) = (places.first().map(line), places.len());
        self.go(move |machine, state, next| {
            if !is_of(grid, state, next, thread) {
                return state.has_ended(grid, thread);
            }
            let now_depth = state.warp(next).calls.depth(thread.lane());
            if now_depth > depth && over.is_some() {
                return false;
            }
            let now = machine.loaded.image.places_at(next.group.pc * WORD);
            // Of what was inlined into the function that is stepped in, the line of the call counts.
            let inner = match over {
                Some(_) if outer > 0 => now.len().saturating_sub(outer),
                _ => 0,
            };
            let now = now.get(inner).map(line);
            now_depth < depth || now.is_some() && now != first
        })
    }

    /// Goes on until a thread has left the function that it is in so many calls further out, or something stops it.
    pub fn finish(&mut self, thread: Thread, call: u32) -> Stop {
        let grid = self.request.grid;
        let (_, depth) = self.places_and_depth(thread, call);
        self.go(move |_, state, next| {
            if !is_of(grid, state, next, thread) {
                return state.has_ended(grid, thread);
            }
            state.warp(next).calls.depth(thread.lane()) < depth
        })
    }

    /// The line that a thread is at so many calls further out, with the calls that were inlined around it, and the
    /// calls that it is in there.
    fn places_and_depth(&self, thread: Thread, call: u32) -> (Vec<Location>, usize) {
        let found = self.looking(thread, call, |look, lane| {
            let depth = look.warp.calls.depth(lane).saturating_sub(call as usize);
            (look.image.places_at(look.pc), depth)
        });
        found.unwrap_or_default()
    }

    /// Goes on until `stop` says so of the instruction that is next, or something else stops it.
    fn go(&mut self, mut stop: impl FnMut(&Machine, &State, Next) -> bool) -> Stop {
        self.moved(|machine, live, pause| {
            loop {
                let next = live.state.next(machine);
                if let Some(finding) = live.found(machine) {
                    return finding;
                }
                let Some(next) = next else {
                    return live.over();
                };
                let position = live.state.position();
                if live.told != Some(position)
                    && let Some(stop) = live.breakpoint(machine, next)
                {
                    live.told = Some(position);
                    return stop;
                }
                if stop(machine, &live.state, next) {
                    return Stop::Step;
                }
                if pause.take() {
                    return Stop::Paused;
                }
                let watched = live.issue(machine, next);
                if let Some(finding) = live.found(machine) {
                    return finding;
                }
                if !watched.is_empty() {
                    return Stop::Watchpoint(watched);
                }
            }
        })
    }

    /// Goes to where so many instructions had been issued, forward or back, and passes everything that would stop it.
    pub fn go_to(&mut self, position: u64) -> Stop {
        self.moved(|machine, live, pause| live.go_to(machine, position, pause))
    }

    /// Goes back by so many instructions, of whichever warps.
    pub fn step_back(&mut self, instructions: u64) -> Stop {
        let position = self.position().saturating_sub(instructions);
        self.go_to(position)
    }

    /// Goes back to the last place where something would have stopped it.
    pub fn resume_back(&mut self) -> Stop {
        self.back(|_, _, _| false)
    }

    /// Goes back to before the last instruction that a thread issued, or to what would have stopped it behind that.
    pub fn step_instruction_back(&mut self, thread: Thread) -> Stop {
        let grid = self.request.grid;
        self.back(move |_, state, next| is_of(grid, state, next, thread))
    }

    /// Goes back to the last instruction of which `stop` says so, or that has a breakpoint, or behind a watched access.
    fn back(&mut self, mut stop: impl FnMut(&Machine, &State, Next) -> bool) -> Stop {
        self.moved(|machine, live, pause| {
            let mut end = live.state.position();
            loop {
                let Some(before) = end.checked_sub(1) else {
                    live.go_to(machine, 0, pause);
                    return Stop::Beginning;
                };
                live.restore(machine, before);
                let start = live.state.position();
                let mut found = None;
                while let Some(next) = live.state.next(machine) {
                    let position = live.state.position();
                    if position >= end {
                        break;
                    }
                    if let Some(finding) = live.found(machine) {
                        found = Some((position, finding));
                    }
                    if let Some(stop) = live.breakpoint(machine, next) {
                        found = Some((position, stop));
                    } else if stop(machine, &live.state, next) {
                        found = Some((position, Stop::Step));
                    }
                    if pause.take() {
                        return Stop::Paused;
                    }
                    let watched = live.issue(machine, next);
                    if position + 1 == end {
                        break;
                    }
                    if !watched.is_empty() {
                        found = Some((position + 1, Stop::Watchpoint(watched)));
                    }
                    if let Some(finding) = live.found(machine) {
                        found = Some((position + 1, finding));
                    }
                }
                if let Some((position, stop)) = found {
                    live.go_to(machine, position, pause);
                    if let Stop::Breakpoint { .. } = stop {
                        live.told = Some(position);
                    }
                    return stop;
                }
                end = start;
            }
        })
    }
}

/// Whether a thread is among the lanes that issue next.
fn is_of(grid: [u32; 3], state: &State, next: Next, thread: Thread) -> bool {
    let block = state.running[next.cta].block;
    Shape::number(grid, block) == thread.block
        && state.warp(next).index == thread.warp()
        && next.group.mask >> thread.lane() & 1 != 0
}
