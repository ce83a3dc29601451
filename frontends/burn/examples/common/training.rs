//! A model trained on the simulator and, from the same weights and with the same batches, by Burn's own CPU backend.

use super::Error;
use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use burn_thisgpu::ThisGpu;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How far the losses may be apart, as a part of the reference's.
const TOLERANCE: f32 = 0.01;

/// What the command line says.
pub struct Options {
    /// The device.
    pub device: ThisGpu,
    /// Steps of training.
    pub steps: usize,
    /// Where the picture goes.
    pub picture: PathBuf,
}

impl Options {
    /// Of the command line: `--check`, `--steps N`, `--out FILE`.
    ///
    /// # Errors
    /// When it says something else.
    pub fn parse(steps: usize, picture: &str) -> Result<Options, Error> {
        let default = ThisGpu::default();
        let mut options = Options {
            device: default,
            steps,
            picture: picture.into(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || {
                let value = arguments.next();
                value.ok_or_else(|| format!("{argument} is followed by a value"))
            };
            match argument.as_str() {
                "--check" => options.device = default.checked(),
                "--steps" => {
                    let steps = value()?;
                    let parsed = steps.parse().ok().filter(|&steps| steps > 0);
                    options.steps =
                        parsed.ok_or_else(|| format!("--steps {steps}: a number, 1 or more"))?;
                }
                "--out" => options.picture = value()?.into(),
                _ => {
                    return Err(
                        format!("{argument}: there are --check, --steps N, --out FILE").into(),
                    );
                }
            }
        }
        Ok(options)
    }
}

/// What is trained.
pub trait Task {
    /// The model.
    type Model: Module;
    /// What a step learns from, on the host.
    type Batch;

    /// The model before the first step.
    fn model(&self, device: &Device) -> Self::Model;

    /// What the next step learns from.
    fn batch(&mut self) -> Self::Batch;

    /// How wrong the model is.
    fn loss(&self, model: &Self::Model, batch: &Self::Batch, device: &Device) -> Tensor<1>;
}

/// A model after its training.
pub struct Trained<M> {
    /// The model, on the simulator.
    pub model: M,
    /// Where it is.
    pub device: Device,
    /// The loss at each step, on the simulator and by the reference.
    pub losses: Vec<[f32; 2]>,
    /// How long each step took on the simulator.
    times: Vec<Duration>,
}

/// A model in training.
struct Side<M> {
    model: M,
    optimizer: ModuleOptimizer,
    device: Device,
}

impl<M: Module> Side<M> {
    fn new(model: M, optimizer: ModuleOptimizer, device: Device) -> Side<M> {
        Side {
            model: model.fork(&device),
            optimizer,
            device,
        }
    }

    fn step<T: Task<Model = M>>(
        &mut self,
        task: &T,
        batch: &T::Batch,
        rate: f64,
    ) -> Result<f32, Error> {
        let loss = task.loss(&self.model, batch, &self.device);
        let gradients = GradientsParams::from_grads(loss.backward(), &self.model);
        self.model = self.optimizer.step(rate, self.model.clone(), gradients);
        let loss = loss.try_into_data()?.try_to_vec::<f32>()?;
        Ok(loss[0])
    }
}

/// Trains a model for as many steps as the options say, and tells on the terminal how far it is.
///
/// # Errors
/// When the device finds a mistake, or the losses of a step are further apart than a hundredth.
pub fn train<T: Task>(
    task: &mut T,
    options: &Options,
    optimizer: impl Fn() -> ModuleOptimizer,
    rate: f64,
) -> Result<Trained<T::Model>, Error> {
    let host = Device::flex().autodiff();
    host.seed(1);
    let model = task.model(&host);
    let mut reference = Side::new(model.clone(), optimizer(), host);
    let mut simulated = Side::new(model, optimizer(), options.device.device().autodiff());
    let bar = ProgressBar::new(options.steps as u64);
    bar.set_style(ProgressStyle::with_template(
        "{bar:40} step {pos} of {len}, {msg}, {elapsed}",
    )?);
    let (mut losses, mut times) = (Vec::new(), Vec::new());
    for step in 0..options.steps {
        let batch = task.batch();
        let expected = reference.step(task, &batch, rate)?;
        let start = Instant::now();
        let found = simulated.step(task, &batch, rate)?;
        times.push(start.elapsed());
        losses.push([found, expected]);
        bar.set_message(format!(
            "loss {found:.4} here, {expected:.4} by the reference"
        ));
        bar.inc(1);
        let apart = (found - expected).abs();
        // Written so that a loss that is no number is apart from all.
        if !(apart <= TOLERANCE * expected.abs()) {
            return Err(
                format!("step {step}: the loss is {found}, the reference's {expected}").into(),
            );
        }
    }
    bar.finish();
    Ok(Trained {
        model: simulated.model,
        device: simulated.device,
        losses,
        times,
    })
}

impl<M> Trained<M> {
    /// One line: the first and the last losses, and what a step takes when its kernels are there.
    pub fn summary(&self) -> String {
        let (Some([first, _]), Some([last, reference])) = (self.losses.first(), self.losses.last())
        else {
            return "no steps".to_string();
        };
        let mut times = self.times.clone();
        times.sort_unstable();
        let steps = times.len();
        let time = times[steps / 2].as_secs_f64() * 1e3;
        format!(
            "{steps} steps of {time:.1} ms: loss {first:.4} to {last:.4}, by the reference to {reference:.4}"
        )
    }
}
