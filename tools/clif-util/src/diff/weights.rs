//! How often the blocks of a function run, as far as two versions of its code tell.
//!
//! Nobody knows how often a loop turns. So every loop is taken to turn as often as the source has it, [`TURNS`] times,
//! and what unrolling does to that is found in the code: an instruction is known by its line and its operation, and a
//! loop in which it stands four times as often as in another one, of either version, makes four turns of the source in
//! one. Of loops of one version with the same lines that with the most copies makes the turns, the others what is left
//! of them. Where a version has the copies and no loop, there are as many turns as copies.

use cranelift_thisgpu::asm::ListedFunction;
use cranelift_thisgpu::compile::FunctionCycles;
use cranelift_thisgpu::object::ObjectFunction;
use std::collections::{BTreeMap, BTreeSet};

/// Turns of a loop of the source whose number is not known (*assumed*).
pub const TURNS: f64 = 16.0;

/// An instruction of the source: its line and its operation.
type Key = (u32, String);

/// A version of a function.
#[derive(Clone, Copy)]
pub struct Version<'a> {
    /// Its blocks and loops.
    pub model: &'a FunctionCycles,
    /// Its instructions.
    pub listed: &'a ListedFunction,
    /// Its lines.
    pub function: &'a ObjectFunction,
}

/// What stands in a loop, without the loops in it; or in no loop.
struct Region {
    counts: BTreeMap<Key, u32>,
    /// The smallest loop around it.
    parent: Option<usize>,
}

/// By block, the loops around it, the smallest first. Loops lie in each other or apart.
fn loops_around(model: &FunctionCycles) -> Vec<Vec<usize>> {
    let loops = &model.loops;
    let mut order: Vec<usize> = (0..loops.len()).collect();
    order.sort_by_key(|&index| loops[index].len());
    let mut around = vec![Vec::new(); model.blocks.len()];
    for index in order {
        for &block in &loops[index] {
            around[block as usize].push(index);
        }
    }
    around
}

/// By loop, and last what is in none.
fn regions(version: &Version<'_>) -> Vec<Region> {
    let Version {
        model,
        listed,
        function,
    } = version;
    let loops = &model.loops;
    let around = loops_around(model);
    let mut regions: Vec<Region> = loops
        .iter()
        .map(|blocks| {
            let around = blocks
                .first()
                .map_or(&[][..], |&block| &around[block as usize]);
            let larger = |&&outer: &&usize| loops[outer].len() > blocks.len();
            Region {
                counts: BTreeMap::new(),
                parent: around.iter().find(larger).copied(),
            }
        })
        .collect();
    regions.push(Region {
        counts: BTreeMap::new(),
        parent: None,
    });
    for instruction in &listed.instructions {
        let after = |offset: u32| offset as usize <= instruction.offset;
        let line = function.lines.partition_point(|line| after(line.offset));
        let line = line
            .checked_sub(1)
            .map(|index| function.lines[index].location.line);
        let Some(line) = line.filter(|line| *line != 0) else {
            continue;
        };
        let Some(operation) = instruction
            .text
            .as_ref()
            .ok()
            .and_then(|text| operation(text))
        else {
            continue;
        };
        let block = model.blocks.partition_point(|block| after(block.offset));
        let innermost = around
            .get(block.saturating_sub(1))
            .and_then(|around| around.first());
        let region = innermost.copied().unwrap_or(loops.len());
        *regions[region]
            .counts
            .entry((line, operation.to_owned()))
            .or_default() += 1;
    }
    regions
}

/// The operation of an instruction; none of a move, of which there may be any number.
fn operation(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace();
    let word = words.find(|word| !word.starts_with('@'))?;
    let operation = word.split('.').next()?;
    (!matches!(operation, "MOV" | "UMOV" | "NOP")).then_some(operation)
}

impl Region {
    fn lines(&self) -> BTreeSet<u32> {
        self.counts.keys().map(|(line, _)| *line).collect()
    }

    /// Whether both come from the same loop of the source: of the lines of the smaller at least half are common.
    fn is_like(&self, other: &Region) -> bool {
        let (a, b) = (self.lines(), other.lines());
        let common = a.intersection(&b).count();
        common > 0 && 2 * common >= a.len().min(b.len())
    }

    /// How many turns of the source are in one, where an instruction stands `least` times in one.
    fn copies(&self, least: &BTreeMap<&Key, u32>) -> f64 {
        let copies = self.counts.iter().map(|(key, count)| {
            let least = least.get(key).copied().unwrap_or(*count);
            f64::from(*count) / f64::from(least.max(1))
        });
        copies.fold(1.0, f64::max)
    }
}

/// How often each block of two versions runs, the function being called once. Blocks that are in no loop run once.
pub fn weights(versions: [Version<'_>; 2]) -> [Vec<f64>; 2] {
    let regions = versions.each_ref().map(regions);
    let mut least: BTreeMap<&Key, u32> = BTreeMap::new();
    for (key, count) in regions.iter().flatten().flat_map(|region| &region.counts) {
        let known = least.entry(key).or_insert(*count);
        *known = (*known).min(*count);
    }
    let turns = [0, 1].map(|side| {
        let (own, other) = (&regions[side], &regions[1 - side]);
        turns(own, other, &least)
    });
    let of_blocks = |side: usize| {
        let around = loops_around(versions[side].model);
        let weight = |around: &Vec<usize>| around.iter().map(|&index| turns[side][index]).product();
        around.iter().map(weight).collect()
    };
    [of_blocks(0), of_blocks(1)]
}

/// How often each loop of a version turns when it is come to.
fn turns(own: &[Region], other: &[Region], least: &BTreeMap<&Key, u32>) -> Vec<f64> {
    let (Some((_, own)), Some((straight, other))) = (own.split_last(), other.split_last()) else {
        return Vec::new();
    };
    let turns = own.iter().map(|region| {
        let copies = region.copies(least);
        let alike = own
            .iter()
            .filter(|o| o.parent == region.parent && o.is_like(region));
        let most = alike.map(|o| o.copies(least)).fold(copies, f64::max);
        if most > copies {
            // What is left of the turns: none to all but one of those that one turn of the other has.
            return (most / copies - 1.0) / 2.0;
        }
        let unrolled = || {
            let common = straight.counts.iter();
            let common = common.filter(|(key, _)| region.counts.contains_key(*key));
            let counts =
                common.map(|(key, count)| f64::from(*count) / f64::from(least[key].max(1)));
            counts.fold(1.0, f64::max)
        };
        let source = match other.iter().any(|o| o.is_like(region)) {
            true => TURNS,
            false => match unrolled() {
                turns if turns > 1.0 => turns,
                _ => TURNS,
            },
        };
        (source / copies).max(1.0)
    });
    turns.collect()
}
