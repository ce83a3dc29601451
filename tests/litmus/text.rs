//! Litmus tests as kernels in CLIF, with many instances of a test in one launch.
//!
//! A kernel takes a buffer for the locations in global memory, one for what is read, and 1, which the compiler does not
//! know. A lane is an instance; instances have words of their own for each location. What is read goes to the second
//! buffer, instance by instance, with what locations in shared memory hold at the end behind it.

use crate::shapes::{Kind, Order, Placement, Program, Space, Step};
use cranelift_thisgpu::driver::Grid;
use std::fmt::Write;

/// Bytes from the word of a location to that of the next, for the same instance.
pub const STRIDE: usize = 128;

/// Instances of a test in a launch.
pub fn instances(program: &Program) -> usize {
    match program.placement {
        Placement::Warp => 8,
        Placement::Block | Placement::Pairs | Placement::Grid => 32,
    }
}

/// The launch.
pub fn grid(program: &Program) -> Grid {
    let threads = program.threads.len() as u32;
    let (blocks, threads) = match program.placement {
        Placement::Warp => (1, 8 * threads),
        Placement::Block => (1, 32 * threads),
        Placement::Pairs => (threads.div_ceil(2), 64),
        Placement::Grid => (threads, 32),
    };
    Grid::new([blocks, 1, 1], [threads, 1, 1])
}

/// Values of an instance in the second buffer.
pub fn results(program: &Program) -> usize {
    program.reads() + program.locations()
}

/// A text with numbers for its values.
#[derive(Default)]
pub struct Text {
    text: String,
    values: usize,
}

impl Text {
    pub fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "    {line}");
    }

    pub fn value(&mut self, definition: &str) -> String {
        let value = format!("v{}", 100 + self.values);
        self.values += 1;
        self.line(&format!("{value} = {definition}"));
        value
    }

    pub fn label(&mut self, block: &str) {
        let _ = writeln!(self.text, "{block}:");
    }

    /// The whole kernel, which returns here.
    pub fn end(mut self) -> String {
        self.line("return");
        self.text.push_str("}\n");
        self.text
    }
}

const HEAD: &str = "\
; kernel shared=1024
function %litmus(i64, i64, i32) {
    gv0 = symbol %gpu_shared
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_ctaid_x() -> i32
    fn2 = %gpu_bar_sync()
    fn3 = %gpu_membar_cta()
block0(v0: i64, v1: i64, v2: i32):
    v3 = call fn0()
    v4 = call fn1()
";

/// The beginning of a kernel, and which thread of a test each thread is.
pub fn begin(placement: Placement) -> (Text, String) {
    let mut text = Text::default();
    text.text.push_str(HEAD);
    let constant = |text: &mut Text, value: u32| text.value(&format!("iconst.i32 {value}"));
    let shift = if placement == Placement::Warp { 3 } else { 5 };
    let shift = constant(&mut text, shift);
    let warp = text.value(&format!("ushr v3, {shift}"));
    let role = match placement {
        Placement::Warp | Placement::Block => warp,
        Placement::Grid => "v4".to_string(),
        Placement::Pairs => {
            let one = constant(&mut text, 1);
            let pair = text.value(&format!("ishl v4, {one}"));
            text.value(&format!("iadd {pair}, {warp}"))
        }
    };
    (text, role)
}

/// The kernel of a test.
pub fn kernel(program: &Program) -> String {
    let (mut text, role) = begin(program.placement);
    let constant = |text: &mut Text, value: u32| text.value(&format!("iconst.i32 {value}"));
    let mask = match program.placement {
        Placement::Warp => 7,
        Placement::Block | Placement::Pairs | Placement::Grid => 31,
    };
    let mask = constant(&mut text, mask);
    let instance = text.value(&format!("band v3, {mask}"));
    let two = constant(&mut text, 2);
    let word = text.value(&format!("ishl {instance}, {two}"));
    let wide = text.value(&format!("uextend.i64 {word}"));
    let addresses: Vec<String> = (0..program.locations())
        .map(|location| address(&mut text, program.spaces[location], location, &word, &wide))
        .collect();
    let results = text.value(&format!("iconst.i64 {}", results(program)));
    let own = text.value(&format!("imul {wide}, {results}"));
    let own = text.value(&format!("iadd v1, {own}"));
    let numbers: Vec<String> = (0..program.threads.len() as u32)
        .map(|thread| constant(&mut text, thread))
        .collect();
    // Between barriers each thread has its own way.
    let parts: Vec<Vec<&[Step]>> = (program.threads.iter())
        .map(|steps| steps.split(|step| *step == Step::Barrier).collect())
        .collect();
    let count = parts.iter().map(Vec::len).max().unwrap_or(0);
    let mut blocks = 1;
    let mut result = 0;
    // Reads are numbered thread by thread.
    let firsts: Vec<usize> = (program.threads.iter())
        .map(|steps| {
            let first = result;
            result += steps.iter().filter(|s| s.is_read()).count();
            first
        })
        .collect();
    let mut next = firsts;
    for part in 0..count {
        let done = blocks;
        blocks += 1;
        for (thread, parts) in parts.iter().enumerate() {
            let (yes, no) = (blocks, blocks + 1);
            blocks += 2;
            let is_role = text.value(&format!("icmp eq {role}, {}", numbers[thread]));
            text.line(&format!("brif {is_role}, block{yes}, block{no}"));
            text.label(&format!("block{yes}"));
            let steps = parts.get(part).copied().unwrap_or_default();
            let read: Vec<String> = steps
                .iter()
                .filter_map(|step| self::step(&mut text, step, &addresses))
                .collect();
            for value in read {
                text.line(&format!(
                    "store aligned {value}, {own}+{}",
                    4 * next[thread]
                ));
                next[thread] += 1;
            }
            text.line(&format!("jump block{done}"));
            text.label(&format!("block{no}"));
        }
        text.line(&format!("jump block{done}"));
        text.label(&format!("block{done}"));
        if part + 1 < count {
            text.line("call fn2()");
        }
    }
    if program.spaces.iter().any(|space| space.is_shared()) {
        text.line("call fn2()");
        let (yes, no) = (blocks, blocks + 1);
        let is_first = text.value(&format!("icmp eq {role}, {}", numbers[0]));
        text.line(&format!("brif {is_first}, block{yes}, block{no}"));
        text.label(&format!("block{yes}"));
        for (location, address) in addresses.iter().enumerate() {
            if program.spaces[location].is_shared() {
                let value = text.value(&format!("load.i32 aligned {address}"));
                let place = 4 * (program.reads() + location);
                text.line(&format!("store aligned {value}, {own}+{place}"));
            }
        }
        text.line(&format!("jump block{no}"));
        text.label(&format!("block{no}"));
    }
    text.end()
}

/// The address of a location's word.
pub fn address(text: &mut Text, space: Space, location: usize, word: &str, wide: &str) -> String {
    let offset = location * STRIDE;
    if space == Space::Shared {
        let start = text.value("symbol_value.i32 gv0");
        let offset = text.value(&format!("iconst.i32 {offset}"));
        let start = text.value(&format!("iadd {start}, {offset}"));
        return text.value(&format!("iadd {start}, {word}"));
    }
    let offset = text.value(&format!("iconst.i64 {offset}"));
    let offset = text.value(&format!("iadd {wide}, {offset}"));
    let global = text.value(&format!("iadd v0, {offset}"));
    if space == Space::Global {
        return global;
    }
    let shared = text.value("symbol_value.i64 gv0");
    let shared = text.value(&format!("iadd {shared}, {offset}"));
    let (is, other) = match space {
        Space::GenericShared => (shared, global),
        _ => (global, shared),
    };
    text.value(&format!("select v2, {is}, {other}"))
}

/// A step of a thread; the value that it reads, if the outcome has that.
fn step(text: &mut Text, step: &Step, addresses: &[String]) -> Option<String> {
    let (location, kind, order) = match *step {
        Step::Access(location, kind, order) => (location, kind, order),
        Step::Fence => {
            text.line("fence");
            return None;
        }
        Step::BlockFence => {
            text.line("call fn3()");
            return None;
        }
        Step::Barrier => return None,
    };
    let address = &addresses[location];
    let flags = if order == Order::Relaxed {
        " can_move"
    } else {
        ""
    };
    let plain = order == Order::Plain;
    let mut constant = |value: u32| text.value(&format!("iconst.i32 {value}"));
    let definition = match kind {
        Kind::Load if plain => format!("load.i32 aligned {address}"),
        Kind::Load => format!("atomic_load.i32{flags} {address}"),
        Kind::Store(value) => {
            let value = constant(value);
            text.line(&if plain {
                format!("store aligned {value}, {address}")
            } else {
                format!("atomic_store{flags} {value}, {address}")
            });
            return None;
        }
        Kind::Exchange(value, _) => {
            let value = constant(value);
            format!("atomic_rmw.i32{flags} xchg {address}, {value}")
        }
        Kind::Add(value, _) => {
            let value = constant(value);
            format!("atomic_rmw.i32{flags} add {address}, {value}")
        }
        Kind::Swap(expected, new) => {
            let (expected, new) = (constant(expected), constant(new));
            format!("atomic_cas.i32{flags} {address}, {expected}, {new}")
        }
    };
    let value = text.value(&definition);
    step.is_read().then_some(value)
}
