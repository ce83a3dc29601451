//! Text: searched, taken apart, parsed.

use crate::bytes::{Bytes, fold};
use alloc::string::String;
use thisgpu_gpu::*;

/// A text of letters that depends on a seed.
fn sentence(seed: u64, letters: &[u8]) -> String {
    let letter = |index: u32| {
        char::from(letters[(seed.rotate_left(index * 3) % letters.len() as u64) as usize])
    };
    (0..30 + (seed % 20) as u32).map(letter).collect()
}

functions! {
    /// Bytes found from both ends by memchr, which takes the host's vectors.
    fn bytes_found(seed: u64) -> u64 {
        let text = Bytes::of(seed);
        let (text, one, other) = (text.as_slice(), seed as u8, (seed >> 8) as u8);
        let found = [
            memchr::memchr(one, text),
            memchr::memchr2(one, other, text),
            memchr::memrchr3(one, other, 0, text),
        ];
        let count = memchr::memchr_iter(other & 0x7f, text).count() as u64;
        found.iter().fold(count, |sum, place| sum * 257 + place.map_or(0, |place| place as u64 + 1))
    }

    /// A word of two bytes found in others by memchr.
    fn words_found(seed: u64) -> u64 {
        let text = Bytes::of(seed);
        let text = text.as_slice();
        let start = (seed >> 20) as usize % text.len().max(1);
        let word = text.get(start..start + 2).unwrap_or(b"no");
        let first = memchr::memmem::find(text, word);
        let last = memchr::memmem::rfind(text, word);
        [first, last].iter().fold(7, |sum, place| sum * 257 + place.map_or(0, |place| place as u64 + 1))
    }

    /// Words of a sentence found by an automaton.
    fn aho_corasick(seed: u64) -> u64 {
        let words = ["ab", "bab", "caba", "ccc", "acb"];
        let Ok(search) = aho_corasick::AhoCorasick::new(words) else { return 1 };
        let text = sentence(seed, b"abc");
        let found = search.find_overlapping_iter(&text);
        found.fold(3, |sum, found| sum * 31 ^ found.start() as u64 ^ (found.pattern().as_u64()) << 20)
    }

    /// A regular expression, compiled on the device.
    fn regex_automata(seed: u64) -> u64 {
        use regex_automata::nfa::thompson::pikevm::PikeVM;
        let Ok(expression) = PikeVM::new(r"a+(b|cc)*a?[0-2]") else { return 1 };
        let mut cache = expression.create_cache();
        let text = sentence(seed, b"abc012");
        expression.find_iter(&mut cache, &text).fold(3, |sum, found| {
            sum * 31 ^ found.start() as u64 ^ (found.end() as u64) << 20
        })
    }

    /// An expression parsed and evaluated by the combinators of nom.
    fn nom(seed: u64) -> u64 {
        use nom::branch::alt;
        use nom::character::complete::{char, digit1};
        use nom::combinator::map_res;
        use nom::multi::fold_many0;
        use nom::sequence::{delimited, pair};
        use nom::{IResult, Parser};
        fn atom(text: &str) -> IResult<&str, u64> {
            let number = map_res(digit1, str::parse::<u64>);
            alt((number, delimited(char('('), sum, char(')')))).parse(text)
        }
        fn product(text: &str) -> IResult<&str, u64> {
            let (text, first) = atom(text)?;
            fold_many0(pair(char('*'), atom), move || first, |all, (_, next)| all.wrapping_mul(next)).parse(text)
        }
        fn sum(text: &str) -> IResult<&str, u64> {
            let (text, first) = product(text)?;
            fold_many0(pair(char('+'), product), move || first, |all, (_, next)| all.wrapping_add(next)).parse(text)
        }
        let text = alloc::format!("{}*({}+{}*2)+{}x", seed % 1000, seed >> 40, seed >> 50, seed % 7);
        match sum(&text[usize::from(seed % 9 == 0)..]) {
            Ok((rest, value)) => value ^ rest.len() as u64,
            Err(error) => fold(alloc::format!("{error}").as_bytes()),
        }
    }

    /// A list of settings parsed by winnow.
    fn winnow(seed: u64) -> u64 {
        use winnow::ascii::{alpha1, dec_int, space0};
        use winnow::combinator::{separated, separated_pair};
        use winnow::prelude::*;
        fn setting<'a>(text: &mut &'a str) -> winnow::Result<(&'a str, i64)> {
            separated_pair(alpha1, (space0, '=', space0), dec_int).parse_next(text)
        }
        let text = alloc::format!("a = {},long={} , b = -{}", seed as i32, seed >> 50, seed % 77);
        fn list<'a>(text: &mut &'a str) -> winnow::Result<alloc::vec::Vec<(&'a str, i64)>> {
            separated(1.., setting, (space0, ',', space0)).parse_next(text)
        }
        match list.parse(text.as_str()) {
            Ok(all) => all.iter().fold(0, |sum, (name, value)| sum * 7 ^ *value as u64 ^ name.len() as u64),
            Err(error) => fold(alloc::format!("{error}").as_bytes()),
        }
    }

    /// Graphemes and words of Unicode.
    fn unicode_segmentation(seed: u64) -> u64 {
        use unicode_segmentation::UnicodeSegmentation;
        let pieces = ["e\u{301}", "🇦🇹", "क्षि", " word", "can't ", "한글", "\r\n", "x."];
        let text: String = (0..12).map(|index| pieces[(seed >> (3 * index)) as usize % 8]).collect();
        let graphemes = text.graphemes(true).fold(1u64, |sum, piece| sum.wrapping_mul(31) ^ piece.len() as u64);
        text.unicode_words().fold(graphemes, |sum, word| sum.rotate_left(7) ^ fold(word.as_bytes()))
    }

    /// Bytes that are nearly text.
    fn bstr(seed: u64) -> u64 {
        use bstr::ByteSlice;
        let bytes = Bytes::of(seed);
        let text = bytes.as_slice();
        let valid = text.utf8_chunks().fold(1u64, |sum, chunk| sum.wrapping_mul(7) ^ chunk.valid().len() as u64);
        let lossy = text.to_str_lossy();
        let characters = text.char_indices().fold(0, |sum, (_, _, c)| sum * 31 ^ u64::from(u32::from(c)));
        let lines = text.lines().count() as u64;
        valid ^ fold(lossy.as_bytes()) ^ characters ^ lines ^ text.find("a").map_or(9, |place| place as u64)
    }

    /// Distances of words.
    fn strsim(seed: u64) -> u64 {
        let (a, b) = (sentence(seed, b"abcd"), sentence(seed >> 20 ^ 77, b"abce"));
        let close = strsim::jaro_winkler(&a, &b).to_bits();
        close ^ strsim::levenshtein(&a, &b) as u64 ^ (strsim::damerau_levenshtein(&a, &b) as u64) << 8
    }
}
