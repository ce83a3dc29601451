//! Generic addresses of shared memory: inside of the window they reach it, outside they fault, however they are made,
//! and the usual ones become accesses of shared memory by one word.

#![cfg(all(feature = "asm", feature = "driver", feature = "sim"))]

use cranelift_thisgpu::asm::listing;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Words of shared memory; word n holds n and [`FIRST`].
const WORDS: i128 = 16;
const FIRST: i128 = 100;

/// How a kernel makes an address of `v3`, which is the start, from the i64 `v1` and the i32 `v2`.
struct Shape {
    /// Instructions that give `v30`; the loaded value is `v40`.
    address: &'static str,
    /// The access.
    access: &'static str,
    /// Bytes from the start.
    offset: fn(a: i128, b: u32) -> i128,
}

fn unsigned(b: u32) -> i128 {
    b.into()
}

fn signed(b: u32) -> i128 {
    (b as i32).into()
}

const LOAD: &str = "v40 = load.i32 v30";

const SHAPES: [Shape; 22] = [
    Shape {
        address: "v30 = iadd v3, v1",
        access: LOAD,
        offset: |a, _| a,
    },
    Shape {
        address: "v30 = iadd v3, v1",
        access: "v40 = load.i32 v30+8",
        offset: |a, _| a + 8,
    },
    Shape {
        address: "v31 = iconst.i64 3\n v32 = imul v1, v31\n v30 = iadd v32, v3",
        access: LOAD,
        offset: |a, _| 3 * a,
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v30 = iadd v3, v31",
        access: LOAD,
        offset: |_, b| unsigned(b),
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |_, b| 4 * unsigned(b),
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v30 = iadd v3, v33",
        access: "v40 = load.i32 v30-12",
        offset: |_, b| 4 * unsigned(b) - 12,
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 12\n v33 = imul v31, v32\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |_, b| 12 * unsigned(b),
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 1048576\n v33 = imul v31, v32\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |_, b| unsigned(b) << 20,
    },
    Shape {
        address:
            "v31 = uextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v34 = iconst.i64 64
            v35 = imul v31, v34\n v36 = iadd v3, v35\n v30 = iadd v36, v33",
        access: LOAD,
        offset: |_, b| 68 * unsigned(b),
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v30 = isub v3, v33",
        access: "v40 = load.i32 v30+16",
        offset: |_, b| 16 - 4 * unsigned(b),
    },
    Shape {
        address: "v31 = sextend.i64 v2\n v30 = iadd v3, v31",
        access: "v40 = load.i32 v30+4",
        offset: |_, b| signed(b) + 4,
    },
    Shape {
        address: "v31 = sextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |_, b| 4 * signed(b),
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v30 = iadd v1, v3\n v33 = iadd v30, v31\n v34 = isub v33, v31",
        access: "v40 = load.i32 v34",
        offset: |a, _| a,
    },
    Shape {
        address: "v31 = iadd v3, v1\n v32 = iconst.i64 -4\n v30 = band v31, v32",
        access: LOAD,
        offset: |a, _| a & !3,
    },
    Shape {
        address: "v31 = iadd v3, v1\n v30 = select v2, v31, v3",
        access: LOAD,
        offset: |a, b| if b == 0 { 0 } else { a },
    },
    Shape {
        address: "v31 = iconst.i64 16\n v32 = icmp ult v1, v31\n v35 = iconst.i64 2
            brif v32, block2, block3
            block3: trap user1
            block2:
            v33 = ishl v1, v35\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |a, _| if (0..16).contains(&a) { 4 * a } else { -1 },
    },
    Shape {
        address: "v31 = iconst.i32 16\n v32 = icmp ugt v2, v31\n v35 = iconst.i64 2
            v34 = uextend.i64 v2
            brif v32, block3, block2
            block3: trap user1
            block2:
            v33 = ishl v34, v35\n v30 = iadd v3, v33",
        access: LOAD,
        offset: |_, b| 4 * unsigned(b),
    },
    // One step further in each turn, eight turns.
    Shape {
        address: "v31 = iconst.i32 8
            jump block2(v3, v31)
            block2(v30: i64, v33: i32):
            v34 = iadd v30, v1
            v35 = iconst.i32 -1
            v36 = iadd v33, v35
            brif v36, block2(v34, v36), block3
            block3:",
        access: LOAD,
        offset: |a, _| 7 * a,
    },
    Shape {
        address: "v31 = uextend.i64 v2\n v32 = iconst.i64 2\n v33 = ishl v31, v32\n v30 = iadd v3, v33\n v34 = \
         iconst.i32 0",
        access: "v40 = atomic_rmw.i32 add v30, v34",
        offset: |_, b| 4 * unsigned(b),
    },
    Shape {
        address: "v30 = iadd v3, v1\n v34 = iconst.i32 0",
        access: "v40 = atomic_cas.i32 v30, v34, v34",
        offset: |a, _| a,
    },
    Shape {
        address: "v30 = iadd v3, v1",
        access: "v40 = atomic_load.i32 v30",
        offset: |a, _| a,
    },
    Shape {
        address: "v31 = symbol_value.i64 gv1\n v30 = iadd v31, v1",
        access: LOAD,
        offset: |a, _| a + (1 << 32),
    },
];

fn kernel(shape: &Shape) -> String {
    let stores: String = (0..WORDS)
        .map(|n| {
            let value = 100 + n;
            format!(
                "v{value} = iconst.i32 {value}\n store aligned v{value}, v4+{}\n",
                4 * n
            )
        })
        .collect();
    format!(
        "; kernel shared={}
        function %k(i64, i64, i32) {{
            gv0 = symbol %gpu_shared
            gv1 = symbol %gpu_shared+0x1_0000_0000
        block0(v0: i64, v1: i64, v2: i32):
            v4 = symbol_value.i32 gv0
            {stores}
            v3 = symbol_value.i64 gv0
            {}
            {}
            store aligned v40, v0
            return
        }}",
        4 * WORDS,
        shape.address,
        shape.access
    )
}

fn compile(text: &str, settings: &[&str]) -> Code {
    let mut options = Options::default();
    settings.iter().for_each(|s| options.set(s).unwrap());
    let code = Compiler::new(options).compile_clif(text);
    code.unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Numbers around the ends of the window, of words, and of what comes round.
fn numbers() -> Vec<i128> {
    let ends = [
        0i128,
        16,
        64,
        1 << 18,
        1 << 28,
        1 << 30,
        1 << 31,
        1 << 32,
        1 << 33,
        1 << 34,
    ];
    let near = ends
        .iter()
        .flat_map(|end| [-8, -4, 0, 4, 12].map(|by| end + by));
    let both = near.flat_map(|n| [n, -n]);
    both.chain([(1 << 32) / 3, (1 << 34) / 12, 5, 1, 2, 3])
        .collect()
}

#[test]
fn what_lies_outside_of_the_window_faults() {
    let device = Device::simulator(SimConfig::default());
    let mut faults = 0;
    for (number, shape) in SHAPES.iter().enumerate() {
        let text = kernel(shape);
        for settings in [&[][..], &["opt_level=none"], &["split_addresses=false"]] {
            let module = device.load(&compile(&text, settings)).unwrap();
            let kernel = module.kernel("k").unwrap();
            for n in numbers() {
                let (a, b) = (n as i64, n as u32);
                let offset = (shape.offset)(a.into(), b);
                let out = device.zeros::<u32>(1).unwrap();
                let launch = kernel.launch(Grid::new([1; 3], [1; 3]));
                let report = launch.arg(&out).arg(a).arg(b).run_to_report().unwrap();
                let place = format!("shape {number}, {settings:?}, {n}: {offset}");
                let inside = (0..=4 * WORDS - 4).contains(&offset);
                match &report.fault {
                    Some(_) => faults += 1,
                    None => assert!(inside, "{place}: no fault"),
                }
                if inside && offset % 4 == 0 {
                    assert!(report.fault.is_none(), "{place}: {:?}", report.fault);
                    let value = FIRST + offset / 4;
                    assert_eq!(out.to_vec().unwrap(), [value as u32], "{place}");
                }
            }
        }
    }
    assert!(faults > 1000, "{faults}");
}

/// What an address is usually made of: accesses of shared memory, most without an instruction more.
#[test]
fn usual_addresses_are_words() {
    let element = |index: &str, scale: u32| {
        format!("{index}\n v32 = iconst.i64 {scale}\n v33 = ishl v31, v32\n v30 = iadd v3, v33")
    };
    let thread = "v20 = call fn0()\n v31 = uextend.i64 v20";
    let masked = "v20 = iconst.i32 255\n v21 = band v2, v20\n v31 = uextend.i64 v21";
    let masked64 = "v20 = iconst.i64 255\n v31 = band v1, v20";
    let sum = "v20 = call fn0()\n v21 = iconst.i32 5\n v22 = ishl v20, v21\n v23 = call fn0()
        v24 = iadd v22, v23\n v31 = uextend.i64 v24";
    let signed = "v20 = call fn0()\n v31 = sextend.i64 v20";
    let unknown = "v31 = uextend.i64 v2";
    let checked = "v20 = iconst.i64 64\n v31 = iadd v1, v1\n v22 = icmp uge v31, v20
        brif v22, block3, block2\nblock3: trap user1\nblock2:";
    for (index, caps) in [
        (thread, 0),
        (masked, 0),
        (masked64, 0),
        (sum, 0),
        (signed, 0),
        (checked, 0),
        (unknown, 1),
    ] {
        for access in [
            "v40 = load.i32 v30+4",
            "store v4, v30+4\n v40 = load.i32 v3",
        ] {
            let shape = Shape {
                address: element(index, 2).leak(),
                access,
                offset: |a, _| a,
            };
            let text =
                kernel(&shape).replace("gv1 = symbol", "fn0 = %gpu_tid_x() -> i32\n gv1 = symbol");
            let (words, _) = listing(compile(&text, &[]).object());
            let of = |name: &str| {
                words
                    .lines()
                    .filter(|l| l.trim_start().starts_with(name))
                    .count()
            };
            assert_eq!(
                of("LD ") + of("LD.") + of("ST ") + of("ST."),
                0,
                "{index}:\n{words}"
            );
            assert!(of("LDS") > 0, "{index}:\n{words}");
            assert_eq!(of("IMNMX") + of("UMNMX"), caps, "{index}:\n{words}");
        }
    }
}
