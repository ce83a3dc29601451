//! What the project's own tools and tests need of the inside, and users do not: **no promises are made about it**.
//! The feature `unstable`, off by default, adds it.
//!
//! The stages, instructions and parts of the simulator are private; the items below are those that `clif-util`, the
//! benchmark, the fuzzer and the tests of the passes take. They change with the passes, in any version. Whoever finds
//! something here that a compiler needs should ask for it at the crate root.

/// Registers and places of the calling convention.
pub mod abi {
    pub use crate::abi::{
        CALLEE_SAVED, CONSTANT_BANK, Place, Placer, RETURN_ADDRESS, SHARED_WINDOW, STACK_POINTER,
        parameter_offsets,
    };
}

/// Facts about functions of CLIF.
pub mod analysis {
    pub use crate::analysis::Facts;
}

/// The assembler in parts: tokens of a text, what a line of them says.
#[cfg(feature = "asm")]
pub mod asm {
    /// Tokens.
    pub mod lexer {
        pub use crate::asm::lexer::{Token, TokenKind, tokens};
    }

    /// The tokens of a line.
    pub mod line {
        pub use crate::asm::line::{Line, Parsed};
    }

    /// Names of registers.
    pub mod name {
        pub use crate::asm::name::{File, RegisterName};
    }

    /// Operands as written.
    pub mod operand {
        pub use crate::asm::operand::{Offset, Operand, RegisterText, Value};
    }

    /// Instructions as written.
    pub mod syntax {
        pub use crate::asm::syntax::{Guard, Written};
    }
}

/// Steps on CLIF before selection, comments of test files.
pub mod clif {
    pub use crate::clif::{Options, Prepared, Preparer};

    /// Texts as test files have them.
    pub mod source {
        pub use crate::clif::source::{Header, HeaderLine, RunLine, SourceComment};
    }
}

/// What messages are made of.
pub mod text {
    pub use crate::text::{count, did_you_mean, line_starts, list, near};
}

/// Machine code before it is an object.
pub mod emit {
    pub use crate::emit::{Code, Constants, Resources};
}

/// Control bits in finished words.
pub mod hazards {
    /// Control bits that do not suffice.
    pub mod verify {
        pub use crate::hazards::verify::{Hazard, HazardKind, verify};
    }

    /// Waits that nothing needs.
    pub mod redundancy {
        pub use crate::hazards::redundancy::{Redundancy, RedundancyKind, redundancies};
    }
}

/// Instructions, their words, and the tables that are generated from the description.
pub mod isa {
    /// The whole instruction table, generated from the description: forms, bits, syntax, operands, provenance.
    #[allow(
        rustdoc::broken_intra_doc_links,
        rustdoc::invalid_html_tags,
        rustdoc::bare_urls,
        reason = "the text of the documents is quoted"
    )]
    #[doc = ""]
    #[doc = include_str!(concat!(env!("OUT_DIR"), "/reference.md"))]
    pub mod reference {}

    pub use crate::isa::{
        Control, Form, Illegal, Inst, Optype, PInst, PReg, Register, RegisterClass, Role,
        Scoreboard, VReg, decode,
    };

    pub use crate::isa::inst::FieldEnum;

    /// How values reach the semantics of operations and leave them.
    pub mod semantics {
        pub use crate::isa::semantics::{Gather, Scatter};
    }

    /// Functions that build instructions; text and bits of literals; operands.
    pub use crate::isa::{build, literal, operand};

    /// Words.
    pub mod encode {
        pub use crate::isa::encode::{WORD_BYTES, all_forms, control_mask, decode, value_text};
    }

    /// The tables.
    pub use crate::isa::generated;

    /// Random instructions.
    pub mod random {
        pub use crate::isa::random::Random;
    }

    /// Types of the tables.
    pub mod table {
        pub use crate::isa::table::{
            Direction, Effects, EnumInfo, FieldInfo, FieldType, FieldValue, FormInfo, OperandInfo,
            OptypeInfo, Provenance, Swap,
        };
    }
}

/// Selection.
pub mod lower {
    pub use crate::lower::{Facts, Input, Scratch, lower};
}

/// Remarks while they are collected.
pub mod remarks {
    pub use crate::remarks::Remarks;
}

/// What there is to see of finished code.
pub mod report {
    pub use crate::report::{BlockReport, CodeReport, InstructionReport};

    /// What instructions are there for.
    pub mod purpose {
        pub use crate::report::purpose::Purpose;
    }
}

/// The machine in parts.
/// Bits of fixed width: numbers of the host, or terms.
pub mod bits {
    pub use crate::bits::{Bits, Joined, Truth, Word};
}

/// The simulator in parts.
#[cfg(feature = "sim")]
pub mod sim {
    pub use crate::sim::decode::program::Program;
    pub use crate::sim::execute::stop::Stop;
    pub use crate::sim::launch::shape::Shape;
    pub use crate::sim::memory::bytes::Bytes;
    pub use crate::sim::memory::local::Local;
    pub use crate::sim::memory::strong::Concurrency;
    pub use crate::sim::warp::Warp;
    pub use crate::sim::warp::registers::{Column, LANES, Registers};
    pub use crate::sim::{
        execute::Environment,
        memory::banks::{BANKS, Banks},
    };
    pub use crate::sim::{launch::Loaded, memory::global::Global};

    /// Programs as they are decoded.
    pub mod decode {
        pub use crate::sim::decode::action::{Access, Action, Atomic};
        pub use crate::sim::decode::program::{Broadcast, BroadcastSource, Op};
        pub use crate::sim::warp::registers::{DISCARD, Operand, PT, ZERO};
    }

    /// What atomic operations compute.
    pub mod atomic {
        pub use crate::sim::memory::atomic::combined;
    }

    /// What operations compute.
    pub mod semantics {
        pub use crate::sim::semantics::{Reference, compare, evaluate, round_to_odd, softfloat};
    }
}

/// Devices.
#[cfg(all(feature = "driver", feature = "sim"))]
pub mod driver {
    pub use crate::driver::device::simulate_with;
}

/// Code between selection and emission.
pub mod vcode {
    pub use crate::vcode::{FunctionKind, KernelInfo, Parameter};
}
