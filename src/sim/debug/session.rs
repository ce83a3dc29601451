//! What a debugger calls.

use super::data::is_named;
use super::history::History;
use super::live::Live;
use super::operand::Operand;
use super::state::{Machine, State};
use super::stop::{Breakpoint, Place, SetBreakpoint, Stop, Watchpoint};
use crate::launch::{Fault, Image, LaunchError, LaunchRequest, Report};
use crate::locations::Location;
use crate::sim::SimConfig;
use crate::sim::check::Checker;
use crate::sim::decode::program::WORD_BYTES;
use crate::sim::launch::{Extent, Loaded};
use crate::sim::memory::global::Table;
use crate::variables::ScopeKind;
use std::any::Any;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of an instruction.
pub(super) const WORD: u32 = WORD_BYTES as u32;

/// What a launch takes, kept.
#[derive(Clone, Debug)]
pub(super) struct Request {
    kernel: String,
    entry: u32,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
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

    pub(super) fn borrowed(&self) -> LaunchRequest<'_> {
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

    /// Takes it back.
    pub fn clear(&self) {
        self.take();
    }

    /// Whether somebody has asked since it was last looked at.
    pub(super) fn take(&self) -> bool {
        // Most often nobody has: then nothing is written.
        self.0.load(Ordering::Relaxed) && self.0.swap(false, Ordering::Relaxed)
    }
}

/// A launch that goes on when it is told to.
///
/// It takes the turns of a launch with one thread of the host, without cycles and limits of time: the same memory,
/// counts, faults and findings of checks. Device memory is that of the device; what the host writes to it while the
/// session stands is not taken back when it goes backwards.
pub struct Session {
    pub(super) loaded: Arc<Loaded>,
    pub(super) global: Arc<Table>,
    pub(super) config: SimConfig,
    pub(super) request: Request,
    pub(super) extent: Extent,
    pub(super) live: Live,
    pub(super) pause: Pause,
    pub(super) complete: Complete,
    /// What has to stay as long as the launch.
    _keep: Box<dyn Any + Send>,
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
                told: None,
                told_findings: 0,
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
    pub(super) fn moved(&mut self, work: impl FnOnce(&Machine, &mut Live, &Pause) -> Stop) -> Stop {
        let mut stop = self.with(work);
        if let Stop::Fault(fault) = &mut stop {
            (self.complete)(fault);
        }
        stop
    }

    /// Works on the launch with what stays the same.
    pub(super) fn with<R>(&mut self, work: impl FnOnce(&Machine, &mut Live, &Pause) -> R) -> R {
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

    /// A number that follows from all that the launch has: registers, groups of lanes and what they wait for, calls,
    /// whose turn it is, memory, counts, and how much the checks have found. It is the same where a session comes to
    /// the same place again, in one build of this crate.
    pub fn fingerprint(&mut self) -> u64 {
        self.with(|machine, live, _| {
            // Blocks begin here, and barriers open.
            live.state.next(machine);
            let mut hasher = DefaultHasher::new();
            live.state.hash(&mut hasher);
            machine
                .global
                .all()
                .for_each(|words| words.hash(&mut hasher));
            hasher.finish()
        })
    }

    // Breakpoints.

    /// Sets a breakpoint; its number.
    ///
    /// # Errors
    /// When there is no such instruction, in words.
    pub fn add_breakpoint(&mut self, breakpoint: Breakpoint) -> Result<u32, String> {
        let instructions = self.instructions(&breakpoint.place)?;
        if let Some(Operand::Variable(path)) = breakpoint.condition.as_ref().map(|c| &c.operand) {
            let scopes = self.loaded.image.functions.iter().flat_map(|f| &f.scopes);
            let mut variables = scopes.flat_map(|scope| &scope.variables);
            let mut statics = self.loaded.image.statics.iter();
            if !variables.any(|variable| variable.name == path.variable())
                && !statics.any(|(of, _)| is_named(&of.name, path.variable()))
            {
                return Err(format!("there is no variable `{}`", path.variable()));
            }
        }
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
    /// When there are no bytes to watch, or they cannot be there while the launch runs, in words.
    pub fn add_watchpoint(&mut self, watchpoint: Watchpoint) -> Result<u32, String> {
        if watchpoint.bytes == 0 {
            return Err("0 bytes cannot be watched".to_owned());
        }
        self.must_be_in_memory(watchpoint.space, watchpoint.address, watchpoint.bytes)?;
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
                // As the source calls it, or by its symbol.
                let name = name.trim_start_matches('%');
                let mut found = self.functions_of_source(name);
                if found.is_empty() {
                    let function = image.functions.iter().find(|f| f.name == name);
                    found.extend(function.map(|f| f.address / WORD));
                }
                match found.is_empty() {
                    true => Err(format!("there is no function {name}")),
                    false => Ok(found),
                }
            }
            Place::Line { file, line } => {
                // A line without code stands for the next one that has some. A line that calls what is inlined has that
                // code.
                let file = file.as_deref();
                let is_here = |at: &Location| self.is_in(at.file, file);
                let places = image
                    .lines
                    .iter()
                    .map(|entry| image.places_of(entry.location));
                let places: Vec<Vec<Location>> = places.collect();
                let lines = places
                    .iter()
                    .flatten()
                    .filter(|at| is_here(at) && at.line >= *line);
                let Some(found) = lines.map(|at| at.line).min() else {
                    return Err(format!("{place} has no code, and no line behind it"));
                };
                let mut begins = Vec::new();
                let mut was_there = false;
                // What is of no line that is known belongs to the one before.
                let known = image
                    .lines
                    .iter()
                    .zip(&places)
                    .filter(|(entry, _)| entry.location.line != 0);
                for (entry, places) in known {
                    let is_there = places.iter().any(|at| is_here(at) && at.line == found);
                    if is_there && !was_there {
                        begins.push(entry.address / WORD);
                    }
                    was_there = is_there;
                }
                Ok(begins)
            }
        }
    }

    /// Where the functions begin that the source calls so, without the arguments of generic ones: behind what puts the
    /// parameters where they are looked for. Those that were inlined too.
    fn functions_of_source(&self, name: &str) -> Vec<u32> {
        let image = &self.loaded.image;
        let mut found = Vec::new();
        for function in &image.functions {
            let offset = |offset: u32| (function.address + offset) / WORD;
            for scope in &function.scopes {
                let is_called = |of: &str| of == name || of.split('<').next() == Some(name);
                match &scope.kind {
                    ScopeKind::Function(of) if is_called(of) => {
                        let begin = scope.ranges.first().map_or(0, |range| range.start);
                        found.push(self.behind_first_line(offset(begin)));
                    }
                    ScopeKind::Inlined(of, _) if is_called(of) => {
                        let first = scope.ranges.first();
                        found.extend(first.map(|range| offset(range.start)));
                    }
                    _ => {}
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The first instruction of another line behind one, in the same function.
    fn behind_first_line(&self, index: u32) -> u32 {
        let image = &self.loaded.image;
        let address = index * WORD;
        let first = image.line_at(address).map(|line| line.location.line);
        let function = |address: u32| image.function_at(address).map(|function| function.address);
        let from = image.lines.partition_point(|line| line.address <= address);
        let behind = image.lines[from..].iter().find(|line| {
            let of_line = line.location.line;
            of_line != 0 && Some(of_line) != first && line.location.inlined == 0
        });
        let behind = behind.filter(|line| function(line.address) == function(address));
        behind.map_or(index, |line| line.address / WORD)
    }

    /// Whether a file of the source has this name, or, if none has, ends with it. Without a name it is any of those
    /// whose names are not absolute, since other packages have those; or just any if there are only those.
    fn is_in(&self, number: u32, wanted: Option<&str>) -> bool {
        let files = &self.loaded.image.files;
        let is_own = |name: &str| !name.starts_with(['/', '<']);
        let Some(name) = crate::locations::name_of(files, number) else {
            return wanted.is_none();
        };
        let Some(wanted) = wanted else {
            return is_own(name) || !files.iter().any(|name| is_own(name));
        };
        let wanted = wanted.trim_start_matches("./");
        if files.iter().any(|name| name == wanted) {
            return name == wanted;
        }
        name.strip_suffix(wanted)
            .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
    }
}
