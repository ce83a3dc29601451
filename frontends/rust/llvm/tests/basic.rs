//! Kernels in ordinary Rust, compiled by rustc, translated and run on the simulator.

mod common;

use common::Level;
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::object::Linker;
use cranelift_thisgpu::{
    Device, DeviceError, FaultKind, Grid, KernelOptions, Object, Options, SimConfig, asm,
};
use std::path::Path;
use thisgpu_llvm::flags::DebugInfo;
use thisgpu_llvm::panics::Reason;
use thisgpu_llvm::{Error, Kernel, Program, Translation, translate};

const LEVELS: [Level; 4] = [
    Level::Convergent,
    Level::Of("0"),
    Level::Of("2"),
    Level::Of("s"),
];

fn program(level: Level) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rust/basic.rs");
    common::program(&source, level, DebugInfo::Lines)
}

fn translated(program: &Program, names: &[&str]) -> Result<Translation, Vec<Error>> {
    let kernels: Vec<Kernel> = (names.iter())
        .map(|name| Kernel {
            name: (*name).to_owned(),
            options: KernelOptions::default(),
        })
        .collect();
    translate(program, &kernels, &Options::default())
}

fn of(program: &Program, name: &str) -> Translation {
    translated(program, &[name]).unwrap_or_else(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{name}: {}", errors.join("\n"))
    })
}

#[test]
fn kernels_do_what_the_host_does() {
    for level in LEVELS {
        let program = program(level);
        let device = Device::simulator(SimConfig::default());
        let numbers: Vec<u32> = (0..128_u32)
            .map(|i| i.wrapping_mul(0x9e37_79b9) >> 20)
            .collect();
        let x = device.upload(&numbers).unwrap();
        let floats: Vec<f32> = (0..128).map(|i| i as f32 / 8.0).collect();

        let (a, y) = (
            device.upload(&floats).unwrap(),
            device.upload(&floats).unwrap(),
        );
        let run = |name: &str| {
            device
                .load(&of(&program, name).code)
                .unwrap()
                .kernel(name)
                .unwrap()
        };
        let saxpy = run("saxpy");
        saxpy
            .launch(Grid::for_elems(128, 64))
            .args(&[&100_u32, &2.0_f32, &a, &y])
            .run()
            .unwrap();
        let expected: Vec<f32> = (floats.iter().enumerate())
            .map(|(i, x)| if i < 100 { 2.0 * x + x } else { *x })
            .collect();
        assert_eq!(device.download::<f32>(&y).unwrap(), expected, "{level:?}");

        let starts: Vec<u32> = (1..=128).collect();
        let (start, count) = (
            device.upload(&starts).unwrap(),
            device.zeros::<u32>(128).unwrap(),
        );
        run("collatz")
            .launch(Grid::for_elems(128, 64))
            .args(&[&start, &count])
            .run()
            .unwrap();
        let counts = device.download::<u32>(&count).unwrap();
        assert_eq!((counts[0], counts[26]), (1, 112), "{level:?}");

        let rows: Vec<u32> = (0..32 * 40_u32)
            .map(|i| i.wrapping_mul(0x85eb_ca6b) >> 3)
            .collect();
        let sorted = device.upload(&rows).unwrap();
        run("sort_rows")
            .launch(Grid::for_elems(32, 32))
            .args(&[&sorted])
            .run()
            .unwrap();
        let mut expected = rows;
        expected.chunks_mut(40).for_each(<[u32]>::sort_unstable);
        assert_eq!(
            device.download::<u32>(&sorted).unwrap(),
            expected,
            "{level:?}"
        );

        let z = device.zeros::<f32>(128).unwrap();
        run("shapes")
            .launch(Grid::for_elems(128, 64))
            .args(&[&a, &z])
            .run()
            .unwrap();
        let areas = device.download::<f32>(&z).unwrap();
        for (i, (side, area)) in floats.iter().zip(areas).enumerate() {
            let factor = if i % 3 == 0 { 1.0 } else { 3.0 };
            let letters = ["", "a", "bc", "def"][i % 4]
                .bytes()
                .map(u32::from)
                .sum::<u32>();
            let expected = factor * side * side * side.sin() + letters as f32;
            assert!(
                (expected - area).abs() <= 1e-3,
                "{level:?}: {i}: {area} {expected}"
            );
        }

        let sums = device.zeros::<u32>(128).unwrap();
        run("warp_sum")
            .launch(Grid::for_elems(128, 64))
            .args(&[&x, &sums])
            .run()
            .unwrap();
        let sums = device.download::<u32>(&sums).unwrap();
        for (warp, sums) in numbers.chunks(32).zip(sums.chunks(32)) {
            assert_eq!(sums, [warp.iter().sum::<u32>(); 32], "{level:?}");
        }

        let reversed = device.zeros::<u32>(128).unwrap();
        run("reverse")
            .launch(Grid::for_elems(128, 64))
            .args(&[&x, &reversed])
            .run()
            .unwrap();
        let mut expected = numbers.clone();
        expected.chunks_mut(64).for_each(<[u32]>::reverse);
        assert_eq!(
            device.download::<u32>(&reversed).unwrap(),
            expected,
            "{level:?}"
        );

        let counts = device.zeros::<u32>(8).unwrap();
        run("histogram")
            .launch(Grid::for_elems(128, 64))
            .args(&[&x, &counts])
            .run()
            .unwrap();
        let mut expected = [0; 8];
        numbers
            .iter()
            .for_each(|number| expected[(number % 8) as usize] += 1);
        assert_eq!(
            device.download::<u32>(&counts).unwrap(),
            expected,
            "{level:?}"
        );
    }
}

#[test]
fn a_panic_names_the_line_of_the_source() {
    let program = program(Level::Convergent);
    let device = Device::simulator(SimConfig::default());
    let x = device.upload(&[1_u32; 32]).unwrap();
    let y = device.zeros::<u32>(64).unwrap();
    let kernel = device
        .load(&of(&program, "pick").code)
        .unwrap()
        .kernel("pick")
        .unwrap();
    let launch = kernel
        .launch(Grid::for_elems(64, 64))
        .args(&[&x, &32_u64, &y])
        .run();
    let Err(DeviceError::Fault { fault, .. }) = launch else {
        panic!("a fault: {launch:?}");
    };
    assert_eq!(
        fault.kind,
        FaultKind::Trap {
            code: Reason::Bounds.code()
        }
    );
    let source = include_str!("rust/basic.rs");
    let line = 1 + source
        .lines()
        .position(|line| line.contains("values[i]"))
        .unwrap();
    let said = fault.to_string();
    assert!(
        said.contains("basic.rs") && said.contains(&format!("line {line}")),
        "{said}"
    );
}

#[test]
fn a_fault_names_the_calls_that_were_inlined() {
    let program = program(Level::Convergent);
    let code = of(&program, "nested").code;
    let source = include_str!("rust/basic.rs");
    let line = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap();
    let chain = [
        line("values[at]"),
        line("= outer_of(at"),
        line("inner_of(at, values) + 1"),
    ];
    let fault = |code: &Code| {
        let device = Device::simulator(SimConfig::default());
        let (x, y) = (
            device.upload(&[1_u32; 4]).unwrap(),
            device.zeros::<u32>(1).unwrap(),
        );
        let kernel = device.load(code).unwrap().kernel("nested").unwrap();
        match kernel
            .launch(Grid::for_elems(1, 1))
            .args(&[&x, &9_u32, &y])
            .run()
        {
            Err(DeviceError::Fault { fault, .. }) => fault.place.source.unwrap(),
            other => panic!("a fault: {other:?}"),
        }
    };
    let said = fault(&code);
    let numbers: Vec<usize> = (said.split("line ").skip(1))
        .map(|rest| rest.split([',', ' ']).next().unwrap().parse().unwrap())
        .collect();
    // The panic's own place comes first, then the calls from the inside to the outside.
    assert_eq!(numbers, [chain[0], chain[2], chain[1]], "{said}");
    // Files, texts and linked files keep them.
    let object = Object::read(&code.to_elf().unwrap()).unwrap();
    assert_eq!(object.calls, code.object().calls);
    let (listing, bad) = asm::listing(&object);
    assert!(bad.is_empty());
    let assembled = asm::assemble("k.s", &listing).unwrap().object;
    assert_eq!(fault(&Code::of_object(assembled)), said);
    let other = of(&program, "pick").code;
    let linker = Linker::new().add("pick", &other).add("nested", &object);
    let linked = linker.link().unwrap();
    assert_eq!(fault(&Code::of_object(linked)), said);
}

#[test]
fn what_is_not_supported_is_said_with_file_and_line() {
    let program = program(Level::Convergent);
    let source = include_str!("rust/basic.rs");
    for (kernel, line, words) in [
        (
            "bodiless",
            "from_utf8(bytes)",
            "core::str::converts::from_utf8",
        ),
        ("assembled", "asm!", "assembly of the host"),
    ] {
        let errors = translated(&program, &[kernel]).unwrap_err();
        let line = 1 + source.lines().position(|of| of.contains(line)).unwrap();
        let said = errors[0].to_string();
        assert!(said.contains(words), "{said}");
        assert!(said.contains(&format!("basic.rs:{line}:")), "{said}");
    }
    let errors = translated(&program, &["nothing"]).unwrap_err();
    assert!(errors[0].to_string().contains("not defined"));
}
