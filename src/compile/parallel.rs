//! Many functions on several threads.
//!
//! Threads take functions from one list, a few at a time, and each has a compiler of its own. What functions do to each
//! other's lanes is known before (`summaries`), so the order in which they are compiled decides nothing but one thing:
//! which jump tables find room in the constant bank. All are compiled as if the bank were theirs, and put into the unit
//! in the order of the list; those that find less room then are compiled again, as one thread would have compiled them
//! in the first place. So the unit is the same whatever the number of threads.

use super::{Compiled, Compiler, FunctionInput, Summaries, Unit};
use crate::error::{ErrorList, Errors};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Functions that a thread takes at a time (*assumed*: enough that threads do not wait for each other, few enough that
/// none is left with many).
const TAKEN: usize = 8;
/// Stack of a thread in bytes: what the main thread has on Linux, because passes recurse into what is nested.
const STACK: usize = 8 << 20;

/// None of a function that was to stop before the end.
type Outcome = Result<Option<Compiled>, Errors>;

impl Compiler {
    /// Compiles functions, which may call each other, into `unit` on so many threads, this one included. What comes out
    /// is the same whatever their number. With dumps one thread does everything, so that texts come in order.
    ///
    /// # Errors
    /// Everything that is wrong or unsupported in any of the functions, in their order; the others are in `unit` then.
    pub fn compile_module(
        &mut self,
        functions: &[FunctionInput<'_>],
        unit: &mut Unit,
        threads: usize,
    ) -> Result<(), Errors> {
        unit.announce(functions);
        self.compile_announced(functions, unit, threads)
    }

    /// [`Compiler::compile_module`] of functions that `unit` knows of already.
    ///
    /// # Errors
    /// As there.
    pub fn compile_announced(
        &mut self,
        functions: &[FunctionInput<'_>],
        unit: &mut Unit,
        threads: usize,
    ) -> Result<(), Errors> {
        let mut errors = ErrorList::new();
        for compiled in self.compile_all(functions, unit, threads) {
            errors.extend(compiled.err().into_iter().flatten());
        }
        errors.finish(())
    }

    /// Compiles functions that were announced; gives what became of each.
    pub(super) fn compile_all(
        &mut self,
        functions: &[FunctionInput<'_>],
        unit: &mut Unit,
        threads: usize,
    ) -> Vec<Result<(), Errors>> {
        let useful = functions.len().div_ceil(TAKEN).min(threads);
        if useful < 2 || self.watch.sink.is_some() || self.watch.last.is_some() {
            let compile = |function| self.compile_function(function, unit);
            return functions.iter().map(compile).collect();
        }
        let room = unit.room();
        let compiled = self.on_threads(functions, &unit.summaries, room, useful);
        let put = |(function, compiled): (&FunctionInput<'_>, Outcome)| {
            let Some(compiled) = compiled? else {
                return Ok(());
            };
            if !compiled.constants.fits(unit.room()) {
                return self.compile_function(function, unit);
            }
            unit.push(compiled);
            Ok(())
        };
        functions.iter().zip(compiled).map(put).collect()
    }

    /// Compiles on this thread and others; the order is that of `functions`.
    fn on_threads(
        &mut self,
        functions: &[FunctionInput<'_>],
        summaries: &Summaries,
        room: u32,
        threads: usize,
    ) -> Vec<Outcome> {
        let next = AtomicUsize::new(0);
        let work = |compiler: &mut Compiler| {
            let mut done: Vec<(usize, Outcome)> = Vec::new();
            loop {
                let first = next.fetch_add(TAKEN, Ordering::Relaxed);
                if first >= functions.len() {
                    return done;
                }
                let last = functions.len().min(first + TAKEN);
                let taken = functions[first..last]
                    .iter()
                    .map(|function| compiler.passes(function, summaries, room));
                done.extend((first..).zip(taken));
            }
        };
        let mut outcomes: Vec<Option<Outcome>> = functions.iter().map(|_| None).collect();
        let mut store = |done: Vec<(usize, Outcome)>| {
            for (index, outcome) in done {
                outcomes[index] = Some(outcome);
            }
        };
        thread::scope(|scope| {
            let helpers: Vec<_> = (1..threads)
                .filter_map(|thread| {
                    let mut compiler = Compiler::new(self.options.clone());
                    compiler.set_locations(self.locations.clone());
                    compiler.set_variables(self.variables.clone());
                    compiler.verified = self.verified;
                    #[cfg(feature = "cache")]
                    compiler.use_cache(self.cache.clone());
                    compiler.time_passes(self.watch.timed);
                    compiler.skip.clone_from(&self.skip);
                    compiler.collect_remarks(self.watch.remarks);
                    compiler.model_cycles(self.watch.cycles);
                    let recorder = self.watch.recorder.as_ref();
                    compiler.watch.recorder = recorder.map(|recorder| recorder.of_thread(thread));
                    let helper = thread::Builder::new().stack_size(STACK);
                    // Where the system gives no more threads, those that there are do the work.
                    let work = move || (work(&mut compiler), compiler);
                    helper.spawn_scoped(scope, work).ok()
                })
                .collect();
            store(work(self));
            for helper in helpers {
                let (done, mut compiler) =
                    helper.join().unwrap_or_else(|panic| resume_unwind(panic));
                store(done);
                self.watch.timings.add(compiler.timings());
                let recorder = self.watch.recorder.as_mut();
                if let Some((recorder, more)) = recorder.zip(compiler.watch.recorder.take()) {
                    recorder.append(more);
                }
            }
        });
        outcomes.into_iter().flatten().collect()
    }
}
