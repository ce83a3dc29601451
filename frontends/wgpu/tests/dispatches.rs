//! Pipelines and dispatches through wgpu, each against what the host computes.

mod common;

use common::Gpu;
use thisgpu_wgpu::{Bounds, Options, wgpu};
use wgpu::PipelineCompilationOptions as Compilation;

#[test]
fn saxpy_end_to_end() {
    for options in [Options::plain(), Options::checking(), Options::timed()] {
        let gpu = Gpu::new(options);
        let pipeline = gpu.pipeline(
            "@group(0) @binding(0) var<uniform> a: vec4<f32>;
             @group(0) @binding(1) var<storage, read> x: array<f32>;
             @group(0) @binding(2) var<storage, read_write> y: array<f32>;
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                 if id.x < arrayLength(&y) { y[id.x] = a.x * x[id.x] + y[id.x]; }
             }",
        );
        let (x, y): (Vec<f32>, Vec<f32>) = (0..1000).map(|n| (n as f32, 0.5 * n as f32)).unzip();
        let bits = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        let a = gpu.buffer(&bits(&[3.0, 0.0, 0.0, 0.0]));
        let (dx, dy) = (gpu.buffer(&bits(&x)), gpu.buffer(&bits(&y)));
        gpu.run(&pipeline, &[&a, &dx, &dy], 16);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
        assert_eq!(gpu.read(&dy), bits(&expected));
        assert!(gpu.reports.messages().is_empty(), "{:?}", gpu.reports);
    }
}

/// A layout of group 0 with storage buffers that may be written.
fn layout(gpu: &Gpu, dynamic: &[bool]) -> wgpu::BindGroupLayout {
    let entries =
        dynamic.iter().zip(0..).map(
            |(&has_dynamic_offset, binding)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: false },
                    has_dynamic_offset,
                    min_binding_size: None,
                },
                count: None,
            },
        );
    gpu.device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &entries.collect::<Vec<_>>(),
        })
}

fn pipeline_layout(
    gpu: &Gpu,
    group: &wgpu::BindGroupLayout,
    immediate_size: u32,
) -> wgpu::PipelineLayout {
    gpu.device
        .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(group)],
            immediate_size,
        })
}

/// Offsets that are dynamic come by the order of bindings, are added to those of the bind group, and end with the size
/// of the binding.
#[test]
fn dynamic_offsets_move_bindings() {
    let gpu = Gpu::plain();
    let module = gpu.module(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
         @group(0) @binding(1) var<storage, read_write> b: array<u32>;
         @group(0) @binding(2) var<storage, read_write> c: array<u32>;
         @compute @workgroup_size(1) fn main() {
             a[0] += 1u; b[0] = arrayLength(&a) * 100u + arrayLength(&c); c[0] += 3u;
         }",
    );
    let group_layout = layout(&gpu, &[true, false, true]);
    let all = pipeline_layout(&gpu, &group_layout, 0);
    let pipeline = gpu.pipeline_with(&module, Some(&all), Compilation::default());
    let (a, b, c) = (
        gpu.buffer(&[0; 64]),
        gpu.buffer(&[0; 4]),
        gpu.buffer(&[0; 64]),
    );
    let part = |buffer, offset, bytes| {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset,
            size: wgpu::BufferSize::new(bytes),
        })
    };
    let group = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &group_layout,
        entries: &[
            // Not in the order of the layout.
            wgpu::BindGroupEntry {
                binding: 2,
                resource: part(&c, 64, 16),
            },
            wgpu::BindGroupEntry {
                binding: 0,
                resource: part(&a, 32, 8),
            },
            wgpu::BindGroupEntry {
                binding: 1,
                resource: b.as_entire_binding(),
            },
        ],
    });
    gpu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[0, 0]);
        pass.dispatch_workgroups(1, 1, 1);
        pass.set_bind_group(0, &group, &[96, 128]);
        pass.dispatch_workgroups(2, 1, 1);
    });
    let only = |places: &[(usize, u32)]| {
        let mut words = vec![0; 64];
        places.iter().for_each(|&(place, word)| words[place] = word);
        words
    };
    assert_eq!(gpu.read(&a), only(&[(8, 1), (32, 2)]));
    assert_eq!(gpu.read(&c), only(&[(16, 3), (48, 6)]));
    assert_eq!(gpu.read(&b)[0], 204);
}

#[test]
fn immediates_are_set_in_parts() {
    let gpu = Gpu::plain();
    let module = gpu.module(
        "struct Given { a: u32, b: u32, c: vec2<u32> }
         var<immediate> given: Given;
         @group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             o[given.a] = given.b + given.c.x * 10u + given.c.y * 100u;
         }",
    );
    let group_layout = layout(&gpu, &[false]);
    let all = pipeline_layout(&gpu, &group_layout, 16);
    let pipeline = gpu.pipeline_with(&module, Some(&all), Compilation::default());
    let o = gpu.buffer(&[0; 4]);
    let group = gpu.group(&group_layout, &[&o]);
    gpu.pass(|pass| {
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(&[1, 2, 3, 4]));
        pass.dispatch_workgroups(1, 1, 1);
        // Only a part changes; the rest stays.
        pass.set_immediates(0, bytemuck::cast_slice(&[3]));
        pass.set_immediates(8, bytemuck::cast_slice(&[7]));
        pass.dispatch_workgroups(1, 1, 1);
    });
    assert_eq!(gpu.read(&o), [0, 432, 0, 472]);
}

/// Shaders in other languages come through naga as well.
#[test]
fn glsl_and_spirv_run() {
    use thisgpu_naga::naga::back::spv;
    let gpu = Gpu::plain();
    let glsl = "#version 450
         layout(local_size_x = 4) in;
         layout(set = 0, binding = 0) buffer Words { uint words[]; };
         void main() { words[gl_GlobalInvocationID.x] += 5u; }";
    let wgsl = "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
         @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { words[id.x] += 5u; }";
    let shader = thisgpu_naga::Shader::wgsl("words.wgsl", wgsl).expect("it is valid");
    let spirv = spv::write_vec(&shader.module, &shader.info, &spv::Options::default(), None);
    let sources = [
        wgpu::ShaderSource::Glsl {
            shader: glsl.into(),
            stage: wgpu::naga::ShaderStage::Compute,
            defines: &[],
        },
        wgpu::ShaderSource::SpirV(spirv.expect("naga writes it").into()),
    ];
    for source in sources {
        let module = gpu
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source,
            });
        let pipeline = gpu.pipeline_with(&module, None, Compilation::default());
        let o = gpu.buffer(&[1, 2, 3, 4, 5, 6, 7, 8]);
        gpu.run(&pipeline, &[&o], 2);
        assert_eq!(gpu.read(&o), [6, 7, 8, 9, 10, 11, 12, 13]);
    }
}

/// Counts workgroups of indirect dispatches; what is more than the limit along an axis is nothing.
#[test]
fn indirect_dispatches_read_their_counts() {
    let gpu = Gpu::plain();
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> o: array<atomic<u32>>;
         @compute @workgroup_size(2) fn main(
             @builtin(num_workgroups) n: vec3<u32>, @builtin(workgroup_id) g: vec3<u32>) {
             atomicAdd(&o[0], 1u);
             atomicMax(&o[1], n.x * 100u + n.y * 10u + n.z);
             atomicMax(&o[2], g.x * 100u + g.y * 10u + g.z);
         }",
    );
    let most = gpu.device.limits().max_compute_workgroups_per_dimension;
    let cases = [
        ([2, 3, 1], [12, 231, 120]),
        ([0, 3, 1], [0; 3]),
        ([most + 1, 1, 1], [0; 3]),
        ([1, u32::MAX, 1], [0; 3]),
        ([1, 1, most + 1], [0; 3]),
    ];
    for (counts, expected) in cases {
        let o = gpu.buffer(&[0; 3]);
        // At an offset that bindings may not have.
        let indirect = gpu.buffer(&[&[9; 21][..], &counts, &[9; 40]].concat());
        let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&o]);
        gpu.pass(|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups_indirect(&indirect, 84);
        });
        assert_eq!(gpu.read(&o), expected, "{counts:?}");
    }
}

/// The limit is looked at without wgpu's own check, too.
#[test]
fn indirect_dispatches_are_checked_without_validation() {
    let gpu = Gpu::new(Options::plain().flags(wgpu::InstanceFlags::empty()));
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(1) fn main() { o[0] = 1u; }",
    );
    for (counts, expected) in [([1, 1, 1], 1), ([70_000, 1, 1], 0)] {
        let (o, indirect) = (gpu.buffer(&[0]), gpu.buffer(&counts));
        let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&o]);
        gpu.pass(|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups_indirect(&indirect, 0);
        });
        assert_eq!(gpu.read(&o), [expected]);
    }
}

#[test]
fn overrides_get_their_values() {
    let gpu = Gpu::plain();
    let module = gpu.module(
        "override size: u32 = 4u;
         @id(7) override factor: f32;
         @group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(size) fn main(@builtin(local_invocation_index) l: u32) {
             o[l] = u32(factor * f32(l + 1u));
         }",
    );
    for (constants, expected) in [
        (&[("7", 2.5)][..], [2, 5, 7, 10, 0, 0, 0, 0]),
        (&[("7", 3.0), ("size", 6.0)], [3, 6, 9, 12, 15, 18, 0, 0]),
    ] {
        let compilation = Compilation {
            constants,
            ..Compilation::default()
        };
        let pipeline = gpu.pipeline_with(&module, None, compilation);
        let o = gpu.buffer(&[0; 8]);
        gpu.run(&pipeline, &[&o], 1);
        assert_eq!(gpu.read(&o), expected);
    }
    let missing = gpu.error(|| gpu.pipeline_with(&module, None, Compilation::default()));
    assert!(missing.is_some_and(|error| error.to_string().contains("Pipeline constant")));
}

/// A first pipeline leaves its mark in the workgroup memory of every multiprocessor; a second one reads it.
#[test]
fn workgroup_memory_is_zeroed_where_that_is_asked_for() {
    const READS: &str = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         var<workgroup> w: array<u32, 64>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) { o[l] = w[63u - l]; }";
    let gpu = Gpu::new(Options::checking());
    let module = gpu.module(READS);
    for zero_initialize_workgroup_memory in [true, false] {
        let compilation = Compilation {
            zero_initialize_workgroup_memory,
            ..Compilation::default()
        };
        let pipeline = gpu.pipeline_with(&module, None, compilation);
        let o = gpu.buffer(&[7; 64]);
        gpu.run(&pipeline, &[&o], 1);
        // The checking simulator tells memory that is zero from memory that nobody wrote.
        let is_clean = gpu.reports.take().is_empty();
        assert_eq!(is_clean, zero_initialize_workgroup_memory);
        if zero_initialize_workgroup_memory {
            assert_eq!(gpu.read(&o), [0; 64]);
        }
    }
}

/// wgpu zeroes what a program did not write, so that nothing is found.
#[test]
fn buffers_are_zeroed() {
    let gpu = Gpu::new(Options::checking());
    let pipeline = gpu.pipeline(
        "@group(0) @binding(0) var<storage, read> i: array<u32>;
         @group(0) @binding(1) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) l: u32) { o[l] = i[l] + 1u; }",
    );
    let fresh = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 32,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    let o = gpu.buffer(&[7; 8]);
    gpu.run(&pipeline, &[&fresh, &o], 1);
    assert_eq!(gpu.read(&o), [1; 8]);
    assert!(gpu.reports.messages().is_empty(), "{:?}", gpu.reports);
}

const BEHIND: &str = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
     @group(0) @binding(1) var<storage, read> i: array<u32>;
     @compute @workgroup_size(1) fn main() { o[0] = i[i[0] + 100u] + 1000u; o[99u] = 5u; }";

/// Reads and writes behind the end: what the program asks for, or what the options say.
#[test]
fn bounds_are_kept() {
    for (bounds, expected) in [
        (None, [1013, 0, 0, 5]),
        (Some(Bounds::Restrict), [1013, 0, 0, 5]),
        (Some(Bounds::Zero), [1000, 0, 0, 0]),
    ] {
        let gpu = Gpu::new(Options::plain().bounds(bounds));
        let (o, i) = (gpu.buffer(&[0; 4]), gpu.buffer(&[10, 11, 12, 13]));
        gpu.run(&gpu.pipeline(BEHIND), &[&o, &i], 1);
        assert_eq!(gpu.read(&o), expected, "{bounds:?}");
    }
}

/// Without runtime checks of the program's own, the machine looks.
#[test]
fn bounds_that_the_program_does_not_want_are_faults() {
    let gpu = Gpu::plain();
    let descriptor = wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(BEHIND.into()),
    };
    let checks = wgpu::ShaderRuntimeChecks::unchecked();
    // SAFETY: an access behind the end is a fault here.
    let module = unsafe { gpu.device.create_shader_module_trusted(descriptor, checks) };
    let pipeline = gpu.pipeline_with(&module, None, Compilation::default());
    let (o, i) = (gpu.buffer(&[0; 4]), gpu.buffer(&[10, 11, 12, 13]));
    gpu.run(&pipeline, &[&o, &i], 1);
    let fault = gpu.message(|message| message.is_fatal());
    assert_eq!(fault.line(), Some(3), "{fault}");
}
