//! How threads wait, and let others go on.

use super::emit::{Emitter, flag_type, function};
use super::plan::{Look, Release, Sync, Through, Turning};
use crate::simt::emit::aligned;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, BlockArg, InstBuilder, Signature, StackSlot, StackSlotData,
    StackSlotKind, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::Variable;

/// Something that is waited for.
#[derive(Clone, Copy)]
struct Awaited {
    /// Where the flag is.
    place: Value,
    /// What it has to be.
    wanted: Value,
    /// A word for what goes through memory, if there is one.
    scratch: Option<Value>,
}

impl Emitter<'_, '_> {
    /// The wait, what is done behind it, and the release.
    pub(super) fn synchronised(&mut self, flags: Value, rank: Value, round: Variable) {
        let plan = self.plan;
        let (ty, bytes) = (flag_type(plan), plan.flag_bytes);
        let skipped = self.constant(plan.skipped);
        let first = self.element_at(flags, skipped, bytes);
        let now = self.builder.use_var(round);
        let scratch = match plan.wait.through {
            Through::Scratch(array) | Through::CalleeScratch(array) => self.bases[array],
            _ => None,
        };
        match plan.sync {
            Sync::Nothing => self.stmts(&plan.body),
            Sync::Turns => {
                let count = self.constant(plan.participants());
                let turn = self.builder.ins().imul(now, count);
                let turn = self.builder.ins().iadd(turn, rank);
                let turn = self.converted(turn, ty);
                let start = self.number(ty, plan.start);
                let wanted = self.builder.ins().iadd(turn, start);
                self.wait_and_do(
                    Awaited {
                        place: first,
                        wanted,
                        scratch,
                    },
                    first,
                    wanted,
                );
            }
            Sync::Lock => {
                let wanted = self.number(ty, 0);
                self.wait_and_do(
                    Awaited {
                        place: first,
                        wanted,
                        scratch,
                    },
                    first,
                    wanted,
                );
            }
            Sync::Tickets => {
                let one = self.number(ty, 1);
                let add = AtomicRmwOp::Add;
                let wanted = self
                    .builder
                    .ins()
                    .atomic_rmw(ty, aligned(), add, first, one);
                let next = self.constant(1);
                let place = self.element_at(first, next, bytes);
                self.wait_and_do(
                    Awaited {
                        place,
                        wanted,
                        scratch,
                    },
                    place,
                    wanted,
                );
            }
            Sync::Links { ring } => self.link(first, rank, now, scratch, ring),
        }
    }

    fn link(&mut self, first: Value, rank: Value, now: Value, scratch: Option<Value>, ring: bool) {
        let plan = self.plan;
        let (ty, bytes) = (flag_type(plan), plan.flag_bytes);
        let one = self.constant(1);
        let before = self.builder.ins().isub(rank, one);
        let own = self.element_at(first, rank, bytes);
        let round = self.converted(now, ty);
        if ring {
            let last = self.constant(plan.participants() - 1);
            let before = self.builder.ins().select(rank, before, last);
            let place = self.element_at(first, before, bytes);
            let zero = self.constant(0);
            let there = self.builder.ins().icmp(IntCC::NotEqual, rank, zero);
            let there = self.converted(there, ty);
            let wanted = self.builder.ins().iadd(round, there);
            self.wait_and_do(
                Awaited {
                    place,
                    wanted,
                    scratch,
                },
                own,
                round,
            );
            return;
        }
        let [waits, behind] = [(); 2].map(|()| self.builder.create_block());
        self.builder.ins().brif(rank, waits, &[], behind, &[]);
        self.builder.switch_to_block(waits);
        let place = self.element_at(first, before, bytes);
        let one = self.number(ty, 1);
        let wanted = self.builder.ins().iadd(round, one);
        self.wait(Awaited {
            place,
            wanted,
            scratch,
        });
        self.builder.ins().jump(behind, &[]);
        self.builder.switch_to_block(behind);
        self.stmts(&plan.body);
        self.release(own, round);
    }

    /// Waits, does it, and counts the flag at `to`, which is `from`, on.
    fn wait_and_do(&mut self, awaited: Awaited, to: Value, from: Value) {
        if self.plan.wait.turning != Turning::Inside {
            self.wait(awaited);
            self.stmts(&self.plan.body);
            self.release(to, from);
            return;
        }
        let [again, inside, tried, out] = [(); 4].map(|()| self.builder.create_block());
        let done = self.builder.append_block_param(tried, types::I32);
        let (zero, one) = (self.constant(0), self.constant(1));
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        let (found, _) = self.look(awaited);
        let not_yet = [BlockArg::Value(zero)];
        self.builder.ins().brif(found, inside, &[], tried, &not_yet);
        self.builder.switch_to_block(inside);
        self.stmts(&self.plan.body);
        self.release(to, from);
        self.builder.ins().jump(tried, &[BlockArg::Value(one)]);
        self.builder.switch_to_block(tried);
        self.builder.ins().brif(done, out, &[], again, &[]);
        self.builder.switch_to_block(out);
    }

    /// Waits, here or in a function.
    fn wait(&mut self, awaited: Awaited) {
        let wait = self.plan.wait;
        if !wait.function && wait.turning != Turning::Tail {
            self.wait_here(awaited);
            return;
        }
        let address = self.builder.func.dfg.value_type(awaited.place);
        let scratch = awaited.scratch.unwrap_or(awaited.place);
        let memory = self.builder.func.dfg.value_type(scratch);
        let mut signature = Signature::new(match wait.turning {
            Turning::Tail => CallConv::Tail,
            _ => CallConv::Fast,
        });
        signature.params = [address, flag_type(self.plan), memory]
            .map(AbiParam::new)
            .to_vec();
        let with_scratch = awaited.scratch.is_some();
        let body = |emitter: &mut Emitter<'_, '_>, params: &[Value]| {
            let [place, wanted, memory] = params[..] else {
                return;
            };
            let scratch = with_scratch.then_some(memory);
            let awaited = Awaited {
                place,
                wanted,
                scratch,
            };
            match wait.turning {
                Turning::Tail => emitter.wait_by_calls(awaited, params),
                _ => {
                    emitter.wait_here(awaited);
                    emitter.builder.ins().return_(&[]);
                }
            }
        };
        let written = function(self.plan, "wait", &signature, self.helpers, body);
        self.helpers.push(written);
        let callee = self.import("wait", signature);
        self.builder
            .ins()
            .call(callee, &[awaited.place, awaited.wanted, scratch]);
    }

    fn wait_by_calls(&mut self, awaited: Awaited, params: &[Value]) {
        let out = self.builder.create_block();
        self.leave_if_found(awaited, out);
        let signature = self.builder.func.signature.clone();
        let callee = self.import("wait", signature);
        self.builder.ins().return_call(callee, params);
        self.builder.switch_to_block(out);
        self.builder.ins().return_(&[]);
    }

    fn wait_here(&mut self, awaited: Awaited) {
        let [again, out] = [(); 2].map(|()| self.builder.create_block());
        let looks = self.builder.declare_var(types::I32);
        let zero = self.constant(0);
        self.builder.def_var(looks, zero);
        self.builder.ins().jump(again, &[]);
        self.builder.switch_to_block(again);
        match self.plan.wait.turning {
            Turning::Plain | Turning::Inside | Turning::Tail => {
                let (found, _) = self.look(awaited);
                self.builder.ins().brif(found, out, &[], again, &[]);
            }
            Turning::Twice => {
                let exits = [(); 2].map(|()| self.builder.create_block());
                for exit in exits {
                    self.leave_if_found(awaited, exit);
                }
                self.builder.ins().jump(again, &[]);
                for (number, exit) in (1..).zip(exits) {
                    self.builder.switch_to_block(exit);
                    // The exits differ.
                    let number = self.constant(number);
                    let slot = self.slot();
                    self.builder.ins().stack_store(types::I64, number, slot, 8);
                    self.builder.ins().jump(out, &[]);
                }
            }
            Turning::Sleep => {
                self.leave_if_found(awaited, out);
                self.sleep(looks, again);
            }
            Turning::Bounded => {
                let sleep = self.builder.create_block();
                self.leave_if_found(awaited, out);
                let now = self.builder.use_var(looks);
                let (one, three) = (self.constant(1), self.constant(3));
                let count = self.builder.ins().iadd(now, one);
                self.builder.def_var(looks, count);
                let rest = self.builder.ins().band(count, three);
                self.builder.ins().brif(rest, again, &[], sleep, &[]);
                self.builder.switch_to_block(sleep);
                self.sleep(looks, again);
            }
            Turning::Nested => {
                let seen = self.leave_if_found(awaited, out);
                let loads = self.builder.create_block();
                self.builder.ins().jump(loads, &[]);
                self.builder.switch_to_block(loads);
                let ty = flag_type(self.plan);
                let now = self.builder.ins().atomic_load(ty, aligned(), awaited.place);
                let same = self.builder.ins().icmp(IntCC::Equal, now, seen);
                self.builder.ins().brif(same, loads, &[], again, &[]);
            }
        }
        self.builder.switch_to_block(out);
    }

    /// Looks, leaves for `out` if what is awaited is there, and goes on in a new block; what it saw.
    fn leave_if_found(&mut self, awaited: Awaited, out: Block) -> Value {
        let next = self.builder.create_block();
        let (found, seen) = self.look(awaited);
        self.builder.ins().brif(found, out, &[], next, &[]);
        self.builder.switch_to_block(next);
        seen
    }

    /// Does something that takes a while, and goes on.
    fn sleep(&mut self, looks: Variable, again: Block) {
        let [turn, rest] = [(); 2].map(|()| self.builder.create_block());
        let left = self.builder.append_block_param(turn, types::I32);
        let value = self.builder.append_block_param(turn, types::I32);
        let now = self.builder.use_var(looks);
        let [one, mask, factor] = [1, 7, 0x9e37_79b1].map(|n| self.constant(n));
        let next = self.builder.ins().iadd(now, one);
        self.builder.def_var(looks, next);
        let turns = self.builder.ins().band(next, mask);
        let turns = self.builder.ins().iadd(turns, one);
        let first = [BlockArg::Value(turns), BlockArg::Value(next)];
        self.builder.ins().jump(turn, &first);
        self.builder.switch_to_block(turn);
        let product = self.builder.ins().imul(value, factor);
        let product = self.builder.ins().iadd(product, left);
        let left = self.builder.ins().isub(left, one);
        let more = [BlockArg::Value(left), BlockArg::Value(product)];
        self.builder.ins().brif(left, turn, &more, rest, &[]);
        self.builder.switch_to_block(rest);
        let slot = self.slot();
        self.builder
            .ins()
            .stack_store(types::I64, product, slot, 12);
        self.builder.ins().jump(again, &[]);
    }

    /// A slot: eight bytes for what was read, two words, and eight bytes for another place.
    fn slot(&mut self) -> StackSlot {
        let builder = &mut self.builder;
        *self.slot.get_or_insert_with(|| {
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 24, 3);
            builder.create_sized_stack_slot(data)
        })
    }

    /// Reads the flag: whether it is what is waited for, and what it is.
    fn look(&mut self, awaited: Awaited) -> (Value, Value) {
        let ty = flag_type(self.plan);
        let seen = match self.plan.wait.through {
            Through::Nothing => self.read(awaited),
            Through::Stack => {
                let seen = self.read(awaited);
                let slot = self.slot();
                self.builder.ins().stack_store(types::I64, seen, slot, 0);
                self.builder.ins().stack_load(types::I64, ty, slot, 0)
            }
            Through::Element => {
                let seen = self.read(awaited);
                let slot = self.slot();
                let base = self.builder.ins().stack_addr(types::I64, slot, 0);
                // What is waited for is as good as any other number.
                let one = self.number(ty, 1);
                let odd = self.builder.ins().band(awaited.wanted, one);
                let place = self.element_at(base, odd, 16);
                self.builder.ins().store(aligned(), seen, place, 0);
                self.builder.ins().load(ty, aligned(), place, 0)
            }
            Through::Scratch(_) => {
                let seen = self.read(awaited);
                match awaited.scratch {
                    Some(scratch) => {
                        self.builder.ins().store(aligned(), seen, scratch, 0);
                        self.builder.ins().load(ty, aligned(), scratch, 0)
                    }
                    None => seen,
                }
            }
            Through::Callee | Through::CalleeScratch(_) => self.read_by_callee(awaited, ty),
        };
        (self.is_wanted(seen, awaited.wanted), seen)
    }

    fn read_by_callee(&mut self, awaited: Awaited, ty: Type) -> Value {
        let address = self.builder.func.dfg.value_type(awaited.place);
        let mut signature = Signature::new(CallConv::Fast);
        signature.params = [address, ty, types::I64].map(AbiParam::new).to_vec();
        if !self
            .helpers
            .iter()
            .any(|helper| helper.name.to_string() == "%look")
        {
            let body = |emitter: &mut Emitter<'_, '_>, params: &[Value]| {
                let [place, wanted, to] = params[..] else {
                    return;
                };
                let seen = emitter.read(Awaited {
                    place,
                    wanted,
                    scratch: None,
                });
                emitter.builder.ins().store(aligned(), seen, to, 0);
                emitter.builder.ins().return_(&[]);
            };
            let written = function(self.plan, "look", &signature, self.helpers, body);
            self.helpers.push(written);
        }
        let to = match awaited.scratch {
            Some(scratch) => scratch,
            None => {
                let slot = self.slot();
                self.builder.ins().stack_addr(types::I64, slot, 0)
            }
        };
        let callee = self.import("look", signature);
        self.builder
            .ins()
            .call(callee, &[awaited.place, awaited.wanted, to]);
        self.builder.ins().load(ty, aligned(), to, 0)
    }

    /// What the flag was.
    fn read(&mut self, awaited: Awaited) -> Value {
        let (ty, place, wanted) = (flag_type(self.plan), awaited.place, awaited.wanted);
        let update = |emitter: &mut Self, op, value| {
            let value = emitter.number(ty, value);
            emitter
                .builder
                .ins()
                .atomic_rmw(ty, aligned(), op, place, value)
        };
        match self.plan.wait.look {
            Look::Load => self.builder.ins().atomic_load(ty, aligned(), place),
            Look::Update => {
                const SAME: [(AtomicRmwOp, u64); 6] = [
                    (AtomicRmwOp::Add, 0),
                    (AtomicRmwOp::Or, 0),
                    (AtomicRmwOp::Xor, 0),
                    (AtomicRmwOp::And, u64::MAX),
                    (AtomicRmwOp::Umax, 0),
                    (AtomicRmwOp::Umin, u64::MAX),
                ];
                let (op, value) = SAME[(self.plan.seed % SAME.len() as u64) as usize];
                update(self, op, value)
            }
            Look::Swap => self
                .builder
                .ins()
                .atomic_cas(aligned(), place, wanted, wanted),
            Look::Busy => {
                let busy = match self.plan.sync {
                    Sync::Lock => 1,
                    _ => u64::MAX,
                };
                let busy = self.number(ty, busy);
                self.builder
                    .ins()
                    .atomic_cas(aligned(), place, wanted, busy)
            }
            Look::Count => update(self, AtomicRmwOp::Add, 256),
            Look::Bit => update(self, AtomicRmwOp::Or, 1),
            Look::Exchange => update(self, AtomicRmwOp::Xchg, 1),
        }
    }

    fn is_wanted(&mut self, seen: Value, wanted: Value) -> Value {
        let ty = flag_type(self.plan);
        let (mut seen, mut wanted) = (seen, wanted);
        if self.plan.wait.look == Look::Count {
            let low = self.number(ty, 255);
            seen = self.builder.ins().band(seen, low);
            wanted = self.builder.ins().band(wanted, low);
        }
        let code = match self.plan.sync {
            // Who writes the flag does not wait.
            Sync::Links { ring: false } => IntCC::UnsignedGreaterThanOrEqual,
            _ => IntCC::Equal,
        };
        self.builder.ins().icmp(code, seen, wanted)
    }

    /// Lets others go on.
    fn release(&mut self, place: Value, from: Value) {
        let plan = self.plan;
        let ty = flag_type(plan);
        let one = self.number(ty, 1);
        let lock = plan.sync == Sync::Lock;
        let next = match lock {
            true => self.number(ty, 0),
            false => self.builder.ins().iadd(from, one),
        };
        let old = match plan.release {
            Release::Store => {
                self.builder.ins().atomic_store(aligned(), next, place);
                return;
            }
            Release::Exchange => {
                let op = AtomicRmwOp::Xchg;
                self.builder
                    .ins()
                    .atomic_rmw(ty, aligned(), op, place, next)
            }
            Release::Add => {
                let op = if lock {
                    AtomicRmwOp::Sub
                } else {
                    AtomicRmwOp::Add
                };
                self.builder.ins().atomic_rmw(ty, aligned(), op, place, one)
            }
            Release::Swap => {
                let from = if lock { one } else { from };
                self.builder.ins().atomic_cas(aligned(), place, from, next)
            }
        };
        if plan.release_read && plan.sync != Sync::Tickets {
            let (var, old) = (self.var(0), self.folded(old));
            let value = self.builder.ins().bxor(var, old);
            self.set(0, value);
        }
    }
}
