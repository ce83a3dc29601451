//! The stages of Vello's shaders, which draw pictures, against their versions for the CPU that Vello has itself: every
//! stage but the last, which needs a texture, on three scenes.
//!
//! Each stage gets the buffers as the CPU's versions of those before have left them, runs here and there, and what both
//! wrote is compared: [`compare`] says how. Then the next stage goes on from what the CPU wrote.

mod compare;
mod scenes;
mod stages;

use stages::{Part, STAGES, State, Workgroups};
use thisgpu_wgpu::wgpu::util::{BufferInitDescriptor, DeviceExt};
use thisgpu_wgpu::{Message, Options, instance, reports, wgpu};
use vello_shaders::{BindType, ComputeShader};

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
}

impl Gpu {
    fn new() -> Gpu {
        let said = |message: &Message| eprintln!("thisgpu: {message}");
        // On the checking device too, indices are what WGSL has: `flatten` makes pointers behind the end, and does not
        // use them.
        let instance = instance(Options::from_env().bounds(None).on_message(said));
        let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
        let adapter = adapter.expect("there is an adapter");
        let descriptor = wgpu::DeviceDescriptor {
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let device = pollster::block_on(adapter.request_device(&descriptor));
        let (device, queue) = device.expect("it has what it has");
        Gpu { device, queue }
    }

    /// Runs a stage: the parts of the state that it may write, as it leaves them.
    fn run(
        &self,
        shader: &ComputeShader<'_>,
        workgroups: [u32; 3],
        parts: &[Part],
        state: &State,
    ) -> Vec<(Part, Vec<u8>)> {
        assert_eq!(shader.bindings.len(), parts.len(), "{}", shader.name);
        use wgpu::BufferUsages as Usage;
        let buffers: Vec<_> = (parts.iter())
            .map(|&part| {
                self.device.create_buffer_init(&BufferInitDescriptor {
                    label: Some(&format!("{part:?}")),
                    contents: &state.get(part).borrow(),
                    usage: Usage::STORAGE | Usage::UNIFORM | Usage::COPY_SRC,
                })
            })
            .collect();
        let numbers = shader.wgsl.binding_indices.iter().copied();
        let entries = numbers
            .clone()
            .zip(shader.bindings.iter())
            .map(|(binding, ty)| {
                let ty = match ty {
                    BindType::Uniform => wgpu::BufferBindingType::Uniform,
                    _ => wgpu::BufferBindingType::Storage {
                        read_only: !ty.is_mutable(),
                    },
                };
                wgpu::BindGroupLayoutEntry {
                    binding: binding.into(),
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty,
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                }
            });
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries.collect::<Vec<_>>(),
            });
        let entries = numbers
            .zip(&buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding: binding.into(),
                resource: buffer.as_entire_binding(),
            });
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries.collect::<Vec<_>>(),
        });
        let pipeline_layout = wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        };
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(&shader.name),
                source: wgpu::ShaderSource::Wgsl(shader.wgsl.code.as_ref().into()),
            });
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&shader.name),
                layout: Some(&self.device.create_pipeline_layout(&pipeline_layout)),
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                cache: None,
            });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        let [x, y, z] = workgroups;
        pass.dispatch_workgroups(x, y, z);
        drop(pass);
        self.queue.submit([encoder.finish()]);
        let all = parts.iter().zip(&buffers).zip(shader.bindings.iter());
        let written = all.filter(|(_, ty)| ty.is_mutable());
        written
            .map(|((&part, buffer), _)| (part, self.read(buffer)))
            .collect()
    }

    fn read(&self, buffer: &wgpu::Buffer) -> Vec<u8> {
        let target = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: buffer.size(),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, buffer.size());
        self.queue.submit([encoder.finish()]);
        target.map_async(wgpu::MapMode::Read, .., |_| {});
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        polled.expect("the device is not lost");
        target.get_mapped_range(..).expect("it is mapped").to_vec()
    }
}

/// Runs all stages of a scene.
fn draw(scene: &vello_encoding::Encoding, least: usize) {
    let gpu = Gpu::new();
    let (state, counts) = State::new(scene);
    let mut ran = 0;
    for stage in STAGES {
        let workgroups = match stage.workgroups {
            Workgroups::Known(count) => <[u32; 3]>::from(count(&counts)),
            Workgroups::Indirect => state.words(Part::Indirect, 3).try_into().expect("three"),
        };
        if workgroups.contains(&0) {
            continue;
        }
        let got = gpu.run(stage.shader, workgroups, stage.parts, &state);
        let before: Vec<_> = got
            .iter()
            .map(|(part, _)| state.get(*part).borrow().clone())
            .collect();
        state.run(stage, workgroups[0]);
        for ((part, got), before) in got.iter().zip(before) {
            let wanted = state.get(*part).borrow();
            let same = compare::compare(stage.shader.name.as_ref(), *part, &state, got, &wanted);
            same.unwrap_or_else(|error| panic!("{}, {part:?}: {error}", stage.shader.name));
            if *wanted != before {
                ran += 1;
            }
        }
    }
    // The scene has something for the stages to do.
    assert!(ran >= least, "{ran} buffers were written");
    let said = reports(&gpu.device).expect("it is ours").messages();
    assert!(said.is_empty(), "{}", said[0]);
}

#[test]
fn fills() {
    draw(&scenes::fills(), 20);
}

#[test]
fn strokes() {
    draw(&scenes::strokes(), 20);
}

#[test]
fn clips() {
    draw(&scenes::clips(), 24);
}
