//! The colouring: one register for every value, and the copies that operands need beyond that.
//!
//! Blocks in reverse postorder, so every definition comes before what it dominates; inside a block forwards. At each
//! definition the registers of the values alive there are known, and any other will do (the interference graph of SSA
//! form is chordal). What one register per value cannot express becomes a [`Site`]: a parallel copy before or behind
//! the instruction and operands in other registers than their values'.

use super::RegallocError;
use super::coloured::{Coloured, Extent};
use super::constrain::pressure::{Pressure, stack_pointer};
use super::liveness::{Liveness, end_position, position};
use super::parallel::Copy;
use super::pick::{NoRegister, Picker};
use super::registers::{CALLEE_SAVED, Numbers, RegisterSet};
use super::reservations::Tables;
use super::webs::{NONE, Webs};
use crate::abi;
use crate::isa::table::Direction;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::vcode::{Block, Callee, Entry, FunctionKind, Terminator, VCode};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

/// What an instruction needs beside the registers of its values.
#[derive(Clone, Debug, Default)]
pub(super) struct Site {
    /// Parallel copy before it.
    pub before: SmallVec<[Copy; 4]>,
    /// Parallel copy behind it.
    pub after: SmallVec<[Copy; 2]>,
    /// Registers of operand entries that are not their values': `(entry of Inst::regs, register)`.
    pub moved: SmallVec<[(u8, u8); 4]>,
    /// Registers that hold something before it.
    pub busy_before: RegisterSet,
    /// Registers that hold something behind it.
    pub busy_after: RegisterSet,
}

/// What a terminator needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Exit {
    /// Parallel copy before it, those of edge arguments included.
    pub before: SmallVec<[Copy; 4]>,
    /// Registers of the address, where they are not its values'.
    pub address: Option<[u8; 2]>,
    /// Registers that hold something before it.
    pub busy: RegisterSet,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Colouring {
    /// Number of each value's register; [`NONE`] for values that are never used and have none.
    pub colour: Vec<u8>,
    /// Sites in order of their instructions.
    pub sites: Vec<(u32, Site)>,
    /// By block.
    pub exits: Vec<Exit>,
    /// Parallel copy at the entry.
    pub entry: SmallVec<[Copy; 4]>,
    /// Registers that hold something behind it.
    pub entry_busy: RegisterSet,
    /// Every register that the colouring names.
    pub used: RegisterSet,
    /// The values that have registers.
    pub coloured: Coloured,
    webs: Webs,
    tables: Tables,
}

impl Colouring {
    /// The register of a value.
    pub fn register(&self, v: VReg) -> PReg {
        PReg::new(v.class(), self.colour[v.index()])
    }

    /// How many registers it copies to others in all, of these how many in loops, and how many instructions those have.
    pub fn copies(&self, code: &VCode<VReg>) -> (usize, usize, usize) {
        let moved = |copies: &[Copy]| copies.iter().filter(|copy| copy.from != copy.to).count();
        let mut sites = self.sites.iter().peekable();
        let (mut all, mut in_loops, mut work) = (moved(&self.entry), 0, 0);
        for (block, data) in code.blocks.iter() {
            let mut here = moved(&self.exits[block.index()].before);
            while let Some((_, site)) = sites.next_if(|(index, _)| *index < data.insts.end) {
                here += moved(&site.before) + moved(&site.after);
            }
            all += here;
            if data.loop_depth > 0 {
                in_loops += here;
                work += data.insts.len();
            }
        }
        (all, in_loops, work)
    }
}

/// Colours those values of `code` that `extent` says.
///
/// # Errors
/// [`RegallocError::TooFew`] where the registers do not suffice, [`RegallocError::Order`] for code that is not in SSA
/// form.
pub(super) fn colour(
    code: &VCode<VReg>,
    live: &Liveness,
    pressure: &Pressure,
    extent: Extent,
    gpr_limit: u8,
    out: &mut Colouring,
) -> Result<(), RegallocError> {
    out.coloured.find(code, extent);
    out.webs.compute(code, live, &out.coloured);
    out.sites.clear();
    out.exits.clear();
    out.exits.reserve(code.blocks.len());
    out.entry.clear();
    let picker = Picker::new(
        code,
        gpr_limit,
        live,
        pressure,
        &mut out.webs,
        &mut out.tables,
        &mut out.colour,
    );
    let mut scan = Scan {
        code,
        live,
        coloured: &out.coloured,
        picker,
        pinned: stack_pointer(code),
        sites: &mut out.sites,
        exits: &mut out.exits,
    };
    if let Some(v) = scan.pinned {
        scan.picker.colour[v.index()] = abi::STACK_POINTER.number();
    }
    for block in code.blocks.keys() {
        scan.picker
            .enter(live.live_in(block).filter(|v| scan.coloured.contains(*v)))
            .map_err(|value| RegallocError::Order {
                function: code.name.clone(),
                block,
                value,
            })?;
        let fail = |what: Failed| RegallocError::TooFew {
            function: code.name.clone(),
            block,
            form: what.form,
            class: what.class,
        };
        if block == code.entry_block() {
            (out.entry, out.entry_busy) = scan.entry().map_err(|e| fail(e.at("entry")))?;
        }
        scan.parameters(block)
            .map_err(|e| fail(e.at("parameters")))?;
        for (index, entry) in code.blocks[block]
            .insts
            .clone()
            .zip(code.block_insts(block))
        {
            let at = position(block, index);
            let done = if code.call(entry).is_some() {
                scan.call(block, index, at, entry)
            } else {
                scan.instruction(block, index, entry)
            };
            done.map_err(|e| fail(e.at(entry.inst.info().name)))?;
        }
        scan.exit(block).map_err(|e| fail(e.at("terminator")))?;
    }
    out.used = scan.picker.used;
    if let Some(block) = uniform_copy(code, &out.sites) {
        return Err(RegallocError::TooFew {
            function: code.name.clone(),
            block,
            form: "a copy where lanes are elsewhere",
            class: RegisterClass::Uniform,
        });
    }
    pass_arguments(code, out);
    note_copies(code, out);
    Ok(())
}

/// Adds to the exits the copies of arguments to their parameters' registers, which are all known now.
fn pass_arguments(code: &VCode<VReg>, out: &mut Colouring) {
    for block in code.blocks.keys() {
        for (arg, param) in out.coloured.edge_arguments(code, block) {
            let to = out.colour[param.index()];
            if to != NONE {
                let class = param.class();
                let copy = Copy {
                    from: PReg::new(class, out.colour[arg.index()]),
                    to: PReg::new(class, to),
                };
                out.exits[block.as_u32() as usize].before.push(copy);
            }
        }
    }
}

/// Counts the registers of copies among those that are used.
fn note_copies(code: &VCode<VReg>, out: &mut Colouring) {
    let sites = out
        .sites
        .iter()
        .flat_map(|(_, site)| site.before.iter().chain(&site.after));
    let exits = out.exits.iter().flat_map(|exit| &exit.before);
    for copy in sites.chain(exits).chain(&out.entry) {
        out.used.insert(copy.from);
        out.used.insert(copy.to);
    }
    // A result that nobody reads is written where its operand is moved to, and no copy from there tells of it.
    for (index, site) in &out.sites {
        let operands = code.insts[*index as usize].inst.regs();
        for (place, number) in &site.moved {
            if let Some(v) = operands[usize::from(*place)] {
                out.used.insert(PReg::new(v.class(), *number));
            }
        }
    }
}

/// A divergent block in which an instruction wants a uniform value in another register than its own: in a pair beside
/// another, say. Such a copy would be lost to the lanes that are elsewhere.
fn uniform_copy(code: &VCode<VReg>, sites: &[(u32, Site)]) -> Option<Block> {
    let mut sites = sites.iter().peekable();
    code.blocks.iter().find_map(|(block, data)| {
        let here = std::iter::from_fn(|| sites.next_if(|(index, _)| *index < data.insts.end));
        let copies = here.flat_map(|(_, site)| site.before.iter().chain(&site.after));
        let is_uniform = |copy: &&Copy| copy.to.class() == RegisterClass::Uniform;
        // Counted, so that all sites of the block are passed, whatever they hold.
        let found = copies.filter(is_uniform).count() > 0;
        (found && data.divergent).then_some(block)
    })
}

struct Failed {
    form: &'static str,
    class: RegisterClass,
}

impl NoRegister {
    fn at(self, form: &'static str) -> Failed {
        Failed {
            form,
            class: self.0,
        }
    }
}

/// The walk that colours.
pub(super) struct Scan<'a> {
    pub(super) code: &'a VCode<VReg>,
    pub(super) live: &'a Liveness,
    pub(super) coloured: &'a Coloured,
    pub(super) picker: Picker<'a>,
    pub(super) pinned: Option<VReg>,
    pub(super) sites: &'a mut Vec<(u32, Site)>,
    pub(super) exits: &'a mut Vec<Exit>,
}

impl Scan<'_> {
    pub(super) fn register(&self, v: VReg) -> PReg {
        PReg::new(v.class(), self.picker.colour(v))
    }

    fn entry(&mut self) -> Result<(SmallVec<[Copy; 4]>, RegisterSet), NoRegister> {
        let (code, live, pinned) = (self.code, self.live, self.pinned);
        let alive = code
            .entry
            .iter()
            .filter(|(v, _)| self.coloured.contains(*v) && !live.is_dead(*v) && Some(*v) != pinned);
        let copies = self.define_fixed(alive)?;
        let mut busy = self.picker.occupied;
        code.entry.iter().for_each(|(_, r)| busy.insert(*r));
        Ok((copies, busy))
    }

    /// Registers for values that come into being in registers of the calling convention, and the copies from there.
    fn define_fixed<'v>(
        &mut self,
        values: impl Iterator<Item = &'v (VReg, PReg)>,
    ) -> Result<SmallVec<[Copy; 4]>, NoRegister> {
        let mut copies = SmallVec::new();
        for &(v, from) in values {
            let c = self.picker.pick(v, self.picker.free(v.class()))?;
            self.picker.assign(v, c);
            if c != from.number() {
                copies.push(Copy {
                    from,
                    to: PReg::new(v.class(), c),
                });
            }
        }
        Ok(copies)
    }

    fn parameters(&mut self, block: Block) -> Result<(), NoRegister> {
        for &v in &self.code.blocks[block].params {
            if self.coloured.contains(v) && !self.live.is_dead(v) {
                let c = self.picker.pick(v, self.picker.free(v.class()))?;
                self.picker.assign(v, c);
            }
        }
        Ok(())
    }

    pub(super) fn dies(&self, v: VReg, at: u32, block: Block) -> bool {
        self.coloured.contains(v)
            && Some(v) != self.pinned
            && !self.live.is_live_after(self.code, v, at, block)
    }

    pub(super) fn release_dying(&mut self, block: Block, at: u32, entry: &Entry<VReg>) {
        for v in self.code.uses(entry) {
            if self.dies(v, at, block) {
                self.picker.release(v);
            }
        }
    }

    pub(super) fn release_dead(&mut self, entry: &Entry<VReg>) {
        for v in self.code.definitions(entry) {
            if self.picker.colour(v) != NONE && self.live.is_dead(v) {
                self.picker.release(v);
            }
        }
    }

    fn call(
        &mut self,
        block: Block,
        index: u32,
        at: u32,
        entry: &Entry<VReg>,
    ) -> Result<(), NoRegister> {
        let call = self
            .code
            .call(entry)
            .expect("the caller has looked")
            .clone();
        let mut site = Site {
            busy_before: self.picker.occupied,
            ..Site::default()
        };
        let mut targets = RegisterSet::default();
        for (v, to) in &call.uses {
            targets.insert(*to);
            if self.coloured.contains(*v) {
                site.before.push(Copy {
                    from: self.register(*v),
                    to: *to,
                });
            }
        }
        self.release_dying(block, at, entry);
        for operand in entry
            .inst
            .operands()
            .filter(|o| o.info.direction == Direction::In && o.regs[0].is_some())
        {
            let values: SmallVec<[VReg; 4]> = operand.regs.iter().copied().flatten().collect();
            if let Some(base) = self.away_from(&values, targets, Numbers::default())? {
                for (i, v) in values.iter().enumerate() {
                    let to = PReg::new(v.class(), base + i as u8);
                    targets.insert(to);
                    site.before.push(Copy {
                        from: self.register(*v),
                        to,
                    });
                    site.moved.push((operand.info.first + i as u8, to.number()));
                }
            }
        }
        site.before.retain(|c| c.from != c.to);
        site.busy_before = site.busy_before.union(&targets);
        // The return address is defined by the call itself.
        let mut fixed: SmallVec<[(VReg, PReg); 6]> = SmallVec::new();
        for operand in entry
            .inst
            .operands()
            .filter(|o| o.info.direction == Direction::Out)
        {
            for (i, v) in operand.regs.iter().enumerate() {
                if let (Some(v), Some(r)) = (v, abi::RETURN_ADDRESS.get(i)) {
                    site.moved.push((operand.info.first + i as u8, r.number()));
                    fixed.push((*v, *r));
                }
            }
        }
        fixed.extend(call.defs.iter().copied());
        let (live, coloured) = (self.live, self.coloured);
        let wanted = |v: VReg| coloured.contains(v) && !live.is_dead(v);
        site.after = self
            .define_fixed(fixed.iter().filter(|(v, _)| wanted(*v)))?
            .into_iter()
            .collect();
        site.busy_after = self.picker.occupied;
        fixed.iter().for_each(|(_, r)| site.busy_after.insert(*r));
        self.sites.push((index, site));
        Ok(())
    }

    /// A run for an operand that is read while the registers `targets` are being written: none where it is well where
    /// it is. Values that are not alive behind the instruction have been released; `avoid` is never chosen.
    fn away_from(
        &self,
        values: &[VReg],
        targets: RegisterSet,
        avoid: Numbers,
    ) -> Result<Option<u8>, NoRegister> {
        let class = values[0].class();
        let width = values.len();
        let taken = *targets.of(class);
        let start = self.picker.colour(values[0]);
        let well = usize::from(start) % width == 0
            && values.iter().zip(u16::from(start)..).all(|(v, expected)| {
                let c = self.picker.colour(*v);
                u16::from(c) == expected && !taken.contains(c) && !avoid.contains(c)
            });
        if well {
            return Ok(None);
        }
        let runs = self
            .picker
            .free(class)
            .minus(taken)
            .minus(avoid)
            .runs(width);
        let near = runs.and(self.picker.first_stage(class));
        near.iter()
            .next()
            .or_else(|| runs.iter().next())
            .map(Some)
            .ok_or(NoRegister(class))
    }

    fn exit(&mut self, block: Block) -> Result<(), NoRegister> {
        let data = &self.code.blocks[block];
        let at = end_position(self.code, block);
        let mut exit = Exit {
            busy: self.picker.occupied,
            ..Exit::default()
        };
        let (address, values): (Option<[VReg; 2]>, &[(VReg, PReg)]) = match &data.terminator {
            Terminator::Return { address, values } => (Some(*address), values),
            Terminator::TailCall {
                callee: Callee::Registers(address),
                values,
            } => (Some(*address), values),
            Terminator::TailCall {
                callee: Callee::Symbol(_),
                values,
            } => (None, values),
            _ => (None, &[]),
        };
        let mut targets = RegisterSet::default();
        for (v, to) in values {
            targets.insert(*to);
            if self.coloured.contains(*v) {
                exit.before.push(Copy {
                    from: self.register(*v),
                    to: *to,
                });
            }
        }
        for v in data.terminator.uses() {
            if self.dies(v, at, block) {
                self.picker.release(v);
            }
        }
        if let Some(address) = address {
            // The epilogue restores callee-saved registers before it is used.
            let restored = match self.code.kind {
                FunctionKind::Device => CALLEE_SAVED,
                FunctionKind::Kernel(_) => Numbers::default(),
            };
            if let Some(base) = self.away_from(&address, targets, restored)? {
                for (v, c) in address.iter().zip(base..=u8::MAX) {
                    exit.before.push(Copy {
                        from: self.register(*v),
                        to: PReg::gpr(c),
                    });
                }
                exit.address = Some([base, base + 1]);
            }
        }
        exit.before.retain(|c| c.from != c.to);
        exit.busy = exit.busy.union(&targets);
        self.exits.push(exit);
        Ok(())
    }
}
