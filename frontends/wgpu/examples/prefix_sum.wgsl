// Inclusive sums of all that stand before, in three steps: of each block, of the blocks' totals, and both together.

const SIZE = 256u;

@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@group(0) @binding(1) var<storage, read_write> totals: array<u32>;

var<workgroup> sums: array<u32, SIZE>;

// The inclusive sum over a workgroup: subgroups by themselves, then the subgroups' sums.
fn scan(value: u32, local: u32, lane: u32, lanes: u32) -> u32 {
    let within = subgroupInclusiveAdd(value);
    let subgroup = local / lanes;
    if lane == lanes - 1u {
        sums[subgroup] = within;
    }
    workgroupBarrier();
    var before = 0u;
    for (var n = 0u; n < subgroup; n++) {
        before += sums[n];
    }
    return before + within;
}

@compute @workgroup_size(SIZE)
fn blocks(
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(workgroup_id) block: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    let is_inside = id.x < arrayLength(&values);
    var value = 0u;
    if is_inside {
        value = values[id.x];
    }
    let sum = scan(value, local, lane, lanes);
    if is_inside {
        values[id.x] = sum;
    }
    if local == SIZE - 1u {
        totals[block.x] = sum;
    }
}

// One workgroup goes over all totals.
@compute @workgroup_size(SIZE)
fn over_totals(
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) lanes: u32,
) {
    var before = 0u;
    let count = arrayLength(&totals);
    for (var first = 0u; first < count; first += SIZE) {
        let place = first + local;
        var value = 0u;
        if place < count {
            value = totals[place];
        }
        let sum = before + scan(value, local, lane, lanes);
        if place < count {
            totals[place] = sum;
        }
        workgroupBarrier();
        if local == SIZE - 1u {
            sums[0] = sum;
        }
        before = workgroupUniformLoad(&sums[0]);
    }
}

@compute @workgroup_size(SIZE)
fn together(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) block: vec3<u32>) {
    if block.x > 0u && id.x < arrayLength(&values) {
        values[id.x] += totals[block.x - 1u];
    }
}
