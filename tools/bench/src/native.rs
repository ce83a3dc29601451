//! The same kernels on the host: compiled by Cranelift's own back end for it and called for each thread, one after
//! another.
//!
//! Reads of the numbers of thread and block become parameters, and a loop over all threads is compiled with the kernel.
//! Kernels whose threads need each other cannot be run so.

use anyhow::{Result, anyhow, bail};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{AbiParam, Function, Inst, InstructionData, Value};
use cranelift_reader::parse_functions;
use fuzz::host::{Host, isa};
use std::fmt::Write;

/// What a thread asks for that becomes a parameter: the number of its block, the threads of a block, its own number.
const NUMBERS: [&str; 3] = ["%gpu_ctaid_x", "%gpu_ntid_x", "%gpu_tid_x"];

/// What promises something of an address and gives that back.
const PROMISE: &str = "%gpu_assume_aligned";

/// A kernel and its loop over threads.
pub struct Native {
    host: Host,
}

impl Native {
    /// Compiles the only function of a text; none where its threads need each other.
    ///
    /// # Errors
    /// What the host's back end lacks.
    pub fn new(text: &str) -> Result<Option<Native>> {
        let start = text.find("function").unwrap_or(0);
        let mut functions = parse_functions(&text[start..])?;
        let [kernel] = &mut functions[..] else {
            bail!("one function is expected");
        };
        if !numbers_to_parameters(kernel) {
            return Ok(None);
        }
        let mut driver = parse_functions(&driver(kernel))?;
        let driver = driver.pop().ok_or_else(|| anyhow!("no function"))?;
        let isa = isa("speed").map_err(|error| anyhow!(error))?;
        let host = Host::compile(&isa, &[&driver, kernel]).map_err(|error| anyhow!(error))?;
        Ok(Some(Native { host }))
    }

    /// Runs the threads of so many blocks in x.
    ///
    /// # Errors
    /// Arguments that are not the kernel's.
    pub fn run(&self, arguments: &[DataValue], blocks: u32, threads: u32) -> Result<()> {
        let mut all = arguments.to_vec();
        all.extend([blocks, threads].map(|n| DataValue::I32(n as i32)));
        self.host
            .call(0, &all)
            .map_err(|error| anyhow!(error))
            .map(drop)
    }
}

/// Appends the numbers to the parameters and uses these; whether the function asks for nothing else.
fn numbers_to_parameters(kernel: &mut Function) -> bool {
    let Some(entry) = kernel.layout.entry_block() else {
        return false;
    };
    let values = NUMBERS.map(|_| {
        kernel.signature.params.push(AbiParam::new(I32));
        kernel.dfg.append_block_param(entry, I32)
    });
    let insts: Vec<Inst> = (kernel.layout.blocks())
        .flat_map(|block| kernel.layout.block_insts(block))
        .collect();
    let alone = insts.into_iter().all(|inst| replace(kernel, inst, &values));
    if alone {
        // Nobody calls them any more.
        kernel.dfg.ext_funcs.clear();
    }
    alone
}

/// Replaces a call that asks for a number or promises something; false for any other call.
fn replace(kernel: &mut Function, inst: Inst, values: &[Value]) -> bool {
    let callee = match kernel.dfg.insts[inst] {
        InstructionData::Call { func_ref, .. } => func_ref,
        data => return !data.opcode().is_call(),
    };
    let name = &kernel.dfg.ext_funcs[callee].name;
    let name = name.display(Some(&kernel.params)).to_string();
    let number = NUMBERS.iter().position(|number| *number == name);
    let value = match (number, name.as_str()) {
        (Some(index), _) => values[index],
        (None, PROMISE) => kernel.dfg.inst_args(inst)[0],
        _ => return false,
    };
    let result = kernel.dfg.first_result(inst);
    kernel.dfg.clear_results(inst);
    kernel.dfg.change_to_alias(result, value);
    FuncCursor::new(kernel).at_inst(inst).remove_inst();
    true
}

/// A function that calls the kernel for every thread.
fn driver(kernel: &Function) -> String {
    let own = kernel.signature.params.len() - NUMBERS.len();
    let types: Vec<String> = (kernel.signature.params.iter())
        .map(|param| param.value_type.to_string())
        .collect();
    let names: Vec<String> = (0..own).map(|index| format!("v{index}")).collect();
    let pairs = names.iter().zip(&types);
    let parameters = pairs.map(|(name, ty)| format!("{name}: {ty}"));
    let parameters: Vec<String> = parameters
        .chain(["v90: i32", "v91: i32"].map(String::from))
        .collect();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "function %all_threads({}, i32, i32) {{\n    fn0 = {}({})\nblock0({}):",
        types[..own].join(", "),
        kernel.name,
        types.join(", "),
        parameters.join(", "),
    );
    let _ = write!(
        text,
        "    v92 = iconst.i32 0
    v93 = iconst.i32 1
    jump block1(v92)
block1(v94: i32):
    jump block2(v92)
block2(v95: i32):
    call fn0({}, v94, v91, v95)
    v96 = iadd v95, v93
    v97 = icmp ult v96, v91
    brif v97, block2(v96), block3
block3:
    v98 = iadd v94, v93
    v99 = icmp ult v98, v90
    brif v99, block1(v98), block4
block4:
    return
}}
",
        names.join(", ")
    );
    text
}
