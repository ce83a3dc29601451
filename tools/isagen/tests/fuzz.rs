//! No input makes the reader panic: mutated descriptions and documents, and token soup.
//!
//! Each case is a seed; a failing one is printed and can be put into `SEEDS` to keep it.

use std::path::Path;

use isagen::diagnostic::render;
use isagen::diff::{diff, field_checksums};
use isagen::parser::parse;
use isagen::reference::reference;
use isagen::resolve::load_with_warnings;
use isagen::source::SourceMap;
use proptest::prelude::*;

const SMALL: &str = include_str!("small.isa");

/// Seeds that once failed.
const SEEDS: [u64; 0] = [];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Reads a description in every way there is and shows what is wrong with it.
fn exercise(name: &str, text: &str) {
    let mut sources = SourceMap::default();
    sources.add(name, text);
    let (machine, diagnostics) = load_with_warnings(&sources);
    for diagnostic in diagnostics.iter().take(20) {
        assert!(!diagnostic.message.is_empty());
        assert!(render(diagnostic, &sources, false).contains(name));
        let (line, column) = sources.line_column(diagnostic.span);
        assert!(line >= 1 && column >= 1);
    }
    match machine {
        Some(machine) => assert!(!reference(&machine).is_empty()),
        None => assert!(diagnostics.iter().any(|d| d.is_error())),
    }
    sources.add("small.isa", SMALL);
    let documents = parse(&sources, &mut Vec::new());
    diff(&documents[..1], &documents[1..]);
    field_checksums(&documents);
}

/// A place in `text` where a character begins.
fn place(text: &str, random: &mut Random) -> usize {
    text.floor_char_boundary(random.below(text.len() + 1))
}

/// A slice that mostly is short, and begins and ends anywhere or at lines.
fn slice<'t>(text: &'t str, random: &mut Random) -> &'t str {
    let start = place(text, random);
    let length = match random.below(4) {
        0 => 1,
        1 => random.below(8),
        2 => random.below(80),
        _ => random.below(2000),
    };
    let end = text.floor_char_boundary((start + length).min(text.len()));
    &text[start..end.max(start)]
}

fn mutate(text: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..1 + random.below(6) {
        let at = place(&text, random);
        match random.below(5) {
            0 => {
                let removed = slice(&text, random);
                let start = removed.as_ptr() as usize - text.as_ptr() as usize;
                text.replace_range(start..start + removed.len(), "");
            }
            1 => {
                let copy = slice(&text, random).to_owned();
                text.insert_str(at, &copy);
            }
            2 => text.insert_str(at, TOKENS[random.below(TOKENS.len())]),
            3 => {
                // Numbers are what limits depend on.
                let digits = text[at..].find(|c: char| c.is_ascii_digit());
                if let Some(offset) = digits {
                    let number = random.next() >> random.below(64);
                    let digit = at + offset;
                    text.replace_range(digit..=digit, &number.to_string());
                }
            }
            _ => {
                let copy = slice(&text, random).to_owned();
                let target = slice(&text, random);
                let start = target.as_ptr() as usize - text.as_ptr() as usize;
                text.replace_range(start..start + target.len(), &copy);
            }
        }
    }
    text
}

const TOKENS: [&str; 72] = [
    "__DefBitFieldType",
    "__DefGroup",
    "__DefOptype",
    "__DefOpcode",
    "__DefLatency",
    "__Amend",
    "__Provenance",
    "__Encoding",
    "__Syntax",
    "__OperandInfo",
    "__Exception",
    "__Examples",
    "__Shown",
    "__Default",
    "__Timing",
    "__Optypes",
    "field",
    "EncodingError",
    "InList",
    "OutList",
    "Order",
    "Bitwidth",
    "AsmFormat",
    "ModiOrder",
    "Effect",
    "ALL",
    "ALU",
    "ADD",
    "ADD_RR",
    "Reg",
    "Pred",
    "Optype",
    "SType",
    "optype",
    "stype",
    "rd",
    "ra",
    "ra.neg",
    "SrcB",
    "Rd",
    "UImm5Sca",
    "R[",
    "PR",
    "$sched",
    "$wsb",
    "\n",
    "\n```\n",
    "\n  ",
    " ",
    "<",
    ">",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    ":",
    "==",
    "=",
    "!=",
    "+",
    "-",
    "*",
    "|",
    "\"",
    "not",
    "0",
    "64",
    "18446744073709551615",
];

fn soup(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(400) {
        let token = match random.below(24) {
            0 => "é寄存器",
            1 => "\n",
            _ => TOKENS[random.below(TOKENS.len())],
        };
        text.push_str(token);
        if random.below(2) == 0 {
            text.push(' ');
        }
    }
    text
}

fn small_case(seed: u64) {
    exercise("mutated.isa", &mutate(SMALL, &mut Random(seed)));
}

fn soup_case(seed: u64) {
    exercise("soup.isa", &soup(&mut Random(seed)));
}

/// The description in one text, so that slices of one file end up in another.
fn whole_description() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
    let mut sources = SourceMap::default();
    sources.read(&folder).expect("the description is readable");
    let texts: Vec<&str> = sources.files().iter().map(|f| f.text.as_str()).collect();
    texts.join("\n")
}

#[test]
fn seeds_that_once_failed() {
    for seed in SEEDS {
        small_case(seed);
        soup_case(seed);
    }
}

#[test]
fn empty_and_odd_files() {
    for text in [
        "",
        "\n",
        "__",
        "__DefGroup",
        "__Encoding",
        "```",
        "\u{feff}",
        "\0",
        "\"",
        "//",
    ] {
        exercise("odd.isa", text);
    }
    exercise("windows.isa", &SMALL.replace('\n', "\r\n"));
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    exercise(
        "deep.isa",
        &SMALL.replacen("= 32;", &format!("= {deep};"), 1),
    );
    let long = "1 + ".repeat(10_000);
    exercise(
        "long.isa",
        &SMALL.replacen("<rb> = 32;", &format!("<rb> = {long}1;"), 1),
    );
    let braces = "{".repeat(10_000);
    exercise(
        "braces.isa",
        &SMALL.replacen("Rd, {-}Ra", &format!("{braces}Rd, {{-}}Ra"), 1),
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_small_descriptions(seed in any::<u64>()) {
        small_case(seed);
    }

    #[test]
    fn token_soup(seed in any::<u64>()) {
        soup_case(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_whole_description(seed in any::<u64>()) {
        let mut random = Random(seed);
        let mut text = whole_description();
        // Many places at once: most of it stays intact.
        for _ in 0..20 {
            text = mutate(&text, &mut random);
        }
        exercise("whole.isa", &text);
    }
}
