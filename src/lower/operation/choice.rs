//! Which form an operation takes.

use super::fold::fold;
use super::{Source, Swap};
use crate::isa::table::{FieldType, FormInfo, OperandInfo};
use crate::isa::{Form, Register, RegisterClass, Role};
use crate::lower::source::{Base, Src};

/// The form that leaves the least to do; SrcA and SrcB change places where they may and that helps.
pub(super) fn choose(
    forms: &[Form],
    swap: &Swap,
    word: &mut u128,
    sources: &mut [(Role, Source)],
) -> Form {
    if let [form] = forms {
        return *form;
    }
    let (mut cost, mut form) = cheapest(forms, sources).unwrap_or((u32::MAX, forms[0]));
    if cost > 0 && change_places(swap, sources) {
        match cheapest(forms, sources) {
            Some((other, swapped_form)) if other < cost => {
                (cost, form) = (other, swapped_form);
                if let Swap::Mirror { bit, codes } = swap {
                    let code = codes[(*word >> bit) as usize & (codes.len() - 1)];
                    *word = *word & !((codes.len() as u128 - 1) << bit) | u128::from(code) << bit;
                }
            }
            _ => {
                change_places(swap, sources);
            }
        }
    }
    assert!(
        cost < u32::MAX,
        "no form of {} takes {sources:?}",
        form.info().name
    );
    form
}

/// Puts SrcA and SrcB in each other's place, if they may; done twice, all is as before.
fn change_places(swap: &Swap, sources: &mut [(Role, Source)]) -> bool {
    if matches!(swap, Swap::Never) {
        return false;
    }
    let place = |role: Role| sources.iter().position(|s| s.0 == role);
    let (Some(a), Some(b), pp) = (place(Role::A), place(Role::B), place(Role::Pp)) else {
        return false;
    };
    (sources[a].1, sources[b].1) = (sources[b].1, sources[a].1);
    if let Swap::Exchange = swap
        && let Some(pp) = pp
        && let Source::Predicate(p) = sources[pp].1
    {
        sources[pp].1 = Source::Predicate(p.negate());
    }
    true
}

fn cheapest(forms: &[Form], sources: &[(Role, Source)]) -> Option<(u32, Form)> {
    let mut best: Option<(u32, Form)> = None;
    for &form in forms {
        if let Some(cost) = cost(form.info(), sources)
            && best.is_none_or(|(c, _)| cost < c)
        {
            best = Some((cost, form));
            if cost == 0 {
                break;
            }
        }
    }
    best
}

/// Instructions needed before the form can be used; none when it cannot take the sources.
fn cost(form: &'static FormInfo, sources: &[(Role, Source)]) -> Option<u32> {
    let mut total = 0;
    for (role, source) in sources {
        let Source::Value(src) = source else { continue };
        match form.operand(*role) {
            None if src.as_imm() == Some(0) => {}
            None => return None,
            Some(operand) => total += moves(form, operand, src)?,
        }
    }
    Some(total)
}

/// Instructions that move a source to general registers, or apply its modifiers, before an operand of a form can take it.
fn moves(form: &'static FormInfo, operand: &'static OperandInfo, src: &Src) -> Option<u32> {
    let modifiers = operand.modifiers.contain(src.modifiers());
    match operand.class {
        Some(RegisterClass::Gpr) => Some(match src.base {
            Base::Regs(regs) if regs.word(0).class() != RegisterClass::Gpr => return None,
            _ if !modifiers => 1 + u32::from(src.words),
            Base::Value { .. } | Base::Regs(_) | Base::Imm(0) => 0,
            Base::Imm(_) | Base::Constant { .. } | Base::Uniform { .. } => u32::from(src.words),
        }),
        Some(RegisterClass::Uniform) => match src.base {
            Base::Regs(regs) if modifiers && regs.word(0).class() == RegisterClass::Uniform => {
                Some(0)
            }
            Base::Uniform { .. } if modifiers => Some(0),
            Base::Imm(0) => Some(0),
            // Only the uniform datapath stands where uniform registers may be written.
            Base::Imm(_) | Base::Constant { .. } if modifiers && on_uniform_datapath(form) => {
                Some(1)
            }
            _ => None,
        },
        Some(RegisterClass::Predicate) => None,
        None => {
            let field = &form.fields[operand.field as usize];
            let direct = match (field.ty, src.base) {
                (FieldType::ConstantMemory, Base::Constant { offset, .. }) => {
                    modifiers && offset.is_multiple_of(4 * u32::from(src.words))
                }
                (FieldType::ConstantMemory, _) => false,
                (_, Base::Imm(_)) => fold(field, src).is_some(),
                _ => false,
            };
            direct.then_some(0)
        }
    }
}

/// Whether the form reads and writes no general registers.
fn on_uniform_datapath(form: &FormInfo) -> bool {
    form.operands
        .iter()
        .all(|o| o.class != Some(RegisterClass::Gpr))
}
