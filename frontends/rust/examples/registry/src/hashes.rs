//! Hashes and sums.

use crate::bytes::{Bytes, fold};
use core::hash::Hasher;
use thisgpu_gpu::*;

functions! {
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

    /// FNV-1a.
    fn fnv(seed: u64) -> u64 {
        let mut hasher = fnv::FnvHasher::with_key(seed);
        hasher.write(Bytes::of(seed).as_slice());
        hasher.finish()
    }
}
