//! Covers of bitwise operations by LOP3: which operations each of them makes.
//!
//! LOP3 makes any function of three words bit by bit. Of every operation the cheapest [cuts](super::cuts) are kept,
//! made of those of its operands (priority cuts: Mishchenko, Cho, Chatterjee, Brayton, *Combinational and sequential
//! mapping with priority cuts*, 2007). The cost of a cut is one LOP3 and what its leaves cost, which several users
//! share. Operations that one other reads are part of its tree; those that a few bitwise operations of the block read
//! may be made again in each of them, where none has asked for them yet: then nobody does. Every operation is looked at
//! once, so the search is linear. Trees of three leaves need none.

use super::Fuser;
use super::cuts::{Cut, Cuts, LEAVES, Leaves, keep, place};
use crate::isa::truth_table::{INPUTS, composed};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value, types};
use smallvec::SmallVec;

/// A function of three values, bit by bit.
pub(super) struct Logic {
    pub(super) table: u8,
    /// A function of fewer depends on the first ones, and has the first again as the others.
    pub(super) inputs: [Value; LEAVES],
}

/// Operations of a tree that is looked at as a whole (*assumed*: trees with three leaves have no more, and whatever has
/// is searched).
const SMALL: usize = 8;

/// The cost of an instruction, in parts that so many users can share.
const INSTRUCTION: u32 = 12;

/// Most users of an operation that each of them may make again (*assumed*).
const FEW: usize = 4;

/// A bitwise operation.
enum Bitwise {
    /// Of two operands, by the table of `INPUTS[0]` and `INPUTS[1]`.
    Two(u8, [Value; 2]),
    Not(Value),
    Select([Value; 3]),
}

impl Fuser<'_> {
    /// The function of a tree of at least two operations that has this root.
    pub(super) fn logic(&mut self, root: Inst) -> Option<Logic> {
        let &[value] = self.func.dfg.inst_results(root) else {
            return None;
        };
        self.bitwise(value)?;
        if self.is_truth(value) || self.is_low_mask_of(root) {
            return None;
        }
        let (table, leaves) = match self.whole_tree(value) {
            Some(whole) => whole,
            None => self.best_cut(value)?,
        };
        let operands = self.func.dfg.inst_args(root);
        let is_alone = operands.iter().all(|operand| leaves.contains(operand));
        let &first = leaves.first()?;
        let inputs = std::array::from_fn(|i| leaves.get(i).copied().unwrap_or(first));
        (!is_alone).then_some(Logic { table, inputs })
    }

    /// Whether selection has SGXT for it: `x & ~(-1 << n)`.
    fn is_low_mask_of(&self, root: Inst) -> bool {
        let mask = |value: Value| {
            let Some(InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            }) = self.def_data(value)
            else {
                return false;
            };
            let Some(InstructionData::Binary {
                opcode: Opcode::Ishl,
                args: [ones, _],
            }) = self.def_data(arg)
            else {
                return false;
            };
            self.is_used_once(value) && self.signed_constant_of(ones) == Some(-1)
        };
        match self.func.dfg.insts[root] {
            InstructionData::Binary {
                opcode: Opcode::Band,
                args,
            } => self.type_of(args[0]) == types::I32 && args.into_iter().any(mask),
            _ => false,
        }
    }

    /// The operation that makes a value, if it is one for LOP3.
    fn bitwise(&self, value: Value) -> Option<Bitwise> {
        match self.def_data(value)? {
            InstructionData::Binary { opcode, args } => {
                let [a, b, _] = INPUTS;
                let table = match opcode {
                    Opcode::Band => a & b,
                    Opcode::Bor => a | b,
                    Opcode::Bxor => a ^ b,
                    _ => return None,
                };
                Some(Bitwise::Two(table, args))
            }
            InstructionData::Unary {
                opcode: Opcode::Bnot,
                arg,
            } => Some(Bitwise::Not(arg)),
            InstructionData::Ternary {
                opcode: Opcode::Bitselect,
                args,
            } => Some(Bitwise::Select(args)),
            _ => None,
        }
    }

    /// Whether a value is part of the tree of the one operation that reads it.
    fn is_inner(&self, value: Value) -> bool {
        self.is_used_once(value) && !self.is_truth(value) && self.bitwise(value).is_some()
    }

    /// The operands of an operation that all of its few users, bitwise ones of this block, may make again, if none has
    /// asked for it.
    fn made_again(&self, value: Value) -> Option<(u8, [Value; 2])> {
        let users = self.users.of(value);
        if !(2..=FEW).contains(&users.len()) || self.asked.contains(value) {
            return None;
        }
        let Some(Bitwise::Two(table, args)) = self.bitwise(value) else {
            return None;
        };
        let here = |inst| self.func.layout.inst_block(inst) == self.current;
        let logical = |&inst: &_| {
            let opcode = self.func.dfg.insts[inst].opcode();
            here(inst) && matches!(opcode, Opcode::Band | Opcode::Bor | Opcode::Bxor)
        };
        let plain = ([value, args[0], args[1]].iter()).all(|&v| !self.is_truth(v));
        let free = plain && self.def_of(value).is_some_and(here) && users.iter().all(logical);
        free.then_some((table, args))
    }

    /// The table and the leaves of the tree of a root, if they are no more than LOP3 takes and nothing among them may
    /// be made again.
    fn whole_tree(&self, root: Value) -> Option<(u8, Leaves)> {
        let mut leaves = Leaves::new();
        let mut budget = SMALL;
        let table = self.whole(root, true, &mut budget, &mut leaves)?;
        let settled = leaves.iter().all(|&leaf| self.made_again(leaf).is_none());
        settled.then_some((table, leaves))
    }

    fn whole(
        &self,
        value: Value,
        root: bool,
        budget: &mut usize,
        leaves: &mut Leaves,
    ) -> Option<u8> {
        *budget = budget.checked_sub(1)?;
        if !root && !self.is_inner(value) {
            return place(leaves, value).map(|i| INPUTS[i]);
        }
        let mut table = |value, leaves: &mut Leaves| self.whole(value, false, budget, leaves);
        match self.bitwise(value)? {
            Bitwise::Two(f, [x, y]) => {
                let (x, y) = (table(x, leaves)?, table(y, leaves)?);
                Some(composed(f, [x, y, 0]))
            }
            Bitwise::Not(x) => table(x, leaves).map(|t| !t),
            Bitwise::Select([c, x, y]) => {
                let (c, x) = (table(c, leaves)?, table(x, leaves)?);
                table(y, leaves).map(|y| c & x | !c & y)
            }
        }
    }

    /// The table and the leaves of the cheapest cut of a root.
    fn best_cut(&mut self, root: Value) -> Option<(u8, Leaves)> {
        let mut work: SmallVec<[Value; 16]> = SmallVec::from_slice(&[root]);
        while let Some(&value) = work.last() {
            if self.cuts.contains_key(&value) {
                work.pop();
                continue;
            }
            let before = work.len();
            let operands: SmallVec<[Value; 3]> = match self.bitwise(value)? {
                Bitwise::Two(_, args) => SmallVec::from_slice(&args),
                Bitwise::Not(x) => SmallVec::from_slice(&[x]),
                Bitwise::Select(args) => SmallVec::from_slice(&args),
            };
            let open = |v: &Value| self.is_inner(*v) && !self.cuts.contains_key(v);
            work.extend(operands.into_iter().filter(open));
            if work.len() == before {
                let cuts = self.cuts_of(value)?;
                self.cuts.insert(value, cuts);
                work.pop();
            }
        }
        let best = self.cuts[&root].first()?;
        Some((best.table, best.leaves.clone()))
    }

    /// The cuts of an operation whose operands' are known.
    fn cuts_of(&self, value: Value) -> Option<Cuts> {
        let mut cuts = Cuts::new();
        match self.bitwise(value)? {
            Bitwise::Two(f, [x, y]) => {
                let (xs, ys) = (self.options(x), self.options(y));
                for x in &xs {
                    for y in &ys {
                        self.combine(&mut cuts, &[x, y], |[x, y, _]| composed(f, [x, y, 0]));
                    }
                }
            }
            Bitwise::Not(x) => {
                for x in &self.options(x) {
                    self.combine(&mut cuts, &[x], |[x, ..]| !x);
                }
            }
            // The choice of each operand's cut is not searched: three leaves are all that fits.
            Bitwise::Select(args) => {
                let [c, x, y] = args.map(|v| Cut::leaf(v, self.cost_of(v)));
                self.combine(&mut cuts, &[&c, &x, &y], |[c, x, y]| c & x | !c & y);
            }
        }
        Some(cuts)
    }

    /// Adds the cut that has the leaves of these, if they are not too many.
    fn combine(&self, cuts: &mut Cuts, parts: &[&Cut], f: impl Fn([u8; LEAVES]) -> u8) {
        let mut leaves = Leaves::new();
        let mut tables = [0; LEAVES];
        for (table, part) in tables.iter_mut().zip(parts) {
            match part.over(&mut leaves) {
                Some(over) => *table = over,
                None => return,
            }
        }
        let below: u32 = leaves.iter().map(|&leaf| self.cost_of(leaf)).sum();
        let cut = Cut {
            table: f(tables),
            leaves,
            cost: INSTRUCTION + below,
        };
        keep(cuts, cut);
    }

    /// The cuts that an operand offers: itself, and those behind it.
    fn options(&self, value: Value) -> Cuts {
        let mut options: Cuts = SmallVec::from_elem(Cut::leaf(value, self.cost_of(value)), 1);
        if self.is_inner(value) {
            if let Some(cuts) = self.cuts.get(&value) {
                options.extend(cuts.iter().cloned());
            }
        } else if let Some((table, [x, y])) = self.made_again(value) {
            let mut leaves = Leaves::new();
            if let (Some(x), Some(y)) = (place(&mut leaves, x), place(&mut leaves, y)) {
                options.push(Cut {
                    table: composed(table, [INPUTS[x], INPUTS[y], 0]),
                    leaves,
                    cost: 0,
                });
            }
        }
        options
    }

    /// What it costs to have a value in registers, as far as this tree pays for it.
    fn cost_of(&self, value: Value) -> u32 {
        if self.is_inner(value) {
            let cuts = self.cuts.get(&value);
            cuts.and_then(|cuts| cuts.first())
                .map_or(INSTRUCTION, |cut| cut.cost)
        } else if self.made_again(value).is_some() {
            INSTRUCTION / self.users.of(value).len() as u32
        } else {
            0
        }
    }
}
