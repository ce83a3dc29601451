//! Calls of `%gpu_NAME`, symbols, traps.

use super::Lower;
use super::source::{Base, InstOutput, Output, Outputs, PSrc, Regs, Source, Src};
use crate::abi::bank0;
use crate::clif::intrinsics::{
    Axis, Clamp, Format, HalfOp, Intrinsic, Lowering, MemoryScope, Mufu, PackType, PermuteMode,
    Shuffle, Special,
};
use crate::clif::resolve::GpuSymbol;
use crate::isa::generated::{
    AtomType, CWMode, FPFtz, FPSat, HFmtV2, I2IPDType, I8Type, I16Type, IType, LOHI, MUFUDType,
    MUFUOp, MemScope, NAN, PRMTMode, RELU, SReg, ShuffleMode, VoteMode, bmsk, hadd2, hfma2, hmnmx2,
    hmul2, i2ip, idp2a, idp4a, membar, mufu, prmt, sgxt, shfl, vote,
};
use crate::isa::inst::FieldEnum;
use crate::isa::{Optype, Role, VReg, build};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{GlobalValueData, Inst, InstructionData, Value, types};
use smallvec::SmallVec;

impl Lower<'_> {
    /// `symbol_value`: a thread or launch value, shared memory, or the address of data.
    pub(super) fn symbol(&mut self, inst: Inst) -> Option<InstOutput> {
        let InstructionData::UnaryGlobalValue { global_value, .. } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let ty = self.type_of(self.func.dfg.first_result(inst));
        let wide = ty == types::I64;
        if !wide && ty != types::I32 {
            return None;
        }
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
            // Data lies in global memory, whose addresses have 64 bits.
            None if !wide => return None,
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
                role: Role::B,
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
        let args: SmallVec<[Value; 4]> = self.func.dfg.inst_args(inst).into();
        let result = match intrinsic.lowering {
            Lowering::Special(special) => Output::Regs(self.special(special)),
            Lowering::Mufu(function, format) => self.special_function(function, format, args[0]),
            Lowering::Half {
                op,
                format,
                flush,
                clamp,
            } => self.packed_half(op, format, flush, clamp, &args),
            Lowering::Dp4a { a_signed, b_signed } => {
                let options = idp4a::Options::new(byte_type(a_signed), byte_type(b_signed));
                self.dot_product(Optype::IDP4A, options.word(), &args)
            }
            Lowering::Dp2a {
                high,
                a_signed,
                b_signed,
            } => {
                let part = if high { LOHI::Hi } else { LOHI::Lo };
                let a = if a_signed { I16Type::S16 } else { I16Type::U16 };
                let options = idp2a::Options::new(part, a, byte_type(b_signed));
                self.dot_product(Optype::IDP2A, options.word(), &args)
            }
            Lowering::Permute(mode) => {
                let options = prmt::Options::new(permute_mode(mode));
                self.words_to_word(Optype::PRMT, options.word(), &args)
            }
            Lowering::Lop3 => {
                // The check of intrinsics' uses has seen the constant.
                let table = self.constant_of(args[3])? as u8;
                let (a, b, c) = (self.src(args[0]), self.src(args[1]), self.src(args[2]));
                Output::Regs(Regs::one(self.logic3(a, b, c, table)))
            }
            Lowering::Bmsk { wrap } => {
                let options = bmsk::Options::new(wrap_mode(wrap));
                self.words_to_word(Optype::BMSK, options.word(), &args)
            }
            Lowering::Sgxt { signed, wrap } => {
                let itype = if signed { IType::S32 } else { IType::U32 };
                let options = sgxt::Options::new(itype, wrap_mode(wrap));
                self.words_to_word(Optype::SGXT, options.word(), &args)
            }
            Lowering::Pack(ty) => {
                let options = i2ip::Options::new(pack_type(ty));
                self.words_to_word(Optype::I2IP, options.word(), &args)
            }
            Lowering::BarSync => {
                // Lanes that wait for each other somewhere may come here one by one.
                let facts = &self.input.facts;
                let apart = |block| facts.uniformity.divergent_block(block);
                if facts.meetings.any_late() && self.current.is_some_and(apart) {
                    let all = Source::Value(Src::imm(u32::MAX));
                    self.operation(Optype::WARPSYNC, 0, &[(Role::B, all)]);
                }
                self.operation(Optype::BAR, 0, &[]);
                return Some(SmallVec::new());
            }
            Lowering::WarpSync => {
                let mask = self.src(args[0]);
                self.operation(Optype::WARPSYNC, 0, &[(Role::B, Source::Value(mask))]);
                return Some(SmallVec::new());
            }
            Lowering::Shuffle(from) => {
                let mode = match from {
                    Shuffle::Index => ShuffleMode::Idx,
                    Shuffle::Up => ShuffleMode::Up,
                    Shuffle::Down => ShuffleMode::Down,
                    Shuffle::Butterfly => ShuffleMode::Bfly,
                };
                let a = self.src(args[0]);
                let b = match self.constant_of(args[1]) {
                    // The instruction reads five bits.
                    Some(lane) => Src::imm(lane as u32 % 32),
                    None => self.src(args[1]),
                };
                let sources = [(Role::A, Source::Value(a)), (Role::B, Source::Value(b))];
                Output::Regs(
                    self.operation(Optype::SHFL, shfl::Options::new(mode).word(), &sources)
                        .d(),
                )
            }
            Lowering::Ballot => {
                let p = self.truth_of(args[0]);
                Output::Regs(self.vote(VoteMode::Any, p).d())
            }
            Lowering::VoteAll => {
                let p = self.truth_of(args[0]);
                Output::Predicate(self.vote(VoteMode::All, p).pu())
            }
            Lowering::VoteAny => {
                let p = self.truth_of(args[0]);
                Output::Predicate(self.vote(VoteMode::Any, p).pu())
            }
            Lowering::ActiveMask => Output::Regs(self.vote(VoteMode::Any, PSrc::TRUE).d()),
            Lowering::MatchAny => {
                let a = self.src(args[0]);
                Output::Regs(
                    self.operation(Optype::MATCH, 0, &[(Role::A, Source::Value(a))])
                        .d(),
                )
            }
            Lowering::MemoryBarrier(scope) => {
                let scope = match scope {
                    MemoryScope::Cta => MemScope::Cta,
                    MemoryScope::Device => MemScope::Gl,
                    MemoryScope::System => MemScope::Sys,
                };
                self.operation(Optype::MEMBAR, membar::Options::new(scope).word(), &[]);
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
            Lowering::AtomicAddF32 => self.atomic_add_float(inst, AtomType::F32, &args),
            Lowering::AtomicAddF16x2 => self.atomic_add_float(inst, AtomType::F16V2, &args),
        };
        Some(SmallVec::from_slice(&[result]))
    }

    /// MUFU. The half of the register that a scalar f16 is in is a modifier.
    fn special_function(&mut self, function: Mufu, format: Format, value: Value) -> Output {
        let function = match function {
            Mufu::Cos => MUFUOp::Cos,
            Mufu::Sin => MUFUOp::Sin,
            Mufu::Ex2 => MUFUOp::Ex2,
            Mufu::Lg2 => MUFUOp::Lg2,
            Mufu::Rcp => MUFUOp::Rcp,
            Mufu::Rsq => MUFUOp::Rsq,
            Mufu::Sqrt => MUFUOp::Sqrt,
            Mufu::Tanh => MUFUOp::Tanh,
        };
        let (dtype, src) = match format {
            Format::F32 => (MUFUDType::F32, self.float_src(value)),
            Format::F16 => (MUFUDType::F16, self.one_half(value)),
            Format::F16x2 => (MUFUDType::F16V2, self.src(value)),
            Format::Bf16 => (MUFUDType::Bf16, self.src(value)),
            Format::Bf16x2 => (MUFUDType::Bf16V2, self.src(value)),
        };
        Output::Regs(self.mufu(function, dtype, src))
    }

    /// MUFU of an operand.
    pub(super) fn mufu(&mut self, function: MUFUOp, dtype: MUFUDType, src: Src) -> Regs {
        let options = mufu::Options::new(function, dtype).word();
        self.operation(Optype::MUFU, options, &[(Role::B, Source::Value(src))])
            .d()
    }

    /// HADD2, HMUL2, HFMA2, HMNMX2 with the modifiers that CLIF cannot express.
    fn packed_half(
        &mut self,
        op: HalfOp,
        format: Format,
        flush: bool,
        clamp: Clamp,
        args: &[Value],
    ) -> Output {
        let brain = format == Format::Bf16x2;
        let ftz = if flush { FPFtz::Ftz } else { FPFtz::NoFtz };
        let sat = if clamp == Clamp::Saturate {
            FPSat::Sat
        } else {
            FPSat::NoSat
        };
        let relu = if clamp == Clamp::Relu {
            RELU::Relu
        } else {
            RELU::NoRelu
        };
        let format = if brain { HFmtV2::Bf16V2 } else { HFmtV2::F16V2 };
        let (optype, options) = match op {
            HalfOp::Add => (Optype::HADD2, hadd2::Options::new(ftz, sat, format).word()),
            HalfOp::Mul => (Optype::HMUL2, hmul2::Options::new(ftz, sat, format).word()),
            HalfOp::Fma => (
                Optype::HFMA2,
                hfma2::Options::new(ftz, sat, format, relu).word(),
            ),
            HalfOp::Min | HalfOp::Max => (
                Optype::HMNMX2,
                hmnmx2::Options::new(ftz, NAN::Nan, format).word(),
            ),
        };
        let mut sources: SmallVec<[(Role, Source); 4]> = SmallVec::new();
        for (&value, role) in args.iter().zip([Role::A, Role::B, Role::C]) {
            let src = if brain {
                self.src(value)
            } else {
                self.half_src(value)
            };
            sources.push((role, Source::Value(src)));
        }
        match op {
            HalfOp::Min => sources.push((Role::Pp, Source::Predicate(PSrc::TRUE))),
            HalfOp::Max => sources.push((Role::Pp, Source::Predicate(PSrc::FALSE))),
            HalfOp::Add | HalfOp::Mul | HalfOp::Fma => {}
        }
        Output::Regs(self.operation(optype, options, &sources).d())
    }

    /// IDP2A, IDP4A without a carry.
    fn dot_product(&mut self, optype: Optype, options: u128, args: &[Value]) -> Output {
        let (a, b, c) = (self.src(args[0]), self.src(args[1]), self.src(args[2]));
        let sources = [
            (Role::A, Source::Value(a)),
            (Role::B, Source::Value(b)),
            (Role::C, Source::Value(c)),
            (Role::Pp, Source::Predicate(PSrc::FALSE)),
        ];
        Output::Regs(self.operation(optype, options, &sources).d())
    }

    /// An operation of two or three words without predicates.
    fn words_to_word(&mut self, optype: Optype, options: u128, args: &[Value]) -> Output {
        let mut sources: SmallVec<[(Role, Source); 3]> = SmallVec::new();
        for (&value, role) in args.iter().zip([Role::A, Role::B, Role::C]) {
            let src = self.src(value);
            sources.push((role, Source::Value(src)));
        }
        Output::Regs(self.operation(optype, options, &sources).d())
    }

    fn vote(&mut self, mode: VoteMode, p: PSrc) -> Outputs {
        self.operation(
            Optype::VOTE,
            vote::Options::new(mode).word(),
            &[(Role::Pp, Source::Predicate(p))],
        )
    }

    /// A fault with this code where the predicate holds.
    pub(super) fn guarded_trap(&mut self, p: PSrc, code: u8) {
        let mut trap = build::trap_x(code);
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

fn byte_type(signed: bool) -> I8Type {
    if signed { I8Type::S8 } else { I8Type::U8 }
}

fn wrap_mode(wrap: bool) -> CWMode {
    if wrap { CWMode::W } else { CWMode::C }
}

fn permute_mode(mode: PermuteMode) -> PRMTMode {
    match mode {
        PermuteMode::Idx => PRMTMode::Idx,
        PermuteMode::F4e => PRMTMode::F4e,
        PermuteMode::B4e => PRMTMode::B4e,
        PermuteMode::Rc8 => PRMTMode::Rc8,
        PermuteMode::Ecl => PRMTMode::Ecl,
        PermuteMode::Ecr => PRMTMode::Ecr,
        PermuteMode::Rc16 => PRMTMode::Rc16,
    }
}

fn pack_type(ty: PackType) -> I2IPDType {
    match ty {
        PackType::S2 => I2IPDType::S2,
        PackType::U2 => I2IPDType::U2,
        PackType::S4 => I2IPDType::S4,
        PackType::U4 => I2IPDType::U4,
        PackType::S8 => I2IPDType::S8,
        PackType::U8 => I2IPDType::U8,
        PackType::S16 => I2IPDType::S16,
        PackType::U16 => I2IPDType::U16,
    }
}
