// Two substances that spread and react (Gray and Scott): a step of all cells from one grid to the other, and a picture.

struct Parameters { side: u32, feed: f32, kill: f32, step: f32 }

@group(0) @binding(0) var<uniform> parameters: Parameters;
@group(0) @binding(1) var<storage, read> old: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> later: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> picture: array<u32>;

const SPREAD = vec2(0.16, 0.08);

// A cell; the borders of the grid meet.
fn cell(x: u32, y: u32) -> vec2<f32> {
    let side = parameters.side;
    return old[(y % side) * side + x % side];
}

@compute @workgroup_size(8, 8)
fn advance(@builtin(global_invocation_id) id: vec3<u32>) {
    let side = parameters.side;
    if id.x >= side || id.y >= side {
        return;
    }
    // Beyond the first row and column, so that one can be taken away.
    let x = id.x + side;
    let y = id.y + side;
    let here = cell(x, y);
    let near = cell(x - 1u, y) + cell(x + 1u, y) + cell(x, y - 1u) + cell(x, y + 1u);
    let spread = SPREAD * (near - 4.0 * here);
    let reacts = here.x * here.y * here.y;
    let fed = parameters.feed * (1.0 - here.x);
    let killed = (parameters.feed + parameters.kill) * here.y;
    later[id.y * side + id.x] = here + parameters.step * (spread + vec2(fed - reacts, reacts - killed));
}

// Dark where nothing is, over blue and red to yellow.
@compute @workgroup_size(8, 8)
fn paint(@builtin(global_invocation_id) id: vec3<u32>) {
    let side = parameters.side;
    if id.x >= side || id.y >= side {
        return;
    }
    let v = saturate(cell(id.x, id.y).y * 3.0);
    let color = vec3(smoothstep(0.2, 0.7, v), smoothstep(0.6, 1.0, v), v * (1.0 - v) * 3.0);
    picture[id.y * side + id.x] = pack4x8unorm(vec4(color, 1.0));
}
