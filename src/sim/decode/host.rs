//! The host's vector instructions that lane loops are compiled for.
//!
//! Results do not depend on them: what a host does otherwise than the portable code is exact in both, and tests hold
//! one against the other.

use crate::isa::generated::Semantics;
use crate::sim::semantics::{Fused, Reference};

/// Which instructions of the host lane loops may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simd {
    /// The best that this host has.
    #[default]
    Auto,
    /// AVX2 and FMA at most.
    Avx2,
    /// Those that every host of its architecture has: the reference.
    Portable,
}

/// Instructions that a loop is compiled for.
pub trait Host: Copy + Send + Sync + 'static {
    /// What operations mean, by the instructions that the host has for it.
    type Semantics: Semantics;
    /// The semantics from the reference.
    fn semantics(reference: &Reference) -> Self::Semantics;
    /// Runs code with these instructions; it has to be inlined for that.
    fn run<R>(self, code: impl FnOnce() -> R) -> R;
}

/// Code for every host.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Host for Portable {
    type Semantics = Reference;

    #[inline(always)]
    fn semantics(reference: &Reference) -> Reference {
        *reference
    }

    #[inline(always)]
    fn run<R>(self, code: impl FnOnce() -> R) -> R {
        code()
    }
}

/// AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Wide(pulp::x86::V3);

/// AVX-512: masks of lanes are registers of the host.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub struct Widest(pulp::x86::V4);

#[cfg(target_arch = "x86_64")]
impl Widest {
    /// Less of it.
    pub fn wide(self) -> Wide {
        Wide(*self.0)
    }
}

/// Code that is inlined where it is called.
#[cfg(target_arch = "x86_64")]
struct Inlined<F>(F);

#[cfg(target_arch = "x86_64")]
impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Inlined<F> {
    type Output = R;

    #[inline(always)]
    fn call(self) -> R {
        (self.0)()
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! vector_host {
    ($($name:ident)*) => {
        $(impl Host for $name {
            type Semantics = Fused;

            #[inline(always)]
            fn semantics(reference: &Reference) -> Fused {
                Fused(*reference)
            }

            #[inline(always)]
            fn run<R>(self, code: impl FnOnce() -> R) -> R {
                self.0.vectorize(Inlined(code))
            }
        })*
    };
}
#[cfg(target_arch = "x86_64")]
vector_host!(Wide Widest);

/// What this host has of them.
#[derive(Clone, Copy, Debug)]
pub enum Detected {
    /// Nothing that counts, or nothing that is wanted.
    Portable,
    /// [`Wide`].
    #[cfg(target_arch = "x86_64")]
    Wide(Wide),
    /// [`Widest`].
    #[cfg(target_arch = "x86_64")]
    Widest(Widest),
}

impl Detected {
    /// As wanted.
    pub fn new(simd: Simd) -> Detected {
        match simd {
            Simd::Portable => Detected::Portable,
            Simd::Avx2 => Detected::avx2(),
            Simd::Auto => Detected::best(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn best() -> Detected {
        let widest = pulp::x86::V4::try_new().map(|found| Detected::Widest(Widest(found)));
        widest.unwrap_or_else(Detected::avx2)
    }

    #[cfg(target_arch = "x86_64")]
    fn avx2() -> Detected {
        let wide = pulp::x86::V3::try_new().map(|found| Detected::Wide(Wide(found)));
        wide.unwrap_or(Detected::Portable)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn best() -> Detected {
        Detected::Portable
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn avx2() -> Detected {
        Detected::Portable
    }

    /// Runs code with these instructions; it has to be inlined for that.
    #[inline(always)]
    pub fn run<R>(self, code: impl FnOnce() -> R) -> R {
        match self {
            Detected::Portable => code(),
            #[cfg(target_arch = "x86_64")]
            Detected::Wide(host) => host.run(code),
            #[cfg(target_arch = "x86_64")]
            Detected::Widest(host) => host.run(code),
        }
    }
}
