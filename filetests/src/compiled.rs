//! What `test compile` and `test pass` print: machine instructions, then a disassembly of the emitted words; or a
//! function after a pass.

use cranelift_codegen::ir::{Function, Inst, SourceLoc};
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Pass, Timings, Unit};
use cranelift_thisgpu::compile::{SourceFile, SourceFunction};
use cranelift_thisgpu::error::Errors;
use cranelift_thisgpu::settings::Options;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// For each function its machine instructions as they go to register allocation, and the disassembly of its words.
/// The time of the passes is added to `timings`, if there are any.
pub fn listings(
    file: &SourceFile,
    options: &Options,
    timings: &mut Option<Timings>,
) -> Vec<Result<String, String>> {
    let listing = |function| {
        let Compiled { mut text, unit } =
            compile(file, function, options, Pass::BEFORE_ALLOCATION, timings)
                .map_err(|e| e.to_string())?;
        let code = unit.finish().map_err(|errors| errors.to_string())?;
        let (disassembly, bad) = asm::listing(code.object());
        if let Some(word) = bad.first() {
            return Err(format!("the emitted code does not disassemble: {word}"));
        }
        writeln!(text, "\n{}", disassembly.trim_end()).map_err(|error| error.to_string())?;
        Ok(text)
    };
    file.functions.iter().map(listing).collect()
}

/// For each function its text after `pass`. The time of the passes is added to `timings`, if there are any.
pub fn dumps(
    file: &SourceFile,
    options: &Options,
    pass: Pass,
    timings: &mut Option<Timings>,
) -> Vec<Result<String, Errors>> {
    let dump =
        |function| compile(file, function, options, pass, timings).map(|compiled| compiled.text);
    file.functions.iter().map(dump).collect()
}

/// A function compiled by itself.
struct Compiled {
    /// Its text after the pass that was asked for.
    text: String,
    unit: Unit,
}

fn compile(
    file: &SourceFile,
    function: &SourceFunction,
    options: &Options,
    pass: Pass,
    timings: &mut Option<Timings>,
) -> Result<Compiled, Errors> {
    let text = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&text);
    let mut compiler = Compiler::new(options.clone());
    compiler.time_passes(timings.is_some());
    compiler.dump_after(
        &[pass],
        Box::new(move |dump| {
            let mut text = sink.lock().unwrap_or_else(PoisonError::into_inner);
            text.push_str(dump.text);
        }),
    );
    let mut unit = Unit::new();
    unit.announce_file(file);
    let name = function.name();
    let func = without_locations(&function.func);
    let input = FunctionInput {
        func: &func,
        ..FunctionInput::of_source(function, &name)
    };
    let compiled = compiler.compile_function(&input, &mut unit);
    if let Some(timings) = timings {
        timings.add(compiler.timings());
    }
    if compiled.is_err() {
        // Once more for a message that says where.
        let input = FunctionInput::of_source(function, &name);
        let compiled = Compiler::new(options.clone()).compile_function(&input, &mut Unit::new());
        compiled.map_err(|errors| errors.or_at_line(function.line).in_file(&file.name))?;
    }
    let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Compiled { text, unit })
}

/// The function without source locations: they are lines of the file, which move with every expectation above them.
pub fn without_locations(func: &Function) -> Function {
    let mut func = func.clone();
    let insts: Vec<Inst> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .collect();
    for inst in insts {
        func.set_srcloc(inst, SourceLoc::default());
    }
    func
}
