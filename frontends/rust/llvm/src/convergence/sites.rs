//! The calls of convergent intrinsics that a kernel reaches, and what each is known by.

use super::control::Controls;
use crate::error::{Error, Place, Problem};
use crate::link::{Program, Symbol, file};
use crate::model::{BlockId, Call, Callee, Metadata, Operation};
use crate::visit;
use cranelift_thisgpu::intrinsics::{Effect, lookup};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

/// What an intrinsic is called in front of its name in the table.
const INTRINSIC: &str = "__thisgpu_";

/// Most sites of a kernel: every way of calls to an intrinsic counts.
const MOST_SITES: usize = 1 << 16;

/// A place as both compilations know it: file, line, column and the function that the text belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    file: Arc<str>,
    line: u32,
    column: u32,
    function: Option<Arc<str>>,
}

/// What a site is known by: the intrinsic, its place, and those of all calls around it, innermost first.
pub type Key = (Arc<str>, Vec<Frame>);

/// An instruction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    function: Symbol,
    block: BlockId,
    index: usize,
}

/// A call of a convergent intrinsic, by one way of calls from the kernel.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its name.
    pub intrinsic: Arc<str>,
    /// What it is known by; none if it, or a call around it, has no place.
    pub key: Option<Key>,
    /// Where it is, for messages.
    pub place: Option<Place>,
    /// In how many loops it is, those around the calls that lead to it counted.
    pub depth: u32,
    /// Whether it, and the functions that lead to it, are marked as such.
    pub convergent: bool,
    /// The calls that lead to it and itself, outermost first.
    path: Vec<Step>,
}

impl Site {
    /// Whether threads that pass both pass one after the other. Those that are what is left of an unrolled loop may be
    /// in branches of their own turns.
    pub fn comes_with(&self, other: &Site, unrolled: bool, controls: &mut Controls) -> bool {
        let parted = self.path.iter().zip(&other.path).find(|(a, b)| a != b);
        let Some((ours, theirs)) = parted else {
            return false;
        };
        if ours.function != theirs.function {
            return false;
        }
        let Some(control) = controls.of(ours.function) else {
            return false;
        };
        let (a, b) = (ours.block, theirs.block);
        let in_order = |before, after| {
            control.dominates(before, after) || unrolled && control.leads(before, after)
        };
        in_order(a, b) || in_order(b, a)
    }
}

/// The name, without prefix, of a convergent intrinsic that a symbol is.
pub fn convergent_intrinsic(symbol: &str) -> Option<&str> {
    let name = symbol.strip_prefix(INTRINSIC)?;
    lookup(name).filter(|row| row.effect == Effect::Convergent)?;
    Some(name)
}

/// All sites that a kernel reaches.
///
/// # Errors
/// Recursion around a site, and too many of them.
pub fn sites<'p>(
    program: &'p Program,
    kernel: Symbol,
    controls: &mut Controls<'p>,
) -> Result<Vec<Site>, Error> {
    let calls = Calls::of(program, kernel);
    let mut walk = Walk {
        program,
        calls: &calls,
        controls,
        path: Vec::new(),
        sites: Vec::new(),
    };
    if calls.reaching.contains(&kernel) {
        walk.function(kernel)?;
    }
    Ok(walk.sites)
}

/// Who calls whom.
struct Calls {
    /// Functions that convergent intrinsics are called in, or in what they call.
    reaching: HashSet<Symbol>,
    /// Those of them whose address is a value somewhere.
    by_address: Vec<Symbol>,
}

impl Calls {
    /// Of all that a kernel reaches.
    fn of(program: &Program, kernel: Symbol) -> Self {
        let mut callers: HashMap<Symbol, Vec<Symbol>> = HashMap::new();
        let mut addressed = Vec::new();
        let mut through_addresses = Vec::new();
        let mut waiting = vec![kernel];
        let mut known: HashSet<Symbol> = waiting.iter().copied().collect();
        let mut reached = Vec::new();
        while let Some(symbol) = waiting.pop() {
            let mut visit = |named: Symbol| {
                if known.insert(named) {
                    waiting.push(named);
                }
            };
            match symbol {
                Symbol::Function(module, _) => {
                    let function = program.function_of(symbol);
                    let instructions = function.iter().flat_map(|f| &f.blocks);
                    for instruction in instructions.flat_map(|block| &block.instructions) {
                        let callee = match &instruction.operation {
                            Operation::Call(call) => Some(&call.callee),
                            _ => None,
                        };
                        match callee {
                            Some(Callee::Symbol(name)) => {
                                if convergent_intrinsic(name).is_some() {
                                    reached.push(symbol);
                                }
                                if let Some((callee, _)) = program.resolve(module, name) {
                                    callers.entry(callee).or_default().push(symbol);
                                    visit(callee);
                                }
                            }
                            Some(Callee::Address(_)) => through_addresses.push(symbol),
                            _ => {}
                        }
                        visit::values(instruction, &mut |value| {
                            if let crate::model::Value::Constant(constant) = value {
                                visit::of_constant(constant, &mut |name| {
                                    if let Some((named, _)) = program.resolve(module, name) {
                                        addressed.push(named);
                                        visit(named);
                                    }
                                });
                            }
                        });
                    }
                }
                Symbol::Variable(module, _) => {
                    let value = program.variable_of(symbol).and_then(|v| v.value.as_ref());
                    if let Some(value) = value {
                        visit::of_constant(value, &mut |name| {
                            if let Some((named, _)) = program.resolve(module, name) {
                                addressed.push(named);
                                visit(named);
                            }
                        });
                    }
                }
            }
        }
        // An address may be that of any function whose address is a value.
        addressed.retain(|symbol| matches!(symbol, Symbol::Function(..)));
        addressed.sort_unstable();
        addressed.dedup();
        for &callee in &addressed {
            (callers.entry(callee).or_default()).extend(&through_addresses);
        }
        let mut reaching: HashSet<Symbol> = HashSet::new();
        while let Some(symbol) = reached.pop() {
            if reaching.insert(symbol) {
                reached.extend(callers.get(&symbol).into_iter().flatten());
            }
        }
        addressed.retain(|symbol| reaching.contains(symbol));
        Self {
            reaching,
            by_address: addressed,
        }
    }
}

/// A walk along calls.
struct Walk<'w, 'p> {
    program: &'p Program,
    calls: &'w Calls,
    controls: &'w mut Controls<'p>,
    path: Vec<Step>,
    sites: Vec<Site>,
}

impl Walk<'_, '_> {
    fn function(&mut self, symbol: Symbol) -> Result<(), Error> {
        let (program, calls) = (self.program, self.calls);
        let Some(function) = program.function_of(symbol) else {
            return Ok(());
        };
        let Symbol::Function(module, _) = symbol else {
            return Ok(());
        };
        for (number, block) in function.blocks.iter().enumerate() {
            let id = BlockId(number as u32);
            let reached = self
                .controls
                .of(symbol)
                .is_some_and(|control| control.is_reached(id));
            if !reached {
                continue;
            }
            for (index, instruction) in block.instructions.iter().enumerate() {
                let Operation::Call(call) = &instruction.operation else {
                    continue;
                };
                self.path.push(Step {
                    function: symbol,
                    block: id,
                    index,
                });
                match &call.callee {
                    Callee::Symbol(name) => match convergent_intrinsic(name) {
                        Some(intrinsic) => self.site(module, call, name, intrinsic)?,
                        None => {
                            let callee = program.resolve(module, name).map(|(callee, _)| callee);
                            if let Some(callee) = callee.filter(|c| calls.reaching.contains(c)) {
                                self.call(callee)?;
                            }
                        }
                    },
                    Callee::Address(_) => {
                        for &callee in &calls.by_address {
                            self.call(callee)?;
                        }
                    }
                    Callee::Assembly(..) => {}
                }
                self.path.pop();
            }
        }
        Ok(())
    }

    fn call(&mut self, callee: Symbol) -> Result<(), Error> {
        if self.path.iter().any(|step| step.function == callee) {
            let place = self.path.last().and_then(|step| self.place(step));
            return Err(Error::new(place, Problem::WaitsInRecursion));
        }
        self.function(callee)
    }

    fn site(
        &mut self,
        module: usize,
        call: &Call,
        symbol: &str,
        intrinsic: &str,
    ) -> Result<(), Error> {
        let place = self.path.last().and_then(|step| self.place(step));
        if self.sites.len() == MOST_SITES {
            let problem = Problem::TooManyWays {
                intrinsic: intrinsic.to_owned(),
                most: MOST_SITES,
            };
            return Err(Error::new(place, problem));
        }
        let declared = self.program.declaration(module, symbol);
        let marked = call.attributes.convergent
            || declared.is_some_and(|declared| declared.attributes.convergent);
        let within = |step: &Step| {
            let function = self.program.function_of(step.function);
            function.is_some_and(|function| function.attributes.convergent)
        };
        let convergent = marked && self.path.iter().all(within);
        let mut frames = Some(Vec::new());
        let mut depth = 0;
        for step in self.path.iter().rev() {
            let control = self.controls.of(step.function);
            depth += control.map_or(0, |control| control.depth(step.block));
            let own = self.node(step).and_then(|(module, node)| {
                let metadata = &self.program.modules().get(module)?.metadata;
                chain(metadata, node)
            });
            frames = frames.zip(own).map(|(mut frames, own)| {
                frames.extend(own);
                frames
            });
        }
        let intrinsic: Arc<str> = intrinsic.into();
        self.sites.push(Site {
            key: frames.map(|frames| (intrinsic.clone(), frames)),
            intrinsic,
            place,
            depth,
            convergent,
            path: self.path.clone(),
        });
        Ok(())
    }

    /// The node of debug information at an instruction, with its module.
    fn node(&self, step: &Step) -> Option<(usize, u32)> {
        let Symbol::Function(module, _) = step.function else {
            return None;
        };
        let function = self.program.function_of(step.function)?;
        let block = function.blocks.get(step.block.0 as usize)?;
        Some((module, block.instructions.get(step.index)?.location?))
    }

    fn place(&self, step: &Step) -> Option<Place> {
        let (module, node) = self.node(step)?;
        self.program.place(module, Some(node))
    }
}

/// A place and those of the calls inlined around it; none if a line is not known.
fn chain(metadata: &HashMap<u32, Metadata>, node: u32) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next {
        let Some(Metadata::Location {
            line,
            column,
            scope,
            inlined_at,
        }) = metadata.get(&node)
        else {
            return None;
        };
        // Each leads outwards, so that there are no more than nodes.
        if *line == 0 || frames.len() > metadata.len() {
            return None;
        }
        frames.push(Frame {
            file: file(metadata, *scope)?.into(),
            line: *line,
            column: *column,
            function: function_name(metadata, *scope),
        });
        next = *inlined_at;
    }
    Some(frames)
}

/// The name of the function that a scope is in.
fn function_name(metadata: &HashMap<u32, Metadata>, scope: u32) -> Option<Arc<str>> {
    let mut next = Some(scope);
    for _ in 0..metadata.len() {
        match metadata.get(&next?)? {
            Metadata::Scope {
                subprogram: true,
                name,
                ..
            } => return name.clone(),
            Metadata::Scope { parent, .. } => next = *parent,
            _ => return None,
        }
    }
    None
}
