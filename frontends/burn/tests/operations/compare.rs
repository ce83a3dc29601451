//! Whether two outcomes are one.

use crate::run::{GRADIENT, Outcome};
use burn::tensor::TensorData;

/// Compares what came of a case with what the reference says: floats may be apart by `tolerance`, gradients by
/// `of_gradients` at least, as a part of the largest of their tensor; everything else is the same.
///
/// # Errors
/// Where they differ first, in each tensor.
pub fn compare(
    found: &Outcome,
    expected: &Outcome,
    tolerance: f64,
    of_gradients: f64,
) -> Result<(), String> {
    let names = |outcome: &Outcome| {
        outcome
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    if names(found) != names(expected) {
        return Err(format!(
            "there are {:?}, expected {:?}",
            names(found),
            names(expected)
        ));
    }
    let pairs = found.iter().zip(expected);
    let differences: Vec<String> = pairs
        .filter_map(|((name, found), (_, expected))| {
            let tolerance = match name.starts_with(GRADIENT) {
                true => tolerance.max(of_gradients),
                false => tolerance,
            };
            let difference = difference(found, expected, tolerance)?;
            Some(format!("{name}: {difference}"))
        })
        .collect();
    match differences.is_empty() {
        true => Ok(()),
        false => Err(differences.join("\n")),
    }
}

fn difference(found: &TensorData, expected: &TensorData, tolerance: f64) -> Option<String> {
    if found.shape() != expected.shape() {
        return Some(format!(
            "the shape is {:?}, not {:?}",
            found.shape(),
            expected.shape()
        ));
    }
    if let (Ok(found), Ok(expected)) = (found.as_slice::<i64>(), expected.as_slice::<i64>()) {
        return first(found, expected, |a, b| a == b);
    }
    let (Ok(found), Ok(expected)) = (found.as_slice::<f64>(), expected.as_slice::<f64>()) else {
        return Some(format!(
            "a tensor of {:?}, not of {:?}",
            found.dtype(),
            expected.dtype()
        ));
    };
    let finite = expected.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0f64, |most, value| most.max(value.abs()));
    first(found, expected, |a, b| match b.is_finite() {
        true => (a - b).abs() <= tolerance * largest,
        false => a == b || a.is_nan() && b.is_nan(),
    })
}

/// The first place where two slices differ, and how many there are.
fn first<T: std::fmt::Debug>(
    found: &[T],
    expected: &[T],
    is_same: impl Fn(&T, &T) -> bool,
) -> Option<String> {
    let pairs = found.iter().zip(expected).enumerate();
    let mut wrong = pairs.filter(|(_, (a, b))| !is_same(a, b));
    let (place, (a, b)) = wrong.next()?;
    let others = wrong.count();
    Some(format!(
        "element {place} is {a:?}, not {b:?}; {others} others of {} differ",
        found.len()
    ))
}
