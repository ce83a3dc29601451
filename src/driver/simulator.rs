//! The simulator as a driver.
//!
//! A launch takes the table of allocations and the module as they are when it begins, and holds no lock while it runs.

use super::{Driver, DriverError, ModuleId};
use crate::launch::{Image, LaunchRequest, Report};
use crate::sim::SimConfig;
use crate::sim::debug::Session;
use crate::sim::launch::Loaded;
use crate::sim::memory::global::Global;
use crate::sim::memory::words::Words;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated device.
pub struct Simulator {
    config: SimConfig,
    memory: Mutex<Global>,
    modules: Mutex<Modules>,
}

#[derive(Default)]
struct Modules {
    loaded: BTreeMap<ModuleId, Arc<Loaded>>,
    next: u64,
}

/// What a lock holds. A thread that panicked while it held the lock left a valid state: everything that can panic comes
/// before a change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The switches that count: memory that keeps no order is a mode of its own.
fn one_mode(config: SimConfig) -> SimConfig {
    let only = config.weak.is_none();
    SimConfig {
        timed: config.timed && only,
        check: config.check && only,
        ..config
    }
}

impl Simulator {
    /// A device with these switches.
    pub fn new(config: SimConfig) -> Simulator {
        let config = one_mode(config);
        Simulator {
            config,
            memory: Mutex::new(Global::new(config.memory_bytes, config.check)),
            modules: Mutex::default(),
        }
    }

    /// The bytes around a range and its offset in them. The copy that follows needs no lock.
    fn range(&self, address: u64, bytes: usize) -> Result<(Arc<Words>, usize), DriverError> {
        Ok(locked(&self.memory).range(address, bytes as u64)?)
    }
}

impl Driver for Simulator {
    fn name(&self) -> String {
        "thisgpu simulator".to_string()
    }

    fn counts_cycles(&self) -> bool {
        self.config.timed
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DriverError> {
        Ok(locked(&self.memory).allocate(bytes)?)
    }

    fn protect(&self, address: u64) -> Result<(), DriverError> {
        Ok(locked(&self.memory).protect(address)?)
    }

    fn make_private(&self, address: u64) -> Result<(), DriverError> {
        Ok(locked(&self.memory).make_private(address)?)
    }

    fn free(&self, address: u64) -> Result<(), DriverError> {
        Ok(locked(&self.memory).free(address)?)
    }

    fn write(&self, address: u64, source: &[u8]) -> Result<(), DriverError> {
        let (words, offset) = self.range(address, source.len())?;
        words.write(offset, source);
        Ok(())
    }

    fn clear(&self, address: u64, bytes: u64) -> Result<(), DriverError> {
        Ok(locked(&self.memory).clear(address, bytes)?)
    }

    fn read(&self, address: u64, destination: &mut [u8]) -> Result<(), DriverError> {
        let (words, offset) = self.range(address, destination.len())?;
        words.read(offset, destination);
        Ok(())
    }

    fn load(&self, image: Image) -> Result<ModuleId, DriverError> {
        let loaded = Arc::new(Loaded::new(image, &self.config));
        let mut modules = locked(&self.modules);
        let id = ModuleId(modules.next);
        modules.next += 1;
        modules.loaded.insert(id, loaded);
        Ok(id)
    }

    fn unload(&self, module: ModuleId) -> Result<(), DriverError> {
        let removed = locked(&self.modules).loaded.remove(&module);
        removed.map(|_| ()).ok_or(DriverError::NoModule)
    }

    fn launch(&self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError> {
        let loaded = locked(&self.modules).loaded.get(&module).cloned();
        let loaded = loaded.ok_or(DriverError::NoModule)?;
        let table = locked(&self.memory).table().clone();
        Ok(loaded.launch(request, &table, &self.config)?)
    }

    fn debug(
        &self,
        module: ModuleId,
        request: &LaunchRequest,
        keep: Box<dyn Any + Send>,
    ) -> Result<Session, DriverError> {
        let loaded = locked(&self.modules).loaded.get(&module).cloned();
        let loaded = loaded.ok_or(DriverError::NoModule)?;
        let table = locked(&self.memory).table().clone();
        Ok(Session::new(loaded, table, &self.config, request, keep)?)
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        // A launch has ended when it returns.
        Ok(())
    }
}
