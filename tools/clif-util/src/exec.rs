//! `clif-util exec [--isa ISA] FILE.s [--state STATES.jsonl]`: one warp runs straight-line code, once for each state.
//!
//! A state is a line of JSON, `{"gpr":{"R1":5,"R2":[32
//! numbers]},"ur":{"UR0":1},"pred":{"P0":4294967295},"const":{"0":"hex bytes"}, "active":4294967295}`; registers that
//! it does not set are 0. The answer is one line with what changed.

use crate::messages::{self, Several};
use crate::pipe::Heard;
use crate::{Outcome, input};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use cranelift_thisgpu::asm;
use cranelift_thisgpu::sim::Reference;
use cranelift_thisgpu::unstable::sim::Program;
use std::io::{BufRead, BufWriter, Read, StdoutLock, Write};
use std::path::{Path, PathBuf};

mod machine;
mod state;
mod straight;

use machine::{Code, Machine};
use state::State;
use straight::refused;

/// Most bytes of a state: all registers of all lanes and full constant banks take less (assigned).
const MOST_BYTES: u64 = 16 << 20;

/// Options of `exec`.
#[derive(Args)]
#[command(after_help = "Example:
  echo 'IADD R0, R1, R2 ;' > add.s
  echo '{\"gpr\":{\"R1\":5,\"R2\":7}}' | clif-util exec add.s --state -")]
pub struct Options {
    /// Assembly text.
    file: PathBuf,
    /// States, one a line; without it one state with all registers 0.
    #[arg(long, value_name = "STATES.jsonl")]
    state: Option<PathBuf>,
    /// The instruction set of the text. SPA 5.3 is the predecessor: HSET2, HMUL2 and HMUL2_32I, without uniform
    /// registers.
    #[arg(long, value_name = "ISA", default_value = "thisgpu")]
    isa: InstructionSet,
}

/// An instruction set whose code can be run.
#[derive(Clone, Copy, ValueEnum)]
enum InstructionSet {
    /// This set.
    Thisgpu,
    /// SPA 5.3.
    #[value(name = "spa5.3")]
    Spa53,
}

impl Options {
    /// Runs the program.
    pub fn run(self) -> Result<Outcome> {
        input::check_inputs(
            [Some(&self.file), self.state.as_ref()]
                .into_iter()
                .flatten(),
        )?;
        let text = input::text(&self.file)?;
        let name = input::name(&self.file);
        let (words, predecessors);
        let mut machine = match self.isa {
            InstructionSet::Thisgpu => {
                words = Program::new(&program(&name, &text)?, Reference::default());
                Machine::new(Code::Words(&words))
            }
            InstructionSet::Spa53 => {
                predecessors = spa53::read::program(&name, &text)?;
                messages::print_diagnostics(&predecessors.warnings, messages::FIRST);
                Machine::new(Code::Predecessor(&predecessors.instructions))
            }
        };
        let mut out = Answers::with_capacity(1 << 16, Heard::new(std::io::stdout().lock()));
        let Some(states) = &self.state else {
            machine.run(&State::default(), &mut out)?;
            out.flush()?;
            return Ok(Outcome::Success);
        };
        let outcome = run_states(states, self.isa, &mut machine, &mut out)?;
        out.flush()?;
        Ok(outcome)
    }
}

/// Where the answers go.
type Answers = BufWriter<Heard<StdoutLock<'static>>>;

fn run_states(
    path: &Path,
    isa: InstructionSet,
    machine: &mut Machine,
    out: &mut Answers,
) -> Result<Outcome> {
    let name = input::name(path);
    let mut reader = input::open(path)?;
    let mut malformed = 0;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        // Whoever waits for an answer before sending the next state gets it.
        if reader.buffer().is_empty() {
            out.flush()?;
        }
        // Nobody wants an answer any more, and the states may have no end.
        if out.get_ref().is_closed() {
            break;
        }
        let read = reader
            .by_ref()
            .take(MOST_BYTES)
            .read_until(b'\n', &mut line);
        match read.with_context(|| format!("cannot read {name}"))? {
            0 => break,
            read if read as u64 == MOST_BYTES => {
                bail!("{name}:{number}: a line of {MOST_BYTES} bytes and more is no state")
            }
            _ => {}
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match state(line.trim_ascii_end(), isa) {
            Ok(state) => machine.run(&state, out)?,
            Err(reason) => {
                malformed += 1;
                // Whoever waits for an answer gets it at once.
                if malformed <= messages::FIRST {
                    messages::print_lines(&[format!("{name}:{number}: {reason}")], "lines");
                }
            }
        }
    }
    if malformed > messages::FIRST {
        let rest = malformed - messages::FIRST;
        let rest = messages::counted(rest as u64, "more malformed line");
        messages::say(format_args!("{name}: {rest}\n"));
    }
    Ok(if malformed == 0 {
        Outcome::Success
    } else {
        Outcome::Failure
    })
}

/// A state that a set can have, or why a line is none.
fn state(line: &[u8], isa: InstructionSet) -> Result<State, String> {
    let state: State = serde_json::from_slice(line).map_err(|error| {
        // The line is this one, whatever line the parser counts.
        let reason = error.to_string();
        let place = reason.rsplit_once(" at line 1 column ");
        place.map_or(reason.clone(), |(reason, column)| {
            format!("{reason}, column {column}")
        })
    })?;
    match (isa, &state.uniform) {
        (InstructionSet::Spa53, Some(_)) => {
            Err("`ur`: SPA 5.3 has no uniform registers".to_string())
        }
        _ => Ok(state),
    }
}

/// The words of straight-line code, or all reasons why it is none.
fn program(name: &str, text: &str) -> Result<Vec<u128>> {
    let assembly = asm::assemble(name, text)?;
    messages::print_diagnostics(&assembly.warnings, messages::FIRST);
    let refused = refused(name, &assembly);
    if !refused.is_empty() {
        bail!(Several(refused));
    }
    let words = assembly.words().map_err(|errors| {
        let error = |error| format!("{name}: error: {error}");
        Several(errors.iter().map(error).collect())
    })?;
    Ok(words)
}
