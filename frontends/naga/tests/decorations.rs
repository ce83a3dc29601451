//! `@coherent` and `@volatile`: what another workgroup stores is seen.

mod common;

/// The second workgroup ends the first one's loop.
#[test]
fn a_loop_sees_what_others_store() {
    for decoration in ["@volatile", "@coherent", "@volatile @coherent"] {
        let text = format!(
            "@group(0) @binding(0) {decoration} var<storage, read_write> flag: array<u32>;
             @group(0) @binding(1) var<storage, read_write> out: array<u32>;
             @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {{
                 if g.x == 1u {{ flag[0] = 1u; return; }}
                 var x = flag[0];
                 var n = 0u;
                 while x == 0u && n < 100000u {{ x = flag[0]; n++; }}
                 out[0] = x;
                 out[1] = u32(n < 100000u);
             }}"
        );
        let mut buffers = [vec![0; 4], vec![0; 4]];
        common::run(&text, [2, 1, 1], &mut buffers);
        assert_eq!(buffers[1][..2], [1, 1], "{decoration}");
    }
}

/// Vectors, narrow scalars and floats go by their scalars.
#[test]
fn all_scalars_are_stored_and_loaded() {
    let text = "enable f16;
        struct S { a: vec3<f32>, b: u32, c: vec2<f16>, d: f32 }
        @group(0) @binding(0) @volatile var<storage, read_write> s: array<S>;
        @group(0) @binding(1) @coherent var<storage, read> more: array<vec4<u32>>;
        @compute @workgroup_size(1) fn main() {
            s[0] = S(vec3<f32>(more[0].xyz), more[0].w, vec2<f16>(1.5h, 2.0h), f32(more[1].x));
            s[1] = s[0];
        }";
    let mut buffers = [vec![0; 16], vec![1, 2, 3, 4, 5, 6, 7, 8]];
    common::run(text, [1, 1, 1], &mut buffers);
    let one = [
        0x3f80_0000,
        0x4000_0000,
        0x4040_0000,
        4,
        0x4000_3e00,
        0x40a0_0000,
    ];
    for element in buffers[0].chunks(8) {
        assert_eq!(element[..6], one);
    }
}
