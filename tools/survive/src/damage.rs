//! Damaged texts: what a typing mistake, a lost line or a wrong tool would leave.

use cranelift_thisgpu::unstable::isa::random::Random;

/// Words that are put in anywhere.
const WORDS: [&str; 44] = [
    "v0",
    "v1",
    "v99",
    "block0",
    "block7",
    "i8",
    "i16x2",
    "i16x4",
    "i32",
    "i32x4",
    "i64",
    "i128",
    "f16",
    "f32x2",
    "f64",
    "f128",
    "i8x256",
    "const0",
    "const3",
    "ss0",
    "gv0",
    "fn0",
    "sig0",
    "dt0",
    "dss1",
    "region0",
    "userextname0",
    "u0:1",
    "ret1",
    "iadd",
    "isub",
    "vconst",
    "shuffle",
    "load",
    "call",
    "extract_vector",
    "0x0102030405060708090a0b0c0d0e0f10",
    "-0x8000000000000000",
    "+NaN:0x1",
    "->",
    "=",
    "{",
    "%gpu_tid_x",
    "function",
];

/// One of some words; the empty one where there are none.
fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    match of {
        [] => "",
        of => of[random.below(of.len())],
    }
}

/// One text with one to four damages; `other` lends lines and words.
pub fn damaged(text: &str, other: &str, random: &mut Random) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(4) {
        text = match random.below(8) {
            0..4 => with_words(&text, other, random),
            4..6 => with_lines(&text, other, random),
            _ => with_characters(&text, random),
        };
    }
    text
}

/// The text in pieces: words, and what is between them.
fn words(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        words.push(&rest[..end]);
        rest = &rest[end..];
    }
    words
}

/// A word left out, written twice, put in, in another's place, or with another number.
fn with_words(text: &str, other: &str, random: &mut Random) -> String {
    let mut words = words(text);
    let mut others: Vec<&str> = other.split_whitespace().collect();
    others.extend(WORDS);
    if words.is_empty() {
        return pick(random, &others).to_owned();
    }
    let place = random.below(words.len());
    let far = random.below(words.len());
    let renumbered;
    match random.below(7) {
        0 => _ = words.remove(place),
        1 => words.insert(place, words[place]),
        2 => words[place] = pick(random, &others),
        3 => words.insert(place, pick(random, &WORDS)),
        4 => words[place] = words[far],
        5 => words.swap(place, far),
        _ => {
            let start = words[place].trim_end_matches(|c: char| c.is_ascii_digit());
            let numbers = [
                0,
                1,
                2,
                3,
                7,
                8,
                15,
                16,
                64,
                255,
                256,
                65_536,
                4_294_967_295,
                u64::MAX,
            ];
            renumbered = format!("{start}{}", numbers[random.below(numbers.len())]);
            words[place] = &renumbered;
        }
    }
    words.concat()
}

/// A line left out, written twice, at another place, or from another text.
fn with_lines(text: &str, other: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let others: Vec<&str> = other.split_inclusive('\n').collect();
    if lines.is_empty() {
        return String::new();
    }
    let place = random.below(lines.len());
    let far = random.below(lines.len());
    match random.below(6) {
        0 => _ = lines.remove(place),
        1 => lines.insert(place, lines[far]),
        2 => lines.swap(place, far),
        3 => lines.insert(place, pick(random, &others)),
        4 => lines[place] = pick(random, &others),
        _ => lines.truncate(place),
    }
    lines.concat()
}

/// A character left out or changed.
fn with_characters(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return text.to_owned();
    }
    let place = random.below(characters.len());
    match random.below(3) {
        0 => _ = characters.remove(place),
        1 => characters[place] = char::from(random.below(128) as u8),
        _ => characters.insert(
            place,
            ['é', '"', ';', '%', '0', '-', '.', '\0', '(', ','][random.below(10)],
        ),
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_a_text() {
        let text = "function %f(i32) {\nblock0(v0: i32):\n    return\n}\n";
        let of = |seed| damaged(text, "v1 = iadd v0, v0\n", &mut Random::new(seed));
        let texts: Vec<String> = (0..100).map(of).collect();
        assert_eq!(texts, (0..100).map(of).collect::<Vec<_>>());
        assert!(texts.iter().filter(|damaged| *damaged != text).count() > 90);
        assert_eq!(words(text).concat(), text);
    }
}
