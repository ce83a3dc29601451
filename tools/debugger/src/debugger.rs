//! A session and the thread that somebody looks at: it does what commands say.

mod data;
mod stops;

pub use stops::named;

use crate::command::Command;
use crate::sources::Sources;
use crate::text::{dump, help, hexadecimal, name, shown};
use cranelift_thisgpu::Fault;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::locations::Location;
use cranelift_thisgpu::sim::debug::{FrameId, Operand, Place, Session, Stop, Thread};

/// A session that somebody looks at.
pub struct Debugger {
    pub(crate) session: Session,
    /// Whom commands are about.
    pub(crate) thread: Thread,
    /// Which of the functions that the thread is in is looked at; 0 is the innermost.
    pub(crate) frame: u32,
    /// The files that were compiled.
    sources: Sources,
    /// It has the memory that the session works on.
    _device: Device,
    /// What the kernels' library knows.
    library: Option<Box<dyn Library>>,
    /// The last fault or finding, until the launch goes on.
    pub(crate) exception: Option<Exception>,
}

/// What the library that kernels were compiled with writes to memory for the host.
pub trait Library {
    /// What kernels have printed so far.
    ///
    /// # Errors
    /// Memory that cannot be read, in words.
    fn output(&self) -> Result<String, String>;

    /// What a launch would say of a fault, if that is a panic.
    ///
    /// # Errors
    /// Memory that cannot be read, in words.
    fn panic(&self, fault: &Fault) -> Result<Option<String>, String>;
}

/// Why a launch stands that does not go on as it should.
#[derive(Clone, Debug, Default)]
pub struct Exception {
    /// What kind that is: `fault`, `panic` or `finding`.
    pub kind: &'static str,
    /// What there is to say.
    pub text: String,
}

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
            library: None,
            exception: None,
        }
    }

    /// With what the kernels' library knows.
    pub fn with_library(mut self, library: Box<dyn Library>) -> Debugger {
        self.library = Some(library);
        self
    }

    /// What kernels have printed so far.
    fn printed(&self) -> Result<String, String> {
        (self.library.as_ref()).map_or_else(|| Ok(String::new()), |library| library.output())
    }

    /// Does what a command says; what there is to tell, or what is wrong.
    pub fn run(&mut self, command: Command) -> Result<String, String> {
        let thread = self.thread;
        if command.goes_on() && !matches!(command, Command::Next(_) | Command::Finish) {
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
            Command::Finish => self.repeat(1, |s| {
                let frame = std::mem::take(&mut s.frame);
                let call = s.frame_id(frame).call;
                s.session.finish(thread, call)
            }),
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
                let frame = self.frame_id(self.frame);
                let datum = self.session.datum(thread, frame, &path)?;
                self.described(&path.to_string(), &datum)
            }
            Command::Print(operand) => {
                let value = self.value(&operand)?;
                let ty = self.type_of(thread, self.frame_id(self.frame).call, &operand);
                format!("{} = {}", name(&operand), shown(value, ty))
            }
            Command::Registers => self.registers()?,
            Command::Values => self.values(),
            Command::Locals(frame) => self.locals(frame.unwrap_or(self.frame))?,
            Command::Statics => self.statics(),
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

    /// Looks at another one of the functions that the thread is in.
    fn look_at(&mut self, frame: u32) -> Result<String, String> {
        match self.session.stack(self.thread).len() {
            0 => return Err(self.absent()),
            1 if frame > 0 => return Err("the thread is in one function here".to_owned()),
            count if frame as usize >= count => {
                return Err(format!("the thread is in {count} functions here"));
            }
            _ => self.frame = frame,
        }
        Ok(self.here())
    }

    /// Which function the one of this number is.
    pub(crate) fn frame_id(&self, frame: u32) -> FrameId {
        let stack = self.session.stack(self.thread);
        let found = stack.get(frame as usize);
        found.map_or(FrameId::default(), |frame| frame.id)
    }

    /// Of the functions that are inlined into each other where a breakpoint has stopped, the one that it is set in.
    fn frame_of(&self, id: u32) -> Option<u32> {
        let asked = self.session.breakpoints().find(|point| point.0 == id)?;
        let found = match self.set_place(id, &asked.1.place) {
            Place::Line { line, .. } => self.places().iter().position(|place| place.line == line),
            Place::Function(name) => {
                let names = self.session.scope_names(self.thread, 0);
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
        let outer = self
            .session
            .stack(thread)
            .len()
            .saturating_sub(self.frame as usize);
        let stop = self.session.step_over(thread, self.frame_id(self.frame));
        self.frame = match (&stop, outer) {
            (Stop::Step, 1..) => self.session.stack(thread).len().saturating_sub(outer) as u32,
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

    /// Where the files of the source are.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }
}
