//! Random CLIF on thisgpu's simulator and on the host, compared bit by bit.
//!
//! A seed gives a [`program`]: functions [written](mod@write) from the [operations](operation) that Cranelift's table
//! of opcodes lists, as far as the [`catalogue`] finds that both sides can do them. The results come from the [`host`],
//! compiled by Cranelift's own back end, or, for what that back end lacks, from Cranelift's interpreter; the simulator
//! has to give the same bits ([`check`]). What CLIF leaves open never reaches a result: [`nan`] says how NaNs are
//! closed, `write::guard` what keeps operations from trapping. A [`swarm`] says what a program leaves out; [`mutate`]
//! changes programs that are valid without knowing what they are. A [`campaign`] is many seeds. Kernels of many threads
//! are in [`simt`]. Which of the rules of selection are proven is asked in [`rules`].

pub mod campaign;
pub mod catalogue;
pub mod check;
pub mod host;
pub mod interpreter;
pub mod mutate;
pub mod nan;
pub mod operation;
pub mod program;
pub mod random;
pub mod reduce;
pub mod rules;
pub mod simt;
pub mod straight;
pub mod substitute;
pub mod swarm;
pub mod targets;
pub mod write;
