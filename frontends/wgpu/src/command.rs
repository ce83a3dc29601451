//! The encoder: it records commands with all that each of them needs. Nothing runs before the submission.

use crate::adapter::IMMEDIATE_BYTES;
use crate::buffer::unexpected;
use crate::run::{Command, Groups};
use crate::{Api, BindGroup, Buffer, ComputePipeline, Never, PipelineLayout, QuerySet};
use std::ops::Range;
use std::sync::Arc;
use thisgpu_naga::Binding;
use wgpu_hal as hal;
use wgpu_types as wgt;

/// Recorded commands.
#[derive(Debug)]
pub struct CommandBuffer {
    commands: Vec<Command>,
}

impl CommandBuffer {
    pub(crate) fn commands(&self) -> &[Command] {
        &self.commands
    }
}

/// Records commands.
#[derive(Debug, Default)]
pub struct CommandEncoder {
    commands: Vec<Command>,
    pass: Pass,
}

/// What a dispatch would take, as a compute pass has set it until now.
#[derive(Debug, Default)]
struct Pass {
    pipeline: Option<ComputePipeline>,
    groups: [Vec<Binding>; hal::MAX_BIND_GROUPS],
    /// All of `groups`, until one of them changes.
    bindings: Option<Arc<Vec<Binding>>>,
    immediates: Vec<u8>,
    /// The query that gets the time of the end.
    end: Option<(QuerySet, u32)>,
}

impl CommandEncoder {
    fn dispatch(&mut self, groups: Groups) {
        let Some(pipeline) = self.pass.pipeline.clone() else {
            unexpected("a dispatch without a pipeline");
            return;
        };
        let all = &self.pass.groups;
        let bindings = self
            .pass
            .bindings
            .get_or_insert_with(|| Arc::new(all.concat()))
            .clone();
        let mut immediates = self.pass.immediates.clone();
        immediates.resize(pipeline.kernel.interface().immediate_bytes as usize, 0);
        self.commands.push(Command::Dispatch {
            pipeline,
            bindings,
            immediates,
            groups,
        });
    }
}

impl hal::CommandEncoder for CommandEncoder {
    type A = Api;

    unsafe fn begin_encoding(&mut self, _label: hal::Label<'_>) -> Result<(), hal::DeviceError> {
        *self = CommandEncoder::default();
        Ok(())
    }

    unsafe fn discard_encoding(&mut self) {
        // wgpu keeps encoders for later; this one is not to keep what the program gave back.
        *self = CommandEncoder::default();
    }

    unsafe fn end_encoding(&mut self) -> Result<CommandBuffer, hal::DeviceError> {
        let commands = std::mem::take(&mut self.commands);
        Ok(CommandBuffer { commands })
    }

    unsafe fn reset_all<I>(&mut self, _command_buffers: I) {}

    unsafe fn transition_buffers<'a, T>(&mut self, _barriers: T)
    where
        T: Iterator<Item = hal::BufferBarrier<'a, Buffer>>,
    {
    }

    unsafe fn transition_textures<'a, T>(&mut self, _barriers: T)
    where
        T: Iterator<Item = hal::TextureBarrier<'a, Never>>,
    {
    }

    unsafe fn clear_buffer(&mut self, buffer: &Buffer, range: hal::MemoryRange) {
        let buffer = buffer.clone();
        self.commands.push(Command::Clear { buffer, range });
    }

    unsafe fn copy_buffer_to_buffer<T>(&mut self, from: &Buffer, to: &Buffer, regions: T)
    where
        T: Iterator<Item = hal::BufferCopy>,
    {
        self.commands.extend(regions.map(|region| Command::Copy {
            from: from.clone(),
            to: to.clone(),
            region,
        }));
    }

    unsafe fn copy_texture_to_texture<T>(
        &mut self,
        from: &Never,
        _usage: wgt::TextureUses,
        _to: &Never,
        _regions: T,
    ) {
        match *from {}
    }

    unsafe fn copy_buffer_to_texture<T>(&mut self, _from: &Buffer, to: &Never, _regions: T) {
        match *to {}
    }

    unsafe fn copy_texture_to_buffer<T>(
        &mut self,
        from: &Never,
        _usage: wgt::TextureUses,
        _to: &Buffer,
        _regions: T,
    ) {
        match *from {}
    }

    unsafe fn copy_acceleration_structure_to_acceleration_structure(
        &mut self,
        from: &Never,
        _to: &Never,
        _copy: wgt::AccelerationStructureCopy,
    ) {
        match *from {}
    }

    unsafe fn set_bind_group(
        &mut self,
        _layout: &PipelineLayout,
        index: u32,
        group: &BindGroup,
        dynamic_offsets: &[wgt::DynamicOffset],
    ) {
        let Some(place) = self.pass.groups.get_mut(index as usize) else {
            unexpected("a bind group behind the limit");
            return;
        };
        *place = group.bindings(index, dynamic_offsets);
        self.pass.bindings = None;
    }

    unsafe fn set_immediates(&mut self, _layout: &PipelineLayout, offset: u32, data: &[u32]) {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if end > IMMEDIATE_BYTES as usize {
            unexpected("immediates behind the limit");
            return;
        }
        let all = &mut self.pass.immediates;
        all.resize(all.len().max(end), 0);
        all[start..end].copy_from_slice(bytes);
    }

    unsafe fn insert_debug_marker(&mut self, _label: &str) {}

    unsafe fn begin_debug_marker(&mut self, _label: &str) {}

    unsafe fn end_debug_marker(&mut self) {}

    unsafe fn begin_query(&mut self, _set: &QuerySet, _index: u32) {
        unexpected("an occlusion query");
    }

    unsafe fn end_query(&mut self, _set: &QuerySet, _index: u32) {
        unexpected("an occlusion query");
    }

    unsafe fn write_timestamp(&mut self, set: &QuerySet, index: u32) {
        let set = set.clone();
        self.commands.push(Command::Timestamp { set, index });
    }

    unsafe fn reset_queries(&mut self, set: &QuerySet, range: Range<u32>) {
        let set = set.clone();
        self.commands.push(Command::Reset { set, range });
    }

    unsafe fn copy_query_results(
        &mut self,
        set: &QuerySet,
        range: Range<u32>,
        buffer: &Buffer,
        offset: wgt::BufferAddress,
        stride: wgt::BufferSize,
    ) {
        self.commands.push(Command::Resolve {
            set: set.clone(),
            range,
            buffer: buffer.clone(),
            offset,
            stride: stride.get(),
        });
    }

    unsafe fn begin_render_pass(
        &mut self,
        _desc: &hal::RenderPassDescriptor<'_, QuerySet, Never>,
    ) -> Result<(), hal::DeviceError> {
        Err(unexpected("a render pass"))
    }

    unsafe fn end_render_pass(&mut self) {}

    unsafe fn set_render_pipeline(&mut self, pipeline: &Never) {
        match *pipeline {}
    }

    unsafe fn set_index_buffer<'a>(
        &mut self,
        _binding: hal::BufferBinding<'a, Buffer>,
        _format: wgt::IndexFormat,
    ) {
    }

    unsafe fn set_vertex_buffer<'a>(
        &mut self,
        _index: u32,
        _binding: hal::BufferBinding<'a, Buffer>,
    ) {
    }

    unsafe fn set_viewport(&mut self, _rect: &hal::Rect<f32>, _depth: Range<f32>) {}

    unsafe fn set_scissor_rect(&mut self, _rect: &hal::Rect<u32>) {}

    unsafe fn set_stencil_reference(&mut self, _value: u32) {}

    unsafe fn set_blend_constants(&mut self, _color: &[f32; 4]) {}

    unsafe fn draw(&mut self, _vertex: u32, _vertices: u32, _instance: u32, _instances: u32) {
        unexpected("a draw");
    }

    unsafe fn draw_indexed(
        &mut self,
        _index: u32,
        _indices: u32,
        _base: i32,
        _instance: u32,
        _instances: u32,
    ) {
        unexpected("a draw");
    }

    unsafe fn draw_indirect(&mut self, _buffer: &Buffer, _offset: u64, _count: u32) {
        unexpected("a draw");
    }

    unsafe fn draw_indexed_indirect(&mut self, _buffer: &Buffer, _offset: u64, _count: u32) {
        unexpected("a draw");
    }

    unsafe fn draw_indirect_count(
        &mut self,
        _buffer: &Buffer,
        _offset: u64,
        _count_buffer: &Buffer,
        _count_offset: u64,
        _most: u32,
    ) {
        unexpected("a draw");
    }

    unsafe fn draw_indexed_indirect_count(
        &mut self,
        _buffer: &Buffer,
        _offset: u64,
        _count_buffer: &Buffer,
        _count_offset: u64,
        _most: u32,
    ) {
        unexpected("a draw");
    }

    unsafe fn draw_mesh_tasks(&mut self, _x: u32, _y: u32, _z: u32) {
        unexpected("a draw");
    }

    unsafe fn draw_mesh_tasks_indirect(&mut self, _buffer: &Buffer, _offset: u64, _count: u32) {
        unexpected("a draw");
    }

    unsafe fn draw_mesh_tasks_indirect_count(
        &mut self,
        _buffer: &Buffer,
        _offset: u64,
        _count_buffer: &Buffer,
        _count_offset: u64,
        _most: u32,
    ) {
        unexpected("a draw");
    }

    unsafe fn begin_compute_pass(&mut self, desc: &hal::ComputePassDescriptor<'_, QuerySet>) {
        self.pass = Pass::default();
        let Some(writes) = &desc.timestamp_writes else {
            return;
        };
        let set = writes.query_set;
        if let Some(index) = writes.beginning_of_pass_write_index {
            let set = set.clone();
            self.commands.push(Command::Timestamp { set, index });
        }
        self.pass.end = writes
            .end_of_pass_write_index
            .map(|index| (set.clone(), index));
    }

    unsafe fn end_compute_pass(&mut self) {
        if let Some((set, index)) = self.pass.end.take() {
            self.commands.push(Command::Timestamp { set, index });
        }
        self.pass = Pass::default();
    }

    unsafe fn set_compute_pipeline(&mut self, pipeline: &ComputePipeline) {
        self.pass.pipeline = Some(pipeline.clone());
    }

    unsafe fn dispatch_workgroups(&mut self, count: [u32; 3]) {
        self.dispatch(Groups::Direct(count));
    }

    unsafe fn dispatch_workgroups_indirect(&mut self, buffer: &Buffer, offset: u64) {
        let buffer = buffer.clone();
        self.dispatch(Groups::Indirect { buffer, offset });
    }

    unsafe fn begin_ray_tracing_pass(&mut self, _desc: &hal::RayTracingPassDescriptor<'_>) {
        unexpected("a pass of rays");
    }

    unsafe fn end_ray_tracing_pass(&mut self) {}

    unsafe fn set_ray_tracing_pipeline(&mut self, pipeline: &Never) {
        match *pipeline {}
    }

    unsafe fn trace_rays<'a>(
        &mut self,
        _count: [u32; 3],
        _generation: hal::PipelineGroupData<'a, Buffer>,
        _miss: hal::PipelineGroupData<'a, Buffer>,
        _intersection: hal::PipelineGroupData<'a, Buffer>,
    ) {
        unexpected("rays");
    }

    unsafe fn build_acceleration_structures<'a, T>(&mut self, _count: u32, _descriptors: T)
    where
        T: IntoIterator<Item = hal::BuildAccelerationStructureDescriptor<'a, Buffer, Never>>,
    {
        unexpected("an acceleration structure");
    }

    unsafe fn place_acceleration_structure_barrier(
        &mut self,
        _barrier: hal::AccelerationStructureBarrier,
    ) {
    }

    unsafe fn read_acceleration_structure_compact_size(
        &mut self,
        structure: &Never,
        _buffer: &Buffer,
    ) {
        match *structure {}
    }

    unsafe fn set_acceleration_structure_dependencies(
        _command_buffers: &[&CommandBuffer],
        _dependencies: &[&Never],
    ) {
    }
}
