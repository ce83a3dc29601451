//! The functions that a thread is in: those that were inlined into each other, and the calls.

use super::data;
use super::operand::Look;
use super::session::{Session, WORD};
use super::stop::Thread;
use crate::locations::Location;
use crate::sim::launch::launch_bank;
use crate::sim::launch::shape::Shape;
use crate::variables::ScopeKind;

/// Which of the functions that a thread is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId {
    /// How many calls further out; 0 is where the thread runs.
    pub call: u32,
    /// How many inlined calls further out than what is innermost there.
    pub inlined: u32,
}

/// A function that a thread is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// Which.
    pub id: FrameId,
    /// The code address of the thread's next instruction, or of the call.
    pub pc: u32,
    /// The symbol of the function that has the instruction, when known.
    pub function: Option<String>,
    /// What the source calls the function that is inlined there, or that one, if a front end has told.
    pub name: Option<String>,
    /// Whether it is inlined into the next one.
    pub is_inlined: bool,
    /// Its place in the source; line 0 when it is unknown.
    pub location: Location,
}

impl Session {
    /// The functions that a thread is in, the innermost first; nothing if it does not run.
    pub fn stack(&self, thread: Thread) -> Vec<StackFrame> {
        let mut frames = Vec::new();
        for call in 0.. {
            let Some((pc, names)) = self.looking(thread, call, |look, _| (look.pc, names(look)))
            else {
                break;
            };
            let image = &self.loaded.image;
            let mut places = image.places_at(pc);
            if places.is_empty() {
                places.push(Location::default());
            }
            let function = image.function_at(pc).map(|function| &function.name);
            let count = places.len() as u32;
            let places = (0..).zip(places);
            frames.extend(places.map(|(inlined, location)| StackFrame {
                id: FrameId { call, inlined },
                is_inlined: inlined + 1 < count,
                pc,
                function: function.cloned(),
                name: names.get(inlined as usize).cloned(),
                location,
            }));
        }
        frames
    }

    /// The names that the source has for the function that a thread is in so many calls further out, and for those that
    /// it was inlined into, the innermost first; nothing if the front end has told of none.
    pub fn scope_names(&self, thread: Thread, call: u32) -> Vec<String> {
        let names = self.looking(thread, call, |look, _| names(look));
        names.unwrap_or_default()
    }

    /// Looks at a thread, or so many calls further out; none if it does not run, or is in fewer.
    pub(super) fn looking<R>(
        &self,
        thread: Thread,
        call: u32,
        with: impl FnOnce(&Look<'_>, usize) -> R,
    ) -> Option<R> {
        let grid = self.request.grid;
        let state = &self.live.state;
        let warp = state.warp_of(grid, thread)?;
        let group = state.group_of(grid, thread)?;
        let block = Shape::coordinates(grid, thread.block);
        let cta = state.running.iter().find(|cta| cta.block == block)?;
        let bank = launch_bank(&self.request.borrowed(), self.extent.stack_bytes);
        let caller = match call.checked_sub(1) {
            None => None,
            Some(outer) => Some(warp.calls.call(thread.lane(), outer as usize)?),
        };
        let look = Look {
            image: &self.loaded.image,
            kernel: self.kernel(),
            bank: &bank,
            warp,
            global: &self.global,
            shared: cta.shared(),
            pc: caller.map_or(group.pc, |(pc, _)| pc) * WORD,
            kept: caller.map(|(_, kept)| kept),
        };
        Some(with(&look, thread.lane()))
    }
}

/// What the source calls the functions around an instruction.
fn names(look: &Look<'_>) -> Vec<String> {
    let names = data::scopes(look).filter_map(|scope| match &scope.kind {
        ScopeKind::Function(name) | ScopeKind::Inlined(name, _) => Some(name.clone()),
        ScopeKind::Block => None,
    });
    names.collect()
}
