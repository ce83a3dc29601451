//! Registers of a frame, as variables.

use super::super::command;
use super::super::debugger::{name, shown};
use super::super::operand::{number, operand};
use super::server::{Answer, Handle, LANES, Scope, Server};
use cranelift_thisgpu::sim::debug::{Operand, Thread};
use serde_json::{Value, json};

/// The scopes of a frame.
const SCOPES: [(Scope, &str); 5] = [
    (Scope::Values, "Values of the source"),
    (Scope::Registers, "Registers of the lane"),
    (Scope::Predicates, "Predicates of the lane"),
    (Scope::Uniform, "Uniform registers"),
    (Scope::AllLanes, "Registers of all lanes"),
];

impl Server {
    pub(super) fn scopes(&mut self, arguments: &Value) -> Answer {
        let Handle::Frame(thread) = self.handle_of(&arguments["frameId"])? else {
            return Err("the reference is none of a frame".to_owned());
        };
        let scopes = SCOPES.map(|(scope, name)| {
            let own = self.handle(Handle::Scope(thread, scope));
            let expensive = scope == Scope::AllLanes;
            json!({"name": name, "variablesReference": own, "expensive": expensive})
        });
        Ok(json!({"scopes": scopes}))
    }

    pub(super) fn variables(&mut self, arguments: &Value) -> Answer {
        let registers = self.debugger.session.registers();
        let (thread, operands): (Thread, Vec<Operand>) =
            match self.handle_of(&arguments["variablesReference"])? {
                Handle::Frame(_) => return Err("the reference is one of a frame".to_owned()),
                Handle::Lanes(thread, register) => return Ok(self.lanes(thread, register)),
                Handle::Scope(thread, Scope::AllLanes) => {
                    let variable = |number: u8| {
                        let own = self.handle(Handle::Lanes(thread, number));
                        let name = format!("R{number}");
                        json!({"name": name, "value": "", "variablesReference": own})
                    };
                    let variables: Vec<Value> = (0..registers).map(variable).collect();
                    return Ok(json!({"variables": variables}));
                }
                Handle::Scope(thread, Scope::Values) => {
                    let values = self.debugger.session.source_values(thread).iter();
                    (
                        thread,
                        values.map(|found| Operand::Source(found.source)).collect(),
                    )
                }
                Handle::Scope(thread, Scope::Registers) => {
                    (thread, (0..registers).map(Operand::Register).collect())
                }
                Handle::Scope(thread, Scope::Predicates) => (
                    thread,
                    (0..Operand::PREDICATES).map(Operand::Predicate).collect(),
                ),
                Handle::Scope(thread, Scope::Uniform) => (
                    thread,
                    (0..Operand::UNIFORM).map(Operand::Uniform).collect(),
                ),
            };
        let shown = |operand: Operand| {
            let value = self.debugger.session.value(thread, operand)?;
            let ty = self.debugger.type_of(thread, operand);
            Some(json!({
                "name": name(operand), "value": shown(value, ty), "variablesReference": 0,
                "evaluateName": name(operand), "type": ty.map(|ty| ty.to_string()),
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
                .value(of_lane(thread, lane), operand)?;
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
            Handle::Frame(thread) | Handle::Scope(thread, _) => match operand(wanted)? {
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
        if !arguments["frameId"].is_null()
            && let Handle::Frame(thread) = self.handle_of(&arguments["frameId"])?
        {
            self.debugger.thread = thread;
        }
        let thread = self.debugger.thread;
        if let Ok(operand) = operand(expression) {
            let value = self.debugger.value(operand)?;
            let ty = self.debugger.type_of(thread, operand);
            return Ok(json!({"result": shown(value, ty), "variablesReference": 0}));
        }
        // In the console, the commands of the prompt that only look.
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
