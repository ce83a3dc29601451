//! Old assembly carried over: a text in which HSET2, HMUL2 and HMUL2_32I are SPA 5.3's becomes a text of this set that
//! computes the same.
//!
//! Each such instruction is replaced by a `sequence` of this set's, registers (`assign`) and waits (`timing`) included,
//! with the original as a comment above; all else stays as it is, byte for byte, if it assembles. Labels keep their
//! places. What cannot be carried over is an error, and after any error there is no text.

mod assign;
mod scratch;
mod sequence;
mod source;
mod timing;

use super::read::ReadInstruction;
use cranelift_thisgpu::asm::{Diagnostic, Diagnostics, Span};
use cranelift_thisgpu::unstable::isa::{Control, PInst, PReg, RegisterClass, Scoreboard};
use source::{Source, Statement};

pub use scratch::{Scratch, ScratchError};

/// A text carried over.
#[derive(Clone, Debug)]
pub struct Ported {
    /// The new text.
    pub text: String,
    /// Lines that were copied because they are of this set, counted from 1, with their instruction or directive.
    pub copied: Vec<(u32, String)>,
    /// How many instructions became how many, in the order of the text.
    pub lengths: Vec<usize>,
    /// What is legal but hardly meant.
    pub warnings: Diagnostics,
}

/// The instructions of this set that one of SPA 5.3 becomes, with free registers and no control.
///
/// # Errors
/// How many scratch registers it needs where `scratch` has too few.
pub fn instructions(
    instruction: &super::Instruction,
    scratch: &[PReg],
) -> Result<Vec<PInst>, usize> {
    let steps = sequence::sequence(instruction);
    let assigned = assign::assign(&steps, instruction.destination(), scratch);
    assigned.ok_or_else(|| assign::needed(&steps, instruction.destination()))
}

/// Carries a text over; `file` is its name in messages.
///
/// # Diagnostics
/// All mistakes of the text, and all that cannot be carried over.
pub fn port(file: &str, text: &str, scratch: &Scratch) -> Result<Ported, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut source = Source::read(file, text);
    let mut errors = std::mem::take(&mut source.diagnostics);
    let spare = source.spare_scoreboard();
    let mut replacements = Vec::new();
    // Of the scratch registers that are used.
    let mut highest = None;
    let mut most = Need::default();
    for statement in &source.statements {
        let read = &statement.read;
        let steps = sequence::sequence(&read.instruction);
        let destination = read.instruction.destination();
        most = most.or(assign::needed(&steps, destination), read.span);
        if timing::needs_scoreboard(&steps) && spare.is_none() {
            errors.push(no_scoreboard(read));
            continue;
        }
        if let Some(assigned) = assign::assign(&steps, destination, scratch.registers()) {
            let defined = assigned.iter().flat_map(|step| step.definitions());
            let scratch = defined.filter(|register| Some(*register) != destination);
            highest = highest.max(scratch.max());
            replacements.push(replaced(statement, &assigned, spare));
        }
    }
    errors.extend(scratch.errors(most, &source.named));
    let longer = replacements.iter().any(|r| r.len() != 1);
    if longer {
        errors.extend(source.relative_targets());
    }
    errors.extend(source.counts(highest, longer));
    let diagnostics = Diagnostics::new(file, source.text, errors);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let ported = source.with(&replacements);
    // What was right in its old place is so in the new one; should it not be, nothing comes out.
    cranelift_thisgpu::asm::assemble(&format!("{file}, carried over"), &ported)?;
    Ok(Ported {
        text: ported,
        copied: source.copied(),
        lengths: replacements.iter().map(Vec::len).collect(),
        warnings: diagnostics,
    })
}

fn replaced(
    statement: &Statement,
    steps: &[PInst],
    spare: Option<Scoreboard>,
) -> Vec<(PInst, Control)> {
    let ReadInstruction {
        instruction,
        control,
        ..
    } = &statement.read;
    timing::timed(steps, instruction.guard(), *control, spare)
}

fn no_scoreboard(read: &ReadInstruction) -> Diagnostic {
    let message = "this needs a conversion, whose time varies, and the text uses all scoreboards";
    Diagnostic::new(read.span, message)
        .note("leave one of scoreboards 0 to 5 unused in the whole text")
}

/// Scratch registers that a text needs, and the instruction that needs the most.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    registers: usize,
    span: Span,
}

impl Need {
    fn or(self, registers: usize, span: Span) -> Need {
        if registers > self.registers || self.span == Span::default() {
            Need { registers, span }
        } else {
            self
        }
    }
}

/// The registers of a text, by class and number.
#[derive(Clone, Debug, Default)]
struct Named(std::collections::BTreeSet<PReg>);

impl Named {
    fn holds(&self, register: PReg) -> bool {
        self.0.contains(&register)
    }

    /// General registers that are not named, lowest first.
    fn free(&self) -> impl Iterator<Item = PReg> + '_ {
        let all = (0..RegisterClass::Gpr.hardwired()).map(PReg::gpr);
        all.filter(|register| !self.holds(*register))
    }
}
