//! Entry, calls, returns.

use super::frame::INCOMING;
use super::rules::types::LdcOptions;
use super::rules::{Context, constructor_sign_extended, constructor_zero_extended};
use super::source::{Base, InstOutput, Output, Regs, Src};
use super::state::Lower;
use super::typed::{Operand, USrc, USrc64, Word};
use crate::abi::{self, Place, Placer};
use crate::analysis::definitions::words_of_bits;
use crate::isa::generated::LoadSize;
use crate::isa::{PReg, RegisterClass, Role, VReg, build};
use crate::vcode::{
    Attachment, CallInfo, Callee, FunctionKind, Parameter, SymbolKind, SymbolUse, Terminator,
};
use cranelift_codegen::ir::{self, FuncRef, Inst, InstructionData, Opcode, Value};
use cranelift_codegen::isa::CallConv;
use smallvec::SmallVec;

impl<'f> Lower<'f> {
    /// The place of the next argument or result: values below 32 bits take a word.
    fn place_of(placer: &mut Placer, param: &ir::AbiParam) -> Place {
        placer.place(words_of_bits(param.value_type.bits()) as u32)
    }

    /// Bytes of stack that the arguments of a function take.
    fn stack_bytes(signature: &ir::Signature) -> u32 {
        let mut placer = Placer::arguments(signature.call_conv);
        for param in &signature.params {
            Self::place_of(&mut placer, param);
        }
        placer.stack_bytes()
    }

    /// Fills the parameters of the entry block that were asked for.
    pub(super) fn entry_params(&mut self, block: ir::Block) {
        let (func, input) = (self.func, self.input);
        let params = func.dfg.block_params(block).iter().copied();
        if let FunctionKind::Kernel(kernel) = &input.kind {
            for (value, &parameter) in params.zip(&kernel.parameters) {
                if self.homes[value].is_asked_uniform() {
                    let loaded = self.load_uniform(value);
                    self.bind_uniform(value, loaded);
                }
                if self.homes[value].is_asked_by_lanes() {
                    let regs = self.load_parameter(value, parameter);
                    self.bind(value, Output::Regs(regs));
                }
            }
            for (offset, regs) in std::mem::take(&mut self.uniform_parameters) {
                let pointer = Src {
                    base: Base::Constant {
                        bank: abi::LAUNCH_BANK,
                        offset,
                    },
                    words: 2,
                    ..Src::ZERO
                };
                let loaded = self.emit_uldc_64(USrc64::new(pointer)).regs();
                for (&asked, &actual) in regs.as_slice().iter().zip(loaded.as_slice()) {
                    self.builder.bind(asked, actual);
                }
            }
            self.builder.end_unit();
            return;
        }
        self.frame.incoming_bytes = Self::argument_area(&func.signature);
        let mut placer = Placer::arguments(func.signature.call_conv);
        self.entry.reserve(params.len() + abi::RETURN_ADDRESS.len());
        for (value, param) in params.zip(&func.signature.params) {
            match Self::place_of(&mut placer, param) {
                // Arguments arrive whether or not they are read.
                Place::Registers { first, words } => {
                    let regs = self.regs_of(value);
                    let fixed = abi::registers(first, words);
                    (self.entry).extend(regs.as_slice().iter().copied().zip(fixed));
                }
                Place::Stack(offset) if self.homes[value].is_asked() => {
                    let mut regs: SmallVec<[VReg; 4]> = SmallVec::new();
                    for word in 0..self.words_of(value) as u32 {
                        regs.push(self.load_incoming(offset + 4 * word));
                    }
                    self.bind(value, Output::Regs(Regs::new(&regs)));
                }
                Place::Stack(_) => {}
            }
        }
        let address = self.return_address();
        self.entry
            .extend(address.into_iter().zip(abi::RETURN_ADDRESS));
        self.builder.end_unit();
    }

    /// A kernel's parameter in registers. One below a word that does not start at one is no constant operand: LDC reads
    /// it.
    fn load_parameter(&mut self, value: Value, parameter: Parameter) -> Regs {
        if parameter.offset.is_multiple_of(4) {
            let src = self.src(value);
            return self.gpr(src);
        }
        let size = if parameter.ty.bytes() == 1 {
            LoadSize::U8
        } else {
            LoadSize::U16
        };
        let offset = parameter.offset as i32;
        let bank = abi::LAUNCH_BANK.into();
        self.emit_ldc_with(LdcOptions::new(size), bank, Word::imm(0), offset)
    }

    /// The uniform registers that hold the pointer parameter at an offset of constant bank 0. Entry loads it, where all
    /// lanes are together.
    pub(super) fn uniform_parameter(&mut self, offset: u32) -> Regs {
        if let Some(&(_, regs)) = self.uniform_parameters.iter().find(|p| p.0 == offset) {
            return regs;
        }
        let regs = Regs::new(&[
            self.builder.vreg(RegisterClass::Uniform),
            self.builder.vreg(RegisterClass::Uniform),
        ]);
        self.uniform_parameters.push((offset, regs));
        regs
    }

    fn load_incoming(&mut self, offset: u32) -> VReg {
        let word = self.load_stack_word(0);
        self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
            role: Role::Addr,
            kind: SymbolKind::AbsoluteLow,
            name: INCOMING.to_string(),
            addend: i64::from(offset),
        }));
        word
    }

    /// LDL of a word at an offset from R1.
    fn load_stack_word(&mut self, offset: i32) -> VReg {
        let pointer = self.stack_pointer();
        let none = USrc::new(Src::ZERO);
        self.emit_ldl(pointer.source(), offset, none).word(0)
    }

    /// The registers that hold the return address throughout a device function.
    fn return_address(&mut self) -> [VReg; 2] {
        if let Some(address) = self.return_address {
            return address;
        }
        let address = [
            self.builder.vreg(RegisterClass::Gpr),
            self.builder.vreg(RegisterClass::Gpr),
        ];
        self.return_address = Some(address);
        address
    }

    /// `return`: of a kernel the end, of a device function the results in their registers.
    pub(super) fn return_terminator(&mut self, inst: Inst) -> Terminator<VReg> {
        if let FunctionKind::Kernel(_) = self.input.kind {
            return Terminator::Exit;
        }
        let func = self.func;
        let mut placer = Placer::results();
        let mut placed = Vec::new();
        for (&value, param) in func.dfg.inst_args(inst).iter().zip(&func.signature.returns) {
            let value = self.extended(value, param);
            match Self::place_of(&mut placer, param) {
                Place::Registers { first, words } => {
                    let fixed = abi::registers(first, words);
                    placed.extend(value.as_slice().iter().copied().zip(fixed));
                }
                Place::Stack(offset) => self.store_stack(value, offset, true),
            }
        }
        self.frame.incoming_bytes = self.frame.incoming_bytes.max(placer.stack_bytes());
        Terminator::Return {
            address: self.return_address(),
            values: placed,
        }
    }

    /// Hands the results of a call on to this function's caller.
    fn return_outputs(&mut self, outputs: &[Output], returns: &[ir::AbiParam]) -> Terminator<VReg> {
        let mut placer = Placer::results();
        let mut placed = Vec::new();
        for (output, param) in outputs.iter().zip(returns) {
            let Output::Regs(regs) = *output else {
                unreachable!("results of calls are registers")
            };
            match Self::place_of(&mut placer, param) {
                Place::Registers { first, words } => {
                    let fixed = abi::registers(first, words);
                    placed.extend(regs.as_slice().iter().copied().zip(fixed))
                }
                Place::Stack(offset) => self.store_stack(regs, offset, true),
            }
        }
        self.frame.incoming_bytes = self.frame.incoming_bytes.max(placer.stack_bytes());
        Terminator::Return {
            address: self.return_address(),
            values: placed,
        }
    }

    /// Stores the words of an argument or a result to the stack. Incoming ones are addressed past the frame.
    fn store_stack(&mut self, regs: Regs, offset: u32, incoming: bool) {
        let pointer = self.stack_pointer();
        for (i, &reg) in regs.as_slice().iter().enumerate() {
            let at = i64::from(offset) + 4 * i as i64;
            let displacement = if incoming { 0 } else { at as i32 };
            let none = USrc::new(Src::ZERO);
            self.emit_stl(pointer.source(), displacement, Src::reg(reg), none);
            if incoming {
                self.builder.attach_to_last(Attachment::Symbol(SymbolUse {
                    role: Role::Addr,
                    kind: SymbolKind::AbsoluteLow,
                    name: INCOMING.to_string(),
                    addend: at,
                }));
            }
        }
    }

    /// Loads the words of a result that a callee left on the stack.
    fn load_outgoing(&mut self, offset: u32, words: usize) -> Regs {
        let regs: SmallVec<[VReg; 4]> = (0..words as u32)
            .map(|i| self.load_stack_word((offset + 4 * i) as i32))
            .collect();
        Regs::new(&regs)
    }

    /// An argument or result in registers, extended as its declaration says.
    fn extended(&mut self, value: Value, param: &ir::AbiParam) -> Regs {
        let src = match (param.extension, self.words_of(value)) {
            (ir::ArgumentExtension::Uext, 1) => constructor_zero_extended(self, value).src(),
            (ir::ArgumentExtension::Sext, 1) => constructor_sign_extended(self, value).src(),
            _ => self.src(value),
        };
        self.gpr(src)
    }

    /// A call with its arguments and results where the convention has them.
    pub(super) fn call_with(
        &mut self,
        inst: Inst,
        callee: Callee<VReg>,
        signature: &ir::Signature,
    ) -> InstOutput {
        let args = self.call_arguments(inst);
        let info = self.place_arguments(signature, args, false);
        let mut placer = Placer::results();
        let mut defs = Vec::new();
        let mut outputs = InstOutput::new();
        let mut on_stack = Vec::new();
        for param in &signature.returns {
            match Self::place_of(&mut placer, param) {
                Place::Registers { first, words } => {
                    let regs: SmallVec<[VReg; 4]> = (0..words)
                        .map(|_| self.builder.vreg(RegisterClass::Gpr))
                        .collect();
                    defs.extend(regs.iter().copied().zip(abi::registers(first, words)));
                    outputs.push(Output::Regs(Regs::new(&regs)));
                }
                Place::Stack(offset) => on_stack.push((offset, param.value_type)),
            }
        }
        self.frame.outgoing_bytes = self.frame.outgoing_bytes.max(placer.stack_bytes());
        let address = [
            self.builder.vreg(RegisterClass::Gpr),
            self.builder.vreg(RegisterClass::Gpr),
        ];
        let (machine, name) = match callee {
            Callee::Symbol(name) => (build::call_i(address), Some(name)),
            Callee::Registers(regs) => (build::call_r(address, regs), None),
        };
        let call = CallInfo {
            callee: name,
            uses: info,
            defs,
            meeting: std::mem::take(&mut self.call_meeting),
        };
        self.builder
            .emit_with(machine, Attachment::Call(Box::new(call)));
        for (offset, ty) in on_stack {
            let words = words_of_bits(ty.bits());
            outputs.push(Output::Regs(self.load_outgoing(offset, words)));
        }
        outputs
    }

    fn call_arguments(&self, inst: Inst) -> &'f [Value] {
        let args = self.func.dfg.inst_args(inst);
        match self.func.dfg.insts[inst].opcode() {
            Opcode::CallIndirect | Opcode::ReturnCallIndirect => &args[1..],
            _ => args,
        }
    }

    /// What a call calls, and how; none when the address has another type than addresses have.
    pub(super) fn callee(&mut self, inst: Inst) -> Option<(Callee<VReg>, &'f ir::Signature)> {
        let dfg = &self.func.dfg;
        match dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => {
                let signature = &dfg.signatures[dfg.ext_funcs[func_ref].signature];
                Some((Callee::Symbol(self.function_name(func_ref)), signature))
            }
            InstructionData::CallIndirect { sig_ref, .. } => {
                let address = dfg.inst_args(inst)[0];
                if self.type_of(address) != ir::types::I64 {
                    return None;
                }
                let src = self.src(address);
                let regs = self.gpr(src);
                let signature = &dfg.signatures[sig_ref];
                Some((Callee::Registers([regs.word(0), regs.word(1)]), signature))
            }
            _ => None,
        }
    }

    /// The symbol of a function.
    pub(super) fn function_name(&self, func_ref: FuncRef) -> String {
        (self.input.names)(&self.func.dfg.ext_funcs[func_ref].name)
    }

    /// Puts arguments into their registers and stores those of the stack: of a call below the frame's own data, of a
    /// jump where this function's own arguments were (`incoming`; they have been read at entry).
    fn place_arguments(
        &mut self,
        signature: &ir::Signature,
        args: &[Value],
        incoming: bool,
    ) -> Vec<(VReg, PReg)> {
        if !incoming {
            let area = Self::argument_area(signature);
            self.frame.outgoing_bytes = self.frame.outgoing_bytes.max(area);
        }
        let mut placer = Placer::arguments(signature.call_conv);
        let mut uses = Vec::new();
        for (&value, param) in args.iter().zip(&signature.params) {
            let regs = self.extended(value, param);
            match Self::place_of(&mut placer, param) {
                Place::Registers { first, words } => {
                    let fixed = abi::registers(first, words);
                    uses.extend(regs.as_slice().iter().copied().zip(fixed))
                }
                Place::Stack(offset) => self.store_stack(regs, offset, incoming),
            }
        }
        uses
    }

    /// Bytes of the caller's frame that belong to a function: its stack arguments, and for the tail-call convention at
    /// least what the functions it jumps to may need.
    fn argument_area(signature: &ir::Signature) -> u32 {
        let stack = Self::stack_bytes(signature);
        match signature.call_conv {
            CallConv::Tail => stack.max(abi::TAIL_ARGUMENT_BYTES),
            _ => stack,
        }
    }

    /// `return_call` and `return_call_indirect`: the callee returns to this function's caller.
    pub(super) fn tail_call(&mut self, inst: Inst) -> Terminator<VReg> {
        let Some((callee, signature)) = self.callee(inst) else {
            self.unsupported(inst, "function addresses have 64 bits");
            return Terminator::Exit;
        };
        if let FunctionKind::Kernel(_) = self.input.kind {
            self.unsupported(
                inst,
                "a kernel cannot leave by a tail call: call and return",
            );
            return Terminator::Exit;
        }
        if Self::stack_bytes(signature) > Self::argument_area(&self.func.signature) {
            // The caller left no room for so many arguments: call, and hand the results on. It takes stack where a jump
            // would not.
            self.frame.has_calls = true;
            let outputs = self.call_with(inst, callee, signature);
            return self.return_outputs(&outputs, &signature.returns);
        }
        let args = self.call_arguments(inst);
        let mut values = self.place_arguments(signature, args, true);
        let address = self.return_address();
        values.extend(address.into_iter().zip(abi::RETURN_ADDRESS));
        Terminator::TailCall { callee, values }
    }
}

/// Calls.
impl Lower<'_> {
    pub(super) fn call_of(&mut self, inst: Inst) -> Option<InstOutput> {
        let (callee, signature) = self.callee(inst)?;
        Some(self.call_with(inst, callee, signature))
    }
}
