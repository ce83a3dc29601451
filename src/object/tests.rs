//! Objects through the file and back, deterministic, and what is refused.

use super::*;
use crate::emit::constants::CONSTANTS;
use crate::isa::control::Control;
use crate::isa::encode::decode;
use crate::isa::generated::{IExt, LoadSize, iadd, ldc};
use crate::isa::operand::{Constant, PT};
use crate::isa::{PInst, PReg, build};
use crate::values::SourceValue;
use crate::variables::{
    Address, Member, Part, PartPlace, TypeKind, VariableLocations, VariableRange, Variant, Variants,
};

fn location(file: u32, line: u32, column: u32) -> Location {
    Location {
        file,
        line,
        column,
        inlined: 0,
    }
}

/// A type of each kind.
fn types() -> Vec<VariableType> {
    let named = |name: &str, bytes: u64, kind: TypeKind| VariableType {
        name: name.to_string(),
        bytes,
        kind,
    };
    let member = |name: &str, offset: u64, ty: u32| Member {
        name: name.to_string(),
        offset,
        ty,
    };
    let variants = Variants {
        discriminant: Some(member("", 0, 0)),
        variants: vec![
            Variant {
                value: Some(u128::MAX),
                member: member("Some", 0, 6),
            },
            Variant {
                value: None,
                member: member("None", 0, 10),
            },
        ],
    };
    vec![
        named("u64", 8, TypeKind::Unsigned),
        named("i32", 4, TypeKind::Signed),
        named("f32", 4, TypeKind::Float),
        named("bool", 1, TypeKind::Boolean),
        named("char", 4, TypeKind::Character),
        named("&u64", 8, TypeKind::Pointer(0)),
        named(
            "Pair",
            16,
            TypeKind::Structure(vec![member("__0", 0, 0), member("__1", 8, 1)], None),
        ),
        named(
            "",
            8,
            TypeKind::Union(vec![member("a", 0, 0), member("b", 0, 2)]),
        ),
        named("", 12, TypeKind::Array(2, 3)),
        named(
            "Kind",
            1,
            TypeKind::Enumeration(vec![("A".to_string(), 0), ("B".to_string(), 200)], true),
        ),
        named("Odd", 3, TypeKind::Opaque),
        named(
            "Option<Pair>",
            16,
            TypeKind::Structure(Vec::new(), Some(variants)),
        ),
    ]
}

/// A function, a call that was inlined into it, and a block.
fn scopes() -> Vec<ScopeLocations> {
    let part = |place: PartPlace| Part {
        offset: 0,
        bytes: 4,
        place,
    };
    let variable = |name: &str, ty: u32, parts: Vec<Part>| VariableLocations {
        name: name.to_string(),
        ty,
        is_parameter: ty == 0,
        ranges: vec![VariableRange {
            start: 0,
            end: 16,
            parts,
        }],
    };
    let scope =
        |parent: Option<u32>, kind: ScopeKind, variables: Vec<VariableLocations>| ScopeLocations {
            parent,
            kind,
            ranges: vec![0..16, 32..48],
            variables,
        };
    let value = SourceValue::Value(7);
    let memory = PartPlace::Memory(Address::Value(value, -8), vec![16, 0]);
    vec![
        scope(
            None,
            ScopeKind::Function("outer".to_string()),
            vec![
                variable("x", 0, vec![part(PartPlace::Value(value))]),
                variable(
                    "y",
                    6,
                    vec![part(PartPlace::Memory(Address::Frame(32), Vec::new()))],
                ),
            ],
        ),
        scope(
            Some(0),
            ScopeKind::Inlined("inner".to_string(), location(2, 11, 5)),
            vec![variable(
                "z",
                1,
                vec![part(PartPlace::Constant(3)), part(memory)],
            )],
        ),
        scope(
            Some(1),
            ScopeKind::Block,
            vec![variable("all", 11, Vec::new())],
        ),
    ]
}

fn sample() -> Object {
    let relocation = |offset, kind, symbol: &str, addend| Relocation {
        offset,
        kind,
        symbol: symbol.to_string(),
        addend,
    };
    Object {
        functions: vec![
            ObjectFunction {
                name: "saxpy".to_string(),
                kernel: Some(Kernel {
                    parameters: vec![
                        Parameter {
                            offset: 0x160,
                            size: 4,
                            kind: ParameterKind::Value,
                            ty: Some(cranelift_codegen::ir::types::F32),
                        },
                        Parameter {
                            offset: 0x168,
                            size: 8,
                            kind: ParameterKind::Pointer,
                            ty: None,
                        },
                    ],
                    shared_bytes: 512,
                    max_threads: Some(256),
                    min_blocks: Some(2),
                }),
                resources: Resources {
                    registers: 12,
                    local_bytes: 64,
                    barriers: 1,
                },
                words: vec![1, u128::MAX, 3],
                relocations: vec![
                    relocation(0, RelocationKind::Abs32Lo, "table", 4),
                    relocation(16, RelocationKind::Abs32Hi, "table", 4),
                    relocation(32, RelocationKind::Rel, "elsewhere", -16),
                ],
                lines: vec![
                    Line {
                        offset: 0,
                        location: location(0, 7, 0),
                    },
                    Line {
                        offset: 32,
                        location: Location {
                            inlined: 2,
                            ..location(2, 9, 4)
                        },
                    },
                ],
                ..ObjectFunction::default()
            },
            ObjectFunction {
                name: "name with spaces".to_string(),
                linkage: Linkage::Local,
                words: vec![5],
                scopes: scopes(),
                ..ObjectFunction::default()
            },
        ],
        constants: vec![1, 2, 3, 4, 5],
        files: vec!["a.clif".to_string(), "b \0 \"c\".clif".to_string()],
        calls: vec![
            location(1, 70, 2),
            Location {
                inlined: 1,
                ..location(2, 80, 0)
            },
        ],
        types: types(),
        statics: vec![
            Static {
                name: "a::COUNTER".to_string(),
                ty: 0,
                place: StaticPlace::Data("counter".to_string()),
            },
            Static {
                name: "a::tile".to_string(),
                ty: 1,
                place: StaticPlace::Shared {
                    offset: 16,
                    kernels: vec!["saxpy".to_string()],
                },
            },
        ],
        data: vec![
            DataObject {
                name: "table".to_string(),
                linkage: Linkage::Global,
                writable: false,
                align: 8,
                contents: DataContents::Bytes((0..24).collect()),
                relocations: vec![relocation(8, RelocationKind::Abs64, "saxpy", 0)],
            },
            DataObject {
                name: "counter".to_string(),
                linkage: Linkage::Local,
                writable: true,
                align: 4,
                contents: DataContents::Zeros(4096),
                relocations: Vec::new(),
            },
        ],
    }
}

#[test]
fn survives_the_file() {
    let object = sample();
    let bytes = object.write().unwrap();
    assert_eq!(Object::read(&bytes).unwrap(), object);
    assert_eq!(
        bytes,
        sample().write().unwrap(),
        "the bytes depend on nothing but the object"
    );
    assert_eq!(
        Object::read(&Object::default().write().unwrap()).unwrap(),
        Object::default()
    );
}

/// Static variables in the DWARF of a file: name, the entry around them, and what their address is, a symbol or a
/// number.
fn statics_of(bytes: &[u8]) -> Vec<(String, String, String)> {
    use gimli::Section as _;
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};
    let file = object::File::parse(bytes).unwrap();
    let section = |id: gimli::SectionId| -> Result<_, gimli::Error> {
        let found = file.section_by_name(id.name());
        let data = found.map_or(&[][..], |section| section.data().unwrap());
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).unwrap();
    let header = dwarf.units().next().unwrap().unwrap();
    let unit = dwarf.unit(header).unwrap();
    let info = file.section_by_name(".debug_info").unwrap();
    let start = dwarf.debug_info.reader().slice().as_ptr() as usize;
    let mut found = Vec::new();
    // By depth the names of the entries around.
    let mut around: Vec<String> = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs().unwrap() {
        let name = entry.attr_value(gimli::DW_AT_name);
        let name = name.map(|name| dwarf.attr_string(&unit, name).unwrap().to_string_lossy());
        let name = name.map_or_else(String::new, |name| name.into_owned());
        around.truncate(entry.depth() as usize);
        around.push(name.clone());
        let Some(gimli::AttributeValue::Exprloc(location)) =
            entry.attr_value(gimli::DW_AT_location)
        else {
            continue;
        };
        // The operand of `DW_OP_addr` is behind its byte.
        let at = (location.0.slice().as_ptr() as usize - start + 1) as u64;
        let mut operations = location.operations(unit.encoding());
        let Some(gimli::Operation::Address { address }) = operations.next().unwrap() else {
            panic!("{location:?}");
        };
        let place = match info.relocations().find(|(offset, _)| *offset == at) {
            Some((_, relocation)) => match relocation.target() {
                RelocationTarget::Symbol(symbol) => file
                    .symbol_by_index(symbol)
                    .unwrap()
                    .name()
                    .unwrap()
                    .to_owned(),
                other => panic!("{other:?}"),
            },
            None => format!("{address:#x}"),
        };
        found.push((name, around[around.len() - 2].clone(), place));
    }
    found
}

#[test]
fn static_variables_have_dwarf() {
    let expected = [
        ("a::COUNTER", "a.clif", "counter".to_string()),
        (
            "a::tile",
            "saxpy",
            format!("{:#x}", crate::abi::SHARED_WINDOW + 16),
        ),
    ];
    let expected = expected.map(|(name, around, place)| (name.into(), around.into(), place));
    assert_eq!(statics_of(&sample().write().unwrap()), expected);
    // A linked file is loaded, too, before its data has addresses.
    let mut other = sample();
    other.functions.clear();
    other.data = vec![DataObject {
        name: "elsewhere".to_string(),
        linkage: Linkage::Global,
        ..other.data[1].clone()
    }];
    other.statics.clear();
    let linked = Linker::new()
        .add("a", &sample())
        .add("b", &other)
        .link()
        .unwrap();
    assert_eq!(statics_of(&linked.write_linked().unwrap()), expected);
}

#[test]
fn is_what_others_expect_of_elf() {
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
    let bytes = sample().write().unwrap();
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes.as_slice()).unwrap();
    assert_eq!(
        file.elf_header().e_machine.get(object::Endianness::Little),
        object::elf::Machine(MACHINE)
    );
    let text = file.section_by_name(".text.saxpy").unwrap();
    assert_eq!(text.data().unwrap().len(), 48);
    assert_eq!(text.relocations().count(), 3);
    let names: Vec<&str> = file
        .symbols()
        .filter_map(|s| s.name().ok())
        .filter(|n| !n.is_empty())
        .collect();
    assert_eq!(
        names,
        [
            "name with spaces",
            "$constants",
            "counter",
            "saxpy",
            "table",
            "elsewhere"
        ]
    );
    assert!(file.section_by_name(".note.thisgpu").is_some());
}

#[test]
fn links() {
    let mut object = sample();
    let addresses = |name: &str| match name {
        "table" => Some(0xfedc_ba98_7654_3200),
        "elsewhere" => Some(0x1000),
        "saxpy" => Some(0x40),
        _ => None,
    };
    object.functions[0].link(0x40, &addresses).unwrap();
    let field = |word: u128| (word >> 32) as u32;
    assert_eq!(
        object.functions[0]
            .words
            .iter()
            .map(|w| field(*w))
            .collect::<Vec<_>>(),
        [0x7654_3204, 0xfedc_ba98, 0xf80]
    );
    assert_eq!(
        object.functions[0].words[1] | 0xffff_ffff << 32,
        u128::MAX,
        "no other bit changes"
    );
    let relocation = object.data[0].relocations[0].clone();
    let DataContents::Bytes(bytes) = &mut object.data[0].contents else {
        panic!()
    };
    let address = relocation
        .link_data("table", bytes.len() as u64, &addresses)
        .unwrap();
    bytes[relocation.offset as usize..][..8].copy_from_slice(&address);
    assert_eq!(bytes[8..16], [0x40, 0, 0, 0, 0, 0, 0, 0]);
    for (addend, value) in [(-0x41, "-0x1"), (i64::MIN, "-0x7fffffffffffffc0")] {
        let beyond = Relocation {
            addend,
            ..relocation.clone()
        };
        let error = beyond.link_data("table", 16, &addresses).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(&format!(" does not fit: {value}")),
            "{error}"
        );
    }
    let highest = |_: &str| Some(u64::MAX);
    assert_eq!(relocation.link_data("table", 16, &highest), Ok([0xff; 8]));
    let beyond = Relocation {
        addend: 1,
        ..relocation
    };
    let error = beyond.link_data("table", 16, &highest).unwrap_err();
    assert!(
        matches!(error, LinkError::OutOfRange { value, .. } if value == 1 << 64),
        "{error}"
    );
    let errors = sample().functions[0].link(0, &|_: &str| None).unwrap_err();
    // An address is in two words.
    assert_eq!(errors.iter().count(), 2);
    let errors = sample().functions[0]
        .link(0, &|_: &str| Some(1 << 40))
        .unwrap_err();
    assert!(
        matches!(errors.as_slice()[0], LinkError::OutOfRange { .. }),
        "{errors:?}"
    );
}

/// An object whose only function reads constant memory in both ways, and does something else.
fn constants() -> Object {
    let [r4, r5] = [4, 5].map(PReg::gpr);
    let sum = iadd::Options::new(IExt::NoX);
    let operand = Constant { bank: 3, offset: 0 };
    let insts: [PInst; 3] = [
        build::ldc_r(ldc::Options::new(LoadSize::W32), r4, 3, r5, 8),
        build::iadd_rc(sum, r4, PT, r5, operand, !PT),
        build::iadd_ri(sum, r4, PT, r5, 7, !PT),
    ];
    let words = insts.map(|inst| inst.encode(Control::default()).unwrap());
    let relocation = |(offset, addend)| Relocation {
        offset,
        kind: RelocationKind::Const,
        symbol: CONSTANTS.to_owned(),
        addend,
    };
    Object {
        functions: vec![ObjectFunction {
            name: "f".to_owned(),
            words: words.to_vec(),
            relocations: [(0, 8), (16, 12)].map(relocation).to_vec(),
            ..ObjectFunction::default()
        }],
        constants: vec![0; 16],
        ..Object::default()
    }
}

#[test]
fn constants_have_their_place_in_the_bank() {
    /// Another object's constants stand before these.
    struct Behind(u64);
    impl Symbols for Behind {
        fn address(&self, _: &str) -> Option<u64> {
            None
        }
        fn constants(&self) -> u64 {
            self.0
        }
    }
    let object = constants();
    assert_eq!(
        Object::read(&object.write().unwrap()).unwrap(),
        object,
        "the section's own symbol is no undefined one"
    );
    assert!(object.undefined().is_empty());
    let texts = |base| {
        let mut function = object.functions[0].clone();
        function.link(0x40, &Behind(base)).unwrap();
        let text = |word: &u128| decode(*word).unwrap().0.to_string();
        function.words.iter().map(text).collect::<Vec<_>>()
    };
    let [load, operand, other] = &texts(0x120)[..] else {
        panic!("three instructions")
    };
    assert!(load.contains("3, [R5+0x128]"), "{load}");
    assert!(operand.contains("c[0x3][0x12c]"), "{operand}");
    assert_eq!(other, &texts(0)[2]);
    assert!(texts(0)[0].contains("3, [R5+0x8]"));

    let mut function = object.functions[0].clone();
    let errors = function.link(0, &Behind(1 << 23)).unwrap_err();
    assert!(matches!(
        errors.as_slice(),
        [LinkError::OutOfRange { .. }, LinkError::OutOfRange { .. }]
    ));
    // Where an address only begins may be before the constants; an operand may not.
    let mut function = object.functions[0].clone();
    for relocation in &mut function.relocations {
        relocation.addend = -4;
    }
    let errors = function.link(0, &Behind(0)).unwrap_err();
    assert!(matches!(
        errors.as_slice(),
        [LinkError::OutOfRange { value: -4, .. }]
    ));
    assert!(errors.to_string().ends_with(" does not fit: -0x4"));
    let load = decode(function.words[0]).unwrap().0.to_string();
    assert!(load.contains("3, [R5-0x4]"), "{load}");

    let mut function = object.functions[0].clone();
    function.relocations[1].offset = 32;
    let errors = function.link(0, &Behind(0)).unwrap_err();
    assert!(
        matches!(errors.as_slice(), [LinkError::BadPlace { .. }]),
        "{errors:?}"
    );
}

#[test]
fn refuses_what_is_no_object() {
    let object = sample();
    let bytes = object.write().unwrap();
    assert!(matches!(Object::read(b"hello"), Err(ReadError::Elf(_))));
    let mut other = bytes.clone();
    other[18] ^= 1;
    assert!(matches!(
        Object::read(&other),
        Err(ReadError::Machine { .. })
    ));
    for cut in 0..bytes.len() {
        let _ = Object::read(&bytes[..cut]);
    }
    for at in 0..bytes.len() {
        for flip in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let _ = Object::read(&changed);
        }
    }
    let mut twice = object.clone();
    twice.data[0].name = "saxpy".to_string();
    assert!(matches!(twice.write(), Err(WriteError::Duplicate(_))));
    let mut outside = object;
    outside.functions[0].relocations[2].offset = 48;
    assert!(matches!(outside.write(), Err(WriteError::Outside { .. })));
}

/// Constants that are not there, or have another name, are found before a file without them is written, and in a file.
#[test]
fn relocations_of_constants_have_constants() {
    let whole = constants();
    let mut file = whole.write().expect("it has its constants");
    let name = (file.windows(7).position(|part| part == b".const\0")).expect("there is a section");
    file[name + 1] = b'C';
    let error = Object::read(&file).expect_err("the constants are another's");
    assert_eq!(
        error.to_string(),
        "f+0x0: a relocation of constants that are not there"
    );
    let mut without = whole.clone();
    without.constants.clear();
    let mut renamed = whole;
    renamed.functions[0].relocations[1].symbol = "others".to_owned();
    for (object, expected) in [(without, 0), (renamed, 16)] {
        let error = object.write().expect_err("there are no such constants");
        assert!(
            matches!(error, WriteError::Constants { offset, .. } if offset == expected),
            "{error}"
        );
    }
}

#[test]
fn lines() {
    let f = &sample().functions[0];
    assert_eq!(
        [
            f.line_at(0),
            f.line_at(16),
            f.line_at(32),
            sample().functions[1].line_at(0)
        ],
        [Some(7), Some(7), Some(9), None]
    );
}

/// More sections than the 16 bits of a symbol can number: their numbers stand in `.symtab_shndx`, their count in the
/// first section header.
#[test]
fn more_functions_than_sections_have_numbers() {
    use object::read::elf::{FileHeader as _, SectionHeader as _};
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
    const COUNT: usize = 70_000;
    let function = |index: usize| ObjectFunction {
        name: format!("f{index}"),
        linkage: [Linkage::Local, Linkage::Global][index % 2],
        words: vec![index as u128],
        relocations: if index % 5_000 == 4_999 {
            vec![Relocation {
                offset: 0,
                kind: RelocationKind::Rel,
                symbol: format!("f{}", COUNT - index),
                addend: 4,
            }]
        } else {
            Vec::new()
        },
        ..ObjectFunction::default()
    };
    let object = Object {
        functions: (0..COUNT).map(function).collect(),
        data: sample().data,
        constants: vec![1, 2, 3],
        ..Object::default()
    };
    for bytes in [object.write().unwrap(), object.write_linked().unwrap()] {
        assert!(Object::read(&bytes).unwrap().functions.len() == COUNT);
        let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).unwrap();
        let endian = header.endian().unwrap();
        assert_eq!(header.e_shnum.get(endian), 0, "it is in the first header");
        let sections = header.sections(endian, &*bytes).unwrap();
        assert!(sections.len() > COUNT);
        let of_type = |ty| sections.iter().filter(move |s| s.sh_type(endian) == ty);
        let numbers: Vec<_> = of_type(object::elf::SHT_SYMTAB_SHNDX).collect();
        let symbols = of_type(object::elf::SHT_SYMTAB).next().unwrap();
        assert_eq!(numbers.len(), 1);
        assert_eq!(
            numbers[0].sh_size(endian) / 4,
            symbols.sh_size(endian) / symbols.sh_entsize(endian),
            "a number for each symbol"
        );
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).unwrap();
        for name in ["f0", "f65278", "f65279", "f65280", "f69999", "counter"] {
            let symbol = file.symbols().find(|s| s.name() == Ok(name)).unwrap();
            let section = file
                .section_by_index(symbol.section_index().unwrap())
                .unwrap();
            assert!(
                section.name().unwrap().ends_with(&format!(".{name}")),
                "{name}: {:?}",
                section.name()
            );
        }
    }
    assert!(Object::read(&object.write().unwrap()).unwrap() == object);
}
