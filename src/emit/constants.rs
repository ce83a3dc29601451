//! The module's constants in constant bank 3: wide immediates and jump tables.
//!
//! Lowering asks for the place of an immediate that fits no instruction field and gets its final byte offset at once; equal content
//! gets one place. A jump table's entries are code offsets that are known when its function is emitted, so its place is reserved
//! first and filled then.

use crate::abi::MAX_CONSTANTS;
use hashbrown::HashMap;
use thiserror::Error;

/// The constants of a module need more than [`MAX_CONSTANTS`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the constants and jump tables of the module need more than {MAX_CONSTANTS} bytes of constant memory"
)]
pub struct ConstantsFull;

/// Contents of constant bank 3.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constants {
    bytes: Vec<u8>,
    /// Place of every naturally aligned piece of 4, 8 or 16 bytes of what was interned, and of longer contents as a whole.
    places: HashMap<Box<[u8]>, u32>,
}

impl Constants {
    /// An empty bank.
    pub fn new() -> Self {
        Self::default()
    }

    /// The byte offset at which `content` stands, aligned to its length rounded up to a power of two (at least 4, at most 16).
    ///
    /// # Errors
    /// When the bank is full.
    pub fn intern(&mut self, content: &[u8]) -> Result<u32, ConstantsFull> {
        if let Some(&place) = self.places.get(content) {
            return Ok(place);
        }
        let place = self.append(content.len(), alignment(content.len()))?;
        self.bytes[place as usize..place as usize + content.len()].copy_from_slice(content);
        self.places.insert(content.into(), place);
        for size in [4, 8, 16] {
            for (i, piece) in content.chunks_exact(size).enumerate() {
                let offset = place + (i * size) as u32;
                if offset.is_multiple_of(size as u32) {
                    self.places.entry(piece.into()).or_insert(offset);
                }
            }
        }
        Ok(place)
    }

    /// Reserves zeroed room for `len` bytes, aligned to 4, to be filled by [`Constants::fill`].
    ///
    /// # Errors
    /// When the bank is full.
    pub fn reserve(&mut self, len: usize) -> Result<u32, ConstantsFull> {
        self.append(len, 4)
    }

    /// Fills reserved room.
    ///
    /// # Panics
    /// When it is outside of what was reserved.
    pub fn fill(&mut self, offset: u32, content: &[u8]) {
        self.bytes[offset as usize..offset as usize + content.len()].copy_from_slice(content);
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn append(&mut self, len: usize, align: usize) -> Result<u32, ConstantsFull> {
        let place = self.bytes.len().next_multiple_of(align);
        if place + len > MAX_CONSTANTS as usize {
            return Err(ConstantsFull);
        }
        self.bytes.resize(place + len, 0);
        Ok(place as u32)
    }
}

fn alignment(len: usize) -> usize {
    len.next_power_of_two().clamp(4, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_shares_a_place_and_pieces_are_found() {
        let mut constants = Constants::new();
        let a = constants.intern(&7u64.to_le_bytes()).unwrap();
        let b = constants.intern(&u128::MAX.to_le_bytes()).unwrap();
        assert_eq!((a, b), (0, 16));
        assert_eq!(constants.intern(&7u64.to_le_bytes()), Ok(a));
        assert_eq!(constants.intern(&7u32.to_le_bytes()), Ok(a));
        assert_eq!(constants.intern(&0u32.to_le_bytes()), Ok(a + 4));
        assert_eq!(constants.intern(&u64::MAX.to_le_bytes()), Ok(b));
        let table = constants.reserve(12).unwrap();
        constants.fill(table + 4, &5u32.to_le_bytes());
        assert_eq!(
            &constants.bytes()[table as usize..],
            [0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]
        );
    }

    #[test]
    fn a_full_bank_is_an_error() {
        let mut constants = Constants::new();
        constants.reserve(MAX_CONSTANTS as usize - 4).unwrap();
        assert_eq!(constants.intern(&1u64.to_le_bytes()), Err(ConstantsFull));
        assert!(constants.intern(&1u32.to_le_bytes()).is_ok());
        assert_eq!(constants.reserve(1), Err(ConstantsFull));
    }
}
