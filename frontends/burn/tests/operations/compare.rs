//! Whether two outcomes are one.
//!
//! A number may be apart from what is expected by some steps of its type at its own size, or at that of a [`SMALL`] part
//! of the largest number of its tensor, whichever is more: where terms cancel, their rounding stays. It is never right
//! if it is wrong by more than [`MOST`] of that size.

use crate::run::Outcome;
use burn::tensor::TensorData;

/// Smaller numbers, as a part of the largest of their tensor, have the steps of this part.
const SMALL: f64 = 1.0 / 8.0;

/// How far a number may be apart at most, as a part of that size: steps of bf16 are large.
const MOST: f64 = 0.3;

/// How far numbers may be apart.
#[derive(Clone, Copy)]
pub struct Tolerance {
    /// A step of their type at 1.
    pub step: f64,
    /// So many steps.
    pub steps: f64,
}

/// Compares what came of a case with what the reference says. Integers and booleans are the same. Gives by how many
/// steps floats are apart, at most.
///
/// # Errors
/// Where they differ first, in each tensor.
pub fn compare(found: &Outcome, expected: &Outcome, tolerance: Tolerance) -> Result<f64, String> {
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
    let (mut differences, mut most) = (Vec::new(), 0.0f64);
    for ((name, found), (_, expected)) in found.iter().zip(expected) {
        match difference(found, expected, tolerance) {
            Ok(steps) => most = most.max(steps),
            Err(difference) => differences.push(format!("{name}: {difference}")),
        }
    }
    match differences.is_empty() {
        true => Ok(most),
        false => Err(differences.join("\n")),
    }
}

fn difference(
    found: &TensorData,
    expected: &TensorData,
    tolerance: Tolerance,
) -> Result<f64, String> {
    if found.shape() != expected.shape() {
        return Err(format!(
            "the shape is {:?}, not {:?}",
            found.shape(),
            expected.shape()
        ));
    }
    if let (Ok(found), Ok(expected)) = (found.as_slice::<i64>(), expected.as_slice::<i64>()) {
        return first(found, expected, |a, b| a == b).map(|()| 0.0);
    }
    let (Ok(found), Ok(expected)) = (found.as_slice::<f64>(), expected.as_slice::<f64>()) else {
        return Err(format!(
            "a tensor of {:?}, not of {:?}",
            found.dtype(),
            expected.dtype()
        ));
    };
    let finite = expected.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0f64, |most, value| most.max(value.abs()));
    let apart = |a: f64, b: f64| match b.is_finite() {
        // Also where all of the tensor is 0.
        true if a == b => 0.0,
        true => (a - b).abs() / (tolerance.step * b.abs().max(SMALL * largest)),
        false if a == b || a.is_nan() && b.is_nan() => 0.0,
        false => f64::INFINITY,
    };
    let steps = tolerance.steps.min(MOST / tolerance.step);
    // Written so that what is no number is apart from all.
    first(found, expected, |&a, &b| apart(a, b) <= steps)?;
    let pairs = found.iter().zip(expected);
    Ok(pairs.fold(0.0, |most, (&a, &b)| most.max(apart(a, b))))
}

/// Looks for places where two slices differ.
///
/// # Errors
/// The first one, and how many there are.
fn first<T: std::fmt::Debug>(
    found: &[T],
    expected: &[T],
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<(), String> {
    let pairs = found.iter().zip(expected).enumerate();
    let mut wrong = pairs.filter(|(_, (a, b))| !is_same(a, b));
    let Some((place, (a, b))) = wrong.next() else {
        return Ok(());
    };
    let others = wrong.count();
    Err(format!(
        "element {place} is {a:?}, not {b:?}; {others} others of {} differ",
        found.len()
    ))
}

/// What nobody should take for right is refused with any tolerance, in the type with the largest steps.
#[test]
fn wrong_values_are_noticed_whatever_the_tolerance() {
    let bf16 = Tolerance {
        step: 1.0 / 128.0,
        steps: 128.0,
    };
    let outcome =
        |values: [f64; 3]| vec![("result".to_string(), TensorData::new(values.to_vec(), [3]))];
    let expected = [8.0, -1.0, 0.25];
    let compare = |found: [f64; 3]| compare(&outcome(found), &outcome(expected), bf16);
    assert_eq!(compare(expected), Ok(0.0));
    // The smallest has the steps of an eighth of the largest.
    assert!(compare([10.0, -1.2, 0.5]).is_ok_and(|steps| steps > 30.0));
    for wrong in [
        expected.map(|value| value / 2.0),
        [0.0; 3],
        [11.0, -1.0, 0.25],
        [8.0, -0.6, 0.25],
        [8.0, -1.0, 0.6],
        [8.0, -1.0, f64::NAN],
    ] {
        assert!(compare(wrong).is_err(), "{wrong:?}");
    }
}
