//! Finished code as a picture needs it: blocks and how they hang together, registers alive, and when instructions
//! issue.
//!
//! Takes code with control bits ([`Scheduled`]) and what the calls and ends of the function read and write by
//! convention ([`Conventions`], which only allocated code still says). Makes a [`Picture`], which serializes. Nothing
//! of the code depends on it.
//!
//! Registers are alive by a backward flow over the final words, since moves and waits were added after allocation. A
//! guarded write keeps the old value where its guard is false, so it ends no life.

use super::Scheduled;
use super::access::{AccessLists, Accesses, Resource};
use super::model::Timeline;
use super::purpose::Purpose;
use crate::analysis::graph::{Dominators, Graph, Loops};
use crate::isa::encode::WORD_BYTES;
use crate::isa::table::Effects;
use crate::isa::{Optype, PReg};
use crate::linear::Linear;
use crate::vcode::{AttachmentId, Entry, Terminator, VCode};
use hashbrown::HashMap;
use serde::Serialize;
use smallvec::SmallVec;

/// Words of a set of resources.
const WORDS: usize = Resource::COUNT.div_ceil(64);

/// A set of registers, predicates and convergence barriers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ResourceSet([u64; WORDS]);

impl ResourceSet {
    fn insert(&mut self, resource: Resource) {
        self.0[resource.index() / 64] |= 1 << (resource.index() % 64);
    }

    fn remove(&mut self, resource: Resource) {
        self.0[resource.index() / 64] &= !(1 << (resource.index() % 64));
    }

    fn contains(&self, resource: Resource) -> bool {
        self.0[resource.index() / 64] >> (resource.index() % 64) & 1 != 0
    }

    /// Adds another set; whether that is more than before.
    fn merge(&mut self, other: &ResourceSet) -> bool {
        let before = *self;
        (self.0.iter_mut().zip(other.0)).for_each(|(word, more)| *word |= more);
        *self != before
    }

    /// The names of its members, file by file.
    fn names(&self) -> Vec<String> {
        let all = Resource::all().filter(|(resource, _)| self.contains(*resource));
        all.map(|(_, name)| name.to_string()).collect()
    }
}

/// What a call passes: registers that it reads and writes by its convention.
#[derive(Clone, Debug, Default)]
struct Passed {
    reads: SmallVec<[PReg; 8]>,
    writes: SmallVec<[PReg; 4]>,
}

/// What the calls and the ends of a function read and write by convention.
#[derive(Clone, Debug, Default)]
pub struct Conventions {
    calls: HashMap<AttachmentId, Passed>,
    /// Registers that returns hand over.
    returned: SmallVec<[PReg; 4]>,
    /// Registers that tail calls hand over, those of all together.
    passed_on: SmallVec<[PReg; 8]>,
}

impl Conventions {
    /// Those of allocated code.
    pub fn of(code: &VCode<PReg>) -> Self {
        let mut conventions = Conventions::default();
        for (block, data) in code.blocks.iter() {
            for entry in code.block_insts(block) {
                if let (Some(attachment), Some(call)) = (entry.attachment, code.call(entry)) {
                    let passed = Passed {
                        reads: call.uses.iter().map(|pair| pair.1).collect(),
                        writes: call.defs.iter().map(|pair| pair.1).collect(),
                    };
                    conventions.calls.insert(attachment, passed);
                }
            }
            match &data.terminator {
                Terminator::Return { values, .. } => {
                    let results = values.iter().map(|pair| pair.1);
                    conventions.returned.extend(results);
                }
                Terminator::TailCall { values, .. } => {
                    let arguments = values.iter().map(|pair| pair.1);
                    conventions.passed_on.extend(arguments);
                }
                _ => {}
            }
        }
        conventions
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PictureInstruction {
    /// Byte offset in the function.
    pub offset: u32,
    /// Its text without control bits.
    pub text: String,
    /// The control bits as the assembler reads them.
    pub control: String,
    /// Number of its place in the source; 0 where it has none.
    pub source: u32,
    /// What it is there for, if not for a line of the source.
    pub purpose: Option<Purpose>,
    /// Cycle of its issue from the start of its block, one warp alone.
    pub issue: u64,
    /// For each scoreboard that it raises, until which cycle.
    pub raises: Vec<(u8, u64)>,
    /// Scoreboards that it waits for.
    pub waits: Vec<u8>,
    /// Registers that it reads.
    pub reads: Vec<String>,
    /// Registers that it writes.
    pub writes: Vec<String>,
    /// Registers that are alive behind it.
    pub alive: Vec<String>,
}

/// A block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PictureBlock {
    /// Index of its first instruction.
    pub first: usize,
    /// Number of its instructions.
    pub count: usize,
    /// Cycles from its first issue until the first of the next block, one warp alone.
    pub cycles: u64,
    /// Blocks that may come next.
    pub successors: Vec<usize>,
    /// The last block that every way to it passes; none for the entry and what is never reached.
    pub dominator: Option<usize>,
    /// Loops around it.
    pub depth: u32,
    /// The first block of the innermost loop around it.
    pub header: Option<usize>,
    /// Lanes may be elsewhere while it runs.
    pub divergent: bool,
    /// Convergence barriers that it sets (BSSY), each with the block where its lanes meet.
    pub sets: Vec<(String, Option<usize>)>,
    /// Convergence barriers that it waits at (BSYNC).
    pub meets: Vec<String>,
    /// Registers that are alive at its start.
    pub alive: Vec<String>,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Picture {
    /// Its name.
    pub name: String,
    /// Its blocks in the order of the code.
    pub blocks: Vec<PictureBlock>,
    /// Its instructions in the order of the code.
    pub instructions: Vec<PictureInstruction>,
}

/// Makes the picture of a function.
pub fn picture(scheduled: &Scheduled, conventions: &Conventions) -> Picture {
    let code = scheduled.code();
    let mut accesses = AccessLists::default();
    accesses.fill(code);
    let graph = code.graph();
    let dominators = Dominators::new(&graph, 0);
    let loops = Loops::new(&graph, &dominators);
    let life = Life {
        code,
        accesses: &accesses,
        conventions,
    };
    let starts = life.starts(&graph, &dominators);
    let spills = code.frame.spill_offset()..code.frame.spill_offset() + code.frame.spill_bytes;
    let mut instructions = Vec::with_capacity(code.len());
    let mut blocks = Vec::with_capacity(code.block_count());
    for block in 0..code.block_count() {
        let positions = code.positions(block);
        let timeline = Timeline::of(scheduled, &accesses, block);
        let alive = life.through(block, &starts);
        let entries = code.insts(block).zip(scheduled.controls(block));
        for (index, (entry, control)) in entries.enumerate() {
            let access = accesses.get(positions.start + index);
            let issued = &timeline.issued[index];
            let names = |resources: &mut dyn Iterator<Item = Resource>| {
                let mut set = ResourceSet::default();
                resources.for_each(|resource| set.insert(resource));
                set.names()
            };
            instructions.push(PictureInstruction {
                offset: ((positions.start + index) * WORD_BYTES) as u32,
                text: entry.inst.to_string(),
                control: control.to_string().trim().to_owned(),
                source: entry.line.0,
                purpose: Purpose::of(&entry.inst, &spills),
                issue: issued.at,
                raises: issued.raises.to_vec(),
                waits: (0..8).filter(|s| control.wait() >> s & 1 != 0).collect(),
                reads: names(&mut access.reads.iter().copied()),
                writes: names(&mut access.writes.iter().map(|write| write.resource)),
                alive: alive[index].names(),
            });
        }
        let inner = loops.innermost(block);
        blocks.push(PictureBlock {
            first: positions.start,
            count: positions.len(),
            cycles: timeline.cycles,
            successors: code.successors(block).collect(),
            dominator: dominators.immediate(block).filter(|&d| d != block),
            depth: loops.depth(block),
            header: inner.map(|index| loops.all()[index].header),
            divergent: code.is_divergent(block),
            sets: named(code, &accesses, block, Optype::BSSY)
                .flat_map(|(names, entry)| {
                    let place = code.label_block(entry);
                    names.into_iter().map(move |name| (name, place))
                })
                .collect(),
            meets: named(code, &accesses, block, Optype::BSYNC)
                .flat_map(|(names, _)| names)
                .collect(),
            alive: starts[block].names(),
        });
    }
    Picture {
        name: code.name.clone(),
        blocks,
        instructions,
    }
}

/// The instructions of an optype in a block, each with the names of the registers and barriers that it reads or writes.
fn named<'a>(
    code: &'a Linear,
    accesses: &'a AccessLists,
    block: usize,
    optype: Optype,
) -> impl Iterator<Item = (Vec<String>, &'a Entry<PReg>)> {
    let entries = code.insts(block).zip(code.positions(block));
    let of = entries.filter(move |(entry, _)| entry.inst.optype() == optype);
    of.map(|(entry, position)| {
        let access = accesses.get(position);
        let mut set = ResourceSet::default();
        access.reads.iter().for_each(|r| set.insert(*r));
        access.writes.iter().for_each(|w| set.insert(w.resource));
        let names = set.names().into_iter();
        // A guard is no barrier.
        (names.filter(|name| name.starts_with('B')).collect(), entry)
    })
}

/// Which registers are alive where.
struct Life<'a> {
    code: &'a Linear,
    accesses: &'a AccessLists,
    conventions: &'a Conventions,
}

impl Life<'_> {
    /// Goes from behind an instruction to before it.
    fn step_back(&self, alive: &mut ResourceSet, entry: &Entry<PReg>, access: &Accesses<'_>) {
        let passed = entry
            .attachment
            .and_then(|a| self.conventions.calls.get(&a));
        let register = |reg: &PReg| Resource::register(*reg);
        if entry.inst.is_unguarded() {
            let writes = access.writes.iter().map(|write| write.resource);
            writes.for_each(|resource| alive.remove(resource));
            if let Some(passed) = passed {
                let writes = passed.writes.iter().map(register);
                writes.for_each(|resource| alive.remove(resource));
            }
        }
        access.reads.iter().for_each(|r| alive.insert(*r));
        if let Some(passed) = passed {
            let reads = passed.reads.iter().map(register);
            reads.for_each(|resource| alive.insert(resource));
        } else if access.leaves && access.ends_path {
            let effects = entry.inst.optype().info().effects;
            let over = match effects.contains(Effects::RETURN) {
                true => self.conventions.returned.as_slice(),
                false => self.conventions.passed_on.as_slice(),
            };
            let over = over.iter().map(register);
            over.for_each(|resource| alive.insert(resource));
        }
    }

    /// What is alive behind a block.
    fn end(&self, block: usize, starts: &[ResourceSet]) -> ResourceSet {
        let mut alive = ResourceSet::default();
        let next = self.code.successors(block);
        next.filter_map(|next| starts.get(next)).for_each(|start| {
            alive.merge(start);
        });
        alive
    }

    /// What is alive behind each instruction of a block.
    fn through(&self, block: usize, starts: &[ResourceSet]) -> Vec<ResourceSet> {
        let mut alive = self.end(block, starts);
        let positions = self.code.positions(block);
        let mut all = Vec::with_capacity(positions.len());
        for (entry, position) in self.code.insts(block).rev().zip(positions.rev()) {
            all.push(alive);
            self.step_back(&mut alive, entry, &self.accesses.get(position));
        }
        all.reverse();
        all
    }

    /// What is alive at the start of each block.
    fn starts(&self, graph: &Graph, dominators: &Dominators) -> Vec<ResourceSet> {
        let mut starts = vec![ResourceSet::default(); graph.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for &block in dominators.reverse_postorder().iter().rev() {
                let mut alive = self.end(block, &starts);
                let positions = self.code.positions(block);
                for (entry, position) in self.code.insts(block).rev().zip(positions.rev()) {
                    self.step_back(&mut alive, entry, &self.accesses.get(position));
                }
                changed |= starts[block].merge(&alive);
            }
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use crate::compile::{Compiler, Pass};
    use crate::settings::Options;
    use std::sync::{Arc, Mutex};

    use super::{Picture, PictureInstruction, Purpose};

    fn picture_of(text: &str, settings: &[&str]) -> Picture {
        let mut options = Options::default();
        for setting in settings {
            options.set(setting).expect("a setting");
        }
        let mut compiler = Compiler::new(options);
        compiler.draw_code(true);
        let found = Arc::new(Mutex::new(None));
        let sink = Arc::clone(&found);
        compiler.dump_after(
            &[Pass::Control],
            Box::new(move |dump| *sink.lock().unwrap() = dump.picture.cloned()),
        );
        compiler.compile_clif(text).expect("right");
        found.lock().unwrap().take().expect("drawn")
    }

    const LOOP: &str = "; kernel
function %f(i32, i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i32, v1: i64):
    v2 = call fn0()
    v3 = iconst.i32 0
    jump block1(v2, v3)
block1(v4: i32, v5: i32):
    v6 = iadd v5, v4
    v11 = iconst.i32 1
    v7 = ushr v4, v11
    brif v7, block1(v7, v6), block2
block2:
    v8 = uextend.i64 v2
    v12 = iconst.i32 2
    v9 = ishl v8, v12
    v10 = iadd v1, v9
    store.i32 aligned v6, v10
    return
}";

    #[test]
    fn a_divergent_loop_has_its_barrier_its_life_and_its_time() {
        let picture = picture_of(LOOP, &["unroll=off"]);
        let body = picture
            .blocks
            .iter()
            .position(|b| b.depth == 1)
            .expect("a loop");
        let block = &picture.blocks[body];
        assert!(block.successors.contains(&body) && block.divergent);
        assert_eq!(block.header, Some(body));
        let set = picture
            .blocks
            .iter()
            .flat_map(|b| &b.sets)
            .collect::<Vec<_>>();
        let met: Vec<_> = picture.blocks.iter().flat_map(|b| &b.meets).collect();
        assert_eq!(set.len(), 1);
        assert_eq!(met, [&set[0].0]);
        let (barrier, place) = set[0];
        let place = place.expect("a block of the function");
        assert!(picture.blocks[place].meets.contains(barrier));
        // The barrier is alive from where it is set to where the lanes meet.
        assert!(block.alive.contains(barrier));
        assert!(!picture.instructions.last().unwrap().alive.contains(barrier));
        assert!(
            picture.blocks[0].alive.is_empty(),
            "{:?}",
            picture.blocks[0]
        );
        for block in &picture.blocks {
            let all = &picture.instructions[block.first..block.first + block.count];
            assert!(all.windows(2).all(|pair| pair[0].issue < pair[1].issue));
            assert!(all.iter().all(|inst| inst.issue < block.cycles));
        }
        // What is read behind an instruction was alive there.
        for block in &picture.blocks {
            let all = &picture.instructions[block.first..block.first + block.count];
            for pair in all.windows(2) {
                for read in &pair[1].reads {
                    assert!(pair[0].alive.contains(read), "{read} in {pair:?}");
                }
            }
        }
    }

    #[test]
    fn arguments_of_calls_and_results_are_alive() {
        let text = "function %f(i32, i32) -> i32 {
    fn0 = %g(i32) -> i32
block0(v0: i32, v1: i32):
    v2 = call fn0(v0)
    v3 = iadd v2, v1
    return v3
}";
        let picture = picture_of(text, &[]);
        let call = picture
            .instructions
            .iter()
            .position(|i| i.text.starts_with("CALL"));
        let call = call.expect("a call");
        assert!(
            picture.instructions[call - 1]
                .alive
                .iter()
                .any(|r| r == "R4")
        );
        assert!(picture.instructions[call].alive.iter().any(|r| r == "R4"));
        let end = picture
            .instructions
            .iter()
            .position(|i| i.text.starts_with("RET"));
        let end = end.expect("a return");
        assert!(
            picture.instructions[end - 1]
                .alive
                .iter()
                .any(|r| r == "R4")
        );
        assert!(picture.blocks[0].alive.iter().any(|r| r == "R5"));
    }

    #[test]
    fn returns_keep_no_arguments_of_tail_calls_alive() {
        let text = "function %f(i32, i32, i32) -> i32 tail {
    fn0 = %g(i32, i32, i32) -> i32 tail
block0(v0: i32, v1: i32, v2: i32):
    brif v0, block1, block2
block1:
    return_call fn0(v1, v0, v2)
block2:
    return v1
}";
        let picture = picture_of(text, &[]);
        let before = |name: &str| {
            let is_end = |i: &PictureInstruction| i.text.starts_with(name);
            let end = picture.instructions.iter().rposition(is_end);
            &picture.instructions[end.expect("an end") - 1].alive
        };
        assert_eq!(before("RET"), &["R2", "R3", "R4"]);
        assert_eq!(before("BRA"), &["R2", "R3", "R4", "R5", "R6"]);
    }

    #[test]
    fn spills_are_told() {
        let values: String = (0..40)
            .map(|i| format!("    v{} = load.i32 aligned v1+{}\n", 10 + i, 4 * i))
            .collect();
        let stores: String = (0..40)
            .map(|i| {
                format!(
                    "    store.i32 aligned v{}, v0+{}\n",
                    10 + (i * 7) % 40,
                    4 * i
                )
            })
            .collect();
        let text = format!(
            "; kernel\nfunction %f(i64, i64) {{\nblock0(v0: i64, v1: i64):\n{values}    fence\n{stores}    return\n}}"
        );
        let picture = picture_of(&text, &["regs=24", "merge_accesses=false"]);
        let of = |purpose| {
            let all = picture.instructions.iter();
            all.filter(|i| i.purpose == Some(purpose)).count()
        };
        assert!(of(Purpose::Spill) > 0 && of(Purpose::Reload) > 0);
    }
}
