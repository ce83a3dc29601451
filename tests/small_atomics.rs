//! Atomic operations on one and two bytes touch these and no others: at the end of memory of any size, beside what
//! others write plainly, and never at an odd address.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::launch::FaultKind;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Report, SimConfig};

/// Each setting by itself.
const SETTINGS: [&[&str]; 3] = [
    &[],
    &["opt_level=none"],
    &["regalloc_algorithm=single_pass"],
];

/// Runs the kernel `%k(i64)` on `bytes` in each setting, functional, checked and timed; gives each report with what
/// is in memory then.
fn run(text: &str, threads: u32, bytes: &[u8], mut look: impl FnMut(Report, Vec<u8>)) {
    for setting in SETTINGS {
        let mut options = Options::default();
        setting.iter().for_each(|text| options.set(text).unwrap());
        let code = common::compile_with(options, text);
        for (check, timed) in [(false, false), (true, false), (false, true)] {
            let device = Device::simulator(SimConfig {
                check,
                timed,
                ..SimConfig::default()
            });
            let buffer = device.upload(bytes).unwrap();
            let report = common::launch(&device, &code, "k", common::block(threads), &[&buffer]);
            look(report, device.download(&buffer).unwrap());
        }
    }
}

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
                run(&text, 1, &bytes, |report, found| {
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
            run(&text, 1, &[0], |report, found| {
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
    run(text, 64, &[0, 9, 0, 9], |report, found| {
        assert_eq!(report.fault, None);
        assert_eq!(report.findings, []);
        assert_eq!(found, [32, 0, 32, 1]);
    });
}

#[test]
fn odd_addresses_of_two_bytes_are_faults() {
    let places = [
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
            "    ss0 = explicit_slot 16\n",
            "v8 = stack_addr.i64 ss0",
            "i64",
        ),
        // The launch passes a pointer that is read from memory: of any kind.
        ("", "store v0, v0\n    v8 = load.i64 v0", "i64"),
    ];
    for (declarations, base, pointer) in places {
        for odd in [1, 3, 7] {
            for operation in operations("i16").into_iter().take(2).chain([
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
                run(&text, 1, &[0; 16], |report, _| {
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
