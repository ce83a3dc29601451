//! What an instruction does, to the letter of documents 001 and 004.
//!
//! In order: the halves of each input are taken from its register, constant or immediate (a number of single precision
//! is truncated to a half, and what becomes subnormal by that is a zero of its sign, whatever `.FTZ` says); absolute
//! value and negation; subnormal inputs are flushed under `.FTZ` and `.FMZ`. HMUL2 multiplies exactly and rounds once,
//! to nearest with ties to even; `.FMZ` makes the product of a zero and anything +0; a subnormal result is flushed,
//! `.SAT` limits it to 0…1. A NaN result is 0x7fff, 0x7fffffff in single precision.

use super::{
    Bop, Bval, Cmp, Fmz, Ftz, Input, Instruction, Iswz, Ofmt, Operation, Sat, Sign, Source,
};
use cranelift_thisgpu::FaultKind;
use cranelift_thisgpu::unstable::isa::generated::FPFtz;
use cranelift_thisgpu::unstable::isa::{PReg, RegisterClass};
use cranelift_thisgpu::unstable::sim::Banks;
use cranelift_thisgpu::unstable::sim::Stop;
use cranelift_thisgpu::unstable::sim::semantics::compare::{self, Order};
use cranelift_thisgpu::unstable::sim::semantics::round_to_odd::{Binary16, Half};
use cranelift_thisgpu::unstable::sim::semantics::softfloat::{self, F16, F32, Rounding};
use cranelift_thisgpu::unstable::sim::{LANES, Registers};
use std::cmp::Ordering;

/// A NaN of single precision as `.F32` gives it (document 004).
const NAN_SINGLE: u32 = 0x7fff_ffff;

/// Values of a thread that an instruction reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The register of the first source.
    pub a: u32,
    /// The register or the constant of the second source.
    pub b: u32,
    /// The predicate that a comparison is combined with, `!` applied.
    pub pp: bool,
    /// The register that is written, before.
    pub d: u32,
}

impl Instruction {
    /// What a thread's destination holds afterwards.
    pub fn result(&self, values: &Values) -> u32 {
        let a = halves(values.a, self.a.format, self.a.sign);
        let b = match self.b {
            Source::Register(Input { sign, format, .. }) => halves(values.b, format, sign),
            Source::Constant { sign, .. } => halves(values.b, Iswz::F32, sign),
            Source::Immediate(halves) => halves,
        };
        match self.line.operation {
            Operation::Hset2 => self.comparison(a, b, values.pp),
            Operation::Hmul2 => self.product(a, b, values.d),
        }
    }

    /// HSET2 (document 001).
    fn comparison(&self, a: [u16; 2], b: [u16; 2], pp: bool) -> u32 {
        let m = self.modifiers;
        let one = match m.bval {
            Bval::Bm => 0xffff,
            Bval::Bf => F16.one() as u16,
        };
        let lane = |lane: usize| {
            let [a, b] = [a[lane], b[lane]].map(|half| flushed(half, m.ftz == Ftz::On));
            let holds = holds(m.cmp, order(a, b));
            let holds = match m.bop {
                Bop::And => holds & pp,
                Bop::Or => holds | pp,
                Bop::Xor => holds ^ pp,
            };
            if holds { one } else { 0 }
        };
        packed(lane(0), lane(1))
    }

    /// HMUL2 and HMUL2_32I (document 004).
    fn product(&self, a: [u16; 2], b: [u16; 2], d: u32) -> u32 {
        let m = self.modifiers;
        let flush = m.fmz != Fmz::Off;
        let lane = |lane: usize| {
            let [a, b] = [a[lane], b[lane]].map(|half| flushed(half, flush));
            let zero = |half: u16| half << 1 == 0;
            let product = if m.fmz == Fmz::Fmz && (zero(a) || zero(b)) {
                0
            } else {
                Binary16::narrow(Binary16::widen(a) * Binary16::widen(b))
            };
            let product = flushed(product, flush);
            match m.sat {
                Sat::Off => product,
                Sat::On => F16.saturate(product.into()) as u16,
            }
        };
        match m.ofmt {
            Ofmt::F16V2 => packed(lane(0), lane(1)),
            Ofmt::F32 => single(flushed(lane(0), true)),
            Ofmt::MrgH0 => d & 0xffff_0000 | u32::from(lane(0)),
            Ofmt::MrgH1 => d & 0xffff | u32::from(lane(1)) << 16,
        }
    }

    /// Executes it in the threads of a warp that are active and whose guard holds.
    ///
    /// # Errors
    /// When it reads constant memory that is not there.
    pub fn execute(
        &self,
        registers: &mut Registers,
        banks: &Banks,
        active: u32,
    ) -> Result<(), Box<Stop>> {
        let predicate = |p: super::Predicate| {
            let number = p
                .register
                .map_or(RegisterClass::Predicate.hardwired(), |r| r.number());
            registers.predicates[usize::from(number)] ^ if p.not { u32::MAX } else { 0 }
        };
        let mask = active & predicate(self.guard);
        let pp = predicate(self.pp);
        if mask == 0 {
            return Ok(());
        }
        let read = |register: Option<PReg>| {
            register.map_or([0; LANES], |r| *registers.column(r.number().into()))
        };
        let (a, d) = (read(self.a.register), read(self.rd));
        let b = match self.b {
            Source::Register(input) => read(input.register),
            Source::Immediate(_) => [0; LANES],
            Source::Constant { bank, offset, .. } => {
                let value = banks.load(bank, offset.into(), 4);
                [value.map_err(|kind: FaultKind| Stop::lanes(kind, mask))? as u32; LANES]
            }
        };
        let Some(rd) = self.rd else { return Ok(()) };
        let column = registers.column_mut(rd.number().into());
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            column[lane] = self.result(&Values {
                a: a[lane],
                b: b[lane],
                pp: pp >> lane & 1 != 0,
                d: d[lane],
            });
        }
        Ok(())
    }
}

/// How two halves compare; `None` if one is NaN.
fn order(a: u16, b: u16) -> Option<Ordering> {
    match compare::order(F16, &a, &b) {
        Order {
            unordered: true, ..
        } => None,
        Order { equal: true, .. } => Some(Ordering::Equal),
        Order { less: true, .. } => Some(Ordering::Less),
        Order { less: false, .. } => Some(Ordering::Greater),
    }
}

/// The inputs of both lanes, lane 0 first.
fn halves(word: u32, format: Iswz, sign: Sign) -> [u16; 2] {
    let (low, high) = (word as u16, (word >> 16) as u16);
    let halves = match format {
        Iswz::H1H0 => [low, high],
        Iswz::H0H0 => [low; 2],
        Iswz::H1H1 => [high; 2],
        Iswz::F32 => [truncated(word); 2],
    };
    halves.map(|half| compare::modified(F16, &half, sign.absolute, sign.negate))
}

/// A number of single precision as a half, rounded toward zero; what is subnormal as a half is a zero.
fn truncated(bits: u32) -> u16 {
    let half = softfloat::convert(F32, F16, bits.into(), Rounding::TowardZero);
    compare::flushed(F16, &(half as u16), FPFtz::Ftz)
}

/// A half that is not subnormal, in single precision.
fn single(half: u16) -> u32 {
    if F16.is_nan(half.into()) {
        return NAN_SINGLE;
    }
    (Binary16::widen(half) as f32).to_bits()
}

fn flushed(half: u16, flush: bool) -> u16 {
    if flush {
        compare::flushed(F16, &half, FPFtz::Ftz)
    } else {
        half
    }
}

fn packed(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// Whether a comparison holds; without an order one of the two is NaN. With NaN the plain ones are false and those with
/// U true.
fn holds(cmp: Cmp, order: Option<Ordering>) -> bool {
    let Some(order) = order else {
        use Cmp::*;
        return matches!(cmp, Nan | Ltu | Equ | Leu | Gtu | Neu | Geu | T);
    };
    match cmp {
        Cmp::F | Cmp::Nan => false,
        Cmp::T | Cmp::Num => true,
        Cmp::Lt | Cmp::Ltu => order.is_lt(),
        Cmp::Eq | Cmp::Equ => order.is_eq(),
        Cmp::Le | Cmp::Leu => order.is_le(),
        Cmp::Gt | Cmp::Gtu => order.is_gt(),
        Cmp::Ne | Cmp::Neu => order.is_ne(),
        Cmp::Ge | Cmp::Geu => order.is_ge(),
    }
}
