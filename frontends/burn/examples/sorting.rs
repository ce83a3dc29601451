//! A block of a transformer learns to sort: numbers go in, and at each place comes out which of them belongs there. The
//! picture shows where its heads look for a row of numbers.
//!
//! `cargo run --example sorting -- [--check] [--steps N] [--out FILE]`

mod common;

use burn::module::Module;
use burn::nn::attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Embedding, EmbeddingConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::optim::AdamConfig;
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::Error;
use common::chance::Chance;
use common::picture::Picture;
use common::training::{Options, Task, train};

/// Rows of a batch.
const BATCH: usize = 32;
/// Numbers of a row.
const LENGTH: usize = 8;
/// Numbers that there are, from 0.
const NUMBERS: usize = 12;
/// Numbers that stand for one inside.
const WIDTH: usize = 32;
/// Heads of the attention.
const HEADS: usize = 4;
/// Pixels of the picture along a side of a weight.
const POINT: usize = 12;

/// One block: attention, then two layers, each beside a way past them.
#[derive(Module, Debug)]
struct Sorter {
    numbers: Embedding,
    places: Embedding,
    before_attention: LayerNorm,
    attention: MultiHeadAttention,
    before_layers: LayerNorm,
    wide: Linear,
    narrow: Linear,
    out: Linear,
}

impl Sorter {
    /// Of rows of numbers how much each number belongs to each place, and the weights of the heads.
    fn forward(&self, rows: Tensor<2, Int>) -> (Tensor<3>, Tensor<4>) {
        let device = rows.device();
        let places = Tensor::<1, Int>::arange(0..LENGTH as i64, &device).unsqueeze::<2>();
        let known = self.numbers.forward(rows) + self.places.forward(places);
        let normal = self.before_attention.forward(known.clone());
        let seen = self.attention.forward(MhaInput::self_attn(normal));
        let known = known + seen.context;
        let normal = self.before_layers.forward(known.clone());
        let known = known + self.narrow.forward(gelu(self.wide.forward(normal)));
        (self.out.forward(known), seen.weights)
    }
}

struct Sorting(Chance);

impl Task for Sorting {
    type Model = Sorter;
    type Batch = Vec<Vec<i32>>;

    fn model(&self, device: &Device) -> Sorter {
        Sorter {
            numbers: EmbeddingConfig::new(NUMBERS, WIDTH).init(device),
            places: EmbeddingConfig::new(LENGTH, WIDTH).init(device),
            before_attention: LayerNormConfig::new(WIDTH).init(device),
            attention: MultiHeadAttentionConfig::new(WIDTH, HEADS)
                .with_dropout(0.0)
                .init(device),
            before_layers: LayerNormConfig::new(WIDTH).init(device),
            wide: LinearConfig::new(WIDTH, 2 * WIDTH).init(device),
            narrow: LinearConfig::new(2 * WIDTH, WIDTH).init(device),
            out: LinearConfig::new(WIDTH, NUMBERS).init(device),
        }
    }

    fn batch(&mut self) -> Self::Batch {
        let row = |chance: &mut Chance| {
            (0..LENGTH)
                .map(|_| chance.number(0..NUMBERS) as i32)
                .collect()
        };
        (0..BATCH).map(|_| row(&mut self.0)).collect()
    }

    fn loss(&self, model: &Sorter, rows: &Self::Batch, device: &Device) -> Tensor<1> {
        let sorted: Vec<_> = rows.iter().flat_map(|row| sorted(row)).collect();
        let targets = TensorData::new(sorted, [BATCH * LENGTH]);
        let targets = Tensor::<1, Int>::from_data(targets, device);
        let (scores, _) = model.forward(tensor(rows, device));
        let loss = CrossEntropyLossConfig::new().init(device);
        loss.forward(scores.reshape([BATCH * LENGTH, NUMBERS]), targets)
    }
}

fn sorted(row: &[i32]) -> Vec<i32> {
    let mut row = row.to_vec();
    row.sort_unstable();
    row
}

fn tensor(rows: &[Vec<i32>], device: &Device) -> Tensor<2, Int> {
    let numbers = TensorData::new(rows.concat(), [rows.len(), LENGTH]);
    Tensor::from_data(numbers, device)
}

fn main() -> Result<(), Error> {
    let options = Options::parse(150, "sorting.png")?;
    let mut task = Sorting(Chance::new(3));
    let trained = train(&mut task, &options, || AdamConfig::new().init(), 0.01)?;
    println!("{}", trained.summary());

    let rows = task.batch();
    let (scores, weights) = trained.model.forward(tensor(&rows, &trained.device));
    let found = scores.argmax(2).try_into_data()?;
    let found = found.convert::<i32>().try_to_vec::<i32>()?;
    let expected: Vec<_> = rows.iter().flat_map(|row| sorted(row)).collect();
    let right = found.iter().zip(&expected).filter(|(a, b)| a == b).count();
    println!("{right} of {} places have the right number", expected.len());
    println!("{:?} becomes {:?}", rows[0], &found[..LENGTH]);

    let weights = weights.try_into_data()?.try_to_vec::<f32>()?;
    let head = LENGTH * POINT + 10;
    let mut picture = Picture::new(HEADS * head, head + 120);
    for (index, weight) in weights[..HEADS * LENGTH * LENGTH].iter().enumerate() {
        let (column, row) = (index % LENGTH, index / LENGTH % LENGTH);
        let at = [
            index / (LENGTH * LENGTH) * head + column * POINT,
            row * POINT,
        ];
        picture.fill(at, [POINT - 1; 2], [255 - (weight * 255.0) as u8; 3]);
    }
    picture.losses([0, head + 10], [HEADS * head, 100], &trained.losses);
    picture.save(&options.picture)
}
