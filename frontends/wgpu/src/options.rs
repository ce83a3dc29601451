//! Which device an instance has, and how shaders are compiled for it.

use crate::query::Clock;
use crate::reports::{Message, Reports, log_or_print};
use cranelift_thisgpu::{Device, SimConfig};
use std::sync::Arc;
use thisgpu_naga::Bounds;
use wgpu::{DeviceType, InstanceFlags};

/// With this in the environment, [`Options::from_env`] gives another device: `plain`, `checking` or `timed`.
pub const DEVICE_VARIABLE: &str = "THISGPU_WGPU_DEVICE";

/// What an instance is made of. Clones share the device, its clock and the reports.
#[derive(Clone)]
pub struct Options {
    device: Device,
    clock: Arc<Clock>,
    bounds: Option<Bounds>,
    flags: InstanceFlags,
    device_type: DeviceType,
    reports: Reports,
    compiler: cranelift_thisgpu::Options,
}

impl Options {
    /// A new simulator that only runs.
    pub fn plain() -> Options {
        Options::from(SimConfig::default())
    }

    /// A new simulator that looks for races, barriers that only a part of a workgroup reaches, and reads of what nobody
    /// wrote. An index behind the end is a fault.
    pub fn checking() -> Options {
        Options::from(SimConfig {
            check: true,
            ..SimConfig::default()
        })
    }

    /// A new simulator that counts cycles: timestamps are cycles, and one is a nanosecond.
    pub fn timed() -> Options {
        Options::from(SimConfig {
            timed: true,
            ..SimConfig::default()
        })
    }

    /// The device that [`DEVICE_VARIABLE`] names, or the plain one. What names none is logged, or printed to standard
    /// error where there is no logger.
    pub fn from_env() -> Options {
        let Some(wanted) = std::env::var_os(DEVICE_VARIABLE) else {
            return Options::plain();
        };
        match wanted.to_str() {
            Some("plain") => Options::plain(),
            Some("checking") => Options::checking(),
            Some("timed") => Options::timed(),
            _ => {
                let wanted = wanted.display();
                let known = "plain, checking, timed";
                let text = format!("{DEVICE_VARIABLE}={wanted} is no device; there are {known}");
                log_or_print(log::Level::Warn, &text);
                Options::plain()
            }
        }
    }

    /// What becomes of indices behind the end. Without a value it is what the program asks for:
    /// [`Bounds::Restrict`], and [`Bounds::Fault`] in modules whose runtime checks it switches off. On a simulator that
    /// checks it is [`Bounds::Fault`] in all modules at first.
    pub fn bounds(mut self, bounds: Option<Bounds>) -> Options {
        self.bounds = bounds;
        self
    }

    /// The flags of the instance. At first they are those of the build and of wgpu's variables in the environment.
    /// `DEBUG` is always added: shaders come with their texts then, and messages name lines.
    pub fn flags(mut self, flags: InstanceFlags) -> Options {
        self.flags = flags;
        self
    }

    /// What the adapter says that it is. At first it is a virtual GPU: programs leave out what a GPU does on a CPU.
    pub fn device_type(mut self, device_type: DeviceType) -> Options {
        self.device_type = device_type;
        self
    }

    /// How shaders are compiled.
    pub fn compiler(mut self, options: cranelift_thisgpu::Options) -> Options {
        self.compiler = options;
        self
    }

    /// Calls `listener` with the messages of the simulator, in the thread that submits: what a device says again and
    /// what [`Reports`] omits it does not hear. It must not call wgpu.
    pub fn on_message(self, listener: impl Fn(&Message) + Send + Sync + 'static) -> Options {
        self.reports.listen(Box::new(listener));
        self
    }

    /// The messages of all devices of the instance.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    pub(crate) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    pub(crate) fn instance_flags(&self) -> InstanceFlags {
        self.flags | InstanceFlags::DEBUG
    }

    pub(crate) fn adapter_type(&self) -> DeviceType {
        self.device_type
    }

    pub(crate) fn bounds_for(&self, checks: bool) -> Bounds {
        let asked = match checks {
            true => Bounds::Restrict,
            false => Bounds::Fault,
        };
        self.bounds.unwrap_or(asked)
    }

    pub(crate) fn compiler_options(&self) -> &cranelift_thisgpu::Options {
        &self.compiler
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::plain()
    }
}

impl From<Device> for Options {
    /// A device of one's own. Whether it checks is not known: see [`Options::bounds`].
    fn from(device: Device) -> Self {
        Options {
            clock: Arc::new(Clock::new(&device)),
            device,
            bounds: None,
            flags: InstanceFlags::from_env_or_default(),
            device_type: DeviceType::VirtualGpu,
            reports: Reports::default(),
            compiler: cranelift_thisgpu::Options::default(),
        }
    }
}

impl From<SimConfig> for Options {
    /// A new simulator.
    fn from(config: SimConfig) -> Self {
        let options = Options::from(Device::simulator(config));
        options.bounds(config.check.then_some(Bounds::Fault))
    }
}
