//! What kernels need of the machine, as a report.

use crate::object::{Kernel, Needs, Object, ObjectFunction};
use crate::text::count;
use serde::Serialize;
use std::fmt;

/// The report of a kernel, as `--resource-usage` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KernelResources {
    /// Name.
    pub name: String,
    /// Its own instructions.
    pub instructions: u32,
    /// General-purpose registers of a thread.
    pub registers: u32,
    /// Predicates of a thread.
    pub predicates: u32,
    /// Uniform registers of a warp.
    pub uniform: u32,
    /// Bytes of spill slots of a thread, the kernel's own.
    pub spill_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Instructions of each innermost loop.
    pub loops: Vec<u32>,
}

impl fmt::Display for KernelResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {}, {}, {}, {} spilled, {} local, {} shared",
            self.name,
            count(self.instructions, "instruction"),
            count(self.registers, "register"),
            count(self.predicates, "predicate"),
            count(self.uniform, "uniform register"),
            count(self.spill_bytes, "byte"),
            count(self.local_bytes, "byte"),
            count(self.shared_bytes, "byte")
        )?;
        if !self.loops.is_empty() {
            let loops: Vec<String> = self.loops.iter().map(u32::to_string).collect();
            write!(f, ", innermost loops of {} instructions", loops.join(", "))?;
        }
        Ok(())
    }
}

impl KernelResources {
    /// The reports of an object's kernels, in the order of the code.
    pub(super) fn of_object(object: &Object) -> Vec<KernelResources> {
        let needs = object.needs();
        let kernel = |(function, needs): (&ObjectFunction, Needs)| {
            let kernel = function.kernel.as_ref()?;
            Some(Self::new(function, kernel, &needs))
        };
        object
            .functions
            .iter()
            .zip(needs)
            .filter_map(kernel)
            .collect()
    }

    fn new(function: &ObjectFunction, kernel: &Kernel, needs: &Needs) -> Self {
        Self {
            name: function.name.clone(),
            instructions: function.words.len() as u32,
            registers: needs.registers,
            predicates: needs.predicates,
            uniform: needs.uniform,
            spill_bytes: function.own.spill_bytes,
            local_bytes: needs.local_bytes,
            shared_bytes: kernel.shared_bytes,
            loops: function.own.loops.clone(),
        }
    }
}
