//! What the functions of a module do to the lanes that call them, and what its tables hold: known before any function
//! is compiled.
//!
//! Takes functions as they come, before preparation; gives [`Summary`]s. What a function does by itself is one look at
//! each instruction, and for those with atomics a search for cycles that poll; the rest spreads from callees to callers
//! until nothing changes. A function that nobody has announced is taken to do everything.

use super::{FunctionInput, library};
use crate::analysis::calls::{Callee, Callees, Summary};
use crate::analysis::components::components;
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::graph::Graph;
use crate::analysis::progress::{self, Progress};
use crate::clif::tables::{DataPlace, Table};
use crate::clif::{self, KernelOptions};
use crate::emit::constants::MAX_TABLES;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::entity::EntityRef;
use cranelift_codegen::ir::{FuncRef, Function, GlobalValueData, Inst, InstructionData, Opcode};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// Alignment in bytes of the copies of tables in the constant bank.
pub const TABLE_ALIGN: u32 = 16;

/// The registers that the bounds of a kernel leave a thread. Bounds that cannot be kept are an error of the kernel.
fn bounds(kernel: KernelOptions) -> Option<u8> {
    let limit = kernel.register_limit().ok()??;
    Some(u8::try_from(limit).unwrap_or(u8::MAX))
}

/// The summaries of a module's functions, and its tables.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    known: HashMap<String, Summary>,
    /// All functions that an indirect call may call: those of the module, whose addresses may be taken in code and
    /// data.
    any: Option<Summary>,
    /// The fewest registers that the bounds of a kernel leave a thread.
    registers: Option<u8>,
    tables: HashMap<String, Table>,
    /// Bytes of the constant bank that tables may take.
    table_bytes: u32,
}

impl Summaries {
    /// Data that nobody writes, by its symbol.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// Bytes of the constant bank that tables may take.
    pub fn table_bytes(&self) -> u32 {
        self.table_bytes
    }

    /// Adds a table.
    pub fn announce_table(&mut self, name: &str, content: &[u8], align: u32) {
        let table = Table {
            content: content.into(),
            align: align.min(TABLE_ALIGN),
            in_bank: false,
        };
        self.tables.entry_ref(name).or_insert(table);
    }

    /// Gives the tables that a function reads at computed offsets so many bytes of the constant bank, while there are
    /// some.
    fn place_tables(&mut self, input: &FunctionInput<'_>, room: u32) {
        let room = room.min(MAX_TABLES);
        let (func, intrinsics) = (input.func, Intrinsics::default());
        let symbols = |data: &GlobalValueData| match data {
            GlobalValueData::Symbol { name, .. } => Some(input.symbol(name)),
            _ => None,
        };
        let names: Vec<Option<String>> = (func.global_values.values().map(symbols))
            .map(|name| name.filter(|name| self.tables.contains_key(name)))
            .collect();
        if names.iter().all(Option::is_none) {
            return;
        }
        for inst in func
            .layout
            .blocks()
            .flat_map(|b| func.layout.block_insts(b))
        {
            let InstructionData::Load { arg, offset, .. } = func.dfg.insts[inst] else {
                continue;
            };
            let place = DataPlace::of(func, &intrinsics, arg, offset.into());
            let Some(place) = place.filter(|place| place.index.is_some()) else {
                continue;
            };
            let name = names[place.symbol.index()].as_ref();
            let Some(table) = name.and_then(|name| self.tables.get_mut(name)) else {
                continue;
            };
            // The first stands behind what functions have.
            let padding = if self.table_bytes == 0 {
                TABLE_ALIGN
            } else {
                0
            };
            let bytes = table.content.len().next_multiple_of(TABLE_ALIGN as usize) as u64;
            let taken = u64::from(self.table_bytes + padding) + bytes;
            if !table.in_bank && taken <= u64::from(room) {
                table.in_bank = true;
                self.table_bytes = taken as u32;
            }
        }
    }

    /// The tables that a function names.
    #[cfg(feature = "cache")]
    pub fn tables_of<'a>(
        &'a self,
        input: &FunctionInput<'a>,
    ) -> impl Iterator<Item = &'a Table> + use<'a> {
        let input = *input;
        (input.func.global_values.values()).filter_map(move |data| match data {
            GlobalValueData::Symbol { name, .. } => self.table(&input.symbol(name)),
            _ => None,
        })
    }

    /// The summary of a callee.
    pub fn of(&self, callee: Callee<'_>) -> Summary {
        match callee {
            Callee::Named(name) => match self.known.get(name) {
                Some(summary) => *summary,
                // The library's functions have no atomics and no loops that wait.
                None if library::provides(name) => Summary::WRITES,
                None => Summary::UNKNOWN,
            },
            // Without functions here an address comes from elsewhere.
            // What any of them may do; what all of them do first is not known.
            Callee::Indirect => Summary {
                gathers: false,
                ..self.any.unwrap_or(Summary::UNKNOWN)
            },
        }
    }

    /// Adds what another module knows of its functions.
    pub fn append(&mut self, other: Summaries) {
        self.known.extend(other.known);
        if let Some(any) = other.any {
            self.any = Some(self.any.unwrap_or(Summary::NONE).or(any));
        }
        self.limit_registers(other.registers);
        self.tables.extend(other.tables);
        self.table_bytes += other.table_bytes;
    }

    fn limit_registers(&mut self, limit: Option<u8>) {
        self.registers = self.registers.into_iter().chain(limit).min();
    }

    /// The registers that a function may use: a kernel what its own bounds say, another one what all bounds of the
    /// module say, since it may be called by every kernel.
    pub fn register_limit(&self, kernel: Option<KernelOptions>) -> u8 {
        let limit = match kernel {
            Some(kernel) => bounds(kernel),
            None => self.registers,
        };
        limit.unwrap_or(u8::MAX)
    }

    /// Adds functions, which may call each other and those that are known already.
    pub fn announce(&mut self, inputs: &[FunctionInput<'_>], room: u32) {
        for input in inputs {
            if !self.tables.is_empty() {
                self.place_tables(input, room);
            }
            self.known.insert(input.name.to_owned(), Summary::NONE);
            self.limit_registers(input.kernel.and_then(bounds));
        }
        if inputs.iter().any(|input| input.kernel.is_none()) {
            self.any.get_or_insert(Summary::NONE);
        }
        let calls: Vec<Calls> = inputs.iter().map(Calls::of).collect();
        let graph = CallGraph::of(inputs, &calls);
        // Of most functions one look says everything.
        for (input, calls) in inputs
            .iter()
            .zip(&calls)
            .filter(|(_, calls)| calls.is_plain())
        {
            let summary = Summary {
                releases: calls.stores,
                ..Summary::NONE
            };
            self.known.insert(input.name.to_owned(), summary);
            if input.kernel.is_none() {
                self.any = Some(self.any.unwrap_or(Summary::NONE).or(summary));
            }
        }
        // Nobody calls kernels.
        let others: Vec<usize> = (graph.callees_first.iter().copied())
            .filter(|&index| !calls[index].is_plain() && inputs[index].kernel.is_none())
            .collect();
        // All but polling, which rests on what callees observe.
        self.settle(inputs, &graph, &others, &|index, callees| {
            let func = inputs[index].func;
            Summary {
                observes: closer_look(func, callees, |flow| {
                    progress::observed_by(func, flow, callees, &|_| false).result
                }),
                ..progress::effects(func, callees)
            }
        });
        // Without calls and branches nothing is waited for.
        let turning: Vec<usize> = (others.into_iter())
            .filter(|&index| calls[index].calls || inputs[index].func.layout.blocks().count() > 1)
            .collect();
        self.settle(inputs, &graph, &turning, &|index, callees| {
            let func = inputs[index].func;
            Summary {
                // A function that calls itself again, depending on what it read, goes round like a loop.
                polls: closer_look(func, callees, |flow| {
                    let recurs = |inst| graph.leads_back(&inputs[index], index, inst);
                    progress::observed_by(func, flow, callees, &recurs).recursion
                        || Progress::of(func, flow, &Intrinsics::default(), callees, false).polls()
                }),
                ..Summary::NONE
            }
        });
    }

    /// Adds what `find` says of each function of `some`, callees first, and again of those that call one of which it
    /// said more than before, until nothing changes. `some` holds all device functions that call.
    fn settle(
        &mut self,
        inputs: &[FunctionInput<'_>],
        graph: &CallGraph<'_>,
        some: &[usize],
        find: &dyn Fn(usize, &Callees) -> Summary,
    ) {
        let mut work: VecDeque<usize> = some.iter().copied().collect();
        let mut waiting = vec![false; inputs.len()];
        some.iter().for_each(|&index| waiting[index] = true);
        while let Some(index) = work.pop_front() {
            waiting[index] = false;
            let input = &inputs[index];
            let callees = self.callees(input);
            let found = find(index, &callees);
            let summary = self.known.entry_ref(input.name).or_default();
            let joined = summary.or(found);
            if std::mem::replace(summary, joined) == joined {
                continue;
            }
            let mut changed: Vec<usize> = graph.callers[index].clone();
            if input.kernel.is_none() {
                let any = self.any.unwrap_or(Summary::NONE).or(joined);
                if self.any.replace(any) != Some(any) {
                    changed.extend_from_slice(&graph.indirect);
                }
            }
            for caller in changed {
                if inputs[caller].kernel.is_none() && !std::mem::replace(&mut waiting[caller], true)
                {
                    work.push_back(caller);
                }
            }
        }
    }

    /// The callees of a function, and what is known of each.
    #[cfg(feature = "cache")]
    pub fn of_callees(&self, input: &FunctionInput<'_>) -> Vec<Summary> {
        let calls = Calls::of(input);
        let named = calls.names.iter().map(|name| self.of(Callee::Named(name)));
        let indirect = calls.indirectly.then(|| self.of(Callee::Indirect));
        named.chain(indirect).collect()
    }

    fn callees(&self, input: &FunctionInput<'_>) -> Callees {
        let name = |reference: FuncRef| {
            let name = &input.func.dfg.ext_funcs[reference].name;
            Some(input.symbol(name))
        };
        Callees::of(input.func, &Intrinsics::default(), &name, &|callee| {
            self.of(callee)
        })
    }
}

/// What `look` says of a function with atomics, given its control flow. Nobody calls kernels, so it is a device
/// function.
fn closer_look(
    func: &Function,
    callees: &Callees,
    look: impl FnOnce(&ControlFlow) -> bool,
) -> bool {
    if !progress::has_atomics(func, callees) {
        return false;
    }
    // What the verifier refuses is refused when it is compiled.
    if func.layout.entry_block().is_none() || clif::verify(func).is_err() {
        return true;
    }
    look(&ControlFlow::compute(func, false, callees))
}

/// Whom a function may call, and what a look at each instruction tells beside.
struct Calls {
    names: Vec<String>,
    indirectly: bool,
    /// It has calls.
    calls: bool,
    /// It reads memory atomically.
    atomics: bool,
    stores: bool,
}

impl Calls {
    fn of(input: &FunctionInput<'_>) -> Self {
        let func = input.func;
        let mut found = Calls {
            names: (func.dfg.ext_funcs.values())
                .map(|callee| input.symbol(&callee.name))
                .collect(),
            indirectly: false,
            calls: false,
            atomics: false,
            stores: false,
        };
        let insts = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block));
        for inst in insts {
            let opcode = func.dfg.insts[inst].opcode();
            found.indirectly |= matches!(
                opcode,
                Opcode::CallIndirect | Opcode::ReturnCallIndirect | Opcode::TryCallIndirect
            );
            found.calls |= opcode.is_call();
            found.atomics |= matches!(
                opcode,
                Opcode::AtomicLoad | Opcode::AtomicRmw | Opcode::AtomicCas | Opcode::Fence
            );
            found.stores |= opcode.can_store();
        }
        found
    }

    /// Whether its summary depends on nothing else, and it neither polls nor observes.
    fn is_plain(&self) -> bool {
        !self.calls && !self.atomics
    }
}

/// Who calls whom.
struct CallGraph<'a> {
    /// By function, who calls it by name.
    callers: Vec<Vec<usize>>,
    /// Who calls by address.
    indirect: Vec<usize>,
    callees_first: Vec<usize>,
    /// By function, and last for calls by address: the strongly connected component.
    components: Vec<usize>,
    numbers: HashMap<&'a str, usize>,
}

impl<'a> CallGraph<'a> {
    fn of(inputs: &[FunctionInput<'a>], calls: &[Calls]) -> Self {
        let numbers: HashMap<&'a str, usize> = inputs
            .iter()
            .enumerate()
            .map(|(index, input)| (input.name, index))
            .collect();
        let mut callers = vec![Vec::new(); inputs.len()];
        // A call by address goes through one more node to all functions.
        let any = inputs.len();
        let mut graph = Graph::new(inputs.len() + 1);
        for (caller, calls) in calls.iter().enumerate() {
            for name in &calls.names {
                if let Some(&callee) = numbers.get(name.as_str()) {
                    callers[callee].push(caller);
                    graph.add_edge(caller, callee);
                }
            }
            if calls.indirectly {
                graph.add_edge(caller, any);
            }
        }
        for (callee, input) in inputs.iter().enumerate() {
            if input.kernel.is_none() {
                graph.add_edge(any, callee);
            }
        }
        let mut found = CallGraph {
            callers,
            indirect: (0..inputs.len())
                .filter(|&index| calls[index].indirectly)
                .collect(),
            callees_first: Vec::with_capacity(inputs.len()),
            components: vec![0; inputs.len() + 1],
            numbers,
        };
        for (number, component) in components(&graph).into_iter().enumerate() {
            for node in component {
                found.components[node] = number;
                if node != any {
                    found.callees_first.push(node);
                }
            }
        }
        found
    }

    /// Whether a call in a function may lead back to it.
    fn leads_back(&self, input: &FunctionInput<'_>, index: usize, inst: Inst) -> bool {
        let func = input.func;
        let callee = match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => {
                let name = input.symbol(&func.dfg.ext_funcs[func_ref].name);
                self.numbers.get(name.as_str()).copied()
            }
            InstructionData::CallIndirect { .. } => Some(self.components.len() - 1),
            _ => None,
        };
        callee.is_some_and(|callee| self.components[callee] == self.components[index])
    }
}
