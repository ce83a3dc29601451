//! Which form an operation takes.

use super::candidate::{Candidate, Needs};
use super::fold::fold;
use super::mode::{Mode, Source};
use crate::isa::table::{FieldType, FormInfo, OperandInfo, Swap};
use crate::isa::{RegisterClass, Role};
use crate::lower::source::{Base, Src};

/// The form that leaves the least to do; SrcA and SrcB change places where they may and that helps. `needs` is what the
/// sources are.
pub(super) fn choose(
    mode: &'static Mode,
    word: &mut u128,
    sources: &mut [Source],
    needs: Needs,
) -> &'static Candidate {
    if let [candidate] = mode.candidates {
        return candidate;
    }
    let mut best = cheapest(mode.candidates, sources, needs);
    if best.is_none_or(|(cost, _)| cost > 0)
        && let Some((a, b)) = change_places(mode, sources)
    {
        match cheapest(mode.candidates, sources, needs.swap(a, b)) {
            Some(swapped) if best.is_none_or(|(cost, _)| swapped.0 < cost) => {
                best = Some(swapped);
                *word = mode.swap().turned(*word);
            }
            _ => {
                change_places(mode, sources);
            }
        }
    }
    match best {
        Some((_, candidate)) => candidate,
        None => unreachable!("no form of {mode:?} takes {sources:?}"),
    }
}

/// Puts SrcA and SrcB in each other's place, if they may, and says where they are; done twice, all is as before.
fn change_places(mode: &Mode, sources: &mut [Source]) -> Option<(usize, usize)> {
    let (a, b) = places_to_change(mode)?;
    sources.swap(a, b);
    if let Swap::Exchange = mode.swap()
        && let Some(pp) = place(mode, Role::Pp)
        && let Source::Predicate(p) = &mut sources[pp]
    {
        *p = p.negate();
    }
    Some((a, b))
}

/// Where the sources are that may change places.
pub(super) fn places_to_change(mode: &Mode) -> Option<(usize, usize)> {
    match mode.swap() {
        Swap::Never => None,
        _ => Some((place(mode, Role::A)?, place(mode, Role::B)?)),
    }
}

/// Where the source of a role is.
fn place(mode: &Mode, role: Role) -> Option<usize> {
    mode.sources.iter().position(|&r| r == role)
}

/// The first of those that leave the least to do, and how much that is.
fn cheapest(
    candidates: &'static [Candidate],
    sources: &[Source],
    needs: Needs,
) -> Option<(u32, &'static Candidate)> {
    let free = candidates.iter().find(|candidate| {
        candidate.is_free(needs)
            || candidate.may_be_free(needs) && cost(candidate, sources) == Some(0)
    });
    if let Some(candidate) = free {
        return Some((0, candidate));
    }
    let possible = (candidates.iter()).filter(|candidate| !candidate.never_takes(needs));
    possible
        .filter_map(|candidate| Some((cost(candidate, sources)?, candidate)))
        .min_by_key(|(cost, _)| *cost)
}

/// Instructions needed before the form can be used; none when it cannot take the sources.
fn cost(candidate: &'static Candidate, sources: &[Source]) -> Option<u32> {
    let form = candidate.form.info();
    let mut total = 0;
    for (source, operand) in sources.iter().zip(&candidate.operands) {
        let Source::Value(src) = source else { continue };
        match operand {
            None if src.as_imm() == Some(0) => {}
            None => return None,
            Some(operand) => total += moves(form, operand, src)?,
        }
    }
    Some(total)
}

/// Instructions that move a source to general registers, or apply its modifiers, before an operand of a form can take
/// it. The form is none that [`Candidate::never_takes`] it.
fn moves(form: &'static FormInfo, operand: &'static OperandInfo, src: &Src) -> Option<u32> {
    let modifiers = operand.modifiers.contain(src.modifiers());
    match operand.class {
        Some(RegisterClass::Gpr) => Some(match src.base {
            _ if !modifiers => 1 + u32::from(src.words),
            Base::Value { .. } | Base::Regs(_) | Base::Imm(0) => 0,
            Base::Imm(_) | Base::Pooled(_) | Base::Constant { .. } | Base::Uniform { .. } => {
                u32::from(src.words)
            }
        }),
        Some(RegisterClass::Uniform) => match src.base {
            Base::Imm(0) => Some(0),
            Base::Regs(_) | Base::Uniform { .. } if modifiers => Some(0),
            Base::Imm(_) | Base::Constant { .. } if modifiers => Some(1),
            Base::Pooled(_) if modifiers => Some(2),
            _ => None,
        },
        Some(RegisterClass::Predicate) => None,
        None => {
            let field = &form.fields[operand.field as usize];
            let direct = match (field.ty, src.base) {
                (FieldType::ConstantMemory, Base::Constant { offset, .. }) => {
                    modifiers && offset.is_multiple_of(4 * u32::from(src.words))
                }
                (FieldType::ConstantMemory, Base::Pooled(_)) => modifiers,
                (FieldType::ConstantMemory, _) => false,
                (_, Base::Imm(_)) => fold(field, src).is_some(),
                _ => false,
            };
            direct.then_some(0)
        }
    }
}
