//! Loops that use more values than there are registers, and how little spilling them can cost.
//!
//! The bound counts accesses to spill slots, each by eight for every loop around it. At a place where more values are
//! alive than there are registers, as many as are too many are in memory. Each of them comes back in every round of the
//! innermost loop around the place that uses it, and is stored in every round as well if that loop makes it; the
//! cheapest may be those that are in memory. The dearest place counts, and once more the first stores of those that no
//! loop stores.

use super::super::liveness::Liveness;
use super::super::{Allocated, AllocationBuffers, Options, allocate};
use super::generate::Shape;
use super::{check, interpret, paths, plain};
use crate::emit::testing::{add, load, store};
use crate::isa::generated::{BoolOp, CompOp, IExt, IType, MOVW, isetp, mov};
use crate::isa::operand::{Constant, PT};
use crate::isa::{Form, PReg, Register, RegisterClass, VInst, VReg, build};
use crate::vcode::{
    Block, BlockData, Entry, Frame, FunctionKind, Guard, KernelInfo, Meeting, SourceLine,
    Terminator, VCode,
};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};
use hashbrown::HashSet;

/// What a loop does with its values.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Reads all of them.
    Reads,
    /// Adds to all of them.
    Adds,
    /// Reads one of four; the others are read behind it.
    Passes,
    /// Reads one half of them in a loop in it, the other before that.
    Nests,
}

struct Maker {
    code: VCode<VReg>,
    address: [VReg; 2],
    /// First instruction of the block at hand.
    start: u32,
}

impl Maker {
    fn value(&mut self) -> VReg {
        self.code.new_vreg(RegisterClass::Gpr)
    }

    fn push(&mut self, inst: VInst) {
        self.code.insts.push(Entry::new(inst, SourceLine(1)));
    }

    fn load(&mut self) -> VReg {
        let d = self.value();
        self.push(load(d, self.address));
        d
    }

    fn sum(&mut self, a: VReg, b: VReg) -> VReg {
        let d = self.value();
        self.push(add(d, a, b));
        d
    }

    fn all(&mut self, start: VReg, values: &[VReg]) -> VReg {
        values.iter().fold(start, |sum, v| self.sum(sum, *v))
    }

    fn close(&mut self, params: Vec<VReg>, depth: u32, terminator: Terminator<VReg>) {
        let end = self.code.insts.len() as u32;
        self.code.blocks.push(BlockData {
            insts: self.start..end,
            params,
            terminator,
            line: SourceLine(1),
            divergent: false,
            loop_depth: depth,
            cold: false,
            meeting: Meeting::Together,
        });
        self.start = end;
    }

    fn next(&self) -> usize {
        self.code.blocks.len()
    }

    fn jump(&mut self, params: Vec<VReg>, depth: u32, target: usize, args: Vec<VReg>) {
        let target = Block::new(target);
        self.close(params, depth, Terminator::Jump { target, args });
    }

    /// Ends a loop of one block with a block for the way back; what follows comes behind.
    fn repeat(&mut self, params: Vec<VReg>, depth: u32, header: usize, args: Vec<VReg>) {
        let reg = self.code.new_vreg(RegisterClass::Predicate);
        let options = isetp::Options::new(IExt::NoX, IType::U32, CompOp::Lt, BoolOp::And);
        self.push(build::isetp_ri(
            options,
            reg,
            PT,
            args[0],
            0x4000_0000,
            PT,
            PT,
        ));
        let taken = Block::new(self.next() + 1);
        let branch = Terminator::Branch {
            guard: Guard {
                reg,
                negated: false,
            },
            taken,
            fallthrough: Block::new(self.next() + 2),
            divergent: false,
        };
        self.close(params, depth, branch);
        self.jump(Vec::new(), depth, header, args);
    }
}

/// A function with a loop over `values` values.
fn function(kind: Kind, values: usize) -> VCode<VReg> {
    let code = VCode {
        name: format!("{kind:?}{values}"),
        kind: FunctionKind::Kernel(KernelInfo::default()),
        insts: Vec::new(),
        attachments: PrimaryMap::new(),
        blocks: PrimaryMap::new(),
        entry: Vec::new(),
        vreg_count: 2,
        frame: Frame::default(),
        holders: Vec::new(),
    };
    let address = [0, 1].map(|i| VReg::new(RegisterClass::Gpr, i));
    let mut m = Maker {
        code,
        address,
        start: 0,
    };
    for (v, offset) in address.into_iter().zip([0x160, 0x164]) {
        let place = Constant { bank: 0, offset };
        m.push(build::mov_c(mov::Options::new(MOVW::W32), v, place));
    }
    let list: Vec<VReg> = (0..values).map(|_| m.load()).collect();
    let first = m.load();
    let one = |m: &mut Maker| m.value();
    match kind {
        Kind::Reads | Kind::Passes => {
            let read = match kind {
                Kind::Reads => values,
                _ => values / 4,
            };
            m.jump(Vec::new(), 0, 1, vec![first]);
            let p = one(&mut m);
            let sum = m.all(p, &list[..read]);
            m.repeat(vec![p], 1, 1, vec![sum]);
            let end = m.all(sum, &list[read..]);
            m.push(store(address, end));
        }
        Kind::Adds => {
            m.jump(Vec::new(), 0, 1, list);
            let params: Vec<VReg> = (0..values).map(|_| one(&mut m)).collect();
            let more = m.load();
            let sums: Vec<VReg> = params.iter().map(|p| m.sum(*p, more)).collect();
            m.repeat(params, 1, 1, sums.clone());
            for sum in sums {
                m.push(store(address, sum));
            }
        }
        Kind::Nests => {
            m.jump(Vec::new(), 0, 1, vec![first]);
            let p = one(&mut m);
            let sum = m.all(p, &list[values / 2..]);
            m.jump(vec![p], 1, 2, vec![sum]);
            let q = one(&mut m);
            let inner = m.all(q, &list[..values / 2]);
            m.repeat(vec![q], 2, 2, vec![inner]);
            let outer = m.sum(inner, sum);
            m.repeat(Vec::new(), 1, 1, vec![outer]);
            m.push(store(address, outer));
        }
    }
    m.close(Vec::new(), 0, Terminator::Exit);
    m.code
}

/// Values that an instruction reading nothing makes: they need no memory.
fn constants(code: &VCode<VReg>) -> HashSet<VReg> {
    let moves = code.insts.iter().filter(|e| e.inst.form() == Form::MOV_C);
    moves.flat_map(|e| e.inst.definitions()).collect()
}

/// The blocks of the loops, inner before outer: here a loop is a range of blocks.
fn loops(code: &VCode<VReg>) -> Vec<(u32, std::ops::RangeInclusive<usize>)> {
    let mut found = Vec::new();
    for (block, data) in code.blocks.iter() {
        for to in data.terminator.successors() {
            if to <= block {
                let depth = code.blocks[to].loop_depth;
                found.push((depth, to.index()..=block.index()));
            }
        }
    }
    found.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
    found
}

/// See the module.
fn bound(code: &VCode<VReg>, registers: usize) -> u64 {
    let mut live = Liveness::default();
    live.compute(code);
    let constants = constants(code);
    let loops = loops(code);
    let sets = loops.iter().map(|(_, range)| {
        let (mut used, mut made) = (HashSet::new(), HashSet::new());
        for block in range.clone().map(Block::new) {
            made.extend(&code.blocks[block].params);
            used.extend(code.blocks[block].terminator.uses());
            for entry in code.block_insts(block) {
                used.extend(code.uses(entry));
                made.extend(code.definitions(entry));
            }
        }
        (used, made)
    });
    let sets: Vec<(HashSet<VReg>, HashSet<VReg>)> = sets.collect();
    // What it costs to have the value in memory at a place of the block.
    let cost = |v: VReg, block: Block| {
        for ((depth, range), (used, made)) in loops.iter().zip(&sets) {
            if range.contains(&block.index()) && used.contains(&v) {
                let each = 1 << (3 * depth);
                return if made.contains(&v) {
                    2 * each
                } else {
                    each + 1
                };
            }
        }
        2
    };
    let place = |alive: &HashSet<VReg>, block: Block| -> u64 {
        let values = alive.iter().copied();
        let mine = values.filter(|v| v.class() == RegisterClass::Gpr && !constants.contains(v));
        let mut costs: Vec<u64> = mine.map(|v| cost(v, block)).collect();
        costs.sort_unstable();
        costs[..costs.len().saturating_sub(registers)].iter().sum()
    };
    let mut most = 0;
    for (block, data) in code.blocks.iter() {
        let mut alive: HashSet<VReg> = live.live_out(block).collect();
        alive.extend(data.terminator.uses());
        most = most.max(place(&alive, block));
        for entry in code.block_insts(block).iter().rev() {
            for v in code.definitions(entry) {
                alive.remove(&v);
            }
            alive.extend(code.uses(entry));
            most = most.max(place(&alive, block));
        }
    }
    most
}

/// Accesses of spill slots by eight for every loop around them.
fn accesses(code: &VCode<PReg>) -> u64 {
    let access = |e: &&Entry<PReg>| matches!(e.inst.form(), Form::LDL_R | Form::STL_RR);
    code.blocks
        .iter()
        .map(|(block, data)| {
            let count = code.block_insts(block).iter().filter(access).count() as u64;
            count << (3 * data.loop_depth)
        })
        .sum()
}

fn spilled(kind: Kind, values: usize, gpr_limit: u8) -> (u64, u64) {
    let code = function(kind, values);
    code.verify().expect("made correctly");
    let options = Options {
        gpr_limit,
        ..paths()[0]
    };
    let mut scratch = AllocationBuffers::default();
    let Allocated { code: after, .. } =
        allocate(code.clone(), &options, &mut scratch).expect("an allocation");
    assert_eq!(
        interpret::run(&code, 1, 40),
        interpret::run(&after, 1, 40),
        "{kind:?} {values} {gpr_limit}"
    );
    // R1 holds the stack pointer.
    (accesses(&after), bound(&code, usize::from(gpr_limit) - 1))
}

const KINDS: [Kind; 4] = [Kind::Reads, Kind::Adds, Kind::Passes, Kind::Nests];

#[test]
fn loops_that_fit_have_no_accesses() {
    for kind in KINDS {
        for (values, limit) in [(100, 106), (150, 156), (248, 252)] {
            let (found, _) = spilled(kind, values, limit);
            assert_eq!(found, 0, "{kind:?} {values} {limit}");
        }
    }
}

#[test]
fn spilling_is_near_its_bound() {
    let mut table = String::new();
    let mut sums = [0; 2];
    let mut worst: f64 = 0.0;
    for kind in KINDS {
        for (values, limit) in [
            (100, 24),
            (100, 32),
            (100, 64),
            (150, 64),
            (200, 64),
            (300, 64),
            (150, 128),
            (200, 128),
            (300, 128),
            (260, 252),
            (280, 252),
            (300, 252),
        ] {
            let (found, least) = spilled(kind, values, limit);
            assert!(
                least > 0 && found >= least,
                "{kind:?} {values} {limit}: {found}, at least {least}"
            );
            let ratio = found as f64 / least as f64;
            table +=
                &format!("{kind:?} {values} of {limit}: {found}, at least {least}: {ratio:.2}\n");
            worst = worst.max(ratio);
            sums[0] += found;
            sums[1] += least;
        }
    }
    let ratio = sums[0] as f64 / sums[1] as f64;
    assert!(
        ratio <= 1.15 && worst <= 1.6,
        "{ratio:.3}, worst {worst:.2}\n{table}"
    );
}

/// Random loops in loops that use more values of every class than there are registers, with calls in them.
#[test]
fn pressure_in_loops() {
    for (seeds, gpr_limit, calls) in [(0..30, 24, 0), (30..50, 32, 2), (50..60, 64, 1)] {
        for options in paths() {
            let options = Options {
                gpr_limit,
                ..options
            };
            let shape = Shape {
                control: 45,
                wide: 10,
                guarded: 15,
                calls,
                device: calls > 1,
                predicate_window: 14,
                uniform_window: 80,
                ..plain(300, 150)
            };
            check(seeds.clone(), &shape, &options);
        }
    }
}
