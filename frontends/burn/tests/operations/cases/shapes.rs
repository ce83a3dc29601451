//! What moves elements and computes nothing, and what makes tensors.

use super::cases;
use burn::tensor::{Bool, DType, Distribution, Int, Tensor};

/// Whether a tensor has the type that it should have.
fn has(found: DType, expected: DType) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("a tensor of {found:?}, not of {expected:?}")),
    }
}

cases! {
    transposes(run, 0.0, 0.0) {
        let x = run.floats([5, 7, 33], -1.0..1.0);
        run.float(x.clone().swap_dims(0, 2))?;
        run.float(x.clone().permute([1, 2, 0]))?;
        run.float(x.movedim(0, 1).transpose())
    }
    reshapes(run, 0.0, 0.0) {
        let x = run.floats([4, 6, 10], -1.0..1.0);
        run.float(x.clone().swap_dims(0, 1).reshape([20, 12]))?;
        run.float(x.clone().flatten::<2>(1, 2))?;
        run.float(x.unsqueeze_dim::<4>(2))
    }
    expand(run, 0.0, 0.0) {
        let x = run.floats([1, 9], -1.0..1.0);
        run.float(x.expand([3, 5, 9]))
    }
    repeat(run, 0.0, 0.0) {
        let x = run.floats([5, 9], -1.0..1.0);
        run.float(x.clone().repeat_dim(0, 3))?;
        run.float(x.repeat(&[2, 4]))
    }
    flip(run, 0.0, 0.0) {
        let x = run.floats([5, 9, 3], -1.0..1.0);
        run.float(x.flip([0, 2]))
    }
    roll(run, 0.0, 0.0) {
        let x = run.floats([5, 9], -1.0..1.0);
        run.float(x.clone().roll(&[1, -1], &[0, 1]))?;
        run.float(x.roll(&[2 * 32 + 1, 3 * (-400) - 1], &[0, 1]))
    }
    roll_integers(run, 0.0, 0.0) {
        let x = run.integers([2, 3], -100..100);
        run.int(x.clone().roll(&[1, -1], &[0, 1]))?;
        run.int(x.roll(&[2 * 32 + 1, 3 * (-400) - 1], &[0, 1]))
    }
    concatenate(run, 0.0, 0.0) {
        let (x, y) = (run.floats([5, 9], -1.0..1.0), run.floats([5, 4], -1.0..1.0));
        run.float(Tensor::cat(vec![x.clone(), y.clone(), x.clone()], 1))?;
        run.float(Tensor::stack::<3>(vec![x.clone(), x], 0))?;
        run.float(Tensor::cat(vec![y.clone().transpose(), y.transpose()], 0))
    }
    unfold(run, 0.0, 0.0) {
        let x = run.floats([4, 20], -1.0..1.0);
        run.float::<3>(x.unfold(1, 5, 3))
    }
    pad(run, 0.0, 0.0) {
        let x = run.floats([4, 7], -1.0..1.0);
        run.float(x.pad((1, 2, 3, 0), 0.5))
    }
    made(run, 0.0, 0.0) {
        let device = run.device.clone();
        let made: [Tensor<2>; 3] = [
            Tensor::zeros([5, 7], &device),
            Tensor::ones([5, 7], &device),
            Tensor::full([5, 7], 2.5, &device),
        ];
        for tensor in made {
            run.plain(tensor)?;
        }
        run.int(Tensor::<1, Int>::arange(-3..40, &device))?;
        run.int(Tensor::<1, Int>::arange_step(0..40, 3, &device))
    }
    casts(run, 0.0, 0.0) {
        let fractions = vec![2.75, -2.75, 100.5, -0.5, 0.0, 1.0, -7.0, 64.25];
        let x = run.constant_of(fractions.clone(), [fractions.len()]);
        for float in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            let cast = x.clone().cast(float);
            has(cast.dtype(), float)?;
            run.plain(cast)?;
        }
        let whole = x.int();
        for int in [DType::I8, DType::I16, DType::I32, DType::I64] {
            let cast = whole.clone().cast(int);
            has(cast.dtype(), int)?;
            run.int(cast)?;
        }
        // Also those that a signed type of this width has not.
        let positive = whole.clone().abs() * 2;
        for int in [DType::U8, DType::U16, DType::U32, DType::U64] {
            let cast = positive.clone().cast(int);
            has(cast.dtype(), int)?;
            run.int(cast)?;
        }
        run.plain(whole.clone().float())?;
        run.bool(whole.bool())
    }
    random(run, 0.0, 0.0) {
        // Numbers are each device's own; what they have in common is where they lie and how far apart.
        let device = run.device.clone();
        device.seed(run.seed);
        let uniform = Tensor::<1>::random([5000], Distribution::Uniform(2.0, 3.0), &device);
        let normal = Tensor::<1>::random([5000], Distribution::Normal(1.0, 2.0), &device);
        let coins = Tensor::<1>::random([5000], Distribution::Bernoulli(0.25), &device);
        let dice = Tensor::<1, Int>::random([5000], Distribution::Uniform(0.0, 6.0), &device);
        let near = |number: Tensor<1>, expected: f64, most: f64| (number - expected).abs().lower_elem(most);
        // Mean and variance.
        let like = |tensor: Tensor<1>, mean: f64, variance: f64| {
            let most = variance.sqrt() / 10.0;
            let has_mean = near(tensor.clone().mean(), mean, most);
            has_mean.bool_and(near(tensor.var(0), variance, variance / 10.0))
        };
        let is_side = coins.clone().equal_elem(0.0).bool_or(coins.clone().equal_elem(1.0));
        let all: [Tensor<1, Bool>; 7] = [
            uniform.clone().greater_equal_elem(2.0).all(),
            uniform.clone().lower_equal_elem(3.0).all(),
            like(uniform, 2.5, 1.0 / 12.0),
            like(normal, 1.0, 4.0),
            is_side.all(),
            like(coins, 0.25, 0.1875),
            like(dice.clone().float(), 2.5, 35.0 / 12.0),
        ];
        for holds in all {
            run.bool(holds)?;
        }
        run.int(dice.clone().min())?;
        run.int(dice.max())
    }
}
