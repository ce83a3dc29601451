//! Forms of one operation that differ in where they read an operand, and instructions written in another of them.
//!
//! The `uniform` pass moves operands from general to uniform registers by this table, allocation moves them back; both
//! ask the forms of the description and know no bits themselves.

use super::generated::{Form, Role};
use super::inst::Inst;
use super::register::{Register, RegisterClass};
use super::table::{FieldInfo, FieldValue, FormInfo, OperandInfo, Swap};

impl Form {
    /// The form of the same operation in which each operand has the class that `class` gives for it, and that has no
    /// operand more.
    pub fn in_classes(self, class: impl Fn(&OperandInfo) -> Option<RegisterClass>) -> Option<Form> {
        let info = self.info();
        let alike = |operand: &OperandInfo, other: Form| {
            let Some(target) = other.info().operand(operand.role) else {
                return false;
            };
            // Numbers are written in fields of one type.
            let ty = |form: Form, field: u8| {
                let field = form.info().fields.get(usize::from(field));
                field.map(|f| (f.type_name, f.width))
            };
            target.class == class(operand)
                && (target.class.is_some() || ty(self, operand.field) == ty(other, target.field))
        };
        let mut forms = info.optype.info().forms.iter().copied();
        forms.find(|&other| {
            other.info().operands.len() == info.operands.len()
                && info.operands.iter().all(|operand| alike(operand, other))
        })
    }

    /// The form of a memory access that adds a uniform base to its address.
    pub fn with_base(self) -> Option<Form> {
        let info = self.info();
        info.operand(Role::Addr)?;
        let mut forms = info.optype.info().forms.iter().copied();
        forms.find(|form| form.info().stype.strip_suffix('U') == Some(info.stype))
    }

    /// The form of a memory access without its uniform base.
    pub fn without_base(self) -> Option<Form> {
        let wanted = self.info().stype.strip_suffix('U')?;
        let mut forms = self.info().optype.info().forms.iter().copied();
        forms.find(|form| form.info().stype == wanted)
    }

    /// The operand that reads uniform registers, if there is one.
    pub fn uniform_operand(self) -> Option<&'static OperandInfo> {
        let mut operands = self.info().operands.iter();
        operands.find(|operand| operand.class == Some(RegisterClass::Uniform))
    }

    /// Whether the form belongs to the uniform datapath: it has uniform registers and no general ones.
    pub fn is_on_uniform_datapath(self) -> bool {
        self.uniform_operand().is_some() && !self.info().has_general_registers()
    }
}

impl FormInfo {
    /// Whether an operand is in general registers.
    pub const fn has_general_registers(&self) -> bool {
        let mut index = 0;
        while index < self.operands.len() {
            if matches!(self.operands[index].class, Some(RegisterClass::Gpr)) {
                return true;
            }
            index += 1;
        }
        false
    }
}

impl<R: Register> Inst<R> {
    /// The instruction in another form of its operation: operands keep their registers, numbers and modifiers, all else
    /// what it says. None where the form lacks a modifier that is in use.
    pub fn in_form(&self, form: Form) -> Option<Inst<R>> {
        self.placed(form, |role| role)
    }

    /// The instruction with an operand read from registers of another class; SrcA and SrcB change places where they may
    /// and that is the way to do it. None if no form can.
    pub fn reading(&self, role: Role, class: RegisterClass, regs: &[R]) -> Option<Inst<R>> {
        let direct = |o: &OperandInfo| match o.role == role {
            true => Some(class),
            false => o.class,
        };
        if let Some(form) = self.form().in_classes(direct)
            && let Some(inst) = self.in_form(form)
        {
            return inst.filled(role, regs);
        }
        let other = match role {
            Role::A => Role::B,
            Role::B => Role::A,
            _ => return None,
        };
        let swap = self.optype().info().swap;
        let beside = self.operand(other)?.class?;
        let exchanged = |o: &OperandInfo| match o.role {
            r if r == role => Some(beside),
            r if r == other => Some(class),
            _ => o.class,
        };
        if matches!(swap, Swap::Never) {
            return None;
        }
        let form = self.form().in_classes(exchanged)?;
        let mut inst = self.placed(form, |r| match r {
            r if r == role => other,
            r if r == other => role,
            r => r,
        })?;
        inst.turn(swap);
        inst.filled(other, regs)
    }

    /// The same with other registers for an operand, if it is as wide.
    fn filled(mut self, role: Role, regs: &[R]) -> Option<Inst<R>> {
        let operand = self.operand(role)?;
        if self.register_count(operand) != regs.len() {
            return None;
        }
        self.fill(operand, regs);
        Some(self)
    }

    /// Says in the modifiers that SrcA and SrcB have changed places.
    fn turn(&mut self, swap: Swap) {
        let word = swap.turned(self.word());
        self.set_options(
            self.optype().info().options_mask,
            word & self.optype().info().options_mask,
        );
        if let (Swap::Exchange, Some(operand)) = (swap, self.operand(Role::Pp))
            && let Some(not) = operand.not
        {
            self.set_field(not, 1 - self.field(not));
        }
    }

    /// [`Inst::in_form`] with each operand in the place of another.
    fn placed(&self, form: Form, place: impl Fn(Role) -> Role) -> Option<Inst<R>> {
        let (old, new) = (self.info(), form.info());
        let mut out = Inst::new(form);
        let parts = |o: &OperandInfo| [o.negate, o.absolute, o.bitnot, o.not, o.select, o.index];
        let mut of_operands = 0u64;
        for operand in old.operands {
            let fields = parts(operand).into_iter().flatten().chain([operand.field]);
            fields
                .filter(|&f| usize::from(f) < old.fields.len())
                .for_each(|f| of_operands |= 1 << f);
        }
        for (index, field) in old.fields.iter().enumerate() {
            if of_operands >> index & 1 != 0 || matches!(field.value, FieldValue::Constant(_)) {
                continue;
            }
            let same = |f: &&FieldInfo| f.bit == field.bit && f.width == field.width;
            match new.fields.iter().position(|f| same(&f)) {
                Some(at) if !matches!(new.fields[at].value, FieldValue::Constant(_)) => {
                    out.set_field(at as u8, field.get(self.word()));
                }
                _ if field.get(self.word()) == field.get(old.initial) => {}
                _ => return None,
            }
        }
        for operand in old.operands {
            let Some(target) = new.operand(place(operand.role)) else {
                // A base that is dropped.
                continue;
            };
            for (from, to) in parts(operand).into_iter().zip(parts(target)) {
                match (from, to) {
                    (Some(from), Some(to)) => out.set_field(to, self.field(from)),
                    (Some(from), None)
                        if self.field(from) != old.fields[usize::from(from)].get(old.initial) =>
                    {
                        return None;
                    }
                    _ => {}
                }
            }
            match target.class {
                Some(_) if operand.class.is_some() => {
                    let regs = self.operand_regs(operand);
                    if out.register_count(target) != regs.len() {
                        return None;
                    }
                    out.set_regs(target, regs);
                }
                None if usize::from(operand.field) < old.fields.len() => {
                    out.set_field(target.field, self.field(operand.field));
                }
                _ => {}
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::generated::FORMS;
    use crate::isa::{VInst, VReg, build};

    /// Every field of an operand that may change places goes with it.
    #[test]
    fn fields_of_operands_that_change_places_are_known() {
        for form in FORMS {
            if matches!(form.optype.info().swap, Swap::Never) {
                continue;
            }
            for role in [Role::A, Role::B] {
                let Some(operand) = form.operand(role) else {
                    continue;
                };
                let known = [
                    operand.negate,
                    operand.absolute,
                    operand.bitnot,
                    operand.not,
                ];
                let known = known.into_iter().chain([operand.select, operand.index]);
                let known: Vec<u8> = known.flatten().collect();
                let prefix = format!("{}.", operand.name);
                for (index, field) in form.fields.iter().enumerate() {
                    let belongs = field.name.starts_with(&prefix);
                    let is_known = known.contains(&(index as u8));
                    assert!(!belongs || is_known, "{} of {}", field.name, form.name);
                }
            }
        }
    }

    fn reg(class: RegisterClass, index: u32) -> VReg {
        VReg::new(class, index)
    }

    #[test]
    fn operands_change_places_with_their_modifiers() {
        let [a, b, d] = [0, 1, 2].map(|index| reg(RegisterClass::Gpr, index));
        let u = reg(RegisterClass::Uniform, 3);
        let mut sum: VInst = Inst::new(Form::IADD_RR);
        for (role, reg) in [(Role::A, a), (Role::B, b), (Role::D, d)] {
            sum.set(role, reg);
        }
        let negate = sum.operand(Role::A).and_then(|o| o.negate).unwrap();
        sum.set_field(negate, 1);
        let direct = sum.reading(Role::B, RegisterClass::Uniform, &[u]).unwrap();
        assert_eq!(direct.to_string(), sum.to_string().replace("%v1", "%u3"));
        let swapped = sum.reading(Role::A, RegisterClass::Uniform, &[u]).unwrap();
        assert_eq!(swapped.to_string(), "IADD %v2, %v1, -%u3");
        // And back.
        let back = swapped.reading(Role::B, RegisterClass::Gpr, &[a]).unwrap();
        assert_eq!(back.to_string(), "IADD %v2, %v1, -%v0");
    }

    #[test]
    fn comparisons_turn_around() {
        use crate::isa::generated::{BoolOp, CompOp, IExt, IType, isetp};
        use crate::isa::operand::PT;
        let [a, b] = [0, 1].map(|index| reg(RegisterClass::Gpr, index));
        let p = reg(RegisterClass::Predicate, 2);
        let options = isetp::Options::new(IExt::NoX, IType::U32, CompOp::Lt, BoolOp::And);
        let less: VInst = build::isetp_rr(options, p, PT, a, b, PT, PT);
        let u = reg(RegisterClass::Uniform, 3);
        let turned = less.reading(Role::A, RegisterClass::Uniform, &[u]).unwrap();
        assert!(turned.to_string().contains(".GT."), "{turned}");
        assert!(turned.to_string().contains("%v1, %u3"), "{turned}");
    }
}
