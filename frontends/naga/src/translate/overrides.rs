//! Where an override is that has no value, or one that does not fit; naga does not say it.

use super::function::first_span;
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::PipelineConstantError;
use naga::{EntryPoint, Expression, Module, Override, Scalar, ScalarKind, Span, TypeInner};

/// Where the size of an entry point's workgroups is said: an override, an expression of some, or nothing but the entry
/// point.
pub(super) fn size_span(module: &Module, point: &EntryPoint) -> Span {
    let sizes = point.workgroup_size_overrides.iter().flatten().flatten();
    let mut spans = sizes.map(|&size| match module.global_expressions[size] {
        Expression::Override(handle) => module.overrides.get_span(handle),
        _ => module.global_expressions.get_span(size),
    });
    let span = spans.find(Span::is_defined);
    span.unwrap_or_else(|| first_span(&point.function))
}

/// Where the override is that an error is about.
pub(super) fn span(
    module: &Module,
    point: &EntryPoint,
    given: &PipelineConstants,
    error: &PipelineConstantError,
) -> Span {
    use PipelineConstantError as E;
    let mut overrides = module.overrides.iter();
    let found = match error {
        E::MissingValue(name) => overrides.find(|(_, known)| key(known).as_ref() == Some(name)),
        E::SrcNeedsToBeFinite | E::DstRangeTooSmall => overrides.find(|(_, known)| {
            let value = key(known).and_then(|key| given.get(&key).copied());
            match module.types[known.ty].inner {
                TypeInner::Scalar(scalar) => value.is_some_and(|value| !fits(value, scalar)),
                _ => false,
            }
        }),
        _ => None,
    };
    let own = match (found, error) {
        (Some((handle, _)), _) => module.overrides.get_span(handle),
        (None, E::ValidationError(error)) => {
            let mut spans = error.spans().map(|(span, _)| *span);
            spans.find(Span::is_defined).unwrap_or(Span::UNDEFINED)
        }
        // A name that the module has not has no place in it.
        (None, E::NotFound(_)) => return Span::UNDEFINED,
        (None, _) => Span::UNDEFINED,
    };
    match own.is_defined() {
        true => own,
        false => size_span(module, point),
    }
}

/// What the values of overrides are given by.
fn key(known: &Override) -> Option<String> {
    let id = known.id.map(|id| id.to_string());
    id.or_else(|| known.name.clone())
}

/// Whether a number is one of a type.
fn fits(value: f64, scalar: Scalar) -> bool {
    let bits = i32::from(scalar.width) * 8;
    match scalar.kind {
        ScalarKind::Bool => true,
        _ if !value.is_finite() => false,
        ScalarKind::Sint => (value.trunc() + 0.5).abs() < 2f64.powi(bits - 1),
        ScalarKind::Uint => value.trunc() >= 0.0 && value.trunc() < 2f64.powi(bits),
        _ => match scalar.width {
            2 => half::f16::from_f64(value).is_finite(),
            4 => (value as f32).is_finite(),
            _ => true,
        },
    }
}
