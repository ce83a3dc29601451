//! What messages are made of: lines with carets, lists, numbers of things, words that were probably meant.

/// Most characters of a line that are shown.
const SHOWN: usize = 160;

/// The part of a line around the place of a message, and carets under `marked` characters from `start`.
pub fn excerpt(line: &str, start: usize, marked: usize) -> [String; 2] {
    let length = line.chars().count();
    let first = if length <= SHOWN {
        0
    } else {
        start.saturating_sub(SHOWN / 2).min(length - SHOWN)
    };
    let last = length.min(first + SHOWN);
    let mut text = String::new();
    let mut carets = String::new();
    if first > 0 {
        text.push('…');
        carets.push(' ');
    }
    text.extend(line.chars().skip(first).take(last - first));
    if last < length {
        text.push('…');
    }
    let before = line.chars().skip(first).take(start - first);
    carets.extend(before.map(|c| if c == '\t' { '\t' } else { ' ' }));
    let room = last.saturating_sub(start).max(1);
    carets.extend(std::iter::repeat_n('^', marked.clamp(1, room)));
    [text, carets]
}

/// Where each line begins.
pub fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0)
        .chain(text.match_indices('\n').map(|(i, _)| i + 1))
        .collect()
}

/// `a, b or c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [start @ .., last] => format!("{} or {last}", start.join(", ")),
    }
}

/// Longest word that suggestions are made for.
const MAX_SUGGESTED: usize = 64;

/// The known words that a mistyped one may mean, nearest first.
pub fn near<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = &'a str> {
    let upper = word.to_ascii_uppercase();
    // What is that long is no typing mistake.
    let mut words: Vec<(usize, &str)> = (known.into_iter())
        .filter(|_| word.len() <= MAX_SUGGESTED)
        .map(|k| (edits(&upper, &k.to_ascii_uppercase()), k))
        // Of a word whose every letter is another nothing is left.
        .filter(|(distance, k)| {
            *distance <= 1 + word.len() / 4 && *distance < k.len().max(word.len())
        })
        .collect();
    words.sort_by_key(|(distance, _)| *distance);
    words.into_iter().map(|(_, word)| word)
}

/// The known word that a mistyped one probably means.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near(word, known).next()
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        best = best.min(table[i - 2][j - 2] + 1);
                    }
                    best
                }
            };
        }
    }
    table[a.len()][b.len()]
}

/// Where a word begins, in bytes, that is not part of a longer one.
pub fn word_at(text: &str, word: &str) -> Option<usize> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .map(|(start, _)| start)
        .find(|&start| {
            let end = start + word.len();
            !text[..start].ends_with(part) && !text[end..].starts_with(part)
        })
}

/// "did you mean", for the end of a message: the known word that a mistyped one probably means, or nothing.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(word, known).map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// A number of things: `1 argument`, `2 arguments`.
pub fn count(number: impl Into<u64>, thing: &str) -> String {
    match number.into() {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests() {
        let known = ["IADD", "IMAD", "MOV", "LOP3"];
        assert_eq!(closest("IADDD", known), Some("IADD"));
        assert_eq!(closest("iadd", known), Some("IADD"));
        assert_eq!(closest("MVO", known), Some("MOV"));
        assert_eq!(closest("HELLO", known), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn counts_things() {
        assert_eq!(count(1u32, "argument"), "1 argument");
        assert_eq!(count(0u32, "argument"), "0 arguments");
    }

    #[test]
    fn of_a_long_line_shows_what_is_around_the_place() {
        let line = "ab".repeat(500);
        for (start, marked) in [(0, 1), (0, 1000), (100, 5), (500, 3), (998, 2), (1000, 1)] {
            let [text, carets] = excerpt(&line, start, marked);
            assert!(text.chars().count() <= SHOWN + 2 && text.contains('…'));
            let under: String = text
                .chars()
                .zip(carets.chars())
                .filter_map(|(c, caret)| (caret == '^').then_some(c))
                .collect();
            let marked: String = line.chars().skip(start).take(marked).collect();
            assert!(marked.starts_with(under.trim_end_matches('…')), "{start}");
            assert_eq!(under.is_empty(), marked.is_empty(), "{start}");
        }
    }
}
