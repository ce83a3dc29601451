//! What is told of variables, values and registers.

use super::{Debugger, named};
use crate::text::{LANES, name, shown};
use cranelift_codegen::ir::Type;
use cranelift_thisgpu::sim::debug::{Datum, FrameId, Operand, Thread, VariableView};
use cranelift_thisgpu::values::SourceValue;
use std::fmt::Write;

/// Lanes in a line of values.
const IN_LINE: usize = 8;

impl Debugger {
    /// What is told where a thread has no registers.
    pub(super) fn absent(&self) -> String {
        let Thread { block, thread } = self.thread;
        format!("thread {thread} of block {block} does not run, or there is no such register")
    }

    /// A register or a value of the function that is looked at.
    pub fn value(&self, operand: &Operand) -> Result<u128, String> {
        self.value_in(self.frame_id(self.frame).call, operand)
    }

    /// The same so many calls further out.
    pub fn value_in(&self, call: u32, operand: &Operand) -> Result<u128, String> {
        let value = self.session.value_in(self.thread, call, operand);
        value.ok_or_else(|| match operand {
            Operand::Source(value) => self.not_available(call, *value),
            Operand::Variable(path) => format!("{path} is not available here, or no number"),
            _ if call > 0 => format!("{} is not kept by calls", name(operand)),
            _ => self.absent(),
        })
    }

    /// A datum with a name for it.
    pub(super) fn described(&self, name: &str, datum: &Datum) -> String {
        let (ty, text) = (
            self.session.type_name(datum),
            self.session.text(self.thread, datum),
        );
        match ty {
            "" => format!("{name} = {text}"),
            ty => format!("{name}: {ty} = {text}"),
        }
    }

    /// The variables of a function that a thread is in, in the order in which they are declared.
    pub fn variables(&self, thread: Thread, frame: FrameId) -> Vec<VariableView> {
        let views = self.session.variables(thread, frame.call).into_iter();
        let views = views.filter(|view| view.frame == frame.inlined);
        let mut views: Vec<VariableView> = views.collect();
        views.reverse();
        views
    }

    /// The variables of a function that the thread is in; of one that the source has told nothing of, the values of the
    /// CLIF.
    pub(super) fn locals(&self, frame: u32) -> Result<String, String> {
        let stack = self.session.stack(self.thread);
        let Some(frame) = stack.get(frame as usize) else {
            let names: Vec<String> = stack.iter().map(named).collect();
            return Err(format!(
                "there are {} functions here: {}",
                names.len(),
                names.join(", ")
            ));
        };
        let Some(name) = &frame.name else {
            return Ok(self.values_in(frame.id.call));
        };
        let views = self.variables(self.thread, frame.id).into_iter();
        let lines: Vec<String> = views
            .map(|view| self.described(&view.name, &view.datum))
            .collect();
        Ok(match lines.is_empty() {
            true => format!("{name} has no variables here"),
            false => lines.join("\n"),
        })
    }

    /// The static variables that the kernel has.
    pub(super) fn statics(&self) -> String {
        let statics = self.session.statics(self.thread).into_iter();
        let lines = statics.map(|(name, datum)| self.described(&name, &datum));
        let lines: Vec<String> = lines.collect();
        match lines.is_empty() {
            true => "there are none, or the thread does not run".to_owned(),
            false => lines.join("\n"),
        }
    }

    /// Why a value of the source cannot be shown.
    pub(super) fn not_available(&self, call: u32, value: SourceValue) -> String {
        let values = self.session.source_values(self.thread, call);
        if self.session.place(self.thread).is_none() {
            self.absent()
        } else if values.is_empty() {
            "the code does not say where values are; compile it with --set value_locations=true"
                .to_owned()
        } else {
            format!("{value} is not available here")
        }
    }

    /// The CLIF type of a value of the source, so many calls further out.
    pub fn type_of(&self, thread: Thread, call: u32, operand: &Operand) -> Option<Type> {
        let Operand::Source(value) = *operand else {
            return None;
        };
        let values = self.session.source_values(thread, call);
        let found = values.iter().find(|found| found.source == value)?;
        Some(found.ty)
    }

    /// All values of the source that can be shown, of the function that is looked at.
    pub(super) fn values(&self) -> String {
        self.values_in(self.frame_id(self.frame).call)
    }

    /// The same so many calls further out.
    fn values_in(&self, call: u32) -> String {
        let values = self.session.source_values(self.thread, call).iter();
        let lines = values.filter_map(|found| {
            let operand = Operand::Source(found.source);
            let value = self.session.value_in(self.thread, call, &operand)?;
            Some(format!(
                "{}: {} = {}",
                found.source,
                found.ty,
                shown(value, Some(found.ty))
            ))
        });
        let lines: Vec<String> = lines.collect();
        match lines.is_empty() {
            true => "none are available here".to_owned(),
            false => lines.join("\n"),
        }
    }

    /// A register, value or variable in all lanes of a warp.
    pub(super) fn lanes(&self, operand: &Operand) -> Result<String, String> {
        let first = self.thread.thread - self.thread.lane() as u32;
        let registers = self.session.register(self.thread, 0);
        let live = registers.ok_or_else(|| self.absent())?.live;
        let mut texts: Vec<Option<String>> = Vec::new();
        let frame = self.frame_id(self.frame);
        let function = |thread: Thread| {
            let stack = self.session.stack(thread);
            let found = stack.into_iter().find(|of| of.id == frame);
            found.and_then(|of| of.function)
        };
        let looked_at = (frame.call > 0).then(|| function(self.thread));
        for lane in 0..LANES {
            let thread = Thread {
                thread: first + lane,
                ..self.thread
            };
            // A caller of another lane may be another function.
            let is_there = looked_at.as_ref().is_none_or(|of| *of == function(thread));
            let text = match operand {
                _ if !is_there => None,
                Operand::Variable(path) => {
                    let datum = self.session.datum(thread, frame, path);
                    datum.ok().map(|datum| self.session.text(thread, &datum))
                }
                _ => {
                    let value = self.session.value_in(thread, frame.call, operand);
                    value.map(|value| format!("{value:#x}"))
                }
            };
            let is_register = !matches!(operand, Operand::Source(_) | Operand::Variable(_));
            if text.is_none() && is_register && frame.call == 0 {
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

    /// The registers of the thread that are not 0.
    pub(super) fn registers(&self) -> Result<String, String> {
        let mut text = String::new();
        for number in 0..self.session.registers() {
            let value = self.value_in(0, &Operand::Register(number))?;
            if value != 0 {
                let _ = writeln!(text, "R{number} = {value:#x}");
            }
        }
        for number in 0..Operand::PREDICATES {
            if self.value_in(0, &Operand::Predicate(number))? != 0 {
                let _ = writeln!(text, "P{number} is true");
            }
        }
        for number in 0..Operand::UNIFORM {
            let value = self.value_in(0, &Operand::Uniform(number))?;
            if value != 0 {
                let _ = writeln!(text, "UR{number} = {value:#x}");
            }
        }
        Ok(text + "all others are 0")
    }
}
