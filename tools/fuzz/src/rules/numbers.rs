//! Rules of floats by numbers: what rounds cannot be proven in reasonable time, so its code is run.
//!
//! In: the functions that rules fire for. Each rule and type of instruction at which only functions with floats are
//! known gets the smallest of these that can be called (no memory, no calls, no loops). It is called with all
//! arguments if there are at most 2^16 of them, otherwise with corners and random values, on the simulator and on the
//! host, or in Cranelift's interpreter for what the host lacks or what may trap. Neither knows vectors of f16: they are
//! asked about each lane. Out: what differs.
//!
//! A rule is left out where CLIF does not say what the result is: where the bits of a NaN are seen that an operation
//! has made.

use crate::catalogue::Catalogue;
use crate::nan::Use;
use crate::rules::calls::{Calls, Compared};
use crate::rules::corpus::Subject;
use crate::rules::fired::Fired;
use cranelift_codegen::ir::{Function, Inst, Opcode, Value};
use std::collections::{BTreeMap, BTreeSet};
use thisgpu_filetests::trampoline::check_signature;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Tested {
    /// Pairs of a rule and a type that were run.
    pub rules: usize,
    /// Functions that were run.
    pub functions: usize,
    /// Functions that were run with all arguments that there are.
    pub exhaustive: usize,
    /// Calls whose results were compared.
    pub calls: usize,
    /// What differs, with its function and arguments.
    pub differences: Vec<String>,
    /// Rules and types that were not run, with the reason.
    pub without: Vec<(Fired, String)>,
}

/// So many functions are tried for a rule and a type, as long as none can be run (*assumed*).
const ATTEMPTS: usize = 8;

/// Runs functions for all rules of floats, with so many arguments each.
pub fn test(subjects: &[Subject], catalogue: &Catalogue, arguments: usize, seed: u64) -> Tested {
    let calls = Calls {
        catalogue,
        arguments,
        seed,
    };
    let candidates = candidates(subjects);
    let mut results: BTreeMap<usize, Result<Compared, String>> = BTreeMap::new();
    loop {
        let next = |candidates: &Candidates| {
            let candidates = candidates.as_ref().ok()?;
            let is_run = |index: &usize| matches!(results.get(index), Some(Ok(_)));
            let mut rest = candidates
                .iter()
                .filter(|index| !results.contains_key(index));
            (!candidates.iter().any(is_run)).then(|| rest.next().copied())?
        };
        let wanted: BTreeSet<usize> = candidates.values().filter_map(next).collect();
        if wanted.is_empty() {
            break;
        }
        results.extend(calls.of_all(subjects, wanted));
    }
    tested(subjects, &candidates, &results)
}

/// What results say of each rule and type.
fn tested(
    subjects: &[Subject],
    candidates: &BTreeMap<&Fired, Candidates>,
    results: &BTreeMap<usize, Result<Compared, String>>,
) -> Tested {
    let mut tested = Tested::default();
    for (index, result) in results {
        let Ok(compared) = result else {
            continue;
        };
        tested.functions += 1;
        tested.exhaustive += usize::from(compared.all);
        tested.calls += compared.calls;
        if let Some(text) = &compared.difference {
            let name = &subjects[*index].name;
            tested.differences.push(format!("{name}: {text}"));
        }
    }
    for (&fired, candidates) in candidates {
        let reason = match candidates {
            Ok(candidates) => {
                let mut each = candidates.iter().map(|index| &results[index]);
                let last = results.get(&candidates[0]);
                match each.any(Result::is_ok) {
                    true => None,
                    false => last.and_then(|last| last.as_ref().err()).cloned(),
                }
            }
            Err(reason) => Some((*reason).to_owned()),
        };
        match reason {
            None => tested.rules += 1,
            Some(reason) => tested.without.push((fired.clone(), reason)),
        }
    }
    tested
}

/// The smallest callable functions of a rule and a type, at least one, or why there is none.
type Candidates = Result<Vec<usize>, &'static str>;

/// The candidates of each rule and type that has no function without floats.
fn candidates(subjects: &[Subject]) -> BTreeMap<&Fired, Candidates> {
    let mut sizes: Vec<(usize, usize)> = subjects
        .iter()
        .enumerate()
        .map(|(index, subject)| (subject.size(), index))
        .collect();
    sizes.sort_unstable();
    let mut without_floats: BTreeSet<&Fired> = BTreeSet::new();
    let mut all: BTreeMap<&Fired, Candidates> = BTreeMap::new();
    for (_, index) in sizes {
        let subject = &subjects[index];
        let func = &subject.function().func;
        if !has_floats(func) {
            without_floats.extend(&subject.rules);
            continue;
        }
        let callable = match subject.function().kernel {
            Some(_) => Err("it is known in kernels only"),
            None => is_callable(func),
        };
        for fired in &subject.rules {
            let known = all.entry(fired).or_insert(callable.map(|()| Vec::new()));
            match (known, callable) {
                (Ok(known), Ok(())) if known.len() < ATTEMPTS => known.push(index),
                (known @ Err(_), Ok(())) => *known = Ok(vec![index]),
                _ => {}
            }
        }
    }
    all.retain(|fired, _| !without_floats.contains(fired));
    all
}

pub(super) fn insts(func: &Function) -> impl Iterator<Item = Inst> + '_ {
    func.layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
}

fn has_floats(func: &Function) -> bool {
    let is_float = |value: &Value| func.dfg.value_type(*value).lane_type().is_float();
    let params = func
        .layout
        .blocks()
        .flat_map(|block| func.dfg.block_params(block));
    params
        .chain(insts(func).flat_map(|inst| func.dfg.inst_results(inst)))
        .any(is_float)
}

/// Whether a function's results depend on its arguments alone, and CLIF says what they are.
fn is_callable(func: &Function) -> Result<(), &'static str> {
    check_signature(&func.signature)
        .map_err(|_| "it is known in functions with wide values only")?;
    if func.signature.returns.is_empty() {
        return Err("it is known in functions without results only");
    }
    let mut open: BTreeSet<Value> = BTreeSet::new();
    let is_float = |value: Value| func.dfg.value_type(value).lane_type().is_float();
    for block in func.layout.blocks() {
        if Some(block) != func.layout.entry_block() {
            let params = func.dfg.block_params(block).iter().copied();
            open.extend(params.filter(|param| is_float(*param)));
        }
        for inst in func.layout.block_insts(block) {
            let opcode = func.dfg.insts[inst].opcode();
            if opcode.is_call()
                || opcode.can_load()
                || opcode.can_store()
                || opcode.other_side_effects() && !opcode.is_terminator() && !opcode.can_trap()
                || matches!(opcode, Opcode::StackAddr | Opcode::SymbolValue)
            {
                return Err("it is known in functions with memory or calls only");
            }
            let tables = &func.dfg.jump_tables;
            let targets =
                func.dfg.insts[inst].branch_destination(tables, &func.dfg.exception_tables);
            let mut targets = targets.iter().map(|call| call.block(&func.dfg.value_lists));
            let order = |target| func.layout.blocks().position(|other| other == target);
            if targets.any(|target| order(target) <= order(block)) {
                return Err("it is known in functions with loops only");
            }
            let sees_open = || {
                func.dfg
                    .inst_args(inst)
                    .iter()
                    .any(|arg| open.contains(&func.dfg.resolve_aliases(*arg)))
            };
            let results = func
                .dfg
                .inst_results(inst)
                .iter()
                .copied()
                .filter(|result| is_float(*result));
            match Use::of(opcode) {
                Use::Computes => open.extend(results),
                Use::Moves if sees_open() => open.extend(results),
                // What is returned is compared up to the bits of NaNs.
                Use::Bits if !opcode.is_terminator() && sees_open() => {
                    return Err(
                        "it is known in functions only that see the bits of a NaN which CLIF leaves open",
                    );
                }
                Use::Moves | Use::Bits | Use::Classifies => {}
            }
        }
    }
    Ok(())
}
