//! Data that nobody writes: what functions read of it is the same whether the compiler knows what it holds or not.

#![cfg(all(feature = "asm", feature = "driver", feature = "sim"))]

use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Code, Compiler, FunctionInput, SourceFile, Unit};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::object::{DataContents, DataObject, Linkage};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;

/// Bytes of the table.
const BYTES: u32 = 1024;

/// A load and what it gives, in bytes.
const LOADS: [(&str, &str, u32, u32); 17] = [
    ("load.i8", "i8", 1, 1),
    ("load.i16", "i16", 2, 2),
    ("load.i32", "i32", 4, 4),
    ("load.i64", "i64", 8, 8),
    ("load.i128", "i128", 16, 16),
    ("load.f16", "f16", 2, 2),
    ("load.f32", "f32", 4, 4),
    ("load.f64", "f64", 8, 8),
    ("load.i32x4", "i32x4", 16, 16),
    ("load.i16 big", "i16", 2, 2),
    ("load.i64 big", "i64", 8, 8),
    ("uload8.i32", "i32", 1, 4),
    ("sload8.i64", "i64", 1, 8),
    ("uload16.i64", "i64", 2, 8),
    ("sload16.i32", "i32", 2, 4),
    ("uload32", "i64", 4, 8),
    ("sload32", "i64", 4, 8),
];

/// Where a load reads: at a constant, at what the kernel is passed, at what the lane is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Index {
    Constant,
    Uniform,
    Lane,
}

/// `k(out: i64, index: i32)`: each lane stores what it loads, as bytes, at 16 times its number.
fn text((load, ty, size, _): (&str, &str, u32, u32), index: Index, offset: i32) -> String {
    let (opcode, flags) = load.split_once(' ').unwrap_or((load, ""));
    let shift = size.trailing_zeros();
    let index = match index {
        Index::Constant => "iconst.i32 17",
        Index::Uniform => "iadd v1, v12",
        Index::Lane => "bor v2, v13",
    };
    format!(
        "; kernel
function %k(i64, i32) {{
    gv0 = symbol colocated %table
    fn0 = %gpu_tid_x() -> i32

block0(v0: i64, v1: i32):
    v2 = call fn0()
    v12 = iconst.i32 0
    v13 = iconst.i32 16
    v14 = iconst.i64 {shift}
    v15 = iconst.i64 4
    v3 = {index}
    v4 = uextend.i64 v3
    v5 = ishl v4, v14
    v6 = symbol_value.i64 gv0
    v7 = iadd v6, v5
    v8 = {opcode} notrap aligned {flags} v7{offset:+}
    v9 = uextend.i64 v2
    v10 = ishl v9, v15
    v11 = iadd v0, v10
    store notrap aligned v8, v11
    return
}}
; {ty}
"
    )
}

fn content() -> Vec<u8> {
    let mut state = 0x2545_f491_u32;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..BYTES).map(|_| byte()).collect()
}

/// The code with a table that is known or not.
fn compile(text: &str, options: &Options, known: bool) -> Code {
    compile_by(&mut Compiler::new(options.clone()), text, content(), known)
}

fn compile_by(compiler: &mut Compiler, text: &str, content: Vec<u8>, known: bool) -> Code {
    let file = SourceFile::parse("table.clif", text).unwrap();
    let mut unit = Unit::new();
    if known {
        unit.announce_table("table", &content, 16);
    }
    unit.announce_file(&file);
    for function in &file.functions {
        let name = function.name();
        let input = FunctionInput::of_source(function, &name);
        compiler.compile_function(&input, &mut unit).unwrap();
    }
    unit.push_data(object(content));
    unit.finish().unwrap()
}

fn object(content: Vec<u8>) -> DataObject {
    DataObject {
        name: "table".to_owned(),
        linkage: Linkage::Local,
        writable: false,
        align: 16,
        contents: DataContents::Bytes(content),
        relocations: Vec::new(),
    }
}

fn run(code: &Code, index: i32) -> Vec<u8> {
    let device = Device::simulator(SimConfig::default());
    let module = device.load(code).unwrap();
    let out = device.zeros::<u8>(32 * 16).unwrap();
    let kernel = module.kernel("k").unwrap();
    let launch = kernel.launch(Grid::for_elems(16, 16)).arg(&out).arg(index);
    launch.run().unwrap();
    out.to_vec().unwrap()
}

fn listing(code: &Code) -> String {
    asm::listing(code.object()).0
}

fn has(code: &Code, mnemonic: &str) -> bool {
    let listing = listing(code);
    listing
        .lines()
        .any(|line| line.split_whitespace().any(|w| w.starts_with(mnemonic)))
}

#[test]
fn loads_give_the_same_wherever_they_read() {
    let mut unoptimized = Options::default();
    unoptimized.set("opt_level=none").unwrap();
    for load in LOADS {
        for kind in [Index::Constant, Index::Uniform, Index::Lane] {
            for offset in [0, 16, -16] {
                for options in [&Options::default(), &unoptimized] {
                    let text = text(load, kind, offset);
                    let index = 32 / load.2 as i32;
                    let known = compile(&text, options, true);
                    let expected = run(&compile(&text, options, false), index);
                    let what = format!("{text}\n{kind:?} {offset} {}", listing(&known));
                    assert_eq!(run(&known, index), expected, "{what}");
                }
            }
        }
    }
}

#[test]
fn constant_offsets_are_constants_and_shared_ones_read_constant_memory() {
    let load = ("load.i32", "i32", 4, 4);
    let code = |index, offset| compile(&text(load, index, offset), &Options::default(), true);
    let constant = code(Index::Constant, 0);
    assert!(!has(&constant, "LDG") && !has(&constant, "LDC"));
    let uniform = code(Index::Uniform, 4);
    assert!(!has(&uniform, "LDG") && has(&uniform, "LDC"));
    let lane = code(Index::Lane, 4);
    assert!(has(&lane, "LDG") && !has(&lane, "LDC"));
    // A negative offset of an index that may be small is none in the bank.
    assert!(has(&code(Index::Uniform, -4), "LDG"));
    // An object that nobody reads there is not in the bank.
    assert!(lane.object().constants.is_empty());
    assert_eq!(uniform.object().constants, content());
}

/// A sum of a table's address and the way from there to another object leads to that object.
#[test]
fn a_difference_of_addresses_is_no_index() {
    let text = "; kernel
function %k(i64, i32) {
    gv0 = symbol colocated %table

block0(v0: i64, v1: i32):
    v2 = iconst.i64 -8
    v3 = symbol_value.i64 gv0
    v4 = isub v0, v3
    v5 = band v4, v2
    v6 = iadd v3, v5
    store.i32 notrap aligned v1, v0
    v7 = load.i32 notrap aligned v6
    store.i32 notrap aligned v7, v0+4
    return
}
";
    for setting in ["opt_level=none", "opt_level=speed"] {
        let mut options = Options::default();
        options.set(setting).unwrap();
        let out = run(&compile(text, &options, true), 77);
        assert_eq!(out[4..8], 77u32.to_le_bytes(), "{setting}");
    }
}

/// Turns of a loop that is unrolled read at constant offsets.
#[test]
fn what_unrolled_loops_read_is_constant() {
    let text = "; kernel
function %k(i64, i32) {
    gv0 = symbol colocated %table

block0(v0: i64, v1: i32):
    v2 = iconst.i64 0
    v3 = iconst.i64 1
    v4 = iconst.i64 5
    v5 = iconst.i64 2
    v6 = iconst.i32 0
    jump block1(v2, v6)

block1(v10: i64, v11: i32):
    v12 = symbol_value.i64 gv0
    v13 = ishl v10, v5
    v14 = iadd v12, v13
    v15 = load.i32 notrap aligned v14+8
    v16 = imul v15, v1
    v17 = iadd v11, v16
    v18 = iadd v10, v3
    v19 = icmp ult v18, v4
    brif v19, block1(v18, v17), block2

block2:
    store.i32 notrap aligned v17, v0
    return
}
";
    let known = compile(text, &Options::default(), true);
    assert!(
        !has(&known, "LDG") && !has(&known, "LDC"),
        "{}",
        listing(&known)
    );
    assert_eq!(
        run(&known, 3),
        run(&compile(text, &Options::default(), false), 3)
    );
}

/// What a table holds is part of the key of the functions that name it, and of no others.
#[cfg(feature = "cache")]
#[test]
fn code_in_the_cache_has_what_the_table_held() {
    use cranelift_thisgpu::compile::Cache;
    use std::sync::Arc;

    let folder = std::env::temp_dir().join(format!("thisgpu-tables-{}", std::process::id()));
    let cache = Arc::new(Cache::open(&folder, 1 << 20).unwrap());
    let text = text(LOADS[2], Index::Constant, 0);
    let mut other = content();
    other[4 * 17] ^= 1;
    for content in [content(), other.clone(), content(), other] {
        let mut compiler = Compiler::new(Options::default());
        compiler.use_cache(Some(cache.clone()));
        let known = compile_by(&mut compiler, &text, content.clone(), true);
        assert_eq!(run(&known, 0)[..4], content[4 * 17..4 * 18]);
    }
    assert_eq!(cache.hits(), 2);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A bank that jump tables fill has no room for tables that come later.
#[test]
fn tables_that_find_the_bank_full_are_read_in_global_memory() {
    let targets = vec!["block1, block2"; 8190].join(", ");
    let first = format!(
        "function %first(i32) -> i32 {{
block0(v0: i32):
    br_table v0, block1, [{targets}]
block1:
    v1 = iconst.i32 1
    return v1
block2:
    v2 = iconst.i32 2
    return v2
}}
"
    );
    let mut unit = Unit::new();
    unit.announce_table("table", &content(), 16);
    let mut compiler = Compiler::new(Options::default());
    for text in [first, text(LOADS[2], Index::Uniform, 0)] {
        let file = SourceFile::parse("table.clif", &text).unwrap();
        unit.announce_file(&file);
        for function in &file.functions {
            let name = function.name();
            let input = FunctionInput::of_source(function, &name);
            compiler.compile_function(&input, &mut unit).unwrap();
        }
    }
    unit.push_data(object(content()));
    let code = unit.finish().unwrap();
    assert!(has(&code, "LDG"));
    assert_eq!(run(&code, 8)[..4], content()[4 * 8..4 * 9]);
}
