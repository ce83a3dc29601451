//! Where in the code a warp was whose launch was ended: the loops around its instruction.

use super::Image;
use crate::locations::name_of;
use serde::Serialize;
use std::fmt;
use std::ops::RangeInclusive;

/// A part of the code. Prints as `lines 4 to 9 of k.clif (pc 0x40 to 0x90)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeRange {
    /// Code address of its first instruction in bytes.
    pub first: u32,
    /// Code address of its last one.
    pub last: u32,
    /// Its place in the source, when the module has a line table.
    pub source: Option<String>,
}

impl CodeRange {
    /// The instructions at these addresses, of which there is one each `step` bytes.
    pub fn at(addresses: RangeInclusive<u32>, step: u32, image: &Image) -> Self {
        let (first, last) = (*addresses.start(), *addresses.end());
        let places = || {
            let addresses = (first..=last).step_by(step as usize);
            addresses.filter_map(|address| Some(image.line_at(address)?.location))
        };
        // Of what was inlined here the lines are in other functions.
        let source = places().find(|place| place.inlined == 0).map(|known| {
            let here =
                |place: &crate::locations::Location| place.file == known.file && place.inlined == 0;
            let lines = || places().filter(here).map(|place| place.line);
            let (low, high) = (lines().min(), lines().max());
            let (low, high) = (low.unwrap_or(known.line), high.unwrap_or(known.line));
            let lines = match low == high {
                true => format!("line {low}"),
                false => format!("lines {low} to {high}"),
            };
            match name_of(&image.files, known.file) {
                Some(file) => format!("{lines} of {file}"),
                None => lines,
            }
        });
        Self {
            first,
            last,
            source,
        }
    }
}

impl fmt::Display for CodeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            last,
            source,
        } = self;
        match source {
            Some(source) => write!(f, "{source} (pc {first:#x} to {last:#x})"),
            None => write!(f, "pc {first:#x} to {last:#x}"),
        }
    }
}

/// A warp that ran when its launch was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turning {
    /// Its number in its block.
    pub warp: u32,
    /// The loops around its instruction, the innermost first; those of a caller where the function has none there.
    pub loops: Vec<CodeRange>,
}

impl fmt::Display for Turning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {}", self.warp)?;
        for (index, code) in self.loops.iter().enumerate() {
            let within = if index == 0 { ", in" } else { " in" };
            write!(f, "{within} the loop of {code}")?;
        }
        Ok(())
    }
}
