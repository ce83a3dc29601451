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
    Leasx32 { NoSx32, Sx32 }
    BSel { B0, B1, B2, B3 }
    CwMode { C, W }
    Lohi { Lo, Hi }
    CompOp { Eq, Ne, Lt, Le, Gt, Ge }
    BoolOp { And, Or, Xor }
    Bmbf { Bm, Bf }
    ExBool { Pand, Por }
    ShfdType { S64, U64, S32, U32 }
    PrmtMode { Idx, F4e, B4e, Rc8, Ecl, Ecr, Rc16 }
    I2iDType { S8, U8, S16, U16 }
    I2ipDType { S2, U2, S4, U4, S8, U8, S16, U16 }
    ShfDir { L, R }
    Movw { W32, W64 }
    HSel2 { H1H0, H0H0, H1H1 }
    HFmtV2 { F16V2, Bf16V2 }
    FpFtz { NoFtz, Ftz }
    FpSat { NoSat, Sat }
    Relu { NoRelu, Relu }
    Nan { NoNan, Nan }
    FcmpOp { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Nan, Num }
    LopOp { And, Or, Xor }
    BVal { Bm, Bf }
    HSel { H0, H1 }
    MufuOp { Cos, Sin, Ex2, Lg2, Rcp, Rsq, Sqrt, Tanh }
    MufuDType { F32, F64, F16V2, Bf16V2, F16, Bf16 }
    Flosh { NoSh, Sh }
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
        pub trait Semantics { $(fn $name(m: &$name::Modifiers, s: &$name::Sources) -> $name::Results;)* }
    };
}

optypes! {
    hadd2 { ftz: FpFtz, sat: FpSat, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32 } { d: u32 }
    hmul2 { ftz: FpFtz, sat: FpSat, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32 } { d: u32 }
    hfma2 { ftz: FpFtz, sat: FpSat, relu: Relu, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2, c_neg: bool, c_abs: bool, c_hsel2: HSel2 } { a: u32, b: u32, c: u32 } { d: u32 }
    hmnmx2 { ftz: FpFtz, nan: Nan, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { d: u32 }
    hsetp2 { ftz: FpFtz, lop: LopOp, cmp: FcmpOp, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { pu: bool, pv: bool }
    hset2 { ftz: FpFtz, lop: LopOp, cmp: FcmpOp, bval: BVal, hfmt_v2: HFmtV2, a_neg: bool, a_abs: bool, a_hsel2: HSel2, b_neg: bool, b_abs: bool, b_hsel2: HSel2 } { a: u32, b: u32, pp: bool } { d: u32 }
    iadd { ext: IExt, a_neg: bool, b_neg: bool } { a: u32, b: u32, pp: bool } { d: u32, pu: bool }
    imad { lohi: Lohi, ext: IExt, itype: IType, c_neg: bool } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    imad_wide { ext: IExt, itype: IType, c_neg: bool } { a: u32, b: u32, c: u64, pp: bool } { d: u64, pu: bool }
    idp2a { lohi: Lohi, afmt: I16Type, bfmt: I8Type } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    idp4a { afmt: I8Type, bfmt: I8Type } { a: u32, b: u32, c: u32, pp: bool } { d: u32, pu: bool }
    imul { lohi: Lohi, itype: IType, b_neg: bool } { a: u32, b: u32 } { d: u32 }
    lea { lohi: Lohi, ext: IExt, sx32: Leasx32, a_neg: bool, b_neg: bool } { a: u32, b: u32, c: u32, shiftamt: u32, pp: bool } { d: u32, pu: bool }
    iabs {} { b: u32 } { d: u32 }
    imnmx { itype: IType } { a: u32, b: u32, pp: bool } { d: u32 }
    p2r { bsel: BSel } { a: u32, b: u32, predicates: u8 } { d: u32 }
    r2p { a_bsel: BSel } { a: u32, b: u32, predicates: u8 } { predicates: u8 }
    isetp { ext: IExt, itype: IType, compop: CompOp, boolop: BoolOp } { a: u32, b: u32, pp: bool, pq: bool } { pu: bool, pv: bool }
    iset { ext: IExt, itype: IType, compop: CompOp, boolop: BoolOp, bmbf: Bmbf } { a: u32, b: u32, pp: bool, pq: bool } { d: u32 }
    sel {} { a: u32, b: u32, pp: bool } { d: u32 }
    lop3 { exbool: ExBool } { a: u32, b: u32, c: u32, lut: u32, pp: bool } { d: u32, pu: bool }
    plop3 {} { pa: bool, pb: bool, pc: bool, lut: u32 } { pu: bool }
    shf { lohi: Lohi, itype: ShfdType, cwmod: CwMode, direction: ShfDir } { a: u32, b: u32, c: u32 } { d: u32 }
    mov { width: Movw } { b: u64 } { d: u64 }
    prmt { mode: PrmtMode } { a: u32, b: u32, c: u32 } { d: u32 }
    i2i { dtype: I2iDType } { b: u32 } { d: u32 }
    i2ip { dsttype: I2ipDType } { a: u32, b: u32, c: u32 } { d: u32 }
    mufu { mufuop: MufuOp, dtype: MufuDType, b_neg: bool, b_abs: bool, b_hsel: HSel } { b: u32 } { d: u32 }
    popc { b_bitnot: bool } { b: u32 } { d: u32 }
    flo { itype: IType, sh: Flosh, b_bitnot: bool } { b: u32 } { d: u32 }
    brev {} { b: u32 } { d: u32 }
    bmsk { cwmode: CwMode } { a: u32, b: u32 } { d: u32 }
    sgxt { itype: IType, cwmode: CwMode } { a: u32, b: u32 } { d: u32 }
}
