//! Where values of the source are, as objects say it: in the section of our own, in DWARF, and for a front end's
//! variables.

#[path = "common/dwarf.rs"]
mod dwarf;

use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{
    RelSourceLoc, Value, ValueLabel, ValueLabelAssignments, ValueLabelStart,
};
use cranelift_thisgpu::compile::{Compiler, SourceFile};
use cranelift_thisgpu::object::{Object, ValueLocations};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::values::{Location, Place, SourceValue};
use gimli::{EndianSlice, EvaluationResult, LittleEndian, Piece};
use std::collections::BTreeMap;

const TEXT: &str = "; kernel
function %k(i64, i32) {
    gv0 = symbol %gpu_tid_x
block0(v0: i64, v1: i32):
    v2 = symbol_value.i32 gv0
    v3 = iadd v2, v1
    v4 = uextend.i64 v3
    v5 = iconst.i64 3
    v6 = imul v4, v5
    v7 = iadd v0, v6
    v8 = load.i64 v7
    v9 = icmp ult v3, v1
    v10 = isub v8, v6
    brif v9, block1(v10), block2
block1(v11: i64):
    v12 = iadd v11, v6
    store v12, v7+8
    v13 = icmp ult v12, v8
    brif v13, block1(v12), block2
block2:
    store v8, v0
    return
}
";

fn options() -> Options {
    Options {
        value_locations: true,
        ..Options::default()
    }
}

fn compiled(options: Options) -> Object {
    let file = SourceFile::parse("k.clif", TEXT).unwrap();
    Compiler::new(options).file(&file).unwrap().into_object()
}

#[test]
fn objects_keep_locations() {
    let object = compiled(options());
    let function = &object.functions[0];
    assert!(function.values.len() > 8, "{:?}", function.values);
    let read = Object::read(&object.write().unwrap()).unwrap();
    assert_eq!(read.functions[0].values, function.values);
    let end = function.len() as u32;
    for value in &function.values {
        let ranges = &value.ranges;
        assert!(
            ranges
                .iter()
                .all(|range| range.start < range.end && range.end <= end)
        );
        assert!(
            ranges.windows(2).all(|pair| pair[0].end <= pair[1].start),
            "{value:?}"
        );
    }
}

#[test]
fn nobody_pays_for_locations_that_are_not_asked_for() {
    let with = compiled(options());
    let without = compiled(Options::default());
    assert_eq!(with.functions[0].words, without.functions[0].words);
    assert_eq!(with.functions[0].lines, without.functions[0].lines);
    let mut cleared = with.clone();
    cleared.functions[0].values.clear();
    assert_eq!(cleared.write().unwrap(), without.write().unwrap());
}

/// What a register or word of local memory holds in this test.
fn contents(place: Place) -> u64 {
    match place {
        Place::Register(number) => 0x1000_0000 + u64::from(number),
        Place::Uniform(number) => 0x2000_0000 + u64::from(number),
        Place::Predicate(number, opposite) => u64::from((number % 2 != 0) != opposite),
        Place::Frame(offset) => 0x3000_0000 + u64::from(offset),
        Place::Constant(word) => word.into(),
        Place::Launch(_) => 0,
    }
}

/// The register that DWARF numbers so.
fn register(number: u16) -> Place {
    match number {
        0..256 => Place::Register(number as u8),
        256..512 => Place::Uniform((number - 256) as u8),
        _ => Place::Predicate((number - 512) as u8, false),
    }
}

/// The value at a location; none if a part of it is in the bank of the launch.
fn expected(location: &Location) -> Option<u64> {
    let mut bits = 0;
    for (word, &place) in location.places.iter().enumerate() {
        if matches!(place, Place::Launch(_)) {
            return None;
        }
        bits |= contents(place) << (32 * word);
    }
    Some(bits.wrapping_add_signed(location.addend))
}

type Reader<'a> = EndianSlice<'a, LittleEndian>;

/// What an expression gives; none where it says nothing.
fn evaluated(expression: gimli::Expression<Reader<'_>>, encoding: gimli::Encoding) -> Option<u64> {
    if expression.0.is_empty() {
        return None;
    }
    let mut evaluation = expression.evaluation(encoding);
    let mut result = evaluation.evaluate().unwrap();
    while result != EvaluationResult::Complete {
        result = match result {
            EvaluationResult::RequiresRegister {
                register: wanted, ..
            } => {
                let value = gimli::Value::Generic(contents(register(wanted.0)));
                evaluation.resume_with_register(value).unwrap()
            }
            other => panic!("{other:?}"),
        };
    }
    let pieces: Vec<Piece<Reader<'_>>> = evaluation.result();
    let mut bits = 0;
    for (word, piece) in pieces.iter().enumerate() {
        let part = match piece.location {
            gimli::Location::Register { register: found } => contents(register(found.0)),
            gimli::Location::Value { value } => value.to_u64(u64::MAX).unwrap(),
            // R1 is 0 here: an address is an offset.
            gimli::Location::Address { address } => contents(Place::Frame(
                (address - contents(Place::Register(1))) as u32,
            )),
            gimli::Location::Empty => return None,
            ref other => panic!("{other:?}"),
        };
        bits |= part << (32 * word);
    }
    (!pieces.is_empty()).then_some(bits)
}

#[test]
fn dwarf_says_the_same() {
    for setting in ["opt_level=speed", "opt_level=none", "regs=24"] {
        let mut options = options();
        options.set(setting).unwrap();
        compare_with_dwarf(&compiled(options));
    }
}

fn compare_with_dwarf(object: &Object) {
    let bytes = object.write_linked().unwrap();
    let start = object.code_addresses()[0];
    let dwarf = dwarf::load(&bytes);
    let unit = dwarf.unit(dwarf.units().next().unwrap().unwrap()).unwrap();
    let mut said: BTreeMap<String, Vec<(u64, u64, Option<u64>)>> = BTreeMap::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        if entry.tag() != gimli::DW_TAG_variable {
            continue;
        }
        let name = entry.attr_value(gimli::DW_AT_name).unwrap();
        let name = dwarf.attr_string(&unit, name).unwrap().to_string_lossy();
        let location = entry.attr_value(gimli::DW_AT_location).unwrap();
        let mut ranges = dwarf.attr_locations(&unit, location).unwrap().unwrap();
        let list = said.entry(name.into_owned()).or_default();
        while let Some(range) = ranges.next().unwrap() {
            let value = evaluated(range.data, unit.encoding());
            list.push((range.range.begin - start, range.range.end - start, value));
        }
    }
    let values: &[ValueLocations] = &object.functions[0].values;
    assert_eq!(said.len(), values.len());
    for value in values {
        let list = value.ranges.iter().map(|range| {
            (
                range.start.into(),
                range.end.into(),
                expected(&range.location),
            )
        });
        assert_eq!(
            said[&value.source.to_string()],
            list.collect::<Vec<_>>(),
            "{}",
            value.source
        );
    }
}

#[test]
fn variables_of_a_front_end_are_where_their_values_are() {
    let mut file = SourceFile::parse("k.clif", TEXT).unwrap();
    let func = &mut file.functions[0].func;
    func.dfg.collect_debug_info();
    let at = |func: &cranelift_codegen::ir::Function, value: Value| {
        let inst = func.dfg.value_def(value).inst();
        inst.map_or(RelSourceLoc::default(), |inst| func.srclocs[inst])
    };
    // Variable 7 is v6; variable 8 is given v4 only where v8 is computed, which is later.
    let (seven, eight) = (ValueLabel::new(7), ValueLabel::new(8));
    let [multiple, index, loaded] = [6, 4, 8].map(Value::new);
    let starts = |from, label| ValueLabelAssignments::Starts(vec![ValueLabelStart { from, label }]);
    let labels = [
        (multiple, starts(at(func, multiple), seven)),
        (index, starts(at(func, loaded), eight)),
    ];
    func.dfg.values_labels.as_mut().unwrap().extend(labels);
    let object = Compiler::new(options()).file(&file).unwrap().into_object();
    let find = |source: SourceValue| {
        let values = &object.functions[0].values;
        values
            .iter()
            .find(|value| value.source == source)
            .map(|value| &value.ranges)
    };
    let variable = find(SourceValue::Label(7));
    assert!(variable.is_some());
    assert_eq!(variable, find(SourceValue::Value(6)));
    assert_eq!(find(SourceValue::Label(8)), None);
}
