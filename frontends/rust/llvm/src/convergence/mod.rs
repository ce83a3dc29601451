//! Whether barriers and shuffles still are where the source has them.
//!
//! Threads that wait together have to wait at the same instruction. A compiler for a CPU knows nothing of that: rustc
//! and LLVM copy a call into both arms of a branch where that saves a jump, and half of a warp then waits at one copy,
//! half at the other. The flags of `thisgpu-build` keep them from it; they are switches that nobody promises, so that
//! this pass looks at what came of them.
//!
//! It takes two compilations of the same source: the one that is translated, and a *reference* without LLVM's passes.
//! Every call of a convergent intrinsic that a kernel reaches is a site, known in both by the places of the call and of
//! all calls around it, inlined or not. An error is
//!
//! - a site whose call or whose function is not `convergent`: LLVM was not told;
//! - a site without a place, or with one that the reference does not have;
//! - a site in more loops than in the reference;
//! - two sites of one place, unless every thread passes one after the other: one dominates the other, or both are what
//!   is left of a loop that was unrolled, where one leads to the other.
//!
//! What the reference has and the translated program has not is code that is never reached, and no error.

mod control;
mod sites;

#[cfg(test)]
mod tests;

use crate::error::{Error, Moved, Problem};
use crate::link::Program;
use control::Controls;
use hashbrown::HashMap;
use sites::{Key, Site, sites};

/// What the descriptor of a kernel is called in front of the kernel's name.
const KERNEL: &str = "__thisgpu_kernel_";

/// Compares all kernels of two compilations of one source, `reference` without LLVM's passes.
///
/// Kernels are what the descriptors `__thisgpu_kernel_NAME` name; without any, all functions that other modules see.
///
/// # Errors
/// Every site that is not where the reference has it.
pub fn check(optimised: &Program, reference: &Program) -> Result<(), Vec<Error>> {
    let symbols = optimised.symbols();
    let mut kernels: Vec<&str> = (symbols.iter())
        .filter_map(|symbol| symbol.strip_prefix(KERNEL))
        .collect();
    if kernels.is_empty() {
        kernels = symbols;
    }
    check_kernels(optimised, reference, &kernels)
}

/// As [`check`], for these functions; those that either program does not define are left out.
///
/// # Errors
/// As those of [`check`].
pub fn check_kernels(
    optimised: &Program,
    reference: &Program,
    kernels: &[&str],
) -> Result<(), Vec<Error>> {
    let mut errors = Vec::new();
    let mut controls = [Controls::new(optimised), Controls::new(reference)];
    for kernel in kernels {
        let (Some(ours), Some(theirs)) = (optimised.function(kernel), reference.function(kernel))
        else {
            continue;
        };
        let [ours_control, theirs_control] = &mut controls;
        let found = sites(optimised, ours, ours_control)
            .and_then(|ours| Ok((ours, sites(reference, theirs, theirs_control)?)));
        match found {
            Ok((ours, theirs)) => compare(&ours, &theirs, ours_control, &mut errors),
            Err(error) => errors.push(error),
        }
    }
    // A function that several kernels call is wrong in each of them.
    let mut seen = Vec::new();
    errors.retain(|error| {
        let new = !seen.contains(error);
        if new {
            seen.push(error.clone());
        }
        new
    });
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Compares the sites of a kernel with those of the reference.
fn compare(ours: &[Site], theirs: &[Site], controls: &mut Controls, errors: &mut Vec<Error>) {
    let mut depths: HashMap<&Key, u32> = HashMap::new();
    for site in theirs {
        if let Some(key) = &site.key {
            let depth = depths.entry(key).or_default();
            *depth = site.depth.max(*depth);
        }
    }
    let mut of_one_place: HashMap<&Key, Vec<&Site>> = HashMap::new();
    for site in ours {
        let mut wrong = |moved: Moved| {
            let intrinsic = site.intrinsic.to_string();
            let problem = Problem::Moved { intrinsic, moved };
            errors.push(Error::new(site.place.clone(), problem));
        };
        let Some(key) = &site.key else {
            wrong(Moved::NoPlace);
            continue;
        };
        if !site.convergent {
            wrong(Moved::NotConvergent);
        }
        match depths.get(key) {
            None => wrong(Moved::Elsewhere),
            Some(depth) if site.depth > *depth => {
                wrong(Moved::InLoop);
            }
            Some(depth) => {
                let others = of_one_place.entry(key).or_default();
                let together = |other: &&Site| {
                    let unrolled = site.depth < *depth && other.depth < *depth;
                    site.comes_with(other, unrolled, controls)
                };
                if !others.iter().all(together) {
                    wrong(Moved::InBranches);
                }
                others.push(site);
            }
        }
    }
}
