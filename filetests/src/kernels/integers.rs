//! Kernels on integers as programs have them: hashes, sorting, searching, text, long numbers.

use super::{Failure, Session, compare};
use cranelift_thisgpu::driver::Grid;

/// The prime of the curve secp256k1, low word first.
const PRIME: [u32; 8] = [
    0xffff_fc2f,
    0xffff_fffe,
    u32::MAX,
    u32::MAX,
    u32::MAX,
    u32::MAX,
    u32::MAX,
    u32::MAX,
];

pub(super) fn bigmul256(s: &mut Session) -> Result<(), Failure> {
    for n in [1u32, 40] {
        let mut numbers = || {
            let mut words = s.words(n as usize * 8);
            // Below the prime.
            words
                .iter_mut()
                .skip(7)
                .step_by(8)
                .for_each(|word| *word >>= 1);
            words
        };
        let (a, b) = (numbers(), numbers());
        let (da, db) = (s.device.upload(&a)?, s.device.upload(&b)?);
        let (dm, dc) = (
            s.device.upload(&PRIME)?,
            s.device.allocate(u64::from(n) * 32)?,
        );
        let factor = inverse(PRIME[0]).wrapping_neg();
        s.launch(Grid::for_elems(n, 64), |l| {
            l.arg(n).arg(factor).arg(&dm).arg(&da).arg(&db).arg(&dc)
        })?;
        let pairs = a.chunks_exact(8).zip(b.chunks_exact(8));
        let expected: Vec<u32> = pairs.flat_map(|(a, b)| montgomery(a, b)).collect();
        compare(&format!("n = {n}"), &s.device.download(&dc)?, &expected)?;
    }
    Ok(())
}

/// The inverse of an odd number modulo 2^32 (Newton: each step doubles the right bits).
fn inverse(odd: u32) -> u32 {
    (0..5).fold(odd, |x, _| {
        x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x)))
    })
}

/// a b / 2^256 modulo the prime: the product halved 256 times, the prime added where it is odd.
fn montgomery(a: &[u32], b: &[u32]) -> [u32; 8] {
    let mut product = [0u32; 17];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0u64;
        for (j, &y) in b.iter().enumerate() {
            let sum = u64::from(x) * u64::from(y) + u64::from(product[i + j]) + carry;
            product[i + j] = sum as u32;
            carry = sum >> 32;
        }
        product[i + b.len()] = carry as u32;
    }
    for _ in 0..256 {
        if product[0] & 1 == 1 {
            let mut carry = 0u64;
            for (index, word) in product.iter_mut().enumerate() {
                let sum = u64::from(*word) + PRIME.get(index).map_or(0, |&w| u64::from(w)) + carry;
                *word = sum as u32;
                carry = sum >> 32;
            }
        }
        for index in 0..17 {
            let above = product.get(index + 1).map_or(0, |above| above << 31);
            product[index] = product[index] >> 1 | above;
        }
    }
    let below = |words: &[u32; 17]| words[8] == 0 && words[..8].iter().rev().lt(PRIME.iter().rev());
    if !below(&product) {
        let mut borrow = 0i64;
        for (word, prime) in product.iter_mut().zip(PRIME) {
            let difference = i64::from(*word) - i64::from(prime) + borrow;
            *word = difference as u32;
            borrow = difference >> 32;
        }
    }
    *product.first_chunk().expect("seventeen words")
}

pub(super) fn bitonic(s: &mut Session) -> Result<(), Failure> {
    for (blocks, up) in [(1u32, 1u32), (2, 0)] {
        let keys = s.words(blocks as usize * 512);
        let values = s.words(keys.len());
        let (dk, dv) = (s.device.upload(&keys)?, s.device.upload(&values)?);
        let grid = Grid::new([blocks, 1, 1], [256, 1, 1]);
        s.launch(grid, |l| l.arg(&dk).arg(&dv).arg(up))?;
        let mut pairs: Vec<(u32, u32)> = keys.into_iter().zip(values).collect();
        for block in pairs.chunks_exact_mut(512) {
            block.sort_unstable();
            if up == 0 {
                block.reverse();
            }
        }
        let (keys, values): (Vec<u32>, Vec<u32>) = pairs.into_iter().unzip();
        let case = format!("{blocks} blocks, up = {up}");
        compare(&case, &s.device.download(&dk)?, &keys)?;
        compare(&case, &s.device.download(&dv)?, &values)?;
    }
    Ok(())
}

pub(super) fn histogram(s: &mut Session) -> Result<(), Failure> {
    for n in [0u32, 1, 300] {
        let text = s.words(n.max(1) as usize * 4);
        let dx = s.device.upload(&text)?;
        let db = s.device.upload(&[0u32; 256])?;
        s.launch(Grid::new([2, 1, 1], [96, 1, 1]), |l| {
            l.arg(n).arg(&dx).arg(&db)
        })?;
        let mut expected = vec![0u32; 256];
        for word in &text[..n as usize * 4] {
            word.to_le_bytes()
                .iter()
                .for_each(|&byte| expected[usize::from(byte)] += 1);
        }
        compare(&format!("n = {n}"), &s.device.download(&db)?, &expected)?;
    }
    Ok(())
}

pub(super) fn lowerbound(s: &mut Session) -> Result<(), Failure> {
    for (n, m) in [(0u32, 1u32), (1, 33), (1000, 200)] {
        let mut keys = s.doubles(n.max(1) as usize);
        keys.sort_unstable();
        let mut queries = s.doubles(m as usize);
        // Some that are there.
        (queries.iter_mut().step_by(3).zip(&keys)).for_each(|(query, key)| *query = *key);
        let (dk, dq) = (s.device.upload(&keys)?, s.device.upload(&queries)?);
        let out = s.device.allocate(u64::from(m) * 4)?;
        s.launch(Grid::for_elems(m, 64), |l| {
            l.arg(n).arg(m).arg(&dk).arg(&dq).arg(&out)
        })?;
        let keys = &keys[..n as usize];
        let place = |query: &u64| keys.partition_point(|key| key < query) as u32;
        let expected: Vec<u32> = queries.iter().map(place).collect();
        compare(
            &format!("n = {n}, m = {m}"),
            &s.device.download(&out)?,
            &expected,
        )?;
    }
    Ok(())
}

pub(super) fn sha256(s: &mut Session) -> Result<(), Failure> {
    for n in [1u32, 40] {
        let (message, state) = (s.words(n as usize * 16), s.words(n as usize * 8));
        let (dm, ds) = (s.device.upload(&message)?, s.device.upload(&state)?);
        s.launch(Grid::for_elems(n, 64), |l| l.arg(n).arg(&dm).arg(&ds))?;
        let each = message.chunks_exact(16).zip(state.chunks_exact(8));
        let expected: Vec<u32> = each
            .flat_map(|(message, state)| step(message, state))
            .collect();
        compare(&format!("n = {n}"), &s.device.download(&ds)?, &expected)?;
    }
    Ok(())
}

/// A number's first 32 bits behind the point: of the cube root of a prime, as FIPS 180-4 makes its constants.
fn root_bits(prime: u32) -> u32 {
    // The largest x below 2^35 with x^3 at most prime 2^96.
    let bound = u128::from(prime) << 96;
    let fits = |x: u64| u128::from(x).pow(3) <= bound;
    (0..35).rev().fold(
        0u64,
        |x, bit| if fits(x | 1 << bit) { x | 1 << bit } else { x },
    ) as u32
}

/// FIPS 180-4, 6.2.2, of a block of bytes in words of the machine.
fn step(message: &[u32], state: &[u32]) -> Vec<u32> {
    let is_prime = |n: &u32| {
        (2..*n)
            .take_while(|d| d * d <= *n)
            .all(|d| !n.is_multiple_of(d))
    };
    let constants = (2..).filter(is_prime).map(root_bits);
    let mut w: Vec<u32> = message.iter().map(|word| word.swap_bytes()).collect();
    for t in 16..64 {
        let (x, y) = (w[t - 15], w[t - 2]);
        let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
        let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
        w.push(
            w[t - 16]
                .wrapping_add(s0)
                .wrapping_add(w[t - 7])
                .wrapping_add(s1),
        );
    }
    let mut v: Vec<u32> = state.to_vec();
    for (k, w) in constants.zip(w) {
        let (a, e) = (v[0], v[4]);
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & v[5] ^ !e & v[6];
        let first = [s1, choice, k, w]
            .iter()
            .fold(v[7], |sum, x| sum.wrapping_add(*x));
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let second = s0.wrapping_add(a & v[1] ^ a & v[2] ^ v[1] & v[2]);
        v.rotate_right(1);
        v[4] = v[4].wrapping_add(first);
        v[0] = first.wrapping_add(second);
    }
    v.iter()
        .zip(state)
        .map(|(a, b)| a.wrapping_add(*b))
        .collect()
}

pub(super) fn utf8(s: &mut Session) -> Result<(), Failure> {
    for n in [1u32, 70] {
        let mut text: Vec<u8> = Vec::new();
        let mut starts = vec![0u32];
        for _ in 0..n {
            for _ in 0..s.bits32() % 20 {
                match s.bits32() % 5 {
                    0 => text.push(s.bits32() as u8),
                    _ => {
                        let letter = char::from_u32(s.bits32() % 0x3000 * (1 + s.bits32() % 40));
                        let letter = letter.unwrap_or('?');
                        text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
            }
            starts.push(text.len() as u32);
        }
        let (dt, ds) = (
            s.device.upload(&[&text[..], b" "].concat())?,
            s.device.upload(&starts)?,
        );
        let out = s.device.allocate(u64::from(n) * 8)?;
        s.launch(Grid::for_elems(n, 64), |l| {
            l.arg(n).arg(&ds).arg(&dt).arg(&out)
        })?;
        let parts = starts
            .windows(2)
            .map(|ends| &text[ends[0] as usize..ends[1] as usize]);
        let expected: Vec<u32> = parts.flat_map(decoded).collect();
        compare(&format!("n = {n}"), &s.device.download(&out)?, &expected)?;
    }
    Ok(())
}

/// How many code points there are, and their sum.
fn decoded(mut text: &[u8]) -> [u32; 2] {
    let (mut count, mut sum) = (0, 0u32);
    while let Some((&first, mut rest)) = text.split_first() {
        let (mut point, more) = match first.leading_ones() {
            0 => (u32::from(first), 0),
            2 => (u32::from(first & 0x1f), 1),
            3 => (u32::from(first & 0xf), 2),
            4 => (u32::from(first & 7), 3),
            _ => (0xfffd, 0),
        };
        for _ in 0..more {
            match rest.split_first() {
                Some((&next, behind)) if next & 0xc0 == 0x80 => {
                    point = point << 6 | u32::from(next & 0x3f);
                    rest = behind;
                }
                _ => {
                    point = 0xfffd;
                    break;
                }
            }
        }
        (count, sum) = (count + 1, sum.wrapping_add(point));
        text = rest;
    }
    [count, sum]
}
