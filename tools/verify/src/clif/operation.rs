//! Single operations of CLIF on terms.

use super::float;
use super::lanes::{binary, compare, joined, lanes, lanes_reversed, overflowing, unary};
use super::vector::across;
use super::{State, Walk, width_of};
use crate::outcome::Open;
use crate::term::{Term, mask, signed};
use cranelift_codegen::ir::{Endianness, Inst, InstructionData, Opcode, TrapCode, Type};

impl Walk<'_> {
    /// The results of an operation that is no terminator.
    pub(super) fn operation(&mut self, inst: Inst, state: &mut State) -> Result<Vec<Term>, Open> {
        let func = self.func;
        let data = func.dfg.insts[inst];
        let opcode = data.opcode();
        let results = func.dfg.inst_results(inst);
        let ty = results.first().map(|&v| func.dfg.value_type(v));
        let args = (func.dfg.inst_args(inst).iter())
            .map(|&v| self.term(state, v))
            .collect::<Result<Vec<Term>, Open>>()?;
        if let Some(values) = self.memory(data, state, &args, ty)? {
            return Ok(values);
        }
        if let InstructionData::Call {
            opcode: Opcode::Call,
            func_ref,
            ..
        } = data
        {
            return self.call(inst, func_ref, state, &args);
        }
        if let InstructionData::CondTrap { code, .. } = data {
            let is_zero = args[0].equals(Term::number(0, args[0].width()));
            let traps = if opcode == Opcode::Trapz {
                is_zero
            } else {
                is_zero.not()
            };
            self.trap_if(state, traps, code.as_raw().get());
            return Ok(Vec::new());
        }
        let Some(ty) = ty else {
            return match opcode {
                Opcode::Nop | Opcode::Debugtrap | Opcode::SequencePoint => Ok(Vec::new()),
                _ => Err(Open::new(opcode.to_string())),
            };
        };
        if results.len() == 2 && opcode != Opcode::Isplit {
            return self.overflow(inst, &args);
        }
        let width = width_of(ty)?;
        let found = match data {
            InstructionData::Unary { .. } if opcode == Opcode::Isplit => {
                return Ok(vec![args[0].part(0, width), args[0].part(width, width)]);
            }
            InstructionData::Unary { .. } => self.unary(inst, args[0], ty),
            InstructionData::Binary { .. } => match opcode {
                Opcode::Iconcat => Some(args[1].above(args[0])),
                Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem if !ty.is_vector() => {
                    Some(self.division(opcode, state, args[0], args[1]))
                }
                _ => {
                    let from = func.dfg.value_type(func.dfg.inst_args(inst)[0]);
                    across(opcode, args[0], args[1], from).or_else(|| {
                        self.each_lane(inst, &args, ty, &|operands| {
                            let (x, y) = (operands[0], operands[1]);
                            binary(opcode, x, y)
                                .or_else(|| float::extreme(opcode, x, y))
                                .or_else(|| float::arithmetic(opcode, operands))
                        })
                    })
                }
            },
            InstructionData::IntAddTrap { code, .. } => {
                let found = overflowing(Opcode::UaddOverflow, args[0], args[1], None);
                found.map(|(sum, carry)| {
                    self.trap_if(state, carry, code.as_raw().get());
                    sum
                })
            }
            InstructionData::IntCompare { cond, .. } => {
                let bits = ty.lane_bits();
                let yes = if ty.is_vector() { mask(bits) } else { 1 };
                self.each_lane(inst, &args, ty, &|operands| {
                    let holds = compare(cond, operands[0], operands[1]);
                    Some(Term::choose(
                        holds,
                        Term::number(yes, bits),
                        Term::number(0, bits),
                    ))
                })
            }
            InstructionData::FloatCompare { cond, .. } => {
                let bits = ty.lane_bits();
                let yes = if ty.is_vector() { mask(bits) } else { 1 };
                self.each_lane(inst, &args, ty, &|operands| {
                    let holds = float::compare(cond, operands[0], operands[1])?;
                    Some(Term::choose(
                        holds,
                        Term::number(yes, bits),
                        Term::number(0, bits),
                    ))
                })
            }
            InstructionData::LoadNoOffset { flags, .. } if opcode == Opcode::Bitcast => {
                let order = func.dfg.mem_flags[flags].explicit_endianness();
                Some(match order {
                    // The first lane is the uppermost part of the whole.
                    Some(Endianness::Big) => {
                        let from = func.dfg.value_type(func.dfg.inst_args(inst)[0]);
                        let whole = lanes_reversed(args[0], from);
                        lanes_reversed(whole, ty)
                    }
                    Some(Endianness::Little) | None => args[0],
                })
            }
            _ => self
                .constant(inst, width)
                .or_else(|| self.choice(inst, &args, ty)),
        };
        match found {
            Some(term) => Ok(vec![term]),
            None => {
                let found = self.rounded(inst, state, &args)?;
                found.ok_or_else(|| Open::new(opcode.to_string()))
            }
        }
    }

    /// An operation on each lane of its operands.
    fn each_lane(
        &self,
        inst: Inst,
        args: &[Term],
        ty: Type,
        f: &dyn Fn(&[Term]) -> Option<Term>,
    ) -> Option<Term> {
        let dfg = &self.func.dfg;
        let values = dfg.inst_args(inst).iter().zip(args);
        let parts: Vec<Vec<Term>> = values
            .map(|(&v, &arg)| lanes(arg, dfg.value_type(v)))
            .collect();
        let lane = |i: usize| {
            // A scalar is the same for all lanes: the amount of a shift.
            let operand = |lanes: &Vec<Term>| lanes.get(i).or(lanes.first()).copied();
            let operands: Option<Vec<Term>> = parts.iter().map(operand).collect();
            f(&operands?)
        };
        let all: Option<Vec<Term>> = (0..ty.lane_count() as usize).map(lane).collect();
        all.map(|lanes| joined(&lanes))
    }

    /// A constant.
    fn constant(&self, inst: Inst, width: u32) -> Option<Term> {
        let dfg = &self.func.dfg;
        let bits = match dfg.insts[inst] {
            InstructionData::UnaryImm { imm, .. } => imm.bits() as u128,
            InstructionData::UnaryIeee16 { imm, .. } => imm.bits().into(),
            InstructionData::UnaryIeee32 { imm, .. } => imm.bits().into(),
            InstructionData::UnaryIeee64 { imm, .. } => imm.bits().into(),
            InstructionData::UnaryConst {
                opcode: Opcode::Vconst,
                constant_handle,
            } => {
                let bytes = dfg.constants.get(constant_handle).as_slice();
                bytes
                    .iter()
                    .rev()
                    .fold(0, |all, &b| all << 8 | u128::from(b))
            }
            _ => return None,
        };
        Some(Term::number(bits, width))
    }

    /// An operation of one operand.
    fn unary(&self, inst: Inst, x: Term, ty: Type) -> Option<Term> {
        let dfg = &self.func.dfg;
        let opcode = dfg.insts[inst].opcode();
        let width = ty.bits();
        let from = dfg.value_type(dfg.inst_args(inst)[0]);
        let none = x.equals(Term::number(0, x.width()));
        Some(match opcode {
            Opcode::Uextend | Opcode::ScalarToVector => x.zero_extended(width),
            Opcode::Sextend => x.sign_extended(width),
            Opcode::Ireduce => x.part(0, width),
            Opcode::Splat => joined(&vec![x; ty.lane_count() as usize]),
            Opcode::Bmask => Term::choose(
                none,
                Term::number(0, width),
                Term::number(mask(width), width),
            ),
            Opcode::VanyTrue => truth(none.not(), width),
            Opcode::VallTrue => {
                let is_set = |lane: Term| lane.equals(Term::number(0, lane.width())).not();
                truth(
                    lanes(x, from).into_iter().map(is_set).reduce(Term::and)?,
                    width,
                )
            }
            Opcode::VhighBits => {
                let signs = lanes(x, from)
                    .into_iter()
                    .map(|lane| lane.part(lane.width() - 1, 1));
                let signs = signs.reduce(|low, sign| sign.above(low))?;
                match signs.width() < width {
                    true => signs.zero_extended(width),
                    false => signs.part(0, width),
                }
            }
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let all = lanes(x, from);
                let (low, high) = all.split_at(all.len() / 2);
                let is_high = matches!(opcode, Opcode::SwidenHigh | Opcode::UwidenHigh);
                let is_signed = matches!(opcode, Opcode::SwidenLow | Opcode::SwidenHigh);
                let bits = ty.lane_bits();
                let wide = if is_high { high } else { low }
                    .iter()
                    .map(|&lane| match is_signed {
                        true => lane.sign_extended(bits),
                        false => lane.zero_extended(bits),
                    });
                joined(&wide.collect::<Vec<_>>())
            }
            _ => return self.each_lane(inst, &[x], ty, &|operands| unary(opcode, operands[0])),
        })
    }

    /// An operation that picks from what is there.
    fn choice(&self, inst: Inst, args: &[Term], ty: Type) -> Option<Term> {
        match self.func.dfg.insts[inst] {
            InstructionData::Ternary { opcode, .. } => match opcode {
                Opcode::Select | Opcode::SelectSpectreGuard => {
                    let is_zero = args[0].equals(Term::number(0, args[0].width()));
                    Some(Term::choose(is_zero, args[2], args[1]))
                }
                // Each lane by its own sign.
                Opcode::Blendv => self.each_lane(inst, args, ty, &|operands| {
                    let is_negative = operands[0].is_less(Term::number(0, operands[0].width()));
                    Some(Term::choose(is_negative, operands[1], operands[2]))
                }),
                Opcode::Fma => self.each_lane(inst, args, ty, &|operands| {
                    float::arithmetic(opcode, operands)
                }),
                Opcode::Bitselect => Some(args[0].and(args[1]).or(args[0].not().and(args[2]))),
                _ => None,
            },
            InstructionData::BinaryImm8 {
                opcode: Opcode::Extractlane,
                imm,
                ..
            } => Some(args[0].part(u32::from(imm) * ty.bits(), ty.bits())),
            InstructionData::TernaryImm8 {
                opcode: Opcode::Insertlane,
                imm,
                ..
            } => {
                let mut all = lanes(args[0], ty);
                *all.get_mut(usize::from(imm))? = args[1];
                Some(joined(&all))
            }
            InstructionData::Shuffle { imm, .. } => {
                let both: Vec<Term> = (0..32u32)
                    .map(|i| args[i as usize / 16].part(8 * (i % 16), 8))
                    .collect();
                let bytes = self.func.dfg.immediates.get(imm)?.as_slice();
                let picked: Option<Vec<Term>> = bytes
                    .iter()
                    .map(|&i| both.get(usize::from(i)).copied())
                    .collect();
                picked.map(|bytes| joined(&bytes))
            }
            _ => None,
        }
    }

    /// A quotient or remainder, where the operation does not trap.
    fn division(&mut self, opcode: Opcode, state: &mut State, x: Term, y: Term) -> Term {
        let width = x.width();
        let zero = Term::number(0, width);
        self.trap_if(
            state,
            y.equals(zero),
            TrapCode::INTEGER_DIVISION_BY_ZERO.as_raw().get(),
        );
        let least = Term::number(1 << (width - 1), width);
        let ones = zero.not();
        let overflows = x.equals(least).and(y.equals(ones));
        let absolute = |t: Term| Term::choose(t.is_less(zero), zero.minus(t), t);
        let negated_if = |truth: Term, t: Term| Term::choose(truth, zero.minus(t), t);
        // In words, so that there is one way to say it.
        let in_words = |f: fn(Term, Term) -> Term, x: Term, y: Term| {
            let words = width.max(32);
            f(x.zero_extended(words), y.zero_extended(words)).part(0, width)
        };
        let quotient = |x, y| in_words(Term::quotient, x, y);
        let remainder = |x, y| in_words(Term::remainder, x, y);
        // By a number of a word or two there is a product that no absolute values are needed for.
        let by_product = |y: Term| {
            let n = y.as_number().filter(|_| [32, 64].contains(&width))?;
            let n = signed(n, width) as i64;
            let divisor = n.unsigned_abs();
            let is_known = divisor >= 3 && !divisor.is_power_of_two();
            is_known.then(|| x.signed_quotient_by(n))
        };
        match opcode {
            Opcode::Udiv => quotient(x, y),
            Opcode::Urem => remainder(x, y),
            Opcode::Sdiv => {
                self.trap_if(state, overflows, TrapCode::INTEGER_OVERFLOW.as_raw().get());
                if let Some(quotient) = by_product(y) {
                    return quotient;
                }
                let signs = x.is_less(zero).xor(y.is_less(zero));
                negated_if(signs, quotient(absolute(x), absolute(y)))
            }
            _ => match by_product(y) {
                Some(quotient) => x.plus(quotient.times(zero.minus(y))),
                None => negated_if(x.is_less(zero), remainder(absolute(x), absolute(y))),
            },
        }
    }

    /// A result and its overflow.
    fn overflow(&self, inst: Inst, args: &[Term]) -> Result<Vec<Term>, Open> {
        let opcode = self.func.dfg.insts[inst].opcode();
        let enters = args
            .get(2)
            .map(|t| t.equals(Term::number(0, t.width())).not());
        let found = overflowing(opcode, args[0], args[1], enters);
        let (result, over) = found.ok_or_else(|| Open::new(opcode.to_string()))?;
        Ok(vec![result, truth(over, 8)])
    }
}

/// A truth as a number.
fn truth(holds: Term, width: u32) -> Term {
    Term::choose(holds, Term::number(1, width), Term::number(0, width))
}
