//! The queue, which runs what is submitted at once, and fences.

use crate::device::Shared;
use crate::{Api, CommandBuffer, Device, Never, Surface};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wgpu_hal as hal;

/// A number that grows: the last submission that has ended.
#[derive(Debug, Default)]
pub struct Fence {
    value: AtomicU64,
}

impl Fence {
    pub(crate) fn value(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    fn reach(&self, value: u64) {
        self.value.fetch_max(value, Ordering::AcqRel);
    }
}

/// The queue of a device.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
}

impl Queue {
    pub(crate) fn new(device: &Device) -> Queue {
        Queue {
            shared: device.shared().clone(),
        }
    }
}

impl hal::Queue for Queue {
    type A = Api;

    /// Runs the commands in the thread that submits. The fence counts what ended in a fault as ended, too: nobody is
    /// to wait for it.
    unsafe fn submit(
        &self,
        commands: &[&CommandBuffer],
        _surface_textures: &[&Never],
        (fence, value): (&Fence, hal::FenceValue),
    ) -> Result<(), hal::DeviceError> {
        let mut runs = commands.iter().flat_map(|buffer| buffer.commands());
        let outcome = runs.try_for_each(|command| command.run(&self.shared));
        fence.reach(value);
        outcome
    }

    unsafe fn present(&self, _surface: &Surface, texture: Never) -> Result<(), hal::SurfaceError> {
        match texture {}
    }

    unsafe fn wait_for_idle(&self) -> Result<(), hal::DeviceError> {
        Ok(())
    }

    unsafe fn get_timestamp_period(&self) -> f32 {
        1.0
    }
}
