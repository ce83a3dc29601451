//! The types of the back end, and those that it has no values of.

use crate::{
    Adapter, BindGroup, BindGroupLayout, Buffer, CommandBuffer, CommandEncoder, ComputePipeline,
    Device, Fence, Instance, PipelineLayout, QuerySet, Queue, ShaderModule, Surface,
};
use std::any::Any;
use std::borrow::Borrow;
use wgpu_hal as hal;

/// The back end. wgpu calls it `Backend::Noop`: the list of its back ends is closed, and that one has no code of its
/// own in wgpu.
#[derive(Clone, Debug)]
pub struct Api;

/// What there is nothing of: textures, samplers, pipelines that render or trace rays. Calls with one cannot be made.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl hal::Api for Api {
    const VARIANT: wgpu::Backend = wgpu::Backend::Noop;

    type Instance = Instance;
    type Surface = Surface;
    type Adapter = Adapter;
    type Device = Device;
    type Queue = Queue;
    type CommandEncoder = CommandEncoder;
    type CommandBuffer = CommandBuffer;
    type Buffer = Buffer;
    type Texture = Never;
    type SurfaceTexture = Never;
    type TextureView = Never;
    type Sampler = Never;
    type QuerySet = QuerySet;
    type Fence = Fence;
    type BindGroupLayout = BindGroupLayout;
    type BindGroup = BindGroup;
    type PipelineLayout = PipelineLayout;
    type ShaderModule = ShaderModule;
    type RenderPipeline = Never;
    type ComputePipeline = ComputePipeline;
    type RayTracingPipeline = Never;
    type PipelineCache = Never;
    type AccelerationStructure = Never;
}

macro_rules! resources {
    ($($ty:ty: $($name:ident),*;)*) => {
        $(
            impl hal::DynResource for $ty {
                fn as_any(&self) -> &dyn Any {
                    self
                }

                fn as_any_mut(&mut self) -> &mut dyn Any {
                    self
                }
            }
            $(impl hal::$name for $ty {})*
        )*
    };
}

resources! {
    Instance: ;
    Surface: ;
    Adapter: ;
    Device: ;
    Queue: ;
    CommandEncoder: ;
    CommandBuffer: DynCommandBuffer;
    Buffer: DynBuffer;
    QuerySet: DynQuerySet;
    Fence: DynFence;
    BindGroupLayout: DynBindGroupLayout;
    BindGroup: DynBindGroup;
    PipelineLayout: DynPipelineLayout;
    ShaderModule: DynShaderModule;
    ComputePipeline: DynComputePipeline;
    Never: DynTexture, DynSurfaceTexture, DynTextureView, DynSampler, DynRenderPipeline, DynRayTracingPipeline,
        DynPipelineCache, DynAccelerationStructure;
}

impl Borrow<dyn hal::DynTexture> for Never {
    fn borrow(&self) -> &dyn hal::DynTexture {
        match *self {}
    }
}
