//! How buffers are shared out among threads, and launches that are refused since two threads would have one element.

use crate::common;
use crate::common::{THREADS, ran};
use cranelift_thisgpu::Object;
use thisgpu_build::{Argument, Buffer, Device, Grid, Launch, Module};

fn checking() -> (Device, Module) {
    common::checking(&THREADS)
}

fn grid(blocks: [u32; 3], threads: [u32; 3]) -> Grid {
    Grid::new(blocks, threads)
}

/// Why a launch is refused.
fn refused(
    module: &Module,
    name: &str,
    grid: Grid,
    arguments: impl FnOnce(Launch) -> Launch,
) -> String {
    let kernel = module.kernel(name).expect("there");
    match arguments(kernel.launch(grid)).run() {
        Ok(_) => panic!("{name} ran"),
        Err(error) => error.to_string(),
    }
}

fn ramp(n: u32) -> Vec<u32> {
    (0..n).collect()
}

#[test]
fn chunks_and_strides_leave_no_whole_part_out() {
    let (device, module) = checking();
    // None, less than a chunk, an odd one, more chunks than threads.
    for n in [0, 1, 7, 64, 201] {
        let x = ramp(n);
        let mut pairs = device.upload(&x).unwrap();
        ran(
            &module,
            "turn_pairs",
            grid([2, 1, 1], [20, 1, 1]),
            |launch| launch.arg(&mut pairs),
        );
        let mut expected = x.clone();
        expected
            .chunks_exact_mut(2)
            .for_each(|pair| pair.swap(0, 1));
        assert_eq!(pairs.to_vec().unwrap(), expected, "{n}");

        let floats: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let x = device.upload(&floats).unwrap();
        let mut y = device.upload(&vec![1.0f32; n as usize + 3]).unwrap();
        ran(
            &module,
            "saxpy_strided",
            grid([2, 1, 1], [20, 1, 1]),
            |launch| launch.arg(2.0f32).arg(&x).arg(&mut y),
        );
        let mut expected: Vec<f32> = floats.iter().map(|x| 2.0 * x + 1.0).collect();
        expected.resize(n as usize + 3, 1.0);
        assert_eq!(y.to_vec().unwrap(), expected, "{n}");
    }
}

#[test]
fn rows_are_as_long_as_the_launch_says() {
    let (device, module) = checking();
    for [width, height] in [[5, 40], [1, 3], [7, 0], [0, 7], [33, 1]] {
        let mut random = common::Random(7);
        let x: Vec<u32> = (0..width * height)
            .map(|_| random.bits() as u32 >> 8)
            .collect();
        let mut rows = device.upload(&x).unwrap();
        let mut sums = device.zeros::<u32>(u64::from(height)).unwrap();
        let launch = grid([2, 1, 1], [32, 1, 1]);
        ran(&module, "row_sums", launch, |launch| {
            launch.arg((&rows, [width, height])).arg(&mut sums)
        });
        ran(&module, "sort_rows", launch, |launch| {
            launch.arg((&mut rows, [width, height]))
        });
        let mut expected = x.clone();
        let mut expected_sums = vec![0; height as usize];
        for (row, sum) in expected
            .chunks_exact_mut(width.max(1) as usize)
            .zip(&mut expected_sums)
        {
            *sum = row.iter().sum();
            row.sort_unstable();
        }
        assert_eq!(rows.to_vec().unwrap(), expected, "{width} {height}");
        assert_eq!(sums.to_vec().unwrap(), expected_sums, "{width} {height}");
    }
}

#[test]
fn planes_and_volumes_have_their_elements_row_after_row() {
    let (device, module) = checking();
    // Fewer threads, more, blocks that are no multiple of a warp.
    for ([width, height], launch) in [
        ([13, 6], grid([2, 2, 1], [8, 4, 1])),
        ([13, 6], grid([1, 1, 1], [5, 3, 1])),
        ([1, 1], grid([1, 1, 1], [32, 2, 1])),
        ([0, 5], grid([1, 1, 1], [8, 8, 1])),
        ([40, 1], grid([2, 1, 1], [20, 1, 1])),
    ] {
        let x = ramp(width * height);
        let given = device.upload(&x).unwrap();
        let (mut out, parts) = (
            device.zeros::<u32>(x.len() as u64).unwrap(),
            device.zeros::<u32>(1).unwrap(),
        );
        ran(&module, "transpose", launch, |launch| {
            let launch = launch.arg((&given, [height, width]));
            launch.arg((&mut out, [width, height])).arg(&parts)
        });
        let [across, down] = [0, 1].map(|axis| launch.blocks[axis] * launch.threads[axis]);
        let expected: Vec<u32> = (0..width * height)
            .map(|number| (number % width, number / width))
            .map(|(x, y)| {
                if x < across && y < down {
                    x * height + y
                } else {
                    0
                }
            })
            .collect();
        assert_eq!(out.to_vec().unwrap(), expected, "{width} {height}");
        let threads = across.min(width) * down.min(height);
        assert_eq!(parts.to_vec().unwrap(), [threads]);
    }

    let (extents, launch) = ([5u32, 4, 3], grid([2, 1, 2], [3, 4, 2]));
    let x = ramp(60);
    let given = device.upload(&x).unwrap();
    let mut out = device.zeros::<u32>(60).unwrap();
    ran(&module, "seven_points", launch, |launch| {
        launch.arg((&given, extents)).arg((&mut out, extents))
    });
    let at = |i: i64, j: i64, k: i64| {
        let inside = [i, j, k]
            .iter()
            .zip(extents)
            .all(|(i, n)| (0..i64::from(n)).contains(i));
        if inside {
            x[(i + 5 * (j + 4 * k)) as usize]
        } else {
            0
        }
    };
    for (number, found) in out.to_vec().unwrap().into_iter().enumerate() {
        let (i, j, k) = (number as i64 % 5, number as i64 / 5 % 4, number as i64 / 20);
        let expected = at(i, j, k)
            + at(i - 1, j, k)
            + at(i + 1, j, k)
            + at(i, j - 1, k)
            + at(i, j + 1, k)
            + at(i, j, k - 1)
            + at(i, j, k + 1);
        assert_eq!(found, expected, "{i} {j} {k}");
    }
}

#[test]
fn a_block_has_an_element_in_every_launch() {
    let (device, module) = checking();
    for (blocks, threads) in [
        ([3, 1, 1], [64, 1, 1]),
        ([3, 2, 2], [5, 3, 2]),
        ([1, 4, 1], [1, 1, 1]),
    ] {
        // One more than blocks, and one less.
        let count: u32 = blocks.iter().product();
        for len in [count + 1, count - 1] {
            let mut counts = device.zeros::<u32>(u64::from(len)).unwrap();
            ran(&module, "count_threads", grid(blocks, threads), |launch| {
                launch.arg(&mut counts)
            });
            let mut expected = vec![threads.iter().product::<u32>(); count as usize];
            expected.resize(len as usize, 0);
            assert_eq!(counts.to_vec().unwrap(), expected);
        }
    }
}

/// What the types know costs nothing: one branch for all three planes.
#[test]
fn a_plane_costs_what_unchecked_accesses_cost() {
    let object = Object::read(THREADS.object()).unwrap();
    let instructions = |name: &str| {
        let function = object
            .functions
            .iter()
            .find(|function| function.name == name);
        function.expect("there").words.len()
    };
    let (safe, by_hand) = (
        instructions("add_planes"),
        instructions("add_planes_by_hand"),
    );
    println!("planes: {safe} instructions, by hand {by_hand}");
    // Each plane has extents of its own, which are compared.
    assert!(safe <= by_hand + 8, "{safe} {by_hand}");
}

#[test]
fn a_launch_of_more_dimensions_is_refused() {
    let (device, module) = checking();
    let (mut a, mut b) = (
        device.zeros::<u32>(64).unwrap(),
        device.zeros::<u32>(64).unwrap(),
    );
    for (blocks, threads) in [
        ([1, 2, 1], [32, 1, 1]),
        ([1, 1, 2], [32, 1, 1]),
        ([1, 1, 1], [32, 2, 1]),
        ([1, 1, 1], [32, 1, 2]),
    ] {
        let message = refused(&module, "swap_all", grid(blocks, threads), |launch| {
            launch.arg(&mut a).arg(&mut b)
        });
        assert_eq!(
            message,
            format!(
                "kernel `swap_all`, parameter `a`: is shared out among the threads of a launch of one dimension at \
                 most; this one has blocks {blocks:?} of threads {threads:?}: launch so, or part it by `Plane`, \
                 `Volume` or `Blocks`"
            )
        );
    }
    for launch in [grid([1, 1, 1], [16, 2, 1]), grid([2, 1, 3], [16, 1, 1])] {
        for (name, argument) in [("turn_pairs", None), ("sort_rows", Some([8, 8]))] {
            let message = refused(&module, name, launch, |launch| match argument {
                Some(extents) => launch.arg((&mut a, extents)),
                None => launch.arg(&mut a),
            });
            assert!(
                message.contains("of one dimension at most"),
                "{name}: {message}"
            );
        }
    }
    let parts = device.zeros::<u32>(1).unwrap();
    let message = refused(&module, "transpose", grid([1, 1, 2], [8, 8, 1]), |launch| {
        launch.arg((&a, [8, 8])).arg((&mut b, [8, 8])).arg(&parts)
    });
    assert!(
        message.starts_with("kernel `transpose`, parameter `out`: ")
            && message.contains("of 2 dimensions at most"),
        "{message}"
    );
}

/// Numbers of threads begin again at 2^32.
#[test]
fn a_launch_of_more_threads_than_numbers_is_refused() {
    let (device, module) = checking();
    let (mut a, mut b) = (
        device.zeros::<u32>(64).unwrap(),
        device.zeros::<u32>(64).unwrap(),
    );
    let message = refused(
        &module,
        "swap_all",
        grid([1 << 22, 1, 1], [1024, 1, 1]),
        |launch| launch.arg(&mut a).arg(&mut b),
    );
    assert!(
        message.contains("parameter `a`: is shared out by numbers of 32 bits"),
        "{message}"
    );
    let blocks = grid([1 << 20, 1 << 12, 1], [1, 1, 1]);
    let message = refused(&module, "count_threads", blocks, |launch| {
        launch.arg(&mut a)
    });
    assert!(message.contains("by numbers of 32 bits"), "{message}");
}

#[test]
fn memory_of_two_parameters_is_refused_where_one_is_written() {
    let (device, module) = checking();
    let whole = device.upload(&ramp(64)).unwrap();
    let launch = grid([1, 1, 1], [32, 1, 1]);
    let swap = |mut a: Buffer<u32>, mut b: Buffer<u32>| {
        refused(&module, "swap_all", launch, |launch| {
            launch.arg(&mut a).arg(&mut b)
        })
    };
    // The clone of a buffer, a slice of it, slices with one element in common, the same bytes as another type and back.
    assert_eq!(
        swap(whole.clone(), whole.clone()),
        "kernel `swap_all`, parameters `a` and `b`: have 256 bytes of memory in common, and the kernel writes both; \
         pass buffers that have none, or copy one"
    );
    let part = |range: std::ops::Range<u64>| whole.slice(range).unwrap();
    assert!(swap(whole.clone(), part(60..64)).contains("have 16 bytes"));
    assert!(swap(part(0..33), part(32..64)).contains("have 4 bytes"));
    let again = whole.cast::<u8>().unwrap().cast::<u32>().unwrap();
    assert!(swap(again, part(0..1)).contains("have 4 bytes"));

    // Each pair of parameters of `of_each_kind`.
    let fresh = |name: &str| device.zeros::<u32>(64).unwrap().named(name);
    let names = ["read", "written", "words", "floats", "bytes"];
    let launch_with = |buffers: &[Buffer<u32>; 5]| {
        let [read, written, words, floats, bytes] = buffers;
        let (floats, bytes) = (floats.cast::<f32>().unwrap(), bytes.cast::<u8>().unwrap());
        let mut written = written.clone();
        let kernel = module.kernel("of_each_kind").unwrap();
        let launch = kernel.launch(launch).arg(read).arg(&mut written);
        launch.arg(words).arg(&floats).arg(&bytes).run()
    };
    let mut run = 0;
    for first in 0..5 {
        for second in first + 1..5 {
            let mut buffers = names.map(fresh);
            buffers[second] = buffers[first].clone();
            let outcome = launch_with(&buffers);
            let of = (names[first], names[second]);
            if of == ("words", "floats") {
                // Atomics of one size.
                let report = outcome.unwrap_or_else(|error| panic!("{error}"));
                assert!(report.findings.is_empty(), "{}", report.findings[0]);
                run += 1;
                continue;
            }
            let message = outcome.expect_err("two have one memory").to_string();
            let parameters = format!("parameters `{}` and `{}`", of.0, of.1);
            assert!(
                message.contains(&parameters) && message.contains("256 bytes"),
                "{message}"
            );
            let why = match of {
                ("written", _) | (_, "written") => "writes `written`".to_string(),
                ("read", atomics) => format!("changes `{atomics}` by atomics"),
                _ => "changes both by atomics of different sizes".to_string(),
            };
            assert!(message.contains(&why), "{message}");
        }
    }
    assert_eq!(run, 1);
}

/// Nothing is in common where one ends and the other begins, or where one has no elements; all may read one buffer.
#[test]
fn memory_of_two_parameters_is_allowed_where_nothing_is_in_common() {
    let (device, module) = checking();
    let whole = device.upload(&ramp(64)).unwrap();
    let launch = grid([1, 1, 1], [32, 1, 1]);
    let swap = |mut a: Buffer<u32>, mut b: Buffer<u32>| {
        ran(&module, "swap_all", launch, |launch| {
            launch.arg(&mut a).arg(&mut b)
        })
    };
    let part = |range: std::ops::Range<u64>| whole.slice(range).unwrap();
    swap(part(0..32), part(32..64));
    let expected: Vec<u32> = (32..64).chain(0..32).collect();
    assert_eq!(whole.to_vec().unwrap(), expected);
    swap(whole.clone(), part(5..5));
    let floats = device.upload(&[1.0f32; 6]).unwrap();
    let mut sum = device.zeros::<f32>(6).unwrap();
    ran(
        &module,
        "add_planes",
        grid([1, 1, 1], [4, 4, 1]),
        |launch| {
            let plane = (&floats, [3, 2]);
            launch.arg(plane).arg(plane).arg((&mut sum, [3, 2]))
        },
    );
    assert_eq!(sum.to_vec().unwrap(), [2.0f32; 6]);
}

#[test]
fn extents_are_those_of_the_buffer() {
    let (device, module) = checking();
    let mut a = device.zeros::<u32>(12).unwrap();
    let launch = grid([1, 1, 1], [8, 1, 1]);
    let mut sort = |argument: &dyn Fn(&mut Buffer<u32>) -> thisgpu_build::Passed| {
        let passed = argument(&mut a);
        refused(&module, "sort_rows", launch, |launch| launch.arg(passed))
    };
    let place = "kernel `sort_rows`, parameter `rows`: ";
    assert_eq!(
        sort(&|a| (a, [5, 2]).pass()),
        format!("{place}has extents [5, 2], which is not its number of elements, 12")
    );
    // The product is 12 modulo 2^32.
    assert!(sort(&|a| (a, [(1 << 30) + 3, 4]).pass()).contains("is not its number"));
    assert_eq!(
        sort(&|a| a.pass()),
        format!("{place}is memory with 2 extents, 0 were given: pass `(buffer, [width, height])`")
    );
    assert!(sort(&|a| (a, [3, 2, 2]).pass()).contains("3 were given"));
    let message = refused(&module, "turn_pairs", launch, |launch| {
        launch.arg((&mut a, [3, 4]))
    });
    assert!(
        message.ends_with("is memory with 0 extents, 2 were given: pass the buffer alone"),
        "{message}"
    );
    let message = refused(&module, "sort_rows", launch, |launch| {
        launch.arg((&a, [3, 4]))
    });
    assert!(
        message.ends_with("is written by the kernel: pass `&mut buffer`"),
        "{message}"
    );
}
