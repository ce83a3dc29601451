//! What is carried over computes the same: both ways executed from the same states.

use crate::random::{self, Names};
use crate::{
    Fmz, Input, Instruction, Iswz, Line, Modifiers, Ofmt, Operation, Predicate, Source, port,
};
use cranelift_thisgpu::FaultKind;
use cranelift_thisgpu::sim::Reference;
use cranelift_thisgpu::unstable::isa::PReg;
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::{Control, PInst};
use cranelift_thisgpu::unstable::sim::Bytes;
use cranelift_thisgpu::unstable::sim::Concurrency;
use cranelift_thisgpu::unstable::sim::Global;
use cranelift_thisgpu::unstable::sim::Local;
use cranelift_thisgpu::unstable::sim::Program;
use cranelift_thisgpu::unstable::sim::Shape;
use cranelift_thisgpu::unstable::sim::Warp;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::{self, F16, F32, Format, Rounding};
use cranelift_thisgpu::unstable::sim::{Banks, Environment};
use cranelift_thisgpu::unstable::sim::{LANES, Registers};
use std::collections::BTreeMap;

/// Registers that instructions name, and those behind them that sequences may use.
const NAMES: Names = Names {
    registers: 6,
    banks: 2,
    bytes: 64,
};
const SCRATCH: [PReg; 4] = [PReg::gpr(20), PReg::gpr(21), PReg::gpr(22), PReg::gpr(23)];

/// Runs words in a warp, and gives its registers and why it stopped.
fn run(
    words: &[u128],
    registers: &Registers,
    banks: &Banks,
    active: u32,
) -> (Registers, Option<FaultKind>) {
    let program = Program::new(words, Reference::default());
    let mut warp = Warp::new(Local::new(0, false));
    warp.start(active, 0, 255);
    warp.registers = registers.clone();
    warp.prepare(0, &program, banks, [LANES as u32, 1, 1]);
    let global = Global::new(0, false);
    let mut shared = Bytes::new(0, false);
    let mut env = Environment {
        program: &program,
        banks,
        shape: Shape {
            grid: [1; 3],
            block: [LANES as u32, 1, 1],
        },
        budget: u64::MAX,
        block: [0; 3],
        global: global.table(),
        shared: &mut shared,
        clock: None,
        checker: None,
        recorder: None,
        concurrency: Concurrency::Alone,
    };
    let stop = (0..words.len()).find_map(|_| warp.step(&mut env).err());
    (warp.registers, stop.map(|stop| stop.kind))
}

fn words(instructions: &[PInst], guard: Predicate) -> Vec<u128> {
    let word = |inst: &PInst| {
        let mut inst = *inst;
        inst.set_guard(guard.register, guard.not);
        inst.encode(Control::default())
            .unwrap_or_else(|e| panic!("{inst}: {e}"))
    };
    instructions.iter().map(word).collect()
}

/// Whether two results are the same, NaN by class.
fn same(instruction: &Instruction, ours: u32, theirs: u32) -> bool {
    let equal = |format: Format, a: u64, b: u64| a == b || format.is_nan(a) && format.is_nan(b);
    match (instruction.line().operation, instruction.modifiers().ofmt) {
        (Operation::Hset2, _) => ours == theirs,
        (Operation::Hmul2, Ofmt::F32) => equal(F32, ours.into(), theirs.into()),
        (Operation::Hmul2, _) => [0, 16].into_iter().all(|shift| {
            let half = |word: u32| u64::from(word >> shift & 0xffff);
            equal(F16, half(ours), half(theirs))
        }),
    }
}

/// Compares both ways from one state.
fn compare(
    instruction: &Instruction,
    words: &[u128],
    registers: &Registers,
    banks: &Banks,
    active: u32,
) {
    let mut expected = registers.clone();
    let fault = instruction.execute(&mut expected, banks, active).err();
    let (found, stopped) = run(words, registers, banks, active);
    assert_eq!(fault.map(|stop| stop.kind), stopped, "{instruction}");
    assert_eq!(expected.predicates, found.predicates, "{instruction}");
    assert_eq!(expected.uniform, found.uniform, "{instruction}");
    for register in (0..255).filter(|r| !SCRATCH.contains(&PReg::gpr(*r))) {
        let (ours, theirs) = (
            expected.column(register.into()),
            found.column(register.into()),
        );
        for lane in 0..LANES {
            let is_result = instruction.destination() == Some(PReg::gpr(register));
            let equal = match is_result {
                true => same(instruction, ours[lane], theirs[lane]),
                false => ours[lane] == theirs[lane],
            };
            assert!(
                equal,
                "{instruction}: R{register} of lane {lane} is {:#010x} and not {:#010x}, from {:#010x?}",
                theirs[lane],
                ours[lane],
                (0..6)
                    .map(|r| registers.column(r)[lane])
                    .collect::<Vec<_>>()
            );
        }
    }
}

fn random_state(random: &mut Random) -> (Registers, Banks, u32) {
    let mut registers = Registers::new();
    for register in 0..NAMES.registers {
        for value in registers.column_mut(register.into()) {
            *value = random::word(random);
        }
    }
    for predicate in &mut registers.predicates[..7] {
        *predicate = random.bits() as u32;
    }
    let mut banks = Banks::default();
    for bank in 0..usize::from(NAMES.banks) {
        // Sometimes the end is missing: a fault.
        let length = if random.one_in(8) { 32 } else { NAMES.bytes };
        let words = (0..length / 4).flat_map(|_| random::word(random).to_le_bytes());
        banks.banks[bank] = words.collect();
    }
    let active = if random.one_in(4) {
        random.bits() as u32 | 1
    } else {
        u32::MAX
    };
    (registers, banks, active)
}

/// States of a plain test; `THISGPU_SPA53_STATES` sets another number, of warps.
const STATES: usize = 4_000;

#[test]
fn random_instructions_from_random_states() {
    let number = std::env::var("THISGPU_SPA53_STATES").ok();
    let states = number.and_then(|n| n.parse().ok()).unwrap_or(STATES);
    let seed = std::env::var("THISGPU_SEED").ok();
    let seed = seed.and_then(|s| s.parse().ok()).unwrap_or(53);
    println!("seed {seed}, {states} states of {LANES} threads");
    let mut random = Random::new(seed);
    for _ in 0..states {
        let instruction = random::instruction(&mut random, NAMES);
        let sequence =
            port::instructions(&instruction, &SCRATCH).expect("enough scratch registers");
        let words = words(&sequence, instruction.guard());
        let (registers, banks, active) = random_state(&mut random);
        compare(&instruction, &words, &registers, &banks, active);
    }
}

/// How long sequences are, by what makes them so.
#[test]
fn no_sequence_is_long_and_one_instruction_suffices_where_this_set_has_it() {
    let mut random = Random::new(7);
    let mut lengths: BTreeMap<usize, usize> = BTreeMap::new();
    for _ in 0..5_000 {
        let instruction = random::instruction(&mut random, NAMES);
        let sequence =
            port::instructions(&instruction, &SCRATCH).expect("enough scratch registers");
        *lengths.entry(sequence.len()).or_default() += 1;
        let single = |input: Input| input.format == Iswz::F32 && input.register.is_some();
        let b_is_halves = match instruction.second() {
            Source::Register(b) => !single(b),
            Source::Constant { .. } => false,
            Source::Immediate(_) => true,
        };
        let m = instruction.modifiers();
        let plain = m.ofmt == Ofmt::F16V2 && m.fmz != Fmz::Fmz;
        if !single(instruction.first()) && b_is_halves && plain {
            assert_eq!(sequence.len(), 1, "{instruction}");
        }
    }
    println!("{lengths:?}");
    assert!(lengths.keys().all(|length| *length <= 7), "{lengths:?}");
}

/// A half in single precision.
fn single(half: u16) -> u32 {
    softfloat::convert(F16, F32, half.into(), Rounding::NearestEven) as u32
}

/// A random instruction of a line, with these modifiers, from R0 and R1 to R3.
fn prepared(random: &mut Random, line: &'static Line, modifiers: Modifiers) -> Instruction {
    let mut instruction = random::instruction(random, NAMES);
    while !std::ptr::eq(instruction.line(), line) {
        instruction = random::instruction(random, NAMES);
    }
    instruction.modifiers = modifiers;
    instruction.guard = Predicate::default();
    instruction.rd = Some(PReg::gpr(3));
    instruction.a.register = Some(PReg::gpr(0));
    instruction
}

/// Every half as the first source, in each format, against corners as the second in a random format, with all modifiers
/// of the line and random signs.
#[test]
#[ignore = "minutes of release code"]
fn every_half_against_corners() {
    const CORNERS: [u16; 12] = [
        0, 1, 0x3ff, 0x400, 0x3800, 0x3c00, 0x4001, 0x7bff, 0x7c00, 0x7c01, 0x7fff, 0x0155,
    ];
    let mut random = Random::new(3);
    let mut compared = 0u64;
    for (line, modifiers) in random::all_modifiers() {
        // HSET2 has ten times as many combinations, of which each depends on less.
        let corners = match line.operation {
            Operation::Hmul2 => &CORNERS[..],
            Operation::Hset2 => &CORNERS[random.below(6)..][..3],
        };
        for (format, corner) in Iswz::ALL
            .into_iter()
            .flat_map(|format| corners.iter().map(move |corner| (format, *corner)))
        {
            let mut instruction = prepared(&mut random, line, modifiers);
            instruction.a.format = format;
            let corner = corner | random.bits() as u16 & 0x8000;
            let other = *random.pick(&CORNERS) | corner & 0x8000;
            let (mut registers, mut banks, _) = random_state(&mut random);
            let mut second = u32::from(other) << 16 | u32::from(corner);
            if let Source::Register(b) = &mut instruction.b {
                b.register = Some(PReg::gpr(1));
                if b.format == Iswz::F32 {
                    second = single(corner);
                }
            }
            if let Source::Immediate(halves) = &mut instruction.b {
                let bits = if line.mnemonic == "HMUL2_32I" {
                    0xffff
                } else {
                    0xffc0
                };
                *halves = [corner & bits, other & bits];
            }
            *registers.column_mut(1) = [second; LANES];
            for bank in &mut banks.banks[..usize::from(NAMES.banks)] {
                *bank = single(corner).to_le_bytes().repeat(16);
            }
            let sequence = port::instructions(&instruction, &SCRATCH).expect("enough");
            let words = words(&sequence, instruction.guard());
            for base in (0..0x1_0000u32).step_by(LANES) {
                for (lane, value) in registers.column_mut(0).iter_mut().enumerate() {
                    let half = base + lane as u32;
                    *value = match instruction.a.format {
                        // Its exponent and mantissa, with bits below that truncation drops.
                        Iswz::F32 => half << 16 | half.wrapping_mul(0x9e37) & 0xffff,
                        _ => half << 16 | half ^ 0x5a5a,
                    };
                }
                compare(&instruction, &words, &registers, &banks, u32::MAX);
                compared += LANES as u64;
            }
        }
    }
    println!("{compared} results compared");
}
