//! Random kernels of many threads: what they leave in memory and which lanes are together, against a reference, in all
//! settings.
//!
//! A seed gives a [`kernel`] ([`mod@generate`]), written as CLIF ([`emit`]) with statements in which threads wait for
//! each other (`waiting`). The reference is an executor of the generator's own graph ([`execute`]) with meeting points
//! by their definition ([`meeting`]). [`check`] compiles the kernel in some settings and runs it on the simulator, in
//! both speeds and in warps of one lane; [`reduce`] makes kernels smaller that fail; [`campaign`] is many seeds.
//! [`stepped`] asks whether a debugger changes anything. Other kernels, of ordered events and of loops over exact
//! allocations, are in [`events`], and those whose addresses may lie outside in [`windows`]; a [`case`] is a kernel of
//! any of them.

pub mod campaign;
pub mod case;
pub mod check;
pub mod emit;
pub mod events;
pub mod execute;
pub mod generate;
pub mod kernel;
pub mod locations;
mod locks;
pub mod meeting;
mod phases;
pub mod reduce;
mod shapes;
pub mod stepped;
mod waiting;
pub mod windows;
