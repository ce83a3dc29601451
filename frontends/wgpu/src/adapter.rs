//! The adapter: what wgpu is told of the device. What is not translated or not run is not promised.

use crate::options::Options;
use crate::{Api, Device, Queue, Surface};
use std::fmt;
use thisgpu_naga::BoundBuffer;
use wgpu::{DownlevelFlags as Flags, Features, Limits, TextureFormat};
use wgpu_hal as hal;
use wgpu_types as wgt;

/// Invocations of a subgroup: the lanes of a warp.
const SUBGROUP: u32 = 32;

/// Bytes of a buffer and of a binding, at most. Lengths of bindings are 32 bits.
const BUFFER_BYTES: u64 = 1 << 31;

/// Buffers of each kind that a stage may use (assigned): each takes 16 bytes of the 4096 that a kernel's parameters
/// have.
const STAGE_BUFFERS: u32 = 64;

/// Bytes of immediates, at most (assigned).
pub(crate) const IMMEDIATE_BYTES: u32 = 256;

/// Workgroups of a dispatch along an axis, at most: the least of the three extents of a grid.
pub(crate) const WORKGROUPS: u32 = 65_535;

/// The adapter of an instance.
pub struct Adapter {
    options: Options,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").finish_non_exhaustive()
    }
}

impl Adapter {
    pub(crate) fn new(options: Options) -> Adapter {
        Adapter { options }
    }

    /// The adapter with what is said of it.
    pub(crate) fn exposed(self) -> hal::ExposedAdapter<Api> {
        let device = self.options.device();
        let hardware = device.properties();
        let counts = match self.options.clock().counts_cycles() {
            true => "cycles",
            false => "no cycles",
        };
        let info = wgt::AdapterInfo {
            name: device.name(),
            driver: "cranelift-thisgpu".to_string(),
            driver_info: format!("{}, counts {counts}", env!("CARGO_PKG_VERSION")),
            subgroup_min_size: SUBGROUP,
            subgroup_max_size: SUBGROUP,
            ..wgt::AdapterInfo::new(self.options.adapter_type(), wgt::Backend::Noop)
        };
        let one = wgt::BufferSize::MIN;
        let capabilities = hal::Capabilities {
            limits: limits(hardware.block_threads, hardware.shared_bytes),
            alignments: hal::Alignments {
                buffer_copy_offset: one,
                buffer_copy_pitch: one,
                uniform_bounds_check_alignment: one,
                raw_tlas_instance_size: 0,
                ray_tracing_scratch_buffer_alignment: 1,
                ray_tracing_pipeline_group_data_size: 1,
                ray_tracing_pipeline_group_data_alignment: 1,
                ray_tracing_pipeline_data_offset_alignment: 1,
            },
            downlevel: wgt::DownlevelCapabilities {
                flags: Flags::COMPUTE_SHADERS
                    | Flags::INDIRECT_EXECUTION
                    | Flags::BUFFER_BINDINGS_NOT_16_BYTE_ALIGNED
                    | Flags::NONBLOCKING_QUERY_RESOLVE
                    | Flags::SHADER_F16_IN_F32,
                limits: wgt::DownlevelLimits {},
                shader_model: wgt::ShaderModel::Sm5,
            },
            cooperative_matrix_properties: Vec::new(),
        };
        hal::ExposedAdapter {
            adapter: self,
            info,
            features: features(),
            capabilities,
        }
    }
}

/// What is beyond the least that WebGPU has.
fn features() -> Features {
    Features::IMMEDIATES
        | Features::MAPPABLE_PRIMARY_BUFFERS
        | Features::MEMORY_DECORATION_COHERENT
        | Features::MEMORY_DECORATION_VOLATILE
        | Features::SHADER_F16
        | Features::SHADER_F64
        | Features::SHADER_FLOAT32_ATOMIC
        | Features::SHADER_I16
        | Features::SHADER_INT64
        | Features::SHADER_INT64_ATOMIC_ALL_OPS
        | Features::SHADER_INT64_ATOMIC_MIN_MAX
        | Features::SUBGROUP
        | Features::SUBGROUP_BARRIER
        | Features::TIMESTAMP_QUERY
        | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
        | Features::TIMESTAMP_QUERY_INSIDE_PASSES
}

/// What a device may be asked for. Limits of what there is not, such as textures, are the least that WebGPU knows: most
/// programs ask for all of them, whatever they use.
fn limits(threads: u32, shared: u32) -> Limits {
    Limits {
        max_bind_groups: hal::MAX_BIND_GROUPS as u32,
        max_dynamic_uniform_buffers_per_pipeline_layout: STAGE_BUFFERS,
        max_dynamic_storage_buffers_per_pipeline_layout: STAGE_BUFFERS,
        max_storage_buffers_per_shader_stage: STAGE_BUFFERS,
        max_uniform_buffers_per_shader_stage: STAGE_BUFFERS,
        max_buffers_and_acceleration_structures_per_shader_stage: 2 * STAGE_BUFFERS,
        max_uniform_buffer_binding_size: BUFFER_BYTES,
        max_storage_buffer_binding_size: BUFFER_BYTES,
        max_buffer_size: BUFFER_BYTES,
        // WebGPU wants no less; a variable needs half of it (`BoundBuffer::ALIGNMENT`).
        min_uniform_buffer_offset_alignment: 32,
        min_storage_buffer_offset_alignment: 32,
        max_compute_workgroup_storage_size: shared,
        max_compute_invocations_per_workgroup: threads,
        max_compute_workgroup_size_x: threads,
        max_compute_workgroup_size_y: threads,
        max_compute_workgroup_size_z: threads,
        max_compute_workgroups_per_dimension: WORKGROUPS,
        max_immediate_size: IMMEDIATE_BYTES,
        ..Limits::defaults()
    }
}

const _: () = assert!(32_u64.is_multiple_of(BoundBuffer::ALIGNMENT));

impl hal::Adapter for Adapter {
    type A = Api;

    unsafe fn open(
        &self,
        _features: Features,
        _limits: &Limits,
        _hints: &wgt::MemoryHints,
    ) -> Result<hal::OpenDevice<Api>, hal::DeviceError> {
        let device = Device::new(self.options.clone());
        let queue = Queue::new(&device);
        Ok(hal::OpenDevice { device, queue })
    }

    unsafe fn texture_format_capabilities(
        &self,
        _format: TextureFormat,
    ) -> hal::TextureFormatCapabilities {
        hal::TextureFormatCapabilities::empty()
    }

    unsafe fn surface_capabilities(&self, _surface: &Surface) -> Option<hal::SurfaceCapabilities> {
        None
    }

    unsafe fn get_presentation_timestamp(&self) -> wgt::PresentationTimestamp {
        wgt::PresentationTimestamp::INVALID_TIMESTAMP
    }

    /// Commands run one after the other, so that no two uses need a barrier.
    fn get_ordered_buffer_usages(&self) -> wgt::BufferUses {
        wgt::BufferUses::all()
    }

    fn get_ordered_texture_usages(&self) -> wgt::TextureUses {
        wgt::TextureUses::all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thisgpu_naga::capabilities;

    /// With all features that are promised, naga lets pass what the translator has something for, and nothing else.
    #[test]
    fn features_are_what_the_translator_has() {
        let exposed = Adapter::new(Options::plain()).exposed();
        let caps = wgpu_core::naga::valid::Capabilities::all();
        assert!(caps.contains(capabilities()));
        let promised = exposed.features;
        let has = |caps: wgpu_core::naga::valid::Capabilities| capabilities().contains(caps);
        use wgpu_core::naga::valid::Capabilities as Caps;
        for (feature, caps) in [
            (Features::IMMEDIATES, Caps::IMMEDIATES),
            (Features::SHADER_F16, Caps::SHADER_FLOAT16),
            (Features::SHADER_F64, Caps::FLOAT64),
            (Features::SHADER_I16, Caps::SHADER_INT16),
            (Features::SHADER_INT64, Caps::SHADER_INT64),
            (Features::SUBGROUP, Caps::SUBGROUP),
            (Features::SUBGROUP_BARRIER, Caps::SUBGROUP_BARRIER),
            (Features::SHADER_FLOAT32_ATOMIC, Caps::SHADER_FLOAT32_ATOMIC),
            (
                Features::SHADER_INT64_ATOMIC_MIN_MAX,
                Caps::SHADER_INT64_ATOMIC_MIN_MAX,
            ),
            (
                Features::SHADER_INT64_ATOMIC_ALL_OPS,
                Caps::SHADER_INT64_ATOMIC_ALL_OPS,
            ),
            (
                Features::MEMORY_DECORATION_COHERENT,
                Caps::MEMORY_DECORATION_COHERENT,
            ),
            (
                Features::MEMORY_DECORATION_VOLATILE,
                Caps::MEMORY_DECORATION_VOLATILE,
            ),
            (Features::PRIMITIVE_INDEX, Caps::PRIMITIVE_INDEX),
            (Features::BUFFER_BINDING_ARRAY, Caps::BUFFER_BINDING_ARRAY),
            (Features::EXPERIMENTAL_RAY_QUERY, Caps::RAY_QUERY),
            (
                Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
                Caps::COOPERATIVE_MATRIX,
            ),
        ] {
            assert_eq!(promised.contains(feature), has(caps), "{feature:?}");
        }
    }
}
