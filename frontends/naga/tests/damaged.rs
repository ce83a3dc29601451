//! Damaged shaders: whatever stands in a text or a binary, it is refused or translated, and no refusal of a text lacks
//! its place.

mod common;

use cranelift_thisgpu::Options;
use thisgpu_naga::naga::back::spv;
use thisgpu_naga::{Error, Reason, Shader, TranslateOptions};

const TEXT: &str = "
struct S { a: vec3<f32>, n: u32, m: mat3x2<f32>, all: array<vec2<i32>, 5> }
@group(0) @binding(0) var<storage, read_write> s: array<S>;
@group(0) @binding(1) var<uniform> k: vec4<u32>;
var<workgroup> w: array<atomic<u32>, 33>;
var<private> p: array<f32, 7>;
const c = array<u32, 3>(5u, 6u, 7u);
fn f(x: ptr<function, S>, i: u32) -> vec2<f32> {
    (*x).all[i].y += i32(i) / (*x).all[0].x;
    if i > 7u { return vec2<f32>(1.5, p[i]); }
    return (*x).m * (*x).a;
}
@compute @workgroup_size(33, 2)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_index) l: u32) {
    var x = s[g.x];
    for (var i = 0u; i < k[g.y & 3u]; i++) {
        switch i % 4u {
            case 0u: { x.a *= f32(c[i % 3u]); }
            case 1u, 2u: { if l > 3u { continue; } p[i] = dot(x.a, x.a); }
            default: { atomicMax(&w[l], i << 2u); break; }
        }
        x.a = vec3<f32>(f(&x, i), sin(p[l]));
    }
    workgroupBarrier();
    s[g.x].n = atomicLoad(&w[32u - l % 33u]) + subgroupAdd(l);
    s[g.x].a = x.a.zyx;
}
";

/// A linear congruential generator: enough to choose places.
struct Random(u32);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % limit.max(1)
    }
}

fn translated(shader: Result<Shader, Error>) -> Result<(), Error> {
    let shader = shader?;
    let entry = shader.entries().next().unwrap_or("main").to_string();
    let translation = shader.translate(&entry, &TranslateOptions::default())?;
    // What the compiler is given must be CLIF that it takes, but for what a machine has not.
    translation.compile(&Options::default())?;
    Ok(())
}

#[test]
fn damaged_texts_are_refused_with_a_place() {
    translated(Shader::wgsl("whole.wgsl", TEXT)).unwrap_or_else(|error| panic!("{error}"));
    let tokens: Vec<&str> = TEXT
        .split_inclusive([' ', '(', ')', ',', '.', ';', '[', ']'])
        .collect();
    for seed in 1..=150 {
        let mut random = Random(seed);
        let mut damaged = tokens.clone();
        for _ in 0..=random.below(2) {
            let place = random.below(damaged.len());
            match random.below(3) {
                0 => drop(damaged.remove(place)),
                1 => damaged[place] = tokens[random.below(tokens.len())],
                _ => damaged.insert(place, tokens[random.below(tokens.len())]),
            }
        }
        let text = damaged.concat();
        if let Err(error) = translated(Shader::wgsl("damaged.wgsl", &text)) {
            let is_placed = error.place.position.is_some();
            let is_request = matches!(error.reason, Reason::Request(_));
            assert!(is_placed || is_request, "seed {seed}: {error}\n{text}");
            assert!(
                !matches!(error.reason, Reason::Compiler(_)),
                "seed {seed}: {error}\n{text}"
            );
        }
    }
}

#[test]
fn damaged_binaries_are_refused() {
    // naga does not read what it writes for structures that buffers have too, and for atomics.
    let text = TEXT
        .replace("x: ptr<function, S>", "x: ptr<function, vec3<f32>>")
        .replace(
            "(*x).all[i].y += i32(i) / (*x).all[0].x;",
            "(*x)[i % 3u] += 1.0;",
        )
        .replace("return (*x).m * (*x).a;", "return s[i].m * *x;")
        .replace("var x = s[g.x];", "var x = s[g.x].a;")
        .replace("x.a", "x")
        .replace("array<atomic<u32>, 33>", "array<u32, 33>")
        .replace("atomicMax(&w[l], i << 2u)", "w[l % 33u] = i << 2u")
        .replace("atomicLoad(&w[32u - l % 33u])", "w[32u - l % 33u]");
    let shader = Shader::wgsl("whole.wgsl", &text).unwrap_or_else(|error| panic!("{error}"));
    let options = spv::Options::default();
    let words = spv::write_vec(&shader.module, &shader.info, &options, None);
    let words = words.unwrap_or_else(|error| panic!("{error}"));
    let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let whole = Shader::spirv("whole.spv", &bytes(&words));
    translated(whole).unwrap_or_else(|error| panic!("{error}"));
    // What naga panics at is a refusal, and need not be printed.
    std::panic::set_hook(Box::new(|_| {}));
    let mut outcomes = Vec::new();
    for seed in 1..=150 {
        let mut random = Random(seed);
        let mut damaged = words.clone();
        let place = 5 + random.below(damaged.len() - 5);
        match random.below(3) {
            0 => damaged.truncate(place),
            1 => damaged[place] ^= 1 << random.below(32),
            _ => damaged[place] = words[random.below(words.len())],
        }
        let outcome =
            std::panic::catch_unwind(|| translated(Shader::spirv("damaged.spv", &bytes(&damaged))));
        outcomes.push((seed, outcome.is_ok()));
    }
    let _ = std::panic::take_hook();
    let panicked: Vec<_> = outcomes.iter().filter(|(_, is_ok)| !is_ok).collect();
    assert!(panicked.is_empty(), "seeds that panic: {panicked:?}");
}
