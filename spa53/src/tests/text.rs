//! Reading and printing.

use crate::random::{self, Names};
use crate::{EXAMPLES, LINES, read};
use cranelift_thisgpu::unstable::isa::random::Random;

const NAMES: Names = Names {
    registers: 255,
    banks: 32,
    bytes: 0xfffc,
};

#[test]
fn every_line_reads_back_in_all_its_modifiers() {
    let mut random = Random::new(1);
    let mut combinations = 0;
    for (line, modifiers) in random::all_modifiers() {
        let mut instruction = random::instruction(&mut random, NAMES);
        // Operands of this line, in several ways.
        for _ in 0..16 {
            while !std::ptr::eq(instruction.line, line) {
                instruction = random::instruction(&mut random, NAMES);
            }
            instruction.modifiers = modifiers;
            let text = instruction.to_string();
            let read = read::instruction(&text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(read, instruction, "{text}");
            assert_eq!(read.to_string(), text);
        }
        combinations += 1;
    }
    // HSET2: 3 lines with 2 * 16 * 2, 3 with 3 times as many; HMUL2: 3 with 4 * 3 * 2; HMUL2_32I: 3 * 2.
    assert_eq!(combinations, 3 * 64 + 3 * 192 + 3 * 24 + 6);
    assert_eq!(LINES.len(), 10);
}

#[test]
fn examples_of_the_documents() {
    let results: Vec<Result<String, String>> = EXAMPLES
        .iter()
        .map(|text| {
            read::instruction(text)
                .map(|i| i.to_string())
                .map_err(|e| e.to_string())
        })
        .collect();
    let good: Vec<&str> = results.iter().flatten().map(String::as_str).collect();
    assert_eq!(
        good,
        [
            "HMUL2.SAT R3, |R8|.H1_H1, -|c[6][0xed00]|",
            "HMUL2.FMZ.SAT R1, -|R4|.F32, -|RZ|.H0_H0",
            "HMUL2_32I R2, RZ.F32, 0xffff, -0.000425",
            "HSET2.GT R2, -R0, R1.F32",
        ]
    );
    let bad: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    for (error, parts) in bad.iter().zip([
        [
            "no input format `.H0_H1`; did you mean `.H0_H0`",
            "`.H1_H1`",
            "-0.07983 (0xad1c) has more than the 10 most significant bits of a half",
            "expected -0.0781 (0xad00) or -0.08203 (0xad40)",
            "expected 0xffc0",
        ],
        [
            "no modifier `.LTE`; did you mean `.LT`",
            "`.LE`",
            "",
            "",
            "",
        ],
    ]) {
        for part in parts {
            assert!(error.contains(part), "{part}\n{error}");
        }
    }
}

#[test]
fn braces_have_signs_and_bars_and_within_bars_a_sign() {
    for (braces, plain) in [
        ("{-1.0}, {-2}", "-1, -2"),
        ("{|-1.0|}, {|1.5|}", "1, 1.5"),
        ("{-|-1|}, {-|1|}", "-1, -1"),
        ("{|-INF|}, {+INF}", "+INF, +INF"),
        ("{-0}, -0", "-0, -0"),
    ] {
        let text = format!("HMUL2_32I R0, R1, {braces} ;");
        let read = read::instruction(&text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read.to_string(), format!("HMUL2_32I R0, R1, {plain}"));
    }
    // The documents' examples of braces: 19.5 has more than ten bits.
    let text = "HMUL2_32I R0, R1, {|-19.5|}, {|19.5|}";
    assert!(read::instruction(text).is_ok());
    let error = read::instruction("HMUL2 R0, R1, {|-19.5|}, {|19.5|}").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected 19 (0x4cc0) or 20 (0x4d00)"),
        "{error}"
    );
    for wrong in ["{--1}", "{|1}", "|1|", "{1", "{!1}", "{-|-|1||}"] {
        let text = format!("HMUL2_32I R0, R1, {wrong}, 1");
        assert!(read::instruction(&text).is_err(), "{wrong}");
    }
}
