//! What functions need of the machine with everything they call.
//!
//! Registers are the maximum over the call graph, local memory is the deepest chain of frames. A call through an
//! address may reach every function whose address is taken, in code or data. Where calls form a cycle the depth is
//! unknown: local memory is then [`RECURSION_BYTES`] more. The graph is that of the object's own functions: what others
//! define counts when they are linked, and only then it is known whether a kernel keeps its launch bounds
//! ([`BeyondBounds`]).

use super::{Object, ObjectFunction, OwnResources, RelocationKind, Resources};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::fmt;

/// Local memory for the frames of a recursion (*assigned*); a deeper one ends in a stack overflow fault.
pub const RECURSION_BYTES: u32 = 16 * 1024;

/// What a function needs, callees included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub registers: u32,
    pub predicates: u32,
    pub uniform: u32,
    pub local_bytes: u32,
    pub barriers: u32,
}

/// A kernel needs more registers, with what it calls, than its launch bounds leave a thread: fewer blocks would be
/// resident than it promises, or not even one. What is compiled with the kernel is compiled within its bounds, so this
/// is of functions that were compiled apart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BeyondBounds {
    /// The kernel.
    pub kernel: String,
    /// Registers that it needs with all that it calls.
    pub registers: u32,
    /// Registers that its bounds leave a thread.
    pub limit: u32,
    /// The function that needs most: the kernel itself, or what it calls.
    pub function: String,
}

impl fmt::Display for BeyondBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kernel,
            registers,
            limit,
            function,
        } = self;
        write!(
            f,
            "the launch bounds of kernel `{kernel}` leave a thread {limit} registers, but "
        )?;
        if function != kernel {
            write!(f, "`{function}`, which it calls, ")?;
        } else {
            f.write_str("it ")?;
        }
        write!(
            f,
            "needs {registers}; compile `{function}` with the setting regs={limit} or together with the kernel, or \
             loosen the bounds"
        )
    }
}

impl Object {
    /// The kernels that do not keep their launch bounds, in the order of the code.
    pub(crate) fn beyond_bounds(&self) -> Vec<BeyondBounds> {
        let limits: Vec<Option<u32>> = (self.functions.iter())
            .map(|function| function.kernel.as_ref()?.register_limit().ok()?)
            .collect();
        if limits.iter().all(Option::is_none) {
            return Vec::new();
        }
        let nodes = self.nodes();
        let found = reached(&nodes);
        let beyond = limits.iter().enumerate().filter_map(|(kernel, limit)| {
            let limit = (*limit)?;
            let registers = found[kernel].needs.registers;
            (registers > limit).then(|| BeyondBounds {
                kernel: self.functions[kernel].name.clone(),
                registers,
                limit,
                function: self.functions[neediest(&nodes, kernel)].name.clone(),
            })
        });
        beyond.collect()
    }

    /// The needs of each function, callees included.
    pub(crate) fn needs(&self) -> Vec<Needs> {
        let nodes = self.nodes();
        reached(&nodes).into_iter().map(Reached::total).collect()
    }

    /// The call graph.
    fn nodes(&self) -> Vec<Node> {
        let index: HashMap<&str, usize> = (self.functions.iter().enumerate())
            .map(|(i, function)| (function.name.as_str(), i))
            .collect();
        let in_code = self.functions.iter().flat_map(|f| &f.relocations);
        let in_data = self.data.iter().flat_map(|data| &data.relocations);
        let taken: BTreeSet<usize> = in_code
            .chain(in_data)
            .filter(|relocation| relocation.kind != RelocationKind::Rel)
            .filter_map(|relocation| index.get(relocation.symbol.as_str()).copied())
            .collect();
        (self.functions.iter())
            .map(|function| Node::new(function, &index, &taken))
            .collect()
    }

    /// Finds anew what each function needs with everything that it calls, from what each needs by itself
    /// ([`ObjectFunction::own`]). Functions of other objects count for nothing.
    pub fn count_resources(&mut self) {
        let needs = self.needs();
        for (function, needs) in self.functions.iter_mut().zip(needs) {
            function.resources = needs.resources();
        }
    }
}

impl Needs {
    /// The part that a launch asks for.
    pub fn resources(&self) -> Resources {
        Resources {
            registers: self.registers,
            local_bytes: self.local_bytes,
            barriers: self.barriers,
        }
    }

    /// The larger of each, local memory left alone.
    fn join(&mut self, other: &Needs) {
        self.registers = self.registers.max(other.registers);
        self.predicates = self.predicates.max(other.predicates);
        self.uniform = self.uniform.max(other.uniform);
        self.barriers = self.barriers.max(other.barriers);
    }
}

impl From<&OwnResources> for Needs {
    fn from(own: &OwnResources) -> Needs {
        Needs {
            registers: own.registers,
            predicates: own.predicates,
            uniform: own.uniform,
            local_bytes: own.local_bytes,
            barriers: own.barriers,
        }
    }
}

/// A function in the call graph.
struct Node {
    own: Needs,
    callees: BTreeSet<usize>,
}

impl Node {
    fn new(
        function: &ObjectFunction,
        index: &HashMap<&str, usize>,
        taken: &BTreeSet<usize>,
    ) -> Self {
        let mut callees: BTreeSet<usize> = (function.relocations.iter())
            .filter(|relocation| relocation.kind == RelocationKind::Rel)
            .filter_map(|relocation| index.get(relocation.symbol.as_str()).copied())
            .collect();
        if function.own.calls_by_address {
            callees.extend(taken);
        }
        Node {
            own: Needs::from(&function.own),
            callees,
        }
    }
}

/// Needs, and whether a cycle of calls is within reach.
#[derive(Clone, Copy, Default)]
struct Reached {
    needs: Needs,
    recursive: bool,
}

impl Reached {
    fn total(self) -> Needs {
        let recursion = if self.recursive { RECURSION_BYTES } else { 0 };
        Needs {
            local_bytes: self.needs.local_bytes.saturating_add(recursion),
            ..self.needs
        }
    }
}

/// Of all that a function may lead to, itself included, the one that needs most registers by itself; of several, the
/// first that is met.
fn neediest(nodes: &[Node], from: usize) -> usize {
    let mut seen: HashSet<usize> = HashSet::from_iter([from]);
    let (mut open, mut most) = (vec![from], from);
    while let Some(node) = open.pop() {
        if nodes[node].own.registers > nodes[most].own.registers {
            most = node;
        }
        let callees = nodes[node].callees.iter().copied();
        open.extend(callees.filter(|&callee| seen.insert(callee)));
    }
    most
}

/// What each function needs with all that it calls, by Tarjan's strongly connected components (*Depth-first search and
/// linear graph algorithms*): a component is finished after all that it calls, and its members need the same. Of the
/// frames of a cycle the largest counts.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{DataContents, DataObject, Linkage, Relocation};

    fn relocation(kind: RelocationKind, symbol: &str) -> Relocation {
        Relocation {
            offset: 0,
            kind,
            symbol: symbol.to_owned(),
            addend: 0,
        }
    }

    fn code(name: &str, registers: u32, local_bytes: u32, callees: &[&str]) -> ObjectFunction {
        let own = OwnResources {
            registers,
            local_bytes,
            ..OwnResources::default()
        };
        let calls = callees
            .iter()
            .map(|callee| relocation(RelocationKind::Rel, callee));
        ObjectFunction {
            name: name.to_owned(),
            own,
            relocations: calls.collect(),
            ..ObjectFunction::default()
        }
    }

    fn needs(functions: impl Into<Vec<ObjectFunction>>) -> Vec<Needs> {
        let object = Object {
            functions: functions.into(),
            ..Object::default()
        };
        object.needs()
    }

    #[test]
    fn registers_are_the_maximum_and_frames_add_up_along_the_deepest_chain() {
        let codes = [
            code("k", 8, 16, &["a", "b"]),
            code("a", 20, 32, &["b"]),
            code("b", 12, 64, &[]),
        ];
        let needs = needs(codes);
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
        let needs = needs(codes);
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
        let codes: Vec<ObjectFunction> = (0..LENGTH)
            .map(|i| code(&names[i], i as u32 % 7, 1, &[&names[i + 1]]))
            .collect();
        let needs = needs(codes);
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
        let needs = needs(codes);
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
        codes[0].own.calls_by_address = true;
        codes[0]
            .relocations
            .push(relocation(RelocationKind::Abs32Lo, "a"));
        let mut object = Object {
            functions: codes.into(),
            ..Object::default()
        };
        assert_eq!(object.needs()[0].registers, 40);
        object.data.push(DataObject {
            name: "table".to_owned(),
            linkage: Linkage::Local,
            writable: false,
            align: 8,
            contents: DataContents::Zeros(8),
            relocations: vec![relocation(RelocationKind::Abs64, "b")],
        });
        assert_eq!(object.needs()[0].registers, 50);
    }
}
