//! The frame that allocated code must have, from what [`Frame`](crate::vcode::Frame) says of it.

use super::location::StorageLocation;
use crate::vcode::{Frame, SymbolUse};
use std::ops::Range;

/// Alignment of R1 and of the areas in bytes.
const ALIGNMENT: u32 = crate::abi::STACK_ALIGNMENT;

/// Offsets from R1 between prologue and epilogue.
pub(in crate::regalloc) struct Layout {
    /// Bytes that are the allocator's: spilled values and saved registers.
    area: Range<u32>,
    /// The first stack slot.
    slots: u32,
    /// Size of the frame, by which R1 moves.
    pub size: u32,
}

impl Layout {
    /// The layout of a frame that was `before` when registers were still virtual.
    ///
    /// # Errors
    /// When more has changed than the spill area.
    pub fn new(before: &Frame, after: &Frame) -> Result<Layout, String> {
        let outgoing = after.outgoing_bytes.next_multiple_of(ALIGNMENT);
        let slots = outgoing + after.spill_bytes.next_multiple_of(ALIGNMENT);
        let mut expected = before.clone();
        expected.spill_bytes = after.spill_bytes;
        for offset in expected.slots.iter_mut().flatten() {
            *offset += slots;
        }
        for zone in &mut expected.redzones {
            zone.offset += slots;
        }
        if *after != expected || after.spill_bytes < before.spill_bytes {
            return Err(format!("the frame is {after:?} and was {before:?}"));
        }
        Ok(Layout {
            area: outgoing + before.spill_bytes..slots,
            slots,
            size: (slots + after.slot_bytes).next_multiple_of(ALIGNMENT),
        })
    }

    /// The offset from R1 of a word of the area.
    pub fn offset_of(&self, place: StorageLocation) -> u32 {
        self.area.start + 4 * place.area_word().unwrap_or_default()
    }

    /// Words of the area.
    pub fn words(&self) -> u32 {
        (self.area.end - self.area.start) / 4
    }

    /// The places at `offset` from R1.
    ///
    /// # Errors
    /// When they are not all in the area, or not aligned to their size.
    pub fn places(
        &self,
        offset: u64,
        words: usize,
    ) -> Result<impl Iterator<Item = StorageLocation> + use<>, String> {
        let bytes = 4 * words as u64;
        let inside = offset >= u64::from(self.area.start)
            && offset.saturating_add(bytes) <= u64::from(self.area.end);
        if !inside || !offset.is_multiple_of(bytes.max(4)) {
            return Err(format!(
                "{bytes} bytes at {offset:#x} do not lie aligned in the spill area {:#x?}",
                self.area
            ));
        }
        let first = (offset as u32 - self.area.start) / 4;
        Ok((first..first + words as u32).map(StorageLocation::word))
    }

    /// Whether an access of the function at `offset` from R1 touches what is the allocator's.
    pub fn touches(&self, offset: u64, words: usize) -> bool {
        offset < u64::from(self.area.end) && offset + 4 * words as u64 > u64::from(self.area.start)
    }

    /// The offset that stands for a symbol of the frame.
    pub fn offset(&self, symbol: &SymbolUse) -> Option<i64> {
        let base = match symbol.name.as_str() {
            Frame::SLOTS => self.slots,
            Frame::INCOMING => self.size,
            _ => return None,
        };
        Some(i64::from(base) + symbol.addend)
    }
}
