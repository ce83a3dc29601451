//! Weak memory: accesses are performed out of order, as far as `docs/memory.md` allows the machine to.
//!
//! In: every instruction of every warp, and a seed. Out: the same values as ever for code that orders what it has to
//! order; for other code one of the outcomes that a machine could have. The same seed gives the same run. Nothing here
//! is used unless [`SimConfig::weak`](crate::sim::SimConfig::weak) asks for it.
//!
//! An operational model. A load, store or atomic of shared or global memory is checked and takes its address and data
//! when it is issued, and becomes one of the thread's [`pending`] accesses. Later, at random or because something waits
//! for it, it is performed: shared memory changes for the block, which is everybody who sees it. Of global memory each
//! block has a [`view`] of its own, from which weak stores go to the device later, and whose weak loads may be answered
//! by what the device held in the [`past`]. [`step`] says what each instruction waits for. Local memory and constants
//! are in order.
//!
//! A register is written when the load is performed. Code that reads it without waiting for the scoreboard reads what
//! was there before; that this is a mistake timed mode tells.
//!
//! Warps of a block, groups of a warp and blocks that are resident together take turns of random length in random
//! order. How long accesses stay pending, which ones stay longer, and how much blocks keep are moods ([`Mood`]) that
//! change now and then: some mistakes show only when one thread is far ahead of another, or when all stores are late.

mod past;
mod pending;
mod step;
mod view;

use super::execute::Environment;
use super::warp::{Warp, WarpState};
use crate::isa::random::Random;
use crate::launch::Stats;
use crate::sim::execute::stop::Stopped;
use crate::sim::memory::global::Table;
use past::Past;
use pending::Pending;
use view::{Device, View};

/// Turns after which a block's mood changes, on average (assigned).
const MOOD_TURNS: usize = 64;

/// Launches of which one has lines that are far all the time (assigned).
const FAR: usize = 4;
/// Instructions of a turn, at most (assigned).
const TURN: u64 = 256;
/// Warps of which one may be late, and how many of its turns one is that it takes (assigned).
const LATE: usize = 8;

/// How a block treats its accesses for a while. The figures are assigned.
#[derive(Clone, Copy, Debug)]
struct Mood {
    /// Accesses of a turn, at most.
    turn: usize,
    /// One turn in so many is taken.
    sleeps: usize,
    /// A warp that takes few turns, if the block has it.
    late: usize,
    /// One time in so many, an instruction that waits gets some of what it waits for.
    hurries: usize,
    /// At one access in so many, accesses are performed that nobody waits for.
    performs: usize,
    /// At one in so many, a word of the block's stores goes to the device.
    drains: usize,
    /// One weak load in so many is answered by something old, where there is something.
    keeps: usize,
    /// Accesses that mostly stay pending.
    slow: fn(&Pending, u64) -> bool,
    /// What is slow for whom.
    salt: u64,
}

/// For each thread accesses to some lines: there the way is long. Two threads may find two places in either order.
fn is_far(access: &Pending, salt: u64) -> bool {
    let key = (access.line() << 5 | access.lane) as u64 ^ salt;
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 != 0
}

impl Mood {
    /// A new one; `far`: lines are far for the whole launch.
    fn new(random: &mut Random, far: bool) -> Mood {
        const SLOW: [fn(&Pending, u64) -> bool; 10] = [
            |_, _| false,
            |_, _| false,
            |access, _| access.stored().is_some(),
            |access, _| access.stored().is_none(),
            |access, _| access.is_global(),
            |access, _| !access.is_global(),
            |access, _| access.strong,
            |access, _| !access.strong,
            is_far,
            is_far,
        ];
        // Who waits must not hurry what is far.
        let (hurries, performs, slow) = match far {
            true => (
                32,
                *random.pick(&[1, 4]),
                is_far as fn(&Pending, u64) -> bool,
            ),
            false => (
                *random.pick(&[1, 1, 4, 32]),
                *random.pick(&[1, 4, 16, 64]),
                *random.pick(&SLOW),
            ),
        };
        Mood {
            turn: *random.pick(&[1, 2, 8, 32]),
            sleeps: *random.pick(&[1, 1, 2, 8]),
            late: random.below(LATE),
            hurries,
            performs,
            drains: *random.pick(&[1, 8, 64]),
            keeps: *random.pick(&[1, 2, 8]),
            slow,
            salt: random.bits(),
        }
    }
}

/// A block.
#[derive(Debug)]
struct Block {
    /// Global memory as its threads see it.
    view: View,
    /// By warp, the accesses that are not performed, in order of issue.
    pending: Vec<Vec<Pending>>,
    mood: Mood,
}

/// The memory of a launch that keeps no order.
#[derive(Debug)]
pub struct Weak {
    random: Random,
    /// Whether lines are far all the time.
    far: bool,
    past: Past,
    /// By the room that a CTA runs in.
    blocks: Vec<Block>,
    /// Views of blocks that have ended with stores that the device does not have.
    left: Vec<View>,
}

impl Weak {
    /// That of a launch.
    pub fn new(seed: u64) -> Weak {
        let mut random = Random::new(seed);
        Weak {
            far: random.one_in(FAR),
            random,
            past: Past::default(),
            blocks: Vec::new(),
            left: Vec::new(),
        }
    }

    /// A CTA of so many warps begins in a room; rooms are numbered from 0 and first used in this order.
    pub fn start(&mut self, room: usize, warps: usize) {
        let block = Block {
            view: View::default(),
            pending: vec![Vec::new(); warps],
            mood: Mood::new(&mut self.random, self.far),
        };
        match self.blocks.get_mut(room) {
            Some(old) => *old = block,
            None => self.blocks.push(block),
        }
    }

    /// The CTA of a room has ended. Its threads have performed their accesses; the device may have their stores later.
    pub fn end_block(&mut self, room: usize) {
        if let Some(block) = self.blocks.get_mut(room) {
            let view = std::mem::take(&mut block.view);
            if !view.is_drained() {
                self.left.push(view);
            }
        }
    }

    /// The launch has ended: the device has all stores that were performed for any block.
    pub fn end(&mut self, table: &Table) {
        let Weak {
            random,
            past,
            blocks,
            left,
            ..
        } = self;
        let mut device = Device {
            table,
            past,
            random,
        };
        let views = blocks.iter_mut().map(|block| &mut block.view);
        views.chain(left).for_each(|view| view.fence(&mut device));
    }

    /// Puts those that run in the order of their next turns.
    pub fn shuffle<T>(&mut self, running: &mut [T]) {
        for count in (2..=running.len()).rev() {
            running.swap(count - 1, self.random.below(count));
        }
    }

    /// A warp of the CTA in a room runs for a while; at most `limit` instructions.
    ///
    /// # Errors
    /// The first fault.
    pub fn turn(
        &mut self,
        room: usize,
        warps: &mut [Warp],
        env: &mut Environment,
        stats: &mut Stats,
        limit: u64,
    ) -> Result<(), Stopped> {
        let Weak {
            random,
            far,
            past,
            blocks,
            left,
        } = self;
        let block = &mut blocks[room];
        if random.one_in(MOOD_TURNS) {
            block.mood = Mood::new(random, *far);
        }
        let ready = |index: &usize| warps[*index].state() == WarpState::Ready;
        let count = (0..warps.len()).filter(ready).count();
        let choice = random.below(count.max(1));
        let Some(index) = (0..warps.len()).filter(ready).nth(choice) else {
            return Ok(());
        };
        let is_late = index == block.mood.late && !random.one_in(LATE);
        if is_late || !random.one_in(block.mood.sleeps) {
            return Ok(());
        }
        warps[index].choose_group(random.bits() as usize);
        let end = stats.warp_instructions + limit.min(TURN);
        for _ in 0..1 + random.below(block.mood.turn) {
            let mut device = Device {
                table: env.global,
                past,
                random,
            };
            if !left.is_empty() && device.random.one_in(block.mood.drains) {
                let view = device.random.below(left.len());
                left[view].drain_one(&mut device);
                left.retain(|view| !view.is_drained());
            }
            block.meanwhile(&mut device, warps, env);
            let warp = &mut warps[index];
            // What only computes is no step for others.
            while warp.state() == WarpState::Ready && stats.warp_instructions < end {
                let pc = warp.group().pc;
                let stepped = block.step(&mut device, index, warp, env);
                let stepped = stepped.map_err(|stop| Stopped {
                    stop,
                    warp: index,
                    pc,
                })?;
                if let Some(issued) = stepped.issued {
                    stats.warp_instructions += 1;
                    stats.thread_instructions += u64::from(issued.mask.count_ones());
                }
                if stepped.matters {
                    break;
                }
            }
        }
        Ok(())
    }
}
