//! A lane that computes addresses: a reader of the few instructions that kernels of tests have, as they are printed.

use std::collections::HashMap;

/// Addresses of the two buffers.
pub const DATA: u64 = 1 << 32;
pub const OUT: u64 = 2 << 32;
/// Where parameters begin in their bank.
const PARAMETERS: u64 = 0x160;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    Number(u32),
    /// What an access has read.
    Read(usize),
}

/// An instruction in parts.
pub struct Line<'a> {
    pub guard: Option<&'a str>,
    pub name: &'a str,
    pub operands: Vec<&'a str>,
}

impl<'a> Line<'a> {
    pub fn new(text: &'a str) -> Line<'a> {
        let (guard, text) = match text.strip_prefix('@').and_then(|t| t.split_once(' ')) {
            Some((guard, rest)) => (Some(guard), rest),
            None => (None, text),
        };
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let operands = operands.split(", ").filter(|o| !o.is_empty());
        Line {
            guard,
            name,
            operands: operands.collect(),
        }
    }
}

pub fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim_start_matches('+')),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// A word of the parameters.
fn constant(text: &str) -> Option<u32> {
    let offset = text.strip_prefix("c[0x0][")?.strip_suffix(']')?;
    let at = number(offset)?.checked_sub(PARAMETERS)?;
    let words = [DATA, OUT, 1];
    let word = words.get(at as usize / 8)?;
    Some((word >> (8 * (at % 8))) as u32)
}

/// The low and the high register of a pair.
fn pair(text: &str) -> Option<(String, String)> {
    let (file, numbers) = text.strip_suffix(']')?.split_once('[')?;
    let (low, high) = numbers.split_once(':')?;
    Some((format!("{file}{low}"), format!("{file}{high}")))
}

/// What a table says of three words, bit by bit; the last of them is worth most.
fn table(table: u32, words: [u32; 3]) -> u32 {
    let bit = |bit: u32| {
        let [c, b, a] = words.map(|word| word >> bit & 1);
        (table >> (4 * a + 2 * b + c) & 1) << bit
    };
    (0..32).map(bit).sum()
}

/// A thread.
#[derive(Clone, Debug)]
pub struct Lane {
    registers: HashMap<String, Value>,
    tid: u32,
    ctaid: u32,
}

impl Lane {
    /// With the module's constants.
    pub fn new(ctaid: u32, tid: u32, constants: &[u8]) -> Lane {
        let (words, _) = constants.as_chunks::<4>();
        let named = words.iter().enumerate().map(|(index, word)| {
            let name = format!("c[0x3][{:#x}]", 4 * index);
            (name, Value::Number(u32::from_le_bytes(*word)))
        });
        let registers = named.collect();
        Lane {
            registers,
            tid,
            ctaid,
        }
    }

    pub fn value(&self, operand: &str) -> Value {
        if let Some(other) = operand.strip_prefix('!') {
            return Value::Number(1 ^ self.number(other));
        }
        let known = match operand {
            "RZ" | "URZ" => Some(0),
            "PT" | "UPT" => Some(1),
            "SR_TID_X" => Some(self.tid),
            "SR_CTAID_X" => Some(self.ctaid),
            _ => constant(operand).or_else(|| number(operand).map(|n| n as u32)),
        };
        let value = known.map(Value::Number);
        let value = value.or_else(|| self.registers.get(operand).copied());
        value.unwrap_or_else(|| panic!("no value in {operand}"))
    }

    pub fn number(&self, operand: &str) -> u32 {
        match self.value(operand) {
            Value::Number(number) => number,
            Value::Read(_) => panic!("{operand} was read"),
        }
    }

    fn wide(&self, operand: &str) -> u64 {
        let words = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        if let Some((low, high)) = pair(operand) {
            return words(self.number(&low), self.number(&high));
        }
        let next = operand.strip_prefix("c[").and_then(|rest| {
            let (bank, offset) = rest.split_once("][")?;
            let offset = number(offset.strip_suffix(']')?)?;
            Some(self.number(&format!("c[{bank}][{:#x}]", offset + 4)))
        });
        words(self.number(operand), next.unwrap_or(0))
    }

    pub fn set(&mut self, register: &str, value: Value) {
        if !register.ends_with('Z') && !register.ends_with("PT") {
            self.registers.insert(register.to_string(), value);
        }
    }

    fn set_wide(&mut self, registers: &str, value: u64) {
        let (low, high) = pair(registers).unwrap_or_else(|| panic!("{registers} is no pair"));
        self.set(&low, Value::Number(value as u32));
        self.set(&high, Value::Number((value >> 32) as u32));
    }

    pub fn address(&self, operand: &str) -> u64 {
        let inner = operand.strip_prefix('[').and_then(|o| o.strip_suffix(']'));
        let terms = inner.unwrap_or_else(|| panic!("{operand} is no address"));
        let sum = terms.split('+').map(|term| self.wide(term));
        sum.fold(0, u64::wrapping_add)
    }

    /// Computes what has nothing to do with memory.
    pub fn compute(&mut self, line: &Line) {
        let o = &line.operands;
        let at = |index: usize| self.number(o[index]);
        match line.name {
            "MOV" | "UMOV" | "S2R" | "S2UR" => {
                let value = self.value(o[1]);
                self.set(o[0], value);
            }
            "SEL" | "USEL" => {
                let value = self.value(if at(3) != 0 { o[1] } else { o[2] });
                self.set(o[0], value);
            }
            "ULDC.64" => self.set_wide(o[0], self.wide(o[1])),
            "SHF.L.WRAP.U32" | "USHF.L.WRAP.U32" => {
                let value = (u64::from(at(3)) << 32 | u64::from(at(1))) << (at(2) & 31);
                assert_eq!(at(3), 0, "the high word of a shift");
                self.set(o[0], Value::Number(value as u32));
            }
            "SHF.R.HI.WRAP.U32" | "USHF.R.HI.WRAP.U32" => {
                let value = at(3) >> (at(2) & 31);
                self.set(o[0], Value::Number(value));
            }
            "LEA.HI.X" => {
                let value = (u64::from(at(3)) << 32 | u64::from(at(1))) << at(4);
                let value = at(2).wrapping_add((value >> 32) as u32);
                self.set(o[0], Value::Number(value));
            }
            "LOP3.POR" | "ULOP3.POR" => {
                let value = table(at(4), [3, 2, 1].map(at));
                self.set(o[0], Value::Number(value));
            }
            "IMAD.WIDE.U32" | "UIMAD.WIDE.U32" => {
                let product = u64::from(at(1)) * u64::from(at(2));
                self.set_wide(o[0], product.wrapping_add(self.wide(o[3])));
            }
            "IADD.X" => self.add(o),
            name if name.contains("ISETP.EQ.AND") || name.contains("ISETP.NE.AND") => {
                let equal = at(1) == at(2);
                let value = (equal == name.contains("EQ")) && at(3) != 0;
                self.set(o[0], Value::Number(value.into()));
            }
            "PLOP3" | "UPLOP3" => {
                let value = table(at(o.len() - 1), [2, 3, 4].map(|back| at(o.len() - back)));
                self.set(o[0], Value::Number(value & 1));
            }
            name => panic!("what {name} {o:?} does is not known"),
        }
    }

    /// An addition, with a carry in behind its operands and one out before them.
    fn add(&mut self, operands: &[&str]) {
        let is_predicate = |o: &&&str| o.trim_start_matches('!').starts_with('P');
        let out = operands.get(1).filter(is_predicate);
        let first = 1 + usize::from(out.is_some());
        let carry = operands.get(first + 2).filter(is_predicate);
        let [a, b] = [first, first + 1].map(|index| u64::from(self.number(operands[index])));
        let sum = a + b + carry.map_or(0, |c| u64::from(self.number(c)));
        self.set(operands[0], Value::Number(sum as u32));
        if let Some(out) = out {
            self.set(out, Value::Number((sum >> 32) as u32));
        }
    }
}
