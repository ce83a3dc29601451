//! Reports of finished code say which registers are alive: checked against another derivation, from the words alone.
//!
//! From every read of a register a search goes backwards over the words until something surely writes it, or what may
//! without saying so, as calls do. All instructions that it comes past must have the register alive behind them. Where
//! no word does more than it says, nothing else may be alive.

use cranelift_thisgpu::compile::{Compiler, FunctionInput, Pass, SourceFile, Unit};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::emit::Code;
use cranelift_thisgpu::unstable::isa::encode::WORD_BYTES;
use cranelift_thisgpu::unstable::isa::table::{Effects, FieldType};
use cranelift_thisgpu::unstable::isa::{PInst, decode};
use cranelift_thisgpu::unstable::report::CodeReport;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use thisgpu_filetests::find_files;

/// An instruction of the words.
struct Step {
    inst: PInst,
    /// Those that may come next in the function.
    next: Vec<usize>,
    /// Control may leave for code that reads more than the word says.
    leaves: bool,
}

impl Step {
    fn of(code: &Code, index: usize) -> Step {
        let (inst, _) = decode(code.words[index]).expect("an instruction");
        let at = (index * WORD_BYTES) as u32;
        let effects = inst.optype().info().effects;
        let relocated = code.relocations.iter().any(|r| r.offset == at);
        let mut fields = inst.info().fields.iter();
        let label = fields.find(|field| matches!(field.ty, FieldType::Label));
        let mut next = Vec::new();
        let mut leaves = effects.intersects(Effects::CALL.union(Effects::RETURN));
        if effects.contains(Effects::BRANCH) {
            let table = code.tables.iter().find(|table| table.0 == at);
            match (table, label) {
                (Some((_, targets)), _) => {
                    next.extend(targets.iter().map(|&target| target as usize / WORD_BYTES));
                }
                (None, Some(label)) if !relocated => {
                    let distance = label.get(inst.word()) as u32 as i32;
                    let target = index as i64 + 1 + i64::from(distance) / WORD_BYTES as i64;
                    next.push(usize::try_from(target).expect("in the function"));
                }
                _ => leaves = true,
            }
        }
        let ends = Effects::BRANCH
            .union(Effects::RETURN)
            .union(Effects::EXIT)
            .union(Effects::TRAP);
        if !effects.intersects(ends) || !inst.is_unguarded() {
            next.push(index + 1);
        }
        next.retain(|next| *next < code.words.len());
        Step { inst, next, leaves }
    }

    /// Whether it may write registers that its word does not name: a call, or what goes over all registers of a file.
    fn may_write_more(&self) -> bool {
        let unnamed = Effects::CALL
            .union(Effects::PREDICATES)
            .union(Effects::ANY_GPR);
        self.inst.optype().info().effects.intersects(unnamed)
    }
}

/// By instruction the registers that are alive behind it.
fn alive(steps: &[Step]) -> Vec<BTreeSet<String>> {
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        step.next.iter().for_each(|&next| before[next].push(index));
    }
    let mut alive = vec![BTreeSet::new(); steps.len()];
    for (index, step) in steps.iter().enumerate() {
        for register in step.inst.uses() {
            let name = register.to_string();
            let mut work = before[index].clone();
            while let Some(at) = work.pop() {
                if !alive[at].insert(name.clone()) {
                    continue;
                }
                let step = &steps[at];
                let writes = step.inst.definitions().any(|d| d == register);
                let surely = writes && step.inst.is_unguarded();
                if !surely && !step.may_write_more() {
                    work.extend(&before[at]);
                }
            }
        }
    }
    alive
}

/// The reports of the functions of a file that can be compiled, with their code.
fn reported(file: &Path, settings: &[&str]) -> Vec<(Code, CodeReport)> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let Ok(source) = SourceFile::parse(&file.to_string_lossy(), &text) else {
        return Vec::new();
    };
    let mut options = Options::default();
    for setting in settings {
        options.set(setting).expect("a setting");
    }
    let mut compiler = Compiler::new(options);
    compiler.report_code(true);
    let reports: Arc<Mutex<BTreeMap<String, CodeReport>>> = Arc::default();
    let sink = Arc::clone(&reports);
    compiler.dump_after(
        &[Pass::Control],
        Box::new(move |dump| {
            let report = dump.report.expect("a report").clone();
            (sink.lock().expect("not poisoned")).insert(dump.function.to_owned(), report);
        }),
    );
    let mut unit = Unit::new();
    for function in &source.functions {
        let name = function.name();
        // Files of errors have functions that cannot be compiled.
        let _ = compiler.compile_function(&FunctionInput::of_source(function, &name), &mut unit);
    }
    let mut reports = reports.lock().expect("not poisoned");
    let codes = unit.functions().cloned();
    let both = codes.map(|code| {
        let report = reports.remove(&code.name).expect("a report of each");
        (code, report)
    });
    both.collect()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    find_files(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// How much was compared.
#[derive(Debug, Default)]
struct Compared {
    instructions: usize,
    /// Those of functions where the two must be equal.
    exactly: usize,
}

fn compare(folders: &[&str], settings: &[&str]) -> Compared {
    let mut compared = Compared::default();
    let all = folders.iter().flat_map(|folder| files(folder));
    for file in all {
        for (code, report) in reported(&file, settings) {
            let steps: Vec<Step> = (0..code.words.len())
                .map(|index| Step::of(&code, index))
                .collect();
            // Words behind the code keep instruction fetches inside of it.
            let count = report.instructions.len();
            assert!(
                steps[count..]
                    .iter()
                    .all(|step| step.inst.uses().next().is_none())
            );
            let exact = steps
                .iter()
                .all(|step| !step.leaves && !step.may_write_more());
            for (index, expected) in alive(&steps).into_iter().enumerate().take(count) {
                let instruction = &report.instructions[index];
                let place = || {
                    let at = instruction.offset;
                    format!(
                        "{}: %{}+{at:#x}: {}",
                        file.display(),
                        code.name,
                        instruction.text
                    )
                };
                // The words name no convergence barriers as registers.
                let names = instruction
                    .alive
                    .iter()
                    .filter(|name| !name.starts_with('B'));
                let drawn: BTreeSet<String> = names.cloned().collect();
                let missing: Vec<_> = expected.difference(&drawn).collect();
                assert!(missing.is_empty(), "{}: {missing:?} are alive", place());
                if exact {
                    let more: Vec<_> = drawn.difference(&expected).collect();
                    assert!(more.is_empty(), "{}: {more:?} are not alive", place());
                    compared.exactly += 1;
                }
                compared.instructions += 1;
            }
        }
    }
    compared
}

#[test]
fn registers_are_alive_where_the_words_say_so() {
    let compared = compare(&["kernels", "lower", "converge", "run/control"], &[]);
    println!("{compared:?}");
    assert!(
        compared.instructions > 5000 && compared.exactly > 2000,
        "{compared:?}"
    );
}

#[test]
fn spilled_registers_are_alive_where_the_words_say_so() {
    let compared = compare(&["kernels", "run/loops"], &["regs=24"]);
    println!("{compared:?}");
    assert!(compared.exactly > 1000, "{compared:?}");
}
