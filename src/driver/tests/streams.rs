//! Streams, threads, cancelling. Nothing here depends on how fast the host is: a launch that must be running for a
//! while is one that ends when it is told to.

use crate::driver::{
    Buffer, Device, DeviceError, Driver, Event, Grid, Kernel, Module, Pending, Stream,
};
use crate::launch::{FaultKind, Progress};
use crate::sim::SimConfig;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// `spin` waits until its word is not 0 and adds it to the next one; `add` adds 1 to a word; `wild` stores where
/// nothing is.
const KERNELS: &str = "
.kernel spin
.param 8 ptr
    MOV R2, c[0x0][0x160] ?1 ;
    MOV R3, c[0x0][0x164] ?4 ;
again:
    LDG R4, [R[2:3]] &wr=0 ;
    ISETP.EQ.AND P0, R4, 0, PT &req={0} ?13 ;
@P0 BRA again ;
    RED.ADD [R[2:3]+0x4], R4 &rd=1 ;
    EXIT &req={1} ;

.kernel add
.param 8 ptr
    MOV R2, c[0x0][0x160] ?1 ;
    MOV R3, c[0x0][0x164] ?1 ;
    MOV R4, 1 ?4 ;
    RED.ADD [R[2:3]], R4 &rd=1 ;
    EXIT &req={1} ;

.kernel wild
    MOV R2, 16 ?1 ;
    MOV R3, 0 ?4 ;
    STG [R[2:3]], R3 ;
    EXIT ;
";

/// What other threads do while a launch runs takes far less, also on a machine that does other things (six seconds of
/// launch leave time for dozens of copies of a mebibyte).
const HELD_UP: Duration = Duration::from_secs(120);

struct Bench {
    device: Device,
    module: Module,
}

impl Bench {
    fn new(config: SimConfig) -> Bench {
        let device = Device::simulator(SimConfig {
            budget: u64::MAX,
            launch_budget: u64::MAX,
            ..config
        });
        let object = crate::asm::assemble("kernels.s", KERNELS)
            .unwrap_or_else(|e| panic!("{e}"))
            .object;
        let module = device.load(&object).unwrap();
        Bench { device, module }
    }

    fn kernel(&self, name: &str) -> Kernel {
        self.module.kernel(name).unwrap()
    }

    /// A launch that has begun and goes on until `flag` is not 0. If whoever writes that has to wait for it, it ends
    /// with a fault, and so do the tests that expect none.
    fn spinning(&self, stream: &Stream, flag: &Buffer<u32>) -> Pending {
        let spin = self.kernel("spin");
        let launch = spin.launch(one()).arg(flag).time_limit(HELD_UP);
        let pending = launch.enqueue(stream).unwrap();
        while pending.progress().warp_instructions() == 0 {
            thread::yield_now();
        }
        pending
    }

    fn add(&self, stream: &Stream, to: &Buffer<u32>) -> Pending {
        let add = self.kernel("add");
        add.launch(one()).arg(to).enqueue(stream).unwrap()
    }

    fn wild(&self, stream: &Stream) -> Pending {
        self.kernel("wild").launch(one()).enqueue(stream).unwrap()
    }
}

fn one() -> Grid {
    Grid::for_elems(1, 1)
}

#[test]
fn handles_go_to_other_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Device>();
    shared::<Module>();
    shared::<Kernel>();
    shared::<Buffer<f32>>();
    shared::<Stream>();
    shared::<Pending>();
    shared::<Event>();
    shared::<DeviceError>();
    shared::<Progress>();
    shared::<Box<dyn Driver>>();
}

/// While a launch runs, another thread allocates, copies, loads and frees; what it writes is what the launch reads.
#[test]
fn a_launch_holds_nobody_up() {
    let bench = Bench::new(SimConfig::default());
    let flag = bench.device.zeros::<u32>(2).unwrap();
    let stream = bench.device.stream();
    let pending = bench.spinning(&stream, &flag);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100u32 {
                let buffer = bench.device.upload(&[round; 1000]).unwrap();
                let copy = bench.device.zeros::<u32>(1000).unwrap();
                buffer.copy_to(&copy).unwrap();
                assert_eq!(copy.to_vec().unwrap(), [round; 1000]);
            }
            let object = crate::asm::assemble("k.s", KERNELS).unwrap().object;
            bench.device.load(&object).unwrap();
        });
    });
    assert!(!pending.is_done());
    flag.write_at(0, &[5]).unwrap();
    pending.wait().unwrap();
    assert_eq!(flag.to_vec().unwrap(), [5, 5]);
    assert_eq!(bench.device.live_allocations().len(), 1);
}

/// Launches of all streams and of `run` run one at a time, in the order in which they were asked for.
#[test]
fn launches_run_in_the_order_of_submission() {
    let bench = Bench::new(SimConfig::default());
    let flag = bench.device.zeros::<u32>(2).unwrap();
    let (first, second) = (bench.device.stream(), bench.device.stream());
    let spin = bench.spinning(&first, &flag);
    let behind = bench.add(&first, &flag.slice(1..).unwrap());
    let beside = bench.add(&second, &flag.slice(1..).unwrap());
    let (start, end) = (second.record(), second.record());
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let add = bench.kernel("add");
            add.launch(one()).arg(&flag).run().unwrap();
            // Everything before it has ended.
            assert!(behind.is_done() && beside.is_done() && end.is_done());
        });
        assert!(!beside.wait_for(Duration::from_millis(20)));
        assert!(!behind.is_done() && !run.is_finished() && !start.is_done());
        flag.write_at(0, &[10]).unwrap();
        run.join().unwrap();
    });
    for pending in [spin, behind, beside] {
        pending.wait().unwrap();
    }
    assert_eq!(flag.to_vec().unwrap(), [11, 12]);
}

/// A fault skips what is behind it on its stream and nothing else; `wait` returns it once, and then the stream is
/// clean.
#[test]
fn a_fault_skips_what_is_behind_it() {
    let bench = Bench::new(SimConfig::default());
    let count = bench.device.zeros::<u32>(1).unwrap();
    let (stream, other) = (bench.device.stream(), bench.device.stream());
    let before = bench.add(&stream, &count);
    let wild = bench.wild(&stream);
    let behind = bench.add(&stream, &count);
    let event = stream.record();
    let beside = bench.add(&other, &count);
    // Also what is put there before somebody has got the fault.
    event.wait();
    let later = bench.add(&stream, &count);
    before.wait().unwrap();
    beside.wait().unwrap();
    for pending in [behind, later] {
        let message = pending.wait().unwrap_err().to_string();
        assert!(
            message.starts_with("kernel `add` was not launched"),
            "{message}"
        );
    }
    let Err(DeviceError::Fault { fault, report }) = wild.wait() else {
        panic!("no fault")
    };
    assert!(matches!(
        fault.kind,
        FaultKind::OutOfBounds { address: 16, .. }
    ));
    assert_eq!(report.stats.faults, 1);
    bench.add(&stream, &count).wait().unwrap();
    stream.synchronize().unwrap();
    bench.device.synchronize().unwrap();
    assert_eq!(count.to_vec().unwrap(), [3]);
}

/// `synchronize` of the stream or of the device returns a fault too, instead of `wait`, and to one of them only.
#[test]
fn synchronize_returns_a_fault_once() {
    let bench = Bench::new(SimConfig::default());
    let streams = [bench.device.stream(), bench.device.stream()];
    let mut pending = streams.each_ref().map(|stream| Some(bench.wild(stream)));
    let is_fault =
        |result: Result<(), DeviceError>| matches!(result, Err(DeviceError::Fault { .. }));
    assert!(is_fault(streams[0].synchronize()));
    assert!(streams[0].synchronize().is_ok());
    assert!(is_fault(bench.device.synchronize()));
    assert!(bench.device.synchronize().is_ok() && streams[1].synchronize().is_ok());
    for pending in &mut pending {
        let message = pending.take().unwrap().wait().unwrap_err().to_string();
        assert_eq!(
            message,
            "kernel `wild` has failed, and a `synchronize` has returned the error"
        );
    }
    // What nobody waits for stays with a stream that is gone.
    let [first, second] = streams;
    drop(bench.wild(&second));
    drop((first, second));
    assert!(is_fault(bench.device.synchronize()));
    assert!(bench.device.synchronize().is_ok());
}

/// What is queued when a fault is taken does not run then, even if its turn comes later.
#[test]
fn what_was_behind_a_fault_stays_skipped() {
    let bench = Bench::new(SimConfig::default());
    let flag = bench.device.zeros::<u32>(2).unwrap();
    let (stream, other) = (bench.device.stream(), bench.device.stream());
    let wild = bench.wild(&stream);
    let spin = bench.kernel("spin");
    let spin = spin.launch(one()).arg(&flag).enqueue(&other).unwrap();
    let behind = bench.add(&stream, &flag);
    assert!(matches!(wild.wait(), Err(DeviceError::Fault { .. })));
    let new = bench.add(&stream, &flag.slice(1..).unwrap());
    flag.write_at(0, &[1]).unwrap();
    spin.wait().unwrap();
    assert!(matches!(behind.wait(), Err(DeviceError::Skipped { .. })));
    new.wait().unwrap();
    assert_eq!(flag.to_vec().unwrap(), [1, 2]);
}

/// A launch ends soon after it is cancelled, also one of many warps; what waits behind it does not begin.
#[test]
fn a_pending_launch_is_cancelled() {
    let bench = Bench::new(SimConfig::default());
    let flag = bench.device.zeros::<u32>(2).unwrap();
    let stream = bench.device.stream();
    let spin = bench.kernel("spin");
    let pending = spin.launch(Grid::new([4, 1, 1], [1024, 1, 1])).arg(&flag);
    let pending = pending.enqueue(&stream).unwrap();
    let behind = bench.add(&stream, &flag);
    while pending.progress().warp_instructions() == 0 {
        thread::yield_now();
    }
    let start = Instant::now();
    pending.cancel();
    assert!(pending.wait_for(Duration::from_secs(60)));
    // A tenth of a second is promised for code that is optimised, on a machine that does nothing else.
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "{:?}",
        start.elapsed()
    );
    let Err(DeviceError::Fault { fault, .. }) = pending.wait() else {
        panic!("no fault")
    };
    assert_eq!(
        fault.kind,
        FaultKind::Cancelled {
            ended: 0,
            blocks: 4
        }
    );
    assert!(matches!(behind.wait(), Err(DeviceError::Skipped { .. })));
    // One that has not begun runs nothing.
    let spinning = bench.spinning(&stream, &flag);
    let other = bench.device.stream();
    let cancelled = bench.add(&other, &flag);
    cancelled.cancel();
    flag.write_at(0, &[1]).unwrap();
    spinning.wait().unwrap();
    let Err(DeviceError::Fault { report, .. }) = cancelled.wait() else {
        panic!("no fault")
    };
    assert_eq!(report.stats.warp_instructions, 0);
    assert_eq!(flag.to_vec().unwrap(), [1, 1]);
}

#[test]
fn a_launch_ends_with_its_time() {
    for timed in [false, true] {
        let bench = Bench::new(SimConfig {
            timed,
            ..SimConfig::default()
        });
        let flag = bench.device.zeros::<u32>(2).unwrap();
        let limit = Duration::from_millis(30);
        let spin = bench.kernel("spin");
        let launch = spin.launch(one()).arg(&flag).time_limit(limit);
        let start = Instant::now();
        let Err(DeviceError::Fault { fault, .. }) = launch.run() else {
            panic!("no fault")
        };
        assert!(start.elapsed() >= limit);
        assert_eq!(
            fault.kind,
            FaultKind::TimeLimit {
                limit,
                ended: 0,
                blocks: 1
            }
        );
        // A limit is the launch's own: waiting for others does not count, and there may be no end to it.
        flag.write_at(0, &[1]).unwrap();
        spin.launch(one())
            .arg(&flag)
            .time_limit(Duration::MAX)
            .run()
            .unwrap();
    }
}

/// A launch that waits keeps its buffers, its module and its device.
#[test]
fn pending_work_keeps_what_it_needs() {
    let bench = Bench::new(SimConfig::default());
    let flag = bench.device.zeros::<u32>(2).unwrap();
    let stream = bench.device.stream();
    let spinning = bench.spinning(&stream, &flag);
    let own = bench.device.zeros::<u32>(64).unwrap();
    let address = own.address();
    let behind = bench.add(&stream, &own.slice(8..9).unwrap());
    drop((own, stream));
    let device = bench.device.clone();
    drop(bench);
    let is_live = || {
        let live = device.live_allocations();
        live.iter().any(|allocation| allocation.address == address)
    };
    assert!(is_live());
    flag.write_at(0, &[1]).unwrap();
    behind.wait().unwrap();
    spinning.wait().unwrap();
    assert!(
        !is_live(),
        "it was given back before the launch counts as ended"
    );
    assert_eq!(device.live_allocations().len(), 1);
}

#[test]
fn events_time_what_is_between_them() {
    for timed in [false, true] {
        let bench = Bench::new(SimConfig {
            timed,
            ..SimConfig::default()
        });
        let count = bench.device.zeros::<u32>(1).unwrap();
        let stream = bench.device.stream();
        let start = stream.record();
        let reports = [(); 2].map(|()| bench.add(&stream, &count));
        let end = stream.record();
        let elapsed = end.since(&start);
        let reports = reports.map(|pending| pending.wait().unwrap());
        let cycles: u64 = reports.iter().map(|report| report.stats.cycles).sum();
        assert_eq!(elapsed.cycles, timed.then_some(cycles));
        assert_eq!(cycles != 0, timed);
        assert!(elapsed.host > Duration::ZERO);
        assert_eq!(start.since(&end).host, Duration::ZERO);
    }
}

#[test]
fn a_stream_of_another_device_is_refused() {
    let bench = Bench::new(SimConfig::default());
    let other = Device::simulator(SimConfig::default());
    let wild = bench.kernel("wild");
    let result = wild.launch(one()).enqueue(&other.stream());
    let message = result.unwrap_err().to_string();
    assert_eq!(
        message,
        "kernel `wild` is put on a stream of another device"
    );
}

/// Threads that launch, enqueue, wait and copy lose nothing.
#[test]
fn many_threads_use_one_device() {
    let bench = Arc::new(Bench::new(SimConfig::default()));
    let count = bench.device.zeros::<u32>(1).unwrap();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (bench, count) = (bench.clone(), count.clone());
            thread::spawn(move || {
                let stream = bench.device.stream();
                let own = bench.device.zeros::<u32>(1).unwrap();
                for round in 0..20 {
                    if (thread + round) % 3 == 0 {
                        let add = bench.kernel("add");
                        add.launch(one()).arg(&count).run().unwrap();
                    } else {
                        let _stays = bench.add(&stream, &count);
                        bench.add(&stream, &own).wait().unwrap();
                    }
                    if round % 7 == 3 {
                        let fault = bench.wild(&stream).wait();
                        assert!(matches!(fault, Err(DeviceError::Fault { .. })));
                    }
                }
                stream.synchronize().unwrap();
                own.to_vec().unwrap()[0]
            })
        })
        .collect();
    let own: u32 = threads.into_iter().map(|t| t.join().unwrap()).sum();
    let runs = (0..8)
        .flat_map(|t| (0..20).map(move |r| t + r))
        .filter(|sum| sum % 3 == 0)
        .count();
    assert_eq!((own, runs as u32), (160 - runs as u32, runs as u32));
    assert_eq!(count.to_vec().unwrap(), [160]);
}
