//! `test interpret`: the run lines on Cranelift's interpreter, a check of the tests themselves.

use crate::report::FileReport;
use crate::{execute, panics};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use cranelift_thisgpu::compile::SourceFile;

/// Steps after which a function counts as endless.
const FUEL: u64 = 50_000_000;

/// Calls `callee` with the functions of its file at hand.
///
/// # Errors
/// What the interpreter says of a trap or an operation it lacks; it panics on some, which counts as lacking.
pub fn call(
    functions: &[&Function],
    callee: &Function,
    arguments: &[DataValue],
) -> Result<Vec<DataValue>, String> {
    call_within(FUEL, functions, callee, arguments)
}

/// [`call`] that gives up after some steps.
///
/// # Errors
/// As [`call`].
pub fn call_within(
    steps: u64,
    functions: &[&Function],
    callee: &Function,
    arguments: &[DataValue],
) -> Result<Vec<DataValue>, String> {
    let run = || {
        let mut store = FunctionStore::default();
        for &function in functions {
            store.add(function.name.to_string(), function);
        }
        let state = InterpreterState::default().with_function_store(store);
        let mut interpreter = Interpreter::new(state).with_fuel(Some(steps));
        match interpreter.call_by_name(&callee.name.to_string(), arguments) {
            Ok(ControlFlow::Return(values)) => Ok(values.to_vec()),
            Ok(ControlFlow::Trap(trap)) => Err(format!("the interpreter traps: {trap}")),
            Ok(_) => Err("the interpreter did not return".to_owned()),
            Err(error) => Err(format!("the interpreter fails: {error}")),
        }
    };
    panics::catch(run).unwrap_or_else(|message| Err(format!("the interpreter {message}")))
}

/// Interprets all run and print lines of a file.
pub fn run_file(file: &SourceFile, report: &mut FileReport) {
    let functions: Vec<_> = file
        .functions
        .iter()
        .map(|function| &function.func)
        .collect();
    for function in &file.functions {
        let lines = match function.run_lines(&file.name) {
            Ok(lines) => lines,
            Err(errors) => {
                report.fail(errors.as_slice().len(), errors);
                continue;
            }
        };
        for line in &lines {
            let results = call(&functions, &function.func, execute::arguments(line));
            match results.and_then(|results| execute::judge(&line.command, &results)) {
                Ok(printed) => {
                    report.pass(line);
                    report.prints.extend(printed);
                }
                Err(error) => report.fail(
                    1,
                    format!("{}:{}: {}: {error}", file.name, line.line, line.command),
                ),
            }
        }
    }
}
