//! Branches by tables that the constant bank has no room for.

#![cfg(all(feature = "driver", feature = "sim"))]

use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Entries of the table: more than 64 KiB of offsets.
const ENTRIES: u32 = 17_000;

/// out[tid] = what the table says of tid * v1, and of out[tid] at entry, which is small.
fn text() -> String {
    let targets: Vec<String> = (0..ENTRIES)
        .map(|i| format!("block{}", 2 + i * i % 7))
        .collect();
    let targets = targets.join(", ");
    let cases: String = (0..7)
        .map(|i| {
            format!(
                "block{}:\n    v{} = iconst.i32 {}\n    jump block9(v{})\n",
                2 + i,
                20 + i,
                100 + i,
                20 + i
            )
        })
        .collect();
    format!(
        "; kernel
function %k(i64, i32) {{
    fn0 = %gpu_tid_x() -> i32
    fn1 = %small(i32) -> i32

block0(v0: i64, v1: i32):
    v2 = call fn0()
    v3 = imul v2, v1
    v4 = uextend.i64 v2
    v5 = iconst.i64 2
    v6 = ishl v4, v5
    v7 = iadd v0, v6
    v8 = load.i32 aligned v7
    br_table v3, block1, [{targets}]
block1:
    v10 = iconst.i32 -1
    jump block9(v10)
{cases}block9(v11: i32):
    v12 = call fn1(v8)
    v13 = iconst.i32 1000
    v14 = imul v12, v13
    v15 = iadd v14, v11
    store aligned v15, v7
    return
}}

function %small(i32) -> i32 {{
block0(v0: i32):
    br_table v0, block1, [block2, block3, block2, block3]
block1:
    v1 = iconst.i32 3
    return v1
block2:
    v2 = iconst.i32 1
    return v2
block3:
    v3 = iconst.i32 2
    return v3
}}
"
    )
}

#[test]
fn a_table_larger_than_the_bank_is_read_from_global_memory() {
    let code = Compiler::new(Options::default())
        .compile_clif(&text())
        .unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(code.object().data.len(), 1, "the large table");
    // The small one comes later and still finds room in the bank.
    assert!((1..100).contains(&code.object().constants.len()));
    let elf = code.to_elf().expect("an ELF file");
    for config in [
        SimConfig::default(),
        SimConfig {
            timed: true,
            ..SimConfig::default()
        },
    ] {
        let device = Device::simulator(config);
        for module in [device.load(&code), device.load_elf(&elf)] {
            let module = module.expect("the module loads");
            let input: Vec<u32> = (0..256).map(|t| t % 5).collect();
            let memory = device.upload(&input).expect("memory");
            // The last threads are past the end.
            let step = 67;
            module
                .kernel("k")
                .expect("the kernel")
                .launch(Grid::new([1, 1, 1], [256, 1, 1]))
                .arg(&memory)
                .arg(step)
                .run()
                .unwrap_or_else(|error| panic!("{error}"));
            let found: Vec<i32> = device.download(&memory).expect("the result");
            for (thread, value) in (0..256u32).zip(found) {
                let index = thread * step;
                let large = if index < ENTRIES {
                    100 + (index * index % 7) as i32
                } else {
                    -1
                };
                let small = [1, 2, 1, 2, 3][thread as usize % 5];
                assert_eq!(value, small * 1000 + large, "thread {thread}");
            }
        }
    }
}

#[test]
fn what_is_read_of_a_table_takes_part_in_no_order() {
    let targets = vec!["block2, block3"; ENTRIES as usize / 2].join(", ");
    let text = format!(
        "; kernel
function %k(i64, i32) {{
block0(v0: i64, v1: i32):
    v2 = load.i32 aligned v0
    v3 = atomic_load.i32 aligned v0
    v4 = band v3, v1
    br_table v4, block1, [{targets}]
block1:
    v5 = iconst.i32 1
    jump block4(v5)
block2:
    v6 = iconst.i32 2
    jump block4(v6)
block3:
    v7 = iconst.i32 3
    jump block4(v7)
block4(v8: i32):
    v9 = iadd v8, v2
    store aligned v9, v0
    return
}}
"
    );
    let mut options = Options::default();
    options.set("verify=true").expect("a setting");
    Compiler::new(options)
        .compile_clif(&text)
        .unwrap_or_else(|errors| panic!("{errors}"));
}
