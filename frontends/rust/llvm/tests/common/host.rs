//! Programs on the host, which say what is right.

use std::path::Path;
use std::process::Command;

/// What a program prints on the host, compiled with more flags than the tests have in common.
pub fn printed(source: &Path, flags: &[&str]) -> String {
    let program = source.with_extension("exe");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-Awarnings", "-Coverflow-checks=off"]);
    rustc.args(flags).arg(source).arg("-o").arg(&program);
    let output = rustc.output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {messages}", source.display());
    let mut run = Command::new("timeout");
    let output = run.arg("20").arg(&program).output().unwrap();
    let (name, status) = (source.display(), output.status);
    assert!(status.success(), "{name}: the host's run: {status}");
    String::from_utf8(output.stdout).unwrap()
}
