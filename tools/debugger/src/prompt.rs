//! Commands from a terminal, or from a script.

use super::command::{Command, HELP, parse};
use super::debugger::Debugger;
use crate::Print;
use anyhow::{Result, bail};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

/// Completes the names of commands and functions.
struct Names {
    commands: Vec<&'static str>,
    functions: Vec<String>,
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let start = before
            .rfind(char::is_whitespace)
            .map_or(0, |blank| blank + 1);
        let begun = &before[start..];
        let commands = self.commands.iter().map(|name| (*name).to_owned());
        let functions = self.functions.iter().cloned();
        let names: Vec<String> = if start == 0 {
            commands.collect()
        } else {
            functions.collect()
        };
        let fits = |name: &String| name.starts_with(begun);
        Ok((start, names.into_iter().filter(fits).collect()))
    }
}

impl Hinter for Names {
    type Hint = String;
}
impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}

/// Ctrl-C pauses the launch while it goes on.
fn pause_by_key(debugger: &Debugger) {
    let pause = debugger.session.pause();
    if let Err(error) = ctrlc::set_handler(move || pause.ask()) {
        log::warn!("Ctrl-C ends the debugger: {error}");
    }
}

/// Reads commands from a terminal until the end.
pub fn run(mut debugger: Debugger, print: Print) -> Result<()> {
    pause_by_key(&debugger);
    let mut editor: Editor<Names, DefaultHistory> = Editor::new()?;
    let functions = debugger.session.image().functions.iter();
    editor.set_helper(Some(Names {
        commands: HELP.iter().map(|(name, _, _)| *name).collect(),
        functions: functions.map(|function| function.name.clone()).collect(),
    }));
    let beginning = debugger.session.go_to(0);
    print(&debugger.arrived(&beginning))?;
    let mut last = String::new();
    loop {
        let line = match editor.readline("(thisgpu) ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => bail!(error),
        };
        // An empty line is the last command again.
        if !line.trim().is_empty() {
            editor.add_history_entry(&line)?;
            last = line;
        }
        match parse(&last, debugger.thread, debugger.session.shape()) {
            Ok(None) => {}
            Ok(Some(Command::Quit)) => return Ok(()),
            Ok(Some(command)) => match debugger.run(command) {
                Ok(text) => print(&text)?,
                Err(error) => print(&format!("error: {error}"))?,
            },
            Err(error) => print(&format!("error: {error}"))?,
        }
    }
}

/// Runs the commands of a script, and prints each before what it tells.
///
/// # Errors
/// The first command that cannot be run, with its line.
pub fn run_script(
    mut debugger: Debugger,
    lines: impl Iterator<Item = Result<String>>,
    print: Print,
) -> Result<()> {
    pause_by_key(&debugger);
    // The first block begins.
    debugger.session.next_thread();
    for (number, line) in (1..).zip(lines) {
        let line = line?;
        let shape = debugger.session.shape();
        let command = match parse(&line, debugger.thread, shape) {
            Ok(None) => continue,
            Ok(Some(Command::Quit)) => break,
            Ok(Some(command)) => command,
            Err(error) => bail!("line {number}: {error}"),
        };
        print(&format!("(thisgpu) {}", line.trim()))?;
        match debugger.run(command) {
            Ok(text) => print(&text)?,
            Err(error) => bail!("line {number}: {error}"),
        }
    }
    Ok(())
}
