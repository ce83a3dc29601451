//! The project's own files, and damaged ones made of them, end no process.

use std::process::Command;

#[test]
fn no_text_ends_the_process() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../filetests");
    let folders = ["mid-end", "verifier", "promote"];
    let keep = format!("{}/survive-panic.clif", env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_survive"))
        .args(["--damaged", "200", "--seed", "1", "--keep", &keep])
        .args(folders.map(|folder| format!("{root}/{folder}")))
        .output()
        .expect("survive runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let counted = String::from_utf8_lossy(&output.stdout);
    assert!(counted.contains("damaged texts from seed 1: "), "{counted}");
}
