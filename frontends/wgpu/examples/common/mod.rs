//! What the examples share: a device, and the steps around a dispatch.

#![allow(dead_code, reason = "every example takes a part of it")]

use std::error::Error;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use thisgpu_wgpu::wgpu::util::{BufferInitDescriptor, DeviceExt};
use thisgpu_wgpu::{Options, Reports, instance, reports, wgpu};
use wgpu::BufferUsages as Usage;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A device and its queue.
pub struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub reports: Reports,
}

/// What a future gives; those of wgpu are ready at once here.
fn ready<T>(future: impl Future<Output = T>) -> Outcome<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => Err("the future waits".into()),
    }
}

impl Gpu {
    /// A plain device, or with the argument `--check` or `--timed` another one. A program that runs on hardware as well
    /// would have its own instance here; all else is any wgpu program.
    pub fn new() -> Outcome<Gpu> {
        let mode = std::env::args().nth(1).unwrap_or_default();
        let options = match mode.as_str() {
            "--check" => Options::checking(),
            "--timed" => Options::timed(),
            _ => Options::plain(),
        };
        let instance = instance(options);
        let adapter = ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default()))??;
        let wanted = wgpu::DeviceDescriptor {
            required_features: wgpu::Features::SUBGROUP,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = ready(adapter.request_device(&wanted))??;
        let reports = reports(&device).ok_or("another back end's device")?;
        Ok(Gpu {
            device,
            queue,
            reports,
        })
    }

    /// A buffer with this content.
    pub fn buffer<T: bytemuck::Pod>(&self, label: &str, content: &[T]) -> wgpu::Buffer {
        self.device.create_buffer_init(&BufferInitDescriptor {
            label: Some(label),
            contents: bytemuck::cast_slice(content),
            usage: Usage::STORAGE | Usage::UNIFORM | Usage::COPY_SRC | Usage::COPY_DST,
        })
    }

    /// The content of a buffer.
    pub fn read<T: bytemuck::Pod>(&self, buffer: &wgpu::Buffer) -> Outcome<Vec<T>> {
        let target = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("download"),
            size: buffer.size(),
            usage: Usage::MAP_READ | Usage::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        target.map_async(wgpu::MapMode::Read, .., |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        let view = target.get_mapped_range(..)?;
        Ok(bytemuck::cast_slice(&view).to_vec())
    }

    pub fn module(&self, label: &str, text: &str) -> wgpu::ShaderModule {
        self.device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(label),
                source: wgpu::ShaderSource::Wgsl(text.into()),
            })
    }

    pub fn pipeline(&self, module: &wgpu::ShaderModule, entry: &str) -> wgpu::ComputePipeline {
        self.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(entry),
                layout: None,
                module,
                entry_point: Some(entry),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            })
    }

    /// These buffers for the bindings of a pipeline's group 0, by number.
    pub fn group(
        &self,
        pipeline: &wgpu::ComputePipeline,
        buffers: &[(u32, &wgpu::Buffer)],
    ) -> wgpu::BindGroup {
        let entries = buffers
            .iter()
            .map(|&(binding, buffer)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            });
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries.collect::<Vec<_>>(),
        })
    }

    /// Says what the simulator found; it is an error.
    pub fn finish(&self) -> Outcome {
        match self.reports.messages().first() {
            Some(message) => Err(message.to_string().into()),
            None => Ok(()),
        }
    }
}
