//! The device: it makes everything.

use crate::options::Options;
use crate::query::Clock;
use crate::reports::{Message, Reports, log_or_print};
use crate::{
    Api, BindGroup, BindGroupLayout, Buffer, CommandEncoder, ComputePipeline, Fence, Never,
    PipelineLayout, QuerySet, Queue, ShaderModule,
};
use cranelift_thisgpu::DeviceError;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use wgpu_hal as hal;
use wgpu_types as wgt;

/// What a device and its queue share.
pub(crate) struct Shared {
    pub options: Options,
    pub reports: Reports,
    pub clock: Arc<Clock>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// What the device refuses is said, and loses the device of wgpu.
    pub fn checked<T>(&self, outcome: Result<T, DeviceError>) -> Result<T, hal::DeviceError> {
        outcome.map_err(|error| {
            self.reports.say(Message::Refusal {
                pipeline: None,
                text: error.to_string(),
            });
            hal::DeviceError::Lost
        })
    }
}

/// A device. Devices of an instance have the same memory and time.
#[derive(Debug)]
pub struct Device {
    shared: Arc<Shared>,
}

impl Device {
    pub(crate) fn new(options: Options) -> Device {
        let shared = Shared {
            reports: options.reports().of_device(),
            clock: options.clock().clone(),
            options,
        };
        Device {
            shared: Arc::new(shared),
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// What the simulator said of its kernels.
    pub fn reports(&self) -> &Reports {
        &self.shared.reports
    }
}

/// Something that is not there, where wgpu takes it for a want of memory: that is an error of the call and leaves the
/// device as it is.
fn absent(what: &str) -> hal::DeviceError {
    log_or_print(log::Level::Error, &format_args!("unsupported: {what}"));
    hal::DeviceError::OutOfMemory
}

/// A pipeline of a kind that is not there.
fn no_pipeline(stage: wgt::ShaderStages, what: &str) -> hal::PipelineError {
    hal::PipelineError::Linkage(stage, format!("unsupported: {what}"))
}

type Made<T> = Result<T, hal::DeviceError>;

impl hal::Device for Device {
    type A = Api;

    unsafe fn create_buffer(&self, desc: &hal::BufferDescriptor<'_>) -> Made<Buffer> {
        Buffer::new(self.shared.options.device(), desc)
    }

    unsafe fn destroy_buffer(&self, _buffer: Buffer) {}

    unsafe fn add_raw_buffer(&self, _buffer: &Buffer) {}

    unsafe fn map_buffer(
        &self,
        buffer: &Buffer,
        range: hal::MemoryRange,
    ) -> Made<hal::BufferMapping> {
        let ptr = buffer.map(range)?;
        Ok(hal::BufferMapping {
            ptr,
            is_coherent: true,
        })
    }

    unsafe fn unmap_buffer(&self, buffer: &Buffer) {
        buffer.unmap();
    }

    unsafe fn flush_mapped_ranges<I>(&self, _buffer: &Buffer, _ranges: I) {}

    unsafe fn invalidate_mapped_ranges<I>(&self, _buffer: &Buffer, _ranges: I) {}

    unsafe fn create_texture(&self, _desc: &hal::TextureDescriptor<'_>) -> Made<Never> {
        Err(absent("textures"))
    }

    unsafe fn destroy_texture(&self, texture: Never) {
        match texture {}
    }

    unsafe fn add_raw_texture(&self, texture: &Never) {
        match *texture {}
    }

    unsafe fn create_texture_view(
        &self,
        texture: &Never,
        _desc: &hal::TextureViewDescriptor<'_>,
    ) -> Made<Never> {
        match *texture {}
    }

    unsafe fn destroy_texture_view(&self, view: Never) {
        match view {}
    }

    unsafe fn create_sampler(&self, _desc: &hal::SamplerDescriptor<'_>) -> Made<Never> {
        Err(absent("samplers"))
    }

    unsafe fn destroy_sampler(&self, sampler: Never) {
        match sampler {}
    }

    unsafe fn create_command_encoder(
        &self,
        _desc: &hal::CommandEncoderDescriptor<'_, Queue>,
    ) -> Made<CommandEncoder> {
        Ok(CommandEncoder::default())
    }

    unsafe fn create_bind_group_layout(
        &self,
        desc: &hal::BindGroupLayoutDescriptor<'_>,
    ) -> Made<BindGroupLayout> {
        Ok(BindGroupLayout::new(desc.entries))
    }

    unsafe fn destroy_bind_group_layout(&self, _layout: BindGroupLayout) {}

    unsafe fn create_pipeline_layout(
        &self,
        _desc: &hal::PipelineLayoutDescriptor<'_, BindGroupLayout>,
    ) -> Made<PipelineLayout> {
        Ok(PipelineLayout)
    }

    unsafe fn destroy_pipeline_layout(&self, _layout: PipelineLayout) {}

    unsafe fn create_bind_group(
        &self,
        desc: &hal::BindGroupDescriptor<'_, BindGroupLayout, Buffer, Never, Never, Never>,
    ) -> Made<BindGroup> {
        BindGroup::new(desc.layout, desc.entries, desc.buffers)
    }

    unsafe fn destroy_bind_group(&self, _group: BindGroup) {}

    unsafe fn create_shader_module(
        &self,
        desc: &hal::ShaderModuleDescriptor<'_>,
        shader: hal::ShaderInput<'_>,
    ) -> Result<ShaderModule, hal::ShaderError> {
        ShaderModule::new(desc, shader)
    }

    unsafe fn destroy_shader_module(&self, _module: ShaderModule) {}

    unsafe fn create_render_pipeline(
        &self,
        _desc: &hal::RenderPipelineDescriptor<'_, PipelineLayout, ShaderModule, Never>,
    ) -> Result<Never, hal::PipelineError> {
        Err(no_pipeline(wgt::ShaderStages::VERTEX, "render pipelines"))
    }

    unsafe fn destroy_render_pipeline(&self, pipeline: Never) {
        match pipeline {}
    }

    unsafe fn create_compute_pipeline(
        &self,
        desc: &hal::ComputePipelineDescriptor<'_, PipelineLayout, ShaderModule, Never>,
    ) -> Result<ComputePipeline, hal::PipelineError> {
        let options = &self.shared.options;
        ComputePipeline::new(options.device(), options, desc.label, &desc.stage)
    }

    unsafe fn destroy_compute_pipeline(&self, _pipeline: ComputePipeline) {}

    unsafe fn create_ray_tracing_pipeline(
        &self,
        _desc: &hal::RayTracingPipelineDescriptor<'_, PipelineLayout, ShaderModule, Never>,
    ) -> Result<Never, hal::PipelineError> {
        Err(no_pipeline(
            wgt::ShaderStages::RAY_GENERATION,
            "ray tracing",
        ))
    }

    unsafe fn destroy_ray_tracing_pipeline(&self, pipeline: Never) {
        match pipeline {}
    }

    unsafe fn get_raytracing_pipeline_group_data(
        &self,
        pipeline: &Never,
        _groups: Range<u32>,
    ) -> Made<Vec<u8>> {
        match *pipeline {}
    }

    unsafe fn create_pipeline_cache(
        &self,
        _desc: &hal::PipelineCacheDescriptor<'_>,
    ) -> Result<Never, hal::PipelineCacheError> {
        Err(hal::PipelineCacheError::Device(absent("pipeline caches")))
    }

    unsafe fn destroy_pipeline_cache(&self, cache: Never) {
        match cache {}
    }

    unsafe fn create_query_set(
        &self,
        desc: &wgt::QuerySetDescriptor<hal::Label<'_>>,
    ) -> Made<QuerySet> {
        Ok(QuerySet::new(desc.count))
    }

    unsafe fn destroy_query_set(&self, _set: QuerySet) {}

    unsafe fn create_fence(&self) -> Made<Fence> {
        Ok(Fence::default())
    }

    unsafe fn destroy_fence(&self, _fence: Fence) {}

    unsafe fn get_fence_value(&self, fence: &Fence) -> Made<hal::FenceValue> {
        Ok(fence.value())
    }

    /// A submission has ended when it is made, so that nothing is waited for.
    unsafe fn wait(
        &self,
        fence: &Fence,
        value: hal::FenceValue,
        _timeout: Option<Duration>,
    ) -> Made<bool> {
        Ok(fence.value() >= value)
    }

    unsafe fn start_graphics_debugger_capture(&self) -> bool {
        false
    }

    unsafe fn stop_graphics_debugger_capture(&self) {}

    unsafe fn create_acceleration_structure(
        &self,
        _desc: &hal::AccelerationStructureDescriptor<'_>,
    ) -> Made<Never> {
        Err(absent("acceleration structures"))
    }

    unsafe fn get_acceleration_structure_build_sizes(
        &self,
        _desc: &hal::GetAccelerationStructureBuildSizesDescriptor<'_, Buffer>,
    ) -> hal::AccelerationStructureBuildSizes {
        hal::AccelerationStructureBuildSizes::default()
    }

    unsafe fn get_acceleration_structure_device_address(
        &self,
        structure: &Never,
    ) -> wgt::BufferAddress {
        match *structure {}
    }

    unsafe fn destroy_acceleration_structure(&self, structure: Never) {
        match structure {}
    }

    fn tlas_instance_to_bytes(&self, _instance: hal::TlasInstance) -> Vec<u8> {
        Vec::new()
    }

    fn get_internal_counters(&self) -> wgt::HalCounters {
        wgt::HalCounters::default()
    }

    fn check_if_oom(&self) -> Made<()> {
        Ok(())
    }
}
