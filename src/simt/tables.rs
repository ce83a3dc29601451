//! The code that reads jump tables.
//!
//! A branch by table needs the byte offset of its target in a register. Before allocation the index of a [`Terminator::Table`] is replaced
//! by the entry that is read from a table in the module's constants, or in its data where they are full; the entries are filled in when the
//! function is emitted.

use super::edit::Editor;
use crate::abi::CONSTANT_BANK;
use crate::emit::constants::TABLES;
use crate::emit::{Constants, ConstantsFull};
use crate::isa::generated::IType;
use crate::isa::{Form, Inst, Register, RegisterClass, Role, VReg};
use crate::vcode::{Attachment, AttachmentId, Entry, SymbolKind, SymbolUse, Terminator, VCode};

/// Adds the load of the table's entry to every block that ends in a branch by table.
///
/// # Errors
/// When the jump tables of the module need more bytes than 32 bits can tell.
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
        let place = constants.reserve_table(targets.len())?;
        let mut added = Vec::new();
        if index.class() == RegisterClass::Uniform {
            let mut copy = Inst::new(Form::MOV_U);
            copy.set(
                Role::B,
                std::mem::replace(&mut index, editor.code().new_vreg(RegisterClass::Gpr)),
            );
            copy.set(Role::D, index);
            added.push(copy);
        }
        let entry = editor.code().new_vreg(RegisterClass::Gpr);
        let mut added: Vec<(Inst<VReg>, Option<AttachmentId>)> =
            added.into_iter().map(|inst| (inst, None)).collect();
        match Constants::in_data(place) {
            None => {
                let scaled = editor.code().new_vreg(RegisterClass::Gpr);
                added.push((times_four(scaled, index), None));
                added.push((load(entry, scaled, place), None));
            }
            Some(offset) => load_from_data(&mut editor, &mut added, entry, index, offset),
        }
        let line = editor.data(block).line;
        editor
            .body(block)
            .extend(added.into_iter().map(|(inst, attachment)| Entry {
                inst,
                line,
                attachment,
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
    let mut inst = Inst::new(Form::LEA_RRR);
    inst.set(Role::D, result);
    inst.set(Role::A, value);
    inst.set_named("shiftamt", 2);
    inst
}

/// `LDC result, bank, [address + offset]`.
fn load(result: VReg, address: VReg, offset: u32) -> Inst<VReg> {
    let mut inst = Inst::new(Form::LDC_R);
    inst.set(Role::D, result);
    inst.set(Role::A, address);
    inst.set_named("bank", u64::from(CONSTANT_BANK));
    inst.set_named("addr", u64::from(offset));
    inst
}

/// `LDG result, [table + 4 * index]`, the table at an offset in the data object [`TABLES`].
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
        let mut inst = Inst::new(Form::MOV_I);
        inst.set(Role::D, part);
        let symbol = SymbolUse {
            field: "vb",
            kind,
            name: TABLES.to_owned(),
            addend: i64::from(offset),
        };
        added.push((inst, editor.attach(Attachment::Symbol(symbol))));
    }
    let mut sum = Inst::new(Form::IMAD_WIDE_RIR);
    set_pair(&mut sum, Role::D, [entry_low, entry_high]);
    sum.set(Role::A, index);
    sum.set_named("vb", 4);
    set_pair(&mut sum, Role::C, [low, high]);
    sum.set_named("itype", IType::U32 as u64);
    added.push((sum, None));
    let mut load = Inst::new(Form::LDG_R);
    load.set(Role::D, result);
    set_pair(&mut load, Role::A, [entry_low, entry_high]);
    added.push((load, None));
}

fn set_pair(inst: &mut Inst<VReg>, role: Role, regs: [VReg; 2]) {
    let operand = inst.operand(role).expect("the form has the operand");
    inst.set_regs(operand, &regs.map(Some));
}
