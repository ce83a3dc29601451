//! The files that wrong command lines name.

use std::fs;
use std::path::Path;
use std::process::Command;

const GOOD: &str = "\
test run
target thisgpu

; kernel
function %k(i32, i64) {
block0(v0: i32, v1: i64):
    store v0, v1
    return
}

function %two(i32) -> i32 {
block0(v0: i32):
    v1 = iadd v0, v0
    return v1
}
; run: %two(2) == 4
";
const DOUBLE: &str =
    "function %two(i32) -> i32 {\nblock0(v0: i32):\n    v1 = iadd v0, v0\n    return v1\n}\n";
const UNSUPPORTED: &str =
    "block0(v0: f128):\n    v1 = fadd v0, v0\n    v2 = fmul v1, v1\n    return v2\n}\n";

/// Texts by name.
const TEXTS: &[(&str, &str)] = &[
    ("good.clif", GOOD),
    ("plain.clif", DOUBLE),
    ("empty.clif", ""),
    ("comment.clif", "; kernel\n"),
    (
        "old.s",
        "HMUL2 R0, R1.F32, R2 &wr=0 ;\nHMUL2.MRG_H0 R3, R4, R5 ;\n",
    ),
    (
        "wrong_old.s",
        "HSET2.LTE R0, R1, R2 ;\nHMUL2 R0, R1.H0_H1, 0xad1c, -1 ;\nHMUL2 R0, R1, 1, -1 ;\nHMUL2 R0, R1, UR2 ;\n\
         HMUL2 R0, R1, c[0][6] ;\nHSET2.GT.AND R0, R1, R2 ;\nHMUL2_32I R0, -R1, 1, 1 ;\nHSET2 R0, R1, R2 ;\n",
    ),
    ("uniform.jsonl", "{\"ur\":{}}\n"),
    ("boards.s", "HMUL2 R0, R1.F32, R2 &req={0,1,2,3,4,5} ;\n"),
    (
        "relative.s",
        "HMUL2 R0, R1.F32, R2 ;\nBRA .+0x10 ;\nEXIT ;\n",
    ),
    ("header.clif", "test compile\ntarget thisgpu\n"),
    (
        "bogus.clif",
        "function %f() {\nblock0:\n    v0 = bogus.i32 1\n    return\n}\n",
    ),
    (
        "verifier.clif",
        "function %f(i32) -> i64 {\nblock0(v0: i32):\n    return v0\n}\n",
    ),
    (
        "result.clif",
        "; kernel\nfunction %k(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n",
    ),
    (
        "intrinsic.clif",
        "function %f() {\n    fn0 = %gpu_tid_q() -> i32\nblock0:\n    v0 = call fn0()\n    return\n}\n",
    ),
    (
        "signature.clif",
        "function %f() {\n    fn0 = %gpu_tid_x() -> i64\nblock0:\n    v0 = call fn0()\n    return\n}\n",
    ),
    (
        "shared.clif",
        "; kernel shared=1000000\nfunction %k() {\nblock0:\n    return\n}\n",
    ),
    (
        "mark.clif",
        "; kernel fast\nfunction %k() {\nblock0:\n    return\n}\n",
    ),
    (
        "twice.clif",
        "function %f() {\nblock0:\n    return\n}\nfunction %f() {\nblock0:\n    return\n}\n",
    ),
    ("unclosed.clif", "function %f() {\nblock0:\n    return\n"),
    (
        "calls.clif",
        "; kernel\nfunction %c(i32) {\n    fn0 = %missing(i32)\nblock0(v0: i32):\n    call fn0(v0)\n    return\n}\n",
    ),
    (
        "exact.clif",
        "test compile precise-output\ntest optimize precise-output\ntarget thisgpu\n",
    ),
    ("prose.txt", "This is a text.\nIt has two lines.\n"),
    ("text.elf", "This is no object.\n"),
    ("bad.s", "FOO ;\n"),
    ("label.s", "BRA nowhere ;\n"),
    ("operands.s", "IADD R0 ;\n"),
    ("directive.s", ".fly away\n"),
    (
        "call.s",
        ".extern elsewhere\n.func f\n    CALL R[2:3], elsewhere ;\n",
    ),
    ("memory.s", "LDG R0, [R[2:3]] ;\n"),
    ("loop.s", ".kernel k\nagain:\n    BRA again ;\n"),
    ("add.s", "IADD R0, R1, R2 ;\n"),
    ("bad.hex", "12\nffffffffffffffffffffffffffffffff\n"),
    (
        "bad.jsonl",
        "{\"gpr\":{\"R999\":5}}\n{\n{\"gpr\":{\"R1\":5}\n[]\n",
    ),
];

/// A file with header lines before a function with a run line.
fn with_header(header: &str) -> String {
    format!("{header}\n{DOUBLE}; run: %two(2) == 4\n")
}

/// Writes all files to an empty folder.
pub fn write(folder: &Path) {
    let write = |name: &str, contents: &[u8]| fs::write(folder.join(name), contents).unwrap();
    for (name, contents) in TEXTS {
        write(name, contents.as_bytes());
    }
    for (name, header) in [
        ("other.clif", "test run\ntarget x86_64"),
        ("settings.clif", "target thisgpu\nset regz=30"),
        ("value.clif", "target thisgpu\nset regs=3"),
        ("targets.clif", "target thisgpu fast"),
        ("kinds.clif", "test fly\ntarget thisgpu"),
        ("option.clif", "test run fast\ntarget thisgpu"),
        ("passes.clif", "test pass fly\ntarget thisgpu"),
    ] {
        write(name, with_header(header).as_bytes());
    }
    let failing = with_header("test run\ntarget thisgpu").replace("== 4", "== 5");
    write("failing.clif", failing.as_bytes());
    let arity = format!("{DOUBLE}; run: %two(2, 3) == 4\n").replacen("}\n;", "} ;", 1);
    write("arity.clif", arity.as_bytes());
    let traps = DOUBLE.replace("    return", "    trap user1\n    return");
    write(
        "traps.clif",
        traps
            .replace("    return v1\n", "")
            .replace("}\n", "}\n; run: %two(2) == 4\n")
            .as_bytes(),
    );
    let unsupported = |name: String| format!("function %{name}(f128) -> f128 {{\n{UNSUPPORTED}");
    write("unsupported.clif", unsupported("f".to_owned()).as_bytes());
    let thousands: String = (0..2000).map(|n| unsupported(format!("f{n}"))).collect();
    write("thousands.clif", thousands.as_bytes());
    write("thousands.s", "FOO ;\n".repeat(5000).as_bytes());
    write("long.clif", "x".repeat(1 << 20).as_bytes());
    write(
        "long.s",
        format!("    {}\n", "D".repeat(1 << 20)).as_bytes(),
    );
    write("latin.clif", b"; one\n; \xe4\n");
    write("zeros.clif", &[0; 100]);
    let mut state = 1u32;
    let random = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8 | 0x80
    });
    write("random.bin", &random.take(1 << 16).collect::<Vec<u8>>());
    objects(folder);
    fs::create_dir(folder.join("hollow")).unwrap();
    fs::create_dir(folder.join("folder")).unwrap();
    fs::write(folder.join("folder/good.clif"), GOOD).unwrap();
    links(folder);
}

/// Objects: two that are right, the beginning of one, and one for another machine.
fn objects(folder: &Path) {
    for (name, object) in [("good.clif", "k.elf"), ("calls.clif", "calls.elf")] {
        let status = Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(["compile", name, "--target", "thisgpu", "-o", object])
            .current_dir(folder)
            .stderr(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
    }
    let object = fs::read(folder.join("k.elf")).unwrap();
    fs::write(folder.join("cut.elf"), &object[..object.len() / 2]).unwrap();
    let mut foreign = object;
    // The machine: x86-64.
    foreign[18..20].copy_from_slice(&[62, 0]);
    fs::write(folder.join("foreign.elf"), foreign).unwrap();
}

#[cfg(unix)]
fn links(folder: &Path) {
    std::os::unix::fs::symlink("loop.clif", folder.join("loop.clif")).unwrap();
    std::os::unix::fs::symlink("k.elf", folder.join("symlink.elf")).unwrap();
}

#[cfg(not(unix))]
fn links(_: &Path) {}
