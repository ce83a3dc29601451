//! Where virtual registers are said to be, against what they hold when random functions run, before allocation and
//! behind it; and mistakes that must be found so.
//!
//! Both run the same blocks. What a virtual register may be seen to be in a block is what it was at the start, or what
//! it is at the end.

use super::campaign::case;
use super::generate;
use super::interpret::{At, Machine, run_watched};
use crate::abi::STACK_POINTER;
use crate::isa::{PReg, Register, RegisterClass, VReg};
use crate::regalloc::locations::{Places, WordsAt};
use crate::regalloc::{AllocationBuffers, allocate};
use crate::values::tracking::Name;
use crate::values::{Held, Holder, Place, Word};
use crate::vcode::VCode;
use cranelift_codegen::entity::EntityRef;
use hashbrown::{HashMap, HashSet};
use smallvec::smallvec;

/// Functions.
const FUNCTIONS: u64 = 300;
/// Blocks that each runs.
const BLOCKS: usize = 60;

/// Mistakes in where values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A place is known an instruction too late, and so is its loss.
    Late,
    /// What was copied elsewhere is said to be where it was.
    ForgottenCopy,
    /// What leaves a slot of the frame is said to stay there.
    StaleSlot,
}

impl Mistake {
    fn plant(self, places: &mut Places) {
        let mut last: HashMap<u32, WordsAt> = HashMap::new();
        let mut changes = std::mem::take(&mut places.changes);
        for (index, holder, at) in &mut changes {
            let before = match *at {
                WordsAt::NOWHERE => last.get(holder).copied(),
                at => last.insert(*holder, at),
            };
            let before = before.unwrap_or(WordsAt::NOWHERE);
            match self {
                Mistake::Late => *index += 1,
                Mistake::ForgottenCopy if *at != WordsAt::NOWHERE && before != WordsAt::NOWHERE => {
                    *at = before;
                }
                Mistake::StaleSlot if *at == WordsAt::NOWHERE => {
                    let in_frame = |place: &Place| matches!(place, Place::Frame(_));
                    let words = places.words(*holder, before).unwrap_or_default();
                    if words.iter().any(in_frame) {
                        *at = before;
                    }
                }
                Mistake::ForgottenCopy | Mistake::StaleSlot => {}
            }
        }
        places.changes = changes;
    }
}

/// All virtual registers that something defines, each as a value of its own.
fn holders(code: &VCode<VReg>) -> Vec<Holder> {
    let mut defined: HashSet<VReg> = code.entry.iter().map(|(register, _)| *register).collect();
    for (block, data) in &code.blocks {
        defined.extend(data.params.iter().copied());
        defined.extend(
            code.block_insts(block)
                .iter()
                .flat_map(|entry| code.definitions(entry)),
        );
    }
    let mut defined: Vec<VReg> = defined.into_iter().collect();
    defined.sort_by_key(|register| register.index());
    let holder = |(value, register): (u32, VReg)| Holder {
        name: Name {
            value,
            block: cranelift_codegen::ir::Block::new(0),
            turn: Default::default(),
        },
        held: match register.class() {
            RegisterClass::Predicate => Held::Predicate(register, false),
            RegisterClass::Gpr | RegisterClass::Uniform => {
                Held::Words(smallvec![Word::Register(register)], 0)
            }
        },
    };
    (0..).zip(defined).map(holder).collect()
}

/// What a place holds.
fn content(place: Place, machine: &Machine<'_, PReg>) -> Option<u32> {
    let register = |register: PReg| machine.registers().get(&register).copied();
    match place {
        Place::Register(number) => register(PReg::gpr(number)),
        Place::Uniform(number) => register(PReg::new(RegisterClass::Uniform, number)),
        Place::Predicate(number, _) => register(PReg::predicate(number)),
        Place::Frame(offset) => machine.word(register(STACK_POINTER)?.wrapping_add(offset)),
        Place::Constant(word) => Some(word),
        Place::Launch(_) => None,
    }
}

/// Places that were looked at in the function of a seed, if it has an allocation; or what is wrong.
fn check(seed: u64, mistake: Option<Mistake>) -> Result<u64, String> {
    let (shape, options) = case(seed);
    let mut code = generate::function(seed, &shape);
    let before = code.clone();
    code.holders = holders(&code);
    // That an instruction needs more registers than there are is no mistake.
    let Ok(allocated) = allocate(code, &options, &mut AllocationBuffers::default()) else {
        return Ok(0);
    };
    let mut places = allocated.places;
    if let Some(mistake) = mistake {
        mistake.plant(&mut places);
    }
    let mut blocks: Vec<[HashMap<VReg, u32>; 2]> = Vec::new();
    run_watched(&before, seed, BLOCKS, &mut |at, machine| match at {
        At::Start(_) => blocks.push([machine.registers().clone(), HashMap::new()]),
        At::Before(_) => {}
        At::End => blocks.last_mut().expect("a block")[1] = machine.registers().clone(),
    });
    let mut number = 0;
    let mut at: HashMap<u32, WordsAt> = HashMap::new();
    let (mut looked, mut wrong) = (0, None);
    run_watched(
        &allocated.code,
        seed,
        BLOCKS,
        &mut |point, machine| match point {
            At::Start(block) => {
                number += 1;
                at = places.starts[block.index()].iter().cloned().collect();
            }
            At::End => {}
            At::Before(index) => {
                for (holder, words) in &at {
                    let words = places.words(*holder, *words).expect("it is somewhere");
                    let mut registers = places.holders[*holder as usize].held.registers();
                    let register = registers.next().expect("a register");
                    let values = blocks[number - 1]
                        .each_ref()
                        .map(|known| known.get(&register));
                    looked += 1;
                    let found = content(words[0], machine);
                    if !values
                        .iter()
                        .any(|value| value.is_some_and(|value| Some(*value) == found))
                    {
                        wrong.get_or_insert_with(|| {
                        let inst = &allocated.code.insts[index as usize].inst;
                        format!("{register} is said to be in {words:?} before `{inst}`: {found:x?}, not {values:x?}")
                    });
                    }
                }
                let changes = &places.changes;
                let first = changes.partition_point(|change| change.0 < index);
                for (_, holder, words) in changes[first..]
                    .iter()
                    .take_while(|change| change.0 == index)
                {
                    match *words {
                        WordsAt::NOWHERE => _ = at.remove(holder),
                        words => _ = at.insert(*holder, words),
                    }
                }
            }
        },
    );
    wrong.map_or(Ok(looked), Err)
}

#[test]
fn registers_are_where_they_are_said_to_be() {
    let mut looked = 0;
    for seed in 1..=FUNCTIONS {
        looked += check(seed, None).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    assert!(looked > 100_000, "only {looked} places were looked at");
}

#[test]
fn planted_mistakes_are_found() {
    for mistake in [Mistake::Late, Mistake::ForgottenCopy, Mistake::StaleSlot] {
        let found = (1..=FUNCTIONS).any(|seed| check(seed, Some(mistake)).is_err());
        assert!(found, "{mistake:?} is not found");
    }
}
