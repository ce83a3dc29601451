//! Loads, stores, stack slots, and copies of memory.
//!
//! Every access says how it is aligned, where LLVM knows; one that is aligned less than its size is made of pieces that
//! are. Of a single byte's alignment the back end finds out more by itself.

use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar, container};
use crate::error::Problem;
use crate::layout;
use crate::model::{Access, Operand, Ordering, Type, Value};
use cranelift_codegen::ir::{
    self, InstBuilder, MemFlagsData, StackSlot, StackSlotData, StackSlotKind, types,
};
use smallvec::smallvec;

/// Most alignment of a stack slot in bytes, as a power of two.
const SLOT_ALIGN: u64 = 16;
/// Most accesses that a copy or fill of a known length is made of; longer ones are calls.
const MAX_ACCESSES: u64 = 32;
/// Most bytes of one of those.
const WORD: u64 = 8;
/// Loads of a copy that stand before the stores of what they loaded.
const GROUP: usize = 8;

/// A power of two that divides an alignment and an offset.
fn align_at(align: u64, offset: u64) -> u64 {
    match offset {
        0 => align.max(1),
        offset => align.max(1).min(1 << offset.trailing_zeros()),
    }
}

impl Body<'_, '_, '_> {
    /// The address of a new stack slot, and the slot if it begins there.
    pub fn stack_slot(
        &mut self,
        ty: &Type,
        count: &Operand,
        align: u64,
    ) -> Result<(ir::Value, Option<StackSlot>)> {
        let count = match &count.value {
            Value::Constant(constant) => match crate::data::scalar(&count.ty, constant)? {
                crate::data::Scalar::Bits(bits) => bits as u64,
                crate::data::Scalar::Address(..) => {
                    let message = "a slot of an address' size";
                    return Err(Problem::NotConstant(message.into()));
                }
            },
            Value::Local(_) => {
                let message = "`alloca` of a size that is known late is not supported";
                return Err(Problem::Unsupported(message.into()));
            }
        };
        let unknown = || Problem::NoSize(format!("{ty:?} has no size").into());
        let size = layout::size(ty).ok_or_else(unknown)?;
        let too_many = || Problem::TooLarge("a stack slot of too many bytes".into());
        let bytes = size.checked_mul(count).ok_or_else(too_many)?;
        let extra = if align > SLOT_ALIGN { align } else { 0 };
        let bytes = u32::try_from(bytes + extra).map_err(|_| {
            let message = format!("a stack slot of {bytes} bytes is too large");
            Problem::TooLarge(message.into())
        })?;
        let shift = align.clamp(1, SLOT_ALIGN).trailing_zeros() as u8;
        let kind = StackSlotKind::ExplicitSlot;
        let slot = self
            .builder
            .create_sized_stack_slot(StackSlotData::new(kind, bytes, shift));
        let address = self.builder.ins().stack_addr(types::I64, slot, 0);
        if extra == 0 {
            return Ok((address, Some(slot)));
        }
        let up = self.builder.ins().iconst(types::I64, (align - 1) as i64);
        let high = self.builder.ins().iadd(address, up);
        let mask = self.builder.ins().iconst(types::I64, -(align as i64));
        Ok((self.builder.ins().band(high, mask), None))
    }

    /// The value in memory.
    pub fn load(&mut self, ty: &Type, address: &Operand, access: Access) -> Result<Parts> {
        let base = self.single(address)?;
        if access.volatile || access.ordering != Ordering::Plain {
            return self.atomic_load(ty, base, access);
        }
        if shape::is_packed(ty) {
            let bits = packed_bits(ty)?;
            let whole = self.load_part(Scalar::Int(bits), base, 0, access.align);
            return self.bitcast(&Type::Int(bits), ty, smallvec![whole]);
        }
        let mut parts = Parts::new();
        for (part, offset) in shape::placed_parts(ty)? {
            parts.push(self.load_part(part, base, offset, access.align));
        }
        Ok(parts)
    }

    /// Puts a value into memory.
    pub fn store(&mut self, value: &Operand, address: &Operand, access: Access) -> Result<()> {
        let (parts, base) = (self.operand(value)?, self.single(address)?);
        if access.volatile || access.ordering != Ordering::Plain {
            return self.atomic_store(&value.ty, parts, base, access);
        }
        if shape::is_packed(&value.ty) {
            let bits = packed_bits(&value.ty)?;
            let whole = self.bitcast(&value.ty, &Type::Int(bits), parts)?;
            self.store_part(Scalar::Int(bits), whole[0], base, 0, access.align);
            return Ok(());
        }
        let placed = shape::placed_parts(&value.ty)?;
        for (value, (part, offset)) in parts.into_iter().zip(placed) {
            self.store_part(part, value, base, offset, access.align);
        }
        Ok(())
    }

    /// A scalar at an offset.
    fn load_part(&mut self, of: Scalar, base: ir::Value, offset: u64, align: u64) -> ir::Value {
        let align = align_at(align, offset);
        let pieces = pieces(of, align);
        if let [(_, size)] = pieces[..] {
            // An i1 is a byte of 0 or 1, an i24 never comes here.
            let ty = of.clif();
            debug_assert_eq!(u64::from(ty.bytes()), size);
            return self.load_whole(ty, base, offset, align);
        }
        let ty = of.pattern();
        let mut sum = None;
        for (at, size) in pieces {
            let piece = self.load_whole(integer(size), base, offset + at, align_at(align, at));
            let piece = self.resized(piece, ty);
            let piece = match at {
                0 => piece,
                at => {
                    let amount = self.builder.ins().iconst(types::I32, 8 * at as i64);
                    self.builder.ins().ishl(piece, amount)
                }
            };
            sum = Some(match sum {
                Some(sum) => self.builder.ins().bor(sum, piece),
                None => piece,
            });
        }
        let sum = sum.unwrap_or_else(|| self.integer(ty, 0));
        self.of_pattern(sum, of)
    }

    fn load_whole(&mut self, ty: ir::Type, base: ir::Value, offset: u64, align: u64) -> ir::Value {
        let flags = flags(ty, align);
        let (base, offset) = self.split_offset(base, offset);
        self.builder.ins().load(ty, flags, base, offset)
    }

    /// The offset as an immediate, if it is one.
    fn split_offset(&mut self, base: ir::Value, offset: u64) -> (ir::Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.add_offset(base, offset as i64), 0),
        }
    }

    fn store_part(
        &mut self,
        of: Scalar,
        value: ir::Value,
        base: ir::Value,
        offset: u64,
        align: u64,
    ) {
        let align = align_at(align, offset);
        let pieces = pieces(of, align);
        let single = pieces.len() == 1;
        let value = if single {
            value
        } else {
            self.pattern(value, of)
        };
        for (at, size) in pieces {
            let piece = match single {
                true => value,
                false => {
                    let amount = self.builder.ins().iconst(types::I32, 8 * at as i64);
                    let low = match at {
                        0 => value,
                        _ => self.builder.ins().ushr(value, amount),
                    };
                    self.resized(low, integer(size))
                }
            };
            let flags = flags(self.type_of(piece), align_at(align, at));
            let (base, offset) = self.split_offset(base, offset + at);
            self.builder.ins().store(flags, piece, base, offset);
        }
    }

    /// `memcpy` and `memmove`: of a known length as loads and stores, all loads first, else as a call.
    pub fn copy(&mut self, name: &str, operands: [&Operand; 3], aligns: [u64; 2]) -> Result<()> {
        let (to, from) = (self.single(operands[0])?, self.single(operands[1])?);
        let align = aligns[0].min(aligns[1]);
        if let Some(length) = known(operands[2])? {
            let word = align.clamp(1, WORD);
            if length.div_ceil(word) <= MAX_ACCESSES {
                // What may overlap is loaded as a whole first; what does not, in groups, which need fewer registers.
                let accesses: Vec<(u64, u64)> = words_of(length, word).collect();
                let group = match name {
                    "memmove" => accesses.len(),
                    _ => GROUP,
                };
                for accesses in accesses.chunks(group.max(1)) {
                    let mut words = Vec::new();
                    for (at, size) in accesses {
                        let scalar = Scalar::Int(8 * *size as u32);
                        words.push((scalar, *at, self.load_part(scalar, from, *at, align)));
                    }
                    for (scalar, at, value) in words {
                        self.store_part(scalar, value, to, at, align);
                    }
                }
                return Ok(());
            }
        }
        let length = self.single(operands[2])?;
        let length = self.resized(length, types::I64);
        self.call_named(name, &[to, from, length], &[types::I64]);
        Ok(())
    }

    /// `memset`.
    pub fn fill(&mut self, operands: [&Operand; 3], align: u64) -> Result<()> {
        let (to, byte) = (self.single(operands[0])?, self.single(operands[1])?);
        if let Some(length) = known(operands[2])? {
            let word = align.clamp(1, WORD);
            if length.div_ceil(word) <= MAX_ACCESSES {
                for (at, size) in words_of(length, word) {
                    let ty = integer(size);
                    let wide = self.resized(byte, ty);
                    let ones = self.integer(ty, crate::data::mask(8 * size as u32) / 0xff);
                    let pattern = self.builder.ins().imul(wide, ones);
                    self.store_part(Scalar::Int(8 * size as u32), pattern, to, at, align);
                }
                return Ok(());
            }
        }
        let byte = self.resized(byte, types::I32);
        let length = self.single(operands[2])?;
        let length = self.resized(length, types::I64);
        self.call_named("memset", &[to, byte, length], &[types::I64]);
        Ok(())
    }

    /// The address of the function's own copy of what a pointer points to.
    pub fn own_copy(&mut self, address: &Operand, ty: &Type, align: u64) -> Result<ir::Value> {
        let one = Operand {
            ty: Type::Int(32),
            value: Value::Constant(crate::model::Constant::Int(1)),
        };
        let (slot, _) = self.stack_slot(ty, &one, align)?;
        let from = self.single(address)?;
        let unknown = || Problem::NoSize("a structure of no size".into());
        let length = layout::size(ty).ok_or_else(unknown)?;
        let word = align.clamp(1, WORD);
        if length.div_ceil(word) > MAX_ACCESSES {
            let length = self.builder.ins().iconst(types::I64, length as i64);
            self.call_named("memcpy", &[slot, from, length], &[types::I64]);
            return Ok(slot);
        }
        for (at, size) in words_of(length, word) {
            let scalar = Scalar::Int(8 * size as u32);
            let value = self.load_part(scalar, from, at, align);
            self.store_part(scalar, value, slot, at, align);
        }
        Ok(slot)
    }
}

/// A constant number.
fn known(operand: &Operand) -> Result<Option<u64>> {
    let Value::Constant(constant) = &operand.value else {
        return Ok(None);
    };
    Ok(match crate::data::scalar(&operand.ty, constant)? {
        crate::data::Scalar::Bits(bits) => u64::try_from(bits).ok(),
        crate::data::Scalar::Address(..) => None,
    })
}

/// Accesses of at most `word` bytes that cover a length: offset and size, a power of two.
fn words_of(length: u64, word: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = length - at;
        let size = match rest {
            0 => return None,
            rest => word.min(1 << rest.ilog2()),
        };
        at += size;
        Some((at - size, size))
    })
}

/// The bits of a vector whose lanes share bytes.
fn packed_bits(ty: &Type) -> Result<u32> {
    let bits = ty.lanes().zip(layout::bits(ty.lane()));
    let unknown = || Problem::NoSize("a vector of no size".into());
    let (lanes, bits) = bits.ok_or_else(unknown)?;
    let too_many = |_| Problem::TooLarge("a vector of too many bits".into());
    u32::try_from(u64::from(lanes) * bits).map_err(too_many)
}

/// The integer of so many bytes.
fn integer(bytes: u64) -> ir::Type {
    container(8 * bytes as u32)
}

/// Flags of an access of a type at an alignment.
fn flags(ty: ir::Type, align: u64) -> MemFlagsData {
    match align >= u64::from(ty.bytes()) {
        true => MemFlagsData::new().with_aligned(),
        false => MemFlagsData::new(),
    }
}

/// What a scalar is made of in memory at an alignment: offsets and sizes of powers of two.
fn pieces(of: Scalar, align: u64) -> Vec<(u64, u64)> {
    let bytes = u64::from(of.bits().div_ceil(8));
    let whole = bytes.is_power_of_two();
    // At an alignment of 1 the back end may know more than LLVM says.
    if whole && (align >= bytes || align == 1 && bytes <= WORD) {
        return vec![(0, bytes)];
    }
    let most = match align {
        1 => WORD,
        align => align.min(16),
    };
    words_of(bytes, most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_scalar() {
        assert_eq!(pieces(Scalar::Int(1), 1), [(0, 1)]);
        assert_eq!(pieces(Scalar::Int(24), 4), [(0, 2), (2, 1)]);
        assert_eq!(pieces(Scalar::Int(96), 4), [(0, 4), (4, 4), (8, 4)]);
        assert_eq!(pieces(Scalar::Int(128), 8), [(0, 8), (8, 8)]);
        assert_eq!(pieces(Scalar::Int(128), 16), [(0, 16)]);
        assert_eq!(pieces(Scalar::F64, 4), [(0, 4), (4, 4)]);
        assert_eq!(pieces(Scalar::F64, 1), [(0, 8)]);
        assert_eq!(align_at(16, 12), 4);
    }
}
