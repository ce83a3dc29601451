//! Variables, shared memory, elements of arrays, loads and stores.
//!
//! CubeCL promises that a vector in memory lies at a multiple of its size. Its lanes are single accesses with that
//! promise in front of them, which the compiler joins to the widest that the machine has.

use super::metadata::required;
use super::pairs::pairs_of;
use super::types::{self, Scalar, Space};
use super::{Lanes, Result, Translator, invalid, unsupported};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    self, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, TrapCode,
};
use cranelift_frontend::Variable;
use cranelift_thisgpu::build::GpuBuilder;
use cubecl_core::ir::{
    AddressSpace,
    dialect::{
        OperationPtrExt,
        base::ptr_value_ty,
        memory::{CopyOp, DeclareVariableOp, IndexOp},
    },
    interfaces::TypedExt,
    settings::ExecutionMode,
    types::ArrayType,
};
use cubecl_opt::passes::alloc_shared_memory::{AllocSharedOp, SliceSharedOp};
use pliron::attribute::Attribute;
use pliron::context::Ptr;
use pliron::operation::Operation;
use pliron::r#type::{TypeHandle, Typed};
use pliron::value::Value;

/// The trap of an index behind the end, of a kernel that validates its indices.
const OUT_OF_BOUNDS: TrapCode = TrapCode::unwrap_user(2);

/// The largest alignment of a stack slot, as a power of two, and of an access.
const LARGEST_ALIGNMENT: u32 = 16;

/// Bytes of an array that are written one access behind the other; those of a longer one in a loop (*assumed*).
const LONGEST_STRAIGHT: u64 = 512;

/// Bytes that a turn of that loop writes, if an element is not larger (*assumed*).
const TURN_BYTES: u64 = 64;

/// The variables of `FunctionBuilder` that a variable of the kernel is.
#[derive(Clone, Debug)]
pub(super) struct Variables {
    values: Vec<Variable>,
    /// The type of two lanes, if each variable holds two.
    pair: Option<ir::Type>,
}

/// A value in memory.
struct Places {
    /// Where it begins, with the promise of how that is aligned.
    address: ir::Value,
    /// A power of two that the address is a multiple of.
    alignment: u32,
    /// Its lanes, and their offsets.
    lanes: Vec<(Scalar, i32)>,
}

impl Places {
    /// The type of pairs and their offsets, where the lanes are whole pairs that lie as such.
    fn pairs(&self) -> Option<(ir::Type, impl Iterator<Item = i32> + use<>)> {
        let lanes: Vec<_> = self.lanes.iter().map(|(lane, _)| *lane).collect();
        let pair = pairs_of(&lanes).filter(|pair| self.alignment >= pair.bytes())?;
        let count = lanes.len() as i32 / 2;
        let offsets = (0..count).map(move |index| index * pair.bytes() as i32);
        Some((pair, offsets))
    }
}

impl Translator<'_, '_, '_> {
    /// The `memory` dialect.
    pub(super) fn memory(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        match name {
            "declare_variable" => self.declare(op)?,
            "index" => self.index(op)?,
            "load" => {
                let lanes = self.load_from(op.operand(self.context, 0))?;
                self.define(op, lanes);
            }
            "store" => {
                let lanes = self.operand(op, 1)?;
                self.store_to(op.operand(self.context, 0), &lanes)?;
            }
            "copy" => self.copy(op)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `cube.alloc_shared` and `cube.slice_shared`, which CubeCL's pass makes of the declarations of shared memory.
    pub(super) fn shared(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        let address = match name {
            "alloc_shared" => {
                let block = required(op.as_op::<AllocSharedOp>(self.context))?;
                let bytes = block.size(self.context).0;
                self.shared_bytes = u32::try_from(bytes)
                    .map_err(|_| unsupported(format!("{bytes} bytes of shared memory")))?;
                self.builder.shared_memory(I32)
            }
            "slice_shared" => {
                let slice = required(op.as_op::<SliceSharedOp>(self.context))?;
                let offset = slice.offset(self.context).0 as i64;
                let block = self.single(op, 0)?;
                self.builder.ins().iadd_imm_u(block, offset)
            }
            _ => return Ok(false),
        };
        self.define(op, vec![address]);
        Ok(true)
    }

    fn declare(&mut self, op: Ptr<Operation>) -> Result<()> {
        let context = self.context;
        let variable = required(op.as_op::<DeclareVariableOp>(context))?;
        if variable.addr_space(context).0 != AddressSpace::Local {
            return Err(unsupported("a variable that is neither local nor shared"));
        }
        let ty = variable.value_ty(context).get_type(context);
        let pointer = op.result(context);
        let initializer = variable.initializer(context);
        let is_whole = pointer.uses(context).iter().all(|used| {
            let user = used.user_op();
            let name = Operation::get_opid(user, context).to_string();
            let place = used.find_index(context);
            matches!((name.as_str(), place), ("memory.load" | "memory.store", 0))
        });
        if is_whole {
            let lanes = types::lanes(context, ty)?;
            let pair = pairs_of(&lanes);
            let types: Vec<_> = match pair {
                Some(pair) => vec![pair; lanes.len() / 2],
                None => lanes.iter().map(|lane| lane.clif()).collect(),
            };
            let variables = types.iter().map(|&ty| self.builder.declare_var(ty));
            let variables = Variables {
                values: variables.collect(),
                pair,
            };
            let initial = match initializer {
                Some(value) => self.constant_lanes(&**value, ty)?,
                // So that every path has a value, where the kernel itself sees to that.
                None => lanes.iter().map(|&lane| self.zero(lane)).collect(),
            };
            self.assign(&variables, &initial);
            self.variables.insert(pointer, variables);
            return Ok(());
        }
        let alignment = u32::try_from(variable.alignment(context).0).unwrap_or(LARGEST_ALIGNMENT);
        let alignment = alignment.clamp(1, LARGEST_ALIGNMENT).ilog2() as u8;
        let data = StackSlotData::new(
            StackSlotKind::ExplicitSlot,
            types::bytes(context, ty),
            alignment,
        );
        let slot = self.builder.create_sized_stack_slot(data);
        let address = self.builder.ins().stack_addr(I64, slot, 0);
        self.values.insert(pointer, vec![address]);
        match initializer {
            Some(value) => self.initialize(address, ty, &**value),
            None => Ok(()),
        }
    }

    /// Writes the value that a variable in memory begins with, which stands in all elements of an array.
    fn initialize(
        &mut self,
        address: ir::Value,
        ty: TypeHandle,
        value: &dyn Attribute,
    ) -> Result<()> {
        let context = self.context;
        let array = ty.deref(context).downcast_ref::<ArrayType>().copied();
        let (element, length) = match array {
            Some(array) => (array.inner, array.length as u64),
            None => (ty, 1),
        };
        let stride = types::bytes(context, element);
        if length * u64::from(stride) <= LONGEST_STRAIGHT {
            let lanes = self.constant_lanes(value, ty)?;
            return self.store_at(address, ty, &lanes);
        }
        // A loop over as many elements in a turn, and what is left in front of it.
        let turn = (TURN_BYTES / u64::from(stride)).max(1);
        let lanes = self.constant_lanes(value, element)?;
        let left = length % turn;
        for index in 0..left {
            let place = self.offset(address, index, stride);
            self.store_at(place, element, &lanes)?;
        }
        let [body, behind] = [(); 2].map(|()| self.builder.create_block());
        let (bytes, step) = (length * u64::from(stride), turn * u64::from(stride));
        let first = self.integer(I64, (left * u64::from(stride)) as i64);
        let offset = self.builder.append_block_param(body, I64);
        self.builder.ins().jump(body, &[first.into()]);
        self.builder.switch_to_block(body);
        let place = self.builder.ins().iadd(address, offset);
        for index in 0..turn {
            let place = self.offset(place, index, stride);
            self.store_at(place, element, &lanes)?;
        }
        let next = self.builder.ins().iadd_imm_u(offset, step as i64);
        let bytes = self.integer(I64, bytes as i64);
        let goes_on = (self.builder.ins()).icmp(IntCC::UnsignedLessThan, next, bytes);
        (self.builder.ins()).brif(goes_on, body, &[next.into()], behind, &[]);
        self.builder.switch_to_block(behind);
        Ok(())
    }

    fn index(&mut self, op: Ptr<Operation>) -> Result<()> {
        let context = self.context;
        let (base, mut index) = (self.single(op, 0)?, self.single(op, 1)?);
        let element = types::pointee(context, self.result_type(op))?;
        let is_checked = required(op.as_op::<IndexOp>(context))?.checked(context);
        if is_checked && let Some(length) = self.length(op.operand(context, 0))? {
            index = self.checked(index, length);
        }
        let place = self.place(base, index, types::bytes(self.context, element));
        self.define(op, vec![place]);
        Ok(())
    }

    /// How many elements an array has that an index must stay in: those of a whole buffer. An array of the kernel's own
    /// has as many as its text says, and is looked at only where indices are to be validated, as CubeCL does it.
    fn length(&mut self, base: Value) -> Result<Option<ir::Value>> {
        if self.mode == ExecutionMode::Unchecked {
            return Ok(None);
        }
        let context = self.context;
        let pointee = types::pointee(context, base.get_type(context))?;
        if let Some(array) = pointee.deref(context).downcast_ref::<ArrayType>() {
            if self.mode == ExecutionMode::Checked {
                return Ok(None);
            }
            let index = types::index(context);
            return Ok(Some(self.integer(index.clif(), array.length as i64)));
        }
        match self.buffers.get(&base) {
            Some(&buffer) => self.buffer_length(buffer).map(Some),
            None => Ok(None),
        }
    }

    /// An index that is in an array of this length: a larger one becomes the last, or ends the kernel where it is to be
    /// found out.
    fn checked(&mut self, index: ir::Value, length: ir::Value) -> ir::Value {
        if self.mode == ExecutionMode::Validate {
            let inside = (self.builder.ins()).icmp(IntCC::UnsignedLessThan, index, length);
            self.builder.ins().trapz(inside, OUT_OF_BOUNDS);
            return index;
        }
        let last = self.builder.ins().iadd_imm_s(length, -1);
        self.builder.ins().umin(index, last)
    }

    /// The address of an element, whose index has no sign.
    pub(super) fn place(&mut self, base: ir::Value, index: ir::Value, bytes: u32) -> ir::Value {
        let address = self.builder.func.dfg.value_type(base);
        let index = self.resize(index, address);
        let offset = self.builder.ins().imul_imm_u(index, i64::from(bytes));
        self.builder.ins().iadd(base, offset)
    }

    fn copy(&mut self, op: Ptr<Operation>) -> Result<()> {
        let context = self.context;
        let copy = required(op.as_op::<CopyOp>(context))?;
        let (source, destination) = (op.operand(context, 0), op.operand(context, 1));
        let ty = ptr_value_ty(context, &source);
        let (from, to) = (self.single(op, 0)?, self.single(op, 1)?);
        let bytes = types::bytes(context, ty);
        // All are read before any is written.
        let mut elements = Vec::new();
        for element in 0..copy.len(context).0 {
            let place = self.offset(from, element as u64, bytes);
            elements.push(self.load_at(place, ty)?);
        }
        let ty = ptr_value_ty(context, &destination);
        for (element, lanes) in elements.iter().enumerate() {
            let place = self.offset(to, element as u64, bytes);
            self.store_at(place, ty, lanes)?;
        }
        Ok(())
    }

    fn offset(&mut self, base: ir::Value, element: u64, bytes: u32) -> ir::Value {
        let offset = element as i64 * i64::from(bytes);
        self.builder.ins().iadd_imm_u(base, offset)
    }

    /// What a pointer points to.
    pub(super) fn load_from(&mut self, pointer: Value) -> Result<Lanes> {
        if let Some(variables) = self.variables.get(&pointer).cloned() {
            let values = variables.values.iter();
            let values: Lanes = values.map(|v| self.builder.use_var(*v)).collect();
            return Ok(match variables.pair {
                Some(_) => self.unpaired(&values),
                None => values,
            });
        }
        let ty = ptr_value_ty(self.context, &pointer);
        let address = self.address(pointer)?;
        self.load_at(address, ty)
    }

    /// The address that a pointer is.
    pub(super) fn address(&self, pointer: Value) -> Result<ir::Value> {
        match self.lanes(pointer)?[..] {
            [address, ..] => Ok(address),
            [] => Err(invalid("a pointer of no bytes")),
        }
    }

    fn assign(&mut self, variables: &Variables, lanes: &[ir::Value]) {
        let values = match variables.pair {
            Some(pair) => self.paired(lanes, pair),
            None => lanes.to_vec(),
        };
        for (variable, value) in variables.values.iter().zip(values) {
            self.builder.def_var(*variable, value);
        }
    }

    fn store_to(&mut self, pointer: Value, lanes: &[ir::Value]) -> Result<()> {
        if let Some(variables) = self.variables.get(&pointer).cloned() {
            self.assign(&variables, lanes);
            return Ok(());
        }
        let ty = ptr_value_ty(self.context, &pointer);
        let address = self.address(pointer)?;
        self.store_at(address, ty, lanes)
    }

    /// The lanes of a type with their offsets, and the address with the promise of how it is aligned.
    fn places(&mut self, address: ir::Value, ty: TypeHandle) -> Result<Places> {
        let lanes = types::lanes(self.context, ty)?;
        let mut offset = 0;
        let places: Vec<_> = (lanes.iter())
            .map(|&lane| {
                let place = offset;
                offset += lane.bytes() as i32;
                (lane, place)
            })
            .collect();
        if offset as u32 > types::bytes(self.context, ty) {
            return Err(unsupported("a value in memory that is not its lanes"));
        }
        if lanes
            .iter()
            .any(|lane| matches!(lane, Scalar::Pointer(Space::Shared)))
        {
            return Err(unsupported("pointers in memory"));
        }
        let alignment = ty.align(self.context) as u32;
        let alignment = 1 << alignment.trailing_zeros().min(LARGEST_ALIGNMENT.ilog2());
        let is_wide = self.builder.func.dfg.value_type(address) == I64;
        let promised = if lanes.len() > 1 && is_wide && alignment > lanes[0].bytes() {
            let alignment = self.integer(I32, i64::from(alignment));
            self.builder
                .intrinsic("gpu_assume_aligned", &[address, alignment])
        } else {
            address
        };
        Ok(Places {
            address: promised,
            alignment,
            lanes: places,
        })
    }

    fn load_at(&mut self, address: ir::Value, ty: TypeHandle) -> Result<Lanes> {
        let places = self.places(address, ty)?;
        let address = places.address;
        let flags = MemFlagsData::new().with_aligned();
        if let Some((pair, offsets)) = places.pairs() {
            let pairs =
                offsets.map(|offset| (self.builder.ins()).load(pair, flags, address, offset));
            let pairs: Lanes = pairs.collect();
            return Ok(self.unpaired(&pairs));
        }
        let lanes = places
            .lanes
            .into_iter()
            .map(|(lane, offset)| self.builder.ins().load(lane.clif(), flags, address, offset));
        Ok(lanes.collect())
    }

    fn store_at(&mut self, address: ir::Value, ty: TypeHandle, lanes: &[ir::Value]) -> Result<()> {
        let places = self.places(address, ty)?;
        let address = places.address;
        let flags = MemFlagsData::new().with_aligned();
        if let Some((pair, offsets)) = places.pairs() {
            let pairs = self.paired(lanes, pair);
            for (offset, pair) in offsets.zip(pairs) {
                self.builder.ins().store(flags, pair, address, offset);
            }
            return Ok(());
        }
        for ((_, offset), &lane) in places.lanes.into_iter().zip(lanes) {
            self.builder.ins().store(flags, lane, address, offset);
        }
        Ok(())
    }
}
