//! What the pure instructions compute: one function per optype, from modifiers and source values to results.
//!
//! A function knows nothing of registers, lanes, guards or memory. The device reads the sources, applies the `!` of
//! predicates, calls the function of the optype once per active lane, and writes the results. Instructions whose result
//! depends on more than their own sources (R2UR, GETGPR, SETGPR, memory, control) are the device's and have no function
//! here.
//!
//! Operations of bit vectors are functions of words of any kind ([`crate::bits`]): the simulator runs them on `u32`, and
//! whoever has terms that stand for any number gets a formula from the same functions. Operations that round
//! floating-point numbers are functions of the host's numbers.
//!
//! The functions are the project's reference for the documents: where those contradict themselves the function's
//! comment names the reading taken. Arithmetic is exact: every floating-point operation rounds once. Files follow the
//! families of the documents.

pub mod compare;
mod convert;
#[cfg(feature = "unstable")]
mod dispatch;
mod float;
mod float_convert;
mod half;
mod integer;
mod logic;
pub mod round_to_odd;
mod shift;
pub mod softfloat;
mod special;
#[cfg(test)]
pub(crate) mod tests;
pub mod transcendental;
mod uniform;

pub use crate::isa::generated as operands;
#[cfg(feature = "unstable")]
pub use dispatch::evaluate;

use crate::bits::Word;
use operands::*;

/// The project's semantics of the pure instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// Readings of the documents that a user can choose.
    pub readings: Readings,
    /// A seed that moves the results of approximate instructions within their assumed accuracy
    /// ([`transcendental::accuracy`]); none for the nearest results. Exact instructions do not change.
    pub perturbation: Option<u64>,
}

/// Where the documents leave an either/or: what is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// What BREV does.
    pub brev: BrevReading,
    /// The unit of the argument of MUFU.SIN and MUFU.COS.
    pub angle: AngleUnit,
}

/// What BREV does (document 003: the text says complement, the mnemonic says bit reversal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrevReading {
    /// `~b`, as documented.
    #[default]
    Complement,
    /// The bits of `b` in reverse order.
    Reverse,
}

/// The unit of an angle (document 003 does not say).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AngleUnit {
    /// A full circle is 2π.
    #[default]
    Radians,
    /// A full circle is 1.
    Turns,
}

/// [`Reference`] on a host that has an instruction for a multiplication and addition in one, which rounds once as FFMA
/// does: the same results sooner.
#[derive(Clone, Copy, Debug)]
pub struct Fused(pub Reference);

/// Implements [`Semantics`] and [`FloatingSemantics`] by the functions of the family files.
macro_rules! semantics {
    (
        bits { $($family:ident: $($name:ident)*;)* }
        floating { $($floating_family:ident: $($floating:ident)*;)* }
    ) => {
        impl<W: Word> Semantics<W> for Reference {
            $($(
                #[inline(always)]
                fn $name(&self, m: &$name::Modifiers, s: &$name::Sources<W>) -> $name::Results<W> {
                    $family::$name(m, s)
                }
            )*)*

            fn nop(&self, _: &nop::Modifiers, _: &nop::Sources) -> nop::Results {
                nop::Results {}
            }

            fn brev(&self, m: &brev::Modifiers, s: &brev::Sources<W>) -> brev::Results<W> {
                special::brev(self.readings.brev, m, s)
            }
        }

        impl FloatingSemantics for Reference {
            $($(
                #[inline(always)]
                fn $floating(&self, m: &$floating::Modifiers, s: &$floating::Sources) -> $floating::Results {
                    $floating_family::$floating(m, s)
                }
            )*)*

            #[inline(always)]
            fn ffma(&self, m: &ffma::Modifiers, s: &ffma::Sources) -> ffma::Results {
                float::ffma(m, s)
            }

            #[inline(always)]
            fn mufu(&self, m: &mufu::Modifiers, s: &mufu::Sources) -> mufu::Results {
                transcendental::mufu(self.readings.angle, self.perturbation, m, s)
            }
        }

        impl Semantics for Fused {
            $($(
                #[inline(always)]
                fn $name(&self, m: &$name::Modifiers, s: &$name::Sources) -> $name::Results {
                    self.0.$name(m, s)
                }
            )*)*

            fn nop(&self, m: &nop::Modifiers, s: &nop::Sources) -> nop::Results {
                Semantics::<u32>::nop(&self.0, m, s)
            }

            fn brev(&self, m: &brev::Modifiers, s: &brev::Sources) -> brev::Results {
                self.0.brev(m, s)
            }
        }

        impl FloatingSemantics for Fused {
            $($(
                #[inline(always)]
                fn $floating(&self, m: &$floating::Modifiers, s: &$floating::Sources) -> $floating::Results {
                    self.0.$floating(m, s)
                }
            )*)*

            #[inline(always)]
            fn ffma(&self, m: &ffma::Modifiers, s: &ffma::Sources) -> ffma::Results {
                float::ffma_by(m, s, f32::mul_add)
            }

            #[inline(always)]
            fn mufu(&self, m: &mufu::Modifiers, s: &mufu::Sources) -> mufu::Results {
                self.0.mufu(m, s)
            }
        }
    };
}

semantics! {
    bits {
        integer: iadd imad imad_wide idp2a idp4a imul lea iabs imnmx;
        logic: p2r r2p isetp iset sel lop3 plop3;
        shift: shf mov prmt bmsk sgxt;
        convert: i2i i2ip;
        special: popc flo;
        compare: hmnmx2 hsetp2 hset2 fmnmx fsetp fset fsel dsetp dmnmx;
        uniform: uldc umov uiadd uimad uimad_wide ushf ushf_64 ulop3 ulea umnmx usel uisetp;
    }
    floating {
        half: hadd2 hmul2 hfma2;
        float: fadd fmul dadd dmul dfma;
        float_convert: f2f f2fp f2i i2f frnd;
    }
}
