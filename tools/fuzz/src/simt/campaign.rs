//! Many kernels, on all cores.

use super::case::Case;
use super::check::{Failure, Kind};
use super::events::features::Features;
use super::kernel::{End, Kernel, Stmt};
use super::meeting;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// What came of some kernels.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Kernels.
    pub kernels: u64,
    /// Launches that were compared.
    pub launches: u64,
    /// Events whose masks were compared, in one launch each.
    pub masks: u64,
    /// Those that show a part of a warp.
    pub partial: u64,
    /// How many kernels have a shape.
    pub shapes: BTreeMap<String, u64>,
    /// Kernels that fail: seed, shapes, what is wrong.
    pub failures: Vec<(u64, Vec<String>, Failure)>,
}

impl Tally {
    fn merge(mut self, other: Tally) -> Tally {
        self.kernels += other.kernels;
        self.launches += other.launches;
        self.masks += other.masks;
        self.partial += other.partial;
        for (shape, count) in other.shapes {
            *self.shapes.entry(shape).or_default() += count;
        }
        self.failures.extend(other.failures);
        self
    }

    /// Failures by what is wrong.
    pub fn kinds(&self) -> BTreeMap<Kind, u64> {
        let mut kinds = BTreeMap::new();
        for (_, _, failure) in &self.failures {
            *kinds.entry(failure.kind).or_default() += 1;
        }
        kinds
    }
}

/// What a kernel has of what makes control difficult.
pub fn shapes(kernel: &Kernel) -> Vec<&'static str> {
    let ends = || {
        kernel
            .functions
            .iter()
            .flat_map(|f| &f.blocks)
            .map(|b| &b.end)
    };
    let calls = |of: fn(&Vec<usize>, usize) -> bool| {
        kernel.functions.iter().enumerate().any(|(index, f)| {
            f.blocks.iter().any(|b| {
                let tail = matches!(&b.end, End::TailCall { callees, .. } if of(callees, index));
                let call = |s: &Stmt| matches!(s, Stmt::Call { callees, .. } if of(callees, index));
                tail || b.stmts.iter().any(call)
            })
        })
    };
    let all = [
        (
            "br_table",
            ends().any(|end| matches!(end, End::Table { .. })),
        ),
        (
            "early return of a kernel",
            kernel.functions[0]
                .blocks
                .iter()
                .filter(|b| b.end.targets().is_empty())
                .count()
                > 1,
        ),
        (
            "several returns of a function",
            kernel.functions[1..].iter().any(|f| {
                f.blocks
                    .iter()
                    .filter(|b| b.end.targets().is_empty())
                    .count()
                    > 1
            }),
        ),
        (
            "irreducible",
            kernel.functions.iter().any(meeting::is_irreducible),
        ),
        ("recursion", calls(|callees, own| callees.contains(&own))),
        (
            "tail call",
            ends().any(|end| matches!(end, End::TailCall { .. })),
        ),
        (
            "call of one of several",
            calls(|callees, _| callees.len() > 1),
        ),
        ("phases in shared memory", !kernel.spine.is_empty()),
        ("locks", !kernel.locks.is_empty()),
        (
            "counters of their own",
            kernel
                .stmts()
                .any(|stmt| matches!(stmt, Stmt::Count { .. })),
        ),
        (
            "probes",
            kernel.stmts().any(|stmt| matches!(stmt, Stmt::Probe)),
        ),
    ];
    all.iter()
        .filter(|shape| shape.1)
        .map(|shape| shape.0)
        .collect()
}

/// The tally of one kernel.
fn of(seed: u64, features: Features, settings: usize) -> Tally {
    let case = Case::new(seed, features);
    let shapes = case.shapes();
    let mut tally = Tally {
        kernels: 1,
        shapes: shapes.iter().map(|shape| (shape.clone(), 1)).collect(),
        ..Tally::default()
    };
    match case.check(settings) {
        Ok(passed) => {
            (tally.launches, tally.masks, tally.partial) =
                (passed.launches, passed.masks, passed.partial);
        }
        Err(failure) => tally.failures.push((seed, shapes, failure)),
    }
    tally
}

/// Checks the kernels of all seeds, made of these features, in so many settings each; `progress` hears of each one that
/// is done, from any thread.
pub fn run(
    seeds: Range<u64>,
    features: Features,
    settings: usize,
    progress: &(dyn Fn(&Tally) + Sync),
) -> Tally {
    seeds
        .into_par_iter()
        .map(|seed| {
            let tally = of(seed, features, settings);
            progress(&tally);
            tally
        })
        .reduce(Tally::default, Tally::merge)
}
