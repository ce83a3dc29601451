//! What a device is to its buffers: the driver, what is allocated, the order of launches.
//!
//! It is below [`super::Device`], so that a buffer can outlive the last of those.

use super::allocations::Allocations;
use super::queue::Queue;
use super::{Driver, DriverError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device without its handles.
pub(super) struct Shared {
    driver: Box<dyn Driver>,
    allocations: Mutex<Allocations>,
    pub queue: Arc<Queue>,
}

impl Shared {
    pub fn new(driver: impl Driver + 'static) -> Shared {
        Shared {
            driver: Box::new(driver),
            allocations: Mutex::default(),
            queue: Arc::default(),
        }
    }

    pub fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    /// A number that tells devices apart.
    pub fn identity(this: &Arc<Self>) -> usize {
        Arc::as_ptr(this).cast::<()>() as usize
    }

    /// What is allocated now.
    pub fn allocations(&self) -> MutexGuard<'_, Allocations> {
        self.allocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back an allocation.
    pub fn free(&self, address: u64) -> Result<(), DriverError> {
        // The list first: another thread may get the address as soon as it is free.
        let mut allocations = self.allocations();
        self.driver().free(address)?;
        allocations.remove(address);
        Ok(())
    }
}

/// Ends with the last handle of a device.
pub(super) struct Life(pub Arc<Shared>);

impl Drop for Life {
    fn drop(&mut self) {
        let allocations = self.0.allocations();
        if allocations.check {
            for allocation in allocations.list() {
                log::warn!("leak: {allocation}, is still allocated at the end of the device");
            }
        }
    }
}
