//! Shifts, bit fields, byte permutation and moves: SHF, PRMT, MOV (document 002), BMSK, SGXT (document 003).

use super::operands::*;

/// 64 bits shifted by 0 to 64; `signed` fills a right shift with bit 63.
#[inline(always)]
pub(super) fn shift_pair(pair: u64, amount: u32, direction: SHFDir, signed: bool) -> u64 {
    match (direction, signed) {
        (SHFDir::L, _) => pair.checked_shl(amount).unwrap_or(0),
        (SHFDir::R, false) => pair.checked_shr(amount).unwrap_or(0),
        (SHFDir::R, true) => (pair as i64 >> amount.min(63)) as u64,
    }
}

/// SHF: `{c, a}` shifted by `b`, of which the low or the high word is the result (document 002, SHF).
///
/// The amount is limited to 32 or 64 according to `itype`, by clamping or modulo. What is shifted is always the whole
/// pair: the sign that a right shift replicates is bit 31 of `c`, and a shift by 64 leaves zeros or signs.
#[inline(always)]
pub fn shf(m: &shf::Modifiers, s: &shf::Sources) -> shf::Results {
    let limit = match m.itype {
        SHFDType::S64 | SHFDType::U64 => 64,
        SHFDType::S32 | SHFDType::U32 => 32,
    };
    let amount = match m.cwmod {
        CWMode::C => s.b.min(limit),
        CWMode::W => s.b % limit,
    };
    let pair = u64::from(s.c) << 32 | u64::from(s.a);
    let signed = matches!(m.itype, SHFDType::S32 | SHFDType::S64);
    let shifted = shift_pair(pair, amount, m.direction, signed);
    let d = match m.lohi {
        LOHI::Lo => shifted as u32,
        LOHI::Hi => (shifted >> 32) as u32,
    };
    shf::Results { d }
}

/// MOV: copies 32 or 64 bits (document 002, MOV).
#[inline(always)]
pub fn mov(m: &mov::Modifiers, s: &mov::Sources) -> mov::Results {
    let d = match m.width {
        MOVW::W32 => u64::from(s.b as u32),
        MOVW::W64 => s.b,
    };
    mov::Results { d }
}

/// PRMT: each byte of the result is one of the eight bytes of `{b, a}` (document 002, PRMT).
///
/// In `.IDX` four nibbles of `c` choose: the low three bits a byte, the high one that its sign be replicated instead.
/// In the other modes two bits of `c` choose a row of the mode's table. Those tables are read with their columns from
/// b3 down to b0: only so do they mean what the modes' names say (forward and backward extract, replicate, edge clamp).
#[inline(always)]
pub fn prmt(m: &prmt::Modifiers, s: &prmt::Sources) -> prmt::Results {
    let source = u64::from(s.b) << 32 | u64::from(s.a);
    let byte = |index: u32| (source >> (8 * index)) as u8;
    let selector = s.c & 3;
    let d = [0u32, 1, 2, 3].map(|i| {
        let index = match m.mode {
            PRMTMode::Idx => {
                let nibble = s.c >> (4 * i) & 0xf;
                let byte = byte(nibble & 7);
                return if nibble & 8 == 0 {
                    byte
                } else {
                    (byte as i8 >> 7) as u8
                };
            }
            PRMTMode::F4e => selector + i,
            PRMTMode::B4e => selector.wrapping_sub(i) & 7,
            PRMTMode::Rc8 => selector,
            PRMTMode::Ecl => selector.max(i),
            PRMTMode::Ecr => selector.min(i),
            PRMTMode::Rc16 => 2 * (selector & 1) + (i & 1),
        };
        byte(index)
    });
    prmt::Results {
        d: u32::from_le_bytes(d),
    }
}

/// `count` ones at the bottom of a word; 32 and more fill it.
fn low_ones(count: u32) -> u32 {
    1u32.checked_shl(count).map_or(u32::MAX, |bit| bit - 1)
}

/// BMSK: `b` ones from bit `a` upward, as far as they lie in the word (document 003, BMSK).
///
/// `.CLAMP` takes both numbers as they are, `.WRAP` modulo 32.
pub fn bmsk(m: &bmsk::Modifiers, s: &bmsk::Sources) -> bmsk::Results {
    let (position, width) = match m.cwmode {
        CWMode::C => (s.a, s.b),
        CWMode::W => (s.a % 32, s.b % 32),
    };
    bmsk::Results {
        d: low_ones(width).checked_shl(position).unwrap_or(0),
    }
}

/// SGXT: the low `b` bits of `a`, sign- or zero-extended; zero bits give zero (document 003, SGXT).
///
/// `.CLAMP` limits the width to 32, `.WRAP` takes it modulo 32, so that 32 gives zero as in the pseudo-code.
pub fn sgxt(m: &sgxt::Modifiers, s: &sgxt::Sources) -> sgxt::Results {
    let width = match m.cwmode {
        CWMode::C => s.b.min(32),
        CWMode::W => s.b % 32,
    };
    if width == 0 {
        return sgxt::Results { d: 0 };
    }
    let top = s.a << (32 - width);
    let d = match m.itype {
        IType::S32 => (top as i32 >> (32 - width)) as u32,
        IType::U32 => top >> (32 - width),
    };
    sgxt::Results { d }
}
