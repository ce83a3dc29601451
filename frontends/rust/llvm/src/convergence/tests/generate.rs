//! Random kernels in Rust with barriers and shuffles that tempt a compiler to copy or move them.
//!
//! Every thread passes the same barriers and shuffles in the same order: conditions around them, and how often loops
//! with them turn, are the same for all threads, or the two arms of a condition that differs meet before. What differs
//! between threads stands close by: arms that end in front of a barrier, flags that are asked again behind one, loops
//! that are left early and go on behind, matches whose arms are alike but for a number.

use std::fmt::Write;

/// Random numbers of a seed (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What stands in front of the kernels of a file.
pub const PRELUDE: &str = "\
#![no_std]
#![allow(unused, clippy::all)]
unsafe extern \"C\" {
    #[link_name = \"__thisgpu_bar_sync\"]
    safe fn bar();
    #[link_name = \"__thisgpu_shfl_bfly\"]
    safe fn butterfly(value: u32, lane: u32) -> u32;
    #[link_name = \"__thisgpu_shfl_idx\"]
    safe fn of_lane(value: u32, lane: u32) -> u32;
    #[link_name = \"__thisgpu_tid_x\"]
    safe fn tid() -> u32;
}
fn wait(mixed: &mut u32, with: u32) {
    bar();
    *mixed = mixed.rotate_left(5) ^ with;
}
fn exchange(value: u32, lane: u32) -> u32 {
    butterfly(value, lane & 31)
}
fn around<F: FnMut(u32) -> u32>(turns: u32, mut f: F) -> u32 {
    let mut sum = 0u32;
    let mut i = 0;
    while i < turns {
        sum = sum.wrapping_add(f(i));
        bar();
        i += 1;
    }
    sum
}
";

/// Writes a kernel.
pub fn kernel(name: &str, seed: u64) -> String {
    let mut writer = Writer {
        random: Random::new(seed),
        text: String::new(),
        indent: 1,
        variables: 3,
        flags: 2,
        left: 14,
    };
    writer.statements(3);
    format!(
        "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}(input: *const u32, output: *mut u32, n: u32, m: u32) \
         {{\n    \
         let t = tid();\n    let mut v0 = unsafe {{ *input.add(t as usize) }};\n    let mut v1 = \
         t.wrapping_mul(0x9e37) ^ v0;\n    \
         let mut v2 = 1u32;\n    let mut f0 = v0 & 3 == 1;\n    let mut f1 = false;\n{}    \
         unsafe {{ *output.add(t as usize) = v0.wrapping_mul(31) ^ v1.wrapping_mul(17) ^ v2 ^ (f0 as u32) << 7 ^ (f1 as u32) << 9; }}\n}}\n",
        writer.text
    )
}

struct Writer {
    random: Random,
    text: String,
    indent: usize,
    variables: u64,
    flags: u64,
    /// Statements that may still be written.
    left: u32,
}

impl Writer {
    fn line(&mut self, text: &str) {
        let indent = "    ".repeat(self.indent);
        writeln!(self.text, "{indent}{text}").expect("text grows");
    }

    fn block(&mut self, head: &str, inside: impl FnOnce(&mut Self)) {
        self.line(&format!("{head} {{"));
        self.indent += 1;
        inside(self);
        self.indent -= 1;
    }

    fn variable(&mut self) -> String {
        format!("v{}", self.random.below(self.variables))
    }

    fn flag(&mut self) -> String {
        format!("f{}", self.random.below(self.flags))
    }

    /// A condition that differs between threads.
    fn divergent(&mut self) -> String {
        let (v, f, k) = (self.variable(), self.flag(), self.random.below(8));
        match self.random.below(5) {
            0 => f,
            1 => format!("{v} & {} == 0", 1 << k),
            2 => format!("t < {}", 4 * k + 1),
            3 => format!("!{f} && {v} > {}", k << 20),
            _ => format!("{v} % 3 == {}", k % 3),
        }
    }

    /// A condition that is the same for all threads.
    fn uniform(&mut self) -> String {
        let k = self.random.below(6);
        match self.random.below(3) {
            0 => format!("n > {k}"),
            1 => format!("m & {} != 0", 1 << (k % 3)),
            _ => format!("n.wrapping_add(m) % 4 == {}", k % 4),
        }
    }

    fn statements(&mut self, depth: u32) {
        for _ in 0..2 + self.random.below(3) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        let choices = if depth == 0 { 7 } else { 13 };
        match self.random.below(choices) {
            0 | 1 => self.waiting(),
            2 => self.tempting(),
            3 => self.arms(),
            4 => self.cases(),
            5 => self.ragged_loop(),
            6 => self.computing(),
            7 | 8 => {
                let condition = self.uniform();
                self.block(&format!("if {condition}"), |w| w.statements(depth - 1));
                if self.random.below(2) == 0 {
                    self.block("} else", |w| w.statements(depth - 1));
                }
                self.line("}");
            }
            9 | 10 => self.counted_loop(depth),
            11 => self.state_loop(),
            _ => {
                let (v, turns) = (self.variable(), 1 + self.random.below(4));
                let turns = match self.random.below(2) {
                    0 => turns.to_string(),
                    _ => format!("(m & 3) + {}", turns - 1),
                };
                self.line(&format!(
                    "{v} = {v} ^ around({turns}, |i| if f0 {{ i }} else {{ t ^ i }});"
                ));
            }
        }
    }

    fn computing(&mut self) {
        let (a, b, c) = (self.variable(), self.variable(), self.variable());
        let k = self.random.below(1000);
        match self.random.below(4) {
            0 => self.line(&format!(
                "{a} = {b}.wrapping_mul({c} | 1).wrapping_add({k});"
            )),
            1 => self.line(&format!("{a} ^= {b} >> {} | {c} << 3;", k % 13)),
            2 => {
                let f = self.flag();
                self.line(&format!("{f} = {b} & {} != 0;", 1 << (k % 9)));
            }
            _ => self.line(&format!("{a} = {b}.rotate_right({}) ^ {c};", k % 31)),
        }
    }

    /// A barrier or a shuffle.
    fn waiting(&mut self) {
        let (a, b) = (self.variable(), self.variable());
        let k = self.random.below(32);
        match self.random.below(5) {
            0 => self.line("bar();"),
            1 => self.line(&format!("wait(&mut {a}, {k});")),
            2 => self.line(&format!("{a} = {a}.wrapping_add(exchange({b}, {k}));")),
            3 => self.line(&format!("{a} ^= of_lane({b}, {k});")),
            _ => self.line(&format!("{a} = butterfly({a}, 1) ^ {b};")),
        }
    }

    /// Arms that differ in front of what waits, and the same question again behind it.
    fn tempting(&mut self) {
        let condition = self.divergent();
        let (f, a, b) = (self.flag(), self.variable(), self.variable());
        let k = self.random.below(50);
        self.line(&format!("let c = {condition};"));
        self.line(&format!(
            "if c {{ {a} = {a}.wrapping_add({k}); }} else {{ {b} ^= {k}; }}"
        ));
        self.waiting();
        if self.random.below(2) == 0 {
            self.waiting();
        }
        self.line(&format!(
            "if c {{ {b} = {b}.wrapping_mul(5); {f} = !{f}; }} else {{ {a} ^= 77; }}"
        ));
    }

    /// A value chosen by a condition that differs, which is a number in one arm, and asked behind what waits.
    fn arms(&mut self) {
        let condition = self.divergent();
        let (a, b) = (self.variable(), self.variable());
        let k = self.random.below(9);
        self.line(&format!(
            "let s = if {condition} {{ {k} }} else {{ {b} & 7 }};"
        ));
        self.waiting();
        self.line(&format!("if s == {k} {{ {a} = {a}.wrapping_sub({b}); }}"));
        if self.random.below(2) == 0 {
            self.waiting();
            self.line(&format!(
                "{a} = match s {{ 0 => {a} ^ 1, {k} => {b}, _ => {a} << 1 }};",
                k = k.max(1)
            ));
        }
    }

    /// A match whose arms are alike but for a number, which sets what a shuffle takes.
    fn cases(&mut self) {
        let (a, b) = (self.variable(), self.variable());
        let k = self.random.below(30);
        self.block(&format!("let s = match {b} % 4"), |w| {
            w.line(&format!("0 => {a}.wrapping_add({k}),"));
            w.line(&format!("1 => {a}.wrapping_add({}),", k + 1));
            w.line(&format!("2 => {{ f1 = true; {a} ^ {k} }}"));
            w.line(&format!("_ => {k},"));
        });
        self.line("};");
        self.line(&format!("{a} = exchange(s, {k});"));
        self.line(&format!("if s == {k} {{ {b} = {b} ^ 3; }}"));
        if self.random.below(2) == 0 {
            self.line("bar();");
        }
    }

    /// A loop that threads leave at different turns, and what waits behind it.
    fn ragged_loop(&mut self) {
        let (a, b, f) = (self.variable(), self.variable(), self.flag());
        let condition = self.divergent();
        let k = 1 + self.random.below(7);
        self.line("let mut i = 0u32;");
        self.block(&format!("while i < {k}"), |w| {
            w.line(&format!("{a} = {a}.wrapping_add(i ^ {b});"));
            w.line(&format!("if {condition} {{ {f} = true; break; }}"));
            w.line("i += 1;");
        });
        self.line("}");
        self.waiting();
        self.line(&format!("if i == {k} {{ {b} ^= 9; }}"));
    }

    /// A loop with what waits in it, which turns as often for all threads.
    fn counted_loop(&mut self, depth: u32) {
        let k = 1 + self.random.below(5);
        let f = self.flag();
        let bound = match self.random.below(3) {
            0 => k.to_string(),
            1 => format!("n.min({k})"),
            _ => format!("(m & 3) + {}", k - 1),
        };
        let i = format!("i{depth}");
        self.line(&format!("let mut {i} = 0u32;"));
        self.block(&format!("while {i} < {bound}"), |w| {
            w.statements(depth - 1);
            w.waiting();
            if w.random.below(3) == 0 {
                let v = w.variable();
                w.line(&format!(
                    "if {f} {{ {v} = {v}.wrapping_add({i}); {f} = false; }}"
                ));
            }
            w.line(&format!("{i} += 1;"));
            if w.random.below(4) == 0 {
                let condition = w.uniform();
                w.line(&format!("if {condition} {{ break; }}"));
            }
        });
        self.line("}");
    }

    /// A loop over states that threads are in, of which each turn has the same barrier: what a compiler makes jumps
    /// from state to state of.
    fn state_loop(&mut self) {
        let (a, b) = (self.variable(), self.variable());
        let turns = 2 + self.random.below(4);
        self.line(&format!("let mut state = {a} % 3; let mut j = 0u32;"));
        self.block(&format!("while j < {turns}"), |w| {
            w.block("state = match state", |w| {
                w.line(&format!("0 => {{ {a} = {a}.wrapping_add(7); 1 }}"));
                w.line(&format!("1 => {{ {b} ^= {a}; 2 }}"));
                w.line(&format!("_ => {{ {b} = {b}.wrapping_mul(3); 0 }}"));
            });
            w.line("};");
            w.waiting();
            w.line(&format!("if state == 1 {{ {a} ^= 5; }}"));
            w.line("j += 1;");
        });
        self.line("}");
    }
}
