//! Hand-written stand-ins for the generated operand types, in exactly the shape the generator emits. They go when it lands.
#![allow(missing_docs)]

macro_rules! enums {
    ($($name:ident { $($member:ident),* })*) => { $(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($member),* }
        impl $name { pub const ALL: &'static [Self] = &[$(Self::$member),*]; }
    )* };
}

enums! {
    IExt { NoX, X }
    I8Type { S8, U8 }
    I16Type { S16, U16 }
    IType { S32, U32 }
    LEASX32 { NoSx32, Sx32 }
    BSel { B0, B1, B2, B3 }
    CWMode { C, W }
    LOHI { Lo, Hi }
    CompOp { Eq, Ne, Lt, Le, Gt, Ge }
    BoolOp { And, Or, Xor }
    BMBF { Bm, Bf }
    EXBool { Pand, Por }
    SHFDType { S64, U64, S32, U32 }
    PRMTMode { Idx, F4e, B4e, Rc8, Ecl, Ecr, Rc16 }
    I2IDType { S8, U8, S16, U16 }
    I2IPDType { S2, U2, S4, U4, S8, U8, S16, U16 }
    SHFDir { L, R }
    MOVW { W32, W64 }
    HSel2 { H1H0, H0H0, H1H1 }
    HFmtV2 { F16V2, Bf16V2 }
    FPFtz { NoFtz, Ftz }
    FPSat { NoSat, Sat }
    RELU { NoRelu, Relu }
    NAN { NoNan, Nan }
    FCMPOp { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Nan, Num }
    LOPOp { And, Or, Xor }
    BVal { Bm, Bf }
    HSel { H0, H1 }
    MUFUOp { Cos, Sin, Ex2, Lg2, Rcp, Rsq, Sqrt, Tanh }
    MUFUDType { F32, F64, F16V2, Bf16V2, F16, Bf16 }
    FLOSH { NoSh, Sh }
    FPRound { Rn, Rm, Rp, Rz }
    IRound { Rn, Floor, Ceil, Trunc }
    FloatFormat { F16, Bf16, F32, F64 }
    IntFormat { S8, U8, S16, U16, S32, U32, S64, U64 }
}

macro_rules! optypes {
    ($($name:ident { $($m:ident: $mt:ty),* } { $($s:ident: $st:ty),* } { $($r:ident: $rt:ty),* })*) => { $(
        pub mod $name {
            #[allow(unused_imports)]
            use super::*;
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct Modifiers { $(pub $m: $mt),* }
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct Sources { $(pub $s: $st),* }
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct Results { $(pub $r: $rt),* }
        }
    )*
        pub trait Semantics { $(fn $name(&self, m: &$name::Modifiers, s: &$name::Sources) -> $name::Results;)* }
    };
}

optypes! {
    hadd2 { ftz: FPFtz, sat: FPSat, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32 } { d: u32 }
    hmul2 { ftz: FPFtz, sat: FPSat, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32 } { d: u32 }
    hfma2 { ftz: FPFtz, sat: FPSat, relu: RELU, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2, c_neg: bool, c_abs: bool, c_hsel2: HSel2 } { a: u32, b: u32, c: u32 } { d: u32 }
    hmnmx2 { ftz: FPFtz, nan: NAN, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { d: u32 }
    hsetp2 { ftz: FPFtz, lop: LOPOp, cmp: FCMPOp, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { pu: bool, pv: bool }
    hset2 { ftz: FPFtz, lop: LOPOp, cmp: FCMPOp, bval: BVal, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { d: u32 }
    iadd { ext: IExt, a_neg: bool, b_neg: bool } { a: u32, b: u32, pp: bool } { d: u32, pu: bool }
    imad { lohi: LOHI, ext: IExt, itype: IType, c_neg: bool } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    imad_wide { ext: IExt, itype: IType, c_neg: bool } { a: u32, b: u32, c: u64, pp: bool } { d: u64, pu: bool }
    idp2a { lohi: LOHI, afmt: I16Type, bfmt: I8Type } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    idp4a { afmt: I8Type, bfmt: I8Type } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    imul { lohi: LOHI, itype: IType, b_neg: bool } { a: u32, b: u32 } { d: u32 }
    lea { lohi: LOHI, ext: IExt, sx32: LEASX32, a_neg: bool, b_neg: bool } { a: u32, b: u32, c: u32, shiftamt: u32, pp: bool } { d: u32, pu: bool }
    iabs {} { b: u32 } { d: u32 }
    imnmx { itype: IType } { a: u32, b: u32, pp: bool } { d: u32 }
    p2r { bsel: BSel } { a: u32, b: u32, predicates: u8 } { d: u32 }
    r2p { a_bsel: BSel } { a: u32, b: u32, predicates: u8 } { predicates: u8 }
    isetp { ext: IExt, itype: IType, compop: CompOp, boolop: BoolOp } { a: u32, b: u32, pp: bool, pq: bool } { pu: bool, pv: bool }
    iset { ext: IExt, itype: IType, compop: CompOp, boolop: BoolOp, bmbf: BMBF } { a: u32, b: u32, pp: bool, pq: bool } { d: u32 }
    sel {} { a: u32, b: u32, pp: bool } { d: u32 }
    lop3 { exbool: EXBool } { a: u32, b: u32, c: u32, lut: u32, pp: bool } { d: u32, pu: bool }
    plop3 {} { pa: bool, pb: bool, pc: bool, lut: u32 } { pu: bool }
    shf { lohi: LOHI, itype: SHFDType, cwmod: CWMode, direction: SHFDir } { a: u32, b: u32, c: u32 } { d: u32 }
    mov { width: MOVW } { b: u64 } { d: u64 }
    prmt { mode: PRMTMode } { a: u32, b: u32, c: u32 } { d: u32 }
    i2i { dtype: I2IDType } { b: u32 } { d: u32 }
    i2ip { dsttype: I2IPDType } { a: u32, b: u32, c: u32 } { d: u32 }
    mufu { mufuop: MUFUOp, dtype: MUFUDType, b_neg: bool, b_abs: bool, b_hsel: HSel } { b: u32 } { d: u32 }
    popc { b_bitnot: bool } { b: u32 } { d: u32 }
    flo { itype: IType, sh: FLOSH, b_bitnot: bool } { b: u32 } { d: u32 }
    brev {} { b: u32 } { d: u32 }
    bmsk { cwmode: CWMode } { a: u32, b: u32 } { d: u32 }
    sgxt { itype: IType, cwmode: CWMode } { a: u32, b: u32 } { d: u32 }
    fadd { ftz: FPFtz, sat: FPSat, rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32 } { d: u32 }
    fmul { ftz: FPFtz, sat: FPSat, rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32 } { d: u32 }
    ffma { ftz: FPFtz, sat: FPSat, rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool, c_neg: bool, c_abs: bool } { a: u32, b: u32, c: u32 } { d: u32 }
    fmnmx { ftz: FPFtz, nan: NAN, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32, pp: bool } { d: u32 }
    fsetp { ftz: FPFtz, lop: LOPOp, cmp: FCMPOp, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32, pp: bool } { pu: bool, pv: bool }
    fset { ftz: FPFtz, lop: LOPOp, cmp: FCMPOp, bval: BVal, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32, pp: bool } { d: u32 }
    fsel { ftz: FPFtz, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32, pp: bool } { d: u32 }
    dadd { rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u64, b: u64 } { d: u64 }
    dmul { rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u64, b: u64 } { d: u64 }
    dfma { rnd: FPRound, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool, c_neg: bool, c_abs: bool } { a: u64, b: u64, c: u64 } { d: u64 }
    dsetp { lop: LOPOp, cmp: FCMPOp, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u64, b: u64, pp: bool } { pu: bool, pv: bool }
    dmnmx { nan: NAN, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u64, b: u64, pp: bool } { d: u64 }
    f2f { ftz: FPFtz, sat: FPSat, rnd: FPRound, dstfmt: FloatFormat, srcfmt: FloatFormat, b_hsel: HSel, b_neg: bool, b_abs: bool } { b: u64 } { d: u64 }
    f2fp { ftz: FPFtz, rnd: FPRound, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, b_neg: bool, b_abs: bool } { a: u32, b: u32 } { d: u32 }
    f2i { ftz: FPFtz, rnd: IRound, dstfmt: IntFormat, srcfmt: FloatFormat, b_hsel: HSel, b_neg: bool, b_abs: bool } { b: u64 } { d: u64 }
    i2f { rnd: FPRound, dstfmt: FloatFormat, srcfmt: IntFormat } { b: u64 } { d: u64 }
    frnd { ftz: FPFtz, rnd: IRound, fmt: FloatFormat, b_hsel: HSel, b_neg: bool, b_abs: bool } { b: u64 } { d: u64 }
    uldc { width: MOVW } { b: u64 } { d: u64 }
    umov { width: MOVW } { b: u64 } { d: u64 }
    uiadd { width: MOVW, a_neg: bool, b_neg: bool } { a: u64, b: u64 } { d: u64 }
}
