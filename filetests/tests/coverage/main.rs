//! Every operation that is supported stands in a run file, and every other one is refused by name.
//!
//! The operations come from Cranelift's own constraints ([`operations`]), what is supported from the table in
//! [`unsupported`]. For each of them a function is written that holds it ([`probe`]) and compiled: what Cranelift's
//! verifier refuses is no operation; what the table lists must be refused as `unsupported: OPCODE.TYPE` with its line;
//! all the rest must compile, and must be in a function that a run line reaches. Types beyond those of the target
//! (f128, more than 128 bits) need not be covered, but must not break anything either. What narrow results have above
//! them in their registers is compared with what lowering knows of it ([`extension`]).

mod case;
mod extension;
mod probe;
mod unsupported;

use case::{Case, is_beyond};
use cranelift_codegen::ir::{Function, Opcode};
use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::error::{Errors, Problem};
use cranelift_thisgpu::settings::Options;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use thisgpu_filetests::{find_files, operations, panics};

/// The operations of the run files.
struct Covered {
    cases: HashSet<Case>,
    run_lines: usize,
}

impl Covered {
    fn by_run_files() -> Self {
        let mut covered = Self {
            cases: HashSet::new(),
            run_lines: 0,
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("run");
        for path in find_files(&root).expect("the folder can be read") {
            let text = std::fs::read_to_string(&path).expect("the file can be read");
            covered.add(&path.display().to_string(), &text);
        }
        covered
    }

    /// Adds the functions of a file that its run lines reach.
    fn add(&mut self, name: &str, text: &str) {
        let file = SourceFile::parse(name, text).unwrap_or_else(|errors| panic!("{errors}"));
        let functions: BTreeMap<String, &Function> = file
            .functions
            .iter()
            .map(|function| (function.name(), &function.func))
            .collect();
        let mut reached: Vec<String> = Vec::new();
        for function in &file.functions {
            let lines = function
                .run_lines(&file.name)
                .unwrap_or_else(|errors| panic!("{errors}"))
                .len();
            self.run_lines += lines;
            if lines > 0 {
                reached.push(function.name());
            }
        }
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some(name) = reached.pop() {
            let Some(func) = functions.get(&name).filter(|_| seen.insert(name)) else {
                continue;
            };
            for inst in func
                .layout
                .blocks()
                .flat_map(|block| func.layout.block_insts(block))
            {
                self.cases.insert(Case::of_inst(func, inst));
            }
            let callees = func.dfg.ext_funcs.values();
            reached.extend(callees.map(|callee| {
                callee
                    .name
                    .display(Some(&func.params))
                    .to_string()
                    .trim_start_matches('%')
                    .to_owned()
            }));
        }
    }
}

/// What becomes of a case.
#[derive(Debug)]
enum Outcome {
    /// Cranelift's verifier does not let it pass.
    Refused,
    Compiled,
    /// `unsupported`, as it should be.
    Unsupported,
    /// Anything else, with the text of the function.
    Broken(String),
}

fn compile(case: &Case, compiler: &mut Compiler) -> Outcome {
    let text = probe::function(case, "probe");
    let result = panics::catch(|| compiler.compile_clif(&text)).unwrap_or_else(|message| {
        *compiler = Compiler::new(Options::default());
        let problem = Problem::Internal(message);
        Err(cranelift_thisgpu::error::Error::new(problem, Default::default()).into())
    });
    match result {
        Ok(_) => Outcome::Compiled,
        Err(errors) if all(&errors, |problem| matches!(problem, Problem::Verifier(_))) => {
            Outcome::Refused
        }
        // There is no text for constants so wide.
        Err(errors)
            if case.types().any(is_beyond)
                && all(&errors, |problem| matches!(problem, Problem::Syntax(_))) =>
        {
            Outcome::Refused
        }
        Err(errors) if is_named(case, &errors) => Outcome::Unsupported,
        Err(errors) => Outcome::Broken(format!("{case}: {errors}\n{text}")),
    }
}

fn all(errors: &Errors, is: impl Fn(&Problem) -> bool) -> bool {
    errors.as_slice().iter().all(|error| is(&error.problem))
}

/// Whether the errors say that this operation is unsupported, and on which line.
fn is_named(case: &Case, errors: &Errors) -> bool {
    let expected = match case.ty.is_invalid() {
        true => case.opcode.to_string(),
        false => format!("{}.{}", case.opcode, case.ty),
    };
    // Dynamic vectors are refused as such.
    let is_this = |item: &str| item == expected || item == "dynamic vectors";
    errors.only_unsupported()
        && errors.as_slice().iter().any(|error| match &error.problem {
            Problem::Unsupported { item, .. } => {
                is_this(item) && (error.place.line.is_some() || item == "dynamic vectors")
            }
            _ => false,
        })
}

/// What is wrong with a case, if anything.
fn complaint(case: &Case, outcome: &Outcome, covered: &Covered) -> Option<String> {
    let beyond = case.types().any(is_beyond);
    match (outcome, unsupported::reason(case)) {
        (Outcome::Refused, _) => None,
        (Outcome::Broken(text), _) => Some(text.clone()),
        (Outcome::Compiled | Outcome::Unsupported, _) if beyond => None,
        (Outcome::Compiled, Some(reason)) => {
            Some(format!("{case} compiles, though the table says: {reason}"))
        }
        (Outcome::Unsupported, Some(_)) => None,
        (Outcome::Unsupported, None) => Some(format!(
            "{case} is unsupported, but the table does not say so"
        )),
        (Outcome::Compiled, None) if covered.cases.contains(case) => None,
        (Outcome::Compiled, None) => Some(format!(
            "{case} is in no run file; begin with\n{}",
            probe::function(case, "covered")
        )),
    }
}

#[test]
fn every_operation_is_run_or_refused() {
    let covered = Covered::by_run_files();
    let mut compiler = Compiler::new(Options::default());
    let mut complaints = Vec::new();
    let (mut run, mut refused) = (0, 0);
    let mut with_cases: HashSet<Opcode> = HashSet::new();
    for case in Case::all() {
        let outcome = compile(&case, &mut compiler);
        if !matches!(outcome, Outcome::Refused) {
            with_cases.insert(case.opcode);
        }
        run += usize::from(matches!(outcome, Outcome::Compiled) && covered.cases.contains(&case));
        refused += usize::from(matches!(outcome, Outcome::Unsupported));
        complaints.extend(complaint(&case, &outcome, &covered));
    }
    for &opcode in Opcode::all() {
        let excused = operations::WITHOUT_TYPES
            .iter()
            .any(|(known, _)| *known == opcode);
        if with_cases.contains(&opcode) == excused {
            complaints.push(format!(
                "{opcode}: {} cases",
                if excused { "has" } else { "has no" }
            ));
        }
    }
    println!(
        "{run} operations in {} run lines, {refused} refused by name, {} opcodes",
        covered.run_lines,
        with_cases.len()
    );
    let count = complaints.len();
    assert!(count == 0, "{count} complaints:\n{}", complaints.join("\n"));
}

/// The check notices what is missing: an operation whose function loses its run lines, and a table that is wrong.
#[test]
fn gaps_are_found() {
    let text = "test run\ntarget thisgpu\n
function %f(i32, i32) -> i32 {
    fn0 = %g(i32) -> i32
block0(v0: i32, v1: i32):
    v2 = imul v0, v1
    v3 = call fn0(v2)
    return v3
}
; run: %f(2, 3) == -7

function %g(i32) -> i32 {
block0(v0: i32):
    v1 = bnot v0
    return v1
}

function %h(i32) -> i32 {
block0(v0: i32):
    v1 = ineg v0
    return v1
}
";
    let mut covered = Covered {
        cases: HashSet::new(),
        run_lines: 0,
    };
    covered.add("gaps.clif", text);
    let find = |name: &str| {
        Case::all()
            .into_iter()
            .find(|case| case.to_string() == name)
            .unwrap_or_else(|| panic!("no case {name}"))
    };
    let complain = |name: &str, outcome| complaint(&find(name), &outcome, &covered);
    assert_eq!(complain("imul.i32", Outcome::Compiled), None);
    assert_eq!(complain("bnot.i32", Outcome::Compiled), None);
    // No line runs %h, and none has this type.
    assert!(complain("ineg.i32", Outcome::Compiled).is_some());
    assert!(complain("imul.i64", Outcome::Compiled).is_some());
    // The table against what happens.
    assert!(complain("imul.i32", Outcome::Unsupported).is_some());
    assert!(complain("debugtrap", Outcome::Compiled).is_some());
    assert_eq!(complain("debugtrap", Outcome::Unsupported), None);
    // A message without the operation's name is not good enough.
    let mut compiler = Compiler::new(Options::default());
    let debugtrap = find("debugtrap");
    assert!(matches!(
        compile(&debugtrap, &mut compiler),
        Outcome::Unsupported
    ));
    let text = probe::function(&debugtrap, "probe");
    let Err(errors) = compiler.compile_clif(&text) else {
        panic!("it is unsupported");
    };
    assert!(!is_named(&find("stack_switch.i64"), &errors));
}
