//! The instance, and surfaces, which no adapter can draw on.

use crate::options::Options;
use crate::{Adapter, Api, Device, Fence, Never};
use raw_window_handle::{RawDisplayHandle, RawWindowHandle};
use std::fmt;
use std::time::Duration;
use wgpu_hal as hal;

/// An instance: one adapter.
pub struct Instance {
    options: Options,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").finish_non_exhaustive()
    }
}

impl Instance {
    /// An instance with the device of these options.
    pub fn new(options: Options) -> Instance {
        Instance { options }
    }
}

impl hal::Instance for Instance {
    type A = Api;

    /// A plain simulator: what is asked for has no place for one's own device.
    unsafe fn init(_desc: &hal::InstanceDescriptor<'_>) -> Result<Self, hal::InstanceError> {
        Ok(Instance::new(Options::plain()))
    }

    unsafe fn create_surface(
        &self,
        _display: RawDisplayHandle,
        _window: RawWindowHandle,
    ) -> Result<Surface, hal::InstanceError> {
        Ok(Surface)
    }

    unsafe fn enumerate_adapters(&self, _hint: Option<&Surface>) -> Vec<hal::ExposedAdapter<Api>> {
        vec![Adapter::new(self.options.clone()).exposed()]
    }
}

/// A surface. It can be made, and no adapter is compatible with it.
#[derive(Debug)]
pub struct Surface;

const NO_SURFACES: hal::SurfaceError = hal::SurfaceError::Other("unsupported: surfaces");

impl hal::Surface for Surface {
    type A = Api;

    unsafe fn configure(
        &self,
        _device: &Device,
        _config: &hal::SurfaceConfiguration,
    ) -> Result<(), hal::SurfaceError> {
        Err(NO_SURFACES)
    }

    unsafe fn unconfigure(&self, _device: &Device) {}

    unsafe fn acquire_texture(
        &self,
        _timeout: Option<Duration>,
        _fence: &Fence,
    ) -> Result<hal::AcquiredSurfaceTexture<Api>, hal::SurfaceError> {
        Err(NO_SURFACES)
    }

    unsafe fn discard_texture(&self, texture: Never) {
        match texture {}
    }
}
