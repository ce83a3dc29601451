//! What functions need of the machine with everything they call.
//!
//! Registers are the maximum over the call graph, local memory is the deepest chain of frames. A call through an address may reach
//! every function whose address is taken. Where calls form a cycle the depth is unknown: local memory is then [`RECURSION_BYTES`] more.

use crate::emit;
use crate::object;
use crate::vcode::SymbolKind;
use hashbrown::{HashMap, HashSet};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// Local memory for the frames of a recursion (*assigned*); a deeper one ends in a stack overflow fault.
pub const RECURSION_BYTES: u32 = 16 * 1024;

/// What a function needs, callees included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    registers: u32,
    predicates: u32,
    uniform: u32,
    local_bytes: u32,
    uses_barrier: bool,
}

/// The report of a kernel, as `--resource-usage` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelResources {
    /// Name.
    pub name: String,
    /// Its own instructions.
    pub instructions: u32,
    /// General-purpose registers of a thread.
    pub registers: u32,
    /// Predicates of a thread.
    pub predicates: u32,
    /// Uniform registers of a warp.
    pub uniform: u32,
    /// Bytes of spill slots of a thread, the kernel's own.
    pub spill_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of static shared memory of a block.
    pub shared_bytes: u32,
    /// Instructions of each innermost loop.
    pub loops: Vec<u32>,
}

impl fmt::Display for KernelResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} instructions, {} registers, {} predicates, {} uniform registers, {} bytes spilled, \
             {} bytes local, {} bytes shared",
            self.name,
            self.instructions,
            self.registers,
            self.predicates,
            self.uniform,
            self.spill_bytes,
            self.local_bytes,
            self.shared_bytes
        )?;
        if !self.loops.is_empty() {
            let loops: Vec<String> = self.loops.iter().map(u32::to_string).collect();
            write!(f, ", innermost loops of {} instructions", loops.join(", "))?;
        }
        Ok(())
    }
}

impl Needs {
    /// The part that goes into the object.
    pub fn for_object(&self) -> object::Resources {
        object::Resources {
            registers: self.registers,
            local_bytes: self.local_bytes,
            barriers: u32::from(self.uses_barrier),
        }
    }

    /// The report of the kernel with this code.
    pub fn report(&self, code: &emit::Code) -> KernelResources {
        KernelResources {
            name: code.name.clone(),
            instructions: code.resources.instructions,
            registers: self.registers,
            predicates: self.predicates,
            uniform: self.uniform,
            spill_bytes: code.resources.spill_bytes,
            local_bytes: self.local_bytes,
            shared_bytes: code.resources.shared_bytes,
            loops: code.resources.loops.clone(),
        }
    }
}

/// The needs of each function, callees included. Functions that are not among them count for nothing.
pub(super) fn of_functions<'a>(
    functions: impl Iterator<Item = &'a emit::Code> + Clone,
) -> Vec<Needs> {
    let index: HashMap<&str, usize> = functions
        .clone()
        .enumerate()
        .map(|(i, f)| (f.name.as_str(), i))
        .collect();
    let taken: BTreeSet<usize> = functions
        .clone()
        .flat_map(|f| &f.relocations)
        .filter(|(_, symbol)| symbol.kind != SymbolKind::Relative)
        .filter_map(|(_, symbol)| index.get(symbol.name.as_str()).copied())
        .collect();
    let nodes: Vec<Node> = functions
        .map(|code| Node::new(code, &index, &taken))
        .collect();
    let total = |reached: Reached| {
        let recursion = if reached.recursive {
            RECURSION_BYTES
        } else {
            0
        };
        Needs {
            local_bytes: reached.needs.local_bytes.saturating_add(recursion),
            ..reached.needs
        }
    };
    reached(&nodes).into_iter().map(total).collect()
}

/// A function in the call graph.
struct Node {
    own: Needs,
    callees: BTreeSet<usize>,
}

impl Node {
    fn new(code: &emit::Code, index: &HashMap<&str, usize>, taken: &BTreeSet<usize>) -> Self {
        let r = &code.resources;
        let mut callees: BTreeSet<usize> = r
            .callees
            .iter()
            .filter_map(|name| index.get(name.as_str()).copied())
            .collect();
        if r.calls_by_address {
            callees.extend(taken);
        }
        let own = Needs {
            registers: r.registers,
            predicates: r.predicates,
            uniform: r.uniform,
            local_bytes: r.local_bytes,
            uses_barrier: r.uses_barrier,
        };
        Node { own, callees }
    }
}

/// Needs, and whether a cycle of calls is within reach.
#[derive(Clone, Copy, Default)]
struct Reached {
    needs: Needs,
    recursive: bool,
}

/// What each function needs with all that it calls, by Tarjan's strongly connected components (*Depth-first search and linear graph
/// algorithms*): a component is finished after all that it calls, and its members need the same. Of the frames of a cycle the largest counts.
fn reached(nodes: &[Node]) -> Vec<Reached> {
    const NEW: usize = usize::MAX;
    let mut found = vec![Reached::default(); nodes.len()];
    // The number of a node that is open; that of the first open node it leads to.
    let mut numbers = vec![NEW; nodes.len()];
    let mut lowest = vec![NEW; nodes.len()];
    let mut is_open = vec![false; nodes.len()];
    let (mut open, mut next) = (Vec::new(), 0);
    for root in 0..nodes.len() {
        if numbers[root] != NEW {
            continue;
        }
        let mut path = vec![(root, nodes[root].callees.iter())];
        while let Some((node, callees)) = path.last_mut() {
            let node = *node;
            if numbers[node] == NEW {
                (numbers[node], lowest[node], is_open[node]) = (next, next, true);
                next += 1;
                open.push(node);
            }
            match callees.next() {
                Some(&callee) if numbers[callee] == NEW => {
                    path.push((callee, nodes[callee].callees.iter()));
                }
                Some(&callee) => {
                    if is_open[callee] {
                        lowest[node] = lowest[node].min(numbers[callee]);
                    }
                }
                None => {
                    path.pop();
                    if let Some((caller, _)) = path.last() {
                        lowest[*caller] = lowest[*caller].min(lowest[node]);
                    }
                    if lowest[node] == numbers[node] {
                        let first = open.iter().rposition(|&n| n == node).unwrap_or(0);
                        let members = open.split_off(first);
                        members.iter().for_each(|&member| is_open[member] = false);
                        let all = component(nodes, &members, &found);
                        members.iter().for_each(|&member| found[member] = all);
                    }
                }
            }
        }
    }
    found
}

/// What the members of a component need; `found` says it of all that they call outside.
fn component(nodes: &[Node], members: &[usize], found: &[Reached]) -> Reached {
    let is_member: HashSet<usize> = members.iter().copied().collect();
    let mut all = Reached::default();
    let (mut own, mut deepest) = (0, 0);
    for &member in members {
        all.needs.join(&nodes[member].own);
        own = own.max(nodes[member].own.local_bytes);
        for callee in &nodes[member].callees {
            if is_member.contains(callee) {
                all.recursive = true;
                continue;
            }
            let inner = &found[*callee];
            all.recursive |= inner.recursive;
            all.needs.join(&inner.needs);
            deepest = deepest.max(inner.needs.local_bytes);
        }
    }
    all.needs.local_bytes = own.saturating_add(deepest);
    all
}

impl Needs {
    /// The larger of each, local memory left alone.
    fn join(&mut self, other: &Needs) {
        self.registers = self.registers.max(other.registers);
        self.predicates = self.predicates.max(other.predicates);
        self.uniform = self.uniform.max(other.uniform);
        self.uses_barrier |= other.uses_barrier;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcode::{FunctionKind, SymbolUse};

    fn code(name: &str, registers: u32, local_bytes: u32, callees: &[&str]) -> emit::Code {
        let resources = emit::Resources {
            registers,
            local_bytes,
            callees: callees.iter().map(|callee| (*callee).to_owned()).collect(),
            ..emit::Resources::default()
        };
        emit::Code {
            name: name.to_owned(),
            kind: FunctionKind::Device,
            words: Vec::new(),
            relocations: Vec::new(),
            lines: Vec::new(),
            tables: Vec::new(),
            redzones: Vec::new(),
            resources,
        }
    }

    #[test]
    fn registers_are_the_maximum_and_frames_add_up_along_the_deepest_chain() {
        let codes = [
            code("k", 8, 16, &["a", "b"]),
            code("a", 20, 32, &["b"]),
            code("b", 12, 64, &[]),
        ];
        let needs = of_functions(codes.iter());
        assert_eq!(
            needs
                .iter()
                .map(|n| (n.registers, n.local_bytes))
                .collect::<Vec<_>>(),
            [(20, 112), (20, 96), (12, 64)]
        );
    }

    #[test]
    fn a_recursion_gets_the_stated_size() {
        let codes = [
            code("k", 8, 16, &["a"]),
            code("a", 20, 32, &["b"]),
            code("b", 30, 64, &["a"]),
        ];
        let needs = of_functions(codes.iter());
        assert!(
            needs
                .iter()
                .all(|n| n.registers == 30 && n.local_bytes >= RECURSION_BYTES + 64),
            "{needs:?}"
        );
    }

    #[test]
    fn a_long_chain_of_calls_needs_no_deep_stack() {
        const LENGTH: usize = 100_000;
        let names: Vec<String> = (0..=LENGTH).map(|i| format!("f{i}")).collect();
        let codes: Vec<emit::Code> = (0..LENGTH)
            .map(|i| code(&names[i], i as u32 % 7, 1, &[&names[i + 1]]))
            .collect();
        let needs = of_functions(codes.iter());
        assert_eq!((needs[0].registers, needs[0].local_bytes), (6, 100_000));
    }

    #[test]
    fn what_stands_behind_a_recursion_counts_for_all_its_members() {
        let codes = [
            code("a", 8, 16, &["b"]),
            code("b", 9, 48, &["c", "d"]),
            code("c", 10, 32, &["a"]),
            code("d", 60, 64, &[]),
        ];
        let needs = of_functions(codes.iter());
        assert!(
            needs[..3]
                .iter()
                .all(|n| (n.registers, n.local_bytes) == (60, RECURSION_BYTES + 48 + 64)),
            "{needs:?}"
        );
        assert_eq!((needs[3].registers, needs[3].local_bytes), (60, 64));
    }

    #[test]
    fn a_call_by_address_may_reach_every_function_whose_address_is_taken() {
        let mut codes = [
            code("k", 8, 0, &[]),
            code("a", 40, 16, &[]),
            code("b", 50, 0, &[]),
        ];
        codes[0].resources.calls_by_address = true;
        let address = SymbolUse {
            role: crate::isa::Role::B,
            kind: SymbolKind::AbsoluteLow,
            name: "a".into(),
            addend: 0,
        };
        codes[0].relocations.push((0, address));
        assert_eq!(of_functions(codes.iter())[0].registers, 40);
    }
}
