//! Choosing which values leave their register file.
//!
//! Where more values are alive than there are registers, some must live elsewhere: a predicate or a uniform value in a GPR, a GPR value in
//! local memory, a constant nowhere (it is made again at each use). A chosen value leaves its register everywhere but right behind its
//! definition and right before its uses, so the code stays in SSA form ([`super::rewrite`] makes it so). Chosen is the value
//! with the fewest weighted uses for the distance to its next use, so what is used far away and outside of inner loops goes first.

use super::pressure::{LiveSet, stack_pointer};
use super::rewrite::{Home, Plan};
use crate::abi;
use crate::isa::table::{Direction, Effects};
use crate::isa::{Form, Register, RegisterClass, VReg};
use crate::regalloc::liveness::{Liveness, end_position, position};
use crate::vcode::{Attachment, Block, Entry, VCode};

/// How many values of each class may be alive at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::regalloc) struct Capacity {
    /// By class.
    pub registers: [u32; 3],
    /// GPR values across a call.
    pub across_call: u32,
}

impl Capacity {
    /// What a machine with `gpr_limit` GPRs can hold; one predicate is left for exchanges.
    pub fn new(gpr_limit: u8) -> Capacity {
        let saved = u32::from(gpr_limit)
            .saturating_sub(u32::from(*abi::CALLEE_SAVED.start()))
            .min(abi::CALLEE_SAVED.len() as u32);
        let mut registers = [0; 3];
        registers[RegisterClass::Gpr as usize] = u32::from(gpr_limit) - 1;
        registers[RegisterClass::Uniform as usize] =
            u32::from(RegisterClass::Uniform.hardwired()) - 1;
        registers[RegisterClass::Predicate as usize] =
            u32::from(RegisterClass::Predicate.hardwired()) - 1;
        Capacity {
            registers,
            across_call: saved,
        }
    }

    /// Lowers what a class may hold; false when too little would be left for any instruction.
    pub fn shrink(&mut self, class: RegisterClass) -> bool {
        let registers = &mut self.registers[class as usize];
        let (step, least) = if class == RegisterClass::Gpr {
            (2, SMALLEST)
        } else {
            (1, 4)
        };
        *registers = registers.saturating_sub(step);
        if class == RegisterClass::Gpr {
            self.across_call = self.across_call.saturating_sub(1);
        }
        *registers >= least
    }
}

/// Values that the widest instruction reads or writes at once, with some to spare (*assumed*).
const SMALLEST: u32 = 12;

/// Longest distance to a next use that makes a difference (*assumed*).
const FAR: u32 = 1000;

/// Values that are to leave their class.
#[derive(Debug, Default)]
pub(in crate::regalloc) struct Spiller {
    alive: LiveSet,
    weight: Vec<f32>,
}

impl Spiller {
    /// Chooses values of `class` until at most `capacity` are alive anywhere; `plan` is left empty if nothing has to go. Values for which
    /// `temporary` holds were made by an earlier round and go last.
    ///
    /// # Errors
    /// The block where one instruction needs more values than fit.
    pub fn choose(
        &mut self,
        code: &VCode<VReg>,
        live: &Liveness,
        class: RegisterClass,
        capacity: &Capacity,
        temporary: &[bool],
        plan: &mut Plan,
    ) -> Result<(), Block> {
        self.weigh(code, class);
        plan.begin(code);
        let limit = capacity.registers[class as usize];
        let across = if class == RegisterClass::Gpr {
            capacity.across_call
        } else {
            0
        };
        let pinned = stack_pointer(code);
        let mine = |v: &VReg| v.class() == class && Some(*v) != pinned;
        for (block, data) in code.blocks.iter() {
            self.alive.reset(code.vreg_count as usize);
            live.live_out(block)
                .filter(mine)
                .filter(|v| !plan.is_chosen(*v))
                .for_each(|v| {
                    self.alive.insert(v);
                });
            let mut walk = Walk {
                code,
                live,
                class,
                temporary,
                block,
                spiller: self,
                plan,
            };
            let uses: Vec<VReg> = data.terminator.uses().filter(mine).collect();
            walk.before(&uses, 0, end_position(code, block), limit)?;
            for (index, entry) in data.insts.clone().zip(code.block_insts(block)).rev() {
                let at = position(block, index);
                let defs: Vec<VReg> = code.definitions(entry).filter(mine).collect();
                let uses: Vec<VReg> = code.uses(entry).filter(mine).collect();
                let slack = walk.behind(&defs, at, limit)?;
                if code.call(entry).is_some() {
                    walk.reduce(across, 0, &[], at)?;
                }
                let early = walk.early_results(entry);
                let slack = slack.min(walk.before(&uses, early, at, limit)?);
                walk.plan.set_slack(index, slack);
            }
            let params: Vec<VReg> = data.params.iter().copied().filter(mine).collect();
            let dead = params
                .iter()
                .filter(|v| !walk.spiller.alive.contains(**v) && !walk.plan.is_chosen(**v))
                .count() as u32;
            walk.reduce(limit, dead, &[], data.insts.start + 2 * block.as_u32())?;
        }
        if plan.is_empty() {
            return Ok(());
        }
        plan.settle(code);
        Ok(())
    }

    fn weigh(&mut self, code: &VCode<VReg>, class: RegisterClass) {
        self.weight.clear();
        self.weight.resize(code.vreg_count as usize, 0.0);
        for (block, data) in code.blocks.iter() {
            let each = 8f32.powi(data.loop_depth.min(6) as i32) * if data.cold { 0.1 } else { 1.0 };
            for entry in code.block_insts(block) {
                let again = rematerialisable(code, entry);
                for v in code.definitions(entry).filter(|v| v.class() == class) {
                    // Making a constant again costs about a quarter of a store and a load (*assumed*).
                    self.weight[v.index()] += if again { -1e-3 } else { each };
                }
                code.uses(entry)
                    .for_each(|v| self.weight[v.index()] += each);
            }
            data.terminator
                .uses()
                .for_each(|v| self.weight[v.index()] += each);
            data.params
                .iter()
                .for_each(|v| self.weight[v.index()] += each);
        }
    }
}

struct Walk<'a, 's> {
    code: &'a VCode<VReg>,
    live: &'a Liveness,
    class: RegisterClass,
    temporary: &'a [bool],
    block: Block,
    spiller: &'s mut Spiller,
    plan: &'s mut Plan,
}

impl Walk<'_, '_> {
    /// Results under a guard that need a register beside those of the sources, because the value they keep lives on. Asked behind
    /// the instruction.
    fn early_results(&self, entry: &Entry<VReg>) -> u32 {
        let kept: Vec<VReg> = self
            .code
            .else_values(entry)
            .iter()
            .copied()
            .flatten()
            .collect();
        let needs = |(i, v): &(usize, &VReg)| {
            v.class() == self.class && (self.spiller.alive.contains(**v) || kept[..*i].contains(v))
        };
        kept.iter().enumerate().filter(needs).count() as u32
    }

    /// The place before an instruction that reads `uses` and writes `early` registers at the same time. Returns how many more values would fit.
    fn before(&mut self, uses: &[VReg], early: u32, at: u32, limit: u32) -> Result<u32, Block> {
        let mut transient = early;
        for (i, v) in uses.iter().enumerate() {
            if !self.plan.is_chosen(*v) {
                self.spiller.alive.insert(*v);
            } else if !uses[..i].contains(v) {
                transient += 1;
            }
        }
        self.reduce(limit, transient, uses, at)
    }

    /// The place behind an instruction that writes `defs`, which are gone afterwards.
    fn behind(&mut self, defs: &[VReg], at: u32, limit: u32) -> Result<u32, Block> {
        let transient = defs
            .iter()
            .filter(|v| !self.spiller.alive.contains(**v))
            .count() as u32;
        let slack = self.reduce(limit, transient, defs, at)?;
        for v in defs {
            self.spiller.alive.remove(*v);
        }
        Ok(slack)
    }

    /// Chooses values, none of `needed`, until at most `limit` are alive beside `transient` others.
    fn reduce(
        &mut self,
        limit: u32,
        transient: u32,
        needed: &[VReg],
        at: u32,
    ) -> Result<u32, Block> {
        loop {
            let count = self.spiller.alive.count(self.class) + transient;
            if count <= limit {
                return Ok(limit - count);
            }
            let best = self
                .spiller
                .alive
                .iter()
                .filter(|v| !needed.contains(v))
                .min_by(|a, b| {
                    // What an earlier round brought back goes last.
                    let key = |v: VReg| {
                        let again = self.temporary.get(v.index()).is_some_and(|t| *t);
                        (self.spiller.weight[v.index()] + if again { 1e6 } else { 0.0 })
                            / (1 + self.distance(v, at)) as f32
                    };
                    key(*a).total_cmp(&key(*b)).then(a.cmp(b))
                });
            let Some(victim) = best else {
                return Err(self.block);
            };
            self.spiller.alive.remove(victim);
            self.plan.choose(victim);
        }
    }

    /// Instructions to the next use, along the linear order.
    fn distance(&self, v: VReg, at: u32) -> u32 {
        let uses = self.live.uses(v);
        let next = uses.get(uses.partition_point(|p| *p <= at)).copied();
        match next {
            Some(p) if p <= end_position(self.code, self.block) => p - at,
            Some(p) => (p - at)
                .min(FAR)
                .max(end_position(self.code, self.block) - at),
            None => FAR,
        }
    }
}

/// Whether an instruction gives the same result wherever it stands: it reads neither registers nor anything that changes.
pub(in crate::regalloc) fn rematerialisable(code: &VCode<VReg>, entry: &Entry<VReg>) -> bool {
    let inst = &entry.inst;
    let plain = entry
        .attachment
        .is_none_or(|a| matches!(code.attachments[a], Attachment::Symbol(_)));
    let reads = inst
        .operands()
        .any(|o| o.info.direction == Direction::In && o.regs.iter().any(|r| r.is_some()));
    let effects = inst.optype().info().effects;
    let fixed = effects == Effects::default()
        || effects == Effects::LOAD.union(Effects::CONSTANT)
        || effects == Effects::CONSTANT
        || effects == Effects::SPECIAL && reads_constant_register(inst.form(), inst.word());
    plain && !reads && fixed && inst.is_unguarded() && inst.definitions().count() == 1
}

/// Whether a read of a special register gives the thread the same value at all times.
fn reads_constant_register(form: Form, word: u128) -> bool {
    let field = form.info().fields.iter().find(|f| f.type_name == "SReg");
    let Some(field) = field else { return false };
    let crate::isa::table::FieldType::Enum(names) = field.ty else {
        return false;
    };
    names
        .name_of(field.get(word))
        .is_some_and(|n| !n.contains("CLOCK") && !n.contains("ACTIVEMASK"))
}

/// The home of a chosen value: nothing if it can be made again, else the next larger memory.
pub(in crate::regalloc) fn home(
    code: &VCode<VReg>,
    v: VReg,
    definition: Option<&Entry<VReg>>,
) -> Home {
    match definition {
        Some(entry) if v.class() == RegisterClass::Gpr && rematerialisable(code, entry) => {
            Home::Again
        }
        _ if v.class() == RegisterClass::Gpr => Home::Memory,
        _ => Home::Gpr,
    }
}
