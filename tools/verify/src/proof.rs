//! One function against its code.

use crate::clif::{self, Limits, parameter, width_of};
use crate::evaluate::evaluate;
use crate::lemma::known_divisions;
use crate::machine::{self, Entry, MachineCode, Placed};
use crate::outcome::{End, Open, Outcome, Path, initial_memory};
use crate::smt::{Arithmetic, query};
use crate::solver::{Answer, SolverError, Solvers};
use crate::sweep::can_hold;
use crate::term::{Term, clear, substituted};
use cranelift_codegen::ir::{AbiParam, ArgumentPurpose, Function};
use cranelift_thisgpu::unstable::abi::{Placer, parameter_offsets};
use hashbrown::HashMap;

/// What is known of a function and its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They do the same for all inputs.
    Proven,
    /// They differ for some.
    Refuted(Counterexample),
    /// Nobody knows, for this reason.
    Open(String),
}

/// The reason of what is open because solvers need more time.
pub const NO_ANSWER: &str = "no solver answered in time";

/// Inputs for which a function and its code differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The bits of the arguments.
    pub arguments: Vec<u128>,
    /// For each argument what is above it in its register: nobody promises anything about that.
    pub above: Vec<u128>,
    /// What the function does.
    pub expected: Option<Effect>,
    /// What its code does.
    pub found: Option<Effect>,
}

/// What a call comes to, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It returns these bits.
    Returns(Vec<u128>),
    /// It traps with this code.
    Traps(u8),
}

/// Proves that the code of a function does what it says, or finds where they do not.
///
/// Parameters are any values; of a narrow one the bits above it too. Memory holds anything, and addresses may be the
/// same. At the end results, memory and the registers that a callee keeps are compared, or the codes of traps.
///
/// # Errors
/// When a solver fails.
pub fn prove(
    func: &Function,
    kernel: bool,
    code: MachineCode<'_>,
    solvers: &Solvers,
    limits: Limits,
) -> Result<Verdict, SolverError> {
    clear();
    answer(func, sides(func, kernel, code, limits), solvers)
}

/// Proves that two functions of one signature do the same, or finds where they do not: before a pass, and behind it.
///
/// # Errors
/// As [`prove`].
pub fn prove_same(
    before: &Function,
    after: &Function,
    kernel: bool,
    solvers: &Solvers,
    limits: Limits,
) -> Result<Verdict, SolverError> {
    clear();
    let found = || {
        let arguments = arguments(before, kernel)?;
        let widths = match kernel {
            true => Vec::new(),
            false => result_widths(before)?,
        };
        let outcome = |func| {
            Ok(Outcome::of(
                &clif::paths(func, &arguments, limits)?,
                &widths,
            ))
        };
        let sides = [outcome(before)?, outcome(after)?];
        Ok((arguments, sides))
    };
    answer(before, found(), solvers)
}

/// Whether two sides are the same.
fn answer(
    func: &Function,
    sides: Result<(Vec<Term>, [Outcome; 2]), Open>,
    solvers: &Solvers,
) -> Result<Verdict, SolverError> {
    let (arguments, sides) = match sides {
        Ok(found) => found,
        Err(Open(reason)) => return Ok(Verdict::Open(reason)),
    };
    let [clif, other] = &sides;
    let differs = clif.differs(other);
    let known = known_divisions(differs, solvers)?;
    let differs = substituted(differs, &known);
    Ok(match can_hold(differs, solvers)? {
        Answer::Never => Verdict::Proven,
        Answer::Unknown => Verdict::Open(NO_ANSWER.to_owned()),
        Answer::Holds(inputs) => {
            let arguments = arguments
                .iter()
                .map(|&term| evaluate(term, &inputs).unwrap_or(0));
            // Behind the results are the registers that are kept.
            let results = func.signature.returns.len();
            let effect = |outcome: &Outcome| {
                let mut outcome = outcome.clone();
                outcome.results.truncate(results);
                effect(&outcome, &|term| {
                    evaluate(substituted(term, &known), &inputs)
                })
            };
            let (expected, found) = (effect(clif), effect(other));
            let is_shown = expected.is_some() && found.is_some() && expected != found;
            if query(differs, Arithmetic::Exact).has_functions && !is_shown {
                // It differs for some function, which need not be the one that it is.
                let reason = "it differs where operations on floats or calls are any functions";
                return Ok(Verdict::Open(reason.to_owned()));
            }
            Verdict::Refuted(Counterexample {
                above: (func.signature.params.iter().enumerate())
                    .map(|(index, param)| {
                        let above = machine::above(index, param.value_type.bits());
                        above
                            .and_then(|term| inputs.get(&term).copied())
                            .unwrap_or(0)
                    })
                    .collect(),
                arguments: arguments.collect(),
                expected,
                found,
            })
        }
    })
}

/// The question to a solver: SMT-LIB that can hold where the function and its words differ.
///
/// # Errors
/// What cannot be said as terms.
pub fn question(
    func: &Function,
    kernel: bool,
    code: MachineCode<'_>,
    limits: Limits,
) -> Result<String, Open> {
    clear();
    let (_, [clif, machine]) = sides(func, kernel, code, limits)?;
    Ok(query(clif.differs(&machine), Arithmetic::Exact).text)
}

/// What the reading of CLIF gives for a function of numbers. Nothing is compiled.
///
/// # Errors
/// What cannot be said as terms, or depends on memory.
pub fn effect_of(func: &Function, arguments: &[u128], limits: Limits) -> Result<Effect, Open> {
    clear();
    let parameters = func.signature.params.iter().zip(arguments);
    let arguments: Vec<Term> = parameters
        .map(|(param, &bits)| Ok(Term::number(bits, width_of(param.value_type)?)))
        .collect::<Result<_, Open>>()?;
    let widths = result_widths(func)?;
    let outcome = Outcome::of(&clif::paths(func, &arguments, limits)?, &widths);
    effect(&outcome, &|term| evaluate(term, &HashMap::new()))
        .ok_or_else(|| Open::new("it depends on memory"))
}

/// What an outcome is, where a function says what its terms are.
fn effect(outcome: &Outcome, number: &impl Fn(Term) -> Option<u128>) -> Option<Effect> {
    match number(outcome.trap)? {
        0 => {
            let values = outcome.results.iter().map(|&term| number(term));
            values.collect::<Option<Vec<u128>>>().map(Effect::Returns)
        }
        code => Some(Effect::Traps(code as u8)),
    }
}

/// The parameters, and what both sides come to.
fn sides(
    func: &Function,
    kernel: bool,
    code: MachineCode<'_>,
    limits: Limits,
) -> Result<(Vec<Term>, [Outcome; 2]), Open> {
    let arguments = arguments(func, kernel)?;
    let found = match kernel {
        true => kernel_sides(func, &arguments, code, limits),
        false => function_sides(func, &arguments, code, limits),
    };
    found.map(|sides| (arguments, sides))
}

/// The parameters: those of a kernel are in constant bank 0.
fn arguments(func: &Function, kernel: bool) -> Result<Vec<Term>, Open> {
    let params = &func.signature.params;
    let widths: Vec<u32> = params
        .iter()
        .map(|param| width_of(param.value_type))
        .collect::<Result<_, _>>()?;
    if !kernel {
        let numbered = widths.iter().enumerate();
        return Ok(numbered
            .map(|(index, &width)| parameter(index, width))
            .collect());
    }
    let (offsets, _) = parameter_offsets(widths.iter().map(|width| width / 8));
    let value = |(&offset, &width): (&u32, &u32)| {
        let (first, shift) = (offset / 4 * 4, offset % 4 * 8);
        let words = (shift + width).div_ceil(32);
        let word = |i: u32| machine::constant(0, first + 4 * i);
        let all = (1..words).fold(word(0), |low, i| word(i).above(low));
        all.part(shift, width)
    };
    Ok(offsets.iter().zip(&widths).map(value).collect())
}

/// Paths that all return so many values, or trap: a function does not end as a kernel does.
fn ending_with(paths: Vec<Path>, count: usize) -> Result<Vec<Path>, Open> {
    let is_other =
        |path: &Path| matches!(&path.end, End::Returned { results, .. } if results.len() != count);
    match paths.iter().any(is_other) {
        true => Err(Open::new("EXIT in a function, or RET in a kernel")),
        false => Ok(paths),
    }
}

/// What a kernel and its words come to.
fn kernel_sides(
    func: &Function,
    arguments: &[Term],
    code: MachineCode<'_>,
    limits: Limits,
) -> Result<[Outcome; 2], Open> {
    let source = clif::paths(func, arguments, limits)?;
    let entry = Entry {
        parameters: &[],
        results: &[],
        memory: initial_memory(),
        condition: Term::known(true),
    };
    let code = ending_with(machine::paths(code, entry, limits)?, 0)?;
    Ok([Outcome::of(&source, &[]), Outcome::of(&code, &[])])
}

/// What a function and its words come to.
fn function_sides(
    func: &Function,
    arguments: &[Term],
    code: MachineCode<'_>,
    limits: Limits,
) -> Result<[Outcome; 2], Open> {
    let signature = &func.signature;
    let placer = Placer::arguments(signature.call_conv);
    let parameters = places(&signature.params, placer)?;
    let results = places(&signature.returns, Placer::results())?;
    let kept = || machine::kept().map(machine::untouched_register);
    let mut widths: Vec<u32> = results.iter().map(|placed| placed.width).collect();
    widths.extend(kept().map(|_| 32));
    // The function does not know the registers that its code must leave as they were.
    let mut source: Vec<Path> = clif::paths(func, arguments, limits)?;
    for path in &mut source {
        if let End::Returned { results, .. } = &mut path.end {
            results.extend(kept());
        }
    }
    let parameters = parameters.into_iter().zip(arguments.iter().copied());
    let parameters: Vec<(Placed, Term)> = parameters.collect();
    let entry = Entry {
        parameters: &parameters,
        results: &results,
        memory: initial_memory(),
        condition: Term::known(true),
    };
    let code = ending_with(machine::paths(code, entry, limits)?, widths.len())?;
    Ok([Outcome::of(&source, &widths), Outcome::of(&code, &widths)])
}

/// The bits of a function's results.
fn result_widths(func: &Function) -> Result<Vec<u32>, Open> {
    let results = places(&func.signature.returns, Placer::results())?;
    Ok(results.iter().map(|placed| placed.width).collect())
}

/// Where the values of a list are.
fn places(list: &[AbiParam], mut placer: Placer) -> Result<Vec<Placed>, Open> {
    let mut placed = Vec::new();
    for param in list {
        if param.purpose != ArgumentPurpose::Normal {
            return Err(Open::new("a parameter with a purpose"));
        }
        let width = width_of(param.value_type)?;
        let place = placer.place(width.div_ceil(32));
        placed.push(Placed { place, width });
    }
    Ok(placed)
}
