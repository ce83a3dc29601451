//! Which variables must have an address: those that are indexed by what is not constant, directly or by a function that
//! gets a pointer to them.

use hashbrown::{HashMap, HashSet};
use naga::{
    Block, EntryPoint, Expression, Function, GlobalVariable, Handle, LocalVariable, Module,
    Statement,
};

/// A function; none is the entry point's own.
pub(super) type Key = Option<Handle<Function>>;

/// What must have an address.
#[derive(Debug, Default)]
pub(super) struct Reach {
    locals: HashSet<(Key, Handle<LocalVariable>)>,
    globals: HashSet<Handle<GlobalVariable>>,
    /// Of each function, the arguments that are pointers through which it does so.
    arguments: HashMap<Handle<Function>, HashSet<u32>>,
}

impl Reach {
    /// Of all functions of a module, in their order, in which callees come first, and of an entry point.
    pub(super) fn new(module: &Module, entry: &EntryPoint) -> Reach {
        let mut reach = Reach::default();
        for (handle, function) in module.functions.iter() {
            reach.function(Some(handle), function);
        }
        reach.function(None, &entry.function);
        reach
    }

    /// Whether a local variable needs an address.
    pub(super) fn local(&self, key: Key, variable: Handle<LocalVariable>) -> bool {
        self.locals.contains(&(key, variable))
    }

    /// Whether a private variable needs one.
    pub(super) fn global(&self, variable: Handle<GlobalVariable>) -> bool {
        self.globals.contains(&variable)
    }

    fn function(&mut self, key: Key, function: &Function) {
        for (_, expression) in function.expressions.iter() {
            // Whether an index is constant and inside is looked at later.
            if let Expression::Access { base, .. } = expression {
                self.indexed(key, function, *base);
            }
        }
        self.block(key, function, &function.body);
    }

    /// Marks what a pointer comes from.
    fn indexed(&mut self, key: Key, function: &Function, mut pointer: Handle<Expression>) {
        loop {
            match function.expressions[pointer] {
                Expression::Access { base, .. } | Expression::AccessIndex { base, .. } => {
                    pointer = base;
                }
                Expression::LocalVariable(variable) => {
                    self.locals.insert((key, variable));
                    return;
                }
                Expression::GlobalVariable(variable) => {
                    self.globals.insert(variable);
                    return;
                }
                Expression::FunctionArgument(number) => {
                    if let Some(function) = key {
                        self.arguments.entry(function).or_default().insert(number);
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    fn block(&mut self, key: Key, function: &Function, block: &Block) {
        for statement in block {
            match statement {
                Statement::Block(block) => self.block(key, function, block),
                Statement::If { accept, reject, .. } => {
                    self.block(key, function, accept);
                    self.block(key, function, reject);
                }
                Statement::Switch { cases, .. } => {
                    for case in cases {
                        self.block(key, function, &case.body);
                    }
                }
                Statement::Loop {
                    body, continuing, ..
                } => {
                    self.block(key, function, body);
                    self.block(key, function, continuing);
                }
                Statement::Call {
                    function: callee,
                    arguments,
                    ..
                } => {
                    let indexed = self.arguments.get(callee).cloned().unwrap_or_default();
                    for number in indexed {
                        if let Some(&argument) = arguments.get(number as usize) {
                            self.indexed(key, function, argument);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
