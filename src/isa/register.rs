//! Registers before and after allocation.

use super::generated::HARDWIRED;
use std::fmt;
use std::hash::Hash;
use std::num::{NonZeroU16, NonZeroU32};

/// The register files that instructions name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RegisterClass {
    /// General purpose, 32 bits, one a thread: `R0`…`R254`, `RZ`.
    Gpr = 0,
    /// Uniform, 32 bits, one a warp: `UR0`…`UR62`, `URZ`.
    Uniform = 1,
    /// Predicate, one bit a thread: `P0`…`P6`, `PT`.
    Predicate = 2,
}

impl RegisterClass {
    /// All classes, in the order of their numbers.
    pub const ALL: [RegisterClass; 3] = [
        RegisterClass::Gpr,
        RegisterClass::Uniform,
        RegisterClass::Predicate,
    ];

    /// The number of the hard-wired register (RZ, URZ, PT), from the description.
    pub const fn hardwired(self) -> u8 {
        HARDWIRED[self as usize].1
    }

    /// Prefix of a register's name.
    pub const fn prefix(self) -> &'static str {
        match self {
            RegisterClass::Gpr => "R",
            RegisterClass::Uniform => "UR",
            RegisterClass::Predicate => "P",
        }
    }

    /// Name of the hard-wired register.
    pub const fn hardwired_name(self) -> &'static str {
        HARDWIRED[self as usize].0
    }
}

/// A register of one phase: [`VReg`] before allocation, [`PReg`] after.
pub trait Register: Copy + Eq + Ord + Hash + fmt::Debug + fmt::Display {
    /// Its register file.
    fn class(self) -> RegisterClass;

    /// Writes the registers of one operand, low word first: `%v3:%v4`.
    fn write_group(regs: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in regs.iter().enumerate() {
            write!(f, "{}{r}", if i == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// A virtual register: one 32-bit word or one predicate bit, defined once (except by guarded writes and edge moves).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VReg(NonZeroU32);

impl VReg {
    /// The register `index` of a class. Indices are shared by all classes of a function.
    ///
    /// # Panics
    /// When `index` needs more than 28 bits.
    pub fn new(class: RegisterClass, index: u32) -> VReg {
        assert!(index < 1 << 28, "too many virtual registers");
        VReg(NonZeroU32::new(((index + 1) << 2) | class as u32).expect("index + 1 is not 0"))
    }

    /// Index in the function's numbering.
    pub const fn index(self) -> usize {
        ((self.0.get() >> 2) - 1) as usize
    }

    /// The register of this class that is numbered so many behind it.
    ///
    /// # Panics
    /// When there are no such numbers.
    pub(crate) fn behind(self, count: usize) -> VReg {
        VReg((self.0.checked_add((count as u32) << 2)).expect("a register that was made"))
    }
}

impl Register for VReg {
    fn class(self) -> RegisterClass {
        RegisterClass::ALL[(self.0.get() & 3) as usize]
    }
}

impl fmt::Display for VReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.class() {
            RegisterClass::Gpr => "v",
            RegisterClass::Uniform => "u",
            RegisterClass::Predicate => "p",
        };
        write!(f, "%{letter}{}", self.index())
    }
}

impl fmt::Debug for VReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A register of the machine, the hard-wired ones excluded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PReg(NonZeroU16);

impl PReg {
    /// The register `number` of a class.
    ///
    /// # Panics
    /// When the number is the hard-wired register's or above it.
    pub const fn new(class: RegisterClass, number: u8) -> PReg {
        assert!(number < class.hardwired(), "no such register");
        match NonZeroU16::new(((number as u16) << 2) | class as u16 | 1 << 15) {
            Some(bits) => PReg(bits),
            None => unreachable!(),
        }
    }

    /// `R0`…`R254`.
    ///
    /// # Panics
    /// When `number` is 255.
    pub const fn gpr(number: u8) -> PReg {
        PReg::new(RegisterClass::Gpr, number)
    }

    /// `P0`…`P6`.
    ///
    /// # Panics
    /// When `number` is above 6.
    pub const fn predicate(number: u8) -> PReg {
        PReg::new(RegisterClass::Predicate, number)
    }

    /// `UR0`…`UR62`.
    ///
    /// # Panics
    /// When `number` is above 62.
    pub const fn uniform(number: u8) -> PReg {
        PReg::new(RegisterClass::Uniform, number)
    }

    /// Number in its file.
    pub const fn number(self) -> u8 {
        (self.0.get() >> 2) as u8
    }
}

impl Register for PReg {
    fn class(self) -> RegisterClass {
        RegisterClass::ALL[(self.0.get() & 3) as usize]
    }

    /// `R4`; consecutive registers as `R[4:5]`.
    fn write_group(regs: &[Self], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match regs {
            [first, .., last]
                if usize::from(last.number().wrapping_sub(first.number())) + 1 == regs.len() =>
            {
                write!(
                    f,
                    "{}[{}:{}]",
                    first.class().prefix(),
                    first.number(),
                    last.number()
                )
            }
            _ => {
                let names: Vec<String> = regs.iter().map(PReg::to_string).collect();
                f.write_str(&names.join(":"))
            }
        }
    }
}

impl fmt::Display for PReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class().prefix(), self.number())
    }
}

impl fmt::Debug for PReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
