//! What a launch and its kernel agree on: types of parameters, launch bounds, dynamic shared memory.

#![cfg(all(feature = "driver", feature = "sim"))]

use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, DeviceError, DeviceProperties, Grid, Limit};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::fmt::Write;

fn compile(text: &str) -> Result<Code, String> {
    let mut compiler = Compiler::new(Options::default());
    compiler.compile_clif(text).map_err(|e| e.to_string())
}

fn code(text: &str) -> Code {
    compile(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Sums of many values that are all needed at the end, so that registers are short; `mark` is the kernel's, `call` a
/// function of the same kind.
fn greedy(mark: &str, device_function: bool) -> String {
    const VALUES: usize = 120;
    let mut body = String::new();
    for i in 0..VALUES {
        let _ = writeln!(
            body,
            "    v{} = load.i32 notrap aligned v0+{}",
            i + 1,
            4 * i
        );
    }
    // Stored backwards behind a fence, so that all are alive at once.
    body.push_str("    fence\n");
    for i in (0..VALUES).rev() {
        let _ = writeln!(body, "    store notrap aligned v{}, v0+{}", i + 1, 4 * i);
    }
    let function = |name: &str, mark: &str, inside: &str| {
        format!("{mark}\nfunction %{name}(i64) {{\n{inside}    return\n}}\n\n")
    };
    if device_function {
        let callee = function("f", "", &format!("block0(v0: i64):\n{body}"));
        let call = "    fn0 = colocated %f(i64)\nblock0(v0: i64):\n    call fn0(v0)\n";
        callee + &function("k", mark, call)
    } else {
        function("k", mark, &format!("block0(v0: i64):\n{body}"))
    }
}

#[test]
fn bounds_steer_the_registers() {
    let properties = DeviceProperties::ASSIGNED;
    for device_function in [false, true] {
        let registers = |mark: &str| {
            let code = code(&greedy(mark, device_function));
            code.kernel("k").unwrap().resources().registers
        };
        assert!(registers("; kernel") > 100);
        for (mark, threads, blocks) in [
            ("; kernel max_threads=1024", 1024, 1),
            ("; kernel max_threads=256 min_blocks=4", 256, 4),
            ("; kernel min_blocks=2", 1024, 2),
            ("; kernel max_threads=100 min_blocks=6", 100, 6),
        ] {
            let used = registers(mark);
            let occupancy = properties.occupancy(threads, used, 0);
            assert!(
                occupancy.blocks >= blocks,
                "{mark}: {used} registers, {occupancy}"
            );
        }
    }
}

#[test]
fn bounds_that_cannot_be_kept_are_errors() {
    for (mark, expected) in [
        ("max_threads=0", "max_threads=0 is not from 1 to 1024"),
        ("max_threads=1025", "max_threads=1025 is not from 1 to 1024"),
        ("min_blocks=33", "min_blocks=33 is not from 1 to 32"),
        (
            "max_threads=1024 min_blocks=3",
            "3 blocks of 1024 threads are more than the 64 warps",
        ),
        (
            "shared=120000 max_threads=32 min_blocks=2",
            "2 blocks with 120000 bytes of shared memory",
        ),
    ] {
        let text = format!("; kernel {mark}\nfunction %k() {{\nblock0:\n    return\n}}\n");
        let message = compile(&text).unwrap_err();
        assert!(message.contains(expected), "{mark}: {message}");
    }
}

/// The bound goes with the object, through its file and its listing.
#[test]
fn a_larger_block_is_refused() {
    let code = code("; kernel max_threads=96\nfunction %k() {\nblock0:\n    return\n}\n");
    let device = Device::simulator(SimConfig::default());
    let module = device.load_elf(&code.to_elf().unwrap()).unwrap();
    let kernel = module.kernel("k").unwrap();
    assert_eq!(kernel.max_threads(), Some(96));
    kernel.launch(Grid::new([1; 3], [8, 12, 1])).run().unwrap();
    let refused = kernel.launch(Grid::new([1; 3], [97, 1, 1])).run();
    assert!(matches!(
        refused,
        Err(DeviceError::Bounds {
            threads: 97,
            most: 96,
            ..
        })
    ));
    let message = refused.unwrap_err().to_string();
    assert_eq!(
        message,
        "kernel `k` was compiled for blocks of at most 96 threads, not of 97"
    );
    let occupancy = kernel.occupancy(96, 100 << 10);
    assert_eq!((occupancy.blocks, occupancy.limit), (2, Limit::Shared));
    assert_eq!(device.properties(), DeviceProperties::ASSIGNED);
}

/// A kernel of CLIF names the types of its parameters.
#[test]
fn arguments_are_checked_by_the_types_of_clif() {
    let text = "; kernel\nfunction %k(f32, i16, i64) {\nblock0(v0: f32, v1: i16, v2: i64):\n    return\n}\n";
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code(text)).unwrap();
    let kernel = module.kernel("k").unwrap();
    let launch = || kernel.launch(Grid::for_elems(1, 1));
    let buffer = device.zeros::<f32>(1).unwrap();
    launch().arg(1f32).arg(-1i16).arg(&buffer).run().unwrap();
    launch().arg(1f32).arg(1u16).arg(7i64).run().unwrap();
    let error = launch().arg(1i32).arg(1u16).arg(&buffer).run().unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 0 of kernel `k` is i32, the parameter is f32"
    );
    let error = launch()
        .arg(1f32)
        .arg(&buffer)
        .arg(&buffer)
        .run()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 1 of kernel `k` is an address, the parameter is i16"
    );
}

/// The dynamic shared memory is behind the static one, and the kernel can read how much there is, by symbol and by
/// call.
#[test]
fn a_kernel_reads_its_dynamic_shared_size() {
    let text = "
; kernel shared=64
function %k(i64) {
    gv0 = symbol %gpu_dynamic_shared
    fn0 = %gpu_dynamic_shared() -> i32
block0(v0: i64):
    v1 = symbol_value.i32 gv0
    v2 = call fn0()
    v7 = iconst.i32 60
    v3 = iadd v2, v7
    v4 = iconst.i32 77
    store notrap aligned v4, v3
    v5 = load.i32 notrap aligned v3
    v6 = iadd v5, v2
    store notrap aligned v1, v0
    store notrap aligned v6, v0+4
    return
}
";
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&code(text)).unwrap();
    let out = device.zeros::<u32>(2).unwrap();
    for bytes in [4, 256, 100_000] {
        let kernel = module.kernel("k").unwrap();
        let launch = kernel.launch(Grid::for_elems(1, 1)).shared(bytes);
        launch.arg(&out).run().unwrap();
        assert_eq!(out.to_vec().unwrap(), [bytes, bytes + 77]);
    }
}
