//! The devices: what each does beside running kernels, as a program of Burn sees it.

use burn::tensor::{Device, Int, Tensor};
use burn_thisgpu::ThisGpu;

/// Devices that Burn tells apart, and the one that it takes when nothing is said.
#[test]
fn devices_have_names_of_their_own() {
    let [plain, checking, timed] = [ThisGpu::plain(), ThisGpu::checking(), ThisGpu::timed()];
    let devices = [
        plain,
        checking,
        timed,
        plain.threads(1),
        checking.threads(2),
    ]
    .map(ThisGpu::device);
    for (index, device) in devices.iter().enumerate() {
        let same = devices.iter().filter(|other| *other == device).count();
        assert_eq!(same, 1, "device {index} is another's");
    }
    assert_eq!(ThisGpu::default().device(), Device::default());
    let gone = Tensor::<1>::from_floats([1.0], &Device::cuda(0xffff)) + 1.0;
    let error = gone
        .try_into_data()
        .expect_err("nobody numbers devices so")
        .to_string();
    assert!(error.contains("there is no device 65535"), "{error}");
    let x = Tensor::<1>::from_floats([1.0, 2.0], &Device::cuda(0));
    assert_eq!(
        (x + 1.0).into_data().try_to_vec::<f32>().expect("floats"),
        [2.0, 3.0]
    );
}

/// A read of what nobody wrote is the error of reading what came of it, and of nothing else.
#[test]
fn the_checking_device_finds_what_nobody_wrote() {
    let ones = |device: &Device| Tensor::<1>::ones([64], device);
    let device = ThisGpu::checking().device();
    let sum = Tensor::<1>::empty([64], &device) + ones(&device);
    let error = sum
        .try_into_data()
        .expect_err("nobody wrote it")
        .to_string();
    assert!(error.contains("kernel "), "{error}");
    let sum = ones(&device) + ones(&device);
    assert_eq!(
        sum.into_data().try_to_vec::<f32>().expect("floats"),
        [2.0; 64]
    );
    let device = ThisGpu::plain().device();
    let sum = Tensor::<1>::empty([64], &device) + ones(&device);
    sum.try_into_data()
        .expect("the plain device looks for nothing");
}

/// The gradient of `gather_nd` in burn-cubecl 0.22.1 adds to each place without atomics, so that terms are lost where a
/// place is there twice. Nothing says so but the device that looks for races.
#[test]
fn the_checking_device_finds_the_race_in_scatter_nd() {
    let gradient = |device: Device, rows: [i32; 2]| {
        let device = device.autodiff();
        let x = Tensor::<2>::ones([3, 4], &device).require_grad();
        let places = Tensor::<2, Int>::from_ints([[rows[0]], [rows[1]]], &device);
        let sum = x.clone().gather_nd::<2, 2>(places).sum();
        x.grad(&sum.backward()).expect("a gradient").try_into_data()
    };
    let device = ThisGpu::checking().device();
    let distinct = gradient(device.clone(), [0, 2]).expect("every place is there once");
    distinct.assert_eq(
        &gradient(Device::flex(), [0, 2]).expect("a gradient"),
        false,
    );
    let error = gradient(device, [2, 2]).expect_err("two units add to a place");
    let error = error.to_string();
    assert!(
        error.contains("kernel scatter_nd") && error.contains("race on byte"),
        "{error}"
    );
}

/// Time on the timed device is cycles, and the same for the same work.
#[test]
fn the_timed_device_counts_cycles() {
    let device = ThisGpu::timed().device();
    let x = Tensor::<2>::ones([64, 64], &device);
    let time = || {
        let x = x.clone();
        let profiled = device.profile(move || (x.clone().matmul(x)).into_data());
        let (_, duration) = profiled.expect("the window is measured");
        burn::tensor::read_sync(duration.resolve()).map(|ticks| ticks.duration())
    };
    // With autotune the first time is that of all kernels that are tried.
    time();
    let (first, second) = (time(), time());
    assert!(first.is_some_and(|time| !time.is_zero()), "{first:?}");
    assert_eq!(first, second);
}
