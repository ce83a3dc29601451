//! Random functions in SSA form: correct by construction, because an operand is only ever picked among the values that
//! are in scope.

use crate::abi;
use crate::emit::testing::{add, load};
use crate::isa::generated::{
    AccessOrder, BoolOp, CWMode, CompOp, IExt, IType, IXType, LoadSize, MOVW, Role, SHFDType,
    SHFDir, StoreSize, iadd, imad_wide, isetp, ldg, mov, stg, uimad_wide, uisetp, uldc, ulea, usel,
    ushf_64,
};
use crate::isa::inst::FieldEnum;
use crate::isa::operand::{Constant, PT};
use crate::isa::random::Random as Sequence;
use crate::isa::{PReg, RegisterClass, VInst, VReg, build};
use crate::regalloc::frame::SLOTS;
use crate::regalloc::moves;
use crate::vcode::{
    Attachment, Block, BlockData, CallInfo, Callee, Entry, Frame, FunctionKind, Guard, KernelInfo,
    SourceLine, SymbolKind, SymbolUse, Terminator, VCode,
};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};

/// Reproducible numbers.
pub(super) struct Random(Sequence);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        Random(Sequence::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.bits()
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn percent(&mut self, p: u32) -> bool {
        self.next() % 100 < u64::from(p)
    }
}

/// Moves are of one word.
const WORD: mov::Options = mov::Options::new(MOVW::W32);
/// Additions take no carry.
const PLAIN: iadd::Options = iadd::Options::new(IExt::NoX);

fn comparison(operation: usize, ty: IType) -> isetp::Options {
    let operation = CompOp::from_code(operation as u64).expect("one of six");
    isetp::Options::new(IExt::NoX, ty, operation, BoolOp::And)
}

/// What a random function is made of.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Instructions, about.
    pub size: usize,
    /// How many of the latest GPR values operands are picked from.
    pub window: usize,
    /// The same for predicates.
    pub predicate_window: usize,
    /// The same for uniform registers.
    pub uniform_window: usize,
    /// Percent of instructions with wide operands.
    pub wide: u32,
    /// Percent of instructions with a guard.
    pub guarded: u32,
    /// Percent of calls.
    pub calls: u32,
    /// Percent of regions that are loops or diamonds.
    pub control: u32,
    /// A device function.
    pub device: bool,
    /// Percent of device functions that end in a tail call.
    pub tail_calls: u32,
}

struct Generator {
    random: Random,
    shape: Shape,
    code: VCode<VReg>,
    /// Values in scope by class, latest last.
    scope: [Vec<VReg>; 3],
    current: Option<Open>,
    left: isize,
    pointer: Option<VReg>,
    depth: u32,
    divergent: bool,
}

/// The block being filled.
struct Open {
    params: Vec<VReg>,
    start: u32,
}

/// A function of this shape.
pub(super) fn function(seed: u64, shape: &Shape) -> VCode<VReg> {
    let kind = if shape.device {
        FunctionKind::Device
    } else {
        FunctionKind::Kernel(KernelInfo::default())
    };
    let frame = Frame {
        slot_bytes: 64,
        outgoing_bytes: if shape.calls > 0 { 8 } else { 0 },
        ..Frame::default()
    };
    let code = VCode {
        name: format!("seed{seed}"),
        kind,
        insts: Vec::new(),
        attachments: PrimaryMap::new(),
        blocks: PrimaryMap::new(),
        entry: Vec::new(),
        vreg_count: 0,
        frame,
        holders: Vec::new(),
    };
    let mut g = Generator {
        random: Random::new(seed),
        shape: shape.clone(),
        code,
        scope: Default::default(),
        current: None,
        left: shape.size as isize,
        pointer: None,
        depth: 0,
        divergent: false,
    };
    g.function();
    g.code
}

impl Generator {
    fn function(&mut self) {
        self.open(Vec::new());
        let mut address = None;
        if self.random.percent(30) {
            let v = self.code.new_vreg(RegisterClass::Gpr);
            self.code.entry.push((v, abi::STACK_POINTER));
            self.pointer = Some(v);
        }
        if self.shape.device {
            let low = self.code.new_vreg(RegisterClass::Gpr);
            let high = self.code.new_vreg(RegisterClass::Gpr);
            address = Some([low, high]);
            self.code.entry.extend([
                (low, abi::RETURN_ADDRESS[0]),
                (high, abi::RETURN_ADDRESS[1]),
            ]);
            let arguments = self.random.below(9) as u8;
            for i in 0..arguments {
                let v = self.code.new_vreg(RegisterClass::Gpr);
                self.code
                    .entry
                    .push((v, PReg::gpr(abi::ARGUMENTS.start() + i)));
                self.scope[0].push(v);
            }
        }
        for class in RegisterClass::ALL {
            for _ in 0..2 {
                self.source(class);
            }
        }
        while self.left > 0 {
            self.region();
        }
        for _ in 0..3 {
            self.store();
        }
        let terminator = match address {
            Some(address) if self.random.percent(self.shape.tail_calls) => self.tail_call(address),
            Some(address) => {
                let values = self.in_registers(5);
                Terminator::Return { address, values }
            }
            None => Terminator::Exit,
        };
        self.close(terminator);
    }

    /// Fewer than `most` values where arguments and results are.
    fn in_registers(&mut self, most: usize) -> Vec<(VReg, PReg)> {
        let count = self.random.below(most) as u8;
        (0..count)
            .map(|i| {
                let register = PReg::gpr(abi::ARGUMENTS.start() + i);
                (self.any(RegisterClass::Gpr), register)
            })
            .collect()
    }

    /// The end of a function whose callee returns for it.
    fn tail_call(&mut self, address: [VReg; 2]) -> Terminator<VReg> {
        let mut values = self.in_registers(abi::TAIL_ARGUMENTS.len() + 1);
        values.extend(address.into_iter().zip(abi::RETURN_ADDRESS));
        let callee = match self.random.percent(50) {
            true => Callee::Registers(self.several::<2>()),
            false => Callee::Symbol("callee".into()),
        };
        Terminator::TailCall { callee, values }
    }

    fn open(&mut self, params: Vec<VReg>) {
        self.current = Some(Open {
            params,
            start: self.code.insts.len() as u32,
        });
    }

    fn close(&mut self, terminator: Terminator<VReg>) -> Block {
        let open = self.current.take().expect("a block is open");
        self.code.blocks.push(BlockData {
            meeting: crate::vcode::Meeting::Together,
            insts: open.start..self.code.insts.len() as u32,
            params: open.params,
            terminator,
            line: SourceLine(self.code.blocks.len() as u32),
            divergent: self.divergent,
            loop_depth: self.depth,
            cold: false,
        })
    }

    fn emit(&mut self, inst: VInst, attachment: Option<Attachment<VReg>>) {
        let attachment = attachment.map(|a| self.code.attachments.push(a));
        self.code
            .insts
            .push(Entry::new(inst, SourceLine(1)).with(attachment));
        self.left -= 1;
    }

    fn any(&mut self, class: RegisterClass) -> VReg {
        let window = [
            self.shape.window,
            self.shape.uniform_window,
            self.shape.predicate_window,
        ][class as usize];
        let scope = &self.scope[class as usize];
        let n = scope.len().min(window);
        scope[scope.len() - 1 - self.random.below(n)]
    }

    fn fresh(&mut self, class: RegisterClass) -> VReg {
        let v = self.code.new_vreg(class);
        self.scope[class as usize].push(v);
        v
    }

    /// Neighbours in the scope now and then, so that runs are asked for again.
    fn several<const N: usize>(&mut self) -> [VReg; N] {
        let scope = &self.scope[0];
        let n = scope.len().min(self.shape.window);
        if n >= N && self.random.percent(70) {
            let start = scope.len() - n + self.random.below(n - N + 1);
            return std::array::from_fn(|i| self.scope[0][start + i]);
        }
        std::array::from_fn(|_| self.any(RegisterClass::Gpr))
    }

    /// An instruction without register operands.
    fn source(&mut self, class: RegisterClass) {
        let number = self.random.below(1 << 20);
        let place = Constant {
            bank: (number >> 17) as u8,
            offset: (number & 0x1_ffff) as u32,
        };
        let inst = match class {
            RegisterClass::Gpr if self.random.percent(50) => {
                build::mov_i(WORD, self.fresh(class), number as u32)
            }
            RegisterClass::Gpr => build::mov_c(WORD, self.fresh(class), place),
            RegisterClass::Uniform => {
                build::uldc_c(uldc::Options::new(MOVW::W32), self.fresh(class), place)
            }
            RegisterClass::Predicate => {
                let a = self.any(RegisterClass::Gpr);
                let ty = [IType::S32, IType::U32][number & 1];
                let options = comparison(number % 6, ty);
                let d = self.fresh(class);
                self.guard_and_emit(build::isetp_ri(
                    options,
                    d,
                    PT,
                    a,
                    number as u32 & 0xff,
                    PT,
                    PT,
                ));
                return;
            }
        };
        self.emit(inst, None);
    }

    fn store(&mut self) {
        let wide = self.random.percent(self.shape.wide);
        let offset = 16 * self.random.below(8) as i32;
        let address = self.several::<2>();
        let options = |size| stg::Options::new(size, AccessOrder::Weak);
        let inst = if wide {
            let data = self.several::<4>();
            build::stg_rr(options(StoreSize::W128), address, offset, data)
        } else {
            let data = self.any(RegisterClass::Gpr);
            build::stg_rr(options(StoreSize::W32), address, offset, data)
        };
        self.emit(inst, None);
    }

    /// Emits an instruction whose results are in scope already, now and then with a guard.
    fn guard_and_emit(&mut self, mut inst: VInst) {
        let results: Vec<VReg> = inst.definitions().collect();
        let uniform = results
            .iter()
            .any(|r| crate::isa::Register::class(*r) == RegisterClass::Uniform);
        let possible = !uniform && self.scope[2].iter().any(|p| !results.contains(p));
        if !possible || !self.random.percent(self.shape.guarded) {
            self.emit(inst, None);
            return;
        }
        // Results are not in scope of their own guard and kept values.
        let hidden: Vec<Vec<VReg>> = self
            .scope
            .iter()
            .map(|s| s.iter().copied().filter(|v| !results.contains(v)).collect())
            .collect();
        let whole = std::mem::replace(&mut self.scope, hidden.try_into().expect("three classes"));
        let guard = self.any(RegisterClass::Predicate);
        inst.set_guard(Some(guard), self.random.percent(50));
        // A value that is undefined under a false guard may not be used.
        let undefined = self.random.percent(10);
        let mut kept = smallvec::SmallVec::new();
        for r in &results {
            let class = crate::isa::Register::class(*r);
            kept.push((!undefined).then(|| self.any(class)));
        }
        if !undefined {
            self.scope = whole;
        }
        self.emit(inst, Some(Attachment::Else(kept)));
    }

    fn instruction(&mut self) {
        if self.random.percent(self.shape.calls) {
            self.call();
            return;
        }
        if self.random.percent(self.shape.wide) {
            self.wide();
            return;
        }
        match self.random.below(14) {
            0 => self.source(RegisterClass::Gpr),
            1 => self.source(RegisterClass::Predicate),
            2 if !self.divergent => self.source(RegisterClass::Uniform),
            3 => self.store(),
            4 => {
                let (a, b, p) = (
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Predicate),
                );
                let d = self.fresh(RegisterClass::Gpr);
                self.guard_and_emit(build::sel_rr(d, a, b, p));
            }
            5 => {
                let (a, b, p) = (
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Predicate),
                );
                let options = comparison(self.random.below(6), IType::S32);
                let d = self.fresh(RegisterClass::Predicate);
                let both = self.random.percent(30);
                let other = both.then(|| self.fresh(RegisterClass::Predicate));
                self.guard_and_emit(build::isetp_rr(options, d, other, a, b, p, PT));
            }
            6 => {
                let (a, b) = (
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Uniform),
                );
                let d = self.fresh(RegisterClass::Gpr);
                self.guard_and_emit(build::iadd_ru(PLAIN, d, PT, a, b, !PT));
            }
            7 => {
                // With a carry, so that a predicate is defined beside a GPR.
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let d = self.fresh(RegisterClass::Gpr);
                let p = self.fresh(RegisterClass::Predicate);
                self.guard_and_emit(build::iadd_rr(PLAIN, d, p, a, b, !PT));
            }
            8 if self.pointer.is_some() => self.slot_access(),
            9 if !self.divergent => {
                let a = self.any(RegisterClass::Gpr);
                let d = self.fresh(RegisterClass::Uniform);
                self.emit(build::r2ur_r(d, a), None);
            }
            _ => {
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let d = self.fresh(RegisterClass::Gpr);
                self.guard_and_emit(add(d, a, b));
            }
        }
    }

    /// Arithmetic on pairs of uniform registers, and predicates that go into uniform registers and come out of them.
    fn wide_uniform(&mut self) {
        let one = |this: &mut Self| this.any(RegisterClass::Uniform);
        let pair = |this: &mut Self| [(); 2].map(|()| this.any(RegisterClass::Uniform));
        let new = |this: &mut Self| [(); 2].map(|()| this.fresh(RegisterClass::Uniform));
        let inst: VInst = match self.random.below(7) {
            0 => {
                let d = new(self);
                let options = uldc::Options::new(MOVW::W64);
                build::uldc_c(options, &d[..], Constant { bank: 0, offset: 8 })
            }
            1 => {
                let (a, b, c) = (one(self), one(self), pair(self));
                let d = new(self);
                build::uimad_wide_rur(uimad_wide::Options::new(IType::S32), d, a, b, c)
            }
            2 => {
                let (a, n) = (pair(self), one(self));
                let d = new(self);
                let options = ushf_64::Options::new(IXType::S64, CWMode::C, SHFDir::L);
                build::ushf_64_ru(options, d, a, n)
            }
            3 => {
                let (a, b) = (pair(self), pair(self));
                let d = new(self);
                build::ulea_ru(ulea::Options::new(MOVW::W64), &d[..], &a[..], &b[..], 3)
            }
            4 => {
                let (a, b, p) = ([one(self)], [one(self)], self.any(RegisterClass::Predicate));
                let d = [self.fresh(RegisterClass::Uniform)];
                build::usel_ru(usel::Options::new(MOVW::W32), &d[..], &a[..], &b[..], p)
            }
            5 => {
                let (a, b, p) = (pair(self), pair(self), self.any(RegisterClass::Predicate));
                let d = new(self);
                build::usel_ru(usel::Options::new(MOVW::W64), &d[..], &a[..], &b[..], p)
            }
            _ => {
                let (a, b, p) = (pair(self), pair(self), self.any(RegisterClass::Predicate));
                let d = self.fresh(RegisterClass::Predicate);
                let options = uisetp::Options::new(SHFDType::U64, CompOp::Lt, BoolOp::And);
                build::uisetp_ru(options, d, &a[..], &b[..], p)
            }
        };
        self.guard_and_emit(inst);
    }

    fn wide(&mut self) {
        match self.random.below(8) {
            0 => self.store(),
            5 | 6 if !self.divergent => self.wide_uniform(),
            1 => {
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let c = self.several::<2>();
                let d = [(); 2].map(|()| self.fresh(RegisterClass::Gpr));
                let signed = imad_wide::Options::new(IExt::NoX, IType::S32);
                self.guard_and_emit(build::imad_wide_rrr(signed, d, PT, a, b, c, !PT));
            }
            2 | 3 => {
                let (width, size) = if self.random.percent(50) {
                    (2, LoadSize::W64)
                } else {
                    (4, LoadSize::W128)
                };
                let address = self.several::<2>();
                let offset = 16 * self.random.below(8) as i32;
                let d: Vec<VReg> = (0..width).map(|_| self.fresh(RegisterClass::Gpr)).collect();
                let options = ldg::Options::new(size, AccessOrder::Weak);
                self.guard_and_emit(build::ldg_r(options, &d[..], address, offset));
            }
            4 => {
                let a = self.several::<2>();
                let d = [(); 2].map(|()| self.fresh(RegisterClass::Gpr));
                self.guard_and_emit(build::mov_r(mov::Options::new(MOVW::W64), d, a));
            }
            _ => {
                // Low and high word from two instructions, as 64-bit additions do it.
                for _ in 0..2 {
                    let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                    let d = self.fresh(RegisterClass::Gpr);
                    self.emit(add(d, a, b), None);
                }
                let scope = &self.scope[0];
                let address = [scope[scope.len() - 2], scope[scope.len() - 1]];
                let d = self.fresh(RegisterClass::Gpr);
                self.emit(load(d, address), None);
            }
        }
    }

    /// A store to a stack slot and a load of it.
    fn slot_access(&mut self) {
        let pointer = self.pointer.expect("the caller has looked");
        let addend = 4 * self.random.below(16) as i64;
        let symbol = || {
            Some(Attachment::Symbol(SymbolUse {
                role: Role::Addr,
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend,
            }))
        };
        let value = self.any(RegisterClass::Gpr);
        self.emit(moves::spill_store(value, pointer, 0), symbol());
        let d = self.fresh(RegisterClass::Gpr);
        self.emit(moves::spill_load(d, pointer, 0), symbol());
    }

    fn call(&mut self) {
        let mut call = CallInfo {
            meeting: crate::vcode::Meeting::Together,
            callee: Some(format!("f{}", self.random.below(9))),
            uses: Vec::new(),
            defs: Vec::new(),
        };
        let arguments = self.random.below(8) as u8;
        for r in 0..arguments {
            call.uses
                .push((self.any(RegisterClass::Gpr), PReg::gpr(4 + r)));
        }
        let indirect = self.random.percent(30);
        let target = indirect.then(|| self.several::<2>());
        let address = [(); 2].map(|()| self.code.new_vreg(RegisterClass::Gpr));
        let inst = match target {
            Some(target) => {
                call.callee = None;
                build::call_r(address, target)
            }
            None => build::call_i(address),
        };
        for r in 0..self.random.below(4) as u8 {
            call.defs
                .push((self.fresh(RegisterClass::Gpr), PReg::gpr(4 + r)));
        }
        self.code.frame.has_calls = true;
        self.emit(inst, Some(Attachment::Call(Box::new(call))));
    }

    fn region(&mut self) {
        if self.depth < 3 && self.random.percent(self.shape.control) {
            if self.random.percent(50) {
                self.diamond()
            } else {
                self.repeat()
            }
            return;
        }
        for _ in 0..1 + self.random.below(12) {
            self.instruction();
        }
    }

    fn lengths(&self) -> [usize; 3] {
        [0, 1, 2].map(|i| self.scope[i].len())
    }

    fn truncate(&mut self, lengths: [usize; 3]) {
        for (scope, length) in self.scope.iter_mut().zip(lengths) {
            scope.truncate(length);
        }
    }

    /// Parameter classes of a join or a loop.
    fn parameter_classes(&mut self, uniform: bool) -> Vec<RegisterClass> {
        let mut classes = vec![RegisterClass::Gpr; self.random.below(5)];
        classes.extend(vec![RegisterClass::Predicate; self.random.below(2)]);
        if uniform {
            classes.extend(vec![RegisterClass::Uniform; self.random.below(3)]);
        }
        classes
    }

    fn guard(&mut self) -> Guard<VReg> {
        Guard {
            reg: self.any(RegisterClass::Predicate),
            negated: self.random.percent(50),
        }
    }

    fn diamond(&mut self) {
        let outside = self.divergent;
        let divergent = outside || self.random.percent(50);
        let guard = self.guard();
        let scope = self.lengths();
        let branch = Terminator::Branch {
            guard,
            taken: Block::new(0),
            fallthrough: Block::new(0),
            divergent,
        };
        let head = self.close(branch);
        let classes = self.parameter_classes(true);
        self.divergent = divergent;
        let mut sides = Vec::new();
        let mut starts = Vec::new();
        for _ in 0..2 {
            starts.push(Block::new(self.code.blocks.len()));
            self.open(Vec::new());
            for _ in 0..self.random.below(3) {
                self.region();
            }
            let args = classes.iter().map(|c| self.any(*c)).collect();
            sides.push(self.close(Terminator::Jump {
                target: Block::new(0),
                args,
            }));
            self.truncate(scope);
        }
        self.divergent = outside;
        let join = Block::new(self.code.blocks.len());
        for side in sides {
            if let Terminator::Jump { target, .. } = &mut self.code.blocks[side].terminator {
                *target = join;
            }
        }
        if let Terminator::Branch {
            taken, fallthrough, ..
        } = &mut self.code.blocks[head].terminator
        {
            (*taken, *fallthrough) = (starts[0], starts[1]);
        }
        let params = classes.iter().map(|c| self.fresh(*c)).collect();
        self.open(params);
    }

    fn repeat(&mut self) {
        let outside = self.divergent;
        let divergent = outside || self.random.percent(50);
        let classes = self.parameter_classes(true);
        let args = classes.iter().map(|c| self.any(*c)).collect();
        let header = Block::new(self.code.blocks.len() + 1);
        self.close(Terminator::Jump {
            target: header,
            args,
        });
        self.depth += 1;
        self.divergent = divergent;
        let params = classes.iter().map(|c| self.fresh(*c)).collect();
        self.open(params);
        for _ in 0..1 + self.random.below(3) {
            self.region();
        }
        let guard = self.guard();
        let body = Block::new(self.code.blocks.len());
        let branch = Terminator::Branch {
            guard,
            taken: Block::new(body.index() + 1),
            fallthrough: Block::new(body.index() + 2),
            divergent,
        };
        self.close(branch);
        self.open(Vec::new());
        let args = classes.iter().map(|c| self.any(*c)).collect();
        self.close(Terminator::Jump {
            target: header,
            args,
        });
        self.depth -= 1;
        self.divergent = outside;
        self.open(Vec::new());
    }
}
