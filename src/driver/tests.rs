//! Tests of the device interface on assembled kernels.

mod arguments;
mod buffers;
mod streams;

use super::{Buffer, Device, DeviceError, DevicePointer, Grid};
use crate::launch::{FaultKind, Progress};
use crate::object::{DataContents, Object, Relocation, RelocationKind};
use crate::sim::SimConfig;
use crate::testing::Random;

const KERNELS: &str = "
.kernel saxpy
.param 4
.param 8 ptr
.param 8 ptr
.param 4
    S2R R0, SR_CTAID_X &wr=0 ;
    S2R R1, SR_TID_X &wr=0 ;
    IMAD R0, R0, c[0x0][0x0], R1 &req={0} ?5 ;
    ISETP.GE.AND P0, R0, c[0x0][0x178], PT ?13 ;
@P0 EXIT ;
    MOV R4, c[0x0][0x168] ?1 ;
    MOV R5, c[0x0][0x16c] ?1 ;
    MOV R6, c[0x0][0x170] ?1 ;
    MOV R7, c[0x0][0x174] ?4 ;
    IMAD.WIDE R[4:5], R0, 4, R[4:5] ?1 ;
    IMAD.WIDE R[6:7], R0, 4, R[6:7] ?6 ;
    LDG R8, [R[4:5]] &wr=0 ;
    LDG R9, [R[6:7]] &wr=0 ;
    FFMA R8, R8, c[0x0][0x160], R9 &req={0} ?4 ;
    STG [R[6:7]], R8 ;
    EXIT ;

.kernel counts
.param 8
.shared 64
    MOV R2, lo(counter) ?1 ;
    MOV R3, hi(counter) ?1 ;
    MOV R4, 1 ?4 ;
    RED.ADD [R[2:3]], R4 &rd=1 ;
    CALL R[10:11], helper &req={1} ;
    MOV R2, c[0x0][0x160] ?1 ;
    MOV R3, c[0x0][0x164] ?4 ;
    STG [R[2:3]], R4 ;
    EXIT ;

.func helper
    MOV R4, c[0x3][0x4] ?4 ;
    RET R[10:11] ;

.const
    .word 7, 1234

.data counter align 16
    .word 100
.data pointer
    .quad counter
";

fn object() -> Object {
    crate::asm::assemble("kernels.s", KERNELS)
        .unwrap_or_else(|e| panic!("{e}"))
        .object
}

#[test]
fn saxpy_through_the_interface() {
    for timed in [false, true] {
        let device = Device::simulator(SimConfig {
            timed,
            check: true,
            ..SimConfig::default()
        });
        let module = device.load(&object()).unwrap();
        let n = 1000;
        let xs: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let (x, y) = (
            device.upload(&xs).unwrap(),
            device.upload(&vec![0.5f32; n as usize]).unwrap(),
        );
        let kernel = module.kernel("%saxpy").unwrap();
        let report = kernel
            .launch(Grid::for_elems(n, 256))
            .arg(2.0f32)
            .arg(&x)
            .arg(&y)
            .arg(n)
            .run()
            .unwrap();
        assert_eq!(
            (report.stats.hazards, report.findings.len()),
            (0, 0),
            "{:?}",
            report.hazards
        );
        assert_eq!(report.stats.cycles != 0, timed);
        let result: Vec<f32> = device.download(&y).unwrap();
        assert_eq!(
            result,
            xs.iter().map(|x| x * 2.0 + 0.5).collect::<Vec<f32>>()
        );
        assert_eq!(device.download::<f32>(&x).unwrap(), xs);
    }
}

#[test]
fn data_constants_and_calls_are_linked() {
    let device = Device::simulator(SimConfig::default());
    let elf = object().write().unwrap();
    let module = device.load_elf(&elf).unwrap();
    let out = device.allocate(4).unwrap();
    let kernel = module.kernel("counts").unwrap();
    kernel
        .launch(Grid::new([3, 1, 1], [50, 1, 1]))
        .arg(&out)
        .run()
        .unwrap();
    assert_eq!(out.read::<u32>().unwrap(), [1234]);
    let counter = module.data("counter").unwrap();
    assert_eq!(counter.read::<u32>().unwrap(), [250]);
    assert_eq!(
        module.data("pointer").unwrap().read::<u64>().unwrap(),
        [counter.address()]
    );
}

#[test]
fn arguments_are_checked() {
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&object()).unwrap();
    let kernel = module.kernel("saxpy").unwrap();
    let buffer = device.upload(&[0u32; 4]).unwrap();
    let grid = Grid::for_elems(1, 1);
    let text = |result: Result<crate::launch::Report, DeviceError>| {
        result.map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(
        text(kernel.launch(grid).arg(1.0f32).run()),
        "kernel `saxpy` takes 4 arguments, 1 was given"
    );
    assert_eq!(
        text(
            kernel
                .launch(grid)
                .arg(1.0f64)
                .arg(&buffer)
                .arg(&buffer)
                .arg(1)
                .run()
        ),
        "argument 0 of kernel `saxpy` is f64, the parameter is a value of 4 bytes"
    );
    assert_eq!(
        text(
            kernel
                .launch(grid)
                .arg(1.0f32)
                .arg(7u64)
                .arg(&buffer)
                .arg(1)
                .run()
        ),
        "argument 1 of kernel `saxpy` is u64, the parameter is an address: pass a buffer"
    );
    let other = Device::simulator(SimConfig::default())
        .upload(&[0u32; 4])
        .unwrap();
    assert_eq!(
        text(
            kernel
                .launch(grid)
                .arg(1.0f32)
                .arg(&other)
                .arg(&buffer)
                .arg(1)
                .run()
        ),
        "argument 1 of kernel `saxpy` is a buffer of another device"
    );
    assert_eq!(
        text(
            kernel
                .launch(Grid::new([1; 3], [2000, 1, 1]))
                .arg(1.0f32)
                .arg(&buffer)
                .arg(&buffer)
                .arg(1)
                .run()
        )
        .split(':')
        .next(),
        Some("block of [2000, 1, 1] threads")
    );
    let missing = module
        .kernel("nothing")
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert_eq!(
        missing,
        "there is no kernel `nothing`; kernels: saxpy, counts"
    );
    // An eight-byte value may be an address.
    let counts = module.kernel("counts").unwrap();
    counts.launch(grid).arg(buffer.address()).run().unwrap();
    counts
        .launch(grid)
        .arg(DevicePointer(buffer.address() + 4))
        .run()
        .unwrap();
    assert_eq!(buffer.read::<u32>().unwrap(), [1234, 1234, 0, 0]);
}

#[test]
fn a_fault_leaves_the_device_usable() {
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&object()).unwrap();
    let (x, y) = (
        device.upload(&[1.0f32; 8]).unwrap(),
        device.upload(&[1.0f32; 8]).unwrap(),
    );
    let kernel = module.kernel("saxpy").unwrap();
    let launch = |n: i32| {
        kernel
            .launch(Grid::for_elems(n, 32))
            .arg(1.0f32)
            .arg(&x)
            .arg(&y)
            .arg(n)
    };
    let Err(DeviceError::Fault { fault, report }) = launch(9).run() else {
        panic!("no fault")
    };
    assert!(matches!(fault.kind, FaultKind::OutOfBounds { .. }));
    assert_eq!((fault.place.thread, report.stats.faults), ([8, 0, 0], 1));
    assert!(
        fault
            .to_string()
            .contains("kernel saxpy, block (0,0,0), thread (8,0,0), pc 0xc0: LDG R8, [R[4:5]]"),
        "{fault}"
    );
    assert!(launch(9).run_to_report().unwrap().fault.is_some());
    launch(8).run().unwrap();
    assert_eq!(y.read::<f32>().unwrap(), [2.0; 8]);
}

#[test]
fn symbols_without_a_value_are_all_named() {
    let device = Device::simulator(SimConfig::default());
    let text =
        ".extern one\n.extern two\n.kernel k\n CALL R[2:3], one ;\n CALL R[2:3], two ;\n EXIT ;\n";
    let object = crate::asm::assemble("k.s", text)
        .unwrap_or_else(|e| panic!("{e}"))
        .object;
    let message = device.load(&object).map(|_| ()).unwrap_err().to_string();
    assert!(
        message.contains("`one`") && message.contains("`two`"),
        "{message}"
    );
    assert!(device.load_elf(b"no object").is_err());
}

#[test]
fn memory_is_given_back() {
    let device = Device::simulator(SimConfig {
        memory_bytes: 1000,
        ..SimConfig::default()
    });
    for _ in 0..10 {
        let buffer = device.allocate(900).unwrap();
        assert!(device.allocate(200).is_err());
        assert_eq!(buffer.len(), 900);
    }
    let odd = device.allocate(10).unwrap();
    assert!(matches!(
        device.download::<u32>(&odd),
        Err(DeviceError::ElementSize {
            bytes: 10,
            element: 4
        })
    ));
}

#[test]
fn allocations_know_where_they_come_from() {
    let device = Device::simulator(SimConfig::default());
    let first = device.allocate(7).unwrap();
    let line = line!() - 1;
    let kept = device.upload(&[1u32, 2]).unwrap();
    let module = device.load(&object()).unwrap();
    let texts = || -> Vec<String> {
        let live = device.live_allocations();
        live.iter().map(ToString::to_string).collect()
    };
    let place = |line: u32, column: u32| format!("{}:{line}:{column}", file!());
    let expected = format!(
        "7 bytes at {:#x}, allocated at {}",
        first.address(),
        place(line, 24)
    );
    assert_eq!(texts()[0], expected);
    assert!(texts()[1].contains(&place(line + 2, 23)), "{:?}", texts());
    assert!(texts()[2].ends_with("data `counter` of a module"));
    assert_eq!(texts().len(), 4);
    drop((module, first));
    assert_eq!(texts().len(), 1);
    // What is given away stays until it is freed.
    let pointer = kept.into_raw();
    assert_eq!(texts().len(), 1);
    assert!(device.free(DevicePointer(pointer.0 + 4)).is_err());
    device.free(pointer).unwrap();
    assert!(device.free(pointer).is_err());
    assert_eq!(texts().len(), 0);
}

/// A launch that another thread cancels says how far it came, and the device goes on.
#[test]
fn a_launch_can_be_watched_and_cancelled() {
    let text = "
.kernel loop
    S2R R0, SR_CTAID_X &wr=0 ;
    ISETP.LT.AND P0, R0, 3, PT &req={0} ?13 ;
@P0 EXIT ;
again:
    BRA again ;
";
    let object = crate::asm::assemble("loop.s", text)
        .unwrap_or_else(|e| panic!("{e}"))
        .object;
    let device = Device::simulator(SimConfig {
        budget: u64::MAX,
        launch_budget: u64::MAX,
        ..SimConfig::default()
    });
    let module = device.load(&object).unwrap();
    let kernel = module.kernel("loop").unwrap();
    let progress = Progress::new();
    let launch = || {
        kernel
            .launch(Grid::new([7, 1, 1], [32, 1, 1]))
            .progress(&progress)
            .run_to_report()
            .unwrap()
    };
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(launch);
        while progress.finished() < 3 || progress.warp_instructions() < 10_000 {
            std::thread::yield_now();
        }
        assert_eq!(progress.blocks(), 7);
        progress.cancel();
        running.join().unwrap()
    });
    let fault = report.fault.expect("it has no end of its own");
    assert_eq!(
        fault.kind,
        FaultKind::Cancelled {
            ended: 3,
            blocks: 7
        }
    );
    assert_eq!(fault.place.block, [3, 0, 0]);
    assert!(report.stats.warp_instructions >= 10_000);
    assert!(fault.to_string().contains("3 of 7 blocks have ended"));
    // A launch that was cancelled before it began runs nothing.
    let report = launch();
    assert_eq!(report.stats.warp_instructions, 0);
    let good = module.kernel("loop").unwrap();
    good.launch(Grid::new([3, 1, 1], [32, 1, 1])).run().unwrap();
}

/// Memory that the host never wrote is undefined to a kernel that checks, until somebody writes it.
#[test]
fn a_kernel_that_reads_what_nobody_wrote_is_found() {
    let text = "
.kernel copy
.param 8 ptr
.param 8 ptr
    MOV R2, c[0x0][0x160] ?1 ;
    MOV R3, c[0x0][0x164] ?1 ;
    MOV R4, c[0x0][0x168] ?1 ;
    MOV R5, c[0x0][0x16c] ?4 ;
    LDG R0, [R[2:3]+0x4] &wr=0 ;
    STG [R[4:5]], R0 &req={0} ;
    EXIT ;
";
    let object = crate::asm::assemble("copy.s", text)
        .unwrap_or_else(|e| panic!("{e}"))
        .object;
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let module = device.load(&object).unwrap();
    let kernel = module.kernel("copy").unwrap();
    let findings = |from: &Buffer, to: &Buffer| -> Vec<String> {
        let launch = kernel.launch(Grid::new([1; 3], [1; 3])).arg(from).arg(to);
        let report = launch.run().unwrap();
        report.findings.iter().map(ToString::to_string).collect()
    };
    let (fresh, to) = (device.allocate(8).unwrap(), device.allocate(8).unwrap());
    let found = findings(&fresh, &to);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("kernel copy") && found[0].contains("LDG R0, [R[2:3]+0x4]"),
        "{found:?}"
    );
    assert!(
        found[0].contains("4 bytes of global memory at offset 0x4"),
        "{found:?}"
    );
    // Half of it is not all of it; zeros, the host's bytes and a kernel's are contents.
    fresh.write(&[1u32]).unwrap();
    assert_eq!(findings(&fresh, &to).len(), 1);
    fresh.write(&[1u32, 2]).unwrap();
    assert_eq!(findings(&fresh, &to), [""; 0]);
    assert_eq!(findings(&device.allocate_zeroed(8).unwrap(), &to), [""; 0]);
    let second = device.allocate(8).unwrap();
    findings(&fresh, &second);
    assert_eq!(findings(&second, &to).len(), 1, "only its first word");
}

/// Zeros of a data object take no memory, beside addresses too; the sum of a file's other zeros is limited.
#[test]
fn large_data_is_cheap_or_refused() {
    let text = ".kernel k\n EXIT ;\n.data zeros\n .zero 4000000000\n";
    let mut object = crate::asm::assemble("zeros.s", text)
        .unwrap_or_else(|e| panic!("{e}"))
        .object;
    let zeros = &mut object.data[0];
    assert_eq!(zeros.contents, DataContents::Zeros(4_000_000_000));
    zeros.relocations.push(Relocation {
        offset: 3_999_999_992,
        kind: RelocationKind::Abs64,
        symbol: "zeros".to_string(),
        addend: 5,
    });
    let object = Object::read(&object.write().unwrap()).unwrap();
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let module = device.load(&object).unwrap();
    let buffer = module.data("zeros").unwrap();
    assert_eq!(buffer.len(), 4_000_000_000);
    let mut bytes = [1; 16];
    let end = buffer.address() + buffer.len() - 16;
    device.driver().read(end, &mut bytes).unwrap();
    assert_eq!(bytes[..8], [0; 8]);
    assert_eq!(bytes[8..], (buffer.address() + 5).to_le_bytes());
    // Too much for the device is an error that names the object.
    let small = Device::simulator(SimConfig {
        memory_bytes: 1 << 20,
        ..SimConfig::default()
    });
    let message = small.load(&object).map(|_| ()).unwrap_err().to_string();
    assert!(
        message.contains("`zeros`") && message.contains("out of device memory"),
        "{message}"
    );
}

#[test]
fn elements_of_every_type() {
    let device = Device::simulator(SimConfig::default());
    let halves = [half::f16::from_f32(1.5), half::f16::from_f32(-2.0)];
    assert_eq!(device.upload(&halves).unwrap().to_vec().unwrap(), halves);
    assert_eq!(
        device
            .upload(&[i64::MIN, -1])
            .unwrap()
            .read::<u64>()
            .unwrap(),
        [1 << 63, u64::MAX]
    );
    assert_eq!(
        device
            .upload(&[u128::MAX - 1])
            .unwrap()
            .read::<i8>()
            .unwrap()[0],
        -2
    );
}

/// Whatever a file holds: it is refused, or its kernels end.
#[test]
fn a_damaged_object_is_no_panic() {
    let mut random = Random::for_test("damaged objects");
    let good = object().write().unwrap();
    let mut loaded = 0;
    for _ in 0..2000 {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(8) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] = 0xff,
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        let device = Device::simulator(SimConfig {
            budget: 1000,
            ..SimConfig::default()
        });
        let Ok(object) = Object::read(&bytes) else {
            continue;
        };
        let _ = crate::asm::listing(&object);
        let _ = object.linked_words();
        let Ok(module) = device.load(&object) else {
            continue;
        };
        loaded += 1;
        for name in module.kernels() {
            let kernel = module.kernel(name).unwrap();
            let mut launch = kernel.launch(Grid::new([1; 3], [33, 1, 1]));
            for parameter in kernel.parameters() {
                launch = match parameter.size {
                    4 => launch.arg(1u32),
                    _ => launch.arg(DevicePointer(0x10000)),
                };
            }
            let _ = launch.run();
        }
    }
    assert!(loaded > 200, "{loaded}");
}
