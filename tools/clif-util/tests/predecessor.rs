//! SPA 5.3 from outside: `exec --isa spa5.3`, and `port`, whose output computes the same.

mod common;

use common::{Folder, fail, succeed, text};
use cranelift_thisgpu::unstable::isa::PReg;
use cranelift_thisgpu::unstable::isa::random::Random;
use serde_json::{Value, json};
use spa53::random::{self, Names};
use std::collections::BTreeMap;
use std::fmt::Write;

const OLD: &str = "\
// an old kernel
.kernel k
start:  HMUL2.FTZ R0, R1.F32, R2 &req={0} &wr=1 ?2 ; // the tail stays
\t@!P0 HMUL2.MRG_H1 R0, -|R1|, {-|2|}, -3 ?7
    IADD R3, R0, 1 &req={1} ;
L2: /* here */ HSET2.BF.GT.AND R4, R0, R3, !P2
    BRA start ;
";

#[test]
fn a_text_is_carried_over_and_the_rest_is_copied_and_noted() {
    let folder = Folder::new("port");
    let old = folder.file("old.s", OLD);
    let output = common::clif_util(&["port", &old, "--from", "spa5.3", "--scratch", "R40-R41,P5"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        text(&output.stdout),
        "\
// an old kernel
.kernel k
start:
// HMUL2.FTZ R0, R1.F32, R2 &req={0} &wr=1 ?2 ;
F2F.F16.F32.RZ R0, R1 &req={0} &wr=2 ?1 ;
HMUL2.FTZ R0, R0.H0_H0, R2 &req={2} &wr=1 ?2 ; // the tail stays
\t// @!P0 HMUL2.MRG_H1 R0, -|R1|, {-|2|}, -3 ?7
\t@!P0 HMUL2 R40, -|R1|, -2, -3 ?5 ;
\t@!P0 LOP3.POR R0, R40, -0x10000, R0, 0xe2, !PT ?7 ;
    IADD R3, R0, 1 &req={1} ;
L2: /* here */
// HSET2.BF.GT.AND R4, R0, R3, !P2
HSET2.GT.AND.BF R4, R0, R3, !P2 ;
    BRA start ;
"
    );
    let errors = text(&output.stderr);
    let warning = "old.s:4:31: warning: one immediate has bars and the other has none";
    assert!(errors.contains(warning), "{errors}");
    for note in [
        ":2: note: copied: .kernel k\n",
        ":5: note: copied: IADD R3, R0, 1 &req={1}\n",
        ":7: note: copied: BRA start\n",
    ] {
        assert!(errors.contains(note), "{errors}");
    }
    // To a file it is the same.
    let new = folder.path("new.s");
    succeed(&[
        "port",
        &old,
        "--from",
        "spa5.3",
        "--scratch",
        "R40",
        "-o",
        &new,
    ]);
    assert_eq!(std::fs::read_to_string(&new).unwrap(), text(&output.stdout));
    succeed(&["asm", &new]);
}

#[test]
fn after_an_error_nothing_is_written() {
    let folder = Folder::new("port-error");
    let old = folder.file("old.s", format!("{OLD}FOO R1, R2 ;\n"));
    let new = folder.path("new.s");
    let errors = fail(
        1,
        &[
            "port",
            &old,
            "--from",
            "spa5.3",
            "--scratch",
            "R40",
            "-o",
            &new,
        ],
    );
    assert!(errors.contains("old.s:8:1: error"), "{errors}");
    assert!(!std::path::Path::new(&new).exists());
}

/// Registers that instructions read; each writes one of its own behind them.
const NAMES: Names = Names {
    registers: 6,
    banks: 2,
    bytes: 64,
};

fn state(random: &mut Random) -> Value {
    let gpr: BTreeMap<String, Vec<u32>> = (0..40)
        .map(|r| {
            (
                format!("R{r}"),
                (0..32).map(|_| random::word(random)).collect(),
            )
        })
        .collect();
    let pred: BTreeMap<String, u32> = (0..7)
        .map(|p| (format!("P{p}"), random.bits() as u32))
        .collect();
    let mut bank = || -> String {
        let words = (0..16).map(|_| random::word(random).swap_bytes());
        words.map(|word| format!("{word:08x}")).collect()
    };
    let banks = json!({"0": bank(), "1": bank()});
    json!({"gpr": gpr, "pred": pred, "const": banks, "active": random.bits() as u32 | 1})
}

/// Halves and single precision with one NaN each.
fn by_class(value: u32, single: bool) -> u32 {
    if single {
        return if value & 0x7fff_ffff > 0x7f80_0000 {
            0x7fff_ffff
        } else {
            value
        };
    }
    let half = |half: u32| if half & 0x7fff > 0x7c00 { 0x7fff } else { half };
    half(value >> 16) << 16 | half(value & 0xffff)
}

#[test]
fn both_ways_compute_the_same() {
    let folder = Folder::new("port-same");
    let mut random = Random::new(21);
    for round in 0..6 {
        let (mut old, mut singles) = (String::new(), Vec::new());
        for number in 6..40u32 {
            let mut line = random::instruction(&mut random, NAMES).to_string();
            // Behind guard and mnemonic stands the destination.
            let skip = if line.starts_with('@') { 2 } else { 1 };
            let place = line.match_indices(' ').nth(skip - 1).unwrap().0 + 1;
            let end = place + line[place..].find(',').unwrap();
            line.replace_range(place..end, &format!("R{number}"));
            if line.contains(".F32 R") || line.contains(".F32.") {
                singles.push(PReg::gpr(number as u8).to_string());
            }
            let _ = writeln!(old, "{line} &wr={} ?{} ;", number % 5, number % 16);
        }
        let old = folder.file(&format!("old{round}.s"), old);
        let new = folder.path(&format!("new{round}.s"));
        succeed(&[
            "port",
            &old,
            "--from",
            "spa5.3",
            "--scratch",
            "R50-R53",
            "-o",
            &new,
        ]);
        let states: String = (0..8)
            .map(|_| format!("{}\n", state(&mut random)))
            .collect();
        let states = folder.file("states.jsonl", states);
        let before = succeed(&["exec", "--isa", "spa5.3", &old, "--state", &states]);
        let after = succeed(&["exec", &new, "--state", &states]);
        assert_eq!(before.lines().count(), 8);
        for (before, after) in before.lines().zip(after.lines()) {
            let results = |line: &str| -> BTreeMap<String, Vec<u32>> {
                let line: Value = serde_json::from_str(line).unwrap();
                assert!(line.get("fault").is_none(), "{line}");
                let registers = line["gpr"].as_object().unwrap().iter();
                registers
                    .filter(|(name, _)| !["R50", "R51", "R52", "R53"].contains(&name.as_str()))
                    .map(|(name, values)| {
                        let values = values.as_array().unwrap().iter();
                        let values = values.map(|v| v.as_u64().unwrap() as u32);
                        let single = singles.contains(name);
                        (name.clone(), values.map(|v| by_class(v, single)).collect())
                    })
                    .collect()
            };
            assert_eq!(results(before), results(after), "{old}");
        }
    }
}

#[test]
fn comments_within_an_instruction_stay_comments() {
    let folder = Folder::new("port-comment");
    for old in [
        "HMUL2 R0, R1, /*\nHADD2 R5, R5, R6 ; // */ R2 ;\nFOO: HMUL2 R3, R1, R2 ;\n",
        "HMUL2 R0, /* a\r\n b */ R1, R2 ;\r\nHMUL2 R3, R1, R2 // end\r\n",
    ] {
        let old = folder.file("old.s", old);
        let new = folder.path("new.s");
        succeed(&["port", &old, "--from", "spa5.3", "-o", &new]);
        let state = folder.file(
            "state.jsonl",
            r#"{"gpr":{"R1":1006648320,"R2":1073758208,"R5":1,"R6":2}}"#,
        );
        assert_eq!(
            succeed(&["exec", "--isa", "spa5.3", &old, "--state", &state]),
            succeed(&["exec", &new, "--state", &state])
        );
        let text = std::fs::read_to_string(&new).unwrap();
        assert!(text.lines().any(|line| line.starts_with("// ")), "{text}");
        assert_eq!(
            text.contains("\r\n"),
            !text.replace("\r\n", "").contains('\n'),
            "{text:?}"
        );
    }
}

#[test]
fn what_counts_registers_or_instructions_is_refused() {
    let folder = Folder::new("port-counts");
    let old = ".kernel k\n.registers 8\n.loops 3\nHMUL2.FMZ R0, R1, R2 ;\nEXIT ;\n";
    let old = folder.file("old.s", old);
    let errors = fail(1, &["port", &old, "--from", "spa5.3", "--scratch", "R40"]);
    assert!(
        errors.contains("old.s:2:1: error: `.registers` would be wrong: R40 is used"),
        "{errors}"
    );
    assert!(
        errors.contains("old.s:3:1: error: `.loops` would be wrong"),
        "{errors}"
    );
    // Below the number it may stay.
    succeed(&[
        "port",
        &folder.file(
            "old.s",
            ".kernel k\n.registers 8\nHMUL2.FMZ R0, R1, R2 ;\nEXIT ;\n",
        ),
        "--from",
        "spa5.3",
        "--scratch",
        "R5",
    ]);
}
