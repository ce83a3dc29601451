//! Crates from the registry, unmodified, in kernels: hashes, random numbers, printing and parsing of numbers,
//! collections, fixed point, wide integers, mathematics; sorting and searching of `core`; and a small interpreter.
//!
//! Each function takes a number and gives one: what it does in between is a crate's business. The host calls the same
//! functions, so that both can be compared.

#![no_std]

mod bytes;
mod interpreter;

use bytes::{Bytes, fold};
use core::hash::Hasher;
use thisgpu_gpu::*;

/// A kernel for each function, one input a thread, and a list for the host.
macro_rules! functions {
    ($($(#[$documentation:meta])* fn $name:ident($seed:ident: u64) -> u64 $body:block)*) => {
        /// The functions as the host calls them.
        pub const FUNCTIONS: &[(&str, fn(u64) -> u64)] = &[$((stringify!($name), functions::$name)),*];

        mod functions {
            use super::*;
            $(
                $(#[$documentation])*
                #[inline]
                pub fn $name($seed: u64) -> u64 $body
            )*
        }

        $(
            $(#[$documentation])*
            #[kernel]
            pub fn $name(inputs: &[u64], mut outputs: DisjointMut<u64>) {
                let thread = thread::global_id();
                if let (Some(input), Some(output)) = (inputs.get(thread), outputs.thread_mut()) {
                    *output = functions::$name(*input);
                }
            }
        )*
    };
}

functions! {
    /// SHA-256 of RustCrypto.
    fn sha2_256(seed: u64) -> u64 {
        use sha2::Digest;
        fold(&sha2::Sha256::digest(Bytes::of(seed).as_slice()))
    }

    /// SHA-512 of RustCrypto.
    fn sha2_512(seed: u64) -> u64 {
        use sha2::Digest;
        fold(&sha2::Sha512::digest(Bytes::of(seed).as_slice()))
    }

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

    /// MD5 of RustCrypto, a version later.
    fn md5(seed: u64) -> u64 {
        use md5::Digest;
        fold(&md5::Md5::digest(Bytes::of(seed).as_slice()))
    }

    /// BLAKE3, its portable code.
    fn blake3(seed: u64) -> u64 {
        fold(blake3::hash(Bytes::of(seed).as_slice()).as_bytes())
    }

    /// SipHash 2-4 with 128 bits of result.
    fn siphasher(seed: u64) -> u64 {
        use siphasher::sip128::Hasher128;
        let mut hasher = siphasher::sip128::SipHasher24::new_with_keys(seed, !seed);
        hasher.write(Bytes::of(seed).as_slice());
        hasher.write_u32(seed as u32);
        fold(&hasher.finish128().as_bytes())
    }

    /// XXH64.
    fn xxhash(seed: u64) -> u64 {
        let bytes = Bytes::of(seed);
        let short = xxhash_rust::xxh32::xxh32(bytes.as_slice(), seed as u32);
        xxhash_rust::xxh64::xxh64(bytes.as_slice(), seed) ^ u64::from(short)
    }

    /// The hash of rustc's own tables.
    fn rustc_hash(seed: u64) -> u64 {
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(Bytes::of(seed).as_slice());
        hasher.finish()
    }

    /// CRC-64 by a table of constants.
    fn crc(seed: u64) -> u64 {
        const TABLE: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
        TABLE.checksum(Bytes::of(seed).as_slice())
    }

    /// A random generator with 128 bits of state.
    fn oorandom(seed: u64) -> u64 {
        let mut random = oorandom::Rand64::new(u128::from(seed) << 32 | 5);
        let mut sum = random.rand_u64();
        for _ in 0..4 {
            sum ^= random.rand_range(10..1000) ^ random.rand_float().to_bits();
        }
        sum
    }

    /// The generator of the crate `rand`.
    fn rand_pcg(seed: u64) -> u64 {
        use rand_pcg::rand_core::Rng;
        let mut random = rand_pcg::Pcg64::new(u128::from(seed), 7);
        let mut bytes = [0; 24];
        random.fill_bytes(&mut bytes);
        fold(&bytes) ^ random.next_u64()
    }

    /// Functions of the mathematical library in Rust.
    fn libm(seed: u64) -> u64 {
        let x = seed as f64 / (1u64 << 60) as f64 + 0.01;
        let y = (seed >> 32) as f32 / 1e8;
        let double = libm::sin(x) + libm::exp(-x) * libm::log(x) + libm::pow(x, 1.5);
        let double = double + libm::tgamma(x) + libm::atan2(x, 2.0);
        let single = libm::sinf(y) + libm::expf(-y) + libm::cbrtf(y) + libm::fmodf(y, 0.7) + libm::erff(y);
        double.to_bits() ^ u64::from(single.to_bits())
    }

    /// Functions of mathematics for small machines.
    fn micromath(seed: u64) -> u64 {
        use micromath::F32Ext;
        let x = (seed >> 40) as f32 / 1e5;
        let [sine, root, logarithm] = [F32Ext::sin(x), F32Ext::sqrt(x), F32Ext::ln(x + 1.0)];
        let results = [sine, root, logarithm, F32Ext::atan2(x, 3.0), F32Ext::powf(x, 0.3)];
        results.iter().fold(0u64, |sum, result| sum.wrapping_mul(31) ^ u64::from(result.to_bits()))
    }

    /// The shortest decimal digits of floats.
    fn ryu(seed: u64) -> u64 {
        let mut buffer = ryu::Buffer::new();
        let double = fold(buffer.format(f64::from_bits(seed)).as_bytes());
        double ^ fold(buffer.format(f32::from_bits(seed as u32)).as_bytes())
    }

    /// The digits of integers.
    fn itoa(seed: u64) -> u64 {
        let mut buffer = itoa::Buffer::new();
        let whole = fold(buffer.format(seed).as_bytes());
        let narrow = fold(buffer.format(seed as i32).as_bytes());
        let wide = fold(buffer.format(i128::from(seed) * -12_345_678_901).as_bytes());
        whole ^ narrow ^ wide
    }

    /// Base64 and back, with an error now and then.
    fn base64ct(seed: u64) -> u64 {
        use base64ct::{Base64, Encoding};
        let (bytes, mut text, mut back) = (Bytes::of(seed), [0; 160], [0; 120]);
        let Ok(encoded) = Base64::encode(bytes.as_slice(), &mut text) else { return 1 };
        let sum = fold(encoded.as_bytes());
        let wrong = seed.is_multiple_of(5);
        let end = encoded.len().saturating_sub(usize::from(wrong));
        match Base64::decode(&encoded.as_bytes()[..end], &mut back) {
            Ok(decoded) => sum ^ fold(decoded),
            Err(error) => sum ^ error as u64,
        }
    }

    /// A vector in an array, with its operations.
    fn arrayvec(seed: u64) -> u64 {
        let mut random = oorandom::Rand32::new(seed);
        let mut values: arrayvec::ArrayVec<u32, 24> = (0..24).map(|_| random.rand_u32() % 100).collect();
        values.retain(|value| *value % 3 != 0);
        if values.len() > 4 {
            values.swap_remove(2);
            values.insert(1, 77);
        }
        let mut text = arrayvec::ArrayString::<16>::new();
        text.push_str("ab");
        let _ = text.try_push('é');
        let drained = values.drain(..).rev();
        let sum = drained.fold(fold(text.as_bytes()), |sum, value| sum.rotate_left(5) ^ u64::from(value));
        sum ^ values.len() as u64
    }

    /// Another one.
    fn tinyvec(seed: u64) -> u64 {
        let mut values = tinyvec::ArrayVec::<[u16; 20]>::new();
        for index in 0..20 {
            values.push((seed >> index) as u16);
        }
        values.retain(|value| *value != seed as u16);
        if values.len() > 3 {
            values.remove(1);
            values.truncate(15);
        }
        values.sort_unstable();
        values.iter().fold(values.len() as u64, |sum, value| sum.wrapping_mul(31) ^ u64::from(*value))
    }

    /// Fixed-point numbers.
    fn fixed(seed: u64) -> u64 {
        use fixed::types::{I16F16, U32F32};
        let (a, b) = (I16F16::from_bits(seed as i32), I16F16::from_bits((seed >> 32) as i32 | 1));
        let product = a.wrapping_mul(b);
        let quotient = a.checked_div(b).unwrap_or(I16F16::MAX);
        let wide = U32F32::from_bits(seed).saturating_mul(U32F32::from_num(1.25)).sqrt();
        let float = u64::from(a.to_num::<f32>().to_bits());
        (product.to_bits() as u64) ^ ((quotient.to_bits() as u64) << 7) ^ wide.to_bits() ^ float
    }

    /// Integers of 256 bits.
    fn ethnum(seed: u64) -> u64 {
        use ethnum::U256;
        let a = U256::from_words(u128::from(seed) << 50, u128::from(seed).wrapping_mul(0x1234_5678_9abc_def0_1234));
        let b = U256::from(seed >> 20 | 1);
        let c = a / b + (a % b) * U256::new(3) + a.wrapping_mul(b).rotate_left(77);
        let (high, low) = c.into_words();
        (high ^ low) as u64 ^ ((high ^ low) >> 64) as u64
    }

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
}
