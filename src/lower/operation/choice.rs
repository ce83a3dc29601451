//! Which form an operation takes.

use super::candidate::{Candidate, MAX_SOURCES, Needs};
use super::fold::fold;
use super::{Mode, Source, Swap};
use crate::isa::table::{FieldType, FormInfo, OperandInfo};
use crate::isa::{RegisterClass, Role};
use crate::lower::source::{Base, Src};

/// The form that leaves the least to do; SrcA and SrcB change places where they may and that helps. `needs` is what the sources are.
pub(super) fn choose(
    mode: &'static Mode,
    word: &mut u128,
    sources: &mut [Source],
    needs: &mut [Needs; MAX_SOURCES],
) -> &'static Candidate {
    if let [candidate] = mode.candidates {
        return candidate;
    }
    let mut best = cheapest(mode.candidates, sources, needs);
    if best.is_none_or(|(cost, _)| cost > 0) && change_places(mode, sources, needs) {
        match cheapest(mode.candidates, sources, needs) {
            Some(swapped) if best.is_none_or(|(cost, _)| swapped.0 < cost) => {
                best = Some(swapped);
                if let Swap::Mirror { bit, codes } = mode.swap {
                    let code = codes[(*word >> bit) as usize & (codes.len() - 1)];
                    *word = *word & !((codes.len() as u128 - 1) << bit) | u128::from(code) << bit;
                }
            }
            _ => {
                change_places(mode, sources, needs);
            }
        }
    }
    match best {
        Some((_, candidate)) => candidate,
        None => unreachable!("no form of {mode:?} takes {sources:?}"),
    }
}

/// Puts SrcA and SrcB in each other's place, if they may; done twice, all is as before.
fn change_places(mode: &Mode, sources: &mut [Source], needs: &mut [Needs]) -> bool {
    if matches!(mode.swap, Swap::Never) {
        return false;
    }
    let place = |role: Role| mode.sources.iter().position(|&r| r == role);
    let (Some(a), Some(b)) = (place(Role::A), place(Role::B)) else {
        return false;
    };
    sources.swap(a, b);
    needs.swap(a, b);
    if let Swap::Exchange = mode.swap
        && let Some(pp) = place(Role::Pp)
        && let Source::Predicate(p) = &mut sources[pp]
    {
        *p = p.negate();
    }
    true
}

/// The first of those that leave the least to do.
fn cheapest(
    candidates: &'static [Candidate],
    sources: &[Source],
    needs: &[Needs],
) -> Option<(u32, &'static Candidate)> {
    let mut best: Option<(u32, &'static Candidate)> = None;
    for candidate in candidates {
        if let Some(cost) = cost(candidate, sources, needs)
            && best.is_none_or(|(c, _)| cost < c)
        {
            best = Some((cost, candidate));
            if cost == 0 {
                break;
            }
        }
    }
    best
}

/// Instructions needed before the form can be used; none when it cannot take the sources.
fn cost(candidate: &'static Candidate, sources: &[Source], needs: &[Needs]) -> Option<u32> {
    let mut total = 0;
    for (index, (&takes, &needs)) in candidate.takes.iter().zip(needs).enumerate() {
        if takes.is_free(needs) {
            continue;
        }
        if takes.never(needs) {
            return None;
        }
        if let Source::Value(src) = &sources[index] {
            total += moves(candidate.form.info(), candidate.operands[index]?, src)?;
        }
    }
    Some(total)
}

/// Instructions that move a source to general registers, or apply its modifiers, before an operand of a form can take it, of which
/// [`super::candidate::Takes`] does not know.
fn moves(form: &'static FormInfo, operand: &'static OperandInfo, src: &Src) -> Option<u32> {
    let modifiers = operand.modifiers.contain(src.modifiers());
    match operand.class {
        Some(RegisterClass::Gpr) if !modifiers => Some(1 + u32::from(src.words)),
        Some(RegisterClass::Gpr) => Some(u32::from(src.words)),
        Some(RegisterClass::Uniform) => match src.base {
            Base::Imm(0) => Some(0),
            Base::Imm(_) | Base::Constant { .. } if modifiers => Some(1),
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
