//! Places for lanes to meet: blocks of a function whose lanes wait for other threads are split where lanes may have to
//! come together.
//!
//! Lanes meet at the starts of blocks. Behind a lock's release, or before a barrier, in the middle of a block, there is
//! no such place, and [`crate::analysis::meeting`] asks for one. Functions that do not poll stay as they are.

use crate::analysis::calls::Callees;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::meeting;
use crate::analysis::progress::Progress;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, InstBuilder};

/// Splits blocks of `func`. True if the graph has changed.
pub fn split(
    func: &mut Function,
    flow: &ControlFlow,
    callees: &Callees,
    progress: &Progress,
) -> bool {
    let places = meeting::places(func, flow, callees, progress);
    let blocks: Vec<Block> = places.iter().map(|_| func.dfg.make_block()).collect();
    // From the last on: what is split off is told its new block, and is not told again.
    for (&inst, &rest) in places.iter().zip(&blocks).rev() {
        let Some(block) = func.layout.inst_block(inst) else {
            continue;
        };
        // Of the way on: instructions may have been moved here from elsewhere.
        let end = func.layout.last_inst(block).unwrap_or(inst);
        let location = func.srcloc(end);
        if func.layout.is_cold(block) {
            func.layout.set_cold(rest);
        }
        func.layout.split_block(rest, inst);
        FuncCursor::new(func)
            .at_bottom(block)
            .with_srcloc(location)
            .ins()
            .jump(rest, &[]);
    }
    !places.is_empty()
}
