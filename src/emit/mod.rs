//! Emission: block layout, branches, words, relocations.
//!
//! [`layout::layout`] brings allocated code into its final order, [`crate::sched::control`] adds the control bits, [`emit`] makes words:
//! it encodes, fills in the distances of labels, collects what linking fills in, and writes jump tables into the function's constants.

pub mod constants;
pub mod layout;
pub mod linear;
mod order;
mod resources;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use constants::{Constants, ConstantsFull, Places};
pub use layout::{LayoutError, layout};
pub use resources::Resources;

use crate::isa::encode::WORD_BYTES;
use crate::isa::{Illegal, PInst};
use crate::sched::Scheduled;
use crate::vcode::{FunctionKind, SourceLine, SymbolUse};
use linear::Target;
use thiserror::Error;

/// An emitted function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Symbol name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Its instructions.
    pub words: Vec<u128>,
    /// Byte offset of the word and what linking puts into it, in ascending order.
    pub relocations: Vec<(u32, SymbolUse)>,
    /// Byte offset at which a line of the source begins, in ascending order; neighbours differ.
    pub lines: Vec<(u32, SourceLine)>,
    /// Byte offset of each branch by table, and the byte offsets that it may go to.
    pub tables: Vec<(u32, Vec<u32>)>,
    /// Parts of its frame that nothing may use.
    pub redzones: Vec<crate::abi::Redzone>,
    /// What it needs.
    pub resources: Resources,
}

/// Why a function has no words. All but the size are mistakes of an earlier pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EmitError {
    /// The instruction is not legal.
    #[error("{function}+{offset:#x}: {reason}")]
    Illegal {
        /// Function.
        function: String,
        /// Byte offset.
        offset: u32,
        /// What the description says.
        reason: Illegal,
    },
    /// A branch goes farther than its field can say.
    #[error("unsupported: {function} is too long for its branches")]
    TooLong {
        /// Function.
        function: String,
    },
}

/// Makes the words of a function and fills its jump tables in `constants`.
///
/// # Errors
/// See [`EmitError`].
pub fn emit(scheduled: &Scheduled, constants: &mut Constants) -> Result<Code, EmitError> {
    let code = scheduled.code();
    let too_long = || EmitError::TooLong {
        function: code.name.clone(),
    };
    let mut starts = Vec::with_capacity(code.blocks.len());
    let mut count = 0;
    for block in &code.blocks {
        starts.push(count);
        count += block.insts.len();
    }
    i32::try_from(count * WORD_BYTES).map_err(|_| too_long())?;
    let offset_of = |index: usize| (index * WORD_BYTES) as u32;
    let distance = |from: u32, block: usize| {
        i64::from(offset_of(starts[block])) - i64::from(from) - WORD_BYTES as i64
    };

    let mut out = Code {
        name: code.name.clone(),
        kind: code.kind.clone(),
        words: Vec::with_capacity(count),
        relocations: Vec::new(),
        lines: Vec::new(),
        tables: Vec::new(),
        redzones: code.frame.redzones.clone(),
        resources: Resources::of(code),
    };
    for (index, block) in code.blocks.iter().enumerate() {
        for (i, &control) in block.insts.iter().zip(scheduled.controls(index)) {
            let at = offset_of(out.words.len());
            let mut inst = i.inst;
            match &i.target {
                Target::None => {}
                Target::Block(target) => set_label(&mut inst, distance(at, *target)),
                Target::Table { offset, targets } => {
                    // The branch adds the entry to the address of the next instruction.
                    set_label(&mut inst, 0);
                    let entries: Vec<u8> = targets
                        .iter()
                        .flat_map(|&t| (distance(at, t) as i32).to_le_bytes())
                        .collect();
                    constants.fill(*offset, &entries);
                    out.tables
                        .push((at, targets.iter().map(|&t| offset_of(starts[t])).collect()));
                }
                Target::Symbol(symbol) => out.relocations.push((at, symbol.clone())),
            }
            let word = inst.encode(control).map_err(|reason| EmitError::Illegal {
                function: code.name.clone(),
                offset: at,
                reason,
            })?;
            out.words.push(word);
            if out.lines.last().is_none_or(|l| l.1 != i.line) {
                out.lines.push((at, i.line));
            }
        }
    }
    Ok(out)
}

fn set_label(inst: &mut PInst, distance: i64) {
    let operand = inst
        .label()
        .expect("layout checks the operand of every label");
    inst.set_field(operand.field, distance as u64);
}
