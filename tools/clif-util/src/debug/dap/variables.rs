//! Registers of a frame, as variables.

use super::super::command;
use super::super::debugger::name;
use super::super::operand::{number, operand};
use super::server::{Answer, DEPTH, LANES, Server, thread_of};
use cranelift_thisgpu::sim::debug::{Operand, Thread};
use serde_json::{Value, json};

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

impl Server {
    pub(super) fn scopes(&self, arguments: &Value) -> Answer {
        let frame = arguments["frameId"].as_i64().ok_or("no frame")?;
        thread_of(frame / DEPTH)?;
        let own = frame / DEPTH * SCOPES.len() as i64;
        let scopes = (0..).zip(SCOPES).map(|(scope, name)| {
            json!({"name": name, "variablesReference": own + scope, "expensive": scope == ALL_LANES})
        });
        Ok(json!({"scopes": scopes.collect::<Vec<_>>()}))
    }

    pub(super) fn variables(&self, arguments: &Value) -> Answer {
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
    pub(super) fn operands(&self, reference: i64) -> Result<(Vec<Operand>, i64), String> {
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

    pub(super) fn set_variable(&mut self, arguments: &Value) -> Answer {
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

    pub(super) fn evaluate(&mut self, arguments: &Value) -> Answer {
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
        let command = command::parse(expression, thread, shape)?;
        let command = command.ok_or("nothing to evaluate")?;
        if command.goes_on() {
            return Err("use the buttons of the client to go on".to_owned());
        }
        let result = self.debugger.run(command)?;
        Ok(json!({"result": result, "variablesReference": 0}))
    }
}

/// A value for a client.
fn text(value: u64) -> String {
    format!("{value:#x} ({value})")
}
