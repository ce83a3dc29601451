//! Every form through the encoder, decoder, printer and assembler and back; random words; unused bits; planted
//! mistakes.

#![cfg(feature = "asm")]

use cranelift_thisgpu::asm;
use cranelift_thisgpu::unstable::isa::encode::{all_forms, control_mask};
use cranelift_thisgpu::unstable::isa::generated::{FORMS, OPTYPES, form_of};
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::table::{FieldType, FieldValue};
use cranelift_thisgpu::unstable::isa::{Control, Illegal, Inst, PReg, decode};
use std::sync::atomic::{AtomicUsize, Ordering};

const SEED: u64 = 0x7467_0001;

/// `THISGPU_SEED`, or a fixed one; printed, so that a failure can be repeated.
fn seed(test: &str) -> u64 {
    let seed = std::env::var("THISGPU_SEED")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(SEED);
    println!("{test}: THISGPU_SEED={seed}");
    seed
}

/// `count`, or `heavy` with `THISGPU_HEAVY=1`.
fn scaled(count: usize, heavy: usize) -> usize {
    if std::env::var("THISGPU_HEAVY").is_ok_and(|v| v == "1") {
        heavy
    } else {
        count
    }
}

/// Runs `work` for 0..count on all cores.
fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    work(i);
                }
            });
        }
    });
}

fn round_trip(inst: &Inst<PReg>, control: Control) {
    let name = inst.info().name;
    let word = inst
        .encode(control)
        .unwrap_or_else(|e| panic!("{name}: `{inst}` does not encode: {e}"));
    let (back, control_back) = decode(word)
        .unwrap_or_else(|e| panic!("{name}: {word:032x} `{inst}` does not decode: {e}"));
    assert_eq!(
        (&back, control_back),
        (inst, control),
        "{name}: {word:032x}"
    );
    let text = inst.assembly(control);
    let (read, control_read) =
        asm::instruction::<PReg>(&text).unwrap_or_else(|e| panic!("{name}: {word:032x}\n{e}"));
    assert_eq!(
        (&read, control_read),
        (inst, control),
        "{name}: {word:032x} `{text}`, read as `{read}`"
    );
}

#[test]
fn every_form_survives() {
    let seed = seed("every_form_survives");
    let count = scaled(1_000, 10_000);
    in_parallel(FORMS.len(), |i| {
        let form = all_forms().nth(i).unwrap();
        let mut random = Random::new(seed ^ (i as u64) << 32);
        for _ in 0..count {
            let inst = random.instruction(form);
            round_trip(&inst, random.control());
        }
    });
}

/// A random word: any bits, or random fields under a legal operation and kind of operands.
fn random_word(random: &mut Random) -> u128 {
    let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
    if random.one_in(2) {
        return bits;
    }
    let info = random.pick(FORMS);
    let mut word = bits & info.used;
    for field in info.fields {
        match field.value {
            FieldValue::Constant(v) if ["optype", "stype"].contains(&field.name) => {
                word = field.set(word, v)
            }
            // Mostly what is not shown holds its default, or nothing would be legal.
            _ if !random.one_in(16) => {
                word = if random.one_in(2) {
                    field.set(word, field.hidden)
                } else {
                    word
                }
            }
            _ => {}
        }
    }
    word
}

#[test]
fn random_words_are_refused_or_survive() {
    let seed = seed("random_words_are_refused_or_survive");
    let legal = AtomicUsize::new(0);
    let chunks = scaled(100, 1_000);
    in_parallel(chunks, |chunk| {
        let mut random = Random::new(seed ^ (chunk as u64) << 32 ^ 0xabcd);
        for _ in 0..10_000 {
            let word = random_word(&mut random);
            let Ok((inst, control)) = decode(word) else {
                continue;
            };
            legal.fetch_add(1, Ordering::Relaxed);
            assert_eq!(inst.encode(control), Ok(word), "{word:032x} `{inst}`");
        }
    });
    let legal = legal.into_inner();
    println!("{legal} legal of {}", chunks * 10_000);
    assert!(
        legal > chunks * 10,
        "too few legal words to mean anything: {legal}"
    );
}

#[test]
fn every_bit_outside_is_refused() {
    let mut random = Random::new(seed("every_bit_outside_is_refused"));
    for form in all_forms() {
        let info = form.info();
        let word = random.instruction(form).encode(Control::default()).unwrap();
        for bit in (0..128).filter(|bit| info.used >> bit & 1 == 0) {
            assert_eq!(
                decode(word | 1 << bit),
                Err(Illegal::UnusedBit {
                    form: info.name,
                    bit
                })
            );
        }
    }
}

/// What a mode does not show must hold its default: any other value is refused with the field's name.
#[test]
fn hidden_fields_are_refused() {
    let mut random = Random::new(seed("hidden_fields_are_refused"));
    let mut tried = 0;
    for form in all_forms() {
        let info = form.info();
        for mode in info.modes {
            for &index in mode.hidden {
                let field = &info.fields[index as usize];
                let word = (info.initial & !mode.fixed_mask) | mode.fixed_bits;
                let wrong = field.hidden ^ 1 << random.below(field.width.into());
                let word = field.set(word, wrong) | Control::default().encode();
                let refused = match decode(word) {
                    Err(
                        Illegal::Hidden { field, .. }
                        | Illegal::ReservedCode { field, .. }
                        | Illegal::Constant { field, .. },
                    ) => field == info.fields[index as usize].name,
                    // A free modifier at 0 may already break a rule, and a mode field selects another mode.
                    Err(Illegal::Exception { .. } | Illegal::NoMode { .. }) => true,
                    Err(other) => panic!("{}.{}: {other}", info.name, field.name),
                    Ok((inst, _)) => panic!(
                        "{}.{} = {wrong} is accepted as `{inst}`",
                        info.name, field.name
                    ),
                };
                assert!(refused, "{}.{}", info.name, field.name);
                tried += 1;
            }
        }
    }
    assert!(tried > 50, "{tried}");
}

/// Every code of an enumeration that has no name, in every form that has such a field.
#[test]
fn codes_without_a_name_are_refused() {
    let mut random = Random::new(seed("codes_without_a_name_are_refused"));
    let mut refused = 0;
    for form in all_forms() {
        let word = random
            .instruction(form)
            .encode(Control::default())
            .unwrap_or_else(|e| panic!("{form:?}: {e}"));
        for field in form.info().fields {
            let FieldType::Enum(names) = field.ty else {
                continue;
            };
            for code in (0..1 << field.width).filter(|code| names.name_of(*code).is_none()) {
                let wrong = field.set(word, code);
                assert!(
                    decode(wrong).is_err(),
                    "{}: {} = {code} decodes",
                    form.info().name,
                    field.name
                );
                refused += 1;
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn zero_and_all_ones_are_no_instructions() {
    assert!(decode(0).is_err());
    assert!(decode(u128::MAX).is_err());
}

#[test]
fn scoreboard_six_is_refused() {
    let inst =
        Inst::<PReg>::new(form_of(OPTYPES[0].number, 4).unwrap_or(all_forms().next().unwrap()));
    let word = inst.encode(Control::default()).unwrap();
    for (bit, field) in [(122, "wsb"), (125, "rsb")] {
        let word = word & !(7 << bit) | 6 << bit;
        assert_eq!(decode(word), Err(Illegal::NoScoreboard { field }));
    }
    assert_eq!(
        control_mask() >> 112,
        0xffff,
        "control takes bits 112 to 127"
    );
}

/// Wide operands: a pair off its alignment, a pair that is no pair.
#[test]
fn bad_register_groups_are_refused() {
    let form = all_forms()
        .find(|f| f.info().name == "IMAD_WIDE_RRR")
        .unwrap();
    let mut inst = Inst::<PReg>::new(form);
    let rd = form
        .info()
        .operands
        .iter()
        .find(|o| o.name == "rd")
        .unwrap();
    inst.set_regs(rd, &[Some(PReg::gpr(3)), Some(PReg::gpr(4))]);
    assert!(matches!(
        inst.encode(Control::default()),
        Err(Illegal::Misaligned { operand: "rd", .. })
    ));
    inst.set_regs(rd, &[Some(PReg::gpr(4)), Some(PReg::gpr(6))]);
    assert!(matches!(
        inst.encode(Control::default()),
        Err(Illegal::NotConsecutive { operand: "rd", .. })
    ));
}

/// A planted mistake in each stage must be found by the round trip.
#[test]
fn the_round_trip_finds_mistakes() {
    let mut random = Random::new(seed("the_round_trip_finds_mistakes"));
    let mut found = 0;
    for form in all_forms() {
        let inst = random.instruction(form);
        let word = inst.encode(Control::default()).unwrap();
        for bit in 0..128 {
            match decode(word ^ 1 << bit) {
                Ok((changed, control)) => assert!(
                    changed != inst || control != Control::default(),
                    "{}: bit {bit} means nothing",
                    form.info().name
                ),
                Err(_) => found += 1,
            }
        }
    }
    assert!(found > 0);
}
