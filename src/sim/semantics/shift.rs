//! Shifts, bit fields, byte permutation and moves: SHF, PRMT, MOV (document 002), BMSK, SGXT (document 003).

use super::operands::*;
use crate::bits::{Bits, Joined, Word, byte};

/// 64 bits shifted by 0 to 64; `signed` fills a right shift with bit 63.
#[inline(always)]
pub(super) fn shift_pair<T: Bits>(pair: &T, amount: &T, direction: SHFDir, signed: bool) -> T {
    match (direction, signed) {
        (SHFDir::L, _) => pair.shifted_up(amount),
        (SHFDir::R, false) => pair.shifted_down(amount),
        (SHFDir::R, true) => pair.shifted_down_signed(amount),
    }
}

/// An amount limited to a power of two, by clamping or modulo.
#[inline(always)]
pub(super) fn limited<T: Bits>(amount: &T, limit: u64, mode: CWMode) -> T {
    match mode {
        CWMode::C => amount.lower(&T::number(limit)),
        CWMode::W => amount.and(&T::number(limit - 1)),
    }
}

/// SHF: `{c, a}` shifted by `b`, of which the low or the high word is the result (document 002, SHF).
///
/// The amount is limited to 32 or 64 according to `itype`, by clamping or modulo. What is shifted is always the whole
/// pair: the sign that a right shift replicates is bit 31 of `c`, and a shift by 64 leaves zeros or signs.
#[inline(always)]
pub fn shf<W: Word>(m: &shf::Modifiers, s: &shf::Sources<W>) -> shf::Results<W> {
    let limit = match m.itype {
        SHFDType::S64 | SHFDType::U64 => 64,
        SHFDType::S32 | SHFDType::U32 => 32,
    };
    let amount = W::Pair::of_unsigned(&limited(&s.b, limit, m.cwmod));
    let pair = W::Pair::join(&s.c, &s.a);
    let signed = matches!(m.itype, SHFDType::S32 | SHFDType::S64);
    let shifted = shift_pair(&pair, &amount, m.direction, signed);
    let d = match m.lohi {
        LOHI::Lo => shifted.low(),
        LOHI::Hi => shifted.high(),
    };
    shf::Results { d }
}

/// MOV: copies 32 or 64 bits (document 002, MOV).
#[inline(always)]
pub fn mov<W: Word>(m: &mov::Modifiers, s: &mov::Sources<W>) -> mov::Results<W> {
    let d = match m.width {
        MOVW::W32 => W::Pair::of_unsigned(&s.b.low()),
        MOVW::W64 => s.b.clone(),
    };
    mov::Results { d }
}

/// PRMT: each byte of the result is one of the eight bytes of `{b, a}` (document 002, PRMT).
///
/// In `.IDX` four nibbles of `c` choose: the low three bits a byte, the high one that its sign be replicated instead.
/// In the other modes two bits of `c` choose a row of the mode's table. Those tables are read with their columns from
/// b3 down to b0: only so do they mean what the modes' names say (forward and backward extract, replicate, edge clamp).
#[inline(always)]
pub fn prmt<W: Word>(m: &prmt::Modifiers, s: &prmt::Sources<W>) -> prmt::Results<W> {
    let source = W::Pair::join(&s.b, &s.a);
    let three = W::number(3);
    let seven = W::number(7);
    // The byte with a number of 0 to 7.
    let pick = |index: &W| -> W::Byte {
        let by = W::Pair::of_unsigned(&index.up(3));
        byte(&source.shifted_down(&by).low(), 0)
    };
    let selector = s.c.and(&three);
    let bytes = [0u32, 1, 2, 3].map(|i| {
        let place = W::number(u64::from(i));
        let index = match m.mode {
            PRMTMode::Idx => {
                let nibble = s.c.down(4 * i);
                let byte = pick(&nibble.and(&seven));
                return W::Byte::choose(&nibble.bit(3), &byte.signs(), &byte);
            }
            PRMTMode::F4e => selector.plus(&place),
            PRMTMode::B4e => selector.minus(&place).and(&seven),
            PRMTMode::Rc8 => selector.clone(),
            PRMTMode::Ecl => W::choose(&selector.is_below(&place), &place, &selector),
            PRMTMode::Ecr => selector.lower(&place),
            PRMTMode::Rc16 => selector
                .and(&W::number(1))
                .up(1)
                .plus(&W::number(u64::from(i & 1))),
        };
        pick(&index)
    });
    let [b0, b1, b2, b3] = &bytes;
    prmt::Results {
        d: W::join(&W::Short::join(b3, b2), &W::Short::join(b1, b0)),
    }
}

/// `count` ones at the bottom of a word; 32 and more fill it.
fn low_ones<W: Word>(count: &W) -> W {
    W::ones().shifted_up(count).complement()
}

/// BMSK: `b` ones from bit `a` upward, as far as they lie in the word (document 003, BMSK).
///
/// `.CLAMP` takes both numbers as they are, `.WRAP` modulo 32.
pub fn bmsk<W: Word>(m: &bmsk::Modifiers, s: &bmsk::Sources<W>) -> bmsk::Results<W> {
    let (position, width) = match m.cwmode {
        CWMode::C => (s.a.clone(), s.b.clone()),
        CWMode::W => (limited(&s.a, 32, m.cwmode), limited(&s.b, 32, m.cwmode)),
    };
    bmsk::Results {
        d: low_ones(&width).shifted_up(&position),
    }
}

/// SGXT: the low `b` bits of `a`, sign- or zero-extended; zero bits give zero (document 003, SGXT).
///
/// `.CLAMP` limits the width to 32, `.WRAP` takes it modulo 32, so that 32 gives zero as in the pseudo-code.
pub fn sgxt<W: Word>(m: &sgxt::Modifiers, s: &sgxt::Sources<W>) -> sgxt::Results<W> {
    let width = limited(&s.b, 32, m.cwmode);
    // Of no bits all are shifted out, and zero has no sign.
    let unused = W::number(32).minus(&width);
    let top = s.a.shifted_up(&unused);
    let d = match m.itype {
        IType::S32 => top.shifted_down_signed(&unused),
        IType::U32 => top.shifted_down(&unused),
    };
    sgxt::Results { d }
}
