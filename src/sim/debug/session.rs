//! What a debugger calls.

use super::history::History;
use super::state::{Machine, Next, State};
use super::stop::{Breakpoint, Place, SetBreakpoint, Space, Stop, Thread, Watched, Watchpoint};
use super::view::{AccessView, Value, WarpView};
use crate::launch::{
    AccessKind, Fault, Frame, Image, LaunchError, LaunchRequest, Place as CodePlace, Report, Window,
};
use crate::sim::SimConfig;
use crate::sim::check::Checker;
use crate::sim::decode::program::WORD_BYTES;
use crate::sim::execute::access::Accesses;
use crate::sim::launch::shape::Shape;
use crate::sim::launch::{Extent, Loaded};
use crate::sim::memory::global::Table;
use crate::sim::memory::{in_window, little_endian};
use crate::sim::warp::registers::LANES;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of an instruction.
const WORD: u32 = WORD_BYTES as u32;

/// What a launch takes, kept.
#[derive(Clone, Debug)]
struct Request {
    kernel: String,
    entry: u32,
    grid: [u32; 3],
    block: [u32; 3],
    static_shared: u32,
    dynamic_shared: u32,
    local_bytes: u32,
    parameters: Vec<u8>,
}

impl Request {
    fn of(request: &LaunchRequest) -> Request {
        Request {
            kernel: request.kernel.to_owned(),
            entry: request.entry,
            grid: request.grid,
            block: request.block,
            static_shared: request.static_shared,
            dynamic_shared: request.dynamic_shared,
            local_bytes: request.local_bytes,
            parameters: request.parameters.to_vec(),
        }
    }

    fn borrowed(&self) -> LaunchRequest<'_> {
        LaunchRequest {
            kernel: &self.kernel,
            entry: self.entry,
            grid: self.grid,
            block: self.block,
            static_shared: self.static_shared,
            dynamic_shared: self.dynamic_shared,
            local_bytes: self.local_bytes,
            parameters: &self.parameters,
            progress: None,
            time_limit: None,
        }
    }
}

/// Adds to a fault what only the device knows.
type Complete = Box<dyn Fn(&mut Fault) + Send>;

/// Asks a session to stand still, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// The session stops before its next instruction; if it stands, when it is told to go on.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked since it was last looked at.
    fn take(&self) -> bool {
        // Most often nobody has: then nothing is written.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// A launch that goes on when it is told to.
///
/// It takes the turns of a launch with one thread of the host, without cycles and limits of time: the same memory,
/// counts, faults and findings of checks. Device memory is that of the device; what the host writes to it while the session stands
/// is not taken back when it goes backwards.
pub struct Session {
    loaded: Arc<Loaded>,
    global: Arc<Table>,
    config: SimConfig,
    request: Request,
    extent: Extent,
    live: Live,
    pause: Pause,
    complete: Complete,
    /// What has to stay as long as the launch.
    _keep: Box<dyn Any + Send>,
}

/// What changes while a launch goes on.
struct Live {
    state: State,
    history: History,
    breakpoints: Vec<SetBreakpoint>,
    watchpoints: Vec<(u32, Watchpoint)>,
    /// Numbers of breakpoints and watchpoints that were given.
    ids: u32,
}

/// A watched access that is about to be made.
struct Touch {
    watched: Watched,
    space: Space,
}

impl Session {
    /// A launch before its first instruction; `keep` lives as long as it does.
    ///
    /// # Errors
    /// When the request is not possible.
    pub(crate) fn new(
        loaded: Arc<Loaded>,
        global: Arc<Table>,
        config: &SimConfig,
        request: &LaunchRequest,
        keep: Box<dyn Any + Send>,
    ) -> Result<Session, LaunchError> {
        let config = SimConfig {
            timed: false,
            profile: false,
            trace_events: None,
            weak: None,
            threads: 1,
            deterministic: true,
            ..*config
        };
        let extent = loaded.extent(request, &config)?;
        let checker = config.check.then(|| {
            let run = loaded.prepare(extent, request, &config);
            let apart = loaded.together(&run) == 1;
            Checker::new(run.shape, &loaded.image, &loaded.program, apart, None)
        });
        Ok(Session {
            loaded,
            global,
            config,
            request: Request::of(request),
            extent,
            live: Live {
                state: State::new(checker.clone()),
                history: History::new(State::new(checker)),
                breakpoints: Vec::new(),
                watchpoints: Vec::new(),
                ids: 0,
            },
            pause: Pause::default(),
            complete: Box::new(|_| ()),
            _keep: keep,
        })
    }

    /// Lets its faults have what only the device knows.
    pub(crate) fn complete_faults(&mut self, complete: Complete) {
        self.complete = complete;
    }

    /// Moves the launch; faults have all that is known.
    fn moved(&mut self, work: impl FnOnce(&Machine, &mut Live, &Pause) -> Stop) -> Stop {
        let mut stop = self.with(work);
        if let Stop::Fault(fault) = &mut stop {
            (self.complete)(fault);
        }
        stop
    }

    /// Works on the launch with what stays the same.
    fn with<R>(&mut self, work: impl FnOnce(&Machine, &mut Live, &Pause) -> R) -> R {
        let request = self.request.borrowed();
        let run = self.loaded.prepare(self.extent, &request, &self.config);
        let machine = Machine {
            loaded: &self.loaded,
            resident: self.loaded.together(&run),
            run,
            request,
            global: &self.global,
        };
        work(&machine, &mut self.live, &self.pause)
    }

    /// What asks it to stand still while it goes on.
    pub fn pause(&self) -> Pause {
        self.pause.clone()
    }

    /// Its code, with names and lines.
    pub fn image(&self) -> &Image {
        &self.loaded.image
    }

    /// The kernel.
    pub fn kernel(&self) -> &str {
        &self.request.kernel
    }

    /// Blocks, and threads of a block, in x, y and z.
    pub fn shape(&self) -> ([u32; 3], [u32; 3]) {
        (self.request.grid, self.request.block)
    }

    /// Instructions that warps have issued since the beginning: where it is.
    pub fn position(&self) -> u64 {
        self.live.state.position()
    }

    /// What the launch would report if it ended here.
    pub fn report(&self) -> Report {
        let state = &self.live.state;
        let checker = state.checker.as_ref();
        let findings = checker.map_or(Vec::new(), |checker| checker.findings.clone());
        Report {
            findings: self.loaded.findings(&self.request.borrowed(), findings),
            stats: state.stats,
            fault: state.fault.clone(),
            resident: state.most_resident,
            ..Report::default()
        }
    }

    // Breakpoints.

    /// Sets a breakpoint; its number.
    ///
    /// # Errors
    /// When there is no such instruction, in words.
    pub fn add_breakpoint(&mut self, breakpoint: Breakpoint) -> Result<u32, String> {
        let instructions = self.instructions(&breakpoint.place)?;
        let id = self.new_id();
        self.live.breakpoints.push(SetBreakpoint {
            id,
            breakpoint,
            instructions,
        });
        Ok(id)
    }

    /// Watches memory; the number of the watchpoint.
    ///
    /// # Errors
    /// When there are no bytes to watch.
    pub fn add_watchpoint(&mut self, watchpoint: Watchpoint) -> Result<u32, String> {
        if watchpoint.bytes == 0 {
            return Err("0 bytes cannot be watched".to_owned());
        }
        let id = self.new_id();
        self.live.watchpoints.push((id, watchpoint));
        Ok(id)
    }

    /// Takes a breakpoint or watchpoint away; whether it was there.
    pub fn remove(&mut self, id: u32) -> bool {
        let live = &mut self.live;
        let before = live.breakpoints.len() + live.watchpoints.len();
        live.breakpoints.retain(|set| set.id != id);
        live.watchpoints.retain(|(other, _)| *other != id);
        before != live.breakpoints.len() + live.watchpoints.len()
    }

    /// The breakpoints with their numbers and code addresses.
    pub fn breakpoints(&self) -> impl Iterator<Item = (u32, &Breakpoint, Vec<u32>)> {
        self.live.breakpoints.iter().map(|set| {
            let addresses = set.instructions.iter().map(|index| index * WORD);
            (set.id, &set.breakpoint, addresses.collect())
        })
    }

    /// The watchpoints with their numbers.
    pub fn watchpoints(&self) -> &[(u32, Watchpoint)] {
        &self.live.watchpoints
    }

    fn new_id(&mut self) -> u32 {
        self.live.ids += 1;
        self.live.ids
    }

    /// Indices of the instructions of a place.
    fn instructions(&self, place: &Place) -> Result<Vec<u32>, String> {
        let image = &self.loaded.image;
        let count = self.loaded.program.ops.len() as u32;
        match place {
            Place::Address(address) => {
                if address % WORD != 0 || address / WORD >= count {
                    return Err(format!(
                        "{address:#x} is no instruction: addresses are multiples of {WORD} below {:#x}",
                        count * WORD
                    ));
                }
                Ok(vec![address / WORD])
            }
            Place::Function(name) => {
                let name = name.trim_start_matches('%');
                let found = image.functions.iter().find(|f| f.name == name);
                let found = found.ok_or_else(|| format!("there is no function {name}"))?;
                Ok(vec![found.address / WORD])
            }
            Place::Line { file, line } => {
                let mut found = Vec::new();
                let mut before = None;
                for entry in &image.lines {
                    let location = entry.location;
                    let name = crate::locations::name_of(&image.files, location.file);
                    let is_file = file.as_deref().is_none_or(|file| {
                        name.is_some_and(|name| name.ends_with(file.trim_start_matches("./")))
                    });
                    let here = (location.file, location.line);
                    if is_file && location.line == *line && before != Some(here) {
                        found.push(entry.address / WORD);
                    }
                    before = Some(here);
                }
                match found.is_empty() {
                    true => Err(format!("{place} has no code")),
                    false => Ok(found),
                }
            }
        }
    }

    // Going on.

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
        self.go(move |machine, state, next| {
            let done = has_issued;
            has_issued |= is_of(grid, state, next, thread);
            _ = machine;
            done
        })
    }

    /// Goes on until a thread is at another line of its function or has left it, or something stops it; calls that it
    /// makes are gone into if `into` is true.
    pub fn step_line(&mut self, thread: Thread, into: bool) -> Stop {
        let grid = self.request.grid;
        let here = self.line_and_depth(thread);
        self.go(move |machine, state, next| {
            if !is_of(grid, state, next, thread) {
                return state.group_of(grid, thread).is_none();
            }
            let (line, depth) = here;
            let address = next.group.pc * WORD;
            let now = machine
                .loaded
                .image
                .line_at(address)
                .map(|line| line.location);
            let now = now.map(|location| (location.file, location.line));
            let now_depth = state.warp(next).calls.depth(thread.lane());
            if now_depth > depth && !into {
                return false;
            }
            now_depth < depth || now.is_some() && now != line
        })
    }

    /// Goes on until a thread has left the function that it is in, or something stops it.
    pub fn finish(&mut self, thread: Thread) -> Stop {
        let grid = self.request.grid;
        let (_, depth) = self.line_and_depth(thread);
        self.go(move |_, state, next| {
            if !is_of(grid, state, next, thread) {
                return state.group_of(grid, thread).is_none();
            }
            state.warp(next).calls.depth(thread.lane()) < depth
        })
    }

    fn line_and_depth(&mut self, thread: Thread) -> (Option<(u32, u32)>, usize) {
        let grid = self.request.grid;
        let state = &self.live.state;
        let group = state.group_of(grid, thread);
        let line = group.and_then(|group| self.loaded.image.line_at(group.pc * WORD));
        let warp = state.warp_of(grid, thread);
        (
            line.map(|line| (line.location.file, line.location.line)),
            warp.map_or(0, |warp| warp.calls.depth(thread.lane())),
        )
    }

    /// Goes on until `stop` says so of the instruction that is next, or something else stops it.
    fn go(&mut self, mut stop: impl FnMut(&Machine, &State, Next) -> bool) -> Stop {
        self.moved(|machine, live, pause| {
            let mut first = true;
            let mut known = live.state.findings();
            loop {
                let next = live.state.next(machine);
                if let Some(finding) = live.found(machine, &mut known) {
                    return finding;
                }
                let Some(next) = next else {
                    return live.over();
                };
                if !first {
                    if let Some(stop) = live.breakpoint(machine, next) {
                        return stop;
                    }
                    if pause.take() {
                        return Stop::Paused;
                    }
                }
                if stop(machine, &live.state, next) {
                    return Stop::Step;
                }
                first = false;
                if let Some(watched) = live.issue(machine, next) {
                    return Stop::Watchpoint(watched);
                }
                if let Some(finding) = live.found(machine, &mut known) {
                    return finding;
                }
            }
        })
    }

    // Going back.

    /// Goes to where so many instructions had been issued, forward or back, and passes everything that would stop it.
    pub fn go_to(&mut self, position: u64) -> Stop {
        self.moved(|machine, live, _| live.go_to(machine, position))
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
                    live.go_to(machine, 0);
                    return Stop::Beginning;
                };
                live.state = live.history.restore(machine.global, before);
                let start = live.state.position();
                let mut found = None;
                let mut known = live.state.findings();
                while let Some(next) = live.state.next(machine) {
                    let position = live.state.position();
                    if position >= end {
                        break;
                    }
                    if let Some(stop) = live.breakpoint(machine, next) {
                        found = Some((position, stop));
                    } else if stop(machine, &live.state, next) {
                        found = Some((position, Stop::Step));
                    }
                    if pause.take() {
                        return Stop::Paused;
                    }
                    if let Some(watched) = live.issue(machine, next)
                        && position + 1 < end
                    {
                        found = Some((position + 1, Stop::Watchpoint(watched)));
                    }
                    if let Some(finding) = live.found(machine, &mut known)
                        && position + 1 < end
                    {
                        found = Some((position + 1, finding));
                    }
                }
                if let Some((position, stop)) = found {
                    live.go_to(machine, position);
                    return stop;
                }
                end = start;
            }
        })
    }

    // Looking.

    /// All warps of the blocks that have begun and not ended.
    pub fn warps(&mut self) -> Vec<WarpView> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            // Blocks begin here, and barriers open.
            live.state.next(machine);
            live.state.warps(grid, WORD)
        })
    }

    /// The thread that issues next: the first of its lanes.
    pub fn next_thread(&mut self) -> Option<Thread> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            let next = live.state.next(machine)?;
            let block = Shape::number(grid, live.state.running[next.cta].block);
            let warp = live.state.warp(next).index;
            Some(Thread {
                block,
                thread: warp * LANES as u32 + next.group.mask.trailing_zeros(),
            })
        })
    }

    /// Where a thread is: its next instruction. None where its block has not begun or it has ended.
    pub fn place(&self, thread: Thread) -> Option<CodePlace> {
        let grid = self.request.grid;
        let group = self.live.state.group_of(grid, thread)?;
        let block = Shape::coordinates(grid, thread.block);
        let request = self.request.borrowed();
        Some(self.loaded.place(&request, block, thread.thread, group.pc))
    }

    /// The calls that a thread is in, the innermost first, as many as a fault has.
    pub fn frames(&self, thread: Thread) -> Vec<Frame> {
        let warp = self.live.state.warp_of(self.request.grid, thread);
        warp.map_or(Vec::new(), |warp| {
            warp.calls.frames(thread.lane(), &self.loaded.image)
        })
    }

    /// A general register in the lanes of a thread's warp.
    pub fn register(&self, thread: Thread, number: u8) -> Option<Value> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        let exists = usize::from(number) < crate::sim::warp::registers::GENERAL;
        let column = exists.then(|| warp.registers.column(number.into()))?;
        Some(Value {
            lanes: column.map(u64::from),
            live: warp.live,
        })
    }

    /// General registers that the program uses.
    pub fn registers(&self) -> u8 {
        self.loaded.program.registers.min(255) as u8
    }

    /// A predicate as a mask of lanes, P0 to P6.
    pub fn predicate(&self, thread: Thread, number: u8) -> Option<u32> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        warp.registers.predicates.get(usize::from(number)).copied()
    }

    /// A uniform register of a thread's warp.
    pub fn uniform(&self, thread: Thread, number: u8) -> Option<u32> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        warp.registers.uniform.get(usize::from(number)).copied()
    }

    /// Sets a general register of a thread, until it goes backwards; whether there is such a register.
    pub fn set_register(&mut self, thread: Thread, number: u8, value: u32) -> bool {
        let grid = self.request.grid;
        let exists = usize::from(number) < crate::sim::warp::registers::GENERAL;
        match self.live.state.warp_of_mut(grid, thread) {
            Some(warp) if exists => {
                warp.registers.column_mut(number.into())[thread.lane()] = value;
                true
            }
            _ => false,
        }
    }

    /// What the lanes that a thread runs with are about to access, if their next instruction accesses memory.
    pub fn about_to_access(&mut self, thread: Thread) -> Option<AccessView> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            let group = live.state.group_of(grid, thread)?;
            let warp = live.state.warp_of_mut(grid, thread)?;
            let op = machine.loaded.program.ops.get(group.pc as usize)?;
            let mask = group.mask & warp.registers.holds(op.guard);
            let accesses = warp.about_to_access(op, &machine.run.banks, mask)?;
            Some(AccessView {
                kind: accesses.kind,
                bytes: accesses.access.bytes.into(),
                addresses: accesses.addresses,
            })
        })
    }

    /// Bytes of memory from an address of global memory, or an offset, on.
    ///
    /// # Errors
    /// Memory that is not there, in words.
    pub fn read(&self, space: Space, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        self.live
            .read(&self.global, self.request.grid, space, address, bytes)
    }

    /// The instructions from an index on, as address and text.
    pub fn disassemble(&self, address: u32, count: usize) -> Vec<(u32, String)> {
        let all = self.loaded.program.ops.len() as u32;
        let first = address / WORD;
        let last = first.saturating_add(count as u32).min(all);
        (first..last)
            .map(|pc| (pc * WORD, self.loaded.text(pc)))
            .collect()
    }
}

/// Whether a thread is among the lanes that issue next.
fn is_of(grid: [u32; 3], state: &State, next: Next, thread: Thread) -> bool {
    let block = state.running[next.cta].block;
    Shape::number(grid, block) == thread.block
        && state.warp(next).index == thread.warp()
        && next.group.mask >> thread.lane() & 1 != 0
}

impl Live {
    /// Why it cannot go on.
    fn over(&self) -> Stop {
        match &self.state.fault {
            Some(fault) => Stop::Fault(Box::new(fault.clone())),
            None => Stop::End,
        }
    }

    /// The last of what the checks have found since they had found so much.
    fn found(&self, machine: &Machine, known: &mut usize) -> Option<Stop> {
        let before = std::mem::replace(known, self.state.findings());
        if *known == before {
            return None;
        }
        let last = self.state.checker.as_ref()?.findings.last()?.clone();
        let finding = machine
            .loaded
            .findings(&machine.request, vec![last])
            .pop()?;
        Some(Stop::Finding(Box::new(finding)))
    }

    fn step(&mut self, machine: &Machine) -> Stop {
        let Some(next) = self.state.next(machine) else {
            return self.over();
        };
        let mut known = self.state.findings();
        let watched = self.issue(machine, next);
        if let Some(finding) = self.found(machine, &mut known) {
            return finding;
        }
        match watched {
            Some(watched) => Stop::Watchpoint(watched),
            None if self.state.fault.is_some() => self.over(),
            None => Stop::Step,
        }
    }

    /// Goes to a position, and looks at nothing.
    fn go_to(&mut self, machine: &Machine, position: u64) -> Stop {
        if position < self.state.position() || self.state.fault.is_some() {
            self.state = self.history.restore(machine.global, position);
        }
        while self.state.position() < position {
            let Some(next) = self.state.next(machine) else {
                return self.over();
            };
            self.issue(machine, next);
        }
        match position {
            0 => Stop::Beginning,
            _ => Stop::Step,
        }
    }

    /// The breakpoint at what is next.
    fn breakpoint(&self, machine: &Machine, next: Next) -> Option<Stop> {
        if self.breakpoints.is_empty() {
            return None;
        }
        let grid = machine.run.shape.grid;
        let block = Shape::number(grid, self.state.running[next.cta].block);
        self.breakpoints.iter().find_map(|set| {
            let lanes = set.lanes(&self.state, next, block);
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

    /// Issues what is next; the watched access that it made.
    fn issue(&mut self, machine: &Machine, next: Next) -> Option<Watched> {
        self.history.pass(&self.state);
        let touch = self.look(machine, next);
        self.state.issue(machine, next);
        // What faulted was not done.
        let Touch { mut watched, space } = touch.filter(|_| self.state.fault.is_none())?;
        watched.new = self.value(machine, space, watched.address, watched.bytes);
        Some(watched)
    }

    /// What an instruction is about to write goes to the history; whether it is about to touch what is watched.
    fn look(&mut self, machine: &Machine, next: Next) -> Option<Touch> {
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
        let mut touch: Option<Touch> = None;
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
            let watching = self.watchpoints.iter().find(|(_, watchpoint)| {
                let Watchpoint {
                    space: watched,
                    address: start,
                    bytes: size,
                    watch,
                } = *watchpoint;
                let apart = place >= start.saturating_add(size)
                    || start >= place.saturating_add(bytes.into());
                watched == space && watch.takes(kind) && !apart
            });
            let Some(&(id, _)) = watching else { continue };
            match &mut touch {
                Some(touch) if touch.watched.id == id => touch.watched.lanes |= 1 << lane,
                Some(_) => {}
                None => {
                    let old = self.value(machine, space, place, bytes);
                    touch = Some(Touch {
                        space,
                        watched: Watched {
                            id,
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
        }
        touch
    }

    /// What is in memory; 0 where there is none.
    fn value(&self, machine: &Machine, space: Space, address: u64, bytes: u32) -> u128 {
        let grid = machine.run.shape.grid;
        let read = self.read(machine.global, grid, space, address, bytes as usize);
        read.map_or(0, |data| little_endian(&data, 0, bytes))
    }

    fn read(
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
