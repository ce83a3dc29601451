//! Loading and launching as it should not be done, all on one device, which works in the end.

use super::{Table, message};
use cranelift_thisgpu::build::{self, GpuBuilder};
use cranelift_thisgpu::compile::Cache;
use cranelift_thisgpu::cranelift::codegen::ir::InstBuilder;
use cranelift_thisgpu::cranelift::codegen::ir::types::{F32, I32};
use cranelift_thisgpu::driver::Module;
use cranelift_thisgpu::{Compiler, Device, DevicePointer, Grid, Kernel, Options, SimConfig, asm};

const TEXT: &str = "
; kernel
function %scale(i64, f32) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64, v1: f32):
    v2 = call fn0()
    v3 = uextend.i64 v2
    v4 = iconst.i64 4
    v8 = imul v3, v4
    v5 = iadd v0, v8
    v6 = load.f32 aligned v5
    v7 = fmul v6, v1
    store aligned v7, v5
    return
}
; kernel
function %one(i32) {
block0(v0: i32):
    return
}
; kernel shared=1024
function %shares() {
block0:
    return
}
; kernel
function %traps() {
block0:
    trap user7
}
; kernel
function %endless() {
block0:
    jump block1
block1:
    jump block1
}
; kernel
function %loads(i64) {
block0(v0: i64):
    v1 = load.i32 aligned v0
    store aligned v1, v0
    return
}
";

fn load(device: &Device, text: &str) -> Result<Module, String> {
    let code = Compiler::new(Options::default())
        .compile_clif(text)
        .unwrap();
    device.load(&code).map_err(message)
}

/// A launch of one block without arguments.
fn launch(kernel: &Kernel, blocks: [u32; 3], threads: [u32; 3]) -> Result<(), String> {
    launch_of(kernel, Grid::new(blocks, threads))
}

/// A launch without arguments.
fn launch_of(kernel: &Kernel, grid: Grid) -> Result<(), String> {
    let launch = kernel.launch(grid);
    launch.run().map(|_| ()).map_err(message)
}

pub fn rows(table: &mut Table) {
    let config = SimConfig {
        budget: 10_000,
        memory_bytes: 1 << 20,
        ..SimConfig::default()
    };
    let device = Device::simulator(config);
    let module = load(&device, TEXT).unwrap();
    let [scale, one, shares, traps, endless, loads] =
        ["scale", "one", "shares", "traps", "endless", "loads"]
            .map(|name| module.kernel(name).unwrap());
    let x = device.upload(&[1.0f32, 2.0]).unwrap();
    let grid = Grid::new([1, 1, 1], [2, 1, 1]);

    table.row(
        "a kernel of a module almost",
        &["`scal`", "kernels: scale", "did you mean `scale`"],
        || module.kernel("scal").map(|_| ()).map_err(message),
    );
    table.row("a module without kernels", &["`k`", "none"], || {
        let module = load(&device, "function %f() {\nblock0:\n    return\n}")?;
        module.kernel("k").map(|_| ()).map_err(message)
    });
    table.row(
        "launch bounds that a function of another object breaks",
        &[
            "launch bounds of kernel `k`",
            "64 registers",
            "`wide`",
            "regs=64",
        ],
        || {
            let code = |text: &str| {
                let compiled = Compiler::new(Options::default()).compile_clif(text);
                compiled.unwrap().into_object()
            };
            let kernel = code(
                "; kernel max_threads=1024\nfunction %k(i64) \
                 {\n    fn0 = %wide(i64)\nblock0(v0: i64):\n    call fn0(v0)\n    return\n}",
            );
            // Reads everything before it writes anything.
            let [loads, stores] = ["v{i} = atomic_load.i32 v0", "store v{i}, v0+{i}"].map(|line| {
                (1..=80)
                    .map(|i| line.replace("{i}", &i.to_string()) + "\n")
                    .collect::<String>()
            });
            let wide = code(&format!(
                "function %wide(i64) {{\nblock0(v0: i64):\n{loads}{stores}return\n}}"
            ));
            device
                .load_all(&[kernel, wide])
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "an object that uses two that are not there",
        &["object 1: k+", "undefined symbol `first`", "undefined symbol `second`"],
        || {
            let text = "function %k() -> i64 {\n    gv0 = symbol %first\n    fn0 = %second() -> i64\nblock0:\n    v0 = symbol_value.i64 gv0\n    v1 = call fn0()\n    v2 = iadd v0, v1\n    return v2\n}";
            let code = Compiler::new(Options::default()).compile_clif(text).unwrap();
            device.load_all(&[code.into_object()]).map(|_| ()).map_err(message)
        },
    );
    table.row(
        "no arguments",
        &["`scale`", "takes 2 arguments", "0 were given"],
        || launch(&scale, [1; 3], [1; 3]),
    );
    table.row(
        "too few arguments",
        &["`scale`", "takes 2 arguments", "1 was given"],
        || {
            scale
                .launch(grid)
                .arg(&x)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "too many arguments",
        &["`one`", "takes 1 argument,", "2 were given"],
        || {
            one.launch(grid)
                .arg(1i32)
                .arg(2i32)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "arguments of a kernel without parameters",
        &["`shares`", "1 was given"],
        || {
            shares
                .launch(grid)
                .arg(1i32)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "a small number for a buffer",
        &["argument 0", "`scale`", "i32"],
        || {
            scale
                .launch(grid)
                .arg(1i32)
                .arg(2.0f32)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "a number of another size",
        &["argument 1", "`scale`", "f64"],
        || {
            scale
                .launch(grid)
                .arg(&x)
                .arg(2.0f64)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row("a buffer for a number", &["argument 0", "`one`"], || {
        one.launch(grid).arg(&x).run().map(|_| ()).map_err(message)
    });
    table.row(
        "a buffer of another device",
        &["argument 0", "another device"],
        || {
            let other = Device::simulator(SimConfig::default());
            let y = other.upload(&[1.0f32]).unwrap();
            scale
                .launch(grid)
                .arg(&y)
                .arg(1.0f32)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row("a block without threads", &["at least 1"], || {
        launch(&shares, [1; 3], [1, 0, 1])
    });
    table.row(
        "a block of too many threads",
        &["2048", "at most 1024"],
        || launch(&shares, [1; 3], [2048, 1, 1]),
    );
    table.row("a grid without blocks", &["at least 1"], || {
        launch(&shares, [0, 1, 1], [1; 3])
    });
    table.row("a grid of too many blocks", &["70000"], || {
        launch(&shares, [1, 70_000, 1], [1; 3])
    });
    table.row("too much shared memory", &["shared memory"], || {
        shares
            .launch(grid)
            .shared(u32::MAX)
            .run()
            .map(|_| ())
            .map_err(message)
    });
    let line = TEXT
        .lines()
        .position(|line| line.contains("user7"))
        .unwrap()
        + 1;
    let line = format!("line {line}");
    table.row("a trap", &["traps", "trap", "user7", &line], || {
        launch(&traps, [1; 3], [1; 3])
    });
    table.row(
        "an endless loop",
        &["endless", "budget", "SimConfig::budget"],
        || launch(&endless, [1; 3], [1; 3]),
    );
    table.row(
        "the null pointer",
        &["loads", "out of bounds", "0x0"],
        || {
            loads
                .launch(grid)
                .arg(DevicePointer(0))
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row("a misaligned address", &["loads", "misaligned"], || {
        let address = DevicePointer(x.address() + 1);
        loads
            .launch(Grid::new([1; 3], [1; 3]))
            .arg(address)
            .run()
            .map(|_| ())
            .map_err(message)
    });
    table.row(
        "more threads than elements",
        &["scale", "out of bounds", "thread (2,0,0)"],
        || {
            let y = device.upload(&[1.0f32, 2.0]).unwrap();
            scale
                .launch(Grid::for_elems(3, 3))
                .arg(&y)
                .arg(1.0f32)
                .run()
                .map(|_| ())
                .map_err(message)
        },
    );
    table.row(
        "more memory than there is",
        &["out of device memory", "2097152"],
        || device.allocate(2 << 20).map(|_| ()).map_err(message),
    );
    table.row("memory given back that nobody has", &["0x1234"], || {
        device.free(DevicePointer(0x1234)).map_err(message)
    });
    table.row("a symbol that is nowhere", &["undefined symbol", "nowhere"], || {
        let text = "; kernel\nfunction %k() {\n    fn0 = %nowhere()\nblock0:\n    call fn0()\n    return\n}";
        load(&device, text).map(|_| ())
    });
    table.row(
        "an ELF that is none",
        &["cannot load the object", "ELF"],
        || device.load_elf(b"hello").map(|_| ()).map_err(message),
    );
    table.row(
        "words that are no instructions",
        &["illegal instruction"],
        || {
            let mut object = asm::assemble("x.s", ".kernel k\nEXIT ;").unwrap().object;
            object.functions[0].words[0] = u128::MAX;
            let kernel = device
                .load(&object)
                .map_err(message)?
                .kernel("k")
                .map_err(message)?;
            launch(&kernel, [1; 3], [1; 3])
        },
    );

    table.row(
        "a negative number of elements",
        &["blocks", "4294967295"],
        || launch_of(&shares, Grid::for_elems(-1, 32)),
    );
    table.row("memory given back twice", &["no allocation begins"], || {
        let raw = device.zeros::<u32>(4).unwrap().into_raw();
        device.free(raw).unwrap();
        device.free(raw).map_err(message)
    });
    table.row(
        "buffers in a vector",
        &["argument 0", "array of 2", "pass one an argument"],
        || {
            let text = "; kernel\nfunction %k(i64x2) {\nblock0(v0: i64x2):\n    return\n}";
            let kernel = load(&device, text)?.kernel("k").map_err(message)?;
            let launch = kernel.launch(grid).arg([&x, &x]);
            launch.run().map(|_| ()).map_err(message)
        },
    );
    table.row(
        "an element behind the end",
        &["1 element from number 2 on is not inside a buffer of 2"],
        || x.write_at(2, &[1.0]).map_err(message),
    );
    table.row(
        "a kernel of several objects twice",
        &["`k`", "object 2"],
        || {
            let text = "; kernel\nfunction %k() {\nblock0:\n    return\n}";
            let code = Compiler::new(Options::default())
                .compile_clif(text)
                .unwrap();
            device.load_all([&code, &code]).map(|_| ()).map_err(message)
        },
    );
    table.row(
        "an intrinsic without its prefix",
        &[
            "undefined symbol `tid_x`",
            "did you mean the intrinsic `gpu_tid_x`?",
        ],
        || {
            let text = "; kernel\nfunction %k() \
             {\n    fn0 = %tid_x() -> i32\nblock0:\n    v0 = call fn0()\n    return\n}";
            load(&device, text).map(|_| ())
        },
    );
    table.row("a name with a byte 0", &["a\\0b", "rename it"], || {
        let func = build::function("a\0b", &[], &[], |b, _| {
            b.ins().return_(&[]);
        });
        let code = Compiler::new(Options::default())
            .function(&func, None)
            .unwrap();
        code.to_elf().map(|_| ()).map_err(message)
    });
    table.row("a float for a condition", &["%f", "i8, i16"], || {
        let func = build::function("f", &[F32], &[], |b, p| {
            let condition = p[0];
            b.if_then(condition, |b| {
                b.ins().return_(&[]);
            });
            b.ins().return_(&[]);
        });
        let code = Compiler::new(Options::default()).function(&func, None);
        code.map(|_| ()).map_err(message)
    });
    table.row(
        "a function that does not end",
        &["%f", "invalid CLIF"],
        || {
            let func = build::function("f", &[], &[], |b, _| {
                b.ins().iconst(I32, 1);
            });
            let code = Compiler::new(Options::default()).function(&func, None);
            code.map(|_| ()).map_err(message)
        },
    );
    table.row(
        "a barrier's result",
        &["%gpu_bar_sync", "declare it as %gpu_bar_sync()"],
        || {
            let func = build::function("f", &[], &[I32], |b, _| {
                let result = b.intrinsic("gpu_bar_sync", &[]);
                b.ins().return_(&[result]);
            });
            let code = Compiler::new(Options::default()).function(&func, None);
            code.map(|_| ()).map_err(message)
        },
    );
    table.row("a file for the cache's folder", &["Cargo.toml"], || {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        Cache::open(file, 1 << 20).map(|_| ()).map_err(message)
    });

    // What is asked of numbers that no launch has is answered.
    for (threads, shared) in [(0, 0), (u32::MAX, 0), (32, u32::MAX), (u32::MAX, u32::MAX)] {
        let most = device.properties().occupancy(threads, u32::MAX, shared);
        assert_eq!(most.blocks, 0, "{threads} threads, {shared} bytes");
        assert!(shares.occupancy(threads, shared).blocks <= most.most_warps);
    }
    // More stack than a thread can have is all that it can have.
    let config = SimConfig {
        stack_bytes: u32::MAX,
        ..SimConfig::default()
    };
    let module = load(&Device::simulator(config), TEXT).unwrap();
    launch(&module.kernel("shares").unwrap(), [1; 3], [1; 3]).unwrap();

    // The device, the module and the buffer are as they were.
    scale.launch(grid).arg(&x).arg(3.0f32).run().unwrap();
    assert_eq!(device.download::<f32>(&x).unwrap(), [3.0, 6.0]);
}
