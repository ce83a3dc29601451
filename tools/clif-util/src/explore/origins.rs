//! Which lines of different passes belong together, and which pass made or removed those that belong to none.
//!
//! Takes the texts of a function after each pass in their order. An instruction that has a place in the source is found
//! by it; one without is told by what it does: a pass that has more of them than the pass before has made the rest.

use cranelift_thisgpu::compile::Pass;
use serde::Serialize;
use std::collections::BTreeMap;

/// A line of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The text, without the number of its place.
    pub text: String,
    /// Number of its place in the source; 0 if it has none.
    pub key: u32,
    /// Of an instruction the pass after which it was there first.
    pub made: Option<&'static str>,
}

/// A function after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The pass.
    pub pass: Pass,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// Splits the number of a place off the start of a line, as dumps have it: `@001f    v3 = iadd v1, v2`.
fn split_key(line: &str) -> (u32, &str) {
    let numbered = line.strip_prefix('@').and_then(|rest| {
        let (number, text) = rest.split_once(' ')?;
        Some((u32::from_str_radix(number, 16).ok()?, text))
    });
    numbered.unwrap_or((0, line))
}

/// What an instruction does, without its operands; none for lines that are no instructions.
fn operation(text: &str) -> Option<&str> {
    let is_indented = text.starts_with(' ');
    let text = text.trim();
    let outside =
        text.is_empty() || text.starts_with([';', '}', '/']) || text.ends_with([':', '{']);
    if !is_indented || outside {
        return None;
    }
    let text = text.split_once(" = ").map_or(text, |(_, text)| text);
    text.split_whitespace().find(|word| !word.starts_with('@'))
}

/// The texts of a function after its passes, in their order, line by line.
pub fn stages(texts: &[(Pass, String)]) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::with_capacity(texts.len());
    for (pass, text) in texts {
        // By what a line of the pass before is, the passes that made those.
        let mut known: BTreeMap<(u32, &str), Vec<&'static str>> = BTreeMap::new();
        if let Some(before) = stages.last() {
            for line in before.lines.iter().rev() {
                if let (Some(made), Some(operation)) = (line.made, operation(&line.text)) {
                    known.entry((line.key, operation)).or_default().push(made);
                }
            }
        }
        let lines = text.trim_end().lines().map(|line| {
            let (key, text) = split_key(line);
            let made = operation(text).map(|operation| {
                let of = known.get_mut(&(key, operation));
                of.and_then(Vec::pop).unwrap_or(pass.name())
            });
            Line {
                text: text.to_owned(),
                key,
                made,
            }
        });
        let lines = lines.collect();
        stages.push(Stage { pass: *pass, lines });
    }
    stages
}

/// By the number of a place that is in a stage and not in the last one, the pass that removed its last instruction.
pub fn removed(stages: &[Stage]) -> BTreeMap<u32, &'static str> {
    let keys = |stage: &Stage| -> Vec<u32> {
        let keys = stage.lines.iter().map(|line| line.key);
        keys.filter(|key| *key != 0).collect()
    };
    let mut removed = BTreeMap::new();
    for pair in stages.windows(2) {
        let behind = keys(&pair[1]);
        for key in keys(&pair[0]) {
            removed.insert(key, pair[1].pass.name());
        }
        for key in behind {
            removed.remove(&key);
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_again_and_new_ones_name_their_pass() {
        let texts = [
            (Pass::Clif, "block0:\n@0001     v1 = iadd v0, v0\n@0002     return\n"),
            (Pass::Lower, "block0:\n@0001     IADD %v1, %v0, %v0\n@0002     exit\n"),
            (
                Pass::Allocate,
                "block0:\n    MOV R1, R2\n@0001     IADD R1, R1, R1\n    @P0 MOV R3, R1\n@0002     exit\n",
            ),
            (Pass::Layout, "L0:\n    MOV R1, R2\n    MOV R3, R1\n    NOP\n@0002     EXIT\n"),
        ]
        .map(|(pass, text)| (pass, text.to_owned()));
        let stages = stages(&texts);
        let made = |stage: usize| -> Vec<_> {
            let lines = stages[stage].lines.iter();
            lines
                .filter_map(|line| line.made.map(|made| (line.key, made)))
                .collect()
        };
        assert_eq!(made(0), [(1, "clif"), (2, "clif")]);
        assert_eq!(made(1), [(1, "lower"), (2, "lower")]);
        assert_eq!(
            made(2),
            [(0, "allocate"), (1, "lower"), (0, "allocate"), (2, "lower")]
        );
        assert_eq!(
            made(3),
            [
                (0, "allocate"),
                (0, "allocate"),
                (0, "layout"),
                (2, "layout")
            ]
        );
        assert_eq!(removed(&stages), BTreeMap::from([(1, "layout")]));
        assert_eq!(stages[2].lines[1].text, "    MOV R1, R2");
    }
}
