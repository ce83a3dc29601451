//! Indices behind the end, under each policy, in every address space and of values.
//!
//! Each container holds four elements, 10 to 13. A read at an index behind the end gives the last under *restrict*, 0
//! under *zero*, and ends the launch under *fault*; a write changes the last, nothing, or ends the launch.

mod common;

use cranelift_thisgpu::{DeviceError, FaultKind};
use thisgpu_naga::{Binding, Bounds, LaunchError, Shader, TranslateOptions};

/// Something that is indexed.
struct Container {
    name: &'static str,
    /// Declarations of the module.
    module: &'static str,
    /// What fills it, or declares it, at the beginning of the entry point.
    fill: &'static str,
    /// The element of the index `$`.
    element: &'static str,
    /// What is done to it instead of a store of 99, if it can be written.
    write: Option<&'static str>,
}

const fn container(
    name: &'static str,
    module: &'static str,
    fill: &'static str,
    element: &'static str,
    write: Option<&'static str>,
) -> Container {
    Container {
        name,
        module,
        fill,
        element,
        write,
    }
}

/// A store to the element of the index `$`.
const STORE: Option<&str> = Some("");

const FILL: &str = "for (var n = 0u; n < 4u; n++) { a[n] = 10u + n; }";

const CONTAINERS: &[Container] = &[
    container(
        "function array",
        "",
        "var a: array<u32, 4>; for (var n = 0u; n < 4u; n++) { a[n] = 10u + n; }",
        "a[$]",
        STORE,
    ),
    container(
        "function vector",
        "",
        "var a = vec4<u32>(10u, 11u, 12u, 13u);",
        "a[$]",
        STORE,
    ),
    container(
        "function matrix",
        "",
        "var a: mat4x4<f32>; for (var n = 0u; n < 4u; n++) { a[n] = vec4<f32>(f32(n + 10u)); }",
        "u32(a[$].y)",
        Some("a[$].y = 99.0"),
    ),
    container(
        "private array",
        "var<private> a: array<u32, 4>;",
        FILL,
        "a[$]",
        STORE,
    ),
    container(
        "private vector",
        "var<private> a: vec4<u32>;",
        FILL,
        "a[$]",
        STORE,
    ),
    container(
        "workgroup array",
        "var<workgroup> a: array<u32, 4>;",
        FILL,
        "a[$]",
        STORE,
    ),
    container(
        "workgroup vector",
        "var<workgroup> a: vec4<u32>;",
        FILL,
        "a[$]",
        STORE,
    ),
    container(
        "workgroup atomics",
        "var<workgroup> a: array<atomic<u32>, 4>;",
        "for (var n = 0u; n < 4u; n++) { atomicStore(&a[n], 10u + n); }",
        "atomicLoad(&a[$])",
        Some("atomicMax(&a[$], 99u)"),
    ),
    container(
        "storage array",
        "@group(0) @binding(2) var<storage, read_write> a: array<u32, 4>;",
        "",
        "a[$]",
        STORE,
    ),
    container(
        "storage without a length",
        "@group(0) @binding(2) var<storage, read_write> a: array<u32>;",
        "",
        "a[$]",
        STORE,
    ),
    container(
        "storage vector",
        "@group(0) @binding(2) var<storage, read_write> a: vec4<u32>;",
        "",
        "a[$]",
        STORE,
    ),
    container(
        "storage atomics",
        "@group(0) @binding(2) var<storage, read_write> a: array<atomic<u32>>;",
        "",
        "atomicLoad(&a[$])",
        Some("atomicStore(&a[$], 99u)"),
    ),
    container(
        "storage exchange",
        "@group(0) @binding(2) var<storage, read_write> a: array<atomic<u32>>;",
        "",
        "atomicOr(&a[$], 0u)",
        Some("atomicExchange(&a[$], 99u)"),
    ),
    container(
        "storage structure",
        "struct S { first: u32, all: array<u32, 3> } @group(0) @binding(2) var<storage, read_write> s: array<S>;",
        "for (var n = 0u; n < 3u; n++) { s[0].all[n] = 11u + n; }",
        "s[0].all[$ - 1u]",
        STORE,
    ),
    container(
        "uniform array",
        "struct W { @size(16) v: u32 } @group(0) @binding(3) var<uniform> a: array<W, 4>;",
        "",
        "a[$].v",
        None,
    ),
    container(
        "read-only storage",
        "@group(0) @binding(2) var<storage, read> a: array<u32>;",
        "",
        "a[$]",
        None,
    ),
    container(
        "immediates",
        "var<immediate> a: array<u32, 4>;",
        "",
        "a[$]",
        None,
    ),
    container(
        "value",
        "",
        "let a = array<u32, 4>(out[0] + 10u, out[0] + 11u, out[0] + 12u, out[0] + 13u);",
        "a[$]",
        None,
    ),
    container(
        "value of a vector",
        "",
        "let a = vec4<u32>(10u, 11u, 12u, 13u) + out[0];",
        "a[$]",
        None,
    ),
    container(
        "long value",
        "",
        "var w: array<u32, 100>; for (var n = 0u; n < 100u; n++) { w[n] = n + 10u; } let a = w;",
        "a[select($, 4096u, $ > 3u)] - select(0u, 96u, $ > 3u && POLICY != 1u)",
        None,
    ),
    container(
        "constant",
        "const a = array<u32, 4>(10u, 11u, 12u, 13u);",
        "",
        "a[$]",
        None,
    ),
    container(
        "pointer",
        "fn fetch(p: ptr<function, array<u32, 4>>, n: u32) -> u32 { return (*p)[n]; }
        fn put(p: ptr<function, array<u32, 4>>, n: u32) { (*p)[n] = 99u; }",
        "var a: array<u32, 4>; for (var n = 0u; n < 4u; n++) { a[n] = 10u + n; }",
        "fetch(&a, $)",
        Some("put(&a, $)"),
    ),
];

const INDICES: [u32; 2] = [4, u32::MAX];

/// The text; what is asked for stands in a line of its own, which is returned.
fn text(container: &Container, is_write: bool, policy: usize) -> (String, u32) {
    let element = |index: &str| container.element.replace('$', index);
    let asked = match container.write.filter(|_| is_write) {
        None => format!("let got = {};", element("i")),
        Some("") => format!("{} = 99u; let got = 0u;", element("i")),
        Some(write) => format!("{}; let got = 0u;", write.replace('$', "i")),
    };
    let mut text = format!(
        "const POLICY = {policy}u;
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> index: array<u32>;
         {}
         @compute @workgroup_size(1) fn main() {{
         let i = index[0];
         {}\n",
        container.module, container.fill
    );
    let line = text.lines().count() as u32 + 1;
    text += &asked;
    text += "\n out[0] = got;\n";
    // All elements as they are then; the last of each kind is known to be inside.
    for number in 0..4 {
        let index = format!("{number}u");
        let element = match container.name == "storage structure" && number == 0 {
            true => "10u".to_string(),
            false => element(&index),
        };
        text += &format!("out[{}] = {element};\n", number + 1);
    }
    text += "}";
    (text, line)
}

/// Runs a case: what `out` holds, or the fault's line.
fn run(text: &str, index: u32, bounds: Bounds) -> Result<Vec<u32>, (FaultKind, u32)> {
    let shader =
        Shader::wgsl("bounds.wgsl", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let device = common::plain();
    let options = TranslateOptions {
        bounds,
        buffer_bounds: bounds,
        ..TranslateOptions::default()
    };
    let pipeline = common::pipeline(&device, &shader, "main", &options);
    let upload = |words: &[u32]| device.upload(words).expect("there is room");
    let out = upload(&[0; 5]);
    let buffers = [
        (0, out.clone()),
        (1, upload(&[index])),
        (2, upload(&[10, 11, 12, 13])),
        (
            3,
            upload(&[10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0, 13, 0, 0, 0]),
        ),
    ];
    let bindings =
        buffers.map(|(binding, buffer)| Binding::new(0, binding, &buffer.cast().expect("bytes")));
    let immediates: Vec<u8> = match pipeline.interface().immediate_bytes {
        0 => Vec::new(),
        _ => [10u32, 11, 12, 13]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect(),
    };
    match pipeline.dispatch([1, 1, 1], &bindings, &immediates) {
        Ok(_) => Ok(out.to_vec().expect("it can be read")),
        Err(LaunchError::Device(DeviceError::Fault { report, .. })) => {
            let fault = report.fault.expect("a report of a fault has it");
            Err((fault.kind, fault.place.location.line))
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn indices_behind_the_end_are_what_the_policy_says() {
    let mut cases = 0;
    for container in CONTAINERS {
        for is_write in [false, true] {
            if is_write && container.write.is_none() {
                continue;
            }
            for (policy, bounds) in [Bounds::Restrict, Bounds::Zero, Bounds::Fault]
                .into_iter()
                .enumerate()
            {
                let (text, line) = text(container, is_write, policy);
                for index in INDICES {
                    check(container, is_write, bounds, index, &text, line);
                }
                cases += 1;
            }
        }
    }
    assert!(cases >= 60, "{cases} cases");
}

fn check(container: &Container, is_write: bool, bounds: Bounds, index: u32, text: &str, line: u32) {
    let what = format!(
        "{}, write {is_write}, {bounds:?}, index {index}",
        container.name
    );
    let outcome = run(text, index, bounds);
    if bounds == Bounds::Fault {
        let (kind, at) = outcome.expect_err(&what);
        assert!(matches!(kind, FaultKind::Trap { .. }), "{what}: {kind}");
        // A function has its own line.
        let expected = match container.name {
            "pointer" if is_write => 5,
            "pointer" => 4,
            _ => line,
        };
        assert_eq!(at, expected, "{what}: the line of the fault\n{text}");
        return;
    }
    let out = outcome.unwrap_or_else(|(kind, at)| panic!("{what}: {kind} in line {at}\n{text}"));
    let mut expected = vec![0, 10, 11, 12, 13];
    match (bounds, is_write) {
        (Bounds::Restrict, false) => expected[0] = 13,
        (Bounds::Restrict, true) => expected[4] = 99,
        _ => {}
    }
    assert_eq!(out, expected, "{what}\n{text}");
}

/// naga checks constant indices against lengths that it knows; of an array without one the machine has to.
#[test]
fn constant_indices_behind_the_end_of_a_buffer_are_what_the_policy_says() {
    let cases = [
        (
            "out[1] = index[5] + 20u;",
            [0, 23, 0, 0, 0],
            [0, 20, 0, 0, 0],
        ),
        ("out[77] = 9u;", [0, 0, 0, 0, 9], [0; 5]),
        ("out[4] = 9u;", [0, 0, 0, 0, 9], [0, 0, 0, 0, 9]),
        ("out[2] = more.rest[6];", [0, 0, 13, 0, 0], [0; 5]),
    ];
    for (statement, restrict, zero) in cases {
        let text = format!(
            "struct More {{ first: u32, rest: array<u32> }}
             @group(0) @binding(0) var<storage, read_write> out: array<u32>;
             @group(0) @binding(1) var<storage, read> index: array<u32>;
             @group(0) @binding(2) var<storage, read> more: More;
             @compute @workgroup_size(1) fn main() {{ out[0] = 0u * index[0] * more.first;
             {statement}
             }}"
        );
        assert_eq!(
            run(&text, 3, Bounds::Restrict),
            Ok(restrict.to_vec()),
            "{statement}"
        );
        assert_eq!(
            run(&text, 3, Bounds::Zero),
            Ok(zero.to_vec()),
            "{statement}"
        );
        match run(&text, 3, Bounds::Fault) {
            Ok(out) => assert_eq!((&out[..], restrict), (&zero[..], zero), "{statement}"),
            Err((kind, line)) => {
                assert!(
                    matches!(kind, FaultKind::Trap { .. }),
                    "{statement}: {kind}"
                );
                assert_eq!(line, 6, "{statement}");
                assert_ne!(restrict, zero, "{statement}");
            }
        }
    }
}

/// Indices of 16 bits keep their number: a negative one is behind the end as well.
#[test]
fn indices_of_16_bits_are_restricted() {
    for (ty, index) in [
        ("u16", 2),
        ("i16", 2),
        ("u16", 0xffff),
        ("i16", -1i32 as u32),
    ] {
        let text = format!(
            "enable wgpu_int16;
             @group(0) @binding(0) var<storage, read_write> out: array<u32>;
             @group(0) @binding(1) var<storage, read> index: array<u32>;
             @group(0) @binding(2) var<storage, read> more: array<u32>;
             @compute @workgroup_size(1) fn main() {{
                 let i = {ty}(index[0]);
                 var a = array<u32, 8>(1, 2, 3, 4, 5, 6, 7, 8);
                 let b = vec4<u32>(5, 6, 7, 8) + out[0];
                 out[1] = a[i]; out[2] = b[i]; out[3] = more[i]; out[i] = 9;
             }}"
        );
        let expected = match index {
            2 => vec![0, 3, 9, 12, 0],
            _ => vec![0, 8, 8, 13, 9],
        };
        assert_eq!(
            run(&text, index, Bounds::Restrict),
            Ok(expected),
            "{ty}, {index}"
        );
    }
}
