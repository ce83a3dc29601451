//! `link`, `launch` of several files, `compile --cache`, and warnings.

mod common;

use common::{Folder, clif_util, fail, succeed, text};
use std::process::{Command, Stdio};

const KERNEL: &str = "\
; kernel
function %k(i64, i32) {
    fn0 = %twice(i32) -> i32
block0(v0: i64, v1: i32):
    v2 = call fn0(v1)
    store v2, v0
    return
}
";
const TWICE: &str = "\
function %twice(i32) -> i32 {
block0(v0: i32):
    v1 = iadd v0, v0
    return v1
}
";

/// Launches the kernel of these files and gives what it stores for 21.
fn launch(folder: &Folder, files: &[&str]) -> i32 {
    let out = folder.path("out");
    let mut arguments = vec!["launch"];
    arguments.extend(files);
    arguments.extend([
        "--kernel", "k", "--grid", "1", "--block", "1", "--out", &out,
    ]);
    arguments.extend(["--arg", "zero:4", "--arg", "i32:21"]);
    succeed(&arguments);
    let bytes = std::fs::read(format!("{out}/arg0.bin")).unwrap();
    i32::from_le_bytes(bytes.try_into().unwrap())
}

fn compile(folder: &Folder, name: &str, source: &str) -> String {
    let file = folder.file(&format!("{name}.clif"), source);
    let object = folder.path(&format!("{name}.elf"));
    succeed(&["compile", &file, "--target", "thisgpu", "-o", &object]);
    object
}

#[test]
fn files_are_linked_by_link_and_by_launch() {
    let folder = Folder::new("link");
    let (kernel, twice) = (
        compile(&folder, "k", KERNEL),
        compile(&folder, "twice", TWICE),
    );
    let linked = folder.path("linked.elf");
    succeed(&["link", &kernel, &twice, "-o", &linked]);
    assert_eq!(launch(&folder, &[&linked]), 42);
    assert_eq!(launch(&folder, &[&twice, &kernel]), 42);
    let source = folder.file("source.clif", TWICE);
    assert_eq!(launch(&folder, &[&kernel, &source]), 42);
    let before = std::fs::read(&linked).unwrap();
    succeed(&["link", &kernel, &twice, "-o", &linked]);
    assert_eq!(std::fs::read(&linked).unwrap(), before);
    assert!(succeed(&["disasm", &linked]).contains("CALL R[2:3], twice"));
}

#[test]
fn what_does_not_link_is_an_error_and_leaves_no_file() {
    let folder = Folder::new("unlinked");
    let kernel = compile(&folder, "k", KERNEL);
    let near = compile(&folder, "near", &TWICE.replace("%twice", "%twicer"));
    let linked = folder.path("linked.elf");
    let message = fail(1, &["link", &kernel, &near, "-o", &linked]);
    assert!(
        message.contains("(line 5): undefined symbol `twice`; did you mean `twicer`?"),
        "{message}"
    );
    assert!(!std::path::Path::new(&linked).exists());
    let message = fail(1, &["link", &near, &near, "-o", &linked]);
    assert!(
        message.contains("symbol `twicer` is defined in"),
        "{message}"
    );
    fail(2, &["link", "-o", &linked]);
}

#[test]
fn names_without_definition_and_near_marks_are_warnings() {
    let folder = Folder::new("warnings");
    let file = folder.file("k.clif", KERNEL);
    let output = clif_util(&["compile", &file, "--target", "thisgpu"]);
    assert!(output.status.success());
    let message = text(&output.stderr);
    assert!(
        message.contains("k.clif:5: `twice` is not defined here"),
        "{message}"
    );
    let file = folder.file("near.clif", TWICE.replace("function", "; Kernel\nfunction"));
    let output = clif_util(&["compile", &file, "--target", "thisgpu"]);
    let message = text(&output.stderr);
    assert!(
        message.contains("near.clif:1: `; Kernel` is no kernel mark"),
        "{message}"
    );
}

#[test]
fn a_cache_gives_the_same_code_and_reports() {
    let folder = Folder::new("cache");
    let file = folder.file("k.clif", format!("{KERNEL}{TWICE}"));
    let (cache, out) = (folder.path("cache"), folder.path("k.elf"));
    let compile = |more: &[&str]| {
        let mut arguments = vec!["compile", &file, "--target", "thisgpu", "-o", &out];
        arguments.extend(["--resource-usage", "--remarks", "--cycles"]);
        arguments.extend(more);
        let report = succeed(&arguments);
        (report, std::fs::read(&out).unwrap())
    };
    let fresh = compile(&[]);
    assert_eq!(compile(&["--cache", &cache]), fresh);
    let entries = || std::fs::read_dir(&cache).unwrap().count();
    assert_eq!(entries(), 1);
    assert_eq!(compile(&["--cache", &cache]), fresh);
    assert_eq!(entries(), 1);
    compile(&["--cache", &cache, "--set", "regs=32"]);
    assert_eq!(entries(), 2);
}

/// Several processes read, write and evict in one folder at once, and one spoils what it finds there: each gets the
/// code of a fresh compilation, and what is left in the folder are whole entries.
#[test]
fn processes_share_a_cache() {
    const FILES: usize = 3;
    const ROUNDS: usize = 3;
    let folder = Folder::new("shared-cache");
    let cache = folder.path("cache");
    let files: Vec<String> = (0..FILES)
        .map(|file| {
            let constant = format!("v2 = iconst.i32 {}\n    v1 = iadd v0, v2", 1000 + file);
            let text = format!("{KERNEL}{}", TWICE.replace("v1 = iadd v0, v0", &constant));
            folder.file(&format!("{file}.clif"), text)
        })
        .collect();
    let fresh: Vec<Vec<u8>> = (files.iter().enumerate())
        .map(|(file, source)| {
            let object = folder.path(&format!("{file}.elf"));
            succeed(&["compile", source, "--target", "thisgpu", "-o", &object]);
            std::fs::read(object).unwrap()
        })
        .collect();
    let cached = |file: usize, object: &str, limit: &str| {
        Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(["compile", &files[file], "--target", "thisgpu", "-o", object])
            .args(["--cache", &cache, "--cache-limit", limit])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let entries = || {
        let files = std::fs::read_dir(&cache).unwrap();
        files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
    };
    cached(0, &folder.path("first.elf"), "1000000")
        .wait()
        .unwrap();
    let size = std::fs::metadata(&entries()[0]).unwrap().len();
    // Room for two: those that write evict the others' entries.
    let limit = (2 * size + size / 2).to_string();
    for round in 0..ROUNDS {
        let running: Vec<_> = (0..2 * FILES)
            .map(|process| {
                let object = folder.path(&format!("{round}.{process}.elf"));
                let file = process % FILES;
                (file, cached(file, &object, &limit), object)
            })
            .collect();
        if round == 1 {
            for entry in entries() {
                // It may be gone already.
                let _ = std::fs::File::options()
                    .append(true)
                    .open(entry)
                    .and_then(|file| file.set_len(size / 2));
            }
        }
        for (file, process, object) in running {
            let output = process.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            assert!(std::fs::read(object).unwrap() == fresh[file], "file {file}");
        }
    }
    let left = entries();
    let whole = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "tgc");
    assert!(
        !left.is_empty() && left.len() <= FILES && left.iter().all(whole),
        "{left:?}"
    );
}
