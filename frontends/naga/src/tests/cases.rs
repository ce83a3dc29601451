//! Shaders with what they must give, each for what a mistake would change. The first binding of group 0 is the result.

use crate::Bounds;

/// A shader, its inputs at the bindings from 1 on, and the words of its result.
pub struct Case {
    pub name: &'static str,
    pub text: &'static str,
    pub bounds: Bounds,
    pub inputs: &'static [&'static [u32]],
    pub expected: &'static [u32],
}

const fn case(
    name: &'static str,
    text: &'static str,
    inputs: &'static [&'static [u32]],
    expected: &'static [u32],
) -> Case {
    Case {
        name,
        text,
        bounds: Bounds::Restrict,
        inputs,
        expected,
    }
}

const fn zero(case: Case) -> Case {
    Case {
        bounds: Bounds::Zero,
        ..case
    }
}

/// The patterns of -1, of the least integer, and of a NaN.
const MINUS: u32 = u32::MAX;
const LEAST: u32 = 1 << 31;
const NAN: u32 = 0x7fc0_0000;

pub const CASES: &[Case] = &[
    case(
        "columns of three",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> m: mat2x3<f32>;
         @compute @workgroup_size(1) fn main() { let c = m; out[0] = bitcast<u32>(c[1].x); out[1] =
             bitcast<u32>(c[0].z); }",
        &[&[1, 2, 3, 4, 5, 6, 7, 8]],
        &[5, 3],
    ),
    case(
        "padding",
        "struct S { a: u32, b: vec3<u32>, c: u32, d: vec2<u32> }
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> s: S;
         @compute @workgroup_size(1) fn main() { out[0] = s.b.y; out[1] = s.c; out[2] = s.d.x; }",
        &[&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]],
        &[6, 8, 9],
    ),
    case(
        "division",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<i32>;
         @compute @workgroup_size(1) fn main() {
             out[0] = u32(n[0] / n[1]); out[1] = u32(n[0] % n[1]);
             out[2] = u32(n[2] / n[3]); out[3] = u32(n[2] % n[3]);
         }",
        &[&[7, 0, LEAST, MINUS]],
        &[7, 0, LEAST, 0],
    ),
    case(
        "continuing",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         @compute @workgroup_size(1) fn main() {
             var sum = 0u;
             var turns = 0u;
             for (var i = 0u; i < n[0]; i++) {
                 turns++;
                 if turns > 100u { break; }
                 if i % 2u == 0u { continue; }
                 sum += i;
             }
             out[0] = sum;
             out[1] = turns;
         }",
        &[&[10]],
        &[25, 10],
    ),
    case(
        "break in a switch",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         @compute @workgroup_size(1) fn main() {
             for (var i = 0u; i < n[0]; i++) {
                 switch i { case 1u: { if n[0] > 1u { break; } out[0] += 1000u; } default: { out[0] += 10u; } }
                 out[1] += 1u;
             }
         }",
        &[&[4]],
        &[30, 4],
    ),
    case(
        "workgroup zeros",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         var<workgroup> w: array<u32, 64>;
         @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) l: u32) { out[l] = w[l * 8u] + 1u; }",
        &[],
        &[1, 1, 1, 1, 1, 1, 1, 1],
    ),
    case(
        "locals of calls",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         fn grown(by: u32) -> u32 { var a: array<u32, 2>; var b: u32; a[n[0] & 1u] += by; b += by; return a[0] + a[1]
             + b; }
         @compute @workgroup_size(1) fn main() { for (var i = 0u; i < 3u; i++) { out[i] = grown(n[0] + i); } }",
        &[&[5]],
        &[10, 12, 14],
    ),
    case(
        "a scan of some",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) l: u32) {
             if l % 4u == 1u { out[l / 4u] = subgroupInclusiveAdd(l); }
         }",
        &[],
        &[1, 6, 15, 28, 45, 66, 91, 120],
    ),
    case(
        "the last element",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         @compute @workgroup_size(1) fn main() {
             var a = array<u32, 4>(1u, 2u, 3u, 4u);
             out[0] = a[n[0]] + n[n[0]];
             out[n[0]] = 7u;
         }",
        &[&[9, 8]],
        &[12, 7],
    ),
    zero(case(
        "stores outside",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         @compute @workgroup_size(1) fn main() { var a = array<vec2<u32>, 2>(); var b = array<u32, 4>(5u, 6u, 7u, 8u);
             a[n[0]].x = 9u; b[n[0]] = 9u; out[n[0]] = 1u; out[0] = a[0].x + a[1].x + b[n[1]] + b[n[0]]; }",
        &[&[9, 1]],
        &[6, 0],
    )),
    case(
        "array length",
        "struct S { a: vec4<u32>, all: array<u32> }
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> s: S;
         @compute @workgroup_size(1) fn main() { out[0] = arrayLength(&s.all); out[1] = arrayLength(&out); }",
        &[&[1, 2, 3, 4, 5, 6, 7, 8, 9]],
        &[5, 2],
    ),
    case(
        "sign extension",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<i32>;
         @compute @workgroup_size(1) fn main() { let wide = i64(n[0]); out[0] = u32(wide); out[1] = u32(wide >> 32u);
             }",
        &[&[MINUS - 6]],
        &[MINUS - 6, MINUS],
    ),
    case(
        "a barrier",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         var<workgroup> w: array<u32, 64>;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
             w[l] = l;
             workgroupBarrier();
             if l < 2u { out[l] = w[63u - l]; }
         }",
        &[],
        &[63, 62],
    ),
    case(
        "a row",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<f32>;
         @compute @workgroup_size(1) fn main() {
             let m = mat2x3<f32>(1.0, 2.0, 3.0, 4.0, 5.0, n[0]);
             let v = vec3<f32>(n[1], 1.0, 1.0) * m;
             out[0] = u32(v.x); out[1] = u32(v.y);
         }",
        &[&[0x40c0_0000, 0x4120_0000]],
        &[15, 51],
    ),
    case(
        "fields",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<u32>;
         @compute @workgroup_size(1) fn main() {
             out[0] = extractBits(n[0], 4u, n[1]);
             out[1] = u32(extractBits(i32(n[0]), 4u, 4u));
             out[2] = insertBits(n[0], 0u, 8u, n[1]);
         }",
        &[&[0x1234_5678, 0]],
        &[0, 7, 0x1234_5678],
    ),
    case(
        "floats as integers",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> x: array<f32>;
         @compute @workgroup_size(1) fn main() { out[0] = u32(i32(x[0])); out[1] = u32(x[0]); out[2] =
             u32(i32(-x[0])); out[3] = u32(-x[0]); }",
        &[&[0x7149_f2ca]],
        &[0x7fff_ff80, 0xffff_ff00, LEAST, 0],
    ),
    case(
        "comparisons with NaN",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> x: array<f32>;
         @compute @workgroup_size(1) fn main() {
             out[0] = u32(x[0] != x[0]); out[1] = u32(x[0] == x[0]); out[2] = u32(x[0] < x[1]); out[3] = u32(!(x[0]
             >= x[1]));
         }",
        &[&[NAN, 0]],
        &[1, 0, 0, 1],
    ),
    case(
        "shifts",
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> n: array<i32>;
         @compute @workgroup_size(1) fn main() { out[0] = u32(n[0] >> 4u); out[1] = u32(n[0]) >> 28u; out[2] = 1u <<
             (u32(n[1]) & 31u); }",
        &[&[LEAST, 33]],
        &[0xf800_0000, 8, 2],
    ),
];
