//! A device with everything that the adapter has, and the steps of a program that computes.

#![allow(dead_code, reason = "every test takes a part of it")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use thisgpu_wgpu::wgpu::util::{BufferInitDescriptor, DeviceExt};
use thisgpu_wgpu::{Message, Options, Reports, instance, reports, wgpu};
use wgpu::BufferUsages as Usage;

/// What a future gives that is ready at once, as all of wgpu's are here.
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// A device, its queue, and what the simulator says of it.
pub struct Gpu {
    pub adapter: wgpu::Adapter,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub reports: Reports,
}

impl Gpu {
    /// A device with all features and limits.
    pub fn new(options: Options) -> Gpu {
        let instance = instance(options);
        let adapter = ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
        Gpu::of(adapter.expect("there is an adapter"))
    }

    /// Another device of the same adapter.
    pub fn beside(&self) -> Gpu {
        Gpu::of(self.adapter.clone())
    }

    fn of(adapter: wgpu::Adapter) -> Gpu {
        let descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features(),
            required_limits: adapter.limits(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) =
            ready(adapter.request_device(&descriptor)).expect("it has what it has");
        let reports = reports(&device).expect("it is ours");
        Gpu {
            adapter,
            device,
            queue,
            reports,
        }
    }

    /// A plain one.
    pub fn plain() -> Gpu {
        Gpu::new(Options::plain())
    }

    /// A buffer with these words, for everything but mapping.
    pub fn buffer(&self, words: &[u32]) -> wgpu::Buffer {
        self.device.create_buffer_init(&BufferInitDescriptor {
            label: None,
            contents: bytemuck::cast_slice(words),
            usage: Usage::STORAGE
                | Usage::UNIFORM
                | Usage::INDIRECT
                | Usage::COPY_SRC
                | Usage::COPY_DST,
        })
    }

    /// The words of a buffer.
    pub fn read(&self, buffer: &wgpu::Buffer) -> Vec<u32> {
        let target = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffer.size(),
            usage: Usage::MAP_READ | Usage::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        self.mapped(&target, 0..buffer.size())
    }

    /// The words of a range of a buffer that can be mapped.
    pub fn mapped(&self, buffer: &wgpu::Buffer, range: std::ops::Range<u64>) -> Vec<u32> {
        let said = self.reports.clone();
        buffer.map_async(wgpu::MapMode::Read, range.clone(), move |outcome| {
            outcome.unwrap_or_else(|error| panic!("{error}: {said:?}"));
        });
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        polled.expect("the device is not lost");
        let view = buffer.get_mapped_range(range).expect("it is mapped");
        let words = bytemuck::cast_slice(&view).to_vec();
        drop(view);
        buffer.unmap();
        words
    }

    pub fn encoder(&self) -> wgpu::CommandEncoder {
        self.device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    pub fn module(&self, text: &str) -> wgpu::ShaderModule {
        self.device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some("test.wgsl"),
                source: wgpu::ShaderSource::Wgsl(text.into()),
            })
    }

    /// A pipeline of the only entry point, with a layout of its own.
    pub fn pipeline(&self, text: &str) -> wgpu::ComputePipeline {
        self.pipeline_with(
            &self.module(text),
            None,
            wgpu::PipelineCompilationOptions::default(),
        )
    }

    pub fn pipeline_with(
        &self,
        module: &wgpu::ShaderModule,
        layout: Option<&wgpu::PipelineLayout>,
        compilation_options: wgpu::PipelineCompilationOptions<'_>,
    ) -> wgpu::ComputePipeline {
        self.device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some("test pipeline"),
                layout,
                module,
                entry_point: None,
                compilation_options,
                cache: None,
            })
    }

    /// A bind group of whole buffers, at bindings from 0.
    pub fn group(
        &self,
        layout: &wgpu::BindGroupLayout,
        buffers: &[&wgpu::Buffer],
    ) -> wgpu::BindGroup {
        let entries = buffers
            .iter()
            .zip(0..)
            .map(|(buffer, binding)| wgpu::BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            });
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout,
            entries: &entries.collect::<Vec<_>>(),
        })
    }

    /// Records a compute pass, and submits it.
    pub fn pass(&self, record: impl FnOnce(&mut wgpu::ComputePass<'_>)) {
        let mut encoder = self.encoder();
        record(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default()));
        self.queue.submit([encoder.finish()]);
    }

    /// Runs workgroups of a pipeline with these buffers as group 0.
    pub fn run(&self, pipeline: &wgpu::ComputePipeline, buffers: &[&wgpu::Buffer], groups: u32) {
        let group = self.group(&pipeline.get_bind_group_layout(0), buffers);
        self.pass(|pass| {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups, 1, 1);
        });
    }

    /// The error of a call.
    pub fn error<T>(&self, call: impl FnOnce() -> T) -> Option<wgpu::Error> {
        let scopes = [
            wgpu::ErrorFilter::Validation,
            wgpu::ErrorFilter::OutOfMemory,
            wgpu::ErrorFilter::Internal,
        ];
        let mut guards: Vec<_> = scopes
            .into_iter()
            .map(|filter| self.device.push_error_scope(filter))
            .collect();
        let _made = call();
        let mut found = None;
        while let Some(guard) = guards.pop() {
            found = ready(guard.pop()).or(found);
        }
        found
    }

    /// The message that the simulator said; there must be one of the kind.
    pub fn message(&self, is_wanted: impl Fn(&Message) -> bool) -> Message {
        let messages = self.reports.messages();
        let found = messages.iter().find(|message| is_wanted(message)).cloned();
        found.unwrap_or_else(|| panic!("not among {messages:?}"))
    }
}

/// The number of the line of a text with `// here`.
pub fn marked(text: &str) -> u32 {
    let line = text.lines().position(|line| line.contains("// here"));
    line.expect("a line is marked") as u32 + 1
}
