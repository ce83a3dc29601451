//! What a module of kernels has for the host: instances of generic kernels, statics, streams, output of every kind.

use crate::common;
use crate::common::{THREADS, ran};
use thisgpu_build::{Device, Error, Grid, Module};

fn checking() -> (Device, Module) {
    common::checking(&THREADS)
}

const ONE_BLOCK: Grid = Grid {
    blocks: [1; 3],
    threads: [64, 1, 1],
};

#[test]
fn a_generic_kernel_has_an_instance_for_each_type() {
    let (device, module) = checking();
    macro_rules! axpy {
        ($($name:literal $type:ty),*) => {
            $({
                let x: Vec<$type> = (0..50u8).map(<$type>::from).collect();
                let (given, mut y) = (device.upload(&x).unwrap(), device.upload(&x).unwrap());
                ran(&module, $name, ONE_BLOCK, |launch| launch.arg(3 as $type).arg(&given).arg(&mut y));
                let expected: Vec<$type> = x.iter().map(|x| 4 as $type * x).collect();
                assert_eq!(y.to_vec().unwrap(), expected);
            })*
        };
    }
    axpy!("axpy_f32" f32, "axpy_f64" f64, "axpy_u32" u32);
    let words: Vec<u32> = (0..64).map(|i| i * i).collect();
    let (given, mut sums) = (
        device.upload(&words).unwrap(),
        device.zeros::<u32>(64).unwrap(),
    );
    ran(&module, "sums_of_u32_4", ONE_BLOCK, |launch| {
        launch.arg(&given).arg(&mut sums)
    });
    let expected: Vec<u32> = words
        .chunks(4)
        .flat_map(|four| [four.iter().sum(); 4])
        .collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
    let longs: Vec<i64> = words.iter().map(|x| -(i64::from(*x) << 33)).collect();
    let (given, mut sums) = (
        device.upload(&longs).unwrap(),
        device.zeros::<i64>(64).unwrap(),
    );
    ran(&module, "sums_of_i64_32", ONE_BLOCK, |launch| {
        launch.arg(&given).arg(&mut sums)
    });
    let expected: Vec<i64> = longs
        .chunks(32)
        .flat_map(|warp| [warp.iter().sum(); 32])
        .collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
    let pairs: Vec<[u16; 2]> = (0..64).map(|i| [i, 65_000 + i]).collect();
    let (given, mut sums) = (
        device.upload(&pairs).unwrap(),
        device.zeros::<[u16; 2]>(64).unwrap(),
    );
    ran(&module, "sums_of_u16_2_2", ONE_BLOCK, |launch| {
        launch.arg(&given).arg(&mut sums)
    });
    let add = |two: &[[u16; 2]]| [0, 1].map(|i| two[0][i].wrapping_add(two[1][i]));
    let expected: Vec<[u16; 2]> = pairs.chunks(2).flat_map(|two| [add(two); 2]).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);

    // Each instance has its types and its bounds.
    let kernels = &module.description().kernels;
    let sums: Vec<_> = kernels
        .iter()
        .filter(|of| of.symbol.starts_with("sums_of"))
        .collect();
    assert_eq!(sums.len(), 3);
    assert!(sums.iter().all(|of| of.max_threads == Some(64)));
    let wrong = module.kernel("axpy_f64").unwrap();
    let wrong = wrong
        .launch(ONE_BLOCK)
        .arg(1.0f32)
        .arg(&given)
        .arg(&mut device.zeros::<f64>(1).unwrap());
    assert!(
        wrong
            .run()
            .unwrap_err()
            .to_string()
            .contains("is f64, f32 was given")
    );
    assert!(module.kernel("axpy").is_err());
}

#[test]
fn the_host_fills_statics() {
    let (device, module) = checking();
    let x: Vec<f32> = (0..10u8).map(f32::from).collect();
    let polynomial = |coefficients: [f32; 4], scale: f32| -> Vec<f32> {
        let of = |x: &f32| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c) * scale;
        x.iter().map(of).collect()
    };
    let values = || {
        let mut values = device.upload(&x).unwrap();
        ran(&module, "polynomials", ONE_BLOCK, |launch| {
            launch.arg(&mut values)
        });
        values.to_vec().unwrap()
    };
    assert_eq!(values(), [0.0; 10]);
    let coefficients = module.device_static::<f32>("COEFFICIENTS").unwrap();
    assert_eq!(coefficients.len(), 4);
    coefficients.write(&[1.0f32, 2.0, 0.0, 1.0]).unwrap();
    assert_eq!(values(), polynomial([1.0, 2.0, 0.0, 1.0], 3.0));
    let scale = module.device_static::<u32>("SCALE").unwrap();
    assert_eq!(scale.to_vec().unwrap(), [3]);
    scale.write(&[2u32]).unwrap();
    assert_eq!(values(), polynomial([1.0, 2.0, 0.0, 1.0], 2.0));

    // A kernel that reads it must not get it to write.
    let mut alias = coefficients.clone();
    let kernel = module.kernel("polynomials").unwrap();
    let message = kernel
        .launch(ONE_BLOCK)
        .arg(&mut alias)
        .run()
        .unwrap_err()
        .to_string();
    assert_eq!(
        message,
        "kernel `polynomials`, parameters `COEFFICIENTS` and `x`: have 16 bytes of memory in common, and the kernel \
         writes `x`; pass buffers that have none, or copy one"
    );
    let message = |error: Result<(), Error>| error.unwrap_err().to_string();
    assert_eq!(
        message(module.device_static::<f64>("COEFFICIENTS").map(|_| ())),
        "the static `COEFFICIENTS` has elements f32, not f64"
    );
    assert_eq!(
        message(module.device_static::<f32>("WEIGHTS").map(|_| ())),
        "no kernel reads a static `WEIGHTS` marked `#[device_static]`; there are COEFFICIENTS, SCALE"
    );
    // Each module has its own.
    let other = THREADS
        .load(&device)
        .unwrap()
        .device_static::<u32>("SCALE")
        .unwrap();
    assert_eq!(other.to_vec().unwrap(), [3]);
}

#[test]
fn launches_are_put_on_streams() {
    let (device, module) = checking();
    let stream = device.stream();
    let (before, axpy) = (stream.record(), module.kernel("axpy_u32").unwrap());
    let (x, mut y) = (
        device.upload(&[1u32; 64]).unwrap(),
        device.zeros::<u32>(64).unwrap(),
    );
    let mut pending = Vec::new();
    for factor in 1..=4u32 {
        let launch = axpy.launch(ONE_BLOCK).arg(factor).arg(&x).arg(&mut y);
        pending.push(launch.enqueue(&stream).unwrap());
    }
    let tell = module.kernel("tell").unwrap();
    let told = tell
        .launch(Grid::new([1; 3], [1, 1, 1]))
        .arg(&x)
        .enqueue(&stream)
        .unwrap();
    let after = stream.record();
    // Whoever waits first gets what the module has printed until then.
    let (outcome, text) = told.wait_with_output();
    outcome.unwrap();
    for pending in pending {
        assert!(pending.wait().unwrap().findings.is_empty());
    }
    assert!(text.starts_with("0   zero|\"zero\""), "{text}");
    after.wait();
    assert!(before.is_done() && after.is_done());
    assert!(after.since(&before).host >= before.since(&after).host);
    assert_eq!(y.to_vec().unwrap(), [10; 64]);

    // What is wrong with the arguments is said at once, and a panic when somebody waits.
    let two_dimensions = Grid::new([1; 3], [8, 8, 1]);
    let refused = axpy
        .launch(two_dimensions)
        .arg(1u32)
        .arg(&x)
        .arg(&mut y)
        .enqueue(&stream);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("of one dimension at most")
    );
    let sums = module.kernel("sums_of_u32_4").unwrap();
    let mut long = device.zeros::<u32>(64).unwrap();
    let short = x.slice(0..8).unwrap();
    let panics = sums
        .launch(ONE_BLOCK)
        .arg(&short)
        .arg(&mut long)
        .enqueue(&stream)
        .unwrap();
    let skipped = axpy
        .launch(ONE_BLOCK)
        .arg(1u32)
        .arg(&x)
        .arg(&mut y)
        .enqueue(&stream)
        .unwrap();
    assert!(matches!(panics.wait(), Err(Error::Panic { .. })));
    assert!(matches!(skipped.wait(), Err(Error::Device(_))));
    assert_eq!(y.to_vec().unwrap(), [10; 64]);
}

#[derive(Debug)]
#[allow(dead_code, reason = "what Debug shows is what is wanted")]
struct Label {
    name: &'static str,
    at: Option<[u32; 2]>,
}

#[derive(Debug)]
#[allow(dead_code, reason = "what Debug shows is what is wanted")]
struct Wrapped(u8, char);

#[test]
fn texts_lists_and_structures_are_printed_as_std_prints_them() {
    let (device, module) = checking();
    let tell = module.kernel("tell").unwrap();
    let run = |x: &[u32]| {
        let given = device.upload(x).unwrap();
        let (outcome, text) = tell
            .launch(Grid::new([1; 3], [4, 1, 1]))
            .arg(&given)
            .run_with_output();
        let report = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert!(report.findings.is_empty(), "{}", report.findings[0]);
        text
    };
    let x = [5u32, 1_000_000];
    let mut lines = Vec::new();
    for i in 0..4usize {
        let name = ["zero", "one: \"ä\"", ""][i % 3];
        let part = &x[..i.min(2)];
        lines.push(format!(
            "{i} {name:>6}|{name:?} {part:?} {:?} {:2x?}\n",
            x.get(i),
            [Some(i as u8); 2]
        ));
        let label = Label {
            name,
            at: x.get(i).map(|x| [*x, 7]),
        };
        lines.push(format!("{:?} {label:#?}\n", Wrapped(i as u8, 'ß')));
    }
    lines.push(format!("{x:?}\n"));
    let text = run(&x);
    for line in &lines {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert_eq!(text.len(), lines.iter().map(String::len).sum::<usize>());
    // A list that has no room, and whatever else.
    let text = run(&vec![1; 30_000]);
    assert!(
        text.ends_with("(1 more outputs found no room)\n"),
        "{}",
        &text[text.len() - 100..]
    );
    assert!(text.contains("Wrapped(3, 'ß')"));
}
