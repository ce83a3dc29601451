//! Breakpoints and watched memory: a client sets all of a kind at once.

use super::server::{Answer, Kind, Server, data};
use crate::operand::condition;
use cranelift_thisgpu::sim::debug::{Breakpoint, Place, Space, Thread, Watch, Watchpoint};
use serde_json::{Value, json};

impl Server {
    /// Sets all breakpoints of a kind, and takes those away that were set before.
    pub(super) fn set_breakpoints(
        &mut self,
        kind: Kind,
        arguments: &Value,
        place: &dyn Fn(&Value) -> Result<Place, String>,
    ) -> Answer {
        self.forget(&kind);
        let mut answers = Vec::new();
        for asked in asked(arguments) {
            let mut line = None;
            let set = place(asked).and_then(|place| {
                let mut breakpoint = Breakpoint::at(place.clone());
                if let Some(text) = asked["condition"].as_str().filter(|text| !text.is_empty()) {
                    breakpoint.condition = Some(condition(text)?);
                }
                let id = self.debugger.session.add_breakpoint(breakpoint)?;
                if let Place::Line { line: set, .. } = self.debugger.set_place(id, &place) {
                    line = Some(set);
                }
                Ok(id)
            });
            answers.push(self.verified(&kind, set, line));
        }
        Ok(json!({"breakpoints": answers}))
    }

    /// Takes the breakpoints of a kind away.
    pub(super) fn forget(&mut self, kind: &Kind) {
        let (gone, kept) = self.set.drain(..).partition(|(of, _)| of == kind);
        self.set = kept;
        let gone: Vec<(Kind, u32)> = gone;
        for (_, id) in gone {
            self.debugger.session.remove(id);
        }
    }

    /// What a client is told of a breakpoint.
    pub(super) fn verified(
        &mut self,
        kind: &Kind,
        set: Result<u32, String>,
        line: Option<u32>,
    ) -> Value {
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

    pub(super) fn data_information(&self, arguments: &Value) -> Answer {
        // `global 0x1000 4`, or the address that a register pair has.
        let name = arguments["name"].as_str().ok_or("no name")?;
        let parsed = data(name, self.debugger.thread);
        Ok(match parsed {
            Ok((space, address, bytes)) => json!({
                // Whose memory it is stays, whoever is looked at later.
                "dataId": format!("{} {address:#x} {bytes}", space_name(space)),
                "description": name, "accessTypes": ["read", "write", "readWrite"],
            }),
            Err(_) => json!({
                "dataId": null,
                "description": "memory is watched: write SPACE ADDRESS BYTES, such as shared 0x80 4",
            }),
        })
    }

    pub(super) fn set_data_breakpoints(&mut self, arguments: &Value) -> Answer {
        self.forget(&Kind::Data);
        let mut answers = Vec::new();
        for asked in asked(arguments) {
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
}

/// A space, and whose, as a command has it.
fn space_name(space: Space) -> String {
    match space {
        Space::Global => "global".to_owned(),
        Space::Shared { block } => format!("shared:{block}"),
        Space::Local(Thread { block, thread }) => format!("local:{block}:{thread}"),
    }
}

/// The breakpoints that a request has.
fn asked(arguments: &Value) -> &[Value] {
    arguments["breakpoints"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}
