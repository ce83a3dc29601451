//! A kernel of any kind.

use super::check::{self, Failure, Passed};
use super::events::features::{Feature, Features};
use super::events::plan::Plan;
use super::kernel::Kernel;
use super::{emit, events, generate, reduce, shapes, windows};
use crate::random::Random;

/// Random turns in which a kernel of events runs, for each setting.
const TURNS: u64 = 8;

/// A kernel.
#[derive(Clone, Debug)]
pub enum Case {
    /// A graph of blocks.
    Graph(Kernel),
    /// Events.
    Events(Plan),
    /// Addresses that may lie outside.
    Window(windows::Plan),
}

impl Case {
    /// The kernel of a seed: of one of the families among the features, with some of the others.
    pub fn new(seed: u64, features: Features) -> Case {
        Self::drawn(seed, &Random::new(seed), features)
    }

    /// What `random` draws; `seed` is its name, and decides in which turns it runs.
    pub fn drawn(seed: u64, random: &Random, features: Features) -> Case {
        let (family, some) = features.swarm(&mut random.fork(0x5a));
        match family {
            Feature::Graph => Case::Graph(generate::drawn(seed, random)),
            Feature::Windows => Case::Window(windows::Plan::drawn(seed, random)),
            _ => Case::Events(events::generate::plan(seed, random, family, some)),
        }
    }

    /// As CLIF.
    pub fn text(&self) -> String {
        match self {
            Case::Graph(kernel) => emit::text(kernel),
            Case::Events(plan) => events::emit::text(plan),
            Case::Window(plan) => plan.text(),
        }
    }

    /// What it is like.
    pub fn shapes(&self) -> Vec<String> {
        match self {
            Case::Graph(kernel) => {
                let shapes = shapes::shapes(kernel).into_iter().map(str::to_owned);
                std::iter::once(Feature::Graph.name())
                    .chain(shapes)
                    .collect()
            }
            Case::Events(plan) => events::shapes::shapes(plan)
                .into_iter()
                .map(Feature::name)
                .collect(),
            Case::Window(_) => vec![Feature::Windows.name()],
        }
    }

    /// Compiles and runs it in so many settings.
    ///
    /// # Errors
    /// The first failure.
    pub fn check(&self, settings: usize) -> Result<Passed, Failure> {
        match self {
            Case::Graph(kernel) => check::check(kernel, settings),
            Case::Events(plan) => {
                let launches = events::check::check(plan, settings, TURNS)?;
                Ok(Passed {
                    launches,
                    ..Passed::default()
                })
            }
            Case::Window(plan) => Ok(Passed {
                launches: plan.check(settings)?,
                ..Passed::default()
            }),
        }
    }

    /// A smaller one that fails in the same way.
    pub fn reduce(&self, failure: &Failure) -> (Case, Failure) {
        match self {
            Case::Graph(kernel) => {
                let (kernel, failure) = reduce::reduce(kernel, failure);
                (Case::Graph(kernel), failure)
            }
            Case::Events(plan) => {
                let (plan, failure) = events::reduce::reduce(plan, failure);
                (Case::Events(plan), failure)
            }
            Case::Window(plan) => {
                let (plan, failure) = plan.reduce(failure);
                (Case::Window(plan), failure)
            }
        }
    }
}
