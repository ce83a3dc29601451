//! Tests that plant mistakes in the translator: each must change what some shader gives.

mod cases;

use crate::mistakes::{Mistake, plant};
use crate::{Binding, Bounds, Shader, TranslateOptions, Translation};
use cases::{CASES, Case};
use cranelift_thisgpu::{Buffer, Device, Options, SimConfig};

/// Runs a case on a simulator that looks for races and reads of what nobody wrote: the words of its first buffer, or
/// what went wrong.
fn run(case: &Case, mistake: Option<Mistake>) -> Result<Vec<u32>, String> {
    let shader = Shader::wgsl(case.name, case.text).map_err(|error| error.to_string())?;
    let options = TranslateOptions {
        bounds: case.bounds,
        buffer_bounds: case.bounds,
        ..TranslateOptions::default()
    };
    let translation = plant(mistake, || shader.translate("main", &options));
    let translation = translation.map_err(|error| error.to_string())?;
    let compiled = translation.compile(&Options::default());
    let compiled = compiled.map_err(|error| error.to_string())?;
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let pipeline = compiled.load(&device).map_err(|error| error.to_string())?;
    let first = vec![0; case.expected.len()];
    let mut buffers: Vec<Buffer<u32>> = Vec::new();
    for words in std::iter::once(&first[..]).chain(case.inputs.iter().copied()) {
        buffers.push(device.upload(words).map_err(|error| error.to_string())?);
    }
    let mut bindings = Vec::new();
    for (number, buffer) in buffers.iter().enumerate() {
        let bytes = buffer.cast().map_err(|error| error.to_string())?;
        bindings.push(Binding::new(0, number as u32, &bytes));
    }
    let report = pipeline.dispatch([1, 1, 1], &bindings, &[]);
    let report = report
        .map_err(|error| error.to_string())?
        .ok_or("nothing ran")?;
    if let Some(finding) = report.findings.first() {
        return Err(finding.to_string());
    }
    buffers[0].to_vec().map_err(|error| error.to_string())
}

#[test]
fn cases_are_right() {
    for case in CASES {
        assert_eq!(run(case, None), Ok(case.expected.to_vec()), "{}", case.name);
    }
}

#[test]
fn each_planted_mistake_is_found() {
    use Mistake as M;
    let mistakes = [
        M::ColumnStride,
        M::Padding,
        M::UnguardedDivision,
        M::LeastQuotient,
        M::SkippedContinuing,
        M::SwitchBreak,
        M::WorkgroupZeros,
        M::KeptLocals,
        M::InactiveScan,
        M::LastElement,
        M::OutsideStore,
        M::ArrayLength,
        M::SignExtension,
        M::Barrier,
        M::RowVector,
        M::EmptyField,
        M::FloatLimit,
        M::OrderedNotEqual,
        M::UnsignedShift,
    ];
    for mistake in mistakes {
        let mut by = CASES
            .iter()
            .filter(|case| run(case, Some(mistake)) != Ok(case.expected.to_vec()));
        assert!(by.next().is_some(), "{mistake:?} is found by no case");
    }
}

#[test]
fn bounds_are_restricted_unless_asked() {
    assert_eq!(TranslateOptions::default().buffer_bounds, Bounds::Restrict);
}

/// What an entry point makes of the words of its only buffer.
fn launched(text: &str, entry: &str, words: &[u32]) -> (Translation, Vec<u32>) {
    let translation = translation(text, entry);
    let compiled = translation.clone().compile(&Options::default());
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    let device = Device::simulator(SimConfig::default());
    let out = device.upload(words).expect("there is room");
    let binding = Binding::new(0, 0, &out.cast().expect("bytes"));
    let pipeline = compiled.load(&device).expect("it fits");
    let report = pipeline.dispatch([1, 1, 1], &[binding], &[]);
    report.unwrap_or_else(|error| panic!("{error}"));
    (translation, out.to_vec().expect("it can be read"))
}

/// What the body calls by name is the library's and not the kernel.
#[test]
fn entry_points_are_named_like_functions_of_the_library() {
    let cases = [
        ("expf", "exp(f32(out[0]))", 1),
        ("fmodf", "f32(out[0] + 7u) % 4.0", 3),
    ];
    for (name, value, expected) in cases {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(1) fn {name}() {{ out[0] = u32({value}); }}"
        );
        let (translation, out) = launched(&text, name, &[0]);
        assert_eq!(translation.interface.entry, name);
        assert_eq!(out, [expected], "{name}");
    }
}

/// Calls that do not live at once have the same memory.
#[test]
fn calls_behind_each_other_share_their_memory() {
    let calls: String = (0..64)
        .map(|n| format!("out[{n}] = f(out[{n}], {n}u);\n"))
        .collect();
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         fn g(x: u32) -> array<u32, 256> {{ var a: array<u32, 256>; a[x] = x; return a; }}
         fn f(x: u32, y: u32) -> u32 {{ var a = g(x); a[y] += 7u; return a[x] + a[y]; }}
         @compute @workgroup_size(1) fn main() {{ {calls} }}"
    );
    let words: Vec<u32> = (0..64).map(|n| n * 3 % 64).collect();
    let (translation, out) = launched(&text, "main", &words);
    let slots = translation.function.sized_stack_slots.values();
    let bytes: u32 = slots.map(|slot| slot.size).sum();
    assert!(bytes <= 6 * 1024, "{bytes} bytes");
    for (n, (&word, &result)) in (0..).zip(words.iter().zip(&out)) {
        let expected = if n == word { 2 * n + 14 } else { word + 7 };
        assert_eq!(result, expected, "call {n}");
    }
}

fn translation(text: &str, entry: &str) -> Translation {
    let shader = Shader::wgsl("test.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let translation = shader.translate(entry, &TranslateOptions::default());
    translation.unwrap_or_else(|error| panic!("{error}"))
}

/// Zeros that are indexed are written by a loop, whatever name they have.
#[test]
fn constants_of_zeros_are_written_by_a_loop() {
    let text = "const t = array<u32, 16384>();
        const u = t;
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        @compute @workgroup_size(1) fn main() { out[0] = t[out[1]] + u[out[2]] + 5u; }";
    let instructions = translation(text, "main").function.dfg.num_insts();
    assert!(instructions < 100, "{instructions} instructions");
    assert_eq!(launched(text, "main", &[1, 2, 3]).1, [5, 2, 3]);
}

/// Other constants come with the code: no thread writes them.
#[test]
fn constants_that_are_indexed_are_data() {
    let numbers: Vec<String> = (0..3000).map(|n| format!("{}u", n * 7)).collect();
    let text = format!(
        "const t = array<u32, 3000>({});
        const v = array<vec3<f32>, 5>(vec3<f32>(1.0), vec3<f32>(2.0, 3.0, 4.0), vec3<f32>(), vec3<f32>(), vec3<f32>(5.0));
        const b = array<bool, 6>(true, false, true, true, false, false);
        @group(0) @binding(0) var<storage, read_write> out: array<u32>;
        fn more(at: u32) -> u32 {{ let all = t; return all[at]; }}
        @compute @workgroup_size(1) fn main() {{
            let i = out[0];
            out[1] = t[i] + u32(b[i]) * 100000u;
            out[2] = u32(v[i].y) * 10u + u32(v[i + 3u].z);
            out[3] = more(i + 5u) + t[i + 90000u];
        }}",
        numbers.join(", ")
    );
    let (translation, out) = launched(&text, "main", &[1, 0, 0, 0]);
    assert_eq!(out, [1, 7, 35, 42 + 2999 * 7]);
    assert!(translation.function.sized_stack_slots.is_empty());
    let bytes: u64 = translation
        .data
        .iter()
        .map(|data| data.contents.len())
        .sum();
    assert_eq!(bytes, 12000 + 80 + 6);
}

/// A large part of what is only read stays where it is.
#[test]
fn values_of_read_only_buffers_are_not_copied() {
    let case = Case {
        name: "rows",
        text: "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
            @group(0) @binding(1) var<storage, read> big: array<array<u32, 70>>;
            fn pick(row: array<u32, 70>, at: u32) -> u32 { return row[at] + row[1]; }
            @compute @workgroup_size(1) fn main() {
                let row = big[out[2] + 1u];
                out[0] = row[out[2] + 2u] + row[out[2] + 90u];
                out[1] = pick(row, out[2] + 3u);
            }",
        bounds: Bounds::Restrict,
        inputs: &[&ROWS],
        expected: &[72 + 139, 73 + 71, 0],
    };
    assert!(
        translation(case.text, "main")
            .function
            .sized_stack_slots
            .is_empty()
    );
    assert_eq!(run(&case, None), Ok(case.expected.to_vec()));
    let zero = Case {
        bounds: Bounds::Zero,
        expected: &[72, 73 + 71, 0],
        ..case
    };
    assert_eq!(run(&zero, None), Ok(zero.expected.to_vec()));
}

/// Two rows of 70 words that count.
const ROWS: [u32; 140] = {
    let mut rows = [0; 140];
    let mut at = 0;
    while at < 140 {
        rows[at] = at as u32;
        at += 1;
    }
    rows
};
