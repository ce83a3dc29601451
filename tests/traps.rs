//! Traps with their codes: conversions of floats at the exact ends of every integer's range, sums that overflow,
//! conditional and unconditional traps, in kernels and in functions that they call.

#![cfg(all(feature = "driver", feature = "sim"))]

mod common;

use cranelift_codegen::ir::TrapCode;
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::Device;
use cranelift_thisgpu::sim::{FaultKind, SimConfig};
use half::f16;

/// How a kernel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Value(u128),
    Trap(TrapCode),
}

/// A kernel whose text takes v1 (of type `from`) to v2 (of type `to`), with these declarations before and functions
/// after it.
fn compile(from: &str, to: &str, declarations: &str, work: &str, others: &str) -> Code {
    let text = format!(
        "; kernel
function %k(i64) {{
{declarations}
block0(v0: i64):
    v1 = load.{from} v0
{work}
    store.{to} v2, v0
    return
}}

{others}"
    );
    common::compile(&text)
}

/// What becomes of these bits; the result has so many.
fn run(device: &Device, code: &Code, input: u128, bits: u32) -> End {
    let memory = device
        .upload(&[input as u64, (input >> 64) as u64])
        .expect("memory");
    let report = common::launch(device, code, "k", common::block(1), &[&memory]);
    match report.fault.map(|fault| fault.kind) {
        None => {
            let words: Vec<u64> = device.download(&memory).expect("the result");
            let value = u128::from(words[0]) | u128::from(words[1]) << 64;
            End::Value(value & (u128::MAX >> (128 - bits)))
        }
        Some(FaultKind::Trap { code, .. }) => {
            End::Trap(TrapCode::from_raw(code.try_into().expect("a code")))
        }
        Some(other) => panic!("{other}"),
    }
}

/// The value of a float's bits.
fn value_of(ty: &str, bits: u64) -> f64 {
    match ty {
        "f16" => f16::from_bits(bits as u16).to_f64(),
        "f32" => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The bits of the nearest float.
fn bits_of(ty: &str, value: f64) -> u64 {
    match ty {
        "f16" => f16::from_f64(value).to_bits().into(),
        "f32" => (value as f32).to_bits().into(),
        _ => value.to_bits(),
    }
}

/// What converting ends in: all the numbers are exact in f64.
fn converted(value: f64, bits: u32, signed: bool) -> End {
    if value.is_nan() {
        return End::Trap(TrapCode::BAD_CONVERSION_TO_INTEGER);
    }
    let whole = value.trunc();
    let (low, high) = match signed {
        true => (-(bits as f64 - 1.0).exp2(), (bits as f64 - 1.0).exp2()),
        false => (0.0, (bits as f64).exp2()),
    };
    if !(low..high).contains(&whole) {
        return End::Trap(TrapCode::INTEGER_OVERFLOW);
    }
    let number = if signed {
        whole as i128 as u128
    } else {
        whole as u128
    };
    End::Value(number & (u128::MAX >> (128 - bits)))
}

#[test]
fn conversions_trap_at_the_ends_of_the_range() {
    let device = Device::simulator(SimConfig::default());
    let (mut values, mut traps) = (0, 0);
    for (from, width) in [("f16", 16), ("f32", 32), ("f64", 64)] {
        for bits in [8u32, 16, 32, 64, 128] {
            for signed in [true, false] {
                let sign = if signed { "sint" } else { "uint" };
                let work = format!("    v2 = fcvt_to_{sign}.i{bits} v1");
                let code = compile(from, &format!("i{bits}"), "", &work, "");
                let edges = [
                    0.0,
                    -1.0,
                    1.0,
                    (f64::from(bits) - 1.0).exp2(),
                    -(f64::from(bits) - 1.0).exp2(),
                    -(f64::from(bits) - 1.0).exp2() - 1.0,
                    f64::from(bits).exp2(),
                    f64::INFINITY,
                    f64::NEG_INFINITY,
                    f64::NAN,
                ];
                let mut inputs = Vec::new();
                for edge in edges {
                    let at = bits_of(from, edge);
                    // Neighbours in the order of magnitudes.
                    inputs.extend([
                        at,
                        at.wrapping_add(1),
                        at.wrapping_sub(1),
                        at.wrapping_sub(2),
                    ]);
                }
                inputs.push(1 << (width - 1));
                for input in inputs {
                    let input = input & (u64::MAX >> (64 - width));
                    let expected = converted(value_of(from, input), bits, signed);
                    let found = run(&device, &code, input.into(), bits);
                    assert_eq!(found, expected, "{work} of {from} {input:#x}");
                    match expected {
                        End::Value(_) => values += 1,
                        End::Trap(_) => traps += 1,
                    }
                }
            }
        }
    }
    assert!(
        values > 300 && traps > 300,
        "{values} values, {traps} traps"
    );
}

#[test]
fn sums_trap_when_they_overflow() {
    let device = Device::simulator(SimConfig::default());
    let code = TrapCode::unwrap_user(200);
    for (ty, bits) in [("i32", 32), ("i64", 64)] {
        for addend in [0i64, 1, 5, -1, i64::from(i32::MIN)] {
            let work = format!(
                "    v3 = iconst.{ty} {addend}\n    v2 = uadd_overflow_trap v1, v3, user200"
            );
            let kernel = compile(ty, ty, "", &work, "");
            let mask = u128::MAX >> (128 - bits);
            let addend = addend as i128 as u128 & mask;
            for x in [
                0,
                1,
                mask,
                mask - 1,
                mask - 4,
                mask - 5,
                mask >> 1,
                (mask >> 1) + 1,
            ] {
                let expected = match x + addend > mask {
                    true => End::Trap(code),
                    false => End::Value(x + addend),
                };
                assert_eq!(
                    run(&device, &kernel, x, bits),
                    expected,
                    "{ty} {x:#x} + {addend:#x}"
                );
            }
        }
    }
}

#[test]
fn conditional_traps_of_every_type() {
    let device = Device::simulator(SimConfig::default());
    for bits in [8u32, 16, 32, 64, 128] {
        let ty = format!("i{bits}");
        for (operation, traps_on_zero) in [("trapz", true), ("trapnz", false)] {
            for (text, code) in [
                ("user1", TrapCode::unwrap_user(1)),
                ("user250", TrapCode::unwrap_user(250)),
                ("heap_oob", TrapCode::HEAP_OUT_OF_BOUNDS),
                ("int_divz", TrapCode::INTEGER_DIVISION_BY_ZERO),
                ("bad_toint", TrapCode::BAD_CONVERSION_TO_INTEGER),
                ("stk_ovf", TrapCode::STACK_OVERFLOW),
            ] {
                let work = format!("    {operation} v1, {text}\n    v2 = bnot v1");
                let kernel = compile(&ty, &ty, "", &work, "");
                let mask = u128::MAX >> (128 - bits);
                // A set bit at either end, and in the last word alone.
                for x in [0, 1, 1 << (bits - 1), mask] {
                    let expected = match (x == 0) == traps_on_zero {
                        true => End::Trap(code),
                        false => End::Value(!x & mask),
                    };
                    assert_eq!(
                        run(&device, &kernel, x, bits),
                        expected,
                        "{operation}.{ty} {x:#x}"
                    );
                }
            }
        }
    }
}

/// A trap ends the kernel wherever it is: in a block of its own, in a function that is called, in one that is jumped
/// to.
#[test]
fn traps_in_blocks_and_functions() {
    let device = Device::simulator(SimConfig::default());
    let others = "function %strict(i32) -> i32 tail {
block0(v0: i32):
    v1 = iconst.i32 10
    v2 = icmp ult v0, v1
    brif v2, block1, block2
block1:
    v3 = iadd v0, v0
    return v3
block2 cold:
    trap user7
}

function %onwards(i32) -> i32 tail {
    fn0 = %strict(i32) -> i32 tail
block0(v0: i32):
    return_call fn0(v0)
}
";
    for callee in ["strict", "onwards"] {
        let declarations = format!("    fn0 = %{callee}(i32) -> i32 tail");
        let code = compile("i32", "i32", &declarations, "    v2 = call fn0(v1)", others);
        for (x, expected) in [
            (4, End::Value(8)),
            (9, End::Value(18)),
            (10, End::Trap(TrapCode::unwrap_user(7))),
            (0xffff_ffff, End::Trap(TrapCode::unwrap_user(7))),
        ] {
            assert_eq!(run(&device, &code, x, 32), expected, "%{callee} of {x}");
        }
    }
}

/// Calling a null pointer is a fault, whatever the module's first function is.
#[test]
fn calls_of_null_are_faults() {
    let code = compile(
        "i64",
        "i64",
        "    sig0 = (i64) -> i64",
        "    v2 = call_indirect sig0, v1(v1)",
        "",
    );
    let device = Device::simulator(SimConfig::default());
    for target in [0u64, 8, 1 << 40] {
        let memory = device.upload(&[target, 0]).expect("memory");
        let report = common::launch(&device, &code, "k", common::block(1), &[&memory]);
        let kind = report.fault.map(|fault| fault.kind);
        assert!(
            matches!(
                kind,
                Some(FaultKind::IllegalInstruction(_) | FaultKind::BadJump { .. })
            ),
            "{target:#x}: {kind:?}"
        );
    }
}
