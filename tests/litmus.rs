//! Litmus tests: small programs of few threads, run on a simulator that performs accesses out of order, with many
//! seeds. None may leave what the memory model forbids (`docs/memory.md`), and what it allows has to be seen.
//!
//! `THISGPU_LITMUS=RUNS` says how often each test runs, `RUNS,SEED` with which seeds; `--nocapture` shows what was
//! seen.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;
#[path = "litmus/lane.rs"]
mod lane;
#[path = "litmus/machine.rs"]
mod machine;
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
#[path = "litmus/words.rs"]
mod words;

use cranelift_thisgpu::object::Object;
use run::{Effort, Seen};
use shapes::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use words::Words;

/// Code of a test that was run.
struct Run {
    /// MEMBARs in it.
    fences: usize,
    /// What the machine may leave, and what was seen.
    may: BTreeSet<Vec<u32>>,
    seen: Seen,
}

impl Run {
    fn new(program: &Program, object: &Object, fences: usize, effort: Effort) -> Run {
        let words = Words::new(program, object);
        Run {
            fences,
            may: machine::outcomes(&words, program.locations()),
            seen: run::outcomes(program, object, effort),
        }
    }

    /// How often something was seen that is so.
    fn count(&self, is: impl Fn(&Vec<u32>) -> bool) -> u64 {
        let such = self.seen.iter().filter(|(outcome, _)| is(outcome));
        such.map(|(_, count)| count).sum()
    }

    /// How many of the outcomes that the machine may leave were seen.
    fn reached(&self) -> usize {
        let may = self.may.iter();
        may.filter(|outcome| self.seen.contains_key(*outcome))
            .count()
    }
}

/// A test with the code that the compiler makes, and with that code without its MEMBARs, if it has any.
struct Tried {
    program: Program,
    allowed: BTreeSet<Vec<u32>>,
    code: Run,
    unfenced: Option<Run>,
}

impl Tried {
    fn new(program: Program, effort: Effort) -> Tried {
        let code = common::compile(&text::kernel(&program));
        let object = code.as_ref();
        let (mutant, fences) = run::without_fences(object);
        Tried {
            allowed: model::allowed(&program),
            code: Run::new(&program, object, fences, effort),
            unfenced: (fences > 0).then(|| Run::new(&program, &mutant, 0, effort)),
            program,
        }
    }

    fn is_forbidden(&self, outcome: &Vec<u32>) -> bool {
        !self.allowed.contains(outcome)
    }

    /// Whether the code may leave the outcome that only weak memory has.
    fn may_be_weak(&self) -> bool {
        self.code.may.iter().any(|o| self.program.is_weak(o))
    }

    /// Whether the machine may leave what is forbidden without the MEMBARs.
    fn needs_fences(&self) -> bool {
        let mut runs = self.unfenced.iter();
        runs.any(|run| run.may.iter().any(|o| self.is_forbidden(o)))
    }

    /// How often that was seen.
    fn found(&self) -> u64 {
        let runs = self.unfenced.iter();
        runs.map(|run| run.count(|o| self.is_forbidden(o))).sum()
    }

    /// What is wrong, however often it was run.
    fn mistakes(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut note = |what: &str, outcomes: Vec<&Vec<u32>>| {
            if !outcomes.is_empty() {
                all.push(format!("{}: {what}: {outcomes:?}", self.program));
            }
        };
        let code = &self.code;
        let forbidden = |o: &&Vec<u32>| self.is_forbidden(o);
        note("seen", code.seen.keys().filter(forbidden).collect());
        note("may come", code.may.iter().filter(forbidden).collect());
        for (what, run) in [
            ("the code", Some(code)),
            ("without MEMBAR", self.unfenced.as_ref()),
        ] {
            let Some(run) = run else { continue };
            let strange = run.seen.keys().filter(|o| !run.may.contains(*o));
            note(&format!("seen, {what}, by no rule"), strange.collect());
        }
        // The code may be stronger than the model only where the machine is.
        let weak = self.allowed.iter().any(|o| self.program.is_weak(o));
        if self.may_be_weak() != (weak && !self.program.is_stronger_here()) {
            note("too strong", Vec::from_iter(self.code.may.iter()));
        }
        all
    }
}

impl Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let weak = self.code.count(|o| self.program.is_weak(o));
        write!(
            f,
            "{} forbidden {}",
            self.program,
            self.code.count(|o| self.is_forbidden(o))
        )?;
        write!(f, " weak {weak} of {}", u8::from(self.may_be_weak()))?;
        write!(
            f,
            " outcomes {} of {}",
            self.code.reached(),
            self.code.may.len()
        )?;
        write!(f, " MEMBARs {}", self.code.fences)?;
        if let Some(run) = &self.unfenced {
            write!(
                f,
                " without: found {} of {}",
                self.found(),
                u8::from(self.needs_fences())
            )?;
            write!(f, " outcomes {} of {}", run.reached(), run.may.len())?;
        }
        Ok(())
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
        println!("{tried} runs {}", effort.runs);
        wrong.extend(tried.mistakes());
        // Some outcomes are seen once in thousands of runs: with few it is enough that a test of the shape shows them.
        let key = match effort.is_large() {
            true => tried.program.name.clone(),
            false => String::from("any"),
        };
        let counted: &mut Counted = weak.entry(key.clone()).or_default();
        let seen = tried.code.count(|o| tried.program.is_weak(o));
        counted.add(tried.may_be_weak(), seen > 0);
        let counted: &mut Counted = unfenced.entry(key).or_default();
        counted.add(tried.needs_fences(), tried.found() > 0);
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
