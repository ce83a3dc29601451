//! What has to be known of a function before its registers are assigned.
//!
//! Only virtual registers that are followed are kept: those of holders, and those that become them by parameters. They
//! have numbers of their own.

use super::lists::Lists;
use crate::isa::{PReg, VReg};
use crate::values::Holder;
use crate::vcode::{Frame, Terminator, VCode};
use smallvec::SmallVec;

/// No number.
const NONE: u32 = u32::MAX;

/// The function as it came.
pub(in crate::regalloc) struct Before {
    /// What holds values of the source.
    pub(super) holders: Vec<Holder>,
    /// By virtual register its number, or [`NONE`].
    numbers: Vec<u32>,
    /// Virtual registers that have numbers.
    pub(super) count: usize,
    /// By number, what it is a word of.
    pub(super) words: Lists<WordOf>,
    pub(super) frame: Frame,
    /// What the function gets in registers.
    pub(super) entry: Vec<(u32, PReg)>,
    /// By instruction, its results.
    pub(super) results: Lists<(u32, ResultAt)>,
    /// By block, its parameters.
    pub(super) params: Lists<u32>,
    /// By block, the parameters of its successor with the arguments that it passes, in the order of arguments.
    pub(super) passed: Lists<(u32, u32)>,
}

/// Where a result is when it has a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultAt {
    /// What the instruction defines, in the order of its operands.
    Operand(u8),
    /// Where the convention of calls wants it.
    Register(PReg),
}

/// A holder that a virtual register is a word of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WordOf {
    pub holder: u32,
    /// Whether all other words are there when this one is defined.
    pub is_last: bool,
}

impl Before {
    /// What has to be known of `code` to find `holders` in what becomes of it.
    pub fn of(code: &VCode<VReg>, holders: Vec<Holder>) -> Before {
        let (numbers, count) = numbered(code, &holders);
        let mut before = Before {
            holders,
            numbers,
            count: count as usize,
            words: Lists::with_capacity(0),
            frame: code.frame.clone(),
            entry: Vec::new(),
            results: Lists::with_capacity(code.insts.len()),
            params: Lists::with_capacity(code.blocks.len()),
            passed: Lists::with_capacity(code.blocks.len()),
        };
        let times = before.read(code);
        before.words = before.words_of(&times);
        before
    }

    /// The number of a virtual register that is followed.
    pub(super) fn number(&self, register: VReg) -> Option<u32> {
        Some(self.numbers[register.index()]).filter(|number| *number != NONE)
    }

    /// Reads the function. By number, when each virtual register is defined: of two that are there at once the later
    /// one has the greater time.
    fn read(&mut self, code: &VCode<VReg>) -> Vec<u32> {
        let mut times = vec![u32::MAX; self.count];
        for &(value, register) in &code.entry {
            if let Some(number) = self.number(value) {
                times[number as usize] = 0;
                self.entry.push((number, register));
            }
        }
        let mut time = 1;
        // Blocks are in reverse postorder, so what dominates comes first.
        for (block, data) in code.blocks.iter() {
            for param in &data.params {
                if let Some(number) = self.number(*param) {
                    times[number as usize] = time;
                    self.params.push(number);
                }
            }
            self.params.end_list();
            time += 1;
            for entry in code.block_insts(block) {
                for value in code.definitions(entry) {
                    if let Some(number) = self.number(value) {
                        times[number as usize] = time;
                    }
                }
                time += 1;
                self.read_results(code, entry);
                self.results.end_list();
            }
            if let Terminator::Jump { target, args } = &data.terminator {
                let passed = code.blocks[*target].params.iter().zip(args);
                let mut passed: SmallVec<[(u32, u32); 8]> = passed
                    .filter_map(|(param, arg)| Some((self.number(*param)?, self.number(*arg)?)))
                    .collect();
                passed.sort_unstable_by_key(|(_, arg)| *arg);
                passed.into_iter().for_each(|pair| self.passed.push(pair));
            }
            self.passed.end_list();
        }
        times
    }

    fn read_results(&mut self, code: &VCode<VReg>, entry: &crate::vcode::Entry<VReg>) {
        // The return address is the callee's, and lost when it comes back.
        if let Some(call) = code.call(entry) {
            for &(value, register) in &call.defs {
                if let Some(number) = self.number(value) {
                    self.results.push((number, ResultAt::Register(register)));
                }
            }
            return;
        }
        let is_unguarded = entry.inst.is_unguarded();
        let kept = code.else_values(entry);
        for (place, value) in entry.inst.definitions().enumerate() {
            // Under a guard there is a value only where another one is kept otherwise.
            if (is_unguarded || kept.get(place).is_some_and(Option::is_some))
                && let Some(number) = self.number(value)
            {
                self.results.push((number, ResultAt::Operand(place as u8)));
            }
        }
    }

    /// By number, what each virtual register is a word of; `times` says when it is defined.
    fn words_of(&self, times: &[u32]) -> Lists<WordOf> {
        let mut found: Vec<(u32, WordOf)> = Vec::with_capacity(2 * self.holders.len());
        for (holder, held) in (0..).zip(&self.holders) {
            let first = found.len();
            for register in held.held.registers() {
                let number = self.numbers[register.index()];
                if found[first..].iter().all(|(other, _)| *other != number) {
                    let is_last = false;
                    found.push((number, WordOf { holder, is_last }));
                }
            }
            let words = &mut found[first..];
            let last = words
                .iter()
                .map(|(number, _)| times[*number as usize])
                .max();
            for (number, word) in words {
                word.is_last = Some(times[*number as usize]) == last;
            }
        }
        Lists::of(self.count, &found)
    }
}

/// By virtual register its number, for those that matter; how many do.
fn numbered(code: &VCode<VReg>, holders: &[Holder]) -> (Vec<u32>, u32) {
    let mut numbers = vec![NONE; code.vreg_count as usize];
    let mut count = 0;
    let mut number = |register: VReg| {
        let is_new = numbers[register.index()] == NONE;
        if is_new {
            numbers[register.index()] = count;
            count += 1;
        }
        is_new
    };
    let mut work: SmallVec<[VReg; 16]> = SmallVec::new();
    for register in holders.iter().flat_map(|holder| holder.held.registers()) {
        if number(register) {
            work.push(register);
        }
    }
    // By parameter, the arguments that become it: the first, and behind each the next one.
    let mut first: Vec<u32> = Vec::new();
    let mut arguments: Vec<(VReg, u32)> = Vec::new();
    for data in code.blocks.values() {
        if let Terminator::Jump { target, args } = &data.terminator {
            for (param, arg) in code.blocks[*target].params.iter().zip(args) {
                first.resize(code.vreg_count as usize, NONE);
                let next = std::mem::replace(&mut first[param.index()], arguments.len() as u32);
                arguments.push((*arg, next));
            }
        }
    }
    if arguments.is_empty() {
        return (numbers, count);
    }
    while let Some(register) = work.pop() {
        let mut next = first[register.index()];
        while let Some(&(argument, behind)) = arguments.get(next as usize) {
            if number(argument) {
                work.push(argument);
            }
            next = behind;
        }
    }
    (numbers, count)
}
