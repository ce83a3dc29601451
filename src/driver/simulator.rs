//! The simulator as a driver.

use super::{Driver, DriverError, ModuleId};
use crate::launch::{Image, LaunchRequest, Report};
use crate::sim::{Global, Loaded, SimConfig};
use std::collections::BTreeMap;

/// A simulated device.
pub struct Simulator {
    config: SimConfig,
    memory: Global,
    modules: BTreeMap<ModuleId, Loaded>,
    next: u64,
}

impl Simulator {
    /// A device with these switches.
    pub fn new(config: SimConfig) -> Simulator {
        Simulator {
            config,
            memory: Global::new(config.memory_bytes, config.check),
            modules: BTreeMap::new(),
            next: 0,
        }
    }
}

impl Driver for Simulator {
    fn name(&self) -> String {
        "thisgpu simulator".to_string()
    }

    fn allocate(&mut self, bytes: u64) -> Result<u64, DriverError> {
        Ok(self.memory.allocate(bytes)?)
    }

    fn free(&mut self, address: u64) -> Result<(), DriverError> {
        Ok(self.memory.free(address)?)
    }

    fn write(&mut self, address: u64, source: &[u8]) -> Result<(), DriverError> {
        Ok(self.memory.write(address, source)?)
    }

    fn clear(&mut self, address: u64, bytes: u64) -> Result<(), DriverError> {
        Ok(self.memory.clear(address, bytes)?)
    }

    fn read(&mut self, address: u64, destination: &mut [u8]) -> Result<(), DriverError> {
        destination.copy_from_slice(self.memory.read(address, destination.len() as u64)?);
        Ok(())
    }

    fn load(&mut self, image: Image) -> Result<ModuleId, DriverError> {
        let id = ModuleId(self.next);
        self.next += 1;
        self.modules.insert(id, Loaded::new(image, &self.config));
        Ok(id)
    }

    fn unload(&mut self, module: ModuleId) -> Result<(), DriverError> {
        self.modules
            .remove(&module)
            .map(|_| ())
            .ok_or(DriverError::NoModule)
    }

    fn launch(&mut self, module: ModuleId, request: &LaunchRequest) -> Result<Report, DriverError> {
        let loaded = self.modules.get(&module).ok_or(DriverError::NoModule)?;
        Ok(loaded.launch(request, &mut self.memory, &self.config)?)
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        // A launch has ended when it returns.
        Ok(())
    }
}
