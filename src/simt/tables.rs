//! The code that reads jump tables.
//!
//! A branch by table needs the byte offset of its target in a register. Before allocation the index of a [`Terminator::Table`] is replaced
//! by the entry that is read from a table in the module's constants; the entries are filled in when the function is emitted.

use super::edit::Editor;
use crate::abi::CONSTANT_BANK;
use crate::emit::{Constants, ConstantsFull};
use crate::isa::{Form, Inst, Register, RegisterClass, Role, VReg};
use crate::vcode::{Entry, Terminator, VCode};

/// Adds the load of the table's entry to every block that ends in a branch by table.
///
/// # Errors
/// When the module's constants are full.
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
        let place = constants.reserve(4 * targets.len())?;
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
        let [scaled, entry] = [(); 2].map(|()| editor.code().new_vreg(RegisterClass::Gpr));
        added.push(times_four(scaled, index));
        added.push(load(entry, scaled, place));
        let line = editor.data(block).line;
        editor
            .body(block)
            .extend(added.into_iter().map(|inst| Entry {
                inst,
                line,
                attachment: None,
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
