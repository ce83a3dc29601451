//! Variables of a front end: what is assigned where, what a debugger shows of it, and what DWARF says.

#[path = "common/dwarf.rs"]
mod dwarf;

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{Block, Function, Inst, StackSlot, Value};
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::locations::{Location, Locations};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::debug::{
    Breakpoint, Comparison, Condition, FrameId, Number, Operand, Path, Place, Session, Space, Stop,
    Thread,
};
use cranelift_thisgpu::variables::{
    Assigned, Assignment, Base, Member, Position, Scope, ScopeKind, TypeKind, Variable,
    VariableType, Variables,
};
use cranelift_thisgpu::{Code, Device, Grid, SimConfig};
use gimli::{EndianSlice, EvaluationResult, LittleEndian};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const TEXT: &str = "; kernel
function %k(i64, i32) {
    ss0 = explicit_slot 16, align = 8
    gv0 = symbol %gpu_tid_x
block0(v0: i64, v1: i32):
    v2 = symbol_value.i32 gv0
    v3 = iadd v2, v1
    v4 = stack_addr.i64 ss0
    store v3, v4
    store v2, v4+4
    v5 = uextend.i64 v2
    v6 = iconst.i64 4
    v7 = imul v5, v6
    v8 = iadd v0, v7
    v9 = load.i32 v8
    v10 = iconst.i32 1
    v11 = band v2, v10
    brif v11, block1, block2
block1:
    v12 = imul v9, v3
    jump block3(v12)
block2:
    v13 = iadd v9, v1
    jump block3(v13)
block3(v14: i32):
    v15 = load.i32 v4
    v16 = iadd v14, v15
    store v16, v8
    return
}
";

/// What the kernel is compiled from.
struct Source {
    file: SourceFile,
    locations: Locations,
    variables: Variables,
}

fn definition(func: &Function, value: u32) -> Inst {
    func.dfg.value_def(Value::from_u32(value)).unwrap_inst()
}

/// The second store, behind which the slot has what it is to have.
fn last_store(func: &Function) -> Inst {
    let entry = func.layout.entry_block().unwrap();
    let mut stores = func.layout.block_insts(entry);
    stores
        .rfind(|inst| func.dfg.insts[*inst].opcode().can_store())
        .unwrap()
}

fn source() -> Source {
    let mut file = SourceFile::parse("k.clif", TEXT).unwrap();
    let func = &mut file.functions[0].func;
    let mut locations = Locations::table();
    let mut variables = Variables::default();
    let number = locations.file("k.rs");
    let call = Location {
        file: number,
        line: 3,
        column: 9,
        inlined: 0,
    };
    let outer = variables.add_scope(Scope {
        parent: 0,
        kind: ScopeKind::Function("k".into()),
    });
    let inner = variables.add_scope(Scope {
        parent: outer,
        kind: ScopeKind::Block,
    });
    let callee = ScopeKind::Inlined("callee".into(), call);
    let inlined = variables.add_scope(Scope {
        parent: outer,
        kind: callee,
    });
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let mut line = 10;
    for (block, scope) in blocks.into_iter().zip([outer, inner, inlined, outer]) {
        let insts: Vec<Inst> = func.layout.block_insts(block).collect();
        for inst in insts {
            line += 1;
            let place = Location {
                file: number,
                line,
                column: 1,
                inlined: 0,
            };
            func.set_srcloc(inst, locations.add_scoped(place, scope));
        }
    }
    let int = variables.add_type(VariableType {
        name: "i32".into(),
        bytes: 4,
        kind: TypeKind::Signed,
    });
    let member = |name: &str, offset| Member {
        name: name.into(),
        offset,
        ty: int,
    };
    let pair = variables.add_type(VariableType {
        name: "Pair".into(),
        bytes: 8,
        kind: TypeKind::Structure(vec![member("a", 0), member("b", 4)], None),
    });
    let names = ["Low", "High"].map(str::to_owned);
    let level = variables.add_type(VariableType {
        name: "Level".into(),
        bytes: 1,
        kind: TypeKind::Enumeration(names.into_iter().zip([0xfe, 3]).collect(), true),
    });
    let mut assignments: Vec<Assignment> = Vec::new();
    let mut declare = |name: &str, ty: u32, scope: u32| {
        variables.add_variable(Variable {
            name: name.into(),
            ty,
            scope,
            is_parameter: name == "n",
        })
    };
    let mut assign = |variable: u32, bytes: Range<u32>, from: Position, assigned: Assigned| {
        assignments.push(Assignment {
            variable,
            bytes,
            assigned,
            from,
        });
    };
    let behind = |value: u32| Position::Behind(definition(func, value));
    let value = |value: u32| Assigned::Value(Value::from_u32(value));
    let memory = |base: Base| Assigned::Memory {
        base,
        path: Vec::new(),
    };

    let n = declare("n", int, outer);
    assign(n, 0..4, Position::Start(Block::new(0)), value(1));
    // Another value in each branch: nobody knows which behind them.
    let mixed = declare("mixed", int, outer);
    assign(mixed, 0..4, behind(3), value(3));
    assign(mixed, 0..4, behind(12), value(12));
    assign(mixed, 0..4, behind(13), value(13));
    // The same in both.
    let same = declare("same", int, outer);
    assign(same, 0..4, behind(12), Assigned::Constant(9));
    assign(same, 0..4, behind(13), Assigned::Constant(9));
    let constant = declare("constant", int, outer);
    assign(constant, 0..4, behind(9), Assigned::Constant(7));
    let level = declare("level", level, outer);
    assign(level, 0..1, behind(9), Assigned::Constant(0xfe));
    // In two parts, of which an assignment to both makes an end.
    let parts = declare("parts", pair, outer);
    assign(parts, 0..4, behind(3), value(3));
    assign(parts, 4..8, behind(3), value(2));
    assign(parts, 0..8, behind(11), Assigned::Nothing);
    let slot = declare("slot", pair, outer);
    let of_slot = Base::Slot(StackSlot::new(0), 0);
    assign(
        slot,
        0..8,
        Position::Behind(last_store(func)),
        memory(of_slot),
    );
    let element = declare("element", int, outer);
    assign(
        element,
        0..4,
        behind(9),
        memory(Base::Value(Value::from_u32(8), 0)),
    );
    let local = declare("local", int, inner);
    assign(local, 0..4, Position::Start(Block::new(1)), value(9));
    let argument = declare("argument", int, inlined);
    assign(argument, 0..4, Position::Start(Block::new(2)), value(9));
    variables.assign("k", assignments);
    Source {
        file,
        locations,
        variables,
    }
}

fn compiled(source: &Source, settings: &[&str], with: bool) -> Code {
    let mut options = Options {
        value_locations: with,
        ..Options::default()
    };
    for setting in settings {
        options.set(setting).unwrap();
    }
    let mut compiler = Compiler::new(options);
    compiler.set_locations(Some(Arc::new(source.locations.clone())));
    if with {
        compiler.set_variables(Some(Arc::new(source.variables.clone())));
    }
    compiler.file(&source.file).unwrap()
}

const SETTINGS: [&[&str]; 4] = [
    &[
        "opt_level=none",
        "keep_slots=true",
        "reorder=false",
        "if_convert=false",
    ],
    &["opt_level=none", "regalloc_algorithm=single_pass"],
    &[],
    &["regs=24", "keep_slots=true"],
];

#[test]
fn code_is_the_same_with_variables_and_without() {
    for settings in SETTINGS {
        let (with, without) = (
            compiled(&source(), settings, true),
            compiled(&source(), settings, false),
        );
        let (with, without) = (with.into_object(), without.into_object());
        assert_eq!(
            with.functions[0].words, without.functions[0].words,
            "{settings:?}"
        );
        assert!(!with.functions[0].scopes.is_empty());
        let mut cleared = with.clone();
        cleared.types.clear();
        let function = &mut cleared.functions[0];
        function.scopes.clear();
        function.values.clear();
        assert_eq!(
            cleared.write().unwrap(),
            without.write().unwrap(),
            "{settings:?}"
        );
        let read = Object::read(&with.write().unwrap()).unwrap();
        assert_eq!(
            (&read.functions[0].scopes, &read.types),
            (&with.functions[0].scopes, &with.types)
        );
    }
}

const LAUNCH: [i32; 4] = [100, -20, 3, 4];

fn session(device: &Device, code: &Code) -> Session {
    let data = device.upload(&LAUNCH).unwrap();
    let module = device.load(code).unwrap();
    let kernel = module.kernel("k").unwrap();
    kernel
        .launch(Grid::new([1; 3], [4, 1, 1]))
        .args(&[&data, &5])
        .debug()
        .unwrap()
}

/// Goes through the kernel with a thread, and looks at each of its instructions.
fn walk(code: &Code, thread: u32, mut look: impl FnMut(&Session, Thread)) {
    let device = Device::simulator(SimConfig::default());
    let mut session = session(&device, code);
    let thread = Thread { block: 0, thread };
    session.next_thread();
    loop {
        if session.place(thread).is_some() {
            look(&session, thread);
        }
        if session.step_instruction(thread) != Stop::Step {
            return;
        }
    }
}

/// The number that a variable or a part of one is shown to be.
fn number(session: &Session, thread: Thread, path: &str) -> Option<i64> {
    let datum = session
        .datum(thread, FrameId::default(), &Path::parse(path).unwrap())
        .ok()?;
    session.text(thread, &datum).parse().ok()
}

#[test]
fn variables_are_what_was_assigned_last() {
    for settings in SETTINGS {
        let code = compiled(&source(), settings, true);
        let readable = settings.contains(&"reorder=false");
        for lane in 0..4 {
            let (tid, loaded) = (i64::from(lane), i64::from(LAUNCH[lane as usize]));
            let sum = tid + 5;
            let own = if tid % 2 == 1 {
                loaded * sum
            } else {
                loaded + 5
            };
            let expected: BTreeMap<&str, Vec<i64>> = BTreeMap::from([
                ("n", vec![5]),
                ("mixed", vec![sum, own]),
                ("same", vec![9]),
                ("constant", vec![7]),
                ("parts.a", vec![sum]),
                ("parts.b", vec![tid]),
                ("slot.a", vec![sum]),
                ("slot.b", vec![tid]),
                // The last instruction is the one that stores.
                ("element", vec![loaded]),
                ("local", vec![loaded]),
                ("argument", vec![loaded]),
            ]);
            let mut shown: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
            let mut joined = false;
            walk(&code, lane, |session, thread| {
                let place = session.place(thread).unwrap();
                // Behind the branches.
                joined |= place.location.line >= 29 && place.location.line != 0;
                if joined && readable {
                    assert_eq!(number(session, thread, "mixed"), None, "{place}");
                }
                for &name in expected.keys() {
                    if let Some(found) = number(session, thread, name) {
                        let all = shown.entry(name).or_default();
                        if all.last() != Some(&found) {
                            all.push(found);
                        }
                    }
                }
            });
            for (name, found) in &shown {
                // At the end of the kernel memory is what the kernel has made of it.
                let found = if *name == "element" {
                    &found[..1]
                } else {
                    found
                };
                let is_allowed = found.iter().all(|value| expected[name].contains(value));
                assert!(
                    is_allowed,
                    "{settings:?}, thread {lane}: {name} is {found:?}"
                );
            }
            if readable {
                let missing: Vec<&&str> = expected
                    .keys()
                    .filter(|name| !shown.contains_key(*name))
                    .collect();
                let elsewhere = if tid % 2 == 1 { "argument" } else { "local" };
                assert_eq!(missing, [&elsewhere], "thread {lane}");
                // A jump to the next block is no instruction, so its second value may never be seen.
                assert!(expected["mixed"].starts_with(&shown["mixed"]));
            }
        }
    }
}

#[test]
fn a_discriminant_compares_with_its_sign() {
    let code = compiled(&source(), SETTINGS[0], true);
    for (comparison, value, holds) in [
        (Comparison::Less, 0, true),
        (Comparison::Equal, -2, true),
        (Comparison::Greater, 0, false),
    ] {
        let device = Device::simulator(SimConfig::default());
        let mut session = session(&device, &code);
        let thread = Thread {
            block: 0,
            thread: 0,
        };
        let is_shown = |session: &Session| {
            let path = Path::parse("level").unwrap();
            let datum = session.datum(thread, FrameId::default(), &path);
            datum.is_ok_and(|datum| session.text(thread, &datum) == "Low")
        };
        while !is_shown(&session) {
            assert_eq!(session.step_instruction(thread), Stop::Step);
        }
        let pc = session.place(thread).unwrap().pc;
        let mut breakpoint = Breakpoint::at(Place::Address(pc));
        breakpoint.condition = Some(Condition {
            operand: Operand::Variable(Path::parse("level").unwrap()),
            comparison,
            value: Number::Integer(value),
        });
        session.go_to(0);
        session.add_breakpoint(breakpoint).unwrap();
        let stop = session.resume();
        assert_eq!(matches!(stop, Stop::Breakpoint { .. }), holds, "{stop:?}");
    }
}

#[test]
fn scopes_are_seen_from_their_own_code() {
    let code = compiled(&source(), SETTINGS[0], true);
    let (mut inlined, mut blocks) = (0, 0);
    for lane in 0..2 {
        walk(&code, lane, |session, thread| {
            let names = session.scope_names(thread, 0);
            let variables = session.variables(thread, 0);
            let seen = |name: &str| variables.iter().any(|view| view.name == name);
            let frames: Vec<u32> = variables.iter().map(|view| view.frame).collect();
            assert!(frames.is_sorted());
            match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["callee", "k"] => {
                    inlined += 1;
                    assert!(seen("argument") && seen("n") && !seen("local"));
                    assert_eq!((frames.first(), frames.last()), (Some(&0), Some(&1)));
                }
                ["k"] => {
                    blocks += u32::from(seen("local"));
                    assert!(!seen("argument"));
                }
                [] => assert!(variables.is_empty()),
                _ => panic!("{names:?}"),
            }
        });
    }
    assert!(inlined > 0 && blocks > 0, "{inlined} {blocks}");
}

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// Expressions by the range that they hold in.
type List<'a> = Vec<(Range<u64>, gimli::Expression<Reader<'a>>)>;

/// The register of DWARF's number, as a thread has it.
fn register(session: &Session, thread: Thread, number: u16) -> u64 {
    let operand = match number {
        0..256 => Operand::Register(number as u8),
        256..512 => Operand::Uniform((number - 256) as u8),
        _ => Operand::Predicate((number - 512) as u8),
    };
    session.value(thread, &operand).unwrap() as u64
}

/// The bytes that an expression of DWARF gives, as many as the type has.
fn evaluated(
    session: &Session,
    thread: Thread,
    expression: gimli::Expression<Reader<'_>>,
    encoding: gimli::Encoding,
    bytes: usize,
) -> Vec<Option<u8>> {
    // An address below the windows of the generic ones is one of local memory here, unless the device has memory there.
    let read = |address: u64, bytes: usize| {
        let global = session.read(Space::Global, address, bytes);
        global
            .or_else(|_| session.read(Space::Local(thread), address, bytes))
            .ok()
    };
    let mut evaluation = expression.evaluation(encoding);
    let mut result = evaluation.evaluate().unwrap();
    while result != EvaluationResult::Complete {
        result = match result {
            EvaluationResult::RequiresRegister {
                register: wanted, ..
            } => {
                let value = gimli::Value::Generic(register(session, thread, wanted.0));
                evaluation.resume_with_register(value).unwrap()
            }
            other => panic!("{other:?}"),
        };
    }
    let mut found = Vec::new();
    for piece in evaluation.result() {
        let size = piece.size_in_bits.map_or(bytes, |bits| bits as usize / 8);
        let word = |bits: u64| bits.to_le_bytes().map(Some).into_iter();
        match piece.location {
            gimli::Location::Register { register: of } => {
                found.extend(word(register(session, thread, of.0)).take(size));
            }
            gimli::Location::Value { value } => {
                found.extend(word(value.to_u64(u64::MAX).unwrap()).take(size));
            }
            gimli::Location::Address { address } => {
                let bytes = read(address, size).unwrap();
                found.extend(bytes.into_iter().map(Some));
            }
            gimli::Location::Empty => found.extend(vec![None; size]),
            other => panic!("{other:?}"),
        }
    }
    found.resize(bytes, None);
    found
}

#[test]
fn dwarf_says_the_same() {
    let mut compared = 0;
    for settings in SETTINGS {
        let code = compiled(&source(), settings, true);
        let object = code.object();
        let (bytes, start) = (object.write_linked().unwrap(), object.code_addresses()[0]);
        let dwarf = dwarf::load(&bytes);
        let unit = dwarf.unit(dwarf.units().next().unwrap().unwrap()).unwrap();
        let mut tags = BTreeMap::new();
        let mut variables: Vec<(String, List<'_>)> = Vec::new();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            *tags.entry(entry.tag().to_string()).or_insert(0) += 1;
            let is_variable = matches!(
                entry.tag(),
                gimli::DW_TAG_variable | gimli::DW_TAG_formal_parameter
            );
            let Some(location) = entry
                .attr_value(gimli::DW_AT_location)
                .filter(|_| is_variable)
            else {
                continue;
            };
            let name = entry.attr_value(gimli::DW_AT_name).unwrap();
            let name = dwarf.attr_string(&unit, name).unwrap().to_string_lossy();
            let mut ranges = dwarf.attr_locations(&unit, location).unwrap().unwrap();
            let mut list = Vec::new();
            while let Some(range) = ranges.next().unwrap() {
                list.push((
                    range.range.begin - start..range.range.end - start,
                    range.data,
                ));
            }
            variables.push((name.into_owned(), list));
        }
        for tag in [
            "DW_TAG_inlined_subroutine",
            "DW_TAG_lexical_block",
            "DW_TAG_formal_parameter",
        ] {
            assert_eq!(tags.get(tag), Some(&1), "{tags:?}");
        }
        for lane in 0..2 {
            walk(&code, lane, |session, thread| {
                let place = session.place(thread).unwrap();
                let offset = u64::from(place.pc) - session_start(session);
                for view in session.variables(thread, 0) {
                    let (_, list) = variables
                        .iter()
                        .find(|(name, _)| *name == view.name)
                        .unwrap();
                    let range = list.iter().find(|(range, _)| range.contains(&offset));
                    let bytes = session.bytes(thread, &view.datum);
                    let said = match range {
                        Some((_, expression)) => {
                            evaluated(session, thread, *expression, unit.encoding(), bytes.len())
                        }
                        None => vec![None; bytes.len()],
                    };
                    // What is in the bank of the launch has no address there.
                    if view.name != "n" {
                        assert_eq!(said, bytes, "{settings:?}: {} at {place}", view.name);
                        compared += usize::from(
                            said.contains(&Some(0)) || said.iter().any(Option::is_some),
                        );
                    }
                }
            });
        }
    }
    assert!(compared > 100, "{compared}");
}

/// The code address of the kernel.
fn session_start(session: &Session) -> u64 {
    let functions = &session.image().functions;
    functions
        .iter()
        .find(|function| function.name == "k")
        .unwrap()
        .address
        .into()
}
