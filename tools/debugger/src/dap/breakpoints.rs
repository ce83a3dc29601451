//! Breakpoints and watched memory: a client sets all of a kind at once.

use super::server::{Answer, Handle, Kind, Scope, Server, data};
use super::variables::LAST_PART;
use crate::operand::{condition, number};
use cranelift_thisgpu::sim::debug::{Breakpoint, Datum, Place, Space, Thread, Watch, Watchpoint};
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
                    answer["line"] = self.origin.line(line).into();
                }
                answer
            }
            Err(message) => json!({"verified": false, "message": message}),
        }
    }

    pub(super) fn data_information(&self, arguments: &Value) -> Answer {
        Ok(match self.data_asked(arguments) {
            Ok((description, (space, address, bytes))) => json!({
                // Whose memory it is stays, whoever is looked at later.
                "dataId": format!("{} {address:#x} {bytes}", space_name(space)),
                "description": description, "accessTypes": ["read", "write", "readWrite"],
            }),
            Err(message) => json!({"dataId": null, "description": message}),
        })
    }

    /// What of memory a client asks to watch, and how it is called: a variable that it has been shown, a generic
    /// address, or as the commands have it.
    fn data_asked(&self, arguments: &Value) -> Result<(String, (Space, u64, u64)), String> {
        let name = arguments["name"].as_str().ok_or("no name")?;
        let session = &self.debugger.session;
        if arguments["asAddress"] == true {
            let bytes = arguments["bytes"].as_u64().unwrap_or(4);
            let (space, address) = session.space_of(self.debugger.thread, number(name)?);
            return Ok((name.to_owned(), (space, address, bytes)));
        }
        if !arguments["variablesReference"].is_null() {
            let (thread, datum) = self.shown_datum(&arguments["variablesReference"], name)?;
            let place = session.memory_of(thread, &datum);
            let place = place.ok_or_else(|| format!("{name} is not in memory"))?;
            return Ok((name.to_owned(), place));
        }
        let place = data(name, self.debugger.thread).map_err(|_| {
            "memory is watched: write SPACE ADDRESS BYTES, such as shared 0x80 4".to_owned()
        })?;
        Ok((name.to_owned(), place))
    }

    /// A variable or part that a client was shown under a name.
    fn shown_datum(&self, reference: &Value, name: &str) -> Result<(Thread, Datum), String> {
        let session = &self.debugger.session;
        let (thread, shown) = match self.handle_of(reference)? {
            Handle::Datum(thread, _, datum) => (thread, session.parts(thread, &datum, LAST_PART)),
            Handle::Scope(thread, frame, Scope::Locals) => {
                let views = self.debugger.variables(thread, frame).into_iter();
                (thread, views.map(|view| (view.name, view.datum)).collect())
            }
            Handle::Scope(thread, _, Scope::Statics) => (thread, session.statics(thread)),
            _ => return Err(format!("{name} is not in memory")),
        };
        let found = shown.into_iter().find(|(of, _)| of == name);
        let (_, datum) = found.ok_or_else(|| format!("there is no {name}"))?;
        Ok((thread, datum))
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
