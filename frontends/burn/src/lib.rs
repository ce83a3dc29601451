//! Burn on thisgpu: programs of [`burn`] 0.22.1 run on the simulator of `cranelift-thisgpu`, which can check every
//! kernel that they launch.
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use burn_thisgpu::ThisGpu;
//!
//! let device = ThisGpu::checking().device();
//! let x = Tensor::<2>::from_floats([[1.0, 2.0], [3.0, 4.0]], &device);
//! let y = x.clone().matmul(x.transpose());
//! assert_eq!(y.into_data().to_vec::<f32>().unwrap(), [5.0, 11.0, 11.0, 25.0]);
//! ```
//!
//! Burn has one backend for all runtimes of CubeCL, and CubeCL a closed list of them: the package `cubecl-cuda` beside
//! this one stands in for the member that is CUDA, and [`ThisGpu`] is a device of that. A program that says
//! `Device::cuda(0)` or takes the default device needs nothing of this crate; the README says how it is switched over.

#![deny(unsafe_code)]

use burn::tensor::Device;
use cubecl_thisgpu::ThisgpuDevice;

pub use cubecl_thisgpu::{DEVICE_VARIABLE, Mode, REPORT_VARIABLE, THREADS_VARIABLE};

/// A simulated device, as Burn takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThisGpu(ThisgpuDevice);

impl ThisGpu {
    /// As fast as it can.
    pub fn plain() -> ThisGpu {
        ThisGpu(ThisgpuDevice::new(Mode::Plain))
    }

    /// Looks for races, reads of what nobody wrote and accesses beside a buffer; a finding is the error of reading what
    /// the kernel would have written.
    pub fn checking() -> ThisGpu {
        ThisGpu(ThisgpuDevice::new(Mode::Checking))
    }

    /// Counts cycles, which `Device::profile` gives as nanoseconds.
    pub fn timed() -> ThisGpu {
        ThisGpu(ThisgpuDevice::new(Mode::Timed))
    }

    /// The same on so many threads of the host, at most [`ThisgpuDevice::MOST_THREADS`]; 0 stands for as many as it
    /// runs at a time.
    pub fn threads(self, threads: u16) -> ThisGpu {
        ThisGpu(self.0.with_threads(threads))
    }

    /// The same threads, and what [`checking`](Self::checking) does.
    pub fn checked(self) -> ThisGpu {
        ThisGpu::checking().threads(self.0.threads())
    }

    /// What it does beside running kernels.
    pub fn mode(self) -> Mode {
        self.0.mode()
    }

    /// Burn's device. `.autodiff()` of it records gradients. What the environment names is Burn's default device.
    pub fn device(self) -> Device {
        match self == ThisGpu::default() {
            true => Device::cuda(0),
            false => Device::cuda(usize::from(self.0.number())),
        }
    }
}

impl Default for ThisGpu {
    /// The device that [`DEVICE_VARIABLE`] and [`THREADS_VARIABLE`] name, or the plain one.
    fn default() -> Self {
        ThisGpu(ThisgpuDevice::default())
    }
}

impl From<ThisGpu> for Device {
    fn from(device: ThisGpu) -> Device {
        device.device()
    }
}
