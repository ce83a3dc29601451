//! What the note says of functions.

use cranelift_thisgpu::object::{
    Kernel, Linkage, Object, ObjectFunction, OwnResources, ParameterKind, RelocationKind, Resources,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// A function and what it needs.
#[derive(Serialize)]
pub struct Function {
    name: String,
    linkage: Linkage,
    instructions: usize,
    kernel: Option<KernelNeeds>,
    /// With all that it calls.
    all: Resources,
    own: OwnResources,
    /// Whom it calls by name, sorted.
    callees: Vec<String>,
}

/// What a launch must know.
#[derive(Serialize)]
struct KernelNeeds {
    parameters: Vec<ParameterNeeds>,
    shared_bytes: u32,
    max_threads: Option<u32>,
    min_blocks: Option<u32>,
    /// The registers that the bounds leave a thread.
    register_limit: Option<u32>,
}

/// A parameter.
#[derive(Serialize)]
struct ParameterNeeds {
    /// In constant bank 0.
    offset: u32,
    size: u32,
    kind: ParameterKind,
    #[serde(rename = "type")]
    ty: Option<String>,
}

/// The needs of all functions, in the order of the code.
pub fn of(object: &Object) -> Vec<Function> {
    object.functions.iter().map(function).collect()
}

fn function(function: &ObjectFunction) -> Function {
    let calls = function.relocations.iter();
    let calls = calls.filter(|r| r.kind == RelocationKind::Rel);
    let callees: BTreeSet<&String> = calls.map(|r| &r.symbol).collect();
    Function {
        name: function.name.clone(),
        linkage: function.linkage,
        instructions: function.words.len(),
        kernel: function.kernel.as_ref().map(kernel),
        all: function.resources,
        own: function.own.clone(),
        callees: callees.into_iter().cloned().collect(),
    }
}

fn kernel(kernel: &Kernel) -> KernelNeeds {
    let parameters = kernel.parameters.iter().map(|p| ParameterNeeds {
        offset: p.offset,
        size: p.size,
        kind: p.kind,
        ty: p.ty.map(|ty| ty.to_string()),
    });
    KernelNeeds {
        parameters: parameters.collect(),
        shared_bytes: kernel.shared_bytes,
        max_threads: kernel.max_threads,
        min_blocks: kernel.min_blocks,
        register_limit: kernel.register_limit().ok().flatten(),
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kernel {
            Some(_) => "kernel",
            None => "function",
        };
        let local = match self.linkage {
            Linkage::Local => ", local",
            Linkage::Global => "",
        };
        writeln!(
            f,
            "  {kind} {}{local}: {} instructions",
            self.name, self.instructions
        )?;
        if let Some(kernel) = &self.kernel {
            write!(f, "{kernel}")?;
        }
        let Resources {
            registers,
            local_bytes,
            barriers,
        } = self.all;
        writeln!(
            f,
            "    with callees: {registers} registers, {local_bytes} bytes of local memory, {barriers} barriers"
        )?;
        let OwnResources {
            registers,
            predicates,
            uniform,
            local_bytes,
            spill_bytes,
            barriers,
            calls_by_address,
            loops,
        } = &self.own;
        writeln!(
            f,
            "    by itself: {registers} registers, {predicates} predicates, {uniform} uniform registers, {local_bytes} \
             bytes of \
             local memory ({spill_bytes} spilled), {barriers} barriers"
        )?;
        if !loops.is_empty() {
            let loops: Vec<String> = loops.iter().map(u32::to_string).collect();
            writeln!(
                f,
                "    innermost loops of {} instructions",
                loops.join(", ")
            )?;
        }
        if !self.callees.is_empty() {
            writeln!(f, "    calls {}", self.callees.join(", "))?;
        }
        if *calls_by_address {
            writeln!(f, "    calls by address")?;
        }
        Ok(())
    }
}

impl fmt::Display for KernelNeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, p) in self.parameters.iter().enumerate() {
            let pointer = match p.kind {
                ParameterKind::Pointer => ", an address",
                ParameterKind::Value => "",
            };
            let ty = p.ty.as_deref().unwrap_or("unknown type");
            writeln!(
                f,
                "    parameter {index}: {ty} at {:#x}, {} bytes{pointer}",
                p.offset, p.size
            )?;
        }
        writeln!(f, "    shared memory: {} bytes", self.shared_bytes)?;
        let bounds = [
            ("threads of a block at most", self.max_threads),
            ("blocks in a multiprocessor at least", self.min_blocks),
            ("registers that this leaves a thread", self.register_limit),
        ];
        for (name, bound) in bounds {
            if let Some(bound) = bound {
                writeln!(f, "    {name}: {bound}")?;
            }
        }
        Ok(())
    }
}
