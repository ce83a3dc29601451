//! Where an invocation is: the arguments of the entry point.

use super::values::{Lanes, Value};
use super::{Result, Translator};
use crate::error::{invalid, unsupported};
use crate::interface::threads;
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::I32;
use cranelift_thisgpu::build::GpuBuilder;
use naga::{Binding, BuiltIn, FunctionArgument, TypeInner};

/// Invocations of a subgroup: the lanes of a warp.
pub(super) const SUBGROUP: u32 = 32;

impl Translator<'_, '_, '_> {
    /// An argument of the entry point: a built-in value, or a structure of them.
    pub(super) fn input(&mut self, argument: &FunctionArgument) -> Result<Value> {
        if let Some(binding) = &argument.binding {
            return self.built_in(binding).map(Value::Lanes);
        }
        let TypeInner::Struct { members, .. } = &self.module.types[argument.ty].inner else {
            return Err(invalid(
                "an argument of an entry point that is no built-in value",
            ));
        };
        let mut lanes = Vec::new();
        for member in members {
            let binding = member.binding.as_ref();
            let binding = binding.ok_or_else(|| invalid("a member that is no built-in value"))?;
            lanes.extend(self.built_in(binding)?);
        }
        Ok(Value::Lanes(lanes))
    }

    fn built_in(&mut self, binding: &Binding) -> Result<Lanes> {
        let Binding::BuiltIn(built_in) = *binding else {
            return Err(invalid("a location in a compute shader"));
        };
        let [x, y, z] = self.workgroup_size;
        Ok(match built_in {
            BuiltIn::GlobalInvocationId => {
                let names = [
                    ("gpu_ctaid_x", "gpu_tid_x", x),
                    ("gpu_ctaid_y", "gpu_tid_y", y),
                    ("gpu_ctaid_z", "gpu_tid_z", z),
                ];
                let ids = names.map(|(group, own, size)| {
                    let [group, own] = [group, own].map(|name| self.builder.intrinsic(name, &[]));
                    let first = self.builder.ins().imul_imm_u(group, i64::from(size));
                    self.builder.ins().iadd(first, own)
                });
                ids.to_vec()
            }
            BuiltIn::LocalInvocationId => self.hardware(["gpu_tid_x", "gpu_tid_y", "gpu_tid_z"]),
            BuiltIn::LocalInvocationIndex => vec![self.local_index()],
            BuiltIn::WorkGroupId => self.hardware(["gpu_ctaid_x", "gpu_ctaid_y", "gpu_ctaid_z"]),
            BuiltIn::WorkGroupSize => [x, y, z]
                .map(|size| self.integer(I32, size.into()))
                .to_vec(),
            BuiltIn::NumWorkGroups => {
                self.hardware(["gpu_nctaid_x", "gpu_nctaid_y", "gpu_nctaid_z"])
            }
            BuiltIn::NumSubgroups => {
                let subgroups = threads(self.workgroup_size).div_ceil(SUBGROUP);
                vec![self.integer(I32, subgroups.into())]
            }
            BuiltIn::SubgroupId => self.hardware(["gpu_warpid"]),
            BuiltIn::SubgroupSize => vec![self.integer(I32, SUBGROUP.into())],
            BuiltIn::SubgroupInvocationId => self.hardware(["gpu_laneid"]),
            other => return Err(unsupported(format!("the built-in value {other:?}"))),
        })
    }

    fn hardware<const N: usize>(&mut self, names: [&str; N]) -> Lanes {
        names.map(|name| self.builder.intrinsic(name, &[])).to_vec()
    }

    /// The invocation in its workgroup, x fastest.
    pub(super) fn local_index(&mut self) -> ir::Value {
        let [columns, rows, _] = self.workgroup_size;
        let [x, y, z] =
            ["gpu_tid_x", "gpu_tid_y", "gpu_tid_z"].map(|name| self.builder.intrinsic(name, &[]));
        let plane = self.builder.ins().imul_imm_u(z, i64::from(rows));
        let row = self.builder.ins().iadd(plane, y);
        let first = self.builder.ins().imul_imm_u(row, i64::from(columns));
        self.builder.ins().iadd(first, x)
    }
}
