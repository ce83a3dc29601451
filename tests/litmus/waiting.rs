//! Litmus tests with loops and conditions: locks, messages that are waited for, and the last one who sums up. What they
//! must leave is said here; the model enumerates no loops.

use crate::shapes::Placement;
use crate::shapes::Space::{self, GenericGlobal, GenericShared, Global, Shared};
use crate::text::{Text, address, begin};
use cranelift_thisgpu::driver::Grid;
use std::fmt::{self, Display};

/// A test that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub name: String,
    pub kernel: String,
    pub grid: Grid,
    /// Instances in a launch.
    pub instances: usize,
    /// What each instance leaves in the second buffer.
    pub expected: Vec<u32>,
}

impl Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

/// Threads or blocks that take part in a ticket or a lock.
const PARTS: u32 = 3;
/// Lanes of a warp that want a lock.
const LANES: u32 = 3;

fn letters(spaces: &[Space]) -> String {
    spaces.iter().map(|space| space.letter()).collect()
}

fn grid(placement: Placement, parts: u32) -> Grid {
    let (blocks, threads) = match placement {
        Placement::Grid => (parts, 32),
        _ => (1, 32 * parts),
    };
    Grid::new([blocks, 1, 1], [threads, 1, 1])
}

fn name_of(placement: Placement) -> &'static str {
    match placement {
        Placement::Grid => "grid",
        _ => "block",
    }
}

/// Spaces of a flag and two words of data, in one block and across.
const BLOCK: [[Space; 3]; 7] = [
    [Global, Global, Global],
    [Shared, Shared, Shared],
    [Shared, Global, Shared],
    [Global, Global, Shared],
    [GenericShared, GenericGlobal, GenericShared],
    [GenericGlobal, Global, Shared],
    [Shared, GenericGlobal, GenericShared],
];
const ACROSS: [[Space; 3]; 3] = [
    [Global, Global, Global],
    [GenericGlobal, GenericGlobal, GenericGlobal],
    [Global, GenericGlobal, Global],
];

/// Every placement with its spaces.
fn places() -> impl Iterator<Item = (Placement, [Space; 3])> {
    let block = BLOCK.iter().map(|s| (Placement::Block, *s));
    block.chain(ACROSS.iter().map(|s| (Placement::Grid, *s)))
}

/// All tests of this kind.
pub fn all() -> Vec<Waiting> {
    let mut all = Vec::new();
    for (placement, spaces) in places() {
        for take in ["cas", "exchange"] {
            for give in ["store", "exchange", "fence"] {
                all.push(lock(placement, spaces, take, give));
            }
        }
        for flag in ["store", "exchange", "fence"] {
            for wait in ["load", "modify", "fence"] {
                all.push(message(placement, spaces, flag, wait));
            }
        }
        all.push(last(placement, spaces));
    }
    all
}

/// A store of `value` that publishes what came before.
fn publish(text: &mut Text, how: &str, value: &str, address: &str) {
    match how {
        "store" => text.line(&format!("atomic_store {value}, {address}")),
        "exchange" => {
            text.value(&format!("atomic_rmw.i32 xchg {address}, {value}"));
        }
        _ => {
            text.line("fence");
            text.line(&format!("atomic_store can_move {value}, {address}"));
        }
    }
}

/// Both words of data are counted up under a lock.
fn lock(placement: Placement, spaces: [Space; 3], take: &str, give: &str) -> Waiting {
    let (mut text, _) = begin(placement);
    let zero = text.value("iconst.i32 0");
    let one = text.value("iconst.i32 1");
    let wide = text.value("iconst.i64 0");
    let [flag, x, y] = [0, 1, 2].map(|l| address(&mut text, spaces[l], l, &zero, &wide));
    let lane = text.value("iconst.i32 31");
    let lane = text.value(&format!("band v3, {lane}"));
    let lanes = text.value(&format!("iconst.i32 {LANES}"));
    let wants = text.value(&format!("icmp ult {lane}, {lanes}"));
    text.line(&format!("brif {wants}, block1, block3"));
    text.label("block1");
    let old = text.value(&match take {
        "cas" => format!("atomic_cas.i32 {flag}, {zero}, {one}"),
        _ => format!("atomic_rmw.i32 xchg {flag}, {one}"),
    });
    text.line(&format!("brif {old}, block1, block2"));
    text.label("block2");
    for place in [&x, &y] {
        let old = text.value(&format!("load.i32 aligned {place}"));
        let new = text.value(&format!("iadd {old}, {one}"));
        text.line(&format!("store aligned {new}, {place}"));
    }
    publish(&mut text, give, &zero, &flag);
    text.line("jump block3");
    // Who is the last to come here, by a ticket in global memory, tells what is there.
    text.label("block3");
    text.line("call fn2()");
    let first = text.value(&format!("icmp eq v3, {zero}"));
    text.line(&format!("brif {first}, block4, block6"));
    text.label("block4");
    let ticket = text.value("iconst.i64 1024");
    let ticket = text.value(&format!("iadd v0, {ticket}"));
    text.line("fence");
    let count = text.value(&format!("atomic_rmw.i32 add {ticket}, {one}"));
    text.line("fence");
    let blocks = if placement == Placement::Grid {
        PARTS
    } else {
        1
    };
    let last = text.value(&format!("iconst.i32 {}", blocks - 1));
    let is_last = text.value(&format!("icmp eq {count}, {last}"));
    text.line(&format!("brif {is_last}, block5, block6"));
    text.label("block5");
    for (place, address) in [&x, &y].into_iter().enumerate() {
        let value = text.value(&format!("load.i32 aligned {address}"));
        text.line(&format!("store aligned {value}, v1+{}", 4 * place));
    }
    text.line("jump block6");
    text.label("block6");
    Waiting {
        name: format!(
            "lock.{take}_{give}.{}.{}",
            name_of(placement),
            letters(&spaces)
        ),
        kernel: text.end(),
        grid: grid(placement, PARTS),
        instances: 1,
        expected: vec![PARTS * LANES; 2],
    }
}

/// Two words of data are read behind a flag that is waited for.
fn message(placement: Placement, spaces: [Space; 3], flag: &str, wait: &str) -> Waiting {
    let (mut text, role) = begin(placement);
    let two = text.value("iconst.i32 2");
    let mask = text.value("iconst.i32 31");
    let lane = text.value(&format!("band v3, {mask}"));
    let word = text.value(&format!("ishl {lane}, {two}"));
    let wide = text.value(&format!("uextend.i64 {word}"));
    let places = [0, 1, 2].map(|l| address(&mut text, spaces[l], l, &word, &wide));
    let zero = text.value("iconst.i32 0");
    let one = text.value("iconst.i32 1");
    let own = text.value(&format!("iadd {wide}, {wide}"));
    let own = text.value(&format!("iadd v1, {own}"));
    text.line(&format!("brif {role}, block2, block1"));
    text.label("block1");
    for (place, value) in places[1..].iter().zip([7, 8]) {
        let value = text.value(&format!("iconst.i32 {value}"));
        text.line(&format!("store aligned {value}, {place}"));
    }
    publish(&mut text, flag, &one, &places[0]);
    text.line("jump block4");
    text.label("block2");
    let seen = text.value(&match wait {
        "load" => format!("atomic_load.i32 {}", places[0]),
        "modify" => format!("atomic_rmw.i32 or {}, {zero}", places[0]),
        _ => format!("atomic_load.i32 can_move {}", places[0]),
    });
    text.line(&format!("brif {seen}, block3, block2"));
    text.label("block3");
    if wait == "fence" {
        text.line("fence");
    }
    for (index, place) in places[1..].iter().enumerate() {
        let value = text.value(&format!("load.i32 aligned {place}"));
        text.line(&format!("store aligned {value}, {own}+{}", 4 * index));
    }
    text.line("jump block4");
    text.label("block4");
    Waiting {
        name: format!(
            "message.{flag}_{wait}.{}.{}",
            name_of(placement),
            letters(&spaces)
        ),
        kernel: text.end(),
        grid: grid(placement, 2),
        instances: 32,
        expected: vec![7, 8],
    }
}

/// Each leaves its part and takes a ticket; who takes the last one sums up.
fn last(placement: Placement, spaces: [Space; 3]) -> Waiting {
    let (mut text, role) = begin(placement);
    let two = text.value("iconst.i32 2");
    let mask = text.value("iconst.i32 31");
    let lane = text.value(&format!("band v3, {mask}"));
    let word = text.value(&format!("ishl {lane}, {two}"));
    let wide = text.value(&format!("uextend.i64 {word}"));
    let ticket = address(&mut text, spaces[0], 0, &word, &wide);
    // Parts lie behind each other, in the space of the data.
    let parts: Vec<String> = (1..=PARTS as usize)
        .map(|part| address(&mut text, spaces[1 + part % 2], part, &word, &wide))
        .collect();
    let one = text.value("iconst.i32 1");
    let own = text.value(&format!("iadd v1, {wide}"));
    let mine = text.value(&format!("iadd {role}, {one}"));
    for (part, address) in parts.iter().enumerate() {
        let number = text.value(&format!("iconst.i32 {part}"));
        let is_mine = text.value(&format!("icmp eq {role}, {number}"));
        let block = 2 * part + 1;
        text.line(&format!("brif {is_mine}, block{block}, block{}", block + 1));
        text.label(&format!("block{block}"));
        text.line(&format!("store aligned {mine}, {address}"));
        text.line(&format!("jump block{}", block + 1));
        text.label(&format!("block{}", block + 1));
    }
    let before = text.value(&format!("atomic_rmw.i32 add {ticket}, {one}"));
    let last = text.value(&format!("iconst.i32 {}", PARTS - 1));
    let is_last = text.value(&format!("icmp eq {before}, {last}"));
    text.line(&format!("brif {is_last}, block20, block21"));
    text.label("block20");
    let mut sum = text.value("iconst.i32 0");
    for part in &parts {
        let value = text.value(&format!("load.i32 aligned {part}"));
        sum = text.value(&format!("iadd {sum}, {value}"));
    }
    text.line(&format!("store aligned {sum}, {own}"));
    text.line("jump block21");
    text.label("block21");
    Waiting {
        name: format!("last.ticket.{}.{}", name_of(placement), letters(&spaces)),
        kernel: text.end(),
        grid: grid(placement, PARTS),
        instances: 32,
        expected: vec![PARTS * (PARTS + 1) / 2],
    }
}
