//! An instruction: its 128-bit word with holes for its registers.

use super::generated::{Form, MAX_REGISTERS, Optype, Role};
use super::register::{PReg, Register, VReg};
use super::table::{FieldInfo, FormInfo, OperandInfo};
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

/// A machine instruction whose registers are of phase `R`.
///
/// Modifiers and immediates are in [`Inst::word`] at their final bits. Every 32-bit register of an operand has an entry
/// of its own at the place that the form gives the operand ([`OperandInfo::first`]); an entry is none where the
/// register is hard-wired (RZ, PT, URZ) – then its number is in the word – and where the operand is narrower than its
/// largest width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst<R> {
    form: Form,
    /// Entries of `regs` that are not empty, a bit each: most instructions have few of those that their form has.
    filled: u16,
    word: u128,
    regs: [Option<R>; MAX_REGISTERS],
}

impl<R: Hash> Hash for Inst<R> {
    /// Of the registers those that there are: most are empty.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.form, self.filled, self.word).hash(state);
        for reg in self.regs.iter().flatten() {
            reg.hash(state);
        }
    }
}

/// An instruction before register allocation.
pub type VInst = Inst<VReg>;
/// An instruction after register allocation.
pub type PInst = Inst<PReg>;

/// A generated enumeration of a field's members.
pub trait FieldEnum: Copy + Eq + std::fmt::Debug + 'static {
    /// The code in the word.
    fn code(self) -> u64;
    /// The member of a code.
    fn from_code(code: u64) -> Option<Self>;
    /// The member's name in the documents.
    fn name(self) -> &'static str;
}

/// A field that all forms of an optype have at the same bits, with its type.
pub struct TypedField<T> {
    bit: u8,
    width: u8,
    ty: PhantomData<fn() -> T>,
}

impl<T> Clone for TypedField<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for TypedField<T> {}

impl<T> TypedField<T> {
    /// The field of `width` bits at `bit`.
    pub const fn new(bit: u8, width: u8) -> Self {
        TypedField {
            bit,
            width,
            ty: PhantomData,
        }
    }

    const fn mask(self) -> u128 {
        (u128::MAX >> (128 - self.width as u32)) << self.bit
    }

    /// The raw value in `word`.
    pub const fn raw(self, word: u128) -> u64 {
        ((word & self.mask()) >> self.bit) as u64
    }

    /// `word` with the raw value set.
    pub const fn with_raw(self, word: u128, value: u64) -> u128 {
        (word & !self.mask()) | (((value as u128) << self.bit) & self.mask())
    }
}

impl<T: FieldEnum> TypedField<T> {
    /// `word` with the field set.
    pub fn with(self, word: u128, value: T) -> u128 {
        self.with_raw(word, value.code())
    }

    /// The member in `word`; none for a reserved code.
    pub fn get(self, word: u128) -> Option<T> {
        T::from_code(self.raw(word))
    }
}

/// One operand of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct OperandRef<'a, R> {
    /// What the form says of it.
    pub info: &'static OperandInfo,
    /// Its entries, one for each 32 bits; empty for immediates.
    pub regs: &'a [Option<R>],
}

impl<R: Register> Inst<R> {
    /// The form with every field at its default, registers hard-wired.
    pub fn new(form: Form) -> Self {
        Inst {
            form,
            filled: 0,
            word: form.info().initial,
            regs: [None; MAX_REGISTERS],
        }
    }

    /// An instruction from its parts; `word` holds the numbers of hard-wired registers.
    pub(crate) fn from_parts(form: Form, word: u128, regs: [Option<R>; MAX_REGISTERS]) -> Self {
        let places = regs.iter().enumerate().filter(|(_, reg)| reg.is_some());
        Inst {
            form,
            filled: places.fold(0, |filled, (place, _)| filled | 1 << place),
            word,
            regs,
        }
    }

    /// Its encoding.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The tables of its encoding.
    pub fn info(&self) -> &'static FormInfo {
        self.form.info()
    }

    /// Its operation.
    pub fn optype(&self) -> Optype {
        self.info().optype
    }

    /// The word without the registers in [`Inst::regs`] and without control fields.
    pub fn word(&self) -> u128 {
        self.word
    }

    /// All register entries.
    pub fn regs(&self) -> &[Option<R>; MAX_REGISTERS] {
        &self.regs
    }

    /// A typed modifier.
    pub fn get<T: FieldEnum>(&self, field: TypedField<T>) -> Option<T> {
        field.get(self.word)
    }

    /// This instruction with a typed modifier set.
    pub fn with<T: FieldEnum>(mut self, field: TypedField<T>, value: T) -> Self {
        self.word = field.with(self.word, value);
        self
    }

    /// Sets the modifiers behind the mnemonic: `options` at their bits, `mask` all bits of the operation's options.
    pub fn set_options(&mut self, mask: u128, options: u128) {
        debug_assert!(options & !mask == 0, "{options:#x} outside of {mask:#x}");
        self.word = (self.word & !mask) | options;
    }

    /// The raw value of a field of the form, by index.
    pub fn field(&self, index: u8) -> u64 {
        self.info().fields[index as usize].get(self.word)
    }

    /// Sets the raw value of a field of the form, by index.
    pub fn set_field(&mut self, index: u8, value: u64) {
        self.word = self.info().fields[index as usize].set(self.word, value);
    }

    /// The field of a documents' name, if the form has it: for a modifier that several operations have, and for text.
    /// Operands are found by their role ([`Inst::operand`], [`Inst::number`]), and made by [`super::build`].
    pub fn find_field(&self, name: &str) -> Option<&'static FieldInfo> {
        self.info().fields.iter().find(|f| f.name == name)
    }

    /// The operand of a role.
    pub fn operand(&self, role: Role) -> Option<&'static OperandInfo> {
        self.info().operand(role)
    }

    /// Entries of an operand in use: its width in words.
    pub fn operand_regs(&self, operand: &OperandInfo) -> &[Option<R>] {
        let first = operand.first as usize;
        &self.regs[first..first + self.register_count(operand)]
    }

    /// Register entries that an operand has in this word; 0 for immediates.
    pub fn register_count(&self, operand: &OperandInfo) -> usize {
        match operand.class {
            None => 0,
            // The word decides only over the wide ones.
            Some(_) if operand.max_width <= 32 => 1,
            Some(_) => ((operand.width)(self.word) as usize / 32).max(1),
        }
    }

    /// All register operands.
    pub fn operands(&self) -> impl Iterator<Item = OperandRef<'_, R>> + '_ {
        self.info()
            .operands
            .iter()
            .filter(|o| o.class.is_some())
            .map(|info| OperandRef {
                info,
                regs: self.operand_regs(info),
            })
    }

    /// Sets the registers of an operand, low word first. `None` entries mean the hard-wired register.
    ///
    /// # Panics
    /// When the operand is no register, or `regs` has not the operand's width, or is mixed of registers and hard-wired
    /// ones.
    pub fn set_regs(&mut self, operand: &OperandInfo, regs: &[Option<R>]) {
        assert!(operand.class.is_some(), "a register operand");
        assert_eq!(
            regs.len(),
            self.register_count(operand),
            "{}.{}: width",
            self.info().name,
            operand.name
        );
        let first = operand.first as usize;
        let fixed = regs[0].is_none();
        let most = (usize::from(operand.max_width) / 32).max(1);
        self.filled &= !((1 << (first + most)) - (1 << first));
        if !fixed {
            self.filled |= (1 << (first + regs.len())) - (1 << first);
        }
        if most == 1 {
            self.regs[first] = regs[0];
        } else {
            assert!(
                regs.iter().all(|r| r.is_none() == fixed),
                "{}.{}: mixed",
                self.info().name,
                operand.name
            );
            self.regs[first..first + most].fill(None);
            self.regs[first..first + regs.len()].copy_from_slice(regs);
        }
        // The number of a hard-wired register is all ones in every class.
        self.word = match fixed {
            true => self.word | operand.mask,
            false => self.word & !operand.mask,
        };
    }

    /// Sets the registers of an operand, none of them hard-wired, low word first: [`Inst::set_regs`] for what selection
    /// emits.
    ///
    /// # Panics
    /// When the operand is no register, or `regs` has not the operand's width.
    #[inline]
    pub fn fill(&mut self, operand: &OperandInfo, regs: &[R]) {
        match regs {
            [reg] if operand.class.is_some() && operand.max_width <= 32 => {
                self.regs[operand.first as usize] = Some(*reg);
                self.filled |= 1 << operand.first;
                self.word &= !operand.mask;
            }
            _ => {
                let mut room = [None; MAX_REGISTERS];
                for (entry, &reg) in room.iter_mut().zip(regs) {
                    *entry = Some(reg);
                }
                self.set_regs(operand, &room[..regs.len()]);
            }
        }
    }

    /// Sets a one-register operand by role.
    ///
    /// # Panics
    /// As [`Inst::set_regs`], and when the form has no such operand.
    pub fn set(&mut self, role: Role, reg: R) {
        let operand = self
            .operand(role)
            .unwrap_or_else(|| panic!("{} has no operand {role:?}", self.info().name));
        self.set_regs(operand, &[Some(reg)]);
    }

    /// The single register of a role: none when the form has no such operand or it is hard-wired.
    pub fn reg(&self, role: Role) -> Option<R> {
        self.operand(role).and_then(|o| self.regs[o.first as usize])
    }

    /// The guard: register (none: PT) and whether it is negated.
    pub fn guard(&self) -> (Option<R>, bool) {
        match self.operand(Role::Pg) {
            Some(o) => (
                self.regs[o.first as usize],
                o.not.is_some_and(|n| self.field(n) != 0),
            ),
            None => (None, false),
        }
    }

    /// Whether it always executes: guard PT, not negated.
    pub fn is_unguarded(&self) -> bool {
        self.guard() == (None, false)
    }

    /// Sets the guard.
    pub fn set_guard(&mut self, reg: Option<R>, negated: bool) {
        if let Some(o) = self.operand(Role::Pg) {
            self.set_regs(o, &[reg]);
            if let Some(not) = o.not {
                self.set_field(not, u64::from(negated));
            }
        }
    }

    /// Registers written, hard-wired ones left out, in the order of the operands.
    pub fn definitions(&self) -> Registers<'_, R> {
        Registers {
            regs: &self.regs,
            entries: self.info().writes & self.filled,
        }
    }

    /// Registers read, hard-wired ones left out, in the order of the operands.
    pub fn uses(&self) -> Registers<'_, R> {
        Registers {
            regs: &self.regs,
            entries: self.info().reads & self.filled,
        }
    }

    /// Registers of some entries, a bit each, hard-wired ones left out.
    pub fn registers(&self, entries: u16) -> Registers<'_, R> {
        Registers {
            regs: &self.regs,
            entries: entries & self.filled,
        }
    }

    /// Its registers with their places among the entries.
    pub fn entries(&self) -> impl Iterator<Item = (usize, R)> + '_ {
        let mut left = self.registers(self.filled);
        std::iter::from_fn(move || {
            let place = left.entries.trailing_zeros() as usize;
            left.next().map(|reg| (place, reg))
        })
    }

    /// Whether every entry that its operand is too narrow for is empty, as [`Inst::set_regs`] leaves it. A width
    /// changed afterwards could break it.
    pub fn has_clean_entries(&self) -> bool {
        let mut used = [false; MAX_REGISTERS];
        for o in self.operands() {
            let first = o.info.first as usize;
            used[first..first + o.regs.len()].fill(true);
        }
        self.regs
            .iter()
            .zip(used)
            .all(|(r, used)| used || r.is_none())
    }

    /// The same instruction with its registers replaced, e.g. by allocation.
    pub fn map<S: Register>(&self, mut f: impl FnMut(R) -> S) -> Inst<S> {
        let mut regs = [None; MAX_REGISTERS];
        for (place, reg) in self.entries() {
            regs[place] = Some(f(reg));
        }
        Inst {
            form: self.form,
            filled: self.filled,
            word: self.word,
            regs,
        }
    }

    /// Replaces every register by another of its phase.
    pub fn rename(&mut self, mut f: impl FnMut(R) -> R) {
        let used = self.info().register_bits.len();
        for reg in self.regs[..used].iter_mut().flatten() {
            *reg = f(*reg);
        }
    }

    /// The same instruction with its registers replaced, told which operand each belongs to.
    pub fn map_operands<S: Register>(
        &self,
        mut f: impl FnMut(&'static OperandInfo, usize, R) -> S,
    ) -> Inst<S> {
        let mut regs = [None; MAX_REGISTERS];
        for o in self.operands() {
            for (i, r) in o.regs.iter().enumerate() {
                regs[o.info.first as usize + i] = r.map(|r| f(o.info, i, r));
            }
        }
        Inst::from_parts(self.form, self.word, regs)
    }
}

/// Registers of an instruction; see [`Inst::uses`] and [`Inst::definitions`].
#[derive(Clone, Debug)]
pub struct Registers<'a, R> {
    regs: &'a [Option<R>; MAX_REGISTERS],
    /// Entries still to come, a bit each; none of them is empty.
    entries: u16,
}

impl<R: Register> Iterator for Registers<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        if self.entries == 0 {
            return None;
        }
        let entry = self.entries.trailing_zeros() as usize;
        self.entries &= self.entries - 1;
        self.regs[entry]
    }

    #[inline]
    fn fold<B, F: FnMut(B, R) -> B>(self, init: B, mut f: F) -> B {
        let (mut result, mut entries) = (init, self.entries);
        while entries != 0 {
            if let Some(reg) = self.regs[entries.trailing_zeros() as usize] {
                result = f(result, reg);
            }
            entries &= entries - 1;
        }
        result
    }
}

impl FormInfo {
    /// The operand of a role.
    pub const fn operand(&'static self, role: Role) -> Option<&'static OperandInfo> {
        match self.roles[role as usize] {
            255 => None,
            index => Some(&self.operands[index as usize]),
        }
    }
}
