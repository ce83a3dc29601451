//! Legalised functions verify, and hold nothing that legalising was for.

use super::*;
use cranelift_codegen::ir::{Opcode, types};
use cranelift_codegen::settings;

fn legalized(text: &str) -> Function {
    let mut func = cranelift_reader::parse_functions(text)
        .expect("the test's CLIF parses")
        .remove(0);
    let contents = Contents::of(&func);
    legalize(&mut func, &contents, &Tracking::default());
    let flags = settings::Flags::new(settings::builder());
    if let Err(errors) = cranelift_codegen::verify_function(&func, &flags) {
        panic!("{errors}\n{func}");
    }
    func
}

fn insts(func: &Function) -> impl Iterator<Item = Inst> {
    let blocks = func.layout.blocks();
    blocks.flat_map(|block| func.layout.block_insts(block))
}

fn opcodes(func: &Function) -> Vec<Opcode> {
    insts(func)
        .map(|inst| func.dfg.insts[inst].opcode())
        .collect()
}

#[test]
fn division_of_128_bits_becomes_a_loop() {
    for operation in ["udiv", "sdiv", "urem", "srem"] {
        let func = legalized(&format!(
            "function %f(i128, i128) -> i128 {{
            block0(v0: i128, v1: i128):
                v2 = {operation} v0, v1
                v3 = {operation} v2, v1
                return v3
            }}"
        ));
        assert_eq!(func.layout.blocks().count(), 5, "{func}");
        let is_wide = |inst| func.dfg.ctrl_typevar(inst) == types::I128;
        let left = insts(&func)
            .filter(|&inst| is_wide(inst))
            .map(|inst| func.dfg.insts[inst].opcode())
            .filter(|op| {
                matches!(
                    op,
                    Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem
                )
            })
            .count();
        assert_eq!(left, 0, "{func}");
    }
}

#[test]
fn lanes_become_scalars() {
    let binary = [
        "imul",
        "smin",
        "umax",
        "uadd_sat",
        "sadd_sat",
        "usub_sat",
        "ssub_sat",
        "avg_round",
        "icmp slt",
        "icmp ugt",
    ];
    for ty in [
        "i8x2", "i8x4", "i8x8", "i16x2", "i16x4", "i32x2", "i8x16", "i64x2",
    ] {
        for operation in binary {
            // Whole words of narrow lanes are worked on at once, but for products.
            let narrow = ty.starts_with("i8") || ty.starts_with("i16");
            if narrow && operation != "imul" {
                continue;
            }
            let func = legalized(&format!(
                "function %f({ty}, {ty}) -> {ty} {{
                block0(v0: {ty}, v1: {ty}):
                    v2 = {operation} v0, v1
                    return v2
                }}"
            ));
            for block in func.layout.blocks() {
                for inst in func.layout.block_insts(block) {
                    let opcode = func.dfg.insts[inst].opcode();
                    let vector = func
                        .dfg
                        .inst_results(inst)
                        .iter()
                        .any(|&v| func.dfg.value_type(v).is_vector());
                    assert!(
                        !vector || matches!(opcode, Opcode::Insertlane | Opcode::ScalarToVector),
                        "{operation}.{ty}: {opcode} is left\n{func}"
                    );
                }
            }
        }
    }
}

#[test]
fn changes_of_lanes_verify() {
    for (from, to, operation) in [
        ("i8x16, i8x16", "i8x16", "swizzle v0, v1"),
        ("i16x8, i16x8", "i8x16", "snarrow v0, v1"),
        ("i32x4, i32x4", "i16x8", "unarrow v0, v1"),
        ("i64x2, i64x2", "i32x4", "uunarrow v0, v1"),
        ("i8x8, i8x8", "i16x4", "swiden_high v0"),
        ("i16x8, i16x8", "i32x4", "uwiden_low v0"),
        ("i16x8, i16x8", "i16x8", "iadd_pairwise v0, v1"),
        ("i16x8, i16x8", "i16x8", "sqmul_round_sat v0, v1"),
        ("f64x2, f64x2", "f32x4", "fvdemote v0"),
        ("f32x4, f32x4", "f64x2", "fvpromote_low v0"),
        ("f32x4, f32x4", "i32x4", "fcmp lt v0, v1"),
        ("f32x4, f32x4", "i8", "vall_true v0"),
        ("i32x4, i32x4", "f32x4", "fcvt_from_sint.f32x4 v0"),
        ("i128, i128", "i128", "umulhi v0, v1"),
        ("i128, i128", "i128", "smulhi v0, v1"),
    ] {
        let parameters: Vec<&str> = from.split(", ").collect();
        let func = legalized(&format!(
            "function %f({from}) -> {to} {{
            block0(v0: {}, v1: {}):
                v2 = {operation}
                return v2
            }}",
            parameters[0], parameters[1]
        ));
        let name = operation.split([' ', '.']).next().expect("a name");
        assert!(
            opcodes(&func)
                .iter()
                .all(|op| op.to_string() != name
                    || matches!(name, "fcmp" | "umulhi" | "fcvt_from_sint")),
            "{func}"
        );
    }
}
