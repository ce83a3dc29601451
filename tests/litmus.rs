//! Litmus tests: small programs of few threads, run on a simulator that performs accesses out of order, with many
//! seeds. None may leave what the memory model forbids (`docs/memory.md`), and what it allows has to be seen.
//!
//! `THISGPU_LITMUS=RUNS` says how often each test runs, `RUNS,SEED` with which seeds; `--nocapture` shows what was
//! seen.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;
#[path = "litmus/model.rs"]
mod model;
#[path = "litmus/run.rs"]
mod run;
#[path = "litmus/shapes.rs"]
mod shapes;
#[path = "litmus/text.rs"]
mod text;
#[path = "litmus/waiting.rs"]
mod waiting;

use run::{Effort, Seen};
use shapes::Program;
use std::collections::{BTreeMap, BTreeSet};

/// A test, compiled and run.
struct Tried {
    program: Program,
    allowed: BTreeSet<Vec<u32>>,
    seen: Seen,
    /// MEMBARs of its code.
    fences: usize,
    /// What is seen without them.
    unfenced: Seen,
}

impl Tried {
    fn new(program: Program, effort: Effort) -> Tried {
        let code = common::compile(&text::kernel(&program));
        let object = code.as_ref();
        let (mutant, fences) = run::without_fences(object);
        let unfenced = match fences {
            0 => Seen::new(),
            _ => run::outcomes(&program, &mutant, effort),
        };
        Tried {
            allowed: model::allowed(&program),
            seen: run::outcomes(&program, object, effort),
            fences,
            unfenced,
            program,
        }
    }

    /// How often something was seen that is forbidden.
    fn forbidden(&self, seen: &Seen) -> u64 {
        let forbidden = seen.iter().filter(|(o, _)| !self.allowed.contains(*o));
        forbidden.map(|(_, count)| count).sum()
    }

    /// How often the outcome was seen that only weak memory has.
    fn weak(&self) -> u64 {
        let weak = self.seen.iter().filter(|(o, _)| self.program.is_weak(o));
        weak.map(|(_, count)| count).sum()
    }

    /// Whether less order leaves more.
    fn needs_order(&self) -> bool {
        let loose = model::allowed(&self.program.without_order());
        !loose.is_subset(&self.allowed)
    }

    /// Whether model and machine allow that outcome.
    fn may_be_weak(&self) -> bool {
        let is_weak = |outcome: &Vec<u32>| self.program.is_weak(outcome);
        !self.program.is_stronger_here() && self.allowed.iter().any(is_weak)
    }
}

/// How many tests may leave something, and how many did.
#[derive(Debug, Default)]
struct Counted {
    may: usize,
    did: usize,
}

impl Counted {
    fn add(&mut self, may: bool, did: bool) {
        self.may += usize::from(may);
        self.did += usize::from(did);
    }
}

/// Runs all tests of a shape.
fn check(shape: &str) {
    let effort = Effort::new();
    let programs = shapes::all().into_iter();
    let of_shape = |p: &Program| p.name.split('.').next() == Some(shape);
    let mut wrong = Vec::new();
    let (mut weak, mut unfenced) = (BTreeMap::new(), BTreeMap::new());
    for program in programs.filter(of_shape) {
        let tried = Tried::new(program, effort);
        let forbidden = tried.forbidden(&tried.seen);
        let found = tried.forbidden(&tried.unfenced);
        let needs_fences = tried.fences > 0 && tried.needs_order();
        // Some outcomes are seen once in thousands of runs: with few it is enough that a test of the shape shows them.
        let large = effort.is_large();
        let key = |alone: bool, name: &str| String::from(if alone { name } else { "any" });
        let counted: &mut Counted = weak.entry(key(large, &tried.program.name)).or_default();
        counted.add(tried.may_be_weak(), tried.weak() > 0);
        // MEMBARs that the text does not ask for may be needed in other programs only.
        let own = key(large && tried.program.has_fences(), tried.program.style());
        let counted: &mut Counted = unfenced.entry(own).or_default();
        counted.add(needs_fences, found > 0);
        println!(
            "{} forbidden {forbidden} weak {} of {} MEMBARs {} found {found} of {} runs {}",
            tried.program,
            tried.weak(),
            u8::from(tried.may_be_weak()),
            tried.fences,
            u8::from(needs_fences),
            effort.runs,
        );
        let bad = (tried.seen.iter()).filter(|(o, _)| !tried.allowed.contains(*o));
        let bad: Vec<_> = bad.collect();
        if !bad.is_empty() {
            wrong.push(format!("{}: {bad:?}", tried.program));
        }
    }
    let seed = effort.seed;
    assert!(!weak.is_empty(), "no test of the shape {shape}");
    assert!(wrong.is_empty(), "first seed {seed}\n{}", wrong.join("\n"));
    for (what, all) in [("weak", weak), ("without MEMBAR", unfenced)] {
        let unseen = all.iter().filter(|(_, c)| c.may > 0 && c.did == 0);
        let unseen: Vec<_> = unseen.collect();
        assert!(
            unseen.is_empty(),
            "first seed {seed}, never seen {what}: {unseen:?}"
        );
    }
}

macro_rules! shapes {
    ($($name:ident: $shape:literal;)*) => { $(
        #[test]
        fn $name() {
            check($shape);
        }
    )* };
}

shapes! {
    message_passing: "mp";
    store_buffering: "sb";
    load_buffering: "lb";
    s: "s";
    r: "r";
    two_writes_each: "2+2w";
    independent_reads: "iriw";
    write_to_read: "wrc";
    isa2: "isa2";
    read_read: "corr";
    write_write: "coww";
    read_write: "corw1";
    read_write_elsewhere: "corw2";
    write_read: "cowr";
    published_by_a_barrier: "barrier";
}

/// Runs all tests of a kind that wait.
fn check_waiting(kind: &str) {
    let effort = Effort::new();
    let (mut bad, mut count) = (Vec::new(), 0);
    let tests = waiting::all().into_iter();
    for test in tests.filter(|test| test.name.split('.').next() == Some(kind)) {
        let code = common::compile(&test.kernel);
        let object = code.as_ref();
        let (mutant, fences) = run::without_fences(object);
        let (right, wrong) = run::waited(&test, object, effort);
        let found = match fences {
            0 => 0,
            _ => run::waited(&test, &mutant, effort).1,
        };
        count += 1;
        println!(
            "{test} forbidden {wrong} of {} fences {fences} found {found}",
            right + wrong
        );
        if wrong > 0 {
            bad.push(format!("{test}: {wrong}"));
        }
    }
    assert!(count > 0, "no test of the kind {kind}");
    let seed = effort.seed;
    assert!(bad.is_empty(), "first seed {seed}\n{}", bad.join("\n"));
}

macro_rules! waiting {
    ($($name:ident: $kind:literal;)*) => { $(
        #[test]
        fn $name() {
            check_waiting($kind);
        }
    )* };
}

waiting! {
    locks: "lock";
    messages: "message";
    last_one_sums_up: "last";
}

/// The axioms give the verdicts that the literature gives.
#[test]
fn the_model_knows_the_classics() {
    let programs = shapes::all();
    for (name, may_be_weak) in [
        ("mp.plain.block.gg", true),
        ("mp.relaxed.grid.gg", true),
        ("mp.release.grid.gg", false),
        ("mp.strong.block.gs", false),
        ("mp.modify.block.sg", false),
        ("mp.swap.warp.gs", false),
        ("sb.plain.grid.gg", true),
        ("sb.release.grid.gg", true),
        ("sb.strong.grid.gg", false),
        ("sb.fences.block.sg", false),
        ("sb.block_fences.block.ss", false),
        ("lb.relaxed.block.gg", true),
        ("lb.release.block.gg", false),
        ("s.plain.grid.gg", true),
        ("s.release.grid.gg", false),
        ("r.release.grid.gg", true),
        ("r.strong.grid.gg", false),
        ("2+2w.relaxed.grid.gg", true),
        ("2+2w.release.grid.gg", false),
        ("iriw.relaxed.grid.gg", true),
        ("iriw.strong.grid.gg", false),
        ("iriw.fences.grid.gg", false),
        ("iriw.block_fences.block.gg", false),
        ("wrc.relaxed.pairs.gg", true),
        ("wrc.release.pairs.gg", false),
        ("wrc.block_fences.pairs.gg", true),
        ("wrc.block_fences.block.gg", false),
        ("isa2.release.grid.ggg", false),
        ("isa2.modify.block.gsg", false),
    ] {
        let program = programs.iter().find(|p| p.name == name);
        let program = program.unwrap_or_else(|| panic!("no test {name}"));
        let allowed = model::allowed(program);
        assert_eq!(
            allowed.iter().any(|o| program.is_weak(o)),
            may_be_weak,
            "{name}"
        );
    }
    // Coherence, whatever the accesses: values go forward.
    let coherent = programs.iter().filter(|p| p.name.starts_with("corr."));
    for program in coherent {
        let mut allowed = model::allowed(program).into_iter();
        assert!(allowed.all(|o| o[..2] != [1, 0]), "{program}");
    }
}

/// A run is its seed's.
#[test]
fn the_same_seed_gives_the_same_run() {
    let programs = shapes::all();
    let program = programs.iter().find(|p| p.name == "sb.plain.grid.gg");
    let program = program.unwrap_or_else(|| panic!("no such test"));
    let code = common::compile(&text::kernel(program));
    let run = |seed| run::outcomes(program, code.as_ref(), Effort { runs: 1, seed });
    let all: Vec<Seen> = (0..20).map(run).collect();
    assert_eq!(all, (0..20).map(run).collect::<Vec<_>>());
    let different: BTreeSet<&Seen> = all.iter().collect();
    assert!(different.len() > 5, "{different:?}");
}
