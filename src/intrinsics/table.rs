//! The rows, and constructors that say in one word what a group of rows has in common.

use super::{Constants, Effect, Intrinsic, Lowering, Uniformity};
use crate::abi::bank0;
use crate::isa::generated::{
    AtomType, CWMode, FPFtz, FPSat, HFmtV2, I2IPDType, I8Type, I16Type, IType, LOHI, MUFUDType,
    MUFUOp, MemScope, PRMTMode, RELU, SReg, ShuffleMode, VoteMode,
};
use cranelift_codegen::ir::Type;
use cranelift_codegen::ir::types::{F16, F16X2, F32, I8, I16, I32, I64};

/// A row without a constant parameter.
const fn row(
    name: &'static str,
    params: &'static [Type],
    result: Option<Type>,
    effect: Effect,
    uniformity: Uniformity,
    lowering: Lowering,
    reference: &'static str,
) -> Intrinsic {
    Intrinsic {
        name,
        params,
        result,
        any_type: false,
        constant: None,
        effect,
        uniformity,
        lowering,
        reference,
    }
}

/// A thread or launch value.
const fn special(
    name: &'static str,
    uniformity: Uniformity,
    register: SReg,
    reference: &'static str,
) -> Intrinsic {
    row(
        name,
        &[],
        Some(I32),
        Effect::Pure,
        uniformity,
        Lowering::Special(register),
        reference,
    )
}

/// A pure function of its operands.
const fn pure(
    name: &'static str,
    params: &'static [Type],
    result: Type,
    lowering: Lowering,
    reference: &'static str,
) -> Intrinsic {
    row(
        name,
        params,
        Some(result),
        Effect::Pure,
        Uniformity::AsOperands,
        lowering,
        reference,
    )
}

/// An operation on the set of active lanes.
const fn convergent(
    name: &'static str,
    params: &'static [Type],
    result: Option<Type>,
    uniformity: Uniformity,
    lowering: Lowering,
    reference: &'static str,
) -> Intrinsic {
    row(
        name,
        params,
        result,
        Effect::Convergent,
        uniformity,
        lowering,
        reference,
    )
}

const H2: &[Type] = &[F16X2, F16X2];
const H3: &[Type] = &[F16X2, F16X2, F16X2];
const W2: &[Type] = &[I32, I32];
const W3: &[Type] = &[I32, I32, I32];

/// All intrinsics. Names without [`super::PREFIX`].
#[rustfmt::skip]
pub static TABLE: &[Intrinsic] = &{
    use CWMode::{C as Clamp, W as Wrap};
    use FPFtz::{Ftz, NoFtz};
    use FPSat::{NoSat, Sat};
    use HFmtV2::{Bf16V2, F16V2};
    use I8Type::{S8, U8};
    use I16Type::{S16, U16};
    use LOHI::{Hi, Lo};
    use Lowering as L;
    use MUFUDType as F;
    use RELU::{NoRelu, Relu};
    use SReg::{
        SrCtaidX, SrCtaidY, SrCtaidZ, SrLaneid, SrNctaidX, SrNctaidY, SrNctaidZ, SrNtidX, SrNtidY,
        SrNtidZ, SrTidX, SrTidY, SrTidZ, SrWarpid,
    };
    use Uniformity::{Divergent, Uniform};
    [
        special("tid_x", Divergent, SrTidX, "x index of the thread in its block"),
        special("tid_y", Divergent, SrTidY, "y index of the thread in its block"),
        special("tid_z", Divergent, SrTidZ, "z index of the thread in its block"),
        special("ntid_x", Uniform, SrNtidX, "threads of a block along x"),
        special("ntid_y", Uniform, SrNtidY, "threads of a block along y"),
        special("ntid_z", Uniform, SrNtidZ, "threads of a block along z"),
        special("ctaid_x", Uniform, SrCtaidX, "x index of the block in the grid"),
        special("ctaid_y", Uniform, SrCtaidY, "y index of the block in the grid"),
        special("ctaid_z", Uniform, SrCtaidZ, "z index of the block in the grid"),
        special("nctaid_x", Uniform, SrNctaidX, "blocks of the grid along x"),
        special("nctaid_y", Uniform, SrNctaidY, "blocks of the grid along y"),
        special("nctaid_z", Uniform, SrNctaidZ, "blocks of the grid along z"),
        special("laneid", Divergent, SrLaneid, "lane in the warp, 0..31"),
        row(
            "dynamic_shared",
            &[],
            Some(I32),
            Effect::Pure,
            Uniform,
            L::LaunchConstant(bank0::DYNAMIC_SHARED),
            "bytes of shared memory behind the kernel's static ones, as the launch gives them",
        ),
        special("warpid", Uniform, SrWarpid, "warp in the block: (tid_x + ntid_x*(tid_y + ntid_y*tid_z)) / 32"),

        pure("ex2_f32", &[F32], F32, L::Mufu(MUFUOp::Ex2, F::F32), "2^a, approximate"),
        pure("lg2_f32", &[F32], F32, L::Mufu(MUFUOp::Lg2, F::F32), "log2(a), approximate"),
        pure("rcp_f32", &[F32], F32, L::Mufu(MUFUOp::Rcp, F::F32), "1/a, approximate"),
        pure("rsq_f32", &[F32], F32, L::Mufu(MUFUOp::Rsq, F::F32), "1/sqrt(a), approximate"),
        pure("sqrt_f32", &[F32], F32, L::Mufu(MUFUOp::Sqrt, F::F32), "sqrt(a), approximate (CLIF sqrt is exact)"),
        pure("sin_f32", &[F32], F32, L::Mufu(MUFUOp::Sin, F::F32), "sin(a), approximate"),
        pure("cos_f32", &[F32], F32, L::Mufu(MUFUOp::Cos, F::F32), "cos(a), approximate"),
        pure("tanh_f32", &[F32], F32, L::Mufu(MUFUOp::Tanh, F::F32), "tanh(a), approximate"),
        pure("ex2_f16", &[F16], F16, L::Mufu(MUFUOp::Ex2, F::F16), "2^a, approximate"),
        pure("tanh_f16", &[F16], F16, L::Mufu(MUFUOp::Tanh, F::F16), "tanh(a), approximate"),
        pure("ex2_f16x2", &[F16X2], F16X2, L::Mufu(MUFUOp::Ex2, F::F16V2), "2^a per half, approximate"),
        pure("tanh_f16x2", &[F16X2], F16X2, L::Mufu(MUFUOp::Tanh, F::F16V2), "tanh(a) per half, approximate"),
        pure("ex2_bf16", &[I16], I16, L::Mufu(MUFUOp::Ex2, F::Bf16), "2^a of the bfloat16 pattern a, approximate"),
        pure("tanh_bf16", &[I16], I16, L::Mufu(MUFUOp::Tanh, F::Bf16), "tanh(a) of the bfloat16 pattern a, \
         approximate"),
        pure("ex2_bf16x2", &[I32], I32, L::Mufu(MUFUOp::Ex2, F::Bf16V2), "2^a per bfloat16 half, approximate"),
        pure("tanh_bf16x2", &[I32], I32, L::Mufu(MUFUOp::Tanh, F::Bf16V2), "tanh(a) per bfloat16 half, approximate"),

        pure("dp4a_s8s8", W3, I32, L::Dp4a(S8, S8), "c + sum over 4 bytes a[i]*b[i], mod 2^32"),
        pure("dp4a_u8u8", W3, I32, L::Dp4a(U8, U8), "c + sum over 4 bytes a[i]*b[i], mod 2^32"),
        pure("dp4a_s8u8", W3, I32, L::Dp4a(S8, U8), "c + sum over 4 bytes a[i]*b[i], mod 2^32"),
        pure("dp4a_u8s8", W3, I32, L::Dp4a(U8, S8), "c + sum over 4 bytes a[i]*b[i], mod 2^32"),
        pure("dp2a_lo_s16s8", W3, I32, L::Dp2a(Lo, S16, S8), "c + a.h0*b.b0 + a.h1*b.b1, mod 2^32"),
        pure("dp2a_lo_u16u8", W3, I32, L::Dp2a(Lo, U16, U8), "c + a.h0*b.b0 + a.h1*b.b1, mod 2^32"),
        pure("dp2a_lo_s16u8", W3, I32, L::Dp2a(Lo, S16, U8), "c + a.h0*b.b0 + a.h1*b.b1, mod 2^32"),
        pure("dp2a_lo_u16s8", W3, I32, L::Dp2a(Lo, U16, S8), "c + a.h0*b.b0 + a.h1*b.b1, mod 2^32"),
        pure("dp2a_hi_s16s8", W3, I32, L::Dp2a(Hi, S16, S8), "c + a.h0*b.b2 + a.h1*b.b3, mod 2^32"),
        pure("dp2a_hi_u16u8", W3, I32, L::Dp2a(Hi, U16, U8), "c + a.h0*b.b2 + a.h1*b.b3, mod 2^32"),
        pure("dp2a_hi_s16u8", W3, I32, L::Dp2a(Hi, S16, U8), "c + a.h0*b.b2 + a.h1*b.b3, mod 2^32"),
        pure("dp2a_hi_u16s8", W3, I32, L::Dp2a(Hi, U16, S8), "c + a.h0*b.b2 + a.h1*b.b3, mod 2^32"),

        pure("prmt", W3, I32, L::Permute(PRMTMode::Idx), "4 bytes of b:a chosen by the nibbles of c, bit 3 replicates \
         the sign"),
        pure("prmt_f4e", W3, I32, L::Permute(PRMTMode::F4e), "4 bytes of b:a from byte c mod 4 upwards"),
        pure("prmt_b4e", W3, I32, L::Permute(PRMTMode::B4e), "4 bytes of b:a from byte c mod 4 downwards, wrapping"),
        pure("prmt_rc8", W3, I32, L::Permute(PRMTMode::Rc8), "byte c mod 4 of a, four times"),
        pure("prmt_ecl", W3, I32, L::Permute(PRMTMode::Ecl), "byte i is a's byte max(i, c mod 4)"),
        pure("prmt_ecr", W3, I32, L::Permute(PRMTMode::Ecr), "byte i is a's byte min(i, c mod 4)"),
        pure("prmt_rc16", W3, I32, L::Permute(PRMTMode::Rc16), "half c mod 2 of a, twice"),
        Intrinsic {
            any_type: true,
            constant: Some((3, Constants::UpTo(255))),
            ..pure("lop3", &[I32, I32, I32, I32], I32, L::Lop3, "per bit: bit (a<<2 | b<<1 | c) of the constant d in \
             0..255; instead of i32, a, b, c and the result may have any type of at most 128 bits")
        },
        Intrinsic {
            constant: Some((1, Constants::PowersOfTwo)),
            ..pure("assume_aligned", &[I64, I32], I64, L::Aligned, "a, with the promise that it is a multiple of the \
             constant b, a power of two")
        },
        pure("bmsk", W2, I32, L::Bmsk(Clamp), "b ones from bit a upwards, cut at bit 31"),
        pure("bmsk_wrap", W2, I32, L::Bmsk(Wrap), "b mod 32 ones from bit a mod 32 upwards, cut at bit 31"),
        pure("sgxt_s32", W2, I32, L::Sgxt(Clamp, IType::S32), "low min(b, 32) bits of a, sign-extended; b = 0 gives 0"),
        pure("sgxt_u32", W2, I32, L::Sgxt(Clamp, IType::U32), "low min(b, 32) bits of a, zero-extended"),
        pure("sgxt_wrap_s32", W2, I32, L::Sgxt(Wrap, IType::S32), "low b mod 32 bits of a, sign-extended"),
        pure("sgxt_wrap_u32", W2, I32, L::Sgxt(Wrap, IType::U32), "low b mod 32 bits of a, zero-extended"),
        pure("i2ip_s2", W3, I32, L::Pack(I2IPDType::S2), "c<<4 | sat_s2(a)<<2 | sat_s2(b)"),
        pure("i2ip_u2", W3, I32, L::Pack(I2IPDType::U2), "c<<4 | sat_u2(a)<<2 | sat_u2(b)"),
        pure("i2ip_s4", W3, I32, L::Pack(I2IPDType::S4), "c<<8 | sat_s4(a)<<4 | sat_s4(b)"),
        pure("i2ip_u4", W3, I32, L::Pack(I2IPDType::U4), "c<<8 | sat_u4(a)<<4 | sat_u4(b)"),
        pure("i2ip_s8", W3, I32, L::Pack(I2IPDType::S8), "c<<16 | sat_s8(a)<<8 | sat_s8(b)"),
        pure("i2ip_u8", W3, I32, L::Pack(I2IPDType::U8), "c<<16 | sat_u8(a)<<8 | sat_u8(b)"),
        pure("i2ip_s16", W3, I32, L::Pack(I2IPDType::S16), "sat_s16(a)<<16 | sat_s16(b)"),
        pure("i2ip_u16", W3, I32, L::Pack(I2IPDType::U16), "sat_u16(a)<<16 | sat_u16(b)"),

        pure("hadd2_f16x2_sat", H2, F16X2, L::Hadd2(F16V2, NoFtz, Sat), "a + b per half, to [0, 1]"),
        pure("hadd2_f16x2_ftz", H2, F16X2, L::Hadd2(F16V2, Ftz, NoSat), "a + b per half, subnormals flushed"),
        pure("hadd2_f16x2_ftz_sat", H2, F16X2, L::Hadd2(F16V2, Ftz, Sat), "a + b per half, subnormals flushed, to [0, \
         1]"),
        pure("hmul2_f16x2_sat", H2, F16X2, L::Hmul2(F16V2, NoFtz, Sat), "a * b per half, to [0, 1]"),
        pure("hmul2_f16x2_ftz", H2, F16X2, L::Hmul2(F16V2, Ftz, NoSat), "a * b per half, subnormals flushed"),
        pure("hmul2_f16x2_ftz_sat", H2, F16X2, L::Hmul2(F16V2, Ftz, Sat), "a * b per half, subnormals flushed, to [0, \
         1]"),
        pure("hfma2_f16x2_sat", H3, F16X2, L::Hfma2(F16V2, NoFtz, NoRelu, Sat), "a*b + c per half, one rounding, to \
         [0, 1]"),
        pure("hfma2_f16x2_relu", H3, F16X2, L::Hfma2(F16V2, NoFtz, Relu, NoSat), "a*b + c per half, one rounding, \
         negative to +0"),
        pure("hfma2_f16x2_ftz", H3, F16X2, L::Hfma2(F16V2, Ftz, NoRelu, NoSat), "a*b + c per half, one rounding, \
         subnormals flushed"),
        pure("hfma2_f16x2_ftz_sat", H3, F16X2, L::Hfma2(F16V2, Ftz, NoRelu, Sat), "a*b + c per half, subnormals \
         flushed, to [0, 1]"),
        pure("hfma2_f16x2_ftz_relu", H3, F16X2, L::Hfma2(F16V2, Ftz, Relu, NoSat), "a*b + c per half, subnormals \
         flushed, negative to +0"),
        pure("hadd2_bf16", W2, I32, L::Hadd2(Bf16V2, NoFtz, NoSat), "a + b per bfloat16 half"),
        pure("hmul2_bf16", W2, I32, L::Hmul2(Bf16V2, NoFtz, NoSat), "a * b per bfloat16 half"),
        pure("hfma2_bf16", W3, I32, L::Hfma2(Bf16V2, NoFtz, NoRelu, NoSat), "a*b + c per bfloat16 half, one rounding"),
        pure("hfma2_bf16_relu", W3, I32, L::Hfma2(Bf16V2, NoFtz, Relu, NoSat), "a*b + c per bfloat16 half, one \
         rounding, negative to +0"),
        pure("hmin2_bf16", W2, I32, L::Hmin2(Bf16V2), "minimum per bfloat16 half, NaN wins, -0 < +0"),
        pure("hmax2_bf16", W2, I32, L::Hmax2(Bf16V2), "maximum per bfloat16 half, NaN wins, -0 < +0"),

        convergent("bar_sync", &[], None, Uniform, L::BarSync, "waits for all threads of the block, orders shared and \
         global memory among them"),
        convergent("warp_sync", &[I32], None, Uniform, L::WarpSync, "waits for the lanes of the mask a, this one among \
         them; orders shared and global memory among them"),
        convergent("shfl_idx", W2, Some(I32), Divergent, L::Shuffle(ShuffleMode::Idx), "a of lane b mod 32"),
        convergent("shfl_up", W2, Some(I32), Divergent, L::Shuffle(ShuffleMode::Up), "a of the lane b below, own a if \
         there is none"),
        convergent("shfl_down", W2, Some(I32), Divergent, L::Shuffle(ShuffleMode::Down), "a of the lane b above, own a \
         if there is none"),
        convergent("shfl_bfly", W2, Some(I32), Divergent, L::Shuffle(ShuffleMode::Bfly), "a of lane (own lane xor b)"),
        convergent("ballot", &[I8], Some(I32), Uniform, L::Ballot, "mask of the active lanes with a != 0"),
        convergent("vote_all", &[I8], Some(I8), Uniform, L::Vote(VoteMode::All), "1 if a != 0 in every active lane, \
         else 0"),
        convergent("vote_any", &[I8], Some(I8), Uniform, L::Vote(VoteMode::Any), "1 if a != 0 in some active lane, \
         else 0"),
        convergent("activemask", &[], Some(I32), Uniform, L::ActiveMask, "mask of the active lanes"),
        convergent("match_any", &[I32], Some(I32), Divergent, L::MatchAny, "mask of the active lanes with the same a"),

        row("membar_cta", &[], None, Effect::Memory, Uniform, L::MemoryBarrier(MemScope::Cta), "orders memory within \
         the block"),
        row("membar_gl", &[], None, Effect::Memory, Uniform, L::MemoryBarrier(MemScope::Gl), "orders memory within the \
         device"),
        row("membar_sys", &[], None, Effect::Memory, Uniform, L::MemoryBarrier(MemScope::Sys), "orders memory towards \
         the host too"),
        row("trap", &[], None, Effect::Trap, Uniform, L::Trap, "ends the kernel with a fault"),
        Intrinsic {
            constant: Some((0, Constants::UpTo(255))),
            ..row("unroll", &[I32], None, Effect::Hint, Uniform, L::Unroll, "the loop that begins with the block of \
             the call is unrolled so many times as the constant a in 0..255 says, if its turns can be counted; 0 or 1: \
            never. unroll=off is stronger")
        },
        row("atomic_add_f32", &[I64, F32], Some(F32), Effect::Memory, Divergent, L::AtomicAdd(AtomType::F32), "old \
         [a]; [a] := [a] + b, atomically, device scope"),
        row("atomic_add_f16x2", &[I64, F16X2], Some(F16X2), Effect::Memory, Divergent, L::AtomicAdd(AtomType::F16V2),
         "old [a]; [a] := [a] + b per half, each half atomically, device scope"),
    ]
};
