//! Facts about a function that selection and the later passes ask for.
//!
//! [`Facts::compute`] takes a function ([`Subject`]) and leaves it as it is; the control flow is already there.
//! Everything is indexed by Cranelift's entities in dense maps, and near-linear in the size of the function. [`graph`]
//! holds the graph algorithms that machine code uses too.

mod advance;
pub mod alignment;
mod barriers;
pub mod bounds;
pub mod calls;
pub mod components;
pub mod control_flow;
pub mod definitions;
mod endings;
pub mod graph;
mod loop_tree;
pub mod meeting;
pub mod ordering;
mod polling;
pub mod progress;
pub mod provenance;
mod roots;
mod taint;
#[cfg(test)]
pub(crate) mod testing;
pub mod truths;
pub mod uniformity;
pub mod uses;
pub mod window;

use crate::intrinsics::resolve::Intrinsics;
use alignment::Alignment;
use calls::Callees;
use control_flow::{ControlFlow, PostDominator};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, Function, Inst, Value};
use cranelift_codegen::write::{FuncWriter, PlainWriter, decorate_function};
use meeting::Meetings;
use ordering::Ordering;
use provenance::{Provenance, Space};
use std::fmt;
use truths::Truths;
use uniformity::{Uniformity, UniformityInput};
use uses::{UseCount, UseCounts, Users};

/// A function that facts are asked about, and what is known of it before.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The function: verified, without aliases and unreachable blocks.
    pub func: &'a Function,
    /// Which of its external names are intrinsics.
    pub intrinsics: &'a Intrinsics,
    /// Graph, dominators, post-dominators and loops.
    pub flow: &'a ControlFlow,
    /// Where its lanes meet.
    pub meetings: &'a Meetings,
    /// Whether it is a kernel, not a device function.
    pub is_kernel: bool,
    /// Whether it has anything that may read or write memory.
    pub accesses_memory: bool,
    /// Whether some of that is atomic, in the function or what it calls.
    pub has_atomics: bool,
    /// Its calls.
    pub callees: &'a Callees,
}

/// All facts about one function.
#[derive(Default)]
pub struct Facts {
    /// Where addresses point.
    pub provenance: Provenance,
    /// Known low bits.
    pub alignment: Alignment,
    /// What is the same in all lanes.
    pub uniformity: Uniformity,
    /// Who reads each value.
    pub users: Users,
    /// Which values are truths.
    pub truths: Truths,
    /// Where fences stand.
    pub ordering: Ordering,
}

impl Facts {
    /// Analyses a function whose symbols all name data in global memory.
    pub fn compute(subject: &Subject) -> Self {
        let mut facts = Self::default();
        facts.recompute(subject);
        facts
    }

    /// The same in the memory of the function before.
    pub fn recompute(&mut self, subject: &Subject) {
        let &Subject {
            func,
            intrinsics,
            flow,
            meetings,
            is_kernel: kernel,
            accesses_memory,
            has_atomics,
            callees: _,
        } = subject;
        // Who accesses memory asks for these, and nobody else.
        if accesses_memory {
            (self.provenance).recompute(func, flow, intrinsics, kernel);
            self.alignment.recompute(func, flow, intrinsics);
        } else {
            self.provenance.forget();
            self.alignment.forget();
        }
        self.users.recompute(func);
        (self.truths).recompute(func, &self.users, intrinsics, flow);
        if has_atomics {
            let users = &self.users;
            let is_read = |value| !users.of(value).is_empty();
            (self.ordering).recompute(subject, &self.provenance, &is_read);
        } else {
            self.ordering.forget();
        }
        self.uniformity.recompute(&UniformityInput {
            func,
            flow,
            meetings,
            intrinsics,
            provenance: &self.provenance,
            users: &self.users,
            kernel,
        });
    }

    /// The function as CLIF with the facts as comments, for `--dump-after=analysis`. It parses again.
    pub fn display<'a>(&'a self, subject: Subject<'a>) -> impl fmt::Display + 'a {
        Annotated {
            facts: self,
            uses: UseCounts::compute(subject.func, subject.flow, subject.intrinsics),
            subject,
        }
    }
}

/// A function with its facts.
struct Annotated<'a> {
    facts: &'a Facts,
    uses: UseCounts,
    subject: Subject<'a>,
}

impl fmt::Display for Annotated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decorate_function(&mut Annotator(self), f, self.subject.func)
    }
}

/// Writes CLIF with comments at the ends of lines.
struct Annotator<'a>(&'a Annotated<'a>);

impl Annotator<'_> {
    /// What is worth saying about a value: uniformity, and for what can be an address its space and alignment.
    fn value(&self, func: &Function, value: Value) -> String {
        let facts = self.0.facts;
        let uniformity = match (
            facts.uniformity.uniform(value),
            facts.uniformity.uniform_at_definition(value),
        ) {
            (true, _) => "uniform",
            (false, true) => "uniform in its loop",
            (false, false) => "divergent",
        };
        let uses = match self.0.uses.of(value) {
            UseCount::Unused => ", unused",
            UseCount::Once => ", used once",
            UseCount::Multiple => "",
        };
        let space = facts.provenance.space(func, value);
        let known = match space {
            Space::Generic | Space::Shared => String::new(),
            space => format!(", {space}"),
        };
        let (bits, low) = facts.alignment.low_bits(value);
        let aligned = match bits {
            0 => String::new(),
            _ if bits >= func.dfg.value_type(value).bits() => String::new(),
            bits => format!(", = {low} mod 2^{bits}"),
        };
        format!("{value} {uniformity}{known}{aligned}{uses}")
    }
}

/// Appends a comment to the text of one line.
fn comment(w: &mut dyn fmt::Write, line: &str, parts: &[String]) -> fmt::Result {
    let line = line.trim_end_matches('\n');
    match parts {
        [] => writeln!(w, "{line}"),
        parts => writeln!(w, "{line}  ; {}", parts.join("; ")),
    }
}

impl FuncWriter for Annotator<'_> {
    fn write_block_header(
        &mut self,
        w: &mut dyn fmt::Write,
        func: &Function,
        block: Block,
        indent: usize,
    ) -> fmt::Result {
        let mut line = String::new();
        PlainWriter.write_block_header(&mut line, func, block, indent)?;
        let flow = self.0.subject.flow;
        let mut parts = Vec::new();
        if self.0.facts.uniformity.divergent_block(block) {
            parts.push("divergent".to_owned());
        }
        match flow.loop_depth(block) {
            0 => {}
            depth if flow.loop_tree().is_loop_header(block).is_some() => {
                parts.push(format!("header at depth {depth}"))
            }
            depth => parts.push(format!("loop depth {depth}")),
        }
        parts.push(match flow.immediate_post_dominator(block) {
            Some(PostDominator::Block(post)) => format!("post-dominated by {post}"),
            Some(PostDominator::NextTurn(post)) => {
                format!("post-dominated by {post} of the next turn")
            }
            None => "no post-dominator".to_owned(),
        });
        parts.extend(
            func.dfg
                .block_params(block)
                .iter()
                .map(|param| self.value(func, *param)),
        );
        comment(w, &line, &parts)
    }

    fn write_instruction(
        &mut self,
        w: &mut dyn fmt::Write,
        func: &Function,
        aliases: &SecondaryMap<Value, Vec<Value>>,
        inst: Inst,
        indent: usize,
    ) -> fmt::Result {
        let mut line = String::new();
        PlainWriter.write_instruction(&mut line, func, aliases, inst, indent)?;
        let mut parts: Vec<String> = func
            .dfg
            .inst_results(inst)
            .iter()
            .map(|result| self.value(func, *result))
            .collect();
        if self.0.facts.uniformity.divergent_branch(inst) {
            parts.push("divergent branch".to_owned());
        }
        comment(w, &line, &parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clif::source::SourceFile;
    use crate::clif::{KernelOptions, Options, Preparer};

    #[test]
    fn facts_print_as_comments() {
        let text = "\
; kernel
function %k(i64, i32) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = iconst.i32 2
    v4 = ishl v2, v3
    v5 = uextend.i64 v4
    v6 = iadd v0, v5
    brif v4, block1, block2
block1:
    store v1, v6
    jump block2
block2:
    store v1, v0
    return
}
";
        let function = SourceFile::parse("k.clif", text)
            .unwrap()
            .functions
            .remove(0);
        let options = Options {
            kernel: Some(KernelOptions::default()),
            ..Options::DEVICE
        };
        let prepared = Preparer::new()
            .prepare(function.func, &options, &mut |_, _| {})
            .unwrap();
        let facts = Facts::compute(&prepared.subject());
        let dump = facts.display(prepared.subject()).to_string();
        cranelift_reader::parse_functions(&dump).unwrap_or_else(|error| panic!("{error}\n{dump}"));
        for expected in [
            "; post-dominated by block2; v0 uniform, global; v1 uniform",
            "divergent branch",
            "block1:  ; divergent; post-dominated by block2",
            ", = 0 mod 2^2",
            "divergent, global",
        ] {
            assert!(
                dump.contains(expected),
                "{expected:?} is missing in\n{dump}"
            );
        }
    }
}
