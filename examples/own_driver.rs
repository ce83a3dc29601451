//! A driver of one's own below `Device`: here one that passes everything on to the simulator and keeps a journal.

use cranelift_thisgpu::driver::{Driver, DriverError, ModuleId, Simulator};
use cranelift_thisgpu::launch::{Image, LaunchRequest};
use cranelift_thisgpu::{Compiler, Device, Grid, Options, Report, SimConfig};
use std::error::Error;
use std::sync::{Arc, Mutex};

/// What was asked of the device, in order.
type Journal = Arc<Mutex<Vec<String>>>;

/// Passes everything on and writes it down.
struct Recorder {
    below: Simulator,
    journal: Journal,
}

impl Recorder {
    fn note(&self, text: String) {
        if let Ok(mut journal) = self.journal.lock() {
            journal.push(text);
        }
    }
}

impl Driver for Recorder {
    fn name(&self) -> String {
        format!("recorded {}", self.below.name())
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        self.note(format!("allocate {bytes}"));
        self.below.allocate(bytes)
    }

    fn free(&self, address: u64) -> Result<(), DriverError> {
        self.note("free".to_owned());
        self.below.free(address)
    }

    fn write(&self, address: u64, source: &[u8]) -> Result<(), DriverError> {
        self.note(format!("write {}", source.len()));
        self.below.write(address, source)
    }

    fn clear(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        self.note(format!("clear {bytes}"));
        self.below.clear(address, bytes)
    }

    fn read(&self, address: u64, destination: &mut [u8]) -> Result<(), DriverError> {
        self.note(format!("read {}", destination.len()));
        self.below.read(address, destination)
    }

    fn load(&self, image: Image) -> Result<ModuleId, DriverError> {
        self.note(format!("load {} functions", image.functions.len()));
        self.below.load(image)
    }

    fn unload(&self, module: ModuleId) -> Result<(), DriverError> {
        self.note("unload".to_owned());
        self.below.unload(module)
    }

    fn launch(&self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError> {
        self.note(format!("launch {} {:?}", request.kernel, request.block));
        self.below.launch(module, request)
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        self.note("synchronize".to_owned());
        self.below.synchronize()
    }
}

const KERNEL: &str = "
; kernel
function %increment(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = uextend.i64 v1
    v3 = iadd v0, v2
    v4 = load.i8 v3
    v5 = iconst.i8 1
    v6 = iadd v4, v5
    store v6, v3
    return
}
";

/// Runs a kernel through the driver and looks at the journal.
pub fn main() -> Result<(), Box<dyn Error>> {
    let journal = Journal::default();
    let device = Device::new(Recorder {
        below: Simulator::new(SimConfig::default()),
        journal: journal.clone(),
    });
    let module = device.load(&Compiler::new(Options::default()).compile_clif(KERNEL)?)?;
    let bytes = device.upload(&[1u8, 2, 3])?;
    let grid = Grid::new([1, 1, 1], [3, 1, 1]);
    module.kernel("increment")?.launch(grid).arg(&bytes).run()?;
    assert_eq!(device.download::<u8>(&bytes)?, [2, 3, 4]);
    drop((bytes, module));

    let journal = journal.lock().map_err(|_| "a panic")?;
    let expected = [
        "load 1 functions",
        "allocate 3",
        "write 3",
        "launch increment [3, 1, 1]",
        "read 3",
        "free",
        "unload",
    ];
    assert_eq!(*journal, expected);
    println!("{}: {}", device.name(), journal.join(", "));
    Ok(())
}
