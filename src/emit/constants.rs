//! What a function keeps in constant bank 3: wide numbers that are operands, and its jump tables; and what a module has
//! there, tables of data among them.
//!
//! Numbers are placed by lowering, as long as there is room. The entries of a jump table are code offsets that are
//! known when the function is emitted, so its place is reserved first and filled then. Jump tables that the bank has no
//! room for go to the module's data, in global memory. Places count from the start of the function's own constants;
//! where those stand among the module's is known when all functions are ([`Places`]), and relocations say which words
//! depend on it.

use crate::abi::MAX_CONSTANTS;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Name of the data object with the jump tables that the bank has no room for.
pub const JUMP_TABLES: &str = "$jump_tables";

/// Bytes of a number.
const NUMBER: u32 = 8;

/// Bytes of an entry of a jump table.
const ENTRY: usize = 4;

/// Numbers are placed only while the constants of a module have at most so many bytes, tables included (*assumed*):
/// they can be moved to registers as well, and constants of many objects that are linked have to fit together.
pub const MAX_NUMBERS: u32 = MAX_TABLES + 4096;

/// Most bytes of tables in the constant bank of a module (*assumed*, for the same reason).
pub const MAX_TABLES: u32 = 4096;

/// Name of the module's constants in relocations.
pub const CONSTANTS: &str = "$constants";

/// Constants need more bytes than there is room for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConstantsFull {
    /// Those in global memory.
    #[error("the jump tables need more than 4 GiB of global memory")]
    Data,
    /// Numbers and tables in the constant bank, of units that were compiled apart.
    #[error(
        "the constants of the units together need more than {MAX_CONSTANTS} bytes of constant memory; compile the \
         functions into one unit"
    )]
    Bank,
}

/// Constants of a function, or of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constants {
    bytes: Vec<u8>,
    /// Jump tables that the bank has no room for.
    jump_tables: Vec<u8>,
    /// Bytes that may be in the bank.
    room: u32,
    /// Bytes of the numbers, which come first.
    numbers: u32,
    /// Whether there was no room for a number.
    limited: bool,
}

impl Default for Constants {
    fn default() -> Self {
        Self::with_room(MAX_CONSTANTS)
    }
}

/// Where a function's constants stand among those of its module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Byte offset in the bank.
    pub bank: u32,
    /// Byte offset in the data object [`JUMP_TABLES`].
    pub data: u32,
}

impl Constants {
    /// None yet, and room for as many as the bank holds.
    #[cfg(test)]
    pub fn new() -> Self {
        Self::default()
    }

    /// None yet, and room for so many bytes in the bank.
    pub fn with_room(room: u32) -> Self {
        Self {
            bytes: Vec::new(),
            jump_tables: Vec::new(),
            room,
            numbers: 0,
            limited: false,
        }
    }

    /// Whether there is room for another number; if not, that is remembered.
    pub fn has_room_for_number(&mut self) -> bool {
        let has_room = self.numbers_fit(self.room, self.numbers + NUMBER);
        self.limited |= !has_room;
        has_room
    }

    /// Adds a number of 64 bits, at a multiple of 8; none if there is no room for it. Numbers come before tables.
    pub fn add_number(&mut self, bits: u64) -> Option<u32> {
        if !self.has_room_for_number() || self.bytes.len() as u32 != self.numbers {
            return None;
        }
        self.bytes.extend_from_slice(&bits.to_le_bytes());
        let place = self.numbers;
        self.numbers += NUMBER;
        Some(place)
    }

    /// Whether so many bytes of numbers fit where a module has `room` left.
    fn numbers_fit(&self, room: u32, bytes: u32) -> bool {
        bytes <= room && MAX_CONSTANTS - room.min(MAX_CONSTANTS) + bytes <= MAX_NUMBERS
    }

    /// Whether the function would have been given the same where a module has `room` left.
    pub fn fits(&self, room: u32) -> bool {
        let numbers = self.numbers == 0 || self.numbers_fit(room, self.numbers);
        !self.limited && numbers && self.bank_bytes() <= room
    }

    /// Bytes of the bank that it takes at most, behind another function's.
    pub fn bank_bytes(&self) -> u32 {
        let padding = self.align() as u32 - ENTRY as u32;
        match self.bytes.len() as u32 {
            0 => 0,
            bytes => bytes + padding,
        }
    }

    /// What its start is aligned to.
    fn align(&self) -> usize {
        match self.numbers {
            0 => ENTRY,
            _ => NUMBER as usize,
        }
    }

    /// Reserves zeroed room for a jump table of so many entries: in the bank, or behind its end in the data object
    /// [`JUMP_TABLES`]; see [`Constants::in_data`].
    ///
    /// # Errors
    /// When the tables of the function need more bytes than 32 bits can tell.
    pub fn reserve_jump_table(&mut self, entries: usize) -> Result<u32, ConstantsFull> {
        let len = 4 * entries;
        let (place, area) = if self.bytes.len() + len <= self.room as usize {
            (self.bytes.len(), &mut self.bytes)
        } else {
            (
                MAX_CONSTANTS as usize + self.jump_tables.len(),
                &mut self.jump_tables,
            )
        };
        u32::try_from(place + len).map_err(|_| ConstantsFull::Data)?;
        area.resize(area.len() + len, 0);
        Ok(place as u32)
    }

    /// The offset in the data object [`JUMP_TABLES`] of a place that [`Constants::reserve_jump_table`] gave; none when
    /// it is in the bank.
    pub fn in_data(place: u32) -> Option<u32> {
        place.checked_sub(MAX_CONSTANTS)
    }

    /// Fills reserved room.
    ///
    /// # Panics
    /// When it is outside of what was reserved.
    pub fn fill(&mut self, place: u32, content: &[u8]) {
        let (area, offset) = match Self::in_data(place) {
            Some(offset) => (&mut self.jump_tables, offset as usize),
            None => (&mut self.bytes, place as usize),
        };
        area[offset..offset + content.len()].copy_from_slice(content);
    }

    /// Adds the constants of a function behind these.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn append(&mut self, function: &Constants) -> Result<Places, ConstantsFull> {
        let start = match function.bytes.is_empty() {
            true => self.bytes.len(),
            false => self.bytes.len().next_multiple_of(function.align()),
        };
        let places = Places {
            bank: start as u32,
            data: self.jump_tables.len() as u32,
        };
        if start + function.bytes.len() > self.room as usize {
            return Err(ConstantsFull::Bank);
        }
        let end = MAX_CONSTANTS as usize + self.jump_tables.len() + function.jump_tables.len();
        u32::try_from(end).map_err(|_| ConstantsFull::Data)?;
        self.bytes.resize(start, 0);
        self.bytes.extend_from_slice(&function.bytes);
        self.jump_tables.extend_from_slice(&function.jump_tables);
        Ok(places)
    }

    /// Adds the bytes of a table, and gives their place in the bank.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn append_table(&mut self, content: &[u8], align: u32) -> Result<u32, ConstantsFull> {
        let start = self.bytes.len().next_multiple_of(align as usize);
        if start + content.len() > self.room as usize {
            return Err(ConstantsFull::Bank);
        }
        self.bytes.resize(start, 0);
        self.bytes.extend_from_slice(content);
        Ok(start as u32)
    }

    /// The contents of the data object [`JUMP_TABLES`]; empty when it is not needed.
    pub fn jump_tables(&self) -> &[u8] {
        &self.jump_tables
    }

    /// The contents of the bank.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_room_in_the_bank_are_data() {
        let mut constants = Constants::with_room(40);
        let places = [9, 2, 1, 3].map(|entries| constants.reserve_jump_table(entries).unwrap());
        assert_eq!(
            places.map(Constants::in_data),
            [None, Some(0), None, Some(8)]
        );
        constants.fill(places[0] + 4, &5u32.to_le_bytes());
        constants.fill(places[1] + 4, &7u32.to_le_bytes());
        constants.fill(places[3] + 8, &9u32.to_le_bytes());
        let words = [0, 7, 0, 0, 9u32].map(u32::to_le_bytes);
        assert_eq!(constants.jump_tables(), words.as_flattened());
        assert_eq!(constants.bytes().len(), 40);
        assert_eq!(constants.bytes()[4..8], 5u32.to_le_bytes());
    }

    #[test]
    fn wide_numbers_are_aligned_while_there_is_room() {
        let used = MAX_NUMBERS - 20;
        let mut constants = Constants::with_room(MAX_CONSTANTS - used);
        let number = 0x1122_3344_5566_7788;
        assert_eq!(constants.add_number(number), Some(0));
        assert_eq!(constants.bytes(), number.to_le_bytes());
        assert!(constants.fits(MAX_CONSTANTS) && !constants.fits(MAX_CONSTANTS - MAX_NUMBERS));
        assert_eq!(constants.add_number(2), Some(8));
        assert_eq!(constants.add_number(3), None);
        assert!(!constants.fits(MAX_CONSTANTS), "one had no room");
        let mut module = Constants::new();
        let mut table = Constants::new();
        table.reserve_jump_table(3).unwrap();
        module.append(&table).unwrap();
        let behind = Places { bank: 16, data: 0 };
        assert_eq!(module.append(&constants), Ok(behind));
    }

    #[test]
    fn functions_stand_one_behind_the_other() {
        let mut module = Constants::new();
        let mut function = Constants::with_room(8);
        function.reserve_jump_table(2).unwrap();
        function.reserve_jump_table(3).unwrap();
        assert_eq!(module.append(&function), Ok(Places::default()));
        let second = Places { bank: 8, data: 12 };
        assert_eq!(module.append(&function), Ok(second));
        assert_eq!((module.bytes().len(), module.jump_tables().len()), (16, 24));
        let mut large = Constants::new();
        large
            .reserve_jump_table(MAX_CONSTANTS as usize / 4 - 3)
            .unwrap();
        assert_eq!(module.append(&large), Err(ConstantsFull::Bank));
    }
}
