//! Loops with as many live values as asked for: what spilling is measured with.

use crate::writer::Writer;

/// A loop that goes over many values.
pub struct Loop {
    /// Name in tables.
    pub name: &'static str,
    /// The text with so many values that live through the loop.
    pub text: fn(usize) -> String,
}

/// All loops.
pub const LOOPS: &[Loop] = &[
    Loop {
        name: "kept",
        text: kept,
    },
    Loop {
        name: "read",
        text: read,
    },
    Loop {
        name: "changed",
        text: changed,
    },
];

/// Values that live through the loop: around a file of 252 registers and below.
pub const LIVE: &[usize] = &[100, 150, 200, 248, 252, 270, 300];

/// `count` values from memory.
fn loads(w: &mut Writer, count: usize) -> Vec<usize> {
    (0..count)
        .map(|i| w.value(&format!("load.i32 aligned v0+{}", 4 * i)))
        .collect()
}

/// Bytes from what is read to what is written: a value that goes back where it came from would not be written.
const RESULTS: usize = 4096;

/// All values go to memory.
fn stores(w: &mut Writer, values: &[usize]) {
    for (i, value) in values.iter().enumerate() {
        w.line(&format!("store aligned v{value}, v0+{}", RESULTS + 4 * i));
    }
}

/// Closes the loop of block1 and opens block2 behind it; `passed` goes round with the counter.
fn close(w: &mut Writer, counter: usize, passed: &[usize]) {
    let step = w.value("iconst.i32 -1");
    let next = w.value(&format!("iadd v{counter}, v{step}"));
    let list = list(next, passed);
    w.line(&format!("brif v{next}, block1({list}), block2"));
    w.block("block2");
}

fn list(first: usize, rest: &[usize]) -> String {
    let names: Vec<String> = std::iter::once(&first)
        .chain(rest)
        .map(|value| format!("v{value}"))
        .collect();
    names.join(", ")
}

/// Opens the loop of block1; gives the parameters for the counter and for `initial`.
fn open(w: &mut Writer, initial: &[usize]) -> (usize, Vec<usize>) {
    w.line(&format!("jump block1({})", list(1, initial)));
    let counter = w.fresh();
    let params: Vec<usize> = initial.iter().map(|_| w.fresh()).collect();
    let declared: Vec<String> = std::iter::once(&counter)
        .chain(&params)
        .map(|value| format!("v{value}: i32"))
        .collect();
    w.block(&format!("block1({})", declared.join(", ")));
    (counter, params)
}

/// Values that the loop does not touch: what is spilled around it costs the loop nothing.
fn kept(live: usize) -> String {
    let mut w = Writer::kernel("");
    let values = loads(&mut w, live);
    let (counter, sum) = open(&mut w, &values[..1]);
    let product = w.value(&format!("imul v{}, v{}", sum[0], values[live / 2]));
    let next = w.value(&format!("bxor v{product}, v{}", values[live - 1]));
    close(&mut w, counter, &[next]);
    stores(&mut w, &values);
    w.line(&format!("store aligned v{next}, v0"));
    w.finish()
}

/// Values that every turn reads and none changes.
fn read(live: usize) -> String {
    let mut w = Writer::kernel("");
    let values = loads(&mut w, live);
    let (counter, sum) = open(&mut w, &values[..1]);
    let mut last = sum[0];
    for (i, value) in values.iter().enumerate() {
        let operation = ["imul", "bxor"][i % 2];
        last = w.value(&format!("{operation} v{last}, v{value}"));
    }
    close(&mut w, counter, &[last]);
    stores(&mut w, &values);
    w.line(&format!("store aligned v{last}, v0"));
    w.finish()
}

/// Values that every turn changes, each by its neighbour.
fn changed(live: usize) -> String {
    let mut w = Writer::kernel("");
    let values = loads(&mut w, live);
    let (counter, params) = open(&mut w, &values);
    let next: Vec<usize> = (0..live)
        .map(|i| w.value(&format!("iadd v{}, v{}", params[i], params[(i + 1) % live])))
        .collect();
    close(&mut w, counter, &next);
    stores(&mut w, &next);
    w.finish()
}
