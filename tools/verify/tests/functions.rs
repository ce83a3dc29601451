//! Functions against code with changed words.

mod common;

use common::{LIMITS, compiled, solvers};
use cranelift_thisgpu::unstable::isa::decode;
use thisgpu_verify::{Verdict, prove};

/// Functions whose code is changed.
const FUNCTIONS: [&str; 11] = [
    "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = isub v0, v1\n return v2\n}",
    "(i32, i32) -> i8 {\nblock0(v0: i32, v1: i32):\n v2 = icmp slt v0, v1\n return v2\n}",
    "(i64, i64) -> i8 {\nblock0(v0: i64, v1: i64):\n v2 = icmp ult v0, v1\n return v2\n}",
    "(i8) -> i32 {\nblock0(v0: i8):\n v2 = uextend.i32 v0\n return v2\n}",
    "(i8, i8) -> i8 {\nblock0(v0: i8, v1: i8):\n v2 = iconst.i8 1\n v3 = ushr v0, v2\n return v3\n}",
    "(i64) -> i64 {\nblock0(v0: i64):\n v1 = iconst.i64 12\n v2 = ishl v0, v1\n return v2\n}",
    "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = iadd v0, v1\n return v2\n}",
    "(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\n v2 = umulhi v0, v1\n return v2\n}",
    "(i64, i64) -> i64 {\nblock0(v0: i64, v1: i64):\n v2 = umulhi v0, v1\n return v2\n}",
    "(i32, i64, i64) -> i64 {\nblock0(v0: i32, v1: i64, v2: i64):\n v3 = select v0, v1, v2\n return v3\n}",
    "(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n v3 = band v0, v1\n v4 = bor v3, v2\n \
         return v4\n}",
];

/// One bit of a word changed: nothing that computes something else is proven.
#[test]
fn changed_words_are_not_proven() {
    let Some(solvers) = solvers() else { return };
    let (mut refuted, mut open, mut same) = (0, 0, 0);
    for right in FUNCTIONS {
        let (file, words) = compiled(&format!("function %f{right}"));
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
                match prove(func, false, changed[..].into(), &solvers, LIMITS)
                    .expect("solvers answer")
                {
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
