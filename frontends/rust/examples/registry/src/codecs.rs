//! Formats: text of numbers, compression, serialisation.

use crate::bytes::{Bytes, fold};
use thisgpu_gpu::*;

functions! {
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

    /// JSON of a structure, written and read.
    fn serde_json_core(seed: u64) -> u64 {
        #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
        struct Reading<'a> {
            name: &'a str,
            value: i64,
            parts: [u16; 3],
            limit: Option<u32>,
            good: bool,
        }
        let names = ["plain", "a longer one", "x"];
        let reading = Reading {
            name: names[seed as usize % 3],
            value: seed as i64 >> 7,
            parts: [seed as u16, 7, (seed >> 20) as u16],
            limit: seed.is_multiple_of(2).then_some(seed as u32),
            good: seed & 8 == 0,
        };
        let mut text = [0; 200];
        let Ok(length) = serde_json_core::to_slice(&reading, &mut text) else { return 1 };
        let cut = length - usize::from(seed.is_multiple_of(7));
        let sum = fold(&text[..length]);
        match serde_json_core::from_slice::<Reading>(&text[..cut]) {
            Ok((read, used)) => sum ^ u64::from(read == reading) ^ (used as u64) << 32,
            Err(error) => sum ^ fold(alloc::format!("{error:?}").as_bytes()),
        }
    }

    /// Postcard: a vector and an enumeration, there and back.
    fn postcard(seed: u64) -> u64 {
        use alloc::{string::String, vec::Vec};
        #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
        enum Message {
            Nothing,
            Numbers(Vec<u32>),
            Named { name: String, at: (i16, f32) },
        }
        let message = match seed % 3 {
            0 => Message::Nothing,
            1 => Message::Numbers((0..seed % 19).map(|index| (seed >> index) as u32).collect()),
            _ => Message::Named { name: alloc::format!("n{seed:x}"), at: (seed as i16, seed as f32) },
        };
        let Ok(bytes) = postcard::to_allocvec(&message) else { return 1 };
        let back = postcard::from_bytes::<Message>(&bytes);
        let wrong = postcard::from_bytes::<Message>(&bytes[..bytes.len() - 1]).is_err();
        fold(&bytes) ^ u64::from(back.as_ref() == Ok(&message)) ^ u64::from(wrong) << 1
    }

    /// CBOR.
    fn minicbor(seed: u64) -> u64 {
        let mut buffer = [0u8; 128];
        let mut encoder = minicbor::Encoder::new(&mut buffer[..]);
        let written = encoder
            .array(4)
            .and_then(|e| e.u64(seed))
            .and_then(|e| e.i32(seed as i32))
            .and_then(|e| e.str("text"))
            .and_then(|e| e.f64(seed as f64 / 3.0));
        if written.is_err() {
            return 1;
        }
        let mut decoder = minicbor::Decoder::new(&buffer);
        let length = decoder.array().ok().flatten().unwrap_or(0);
        let (first, second) = (decoder.u64().unwrap_or(0), decoder.i32().unwrap_or(0));
        let text = decoder.str().map_or(0, |text| text.len() as u64);
        let float = decoder.f64().map_or(0, f64::to_bits);
        fold(&buffer) ^ length ^ first ^ second as u64 ^ text ^ float ^ u64::from(decoder.u8().is_err())
    }

    /// Deflate there and back, and what it says to bytes that are wrong.
    fn miniz_oxide(seed: u64) -> u64 {
        let bytes = Bytes::of(seed & 0xffff);
        let text = [bytes.as_slice(), bytes.as_slice(), b"and again and again and again"].concat();
        let packed = miniz_oxide::deflate::compress_to_vec(&text, 1 + (seed % 6) as u8);
        let unpacked = miniz_oxide::inflate::decompress_to_vec(&packed);
        let cut = miniz_oxide::inflate::decompress_to_vec(&packed[..packed.len() / 2]);
        fold(&packed) ^ u64::from(unpacked.is_ok_and(|unpacked| unpacked == text)) ^ cut.map_or(7, |_| 5)
    }

    /// LZ4 there and back.
    fn lz4_flex(seed: u64) -> u64 {
        let bytes = Bytes::of(seed);
        let text = [bytes.as_slice(), b"over and over and over and over", bytes.as_slice()].concat();
        let packed = lz4_flex::block::compress_prepend_size(&text);
        let unpacked = lz4_flex::block::decompress_size_prepended(&packed);
        fold(&packed) ^ unpacked.map_or(1, |unpacked| fold(&unpacked))
    }

    /// Base64 with its engines.
    fn base64(seed: u64) -> u64 {
        use base64::Engine;
        use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
        let bytes = Bytes::of(seed);
        let (text, other) = (STANDARD.encode(bytes.as_slice()), URL_SAFE_NO_PAD.encode(bytes.as_slice()));
        let back = STANDARD.decode(&text).map_or(1, |back| fold(&back));
        let wrong = STANDARD.decode(&text[..text.len().saturating_sub(1)]);
        let wrong = wrong.map_or_else(|error| fold(alloc::format!("{error}").as_bytes()), |_| 3);
        fold(text.as_bytes()) ^ fold(other.as_bytes()).rotate_left(9) ^ back ^ wrong
    }

    /// Base58.
    fn bs58(seed: u64) -> u64 {
        let bytes = Bytes::of(seed % 40);
        let text = bs58::encode(bytes.as_slice()).into_string();
        let back = bs58::decode(&text).into_vec().map_or(1, |back| fold(&back));
        fold(text.as_bytes()) ^ back
    }

    /// Hexadecimal digits there and back.
    fn hex(seed: u64) -> u64 {
        let bytes = Bytes::of(seed);
        let mut text = hex::encode(bytes.as_slice());
        if seed.is_multiple_of(3) {
            text.push('g');
        }
        match hex::decode(&text) {
            Ok(back) => fold(text.as_bytes()) ^ fold(&back),
            Err(error) => fold(alloc::format!("{error}").as_bytes()),
        }
    }

    /// A header that is seen in bytes.
    fn zerocopy(seed: u64) -> u64 {
        use zerocopy::byteorder::big_endian::{U16, U32};
        use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};
        #[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        struct Header {
            kind: u8,
            length: U16,
            sum: U32,
        }
        let bytes = Bytes::of(seed);
        let Ok((header, rest)) = Header::ref_from_prefix(bytes.as_slice()) else {
            return bytes.as_slice().len() as u64;
        };
        let sum = u64::from(header.sum.get()) ^ u64::from(header.length.get()) << 32 ^ u64::from(header.kind) << 50;
        sum ^ fold(rest) ^ fold(header.as_bytes())
    }

    /// Identifiers.
    fn uuid(seed: u64) -> u64 {
        let id = uuid::Uuid::from_u64_pair(seed, !seed.rotate_left(9));
        let text = alloc::format!("{}", id.hyphenated());
        let cut = if seed.is_multiple_of(4) { &text[..20] } else { &text[..] };
        match uuid::Uuid::parse_str(cut) {
            Ok(back) => fold(back.as_bytes()) ^ u64::from(back == id) ^ back.get_version_num() as u64,
            Err(error) => fold(alloc::format!("{error}").as_bytes()),
        }
    }

    /// Dates: days added, and text there and back.
    fn jiff(seed: u64) -> u64 {
        use jiff::civil::Date;
        let (year, month, day) = (1900 + (seed % 200) as i16, 1 + (seed >> 9) as i8 % 12, 1 + (seed >> 20) as i8 % 28);
        let Ok(date) = Date::new(year, month.abs().max(1), day.abs().max(1)) else { return 1 };
        let later = date.saturating_add(jiff::Span::new().days((seed >> 33) as i32 % 50_000));
        let text = alloc::format!("{later}");
        let back = text.parse::<Date>().map_or(1, |back| u64::from(back == later));
        fold(text.as_bytes()) ^ back ^ later.weekday().to_monday_zero_offset() as u64 ^ later.day_of_year() as u64
    }

    /// Versions, and requirements of them.
    fn semver(seed: u64) -> u64 {
        use alloc::format;
        let text = format!("{}.{}.{}-rc.{}+b{}", seed % 5, seed >> 8 & 15, seed >> 16 & 99, seed >> 24 & 7, seed >> 60);
        let Ok(version) = semver::Version::parse(&text) else { return 1 };
        let requirements = [">=1.2.3, <4", "^2.7", "~3.1.0", "not one"];
        requirements.iter().fold(fold(text.as_bytes()), |sum, text| match semver::VersionReq::parse(text) {
            Ok(requirement) => sum * 3 ^ u64::from(requirement.matches(&version)),
            Err(error) => sum ^ fold(format!("{error}").as_bytes()),
        }) ^ version.major
    }
}
