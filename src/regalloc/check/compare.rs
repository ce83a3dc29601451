//! Whether an instruction in registers is the instruction that it says it was.

use super::layout::Layout;
use crate::isa::inst::OperandRef;
use crate::isa::table::{FieldType, FieldValue, OperandInfo, SyntaxOperandKind};
use crate::isa::{Form, Inst, PInst, PReg, Register, RegisterClass, Role, VInst, VReg};
use crate::vcode::{Attachment, Entry, Frame, VCode};
use smallvec::SmallVec;

/// An operand before and after.
pub(super) type Pair<'a> = (OperandRef<'a, VReg>, OperandRef<'a, PReg>);

/// The operands of an instruction that is the same as before.
pub(super) struct Same<'a> {
    /// Register operands, each with the one of the same role.
    pub operands: SmallVec<[Pair<'a>; 6]>,
    /// The address that has to be the sum of its old registers and of the operand's here, which is gone.
    pub folded: Option<OperandRef<'a, VReg>>,
}

/// The operands of `new`, which must do what `old` does: with the same form, or with another form of its operation in
/// which uniform operands are GPRs, or in which the uniform part of an address is gone because it was added before.
///
/// # Errors
/// The difference.
pub(super) fn same<'a>(old: &'a VInst, new: &'a PInst) -> Result<Same<'a>, String> {
    let different = |what: &str| Err(format!("{what} differs from `{old}`"));
    if old.form() == new.form() {
        if old.word() != new.word() {
            return different("a field");
        }
        return Ok(Same {
            operands: old.operands().zip(new.operands()).collect(),
            folded: None,
        });
    }
    if old.optype() != new.optype() {
        return different("the operation");
    }
    let folded = uniform_address(old).map(|o| o.info);
    let folded = folded.filter(|o| new.operand(o.role).is_none());
    let kept = old.info().operands.iter();
    let kept = kept.filter(|o| folded.is_none_or(|f| f.role != o.role));
    let mut operands = SmallVec::new();
    let (mut seen, mut count) = (0u64, 0);
    for o in kept {
        let Some(n) = new.operand(o.role) else {
            return different(o.name);
        };
        count += 1;
        seen |= [
            Some(n.field),
            n.index,
            n.negate,
            n.absolute,
            n.bitnot,
            n.not,
            n.select,
        ]
        .into_iter()
        .flatten()
        .filter(|f| *f < 64)
        .fold(0, |set, f| set | 1 << f);
        let class = o.class == n.class
            || o.class == Some(RegisterClass::Uniform) && n.class == Some(RegisterClass::Gpr);
        if !class || o.direction != n.direction || decorations(old, o) != decorations(new, n) {
            return different(o.name);
        }
        if o.class.is_some() {
            operands.push((operand(old, o), operand(new, n)));
        } else if old.number(o.role) != new.number(o.role) {
            return different(o.name);
        }
    }
    if count != new.info().operands.len() {
        return different("the number of operands");
    }
    for (index, field) in new.info().fields.iter().enumerate() {
        let own = seen >> index & 1 == 0
            && !matches!(field.value, FieldValue::Constant(_))
            && !matches!(field.ty, FieldType::Register(_));
        let before = || old.find_field(field.name).map(|f| f.get(old.word()));
        if own && before() != Some(field.get(new.word())) {
            return different(field.name);
        }
    }
    Ok(Same {
        operands,
        folded: folded.map(|f| operand(old, f)),
    })
}

fn operand<'a, R: Register>(inst: &'a Inst<R>, info: &'static OperandInfo) -> OperandRef<'a, R> {
    OperandRef {
        info,
        regs: inst.operand_regs(info),
    }
}

/// What stands around an operand: `-`, `|…|`, `~`, `!`, a half or byte; absent is the same as not set.
fn decorations<R: Register>(inst: &Inst<R>, o: &OperandInfo) -> [u64; 6] {
    [o.index, o.negate, o.absolute, o.bitnot, o.not, o.select]
        .map(|field| field.map_or(0, |f| inst.field(f)))
}

/// The operands of an address: the register and what is uniform.
fn address_fields<R: Register>(inst: &Inst<R>) -> Option<(Option<u8>, Option<u8>)> {
    let modes = inst.info().modes.iter();
    modes
        .flat_map(|mode| mode.operands)
        .find_map(|o| match o.kind {
            SyntaxOperandKind::Memory { base, uniform, .. } => Some((base, uniform)),
            _ => None,
        })
}

fn by_field<R: Register>(inst: &Inst<R>, field: Option<u8>) -> Option<OperandRef<'_, R>> {
    let field = field?;
    inst.operands().find(|o| o.info.field == field)
}

/// The operand of an access that holds its address.
pub(super) fn address<R: Register>(inst: &Inst<R>) -> Option<OperandRef<'_, R>> {
    by_field(inst, address_fields(inst)?.0)
}

/// The operand that an access adds to [its address](address).
pub(super) fn uniform_address<R: Register>(inst: &Inst<R>) -> Option<OperandRef<'_, R>> {
    let (base, uniform) = address_fields(inst)?;
    base.and_then(|_| by_field(inst, uniform))
}

/// The instruction of `entry` with the offset that its symbol of the frame stands for; true if it had such a symbol.
pub(super) fn resolved(
    before: &VCode<VReg>,
    entry: &Entry<VReg>,
    layout: &Layout,
) -> (VInst, bool) {
    let mut inst = entry.inst;
    if let Some(Attachment::Symbol(symbol)) = entry.attachment.map(|a| &before.attachments[a])
        && let Some(offset) = layout.offset(symbol)
    {
        inst.set_number(symbol.role, offset as u64);
        return (inst, true);
    }
    (inst, false)
}

/// Whether `entry` accesses the frame from a place on that is in none of the function's stack slots: a constant has led
/// it away from them.
pub(super) fn is_outside_of_slots(before: &VCode<VReg>, entry: &Entry<VReg>) -> bool {
    match entry.attachment.map(|a| &before.attachments[a]) {
        Some(Attachment::Symbol(symbol)) if symbol.name == Frame::SLOTS => {
            !(0..i64::from(before.frame.slot_bytes)).contains(&symbol.addend)
        }
        _ => false,
    }
}

/// Whether what is attached has stayed: symbols and labels as they were, a call's convention in its registers, values
/// kept where the results are.
pub(super) fn attachment(
    (before, old): (&VCode<VReg>, &Entry<VReg>),
    (after, new): (&VCode<PReg>, &Entry<PReg>),
) -> Result<(), String> {
    let stays = match (
        old.attachment.map(|a| &before.attachments[a]),
        new.attachment.map(|a| &after.attachments[a]),
    ) {
        (None, None) => true,
        (Some(Attachment::Symbol(a)), Some(Attachment::Symbol(b))) => a == b,
        (Some(Attachment::Label(a)), Some(Attachment::Label(b))) => a == b,
        (Some(Attachment::Call(a)), Some(Attachment::Call(b))) => {
            let fixed = |old: &[(VReg, PReg)], new: &[(PReg, PReg)]| {
                old.iter().map(|(_, r)| (*r, *r)).eq(new.iter().copied())
            };
            a.callee == b.callee
                && a.meeting == b.meeting
                && fixed(&a.uses, &b.uses)
                && fixed(&a.defs, &b.defs)
        }
        (Some(Attachment::Else(a)), Some(Attachment::Else(b))) => {
            let results = new.inst.definitions().zip(a);
            results
                .map(|(r, kept)| kept.map(|_| r))
                .eq(b.iter().copied())
        }
        _ => false,
    };
    if stays {
        Ok(())
    } else {
        Err("has not what was attached before".to_string())
    }
}

/// Whether `new` reads the word `word` of what `old` reads from a constant bank, and nothing else.
pub(super) fn is_word_of(old: &VInst, new: &PInst, word: u64) -> bool {
    let from = |o: Option<u64>| o.map(|place| place + 4 * word);
    let reads_constant = old.operand(Role::B).is_some_and(|b| b.class.is_none());
    let mut moved = *new;
    if let Some(place) = old.number(Role::B) {
        moved.set_number(Role::B, place);
    }
    let mut fields = old.info().fields.iter();
    reads_constant
        && is_constant_read(old)
        && old.form() == new.form()
        && old.is_unguarded()
        && new.is_unguarded()
        && old.uses().next().is_none()
        && new.uses().next().is_none()
        && new.definitions().count() == 1
        && from(old.number(Role::B)) == new.number(Role::B)
        && fields.all(|f| f.type_name == "MOVW" || f.get(old.word()) == f.get(moved.word()))
}

/// Whether an operation gives what is in a constant bank as it is there.
fn is_constant_read(inst: &VInst) -> bool {
    matches!(inst.form(), Form::MOV_C | Form::ULDC_C)
}
