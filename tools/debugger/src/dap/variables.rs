//! Variables and registers of a frame.

use super::server::{Answer, Handle, LANES, Scope, Server};
use crate::command;
use crate::operand::{number, operand};
use crate::text::{name, shown};
use cranelift_thisgpu::sim::debug::{Datum, FrameId, Operand, Thread};
use serde_json::{Value, json};
use std::ops::Range;

/// The scopes of every frame.
const SCOPES: [(Scope, &str); 5] = [
    (Scope::Values, "Values of the CLIF"),
    (Scope::Registers, "Registers of the lane"),
    (Scope::Predicates, "Predicates of the lane"),
    (Scope::Uniform, "Uniform registers"),
    (Scope::AllLanes, "Registers of all lanes"),
];

/// Elements and members that are sent of one variable, at most, to a client that does not say which it wants
/// (*assumed*: it shows no more).
const MOST_PARTS: usize = 1000;
/// The last element that a client can ask for (*assumed*: nobody looks at more).
pub(super) const LAST_PART: usize = 1 << 16;

impl Server {
    pub(super) fn scopes(&mut self, arguments: &Value) -> Answer {
        let Handle::Frame(thread, frame, has_locals) = self.handle_of(&arguments["frameId"])?
        else {
            return Err("the reference is none of a frame".to_owned());
        };
        let locals = has_locals.then_some((Scope::Locals, "Locals"));
        let has_statics = !self.debugger.session.statics(thread).is_empty();
        let statics = has_statics.then_some((Scope::Statics, "Statics"));
        let scopes: Vec<Value> = (locals.into_iter().chain(statics))
            .chain(SCOPES)
            .map(|(scope, name)| {
                let own = self.handle(Handle::Scope(thread, frame, scope));
                let expensive = scope == Scope::AllLanes;
                let mut said =
                    json!({"name": name, "variablesReference": own, "expensive": expensive});
                if scope == Scope::Locals {
                    said["presentationHint"] = "locals".into();
                }
                said
            })
            .collect();
        Ok(json!({"scopes": scopes}))
    }

    /// A variable or a part of one, `path` says how to write it, with a reference to what it is made of.
    fn datum(&mut self, thread: Thread, path: String, datum: Datum) -> Value {
        let session = &self.debugger.session;
        let has_parts = !session.parts(thread, &datum, 1).is_empty();
        let (text, ty) = (
            session.text(thread, &datum),
            session.type_name(&datum).to_owned(),
        );
        let elements = session.elements(thread, &datum);
        let reference = match has_parts {
            true => self.handle(Handle::Datum(thread, path.clone(), datum)),
            false => 0,
        };
        let mut said = json!({
            "value": text, "type": ty, "variablesReference": reference, "evaluateName": path,
        });
        // Of many a client asks for a part at a time.
        if let Some(elements) = elements.filter(|_| has_parts) {
            said["indexedVariables"] = elements.min(LAST_PART as u64).into();
        }
        said
    }

    /// The variables of a frame.
    fn locals(&mut self, thread: Thread, frame: FrameId) -> Value {
        let views = self.debugger.variables(thread, frame).into_iter();
        let variables = views.map(|view| {
            let mut said = self.datum(thread, view.name.clone(), view.datum);
            said["name"] = view.name.into();
            said
        });
        let variables: Vec<Value> = variables.collect();
        json!({"variables": variables})
    }

    /// The static variables of a thread's kernel.
    fn statics(&mut self, thread: Thread) -> Value {
        let statics = self.debugger.session.statics(thread).into_iter();
        let variables = statics.map(|(name, datum)| {
            let mut said = self.datum(thread, name.clone(), datum);
            said["name"] = name.into();
            said
        });
        let variables: Vec<Value> = variables.collect();
        json!({"variables": variables})
    }

    /// What a variable is made of.
    fn parts(&mut self, thread: Thread, path: &str, datum: &Datum, wanted: &Range<usize>) -> Value {
        let parts = self.debugger.session.parts(thread, datum, wanted.end);
        let variables = parts.into_iter().skip(wanted.start).map(|(name, part)| {
            let path = match name.as_str() {
                "*" => format!("(*{path})"),
                element if element.starts_with('[') => format!("{path}{element}"),
                member => format!("{path}.{member}"),
            };
            let mut said = self.datum(thread, path, part);
            said["name"] = name.into();
            said
        });
        let variables: Vec<Value> = variables.collect();
        json!({"variables": variables})
    }

    /// The variables of a reference: all, or `count` from `start` on.
    pub(super) fn variables(&mut self, arguments: &Value) -> Answer {
        let number = |name: &str| {
            let number = arguments[name].as_u64();
            number.map(|number| usize::try_from(number).unwrap_or(LAST_PART))
        };
        let start = number("start").unwrap_or(0).min(LAST_PART);
        let count = number("count").filter(|&count| count != 0);
        let end = start.saturating_add(count.unwrap_or(MOST_PARTS));
        let wanted = start..end.min(LAST_PART);
        if let Handle::Datum(thread, path, datum) =
            self.handle_of(&arguments["variablesReference"])?
        {
            // What is indexed has no other parts, and what is not has none that are.
            let is_indexed = self.debugger.session.elements(thread, &datum).is_some();
            return match arguments["filter"].as_str() {
                Some("indexed") if !is_indexed => Ok(json!({"variables": []})),
                Some("named") if is_indexed => Ok(json!({"variables": []})),
                _ => Ok(self.parts(thread, &path, &datum, &wanted)),
            };
        }
        let mut all = self.all_variables(arguments)?;
        if let Some(variables) = all["variables"].as_array_mut() {
            variables.drain(..start.min(variables.len()));
            variables.truncate(count.unwrap_or(usize::MAX));
        }
        Ok(all)
    }

    /// The variables of a scope, or a register in all lanes.
    fn all_variables(&mut self, arguments: &Value) -> Answer {
        let registers = self.debugger.session.registers();
        // Registers of a caller that calls do not keep are those of nobody: all scopes of registers are the lane's.
        let (thread, call, operands): (Thread, u32, Vec<Operand>) =
            match self.handle_of(&arguments["variablesReference"])? {
                Handle::Frame(..) | Handle::Datum(..) => {
                    return Err("the reference is none of a scope".to_owned());
                }
                Handle::Lanes(thread, register) => return Ok(self.lanes(thread, register)),
                Handle::Scope(thread, frame, Scope::Locals) => {
                    return Ok(self.locals(thread, frame));
                }
                Handle::Scope(thread, _, Scope::Statics) => return Ok(self.statics(thread)),
                Handle::Scope(thread, _, Scope::AllLanes) => {
                    let variable = |number: u8| {
                        let own = self.handle(Handle::Lanes(thread, number));
                        let name = format!("R{number}");
                        json!({"name": name, "value": "", "variablesReference": own})
                    };
                    let variables: Vec<Value> = (0..registers).map(variable).collect();
                    return Ok(json!({"variables": variables}));
                }
                Handle::Scope(thread, FrameId { call, .. }, Scope::Values) => {
                    let values = self.debugger.session.source_values(thread, call).iter();
                    (
                        thread,
                        call,
                        values.map(|found| Operand::Source(found.source)).collect(),
                    )
                }
                Handle::Scope(thread, _, Scope::Registers) => {
                    (thread, 0, (0..registers).map(Operand::Register).collect())
                }
                Handle::Scope(thread, _, Scope::Predicates) => (
                    thread,
                    0,
                    (0..Operand::PREDICATES).map(Operand::Predicate).collect(),
                ),
                Handle::Scope(thread, _, Scope::Uniform) => (
                    thread,
                    0,
                    (0..Operand::UNIFORM).map(Operand::Uniform).collect(),
                ),
            };
        let shown = |operand: Operand| {
            let value = self.debugger.session.value_in(thread, call, &operand)?;
            let ty = self.debugger.type_of(thread, call, &operand);
            Some(json!({
                "name": name(&operand), "value": shown(value, ty), "variablesReference": 0,
                "evaluateName": name(&operand), "type": ty.map(|ty| ty.to_string()),
            }))
        };
        let variables: Vec<Value> = operands.into_iter().filter_map(shown).collect();
        Ok(json!({"variables": variables}))
    }

    /// One register, lane by lane.
    fn lanes(&self, thread: Thread, register: u8) -> Value {
        let lane = |lane: u32| {
            let operand = Operand::Register(register);
            let value = self
                .debugger
                .session
                .value(of_lane(thread, lane), &operand)?;
            let name = format!("lane {lane}");
            Some(json!({"name": name, "value": shown(value, None), "variablesReference": 0}))
        };
        let variables: Vec<Value> = (0..LANES).filter_map(lane).collect();
        json!({"variables": variables})
    }

    pub(super) fn set_variable(&mut self, arguments: &Value) -> Answer {
        let wanted = arguments["name"].as_str().ok_or("no name")?;
        let (thread, register) = match self.handle_of(&arguments["variablesReference"])? {
            Handle::Lanes(thread, register) => {
                let lane = wanted.strip_prefix("lane ").ok_or("no lane")?;
                let lane = number(lane)?;
                if lane >= LANES.into() {
                    return Err(format!("there is no lane {lane}"));
                }
                (of_lane(thread, lane as u32), register)
            }
            Handle::Datum(..) | Handle::Scope(_, _, Scope::Locals | Scope::Statics) => {
                return Err("unsupported: only registers can be changed".to_owned());
            }
            Handle::Frame(thread, ..) | Handle::Scope(thread, ..) => match operand(wanted)? {
                Operand::Register(register) => (thread, register),
                _ => return Err("only general registers can be changed".to_owned()),
            },
        };
        let value = arguments["value"].as_str().ok_or("no value")?;
        let value = u32::try_from(number(value)?).map_err(|_| "a register has 32 bits")?;
        match self.debugger.session.set_register(thread, register, value) {
            true => Ok(json!({"value": shown(value.into(), None)})),
            false => Err("the thread does not run".to_owned()),
        }
    }

    pub(super) fn evaluate(&mut self, arguments: &Value) -> Answer {
        let expression = arguments["expression"].as_str().ok_or("no expression")?;
        let mut frame = self.debugger.frame_id(self.debugger.frame);
        if !arguments["frameId"].is_null() {
            let Handle::Frame(thread, of, _) = self.handle_of(&arguments["frameId"])? else {
                return Err("the reference is none of a frame".to_owned());
            };
            self.debugger.thread = thread;
            frame = of;
        }
        let thread = self.debugger.thread;
        let operand = operand(expression);
        if let Ok(Operand::Variable(path)) = &operand
            && let Ok(datum) = self.debugger.session.datum(thread, frame, path)
        {
            let mut said = self.datum(thread, expression.trim().to_owned(), datum);
            if let Some(said) = said.as_object_mut() {
                let value = said.remove("value").unwrap_or_default();
                said.insert("result".to_owned(), value);
            }
            return Ok(said);
        }
        if let Ok(operand) = operand
            && !matches!(operand, Operand::Variable(_))
        {
            let value = self.debugger.value_in(frame.call, &operand)?;
            let ty = self.debugger.type_of(thread, frame.call, &operand);
            return Ok(json!({"result": shown(value, ty), "variablesReference": 0}));
        }
        // In the console, the commands of the prompt that do not go on. What else is evaluated (the word under the
        // mouse, a watched expression, what is copied) does nothing.
        if arguments["context"] != "repl" {
            return Err(format!(
                "there is no variable, value or register `{expression}` here"
            ));
        }
        let shape = self.debugger.session.shape();
        let command = command::parse(expression, thread, shape)?.ok_or("nothing to evaluate")?;
        if command.goes_on() {
            return Err("use the buttons of the client to go on".to_owned());
        }
        let result = self.debugger.run(command)?;
        Ok(json!({"result": result, "variablesReference": 0}))
    }
}

/// A thread of the same warp.
fn of_lane(thread: Thread, lane: u32) -> Thread {
    Thread {
        thread: thread.thread - thread.thread % LANES + lane,
        ..thread
    }
}
