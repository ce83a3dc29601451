//! Packed halves: two f16 in a word, one instruction for both lanes; CLIF's vectors and an intrinsic with a modifier.

use cranelift_thisgpu::{Compiler, Device, Grid, Options, SimConfig};
use half::f16;
use std::error::Error;

/// `layer(w, b, x)`: x = max(w * x + b, 0) on pairs; `w` and `b` are pairs too.
const KERNEL: &str = "
; kernel
function %layer(f16x2, f16x2, i64) {
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_hfma2_f16x2_relu(f16x2, f16x2, f16x2) -> f16x2
block0(v0: f16x2, v1: f16x2, v2: i64):
    v3 = call fn0()
    v4 = uextend.i64 v3
    v5 = iconst.i32 2
    v6 = ishl v4, v5
    v7 = iadd v2, v6
    v8 = load.f16x2 aligned v7
    v9 = call fn1(v0, v8, v1)
    store aligned v9, v7
    return
}
";

/// Two halves as the word that a launch passes: the first in the low half.
fn packed(low: f16, high: f16) -> u32 {
    u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
}

/// Runs a layer and compares every bit with the host.
pub fn main() -> Result<(), Box<dyn Error>> {
    let code = Compiler::new(Options::default()).compile_clif(KERNEL)?;
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code)?;

    let [w, b] = [[1.5, -2.0], [-10.0, 4.0]].map(|pair| pair.map(f16::from_f64));
    let xs: Vec<f16> = (0..256)
        .map(|i| f16::from_f64(f64::from(i) / 8.0 - 9.0))
        .collect();
    let x = device.upload(&xs)?;
    let kernel = module.kernel("layer")?;
    let launch = kernel.launch(Grid::new([1, 1, 1], [128, 1, 1]));
    launch
        .arg(packed(w[0], w[1]))
        .arg(packed(b[0], b[1]))
        .arg(&x)
        .run()?;

    let results: Vec<f16> = device.download(&x)?;
    for (i, (result, x)) in results.iter().zip(&xs).enumerate() {
        // A product of halves and its sum with a third are exact in f64, so there is one rounding.
        let sum = f16::from_f64(w[i % 2].to_f64() * x.to_f64() + b[i % 2].to_f64());
        let expected = if sum < f16::ZERO { f16::ZERO } else { sum };
        assert_eq!(result.to_bits(), expected.to_bits(), "element {i}");
    }
    println!("{} halves agree with the host", results.len());
    Ok(())
}
