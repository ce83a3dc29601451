//! What a function became, counted on its emitted words.

use cranelift_thisgpu::unstable::emit;
use cranelift_thisgpu::unstable::isa::encode::decode;
use cranelift_thisgpu::unstable::report::purpose::Purpose;
use serde::{Deserialize, Serialize};

/// Figures of a function, or sums of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Its instructions.
    pub instructions: u64,
    /// Instructions that copy registers of a class to others of it.
    pub copies: u64,
    /// General-purpose registers.
    pub registers: u64,
    /// Loads from and stores to spill slots, those of saved registers included.
    pub spills: u64,
    /// Instructions of its innermost loops.
    pub loops: u64,
}

impl Figures {
    /// Names, in the order of [`Figures::values`].
    pub const NAMES: [&'static str; 5] = ["instrs", "copies", "regs", "spills", "loops"];

    /// Counts.
    pub fn of(code: &emit::Code) -> Self {
        let spills =
            code.resources.spill_offset..code.resources.spill_offset + code.resources.spill_bytes;
        let mut out = Figures {
            instructions: code.words.len() as u64,
            registers: code.resources.registers.into(),
            loops: code.resources.loops.iter().map(|&l| u64::from(l)).sum(),
            ..Figures::default()
        };
        for word in &code.words {
            // Words that were just encoded decode.
            let Ok((inst, _)) = decode(*word) else {
                continue;
            };
            match Purpose::of(&inst, &spills) {
                Some(Purpose::Copy) => out.copies += 1,
                Some(Purpose::Spill | Purpose::Reload) => out.spills += 1,
                None => {}
            }
        }
        out
    }

    /// All figures.
    pub fn values(&self) -> [u64; 5] {
        [
            self.instructions,
            self.copies,
            self.registers,
            self.spills,
            self.loops,
        ]
    }

    /// Adds those of another function.
    pub fn add(&mut self, other: &Figures) {
        self.instructions += other.instructions;
        self.copies += other.copies;
        self.registers += other.registers;
        self.spills += other.spills;
        self.loops += other.loops;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_thisgpu::compile::SourceFile;
    use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
    use cranelift_thisgpu::settings::Options;

    /// With few registers a loop over many values spills; with many it does not.
    #[test]
    fn accesses_to_spill_slots_are_those_of_the_frame() {
        let text = (crate::pressure::LOOPS[1].text)(40);
        let file = SourceFile::parse("loop", &text).unwrap();
        let spills = |registers: &str| {
            let mut options = Options::default();
            options.set(registers).unwrap();
            let mut unit = Unit::new();
            let name = file.functions[0].name();
            let input = FunctionInput::of_source(&file.functions[0], &name);
            let mut compiler = Compiler::new(options);
            compiler.compile_function(&input, &mut unit).unwrap();
            Figures::of(unit.functions().next().unwrap()).spills
        };
        assert_eq!(spills("regs=64"), 0);
        assert!(spills("regs=24") > 20);
    }
}
