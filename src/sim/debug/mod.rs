//! A launch that can be stopped, looked into, and run backwards.
//!
//! In: what a launch takes. A [`Session`] begins before the first instruction and goes on when it is told to: by an
//! instruction or a line of one thread, into calls and out of them, to a breakpoint, a watched place of memory, a fault
//! or the end. Warps and blocks take the turns that they take in a launch ([`super::launch`]), an instruction at a
//! time, so a launch that was stepped writes and counts what it would have done otherwise.
//!
//! Backwards: the simulator does the same again, so going back is going forward from an earlier state. [`history`]
//! keeps some of those, and what memory held before it was written.
//!
//! [`state`] is where a launch is, [`live`] lets it go on and looks what [`stop`]s it, [`session`] is what a debugger
//! has: it goes on and back ([`travel`]) and is looked into ([`look`], [`stack`]), which gives a [`view`]. Registers
//! and values of the source are read by [`operand`], its variables by [`data`].

mod data;
mod history;
mod live;
mod look;
mod operand;
mod session;
mod stack;
mod state;
mod stop;
#[cfg(all(test, feature = "asm", feature = "driver"))]
mod tests;
mod travel;
mod view;

pub use data::{Datum, Number, Path, VariableView};
pub use operand::{Comparison, Condition, Operand};
pub use session::{Pause, Session};
pub use stack::{FrameId, StackFrame};
pub use stop::{Breakpoint, Place, Space, Stop, Thread, Watch, Watched, Watchpoint};
pub use view::{AccessView, GroupView, Value, WaitView, WarpView};
