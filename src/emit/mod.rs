//! Emission: block layout, branches, words, relocations.
//!
//! [`layout::layout`] brings allocated code into its final order, [`crate::sched::control`] adds the control bits,
//! [`emit`] makes words: it encodes, fills in the distances of labels, collects what linking fills in, and writes jump
//! tables into the function's constants.

pub mod constants;
pub mod layout;
mod order;
mod resources;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use constants::{Constants, ConstantsFull, Places};
pub use layout::LayoutError;
pub use resources::Resources;

use crate::isa::encode::WORD_BYTES;
use crate::isa::{Control, Illegal, PInst, PReg};
use crate::linear::{Linear, Target};
use crate::sched::Scheduled;
use crate::values::{self, ValueLocations};
use crate::variables::ScopeLocations;
use crate::vcode::{Entry, FunctionKind, MemoryOrder, SourceLine, SymbolKind, VCode};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What linking puts into a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// Byte offset of the word.
    pub offset: u32,
    /// Which part of the address.
    pub kind: SymbolKind,
    /// The symbol.
    pub name: String,
    /// Added to its address.
    pub addend: i64,
}

/// What CLIF says of the access at a place of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// The number of the instruction.
    pub position: u32,
    /// What CLIF says.
    pub order: MemoryOrder,
    /// Its number as lowered.
    pub label: u32,
}

/// An emitted function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Symbol name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Its instructions.
    pub words: Vec<u128>,
    /// What linking puts into its words, in ascending order.
    pub relocations: Vec<Relocation>,
    /// Byte offset at which a line of the source begins, in ascending order; neighbours differ.
    pub lines: Vec<(u32, SourceLine)>,
    /// Byte offset of each branch by table, and the byte offsets that it may go to.
    pub tables: Vec<(u32, Vec<u32>)>,
    /// Parts of its frame that nothing may use.
    pub redzones: Vec<crate::abi::Redzone>,
    /// Where some of its accesses to memory are ordered, all that others may see, in ascending order: what CLIF says of
    /// them.
    pub accesses: Vec<Noted>,
    /// What it needs.
    pub resources: Resources,
    /// Where values of the source are, if somebody wants to know.
    pub values: Vec<ValueLocations>,
    /// Where variables of the source are, in the same way.
    pub scopes: Vec<ScopeLocations>,
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

/// Memory that is kept between functions, for the passes from layout to words.
#[derive(Debug, Default)]
pub struct EmitBuffers {
    layout: layout::LayoutBuffers,
    /// For [`crate::sched::control`].
    pub control: crate::sched::control::ControlBuffers,
}

/// Lays out a function.
///
/// # Errors
/// See [`LayoutError`].
pub fn layout(code: VCode<PReg>, scratch: &mut EmitBuffers) -> Result<Linear, LayoutError> {
    layout::layout(code, &mut scratch.layout)
}

/// Makes the words of a function and fills its jump tables in `constants`. Instructions are held to be legal unless
/// `verify` or this is a debug build.
///
/// # Errors
/// See [`EmitError`].
pub fn emit(
    scheduled: Scheduled,
    verify: bool,
    constants: &mut Constants,
    scratch: &mut EmitBuffers,
) -> Result<Code, EmitError> {
    let (mut code, controls) = scheduled.into_parts();
    let resources = Resources::new(&code);
    let mut out = Code {
        name: std::mem::take(&mut code.name),
        kind: std::mem::replace(&mut code.kind, FunctionKind::Device),
        words: Vec::with_capacity(code.len()),
        relocations: Vec::new(),
        lines: Vec::new(),
        tables: Vec::new(),
        redzones: std::mem::take(&mut code.frame.redzones),
        accesses: accesses(&code),
        resources,
        values: std::mem::take(&mut code.values),
        scopes: std::mem::take(&mut code.scopes),
    };
    let to_bytes = |instructions: u32| instructions.saturating_mul(WORD_BYTES as u32);
    values::ranges::moved(&mut out.values, to_bytes);
    for scope in &mut out.scopes {
        scope.move_ranges(to_bytes);
    }
    if i32::try_from(code.len() * WORD_BYTES).is_err() {
        return Err(EmitError::TooLong { function: out.name });
    }
    for run in code.runs() {
        for (entry, &control) in run.iter().zip(&controls[out.words.len()..]) {
            let word = word(&code, entry, control, verify, constants, &mut out);
            out.words.push(word?);
        }
    }
    scratch.layout.blocks = code.into_blocks();
    scratch.control.give_back(controls);
    Ok(out)
}

/// What CLIF says of the accesses of a function in which some are ordered.
fn accesses(code: &Linear) -> Vec<Noted> {
    let entries = || code.runs().flatten();
    if !entries().any(Entry::is_ordered) {
        return Vec::new();
    }
    let seen = (0u32..)
        .zip(entries())
        .filter(|(_, entry)| entry.part().is_some());
    let noted = seen.map(|(position, entry)| Noted {
        position,
        order: entry.order,
        label: entry.label,
    });
    noted.collect()
}

/// The word of the next instruction; what else is said of it goes to `out`.
fn word(
    code: &Linear,
    entry: &Entry<PReg>,
    control: Control,
    verify: bool,
    constants: &mut Constants,
    out: &mut Code,
) -> Result<u128, EmitError> {
    let offset_of = |index: usize| (index * WORD_BYTES) as u32;
    let start_of = |block: usize| offset_of(code.positions(block).start);
    let at = offset_of(out.words.len());
    let distance = |block: usize| i64::from(start_of(block)) - i64::from(at) - WORD_BYTES as i64;
    let mut filled = None;
    let mut label = |distance: i64| set_label(filled.insert(entry.inst), distance);
    match code.target(entry) {
        Target::None => {}
        Target::Block(target) => label(distance(*target)),
        Target::Table { offset, targets } => {
            // The branch adds the entry to the address of the next instruction.
            label(0);
            let entries: Vec<u8> = targets
                .iter()
                .flat_map(|&t| (distance(t) as i32).to_le_bytes())
                .collect();
            constants.fill(*offset, &entries);
            out.tables
                .push((at, targets.iter().map(|&t| start_of(t)).collect()));
        }
        Target::Symbol(symbol) => {
            // Lowering writes a number there that no other form of the operation says. Zero stands for what linking
            // fills in, also in texts.
            if matches!(
                symbol.kind,
                SymbolKind::AbsoluteLow | SymbolKind::AbsoluteHigh
            ) {
                filled.insert(entry.inst).set_number(symbol.role, 0);
            }
            out.relocations.push(Relocation {
                offset: at,
                kind: symbol.kind,
                name: symbol.name.clone(),
                addend: symbol.addend,
            });
        }
    }
    if out.lines.last().is_none_or(|l| l.1 != entry.line) {
        out.lines.push((at, entry.line));
    }
    out.resources.count(code, entry);
    let inst = filled.as_ref().unwrap_or(&entry.inst);
    if !verify && !cfg!(debug_assertions) {
        return Ok(inst.pack(control));
    }
    inst.encode(control).map_err(|reason| EmitError::Illegal {
        function: out.name.clone(),
        offset: at,
        reason,
    })
}

fn set_label(inst: &mut PInst, distance: i64) {
    let operand = inst
        .label()
        .expect("layout checks the operand of every label");
    inst.set_field(operand.field, distance as u64);
}
