//! SPA 5.3 executed, against arithmetic of another library: the documents' steps once more, from the text of the
//! instruction on.

use cranelift_thisgpu::asm;
use cranelift_thisgpu::unstable::isa::PReg;
use cranelift_thisgpu::unstable::isa::random::Random;
use rustc_apfloat::ieee::{Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
use spa53::execute::Values;
use spa53::port::{self, Scratch};
use spa53::random::{self, Names};
use spa53::read;
use std::cmp::Ordering;

/// The parts of an instruction's text.
struct Text {
    mnemonic: String,
    modifiers: Vec<String>,
    operands: Vec<String>,
}

impl Text {
    fn new(text: &str) -> Text {
        let text = match text.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ').expect("a guard").1,
            None => text,
        };
        let (head, operands) = text.split_once(' ').expect("operands");
        let mut words = head.split('.').map(str::to_owned);
        Text {
            mnemonic: words.next().expect("a mnemonic"),
            modifiers: words.collect(),
            operands: operands.split(", ").map(str::to_owned).collect(),
        }
    }

    fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|m| m == modifier)
    }
}

fn half(bits: u16) -> Half {
    Half::from_bits(bits.into())
}

fn bits(value: Half) -> u16 {
    value.to_bits() as u16
}

/// A subnormal half is a zero of its sign.
fn without_subnormal(value: Half) -> Half {
    if value.is_denormal() {
        if value.is_negative() {
            -Half::ZERO
        } else {
            Half::ZERO
        }
    } else {
        value
    }
}

/// The two halves of an operand, lane 0 first.
fn inputs(text: &str, word: u32) -> [Half; 2] {
    let (core, format) = match text.rsplit_once('.') {
        Some((core, format)) if !core.is_empty() && core.contains('R') => (core, format),
        _ => (text, ""),
    };
    let format = if text.contains("c[") { "F32" } else { format };
    let (low, high) = (half(word as u16), half((word >> 16) as u16));
    let halves = match format {
        "" | "H1_H0" => [low, high],
        "H0_H0" => [low; 2],
        "H1_H1" => [high; 2],
        "F32" => {
            let single = Single::from_bits(word.into());
            let converted: Half = single.convert_r(Round::TowardZero, &mut false).value;
            [without_subnormal(converted); 2]
        }
        _ => panic!("{text}"),
    };
    halves.map(|half| {
        let half = if core.contains('|') { half.abs() } else { half };
        if core.starts_with('-') { -half } else { half }
    })
}

/// An immediate as it is printed.
fn immediate(text: &str) -> Half {
    let value = match text.trim_start_matches('+') {
        "INF" => return Half::INFINITY,
        "-INF" => return -Half::INFINITY,
        text => text,
    };
    match value.strip_prefix("0x") {
        Some(digits) => half(u16::from_str_radix(digits, 16).expect("bits")),
        None => {
            let value: f64 = value.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            half(half::f16::from_f64(value).to_bits())
        }
    }
}

/// The result, NaN as any NaN.
fn expected(text: &Text, values: &Values) -> u32 {
    let a = inputs(&text.operands[1], values.a);
    let literal = |index: usize| immediate(&text.operands[index]);
    let b = if text.operands[2].contains('R') || text.operands[2].contains("c[") {
        inputs(&text.operands[2], values.b)
    } else {
        [literal(3), literal(2)]
    };
    match text.mnemonic.as_str() {
        "HSET2" => comparison(text, a, b, values.pp),
        _ => product(text, a, b, values.d),
    }
}

fn comparison(text: &Text, a: [Half; 2], b: [Half; 2], pp: bool) -> u32 {
    let cmp = text
        .modifiers
        .iter()
        .find(|m| !["BF", "FTZ"].contains(&m.as_str()));
    let cmp = cmp.expect("a comparison").as_str();
    let lane = |lane: usize| {
        let [a, b] = [a[lane], b[lane]].map(|h| {
            if text.has("FTZ") {
                without_subnormal(h)
            } else {
                h
            }
        });
        let order = a.partial_cmp(&b);
        let unordered = order.is_none();
        let plain = cmp.trim_end_matches('U');
        let holds = match cmp {
            "F" => false,
            "T" => true,
            "NUM" => !unordered,
            "NAN" => unordered,
            _ if unordered => cmp.ends_with('U'),
            _ => {
                let order = order.expect("both are numbers");
                match plain {
                    "LT" => order == Ordering::Less,
                    "EQ" => order == Ordering::Equal,
                    "LE" => order != Ordering::Greater,
                    "GT" => order == Ordering::Greater,
                    "NE" => order != Ordering::Equal,
                    "GE" => order != Ordering::Less,
                    _ => panic!("{cmp}"),
                }
            }
        };
        let holds = if text.has("OR") {
            holds || pp
        } else if text.has("XOR") {
            holds != pp
        } else if text.has("AND") {
            holds && pp
        } else {
            holds
        };
        match (holds, text.has("BF")) {
            (false, _) => 0,
            (true, false) => 0xffff,
            (true, true) => 0x3c00,
        }
    };
    lane(1) << 16 | lane(0)
}

fn product(text: &Text, a: [Half; 2], b: [Half; 2], d: u32) -> u32 {
    let flushes = text.has("FTZ") || text.has("FMZ");
    let flush = |h: Half| if flushes { without_subnormal(h) } else { h };
    let lane = |lane: usize| {
        let (a, b) = (flush(a[lane]), flush(b[lane]));
        let zero = text.has("FMZ") && (a.is_zero() || b.is_zero());
        let product = if zero {
            Half::ZERO
        } else {
            flush(a.mul_r(b, Round::NearestTiesToEven).value)
        };
        if !text.has("SAT") {
            product
        } else if product.is_nan() || product.is_negative() {
            Half::ZERO
        } else {
            product.min(half(0x3c00))
        }
    };
    let [low, high] = [lane(0), lane(1)].map(|h| u32::from(bits(h)));
    if text.has("F32") {
        let single: Single = without_subnormal(lane(0)).convert(&mut false).value;
        single.to_bits() as u32
    } else if text.has("MRG_H0") {
        d & 0xffff_0000 | low
    } else if text.has("MRG_H1") {
        d & 0xffff | high << 16
    } else {
        high << 16 | low
    }
}

/// Equal, and what is NaN is the documents' NaN.
fn assert_same(text: &str, values: &Values, found: u32, expected: u32) {
    let context = || format!("{text}: {found:#010x} and not {expected:#010x} from {values:x?}");
    let parts = Text::new(text);
    if parts.mnemonic == "HSET2" {
        return assert_eq!(found, expected, "{}", context());
    }
    if parts.has("F32") {
        let nan = Single::from_bits(expected.into()).is_nan();
        return assert_eq!(
            found,
            if nan { 0x7fff_ffff } else { expected },
            "{}",
            context()
        );
    }
    for (shift, merged) in [(0, "MRG_H1"), (16, "MRG_H0")] {
        let [found, expected] = [found, expected].map(|word| word >> shift & 0xffff);
        let is_result = !parts.has(merged);
        let nan = is_result && half(expected as u16).is_nan();
        assert_eq!(found, if nan { 0x7fff } else { expected }, "{}", context());
    }
}

#[test]
fn random_instructions() {
    let number = std::env::var("THISGPU_SPA53_STATES").ok();
    let states: usize = number.and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let seed = std::env::var("THISGPU_SEED").ok();
    let seed = seed.and_then(|s| s.parse().ok()).unwrap_or(11);
    println!("seed {seed}, {states} states");
    let mut random = Random::new(seed);
    let names = Names {
        registers: 8,
        banks: 4,
        bytes: 256,
    };
    for _ in 0..states / 8 {
        let instruction = random::instruction(&mut random, names);
        let text = instruction.to_string();
        // What is executed is what is written.
        let instruction = read::instruction(&text).unwrap_or_else(|e| panic!("{e}"));
        let parts = Text::new(&text);
        for _ in 0..8 {
            let mut values = Values {
                a: random::word(&mut random),
                b: random::word(&mut random),
                pp: random.one_in(2),
                d: random::word(&mut random),
            };
            if !text.contains("Pp") && parts.operands.last().is_some_and(|o| !o.contains('P')) {
                values.pp = true;
            }
            let found = instruction.result(&values);
            assert_same(&text, &values, found, expected(&parts, &values));
        }
    }
}

/// A text that an editor, a typing mistake or another assembler may leave.
fn damaged(random: &mut Random, names: Names) -> String {
    const PIECES: [&str; 43] = [
        "HMUL2",
        "HSET2",
        "HMUL2_32I",
        ".FTZ",
        ".FMZ",
        ".F32",
        ".MRG_H0",
        ".GT",
        ".AND",
        ".INVALID",
        "R0",
        "R255",
        "RZ",
        "P0",
        "PT",
        "UR3",
        "c[0][0x160]",
        "c[6][3]",
        "c[32][0]",
        "c[",
        "{-|1.0|}",
        "{",
        "}",
        "|",
        "-",
        "!",
        "@",
        "@!P0",
        ",",
        ";",
        "\n",
        "0xffff",
        "0x10000",
        "1e9",
        "-inf",
        "&req={0}",
        "?16",
        "\u{e9}",
        "/*",
        "*/",
        "/*\n",
        "{|-2|}",
        "\"",
    ];
    let mut text: String = random::instruction(random, names).to_string();
    for _ in 0..1 + random.below(4) {
        let places: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .collect();
        let at = *random.pick(&places);
        match random.below(3) {
            0 => text.insert_str(at, PIECES[random.below(PIECES.len())]),
            1 => text.truncate(at),
            _ => {
                let end = *random.pick(&places);
                text.replace_range(at.min(end)..at.max(end), PIECES[random.below(PIECES.len())]);
            }
        }
    }
    text
}

#[test]
fn no_text_makes_it_panic_and_every_mistake_has_a_place() {
    let mut random = Random::new(5);
    let names = Names {
        registers: 8,
        banks: 4,
        bytes: 256,
    };
    let scratch: Scratch = "R40-R47,P5".parse().expect("a list of registers");
    let (mut good, mut bad) = (0, 0);
    for _ in 0..20_000 {
        let text = damaged(&mut random, names);
        match read::program("f.s", &text) {
            Ok(program) => {
                for instruction in program.instructions {
                    let again = read::instruction(&instruction.to_string());
                    assert_eq!(again.ok(), Some(instruction), "{text}");
                }
            }
            Err(errors) => {
                assert!(errors.to_string().starts_with("f.s:"), "{text}: {errors}");
                assert!(errors.to_string().contains('^'), "{text}: {errors}");
            }
        }
        match port::port("f.s", &text, &scratch) {
            Ok(ported) => {
                good += 1;
                assert!(asm::assemble("f.s", &ported.text).is_ok(), "{text}");
            }
            Err(errors) => {
                bad += 1;
                assert!(errors.to_string().starts_with("f.s:"), "{text}: {errors}");
            }
        }
    }
    assert!(good > 300 && bad > 5_000, "{good} good and {bad} bad texts");
}

/// What one instruction becomes: how many, with how many scratch registers at most.
fn length(text: &str) -> String {
    let instruction = read::instruction(text).unwrap_or_else(|e| panic!("{e}"));
    let all: Vec<PReg> = (40..48).map(PReg::gpr).collect();
    let sequence = port::instructions(&instruction, &all).expect("enough scratch registers");
    let needed = port::instructions(&instruction, &[]).err().unwrap_or(0);
    match needed {
        0 => sequence.len().to_string(),
        _ => format!("{} ({needed})", sequence.len()),
    }
}

/// The table of lengths in the documentation.
#[test]
fn the_table_of_lengths_is_true() {
    let inputs = [
        ("halves", "R1, R2"),
        ("one register twice", "R1, R1"),
        ("halves, immediates", "R1, 1.5, 2"),
        ("halves, single", "R1, R2.F32"),
        ("halves, constant", "R1, c[0][0]"),
        ("single, halves", "R1.F32, R2"),
        ("single, immediates", "R1.F32, 1.5, 2"),
        ("single, single", "R1.F32, R2.F32"),
        ("single, constant", "R1.F32, c[0][0]"),
    ];
    let heads = [
        "HSET2.GT",
        "HSET2.GT.FTZ",
        "HSET2.F",
        "HMUL2",
        "HMUL2.FTZ",
        "HMUL2.FMZ",
        "HMUL2.MRG_H0",
        "HMUL2.MRG_H0.FMZ",
        "HMUL2.F32",
        "HMUL2.F32.FTZ",
        "HMUL2.F32.FMZ",
    ];
    let mut table = String::from("| inputs |");
    table.extend(heads.iter().map(|head| format!(" `{head}` |")));
    table.push_str("\n| --- |");
    table.push_str(&" --- |".repeat(heads.len()));
    for (name, operands) in inputs {
        table.push_str(&format!("\n| {name} |"));
        table.extend(heads.map(|head| format!(" {} |", length(&format!("{head} R0, {operands}")))));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/spa53.md");
    let page = std::fs::read_to_string(path).expect("docs/spa53.md");
    let start = page.find("| inputs |").expect("the table");
    let end = start + page[start..].find("\n\n").expect("its end");
    if std::env::var_os("CRANELIFT_TEST_BLESS").is_some() {
        let page = format!("{}{table}{}", &page[..start], &page[end..]);
        return std::fs::write(path, page).expect("docs/spa53.md can be written");
    }
    assert_eq!(&page[start..end], table, "CRANELIFT_TEST_BLESS=1 writes it");
}
