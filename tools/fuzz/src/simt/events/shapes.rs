//! What a kernel of events is like, for counts.

use super::features::Feature;
use super::plan::{Form, Look, Place, Plan, Role, Stmt, Sync, Test, Through, Turning};
use crate::simt::kernel::Space;

/// The family of a kernel and the features that it has.
pub fn shapes(plan: &Plan) -> Vec<Feature> {
    let waits = plan.sync != Sync::Nothing;
    let shared = plan.space == Space::Shared;
    let data = plan
        .arrays
        .iter()
        .filter(|array| matches!(array.role, Role::Common | Role::Message | Role::Locked(_)));
    let mixed = data.clone().any(|array| array.place.is_shared() != shared);
    let generic = plan
        .arrays
        .iter()
        .any(|array| array.place == Place::Generic);
    let scratch = match plan.wait.through {
        Through::Scratch(array) => plan.arrays.get(array).map(|array| array.place.is_shared()),
        _ => None,
    };
    let stmts = plan.stmts();
    let loops = || {
        stmts.iter().filter_map(|stmt| match stmt {
            Stmt::Loop(inner) => Some(inner),
            _ => None,
        })
    };
    let elements = || {
        stmts.iter().filter_map(|stmt| match stmt {
            Stmt::Load { from: element, .. }
            | Stmt::Store { to: element, .. }
            | Stmt::Update { to: element, .. } => Some(element),
            _ => None,
        })
    };
    let tests = |wanted: fn(&Test) -> bool| {
        stmts
            .iter()
            .any(|stmt| matches!(stmt, Stmt::If { when, .. } if wanted(when)))
    };
    let pointer = |form: Form| matches!(form, Form::PointerUp(_) | Form::PointerDown(_));
    let odd = |array: &super::plan::Array| {
        matches!(array.role, Role::Atomic(_)) && !array.size().is_multiple_of(4)
    };
    let odd_flags = waits && !(plan.flags() * plan.flag_bytes).is_multiple_of(4);
    let wait = plan.wait;
    let all = [
        (Feature::SharedFlags, waits && shared),
        (Feature::MixedSpaces, waits && mixed),
        (Feature::Generic, generic || plan.generic),
        (Feature::NarrowFlags, waits && plan.flag_bytes < 4),
        (Feature::WideFlags, waits && plan.flag_bytes == 8),
        (Feature::OddEnds, odd_flags || plan.arrays.iter().any(odd)),
        (
            Feature::ThroughStack,
            waits && matches!(wait.through, Through::Stack | Through::Element),
        ),
        (Feature::ThroughGlobal, waits && scratch == Some(false)),
        (Feature::ThroughShared, waits && scratch == Some(true)),
        (
            Feature::OutParameter,
            waits && matches!(wait.through, Through::Callee | Through::CalleeScratch(_)),
        ),
        (Feature::MaskedCount, waits && wait.look == Look::Count),
        (
            Feature::ReadByUpdate,
            waits && matches!(wait.look, Look::Update | Look::Swap | Look::Busy),
        ),
        (
            Feature::Sleepers,
            waits && matches!(wait.turning, Turning::Sleep | Turning::Bounded),
        ),
        (Feature::Exits, waits && wait.turning == Turning::Twice),
        (
            Feature::NestedWaits,
            waits && wait.turning == Turning::Nested,
        ),
        (Feature::Inside, waits && wait.turning == Turning::Inside),
        (Feature::WaitingFunctions, waits && wait.function),
        (Feature::TailWaits, waits && wait.turning == Turning::Tail),
        (Feature::Blocks, plan.grid > 1),
        (
            Feature::NarrowUpdates,
            plan.arrays
                .iter()
                .any(|a| matches!(a.role, Role::Atomic(_)) && a.bytes < 4),
        ),
        (
            Feature::Downwards,
            loops().any(|l| matches!(l.form, Form::Down | Form::PointerDown(_))),
        ),
        (Feature::Negative, loops().any(|l| l.form == Form::Negative)),
        (Feature::Pointers, loops().any(|l| pointer(l.form))),
        (Feature::NarrowCounters, loops().any(|l| l.bits < 32)),
        (Feature::WideCounters, loops().any(|l| l.bits == 64)),
        (Feature::Strides, loops().any(|l| l.step.number > 1)),
        (Feature::Rotated, loops().any(|l| l.rotated)),
        (
            Feature::Neighbours,
            tests(|test| matches!(test, Test::Inside { plus: -3..=-1, .. })),
        ),
        (
            Feature::Guarded,
            tests(|test| matches!(test, Test::Fits { .. })),
        ),
        (
            Feature::Adjacent,
            tests(|test| matches!(test, Test::Inside { plus: 0, .. })),
        ),
        (Feature::Breaks, loops().any(|l| l.leave.is_some())),
        (
            Feature::Offsets,
            elements().any(|e| e.index.split || e.index.offset),
        ),
        (Feature::Flags, elements().any(|e| e.flags)),
        (Feature::Pressure, plan.pressure != 0),
        (
            Feature::Slots,
            plan.arrays.iter().any(|array| array.place == Place::Stack),
        ),
    ];
    let there = all.into_iter().filter(|shape| shape.1).map(|shape| shape.0);
    std::iter::once(plan.family).chain(there).collect()
}
