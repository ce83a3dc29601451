//! The registers that regalloc2 may use, and what its slots are.
//!
//! It rotates through the registers that it is given, so only fewer of them bound the count: as many as the pressure
//! needs, or those of the colouring where there is one. Operands may be in slots (`Any`), and a slot is one more
//! register, so nothing is ever evicted to memory.

use super::{Guide, Request};
use crate::abi;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::regalloc::registers::{CALLEE_SAVED, Numbers};
use crate::vcode::{FunctionKind, Terminator, VCode};
use regalloc2 as ra;
use smallvec::SmallVec;

/// regalloc2's class for one of ours.
pub(super) fn ra_class(class: RegisterClass) -> ra::RegClass {
    match class {
        RegisterClass::Gpr => ra::RegClass::Int,
        RegisterClass::Predicate => ra::RegClass::Float,
        RegisterClass::Uniform => ra::RegClass::Vector,
    }
}

/// Our class for one of regalloc2's.
fn own_class(class: ra::RegClass) -> RegisterClass {
    match class {
        ra::RegClass::Int => RegisterClass::Gpr,
        ra::RegClass::Float => RegisterClass::Predicate,
        ra::RegClass::Vector => RegisterClass::Uniform,
    }
}

/// regalloc2's register for one of ours, which its index can express.
pub(super) fn ra_register(class: RegisterClass, number: u8) -> ra::PReg {
    ra::PReg::new(usize::from(number), ra_class(class))
}

/// Registers of a class that regalloc2 has numbers for: the last one means none.
pub(super) const NUMBERS: u32 = ra::PReg::MAX as u32;

/// Whether regalloc2 has a register of this number.
pub(super) fn has_number(number: u8) -> bool {
    u32::from(number) < NUMBERS
}

/// See the module.
#[derive(Debug)]
pub(super) struct Machine {
    pub environment: ra::MachineEnv,
    /// What a call overwrites of what may be in use.
    pub clobbered: ra::PRegSet,
    /// Registers that slots can be, those of the first set first.
    slots: [Numbers; 2],
}

impl Machine {
    /// The machine for the `classes` of a function that are handed over, without the GPRs `pinned`.
    pub fn new(
        request: &Request<'_>,
        guide: &Guide<'_>,
        classes: [bool; 3],
        pinned: Numbers,
        gpr_limit: u8,
    ) -> Machine {
        let Request { code, calls, .. } = *request;
        let mut preferred = [ra::PRegSet::empty(); 3];
        let mut clobbered = ra::PRegSet::empty();
        let mut gprs = Numbers::default();
        for class in RegisterClass::ALL {
            if !classes[class as usize] {
                continue;
            }
            let numbers = allocatable(request, guide, gpr_limit, class).minus(match class {
                RegisterClass::Gpr => pinned,
                RegisterClass::Predicate | RegisterClass::Uniform => Numbers::default(),
            });
            let lost = match class {
                RegisterClass::Gpr => numbers.minus(CALLEE_SAVED),
                RegisterClass::Predicate | RegisterClass::Uniform => numbers,
            };
            for n in numbers.iter() {
                preferred[ra_class(class) as usize].add(ra_register(class, n));
            }
            if calls {
                lost.iter()
                    .for_each(|n| clobbered.add(ra_register(class, n)));
            }
            if class == RegisterClass::Gpr {
                gprs = numbers;
            }
        }
        let mut free = Numbers::below(u32::from(gpr_limit)).minus(gprs);
        free.remove(abi::STACK_POINTER.number());
        free = free.minus(pinned);
        if let Some(colouring) = guide.colouring {
            free = free.minus(*colouring.used.of(RegisterClass::Gpr));
        }
        let [cheap, dear] = [free.minus(CALLEE_SAVED), free.and(CALLEE_SAVED)];
        let slots = match code.kind {
            // What a slot holds may live across a call.
            _ if calls => [dear, Numbers::default()],
            FunctionKind::Kernel(_) => [free, Numbers::default()],
            FunctionKind::Device => [cheap, dear],
        };
        Machine {
            environment: ra::MachineEnv {
                preferred_regs_by_class: preferred,
                non_preferred_regs_by_class: [ra::PRegSet::empty(); 3],
                scratch_by_class: [None; 3],
                fixed_stack_slots: Vec::new(),
            },
            clobbered,
            slots,
        }
    }

    /// The registers that the first `count` slots are; none if there are too few.
    pub fn slots(&self, count: usize) -> Option<Slots> {
        let numbers = self.slots.iter().flat_map(|set| set.iter());
        let registers: SmallVec<[PReg; 16]> = numbers.take(count).map(PReg::gpr).collect();
        (registers.len() == count).then_some(Slots(registers))
    }
}

/// The registers that slots are.
pub(super) struct Slots(SmallVec<[PReg; 16]>);

impl Slots {
    /// The machine's register for an allocation.
    ///
    /// # Panics
    /// For a slot that there is not, and for an operand that has nothing.
    #[inline]
    pub fn register(&self, allocation: ra::Allocation) -> PReg {
        if let Some(r) = allocation.as_reg() {
            return PReg::new(own_class(r.class()), r.hw_enc() as u8);
        }
        let slot = allocation.as_stack();
        self.0[slot.expect("every operand has an allocation").index()]
    }
}

/// Registers of a class that regalloc2 may use.
fn allocatable(
    request: &Request<'_>,
    guide: &Guide<'_>,
    gpr_limit: u8,
    class: RegisterClass,
) -> Numbers {
    let code = request.code;
    let hardwired = u32::from(class.hardwired());
    let used = guide
        .colouring
        .map_or(Numbers::default(), |c| *c.used.of(class));
    let coloured = used.last().map_or(0, |r| u32::from(r) + 1);
    let live = guide.pressure.max_live[class as usize];
    match class {
        // Operands that must be in registers need some to move in.
        RegisterClass::Predicate => Numbers::below(hardwired),
        RegisterClass::Uniform => Numbers::below((live.max(coloured) + 4).min(hardwired)),
        RegisterClass::Gpr => {
            let below = match code.kind {
                FunctionKind::Kernel(_) => Numbers::below(coloured),
                // Saving a register costs a store and a load.
                FunctionKind::Device => Numbers::below(coloured).minus(CALLEE_SAVED.minus(used)),
            };
            let all_coloured = guide.colouring.is_some_and(|c| c.coloured.is_all());
            let needed = if all_coloured {
                Numbers::default()
            } else {
                by_pressure(request, live, guide.pressure.across_calls(), gpr_limit)
            };
            let mut all = below.union(needed).and(Numbers::below(NUMBERS));
            all.remove(abi::STACK_POINTER.number());
            all
        }
    }
}

/// `needed` registers and R1, of which `across` are kept by callees. A device function takes those first that it need
/// not save, and at least up to the highest in which it is given or gives anything.
fn by_pressure(request: &Request<'_>, needed: u32, across: u32, gpr_limit: u8) -> Numbers {
    let code = request.code;
    let all = Numbers::below(u32::from(gpr_limit));
    let saved = all.and(CALLEE_SAVED);
    let cheap = all.minus(saved);
    let count = match code.kind {
        FunctionKind::Kernel(_) if !request.calls => return all.lowest(needed + 1),
        FunctionKind::Device if !request.calls => (needed + 1).max(convention(code)),
        _ => (needed + 1)
            .saturating_sub(across)
            .max(u32::from(*abi::CALLEE_SAVED.start())),
    };
    let missing = count.saturating_sub(cheap.count());
    cheap.lowest(count).union(saved.lowest(across + missing))
}

/// The highest register in which the function is given or gives anything, plus one.
fn convention(code: &VCode<VReg>) -> u32 {
    let ends = code.blocks.values().flat_map(|b| match &b.terminator {
        Terminator::Return { values, .. } | Terminator::TailCall { values, .. } => &values[..],
        _ => &[],
    });
    let gprs = code.entry.iter().chain(ends).map(|(_, r)| *r);
    let gprs = gprs.filter(|r| r.class() == RegisterClass::Gpr);
    gprs.map(|r| u32::from(r.number()) + 1).max().unwrap_or(0)
}
