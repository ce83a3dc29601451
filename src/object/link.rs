//! Filling in the addresses of symbols.

use super::{BeyondBounds, Line, Object, ObjectFunction, Relocation, RelocationKind};
use crate::abi::{MAX_CONSTANTS, MAX_LOCAL};
use crate::isa::decode;
use crate::isa::encode::WORD_BYTES;
use crate::isa::operand::Constant;
use crate::isa::table::{FieldInfo, FieldType};
use crate::isa::{PInst, Role};
use hashbrown::{HashMap, HashSet};
use std::fmt;
use thiserror::Error;

/// Code address of the first function: no function begins at 0, so a function's address is never null.
pub const CODE_START: u64 = WORD_BYTES as u64;

/// Where symbols are.
pub trait Symbols {
    /// The address of a symbol: of code, bytes from the start of the module's code; of data, in global memory.
    fn address(&self, name: &str) -> Option<u64>;

    /// The byte offset of the object's constants in constant bank 3: 0 of one object alone.
    fn constants(&self) -> u64 {
        0
    }

    /// What may have been meant by a name that has no address; may be empty.
    fn remedy(&self, _name: &str) -> String {
        String::new()
    }
}

impl<F: Fn(&str) -> Option<u64>> Symbols for F {
    fn address(&self, name: &str) -> Option<u64> {
        self(name)
    }
}

/// Why a relocation has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// No such symbol.
    #[error("{place}: undefined symbol `{symbol}`{}", remark(.remedy))]
    Undefined {
        /// Function or data object, and offset in it.
        place: String,
        /// The name.
        symbol: String,
        /// What may have been meant; may be empty.
        remedy: String,
    },
    /// Two objects define a name for all.
    #[error(
        "symbol `{symbol}` is defined in {first} and in {second}; rename one, or make one local to its object"
    )]
    Duplicate {
        /// The name.
        symbol: String,
        /// The object that defines it first.
        first: String,
        /// The other one.
        second: String,
    },
    /// A function uses a kernel of another object as a function.
    #[error(
        "{place}: `{symbol}` is a kernel, which only a launch can start; move what it does to a function that both call"
    )]
    Kernel {
        /// Function or data object, and offset in it.
        place: String,
        /// The kernel.
        symbol: String,
    },
    /// The constants of all objects together do not fit into constant bank 3.
    #[error(
        "the constants of the objects take {bytes} bytes of constant memory together, at most {MAX_CONSTANTS} are \
         available; compile the functions into one unit"
    )]
    Constants {
        /// All their bytes.
        bytes: u64,
    },
    /// A kernel needs more local memory than a thread can have.
    #[error(
        "kernel `{kernel}` takes {bytes} bytes of local memory with what it calls, at most {MAX_LOCAL} are available; \
         use smaller stack slots"
    )]
    Local {
        /// The kernel.
        kernel: String,
        /// What it takes.
        bytes: u32,
    },
    /// A kernel needs more registers than its launch bounds leave.
    #[error("{0}")]
    Bounds(BeyondBounds),
    /// Too far for the field.
    #[error("{place}: {kind} to `{symbol}` does not fit: {}", signed(*.value))]
    OutOfRange {
        /// Function or data object, and offset in it.
        place: String,
        /// The name.
        symbol: String,
        /// Kind of the relocation.
        kind: &'static str,
        /// What should be stored.
        value: i128,
    },
    /// The relocation lies outside its function, or has a kind that code or data cannot have.
    #[error("{place}: {kind} cannot stand here")]
    BadPlace {
        /// Function or data object, and offset in it.
        place: String,
        /// Kind of the relocation.
        kind: &'static str,
    },
}

/// A remedy behind what is wrong.
fn remark(remedy: &str) -> String {
    if remedy.is_empty() {
        String::new()
    } else {
        format!("; {remedy}")
    }
}

/// A number in hexadecimal digits, with its sign before them.
fn signed(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    format!("{sign}{:#x}", value.unsigned_abs())
}

/// What does not link: all that was found, at least one. Prints one per line, also as `Debug`, which is what `main` and
/// `unwrap` show.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkErrors(Vec<LinkError>);

impl LinkErrors {
    /// `value` if nothing went wrong.
    pub(crate) fn finish<T>(errors: Vec<LinkError>, value: T) -> Result<T, LinkErrors> {
        if errors.is_empty() {
            Ok(value)
        } else {
            Err(LinkErrors(errors))
        }
    }

    /// The errors, at least one.
    pub fn as_slice(&self) -> &[LinkError] {
        &self.0
    }

    /// The errors, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, LinkError> {
        self.0.iter()
    }
}

impl IntoIterator for LinkErrors {
    type Item = LinkError;
    type IntoIter = std::vec::IntoIter<LinkError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a LinkErrors {
    type Item = &'a LinkError;
    type IntoIter = std::slice::Iter<'a, LinkError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for LinkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for LinkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// They have no source: their text says everything.
impl std::error::Error for LinkErrors {}

/// Bits of an instruction's word that a relocation fills.
const FIELD: u32 = 32;

/// An operand in constant memory: `c[bank][offset]`, or an address in a bank.
struct ConstantOperand {
    /// Lowest bit and width of the offset in the word.
    bit: u8,
    width: u32,
    signed: bool,
}

impl ConstantOperand {
    /// The bank that an instruction reads, and the operand that says so.
    fn of(inst: &PInst) -> Option<(u64, Self)> {
        let fields = inst.info().fields;
        let whole = |field: &&FieldInfo| matches!(field.ty, FieldType::ConstantMemory);
        if let Some(field) = fields.iter().find(whole) {
            // The bank stands above the offset.
            let bank = field.get(inst.word()) >> Constant::OFFSET_BITS;
            let operand = Self {
                bit: field.bit,
                width: Constant::OFFSET_BITS,
                signed: false,
            };
            return Some((bank, operand));
        }
        let bank = inst.number(Role::Bank)?;
        let offset = &fields[inst.operand(Role::Addr)?.field as usize];
        let operand = Self {
            bit: offset.bit,
            width: offset.width.into(),
            signed: true,
        };
        Some((bank, operand))
    }

    fn offset(&self, word: u128) -> i64 {
        let above = i64::BITS - self.width;
        let bits = ((word >> self.bit) as i64) << above;
        if self.signed {
            bits >> above
        } else {
            (bits as u64 >> above) as i64
        }
    }

    /// The word with another offset; none when that does not fit.
    fn with_offset(&self, word: u128, offset: i64) -> Option<u128> {
        let mask = ((1 << self.width) - 1) << self.bit;
        let changed = (word & !mask) | (offset as u128) << self.bit & mask;
        (self.offset(changed) == offset).then_some(changed)
    }
}

/// The byte offset at which an instruction reads the module's constants.
#[cfg(feature = "asm")]
pub(crate) fn constant_read(inst: &PInst) -> Option<i64> {
    let (bank, operand) = ConstantOperand::of(inst)?;
    (bank == u64::from(crate::abi::CONSTANT_BANK)).then(|| operand.offset(inst.word()))
}

/// The word with another byte offset in its constant bank; none when it has no operand there or the offset does not
/// fit.
pub(crate) fn with_constant(word: u128, offset: i64) -> Option<u128> {
    let (inst, _) = decode(word).ok()?;
    let (_, operand) = ConstantOperand::of(&inst)?;
    operand.with_offset(word, offset)
}

/// What a relocation stands in, for messages.
#[derive(Clone, Copy)]
pub(super) struct Owner<'a> {
    /// Name of the function or data object.
    pub name: &'a str,
    /// Lines of the source, for a function.
    pub lines: &'a [Line],
}

impl Relocation {
    /// `NAME+OFFSET`, with the line of the source if it is known.
    pub(super) fn place(&self, owner: Owner<'_>) -> String {
        let begun = owner
            .lines
            .partition_point(|line| line.offset <= self.offset);
        let line = match owner.lines[..begun].last() {
            Some(line) if line.location.line != 0 => format!(" (line {})", line.location.line),
            _ => String::new(),
        };
        format!("{}+{:#x}{line}", owner.name, self.offset)
    }

    /// The address of its symbol.
    fn base(&self, owner: Owner<'_>, symbols: &impl Symbols) -> Result<u64, LinkError> {
        let base = symbols.address(&self.symbol);
        base.ok_or_else(|| LinkError::Undefined {
            place: self.place(owner),
            symbol: self.symbol.clone(),
            remedy: symbols.remedy(&self.symbol),
        })
    }

    fn out_of_range(&self, owner: Owner<'_>, value: i128) -> LinkError {
        LinkError::OutOfRange {
            place: self.place(owner),
            symbol: self.symbol.clone(),
            kind: self.kind.name(),
            value,
        }
    }

    fn bad_place(&self, owner: Owner<'_>) -> LinkError {
        LinkError::BadPlace {
            place: self.place(owner),
            kind: self.kind.name(),
        }
    }
}

impl ObjectFunction {
    /// Fills in the symbols' addresses, with the function at byte `base` of the module's code.
    ///
    /// # Errors
    /// Every relocation that has no value; of those with the same undefined symbol the first.
    pub fn link(&mut self, base: u64, symbols: &impl Symbols) -> Result<(), LinkErrors> {
        let mut errors = Vec::new();
        let mut undefined = HashSet::new();
        let owner = Owner {
            name: &self.name,
            lines: &self.lines,
        };
        for relocation in &self.relocations {
            let word = match self.words.get_mut(relocation.offset as usize / WORD_BYTES) {
                Some(word) if (relocation.offset as usize).is_multiple_of(WORD_BYTES) => word,
                _ => {
                    errors.push(relocation.bad_place(owner));
                    continue;
                }
            };
            let linked = match relocation.kind {
                RelocationKind::Const => relocation.constant(*word, owner, symbols),
                _ => (relocation.field(base, owner, symbols))
                    .map(|field| (*word & !(0xffff_ffff << FIELD)) | (u128::from(field) << FIELD)),
            };
            match linked {
                Ok(linked) => *word = linked,
                // An address takes two instructions, and each would say the same.
                Err(LinkError::Undefined { symbol, .. }) if undefined.contains(&symbol) => {}
                Err(error) => {
                    undefined.insert(relocation.symbol.clone());
                    errors.push(error);
                }
            }
        }
        LinkErrors::finish(errors, ())
    }
}

impl Relocation {
    /// What goes into the word of an instruction of a function at `base`.
    fn field(&self, base: u64, owner: Owner<'_>, symbols: &impl Symbols) -> Result<u32, LinkError> {
        // Code computes addresses without regard to overflow, and so may what begins in a relocation.
        let target = self.base(owner, symbols)?.wrapping_add_signed(self.addend);
        match self.kind {
            RelocationKind::Abs32Lo => Ok(target as u32),
            RelocationKind::Abs32Hi => Ok((target >> 32) as u32),
            RelocationKind::Rel => {
                let next = base.wrapping_add(u64::from(self.offset) + WORD_BYTES as u64);
                let value = target.wrapping_sub(next) as i64;
                i32::try_from(value)
                    .map(|v| v as u32)
                    .map_err(|_| self.out_of_range(owner, value.into()))
            }
            RelocationKind::Abs64 | RelocationKind::Const => Err(self.bad_place(owner)),
        }
    }

    /// The word with the place of a constant.
    fn constant(
        &self,
        word: u128,
        owner: Owner<'_>,
        symbols: &impl Symbols,
    ) -> Result<u128, LinkError> {
        let (inst, _) = decode(word).map_err(|_| self.bad_place(owner))?;
        let (_, operand) = ConstantOperand::of(&inst).ok_or_else(|| self.bad_place(owner))?;
        let value = self.addend.wrapping_add_unsigned(symbols.constants());
        operand
            .with_offset(word, value)
            .ok_or_else(|| self.out_of_range(owner, value.into()))
    }

    /// The address that goes into data at the relocation's offset; `owner` names the data object of `size` bytes in
    /// errors.
    ///
    /// # Errors
    /// When the symbol is undefined, the place is outside the object, or the symbol's address and the addend together
    /// are no address.
    pub fn link_data(
        &self,
        owner: &str,
        size: u64,
        symbols: &impl Symbols,
    ) -> Result<[u8; 8], LinkError> {
        let owner = Owner {
            name: owner,
            lines: &[],
        };
        if self.kind != RelocationKind::Abs64 || u64::from(self.offset) + 8 > size {
            return Err(self.bad_place(owner));
        }
        let target = i128::from(self.base(owner, symbols)?) + i128::from(self.addend);
        match u64::try_from(target) {
            Ok(target) => Ok(target.to_le_bytes()),
            Err(_) => Err(self.out_of_range(owner, target)),
        }
    }
}

impl Object {
    /// The code address of each function, in their order, where the object is loaded alone: one behind the other from
    /// [`CODE_START`] on.
    pub fn code_addresses(&self) -> Vec<u64> {
        let mut next = CODE_START;
        let mut place = |function: &ObjectFunction| {
            let start = next;
            next += function.len();
            start
        };
        self.functions.iter().map(&mut place).collect()
    }

    /// Fills in the addresses of functions ([`Object::code_addresses`]) in code; the relocations stay.
    pub(super) fn link_code(&mut self) -> Result<(), LinkErrors> {
        let starts = self.code_addresses();
        let names = self.functions.iter().map(|f| f.name.clone());
        let addresses: HashMap<String, u64> = names.zip(starts.iter().copied()).collect();
        let address = |name: &str| addresses.get(name).copied();
        let mut errors = Vec::new();
        for (function, start) in self.functions.iter_mut().zip(starts) {
            let all = function.relocations.clone();
            // Words have the places of constants already, and data has no address yet.
            function.relocations.retain(|r| {
                r.kind != RelocationKind::Const && addresses.contains_key(r.symbol.as_str())
            });
            errors.extend(function.link(start, &address).err().into_iter().flatten());
            function.relocations = all;
        }
        LinkErrors::finish(errors, ())
    }

    /// The words of all functions one after another, with relocations between them filled in.
    ///
    /// # Errors
    /// Relocations that only a linker can fill in.
    pub fn linked_words(&self) -> Result<Vec<u128>, LinkErrors> {
        let mut starts = Vec::new();
        let mut next = 0;
        for function in &self.functions {
            starts.push((function.name.as_str(), next));
            next += function.len();
        }
        let addresses: HashMap<&str, u64> = starts.iter().copied().collect();
        let address = |name: &str| addresses.get(name).copied();
        let mut words = Vec::new();
        let mut errors = Vec::new();
        for (function, (_, start)) in self.functions.iter().zip(&starts) {
            let mut function = function.clone();
            errors.extend(function.link(*start, &address).err().into_iter().flatten());
            words.extend(function.words);
        }
        LinkErrors::finish(errors, words)
    }
}
