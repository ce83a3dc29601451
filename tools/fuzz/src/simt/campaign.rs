//! Many kernels, on all cores.

use super::case::Case;
use super::check::{Failure, Kind};
use super::events::features::Features;
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
