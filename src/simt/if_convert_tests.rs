//! Converted code does what the code with branches did, lane by lane.

use super::{convert_ifs, guard_choices};
use crate::emit::testing::{add, block, equal, jump, kernel, load, store};
use crate::isa::generated::{IExt, iadd};
use crate::isa::operand::{PT, RZ};
use crate::isa::{Form, Inst, Optype, Register, RegisterClass, Role, VReg, build};
use crate::remarks::Remarks;
use crate::testing::Random;
use crate::vcode::{Entry, Guard, Terminator, VCode};
use hashbrown::HashMap;

/// Builds nested conditionals with values that join.
struct Builder<'a> {
    random: &'a mut Random,
    blocks: Vec<(Vec<Inst<VReg>>, Terminator<VReg>)>,
    params: Vec<Vec<VReg>>,
    current: usize,
    count: u32,
}

impl Builder<'_> {
    fn vreg(&mut self, class: RegisterClass) -> VReg {
        self.count += 1;
        VReg::new(class, self.count - 1)
    }

    fn new_block(&mut self, params: Vec<VReg>) -> usize {
        self.blocks.push((vec![], Terminator::Exit));
        self.params.push(params);
        self.blocks.len() - 1
    }

    fn push(&mut self, inst: Inst<VReg>) {
        self.blocks[self.current].0.push(inst);
    }

    /// A few instructions on the values at hand.
    fn straight(&mut self, words: &mut Vec<VReg>, predicates: &mut Vec<VReg>) {
        for _ in 0..self.random.below(4) {
            let (a, b) = (self.random.pick(words), self.random.pick(words));
            match self.random.below(6) {
                0 => self.push(store([a, a], b)),
                1 => {
                    let result = self.vreg(RegisterClass::Gpr);
                    self.push(load(result, [a, a]));
                    words.push(result);
                }
                2 => {
                    let result = self.vreg(RegisterClass::Predicate);
                    self.push(equal(result, a, b));
                    predicates.push(result);
                }
                _ => {
                    let result = self.vreg(RegisterClass::Gpr);
                    self.push(add(result, a, b));
                    words.push(result);
                }
            }
        }
    }

    fn body(&mut self, depth: usize, words: &mut Vec<VReg>, predicates: &mut Vec<VReg>) {
        self.straight(words, predicates);
        for _ in 0..1 + self.random.below(2) {
            if depth == 0 {
                return;
            }
            let params: Vec<VReg> = (0..self.random.below(3))
                .map(|_| {
                    let class = if self.random.below(4) == 0 {
                        RegisterClass::Predicate
                    } else {
                        RegisterClass::Gpr
                    };
                    self.vreg(class)
                })
                .collect();
            let guard = Guard {
                reg: self.random.pick(predicates),
                negated: self.random.flip(),
            };
            let from = self.current;
            let join = self.new_block(params.clone());
            let mut ways = Vec::new();
            for _ in 0..2 {
                let (mut inner_words, mut inner_predicates) = (words.clone(), predicates.clone());
                self.current = self.new_block(vec![]);
                ways.push(block(self.current));
                if self.random.below(4) != 0 {
                    self.body(depth - 1, &mut inner_words, &mut inner_predicates);
                }
                let last = |random: &mut Random, list: &[VReg]| {
                    if random.flip() {
                        list[list.len() - 1]
                    } else {
                        random.pick(list)
                    }
                };
                let args = params
                    .iter()
                    .map(|p| match p.class() {
                        RegisterClass::Predicate => last(self.random, &inner_predicates),
                        _ => last(self.random, &inner_words),
                    })
                    .collect();
                self.blocks[self.current].1 = Terminator::Jump {
                    target: block(join),
                    args,
                };
            }
            self.blocks[from].1 = Terminator::Branch {
                guard,
                taken: ways[0],
                fallthrough: ways[1],
                divergent: true,
            };
            self.current = join;
            words.extend(params.iter().filter(|p| p.class() == RegisterClass::Gpr));
            predicates.extend(
                params
                    .iter()
                    .filter(|p| p.class() == RegisterClass::Predicate),
            );
            self.straight(words, predicates);
        }
    }
}

/// Two words and two predicates that no instruction defines: inputs.
const INPUTS: u32 = 4;

fn random_function(random: &mut Random) -> VCode<VReg> {
    let mut builder = Builder {
        random,
        blocks: vec![],
        params: vec![],
        current: 0,
        count: 0,
    };
    let mut words: Vec<VReg> = (0..2).map(|_| builder.vreg(RegisterClass::Gpr)).collect();
    let mut predicates: Vec<VReg> = (0..2)
        .map(|_| builder.vreg(RegisterClass::Predicate))
        .collect();
    assert_eq!(builder.count, INPUTS);
    builder.new_block(vec![]);
    builder.body(3, &mut words, &mut predicates);
    let last = words[words.len() - 1];
    builder.push(store([last, last], words[words.len() / 2]));
    let Builder {
        blocks,
        params,
        count,
        ..
    } = builder;
    let mut code = kernel(blocks);
    code.blocks
        .values_mut()
        .zip(params)
        .for_each(|(b, p)| b.params = p);
    code.vreg_count = count;
    super::edit::Editor::new(code).finish()
}

/// Runs one lane; what it stores. Undefined registers are an error, a load is a function of its address.
fn run(code: &VCode<VReg>, inputs: &[u32]) -> Vec<(u32, u32)> {
    let mut values: HashMap<VReg, u32> = HashMap::new();
    for (index, value) in inputs.iter().enumerate() {
        for class in [RegisterClass::Gpr, RegisterClass::Predicate] {
            values.insert(
                VReg::new(class, index as u32),
                if class == RegisterClass::Gpr {
                    *value
                } else {
                    value & 1
                },
            );
        }
    }
    let mut stores = Vec::new();
    let mut at = block(0);
    loop {
        for entry in code.block_insts(at) {
            let inst = &entry.inst;
            let read = |role| inst.reg(role).map(|r| values[&r]);
            let word = |role| read(role).unwrap();
            let not = |role, value: u32| {
                let not = inst.operand(role).and_then(|o| o.not);
                value ^ not.map_or(0, |f| inst.field(f) as u32)
            };
            let (guard, negated) = inst.guard();
            if guard.is_some_and(|g| values[&g] == u32::from(negated)) {
                // What keeps an undefined value is undefined, which is no error unless somebody reads it.
                let kept: Vec<(VReg, u32)> = inst
                    .definitions()
                    .zip(code.else_values(entry))
                    .filter_map(|(d, e)| Some((d, *values.get(e.as_ref()?)?)))
                    .collect();
                values.extend(kept);
                continue;
            }
            let (result, value) = match inst.optype() {
                Optype::STG => {
                    stores.push((word(Role::A), word(Role::B)));
                    continue;
                }
                Optype::LDG => (Role::D, word(Role::A).wrapping_mul(2_654_435_761)),
                Optype::MOV => (Role::D, word(Role::B)),
                Optype::IADD => (Role::D, word(Role::A).wrapping_add(word(Role::B))),
                Optype::ISETP => (Role::Pu, u32::from(word(Role::A) < word(Role::B))),
                Optype::SEL => (
                    Role::D,
                    if not(Role::Pp, word(Role::Pp)) != 0 {
                        word(Role::A)
                    } else {
                        word(Role::B)
                    },
                ),
                Optype::PLOP3 => {
                    let [a, b, c] = [Role::Pa, Role::Pb, Role::Pc]
                        .map(|role| not(role, read(role).unwrap_or(1)));
                    let index = a << 2 | b << 1 | c;
                    (
                        Role::Pu,
                        inst.number(Role::Lut).unwrap() as u32 >> index & 1,
                    )
                }
                other => panic!("{other:?}"),
            };
            values.insert(inst.reg(result).unwrap(), value);
        }
        let target = match &code.blocks[at].terminator {
            Terminator::Jump { target, args } => {
                let passed: Vec<u32> = args.iter().map(|a| values[a]).collect();
                code.blocks[*target]
                    .params
                    .iter()
                    .zip(passed)
                    .for_each(|(p, v)| values.extend([(*p, v)]));
                *target
            }
            Terminator::Branch {
                guard,
                taken,
                fallthrough,
                ..
            } => {
                if (values[&guard.reg] != 0) != guard.negated {
                    *taken
                } else {
                    *fallthrough
                }
            }
            _ => return stores,
        };
        at = target;
    }
}

#[test]
fn converted_code_stores_the_same() {
    let mut random = Random::for_test("if-conversion");
    let (mut before, mut after, mut chosen, mut left) = (0, 0, 0, 0);
    for _ in 0..1500 {
        let code = random_function(&mut random);
        code.verify_shape().unwrap();
        let converted = convert_ifs(code.clone(), &mut Remarks::default());
        converted.verify_shape().unwrap();
        let guarded = guard_choices(converted.clone());
        guarded.verify_shape().unwrap();
        let selects = |c: &VCode<VReg>| {
            let is_select = |e: &&Entry<VReg>| e.inst.optype() == Optype::SEL;
            c.insts.iter().filter(is_select).count()
        };
        chosen += selects(&converted);
        left += selects(&guarded);
        let branches = |c: &VCode<VReg>| {
            c.blocks
                .values()
                .filter(|b| matches!(b.terminator, Terminator::Branch { .. }))
                .count()
        };
        before += branches(&code);
        after += branches(&converted);
        for _ in 0..8 {
            let inputs: Vec<u32> = (0..INPUTS).map(|_| random.word()).collect();
            assert_eq!(
                run(&code, &inputs),
                run(&converted, &inputs),
                "{inputs:?}\n{code}\n{converted}"
            );
            assert_eq!(
                run(&code, &inputs),
                run(&guarded, &inputs),
                "{inputs:?}\n{converted}\n{guarded}"
            );
        }
    }
    assert!(after * 2 < before, "{after} of {before} branches are left");
    assert!(left < chosen, "{left} of {chosen} selects are left");
}

#[test]
fn what_must_not_be_guarded_stays_behind_its_branch() {
    let guard = Guard {
        reg: VReg::new(RegisterClass::Predicate, 0),
        negated: false,
    };
    let branch = |divergent| Terminator::Branch {
        guard,
        taken: block(1),
        fallthrough: block(2),
        divergent,
    };
    let with = |inst: Inst<VReg>, divergent| {
        let mut code = kernel(vec![
            (vec![], branch(divergent)),
            (vec![inst], jump(3)),
            (vec![], jump(3)),
            (vec![], Terminator::Exit),
        ]);
        code.vreg_count = 2;
        convert_ifs(code, &mut Remarks::default()).blocks.len()
    };
    let result = VReg::new(RegisterClass::Gpr, 1);
    let add = build::iadd_rr(iadd::Options::new(IExt::NoX), result, PT, RZ, RZ, !PT);
    assert_eq!(with(add, true), 1);
    assert_eq!(with(add, false), 1);
    for form in [
        Form::BAR_X,
        Form::VOTE_X,
        Form::SHFL_RI,
        Form::CALL_I,
        Form::BSYNC_X,
        Form::R2P_RI,
    ] {
        assert_eq!(with(Inst::new(form), true), 4, "{form:?}");
    }
    let mut guarded = add;
    guarded.set_guard(Some(guard.reg), false);
    assert_eq!(with(guarded, true), 4);
}

#[test]
fn what_both_sides_hand_on_is_copied_in_its_class() {
    for class in [
        RegisterClass::Gpr,
        RegisterClass::Uniform,
        RegisterClass::Predicate,
    ] {
        let guard = Guard {
            reg: VReg::new(RegisterClass::Predicate, 0),
            negated: false,
        };
        let branch = Terminator::Branch {
            guard,
            taken: block(1),
            fallthrough: block(2),
            divergent: false,
        };
        let pass = || Terminator::Jump {
            target: block(3),
            args: vec![VReg::new(class, 1)],
        };
        let mut code = kernel(vec![
            (vec![], branch),
            (vec![], pass()),
            (vec![], pass()),
            (vec![], Terminator::Exit),
        ]);
        code.vreg_count = 3;
        code.blocks[block(3)].params = vec![VReg::new(class, 2)];
        let converted = convert_ifs(code, &mut Remarks::default());
        assert_eq!(converted.blocks.len(), 1);
        let copy = &converted.insts[0].inst;
        assert!(copy.definitions().eq([VReg::new(class, 2)]), "{copy}");
        assert!(copy.uses().eq([VReg::new(class, 1)]), "{copy}");
    }
}

#[test]
fn what_both_sides_compute_is_computed_once() {
    let [a, b, t, u] = [1, 2, 3, 4].map(|n| VReg::new(RegisterClass::Gpr, n));
    let guard = Guard {
        reg: VReg::new(RegisterClass::Predicate, 0),
        negated: false,
    };
    let branch = Terminator::Branch {
        guard,
        taken: block(1),
        fallthrough: block(2),
        divergent: true,
    };
    let mut code = kernel(vec![
        (vec![], branch),
        (vec![add(t, a, b), store([t, t], t)], jump(3)),
        (vec![add(u, a, b), store([u, u], a)], jump(3)),
        (vec![], Terminator::Exit),
    ]);
    code.vreg_count = 5;
    let converted = convert_ifs(code, &mut Remarks::default());
    let adds = |e: &&Entry<VReg>| e.inst.optype() == Optype::IADD;
    assert_eq!(
        converted.insts.iter().filter(adds).count(),
        1,
        "{converted}"
    );
    assert_eq!(converted.insts.len(), 3, "{converted}");
}
