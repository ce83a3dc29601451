//! The accesses between two instructions that none may cross.

use crate::analysis::provenance::Space;
use crate::constants::integer;
use crate::intrinsics::resolve::Intrinsics;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    Endianness, Function, Inst, InstructionData, MemFlagsData, Opcode, StackSlot, Type, Value,
    ValueDef, types,
};
use hashbrown::HashMap;

/// Most additions of constants that are looked through for one address (*assumed*: the mid-end leaves one).
const STEPS: usize = 8;

/// What the offset of an access counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Base {
    /// A computed address.
    Value(Value),
    /// A stack slot.
    Slot(StackSlot),
    /// Address 0: of shared memory, or of the generic address space.
    Absolute(Type),
    /// An address so far from what it was computed from that it may have wrapped: this access is at no known distance
    /// from others.
    Far(Value, Inst),
}

/// Largest distance from a base: two such places are apart by less than half of what 32 bits can say, so that bytes at
/// different distances are different bytes, whatever wraps.
const FARTHEST: i64 = 1 << 30;

/// What a mergeable access reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its type in memory.
    pub ty: Type,
    /// A load that extends: with the sign or with zeros.
    pub signed: Option<bool>,
}

/// A load or a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub inst: Inst,
    /// Its position among the instructions of the segment.
    pub at: u32,
    /// Number of its base in the segment.
    pub base: u32,
    /// Bytes from the base.
    pub offset: i64,
    /// How many bytes.
    pub bytes: u32,
    /// What it is as a part of a wide one; none if it stays alone.
    pub piece: Option<Piece>,
    pub store: bool,
    pub flags: MemFlagsData,
    /// Accesses to other bases before it that would stop it from moving: two accesses with the same count have none
    /// between.
    pub others: u32,
}

impl Access {
    /// Where the bytes end.
    pub fn end(&self) -> i64 {
        self.offset + i64::from(self.bytes)
    }

    /// Whether it can share bytes with `start .. end`.
    pub fn overlaps(&self, start: i64, end: i64) -> bool {
        self.offset < end && start < self.end()
    }

    /// Whether stores may pass it, and it them: nothing writes where it reads.
    fn is_constant(&self) -> bool {
        !self.store && self.flags.readonly()
    }
}

/// A base and how it is accessed.
#[derive(Clone, Debug)]
pub(super) struct BaseInfo {
    pub base: Base,
    /// Its accesses, by position.
    pub accesses: Vec<u32>,
}

/// The accesses of a run of instructions that they may move in.
#[derive(Default)]
pub(super) struct Segment {
    /// By position.
    pub accesses: Vec<Access>,
    pub bases: Vec<BaseInfo>,
    numbers: HashMap<Base, u32>,
    /// Numbers of the accesses that may become part of a wide one, by kind, base and offset.
    pub sorted: Vec<u32>,
}

/// Accesses to a space, and to what may be in it.
#[derive(Clone, Copy, Default)]
struct Counts {
    stores: u32,
    /// Stores, and loads of what may be written.
    all: u32,
}

impl Counts {
    fn add(&mut self, access: &Access) {
        self.stores += u32::from(access.store);
        self.all += u32::from(!access.is_constant());
    }

    fn plus(self, other: Self) -> Self {
        Self {
            stores: self.stores + other.stores,
            all: self.all + other.all,
        }
    }
}

impl Segment {
    /// Takes the accesses of the first instructions of `insts`, up to one that no access may cross; the instructions
    /// behind that.
    pub fn fill<'i>(
        &mut self,
        func: &Function,
        intrinsics: &Intrinsics,
        insts: &'i [Inst],
    ) -> &'i [Inst] {
        self.accesses.clear();
        self.bases.clear();
        self.numbers.clear();
        self.sorted.clear();
        for (at, &inst) in insts.iter().enumerate() {
            match kind(func, intrinsics, inst) {
                Kind::Free => {}
                Kind::Fixed => return &insts[at + 1..],
                Kind::Access {
                    address,
                    offset,
                    flags,
                    ty,
                    signed,
                    store,
                } => {
                    let (base, offset) = base_of(func, inst, address, offset);
                    let far = matches!(base, Base::Far(..));
                    let base = self.number(base);
                    self.add(Access {
                        inst,
                        at: at as u32,
                        base,
                        offset,
                        bytes: ty.bytes(),
                        piece: (!far && is_piece(ty, flags)).then_some(Piece { ty, signed }),
                        store,
                        flags,
                        others: 0,
                    });
                }
            }
        }
        &[]
    }

    fn add(&mut self, access: Access) {
        let number = self.accesses.len() as u32;
        self.bases[access.base as usize].accesses.push(number);
        if access.piece.is_some() {
            self.sorted.push(number);
        }
        self.accesses.push(access);
    }

    fn number(&mut self, base: Base) -> u32 {
        *self.numbers.entry(base).or_insert_with(|| {
            self.bases.push(BaseInfo {
                base,
                accesses: Vec::new(),
            });
            self.bases.len() as u32 - 1
        })
    }

    /// Sorts the accesses; whether any two are side by side.
    pub fn has_neighbours(&mut self) -> bool {
        if self.sorted.len() < 2 {
            return false;
        }
        let accesses = &self.accesses;
        self.sorted.sort_unstable_by_key(|&number| {
            let a = &accesses[number as usize];
            (a.store, a.base, a.offset, a.at)
        });
        self.sorted.windows(2).any(|pair| {
            let [a, b] = [pair[0], pair[1]].map(|number| &accesses[number as usize]);
            (a.store, a.base, a.end()) == (b.store, b.base, b.offset)
        })
    }

    /// Counts for each access those to other bases before it that it may not pass, by the spaces that the bases lie in.
    pub fn count_others(&mut self, mut space: impl FnMut(Value) -> Space) {
        let spaces: Vec<Space> = (self.bases.iter())
            .map(|info| match info.base {
                Base::Value(value) | Base::Far(value, _) => space(value),
                Base::Slot(_) => Space::Local,
                Base::Absolute(types::I32) => Space::Shared,
                Base::Absolute(_) => Space::Generic,
            })
            .collect();
        let mut own = vec![Counts::default(); self.bases.len()];
        let mut by_space = [Counts::default(); 5];
        let mut slots = Counts::default();
        for access in &mut self.accesses {
            let base = access.base as usize;
            let of_slot = matches!(self.bases[base].base, Base::Slot(_));
            let reached = (SPACES.iter().zip(by_space))
                .filter(|(other, _)| may_meet(spaces[base], **other))
                .fold(Counts::default(), |sum, (_, counts)| sum.plus(counts));
            // Two slots have nothing in common.
            let known = if of_slot { slots } else { own[base] };
            access.others = if access.store {
                reached.all - known.all
            } else if access.is_constant() {
                0
            } else {
                reached.stores - known.stores
            };
            own[base].add(access);
            by_space[spaces[base] as usize].add(access);
            if of_slot {
                slots.add(access);
            }
        }
    }
}

/// All spaces, by their numbers.
const SPACES: [Space; 4] = [Space::Global, Space::Shared, Space::Local, Space::Generic];

/// Whether addresses of two spaces can be the same place.
fn may_meet(a: Space, b: Space) -> bool {
    a == b || a == Space::Generic || b == Space::Generic
}

/// What an instruction is to accesses that would pass it.
enum Kind {
    /// They may.
    Free,
    /// They may not.
    Fixed,
    /// One of them.
    Access {
        address: Value,
        offset: Offset32,
        flags: MemFlagsData,
        ty: Type,
        signed: Option<bool>,
        store: bool,
    },
}

fn kind(func: &Function, intrinsics: &Intrinsics, inst: Inst) -> Kind {
    let dfg = &func.dfg;
    match dfg.insts[inst] {
        InstructionData::Load {
            opcode,
            flags,
            arg,
            offset,
        } => {
            let (ty, signed) = match opcode {
                Opcode::Load => (dfg.value_type(dfg.first_result(inst)), None),
                Opcode::Uload8 => (types::I8, Some(false)),
                Opcode::Sload8 => (types::I8, Some(true)),
                Opcode::Uload16 => (types::I16, Some(false)),
                Opcode::Sload16 => (types::I16, Some(true)),
                Opcode::Uload32 => (types::I32, Some(false)),
                Opcode::Sload32 => (types::I32, Some(true)),
                _ => return Kind::Fixed,
            };
            Kind::Access {
                address: arg,
                offset,
                flags: dfg.mem_flags[flags],
                ty,
                signed,
                store: false,
            }
        }
        InstructionData::Store {
            opcode,
            flags,
            args: [value, address],
            offset,
        } => {
            let ty = match opcode {
                Opcode::Store => dfg.value_type(value),
                Opcode::Istore8 => types::I8,
                Opcode::Istore16 => types::I16,
                Opcode::Istore32 => types::I32,
                _ => return Kind::Fixed,
            };
            Kind::Access {
                address,
                offset,
                flags: dfg.mem_flags[flags],
                ty,
                // What is cut off is no piece of its own type.
                signed: (opcode != Opcode::Store).then_some(false),
                store: true,
            }
        }
        ref data => {
            let opcode = data.opcode();
            let pure_call =
                || (intrinsics.of_call(func, inst)).is_some_and(|intrinsic| intrinsic.is_pure());
            let effect = opcode.can_load()
                || opcode.can_store()
                || opcode.can_trap()
                || opcode.other_side_effects()
                || opcode.is_branch()
                || opcode.is_call();
            if effect && !(opcode == Opcode::Call && pure_call()) {
                Kind::Fixed
            } else {
                Kind::Free
            }
        }
    }
}

/// Whether an access of `ty` can be a part of a wide one.
fn is_piece(ty: Type, flags: MemFlagsData) -> bool {
    matches!(ty.bits(), 8 | 16 | 32 | 64)
        && !ty.is_dynamic_vector()
        && flags.endianness(Endianness::Little) == Endianness::Little
}

/// The base of an address, and the distance from there.
fn base_of(func: &Function, inst: Inst, address: Value, offset: Offset32) -> (Base, i64) {
    let (base, offset) = base_and_offset(func, address, offset);
    if offset.unsigned_abs() < FARTHEST as u64 {
        (base, offset)
    } else {
        (Base::Far(address, inst), 0)
    }
}

/// What an address counts from, and how far it is from there; further than anything if that is beyond 64 bits.
fn base_and_offset(func: &Function, address: Value, offset: Offset32) -> (Base, i64) {
    let dfg = &func.dfg;
    let mut total = i64::from(i32::from(offset));
    let mut value = address;
    for _ in 0..STEPS {
        let ValueDef::Result(inst, _) = dfg.value_def(value) else {
            break;
        };
        let add = |add: i64| total.checked_add(add);
        match dfg.insts[inst] {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [a, b],
            } => {
                let (rest, sum) = match (integer(func, b), integer(func, a)) {
                    (Some(constant), _) => (a, add(constant)),
                    (None, Some(constant)) => (b, add(constant)),
                    (None, None) => break,
                };
                let Some(sum) = sum else {
                    return (Base::Value(value), i64::MAX);
                };
                (value, total) = (rest, sum);
            }
            InstructionData::StackAddr {
                stack_slot, offset, ..
            } => {
                let sum = add(i32::from(offset).into());
                return (Base::Slot(stack_slot), sum.unwrap_or(i64::MAX));
            }
            _ => {
                return match integer(func, value) {
                    Some(at) => (
                        Base::Absolute(dfg.value_type(value)),
                        add(at).unwrap_or(i64::MAX),
                    ),
                    None => (Base::Value(value), total),
                };
            }
        }
    }
    (Base::Value(value), total)
}
