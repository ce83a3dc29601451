//! Whether two outcomes are one.
//!
//! What a rounding does to a number depends on how it is computed: where terms cancel, their rounding stays. So the
//! reference says it. It computes several times from inputs that are up to two steps of their type larger or smaller,
//! and how far a number moves by that, or a step of its own, is what a step means for it. A number may be apart from
//! what is expected by some of these. It is never right if it is wrong by more than [`MOST`] of its size, or of a
//! [`SMALL`] part of the largest of its tensor.

use crate::run::Outcome;
use burn::tensor::{DType, TensorData};

/// Smaller numbers, as a part of the largest of their tensor, count as this part.
const SMALL: f64 = 1.0 / 8.0;

/// How far a number may be apart at most, as a part of its size: steps of bf16 are large.
const MOST: f64 = 0.3;

/// A type of float.
#[derive(Clone, Copy)]
pub struct Float {
    /// The type.
    pub dtype: DType,
    /// The distance from 1 to the next number.
    pub step: f64,
    /// The smallest number above 0: no step is smaller.
    pub least: f64,
}

/// What the reference says.
pub struct Reference {
    /// What comes of the inputs.
    pub expected: Outcome,
    /// What comes of inputs that are up to two steps apart: none if numbers are to be the same.
    pub moved: Vec<Outcome>,
}

/// Compares what came of a case with what the reference says, within some steps of a type. Integers and booleans are
/// the same. Gives by how many steps floats are apart, at most.
///
/// # Errors
/// Where they differ first, in each tensor.
pub fn compare(
    found: &Outcome,
    reference: &Reference,
    float: Float,
    steps: f64,
) -> Result<f64, String> {
    let names = |outcome: &Outcome| {
        let names = outcome.iter().map(|(name, _)| name.clone());
        names.collect::<Vec<_>>()
    };
    let Reference { expected, moved } = reference;
    for other in moved.iter().chain([found]) {
        if names(other) != names(expected) {
            let (found, expected) = (names(other), names(expected));
            return Err(format!("there are {found:?}, expected {expected:?}"));
        }
    }
    let (mut differences, mut most) = (Vec::new(), 0.0f64);
    for (index, (name, expected)) in expected.iter().enumerate() {
        let moved: Vec<_> = moved.iter().map(|outcome| &outcome[index].1).collect();
        match difference(&found[index].1, expected, &moved, float, steps) {
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
    moved: &[&TensorData],
    float: Float,
    steps: f64,
) -> Result<f64, String> {
    if found.shape() != expected.shape() {
        let (found, expected) = (found.shape(), expected.shape());
        return Err(format!("the shape is {found:?}, not {expected:?}"));
    }
    if let (Ok(found), Ok(expected)) = (found.as_slice::<i64>(), expected.as_slice::<i64>()) {
        return first(found, expected, |place| found[place] == expected[place]).map(|()| 0.0);
    }
    let floats = |data: &TensorData| {
        let floats = data.as_slice::<f64>().map(<[f64]>::to_vec);
        floats.map_err(|_| format!("a tensor of {:?}", data.dtype()))
    };
    let (found, expected) = (floats(found)?, floats(expected)?);
    let moved: Vec<_> = moved
        .iter()
        .map(|data| floats(data))
        .collect::<Result<_, _>>()?;
    let finite = expected.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0f64, |most, value| most.max(value.abs()));
    // In steps of this number, and infinite where no rounding explains it.
    let apart = |place: usize| {
        let (a, b) = (found[place], expected[place]);
        if a == b || a.is_nan() && b.is_nan() {
            return 0.0;
        }
        let distance = (a - b).abs();
        let far = MOST * b.abs().max(SMALL * largest);
        // What is no number is apart from all.
        if !b.is_finite() || !(distance <= far) {
            return f64::INFINITY;
        }
        let moved = moved.iter().map(|values| (values[place] - b).abs());
        distance / moved.fold(float.least.max(float.step * b.abs()), f64::max)
    };
    first(&found, &expected, |place| apart(place) <= steps)?;
    Ok((0..found.len()).map(apart).fold(0.0, f64::max))
}

/// Looks for places where two slices differ.
///
/// # Errors
/// The first one, and how many there are.
fn first<T: std::fmt::Debug>(
    found: &[T],
    expected: &[T],
    is_same: impl Fn(usize) -> bool,
) -> Result<(), String> {
    let count = found.len();
    let mut wrong = (0..count).filter(|&place| !is_same(place));
    let Some(place) = wrong.next() else {
        return Ok(());
    };
    let (a, b, others) = (&found[place], &expected[place], wrong.count());
    Err(format!(
        "element {place} is {a:?}, not {b:?}; {others} others of {count} differ"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BF16: Float = Float {
        dtype: DType::BF16,
        step: 1.0 / 128.0,
        least: 1e-40,
    };

    fn outcome(values: [f64; 3]) -> Outcome {
        vec![("result".to_string(), TensorData::new(values.to_vec(), [3]))]
    }

    /// By how many steps numbers are apart from 8, -1 and 0.25, of which the last moves much.
    fn apart(found: [f64; 3], steps: f64) -> Result<f64, String> {
        let reference = Reference {
            expected: outcome([8.0, -1.0, 0.25]),
            moved: vec![outcome([8.0, -1.0, 0.25]), outcome([8.01, -1.0, 0.35])],
        };
        compare(&outcome(found), &reference, BF16, steps)
    }

    #[test]
    fn a_step_is_what_a_step_of_the_inputs_does() {
        assert_eq!(apart([8.0, -1.0, 0.25], 0.0), Ok(0.0));
        let near = |found, expected: f64| {
            let steps = apart(found, 2.0).expect("it is near");
            assert!((steps - expected).abs() < 1e-9, "{steps}, not {expected}");
        };
        near([8.0 + 8.0 / 128.0, -1.0, 0.25], 1.0);
        near([8.0, -1.0 + 1.5 / 128.0, 0.25], 1.5);
        near([8.0, -1.0, 0.40], 1.5);
        assert!(apart([8.0, -1.0 + 3.0 / 128.0, 0.25], 2.0).is_err());
        assert!(apart([8.0, -1.0, 0.48], 2.0).is_err());
    }

    /// What nobody should take for right is refused with any number of steps, in the type with the largest.
    #[test]
    fn wrong_values_are_noticed_whatever_the_tolerance() {
        for wrong in [
            [4.0, -1.0, 0.25],
            [0.0, -1.0, 0.25],
            [11.0, -1.0, 0.25],
            [8.0, -0.5, 0.25],
            [8.0, 0.0, 0.25],
            [8.0, -0.6, 0.25],
            [8.0, -1.0, 0.6],
            [8.0, -1.0, f64::NAN],
            [8.0, f64::INFINITY, 0.25],
        ] {
            assert!(apart(wrong, f64::MAX).is_err(), "{wrong:?}");
        }
    }
}
