//! Values that are rematerialized instead of being spilled: constants, parameters, special registers, addresses
//! in the frame and of symbols.

use super::pressure::stack_pointer;
use crate::isa::generated::{MOVW, mov, uldc};
use crate::isa::operand::Constant;
use crate::isa::table::{Direction, Effects};
use crate::isa::{Form, Register, RegisterClass, Role, VInst, VReg, build};
use crate::vcode::{Attachment, AttachmentId, Entry, VCode};

/// Not rematerializable.
const NONE: u32 = u32::MAX;

/// Which values can be made again, by value.
#[derive(Debug, Default)]
pub(super) struct Rematerializable {
    /// The instruction that makes it.
    made_by: Vec<u32>,
}

impl Rematerializable {
    /// Finds the values of `class` that can be made again anywhere.
    pub fn find(&mut self, code: &VCode<VReg>, class: RegisterClass) {
        self.made_by.clear();
        self.made_by.resize(code.vreg_count as usize, NONE);
        for (index, entry) in code.insts.iter().enumerate() {
            if is_repeatable(code, entry) {
                for v in entry.inst.definitions().filter(|v| v.class() == class) {
                    self.made_by[v.index()] = index as u32;
                }
            }
        }
    }

    /// Whether the value can be made again.
    pub fn knows(&self, v: VReg) -> bool {
        self.made_by[v.index()] != NONE
    }

    /// The instruction that makes `v` again as `copy`, with what is attached to it.
    ///
    /// # Panics
    /// For a value that [`Rematerializable::knows`] not.
    pub fn make(&self, code: &VCode<VReg>, v: VReg, copy: VReg) -> (VInst, Option<AttachmentId>) {
        let entry = &code.insts[self.made_by[v.index()] as usize];
        let inst = &entry.inst;
        if let Some(word) = inst.definitions().position(|d| d == v)
            && inst.definitions().nth(1).is_some()
        {
            let mut one = one_word(inst, copy).expect("nothing else has several results");
            let place = inst.number(Role::B).expect("it reads a constant");
            one.set_number(Role::B, place + 4 * word as u64);
            return (one, None);
        }
        let again = inst.map_operands(|info, _, r| match info.direction {
            Direction::Out => copy,
            Direction::In | Direction::Neither => r,
        });
        (again, entry.attachment)
    }
}

/// For an instruction that reads several words from a constant bank the one that reads the first of them.
fn one_word(inst: &VInst, to: VReg) -> Option<VInst> {
    let first = Constant { bank: 0, offset: 0 };
    match inst.form() {
        Form::MOV_C => Some(build::mov_c(mov::Options::new(MOVW::W32), to, first)),
        Form::ULDC_C => Some(build::uldc_c(uldc::Options::new(MOVW::W32), to, first)),
        _ => None,
    }
}

/// Whether an instruction gives the same results wherever it stands: it reads no register but the stack pointer, and
/// nothing that changes.
pub(super) fn is_repeatable(code: &VCode<VReg>, entry: &Entry<VReg>) -> bool {
    let inst = &entry.inst;
    if !inst.is_unguarded() || inst.uses().any(|v| Some(v) != stack_pointer(code)) {
        return false;
    }
    let effects = inst.optype().info().effects;
    let fixed = effects == Effects::default()
        || effects == Effects::LOAD.union(Effects::CONSTANT)
        || effects == Effects::CONSTANT
        || effects == Effects::SPECIAL && reads_constant_register(inst.form(), inst.word());
    let plain = entry
        .attachment
        .is_none_or(|a| matches!(code.attachments[a], Attachment::Symbol(_)));
    fixed
        && plain
        && match inst.definitions().count() {
            0 => false,
            1 => true,
            _ => entry.attachment.is_none() && matches!(inst.form(), Form::MOV_C | Form::ULDC_C),
        }
}

/// Whether a read of a special register gives the thread the same value at all times.
fn reads_constant_register(form: Form, word: u128) -> bool {
    let field = form.info().fields.iter().find(|f| f.type_name == "SReg");
    let Some(field) = field else { return false };
    let crate::isa::table::FieldType::Enum(names) = field.ty else {
        return false;
    };
    names
        .name_of(field.get(word))
        .is_some_and(|n| !n.contains("CLOCK") && !n.contains("ACTIVEMASK"))
}
