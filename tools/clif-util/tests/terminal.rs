//! What people at a terminal get: colours, bars, completions, pages.

mod common;

use common::{Folder, clif_util, fail, succeed, text};
use std::process::{Command, Output};

const ESCAPE: char = '\u{1b}';

fn with_environment(variables: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clif-util"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
        .envs(variables.iter().copied())
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn messages_have_colours_where_they_are_wanted() {
    let missing = ["disasm", "missing.elf"];
    let wrong = ["disasm", "--wrong"];
    let coloured = |variables: &[(&str, &str)], more: &[&str], line: &[&str]| {
        let output = with_environment(variables, &[more, line].concat());
        assert!(!output.status.success());
        let message = text(&output.stderr);
        assert!(message.contains("error:"), "{message}");
        message.contains(ESCAPE)
    };
    for line in [&missing, &wrong] {
        // Standard error is no terminal here.
        assert!(!coloured(&[], &[], line));
        assert!(!coloured(&[], &["--color", "auto"], line));
        assert!(coloured(&[], &["--color", "always"], line));
        assert!(coloured(&[("NO_COLOR", "1")], &["--color=always"], line));
        assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[], line));
        assert!(!coloured(
            &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")],
            &[],
            line
        ));
        assert!(!coloured(
            &[("CLICOLOR_FORCE", "1")],
            &["--color=never"],
            line
        ));
    }
    let message = text(&with_environment(&[], &["disasm", "missing.elf", "--color=always"]).stderr);
    assert!(message.starts_with(ESCAPE), "{message}");
    let error = fail(2, &["--color", "blue", "disasm", "-"]);
    assert!(error.contains("auto, always, never"), "{error}");
}

#[test]
fn nothing_is_drawn_where_standard_error_is_no_terminal() {
    let folder = Folder::new("no-bar");
    let file = folder.file(
        "a.clif",
        "test run\ntarget thisgpu\n\nfunction %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n; run: %f(3) == \
         3\n",
    );
    for command in ["test", "run"] {
        let output = clif_util(&[command, &file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn every_shell_completes_every_command() {
    let help = succeed(&["--help"]);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = list
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        commands.contains(&"objdump") && commands.contains(&"completions"),
        "{help}"
    );
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = succeed(&["completions", shell]);
        for command in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("ignore-registers"), "{shell}");
    }
    fail(2, &["completions", "sh"]);

    let folder = Folder::new("man");
    let directory = folder.path("pages");
    assert_eq!(succeed(&["man", &directory]), "");
    let page = |name: &str| std::fs::read_to_string(format!("{directory}/{name}.1")).unwrap();
    let whole = succeed(&["man"]);
    assert!(whole.contains(".TH clif-util 1"), "{whole}");
    assert_eq!(page("clif-util"), whole);
    for command in commands.iter().filter(|command| **command != "help") {
        let page = page(&format!("clif-util-{command}"));
        assert!(page.contains(".SH OPTIONS"), "{page}");
        assert!(whole.contains(&command.replace('-', "\\-")), "{whole}");
    }
    let file = folder.file("file", "");
    assert!(fail(1, &["man", &format!("{file}/pages")]).contains("cannot write into"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_object_is_not_written_to_a_terminal() {
    let folder = Folder::new("object-terminal");
    let file = folder.file(
        "k.clif",
        "; kernel\nfunction %k() {\nblock0:\n    return\n}\n",
    );
    let compile = |emit: &str, output: &[&str]| {
        // This end of a pair is a terminal as the other one is.
        let terminal = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/ptmx")
            .unwrap();
        Command::new(env!("CARGO_BIN_EXE_clif-util"))
            .args(["compile", &file, "--target", "thisgpu", "--emit", emit])
            .args(output)
            .stdout(terminal)
            .output()
            .unwrap()
    };
    let out = folder.path("k.elf");
    for output in [&[][..], &["-o", "-"]] {
        let refused = compile("elf", output);
        let message = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{message}");
        assert!(
            message.contains("terminal") && message.contains("-o OUT"),
            "{message}"
        );
        assert!(compile("asm", output).status.success());
    }
    assert!(compile("elf", &["-o", &out]).status.success());
}
