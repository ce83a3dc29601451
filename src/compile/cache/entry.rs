//! An entry as bytes: what it holds, with its key and a checksum.

use super::CacheKey;
use super::key::HASH_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

/// First bytes of an entry; the last one is the version of its layout.
const MAGIC: &[u8; 8] = b"tgcache\x01";

/// The bytes of an entry: magic, checksum of the rest, key, contents.
pub(super) fn encode(
    key: &CacheKey,
    contents: &impl Serialize,
) -> Result<Vec<u8>, rmp_serde::encode::Error> {
    let contents = rmp_serde::to_vec(&(key.0, contents))?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(Sha256::digest(&contents));
    bytes.extend(contents);
    Ok(bytes)
}

/// The contents of an entry; none if it is not what it should be.
pub(super) fn decode<C: DeserializeOwned>(bytes: &[u8], key: &CacheKey) -> Option<C> {
    let (checksum, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_BYTES)?;
    if Sha256::digest(rest)[..] != *checksum {
        return None;
    }
    let (found, contents): ([u8; HASH_BYTES], C) = rmp_serde::from_slice(rest).ok()?;
    (found == key.0).then_some(contents)
}
