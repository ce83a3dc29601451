//! Addresses of accesses: which byte of memory each of their bytes is.

use crate::term::Term;
use cranelift_thisgpu::unstable::abi::SHARED_WINDOW;

/// The address of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// 64 bits that say where in all of memory.
    Generic(Term),
    /// 32 bits that say where in the block's shared memory, modulo 2^32.
    Shared(Term),
}

impl Address {
    /// The generic address of a byte of the access.
    fn byte(self, index: u32) -> Term {
        match self {
            Address::Generic(first) => first.plus(Term::number(index.into(), 64)),
            Address::Shared(first) => {
                let offset = first.plus(Term::number(index.into(), 32));
                offset
                    .zero_extended(64)
                    .plus(Term::number(SHARED_WINDOW.into(), 64))
            }
        }
    }

    /// So many bytes of a memory, the lowest first.
    pub fn load(self, memory: Term, bytes: u32) -> Term {
        let byte = |i: u32| memory.byte(self.byte(i));
        (1..bytes).fold(byte(0), |low, i| byte(i).above(low))
    }

    /// A memory with a value here, the lowest byte first.
    pub fn store(self, memory: Term, value: Term) -> Term {
        (0..value.width() / 8).fold(memory, |memory, i| {
            memory.with_byte(self.byte(i), value.part(8 * i, 8))
        })
    }
}
