//! What the library has on the device: messages of panics, the heap, and the bodies of `core` and `alloc`.

use crate::common;
use std::sync::LazyLock;
use thisgpu_build::{Compiled, Device, Error, Grid, Kernels, Module, SimConfig};

const SOURCE: &str = r#"
#![no_std]
extern crate alloc;
use alloc::{boxed::Box, format, string::String, vec::Vec};
use thisgpu_gpu::*;

struct Bad;
impl core::fmt::Display for Bad {
    fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        panic!("while it is printed")
    }
}

#[kernel]
pub fn says(which: u32, x: &[u32]) {
    let t = thread::index_x();
    match which {
        0 if t == 37 => panic!("{t} is {:?} and {:.2}", x.get(1), 1.5),
        1 => assert!(x[0] > 100, "thread {t} of block {}", thread::block_x()),
        2 => panic!("{Bad}"),
        3 => panic!("{}", "long ".repeat(2000)),
        4 => { let _ = x.iter().position(|x| *x == 9).ok_or("no nine").unwrap(); }
        6 => assert_eq!(x[0], 7, "of {t}"),
        7 => assert_ne!(x[0], 1),
        5 if t % 2 == 1 => panic!("odd"),
        5 => panic!("even"),
        _ => {}
    }
}

#[kernel]
pub fn allocates(rounds: u32, bytes: u32, out: &[core::sync::atomic::AtomicU32]) {
    let mut sum = 0u32;
    for round in 0..rounds {
        let mut all: Vec<u8> = Vec::new();
        for index in 0..bytes {
            all.push((index ^ round ^ thread::index_x()) as u8);
        }
        let boxed: Box<[u8]> = all.into();
        sum += boxed.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    }
    let text: String = format!("{sum}");
    out[thread::index_x() as usize].store(text.parse().unwrap_or(0), core::sync::atomic::Ordering::Relaxed);
}

#[repr(align(64))]
struct Aligned(u32);

#[kernel]
pub fn aligns(out: &[core::sync::atomic::AtomicU32]) {
    let boxed = Box::new(Aligned(thread::index_x()));
    let address = core::ptr::from_ref(&*boxed).addr() % 64;
    out[thread::index_x() as usize].store(boxed.0 + address as u32, core::sync::atomic::Ordering::Relaxed);
}
"#;

/// A crate whose static keeps what one launch has allocated for those behind it.
const KEEPING: &str = r#"#![no_std]
extern crate alloc;
use alloc::{boxed::Box, vec, vec::Vec};
use core::sync::atomic::{AtomicPtr, Ordering::{Acquire, AcqRel}};
use thisgpu_gpu::*;

static TABLE: AtomicPtr<Vec<u64>> = AtomicPtr::new(core::ptr::null_mut());

fn table() -> &'static [u64] {
    let mut known = TABLE.load(Acquire);
    if known.is_null() {
        let own = Box::into_raw(Box::new((0..8).map(|i| i * i).collect()));
        match TABLE.compare_exchange(known, own, AcqRel, Acquire) {
            Ok(_) => known = own,
            Err(first) => {
                // SAFETY: nobody else has it.
                drop(unsafe { Box::from_raw(own) });
                known = first;
            }
        }
    }
    // SAFETY: who is first writes it once.
    unsafe { &*known }
}

#[kernel]
pub fn look(mut y: DisjointMut<u64>) {
    let mine: Vec<u64> = vec![7777; 8];
    let table = table();
    if let Some(y) = y.thread_mut() {
        *y = table[thread::index_x() as usize % 8] + (mine[0] - 7777);
    }
}
"#;

/// What the crate is compiled by; tests share what comes of it.
static KERNELS: LazyLock<Kernels> = LazyLock::new(|| kernels("runtime", SOURCE));

fn kernels(name: &str, source: &str) -> Kernels {
    let folder = common::target().join(format!("{name}-crate"));
    let library = format!("{}/../gpu", env!("CARGO_MANIFEST_DIR"));
    let manifest = format!(
        "[package]\nname = \"given\"\nedition = \"2024\"\n[dependencies]\nthisgpu-gpu = {{ path = {library:?} \
         }}\n[workspace]\n"
    );
    std::fs::create_dir_all(folder.join("src")).expect("room");
    std::fs::write(folder.join("Cargo.toml"), manifest).expect("room");
    std::fs::write(folder.join("src/lib.rs"), source).expect("room");
    Kernels::new()
        .crate_dir(folder)
        .target_dir(common::target().join(name))
        .offline(true)
        .quiet(true)
}

fn compiled(messages: bool) -> Compiled {
    let kernels = KERNELS.clone().panic_messages(messages);
    kernels.compile().unwrap_or_else(|error| panic!("{error}"))
}

/// With messages of panics.
static LOUD: LazyLock<Compiled> = LazyLock::new(|| compiled(true));

fn checking() -> Device {
    Device::simulator(SimConfig {
        check: true,
        budget: 1 << 30,
        launch_budget: 1 << 30,
        ..SimConfig::default()
    })
}

/// The error of a launch of four warps.
fn said(device: &Device, module: &Module, which: u32) -> Error {
    let x = device.upload(&[1u32, 2, 3]).expect("room");
    let kernel = module.kernel("says").expect("there");
    let launch = kernel.launch(Grid::new([2, 1, 1], [64, 1, 1]));
    launch.arg(which).arg(&x).run().expect_err("it panics")
}

/// The message of a panic.
fn written(error: Error) -> thisgpu_build::Message {
    match error {
        Error::Panic {
            message: Some(message),
            ..
        } => *message,
        other => panic!("no message: {other}"),
    }
}

#[test]
fn panics_say_what_they_would_on_the_host() {
    let device = checking();
    let module = LOUD.load(&device).expect("room");
    for (which, expected) in [
        (0, "37 is Some(2) and 1.50"),
        (1, "thread 0 of block "),
        (
            6,
            "assertion `left == right` failed: of 0\n  left: 1\n right: 7",
        ),
        (7, "assertion `left != right` failed\n  left: 1\n right: 1"),
        (
            4,
            "called `Result::unwrap()` on an `Err` value: \"no nine\"",
        ),
    ] {
        let error = said(&device, &module, which);
        let Error::Panic {
            message: Some(message),
            fault,
            ..
        } = &error
        else {
            panic!("{which}: {error}")
        };
        assert!(message.text.starts_with(expected), "{}", message.text);
        assert!(error.to_string().contains(expected), "{error}");
        let source = fault.place.source.as_ref().expect("a line");
        assert!(
            source
                .to_string()
                .contains(&format!("line {}, ", message.line)),
            "{error}"
        );
        assert_eq!(message.file, "src/lib.rs");
    }
    // Of two that panic together the one that says so has written it.
    let message = written(said(&device, &module, 5));
    let odd = message.thread[0] % 2 == 1;
    assert_eq!(message.text, if odd { "odd" } else { "even" });
    // A message that does not fit ends in an ellipsis.
    let message = written(said(&device, &module, 3));
    assert!(message.text.len() > 4000 && message.text.ends_with('…'));
    // A panic while a message is made does not wait for itself.
    assert!(matches!(said(&device, &module, 2), Error::Panic { .. }));
    // The next launch is as if nothing had been.
    let x = device.upload(&[1u32]).expect("room");
    let kernel = module.kernel("says").expect("there");
    kernel
        .launch(Grid::new([1; 3], [1; 3]))
        .arg(9u32)
        .arg(&x)
        .run()
        .expect("no panic");
}

#[test]
fn without_messages_a_panic_is_an_instruction() {
    let device = checking();
    let quiet = compiled(false).load(&device).expect("room");
    let error = said(&device, &quiet, 0);
    assert!(
        matches!(&error, Error::Panic { message: None, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("panicked at line "), "{error}");
    let loud = LOUD.load(&device).expect("room");
    let registers = |module: &Module| {
        let kernel = module.kernel("says").expect("there");
        kernel.driver().resources().registers
    };
    assert!(registers(&quiet) < registers(&loud));
}

#[test]
fn memory_is_used_again_and_ends() {
    let device = checking();
    let module = LOUD.load(&device).expect("room");
    let out = device.zeros::<u32>(64).expect("room");
    let launch = |rounds: u32, bytes: u32, heap: u64| {
        let kernel = module.kernel("allocates").expect("there");
        let launch = kernel.launch(Grid::new([1; 3], [64, 1, 1])).heap(heap);
        launch.arg(rounds).arg(bytes).arg(&out).run()
    };
    let report = launch(10, 50, 1 << 20).expect("room enough");
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
    let expected = |t: u32| -> u32 {
        let all = (0..10).flat_map(|round| (0..50).map(move |index| (index ^ round ^ t) as u8));
        all.map(u32::from).sum()
    };
    let sums = out.to_vec().expect("there");
    assert!((0..64).all(|t| sums[t as usize] == expected(t)), "{sums:?}");
    let error = launch(1, 20_000, 1 << 18).expect_err("no room");
    let message = error.to_string();
    assert!(
        message.contains("memory allocation of") && message.contains("of 262144 bytes"),
        "{message}"
    );
    // The next launch has all of it.
    launch(1, 10, 1 << 20).expect("room again");
    let kernel = module.kernel("aligns").expect("there");
    kernel
        .launch(Grid::new([1; 3], [64, 1, 1]))
        .arg(&out)
        .run()
        .expect("room");
    assert_eq!(out.to_vec().expect("there"), (0..64).collect::<Vec<u32>>());
}

#[test]
fn what_a_static_points_to_stays() {
    let compiled = kernels("keeping", KEEPING).compile();
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let device = checking();
    let module = compiled.load(&device).expect("room");
    let mut out = device.zeros::<u64>(32).expect("room");
    let mut launch = |heap: u64| {
        let kernel = module.kernel("look").expect("there");
        let launch = kernel.launch(Grid::new([1; 3], [32, 1, 1])).heap(heap);
        launch
            .arg(&mut out)
            .run()
            .map(|_| out.to_vec().expect("there"))
    };
    let squares: Vec<u64> = (0..32).map(|i| (i % 8) * (i % 8)).collect();
    for _ in 0..3 {
        assert_eq!(launch(1 << 20).expect("room"), squares);
    }
    // A smaller bound holds for what is allocated anew.
    assert_eq!(launch(1 << 16).expect("blocks are used again"), squares);
    let error = launch(1 << 21)
        .expect_err("the heap cannot grow")
        .to_string();
    assert!(
        error.contains("TABLE") && error.contains("1048576 bytes"),
        "{error}"
    );
    let again = compiled.load(&device).expect("room");
    let kernel = again.kernel("look").expect("there");
    let larger = kernel.launch(Grid::new([1; 3], [32, 1, 1])).heap(1 << 21);
    larger.arg(&mut out).run().expect("a heap of its own");
    assert_eq!(out.to_vec().expect("there"), squares);
}
