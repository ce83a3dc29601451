//! The commands of the text, as other programs call them.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_clif-util"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    // A command that fails early does not read its input.
    let _ = child
        .stdin
        .take()
        .expect("piped")
        .write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn file(name: &str, contents: &[u8]) -> String {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(name);
    std::fs::write(&path, contents).expect("a writable directory");
    path.display().to_string()
}

#[test]
fn asm_and_disasm() {
    let source = "IADD R0, R1, -R2 ;\n@!P1 MUFU.RCP.F32 R3, |R4| &wr=2 ?3 ;\n";
    let hex = run(&["asm", "-", "--hex"], source);
    assert_eq!(hex.status.code(), Some(0));
    assert!(text(&hex.stdout).lines().all(|l| l.len() == 32));
    let back = run(&["disasm", "-"], text(&hex.stdout));
    assert_eq!((back.status.code(), text(&back.stdout)), (Some(0), source));
}

#[test]
fn disasm_names_bad_words() {
    let path = file("bad.hex", b"zz\n\nffffffffffffffffffffffffffffffff\n");
    let out = run(&["disasm", &path], "");
    assert_eq!(out.status.code(), Some(1));
    let errors = text(&out.stderr);
    assert!(errors.contains(&format!("{path}:1: zz: ")), "{errors}");
    assert!(
        errors.contains(&format!(
            "{path}:3: ffffffffffffffffffffffffffffffff: no form"
        )),
        "{errors}"
    );
}

#[test]
fn objects() {
    let source = file(
        "k.s",
        b".kernel k\n    .param 8 ptr\n    EXIT ;\n.const\n    .word 7\n",
    );
    let object = source.replace("k.s", "k.elf");
    assert_eq!(
        run(&["asm", &source, "-o", &object], "").status.code(),
        Some(0)
    );
    let listing = run(&["disasm", &object], "");
    let again = source.replace("k.s", "again.elf");
    let assembled = run(&["asm", "-", "-o", &again], text(&listing.stdout));
    assert_eq!(assembled.status.code(), Some(0));
    assert_eq!(
        std::fs::read(&object).unwrap(),
        std::fs::read(&again).unwrap()
    );
}

#[test]
fn exit_status() {
    assert_eq!(
        run(&["asm"], "").status.code(),
        Some(2),
        "a missing argument"
    );
    assert_eq!(run(&["nothing"], "").status.code(), Some(2));
    assert_eq!(run(&["asm", "/nonexistent/x.s"], "").status.code(), Some(1));
    let errors = run(&["asm", "-"], "IADD R0 ;\nFOO ;\n");
    assert_eq!(errors.status.code(), Some(1));
    assert_eq!(
        text(&errors.stderr).matches(": error: ").count(),
        2,
        "all errors at once"
    );
}

#[test]
fn isa_json() {
    let out = run(&["isa", "--json"], "");
    let isa: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(isa["control"]["sched"], serde_json::json!([112, 4]));
    assert_eq!(isa["enums"]["MOVW"]["64"], 1);
    let form = &isa["forms"]["HFMA2_RRI"];
    assert_eq!(
        (form["optype"].as_str(), form["stype"].as_str()),
        (Some("HFMA2"), Some("RRI"))
    );
    assert_eq!(form["provenance"], "documented");
    assert_eq!(isa["forms"]["FADD_RR"]["provenance"], "assigned");
    assert!(
        form["fields"].as_array().unwrap().contains(
            &serde_json::json!({"name": "vc", "bit": 32, "width": 32, "type": "F16ImmX2"})
        )
    );
    let documented = isa["forms"].as_object().unwrap().values();
    assert_eq!(
        documented
            .filter(|f| f["provenance"] == "documented")
            .count(),
        153
    );
    let one: serde_json::Value =
        serde_json::from_slice(&run(&["isa", "IADD_RR", "--json"], "").stdout).expect("JSON");
    assert_eq!(one["forms"].as_object().unwrap().len(), 1);
    assert_eq!(run(&["isa", "NOPE"], "").status.code(), Some(1));
}

#[test]
fn exec_runs_states() {
    let program = file("add.s", b"@P0 IADD R0, R1, c[0x0][0x4] ;\n");
    let states = concat!(
        r#"{"gpr":{"R1":5},"pred":{"P0":4294967295},"const":{"0":"0000000007000000"},"active":3}"#,
        "\n",
        r#"{"gpr":{"R1":5},"pred":{"P0":1}}"#,
        "\n",
        r#"{"gpr":{"R1":5}}"#,
        "\n",
        r#"{"gpr":{"R999":5}}"#,
        "\n",
        "{\n",
        r#"{"active":0}"#,
        "\n"
    );
    let out = run(&["exec", &program, "--state", "-"], states);
    assert_eq!(out.status.code(), Some(1), "two lines are malformed");
    let results: Vec<serde_json::Value> = text(&out.stdout)
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    assert_eq!(results.len(), 4);
    let lanes = results[0]["gpr"]["R0"].as_array().unwrap();
    assert_eq!(lanes.len(), 32);
    assert_eq!(
        (lanes[0].as_u64(), lanes[1].as_u64(), lanes[2].as_u64()),
        (Some(12), Some(12), Some(0))
    );
    assert!(
        results[1]["fault"]["message"]
            .as_str()
            .unwrap()
            .contains("c[0x0][0x4]")
    );
    assert_eq!(
        results[2],
        serde_json::json!({"gpr": {}, "ur": {}, "pred": {}}),
        "a false guard has no effect"
    );
    let errors = text(&out.stderr);
    assert!(
        errors.contains("<stdin>:4: there is no register `R999`"),
        "{errors}"
    );
    assert!(errors.contains("<stdin>:5: "), "{errors}");
}

#[test]
fn isa_tells_assigned_numbers_of_documented_names() {
    let out = run(&["isa", "HADD2"], "");
    let table = text(&out.stdout);
    for line in [
        "HADD2 (HADD2), documented; number 1, assigned",
        "0..7      Optype       optype == HADD2 (1, assigned)",
        "80..81    HSel2        ra.hsel2 = H1_H0 (0, assigned)",
    ] {
        assert!(table.contains(line), "{line}\n{table}");
    }
    let out = run(&["isa", "IADD_RR"], "");
    assert!(text(&out.stdout).contains("ext = NoX (0, documented)"));
}

#[test]
fn exec_names_what_is_given_twice() {
    let program = file("twice.s", b"MOV R0, R1 ;\n");
    for (state, part) in [
        (r#"{"gpr":{"R1":1,"R1":2}}"#, "`R1` is given twice"),
        (r#"{"gpr":{"R01":1}}"#, "there is no register `R01`"),
        (r#"{"const":{"0":"00","0":"11"}}"#, "`0` is given twice"),
        (r#"{"active":1,"active":2}"#, "`active` is given twice"),
        (r#"{"gpr":{}"#, "EOF while parsing an object, column 9"),
    ] {
        let out = run(&["exec", &program, "--state", "-"], &format!("{state}\n"));
        assert_eq!(out.status.code(), Some(1), "{state}");
        let errors = text(&out.stderr);
        assert!(errors.starts_with("<stdin>:1: "), "{errors}");
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn exec_refuses_memory_and_control() {
    let out = run(
        &["exec", "-"],
        "IADD R0, R1, R2\nLDG R0, [R[2:3]]\nBRA .+0x10\nEXIT\n",
    );
    assert_eq!(out.status.code(), Some(1));
    let errors = text(&out.stderr);
    for part in [
        "<stdin>:2: error: LDG is a memory",
        "<stdin>:3: error: BRA is a control",
        "<stdin>:4: error: EXIT",
    ] {
        assert!(errors.contains(part), "{errors}");
    }
}

/// 50,000 states a second of a one-instruction program; measured where optimised code is tested (`THISGPU_HEAVY=1`).
#[test]
fn exec_is_fast() {
    if std::env::var("THISGPU_HEAVY").as_deref() != Ok("1") {
        println!("skipped: THISGPU_HEAVY is not 1");
        return;
    }
    let program = file("fast.s", b"IADD R0, R1, R2 ;\n");
    let count = 200_000u32;
    let states: String = (0..count)
        .map(|i| {
            format!(
                "{{\"gpr\":{{\"R1\":{i},\"R2\":[{}0]}}}}\n",
                "4294967295,".repeat(31)
            )
        })
        .collect();
    let states = file("fast.jsonl", states.as_bytes());
    let start = std::time::Instant::now();
    let out = run(&["exec", &program, "--state", &states], "");
    let rate = f64::from(count) / start.elapsed().as_secs_f64();
    assert_eq!(text(&out.stdout).lines().count(), count as usize);
    println!("{rate:.0} states a second");
    assert!(rate > 50_000.0, "{rate:.0} states a second");
}
