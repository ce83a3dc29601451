//! Drivers of one's own that do not do what they should: each call refuses or panics once, while launches are on a
//! stream.

#![cfg(all(feature = "driver", feature = "sim"))]

use cranelift_thisgpu::driver::{DeviceError, Driver, DriverError, ModuleId, Simulator};
use cranelift_thisgpu::launch::{Image, LaunchRequest};
use cranelift_thisgpu::{Code, Compiler, Device, Grid, Options, Report, SimConfig};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

const TEXT: &str = "
; kernel
function %add(i64, i32) {
block0(v0: i64, v1: i32):
    v2 = load.i32 aligned v0
    v3 = iadd v1, v2
    store aligned v3, v0
    return
}
; kernel
function %fails() {
block0:
    trap user3
}
";

/// What the driver does at one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    Refuses,
    Panics,
}

/// Calls so far, and the one that fails; 0 for none.
#[derive(Default)]
struct Plan {
    calls: AtomicU64,
    fails_at: AtomicU64,
}

/// The simulator behind a plan.
struct Unreliable {
    below: Simulator,
    plan: Arc<Plan>,
    failure: Failure,
}

impl Unreliable {
    fn step(&self) -> Result<&Simulator, DriverError> {
        let number = self.plan.calls.fetch_add(1, Ordering::SeqCst) + 1;
        if number != self.plan.fails_at.load(Ordering::SeqCst) {
            return Ok(&self.below);
        }
        match self.failure {
            Failure::Refuses => Err(DriverError::Device("planned".to_owned())),
            Failure::Panics => panic!("planned"),
        }
    }
}

impl Driver for Unreliable {
    fn name(&self) -> String {
        "unreliable".to_owned()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        self.step()?.allocate(bytes)
    }

    fn free(&self, address: u64) -> Result<(), DriverError> {
        self.step()?.free(address)
    }

    fn write(&self, address: u64, source: &[u8]) -> Result<(), DriverError> {
        self.step()?.write(address, source)
    }

    fn clear(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.step()?.clear(address, bytes)
    }

    fn read(&self, address: u64, destination: &mut [u8]) -> Result<(), DriverError> {
        self.step()?.read(address, destination)
    }

    fn load(&self, image: Image) -> Result<ModuleId, DriverError> {
        self.step()?.load(image)
    }

    fn unload(&self, module: ModuleId) -> Result<(), DriverError> {
        self.step()?.unload(module)
    }

    fn launch(&self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError> {
        self.step()?.launch(module, request)
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        self.step()?.synchronize()
    }
}

/// Uses all that a device has: a launch, a fault, one behind it with the last handle of its buffer, copies.
fn work(device: &Device, code: &Code) -> Result<Vec<i32>, DeviceError> {
    let module = device.load(code)?;
    let (add, fails) = (module.kernel("add")?, module.kernel("fails")?);
    let x = device.upload(&[1i32, 2, 3])?;
    let copy = device.zeros::<i32>(3)?;
    let behind = device.upload(&[0i32])?;
    let (stream, grid) = (device.stream(), Grid::new([1; 3], [1; 3]));
    let first = (add.launch(grid).arg(&x.slice(1..2)?).arg(100i32)).enqueue(&stream)?;
    let fault = fails.launch(grid).enqueue(&stream)?;
    let skipped = add.launch(grid).arg(&behind).arg(1i32).enqueue(&stream)?;
    drop(behind);
    let end = stream.record();
    end.wait();
    let [first, fault, skipped] = [first, fault, skipped].map(|pending| pending.wait());
    stream.synchronize()?;
    first?;
    assert!(fault.is_err() && skipped.is_err());
    x.copy_to(&copy)?;
    device.synchronize()?;
    copy.to_vec()
}

/// The work with the call of a number failing, in a thread; whether that came through it, and how many calls there
/// were.
fn failing(code: &Arc<Code>, failure: Failure, at: u64) -> (thread::Result<bool>, u64) {
    let plan = Arc::new(Plan::default());
    plan.fails_at.store(at, Ordering::SeqCst);
    let device = Device::new(Unreliable {
        below: Simulator::new(SimConfig::default()),
        plan: plan.clone(),
        failure,
    });
    let (sender, receiver) = channel();
    let thread = {
        let (device, code) = (device.clone(), code.clone());
        thread::spawn(move || {
            // Dropped by a panic too.
            let _sender = sender;
            match work(&device, &code) {
                Ok(result) => result == [1, 102, 3],
                Err(error) => {
                    let says = match failure {
                        Failure::Refuses => "device: planned",
                        // In the thread that takes the launches of streams.
                        Failure::Panics => "the driver panicked in kernel",
                    };
                    assert!(error.to_string().contains(says), "{error}");
                    false
                }
            }
        })
    };
    let ended: Result<(), _> = receiver.recv_timeout(Duration::from_secs(60));
    assert_eq!(
        ended,
        Err(RecvTimeoutError::Disconnected),
        "{failure:?} at call {at}: it does not end"
    );
    let came = thread.join();
    let calls = plan.calls.load(Ordering::SeqCst);
    // Nobody got the fault where the work ended early.
    while device.synchronize().is_err() {}
    assert_eq!(
        work(&device, code).unwrap(),
        [1, 102, 3],
        "{failure:?} at call {at}: the device is of no use"
    );
    (came, calls)
}

fn code() -> Arc<Code> {
    let code = Compiler::new(Options::default()).compile_clif(TEXT);
    Arc::new(code.unwrap())
}

#[test]
fn a_driver_may_refuse_every_call() {
    let code = code();
    let (came, calls) = failing(&code, Failure::Refuses, 0);
    assert!(came.unwrap() && calls > 12, "{calls}");
    let mut refused = 0;
    for at in 1..=calls {
        let (came, _) = failing(&code, Failure::Refuses, at);
        // What is given back in vain stops nobody.
        refused += u64::from(!came.unwrap());
    }
    assert!(refused >= 9, "{refused} of {calls}");
}

#[test]
fn a_panic_in_a_driver_ends_nothing_but_its_call() {
    let code = code();
    let (_, calls) = failing(&code, Failure::Panics, 0);
    let mut panicked = 0;
    for at in 1..=calls {
        let (came, _) = failing(&code, Failure::Panics, at);
        panicked += u64::from(came.is_err());
    }
    // Those of the launches, and of a buffer that was given back by one that was skipped, are in another thread.
    assert!(
        (calls / 2..calls).contains(&panicked),
        "{panicked} of {calls}"
    );
}
