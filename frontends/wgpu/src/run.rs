//! Commands as they are recorded, and what each does when its submission is made.

use crate::adapter::WORKGROUPS;
use crate::device::Shared;
use crate::reports::Message;
use crate::{Buffer, ComputePipeline, QuerySet};
use cranelift_thisgpu::{DeviceError, Report};
use std::ops::Range;
use std::sync::Arc;
use thisgpu_naga::{Binding, LaunchError};
use wgpu_hal as hal;

/// A recorded command, with all that it needs.
#[derive(Debug)]
pub(crate) enum Command {
    /// Overwrites with zeros.
    Clear { buffer: Buffer, range: Range<u64> },
    /// Copies between buffers.
    Copy {
        from: Buffer,
        to: Buffer,
        region: hal::BufferCopy,
    },
    /// Runs workgroups.
    Dispatch {
        pipeline: ComputePipeline,
        bindings: Arc<Vec<Binding>>,
        immediates: Vec<u8>,
        groups: Groups,
    },
    /// Writes the time to a query.
    Timestamp { set: QuerySet, index: u32 },
    /// Makes queries 0.
    Reset { set: QuerySet, range: Range<u32> },
    /// Writes queries to a buffer.
    Resolve {
        set: QuerySet,
        range: Range<u32>,
        buffer: Buffer,
        offset: u64,
        stride: u64,
    },
}

/// How many workgroups a dispatch has.
#[derive(Clone, Debug)]
pub(crate) enum Groups {
    /// So many.
    Direct([u32; 3]),
    /// As the three numbers at this place of a buffer say.
    Indirect { buffer: Buffer, offset: u64 },
}

impl Groups {
    /// The three numbers. What is more than a dispatch may have is nothing to do, as WebGPU has it.
    fn count(&self) -> Result<[u32; 3], DeviceError> {
        let groups = match self {
            Groups::Direct(groups) => *groups,
            Groups::Indirect { buffer, offset } => {
                let mut words = [0u32; 3];
                buffer.read(*offset, bytemuck::cast_slice_mut(&mut words))?;
                words
            }
        };
        match groups.iter().any(|&count| count > WORKGROUPS) {
            true => Ok([0; 3]),
            false => Ok(groups),
        }
    }
}

impl Command {
    /// Does it. What goes wrong is said in the device's reports.
    pub(crate) fn run(&self, shared: &Shared) -> Result<(), hal::DeviceError> {
        match self {
            Command::Clear { buffer, range } => shared.checked(buffer.clear(range)),
            Command::Copy { from, to, region } => {
                let size = region.size.get();
                let source = region.src_offset..region.src_offset + size;
                let target = region.dst_offset..region.dst_offset + size;
                shared.checked(from.copy(source, to, target))
            }
            Command::Dispatch {
                pipeline,
                bindings,
                immediates,
                groups,
            } => {
                let groups = shared.checked(groups.count())?;
                let outcome = pipeline.kernel.dispatch(groups, bindings, immediates);
                dispatched(shared, pipeline, outcome)
            }
            Command::Timestamp { set, index } => {
                set.set(*index, shared.clock.now());
                Ok(())
            }
            Command::Reset { set, range } => {
                set.reset(range.clone());
                Ok(())
            }
            Command::Resolve {
                set,
                range,
                buffer,
                offset,
                stride,
            } => {
                let values = set.get(range.clone());
                let mut written = values.iter().zip(0..).map(|(value, number)| {
                    buffer.write(offset + number * stride, &value.to_le_bytes())
                });
                shared.checked(written.try_for_each(|written| written))
            }
        }
    }
}

/// What came of a dispatch.
fn dispatched(
    shared: &Shared,
    pipeline: &ComputePipeline,
    outcome: Result<Option<Report>, LaunchError>,
) -> Result<(), hal::DeviceError> {
    let label = || pipeline.label.to_string();
    match outcome {
        Ok(None) => Ok(()),
        Ok(Some(report)) => {
            heard(shared, pipeline, report);
            Ok(())
        }
        Err(LaunchError::Device(DeviceError::Fault { fault, report })) => {
            heard(shared, pipeline, *report);
            shared.reports.say(Message::Fault {
                pipeline: label(),
                fault,
            });
            Err(hal::DeviceError::Lost)
        }
        Err(error) => {
            shared.reports.say(Message::Refusal {
                pipeline: Some(label()),
                text: error.to_string(),
            });
            Err(hal::DeviceError::Lost)
        }
    }
}

/// Passes on what a report says beside the fault.
fn heard(shared: &Shared, pipeline: &ComputePipeline, report: Report) {
    shared.clock.pass(report.stats.cycles);
    for finding in report.findings {
        shared.reports.say(Message::Finding {
            pipeline: pipeline.label.to_string(),
            finding: Box::new(finding),
        });
    }
    for hazard in report.hazards {
        shared.reports.say(Message::Hazard {
            pipeline: pipeline.label.to_string(),
            hazard: Box::new(hazard),
        });
    }
}
