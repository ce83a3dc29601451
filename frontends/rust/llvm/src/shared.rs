//! Static shared memory: where in the memory of a block each variable of it lies.
//!
//! A variable whose symbol begins with [`PREFIX`] is one for each block. Those that some kernel reaches together lie
//! one behind the other; those of different kernels may have the same place. A kernel that reaches the beginning of the
//! dynamic shared memory, [`DYNAMIC_START`], has it at the same offset as all others that do, since a function that
//! several kernels call knows one offset only.

use crate::error::{Error, Problem};
use crate::layout;
use crate::link::{Program, Symbol};
use crate::model::{Constant, Variable};
use crate::visit;
use hashbrown::{HashMap, HashSet};

/// What the symbols of variables in shared memory begin with.
pub const PREFIX: &str = "__thisgpu_static_shared_";
/// The symbol of the beginning of the shared memory that the launch adds.
pub const DYNAMIC_START: &str = "__thisgpu_dynamic_shared_start";
/// Alignment of that in bytes.
const DYNAMIC_ALIGN: u64 = 16;
/// Most alignment of a variable: shared memory begins at a multiple of it.
const MAX_ALIGN: u64 = 256;

/// Where everything lies.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Offset of each variable.
    pub offsets: HashMap<Symbol, u64>,
    /// By kernel, in their order, how many bytes are its own.
    pub bytes: Vec<u64>,
    /// Offset of what the launch adds, for those that ask for it.
    pub dynamic: u64,
    /// By kernel, in their order, the variables that it has.
    pub variables: Vec<Vec<Symbol>>,
}

/// What a kernel reaches.
#[derive(Default)]
struct Reached {
    variables: Vec<Symbol>,
    dynamic: bool,
}

/// Lays the shared memory of kernels out.
///
/// # Errors
/// Variables with an initial value, which shared memory cannot have, or of no size.
pub fn lay_out(program: &Program, kernels: &[Symbol]) -> Result<Shared, Vec<Error>> {
    let reached: Vec<Reached> = (kernels.iter())
        .map(|kernel| reached(program, *kernel))
        .collect();
    let mut all: Vec<Symbol> = reached.iter().flat_map(|of| of.variables.clone()).collect();
    all.sort_unstable();
    all.dedup();
    let (mut shared, mut errors) = (Shared::default(), Vec::new());
    shared.bytes = vec![0; kernels.len()];
    for symbol in all {
        let Some(variable) = program.variable_of(symbol) else {
            continue;
        };
        let (size, align) = match place(variable) {
            Ok(place) => place,
            Err(problem) => {
                let (name, problem) = (variable.name.to_string(), Box::new(problem));
                errors.push(Error::new(None, Problem::Shared { name, problem }));
                continue;
            }
        };
        let with = |of: &Reached| of.variables.contains(&symbol);
        let ends = shared.bytes.iter().zip(&reached);
        let end = ends.filter(|(_, of)| with(of)).map(|(end, _)| *end).max();
        let offset = end.unwrap_or(0).next_multiple_of(align);
        shared.offsets.insert(symbol, offset);
        for (end, _) in (shared.bytes.iter_mut().zip(&reached)).filter(|(_, of)| with(of)) {
            *end = offset + size;
        }
    }
    let dynamic = shared.bytes.iter().zip(&reached);
    let most = dynamic.filter(|(_, of)| of.dynamic).map(|(end, _)| *end);
    shared.dynamic = most.max().unwrap_or(0).next_multiple_of(DYNAMIC_ALIGN);
    for (end, _) in (shared.bytes.iter_mut().zip(&reached)).filter(|(_, of)| of.dynamic) {
        *end = shared.dynamic;
    }
    shared.variables = reached.into_iter().map(|of| of.variables).collect();
    if errors.is_empty() {
        Ok(shared)
    } else {
        Err(errors)
    }
}

/// Size and alignment of a variable.
fn place(variable: &Variable) -> Result<(u64, u64), Problem> {
    if !matches!(
        variable.value,
        Some(Constant::Zero | Constant::Undefined) | None
    ) {
        let message = "shared memory has no initial value; write it in the kernel";
        return Err(Problem::Unsupported(message.into()));
    }
    let unknown = || Problem::NoSize("a type that has no place in memory".into());
    let size = layout::size(&variable.ty).ok_or_else(unknown)?;
    let natural = layout::align(&variable.ty).ok_or_else(unknown)?;
    let align = variable.align.unwrap_or(natural);
    if align > MAX_ALIGN {
        let message = format!("shared memory is aligned to {MAX_ALIGN} bytes, not to {align}");
        return Err(Problem::Unsupported(message.into()));
    }
    Ok((size, align))
}

/// What of shared memory a kernel reaches, through all that it calls or points to.
fn reached(program: &Program, kernel: Symbol) -> Reached {
    let mut reached = Reached::default();
    let mut seen: HashSet<Symbol> = HashSet::new();
    seen.insert(kernel);
    let mut queue = vec![kernel];
    while let Some(symbol) = queue.pop() {
        let mut names = Vec::new();
        let module = match symbol {
            Symbol::Function(module, _) => {
                let function = program.function_of(symbol);
                let blocks = function.iter().flat_map(|function| &function.blocks);
                for instruction in blocks.flat_map(|block| &block.instructions) {
                    visit::symbols(instruction, &mut |name| names.push(name));
                }
                module
            }
            Symbol::Variable(module, _) => {
                let variable = program.variable_of(symbol);
                if variable.is_some_and(|variable| variable.name.starts_with(PREFIX)) {
                    reached.variables.push(symbol);
                } else if let Some(value) = variable.and_then(|of| of.value.as_ref()) {
                    visit::of_constant(value, &mut |name| names.push(name));
                }
                module
            }
        };
        for name in names {
            reached.dynamic |= &**name == DYNAMIC_START;
            if let Some((symbol, _)) = program.resolve(module, name)
                && seen.insert(symbol)
            {
                queue.push(symbol);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    #[test]
    fn kernels_share_places_but_not_within_one() {
        let text = r#"target datalayout = "e-i64:64-i128:128"
@__thisgpu_static_shared_a = global [5 x i8] undef, align 1
@__thisgpu_static_shared_b = global [4 x i64] zeroinitializer, align 8
@__thisgpu_static_shared_c = global [3 x i32] undef, align 4
@__thisgpu_dynamic_shared_start = external global [0 x i8]
define void @one() {
start:
  store i8 1, ptr @__thisgpu_static_shared_a
  call void @both()
  ret void
}
define void @two() {
start:
  store i8 1, ptr @__thisgpu_static_shared_c
  store i8 1, ptr @__thisgpu_dynamic_shared_start
  ret void
}
define void @both() {
start:
  store i8 1, ptr @__thisgpu_static_shared_b
  ret void
}
"#;
        let program = Program::link(vec![Module::parse("m", text).unwrap()]).unwrap();
        let kernels = ["one", "two"].map(|name| program.function(name).unwrap());
        let shared = lay_out(&program, &kernels).unwrap();
        let offset = |index| shared.offsets[&Symbol::Variable(0, index)];
        assert_eq!((offset(0), offset(1), offset(2)), (0, 8, 0));
        assert_eq!((shared.bytes, shared.dynamic), (vec![40, 16], 16));
    }

    #[test]
    fn an_initial_value_is_refused() {
        let text = "target datalayout = \"e-i64:64-i128:128\"\n@__thisgpu_static_shared_a = global i8 3\n\
            define void @k() {\nstart:\n  store i8 1, ptr @__thisgpu_static_shared_a\n  ret void\n}\n";
        let program = Program::link(vec![Module::parse("m", text).unwrap()]).unwrap();
        let errors = lay_out(&program, &[program.function("k").unwrap()]).unwrap_err();
        assert!(
            errors[0].to_string().contains("initial value"),
            "{}",
            errors[0]
        );
    }
}
