//! Several objects as one: names, constants, what kernels need over the whole call graph, and what does not link.

use cranelift_thisgpu::SourceFile;
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::{Code, Compiler, FunctionInput, RECURSION_BYTES, Unit};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::object::{Linker, Object};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use std::thread;

/// A kernel that stores what the function `name` makes of its thread's number.
fn kernel(name: &str) -> String {
    format!(
        "; kernel
        function %k(i64) {{
            gv0 = symbol %gpu_tid_x
            fn0 = %{name}(i32) -> i32
        block0(v0: i64):
            v1 = symbol_value.i32 gv0
            v2 = call fn0(v1)
            v3 = uextend.i64 v1
            v9 = iconst.i64 2
            v4 = ishl v3, v9
            v5 = iadd v0, v4
            store v2, v5
            return
        }}"
    )
}

/// A function that picks by a jump table, whose place in constant bank 3 depends on the objects before.
fn picks(name: &str, values: [i32; 6]) -> String {
    let blocks: String = (values.iter().enumerate())
        .map(|(i, value)| {
            format!(
                "block{}:\n v{} = iconst.i32 {value}\n return v{}\n",
                i + 1,
                i + 1,
                i + 1
            )
        })
        .collect();
    format!(
        "function %{name}(i32) -> i32 {{
        block0(v0: i32):
            br_table v0, block6, [block1, block2, block3, block4, block5]
        {blocks}}}"
    )
}

/// A function of its own name that calls a helper of the name that others have too.
fn with_helper(name: &str, add: i32) -> String {
    format!(
        "function %{name}(i32) -> i32 {{
            fn0 = colocated %helper(i32) -> i32
        block0(v0: i32):
            v1 = call fn0(v0)
            return v1
        }}
        function %helper(i32) -> i32 {{
        block0(v0: i32):
            v9 = iconst.i32 {add}
            v1 = iadd v0, v9
            return v1
        }}"
    )
}

fn compile(text: &str) -> Code {
    Compiler::new(Options::default())
        .compile_clif(text)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// What eight threads of the kernel store.
fn run(objects: &[Object]) -> Vec<i32> {
    let device = Device::simulator(SimConfig::default());
    let module = device.load_all(objects).unwrap();
    let out = device.allocate_zeroed(32).unwrap();
    let kernel = module.kernel("k").unwrap();
    let grid = Grid::new([1, 1, 1], [8, 1, 1]);
    kernel.launch(grid).arg(&out).run().unwrap();
    device.download(&out).unwrap()
}

fn local(mut object: Object, name: &str) -> Object {
    let function = object.functions.iter_mut().find(|f| f.name == name);
    function.unwrap().linkage = cranelift_thisgpu::object::Linkage::Local;
    object
}

#[test]
fn calls_go_to_other_objects_and_constants_move() {
    let first = picks("unused", [9; 6].map(|n| n + 1));
    let objects = [
        first,
        picks("picked", [10, 11, 12, 13, 14, -1]),
        kernel("picked"),
    ]
    .map(|text| compile(&text).into_object());
    let tables = objects.iter().filter(|o| !o.constants.is_empty()).count();
    assert!(tables >= 1, "a jump table is in the constant bank");
    assert_eq!(run(&objects), [10, 11, 12, 13, 14, -1, -1, -1]);
    let reversed: Vec<Object> = objects.into_iter().rev().collect();
    assert_eq!(run(&reversed), [10, 11, 12, 13, 14, -1, -1, -1]);
}

#[test]
fn local_names_stay_in_their_objects() {
    let objects = [
        local(compile(&with_helper("one", 100)).into_object(), "helper"),
        local(compile(&with_helper("two", 200)).into_object(), "helper"),
    ];
    for (name, add) in [("one", 100), ("two", 200)] {
        let mut all = objects.to_vec();
        all.push(compile(&kernel(name)).into_object());
        assert_eq!(run(&all)[..3], [add, add + 1, add + 2], "{name}");
    }
    let whole = Linker::new()
        .add("a", &objects[0])
        .add("b", &objects[1])
        .link()
        .unwrap();
    let names: Vec<&str> = whole.functions.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["one", "helper", "two", "helper.2"]);
}

#[test]
fn resources_are_counted_over_the_whole() {
    let assemble = |text: &str| asm::assemble("x.s", text).unwrap().object;
    let kernel =
        assemble(".extern deep\n.kernel k\n .local 16\n CALL R[2:3], deep ?15 ;\n EXIT ?15 ;\n");
    let deep = assemble(
        ".extern deeper\n.func deep\n .local 32\n MOV R40, 1 ?15 ;\n CALL R[2:3], deeper ?15 ;\n RET R[2:3] ?15 ;\n",
    );
    let deeper = assemble(".func deeper\n .local 64\n BAR.SYNC ?15 ;\n RET R[2:3] ?15 ;\n");
    let around = assemble(
        ".extern deep\n.func deeper\n .local 64\n CALL R[2:3], deep ?15 ;\n RET R[2:3] ?15 ;\n",
    );
    let link = |last: &Object| {
        let linker = Linker::new()
            .add("k", &kernel)
            .add("deep", &deep)
            .add("last", last);
        linker.link().unwrap().function("k").unwrap().resources
    };
    let found = link(&deeper);
    assert_eq!(
        (found.registers, found.local_bytes, found.barriers),
        (41, 112, 1)
    );
    assert_eq!(link(&around).local_bytes, 16 + 64 + RECURSION_BYTES);
    // What one object needs by itself survives its file.
    let again = |object: &Object| Object::read(&object.write().unwrap()).unwrap();
    let linker = Linker::new()
        .add("k", &again(&kernel))
        .add("deep", &again(&deep));
    let whole = linker.add("last", &again(&deeper)).link().unwrap();
    assert_eq!(whole.function("k").unwrap().resources, found);
}

#[test]
fn a_call_through_a_table_in_data_counts_all_functions_in_it() {
    let assemble = |text: &str| asm::assemble("x.s", text).unwrap().object;
    let kernel = assemble(".kernel k\n CALL R[2:3], R[4:5] ?15 ;\n EXIT ?15 ;\n");
    let table = assemble(".extern f\n.data table readonly align 8\n .quad f\n");
    let function = assemble(".func f\n .local 48\n MOV R60, 1 ?15 ;\n RET R[2:3] ?15 ;\n");
    let linker = Linker::new()
        .add("k", &kernel)
        .add("t", &table)
        .add("f", &function);
    let resources = linker.link().unwrap().function("k").unwrap().resources;
    assert_eq!((resources.registers, resources.local_bytes), (61, 48));
}

#[test]
fn what_does_not_link_is_named_with_its_objects() {
    let a = compile(&with_helper("one", 1)).into_object();
    let b = compile(&with_helper("two", 2)).into_object();
    let caller = compile(&kernel("halper")).into_object();
    let errors = |linker: Linker| -> Vec<String> {
        let errors = linker.link().unwrap_err();
        errors.iter().map(ToString::to_string).collect()
    };
    let found = errors(Linker::new().add("a.elf", &a).add("b.elf", &b));
    assert_eq!(
        found,
        [
            "symbol `helper` is defined in a.elf and in b.elf; rename one, or make one local to its object"
        ]
    );
    let found = errors(Linker::new().add("a.elf", &a).add("k.elf", &caller));
    assert!(
        matches!(&found[..], [e] if e.starts_with("k.elf: k+0x") && e.contains("undefined symbol `halper`; did you \
         mean `helper`?")),
        "{found:?}"
    );
    let caller = compile(&kernel("helper")).into_object();
    let found = errors(
        Linker::new()
            .add("a.elf", &local(a, "helper"))
            .add("k.elf", &caller),
    );
    assert!(
        matches!(&found[..], [e] if e.contains("it is local to a.elf: make it global there")),
        "{found:?}"
    );
    let calls_kernel =
        "function %f() {\nfn0 = %k(i64)\nblock0:\nv0 = iconst.i64 0\ncall fn0(v0)\nreturn\n}";
    let found = errors(
        (Linker::new().add("k.elf", &compile(&kernel("one")).into_object()))
            .add("b.elf", &compile(&with_helper("one", 2)).into_object())
            .add("f.elf", &compile(calls_kernel).into_object()),
    );
    assert!(
        matches!(&found[..], [e] if e.starts_with("f.elf: f+0x") && e.contains("`k` is a kernel")),
        "{found:?}"
    );
}

#[test]
fn units_of_two_threads_link_and_run() {
    let unit = |text: String| {
        let file = SourceFile::parse("unit.clif", &text).unwrap();
        let names: Vec<String> = file.functions.iter().map(|f| f.name()).collect();
        let inputs: Vec<FunctionInput<'_>> = (file.functions.iter().zip(&names))
            .map(|(function, name)| FunctionInput::of_source(function, name))
            .collect();
        let mut unit = Unit::new();
        let mut compiler = Compiler::new(Options::default());
        compiler.compile_module(&inputs, &mut unit, 1).unwrap();
        unit
    };
    let texts = [kernel("picked"), picks("picked", [5, 4, 3, 2, 1, 0])];
    let units = texts.map(|text| thread::spawn(move || unit(text)));
    let [kernel, picked] = units.map(|unit| unit.join().unwrap());
    let apart = [kernel.clone(), picked.clone()].map(|unit| unit.finish().unwrap());
    assert_eq!(apart[0].warnings().len(), 1, "{:?}", apart[0].warnings());
    let text = apart[0].warnings()[0].to_string();
    assert!(text.contains("`picked` is not defined here"), "{text}");
    let expected = [5, 4, 3, 2, 1, 0, 0, 0];
    assert_eq!(run(&apart.map(Code::into_object)), expected);
    let mut together = kernel;
    together.append(picked);
    assert_eq!(run(&[together.finish().unwrap().into_object()]), expected);
}

/// A function that reads so many values before it uses the first of them.
fn wide(name: &str, values: usize) -> String {
    let loads: String = (1..=values)
        .map(|i| format!("    v{i} = atomic_load.i32 v0\n"))
        .collect();
    let stores: String = (1..=values)
        .map(|i| format!("    store v{i}, v0+{}\n", 4 * i))
        .collect();
    format!("function %{name}(i64) -> i32 {{\nblock0(v0: i64):\n{loads}{stores}    return v1\n}}")
}

#[test]
fn launch_bounds_hold_for_what_is_linked() {
    let bounded = |bounds: &str| {
        let text = kernel("wide").replace("%wide(i32)", "%wide(i64)");
        let text = text.replace("call fn0(v1)", "call fn0(v0)");
        compile(&text.replace("; kernel", &format!("; kernel {bounds}"))).into_object()
    };
    let callee = wide("wide", 60);
    let free = compile(&callee).into_object();
    let registers = free.function("wide").unwrap().resources.registers;
    assert!(registers > 64, "{registers}");
    let kernel = bounded("max_threads=1024");
    let errors = Linker::new().add("k", &kernel).add("f", &free).link();
    let message = errors.unwrap_err().to_string();
    let expected = format!(
        "the launch bounds of kernel `k` leave a thread 64 registers, but `wide`, which it calls, needs {registers}; \
         compile `wide` with the setting regs=64 or together with the kernel, or loosen the bounds"
    );
    assert_eq!(message, expected);
    let device = Device::simulator(SimConfig::default());
    let loaded = device.load_all(&[kernel.clone(), free.clone()]).map(drop);
    assert!(loaded.unwrap_err().to_string().contains(&expected));
    // What the remedies say.
    let looser = bounded("max_threads=512");
    Linker::new()
        .add("k", &looser)
        .add("f", &free)
        .link()
        .unwrap();
    let mut options = Options::default();
    options.set("regs=64").unwrap();
    let narrow = Compiler::new(options).compile_clif(&callee).unwrap();
    let whole = Linker::new()
        .add("k", &kernel)
        .add("f", &narrow)
        .link()
        .unwrap();
    assert!(whole.function("k").unwrap().resources.registers <= 64);
    // Bounds survive files and assembly text.
    let read = Object::read(&kernel.write().unwrap()).unwrap();
    assert_eq!(
        read.function("k").unwrap().kernel,
        kernel.function("k").unwrap().kernel
    );
    let two = bounded("max_threads=256 min_blocks=4");
    let listing = asm::listing(&two).0;
    let again = asm::assemble("k.s", &listing).unwrap().object;
    let found = again.function("k").unwrap().kernel.clone().unwrap();
    assert_eq!((found.max_threads, found.min_blocks), (Some(256), Some(4)));
    assert!(
        Linker::new()
            .add("k", &again)
            .add("f", &free)
            .link()
            .is_err()
    );
    let impossible = listing.replace(".min_blocks 4", ".min_blocks 40");
    let diagnostics = asm::assemble("k.s", &impossible).unwrap_err().to_string();
    assert!(
        diagnostics.contains("min_blocks=40 is not from 1 to 32"),
        "{diagnostics}"
    );
}

#[test]
fn a_linked_file_is_the_object_with_addresses() {
    use object::{Object as _, ObjectSymbol as _};
    let objects = [kernel("picked"), picks("picked", [5, 4, 3, 2, 1, 0])]
        .map(|text| compile(&text).into_object());
    let whole = Linker::new()
        .add("a", &objects[0])
        .add("b", &objects[1])
        .link()
        .unwrap();
    let bytes = whole.write_linked().unwrap();
    assert_eq!(
        bytes,
        whole.write_linked().unwrap(),
        "the same bytes each time"
    );
    let file = object::File::parse(&*bytes).unwrap();
    let addresses: Vec<u64> = ["k", "picked"]
        .map(|name| {
            file.symbols()
                .find(|s| s.name() == Ok(name))
                .unwrap()
                .address()
        })
        .to_vec();
    assert_eq!(addresses, whole.code_addresses());
    let read = Object::read(&bytes).unwrap();
    // The call's word has the distance now.
    assert_ne!(read, whole);
    let mut words = read.clone();
    for (function, before) in words.functions.iter_mut().zip(&whole.functions) {
        function.words.clone_from(&before.words);
    }
    assert_eq!(words, whole);
    assert_eq!(run(&[read]), [5, 4, 3, 2, 1, 0, 0, 0]);
}

/// A kernel that calls over three objects, and then by an address that it reads from data of a fourth, whose
/// relocations are functions of others. Data and local functions of one name are in several.
fn spread() -> Vec<Object> {
    let kernel = "; kernel
    function %k(i64) {
        gv0 = symbol %gpu_tid_x
        gv1 = symbol %table
        sig0 = (i32) -> i32
        fn0 = %middle sig0
    block0(v0: i64):
        v1 = symbol_value.i32 gv0
        v2 = call fn0(v1)
        v3 = uextend.i64 v1
        v4 = iconst.i64 1
        v5 = band v3, v4
        v6 = iconst.i64 3
        v7 = ishl v5, v6
        v8 = symbol_value.i64 gv1
        v9 = iadd v8, v7
        v10 = load.i64 aligned v9
        v11 = call_indirect sig0, v10(v2)
        v12 = iconst.i64 2
        v13 = ishl v3, v12
        v14 = iadd v0, v13
        store aligned v11, v14
        return
    }";
    let middle = "function %middle(i32) -> i32 {
        fn0 = %inner(i32) -> i32
    block0(v0: i32):
        v1 = call fn0(v0)
        v2 = iconst.i32 0x12345
        v3 = imul v1, v2
        return v3
    }";
    let inner = "function %inner(i32) -> i32 {
        gv0 = symbol %numbers
    block0(v0: i32):
        v1 = symbol_value.i64 gv0
        v2 = load.i32 aligned v1+8
        v3 = iadd v0, v2
        return v3
    }";
    let assemble = |text: &str| asm::assemble("data.s", text).unwrap().object;
    let mut objects: Vec<Object> = [
        kernel.to_owned(),
        middle.to_owned(),
        inner.to_owned(),
        picks("unused", [3; 6].map(|n| n + 1)),
    ]
    .iter()
    .map(|text| compile(text).into_object())
    .collect();
    for (name, add) in [("one", 100), ("two", 200)] {
        let object = compile(&with_helper(name, add)).into_object();
        objects.push(local(object, "helper"));
    }
    let table = ".extern one\n.extern two\n.data table readonly align 8\n .quad one\n .quad two\n";
    let numbers = ".data numbers readonly align 4\n .word 1\n .word 2\n .word 40\n";
    objects.extend([table, numbers].map(assemble));
    objects
}

#[test]
fn every_order_and_every_way_of_linking_gives_the_same() {
    let objects = spread();
    let expected: Vec<i32> = (0..8)
        .map(|i| (40 + i) * 0x12345 + if i % 2 == 0 { 100 } else { 200 })
        .collect();
    assert_eq!(run(&objects), expected);
    let whole = |objects: &[Object]| {
        let named = objects.iter().enumerate();
        let linker = named.fold(Linker::new(), |linker, (i, o)| linker.add(i.to_string(), o));
        linker.link().unwrap()
    };
    let needs = |object: &Object| object.function("k").unwrap().resources;
    let first = needs(&whole(&objects));
    // By rotations and their reverses each object stands before and behind each other one.
    for turn in 0..objects.len() {
        for reverse in [false, true] {
            let mut order = objects.clone();
            order.rotate_left(turn);
            if reverse {
                order.reverse();
            }
            let linked = whole(&order);
            assert_eq!(needs(&linked), first, "{turn} {reverse}");
            let file = linked.write().unwrap();
            let final_file = linked.write_linked().unwrap();
            for object in [
                linked,
                Object::read(&file).unwrap(),
                Object::read(&final_file).unwrap(),
            ] {
                assert_eq!(run(&[object]), expected, "{turn} {reverse}");
            }
        }
    }
}

#[test]
fn a_program_hands_errors_of_linking_on() {
    let link = || -> Result<Object, Box<dyn std::error::Error>> {
        let [kernel, ..] = &spread()[..] else {
            panic!("objects")
        };
        Ok(Linker::new().add("k.elf", kernel).link()?)
    };
    let message = link().unwrap_err().to_string();
    let lines: Vec<&str> = message.lines().collect();
    // The address of `table` is in two instructions: one message.
    assert!(
        matches!(lines[..], [first, second] if first.contains("`middle`") && second.contains("`table`")),
        "{message}"
    );
}
