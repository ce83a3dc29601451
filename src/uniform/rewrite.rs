//! The function with one way to compute each value.

use super::search::Decision;
use crate::isa::VReg;
use crate::simt::edit::Editor;
use crate::vcode::{Entry, Terminator, VCode};

/// Writes what was decided.
pub(super) fn rewrite(code: VCode<VReg>, decision: Decision) -> VCode<VReg> {
    let params: Vec<Vec<bool>> = (code.blocks.values())
        .map(|data| (data.params.iter().map(|p| decision.gone[p.index()])).collect())
        .collect();
    let mut starts = code.blocks.values().map(|data| data.insts.start as usize);
    let starts: Vec<usize> = starts.by_ref().collect();
    let mut editor = Editor::new(code);
    let rename = |reg: &mut VReg| {
        if let Some(other) = decision.renamed[reg.index()] {
            *reg = other;
        }
    };
    // Blocks stand in an order in which those above come first.
    for (block, start) in editor.blocks().zip(starts) {
        let before = std::mem::take(editor.body(block));
        let mut body: Vec<Entry<VReg>> = Vec::with_capacity(before.len());
        for (index, entry) in (start..).zip(before) {
            let Some(inst) = decision.insts[index] else {
                continue;
            };
            let entry = Entry { inst, ..entry };
            match decision.places[block] {
                Some(place) if place != block && inst.form().is_on_uniform_datapath() => {
                    editor.body(place).push(entry);
                }
                _ => body.push(entry),
            }
        }
        *editor.body(block) = body;
        let data = editor.data(block);
        let mut gone = params[cranelift_codegen::entity::EntityRef::index(block)].iter();
        data.params.retain(|_| gone.next() == Some(&false));
        if let Terminator::Jump { target, args } = &mut data.terminator {
            let mut gone = params[cranelift_codegen::entity::EntityRef::index(*target)].iter();
            args.retain(|_| gone.next() == Some(&false));
        }
        data.terminator.for_each_register(rename);
    }
    for attachment in editor.code().attachments.values_mut() {
        attachment.for_each_register(rename);
    }
    editor.finish()
}
