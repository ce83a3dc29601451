//! Programs on the host, which say what is right.

use std::path::Path;
use std::process::Command;

/// What rustc says of itself where LLVM gives up.
const GAVE_UP: &str = "rustc-LLVM ERROR";

/// What a program prints on the host, compiled with more flags than the tests have in common, those of the next level
/// where LLVM gives up at one.
pub fn printed(source: &Path, levels: &[&[&str]]) -> String {
    for flags in levels {
        match compiled_and_run(source, flags) {
            Ok(printed) => return printed,
            Err(messages) if messages.contains(GAVE_UP) => println!("{messages}"),
            Err(messages) => panic!("{}: {messages}", source.display()),
        }
    }
    panic!("{}: LLVM gives up at every level", source.display());
}

/// What a program prints; what rustc says if it does not compile.
fn compiled_and_run(source: &Path, flags: &[&str]) -> Result<String, String> {
    let program = source.with_extension("exe");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-Awarnings", "-Coverflow-checks=off"]);
    rustc.args(flags).arg(source).arg("-o").arg(&program);
    let output = rustc.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let mut run = Command::new("timeout");
    let output = run.arg("20").arg(&program).output().unwrap();
    let (name, status) = (source.display(), output.status);
    assert!(status.success(), "{name}: the host's run: {status}");
    Ok(String::from_utf8(output.stdout).unwrap())
}
