//! Cranelift's interpreter, for what the host's back end lacks.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::Function;
use thisgpu_filetests::interpret;

/// Steps of the interpreter, many more than a call takes.
const MAX_STEPS: u64 = 1_000_000;

/// Calls a function in the interpreter and looks whether its results have the right types, which they do not after some
/// operations.
///
/// # Errors
/// What the interpreter cannot do, a trap, an endless loop, results of other types.
pub fn interpret(
    functions: &[&Function],
    func: &Function,
    arguments: &[DataValue],
) -> Result<Vec<DataValue>, String> {
    interpret_within(MAX_STEPS, functions, func, arguments)
}

/// [`interpret()`] that gives up after some steps.
///
/// # Errors
/// As [`interpret()`].
pub fn interpret_within(
    steps: u64,
    functions: &[&Function],
    func: &Function,
    arguments: &[DataValue],
) -> Result<Vec<DataValue>, String> {
    let results = interpret::call_within(steps, functions, func, arguments)?;
    let types = func.signature.returns.iter().map(|param| param.value_type);
    for (result, ty) in results.iter().zip(types) {
        let vector = result.is_vector() && ty.is_vector() && result.ty().bytes() == ty.bytes();
        if result.ty() != ty && !vector {
            return Err(format!("the interpreter gives {} for {ty}", result.ty()));
        }
    }
    Ok(results)
}
