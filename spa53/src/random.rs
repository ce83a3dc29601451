//! Random instructions, and all ways to write one: for tests.

use super::{
    Choice, Input, Instruction, Iswz, LINES, Line, Modifiers, Operation, Part, Predicate, Shape,
    Sign, Source,
};
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::{PReg, RegisterClass};

/// What random instructions name.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// General registers R0 to below this, and RZ.
    pub registers: u8,
    /// Constant memory: banks and bytes that there are.
    pub banks: u8,
    /// Bytes of each.
    pub bytes: u16,
}

/// A random instruction.
pub fn instruction(random: &mut Random, names: Names) -> Instruction {
    let line = *random.pick(&LINES.iter().collect::<Vec<_>>());
    let choices = line.modifiers.iter().map(|(choice, _)| *choice);
    let mut modifiers = Modifiers::default();
    for choice in choices {
        modifiers.set(choice, random.below(choice.values().len()));
    }
    let mut instruction = Instruction {
        line,
        guard: Predicate::default(),
        modifiers,
        rd: register(random, names),
        a: Input::default(),
        b: Source::Immediate([0; 2]),
        pp: Predicate::default(),
    };
    if random.one_in(3) {
        instruction.guard = predicate(random);
    }
    let mut halves = Vec::new();
    for operand in line.operands {
        let sign = Sign {
            negate: operand.negate && random.one_in(2),
            absolute: operand.absolute && random.one_in(2),
        };
        match operand.shape {
            Shape::Register if operand.part == Part::Destination => {}
            Shape::Register => {
                let input = Input {
                    register: register(random, names),
                    sign,
                    format: *random.pick(&Iswz::ALL),
                };
                match operand.part {
                    Part::First => instruction.a = input,
                    _ => instruction.b = Source::Register(input),
                }
            }
            Shape::Predicate => instruction.pp = predicate(random),
            Shape::Constant { .. } => {
                let words = usize::from(names.bytes / 4);
                instruction.b = Source::Constant {
                    bank: random.below(names.banks.into()) as u8,
                    offset: 4 * random.below(words) as u16,
                    sign,
                };
            }
            Shape::Immediate { bits } => halves.push(half(random) >> (16 - bits) << (16 - bits)),
        }
    }
    if let [high, low] = halves[..] {
        let low = match line.operation {
            Operation::Hmul2 => low & 0x7fff | high & 0x8000,
            Operation::Hset2 => low,
        };
        instruction.b = Source::Immediate([low, high]);
    }
    instruction
}

fn register(random: &mut Random, names: Names) -> Option<PReg> {
    let number = random.below(usize::from(names.registers) + 1) as u8;
    (number < names.registers).then(|| PReg::gpr(number))
}

fn predicate(random: &mut Random) -> Predicate {
    let number = random.below(8) as u8;
    let register = (number < RegisterClass::Predicate.hardwired()).then(|| PReg::predicate(number));
    Predicate {
        register,
        not: random.one_in(2),
    }
}

/// A half that is often a zero, subnormal, infinite or NaN.
pub fn half(random: &mut Random) -> u16 {
    let corners = [
        0u16, 1, 0x3ff, 0x400, 0x401, 0x3bff, 0x3c00, 0x7bff, 0x7c00, 0x7c01, 0x7fff,
    ];
    let sign = (random.bits() as u16) & 0x8000;
    match random.below(4) {
        0 => sign | random.pick(&corners),
        1 => sign | random.bits() as u16 & 0x3ff,
        _ => random.bits() as u16,
    }
}

/// A register's contents: halves, or a number of single precision about the limits of halves.
pub fn word(random: &mut Random) -> u32 {
    let halves = u32::from(half(random)) << 16 | u32::from(half(random));
    match random.below(4) {
        0 | 1 => halves,
        // The exponents from below the smallest subnormal half to above the largest half.
        2 => random.bits() as u32 & 0x807f_ffff | (98 + random.below(50) as u32) << 23,
        _ => random.number(32) as u32,
    }
}

/// Every line with every combination of the modifiers behind its mnemonic.
pub fn all_modifiers() -> impl Iterator<Item = (&'static Line, Modifiers)> {
    LINES.iter().flat_map(|line| {
        let choices: Vec<Choice> = line.modifiers.iter().map(|(choice, _)| *choice).collect();
        let counts: Vec<usize> = choices.iter().map(|c| c.values().len()).collect();
        let combinations: usize = counts.iter().product();
        (0..combinations).map(move |mut number| {
            let mut modifiers = Modifiers::default();
            for (choice, count) in choices.iter().zip(&counts) {
                modifiers.set(*choice, number % count);
                number /= count;
            }
            (line, modifiers)
        })
    })
}
