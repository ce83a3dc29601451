//! Objects through the file and back, deterministic, and what is refused.

use super::*;

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
                        },
                        Parameter {
                            offset: 0x168,
                            size: 8,
                            kind: ParameterKind::Pointer,
                        },
                    ],
                    shared_bytes: 512,
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
                    Line { offset: 0, line: 7 },
                    Line {
                        offset: 32,
                        line: 9,
                    },
                ],
                ..ObjectFunction::default()
            },
            ObjectFunction {
                name: "name with spaces".to_string(),
                linkage: Linkage::Local,
                words: vec![5],
                ..ObjectFunction::default()
            },
        ],
        constants: vec![1, 2, 3, 4, 5],
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
        ["name with spaces", "counter", "saxpy", "table", "elsewhere"]
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
    let errors = sample().functions[0].link(0, &|_: &str| None).unwrap_err();
    assert_eq!(errors.len(), 3);
    let errors = sample().functions[0]
        .link(0, &|_: &str| Some(1 << 40))
        .unwrap_err();
    assert!(
        matches!(errors[0], LinkError::OutOfRange { .. }),
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
