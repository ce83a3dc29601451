//! SPA 5.3 executed, against arithmetic of another library: the documents' steps once more, from the text of the instruction on.
#![cfg(feature = "spa53")]

use cranelift_thisgpu::spa53::execute::Values;
use cranelift_thisgpu::spa53::random::{self, Names};
use cranelift_thisgpu::spa53::read;
use cranelift_thisgpu::unstable::isa::random::Random;
use rustc_apfloat::ieee::{Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};
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
