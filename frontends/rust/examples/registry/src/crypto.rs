//! Cryptography of RustCrypto and others.

use crate::bytes::{Bytes, fold};
use thisgpu_gpu::*;

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

    /// MD5 of RustCrypto, a version later.
    fn md5(seed: u64) -> u64 {
        use md5::Digest;
        fold(&md5::Md5::digest(Bytes::of(seed).as_slice()))
    }

    /// BLAKE3, its portable code.
    fn blake3(seed: u64) -> u64 {
        fold(blake3::hash(Bytes::of(seed).as_slice()).as_bytes())
    }

    /// SHA-3, and an extendable output of it.
    fn sha3(seed: u64) -> u64 {
        use sha3::Digest;
        let bytes = Bytes::of(seed);
        fold(&sha3::Sha3_256::digest(bytes.as_slice())) ^ fold(&sha3::Keccak512::digest(bytes.as_slice()))
    }

    /// A block of AES-128 there and back, one of AES-256 there.
    fn aes(seed: u64) -> u64 {
        use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
        let mut key = [0u8; 32];
        for (index, byte) in key.iter_mut().enumerate() {
            *byte = (seed >> (index % 8 * 8)) as u8 ^ index as u8;
        }
        let short = aes::Aes128::new_from_slice(&key[..16]);
        let long = aes::Aes256::new_from_slice(&key);
        let (Ok(short), Ok(long)) = (short, long) else { return 1 };
        let mut block = aes::Block::default();
        block[3..11].copy_from_slice(&seed.to_le_bytes());
        let plain = block;
        long.encrypt_block(&mut block);
        let sum = fold(&block);
        short.encrypt_block(&mut block);
        let twice = fold(&block);
        short.decrypt_block(&mut block);
        sum ^ twice.rotate_left(9) ^ u64::from(fold(&block) == sum) ^ fold(&plain)
    }

    /// A stream of ChaCha20.
    fn chacha20(seed: u64) -> u64 {
        use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
        let mut key = [7u8; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut cipher = chacha20::ChaCha20::new(&key.into(), &[9u8; 12].into());
        let mut text = [0u8; 80];
        cipher.seek(seed % 300);
        cipher.apply_keystream(&mut text);
        fold(&text)
    }

    /// Products, inverses and powers modulo, of 256 bits, whose time does not depend on their values.
    fn crypto_bigint(seed: u64) -> u64 {
        use crypto_bigint::U256;
        let a = U256::from_words([seed, !seed, seed.rotate_left(7), seed >> 3]);
        let b = U256::from_words([seed ^ 0x55, 3, seed << 5, 1]);
        let sum = a.wrapping_mul(&b).wrapping_add(&b);
        let shifted = sum.shr_vartime((seed % 256) as u32);
        let text = shifted.to_be_bytes();
        fold(text.as_ref()) ^ u64::from(sum.bit_width()) ^ a.leading_zeros() as u64
    }

    /// A point of the curve secp256k1 times a number.
    fn k256(seed: u64) -> u64 {
        use k256::elliptic_curve::sec1::ToSec1Point;
        let scalar = k256::Scalar::from(seed | 1);
        let point = k256::ProjectivePoint::GENERATOR * scalar;
        let encoded = point.to_affine().to_sec1_point(true);
        fold(encoded.as_bytes())
    }
}
