//! Waits and stalls of sequences, by the verifier of hazards.

use cranelift_thisgpu::unstable::emit::{Code, Resources};

use crate::port::{self, Scratch};
use crate::random::{self, Names};
use cranelift_thisgpu::unstable::hazards::verify::verify;
use cranelift_thisgpu::unstable::isa::generated::{Form, IExt, iadd};
use cranelift_thisgpu::unstable::isa::operand::PT;
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::{Control, Inst, PInst, PReg, build, decode};
use cranelift_thisgpu::unstable::vcode::FunctionKind;
use std::fmt::Write;

const NAMES: Names = Names {
    registers: 6,
    banks: 2,
    bytes: 64,
};

/// The words of a text that is carried over, and an instruction behind it that reads and writes all it names.
fn words(text: &str) -> Vec<u128> {
    let scratch: Scratch = "R20-R23".parse().expect("a list of registers");
    let ported = port::port("t.s", text, &scratch).unwrap_or_else(|e| panic!("{e}"));
    let assembly =
        cranelift_thisgpu::asm::assemble("t.s", &ported.text).unwrap_or_else(|e| panic!("{e}"));
    let mut words = assembly.words().expect("nothing to link");
    for register in 0..6 {
        let options = iadd::Options::new(IExt::NoX);
        let register = PReg::gpr(register);
        let sum: PInst = build::iadd_ri(options, register, PT, register, 1, !PT);
        words.push(sum.encode(Control::default()).expect("legal"));
    }
    let exit = Inst::<PReg>::new(Form::EXIT_X);
    words.push(exit.encode(Control::default()).expect("legal"));
    words
}

fn hazards(words: Vec<u128>) -> usize {
    let code = Code {
        name: "f".to_owned(),
        kind: FunctionKind::Device,
        words,
        relocations: Vec::new(),
        lines: Vec::new(),
        tables: Vec::new(),
        redzones: Vec::new(),
        accesses: Vec::new(),
        values: Vec::new(),
        scopes: Vec::new(),
        resources: Resources::default(),
    };
    verify(&code).len()
}

#[test]
fn sequences_have_no_hazard_and_need_their_waits() {
    let mut random = Random::new(9);
    let mut found = 0;
    for _ in 0..2_000 {
        let mut text = String::new();
        for _ in 0..3 {
            let instruction = random::instruction(&mut random, NAMES);
            // As much as the slowest fixed latency of what sequences end with.
            let _ = writeln!(text, "{instruction} &req={{0}} &wr=1 ?6 ;");
        }
        let words = words(&text);
        assert_eq!(hazards(words.clone()), 0, "{text}");
        // Without the waits there are some, unless all have become one instruction.
        let bare = words.iter().map(|word| {
            let (inst, _) = decode(*word).expect("legal");
            inst.encode(Control::default()).expect("legal")
        });
        found += usize::from(hazards(bare.collect()) != 0);
    }
    assert!(found > 1_500, "only {found} of 2000 texts need waits");
}
