//! Atomic loads, stores, read-modify-writes, compare-and-swap and fences (design.md section 5).
//!
//! Read-modify-writes on words and pairs have instructions of their own, which are sequentially consistent. A load or store takes its
//! place in that order by a fence before it; the fence after a load keeps later accesses behind. A load that `can_move` takes no place
//! in it and has no fences. In the thread's own memory nobody else looks, so there they are plain accesses. Narrow ones and `nand` are
//! loops by now (`clif::atomics`).

use super::Lower;
use super::context::generated_code::constructor_near;
use super::integer::{TABLE_A, TABLE_B};
use super::memory::Address;
use super::source::{InstOutput, Output, PSrc, Regs, Source, Src, VALUE_CLASS};
use crate::analysis::provenance::Space;
use crate::isa::generated::{
    AtomOp, AtomType, CASType, IType, MemScope, RedOp, atom, atom_cas, membar, red,
};
use crate::isa::{Optype, Role, VReg};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, Inst, InstructionData, MemFlags, Opcode, Type, Value,
};
use smallvec::SmallVec;

impl Lower<'_> {
    /// `atomic_load`, `atomic_store`, `atomic_rmw`, `atomic_cas`.
    pub(super) fn atomic(&mut self, inst: Inst) -> Option<InstOutput> {
        let data = self.func.dfg.insts[inst];
        match data {
            InstructionData::LoadNoOffset {
                opcode: Opcode::AtomicLoad,
                arg,
                flags,
            } => {
                let ty = self.type_of(self.func.dfg.first_result(inst));
                let address = self.atomic_address(arg, ty, flags)?;
                let ordered =
                    address.space != Space::Local && !self.func.dfg.mem_flags[flags].can_move();
                if ordered {
                    self.memory_barrier(address.space);
                }
                self.builder.keep_loads();
                let regs = self.load_bytes(address, ty.bytes());
                if ordered {
                    self.memory_barrier(address.space);
                }
                Some(SmallVec::from_slice(&[Output::Regs(regs)]))
            }
            InstructionData::StoreNoOffset {
                opcode: Opcode::AtomicStore,
                args: [value, pointer],
                flags,
            } => {
                let ty = self.type_of(value);
                let address = self.atomic_address(pointer, ty, flags)?;
                let value = self.src(value);
                if address.space != Space::Local {
                    self.memory_barrier(address.space);
                }
                self.store_bytes(address, ty.bytes(), value);
                Some(SmallVec::new())
            }
            InstructionData::AtomicRmw {
                op,
                flags,
                args: [pointer, operand],
                ..
            } => {
                let ty = self.type_of(operand);
                let address = self.atomic_address(pointer, ty, flags)?;
                let operand = self.src(operand);
                let asked = self.is_asked(self.func.dfg.first_result(inst));
                let old = self.read_modify_write(op, ty, address, operand, asked)?;
                Some(SmallVec::from_slice(&[Output::Regs(old)]))
            }
            InstructionData::AtomicCas {
                flags,
                args: [pointer, expected, new],
                ..
            } => {
                let ty = self.type_of(new);
                let address = self.atomic_address(pointer, ty, flags)?;
                let (expected, new) = (self.src(expected), self.src(new));
                let old = self.compare_and_swap(ty, address, expected, new)?;
                Some(SmallVec::from_slice(&[Output::Regs(old)]))
            }
            _ => None,
        }
    }

    /// `fence`.
    pub(super) fn fence(&mut self) {
        self.memory_barrier(Space::Generic);
    }

    /// MEMBAR as far as others see the space: the block sees shared memory, the device the rest.
    fn memory_barrier(&mut self, space: Space) {
        let scope = if space == Space::Shared {
            MemScope::Cta
        } else {
            MemScope::Gl
        };
        self.operation(Optype::MEMBAR, membar::Options::new(scope).word(), &[]);
    }

    /// The address of an atomic access, which must be naturally aligned. None for sizes and byte orders that the machine does not have.
    fn atomic_address(&mut self, pointer: Value, ty: Type, flags: MemFlags) -> Option<Address> {
        let big = self.func.dfg.mem_flags[flags].endianness(Endianness::Little) == Endianness::Big;
        if ty.bits() > 64 || big {
            return None;
        }
        let address = self.address(pointer, 0, ty.bytes(), flags);
        let address = constructor_near(self, address);
        Some(Address {
            align: ty.bytes(),
            strong: address.space != Space::Local,
            ..address
        })
    }

    /// `%gpu_atomic_add_f32` and `%gpu_atomic_add_f16x2`.
    pub(super) fn atomic_add_float(
        &mut self,
        inst: Inst,
        atype: AtomType,
        p: Value,
        x: Value,
    ) -> InstOutput {
        let address = self.address_with(p, 0, 4);
        let address = constructor_near(self, address);
        let operand = self.src(x);
        let asked = self.is_asked(self.func.dfg.first_result(inst));
        // The thread's own memory too is reached by a generic address.
        let address = self.generic(address, p);
        let old = self.emit_atomic(
            AtomOp::Add,
            Some(RedOp::Add),
            atype,
            address,
            operand,
            asked,
        );
        SmallVec::from_slice(&[Output::Regs(old)])
    }

    /// The same place as a generic address where the space has no atomic operations.
    fn generic(&mut self, address: Address, pointer: Value) -> Address {
        match address.space {
            Space::Local | Space::Constant => Address {
                base: self.src(pointer),
                offset: 0,
                space: Space::Generic,
                slot: false,
                ..address
            },
            _ => address,
        }
    }

    fn read_modify_write(
        &mut self,
        op: AtomicRmwOp,
        ty: Type,
        address: Address,
        operand: Src,
        asked: bool,
    ) -> Option<Regs> {
        if address.space == Space::Local {
            let old = self.load_bytes(address, ty.bytes());
            let new = self.apply(op, Src::regs(old), operand);
            self.store_bytes(address, ty.bytes(), new);
            return Some(old);
        }
        let wide = ty.bits() == 64;
        let (unsigned, signed) = if wide {
            (AtomType::U64, AtomType::S64)
        } else {
            (AtomType::U32, AtomType::S32)
        };
        let (atom, red, atype) = match op {
            AtomicRmwOp::Add | AtomicRmwOp::Sub => (AtomOp::Add, Some(RedOp::Add), unsigned),
            AtomicRmwOp::And => (AtomOp::And, Some(RedOp::And), unsigned),
            AtomicRmwOp::Or => (AtomOp::Or, Some(RedOp::Or), unsigned),
            AtomicRmwOp::Xor => (AtomOp::Xor, Some(RedOp::Xor), unsigned),
            AtomicRmwOp::Xchg => (AtomOp::Exch, None, unsigned),
            AtomicRmwOp::Umin => (AtomOp::Min, Some(RedOp::Min), unsigned),
            AtomicRmwOp::Umax => (AtomOp::Max, Some(RedOp::Max), unsigned),
            AtomicRmwOp::Smin => (AtomOp::Min, Some(RedOp::Min), signed),
            AtomicRmwOp::Smax => (AtomOp::Max, Some(RedOp::Max), signed),
            AtomicRmwOp::Nand => return None,
        };
        let operand = match (op, operand.as_imm()) {
            (AtomicRmwOp::Sub, Some(imm)) if wide => {
                Src::wide_imm(u128::from((imm as u64).wrapping_neg()), 2)
            }
            (AtomicRmwOp::Sub, Some(imm)) => Src::imm((imm as u32).wrapping_neg()),
            (AtomicRmwOp::Sub, None) if wide => {
                Src::regs(self.subtract_wide(Src::wide_imm(0, 2), operand))
            }
            (AtomicRmwOp::Sub, None) => Src::regs(self.negate(operand)),
            _ => operand,
        };
        Some(self.emit_atomic(atom, red, atype, address, operand, asked))
    }

    /// What a read-modify-write stores, without anybody else looking.
    fn apply(&mut self, op: AtomicRmwOp, old: Src, operand: Src) -> Src {
        let (cc, itype) = match op {
            AtomicRmwOp::Add => return Src::regs(self.add_wide(old, operand)),
            AtomicRmwOp::Sub => return Src::regs(self.subtract_wide(old, operand)),
            AtomicRmwOp::Xchg => return operand,
            AtomicRmwOp::And => return self.logic_wide(old, operand, TABLE_A & TABLE_B),
            AtomicRmwOp::Or => return self.logic_wide(old, operand, TABLE_A | TABLE_B),
            AtomicRmwOp::Xor => return self.logic_wide(old, operand, TABLE_A ^ TABLE_B),
            AtomicRmwOp::Nand => return self.logic_wide(old, operand, !(TABLE_A & TABLE_B)),
            AtomicRmwOp::Umin => (IntCC::UnsignedLessThan, IType::U32),
            AtomicRmwOp::Umax => (IntCC::UnsignedGreaterThan, IType::U32),
            AtomicRmwOp::Smin => (IntCC::SignedLessThan, IType::S32),
            AtomicRmwOp::Smax => (IntCC::SignedGreaterThan, IType::S32),
        };
        if old.words == 1 {
            let minimum = matches!(op, AtomicRmwOp::Umin | AtomicRmwOp::Smin);
            return Src::reg(self.min_max(old, operand, itype, minimum));
        }
        let p = self.compare_wide(cc, old, operand);
        Src::regs(self.select_wide(p, old, operand))
    }

    /// A function of two operands by truth table, word by word.
    pub(super) fn logic_wide(&mut self, a: Src, b: Src, table: u8) -> Src {
        let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
        for word in 0..a.words {
            regs.push(self.logic3(a.slice(word, 1), b.slice(word, 1), Src::ZERO, table));
        }
        Src::regs(Regs::new(&regs))
    }

    /// ATOMG, ATOMS or ATOM, and the old value; RED when nobody wants that.
    fn emit_atomic(
        &mut self,
        op: AtomOp,
        red_op: Option<RedOp>,
        atype: AtomType,
        address: Address,
        operand: Src,
        asked: bool,
    ) -> Regs {
        let operand = Src::regs(self.gpr(operand));
        let sources = [
            (Role::A, Source::Value(address.base)),
            (Role::B, Source::Value(operand)),
            (Role::Addr, Source::Number(address.offset)),
        ];
        if let (Some(red_op), false, false) = (red_op, asked, address.space == Space::Shared) {
            self.operation(
                Optype::RED,
                red::Options::new(atype, red_op).word(),
                &sources,
            );
            let unread = [self.builder.vreg(VALUE_CLASS); 2];
            return Regs::new(&unread[..operand.words as usize]);
        }
        let optype = match address.space {
            Space::Global => Optype::ATOMG,
            Space::Shared => Optype::ATOMS,
            Space::Local | Space::Constant | Space::Generic => Optype::ATOM,
        };
        let out = self.operation(optype, atom::Options::new(atype, op).word(), &sources);
        out.d()
    }

    fn compare_and_swap(
        &mut self,
        ty: Type,
        address: Address,
        expected: Src,
        new: Src,
    ) -> Option<Regs> {
        let wide = match ty.bits() {
            32 => false,
            64 => true,
            _ => return None,
        };
        if address.space == Space::Local {
            let old = self.load_bytes(address, ty.bytes());
            let same: PSrc = self.compare_wide(IntCC::Equal, Src::regs(old), expected);
            let stored = self.select_wide(same, new, Src::regs(old));
            self.store_bytes(address, ty.bytes(), Src::regs(stored));
            return Some(old);
        }
        let optype = match address.space {
            Space::Global => Optype::ATOMG_CAS,
            Space::Shared => Optype::ATOMS_CAS,
            Space::Local | Space::Constant | Space::Generic => Optype::ATOM_CAS,
        };
        let atype = if wide { CASType::U64 } else { CASType::U32 };
        let (expected, new) = (Src::regs(self.gpr(expected)), Src::regs(self.gpr(new)));
        let out = self.operation(
            optype,
            atom_cas::Options::new(atype).word(),
            &[
                (Role::A, Source::Value(address.base)),
                (Role::B, Source::Value(expected)),
                (Role::C, Source::Value(new)),
                (Role::Addr, Source::Number(address.offset)),
            ],
        );
        Some(out.d())
    }
}
