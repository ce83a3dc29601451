//! Names of values at the borders of blocks.
//!
//! A value that is split has a name of its own in every part of its life. Takes the names at the ends of the blocks
//! before; gives those at the entry of a block, with a new parameter where they differ, and rewrites terminators,
//! parameters and arguments.

use super::Rewriter;
use crate::isa::{Register, VReg};
use crate::regalloc::constrain::flow::OUTSIDE;
use crate::regalloc::constrain::tidy::Join;
use crate::vcode::{Block, Callee, SourceLine, Terminator};
use cranelift_codegen::entity::EntityRef;
use smallvec::SmallVec;

impl Rewriter<'_> {
    /// Names of values at the end of a block that has been rewritten.
    fn names_of(&self, block: Block) -> &[(VReg, VReg)] {
        let start = match block.index() {
            0 => 0,
            i => self.name_ends[i - 1],
        };
        &self.names[start as usize..self.name_ends[block.index()] as usize]
    }

    fn name_at_end(&self, block: Block, v: VReg) -> VReg {
        let names = self.names_of(block);
        let place = names.binary_search_by_key(&v, |(v, _)| *v);
        names[place.expect("it is in a register there")].1
    }

    /// Finds the names of values at the entry of `block`.
    pub(super) fn enter(&mut self, block: Block) {
        for &v in self.plan.entry.of(block) {
            if !self.is_split(v) {
                continue;
            }
            let defined = block == self.old.entry_block() || self.plan.is_parameter(v, block);
            self.name[v.index()] = if defined { v } else { self.name_at(block, v) };
        }
    }

    fn name_at(&mut self, block: Block, v: VReg) -> VReg {
        let mut one = None;
        let mut several = false;
        for from in self.flow.predecessors(block).filter(|p| *p < block) {
            let name = self.name_at_end(from, v);
            several |= one.is_some_and(|one| one != name);
            one = Some(name);
        }
        if self.flow.is_header(block) {
            let around = self.flow.innermost(block);
            // A loop that is entered in several places is no loop of the tree; its names may come from anywhere.
            let region = match self.flow.is_natural(block) {
                true => around,
                false => OUTSIDE,
            };
            several |= self.plan.returns.contains(&(region, v));
        }
        match one {
            Some(one) if !several => one,
            _ => {
                let name = self.fresh(v.class());
                self.joins.push(Join {
                    block,
                    value: v,
                    name,
                    args: SmallVec::new(),
                });
                name
            }
        }
    }

    /// Rewrites the terminator, with what the edge to the only successor needs before it, and notes the names at the
    /// end.
    pub(super) fn leave(&mut self, block: Block, line: SourceLine) {
        let mut terminator = self.old.blocks[block].terminator.clone();
        let mut names: Vec<(VReg, VReg)> = Vec::new();
        if let Terminator::Jump { target, args } = &mut terminator {
            *args = self.pass(block, *target, line);
            if self.flow.is_join(*target) {
                // What has come back on the edge counts as well.
                let wanted = self.plan.entry.of(*target).iter();
                let wanted = wanted.filter(|v| !self.plan.is_parameter(**v, *target));
                names.extend(wanted.map(|v| (*v, self.here(*v))));
            }
        } else {
            self.rename_terminator(&mut terminator);
        }
        if names.is_empty() {
            let there = self.plan.exit.of(block).iter();
            names.extend(there.map(|v| (*v, self.here(*v))));
        }
        let split = names.iter().filter(|(v, _)| self.is_split(*v)).copied();
        let split: Vec<(VReg, VReg)> = split.collect();
        self.names.extend(split);
        self.name_ends.push(self.names.len() as u32);
        self.code.blocks[block].terminator = terminator;
    }

    fn rename_terminator(&self, terminator: &mut Terminator<VReg>) {
        let rename = |v: &mut VReg| *v = self.here(*v);
        match terminator {
            Terminator::Branch { guard, .. } => rename(&mut guard.reg),
            Terminator::Table { index, .. } => rename(index),
            Terminator::Return { address, values } => {
                address.iter_mut().for_each(rename);
                values.iter_mut().for_each(|(v, _)| rename(v));
            }
            Terminator::TailCall { callee, values } => {
                if let Callee::Registers(address) = callee {
                    address.iter_mut().for_each(rename);
                }
                values.iter_mut().for_each(|(v, _)| rename(v));
            }
            Terminator::Jump { .. } | Terminator::Exit | Terminator::Trap(_) => {}
        }
    }

    /// Gives parameters that begin at their homes other names, or drops them.
    pub(super) fn rename_params(&mut self, block: Block) {
        let (plan, home) = (self.plan, &self.home);
        let displaced = |v: VReg| v.class() == plan.class && plan.displaced_from(v).is_some();
        self.code.blocks[block].params.retain_mut(|v| {
            if !displaced(*v) {
                return true;
            }
            match home.get(v) {
                Some(home) => {
                    *v = *home;
                    true
                }
                None => false,
            }
        });
    }

    /// Fills in the arguments of new parameters, once all names are known.
    pub(super) fn pass_joined(&mut self) {
        for i in 0..self.joins.len() {
            let Join { block, value, .. } = self.joins[i];
            let args = self
                .flow
                .predecessors(block)
                .map(|from| self.name_at_end(from, value))
                .collect();
            self.joins[i].args = args;
        }
    }
}
