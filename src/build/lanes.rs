//! Which lane reads which in a reduction or a scan over the active lanes of a warp.
//!
//! In: the lanes that are active where [`ActiveLanes::new`] stands. Out: step by step the [`Peer`] whose values a lane
//! takes, which is always an active lane, since a shuffle from one that is not is a fault. How the values are moved and
//! combined is the front end's affair, so each walk takes `log2(32)` steps:
//!
//! - A *reduction*: before step k each lane has the value of all active lanes of its block of 2^k lanes. It takes that
//!   of the block beside it, which the lowest active lane there has. All lanes end with the same value.
//! - A *scan* (Sklansky, "Conditional-sum addition logic", 1960): in step k the lanes in the upper half of a block of
//!   2^(k+1) take what the last active lane of the lower half has.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use cranelift_thisgpu::build::{self, ActiveLanes, GpuBuilder};
//! use cranelift_thisgpu::cranelift::prelude::{types::*, *};
//! use cranelift_thisgpu::{Compiler, KernelOptions, Options};
//!
//! // Of each warp, the sum of those elements that are not negative, in their places.
//! let kernel = build::function("sum", &[I64], &[], |b, params| {
//!     let thread = b.thread_number();
//!     let element = b.load_element(I32, params[0], thread);
//!     let counts = b.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, element, 0);
//!     b.if_then(counts, |b| {
//!         let active = ActiveLanes::new(b);
//!         let mut sum = element;
//!         for step in 0..ActiveLanes::STEPS {
//!             let peer = active.reduction(b, step);
//!             let other = b.intrinsic("gpu_shfl_idx", &[sum, peer.lane]);
//!             let both = b.ins().iadd(sum, other);
//!             sum = b.ins().select(peer.is_there, both, sum);
//!         }
//!         b.store_element(sum, params[0], thread);
//!     });
//!     b.ins().return_(&[]);
//! });
//! let code = Compiler::new(Options::default()).function(&kernel, Some(KernelOptions::default()))?;
//! # #[cfg(all(feature = "driver", feature = "sim"))] {
//! # let device = cranelift_thisgpu::Device::simulator(cranelift_thisgpu::SimConfig::default());
//! # let elements = device.upload(&[3, -1, 4, -1, -1, 5, 9])?;
//! # let sum = device.load(&code)?.kernel("sum")?;
//! # sum.launch(cranelift_thisgpu::Grid::for_elems(7, 7)).arg(&elements).run()?;
//! # assert_eq!(device.download::<i32>(&elements)?, [21, -1, 21, -1, -1, 21, 21]);
//! # }
//! # Ok(())
//! # }
//! ```

use super::GpuBuilder;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32};
use cranelift_codegen::ir::{InstBuilder, Value};
use cranelift_frontend::FunctionBuilder;

/// Lanes of a warp.
const LANES: u32 = 32;

/// The lanes of a warp that are active at one place of a function.
#[derive(Clone, Copy, Debug)]
pub struct ActiveLanes {
    /// A bit for each active lane, an i32.
    pub mask: Value,
    /// The number of the lane itself, an i32.
    pub own: Value,
}

/// A lane whose values are taken.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its number, an i32. The lane itself where there is nothing to take.
    pub lane: Value,
    /// Whether there is something to take, an i8.
    pub is_there: Value,
    /// Not 0 where the peer's values stand in front of the lane's own, an i32. `None`: they do in all lanes.
    pub is_in_front: Option<Value>,
}

impl ActiveLanes {
    /// Steps of a reduction or a scan.
    pub const STEPS: u32 = LANES.ilog2();

    /// Asks who is active here.
    pub fn new(b: &mut FunctionBuilder<'_>) -> ActiveLanes {
        ActiveLanes {
            mask: b.intrinsic("gpu_activemask", &[]),
            own: b.intrinsic("gpu_laneid", &[]),
        }
    }

    /// The first active lane.
    pub fn first(&self, b: &mut FunctionBuilder<'_>) -> Value {
        b.ins().ctz(self.mask)
    }

    /// The lane `source`, an i32, if it may be read: the own one in the place of one that is none or is not active.
    pub fn readable(&self, b: &mut FunctionBuilder<'_>, source: Value) -> Value {
        let exists = b
            .ins()
            .icmp_imm_u(IntCC::UnsignedLessThan, source, i64::from(LANES));
        let bit = b.ins().ushr(self.mask, source);
        let bit = b.ins().band_imm_u(bit, 1);
        let bit = b.ins().ireduce(I8, bit);
        let is_active = b.ins().band(exists, bit);
        b.ins().select(is_active, source, self.own)
    }

    /// Whom a lane reads in a step of a reduction, 0 to [`ActiveLanes::STEPS`].
    pub fn reduction(&self, b: &mut FunctionBuilder<'_>, step: u32) -> Peer {
        let width = 1i64 << step;
        let beside = b.ins().bxor_imm_u(self.own, width);
        let start = block_start(b, beside, width);
        let there = block_of(b, self.mask, start, width);
        let first = b.ins().ctz(there);
        let is_upper = b.ins().band_imm_u(self.own, width);
        Peer {
            is_in_front: Some(is_upper),
            ..self.peer(b, there, start, first)
        }
    }

    /// Whom a lane reads in a step of an inclusive scan, 0 to [`ActiveLanes::STEPS`].
    pub fn scan(&self, b: &mut FunctionBuilder<'_>, step: u32) -> Peer {
        let width = 1i64 << step;
        let start = block_start(b, self.own, 2 * width);
        let below = block_of(b, self.mask, start, width);
        // Only the upper half takes something.
        let is_upper = b.ins().band_imm_u(self.own, width);
        let nobody = b.ins().iconst(I32, 0);
        let there = b.ins().select(is_upper, below, nobody);
        let last = last_of(b, there);
        self.peer(b, there, start, last)
    }

    /// The active lane before: what an exclusive scan takes of an inclusive one.
    pub fn before(&self, b: &mut FunctionBuilder<'_>) -> Peer {
        let one = b.ins().iconst(I32, 1);
        let bit = b.ins().ishl(one, self.own);
        let lower = b.ins().isub(bit, one);
        let before = b.ins().band(self.mask, lower);
        let last = last_of(b, before);
        let start = b.ins().iconst(I32, 0);
        self.peer(b, before, start, last)
    }

    /// The lane at `index` of the block from `start`, if anybody is `there`.
    fn peer(&self, b: &mut FunctionBuilder<'_>, there: Value, start: Value, index: Value) -> Peer {
        let is_there = b.ins().icmp_imm_u(IntCC::NotEqual, there, 0);
        let lane = b.ins().iadd(start, index);
        Peer {
            lane: b.ins().select(is_there, lane, self.own),
            is_there,
            is_in_front: None,
        }
    }
}

/// The first lane of the block of `width` lanes that `lane` is in.
fn block_start(b: &mut FunctionBuilder<'_>, lane: Value, width: i64) -> Value {
    b.ins().band_imm_u(lane, -width & i64::from(LANES - 1))
}

/// The lanes of a mask that are in the block of `width` lanes from `start`, the first at bit 0.
fn block_of(b: &mut FunctionBuilder<'_>, mask: Value, start: Value, width: i64) -> Value {
    let shifted = b.ins().ushr(mask, start);
    b.ins().band_imm_u(shifted, (1 << width) - 1)
}

/// The number of the highest bit of a mask that has one.
fn last_of(b: &mut FunctionBuilder<'_>, mask: Value) -> Value {
    let zeros = b.ins().clz(mask);
    let highest = b.ins().iconst(I32, i64::from(LANES - 1));
    b.ins().isub(highest, zeros)
}
