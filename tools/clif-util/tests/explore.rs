//! The page of `explore`: which lines it links, which passes it names, how large it is, and what it says of itself in a
//! browser.

mod common;

use common::{Folder, fail, succeed};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most bytes of a page of the largest kernel, with one variant or two.
const MOST_BYTES: usize = 3_000_000;

/// By kernel a line of the source and the one instruction that it became: its operation, and what else of its text no
/// other instruction of that operation has. Found by reading the kernels; registers are left out, since they change
/// with every change of the allocator. Lines with `#` say why.
const LINKED: &str = "
# Special registers, one for each call.
saxpy_f32 | v100 = call fn0() | S2R | SR_CTAID_X
saxpy_f32 | v102 = call fn2() | S2R | SR_TID_X
# The product before the sum is fused with it; the block's size is in constant bank 0.
saxpy_f32 | v104 = iadd v103, v102 | IMAD.U32 | c[0x0][0x0]
# Parameters follow from 0x160 on: n, a, x, y.
saxpy_f32 | v105 = icmp uge v104, v0 | ISETP.GE.AND.U32 | c[0x0][0x160]
saxpy_f32 | v5 = iadd.i64 v2, v4 | IMAD.WIDE.U32 | c[0x0][0x168]
saxpy_f32 | v6 = iadd.i64 v3, v4 | IMAD.WIDE.U32 | c[0x0][0x170]
saxpy_f32 | v9 = fma v1, v7, v8 | FFMA | c[0x0][0x164]
saxpy_f32 | store aligned v9, v6 | STG |
# The second tile lies 0x100 bytes behind the first.
matmul8 | store aligned v45, v35 | STS | +0x100]
matmul8 | v65 = load.f32 aligned v32+32 | LDS | +0x120]
matmul8 | v77 = load.f32 aligned v32+160 | LDS | +0x1a0]
# The first of four loads in a row stands for all of them.
matmul8 | v73 = load.f32 aligned v30+16 | LDS.128 | +0x10]
matmul8 | v25 = iadd v3, v24 | IMAD.WIDE.U32 | c[0x0][0x178]
matmul8 | v53 = icmp ult v52, v0 | UISETP.LT.AND.U32 | c[0x0][0x160]
matmul8 | store.f32 aligned v84, v25 | STG |
gather64 | v12 = iadd.i64 v5, v10 | IMAD.WIDE.U32 | c[0x0][0x188]
gather64 | v14 = sextend.i64 v13 | SHF.R.HI | 0x1f
gather64 | v21 = load.f32 aligned v16+4 | LDG | +0x4]
gather64 | v22 = load.f32 aligned v18+8 | LDG | +0x8]
gather64 | v23 = load.f32 aligned v20+16 | LDG | +0x10]
chacha_qr | v11 = load.i32 aligned v3 | LDG.128 |
# The last of four stores in a row stands for all of them.
chacha_qr | store aligned v35, v3+12 | STG.128 |
";

/// By kernel a line of the source that no instruction is left of, and the pass that removed the last one.
const REMOVED: &[(&str, &str, &str)] = &[
    // Fused to IMAD.
    ("saxpy_f32", "v103 = imul v100, v101", "lower"),
    // The guarded block has no branch to its end any more.
    ("saxpy_f32", "jump block2", "converge"),
    // The second constant of the same value.
    ("matmul8", "v201 = iconst.i32 3", "mid-end"),
    // Part of the wide load before it.
    ("matmul8", "v64 = load.f32 aligned v30+4", "lower"),
];

/// A kernel, settings, the operation of an instruction, and the pass that made it.
const MADE: &[(&str, &[&str], &str, &str)] = &[
    ("collatz", &[], "BSSY", "converge"),
    ("collatz", &[], "LDG", "lower"),
    ("collatz", &[], "BRA", "layout"),
    ("matmul_rt8x8", &["--set", "regs=64"], "STL", "allocate"),
];

/// Lines of a page and the words that they carry, as a browser has them: kernel, settings, start of the line, words.
const TAGGED: &[(&str, &[&str], &str, &str)] = &[
    (
        "saxpy_f32",
        &[],
        "  v103 = imul v100, v101<",
        "removed by lower",
    ),
    (
        "saxpy_f32",
        &[],
        "  gv0 = symbol colocated %gpu_ctaid_x<",
        "made by intrinsics",
    ),
    (
        "matmul8",
        &[],
        "  v201 = iconst.i32 3<",
        "removed by mid-end",
    ),
    (
        "matmul_rt8x8",
        &["--set", "regs=64"],
        "MOV R",
        "made by allocate",
    ),
];

fn filetest(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    root.join(format!("{name}.clif")).display().to_string()
}

fn kernel(name: &str) -> String {
    filetest(&format!("kernels/{name}"))
}

/// The data of a page.
fn report(folder: &Folder, name: &str, settings: &[&str]) -> Value {
    let path = folder.path("report.json");
    let file = kernel(name);
    succeed(&[&["explore", file.as_str(), "-o", path.as_str()], settings].concat());
    let text = std::fs::read_to_string(path).expect("written");
    serde_json::from_str(&text).expect("JSON")
}

/// Writes a page; its path.
fn page(folder: &Folder, name: &str, file: &str, arguments: &[&str]) -> PathBuf {
    let path = folder.path(name);
    succeed(&[&["explore", file, "-o", path.as_str()], arguments].concat());
    path.into()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.unwrap_or_else(|| panic!("no {pointer}"))
}

fn string(value: &Value) -> &str {
    value.as_str().expect("a text")
}

/// The place of a line of the source, which must be there once.
fn place(report: &Value, line: &str) -> u64 {
    let text = |of: &Value| {
        string(&of["text"])
            .trim()
            .split("  ;")
            .next()
            .map(str::to_owned)
    };
    let found: Vec<_> = list(report, "/functions/0/source")
        .iter()
        .filter(|of| text(of).as_deref() == Some(line))
        .collect();
    let [found] = found.as_slice() else {
        panic!("{line}: {} lines", found.len());
    };
    let key = found["key"].as_u64().expect("a number");
    assert_ne!(key, 0, "{line} has no place");
    key
}

/// The operation of an instruction of the assembly, whatever guards it.
fn operation(text: &str) -> &str {
    let mut words = text
        .split_whitespace()
        .filter(|word| !word.starts_with('@'));
    words.next().unwrap_or_default()
}

#[test]
fn lines_are_linked_with_the_instructions_that_they_became() {
    let folder = Folder::new("explore-linked");
    let mut last: Option<(&str, Value)> = None;
    let rows = LINKED
        .lines()
        .filter(|row| !row.is_empty() && !row.starts_with('#'));
    let mut linked = 0;
    for row in rows {
        let parts: Vec<&str> = row.split('|').map(str::trim).collect();
        let &[name, line, wanted, detail] = parts.as_slice() else {
            panic!("{row}: four parts");
        };
        let report = match last.take() {
            Some((of, report)) if of == name => report,
            _ => report(&folder, name, &[]),
        };
        let instructions = list(&report, "/functions/0/variants/0/picture/instructions");
        let found: Vec<_> = instructions
            .iter()
            .filter(|i| {
                let text = string(&i["text"]);
                operation(text) == wanted && text.contains(detail)
            })
            .collect();
        // The last turn of a loop may be a copy.
        let &[first, ..] = found.as_slice() else {
            panic!("{name}: no instruction {wanted} with {detail}");
        };
        for found in &found {
            assert_eq!(
                found["source"].as_u64(),
                Some(place(&report, line)),
                "{name}: {line} and {}",
                found["text"]
            );
        }
        let found = first;
        // The line has a partner in CLIF and VCode too, and the columns of the assembly say the same.
        for stage in list(&report, "/functions/0/variants/0/stages") {
            let lines = stage["lines"].as_array().expect("lines");
            let linked = |of: &&Value| of["key"] == found["source"];
            let count = lines.iter().filter(linked).count();
            assert!(count > 0, "{name}: {line} is not in {}", stage["title"]);
        }
        last = Some((name, report));
        linked += 1;
    }
    assert!(linked >= 20, "{linked} pairs");
}

#[test]
fn lines_without_partner_name_the_pass_that_removed_or_made_them() {
    let folder = Folder::new("explore-passes");
    for &(name, line, pass) in REMOVED {
        let report = report(&folder, name, &[]);
        let key = place(&report, line).to_string();
        let removed = &report["functions"][0]["variants"][0]["removed"];
        assert_eq!(removed[&key].as_str(), Some(pass), "{name}: {line}");
    }
    for &(name, settings, wanted, pass) in MADE {
        let report = report(&folder, name, settings);
        let stages = list(&report, "/functions/0/variants/0/stages");
        let assembly = stages.last().expect("stages");
        let of = assembly["lines"].as_array().expect("lines").iter();
        let made: Vec<_> = of
            .filter(|line| operation(string(&line["text"])) == wanted)
            .map(|line| line["made"].as_str())
            .collect();
        assert!(!made.is_empty(), "{name}: no {wanted}");
        assert!(
            made.iter().all(|by| *by == Some(pass)),
            "{name}: {wanted}: {made:?}"
        );
    }
}

#[test]
fn pages_are_small_and_hold_everything_that_they_need() {
    let folder = Folder::new("explore-size");
    let file = kernel("matmul_rt8x8");
    for arguments in [&[][..], &["--compare", "regs=64"]] {
        let path = page(&folder, "page.html", &file, arguments);
        let text = std::fs::read_to_string(path).expect("written");
        assert!(text.len() < MOST_BYTES, "{} bytes", text.len());
        for place in ["/*STYLE*/", "/*SCRIPT*/", "/*REPORT*/"] {
            assert!(!text.contains(place), "{place} is not filled in");
        }
        // Nothing is fetched: the only address names the kind of drawings and is not opened.
        let outside: Vec<_> = text.match_indices("://").collect();
        assert_eq!(outside.len(), 1, "addresses in the page");
        for word in ["src=", "<link", "@import", "url(h", "fetch("] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn a_profile_that_counts_nothing_is_refused() {
    let folder = Folder::new("explore-empty-profile");
    let file = folder.file(
        "k.clif",
        "; kernel\nfunction %k() {\nblock0:\n    trap user3\n}\n",
    );
    let [profile, page] = ["profile.json", "page.html"].map(|name| folder.path(name));
    // The first instruction faults.
    let launch = [
        "launch", &file, "--kernel", "k", "--grid", "1", "--block", "1",
    ];
    let launch = [&launch[..], &["--profile", &profile]].concat();
    fail(1, &launch);
    assert_eq!(
        fail(1, &["explore", &file, "-o", &page, "--profile", &profile]),
        "error: the profile of k counts no instruction: its launch ended before the first was issued\n"
    );
    assert!(!Path::new(&page).exists());
}

/// The browser that `CHROMIUM` names, or the first in the path.
fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut paths = (names.iter()).flat_map(|name| folders.iter().map(move |f| f.join(name)));
    paths.find(|path| path.is_file())
}

/// What a page is once its script has run. `dark` is the scheme of colours that the reader prefers.
fn opened(folder: &Folder, page: &Path, dark: bool) -> String {
    let browser = browser().expect("a browser; CHROMIUM names one");
    let scheme = if dark { "0" } else { "1" };
    // Pages are this test's own files, so no sandbox is needed, which containers do not allow.
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path("browser")))
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg("--virtual-time-budget=20000")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", common::text(&output.stderr));
    common::text(&output.stdout)
}

#[test]
#[ignore = "needs chromium: run with `-- --ignored`, as .ci/run does where one is installed"]
fn pages_check_themselves_in_a_browser() {
    let folder = Folder::new("explore-browser");
    let zeros = folder.file("x.bin", [0; 4096]);
    let input = format!("in:{zeros}");
    let profiled = |name: &str, elements: &str| {
        let profile = folder.path(name);
        succeed(&[
            "launch",
            &kernel("saxpy_f32"),
            "--kernel",
            "saxpy_f32",
            "--grid",
            "4",
            "--block",
            "256",
            "--arg",
            elements,
            "--arg",
            "f32:2",
            "--arg",
            &input,
            "--arg",
            "zero:4096",
            "--profile",
            &profile,
        ]);
        profile
    };
    let profile = profiled("profile.json", "i32:1000");
    // Most of its instructions never ran.
    let idle = profiled("idle.json", "i32:0");
    let pages = [
        page(
            &folder,
            "compared.html",
            &kernel("collatz"),
            &["--compare", "opt_level=none"],
        ),
        page(
            &folder,
            "large.html",
            &kernel("matmul_rt8x8"),
            &["--compare", "regs=64"],
        ),
        page(
            &folder,
            "profiled.html",
            &kernel("saxpy_f32"),
            &["--profile", &profile],
        ),
        page(
            &folder,
            "idle.html",
            &kernel("saxpy_f32"),
            &["--profile", &idle],
        ),
        page(
            &folder,
            "many.html",
            &filetest("run/control/recursion"),
            &[],
        ),
    ];
    // A frame is as wide as it is told to be, which a window without a screen is not.
    let frames = pages.iter().flat_map(|page| {
        [400, 1400].map(|width| {
            let page = page.display();
            format!("<iframe style=\"width:{width}px;height:900px\" src=\"{page}#self-test\"></iframe>\n")
        })
    });
    let frames: Vec<String> = frames.collect();
    let around = folder.file(
        "around.html",
        format!(
            "<!doctype html><pre id=results></pre>
<script>onmessage = (event) => {{ document.getElementById('results').textContent += `${{event.data}}\\n`; }};</script>
{}",
            frames.concat()
        ),
    );
    for dark in [false, true] {
        let results = opened(&folder, Path::new(&around), dark);
        let (results, _) = results.split_once("</pre>").expect("the page around");
        assert_eq!(
            results.matches("self-test: ").count(),
            frames.len(),
            "{results}"
        );
        assert_eq!(
            results.matches(" passed, 0 failed").count(),
            frames.len(),
            "{results}"
        );
    }
}

#[test]
#[ignore = "needs chromium: run with `-- --ignored`, as .ci/run does where one is installed"]
fn lines_without_partner_carry_the_name_of_their_pass_in_a_browser() {
    let folder = Folder::new("explore-tags");
    for &(name, settings, start, words) in TAGGED {
        let page = page(&folder, "page.html", &kernel(name), settings);
        let opened = opened(&folder, &page, false);
        let start = format!("class=\"text\">{start}");
        let mut lines = opened
            .split("<div class=\"line")
            .filter(|line| line.contains(&start));
        assert!(
            lines.any(|line| line.contains(&format!("title=\"{words}\""))),
            "{name}: no line {start} that says {words}"
        );
    }
}
