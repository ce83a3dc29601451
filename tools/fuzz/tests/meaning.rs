//! What proofs take CLIF to mean, against the host and Cranelift's interpreter: every integer operation alone, at each
//! of its types, for corner and random values.
//!
//! What traps is left out: the oracles end there. `tools/fuzz/tests/specification.rs` compares that too.

use cranelift_codegen::data_value::DataValue;
use fuzz::catalogue::{Catalogue, Oracle};
use fuzz::operation::Operation;
use fuzz::program::Program;
use fuzz::random::Random;
use fuzz::straight;
use std::collections::BTreeMap;
use thisgpu_verify::{Effect, Limits, effect_of};

/// Calls of each function.
const CALLS: usize = 60;
/// Functions of an operation: each has other conditions, lanes or masks.
const CHOICES: u64 = 12;
const LIMITS: Limits = Limits {
    paths: 8,
    steps: 100,
};

fn bits(value: &DataValue) -> u128 {
    let mut bytes = [0; 16];
    value.write_to_slice_le(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// How many calls of an operation give what the oracle gives.
fn agreeing(catalogue: &Catalogue, oracle: Oracle, operation: Operation, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let func = straight::alone(operation, &mut random);
    let (mut calls, mut found) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let params = func.signature.params.iter();
        let call: Vec<DataValue> = params.map(|param| random.value(param.value_type)).collect();
        let arguments: Vec<u128> = call.iter().map(bits).collect();
        match effect_of(&func, &arguments, LIMITS) {
            Ok(Effect::Returns(results)) => {
                calls.push(call);
                found.push(results);
            }
            Ok(Effect::Traps(_)) => {}
            Err(reason) => panic!("{operation} cannot be said as terms: {reason}"),
        }
    }
    let program = Program {
        seed,
        oracle,
        settings: Vec::new(),
        functions: vec![func.clone()],
        calls: vec![calls],
    };
    let expected = program.expected(catalogue);
    let expected = expected.unwrap_or_else(|error| panic!("{operation}: {error}:\n{func}"));
    for ((call, found), expected) in program.calls[0].iter().zip(&found).zip(&expected[0]) {
        let expected: Vec<u128> = expected.iter().map(bits).collect();
        assert_eq!(
            found, &expected,
            "{operation}, seed {seed}, {oracle}, of {call:?}:\n{func}"
        );
    }
    found.len()
}

#[test]
fn operations_mean_what_the_oracles_say() {
    let catalogue = Catalogue::new();
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    let mut calls = 0;
    for operation in straight::operations() {
        match catalogue.oracle_of(operation) {
            Some(oracle) => {
                let agreeing = |seed| agreeing(&catalogue, oracle, operation, seed);
                calls += (0..CHOICES).map(agreeing).sum::<usize>();
            }
            None => *unknown.entry(operation.opcode.to_string()).or_default() += 1,
        }
    }
    println!("{calls} calls agree; no oracle for {unknown:?}");
    assert!(calls > 100_000, "only {calls}");
}
