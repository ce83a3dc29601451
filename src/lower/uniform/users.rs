//! Which instructions read a uniform register where they stand: in the one special operand that forms of vector
//! instructions have, or because they are on the uniform datapath themselves.

use super::Search;
use crate::intrinsics::Lowering;
use cranelift_codegen::ir::{Block, Inst, InstructionData, Opcode, Value, types};

impl Search<'_> {
    /// Whether `user` reads `value` from a uniform register without a copy.
    pub(super) fn takes(&self, user: Inst, value: Value) -> bool {
        let func = self.input.func;
        let facts = &self.input.facts;
        if let [result] = *func.dfg.inst_results(user)
            && self.is_candidate(result)
        {
            return true;
        }
        let Some(block) = func.layout.inst_block(user) else {
            return false;
        };
        let data = func.dfg.insts[user];
        let only = |others: &[Value]| others.iter().all(|&v| self.leaves_slot(v, value));
        match data {
            InstructionData::Binary {
                opcode,
                args: [x, y],
            } => {
                let other = if x == value { y } else { x };
                match opcode {
                    Opcode::Smin | Opcode::Smax if self.is_limited(user) => true,
                    Opcode::Ishl => y == value && only(&[x]),
                    Opcode::Ushr | Opcode::Sshr => (x == value) != (y == value) && only(&[other]),
                    _ => only(&[other]) && self.takes_beside(user, opcode, value, other),
                }
            }
            InstructionData::IntCompare { args: [x, y], .. } => {
                let other = if x == value { y } else { x };
                let on_datapath = (self.is_candidate(other) || self.is_leaf(other))
                    && !facts.uniformity.divergent_block(block);
                on_datapath || only(&[other])
            }
            InstructionData::FloatCompare { args: [x, y], .. } => {
                only(&[if x == value { y } else { x }])
            }
            InstructionData::Ternary {
                opcode: Opcode::Select,
                args: [condition, x, y],
            } => {
                let reads = |v| v == value;
                match (reads(condition), reads(x) || reads(y)) {
                    (true, false) => self.tests(block, value),
                    (false, true) => only(&[if x == value { y } else { x }]),
                    _ => false,
                }
            }
            InstructionData::Ternary {
                opcode: Opcode::Fma,
                args,
            } => self.takes_one_of(&args, value),
            InstructionData::Unary { opcode, .. } => match opcode {
                Opcode::Iabs | Opcode::Popcnt | Opcode::Clz => self.ty(value) == types::I32,
                Opcode::FcvtFromSint | Opcode::FcvtFromUint => self.ty(value) == types::I32,
                Opcode::Uextend | Opcode::Sextend => self.is_factor(user),
                _ => false,
            },
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                ..
            } => self.is_peeled_lane(user),
            InstructionData::Load { arg, .. } => arg == value,
            InstructionData::Store {
                args: [data, address],
                ..
            } => address == value && data != value,
            InstructionData::Call { .. } => self.intrinsic_takes(user, value),
            // Where it is passed to, the whole of them is looked at once.
            InstructionData::Jump { .. } => true,
            InstructionData::Brif { arg, .. } | InstructionData::BranchTable { arg, .. } => {
                arg != value
                    || matches!(data, InstructionData::Brif { .. }) && self.tests(block, value)
            }
            _ => false,
        }
    }

    /// Whether a value is compared with zero on the uniform datapath where it is a condition. LOP3 compares what it
    /// computes.
    fn tests(&self, block: Block, value: Value) -> bool {
        self.together[block] == Some(block) && !self.is_inner_logic(value)
    }

    /// Whether the operand `other` leaves the special slot of its instruction to `value`.
    fn leaves_slot(&self, other: Value, value: Value) -> bool {
        other != value
            && !self.is_leaf(other)
            && !self.is_candidate(other)
            && !self.is_literal(other)
    }

    /// A floating-point immediate.
    fn is_literal(&self, value: Value) -> bool {
        matches!(
            self.data(value),
            Some(
                InstructionData::UnaryIeee16 { .. }
                    | InstructionData::UnaryIeee32 { .. }
                    | InstructionData::UnaryConst { .. }
            )
        )
    }

    /// Whether an operation of two operands reads `value` beside `other`, which leaves it the special slot.
    fn takes_beside(&self, user: Inst, opcode: Opcode, value: Value, other: Value) -> bool {
        let word = self.ty(value).bits() == 32;
        match opcode {
            Opcode::Iadd | Opcode::Isub => {
                let fused = opcode == Opcode::Iadd && self.fuses(value);
                !self.has_special_factor(other) && !fused
            }
            Opcode::Band | Opcode::Bor | Opcode::Bxor => !self.is_inner_logic(other),
            Opcode::Imul => word && !self.is_fused_product(user),
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => word,
            Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fmin | Opcode::Fmax => true,
            _ => false,
        }
    }

    /// Whether `value` is one operand of several and the others leave it the special slot.
    fn takes_one_of(&self, operands: &[Value], value: Value) -> bool {
        let mut times = 0;
        for &operand in operands {
            times += usize::from(operand == value);
            if operand != value && !self.leaves_slot(operand, value) {
                return false;
            }
        }
        times == 1
    }

    /// One of two limits that together are an I2I.
    fn is_limited(&self, user: Inst) -> bool {
        let opcode = |inst: Inst| self.input.func.dfg.insts[inst].opcode();
        let [result] = *self.input.func.dfg.inst_results(user) else {
            return false;
        };
        match *self.users_of(result) {
            [next] => matches!(
                (opcode(user), opcode(next)),
                (Opcode::Smin, Opcode::Smax) | (Opcode::Smax, Opcode::Smin)
            ),
            _ => false,
        }
    }

    /// A half that only packed operations read, where the lane is a modifier, beside operands in registers.
    fn is_peeled_lane(&self, extraction: Inst) -> bool {
        let func = self.input.func;
        let [lane] = *func.dfg.inst_results(extraction) else {
            return false;
        };
        let users = self.users_of(lane);
        !users.is_empty()
            && self.ty(lane) == types::F16
            && users.iter().all(|&user| match func.dfg.insts[user] {
                InstructionData::FloatCompare { args, .. }
                | InstructionData::Binary {
                    opcode:
                        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fmin | Opcode::Fmax,
                    args,
                } => self.takes_one_of(&args, lane),
                _ => false,
            })
    }

    /// An extended word that is only the factor of 64-bit products with an extended word in a register.
    fn is_factor(&self, extension: Inst) -> bool {
        let [extended] = *self.input.func.dfg.inst_results(extension) else {
            return false;
        };
        let opcode = self.input.func.dfg.insts[extension].opcode();
        let users = self.users_of(extended);
        !users.is_empty()
            && users
                .iter()
                .all(|&user| match self.input.func.dfg.insts[user] {
                    InstructionData::Binary {
                        opcode: Opcode::Imul,
                        args: [x, y],
                    } if x != y => {
                        let other = if x == extended { y } else { x };
                        matches!(self.data(other), Some(InstructionData::Unary { opcode: o, arg })
                        if o == opcode && self.leaves_slot(arg, extended))
                    }
                    _ => false,
                })
    }

    /// Whether the instruction of an intrinsic reads `value` in its special slot.
    fn intrinsic_takes(&self, call: Inst, value: Value) -> bool {
        let func = self.input.func;
        let Some(intrinsic) = self.input.facts.intrinsics.of_call(func, call) else {
            return false;
        };
        let args = func.dfg.inst_args(call);
        match intrinsic.lowering {
            Lowering::Mufu(..) => true,
            Lowering::Hadd2(..)
            | Lowering::Hmul2(..)
            | Lowering::Hfma2(..)
            | Lowering::Hmin2(_)
            | Lowering::Hmax2(_) => self.takes_one_of(args, value),
            // The first operand is a general register.
            Lowering::Dp4a(..)
            | Lowering::Dp2a(..)
            | Lowering::Permute(_)
            | Lowering::Bmsk(_)
            | Lowering::Sgxt(..) => args[0] != value && self.takes_one_of(args, value),
            Lowering::Pack(_) => args[1] == value && self.takes_one_of(args, value),
            _ => false,
        }
    }

    /// A product or shift with an immediate or constant operand, which an addition would fuse.
    fn has_special_factor(&self, value: Value) -> bool {
        let special = |v: &Value| self.is_leaf(*v) || self.is_candidate(*v);
        match self.data(value) {
            Some(InstructionData::Binary {
                opcode: Opcode::Imul,
                args,
            }) => args.iter().any(special),
            Some(InstructionData::Binary {
                opcode: Opcode::Ishl,
                args,
            }) => self.ty(value) == types::I64 && args.iter().any(special),
            Some(InstructionData::Unary {
                opcode: Opcode::Uextend | Opcode::Sextend,
                ..
            }) => true,
            _ => false,
        }
    }

    /// A product or shift that its only user, an addition in general registers, would fuse.
    fn fuses(&self, value: Value) -> bool {
        let once = self.users_of(value).len() == 1;
        let fusable = match self.data(value) {
            Some(InstructionData::Binary { opcode, .. }) => {
                matches!(opcode, Opcode::Imul | Opcode::Ishl)
            }
            Some(InstructionData::Unary { opcode, .. }) => {
                matches!(opcode, Opcode::Uextend | Opcode::Sextend | Opcode::Ineg)
            }
            _ => false,
        };
        once && fusable
    }

    /// Whether a multiplication is part of an IMAD whose addend takes the special operand.
    fn is_fused_product(&self, inst: Inst) -> bool {
        let func = self.input.func;
        let [product] = *func.dfg.inst_results(inst) else {
            return false;
        };
        let [user] = *self.users_of(product) else {
            return false;
        };
        match func.dfg.insts[user] {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args,
            } => args.iter().any(|&v| self.is_leaf(v)),
            _ => false,
        }
    }

    /// A bitwise operation that only one other reads: their tree takes up the operands of this one.
    fn is_inner_logic(&self, value: Value) -> bool {
        let logic = matches!(
            self.data(value),
            Some(InstructionData::Binary {
                opcode: Opcode::Band | Opcode::Bor | Opcode::Bxor,
                ..
            })
        );
        logic && self.users_of(value).len() == 1
    }
}
