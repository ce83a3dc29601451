//! The assembly of both sides, line beside line.

use cranelift_thisgpu::asm::ListedFunction;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};
use std::fmt::{self, Write};
use std::ops::Range;

/// Lines around a change in a unified difference (*assigned*, as other tools have it).
const CONTEXT: usize = 3;
/// Widest a left column gets in characters (*assigned*); what is longer moves the right one.
const WIDEST: usize = 72;

/// What stands before the numbers of registers of all kinds, and of labels.
const NUMBERED: [&str; 6] = ["R", "UR", "P", "UP", "B", "L"];

/// The lines of a function: labels and instructions.
pub fn lines(function: Option<&ListedFunction>) -> Vec<String> {
    let Some(function) = function else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for instruction in &function.instructions {
        lines.extend(instruction.label.iter().map(|label| format!("{label}:")));
        lines.push(match &instruction.text {
            Ok(text) => format!("    {text} ;"),
            Err(reason) => format!("    // no instruction: {:032x}: {reason}", instruction.word),
        });
    }
    lines.extend(function.end.iter().map(|label| format!("{label}:")));
    lines
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// It is in both, perhaps with other registers and labels if those are ignored.
    Same,
    /// Another is in its place.
    Changed,
    /// It is in the first only.
    Removed,
    /// It is in the second only.
    Added,
}

impl Kind {
    /// What stands between the columns.
    fn mark(self) -> char {
        match self {
            Kind::Same => ' ',
            Kind::Changed => '|',
            Kind::Removed => '<',
            Kind::Added => '>',
        }
    }
}

/// A line of each side, or of one.
#[derive(Debug, Serialize)]
struct Row<'a> {
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<&'a str>,
}

/// A difference of two texts.
pub struct Difference<'a> {
    a: &'a [String],
    b: &'a [String],
    operations: Vec<DiffOp>,
}

impl<'a> Difference<'a> {
    /// Compares lines, with `blank` without the numbers of registers and labels.
    pub fn new(a: &'a [String], b: &'a [String], blank: bool) -> Self {
        let keys = |lines: &[String]| -> Vec<String> {
            match blank {
                true => lines.iter().map(|line| blanked(line)).collect(),
                false => lines.to_vec(),
            }
        };
        let operations = capture_diff_slices(Algorithm::Myers, &keys(a), &keys(b));
        Difference { a, b, operations }
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        let same = |operation: &DiffOp| matches!(operation, DiffOp::Equal { .. });
        self.operations.iter().all(same)
    }

    /// The rows as data.
    pub fn to_json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self.rows().collect::<Vec<_>>())
    }

    fn rows(&self) -> impl Iterator<Item = Row<'a>> + '_ {
        self.operations.iter().flat_map(move |operation| {
            let (a, b) = (operation.old_range(), operation.new_range());
            let is_same = matches!(operation, DiffOp::Equal { .. });
            (0..a.len().max(b.len())).map(move |index| {
                let line = |lines: &'a [String], range: &Range<usize>| {
                    let index = Some(range.start + index).filter(|index| range.contains(index));
                    index.map(|index| lines[index].as_str())
                };
                let (a, b) = (line(self.a, &a), line(self.b, &b));
                let kind = match (a, b) {
                    (Some(_), None) => Kind::Removed,
                    (None, _) => Kind::Added,
                    (Some(_), Some(_)) if is_same => Kind::Same,
                    (Some(_), Some(_)) => Kind::Changed,
                };
                Row { kind, a, b }
            })
        })
    }

    /// Both texts beside each other.
    pub fn side_by_side(&self, out: &mut String) -> fmt::Result {
        let widths = self.a.iter().map(|line| line.chars().count());
        let width = widths.max().unwrap_or(0).min(WIDEST);
        for Row { kind, a, b } in self.rows() {
            let (a, b, mark) = (a.unwrap_or(""), b.unwrap_or(""), kind.mark());
            let line = format!("{a:width$} {mark} {b}");
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// What changes, with some lines around it.
    pub fn unified(&self, out: &mut String) -> fmt::Result {
        for group in group_diff_ops(self.operations.clone(), CONTEXT) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            let hunk = |from: Range<usize>, to: Range<usize>| {
                let (start, count) = (from.start, to.end - from.start);
                // An empty side is said to stand behind the line before it.
                format!("{},{count}", start + usize::from(count > 0))
            };
            let a = hunk(first.old_range(), last.old_range());
            let b = hunk(first.new_range(), last.new_range());
            writeln!(out, "@@ -{a} +{b} @@")?;
            for operation in &group {
                let (a, b) = (operation.old_range(), operation.new_range());
                if matches!(operation, DiffOp::Equal { .. }) {
                    write_lines(' ', &self.b[b], out)?;
                    continue;
                }
                write_lines('-', &self.a[a], out)?;
                write_lines('+', &self.b[b], out)?;
            }
        }
        Ok(())
    }
}

fn write_lines(mark: char, lines: &[String], out: &mut String) -> fmt::Result {
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "{mark}{line}"))
}

/// A line without the numbers of registers and labels: what is left of `R12`, `R[4:5]`, `UP3` and `L1` are the letters.
fn blanked(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_number = |c: char| c.is_ascii_digit() || c == ':';
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let in_word = is_word(first);
        let end = rest.find(|c| is_word(c) != in_word).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        rest = behind;
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        if !NUMBERED.contains(&letters) {
            out.push_str(part);
            continue;
        }
        out.push_str(letters);
        // The numbers of several registers stand in brackets.
        if let Some(numbers) = rest.strip_prefix('[')
            && let Some(behind) = numbers.trim_start_matches(is_number).strip_prefix(']')
        {
            rest = behind;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registers_and_labels_are_blanked() {
        let line = "    @!P0 IADD3.X R12, UR4, -R2.reuse, UP1, 0x10 &req={0,3} &wr=1 ?4 ;";
        let blank = "    @!P IADD3.X R, UR, -R.reuse, UP, 0x10 &req={0,3} &wr=1 ?4 ;";
        assert_eq!(blanked(line), blank);
        assert_eq!(
            blanked("    LDG R[0:3], [UR[4:5]+0x10] ;"),
            "    LDG R, [UR+0x10] ;"
        );
        assert_eq!(blanked("    BRA L12 ;"), "    BRA L ;");
        assert_eq!(blanked("    S2R R0, SR_TID.X ;"), "    S2R R, SR_TID.X ;");
        assert_eq!(
            blanked("    LDC R1, c[0x0][0x160] ;"),
            "    LDC R, c[0x0][0x160] ;"
        );
    }
}
