//! Promotion against Cranelift's interpreter: the promoted function must return what the original returns.

use super::*;
use crate::analysis::testing::Rng;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::settings;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use std::fmt::Write;

/// A random function `(i64) -> i64` that mixes its parameter through two stack slots.
fn random_text(rng: &mut Rng) -> String {
    let blocks = 1 + rng.below(6);
    // Irregular functions overlap accesses and let addresses escape.
    let irregular = rng.below(3) == 0;
    let mut text = String::from(
        "function %f(i64) -> i64 {\n    ss0 = explicit_slot 16\n    ss1 = explicit_slot 32\n",
    );
    let mut next = blocks + 1;
    let mut fresh = || {
        next += 1;
        next
    };
    for block in 0..blocks {
        writeln!(text, "block{block}(v{block}: i64):").unwrap();
        let mut acc = block;
        for _ in 0..1 + rng.below(5) {
            let slot = rng.below(2);
            let size = if slot == 0 { 16 } else { 32 };
            let (ty, bytes) = rng.pick(&[
                ("i8", 1),
                ("i16", 2),
                ("i32", 4),
                ("i64", 8),
                ("f32", 4),
                ("f64", 8),
                ("i64", 8),
            ]);
            let grain = if irregular { bytes } else { 8 };
            let offset = rng.below(size / grain) * grain;
            let (base, rest) = if rng.below(2) == 0 {
                (offset, 0)
            } else {
                (0, offset)
            };
            let address = fresh();
            writeln!(text, "    v{address} = stack_addr.i64 ss{slot}+{base}").unwrap();
            let (mut address, mut rest) = (address, rest);
            if rng.below(4) == 0 {
                let (constant, sum) = (fresh(), fresh());
                writeln!(
                    text,
                    "    v{constant} = iconst.i64 {rest}\n    v{sum} = iadd v{address}, v{constant}"
                )
                .unwrap();
                (address, rest) = (sum, 0);
            }
            if rng.below(2) == 0 {
                let value = fresh();
                match ty {
                    "i64" => writeln!(text, "    store v{acc}, v{address}+{rest}").unwrap(),
                    "f64" => {
                        writeln!(
                            text,
                            "    v{value} = bitcast.f64 v{acc}\n    store v{value}, \
                         v{address}+{rest}"
                        )
                        .unwrap();
                    }
                    "f32" => {
                        let bits = fresh();
                        writeln!(
                            text,
                            "    v{bits} = ireduce.i32 v{acc}\n    v{value} = bitcast.f32 v{bits}"
                        )
                        .unwrap();
                        writeln!(text, "    store v{value}, v{address}+{rest}").unwrap();
                    }
                    _ if rng.below(2) == 0 => {
                        writeln!(text, "    istore{} v{acc}, v{address}+{rest}", bytes * 8)
                            .unwrap();
                    }
                    _ => {
                        writeln!(
                            text,
                            "    v{value} = ireduce.{ty} v{acc}\n    store v{value}, \
                         v{address}+{rest}"
                        )
                        .unwrap();
                    }
                }
            } else {
                let (value, wide) = (fresh(), fresh());
                match ty {
                    "i64" => writeln!(text, "    v{wide} = load.i64 v{address}+{rest}").unwrap(),
                    "f64" => {
                        writeln!(
                            text,
                            "    v{value} = load.f64 v{address}+{rest}\n    v{wide} = bitcast.i64 \
                         v{value}"
                        )
                        .unwrap();
                    }
                    "f32" => {
                        let bits = fresh();
                        writeln!(text, "    v{value} = load.f32 v{address}+{rest}").unwrap();
                        writeln!(
                            text,
                            "    v{bits} = bitcast.i32 v{value}\n    v{wide} = uextend.i64 v{bits}"
                        )
                        .unwrap();
                    }
                    _ => match rng.below(3) {
                        0 => {
                            let load = format!("{}load{}.i64", rng.pick(&["u", "s"]), bytes * 8);
                            let load = if bytes == 4 {
                                load.replace(".i64", "")
                            } else {
                                load
                            };
                            writeln!(text, "    v{wide} = {load} v{address}+{rest}").unwrap();
                        }
                        _ => {
                            writeln!(text, "    v{value} = load.{ty} v{address}+{rest}").unwrap();
                            writeln!(text, "    v{wide} = sextend.i64 v{value}").unwrap();
                        }
                    },
                }
                let (factor, product, sum) = (fresh(), fresh(), fresh());
                writeln!(
                    text,
                    "    v{factor} = iconst.i64 31\n    v{product} = imul v{acc}, v{factor}"
                )
                .unwrap();
                writeln!(text, "    v{sum} = iadd v{product}, v{wide}").unwrap();
                acc = sum;
            }
            if irregular && rng.below(12) == 0 {
                let escaped = fresh();
                writeln!(text, "    v{escaped} = bnot v{address}").unwrap();
            }
        }
        if blocks == 1 || rng.below(4) == 0 {
            writeln!(text, "    return v{acc}").unwrap();
            continue;
        }
        let (bits, condition, moved) = (fresh(), fresh(), fresh());
        writeln!(text, "    v{moved} = iconst.i64 {}", rng.below(9)).unwrap();
        writeln!(text, "    v{bits} = ushr v{acc}, v{moved}").unwrap();
        let one = fresh();
        writeln!(
            text,
            "    v{one} = iconst.i64 1\n    v{condition} = band v{bits}, v{one}"
        )
        .unwrap();
        let target = |rng: &mut Rng| 1 + rng.below(blocks - 1);
        writeln!(
            text,
            "    brif v{condition}, block{}(v{acc}), block{}(v{bits})",
            target(rng),
            target(rng)
        )
        .unwrap();
    }
    text.push_str("}\n");
    text
}

fn parse(text: &str) -> Function {
    cranelift_reader::parse_functions(text)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .remove(0)
}

/// Promotes a function whose unreachable blocks are removed, with no limit on parameters.
fn promoted(func: &Function) -> (Function, Promoted) {
    promoted_within(func, u32::MAX)
}

/// The same with so many words for the parameters of a block.
fn promoted_within(func: &Function, words: u32) -> (Function, Promoted) {
    let mut context = cranelift_codegen::Context::for_function(func.clone());
    let flags = settings::Flags::new(settings::builder());
    context.compute_cfg();
    context.compute_domtree();
    context.eliminate_unreachable_code(&flags).unwrap();
    let done = promote(&mut context.func, &context.cfg, &context.domtree, words);
    cranelift_codegen::verify_function(&context.func, &flags)
        .unwrap_or_else(|e| panic!("{e}\n{func}\n{}", context.func));
    (context.func, done)
}

/// What the function returns, or `None` when the fuel is used up.
fn run(func: &Function, argument: i64, fuel: u64) -> Option<i64> {
    let mut store = FunctionStore::default();
    store.add(func.name.to_string(), func);
    let state = InterpreterState::default().with_function_store(store);
    let mut interpreter = Interpreter::new(state).with_fuel(Some(fuel));
    match interpreter
        .call_by_name("%f", &[DataValue::I64(argument)])
        .ok()?
    {
        ControlFlow::Return(values) => match values[..] {
            [DataValue::I64(value)] => Some(value),
            _ => panic!("one i64 is returned"),
        },
        other => panic!("{other:?}"),
    }
}

/// `count` slots that are all added to in the innermost of `count` loops, then summed up.
fn slots_across_loops(count: usize) -> String {
    use std::fmt::Write;
    let slots: String = (0..count)
        .map(|i| format!("    ss{i} = explicit_slot 8\n"))
        .collect();
    let mut text = format!("function %f(i64) -> i64 {{\n{slots}block0(v0: i64):\n");
    let (counter, address, old, new) = (1, 1 + count, 1 + 2 * count, 1 + 3 * count);
    let mut out = |line: String| writeln!(text, "    {line}").unwrap();
    for i in 0..count {
        out(format!("v{} = stack_addr.i64 ss{i}", address + i));
        out(format!("store v0, v{}", address + i));
    }
    for i in 0..count {
        out(format!("jump block{}(v0)", i + 1));
        out(format!("block{}(v{}: i64):", i + 1, counter + i));
    }
    for i in 0..count {
        out(format!("v{} = load.i64 v{}", old + i, address + i));
        out(format!(
            "v{} = iadd v{}, v{}",
            new + i,
            old + i,
            counter + i
        ));
        out(format!("store v{}, v{}", new + i, address + i));
    }
    let mut next = 1 + 4 * count;
    for i in (0..count).rev() {
        out(format!("v{next} = iconst.i64 1"));
        out(format!("v{} = isub v{}, v{next}", next + 1, counter + i));
        let leave = 2 * count - i;
        let (less, back) = (next + 1, i + 1);
        out(format!("brif v{less}, block{back}(v{less}), block{leave}"));
        out(format!("block{leave}:"));
        next += 2;
    }
    let mut sum = 0;
    for i in 0..count {
        out(format!("v{next} = load.i64 v{}", address + i));
        out(format!("v{} = iadd v{sum}, v{next}", next + 1));
        sum = next + 1;
        next += 2;
    }
    out(format!("return v{sum}"));
    text.push_str("}\n");
    text
}

#[test]
fn parameters_stay_within_their_words() {
    let func = parse(&slots_across_loops(4));
    let expected = run(&func, 3, 1 << 16);
    assert!(expected.is_some());
    // A counter takes two words, a cell too.
    for (words, cells) in [
        (u32::MAX, 4),
        (10, 4),
        (9, 3),
        (6, 2),
        (4, 1),
        (3, 0),
        (0, 0),
    ] {
        let (after, done) = promoted_within(&func, words);
        let params = |block| after.dfg.num_block_params(block) as u32;
        let most = after.layout.blocks().map(params).max();
        assert_eq!((done.cells, done.slots), (cells, cells), "{words} words");
        assert!(most <= Some((words / 2).max(1)), "{words} words: {after}");
        assert_eq!(run(&after, 3, 1 << 16), expected, "{words} words: {after}");
    }
}

/// All cells would need a quarter of a million parameters.
#[test]
fn slots_across_many_loops_take_parameters_in_proportion() {
    let func = parse(&slots_across_loops(500));
    let (after, done) = promoted_within(&func, 64);
    let params = |block| after.dfg.num_block_params(block);
    assert!(done.cells > 20, "{done:?}");
    assert!(after.layout.blocks().map(params).all(|count| count <= 32));
}

#[test]
fn promoted_functions_return_the_same() {
    let (mut compared, mut cells, mut slots) = (0, 0, 0);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let func = parse(&random_text(&mut rng));
        let (after, done) = promoted(&func);
        cells += done.cells;
        slots += done.slots;
        for _ in 0..4 {
            let argument = rng.bits() as i64 >> rng.below(60);
            let Some(expected) = run(&func, argument, 2_000) else {
                continue;
            };
            assert_eq!(
                run(&after, argument, 20_000),
                Some(expected),
                "seed {seed}, argument {argument}\n{func}\n{after}"
            );
            compared += 1;
        }
    }
    assert!(
        compared > 400 && cells > 400 && slots > 100,
        "{compared} runs, {cells} cells, {slots} slots"
    );
}

#[test]
fn regular_slots_leave_no_memory_access() {
    let func = parse(
        "function %f(i64) -> i64 {
            ss0 = explicit_slot 16
        block0(v0: i64):
            v1 = stack_addr.i64 ss0
            store v0, v1
            v2 = iconst.i64 8
            v3 = iadd v1, v2
            istore16 v0, v3
            brif v0, block1, block2
        block1:
            v4 = load.f64 v1
            v5 = bitcast.i64 v4
            v6 = ineg v5
            store v6, v1
            jump block2
        block2:
            v7 = load.i64 v1
            v8 = sload16.i64 v1+8
            v9 = iadd v7, v8
            return v9
        }",
    );
    let (after, done) = promoted(&func);
    let text = after.to_string();
    assert_eq!(done, Promoted { slots: 1, cells: 2 }, "{text}");
    assert!(
        !text.contains("load") && !text.contains("store") && !text.contains("stack_addr"),
        "{text}"
    );
    assert!(text.contains("explicit_slot 0"), "{text}");
    assert!(text.contains("block2(v"), "block2 joins two values: {text}");
}

#[test]
fn what_escapes_or_overlaps_stays() {
    let func = parse(
        "function %f(i64) -> i64 {
            ss0 = explicit_slot 16
            ss1 = explicit_slot 8
            ss2 = explicit_slot 8
        block0(v0: i64):
            v1 = stack_addr.i64 ss0
            store v0, v1
            v2 = load.i32 v1+4
            v3 = uextend.i64 v2
            store v3, v1+8
            v4 = load.i64 v1+8
            v5 = stack_addr.i64 ss1
            store v5, v5
            v6 = stack_addr.i64 ss2
            store v0, v6+4
            v7 = stack_addr.i64 ss2
            store big v0, v7
            return v4
        }",
    );
    let (after, done) = promoted(&func);
    assert_eq!(
        done,
        Promoted { slots: 0, cells: 1 },
        "only bytes 8..16 of ss0\n{after}"
    );
}
