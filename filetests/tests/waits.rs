//! No function waits without need: the verifier can take no scoreboard and no bit of a wait mask away from the code of
//! the test files.
//!
//! Prints how many there are. With `THISGPU_HEAVY=1` all files, otherwise the kernels and every sixth of the others.

use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::emit::Code;
use cranelift_thisgpu::unstable::hazards::redundancy::{Redundancy, RedundancyKind, redundancies};
use cranelift_thisgpu::unstable::isa::decode;
use std::path::{Path, PathBuf};
use thisgpu_filetests::find_files;

/// Control bits of some functions, and how many of them are redundant.
#[derive(Debug, Default)]
struct Counts {
    functions: usize,
    instructions: usize,
    waits: [usize; 2],
    reads: [usize; 2],
    writes: [usize; 2],
    /// Of loads that nobody reads, where the function is left: see [`is_unread_load`].
    unread: usize,
    examples: Vec<String>,
}

/// Whether it is the signal of a load that nobody reads. Something waits for it where the function is left, because a
/// release in another function may come behind it; no check of one function can see whether that is needed.
fn is_unread_load(redundancy: &Redundancy) -> bool {
    let text = &redundancy.instruction;
    redundancy.kind == RedundancyKind::Write && text.starts_with("LD") && text.contains(" RZ,")
}

/// Whether it is a wait where the function is left.
fn leaves(redundancy: &Redundancy) -> bool {
    let text = &redundancy.instruction;
    matches!(redundancy.kind, RedundancyKind::Wait(_))
        && (text.starts_with("RET") || text.starts_with("CALL"))
}

impl Counts {
    fn add(&mut self, file: &Path, code: &Code) {
        self.functions += 1;
        self.instructions += code.words.len();
        for word in &code.words {
            let (_, control) = decode(*word).expect("an instruction");
            self.waits[0] += control.wait().count_ones() as usize;
            self.reads[0] += usize::from(control.read.is_some());
            self.writes[0] += usize::from(control.write.is_some());
        }
        let found = redundancies(code);
        let has_unread = found.iter().any(is_unread_load);
        for redundancy in found {
            if is_unread_load(&redundancy) || has_unread && leaves(&redundancy) {
                self.unread += 1;
                continue;
            }
            match redundancy.kind {
                RedundancyKind::Wait(_) => self.waits[1] += 1,
                RedundancyKind::Read => self.reads[1] += 1,
                RedundancyKind::Write => self.writes[1] += 1,
            }
            let place = format!("{}: %{}", file.display(), code.name);
            self.examples.push(format!("{place}: {redundancy}"));
        }
    }

    fn print(&self, what: &str) {
        let Counts {
            functions,
            instructions,
            waits,
            reads,
            writes,
            unread,
            ..
        } = self;
        println!(
            "{what}: {functions} functions, {instructions} instructions; [all, redundant]: waits {waits:?}, read \
             scoreboards {reads:?}, write scoreboards {writes:?}; {unread} more of loads that nobody reads"
        );
    }
}

/// The functions of a file that can be compiled.
fn functions(file: &Path) -> Unit {
    let mut unit = Unit::new();
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let Ok(source) = SourceFile::parse(&file.to_string_lossy(), &text) else {
        return unit;
    };
    let mut compiler = Compiler::new(Options::default());
    for function in &source.functions {
        let name = function.name();
        // Files of errors have functions that cannot be compiled.
        let _ = compiler.compile_function(&FunctionInput::of_source(function, &name), &mut unit);
    }
    unit
}

fn files(folder: &str) -> Vec<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    find_files(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn count(what: &str, files: &[PathBuf]) -> Counts {
    let mut counts = Counts::default();
    for file in files {
        for code in functions(file).functions() {
            counts.add(file, code);
        }
    }
    counts.print(what);
    counts
}

#[test]
fn no_wait_of_the_kernels_is_redundant() {
    let counts = count("kernels", &files("kernels"));
    assert!(counts.functions >= 9);
    assert_eq!(counts.examples, [""; 0]);
}

#[test]
fn no_wait_of_the_other_files_is_redundant() {
    let step = match std::env::var("THISGPU_HEAVY") {
        Ok(value) if value == "1" => 1,
        _ => 6,
    };
    let all = files(".");
    let chosen: Vec<PathBuf> = all
        .into_iter()
        .filter(|f| !f.components().any(|c| c.as_os_str() == "kernels"))
        .step_by(step)
        .collect();
    let counts = count(&format!("{} other files", chosen.len()), &chosen);
    assert!(counts.functions > 100);
    assert_eq!(counts.examples, [""; 0]);
}
