//! What is not there: every call for it is an error of wgpu, none a panic, and the device goes on.

mod common;

use common::{Gpu, ready};
use thisgpu_wgpu::{Options, instance, wgpu};

/// The error of a call, after which the device still works.
fn refused<T>(gpu: &Gpu, call: impl FnOnce() -> T) -> String {
    let error = gpu.error(call).expect("it is refused");
    assert_eq!(gpu.read(&gpu.buffer(&[6, 7])), [6, 7]);
    error.to_string()
}

fn texture(gpu: &Gpu, usage: wgpu::TextureUsages) -> wgpu::Texture {
    gpu.device.create_texture(&wgpu::TextureDescriptor {
        label: Some("a texture"),
        size: wgpu::Extent3d {
            width: 4,
            height: 4,
            depth_or_array_layers: 1,
        },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format: wgpu::TextureFormat::Rgba8Unorm,
        usage,
        view_formats: &[],
    })
}

#[test]
fn textures_and_samplers_are_refused() {
    let gpu = Gpu::plain();
    use wgpu::TextureUsages as Usage;
    let uses = [
        Usage::COPY_DST,
        Usage::TEXTURE_BINDING,
        Usage::STORAGE_BINDING,
        Usage::RENDER_ATTACHMENT,
    ];
    for usage in uses {
        refused(&gpu, || texture(&gpu, usage));
    }
    // A view of a texture that is none is an error as well.
    refused(&gpu, || {
        let texture = texture(&gpu, Usage::TEXTURE_BINDING);
        texture.create_view(&wgpu::TextureViewDescriptor::default())
    });
    refused(&gpu, || {
        gpu.device
            .create_sampler(&wgpu::SamplerDescriptor::default())
    });
    let features = gpu
        .adapter
        .get_texture_format_features(wgpu::TextureFormat::Rgba8Unorm);
    assert!(features.allowed_usages.is_empty());
}

#[test]
fn render_pipelines_are_refused() {
    let gpu = Gpu::plain();
    let module = gpu.module(
        "@vertex fn vertex() -> @builtin(position) vec4<f32> { return vec4<f32>(); }
         @fragment fn fragment() -> @location(0) vec4<f32> { return vec4<f32>(); }",
    );
    let target = wgpu::ColorTargetState {
        format: wgpu::TextureFormat::Rgba8Unorm,
        blend: None,
        write_mask: wgpu::ColorWrites::ALL,
    };
    refused(&gpu, || {
        gpu.device
            .create_render_pipeline(&wgpu::RenderPipelineDescriptor {
                label: None,
                layout: None,
                vertex: wgpu::VertexState {
                    module: &module,
                    entry_point: None,
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    buffers: &[],
                },
                primitive: wgpu::PrimitiveState::default(),
                depth_stencil: None,
                multisample: wgpu::MultisampleState::default(),
                fragment: Some(wgpu::FragmentState {
                    module: &module,
                    entry_point: None,
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    targets: &[Some(target)],
                }),
                multiview_mask: None,
                cache: None,
            })
    });
}

#[test]
fn kernels_that_read_textures_are_refused_with_their_line() {
    let gpu = Gpu::plain();
    let module = gpu.module(
        "@group(0) @binding(0) var t: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> o: vec4<f32>;
@compute @workgroup_size(1) fn main() { o = textureLoad(t, vec2<u32>(), 0); }",
    );
    let error = refused(&gpu, || {
        gpu.pipeline_with(&module, None, wgpu::PipelineCompilationOptions::default())
    });
    assert!(
        error.contains("test.wgsl:1:") && error.contains("unsupported"),
        "{error}"
    );
}

/// A structure that naga puts where WGSL does not is refused, as it is without wgpu.
#[test]
fn forgotten_alignments_are_refused() {
    let gpu = Gpu::plain();
    refused(&gpu, || {
        gpu.module(
            "struct I { @align(64) x: i32 }
struct O { a: i32, b: I }
@group(0) @binding(0) var<storage, read_write> o: O;
@compute @workgroup_size(1) fn main() { o.b.x = 1; }",
        )
    });
}

/// What the adapter promises: a program that asks for the least of WebGPU gets it, and one that asks for more does not.
#[test]
fn only_what_there_is_is_promised() {
    let instance = instance(Options::plain());
    let adapter = ready(instance.request_adapter(&wgpu::RequestAdapterOptions::default()));
    let adapter = adapter.expect("there is an adapter");
    let info = adapter.get_info();
    assert_eq!((info.subgroup_min_size, info.subgroup_max_size), (32, 32));
    assert_eq!(info.backend, wgpu::Backend::Noop);
    ready(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("the defaults");
    for feature in [
        wgpu::Features::TEXTURE_BINDING_ARRAY,
        wgpu::Features::EXPERIMENTAL_RAY_QUERY,
        wgpu::Features::PIPELINE_CACHE,
        wgpu::Features::MULTI_DRAW_INDIRECT_COUNT,
        wgpu::Features::PIPELINE_STATISTICS_QUERY,
        wgpu::Features::PASSTHROUGH_SHADERS,
        wgpu::Features::CLEAR_TEXTURE,
    ] {
        assert!(!adapter.features().contains(feature));
        let asked = adapter.request_device(&wgpu::DeviceDescriptor {
            required_features: feature,
            ..wgpu::DeviceDescriptor::default()
        });
        assert!(ready(asked).is_err(), "{feature:?}");
    }
    let flags = adapter.get_downlevel_capabilities().flags;
    assert!(flags.contains(wgpu::DownlevelFlags::COMPUTE_SHADERS));
    assert!(!flags.contains(wgpu::DownlevelFlags::FRAGMENT_STORAGE));
}

/// A surface can be made, and no adapter is compatible with it.
#[test]
fn no_adapter_draws_on_surfaces() {
    use raw_window_handle::{
        RawDisplayHandle, RawWindowHandle, XlibDisplayHandle, XlibWindowHandle,
    };
    let instance = instance(Options::plain());
    let target = wgpu::SurfaceTargetUnsafe::RawHandle {
        raw_display_handle: Some(RawDisplayHandle::Xlib(XlibDisplayHandle::new(None, 0))),
        raw_window_handle: RawWindowHandle::Xlib(XlibWindowHandle::new(1)),
    };
    // SAFETY: nothing looks at the handles here.
    let surface = unsafe { instance.create_surface_unsafe(target) }.expect("it can be made");
    let asked = instance.request_adapter(&wgpu::RequestAdapterOptions {
        compatible_surface: Some(&surface),
        ..wgpu::RequestAdapterOptions::default()
    });
    assert!(ready(asked).is_err());
}
