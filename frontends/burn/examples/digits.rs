//! Digits that the example draws itself, crooked and with spots, read by a small convolutional network. The picture
//! shows digits that it has never seen, in a frame that is green where it reads them right.
//!
//! `cargo run --example digits -- [--check] [--steps N] [--out FILE]`

mod common;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::optim::AdamConfig;
use burn::tensor::activation::relu;
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::Error;
use common::chance::Chance;
use common::picture::Picture;
use common::training::{Options, Task, train};

/// Digits of a batch.
const BATCH: usize = 32;
/// Pixels along a side of a digit.
const SIDE: usize = 12;
/// Digits along a side of the picture.
const SHOWN: usize = 10;
/// Pixels of the picture along a side of a digit's pixel.
const POINT: usize = 3;

/// The strokes of a digit, as on a display of seven segments: each bit is one of [`SEGMENTS`].
const DIGITS: [u8; 10] = [0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f];
/// From where to where a stroke goes, in a field 4 wide and 8 high.
const SEGMENTS: [[[f32; 2]; 2]; 7] = [
    [[0.0, 0.0], [4.0, 0.0]],
    [[0.0, 0.0], [0.0, 4.0]],
    [[4.0, 0.0], [4.0, 4.0]],
    [[0.0, 4.0], [4.0, 4.0]],
    [[0.0, 4.0], [0.0, 8.0]],
    [[4.0, 4.0], [4.0, 8.0]],
    [[0.0, 8.0], [4.0, 8.0]],
];

/// Two convolutions, each with a pool, and a layer that decides.
#[derive(Module, Debug)]
struct Net {
    first: Conv2d,
    second: Conv2d,
    pool: MaxPool2d,
    last: Linear,
}

impl Net {
    fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let maps = self.pool.forward(relu(self.first.forward(images)));
        let maps = self.pool.forward(relu(self.second.forward(maps)));
        self.last.forward(maps.flatten(1, 3))
    }
}

struct Digits(Chance);

impl Digits {
    /// A digit, and its pixels from 0 to 1.
    fn draw(&mut self) -> (i32, Vec<f32>) {
        let digit = self.0.number(0..DIGITS.len());
        let (slant, size) = (self.0.number(-0.25..0.25), self.0.number(0.8..1.1));
        let place = [self.0.number(2.5..4.5), self.0.number(1.0..2.5)];
        let mut pixels = vec![0.0; SIDE * SIDE];
        for pixel in &mut pixels {
            *pixel = self.0.number(0.0..0.3);
        }
        let strokes = SEGMENTS.iter().enumerate();
        for (_, [from, to]) in strokes.filter(|(bit, _)| DIGITS[digit] >> bit & 1 != 0) {
            for part in 0..=16 {
                let along = part as f32 / 16.0;
                let [x, y] =
                    [0, 1].map(|axis| size * (from[axis] + along * (to[axis] - from[axis])));
                let column = (place[0] + x - slant * (y - 4.0)).round() as usize;
                let row = (place[1] + y).round() as usize;
                pixels[row.min(SIDE - 1) * SIDE + column.min(SIDE - 1)] = 1.0;
            }
        }
        (digit as i32, pixels)
    }

    fn draw_many(&mut self, count: usize) -> (Vec<i32>, Vec<f32>) {
        let drawn: Vec<_> = (0..count).map(|_| self.draw()).collect();
        let pixels = drawn.iter().flat_map(|(_, pixels)| pixels.iter().copied());
        (
            drawn.iter().map(|&(digit, _)| digit).collect(),
            pixels.collect(),
        )
    }
}

fn images(pixels: &[f32], device: &Device) -> Tensor<4> {
    let shape = [pixels.len() / (SIDE * SIDE), 1, SIDE, SIDE];
    Tensor::from_data(TensorData::new(pixels.to_vec(), shape), device)
}

impl Task for Digits {
    type Model = Net;
    type Batch = (Vec<i32>, Vec<f32>);

    fn model(&self, device: &Device) -> Net {
        let convolution = |channels| {
            let config = Conv2dConfig::new(channels, [3, 3]);
            config.with_padding(PaddingConfig2d::Same).init(device)
        };
        Net {
            first: convolution([1, 8]),
            second: convolution([8, 16]),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            last: LinearConfig::new(16 * (SIDE / 4) * (SIDE / 4), DIGITS.len()).init(device),
        }
    }

    fn batch(&mut self) -> Self::Batch {
        self.draw_many(BATCH)
    }

    fn loss(&self, model: &Net, (digits, pixels): &Self::Batch, device: &Device) -> Tensor<1> {
        let digits = Tensor::<1, Int>::from_data(TensorData::new(digits.clone(), [BATCH]), device);
        let loss = CrossEntropyLossConfig::new().init(device);
        loss.forward(model.forward(images(pixels, device)), digits)
    }
}

fn main() -> Result<(), Error> {
    let options = Options::parse(80, "digits.png")?;
    let mut task = Digits(Chance::new(11));
    let trained = train(&mut task, &options, || AdamConfig::new().init(), 0.01)?;
    println!("{}", trained.summary());

    let (digits, pixels) = task.draw_many(SHOWN * SHOWN);
    let read = trained
        .model
        .forward(images(&pixels, &trained.device))
        .argmax(1);
    let read = read.try_into_data()?.convert::<i32>().try_to_vec::<i32>()?;
    let frame = (SIDE + 2) * POINT;
    let mut picture = Picture::new(SHOWN * frame, SHOWN * frame + 120);
    let mut right = 0;
    for (index, image) in pixels.chunks(SIDE * SIDE).enumerate() {
        let at = [index % SHOWN * frame, index / SHOWN * frame];
        let is_right = read[index] == digits[index];
        right += usize::from(is_right);
        let colour = if is_right {
            [60, 170, 80]
        } else {
            [220, 50, 40]
        };
        picture.fill(at, [frame - 1; 2], colour);
        for (pixel, value) in image.iter().enumerate() {
            let place = [
                at[0] + (pixel % SIDE + 1) * POINT,
                at[1] + (pixel / SIDE + 1) * POINT,
            ];
            picture.fill(place, [POINT; 2], [255 - (value * 255.0) as u8; 3]);
        }
    }
    println!("{right} of {} new digits are read right", SHOWN * SHOWN);
    picture.losses(
        [0, SHOWN * frame + 10],
        [SHOWN * frame, 100],
        &trained.losses,
    );
    picture.save(&options.picture)
}
