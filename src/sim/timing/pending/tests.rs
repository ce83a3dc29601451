use super::*;
use crate::emit::testing::store as store_word;
use crate::isa::encode::all_forms;
use crate::isa::random::Random;
use crate::isa::{Control, Form, PReg};
use crate::sim::decode::program::Program;
use crate::sim::semantics::Reference;

fn store(value: u8, control: Control) -> u128 {
    let inst = store_word([2, 3].map(PReg::gpr), PReg::gpr(value));
    inst.encode(control).expect("a store")
}

#[test]
fn what_nobody_waits_for_does_not_pile_up() {
    let mut read = Control::default();
    read.read = Scoreboard::new(3);
    let words = [store(4, Control::default()), store(5, read), store(6, read)];
    let program = Program::new(&words, Reference::default());
    let (mut pending, mut found) = (Pending::default(), Vec::new());
    let mut states = States::default();
    // Two groups in turns, which meet now and then.
    for pc in 0..9000u32 {
        let active = match pc % 100 {
            0..40 => 0xffff,
            40..80 => 0xffff_0000,
            _ => u32::MAX,
        };
        let lanes = Lanes {
            live: u32::MAX,
            active,
            mask: active,
        };
        pending.issue(
            &mut states,
            &program.ops[pc as usize % 3],
            pc,
            lanes,
            &mut found,
        );
    }
    assert!(found.is_empty());
    let entries = pending.slots.iter().map(|s| s.reads.len() + s.writes.len());
    assert!(entries.sum::<usize>() <= 2 * 2 * 5);
    assert!(pending.cohorts.len() <= 2);
}

/// Random code in random lanes finds the same with states and without.
#[test]
fn states_find_what_lists_find() {
    let mut random = Random::new(5);
    let forms: Vec<Form> = all_forms().collect();
    let (mut pairs, mut folded) = (0, 0);
    for _ in 0..40 {
        let word = |random: &mut Random| {
            let form = *random.pick(&forms);
            let control = random.control();
            random.instruction(form).encode(control).expect("legal")
        };
        let words: Vec<u128> = (0..12).map(|_| word(&mut random)).collect();
        let program = Program::new(&words, Reference::default());
        let mut states = States::default();
        let (mut quick, mut plain) = (Pending::default(), Pending::default());
        plain.folded = None;
        plain.unfold(&states, Folded::NOTHING);
        let mut live = u32::MAX;
        for turn in 0..600 {
            let pc = turn % 12;
            if random.one_in(100) {
                live = (live & random.bits() as u32) | 1;
            }
            let part = |random: &mut Random, of: u32| {
                let part = of & random.bits() as u32;
                if random.one_in(12) && part != 0 {
                    part
                } else {
                    of
                }
            };
            let active = part(&mut random, live);
            let mask = match random.below(12) {
                0 => 0,
                _ => part(&mut random, active),
            };
            let lanes = Lanes { live, active, mask };
            let op = &program.ops[pc as usize];
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            quick.issue(&mut states, op, pc, lanes, &mut found);
            plain.issue_lanes(op, pc, lanes, &mut expected);
            // What of several readers or writers is found first does not matter.
            let key = |early: &Early| (early.register.index(), early.earlier, early.lanes);
            found.sort_by_key(key);
            expected.sort_by_key(key);
            assert_eq!(found, expected, "{turn}");
            pairs += found.len();
            folded += usize::from(quick.folded.is_some());
        }
    }
    assert!(pairs > 1000 && folded > 5000, "{pairs} {folded}");
}
