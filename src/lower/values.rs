//! Where CLIF values live: registers made when they are asked for, immediates, kernel parameters, truth values.

use super::home::Run;
use super::rules::{constructor_lower_uniform, constructor_truth_copy, constructor_truth_word};
use super::source::{Base, Halves, Output, PSrc, Regs, Src, VALUE_CLASS};
use super::state::Lower;
use crate::analysis::definitions::words_of_bits;
use crate::intrinsics::resolve::GpuSymbol;
use crate::isa::RegisterClass;
use crate::vcode::{FunctionKind, Offer};
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value, ValueDef, types};

impl Lower<'_> {
    /// The registers that hold a value.
    pub(super) fn regs_of(&mut self, value: Value) -> Regs {
        self.run_of(value).regs()
    }

    /// The registers that hold so many words of a value.
    pub(super) fn word_regs(&mut self, value: Value, word: u8, words: u8) -> Regs {
        self.run_of(value).slice(word.into(), words.into())
    }

    fn run_of(&mut self, value: Value) -> Run {
        match self.homes[value].regs {
            Some(run) => run,
            None => {
                let run = self.new_run(value, VALUE_CLASS);
                self.homes[value].regs = Some(run);
                run
            }
        }
    }

    /// The uniform registers that hold a value: one that lives there, or an immediate or parameter that is loaded where
    /// it is defined.
    pub(super) fn uniform_of(&mut self, value: Value) -> Regs {
        let run = match self.homes[value].uniform {
            Some(run) => run,
            None => {
                let run = self.new_run(value, RegisterClass::Uniform);
                self.homes[value].uniform = Some(run);
                run
            }
        };
        run.regs()
    }

    /// As many new registers as a value has words.
    fn new_run(&mut self, value: Value, class: RegisterClass) -> Run {
        let len = self.words_of(value);
        let first = self.builder.vreg(class);
        (1..len).for_each(|_| _ = self.builder.vreg(class));
        Run {
            first,
            len: len as u8,
        }
    }

    /// Whether the uniform datapath might compute a value: it is the same in all lanes. Whether it does is decided when
    /// all is selected (`uniform`).
    pub(super) fn may_be_uniform(&self, value: Value) -> bool {
        self.offers_uniform
            && matches!(
                self.type_of(value),
                types::I32 | types::I64 | types::F32 | types::F16X2
            )
            && self.input.facts.uniformity.uniform(value)
    }

    /// Computes a value in uniform registers, beside what computes it in general ones: what is read there, and what a
    /// rule of `lower_uniform` can compute. An operand that nothing computes there has registers without a definition.
    pub(super) fn in_uniform_registers(&mut self, inst: Inst, value: Value) {
        let home = self.homes[value];
        if self.src(value).base != (Base::Value { value, word: 0 }) {
            if home.uniform.is_some() {
                let loaded = self.load_uniform(value);
                self.bind_uniform(value, loaded);
            }
            return;
        }
        let asked = home.is_asked_uniform() || home.is_asked_by_lanes();
        if !asked || !self.may_be_uniform(value) {
            return;
        }
        let Some(outputs) = constructor_lower_uniform(self, inst) else {
            return;
        };
        if let Some(Output::Regs(regs)) = outputs.first() {
            self.bind_uniform(value, *regs);
            if let Some(general) = home.regs {
                self.offer(general.regs(), *regs);
            }
        }
    }

    /// Says that a value is in uniform registers as well.
    pub(super) fn offer(&mut self, general: Regs, uniform: Regs) {
        self.builder.offer(Offer {
            general: general.as_slice().into(),
            uniform: uniform.as_slice().into(),
            index: None,
        });
    }

    /// Says that the uniform datapath gives a predicate as well, if both are registers.
    pub(super) fn offer_truth(&mut self, truth: PSrc, uniform: PSrc) {
        if let [(Some(general), false), (Some(uniform), false)] =
            [truth, uniform].map(|p| (p.reg, p.negated))
        {
            self.offer(Regs::one(general), Regs::one(uniform));
        }
    }

    /// Whether the uniform datapath might compare two numbers where lowering is: there the whole warp runs, both are
    /// the same in all lanes, and one of them is computed.
    pub(super) fn may_compare_uniform(&self, x: Value, y: Value) -> bool {
        let computed = |value| matches!(self.src(value).base, Base::Value { .. });
        let facts = &self.input.facts;
        let together = |block| !facts.uniformity.divergent_block(block);
        self.current.is_some_and(together)
            && [x, y].iter().any(|&v| computed(v))
            && [x, y]
                .iter()
                .all(|&v| !computed(v) || self.may_be_uniform(v))
    }

    /// A value as an operand of the uniform datapath.
    pub(super) fn uniform_src(&self, value: Value) -> Src {
        let src = self.src(value);
        match src.base {
            Base::Value { value, word } => Src {
                base: Base::Uniform { value, word },
                ..src
            },
            _ => src,
        }
    }

    /// Gives a value its uniform registers.
    pub(super) fn bind_uniform(&mut self, value: Value, regs: Regs) {
        if let Some(asked) = self.homes[value].uniform {
            for (&a, &r) in asked.regs().as_slice().iter().zip(regs.as_slice()) {
                self.builder.bind(a, r);
            }
        }
    }

    /// A value as an operand without modifiers: an immediate, a kernel parameter, or registers.
    pub(super) fn src(&self, value: Value) -> Src {
        let value = self.without_promises(value);
        let ty = self.type_of(value);
        let words = words_of_bits(ty.bits()) as u8;
        let constant = match self.def_data(value) {
            Some(data) => match self.constant_by(ty, data) {
                Some(bits) => Some(Base::Imm(bits)),
                None => self.launch_value(data),
            },
            None => self.parameter(value),
        };
        let base = match constant {
            Some(base) => base,
            None => Base::Value { value, word: 0 },
        };
        Src {
            base,
            words,
            ..Src::ZERO
        }
    }

    /// Where in constant memory the size of the launch is that an instruction reads.
    fn launch_value(&self, data: InstructionData) -> Option<Base> {
        let InstructionData::UnaryGlobalValue {
            opcode: Opcode::SymbolValue,
            global_value,
        } = data
        else {
            return None;
        };
        match self.input.facts.intrinsics.symbol(global_value)? {
            GpuSymbol::Special(intrinsic) => super::intrinsic::launch_constant(intrinsic),
            GpuSymbol::Shared => None,
        }
    }

    /// Where in constant memory a parameter is, if it is a kernel's.
    fn parameter(&self, value: Value) -> Option<Base> {
        let FunctionKind::Kernel(kernel) = &self.input.kind else {
            return None;
        };
        let ValueDef::Param(block, index) = self.func.dfg.value_def(value) else {
            return None;
        };
        if Some(block) != self.func.layout.entry_block() {
            return None;
        }
        let parameter = kernel
            .parameters
            .get(index)
            .filter(|p| p.offset.is_multiple_of(4))?;
        Some(Base::Constant {
            bank: crate::abi::LAUNCH_BANK,
            offset: parameter.offset,
        })
    }

    /// An operand of an integer sum: `ineg` becomes a modifier.
    pub(super) fn int_src(&self, value: Value) -> Src {
        match self.def_data(value) {
            Some(InstructionData::Unary {
                opcode: Opcode::Ineg,
                arg,
            }) if self.words_of(value) == 1 && !self.type_of(value).is_vector() => Src {
                whole: Some(value),
                ..self.src(arg).negated()
            },
            _ => self.src(value),
        }
    }

    /// An operand of a float operation: `fneg` and `fabs` become modifiers.
    pub(super) fn float_src(&self, value: Value) -> Src {
        let (mut neg, mut abs, mut inner) = (false, false, value);
        while let Some(InstructionData::Unary { opcode, arg }) = self.def_data(inner) {
            match opcode {
                Opcode::Fneg => neg ^= !abs,
                Opcode::Fabs => abs = true,
                _ => break,
            }
            inner = arg;
        }
        let src = self.src(inner);
        if inner == value {
            return src;
        }
        Src {
            neg,
            abs,
            whole: Some(value),
            ..src
        }
    }

    /// An operand of a packed half operation: `fneg`, `fabs`, `splat` and the lane of a vector become modifiers. A
    /// scalar f16 is read as its low half in both lanes.
    pub(super) fn half_src(&self, value: Value) -> Src {
        let src = self.float_src(value);
        let scalar = !self.type_of(value).is_vector();
        let Base::Value { value: inner, .. } = src.base else {
            return match src.as_imm() {
                Some(bits) if scalar => Src::imm((bits as u32 & 0xffff) * 0x1_0001),
                _ => src,
            };
        };
        match self.def_data(inner) {
            Some(InstructionData::Unary {
                opcode: Opcode::Splat,
                arg,
            }) => {
                let lane = self.half_src(arg);
                // The lane's own sign comes first: |−x| is |x|.
                let (neg, abs) = if src.abs {
                    (src.neg, true)
                } else {
                    (src.neg ^ lane.neg, lane.abs)
                };
                let halves = if lane.halves == Halves::Both {
                    Halves::Low
                } else {
                    lane.halves
                };
                Src {
                    neg,
                    abs,
                    halves,
                    whole: Some(value),
                    ..lane
                }
            }
            Some(InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                arg,
                imm,
            }) if self.type_of(arg).lane_type() == types::F16 => {
                let halves = match imm % 2 {
                    0 => Halves::Low,
                    _ => Halves::High,
                };
                let vector = self.src(arg).slice(imm / 2, 1);
                Src {
                    neg: src.neg,
                    abs: src.abs,
                    halves,
                    whole: Some(value),
                    ..vector
                }
            }
            _ if scalar => Src {
                halves: Halves::Low,
                whole: src.whole,
                ..src
            },
            _ => src,
        }
    }

    /// Binds what a rule returned to the homes that were asked for.
    pub(super) fn bind(&mut self, value: Value, output: Output) {
        let home = self.homes[value];
        match output {
            Output::Regs(regs) => {
                if let Some(asked) = home.regs {
                    debug_assert!(
                        regs.len() >= usize::from(asked.len),
                        "{value}: {} of {} words",
                        regs.len(),
                        asked.len
                    );
                    for (&a, &r) in asked.regs().as_slice().iter().zip(regs.as_slice()) {
                        self.builder.bind(a, r);
                    }
                }
            }
            Output::Predicate(p) => {
                if let Some(asked) = home.regs {
                    let number = constructor_truth_word(self, p);
                    self.builder.bind(asked.first, number.reg());
                }
                if let Some(asked) = home.predicate {
                    let held = if self.holds_opposite(value) {
                        p.negate()
                    } else {
                        p
                    };
                    let plain = match held {
                        PSrc {
                            reg: Some(reg),
                            negated: false,
                        } => reg,
                        p => constructor_truth_copy(self, p).reg(),
                    };
                    self.builder.bind(asked, plain);
                }
            }
        }
    }
}

/// Values as somebody reads them.
impl Lower<'_> {
    pub(super) fn zeros_above(&mut self, value: Value) -> Option<()> {
        self.has_zeros_above(value).then_some(())
    }

    pub(super) fn loads_sign(&mut self, value: Value) -> bool {
        self.has_signs_above(value)
    }

    pub(super) fn known_truth(&mut self, value: Value) -> Option<bool> {
        self.constant_of(value).map(|bits| bits != 0)
    }

    /// The predicate that the definition of a truth writes, or its opposite where that is what it holds.
    pub(super) fn truth_predicate(&mut self, value: Value) -> PSrc {
        let reg = match self.homes[value].predicate {
            Some(reg) => reg,
            None => {
                let reg = self.builder.vreg(RegisterClass::Predicate);
                self.homes[value].predicate = Some(reg);
                reg
            }
        };
        let held = PSrc::new(reg);
        if self.holds_opposite(value) {
            held.negate()
        } else {
            held
        }
    }
}
