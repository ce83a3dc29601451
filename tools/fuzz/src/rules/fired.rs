//! Which rules fire: what the compiler says with its feature `trace-rules` on.

use log::{LevelFilter, Log, Metadata, Record};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A rule that fired: its file and line, and the type of the instruction that it fired for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fired {
    /// The file, below the repository.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The controlling type of the instruction, or `untyped`.
    pub ty: String,
}

thread_local! {
    static MESSAGES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the messages of the compiler, thread by thread.
struct Keeper;

impl Log for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("cranelift_thisgpu")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            MESSAGES.with_borrow_mut(|messages| messages.push(record.args().to_string()));
        }
    }

    fn flush(&self) {}
}

/// Runs a compilation in this thread; gives what it gives and, for each function by name, which rules fired.
///
/// # Panics
/// When the process has another receiver of messages already.
pub fn fired<T>(compile: impl FnOnce() -> T) -> (T, BTreeMap<String, BTreeSet<Fired>>) {
    static INSTALL: std::sync::Once = std::sync::Once::new();
    INSTALL.call_once(|| {
        log::set_logger(&Keeper).expect("nobody else receives messages");
        log::set_max_level(LevelFilter::Debug);
    });
    MESSAGES.with_borrow_mut(Vec::clear);
    let result = compile();
    let messages = MESSAGES.with_borrow_mut(std::mem::take);
    (result, by_function(&messages))
}

/// What messages say.
fn by_function(messages: &[String]) -> BTreeMap<String, BTreeSet<Fired>> {
    let mut found: BTreeMap<String, BTreeSet<Fired>> = BTreeMap::new();
    let (mut function, mut ty) = (String::new(), String::new());
    for message in messages {
        let words: Vec<&str> = message.split(' ').collect();
        match words[..] {
            ["compile", name] => name.clone_into(&mut function),
            ["lower" | "rewrite", _, name] => name.clone_into(&mut ty),
            ["ISLE", _, file, "line", line] => {
                // Cranelift's compiler of ISLE counts lines from 0.
                if let Ok(line) = line.parse().map(|line: usize| line + 1) {
                    let (file, ty) = (file.to_owned(), ty.clone());
                    let rules = found.entry(function.clone()).or_default();
                    rules.insert(Fired { file, line, ty });
                }
            }
            _ => {}
        }
    }
    found
}
