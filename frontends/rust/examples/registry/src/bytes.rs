//! Inputs of bytes out of a number, and numbers out of bytes.

/// Up to 100 bytes that depend on a seed, as does how many.
pub struct Bytes {
    bytes: [u8; 100],
    len: usize,
}

impl Bytes {
    pub fn of(seed: u64) -> Bytes {
        let mut bytes = [0; 100];
        let mut state = seed;
        for byte in &mut bytes {
            state = state
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            *byte = (state >> 56) as u8;
        }
        Bytes {
            bytes,
            len: (seed % 101) as usize,
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A number that depends on every byte.
pub fn fold(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |sum, byte| {
        sum.wrapping_mul(0x0000_0100_0000_01b3) ^ u64::from(*byte)
    })
}
