//! What a stage wrote here beside what its version for the CPU wrote.
//!
//! Numbers must be equal, floats nearly: the CPU's versions call other functions of mathematics. Where invocations take
//! places one after the other ([`Part::Bump`]), their order is open; then what they wrote is compared without it: lines
//! and counts of segments as sets, commands of a tile one by one, without the places of segments.

use crate::stages::{Part, State};
use vello_encoding::BumpAllocators;

/// How far floats may be apart, in pixels.
const NEAR: f32 = 2e-3;

fn is_float(word: u32) -> bool {
    let value = f32::from_bits(word);
    word == 0 || word == 1 << 31 || (value.is_finite() && value.abs() > 1e-9)
}

fn near(a: u32, b: u32) -> bool {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    a == b || (is_float(a) && is_float(b) && (x - y).abs() <= NEAR.max(1e-5 * x.abs()))
}

fn all_near(got: &[u32], wanted: &[u32]) -> Result<(), String> {
    let differs = got.iter().zip(wanted).position(|(a, b)| !near(*a, *b));
    match differs {
        None => Ok(()),
        Some(at) => {
            let (a, b) = (got[at], wanted[at]);
            let [x, y] = [a, b].map(f32::from_bits);
            Err(format!("word {at} is {a:#x} ({x}), not {b:#x} ({y})"))
        }
    }
}

/// Whether two lists of records of `size` words have the same records, in any order.
fn same_set(got: &[u32], wanted: &[u32], size: usize, used: &[usize]) -> Result<(), String> {
    if got.len() != wanted.len() {
        return Err(format!("{} words, not {}", got.len(), wanted.len()));
    }
    let mut rest: Vec<&[u32]> = wanted.chunks(size).collect();
    for record in got.chunks(size) {
        let same = |other: &&[u32]| used.iter().all(|&at| near(record[at], other[at]));
        let found = rest.iter().position(same);
        let found = found.ok_or_else(|| format!("{record:x?} is only here"))?;
        rest.swap_remove(found);
    }
    Ok(())
}

/// Compares a buffer behind a stage.
pub fn compare(
    stage: &str,
    part: Part,
    state: &State,
    got: &[u8],
    wanted: &[u8],
) -> Result<(), String> {
    let bump: BumpAllocators = *bytemuck::from_bytes(&state.get(Part::Bump).borrow());
    let (got, wanted): (&[u32], &[u32]) = (bytemuck::cast_slice(got), bytemuck::cast_slice(wanted));
    match (stage, part) {
        ("flatten", Part::Lines) => {
            let words = 6 * bump.lines as usize;
            same_set(&got[..words], &wanted[..words], 6, &[0, 2, 3, 4, 5])
        }
        // Bounds of what is nearly the same are rounded outwards.
        ("flatten", Part::PathBoxes) => {
            let apart = |(a, b): (&u32, &u32)| a.wrapping_sub(*b).wrapping_add(1) > 2;
            match got.iter().zip(wanted).position(apart) {
                None => Ok(()),
                Some(at) => Err(format!("word {at} is {}, not {}", got[at], wanted[at])),
            }
        }
        // Where the elements of a bin begin is nobody's if there are none.
        ("binning", Part::BinHeaders) => {
            let headers = |words: &[u32]| -> Vec<u32> {
                let headers = words.chunks(2);
                headers
                    .flat_map(|bin| [bin[0], bin[1] * bin[0].min(1)])
                    .collect()
            };
            all_near(&headers(got), &headers(wanted))
        }
        // Behind the last path there is room that a workgroup uses for itself.
        ("tile_alloc", Part::Paths) => {
            let words = 8 * state.config.layout.n_draw_objects as usize;
            all_near(&got[..words], &wanted[..words])
        }
        // The line, and the number of the segment in it.
        ("path_count", Part::SegmentCounts) => {
            let records = |words: &[u32]| -> Vec<u32> {
                let words = words[..2 * bump.seg_counts as usize].chunks(2);
                words
                    .flat_map(|record| [record[0], record[1] & 0xffff])
                    .collect()
            };
            same_set(&records(got), &records(wanted), 2, &[0, 1])
        }
        ("coarse", Part::Tiles) => {
            let backdrops =
                |words: &[u32]| -> Vec<u32> { words.iter().step_by(2).copied().collect() };
            all_near(&backdrops(got), &backdrops(wanted))
        }
        ("coarse", Part::Commands) => {
            let tiles = state.config.width_in_tiles * state.config.height_in_tiles;
            for tile in 0..tiles {
                let (a, b) = (commands(got, tile)?, commands(wanted, tile)?);
                if a != b {
                    return Err(format!("tile {tile}: {a:x?}, not {b:x?}"));
                }
            }
            Ok(())
        }
        ("path_tiling", Part::Segments) => {
            let words = 6 * bump.segments as usize;
            let without_padding = |words: &[u32]| -> Vec<u32> {
                words
                    .chunks(6)
                    .flat_map(|record| record[..5].to_vec())
                    .collect()
            };
            all_near(
                &without_padding(&got[..words]),
                &without_padding(&wanted[..words]),
            )
        }
        _ => all_near(got, wanted),
    }
}

/// The commands of a tile, without the places of segments.
fn commands(words: &[u32], tile: u32) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    // The first word of a tile is where its blending goes, not a command.
    let mut at = 64 * tile as usize + 1;
    loop {
        let word = |offset: usize| words.get(at + offset).copied().unwrap_or(u32::MAX);
        let size = match word(0) {
            0 => return Ok(all),
            1 => {
                all.extend([1, word(1), word(3)]);
                at += 4;
                continue;
            }
            12 => {
                at = word(1) as usize;
                continue;
            }
            3 | 10 => 1,
            5 | 9 => 2,
            6 | 7 | 8 | 11 | 13 => 3,
            other => {
                return Err(format!(
                    "there is no command {other} at {at} of tile {tile}"
                ));
            }
        };
        all.extend((0..size).map(word));
        at += size;
        if all.len() > words.len() {
            return Err(format!("the commands of tile {tile} have no end"));
        }
    }
}
