//! What coverage-guided engines run: a function of bytes for each way into the library.
//!
//! `fuzz/fuzz_targets` has a shim for each, which libFuzzer, AFL++ and OSS-Fuzz build; `tests/targets.rs` runs all of
//! them for a moment without an engine. A target returns when the library did what it should, errors included, and
//! panics with what is wrong otherwise. [`texts`] take what people write, [`binaries`] what tools hand over,
//! [`structured`] make a valid function or kernel of the bytes and compare it with an oracle or prove it, [`launches`]
//! launch kernels in any way. [`corpus`] has the inputs to begin with, and the words that are worth inserting.

pub mod binaries;
pub mod corpus;
pub mod launches;
pub mod structured;
pub mod texts;

/// A target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Of its shim, and of the folder of its corpus.
    pub name: &'static str,
    /// What it does with an input.
    pub run: fn(&[u8]),
    /// What its inputs are.
    pub input: Input,
}

/// What inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// CLIF, as test files have it.
    Clif,
    /// Assembly.
    Assembly,
    /// 128-bit words, little-endian.
    Words,
    /// An object file.
    Object,
    /// Two object files, one behind the other ([`binaries::two`]).
    Objects,
    /// An entry of a cache.
    Entry,
    /// Choices ([`crate::random::Random::of_bytes`]).
    Choices,
}

/// All targets.
pub const TARGETS: [Target; 11] = [
    Target {
        name: "clif",
        run: texts::clif,
        input: Input::Clif,
    },
    Target {
        name: "assembly",
        run: texts::assembly,
        input: Input::Assembly,
    },
    Target {
        name: "words",
        run: binaries::words,
        input: Input::Words,
    },
    Target {
        name: "object",
        run: binaries::object,
        input: Input::Object,
    },
    Target {
        name: "linking",
        run: binaries::linking,
        input: Input::Objects,
    },
    Target {
        name: "cache_entry",
        run: binaries::cache_entry,
        input: Input::Entry,
    },
    Target {
        name: "function",
        run: structured::function,
        input: Input::Choices,
    },
    Target {
        name: "launch",
        run: launches::launch,
        input: Input::Choices,
    },
    Target {
        name: "mutated",
        run: structured::mutated,
        input: Input::Choices,
    },
    Target {
        name: "proof",
        run: structured::proof,
        input: Input::Choices,
    },
    Target {
        name: "kernel",
        run: structured::kernel,
        input: Input::Choices,
    },
];
