//! The operands of an instruction whose form is chosen: sources in their fields, and registers for the results.

use super::fold::fold;
use super::mode::{Outputs, Source};
use crate::abi::CONSTANT_BANK;
use crate::isa::generated::HSel2;
use crate::isa::inst::FieldEnum;
use crate::isa::operand::Constant;
use crate::isa::table::{FieldType, FormInfo, OperandInfo};
use crate::isa::{Inst, RegisterClass, Role, VReg};
use crate::lower::rules::{constructor_complement_word, constructor_negative};
use crate::lower::source::{Base, Halves, Regs, Src};
use crate::lower::state::Lower;
use crate::lower::typed::{Operand, Word};

impl Lower<'_> {
    /// Puts a source where the form has it.
    pub(super) fn set_source(
        &mut self,
        inst: &mut Inst<VReg>,
        form: &'static FormInfo,
        operand: Option<&'static OperandInfo>,
        source: &Source,
    ) {
        match source {
            Source::Number(n) => {
                let operand = operand.expect("a number operand");
                let field = &form.fields[operand.field as usize];
                debug_assert!(
                    field.width >= 63 || n >> field.width == 0 || n >> (field.width - 1) == -1,
                    "{n} in {}",
                    field.name
                );
                inst.set_field(operand.field, *n as u64);
            }
            Source::Predicate(p) => {
                let operand = operand.expect("a predicate operand");
                match p.reg {
                    Some(reg) => inst.fill(operand, &[reg]),
                    None => inst.set_regs(operand, &[None]),
                }
                if let Some(not) = operand.not {
                    inst.set_field(not, u64::from(p.negated));
                } else {
                    debug_assert!(!p.negated, "{}.{} has no !", form.name, operand.name);
                }
            }
            Source::Value(src) => match operand {
                Some(operand) => self.set_value(inst, form, operand, src),
                None => debug_assert_eq!(src.as_imm(), Some(0), "{} has no operand", form.name),
            },
        }
    }

    fn set_value(
        &mut self,
        inst: &mut Inst<VReg>,
        form: &'static FormInfo,
        operand: &'static OperandInfo,
        src: &Src,
    ) {
        match operand.class {
            Some(RegisterClass::Gpr) if operand.modifiers.contain(src.modifiers()) => {
                self.set_general(inst, operand, src);
            }
            Some(RegisterClass::Gpr) => {
                let plain = self.plain(*src, form, operand);
                self.set_general(inst, operand, &plain);
            }
            Some(_) => {
                if let Some(regs) = self.uniform_registers(*src) {
                    inst.fill(operand, regs.as_slice());
                }
                set_modifiers(inst, operand, src);
            }
            None => {
                let field = &form.fields[operand.field as usize];
                let (bank, offset) = match src.base {
                    Base::Constant { bank, offset } => (bank, offset),
                    // Its place is filled in when all operands are there.
                    Base::Pooled(_) => (CONSTANT_BANK, 0),
                    _ => {
                        let bits = fold(field, src).expect("chosen for an immediate");
                        return inst.set_field(operand.field, bits);
                    }
                };
                inst.set_field(
                    operand.field,
                    u64::from(bank) << Constant::OFFSET_BITS | u64::from(offset),
                );
                set_modifiers(inst, operand, src);
            }
        }
    }

    /// A source in general registers, with modifiers that the operand has; zero is hard-wired.
    fn set_general(&mut self, inst: &mut Inst<VReg>, operand: &'static OperandInfo, src: &Src) {
        if src.is_plain() {
            if src.base != Base::Imm(0) {
                inst.fill(operand, self.general(src.base, src.words).as_slice());
            }
            return;
        }
        inst.fill(operand, self.general(src.base, src.words).as_slice());
        set_modifiers(inst, operand, src);
    }

    /// The source without the modifiers that the operand cannot apply.
    fn plain(&mut self, src: Src, form: &FormInfo, operand: &OperandInfo) -> Src {
        if src.is_plain() {
            return src;
        }
        if let Some(value) = src.whole {
            return Src {
                base: Base::Value { value, word: 0 },
                neg: false,
                abs: false,
                not: false,
                halves: Halves::Both,
                whole: None,
                ..src
            };
        }
        if src.not && src.words == 1 {
            let inverted = constructor_complement_word(self, Word::new(Src { not: false, ..src }));
            return inverted.source().src();
        }
        if src.neg
            && !src.abs
            && src.words == 1
            && matches!(
                form.fields[operand.field as usize].ty,
                FieldType::Register(_)
            )
            && integer(form)
        {
            let negated = constructor_negative(self, Word::new(Src { neg: false, ..src }));
            return negated.source().src();
        }
        unreachable!(
            "{}.{} cannot apply the modifiers of {src:?}",
            form.name, operand.name
        )
    }

    /// Gives every result of the mode a new register.
    pub(super) fn outputs(
        &mut self,
        inst: &mut Inst<VReg>,
        form: &'static FormInfo,
        roles: &'static [Role],
    ) -> Outputs {
        let mut outputs = Outputs::default();
        for &role in roles {
            let operand = form.operand(role).expect("a result of the mode");
            let class = operand.class.expect("results are registers");
            let count = inst.register_count(operand);
            let regs = Regs::from_fn(count, |_| self.builder.vreg(class));
            inst.fill(operand, regs.as_slice());
            match role {
                Role::D => outputs.d = Some(regs),
                Role::Pu => outputs.pu = Some(regs.word(0)),
                Role::Pv => outputs.pv = Some(regs.word(0)),
                other => unreachable!("result {other:?} of {}", form.name),
            }
        }
        outputs
    }
}

/// Whether `-` of the form's operands is integer negation.
fn integer(form: &FormInfo) -> bool {
    !form
        .fields
        .iter()
        .any(|f| matches!(f.ty, FieldType::Half2 | FieldType::Float32) || f.name.ends_with(".abs"))
}

fn set_modifiers(inst: &mut Inst<VReg>, operand: &OperandInfo, src: &Src) {
    if src.modifiers().is_empty() {
        return;
    }
    for (field, on) in [
        (operand.negate, src.neg),
        (operand.absolute, src.abs),
        (operand.bitnot, src.not),
    ] {
        if let (Some(field), true) = (field, on) {
            inst.set_field(field, 1);
        }
    }
    if let Some(field) = operand.select
        && src.halves != Halves::Both
    {
        let pair = inst.info().fields[field as usize].width == 2;
        let code = match (src.halves, pair) {
            (Halves::Low, true) => HSel2::H0H0.code(),
            (Halves::High, true) => HSel2::H1H1.code(),
            (Halves::High, false) => 1,
            (Halves::Low | Halves::Both, _) => 0,
        };
        inst.set_field(field, code);
    }
}
