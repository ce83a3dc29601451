//! The module's constants in constant bank 3: wide immediates and jump tables.
//!
//! Lowering asks for the place of an immediate that fits no instruction field and gets its final byte offset at once; equal content
//! gets one place. A jump table's entries are code offsets that are known when its function is emitted, so its place is reserved
//! first and filled then. Tables that the bank has no room for go to the module's data, in global memory.

use crate::abi::MAX_CONSTANTS;
use hashbrown::HashMap;
use thiserror::Error;

/// Name of the data object with the jump tables that the bank has no room for.
pub const TABLES: &str = "$jump_tables";

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
    /// Jump tables that the bank has no room for.
    tables: Vec<u8>,
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

    /// Reserves zeroed room for a jump table of so many entries: in the bank, or behind its end in the data object [`TABLES`]; see
    /// [`Constants::in_data`].
    ///
    /// # Errors
    /// When the tables of the module need more bytes than 32 bits can tell.
    pub fn reserve_table(&mut self, entries: usize) -> Result<u32, ConstantsFull> {
        let len = 4 * entries;
        self.reserve(len).or_else(|full| {
            let place = MAX_CONSTANTS as usize + self.tables.len();
            u32::try_from(place + len).map_err(|_| full)?;
            self.tables.resize(self.tables.len() + len, 0);
            Ok(place as u32)
        })
    }

    /// The offset in the data object [`TABLES`] of a place that [`Constants::reserve_table`] gave; none when it is in the bank.
    pub fn in_data(place: u32) -> Option<u32> {
        place.checked_sub(MAX_CONSTANTS)
    }

    /// Fills reserved room.
    ///
    /// # Panics
    /// When it is outside of what was reserved.
    pub fn fill(&mut self, place: u32, content: &[u8]) {
        let (area, offset) = match Self::in_data(place) {
            Some(offset) => (&mut self.tables, offset as usize),
            None => (&mut self.bytes, place as usize),
        };
        area[offset..offset + content.len()].copy_from_slice(content);
    }

    /// The contents of the data object [`TABLES`]; empty when it is not needed.
    pub fn tables(&self) -> &[u8] {
        &self.tables
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
    fn tables_without_room_in_the_bank_are_data() {
        let mut constants = Constants::new();
        let first = constants
            .reserve_table(MAX_CONSTANTS as usize / 4 - 1)
            .unwrap();
        let second = constants.reserve_table(2).unwrap();
        let third = constants.reserve_table(1).unwrap();
        let fourth = constants.reserve_table(3).unwrap();
        let places = [first, second, third, fourth].map(Constants::in_data);
        assert_eq!(places, [None, Some(0), None, Some(8)]);
        constants.fill(second + 4, &7u32.to_le_bytes());
        constants.fill(fourth + 8, &9u32.to_le_bytes());
        let words = [0, 7, 0, 0, 9u32].map(u32::to_le_bytes);
        assert_eq!(constants.tables(), words.as_flattened());
        assert_eq!(constants.bytes().len(), MAX_CONSTANTS as usize);
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
