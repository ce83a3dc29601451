//! What CubeCL is told of a device.

use crate::ThisgpuDevice;
use cranelift_thisgpu::DeviceProperties as Hardware;
use cubecl_common::profile::TimingMethod;
use cubecl_core::ir::{
    AddressType, DeviceIdentity, DeviceProperties, ElemType, FloatKind, HardwareProperties,
    IntKind, MemoryDeviceProperties, Type, UIntKind,
    features::{AtomicUsage, EnumSet, Features, Plane, TypeUsage},
};

/// Units of a plane: the lanes of a warp.
pub const PLANE_UNITS: u32 = 32;

/// Bits of the widest access of a lane.
const ACCESS_BITS: u32 = 128;

/// Elements of the longest vector that is advertised. Longer ones are translated as well.
const VECTOR_ELEMENTS: usize = 16;

/// Cubes of a launch along x, y and z.
const MOST_CUBES: (u32, u32, u32) = (i32::MAX as u32, u16::MAX as u32, u16::MAX as u32);

/// What the device does and holds. What it does not name it cannot: matrix instructions, tensor maps, barriers in
/// memory, clusters.
pub fn device_properties(device: ThisgpuDevice) -> DeviceProperties {
    let hardware = Hardware::ASSIGNED;
    let memory = device.config().memory_bytes;
    let threads = hardware.block_threads;
    let topology = HardwareProperties {
        load_width: ACCESS_BITS,
        vector_register_count: None,
        plane_size_min: PLANE_UNITS,
        plane_size_max: PLANE_UNITS,
        max_bindings: 128,
        max_shared_memory_size: hardware.shared_bytes as usize,
        max_cube_count: MOST_CUBES,
        max_units_per_cube: threads,
        max_cube_dim: (threads, threads, threads),
        num_streaming_multiprocessors: Some(hardware.multiprocessors),
        num_cpu_cores: None,
        last_level_cache_size: None,
        num_tensor_cores: None,
        min_tensor_cores_dim: None,
        max_vector_size: VECTOR_ELEMENTS,
        cube_mma_reserved_shared_memory: 0,
    };
    let features = Features {
        plane: Plane::Ops | Plane::Sync | Plane::NonUniformControlFlow,
        memory_reinterpret: true,
        alignment: true,
        device_memory_scope: true,
        ..Features::default()
    };
    let mut properties = DeviceProperties::new(
        features,
        // A single allocation may be as large as half of the memory.
        MemoryDeviceProperties::new(memory / 2, device.alignment()).with_max_memory(memory),
        topology,
        TimingMethod::Device,
        DeviceIdentity {
            name: "thisgpu simulator".to_string(),
            // What was measured on one device, and kept, is nothing of another's.
            fingerprint: format!("thisgpu-{}-{device}", env!("CARGO_PKG_VERSION")),
            physical: None,
        },
    );
    register_types(&mut properties);
    properties
}

fn register_types(properties: &mut DeviceProperties) {
    properties.register_address_type(AddressType::U32);
    properties.register_address_type(AddressType::U64);
    let integers = [
        ElemType::UInt(UIntKind::U8),
        ElemType::UInt(UIntKind::U16),
        ElemType::UInt(UIntKind::U32),
        ElemType::UInt(UIntKind::U64),
        ElemType::Int(IntKind::I8),
        ElemType::Int(IntKind::I16),
        ElemType::Int(IntKind::I32),
        ElemType::Int(IntKind::I64),
    ];
    let floats = [
        FloatKind::F16,
        FloatKind::BF16,
        FloatKind::Flex32,
        FloatKind::TF32,
        FloatKind::F32,
        FloatKind::F64,
    ];
    let floats = floats.map(ElemType::Float);
    let others = [ElemType::Index, ElemType::Bool];
    for ty in integers.into_iter().chain(floats).chain(others) {
        properties.register_type_usage(ty, TypeUsage::all());
    }
    // Their conversions are arithmetic on bytes.
    for kind in [
        FloatKind::E4M3,
        FloatKind::E5M2,
        FloatKind::UE8M0,
        FloatKind::E2M1x2,
    ] {
        let usage = TypeUsage::Conversion | TypeUsage::Buffer;
        properties.register_type_usage(ElemType::Float(kind), usage);
    }
    for ty in integers {
        properties.register_atomic_type_usage(Type::atomic(ty), AtomicUsage::all());
    }
    // Bits of floats are nobody's.
    let of_floats: EnumSet<AtomicUsage> = AtomicUsage::LoadStore
        | AtomicUsage::Exchange
        | AtomicUsage::Add
        | AtomicUsage::MinMax
        | AtomicUsage::CompareExchange;
    for kind in [
        FloatKind::F16,
        FloatKind::BF16,
        FloatKind::F32,
        FloatKind::F64,
    ] {
        let ty = Type::atomic(ElemType::Float(kind));
        properties.register_atomic_type_usage(ty, of_floats);
    }
}
