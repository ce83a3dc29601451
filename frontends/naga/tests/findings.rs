//! Bugs of shaders, each reported with its line of WGSL, and refusals with theirs.

mod common;

use cranelift_thisgpu::{Buffer, Device, DeviceError, Options, SimConfig};
use thisgpu_naga::{Binding, Bounds, LaunchError, Reason, Shader, TranslateOptions};

const HEAD: &str = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
var<workgroup> w: array<u32, 64>;
fn later(n: u32) -> u32 { return n + 1u; }
";

/// Runs a shader whose line with `// here` is the one to be reported: what is said, and of which lines.
fn reported(body: &str, bounds: Bounds) -> Vec<(String, u32)> {
    let text = format!("{HEAD}{body}");
    let shader = Shader::wgsl("bug.wgsl", &text).unwrap_or_else(|error| panic!("{error}"));
    let device = Device::simulator(SimConfig {
        check: true,
        budget: 100_000,
        ..SimConfig::default()
    });
    let options = TranslateOptions {
        bounds,
        buffer_bounds: bounds,
        zero_workgroup: !body.contains("// not zeroed"),
        ..TranslateOptions::default()
    };
    let pipeline = common::pipeline(&device, &shader, "main", &options);
    let a: Buffer<u32> = device.upload(&[7; 64]).expect("there is room");
    let b = device.allocate(256).expect("there is room");
    let bindings = [
        Binding::new(0, 0, &a.cast().expect("bytes")),
        Binding::new(0, 1, &b),
    ];
    match pipeline.dispatch([2, 1, 1], &bindings, &[]) {
        Ok(report) => {
            let findings = report.expect("there are workgroups").findings;
            let findings = findings.iter();
            findings
                .map(|f| (f.to_string(), f.place.location.line))
                .collect()
        }
        Err(LaunchError::Device(DeviceError::Fault { report, .. })) => {
            let fault = report.fault.expect("a report of a fault has it");
            vec![(fault.kind.to_string(), fault.place.location.line)]
        }
        Err(error) => panic!("{error}"),
    }
}

/// Whether something is reported of the line that the text marks, as the place or as the other one: what nobody wrote
/// is reported where it is used, with the load.
fn check(body: &str, bounds: Bounds, what: &str) {
    let text = format!("{HEAD}{body}");
    let marked = text.lines().position(|line| line.contains("// here"));
    let line = marked.expect("a line is marked") as u32 + 1;
    let reported = reported(body, bounds);
    let is_said = reported.iter().any(|(text, at)| {
        text.contains(what) && (*at == line || text.contains(&format!("(line {line}, ")))
    });
    assert!(
        is_said,
        "expected `{what}` of line {line}, reported: {reported:#?}\n{text}"
    );
}

#[test]
fn races_of_a_workgroup_are_reported() {
    check(
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
             w[l] = l; // here
             a[l] = w[63u - l];
         }",
        Bounds::Restrict,
        "race",
    );
}

#[test]
fn races_between_workgroups_are_reported() {
    check(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             a[3] = g.x; // here
         }",
        Bounds::Restrict,
        "race",
    );
}

#[test]
fn barriers_that_a_part_reaches_are_reported() {
    check(
        "var<private> odd: u32;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32) {
             odd = l;
             for (var n = 0u; n < 2u; n++) {
                 if odd == 5u { return; }
                 workgroupBarrier(); // here
             }
         }",
        Bounds::Restrict,
        "barrier",
    );
}

#[test]
fn reads_of_what_nobody_wrote_are_reported() {
    check(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             let n = b[g.x + 8u]; // here
             a[g.x] = later(n);
         }",
        Bounds::Restrict,
        "written",
    );
    check(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             let n = w[g.x]; // here
             a[g.x] = later(n); // not zeroed
         }",
        Bounds::Restrict,
        "written",
    );
}

#[test]
fn indices_behind_the_end_are_reported() {
    check(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             a[later(a[g.x] * 9u)] = 1u; // here
         }",
        Bounds::Fault,
        "trap",
    );
}

#[test]
fn loops_without_an_end_are_reported() {
    check(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             var n = a[g.x];
             while n != 0u { n = (n * 5u) | 1u; } // here
             a[g.x] = n;
         }",
        Bounds::Restrict,
        "budget",
    );
}

#[test]
fn a_fault_in_a_function_names_its_line_and_its_calls() {
    let text = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
fn inner(n: u32) -> u32 {
    return a[n];
}
@compute @workgroup_size(1) fn main() {
    a[0] = inner(a[1] + 100u);
}";
    let shader = Shader::wgsl("calls.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let device = common::plain();
    let options = TranslateOptions {
        buffer_bounds: Bounds::Fault,
        ..TranslateOptions::default()
    };
    let pipeline = common::pipeline(&device, &shader, "main", &options);
    let mut buffers = [vec![1; 8]];
    let error =
        common::dispatch(&device, &pipeline, [1, 1, 1], &mut buffers).expect_err("it is outside");
    let message = error.to_string();
    assert!(
        message.contains("line 3, column 12 of calls.wgsl"),
        "{message}"
    );
    assert!(message.contains("inlined at line 6"), "{message}");
}

#[test]
fn refusals_name_line_and_column() {
    let cases = [
        // naga: a text that is none, a type that does not fit.
        ("fn f() {\n  let a = ;\n}", 2, 11, false),
        ("@compute @workgroup_size(1) fn main() {\n  let a: u32 = 1.5;\n}", 2, 7, false),
        // What naga puts in a wrong place.
        (
            "struct I { @align(64) x: i32 }\nstruct O { a: i32, b: I }
@group(0) @binding(0) var<storage, read_write> o: O;\n@compute @workgroup_size(1) fn main() { o.b.x = 1; }",
            2,
            1,
            true,
        ),
        // The translator: what it has nothing for.
        (
            "@group(0) @binding(0) var t: texture_2d<f32>;\n@group(0) @binding(1) var<storage, read_write> o: vec4<f32>;
@compute @workgroup_size(1) fn main() {\n  o = textureLoad(t, vec2<u32>(), 0);\n}",
            1,
            23,
            true,
        ),
    ];
    for (text, line, column, is_ours) in cases {
        let shader = Shader::wgsl("refused.wgsl", text);
        let options = TranslateOptions::default();
        let translated = shader.and_then(|shader| shader.translate("main", &options));
        let error = translated.expect_err("it is refused");
        assert_eq!(error.place.position, Some((line, column)), "{error}");
        assert_eq!(
            matches!(error.reason, Reason::Unsupported(_)),
            is_ours,
            "{error}"
        );
    }
}

#[test]
fn requests_that_do_not_fit_are_errors() {
    let text = "override n: u32;\n@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@compute @workgroup_size(1) fn main() { a[0] = n; }";
    let shader = Shader::wgsl("override.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let mut options = TranslateOptions::default();
    let error = shader
        .translate("main", &options)
        .expect_err("n has no value");
    assert!(error.to_string().contains('n'), "{error}");
    let error = shader
        .translate("other", &options)
        .expect_err("there is no such entry point");
    assert!(error.to_string().contains("there are main"), "{error}");
    options.constants.insert("n".to_string(), 5.0);
    let device = common::plain();
    let pipeline = common::pipeline(&device, &shader, "main", &options);
    let mut buffers = [vec![0; 4]];
    let report = common::dispatch(&device, &pipeline, [1, 1, 1], &mut buffers);
    report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(buffers[0], [5, 0, 0, 0]);
    let missing = pipeline
        .dispatch([1, 1, 1], &[], &[])
        .expect_err("nothing is bound");
    assert!(
        missing.to_string().contains("@group(0) @binding(0)"),
        "{missing}"
    );
}

/// What is too much for the machine, with its place.
#[test]
fn what_is_too_large_names_line_and_column() {
    let size = |text: &str| {
        format!("var<workgroup> w: array<u32, 4>;\n@compute @workgroup_size({text})
fn main(@builtin(local_invocation_index) l: u32, @builtin(num_subgroups) n: u32) {{\n  w[l] = n;\n}}")
    };
    for text in ["16384, 16384, 16384", "2048", "1024, 2"] {
        refused(
            &size(text),
            &TranslateOptions::default(),
            (4, 3),
            "a block has at most 1024 threads",
        );
    }
}

/// Requests for an override name its place.
#[test]
fn overrides_name_line_and_column() {
    let text = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
override size: u32 = 4u;
@id(7) override sign: i32;
@compute @workgroup_size(size) fn main(@builtin(local_invocation_index) l: u32) { out[l] = size + u32(sign); }";
    let cases: [(&[(&str, f64)], _, _); 6] = [
        (&[], (3, 8), "Missing value"),
        (&[("7", 1.0), ("size", -1.0)], (2, 1), "fit"),
        (&[("7", 3e9)], (3, 8), "fit"),
        (&[("7", 1.0), ("size", f64::NAN)], (2, 1), "finite"),
        (&[("7", 1.0), ("size", 0.0)], (2, 1), "positive"),
        (&[("7", 1.0), ("size", 20000.0)], (2, 1), "size"),
    ];
    for (constants, place, message) in cases {
        let constants = constants
            .iter()
            .map(|(name, value)| (name.to_string(), *value));
        let options = TranslateOptions {
            constants: constants.collect(),
            ..TranslateOptions::default()
        };
        refused(text, &options, place, message);
    }
}

/// A shader that is refused when it is translated or compiled.
fn refused(text: &str, options: &TranslateOptions, place: (u32, u32), message: &str) {
    let shader = Shader::wgsl("refused.wgsl", text);
    let translated = shader.and_then(|shader| shader.translate("main", options));
    let compiled = translated.and_then(|translation| translation.compile(&Options::default()));
    let error = compiled.expect_err("it is refused");
    assert_eq!(error.place.position, Some(place), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

/// Local memory that is too much in all is that of the largest variable.
#[test]
fn variables_that_are_too_large_together_name_the_largest() {
    let text = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(1) fn main() {
  var a: array<u32, 500000>; a[o[0]] = 1u;
  var b: array<u32, 510000>; b[o[0]] = 1u;
  var c: array<u32, 500000>; c[o[0]] = 1u;
  o[1] = a[o[2]] + b[o[2]] + c[o[2]];
}";
    refused(
        text,
        &TranslateOptions::default(),
        (4, 3),
        "the stack slots take 6040000 bytes",
    );
}

/// naga swaps the dimensions of arrays of arrays in GLSL.
#[test]
fn arrays_of_arrays_in_glsl_name_line_and_column() {
    for (outside, inside) in [
        ("", "uint a[2][3]; a[1][2] = 1u;"),
        (
            "layout(std430, set = 0, binding = 1) buffer N { uint n[][3]; };",
            "",
        ),
    ] {
        let text = format!(
            "#version 450\n{outside}\nlayout(local_size_x = 1) in;\nvoid main() {{\n{inside}\n}}"
        );
        let error = Shader::glsl("refused.comp", &text).expect_err("it is refused");
        let line = if inside.is_empty() { 2 } else { 5 };
        let position = error.place.position.map(|(line, _)| line);
        assert_eq!(position, Some(line), "{error}");
        assert!(error.to_string().contains("array of arrays"), "{error}");
    }
}

/// On a stack of 2 MiB, what is inside each other is translated and compiled, or refused with its place.
#[test]
fn what_is_deep_is_translated_or_refused() {
    let chain = |count: u32| {
        let mut text = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
@compute @workgroup_size(1) fn main() {\n if o[0] == 0u { o[1] = 7u; }"
            .to_string();
        for number in 1..count {
            text += &format!("\nelse if o[0] == {number}u {{ o[1] = {number}u; }}");
        }
        text + "\n}"
    };
    let read = move |count| Shader::wgsl("deep.wgsl", &chain(count));
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let deep = thread.spawn(move || {
        let shader = read(900).unwrap_or_else(|error| panic!("{error}"));
        let translation = shader.translate("main", &TranslateOptions::default());
        let compiled = translation.and_then(|translation| translation.compile(&Options::default()));
        compiled.unwrap_or_else(|error| panic!("{error}"));
        for count in [1100, 5000] {
            let error = read(count).expect_err("it is refused");
            assert_eq!(error.place.position, Some((1003, 1)), "{error}");
        }
        // Each call is in as many blocks as naga reads.
        let mut text = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
fn f0() { o[0] += 1u; }"
            .to_string();
        for number in 1..50 {
            let (open, close) = ("if o[1] == 0u { ".repeat(100), "}".repeat(100));
            text += &format!("\nfn f{number}() {{ {open} f{}(); {close} }}", number - 1);
        }
        text += "\n@compute @workgroup_size(1) fn main() { f49(); }";
        let shader = Shader::wgsl("calls.wgsl", &text).unwrap_or_else(|error| panic!("{error}"));
        let error = shader.translate("main", &TranslateOptions::default());
        let error = error.expect_err("it is refused");
        assert!(error.to_string().contains("inside each other"), "{error}");
        assert!(error.place.position.is_some(), "{error}");
    });
    deep.expect("a thread").join().expect("nothing overflows");
}

/// Alignments of structures in others are numbers, in what way they may be written.
#[test]
fn alignments_in_structures_name_line_and_column() {
    let text = |align: &str| {
        format!(
            "const A = 16;
struct In {{ @align({align}) x: u32 }}
struct Out {{ a: u32, s: In }}
@group(0) @binding(0) var<storage, read_write> o: Out;
@compute @workgroup_size(1) fn main() {{ o.s.x = 7u; }}"
        )
    };
    for align in ["0x10", "0X10u", "16i", "16,", "A", "8 + 8", "(16)"] {
        refused(
            &text(align),
            &TranslateOptions::default(),
            (3, 1),
            "naga forgets the alignment",
        );
    }
    // No structure is around this one.
    let alone = text("A")
        .replace("s: In", "s: u32")
        .replace("o: Out", "o: In")
        .replace("o.s.x", "o.x");
    Shader::wgsl("alone.wgsl", &alone).unwrap_or_else(|error| panic!("{error}"));
}

/// A value of `continuing` that a `continue` goes past.
#[test]
fn values_that_a_continue_goes_past_name_line_and_column() {
    let text = |inside: &str, after: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1) fn main() {{
  var i = 0u; var y = 0u;
  loop {{
    if out[i] == 3u {{ {inside} }}
    let x = out[i] + 1u;
    if out[i] == 4u {{ {after} }}
    continuing {{
      y += x; i++; break if i > 5u;
    }}
  }}
  out[0] = y;
}}"
        )
    };
    refused(
        &text("continue;", ""),
        &TranslateOptions::default(),
        (9, 7),
        "behind a `continue`",
    );
    for (inside, after) in [
        ("break;", "continue;"),
        ("loop { if i == 0u { continue; } break; }", ""),
    ] {
        let shader = Shader::wgsl("fine.wgsl", &text(inside, after))
            .unwrap_or_else(|error| panic!("{error}"));
        let translation = shader.translate("main", &TranslateOptions::default());
        let compiled = translation.and_then(|translation| translation.compile(&Options::default()));
        compiled.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// What is only read is not written by the same launch.
#[test]
fn bindings_that_share_bytes_are_errors() {
    let text = "@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> c: array<u32>;
@compute @workgroup_size(1) fn main() { b[0] = a[0]; c[1] = 1u; }";
    let shader = Shader::wgsl("shared.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let device = common::plain();
    let pipeline = common::pipeline(&device, &shader, "main", &TranslateOptions::default());
    let buffer = device.allocate_zeroed(64).expect("there is room");
    let part = |from: u64, to: u64| buffer.slice(from..to).expect("it is inside");
    let dispatch = |parts: [Buffer; 3]| {
        let bindings = [0, 1, 2].map(|number| Binding::new(0, number, &parts[number as usize]));
        pipeline.dispatch([1, 1, 1], &bindings, &[])
    };
    let apart = dispatch([part(0, 16), part(16, 64), part(16, 32)]);
    apart.unwrap_or_else(|error| panic!("{error}"));
    for parts in [
        [part(0, 32), part(16, 64), part(48, 64)],
        [part(16, 32), part(32, 48), part(0, 64)],
    ] {
        let error = dispatch(parts).expect_err("they share bytes");
        assert!(
            matches!(error, LaunchError::Overlap { read: (0, 0), .. }),
            "{error}"
        );
    }
}
