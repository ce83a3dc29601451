//! What a case does on a device: numbers go in, tensors and gradients come out.

use crate::cases::Case;
use crate::compare::Float;
use burn::tensor::{Bool, DType, Device, Gradients, Int, Tensor, TensorData};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What came of a case: names of tensors, and what is in them.
pub type Outcome = Vec<(String, TensorData)>;

/// What the names of gradients begin with.
const GRADIENT: &str = "gradient";

/// Reads the gradient of an input.
type Gradient = Box<dyn Fn(&Gradients) -> Option<Result<TensorData, String>>>;

/// A case on a device.
pub struct Run {
    /// The device.
    pub device: Device,
    /// The number that numbers are drawn by.
    pub seed: u64,
    /// The type whose values inputs have.
    float: Float,
    /// The type that they are computed in.
    computed: DType,
    chance: StdRng,
    /// Whether inputs are a little apart from what they are.
    moved: Option<StdRng>,
    inputs: Vec<Gradient>,
    total: Option<Tensor<1>>,
    outcome: Outcome,
}

impl Run {
    /// Runs a case. Inputs have values of the type `float` and are of the type `computed`; with a number for `moved`
    /// each is up to two steps of its type larger or smaller, as the number has it.
    ///
    /// # Errors
    /// What Burn or the device says.
    pub fn of(
        case: &Case,
        device: Device,
        float: Float,
        computed: DType,
        seed: u64,
        moved: Option<u64>,
    ) -> Result<Outcome, String> {
        let mut run = Run {
            device: device.autodiff(),
            seed,
            float,
            computed,
            chance: StdRng::seed_from_u64(seed),
            moved: moved.map(StdRng::seed_from_u64),
            inputs: Vec::new(),
            total: None,
            outcome: Vec::new(),
        };
        let whole = || -> Result<Outcome, String> {
            (case.run)(&mut run)?;
            run.gradients()?;
            Ok(run.outcome)
        };
        catch_unwind(AssertUnwindSafe(whole)).unwrap_or_else(|panic| Err(message(panic.as_ref())))
    }

    fn gradients(&mut self) -> Result<(), String> {
        let Some(total) = self.total.take() else {
            return Ok(());
        };
        if !total.is_require_grad() && !total.is_tracked() {
            return Ok(());
        }
        let gradients = total.backward();
        for (index, gradient) in self.inputs.iter().enumerate() {
            if let Some(data) = gradient(&gradients) {
                self.outcome.push((format!("{GRADIENT} {index}"), data?));
            }
        }
        Ok(())
    }

    /// Floats of these values, after rounding, with a gradient.
    fn input<const D: usize>(&mut self, values: Vec<f64>, shape: [usize; D]) -> Tensor<D> {
        let tensor = self.constant_of(values, shape).require_grad();
        let input = tensor.clone();
        self.inputs.push(Box::new(move |gradients| {
            Some(read(input.grad(gradients)?))
        }));
        tensor
    }

    /// Floats of these values, after rounding, without a gradient.
    pub fn constant_of<const D: usize>(
        &mut self,
        values: Vec<f64>,
        shape: [usize; D],
    ) -> Tensor<D> {
        let data = TensorData::new(values, shape);
        let mut data = data.convert_dtype(self.float.dtype).convert::<f64>();
        if let Some(chance) = &mut self.moved {
            let values = data.as_mut_slice::<f64>().expect("they are of this type");
            for value in values {
                // Any part of two steps, so that what terms do to a sum never adds up to nothing in all of them.
                *value += self.float.step * *value * chance.random_range(-2.0..2.0);
            }
        }
        let data = data.convert_dtype(self.computed);
        Tensor::from_data(data, (&self.device, self.computed))
    }

    fn numbers(&mut self, count: usize, range: Range<f64>) -> Vec<f64> {
        (0..count)
            .map(|_| self.chance.random_range(range.clone()))
            .collect()
    }

    /// Floats in a range, with a gradient.
    pub fn floats<const D: usize>(&mut self, shape: [usize; D], range: Range<f64>) -> Tensor<D> {
        let values = self.numbers(shape.iter().product(), range);
        self.input(values, shape)
    }

    /// Floats in a range, without a gradient.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], range: Range<f64>) -> Tensor<D> {
        let values = self.numbers(shape.iter().product(), range);
        self.constant_of(values, shape)
    }

    /// Eighths of whole numbers in a range, without a gradient: sums and products of a few are the same in every type
    /// of float.
    pub fn eighths<const D: usize>(&mut self, shape: [usize; D], range: Range<i32>) -> Tensor<D> {
        let values = (0..shape.iter().product())
            .map(|_| self.chance.random_range(range.clone()) as f64 / 8.0)
            .collect();
        self.constant_of(values, shape)
    }

    /// Whole numbers in a range, with a gradient: sums and products are the same in every type of float, up to 256.
    pub fn whole<const D: usize>(&mut self, shape: [usize; D], range: Range<i32>) -> Tensor<D> {
        let values = (0..shape.iter().product())
            .map(|_| self.chance.random_range(range.clone()) as f64)
            .collect();
        self.input(values, shape)
    }

    /// Whole numbers around 0, each once, in some order, with a gradient: as every type of float has them, up to 256.
    pub fn distinct<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D> {
        let count: usize = shape.iter().product();
        assert!(count <= 256, "bf16 has not so many");
        let mut values: Vec<_> = (0..count).map(|i| i as f64 - (count / 2) as f64).collect();
        values.shuffle(&mut self.chance);
        self.input(values, shape)
    }

    /// Small whole numbers but 0, without a gradient.
    fn weights<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D> {
        let values = (0..shape.iter().product())
            .map(|_| [-2.0, -1.0, 1.0, 2.0][self.chance.random_range(0..4)])
            .collect();
        self.constant_of(values, shape)
    }

    /// Integers in a range.
    pub fn integers<const D: usize>(
        &mut self,
        shape: [usize; D],
        range: Range<i32>,
    ) -> Tensor<D, Int> {
        let count: usize = shape.iter().product();
        let values: Vec<i32> = (0..count)
            .map(|_| self.chance.random_range(range.clone()))
            .collect();
        Tensor::from_data(TensorData::new(values, shape), (&self.device, DType::I32))
    }

    /// The numbers below another, each once, in some order.
    pub fn order(&mut self, count: usize) -> Tensor<1, Int> {
        let mut values: Vec<_> = (0..count as i32).collect();
        values.shuffle(&mut self.chance);
        Tensor::from_data(TensorData::new(values, [count]), (&self.device, DType::I32))
    }

    /// True and false.
    pub fn booleans<const D: usize>(&mut self, shape: [usize; D]) -> Tensor<D, Bool> {
        let count: usize = shape.iter().product();
        let values: Vec<bool> = (0..count).map(|_| self.chance.random()).collect();
        Tensor::from_data(TensorData::new(values, shape), &self.device)
    }

    /// A result, by whose sum, each element with a weight of its own, gradients are. Weights are small whole numbers.
    ///
    /// # Errors
    /// What the device says.
    pub fn float<const D: usize>(&mut self, tensor: Tensor<D>) -> Result<(), String> {
        let data = read(tensor.clone())?;
        let weights = self.weights(tensor.dims());
        let part = (tensor * weights).sum();
        self.total = Some(match self.total.take() {
            Some(total) => total + part,
            None => part,
        });
        self.give(data);
        Ok(())
    }

    /// A result without a gradient.
    ///
    /// # Errors
    /// What the device says.
    pub fn plain<const D: usize>(&mut self, tensor: Tensor<D>) -> Result<(), String> {
        let data = read(tensor)?;
        self.give(data);
        Ok(())
    }

    /// A result of integers.
    ///
    /// # Errors
    /// What the device says.
    pub fn int<const D: usize>(&mut self, tensor: Tensor<D, Int>) -> Result<(), String> {
        let data = tensor.try_into_data().map_err(|error| error.to_string())?;
        data.as_bytes();
        self.give(data.convert::<i64>());
        Ok(())
    }

    /// A result of booleans.
    ///
    /// # Errors
    /// What the device says.
    pub fn bool<const D: usize>(&mut self, tensor: Tensor<D, Bool>) -> Result<(), String> {
        let data = tensor.try_into_data().map_err(|error| error.to_string())?;
        data.as_bytes();
        self.give(data.convert::<i64>());
        Ok(())
    }

    fn give(&mut self, data: TensorData) {
        self.outcome
            .push((format!("result {}", self.outcome.len()), data));
    }
}

/// What is in a tensor now: Burn 0.22.1 copies it when it is looked at first, and what is computed meanwhile may be
/// written to the same memory.
fn read<const D: usize>(tensor: Tensor<D>) -> Result<TensorData, String> {
    let data = tensor.try_into_data().map_err(|error| error.to_string())?;
    data.as_bytes();
    Ok(data.convert::<f64>())
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
    text.unwrap_or_else(|| "a panic without a message".to_string())
}
