//! The uniform datapath and the delegation of the trait.

use super::random::Random;
use crate::sim::semantics::Reference;
use crate::sim::semantics::operands::*;

#[test]
fn uniform_arithmetic() {
    let mut random = Random::for_test("uiadd");
    let reference = Reference::default();
    for _ in 0..20_000 {
        let (a, b) = (random.long(), random.long());
        for (width, modulus) in [(MOVW::W32, 1i128 << 32), (MOVW::W64, 1 << 64)] {
            for (a_neg, b_neg) in [(false, false), (true, false), (false, true), (true, true)] {
                let signed = |value: u64, negated: bool| {
                    if negated {
                        -i128::from(value)
                    } else {
                        i128::from(value)
                    }
                };
                let sum = (signed(a, a_neg) + signed(b, b_neg)).rem_euclid(modulus);
                let m = uiadd::Modifiers {
                    width,
                    a_neg,
                    b_neg,
                };
                assert_eq!(
                    i128::from(reference.uiadd(&m, &uiadd::Sources { a, b }).d),
                    sum
                );
            }
            let copy = i128::from(b) % modulus;
            assert_eq!(
                i128::from(
                    reference
                        .umov(&umov::Modifiers { width }, &umov::Sources { b })
                        .d
                ),
                copy
            );
            assert_eq!(
                i128::from(
                    reference
                        .uldc(&uldc::Modifiers { width }, &uldc::Sources { b })
                        .d
                ),
                copy
            );
        }
    }
}
