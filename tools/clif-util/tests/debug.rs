//! `clif-util debug`: scripts, and a client of the Debug Adapter Protocol that sends what VS Code and nvim-dap send.

#[path = "common/adapter.rs"]
mod adapter;

use adapter::Client;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The sum of 64 numbers in shared memory.
const SUM: &str = "; kernel shared=256
function %sum(i64, i64, i32) {
    gv0 = symbol %gpu_shared
    gv1 = symbol %gpu_tid_x
    fn0 = %gpu_bar_sync()
block0(v0: i64, v1: i64, v2: i32):
    v3 = symbol_value.i32 gv1
    v4 = iconst.i32 2
    v5 = ishl v3, v4
    v6 = symbol_value.i32 gv0
    v7 = iadd v6, v5
    v8 = uextend.i64 v5
    v9 = iadd v0, v8
    v10 = load.i32 aligned v9
    store aligned v10, v7
    jump block1(v2)
block1(v11: i32):
    call fn0()
    v12 = icmp ult v3, v11
    brif v12, block2, block3
block2:
    v13 = ishl v11, v4
    v14 = iadd v7, v13
    v15 = load.i32 aligned v14
    v16 = load.i32 aligned v7
    v17 = iadd v15, v16
    store aligned v17, v7
    jump block3
block3:
    v18 = iconst.i32 1
    v19 = ushr v11, v18
    brif v19, block1(v19), block4
block4:
    brif v3, block6, block5
block5:
    v20 = load.i32 aligned v6
    store aligned v20, v1
    return
block6:
    return
}
";
/// The line of its `iadd v15, v16`.
const ADDITION: u32 = 26;

/// A folder with the kernel and its numbers.
fn folder(name: &str, numbers: u32) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("sum.clif"), SUM).unwrap();
    let numbers: Vec<String> = (1..=numbers).map(|n| n.to_string()).collect();
    fs::write(folder.join("numbers.txt"), numbers.join(" ")).unwrap();
    folder
}

/// The debugger of the kernel in a folder, with its buffers, and `more`.
fn debug(folder: &PathBuf, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    let text =
        "debug sum.clif --kernel sum --grid 1 --block 64 --arg inout:numbers.txt:i32 --arg zero:4";
    command.current_dir(folder).args(text.split(' ')).args(more);
    command
}

/// What a script prints, and whether it ended well.
fn script(name: &str, numbers: u32, text: &str) -> (String, bool) {
    let folder = folder(name, numbers);
    fs::write(folder.join("script.txt"), text).unwrap();
    let more = ["--arg", "i32:32", "--script", "script.txt"];
    let output = debug(&folder, &more).output().unwrap();
    let told =
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (told, output.status.success())
}

#[test]
fn a_script_stops_looks_and_goes_back() {
    let text = format!(
        "break {ADDITION} if v3 == 3 # only lane 3\ncontinue\nprint R0\nprint v3\nlanes v3\nvalues\nlanes P0\n\
         warps\nwatch shared 12 4\ncontinue\n\
         rcontinue\ndelete 1\ndelete 2\ncontinue\n"
    );
    let (told, ended_well) = script("debug_script", 64, &text);
    assert!(ended_well, "{told}");
    for expected in [
        "breakpoint 1 at line 26: pc ",
        "breakpoint 1, lanes ...#............................",
        "R0 = 0x3 (3)",
        "v3 = 0x3 (3)",
        " 0:        0x0        0x1        0x2        0x3        0x4",
        "v3: i32 = 0x3 (3)",
        "iadd v15, v16",
        "watchpoint 2: store of 4 bytes at 0xc by thread 3 of block 0",
        "0x4 became 0x28",
        "block 0 (0,0,0), warp 1:",
        "all blocks have ended",
    ] {
        assert!(told.contains(expected), "`{expected}` is not in:\n{told}");
    }
}

#[test]
fn a_fault_is_told_with_addresses_and_allocation() {
    let (told, ended_well) = script("debug_fault", 40, "continue\nback\nwhere\n");
    assert!(ended_well, "{told}");
    for expected in [
        "fault: ",
        "160 bytes",
        "argument 0 (inout:numbers.txt:i32)",
        "lane 31: 0x",
        "v10 = load.i32",
    ] {
        assert!(told.contains(expected), "`{expected}` is not in:\n{told}");
    }
}

/// A kernel that calls a function, which calls another one; symbols are such as rustc makes.
const CALLS: &str = "function %_RNvCs1_5crate5inner(i32) -> i32 {
block0(v0: i32):
    v1 = imul v0, v0
    return v1
}

function %_RNvCs1_5crate5outer(i32) -> i32 {
    fn0 = %_RNvCs1_5crate5inner(i32) -> i32
block0(v0: i32):
    v1 = iconst.i32 100
    v2 = iadd v0, v1
    v3 = call fn0(v2)
    v4 = iadd v3, v2
    return v4
}

; kernel
function %k(i64) {
    fn0 = %_RNvCs1_5crate5outer(i32) -> i32
    gv1 = symbol %gpu_tid_x
block0(v0: i64):
    v1 = symbol_value.i32 gv1
    v2 = call fn0(v1)
    v3 = uextend.i64 v1
    v4 = iconst.i64 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    store v2, v6
    return
}
";

#[test]
fn callers_have_what_calls_keep() {
    let folder = folder("debug_callers", 64);
    fs::write(folder.join("calls.clif"), CALLS).unwrap();
    // What cannot be shown ends a script, so each line has its own.
    let told = |script: &str| {
        fs::write(folder.join("script.txt"), script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        let arguments =
            "debug calls.clif --kernel k --grid 1 --block 64 --arg zero:256 --script script.txt";
        let output = command.current_dir(&folder).args(arguments.split(' '));
        let output = output.output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let stop = "break 3 if R4 == 105\ncontinue\n";
    for (script, expected) in [
        ("where", "in crate::inner, pc"),
        ("where", "\n  called from crate::outer, pc 0x"),
        ("where", "\n  called from k, pc 0x"),
        ("print R4", "R4 = 0x69 (105)"),
        ("up", "in crate::outer, pc 0x"),
        ("up", "   12 |     v3 = call fn0(v2)"),
        ("up\nprint v2", "v2 = 0x69 (105)"),
        ("up\nlanes v2", " 0:       0x64       0x65       0x66"),
        ("up\nprint v4", "v4 is not available here"),
        ("up\nprint R4", "R4 is not kept by calls"),
        ("frame 2\nprint v1", "v1 = 0x5 (5)"),
        ("frame 2\nvalues", "v1: i32 = 0x5 (5)"),
        ("frame 2\nnext", "(line 27 of calls.clif)"),
        ("up\nfinish", "thread (5,0,0), pc 0x1a0: BSYNC"),
        ("frame 3", "the thread is in 3 functions here"),
        ("up\nup\ndown\nprint v2", "v2 = 0x69 (105)"),
    ] {
        let told = told(&format!("{stop}{script}\n"));
        assert!(
            told.contains(expected),
            "{script}: `{expected}` is not in:\n{told}"
        );
    }
}

#[test]
fn a_wrong_command_ends_a_script_with_its_line() {
    let (told, ended_well) = script("debug_wrong", 64, "step\nfrobnicate\n");
    assert!(
        !ended_well && told.contains("line 2: `frobnicate` is no command"),
        "{told}"
    );
    let (told, ended_well) = script("debug_place", 64, "break 9999\n");
    assert!(
        !ended_well && told.contains("line 1: line 9999 has no code"),
        "{told}"
    );
}

/// A client of the debugger of the sum.
fn started(name: &str) -> Client {
    Client::start(debug(&folder(name, 64), &["--arg", "i32:32"]))
}

#[test]
fn a_client_sets_breakpoints_looks_and_goes_back() {
    let mut client = started("dap_whole");
    let source = json!({"path": "/somewhere/sum.clif"});
    let asked = json!({"source": source, "breakpoints": [{"line": ADDITION, "condition": "R0 == 3"}, {"line": 9999}]});
    let set = client.body("setBreakpoints", asked);
    assert_eq!(set["breakpoints"][0]["verified"], true, "{set}");
    assert_eq!(set["breakpoints"][1]["verified"], false, "{set}");
    client.body("setExceptionBreakpoints", json!({"filters": []}));
    client.body("configurationDone", json!({}));
    assert_eq!(client.event("stopped")["reason"], "entry");
    let threads = client.body("threads", json!({}));
    assert_eq!(threads["threads"].as_array().unwrap().len(), 2, "{threads}");
    let id = threads["threads"][0]["id"].clone();
    client.body("continue", json!({"threadId": id}));
    let stopped = client.event("stopped");
    assert_eq!(
        (&stopped["reason"], &stopped["threadId"]),
        (&json!("breakpoint"), &id)
    );
    let stack = client.body("stackTrace", json!({"threadId": id, "levels": 20}));
    let frame = &stack["stackFrames"][0];
    assert_eq!(
        (&frame["name"], &frame["line"]),
        (&json!("sum"), &json!(ADDITION))
    );
    let scopes = client.body("scopes", json!({"frameId": frame["id"]}));
    let scope = |index: usize| scopes["scopes"][index]["variablesReference"].clone();
    let values = client.body("variables", json!({"variablesReference": scope(0)}));
    let summand = values["variables"]
        .as_array()
        .unwrap()
        .iter()
        .find(|v| v["name"] == "v3");
    let summand = summand.unwrap_or_else(|| panic!("{values}"));
    assert_eq!(
        (&summand["value"], &summand["type"]),
        (&json!("0x3 (3)"), &json!("i32"))
    );
    let registers = client.body("variables", json!({"variablesReference": scope(1)}));
    assert_eq!(
        registers["variables"][0]["value"], "0x3 (3)",
        "the lane that stopped: {registers}"
    );
    let all = client.body("variables", json!({"variablesReference": scope(4)}));
    let lanes = all["variables"][0]["variablesReference"].clone();
    let lanes = client.body("variables", json!({"variablesReference": lanes}));
    assert_eq!(lanes["variables"][31]["value"], "0x1f (31)", "{lanes}");
    let watched = client.body("dataBreakpointInfo", json!({"name": "shared 12 4"}));
    let asked = json!({"breakpoints": [{"dataId": watched["dataId"], "accessType": "write"}]});
    client.body("setDataBreakpoints", asked);
    client.body("continue", json!({"threadId": id}));
    assert_eq!(client.event("stopped")["reason"], "data breakpoint");
    let bytes = client.body(
        "readMemory",
        json!({"memoryReference": "shared 0", "offset": 12, "count": 4}),
    );
    assert_eq!(bytes["data"], "KAAAAA==", "40");
    client.body("stepBack", json!({"threadId": id}));
    assert_eq!(client.event("stopped")["reason"], "step");
    let bytes = client.body(
        "readMemory",
        json!({"memoryReference": "shared 0", "offset": 12, "count": 4}),
    );
    assert_eq!(bytes["data"], "BAAAAA==", "4");
    client.body("reverseContinue", json!({"threadId": id}));
    assert_eq!(client.event("stopped")["reason"], "breakpoint");
    // References are good until the launch goes on.
    let old = json!({"variablesReference": scope(0)});
    assert_eq!(client.ask("variables", old)["success"], false);
    let stack = client.body("stackTrace", json!({"threadId": id}));
    let frame = &stack["stackFrames"][0];
    let scopes = client.body("scopes", json!({"frameId": frame["id"]}));
    let scope = |index: usize| scopes["scopes"][index]["variablesReference"].clone();
    let value = client.body(
        "evaluate",
        json!({"expression": "R0", "frameId": frame["id"]}),
    );
    assert_eq!(value["result"], "0x3 (3)");
    let code = client.body(
        "disassemble",
        json!({
            "memoryReference": frame["instructionPointerReference"],
            "instructionOffset": -2, "instructionCount": 5,
        }),
    );
    let code = code["instructions"].as_array().unwrap();
    assert_eq!(
        (code.len(), &code[2]["address"]),
        (5, &frame["instructionPointerReference"])
    );
    client.body(
        "setVariable",
        json!({"variablesReference": scope(1), "name": "R0", "value": "0x7"}),
    );
    let value = client.body(
        "evaluate",
        json!({"expression": "print R0", "frameId": frame["id"], "context": "repl"}),
    );
    assert_eq!(value["result"], "R0 = 0x7 (7)");
    client.body(
        "setBreakpoints",
        json!({"source": source, "breakpoints": []}),
    );
    client.body("setDataBreakpoints", json!({"breakpoints": []}));
    client.body("continue", json!({"threadId": id}));
    assert!(
        client.event("stopped")["text"]
            .as_str()
            .unwrap()
            .contains("all blocks have ended")
    );
    // The end can be gone back from.
    client.body("reverseContinue", json!({"threadId": id}));
    assert_eq!(client.event("stopped")["reason"], "entry");
    client.body("continue", json!({"threadId": id}));
    client.event("stopped");
    client.body("continue", json!({"threadId": id}));
    client.event("terminated");
    client.end();
}

#[test]
fn only_the_console_runs_commands() {
    let mut client = started("dap_contexts");
    client.body("configurationDone", json!({}));
    client.event("stopped");
    let evaluate = |client: &mut Client, expression: &str, context: &str| {
        let asked = json!({"expression": expression, "context": context});
        client.ask("evaluate", asked)["success"] == true
    };
    for context in ["hover", "watch", "variables", "clipboard"] {
        assert!(evaluate(&mut client, "R0", context), "{context}");
        // Words of a source that are commands, too.
        for word in [
            "break sum",
            "set R0 = 7",
            "delete 1",
            "thread 0 33",
            "where",
        ] {
            assert!(!evaluate(&mut client, word, context), "{context}: {word}");
        }
    }
    assert!(evaluate(&mut client, "break sum", "repl"));
    let points = client.body(
        "evaluate",
        json!({"expression": "points", "context": "repl"}),
    );
    assert!(
        points["result"].as_str().unwrap().starts_with("1: "),
        "{points}"
    );
    client.end();
}

#[test]
fn a_client_may_count_lines_from_0() {
    let mut client = Client::new(debug(&folder("dap_lines", 64), &["--arg", "i32:32"]));
    let asked = json!({"adapterID": "thisgpu", "linesStartAt1": false, "columnsStartAt1": false});
    client.body("initialize", asked);
    let source = json!({"path": "/somewhere/sum.clif"});
    let asked = json!({"source": source, "breakpoints": [{"line": ADDITION - 1}]});
    let set = client.body("setBreakpoints", asked);
    assert_eq!(set["breakpoints"][0]["line"], ADDITION - 1, "{set}");
    client.body("configurationDone", json!({}));
    client.event("stopped");
    client.body("continue", json!({"threadId": 1}));
    assert_eq!(client.event("stopped")["reason"], "breakpoint");
    let stack = client.body("stackTrace", json!({"threadId": 1}));
    let frame = &stack["stackFrames"][0];
    assert_eq!(frame["line"], ADDITION - 1, "{stack}");
    let address = &frame["instructionPointerReference"];
    let asked = json!({"memoryReference": address, "instructionCount": 1});
    let code = client.body("disassemble", asked);
    assert_eq!(code["instructions"][0]["line"], ADDITION - 1, "{code}");
    client.end();
}

#[test]
fn requests_that_are_malformed_are_answered_with_an_error() {
    let mut client = started("dap_malformed");
    for text in [
        "{",
        "[]",
        "null",
        "{\"type\":\"request\"}",
        "{\"type\":\"request\",\"seq\":\"x\",\"command\":1}",
    ] {
        client.write(text);
        let answer = client.read();
        assert_eq!(
            (&answer["type"], &answer["success"]),
            (&json!("response"), &json!(false)),
            "{answer}"
        );
    }
    for (command, arguments) in [
        ("frobnicate", json!({})),
        ("stackTrace", json!({})),
        ("stackTrace", json!({"threadId": -5})),
        ("stackTrace", json!({"threadId": i64::MAX})),
        ("scopes", json!({"frameId": 0})),
        ("variables", json!({"variablesReference": -1})),
        ("variables", json!({"variablesReference": i64::MIN})),
        (
            "setVariable",
            json!({"variablesReference": 1, "name": "R0", "value": "many"}),
        ),
        ("evaluate", json!({"expression": "continue"})),
        (
            "readMemory",
            json!({"memoryReference": "shared 0", "offset": -1, "count": 4}),
        ),
        ("readMemory", json!({"memoryReference": "0x10", "count": 4})),
        (
            "disassemble",
            json!({"memoryReference": "?", "instructionCount": 4}),
        ),
        (
            "disassemble",
            json!({"memoryReference": "0x0", "instructionOffset": i64::MAX, "instructionCount": -1}),
        ),
        ("next", json!({"threadId": 0})),
        ("setBreakpoints", json!({"breakpoints": [{"line": 1}]})),
    ] {
        let answer = client.ask(command, arguments.clone());
        assert_eq!(answer["success"], false, "{command} {arguments}: {answer}");
        assert!(answer["message"].is_string(), "{answer}");
    }
    // It still works.
    client.body("configurationDone", json!({}));
    assert_eq!(client.event("stopped")["reason"], "entry");
    client.end();
}

#[test]
fn the_end_of_the_input_ends_the_adapter() {
    let mut client = started("dap_end");
    client.input = None;
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn conditions_are_of_the_values_types() {
    let folder = folder("debug_conditions", 1);
    let text = "target thisgpu

; kernel
function %k(i64) {
    fn0 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = iconst.i32 4
    v3 = isub v1, v2
    v4 = fcvt_from_sint.f32 v3
    v5 = f32const 0x1.8p1
    v6 = fdiv v4, v5
    store v6, v0
    return
}
";
    fs::write(folder.join("conditions.clif"), text).unwrap();
    let told = |line: u32, value: &str, condition: &str| {
        let script = format!("break {line} if {value} {condition}\ncontinue\nprint {value}\n");
        fs::write(folder.join("script.txt"), script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
        let arguments =
            "debug conditions.clif --kernel k --grid 1 --block 32 --arg zero:4 --script script.txt";
        let output = command.current_dir(&folder).args(arguments.split(' '));
        let output = output.output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    for (line, value, condition, expected) in [
        (10, "v3", "== -4", "v3 = 0xfffffffc"),
        (10, "v3", "< -3", "v3 = 0xfffffffc"),
        (10, "v3", "== 4294967292", "v3 = 0xfffffffc"),
        (12, "v4", "== 2.0", "v4 = 0x40000000 (2)"),
        (12, "v4", "== -2", "v4 = 0xc0000000 (-2)"),
        (12, "v4", "> 26.5", "v4 = 0x41d80000 (27)"),
    ] {
        let told = told(line, value, condition);
        assert!(
            told.contains(expected),
            "{value} {condition}: `{expected}` is not in:\n{told}"
        );
    }
}
