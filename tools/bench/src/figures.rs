//! What a function became, counted on its emitted words.

use cranelift_thisgpu::unstable::abi;
use cranelift_thisgpu::unstable::emit;
use cranelift_thisgpu::unstable::isa::encode::decode;
use cranelift_thisgpu::unstable::isa::operand::PT;
use cranelift_thisgpu::unstable::isa::table::{Effects, OperandInfo};
use cranelift_thisgpu::unstable::isa::{Optype, PInst, Role, build};
use serde::{Deserialize, Serialize};

/// Truth table of PLOP3 for its first operand (documents 002, PLOP3: bit 4a + 2b + c).
const FIRST: u8 = 0xf0;

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
            out.copies += u64::from(is_copy(&inst));
            out.spills += u64::from(frame_offset(&inst).is_some_and(|at| spills.contains(&at)));
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

/// Whether it copies registers and does nothing else. What brings constants and parameters to registers copies nothing, and neither does what moves
/// values from one class to another.
fn is_copy(inst: &PInst) -> bool {
    let mut read =
        (inst.operands()).filter(|operand| inst.info().reads >> operand.info.first & 1 == 1);
    match inst.optype() {
        Optype::MOV | Optype::UMOV => {
            let result = inst.operand(Role::D).and_then(|o: &OperandInfo| o.class);
            read.any(|operand| {
                operand.info.role != Role::Pg
                    && operand.info.class == result
                    && operand.regs.iter().any(Option::is_some)
            })
        }
        Optype::PLOP3 => match (inst.reg(Role::Pu), inst.reg(Role::Pa)) {
            (Some(to), Some(from)) => {
                let mut copy: PInst = build::plop3_x(to, from, PT, PT, FIRST);
                let (guard, negated) = inst.guard();
                copy.set_guard(guard, negated);
                *inst == copy
            }
            _ => false,
        },
        _ => false,
    }
}

/// The offset from R1 of an access to local memory there.
fn frame_offset(inst: &PInst) -> Option<u32> {
    let effects = inst.optype().info().effects;
    let local = effects.contains(Effects::LOCAL) && inst.reg(Role::A) == Some(abi::STACK_POINTER);
    let offset = inst.number(Role::Addr).filter(|_| local)?;
    u32::try_from(offset).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_thisgpu::compile::SourceFile;
    use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
    use cranelift_thisgpu::settings::Options;
    use cranelift_thisgpu::unstable::isa::PReg;
    use cranelift_thisgpu::unstable::isa::generated::{MOVW, mov, umov};

    #[test]
    fn copies_are_told_from_what_brings_values_to_registers() {
        let [r4, r5] = [4, 5].map(PReg::gpr);
        let [ur4, ur5] = [4, 5].map(PReg::uniform);
        let [p0, p1] = [0, 1].map(PReg::predicate);
        let wide = mov::Options::new(MOVW::W32);
        let mut guarded: PInst = build::mov_r(wide, r4, r5);
        guarded.set_guard(Some(p1), true);
        let copies = [
            build::mov_r(wide, r4, r5),
            guarded,
            build::umov_u(umov::Options::new(MOVW::W32), ur4, ur5),
            build::plop3_x(p0, p1, PT, PT, FIRST),
        ];
        assert!(copies.iter().all(is_copy));
        let others: [PInst; 4] = [
            build::mov_i(wide, r4, 7),
            build::mov_u(wide, r4, ur5),
            build::plop3_x(p0, p1, p0, PT, FIRST),
            build::plop3_x(p0, p1, PT, PT, 0x0f),
        ];
        assert!(!others.iter().any(is_copy));
    }

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
