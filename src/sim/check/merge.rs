//! What the threads of a launch have found, put together.
//!
//! Each thread has run blocks of its own, in the order of their numbers, with a [`Checker`] of its own. Its findings
//! are those of one thread that runs all blocks as long as no block uses what another one writes: then what a block
//! finds does not depend on the others, and in the order of the blocks the first finding of each instruction, or pair
//! of them, is the one that is told.

use super::shadow::Shadow;
use super::{Checker, RawFinding, Undo};
use crate::launch::{FindingKind, Window};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::global::Table;
use hashbrown::HashSet;
use std::mem::{Discriminant, discriminant};

/// What came of the checks of a launch on several threads.
pub enum Outcome {
    /// The findings.
    Found(Vec<RawFinding>),
    /// Blocks use what others write: what they did was taken back.
    Undone,
}

impl Checker {
    /// Puts together what the threads of a launch found up to the block `last`, the one with the fault if there is one.
    /// What was `cut` short from outside is not taken back.
    pub fn merge(all: Vec<Checker>, last: u64, cut: bool, undo: &Undo, global: &Table) -> Outcome {
        let Some(grid) = all.first().map(|checker| checker.shape.grid) else {
            return Outcome::Found(Vec::new());
        };
        let crossed = all.iter().any(|checker| checker.crossed);
        let (shadows, findings): (Vec<Shadow>, Vec<Vec<RawFinding>>) = all
            .into_iter()
            .map(|checker| (checker.global, checker.findings))
            .unzip();
        if shadows.len() > 1 && !cut && (crossed || Shadow::race(&shadows)) {
            for shadow in &shadows {
                undo.put_back(global, shadow);
            }
            return Outcome::Undone;
        }
        let numbered = findings.into_iter().flatten().map(|finding| {
            let number = Shape::number(grid, finding.at.block);
            (number, finding)
        });
        let mut numbered: Vec<_> = numbered.filter(|(number, _)| *number <= last).collect();
        // Those of a block stay in their order.
        numbered.sort_by_key(|(number, _)| *number);
        let mut known = HashSet::new();
        let findings = numbered.into_iter().map(|(_, finding)| finding);
        Outcome::Found(findings.filter(|f| known.insert(subject(f))).collect())
    }
}

/// What is told once: of an instruction each kind, of a pair of instructions that they race.
fn subject(finding: &RawFinding) -> (Discriminant<FindingKind>, Option<Window>, u32, u32) {
    let kind = discriminant(&finding.kind);
    let pc = finding.at.pc;
    match (&finding.kind, finding.other) {
        (FindingKind::Race { window, .. }, Some(other)) => {
            (kind, Some(*window), pc.min(other.pc), pc.max(other.pc))
        }
        _ => (kind, None, pc, pc),
    }
}
