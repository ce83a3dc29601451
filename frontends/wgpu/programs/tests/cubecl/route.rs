//! CubeCL's runtime for wgpu on the simulator: its tests ask for the default device, which is ours here.

use cubecl_common::device::{Device, DeviceId};
use cubecl_core::ir::TargetProperties;
use cubecl_core::zspace::{Shape, Strides};
use cubecl_server::runtime::Runtime;
use cubecl_wgpu::{RuntimeOptions, WgpuDevice, WgpuRuntime, WgpuServer, WgpuSetup, init_device};
use std::sync::LazyLock;
use thisgpu_wgpu::{Options, instance, wgpu};

/// Written to standard error with each message of the simulator.
pub const MARK: &str = "thisgpu: ";

static DEVICE: LazyLock<WgpuDevice> = LazyLock::new(|| {
    let instance = instance(Options::from_env().on_message(|message| eprintln!("{MARK}{message}")));
    let adapter = pollster::block_on(instance.request_adapter(&Default::default()));
    let adapter = adapter.expect("there is an adapter");
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features(),
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let device = pollster::block_on(adapter.request_device(&descriptor));
    let (device, queue) = device.expect("it has what it has");
    let setup = WgpuSetup {
        backend: adapter.get_info().backend,
        instance,
        adapter,
        device,
        queue,
    };
    init_device(setup, RuntimeOptions::default())
});

/// The device that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Simulated(DeviceId);

impl Default for Simulated {
    fn default() -> Self {
        Simulated(DEVICE.to_id())
    }
}

impl Device for Simulated {
    fn from_id(id: DeviceId) -> Self {
        Simulated(id)
    }

    fn to_id(&self) -> DeviceId {
        self.0
    }
}

/// The runtime that is tested.
#[derive(Clone, Debug)]
pub struct Route;

impl Runtime for Route {
    type Server = WgpuServer<cubecl_wgpu::AutoCompiler>;
    type Device = Simulated;

    fn can_read_tensor(shape: &Shape, strides: &Strides) -> bool {
        WgpuRuntime::<cubecl_wgpu::AutoCompiler>::can_read_tensor(shape, strides)
    }

    fn target_properties() -> TargetProperties {
        WgpuRuntime::<cubecl_wgpu::AutoCompiler>::target_properties()
    }

    fn enumerate_devices(_: u16) -> Vec<DeviceId> {
        vec![DEVICE.to_id()]
    }
}
