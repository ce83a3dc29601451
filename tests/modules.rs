//! Modules of many functions on several threads, and units that were compiled apart.

#![cfg(all(
    feature = "asm",
    feature = "driver",
    feature = "module",
    feature = "sim"
))]

use cranelift_codegen::ir::{self, UserExternalName};
use cranelift_module::{FuncOrDataId, Module};
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Code, Compiler, DumpSink, FunctionInput, KernelOptions, Unit};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::module::GpuModule;
use cranelift_thisgpu::object::{DataContents, DataObject, Linkage, Object, RelocationKind};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::fmt::Write;

const THREADS: [usize; 4] = [1, 2, 3, 8];
const FUNCTIONS: usize = 40;

/// Functions of which each third has a jump table of `entries`, each calls the one before, and all read data and wide
/// constants. The kernel stores what the last says of the thread's number.
fn text(entries: usize) -> String {
    let mut out = String::new();
    for i in 0..FUNCTIONS {
        let callee = if i == 0 {
            String::new()
        } else {
            format!("    fn0 = %f{}(i32) -> i32\n", i - 1)
        };
        let call = if i == 0 {
            "v9 = iadd v8, v0"
        } else {
            "v9 = call fn0(v8)"
        };
        let (branch, cases) = if i % 3 == 0 {
            let targets: Vec<String> = (0..entries)
                .map(|e| format!("block{}", 1 + (e + i) % 3))
                .collect();
            (
                format!("br_table v0, block1, [{}]", targets.join(", ")),
                "v2 = iconst.i32 11",
            )
        } else {
            ("brif v0, block2, block3".to_owned(), "v2 = iconst.i32 12")
        };
        let header = if i % 3 == 0 {
            "block1:"
        } else {
            "block1: ; never reached"
        };
        write!(
            out,
            "function %f{i}(i32) -> i32 {{
    gv0 = symbol colocated %table
{callee}
block0(v0: i32):
    {branch}
{header}
    {cases}
    jump block4(v2)
block2:
    v3 = iconst.i32 {}
    jump block4(v3)
block3:
    v4 = iconst.i32 {}
    jump block4(v4)
block4(v5: i32):
    v6 = symbol_value.i64 gv0
    v7 = load.i32 aligned v6+{}
    v8 = iadd v5, v7
    {call}
    return v9
}}
",
            1000 + i,
            0x1234_5600 + i,
            4 * (i % 4)
        )
        .unwrap();
    }
    write!(
        out,
        "; kernel
function %k(i64) {{
    fn0 = %gpu_tid_x() -> i32
    fn1 = %f{}(i32) -> i32
block0(v0: i64):
    v1 = call fn0()
    v2 = call fn1(v1)
    v3 = uextend.i64 v1
    v4 = iconst.i64 2
    v5 = ishl v3, v4
    v6 = iadd v0, v5
    store aligned v2, v6
    return
}}
",
        FUNCTIONS - 1
    )
    .unwrap();
    out
}

fn table() -> DataObject {
    DataObject {
        name: "table".to_owned(),
        linkage: Linkage::Local,
        writable: false,
        align: 16,
        contents: DataContents::Bytes((1..=4u32).flat_map(|i| (100 * i).to_le_bytes()).collect()),
        relocations: Vec::new(),
    }
}

/// What the kernel stores for so many threads, by the text's meaning.
fn expected(threads: u32, entries: usize) -> Vec<u32> {
    let of = |tid: u32| {
        let mut value = tid;
        for i in (0..FUNCTIONS).rev() {
            let case = if i % 3 != 0 {
                if value == 0 { 3 } else { 2 }
            } else if (value as usize) < entries {
                1 + (value as usize + i) % 3
            } else {
                1
            };
            let number = match case {
                1 => 11,
                2 => 1000 + i as u32,
                _ => 0x1234_5600 + i as u32,
            };
            let next = number.wrapping_add(100 * (1 + i as u32 % 4));
            value = if i == 0 {
                next.wrapping_add(value)
            } else {
                next
            };
        }
        value
    };
    (0..threads).map(of).collect()
}

fn results(code: &Code, threads: u32) -> Vec<u32> {
    let device = Device::simulator(SimConfig::default());
    let loaded = device.load(code).unwrap_or_else(|error| panic!("{error}"));
    let out = device.allocate(u64::from(4 * threads)).unwrap();
    let kernel = loaded.kernel("k").unwrap();
    let grid = Grid::new([1, 1, 1], [threads, 1, 1]);
    kernel.launch(grid).arg(&out).run().unwrap();
    device.download::<u32>(&out).unwrap()
}

/// The addends of all relocations of a kind, in the order of the code.
fn relocations(object: &Object, kind: RelocationKind) -> Vec<i64> {
    let all = object.functions.iter().flat_map(|f| &f.relocations);
    all.filter(|r| r.kind == kind).map(|r| r.addend).collect()
}

struct Parsed {
    file: SourceFile,
    names: Vec<String>,
}

impl Parsed {
    fn new(text: &str) -> Self {
        let file = SourceFile::parse("module", text).unwrap_or_else(|errors| panic!("{errors}"));
        let names = file.functions.iter().map(|f| f.name()).collect();
        Self { file, names }
    }

    fn inputs(&self) -> Vec<FunctionInput<'_>> {
        (self.file.functions.iter().zip(&self.names))
            .map(|(function, name)| FunctionInput::of_source(function, name))
            .collect()
    }

    fn compile(&self, threads: usize) -> Code {
        let mut unit = Unit::new();
        unit.push_data(table());
        Compiler::new(Options::default())
            .compile_module(&self.inputs(), &mut unit, threads)
            .unwrap_or_else(|errors| panic!("{errors}"));
        unit.finish().unwrap_or_else(|errors| panic!("{errors}"))
    }
}

#[test]
fn what_threads_share_can_be_sent() {
    fn sent<T: Send>() {}
    fn shared<T: Sync>() {}
    sent::<Compiler>();
    sent::<Unit>();
    shared::<Unit>();
    sent::<GpuModule>();
    sent::<DumpSink>();
    sent::<Code>();
    shared::<Code>();
    sent::<FunctionInput<'_>>();
    shared::<&(dyn Fn(&UserExternalName) -> Option<String> + Sync)>();
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let parsed = Parsed::new(&text(20));
    let [one, others @ ..] = THREADS.map(|threads| parsed.compile(threads).to_elf().unwrap());
    for (bytes, threads) in others.iter().zip(&THREADS[1..]) {
        assert!(*bytes == one, "{threads} threads");
    }
    let code = parsed.compile(2);
    let tables = FUNCTIONS.div_ceil(3);
    assert_eq!(code.object().constants.len(), tables * 4 * 21);
    assert_eq!(results(&code, 32), expected(32, 20));
    // Assembly text says as much as the object.
    let (listing, bad) = asm::listing(code.object());
    assert!(bad.is_empty());
    let assembled = asm::assemble("module.s", &listing).unwrap_or_else(|_| panic!("{listing}"));
    assert_eq!(
        relocations(&assembled.object, RelocationKind::Const),
        relocations(code.object(), RelocationKind::Const)
    );
}

/// The tables need twice the constant bank: which of them are in it is the same for all numbers of threads.
#[test]
fn tables_beyond_the_bank_stand_in_the_same_places() {
    let parsed = Parsed::new(&text(2_000));
    let [one, code] = [1, 3].map(|threads| parsed.compile(threads));
    assert!(one.to_elf().unwrap() == code.to_elf().unwrap());
    assert!(code.object().constants.len() <= 64 * 1024);
    assert_eq!(code.object().data.len(), 2, "some are in global memory");
    assert_eq!(results(&code, 32), expected(32, 2_000));
}

#[test]
fn errors_come_in_the_order_of_the_source() {
    let mut text = String::new();
    for i in 0..60 {
        let wrong = match i % 20 {
            7 => "v1 = iadd v0, v0\n    v2 = fcvt_from_sint.f128 v0\n    v3 = get_pinned_reg.i64\n",
            _ => "v1 = iadd v0, v0\n",
        };
        let name = if i == 50 { 49 } else { i };
        write!(
            text,
            "function %f{name}(i32) -> i32 {{\nblock0(v0: i32):\n    {wrong}    return v1\n}}\n"
        )
        .unwrap();
    }
    let file = SourceFile::parse("wrong", &text).unwrap();
    let messages = THREADS.map(|threads| {
        let mut compiler = Compiler::new(Options::default());
        compiler.file_on(&file, threads).unwrap_err().to_string()
    });
    let lines: Vec<&str> = messages[0].lines().collect();
    assert!(lines.len() >= 4, "{}", messages[0]);
    assert!(messages.iter().all(|message| *message == messages[0]));
    let numbers: Vec<u32> = (lines.iter())
        .filter_map(|line| line.strip_prefix("wrong:")?.split(':').next()?.parse().ok())
        .collect();
    assert!(numbers.len() >= 4 && numbers.is_sorted(), "{}", messages[0]);
    assert!(messages[0].contains("defined twice"), "{}", messages[0]);
}

/// A function that reads so many values before it uses the first of them, and a kernel that calls it.
fn wide(values: usize) -> String {
    let loads: String = (1..=values)
        .map(|i| format!("    v{i} = atomic_load.i32 v0\n"))
        .collect();
    let stores: String = (1..=values)
        .map(|i| format!("    store v{i}, v0+{}\n", 4 * i))
        .collect();
    format!(
        "function %wide(i64) -> i32 {{\nblock0(v0: i64):\n{loads}{stores}    return v1\n}}
; kernel
function %k(i64) {{
    fn0 = %wide(i64) -> i32
block0(v0: i64):
    v1 = call fn0(v0)
    return
}}
"
    )
}

/// A kernel may get its launch bounds before or after what it calls is defined, or after itself: the code is the same.
#[test]
fn launch_bounds_of_a_module_may_come_late() {
    #[derive(Clone, Copy, PartialEq)]
    enum When {
        First,
        BeforeTheKernel,
        Last,
    }
    let file = SourceFile::parse("wide.clif", &wide(60)).unwrap();
    let bounds = KernelOptions {
        max_threads: Some(1024),
        ..KernelOptions::default()
    };
    let module = |when: When, bounds: KernelOptions| {
        let mut module = GpuModule::new(Options::default()).unwrap();
        let ids: Vec<_> = (file.functions.iter())
            .map(|function| {
                let signature = &function.func.signature;
                module
                    .declare_function(
                        &function.name(),
                        cranelift_module::Linkage::Export,
                        signature,
                    )
                    .unwrap()
            })
            .collect();
        for (index, function) in file.functions.iter().enumerate() {
            let now = match when {
                When::First => index == 0,
                When::BeforeTheKernel => index == 1,
                When::Last => false,
            };
            if now {
                module.declare_kernel(ids[1], bounds);
            }
            let mut context = module.make_context();
            context.func = function.func.clone();
            module.define_function(ids[index], &mut context).unwrap();
        }
        if when == When::Last {
            module.declare_kernel(ids[1], bounds);
        }
        module.finish().unwrap()
    };
    let registers = |code: &Code| code.kernel("k").unwrap().resources().registers;
    let first = module(When::First, bounds);
    assert!(registers(&first) <= 64);
    assert!(registers(&module(When::First, KernelOptions::default())) > 64);
    for when in [When::BeforeTheKernel, When::Last] {
        assert_eq!(module(when, bounds), first);
    }
}

/// Units that were compiled apart: the kernel's bounds were unknown where what it calls was compiled.
#[test]
fn launch_bounds_are_checked_where_units_are_put_together() {
    let text = wide(60).replace("; kernel", "; kernel max_threads=1024");
    let parsed = Parsed::new(&text);
    let inputs = parsed.inputs();
    let mut compiler = Compiler::new(Options::default());
    let (mut unit, mut other) = (Unit::new(), Unit::new());
    compiler.compile_module(&inputs[..1], &mut unit, 1).unwrap();
    compiler
        .compile_module(&inputs[1..], &mut other, 1)
        .unwrap();
    unit.append(other);
    let error = unit.finish().unwrap_err().to_string();
    assert!(
        error.contains("leave a thread 64 registers, but `wide`, which it calls, needs"),
        "{error}"
    );
    assert!(error.contains("(in function %k)"), "{error}");
    assert!(parsed.compile(1).kernel("k").unwrap().resources().registers <= 64);
}

/// Halves of a module, compiled by two threads of the embedding that know of each other's functions.
#[test]
fn units_are_put_together() {
    let parsed = Parsed::new(&text(20));
    let inputs = parsed.inputs();
    let (first, second) = inputs.split_at(17);
    let half = |part: &[FunctionInput<'_>]| {
        let mut unit = Unit::new();
        unit.announce(&inputs);
        let mut compiler = Compiler::new(Options::default());
        for input in part {
            compiler.compile_function(input, &mut unit).unwrap();
        }
        unit
    };
    let (mut unit, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(second));
        (half(first), other.join().unwrap())
    });
    unit.push_data(table());
    unit.append(other);
    let code = unit.finish().unwrap();
    assert!(code.to_elf().unwrap() == parsed.compile(1).to_elf().unwrap());
    let places = relocations(code.object(), RelocationKind::Const);
    let tables = FUNCTIONS.div_ceil(3) as i64;
    assert_eq!(places, (0..tables).map(|i| 84 * i).collect::<Vec<_>>());

    // Each half alone fits into the bank, and both do not.
    let large = Parsed::new(&text(1_300));
    let inputs = large.inputs();
    let mut unit = Unit::new();
    let mut other = Unit::new();
    let mut compiler = Compiler::new(Options::default());
    compiler
        .compile_module(&inputs[..20], &mut unit, 1)
        .unwrap();
    compiler
        .compile_module(&inputs[20..], &mut other, 1)
        .unwrap();
    unit.append(other);
    unit.push_data(table());
    let error = unit.finish().unwrap_err().to_string();
    assert!(
        error.contains("compile the functions into one unit"),
        "{error}"
    );
}

/// A module with the functions of a text, in this order, on so many threads.
fn module_of(file: &SourceFile, order: &[usize], threads: usize) -> GpuModule {
    let mut module = GpuModule::new(Options::default()).unwrap();
    module.set_threads(threads);
    let ids: Vec<_> = (file.functions.iter())
        .map(|function| {
            let linkage = cranelift_module::Linkage::Export;
            let (name, signature) = (function.name(), &function.func.signature);
            module.declare_function(&name, linkage, signature).unwrap()
        })
        .collect();
    for &index in order {
        let function = &file.functions[index];
        if let Some(kernel) = function.kernel {
            module.declare_kernel(ids[index], kernel);
        }
        let mut context = module.make_context();
        context.func = function.func.clone();
        // Names of a text are those of functions of the module.
        let callees: Vec<_> = context.func.dfg.ext_funcs.keys().collect();
        for callee in callees {
            let name = context.func.dfg.ext_funcs[callee].name.clone();
            let ir::ExternalName::TestCase(name) = name else {
                continue;
            };
            let name = String::from_utf8_lossy(name.raw()).into_owned();
            let Some(index) = file.functions.iter().position(|f| f.name() == name) else {
                continue;
            };
            let user = UserExternalName::new(0, ids[index].as_u32());
            let user = context.func.declare_imported_user_function(user);
            context.func.dfg.ext_funcs[callee].name = ir::ExternalName::user(user);
        }
        module.define_function(ids[index], &mut context).unwrap();
    }
    module
}

/// A lock that is taken in a function: where lanes meet behind the call depends on what that does.
const WAITING: &str = "
; kernel
function %k(i64) {
    fn0 = %take(i64)
    fn1 = %gpu_tid_x() -> i32
block0(v0: i64):
    v1 = call fn1()
    v2 = iconst.i32 1
    v3 = band v1, v2
    brif v3, block1, block2
block1:
    call fn0(v0)
    jump block2
block2:
    v4 = iconst.i64 4
    v5 = iadd v0, v4
    v6 = atomic_rmw.i32 add v5, v2
    return
}
function %take(i64) {
block0(v0: i64):
    jump block1
block1:
    v1 = iconst.i32 0
    v2 = iconst.i32 1
    v3 = atomic_cas.i32 v0, v1, v2
    brif v3, block1, block2
block2:
    atomic_store v1, v0
    return
}
";

/// Whatever comes first, and on however many threads it is compiled, a function is what it is where all is known.
#[test]
fn definitions_are_compiled_with_what_is_known_of_all() {
    let file = SourceFile::parse("waiting.clif", WAITING).unwrap();
    let words = |code: &Code| {
        let functions = code.object().functions.iter();
        let mut words: Vec<_> = functions
            .map(|f| (f.name.clone(), f.words.clone()))
            .collect();
        words.sort();
        words
    };
    let expected = words(&Compiler::new(Options::default()).file(&file).unwrap());
    for order in [[0, 1], [1, 0]] {
        let module = module_of(&file, &order, 1);
        assert_eq!(words(&module.finish().unwrap()), expected, "{order:?}");
    }
    let text = text(8);
    let file = SourceFile::parse("many.clif", &text).unwrap();
    let order: Vec<usize> = (0..file.functions.len()).rev().collect();
    let one = module_of(&file, &order, 1).finish().unwrap();
    for threads in THREADS {
        assert_eq!(module_of(&file, &order, threads).finish().unwrap(), one);
    }
}

/// What a definition cannot know comes when all are compiled, of all functions at once, and under the module's names.
#[test]
fn what_is_unsupported_in_a_module_comes_together() {
    let one = |name: &str| {
        format!(
            "function %{name}(f128) -> f128 {{\nblock0(v0: f128):\n    v1 = fadd v0, v0\n    return v1\n}}\n"
        )
    };
    let file = SourceFile::parse("two.clif", &(one("a") + &one("b"))).unwrap();
    let mut module = module_of(&file, &[0, 1], 2);
    let errors = module.finish_definitions().unwrap_err();
    let places: Vec<_> = errors.iter().map(|e| e.place.function.as_deref()).collect();
    assert_eq!(places, [Some("%a"), Some("%b")], "{errors}");
}

/// A function that is compiled is what it is: who makes it a kernel then is told.
#[test]
fn kernels_are_declared_before_they_are_compiled() {
    let text = "function %k() {\nblock0:\n    return\n}\n";
    let file = SourceFile::parse("k.clif", text).unwrap();
    let mut module = module_of(&file, &[0], 1);
    module.finish_definitions().unwrap();
    let Some(FuncOrDataId::Func(k)) = module.get_name("k") else {
        panic!("a function");
    };
    module.declare_kernel(k, KernelOptions::default());
    let errors = module.finish().unwrap_err().to_string();
    assert!(
        errors.contains("`k`") && errors.contains("finish_definitions"),
        "{errors}"
    );
}
