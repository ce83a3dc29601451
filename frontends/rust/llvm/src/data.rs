//! Constants as bytes and addresses.

use crate::error::Problem;
use crate::layout;
use crate::model::{AddressOf, Binary, Cast, Constant, Expression, Type, Value};
use std::sync::Arc;

/// What a scalar constant is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// These bits.
    Bits(u128),
    /// The address of a symbol and a number of bytes.
    Address(Arc<str>, i64),
}

/// The bytes of a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// All of them; those of an address are zero.
    pub bytes: Vec<u8>,
    /// Where addresses stand: offset, symbol, what is added to it.
    pub relocations: Vec<(u64, Arc<str>, i64)>,
}

/// Most bytes of a variable.
const MAX_BYTES: u64 = 1 << 30;

/// The bits of so many bits.
pub fn mask(bits: u32) -> u128 {
    match bits {
        0 => 0,
        1..128 => (1 << bits) - 1,
        _ => u128::MAX,
    }
}

/// A number of so many bits with its sign.
pub fn signed(value: u128, bits: u32) -> i128 {
    let unused = 128 - bits.clamp(1, 128);
    ((value << unused) as i128) >> unused
}

/// The symbol and offset of an address.
pub fn address(constant: &Constant) -> Option<(Arc<str>, i64)> {
    match scalar(&Type::POINTER, constant) {
        Ok(Scalar::Address(symbol, offset)) => Some((symbol, offset)),
        _ => None,
    }
}

/// What a scalar constant of a type is.
///
/// # Errors
/// What is not known before the program runs.
pub fn scalar(ty: &Type, constant: &Constant) -> Result<Scalar, Problem> {
    let width = |ty: &Type| layout::bits(ty).map_or(128, |bits| bits.min(128) as u32);
    Ok(match constant {
        Constant::Int(bits) => Scalar::Bits(bits & mask(width(ty))),
        Constant::Float(bits) => Scalar::Bits(u128::from(*bits)),
        Constant::Zero | Constant::Undefined => Scalar::Bits(0),
        Constant::Symbol(name) => Scalar::Address(name.clone(), 0),
        Constant::Expression(expression) => match &**expression {
            Expression::Address(address) => {
                let offset = constant_offset(address)?;
                let Value::Constant(base) = &address.base.value else {
                    return Err(Problem::NotConstant("a constant address of a value".into()));
                };
                add(scalar(&address.base.ty, base)?, i128::from(offset), 64)
            }
            Expression::Cast(cast, operand, to) => {
                let Value::Constant(of) = &operand.value else {
                    return Err(Problem::NotConstant("a constant cast of a value".into()));
                };
                match (scalar(&operand.ty, of)?, cast) {
                    (Scalar::Bits(bits), Cast::SExt) => {
                        let bits = signed(bits, width(&operand.ty)) as u128;
                        Scalar::Bits(bits & mask(width(to)))
                    }
                    (Scalar::Bits(bits), _) => Scalar::Bits(bits & mask(width(to))),
                    (address, _) if width(to) == 64 => address,
                    _ => {
                        return Err(Problem::NotConstant(
                            "a part of an address is no constant here".into(),
                        ));
                    }
                }
            }
            Expression::Binary(binary, left, right) => {
                let (Value::Constant(a), Value::Constant(b)) = (&left.value, &right.value) else {
                    return Err(Problem::NotConstant("a constant sum of values".into()));
                };
                let bits = width(&left.ty);
                match (binary, scalar(&left.ty, a)?, scalar(&right.ty, b)?) {
                    (Binary::Add, sum, Scalar::Bits(by)) | (Binary::Add, Scalar::Bits(by), sum) => {
                        add(sum, signed(by, bits), bits)
                    }
                    (Binary::Sub, sum, Scalar::Bits(by)) => {
                        add(sum, signed(by, bits).wrapping_neg(), bits)
                    }
                    (Binary::Xor, Scalar::Bits(a), Scalar::Bits(b)) => Scalar::Bits(a ^ b),
                    (Binary::Sub, Scalar::Address(a, x), Scalar::Address(b, y)) if a == b => {
                        Scalar::Bits(i128::from(x.wrapping_sub(y)) as u128 & mask(bits))
                    }
                    _ => {
                        return Err(Problem::NotConstant(
                            format!("`{binary:?}` of constant addresses").into(),
                        ));
                    }
                }
            }
            Expression::Unknown(name) => {
                return Err(Problem::NotConstant(format!("constant `{name}`").into()));
            }
        },
        Constant::Bytes(_) | Constant::Aggregate(_) | Constant::Splat(_) => {
            return Err(Problem::Inconsistent(
                "an aggregate where a scalar is expected".into(),
            ));
        }
    })
}

fn add(to: Scalar, by: i128, bits: u32) -> Scalar {
    match to {
        Scalar::Bits(value) => Scalar::Bits(value.wrapping_add(by as u128) & mask(bits)),
        Scalar::Address(symbol, offset) => Scalar::Address(symbol, offset.wrapping_add(by as i64)),
    }
}

/// The bytes that a `getelementptr` of constants adds.
fn constant_offset(address: &AddressOf) -> Result<i64, Problem> {
    let (mut total, mut ty) = (0_i64, &address.element);
    for (depth, index) in address.indices.iter().enumerate() {
        let Value::Constant(constant) = &index.value else {
            return Err(Problem::NotConstant("an index that is no constant".into()));
        };
        let Scalar::Bits(bits) = scalar(&index.ty, constant)? else {
            return Err(Problem::NotConstant("an address as an index".into()));
        };
        let width = layout::bits(&index.ty).unwrap_or(64) as u32;
        let number = signed(bits, width) as i64;
        let (offset, inner) = step(ty, depth == 0, number)?;
        total = total.wrapping_add(offset);
        ty = inner;
    }
    Ok(total)
}

/// The bytes that one index of a known number adds, and the type that it leads to.
pub fn step(ty: &Type, first: bool, number: i64) -> Result<(i64, &Type), Problem> {
    let unknown = || Problem::NoSize(format!("the size of {ty:?} is not known").into());
    if first {
        let size = layout::size(ty).ok_or_else(unknown)?;
        return Ok((number.wrapping_mul(size as i64), ty));
    }
    match ty {
        Type::Struct(_) => {
            let index = number as u64;
            let offset = layout::offset(ty, index).ok_or_else(unknown)?;
            Ok((offset as i64, ty.element(index).ok_or_else(unknown)?))
        }
        Type::Array(_, inner) | Type::Vector(_, inner) => {
            let size = layout::size(inner).ok_or_else(unknown)?;
            Ok((number.wrapping_mul(size as i64), inner))
        }
        _ => Err(Problem::Inconsistent(
            format!("an index into {ty:?}").into(),
        )),
    }
}

/// The bytes of a constant in memory.
///
/// # Errors
/// What is not known before the program runs, or has no place in memory.
pub fn image(ty: &Type, constant: &Constant) -> Result<Image, Problem> {
    let size = layout::size(ty)
        .ok_or_else(|| Problem::NoSize(format!("{ty:?} has no place in memory").into()))?;
    if size > MAX_BYTES {
        return Err(Problem::TooLarge(
            format!("{size} bytes are more than 1 GiB").into(),
        ));
    }
    let bytes = vec![0; size as usize];
    let mut image = Image {
        bytes,
        relocations: Vec::new(),
    };
    image.write(ty, constant, 0)?;
    Ok(image)
}

impl Image {
    fn write(&mut self, ty: &Type, constant: &Constant, at: u64) -> Result<(), Problem> {
        match constant {
            Constant::Zero | Constant::Undefined => {}
            Constant::Bytes(bytes) => self.put(at, bytes),
            Constant::Splat(lane) => {
                for index in 0..ty.elements().unwrap_or(0) {
                    self.lane(ty, ty.lane(), lane, index, at)?;
                }
            }
            Constant::Aggregate(elements) => {
                for (index, (of, element)) in (0..).zip(elements.iter()) {
                    if ty.lanes().is_some() {
                        self.lane(ty, of, element, index, at)?;
                        continue;
                    }
                    let offset = layout::offset(ty, index)
                        .ok_or(Problem::NoSize("an element of no place".into()))?;
                    self.write(of, element, at + offset)?;
                }
            }
            _ => match scalar(ty, constant)? {
                Scalar::Bits(bits) => {
                    let size = layout::store_size(ty)
                        .ok_or(Problem::NoSize("a scalar of no size".into()))?;
                    let bytes = bits.to_le_bytes();
                    self.put(at, &bytes[..(size as usize).min(bytes.len())]);
                }
                Scalar::Address(symbol, addend) => {
                    if layout::store_size(ty) != Some(layout::POINTER_BYTES) {
                        return Err(Problem::NotConstant(
                            "an address of less than 64 bits".into(),
                        ));
                    }
                    self.relocations.push((at, symbol, addend));
                }
            },
        }
        Ok(())
    }

    /// A lane of a vector. Lanes of whole bytes are elements, narrower ones are packed.
    fn lane(
        &mut self,
        vector: &Type,
        of: &Type,
        constant: &Constant,
        index: u64,
        at: u64,
    ) -> Result<(), Problem> {
        let width =
            layout::bits(vector.lane()).ok_or(Problem::NoSize("a lane of no size".into()))?;
        if width % 8 == 0 {
            return self.write(of, constant, at + width / 8 * index);
        }
        let Scalar::Bits(bits) = scalar(of, constant)? else {
            return Err(Problem::NotConstant("an address in a narrow lane".into()));
        };
        for bit in (0..width).filter(|bit| bits >> bit & 1 == 1) {
            let position = width * index + bit;
            if let Some(byte) = self.bytes.get_mut((at + position / 8) as usize) {
                *byte |= 1 << (position % 8);
            }
        }
        Ok(())
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        let from = at as usize;
        if let Some(place) = self.bytes.get_mut(from..from + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}
