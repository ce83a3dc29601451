//! Expected output in comments: exact lines after a function, or filecheck directives anywhere in it.
//!
//! Exact lines start with one `;`, stand between a function's closing brace and the next function, and are rewritten in
//! place when `CRANELIFT_TEST_BLESS` is 1. Other comments there survive: those that start with `;;`, run and print
//! lines, and the kernel mark of the next function.

use filecheck::{CheckerBuilder, NO_VARIABLES};
use similar::TextDiff;
use std::ops::Range;

/// Environment variable that asks for rewriting expectations.
pub const BLESS: &str = "CRANELIFT_TEST_BLESS";

/// True if expectations are to be rewritten.
pub fn blessing() -> bool {
    std::env::var_os(BLESS).is_some_and(|value| value == "1")
}

/// The lines of a file that belong to one function's expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Line indices after the closing brace, up to the next function or the end.
    lines: Range<usize>,
    /// Of these, the indices of the expected lines.
    expected: Vec<usize>,
}

/// The regions of a file's functions, whose `function` keywords stand at these lines (from 1, ascending).
pub fn regions(text: &str, functions: &[u32]) -> Vec<Region> {
    let lines: Vec<&str> = text.lines().collect();
    let start_of = |index: usize| {
        functions
            .get(index)
            .map_or(lines.len(), |line| *line as usize - 1)
    };
    (0..functions.len())
        .map(|index| {
            let (start, end) = (start_of(index), start_of(index + 1));
            let brace = (start..end).find(|line| lines[*line].trim_end() == "}");
            let range = brace.map_or(end, |brace| brace + 1)..end;
            let mark = if end == lines.len() {
                None
            } else {
                kernel_mark(&lines, &range)
            };
            let expected = range
                .clone()
                .filter(|line| Some(*line) != mark && is_expected(lines[*line]))
                .collect();
            Region {
                lines: range,
                expected,
            }
        })
        .collect()
}

/// The kernel mark of the function that follows `range`: the last comment, if it is one.
fn kernel_mark(lines: &[&str], range: &Range<usize>) -> Option<usize> {
    let last = range
        .clone()
        .rev()
        .find(|line| lines[*line].trim_start().starts_with(';'))?;
    let words = lines[last]
        .trim_start()
        .trim_start_matches(';')
        .split_whitespace();
    (words.into_iter().next() == Some("kernel")).then_some(last)
}

/// True for a line of expected output.
fn is_expected(line: &str) -> bool {
    let Some(comment) = line.strip_prefix(';') else {
        return false;
    };
    let words = comment.trim_start();
    let command = words == "run"
        || ["run:", "print:"]
            .iter()
            .any(|command| words.starts_with(command));
    !comment.starts_with(';') && !command
}

impl Region {
    /// The expected output.
    pub fn text(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let mut output = String::new();
        for line in self.expected.iter().map(|index| lines[*index]) {
            output.push_str(line.strip_prefix("; ").unwrap_or(&line[1..]).trim_end());
            output.push('\n');
        }
        output
    }
}

/// The file with the expectations replaced, one output per region.
pub fn bless(text: &str, regions: &[Region], outputs: &[String]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut blessed = String::with_capacity(text.len());
    let mut next = 0;
    let keep = |blessed: &mut String, range: Range<usize>, dropped: &[usize]| {
        for index in range.filter(|index| !dropped.contains(index)) {
            blessed.push_str(lines[index]);
            blessed.push('\n');
        }
    };
    for (region, output) in regions.iter().zip(outputs) {
        keep(&mut blessed, next..region.lines.start, &[]);
        for line in output.trim_end().lines() {
            blessed.push_str(format!("; {line}").trim_end());
            blessed.push('\n');
        }
        keep(&mut blessed, region.lines.clone(), &region.expected);
        next = region.lines.end;
    }
    keep(&mut blessed, next..lines.len(), &[]);
    blessed
}

/// Compares exactly; trailing blanks do not count.
///
/// # Errors
/// The difference as a unified diff.
pub fn compare(expected: &str, actual: &str) -> Result<(), String> {
    let trimmed = |text: &str| {
        let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
        lines.join("\n") + "\n"
    };
    let (expected, actual) = (trimmed(expected), trimmed(actual));
    if expected == actual {
        return Ok(());
    }
    let diff = TextDiff::from_lines(&expected, &actual);
    let diff = diff
        .unified_diff()
        .context_radius(4)
        .header("expected", "actual")
        .to_string();
    Err(format!(
        "the output differs ({BLESS}=1 rewrites the expectation)\n{diff}"
    ))
}

/// Checks `output` with the filecheck directives among `comments`; none is a pass.
///
/// # Errors
/// A malformed directive, or the explanation of what did not match.
pub fn filecheck<'a>(
    comments: impl IntoIterator<Item = &'a str>,
    output: &str,
) -> Result<(), String> {
    let mut builder = CheckerBuilder::new();
    for comment in comments {
        builder
            .directive(comment)
            .map_err(|error| format!("bad filecheck directive: {error}"))?;
    }
    let checker = builder.finish();
    if checker
        .check(output, NO_VARIABLES)
        .map_err(|error| error.to_string())?
    {
        return Ok(());
    }
    let (_, explanation) = checker
        .explain(output, NO_VARIABLES)
        .map_err(|error| error.to_string())?;
    Err(format!("filecheck failed:\n{checker}{explanation}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
test compile precise-output

;; about f
function %f() {
block0:
    return
}

; old
;
; older
;; stays
; run: %f()
;; about k
; kernel
function %k() {
block0:
    return
}
";

    #[test]
    fn a_bless_changes_the_expected_lines_only() {
        let regions = regions(TEXT, &[4, 16]);
        assert_eq!(regions[0].text(TEXT), "old\n\nolder\n");
        assert_eq!(regions[1].text(TEXT), "");
        let blessed = bless(TEXT, &regions, &["new\n\nnewer\n".into(), "k\n".into()]);
        let expected =
            TEXT.replace("\n; old\n;\n; older", "")
                .replacen("}\n", "}\n; new\n;\n; newer\n", 1);
        assert_eq!(blessed, format!("{expected}; k\n"));
        let again = super::regions(&blessed, &[4, 16]);
        assert_eq!(again[0].text(&blessed), "new\n\nnewer\n");
        assert_eq!(
            bless(&blessed, &again, &["new\n\nnewer\n".into(), "k\n".into()]),
            blessed,
            "a second bless changes nothing"
        );
    }

    #[test]
    fn a_difference_is_shown() {
        assert_eq!(compare("a\nb \n", "a\nb\n\n"), Ok(()));
        let diff = compare("a\nb\n", "a\nc\n").unwrap_err();
        assert!(diff.contains("-b\n+c\n"), "{diff}");
    }

    #[test]
    fn directives_are_checked() {
        assert_eq!(
            filecheck(
                ["; check: two", "; nextln: three", "; a remark"],
                "one\ntwo\nthree\n"
            ),
            Ok(())
        );
        let failure = filecheck(["; check: four"], "one\n").unwrap_err();
        assert!(failure.contains("four"), "{failure}");
        assert!(filecheck(["; check: $(x=["], "one\n").is_err());
    }
}
