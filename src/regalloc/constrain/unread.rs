//! Parameters of blocks that nobody reads: no instruction and no terminator, but what they are passed for, which is such
//! a parameter again.
//!
//! What is passed for one is alive until then, across calls too, and no use ever brings it back to a register. So they
//! go before anything is decided. Lowering makes none; passes behind it may leave some.

use crate::isa::VReg;
use crate::regalloc::liveness::{Liveness, edge_arguments};
use crate::vcode::VCode;

/// Drops them; false if there are none. `live` knows the uses.
pub(in crate::regalloc) fn drop_parameters(code: &mut VCode<VReg>, live: &Liveness) -> bool {
    if code.blocks.values().all(|data| data.params.is_empty()) {
        return false;
    }
    // How often each value is passed; read is what is used more often.
    let mut passed = vec![0; code.vreg_count as usize];
    for (arg, _) in code.blocks.keys().flat_map(|b| edge_arguments(code, b)) {
        passed[arg.index()] += 1;
    }
    let mut unread = vec![false; code.vreg_count as usize];
    let params = code.blocks.values().flat_map(|data| &data.params);
    let only_passed = |v: &&VReg| live.use_count(**v) == passed[v.index()];
    let mut any = false;
    for v in params.filter(only_passed) {
        unread[v.index()] = true;
        any = true;
    }
    if !any {
        return false;
    }
    // By the parameter, the parameters that are passed for it. What is passed for one that is read is read.
    let edges = code.blocks.keys().flat_map(|b| edge_arguments(code, b));
    let mut edges: Vec<(VReg, VReg)> = edges
        .filter(|(arg, _)| unread[arg.index()])
        .map(|(arg, param)| (param, arg))
        .collect();
    edges.sort_unstable();
    let read = edges.iter().map(|(param, _)| *param);
    let mut pending: Vec<VReg> = read.filter(|param| !unread[param.index()]).collect();
    pending.dedup();
    while let Some(param) = pending.pop() {
        let start = edges.partition_point(|(p, _)| *p < param);
        let of_it = edges[start..].iter().take_while(|(p, _)| *p == param);
        for (_, arg) in of_it {
            if std::mem::take(&mut unread[arg.index()]) {
                pending.push(*arg);
            }
        }
    }
    let any = unread.contains(&true);
    if any {
        code.retain_params(|v| !unread[v.index()]);
    }
    any
}
