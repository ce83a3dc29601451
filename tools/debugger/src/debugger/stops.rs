//! What is told of stops, points and the places of threads.

use super::{Debugger, Exception};
use crate::operand::COMPARISONS;
use crate::text::{hexadecimal, mask, name, said};
use cranelift_thisgpu::sim::debug::{
    GroupView, Space, StackFrame, Stop, Thread, WaitView, Watch, Watched,
};
use std::fmt::Write;

/// Warps that `warps` shows, at most.
const SHOWN: usize = 64;

/// What a function that a thread is in is called.
pub fn named(frame: &StackFrame) -> String {
    match (&frame.name, &frame.function) {
        (Some(name), _) => name.clone(),
        (None, Some(symbol)) if frame.is_inlined => format!("{} (inlined)", said(symbol)),
        (None, Some(symbol)) => said(symbol),
        (None, None) => format!("{:#x}", frame.pc),
    }
}

impl Debugger {
    /// Looks at whom a stop is about, and tells it.
    pub fn arrived(&mut self, stop: &Stop) -> String {
        let about = match stop {
            Stop::Breakpoint { thread, .. } => Some(*thread),
            Stop::Watchpoint(watched) => watched.first().map(|watched| watched.thread),
            Stop::Fault(fault) => Some(self.session.thread_at(&fault.place)),
            Stop::Finding(found) => found
                .last()
                .map(|finding| self.session.thread_at(&finding.place)),
            _ => None,
        };
        if let Some(thread) = about {
            self.thread = thread;
        } else if self.session.place(self.thread).is_none()
            && let Some(next) = self.session.next_thread()
        {
            self.thread = next;
        }
        self.exception = self.exception_of(stop);
        if let Stop::Breakpoint { id, .. } = stop {
            self.frame = self.frame_of(*id).unwrap_or(0);
        }
        let told = match stop {
            Stop::Beginning => "at the beginning".to_owned(),
            Stop::Step => String::new(),
            Stop::Breakpoint { id, lanes, .. } => {
                format!("breakpoint {id}, lanes {}", mask(*lanes))
            }
            Stop::Watchpoint(watched) => {
                let told = watched.iter().map(|watched| self.watched(watched));
                told.collect::<Vec<_>>().join("\n")
            }
            Stop::Finding(found) => {
                let told = found.iter().map(|finding| format!("finding: {finding}"));
                told.collect::<Vec<_>>().join("\n")
            }
            Stop::Paused => "paused".to_owned(),
            Stop::Fault(_) => {
                let Exception { kind, text } = self.exception.clone().unwrap_or_default();
                let accesses = self.accesses();
                return format!("{kind}: {text}\n{}{accesses}", self.excerpt())
                    .trim_end()
                    .to_owned();
            }
            Stop::End => {
                let issued = self.session.report().stats.warp_instructions;
                let printed = self.printed().unwrap_or_else(|error| format!("{error}\n"));
                return format!("{printed}all blocks have ended, after {issued} warp instructions");
            }
        };
        let here = self.here();
        match told.is_empty() {
            true => here,
            false => format!("{told}\n{here}"),
        }
    }

    /// What is wrong at a stop, if something is: a panic as a launch tells of it.
    fn exception_of(&self, stop: &Stop) -> Option<Exception> {
        let (kind, text) = match stop {
            Stop::Fault(fault) => {
                let panic = self.library.as_ref().map(|library| library.panic(fault));
                match panic.transpose() {
                    Ok(Some(Some(text))) => ("panic", text),
                    Ok(_) => ("fault", fault.to_string()),
                    Err(error) => ("fault", format!("{fault} (no message: {error})")),
                }
            }
            Stop::Finding(found) => {
                let told: Vec<String> = found.iter().map(ToString::to_string).collect();
                ("finding", told.join("\n"))
            }
            _ => return None,
        };
        Some(Exception { kind, text })
    }

    /// An access that a watchpoint has seen.
    pub(super) fn watched(&self, watched: &Watched) -> String {
        let Watched {
            id,
            kind,
            thread,
            lanes,
            pc,
            address,
            bytes,
            old,
            new,
        } = watched;
        let change = match old == new {
            true => format!("{new:#x}"),
            false => format!("{old:#x} became {new:#x}"),
        };
        let code = self.session.disassemble(*pc, 1);
        let text = code.first().map_or("", |(_, text)| text);
        format!(
            "watchpoint {id}: {kind} of {bytes} bytes at {address:#x} by thread {} of block {}, lanes {}: {change}\n  \
             pc {pc:#x}: {text}",
            thread.thread,
            thread.block,
            mask(*lanes)
        )
    }

    /// Where the thread is, with its line in the function that is looked at.
    pub(super) fn here(&self) -> String {
        let Thread { block, thread } = self.thread;
        let Some(mut place) = self.session.place(self.thread) else {
            return format!("thread {thread} of block {block} does not run");
        };
        place.kernel = said(&place.kernel);
        place.function = place.function.as_deref().map(said);
        let stack = self.session.stack(self.thread);
        let frame = stack.get(self.frame as usize).filter(|_| self.frame > 0);
        let looked_at = frame.map_or(String::new(), |frame| {
            let place = match frame.id.call {
                0 => String::new(),
                _ => self.call_place(frame.pc),
            };
            format!("\nin {}{place}", named(frame))
        });
        let text = format!("{place}{looked_at}\n{}", self.excerpt());
        text.trim_end().to_owned()
    }

    /// The line of the source that is looked at.
    pub(super) fn excerpt(&self) -> String {
        let line = || {
            let stack = self.session.stack(self.thread);
            let location = stack.get(self.frame as usize)?.location;
            let file = location.file.checked_sub(1)?;
            let file = self.session.image().files.get(file as usize)?;
            let text = self.sources.text(file)?;
            let text = text.lines().nth((location.line as usize).checked_sub(1)?)?;
            Some(format!("{:>5} | {text}", location.line))
        };
        line().unwrap_or_default()
    }

    /// The addresses that the lanes of the thread's instruction access.
    pub(super) fn accesses(&mut self) -> String {
        let Some(accesses) = self.session.about_to_access(self.thread) else {
            return String::new();
        };
        let mut text = format!("\n  {} of {} bytes", accesses.kind, accesses.bytes);
        for (index, (lane, address)) in accesses.addresses.iter().enumerate() {
            let separator = if index.is_multiple_of(4) {
                "\n  "
            } else {
                ", "
            };
            let _ = write!(text, "{separator}lane {lane:>2}: {address:#x}");
        }
        text
    }

    /// All breakpoints and watchpoints, one a line.
    pub(super) fn points(&self) -> String {
        let mut text = String::new();
        for (id, breakpoint, addresses) in self.session.breakpoints() {
            let _ = write!(
                text,
                "{id}: {} at pc {}",
                breakpoint.place,
                hexadecimal(&addresses)
            );
            if let Some(block) = breakpoint.block {
                let _ = write!(text, ", block {block}");
            }
            if let Some(thread) = breakpoint.thread {
                let _ = write!(text, ", thread {thread}");
            }
            if let Some(condition) = &breakpoint.condition {
                let mut signs = COMPARISONS.iter();
                let sign = signs.find(|(_, comparison)| *comparison == condition.comparison);
                let (operand, sign) = (name(&condition.operand), sign.map_or("", |(sign, _)| sign));
                let _ = write!(text, ", if {operand} {sign} {}", condition.value);
            }
            text.push('\n');
        }
        for (id, watchpoint) in self.session.watchpoints() {
            let accesses = match watchpoint.watch {
                Watch::Write => "stores",
                Watch::Read => "loads",
                Watch::Access => "stores and loads",
            };
            let whose = match watchpoint.space {
                Space::Global => "global memory".to_owned(),
                Space::Shared { block } => format!("shared memory of block {block}"),
                Space::Local(Thread { block, thread }) => {
                    format!("local memory of thread {thread} of block {block}")
                }
            };
            let (bytes, address) = (watchpoint.bytes, watchpoint.address);
            let _ = writeln!(
                text,
                "{id}: {accesses} of {bytes} bytes at {address:#x} of {whose}"
            );
        }
        match text.is_empty() {
            true => "none".to_owned(),
            false => text.trim_end().to_owned(),
        }
    }

    /// The warps of the blocks that run, with where their lanes are and what they wait for.
    pub(super) fn warps(&mut self) -> String {
        let warps = self.session.warps();
        let mut text = String::new();
        for warp in warps.iter().take(SHOWN) {
            let [x, y, z] = warp.coordinates;
            let _ = write!(
                text,
                "block {} ({x},{y},{z}), warp {}:",
                warp.block, warp.warp
            );
            if warp.groups.is_empty() {
                text.push_str(" ended");
            }
            text.push('\n');
            for GroupView { lanes, pc, wait } in &warp.groups {
                let code = self.session.disassemble(*pc, 1);
                let instruction = code.first().map_or("", |(_, text)| text);
                let waits = match wait {
                    WaitView::Nothing => String::new(),
                    WaitView::Barrier { number, missing } => {
                        format!(", waits at B{number} for lanes {}", mask(*missing))
                    }
                    WaitView::Warp { missing } => format!(", waits for lanes {}", mask(*missing)),
                    WaitView::Block { missing } => {
                        format!(", waits for {missing} threads of the block")
                    }
                };
                let _ = writeln!(text, "  {} pc {pc:#x}: {instruction}{waits}", mask(*lanes));
            }
        }
        if warps.len() > SHOWN {
            let _ = writeln!(text, "and {} more", warps.len() - SHOWN);
        }
        match text.is_empty() {
            true => "no block runs".to_owned(),
            false => text.trim_end().to_owned(),
        }
    }

    /// Where the thread is, and the functions that it is in.
    pub(super) fn frames(&self) -> String {
        let mut text = self.here();
        let stack = self.session.stack(self.thread);
        for frames in stack.chunk_by(|a, b| a.id.call == b.id.call) {
            let known = frames.iter().filter(|f| f.name.is_some() || !f.is_inlined);
            let names: Vec<String> = known.map(named).collect();
            let names = names.join(", inlined into ");
            let _ = match &frames[0] {
                // The place says what it is in, if the front end has told of nothing else.
                frame if frame.id.call == 0 => match frame.name {
                    Some(_) => write!(text, "\n  in {names}"),
                    None => continue,
                },
                frame => write!(text, "\n  called from {names}{}", self.call_place(frame.pc)),
            };
        }
        text
    }

    /// Where a call is, behind the name of its function.
    fn call_place(&self, pc: u32) -> String {
        match self.session.image().source_at(pc) {
            Some(source) => format!(", pc {pc:#x} ({source})"),
            None => format!(", pc {pc:#x}"),
        }
    }

    /// Instructions from an address on, or from where the thread is.
    pub(super) fn disassemble(&self, address: Option<u32>, count: usize) -> Result<String, String> {
        let here = self.session.place(self.thread).map(|place| place.pc);
        let start = address.or(here).ok_or_else(|| self.absent())?;
        let line = |(address, text): (u32, String)| {
            let mark = if Some(address) == here { "=>" } else { "  " };
            format!("{mark} {address:#06x}: {text}")
        };
        let code = self.session.disassemble(start, count);
        Ok(code.into_iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}
