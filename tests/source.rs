//! Places in the source: numbers of a front end's table in faults, remarks, errors and line tables; calls in faults;
//! debug information.

#[path = "common/dwarf.rs"]
mod dwarf;

use cranelift_codegen::ir::{Function, SourceLoc};
use cranelift_thisgpu::SourceFile;
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, DeviceError, Grid};
use cranelift_thisgpu::locations::Locations;
use cranelift_thisgpu::object::{Linker, Object};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{Fault, SimConfig};
use object::Object as _;
use std::borrow::Cow;
use std::sync::Arc;

/// A kernel that calls a function that calls one that loads from the address it was given.
const TEXT: &str = "; kernel
function %k(i64) {
    fn0 = %outer(i64) -> i32
block0(v0: i64):
    v1 = call fn0(v0)
    store v1, v0
    return
}
function %outer(i64) -> i32 {
    fn0 = %inner(i64) -> i32
block0(v0: i64):
    v1 = call fn0(v0)
    v2 = call fn0(v0)
    v3 = iadd v1, v2
    return v3
}
function %inner(i64) -> i32 {
block0(v0: i64):
    v1 = load.i32 aligned v0
    return v1
}
";

fn fault(object: &impl AsRef<Object>, address: u64) -> Fault {
    let device = Device::simulator(SimConfig::default());
    let module = device.load(object).unwrap();
    let kernel = module.kernel("k").unwrap();
    match kernel
        .launch(Grid::new([1, 1, 1], [1, 1, 1]))
        .arg(address)
        .run()
    {
        Err(DeviceError::Fault { fault, .. }) => *fault,
        other => panic!("{other:?}"),
    }
}

fn compile(name: &str, text: &str) -> Code {
    let file = SourceFile::parse(name, text).unwrap();
    let mut compiler = Compiler::new(Options::default());
    compiler
        .file(&file)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_fault_names_file_and_line_and_the_calls() {
    let fault = fault(&compile("k.clif", TEXT), 8);
    assert_eq!(fault.place.function.as_deref(), Some("inner"));
    assert_eq!(fault.place.source.as_deref(), Some("line 19 of k.clif"));
    let calls: Vec<(Option<&str>, Option<&str>)> = (fault.calls.iter())
        .map(|frame| (frame.function.as_deref(), frame.source.as_deref()))
        .collect();
    let expected = [
        (Some("outer"), Some("line 12 of k.clif")),
        (Some("k"), Some("line 5 of k.clif")),
    ];
    assert_eq!(calls, expected);
    let text = fault.to_string();
    assert!(
        text.contains("\n  called from outer, pc 0x") && text.ends_with("(line 5 of k.clif)"),
        "{text}"
    );
}

#[test]
fn calls_that_have_returned_are_none() {
    // The first call of the function loads, the second one faults.
    let text = TEXT.replace(
        "v2 = call fn0(v0)",
        "v4 = iconst.i64 8\n    v2 = call fn0(v4)",
    );
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&compile("k.clif", &text)).unwrap();
    let buffer = device.allocate_zeroed(64).unwrap();
    let kernel = module.kernel("k").unwrap();
    let error = kernel
        .launch(Grid::new([1, 1, 1], [32, 1, 1]))
        .arg(&buffer)
        .run()
        .unwrap_err();
    let DeviceError::Fault { fault, .. } = error else {
        panic!("{error}")
    };
    let sources: Vec<&str> = fault
        .calls
        .iter()
        .filter_map(|f| f.source.as_deref())
        .collect();
    assert_eq!(sources, ["line 14 of k.clif", "line 5 of k.clif"]);
}

#[test]
fn a_deep_recursion_has_an_end_to_its_calls() {
    let text = "; kernel
function %k(i64) {
    fn0 = %f(i64)
block0(v0: i64):
    call fn0(v0)
    return
}
function %f(i64) {
    ss0 = explicit_slot 64
    fn0 = %f(i64)
block0(v0: i64):
    v1 = stack_addr.i64 ss0
    store v1, v1
    call fn0(v1)
    v2 = load.i64 v1
    store v2, v2
    return
}";
    let fault = fault(&compile("k.clif", text), 8);
    assert!(fault.to_string().contains("stack overflow"), "{fault}");
    assert_eq!(fault.calls.len(), 256);
    assert!(fault.depth > 256, "{}", fault.depth);
    assert!(fault.to_string().lines().count() < 20, "{fault}");
    assert!(fault.to_string().contains(" more calls"), "{fault}");
}

#[test]
fn library_code_is_named_as_such() {
    let text = "; kernel
function %k(i64) {
    fn0 = %memset(i64, i32, i64) -> i64
block0(v0: i64):
    v1 = iconst.i32 7
    v2 = call fn0(v0, v1, v0)
    return
}";
    let fault = fault(&compile("k.clif", text), 8);
    assert_eq!(fault.place.function.as_deref(), Some("memset"));
    assert!(fault.place.library, "{fault}");
    assert!(
        fault
            .to_string()
            .contains("in memset of the compiler's library"),
        "{fault}"
    );
    assert!(
        matches!(&fault.calls[..], [frame] if !frame.library),
        "{:?}",
        fault.calls
    );
}

/// The function with the numbers of a table in place of its lines: line N of a file is line 100 + N of another, column
/// N.
fn with_table(func: &mut Function, table: &mut Locations) {
    let blocks: Vec<_> = func.layout.blocks().collect();
    let insts: Vec<_> = (blocks.into_iter())
        .flat_map(|block| func.layout.block_insts(block).collect::<Vec<_>>())
        .collect();
    for inst in insts {
        let line = func.srcloc(inst).bits();
        let file = table.file(if line < 9 { "kernel.src" } else { "device.src" });
        let number: SourceLoc = table.add(file, 100 + line, line);
        func.set_srcloc(inst, number);
    }
}

#[test]
fn a_front_ends_table_says_what_numbers_stand_for() {
    let mut file = SourceFile::parse("k.clif", TEXT).unwrap();
    let mut table = Locations::table();
    for function in &mut file.functions {
        with_table(&mut function.func, &mut table);
    }
    let mut compiler = Compiler::new(Options::default());
    compiler.set_locations(Some(Arc::new(table)));
    compiler.collect_remarks(true);
    let code = compiler.file(&file).unwrap();
    assert_eq!(code.object().files, ["kernel.src", "device.src"]);
    let read = Object::read(&code.to_elf().unwrap()).unwrap();
    assert_eq!(&read, code.object());
    // The listing says the same.
    let (listing, _) = asm::listing(code.object());
    assert_eq!(
        asm::assemble("k.s", &listing).unwrap().object.files,
        read.files
    );
    let fault = fault(&read, 8);
    assert_eq!(
        fault.place.source.as_deref(),
        Some("line 119, column 19 of device.src")
    );
    let sources: Vec<&str> = fault
        .calls
        .iter()
        .filter_map(|f| f.source.as_deref())
        .collect();
    assert_eq!(
        sources,
        [
            "line 112, column 12 of device.src",
            "line 105, column 5 of kernel.src"
        ]
    );
}

#[test]
fn errors_and_remarks_use_the_table() {
    let text = "function %f(f128, i64) -> f128 {
block0(v0: f128, v1: i64):
    v2 = fadd v0, v0
    return v2
}
";
    let mut file = SourceFile::parse("k.clif", text).unwrap();
    let mut table = Locations::table();
    with_table(&mut file.functions[0].func, &mut table);
    let mut compiler = Compiler::new(Options::default());
    compiler.set_locations(Some(Arc::new(table)));
    let errors = compiler.file(&file).unwrap_err().to_string();
    assert!(
        errors.starts_with("kernel.src:103:3: unsupported: fadd.f128"),
        "{errors}"
    );
    let text = "function %f(i64) -> i32, i32 {
block0(v0: i64):
    v1 = load.i32 v0
    v2 = load.i32 v0+4
    return v1, v2
}
";
    let mut file = SourceFile::parse("k.clif", text).unwrap();
    let mut table = Locations::table();
    with_table(&mut file.functions[0].func, &mut table);
    compiler.set_locations(Some(Arc::new(table)));
    compiler.collect_remarks(true);
    let code = compiler.file(&file).unwrap();
    let remarks: Vec<String> = code.remarks().iter().map(ToString::to_string).collect();
    assert!(
        remarks
            .iter()
            .any(|r| r.starts_with("kernel.src:103:3: %f: ")),
        "{remarks:?}"
    );
}

/// What `addr2line` finds at an address of a file: function, file, line, column.
fn addr2line(bytes: &[u8], address: u64) -> Option<(String, String, u32, u32)> {
    let context = addr2line::Context::from_dwarf(dwarf::load(bytes)).unwrap();
    let mut frames = context.find_frames(address).skip_all_loads().unwrap();
    let frame = frames.next().unwrap()?;
    let location = frame.location?;
    let function = frame.function?;
    let name: Cow<'_, str> = function.raw_name().unwrap();
    Some((
        name.into_owned(),
        location.file?.to_owned(),
        location.line?,
        location.column.unwrap_or(0),
    ))
}

#[test]
fn addr2line_reads_linked_files() {
    let [first, second] = ["; kernel\nfunction %k(i64)", "function %inner"].map(|start| {
        let at = TEXT.find(start).unwrap();
        &TEXT[at..]
    });
    let first = compile("k.clif", first.strip_suffix(second).unwrap());
    let second = compile("inner.clif", second);
    let whole = Linker::new()
        .add("k", &first)
        .add("inner", &second)
        .link()
        .unwrap();
    let bytes = whole.write_linked().unwrap();
    let read = Object::read(&bytes).unwrap();
    let fault = fault(&read, 8);
    let found = addr2line(&bytes, fault.place.pc.into());
    assert_eq!(found, Some(("inner".into(), "inner.clif".into(), 3, 0)));
    let calls: Vec<_> = fault
        .calls
        .iter()
        .map(|f| addr2line(&bytes, f.pc.into()).unwrap())
        .collect();
    assert_eq!(
        calls,
        [
            ("outer".into(), "k.clif".into(), 12, 0),
            ("k".into(), "k.clif".into(), 5, 0)
        ]
    );
    // Every instruction that has a line, by both ways.
    for (function, start) in whole.functions.iter().zip(whole.code_addresses()) {
        for offset in (0..function.len()).step_by(16) {
            if let Some(location) = function.location_at(offset as u32) {
                let file = whole.file_name(location.file).unwrap().to_owned();
                let expected = (function.name.clone(), file, location.line, location.column);
                assert_eq!(addr2line(&bytes, start + offset), Some(expected));
            }
        }
    }
    assert_eq!(addr2line(&bytes, 0), None);
}

#[test]
fn unlinked_objects_have_debug_information_with_relocations() {
    let code = compile("k.clif", TEXT);
    let bytes = code.to_elf().unwrap();
    assert_eq!(bytes, code.to_elf().unwrap());
    let file = object::File::parse(&*bytes).unwrap();
    for name in [
        ".debug_info",
        ".debug_line",
        ".debug_abbrev",
        ".rela.debug_info",
        ".rela.debug_line",
    ] {
        assert!(file.section_by_name(name).is_some(), "{name}");
    }
    let mut options = Options::default();
    options.set("lines=false").unwrap();
    let code = Compiler::new(options).compile_clif(TEXT).unwrap();
    let bytes = code.to_elf().unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    assert!(file.section_by_name(".debug_info").is_none());
}
