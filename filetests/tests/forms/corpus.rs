//! Every function of the repository compiled, and which forms its words have.

use cranelift_codegen::ir::{InstructionData, Opcode};
use cranelift_thisgpu::compile::{Compiler, FunctionInput, Unit};
use cranelift_thisgpu::compile::{SourceFile, SourceFunction};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::isa::decode;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thisgpu_filetests::file::settings_of;
use thisgpu_filetests::find_files;

/// Where a form was seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, relative to the repository.
    pub file: String,
    /// The function's position in the file.
    pub index: usize,
    /// The function.
    pub function: String,
    /// Whether the file is one of `filetests/lower` that shows the function's words.
    pub golden: bool,
    /// How many words the function has.
    pub words: usize,
    /// The operations of the lines that its words with this form came from: CLIF opcodes, or `%gpu_NAME`.
    pub operations: BTreeSet<String>,
}

/// The places of each form, by its name.
pub type Seen = BTreeMap<&'static str, Vec<Place>>;

/// Compiles the `.clif` files and the texts in the examples, each file with its own settings, and collects the forms of
/// all words.
///
/// Functions that do not compile (the files of errors have some) show nothing.
pub fn forms_of_repository(root: &Path) -> Seen {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["filetests", "src", "tests"] {
        files.extend(find_files(&root.join(folder)).expect("the folder can be read"));
    }
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        texts.push((relative(&path, root), text));
    }
    for entry in std::fs::read_dir(root.join("examples")).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        // The literals with functions.
        for literal in text.split('"').filter(|part| part.contains("\nfunction %")) {
            texts.push((relative(&path, root), literal.to_owned()));
        }
    }
    let found: Vec<Vec<(&'static str, Place)>> = texts
        .par_iter()
        .map(|(name, text)| forms_of_text(name, text))
        .collect();
    let mut seen = Seen::new();
    for (form, place) in found.into_iter().flatten() {
        seen.entry(form).or_default().push(place);
    }
    for places in seen.values_mut() {
        places.sort();
    }
    seen
}

fn relative(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

/// The forms of each function of a text.
pub fn forms_of_text(name: &str, text: &str) -> Vec<(&'static str, Place)> {
    let mut found = Vec::new();
    let Ok(file) = SourceFile::parse(name, text) else {
        return found;
    };
    let options = settings_of(&file, &[], true).unwrap_or_default();
    let golden = name.starts_with("filetests/lower/") && shows_words(&file);
    for (index, function) in file.functions.iter().enumerate() {
        let words = words_of_function(&file, function, &options);
        let mut forms: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        for (form, operation) in &words {
            forms.entry(form).or_default().extend(operation.clone());
        }
        for (form, operations) in forms {
            let place = Place {
                file: name.to_owned(),
                index,
                function: function.name(),
                golden,
                words: words.len(),
                operations,
            };
            found.push((form, place));
        }
    }
    found
}

/// Whether the words of the file's functions stand in it.
fn shows_words(file: &SourceFile) -> bool {
    let mut tests = file.header.tests.iter();
    tests.any(|line| line.words == ["compile", "precise-output"])
}

/// The form of each word of a function and the operation of its line; nothing when it does not compile.
fn words_of_function(
    file: &SourceFile,
    function: &SourceFunction,
    options: &Options,
) -> Vec<(&'static str, Option<String>)> {
    let mut unit = Unit::new();
    unit.announce_file(file);
    let name = function.name();
    let input = FunctionInput::of_source(function, &name);
    if Compiler::new(options.clone())
        .compile_function(&input, &mut unit)
        .is_err()
    {
        return Vec::new();
    }
    let operations = operations_by_line(function);
    let mut words = Vec::new();
    for code in unit.functions().filter(|code| code.name == name) {
        for (index, &word) in code.words.iter().enumerate() {
            let (inst, _) = decode(word).expect("an emitted word is an instruction");
            let offset = 16 * index as u32;
            let before = code.lines.partition_point(|(begin, _)| *begin <= offset);
            let line = before.checked_sub(1).map(|at| code.lines[at].1.0);
            let operation = line.and_then(|line| operations.get(&line).cloned());
            words.push((inst.info().name, operation));
        }
    }
    words
}

/// What stands in each line: the opcode, or the intrinsic that is called.
fn operations_by_line(function: &SourceFunction) -> BTreeMap<u32, String> {
    let func = &function.func;
    let insts = func
        .layout
        .blocks()
        .flat_map(|b| func.layout.block_insts(b));
    let name = |inst| {
        let data = &func.dfg.insts[inst];
        match data {
            InstructionData::Call {
                opcode: Opcode::Call,
                func_ref,
                ..
            } => {
                let callee = &func.dfg.ext_funcs[*func_ref].name;
                let callee = callee.display(Some(&func.params)).to_string();
                if callee.starts_with("%gpu_") {
                    callee
                } else {
                    "call".to_owned()
                }
            }
            _ => data.opcode().to_string(),
        }
    };
    insts
        .map(|inst| (function.inst_lines[inst], name(inst)))
        .collect()
}
