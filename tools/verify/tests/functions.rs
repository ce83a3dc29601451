//! Functions against their own code, against that of others, and against code with changed words.

use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::isa::decode;
use std::time::Duration;
use thisgpu_verify::{Limits, Solvers, Verdict, prove};

const LIMITS: Limits = Limits {
    paths: 32,
    steps: 4000,
};

/// The solvers, if there are any: without them nothing is tested, and the test says so.
fn solvers() -> Option<Solvers> {
    match Solvers::find(Duration::from_secs(5)) {
        Ok(solvers) => Some(solvers),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

fn function(body: &str) -> (SourceFile, Vec<u128>) {
    let file = SourceFile::parse("f.clif", &format!("function %f{body}"))
        .unwrap_or_else(|e| panic!("{e}\n{body}"));
    let code = Compiler::new(Options::default())
        .file(&file)
        .unwrap_or_else(|e| panic!("{e}\n{body}"));
    let words = code
        .object()
        .function("f")
        .expect("it is there")
        .words
        .clone();
    (file, words)
}

/// Pairs of functions that differ in one thing, of the kinds that rules and passes get wrong.
const PAIRS: [(&str, &str, &str); 17] = [
    (
        "operands exchanged",
        "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = isub v0, v1\n return v2\n}",
        "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = isub v1, v0\n return v2\n}",
    ),
    (
        "another condition",
        "(i32, i32) -> i8 {\nblock0(v0: i32, v1: i32):\n v2 = icmp slt v0, v1\n return v2\n}",
        "(i32, i32) -> i8 {\nblock0(v0: i32, v1: i32):\n v2 = icmp sle v0, v1\n return v2\n}",
    ),
    (
        "another signedness",
        "(i64, i64) -> i8 {\nblock0(v0: i64, v1: i64):\n v2 = icmp ult v0, v1\n return v2\n}",
        "(i64, i64) -> i8 {\nblock0(v0: i64, v1: i64):\n v2 = icmp slt v0, v1\n return v2\n}",
    ),
    (
        "another extension",
        "(i8) -> i32 {\nblock0(v0: i8):\n v2 = uextend.i32 v0\n return v2\n}",
        "(i8) -> i32 {\nblock0(v0: i8):\n v2 = sextend.i32 v0\n return v2\n}",
    ),
    (
        "bits above a narrow value",
        "(i8, i8) -> i8 {\nblock0(v0: i8, v1: i8):\n v2 = iconst.i8 1\n v3 = ushr v0, v2\n return v3\n}",
        "(i8, i8) -> i8 {\nblock0(v0: i8, v1: i8):\n v2 = iconst.i8 1\n v3 = sshr v0, v2\n return v3\n}",
    ),
    (
        "a shift by one more",
        "(i64) -> i64 {\nblock0(v0: i64):\n v1 = iconst.i64 12\n v2 = ishl v0, v1\n return v2\n}",
        "(i64) -> i64 {\nblock0(v0: i64):\n v1 = iconst.i64 13\n v2 = ishl v0, v1\n return v2\n}",
    ),
    (
        "a carry lost",
        "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = iadd v0, v1\n return v2\n}",
        "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = ireduce.i32 v0\n v3 = ireduce.i32 v1\n \
         v4 = iadd v2, v3\n v5 = iconst.i64 32\n v6 = ushr v0, v5\n v7 = ushr v1, v5\n v8 = ireduce.i32 v6\n \
         v9 = ireduce.i32 v7\n v10 = iadd v8, v9\n v11 = iconcat v4, v10\n return v11\n}",
    ),
    (
        "the other half of a product",
        "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = umulhi v0, v1\n return v2\n}",
        "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = imul v0, v1\n return v2\n}",
    ),
    (
        "the sign of a product",
        "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = umulhi v0, v1\n return v2\n}",
        "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = smulhi v0, v1\n return v2\n}",
    ),
    (
        "a choice turned around",
        "(i32, i64, i64) -> i64 {\nblock0(v0: i32, v1: i64, v2: i64):\n v3 = select v0, v1, v2\n return v3\n}",
        "(i32, i64, i64) -> i64 {\nblock0(v0: i32, v1: i64, v2: i64):\n v3 = select v0, v2, v1\n return v3\n}",
    ),
    (
        "another bit of a truth table",
        "(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n v3 = band v0, v1\n v4 = bor v3, v2\n \
         return v4\n}",
        "(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n v3 = band v0, v1\n v4 = bxor v3, v2\n \
         return v4\n}",
    ),
    (
        "a load behind a store that may alias",
        "(i64, i64, i32) -> i32 {\nblock0(v0: i64, v1: i64, v2: i32):\n store aligned v2, v0\n \
         v3 = load.i32 aligned v1\n return v3\n}",
        "(i64, i64, i32) -> i32 {\nblock0(v0: i64, v1: i64, v2: i32):\n v3 = load.i32 aligned v1\n \
         store aligned v2, v0\n return v3\n}",
    ),
    (
        "a store to the next word",
        "(i64, i32) {\nblock0(v0: i64, v1: i32):\n store aligned v1, v0\n return\n}",
        "(i64, i32) {\nblock0(v0: i64, v1: i32):\n store aligned v1, v0+4\n return\n}",
    ),
    (
        "a guard turned around",
        "(i32, i64, i32) {\nblock0(v0: i32, v1: i64, v2: i32):\n brif v0, block1, block2\nblock1:\n \
         store aligned v2, v1\n jump block2\nblock2:\n return\n}",
        "(i32, i64, i32) {\nblock0(v0: i32, v1: i64, v2: i32):\n brif v0, block2, block1\nblock1:\n \
         store aligned v2, v1\n jump block2\nblock2:\n return\n}",
    ),
    (
        "a trap with another code",
        "(i32) {\nblock0(v0: i32):\n trapz v0, user1\n return\n}",
        "(i32) {\nblock0(v0: i32):\n trapz v0, user2\n return\n}",
    ),
    (
        "a trap that is not there",
        "(i32) -> i32 {\nblock0(v0: i32):\n trapz v0, user1\n return v0\n}",
        "(i32) -> i32 {\nblock0(v0: i32):\n return v0\n}",
    ),
    (
        "one turn less",
        "(i32) -> i32 {\nblock0(v0: i32):\n v1 = iconst.i32 0\n jump block1(v1, v0)\nblock1(v2: i32, v3: i32):\n \
         v4 = iconst.i32 1\n v5 = iadd v2, v4\n v6 = iadd v3, v3\n v7 = iconst.i32 4\n v8 = icmp ult v5, v7\n \
         brif v8, block1(v5, v6), block2\nblock2:\n return v6\n}",
        "(i32) -> i32 {\nblock0(v0: i32):\n v1 = iconst.i32 3\n v2 = ishl v0, v1\n return v2\n}",
    ),
];

#[test]
fn functions_are_proven_and_others_refuted() {
    let Some(solvers) = solvers() else { return };
    for (name, right, wrong) in PAIRS {
        let (file, words) = function(right);
        let (_, others) = function(wrong);
        let func = &file.functions[0].func;
        let proven = prove(func, false, &words, &solvers, LIMITS).expect("solvers answer");
        assert_eq!(proven, Verdict::Proven, "{name}");
        let refuted = prove(func, false, &others, &solvers, LIMITS).expect("solvers answer");
        let Verdict::Refuted(found) = refuted else {
            panic!("{name}: {refuted:?}");
        };
        // Where memory differs nothing is returned that could.
        if found.expected.is_some() && found.found.is_some() && !right.contains("store") {
            assert_ne!(found.expected, found.found, "{name}: {:?}", found.arguments);
        }
    }
}

/// One bit of a word changed: nothing that computes something else is proven.
#[test]
fn changed_words_are_not_proven() {
    let Some(solvers) = solvers() else { return };
    let (mut refuted, mut open, mut same) = (0, 0, 0);
    for (_, right, _) in &PAIRS[..11] {
        let (file, words) = function(right);
        let func = &file.functions[0].func;
        for index in 0..words.len() - 1 {
            // Bits of operands and modifiers; the upper ones are those of scheduling.
            for bit in (12..104).step_by(13) {
                let mut changed = words.clone();
                changed[index] ^= 1 << bit;
                let (Ok((before, _)), Ok((after, _))) =
                    (decode(words[index]), decode(changed[index]))
                else {
                    continue;
                };
                if before == after {
                    continue;
                }
                match prove(func, false, &changed, &solvers, LIMITS).expect("solvers answer") {
                    Verdict::Refuted(found) => {
                        assert_ne!(found.expected, found.found, "{before} as {after}");
                        refuted += 1;
                    }
                    Verdict::Open(_) => open += 1,
                    Verdict::Proven => {
                        println!("the same: {before} as {after}");
                        same += 1;
                    }
                }
            }
        }
    }
    println!("{refuted} refuted, {open} open, {same} the same");
    assert!(
        refuted > 3 * (open + same),
        "{refuted} refuted, {open} open, {same} the same"
    );
}
