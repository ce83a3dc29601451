//! What CubeCL's own tests do not ask: faults, planes that are not full, what is refused, time on the device.

use cubecl_core as cubecl;
use cubecl_core::prelude::*;
use cubecl_core::server::{CopyDescriptor, Handle};
use cubecl_thisgpu::{
    CACHE_VARIABLE, DEVICE_VARIABLE, PROFILE_VARIABLE, Runtime, ThisgpuDevice, ThisgpuRuntime,
};
use std::path::Path;
use std::{fs, process};

fn argument(handle: &Handle, elements: usize) -> BufferArg {
    // SAFETY: the tests' buffers have so many elements, but for that of the test of faults, which a fault ends.
    unsafe { BufferArg::from_raw_parts(handle.clone(), elements) }
}

#[cube(launch_unchecked)]
fn write_at(output: &mut [u32], index: usize) {
    output[index] = 7u32;
}

/// The read of what a kernel would have written says which kernel, which unit, and why; the device goes on.
#[test]
fn a_fault_is_what_the_read_gives() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::PLAIN);
    let output = client.create_from_slice(u32::as_bytes(&[1, 2]));
    let launch = |index: usize| {
        let (count, size) = (CubeCount::new_single(), CubeDim::new_single());
        // SAFETY: an index outside is a fault of the device, which is what is tested.
        unsafe {
            write_at::launch_unchecked(&client, count, size, argument(&output, 2), index);
        }
        client.read_one(output.clone())
    };
    let error = launch(1 << 29)
        .expect_err("a fault is an error")
        .to_string();
    for part in [
        "kernel write_at",
        "block (0,0,0), thread (0,0,0)",
        "out of bounds",
        // CubeCL's IR has no places in Rust's text; its operations are what there is.
        ".cubecl): store of 4 bytes",
        "\n  from memory.store",
    ] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert_eq!(error.matches("kernel write_at").count(), 1, "{error}");
    let bytes = launch(1).expect("the device goes on");
    assert_eq!(u32::from_bytes(&bytes)[1], 7);
}

#[cube(launch)]
fn sums(output: &mut [u32]) {
    let unit = UNIT_POS;
    let mut sum = 0u32;
    let mut before = 0u32;
    if unit % 3 != 1 {
        sum = plane_sum(unit);
        before = plane_exclusive_sum(unit);
    }
    output[2 * unit as usize] = sum;
    output[2 * unit as usize + 1] = before;
}

/// Sums over 45 units, of which the second plane has 13, in a branch that two of three take.
#[test]
fn planes_need_not_be_full() {
    const UNITS: u32 = 45;
    let client = ThisgpuRuntime::client(&ThisgpuDevice::CHECKING);
    let elements = 2 * UNITS as usize;
    let output = client.empty(elements * size_of::<u32>());
    let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(UNITS));
    sums::launch(&client, count, size, argument(&output, elements));
    let bytes = client.read_one(output).expect("the kernel has run");
    let found = u32::from_bytes(&bytes);
    for unit in 0..UNITS {
        let takes_part = |other: &u32| other % 3 != 1;
        let plane = unit / 32 * 32;
        let all = (plane..UNITS.min(plane + 32)).filter(takes_part).sum();
        let before = (plane..unit).filter(takes_part).sum();
        let expected = if takes_part(&unit) {
            [all, before]
        } else {
            [0, 0]
        };
        let pair = &found[2 * unit as usize..][..2];
        assert_eq!(pair, expected, "unit {unit}");
    }
}

#[cube(launch)]
fn count_cubes(counts: &mut [Atomic<u32>]) {
    counts[0].fetch_add(1u32);
}

/// A device that counts cycles reports them as time, more for more work; the number of cubes may stand in a buffer.
#[test]
fn profiles_are_of_the_device() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::TIMED);
    let counts = client.create_from_slice(u32::as_bytes(&[0]));
    let time = |cubes: u32| {
        let cubes = client.create_from_slice(u32::as_bytes(&[cubes, 1, 1]));
        let launch = || {
            let count = CubeCount::Dynamic(cubes.binding());
            count_cubes::launch(&client, count, CubeDim::new_1d(32), argument(&counts, 1));
        };
        let (_, profile) = client.profile(launch, "count").expect("it is measured");
        let ticks = cubecl_core::future::block_on(profile.resolve());
        ticks.expect("there was a launch").duration()
    };
    let (short, long) = (time(1), time(2000));
    // A launch takes some time by itself.
    assert!(
        short.as_micros() >= 5 && long > short,
        "{short:?}, {long:?}"
    );
    let bytes = client
        .read_one(counts.clone())
        .expect("the kernels have run");
    assert_eq!(u32::from_bytes(&bytes), [32 * 2001]);
    // Without a launch there is no time, which is not the same as little: who looks for the fastest would take it.
    let (_, profile) = client.profile(|| (), "nothing").expect("it is a window");
    let ticks = cubecl_core::future::block_on(profile.resolve());
    assert!(ticks.is_none(), "{:?}", ticks.map(|ticks| ticks.duration()));
}

#[cube(launch)]
fn extremes(values: &[Vector<f32, Const<2>>], output: &mut [Vector<f32, Const<2>>], exponent: i32) {
    output[0] = values[0].normalize();
    output[1] = values[1].normalize();
    output[2] = Vector::new(values[1].magnitude());
    output[3] = Vector::new(f32::powi(values[2].extract(0usize), exponent));
}

/// Neither squares nor powers on the way become too large or too small.
#[test]
fn results_are_right_where_squares_are_not() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::PLAIN);
    let values = [3e38f32, 3e38, 1e-30, 1e-30, 2.0, 0.0];
    let values = client.create_from_slice(f32::as_bytes(&values));
    let output = client.create_from_slice(f32::as_bytes(&[0.0; 8]));
    let (count, size) = (CubeCount::new_single(), CubeDim::new_single());
    extremes::launch(
        &client,
        count,
        size,
        argument(&values, 3),
        argument(&output, 4),
        -149,
    );
    let bytes = client.read_one(output).expect("no fault");
    let found = f32::from_bytes(&bytes);
    let half = std::f32::consts::FRAC_1_SQRT_2;
    let expected = [half, half, half, half, 1e-30 / half, 1e-30 / half];
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= expected * 2e-7,
            "{found} and not {expected}"
        );
    }
    assert_eq!(found[6].to_bits(), 1);
}

#[cube(launch)]
fn histogram(output: &mut [u32], #[comptime] bins: usize) {
    let mut counts = Array::<u32>::new(bins);
    for turn in 0..32usize {
        counts[turn * turn % bins] += 1u32;
    }
    output[UNIT_POS as usize] = counts[UNIT_POS as usize];
}

/// An array of a unit's own begins as zeros, however long it is.
#[test]
fn long_arrays_begin_as_zeros() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::PLAIN);
    for bins in [32, 20_000] {
        let output = client.create_from_slice(u32::as_bytes(&[9; 32]));
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(32));
        histogram::launch(&client, count, size, argument(&output, 32), bins);
        let bytes = client.read_one(output).expect("no fault");
        let mut expected = [0; 32];
        for turn in 0..32 {
            if let Some(count) = expected.get_mut(turn * turn % bins) {
                *count += 1;
            }
        }
        assert_eq!(u32::from_bytes(&bytes), expected, "{bins} bins");
    }
}

/// The checking device keeps buffers apart, so that an access of a neighbour is found out, and sees that memory is new
/// when it is given out again.
#[test]
fn buffers_are_checked_each_for_itself() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::CHECKING);
    let buffers = [1, 2].map(|value| client.create_from_slice(u32::as_bytes(&[value; 4])));
    let (count, size) = (CubeCount::new_single(), CubeDim::new_single());
    // SAFETY: an index outside is a fault of the device, which is what is tested.
    unsafe {
        let output = argument(&buffers[0], 4);
        write_at::launch_unchecked(&client, count.clone(), size, output, 4);
    }
    let error = client.read_one(buffers[0].clone()).expect_err("a fault");
    assert!(error.to_string().contains("out of bounds"), "{error}");
    for turn in 0..3 {
        let memory = client.empty(32 * size_of::<u32>());
        let written = turn == 0;
        if written {
            let size = CubeDim::new_1d(32);
            histogram::launch(&client, count.clone(), size, argument(&memory, 32), 32);
            client.read_one(memory).expect("all is written");
            continue;
        }
        count_cubes::launch(&client, count.clone(), size, argument(&memory, 1));
        let error = client.read_one(memory).expect_err("nobody has written it");
        assert!(
            error
                .to_string()
                .contains("used before anything was written"),
            "{error}"
        );
    }
}

/// Launches that cannot be say why, each time that they are asked for.
#[test]
fn impossible_launches_say_why() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::PLAIN);
    let count = || CubeCount::new_single();
    let short = client.create_from_slice(u32::as_bytes(&[1, 1]));
    for _ in 0..2 {
        let cases = [
            (
                count(),
                CubeDim::new_2d(0, 4),
                "a cube of 0x4x1 units has none",
            ),
            (count(), CubeDim::new_1d(4096), "4096"),
            (
                CubeCount::Dynamic(short.clone().binding()),
                CubeDim::new_single(),
                "8 bytes, not three u32",
            ),
        ];
        for (count, size, part) in cases {
            let counts = client.create_from_slice(u32::as_bytes(&[0]));
            count_cubes::launch(&client, count, size, argument(&counts, 1));
            let error = client.read_one(counts).expect_err("it cannot be launched");
            assert!(error.to_string().contains(part), "{part} is not in {error}");
        }
    }
}

/// A second process takes the machine code that the first has left in the folder, and the profile of each says so.
#[test]
fn a_second_process_takes_kernels_from_the_cache() {
    const NAME: &str = "a_second_process_takes_kernels_from_the_cache";
    if std::env::var_os(CACHE_VARIABLE).is_some() {
        let client = ThisgpuRuntime::client(&ThisgpuDevice::TIMED);
        let output = client.create_from_slice(u32::as_bytes(&[0; 64]));
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(32));
        for _ in 0..2 {
            let argument = argument(&output, 64);
            sums::launch(&client, count.clone(), size, argument);
        }
        client.read_one(output).expect("the kernel ran");
        let output = client.create_from_slice(u32::as_bytes(&[1, 2]));
        // SAFETY: an index outside is a fault of the device, which is what is tested.
        unsafe {
            let size = CubeDim::new_single();
            write_at::launch_unchecked(&client, count, size, argument(&output, 2), 1 << 29);
        }
        client.read_one(output).expect_err("a fault is an error");
        let output = client.create_from_slice(u32::as_bytes(&[0]));
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(4096));
        count_cubes::launch(&client, count, size, argument(&output, 1));
        // As Burn reads: later, if there is something to read.
        let descriptor = CopyDescriptor::new(output.binding(), [4].into(), [1].into(), 1);
        let read = cubecl_core::future::block_on(client.read_lazy_async(descriptor));
        read.expect_err("there is no such cube");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}", process::id()));
    let profile = folder.with_extension("json");
    let mut profiles = Vec::new();
    for _ in 0..2 {
        let this = std::env::current_exe().expect("a test has a binary");
        let output = process::Command::new(this)
            .args(["--exact", NAME])
            .env(CACHE_VARIABLE, &folder)
            .env(PROFILE_VARIABLE, &profile)
            .output()
            .expect("the test binary runs");
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(&profile).expect("the profile is written");
        let rows: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let rows = rows.as_array().expect("there are rows");
        let of = |name: &str| {
            let mut rows = rows.iter();
            let is_it = |row: &&serde_json::Value| {
                row["kernel"]
                    .as_str()
                    .is_some_and(|kernel| kernel.contains(name))
            };
            rows.find(is_it)
                .unwrap_or_else(|| panic!("no row of {name} in {text}"))
        };
        let (ran, failed, refused) = (of("sums"), of("write_at"), of("count_cubes"));
        profiles.push(ran.clone());
        for (row, launches, fails) in [(ran, 2, 0), (failed, 1, 1), (refused, 1, 1)] {
            assert_eq!(
                [&row["launches"], &row["failed"], &row["found"]],
                [launches, fails, 0],
                "{row}"
            );
        }
        assert_eq!(
            (&failed["device"], &failed["cycles"]),
            (&"timed".into(), &0.into())
        );
    }
    fs::remove_dir_all(&folder).expect("the folder is there");
    fs::remove_file(&profile).expect("the profile is there");
    let [first, second] = &profiles[..] else {
        unreachable!("there are two");
    };
    for row in [first, second] {
        assert!(
            row["kernel"]
                .as_str()
                .is_some_and(|name| name.contains("sums"))
        );
        assert_eq!((&row["launches"], &row["units"]), (&2.into(), &32.into()));
        // Two numbers of four bytes for each of 32 units.
        assert_eq!(row["bytes"], 2 * 2 * 4 * 32, "{row}");
        assert!(row["cycles"].as_u64() > Some(0) && row["occupancy"].as_u64() > Some(0));
    }
    assert_eq!(first["was_kept"], false);
    assert_eq!(second["was_kept"], true);
    assert_eq!(first["cycles"], second["cycles"]);
}

/// A value that means nothing is the error of whatever comes of a launch: nothing passes for checked that is not.
#[test]
fn a_wrong_environment_is_an_error() {
    const NAME: &str = "a_wrong_environment_is_an_error";
    const WRONG: &str = "cheking";
    if std::env::var_os(DEVICE_VARIABLE).is_some_and(|value| value == WRONG) {
        let client = ThisgpuRuntime::client(&ThisgpuDevice::default());
        let counts = client.create_from_slice(u32::as_bytes(&[0]));
        let (count, size) = (CubeCount::new_single(), CubeDim::new_single());
        count_cubes::launch(&client, count, size, argument(&counts, 1));
        let error = client
            .read_one(counts)
            .expect_err("there is no such device");
        let expected =
            format!("{DEVICE_VARIABLE}={WRONG:?} is no device; there are plain, checking, timed");
        assert!(error.to_string().contains(&expected), "{error}");
        return;
    }
    let this = std::env::current_exe().expect("a test has a binary");
    let output = process::Command::new(this)
        .args(["--exact", NAME])
        .env(DEVICE_VARIABLE, WRONG)
        .output()
        .expect("the test binary runs");
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{output:?}"
    );
}

/// Memory that is kept for good is given out again by other devices; here a second buffer is new, too, and so is one
/// after that.
#[test]
fn memory_that_is_kept_is_checked_like_other() {
    let client = ThisgpuRuntime::client(&ThisgpuDevice::CHECKING);
    let launch = |memory: &Handle| {
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(32));
        histogram::launch(&client, count, size, argument(memory, 32), 32);
    };
    let empty = || client.empty(32 * size_of::<u32>());
    let first = client.memory_persistent_allocation((), |()| empty());
    launch(&first);
    client.read_one(first).expect("all is written");
    for second in [
        client.memory_persistent_allocation((), |()| empty()),
        empty(),
    ] {
        let (count, size) = (CubeCount::new_single(), CubeDim::new_1d(32));
        count_cubes::launch(&client, count, size, argument(&second, 1));
        let error = client
            .read_one(second)
            .expect_err("nobody has written it")
            .to_string();
        assert!(
            error.contains("used before anything was written"),
            "{error}"
        );
    }
}

/// A unit for each column, which adds to elements that numbers name, some more than once.
#[cube(launch)]
fn add_rows(sums: &mut [f32], rows: &[u32], values: &[f32], columns: usize) {
    if ABSOLUTE_POS >= columns {
        terminate!();
    }
    for row in 0..rows.len() {
        let place = rows[row] as usize * columns + ABSOLUTE_POS;
        sums[place] += values[row * columns + ABSOLUTE_POS];
    }
}

/// A unit for each value, which is added atomically to the element that its number names.
#[cube(launch)]
fn add_atomically(sums: &mut [Atomic<f32>], rows: &[u32], values: &[f32], columns: usize) {
    if ABSOLUTE_POS >= values.len() {
        terminate!();
    }
    let place = rows[ABSOLUTE_POS / columns] as usize * columns + ABSOLUTE_POS % columns;
    sums[place].fetch_add(values[ABSOLUTE_POS]);
}

/// What is added to an element more than once is added as often as it is, by one unit in turns and by many at once. The
/// values are whole, so that their order decides nothing.
#[test]
fn sums_into_named_elements_count_each_value_once() {
    for device in [ThisgpuDevice::PLAIN, ThisgpuDevice::CHECKING] {
        let client = ThisgpuRuntime::client(&device);
        for (rows, columns) in [(256, 6), (6, 256), (256, 36), (32, 512)] {
            let elements = rows * columns;
            let places: Vec<u32> = (0..rows as u32)
                .map(|row| row * row * 7 % rows as u32)
                .collect();
            let values: Vec<f32> = (0..elements)
                .map(|index| (index % 101) as f32 - 50.0)
                .collect();
            let start: Vec<f32> = (0..elements).map(|index| (index % 13) as f32).collect();
            let mut expected = start.clone();
            for (index, value) in values.iter().enumerate() {
                expected[places[index / columns] as usize * columns + index % columns] += value;
            }
            for is_atomic in [false, true] {
                let sums = client.create_from_slice(f32::as_bytes(&start));
                let names = client.create_from_slice(u32::as_bytes(&places));
                let added = client.create_from_slice(f32::as_bytes(&values));
                let units = if is_atomic { elements } else { columns };
                let (count, size) = (units.div_ceil(64) as u32, CubeDim::new_2d(32, 2));
                let count = CubeCount::Static(count, 1, 1);
                let [sum, name, add] = [(&sums, elements), (&names, rows), (&added, elements)]
                    .map(|(handle, elements)| argument(handle, elements));
                if is_atomic {
                    add_atomically::launch(&client, count, size, sum, name, add, columns);
                } else {
                    add_rows::launch(&client, count, size, sum, name, add, columns);
                }
                let bytes = client.read_one(sums).expect("the kernel is right");
                let found = f32::from_bytes(&bytes);
                assert_eq!(
                    found, expected,
                    "{rows} by {columns}, atomically: {is_atomic}"
                );
            }
        }
    }
}
