//! Convolutions, pools, and what else layers are made of.

use super::cases;
use crate::run::Run;
use burn::tensor::module;
use burn::tensor::ops::{
    AttentionModuleOptions, AvgPoolOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions,
    InterpolateMode, InterpolateOptions, MaxPoolOptions, UnfoldOptions,
};

/// A convolution of images: channels in and out, groups, and how it goes over the image.
fn convolved(
    run: &mut Run,
    [input, output, groups]: [usize; 3],
    options: ConvOptions<2>,
) -> Result<(), String> {
    let x = run.whole([2, input, 9, 8], -2..3);
    let weight = run.whole([output, input / groups, 3, 3], -2..3);
    let bias = run.whole([output], -2..3);
    run.float(module::conv2d(x, weight, Some(bias), options))
}

/// An image made larger or smaller.
fn resized(run: &mut Run, mode: InterpolateMode) -> Result<(), String> {
    let gradient = matches!(mode, InterpolateMode::Nearest);
    for size in [[11, 13], [4, 3]] {
        let options = InterpolateOptions::new(mode.clone()).with_output_size(size);
        if gradient {
            let x = run.floats([2, 3, 7, 6], -1.0..1.0);
            run.float(module::interpolate(x, options))?;
        } else {
            let x = run.constant([2, 3, 7, 6], -1.0..1.0);
            run.plain(module::interpolate(x, options))?;
        }
    }
    Ok(())
}

cases! {
    linear(run, 0.0, 0.0) {
        let x = run.whole([3, 5, 20], -2..3);
        let (weight, bias) = (run.whole([20, 9], -2..3), run.whole([9], -2..3));
        run.float(module::linear(x, weight, Some(bias)))
    }
    conv1d(run, 0.0, 0.0) {
        let x = run.whole([2, 4, 20], -2..3);
        let weight = run.whole([6, 4, 3], -2..3);
        let bias = run.whole([6], -2..3);
        run.float(module::conv1d(x, weight, Some(bias), ConvOptions::new([2], [1], [1], 1)))
    }
    conv2d(run, 0.0, 0.0) { convolved(run, [3, 8, 1], ConvOptions::new([1, 1], [1, 1], [1, 1], 1)) }
    conv2d_with_steps(run, 0.0, 0.0) { convolved(run, [4, 6, 1], ConvOptions::new([2, 1], [0, 2], [1, 2], 1)) }
    conv2d_in_groups(run, 0.0, 0.0) { convolved(run, [4, 8, 2], ConvOptions::new([1, 1], [1, 1], [1, 1], 2)) }
    conv2d_by_channel(run, 0.0, 0.0) { convolved(run, [8, 8, 8], ConvOptions::new([1, 1], [1, 1], [1, 1], 8)) }
    conv3d(run, 0.0, 0.0) {
        let x = run.whole([1, 3, 5, 6, 4], -2..3);
        let weight = run.whole([4, 3, 2, 3, 2], -2..3);
        run.float(module::conv3d(x, weight, None, ConvOptions::new([1; 3], [1; 3], [1; 3], 1)))
    }
    conv_transpose1d(run, 0.0, 0.0) {
        let x = run.whole([2, 4, 9], -2..3);
        let weight = run.whole([4, 3, 3], -2..3);
        let options = ConvTransposeOptions::new([2], [1], [1], [1], 1);
        run.float(module::conv_transpose1d(x, weight, None, options))
    }
    conv_transpose2d(run, 0.0, 0.0) {
        let x = run.whole([2, 4, 5, 6], -2..3);
        let weight = run.whole([4, 3, 3, 2], -2..3);
        let bias = run.whole([3], -2..3);
        let options = ConvTransposeOptions::new([2, 1], [1, 0], [1, 0], [1, 1], 1);
        run.float(module::conv_transpose2d(x, weight, Some(bias), options))
    }
    conv_transpose3d(run, 0.0, 0.0) {
        let x = run.whole([1, 2, 3, 4, 3], -2..3);
        let weight = run.whole([2, 3, 2, 2, 2], -2..3);
        let options = ConvTransposeOptions::new([2; 3], [0; 3], [0; 3], [1; 3], 1);
        run.float(module::conv_transpose3d(x, weight, None, options))
    }
    deform_conv2d(run, 0.0, 3.0) {
        let x = run.whole([1, 4, 6, 6], -2..3);
        // The gradient of offsets is wrong in burn-cubecl 0.22.1 but for the kernel's first place: the index of a
        // column leaves the place out.
        // Places between elements that every type has.
        let offset = run.eighths([1, 2 * 9, 6, 6], -3..4);
        let weight = run.whole([3, 4, 3, 3], -2..3);
        let options = DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, 1);
        run.float(module::deform_conv2d(x, offset, weight, None, None, options))
    }
    unfold4d(run, 0.0, 0.0) {
        let x = run.floats([2, 3, 7, 6], -1.0..1.0);
        run.float(module::unfold4d(x, [3, 2], UnfoldOptions::new([2, 1], [1, 0], [1, 1])))
    }
    max_pool1d(run, 0.0, 0.0) {
        let x = run.distinct([2, 5, 20]);
        run.float(module::max_pool1d(x, MaxPoolOptions::new([3])))
    }
    max_pool2d(run, 0.0, 0.0) {
        let x = run.distinct([2, 2, 8, 7]);
        let options = MaxPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 1]);
        run.float(module::max_pool2d(x.clone(), options.clone()))?;
        let (values, places) = module::max_pool2d_with_indices(x, options);
        run.float(values)?;
        run.int(places)
    }
    avg_pool1d(run, 1.0, 1.0) {
        let x = run.whole([2, 5, 20], -2..3);
        run.float(module::avg_pool1d(x, AvgPoolOptions::new([3])))
    }
    avg_pool2d(run, 2.0, 2.0) {
        let x = run.whole([2, 3, 8, 7], -2..3);
        let options = AvgPoolOptions::new([3, 2]).with_stride([2, 1]).with_padding([1, 1]);
        run.float(module::avg_pool2d(x, options))
    }
    adaptive_avg_pool1d(run, 1.0, 1.0) {
        let x = run.whole([2, 3, 20], -2..3);
        run.float(module::adaptive_avg_pool1d(x, 7))
    }
    adaptive_avg_pool2d(run, 1.0, 1.0) {
        let x = run.whole([2, 3, 9, 7], -2..3);
        run.float(module::adaptive_avg_pool2d(x, [4, 3]))
    }
    nearest(run, 0.0, 0.0) { resized(run, InterpolateMode::Nearest) }
    bilinear(run, 5.0, 5.0) { resized(run, InterpolateMode::Bilinear) }
    // Places in images are rounded to the type, in f64 to f32, and are no inputs.
    bicubic(run, 66.0, 66.0) { resized(run, InterpolateMode::Bicubic) }
    layer_norm(run, 4.0, 3.0) {
        let x = run.floats([6, 5, 20], -1.0..1.0);
        let (gamma, beta) = (run.floats([20], 0.5..1.5), run.floats([20], -1.0..1.0));
        run.float(module::layer_norm(x, gamma, Some(beta), 1e-3))
    }
    attention(run, 9.0, 5.0) {
        let mut matrices = || run.floats([2, 2, 8, 16], -1.0..1.0);
        let (query, key, value) = (matrices(), matrices(), matrices());
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        run.float(module::attention(query, key, value, None, None, options))
    }
}
