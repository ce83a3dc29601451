//! CubeCL's IR, after its own passes, as a function of CLIF.
//!
//! What comes in is one kernel: a function of structured control flow (`branch.if`, `branch.while`, …) whose values are
//! in SSA form and whose variables are `memory.declare_variable`. Every value becomes a list of CLIF values, its lanes
//! ([`types`]); every block of a branch becomes blocks; variables that are only loaded and stored whole become
//! variables of `FunctionBuilder`, which makes them SSA values, all others stack slots.
//!
//! Operations are told apart by their names, one file for each family. Those that are in none are refused by name.

mod arithmetic;
mod atomic;
mod bits;
mod builtins;
mod cast;
mod compare;
mod control;
mod float;
mod general;
mod mathematics;
mod memory;
mod metadata;
mod pairs;
mod plane;
mod types;
mod vector;

use crate::arguments::Arguments;
use crate::error::{Result, invalid, unsupported};
use cranelift_codegen::ir::{self, InstBuilder, Type};
use cranelift_frontend::FunctionBuilder;
use cranelift_thisgpu::build;
use cubecl_core::ir::{
    attributes::{ATTR_BUFFER_BINDING, BufferBindingAttr, FuncInterface},
    dialect::OperationPtrExt,
    metadata::Info,
    settings::{Dim3, ExecutionMode, KernelSettings},
};
use hashbrown::HashMap;
use pliron::basic_block::BasicBlock;
use pliron::builtin::op_interfaces::SymbolOpInterface;
use pliron::builtin::ops::FuncOp;
use pliron::context::{Context, Ptr};
use pliron::operation::Operation;
use pliron::printable::Printable;
use pliron::r#type::{TypeHandle, Typed};
use pliron::value::Value;
use types::Scalar;

/// The lanes of a value.
type Lanes = Vec<ir::Value>;

/// A translated kernel.
pub struct Translation {
    /// The function.
    pub function: ir::Function,
    /// What a launch passes to it.
    pub arguments: Arguments,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
    /// The kernel's operations, in the order of the text; the number of each, from 1, is the line that the function's
    /// instructions are said to come from.
    pub listing: Vec<String>,
}

/// Translates the kernel `entry`, whose symbol becomes `name`.
pub fn translate(
    context: &Context,
    entry: FuncOp,
    name: &str,
    info: &Info,
    settings: &KernelSettings,
) -> Result<Translation> {
    let block = entry.get_entry_block(context);
    let parameters: Vec<Value> = block.deref(context).arguments().collect();
    let mut buffers = Vec::new();
    for (index, _) in parameters.iter().enumerate() {
        let binding = entry.get_arg_attr::<BufferBindingAttr>(context, index, &ATTR_BUFFER_BINDING);
        match binding {
            Some(binding) => buffers.push(binding.buffer_pos),
            None => return Err(unsupported("a parameter of a kernel that is no buffer")),
        }
    }
    let arguments = Arguments::new(buffers, info)?;
    let types = arguments.types();
    let mut outcome = Ok((0, Vec::new()));
    let function = build::function(name, &types, &[], |builder, values| {
        let mut translator = Translator {
            context,
            builder,
            info,
            arguments: &arguments,
            values: HashMap::new(),
            variables: HashMap::new(),
            parameters: values.to_vec(),
            halves: HashMap::new(),
            buffers: HashMap::new(),
            shared_bytes: 0,
            listing: Vec::new(),
            cube_dim: settings.cube_dim,
            mode: settings.execution_mode,
        };
        outcome = translator
            .kernel(&parameters, block)
            .map(|()| (translator.shared_bytes, translator.listing));
    });
    let (shared_bytes, listing) = outcome?;
    Ok(Translation {
        function,
        shared_bytes,
        listing,
        arguments,
    })
}

/// The name of a kernel as a symbol: what CubeCL calls it, of letters that CLIF's names have.
pub fn symbol(entry: FuncOp, context: &Context) -> String {
    let name = entry.get_symbol_name(context).to_string();
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(letter).collect()
}

/// A kernel that is being translated.
struct Translator<'a, 'b, 'f> {
    context: &'a Context,
    builder: &'b mut FunctionBuilder<'f>,
    info: &'a Info,
    arguments: &'a Arguments,
    values: HashMap<Value, Lanes>,
    /// Of pointers to variables that are SSA values: those.
    variables: HashMap<Value, memory::Variables>,
    /// The function's own parameters.
    parameters: Lanes,
    /// Of lanes that are a half of a pair: the pair, and which half.
    halves: HashMap<ir::Value, (ir::Value, u8)>,
    /// The numbers of the buffers whose addresses the parameters of the kernel are.
    buffers: HashMap<Value, usize>,
    shared_bytes: u32,
    listing: Vec<String>,
    cube_dim: Dim3,
    mode: ExecutionMode,
}

impl Translator<'_, '_, '_> {
    fn kernel(&mut self, buffers: &[Value], block: Ptr<BasicBlock>) -> Result<()> {
        for (index, &buffer) in buffers.iter().enumerate() {
            scalar_of(self.context, buffer)?;
            let address = self.parameters[index];
            self.values.insert(buffer, vec![address]);
            self.buffers.insert(buffer, self.arguments.buffers[index]);
        }
        self.block(block)?;
        Ok(())
    }

    /// Writes an operation down, as the place that what is made of it comes from. CubeCL's IR has no places in Rust's
    /// text.
    fn list(&mut self, op: Ptr<Operation>) {
        let owns_blocks = op.deref(self.context).num_regions() > 0;
        self.listing.push(match owns_blocks {
            true => Operation::get_opid(op, self.context).to_string(),
            false => op.disp(self.context).to_string(),
        });
        let line = ir::SourceLoc::new(self.listing.len() as u32);
        self.builder.set_srcloc(line);
    }

    /// Any operation but the end of a block.
    fn operation(&mut self, op: Ptr<Operation>) -> Result<()> {
        let id = Operation::get_opid(op, self.context);
        let (dialect, name) = (id.dialect.to_string(), id.name.to_string());
        let known = match dialect.as_str() {
            "builtin" => self.constant(op, &name)?,
            "cube" => {
                self.builtin(op, &name)? || self.metadata(op, &name)? || self.general(op, &name)?
            }
            "math" => {
                self.packed(op, &name)?
                    || self.arithmetic(op, &name)?
                    || self.float(op, &name)?
                    || self.library(op, &name)?
            }
            "bitwise" => self.bits(op, &name)?,
            "cmp" => self.compare(op, &name)?,
            "memory" => self.memory(op, &name)?,
            "composite" | "vector" => self.vector(op, &name)?,
            "plane" => self.plane(op, &name)?,
            "atomic" => self.atomic(op, &name)?,
            "sync" => self.synchronise(op, &name)?,
            "branch" => self.branch(op, &name)?,
            _ => false,
        };
        if known {
            Ok(())
        } else {
            Err(unsupported(format!("{dialect}.{name}")))
        }
    }

    /// The lanes of a value.
    fn lanes(&self, value: Value) -> Result<Lanes> {
        match self.values.get(&value) {
            Some(lanes) => Ok(lanes.clone()),
            None if self.variables.contains_key(&value) => {
                Err(unsupported("the address of a variable as a value"))
            }
            None => Err(invalid("a value is used before it is defined")),
        }
    }

    /// The lanes of an operand.
    fn operand(&self, op: Ptr<Operation>, index: usize) -> Result<Lanes> {
        self.lanes(op.operand(self.context, index))
    }

    /// The only lane of an operand.
    fn single(&self, op: Ptr<Operation>, index: usize) -> Result<ir::Value> {
        match self.operand(op, index)?[..] {
            [lane] => Ok(lane),
            _ => Err(invalid("a vector where a single value is expected")),
        }
    }

    /// What the lanes of an operand are.
    fn operand_scalar(&self, op: Ptr<Operation>, index: usize) -> Result<Scalar> {
        scalar_of(self.context, op.operand(self.context, index))
    }

    /// The type of the operation's result.
    fn result_type(&self, op: Ptr<Operation>) -> TypeHandle {
        op.result(self.context).get_type(self.context)
    }

    /// What the lanes of the result are.
    fn result_scalar(&self, op: Ptr<Operation>) -> Result<Scalar> {
        scalar_of(self.context, op.result(self.context))
    }

    /// What the lanes of the result are, one by one.
    fn result_lanes(&self, op: Ptr<Operation>) -> Result<Vec<Scalar>> {
        types::lanes(self.context, self.result_type(op))
    }

    /// Says what the operation's result is.
    fn define(&mut self, op: Ptr<Operation>, lanes: Lanes) {
        self.values.insert(op.result(self.context), lanes);
    }

    /// Defines the result lane by lane: `lane` gets the operands' lanes, of which those with one stand for all, and
    /// what the lanes of the first are.
    fn map<const N: usize>(
        &mut self,
        op: Ptr<Operation>,
        mut lane: impl FnMut(&mut Self, [ir::Value; N], Scalar) -> Result<ir::Value>,
    ) -> Result<bool> {
        let scalar = self.operand_scalar(op, 0)?;
        let mut operands = Vec::with_capacity(N);
        for index in 0..N {
            operands.push(self.operand(op, index)?);
        }
        let count = operands.iter().map(Vec::len).max().unwrap_or(1);
        let mut result = Vec::with_capacity(count);
        for index in 0..count {
            let mut picked = [operands[0][0]; N];
            for (picked, lanes) in picked.iter_mut().zip(&operands) {
                *picked = match lanes[..] {
                    [only] => only,
                    _ => *(lanes.get(index))
                        .ok_or_else(|| invalid("vectors of different widths in one operation"))?,
                };
            }
            result.push(lane(self, picked, scalar)?);
        }
        self.define(op, result);
        Ok(true)
    }

    /// An integer constant, whose bits above the type do not count.
    fn integer(&mut self, ty: Type, value: i64) -> ir::Value {
        let bits = ty.bits().min(64);
        let shift = 64 - bits;
        // CLIF wants the sign extended of no bits above the type.
        let value = ((value << shift) as u64 >> shift) as i64;
        self.builder.ins().iconst(ty, value)
    }

    /// An integer without sign as another of this type: zeros in front, or cut.
    fn resize(&mut self, value: ir::Value, ty: Type) -> ir::Value {
        let from = self.builder.func.dfg.value_type(value);
        match from.bits().cmp(&ty.bits()) {
            std::cmp::Ordering::Less => self.builder.ins().uextend(ty, value),
            std::cmp::Ordering::Equal => value,
            std::cmp::Ordering::Greater => self.builder.ins().ireduce(ty, value),
        }
    }

    /// The pattern of a lane as an integer of its size.
    fn pattern(&mut self, value: ir::Value, scalar: Scalar) -> ir::Value {
        self.bitcast(value, scalar.pattern())
    }

    /// The same bits as another type of the same size.
    fn bitcast(&mut self, value: ir::Value, ty: Type) -> ir::Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        // Lane 0 of a pair is its lower half.
        let flags = ir::MemFlagsData::new().with_endianness(ir::Endianness::Little);
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// Zero of a lane.
    fn zero(&mut self, scalar: Scalar) -> ir::Value {
        let zero = self.integer(scalar.pattern(), 0);
        self.bitcast(zero, scalar.clif())
    }
}

/// What the lanes of a value are, which are all alike.
fn scalar_of(context: &Context, value: Value) -> Result<Scalar> {
    let lanes = types::lanes(context, value.get_type(context))?;
    match lanes[..] {
        [first, ..] => Ok(first),
        [] => Err(unsupported("a value of no bytes")),
    }
}
