//! Twenty shaders in GLSL beside the same in WGSL: equal bits, on inputs that a seed gives.

mod common;

use thisgpu_naga::{Shader, TranslateOptions};

/// A twin: what stands outside of `main` and in it, in GLSL and in WGSL. `i` is the invocation, `u` an input word, `x`
/// and `y` are inputs between -8 and 8; the result goes to `results[i]`.
struct Twin {
    name: &'static str,
    glsl: (&'static str, &'static str),
    wgsl: (&'static str, &'static str),
}

const fn twin(
    name: &'static str,
    glsl: (&'static str, &'static str),
    wgsl: (&'static str, &'static str),
) -> Twin {
    Twin { name, glsl, wgsl }
}

#[rustfmt::skip]
const TWINS: &[Twin] = &[
    twin("integers", ("", "results[i] = (u * 3u + 7u) ^ (u >> 5) ^ (u << 3);"),
        ("", "results[i] = (u * 3u + 7u) ^ (u >> 5u) ^ (u << 3u);")),
    twin("signed quotients", ("", "int a = int(u) / 7; int b = int(u) % 13; results[i] = uint(a * 31 + b);"),
        ("", "let a = i32(u) / 7; let b = i32(u) % 13; results[i] = u32(a * 31 + b);")),
    twin("floats", ("", "results[i] = floatBitsToUint(x * y + x / (abs(y) + 1.0) - 0.25);"),
        ("", "results[i] = bitcast<u32>(x * y + x / (abs(y) + 1.0) - 0.25);")),
    twin("rounding", ("", "results[i] = floatBitsToUint(floor(x) + ceil(y) * 16.0 + trunc(x * 3.0) * 256.0 + \
            fract(y));"),
        ("", "results[i] = bitcast<u32>(floor(x) + ceil(y) * 16.0 + trunc(x * 3.0) * 256.0 + fract(y));")),
    twin("transcendental", ("", "results[i] = floatBitsToUint(sin(x) + cos(y) + exp2(x * 0.25) + log2(abs(y) + \
            1.0) + sqrt(abs(x)));"),
        ("", "results[i] = bitcast<u32>(sin(x) + cos(y) + exp2(x * 0.25) + log2(abs(y) + 1.0) + sqrt(abs(x)));")),
    twin("mixing", ("", "results[i] = floatBitsToUint(mix(x, y, 0.3) + clamp(x, -1.0, 1.0) + smoothstep(-4.0, \
            4.0, y) + step(x, y));"),
        ("", "results[i] = bitcast<u32>(mix(x, y, 0.3) + clamp(x, -1.0, 1.0) + smoothstep(-4.0, 4.0, y) + \
            step(x, y));")),
    twin("vectors", ("", "vec3 v = vec3(x, y, x + y); vec3 w = v.zxy * 2.0; results[i] = floatBitsToUint(dot(v, \
            w) + cross(v, w).y);"),
        ("", "let v = vec3<f32>(x, y, x + y); let w = v.zxy * 2.0; results[i] = bitcast<u32>(dot(v, w) + \
            cross(v, w).y);")),
    twin("lengths", ("", "vec2 v = vec2(x, y + 9.0); results[i] = floatBitsToUint(length(v) + normalize(v).x + \
            distance(v, vec2(1.0)));"),
        ("", "let v = vec2<f32>(x, y + 9.0); results[i] = bitcast<u32>(length(v) + normalize(v).x + distance(v, \
            vec2<f32>(1.0)));")),
    twin("matrices", ("", "mat2 m = mat2(x, y, 1.0, x); mat2 n = m * transpose(m); vec2 v = n * vec2(y, x); \
            results[i] = floatBitsToUint(v.x + v.y * determinant(m));"),
        ("", "let m = mat2x2<f32>(x, y, 1.0, x); let n = m * transpose(m); let v = n * vec2<f32>(y, x); \
            results[i] = bitcast<u32>(v.x + v.y * determinant(m));")),
    twin("oblong matrices", ("", "mat3x2 m = mat3x2(x, y, 1.0, x, y, 2.0); vec2 v = m * vec3(x, y, 1.0); vec3 w \
            = v * m; results[i] = floatBitsToUint(v.x + w.z);"),
        ("", "let m = mat3x2<f32>(x, y, 1.0, x, y, 2.0); let v = m * vec3<f32>(x, y, 1.0); let w = v * m; \
            results[i] = bitcast<u32>(v.x + w.z);")),
    twin("loops", ("", "uint s = 0u; for (uint n = 0u; n < (u & 15u); n++) { if (n == 5u) { continue; } if (s > \
            40u) { break; } s += n * 3u; } results[i] = s;"),
        ("", "var s = 0u; for (var n = 0u; n < (u & 15u); n++) { if n == 5u { continue; } if s > 40u { break; } \
            s += n * 3u; } results[i] = s;")),
    twin("do while", ("", "uint v = u | 1u; uint n = 0u; do { v = v * 5u + 1u; n++; } while ((v & 7u) != 0u && n \
            < 20u); results[i] = n;"),
        ("", "var v = u | 1u; var n = 0u; loop { v = v * 5u + 1u; n++; continuing { break if !((v & 7u) != 0u && \
            n < 20u); } } results[i] = n;")),
    twin("switch", ("", "uint r = 1u; switch (int(u & 7u)) { case 0: r = 10u; break; case 1: case 2: r = 20u; \
            break; case 5: r = 50u; break; default: r = 90u; } results[i] = r;"),
        ("", "var r = 1u; switch (i32(u & 7u)) { case 0: { r = 10u; } case 1, 2: { r = 20u; } case 5: { r = 50u; \
            } default: { r = 90u; } } results[i] = r;")),
    twin("functions", ("uint twice(uint a) { return a * 2u; } uint both(uint a, uint b) { if (a > b) { return \
            twice(a); } return twice(b) + 1u; }", "results[i] = both(u, u * 77u);"),
        ("fn twice(a: u32) -> u32 { return a * 2u; } fn both(a: u32, b: u32) -> u32 { if a > b { return \
            twice(a); } return twice(b) + 1u; }", "results[i] = both(u, u * 77u);")),
    twin("arguments that change", ("void grow(inout uint a, out uint b) { b = a; a += 3u; }", "uint a = u; uint \
            b; grow(a, b); results[i] = a * 5u ^ b;"),
        ("fn grow(a: ptr<function, u32>, b: ptr<function, u32>) { *b = *a; *a += 3u; }", "var a = u; var b: u32; \
            grow(&a, &b); results[i] = a * 5u ^ b;")),
    twin("arrays", ("", "uint a[5]; for (uint n = 0u; n < 5u; n++) { a[n] = u * (n + 1u); } results[i] = a[u % \
            5u] + a[2];"),
        ("", "var a: array<u32, 5>; for (var n = 0u; n < 5u; n++) { a[n] = u * (n + 1u); } results[i] = a[u % \
            5u] + a[2];")),
    twin("structures", ("struct P { vec2 place; uint weight; };", "P p = P(vec2(x, y), u); p.place.y += 1.0; \
            results[i] = floatBitsToUint(p.place.x * p.place.y) + p.weight;"),
        ("struct P { place: vec2<f32>, weight: u32 }", "var p = P(vec2<f32>(x, y), u); p.place.y += 1.0; \
            results[i] = bitcast<u32>(p.place.x * p.place.y) + p.weight;")),
    twin("bits", ("", "results[i] = uint(bitCount(u)) + uint(findMSB(u | 1u)) * 64u + bitfieldReverse(u) + \
            bitfieldExtract(u, 3, 9);"),
        ("", "results[i] = countOneBits(u) + firstLeadingBit(u | 1u) * 64u + reverseBits(u) + extractBits(u, 3u, \
            9u);")),
    twin("packing", ("", "results[i] = packHalf2x16(vec2(x, y)) ^ packUnorm4x8(vec4(x, y, 0.5, 1.0)) ^ \
            packSnorm2x16(vec2(x, y) * 0.1);"),
        ("", "results[i] = pack2x16float(vec2<f32>(x, y)) ^ pack4x8unorm(vec4<f32>(x, y, 0.5, 1.0)) ^ \
            pack2x16snorm(vec2<f32>(x, y) * 0.1);")),
    twin("shared memory", ("shared uint part[32];", "part[gl_LocalInvocationID.x] = u; barrier(); results[i] = \
            part[31u - gl_LocalInvocationID.x] + part[(gl_LocalInvocationID.x + 1u) % 32u];"),
        ("var<workgroup> part: array<u32, 32>;", "part[l.x] = u; workgroupBarrier(); results[i] = part[31u - \
            l.x] + part[(l.x + 1u) % 32u];")),
];

/// Invocations of a launch.
const COUNT: u32 = 64;

fn glsl(twin: &Twin) -> String {
    format!(
        "#version 450
layout(local_size_x = 32) in;
layout(std430, set = 0, binding = 0) buffer Results {{ uint results[]; }};
layout(std430, set = 0, binding = 1) readonly buffer Values {{ uint values[]; }};
{}
void main() {{
    uint i = gl_GlobalInvocationID.x;
    uint u = values[i];
    float x = float(u & 1023u) / 64.0 - 8.0;
    float y = float((u >> 10) & 1023u) / 64.0 - 8.0;
    {}
}}",
        twin.glsl.0, twin.glsl.1
    )
}

fn wgsl(twin: &Twin) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> results: array<u32>;
@group(0) @binding(1) var<storage, read> values: array<u32>;
{}
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {{
    let i = g.x;
    let u = values[i];
    let x = f32(u & 1023u) / 64.0 - 8.0;
    let y = f32((u >> 10u) & 1023u) / 64.0 - 8.0;
    {}
}}",
        twin.wgsl.0, twin.wgsl.1
    )
}

fn run(shader: &Shader, values: &[u32]) -> Vec<u32> {
    let device = common::plain();
    let pipeline = common::pipeline(&device, shader, "main", &TranslateOptions::default());
    let mut buffers = [vec![0; values.len()], values.to_vec()];
    let report = common::dispatch(&device, &pipeline, [COUNT / 32, 1, 1], &mut buffers);
    report.unwrap_or_else(|error| panic!("{error}"));
    let [results, _] = buffers;
    results
}

#[test]
fn glsl_and_wgsl_give_equal_bits() {
    assert_eq!(TWINS.len(), 20);
    let seed = 0x7177u32;
    // A linear congruential generator is enough to have different words.
    let step = |word: &u32| Some(word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let values: Vec<u32> = std::iter::successors(Some(seed), step)
        .take(COUNT as usize)
        .collect();
    for twin in TWINS {
        let read = Shader::glsl("twin.comp", &glsl(twin));
        let first = read.unwrap_or_else(|error| panic!("{}: {error}", twin.name));
        let read = Shader::wgsl("twin.wgsl", &wgsl(twin));
        let second = read.unwrap_or_else(|error| panic!("{}: {error}", twin.name));
        let (first, second) = (run(&first, &values), run(&second, &values));
        assert_eq!(first, second, "{}, seed {seed:#x}", twin.name);
        // What is always the same would show nothing.
        assert!(
            second.iter().any(|word| *word != second[0]),
            "{}",
            twin.name
        );
    }
}
