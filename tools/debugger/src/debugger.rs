//! A session, the thread that somebody looks at, and what is told of both.

use super::command::{Command, HELP};
use super::operand::COMPARISONS;
use cranelift_codegen::ir::{Type, types};
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::locations::Location;
use cranelift_thisgpu::sim::debug::{
    Datum, GroupView, Operand, Place, Session, Space, Stop, Thread, VariableView, WaitView, Watch,
    Watched,
};
use cranelift_thisgpu::values::SourceValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Lanes of a warp.
const LANES: u32 = 32;
/// Lanes in a line of values.
const IN_LINE: usize = 8;
/// Bytes in a line of memory.
const BYTES_IN_LINE: usize = 16;
/// Warps that `warps` shows, at most.
const SHOWN: usize = 64;

/// The files that were compiled.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Texts by their names; others are read where they are.
    texts: BTreeMap<String, String>,
    /// What names that are not absolute begin in; the current directory unless said.
    folder: PathBuf,
}

impl Sources {
    /// Texts by the names that code has for them.
    pub fn of_texts(texts: BTreeMap<String, String>) -> Sources {
        Sources {
            texts,
            folder: PathBuf::new(),
        }
    }

    /// Files whose names begin in this folder.
    pub fn in_folder(folder: PathBuf) -> Sources {
        Sources {
            texts: BTreeMap::new(),
            folder,
        }
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.join(name);
        std::path::absolute(&path).unwrap_or(path)
    }

    /// What stands in a file, if it is there.
    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.texts.get(name) {
            Some(text) => Some(text.into()),
            None => Some(fs::read_to_string(self.path(name)).ok()?.into()),
        }
    }
}

/// A session that somebody looks at.
pub struct Debugger {
    pub(crate) session: Session,
    /// Whom commands are about.
    pub(crate) thread: Thread,
    /// Of functions that are inlined into each other, which one is looked at; 0 is the innermost.
    pub(crate) frame: u32,
    /// The files that were compiled.
    sources: Sources,
    /// It has the memory that the session works on.
    _device: Device,
    /// What kernels have printed so far.
    output: Option<Output>,
}

/// Tells what kernels have printed so far.
pub type Output = Box<dyn Fn() -> Result<String, String>>;

impl Debugger {
    /// A session at its beginning, whose memory is that of a device.
    pub fn new(session: Session, device: Device, sources: Sources) -> Debugger {
        let thread = Thread {
            block: 0,
            thread: 0,
        };
        Debugger {
            session,
            thread,
            frame: 0,
            sources,
            _device: device,
            output: None,
        }
    }

    /// With what tells of the kernels' output.
    pub fn with_output(mut self, output: Output) -> Debugger {
        self.output = Some(output);
        self
    }

    /// What kernels have printed so far.
    fn printed(&self) -> Result<String, String> {
        match &self.output {
            Some(output) => output(),
            None => Ok(String::new()),
        }
    }

    /// Does what a command says; what there is to tell, or what is wrong.
    pub fn run(&mut self, command: Command) -> Result<String, String> {
        let thread = self.thread;
        if command.goes_on() && !matches!(command, Command::Next(_)) {
            self.frame = 0;
        }
        Ok(match command {
            Command::Break(breakpoint) => {
                let asked = breakpoint.place.clone();
                let id = self.session.add_breakpoint(breakpoint)?;
                let (place, addresses) = (self.set_place(id, &asked), self.addresses(id));
                format!("breakpoint {id} at {place}: pc {}", hexadecimal(&addresses))
            }
            Command::Watch(watchpoint) => {
                format!("watchpoint {}", self.session.add_watchpoint(watchpoint)?)
            }
            Command::Delete(id) => match self.session.remove(id) {
                true => format!("{id} is deleted"),
                false => return Err(format!("there is no breakpoint or watchpoint {id}")),
            },
            Command::Points => self.points(),
            Command::Step(times) => self.repeat(times, |s| s.session.step_into(thread)),
            Command::Next(times) => self.repeat(times, |s| s.step_over(thread)),
            Command::Instruction(times) => {
                self.repeat(times, |s| s.session.step_instruction(thread))
            }
            Command::Finish => self.repeat(1, |s| s.session.finish(thread)),
            Command::Continue => self.repeat(1, |s| s.session.resume()),
            Command::Back(times) => self.repeat(times, |s| s.session.step_instruction_back(thread)),
            Command::ContinueBack => self.repeat(1, |s| s.session.resume_back()),
            Command::GoTo(position) => self.repeat(1, |s| s.session.go_to(position)),
            Command::Thread(thread) => {
                self.thread = thread;
                self.frame = 0;
                self.here()
            }
            Command::Warps => self.warps(),
            Command::Lanes(operand) => self.lanes(&operand)?,
            Command::Print(Operand::Variable(path)) => {
                let datum = self.session.datum(thread, self.frame, &path)?;
                self.described(&path.to_string(), &datum)
            }
            Command::Print(operand) => {
                let value = self.value(&operand)?;
                let ty = self.type_of(thread, &operand);
                format!("{} = {}", name(&operand), shown(value, ty))
            }
            Command::Registers => self.registers()?,
            Command::Values => self.values(),
            Command::Locals(frame) => self.locals(frame.unwrap_or(self.frame))?,
            Command::Frame(frame) => self.look_at(frame)?,
            Command::Up => self.look_at(self.frame.saturating_add(1))?,
            Command::Down => match self.frame.checked_sub(1) {
                Some(frame) => self.look_at(frame)?,
                None => return Err("this is the innermost function".to_owned()),
            },
            Command::Where => self.frames(),
            Command::Disassemble(address, count) => self.disassemble(address, count)?,
            Command::Memory(space, address, bytes) => {
                dump(address, &self.session.read(space, address, bytes)?)
            }
            Command::Set(register, value) => {
                match self.session.set_register(thread, register, value) {
                    true => format!("R{register} = {value:#x}"),
                    false => return Err(self.absent()),
                }
            }
            Command::Output => match self.printed()? {
                text if text.is_empty() => "nothing was printed".to_owned(),
                text => text.trim_end().to_owned(),
            },
            Command::Help => help(),
            Command::Quit => String::new(),
        })
    }

    /// The code addresses of a breakpoint.
    fn addresses(&self, id: u32) -> Vec<u32> {
        let found = self.session.breakpoints().find(|point| point.0 == id);
        found.map_or(Vec::new(), |(_, _, addresses)| addresses)
    }

    /// Where a breakpoint stands: a line that has no code has given way to the next one.
    pub fn set_place(&self, id: u32, asked: &Place) -> Place {
        let addresses = self.addresses(id);
        let image = self.session.image();
        let places = addresses.first().map(|address| image.places_at(*address));
        match asked {
            Place::Line { file, line } => {
                let lines = places.iter().flatten().map(|place| place.line);
                let set = lines.filter(|set| set >= line).min();
                Place::Line {
                    file: file.clone(),
                    line: set.unwrap_or(*line),
                }
            }
            other => other.clone(),
        }
    }

    /// Looks at another one of the functions that are inlined into each other.
    fn look_at(&mut self, frame: u32) -> Result<String, String> {
        let count = self.places().len() as u32;
        if frame >= count {
            return Err(format!(
                "there are {count} functions inlined into each other here"
            ));
        }
        self.frame = frame;
        Ok(self.here())
    }

    /// Of the functions that are inlined into each other where a breakpoint has stopped, the one that it is set in.
    fn frame_of(&self, id: u32) -> Option<u32> {
        let asked = self.session.breakpoints().find(|point| point.0 == id)?;
        let found = match self.set_place(id, &asked.1.place) {
            Place::Line { line, .. } => self.places().iter().position(|place| place.line == line),
            Place::Function(name) => {
                let names = self.session.scope_names(self.thread);
                let is_called = |of: &String| *of == name || of.split('<').next() == Some(&name);
                names.iter().position(is_called)
            }
            Place::Address(_) => None,
        };
        Some(found? as u32)
    }

    /// The place of the thread, and those of the calls that were inlined around it.
    fn places(&self) -> Vec<Location> {
        let place = self.session.place(self.thread);
        place.map_or(Vec::new(), |place| self.session.image().places_at(place.pc))
    }

    /// A step to the next line of the function that is looked at, and stays there.
    pub fn step_over(&mut self, thread: Thread) -> Stop {
        if std::mem::replace(&mut self.thread, thread) != thread {
            self.frame = 0;
        }
        let outer = (self.places().len() as u32).saturating_sub(self.frame);
        let stop = self.session.step_over(thread, self.frame);
        self.frame = match (&stop, outer) {
            (Stop::Step, 1..) => (self.places().len() as u32).saturating_sub(outer),
            _ => 0,
        };
        stop
    }

    /// Does something several times, or until it stops for another reason.
    fn repeat(&mut self, times: u64, mut step: impl FnMut(&mut Self) -> Stop) -> String {
        let mut stop = Stop::Step;
        for _ in 0..times {
            stop = step(self);
            if stop != Stop::Step {
                break;
            }
        }
        self.arrived(&stop)
    }

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
            Stop::Fault(fault) => {
                let accesses = self.accesses();
                return format!("fault: {fault}\n{}{accesses}", self.excerpt())
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

    fn watched(&self, watched: &Watched) -> String {
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
    fn here(&self) -> String {
        let Thread { block, thread } = self.thread;
        let Some(place) = self.session.place(self.thread) else {
            return format!("thread {thread} of block {block} does not run");
        };
        let names = self.session.scope_names(self.thread);
        let name = names.get(self.frame as usize).filter(|_| self.frame > 0);
        let looked_at = name.map_or(String::new(), |name| format!("\nin {name}"));
        let text = format!("{place}{looked_at}\n{}", self.excerpt());
        text.trim_end().to_owned()
    }

    /// The line of the source that is looked at.
    fn excerpt(&self) -> String {
        let line = || {
            let location = *self.places().get(self.frame as usize)?;
            let file = location.file.checked_sub(1)?;
            let file = self.session.image().files.get(file as usize)?;
            let text = self.sources.text(file)?;
            let text = text.lines().nth((location.line as usize).checked_sub(1)?)?;
            Some(format!("{:>5} | {text}", location.line))
        };
        line().unwrap_or_default()
    }

    /// The addresses that the lanes of the thread's instruction access.
    fn accesses(&mut self) -> String {
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

    fn points(&self) -> String {
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

    fn warps(&mut self) -> String {
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

    /// What is told where a thread has no registers.
    fn absent(&self) -> String {
        let Thread { block, thread } = self.thread;
        format!("thread {thread} of block {block} does not run, or there is no such register")
    }

    /// A register or a value of the thread that is looked at.
    pub fn value(&self, operand: &Operand) -> Result<u128, String> {
        let value = self.session.value(self.thread, operand);
        value.ok_or_else(|| match operand {
            Operand::Source(value) => self.not_available(*value),
            Operand::Variable(path) => format!("{path} is not available here, or no number"),
            _ => self.absent(),
        })
    }

    /// Where the files of the source are.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// A datum with a name for it.
    fn described(&self, name: &str, datum: &Datum) -> String {
        let (ty, text) = (
            self.session.type_name(datum),
            self.session.text(self.thread, datum),
        );
        match ty {
            "" => format!("{name} = {text}"),
            ty => format!("{name}: {ty} = {text}"),
        }
    }

    /// The variables of a function that is inlined into so many others, in the order in which they are declared.
    pub fn variables(&self, thread: Thread, frame: u32) -> Vec<VariableView> {
        let views = self.session.variables(thread).into_iter();
        let mut views: Vec<VariableView> = views.filter(|view| view.frame == frame).collect();
        views.reverse();
        views
    }

    /// The variables of a function that is inlined into so many others; without any, the values of the CLIF.
    fn locals(&self, frame: u32) -> Result<String, String> {
        let names = self.session.scope_names(self.thread);
        if names.is_empty() {
            return Ok(self.values());
        }
        let Some(name) = names.get(frame as usize) else {
            return Err(format!(
                "there are {} functions here: {}",
                names.len(),
                names.join(", ")
            ));
        };
        let views = self.variables(self.thread, frame).into_iter();
        let lines: Vec<String> = views
            .map(|view| self.described(&view.name, &view.datum))
            .collect();
        Ok(match lines.is_empty() {
            true => format!("{name} has no variables here"),
            false => lines.join("\n"),
        })
    }

    /// Why a value of the source cannot be shown.
    fn not_available(&self, value: SourceValue) -> String {
        let values = self.session.source_values(self.thread);
        if self.session.place(self.thread).is_none() {
            self.absent()
        } else if values.is_empty() {
            "the code does not say where values are; compile it with --set value_locations=true"
                .to_owned()
        } else {
            format!("{value} is not available here")
        }
    }

    /// The CLIF type of a value of the source.
    pub fn type_of(&self, thread: Thread, operand: &Operand) -> Option<Type> {
        let Operand::Source(value) = *operand else {
            return None;
        };
        let values = self.session.source_values(thread);
        let found = values.iter().find(|found| found.source == value)?;
        found.clif_type()
    }

    /// All values of the source that can be shown.
    fn values(&self) -> String {
        let values = self.session.source_values(self.thread).iter();
        let lines = values.filter_map(|found| {
            let operand = Operand::Source(found.source);
            let value = self.session.value(self.thread, &operand)?;
            Some(format!(
                "{}: {} = {}",
                found.source,
                found.ty,
                shown(value, found.clif_type())
            ))
        });
        let lines: Vec<String> = lines.collect();
        match lines.is_empty() {
            true => "none are available here".to_owned(),
            false => lines.join("\n"),
        }
    }

    /// A register, value or variable in all lanes of a warp.
    fn lanes(&self, operand: &Operand) -> Result<String, String> {
        let first = self.thread.thread - self.thread.lane() as u32;
        let registers = self.session.register(self.thread, 0);
        let live = registers.ok_or_else(|| self.absent())?.live;
        let mut texts: Vec<Option<String>> = Vec::new();
        for lane in 0..LANES {
            let thread = Thread {
                thread: first + lane,
                ..self.thread
            };
            let text = match operand {
                Operand::Variable(path) => {
                    let datum = self.session.datum(thread, self.frame, path);
                    datum.ok().map(|datum| self.session.text(thread, &datum))
                }
                _ => {
                    let value = self.session.value(thread, operand);
                    value.map(|value| format!("{value:#x}"))
                }
            };
            if text.is_none() && !matches!(operand, Operand::Source(_) | Operand::Variable(_)) {
                return Err(self.absent());
            }
            texts.push(text.filter(|_| live >> lane & 1 != 0));
        }
        let widest = texts
            .iter()
            .flatten()
            .map(|text| text.chars().count())
            .max();
        let (width, in_line) = match widest.unwrap_or(1) {
            ..=10 => (10, IN_LINE),
            // What is long has a line of its own.
            _ => (1, 1),
        };
        let mut text = String::new();
        for (lane, value) in texts.iter().enumerate() {
            if lane.is_multiple_of(in_line) {
                let _ = write!(text, "{}{lane:>2}:", if lane == 0 { "" } else { "\n" });
            }
            let value = value.as_deref().unwrap_or("-");
            let _ = write!(text, " {value:>width$}");
        }
        Ok(text)
    }

    fn registers(&self) -> Result<String, String> {
        let mut text = String::new();
        for number in 0..self.session.registers() {
            let value = self.value(&Operand::Register(number))?;
            if value != 0 {
                let _ = writeln!(text, "R{number} = {value:#x}");
            }
        }
        for number in 0..Operand::PREDICATES {
            if self.value(&Operand::Predicate(number))? != 0 {
                let _ = writeln!(text, "P{number} is true");
            }
        }
        for number in 0..Operand::UNIFORM {
            let value = self.value(&Operand::Uniform(number))?;
            if value != 0 {
                let _ = writeln!(text, "UR{number} = {value:#x}");
            }
        }
        Ok(text + "all others are 0")
    }

    fn frames(&self) -> String {
        let mut text = self.here();
        let names = self.session.scope_names(self.thread);
        if let Some((innermost, outer)) = names.split_first() {
            let _ = write!(text, "\n  in {innermost}");
            for name in outer {
                let _ = write!(text, ", inlined into {name}");
            }
        }
        for frame in self.session.frames(self.thread) {
            let _ = write!(text, "\n  called from {frame}");
        }
        text
    }

    fn disassemble(&self, address: Option<u32>, count: usize) -> Result<String, String> {
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

/// A mask as 32 signs, lane 0 first.
fn mask(lanes: u32) -> String {
    let sign = |lane| if lanes >> lane & 1 == 0 { '.' } else { '#' };
    (0..LANES).map(sign).collect()
}

fn hexadecimal(addresses: &[u32]) -> String {
    let texts: Vec<String> = addresses
        .iter()
        .map(|address| format!("{address:#x}"))
        .collect();
    texts.join(", ")
}

/// A register as assembly text has it.
pub fn name(operand: &Operand) -> String {
    match operand {
        Operand::Register(number) => format!("R{number}"),
        Operand::Pair(number) => format!("R[{number}:{}]", u32::from(*number) + 1),
        Operand::Predicate(number) => format!("P{number}"),
        Operand::Uniform(number) => format!("UR{number}"),
        Operand::Source(value) => value.to_string(),
        Operand::Variable(path) => path.to_string(),
    }
}

/// A value as its type says, and its bits.
pub fn shown(value: u128, ty: Option<Type>) -> String {
    let float = match ty {
        Some(types::F16) => Some(f64::from(half::f16::from_bits(value as u16))),
        Some(types::F32) => Some(f64::from(f32::from_bits(value as u32))),
        Some(types::F64) => Some(f64::from_bits(value as u64)),
        _ => None,
    };
    match (float, ty) {
        (Some(float), _) => format!("{value:#x} ({float})"),
        (None, Some(ty)) if ty.is_int() && value >> (ty.bits() - 1) & 1 != 0 => {
            let signed = value.wrapping_sub(1u128.checked_shl(ty.bits()).unwrap_or(0)) as i128;
            format!("{value:#x} ({value}, {signed})")
        }
        _ => format!("{value:#x} ({value})"),
    }
}

/// Bytes in lines, with their addresses.
fn dump(address: u64, bytes: &[u8]) -> String {
    let lines = bytes
        .chunks(BYTES_IN_LINE)
        .enumerate()
        .map(|(index, line)| {
            let texts: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let address = address.wrapping_add((index * BYTES_IN_LINE) as u64);
            format!("{address:#x}: {}", texts.join(" "))
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn help() -> String {
    let lines = HELP.iter().map(|(name, operands, what)| {
        let written = format!("{name} {operands}");
        format!("{:<52} {what}", written.trim_end())
    });
    lines.collect::<Vec<_>>().join("\n")
}
