//! Shifts a sum by its parts, `(a << n) + (b << n)` for `(a + b) << n`, where a loop changes one of the two: the other
//! part is shifted in front of the loop, and LEA adds the first one, shifted, in one instruction. Differences alike.

use super::Hoisting;
use crate::analysis::uses::Users;
use crate::constants::integer;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Value, types};
use cranelift_codegen::loop_analysis::Loop;
use smallvec::SmallVec;

/// A shift of a sum that is otherwise read by sums alone, each of them shifted alike.
struct ShiftedSum {
    amount: i64,
    sum: Inst,
    /// A sum or a difference.
    opcode: Opcode,
    parts: [Value; 2],
    /// Shifts of a sum with this one, with what is added.
    further: SmallVec<[(Inst, Value); 2]>,
}

impl Hoisting<'_> {
    /// Shifts the parts if `inst` is the shift of a sum, and `innermost` changes one of them.
    pub(super) fn spread_shift(&mut self, inst: Inst, innermost: Loop) {
        let Some(found) = self.shifted_sum(inst, innermost) else {
            return;
        };
        let places = found.parts.map(|part| self.outermost(&[part], innermost));
        let (constant, (lp, to)) = match places {
            [Some(place), None] => (0, place),
            [None, Some(place)] => (1, place),
            _ => return,
        };
        let Some(last) = self.context.func.layout.last_inst(to) else {
            return;
        };
        let room = self.room(lp);
        if *room == 0 {
            return;
        }
        *room -= 1;
        let func = &mut self.context.func;
        let line = func.srcloc(inst);
        let mut pos = FuncCursor::new(func).at_inst(last).with_srcloc(line);
        let mut parts = found.parts;
        parts[constant] = shift(&mut pos, parts[constant], found.amount);
        pos.goto_after_inst(found.sum);
        parts[1 - constant] = shift(&mut pos, parts[1 - constant], found.amount);
        let [a, b] = parts;
        let (by, _) = pos.ins().Binary(found.opcode, types::I32, a, b);
        let result = pos.func.dfg.first_result(by);
        for (user, other) in found.further {
            // In front of the loop, too, if that is possible.
            let front = self.outermost(&[other], innermost);
            let func = &mut self.context.func;
            let at = front.and_then(|(_, to)| func.layout.last_inst(to));
            let mut pos = FuncCursor::new(func).at_inst(at.unwrap_or(user));
            let args = [result, shift(&mut pos, other, found.amount)];
            pos.func.dfg.insts[user] = InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            };
        }
        self.replace(inst, by);
    }

    /// `inst` as the shift of a sum of two that are not known, computed in `innermost`.
    fn shifted_sum(&mut self, inst: Inst, innermost: Loop) -> Option<ShiftedSum> {
        let func = &self.context.func;
        let (value, amount) = shift_to_the_left(func, inst)?;
        if func.dfg.value_type(value) != types::I32 || !(0..32).contains(&amount) {
            return None;
        }
        let sum = func.dfg.value_def(value).inst()?;
        let InstructionData::Binary {
            opcode: opcode @ (Opcode::Iadd | Opcode::Isub),
            args: parts,
        } = func.dfg.insts[sum]
        else {
            return None;
        };
        let loops = &self.context.loop_analysis;
        let is_inside =
            (func.layout.inst_block(sum)).is_some_and(|block| loops.is_in_loop(block, innermost));
        if !is_inside || parts.iter().any(|&part| integer(func, part).is_some()) {
            return None;
        }
        let users = self.users.get_or_insert_with(|| Users::compute(func));
        // What was spread before is still among the users.
        let is_there = |inst: &Inst| func.layout.inst_block(*inst).is_some();
        let users_of = |value| users.of(value).iter().copied().filter(is_there);
        if !users_of(value).any(|user| user == inst) {
            return None;
        }
        // The same shift of a sum with this one becomes a sum with the shifted one.
        let mut further = SmallVec::new();
        for user in users_of(value).filter(|user| *user != inst) {
            let InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [a, b],
            } = func.dfg.insts[user]
            else {
                return None;
            };
            let mut shifts = users_of(func.dfg.first_result(user));
            let (Some(shift), None) = (shifts.next(), shifts.next()) else {
                return None;
            };
            if a == b || shift_to_the_left(func, shift).is_none_or(|(_, by)| by != amount) {
                return None;
            }
            further.push((shift, if a == value { b } else { a }));
        }
        Some(ShiftedSum {
            amount,
            sum,
            opcode,
            parts,
            further,
        })
    }
}

/// What an instruction shifts to the left, by a number that is known.
fn shift_to_the_left(func: &Function, inst: Inst) -> Option<(Value, i64)> {
    match func.dfg.insts[inst] {
        InstructionData::Binary {
            opcode: Opcode::Ishl,
            args: [value, by],
        } => Some((value, integer(func, by)?)),
        _ => None,
    }
}

/// A word shifted to the left, by an amount below 32; what is shifted already is shifted further.
fn shift(pos: &mut FuncCursor<'_>, value: Value, amount: i64) -> Value {
    let func = &*pos.func;
    if let Some(number) = integer(func, value) {
        let shifted = (number << amount) as u32;
        return pos.ins().iconst(types::I32, i64::from(shifted));
    }
    let inner = func.dfg.value_def(value).inst();
    let (value, amount) = inner
        .and_then(|inner| shift_to_the_left(func, inner))
        .filter(|(_, first)| (0..32 - amount).contains(first))
        .map_or((value, amount), |(inside, first)| (inside, first + amount));
    let by = pos.ins().iconst(types::I32, amount);
    pos.ins().ishl(value, by)
}
