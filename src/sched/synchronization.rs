//! What an instruction is to wait for and to signal.

/// Scoreboards of an instruction, as masks of one bit or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boards {
    /// Lowered when the results have arrived.
    pub write: u8,
    /// Lowered when the sources have been read.
    pub read: u8,
}

/// What an instruction waits for and signals, before stalls are cut to what fits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Synchronization {
    /// Cycles until the next instruction.
    pub stall: u16,
    /// Scoreboards that it waits for, as a mask.
    pub wait: u8,
    /// Scoreboards that it signals.
    pub boards: Boards,
}
