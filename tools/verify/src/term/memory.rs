//! Bytes of memory.

use super::{Operation, Sort, Term};

impl Term {
    /// The byte of a memory at an address.
    pub fn byte(self, address: Term) -> Term {
        let mut memory = self;
        while let Operation::Store(before, at, value) = memory.operation() {
            match at.equals(address).as_known() {
                Some(true) => return value,
                None if !differ_by_number(at, address) => break,
                Some(false) | None => memory = before,
            }
        }
        Term::make(Operation::Byte(memory, address), Sort::Bits(8))
    }

    /// A memory with a byte at an address.
    pub fn with_byte(self, address: Term, byte: Term) -> Term {
        if let Operation::Store(before, at, _) = self.operation()
            && at == address
        {
            return before.with_byte(address, byte);
        }
        Term::make(Operation::Store(self, address, byte), Sort::Memory)
    }
}

/// Whether two addresses are the same but for different numbers added.
fn differ_by_number(a: Term, b: Term) -> bool {
    matches!(a.minus(b).as_number(), Some(distance) if distance != 0)
        || match (a.operation(), b.operation()) {
            (Operation::Add(x, m), Operation::Add(y, n)) => {
                x == y && m != n && m.as_number().is_some() && n.as_number().is_some()
            }
            (Operation::Add(x, m), _) => x == b && m.as_number().is_some(),
            (_, Operation::Add(y, n)) => y == a && n.as_number().is_some(),
            _ => false,
        }
}
