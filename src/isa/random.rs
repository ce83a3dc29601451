//! Random legal instructions, built from the tables: for tests, fuzzing and benchmarks.
//!
//! A mode of the form is chosen, each of its modifiers gets one of its codes, each operand a register, number or
//! address of the right kind and alignment; what the mode does not show keeps its default. Documented exceptions are
//! respected by trying again. The encoder is not asked, so that it can be tested with these.

use super::control::{Control, SCOREBOARDS, Scoreboard};
use super::generated::{Form, MAX_REGISTERS};
use super::inst::Inst;
use super::register::{PReg, RegisterClass};
use super::table::{FieldInfo, FieldType, FormInfo, ModeInfo, OperandInfo, SyntaxOperandKind};

/// A reproducible generator: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug, Hash)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another sequence, which depends on `label` too.
    pub fn fork(&self, label: u64) -> Random {
        let mut forked = Random(self.0 ^ label.wrapping_mul(0xd6e8_feb8_6659_fd93));
        Random(forked.bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    ///
    /// # Panics
    /// When `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.bits() % limit as u64) as usize
    }

    /// True once in `n` times on average.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of `items`.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number that tends to the corners of its `width` bits.
    pub fn number(&mut self, width: u32) -> u64 {
        let mask = u64::MAX >> (64 - width);
        let value = match self.below(8) {
            0 => self.bits() % 20,
            1 => (self.bits() % 20).wrapping_neg(),
            2 => 1 << self.below(width as usize),
            3 => (1u64 << self.below(width as usize)).wrapping_sub(1),
            4 => *self.pick(&[
                0x8000_0000,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_0000,
                0x3f80_0000,
                0xbc00_3c00,
                0x7c00_fc00,
                0x7fff_8000,
            ]),
            _ => self.bits(),
        };
        value & mask
    }

    /// Random control fields.
    pub fn control(&mut self) -> Control {
        let mut control = Control::default();
        control.set_stall((self.bits() % (u64::from(Control::MAX_STALL) + 1)) as u8);
        if self.one_in(2) {
            control.set_wait((self.bits() % (1 << SCOREBOARDS)) as u8);
        }
        // One in eight has no scoreboard, as code 7.
        control.write = Scoreboard::new((self.bits() % 8) as u8);
        control.read = Scoreboard::new((self.bits() % 8) as u8);
        control
    }

    /// A legal instruction of `form`.
    ///
    /// # Panics
    /// When the exceptions leave (almost) nothing: the description is wrong.
    pub fn instruction(&mut self, form: Form) -> Inst<PReg> {
        let info = form.info();
        for _ in 0..10_000 {
            let mode = self.pick(info.modes);
            let word = self.modifiers(info, mode);
            let mut inst = Inst::from_parts(form, word, [None; MAX_REGISTERS]);
            self.operands(&mut inst, mode);
            if !info.exceptions.iter().any(|e| (e.broken)(inst.word())) {
                return inst;
            }
        }
        panic!("{}: no legal instruction found", info.name)
    }

    fn modifiers(&mut self, info: &FormInfo, mode: &ModeInfo) -> u128 {
        let mut word = (info.initial & !mode.fixed_mask) | mode.fixed_bits;
        for modifier in mode.modifiers.iter().filter(|m| !m.literal) {
            let Some(index) = modifier.field else {
                continue;
            };
            let field = &info.fields[index as usize];
            if modifier.optional && self.one_in(2) {
                word = field.set(word, field.hidden);
            } else if !matches!(field.value, super::table::FieldValue::Constant(_)) {
                word = field.set(word, self.pick(modifier.values).1);
            }
        }
        word
    }

    fn operands(&mut self, inst: &mut Inst<PReg>, mode: &ModeInfo) {
        let info = inst.info();
        if let Some(guard) = info.operand(super::Role::Pg) {
            let register = self.registers(inst, guard);
            inst.set_guard(register[0], self.one_in(2));
        }
        for operand in mode.operands {
            match operand.kind {
                SyntaxOperandKind::Plain {
                    field,
                    negate,
                    absolute,
                    bitnot,
                    not,
                    suffix,
                    ..
                } => {
                    if operand.optional && self.one_in(2) {
                        continue;
                    }
                    self.field(inst, field);
                    for index in [negate, absolute, bitnot, not].into_iter().flatten() {
                        self.flag(inst, index);
                    }
                    if let Some(index) = suffix {
                        self.flag(inst, index);
                    }
                }
                SyntaxOperandKind::AllPredicates => {}
                SyntaxOperandKind::Indexed { base, offset } => {
                    self.field(inst, base);
                    self.field(inst, offset);
                }
                SyntaxOperandKind::Memory {
                    base,
                    uniform,
                    offset,
                } => {
                    for field in [base, uniform, offset].into_iter().flatten() {
                        self.field(inst, field);
                    }
                }
            }
        }
    }

    /// A member of a decoration's type, the default more often; the default where the text does not show it.
    fn flag(&mut self, inst: &mut Inst<PReg>, index: u8) {
        let field = &inst.info().fields[index as usize];
        let shown = field.shown.is_none_or(|shown| shown(inst.word()));
        let value = match field.ty {
            FieldType::Enum(members) if shown && self.one_in(2) => self.pick(members.members).1,
            _ => field.hidden,
        };
        inst.set_field(index, value);
    }

    fn field(&mut self, inst: &mut Inst<PReg>, index: u8) {
        let info = inst.info();
        let operand = info.operands.iter().find(|o| o.field == index);
        if let Some(operand) = operand.filter(|o| o.class.is_some()) {
            let registers = self.registers(inst, operand);
            let count = inst.register_count(operand);
            return inst.set_regs(operand, &registers[..count]);
        }
        let width = operand.map_or(32, |o| (o.width)(inst.word()));
        let value = self.value(&info.fields[index as usize], width);
        inst.set_field(index, value);
    }

    fn value(&mut self, field: &FieldInfo, operand_width: u8) -> u64 {
        match field.ty {
            FieldType::Enum(members) => self.pick(members.members).1,
            FieldType::ConstantMemory => {
                let align = u64::from(operand_width / 8).max(1);
                ((self.bits() & 31) << 17) | ((self.bits() & 0x1_ffff) / align * align)
            }
            _ => self.number(field.width.into()),
        }
    }

    /// Registers of an operand, aligned; all none for the hard-wired one.
    fn registers(&mut self, inst: &Inst<PReg>, operand: &OperandInfo) -> [Option<PReg>; 4] {
        let mut out = [None; 4];
        let (Some(class), count) = (operand.class, inst.register_count(operand)) else {
            return out;
        };
        if self.one_in(8) {
            return out;
        }
        let align = if class == RegisterClass::Predicate {
            1
        } else {
            count.next_power_of_two()
        };
        let first = self.below((usize::from(class.hardwired()) - count) / align + 1) * align;
        for (i, entry) in out.iter_mut().enumerate().take(count) {
            *entry = Some(PReg::new(class, (first + i) as u8));
        }
        out
    }
}
