//! Control bits of real and random kernels are weakened one at a time: who notices?
//!
//! Three judges that share no code: the verifier looks at all paths, the timed machine at those that run, and
//! [`InOrder`] follows the lanes of a recorded run one by one, which decides whether a mutation's hazard lies on a path
//! that was executed. The run does not depend on control bits, so it is recorded once. `THISGPU_HEAVY=1` tries
//! thousands of mutations.

use super::control::Waiting;
use super::tests::{InOrder, mutate};
use crate::clif::source::SourceFile;
use crate::compile::{Compiler, FunctionInput, Unit};
use crate::emit::testing::{block, jump, kernel, mov, words};
use crate::emit::{Code, Constants};
use crate::hazards::verify;
use crate::isa::encode::{all_forms, decode};
use crate::isa::generated::{
    AccessOrder, BoolOp, CompOp, IExt, IType, LoadSize, MOVW, SReg, StoreSize, iadd, isetp, ldg,
    mov, stg,
};
use crate::isa::operand::{Constant, PT};
use crate::isa::table::{Direction, Effects, FieldType};
use crate::isa::{Control, Form, PInst, PReg, RegisterClass, Role, build};
use crate::launch::{Image, LaunchRequest};
use crate::settings::Options;
use crate::sim::SimConfig;
use crate::sim::decode::program::Program;
use crate::sim::launch::Loaded;
use crate::sim::launch::launch_bank;
use crate::sim::launch::shape::Shape;
use crate::sim::memory::bytes::Bytes;
use crate::sim::memory::global::Global;
use crate::sim::memory::local::Local;
use crate::sim::memory::strong::Concurrency;
use crate::sim::warp::registers::LANES;
use crate::sim::warp::{Warp, WarpState};
use crate::sim::{execute::Environment, memory::banks::Banks};
use crate::testing::Random;
use crate::vcode::{FunctionKind, Guard, Terminator};
use hashbrown::HashSet;

/// What a lane does: the indices of its instructions, and whether their guards hold.
type Path = Vec<(u32, bool)>;

/// A kernel with a launch.
struct Subject {
    name: String,
    code: Code,
    constants: Vec<u8>,
    global: Global,
    parameters: Vec<u8>,
    threads: [u32; 3],
}

impl Subject {
    fn shared(&self) -> u32 {
        match &self.code.kind {
            FunctionKind::Kernel(info) => info.shared_bytes,
            FunctionKind::Device => 0,
        }
    }

    fn request(&self) -> LaunchRequest<'_> {
        LaunchRequest {
            kernel: &self.name,
            entry: 0,
            grid: [1, 1, 1],
            block: self.threads,
            static_shared: self.shared(),
            dynamic_shared: 0,
            local_bytes: 0,
            parameters: &self.parameters,
            progress: None,
            time_limit: None,
        }
    }

    /// Hazards that the timed machine finds in these words.
    fn hazards(&self, words: &[u128]) -> u64 {
        let config = SimConfig {
            timed: true,
            ..SimConfig::default()
        };
        let image = Image {
            words: words.to_vec(),
            constants: self.constants.clone(),
            ..Image::default()
        };
        let loaded = Loaded::new(image, &config);
        let report = loaded.launch(&self.request(), self.global.clone().table(), &config);
        let report = report.expect("a possible launch");
        assert_eq!(report.fault, None, "{}", self.name);
        report.stats.hazards
    }

    /// The different paths of the lanes.
    fn paths(&self) -> HashSet<Path> {
        let config = SimConfig::default();
        let program = Program::new(&self.code.words, config.semantics);
        let shape = Shape {
            grid: [1, 1, 1],
            block: self.threads,
        };
        let bank = launch_bank(&self.request(), config.stack_bytes);
        let banks = Banks::of_launch(bank, self.constants.clone());
        let threads = shape.threads() as usize;
        let mut warps: Vec<Warp> = (0..threads.div_ceil(LANES))
            .map(|index| {
                let mut warp = Warp::new(Local::new(config.stack_bytes, false));
                let lanes = (threads - index * LANES).min(LANES);
                let mask = u32::MAX >> (LANES - lanes);
                warp.prepare(index as u32, &program, &banks, self.threads);
                warp.start(mask, 0, program.registers);
                warp
            })
            .collect();
        let mut paths: Vec<Path> = vec![Path::new(); threads];
        let (global, mut shared) = (
            self.global.clone(),
            Bytes::new(self.shared() as usize, false),
        );
        while warps.iter().any(|w| w.state() != WarpState::Done) {
            for warp in &mut warps {
                while warp.state() == WarpState::Ready {
                    let group = warp.group();
                    let mut env = Environment {
                        program: &program,
                        banks: &banks,
                        shape,
                        budget: config.budget,
                        block: [0; 3],
                        global: global.table(),
                        shared: &mut shared,
                        clock: None,
                        checker: None,
                        recorder: None,
                        concurrency: Concurrency::Alone,
                    };
                    let issued = warp.step(&mut env).expect("no fault");
                    for lane in (0..LANES).filter(|l| group.mask >> l & 1 != 0) {
                        let path = &mut paths[warp.index as usize * LANES + lane];
                        path.push((issued.pc, issued.mask >> lane & 1 != 0));
                    }
                }
            }
            assert!(warps.iter().all(|w| w.state() != WarpState::Stuck));
            warps.iter_mut().for_each(Warp::open_cta_barrier);
        }
        paths.into_iter().collect()
    }
}

/// Whether an instruction of a path comes too early.
fn is_early(words: &[u128], path: &Path) -> bool {
    let mut machine = InOrder::default();
    path.iter().any(|&(pc, guard)| {
        let (inst, control) = decode(words[pc as usize]).expect("an instruction");
        machine.issue(&inst, control, guard)
    })
}

/// What came of mutations.
#[derive(Debug, Default)]
struct Tally {
    mutations: usize,
    /// The verifier finds something.
    broken: usize,
    /// A lane meets the hazard.
    relevant: usize,
    /// Of these the timed machine finds one.
    found: usize,
}

impl Tally {
    /// Weakens a kernel `count` times.
    fn weaken(&mut self, subject: &Subject, random: &mut Random, count: usize) {
        let paths = subject.paths();
        let words = &subject.code.words;
        assert_eq!(verify(&subject.code), []);
        assert_eq!(subject.hazards(words), 0, "{}", subject.name);
        assert!(!paths.iter().any(|path| is_early(words, path)));
        for _ in 0..count {
            let mut code = subject.code.clone();
            if !mutate(&mut code, random) {
                continue;
            }
            let index = (0..words.len()).find(|&i| code.words[i] != words[i]);
            let broken = !verify(&code).is_empty();
            let relevant = paths.iter().any(|path| is_early(&code.words, path));
            let found = subject.hazards(&code.words) > 0;
            assert!(
                broken || !relevant,
                "{}: {index:?} not verified",
                subject.name
            );
            assert!(
                relevant || !found,
                "{}: {index:?} false alarm",
                subject.name
            );
            if relevant && !found {
                println!("{}: {index:?} not found by the timed machine", subject.name);
            }
            self.mutations += 1;
            self.broken += usize::from(broken);
            self.relevant += usize::from(relevant);
            self.found += usize::from(found);
        }
    }

    fn check(&self, what: &str) {
        println!("{what}: {self:?}");
        assert!(self.relevant * 5 > self.mutations);
        assert!(self.found * 100 >= self.relevant * 98);
    }
}

fn heavy() -> bool {
    std::env::var("THISGPU_HEAVY").is_ok_and(|value| value == "1")
}

/// An argument of a kernel: a number, or a buffer of this many words below `0` (any if that is 0).
enum Argument {
    Value(u64),
    Buffer(usize, u32),
}

/// The kernels of the test files, each with arguments and threads.
fn kernels(random: &mut Random) -> Vec<Subject> {
    use Argument::{Buffer, Value};
    const LINE: [u32; 3] = [96, 1, 1];
    // 80 of 96 threads have something to do: a warp is divided.
    let n = || Value(80);
    let list = [
        (
            "saxpy_f32",
            LINE,
            vec![n(), Value(3), Buffer(96, 0), Buffer(96, 0)],
        ),
        (
            "saxpy_f16x2",
            LINE,
            vec![n(), Value(3), Buffer(384, 0), Buffer(384, 0)],
        ),
        (
            "gather64",
            LINE,
            vec![
                n(),
                Value(32),
                Buffer(600, 0),
                Buffer(96, 60),
                Buffer(4096, 0),
                Buffer(96, 0),
            ],
        ),
        ("fmix64", LINE, vec![n(), Buffer(192, 0)]),
        ("chacha_qr", LINE, vec![n(), Buffer(384, 0)]),
        ("lop3_chain", LINE, vec![n(), Buffer(384, 0)]),
        ("collatz", LINE, vec![n(), Buffer(96, 30), Buffer(96, 0)]),
        (
            "prefix_sum",
            [256, 1, 1],
            vec![Buffer(256, 0), Buffer(256, 0)],
        ),
        (
            "matmul8",
            [8, 8, 1],
            vec![Value(8), Buffer(64, 0), Buffer(64, 0), Buffer(64, 0)],
        ),
    ];
    list.into_iter()
        .map(|(name, threads, arguments)| {
            let path = format!(
                "{}/filetests/kernels/{name}.clif",
                env!("CARGO_MANIFEST_DIR")
            );
            let text = std::fs::read_to_string(&path).expect("a kernel");
            let source = SourceFile::parse(&path, &text).expect("CLIF");
            let mut unit = Unit::new();
            let input = FunctionInput::of_source(&source.functions[0], name);
            let mut compiler = Compiler::new(Options::default());
            compiler
                .compile_function(&input, &mut unit)
                .expect("a kernel");
            let code = unit.functions().next().expect("a function").clone();
            assert_eq!(code.relocations, []);
            let mut global = Global::new(1 << 24, false);
            let mut parameters = Vec::new();
            let FunctionKind::Kernel(info) = &code.kind else {
                panic!("{name} is no kernel");
            };
            for (argument, parameter) in arguments.iter().zip(&info.parameters) {
                let value = match argument {
                    Value(value) => *value,
                    Buffer(words, below) => {
                        let address = global.allocate(*words as u64 * 4).expect("room");
                        let bytes: Vec<u8> = (0..*words)
                            .flat_map(|_| match below {
                                0 => (random.bits() as u32).to_le_bytes(),
                                below => (1 + random.below(u64::from(*below)) as u32).to_le_bytes(),
                            })
                            .collect();
                        global.write(address, &bytes).expect("mapped");
                        address
                    }
                };
                parameters.resize(
                    (parameter.offset - crate::abi::bank0::PARAMETERS) as usize,
                    0,
                );
                let bytes = parameter.ty.bytes() as usize;
                parameters.extend_from_slice(&value.to_le_bytes()[..bytes]);
            }
            let constants = unit.finish().expect("code").object().constants.clone();
            Subject {
                name: name.to_string(),
                code,
                constants,
                global,
                parameters,
                threads,
            }
        })
        .collect()
}

#[test]
fn weakened_kernels_are_noticed() {
    let mut random = Random::for_test("weakened kernels");
    let count = if heavy() { 1000 } else { 100 };
    let mut tally = Tally::default();
    for subject in kernels(&mut random) {
        tally.weaken(&subject, &mut random, count);
    }
    tally.check("kernels");
}

/// Forms without effects beyond their registers, and those that load and store.
fn calm_forms() -> Vec<Form> {
    let excluded = Effects::CONTROL
        .union(Effects::LOAD)
        .union(Effects::STORE)
        .union(Effects::ATOMIC)
        .union(Effects::CONVERGENT)
        .union(Effects::SPECIAL);
    let calm = |form: &Form| {
        let info = form.info();
        let barrier = |f: &crate::isa::table::FieldInfo| matches!(f.ty, FieldType::Convergence);
        !info.optype.info().effects.intersects(excluded) && !info.fields.iter().any(barrier)
    };
    all_forms().filter(calm).collect()
}

/// R0 the thread, R[2:3] the buffer, R4 to R11 anything, R12 the turns of the loop; P0 to P2 anything, P3 for the loop.
fn calm_inst(random: &mut Random, forms: &[Form]) -> Option<PInst> {
    let mut inst = PInst::new(random.pick(forms));
    let info = inst.info();
    for operand in info.operands.iter().filter(|o| o.role != Role::Pg) {
        let Some(class) = operand.class else { continue };
        let count = inst.register_count(operand) as u8;
        let out = operand.direction == Direction::Out;
        let (from, to) = match (class, out) {
            (RegisterClass::Gpr, true) => (4, 12),
            (RegisterClass::Predicate, _) => (0, 3),
            _ => (0, 12),
        };
        let first = from + random.below(u64::from((to - from) / count)) as u8 * count;
        let regs: Vec<Option<PReg>> = (first..first + count)
            .map(|n| Some(PReg::new(class, n)))
            .collect();
        if random.below(8) != 0 {
            inst.set_regs(operand, &regs);
        }
    }
    if random.below(4) == 0 {
        inst.set_guard(Some(PReg::predicate(random.below(3) as u8)), random.flip());
    }
    inst.encode(Control::default()).ok().map(|_| inst)
}

/// A load from the buffer, or a store to it.
fn access(random: &mut Random) -> PInst {
    let store = random.flip();
    let address = [2, 3].map(PReg::gpr);
    let data = PReg::gpr(4 + random.below(8) as u8);
    let offset = 4 * random.below(16) as i32;
    let mut inst: PInst = if store {
        let word = stg::Options::new(StoreSize::W32, AccessOrder::Weak);
        build::stg_rr(word, address, offset, data)
    } else {
        let word = ldg::Options::new(LoadSize::W32, AccessOrder::Weak);
        build::ldg_r(word, data, address, offset)
    };
    if random.below(4) == 0 {
        inst.set_guard(Some(PReg::predicate(random.below(3) as u8)), random.flip());
    }
    inst
}

/// A loop of three turns over one or more forks, behind it straight code.
fn random_kernel(random: &mut Random, forms: &[Form]) -> Subject {
    let insts = |random: &mut Random| -> Vec<PInst> {
        let count = random.below(10);
        let one = |random: &mut Random| match random.below(4) {
            0 => Some(access(random)),
            _ => calm_inst(random, forms),
        };
        (0..count).filter_map(|_| one(random)).collect()
    };
    let word = mov::Options::new(MOVW::W32);
    let parameter = |word: u32| Constant {
        bank: crate::abi::LAUNCH_BANK,
        offset: crate::abi::bank0::PARAMETERS + 4 * word,
    };
    let mut start = vec![
        build::s2r_x(PReg::gpr(0), SReg::SrTidX),
        build::mov_c(word, PReg::gpr(2), parameter(0)),
        build::mov_c(word, PReg::gpr(3), parameter(1)),
        mov(12, 3),
    ];
    start.extend(insts(random));
    let guard = |n: u8, negated| Guard {
        reg: PReg::predicate(n),
        negated,
    };
    let branch = |guard, taken, fallthrough| Terminator::Branch {
        guard,
        taken: block(taken),
        fallthrough: block(fallthrough),
        divergent: true,
    };
    let mut blocks = vec![(start, jump(1))];
    let forks = 1 + random.below(3) as usize;
    for fork in 0..forks {
        let first = 1 + 2 * fork;
        let fork = branch(
            guard(random.below(3) as u8, random.flip()),
            first + 2,
            first + 1,
        );
        blocks.push((insts(random), fork));
        blocks.push((insts(random), jump(first + 2)));
    }
    let last = blocks.len();
    let mut turn = insts(random);
    let turns = PReg::gpr(12);
    let plain = iadd::Options::new(IExt::NoX);
    let less = build::iadd_ri(plain, turns, PT, turns, -1, !PT);
    let greater = isetp::Options::new(IExt::NoX, IType::S32, CompOp::Gt, BoolOp::And);
    let more = build::isetp_ri(greater, PReg::predicate(3), PT, turns, 0, PT, PT);
    turn.extend([less, more]);
    turn.extend(insts(random).into_iter().filter(|i| i.guard().0.is_none()));
    blocks.push((turn, branch(guard(3, false), 1, last + 1)));
    blocks.push((insts(random), Terminator::Exit));
    let mut constants = Constants::new();
    let code = words(&kernel(blocks), Waiting::Needed, &mut constants).expect("words");
    let mut global = Global::new(1 << 20, false);
    let address = global.allocate(256).expect("room");
    let bytes: Vec<u8> = (0..256).map(|_| random.bits() as u8).collect();
    global.write(address, &bytes).expect("mapped");
    Subject {
        name: "random".to_string(),
        code,
        constants: Vec::new(),
        global,
        parameters: address.to_le_bytes().to_vec(),
        threads: [48, 1, 1],
    }
}

#[test]
fn weakened_random_kernels_are_noticed() {
    let mut random = Random::for_test("weakened random kernels");
    let forms = calm_forms();
    let kernels = if heavy() { 600 } else { 40 };
    let mut tally = Tally::default();
    for _ in 0..kernels {
        let subject = random_kernel(&mut random, &forms);
        tally.weaken(&subject, &mut random, 20);
    }
    tally.check("random kernels");
}
