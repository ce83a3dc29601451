//! Random kernels that mostly go right, with the host's vector instructions against the reference: the same memory,
//! counts and faults.

use super::super::SimConfig;
use super::super::launch::Loaded;
use super::{Bench, words};
use crate::isa::encode::all_forms;
use crate::isa::random::Random;
use crate::isa::table::{Effects, FieldType};
use crate::isa::{Form, Inst, PReg, Register, RegisterClass, Role};
use crate::launch::{Image, Report};
use crate::sim::decode::host::Simd;

/// Words that each thread has of the buffer.
const OWN: u32 = 16;
/// R0 = thread in the grid, R[2:3] = address of its own words. Uses R0 to R5.
const HEAD: &str = "
    S2R_X rd=0 sreg=SR_CTAID_X &wr=0
    S2R_X rd=1 sreg=SR_TID_X &wr=0
    IMAD_RCR rd=0 ra=0 vb=c0:0x0 rc=1 &req=1 ?5
    MOV_C rd=4 vb=c0:0x160 ?1
    MOV_C rd=5 vb=c0:0x164 ?4
    IMAD_WIDE_RIR itype=U32 rd=2 ra=0 vb=64 rc=4 ?6
";
/// Registers that kernels leave alone: the thread's number and address.
const KEPT: u8 = 4;
/// Blocks, and threads of each: a whole warp and a part of one.
const SHAPE: (u32, u32) = (2, 40);

/// The forms that a kernel is made of.
struct Forms {
    pure: Vec<Form>,
    accesses: Vec<Form>,
    all: Vec<Form>,
}

impl Forms {
    fn new() -> Forms {
        let effects = |form: &Form| form.info().optype.info().effects;
        let windows = [Effects::GLOBAL, Effects::SHARED, Effects::LOCAL];
        let touches = |form: &Form| windows.iter().any(|w| effects(form).contains(*w));
        let all: Vec<Form> = all_forms().collect();
        Forms {
            pure: (all.iter().copied())
                .filter(|form| effects(form).0 == 0)
                .collect(),
            accesses: all.iter().copied().filter(touches).collect(),
            all,
        }
    }
}

/// A kernel of so many instructions: arithmetic on few registers, accesses to the thread's words, short jumps, now and
/// then anything; at last registers are stored.
fn kernel(random: &mut Random, forms: &Forms, count: usize) -> Vec<u128> {
    let mut code = words(HEAD);
    while code.len() < count {
        let kind = random.below(20);
        let form = *random.pick(match kind {
            0..14 => &forms.pure,
            14..19 => &forms.accesses,
            _ => &forms.all,
        });
        let mut inst = random.instruction(form);
        if let Some(label) = inst.label() {
            let distance = (16 * (random.bits() % 8)).wrapping_sub(16 * 3);
            inst.set_field(label.field, distance);
        }
        if kind < 19 {
            tame(&mut inst, random);
        }
        let spoils =
            (inst.definitions()).any(|r| r.class() == RegisterClass::Gpr && r.number() < KEPT);
        if !spoils {
            code.push(inst.encode(random.control()).expect("a legal instruction"));
        }
    }
    for word in 0..OWN {
        let store = format!(
            "STG_RR ra=2 rb={} addr={}",
            u32::from(KEPT) + word,
            4 * word
        );
        code.extend(words(&store));
    }
    code.extend(words("EXIT_X"));
    code
}

/// Lets an instruction read constants that there are, and access the thread's own words or the beginning of shared and
/// local memory.
fn tame(inst: &mut Inst<PReg>, random: &mut Random) {
    for operand in inst.info().operands {
        let field = inst.info().fields.get(usize::from(operand.field));
        if field.is_some_and(|field| matches!(field.ty, FieldType::ConstantMemory)) {
            inst.set_field(operand.field, 8 * (random.bits() % 0x20));
        }
    }
    let accesses = inst.optype().info().effects.0 != 0;
    let address = inst.operand(Role::A);
    let address = address.filter(|a| a.class == Some(RegisterClass::Gpr) && accesses);
    if let Some(operand) = address {
        let own = [Some(PReg::gpr(2)), Some(PReg::gpr(3))];
        match inst.register_count(operand) {
            1 => inst.set_regs(operand, &[None]),
            _ => inst.set_regs(operand, &own),
        }
        if let Some(uniform) = inst.operand(Role::C)
            && uniform.class == Some(RegisterClass::Uniform)
        {
            let none = [None; 2];
            inst.set_regs(uniform, &none[..inst.register_count(uniform)]);
        }
        if inst.number(Role::Addr).is_some() {
            inst.set_number(Role::Addr, 16 * (random.bits() % u64::from(OWN / 4)));
        }
    }
}

/// What a launch leaves: the buffer and the report.
fn outcome(simd: Simd, code: &[u128]) -> (Vec<u32>, Report) {
    let config = SimConfig {
        simd,
        threads: 1,
        budget: 400,
        ..SimConfig::default()
    };
    let count = SHAPE.0 * SHAPE.1 * OWN;
    let buffer: Vec<u32> = (0..count).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
    let mut bench = Bench::with(config, "EXIT_X", &buffer);
    let image = Image {
        words: code.to_vec(),
        ..Image::default()
    };
    bench.loaded = Loaded::new(image, &config);
    let report = bench.launch(SHAPE.0, SHAPE.1, &[]);
    (bench.words(count as usize), report)
}

/// Runs so many kernels from a seed.
fn compare(seed: u64, rounds: u32) {
    let forms = Forms::new();
    let (mut ended, mut threads) = (0, 0);
    for round in 0..rounds {
        let mut random = Random::new(seed).fork(round.into());
        let count = 12 + random.below(40);
        let code = kernel(&mut random, &forms, count);
        let reference = outcome(Simd::Portable, &code);
        for simd in [Simd::Auto, Simd::Avx2] {
            let found = outcome(simd, &code);
            assert!(
                found == reference,
                "{simd:?}, seed {seed:#x}, round {round}: {:?} instead of {:?}",
                found.1,
                reference.1
            );
        }
        ended += u32::from(reference.1.fault.is_none());
        threads += reference.1.stats.thread_instructions;
    }
    println!("seed {seed:#x}: {ended} of {rounds} kernels ended, {threads} thread-instructions");
    assert!(ended > rounds / 10 && ended < rounds, "{ended} ended");
    assert!(
        threads / u64::from(rounds) > 1000,
        "{threads} thread-instructions"
    );
}

#[test]
fn vector_instructions_change_nothing() {
    compare(0x5EED_0003, 200);
}

#[test]
#[ignore = "a minute"]
fn vector_instructions_change_nothing_in_many_kernels() {
    compare(0x5EED_0004, 20_000);
}
