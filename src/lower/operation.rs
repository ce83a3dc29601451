//! From an operation and its sources to one form: the central choice of operand kinds.
//!
//! Every constructor that rules use ends here. The forms of the operation are tried in the order of the description; the one that leaves
//! the fewest words to be moved to GPRs first wins. Only then are registers asked for, so a value that became an immediate, a constant
//! operand or a modifier is not computed at all.

use super::Lower;
use super::context::generated_code::{
    Context, LdcOptions, constructor_complement_word, constructor_negate_word,
};
use super::source::{Base, Halves, Outputs, Regs, Source, Src};
use super::typed::{USrc, USrc64, Word};
use crate::isa::encode::mode_of;
use crate::isa::generated::{HSel2, LoadSize};
use crate::isa::inst::FieldEnum;
use crate::isa::table::{Direction, Effects, FieldInfo, FieldType, FormInfo, OperandInfo};
use crate::isa::{Form, Inst, Optype, Register, RegisterClass, Role, VReg};
use cranelift_codegen::ir::{InstructionData, Opcode, Value, types};
use smallvec::SmallVec;

/// How a constructor writes its operation: which forms can be written so and what is fixed. Generated from the description.
#[derive(Debug)]
pub struct Mode {
    /// The operation.
    pub optype: Optype,
    /// Its forms that have the mode, in the order of the description.
    pub forms: &'static [Form],
    /// Bits of the modifiers behind the mnemonic.
    pub mask: u128,
    /// `-` of its operands means `~`.
    pub complements: bool,
    /// Whether SrcA and SrcB may change places.
    pub swap: Swap,
}

/// How SrcA and SrcB may change places.
#[derive(Debug)]
pub enum Swap {
    /// They may not.
    Never,
    /// As they are.
    Free,
    /// With the comparison at `bit` turned around.
    Mirror {
        /// Lowest bit of the comparison.
        bit: u8,
        /// The new code of each code.
        codes: &'static [u64],
    },
    /// With `pp` negated.
    Exchange,
}

/// Sources by role.
type Sources = SmallVec<[(Role, Source); 6]>;

/// How a source gets into an operand of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As it is; no instruction.
    Direct,
    /// Moved to GPRs first, or its modifiers applied: so many instructions.
    Move(u32),
}

impl Lower<'_> {
    /// Emits one instruction in a mode and returns its results: what every generated constructor does.
    ///
    /// `word` has the modifiers behind the mnemonic at their bits.
    ///
    /// # Panics
    /// When no form takes the sources: a mistake of the description, since every operation has a form of registers only.
    pub(super) fn emit(
        &mut self,
        mode: &'static Mode,
        mut word: u128,
        sources: &[(Role, Source)],
    ) -> Outputs {
        let mut sources: Sources = sources
            .iter()
            .map(|&(role, source)| match self.simplified(source) {
                Source::Value(src) if mode.complements => (role, Source::Value(as_negated(src))),
                other => (role, other),
            })
            .collect();
        let form = choose(mode.forms, &mode.swap, &mut word, &mut sources);
        let mut inst = Inst::<VReg>::new(form);
        inst.set_options(mode.mask, word);
        let form_info = form.info();
        for (role, source) in sources {
            self.set_source(&mut inst, form_info, role, source);
        }
        let outputs = self.outputs(&mut inst, form_info);
        self.builder.emit(inst);
        outputs
    }

    /// Emits one operation and returns its results.
    ///
    /// `options` are the modifiers behind the mnemonic at their bits.
    ///
    /// # Panics
    /// When no form takes the sources: a mistake of the rules, since every operation has a form of GPRs only.
    pub(super) fn operation(
        &mut self,
        optype: Optype,
        options: u128,
        sources: &[(Role, Source)],
    ) -> Outputs {
        let info = optype.info();
        let mut sources: SmallVec<[(Role, Source); 6]> = sources
            .iter()
            .map(|&(role, source)| (role, self.simplified(source)))
            .collect();
        let swap = if info.effects.contains(Effects::COMMUTATIVE) {
            Swap::Free
        } else {
            Swap::Never
        };
        let mut word = options;
        let form = choose(info.forms, &swap, &mut word, &mut sources);
        let mut inst = Inst::<VReg>::new(form);
        inst.set_options(info.options_mask, options);
        let form_info = form.info();
        for (role, source) in sources {
            self.set_source(&mut inst, form_info, role, source);
        }
        let outputs = self.outputs(&mut inst, form_info);
        self.builder.emit(inst);
        outputs
    }

    /// A source with copies looked through: the words of extensions, concatenations, truncations and shifts by a word are words of their
    /// operands.
    fn simplified(&self, source: Source) -> Source {
        match source {
            Source::Value(src) => Source::Value(self.below_copies(src)),
            other => other,
        }
    }

    /// An operand with copies looked through; its modifiers stay.
    pub(super) fn below_copies(&self, mut src: Src) -> Src {
        while let Base::Value { value, word } = src.base
            && let Some(base) = self.copied_words(value, word, src.words)
        {
            src.base = base;
        }
        src
    }

    /// Where words of a value that is put together from others come from.
    fn copied_words(&self, value: Value, word: u8, words: u8) -> Option<Base> {
        let data = self.def_data(value)?;
        let within = |this: &Self, arg: Value| word + words <= this.words_of(arg) as u8;
        match data {
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                arg,
            } if self.type_of(arg).bits() >= 32 => {
                if within(self, arg) {
                    Some(self.base_of(arg, word))
                } else {
                    (word >= self.words_of(arg) as u8).then_some(Base::Imm(0))
                }
            }
            InstructionData::Unary {
                opcode: Opcode::Uextend,
                ..
            } => (word >= 1).then_some(Base::Imm(0)),
            InstructionData::Unary {
                opcode: Opcode::Ireduce,
                arg,
            } => Some(self.base_of(arg, word)),
            InstructionData::Binary {
                opcode: opcode @ (Opcode::Ushr | Opcode::Sshr | Opcode::Ishl),
                args: [arg, amount],
            } if self.type_of(value) == types::I64 && words == 1 => {
                // A shift by a word or more leaves a word of zeros, or of signs; one by a word the other as it is.
                let n = self.constant_of(amount)? & 63;
                let (kept, from) = if opcode == Opcode::Ishl {
                    (1, 0)
                } else {
                    (0, 1)
                };
                if word == kept {
                    (n == 32).then(|| self.base_of(arg, from))
                } else {
                    (n >= 32 && opcode != Opcode::Sshr).then_some(Base::Imm(0))
                }
            }
            InstructionData::Binary {
                opcode: Opcode::Iconcat,
                args: [low, high],
            } if self.type_of(low).bits() >= 32 => {
                let half = self.words_of(low) as u8;
                if word + words <= half {
                    Some(self.base_of(low, word))
                } else {
                    (word >= half && half > 0).then(|| self.base_of(high, word - half))
                }
            }
            _ => None,
        }
    }

    /// Words of a value from `word` on: of an immediate, a parameter or registers.
    fn base_of(&self, value: Value, word: u8) -> Base {
        let src = self.src(value);
        src.slice(word, src.words - word).base
    }

    fn set_source(
        &mut self,
        inst: &mut Inst<VReg>,
        form: &'static FormInfo,
        role: Role,
        source: Source,
    ) {
        match source {
            Source::Predicates(_) => {}
            Source::Number(n) => {
                let (index, field) = number_field(form, role);
                debug_assert!(
                    field.width >= 63 || n >> field.width == 0 || n >> (field.width - 1) == -1,
                    "{n} in {}",
                    field.name
                );
                inst.set_field(index, n as u64);
            }
            Source::Predicate(p) => {
                let operand = form.operand(role).expect("a predicate operand");
                inst.set_regs(operand, &[p.reg]);
                if let Some(not) = operand.not {
                    inst.set_field(not, u64::from(p.negated));
                } else {
                    debug_assert!(!p.negated, "{}.{} has no !", form.name, operand.name);
                }
            }
            Source::Value(src) => {
                let Some(operand) = form.operand(role) else {
                    debug_assert_eq!(
                        src.as_imm(),
                        Some(0),
                        "{} has no operand for {src:?}",
                        form.name
                    );
                    return;
                };
                self.set_value(inst, form, operand, src);
            }
        }
    }

    fn set_value(
        &mut self,
        inst: &mut Inst<VReg>,
        form: &'static FormInfo,
        operand: &'static OperandInfo,
        src: Src,
    ) {
        let field = &form.fields[operand.field as usize];
        match (operand.class, field.ty) {
            (Some(RegisterClass::Gpr), _) => {
                let src = if applies(operand, &src) {
                    src
                } else {
                    self.plain(src, form, operand)
                };
                if src.as_imm() != Some(0) {
                    let regs = self.gpr(Src {
                        neg: false,
                        abs: false,
                        not: false,
                        halves: Halves::Both,
                        ..src
                    });
                    inst.set_regs(operand, entries(&mut [None; 4], regs.as_slice()));
                }
                set_modifiers(inst, operand, &src);
            }
            (Some(_), _) => {
                if let Some(regs) = self.uniform_registers(src) {
                    inst.set_regs(operand, entries(&mut [None; 4], regs.as_slice()));
                }
                set_modifiers(inst, operand, &src);
            }
            (None, FieldType::ConstantMemory) => {
                let Base::Constant { bank, offset } = src.base else {
                    unreachable!("chosen for a constant")
                };
                inst.set_field(operand.field, u64::from(bank) << 17 | u64::from(offset));
                set_modifiers(inst, operand, &src);
            }
            (None, _) => {
                let bits = fold(field, &src).expect("chosen for an immediate");
                inst.set_field(operand.field, bits);
            }
        }
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
            let negated = constructor_negate_word(self, Word::new(Src { neg: false, ..src }));
            return negated.source().src();
        }
        unreachable!(
            "{}.{} cannot apply the modifiers of {src:?}",
            form.name, operand.name
        )
    }

    /// Gives every result of the mode a new register.
    fn outputs(&mut self, inst: &mut Inst<VReg>, form: &'static FormInfo) -> Outputs {
        let mut outputs = Outputs::default();
        let mode = mode_of(form, inst.word());
        for operand in form.operands {
            let (Direction::Out, Some(class)) = (operand.direction, operand.class) else {
                continue;
            };
            if mode.is_some_and(|m| m.hidden.contains(&operand.field)) {
                continue;
            }
            let count = inst.register_count(operand);
            let mut regs = [VReg::new(class, 0); 4];
            let regs = &mut regs[..count];
            regs.fill_with(|| self.builder.vreg(class));
            inst.set_regs(operand, entries(&mut [None; 4], regs));
            match operand.role {
                Role::D => outputs.d = Some(Regs::new(regs)),
                Role::Pu => outputs.pu = Some(regs[0]),
                Role::Pv => outputs.pv = Some(regs[0]),
                other => unreachable!("result {other:?} of {}", form.name),
            }
        }
        outputs
    }

    /// Registers that hold the source, which has no modifiers.
    pub(super) fn gpr(&mut self, src: Src) -> Regs {
        debug_assert!(src.is_plain(), "modifiers of {src:?}");
        match src.base {
            Base::Regs(regs) => regs,
            Base::Value { value, word } | Base::Uniform { value, word } => {
                self.regs_of(value).slice(word as usize, src.words as usize)
            }
            Base::Imm(value) if src.words == 1 => Regs::one(self.constant(value as u32)),
            // Narrow parameters stand where no operand reaches.
            Base::Constant { bank, offset } if !offset.is_multiple_of(4) => {
                Regs::one(self.load_constant(bank, offset))
            }
            // The words of a wide operand need registers of their own. MOV.64 reads registers only (errata I-66).
            Base::Imm(_) | Base::Constant { .. } => {
                let mut regs = SmallVec::<[VReg; 4]>::new();
                for word in 0..src.words {
                    regs.push(self.move_word(src.slice(word, 1)));
                }
                Regs::new(&regs)
            }
        }
    }

    /// Uniform registers that hold the source, its modifiers aside; none for zero, which is hard-wired.
    fn uniform_registers(&mut self, src: Src) -> Option<Regs> {
        let plain = Src {
            neg: false,
            whole: None,
            ..src
        };
        let wide = src.words == 2;
        match src.base {
            Base::Imm(0) => None,
            Base::Regs(regs) => Some(regs),
            Base::Uniform { value, word } => Some(
                self.uniform_of(value)
                    .slice(word as usize, src.words as usize),
            ),
            Base::Imm(value) if wide && i32::try_from(value as u64 as i64).is_err() => {
                let words = [plain.low(), plain.high()];
                let words = words.map(|word| self.emit_umov(USrc::new(word)).regs().word(0));
                Some(Regs::new(&words))
            }
            Base::Imm(_) if wide => Some(self.emit_umov_64(USrc64::new(plain)).regs()),
            Base::Imm(_) => Some(self.emit_umov(USrc::new(plain)).regs()),
            Base::Constant { .. } if wide => Some(self.emit_uldc_64(USrc64::new(plain)).regs()),
            Base::Constant { .. } => Some(self.emit_uldc(USrc::new(plain)).regs()),
            Base::Value { value, .. } => {
                unreachable!("{value} lives in general registers")
            }
        }
    }

    /// The words of a source of the uniform datapath, in registers.
    pub(super) fn uniform_words(&mut self, src: Src) -> Regs {
        match self.uniform_registers(src) {
            Some(regs) => regs,
            // Zero that is passed on needs registers of its own.
            None if src.words == 2 => self.emit_umov_64(USrc64::new(src)).regs(),
            None => self.emit_umov(USrc::new(src)).regs(),
        }
    }

    /// A value in uniform registers, loaded where it is an immediate or constant memory.
    pub(super) fn load_uniform(&mut self, value: Value) -> Regs {
        let src = self.src(value);
        self.uniform_words(src)
    }

    /// MOV of an immediate into a register of its own.
    pub(super) fn immediate(&mut self, value: u32) -> VReg {
        self.move_word(Src::imm(value))
    }

    /// LDC of a byte or a half word, as aligned as its offset.
    fn load_constant(&mut self, bank: u8, offset: u32) -> VReg {
        let size = if offset.is_multiple_of(2) {
            LoadSize::U16
        } else {
            LoadSize::U8
        };
        let options = LdcOptions::new(size);
        self.emit_ldc_with(options, bank.into(), Word::imm(0), offset as i32)
            .word(0)
    }

    fn move_word(&mut self, src: Src) -> VReg {
        self.emit_mov(Word::new(src)).reg()
    }
}

/// Whether the form reads and writes no general registers.
fn on_uniform_datapath(form: &FormInfo) -> bool {
    form.operands
        .iter()
        .all(|o| o.class != Some(RegisterClass::Gpr))
}

/// Whether `-` of the form's operands is integer negation.
fn integer(form: &FormInfo) -> bool {
    !form
        .fields
        .iter()
        .any(|f| matches!(f.ty, FieldType::Half2 | FieldType::Float32) || f.name.ends_with(".abs"))
}

fn number_field(form: &'static FormInfo, role: Role) -> (u8, &'static FieldInfo) {
    let index = match form.operand(role) {
        Some(operand) => operand.field,
        None => form
            .fields
            .iter()
            .position(|f| format!("{role:?}").eq_ignore_ascii_case(f.name))
            .unwrap_or_else(|| panic!("{} has no field for {role:?}", form.name))
            as u8,
    };
    (index, &form.fields[index as usize])
}

/// A source of an operation that writes `-` where it means `~`. An immediate has its complement applied before a form is chosen.
fn as_negated(src: Src) -> Src {
    let plain = Src {
        not: false,
        whole: None,
        ..src
    };
    match (src.not, src.base) {
        (false, _) => src,
        (true, Base::Imm(_)) => plain.complemented(),
        (true, _) => Src { neg: true, ..plain },
    }
}

/// The form that leaves the least to do; SrcA and SrcB change places where they may and that helps.
fn choose(forms: &[Form], swap: &Swap, word: &mut u128, sources: &mut Sources) -> Form {
    if let [form] = forms {
        return *form;
    }
    let (mut cost, mut form) = cheapest(forms, sources).unwrap_or((u32::MAX, forms[0]));
    if cost > 0
        && let Some(swapped) = swapped(swap, sources)
        && let Some((other, swapped_form)) = cheapest(forms, &swapped)
        && other < cost
    {
        (cost, form) = (other, swapped_form);
        *sources = swapped;
        if let Swap::Mirror { bit, codes } = swap {
            let code = codes[(*word >> bit) as usize & (codes.len() - 1)];
            *word = *word & !((codes.len() as u128 - 1) << bit) | u128::from(code) << bit;
        }
    }
    assert!(
        cost < u32::MAX,
        "no form of {} takes {sources:?}",
        form.info().name
    );
    form
}

/// The sources with SrcA and SrcB in each other's place.
fn swapped(swap: &Swap, sources: &Sources) -> Option<Sources> {
    if matches!(swap, Swap::Never) {
        return None;
    }
    let place = |role: Role| sources.iter().position(|s| s.0 == role);
    let (a, b) = (place(Role::A)?, place(Role::B)?);
    let mut swapped = sources.clone();
    (swapped[a].1, swapped[b].1) = (sources[b].1, sources[a].1);
    if let Swap::Exchange = swap
        && let Some(pp) = place(Role::Pp)
        && let Source::Predicate(p) = sources[pp].1
    {
        swapped[pp].1 = Source::Predicate(p.negate());
    }
    Some(swapped)
}

fn cheapest(forms: &[Form], sources: &Sources) -> Option<(u32, Form)> {
    let mut best: Option<(u32, Form)> = None;
    for &form in forms {
        if let Some(cost) = cost(form.info(), sources)
            && best.is_none_or(|(c, _)| cost < c)
        {
            best = Some((cost, form));
            if cost == 0 {
                break;
            }
        }
    }
    best
}

/// Instructions needed before the form can be used; none when it cannot take the sources.
fn cost(form: &'static FormInfo, sources: &[(Role, Source)]) -> Option<u32> {
    let mut total = 0;
    for (role, source) in sources {
        let Source::Value(src) = source else { continue };
        match form.operand(*role) {
            None if src.as_imm() == Some(0) => {}
            None => return None,
            Some(operand) => match way(form, operand, src)? {
                Way::Direct => {}
                Way::Move(n) => total += n,
            },
        }
    }
    Some(total)
}

fn way(form: &'static FormInfo, operand: &'static OperandInfo, src: &Src) -> Option<Way> {
    let field = &form.fields[operand.field as usize];
    let modifiers = applies(operand, src);
    match (operand.class, field.ty) {
        (Some(RegisterClass::Uniform), _) => match src.base {
            Base::Regs(regs) if modifiers && regs.word(0).class() == RegisterClass::Uniform => {
                Some(Way::Direct)
            }
            Base::Uniform { .. } if modifiers => Some(Way::Direct),
            Base::Imm(0) => Some(Way::Direct),
            // Only the uniform datapath stands where uniform registers may be written.
            Base::Imm(_) | Base::Constant { .. } if modifiers && on_uniform_datapath(form) => {
                Some(Way::Move(1))
            }
            _ => None,
        },
        (Some(RegisterClass::Gpr), _) => Some(match src.base {
            Base::Regs(regs) if regs.word(0).class() != RegisterClass::Gpr => return None,
            _ if !modifiers => Way::Move(1 + u32::from(src.words)),
            Base::Imm(0) => Way::Direct,
            Base::Imm(_) | Base::Constant { .. } | Base::Uniform { .. } => {
                Way::Move(u32::from(src.words))
            }
            Base::Value { .. } | Base::Regs(_) => Way::Direct,
        }),
        (Some(_), _) => None,
        (None, FieldType::ConstantMemory) => match src.base {
            Base::Constant { offset, .. }
                if modifiers && offset.is_multiple_of(4 * u32::from(src.words)) =>
            {
                Some(Way::Direct)
            }
            _ => None,
        },
        (None, _) => fold(field, src).map(|_| Way::Direct),
    }
}

/// Whether the operand can apply all modifiers of the source.
fn applies(operand: &OperandInfo, src: &Src) -> bool {
    (!src.neg || operand.negate.is_some())
        && (!src.abs || operand.absolute.is_some())
        && (!src.not || operand.bitnot.is_some())
        && (src.halves == Halves::Both || operand.select.is_some())
}

fn set_modifiers(inst: &mut Inst<VReg>, operand: &OperandInfo, src: &Src) {
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

/// The bits of an immediate field with the source's modifiers applied; none when it is no immediate or does not fit.
fn fold(field: &FieldInfo, src: &Src) -> Option<u64> {
    let Base::Imm(value) = src.base else {
        return None;
    };
    // A 32-bit field for a 64-bit operand holds its high word (the DALU rows).
    match (field.ty, src.words) {
        (FieldType::Unsigned, 2) => {
            let sign = 1u64 << 63;
            let value = value as u64;
            let value = if src.abs { value & !sign } else { value };
            let value = if src.neg { value ^ sign } else { value };
            (value as u32 == 0).then_some(value >> 32)
        }
        // An immediate of the uniform datapath is sign-extended to 64 bits.
        (FieldType::Signed, 2) => {
            let value = if src.neg {
                (value as u64 as i64).wrapping_neg()
            } else {
                value as u64 as i64
            };
            let fits = !src.abs && !src.not && i32::try_from(value).is_ok();
            fits.then_some(u64::from(value as u32))
        }
        (FieldType::Unsigned, 1) if field.width < 32 => {
            let fits = src.is_plain() && value >> field.width == 0;
            fits.then_some(value as u64)
        }
        (_, 1) => {
            let value = value as u32;
            Some(u64::from(match field.ty {
                FieldType::Half2 => {
                    let value = match src.halves {
                        Halves::Both => value,
                        Halves::Low => (value & 0xffff) * 0x1_0001,
                        Halves::High => (value >> 16) * 0x1_0001,
                    };
                    let value = if src.abs { value & 0x7fff_7fff } else { value };
                    if src.neg { value ^ 0x8000_8000 } else { value }
                }
                FieldType::Float32 => {
                    let value = if src.abs { value & 0x7fff_ffff } else { value };
                    if src.neg { value ^ 0x8000_0000 } else { value }
                }
                FieldType::Signed | FieldType::Unsigned if field.width == 32 => {
                    if src.abs || src.halves != Halves::Both {
                        return None;
                    }
                    let value = if src.not { !value } else { value };
                    if src.neg { value.wrapping_neg() } else { value }
                }
                _ => return None,
            }))
        }
        _ => None,
    }
}

/// Registers as the entries of an operand.
fn entries<'a>(room: &'a mut [Option<VReg>; 4], regs: &[VReg]) -> &'a [Option<VReg>] {
    for (entry, reg) in room.iter_mut().zip(regs) {
        *entry = Some(*reg);
    }
    &room[..regs.len()]
}
