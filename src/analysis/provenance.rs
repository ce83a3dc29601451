//! The memory space that each address points into.
//!
//! Design rule: a pointer parameter of a kernel, and what address arithmetic makes of it, is global; `stack_addr` is
//! local; an i32 address is shared, and so is what is made of the generic address of shared memory; data objects are
//! global; everything else is generic, which works in every space. The analysis is a forward fixpoint over a lattice of
//! small height, from best to worst:
//!
//! - not yet seen;
//! - null: a constant that no mapped address can have, harmless wherever a pointer is expected;
//! - number (not derived from any address: other constants, extended i32, products, shifts), or a pointer to one space;
//! - anything, which may be an address of any space.
//!
//! A number added to a pointer stays in the pointer's space. A value that was loaded, returned or passed by a caller
//! may be a pointer of any space, so its sum with a kernel parameter is generic: which of the two was the pointer,
//! nobody knows. Cranelift's alias regions are not consulted, they are unsound when mixed (see the notes on the
//! mid-end).

use super::control_flow::ControlFlow;
use crate::abi;
use crate::intrinsics::resolve::{GpuSymbol, Intrinsics};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    Block, Function, Inst, InstructionData, Opcode, Type, Value, ValueDef, types,
};
use std::fmt;

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory: LDG, STG, ATOMG, RED.
    Global,
    /// The CTA's shared memory: LDS, STS, ATOMS.
    Shared,
    /// The thread's own memory: LDL, STL.
    Local,
    /// Any of them: LD, ST, ATOM.
    Generic,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Generic => "generic",
        })
    }
}

/// What an i64 value is derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Origin {
    /// Not reached yet.
    #[default]
    Unknown,
    /// A constant below the first mapped address.
    Null,
    /// No address.
    Number,
    /// An address in this space.
    Pointer(Pointee),
    /// Anything.
    Any,
}

/// The spaces that provenance can prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointee {
    Global,
    Shared,
    Local,
}

impl Origin {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, x) | (x, Self::Unknown) => x,
            (a, b) if a == b => a,
            (Self::Null, x @ (Self::Number | Self::Pointer(_)))
            | (x @ (Self::Number | Self::Pointer(_)), Self::Null) => x,
            _ => Self::Any,
        }
    }

    /// The origin of a sum.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Null | Self::Number, Self::Null | Self::Number) => Self::Number,
            (Self::Null | Self::Number, x) | (x, Self::Null | Self::Number) => x,
            // Two parameters of a kernel: one of them is an index.
            (Self::Pointer(a), Self::Pointer(b)) if a == b => Self::Pointer(a),
            _ => Self::Any,
        }
    }

    /// The origin of a difference.
    fn minus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Null | Self::Number, Self::Null | Self::Number) => Self::Number,
            (x, Self::Null | Self::Number) => x,
            (Self::Pointer(a), Self::Pointer(b)) if a == b => Self::Pointer(a),
            _ => Self::Any,
        }
    }
}

/// The memory space of every value used as an address.
#[derive(Default)]
pub struct Provenance(SecondaryMap<Value, Origin>);

impl Provenance {
    /// Analyses `func`.
    pub fn compute(
        func: &Function,
        flow: &ControlFlow,
        intrinsics: &Intrinsics,
        kernel: bool,
    ) -> Self {
        let mut found = Self::default();
        found.recompute(func, flow, intrinsics, kernel);
        found
    }

    /// The same in the memory of the function before.
    pub fn recompute(
        &mut self,
        func: &Function,
        flow: &ControlFlow,
        intrinsics: &Intrinsics,
        kernel: bool,
    ) {
        let context = Context {
            func,
            intrinsics,
            kernel,
        };
        let origins = &mut self.0;
        origins.clear();
        origins.resize(func.dfg.num_values());
        let entry = func.layout.entry_block();
        let join = |block: Block, origins: &mut SecondaryMap<Value, Origin>| {
            let mut changed = false;
            for (index, param) in func.dfg.block_params(block).iter().enumerate() {
                let new = if Some(block) == entry {
                    context.parameter(func.dfg.value_type(*param))
                } else {
                    context.join_arguments(flow, block, index, origins)
                };
                changed |= std::mem::replace(&mut origins[*param], new) != new;
            }
            changed
        };
        let blocks = flow.reverse_postorder();
        loop {
            for &block in blocks {
                join(block, origins);
                for inst in func.layout.block_insts(block) {
                    for result in func.dfg.inst_results(inst) {
                        origins[*result] = context.result(inst, *result, origins);
                    }
                }
            }
            // In reverse postorder only what comes round a cycle is not yet there when it is asked for, and only
            // parameters take it.
            let mut changed = false;
            if flow.has_cycles() {
                (blocks.iter()).for_each(|&block| changed |= join(block, origins));
            }
            if !changed {
                return;
            }
        }
    }

    /// Nothing is known of any value from here on.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The space that `address` points into.
    pub fn space(&self, func: &Function, address: Value) -> Space {
        if func.dfg.value_type(address) == types::I32 {
            return Space::Shared;
        }
        match self.0[address] {
            Origin::Pointer(Pointee::Global) => Space::Global,
            Origin::Pointer(Pointee::Shared) => Space::Shared,
            Origin::Pointer(Pointee::Local) => Space::Local,
            Origin::Unknown | Origin::Null | Origin::Number | Origin::Any => Space::Generic,
        }
    }
}

struct Context<'a> {
    func: &'a Function,
    intrinsics: &'a Intrinsics,
    kernel: bool,
}

impl Context<'_> {
    /// A parameter of the function.
    fn parameter(&self, ty: Type) -> Origin {
        match ty {
            types::I64 if self.kernel => Origin::Pointer(Pointee::Global),
            types::I64 => Origin::Any,
            _ => narrow(ty),
        }
    }

    /// A block parameter: what all predecessors pass.
    fn join_arguments(
        &self,
        flow: &ControlFlow,
        block: Block,
        index: usize,
        origins: &SecondaryMap<Value, Origin>,
    ) -> Origin {
        let arguments = flow.arguments(self.func, block, index);
        arguments.fold(Origin::Unknown, |origin, (_, argument)| {
            origin.join(argument.map_or(Origin::Any, |value| origins[value]))
        })
    }

    /// A result of an instruction.
    fn result(&self, inst: Inst, result: Value, origins: &SecondaryMap<Value, Origin>) -> Origin {
        let dfg = &self.func.dfg;
        let ty = dfg.value_type(result);
        if ty != types::I64 {
            return narrow(ty);
        }
        let data = &dfg.insts[inst];
        let args = dfg.inst_args(inst);
        let origin = |index: usize| origins[args[index]];
        match data.opcode() {
            Opcode::Iconst => match *data {
                InstructionData::UnaryImm { imm, .. }
                    if (0..abi::LOWEST_ADDRESS as i64).contains(&imm.bits()) =>
                {
                    Origin::Null
                }
                _ => Origin::Number,
            },
            Opcode::Uextend | Opcode::Sextend | Opcode::Imul | Opcode::Umulhi | Opcode::Smulhi => {
                Origin::Number
            }
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr if self.is_nonzero_constant(args[1]) => {
                Origin::Number
            }
            Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem => Origin::Number,
            Opcode::Popcnt | Opcode::Clz | Opcode::Ctz | Opcode::Cls | Opcode::Bmask => {
                Origin::Number
            }
            Opcode::Iadd | Opcode::Bor => origin(0).plus(origin(1)),
            Opcode::Isub => origin(0).minus(origin(1)),
            // Rounding an address down; other masks give numbers or addresses, which the join covers.
            Opcode::Band => origin(0).plus(origin(1)),
            Opcode::Select | Opcode::SelectSpectreGuard => origin(1).join(origin(2)),
            Opcode::Smin | Opcode::Smax | Opcode::Umin | Opcode::Umax => origin(0).join(origin(1)),
            Opcode::StackAddr => Origin::Pointer(Pointee::Local),
            Opcode::Call => match self.intrinsics.alignment(self.func, inst) {
                Some((value, _)) => origins[value],
                None => Origin::Any,
            },
            Opcode::SymbolValue => match *data {
                InstructionData::UnaryGlobalValue { global_value, .. } => {
                    match self.intrinsics.symbol(global_value) {
                        // The generic address of shared memory.
                        Some(GpuSymbol::Shared) => Origin::Pointer(Pointee::Shared),
                        Some(GpuSymbol::Special(_)) => Origin::Number,
                        None => Origin::Pointer(Pointee::Global),
                    }
                }
                _ => Origin::Any,
            },
            _ => Origin::Any,
        }
    }

    fn is_nonzero_constant(&self, value: Value) -> bool {
        matches!(self.func.dfg.value_def(value), ValueDef::Result(inst, _)
            if matches!(self.func.dfg.insts[inst], InstructionData::UnaryImm { imm, .. } if imm.bits() != 0))
    }
}

/// A value that is too narrow or too wide to be an address by itself.
fn narrow(ty: Type) -> Origin {
    if ty.is_int() && ty.bits() < 64 {
        Origin::Number
    } else {
        Origin::Any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::calls::Callees;
    use crate::analysis::testing::{Rng, random_addresses, random_walk};
    use crate::intrinsics::resolve;

    /// The space of the address of every load and store, in layout order.
    fn spaces(text: &str, kernel: bool) -> Vec<Space> {
        let mut func = cranelift_reader::parse_functions(text).unwrap().remove(0);
        let intrinsics = resolve::resolve(&mut func, &|_| None).unwrap();
        let flow = ControlFlow::compute(&func, kernel, &Callees::default());
        let provenance = Provenance::compute(&func, &flow, &intrinsics, kernel);
        let mut spaces = Vec::new();
        for inst in func
            .layout
            .blocks()
            .flat_map(|block| func.layout.block_insts(block))
        {
            match func.dfg.insts[inst] {
                InstructionData::Load { arg, .. } => spaces.push(provenance.space(&func, arg)),
                InstructionData::Store { args, .. } => {
                    spaces.push(provenance.space(&func, args[1]))
                }
                _ => {}
            }
        }
        spaces
    }

    const MIXED: &str = "function %f(i64, i64, i32) {
            ss0 = explicit_slot 16
            gv0 = symbol %gpu_shared
            gv1 = symbol %table
        block0(v0: i64, v1: i64, v2: i32):
            v3 = uextend.i64 v2
            v4 = iconst.i64 3
            v5 = ishl v3, v4
            v6 = iadd v0, v5
            v7 = load.i64 v6
            v8 = iadd v7, v0
            store v2, v8
            v9 = ishl v7, v4
            v10 = iadd v9, v1
            store v2, v10
            v11 = stack_addr.i64 ss0
            v12 = iadd v11, v5
            store v2, v12
            v13 = symbol_value.i32 gv0
            store v2, v13
            v14 = symbol_value.i64 gv0
            store v2, v14
            v15 = symbol_value.i64 gv1
            store v2, v15
            v16 = select v2, v0, v11
            store v2, v16
            v17 = select v2, v0, v4
            store v2, v17
            return
        }";

    #[test]
    fn spaces_follow_the_rules() {
        use Space::*;
        let expected = [
            Global, Generic, Global, Local, Shared, Shared, Global, Generic, Global,
        ];
        assert_eq!(spaces(MIXED, true), expected);
        let in_device_function = [
            Generic, Generic, Generic, Local, Shared, Shared, Global, Generic, Generic,
        ];
        assert_eq!(spaces(MIXED, false), in_device_function);
    }

    #[test]
    fn block_parameters_join_what_they_are_passed() {
        let loop_over = |update: &str| {
            format!(
                "function %f(i64, i32) {{
                    ss0 = explicit_slot 8
                block0(v0: i64, v1: i32):
                    v2 = iconst.i64 4
                    v8 = stack_addr.i64 ss0
                    jump block1(v0)
                block1(v3: i64):
                    v4 = load.i32 v3
                    v5 = iadd v3, v2
                    brif v4, block1({update}), block2
                block2:
                    return
                }}"
            )
        };
        assert_eq!(spaces(&loop_over("v5"), true), [Space::Global]);
        assert_eq!(spaces(&loop_over("v8"), true), [Space::Generic]);
        assert_eq!(
            spaces(&loop_over("v2"), true),
            [Space::Global],
            "a number is no address"
        );
    }

    /// How often each kind of address went into a sum.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Bases {
        global: i64,
        local: i64,
        foreign: i64,
    }

    impl Bases {
        fn plus(self, other: Self, sign: i64) -> Self {
            Self {
                global: self.global.wrapping_add(other.global.wrapping_mul(sign)),
                local: self.local.wrapping_add(other.local.wrapping_mul(sign)),
                foreign: self.foreign.wrapping_add(other.foreign.wrapping_mul(sign)),
            }
        }
    }

    const FOREIGN: Bases = Bases {
        global: 0,
        local: 0,
        foreign: 1,
    };

    /// What an instruction makes of the addresses in its operands.
    fn evaluate(func: &Function, rng: &mut Rng, inst: Inst, args: &[Bases]) -> Bases {
        let shifts = |value| match func.dfg.value_def(value) {
            ValueDef::Result(def, _) => {
                matches!(func.dfg.insts[def], InstructionData::UnaryImm { imm, .. } if imm.bits() != 0)
            }
            _ => false,
        };
        match func.dfg.insts[inst].opcode() {
            Opcode::Iadd | Opcode::Band | Opcode::Bor => args[0].plus(args[1], 1),
            Opcode::Isub => args[0].plus(args[1], -1),
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr if !shifts(func.dfg.inst_args(inst)[1]) => {
                args[0]
            }
            Opcode::Select => args[1 + rng.below(2)],
            Opcode::Umin => args[rng.below(2)],
            Opcode::StackAddr => Bases {
                local: 1,
                ..Bases::default()
            },
            Opcode::Load => FOREIGN,
            _ => Bases::default(),
        }
    }

    #[test]
    fn proven_spaces_hold_on_random_paths() {
        let (mut global, mut local) = (0, 0);
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let func = random_addresses(&mut rng, 8);
            for kernel in [false, true] {
                let flow = ControlFlow::compute(&func, kernel, &Callees::default());
                let provenance = Provenance::compute(&func, &flow, &Intrinsics::default(), kernel);
                let param = if kernel {
                    Bases {
                        global: 1,
                        ..Bases::default()
                    }
                } else {
                    FOREIGN
                };
                let mut step =
                    |rng: &mut Rng, inst, args: &[Bases]| evaluate(&func, rng, inst, args);
                for (value, bases) in random_walk(&func, &mut rng, 40, &[param; 2], &mut step) {
                    if func.dfg.value_type(value) != types::I64 {
                        continue;
                    }
                    let told = provenance.space(&func, value);
                    let wrong = match told {
                        Space::Global => bases.local != 0 || bases.foreign != 0,
                        Space::Local => bases.global != 0 || bases.foreign != 0,
                        _ => false,
                    };
                    assert!(
                        !wrong,
                        "seed {seed} kernel {kernel}: {value} is {told} but {bases:?}\n{func}"
                    );
                    global += usize::from(told == Space::Global);
                    local += usize::from(told == Space::Local);
                }
            }
        }
        assert!(
            global > 250 && local > 250,
            "{global} global, {local} local"
        );
    }
}
