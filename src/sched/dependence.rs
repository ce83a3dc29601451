//! What must stay in order within a run of instructions before allocation.

use crate::isa::table::{Direction, Effects};
use crate::isa::{Inst, Register, RegisterClass, VReg};
use crate::vcode::{Entry, VCode};
use hashbrown::HashMap;

/// The dependence graph of a run of instructions; nodes are positions in it.
#[derive(Clone, Debug, Default)]
pub struct Dependences {
    /// For each node the later nodes that depend on it, and the cycles from its issue to theirs.
    pub successors: Vec<Vec<(u32, u32)>>,
    /// For each node how many edges enter it.
    pub predecessors: Vec<u32>,
    /// For each node the cycles from its issue to the end of the run on the longest path, its own results included.
    pub height: Vec<u32>,
}

/// Whether an instruction keeps its place: everything before it stays before it, everything behind it behind.
///
/// These are calls and whatever changes which lanes run together (a uniform register must not be written before lanes have met), waits for
/// other warps, or names registers that are not in its operands.
pub fn keeps_its_place(inst: &Inst<VReg>) -> bool {
    let fixed = Effects::BARRIER
        .union(Effects::CONVERGENCE)
        .union(Effects::BRANCH)
        .union(Effects::CALL)
        .union(Effects::RETURN)
        .union(Effects::EXIT)
        .union(Effects::TRAP)
        .union(Effects::ANY_GPR)
        .union(Effects::PREDICATES);
    inst.optype().info().effects.intersects(fixed)
}

/// The memory that an instruction touches.
#[derive(Clone, Copy)]
struct Access {
    spaces: Effects,
    writes: bool,
}

const SPACES: Effects = Effects::GLOBAL
    .union(Effects::SHARED)
    .union(Effects::LOCAL)
    .union(Effects::GENERIC);

impl Access {
    fn of(inst: &Inst<VReg>) -> Option<Access> {
        let effects = inst.optype().info().effects;
        let spaces = Effects(effects.0 & SPACES.0);
        let touches =
            effects.intersects(Effects::LOAD.union(Effects::STORE).union(Effects::ATOMIC));
        let writes = effects.intersects(Effects::STORE.union(Effects::ATOMIC));
        (touches && spaces.0 != 0).then_some(Access { spaces, writes })
    }

    /// Whether the order of two accesses can be seen.
    fn conflicts(self, other: Access) -> bool {
        let generic = self.spaces.union(other.spaces).contains(Effects::GENERIC);
        (self.writes || other.writes) && (generic || self.spaces.intersects(other.spaces))
    }
}

/// Cycles from the issue of `inst` until a register that it writes can be used.
pub fn latency_of(inst: &Inst<VReg>, reg: VReg) -> u32 {
    let latency = &inst.optype().info().latency;
    let wide = || {
        let mut results = inst
            .operands()
            .filter(|o| o.info.direction == Direction::Out);
        results.any(|o| o.regs.len() > 1 && o.regs.contains(&Some(reg)))
    };
    u32::from(match reg.class() {
        RegisterClass::Predicate => latency.predicate,
        _ if wide() => latency.wide,
        _ => latency.result,
    })
}

impl Dependences {
    /// The graph of `run`; `needed` says whether a register is read behind it.
    pub fn of(
        code: &VCode<VReg>,
        run: &[Entry<VReg>],
        needed: impl Fn(VReg) -> bool,
    ) -> Dependences {
        let mut graph = Dependences {
            successors: vec![Vec::new(); run.len()],
            predecessors: vec![0; run.len()],
            height: vec![0; run.len()],
        };
        let mut writers: HashMap<VReg, u32> = HashMap::new();
        let mut accesses: Vec<(u32, Access)> = Vec::new();
        let mut convergent: Option<u32> = None;
        for (node, entry) in (0u32..).zip(run) {
            for reg in code.uses(entry) {
                if let Some(&writer) = writers.get(&reg) {
                    graph.edge(writer, node, latency_of(&run[writer as usize].inst, reg));
                }
            }
            if let Some(access) = Access::of(&entry.inst) {
                // Behind an earlier write to the same place in memory the order is given by that.
                for &(earlier, other) in &accesses {
                    if access.conflicts(other) {
                        graph.edge(earlier, node, 1);
                    }
                }
                accesses.push((node, access));
            }
            if entry
                .inst
                .optype()
                .info()
                .effects
                .contains(Effects::CONVERGENT)
                && let Some(earlier) = convergent.replace(node)
            {
                graph.edge(earlier, node, 1);
            }
            writers.extend(code.definitions(entry).map(|reg| (reg, node)));
        }
        for node in (0..run.len()).rev() {
            let results = code
                .definitions(&run[node])
                .filter(|r| needed(*r))
                .map(|r| latency_of(&run[node].inst, r));
            let behind = graph.successors[node]
                .iter()
                .map(|&(next, cycles)| cycles + graph.height[next as usize]);
            graph.height[node] = results.chain(behind).max().unwrap_or(1);
        }
        graph
    }

    fn edge(&mut self, from: u32, to: u32, cycles: u32) {
        let list = &mut self.successors[from as usize];
        match list.iter_mut().find(|(next, _)| *next == to) {
            Some((_, longest)) => *longest = (*longest).max(cycles),
            None => {
                list.push((to, cycles));
                self.predecessors[to as usize] += 1;
            }
        }
    }
}
