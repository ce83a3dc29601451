//! What can be seen of a session that stands, and changed.

use super::data::{self, Datum, Path, VariableView};
use super::operand::Operand;
use super::session::{Session, WORD};
use super::stack::FrameId;
use super::stop::{Space, Thread};
use super::view::{AccessView, Value, WarpView};
use crate::launch::{Frame, Place, Window};
use crate::sim::launch::shape::Shape;
use crate::sim::memory::in_window;
use crate::sim::warp::registers::{GENERAL, LANES};
use crate::values::ValueLocations;

impl Session {
    /// All warps of the blocks that have begun and not ended.
    pub fn warps(&mut self) -> Vec<WarpView> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            // Blocks begin here, and barriers open.
            live.state.next(machine);
            live.state.warps(grid, WORD)
        })
    }

    /// The thread that issues next: the first of its lanes.
    pub fn next_thread(&mut self) -> Option<Thread> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            let next = live.state.next(machine)?;
            let block = Shape::number(grid, live.state.running[next.cta].block);
            let warp = live.state.warp(next).index;
            Some(Thread {
                block,
                thread: warp * LANES as u32 + next.group.mask.trailing_zeros(),
            })
        })
    }

    /// Where a thread is: its next instruction. None where its block has not begun or it has ended.
    pub fn place(&self, thread: Thread) -> Option<Place> {
        let grid = self.request.grid;
        let group = self.live.state.group_of(grid, thread)?;
        let block = Shape::coordinates(grid, thread.block);
        let request = self.request.borrowed();
        Some(self.loaded.place(&request, block, thread.thread, group.pc))
    }

    /// The thread of a place that a fault or a finding names.
    pub fn thread_at(&self, place: &Place) -> Thread {
        let (grid, block) = self.shape();
        Thread {
            block: Shape::number(grid, place.block),
            thread: Shape::number(block, place.thread) as u32,
        }
    }

    /// The calls that a thread is in, the innermost first, as many as a fault has.
    pub fn frames(&self, thread: Thread) -> Vec<Frame> {
        let warp = self.live.state.warp_of(self.request.grid, thread);
        warp.map_or(Vec::new(), |warp| {
            warp.calls.frames(thread.lane(), &self.loaded.image)
        })
    }

    /// A register, a value or a variable of the source as a thread has it; none where the thread does not run, there is
    /// no such register, or the value is nowhere.
    pub fn value(&self, thread: Thread, operand: &Operand) -> Option<u128> {
        self.value_in(thread, 0, operand)
    }

    /// The same so many calls further out: what the function there has, as far as its callees cannot have overwritten
    /// it.
    pub fn value_in(&self, thread: Thread, call: u32, operand: &Operand) -> Option<u128> {
        self.looking(thread, call, |look, lane| operand.value(look, lane))?
    }

    /// The variables that are seen from where a thread is so many calls further out, the innermost scope first; nothing
    /// if the front end has told of none, or the compiler was not asked for them (`value_locations`).
    pub fn variables(&self, thread: Thread, call: u32) -> Vec<VariableView> {
        let views = self.looking(thread, call, |look, lane| {
            let seen = data::seen(look).filter_map(|(frame, variable)| {
                Some(VariableView {
                    name: variable.name.clone(),
                    frame,
                    datum: data::datum(look, variable, lane)?,
                })
            });
            seen.collect()
        });
        views.unwrap_or_default()
    }

    /// The static variables that a thread's kernel has, with their paths: shared memory is that of its block.
    pub fn statics(&self, thread: Thread) -> Vec<(String, Datum)> {
        let found = self.looking(thread, 0, |look, _| {
            let found = data::statics(look).map(|(name, datum)| (name.to_owned(), datum));
            found.collect()
        });
        found.unwrap_or_default()
    }

    /// A variable, or a part of one, as a thread has it: of a function that it is in, or of one that this is inlined
    /// into.
    ///
    /// # Errors
    /// When it is not there, in words.
    pub fn datum(&self, thread: Thread, frame: FrameId, path: &Path) -> Result<Datum, String> {
        let FrameId { call, inlined } = frame;
        let found = self.looking(thread, call, |look, lane| path.resolve(look, inlined, lane));
        found.unwrap_or_else(|| Err("the thread does not run, or is in fewer calls".to_owned()))
    }

    /// What a datum of a thread is made of, by name: members, so many elements at most, what it points to.
    pub fn parts(&self, thread: Thread, datum: &Datum, most: usize) -> Vec<(String, Datum)> {
        let found = self.looking(thread, 0, |look, lane| datum.parts(look, most, lane));
        found.unwrap_or_default()
    }

    /// How many elements an array, a slice or a `DisjointMut` of a thread has; none of what has no elements.
    pub fn elements(&self, thread: Thread, datum: &Datum) -> Option<u64> {
        self.looking(thread, 0, |look, lane| datum.elements(look, lane))?
    }

    /// Whose memory a generic address of a thread is of, and the address or offset there.
    pub fn space_of(&self, thread: Thread, address: u64) -> (Space, u64) {
        let (window, address) = in_window(None, address);
        let space = match window {
            Window::Global => Space::Global,
            Window::Shared => Space::Shared {
                block: thread.block,
            },
            Window::Local => Space::Local(thread),
        };
        (space, address)
    }

    /// Where a datum of a thread stands in memory, and how many bytes it has; none of what is in registers.
    pub fn memory_of(&self, thread: Thread, datum: &Datum) -> Option<(Space, u64, u64)> {
        let bytes = self.loaded.image.types.get(datum.ty as usize)?.bytes;
        let (space, address) = self.space_of(thread, datum.address()?);
        Some((space, address, bytes))
    }

    /// The bytes of a datum of a thread; none of those that are nowhere.
    pub fn bytes(&self, thread: Thread, datum: &Datum) -> Vec<Option<u8>> {
        let bytes = self.looking(thread, 0, |look, lane| datum.bytes(look, lane));
        bytes.unwrap_or_default()
    }

    /// A datum of a thread as Rust writes it.
    pub fn text(&self, thread: Thread, datum: &Datum) -> String {
        let text = self.looking(thread, 0, |look, lane| datum.text(look, lane));
        text.unwrap_or_default()
    }

    /// The name of a datum's type.
    pub fn type_name(&self, datum: &Datum) -> &str {
        let ty = self.loaded.image.types.get(datum.ty as usize);
        ty.map_or("", |ty| &ty.name)
    }

    /// The values of the source in the function that a thread is in so many calls further out, with their CLIF types;
    /// nothing if the compiler was not asked for them (`value_locations`).
    pub fn source_values(&self, thread: Thread, call: u32) -> &[ValueLocations] {
        let pc = self.looking(thread, call, |look, _| look.pc);
        let function = pc.and_then(|pc| self.loaded.image.function_at(pc));
        function.map_or(&[], |function| &function.values)
    }

    /// A general register in the lanes of a thread's warp.
    pub fn register(&self, thread: Thread, number: u8) -> Option<Value> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        let exists = usize::from(number) < GENERAL;
        let column = exists.then(|| warp.registers.column(number.into()))?;
        Some(Value {
            lanes: column.map(u64::from),
            live: warp.live,
        })
    }

    /// General registers that the program uses.
    pub fn registers(&self) -> u8 {
        self.loaded.program.registers.min(255) as u8
    }

    /// A predicate as a mask of lanes, P0 to P6.
    pub fn predicate(&self, thread: Thread, number: u8) -> Option<u32> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        warp.registers.predicates.get(usize::from(number)).copied()
    }

    /// A uniform register of a thread's warp.
    pub fn uniform(&self, thread: Thread, number: u8) -> Option<u32> {
        let warp = self.live.state.warp_of(self.request.grid, thread)?;
        warp.registers.uniform.get(usize::from(number)).copied()
    }

    /// Sets a general register of a thread, until it goes backwards; whether there is such a register.
    pub fn set_register(&mut self, thread: Thread, number: u8, value: u32) -> bool {
        let grid = self.request.grid;
        let exists = usize::from(number) < GENERAL;
        match self.live.state.warp_of_mut(grid, thread) {
            Some(warp) if exists => {
                warp.registers.column_mut(number.into())[thread.lane()] = value;
                true
            }
            _ => false,
        }
    }

    /// What the lanes that a thread runs with are about to access, if their next instruction accesses memory.
    pub fn about_to_access(&mut self, thread: Thread) -> Option<AccessView> {
        let grid = self.request.grid;
        self.with(|machine, live, _| {
            let group = live.state.group_of(grid, thread)?;
            let warp = live.state.warp_of_mut(grid, thread)?;
            let op = machine.loaded.program.ops.get(group.pc as usize)?;
            let mask = group.mask & warp.registers.holds(op.guard);
            let accesses = warp.about_to_access(op, &machine.run.banks, mask)?;
            Some(AccessView {
                kind: accesses.kind,
                bytes: accesses.access.bytes.into(),
                addresses: accesses.addresses,
            })
        })
    }

    /// Bytes of memory from an address of global memory, or an offset, on.
    ///
    /// # Errors
    /// Memory that is not there, in words.
    pub fn read(&self, space: Space, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        self.live
            .read(&self.global, self.request.grid, space, address, bytes)
    }

    /// Refuses bytes that are none of a space of this launch; they may be those of a block that does not run yet or any
    /// more.
    ///
    /// # Errors
    /// Which part of it is not, in words.
    pub(super) fn must_be_in_memory(
        &self,
        space: Space,
        address: u64,
        bytes: u64,
    ) -> Result<(), String> {
        let blocks = self.extent.shape.blocks();
        let has_block = |block: u64| match block < blocks {
            true => Ok(()),
            false => Err(format!("there is no block {block}: there are {blocks}")),
        };
        let (what, size) = match space {
            Space::Global => {
                let found = self.global.find(address, bytes);
                return match found {
                    Some(_) => Ok(()),
                    None => Err(format!("no allocation has {bytes} bytes at {address:#x}")),
                };
            }
            Space::Shared { block } => {
                has_block(block)?;
                ("shared memory of a block", self.extent.shared_bytes)
            }
            Space::Local(Thread { block, thread }) => {
                has_block(block)?;
                let threads = self.extent.shape.threads();
                if u64::from(thread) >= threads {
                    return Err(format!(
                        "there is no thread {thread}: a block has {threads}"
                    ));
                }
                ("local memory of a thread", self.extent.stack_bytes)
            }
        };
        let end = address.checked_add(bytes);
        match end.is_some_and(|end| end <= size.into()) {
            true => Ok(()),
            false => Err(format!(
                "{bytes} bytes at {address:#x} are behind the {size} bytes of {what}"
            )),
        }
    }

    /// The instructions from an index on, as address and text.
    pub fn disassemble(&self, address: u32, count: usize) -> Vec<(u32, String)> {
        let all = self.loaded.program.ops.len() as u32;
        let first = address / WORD;
        let last = first.saturating_add(count as u32).min(all);
        (first..last)
            .map(|pc| (pc * WORD, self.loaded.text(pc)))
            .collect()
    }
}
