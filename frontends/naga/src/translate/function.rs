//! Functions: the entry point's body, and calls, which are inlined.

use super::memory::Shape;
use super::places::{Place, Storage};
use super::reach::Key;
use super::types::Ty;
use super::values::Value;
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::{InstBuilder, TrapCode};
use hashbrown::HashSet;
use naga::valid::FunctionInfo;
use naga::{Expression, Function, Handle, Span};

/// The most instructions of CLIF that a kernel may have when all calls are inlined.
const MOST_INSTRUCTIONS: usize = 2 << 20;

/// The most blocks and calls inside each other.
const MOST_DEPTH: usize = 4096;

/// The trap of a function that ends without the result that it must give.
const NO_RESULT: TrapCode = TrapCode::unwrap_user(1);

/// A function that is being translated.
pub(super) struct Frame<'a> {
    pub key: Key,
    pub function: &'a Function,
    pub info: &'a FunctionInfo,
    /// What expressions are, that have been evaluated.
    pub values: Vec<Option<Value>>,
    locals: Vec<Option<Place>>,
    /// Memory that is given back when the call ends.
    pub slots: Vec<(Shape, ir::StackSlot)>,
    pub arguments: Vec<Value>,
    /// Where a call goes on; none in the entry point.
    exit: Option<Exit>,
    /// Where `break` goes, of the loops and switches around.
    pub breaks: Vec<ir::Block>,
    /// Where `continue` goes, of the loops around.
    pub continues: Vec<Continue>,
    /// Values that a `continue` goes past: they are not there in the `continuing` of its loop.
    pub bypassed: HashSet<Handle<Expression>>,
}

/// Where a called function goes on in its caller, and how its result gets there.
#[derive(Clone, Debug)]
struct Exit {
    block: ir::Block,
    /// The place of a result that lies in memory.
    result: Option<Place>,
}

impl<'a> Frame<'a> {
    /// Of an entry point.
    pub(super) fn new(function: &'a Function, info: &'a FunctionInfo) -> Frame<'a> {
        Frame {
            key: None,
            function,
            info,
            values: vec![None; function.expressions.len()],
            locals: vec![None; function.local_variables.len()],
            slots: Vec::new(),
            arguments: Vec::new(),
            exit: None,
            breaks: Vec::new(),
            continues: Vec::new(),
            bypassed: HashSet::new(),
        }
    }
}

/// Where `continue` of a loop goes.
pub(super) struct Continue {
    pub block: ir::Block,
    /// Which expressions had been evaluated at the first one.
    pub before: Option<Vec<bool>>,
}

/// Where a function begins: its first statement, or what comes before.
pub(super) fn first_span(function: &Function) -> Span {
    let locals = function.local_variables.iter();
    let locals = locals.map(|(handle, _)| function.local_variables.get_span(handle));
    let statements = function.body.span_iter().map(|(_, span)| *span);
    let spans = locals.chain(statements).filter(Span::is_defined);
    let first = spans.min_by_key(|span| span.to_range().map(|range| range.start));
    first.unwrap_or(Span::UNDEFINED)
}

impl Translator<'_, '_, '_> {
    /// The body of the entry point, where the builder is.
    pub(super) fn entry_body(&mut self) -> Result<()> {
        let arguments = &self.frame.function.arguments;
        for argument in arguments {
            let value = self.input(argument)?;
            self.frame.arguments.push(value);
        }
        self.body()
    }

    /// Variables and statements of the current function.
    fn body(&mut self) -> Result<()> {
        let function = self.frame.function;
        for (handle, local) in function.local_variables.iter() {
            self.at(function.local_variables.get_span(handle));
            let needs_memory = self.reach.local(self.frame.key, handle);
            let place = self.variable(Ty::Handle(local.ty), needs_memory)?;
            match local.init {
                Some(init) => {
                    let value = self.value(init)?;
                    self.store(&place, &value)?;
                }
                None if planted(Mistake::KeptLocals) => {}
                None => self.clear(&place)?,
            }
            self.frame.locals[handle.index()] = Some(place);
        }
        if self.block(&function.body)? {
            self.leave(None)?;
        }
        Ok(())
    }

    /// A variable of the current function.
    pub(super) fn local_place(&self, variable: Handle<naga::LocalVariable>) -> Result<Place> {
        let place = self.frame.locals.get(variable.index()).cloned().flatten();
        place.ok_or_else(|| invalid("a variable that has no place yet"))
    }

    /// `return`.
    pub(super) fn leave(&mut self, value: Option<Handle<Expression>>) -> Result<()> {
        let value = value.map(|value| self.value(value)).transpose()?;
        let Some(exit) = self.frame.exit.clone() else {
            self.builder.ins().return_(&[]);
            return Ok(());
        };
        match (value, exit.result) {
            (Some(Value::Lanes(lanes)), None) => {
                let arguments: Vec<_> = lanes.into_iter().map(Into::into).collect();
                self.builder.ins().jump(exit.block, &arguments);
            }
            (Some(value), Some(place)) => {
                self.store(&place, &value)?;
                self.builder.ins().jump(exit.block, &[]);
            }
            (None, None) if self.frame.function.result.is_none() => {
                self.builder.ins().jump(exit.block, &[]);
            }
            (None, _) => {
                self.builder.ins().trap(NO_RESULT);
            }
            (Some(_), None) => return Err(invalid("a pointer as a result")),
        }
        Ok(())
    }

    /// Goes into a block or a call.
    pub(super) fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MOST_DEPTH {
            return Err(unsupported(format!(
                "more than {MOST_DEPTH} blocks and calls inside each other"
            )));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    /// A call, in place.
    pub(super) fn call(
        &mut self,
        callee: Handle<Function>,
        arguments: &[Handle<Expression>],
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        if self.builder.func.dfg.num_insts() > MOST_INSTRUCTIONS {
            return Err(unsupported(
                "a shader of millions of instructions when its calls are inlined: call fewer functions",
            ));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for &argument in arguments {
            values.push(self.value(argument)?);
        }
        let function = &self.module.functions[callee];
        let block = self.builder.create_block();
        let mut place = None;
        let mut lanes = Vec::new();
        if let Some(result) = &function.result {
            let ty = Ty::Handle(result.ty);
            if self.is_stored(&ty)? {
                place = Some(self.variable(ty, true)?);
            } else {
                for leaf in self.leaves(&ty)? {
                    let ty = super::types::clif(leaf.scalar)?;
                    lanes.push(self.builder.append_block_param(block, ty));
                }
            }
        }
        let frame = Frame {
            key: Some(callee),
            arguments: values,
            exit: Some(Exit {
                block,
                result: place.clone(),
            }),
            ..Frame::new(function, &self.info[callee])
        };
        let (call, span) = (self.call, self.span);
        if let Some((line, column)) = self.source.position(span) {
            self.call = self.locations.call(self.file, line, column, call);
        }
        let caller = std::mem::replace(&mut self.frame, frame);
        self.deeper(Self::body)?;
        let callee = std::mem::replace(&mut self.frame, caller);
        self.free_slots(callee.slots);
        self.call = call;
        self.at(span);
        self.builder.switch_to_block(block);
        if let Some(result) = result {
            let value = match place.map(|place| place.storage) {
                Some(Storage::Memory(address)) => Value::Stored(address),
                _ => Value::Lanes(lanes),
            };
            self.frame.values[result.index()] = Some(value);
        }
        Ok(())
    }
}
