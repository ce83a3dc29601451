//! Addresses, loads, stores, stack slots (design.md section 5).

use super::Lower;
use super::source::{Base, InstOutput, Output, Regs, Source, Src};
use crate::abi::{self, Redzone};
use crate::analysis::provenance::Space;
use crate::error::{Error, Place, Problem};
use crate::isa::generated::{AccessOrder, LoadSize, StoreSize, ldg, stg};
use crate::isa::{Optype, Role, VReg};
use crate::vcode::{Attachment, SymbolKind, SymbolUse};
use cranelift_codegen::ir::{
    Endianness, Inst, InstructionData, MemFlags, Opcode, StackSlot, Type, Value, types,
};
use smallvec::SmallVec;

/// Name of the stack slots in symbol attachments; the frame layout knows the offset.
pub const SLOTS: &str = "$frame.slots";

/// Offsets that fit the signed 24 bits of an address with any piece of an access behind them.
const OFFSETS: std::ops::Range<i64> = -(1 << 23)..(1 << 23) - 16;

/// An address: a register operand and a constant offset.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Base, one word for shared and local memory, two otherwise.
    pub base: Src,
    /// Byte offset in the instruction, or in the stack slots.
    pub offset: i64,
    /// Which instructions reach it.
    pub space: Space,
    /// The base is R1 and the offset counts from the stack slots.
    pub slot: bool,
    /// Proven alignment of the address in bytes.
    pub align: u32,
    /// A uniform pair added to the base: a kernel's pointer parameter.
    pub uniform: Option<Regs>,
    /// Other threads may use the place at the same time: its instructions are STRONG.
    pub strong: bool,
}

impl Address {
    /// Whether its loads and stores are STRONG: in the thread's own memory nobody else looks.
    fn is_strong(self) -> bool {
        self.strong && self.space != Space::Local
    }

    /// The address `bytes` further on.
    fn plus(self, bytes: u32) -> Address {
        let align = if bytes == 0 {
            self.align
        } else {
            self.align.min(1 << bytes.trailing_zeros())
        };
        Address {
            offset: self.offset + i64::from(bytes),
            align,
            ..self
        }
    }
}

impl Lower<'_> {
    /// Gives every stack slot its offset in the slot area, in order.
    pub(super) fn lay_out_slots(&mut self) {
        let mut end = 0u64;
        let mut zones = Vec::new();
        let mut below = None;
        for (slot, data) in self.func.sized_stack_slots.iter() {
            if data.align_shift > abi::STACK_ALIGNMENT.trailing_zeros() as u8 {
                let problem = Problem::Unsupported {
                    item: format!("{slot} aligned to 2^{} bytes", data.align_shift),
                    remedy: format!(
                        "slots are aligned to at most {} bytes; align the address in a larger slot",
                        abi::STACK_ALIGNMENT
                    ),
                };
                self.errors
                    .push(Error::new(problem, Place::of_function(self.func)));
            }
            let watched = self.input.stack_redzones && data.size > 0;
            if watched {
                let above = Some(slot.as_u32());
                end = redzone(&mut zones, end, below, above);
                below = above;
            }
            // Too large an offset is only met where there is an error.
            self.slots.push(end as u32);
            end += u64::from(data.size);
            if !watched {
                end = end.next_multiple_of(abi::STACK_ALIGNMENT.into());
            }
        }
        if below.is_some() {
            end = redzone(&mut zones, end, below, None);
        }
        if end > abi::MAX_LOCAL.into() {
            let message = format!(
                "the stack slots take {end} bytes of at most {}; keep the data in global memory",
                abi::MAX_LOCAL
            );
            self.errors.push(Error::new(
                Problem::Limit(message),
                Place::of_function(self.func),
            ));
            return;
        }
        self.frame.slot_bytes = end as u32;
        self.frame.redzones = zones;
    }

    /// The address of a memory operand, with constants and stack slots folded into the offset.
    pub fn address(&mut self, value: Value, offset: i32, size: u32, flags: MemFlags) -> Address {
        let data = self.func.dfg.mem_flags[flags];
        let align = if data.aligned() || self.input.assume_aligned {
            size.next_power_of_two()
        } else {
            self.input.facts.alignment.alignment(value, offset)
        };
        self.address_with(value, offset, align)
    }

    /// [`Lower::address`] of known alignment.
    pub(super) fn address_with(&mut self, value: Value, offset: i32, align: u32) -> Address {
        let space = self.input.facts.provenance.space(self.func, value);
        let (mut base, mut total) = (value, i64::from(offset));
        while let Some((inner, add)) = self.plus_constant(base) {
            let Some(sum) = total.checked_add(add).filter(|s| OFFSETS.contains(s)) else {
                break;
            };
            (base, total) = (inner, sum);
        }
        if let Some(InstructionData::StackAddr {
            stack_slot, offset, ..
        }) = self.def_data(base)
        {
            let slot = self.slots[cranelift_entity::EntityRef::index(stack_slot)];
            let offset = i64::from(slot) + i64::from(i32::from(offset)) + total;
            // Beyond local memory the frame would not fit into the bits with it.
            if offset.unsigned_abs() <= abi::MAX_LOCAL.into() {
                return Address {
                    base: Src::reg(self.stack_pointer()),
                    offset,
                    space: Space::Local,
                    slot: true,
                    align,
                    uniform: None,
                    strong: false,
                };
            }
        }
        let src = self.src(base);
        if let Some(constant) = src.as_imm() {
            // An absolute address: RZ and an offset when it is small.
            let bits = self.type_of(base).bits();
            let absolute = ((constant as i128) << (128 - bits) >> (128 - bits)) as i64;
            if let Some(sum) = absolute.checked_add(total).filter(|s| OFFSETS.contains(s)) {
                return Address {
                    base: Src::wide_imm(0, src.words),
                    offset: sum,
                    space,
                    slot: false,
                    align,
                    uniform: None,
                    strong: false,
                };
            }
        }
        let mut base = match space {
            Space::Local => src.low(),
            _ => src,
        };
        if !OFFSETS.contains(&total) {
            let words = base.words;
            let sum = if words == 1 {
                Regs::one(self.add(base, Src::imm(total as u32)))
            } else {
                self.add_wide(base, Src::wide_imm(total as u64 as u128, words))
            };
            (base, total) = (Src::regs(sum), 0);
        }
        Address {
            base,
            offset: total,
            space,
            slot: false,
            align,
            uniform: None,
            strong: false,
        }
    }

    /// [`Lower::address`], with a pointer parameter that is added to a computed offset left to the access: it reads the pointer from a uniform
    /// register, which saves the carry chain. An offset that is a product or a shift is better added by its own operation.
    fn address_of_access(
        &mut self,
        value: Value,
        offset: i32,
        size: u32,
        flags: MemFlags,
    ) -> Address {
        let address = self.address(value, offset, size, flags);
        if let Base::Constant {
            bank: crate::abi::LAUNCH_BANK,
            offset,
        } = address.base.base
            && address.base.words == 2
        {
            return Address {
                base: Src::wide_imm(0, 2),
                uniform: Some(self.uniform_parameter(offset)),
                ..address
            };
        }
        let Base::Value {
            value: sum,
            word: 0,
        } = address.base.base
        else {
            return address;
        };
        if address.base.words != 2 || address.slot {
            return address;
        }
        let Some(InstructionData::Binary {
            opcode: Opcode::Iadd,
            args: [x, y],
        }) = self.def_data(sum)
        else {
            return address;
        };
        for (pointer, index) in [(x, y), (y, x)] {
            let scaled = self.product_of(index).is_some()
                || (self.is_used_once(index)
                    && matches!(
                        self.def_data(index),
                        Some(InstructionData::Binary {
                            opcode: Opcode::Ishl,
                            ..
                        })
                    ));
            if let Base::Constant { offset, .. } = self.src(pointer).base
                && !scaled
                && !matches!(self.src(index).base, Base::Constant { .. })
            {
                return Address {
                    base: self.src(index),
                    uniform: Some(self.uniform_parameter(offset)),
                    ..address
                };
            }
        }
        address
    }

    fn plus_constant(&self, value: Value) -> Option<(Value, i64)> {
        match self.def_data(value)? {
            InstructionData::Binary {
                opcode: Opcode::Iadd,
                args: [a, b],
            } => {
                let constant = |v| {
                    self.signed_constant_of(v)
                        .and_then(|c| i64::try_from(c).ok())
                };
                constant(b)
                    .map(|c| (a, c))
                    .or_else(|| constant(a).map(|c| (b, c)))
            }
            _ => None,
        }
    }

    /// The address of a stack slot as a generic pointer.
    pub fn stack_address(&mut self, slot: StackSlot, offset: i32) -> Regs {
        let offset =
            i64::from(self.slots[cranelift_entity::EntityRef::index(slot)]) + i64::from(offset);
        self.frame_address(SLOTS, offset)
    }

    /// The generic address of a part of the frame; its offset from R1 is filled in when the frame is laid out.
    pub(super) fn frame_address(&mut self, part: &str, addend: i64) -> Regs {
        let pointer = self.stack_pointer();
        // It must be a form with an immediate.
        let low = self.operation(
            Optype::IADD,
            0,
            &[
                (Role::A, Source::Value(Src::reg(pointer))),
                (Role::B, Source::Value(Src::imm(1))),
                (Role::Pp, Source::Predicate(super::PSrc::FALSE)),
            ],
        );
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::B,
            kind: SymbolKind::AbsoluteLow,
            name: part.to_string(),
            addend,
        }));
        self.local_address(low.reg())
    }

    /// A byte offset in local memory as a generic address.
    pub(super) fn local_address(&mut self, offset: VReg) -> Regs {
        let high = self.gpr(Src::imm((crate::abi::LOCAL_WINDOW >> 32) as u32));
        Regs::new(&[offset, high.word(0)])
    }

    /// The uniform part of an address as a source; zero when there is none.
    fn uniform_source(address: Address) -> (Role, Source) {
        (
            Role::C,
            Source::Value(address.uniform.map_or(Src::ZERO, Src::regs)),
        )
    }

    fn load_piece(&mut self, address: Address, size: LoadSize) -> Regs {
        let optype = match address.space {
            Space::Global => Optype::LDG,
            Space::Shared => Optype::LDS,
            Space::Local => Optype::LDL,
            Space::Constant | Space::Generic => Optype::LD,
        };
        let mut options = ldg::SIZE.with(0, size);
        if address.is_strong() {
            options = ldg::ORDER.with(options, AccessOrder::Strong);
        }
        let out = self.operation(
            optype,
            options,
            &[
                (Role::A, Source::Value(address.base)),
                (
                    Role::Addr,
                    Source::Number(if address.slot { 0 } else { address.offset }),
                ),
                Self::uniform_source(address),
            ],
        );
        self.attach_slot(address);
        out.d()
    }

    fn store_piece(&mut self, address: Address, size: StoreSize, data: Src) {
        let optype = match address.space {
            Space::Global => Optype::STG,
            Space::Shared => Optype::STS,
            Space::Local => Optype::STL,
            Space::Constant | Space::Generic => Optype::ST,
        };
        let data = Src::regs(self.gpr(data));
        let mut options = stg::SIZE.with(0, size);
        if address.is_strong() {
            options = stg::ORDER.with(options, AccessOrder::Strong);
        }
        self.operation(
            optype,
            options,
            &[
                (Role::A, Source::Value(address.base)),
                (Role::B, Source::Value(data)),
                (
                    Role::Addr,
                    Source::Number(if address.slot { 0 } else { address.offset }),
                ),
                Self::uniform_source(address),
            ],
        );
        self.attach_slot(address);
    }

    fn attach_slot(&mut self, address: Address) {
        if address.slot {
            self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                role: Role::Addr,
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend: address.offset,
            }));
        }
    }

    /// Loads `bytes` bytes, zero-extended to whole words, in pieces of proven alignment.
    pub(super) fn load_bytes(&mut self, address: Address, bytes: u32) -> Regs {
        let piece = address.align.min(16).min(bytes);
        let mut words: SmallVec<[VReg; 4]> = SmallVec::new();
        let mut at = 0;
        while at < bytes {
            let here = address.plus(at);
            match piece.min(bytes - at) {
                16 => words.extend_from_slice(self.load_piece(here, LoadSize::W128).as_slice()),
                8.. => words.extend_from_slice(self.load_piece(here, LoadSize::W64).as_slice()),
                4.. => words.extend_from_slice(self.load_piece(here, LoadSize::W32).as_slice()),
                small => {
                    words.push(self.load_split_word(here, small, (bytes - at).min(4)));
                    at += (bytes - at).min(4);
                    continue;
                }
            }
            at += match piece.min(bytes - at) {
                16 => 16,
                8.. => 8,
                _ => 4,
            };
        }
        Regs::new(&words)
    }

    /// A word of `bytes` bytes from pieces of one or two bytes.
    fn load_split_word(&mut self, address: Address, piece: u32, bytes: u32) -> VReg {
        let size = if piece == 1 {
            LoadSize::U8
        } else {
            LoadSize::U16
        };
        let mut parts: SmallVec<[VReg; 4]> = SmallVec::new();
        let step = if piece == 1 { 1 } else { 2 };
        for at in (0..bytes).step_by(step as usize) {
            parts.push(self.load_piece(address.plus(at), size).word(0));
        }
        self.join_parts(&parts, step)
    }

    /// One word from its zero-extended bytes or halves.
    fn join_parts(&mut self, parts: &[VReg], step: u32) -> VReg {
        match (parts, step) {
            ([one], _) => *one,
            ([low, high], 2) => self.permute(Src::reg(*low), Src::reg(*high), Src::imm(0x5410)),
            ([low, high], _) => self.permute(Src::reg(*low), Src::reg(*high), Src::imm(0x5540)),
            ([a, b, c, d], _) => {
                let low = self.permute(Src::reg(*a), Src::reg(*b), Src::imm(0x5540));
                let high = self.permute(Src::reg(*c), Src::reg(*d), Src::imm(0x5540));
                self.permute(Src::reg(low), Src::reg(high), Src::imm(0x5410))
            }
            _ => unreachable!("a word has one, two or four parts"),
        }
    }

    /// Stores the low `bytes` bytes of a value in pieces of proven alignment.
    pub(super) fn store_bytes(&mut self, address: Address, bytes: u32, data: Src) {
        let piece = address.align.min(16).min(bytes);
        let mut at = 0;
        while at < bytes {
            let here = address.plus(at);
            let word = (at / 4) as u8;
            let step = match piece.min(bytes - at) {
                16 => {
                    self.store_piece(here, StoreSize::W128, data.slice(word, 4));
                    16
                }
                8.. => {
                    self.store_piece(here, StoreSize::W64, data.slice(word, 2));
                    8
                }
                4.. => {
                    self.store_piece(here, StoreSize::W32, data.slice(word, 1));
                    4
                }
                small => {
                    let (size, step) = if small == 1 {
                        (StoreSize::U8, 1)
                    } else {
                        (StoreSize::U16, 2)
                    };
                    let shift = at % 4 * 8;
                    let mut part = data.slice(word, 1);
                    if shift > 0 {
                        part = Src::reg(self.shift_right(part, Src::imm(shift), false, false));
                    }
                    self.store_piece(here, size, part);
                    step
                }
            };
            at += step;
        }
    }

    /// `load`, `uload8` and the like.
    pub fn load(&mut self, inst: Inst) -> Option<InstOutput> {
        let InstructionData::Load {
            opcode,
            arg,
            flags,
            offset,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let ty = self.type_of(self.func.dfg.first_result(inst));
        let (bytes, extend) = match opcode {
            Opcode::Load => (ty.bytes(), None),
            Opcode::Uload8 => (1, Some(false)),
            Opcode::Sload8 => (1, Some(true)),
            Opcode::Uload16 => (2, Some(false)),
            Opcode::Sload16 => (2, Some(true)),
            Opcode::Uload32 => (4, Some(false)),
            Opcode::Sload32 => (4, Some(true)),
            _ => return None,
        };
        if bytes > 16 {
            return None;
        }
        let address = self.address_of_access(arg, offset.into(), bytes, flags);
        // What may fault is not left out, whether or not somebody reads it. An access among the stack slots cannot.
        let end = i64::from(self.frame.slot_bytes) - i64::from(bytes);
        let in_slots = address.slot && (0..=end).contains(&address.offset);
        if !self.func.dfg.mem_flags[flags].notrap() && !in_slots {
            self.builder.keep_loads();
        }
        let big = self.func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big;
        let signed_small = extend == Some(true) && bytes < 4 && address.align >= bytes && !big;
        let mut regs = if signed_small {
            let size = if bytes == 1 {
                LoadSize::S8
            } else {
                LoadSize::S16
            };
            self.load_piece(address, size)
        } else {
            self.load_bytes(address, bytes)
        };
        let lane = match opcode {
            Opcode::Load => ty.lane_bits() / 8,
            _ => bytes,
        };
        if big && lane > 1 {
            regs = self.reverse_lanes(Src::regs(regs), lane, bytes);
        }
        if let Some(signed) = extend {
            if signed && bytes < 4 && !signed_small {
                regs = Regs::one(self.sign_extend_word(Src::regs(regs), bytes * 8));
            }
            if ty == types::I64 {
                let high = if signed {
                    self.sign_word(Src::reg(regs.word(0)))
                } else {
                    self.gpr(Src::ZERO).word(0)
                };
                regs = Regs::new(&[regs.word(0), high]);
            }
        }
        Some(SmallVec::from_slice(&[Output::Regs(regs)]))
    }

    /// `store`, `istore8` and the like.
    pub fn store(&mut self, inst: Inst) -> Option<InstOutput> {
        let InstructionData::Store {
            opcode,
            args: [value, arg],
            flags,
            offset,
        } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let ty = self.type_of(value);
        let bytes = match opcode {
            Opcode::Store => ty.bytes(),
            Opcode::Istore8 => 1,
            Opcode::Istore16 => 2,
            Opcode::Istore32 => 4,
            _ => return None,
        };
        if bytes > 16 {
            return None;
        }
        let address = self.address_of_access(arg, offset.into(), bytes, flags);
        let mut data = self.src(value);
        let lane = match opcode {
            Opcode::Store => ty.lane_bits() / 8,
            _ => bytes,
        };
        if self.func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big
            && lane > 1
        {
            let whole = data.slice(0, bytes.div_ceil(4) as u8);
            data = Src::regs(self.reverse_lanes(whole, lane, bytes));
        }
        self.store_bytes(address, bytes, data);
        Some(SmallVec::new())
    }

    /// The low `bytes` bytes of a value in opposite order.
    pub fn reverse_bytes(&mut self, src: Src, bytes: u32) -> Regs {
        if bytes == 2 {
            return Regs::one(self.permute(src.low(), Src::ZERO, Src::imm(0x4401)));
        }
        let mut words: SmallVec<[VReg; 4]> = SmallVec::new();
        for word in (0..src.words).rev() {
            words.push(self.permute(src.slice(word, 1), Src::ZERO, Src::imm(0x0123)));
        }
        Regs::new(&words)
    }

    /// The low `bytes` bytes of a value with the bytes of each lane in opposite order: the lanes of a vector lie in memory in their order,
    /// whatever the byte order is.
    fn reverse_lanes(&mut self, src: Src, lane: u32, bytes: u32) -> Regs {
        if lane == bytes {
            return self.reverse_bytes(src, bytes);
        }
        let mut words: SmallVec<[VReg; 4]> = SmallVec::new();
        if lane == 2 {
            for word in 0..src.words {
                words.push(self.permute(src.slice(word, 1), Src::ZERO, Src::imm(0x2301)));
            }
            return Regs::new(&words);
        }
        let step = (lane / 4) as u8;
        for word in (0..src.words).step_by(step.into()) {
            let reversed = self.reverse_bytes(src.slice(word, step), lane);
            words.extend_from_slice(reversed.as_slice());
        }
        Regs::new(&words)
    }

    /// Whether a type is held in registers as a whole.
    pub fn is_representable(ty: Type) -> bool {
        ty.bits() <= 128 && !ty.is_dynamic_vector() && ty != types::F128
    }
}

/// Adds a redzone from the end of a slot's bytes on; where the next slot begins.
fn redzone(zones: &mut Vec<Redzone>, start: u64, below: Option<u32>, above: Option<u32>) -> u64 {
    let end = start.next_multiple_of(abi::STACK_ALIGNMENT.into()) + u64::from(abi::REDZONE_BYTES);
    // Too large an offset is only met where there is an error.
    zones.push(Redzone {
        offset: start as u32,
        bytes: (end - start) as u32,
        below,
        above,
    });
    end
}
