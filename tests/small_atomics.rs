//! Atomic operations on one and two bytes touch these and no others: at the end of memory of any size, beside what
//! others write plainly, and never at an odd address.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::launch::FaultKind;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Report, SimConfig};

/// Each setting by itself.
const SETTINGS: [&[&str]; 3] = [
    &[],
    &["opt_level=none"],
    &["regalloc_algorithm=single_pass"],
];

/// Every mode of the simulator: functional, checked, timed, memory that keeps no order, blocks beside each other.
fn modes() -> impl Iterator<Item = SimConfig> {
    let base = SimConfig::default();
    let check = SimConfig {
        check: true,
        ..base
    };
    let timed = SimConfig {
        timed: true,
        ..base
    };
    let weak = [1, 2].map(|seed| SimConfig {
        weak: Some(seed),
        ..base
    });
    let beside = SimConfig {
        threads: 2,
        deterministic: false,
        ..base
    };
    [base, check, timed, beside].into_iter().chain(weak)
}

/// Runs the kernel `%k(i64)` on `bytes` in each setting and mode; gives each report with what is in memory then.
fn run(text: &str, grid: Grid, bytes: &[u8], mut look: impl FnMut(Report, Vec<u8>)) {
    for setting in SETTINGS {
        let mut options = Options::default();
        setting.iter().for_each(|text| options.set(text).unwrap());
        let code = common::compile_with(options, text);
        for config in modes() {
            let device = Device::simulator(config);
            let buffer = device.upload(bytes).unwrap();
            let report = common::launch(&device, &code, "k", grid, &[&buffer]);
            look(report, device.download(&buffer).unwrap());
        }
    }
}

/// All operations of `atomic_rmw`.
const OPERATIONS: [&str; 11] = [
    "add", "sub", "and", "nand", "or", "xor", "xchg", "umin", "umax", "smin", "smax",
];

/// Operands, cut to the type: with each sign, and such that sums wrap around.
const OPERANDS: [u16; 5] = [0x80ff, 0x7f81, 1, 0xfffe, 0x5a3c];

/// What an operation leaves, both values zero-extended.
fn left(operation: &str, bits: u32, old: u16, operand: u16) -> u16 {
    let signed = |value: u16| (value << (16 - bits)) as i16;
    let new = match operation {
        "add" => old.wrapping_add(operand),
        "sub" => old.wrapping_sub(operand),
        "and" => old & operand,
        "nand" => !(old & operand),
        "or" => old | operand,
        "xor" => old ^ operand,
        "xchg" => operand,
        "umin" => old.min(operand),
        "umax" => old.max(operand),
        "smin" if signed(operand) < signed(old) => operand,
        "smax" if signed(operand) > signed(old) => operand,
        "smin" | "smax" => old,
        other => panic!("unknown operation {other}"),
    };
    new & u16::MAX >> (16 - bits)
}

/// What is declared, the address in v8, and its type, in each space.
const SPACES: [(&str, &str, &str); 5] = [
    ("", "v8 = bor v0, v0", "i64"),
    (
        "    gv0 = symbol %gpu_shared\n",
        "v8 = symbol_value.i32 gv0",
        "i32",
    ),
    (
        "    gv0 = symbol %gpu_shared\n",
        "v8 = symbol_value.i64 gv0",
        "i64",
    ),
    (
        "    ss0 = explicit_slot 67\n",
        "v8 = stack_addr.i64 ss0",
        "i64",
    ),
    // A pointer that is read from memory: of any kind.
    ("", "store v0, v0\n    v8 = load.i64 v0", "i64"),
];

/// The operations of a type, on the address in v1: each leaves one more than there was.
fn operations(ty: &str) -> [String; 3] {
    [
        format!("v2 = iconst.{ty} 1\n    v3 = atomic_rmw.{ty} add v1, v2"),
        format!("v2 = iconst.{ty} -1\n    v3 = atomic_rmw.{ty} sub v1, v2"),
        format!(
            "v2 = iconst.{ty} 1\n\
             v3 = atomic_load.{ty} v1\n\
             v4 = iadd v3, v2\n\
             v5 = atomic_cas.{ty} v1, v3, v4"
        ),
    ]
}

#[test]
fn the_last_bytes_of_a_buffer() {
    for (ty, size) in [("i8", 1), ("i16", 2)] {
        for length in [size, 6, 66, 67] {
            let place = (length - size) & !(size - 1);
            for operation in operations(ty) {
                let text = format!(
                    "; kernel\n\
                     function %k(i64) {{\n\
                     block0(v0: i64):\n\
                     v9 = iconst.i64 {place}\n\
                     v1 = iadd v0, v9\n\
                     {operation}\n\
                     return\n\
                     }}\n\
                     "
                );
                let mut expected = vec![0xff; length];
                let bytes = expected.clone();
                expected[place..place + size].fill(0);
                run(&text, common::block(1), &bytes, |report, found| {
                    assert_eq!(report.fault, None, "{text}");
                    assert_eq!(report.findings, [], "{text}");
                    assert_eq!(found, expected, "{text}");
                });
            }
        }
    }
}

#[test]
fn the_last_bytes_of_shared_memory() {
    for (ty, pointer) in [("i8", "i32"), ("i8", "i64"), ("i16", "i32"), ("i16", "i64")] {
        let (store, last) = if ty == "i8" {
            ("store", 65)
        } else {
            ("store", 64)
        };
        for operation in operations(ty) {
            let text = format!(
                "; kernel shared=66\n\
                 function %k(i64) {{\n\
                 gv0 = symbol %gpu_shared\n\
                 block0(v0: i64):\n\
                 v8 = symbol_value.{pointer} gv0\n\
                 v9 = iconst.{pointer} {last}\n\
                 v1 = iadd v8, v9\n\
                 v10 = iconst.{ty} 6\n\
                 {store} v10, v1\n\
                 {operation}\n\
                 v11 = load.{ty} v1\n\
                 v12 = ireduce.i8 v13\n\
                 store v12, v0\n\
                 return\n\
                 }}\n\
                 "
            );
            let text = if ty == "i8" {
                text.replace("ireduce.i8 v13", "bor v11, v11")
            } else {
                text.replace("v13", "v11")
            };
            run(&text, common::block(1), &[0], |report, found| {
                assert_eq!(report.fault, None, "{text}");
                assert_eq!(report.findings, [], "{text}");
                assert_eq!(found, [7], "{text}");
            });
        }
    }
}

/// Every even byte is counted by atomics of all lanes, every odd one is written plainly by one of them.
#[test]
fn neighbours_are_no_race() {
    let text = "; kernel
function %k(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 2
    v3 = urem v1, v2
    v4 = uextend.i64 v3
    v5 = iconst.i64 1
    v6 = ishl v4, v5
    v7 = iadd v0, v6
    v8 = iconst.i8 1
    v9 = atomic_rmw.i8 add v7, v8
    v10 = icmp ult v1, v2
    brif v10, block1, block2
block1:
    v11 = ireduce.i8 v1
    store v11, v7+1
    jump block2
block2:
    return
}
";
    run(text, common::block(64), &[0, 9, 0, 9], |report, found| {
        assert_eq!(report.fault, None);
        assert_eq!(report.findings, []);
        assert_eq!(found, [32, 0, 32, 1]);
    });
}

#[test]
fn odd_addresses_of_two_bytes_are_faults() {
    for (declarations, base, pointer) in SPACES {
        for odd in [1, 3, 7] {
            let rmw = |operation| {
                format!("v2 = iconst.i16 1\n    v3 = atomic_rmw.i16 {operation} v1, v2")
            };
            // Each operation once in a space.
            let turn = |(index, _): &(usize, _)| [1, 3, 7][index % 3] == odd;
            let some = OPERATIONS.into_iter().enumerate().filter(turn);
            for operation in some.map(|(_, operation)| rmw(operation)).chain([
                "v2 = iconst.i16 0\n    v3 = atomic_cas.i16 v1, v2, v2".to_owned(),
                "v3 = atomic_load.i16 v1".to_owned(),
                "v2 = iconst.i16 0\n    atomic_store v2, v1".to_owned(),
            ]) {
                let text = format!(
                    "; kernel shared=16\n\
                     function %k(i64) {{\n\
                     {declarations}block0(v0: i64):\n\
                     {base}\n\
                     v9 = iconst.{pointer} {odd}\n\
                     v1 = iadd v8, v9\n\
                     {operation}\n\
                     return\n\
                     }}\n\
                     "
                );
                run(&text, common::block(1), &[0; 16], |report, _| {
                    let kind = report.fault.map(|fault| fault.kind);
                    assert!(
                        matches!(kind, Some(FaultKind::Misaligned { bytes: 2, .. })),
                        "{kind:?}\n{text}"
                    );
                });
            }
        }
    }
}

/// Every operation with every operand, one after the other on the last place of 67 bytes, in every space: the old
/// values and what is left are the host's, and the bytes beside it stay.
#[test]
fn all_operations_in_all_spaces() {
    const LENGTH: usize = 67;
    for (ty, size) in [("i8", 1), ("i16", 2)] {
        let bits = 8 * size as u32;
        let place = (LENGTH - size) & !(size - 1);
        for ((declarations, base, pointer), used) in
            SPACES.iter().flat_map(|s| [(s, true), (s, false)])
        {
            let mut text = format!(
                "; kernel shared={LENGTH}\n\
                 function %k(i64) {{\n\
                 {declarations}block0(v0: i64):\n\
                 {base}\n\
                 v9 = iconst.{pointer} {place}\n\
                 v1 = iadd v8, v9\n\
                 v7 = iconst.i8 0x69\n"
            );
            (64..LENGTH).for_each(|byte| text += &format!("store v7, v8+{byte}\n"));
            // The old values stand behind the bytes.
            let (mut next, mut behind) = (10, LENGTH + 1);
            let mut value = 0x6969 & u16::MAX >> (16 - bits);
            let mut old = Vec::new();
            for operand in OPERANDS.map(|operand| operand & u16::MAX >> (16 - bits)) {
                for operation in OPERATIONS {
                    let result = next + 1;
                    text += &format!("v{next} = iconst.{ty} {operand}\n");
                    text += &format!("v{result} = atomic_rmw.{ty} {operation} v1, v{next}\n");
                    if used {
                        text += &format!("store v{result}, v0+{behind}\n");
                        old.extend_from_slice(&value.to_le_bytes()[..size]);
                        behind += size;
                    }
                    value = left(operation, bits, value, operand);
                    next += 2;
                }
            }
            for byte in 64..LENGTH {
                text += &format!("v{next} = load.i8 v8+{byte}\nstore v{next}, v0+{byte}\n");
                next += 1;
            }
            text += "return\n}\n";
            let mut expected = [0x69; 3];
            expected[place - 64..][..size].copy_from_slice(&value.to_le_bytes()[..size]);
            run(
                &text,
                common::block(1),
                &vec![0; behind],
                |report, found| {
                    assert_eq!(report.fault, None, "{text}");
                    assert_eq!(report.findings, [], "{text}");
                    assert_eq!(found[64..LENGTH], expected, "{text}");
                    assert_eq!(found[LENGTH + 1..], old, "{text}");
                },
            );
        }
    }
}

/// The threads of three blocks count in bytes and halves of one word: no count is lost, and the byte behind stays.
#[test]
fn many_threads_count_in_a_word() {
    for (ty, size) in [("i8", 1), ("i16", 2)] {
        for used in [true, false] {
            let store = if used { "    store v11, v20" } else { "" };
            let text = format!(
                "; kernel
function %k(i64) {{
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_ctaid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 {last}
    v3 = band v1, v2
    v4 = iconst.i32 {size}
    v5 = imul v3, v4
    v6 = uextend.i64 v5
    v7 = iadd v0, v6
    v8 = iadd v3, v4
    v9 = ireduce.{ty} v8
    v11 = atomic_rmw.{ty} add v7, v9
    v12 = call fn1()
    v13 = iconst.i32 64
    v14 = imul v12, v13
    v15 = iadd v14, v1
    v17 = uextend.i64 v15
    v18 = iadd v17, v17
    v16 = iadd v0, v18
    v19 = iconst.i64 8
    v20 = iadd v16, v19
{store}
    return
}}
",
                last = 4 / size - 1,
            );
            let cells = (0..4 / size).flat_map(|cell| {
                let sum = (cell + size) * 192 * size / 4;
                (sum as u64).to_le_bytes()[..size].to_vec()
            });
            let expected: Vec<u8> = cells.chain([7]).collect();
            let grid = Grid::new([3, 1, 1], [64, 1, 1]);
            let mut bytes = vec![0; 8 + 192 * 2];
            bytes[4] = 7;
            run(&text, grid, &bytes, |report, found| {
                assert_eq!(report.fault, None, "{text}");
                assert_eq!(report.findings, [], "{text}");
                assert_eq!(found[..5], expected, "{text}");
            });
        }
    }
}
