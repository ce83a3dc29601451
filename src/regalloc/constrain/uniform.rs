//! Instructions that read a uniform value from GPRs instead.

use crate::isa::generated::{IExt, iadd};
use crate::isa::operand::{PT, Predicate};
use crate::isa::table::Direction;
use crate::isa::{Form, Register, RegisterClass, Role, VInst, VReg, build};
use crate::regalloc::liveness::edge_arguments;
use crate::vcode::VCode;
use hashbrown::HashMap;

/// Whether uniform block parameters would be written in a divergent block, by their own or by an edge into it.
pub(in crate::regalloc) fn has_divergent_parameters(code: &VCode<VReg>) -> bool {
    code.blocks
        .iter()
        .filter(|(_, data)| data.divergent)
        .any(|(block, data)| {
            let passed = edge_arguments(code, block).map(|(_, param)| param);
            let mut written = data.params.iter().copied().chain(passed);
            written.any(|v| v.class() == RegisterClass::Uniform)
        })
}

/// Whether an instruction can read its uniform operands from GPRs. An address is added up in GPRs, which is worth it
/// only where nothing may be written to a uniform register.
pub(in crate::regalloc) fn can_read_home(inst: &VInst, divergent: bool) -> bool {
    let mut uniform = inst
        .operands()
        .filter(|o| o.info.class == Some(RegisterClass::Uniform));
    if !uniform.all(|o| o.info.direction == Direction::In) {
        return false;
    }
    sibling(inst.form()).is_some() || divergent && without_base(inst).is_some()
}

/// The form of a memory access without its uniform base, which is as wide as its address.
fn without_base(inst: &VInst) -> Option<Form> {
    let base = inst.operand_regs(inst.form().uniform_operand()?);
    let address = inst.operand(Role::A)?;
    let form = inst.form().without_base()?;
    (inst.operand_regs(address).len() == base.len() && base[0].is_some()).then_some(form)
}

/// The form of the same operation that has a GPR wherever `form` has a uniform register.
fn sibling(form: Form) -> Option<Form> {
    form.uniform_operand()?;
    form.in_classes(|operand| match operand.class {
        Some(RegisterClass::Uniform) => Some(RegisterClass::Gpr),
        class => class,
    })
}

/// `inst` with the uniform operands in `homes` read from GPRs; none if there is no such form, or if other uniform
/// operands stay.
pub(in crate::regalloc) fn in_gprs(inst: &VInst, homes: &HashMap<VReg, VReg>) -> Option<VInst> {
    let mut uniform = inst
        .operands()
        .filter(|o| o.info.class == Some(RegisterClass::Uniform));
    if !uniform.all(|o| o.info.direction == Direction::In && all_known(o.regs.iter(), homes)) {
        return None;
    }
    let mut out = inst.in_form(sibling(inst.form())?)?;
    out.rename(|v| homes.get(&v).copied().unwrap_or(v));
    Some(out)
}

fn all_known<'a>(
    mut regs: impl Iterator<Item = &'a Option<VReg>>,
    homes: &HashMap<VReg, VReg>,
) -> bool {
    regs.all(|r| r.is_none_or(|r| homes.contains_key(&r)))
}

/// A memory access whose uniform base is added to its address in GPRs. The additions go to `added`.
pub(in crate::regalloc) fn address_in_gprs(
    inst: &VInst,
    homes: &HashMap<VReg, VReg>,
    new: &mut impl FnMut(RegisterClass) -> VReg,
    added: &mut Vec<VInst>,
) -> Option<VInst> {
    let base = inst.operands().find(|o| {
        o.info.class == Some(RegisterClass::Uniform) && o.info.direction == Direction::In
    })?;
    if !all_known(base.regs.iter(), homes) {
        return None;
    }
    let gprs: Vec<VReg> = base
        .regs
        .iter()
        .map(|r| r.map(|r| homes[&r]))
        .collect::<Option<_>>()?;
    let form = without_base(inst)?;
    let address = inst.operand(Role::A)?;
    let old: Vec<Option<VReg>> = inst.operand_regs(address).to_vec();
    if old.len() != gprs.len() {
        return None;
    }
    let mut carry = None;
    let mut sum = Vec::new();
    for (i, (a, b)) in old.iter().zip(&gprs).enumerate() {
        let Some(a) = a else {
            sum.push(Some(*b));
            continue;
        };
        let more = i + 1 < old.len();
        let d = new(RegisterClass::Gpr);
        let carry_out = more.then(|| new(RegisterClass::Predicate));
        added.push(add(d, *a, *b, carry, carry_out));
        carry = carry_out;
        sum.push(Some(d));
    }
    let mut out = inst.in_form(form)?;
    let address = out.operand(Role::A).expect("the same operation");
    out.set_regs(address, &sum);
    Some(out)
}

/// `d` = `a` + `b` + carry, as IADD.X (document 002).
fn add(d: VReg, a: VReg, b: VReg, carry_in: Option<VReg>, carry_out: Option<VReg>) -> VInst {
    let carry_in = carry_in.map_or(Predicate::from(!PT), Predicate::from);
    build::iadd_rr(iadd::Options::new(IExt::X), d, carry_out, a, b, carry_in)
}
