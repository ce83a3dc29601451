//! Wrong uses of the library: each is one clear error, what was there before stays usable, and nothing panics.
//!
//! A row is a name, what is done, and words that its message must have: what is wrong, where, what to do instead. All
//! rows run, and all that are wrong are reported together. `THISGPU_SHOW=1` prints the messages.

#![cfg(all(
    feature = "asm",
    feature = "cache",
    feature = "driver",
    feature = "module",
    feature = "sim"
))]

#[path = "wrong_uses/commands.rs"]
mod commands;
#[path = "wrong_uses/devices.rs"]
mod devices;
#[path = "wrong_uses/modules.rs"]
mod modules;
#[path = "wrong_uses/texts.rs"]
mod texts;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a wrong use: the message, or what was taken for right.
type Outcome = Result<(), String>;

/// The rows so far, and what is wrong with them.
#[derive(Default)]
struct Table {
    names: HashSet<String>,
    complaints: Vec<String>,
}

impl Table {
    /// A row: `act` must give an error whose message has all of `says`.
    fn row(&mut self, name: &str, says: &[&str], act: impl FnOnce() -> Outcome) {
        if !self.names.insert(name.to_owned()) {
            self.complaints.push(format!("{name}: there twice"));
        }
        let complaint = match catch_unwind(AssertUnwindSafe(act)) {
            Err(_) => Some("panics".to_owned()),
            Ok(Ok(())) => Some("is no error".to_owned()),
            Ok(Err(message)) => {
                if std::env::var_os("THISGPU_SHOW").is_some() {
                    println!("--- {name}\n{message}");
                }
                says.iter()
                    .find(|says| !message.contains(**says))
                    .map(|says| format!("does not say `{says}`: {message}"))
                    .or_else(|| fault_of(&message).map(|fault| format!("{fault}: {message}")))
            }
        };
        if let Some(complaint) = complaint {
            self.complaints.push(format!("{name}: {complaint}"));
        }
    }
}

/// What no message should be.
fn fault_of(message: &str) -> Option<&'static str> {
    let mut lines = HashSet::new();
    let twice = message.lines().any(|line| !lines.insert(line));
    let has = |words: &[&str]| words.iter().any(|word| message.contains(word));
    match () {
        () if message.trim().is_empty() => Some("says nothing"),
        () if twice => Some("says something twice"),
        () if has(&["internal error", "panicked", "unwrap", "os error"]) => {
            Some("is no user's mistake")
        }
        () if has(&[" 1 arguments", " 1 bytes", " 1 parameters", "(s)"]) => {
            Some("has a wrong plural")
        }
        () if has(&["Some(", "Err(", "NonZero"]) => Some("shows Rust's values"),
        () => None,
    }
}

/// A message, with the messages of its sources as a program prints them that shows all.
fn message(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        // A source that its error has in its own text would be printed twice.
        text = format!("{text}\n{error}");
        source = error.source();
    }
    text
}

#[test]
fn each_of_a_hundred_wrong_uses_is_one_clear_error() {
    let mut table = Table::default();
    texts::rows(&mut table);
    commands::rows(&mut table);
    modules::rows(&mut table);
    devices::rows(&mut table);
    assert!(
        table.complaints.is_empty(),
        "{} of {}:\n{}",
        table.complaints.len(),
        table.names.len(),
        table.complaints.join("\n")
    );
    assert!(table.names.len() >= 100, "{} rows", table.names.len());
}
