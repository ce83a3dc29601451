//! Mistakes of rules and passes, planted: the code of a function that makes the mistake is held against the function
//! that does not. Every one is refuted, by arguments for which the simulator gives what the proof says that it gives.

mod common;

use common::{LIMITS, compiled, solvers};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use thisgpu_filetests::execute;
use thisgpu_filetests::report::FileReport;
use thisgpu_verify::{Effect, Verdict, prove};

/// A mistake: its name, parameters and result, and the body without it and with it. Bodies are instructions that define
/// v10, v11 …, of which the last is returned; parameters are v0, v1 …
type Mistake = (&'static str, &'static str, &'static str, &'static str);

/// What rules of selection get wrong.
const RULES: [Mistake; 40] = [
    (
        "operands exchanged",
        "i32, i32 -> i32",
        "isub v0, v1",
        "isub v1, v0",
    ),
    (
        "operands exchanged, two words",
        "i64, i64 -> i64",
        "isub v0, v1",
        "isub v1, v0",
    ),
    (
        "shift for its operand",
        "i32, i32 -> i32",
        "ishl v0, v1",
        "ishl v1, v0",
    ),
    ("and for or", "i32, i32 -> i32", "band v0, v1", "bor v0, v1"),
    ("or for xor", "i64, i64 -> i64", "bxor v0, v1", "bor v0, v1"),
    (
        "complement of the other",
        "i32, i32 -> i32",
        "bnot v0; band v10, v1",
        "bnot v1; band v10, v0",
    ),
    (
        "less for at most",
        "i32, i32 -> i8",
        "icmp slt v0, v1",
        "icmp sle v0, v1",
    ),
    (
        "signed for unsigned",
        "i64, i64 -> i8",
        "icmp ult v0, v1",
        "icmp slt v0, v1",
    ),
    (
        "greater for less",
        "i16, i16 -> i8",
        "icmp ugt v0, v1",
        "icmp ult v0, v1",
    ),
    (
        "unequal for equal",
        "i128, i128 -> i8",
        "icmp eq v0, v1",
        "icmp ne v0, v1",
    ),
    (
        "sign for zeros above",
        "i8 -> i32",
        "uextend.i32 v0",
        "sextend.i32 v0",
    ),
    (
        "zeros for the sign above",
        "i16 -> i64",
        "sextend.i64 v0",
        "uextend.i64 v0",
    ),
    (
        "upper bits not cut off",
        "i8, i8 -> i32",
        "iadd v0, v1; uextend.i32 v10",
        "uextend.i32 v0; uextend.i32 v1; iadd v10, v11",
    ),
    (
        "upper bits compared",
        "i16, i16 -> i8",
        "iadd v0, v1; iconst.i16 5; icmp ult v10, v11",
        "uextend.i32 v0; uextend.i32 v1; iadd v10, v11; iconst.i32 5; icmp ult v12, v13",
    ),
    (
        "upper bits shifted in",
        "i8 -> i8",
        "iconst.i8 1; ushr v0, v10",
        "iconst.i8 1; sshr v0, v10",
    ),
    (
        "an amount not cut to the width",
        "i16, i16 -> i16",
        "ishl v0, v1",
        "uextend.i32 v0; uextend.i32 v1; ishl v10, v11; ireduce.i16 v12",
    ),
    (
        "a shift by one more",
        "i64 -> i64",
        "iconst.i64 12; ishl v0, v10",
        "iconst.i64 13; ishl v0, v10",
    ),
    (
        "a shift by one less",
        "i32 -> i32",
        "iconst.i32 7; ushr v0, v10",
        "iconst.i32 6; ushr v0, v10",
    ),
    (
        "the other direction",
        "i32, i32 -> i32",
        "rotl v0, v1",
        "rotr v0, v1",
    ),
    (
        "the other direction, two words",
        "i64, i64 -> i64",
        "rotl v0, v1",
        "rotr v0, v1",
    ),
    (
        "a shift of signs",
        "i64, i64 -> i64",
        "sshr v0, v1",
        "ushr v0, v1",
    ),
    (
        "a carry lost",
        "i64, i64 -> i64",
        "iadd v0, v1",
        "ireduce.i32 v0; ireduce.i32 v1; iadd v10, v11; iconst.i64 32; ushr v0, v13; ushr v1, v13; ireduce.i32 v14; \
         ireduce.i32 v15; iadd v16, v17; iconcat v12, v18",
    ),
    (
        "a borrow lost",
        "i128, i128 -> i64",
        "isub v0, v1; iconst.i64 64; ushr v10, v11; ireduce.i64 v12",
        "iconst.i64 64; ushr v0, v10; ushr v1, v10; isub v11, v12; ireduce.i64 v13",
    ),
    (
        "an overflow for a carry",
        "i32, i32 -> i8",
        "uadd_overflow v0, v1",
        "sadd_overflow v0, v1",
    ),
    (
        "the other half of a product",
        "i32, i32 -> i32",
        "umulhi v0, v1",
        "imul v0, v1",
    ),
    (
        "the sign of a product",
        "i64, i64 -> i64",
        "umulhi v0, v1",
        "smulhi v0, v1",
    ),
    (
        "a product without its cross terms",
        "i64, i64 -> i64",
        "imul v0, v1",
        "ireduce.i32 v0; ireduce.i32 v1; uextend.i64 v10; uextend.i64 v11; imul v12, v13",
    ),
    (
        "the wrong extension of a factor",
        "i32, i32 -> i64",
        "uextend.i64 v0; uextend.i64 v1; imul v10, v11",
        "sextend.i64 v0; uextend.i64 v1; imul v10, v11",
    ),
    (
        "a quotient for a remainder",
        "i32, i32 -> i32",
        "udiv v0, v1",
        "urem v0, v1",
    ),
    (
        "a quotient that is one too large",
        "i32 -> i32",
        "iconst.i32 10; udiv v0, v10",
        "iconst.i32 5; iadd v0, v10; iconst.i32 10; udiv v11, v12",
    ),
    (
        "rounded down for towards zero",
        "i32 -> i32",
        "iconst.i32 8; sdiv v0, v10",
        "iconst.i32 3; sshr v0, v10",
    ),
    (
        "a choice turned around",
        "i32, i64, i64 -> i64",
        "select v0, v1, v2",
        "select v0, v2, v1",
    ),
    (
        "a choice by one bit",
        "i32, i32, i32 -> i32",
        "select v0, v1, v2",
        "iconst.i32 1; band v0, v10; select v11, v1, v2",
    ),
    (
        "a minimum for a maximum",
        "i32, i32 -> i32",
        "umin v0, v1",
        "umax v0, v1",
    ),
    (
        "a minimum of signed numbers",
        "i8, i8 -> i8",
        "smin v0, v1",
        "umin v0, v1",
    ),
    (
        "another bit of a truth table",
        "i32, i32, i32 -> i32",
        "band v0, v1; bor v10, v2",
        "band v0, v1; bxor v10, v2",
    ),
    (
        "bytes in another order",
        "i32 -> i32",
        "bswap v0",
        "bitrev v0",
    ),
    ("zeros counted from below", "i64 -> i64", "clz v0", "ctz v0"),
    (
        "a count without the upper word",
        "i64 -> i64",
        "popcnt v0",
        "ireduce.i32 v0; popcnt v10; uextend.i64 v11",
    ),
    (
        "a fact that does not hold",
        "i32 -> i32",
        "iconst.i32 0xff; band v0, v10; iconst.i32 8; ishl v11, v12",
        "iconst.i32 8; ishl v0, v10",
    ),
];

/// What passes and allocation get wrong.
const PASSES: [Mistake; 10] = [
    (
        "a wrong half",
        "i64 -> i32",
        "ireduce.i32 v0",
        "iconst.i64 32; ushr v0, v10; ireduce.i32 v11",
    ),
    (
        "halves exchanged",
        "i32, i32 -> i64",
        "iconcat.i32 v0, v1",
        "iconcat.i32 v1, v0",
    ),
    (
        "a register overwritten early",
        "i32, i32 -> i32",
        "iadd v0, v1; isub v0, v10",
        "iadd v0, v1; isub v10, v10",
    ),
    (
        "a copy of the other",
        "i32, i32 -> i32",
        "iadd v0, v0; iadd v10, v1",
        "iadd v1, v1; iadd v10, v1",
    ),
    (
        "a guard inverted",
        "i32, i32, i32 -> i32",
        "iadd v1, v2; select v0, v10, v1",
        "iadd v1, v2; select v0, v1, v10",
    ),
    (
        "a condition that is no longer true",
        "i32, i32 -> i32",
        "icmp eq v0, v1; iadd v0, v1; select v10, v11, v0",
        "iadd v0, v1; icmp eq v10, v1; select v11, v10, v0",
    ),
    (
        "a sum associated beyond its width",
        "i8, i8 -> i16",
        "iadd v0, v1; uextend.i16 v10; iconst.i16 1; iadd v11, v12",
        "uextend.i16 v0; uextend.i16 v1; iadd v10, v11; iconst.i16 1; iadd v12, v13",
    ),
    (
        "a factor taken out of a shift",
        "i32, i32 -> i32",
        "iconst.i32 3; ushr v0, v10; ushr v1, v10; iadd v11, v12",
        "iadd v0, v1; iconst.i32 3; ushr v10, v11",
    ),
    (
        "a value of another turn",
        "i32 -> i32",
        "iadd v0, v0; iadd v10, v10; iadd v11, v11",
        "iadd v0, v0; iadd v10, v10",
    ),
    (
        "a lane that moved",
        "i32x4 -> i32",
        "extractlane v0, 1",
        "extractlane v0, 2",
    ),
];

/// The same of memory and control flow: whole functions, since memory is what they differ in.
const FUNCTIONS: [(&str, &str, &str); 6] = [
    (
        "a store over a load that may alias",
        "(i64, i64, i32) -> i32 {\nblock0(v0: i64, v1: i64, v2: i32):\n v3 = load.i32 aligned v1\n \
         store aligned v2, v0\n return v3\n}",
        "(i64, i64, i32) -> i32 {\nblock0(v0: i64, v1: i64, v2: i32):\n store aligned v2, v0\n \
         v3 = load.i32 aligned v1\n return v3\n}",
    ),
    (
        "stores exchanged that may alias",
        "(i64, i64, i32, i32) {\nblock0(v0: i64, v1: i64, v2: i32, v3: i32):\n store aligned v2, v0\n \
         store aligned v3, v1\n return\n}",
        "(i64, i64, i32, i32) {\nblock0(v0: i64, v1: i64, v2: i32, v3: i32):\n store aligned v3, v1\n \
         store aligned v2, v0\n return\n}",
    ),
    (
        "a store that is not there",
        "(i64, i32) {\nblock0(v0: i64, v1: i32):\n store aligned v1, v0\n store aligned v1, v0+8\n return\n}",
        "(i64, i32) {\nblock0(v0: i64, v1: i32):\n store aligned v1, v0\n return\n}",
    ),
    (
        "a store ahead of its trap",
        "(i64, i32) -> i32 {\nblock0(v0: i64, v1: i32):\n trapz v1, user1\n v2 = load.i32 aligned v0\n return v2\n}",
        "(i64, i32) -> i32 {\nblock0(v0: i64, v1: i32):\n v2 = load.i32 aligned v0\n trapz v2, user1\n return v2\n}",
    ),
    (
        "a branch turned around",
        "(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n brif v0, block1(v1), block1(v2)\n\
         block1(v3: i32):\n return v3\n}",
        "(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n brif v0, block1(v2), block1(v1)\n\
         block1(v3: i32):\n return v3\n}",
    ),
    (
        "one turn less",
        "(i32) -> i32 {\nblock0(v0: i32):\n v1 = iconst.i32 0\n jump block1(v1, v0)\nblock1(v2: i32, v3: i32):\n \
         v4 = iconst.i32 1\n v5 = iadd v2, v4\n v6 = iadd v3, v3\n v7 = iconst.i32 4\n v8 = icmp ult v5, v7\n \
         brif v8, block1(v5, v6), block2\nblock2:\n return v6\n}",
        "(i32) -> i32 {\nblock0(v0: i32):\n v1 = iconst.i32 3\n v2 = ishl v0, v1\n return v2\n}",
    ),
];

/// The function of a body.
fn text(signature: &str, body: &str) -> String {
    let (parameters, result) = signature.split_once(" -> ").expect("it has a result");
    let numbered = parameters.split(", ").enumerate();
    let parameters: Vec<String> = numbered.map(|(i, ty)| format!("v{i}: {ty}")).collect();
    let types: Vec<&str> = signature
        .split(" -> ")
        .next()
        .unwrap_or("")
        .split(", ")
        .collect();
    let mut lines = Vec::new();
    let mut last = String::new();
    for (number, line) in (10..).zip(body.split("; ")) {
        last = format!("v{number}");
        let results = match line.contains("_overflow") {
            true => {
                last = "v99".to_owned();
                format!("v{number}, v99")
            }
            false => last.clone(),
        };
        lines.push(format!(" {results} = {line}"));
    }
    format!(
        "function %f({}) -> {result} {{\nblock0({}):\n{}\n return {last}\n}}\n",
        types.join(", "),
        parameters.join(", "),
        lines.join("\n")
    )
}

/// What a function returns on the simulator is as said.
fn runs(text: &str, arguments: &[u128], effect: &Effect, signature: &str) {
    let Effect::Returns(results) = effect else {
        return;
    };
    let types = signature.split(" -> ").next().unwrap_or("").split(", ");
    let number = |ty: &str, bits: u128| match ty {
        "i128" => format!("{bits:#034x}"),
        "i64" => format!("{}", bits as i64),
        "i32" => format!("{}", bits as i32),
        "i16" => format!("{}", bits as i16),
        "i32x4" => format!("{bits:#034x}"),
        _ => format!("{}", bits as i8),
    };
    let arguments: Vec<String> = types
        .zip(arguments)
        .map(|(ty, &bits)| number(ty, bits))
        .collect();
    let result = signature.split(" -> ").nth(1).unwrap_or("");
    let line = format!(
        "; run: %f({}) == {}",
        arguments.join(", "),
        number(result, results[0])
    );
    let text = format!("test run\n{text}{line}\n");
    let file = SourceFile::parse("f.clif", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut report = FileReport::new("f.clif");
    execute::run_file(&file, &Options::default(), true, None, &mut report);
    assert_eq!((report.failed, report.passed), (0, 1), "{text}");
}

#[test]
fn mistakes_of_rules_and_passes_are_refuted() {
    let Some(solvers) = solvers() else { return };
    for (name, signature, right, wrong) in RULES.into_iter().chain(PASSES) {
        let (right, wrong) = (text(signature, right), text(signature, wrong));
        let ((file, words), (_, mistaken)) = (compiled(&right), compiled(&wrong));
        let func = &file.functions[0].func;
        let proven =
            prove(func, false, words[..].into(), &solvers, LIMITS).expect("solvers answer");
        assert_eq!(proven, Verdict::Proven, "{name}");
        let refuted =
            prove(func, false, mistaken[..].into(), &solvers, LIMITS).expect("solvers answer");
        let Verdict::Refuted(found) = refuted else {
            panic!("{name}: {refuted:?}");
        };
        let (expected, given) = (
            found.expected.expect("no memory"),
            found.found.expect("no memory"),
        );
        assert_ne!(expected, given, "{name}: {:?}", found.arguments);
        runs(&right, &found.arguments, &expected, signature);
        runs(&wrong, &found.arguments, &given, signature);
    }
}

#[test]
fn mistakes_with_memory_and_branches_are_refuted() {
    let Some(solvers) = solvers() else { return };
    for (name, right, wrong) in FUNCTIONS {
        let (right, wrong) = (format!("function %f{right}"), format!("function %f{wrong}"));
        let ((file, words), (_, mistaken)) = (compiled(&right), compiled(&wrong));
        let func = &file.functions[0].func;
        let proven =
            prove(func, false, words[..].into(), &solvers, LIMITS).expect("solvers answer");
        assert_eq!(proven, Verdict::Proven, "{name}");
        let refuted =
            prove(func, false, mistaken[..].into(), &solvers, LIMITS).expect("solvers answer");
        assert!(
            matches!(refuted, Verdict::Refuted(_)),
            "{name}: {refuted:?}"
        );
    }
}
