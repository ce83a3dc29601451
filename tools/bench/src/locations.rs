//! How much of the source a debugger can show: at each instruction with which a line of the source begins, where a
//! debugger stops, of the values that are alive in the source before that line, the share that has a location.
//!
//! Alive is what the CLIF reads later, by a backward data flow over it, constants apart: what the compiler makes of
//! them is not asked. Carried are those that are parameters of blocks, or alive from one block to another: what a front
//! end's variables become, where others are parts of an expression.

use crate::corpus::Source;
use anyhow::Result;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::object::ObjectFunction;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::values::SourceValue;
use std::collections::HashMap;
use std::fmt::Write;

/// Settings that are measured.
const SETTINGS: [(&str, &[&str]); 2] = [
    (
        "to be debugged",
        &["opt_level=none", "keep_slots=true", "reorder=false"],
    ),
    ("all optimisations", &[]),
];

/// Values at instructions.
#[derive(Clone, Copy, Default)]
struct Share {
    alive: u64,
    located: u64,
    carried: u64,
    carried_located: u64,
}

/// Prints the shares of all sources.
///
/// # Errors
/// Settings that are none.
pub fn table(sources: &[Source], settings: &[String]) -> Result<String> {
    let mut out = String::new();
    for (label, own) in SETTINGS {
        let mut options = Options {
            value_locations: true,
            ..Options::default()
        };
        for setting in own
            .iter()
            .copied()
            .chain(settings.iter().map(String::as_str))
        {
            options.set(setting)?;
        }
        for source in sources {
            let mut share = Share::default();
            for file in &source.files {
                // Files of what is refused do not compile.
                if let Ok(code) = Compiler::new(options.clone()).file(&file.text) {
                    count(&file.text, &code.object().functions, &mut share);
                }
            }
            let percent = |part: u64, all: u64| 100.0 * part as f64 / (all.max(1)) as f64;
            writeln!(
                out,
                "{}, {label}: {:.1} % of {} values alive where lines begin have a location, {:.1} % of {} carried ones",
                source.name,
                percent(share.located, share.alive),
                share.alive,
                percent(share.carried_located, share.carried),
                share.carried,
            )?;
        }
    }
    Ok(out)
}

fn count(file: &SourceFile, functions: &[ObjectFunction], share: &mut Share) {
    for source in &file.functions {
        let Some(function) = functions
            .iter()
            .find(|function| function.name == source.name())
        else {
            continue;
        };
        let alive = Alive::of(&source.func);
        let mut lines = function.lines.iter().peekable();
        let mut line = 0;
        for offset in (0..function.words.len() as u32).map(|index| index * 16) {
            let mut begins = false;
            while let Some(next) = lines.next_if(|line| line.offset <= offset) {
                line = next.location.line;
                begins = true;
            }
            if !begins {
                continue;
            }
            for &(value, is_carried) in alive.at(line) {
                let source = SourceValue::Value(value.as_u32());
                let found = function
                    .values
                    .binary_search_by_key(&source, |found| found.source);
                let located = found.is_ok_and(|index| function.values[index].at(offset).is_some());
                share.alive += 1;
                share.located += u64::from(located);
                share.carried += u64::from(is_carried);
                share.carried_located += u64::from(is_carried && located);
            }
        }
    }
}

/// The values that are alive before each instruction, by its line, and whether they are carried.
struct Alive(HashMap<u32, Vec<(Value, bool)>>);

impl Alive {
    fn of(func: &Function) -> Alive {
        let ends = alive_at_ends(func);
        let mut carried: EntitySet<Value> = EntitySet::new();
        for block in func.layout.blocks() {
            carried.extend(func.dfg.block_params(block).iter().copied());
            carried.extend(ends[&block].iter().copied());
        }
        let mut lines = HashMap::new();
        for block in func.layout.blocks() {
            let mut alive = ends[&block].clone();
            for inst in insts_backwards(func, block) {
                step(func, inst, &mut alive);
                let line = func.srcloc(inst).bits();
                let is_counted = |value: &&Value| !is_constant(func, **value);
                let values = alive.iter().filter(is_counted);
                let values = values.map(|value| (*value, carried.contains(*value)));
                lines.insert(line, values.collect());
            }
        }
        Alive(lines)
    }

    fn at(&self, line: u32) -> &[(Value, bool)] {
        self.0.get(&line).map_or(&[], Vec::as_slice)
    }
}

fn insts_backwards(func: &Function, block: Block) -> impl Iterator<Item = Inst> + '_ {
    std::iter::successors(func.layout.last_inst(block), |inst| {
        func.layout.prev_inst(*inst)
    })
}

fn is_constant(func: &Function, value: Value) -> bool {
    let inst = func.dfg.value_def(value).inst();
    inst.is_some_and(|inst| {
        let data = &func.dfg.insts[inst];
        func.dfg.inst_args(inst).is_empty() && !data.opcode().is_call() && !data.opcode().can_load()
    })
}

/// What is alive before an instruction, of what is alive behind it.
fn step(func: &Function, inst: Inst, alive: &mut Vec<Value>) {
    alive.retain(|value| !func.dfg.inst_results(inst).contains(value));
    for value in func.dfg.inst_values(inst) {
        let value = func.dfg.resolve_aliases(value);
        if !alive.contains(&value) {
            alive.push(value);
        }
    }
}

/// What is alive at the end of each block, behind its last instruction.
fn alive_at_ends(func: &Function) -> HashMap<Block, Vec<Value>> {
    let mut ends: HashMap<Block, Vec<Value>> =
        func.layout.blocks().map(|b| (b, Vec::new())).collect();
    let blocks: Vec<Block> = func.layout.blocks().collect();
    loop {
        let mut changed = false;
        for &block in blocks.iter().rev() {
            let mut end = Vec::new();
            for successor in func.block_successors(block) {
                let mut alive = ends[&successor].clone();
                insts_backwards(func, successor).for_each(|inst| step(func, inst, &mut alive));
                let params = func.dfg.block_params(successor);
                end.extend(alive.into_iter().filter(|value| !params.contains(value)));
            }
            end.sort_unstable();
            end.dedup();
            if ends[&block] != end {
                ends.insert(block, end);
                changed = true;
            }
        }
        if !changed {
            return ends;
        }
    }
}
