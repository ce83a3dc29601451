//! `cargo thisgpu` as its users call it.

use std::path::Path;
use std::process::{Command, Output};

/// The command in a folder.
fn thisgpu(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-thisgpu"));
    command.arg("thisgpu").args(arguments).current_dir(folder);
    command.output().expect("runs")
}

/// What it prints.
fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_new_crate_is_built_run_and_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = thisgpu(folder.path(), &["new", "--lib", "first"]);
    assert!(made.status.success(), "{:?}", text(&made));
    assert!(!thisgpu(folder.path(), &["new", "first"]).status.success());
    let krate = folder.path().join("first");

    let built = thisgpu(&krate, &["build", "--offline"]);
    let (out, messages) = text(&built);
    assert_eq!(
        out,
        "saxpy(a: f32, x: &[f32], y: DisjointMut<f32>): 6 registers, 0 bytes of local memory\n",
        "{messages}"
    );
    let (clif, _) = text(&thisgpu(&krate, &["build", "--offline", "--emit", "clif"]));
    assert!(
        clif.contains("; kernel max_threads=256\nfunction %saxpy("),
        "{clif}"
    );

    let (out, messages) = text(&thisgpu(
        &krate,
        &[
            "run",
            "--offline",
            "--check",
            "--timed",
            "saxpy",
            "2",
            "4:ramp",
            "1,1,1,-1",
        ],
    ));
    assert!(
        out.starts_with("y = [1, 3, 5, 5]\n") && out.contains(" cycles"),
        "{out}{messages}"
    );
    let wrong = thisgpu(&krate, &["run", "--offline", "saxpy", "2", "4"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(
        text(&wrong)
            .1
            .contains("takes 3 arguments (a: f32, x: &[f32], y: DisjointMut<f32>), 2 given"),
        "{:?}",
        text(&wrong)
    );
    assert!(
        text(&thisgpu(&krate, &["run", "--offline", "saxpi", "1"]))
            .1
            .contains("saxpy")
    );

    let tested = thisgpu(&krate, &["test", "--offline"]);
    assert!(tested.status.success(), "{:?}", text(&tested));
    assert!(text(&tested).0.contains("test lanes_add_up ... ok\n"));
    let source = krate.join("src/lib.rs");
    let broken = std::fs::read_to_string(&source)
        .expect("there")
        .replace("496", "495");
    let line = 1
        + (broken.lines())
            .position(|line| line.contains("495"))
            .expect("the test is there");
    std::fs::write(&source, broken).expect("room");
    let tested = thisgpu(&krate, &["test", "--offline"]);
    assert_eq!(tested.status.code(), Some(1));
    let (out, _) = text(&tested);
    assert!(
        out.contains("test lanes_add_up ... FAILED")
            && out.contains(&format!("panicked at line {line}, ")),
        "{out}"
    );
    assert!(
        out.contains("test result: FAILED. 0 passed; 1 failed; 0 filtered out"),
        "{out}"
    );
}

#[test]
fn a_program_has_its_kernels_beside_it() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(thisgpu(folder.path(), &["new", "hello"]).status.success());
    for file in [
        "Cargo.toml",
        "build.rs",
        "src/main.rs",
        "kernels/Cargo.toml",
        "kernels/src/lib.rs",
        "rust-toolchain.toml",
        ".gitignore",
    ] {
        let text = std::fs::read_to_string(folder.path().join("hello").join(file)).expect(file);
        assert!(!text.contains('@'), "{file}: {text}");
    }
    // From the program's folder its kernels are found.
    let (out, messages) = text(&thisgpu(
        &folder.path().join("hello"),
        &["build", "--offline"],
    ));
    assert!(out.starts_with("saxpy("), "{out}{messages}");
}

#[test]
fn folders_without_kernels_are_told_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, messages) = text(&thisgpu(folder.path(), &["build"]));
    assert!(messages.contains("cargo thisgpu new"), "{messages}");
    assert_eq!(
        thisgpu(folder.path(), &["build", "--opt-level", "7"])
            .status
            .code(),
        Some(2)
    );
    assert!(!thisgpu(folder.path(), &["new", "7up"]).status.success());
}
