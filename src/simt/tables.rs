//! The code that reads jump tables.
//!
//! A branch by table needs the byte offset of its target in a register. Before allocation the index of a
//! [`Terminator::Table`] is replaced by the entry that is read from a table in the function's constants, or in the
//! module's data where the bank is full; the entries are filled in when the function is emitted, and where the
//! function's constants stand in the bank when it is put together with others.

use super::edit::Editor;
use crate::abi::CONSTANT_BANK;
use crate::emit::constants::{CONSTANTS, JUMP_TABLES};
use crate::emit::{Constants, ConstantsFull};
use crate::isa::generated::{
    AccessOrder, IExt, IType, LEASX32, LOHI, LoadSize, MOVW, imad_wide, ldc, ldg, lea, mov,
};
use crate::isa::operand::{PT, RZ};
use crate::isa::{Inst, Register, RegisterClass, Role, VReg, build};
use crate::vcode::{
    Attachment, AttachmentId, Entry, MemoryOrder, SymbolKind, SymbolUse, Terminator, VCode,
};

/// Moves are of one word.
const WORD: mov::Options = mov::Options::new(MOVW::W32);

/// Adds the load of the table's entry to every block that ends in a branch by table.
///
/// # Errors
/// When the jump tables of the function need more bytes than 32 bits can tell.
pub fn load_jump_tables(
    code: VCode<VReg>,
    constants: &mut Constants,
) -> Result<VCode<VReg>, ConstantsFull> {
    if !code
        .blocks
        .values()
        .any(|b| matches!(b.terminator, Terminator::Table { table: None, .. }))
    {
        return Ok(code);
    }
    let mut editor = Editor::new(code);
    for block in editor.blocks() {
        let Terminator::Table {
            mut index,
            table: None,
            targets,
            divergent,
        } = editor.terminator(block).clone()
        else {
            continue;
        };
        let place = constants.reserve_jump_table(targets.len())?;
        let mut added: Vec<(Inst<VReg>, Option<AttachmentId>)> = Vec::new();
        if index.class() == RegisterClass::Uniform {
            let copy = editor.code().new_vreg(RegisterClass::Gpr);
            added.push((build::mov_u(WORD, copy, index), None));
            index = copy;
        }
        let entry = editor.code().new_vreg(RegisterClass::Gpr);
        match Constants::in_data(place) {
            None => {
                let scaled = editor.code().new_vreg(RegisterClass::Gpr);
                added.push((times_four(scaled, index), None));
                let symbol = SymbolUse {
                    role: Role::Addr,
                    kind: SymbolKind::Constant,
                    name: CONSTANTS.to_owned(),
                    addend: place.into(),
                };
                let symbol = editor.attach(Attachment::Symbol(symbol));
                added.push((load(entry, scaled, place), symbol));
            }
            Some(offset) => load_from_data(&mut editor, &mut added, entry, index, offset),
        }
        let line = editor.data(block).line;
        editor
            .body(block)
            .extend(added.into_iter().map(|(inst, attachment)| Entry {
                attachment,
                // Nobody writes a table.
                order: MemoryOrder::Private,
                ..Entry::new(inst, line)
            }));
        editor.data(block).terminator = Terminator::Table {
            index: entry,
            table: Some(place),
            targets,
            divergent,
        };
    }
    Ok(editor.finish())
}

/// `LEA result, value, RZ, 2`.
fn times_four(result: VReg, value: VReg) -> Inst<VReg> {
    let options = lea::Options::new(LOHI::Lo, IExt::NoX, LEASX32::NoSx32);
    build::lea_rrr(options, result, PT, value, RZ, RZ, 2, !PT)
}

/// `LDC result, bank, [address + offset]`.
fn load(result: VReg, address: VReg, offset: u32) -> Inst<VReg> {
    let options = ldc::Options::new(LoadSize::W32);
    build::ldc_r(options, result, CONSTANT_BANK, address, offset as i32)
}

/// `LDG result, [table + 4 * index]`, the table at an offset in the data object [`JUMP_TABLES`].
fn load_from_data(
    editor: &mut Editor<VReg>,
    added: &mut Vec<(Inst<VReg>, Option<AttachmentId>)>,
    result: VReg,
    index: VReg,
    offset: u32,
) {
    let [low, high, entry_low, entry_high] =
        [(); 4].map(|()| editor.code().new_vreg(RegisterClass::Gpr));
    let parts = [
        (low, SymbolKind::AbsoluteLow),
        (high, SymbolKind::AbsoluteHigh),
    ];
    for (part, kind) in parts {
        let symbol = SymbolUse {
            role: Role::B,
            kind,
            name: JUMP_TABLES.to_owned(),
            addend: i64::from(offset),
        };
        added.push((
            build::mov_i(WORD, part, 0),
            editor.attach(Attachment::Symbol(symbol)),
        ));
    }
    let place = [entry_low, entry_high];
    let unsigned = imad_wide::Options::new(IExt::NoX, IType::U32);
    let sum = build::imad_wide_rir(unsigned, place, PT, index, 4, [low, high], !PT);
    added.push((sum, None));
    let word = ldg::Options::new(LoadSize::W32, AccessOrder::Weak);
    added.push((build::ldg_r(word, result, place, 0), None));
}
