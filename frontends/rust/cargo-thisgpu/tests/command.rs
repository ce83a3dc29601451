//! `cargo thisgpu` as its users call it.

use cranelift_thisgpu::compile::SourceFile;
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

    // From elsewhere, and built in a folder that is meant from there.
    let elsewhere = ["--crate", "first", "--target-dir", "built/here"];
    let tested = thisgpu(
        folder.path(),
        &[&["test", "--offline"][..], &elsewhere].concat(),
    );
    assert!(tested.status.success(), "{:?}", text(&tested));
    assert!(folder.path().join("built/here").is_dir());
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

/// The line of the template's kernel that stores.
const STORE: u32 = 10;

#[test]
fn variables_of_a_kernel_and_of_a_test_are_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(
        thisgpu(folder.path(), &["new", "--lib", "seen"])
            .status
            .success()
    );
    let krate = folder.path().join("seen");
    let debug = |script: &str, arguments: &[&str]| {
        let path = folder.path().join("script");
        std::fs::write(&path, script).expect("written");
        let path = path.to_str().expect("a path");
        let all = [&["debug", "--offline", "--script", path], arguments].concat();
        let output = thisgpu(&krate, &all);
        assert!(output.status.success(), "{:?}", text(&output));
        text(&output).0
    };
    let script = format!(
        "break {STORE} if i == 3\ncontinue\nlocals\nprint *x\nprint y\nlanes i\nfinish\ncontinue\n"
    );
    let told = debug(&script, &["saxpy", "2", "8:ramp", "8:1"]);
    for expected in [
        "lanes ...#............................\n",
        "    *y = a.mul_add(*x, *y);\n",
        "\na: f32 = 2.0\n",
        "\ni: usize = 3\n",
        "\ny: DisjointMut<f32, thisgpu_gpu::partition::Linear> = [1.0, 1.0, ",
        "(thisgpu) print *x\n*x: f32 = 3.0\n(thisgpu) print y\ny: &mut f32 = &mut 1.0\n",
        "(thisgpu) lanes i\n 0:          0          1          2          3          4",
        "(thisgpu) continue\nall blocks have ended",
    ] {
        assert!(told.contains(expected), "{expected:?} in\n{told}");
    }
    let told = debug(
        "break saxpy\ncontinue\nprint y[3]\nprint y.extents.x\n",
        &["saxpy", "2", "8:ramp", "8:1"],
    );
    assert!(
        told.contains("\ny[3]: f32 = 1.0\n") && told.contains("\ny.extents.x: u32 = 8\n"),
        "{told}"
    );
    let told = debug(
        "break lanes_add_up\ncontinue\nwarps\n",
        &["--test", "add_up"],
    );
    assert!(
        told.contains("################################ pc"),
        "{told}"
    );
    let wrong = thisgpu(&krate, &["debug", "--offline", "--test", "nothing"]);
    let (_, messages) = text(&wrong);
    assert!(
        messages.contains("there is no test `nothing`; there are lanes_add_up"),
        "{messages}"
    );
}

/// A line up to what was left out of it, with all addresses the same.
fn comparable(line: &str) -> String {
    let line = line.split('…').next().unwrap_or_default();
    let mut parts = line.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("0x");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    }
    text
}

#[test]
fn the_guide_shows_what_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(
        thisgpu(folder.path(), &["new", "--lib", "hello"])
            .status
            .success()
    );
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/stepping.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let (_, shown) = guide.split_once("```console\n").expect("a session");
    let (shown, _) = shown.split_once("```\n").expect("its end");
    let (command, shown) = shown.split_once('\n').expect("a command");
    let words = command.strip_prefix("$ cargo thisgpu ").expect("a command");
    let commands = shown
        .lines()
        .filter_map(|line| line.strip_prefix("(thisgpu) "));
    let script: String = commands.map(|command| format!("{command}\n")).collect();
    let path = folder.path().join("script");
    std::fs::write(&path, script).expect("written");
    let path = path.to_str().expect("a path");
    let mut words: Vec<&str> = words.split(' ').collect();
    words.splice(1..1, ["--offline", "--script", path]);
    let (told, messages) = text(&thisgpu(&folder.path().join("hello"), &words));
    assert_eq!(
        told.lines().count(),
        shown.lines().count(),
        "{told}{messages}"
    );
    for (told, shown) in told.lines().zip(shown.lines()) {
        assert!(
            comparable(told).starts_with(&comparable(shown)),
            "{told}\n{shown}"
        );
    }
}

/// An editor's side of the adapter.
struct Client {
    child: std::process::Child,
    output: std::io::BufReader<std::process::ChildStdout>,
    sent: i64,
    /// Events that came before the answer that was waited for.
    events: Vec<serde_json::Value>,
}

impl Client {
    fn new(folder: &Path) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-thisgpu"));
        let command = command
            .args(["thisgpu", "debug", "--adapter"])
            .current_dir(folder);
        let pipe = std::process::Stdio::piped;
        let mut child = command
            .stdin(pipe())
            .stdout(pipe())
            .spawn()
            .expect("starts");
        let output = child.stdout.take().expect("piped");
        Client {
            child,
            output: std::io::BufReader::new(output),
            sent: 0,
            events: Vec::new(),
        }
    }

    fn receive(&mut self) -> serde_json::Value {
        use std::io::{BufRead, Read};
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).expect("a header"),
                0,
                "the adapter has ended"
            );
            match line.trim().strip_prefix("Content-Length: ") {
                Some(digits) => length = digits.parse().expect("a length"),
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("a message");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    /// Sends a request; its answer.
    fn ask(&mut self, command: &str, arguments: serde_json::Value) -> serde_json::Value {
        use std::io::Write;
        self.sent += 1;
        let message = serde_json::json!({
            "seq": self.sent, "type": "request", "command": command, "arguments": arguments,
        });
        let message = message.to_string();
        let input = self.child.stdin.as_mut().expect("piped");
        write!(input, "Content-Length: {}\r\n\r\n{message}", message.len()).expect("sent");
        input.flush().expect("sent");
        loop {
            let message = self.receive();
            if message["request_seq"] == self.sent {
                return message;
            }
            self.events.push(message);
        }
    }

    fn event(&mut self, name: &str) -> serde_json::Value {
        loop {
            let known = self.events.iter().position(|event| event["event"] == name);
            match known {
                Some(index) => return self.events.remove(index),
                None => {
                    let event = self.receive();
                    self.events.push(event);
                }
            }
        }
    }
}

#[test]
fn an_editor_launches_what_its_configuration_says() {
    use serde_json::{Value, json};
    let folder = tempfile::tempdir().expect("a folder");
    assert!(thisgpu(folder.path(), &["new", "whole"]).status.success());
    let root = folder.path().join("whole");
    let read = |file: &str| -> Value {
        let text = std::fs::read_to_string(root.join(file)).expect(file);
        serde_json::from_str(&text).expect(file)
    };
    let extension = read(".vscode/extensions/thisgpu-debug/package.json");
    let debugger = &extension["contributes"]["debuggers"][0];
    let launches = read(".vscode/launch.json");
    let mut launch = launches["configurations"][0].clone();
    assert_eq!(debugger["type"], launch["type"]);
    assert_eq!(
        (&debugger["runtime"], &debugger["runtimeArgs"]),
        (&json!("cargo"), &json!(["thisgpu", "debug", "--adapter"]))
    );
    launch["cwd"] = root.to_str().into();
    let words = launch["args"].as_array_mut().expect("a list");
    words.insert(0, "--offline".into());

    let mut client = Client::new(folder.path());
    assert_eq!(client.ask("initialize", json!({}))["success"], true);
    assert_eq!(client.ask("threads", json!({}))["success"], false);
    let launched = client.ask("launch", launch);
    assert_eq!(launched["success"], true, "{launched}");
    client.event("initialized");
    let file = root.join("kernels/src/lib.rs");
    let breakpoints = json!({
        "source": {"path": file},
        "breakpoints": [{"line": STORE, "condition": "i == 3"}],
    });
    let set = client.ask("setBreakpoints", breakpoints);
    assert_eq!(set["body"]["breakpoints"][0]["verified"], true, "{set}");
    client.ask("configurationDone", json!({}));
    let stopped = client.event("stopped");
    assert_eq!(stopped["body"]["reason"], "breakpoint");
    let thread = stopped["body"]["threadId"].clone();
    let stack = client.ask("stackTrace", json!({"threadId": thread}));
    let frame = &stack["body"]["stackFrames"][0];
    assert_eq!(
        (&frame["name"], &frame["line"]),
        (&json!("saxpy"), &json!(STORE))
    );
    let path = frame["source"]["path"].as_str().expect("a path");
    assert_eq!(
        std::fs::canonicalize(path).expect("is there"),
        std::fs::canonicalize(&file).expect("is there")
    );
    let scopes = client.ask("scopes", json!({"frameId": frame["id"]}));
    let locals = &scopes["body"]["scopes"][0];
    assert_eq!(locals["name"], "Locals");
    let variables = client.ask(
        "variables",
        json!({"variablesReference": locals["variablesReference"]}),
    );
    let variables = variables["body"]["variables"]
        .as_array()
        .expect("a list")
        .clone();
    // Of two of one name the inner one stands last.
    let of = |name: &str| {
        let mut variables = variables.iter().rev();
        variables.find(|of| of["name"] == name).expect(name).clone()
    };
    assert_eq!(
        (&of("i")["value"], &of("i")["type"]),
        (&json!("3"), &json!("usize"))
    );
    let inner = client.ask(
        "variables",
        json!({"variablesReference": of("x")["variablesReference"]}),
    );
    assert_eq!(inner["body"]["variables"][0]["value"], "3.0", "{inner}");
    // A part of what has many elements.
    let y = variables.iter().find(|of| of["name"] == "y");
    let y = y.expect("it is declared first");
    assert_eq!(y["indexedVariables"], 8, "{y}");
    let part = client.ask(
        "variables",
        json!({"variablesReference": y["variablesReference"], "filter": "indexed", "start": 6, "count": 5}),
    );
    let names = part["body"]["variables"].as_array().expect("a list").iter();
    let names: Vec<&str> = names.filter_map(|of| of["name"].as_str()).collect();
    assert_eq!(names, ["[6]", "[7]"], "{part}");
    let frame = frame["id"].clone();
    let value = client.ask("evaluate", json!({"expression": "*x", "frameId": frame}));
    assert_eq!(value["body"]["result"], "3.0");
    assert_eq!(client.ask("disconnect", json!({}))["success"], true);
    assert!(client.child.wait().expect("ends").success());

    let mut client = Client::new(folder.path());
    let wrong = client.ask(
        "launch",
        json!({"cwd": root, "args": ["--offline", "nothing"]}),
    );
    let message = wrong["message"].as_str().expect("a message");
    assert!(
        message.starts_with("there is no kernel `nothing`; kernels: saxpy"),
        "{message}"
    );
}

/// Shared memory, a static that the host fills, and a panic.
const FAILS: &str = "#![no_std]

use thisgpu_gpu::*;

#[device_static]
static SCALE: u32 = 3;

#[kernel]
pub fn fails(x: &[u32]) {
    let tile = shared!([u32; 4]);
    let t = thread::index_x() as usize;
    tile.set(t, x[t] * SCALE.read());
    thread::barrier();
    if t == 2 {
        panic!(\"{} is too much\", tile.get(2));
    }
}
";

/// What a crate of messages becomes is a file of CLIF, as clif-util reads it.
#[test]
fn the_clif_of_a_crate_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let new = thisgpu(folder.path(), &["new", "--lib", "failing"]);
    assert!(new.status.success());
    let root = folder.path().join("failing");
    std::fs::write(root.join("src/lib.rs"), FAILS).expect("written");
    for level in ["0", "3"] {
        let build = ["build", "--offline", "--emit", "clif", "--opt-level", level];
        let (clif, messages) = text(&thisgpu(&root, &build));
        let file = SourceFile::parse("failing.clif", &clif);
        let file = file.unwrap_or_else(|error| panic!("{error}{messages}"));
        assert!(file.functions.len() > 5, "messages are formatted");
    }
}

#[test]
fn statics_and_the_message_of_a_panic_are_shown() {
    use serde_json::json;
    let folder = tempfile::tempdir().expect("a folder");
    let new = thisgpu(folder.path(), &["new", "--lib", "failing"]);
    assert!(new.status.success());
    let root = folder.path().join("failing");
    std::fs::write(root.join("src/lib.rs"), FAILS).expect("written");
    let mut client = Client::new(&root);
    client.ask("initialize", json!({}));
    let words = ["--offline", "fails", "4:ramp", "--block", "4"];
    let launch = json!({"args": words, "cwd": root, "stopOnEntry": false});
    let launched = client.ask("launch", launch);
    assert_eq!(launched["success"], true, "{launched}");
    let none = client.ask("exceptionInfo", json!({"threadId": 1}));
    assert_eq!(none["success"], false, "{none}");
    client.ask("configurationDone", json!({}));
    let stopped = client.event("stopped")["body"].clone();
    assert_eq!(stopped["reason"], "exception", "{stopped}");
    let line = line_of(FAILS, "panic!");
    let expected = format!("kernel `fails` panicked at line {line}, column 9 of src/lib.rs");
    let text = stopped["text"].as_str().expect("a text");
    assert!(text.starts_with(&format!("panic: {expected}")), "{stopped}");
    let panic = client.ask("exceptionInfo", json!({"threadId": stopped["threadId"]}));
    let panic = &panic["body"];
    assert_eq!(panic["exceptionId"], "panic", "{panic}");
    let message = panic["details"]["message"].as_str().expect("a message");
    for part in [
        expected.as_str(),
        ": 6 is too much; block (0,0,0), thread (2,0,0)",
    ] {
        assert!(message.contains(part), "{part:?} in {message}");
    }
    let stack = client.ask("stackTrace", json!({"threadId": stopped["threadId"]}));
    let frames = stack["body"]["stackFrames"]
        .as_array()
        .expect("frames")
        .clone();
    let kernel = frames.iter().find(|frame| frame["name"] == "fails");
    let frame = kernel.unwrap_or_else(|| panic!("{stack}"))["id"].clone();
    let scopes = client.ask("scopes", json!({"frameId": frame}));
    let scopes = scopes["body"]["scopes"].as_array().expect("scopes").clone();
    let scope = scopes
        .iter()
        .find(|scope| scope["name"] == "Statics")
        .expect("statics");
    let reference = scope["variablesReference"].clone();
    let shown = client.ask("variables", json!({"variablesReference": reference}));
    let shown = shown["body"]["variables"]
        .as_array()
        .expect("variables")
        .clone();
    let own = shown
        .iter()
        .map(|of| [&of["name"], &of["value"], &of["indexedVariables"]]);
    let tile = format!("failing::fails::shared_at_{}", line_of(FAILS, "shared!"));
    let expected = [
        [json!("failing::SCALE"), json!("3"), json!(null)],
        [json!(tile), json!("[0, 3, 6, 9]"), json!(4)],
    ];
    let own: Vec<_> = own.map(|of| of.map(Clone::clone)).collect();
    assert_eq!(own, expected, "{shown:?}");
    for (expression, expected) in [
        ("tile[3]", "9"),
        ("SCALE", "3"),
        ("failing::SCALE", "3"),
        (
            "statics",
            &format!(
                "failing::SCALE: DeviceStatic<u32> = 3\n{tile}: Shared<[u32; 4]> = [0, 3, 6, 9]"
            ),
        ),
    ] {
        let asked = json!({"expression": expression, "frameId": frame, "context": "repl"});
        let value = client.ask("evaluate", asked);
        let result = value["body"]["result"].as_str().unwrap_or_default();
        assert!(result.starts_with(expected), "{expression}: {value}");
    }
    // An element in shared memory can be watched.
    let asked = json!({"variablesReference": reference, "name": tile});
    let watched = client.ask("dataBreakpointInfo", asked);
    assert_eq!(watched["body"]["dataId"], "shared:0 0x0 16", "{watched}");
    assert_eq!(client.ask("disconnect", json!({}))["success"], true);
}

/// The line of a source that has a text.
fn line_of(source: &str, text: &str) -> usize {
    let line = source.lines().position(|line| line.contains(text));
    line.expect("there") + 1
}
