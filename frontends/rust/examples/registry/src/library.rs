//! `core` and `alloc` themselves: what is generic and what has a body of its own; and an interpreter.

use crate::bytes::{Bytes, fold};
use crate::interpreter;
use alloc::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use alloc::{borrow::Cow, boxed::Box, format, rc::Rc, sync::Arc};
use core::fmt::Write;
use thisgpu_gpu::*;

functions! {
    /// `core`'s sorting and searching.
    fn core_sort(seed: u64) -> u64 {
        let mut random = oorandom::Rand32::new(seed);
        let mut values = [0i32; 48];
        values.fill_with(|| random.rand_i32() % 1000);
        values.sort_unstable();
        let found = values.binary_search(&(seed as i32 % 1000)).unwrap_or_else(|place| place);
        values.select_nth_unstable_by(10, |a, b| b.cmp(a));
        values.iter().fold(found as u64, |sum, value| sum.wrapping_mul(33) ^ *value as u64)
    }

    /// `core`'s iterators and slices.
    fn core_iterators(seed: u64) -> u64 {
        let bytes = Bytes::of(seed);
        let of_chunk = |chunk: &[u8]| chunk.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let pairs = bytes.as_slice().chunks(3).map(of_chunk).enumerate();
        let sum: u64 = pairs.filter(|(index, _)| index % 2 == 0).map(|(index, sum)| sum * index as u64).sum();
        let most = bytes.as_slice().windows(2).map(|pair| pair[0].abs_diff(pair[1])).max().unwrap_or(0);
        let next = |x: &u64| (*x != 1).then(|| if x % 2 == 0 { x / 2 } else { 3 * x + 1 });
        let collatz = core::iter::successors(Some(seed % 1000 + 1), next).count();
        sum ^ u64::from(most) << 32 ^ (collatz as u64) << 40
    }

    /// `core`'s conversions between numbers and text.
    fn core_parse(seed: u64) -> u64 {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(seed as i64);
        let cut = &text[..text.len().min(1 + seed as usize % 12)];
        let parsed = match cut.parse::<i32>() {
            Ok(number) => number as u64,
            Err(error) => matches!(error.kind(), core::num::IntErrorKind::PosOverflow) as u64,
        };
        parsed ^ u64::from_str_radix(cut.trim_start_matches('-'), 16).unwrap_or(9)
    }

    /// An interpreter of a stack machine, on a random program.
    fn interpreter(seed: u64) -> u64 {
        interpreter::run(seed)
    }

    /// UTF-8, and the errors in it.
    fn core_utf8(seed: u64) -> u64 {
        let bytes = Bytes::of(seed);
        let mut sum = String::from_utf8_lossy(bytes.as_slice()).chars().fold(1u64, |sum, c| {
            sum.wrapping_mul(31) ^ u64::from(u32::from(c))
        });
        if let Err(error) = core::str::from_utf8(bytes.as_slice()) {
            sum ^= error.valid_up_to() as u64 ^ fold(error.to_string().as_bytes());
        }
        sum
    }

    /// Text searched, split and trimmed.
    fn core_text(seed: u64) -> u64 {
        let mut text = String::new();
        for index in 0..12 {
            let piece = ["é", "", "ab", "\t"][(seed >> index) as usize % 4];
            let _ = write!(text, "{}{piece} ,", seed.rotate_left(5 * index) % 9);
        }
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let sum = words.fold(3u64, |sum, word| sum.wrapping_mul(31) ^ fold(word.as_bytes()));
        let first = text.find("ab").map_or(99, |place| place as u64);
        let found = first ^ text.rfind('é').map_or(98, |place| place as u64) << 8;
        let ends = u64::from(text.trim_end_matches([',', ' ']).ends_with('b')) << 20;
        let lines = text.replace("ab", "\r\n").lines().count() as u64;
        sum ^ found ^ ends ^ lines << 30 ^ text.split_whitespace().rev().count() as u64
    }

    /// Cases and classes of characters.
    fn core_characters(seed: u64) -> u64 {
        let characters = (0..9).filter_map(|index| char::from_u32((seed >> (4 * index)) as u32 % 0x1_2000));
        characters.fold(0u64, |sum, c| {
            let upper = c.to_uppercase().fold(0, |sum, c| sum * 3 + u64::from(u32::from(c)));
            let lower: String = c.to_lowercase().collect();
            let classes = [c.is_alphabetic(), c.is_numeric(), c.is_whitespace(), c.is_uppercase(), c.is_control()];
            let classes = classes.iter().fold(0, |sum, class| sum * 2 + u64::from(*class));
            let escaped = fold(c.escape_debug().to_string().as_bytes());
            sum.wrapping_mul(31) ^ upper ^ fold(lower.as_bytes()) ^ classes << 40 ^ escaped
        })
    }

    /// Floats parsed and printed.
    fn core_floats(seed: u64) -> u64 {
        let (wide, narrow) = (f64::from_bits(seed), f32::from_bits(seed as u32));
        let text = format!("{wide:?} {wide:e} {:.3} {narrow} {:>12.1}", seed as f64 / 1e9, narrow as i32 as f32);
        let back = text.split(' ').filter_map(|word| word.parse::<f64>().ok());
        let sum = back.filter(|x| !x.is_nan()).fold(1u64, |sum, x| sum.rotate_left(7) ^ x.to_bits());
        let halfway = format!("{}.{}e{}", seed % 10, seed, seed as i8).parse::<f32>();
        fold(text.as_bytes()) ^ sum ^ halfway.map_or(0, |x| u64::from(x.to_bits()))
    }

    /// Formatting by `core::fmt`: widths, derives, errors.
    fn core_format(seed: u64) -> u64 {
        #[derive(Debug, Clone)]
        #[allow(dead_code, reason = "printed")]
        enum Shape<'a> {
            Point,
            Circle { radius: f32, name: &'a str },
            Many(Vec<Shape<'a>>, Option<Box<Shape<'a>>>),
        }
        let circle = Shape::Circle { radius: seed as i16 as f32 / 8.0, name: "a \"name\"\n" };
        let shape = Shape::Many(alloc::vec![Shape::Point, circle.clone()], Some(Box::new(circle)));
        let plain = format!("{shape:?}|{seed:#018x}|{:+}|{:^9}|{:>5}|{:<3}|", seed as i8, "mid", 'x', true);
        let pretty = format!("{shape:#?} {:?} {:b} {:o}", (seed as u8, "t"), seed as u8, seed as u16);
        let empty = "".parse::<i32>().map_or_else(|error| error.to_string(), |_| String::new());
        let error = format!("{:?} {empty}", "12x".parse::<u8>());
        fold(plain.as_bytes()) ^ fold(pretty.as_bytes()) ^ fold(error.as_bytes())
    }

    /// Collections of `alloc`.
    fn alloc_collections(seed: u64) -> u64 {
        let numbers = (0..40).map(|index| seed.rotate_left(index * 5) % 64);
        let set: BTreeSet<u64> = numbers.clone().collect();
        let mut map: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        numbers.clone().enumerate().for_each(|(index, key)| map.entry(key % 7).or_default().push(index as u64));
        let mut heap: BinaryHeap<u64> = numbers.clone().collect();
        let mut queue: VecDeque<u64> = numbers.collect();
        queue.rotate_left((seed % 9) as usize);
        queue.make_contiguous().sort();
        let sum = map.range(2..6).fold(set.len() as u64, |sum, (key, all)| {
            sum.wrapping_mul(31) ^ key ^ all.iter().sum::<u64>()
        });
        let top = core::iter::from_fn(|| heap.pop()).take(5).fold(0, |sum, x| sum * 65 + x);
        sum ^ top ^ queue.iter().fold(0u64, |sum, x| sum.wrapping_mul(3) ^ x)
    }

    /// Shared values, stable sorts, strings that grow.
    fn alloc_values(seed: u64) -> u64 {
        let shared = Rc::new(core::cell::RefCell::new(Vec::new()));
        let other = Rc::clone(&shared);
        let add: Box<dyn Fn(u64)> = Box::new(move |x| other.borrow_mut().push((x % 8, x)));
        (0..20).for_each(|index| add(seed >> index));
        shared.borrow_mut().sort_by_key(|(key, _)| *key);
        let sum = shared.borrow().iter().fold(Rc::strong_count(&shared) as u64, |sum, (_, x)| sum.rotate_left(9) ^ x);
        let text: Arc<str> = "abc".repeat((seed % 5) as usize).into();
        let cow: Cow<str> = if seed & 1 == 0 { Cow::Borrowed(&text) } else { Cow::Owned(text.to_uppercase()) };
        sum ^ fold(cow.into_owned().into_boxed_str().as_bytes())
    }
}
