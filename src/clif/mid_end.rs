//! What Cranelift's mid-end fails on or gets wrong, put in other words.
//!
//! [`expand`] comes once, before all. It takes a verified function and leaves none of the following; what takes their
//! place costs no instruction. What cannot be said in other words is hidden while the mid-end runs ([`opaque`]), and
//! constants are numbered so that new ones find a place ([`constants`]).
//!
//! - `band`, `bor`, `bxor`, `bnot` and `bitselect` on floats or vectors of them: rules that make constants
//!   (`bxor v1, v1` is one) fail on their types. They become operations on integers between casts.
//! - `fmin` and `fmax` of f16: of constants, one of them a zero, the mid-end takes the wrong one, since to it a zero of
//!   that type equals every number. They become operations on vectors of two equal lanes, which it does not compute.
//! - `swiden_low` and its like from two lanes to one, which is a number: rules make a `splat` of that type. They become
//!   the extension of the lane.

pub mod constants;
pub mod opaque;

use super::contents::Contents;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{
    Function, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value, types,
};

/// The operations that [`Detour::of`] looks at.
const CANDIDATES: [Opcode; 11] = [
    Opcode::Band,
    Opcode::Bor,
    Opcode::Bxor,
    Opcode::Bnot,
    Opcode::Bitselect,
    Opcode::Fmin,
    Opcode::Fmax,
    Opcode::SwidenLow,
    Opcode::SwidenHigh,
    Opcode::UwidenLow,
    Opcode::UwidenHigh,
];

/// Rewrites such operations of `func`. True if there are any.
pub fn expand(func: &mut Function, contents: &Contents) -> bool {
    if !contents.has(&CANDIDATES) {
        return false;
    }
    let found: Vec<(Inst, Detour)> = func
        .layout
        .blocks()
        .flat_map(|block| func.layout.block_insts(block))
        .filter_map(|inst| Detour::of(func, inst).map(|detour| (inst, detour)))
        .collect();
    for (inst, detour) in &found {
        detour.take(func, *inst);
    }
    !found.is_empty()
}

/// The type in which an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detour {
    /// Its operands' and result's bits as integers.
    Integers(Type),
    /// Vectors of two equal lanes.
    Lanes(Type),
    /// The extension of a lane to this type.
    Extension(Type),
}

impl Detour {
    fn of(func: &Function, inst: Inst) -> Option<Self> {
        let ty = || func.dfg.ctrl_typevar(inst);
        match func.dfg.insts[inst].opcode() {
            Opcode::Band | Opcode::Bor | Opcode::Bxor | Opcode::Bnot | Opcode::Bitselect => {
                let lane = ty().lane_type();
                (lane.is_float() && lane != types::F128).then(|| Self::Integers(ty().as_int()))
            }
            Opcode::Fmin | Opcode::Fmax => {
                (ty() == types::F16).then_some(Self::Lanes(types::F16X2))
            }
            Opcode::SwidenLow | Opcode::SwidenHigh | Opcode::UwidenLow | Opcode::UwidenHigh => {
                let wide = func.dfg.value_type(func.dfg.first_result(inst));
                (!wide.is_vector()).then_some(Self::Extension(wide))
            }
            _ => None,
        }
    }

    /// The type that the operation gets.
    fn ty(self) -> Type {
        match self {
            Self::Integers(ty) | Self::Lanes(ty) | Self::Extension(ty) => ty,
        }
    }

    fn take(self, func: &mut Function, inst: Inst) {
        let data = func.dfg.insts[inst];
        let old = func.dfg.first_result(inst);
        let before = func.dfg.value_type(old);
        let location = func.srcloc(inst);
        let args: Vec<Value> = func.dfg.inst_args(inst).to_vec();
        let mut pos = FuncCursor::new(func).at_inst(inst);
        pos.set_srcloc(location);
        let ty = self.ty();
        let args: Vec<Value> = args
            .into_iter()
            .map(|arg| match self {
                Self::Integers(_) => pos.ins().bitcast(ty, MemFlagsData::new(), arg),
                Self::Lanes(_) => pos.ins().splat(ty, arg),
                Self::Extension(_) => {
                    let high = matches!(data.opcode(), Opcode::SwidenHigh | Opcode::UwidenHigh);
                    pos.ins().extractlane(arg, u8::from(high))
                }
            })
            .collect();
        let ins = pos.ins();
        let (operation, _) = match (data, &args[..]) {
            (InstructionData::Unary { opcode, .. }, &[x]) => {
                let opcode = match opcode {
                    Opcode::SwidenLow | Opcode::SwidenHigh => Opcode::Sextend,
                    Opcode::UwidenLow | Opcode::UwidenHigh => Opcode::Uextend,
                    other => other,
                };
                ins.Unary(opcode, ty, x)
            }
            (InstructionData::Binary { opcode, .. }, &[x, y]) => ins.Binary(opcode, ty, x, y),
            (InstructionData::Ternary { opcode, .. }, &[x, y, z]) => {
                ins.Ternary(opcode, ty, x, y, z)
            }
            (other, _) => unreachable!("{} has other operands", other.opcode()),
        };
        let result = pos.func.dfg.first_result(operation);
        let new = match self {
            Self::Integers(_) => pos.ins().bitcast(before, MemFlagsData::new(), result),
            Self::Lanes(_) => pos.ins().extractlane(result, 0),
            Self::Extension(_) => result,
        };
        func.dfg.clear_results(inst);
        func.layout.remove_inst(inst);
        func.dfg.change_to_alias(old, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clif::{Options, Preparer};
    use crate::passes::Pass;

    fn parsed(text: &str) -> Function {
        cranelift_reader::parse_functions(text)
            .expect("the test's CLIF parses")
            .remove(0)
    }

    /// The opcodes that are left after all of the preparation; that it ends at all is not a matter of course.
    fn prepared(text: &str) -> Vec<Opcode> {
        let options = Options {
            skip: &[Pass::Fuse],
            ..Options::DEVICE
        };
        let prepared = Preparer::new()
            .prepare(parsed(text), &options, &mut |_, _| {})
            .unwrap_or_else(|errors| panic!("{errors}"));
        let func = &prepared.func;
        let blocks = func.layout.blocks();
        blocks
            .flat_map(|block| func.layout.block_insts(block))
            .map(|inst| func.dfg.insts[inst].opcode())
            .collect()
    }

    #[test]
    fn bits_of_floats_are_combined() {
        for ty in ["f16", "f32", "f64", "f16x2", "f32x2", "f32x4", "f64x2"] {
            for work in [
                "bxor v0, v0",
                "band v0, v0",
                "bor v0, v0",
                "bnot v0",
                "bitselect v0, v0, v0",
            ] {
                let text = format!(
                    "function %f({ty}) -> {ty} {{
                    block0(v0: {ty}):
                        v1 = {work}
                        v2 = bnot v1
                        v3 = bxor v1, v2
                        v4 = bxor v3, v3
                        v5 = bor v4, v1
                        return v5
                    }}"
                );
                prepared(&text);
                let mut func = parsed(&text);
                let contents = Contents::of(&func);
                assert!(expand(&mut func, &contents), "{func}");
                crate::clif::verify(&func).unwrap_or_else(|errors| panic!("{errors}\n{func}"));
                let left = func
                    .dfg
                    .values()
                    .filter_map(|value| func.dfg.value_def(value).inst())
                    .filter(|&inst| func.layout.inst_block(inst).is_some())
                    .filter(|&inst| Detour::of(&func, inst).is_some())
                    .count();
                assert_eq!(left, 0, "{func}");
            }
        }
    }

    #[test]
    fn limits_of_constants_are_left_to_the_machine() {
        let text = "function %f() -> f16 {
        block0:
            v0 = f16const -0x1.0
            v1 = f16const -0.0
            v2 = fmax v0, v1
            return v2
        }";
        assert!(prepared(text).contains(&Opcode::Fmax));
    }

    #[test]
    fn the_only_lane_is_a_number() {
        for (narrow, wide) in [("i32x2", "i64"), ("i16x2", "i32"), ("i8x2", "i16")] {
            let lane = narrow.trim_end_matches("x2");
            for work in ["swiden_low", "swiden_high", "uwiden_low", "uwiden_high"] {
                let text = format!(
                    "function %f({lane}) -> {wide} {{
                    block0(v0: {lane}):
                        v1 = splat.{narrow} v0
                        v2 = {work} v1
                        return v2
                    }}"
                );
                let extension = match &work[..1] {
                    "s" => Opcode::Sextend,
                    _ => Opcode::Uextend,
                };
                assert!(prepared(&text).contains(&extension), "{text}");
            }
        }
    }

    /// Why there is a detour: the mid-end by itself. When this fails the detour has become needless.
    #[test]
    fn the_mid_end_takes_the_wrong_one() {
        let mut context = cranelift_codegen::Context::for_function(parsed(
            "function %f() -> f16 {
            block0:
                v0 = f16const -0x1.0
                v1 = f16const -0.0
                v2 = fmax v0, v1
                return v2
            }",
        ));
        context.compute_cfg();
        context.compute_domtree();
        let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
        context
            .egraph_pass(
                &flags,
                &mut cranelift_codegen::control::ControlPlane::default(),
            )
            .expect("it ends");
        context.func.dfg.resolve_all_aliases();
        let entry = context.func.layout.entry_block().expect("a block");
        let last = context.func.layout.last_inst(entry).expect("a return");
        let returned = context.func.dfg.inst_args(last)[0];
        let def = context
            .func
            .dfg
            .value_def(returned)
            .inst()
            .expect("a constant");
        assert!(matches!(
            context.func.dfg.insts[def],
            InstructionData::UnaryIeee16 { imm, .. } if imm.bits() == 0xbc00
        ));
    }
}
