//! Random kernels under `--check` against a slow judge: a list of all accesses to every byte, in the order in which
//! they happen. And with any number of threads of the host the same findings, memory and counts.

use super::super::SimConfig;
use super::Bench;
use crate::isa::random::Random;
use crate::launch::{FindingKind, Report, Window};
use hashbrown::{HashMap, HashSet};
use std::fmt::Write;

/// Bytes of shared memory and of either buffer that are used.
const BYTES: u32 = 512;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load,
    Store,
    /// An atomic whose result nobody reads.
    Add,
    Barrier,
}

/// An access of all threads of a block below a number to `base + tid * threads + ctaid * blocks`, in units of its
/// bytes.
#[derive(Clone, Copy, Debug)]
struct Step {
    what: What,
    /// Shared memory, the buffer that the host has written, or the other one.
    memory: usize,
    bytes: u32,
    base: u32,
    threads: u32,
    blocks: u32,
    below: u32,
}

impl Step {
    fn random(random: &mut Random, apart: bool) -> Step {
        let what = match random.below(10) {
            0..4 => What::Load,
            4..7 => What::Store,
            7 => What::Add,
            _ => What::Barrier,
        };
        let memory = random.below(3);
        let blocks = match apart {
            true => 64,
            false => [0, 64, 32, 1][random.below(4)],
        };
        Step {
            what,
            memory,
            bytes: match what {
                What::Add => 4,
                _ => [1, 4, 4, 4, 8][random.below(5)],
            },
            base: [0, 0, 1, 3, 32][random.below(5)],
            threads: [0, 1, 1, 1, 2][random.below(5)],
            blocks,
            below: [64, 64, 64, 33, 1][random.below(5)],
        }
    }

    /// The first byte that a thread uses, if it does.
    fn place(self, block: u32, thread: u32) -> Option<u32> {
        let index = self.base + thread * self.threads + block * self.blocks;
        (thread < self.below).then_some((index * self.bytes) & (BYTES - 1))
    }

    fn text(self, number: usize) -> String {
        let Step {
            what,
            memory,
            bytes,
            base,
            threads,
            blocks,
            below,
        } = self;
        if what == What::Barrier {
            return "BAR_X\n".to_string();
        }
        let mask = BYTES - 1;
        let mut text = format!(
            "IMAD_RIR rd=6 ra=21 vb={} rc=255
            IMAD_RIR rd=6 ra=20 vb={} rc=6
            IADD_RI rd=6 ra=6 vb={}
            LOP3_RIR lut=0xC0 rd=6 ra=6 vb={mask} rc=255
            IADD_RI rd=10 ra=22 vb={number}
            IADD_RI rd=11 ra=10 vb=1000
            ISETP_RI itype=U32 compop=LT boolop=AND pu=0 ra=21 vb={below}
            ",
            threads * bytes,
            blocks * bytes,
            base * bytes,
        );
        if memory > 0 {
            let pointer = 24 + 2 * (memory - 1);
            let _ = writeln!(text, "IMAD_WIDE_RIR itype=U32 rd=2 ra=6 vb=1 rc={pointer}");
        }
        let size = match bytes {
            1 => "size=U8",
            8 => "size=64",
            _ => "size=32",
        };
        // A load of what nobody wrote is none as long as the value is not used: all bytes of it here.
        let word = |register: u32| format!("@P0 FADD_RR rd=14 ra={register} rb={register}\n");
        let uses: String = (12..12 + bytes.div_ceil(4)).map(word).collect();
        let _ = match (what, memory) {
            (What::Load, 0) => writeln!(text, "@P0 LDS_R {size} rd=12 ra=6\n{uses}"),
            (What::Load, _) => writeln!(text, "@P0 LDG_R {size} rd=12 ra=2\n{uses}"),
            (What::Store, 0) => writeln!(text, "@P0 STS_RR {size} ra=6 rb=10"),
            (What::Store, _) => writeln!(text, "@P0 STG_RR {size} ra=2 rb=10"),
            (_, 0) => writeln!(text, "@P0 ATOMS_RR op=ADD atype=U32 rd=255 ra=6 rb=10"),
            _ => writeln!(text, "@P0 RED_RR op=ADD atype=U32 ra=2 rb=10"),
        };
        text
    }
}

/// The kernel and the places of its steps, in bytes of code.
fn kernel(steps: &[Step]) -> (String, Vec<u32>) {
    let mut text = "
        S2R_X rd=20 sreg=SR_CTAID_X &wr=0
        S2R_X rd=21 sreg=SR_TID_X &wr=0
        MOV_C rd=24 vb=c0:0x160
        MOV_C rd=25 vb=c0:0x164
        MOV_C rd=26 vb=c0:0x168
        MOV_C rd=27 vb=c0:0x16c
        IMAD_RIR rd=22 ra=20 vb=64 rc=21
        IMAD_RIR rd=22 ra=22 vb=257 rc=255
        "
    .to_string();
    let mut places = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        text += &step.text(number);
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let uses = lines.clone().rev().take_while(|line| line.contains("FADD"));
        places.push(16 * (lines.clone().count() - 1 - uses.count()) as u32);
    }
    (text + "EXIT_X", places)
}

/// The report of a launch, and what it left in both buffers.
fn launch(text: &str, blocks: u32, config: SimConfig) -> (Report, Vec<u8>) {
    let config = SimConfig {
        check: true,
        ..config
    };
    let mut bench = Bench::with(config, text, &[7; BYTES as usize / 4]);
    let fresh = bench.global.allocate(u64::from(BYTES)).expect("room");
    let report = bench.launch(blocks, 64, &[fresh as u32, (fresh >> 32) as u32]);
    assert_eq!(report.fault, None);
    let bytes = [bench.buffer, fresh].map(|at| bench.global.read(at, BYTES.into()).expect("there"));
    (report, bytes.concat())
}

/// An access to a byte.
#[derive(Clone, Copy)]
struct Use {
    block: u32,
    thread: u32,
    /// Barriers of the block before it.
    phase: u32,
    step: usize,
}

/// What is wrong with a kernel.
#[derive(Default)]
struct Verdict {
    /// Pairs of steps that race, the lower first, in shared memory or not.
    pairs: HashSet<(usize, usize, bool)>,
    /// Of each byte the steps of the first access that races.
    first: HashSet<(usize, bool)>,
    /// Steps that read what nothing was written to.
    undefined: HashSet<usize>,
}

/// Runs the steps as the simulator does with one thread: warps of a block in turn up to a barrier, the blocks one after
/// another.
fn judge(steps: &[Step], blocks: u32) -> Verdict {
    let mut verdict = Verdict::default();
    // By memory, block if it is shared, and byte.
    let mut uses: HashMap<(usize, u32, u32), Vec<Use>> = HashMap::new();
    let mut raced: HashSet<(usize, u32, u32)> = HashSet::new();
    let is_barrier = |step: &Step| step.what == What::Barrier;
    for block in 0..blocks {
        let mut first = 0;
        for (phase, part) in (0..).zip(steps.split(is_barrier)) {
            for warp in 0..2 {
                for (step, what) in (first..).zip(part) {
                    for thread in 32 * warp..32 * warp + 32 {
                        let Some(place) = what.place(block, thread) else {
                            continue;
                        };
                        let bytes = (place..place + what.bytes).map(|byte| {
                            let of = if what.memory == 0 { block } else { 0 };
                            (what.memory, of, byte)
                        });
                        let now = Use {
                            block,
                            thread,
                            phase,
                            step,
                        };
                        let reads = what.what != What::Store;
                        let wrote = |u: &Use| steps[u.step].what != What::Load;
                        // An atomic reads the word, and a part of it being written is enough.
                        let fresh = |key: &(usize, u32, u32)| {
                            !uses.get(key).is_some_and(|u| u.iter().any(wrote))
                        };
                        let missing = bytes.clone().filter(fresh).count() as u32;
                        let enough = if what.what == What::Add {
                            what.bytes
                        } else {
                            1
                        };
                        if reads && what.memory != 1 && missing >= enough {
                            verdict.undefined.insert(step);
                        }
                        for key in bytes {
                            let list = uses.entry(key).or_default();
                            let races = list.iter().filter(|u| {
                                (u.block, u.thread) != (block, thread)
                                    && (u.block != block || u.phase == phase)
                                    && (wrote(u) || wrote(&now))
                                    && (steps[u.step].what, what.what) != (What::Add, What::Add)
                            });
                            let races: Vec<Use> = races.copied().collect();
                            let shared = what.memory == 0;
                            for u in &races {
                                let pair = (u.step.min(step), u.step.max(step), shared);
                                verdict.pairs.insert(pair);
                            }
                            if !races.is_empty() && raced.insert(key) && !what.is_narrow(steps) {
                                verdict.first.insert((step, shared));
                            }
                            list.push(now);
                        }
                    }
                }
            }
            first += part.len() + 1;
        }
    }
    verdict
}

impl Step {
    /// Whether it is about bytes beside which others are used by one access: of those one race is told.
    fn is_narrow(self, steps: &[Step]) -> bool {
        let others = steps.iter().filter(|s| s.memory == self.memory);
        others
            .clone()
            .any(|s| s.bytes != self.bytes && s.what != What::Barrier)
    }
}

#[test]
fn finds_what_the_judge_finds() {
    let (mut races, mut undefined, mut clean) = (0, 0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let steps = 2 + random.below(9);
        let apart = random.below(3) == 0;
        let steps: Vec<Step> = (0..steps)
            .map(|_| Step::random(&mut random, apart))
            .collect();
        let blocks = 1 + random.below(3) as u32;
        let (text, places) = kernel(&steps);
        let verdict = judge(&steps, blocks);
        let config = SimConfig {
            threads: 1,
            ..SimConfig::default()
        };
        let (report, _) = launch(&text, blocks, config);
        let step = |pc: u32| {
            places
                .iter()
                .position(|place| *place == pc)
                .expect("an access")
        };
        let (mut told, mut bare) = (HashSet::new(), HashSet::new());
        for finding in &report.findings {
            let pc = finding.place.pc;
            match (&finding.kind, &finding.other) {
                (FindingKind::Race { window, .. }, Some(other)) => {
                    let (a, b) = (step(pc), step(other.pc));
                    let shared = *window == Window::Shared;
                    let pair = (a.min(b), a.max(b), shared);
                    assert!(
                        verdict.pairs.contains(&pair),
                        "seed {seed}: {finding}\n{steps:?}"
                    );
                    told.insert((a, shared));
                    told.insert((b, shared));
                }
                (FindingKind::UndefinedMemory { .. }, load) => {
                    bare.insert(step(load.as_ref().map_or(pc, |load| load.pc)));
                }
                _ => panic!("seed {seed}: {finding}"),
            }
        }
        for first in &verdict.first {
            assert!(
                told.contains(first),
                "seed {seed}: {first:?} races\n{steps:?}\n{told:?}"
            );
        }
        assert_eq!(told.is_empty(), verdict.pairs.is_empty(), "seed {seed}");
        assert_eq!(bare, verdict.undefined, "seed {seed}\n{steps:?}");
        races += verdict.pairs.len();
        undefined += bare.len();
        clean += usize::from(report.findings.is_empty());
    }
    assert!(
        races > 200 && undefined > 50 && clean > 20,
        "{races} {undefined} {clean}"
    );
}

/// Launches of so many blocks that several threads run them: with blocks that use what others write, and with such that
/// do not.
#[test]
fn threads_of_the_host_find_the_same() {
    let mut found = [0; 2];
    for seed in 0..16 {
        let mut random = Random::new(1000 + seed);
        let apart = seed % 2 == 0;
        let steps = 3 + random.below(6);
        let steps = (0..steps).map(|_| Step::random(&mut random, apart));
        let mut steps: Vec<Step> = steps.collect();
        // A buffer has no words for every block to write.
        for step in steps.iter_mut().filter(|step| apart && step.memory > 0) {
            step.what = What::Load;
        }
        let (text, _) = kernel(&steps);
        let of = |threads: u32| {
            let config = SimConfig {
                threads,
                ..SimConfig::default()
            };
            launch(&text, 500, config)
        };
        let one = of(1);
        for threads in [2, 3, 8] {
            let is_same = of(threads) == one;
            assert!(is_same, "seed {seed}, {threads} threads:\n{steps:?}");
        }
        found[usize::from(apart)] += one.0.findings.len();
    }
    assert!(found.iter().all(|count| *count > 10), "{found:?}");
}
