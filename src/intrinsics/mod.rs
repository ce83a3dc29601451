//! The one table of the `%gpu_NAME` intrinsics: name, signature, effect, uniformity, lowering and reference semantics.
//!
//! An intrinsic is a call to `%gpu_NAME`, or to a function that the embedding declares under that name. Everything that
//! the compiler asks about an intrinsic comes from its row: the check of a call ([`resolve`]), what may be merged or
//! dropped ([`crate::clif::merge`]), the uniformity of its result ([`crate::analysis::uniformity`]), and the
//! instruction that selection emits ([`Lowering`]). Front ends ask the same table what they may call, and what they may
//! do with a call: [`lookup`] finds a row, [`TABLE`] has all.

use crate::abi::bank0;
use crate::abi::is_representable;
use crate::isa::generated::{
    AtomType, CWMode, FPFtz, FPSat, HFmtV2, I2IPDType, I8Type, I16Type, IType, LOHI, MUFUDType,
    MUFUOp, MemScope, PRMTMode, RELU, SReg, ShuffleMode, VoteMode,
};
use crate::text::near;
use cranelift_codegen::ir::types::INVALID;
use cranelift_codegen::ir::{Signature, Type};
use hashbrown::HashMap;
use std::fmt;
use std::sync::LazyLock;

pub(crate) mod resolve;
mod table;

pub use table::TABLE;

/// Prefix of every intrinsic's function name.
pub const PREFIX: &str = "gpu_";

/// Name, after [`PREFIX`], of the symbol for the kernel's shared memory: a value of type i32 is the byte offset, of
/// type i64 the generic address. It is no row of the table because it is an address, not an operation.
pub const SHARED: &str = "shared";

/// What the mid-end and the schedulers may do with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The result depends on the operands (and on which thread this is) only: equal calls merge, unused ones go.
    Pure,
    /// Depends on, or acts on, the set of active lanes: never merged, moved, duplicated or guarded.
    Convergent,
    /// Reads, writes or orders memory.
    Memory,
    /// Ends the kernel.
    Trap,
    /// Says something to the compiler, and becomes nothing.
    Hint,
}

/// Whether the active lanes of a warp get the same result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniformity {
    /// All active lanes get the same.
    Uniform,
    /// Lanes may get different results.
    Divergent,
    /// The same if all operands are the same.
    AsOperands,
}

/// The operation that selection emits for a row, with its modifiers: `isle/lower/intrinsic.isle` has a rule for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lowering {
    /// S2R, or constant memory for the sizes of the launch.
    Special(SReg),
    /// A read of constant bank 0 at this offset.
    LaunchConstant(u32),
    /// MUFU.
    Mufu(MUFUOp, MUFUDType),
    /// HADD2.
    Hadd2(HFmtV2, FPFtz, FPSat),
    /// HMUL2.
    Hmul2(HFmtV2, FPFtz, FPSat),
    /// HFMA2.
    Hfma2(HFmtV2, FPFtz, RELU, FPSat),
    /// HMNMX2 as minimum, NaN propagating.
    Hmin2(HFmtV2),
    /// HMNMX2 as maximum, NaN propagating.
    Hmax2(HFmtV2),
    /// IDP4A.
    Dp4a(I8Type, I8Type),
    /// IDP2A.
    Dp2a(LOHI, I16Type, I8Type),
    /// Nothing: the result is the first operand.
    Aligned,
    /// PRMT.
    Permute(PRMTMode),
    /// LOP3 with the fourth operand as truth table.
    Lop3,
    /// BMSK.
    Bmsk(CWMode),
    /// SGXT.
    Sgxt(CWMode, IType),
    /// I2IP with saturation.
    Pack(I2IPDType),
    /// BAR over all threads of the block.
    BarSync,
    /// WARPSYNC of the lanes of a mask.
    WarpSync,
    /// SHFL.
    Shuffle(ShuffleMode),
    /// VOTE with the lane mask as result.
    Ballot,
    /// VOTE with the truth as result.
    Vote(VoteMode),
    /// VOTE of a true predicate.
    ActiveMask,
    /// MATCH.
    MatchAny,
    /// MEMBAR.
    MemoryBarrier(MemScope),
    /// TRAP.
    Trap,
    /// ATOM.ADD or RED.ADD of floats.
    AtomicAdd(AtomType),
    /// Nothing: how often a loop is unrolled, taken out before the mid-end.
    Unroll,
}

/// The values that a constant operand can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constants {
    /// 0 up to this one.
    UpTo(i64),
    /// 1, 2, 4 and so on.
    PowersOfTwo,
}

impl Constants {
    /// Whether `value` is one of them.
    pub fn contains(self, value: i64) -> bool {
        match self {
            Self::UpTo(last) => (0..=last).contains(&value),
            Self::PowersOfTwo => value > 0 && value.count_ones() == 1,
        }
    }
}

impl fmt::Display for Constants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpTo(last) => write!(f, "from 0 to {last}"),
            Self::PowersOfTwo => f.write_str("that is a power of two"),
        }
    }
}

/// One row of the table.
#[derive(Debug)]
#[non_exhaustive]
pub struct Intrinsic {
    /// Name without [`PREFIX`].
    pub name: &'static str,
    /// Parameter types.
    pub params: &'static [Type],
    /// The result type, if there is a result.
    pub result: Option<Type>,
    /// Whether the type of the first parameter stands for any type of at most 128 bits, which the result and all
    /// parameters but the constant one have.
    pub any_type: bool,
    /// Position of the parameter that must be a constant, with the values that it can take.
    pub constant: Option<(usize, Constants)>,
    /// What may be done with a call.
    pub effect: Effect,
    /// Uniformity of the result.
    pub uniformity: Uniformity,
    /// What selection emits.
    pub(crate) lowering: Lowering,
    /// Meaning: result in terms of the parameters a, b, c, d.
    pub reference: &'static str,
}

impl Intrinsic {
    /// Byte offset in constant bank 0 of the value that it reads, if it stands there: reading it costs no more than a
    /// constant operand.
    pub(crate) fn launch_offset(&self) -> Option<u32> {
        match self.lowering {
            Lowering::Special(register) => launch_size(register),
            Lowering::LaunchConstant(offset) => Some(offset),
            _ => None,
        }
    }

    /// True if equal calls may merge and unused ones be dropped.
    pub fn is_pure(&self) -> bool {
        self.effect == Effect::Pure
    }

    /// True for the thread and launch values, which become `symbol_value.i32` before the mid-end.
    pub fn is_special_value(&self) -> bool {
        matches!(
            self.lowering,
            Lowering::Special(_) | Lowering::LaunchConstant(_)
        )
    }

    /// True if a declared signature is this row's, whatever its calling convention.
    pub fn accepts(&self, signature: &Signature) -> bool {
        let first = signature.params.first().map_or(INVALID, |p| p.value_type);
        let (params, result) = self.types(first);
        let declared = signature.params.iter().map(|p| p.value_type);
        let returned = signature.returns.iter().map(|r| r.value_type);
        (!self.any_type || is_representable(first)) && declared.eq(params) && returned.eq(result)
    }

    /// The types of parameters and result where the first parameter has type `first`.
    pub(crate) fn types(&self, first: Type) -> (impl Iterator<Item = Type>, Option<Type>) {
        let constant = self.constant.map(|(index, _)| index);
        let params = self.params.iter().enumerate().map(move |(index, &ty)| {
            if self.any_type && constant != Some(index) {
                first
            } else {
                ty
            }
        });
        let result = if self.any_type {
            Some(first)
        } else {
            self.result
        };
        (params, result)
    }
}

/// Byte offset in constant bank 0 of a size of the launch.
pub(crate) fn launch_size(register: SReg) -> Option<u32> {
    Some(match register {
        SReg::SrNtidX => bank0::BLOCK_SIZE,
        SReg::SrNtidY => bank0::BLOCK_SIZE + 4,
        SReg::SrNtidZ => bank0::BLOCK_SIZE + 8,
        SReg::SrNctaidX => bank0::GRID_SIZE,
        SReg::SrNctaidY => bank0::GRID_SIZE + 4,
        SReg::SrNctaidZ => bank0::GRID_SIZE + 8,
        _ => return None,
    })
}

impl fmt::Display for Intrinsic {
    /// The legal declaration, `%gpu_NAME(types) -> type`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{PREFIX}{}(", self.name)?;
        for (index, ty) in self.params.iter().enumerate() {
            write!(f, "{}{ty}", if index == 0 { "" } else { ", " })?;
        }
        write!(f, ")")?;
        self.result.map_or(Ok(()), |ty| write!(f, " -> {ty}"))
    }
}

/// The row of a name without [`PREFIX`].
pub fn lookup(name: &str) -> Option<&'static Intrinsic> {
    static INDEX: LazyLock<HashMap<&'static str, &'static Intrinsic>> =
        LazyLock::new(|| TABLE.iter().map(|row| (row.name, row)).collect());
    INDEX.get(name).copied()
}

/// The table's names nearest to a misspelt one, best first, at most three.
pub(crate) fn similar_names(name: &str) -> Vec<&'static str> {
    near(name, TABLE.iter().map(|row| row.name))
        .take(3)
        .collect()
}

/// The table as Markdown, for the documentation.
#[cfg(test)]
fn markdown() -> String {
    let mut text = String::from(
        "# Intrinsics\n\n\
         Calls to `%gpu_NAME`, or to functions that an embedding declares under that name. The table is generated \
         from\n\
         `src/intrinsics/table.rs`; bless it with `CRANELIFT_TEST_BLESS=1 cargo test --lib intrinsics`.\n\n\
         - *pure*: equal calls merge, unused ones go; *convergent*: acts on the active lanes, never merged, moved or\n\
         guarded; *memory*: reads, writes or orders memory; *trap*: ends the kernel;\n\
         *hint*: says something to the compiler.\n\
         - *uniform*: all active lanes get the same result; *as operands*: if their operands are the same.\n\
         - Thread and launch values without operands are also symbols: `gv0 = symbol %gpu_tid_x` and\n\
         `symbol_value.i32 gv0` read the same. `symbol %gpu_shared` is the kernel's shared memory, as i32 its offset,\n\
         as i64 its generic address.\n\
         - `assume_aligned` is a promise: accesses by its result, and of a kernel's parameter in its first block all \
         accesses by that, may\n\
         become wider. Where it is broken, such an access faults as misaligned; one that would not have been widened \
         does what it did.\n\n\
         | declaration | effect | uniformity | meaning of the result, operands a b c d |\n\
         | --- | --- | --- | --- |\n",
    );
    for row in TABLE {
        let effect = match row.effect {
            Effect::Pure => "pure",
            Effect::Convergent => "convergent",
            Effect::Memory => "memory",
            Effect::Trap => "trap",
            Effect::Hint => "hint",
        };
        let uniformity = match (row.result, row.uniformity) {
            (None, _) => "",
            (_, Uniformity::Uniform) => "uniform",
            (_, Uniformity::Divergent) => "divergent",
            (_, Uniformity::AsOperands) => "as operands",
        };
        let reference = row.reference.replace('|', "\\|");
        text.push_str(&format!(
            "| `{row}` | {effect} | {uniformity} | {reference} |\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use hashbrown::HashSet;

    #[test]
    fn names_are_unique_and_found() {
        let mut seen = HashSet::new();
        for row in TABLE {
            assert!(seen.insert(row.name), "{} twice", row.name);
            assert!(std::ptr::eq(lookup(row.name).unwrap(), row));
        }
        assert!(lookup("tid_w").is_none());
        assert!(lookup(SHARED).is_none(), "the symbol is no operation");
    }

    #[test]
    fn rows_are_consistent() {
        for row in TABLE {
            let name = row.name;
            assert_eq!(
                row.is_special_value(),
                row.is_pure() && row.params.is_empty(),
                "{name}"
            );
            if row.uniformity == Uniformity::AsOperands {
                assert!(
                    row.is_pure() && !row.params.is_empty(),
                    "{name}: others depend on more than operands"
                );
            }
            if row.is_pure() {
                assert!(
                    row.result.is_some(),
                    "{name}: a pure call without a result does nothing"
                );
            }
            if let Some((index, _)) = row.constant {
                assert!(index < row.params.len(), "{name}");
            }
            // Document 000: BF16_V2 does not support .FTZ and .SAT.
            if let Lowering::Hadd2(HFmtV2::Bf16V2, ftz, sat)
            | Lowering::Hmul2(HFmtV2::Bf16V2, ftz, sat)
            | Lowering::Hfma2(HFmtV2::Bf16V2, ftz, _, sat) = row.lowering
            {
                assert_eq!((ftz, sat), (FPFtz::NoFtz, FPSat::NoSat), "{name}");
            }
        }
    }

    #[test]
    fn a_row_prints_its_declaration() {
        assert_eq!(
            lookup("shfl_up").unwrap().to_string(),
            "%gpu_shfl_up(i32, i32) -> i32"
        );
        assert_eq!(lookup("bar_sync").unwrap().to_string(), "%gpu_bar_sync()");
    }

    #[test]
    fn misspelt_names_find_their_neighbours() {
        assert_eq!(similar_names("tidx").first(), Some(&"tid_x"));
        assert_eq!(similar_names("bar_synch"), ["bar_sync", "warp_sync"]);
        assert!(similar_names("completely_different").is_empty());
    }

    #[test]
    fn the_documentation_shows_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/intrinsics.md");
        if std::env::var_os("CRANELIFT_TEST_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::write(path, markdown()).unwrap();
        }
        let shown = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            shown == markdown(),
            "docs/intrinsics.md is out of date; bless it with CRANELIFT_TEST_BLESS=1"
        );
    }
}
