//! Structured programs: their text, and what each thread computes when it runs alone.

use cranelift_thisgpu::unstable::isa::random::Random;
use std::fmt::{Display, Write};

/// Places of a program at which lanes say who is with them, at most.
pub const MEETINGS: usize = 3;

/// Whether a thread takes a way.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Half of the threads, by this number.
    Thread(u32),
    /// One in 32, by this number.
    Rare(u32),
}

/// What is done to the one variable, and where threads go.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Computes.
    Mix(u32),
    /// Calls a function in which threads part.
    Call,
    /// The first if the condition holds, otherwise the second.
    If(Condition, Vec<Statement>, Vec<Statement>),
    /// A bit of the argument says which of the conditions decides.
    Entered(u32, [Condition; 2], Vec<Statement>),
    /// Up to so many times.
    Turns(u32, Vec<Statement>),
    /// What can be left.
    Labelled(Vec<Statement>),
    /// To the end of the so many-th `Labelled` around, the outermost if there are fewer.
    Leave(Condition, u32),
    /// The end of the thread if the condition holds.
    Return(Condition),
    /// The end of all threads that come here.
    Finish,
    /// Says which lanes are here: all of the warp that come here at all.
    Meet,
}

/// A kernel.
pub struct Program(Vec<Statement>);

/// What a block of threads leaves.
pub struct Expected {
    /// By thread.
    pub results: Vec<u32>,
    /// By thread and [`Statement::Meet`].
    pub masks: Vec<u32>,
}

const FACTOR: u32 = 0x9e37_79b1;

impl Condition {
    /// The number that it goes by, and how far what is below 1 << 31 is shifted for it to be zero.
    fn parts(&self) -> (u32, u32) {
        match *self {
            Condition::Thread(number) => (number, 31),
            Condition::Rare(number) => (number, 27),
        }
    }

    fn holds(&self, value: u32, thread: u32) -> bool {
        let (number, shift) = self.parts();
        let mixed = (value ^ thread.wrapping_mul(number)).wrapping_mul(FACTOR);
        mixed >> shift == 0
    }
}

fn mixed(value: u32, number: u32) -> u32 {
    (value.wrapping_mul(FACTOR) ^ number).wrapping_add(value >> 13)
}

/// What `%f` gives.
fn called(value: u32) -> u32 {
    if value & 4 == 0 {
        mixed(value, 77)
    } else {
        mixed(mixed(value, 78), 79)
    }
}

/// Where a thread goes on.
#[derive(PartialEq, Eq)]
enum Next {
    On,
    /// Behind a `Labelled`, by its number from the outside.
    Behind(usize),
    End,
}

struct Thread {
    id: u32,
    argument: u32,
    value: u32,
    met: [bool; MEETINGS],
    /// How many `Labelled` it is in, and how many [`Statement::Meet`] it has come by.
    labels: usize,
    meetings: usize,
}

impl Thread {
    fn run(&mut self, statements: &[Statement]) -> Next {
        for statement in statements {
            let next = self.step(statement);
            if next != Next::On {
                return next;
            }
        }
        Next::On
    }

    fn step(&mut self, statement: &Statement) -> Next {
        let holds = |thread: &Thread, c: &Condition| c.holds(thread.value, thread.id);
        match statement {
            Statement::Mix(number) => self.value = mixed(self.value, *number),
            Statement::Call => self.value = called(self.value),
            Statement::If(condition, yes, no) => {
                return self.run(if holds(self, condition) { yes } else { no });
            }
            Statement::Entered(bit, conditions, body) => {
                let side = usize::from(self.argument >> bit & 1 == 0);
                if holds(self, &conditions[side]) {
                    return self.run(body);
                }
            }
            Statement::Turns(most, body) => {
                for _ in 0..1 + self.value % most {
                    let next = self.run(body);
                    if next != Next::On {
                        return next;
                    }
                }
            }
            Statement::Labelled(body) => {
                let own = self.labels;
                self.labels += 1;
                let next = self.run(body);
                self.labels = own;
                return if next == Next::Behind(own) {
                    Next::On
                } else {
                    next
                };
            }
            Statement::Leave(condition, out) => {
                if self.labels > 0 && holds(self, condition) {
                    return Next::Behind((self.labels - 1).saturating_sub(*out as usize));
                }
            }
            Statement::Return(condition) => {
                if holds(self, condition) {
                    return Next::End;
                }
            }
            Statement::Finish => return Next::End,
            Statement::Meet => {
                self.met[self.meetings] = true;
                self.meetings += 1;
            }
        }
        Next::On
    }
}

/// A text being written.
struct Writer {
    text: String,
    values: u32,
    blocks: u32,
    meetings: usize,
    /// The blocks behind what is labelled.
    labels: Vec<u32>,
}

impl Writer {
    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "    {line}").expect("a string");
    }

    /// A new value.
    fn value(&mut self, of: impl Display) -> u32 {
        self.values += 1;
        let value = self.values;
        self.line(format_args!("v{value} = {of}"));
        value
    }

    /// A new value from one and a constant.
    fn with(&mut self, operation: &str, value: u32, constant: impl Display) -> u32 {
        let constant = self.value(format_args!("iconst.i32 {constant}"));
        self.value(format_args!("{operation} v{value}, v{constant}"))
    }

    fn block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks
    }

    /// Begins a block; gives the variable in it.
    fn begin(&mut self, block: u32) -> u32 {
        self.values += 1;
        writeln!(self.text, "block{block}(v{}: i32):", self.values).expect("a string");
        self.values
    }

    fn branch(&mut self, condition: &Condition, value: u32, yes: u32, no: u32) {
        let (number, shift) = condition.parts();
        let by = self.with("imul", 3, number);
        let different = self.value(format_args!("bxor.i32 v{value}, v{by}"));
        let mixed = self.with("imul", different, FACTOR);
        let high = self.with("ushr", mixed, shift);
        let holds = self.with("icmp eq", high, 0);
        self.line(format_args!(
            "brif v{holds}, block{yes}(v{value}), block{no}(v{value})"
        ));
    }

    fn finish(&mut self, value: u32) {
        self.line(format_args!("store aligned v{value}, v5"));
        self.line("return");
    }

    /// Gives the variable behind the statements, if that is ever reached.
    fn statements(&mut self, statements: &[Statement], value: u32) -> Option<u32> {
        let mut all = statements.iter();
        all.try_fold(value, |value, statement| self.statement(statement, value))
    }

    /// Statements in a block of their own, and a jump.
    fn side(&mut self, block: u32, body: &[Statement], behind: u32) {
        let value = self.begin(block);
        if let Some(value) = self.statements(body, value) {
            self.line(format_args!("jump block{behind}(v{value})"));
        }
    }

    fn statement(&mut self, statement: &Statement, value: u32) -> Option<u32> {
        match statement {
            Statement::Mix(number) => {
                let product = self.with("imul", value, FACTOR);
                let other = self.with("bxor", product, number);
                let high = self.with("ushr", value, 13);
                return Some(self.value(format_args!("iadd.i32 v{other}, v{high}")));
            }
            Statement::Call => return Some(self.value(format_args!("call fn2(v{value})"))),
            Statement::Finish => {
                self.finish(value);
                return None;
            }
            Statement::Meet => {
                let one = self.value("iconst.i8 1");
                let mask = self.value(format_args!("call fn1(v{one})"));
                let offset = 4 * self.meetings;
                self.line(format_args!("store aligned v{mask}, v6+{offset}"));
                self.meetings += 1;
                return Some(value);
            }
            _ => {}
        }
        let behind = self.block();
        match statement {
            Statement::If(condition, yes, no) => {
                let (taken, other) = (self.block(), self.block());
                self.branch(condition, value, taken, other);
                self.side(taken, yes, behind);
                self.side(other, no, behind);
            }
            Statement::Entered(bit, conditions, body) => {
                let sides = [self.block(), self.block()];
                let within = self.block();
                let bits = self.with("ushr", 2, bit);
                let bit = self.with("band", bits, 1);
                let [yes, no] = sides;
                self.line(format_args!(
                    "brif v{bit}, block{yes}(v{value}), block{no}(v{value})"
                ));
                for (side, condition) in sides.into_iter().zip(conditions) {
                    let value = self.begin(side);
                    self.branch(condition, value, within, behind);
                }
                self.side(within, body, behind);
            }
            Statement::Turns(most, body) => {
                let [turn, over] = [self.block(), self.block()];
                let rest = self.with("urem", value, most);
                self.line(format_args!("jump block{turn}(v{value}, v{rest})"));
                let (variable, left) = (self.values + 1, self.values + 2);
                self.values += 2;
                writeln!(self.text, "block{turn}(v{variable}: i32, v{left}: i32):")
                    .expect("a string");
                if let Some(value) = self.statements(body, variable) {
                    let fewer = self.with("iadd", left, -1);
                    let branch =
                        format!("brif v{left}, block{over}(v{value}), block{behind}(v{value})");
                    self.line(branch);
                    let again = self.begin(over);
                    self.line(format_args!("jump block{turn}(v{again}, v{fewer})"));
                }
            }
            Statement::Labelled(body) => {
                self.labels.push(behind);
                let end = self.statements(body, value);
                self.labels.pop();
                if let Some(value) = end {
                    self.line(format_args!("jump block{behind}(v{value})"));
                }
            }
            Statement::Leave(condition, out) => {
                let outermost = self.labels.len().checked_sub(1);
                let target = outermost.map(|last| self.labels[last.saturating_sub(*out as usize)]);
                match target {
                    Some(target) => self.branch(condition, value, target, behind),
                    None => self.line(format_args!("jump block{behind}(v{value})")),
                }
            }
            Statement::Return(condition) => {
                let end = self.block();
                self.branch(condition, value, end, behind);
                let value = self.begin(end);
                self.finish(value);
            }
            _ => unreachable!("has no blocks"),
        }
        Some(self.begin(behind))
    }
}

impl Program {
    pub fn new(body: Vec<Statement>) -> Program {
        Program(body)
    }

    /// The text of the kernel `%k(i64, i64, i32)`: where results go, where masks go, the argument.
    pub fn text(&self) -> String {
        let head = format!(
            "; kernel
function %k(i64, i64, i32) {{
    fn0 = %gpu_tid_x() -> i32
    fn1 = %gpu_ballot(i8) -> i32
    fn2 = %f(i32) -> i32
block0(v0: i64, v1: i64, v2: i32):
    v3 = call fn0()
    v4 = uextend.i64 v3
    v7 = iconst.i64 4
    v8 = imul v4, v7
    v5 = iadd v0, v8
    v9 = iconst.i64 {}
    v10 = imul v4, v9
    v6 = iadd v1, v10
    v11 = iconst.i32 1
    v12 = iadd v3, v11
",
            4 * MEETINGS
        );
        let mut writer = Writer {
            text: head,
            values: 20,
            blocks: 0,
            meetings: 0,
            labels: Vec::new(),
        };
        if let Some(value) = writer.statements(&self.0, 12) {
            writer.finish(value);
        }
        let mut text = writer.text + "}\n";
        let mut function = Writer {
            text: String::from(
                "function %f(i32) -> i32 {\nblock0(v1: i32):\n    v2 = iconst.i32 4\n    v3 = band v1, v2\n",
            ),
            values: 20,
            blocks: 3,
            meetings: 0,
            labels: Vec::new(),
        };
        function.line("brif v3, block2(v1), block1(v1)");
        for (block, numbers) in [(1, &[77][..]), (2, &[78, 79])] {
            let mixes: Vec<Statement> = numbers.iter().copied().map(Statement::Mix).collect();
            function.side(block, &mixes, 3);
        }
        let result = function.begin(3);
        function.line(format_args!("return v{result}"));
        text += &function.text;
        text + "}\n"
    }

    /// What a block of `threads` threads leaves.
    pub fn expected(&self, threads: u32, argument: u32) -> Expected {
        let ran: Vec<Thread> = (0..threads)
            .map(|id| {
                let mut thread = Thread {
                    id,
                    argument,
                    value: id.wrapping_add(1),
                    met: [false; MEETINGS],
                    labels: 0,
                    meetings: 0,
                };
                thread.run(&self.0);
                thread
            })
            .collect();
        let mask = |thread: &Thread, meeting: usize| {
            let first = (thread.id & !31) as usize;
            let lanes = ran[first..].iter().take(32).enumerate();
            let there = |(lane, other): (usize, &Thread)| u32::from(other.met[meeting]) << lane;
            lanes.map(there).sum::<u32>() * u32::from(thread.met[meeting])
        };
        let masks = |thread| (0..MEETINGS).map(move |meeting| mask(thread, meeting));
        Expected {
            results: ran.iter().map(|thread| thread.value).collect(),
            masks: ran.iter().flat_map(masks).collect(),
        }
    }

    /// A random program of so many levels, which all its ways may leave early.
    pub fn random(random: &mut Random, depth: u32) -> Program {
        let mut body = some(random);
        for level in 0..depth {
            let mut inner = some(random);
            inner.append(&mut body);
            inner.extend(some(random));
            let number = |random: &mut Random| Condition::Thread(1 + random.below(31) as u32);
            let conditions = [number(random), number(random)];
            let [first, _] = conditions.clone();
            let wrapped = match random.below(8) {
                0 => Statement::Labelled(inner),
                1 if level % 5 == 0 => Statement::Turns(2, inner),
                2 => Statement::If(first, some(random), inner),
                3 | 4 => Statement::If(first, inner, some(random)),
                _ => Statement::Entered(random.below(32) as u32, conditions, inner),
            };
            body = vec![wrapped];
        }
        // Who leaves all of it goes through some of these steps to an end of their own.
        body.extend([Statement::Meet, Statement::Mix(1), Statement::Finish]);
        for _ in 0..random.below(8) {
            body = vec![Statement::Labelled(body)];
            body.extend(some(random));
        }
        Program(body)
    }
}

/// A few small statements.
fn some(random: &mut Random) -> Vec<Statement> {
    let count = random.below(3);
    let mut one = || {
        let number = random.below(1000) as u32;
        match random.below(24) {
            0 => Statement::Call,
            1 => Statement::Leave(Condition::Rare(number), random.below(3) as u32),
            2 => Statement::Leave(Condition::Thread(number), random.below(2) as u32),
            3 | 4 => Statement::Return(Condition::Rare(number)),
            5..=8 => {
                let sides = [0, 1].map(|side| vec![Statement::Mix(number + side), Statement::Call]);
                let [yes, no] = sides;
                Statement::If(Condition::Thread(number), yes, no)
            }
            _ => Statement::Mix(number),
        }
    };
    (0..count).map(|_| one()).collect()
}
