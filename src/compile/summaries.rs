//! What the functions of a module do to the lanes that call them, known before any of them is compiled.
//!
//! Takes functions as they come, before preparation; gives [`Summary`]s. What a function does by itself is one look at each instruction,
//! and for those with atomics a search for cycles that poll; the rest spreads from callees to callers until nothing changes. A function
//! that nobody has announced is taken to do everything.

use super::{FunctionInput, library};
use crate::analysis::calls::{Callee, Callees, Summary};
use crate::analysis::control_flow::ControlFlow;
use crate::analysis::progress::{self, Progress};
use crate::clif;
use crate::clif::resolve::Intrinsics;
use cranelift_codegen::ir::{FuncRef, Function, InstructionData, Opcode};
use hashbrown::{HashMap, HashSet};

/// The summaries of a module's functions.
#[derive(Clone, Debug, Default)]
pub struct Summaries {
    known: HashMap<String, Summary>,
    /// Functions whose address is taken.
    taken: HashSet<String>,
    /// Functions that are to come, and those whose summary rests on theirs.
    tentative: HashSet<String>,
}

impl Summaries {
    /// The summary of a callee.
    pub fn of(&self, callee: Callee<'_>) -> Summary {
        match callee {
            Callee::Named(name) => match self.known.get(name) {
                Some(summary) => *summary,
                // The library's functions have no atomics and no loops that wait.
                None if library::provides(name) => Summary::WRITES,
                None => Summary::UNKNOWN,
            },
            // An address that was taken nowhere here comes from elsewhere.
            Callee::Indirect if self.taken.is_empty() => Summary::UNKNOWN,
            Callee::Indirect => (self.taken.iter())
                .map(|name| self.of(Callee::Named(name)))
                .fold(Summary::NONE, Summary::or),
        }
    }

    /// Takes of a function that will be announced later that it may do everything but poll, until it is.
    pub fn expect(&mut self, name: &str) {
        if !self.known.contains_key(name) {
            let expected = Summary {
                polls: false,
                ..Summary::UNKNOWN
            };
            self.known.insert(name.to_owned(), expected);
            self.tentative.insert(name.to_owned());
        }
    }

    /// Adds a function that may call some that are expected. True if it does, and so its summary may still change.
    pub fn announce_before_callees(&mut self, input: &FunctionInput<'_>) -> bool {
        self.tentative.remove(input.name);
        self.announce(std::slice::from_ref(input));
        let calls = Calls::of(input);
        let tentative =
            calls.indirectly || calls.names.iter().any(|name| self.tentative.contains(name));
        if tentative {
            self.tentative.insert(input.name.to_owned());
        }
        tentative
    }

    /// The callees of a function, and what is known of each.
    pub fn of_callees(&self, input: &FunctionInput<'_>) -> Vec<Summary> {
        let calls = Calls::of(input);
        let named = calls.names.iter().map(|name| self.of(Callee::Named(name)));
        let indirect = calls.indirectly.then(|| self.of(Callee::Indirect));
        named.chain(indirect).collect()
    }

    /// Adds functions, which may call each other and those that are known already.
    pub fn announce(&mut self, inputs: &[FunctionInput<'_>]) {
        for input in inputs {
            self.known.insert(input.name.to_owned(), Summary::NONE);
            self.taken.extend(addresses(input));
        }
        let calls: Vec<Calls> = inputs.iter().map(Calls::of).collect();
        let callers = Callers::of(inputs, &calls, &self.taken);
        let every: Vec<usize> = (0..inputs.len()).collect();
        // All but polling, which rests on what callees observe.
        self.settle(inputs, &callers, every.clone(), &|func, callees| Summary {
            observes: closer_look(func, callees, |flow| {
                progress::result_observes(func, flow, callees)
            }),
            ..progress::effects(func, callees)
        });
        self.settle(inputs, &callers, every, &|func, callees| Summary {
            polls: closer_look(func, callees, |flow| {
                Progress::of(func, flow, &Intrinsics::default(), callees, false).polls()
            }),
            ..Summary::NONE
        });
    }

    /// Adds what `find` says of the functions in `work`, and of those that call one of which it said more than before, until nothing changes.
    fn settle(
        &mut self,
        inputs: &[FunctionInput<'_>],
        callers: &Callers,
        mut work: Vec<usize>,
        find: &dyn Fn(&Function, &Callees) -> Summary,
    ) {
        let mut waiting = vec![false; inputs.len()];
        work.iter().for_each(|&index| waiting[index] = true);
        while let Some(index) = work.pop() {
            waiting[index] = false;
            let input = &inputs[index];
            let callees = self.callees(input);
            let found = find(input.func, &callees);
            let summary = self.known.entry_ref(input.name).or_default();
            let joined = summary.or(found);
            if std::mem::replace(summary, joined) == joined {
                continue;
            }
            for &caller in callers.of_function(index) {
                if !std::mem::replace(&mut waiting[caller], true) {
                    work.push(caller);
                }
            }
        }
    }

    fn callees(&self, input: &FunctionInput<'_>) -> Callees {
        let name = |reference: FuncRef| {
            let name = &input.func.dfg.ext_funcs[reference].name;
            Some(input.symbol(name))
        };
        Callees::of(input.func, &name, &|callee| self.of(callee))
    }
}

/// What `look` says of a function with atomics, given its control flow. Nobody calls kernels, so it is a device function.
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

/// The functions whose address is taken in a function.
fn addresses(input: &FunctionInput<'_>) -> Vec<String> {
    let func = input.func;
    let insts = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block));
    insts
        .filter_map(|inst| match func.dfg.insts[inst] {
            InstructionData::FuncAddr { func_ref, .. } => {
                Some(input.symbol(&func.dfg.ext_funcs[func_ref].name))
            }
            _ => None,
        })
        .collect()
}

/// Whom a function may call.
struct Calls {
    names: Vec<String>,
    indirectly: bool,
}

impl Calls {
    fn of(input: &FunctionInput<'_>) -> Self {
        let func = input.func;
        let mut insts = func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block));
        Calls {
            names: (func.dfg.ext_funcs.values())
                .map(|callee| input.symbol(&callee.name))
                .collect(),
            indirectly: insts.any(|inst| {
                matches!(
                    func.dfg.insts[inst].opcode(),
                    Opcode::CallIndirect | Opcode::ReturnCallIndirect | Opcode::TryCallIndirect
                )
            }),
        }
    }
}

/// By function, who may call it.
struct Callers(Vec<Vec<usize>>);

impl Callers {
    fn of(inputs: &[FunctionInput<'_>], calls: &[Calls], taken: &HashSet<String>) -> Self {
        let numbers: HashMap<&str, usize> = inputs
            .iter()
            .enumerate()
            .map(|(index, input)| (input.name, index))
            .collect();
        let mut callers = vec![Vec::new(); inputs.len()];
        for (caller, calls) in calls.iter().enumerate() {
            for name in &calls.names {
                if let Some(&callee) = numbers.get(name.as_str()) {
                    callers[callee].push(caller);
                }
            }
        }
        let indirect: Vec<usize> = (0..inputs.len())
            .filter(|&index| calls[index].indirectly)
            .collect();
        for name in taken {
            if let Some(&callee) = numbers.get(name.as_str()) {
                callers[callee].extend_from_slice(&indirect);
            }
        }
        Callers(callers)
    }

    fn of_function(&self, index: usize) -> &[usize] {
        &self.0[index]
    }
}
