//! Which lane loop an instruction gets when it is decoded.
//!
//! Modifiers that are common have loops of their own, made from the same semantics with the modifiers as constants; all
//! others have the loop that looks at them. Truth tables and byte selectors, which are immediates nearly always, are
//! known to their loops as one number for all lanes.

use crate::isa::Inst;
use crate::isa::generated::*;
use crate::isa::register::PReg;
use crate::isa::semantics::PureOperation;
use crate::sim::decode::host::{Detected, Host, Portable, Simd};
use crate::sim::decode::lane_loop::{Any, Choice, LaneLoop, chosen};
use crate::sim::semantics::Reference;
use crate::sim::warp::registers::{Operands, PT};

/// How instructions are decoded.
#[derive(Clone, Copy, Debug)]
pub struct Decoding {
    /// What pure operations mean.
    pub semantics: Reference,
    /// What their loops may use.
    pub host: Detected,
    /// Whether common modifiers have loops of their own in portable code: on x86-64 that is the reference.
    #[cfg(not(target_arch = "x86_64"))]
    specialised: bool,
}

impl Decoding {
    /// For this host.
    pub fn new(semantics: Reference, simd: Simd) -> Decoding {
        Decoding {
            semantics,
            host: Detected::new(simd),
            #[cfg(not(target_arch = "x86_64"))]
            specialised: simd != Simd::Portable,
        }
    }
}

impl From<Reference> for Decoding {
    fn from(semantics: Reference) -> Self {
        Decoding::new(semantics, Simd::Auto)
    }
}

/// An instruction that is being decoded, and where its operands are.
#[derive(Clone, Copy)]
pub struct Resolving<'a> {
    /// It.
    pub inst: &'a Inst<PReg>,
    /// Its operands.
    pub operands: &'a Operands,
    /// Those of its sources that are immediates.
    pub immediates: &'a [(Role, u32)],
}

impl Resolving<'_> {
    /// Whether a result in a predicate is read by anyone.
    fn sets_predicates(self) -> bool {
        [Role::Pu, Role::Pv].into_iter().any(|role| {
            let operand = self.operands[role as usize];
            operand.words != 0 && usize::from(operand.column) != PT
        })
    }

    /// The value of an operand that is an immediate.
    fn immediate(self, role: Role) -> Option<u32> {
        let mut all = self.immediates.iter();
        all.find(|known| known.0 as usize == role as usize)
            .map(|known| known.1)
    }
}

/// What is known of an instruction: where it is, and the host.
#[derive(Clone, Copy)]
struct Context<'a, H> {
    at: Resolving<'a>,
    semantics: Reference,
    host: H,
}

impl<H: Host> Context<'_, H> {
    /// A loop of an operation that has results in registers alone.
    fn plain<O: PureOperation + 'static>(self, choice: impl Choice<O>) -> Box<dyn LaneLoop> {
        chosen::<O, _, H, false>(choice, self.host, self.semantics)
    }

    /// A loop of an operation whose results in predicates are often read by nobody.
    fn both<O: PureOperation + 'static>(self, choice: impl Choice<O>) -> Box<dyn LaneLoop> {
        if self.at.sets_predicates() {
            chosen::<O, _, H, true>(choice, self.host, self.semantics)
        } else {
            chosen::<O, _, H, false>(choice, self.host, self.semantics)
        }
    }

    /// A loop of an operation that has results in predicates alone.
    fn predicates<O: PureOperation + 'static>(self, choice: impl Choice<O>) -> Box<dyn LaneLoop> {
        chosen::<O, _, H, true>(choice, self.host, self.semantics)
    }
}

/// Returns the loop of one combination of modifiers, and of a source that is a constant, if the instruction has these.
macro_rules! choose {
    (
        $context:expr, $results:ident, $module:ident { $($field:ident: $value:expr),* } $(, $role:ident = $constant:expr)?
    ) => {
        let modifiers = $module::Modifiers { $($field: $value),* };
        let found = <$module::Operation as PureOperation>::decode($context.at.inst.form(), $context.at.inst.word());
        if found == modifiers $(&& $context.at.immediate(Role::$role) == Some($constant))? {
            struct Constant;
            impl Choice<$module::Operation> for Constant {
                const WHOLE: bool = true;
                #[inline(always)]
                fn modifiers(&self) -> $module::Modifiers {
                    $module::Modifiers { $($field: $value),* }
                }
                #[inline(always)]
                fn semantics(&self, reference: Reference) -> Reference {
                    // Only MUFU is perturbed, and then it has no loops of its own.
                    Reference { perturbation: None, ..reference }
                }
                $(
                    #[inline(always)]
                    fn source(&self, role: Role) -> Option<u32> {
                        (role as usize == Role::$role as usize).then_some($constant)
                    }
                )?
            }
            return Some($context.$results(Constant));
        }
    };
}

/// Any modifiers, and one source that is a number known when the instruction is decoded.
struct Known<O: PureOperation, const ROLE: usize> {
    modifiers: O::Modifiers,
    value: u32,
}

impl<O: PureOperation + 'static, const ROLE: usize> Choice<O> for Known<O, ROLE> {
    const WHOLE: bool = true;

    #[inline(always)]
    fn modifiers(&self) -> O::Modifiers {
        self.modifiers
    }

    #[inline(always)]
    fn source(&self, role: Role) -> Option<u32> {
        (role as usize == ROLE).then_some(self.value)
    }
}

/// The loop of a choice whose modifiers are looked at when it runs, with a known source.
macro_rules! known {
    ($context:expr, $results:ident, $module:ident, $role:ident) => {
        if let Some(value) = $context.at.immediate(Role::$role) {
            let inst = $context.at.inst;
            return Some($context.$results(
                Known::<$module::Operation, { Role::$role as usize }> {
                    modifiers: <$module::Operation as PureOperation>::decode(
                        inst.form(),
                        inst.word(),
                    ),
                    value,
                },
            ));
        }
    };
}

fn iadd<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(
        c,
        both,
        iadd {
            a_neg: false,
            ext: IExt::NoX,
            b_neg: false
        }
    );
    choose!(
        c,
        both,
        iadd {
            a_neg: true,
            ext: IExt::NoX,
            b_neg: false
        }
    );
    choose!(
        c,
        both,
        iadd {
            a_neg: false,
            ext: IExt::NoX,
            b_neg: true
        }
    );
    choose!(
        c,
        both,
        iadd {
            a_neg: false,
            ext: IExt::X,
            b_neg: false
        }
    );
    choose!(
        c,
        both,
        iadd {
            a_neg: false,
            ext: IExt::X,
            b_neg: true
        }
    );
    None
}

fn imad<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(
        c,
        both,
        imad {
            lohi: LOHI::Lo,
            ext: IExt::NoX,
            itype: IType::U32,
            c_neg: false
        }
    );
    choose!(
        c,
        both,
        imad {
            lohi: LOHI::Lo,
            ext: IExt::NoX,
            itype: IType::S32,
            c_neg: false
        }
    );
    choose!(
        c,
        both,
        imad {
            lohi: LOHI::Lo,
            ext: IExt::NoX,
            itype: IType::U32,
            c_neg: true
        }
    );
    choose!(
        c,
        both,
        imad {
            lohi: LOHI::Lo,
            ext: IExt::X,
            itype: IType::U32,
            c_neg: false
        }
    );
    None
}

fn imad_wide<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(
        c,
        both,
        imad_wide {
            ext: IExt::NoX,
            itype: IType::U32,
            c_neg: false
        }
    );
    choose!(
        c,
        both,
        imad_wide {
            ext: IExt::NoX,
            itype: IType::S32,
            c_neg: false
        }
    );
    choose!(
        c,
        both,
        imad_wide {
            ext: IExt::X,
            itype: IType::U32,
            c_neg: false
        }
    );
    None
}

fn imul<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(
        c,
        plain,
        imul {
            lohi: LOHI::Lo,
            itype: IType::U32,
            b_neg: false
        }
    );
    choose!(
        c,
        plain,
        imul {
            lohi: LOHI::Lo,
            itype: IType::S32,
            b_neg: false
        }
    );
    choose!(
        c,
        plain,
        imul {
            lohi: LOHI::Hi,
            itype: IType::U32,
            b_neg: false
        }
    );
    choose!(
        c,
        plain,
        imul {
            lohi: LOHI::Hi,
            itype: IType::S32,
            b_neg: false
        }
    );
    None
}

fn imnmx<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(c, plain, imnmx { itype: IType::U32 });
    choose!(c, plain, imnmx { itype: IType::S32 });
    None
}

fn lea<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! part {
        ($lohi:ident $ext:ident $sx32:ident) => {
            choose!(
                c,
                both,
                lea {
                    a_neg: false,
                    lohi: LOHI::$lohi,
                    ext: IExt::$ext,
                    sx32: LEASX32::$sx32,
                    b_neg: false
                }
            );
        };
    }
    part!(Lo NoX NoSx32);
    part!(Hi X NoSx32);
    part!(Hi X Sx32);
    None
}

fn lop3<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! tables {
        ($($table:literal)*) => {
            $(choose!(c, both, lop3 { exbool: EXBool::Pand }, Lut = $table);)*
        };
    }
    macro_rules! both_ways {
        ($($table:literal)*) => {
            $(choose!(c, both, lop3 { exbool: EXBool::Por }, Lut = $table);)*
        };
    }
    // With a, b and c as 0xf0, 0xcc and 0xaa: and, or, exclusive or, and not, not, exclusive or of three, selection.
    tables!(0xc0 0xfc 0x3c 0x30 0x0f 0x96 0xca 0xe2);
    both_ways!(0xc0 0xfc 0x3c);
    known!(c, both, lop3, Lut);
    None
}

fn shf<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! types {
        ($cwmod:ident $($itype:ident)*) => {
            $(
                choose!(c, plain, shf {
                    lohi: LOHI::Lo, itype: SHFDType::$itype, cwmod: CWMode::$cwmod, direction: SHFDir::L
                });
                choose!(c, plain, shf {
                    lohi: LOHI::Lo, itype: SHFDType::$itype, cwmod: CWMode::$cwmod, direction: SHFDir::R
                });
                choose!(c, plain, shf {
                    lohi: LOHI::Hi, itype: SHFDType::$itype, cwmod: CWMode::$cwmod, direction: SHFDir::L
                });
                choose!(c, plain, shf {
                    lohi: LOHI::Hi, itype: SHFDType::$itype, cwmod: CWMode::$cwmod, direction: SHFDir::R
                });
            )*
        };
    }
    types!(W U32 S32 U64 S64);
    types!(C U32 S32);
    None
}

fn mov<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(c, plain, mov { width: MOVW::W32 });
    choose!(c, plain, mov { width: MOVW::W64 });
    None
}

fn prmt<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    known!(c, plain, prmt, C);
    choose!(
        c,
        plain,
        prmt {
            mode: PRMTMode::Idx
        }
    );
    None
}

fn sel<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(c, plain, sel {});
    None
}

fn plop3<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    known!(c, predicates, plop3, Lut);
    None
}

fn isetp<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! comparisons {
        ($($compop:ident)*) => {
            $(
                choose!(c, predicates, isetp {
                    ext: IExt::NoX, itype: IType::S32, compop: CompOp::$compop, boolop: BoolOp::And
                });
                choose!(c, predicates, isetp {
                    ext: IExt::NoX, itype: IType::U32, compop: CompOp::$compop, boolop: BoolOp::And
                });
                choose!(c, predicates, isetp {
                    ext: IExt::X, itype: IType::S32, compop: CompOp::$compop, boolop: BoolOp::And
                });
                choose!(c, predicates, isetp {
                    ext: IExt::X, itype: IType::U32, compop: CompOp::$compop, boolop: BoolOp::And
                });
            )*
        };
    }
    comparisons!(Eq Ne Lt Le Gt Ge);
    None
}

fn fsetp<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! comparisons {
        ($($cmp:ident)*) => {
            $(choose!(c, predicates, fsetp {
                ftz: FPFtz::NoFtz, a_neg: false, a_abs: false, lop: LOPOp::And, cmp: FCMPOp::$cmp, b_neg: false,
                b_abs: false
            });)*
        };
    }
    comparisons!(Eq Ne Lt Le Gt Ge Nan Num Equ Neu Ltu Leu Gtu Geu);
    None
}

fn fadd<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! signs {
        ($($a:literal $b:literal;)*) => {
            $(choose!(c, plain, fadd {
                a_neg: $a, a_abs: false, ftz: FPFtz::NoFtz, sat: FPSat::NoSat, rnd: FPRound::Rn, b_neg: $b, b_abs: false
            });)*
        };
    }
    signs!(false false; true false; false true;);
    None
}

fn fmul<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! signs {
        ($($a:literal $b:literal;)*) => {
            $(choose!(c, plain, fmul {
                a_neg: $a, a_abs: false, ftz: FPFtz::NoFtz, sat: FPSat::NoSat, rnd: FPRound::Rn, b_neg: $b, b_abs: false
            });)*
        };
    }
    signs!(false false; true false; false true;);
    None
}

fn ffma<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! signs {
        ($($a:literal $b:literal $c:literal;)*) => {
            $(choose!(c, plain, ffma {
                a_neg: $a, a_abs: false, ftz: FPFtz::NoFtz, sat: FPSat::NoSat, rnd: FPRound::Rn, b_neg: $b,
                b_abs: false, c_neg: $c, c_abs: false
            });)*
        };
    }
    signs!(false false false; false false true; true false false; false true false;);
    None
}

fn fmnmx<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! nans {
        ($($nan:ident)*) => {
            $(choose!(c, plain, fmnmx {
                ftz: FPFtz::NoFtz, nan: NAN::$nan, a_neg: false, a_abs: false, b_neg: false, b_abs: false
            });)*
        };
    }
    nans!(Nan NoNan);
    None
}

fn i2f<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    choose!(
        c,
        plain,
        i2f {
            dstfmt: FloatFormat::F32,
            srcfmt: IntFormat::U32,
            rnd: FPRound::Rn
        }
    );
    choose!(
        c,
        plain,
        i2f {
            dstfmt: FloatFormat::F32,
            srcfmt: IntFormat::S32,
            rnd: FPRound::Rn
        }
    );
    None
}

fn f2i<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    macro_rules! types {
        ($($dstfmt:ident)*) => {
            $(choose!(c, plain, f2i {
                dstfmt: IntFormat::$dstfmt, srcfmt: FloatFormat::F32, rnd: IRound::Trunc, ftz: FPFtz::NoFtz,
                b_neg: false, b_abs: false, b_hsel: HSel::H0
            });)*
        };
    }
    types!(U32 S32);
    None
}

fn mufu<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    if c.semantics.perturbation.is_some() {
        return None;
    }
    macro_rules! functions {
        ($($function:ident)*) => {
            $(choose!(c, plain, mufu {
                mufuop: MUFUOp::$function, dtype: MUFUDType::F32, b_neg: false, b_abs: false, b_hsel: HSel::H0
            });)*
        };
    }
    functions!(Rcp Rsq Sqrt);
    None
}

macro_rules! pure_table {
    ($($name:ident $module:ident;)*) => {
        /// The loop that looks at the modifiers when it runs; none for an operation that has effects.
        fn general<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
            Some(match c.at.inst.optype() {
                $(Optype::$name => {
                    type Operation = $module::Operation;
                    let inst = c.at.inst;
                    let modifiers = <Operation as PureOperation>::decode(inst.form(), inst.word());
                    chosen::<Operation, _, H, true>(Any(modifiers), c.host, c.semantics)
                })*
                _ => return None,
            })
        }
    };
}
for_each_pure_operation!(pure_table);

/// The lane loop of a pure operation; none for one that has effects.
pub fn lane_loop(at: Resolving<'_>, decoding: Decoding) -> Option<Box<dyn LaneLoop>> {
    let semantics = decoding.semantics;
    match decoding.host {
        #[cfg(target_arch = "x86_64")]
        Detected::Widest(host) => {
            let found = special(Context {
                at,
                semantics,
                host,
            });
            let host = host.wide();
            found.or_else(|| {
                general(Context {
                    at,
                    semantics,
                    host,
                })
            })
        }
        #[cfg(target_arch = "x86_64")]
        Detected::Wide(host) => {
            let context = Context {
                at,
                semantics,
                host,
            };
            special(context).or_else(|| general(context))
        }
        Detected::Portable => {
            let context = Context {
                at,
                semantics,
                host: Portable,
            };
            #[cfg(not(target_arch = "x86_64"))]
            if decoding.specialised
                && let Some(found) = special(context)
            {
                return Some(found);
            }
            general(context)
        }
    }
}

/// The loop of modifiers that are common; none for others.
fn special<H: Host>(c: Context<'_, H>) -> Option<Box<dyn LaneLoop>> {
    match c.at.inst.optype() {
        Optype::IADD => iadd(c),
        Optype::IMAD => imad(c),
        Optype::IMAD_WIDE => imad_wide(c),
        Optype::IMUL => imul(c),
        Optype::IMNMX => imnmx(c),
        Optype::LEA => lea(c),
        Optype::LOP3 => lop3(c),
        Optype::SHF => shf(c),
        Optype::MOV => mov(c),
        Optype::PRMT => prmt(c),
        Optype::SEL => sel(c),
        Optype::PLOP3 => plop3(c),
        Optype::ISETP => isetp(c),
        Optype::FSETP => fsetp(c),
        Optype::FADD => fadd(c),
        Optype::FMUL => fmul(c),
        Optype::FFMA => ffma(c),
        Optype::FMNMX => fmnmx(c),
        Optype::I2F => i2f(c),
        Optype::F2I => f2i(c),
        Optype::MUFU => mufu(c),
        _ => None,
    }
}
