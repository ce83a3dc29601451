//! Where a unit is: positions and dimensions in plane, cube and launch.

use super::metadata::required;
use super::{Result, Translator};
use crate::properties::PLANE_UNITS;
use cranelift_codegen::ir::{InstBuilder, Type, Value, types::I32};
use cranelift_thisgpu::build::GpuBuilder;
use cubecl_core::ir::{
    Builtin,
    dialect::{OperationPtrExt, general::ReadBuiltinOp},
};
use pliron::context::Ptr;
use pliron::operation::Operation;

impl Translator<'_, '_, '_> {
    /// `cube.read_builtin`.
    pub(super) fn builtin(&mut self, op: Ptr<Operation>, name: &str) -> Result<bool> {
        if name != "read_builtin" {
            return Ok(false);
        }
        let read = required(op.as_op::<ReadBuiltinOp>(self.context))?;
        let builtin = read.builtin(self.context).0;
        let ty = self.result_scalar(op)?.clif();
        let value = self.position(builtin, ty);
        self.define(op, vec![value]);
        Ok(true)
    }

    /// A builtin, computed in `ty`.
    fn position(&mut self, builtin: Builtin, ty: Type) -> Value {
        let size = self.cube_dim;
        let (x, y, z) = (i64::from(size.x), i64::from(size.y), i64::from(size.z));
        let units = x * y * z;
        match builtin {
            Builtin::UnitPos => self.unit(ty),
            Builtin::UnitPosX => self.hardware("gpu_tid_x", ty),
            Builtin::UnitPosY => self.hardware("gpu_tid_y", ty),
            Builtin::UnitPosZ => self.hardware("gpu_tid_z", ty),
            Builtin::CubeDim => self.integer(ty, units),
            Builtin::CubeDimX => self.integer(ty, x),
            Builtin::CubeDimY => self.integer(ty, y),
            Builtin::CubeDimZ => self.integer(ty, z),
            Builtin::CubePos => self.cube(ty),
            Builtin::CubePosX => self.hardware("gpu_ctaid_x", ty),
            Builtin::CubePosY => self.hardware("gpu_ctaid_y", ty),
            Builtin::CubePosZ => self.hardware("gpu_ctaid_z", ty),
            Builtin::CubeCount => {
                let counts = self.counts(ty);
                let plane = self.builder.ins().imul(counts[0], counts[1]);
                self.builder.ins().imul(plane, counts[2])
            }
            Builtin::CubeCountX => self.hardware("gpu_nctaid_x", ty),
            Builtin::CubeCountY => self.hardware("gpu_nctaid_y", ty),
            Builtin::CubeCountZ => self.hardware("gpu_nctaid_z", ty),
            Builtin::AbsolutePos => {
                let (cube, unit) = (self.cube(ty), self.unit(ty));
                let first = self.builder.ins().imul_imm_u(cube, units);
                self.builder.ins().iadd(first, unit)
            }
            Builtin::AbsolutePosX => self.absolute("gpu_ctaid_x", "gpu_tid_x", x, ty),
            Builtin::AbsolutePosY => self.absolute("gpu_ctaid_y", "gpu_tid_y", y, ty),
            Builtin::AbsolutePosZ => self.absolute("gpu_ctaid_z", "gpu_tid_z", z, ty),
            Builtin::PlaneDim => self.integer(ty, PLANE_UNITS.into()),
            Builtin::PlanePos => self.hardware("gpu_warpid", ty),
            Builtin::UnitPosPlane => self.hardware("gpu_laneid", ty),
            // The device has no clusters: every cube is one of its own.
            Builtin::CubeClusterDim
            | Builtin::CubeClusterDimX
            | Builtin::CubeClusterDimY
            | Builtin::CubeClusterDimZ => self.integer(ty, 1),
            Builtin::CubePosCluster
            | Builtin::CubePosClusterX
            | Builtin::CubePosClusterY
            | Builtin::CubePosClusterZ => self.integer(ty, 0),
        }
    }

    /// A value that the hardware knows, all of which have 32 bits.
    pub(super) fn hardware(&mut self, name: &str, ty: Type) -> Value {
        let value = self.builder.intrinsic(name, &[]);
        self.resize(value, ty)
    }

    fn counts(&mut self, ty: Type) -> [Value; 3] {
        ["gpu_nctaid_x", "gpu_nctaid_y", "gpu_nctaid_z"].map(|name| self.hardware(name, ty))
    }

    /// The unit in its cube, x fastest.
    fn unit(&mut self, ty: Type) -> Value {
        let [x, y, z] =
            ["gpu_tid_x", "gpu_tid_y", "gpu_tid_z"].map(|name| self.hardware(name, I32));
        let (columns, rows) = (self.cube_dim.x, self.cube_dim.y);
        let plane = self.builder.ins().imul_imm_u(z, i64::from(rows));
        let row = self.builder.ins().iadd(plane, y);
        let first = self.builder.ins().imul_imm_u(row, i64::from(columns));
        let unit = self.builder.ins().iadd(first, x);
        self.resize(unit, ty)
    }

    /// The cube in the launch, x fastest.
    fn cube(&mut self, ty: Type) -> Value {
        let [x, y, z] =
            ["gpu_ctaid_x", "gpu_ctaid_y", "gpu_ctaid_z"].map(|name| self.hardware(name, ty));
        let counts = self.counts(ty);
        let plane = self.builder.ins().imul(z, counts[1]);
        let row = self.builder.ins().iadd(plane, y);
        let first = self.builder.ins().imul(row, counts[0]);
        self.builder.ins().iadd(first, x)
    }

    fn absolute(&mut self, cube: &str, unit: &str, size: i64, ty: Type) -> Value {
        let (cube, unit) = (self.hardware(cube, ty), self.hardware(unit, ty));
        let first = self.builder.ins().imul_imm_u(cube, size);
        self.builder.ins().iadd(first, unit)
    }
}
