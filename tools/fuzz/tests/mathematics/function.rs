//! A function of the library over buffers: compiled for the host, and as a kernel on the simulator. Elements are the
//! low bits of 64.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Type};
use cranelift_thisgpu::compile::{Code, Compiler, SourceFile, library};
use cranelift_thisgpu::{Device, Grid, SimConfig};
use fuzz::host::{self, Host};
use std::collections::BTreeMap;

/// The types of the arguments and of the result.
pub fn signature(name: &str) -> (Vec<Type>, Type) {
    let signature = &function(name).signature;
    let params = signature.params.iter().map(|param| param.value_type);
    (params.collect(), signature.returns[0].value_type)
}

fn function(name: &str) -> &'static Function {
    let function = library::function(name);
    &function
        .unwrap_or_else(|| panic!("the library has no {name}"))
        .func
}

/// A function with all that it calls, by name.
fn with_callees(name: &str) -> BTreeMap<String, &'static Function> {
    let mut found = BTreeMap::new();
    let mut wanted = vec![name.to_owned()];
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let function = function(&name);
        for callee in function.dfg.ext_funcs.values() {
            let callee = callee.name.display(Some(&function.params)).to_string();
            wanted.push(callee.trim_start_matches('%').to_owned());
        }
        found.insert(name, function);
    }
    found
}

/// The part of both loops that handles the element at byte offset v90: pointers to the arguments from v0 on, then one
/// to the results.
fn element(name: &str) -> (String, String) {
    let (params, result) = signature(name);
    let names: Vec<String> = params.iter().map(Type::to_string).collect();
    let head = format!("    fn0 = %{name}({}) -> {result}\n", names.join(", "));
    let mut body = String::new();
    for (index, ty) in names.iter().enumerate() {
        body += &format!(
            "    v{0} = iadd v{index}, v90\n    v{1} = load.{ty} aligned v{0}\n",
            100 + index,
            110 + index
        );
    }
    let arguments: Vec<String> = (0..params.len()).map(|i| format!("v{}", 110 + i)).collect();
    body += &format!("    v120 = call fn0({})\n", arguments.join(", "));
    body += &format!(
        "    v121 = iadd v{}, v90\n    store aligned v120, v121\n",
        params.len()
    );
    (head, body)
}

/// The pointers among the parameters, and those as blocks declare them.
fn pointers(name: &str) -> (Vec<&'static str>, Vec<String>) {
    let count = signature(name).0.len() + 1;
    (
        vec!["i64"; count],
        (0..count).map(|i| format!("v{i}: i64")).collect(),
    )
}

/// A function on the host.
pub struct OnHost {
    host: Host,
    arguments: usize,
}

impl OnHost {
    pub fn new(name: &str) -> Self {
        // The library may know it by several names.
        let name = function(name).name.to_string();
        let name = name.trim_start_matches('%');
        let (head, body) = element(name);
        let (types, declared) = pointers(name);
        let text = format!(
            "function %over({}, i64) {{
{head}block0({}, v80: i64):
    v81 = iconst.i64 0
    jump block1(v81)
block1(v90: i64):
    v91 = icmp ult v90, v80
    brif v91, block2, block3
block2:
{body}    v92 = iconst.i64 8
    v93 = iadd v90, v92
    jump block1(v93)
block3:
    return
}}",
            types.join(", "),
            declared.join(", ")
        );
        let over = SourceFile::parse("over.clif", &text)
            .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        let mut functions = vec![&over.functions[0].func];
        functions.extend(with_callees(name).values());
        let isa = host::isa("none").unwrap_or_else(|error| panic!("{error}"));
        let host =
            Host::compile(&isa, &functions).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self {
            host,
            arguments: types.len() - 1,
        }
    }

    /// The results for lists of each argument.
    pub fn results(&self, arguments: &[Vec<u64>]) -> Vec<u64> {
        assert_eq!(arguments.len(), self.arguments);
        let mut results = vec![0u64; arguments[0].len()];
        let address = |address: usize| DataValue::I64(address as i64);
        let mut row: Vec<DataValue> = arguments
            .iter()
            .map(|list| address(list.as_ptr() as usize))
            .collect();
        row.push(address(results.as_mut_ptr() as usize));
        row.push(address(size_of_val(&results[..])));
        let called = self.host.call(0, &row);
        called.unwrap_or_else(|error| panic!("{error}"));
        results
    }
}

/// A kernel of it.
fn kernel(name: &str) -> Code {
    let (head, body) = element(name);
    let (types, declared) = pointers(name);
    let text = format!(
        "; kernel
function %k({}, i32) {{
{head}    fn1 = %gpu_ctaid_x() -> i32
    fn2 = %gpu_ntid_x() -> i32
    fn3 = %gpu_tid_x() -> i32
block0({}, v80: i32):
    v81 = call fn1()
    v82 = call fn2()
    v83 = call fn3()
    v84 = imul v81, v82
    v85 = iadd v84, v83
    v86 = icmp ult v85, v80
    brif v86, block1, block2
block1:
    v87 = uextend.i64 v85
    v88 = iconst.i64 8
    v90 = imul v87, v88
{body}    jump block2
block2:
    return
}}",
        types.join(", "),
        declared.join(", ")
    );
    let compiled = Compiler::default().compile_clif(&text);
    compiled.unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

/// How many instructions a function has: its own, and with all that it calls.
pub fn instructions(name: &str) -> [usize; 2] {
    let code = kernel(name);
    let functions = code.object().functions.iter();
    let device: Vec<_> = functions
        .filter(|function| function.kernel.is_none())
        .collect();
    let own = device.iter().find(|function| function.name == name);
    let own = own.map_or(0, |function| function.words.len());
    [
        own,
        device.iter().map(|function| function.words.len()).sum(),
    ]
}

/// The results of the simulator for lists of each argument.
pub fn simulated(name: &str, arguments: &[Vec<u64>]) -> Vec<u64> {
    let device = Device::simulator(SimConfig::default());
    let buffers: Vec<_> = arguments
        .iter()
        .map(|list| device.upload(list).expect("room"))
        .collect();
    let count = arguments[0].len();
    let out = device.upload(&vec![0u64; count]).expect("room");
    let module = device
        .load(&kernel(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let kernel = module
        .kernel("k")
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut launch = kernel.launch(Grid::for_elems(count as u32, 128));
    for buffer in &buffers {
        launch = launch.arg(buffer);
    }
    let report = launch.arg(&out).arg(count as u32).run();
    report.unwrap_or_else(|error| panic!("{name}: {error}"));
    device.download(&out).expect("results")
}
