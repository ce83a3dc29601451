//! Lane loops for what is known when an instruction is decoded, and with the host's vector instructions, against the
//! reference: the same registers.

use super::super::semantics::Reference;
use crate::isa::encode::all_forms;
use crate::isa::random::Random;
use crate::isa::{Control, PInst, decode};
use crate::sim::decode::action::Action;
use crate::sim::decode::host::Simd;
use crate::sim::decode::program::{BroadcastSource, Program};
use crate::sim::decode::specialised::Decoding;
use crate::sim::warp::registers::{BROADCAST, GENERAL, LANES, Registers, THREADS, ZERO};

/// Words that operations treat in ways of their own: ends of ranges, subnormal numbers, infinities, NaN.
const SPECIAL: [u32; 16] = [
    0,
    1,
    31,
    32,
    64,
    0x007f_ffff,
    0x0080_0000,
    0x3f80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fc0_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xff80_0000,
    u32::MAX,
];
/// Exponents and signs: products of numbers with these meet the ends of the range, sums cancel.
const EXPONENTS: [u32; 4] = [0x3e00_0000, 0, 0x5e00_0000, 0x1e00_0000];
/// Instructions of each form.
const TRIES: usize = 120;

fn word32(random: &mut Random) -> u32 {
    (random.bits() >> 32) as u32
}

fn filled(random: &mut Random) -> Registers {
    let mut registers = Registers::new();
    for column in (0..GENERAL as u16).chain(BROADCAST..THREADS) {
        for lane in 0..LANES {
            registers.column_mut(column)[lane] = match random.below(4) {
                0 => *random.pick(&SPECIAL),
                1 => word32(random) & 0x81ff_ffff | *random.pick(&EXPONENTS),
                _ => word32(random),
            };
        }
    }
    for predicate in &mut registers.predicates[..7] {
        *predicate = (random.bits() >> 32) as u32;
    }
    registers
}

/// Runs the only instruction of a program on a copy of the registers; none if it is not pure.
fn run(program: &Program, registers: &Registers, mask: u32) -> Option<Registers> {
    let op = &program.ops[0];
    let Action::Pure(body) = &op.action else {
        return None;
    };
    let mut registers = registers.clone();
    for broadcast in op.broadcasts.iter().chain(&program.constants) {
        if let BroadcastSource::Immediate(value) = broadcast.source {
            *registers.column_mut(broadcast.column) = [value; LANES];
        }
    }
    body.run(&op.operands, &mut registers, mask);
    Some(registers)
}

fn same(a: &Registers, b: &Registers) -> bool {
    (0..ZERO + 8).all(|n| a.column(n) == b.column(n)) && a.predicates == b.predicates
}

/// Every form of every pure operation, with modifiers at random and with few of them, under whole and partial masks.
#[test]
fn specialised_loops_give_what_the_reference_gives() {
    let mut random = Random::new(11);
    let decodings = [Simd::Auto, Simd::Portable];
    let decodings = decodings.map(|simd| Decoding::new(Reference::default(), simd));
    let mut registers = filled(&mut random);
    let mut compared = 0;
    for form in all_forms() {
        let plain = PInst::new(form).encode(Control::default());
        for turn in 0..TRIES {
            let any = random.instruction(form).encode(Control::default());
            let (Ok(mut word), Ok(plain)) = (any, plain.as_ref()) else {
                break;
            };
            if turn % 2 == 0 {
                let rare = random.bits() & random.bits() & random.bits();
                let changed = u128::from(rare) << 64 | u128::from(u64::MAX);
                word = word & changed | plain & !changed;
            }
            let Ok((inst, _)) = decode(word) else {
                continue;
            };
            let [fast, reference] = decodings.map(|decoding| Program::new(&[word], decoding));
            if !matches!(reference.ops[0].action, Action::Pure(_)) {
                break;
            }
            for mask in [u32::MAX, word32(&mut random) | 1, 1 << random.below(32)] {
                let [a, b] = [&fast, &reference].map(|program| run(program, &registers, mask));
                let (a, b) = (a.expect("a lane loop"), b.expect("a lane loop"));
                assert!(same(&a, &b), "{inst} {mask:#x}");
                compared += 1;
            }
        }
        registers = filled(&mut random);
    }
    assert!(compared > 10_000, "only {compared} were pure");
}
