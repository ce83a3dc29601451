//! Values at marks, exactly.
//!
//! A mark counts how often the thread has come to one. The kernel gets some, at the ends of blocks. With
//! nothing optimised it also writes down, at each mark, the values whose definitions dominate it. Then it runs in the
//! settings that are tested, with the marks only, and stops before them: what a debugger is told there has to be what
//! was written down the same time.

use super::super::check::{Found, Kind};
use super::super::kernel::Kernel;
use super::instrument::{add_memory, bits_of, tainted};
use super::{
    LANES, Mistake, compile_file, compile_plainly, fails, function, launched, left, parsed,
};
use crate::random::Random;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{
    AtomicRmwOp, Block, Function, Inst, InstBuilder, MemFlagsData, SourceLoc, Value, ValueDef,
    types,
};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::debug::{Breakpoint, Operand, Place, Session, Space, Stop, Thread};
use cranelift_thisgpu::values::SourceValue;

/// Marks of a kernel.
const MARKS: usize = 8;
/// Marks that a thread writes down, at most.
const TIMES: usize = 64;
/// The first mark's line.
const LINE: u32 = 1_000_000;
/// Stops of a session, at most.
const STOPS: u32 = 200;

/// Where the marks are, and which values are known there.
struct Marks {
    /// Blocks, before whose last instruction there is a mark.
    blocks: Vec<Block>,
    /// By mark, the numbers of the values that dominate it.
    known: Vec<Vec<usize>>,
}

impl Marks {
    fn of(func: &Function, values: &[Value], random: &mut Random) -> Marks {
        let cfg = ControlFlowGraph::with_function(func);
        let domtree = DominatorTree::with_function(func, &cfg);
        let mut blocks: Vec<Block> = domtree.cfg_rpo().copied().collect();
        while blocks.len() > MARKS {
            blocks.swap_remove(random.below(blocks.len()));
        }
        let dominates = |value: &Value, block: Block| {
            let from = match func.dfg.value_def(*value) {
                ValueDef::Result(inst, _) => func.layout.inst_block(inst),
                ValueDef::Param(block, _) => Some(block),
                ValueDef::Union(..) => None,
            };
            from.is_some_and(|from| domtree.block_dominates(from, block))
        };
        let known = blocks.iter().map(|&block| {
            let numbered = values.iter().enumerate();
            numbered
                .filter(|(_, value)| dominates(value, block))
                .map(|(n, _)| n)
                .collect()
        });
        Marks {
            known: known.collect(),
            blocks,
        }
    }

    /// Puts the marks into the function; each writes down what is known there if that is wanted.
    fn put(&self, func: &mut Function, values: &[Value], writes: bool) {
        let (own, _) = add_memory(func, stride(values.len()));
        for (mark, &block) in self.blocks.iter().enumerate() {
            let end = func.layout.last_inst(block).expect("a block has an end");
            let known: Vec<(usize, Value)> = self.known[mark]
                .iter()
                .map(|&number| (number, values[number]))
                .collect();
            let line = SourceLoc::new(LINE + mark as u32);
            self.mark(
                func,
                end,
                own,
                (mark, line),
                known,
                writes.then_some(values.len()),
            );
        }
    }

    fn mark(
        &self,
        func: &mut Function,
        end: Inst,
        own: Value,
        (mark, line): (usize, SourceLoc),
        known: Vec<(usize, Value)>,
        written: Option<usize>,
    ) {
        let flags = MemFlagsData::trusted();
        let mut pos = FuncCursor::new(func).at_inst(end);
        let one = pos.ins().iconst(types::I64, 1);
        // A plain store could be left out before the next one.
        let count = pos
            .ins()
            .atomic_rmw(types::I64, flags, AtomicRmwOp::Add, own, one);
        let counts = pos.func.dfg.value_def(count).unwrap_inst();
        pos.func.set_srcloc(counts, line);
        let Some(values) = written else { return };
        let most = pos.ins().iconst(types::I64, TIMES as i64 - 1);
        let index = pos.ins().umin(count, most);
        let bytes = pos.ins().iconst(types::I64, record(values) as i64);
        let offset = pos.ins().imul(index, bytes);
        let place = pos.ins().iadd(own, offset);
        let number = pos.ins().iconst(types::I64, mark as i64);
        pos.ins().store(flags, number, place, 8);
        for (number, value) in known {
            let bits = bits_of(&mut pos, value);
            pos.ins().store(flags, bits, place, 16 + 8 * number as i32);
        }
    }
}

/// Whether a branch depends on what other threads do.
fn has_tainted_branch(func: &Function) -> bool {
    let tainted = tainted(func);
    let mut ends = func
        .layout
        .blocks()
        .filter_map(|block| func.layout.last_inst(block));
    ends.any(|end| {
        let condition = func.dfg.inst_args(end).first();
        condition.is_some_and(|value| tainted.contains(func.dfg.resolve_aliases(*value)))
    })
}

/// Bytes that a mark writes: its number and the values.
fn record(values: usize) -> usize {
    8 + 8 * values
}

/// Bytes of a thread: how many marks, and what they have written.
fn stride(values: usize) -> usize {
    8 + TIMES * record(values)
}

/// The text's file with marks.
fn with_marks(text: &str, marks: &Marks, values: &[Value], writes: bool) -> Found<SourceFile> {
    let mut file = parsed(text)?;
    marks.put(function(&mut file)?, values, writes);
    Ok(file)
}

/// Compares values at marks; how many were shown there.
///
/// # Errors
/// A value that is another one, or anything else that fails.
pub(super) fn check(
    kernel: &Kernel,
    text: &str,
    values: &[Value],
    options: &Options,
    mistake: Option<Mistake>,
    random: &mut Random,
) -> Found<u64> {
    let mut file = parsed(text)?;
    let source = function(&mut file)?;
    // Where the way of a thread depends on others, marks cannot be counted.
    if has_tainted_branch(source) {
        return Ok(0);
    }
    let marks = Marks::of(source, values, random);
    let words = kernel.all_threads() as usize * stride(values.len()) / 8;
    let writing = compile_plainly(&with_marks(text, &marks, values, true)?)?;
    let written = left(kernel, &writing, words)?;
    let mut object = compile_file(&with_marks(text, &marks, values, false)?, options.clone())?;
    if let Some(mistake) = mistake {
        mistake.plant(&mut object);
    }
    launched(kernel, &object, words, |launch, memory| {
        let mut session = launch.debug().map_err(|e| fails(&e))?;
        for mark in 0..marks.blocks.len() as u32 {
            // A mark that is never come to may have no code.
            let place = Place::Line {
                file: None,
                line: LINE + mark,
            };
            let _ = session.add_breakpoint(Breakpoint::at(place));
        }
        let looker = Looker {
            kernel,
            marks: &marks,
            values,
            written: &written,
            memory: memory.address(),
        };
        looker.look(&mut session)
    })
}

/// Whether a lane counts where it is: others of its line may stand far before it, and those of a short side whose guard
/// is false do not come to the mark.
fn runs(session: &Session, thread: Thread, pc: u32) -> bool {
    let code = session.disassemble(pc, 1);
    let text = code.first().map_or("", |(_, text)| text);
    if !text.contains("ATOMG") {
        return false;
    }
    let Some(guard) = text.strip_prefix('@') else {
        return true;
    };
    let (guard, holds) = match guard.strip_prefix('!') {
        Some(guard) => (guard, false),
        None => (guard, true),
    };
    let number = guard
        .strip_prefix('P')
        .and_then(|rest| rest.split(' ').next()?.parse().ok());
    let lanes = number.and_then(|number| session.predicate(thread, number));
    lanes.is_some_and(|lanes| (lanes >> thread.lane() & 1 != 0) == holds)
}

struct Looker<'a> {
    kernel: &'a Kernel,
    marks: &'a Marks,
    values: &'a [Value],
    written: &'a [u64],
    /// Where the threads count their marks.
    memory: u64,
}

impl Looker<'_> {
    /// Goes from mark to mark.
    fn look(&self, session: &mut Session) -> Found<u64> {
        let mut shown = 0;
        for _ in 0..STOPS {
            let Stop::Breakpoint { thread, lanes, .. } = session.resume() else {
                return Ok(shown);
            };
            let first = thread.thread - thread.thread % LANES;
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
                let thread = Thread {
                    thread: first + lane,
                    ..thread
                };
                shown += self.compare(session, thread)?;
            }
        }
        Ok(shown)
    }

    fn compare(&self, session: &Session, thread: Thread) -> Found<u64> {
        let mut shown_here = 0;
        let Some(place) = session
            .place(thread)
            .filter(|place| runs(session, thread, place.pc))
        else {
            return Ok(0);
        };
        let index = thread.block as usize * self.kernel.threads as usize + thread.thread as usize;
        let bytes = stride(self.values.len());
        let counter = self.memory + (index * bytes) as u64;
        let count = session.read(Space::Global, counter, 8);
        let count = count.map_err(|message| (Kind::Fault, message))?;
        let count = u64::from_le_bytes(count.try_into().expect("8 bytes")) as usize;
        let mark = (place.location.line as usize).wrapping_sub(LINE as usize);
        let start = index * bytes / 8 + 1 + count * record(self.values.len()) / 8;
        if count >= TIMES - 1 {
            return Ok(0);
        }
        let written = self.written[index * bytes / 8] as usize;
        if count >= written || self.written[start] as usize != mark {
            let message =
                format!("thread {index} comes to mark {mark} as its {count}th of {written}");
            return Err((Kind::Value, message));
        }
        for &number in &self.marks.known[mark] {
            let value = self.values[number];
            let was = self.written[start + 1 + number];
            let operand = Operand::Source(SourceValue::Value(value.as_u32()));
            let Some(shown) = session.value(thread, &operand) else {
                continue;
            };
            if shown != u128::from(was) {
                let message = format!(
                    "{value} of thread {index} is said to be {shown:#x} at {place}, mark {mark}, and is {was:#x}"
                );
                return Err((Kind::Value, message));
            }
            shown_here += 1;
        }
        Ok(shown_here)
    }
}
