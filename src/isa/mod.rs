//! The instruction set: tables generated from `src/isa/description`, instructions, their words.

pub mod control;
pub mod encode;
#[macro_use]
pub mod generated;
pub mod inst;
pub mod literal;
pub mod operand;
pub mod print;
#[cfg(any(test, feature = "sim", feature = "unstable"))]
pub mod random;
pub mod register;
pub mod semantics;
pub mod sibling;
pub mod table;
pub mod truth_table;

pub use control::{Control, Scoreboard};
pub use encode::{Illegal, decode};
pub use generated::{Form, Optype, Role, build};
pub use inst::{Inst, PInst, VInst};
pub use register::{PReg, Register, RegisterClass, VReg};
