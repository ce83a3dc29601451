//! Which accesses of a segment become one.

use super::scan::{Access, Base, Piece, Segment};
use crate::abi;
use crate::analysis::alignment::Alignment;
use crate::constants;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{Function, Inst, InstructionData, MemFlagsData, Type, Value, types};
use smallvec::SmallVec;

/// Sizes of wide accesses in bytes.
const WIDTHS: [u32; 3] = [16, 8, 4];

/// Instructions between the first and the last of accesses that become one (*assumed*: the registers of a quad are
/// taken all the way).
const DISTANCE: u32 = 128;

/// Accesses to the same base that are looked at for one group (*assumed*: bounds the work).
const BETWEEN: usize = 64;

/// Accesses that become one.
pub(super) struct Group {
    /// By offset.
    pub members: SmallVec<[Member; 16]>,
    /// How many bytes they are.
    pub bytes: u32,
    pub store: bool,
    /// Where the wide one goes: at the first of the loads, or at the last of the stores.
    pub place: Inst,
    /// Its address, and the offset from there.
    pub address: Value,
    pub offset: Offset32,
    pub flags: MemFlagsData,
}

/// A part of a wide access.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub inst: Inst,
    pub piece: Piece,
    /// Bytes from the start of the whole.
    pub at: u32,
}

/// Why two accesses side by side do not become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// Nothing proves that the whole is aligned.
    Alignment { known: u32, needed: u32 },
    /// Something between them may read or write the same bytes.
    Between,
    /// They are too far apart.
    Distance,
}

/// What is known when groups are looked for.
pub(super) struct Grouping<'a> {
    pub segment: &'a Segment,
    pub alignment: &'a Alignment,
    pub assume_aligned: bool,
}

impl Grouping<'_> {
    /// The groups of the segment; `missed` hears of accesses side by side that are in none.
    pub fn find(&self, func: &Function, missed: &mut dyn FnMut(Inst, Reason)) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut low_bits: Vec<Option<(u32, u64)>> = vec![None; self.segment.bases.len()];
        let mut rest = &self.segment.sorted[..];
        while let Some(&first) = rest.first() {
            let first = &self.segment.accesses[first as usize];
            let known =
                *low_bits[first.base as usize].get_or_insert_with(|| self.low_bits(first.base));
            let mut reason = None;
            let found = WIDTHS.iter().find_map(|&width| {
                let members = self.tiles(func, rest, width)?;
                match self.judge(func, &members, width, known) {
                    Ok(()) => Some((members, width)),
                    Err(why) => {
                        reason = reason.or(why);
                        None
                    }
                }
            });
            let taken = match found {
                Some((members, width)) => {
                    let last = members[members.len() - 1];
                    groups.push(self.group(func, &members, width));
                    // Others at the same places stay alone.
                    rest.iter()
                        .position(|&number| number == last)
                        .map_or(1, |at| at + 1)
                }
                None => {
                    if let Some(reason) = reason {
                        missed(first.inst, reason);
                    }
                    1
                }
            };
            rest = &rest[taken..];
        }
        groups
    }

    fn access(&self, number: u32) -> &Access {
        &self.segment.accesses[number as usize]
    }

    /// The first accesses of `rest` that together are `width` bytes without a gap, if they can be one value.
    fn tiles(&self, func: &Function, rest: &[u32], width: u32) -> Option<SmallVec<[u32; 16]>> {
        let first = self.access(rest[0]);
        let end = first.offset.checked_add(width.into())?;
        let mut members: SmallVec<[u32; 16]> = SmallVec::new();
        let mut at = first.offset;
        for &number in rest {
            let access = self.access(number);
            if (access.store, access.base) != (first.store, first.base) || access.offset > at {
                break;
            }
            // The same place again.
            if access.offset < at {
                continue;
            }
            members.push(number);
            at = access.end();
            if at >= end {
                break;
            }
        }
        let pays = at == end && members.len() > 1 && self.pays(func, &members);
        pays.then_some(members)
    }

    /// Whether one access and what it takes to put its value together is less than the accesses.
    fn pays(&self, func: &Function, members: &[u32]) -> bool {
        let piece = |number: u32| self.access(number).piece.map(|piece| piece.ty);
        let first = piece(members[0]);
        let small = |ty: Type| ty.bits() < 32;
        if members
            .iter()
            .any(|&number| piece(number).is_none_or(small))
        {
            // Lanes below a word must be all alike. Of floats the operations read them where they are; others are moved
            // down one by one.
            let alike = members
                .iter()
                .all(|&number| piece(number) == first && is_lane(first));
            let free = first == Some(types::F16);
            if !alike || !(free || members.len() >= 4) {
                return false;
            }
        }
        if !self.access(members[0]).store {
            return true;
        }
        // What is stored has to be in registers side by side: a value that is there twice is copied, and so is zero,
        // which needs no register alone.
        let values: SmallVec<[Value; 16]> = (members.iter())
            .map(|&number| func.dfg.inst_args(self.access(number).inst)[0])
            .collect();
        if values.iter().all(|&value| is_zero(func, value)) {
            return true;
        }
        let copies = (values.iter().enumerate())
            .filter(|(index, value)| values[..*index].contains(value) || is_zero(func, **value))
            .count();
        copies + 1 < members.len()
    }

    /// Whether the members may become one; otherwise what speaks against it, if it is worth saying.
    fn judge(
        &self,
        func: &Function,
        members: &[u32],
        width: u32,
        known: (u32, u64),
    ) -> Result<(), Option<Reason>> {
        let first = self.access(members[0]);
        let (bits, low) = known;
        let from_base = low.wrapping_add(first.offset as u64);
        let proven = 1 << from_base.trailing_zeros().min(bits).min(16);
        if proven < width {
            // Where the whole is surely not aligned nothing helps.
            let hopeless = from_base & (u64::from(width) - 1) & ((1u64 << bits.min(63)) - 1) != 0;
            return Err((!hopeless).then_some(Reason::Alignment {
                known: proven,
                needed: width,
            }));
        }
        if members
            .iter()
            .any(|&number| self.access(number).others != first.others)
        {
            return Err(Some(Reason::Between));
        }
        let places = || members.iter().map(|&number| self.access(number).at);
        let (from, to) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
        if to - from > DISTANCE {
            return Err(Some(Reason::Distance));
        }
        let end = first.offset + i64::from(width);
        let own = &self.segment.bases[first.base as usize].accesses;
        let start = own.partition_point(|&number| self.access(number).at <= from);
        let between = own[start..]
            .iter()
            .take_while(|&&number| self.access(number).at < to);
        for (count, &number) in between.enumerate() {
            let access = self.access(number);
            let meets = access.overlaps(first.offset, end) && (first.store || access.store);
            if count == BETWEEN || meets && !members.contains(&number) {
                return Err(Some(Reason::Between));
            }
        }
        let place = self.place(members);
        match self.offset(func, place, first.offset) {
            Some(_) => Ok(()),
            None => Err(None),
        }
    }

    /// Where the wide access goes.
    fn place(&self, members: &[u32]) -> &Access {
        let by_position = |number: &&u32| self.access(**number).at;
        let store = self.access(members[0]).store;
        let number = if store {
            members.iter().max_by_key(by_position)
        } else {
            members.iter().min_by_key(by_position)
        };
        self.access(*number.unwrap_or(&members[0]))
    }

    /// The offset from the address operand of `place` to the start of the whole.
    fn offset(&self, func: &Function, place: &Access, start: i64) -> Option<Offset32> {
        let own = func.dfg.insts[place.inst].load_store_offset()?;
        let offset = i64::from(own).checked_add(start.checked_sub(place.offset)?)?;
        i32::try_from(offset).ok().map(Offset32::new)
    }

    fn group(&self, func: &Function, members: &[u32], width: u32) -> Group {
        let first = self.access(members[0]);
        let place = self.place(members);
        let address = match func.dfg.insts[place.inst] {
            InstructionData::Load { arg, .. } => arg,
            ref data => data.arguments(&func.dfg.value_lists)[1],
        };
        let of_all = |flag: fn(&MemFlagsData) -> bool| {
            members
                .iter()
                .all(|&number| flag(&self.access(number).flags))
        };
        let mut flags = MemFlagsData::new()
            .with_aligned()
            .with_trap_code(first.flags.trap_code());
        if of_all(|flags| flags.notrap()) {
            flags = flags.with_notrap();
        }
        if of_all(|flags| flags.readonly()) {
            flags = flags.with_readonly();
        }
        if of_all(|flags| flags.can_move()) {
            flags = flags.with_can_move();
        }
        let parts = members.iter().filter_map(|&number| {
            let access = self.access(number);
            Some(Member {
                inst: access.inst,
                piece: access.piece?,
                at: (access.offset - first.offset) as u32,
            })
        });
        Group {
            members: parts.collect(),
            bytes: width,
            store: first.store,
            place: place.inst,
            address,
            offset: self.offset(func, place, first.offset).unwrap_or(0.into()),
            flags,
        }
    }

    /// The constant low bits of a base: `(k, r)` if it is ≡ r mod 2^k. Accesses that promise to be aligned say more of
    /// it than is proven.
    fn low_bits(&self, base: u32) -> (u32, u64) {
        let info = &self.segment.bases[base as usize];
        let proven = match info.base {
            Base::Value(value) | Base::Far(value, _) => self.alignment.low_bits(value),
            Base::Slot(_) => (abi::STACK_ALIGNMENT.trailing_zeros(), 0),
            Base::Absolute(_) => (u64::BITS, 0),
        };
        let promised = |&number: &u32| {
            let access = self.access(number);
            let promises = access.flags.aligned() || self.assume_aligned;
            let power = access.bytes.next_power_of_two();
            let mask = u64::from(power) - 1;
            promises.then(|| {
                (
                    power.trailing_zeros(),
                    (access.offset as u64).wrapping_neg() & mask,
                )
            })
        };
        let promised = info.accesses.iter().filter_map(promised).max();
        promised.map_or(proven, |promised| promised.max(proven))
    }
}

/// Whether a type can be a lane of a vector.
fn is_lane(ty: Option<Type>) -> bool {
    ty.is_some_and(|ty| ty.is_int() || ty.is_float())
}

/// The value that all of `values` are, if they are the same, or equal constants.
pub(super) fn repeated(func: &Function, values: &[Value]) -> Option<Value> {
    let first = values[0];
    let same = |&value: &Value| {
        value == first
            || func.dfg.value_type(value) == func.dfg.value_type(first)
                && constants::bits(func, first)
                    .is_some_and(|bits| Some(bits) == constants::bits(func, value))
    };
    let ty = func.dfg.value_type(first);
    (values.iter().all(same) && is_lane(Some(ty))).then_some(first)
}

fn is_zero(func: &Function, value: Value) -> bool {
    constants::bits(func, value) == Some(0)
}
