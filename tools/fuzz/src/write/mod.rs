//! Writes random functions that always return, and whose results CLIF settles.
//!
//! A function is written from its entry on. A [`Writer`] keeps the values that can be read at this place (`scope`), and
//! writes operations on them (`values`, with what makes them total in `guard`), several that belong together
//! (`idioms`), accesses to stack slots (`memory`), branches and switches (`control`), loops (`loops`) and calls
//! (`calls`). Control is structured: each form is entered at its top and left at its bottom, so a value defined before
//! it may be read in it and after it. Those defined inside leave as parameters of the block behind it, those of a loop
//! also as they are. Every loop has few turns, and a function may only be called as often as the budget allows
//! (`Writer::cost`).

mod calls;
mod control;
mod guard;
mod idioms;
mod loops;
mod memory;
mod scope;
mod values;

use crate::catalogue::{Catalogue, Oracle, type_set};
use crate::operation::TYPES;
use crate::random::Random;
use crate::swarm::{Form, Swarm};
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    AbiParam, Block, Function, InstBuilder, Signature, StackSlot, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::CallConv;
use scope::Scope;
use std::collections::BTreeSet;

/// Most operations that a call of a function may execute, counting those of the functions it calls.
const MAX_COST: u64 = 20_000;
/// The types that every function may use, because addresses, counters and digests have them.
const COMMON: [Type; 3] = [types::I8, types::I32, types::I64];

/// A function that later ones may call.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Its name.
    pub name: UserFuncName,
    /// How it is called.
    pub signature: Signature,
    /// Operations that a call may execute.
    pub cost: u64,
}

/// A function while it is written.
pub struct Writer<'a> {
    catalogue: &'a Catalogue,
    oracle: Oracle,
    callees: &'a [Callee],
    swarm: Swarm,
    random: Random,
    func: Function,
    /// The block that is being written.
    block: Block,
    scope: Scope,
    /// Floats that may be a NaN whose bits are left open.
    open: BTreeSet<Value>,
    /// Values that something reads.
    read: BTreeSet<Value>,
    slots: Vec<StackSlot>,
    variables: Vec<memory::Variable>,
    /// What the function computes with.
    palette: Vec<Type>,
    types: u32,
    /// How often this place may be reached in a call.
    turns: u64,
    cost: u64,
    /// Forms of control around this place.
    depth: u32,
}

/// Writes the function called `name`, which may call `callees`, without what `swarm` leaves out.
pub fn function(
    catalogue: &Catalogue,
    oracle: Oracle,
    callees: &[Callee],
    swarm: Swarm,
    name: &str,
    mut random: Random,
) -> (Function, Callee) {
    let known = catalogue.types(oracle).iter().copied();
    let known: Vec<Type> = known.filter(|ty| swarm.has_type(*ty)).collect();
    let palette = palette(&known, &mut random);
    let signature = signature(&palette, callees, &mut random);
    let mut writer = Writer::new(catalogue, name, signature.clone(), random);
    writer.oracle = oracle;
    writer.callees = callees;
    writer.swarm = swarm;
    writer.types = type_set(&palette);
    writer.palette = palette;
    writer.body();
    let callee = Callee {
        name: writer.func.name.clone(),
        signature,
        cost: writer.cost,
    };
    (writer.func, callee)
}

/// Writes a function that does with a type what every function may do with its types: it passes values on, closes NaNs,
/// writes constants and makes an integer of all bits.
pub fn basics(catalogue: &Catalogue, ty: Type) -> Function {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params = vec![AbiParam::new(ty)];
    signature.returns = vec![AbiParam::new(types::I64), AbiParam::new(ty)];
    let mut writer = Writer::new(catalogue, "basics", signature, Random::new(0));
    let given = writer.func.dfg.block_params(writer.block)[0];
    if ty.lane_type().is_float() {
        writer.open.insert(given);
    }
    let digest = writer.bits_of(given);
    let constant = writer.constant(ty);
    writer.pos().ins().return_(&[digest, constant]);
    writer.func
}

/// The types that a function computes with: few, so that values of a type meet often.
fn palette(known: &[Type], random: &mut Random) -> Vec<Type> {
    let of_kind = |vector| {
        let known = known.iter().copied();
        known
            .filter(|ty| ty.is_vector() == vector)
            .collect::<Vec<Type>>()
    };
    let (scalars, vectors) = (of_kind(false), of_kind(true));
    let mut palette = COMMON.to_vec();
    for _ in 0..random.between(1, 4) {
        palette.push(random.pick(&scalars));
    }
    if !vectors.is_empty() && random.once_in(3) {
        for _ in 0..random.between(1, 5) {
            palette.push(random.pick(&vectors));
        }
    }
    TYPES
        .into_iter()
        .filter(|ty| palette.contains(ty))
        .collect()
}

fn signature(palette: &[Type], callees: &[Callee], random: &mut Random) -> Signature {
    let convention = match random.below(8) {
        0 => CallConv::SystemV,
        1 | 2 => CallConv::Tail,
        _ => CallConv::Fast,
    };
    let mut signature = Signature::new(convention);
    // Some have more parameters and results than registers for them.
    let params = if random.once_in(8) {
        random.between(8, 20)
    } else {
        random.below(6)
    };
    let returns = if random.once_in(8) {
        random.between(4, 12)
    } else {
        random.below(3)
    };
    let mut types = |count: usize| -> Vec<AbiParam> {
        (0..count)
            .map(|_| AbiParam::new(random.pick(palette)))
            .collect()
    };
    signature.params = types(params);
    signature.returns = types(returns);
    signature.returns.insert(0, AbiParam::new(types::I64));
    // One of several functions can be called where they are called in the same way.
    if !callees.is_empty() && random.once_in(5) {
        return callees[random.below(callees.len())].signature.clone();
    }
    // A tail call needs a callee with the same results.
    if convention == CallConv::Tail
        && let Some(other) = callees
            .iter()
            .find(|callee| callee.signature.call_conv == CallConv::Tail)
        && random.once_in(2)
    {
        signature.returns = other.signature.returns.clone();
    }
    signature
}

impl<'a> Writer<'a> {
    /// A function that is empty but for its parameters and may use integers only.
    fn new(catalogue: &'a Catalogue, name: &str, signature: Signature, random: Random) -> Self {
        let name = UserFuncName::testcase(name);
        let mut func = Function::with_name_signature(name, signature);
        let block = func.dfg.make_block();
        func.layout.append_block(block);
        let mut writer = Writer {
            catalogue,
            oracle: Oracle::Interpreter,
            callees: &[],
            swarm: Swarm::WHOLE,
            func,
            block,
            scope: Scope::default(),
            open: BTreeSet::new(),
            read: BTreeSet::new(),
            slots: Vec::new(),
            variables: Vec::new(),
            types: type_set(&COMMON),
            palette: COMMON.to_vec(),
            random,
            turns: 1,
            cost: 1,
            depth: 0,
        };
        for index in 0..writer.func.signature.params.len() {
            let ty = writer.func.signature.params[index].value_type;
            let value = writer.func.dfg.append_block_param(block, ty);
            writer.define(value);
        }
        writer
    }

    /// The place where the next instruction goes.
    fn pos(&mut self) -> FuncCursor<'_> {
        FuncCursor::new(&mut self.func).at_bottom(self.block)
    }

    fn value_type(&self, value: Value) -> Type {
        self.func.dfg.value_type(value)
    }

    fn body(&mut self) {
        self.make_slots();
        if self.random.once_in(10) && self.swarm.has_form(Form::Recursion) {
            self.recursion();
        }
        if self.random.once_in(6) && self.swarm.has_form(Form::ManyValues) {
            self.many_values();
        }
        for _ in 0..self.random.between(1, 6) {
            self.statement();
        }
        self.finish();
    }

    /// A form of control, or some operations.
    fn statement(&mut self) {
        let (swarm, nested) = (self.swarm, self.depth < 3);
        let nests = |form| nested && swarm.has_form(form);
        match self.random.below(12) {
            0 | 1 if nests(Form::Diamond) => match self.random.once_in(3) {
                true => self.cascade(),
                false => self.diamond(),
            },
            2 | 3 if nests(Form::Repetition) => self.repetition(),
            4 if nests(Form::Switch) => self.switch(),
            5 if nests(Form::EarlyReturn) => self.early_return(),
            6 | 7 if swarm.has_form(Form::Call) => self.call(),
            8 if swarm.has_form(Form::Bursts) && swarm.has_form(Form::Memory) => self.burst(),
            9 => self.idiom(),
            _ => self.operations(12),
        }
    }

    /// Statements inside a form of control.
    fn inner_statements(&mut self) {
        self.depth += 1;
        self.operations(6);
        match self.random.below(8) {
            0 => self.idiom(),
            1 if self.swarm.has_form(Form::Bursts) && self.swarm.has_form(Form::Memory) => {
                self.burst();
            }
            _ => {}
        }
        if self.random.once_in(3) {
            self.statement();
        }
        self.depth -= 1;
    }

    fn operations(&mut self, most: usize) {
        for _ in 0..self.random.between(1, most) {
            self.operation();
        }
    }

    /// Many values that live at the same time, over whatever is written between, so that registers run out.
    fn many_values(&mut self) {
        let ty = loop {
            let ty = self.random.pick(&self.palette.clone());
            if ty.is_int() {
                break ty;
            }
        };
        let count = self.random.between(20, 90);
        let mut values = Vec::new();
        for _ in 0..count {
            let (x, y) = (self.operand(ty), self.operand(ty));
            let value = match self.random.below(3) {
                0 => self.pos().ins().iadd(x, y),
                1 => self.pos().ins().bxor(x, y),
                _ => self.pos().ins().isub(x, y),
            };
            self.define(value);
            values.push(value);
        }
        self.cost += count as u64;
        self.statement();
        let mut sum = self.operand(ty);
        while !values.is_empty() {
            let index = self.random.below(values.len());
            let value = values.swap_remove(index);
            sum = if self.random.once_in(2) {
                self.pos().ins().iadd(sum, value)
            } else {
                self.pos().ins().bxor(value, sum)
            };
        }
        self.define(sum);
    }

    /// Ends the function: everything that nothing has read goes into the first result.
    fn finish(&mut self) {
        if self.swarm.has_form(Form::Call) && self.random.once_in(2) && self.tail_call() {
            return;
        }
        let unread: Vec<Value> = self
            .scope
            .all()
            .filter(|value| !self.read.contains(value))
            .collect();
        let mut digest = self.constant(types::I64);
        for value in unread.into_iter().rev().take(24) {
            let bits = self.bits_of(value);
            digest = self.pos().ins().bxor(digest, bits);
            let by = self.pos().ins().iconst(types::I8, 7);
            digest = self.pos().ins().rotl(digest, by);
        }
        self.return_values(Some(digest));
    }

    /// Returns random values of the right types; the first is `digest`, if there is one.
    fn return_values(&mut self, digest: Option<Value>) {
        let types: Vec<Type> = self
            .func
            .signature
            .returns
            .iter()
            .map(|param| param.value_type)
            .collect();
        let mut values = Vec::new();
        for (index, ty) in types.into_iter().enumerate() {
            values.push(match digest {
                Some(digest) if index == 0 => digest,
                _ => self.closed_operand(ty),
            });
        }
        self.pos().ins().return_(&values);
    }
}
