//! Runs that share the work: parts that are the whole, and reports that others read.

mod common;

use common::{Folder, clif_util, succeed, text};
use serde_json::Value;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Files of several kinds: a right one, a wrong one, one without run lines, one in a folder below.
fn tests(folder: &Folder) {
    let function = |name: &str, result: u32| {
        format!(
            "test run\ntarget thisgpu\n\nfunction %{name}(i32) -> i32 {{\nblock0(v0: i32):\n    \
             v1 = iconst.i32 1\n    v2 = iadd v0, v1\n    \
             return v2\n}}\n; run: %{name}(1) == {result}\n"
        )
    };
    std::fs::create_dir_all(folder.path("tests/below")).unwrap();
    for (index, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let text = function(name, 2);
        let more = "; a comment\n".repeat(index * 40);
        std::fs::write(folder.path(&format!("tests/{name}.clif")), text + &more).unwrap();
    }
    std::fs::write(folder.path("tests/wrong.clif"), function("wrong", 3)).unwrap();
    std::fs::write(folder.path("tests/below/f.clif"), function("f", 2)).unwrap();
    let empty = "test run\ntarget thisgpu\n\nfunction %g() {\nblock0:\n    return\n}\n";
    std::fs::write(folder.path("tests/below/empty.clif"), empty).unwrap();
}

/// A report without times.
fn without_times(report: &str) -> Vec<Value> {
    let lines = report.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let line_object = line.as_object_mut().unwrap();
        line_object.remove("micros");
        line_object.remove("shard");
        // How the work was divided.
        line_object.remove("run");
        line
    });
    lines.collect()
}

#[test]
fn parts_joined_are_one_run() {
    let folder = Folder::new("shards");
    tests(&folder);
    let tests = folder.path("tests");
    let whole = text(&clif_util(&["test", &tests, "--json"]).stdout);
    std::fs::write(folder.path("whole.json"), &whole).unwrap();
    let times = folder.path("whole.json");
    for count in [1, 2, 3, 10] {
        for by_times in [false, true] {
            let mut reports = Vec::new();
            for index in 1..=count {
                let shard = format!("{index}/{count}");
                let mut arguments = vec!["test", &tests, "--json", "--shard", &shard];
                if by_times {
                    arguments.extend(["--times", &times]);
                }
                let output = clif_util(&arguments);
                let path = folder.path(&format!("{index}-of-{count}.json"));
                std::fs::write(&path, &output.stdout).unwrap();
                reports.push(path);
            }
            let mut arguments = vec!["test", "--json", "--join"];
            arguments.extend(reports.iter().map(String::as_str));
            let joined = clif_util(&arguments);
            assert_eq!(
                without_times(&text(&joined.stdout)),
                without_times(&whole),
                "{count}"
            );
            // A part that is missing is no success.
            if count > 1 {
                let output = clif_util(&arguments[..arguments.len() - 1]);
                assert!(!output.status.success());
                let message = text(&output.stderr);
                assert!(
                    message.contains(&format!("there are {count} parts")),
                    "{message}"
                );
            }
        }
    }
}

/// A file that one part has by sizes and the other by times would be in neither.
#[test]
fn parts_of_different_runs_are_not_joined() {
    let folder = Folder::new("other-runs");
    tests(&folder);
    let tests = folder.path("tests");
    let report = |name: &str, arguments: &[&str]| {
        let path = folder.path(name);
        let output = clif_util(&[&["test", "--json"], arguments].concat());
        std::fs::write(&path, &output.stdout).unwrap();
        path
    };
    let refused = |paths: [&str; 2], expected: &str| {
        let output = clif_util(&[&["test", "--join"], &paths[..]].concat());
        let message = text(&output.stderr);
        assert!(!output.status.success(), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    let whole = report("whole.json", &[&tests]);
    let first = report("first.json", &[&tests, "--shard", "1/2"]);
    let by_times = ["--shard", "2/2", "--times", &whole];
    for other in [
        report("times.json", &[&[tests.as_str()], &by_times[..]].concat()),
        report(
            "set.json",
            &[&tests, "--shard", "2/2", "--set", "opt_level=none"],
        ),
        report(
            "below.json",
            &[&folder.path("tests/below"), "--shard", "2/2"],
        ),
        report("thirds.json", &[&tests, "--shard", "2/3"]),
    ] {
        refused([&first, &other], "different runs");
    }
    // A line that is lost contradicts the totals.
    let lines = std::fs::read_to_string(&whole).unwrap();
    let lost: Vec<&str> = lines.lines().skip(1).collect();
    std::fs::write(&whole, lost.join("\n")).unwrap();
    refused([&whole, &first], "its totals are those of other files");
}

/// A folder without tests fails in all parts together as it does alone, and a file that is named twice is one.
#[test]
fn folders_without_tests_and_files_named_twice() {
    let folder = Folder::new("empty");
    tests(&folder);
    let (tests, empty) = (folder.path("tests/below"), folder.path("empty"));
    std::fs::create_dir_all(&empty).unwrap();
    let file = folder.path("tests/below/f.clif");
    let path = folder.path("report.json");
    for (paths, fails) in [([&tests, &file], false), ([&tests, &empty], true)] {
        let paths = paths.map(String::as_str);
        let run = clif_util(&[&["test", "--json"], &paths[..]].concat());
        std::fs::write(&path, &run.stdout).unwrap();
        let joined = clif_util(&["test", "--json", "--join", &path]);
        for output in [run, joined] {
            assert_eq!(!output.status.success(), fails, "{}", text(&output.stderr));
        }
    }
}

#[test]
fn reports_that_are_none_are_errors_with_their_place() {
    let folder = Folder::new("no-reports");
    for (contents, expected) in [
        ("", "is empty"),
        ("{\"file\":\"a\"}\n", "no totals"),
        ("nothing\n{\"files\":{}}\n", "no totals"),
    ] {
        let path = folder.path("report.json");
        std::fs::write(&path, contents).unwrap();
        let output = clif_util(&["test", "--join", &path]);
        assert!(!output.status.success());
        let message = text(&output.stderr);
        assert!(
            message.contains("report.json") && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn others_read_what_was_found() {
    let folder = Folder::new("junit");
    tests(&folder);
    let file = folder.path("found.xml");
    let read = || junit_parser::from_reader(BufReader::new(File::open(&file).unwrap())).unwrap();
    clif_util(&["test", &folder.path("tests"), "--junit", &file]);
    let all = read();
    let suites: Vec<_> = (all.suites.iter())
        .map(|suite| {
            let name = Path::new(&suite.name).file_name().unwrap();
            let counts = (suite.tests, suite.failures, suite.skipped);
            (name.display().to_string(), counts)
        })
        .collect();
    assert_eq!(
        suites,
        [("tests".into(), (6, 1, 0)), ("below".into(), (2, 0, 1))]
    );
    let cases: Vec<_> = all.suites.iter().flat_map(|suite| &suite.cases).collect();
    let named = |name: &str| {
        cases
            .iter()
            .find(|case| case.original_name == name)
            .unwrap()
    };
    let failure = named("wrong.clif").status.failure_as_ref();
    assert!(failure.text.contains("%wrong(1)"), "{failure:?}");
    let skipped = named("empty.clif").status.skipped_as_ref();
    assert_eq!(skipped.message, "no run lines");
    let right = cases.iter().filter(|case| case.status.is_success());
    assert_eq!(right.count(), 6);
    // Where everything is right it is so here too.
    succeed(&["test", &folder.path("tests/below"), "--junit", &file]);
    assert!(read().suites.iter().all(|suite| suite.failures == 0));
}
