//! wgpu on thisgpu: programs that compute with wgpu 30.0.1 run on this project's simulator.
//!
//! What comes in is an [`Options`], mostly [`Options::plain`], [`Options::checking`] or [`Options::timed`], or a
//! [`Device`](cranelift_thisgpu::Device) of one's own; what goes out is a [`wgpu::Instance`] with one adapter. From
//! there on the program is any wgpu program: wgpu-core validates, tracks, zeroes and maps as it does everywhere, and
//! this crate is the `wgpu_hal::Api` below it ([`Api`]). Shaders are compiled by [`thisgpu_naga`] when a pipeline is
//! created, and run when a submission is made: a submission has ended when `Queue::submit` returns.
//!
//! ```
//! let instance = thisgpu_wgpu::instance(thisgpu_wgpu::Options::checking());
//! # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
//! # let mut adapter = std::pin::pin!(instance.request_adapter(&Default::default()));
//! # let std::task::Poll::Ready(adapter) = adapter.as_mut().poll(&mut context) else { panic!("it waits") };
//! assert_eq!(adapter?.get_info().name, "thisgpu simulator");
//! # Ok::<(), wgpu::RequestAdapterError>(())
//! ```
//!
//! A fault of a kernel ends its submission and loses the device of wgpu; findings of the checking simulator do not.
//! Both are [`Message`]s that name the line of the shader: they are logged, given to [`Options::on_message`], and kept
//! in [`Reports`], which [`reports`] gives for a device of wgpu. Where there is neither a logger nor a listener they go
//! to standard error.
//!
//! What is not here: textures, samplers, rendering, ray tracing. No feature, format or flag of the adapter promises
//! them, and the types for them have no values ([`Never`]).

mod adapter;
mod api;
mod binding;
mod buffer;
mod command;
mod device;
mod host;
mod instance;
mod options;
mod pipeline;
mod query;
mod queue;
mod reports;
mod run;

pub use adapter::Adapter;
pub use api::{Api, Never};
pub use binding::{BindGroup, BindGroupLayout, PipelineLayout};
pub use buffer::Buffer;
pub use command::{CommandBuffer, CommandEncoder};
pub use device::Device;
pub use instance::{Instance, Surface};
pub use options::{DEVICE_VARIABLE, Options};
pub use pipeline::{ComputePipeline, ShaderModule};
pub use query::QuerySet;
pub use queue::{Fence, Queue};
pub use reports::{Message, Reports};
pub use thisgpu_naga::Bounds;

/// wgpu, of the version that this back end is for.
pub use wgpu;

use wgpu_core::global::Global;

/// An instance of wgpu whose only adapter is the device of these options.
pub fn instance(options: impl Into<Options>) -> wgpu::Instance {
    let options = options.into();
    let flags = options.instance_flags();
    let hal = Instance::new(options);
    // SAFETY: the instance is ours and valid, and nobody else has it.
    let mut global = unsafe { Global::from_hal_instance::<Api>("thisgpu", hal) };
    // What wgpu makes of a back end's instance has the flags of the build; these are the options'.
    let mut core = std::mem::take(&mut global.instance);
    core.flags = flags;
    // SAFETY: as above; `global` has an empty instance now.
    unsafe { wgpu::Instance::from_core(core) }
}

/// What the simulator said of the kernels of a device; none if it is a device of another back end.
pub fn reports(device: &wgpu::Device) -> Option<Reports> {
    // SAFETY: nothing is destroyed through it.
    let device = unsafe { device.as_hal::<Api>() }?;
    Some(device.reports().clone())
}
