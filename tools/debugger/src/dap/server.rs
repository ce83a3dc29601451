//! What each request is answered with.

use super::origin::Origin;
use super::transport::{Incoming, Request};
use crate::command::code_place;
use crate::debugger::{Debugger, Exception, named};
use crate::operand::number;
use cranelift_thisgpu::sim::debug::{Datum, FrameId, Pause, Place, Space, Stop, Thread};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;

/// Threads of a block, at most: what the numbers of threads count in.
const IN_BLOCK: i64 = 1024;
/// Frames of a thread, at most.
const DEPTH: usize = 512;
/// Threads that are told of, at most (assigned): a client shows no more.
const MOST_THREADS: usize = 4096;
/// Lanes of a warp.
pub(super) const LANES: u32 = 32;

/// A session with a client.
pub struct Server {
    pub(super) debugger: Debugger,
    pub(super) origin: Origin,
    /// Messages that were sent.
    sent: i64,
    stops_on_entry: bool,
    /// Whether lanes are threads, not warps.
    has_lanes: bool,
    is_over: bool,
    /// Whether the launch stands at its end, and the client knows.
    is_at_end: bool,
    /// What the client's references stand for until the launch goes on, from 1.
    handles: Vec<Handle>,
    /// The breakpoints that the client has set, by where it has.
    pub(super) set: Vec<(Kind, u32)>,
}

/// What a reference stands for.
#[derive(Clone, Debug)]
pub(super) enum Handle {
    /// A function that a thread is in, and whether the front end has told of its variables.
    Frame(Thread, FrameId, bool),
    /// A scope of it.
    Scope(Thread, FrameId, Scope),
    /// A general register in all lanes of its warp.
    Lanes(Thread, u8),
    /// A variable or a part of one, with how it is written.
    Datum(Thread, String, Datum),
}

/// What of a thread is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Variables of a frame.
    Locals,
    /// Static variables.
    Statics,
    Values,
    Registers,
    Predicates,
    Uniform,
    AllLanes,
}

/// How a client sets breakpoints: each kind, and each file, all at once.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Source(String),
    Function,
    Instruction,
    Data,
}

/// What lets the launch go on.
type Going = Box<dyn FnOnce(&mut Debugger) -> Stop>;

/// Sends a message.
pub(super) type Send<'a> = dyn FnMut(&Value) -> io::Result<()> + 'a;

/// An answer's body, or what is wrong.
pub(super) type Answer = Result<Value, String>;

impl Server {
    /// For a client that so many messages were sent to.
    pub fn new(debugger: Debugger, origin: Origin, sent: i64) -> Server {
        Server {
            debugger,
            origin,
            sent,
            stops_on_entry: true,
            has_lanes: false,
            is_over: false,
            is_at_end: false,
            handles: Vec::new(),
            set: Vec::new(),
        }
    }

    /// Whether the client has ended the session.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Sends the answer to a message, and the events that follow.
    ///
    /// # Errors
    /// When nobody reads them.
    pub fn answer(&mut self, message: Incoming, send: &mut Send<'_>) -> io::Result<()> {
        let request = match message {
            Incoming::Request(request) => request,
            Incoming::Malformed(seq, text) => {
                let answer = self.response(seq, "", Err(text));
                return send(&answer);
            }
        };
        let mut events = Vec::new();
        let Request { seq, command, .. } = &request;
        match self.going(&request) {
            Some(Ok(go)) => {
                // The client knows that the launch goes on before it stands again.
                let body = json!({"allThreadsContinued": true});
                let answer = self.response(*seq, command, Ok(body));
                send(&answer)?;
                if command != "next" {
                    self.debugger.frame = 0;
                }
                let stop = go(&mut self.debugger);
                events.extend(self.stopped(&stop));
            }
            Some(Err(text)) => {
                let answer = self.response(*seq, command, Err(text));
                send(&answer)?;
            }
            None => {
                let answer = self.body(&request, &mut events);
                let answer = self.response(*seq, command, answer);
                send(&answer)?;
            }
        }
        for (event, body) in events {
            let event = self.event(event, body);
            send(&event)?;
        }
        Ok(())
    }

    /// What asks the launch to stand still.
    pub fn pause(&self) -> Pause {
        self.debugger.session.pause()
    }

    /// Tells a client that has asked for the launch that it may set breakpoints.
    ///
    /// # Errors
    /// When nobody reads it.
    pub fn is_launched(&mut self, send: &mut Send<'_>) -> io::Result<()> {
        let event = self.event("initialized", json!({}));
        send(&event)
    }

    fn response(&mut self, seq: i64, command: &str, answer: Answer) -> Value {
        self.sent += 1;
        response(self.sent, seq, command, answer)
    }

    fn event(&mut self, event: &str, body: Value) -> Value {
        self.sent += 1;
        json!({"seq": self.sent, "type": "event", "event": event, "body": body})
    }

    /// What a request does to the launch, if it lets it go on.
    fn going(&mut self, request: &Request) -> Option<Result<Going, String>> {
        let arguments = &request.arguments;
        let by_instruction = arguments["granularity"] == "instruction";
        let thread = match arguments["threadId"].as_i64() {
            Some(id) => self.shown(id),
            None => Ok(self.debugger.thread),
        };
        let on_thread = |step: fn(&mut Debugger, Thread) -> Stop| -> Result<Going, String> {
            let thread = thread.clone()?;
            Ok(Box::new(move |debugger: &mut Debugger| {
                step(debugger, thread)
            }))
        };
        Some(match request.command.as_str() {
            "continue" => Ok(Box::new(|debugger| debugger.session.resume())),
            "reverseContinue" => Ok(Box::new(|debugger| debugger.session.resume_back())),
            "next" | "stepIn" if by_instruction => on_thread(|d, t| d.session.step_instruction(t)),
            "next" => on_thread(Debugger::step_over),
            "stepIn" => on_thread(|d, t| d.session.step_into(t)),
            "stepOut" => on_thread(|d, t| d.session.finish(t, 0)),
            "stepBack" => on_thread(|d, t| d.session.step_instruction_back(t)),
            "configurationDone" if !self.stops_on_entry => {
                Ok(Box::new(|debugger| debugger.session.resume()))
            }
            _ => return None,
        })
    }

    /// The events that tell where the launch stands.
    fn stopped(&mut self, stop: &Stop) -> Vec<(&'static str, Value)> {
        let text = self.debugger.arrived(stop);
        self.handles.clear();
        let (reason, ids) = match stop {
            Stop::Beginning => ("entry", vec![]),
            Stop::Step => ("step", vec![]),
            Stop::Breakpoint { id, .. } => ("breakpoint", vec![*id]),
            Stop::Watchpoint(watched) => {
                let ids = watched.iter().map(|watched| watched.id).collect();
                ("data breakpoint", ids)
            }
            Stop::Paused => ("pause", vec![]),
            Stop::Fault(_) | Stop::Finding(_) => ("exception", vec![]),
            // The end can be gone back from; who goes on there ends the session.
            Stop::End if !self.is_at_end => ("pause", vec![]),
            Stop::End => {
                let report = self.debugger.session.report();
                let failed = report.fault.is_some() || !report.findings.is_empty();
                let exited = json!({"exitCode": i32::from(failed)});
                return vec![("exited", exited), ("terminated", json!({}))];
            }
        };
        self.is_at_end = *stop == Stop::End;
        let body = json!({
            "reason": reason, "description": text, "text": text, "allThreadsStopped": true,
            "threadId": self.thread_id(self.debugger.thread), "hitBreakpointIds": ids,
        });
        vec![("stopped", body)]
    }

    /// The number of a thread: that of its warp, where warps are threads.
    fn thread_id(&self, thread: Thread) -> i64 {
        let number = match self.has_lanes {
            true => thread.thread,
            // The lane that was stopped is the one that is shown.
            false => thread.thread - thread.thread % LANES,
        };
        thread.block as i64 * IN_BLOCK + i64::from(number) + 1
    }

    /// A new reference.
    pub(super) fn handle(&mut self, handle: Handle) -> usize {
        self.handles.push(handle);
        self.handles.len()
    }

    /// What a reference stands for.
    pub(super) fn handle_of(&self, reference: &Value) -> Result<Handle, String> {
        let index = reference
            .as_u64()
            .and_then(|reference| reference.checked_sub(1));
        let handle = index.and_then(|index| self.handles.get(usize::try_from(index).ok()?));
        handle
            .cloned()
            .ok_or_else(|| format!("there is nothing with the reference {reference}"))
    }

    /// The thread that is shown for a number: of a warp the one that is looked at, or its first that has not ended.
    fn shown(&mut self, id: i64) -> Result<Thread, String> {
        let asked = thread_of(id)?;
        if self.has_lanes {
            return Ok(asked);
        }
        let now = self.debugger.thread;
        if now.block == asked.block && now.warp() == asked.warp() {
            return Ok(now);
        }
        let warps = self.debugger.session.warps();
        let warp = warps
            .iter()
            .find(|warp| warp.block == asked.block && warp.warp == asked.warp() && warp.live != 0);
        let warp = warp.ok_or_else(|| format!("thread {id} has ended"))?;
        Ok(Thread {
            block: asked.block,
            thread: warp.warp * LANES + warp.live.trailing_zeros(),
        })
    }

    /// The body of an answer.
    fn body(&mut self, request: &Request, events: &mut Vec<(&'static str, Value)>) -> Answer {
        let arguments = &request.arguments;
        match request.command.as_str() {
            "initialize" => {
                self.origin = Origin::asked(arguments);
                events.push(("initialized", json!({})));
                Ok(capabilities())
            }
            "launch" | "attach" => {
                self.stops_on_entry = arguments["stopOnEntry"].as_bool().unwrap_or(true);
                self.has_lanes = arguments["threads"] == "lanes";
                Ok(Value::Null)
            }
            "configurationDone" => {
                events.extend(self.stopped(&Stop::Beginning));
                Ok(Value::Null)
            }
            "disconnect" | "terminate" => {
                self.is_over = true;
                Ok(Value::Null)
            }
            "pause" => {
                // It stands already.
                self.debugger.session.pause().clear();
                Ok(Value::Null)
            }
            "threads" => Ok(self.threads()),
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments),
            "setVariable" => self.set_variable(arguments),
            "evaluate" => self.evaluate(arguments),
            "setBreakpoints" => {
                let file = arguments["source"]["path"].as_str();
                let file = file
                    .or(arguments["source"]["name"].as_str())
                    .ok_or("no source")?;
                let name = Path::new(file)
                    .file_name()
                    .map_or(file.into(), |f| f.to_string_lossy());
                // The file that stands there, or else whichever has the name.
                let asked = fs::canonicalize(file).ok();
                let is_it = |name: &&String| {
                    let path = fs::canonicalize(self.debugger.sources().path(name)).ok();
                    path.is_some() && path == asked
                };
                let files = &self.debugger.session.image().files;
                let found = files.iter().find(is_it);
                let name = found.map_or_else(|| name.into_owned(), String::clone);
                let origin = self.origin;
                let place = |asked: &Value| {
                    Ok(Place::Line {
                        file: Some(name.clone()),
                        line: origin.line_of(&asked["line"])?,
                    })
                };
                self.set_breakpoints(Kind::Source(file.to_owned()), arguments, &place)
            }
            "setFunctionBreakpoints" => self.set_breakpoints(Kind::Function, arguments, &|asked| {
                code_place(asked["name"].as_str().ok_or("no name")?)
            }),
            "setInstructionBreakpoints" => {
                self.set_breakpoints(Kind::Instruction, arguments, &|asked| {
                    let reference = asked["instructionReference"]
                        .as_str()
                        .ok_or("no reference")?;
                    let offset = asked["offset"].as_i64().unwrap_or(0);
                    let address = number(reference)?.checked_add_signed(offset);
                    let address = address.and_then(|address| u32::try_from(address).ok());
                    Ok(Place::Address(address.ok_or("no such address")?))
                })
            }
            "dataBreakpointInfo" => self.data_information(arguments),
            "setDataBreakpoints" => self.set_data_breakpoints(arguments),
            "setExceptionBreakpoints" => Ok(json!({"breakpoints": []})),
            "exceptionInfo" => self.exception(),
            "readMemory" => self.read_memory(arguments),
            "disassemble" => self.disassemble(arguments),
            "source" => Err("unsupported: sources are files".to_owned()),
            other => Err(format!("unsupported: {other}")),
        }
    }

    /// What is wrong where the launch stands.
    fn exception(&self) -> Answer {
        let exception = self.debugger.exception.as_ref();
        let exception = exception.ok_or("the launch does not stand at a fault or a finding")?;
        let Exception { kind, text } = exception;
        Ok(json!({
            "exceptionId": kind, "description": text, "breakMode": "always",
            "details": {"message": text, "typeName": kind},
        }))
    }

    fn threads(&mut self) -> Value {
        let mut threads = Vec::new();
        for warp in self.debugger.session.warps() {
            let [x, y, z] = warp.coordinates;
            let first = Thread {
                block: warp.block,
                thread: warp.warp * LANES,
            };
            let lanes = match self.has_lanes {
                true => (0..LANES)
                    .filter(|lane| warp.live >> lane & 1 != 0)
                    .collect(),
                false if warp.live == 0 => Vec::new(),
                false => vec![0],
            };
            for lane in lanes {
                let thread = Thread {
                    thread: first.thread + lane,
                    ..first
                };
                let name = match self.has_lanes {
                    true => format!("block ({x},{y},{z}), thread {}", thread.thread),
                    false => format!("block ({x},{y},{z}), warp {}", warp.warp),
                };
                threads.push(json!({"id": self.thread_id(thread), "name": name}));
            }
            if threads.len() >= MOST_THREADS {
                break;
            }
        }
        // A client wants one, also of a launch that has ended.
        if threads.is_empty() {
            threads.push(json!({"id": 1, "name": "no block runs"}));
        }
        json!({"threads": threads})
    }

    fn stack(&mut self, arguments: &Value) -> Answer {
        let id = arguments["threadId"].as_i64().ok_or("no thread")?;
        let thread = self.shown(id)?;
        let session = &self.debugger.session;
        // A step over lines stays in its function: what is inlined at the line is gone into by the next step.
        let stack = session.stack(thread);
        let looked_at = self.debugger.frame as usize;
        let is_inside = stack.get(looked_at).is_some_and(|frame| frame.id.call == 0);
        let hidden = match self.debugger.thread == thread && is_inside {
            true => looked_at,
            false => 0,
        };
        let mut handles = std::mem::take(&mut self.handles);
        let mut frames: Vec<Value> = Vec::new();
        // What was inlined is a frame of its own, inside that of the call.
        for frame in stack.into_iter().skip(hidden) {
            handles.push(Handle::Frame(thread, frame.id, frame.name.is_some()));
            let (pc, location) = (frame.pc, frame.location);
            let mut told = json!({
                "id": handles.len(), "name": named(&frame),
                "line": self.origin.line(location.line), "column": self.origin.column(location.column),
                "instructionPointerReference": format!("{pc:#x}"),
            });
            let file = location.file.checked_sub(1);
            if let Some(file) = file.and_then(|file| session.image().files.get(file as usize)) {
                let path = self.debugger.sources().path(file);
                let name = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                told["source"] = json!({"name": name, "path": path});
            }
            frames.push(told);
        }
        frames.truncate(DEPTH);
        self.handles = handles;
        let start = arguments["startFrame"].as_u64().unwrap_or(0) as usize;
        let most = arguments["levels"].as_u64().filter(|&levels| levels != 0);
        let most = most.unwrap_or(u64::MAX) as usize;
        let total = frames.len();
        let shown: Vec<Value> = frames.into_iter().skip(start).take(most).collect();
        Ok(json!({"stackFrames": shown, "totalFrames": total}))
    }
}

/// The answer to a request, as message `sent`.
pub(super) fn response(sent: i64, seq: i64, command: &str, answer: Answer) -> Value {
    let mut message = json!({
        "seq": sent, "type": "response", "request_seq": seq, "command": command,
        "success": answer.is_ok(),
    });
    match answer {
        Ok(Value::Null) => {}
        Ok(body) => message["body"] = body,
        Err(text) => {
            message["message"] = text.clone().into();
            message["body"] = json!({"error": {"id": 1, "format": text, "showUser": true}});
        }
    }
    message
}

/// What the adapter can do.
pub(super) fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsDataBreakpoints": true,
        "supportsDataBreakpointBytes": true,
        "supportsExceptionInfoRequest": true,
        "supportsStepBack": true,
        "supportsSteppingGranularity": true,
        "supportsSetVariable": true,
        "supportsReadMemoryRequest": true,
        "supportsDisassembleRequest": true,
        "supportsTerminateRequest": true,
        "supportsEvaluateForHovers": true,
    })
}

/// The thread of a number.
pub(super) fn thread_of(id: i64) -> Result<Thread, String> {
    let number = id.checked_sub(1).filter(|number| *number >= 0);
    let number = number.ok_or_else(|| format!("there is no thread {id}"))?;
    Ok(Thread {
        block: (number / IN_BLOCK) as u64,
        thread: (number % IN_BLOCK) as u32,
    })
}

/// Reads `shared 0x80 4`.
pub(super) fn data(text: &str, thread: Thread) -> Result<(Space, u64, u64), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    crate::command::range(&words, thread)
}
