// A picture blurred by a Gaussian filter of five by five, and its edges by Sobel's two. A workgroup keeps its part of
// the picture, with a margin, in workgroup memory.

struct Size { width: u32, height: u32, unused: vec2<u32> }

@group(0) @binding(0) var<uniform> size: Size;
// Pixels: red, green and blue in a word.
@group(0) @binding(1) var<storage, read> pixels: array<u32>;
@group(0) @binding(2) var<storage, read_write> blurred: array<u32>;
@group(0) @binding(3) var<storage, read_write> edges: array<u32>;

const TILE = 16u;
const MARGIN = 2u;
const SIDE = TILE + 2u * MARGIN;

var<workgroup> tile: array<array<vec3<f32>, SIDE>, SIDE>;

// A pixel of the picture; behind its border the nearest.
fn pixel(x: i32, y: i32) -> vec3<f32> {
    let at = clamp(vec2(x, y), vec2(0), vec2<i32>(vec2(size.width, size.height)) - 1);
    return unpack4x8unorm(pixels[u32(at.y) * size.width + u32(at.x)]).xyz;
}

fn brightness(color: vec3<f32>) -> f32 {
    return dot(color, vec3(0.25, 0.5, 0.25));
}

@compute @workgroup_size(TILE, TILE)
fn filters(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) block: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let corner = vec2<i32>(block.xy * TILE) - i32(MARGIN);
    for (var y = local.y; y < SIDE; y += TILE) {
        for (var x = local.x; x < SIDE; x += TILE) {
            tile[y][x] = pixel(corner.x + i32(x), corner.y + i32(y));
        }
    }
    workgroupBarrier();
    if id.x >= size.width || id.y >= size.height {
        return;
    }
    var weights = array(1.0, 4.0, 6.0, 4.0, 1.0);
    var sum = vec3(0.0);
    for (var y = 0u; y < 5u; y++) {
        for (var x = 0u; x < 5u; x++) {
            sum += weights[y] * weights[x] * tile[local.y + y][local.x + x];
        }
    }
    let place = id.y * size.width + id.x;
    blurred[place] = pack4x8unorm(vec4(sum / 256.0, 1.0));
    let at = local.xy + MARGIN;
    var across = 0.0;
    var down = 0.0;
    for (var n = 0u; n < 3u; n++) {
        let weight = select(1.0, 2.0, n == 1u);
        across += weight * (brightness(tile[at.y + n - 1u][at.x + 1u]) - brightness(tile[at.y + n - 1u][at.x - 1u]));
        down += weight * (brightness(tile[at.y + 1u][at.x + n - 1u]) - brightness(tile[at.y - 1u][at.x + n - 1u]));
    }
    let strength = min(length(vec2(across, down)), 1.0);
    edges[place] = pack4x8unorm(vec4(vec3(strength), 1.0));
}
