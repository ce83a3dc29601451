//! Two arms of a spiral told apart by three layers: what the network has learnt is the background of the picture.
//!
//! `cargo run --example spiral -- [--check] [--steps N] [--out FILE]`

mod common;

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::tensor::activation::{relu, softmax};
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::Error;
use common::chance::Chance;
use common::picture::Picture;
use common::training::{Options, Task, train};
use std::f32::consts::TAU;

/// Points of a batch.
const BATCH: usize = 64;
/// Numbers in a hidden layer.
const HIDDEN: usize = 64;
/// Points along a side of the picture's background.
const GRID: usize = 60;
/// Pixels of such a point.
const POINT: usize = 6;

/// From a point to how much it belongs to each arm.
#[derive(Module, Debug)]
struct Mlp {
    first: Linear,
    second: Linear,
    last: Linear,
}

impl Mlp {
    fn forward(&self, points: Tensor<2>) -> Tensor<2> {
        let hidden = relu(self.first.forward(points));
        let hidden = relu(self.second.forward(hidden));
        self.last.forward(hidden)
    }
}

struct Spiral(Chance);

impl Spiral {
    /// A point of the plane, both coordinates from −1 to 1, and its arm.
    fn point(&mut self) -> ([f32; 2], i32) {
        let arm = self.0.number(0..2usize);
        let along = self.0.number(0.05..1.0);
        let angle = TAU * (1.5 * along + 0.5 * arm as f32) + self.0.number(-0.2..0.2);
        ([along * angle.cos(), along * angle.sin()], arm as i32)
    }
}

impl Task for Spiral {
    type Model = Mlp;
    type Batch = (Vec<f32>, Vec<i32>);

    fn model(&self, device: &Device) -> Mlp {
        Mlp {
            first: LinearConfig::new(2, HIDDEN).init(device),
            second: LinearConfig::new(HIDDEN, HIDDEN).init(device),
            last: LinearConfig::new(HIDDEN, 2).init(device),
        }
    }

    fn batch(&mut self) -> Self::Batch {
        let points: Vec<_> = (0..BATCH).map(|_| self.point()).collect();
        let places = points.iter().flat_map(|(place, _)| *place);
        (
            places.collect(),
            points.iter().map(|&(_, arm)| arm).collect(),
        )
    }

    fn loss(&self, model: &Mlp, (points, arms): &Self::Batch, device: &Device) -> Tensor<1> {
        let points = Tensor::from_data(TensorData::new(points.clone(), [BATCH, 2]), device);
        let arms = Tensor::<1, Int>::from_data(TensorData::new(arms.clone(), [BATCH]), device);
        let loss = CrossEntropyLossConfig::new().init(device);
        loss.forward(model.forward(points), arms)
    }
}

fn main() -> Result<(), Error> {
    let options = Options::parse(300, "spiral.png")?;
    let mut task = Spiral(Chance::new(7));
    let trained = train(&mut task, &options, || AdamConfig::new().init(), 0.01)?;
    println!("{}", trained.summary());

    let mut picture = Picture::new(GRID * POINT, GRID * POINT + 120);
    let coordinate = |index: usize| 2.2 * (index as f32 + 0.5) / GRID as f32 - 1.1;
    let places =
        (0..GRID * GRID).flat_map(|index| [coordinate(index % GRID), coordinate(index / GRID)]);
    let places = TensorData::new(places.collect::<Vec<_>>(), [GRID * GRID, 2]);
    let places = Tensor::from_data(places, &trained.device);
    let shares = softmax(trained.model.forward(places), 1);
    let shares = shares.try_into_data()?.try_to_vec::<f32>()?;
    for (index, share) in shares.chunks(2).enumerate() {
        let place = [index % GRID * POINT, index / GRID * POINT];
        picture.fill(place, [POINT; 2], mixed(share[1]));
    }
    for _ in 0..400 {
        let (place, arm) = task.point();
        let at = place.map(|x| ((x + 1.1) / 2.2 * (GRID * POINT) as f32) as usize);
        picture.fill(at, [4; 2], [[20, 40, 120], [120, 40, 20]][arm as usize]);
    }
    picture.losses([0, GRID * POINT + 10], [GRID * POINT, 100], &trained.losses);
    picture.save(&options.picture)
}

/// From blue to red.
fn mixed(share: f32) -> [u8; 3] {
    let share = share.clamp(0.0, 1.0);
    [150.0 + 100.0 * share, 180.0, 250.0 - 100.0 * share].map(|part| part as u8)
}
