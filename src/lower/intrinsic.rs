//! Calls of `%gpu_NAME`, symbols, traps.

use super::Lower;
use super::source::{Base, InstOutput, Output, PSrc, Regs, Source, Src};
use crate::abi::bank0;
use crate::clif::intrinsics::{Axis, Intrinsic, Lowering, Special};
use crate::clif::resolve::GpuSymbol;
use crate::isa::generated::SReg;
use crate::isa::inst::FieldEnum;
use crate::isa::{Form, Inst as MachineInst, Optype, Role, VReg};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{GlobalValueData, Inst, InstructionData, types};
use smallvec::SmallVec;

impl Lower<'_> {
    /// `symbol_value`: a thread or launch value, shared memory, or the address of data.
    pub(super) fn symbol(&mut self, inst: Inst) -> Option<InstOutput> {
        let InstructionData::UnaryGlobalValue { global_value, .. } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let wide = self.type_of(self.func.dfg.first_result(inst)) == types::I64;
        let regs = match self.input.facts.intrinsics.symbol(global_value) {
            Some(GpuSymbol::Special(intrinsic)) => match intrinsic.lowering {
                Lowering::Special(special) => self.special(special),
                _ => return None,
            },
            // Static shared memory starts at offset 0 of the window.
            Some(GpuSymbol::Shared) if wide => {
                self.gpr(Src::wide_imm(u128::from(crate::abi::SHARED_WINDOW), 2))
            }
            Some(GpuSymbol::Shared) => self.gpr(Src::ZERO),
            None => {
                let GlobalValueData::Symbol { name, offset, .. } =
                    &self.func.global_values[global_value]
                else {
                    return None;
                };
                let name = (self.input.names)(name);
                self.data_address(&name, offset.bits())
            }
        };
        Some(SmallVec::from_slice(&[Output::Regs(regs)]))
    }

    /// The absolute address of a symbol: two immediates that linking fills in.
    pub(super) fn data_address(&mut self, name: &str, addend: i64) -> Regs {
        let mut words: SmallVec<[VReg; 2]> = SmallVec::new();
        for kind in [SymbolKind::AbsoluteLow, SymbolKind::AbsoluteHigh] {
            let out = self.operation(Optype::MOV, 0, &[(Role::B, Source::Value(Src::imm(1)))]);
            self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                field: "vb",
                kind,
                name: name.to_string(),
                addend,
            }));
            words.push(out.reg());
        }
        Regs::new(&words)
    }

    fn special(&mut self, special: Special) -> Regs {
        if let Some(base) = launch_size(special) {
            return self.gpr(Src { base, ..Src::ZERO });
        }
        let axis = |a: Axis| a as u32;
        let register = match special {
            Special::Ntid(_) | Special::Nctaid(_) => unreachable!("sizes are constants"),
            Special::Tid(a) => [SReg::SrTidX, SReg::SrTidY, SReg::SrTidZ][axis(a) as usize],
            Special::Ctaid(a) => [SReg::SrCtaidX, SReg::SrCtaidY, SReg::SrCtaidZ][axis(a) as usize],
            Special::LaneId => SReg::SrLaneid,
            Special::WarpId => SReg::SrWarpid,
        };
        self.operation(
            Optype::S2R,
            0,
            &[(Role::Sreg, Source::Number(register.code() as i64))],
        )
        .d()
    }

    /// A call of an intrinsic.
    pub(super) fn intrinsic(&mut self, inst: Inst, intrinsic: &Intrinsic) -> Option<InstOutput> {
        let _args = self.func.dfg.inst_args(inst).to_vec();
        let result = match intrinsic.lowering {
            Lowering::Special(special) => Output::Regs(self.special(special)),
            Lowering::BarSync => {
                self.operation(Optype::BAR, 0, &[]);
                return Some(SmallVec::new());
            }
            Lowering::Trap => {
                self.guarded_trap(
                    PSrc::TRUE,
                    cranelift_codegen::ir::TrapCode::unwrap_user(1)
                        .as_raw()
                        .get(),
                );
                return Some(SmallVec::new());
            }
            _ => return None,
        };
        Some(SmallVec::from_slice(&[result]))
    }

    /// A fault with this code where the predicate holds.
    pub(super) fn guarded_trap(&mut self, p: PSrc, code: u8) {
        let mut trap = MachineInst::<VReg>::new(Form::TRAP_X);
        trap.set_named("code", u64::from(code));
        trap.set_guard(p.reg, p.negated);
        self.builder.emit(trap);
    }
}

/// Where a value that an intrinsic reads stands in constant bank 0.
pub(super) fn launch_constant(intrinsic: &Intrinsic) -> Option<Base> {
    match intrinsic.lowering {
        Lowering::Special(special) => launch_size(special),
        _ => None,
    }
}

fn launch_size(special: Special) -> Option<Base> {
    let offset = match special {
        Special::Ntid(a) => bank0::BLOCK_SIZE + 4 * a as u32,
        Special::Nctaid(a) => bank0::GRID_SIZE + 4 * a as u32,
        _ => return None,
    };
    Some(Base::Constant {
        bank: crate::abi::LAUNCH_BANK,
        offset,
    })
}
