//! Which object an address was made from.
//!
//! Takes an address and follows what it is computed from, through sums, choices and block parameters, to the pointers
//! at the beginning: parameters, symbols, stack slots. [`super::provenance`] says in which memory an address lies; this
//! says in which object of it, for the few questions where that matters.

use super::control_flow::ControlFlow;
use super::provenance::{Provenance, Space};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{
    Block, Function, GlobalValue, InstructionData, Opcode, Value, ValueDef, types,
};

/// Values that are looked at for one address (*assumed*: more than any address of a real program needs).
const STEPS: usize = 64;

/// Where an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The thread's own memory.
    Private,
    /// Shared memory of the block.
    Shared,
    /// A pointer parameter of the kernel.
    Parameter(Value),
    /// A data object.
    Symbol(GlobalValue),
    /// Anything.
    Unknown,
}

impl Root {
    /// The root of `address`. In device functions parameters may point anywhere.
    pub fn of(
        func: &Function,
        flow: &ControlFlow,
        provenance: &Provenance,
        kernel: bool,
        address: Value,
    ) -> Root {
        match provenance.space(func, address) {
            Space::Shared => return Root::Shared,
            Space::Local => return Root::Private,
            Space::Global | Space::Generic => {}
        }
        let search = Search { func, flow, kernel };
        search.root(address)
    }
}

struct Search<'a> {
    func: &'a Function,
    flow: &'a ControlFlow,
    kernel: bool,
}

impl Search<'_> {
    fn root(&self, address: Value) -> Root {
        let mut found: Option<Root> = None;
        let mut seen: EntitySet<Value> = EntitySet::new();
        let mut work = vec![address];
        let mut steps = 0;
        while let Some(value) = work.pop() {
            if !seen.insert(value) {
                continue;
            }
            steps += 1;
            if steps > STEPS {
                return Root::Unknown;
            }
            let root = match self.step(value, &mut work) {
                Some(root) => root,
                None => continue,
            };
            match found {
                Some(other) if other != root => return Root::Unknown,
                _ => found = Some(root),
            }
        }
        found.unwrap_or(Root::Unknown)
    }

    /// The root that `value` is; or none, when it is no address or is made from those that join `work`.
    fn step(&self, value: Value, work: &mut Vec<Value>) -> Option<Root> {
        let dfg = &self.func.dfg;
        if dfg.value_type(value) != types::I64 {
            return Some(Root::Unknown);
        }
        let inst = match dfg.value_def(value) {
            ValueDef::Result(inst, _) => inst,
            ValueDef::Param(block, index) => {
                if Some(block) == self.func.layout.entry_block() {
                    return Some(if self.kernel {
                        Root::Parameter(value)
                    } else {
                        Root::Unknown
                    });
                }
                return self.arguments(block, index, work);
            }
            ValueDef::Union(..) => return Some(Root::Unknown),
        };
        let args = dfg.inst_args(inst);
        match dfg.insts[inst].opcode() {
            Opcode::Iadd | Opcode::Isub | Opcode::Band | Opcode::Bor => {
                work.extend(args.iter().copied().filter(|arg| !self.is_number(*arg)));
                None
            }
            Opcode::Select | Opcode::SelectSpectreGuard => {
                work.extend_from_slice(&args[1..]);
                None
            }
            Opcode::SymbolValue => match dfg.insts[inst] {
                InstructionData::UnaryGlobalValue { global_value, .. } => {
                    Some(Root::Symbol(global_value))
                }
                _ => Some(Root::Unknown),
            },
            Opcode::StackAddr => Some(Root::Private),
            _ => Some(Root::Unknown),
        }
    }

    /// What the predecessors pass for a parameter joins `work`.
    fn arguments(&self, block: Block, index: usize, work: &mut Vec<Value>) -> Option<Root> {
        let before = work.len();
        for (_, argument) in self.flow.arguments(self.func, block, index) {
            work.push(argument?);
            if work.len() - before > STEPS {
                return Some(Root::Unknown);
            }
        }
        None
    }

    /// Whether a term of a sum is surely no address: a constant, what was extended or multiplied or shifted.
    fn is_number(&self, value: Value) -> bool {
        let ValueDef::Result(inst, _) = self.func.dfg.value_def(value) else {
            return false;
        };
        matches!(
            self.func.dfg.insts[inst].opcode(),
            Opcode::Iconst
                | Opcode::Uextend
                | Opcode::Sextend
                | Opcode::Imul
                | Opcode::Ishl
                | Opcode::Ushr
                | Opcode::Sshr
                | Opcode::Udiv
                | Opcode::Sdiv
                | Opcode::Urem
                | Opcode::Srem
        )
    }
}
