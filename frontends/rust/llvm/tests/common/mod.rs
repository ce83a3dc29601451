//! rustc as these tests run it, and kernels on the simulator.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use thisgpu_llvm::flags::{Checks, Compilation, DebugInfo, OptLevel, flags};
use thisgpu_llvm::{Module, Program};

/// How rustc's passes are chosen.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "no test takes all of them")]
pub enum Level {
    /// One of rustc's own: `0`, `2`, `3`, `s`.
    Of(&'static str),
    /// The passes that keep barriers where they are.
    Convergent,
    /// Slots become values, and nothing else is done.
    Promoted,
}

/// A folder for what a test writes.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The LLVM IR of a file, by way of the file `out`.
fn llvm_ir(source: &Path, level: Level, debug: DebugInfo, out: &Path) -> String {
    let flags = |compilation| flags(compilation, Checks::default(), debug);
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "-Awarnings"]);
    match level {
        // What is not about the passes is the same.
        Level::Of(level) => {
            let reference = flags(Compilation::Reference);
            let passes = |flag: &String| flag == "-Cno-prepopulate-passes";
            command.args(reference.into_iter().filter(|flag| !passes(flag)));
            command.arg(format!("-Copt-level={level}"));
        }
        Level::Convergent => {
            let level = Compilation::Optimised(OptLevel::More);
            command.args(flags(level));
        }
        Level::Promoted => {
            command.args(flags(Compilation::Reference));
            command.arg("-Cpasses=function(sroa)");
        }
    }
    let output = command.arg(source).arg("-o").arg(out).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", source.display());
    let text = std::fs::read_to_string(out).unwrap();
    std::fs::remove_file(out).unwrap();
    text
}

/// The program of a file, with so much debug information.
pub fn program(source: &Path, level: Level, debug: DebugInfo) -> Program {
    let name = source.file_stem().unwrap().to_string_lossy().into_owned();
    // Tests run at the same time.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id();
    let out = folder("ir").join(format!("{name}-{process}-{number}.ll"));
    let text = llvm_ir(source, level, debug, &out);
    let module = Module::parse(&name, &text).unwrap();
    Program::link(vec![module]).unwrap()
}
