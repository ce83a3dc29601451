//! What the rules leave alone, beside what file tests show.

use crate::clif::{Options, Preparer};
use crate::passes::Pass;
use cranelift_codegen::ir::{Function, Opcode};

/// The opcodes after rewriting, in layout order; what comes out is valid.
fn rewritten(text: &str) -> Vec<Opcode> {
    let func = cranelift_reader::parse_functions(text)
        .expect("the test's CLIF parses")
        .remove(0);
    let mut opcodes = Vec::new();
    let mut observe = |pass: Pass, func: &Function| {
        if pass == Pass::Rewrite {
            crate::clif::verify(func).unwrap_or_else(|errors| panic!("{errors}\n{func}"));
            let blocks = func.layout.blocks();
            let insts = blocks.flat_map(|block| func.layout.block_insts(block));
            opcodes = insts.map(|inst| func.dfg.insts[inst].opcode()).collect();
        }
    };
    Preparer::new()
        .prepare(func, &Options::DEVICE, &mut observe)
        .unwrap_or_else(|errors| panic!("{errors}"));
    opcodes
}

#[test]
fn one_sum_gives_its_carry_to_all_comparisons() {
    let opcodes = rewritten(
        "function %f(i32, i32) -> i32, i8, i8 {
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            v3 = icmp ult v2, v0
            v4 = icmp uge v2, v1
            return v2, v3, v4
        }",
    );
    assert!(opcodes.contains(&Opcode::UaddOverflow), "{opcodes:?}");
    assert!(!opcodes.contains(&Opcode::Icmp) && !opcodes.contains(&Opcode::Iadd));
}

#[test]
fn a_difference_takes_the_comparison_before_it() {
    for order in [
        "v2 = icmp ult v0, v1  v3 = isub v0, v1",
        "v3 = isub v0, v1  v2 = icmp ugt v1, v0",
    ] {
        let opcodes = rewritten(&format!(
            "function %f(i64, i64) -> i8, i64 {{
            block0(v0: i64, v1: i64):
                {order}
                return v2, v3
            }}"
        ));
        assert_eq!(opcodes, [Opcode::UsubOverflow, Opcode::Return]);
    }
}

#[test]
fn addresses_and_other_blocks_keep_their_sums() {
    let address = rewritten(
        "function %f(i64, i64) -> i8, i32 {
        block0(v0: i64, v1: i64):
            v2 = iadd v0, v1
            v3 = icmp ult v2, v0
            v4 = load.i32 v2
            return v3, v4
        }",
    );
    assert!(address.contains(&Opcode::Iadd), "{address:?}");
    let blocks = rewritten(
        "function %f(i32, i32, i32) -> i8 {
        block0(v0: i32, v1: i32, v2: i32):
            v3 = iadd v0, v1
            brif v3, block1, block2
        block1:
            v4 = icmp ult v3, v0
            return v4
        block2:
            v5 = icmp ult v2, v0
            return v5
        }",
    );
    assert!(!blocks.contains(&Opcode::UaddOverflow), "{blocks:?}");
}

#[test]
fn both_shifts_by_nothing_are_no_rotation_but_of_bits_that_are_joined() {
    for (join, rotates) in [("bor", true), ("bxor", false), ("iadd", false)] {
        let opcodes = rewritten(&format!(
            "function %f(i32, i32) -> i32 {{
            block0(v0: i32, v1: i32):
                v2 = ishl v0, v1
                v3 = ineg v1
                v4 = ushr v0, v3
                v5 = {join} v2, v4
                return v5
            }}"
        ));
        assert_eq!(opcodes.contains(&Opcode::Rotl), rotates, "{join}");
    }
}

#[test]
fn masks_too_narrow_for_an_amount_stay() {
    let opcodes = rewritten(
        "function %f(i64, i32) -> i64 {
        block0(v0: i64, v1: i32):
            v2 = iconst.i32 31
            v3 = band v1, v2
            v4 = ishl v0, v3
            return v4
        }",
    );
    assert!(opcodes.contains(&Opcode::Band));
}

#[test]
fn the_roots_are_those_of_the_rules() {
    let rules = include_str!("../../../isle/clif_opt.isle");
    let mut roots: Vec<Opcode> = rules
        .match_indices("(rewrite ")
        .filter_map(|(start, root)| {
            let pattern = rules[start + root.len()..].trim_start_matches("x @ ");
            let name = pattern.strip_prefix('(')?.split([' ', ')']).next()?;
            Some(name.parse().expect("an opcode"))
        })
        .collect();
    roots.sort_by_key(|&opcode| opcode as u8);
    roots.dedup();
    let mut listed = super::ROOTS.to_vec();
    listed.sort_by_key(|&opcode| opcode as u8);
    assert_eq!(listed, roots);
}

#[test]
fn a_complement_is_found_where_the_value_is_there_anyway() {
    let count = |uses: &str| {
        let opcodes = rewritten(&format!(
            "function %f(i32, i32, i32) -> i32, i32, i32 {{
            block0(v0: i32, v1: i32, v2: i32):
                v3 = bnot v0
                v4 = band v3, v1
                v5 = bnot v1
                v6 = bor v0, v5
                v7 = iadd v6, v2
                v8 = iadd v4, v2
                return v8, v7, {uses}
            }}"
        ));
        opcodes.iter().filter(|&&o| o == Opcode::Bor).count()
    };
    assert_eq!(count("v4"), 0);
    assert_eq!(count("v2"), 1);
}
