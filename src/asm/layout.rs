//! Functions put together: words, labels, relocations, resources.

use super::advice::advice;
use super::apply::SymbolUse;
use super::diagnostic::{Diagnostic, Explanations};
use super::directives::{Data, Function, Program};
use crate::emit::constants::CONSTANTS;
use crate::isa::encode::WORD_BYTES;
use crate::isa::table::{Effects, FieldType};
use crate::isa::{Inst, PReg, Register, RegisterClass};
use crate::object::{
    DataContents, DataObject, Kernel, Line, Object, ObjectFunction, OwnResources, Relocation,
    RelocationKind, Resources, constant_read,
};
use crate::text::{closest, line_starts};
use hashbrown::HashSet;
use std::collections::BTreeSet;

/// The object of a program, and the line of each word. With errors among the diagnostics it is not complete.
pub(super) fn layout(
    mut program: Program,
    text: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Object, Vec<Vec<u32>>) {
    let mut symbols = HashSet::new();
    let defined = program
        .functions
        .iter()
        .map(|f| (&f.name, f.span))
        .chain(program.data.iter().map(|d| (&d.name, d.span)));
    for (name, span) in defined {
        if !symbols.insert(name.clone()) {
            diagnostics.push(Diagnostic::new(span, format!("`{name}` is defined twice")));
        }
    }
    symbols.extend(program.externs.iter().cloned());
    let line_starts = line_starts(text);
    let line_of = |byte: usize| line_starts.partition_point(|s| *s <= byte) as u32;
    let lines = program
        .functions
        .iter()
        .map(|f| f.spans.iter().map(|s| line_of(s.start)).collect())
        .collect();
    let mut object = Object {
        constants: program.constants,
        files: program.files,
        calls: program.calls,
        ..Object::default()
    };
    for function in &program.functions {
        let constants = !object.constants.is_empty();
        let explanations = &mut program.explanations;
        let finished = finish(function, &symbols, constants, explanations, diagnostics);
        object.functions.push(finished);
    }
    for data in program.data {
        object.data.push(finish_data(data, &symbols, diagnostics));
    }
    resources(&mut object, &program.functions);
    (object, lines)
}

fn finish(
    function: &Function,
    symbols: &HashSet<String>,
    constants: bool,
    explanations: &mut Explanations,
    diagnostics: &mut Vec<Diagnostic>,
) -> ObjectFunction {
    let mut words = Vec::new();
    let mut relocations = Vec::new();
    for (i, assembled) in function.instructions.iter().enumerate() {
        let mut assembled = assembled.clone();
        for symbol in std::mem::take(&mut assembled.symbols) {
            let place = (i, &assembled.inst);
            match resolve(function, place, &symbol, symbols, explanations) {
                Ok(Target::Bits(bits)) => assembled.inst.set_field(symbol.field, bits),
                Ok(Target::Relocation(relocation)) => relocations.push(relocation),
                Err(diagnostic) => diagnostics.push(diagnostic),
            }
        }
        // Offsets in the module's constants are written as if this object's came first.
        let read = constant_read(&assembled.inst).filter(|_| constants);
        relocations.extend(read.map(|addend| Relocation {
            offset: (i * WORD_BYTES) as u32,
            kind: RelocationKind::Const,
            symbol: CONSTANTS.to_owned(),
            addend,
        }));
        match assembled.word() {
            Ok(word) => {
                diagnostics.extend(advice(&assembled));
                words.push(word);
            }
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    let lines = function.lines.iter().map(|&(at, location)| Line {
        offset: (at * WORD_BYTES) as u32,
        location,
    });
    let kernel = function.kernel.then(|| Kernel {
        parameters: function.parameters.clone(),
        shared_bytes: function.shared,
        max_threads: function.max_threads,
        min_blocks: function.min_blocks,
    });
    let bounds = kernel.as_ref().map(Kernel::register_limit);
    if let Some(Err(message)) = bounds {
        diagnostics.push(Diagnostic::new(function.span, message));
    }
    ObjectFunction {
        name: function.name.clone(),
        linkage: function.linkage,
        kernel,
        // Known when all functions are there.
        resources: Resources::default(),
        own: own_resources(function),
        words,
        relocations,
        lines: lines.collect(),
        redzones: function.redzones.clone(),
        // Assembly text has no values.
        values: Vec::new(),
        scopes: Vec::new(),
    }
}

enum Target {
    Bits(u64),
    Relocation(Relocation),
}

fn resolve(
    function: &Function,
    (at, inst): (usize, &Inst<PReg>),
    symbol: &SymbolUse,
    symbols: &HashSet<String>,
    explanations: &mut Explanations,
) -> Result<Target, Diagnostic> {
    let name = &symbol.name;
    let field = &inst.info().fields[symbol.field as usize];
    let label = function
        .labels
        .get(name)
        .filter(|_| matches!(field.ty, FieldType::Label));
    if let Some((target, _)) = label {
        let distance = (*target as i64 - (at as i64 + 1)) * WORD_BYTES as i64 + symbol.addend;
        let limit = 1i64 << (field.width - 1);
        if !(-limit..limit).contains(&distance) {
            return Err(Diagnostic::new(
                symbol.span,
                format!("label `{name}` is too far away: {distance} bytes"),
            ));
        }
        return Ok(Target::Bits(distance as u64));
    }
    if symbols.contains(name) {
        let offset = (at * WORD_BYTES) as u32;
        return Ok(Target::Relocation(Relocation {
            offset,
            kind: symbol.kind,
            symbol: name.clone(),
            addend: symbol.addend,
        }));
    }
    if function.labels.contains_key(name) {
        return Err(Diagnostic::new(
            symbol.span,
            format!("`{name}` is a label, and only functions and data objects have addresses"),
        ));
    }
    let what = if symbol.kind == RelocationKind::Rel {
        "label or function"
    } else {
        "symbol"
    };
    let mut diagnostic = Diagnostic::new(symbol.span, format!("there is no {what} `{name}`"));
    if !explanations.take(symbols.len() + function.labels.len()) {
        return Err(diagnostic);
    }
    let known = symbols
        .iter()
        .chain(function.labels.keys())
        .map(String::as_str);
    let known: BTreeSet<&str> = known.collect();
    diagnostic = match closest(name, known) {
        Some(known) => diagnostic.note(format!("did you mean `{known}`?")),
        None => diagnostic.note("`.extern NAME` declares what another object defines"),
    };
    Err(diagnostic)
}

fn finish_data(
    data: Data,
    symbols: &HashSet<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> DataObject {
    let mut relocations = Vec::new();
    for (offset, symbol, addend, span) in data.addresses {
        if !symbols.contains(&symbol) {
            diagnostics.push(Diagnostic::new(
                span,
                format!("there is no symbol `{symbol}`"),
            ));
        }
        relocations.push(Relocation {
            offset,
            kind: RelocationKind::Abs64,
            symbol,
            addend,
        });
    }
    DataObject {
        name: data.name,
        linkage: data.linkage,
        writable: data.writable,
        align: data.align,
        contents: data
            .zeros
            .map_or(DataContents::Bytes(data.bytes), DataContents::Zeros),
        relocations,
    }
}

/// What functions use, where no directive says it: their own instructions and those of everything that they may call.
fn resources(object: &mut Object, written: &[Function]) {
    object.count_resources();
    for (function, written) in object.functions.iter_mut().zip(written) {
        let found = &mut function.resources;
        for (found, written) in [
            (&mut found.registers, written.registers),
            (&mut found.local_bytes, written.local),
            (&mut found.barriers, written.barriers),
        ] {
            *found = written.all.unwrap_or(*found);
        }
    }
}

/// What a function uses by itself: what directives say, otherwise what its instructions do.
fn own_resources(function: &Function) -> OwnResources {
    let mut found = OwnResources {
        local_bytes: function.local.own_or(0),
        spill_bytes: function.spilled,
        calls_by_address: function.indirect,
        loops: function.loops.clone(),
        ..OwnResources::default()
    };
    for assembled in &function.instructions {
        let inst = &assembled.inst;
        let info = inst.info();
        for register in inst.registers(info.reads | info.writes) {
            let most = match register.class() {
                RegisterClass::Gpr => &mut found.registers,
                RegisterClass::Predicate => &mut found.predicates,
                RegisterClass::Uniform => &mut found.uniform,
            };
            *most = (*most).max(u32::from(register.number()) + 1);
        }
        let effects = inst.optype().info().effects;
        if effects.contains(Effects::BARRIER.union(Effects::CONVERGENT)) {
            found.barriers = 1;
        }
        // A call without a symbol or label goes to an address.
        found.calls_by_address |= effects.contains(Effects::CALL) && assembled.symbols.is_empty();
    }
    found.registers = function.registers.own_or(found.registers);
    found.barriers = function.barriers.own_or(found.barriers);
    found
}
