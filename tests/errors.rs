//! The errors of a text: those of all stages at once, each once, with line and column.

use cranelift_thisgpu::cranelift::codegen::ir::types::I32;
use cranelift_thisgpu::cranelift::codegen::ir::{AbiParam, Function, InstBuilder};
use cranelift_thisgpu::cranelift::frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_thisgpu::error::Problem;
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::{Compiler, Error, Errors, Options};
use std::collections::HashSet;
use std::sync::Arc;

/// One mistake for each stage that looks at a text, and a function without any between them.
const TEXT: &str = "\
function %unread(i32) -> i32 {
block0(v0: i32):
    v1 = iadb v0, v0
    return v1
}
function %untyped(i32) -> i64 {
block0(v0: i32):
    return v0
}
function %good(i32) -> i32 {
block0(v0: i32):
    return v0
}
; kernel
function %results(i32) -> i32 {
block0(v0: i32):
    return v0
}
function %untranslated(i64) -> f128 {
block0(v0: i64):
    v1 = fcvt_from_sint.f128 v0
    v2 = fadd v1, v1
    v3 = fadd v2, v2
    return v3
}
function %intrinsic() -> i64 {
    fn0 = %gpu_tid_x() -> i64
block0:
    v0 = call fn0()
    return v0
}
; kernel max_threads=4096
function %bounds() {
block0:
    return
}
function %good() {
block0:
    return
}
";

fn errors() -> Errors {
    Compiler::new(Options::default())
        .compile_clif(TEXT)
        .unwrap_err()
}

#[test]
fn all_stages_tell_at_once_and_nothing_is_said_twice() {
    let errors = errors();
    let is = |pick: fn(&Problem) -> bool| errors.iter().any(|error| pick(&error.problem));
    assert!(is(|p| matches!(p, Problem::Verifier(_))), "{errors}");
    assert!(is(|p| matches!(p, Problem::Unsupported { .. })), "{errors}");
    assert!(is(|p| matches!(p, Problem::Intrinsic { .. })), "{errors}");
    let kernels = |e: &&Error| matches!(e.problem, Problem::Kernel(_));
    assert_eq!(errors.iter().filter(kernels).count(), 2, "{errors}");
    let syntax = |e: &&Error| matches!(e.problem, Problem::Syntax(_));
    assert_eq!(errors.iter().filter(syntax).count(), 2, "{errors}");
    // Each message stands in the text of all of them once.
    let all = errors.to_string();
    let mut seen = HashSet::new();
    for error in &errors {
        let message = error.to_string();
        assert!(seen.insert(message.clone()), "{message} twice:\n{all}");
        assert_eq!(
            all.lines().filter(|line| *line == message).count(),
            1,
            "{all}"
        );
        assert!(std::error::Error::source(error).is_none());
        let problem = error.problem.to_string();
        assert_eq!(message.matches(&problem).count(), 1, "{message}");
    }
}

#[test]
fn errors_of_a_text_have_line_and_column() {
    let errors = errors();
    let lines: Vec<&str> = TEXT.lines().collect();
    let mut last = 0;
    for error in &errors {
        let line = error.place.line.unwrap();
        assert!(line >= last, "{errors}");
        last = line;
        let column = error.column().unwrap() as usize;
        let marked = &lines[line as usize - 1][column - 1..];
        let opcode = error.place.opcode.as_deref();
        assert!(!marked.starts_with(' '), "{error}");
        assert!(opcode.is_none_or(|o| marked.starts_with(o)), "{error}");
    }
    let read = errors.iter().find(|error| error.place.line == Some(3));
    assert_eq!(read.unwrap().column(), Some(5));
}

/// With a table of places the front end's columns come out, and are printed.
#[test]
fn errors_of_a_front_end_have_its_columns() {
    let mut places = Locations::table();
    let file = places.file("kernels.lang");
    let place = places.add(file, 12, 34);
    let mut func = Function::new();
    func.signature.params.push(AbiParam::new(I32));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let block = builder.create_block();
    builder.append_block_params_for_function_params(block);
    builder.switch_to_block(block);
    builder.set_srcloc(place);
    builder.ins().get_pinned_reg(I32);
    builder.ins().return_(&[]);
    builder.seal_all_blocks();
    builder.finalize(cranelift_thisgpu::target::frontend_config());
    let mut compiler = Compiler::new(Options::default());
    compiler.set_locations(Some(Arc::new(places)));
    let errors = compiler.function(&func, None).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        (error.place.line, error.column()),
        (Some(12), Some(34)),
        "{error}"
    );
    assert!(
        error.to_string().starts_with("kernels.lang:12:34: "),
        "{error}"
    );
}

/// What the verifier finds and wrong uses of intrinsics come together, in the order of their lines.
#[test]
fn the_verifier_does_not_hide_wrong_uses_of_intrinsics() {
    let text = "; kernel
function %k(i64, i32) -> i32 {
    fn0 = %gpu_tid_x() -> i64
    fn1 = %gpu_nonsense()
    fn2 = %gpu_lop3(i32, i32, i32, i32) -> i32
block0(v0: i64, v1: i32):
    v2 = iadd v0, v1
    v3 = call fn0()
    call fn1()
    v4 = call fn2(v1, v1)
    return v0
}
";
    let errors = Compiler::new(Options::default())
        .compile_clif(text)
        .unwrap_err();
    let lines: Vec<Option<u32>> = errors.iter().map(|error| error.place.line).collect();
    assert!(lines.is_sorted(), "{errors}");
    for (line, is_intrinsic) in [(7, false), (8, true), (9, true), (10, false), (11, false)] {
        let found = errors.iter().any(|error| {
            error.place.line == Some(line)
                && matches!(error.problem, Problem::Intrinsic { .. }) == is_intrinsic
        });
        assert!(found, "line {line}: {errors}");
    }
    // Without mistakes of the other kind too: a kernel with a result, and an intrinsic that there is not.
    let text = "; kernel
function %k() -> i32 {
    fn0 = %gpu_nonsense() -> i32
block0:
    v0 = call fn0()
    return v0
}
";
    let errors = Compiler::new(Options::default())
        .compile_clif(text)
        .unwrap_err();
    assert_eq!(errors.as_slice().len(), 2, "{errors}");
}
