//! Functions of one shape and any size, as CLIF text: what a compiler may be quadratic in.

use crate::writer::Writer;

/// A family of functions.
pub struct Shape {
    /// Name in the table.
    pub name: &'static str,
    /// The text of a function of about so many instructions.
    pub text: fn(usize) -> String,
}

/// All shapes.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "straight-line",
        text: straight_line,
    },
    Shape {
        name: "expression-chain",
        text: expression_chain,
    },
    Shape {
        name: "bitwise-chain",
        text: bitwise_chain,
    },
    Shape {
        name: "stores",
        text: stores,
    },
    Shape {
        name: "ifs-in-sequence",
        text: ifs_in_sequence,
    },
    Shape {
        name: "ifs-nested",
        text: ifs_nested,
    },
    Shape {
        name: "loops-in-sequence",
        text: loops_in_sequence,
    },
    Shape {
        name: "loops-nested",
        text: loops_nested,
    },
    Shape {
        name: "slots-loops-in-sequence",
        text: slots_in_sequence,
    },
    Shape {
        name: "slots-loops-nested",
        text: slots_nested,
    },
    Shape {
        name: "jump-table",
        text: jump_table,
    },
    Shape {
        name: "calls",
        text: calls,
    },
    Shape {
        name: "wide-parameters",
        text: wide_parameters,
    },
];

/// Sums, products and shifts of the last values, stored now and then.
fn straight_line(size: usize) -> String {
    let mut w = Writer::kernel("");
    let (mut a, mut b) = (1, 2);
    for i in 0..size {
        let new = match i % 5 {
            0 => w.value(&format!("iadd v{a}, v{b}")),
            1 => w.value(&format!("imul v{a}, v{b}")),
            2 => w.value(&format!("rotl v{a}, v{b}")),
            3 => w.value(&format!("isub v{b}, v{a}")),
            _ => {
                w.line(&format!("store aligned v{a}, v0+{}", i / 5 * 4));
                continue;
            }
        };
        (a, b) = (b, new);
    }
    w.finish()
}

/// One expression that goes deep.
fn expression_chain(size: usize) -> String {
    let mut w = Writer::kernel("");
    let mut last = 2;
    for i in 0..size {
        let operation = if i % 2 == 0 { "imul" } else { "iadd" };
        last = w.value(&format!("{operation} v{last}, v{}", 1 + i % 3 % 2));
    }
    w.line(&format!("store aligned v{last}, v0"));
    w.finish()
}

/// One expression of bitwise operations with new inputs all the time.
fn bitwise_chain(size: usize) -> String {
    let mut w = Writer::kernel("");
    let mut last = 2;
    for i in 0..size / 2 {
        let input = w.value(&format!("load.i32 aligned v0+{}", 4 * i));
        let operation = ["band", "bxor", "bor"][i % 3];
        last = w.value(&format!("{operation} v{last}, v{input}"));
    }
    w.line(&format!("store aligned v{last}, v0"));
    w.finish()
}

fn stores(size: usize) -> String {
    let mut w = Writer::kernel("");
    for i in 0..size {
        w.line(&format!("store aligned v{}, v0+{}", 1 + i % 2, 4 * i));
    }
    w.finish()
}

/// A branch that lanes disagree on around an atomic operation, which no guard takes the place of.
fn ifs_in_sequence(size: usize) -> String {
    let mut w = Writer::kernel("");
    for i in 0..size / 5 {
        let limit = w.value(&format!("iconst.i32 {}", i + 1));
        let less = w.value(&format!("icmp ult v2, v{limit}"));
        w.line(&format!(
            "brif v{less}, block{}, block{}",
            2 * i + 1,
            2 * i + 2
        ));
        w.block(&format!("block{}", 2 * i + 1));
        w.value("atomic_rmw.i32 add v0, v1");
        w.line(&format!("jump block{}", 2 * i + 2));
        w.block(&format!("block{}", 2 * i + 2));
    }
    w.finish()
}

fn ifs_nested(size: usize) -> String {
    let mut w = Writer::kernel("");
    let depth = size / 6;
    for i in 0..depth {
        let limit = w.value(&format!("iconst.i32 {}", i + 1));
        let less = w.value(&format!("icmp ugt v2, v{limit}"));
        w.line(&format!(
            "brif v{less}, block{}, block{}",
            i + 1,
            2 * depth - i
        ));
        w.block(&format!("block{}", i + 1));
        w.value("atomic_rmw.i32 add v0, v1");
    }
    for i in (0..depth).rev() {
        w.line(&format!("jump block{}", 2 * depth - i));
        w.block(&format!("block{}", 2 * depth - i));
        w.value("atomic_rmw.i32 xor v0, v2");
    }
    w.finish()
}

/// Enters a loop whose number of turns differs between lanes; gives the value of its counter.
fn enter_loop(w: &mut Writer, block: usize) -> usize {
    w.line(&format!("jump block{block}(v2)"));
    let counter = w.fresh();
    w.block(&format!("block{block}(v{counter}: i32)"));
    counter
}

/// Closes a loop; what follows stands in block `next`.
fn leave_loop(w: &mut Writer, block: usize, counter: usize, next: usize) {
    let one = w.value("iconst.i32 -1");
    let less = w.value(&format!("iadd v{counter}, v{one}"));
    w.line(&format!("brif v{less}, block{block}(v{less}), block{next}"));
    w.block(&format!("block{next}"));
}

fn loops_in_sequence(size: usize) -> String {
    let mut w = Writer::kernel("");
    for i in 0..size / 5 {
        let counter = enter_loop(&mut w, 2 * i + 1);
        w.value(&format!("atomic_rmw.i32 add v0, v{counter}"));
        leave_loop(&mut w, 2 * i + 1, counter, 2 * i + 2);
    }
    w.finish()
}

fn loops_nested(size: usize) -> String {
    let mut w = Writer::kernel("");
    let depth = size / 5;
    let counters: Vec<usize> = (0..depth).map(|i| enter_loop(&mut w, i + 1)).collect();
    for i in (0..depth).rev() {
        w.value(&format!("atomic_rmw.i32 add v0, v{}", counters[i]));
        leave_loop(&mut w, i + 1, counters[i], 2 * depth - i);
    }
    w.finish()
}

/// Declarations and addresses of slots.
fn slots(count: usize) -> (String, Writer, Vec<usize>) {
    let declarations: String = (0..count)
        .map(|i| format!("    ss{i} = explicit_slot 4, align = 4\n"))
        .collect();
    let mut w = Writer::kernel(&declarations);
    let addresses = (0..count)
        .map(|i| {
            let address = w.value(&format!("stack_addr.i64 ss{i}"));
            w.line(&format!("store aligned v1, v{address}"));
            address
        })
        .collect();
    (declarations, w, addresses)
}

/// Adds the thread's index to a slot.
fn bump(w: &mut Writer, address: usize) {
    let old = w.value(&format!("load.i32 aligned v{address}"));
    let new = w.value(&format!("iadd v{old}, v2"));
    w.line(&format!("store aligned v{new}, v{address}"));
}

/// Reads all slots.
fn read(mut w: Writer, addresses: &[usize]) -> String {
    let mut sum = 2;
    for address in addresses {
        let value = w.value(&format!("load.i32 aligned v{address}"));
        sum = w.value(&format!("bxor v{sum}, v{value}"));
    }
    w.line(&format!("store aligned v{sum}, v0"));
    w.finish()
}

/// Each loop changes a slot of its own; all are read in the end.
fn slots_in_sequence(size: usize) -> String {
    let count = size / 11;
    let (_, mut w, addresses) = slots(count);
    for (i, &address) in addresses.iter().enumerate() {
        let counter = enter_loop(&mut w, 2 * i + 1);
        bump(&mut w, address);
        leave_loop(&mut w, 2 * i + 1, counter, 2 * i + 2);
    }
    read(w, &addresses)
}

/// The innermost loop changes all slots.
fn slots_nested(size: usize) -> String {
    let depth = size / 11;
    let (_, mut w, addresses) = slots(depth);
    let counters: Vec<usize> = (0..depth).map(|i| enter_loop(&mut w, i + 1)).collect();
    for &address in &addresses {
        bump(&mut w, address);
    }
    for i in (0..depth).rev() {
        leave_loop(&mut w, i + 1, counters[i], 2 * depth - i);
    }
    read(w, &addresses)
}

fn jump_table(size: usize) -> String {
    let mut w = Writer::kernel("");
    let targets = size / 3;
    let list: Vec<String> = (0..targets).map(|i| format!("block{}", i + 2)).collect();
    w.line(&format!("br_table v2, block1, [{}]", list.join(", ")));
    for i in 0..targets {
        w.block(&format!("block{}", i + 2));
        let number = w.value(&format!("iconst.i32 {i}"));
        w.line(&format!("store aligned v{number}, v0+{}", 4 * i));
        w.line("jump block1");
    }
    w.block("block1");
    w.finish()
}

fn calls(size: usize) -> String {
    let mut w = Writer::kernel("    fn1 = %callee(i32, i32) -> i32");
    let mut last = 2;
    for i in 0..size {
        last = w.value(&format!("call fn1(v{last}, v{})", 1 + i % 2));
    }
    w.line(&format!("store aligned v{last}, v0"));
    w.finish()
}

/// Loops in sequence with many values that change places in each.
fn wide_parameters(size: usize) -> String {
    const WIDTH: usize = 24;
    let mut w = Writer::kernel("");
    let mut values: Vec<usize> = (0..WIDTH)
        .map(|i| w.value(&format!("load.i32 aligned v0+{}", 4 * i)))
        .collect();
    for i in 0..size / (WIDTH + 4) {
        let list = |values: &[usize]| {
            let names: Vec<String> = values.iter().map(|v| format!("v{v}")).collect();
            names.join(", ")
        };
        w.line(&format!("jump block{}({})", 2 * i + 1, list(&values)));
        let params: Vec<usize> = values.iter().map(|_| w.fresh()).collect();
        let declared: Vec<String> = params.iter().map(|v| format!("v{v}: i32")).collect();
        w.block(&format!("block{}({})", 2 * i + 1, declared.join(", ")));
        values = (0..WIDTH)
            .map(|k| {
                w.value(&format!(
                    "iadd v{}, v{}",
                    params[(k + 1) % WIDTH],
                    params[k]
                ))
            })
            .collect();
        let first = values[0];
        w.line(&format!(
            "brif v{first}, block{}({}), block{}",
            2 * i + 1,
            list(&values),
            2 * i + 2
        ));
        w.block(&format!("block{}", 2 * i + 2));
    }
    for (i, value) in values.iter().enumerate() {
        w.line(&format!("store aligned v{value}, v0+{}", 4 * i));
    }
    w.finish()
}
