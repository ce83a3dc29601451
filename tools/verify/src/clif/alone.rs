//! Operations that are what their code computes: those that round floats, and calls of intrinsics.
//!
//! The operation alone is compiled, and its words are run on the operands, with unknown functions for the machine's
//! operations on floats. So a proof shows that an operation among others gives what it gives alone; that this is right
//! is tested by numbers. Calls of other functions are unknown functions of their operands and of memory.

use super::{Limits, State, Walk, width_of};
use crate::machine::{self, Entry, MachineCode, Placed};
use crate::outcome::{Open, Outcome};
use crate::term::{Sort, Term, Unknown};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::immediates::Imm64;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, FuncRef, Function, Inst, InstBuilder, InstBuilderBase, InstructionData,
    Opcode, Signature, Type, UserFuncName, Value,
};
use cranelift_codegen::isa::CallConv;
use cranelift_thisgpu::Compiler;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::unstable::abi::Placer;
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Paths and instructions of the code of one operation (*assumed*: conversions of i128 have the most).
const LIMITS: Limits = Limits {
    paths: 32,
    steps: 4000,
};

impl Walk<'_> {
    /// What an operation on floats gives by its code; none if it is no such operation.
    pub(super) fn rounded(
        &mut self,
        inst: Inst,
        state: &mut State,
        args: &[Term],
    ) -> Result<Option<Vec<Term>>, Open> {
        let dfg = &self.func.dfg;
        let mut values = dfg.inst_args(inst).iter().chain(dfg.inst_results(inst));
        if !values.any(|&v| dfg.value_type(v).lane_type().is_float()) {
            return Ok(None);
        }
        self.by_code(inst, state, args).map(Some)
    }

    /// What a call gives.
    pub(super) fn call(
        &mut self,
        inst: Inst,
        callee: FuncRef,
        state: &mut State,
        args: &[Term],
    ) -> Result<Vec<Term>, Open> {
        match self.intrinsic(callee) {
            Some(value) => value.map_or_else(|| self.by_code(inst, state, args), |v| Ok(vec![v])),
            None => self.unknown_call(inst, callee, state, args),
        }
    }

    /// The results of a call of another function, and what it leaves of memory.
    fn unknown_call(
        &self,
        inst: Inst,
        callee: FuncRef,
        state: &mut State,
        args: &[Term],
    ) -> Result<Vec<Term>, Open> {
        let dfg = &self.func.dfg;
        let name = dfg.ext_funcs[callee]
            .name
            .display(Some(&self.func.params))
            .to_string();
        let mut operands = args.to_vec();
        operands.push(state.memory);
        let apply = |what: &str, sort: Sort| {
            let function = Unknown {
                name: format!("{name} {what}"),
                is_symmetric: false,
            };
            Term::apply(&function, &operands, sort)
        };
        let results = dfg.inst_results(inst).iter().enumerate();
        let results = results.map(|(index, &v)| {
            let width = width_of(dfg.value_type(v))?;
            Ok(apply(&format!("result {index}"), Sort::Bits(width)))
        });
        let results = results.collect::<Result<_, Open>>()?;
        state.memory = apply("memory", Sort::Memory);
        Ok(results)
    }

    /// What the code of an operation alone gives for these operands.
    fn by_code(&mut self, inst: Inst, state: &mut State, args: &[Term]) -> Result<Vec<Term>, Open> {
        let (object, types) = code(self.func, inst, args)?;
        let mut placer = Placer::arguments(CallConv::Fast);
        let variable = args.iter().zip(self.func.dfg.inst_args(inst));
        let variable = variable.filter(|&(&arg, &v)| constant(self.func, v, arg).is_none());
        let parameters: Vec<(Placed, Term)> = variable
            .map(|(&arg, _)| (placed(&mut placer, arg.width()), arg))
            .collect();
        let mut placer = Placer::results();
        let widths = types.iter().map(|&ty| width_of(ty));
        let widths: Vec<u32> = widths.collect::<Result<_, Open>>()?;
        let results: Vec<Placed> = widths.iter().map(|&w| placed(&mut placer, w)).collect();
        let entry = Entry {
            parameters: &parameters,
            results: &results,
            memory: state.memory,
            condition: state.condition,
        };
        let paths = machine::paths(machine_code(&object)?, entry, LIMITS)?;
        let outcome = Outcome::of(&paths, &widths);
        let parts = [outcome.trap, outcome.memory].into_iter();
        if parts
            .chain(outcome.results.iter().copied())
            .any(machine::reads_what_nobody_set)
        {
            return Err(Open::new("code of an operation reads what nobody has set"));
        }
        for code in outcome.trap_codes() {
            let traps = outcome.trap.equals(Term::number(code.into(), 8));
            self.trap_if(state, traps, code);
        }
        state.memory = outcome.memory;
        Ok(outcome.results)
    }
}

fn placed(placer: &mut Placer, width: u32) -> Placed {
    Placed {
        place: placer.place(width.div_ceil(32)),
        width,
    }
}

/// The number of an operand of a call that is one: intrinsics ask for constants.
fn constant(func: &Function, value: Value, term: Term) -> Option<i64> {
    let ty = func.dfg.value_type(value);
    let number = term.as_number()?;
    (ty.is_int() && ty.bits() <= 64).then_some(number as i64)
}

/// The code of one operation of parameters, and the types of its results.
fn code(func: &Function, inst: Inst, args: &[Term]) -> Result<(Arc<Object>, Vec<Type>), Open> {
    /// What is compiled once in a process, by its text.
    static KNOWN: LazyLock<Mutex<HashMap<String, Arc<Object>>>> = LazyLock::new(Mutex::default);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let (alone, types) = alone(func, inst, args);
    let text = alone.display().to_string();
    if let Some(object) = known().get(&text) {
        return Ok((Arc::clone(object), types));
    }
    let open = || Open::new(func.dfg.insts[inst].opcode().to_string());
    let compiled = SourceFile::parse("operation.clif", &text)
        .and_then(|file| Compiler::new(Options::default()).file(&file));
    let object = Arc::new(compiled.map_err(|_| open())?.into_object());
    machine_code(&object).map_err(|_| open())?;
    known().insert(text, Arc::clone(&object));
    Ok((object, types))
}

/// The code of the operation.
fn machine_code(object: &Object) -> Result<MachineCode<'_>, Open> {
    let found = object
        .function("f")
        .and_then(|function| MachineCode::of(object, function));
    found.ok_or_else(|| Open::new("calls, or addresses of symbols"))
}

/// A function of one operation of parameters and of the constants among its operands.
fn alone(func: &Function, inst: Inst, args: &[Term]) -> (Function, Vec<Type>) {
    let dfg = &func.dfg;
    let ty = |&v: &Value| dfg.value_type(v);
    let operands = dfg.inst_args(inst).iter().zip(args);
    let operands: Vec<(Type, Option<i64>)> = operands
        .map(|(v, &term)| (ty(v), constant(func, *v, term)))
        .collect();
    let results: Vec<Type> = dfg.inst_results(inst).iter().map(ty).collect();
    let mut signature = Signature::new(CallConv::Fast);
    let parameters = operands.iter().filter(|(_, number)| number.is_none());
    let parameters = parameters.map(|&(ty, _)| AbiParam::new(ty));
    signature.params.extend(parameters);
    let returns = results.iter().map(|&ty| AbiParam::new(ty));
    signature.returns.extend(returns);
    let mut new = Function::with_name_signature(UserFuncName::testcase("f"), signature);
    let block = new.dfg.make_block();
    let mut pos = FuncCursor::new(&mut new);
    pos.insert_block(block);
    let values: Vec<Value> = operands
        .iter()
        .map(|&(ty, number)| match number {
            Some(number) => {
                let number = Imm64::new(number).zero_extend_from_width(ty.bits());
                pos.ins().iconst(ty, number)
            }
            None => pos.func.dfg.append_block_param(block, ty),
        })
        .collect();
    let made = match dfg.insts[inst] {
        InstructionData::Call {
            opcode: Opcode::Call,
            func_ref,
            ..
        } => {
            let callee = &dfg.ext_funcs[func_ref];
            let signature = pos
                .func
                .import_signature(dfg.signatures[callee.signature].clone());
            let callee = pos.func.import_function(ExtFuncData {
                signature,
                ..callee.clone()
            });
            pos.ins().call(callee, &values)
        }
        mut data => {
            let mut next = values.into_iter();
            let graph = &mut pos.func.dfg;
            data.map_values(
                &mut graph.value_lists,
                &mut graph.jump_tables,
                &mut graph.exception_tables,
                |value| next.next().unwrap_or(value),
            );
            pos.ins().build(data, dfg.ctrl_typevar(inst)).0
        }
    };
    let values = pos.func.dfg.inst_results(made).to_vec();
    pos.ins().return_(&values);
    (new, results)
}
