//! The function with one way to compute each value.

use super::search::Decision;
use crate::isa::VReg;
use crate::vcode::{Block, Entry, VCode};
use cranelift_codegen::entity::SecondaryMap;
use std::ops::Range;

/// Writes what was decided.
pub(super) fn rewrite(mut code: VCode<VReg>, decision: Decision) -> VCode<VReg> {
    let Decision {
        insts,
        gone,
        renamed,
        places,
    } = decision;
    let place = |block: Block, entry: &Entry<VReg>| match places[block] {
        Some(place) if entry.inst.form().is_on_uniform_datapath() => place,
        _ => block,
    };
    let staying = |range: &Range<u32>| {
        let range = range.start as usize..range.end as usize;
        (code.insts[range.clone()].iter().zip(&insts[range]))
            .filter_map(|(&entry, inst)| inst.map(|inst| Entry { inst, ..entry }))
    };
    // By block, what moves to its end, in order: blocks above come first.
    let mut moved: SecondaryMap<Block, Vec<Entry<VReg>>> = SecondaryMap::new();
    for (block, data) in code.blocks.iter().filter(|(_, data)| data.divergent) {
        for entry in staying(&data.insts) {
            let place = place(block, &entry);
            if place != block {
                moved[place].push(entry);
            }
        }
    }
    let mut written: Vec<Entry<VReg>> = Vec::with_capacity(code.insts.len());
    let mut ranges = Vec::with_capacity(code.blocks.len());
    for (block, data) in code.blocks.iter() {
        let first = written.len() as u32;
        written.extend(staying(&data.insts).filter(|entry| place(block, entry) == block));
        written.extend_from_slice(&moved[block]);
        ranges.push(first..written.len() as u32);
    }
    code.insts = written;
    let rename = |reg: &mut VReg| {
        if let Some(other) = renamed[reg.index()] {
            *reg = other;
        }
    };
    code.retain_params(|param| !gone[param.index()]);
    for (data, range) in code.blocks.values_mut().zip(ranges) {
        data.insts = range;
        data.terminator.for_each_register(rename);
    }
    for attachment in code.attachments.values_mut() {
        attachment.for_each_register(rename);
    }
    for holder in &mut code.holders {
        (holder.held).rename(|reg| renamed[reg.index()].unwrap_or(reg));
    }
    code
}
