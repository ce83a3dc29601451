//! Groups of values that are computed from each other: what each adds, and what it saves.

use super::search::Search;
use crate::isa::VReg;

/// Registers in groups, by the number of one of each group.
struct Groups(Vec<u32>);

impl Groups {
    fn find(&mut self, reg: VReg) -> u32 {
        let mut at = reg.index() as u32;
        while self.0[at as usize] != at {
            let up = self.0[self.0[at as usize] as usize];
            self.0[at as usize] = up;
            at = up;
        }
        at
    }

    fn join(&mut self, mut regs: impl Iterator<Item = VReg>) {
        let Some(first) = regs.next() else { return };
        for reg in regs {
            let (a, b) = (self.find(first), self.find(reg));
            self.0[b as usize] = a;
        }
    }
}

impl Search<'_> {
    /// Drops groups that take more instructions than in general registers.
    pub fn drop_losing_groups(&mut self) {
        if !self.kept.contains(&true) {
            return;
        }
        let before = self.stays_without_offers();
        let mut groups = Groups((0..self.needed.len() as u32).collect());
        for (offer, _) in self
            .offers
            .iter()
            .zip(&self.kept)
            .filter(|(_, kept)| **kept)
        {
            groups.join(offer.general.iter().chain(&offer.uniform).copied());
        }
        // More instructions, and fewer, by instruction.
        let change = |index: usize| i32::from(self.stays[index]) - i32::from(before[index]);
        for (index, entry) in self.code.insts.iter().enumerate() {
            let inst = &entry.inst;
            let own = |reg: &VReg| match change(index) {
                0 => false,
                1 => true,
                // What others read too belongs to nobody.
                _ => !self.needed[reg.index()],
            };
            groups.join(inst.definitions().chain(inst.uses()).filter(own));
        }
        let mut losses = vec![0; self.needed.len()];
        for (index, entry) in self.code.insts.iter().enumerate() {
            if let Some(reg) = entry.inst.definitions().next() {
                losses[groups.find(reg) as usize] += change(index);
            }
        }
        for number in 0..self.offers.len() {
            let first = self.offers[number].uniform[0];
            if self.kept[number] && losses[groups.find(first) as usize] > 0 {
                self.drop(number);
            }
        }
    }
}
