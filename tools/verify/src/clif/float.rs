//! Operations on floats.
//!
//! What only compares and selects is said exactly. What rounds is what its code computes: the operation alone is
//! compiled, and its words are run on the operands, with unknown functions for the machine's operations on floats. So a
//! proof shows that an operation among others gives what it gives alone; that this is right is tested by numbers.

use super::lanes::sign_bit;
use super::{Limits, State, Walk, width_of};
use crate::machine::{self, Placed};
use crate::outcome::{Open, Outcome};
use crate::term::{Term, mask};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::FloatCC;
use cranelift_codegen::ir::{
    AbiParam, Function, Inst, InstBuilder, InstBuilderBase, Opcode, Signature, Type, UserFuncName,
    Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::abi::Placer;
use cranelift_thisgpu::unstable::sim::semantics::softfloat::{F16, F32, F64, Format};
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Paths and instructions of the code of one operation (*assumed*: conversions of i128 have the most).
const LIMITS: Limits = Limits {
    paths: 32,
    steps: 4000,
};

/// The format of floats of so many bits.
fn format(width: u32) -> Option<Format> {
    match width {
        16 => Some(F16),
        32 => Some(F32),
        64 => Some(F64),
        _ => None,
    }
}

/// Whether a number is NaN: the exponent is all ones and the fraction is not zero.
fn is_nan(x: Term, format: Format) -> Term {
    let fraction = format.precision - 1;
    let exponent = x.part(fraction, format.exponent_bits);
    let all = Term::number(mask(format.exponent_bits), format.exponent_bits);
    let none = Term::number(0, fraction);
    exponent
        .equals(all)
        .and(x.part(0, fraction).equals(none).not())
}

/// Whether a number is less than another: by their signs, then by their magnitudes. −0 is less than +0.
fn is_lower(x: Term, y: Term) -> Term {
    let width = x.width();
    let is_negative = |t: Term| t.part(width - 1, 1).equals(Term::number(1, 1));
    let magnitude = |t: Term| t.part(0, width - 1);
    let both_positive = magnitude(x).is_below(magnitude(y));
    let both_negative = magnitude(y).is_below(magnitude(x));
    let of_positive = is_negative(y).not().and(both_positive);
    let of_negative = is_negative(y).not().or(both_negative);
    let negative = is_negative(x);
    negative
        .and(of_negative)
        .or(negative.not().and(of_positive))
}

/// Whether two numbers compare so.
pub fn compare(condition: FloatCC, x: Term, y: Term) -> Option<Term> {
    let format = format(x.width())?;
    let unordered = is_nan(x, format).or(is_nan(y, format));
    let ordered = unordered.not();
    let magnitudes = x.or(y).and(sign_bit(x.width()).not());
    let zeros = magnitudes.equals(Term::number(0, x.width()));
    let equal = x.equals(y).or(zeros);
    let less = |x: Term, y: Term| is_lower(x, y).and(zeros.not());
    Some(match condition {
        FloatCC::Ordered => ordered,
        FloatCC::Unordered => unordered,
        FloatCC::Equal => ordered.and(equal),
        FloatCC::NotEqual => unordered.or(equal.not()),
        FloatCC::OrderedNotEqual => ordered.and(equal.not()),
        FloatCC::UnorderedOrEqual => unordered.or(equal),
        FloatCC::LessThan => ordered.and(less(x, y)),
        FloatCC::LessThanOrEqual => ordered.and(less(x, y).or(equal)),
        FloatCC::GreaterThan => ordered.and(less(y, x)),
        FloatCC::GreaterThanOrEqual => ordered.and(less(y, x).or(equal)),
        FloatCC::UnorderedOrLessThan => unordered.or(less(x, y)),
        FloatCC::UnorderedOrLessThanOrEqual => unordered.or(less(x, y)).or(equal),
        FloatCC::UnorderedOrGreaterThan => unordered.or(less(y, x)),
        FloatCC::UnorderedOrGreaterThanOrEqual => unordered.or(less(y, x)).or(equal),
    })
}

/// The lesser or the greater of two numbers. A NaN makes the result the NaN that all operations give (docs/clif.md).
pub fn extreme(opcode: Opcode, x: Term, y: Term) -> Option<Term> {
    let format = format(x.width())?;
    let found = match opcode {
        Opcode::Fmin => Term::choose(is_lower(x, y), x, y),
        Opcode::Fmax => Term::choose(is_lower(y, x), x, y),
        _ => return None,
    };
    let unordered = is_nan(x, format).or(is_nan(y, format));
    let nan = Term::number(format.nan.into(), x.width());
    Some(Term::choose(unordered, nan, found))
}

impl Walk<'_> {
    /// What the code of an operation alone gives for these operands, if it is one that rounds.
    pub(super) fn rounded(
        &mut self,
        inst: Inst,
        state: &mut State,
        args: &[Term],
    ) -> Result<Option<Vec<Term>>, Open> {
        let dfg = &self.func.dfg;
        let values = dfg.inst_args(inst).iter().chain(dfg.inst_results(inst));
        let has_floats = |&&v: &&Value| dfg.value_type(v).lane_type().is_float();
        if !values.clone().any(|v| has_floats(&v)) {
            return Ok(None);
        }
        let (words, types) = words(self.func, inst)?;
        let mut placer = Placer::default();
        let parameters: Vec<(Placed, Term)> = args
            .iter()
            .map(|&arg| (placed(&mut placer, arg.width()), arg))
            .collect();
        let mut placer = Placer::default();
        let widths = types.iter().map(|&ty| width_of(ty));
        let widths: Vec<u32> = widths.collect::<Result<_, Open>>()?;
        let results: Vec<Placed> = widths.iter().map(|&w| placed(&mut placer, w)).collect();
        let paths = machine::paths(&words, &parameters, &results, LIMITS)?;
        let outcome = Outcome::of(&paths, &widths);
        for code in outcome.trap_codes() {
            let traps = outcome.trap.equals(Term::number(code.into(), 8));
            self.trap_if(state, traps, code);
        }
        Ok(Some(outcome.results))
    }
}

fn placed(placer: &mut Placer, width: u32) -> Placed {
    Placed {
        place: placer.place(width.div_ceil(32)),
        width,
    }
}

/// The code of one operation of parameters, and the types of its results.
fn words(func: &Function, inst: Inst) -> Result<(Arc<Vec<u128>>, Vec<Type>), Open> {
    /// What is compiled once in a process, by its text.
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Vec<u128>>>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (alone, types) = alone(func, inst);
    let text = alone.display().to_string();
    if let Some(words) = known().get(&text) {
        return Ok((Arc::clone(words), types));
    }
    let compiled = SourceFile::parse("operation.clif", &text)
        .and_then(|file| Compiler::new(Options::default()).file(&file));
    let code = compiled.map_err(|_| Open::new(func.dfg.insts[inst].opcode().to_string()))?;
    let found = code.object().function("f");
    let found = found.filter(|function| function.relocations.is_empty());
    let found = found.ok_or_else(|| Open::new(func.dfg.insts[inst].opcode().to_string()))?;
    let words = Arc::new(found.words.clone());
    known().insert(text, Arc::clone(&words));
    Ok((words, types))
}

/// A function of one operation of parameters.
fn alone(func: &Function, inst: Inst) -> (Function, Vec<Type>) {
    let dfg = &func.dfg;
    let types =
        |values: &[Value]| -> Vec<Type> { values.iter().map(|&v| dfg.value_type(v)).collect() };
    let (parameters, results) = (types(dfg.inst_args(inst)), types(dfg.inst_results(inst)));
    let mut signature = Signature::new(CallConv::Fast);
    signature
        .params
        .extend(parameters.iter().map(|&ty| AbiParam::new(ty)));
    signature
        .returns
        .extend(results.iter().map(|&ty| AbiParam::new(ty)));
    let mut new = Function::with_name_signature(UserFuncName::testcase("f"), signature);
    let block = new.dfg.make_block();
    let arguments: Vec<Value> = parameters
        .iter()
        .map(|&ty| new.dfg.append_block_param(block, ty))
        .collect();
    let mut data = dfg.insts[inst];
    let mut pos = FuncCursor::new(&mut new);
    pos.insert_block(block);
    let mut next = arguments.into_iter();
    let graph = &mut pos.func.dfg;
    data.map_values(
        &mut graph.value_lists,
        &mut graph.jump_tables,
        &mut graph.exception_tables,
        |value| next.next().unwrap_or(value),
    );
    let (inst, _) = pos.ins().build(data, dfg.ctrl_typevar(inst));
    let values = pos.func.dfg.inst_results(inst).to_vec();
    pos.ins().return_(&values);
    (new, results)
}
