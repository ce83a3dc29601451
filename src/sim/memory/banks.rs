//! Constant memory: the banks of a launch.

use super::little_endian;
use crate::launch::FaultKind;

/// Constant banks that an instruction can name: 5 bits of its operand (assigned).
pub const BANKS: usize = 32;

/// The constant banks of a launch.
#[derive(Clone, Debug, Default)]
pub struct Banks {
    /// By number; a bank that is not there is empty.
    pub banks: [Vec<u8>; BANKS],
}

impl Banks {
    /// What a launch has: the bank of its parameters, and that of the module's constants.
    pub fn of_launch(parameters: Vec<u8>, constants: Vec<u8>) -> Banks {
        let mut banks = Banks::default();
        banks.banks[usize::from(crate::abi::LAUNCH_BANK)] = parameters;
        banks.banks[usize::from(crate::abi::CONSTANT_BANK)] = constants;
        banks
    }

    /// `bytes` at an offset of a bank.
    ///
    /// # Errors
    /// Out of bounds or misaligned.
    #[inline]
    pub fn load(&self, bank: u8, offset: u64, bytes: u32) -> Result<u128, FaultKind> {
        if offset & u64::from(bytes - 1) != 0 {
            return Err(FaultKind::ConstantMisaligned {
                bank,
                offset,
                bytes,
            });
        }
        match self.banks.get(usize::from(bank)) {
            Some(data) if offset.saturating_add(u64::from(bytes)) <= data.len() as u64 => {
                Ok(little_endian(data, offset as usize, bytes))
            }
            _ => Err(FaultKind::ConstantOutOfBounds {
                bank,
                offset,
                bytes,
            }),
        }
    }
}
