//! What a device says at the end of its life about memory that nobody gave back.
//!
//! One test, since all of a process share the logger.

#![cfg(all(feature = "asm", feature = "driver", feature = "sim"))]

use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::sim::SimConfig;
use std::sync::Mutex;

/// Keeps warnings.
struct Keeper(Mutex<Vec<String>>);

static KEEPER: Keeper = Keeper(Mutex::new(Vec::new()));

impl log::Log for Keeper {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn warnings(life: impl FnOnce(Device)) -> Vec<String> {
    let device = Device::simulator(SimConfig::default());
    device.check_leaks(true);
    life(device);
    std::mem::take(&mut *KEEPER.0.lock().unwrap())
}

#[test]
fn what_was_forgotten_is_logged() {
    log::set_logger(&KEEPER).expect("no other test is in this process");
    log::set_max_level(log::LevelFilter::Warn);

    // The bugs: an address given away that nobody frees, a buffer that is forgotten.
    let mut lines = [0; 2];
    let found = warnings(|device| {
        let raw = device.allocate(64).unwrap().into_raw();
        assert!(raw.0 != 0);
        lines[0] = line!() - 2;
        std::mem::forget(device.upload(&[1u32, 2, 3]).unwrap());
        lines[1] = line!() - 1;
        drop(device.allocate(8).unwrap());
    });
    assert_eq!(found.len(), 2, "{found:?}");
    for (text, (bytes, line)) in found.iter().zip([(64, lines[0]), (12, lines[1])]) {
        assert!(
            text.starts_with(&format!("leak: {bytes} bytes at 0x")),
            "{text}"
        );
        let place = format!("allocated at {}:{line}:", file!());
        assert!(text.contains(&place), "{text}: not {place}");
    }

    // The twins: freed, dropped, of a module, and on a device of which a clone lives on.
    let found = warnings(|device| {
        let raw = device.allocate(64).unwrap().into_raw();
        let buffer = device.upload(&[1u32, 2, 3]).unwrap();
        let text = ".kernel k\n EXIT ;\n.data d\n .word 1\n";
        let assembly = cranelift_thisgpu::asm::assemble("k.s", text);
        let module = device
            .load(&assembly.unwrap_or_else(|e| panic!("{e}")).object)
            .unwrap();
        let clone = device.clone();
        drop(device);
        clone.free(raw).unwrap();
        drop(buffer);
        // The module keeps the device, and gives its data back before that ends.
        drop(clone);
        drop(module);
    });
    assert_eq!(found, [""; 0]);

    // Nobody asked.
    let found = warnings(|device| {
        device.check_leaks(false);
        std::mem::forget(device.allocate(8).unwrap());
    });
    assert_eq!(found, [""; 0]);
}
