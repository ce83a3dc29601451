//! A tour of the kernel library on the device, and what goes wrong.

use crate::common;
use std::fs;
use std::sync::LazyLock;
use thisgpu_build::{Compiled, Device, Error, Grid, Kernels, Module, OptLevel, SimConfig};

static TOUR: LazyLock<Compiled> = LazyLock::new(|| common::compiled("tour"));

fn checking() -> (Device, Module) {
    common::checking(&TOUR)
}

#[test]
fn blocks_sum_in_shared_memory() {
    let (device, module) = checking();
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let x = device.upload(&x).unwrap();
    let mut out = device.zeros::<f32>(2).unwrap();
    let report = module
        .kernel("block_sums")
        .unwrap()
        .launch(Grid::new([2, 1, 1], [256, 1, 1]))
        .arg(&x)
        .arg(&mut out)
        .run()
        .unwrap();
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
    assert_eq!(out.to_vec().unwrap().iter().sum::<f32>(), 499_500.0);
    // A block of more threads than the kernel is compiled for.
    let larger = module
        .kernel("block_sums")
        .unwrap()
        .launch(Grid::new([1, 1, 1], [512, 1, 1]))
        .arg(&x)
        .arg(&mut out)
        .run();
    assert!(larger.unwrap_err().to_string().contains("256"));
}

/// Vectors, boxed closures and maps, in the memory of the crate's own allocator.
#[test]
fn a_crate_may_bring_an_allocator() {
    let (device, module) = checking();
    let numbers: Vec<u32> = (0..30).map(|i| i * 7 % 31).collect();
    let x = device.upload(&numbers).unwrap();
    let mut out = device.zeros::<u32>(16).unwrap();
    let launch = module.kernel("remainders").unwrap();
    let launch = launch.launch(Grid::new([1, 1, 1], [16, 1, 1]));
    let report = launch.arg(&x).arg(&mut out).run().unwrap();
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
    let most = |divisor: u32| {
        let count = |remainder| {
            numbers
                .iter()
                .filter(|x| **x % divisor == remainder)
                .count()
        };
        (0..divisor).map(count).max().unwrap() as u32
    };
    let expected: Vec<u32> = (0..16).map(|thread| most(thread + 2)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
}

#[test]
fn atomics_count_in_both_memories() {
    let (device, module) = checking();
    let bytes: Vec<u8> = (0..5000u32).map(|i| (i * i % 251) as u8).collect();
    let given = device.upload(&bytes).unwrap();
    let counts = device.zeros::<u32>(256).unwrap();
    let report = module
        .kernel("histogram")
        .unwrap()
        .launch(Grid::new([3, 1, 1], [128, 1, 1]))
        .arg(&given)
        .arg(&counts)
        .run()
        .unwrap();
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
    let mut expected = [0u32; 256];
    bytes
        .iter()
        .for_each(|byte| expected[usize::from(*byte)] += 1);
    assert_eq!(counts.to_vec().unwrap(), expected);

    let x = device.upload(&[0.5f32; 100]).unwrap();
    let sum = device.zeros::<f32>(1).unwrap();
    module
        .kernel("total")
        .unwrap()
        .launch(Grid::for_elems(100, 64))
        .arg(&x)
        .arg(&sum)
        .run()
        .unwrap();
    assert_eq!(sum.to_vec().unwrap(), [50.0]);
}

#[test]
fn lanes_work_together() {
    let (device, module) = checking();
    let x: Vec<u32> = (0..64).map(|i| i * i + 3).collect();
    let given = device.upload(&x).unwrap();
    let mut out = device.zeros::<[u32; 4]>(64).unwrap();
    module
        .kernel("warps")
        .unwrap()
        .launch(Grid::new([1, 1, 1], [64, 1, 1]))
        .arg(&given)
        .arg(&mut out)
        .run()
        .unwrap();
    for (i, found) in out.to_vec().unwrap().into_iter().enumerate() {
        let first = i / 32 * 32;
        let warp = &x[first..first + 32];
        let odd = warp
            .iter()
            .enumerate()
            .fold(0, |mask, (lane, x)| mask | (x % 2) << lane);
        let expected = [
            warp.iter().sum(),
            x[first..=i].iter().sum(),
            warp[(i + 1) % 32],
            odd,
        ];
        assert_eq!(found, expected, "thread {i}");
    }
}

#[test]
fn structures_and_values_cross() {
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    struct Particle {
        position: [f32; 3],
        kind: u32,
    }
    let (device, module) = checking();
    let particle = |x: f32, kind| Particle {
        position: [x; 3],
        kind,
    };
    let mut particles = device
        .upload(&[particle(0.25, 7), particle(3.5, 9)])
        .unwrap();
    let speed = device.upload(&[[1.0f32, 2.0, 4.0]]).unwrap();
    let step = module.kernel("step").unwrap();
    step.launch(Grid::for_elems(2, 32))
        .arg(0.5f32)
        .arg(true)
        .arg(&speed)
        .arg(&mut particles)
        .run()
        .unwrap();
    let expected = [
        Particle {
            position: [0.75, 0.25, 0.25],
            kind: 8,
        },
        Particle {
            position: [0.0, 0.5, 0.5],
            kind: 10,
        },
    ];
    assert_eq!(particles.to_vec().unwrap(), expected);

    let mut x = device.upload(&[1u32, 2, 3, 4, 5, 6]).unwrap();
    module
        .kernel("reverse")
        .unwrap()
        .launch(Grid::new([2, 1, 1], [3, 1, 1]))
        .shared(12)
        .arg(&mut x)
        .run()
        .unwrap();
    assert_eq!(x.to_vec().unwrap(), [3, 2, 1, 6, 5, 4]);

    let mut x = device.upload(&[1.0f32, 2.0]).unwrap();
    module
        .kernel("mathematics")
        .unwrap()
        .launch(Grid::for_elems(2, 32))
        .arg(&mut x)
        .run()
        .unwrap();
    for (found, x) in x.to_vec().unwrap().into_iter().zip([1.0f32, 2.0]) {
        assert!((found - ((x * x + 1.0).sqrt() + x / 2.0)).abs() < 1e-5);
    }
}

#[test]
fn output_is_formatted_on_the_host() {
    let (device, module) = checking();
    let x = device.upload(&[1.0f32, 2.5, -3.0]).unwrap();
    let report = module.kernel("report").unwrap();
    for _ in 0..2 {
        let (outcome, text) = report
            .launch(Grid::new([1, 1, 1], [3, 1, 1]))
            .arg(&x)
            .run_with_output();
        outcome.unwrap();
        assert_eq!(
            text,
            "0:    1.00 false 0x0000\n1:    2.50 false 0x0064\n2:   -3.00 true 0x00c8\n"
        );
    }
}

/// The line of `tour/src/lib.rs` that has a text, once.
fn line_of(text: &str) -> usize {
    let source = fs::read_to_string(common::examples().join("tour/src/lib.rs")).unwrap();
    source
        .lines()
        .position(|line| line.contains(text))
        .expect("there")
        + 1
}

#[test]
fn panics_name_their_lines() {
    let (device, module) = checking();
    let x = device.upload(&[1u32, 2]).unwrap();
    let panics = module.kernel("panics").unwrap();
    for (which, text, why) in [
        (0u32, "panic!(\"on purpose\")", ": on purpose; block"),
        (1, "assert_eq!(x[0], 7)", "  left: 1\n right: 7"),
        (
            2,
            "assert!(x[x.len()] > 0)",
            "index out of bounds: the len is 2 but the index is 2",
        ),
        (3, "checked_sub(100)", ""),
        (4, "find(|x| **x > 1000)", "unwrap"),
        (6, ".set(0, x[0] + 1)", ""),
    ] {
        let outcome = panics
            .launch(Grid::new([1, 1, 1], [2, 1, 1]))
            .arg(which)
            .arg(&x)
            .run();
        let Err(error @ Error::Panic { .. }) = outcome else {
            panic!("{which}: {outcome:?}")
        };
        let message = error.to_string();
        assert!(
            message.contains(&format!("line {}, ", line_of(text))),
            "{message}"
        );
        assert!(
            message.contains("tour/src/lib.rs")
                && message.contains("thread (0,0,0)")
                && message.contains(why),
            "{message}"
        );
    }
    // Only where they are asked for.
    panics
        .launch(Grid::new([1, 1, 1], [1, 1, 1]))
        .arg(5u32)
        .arg(&x)
        .run()
        .unwrap();
}

#[test]
fn arguments_are_those_of_the_rust_function() {
    let (device, module) = checking();
    let (mut floats, doubles) = (
        device.zeros::<f32>(4).unwrap(),
        device.zeros::<f64>(4).unwrap(),
    );
    let sums = module.kernel("block_sums").unwrap();
    let grid = Grid::new([1, 1, 1], [32, 1, 1]);
    let message = |error: Result<_, Error>| {
        error
            .map(|_: thisgpu_build::Report| ())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(sums.launch(grid).arg(&floats).run()),
        "kernel `block_sums` takes 2 arguments (x, out), 1 given"
    );
    let read_only = message(sums.launch(grid).arg(&floats.clone()).arg(&floats).run());
    assert_eq!(
        read_only,
        "kernel `block_sums`, parameter `out`: is written by the kernel: pass `&mut buffer`"
    );
    let other = message(sums.launch(grid).arg(&doubles).arg(&mut floats).run());
    assert_eq!(
        other,
        "kernel `block_sums`, parameter `x`: is memory with elements f32, a buffer of f64 was given"
    );
    let number = message(sums.launch(grid).arg(1.0f32).arg(&mut floats).run());
    assert_eq!(
        number,
        "kernel `block_sums`, parameter `x`: is memory with elements f32, f32 was given; pass a buffer"
    );
    let panics = module.kernel("panics").unwrap();
    let words = device.zeros::<u32>(1).unwrap();
    let float = message(panics.launch(grid).arg(1.0f32).arg(&words).run());
    assert_eq!(
        float,
        "kernel `panics`, parameter `which`: is u32, f32 was given"
    );
    assert!(matches!(module.kernel("sums"), Err(Error::Device(_))));
}

#[test]
fn nothing_is_translated_twice() {
    LazyLock::force(&TOUR);
    assert!(common::compiled("tour").is_fresh());
}

#[test]
fn levels_and_checks_change_the_code_and_not_the_results() {
    for level in ["0", "s"] {
        let level = OptLevel::parse(level).expect("a level");
        let compiled = common::example("tour")
            .opt_level(level)
            .debug_assertions(true)
            .overflow_checks(true)
            .compile();
        let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
        let device = Device::simulator(SimConfig::default());
        let module = compiled.load(&device).unwrap();
        let x = device.upload(&[1.0f32; 300]).unwrap();
        let mut out = device.zeros::<f32>(1).unwrap();
        module
            .kernel("block_sums")
            .unwrap()
            .launch(Grid::new([1, 1, 1], [256, 1, 1]))
            .arg(&x)
            .arg(&mut out)
            .run()
            .unwrap();
        assert_eq!(out.to_vec().unwrap(), [300.0]);
        // `debug_assert!` is there now.
        let words = device.upload(&[1u32]).unwrap();
        let outcome = module
            .kernel("panics")
            .unwrap()
            .launch(Grid::new([1, 1, 1], [1, 1, 1]))
            .arg(5u32)
            .arg(&words)
            .run();
        assert!(matches!(outcome, Err(Error::Panic { .. })), "{outcome:?}");
    }
}

/// A crate with this library, in a folder of its own, which a test builds apart from other tests'.
fn crate_of(test: &str, source: &str) -> (tempfile::TempDir, Kernels) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = format!("{}/../gpu", env!("CARGO_MANIFEST_DIR"));
    let manifest = format!(
        "[package]\nname = \"given\"\nedition = \"2024\"\n[dependencies]\nthisgpu-gpu = {{ path = {library:?} \
         }}\n[workspace]\n"
    );
    fs::create_dir(folder.path().join("src")).expect("room");
    fs::write(folder.path().join("Cargo.toml"), manifest).expect("room");
    fs::write(folder.path().join("src/lib.rs"), source).expect("room");
    let kernels = Kernels::new()
        .crate_dir(folder.path())
        .target_dir(common::target().join(test))
        .quiet(true)
        .offline(true);
    (folder, kernels)
}

#[test]
fn what_is_not_supported_is_named_with_its_line() {
    let source = "#![no_std]
extern crate alloc;
extern crate std;
use thisgpu_gpu::*;
#[kernel]
pub fn allocates(out: &[core::sync::atomic::AtomicU32]) {
    let mut words = alloc::vec::Vec::new();
    words.push(out.len());
    out[words.len()].store(0, core::sync::atomic::Ordering::Relaxed);
}
#[kernel]
pub fn assembles(mut out: DisjointMut<u32>) {
    let x: u32;
    unsafe { core::arch::asm!(\"rdtsc\", out(\"eax\") x, out(\"edx\") _) }; // line 14
    *out.thread_mut().unwrap() = x;
}
#[kernel]
pub fn sleeps() {
    std::thread::sleep(core::time::Duration::from_secs(1)); // line 19
}
";
    let (_folder, kernels) = crate_of("unsupported", source);
    let Err(Error::Translation(errors)) = kernels.compile() else {
        panic!("translated")
    };
    let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
    for (line, what) in [
        (14, "assembly of the host (`rdtsc`) is not supported"),
        (19, "sleep"),
    ] {
        let place = format!("src/lib.rs:{line}:");
        assert!(
            text.iter()
                .any(|error| error.starts_with(&place) && error.contains(what)),
            "{line} {what}: {text:#?}"
        );
    }
    // What allocates has the launch's heap.
    assert_eq!(errors.len(), 2, "{text:#?}");
}

#[test]
fn errors_of_rustc_and_missing_kernels_are_told() {
    let (_folder, kernels) = crate_of(
        "errors",
        "#![no_std]\nuse thisgpu_gpu::*;\n#[kernel]\npub fn wrong(x: &str) {}\n",
    );
    let error = kernels.compile().expect_err("no parameter").to_string();
    assert!(
        error.contains("`str` cannot be in a buffer of the device")
            && error.contains("src/lib.rs:4"),
        "{error}"
    );
    for (signature, message) in [
        ("pub fn k() -> u32 { 1 }", "a kernel returns nothing"),
        ("pub fn k<T>(x: T) {}", "so it says with which types"),
        (
            "pub fn k<'a>(x: &'a [u32]) {}",
            "a kernel has no lifetime parameters",
        ),
        (
            "pub fn k(x: Forever) {}\ntype Forever = DisjointMut<'static, u32>;",
            "argument requires that borrow lasts for `'static`",
        ),
        ("pub async fn k() {}", "a kernel cannot be async"),
        ("pub struct K;", "a kernel is a function"),
    ] {
        let (_folder, kernels) = crate_of(
            "errors",
            &format!("#![no_std]\nuse thisgpu_gpu::*;\n#[kernel]\n{signature}\n"),
        );
        let error = kernels.compile().expect_err(signature).to_string();
        assert!(error.contains(message), "{error}");
    }
    let (_folder, kernels) = crate_of("errors", "#![no_std]\n");
    assert!(matches!(kernels.compile(), Err(Error::NoKernels(_))));
    let missing = Kernels::new().crate_dir("no/such/folder").compile();
    assert!(matches!(missing, Err(Error::File { .. })), "{missing:?}");
    // Without rustup there is one toolchain, whatever name is given.
    if std::process::Command::new("rustup")
        .arg("--version")
        .output()
        .is_err()
    {
        return;
    }
    let (_folder, kernels) = crate_of("errors", "#![no_std]\n");
    let unknown = kernels.toolchain("thisgpu-none").compile();
    assert!(
        matches!(
            unknown,
            Err(Error::Toolchain { .. } | Error::Program { .. })
        ),
        "{unknown:?}"
    );
}

/// Two builds of the same crate at the same time: one translates, the other waits and takes what it made.
#[test]
fn builds_of_one_crate_do_not_meet() {
    let folder = common::target().join("together");
    let compile = || {
        let kernels = common::example("tour").target_dir(&folder);
        kernels.compile().unwrap_or_else(|error| panic!("{error}"))
    };
    for _ in 0..3 {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a folder can be read").path();
            if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("kernels-"))
            {
                fs::remove_dir_all(&path).expect("nobody builds now");
            }
        }
        std::thread::scope(|scope| {
            let builds = [(); 4].map(|()| scope.spawn(compile));
            let made = builds.map(|build| build.join().expect("no build panics"));
            assert_eq!(made.iter().filter(|made| !made.is_fresh()).count(), 1);
        });
    }
}
