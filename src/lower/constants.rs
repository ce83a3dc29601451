//! The immediates that a block holds in registers.

use crate::isa::VReg;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Immediates with their registers, in the order in which they were asked for. Most blocks have few, which a list finds
/// fastest.
#[derive(Clone, Default)]
pub(super) struct Constants {
    list: SmallVec<[(u32, VReg); 4]>,
    /// The registers by value, once the list is long.
    index: Option<Box<HashMap<u32, VReg>>>,
}

/// Longest list without an index.
const SHORT: usize = 16;

impl Constants {
    /// The register that holds a value.
    pub fn get(&self, value: u32) -> Option<VReg> {
        match &self.index {
            Some(index) => index.get(&value).copied(),
            None => self.list.iter().find(|c| c.0 == value).map(|c| c.1),
        }
    }

    /// Adds a value that is not there.
    pub fn push(&mut self, value: u32, reg: VReg) {
        self.list.push((value, reg));
        match &mut self.index {
            Some(index) => {
                index.insert(value, reg);
            }
            None if self.list.len() > SHORT => {
                self.index = Some(Box::new(self.list.iter().copied().collect()));
            }
            None => {}
        }
    }
}

impl IntoIterator for Constants {
    type Item = (u32, VReg);
    type IntoIter = smallvec::IntoIter<[(u32, VReg); 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::RegisterClass;

    #[test]
    fn short_and_long_lists_find_the_same() {
        let reg = |n: u32| VReg::new(RegisterClass::Gpr, n);
        let mut constants = Constants::default();
        for n in 0..3 * SHORT as u32 {
            assert_eq!(constants.get(7 * n), None);
            constants.push(7 * n, reg(n));
            for m in 0..=n {
                assert_eq!(constants.get(7 * m), Some(reg(m)));
            }
        }
        assert!(
            constants
                .into_iter()
                .eq((0..3 * SHORT as u32).map(|n| (7 * n, reg(n))))
        );
    }
}
