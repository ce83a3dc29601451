//! Runs functions before and after allocation, and knows nothing of the allocator.
//!
//! Instructions that an allocator may add or use (moves, exclusive or, tests of bits, packed predicates, additions,
//! selections, comparisons, local memory) do what they say; every other result is a hash of the instruction and its
//! inputs. What is observed: the inputs of stores and calls, results, and registers of the caller that are not kept.

use crate::abi;
use crate::isa::generated::{CompOp, IExt, IType, MOVW, Role, iadd, isetp, uiadd};
use crate::isa::table::{Direction, Effects};
use crate::isa::{Form, Inst, PReg, Register, RegisterClass, VReg};
use crate::regalloc::frame::SLOTS;
use crate::vcode::{Attachment, Block, Callee, Entry, FunctionKind, Terminator, VCode};
use hashbrown::HashMap;

/// A register file of one phase.
pub(super) trait Names: Register {
    /// Where a value that the convention puts into `fixed` is found.
    fn place(self, fixed: PReg) -> Self;
    /// Whether registers are those of the machine, where calls destroy and local memory is real.
    const MACHINE: bool;
    fn machine(r: PReg) -> Option<Self>;
}

impl Names for VReg {
    fn place(self, _: PReg) -> Self {
        self
    }
    const MACHINE: bool = false;
    fn machine(_: PReg) -> Option<Self> {
        None
    }
}

impl Names for PReg {
    fn place(self, fixed: PReg) -> Self {
        fixed
    }
    const MACHINE: bool = true;
    fn machine(r: PReg) -> Option<Self> {
        Some(r)
    }
}

fn hash(items: impl IntoIterator<Item = u64>) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for i in items {
        h = (h ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        h ^= h >> 29;
    }
    h
}

/// Shown for a register of the caller that has changed.
const LOST: u64 = 0x10_57;

/// Stack slots of a function before allocation, which has no frame yet.
const SLOT_AREA: u32 = 0x4000_0000;

/// A function while it runs.
pub(super) struct Machine<'a, R: Names> {
    code: &'a VCode<R>,
    registers: HashMap<R, u32>,
    memory: HashMap<u32, u32>,
    observed: Vec<u64>,
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// At the start of a block, whose parameters have their values.
    Start(Block),
    /// Before an instruction.
    Before(u32),
    /// At the end of a block.
    End,
}

/// What a run shows: hashes in order, at most `blocks` blocks long.
pub(super) fn run<R: Names>(code: &VCode<R>, seed: u64, blocks: usize) -> Vec<u64> {
    run_watched(code, seed, blocks, &mut |_, _| ())
}

/// [`run`], looked at by `watch` on the way.
pub(super) fn run_watched<R: Names>(
    code: &VCode<R>,
    seed: u64,
    blocks: usize,
    watch: &mut dyn FnMut(At, &Machine<'_, R>),
) -> Vec<u64> {
    let mut m = Machine {
        code,
        registers: HashMap::new(),
        memory: HashMap::new(),
        observed: Vec::new(),
    };
    let initial = |r: PReg| hash([seed, u64::from(r.number()), r.class() as u64]) as u32;
    let stack = 0x8000u32;
    if R::MACHINE {
        for class in RegisterClass::ALL {
            for n in 0..class.hardwired() {
                let garbage = hash([seed, 99, u64::from(n), class as u64]) as u32;
                let value = if class == RegisterClass::Predicate {
                    garbage & 1
                } else {
                    garbage
                };
                m.registers
                    .insert(R::machine(PReg::new(class, n)).expect("a machine"), value);
            }
        }
        for n in abi::CALLEE_SAVED {
            m.registers.insert(
                R::machine(PReg::gpr(n)).expect("a machine"),
                initial(PReg::gpr(n)),
            );
        }
        m.registers
            .insert(R::machine(abi::STACK_POINTER).expect("a machine"), stack);
    }
    for (r, fixed) in &code.entry {
        let value = if *fixed == abi::STACK_POINTER {
            stack
        } else {
            initial(*fixed)
        };
        m.registers.insert(r.place(*fixed), value);
    }
    let mut block = code.entry_block();
    for _ in 0..blocks {
        watch(At::Start(block), &m);
        for index in code.blocks[block].insts.clone() {
            watch(At::Before(index), &m);
            m.step(&code.insts[index as usize]);
        }
        watch(At::End, &m);
        let data = &code.blocks[block];
        let next = match &data.terminator {
            Terminator::Jump { target, args } => {
                let values: Vec<u32> = args.iter().map(|a| m.registers[a]).collect();
                m.registers
                    .extend(code.blocks[*target].params.iter().copied().zip(values));
                Some(*target)
            }
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                ..
            } => {
                let yes = (m.registers[&guard.reg] != 0) != guard.negated;
                Some(if yes { *taken } else { *fallthrough })
            }
            Terminator::Table { index, targets, .. } => {
                Some(targets[m.registers[index] as usize % targets.len()])
            }
            Terminator::Return { address, values } => {
                let results: Vec<u64> = address
                    .iter()
                    .copied()
                    .chain(values.iter().map(|(v, r)| v.place(*r)))
                    .map(|r| u64::from(m.registers[&r]))
                    .collect();
                m.observed.push(hash(results));
                None
            }
            Terminator::TailCall { callee, values } => {
                let mut all: Vec<R> = values.iter().map(|(v, r)| v.place(*r)).collect();
                if let Callee::Registers(a) = callee {
                    all.extend(a);
                }
                m.observed
                    .push(hash(all.iter().map(|r| u64::from(m.registers[r]))));
                None
            }
            Terminator::Exit => None,
            Terminator::Trap(trap) => {
                m.observed.push(u64::from(*trap));
                None
            }
        };
        match next {
            Some(next) => block = next,
            None => {
                let leaves = matches!(
                    data.terminator,
                    Terminator::Return { .. } | Terminator::TailCall { .. }
                );
                if R::MACHINE && leaves && code.kind == FunctionKind::Device {
                    let kept = abi::CALLEE_SAVED.map(PReg::gpr);
                    let expected = kept.map(|r| (r, initial(r)));
                    for (r, value) in expected.chain([(abi::STACK_POINTER, stack)]) {
                        if m.registers[&R::machine(r).expect("a machine")] != value {
                            m.observed
                                .push(hash([LOST, u64::from(r.number()), u64::from(value)]));
                        }
                    }
                }
                break;
            }
        }
    }
    m.observed
}

impl<R: Names> Machine<'_, R> {
    /// What registers hold.
    pub fn registers(&self) -> &HashMap<R, u32> {
        &self.registers
    }

    /// A word of local memory.
    pub fn word(&self, address: u32) -> Option<u32> {
        self.memory.get(&address).copied()
    }

    fn value(&self, r: Option<R>, class: RegisterClass) -> u32 {
        match (r, class) {
            (Some(r), _) => *self
                .registers
                .get(&r)
                .unwrap_or_else(|| panic!("{r} has no value")),
            (None, RegisterClass::Predicate) => 1,
            (None, _) => 0,
        }
    }

    fn one(&self, inst: &Inst<R>, role: Role) -> u32 {
        let operand = inst.operand(role).expect("the form has it");
        self.value(inst.reg(role), operand.class.expect("a register"))
    }

    /// The predicates of the machine; those without a value are 0.
    fn predicates(&self) -> impl Iterator<Item = (u8, u32)> + '_ {
        (0..RegisterClass::Predicate.hardwired()).map(|n| {
            let r = R::machine(PReg::predicate(n)).expect("a machine");
            (n, self.registers.get(&r).copied().unwrap_or(0))
        })
    }

    fn flag(&self, inst: &Inst<R>, role: Role) -> bool {
        let operand = inst.operand(role).expect("the form has it");
        let not = operand.not.is_some_and(|n| inst.field(n) != 0);
        (self.value(inst.reg(role), RegisterClass::Predicate) != 0) != not
    }

    fn step(&mut self, entry: &Entry<R>) {
        let inst = &entry.inst;
        let (guard, negated) = inst.guard();
        let runs = (self.value(guard, RegisterClass::Predicate) != 0) != negated;
        let results: Vec<R> = inst.definitions().collect();
        if !runs {
            // The machine keeps its registers; before allocation the values kept say what is in them.
            let kept = self.code.else_values(entry).to_vec();
            for (r, kept) in results.iter().zip(kept) {
                if let (false, Some(kept)) = (R::MACHINE, kept) {
                    let value = self.registers[&kept];
                    self.registers.insert(*r, value);
                } else if !R::MACHINE {
                    self.registers.insert(*r, 0);
                }
            }
            self.observed.push(2);
            return;
        }
        if let Some(call) = self.code.call(entry).cloned() {
            let mut inputs: Vec<R> = inst.uses().collect();
            inputs.extend(call.uses.iter().map(|(v, r)| v.place(*r)));
            let seen = hash(inputs.iter().map(|r| u64::from(self.registers[r])));
            self.observed.push(seen);
            if R::MACHINE {
                for class in RegisterClass::ALL {
                    for n in 0..class.hardwired() {
                        let r = PReg::new(class, n);
                        let kept = class == RegisterClass::Gpr
                            && (abi::CALLEE_SAVED.contains(&n) || r == abi::STACK_POINTER);
                        if !kept {
                            let garbage = hash([seen, 7, u64::from(n), class as u64]) as u32;
                            let value = if class == RegisterClass::Predicate {
                                garbage & 1
                            } else {
                                garbage
                            };
                            self.registers
                                .insert(R::machine(r).expect("a machine"), value);
                        }
                    }
                }
            }
            for (v, r) in &call.defs {
                self.registers
                    .insert(v.place(*r), hash([seen, u64::from(r.number())]) as u32);
            }
            return;
        }
        let inputs: Vec<u64> = inst
            .operands()
            .filter(|o| o.info.direction == Direction::In)
            .flat_map(|o| {
                o.regs
                    .iter()
                    .map(|r| u64::from(self.value(*r, o.info.class.expect("a register"))))
            })
            .collect();
        let effects = inst.optype().info().effects;
        if effects.contains(Effects::STORE) && !effects.contains(Effects::LOCAL) {
            self.observed.push(hash(
                inputs
                    .iter()
                    .copied()
                    .chain([inst.word() as u64, (inst.word() >> 64) as u64]),
            ));
        }
        let outputs = self.evaluate(entry, &inputs, results.len());
        for (r, value) in results.into_iter().zip(outputs) {
            let value = if r.class() == RegisterClass::Predicate {
                value & 1
            } else {
                value
            };
            self.registers.insert(r, value);
        }
    }

    fn local_address(&self, entry: &Entry<R>) -> u32 {
        match entry.attachment.map(|a| &self.code.attachments[a]) {
            Some(Attachment::Symbol(s)) if s.name == SLOTS => SLOT_AREA + s.addend as u32,
            _ => {
                let offset = entry.inst.number(Role::Addr);
                let offset = offset.expect("local accesses have one") as u32;
                self.one(&entry.inst, Role::A).wrapping_add(offset)
            }
        }
    }

    fn evaluate(&mut self, entry: &Entry<R>, inputs: &[u64], results: usize) -> Vec<u32> {
        let inst = &entry.inst;
        let number = |role| inst.number(role).expect("the form has it");
        let all = |role: Role| -> Vec<u32> {
            let operand = inst.operand(role).expect("the form has it");
            inst.operand_regs(operand)
                .iter()
                .map(|r| self.value(*r, operand.class.expect("a register")))
                .collect()
        };
        match inst.form() {
            Form::MOV_R | Form::MOV_U | Form::UMOV_U | Form::R2UR_R => all(Role::B),
            Form::MOV_I | Form::UMOV_I => vec![number(Role::B) as u32],
            Form::MOV_C | Form::ULDC_C => {
                let stack = u64::from(abi::bank0::STACK_POINTER);
                let word = |place| match place {
                    place if place == stack => 0x8000,
                    place => hash([place]) as u32,
                };
                (0..results as u64)
                    .map(|i| word(number(Role::B) + 4 * i))
                    .collect()
            }
            Form::LOP3_RRR if number(Role::Lut) == 0x3c => {
                vec![self.one(inst, Role::A) ^ self.one(inst, Role::B)]
            }
            Form::LOP3_RIR if number(Role::Lut) == 0xc0 && results == 1 => {
                let d = self.one(inst, Role::A) & number(Role::B) as u32;
                let truth = d != 0 || self.flag(inst, Role::Pp);
                let is_truth = inst.reg(Role::D).is_none();
                vec![if is_truth { u32::from(truth) } else { d }]
            }
            Form::P2R_RI if R::MACHINE => {
                let mask = number(Role::B) as u32;
                let bits = self.predicates().map(|(n, value)| value << n & mask);
                vec![self.one(inst, Role::A) & !mask | bits.sum::<u32>()]
            }
            Form::R2P_RI if R::MACHINE => {
                let bits = self.one(inst, Role::A) & number(Role::B) as u32;
                for n in 0..RegisterClass::Predicate.hardwired() {
                    let r = R::machine(PReg::predicate(n)).expect("a machine");
                    self.registers.insert(r, bits >> n & 1);
                }
                Vec::new()
            }
            Form::PLOP3_X => {
                let index = ["a", "b", "c"].iter().zip([Role::Pa, Role::Pb, Role::Pc]);
                let index = index.fold(0, |i, (_, role)| i << 1 | u64::from(self.flag(inst, role)));
                vec![(number(Role::Lut) >> index & 1) as u32]
            }
            Form::UIADD_RU if uiadd::WIDTH.get(inst.word()) == Some(MOVW::W32) => {
                let (a, b) = (self.one(inst, Role::A), self.one(inst, Role::B));
                vec![if inst.is_negated(Role::B) {
                    a.wrapping_sub(b)
                } else {
                    a.wrapping_add(b)
                }]
            }
            Form::IADD_RI | Form::IADD_RR | Form::IADD_RU => {
                let a = u64::from(self.one(inst, Role::A));
                let b = if inst.form() == Form::IADD_RI {
                    number(Role::B)
                } else {
                    u64::from(self.one(inst, Role::B))
                };
                let carry =
                    iadd::EXT.get(inst.word()) == Some(IExt::X) && self.flag(inst, Role::Pp);
                let sum = a + (b & 0xffff_ffff) + u64::from(carry);
                vec![sum as u32, (sum >> 32) as u32][..results].to_vec()
            }
            Form::SEL_RI => vec![if self.flag(inst, Role::Pp) {
                self.one(inst, Role::A)
            } else {
                number(Role::B) as u32
            }],
            Form::ISETP_RI if results == 1 && self.flag(inst, Role::Pp) => {
                let (a, b) = (self.one(inst, Role::A), number(Role::B) as u32);
                let order = if isetp::ITYPE.get(inst.word()) == Some(IType::S32) {
                    (a as i32).cmp(&(b as i32))
                } else {
                    a.cmp(&b)
                };
                let operation = isetp::COMPOP.get(inst.word()).expect("a legal word");
                vec![u32::from(match operation {
                    CompOp::Eq => order.is_eq(),
                    CompOp::Ne => order.is_ne(),
                    CompOp::Lt => order.is_lt(),
                    CompOp::Le => order.is_le(),
                    CompOp::Gt => order.is_gt(),
                    CompOp::Ge => order.is_ge(),
                })]
            }
            Form::STL_RR => {
                let address = self.local_address(entry);
                for (value, i) in all(Role::B).into_iter().zip(0..) {
                    self.memory.insert(address + 4 * i, value);
                }
                Vec::new()
            }
            Form::LDL_R => {
                let address = self.local_address(entry);
                (0..results as u32)
                    .map(|i| self.memory.get(&(address + 4 * i)).copied().unwrap_or(0))
                    .collect()
            }
            _ => {
                let all = [inst.word() as u64, (inst.word() >> 64) as u64]
                    .into_iter()
                    .chain(inputs.iter().copied());
                let all = hash(all);
                (0..results as u64).map(|i| hash([all, i]) as u32).collect()
            }
        }
    }
}
