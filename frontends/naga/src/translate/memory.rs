//! Loads and stores, whole values in memory, copies and zeros.
//!
//! WGSL, GLSL and SPIR-V lay every scalar out at a multiple of its size, and a launch binds buffers at multiples of the
//! widest access, so every access is marked as aligned. Padding is never written: other values may lie in it.

use super::types::{Leaf, Ty};
use super::values::{Lanes, MOST_LANES};
use super::{Result, Translator};
use crate::error::unsupported;
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F16, F32, F64, I16, I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, StackSlotData, StackSlotKind};
use hashbrown::HashMap;
use naga::{Span, TypeInner};

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// The thread's own.
    Own,
    /// The workgroup's.
    Workgroup,
    /// A buffer, by its number in the interface.
    Buffer {
        number: usize,
        /// Whether the shader only reads it, and nobody else writes it meanwhile.
        readonly: bool,
        /// Whether each scalar is a relaxed atomic: `@coherent` and `@volatile`.
        relaxed: bool,
    },
    /// The immediates of the launch.
    Immediates,
    /// What comes with the code.
    Constants,
}

/// An address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    /// An i32 in workgroup memory, otherwise an i64.
    pub base: ir::Value,
    /// Bytes behind `base`, at most `i32::MAX`.
    pub offset: u32,
    pub space: Space,
    /// Accesses happen only where this is not 0.
    pub inside: Option<ir::Value>,
}

impl Address {
    /// So many bytes behind.
    pub(super) fn plus(mut self, bytes: u32) -> Result<Address> {
        let sum = self.offset.checked_add(bytes);
        let sum = sum.filter(|&sum| sum <= i32::MAX as u32);
        self.offset = sum.ok_or_else(|| unsupported("an offset of more than 2 GiB"))?;
        Ok(self)
    }

    fn is_relaxed(&self) -> bool {
        matches!(self.space, Space::Buffer { relaxed: true, .. })
    }

    fn flags(&self) -> MemFlagsData {
        let flags = MemFlagsData::new().with_aligned();
        match self.is_readonly() {
            true => flags.with_readonly(),
            false => flags,
        }
    }

    /// Whether nobody writes there while the kernel runs.
    pub(super) fn is_readonly(&self) -> bool {
        match self.space {
            Space::Buffer { readonly, .. } => readonly,
            Space::Immediates | Space::Constants => true,
            Space::Own | Space::Workgroup => false,
        }
    }
}

/// Size of a stack slot in bytes, and the logarithm of its alignment.
pub(super) type Shape = (u32, u8);

/// The thread's own memory.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// What calls that have ended give to others.
    free: HashMap<Shape, Vec<ir::StackSlot>>,
    /// All that there are.
    bytes: u64,
    /// The size of the first of the largest, and where it is asked for.
    largest: Option<(u32, Span)>,
}

impl Slots {
    /// Where the largest is asked for, if all together are more than a thread has.
    pub(super) fn excess(&self) -> Option<Span> {
        let (_, span) = self.largest?;
        (self.bytes > u64::from(MOST_LOCAL)).then_some(span)
    }
}

/// The largest alignment of a stack slot in bytes.
const SLOT_ALIGNMENT: u32 = 16;

/// The most local memory that a shader's variables may need, in bytes: what the target allows.
const MOST_LOCAL: u32 = 4 << 20;

impl Translator<'_, '_, '_> {
    /// Memory of the thread for a value of a type, until the current call ends.
    pub(super) fn slot(&mut self, ty: &Ty) -> Result<Address> {
        let shape = self.shape(ty)?;
        let free = self.slots.free.get_mut(&shape).and_then(Vec::pop);
        let slot = free.unwrap_or_else(|| self.new_slot(shape));
        self.frame.slots.push((shape, slot));
        Ok(self.slot_address(slot))
    }

    /// Memory of the thread that stays as it is to the end.
    pub(super) fn stack_slot(&mut self, ty: &Ty) -> Result<ir::StackSlot> {
        let shape = self.shape(ty)?;
        Ok(self.new_slot(shape))
    }

    /// Gives back what a call that has ended had.
    pub(super) fn free_slots(&mut self, slots: Vec<(Shape, ir::StackSlot)>) {
        // What was taken first is taken first again: the next call of the same function has the same memory.
        for (shape, slot) in slots.into_iter().rev() {
            self.slots.free.entry(shape).or_default().push(slot);
        }
    }

    pub(super) fn shape(&self, ty: &Ty) -> Result<Shape> {
        let (size, alignment) = self.layout(ty)?;
        if size > MOST_LOCAL {
            return Err(unsupported(format!(
                "a variable of {size} bytes; a thread has 4 MiB"
            )));
        }
        let alignment = alignment.clamp(1, SLOT_ALIGNMENT).ilog2() as u8;
        Ok((size, alignment))
    }

    fn new_slot(&mut self, (size, alignment): Shape) -> ir::StackSlot {
        self.slots.bytes += u64::from(size);
        if self.slots.largest.is_none_or(|(most, _)| size > most) {
            self.slots.largest = Some((size, self.span));
        }
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, size, alignment);
        self.builder.create_sized_stack_slot(data)
    }

    pub(super) fn slot_address(&mut self, slot: ir::StackSlot) -> Address {
        Address {
            base: self.builder.ins().stack_addr(I64, slot, 0),
            offset: 0,
            space: Space::Own,
            inside: None,
        }
    }

    /// An element: `index` has no sign, and 32 bits.
    pub(super) fn element(&mut self, address: Address, index: ir::Value, stride: u32) -> Address {
        let ty = self.builder.func.dfg.value_type(address.base);
        let index = match ty {
            I64 => self.builder.ins().uextend(I64, index),
            _ => index,
        };
        let stride = self.integer(ty, stride.into());
        let offset = self.builder.ins().imul(index, stride);
        Address {
            base: self.builder.ins().iadd(address.base, offset),
            ..address
        }
    }

    /// The leaves of a value in memory.
    pub(super) fn load_lanes(&mut self, address: Address, ty: &Ty) -> Result<Lanes> {
        let leaves = self.leaves(ty)?;
        self.inside(address.inside, |this| this.load_leaves(address, &leaves))
    }

    fn load_leaves(&mut self, address: Address, leaves: &[Leaf]) -> Result<Lanes> {
        let mut lanes = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let place = address.plus(leaf.offset)?;
            let ty = super::types::clif(leaf.scalar)?;
            if address.is_relaxed() {
                lanes.push(self.relaxed_load(place, ty)?);
                continue;
            }
            let flags = address.flags();
            lanes.push((self.builder.ins()).load(ty, flags, place.base, place.offset as i32));
        }
        Ok(lanes)
    }

    /// Stores the leaves of a value.
    pub(super) fn store_lanes(
        &mut self,
        address: Address,
        ty: &Ty,
        lanes: &[ir::Value],
    ) -> Result<()> {
        let leaves = self.leaves(ty)?;
        let inside = address.inside.filter(|_| !planted(Mistake::OutsideStore));
        self.inside(inside, |this| {
            for (leaf, &lane) in leaves.iter().zip(lanes) {
                let place = address.plus(leaf.offset)?;
                if address.is_relaxed() {
                    this.relaxed_store(place, lane)?;
                    continue;
                }
                let flags = address.flags();
                (this.builder.ins()).store(flags, lane, place.base, place.offset as i32);
            }
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Copies a value that may be large.
    pub(super) fn copy(&mut self, to: Address, from: Address, ty: &Ty) -> Result<()> {
        let [to_inside, from_inside] = [to.inside, from.inside];
        let [to, from] = [to, from].map(|address| Address {
            inside: None,
            ..address
        });
        // What is read from outside is zeros.
        if let Some(condition) = from_inside {
            self.clear_memory(
                Address {
                    inside: to_inside,
                    ..to
                },
                ty,
            )?;
            self.inside(Some(condition), |this| {
                let to = Address {
                    inside: to_inside,
                    ..to
                };
                this.copy(to, from, ty).map(|()| Vec::new())
            })?;
            return Ok(());
        }
        self.inside(to_inside, |this| {
            this.each_piece(ty, &mut [to, from], &mut |this, pieces, ty| {
                let lanes = this.load_lanes(pieces[1], ty)?;
                this.store_lanes(pieces[0], ty, &lanes)
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Writes zeros.
    pub(super) fn clear_memory(&mut self, address: Address, ty: &Ty) -> Result<()> {
        let inside = address.inside;
        let address = Address {
            inside: None,
            ..address
        };
        self.inside(inside, |this| {
            this.each_piece(ty, &mut [address], &mut |this, pieces, ty| {
                let zeros = this.zero_lanes(ty)?;
                this.store_lanes(pieces[0], ty, &zeros)
            })?;
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Takes values of one type apart into pieces of few leaves, and does something with each. Long arrays become
    /// loops.
    fn each_piece<F: FnMut(&mut Self, &[Address], &Ty) -> Result<()>>(
        &mut self,
        ty: &Ty,
        addresses: &mut [Address],
        body: &mut F,
    ) -> Result<()> {
        if self.count(ty)? <= MOST_LANES {
            return body(self, addresses, ty);
        }
        if let TypeInner::Struct { members, .. } = self.inner(ty) {
            let members = members.clone();
            for member in members {
                let mut places = Vec::new();
                for address in addresses.iter() {
                    places.push(address.plus(member.offset)?);
                }
                self.each_piece(&Ty::Handle(member.ty), &mut places, body)?;
            }
            return Ok(());
        }
        let sequence = self.sequence(ty)?;
        let length = sequence.length.unwrap_or(0);
        let addresses = addresses.to_vec();
        self.repeat(length, |this, index| {
            let places = addresses.iter();
            let places = places.map(|&address| this.element(address, index, sequence.stride));
            let mut places: Vec<_> = places.collect();
            this.each_piece(&sequence.element, &mut places, body)
        })
    }

    /// A loop of so many turns, with the number of the turn, an i32.
    fn repeat(
        &mut self,
        count: u32,
        body: impl FnOnce(&mut Self, ir::Value) -> Result<()>,
    ) -> Result<()> {
        let [turn, behind] = [(); 2].map(|()| self.builder.create_block());
        let index = self.builder.append_block_param(turn, I32);
        let zero = self.integer(I32, 0);
        self.builder.ins().jump(turn, &[zero.into()]);
        self.builder.switch_to_block(turn);
        body(self, index)?;
        let next = self.builder.ins().iadd_imm_u(index, 1);
        let count = self.integer(I32, count.into());
        let goes_on = self
            .builder
            .ins()
            .icmp(IntCC::UnsignedLessThan, next, count);
        (self.builder.ins()).brif(goes_on, turn, &[next.into()], behind, &[]);
        self.builder.switch_to_block(behind);
        Ok(())
    }

    /// The zero of a type of CLIF.
    pub(super) fn zero_of(&mut self, ty: ir::Type) -> ir::Value {
        match ty {
            F16 => {
                let zero = self.builder.ins().iconst(I16, 0);
                self.builder.ins().bitcast(F16, MemFlagsData::new(), zero)
            }
            F32 => self.builder.ins().f32const(0.0),
            F64 => self.builder.ins().f64const(0.0),
            _ => self.builder.ins().iconst(ty, 0),
        }
    }
}
