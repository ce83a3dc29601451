//! Layouts and bind groups. Only buffers can be bound.

use crate::Buffer;
use crate::buffer::unexpected;
use wgpu_hal as hal;
use wgpu_types as wgt;

/// The layout of a bind group: which of its bindings take a dynamic offset.
#[derive(Clone, Debug)]
pub struct BindGroupLayout {
    /// Bindings with dynamic offsets, in their order.
    dynamic: Vec<u32>,
}

impl BindGroupLayout {
    pub(crate) fn new(entries: &[wgt::BindGroupLayoutEntry]) -> BindGroupLayout {
        let is_dynamic = |entry: &&wgt::BindGroupLayoutEntry| {
            matches!(
                entry.ty,
                wgt::BindingType::Buffer {
                    has_dynamic_offset: true,
                    ..
                }
            )
        };
        let mut dynamic: Vec<u32> = entries
            .iter()
            .filter(is_dynamic)
            .map(|entry| entry.binding)
            .collect();
        dynamic.sort_unstable();
        BindGroupLayout { dynamic }
    }
}

/// The layout of a pipeline. What a kernel needs is known from the kernel, so that there is nothing in it.
#[derive(Debug)]
pub struct PipelineLayout;

/// A part of a buffer that is bound.
#[derive(Clone, Debug)]
struct Entry {
    binding: u32,
    buffer: Buffer,
    offset: u64,
    bytes: u64,
    /// Which of the dynamic offsets is added.
    dynamic: Option<usize>,
}

/// A bind group: parts of buffers by binding.
#[derive(Clone, Debug, Default)]
pub struct BindGroup {
    entries: Vec<Entry>,
}

impl BindGroup {
    pub(crate) fn new(
        layout: &BindGroupLayout,
        entries: &[hal::BindGroupEntry],
        buffers: &[hal::BufferBinding<'_, Buffer>],
    ) -> Result<BindGroup, hal::DeviceError> {
        let mut bound = Vec::new();
        for entry in entries {
            let binding = buffers.get(entry.resource_index as usize);
            let binding = binding.filter(|_| entry.count == 1);
            let binding = binding.ok_or_else(|| unexpected("a binding that is no buffer"))?;
            let buffer = Buffer::of_binding(binding)
                .ok_or_else(|| unexpected("a binding that does not print its buffer"))?;
            let rest = buffer.bytes().saturating_sub(binding.offset);
            bound.push(Entry {
                binding: entry.binding,
                offset: binding.offset,
                bytes: binding.size.map_or(rest, |size| size.get().min(rest)),
                buffer,
                dynamic: layout.dynamic.iter().position(|&n| n == entry.binding),
            });
        }
        Ok(BindGroup { entries: bound })
    }

    /// What is bound as `@group(group)`, with these dynamic offsets. What lies behind its buffer's end, or only on the
    /// host, is left out: a kernel that needs it is refused.
    pub(crate) fn bindings(&self, group: u32, offsets: &[u32]) -> Vec<thisgpu_naga::Binding> {
        let part = |entry: &Entry| {
            let dynamic = entry.dynamic.and_then(|index| offsets.get(index));
            let start = entry.offset + u64::from(dynamic.copied().unwrap_or(0));
            let memory = entry.buffer.device_memory()?;
            Some(thisgpu_naga::Binding {
                group,
                binding: entry.binding,
                buffer: memory.slice(start..start + entry.bytes).ok()?,
            })
        };
        self.entries.iter().filter_map(part).collect()
    }
}
