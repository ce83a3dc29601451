//! MOV.64: one instruction for two moves to the registers of an aligned pair.
//!
//! In: allocated code. Zeros of neighbouring accumulators and halves of constants are words of their own until they
//! have registers. Where two moves of one block write both registers of a pair, from RZ or from the registers of a pair
//! in the same order, and what stands between them lets one of them go to the other's place, MOV.64 takes their place;
//! a register that holds zero is RZ here. One walk over each block: of every register it is known where it was last
//! read or written.
//!
//! Guarded moves and moves across a call stay; so do immediates, which MOV.64 does not take.

use super::locations::Definitions;
use super::moves;
use super::parallel::Copy;
use super::predicate_reloads;
use crate::isa::generated::{MOVW, mov};
use crate::isa::operand::RZ;
use crate::isa::{Form, PInst, PReg, Register, RegisterClass, build};
use crate::vcode::{Attachment, Entry, VCode};

/// Registers that exist.
const REGISTERS: usize = RegisterClass::Gpr.hardwired() as usize;

/// A move of a word by MOV: to a register, from another or from RZ.
#[derive(Clone, Copy)]
struct Move {
    to: PReg,
    from: Option<PReg>,
}

/// A move in the code.
#[derive(Clone, Copy)]
struct Placed {
    index: u32,
    from: Option<PReg>,
}

/// What is known of a register in a block. Times count instructions from one on; zero is before the block.
#[derive(Clone, Copy, Default)]
struct Last {
    /// When it was read or written.
    touched: u32,
    /// When it was written.
    written: u32,
    /// The move that wrote it, if it was one.
    by: Option<Placed>,
    /// Whether it holds zero.
    zero: bool,
}

/// Two moves that become one.
struct Joined {
    /// The one that goes.
    gone: u32,
    /// The one whose place MOV.64 takes.
    place: u32,
    inst: PInst,
}

/// Puts MOV.64 in place of two moves; `definitions` follow, where somebody wants to know.
pub(super) fn widen(code: &mut VCode<PReg>, definitions: Option<&mut Definitions>) {
    let mut joined = Vec::new();
    for data in code.blocks.values() {
        let insts = &code.insts[data.insts.start as usize..data.insts.end as usize];
        let moves = insts.iter().filter(|entry| move_of(entry).is_some());
        if moves.take(2).count() < 2 {
            continue;
        }
        let mut registers = Registers {
            last: [Last::default(); REGISTERS],
        };
        for index in data.insts.clone() {
            let entry = &code.insts[index as usize];
            if is_call(code, entry) {
                registers.forget(index + 1);
                continue;
            }
            let written = move_of(entry).map(|m| registers.without_zeros(m));
            let found = written.and_then(|m| registers.join(index, m));
            registers.note(&entry.inst, index, written.filter(|_| found.is_none()));
            if let Some(found) = found {
                // Wherever it stands: later moves must not go behind the second.
                registers.note(&found.inst, index, None);
                joined.push(found);
            }
        }
    }
    if joined.is_empty() {
        return;
    }
    let mut gone = vec![false; code.insts.len()];
    for joined in &joined {
        code.insts[joined.place as usize].inst = joined.inst;
        gone[joined.gone as usize] = true;
    }
    predicate_reloads::remove(code, &gone);
    if let Some(definitions) = definitions {
        let moved = joined.iter().map(|joined| (joined.gone, joined.place));
        definitions.moved(moved, &gone);
    }
}

struct Registers {
    last: [Last; REGISTERS],
}

impl Registers {
    fn of(&self, register: PReg) -> Last {
        self.last[usize::from(register.number())]
    }

    /// The move, from RZ where the register that it reads holds zero.
    fn without_zeros(&self, found: Move) -> Move {
        Move {
            from: found.from.filter(|r| !self.of(*r).zero),
            ..found
        }
    }

    /// The move at `index` and one before it, if both are of one pair and may stand in one place.
    fn join(&self, index: u32, second: Move) -> Option<Joined> {
        let other = PReg::gpr(second.to.number() ^ 1);
        if usize::from(other.number()) >= REGISTERS {
            return None;
        }
        let first = self.of(other).by?;
        let inst = match (first.from, second.from) {
            (None, None) => {
                let low = second.to.number() & !1;
                let to = [PReg::gpr(low), PReg::gpr(low + 1)];
                build::mov_r(mov::Options::new(MOVW::W64), to, RZ)
            }
            (Some(from), Some(behind)) => {
                let partners = from.number() ^ 1 == behind.number();
                let in_order = from.number() & 1 == other.number() & 1;
                if !partners || !in_order {
                    return None;
                }
                let low = |r: PReg| PReg::gpr(r.number() & !1);
                moves::copy_pair(Copy {
                    from: low(from),
                    to: low(other),
                })
            }
            _ => return None,
        };
        let time = first.index + 1;
        let written = |from: Option<PReg>| from.map_or(0, |r| self.of(r).written);
        let joined = |gone, place| Some(Joined { gone, place, inst });
        if self.of(second.to).touched < time && written(second.from) < time {
            joined(index, first.index)
        } else if self.of(other).touched == time && written(first.from) < time {
            joined(first.index, index)
        } else {
            None
        }
    }

    /// Remembers what an instruction reads and writes.
    fn note(&mut self, inst: &PInst, index: u32, written: Option<Move>) {
        let time = index + 1;
        let is_gpr = |r: &PReg| r.class() == RegisterClass::Gpr;
        for register in inst.uses().filter(is_gpr) {
            self.last[usize::from(register.number())].touched = time;
        }
        let zero = is_zero_move(inst) || written.is_some_and(|m| m.from.is_none());
        for register in inst.definitions().filter(is_gpr) {
            let by = written.map(|m| Placed {
                index,
                from: m.from,
            });
            self.last[usize::from(register.number())] = Last {
                touched: time,
                written: time,
                by,
                zero,
            };
        }
    }

    /// What happened before `time` is no place to move to.
    fn forget(&mut self, time: u32) {
        self.last.fill(Last {
            touched: time,
            written: time,
            by: None,
            zero: false,
        });
    }
}

fn is_call(code: &VCode<PReg>, entry: &Entry<PReg>) -> bool {
    (entry.attachment).is_some_and(|a| matches!(code.attachments[a], Attachment::Call(_)))
}

/// Whether an instruction only writes zeros, to one register or a pair.
fn is_zero_move(inst: &PInst) -> bool {
    inst.form() == Form::MOV_R && inst.is_unguarded() && inst.uses().next().is_none()
}

fn move_of(entry: &Entry<PReg>) -> Option<Move> {
    let inst = &entry.inst;
    let plain = inst.form() == Form::MOV_R
        && inst.is_unguarded()
        && entry.attachment.is_none()
        && inst.get(mov::WIDTH) == Some(MOVW::W32);
    let to = inst.definitions().next().filter(|_| plain)?;
    Some(Move {
        to,
        from: inst.uses().next(),
    })
}
