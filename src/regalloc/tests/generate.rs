//! Random functions in SSA form: correct by construction, because an operand is only ever picked among the values that are in scope.

use crate::abi;
use crate::isa::generated::{Role, SHFDType};
use crate::isa::inst::FieldEnum;
use crate::isa::random::Random as Sequence;
use crate::isa::table::Direction;
use crate::isa::{Form, Inst, PReg, RegisterClass, VInst, VReg};
use crate::regalloc::frame::SLOTS;
use crate::regalloc::moves::set_access;
use crate::vcode::{
    Attachment, Block, BlockData, CallInfo, Entry, Frame, FunctionKind, Guard, KernelInfo,
    SourceLine, SymbolKind, SymbolUse, Terminator, VCode,
};
use cranelift_entity::{EntityRef, PrimaryMap};

/// Reproducible numbers.
pub(super) struct Random(Sequence);

impl Random {
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
    };
    let mut g = Generator {
        random: Random(Sequence::new(seed)),
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
            Some(address) => {
                let mut values = Vec::new();
                for r in 4..4 + self.random.below(5) as u8 {
                    values.push((self.any(RegisterClass::Gpr), PReg::gpr(r)));
                }
                Terminator::Return { address, values }
            }
            None => Terminator::Exit,
        };
        self.close(terminator);
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
        self.code.insts.push(Entry {
            inst,
            line: SourceLine(1),
            attachment,
        });
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
    fn several<const N: usize>(&mut self) -> [Option<VReg>; N] {
        let scope = &self.scope[0];
        let n = scope.len().min(self.shape.window);
        if n >= N && self.random.percent(70) {
            let start = scope.len() - n + self.random.below(n - N + 1);
            return std::array::from_fn(|i| Some(self.scope[0][start + i]));
        }
        std::array::from_fn(|_| Some(self.any(RegisterClass::Gpr)))
    }

    fn set(&self, inst: &mut VInst, role: Role, regs: &[Option<VReg>]) {
        let operand = inst
            .operand(role)
            .unwrap_or_else(|| panic!("{} has no {role:?}", inst.info().name));
        inst.set_regs(operand, regs);
    }

    /// An instruction without register operands.
    fn source(&mut self, class: RegisterClass) {
        let number = self.random.below(1 << 20) as u64;
        let mut inst = match class {
            RegisterClass::Gpr if self.random.percent(50) => Inst::new(Form::MOV_I),
            RegisterClass::Gpr => Inst::new(Form::MOV_C),
            RegisterClass::Uniform => Inst::new(Form::ULDC_C),
            RegisterClass::Predicate => {
                let a = self.any(RegisterClass::Gpr);
                let mut inst = Inst::new(Form::ISETP_RI);
                inst.set(Role::A, a);
                inst.set_named("vb", number & 0xff);
                inst.set_named("compop", number % 6);
                inst.set_named("itype", number & 1);
                let d = self.fresh(class);
                inst.set(Role::Pu, d);
                self.guard_and_emit(inst);
                return;
            }
        };
        inst.set_named("vb", number);
        let d = self.fresh(class);
        inst.set(Role::D, d);
        self.emit(inst, None);
    }

    fn store(&mut self) {
        let wide = self.random.percent(self.shape.wide);
        let mut inst = Inst::new(Form::STG_RR);
        set_access(
            &mut inst,
            if wide { 4 } else { 1 },
            16 * self.random.below(8) as u32,
        );
        let address = self.several::<2>();
        self.set(&mut inst, Role::A, &address);
        if wide {
            let data = self.several::<4>();
            self.set(&mut inst, Role::B, &data);
        } else {
            let data = self.any(RegisterClass::Gpr);
            self.set(&mut inst, Role::B, &[Some(data)]);
        }
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
                let mut inst = Inst::new(Form::SEL_RR);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                inst.set(Role::Pp, p);
                let d = self.fresh(RegisterClass::Gpr);
                inst.set(Role::D, d);
                self.guard_and_emit(inst);
            }
            5 => {
                let (a, b, p) = (
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Predicate),
                );
                let mut inst = Inst::new(Form::ISETP_RR);
                inst.set_named("compop", self.random.below(6) as u64);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                inst.set(Role::Pp, p);
                let d = self.fresh(RegisterClass::Predicate);
                inst.set(Role::Pu, d);
                if self.random.percent(30) {
                    let d = self.fresh(RegisterClass::Predicate);
                    inst.set(Role::Pv, d);
                }
                self.guard_and_emit(inst);
            }
            6 => {
                let (a, b) = (
                    self.any(RegisterClass::Gpr),
                    self.any(RegisterClass::Uniform),
                );
                let mut inst = Inst::new(Form::IADD_RU);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                let d = self.fresh(RegisterClass::Gpr);
                inst.set(Role::D, d);
                self.guard_and_emit(inst);
            }
            7 => {
                // With a carry, so that a predicate is defined beside a GPR.
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let mut inst = Inst::new(Form::IADD_RR);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                let d = self.fresh(RegisterClass::Gpr);
                inst.set(Role::D, d);
                let p = self.fresh(RegisterClass::Predicate);
                inst.set(Role::Pu, p);
                self.guard_and_emit(inst);
            }
            8 if self.pointer.is_some() => self.slot_access(),
            9 if !self.divergent => {
                let a = self.any(RegisterClass::Gpr);
                let mut inst = Inst::new(Form::R2UR_R);
                inst.set(Role::B, a);
                let d = self.fresh(RegisterClass::Uniform);
                inst.set(Role::D, d);
                self.emit(inst, None);
            }
            _ => {
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let mut inst = Inst::new(Form::IADD_RR);
                inst.set(Role::A, a);
                inst.set(Role::B, b);
                let d = self.fresh(RegisterClass::Gpr);
                inst.set(Role::D, d);
                self.guard_and_emit(inst);
            }
        }
    }

    /// Arithmetic on pairs of uniform registers, and predicates that go into uniform registers and come out of them.
    fn wide_uniform(&mut self) {
        let forms = [
            (Form::ULDC_C, &[("width", 1), ("vb", 8)][..]),
            (Form::UIMAD_WIDE_RUR, &[]),
            (Form::USHF_64_RU, &[]),
            (Form::ULEA_RU, &[("width", 1), ("shiftamt", 3)]),
            (Form::USEL_RU, &[]),
            (Form::USEL_RU, &[("width", 1)]),
            (Form::UISETP_RU, &[("itype", SHFDType::U64.code())]),
        ];
        let (form, fields) = forms[self.random.below(forms.len())];
        let mut inst: VInst = Inst::new(form);
        for (field, value) in fields {
            inst.set_named(field, *value);
        }
        let (results, sources): (Vec<_>, Vec<_>) = form
            .info()
            .operands
            .iter()
            .filter(|o| o.role != Role::Pg)
            .filter_map(|o| Some((o, o.class?)))
            .partition(|(o, _)| o.direction == Direction::Out);
        for (operand, class) in sources {
            let count = inst.register_count(operand);
            let regs: Vec<_> = (0..count).map(|_| Some(self.any(class))).collect();
            inst.set_regs(operand, &regs);
        }
        for (operand, class) in results {
            let count = inst.register_count(operand);
            let regs: Vec<_> = (0..count).map(|_| Some(self.fresh(class))).collect();
            inst.set_regs(operand, &regs);
        }
        self.guard_and_emit(inst);
    }

    fn wide(&mut self) {
        match self.random.below(8) {
            0 => self.store(),
            5 | 6 if !self.divergent => self.wide_uniform(),
            1 => {
                let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                let c = self.several::<2>();
                let mut inst = Inst::new(Form::IMAD_WIDE_RRR);
                self.set(&mut inst, Role::A, &[Some(a)]);
                self.set(&mut inst, Role::B, &[Some(b)]);
                self.set(&mut inst, Role::C, &c);
                let d = [
                    Some(self.fresh(RegisterClass::Gpr)),
                    Some(self.fresh(RegisterClass::Gpr)),
                ];
                self.set(&mut inst, Role::D, &d);
                self.guard_and_emit(inst);
            }
            2 | 3 => {
                let width = if self.random.percent(50) { 2 } else { 4 };
                let address = self.several::<2>();
                let mut inst = Inst::new(Form::LDG_R);
                set_access(&mut inst, width, 16 * self.random.below(8) as u32);
                self.set(&mut inst, Role::A, &address);
                let d: Vec<Option<VReg>> = (0..width)
                    .map(|_| Some(self.fresh(RegisterClass::Gpr)))
                    .collect();
                self.set(&mut inst, Role::D, &d);
                self.guard_and_emit(inst);
            }
            4 => {
                let a = self.several::<2>();
                let mut inst = Inst::new(Form::MOV_R);
                inst.set_named("width", 1);
                self.set(&mut inst, Role::B, &a);
                let d = [
                    Some(self.fresh(RegisterClass::Gpr)),
                    Some(self.fresh(RegisterClass::Gpr)),
                ];
                self.set(&mut inst, Role::D, &d);
                self.guard_and_emit(inst);
            }
            _ => {
                // Low and high word from two instructions, as 64-bit additions do it.
                for _ in 0..2 {
                    let (a, b) = (self.any(RegisterClass::Gpr), self.any(RegisterClass::Gpr));
                    let mut inst = Inst::new(Form::IADD_RR);
                    inst.set(Role::A, a);
                    inst.set(Role::B, b);
                    let d = self.fresh(RegisterClass::Gpr);
                    inst.set(Role::D, d);
                    self.emit(inst, None);
                }
                let scope = &self.scope[0];
                let address = [Some(scope[scope.len() - 2]), Some(scope[scope.len() - 1])];
                let mut inst = Inst::new(Form::LDG_R);
                set_access(&mut inst, 1, 0);
                self.set(&mut inst, Role::A, &address);
                let d = self.fresh(RegisterClass::Gpr);
                inst.set(Role::D, d);
                self.emit(inst, None);
            }
        }
    }

    /// A store to a stack slot and a load of it.
    fn slot_access(&mut self) {
        let pointer = self.pointer.expect("the caller has looked");
        let addend = 4 * self.random.below(16) as i64;
        let symbol = || {
            Some(Attachment::Symbol(SymbolUse {
                field: "addr",
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend,
            }))
        };
        let value = self.any(RegisterClass::Gpr);
        let mut store = Inst::new(Form::STL_RR);
        set_access(&mut store, 1, 0);
        self.set(&mut store, Role::A, &[Some(pointer)]);
        self.set(&mut store, Role::B, &[Some(value)]);
        self.emit(store, symbol());
        let mut load = Inst::new(Form::LDL_R);
        set_access(&mut load, 1, 0);
        self.set(&mut load, Role::A, &[Some(pointer)]);
        let d = self.fresh(RegisterClass::Gpr);
        self.set(&mut load, Role::D, &[Some(d)]);
        self.emit(load, symbol());
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
        let mut inst = Inst::new(if indirect { Form::CALL_R } else { Form::CALL_I });
        if indirect {
            let target = self.several::<2>();
            self.set(&mut inst, Role::B, &target);
            call.callee = None;
        }
        let address = [
            Some(self.code.new_vreg(RegisterClass::Gpr)),
            Some(self.code.new_vreg(RegisterClass::Gpr)),
        ];
        self.set(&mut inst, Role::D, &address);
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
