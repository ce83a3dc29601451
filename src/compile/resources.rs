//! What functions need of the machine with everything they call.
//!
//! Registers are the maximum over the call graph, local memory is the deepest chain of frames. A call through an address may reach
//! every function whose address is taken. Where calls form a cycle the depth is unknown: local memory is then [`RECURSION_BYTES`] more.

use crate::emit;
use crate::object;
use crate::vcode::SymbolKind;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap};
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
    let mut walk = Walk {
        states: vec![State::New; nodes.len()],
        nodes,
    };
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
    (0..walk.nodes.len())
        .map(|i| total(walk.visit(i)))
        .collect()
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

#[derive(Clone, Copy)]
enum State {
    New,
    Open,
    Done(Reached),
}

struct Walk {
    nodes: Vec<Node>,
    states: Vec<State>,
}

impl Walk {
    /// Depth-first over the calls. A function that is met again while open closes a cycle; what
    /// its members need then comes from all that can be reached, since some of them are not finished.
    fn visit(&mut self, index: usize) -> Reached {
        match self.states[index] {
            State::Done(reached) => return reached,
            State::Open => {
                return Reached {
                    recursive: true,
                    ..Reached::default()
                };
            }
            State::New => self.states[index] = State::Open,
        }
        let mut reached = Reached {
            needs: self.nodes[index].own,
            recursive: false,
        };
        let mut deepest = 0;
        for callee in self.nodes[index].callees.clone() {
            let inner = self.visit(callee);
            deepest = deepest.max(inner.needs.local_bytes);
            reached.recursive |= inner.recursive;
            reached.needs.join(&inner.needs);
        }
        reached.needs.local_bytes = self.nodes[index].own.local_bytes.saturating_add(deepest);
        if reached.recursive {
            for callee in self.reachable(index) {
                let needs = self.nodes[callee].own;
                reached.needs.join(&needs);
                reached.needs.local_bytes = reached.needs.local_bytes.max(needs.local_bytes);
            }
        }
        self.states[index] = State::Done(reached);
        reached
    }

    /// Every function that calls from `index` lead to.
    fn reachable(&self, index: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut work = vec![index];
        while let Some(next) = work.pop() {
            work.extend(
                self.nodes[next]
                    .callees
                    .iter()
                    .copied()
                    .filter(|callee| seen.insert(*callee)),
            );
        }
        seen
    }
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
    fn a_call_by_address_may_reach_every_function_whose_address_is_taken() {
        let mut codes = [
            code("k", 8, 0, &[]),
            code("a", 40, 16, &[]),
            code("b", 50, 0, &[]),
        ];
        codes[0].resources.calls_by_address = true;
        let address = SymbolUse {
            field: "imm",
            kind: SymbolKind::AbsoluteLow,
            name: "a".into(),
            addend: 0,
        };
        codes[0].relocations.push((0, address));
        assert_eq!(of_functions(codes.iter())[0].registers, 40);
    }
}
