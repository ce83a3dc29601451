//! Where the mask of a region is while other regions use its convergence barrier.
//!
//! A mask is put aside in a register. A region that lanes enter at several places would need one with as many
//! definitions: its mask is in a slot of the frame. In nests that are deeper than [`IN_REGISTERS`] levels the masks of
//! all levels would be alive at once: they go to slots too, one for each level, because regions of one level do not
//! overlap. So what is alive at any place is bounded, however deep a function is nested, and with it the work of all
//! that follows. Each lane has a copy of the mask, as it has of a barrier. Lanes that have exited since stay in it:
//! BSYNC waits for none of them.

use super::edit::Editor;
use crate::abi;
use crate::isa::generated::{LoadSize, StoreSize, ldl, stl};
use crate::isa::{RegisterClass, Role, VInst, VReg, build};
use crate::vcode::{Attachment, Entry, Frame, SourceLine, SymbolKind, SymbolUse};
use hashbrown::HashMap;

/// Levels whose masks have registers (*assumed*: with what else a function has they fit into the registers that
/// regalloc2 gives).
pub(super) const IN_REGISTERS: u32 = 32;
/// Bytes of a mask.
const BYTES: u32 = 4;

/// Where masks are put aside.
#[derive(Clone, Copy, Debug)]
pub(super) enum Home {
    /// A register for the life of the region.
    Register(VReg),
    /// A slot of the frame, which R1 leads to.
    Slot {
        /// Among the stack slots.
        offset: u32,
        /// R1.
        pointer: VReg,
    },
}

/// The slots of the masks that have no registers.
#[derive(Debug, Default)]
pub(super) struct Masks {
    /// By level: where among the stack slots.
    slots: HashMap<u32, u32>,
    /// R1, once it is needed.
    pointer: Option<VReg>,
}

impl Masks {
    /// A home for the mask of a region at `level` that lanes enter at so many places.
    pub fn home(&mut self, editor: &mut Editor<VReg>, level: u32, starts: usize) -> Home {
        let code = editor.code();
        if level < IN_REGISTERS && starts == 1 {
            return Home::Register(code.new_vreg(RegisterClass::Gpr));
        }
        let pointer = *self.pointer.get_or_insert_with(|| {
            code.frame.uses_pointer = true;
            let known = code.entry.iter().find(|(_, r)| *r == abi::STACK_POINTER);
            known.map(|(v, _)| *v).unwrap_or_else(|| {
                let pointer = code.new_vreg(RegisterClass::Gpr);
                code.entry.push((pointer, abi::STACK_POINTER));
                pointer
            })
        });
        let bytes = &mut code.frame.slot_bytes;
        let offset = *self.slots.entry(level).or_insert_with(|| {
            let offset = bytes.next_multiple_of(BYTES);
            *bytes = offset + BYTES;
            offset
        });
        Home::Slot { offset, pointer }
    }
}

impl Home {
    /// The instructions that put the mask aside that barrier `number` has.
    pub fn save(self, editor: &mut Editor<VReg>, number: u8, line: SourceLine) -> Vec<Entry<VReg>> {
        let mask = self.register(editor);
        let mut code = vec![plain(build::bmov_x(mask, number), line)];
        if let Home::Slot { offset, pointer } = self {
            let options = stl::Options::new(StoreSize::W32);
            let mut store = plain(build::stl_rr(options, pointer, 0, mask), line);
            store.attachment = editor.attach(slot(offset));
            code.push(store);
        }
        code
    }

    /// The instructions that give it to the barrier again.
    pub fn restore(
        self,
        editor: &mut Editor<VReg>,
        number: u8,
        line: SourceLine,
    ) -> Vec<Entry<VReg>> {
        let mask = self.register(editor);
        let mut code = Vec::new();
        if let Home::Slot { offset, pointer } = self {
            let options = ldl::Options::new(LoadSize::W32);
            let mut load = plain(build::ldl_r(options, mask, pointer, 0), line);
            load.attachment = editor.attach(slot(offset));
            code.push(load);
        }
        code.push(plain(build::bmov_r(number, mask), line));
        code
    }

    /// The register on the way: each time another one where it does not stay.
    fn register(self, editor: &mut Editor<VReg>) -> VReg {
        match self {
            Home::Register(mask) => mask,
            Home::Slot { .. } => editor.code().new_vreg(RegisterClass::Gpr),
        }
    }
}

fn plain(inst: VInst, line: SourceLine) -> Entry<VReg> {
    Entry::new(inst, line)
}

/// The slot at `offset`, as the address of an access.
fn slot(offset: u32) -> Attachment<VReg> {
    Attachment::Symbol(SymbolUse {
        role: Role::Addr,
        kind: SymbolKind::AbsoluteLow,
        name: Frame::SLOTS.to_string(),
        addend: offset.into(),
    })
}
