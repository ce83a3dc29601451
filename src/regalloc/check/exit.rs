//! The ends of blocks: terminators are what they were, and what they read is there.

use super::Checker;
use super::location::{Content, What};
use crate::abi;
use crate::isa::{PReg, VReg};
use crate::vcode::{Block, Callee, FunctionKind, Terminator};
use smallvec::SmallVec;

impl Checker<'_> {
    /// Compares the terminator, and asks for its operands.
    pub(super) fn terminator(&mut self, block: Block) -> Result<(), String> {
        let (before, after) = (self.before, self.after);
        let (old, new) = (
            &before.blocks[block].terminator,
            &after.blocks[block].terminator,
        );
        let mut needs: SmallVec<[(VReg, PReg); 8]> = SmallVec::new();
        let same = match (old, new) {
            (Terminator::Jump { target: a, .. }, Terminator::Jump { target: b, args }) => {
                a == b && args.is_empty()
            }
            (
                Terminator::Branch {
                    guard: g,
                    taken: t,
                    fallthrough: f,
                    divergent: d,
                },
                Terminator::Branch {
                    guard: h,
                    taken: u,
                    fallthrough: e,
                    divergent: i,
                },
            ) => {
                needs.push((g.reg, h.reg));
                (g.negated, t, f, d) == (h.negated, u, e, i)
            }
            (
                Terminator::Table {
                    index: v,
                    table: a,
                    targets: t,
                    divergent: d,
                },
                Terminator::Table {
                    index: r,
                    table: b,
                    targets: u,
                    divergent: e,
                },
            ) => {
                needs.push((*v, *r));
                (a, t, d) == (b, u, e)
            }
            (
                Terminator::Return {
                    address: a,
                    values: v,
                },
                Terminator::Return {
                    address: b,
                    values: w,
                },
            ) => pair(a, b, &mut needs) && fixed(v, w, &mut needs),
            (
                Terminator::TailCall {
                    callee: a,
                    values: v,
                },
                Terminator::TailCall {
                    callee: b,
                    values: w,
                },
            ) => {
                fixed(v, w, &mut needs)
                    && match (a, b) {
                        (Callee::Symbol(a), Callee::Symbol(b)) => a == b,
                        (Callee::Registers(a), Callee::Registers(b)) => pair(a, b, &mut needs),
                        _ => false,
                    }
            }
            (Terminator::Exit, Terminator::Exit) => true,
            (Terminator::Trap(a), Terminator::Trap(b)) => a == b,
            _ => false,
        };
        if !same {
            return Err(format!("is not `{old}`"));
        }
        let user = (block, 2 * after.blocks[block].insts.end);
        for (v, r) in needs {
            self.limit(r)?;
            self.need(user, r.into(), Content::value(v))?;
        }
        let leaves = matches!(new, Terminator::Return { .. } | Terminator::TailCall { .. });
        if leaves && before.kind == FunctionKind::Device {
            for r in abi::CALLEE_SAVED.map(PReg::gpr) {
                self.need(user, r.into(), What::Entry(r).into())?;
            }
        }
        Ok(())
    }
}

/// An address in an aligned pair of registers.
fn pair(old: &[VReg; 2], new: &[PReg; 2], needs: &mut SmallVec<[(VReg, PReg); 8]>) -> bool {
    needs.extend(old.iter().copied().zip(new.iter().copied()));
    new[0].number().is_multiple_of(2) && new[1].number() == new[0].number() + 1
}

/// Values in the registers of the convention.
fn fixed(
    old: &[(VReg, PReg)],
    new: &[(PReg, PReg)],
    needs: &mut SmallVec<[(VReg, PReg); 8]>,
) -> bool {
    needs.extend_from_slice(old);
    old.iter().map(|(_, r)| (*r, *r)).eq(new.iter().copied())
}
