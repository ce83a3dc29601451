//! Pictures of squares of colour, written as PNG.

use super::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// The simulator's curve.
const FOUND: Colour = [200, 60, 40];
/// The reference's.
const EXPECTED: Colour = [40, 90, 200];

/// A picture.
pub struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Colour>,
}

impl Picture {
    /// A white one.
    pub fn new(width: usize, height: usize) -> Picture {
        let pixels = vec![[255; 3]; width * height];
        Picture {
            width,
            height,
            pixels,
        }
    }

    /// Fills a rectangle, as far as it is inside.
    pub fn fill(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], colour: Colour) {
        for y in y..(y + height).min(self.height) {
            for x in x..(x + width).min(self.width) {
                self.pixels[y * self.width + x] = colour;
            }
        }
    }

    /// Draws the losses of both sides in a rectangle: one column a step, the largest at the top.
    pub fn losses(&mut self, [x, y]: [usize; 2], [width, height]: [usize; 2], losses: &[[f32; 2]]) {
        let most = losses
            .iter()
            .flatten()
            .copied()
            .fold(f32::MIN_POSITIVE, f32::max);
        let last = losses.len().saturating_sub(1).max(1);
        for (step, pair) in losses.iter().enumerate() {
            let column = x + step * (width - 1) / last;
            let row = |loss: f32| y + ((1.0 - loss / most) * (height - 3) as f32) as usize;
            // The reference's curve is the broader, so that both are seen where they are one.
            self.fill([column, row(pair[1])], [3, 3], EXPECTED);
            self.fill([column, row(pair[0]) + 1], [1, 1], FOUND);
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut encoder =
            png::Encoder::new(BufWriter::new(file), self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(self.pixels.as_flattened())?;
        writer.finish()?;
        println!("the picture is {}", path.display());
        Ok(())
    }
}
