//! One function: its blocks, its values, and what is left out.
//!
//! Blocks are translated in an order in which definitions come before their uses (reverse post-order); those that
//! nothing reaches are not. Phis are the parameters of their block. A block that ends in a panic is a trap: what it
//! only computes for the panic's message is left out, unless the message is asked for.

use super::shape::{self, Scalar};
use super::{Translator, signature_of, variables};
use crate::error::{Error, Place, Problem};
use crate::link::{Panics, Symbol};
use crate::model::{
    Block, BlockId, Call, Callee, Function, Instruction, Local, Operand, Operation, Type, Value,
};
use crate::panics::{self, Reason};
use crate::visit;
use cranelift_codegen::ir::{
    self, AbiParam, BlockArg, ExtFuncData, ExternalName, InstBuilder, Signature, SourceLoc,
    StackSlot, TrapCode, UserFuncName, types,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Switch};
use cranelift_module::{DataId, FuncId, Module as _};
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// The values of CLIF that a value is.
pub type Parts = SmallVec<[ir::Value; 2]>;

/// What fails says why.
pub type Result<T> = std::result::Result<T, Problem>;

/// A function while it is translated.
pub struct Body<'t, 'p, 'f> {
    pub translator: &'t mut Translator<'p>,
    pub builder: FunctionBuilder<'f>,
    pub module: usize,
    pub function: &'p Function,
    values: Vec<Option<Parts>>,
    blocks: Vec<Option<ir::Block>>,
    pub callees: Vec<FuncId>,
    /// What was imported into the function, so that each thing is there once.
    pub imports: Imports,
    /// The block whose instructions are translated.
    current: BlockId,
    /// Values that are addresses of stack slots, with the slot that begins there.
    pub slots: HashMap<Local, Option<StackSlot>>,
    /// What records say of variables, if somebody wants to know.
    pub pending: Vec<variables::PendingAssignment>,
}

/// Functions and objects that a function names.
#[derive(Default)]
pub struct Imports {
    functions: HashMap<FuncId, ir::FuncRef>,
    /// Of the library and the backend, by name.
    named: HashMap<String, ir::FuncRef>,
    pub objects: HashMap<DataId, ir::GlobalValue>,
    pub shared: Option<ir::GlobalValue>,
}

/// A call that panics.
struct Panic<'p> {
    call: &'p Call,
    function: &'p Function,
    /// The function of the library that writes the message down, if it is asked for.
    writer: Option<Symbol>,
}

/// A function that only traps.
pub fn stub(name: &str, signature: Signature, reason: Reason) -> ir::Function {
    let mut func = ir::Function::with_name_signature(UserFuncName::testcase(name), signature);
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut func, &mut context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.ins().trap(trap_code(reason));
    builder.seal_all_blocks();
    func
}

/// `core::panicking` in symbols, mangled as version 0 does.
const PANICKING: &str = "4core9panicking";

/// The trap code of a reason.
pub fn trap_code(reason: Reason) -> TrapCode {
    TrapCode::unwrap_user(reason.code())
}

/// Translates a function with a body, and says which functions it names. Errors go to the translator's.
pub(super) fn translate<'p>(
    translator: &mut Translator<'p>,
    module: usize,
    function: &'p Function,
    name: &str,
    signature: Signature,
    place: Option<Place>,
) -> (ir::Function, Vec<FuncId>) {
    let mut func = ir::Function::with_name_signature(UserFuncName::testcase(name), signature);
    let mut context = FunctionBuilderContext::new();
    let builder = FunctionBuilder::new(&mut func, &mut context);
    let mut body = Body {
        translator,
        builder,
        module,
        function,
        values: vec![None; function.locals as usize],
        blocks: vec![None; function.blocks.len()],
        callees: Vec::new(),
        imports: Imports::default(),
        current: BlockId(0),
        slots: HashMap::new(),
        pending: Vec::new(),
    };
    body.blocks(place);
    let callees = std::mem::take(&mut body.callees);
    let pending = std::mem::take(&mut body.pending);
    body.builder.seal_all_blocks();
    if let Some(variables) = &mut translator.variables {
        variables.assign(translator.program, module, name, pending);
    }
    place_traps(&mut func);
    (func, callees)
}

/// Gives a branch to a block that does nothing but trap the trap's place: the two become one instruction at the branch,
/// and a fault is to name the panic's line.
fn place_traps(func: &mut ir::Function) {
    let blocks: Vec<ir::Block> = func.layout.blocks().collect();
    for block in blocks {
        let Some(branch) = func.layout.last_inst(block) else {
            continue;
        };
        let targets = func.dfg.insts[branch]
            .branch_destination(&func.dfg.jump_tables, &func.dfg.exception_tables);
        if targets.len() < 2 {
            continue;
        }
        let place = targets.iter().find_map(|target| {
            let trap = func
                .layout
                .first_inst(target.block(&func.dfg.value_lists))?;
            (func.dfg.insts[trap].opcode() == ir::Opcode::Trap).then(|| func.srcloc(trap))
        });
        if let Some(place) = place.filter(|place| !place.is_default()) {
            func.set_srcloc(branch, place);
        }
    }
}

impl<'p> Body<'_, 'p, '_> {
    fn blocks(&mut self, place: Option<Place>) {
        let order = reverse_post_order(&self.function.blocks);
        for id in &order {
            let block = self.builder.create_block();
            self.blocks[id.0 as usize] = Some(block);
        }
        if self.function.variadic {
            let message = format!("`{}` takes any number of arguments", self.function.spoken());
            self.error(place.clone(), Problem::Unsupported(message.into()));
        }
        for (index, id) in order.iter().enumerate() {
            let Some(block) = self.blocks[id.0 as usize] else {
                continue;
            };
            self.builder.switch_to_block(block);
            if index == 0 {
                self.parameters(block, place.clone());
            }
            self.current = *id;
            let function = self.function;
            self.block(&function.blocks[id.0 as usize], block, place.as_ref());
        }
    }

    fn parameters(&mut self, entry: ir::Block, place: Option<Place>) {
        self.builder.append_block_params_for_function_params(entry);
        let mut given = self.builder.block_params(entry).to_vec().into_iter();
        for parameter in &self.function.parameters {
            match shape::parts(&parameter.ty) {
                Ok(parts) => {
                    let values = given.by_ref().take(parts.len()).collect();
                    self.values[parameter.local.0 as usize] = Some(values);
                }
                Err(problem) => self.error(place.clone(), problem),
            }
        }
    }

    /// Notes what is wrong.
    fn error(&mut self, place: Option<Place>, problem: Problem) {
        let error = Error::new(place, problem);
        if !self.translator.errors.contains(&error) {
            self.translator.errors.push(error);
        }
    }

    fn block(&mut self, block: &'p Block, clif: ir::Block, of_function: Option<&Place>) {
        for instruction in &block.instructions {
            if let (Operation::Phi(_), Some(result)) = (&instruction.operation, instruction.result)
            {
                match shape::parts(&instruction.ty) {
                    Ok(parts) => {
                        let values = parts
                            .iter()
                            .map(|part| self.builder.append_block_param(clif, part.clif()));
                        self.values[result.0 as usize] = Some(values.collect());
                    }
                    Err(problem) => self.error(of_function.cloned(), problem),
                }
            }
        }
        let mut instructions = block.instructions.iter().enumerate();
        let panic = instructions.find_map(|(at, one)| Some((at, self.panicking(one)?)));
        let kept = match &panic {
            Some((at, panic)) if panic.writer.is_none() => {
                Some(needed(&block.instructions[..*at], &self.slots))
            }
            _ => None,
        };
        let follows = self.translator.variables.is_some();
        let mut records = block.records.iter().filter(|_| follows).peekable();
        for (index, instruction) in block.instructions.iter().enumerate() {
            while let Some(record) = records.next_if(|record| record.behind <= index) {
                self.record(record);
            }
            if kept.as_ref().and_then(|kept| kept.get(index)) == Some(&false) {
                continue;
            }
            let place = self
                .translator
                .program
                .place(self.module, instruction.location);
            let number = match &place {
                Some(place) => {
                    let scope = self.scope_of(instruction);
                    self.translator.locations.number(place, scope)
                }
                None => SourceLoc::default(),
            };
            self.builder.set_srcloc(number);
            let panics = panic.as_ref().filter(|(at, _)| *at == index);
            let translated = match panics {
                Some((_, panic)) => self.panic(panic, instruction),
                None => self.instruction(instruction),
            };
            if let Err(problem) = translated {
                self.error(place.or_else(|| of_function.cloned()), problem);
                // What comes behind would only complain about values that are missing.
                if !self.is_filled() {
                    self.builder.ins().trap(trap_code(Reason::Unreachable));
                }
                return;
            }
            if self.is_filled() {
                return;
            }
        }
        if !self.is_filled() {
            self.builder.ins().trap(trap_code(Reason::Unreachable));
        }
    }

    /// The scope of variables that an instruction is in; 0 if nobody wants to know.
    fn scope_of(&mut self, instruction: &Instruction) -> u32 {
        let Translator {
            program,
            variables,
            locations,
            ..
        } = &mut *self.translator;
        let table = variables.as_mut();
        table.map_or(0, |table| {
            table.scope(program, self.module, instruction.location, locations)
        })
    }

    /// Whether the current block has its terminator.
    fn is_filled(&self) -> bool {
        let block = self.builder.current_block();
        let last = block.and_then(|block| self.builder.func.layout.last_inst(block));
        last.is_some_and(|last| self.builder.func.dfg.insts[last].opcode().is_terminator())
    }

    /// The panic that an instruction is, if it is one: a call of a function that does not return and is the library's,
    /// or has no body. Generic ones of `core::panicking` have a body (`assert_failed`), in which a trap would lose the
    /// caller's place.
    fn panicking(&self, instruction: &'p Instruction) -> Option<Panic<'p>> {
        let Operation::Call(call) = &instruction.operation else {
            return None;
        };
        let Callee::Symbol(name) = &call.callee else {
            return None;
        };
        let program = self.translator.program;
        let of_core = name.contains(PANICKING);
        let defined = program.resolve(self.module, name);
        let of_library = |symbol: &Symbol| match symbol {
            Symbol::Function(module, _) => program.is_library(*module),
            Symbol::Variable(..) => false,
        };
        let of_panics = defined.map(|(symbol, _)| symbol);
        let of_panics = of_panics.filter(|symbol| of_core || of_library(symbol));
        if defined.is_some() && of_panics.is_none() || name.starts_with("llvm.") {
            return None;
        }
        let function = program.declaration(self.module, name)?;
        let no_return = function.attributes.no_return || call.attributes.no_return;
        // The library's other functions are what messages are made by, which do not allocate.
        let says = program.panics() == Panics::Message
            && (!program.is_library(self.module)
                || self.is_part_of_panic()
                || panics::reason(function) == Reason::Memory);
        no_return.then_some(Panic {
            call,
            function,
            writer: of_panics.filter(|_| says),
        })
    }

    /// Whether this is a function that does not return, of the library or a generic one of `core::panicking`: a part of
    /// what panics do.
    fn is_part_of_panic(&self) -> bool {
        let library = self.translator.program.is_library(self.module);
        let of_panics = library || self.function.name.contains(PANICKING);
        of_panics && self.function.attributes.no_return
    }

    /// A trap in place of a panic, at the place that the panic would name, behind the call that writes its message.
    fn panic(&mut self, panic: &Panic<'p>, instruction: &'p Instruction) -> Result<()> {
        let program = self.translator.program;
        if let Some(mut place) = panics::place(program, self.module, panic.call) {
            // What the panic says of itself lacks the calls that were inlined around it.
            let here = program.place(self.module, instruction.location);
            let same = here.iter().flat_map(Place::chain);
            // The panic or debug information may have the file as it is seen from where the compiler ran.
            let is_end = |whole: &str, end: &str| {
                let before = whole.strip_suffix(end);
                before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
            };
            let same_file =
                |of: &Place| is_end(&place.file, &of.file) || is_end(&of.file, &place.file);
            let mut same = same.filter(|of| same_file(of) && of.line == place.line);
            place.inlined_at = same.next().and_then(|of| of.inlined_at.clone());
            let scope = self.scope_of(instruction);
            let number = self.translator.locations.number(&place, scope);
            self.builder.set_srcloc(number);
        }
        if let Some(writer) = panic.writer {
            self.direct(panic.call, writer, &instruction.ty)?;
        }
        if self.is_part_of_panic() {
            let returned = shape::parts(&self.function.returns)?;
            let returned: Vec<ir::Value> =
                returned.into_iter().map(|of| self.bits(of, 0)).collect();
            self.builder.ins().return_(&returned);
        } else {
            let reason = panics::reason(panic.function);
            self.builder.ins().trap(trap_code(reason));
        }
        Ok(())
    }

    /// The parts of an operand.
    pub fn operand(&mut self, operand: &Operand) -> Result<Parts> {
        let parts = self.value(&operand.ty, &operand.value)?;
        self.checked(&operand.ty, parts)
    }

    /// Parts that are those of a type, which a text may say wrongly.
    fn checked(&self, ty: &Type, parts: Parts) -> Result<Parts> {
        let expected = shape::parts(ty)?;
        let types = parts.iter().map(|part| self.type_of(*part));
        match types.eq(expected.iter().map(|part| part.clif())) {
            true => Ok(parts),
            false => {
                let message = format!("a value that is used as {ty:?} and is none");
                Err(Problem::Inconsistent(message.into()))
            }
        }
    }

    /// The parts of a value of a type.
    pub fn value(&mut self, ty: &Type, value: &Value) -> Result<Parts> {
        match value {
            Value::Local(local) => {
                let known = self.values.get(local.0 as usize).and_then(Clone::clone);
                known.ok_or(Problem::NotTranslated)
            }
            Value::Constant(constant) => self.constant(ty, constant),
        }
    }

    /// The only part of an operand.
    pub fn single(&mut self, operand: &Operand) -> Result<ir::Value> {
        match self.operand(operand)?[..] {
            [value] => Ok(value),
            _ => {
                let message = format!("{:?} where a scalar is expected", operand.ty);
                Err(Problem::Inconsistent(message.into()))
            }
        }
    }

    /// Notes what an instruction gives.
    pub fn define(&mut self, instruction: &Instruction, parts: Parts) {
        if let Some(result) = instruction.result {
            self.values[result.0 as usize] = Some(parts);
        }
    }

    /// A function of the program, which is named from here on.
    pub fn reference(&mut self, id: FuncId) -> ir::FuncRef {
        if let Some(reference) = self.imports.functions.get(&id) {
            return *reference;
        }
        self.callees.push(id);
        let module = &mut self.translator.module;
        let reference = module.declare_func_in_func(id, self.builder.func);
        self.imports.functions.insert(id, reference);
        reference
    }

    /// A call of a function of the library, or of the backend's intrinsic, by name.
    pub fn call_named(
        &mut self,
        name: &str,
        operands: &[ir::Value],
        results: &[ir::Type],
    ) -> Parts {
        let reference = match self.imports.named.get(name) {
            Some(reference) => *reference,
            None => {
                let mut signature = self.translator.module.make_signature();
                let types = operands.iter().map(|operand| self.type_of(*operand));
                signature.params.extend(types.map(AbiParam::new));
                let results = results.iter().copied();
                signature.returns.extend(results.map(AbiParam::new));
                let signature = self.builder.import_signature(signature);
                let reference = self.builder.import_function(ExtFuncData {
                    name: ExternalName::testcase(name),
                    signature,
                    colocated: false,
                    patchable: false,
                });
                self.imports.named.insert(name.to_owned(), reference);
                reference
            }
        };
        let call = self.builder.ins().call(reference, operands);
        self.builder.inst_results(call).into()
    }

    /// The block of CLIF, and what its parameters are where control comes from `from`.
    fn edge(&mut self, from: BlockId, to: BlockId) -> Result<(ir::Block, Vec<BlockArg>)> {
        let missing = || Problem::Inconsistent("a block that was not translated".into());
        let block = self
            .blocks
            .get(to.0 as usize)
            .copied()
            .flatten()
            .ok_or_else(missing)?;
        let mut arguments = Vec::new();
        let function = self.function;
        for instruction in &function.blocks[to.0 as usize].instructions {
            let Operation::Phi(incoming) = &instruction.operation else {
                continue;
            };
            let value = incoming.iter().find(|(_, block)| *block == from);
            let missing = "a phi without a value for one of its edges";
            let (value, _) = value.ok_or(Problem::Inconsistent(missing.into()))?;
            let parts = self.value(&instruction.ty, value)?;
            let parts = self.checked(&instruction.ty, parts)?;
            arguments.extend(parts.into_iter().map(BlockArg::Value));
        }
        Ok((block, arguments))
    }

    /// An instruction that ends its block.
    pub fn terminator(&mut self, instruction: &'p Instruction) -> Result<()> {
        match &instruction.operation {
            Operation::Return(value) => {
                let parts = match value {
                    Some(value) => self.operand(value)?,
                    None => Parts::new(),
                };
                self.builder.ins().return_(&parts);
            }
            Operation::Unreachable => {
                self.builder.ins().trap(trap_code(Reason::Unreachable));
            }
            Operation::Jump(to) => {
                let from = self.current;
                let (block, arguments) = self.edge(from, *to)?;
                self.builder.ins().jump(block, &arguments);
            }
            Operation::Branch(condition, then, otherwise) => {
                let from = self.current;
                let condition = self.single(condition)?;
                let (then, then_arguments) = self.edge(from, *then)?;
                let (otherwise, other_arguments) = self.edge(from, *otherwise)?;
                let ins = self.builder.ins();
                ins.brif(
                    condition,
                    then,
                    &then_arguments,
                    otherwise,
                    &other_arguments,
                );
            }
            Operation::Switch { on, default, cases } => {
                let from = self.current;
                self.switch(from, on, *default, cases)?;
            }
            other => {
                let message = format!("{other:?} is no terminator");
                return Err(Problem::Inconsistent(message.into()));
            }
        }
        Ok(())
    }

    fn switch(
        &mut self,
        from: BlockId,
        on: &Operand,
        default: BlockId,
        cases: &[(u128, BlockId)],
    ) -> Result<()> {
        let Scalar::Int(bits) = Scalar::of(&on.ty)? else {
            let message = "a switch on something else than an integer";
            return Err(Problem::Inconsistent(message.into()));
        };
        let value = self.single(on)?;
        let mut cases = cases.to_vec();
        let mut default = default;
        // Where the default cannot be reached, the last case needs no comparison.
        if self.is_unreachable(default)
            && let Some((_, last)) = cases.pop()
        {
            default = last;
            cases.retain(|(_, to)| *to != last);
        }
        let mut switch = Switch::new();
        let mut edges = Vec::new();
        for (case, to) in &cases {
            let block = self.landing(from, *to, &mut edges)?;
            let case = case & crate::data::mask(bits);
            if switch.entries().contains_key(&case) {
                let message = format!("two cases of a switch are {case}");
                return Err(Problem::Inconsistent(message.into()));
            }
            switch.set_entry(case, block);
        }
        let default = self.landing(from, default, &mut edges)?;
        // The helper compares values of 8 bits and more as they are.
        let value = match bits {
            65.. => value,
            _ if self.builder.func.dfg.value_type(value).bits() < 32 => {
                self.builder.ins().uextend(types::I32, value)
            }
            _ => value,
        };
        switch.emit(&mut self.builder, value, default);
        for (edge, to, arguments) in edges {
            self.builder.switch_to_block(edge);
            self.builder.ins().jump(to, &arguments);
        }
        Ok(())
    }

    /// A block without parameters that leads to `to`: itself, or one that passes its parameters on, which `edges` gets.
    fn landing(
        &mut self,
        from: BlockId,
        to: BlockId,
        edges: &mut Vec<(ir::Block, ir::Block, Vec<BlockArg>)>,
    ) -> Result<ir::Block> {
        let (block, arguments) = self.edge(from, to)?;
        if arguments.is_empty() {
            return Ok(block);
        }
        let known = edges.iter().find(|(_, target, _)| *target == block);
        if let Some((edge, ..)) = known {
            return Ok(*edge);
        }
        let edge = self.builder.create_block();
        edges.push((edge, block, arguments));
        Ok(edge)
    }

    /// Whether a block does nothing but never being reached.
    fn is_unreachable(&self, block: BlockId) -> bool {
        let instructions = &self.function.blocks[block.0 as usize].instructions;
        matches!(instructions.first(), Some(first) if first.operation == Operation::Unreachable)
    }

    /// The signature of a call by the types that it hands over.
    pub fn call_signature(&self, call: &Call, returns: &Type) -> Result<Signature> {
        signature_of(call.arguments.iter().map(|argument| &argument.ty), returns)
    }

    /// What a symbol means here.
    pub(super) fn target(&mut self, name: &Arc<str>) -> Result<super::Target> {
        self.translator.target(self.module, name)
    }
}

/// Which of the instructions before a panic are needed: what others can see, and what that needs. Stores to the
/// function's own slots are for the message alone, unless something that is needed may read them.
fn needed(instructions: &[Instruction], slots: &HashMap<Local, Option<StackSlot>>) -> Vec<bool> {
    let mut own: HashSet<Local> = slots.keys().copied().collect();
    for instruction in instructions {
        if let (Operation::Address(address), Some(result)) =
            (&instruction.operation, instruction.result)
            && matches!(address.base.value, Value::Local(base) if own.contains(&base))
        {
            own.insert(result);
        }
    }
    let kept = needed_beside(instructions, &own);
    let mut needed = instructions.iter().zip(&kept).filter(|(_, kept)| **kept);
    let may_read = needed.any(|(instruction, _)| {
        matches!(
            instruction.operation,
            Operation::Call(_) | Operation::Load(..) | Operation::Update { .. }
        )
    });
    if may_read {
        return needed_beside(instructions, &HashSet::new());
    }
    kept
}

/// Which instructions are needed if nobody reads what `own` points to.
fn needed_beside(instructions: &[Instruction], own: &HashSet<Local>) -> Vec<bool> {
    let is_own = |operand: &Operand| matches!(operand.value, Value::Local(of) if own.contains(&of));
    let mut used: HashSet<Local> = HashSet::new();
    let mut kept = vec![false; instructions.len()];
    for (index, instruction) in instructions.iter().enumerate().rev() {
        let seen = match &instruction.operation {
            Operation::Store { address, .. } => !is_own(address),
            Operation::Call(call) => match &call.callee {
                Callee::Symbol(name) if name.starts_with("llvm.lifetime") => false,
                Callee::Symbol(name) if name.starts_with("llvm.mem") => {
                    !call.arguments.first().is_some_and(is_own)
                }
                _ => true,
            },
            Operation::Fence(_)
            | Operation::CompareExchange { .. }
            | Operation::Update { .. }
            | Operation::Phi(_)
            | Operation::Unsupported(_) => true,
            Operation::Load(_, access) => access.volatile,
            _ => false,
        };
        kept[index] = seen
            || instruction
                .result
                .is_some_and(|result| used.contains(&result));
        if kept[index] && !matches!(instruction.operation, Operation::Phi(_)) {
            visit::values(instruction, &mut |value| {
                if let Value::Local(local) = value {
                    used.insert(*local);
                }
            });
        }
    }
    kept
}

/// Blocks that control reaches, each behind those that dominate it.
pub fn reverse_post_order(blocks: &[Block]) -> Vec<BlockId> {
    let (mut order, mut seen) = (Vec::new(), vec![false; blocks.len()]);
    let mut stack = Vec::new();
    if let Some(seen) = seen.first_mut() {
        *seen = true;
        stack.push((BlockId(0), blocks[0].successors()));
    }
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) => {
                let index = next.0 as usize;
                if let Some(seen) = seen.get_mut(index).filter(|seen| !**seen) {
                    *seen = true;
                    stack.push((next, blocks[index].successors()));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
