//! The guide's page of the debugger: its kernel, its commands and what they tell, pictures of the terminal, and what
//! VS Code and the adapter say to each other in the same ten steps. `CRANELIFT_TEST_BLESS=1` writes what is shown anew.

#[path = "common/adapter.rs"]
mod adapter;

use adapter::Client;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

fn path_of_page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join("docs/guide/stepping.md")
}

fn page() -> String {
    fs::read_to_string(path_of_page()).unwrap()
}

fn is_blessed() -> bool {
    env::var_os("CRANELIFT_TEST_BLESS").is_some()
}

/// The blocks of a page in a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// The debugger of the page's kernel with its numbers, in a folder of this name.
fn debugger(name: &str) -> Command {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sum.clif"), &blocks(&page(), "clif")[0]).unwrap();
    let numbers: Vec<String> = (1..=64).map(|n| n.to_string()).collect();
    fs::write(folder.join("numbers.txt"), numbers.join(" ")).unwrap();
    let text =
        "debug sum.clif --kernel sum --grid 1 --block 64 --arg in:numbers.txt:i32 --arg zero:4";
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    command.current_dir(folder).args(text.split(' '));
    command
}

/// What the debugger tells of commands.
fn told(name: &str, commands: &str) -> String {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.txt"));
    fs::write(&script, commands).unwrap();
    let output = debugger(name).arg("--script").arg(&script).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

fn commands(shown: &str) -> String {
    let lines = shown.lines();
    let commands = lines.filter_map(|line| line.strip_prefix("(thisgpu) "));
    commands.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_terminal_shows_what_is_told() {
    let shown = blocks(&page(), "text").concat();
    let told = told("page_text", &commands(&shown));
    if is_blessed() {
        fs::write(path_of_page(), with_text(&page(), &told)).unwrap();
        return;
    }
    assert_eq!(told, shown);
}

/// The page with what is told in its blocks of text: each has as many commands as before.
fn with_text(page: &str, told: &str) -> String {
    let mut told = told.split_inclusive('\n').peekable();
    let (begin, end) = ("```text\n", "```");
    let mut parts = page.split(begin);
    let mut written = parts.next().unwrap().to_owned();
    for part in parts {
        let (shown, rest) = part.split_once(end).unwrap();
        written += begin;
        for _ in commands(shown).lines() {
            written += told.next().unwrap();
            while let Some(line) = told.next_if(|line| !line.starts_with("(thisgpu) ")) {
                written += line;
            }
        }
        written += end;
        written += rest;
    }
    written
}

/// Each picture of the page shows the terminal up to where it stands: the page names it behind its commands.
#[test]
fn pictures_are_those_of_the_terminal() {
    let page = page();
    let mut found = 0;
    for (at, rest) in page
        .match_indices("](stepping-")
        .map(|(at, _)| (at, &page[at + 2..]))
    {
        let name = rest.split(')').next().unwrap();
        let before = blocks(&page[..at], "text").concat();
        let told = told("page_picture", &commands(&before));
        let mut styled = String::new();
        for line in told.lines() {
            // The prompt as a terminal that knows colours shows it, and what was typed.
            let _ = match line.strip_prefix("(thisgpu) ") {
                Some(typed) => writeln!(styled, "\x1b[32m(thisgpu)\x1b[0m \x1b[1m{typed}\x1b[0m"),
                None => writeln!(styled, "{line}"),
            };
        }
        let picture = anstyle_svg::Term::new().render_svg(&styled);
        let file = guide().join(name);
        if is_blessed() {
            fs::write(&file, &picture).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == picture,
            "{name} is not what is told; CRANELIFT_TEST_BLESS=1 draws it anew"
        );
        found += 1;
    }
    assert!(found > 0, "the page has no pictures");
}

/// What of an answer a line of the page shows: the same keys.
fn shown_of(line: &Value, answer: &Value) -> Value {
    match (line, answer) {
        (Value::Object(line), Value::Object(answer)) => {
            let keys = line.iter().map(|(key, value)| {
                let found = answer.get(key).unwrap_or(&Value::Null);
                (key.clone(), shown_of(value, found))
            });
            Value::Object(keys.collect::<Map<_, _>>())
        }
        (Value::Array(line), Value::Array(answer)) if line.len() == answer.len() => {
            let items = line.iter().zip(answer);
            Value::Array(items.map(|(line, answer)| shown_of(line, answer)).collect())
        }
        _ => answer.clone(),
    }
}

/// Lines that begin with > are sent; those with < show a part of the answer, or of an event.
#[test]
fn the_editor_and_the_adapter_say_what_is_shown() {
    let page = page();
    let shown = blocks(&page, "dap").concat();
    let mut client = Client::start(debugger("page_editor"));
    client.body("configurationDone", Value::Null);
    client.event("stopped");
    let (mut answer, mut told, mut asked) = (Value::Null, String::new(), String::new());
    for line in shown.lines() {
        let mut words = line.splitn(3, ' ');
        let [sign, name, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
        let value: Value = serde_json::from_str(rest).unwrap_or_else(|e| panic!("{line}: {e}"));
        let value = match sign {
            ">" => {
                answer = client.body(name, value.clone());
                asked = name.to_owned();
                value
            }
            "<" if name == asked => shown_of(&value, &answer),
            "<" => shown_of(&value, &client.event(name)),
            _ => panic!("{line}: begins with neither > nor <"),
        };
        let _ = writeln!(told, "{sign} {name} {value}");
    }
    client.end();
    if is_blessed() {
        let mut page = page;
        let mut rest = told.as_str();
        for block in blocks(&page.clone(), "dap") {
            let lines: usize = rest
                .lines()
                .take(block.lines().count())
                .map(|l| l.len() + 1)
                .sum();
            let (now, behind) = rest.split_at(lines);
            page = page.replacen(&block, now, 1);
            rest = behind;
        }
        fs::write(path_of_page(), page).unwrap();
    } else {
        assert_eq!(told, shown);
    }
}
