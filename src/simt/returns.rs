//! One place to return from.
//!
//! Lanes that enter a device function together are to leave it together. They can meet before the return only if there is one, so
//! the values of all returns become parameters of one block.

use super::edit::Editor;
use crate::isa::{Register, VReg};
use crate::vcode::{Block, BlockData, FunctionKind, Terminator, VCode};

/// Joins the returns of a device function that has several.
pub fn join_returns(code: VCode<VReg>) -> VCode<VReg> {
    let returns: Vec<Block> = code
        .blocks
        .iter()
        .filter(|(_, b)| matches!(b.terminator, Terminator::Return { .. }))
        .map(|(b, _)| b)
        .collect();
    if returns.len() < 2 || code.kind != FunctionKind::Device {
        return code;
    }
    let mut editor = Editor::new(code);
    let first = editor.data(returns[0]).clone();
    let Terminator::Return { address, values } = first.terminator else {
        return editor.finish();
    };
    let divergent = returns.iter().all(|&b| editor.data(b).divergent);
    let params: Vec<VReg> = values
        .iter()
        .map(|v| editor.code().new_vreg(v.0.class()))
        .collect();
    // All returns use the address that the function was entered with; results are in the same registers everywhere.
    let places: Vec<_> = values.iter().map(|v| v.1).collect();
    let joined = editor.add_block(
        BlockData {
            insts: 0..0,
            params: params.clone(),
            terminator: Terminator::Return {
                address,
                values: params.into_iter().zip(places.iter().copied()).collect(),
            },
            line: first.line,
            divergent,
            loop_depth: 0,
            cold: false,
        },
        Vec::new(),
    );
    for block in returns {
        let same = |t: &Terminator<VReg>| matches!(t, Terminator::Return { address: a, values } if *a == address && values.iter().map(|v| v.1).eq(places.iter().copied()));
        if same(editor.terminator(block)) {
            let old = std::mem::replace(&mut editor.data(block).terminator, Terminator::Exit);
            let args = old.uses().skip(2).collect();
            editor.data(block).terminator = Terminator::Jump {
                target: joined,
                args,
            };
        }
    }
    editor.finish()
}
