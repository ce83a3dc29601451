//! What each request is answered with.

use super::super::command::code_place;
use super::super::debugger::{Debugger, name};
use super::super::operand::{condition, number, operand};
use super::transport::{Incoming, Request};
use cranelift_thisgpu::locations::Location;
use cranelift_thisgpu::sim::debug::{
    Breakpoint, Operand, Place, Space, Stop, Thread, Watch, Watchpoint,
};
use serde_json::{Value, json};
use std::path::Path;

/// Threads of a block, at most: what the numbers of threads count in.
const IN_BLOCK: i64 = 1024;
/// Calls of a thread that frames are numbered by.
const DEPTH: i64 = 512;
/// Threads that are told of, at most (assigned): a client shows no more.
const MOST_THREADS: usize = 4096;
/// Lanes of a warp.
const LANES: u32 = 32;
/// Bytes of an instruction.
const WORD: u32 = 16;

/// The scopes of a frame: what a reference to variables says beside the frame.
const SCOPES: [&str; 4] = [
    "Registers of the lane",
    "Predicates of the lane",
    "Uniform registers",
    "Registers of all lanes",
];
const REGISTERS: i64 = 0;
const PREDICATES: i64 = 1;
const UNIFORM: i64 = 2;
const ALL_LANES: i64 = 3;
/// References from here on are registers with their lanes.
const EXPANDED: i64 = 1 << 60;

/// A session with a client.
pub struct Server {
    debugger: Debugger,
    /// Messages that were sent.
    sent: i64,
    stops_on_entry: bool,
    /// Whether lanes are threads, not warps.
    has_lanes: bool,
    is_over: bool,
    /// The breakpoints that the client has set, by where it has.
    set: Vec<(Kind, u32)>,
}

/// How a client sets breakpoints: each kind, and each file, all at once.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Source(String),
    Function,
    Instruction,
    Data,
}

/// What lets the launch go on.
type Going = Box<dyn FnOnce(&mut Debugger) -> Stop>;

/// An answer's body, or what is wrong.
type Answer = Result<Value, String>;

impl Server {
    pub fn new(debugger: Debugger) -> Server {
        Server {
            debugger,
            sent: 0,
            stops_on_entry: true,
            has_lanes: false,
            is_over: false,
            set: Vec::new(),
        }
    }

    /// Whether the client has ended the session.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The answer to a message, and the events that follow.
    pub fn answer(&mut self, message: Incoming) -> Vec<Value> {
        let request = match message {
            Incoming::Request(request) => request,
            Incoming::Malformed(seq, text) => {
                return vec![self.response(seq, "", Err(text))];
            }
        };
        let mut events = Vec::new();
        let mut answers = Vec::new();
        // The answer to what lets the launch go on comes before it stands again.
        if let Some(go) = self.going(&request) {
            let answer = go.as_ref().map(|_| json!({"allThreadsContinued": true}));
            answers.push(self.response(
                request.seq,
                &request.command,
                answer.map_err(Clone::clone),
            ));
            if let Ok(go) = go {
                let stop = go(&mut self.debugger);
                events.extend(self.stopped(&stop));
            }
        } else {
            let answer = self.body(&request, &mut events);
            answers.push(self.response(request.seq, &request.command, answer));
        }
        for (event, body) in events {
            answers.push(self.event(event, body));
        }
        answers
    }

    fn response(&mut self, seq: i64, command: &str, answer: Answer) -> Value {
        self.sent += 1;
        let mut message = json!({
            "seq": self.sent, "type": "response", "request_seq": seq, "command": command,
            "success": answer.is_ok(),
        });
        match answer {
            Ok(Value::Null) => {}
            Ok(body) => message["body"] = body,
            Err(text) => {
                message["message"] = text.clone().into();
                message["body"] = json!({"error": {"id": 1, "format": text}});
            }
        }
        message
    }

    fn event(&mut self, event: &str, body: Value) -> Value {
        self.sent += 1;
        json!({"seq": self.sent, "type": "event", "event": event, "body": body})
    }

    /// What a request does to the launch, if it lets it go on.
    fn going(&self, request: &Request) -> Option<Result<Going, String>> {
        let arguments = &request.arguments;
        let by_instruction = arguments["granularity"] == "instruction";
        let thread = match arguments["threadId"].as_i64() {
            Some(id) => thread_of(id),
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
            "next" => on_thread(|d, t| d.session.step_line(t, false)),
            "stepIn" => on_thread(|d, t| d.session.step_line(t, true)),
            "stepOut" => on_thread(|d, t| d.session.finish(t)),
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
        let (reason, ids) = match stop {
            Stop::Beginning => ("entry", vec![]),
            Stop::Step => ("step", vec![]),
            Stop::Breakpoint { id, .. } => ("breakpoint", vec![*id]),
            Stop::Watchpoint(watched) => ("data breakpoint", vec![watched.id]),
            Stop::Paused => ("pause", vec![]),
            Stop::Fault(_) | Stop::Finding(_) => ("exception", vec![]),
            Stop::End => {
                let output = json!({"category": "console", "output": text + "\n"});
                let exited = json!({"exitCode": 0});
                return vec![
                    ("output", output),
                    ("exited", exited),
                    ("terminated", json!({})),
                ];
            }
        };
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
            "pause" => Ok(Value::Null),
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
                let name = name.into_owned();
                let place = |asked: &Value| {
                    let line = asked["line"].as_u64().ok_or("no line")?;
                    Ok(Place::Line {
                        file: Some(name.clone()),
                        line: u32::try_from(line).map_err(|_| "no such line")?,
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
            "readMemory" => self.read_memory(arguments),
            "disassemble" => self.disassemble(arguments),
            "source" => Err("unsupported: sources are files".to_owned()),
            other => Err(format!("unsupported: {other}")),
        }
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
        let Some(place) = session.place(thread) else {
            return Ok(json!({"stackFrames": [], "totalFrames": 0}));
        };
        let own = thread.block as i64 * IN_BLOCK + i64::from(thread.thread) + 1;
        let image = session.image();
        let mut frames: Vec<Value> = Vec::new();
        // What was inlined is a frame of its own, inside that of the call.
        let mut push = |pc: u32, function: Option<String>| {
            let function = function.unwrap_or_else(|| format!("{pc:#x}"));
            let mut places = image.places_at(pc);
            let unknown = places.is_empty();
            places.resize(places.len() + usize::from(unknown), Location::default());
            let last = places.len() - 1;
            for (index, location) in places.into_iter().enumerate() {
                let name = match index == last {
                    true => function.clone(),
                    false => format!("{function} (inlined)"),
                };
                let mut frame = json!({
                    "id": own * DEPTH + frames.len() as i64, "name": name,
                    "line": location.line, "column": location.column,
                    "instructionPointerReference": format!("{pc:#x}"),
                });
                let file = location.file.checked_sub(1);
                if let Some(file) = file.and_then(|file| image.files.get(file as usize)) {
                    let path = std::path::absolute(file).unwrap_or_else(|_| file.into());
                    let name = path
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned());
                    frame["source"] = json!({"name": name, "path": path});
                }
                frames.push(frame);
            }
        };
        push(place.pc, place.function);
        for call in session.frames(thread) {
            push(call.pc, call.function);
        }
        frames.truncate(DEPTH as usize);
        let start = arguments["startFrame"].as_u64().unwrap_or(0) as usize;
        let most = arguments["levels"].as_u64().filter(|&levels| levels != 0);
        let most = most.unwrap_or(u64::MAX) as usize;
        let total = frames.len();
        let shown: Vec<Value> = frames.into_iter().skip(start).take(most).collect();
        Ok(json!({"stackFrames": shown, "totalFrames": total}))
    }

    fn scopes(&self, arguments: &Value) -> Answer {
        let frame = arguments["frameId"].as_i64().ok_or("no frame")?;
        thread_of(frame / DEPTH)?;
        let own = frame / DEPTH * SCOPES.len() as i64;
        let scopes = (0..).zip(SCOPES).map(|(scope, name)| {
            json!({"name": name, "variablesReference": own + scope, "expensive": scope == ALL_LANES})
        });
        Ok(json!({"scopes": scopes.collect::<Vec<_>>()}))
    }

    fn variables(&self, arguments: &Value) -> Answer {
        let reference = arguments["variablesReference"]
            .as_i64()
            .ok_or("no reference")?;
        let (operands, reference) = self.operands(reference)?;
        let scopes = SCOPES.len() as i64;
        let (thread, scope) = (thread_of(reference / scopes)?, reference % scopes);
        let shown = |operand: Operand| {
            let value = self.debugger.value_of(thread, operand)?;
            Some(json!({
                "name": name(operand), "value": text(value), "variablesReference": 0,
                "evaluateName": name(operand),
            }))
        };
        let variables: Vec<Value> = match (scope, &operands[..]) {
            // One register, lane by lane.
            (ALL_LANES, [operand]) => (0..LANES)
                .filter_map(|lane| {
                    let of_lane = Thread {
                        thread: thread.thread - thread.thread % LANES + lane,
                        ..thread
                    };
                    let value = self.debugger.value_of(of_lane, *operand)?;
                    let name = format!("lane {lane}");
                    Some(json!({"name": name, "value": text(value), "variablesReference": 0}))
                })
                .collect(),
            (ALL_LANES, _) => (0..self.debugger.session.registers())
                .map(|number| {
                    let own = EXPANDED | i64::from(number) << 48 | reference;
                    json!({"name": format!("R{number}"), "value": "", "variablesReference": own})
                })
                .collect(),
            _ => operands.into_iter().filter_map(shown).collect(),
        };
        Ok(json!({"variables": variables}))
    }

    /// What is in a scope, and the reference of the scope itself.
    fn operands(&self, reference: i64) -> Result<(Vec<Operand>, i64), String> {
        if reference < 0 {
            return Err("there are no such variables".to_owned());
        }
        if reference & EXPANDED != 0 {
            let register = Operand::Register((reference >> 48 & 0xff) as u8);
            return Ok((vec![register], reference & ((1 << 48) - 1)));
        }
        let operands = match reference % SCOPES.len() as i64 {
            REGISTERS => {
                let registers = 0..self.debugger.session.registers();
                registers.map(Operand::Register).collect()
            }
            PREDICATES => (0..7).map(Operand::Predicate).collect(),
            UNIFORM => (0..63).map(Operand::Uniform).collect(),
            ALL_LANES => Vec::new(),
            _ => return Err("there are no such variables".to_owned()),
        };
        Ok((operands, reference))
    }

    fn set_variable(&mut self, arguments: &Value) -> Answer {
        let reference = arguments["variablesReference"]
            .as_i64()
            .ok_or("no reference")?;
        let mut thread = thread_of((reference & ((1 << 48) - 1)) / SCOPES.len() as i64)?;
        let wanted = arguments["name"].as_str().ok_or("no name")?;
        let mut register = wanted.to_owned();
        if let Some(lane) = wanted.strip_prefix("lane ") {
            let lane = number(lane)?.min(31) as u32;
            thread.thread = thread.thread - thread.thread % LANES + lane;
            register = format!("R{}", reference >> 48 & 0xff);
        }
        let Operand::Register(register) = operand(&register)? else {
            return Err("only general registers can be changed".to_owned());
        };
        let value = arguments["value"].as_str().ok_or("no value")?;
        let value = u32::try_from(number(value)?).map_err(|_| "a register has 32 bits")?;
        match self.debugger.session.set_register(thread, register, value) {
            true => Ok(json!({"value": text(value.into())})),
            false => Err("the thread does not run".to_owned()),
        }
    }

    fn evaluate(&mut self, arguments: &Value) -> Answer {
        let expression = arguments["expression"].as_str().ok_or("no expression")?;
        if let Some(frame) = arguments["frameId"].as_i64() {
            self.debugger.thread = thread_of(frame / DEPTH)?;
        }
        let thread = self.debugger.thread;
        if let Ok(operand) = operand(expression) {
            let value = self.debugger.value_of(thread, operand);
            let value = value.ok_or("the thread does not run, or there is no such register")?;
            return Ok(json!({"result": text(value), "variablesReference": 0}));
        }
        // In the console, the commands of the prompt that only look.
        let shape = self.debugger.session.shape();
        let command = super::super::command::parse(expression, thread, shape)?;
        let command = command.ok_or("nothing to evaluate")?;
        if command.goes_on() {
            return Err("use the buttons of the client to go on".to_owned());
        }
        let result = self.debugger.run(command)?;
        Ok(json!({"result": result, "variablesReference": 0}))
    }

    /// Sets all breakpoints of a kind, and takes those away that were set before.
    fn set_breakpoints(
        &mut self,
        kind: Kind,
        arguments: &Value,
        place: &dyn Fn(&Value) -> Result<Place, String>,
    ) -> Answer {
        self.forget(&kind);
        let asked = arguments["breakpoints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut answers = Vec::new();
        for asked in &asked {
            let set = place(asked).and_then(|place| {
                let mut breakpoint = Breakpoint::at(place);
                if let Some(text) = asked["condition"].as_str().filter(|text| !text.is_empty()) {
                    breakpoint.condition = Some(condition(text)?);
                }
                self.debugger.session.add_breakpoint(breakpoint)
            });
            answers.push(self.verified(&kind, set, asked["line"].as_u64()));
        }
        Ok(json!({"breakpoints": answers}))
    }

    /// Takes the breakpoints of a kind away.
    fn forget(&mut self, kind: &Kind) {
        let (gone, kept) = self.set.drain(..).partition(|(of, _)| of == kind);
        self.set = kept;
        let gone: Vec<(Kind, u32)> = gone;
        for (_, id) in gone {
            self.debugger.session.remove(id);
        }
    }

    /// What a client is told of a breakpoint.
    fn verified(&mut self, kind: &Kind, set: Result<u32, String>, line: Option<u64>) -> Value {
        match set {
            Ok(id) => {
                self.set.push((kind.clone(), id));
                let mut answer = json!({"id": id, "verified": true});
                if let Some(line) = line {
                    answer["line"] = line.into();
                }
                answer
            }
            Err(message) => json!({"verified": false, "message": message}),
        }
    }

    fn data_information(&self, arguments: &Value) -> Answer {
        // `global 0x1000 4`, or the address that a register pair has.
        let name = arguments["name"].as_str().ok_or("no name")?;
        let parsed = data(name, self.debugger.thread);
        Ok(match parsed {
            Ok(_) => json!({
                "dataId": name, "description": name, "accessTypes": ["read", "write", "readWrite"],
            }),
            Err(_) => json!({
                "dataId": null,
                "description": "memory is watched: write SPACE ADDRESS BYTES, such as shared 0x80 4",
            }),
        })
    }

    fn set_data_breakpoints(&mut self, arguments: &Value) -> Answer {
        self.forget(&Kind::Data);
        let asked = arguments["breakpoints"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let mut answers = Vec::new();
        for asked in &asked {
            let thread = self.debugger.thread;
            let set = data(asked["dataId"].as_str().unwrap_or_default(), thread);
            let set = set.and_then(|(space, address, bytes)| {
                let watch = match asked["accessType"].as_str() {
                    Some("read") => Watch::Read,
                    Some("readWrite") => Watch::Access,
                    _ => Watch::Write,
                };
                self.debugger.session.add_watchpoint(Watchpoint {
                    space,
                    address,
                    bytes,
                    watch,
                })
            });
            answers.push(self.verified(&Kind::Data, set, None));
        }
        Ok(json!({"breakpoints": answers}))
    }

    fn read_memory(&self, arguments: &Value) -> Answer {
        let reference = arguments["memoryReference"]
            .as_str()
            .ok_or("no reference")?;
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let count = arguments["count"].as_u64().ok_or("no count")?.min(1 << 20) as usize;
        let thread = self.debugger.thread;
        let (space, address) = match reference.split_once(' ') {
            Some((space, address)) => {
                let (space, address, _) = data(&format!("{space} {address} 1"), thread)?;
                (space, address)
            }
            None => (Space::Global, number(reference)?),
        };
        let address = address
            .checked_add_signed(offset)
            .ok_or("no such address")?;
        let bytes = self.debugger.session.read(space, address, count)?;
        Ok(json!({"address": format!("{address:#x}"), "data": base64(&bytes)}))
    }

    fn disassemble(&self, arguments: &Value) -> Answer {
        let reference = arguments["memoryReference"]
            .as_str()
            .ok_or("no reference")?;
        let count = arguments["instructionCount"]
            .as_u64()
            .ok_or("no count")?
            .min(1 << 16);
        let by_bytes = arguments["offset"].as_i64().unwrap_or(0);
        let by_words = arguments["instructionOffset"].as_i64().unwrap_or(0);
        let start = i64::try_from(number(reference)?).map_err(|_| "no such address")?;
        let start = start.saturating_add(by_bytes) / i64::from(WORD);
        let start = start.saturating_add(by_words);
        let session = &self.debugger.session;
        let instruction = |index: i64| {
            let address = index
                .checked_mul(WORD.into())
                .and_then(|a| u32::try_from(a).ok());
            let code = address
                .map(|address| session.disassemble(address, 1))
                .unwrap_or_default();
            // A client asks for as many as it shows, wherever code ends.
            let Some((address, text)) = code.into_iter().next() else {
                let address = format!("{:#x}", index.max(0).saturating_mul(WORD.into()));
                return json!({"address": address, "instruction": "", "presentationHint": "invalid"});
            };
            let line = session
                .image()
                .line_at(address)
                .map(|line| line.location.line);
            let mut shown = json!({"address": format!("{address:#x}"), "instruction": text});
            if let Some(line) = line {
                shown["line"] = line.into();
            }
            shown
        };
        let all: Vec<Value> = (0..count as i64).map(|i| instruction(start + i)).collect();
        Ok(json!({"instructions": all}))
    }
}

fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsDataBreakpoints": true,
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
fn thread_of(id: i64) -> Result<Thread, String> {
    let number = id.checked_sub(1).filter(|number| *number >= 0);
    let number = number.ok_or_else(|| format!("there is no thread {id}"))?;
    Ok(Thread {
        block: (number / IN_BLOCK) as u64,
        thread: (number % IN_BLOCK) as u32,
    })
}

/// A value for a client.
fn text(value: u64) -> String {
    format!("{value:#x} ({value})")
}

/// Reads `shared 0x80 4`.
fn data(text: &str, thread: Thread) -> Result<(Space, u64, u64), String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    super::super::command::range(&words, thread)
}

/// Bytes in base 64 (RFC 4648), as the protocol has them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let mut bits = [0; 3];
        bits[..part.len()].copy_from_slice(part);
        let bits = bits
            .iter()
            .fold(0u32, |all, &byte| all << 8 | u32::from(byte));
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 63;
            let shown = digit <= part.len();
            text.push(if shown {
                char::from(DIGITS[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_base_64() {
        let texts =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(texts, expected);
    }
}
