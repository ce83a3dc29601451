//! rustc as these tests run it, and kernels on the simulator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use thisgpu_llvm::{Module, Program};

/// How rustc's passes are chosen.
#[derive(Clone, Copy, Debug)]
pub enum Level {
    /// One of rustc's own: `0`, `2`, `3`, `s`.
    Of(&'static str),
    /// The passes that keep barriers where they are.
    Convergent,
}

/// Intrinsics of LLVM that depend on no other thread, for whom the attribute that is forced on everything is taken back.
const PURE: &[&str] = &[
    "sqrt.f32",
    "sqrt.f64",
    "fma.f32",
    "fma.f64",
    "minnum.f32",
    "maxnum.f32",
    "fabs.f32",
    "fabs.f64",
    "ctpop.i32",
    "ctpop.i64",
    "ctlz.i32",
    "ctlz.i64",
    "cttz.i32",
    "cttz.i64",
    "umin.i32",
    "umin.i64",
    "umax.i32",
    "umax.i64",
    "smin.i32",
    "smax.i32",
];

/// A folder for what a test writes.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The LLVM IR of a file, by way of the file `out`.
fn llvm_ir(source: &Path, level: Level, out: &Path) -> String {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "--emit=llvm-ir", "-Awarnings"]);
    for option in [
        "codegen-units=1",
        "panic=abort",
        "overflow-checks=off",
        "debug-assertions=off",
        "relocation-model=static",
        "force-unwind-tables=no",
        "jump-tables=off",
        "debuginfo=1",
        "symbol-mangling-version=v0",
    ] {
        command.arg(format!("-C{option}"));
    }
    match level {
        Level::Of(level) => {
            command.arg(format!("-Copt-level={level}"));
        }
        Level::Convergent => {
            command.args(["-Copt-level=0", "-Cno-prepopulate-passes"]);
            command.arg("-Cpasses=function(sroa,early-cse) default<O2>");
            let mut arguments = String::from(
                "-force-attribute=convergent -simplifycfg-branch-fold-threshold=0 -unroll-peel-max-count=0 -vectorize-loops=false \
                 -vectorize-slp=false -inline-threshold=1000",
            );
            for pure in PURE {
                arguments.push_str(&format!(" -force-remove-attribute=llvm.{pure}:convergent"));
            }
            command.arg(format!("-Cllvm-args={arguments}"));
        }
    }
    let output = command.arg(source).arg("-o").arg(out).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", source.display());
    let text = std::fs::read_to_string(out).unwrap();
    std::fs::remove_file(out).unwrap();
    text
}

/// The program of a file.
pub fn program(source: &Path, level: Level) -> Program {
    let name = source.file_stem().unwrap().to_string_lossy().into_owned();
    // Tests run at the same time.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let out = folder("ir").join(format!("{name}-{process}-{number}.ll"));
    let text = llvm_ir(source, level, &out);
    let module = Module::parse(&name, &text).unwrap();
    Program::link(vec![module]).unwrap()
}
