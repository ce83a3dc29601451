//! Blocks inside each other. naga and the translator go into them by recursion, as the release of a module does: how
//! deep they may be is bounded, and the stack that they are read and translated with is known.

use crate::error::{Error, Reason, unsupported};
use crate::mistakes;
use crate::source::Source;
use naga::{Block, Module, Span, Statement};
use std::panic::resume_unwind;
use std::thread;

/// The most blocks inside each other in a function. A module of 900 is released on a stack of 2 MiB (*measured*), so
/// one of so many is, too (*assumed*).
const MOST_BLOCKS: usize = 1000;

/// The stack for reading and translating in bytes, of which only what is used is taken. The translator goes through
/// 4,096 blocks and calls with it (*measured*, without optimisation).
const STACK: usize = 128 << 20;

/// Runs something on a thread of its own that has room for recursion.
///
/// # Errors
/// Those of `part`, and where the system gives no thread.
pub(crate) fn deep<T: Send>(
    source: &Source,
    part: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let part = mistakes::carried(part);
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("naga".to_string());
        match thread.stack_size(STACK).spawn_scoped(scope, part) {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(error) => {
                let reason = Reason::Request(format!("no thread to translate on: {error}"));
                Err(source.error(Span::UNDEFINED, reason))
            }
        }
    })
}

/// Looks at all functions of a module, without recursion.
///
/// # Errors
/// The first statement that is too deep.
pub(crate) fn check(module: &Module) -> Result<(), (Span, Reason)> {
    let functions = module.functions.iter().map(|(_, function)| function);
    let entries = module.entry_points.iter().map(|point| &point.function);
    let bodies = functions.chain(entries).map(|function| &function.body);
    let mut blocks: Vec<(&Block, usize)> = bodies.map(|body| (body, 0)).collect();
    while let Some((block, depth)) = blocks.pop() {
        for (statement, &span) in block.span_iter() {
            let inside: Vec<&Block> = match statement {
                Statement::Block(block) => vec![block],
                Statement::If { accept, reject, .. } => vec![accept, reject],
                Statement::Switch { cases, .. } => cases.iter().map(|case| &case.body).collect(),
                Statement::Loop {
                    body, continuing, ..
                } => vec![body, continuing],
                _ => continue,
            };
            if depth == MOST_BLOCKS {
                let reason =
                    unsupported(format!("more than {MOST_BLOCKS} blocks inside each other"));
                return Err((span, reason));
            }
            blocks.extend(inside.into_iter().map(|block| (block, depth + 1)));
        }
    }
    Ok(())
}
