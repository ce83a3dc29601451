//! An interpreter of a little language of words, a program a thread.

use alloc::vec::Vec;
use thisgpu_gpu::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Push(i32),
    Add,
    Mul,
    Sub,
    Dup,
    Swap,
    Over,
    JumpIfZero(usize),
    Jump(usize),
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Code(u32),
    Empty,
    Fuel,
    Address,
}

fn decode(word: u32) -> Result<Op, Wrong> {
    let argument = word >> 8;
    Ok(match word & 0xFF {
        0 => Op::Push((argument as i32) << 8 >> 8),
        1 => Op::Add,
        2 => Op::Mul,
        3 => Op::Sub,
        4 => Op::Dup,
        5 => Op::Swap,
        6 => Op::Over,
        7 => Op::JumpIfZero(argument as usize),
        8 => Op::Jump(argument as usize),
        9 => Op::Stop,
        other => return Err(Wrong::Code(other)),
    })
}

struct Machine {
    stack: Vec<i32>,
}

impl Machine {
    fn pop(&mut self) -> Result<i32, Wrong> {
        self.stack.pop().ok_or(Wrong::Empty)
    }

    fn run(&mut self, program: &[Op], mut fuel: u32) -> Result<i32, Wrong> {
        let mut at = 0;
        loop {
            fuel = fuel.checked_sub(1).ok_or(Wrong::Fuel)?;
            let op = *program.get(at).ok_or(Wrong::Address)?;
            at += 1;
            match op {
                Op::Push(value) => self.stack.push(value),
                Op::Add | Op::Mul | Op::Sub => {
                    let (b, a) = (self.pop()?, self.pop()?);
                    self.stack.push(match op {
                        Op::Add => a.wrapping_add(b),
                        Op::Mul => a.wrapping_mul(b),
                        _ => a.wrapping_sub(b),
                    });
                }
                Op::Dup => {
                    let top = *self.stack.last().ok_or(Wrong::Empty)?;
                    self.stack.push(top);
                }
                Op::Swap => {
                    let n = self.stack.len();
                    if n < 2 {
                        return Err(Wrong::Empty);
                    }
                    self.stack.swap(n - 1, n - 2);
                }
                Op::Over => {
                    let n = self.stack.len().checked_sub(2).ok_or(Wrong::Empty)?;
                    self.stack.push(self.stack[n]);
                }
                Op::JumpIfZero(to) => {
                    if self.pop()? == 0 {
                        at = to;
                    }
                }
                Op::Jump(to) => at = to,
                Op::Stop => return self.pop(),
            }
        }
    }
}

/// Results, and how the programs ended.
#[kernel]
pub fn interpret(code: &[u32], starts: &[u32], mut out: DisjointMut<[i32; 2]>) {
    let i = thread::global_id();
    let Some(out) = out.thread_mut() else { return };
    let words = &code[starts[i] as usize..starts[i + 1] as usize];
    let program: Result<Vec<Op>, Wrong> = words.iter().copied().map(decode).collect();
    let mut machine = Machine { stack: Vec::new() };
    let result = program.and_then(|program| machine.run(&program, 2000));
    *out = match result {
        Ok(value) => [value, 0],
        Err(Wrong::Code(code)) => [code as i32, 1],
        Err(Wrong::Empty) => [0, 2],
        Err(Wrong::Fuel) => [0, 3],
        Err(Wrong::Address) => [0, 4],
    };
}
