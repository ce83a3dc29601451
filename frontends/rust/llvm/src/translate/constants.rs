//! Constants and addresses as values.

use super::Target;
use super::function::{Body, Parts, Result};
use super::shape::{self, Scalar};
use super::wide::is_wide;
use crate::data;
use crate::error::Problem;
use crate::model::{Constant, Expression, Type};
use cranelift_codegen::ir::immediates::{Ieee16, Imm64};
use cranelift_codegen::ir::{self, ExternalName, GlobalValueData, InstBuilder, types};
use cranelift_module::Module as _;
use std::sync::Arc;

/// The backend's symbol of the beginning of shared memory.
const SHARED: &str = "gpu_shared";

impl Body<'_, '_, '_> {
    /// The parts of a constant.
    pub fn constant(&mut self, ty: &Type, constant: &Constant) -> Result<Parts> {
        shape::count(ty)?;
        let mut parts = Parts::new();
        self.constant_into(ty, constant, &mut parts)?;
        Ok(parts)
    }

    fn constant_into(&mut self, ty: &Type, constant: &Constant, parts: &mut Parts) -> Result<()> {
        match constant {
            Constant::Zero | Constant::Undefined if ty.elements().is_some() => {
                for part in shape::parts(ty)? {
                    parts.push(self.bits(part, 0));
                }
            }
            Constant::Bytes(bytes) => {
                let values = bytes
                    .iter()
                    .map(|byte| self.bits(Scalar::Int(8), u128::from(*byte)));
                parts.extend(values);
            }
            Constant::Splat(lane) => {
                for _ in 0..ty.elements().unwrap_or(0) {
                    self.constant_into(ty.lane(), lane, parts)?;
                }
            }
            Constant::Aggregate(elements) => {
                for (of, element) in elements.iter() {
                    self.constant_into(of, element, parts)?;
                }
            }
            scalar if is_wide(ty) => {
                parts.extend(self.constant_wide(scalar)?);
            }
            scalar => {
                let part = Scalar::of(ty)?;
                let value = match (data::scalar(ty, scalar), scalar) {
                    (Ok(data::Scalar::Bits(bits)), _) => self.bits(part, bits),
                    (Ok(data::Scalar::Address(symbol, offset)), _) => {
                        let address = self.address_of(&symbol)?;
                        self.add_offset(address, offset)
                    }
                    (Err(problem), Constant::Expression(expression)) => {
                        return self.computed(expression, problem, parts);
                    }
                    (Err(problem), _) => return Err(problem),
                };
                parts.push(value);
            }
        }
        Ok(())
    }

    /// What is known only when the program is loaded, such as the low byte of an address: LLVM cuts the copy of an
    /// enumeration into pieces, and an address with it. It is computed where it is used. `problem` is why it is no
    /// constant, which is said if it cannot be computed either.
    fn computed(
        &mut self,
        expression: &Expression,
        problem: Problem,
        parts: &mut Parts,
    ) -> Result<()> {
        match expression {
            Expression::Cast(_, of, to) if is_wide(&of.ty) || is_wide(to) => return Err(problem),
            Expression::Cast(cast, of, to) => parts.extend(self.cast(*cast, of, to)?),
            Expression::Binary(_, a, _) if is_wide(&a.ty) => return Err(problem),
            Expression::Binary(binary, a, b) => parts.extend(self.binary(*binary, a, b)?),
            Expression::Address(_) | Expression::Unknown(_) => return Err(problem),
        }
        Ok(())
    }

    /// A scalar by its bits.
    pub fn bits(&mut self, of: Scalar, bits: u128) -> ir::Value {
        let ins = self.builder.ins();
        match of {
            Scalar::F16 => ins.f16const(Ieee16::with_bits(bits as u16)),
            Scalar::F32 => ins.f32const(f32::from_bits(bits as u32)),
            Scalar::F64 => ins.f64const(f64::from_bits(bits as u64)),
            Scalar::Int(_) | Scalar::Pointer => self.integer(of.clif(), bits),
        }
    }

    /// An integer of a type of CLIF.
    pub fn integer(&mut self, ty: ir::Type, bits: u128) -> ir::Value {
        if ty == types::I128 {
            let [low, high] = [bits as i64, (bits >> 64) as i64]
                .map(|half| self.builder.ins().iconst(types::I64, half));
            return self.builder.ins().iconcat(low, high);
        }
        let bits = bits & data::mask(ty.bits());
        // Cranelift's immediates are the number without a sign.
        self.builder.ins().iconst(ty, Imm64::new(bits as i64))
    }

    /// An address and a number of bytes.
    pub fn add_offset(&mut self, address: ir::Value, offset: i64) -> ir::Value {
        if offset == 0 {
            return address;
        }
        let offset = self.builder.ins().iconst(types::I64, offset);
        self.builder.ins().iadd(address, offset)
    }

    /// The address of a symbol.
    fn address_of(&mut self, symbol: &Arc<str>) -> Result<ir::Value> {
        match self.target(symbol)? {
            Target::Function(id) => {
                let reference = self.reference(id);
                Ok(self.builder.ins().func_addr(types::I64, reference))
            }
            Target::Data(id, offset) => {
                let global = match self.imports.objects.get(&id) {
                    Some(global) => *global,
                    None => {
                        let module = &mut self.translator.module;
                        let global = module.declare_data_in_func(id, self.builder.func);
                        self.imports.objects.insert(id, global);
                        global
                    }
                };
                let address = self.builder.ins().symbol_value(types::I64, global);
                Ok(self.add_offset(address, offset))
            }
            Target::Shared(offset) => {
                let builder = &mut self.builder;
                let global = *self.imports.shared.get_or_insert_with(|| {
                    builder.create_global_value(GlobalValueData::Symbol {
                        name: ExternalName::testcase(SHARED),
                        offset: Imm64::new(0),
                        colocated: true,
                        tls: false,
                    })
                });
                let start = self.builder.ins().symbol_value(types::I64, global);
                Ok(self.add_offset(start, offset as i64))
            }
        }
    }
}
