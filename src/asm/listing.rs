//! [`Object`] to text that assembles to the same object.

use super::directives::next_parameter;
use super::name::quoted;
use crate::isa::encode::{Illegal, WORD_BYTES};
use crate::isa::literal::sign_extend;
use crate::isa::table::FieldType;
use crate::isa::{Control, Inst, PReg, decode};
use crate::object::{
    DataContents, Linkage, Location, Object, ObjectFunction, ParameterKind, Relocation,
    RelocationKind,
};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use thiserror::Error;

/// A word of an object that is no instruction.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{function}+{offset:#x}: {word:032x}: {reason}")]
pub struct BadWord {
    /// The function.
    pub function: String,
    /// Byte offset in it.
    pub offset: usize,
    /// The word.
    pub word: u128,
    /// Why.
    pub reason: Illegal,
}

/// A function as a listing writes its code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedFunction {
    /// Its words in order.
    pub instructions: Vec<ListedInstruction>,
    /// The label behind the last of them.
    pub end: Option<String>,
}

/// A word of a function as a listing writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedInstruction {
    /// Byte offset in the function.
    pub offset: usize,
    /// The word.
    pub word: u128,
    /// The label in front of it.
    pub label: Option<String>,
    /// The instruction with its control bits, up to ` ;`; or why the word is none.
    pub text: Result<String, Illegal>,
}

/// The code of an object's functions, in their order, as [`listing`] writes it: with labels, and symbols for what
/// linking fills in.
pub fn listed_functions(object: &Object) -> Vec<ListedFunction> {
    let symbols = symbols(object);
    let functions = object.functions.iter();
    functions.map(|f| listed(f, &symbols)).collect()
}

/// All names that an object defines or uses; labels are none of them.
fn symbols(object: &Object) -> BTreeSet<&str> {
    let functions = object.functions.iter().map(|f| f.name.as_str());
    functions
        .chain(object.data.iter().map(|d| d.name.as_str()))
        .chain(object.undefined())
        .collect()
}

/// The text of an object, and the words that it has to leave out because they are no instructions.
///
/// Branches inside of a function go to labels `L1`, `L2`, …; what linking fills in is written with its symbol.
pub fn listing(object: &Object) -> (String, Vec<BadWord>) {
    let mut out = String::new();
    let mut bad = Vec::new();
    let mut file = 0;
    let symbols = symbols(object);
    for name in object.undefined() {
        let _ = writeln!(out, ".extern {}", quoted(name));
    }
    for call in &object.calls {
        place(object, ".inlined", *call, &mut file, &mut out);
    }
    for f in &object.functions {
        if !out.is_empty() {
            out.push('\n');
        }
        function(object, f, &symbols, &mut file, &mut out, &mut bad);
    }
    if !object.constants.is_empty() {
        out.push_str("\n.const\n");
        bytes(&object.constants, &mut out);
    }
    for data in &object.data {
        let readonly = if data.writable { "" } else { " readonly" };
        let local = if data.linkage == Linkage::Local {
            " local"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "\n.data {}{readonly}{local} align {}",
            quoted(&data.name),
            data.align
        );
        match &data.contents {
            DataContents::Zeros(count) => {
                let _ = writeln!(out, "    .zero {count}");
            }
            DataContents::Bytes(contents) => {
                let mut at = 0;
                for r in &data.relocations {
                    let offset = (r.offset as usize).min(contents.len());
                    bytes(&contents[at.min(offset)..offset], &mut out);
                    let _ = writeln!(out, "    .quad {}{}", quoted(&r.symbol), addend(r.addend));
                    at = (offset + 8).min(contents.len());
                }
                bytes(&contents[at..], &mut out);
            }
        }
    }
    (out, bad)
}

fn bytes(bytes: &[u8], out: &mut String) {
    let (words, rest) = bytes.as_chunks::<4>();
    for row in words.chunks(4) {
        let row: Vec<String> = row
            .iter()
            .map(|w| format!("{:#010x}", u32::from_le_bytes(*w)))
            .collect();
        let _ = writeln!(out, "    .word {}", row.join(", "));
    }
    if !rest.is_empty() {
        let row: Vec<String> = rest.iter().map(|b| format!("{b:#04x}")).collect();
        let _ = writeln!(out, "    .byte {}", row.join(", "));
    }
}

fn addend(value: i64) -> String {
    match value {
        0 => String::new(),
        v => format!("{}{:#x}", if v < 0 { '-' } else { '+' }, v.unsigned_abs()),
    }
}

fn header(function: &ObjectFunction, out: &mut String) {
    let local = if function.linkage == Linkage::Local {
        " local"
    } else {
        ""
    };
    let directive = if function.kernel.is_some() {
        ".kernel"
    } else {
        ".func"
    };
    let _ = writeln!(out, "{directive} {}{local}", quoted(&function.name));
    if let Some(kernel) = &function.kernel {
        for (i, p) in kernel.parameters.iter().enumerate() {
            let pointer = if p.kind == ParameterKind::Pointer {
                " ptr"
            } else {
                ""
            };
            let ty = p.ty.map_or(String::new(), |ty| format!(" {ty}"));
            let usual = next_parameter(&kernel.parameters[..i], p.size);
            let at = if u64::from(p.offset) == usual {
                String::new()
            } else {
                format!(" at {:#x}", p.offset)
            };
            let _ = writeln!(out, "    .param {}{ty}{pointer}{at}", p.size);
        }
        if kernel.shared_bytes != 0 {
            let _ = writeln!(out, "    .shared {}", kernel.shared_bytes);
        }
        if let Some(threads) = kernel.max_threads {
            let _ = writeln!(out, "    .max_threads {threads}");
        }
        if let Some(blocks) = kernel.min_blocks {
            let _ = writeln!(out, "    .min_blocks {blocks}");
        }
    }
    let (all, own) = (function.resources, &function.own);
    let uses = |out: &mut String, directive: &str, all: u32, own: u32| {
        let own = if own == all {
            String::new()
        } else {
            format!(" own {own}")
        };
        let _ = writeln!(out, "    {directive} {all}{own}");
    };
    if all.local_bytes != 0 || own.local_bytes != 0 {
        uses(out, ".local", all.local_bytes, own.local_bytes);
    }
    uses(out, ".registers", all.registers, own.registers);
    uses(out, ".barriers", all.barriers, own.barriers);
    if own.spill_bytes != 0 {
        let _ = writeln!(out, "    .spilled {}", own.spill_bytes);
    }
    if own.calls_by_address {
        out.push_str("    .indirect\n");
    }
    if !own.loops.is_empty() {
        let loops: Vec<String> = own.loops.iter().map(u32::to_string).collect();
        let _ = writeln!(out, "    .loops {}", loops.join(", "));
    }
    for zone in &function.redzones {
        let _ = write!(out, "    .redzone {:#x} {}", zone.offset, zone.bytes);
        for (word, slot) in [("below", zone.below), ("above", zone.above)] {
            if let Some(slot) = slot {
                let _ = write!(out, " {word} {slot}");
            }
        }
        out.push('\n');
    }
}

/// A place in the source by a directive, and its file where that is another than `file`.
fn place(object: &Object, directive: &str, location: Location, file: &mut u32, out: &mut String) {
    if location.file != *file
        && let Some(name) = object.file_name(location.file)
    {
        let _ = writeln!(out, "    .file {}", quoted(name));
        *file = location.file;
    }
    let _ = write!(out, "    {directive} {}", location.line);
    for (word, value) in [("column", location.column), ("inlined", location.inlined)] {
        if value != 0 {
            let _ = write!(out, " {word} {value}");
        }
    }
    out.push('\n');
}

/// A decoded word.
type Decoded = (Inst<PReg>, Control);

fn function(
    object: &Object,
    function: &ObjectFunction,
    symbols: &BTreeSet<&str>,
    file: &mut u32,
    out: &mut String,
    bad: &mut Vec<BadWord>,
) {
    header(function, out);
    let code = listed(function, symbols);
    let label = |name: &Option<String>, out: &mut String| {
        if let Some(name) = name {
            let _ = writeln!(out, "{name}:");
        }
    };
    let mut lines = function.lines.iter().peekable();
    let mut line = |offset: usize, out: &mut String| {
        while let Some(line) = lines.next_if(|l| l.offset as usize <= offset) {
            place(object, ".line", line.location, file, out);
        }
    };
    for instruction in code.instructions {
        let ListedInstruction {
            offset, word, text, ..
        } = instruction;
        label(&instruction.label, out);
        line(offset, out);
        match text {
            Ok(text) => {
                let _ = writeln!(out, "    {text} ;");
            }
            Err(reason) => {
                let _ = writeln!(out, "    // no instruction: {word:032x}: {reason}");
                bad.push(BadWord {
                    function: function.name.clone(),
                    offset,
                    word,
                    reason,
                });
            }
        }
    }
    label(&code.end, out);
    line(function.words.len() * WORD_BYTES, out);
}

/// The code of a function.
fn listed(function: &ObjectFunction, symbols: &BTreeSet<&str>) -> ListedFunction {
    let decoded: Vec<Result<Decoded, Illegal>> =
        function.words.iter().map(|w| decode(*w)).collect();
    let relocations: HashMap<usize, &Relocation> = function
        .relocations
        .iter()
        .map(|r| (r.offset as usize, r))
        .collect();
    let labels = labels(&decoded, &relocations, symbols);
    let instruction = |(i, (decoded, word)): (usize, (Result<Decoded, Illegal>, &u128))| {
        let offset = i * WORD_BYTES;
        let text = decoded.map(|(inst, control)| {
            let relocation = relocations.get(&offset).copied();
            let symbols = |field: u8| symbol(&inst, i, field, relocation, &labels);
            format!("{}{control}", inst.with_symbols(&symbols))
        });
        ListedInstruction {
            offset,
            word: *word,
            label: labels.get(&i).cloned(),
            text,
        }
    };
    let instructions = decoded.into_iter().zip(&function.words).enumerate();
    ListedFunction {
        instructions: instructions.map(instruction).collect(),
        end: labels.get(&function.words.len()).cloned(),
    }
}

/// The word that a branch goes to, if it lies in the function or at its end.
fn target(inst: &Inst<PReg>, at: usize, field: u8, words: usize) -> Option<usize> {
    let info = &inst.info().fields[field as usize];
    if !matches!(info.ty, FieldType::Label) {
        return None;
    }
    let distance = sign_extend(inst.field(field), info.width.into());
    let words_away = (distance % WORD_BYTES as i64 == 0).then_some(distance / WORD_BYTES as i64)?;
    let target = at as i64 + 1 + words_away;
    usize::try_from(target).ok().filter(|t| *t <= words)
}

/// Names for the words that branches go to, in ascending order, none of them a symbol.
fn labels(
    decoded: &[Result<Decoded, Illegal>],
    relocations: &HashMap<usize, &Relocation>,
    symbols: &BTreeSet<&str>,
) -> BTreeMap<usize, String> {
    let mut targets = BTreeSet::new();
    for (i, (inst, _)) in decoded
        .iter()
        .enumerate()
        .filter_map(|(i, d)| d.as_ref().ok().map(|d| (i, d)))
    {
        let relocated = relocations.contains_key(&(i * WORD_BYTES));
        let fields = 0..inst.info().fields.len() as u8;
        targets.extend(
            fields
                .filter(|_| !relocated)
                .filter_map(|field| target(inst, i, field, decoded.len())),
        );
    }
    let mut names = (1..)
        .map(|n| format!("L{n}"))
        .filter(|n| !symbols.contains(n.as_str()));
    targets
        .into_iter()
        .filter_map(|t| names.next().map(|n| (t, n)))
        .collect()
}

/// What stands for a field: a symbol or a label.
fn symbol(
    inst: &Inst<PReg>,
    at: usize,
    field: u8,
    relocation: Option<&Relocation>,
    labels: &BTreeMap<usize, String>,
) -> Option<String> {
    let info = &inst.info().fields[field as usize];
    match relocation {
        // The field that linking fills.
        Some(r) if info.bit == 32 && info.width == 32 => {
            let name = format!("{}{}", quoted(&r.symbol), addend(r.addend));
            Some(match r.kind {
                RelocationKind::Abs32Lo => format!("lo({name})"),
                RelocationKind::Abs32Hi => format!("hi({name})"),
                RelocationKind::Rel | RelocationKind::Abs64 | RelocationKind::Const => name,
            })
        }
        Some(_) => None,
        None => target(inst, at, field, usize::MAX).and_then(|t| labels.get(&t).cloned()),
    }
}
