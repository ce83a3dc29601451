//! What a mistyped name probably means: for messages.

/// Longest word that suggestions are made for.
const MAX_SUGGESTED: usize = 64;

/// The known word that a mistyped one probably means.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // What is that long is no typing mistake.
    if word.len() > MAX_SUGGESTED {
        return None;
    }
    let upper = word.to_ascii_uppercase();
    let distance = |k: &str| edits(&upper, &k.to_ascii_uppercase());
    known
        .into_iter()
        .map(|k| (distance(k), k))
        .filter(|(d, _)| *d <= 1 + word.len() / 4)
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
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
    }
}
