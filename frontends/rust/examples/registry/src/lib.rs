//! Crates from the registry, unmodified, in kernels: sixty, by what they are for; what `core` and `alloc` have
//! themselves; and a small interpreter.
//!
//! Each function takes a number and gives one: what it does in between is a crate's business. The host calls the same
//! functions, so that both can be compared.

#![no_std]

extern crate alloc;

mod bytes;
mod interpreter;

/// A kernel for each function, one input a thread, and a list for the host.
macro_rules! functions {
    ($($(#[$documentation:meta])* fn $name:ident($seed:ident: u64) -> u64 $body:block)*) => {
        /// The functions of this family.
        pub const FUNCTIONS: &[crate::Named] = &[$((stringify!($name), functions::$name)),*];

        mod functions {
            #[allow(unused_imports, reason = "not all families name something of their own")]
            use super::*;
            $(
                $(#[$documentation])*
                #[inline]
                pub fn $name($seed: u64) -> u64 $body
            )*
        }

        $(
            $(#[$documentation])*
            #[kernel]
            pub fn $name(inputs: &[u64], mut outputs: DisjointMut<u64>) {
                let thread = thread::global_id();
                if let (Some(input), Some(output)) = (inputs.get(thread), outputs.thread_mut()) {
                    *output = functions::$name(*input);
                }
            }
        )*
    };
}

pub mod arithmetic;
pub mod codecs;
pub mod collections;
pub mod crypto;
pub mod hashes;
pub mod library;
pub mod linear;
pub mod text;

/// A function by its name.
pub type Named = (&'static str, fn(u64) -> u64);

/// The functions as the host calls them.
pub const FUNCTIONS: &[&[Named]] = &[
    arithmetic::FUNCTIONS,
    codecs::FUNCTIONS,
    collections::FUNCTIONS,
    crypto::FUNCTIONS,
    hashes::FUNCTIONS,
    library::FUNCTIONS,
    linear::FUNCTIONS,
    text::FUNCTIONS,
];
