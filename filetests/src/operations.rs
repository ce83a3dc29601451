//! Which operations Cranelift has: every opcode with every type that it can have.
//!
//! Cranelift's own constraints say which types those are, so an opcode that Cranelift gains is in the list without
//! anybody adding it. The coverage test asks that each of them is run or refused; the fuzzer writes its programs from
//! them.

use cranelift_codegen::ir::instructions::{ResolvedConstraint, ValueTypeSet};
use cranelift_codegen::ir::{Opcode, Type, types};

/// The types of values: all scalars but f128, which the target does not have, and vectors from 16 to 128 bits.
pub const TYPES: [Type; 24] = [
    types::I8,
    types::I16,
    types::I32,
    types::I64,
    types::I128,
    types::F16,
    types::F32,
    types::F64,
    types::I8X2,
    types::I8X4,
    types::I16X2,
    types::F16X2,
    types::I8X8,
    types::I16X4,
    types::I32X2,
    types::F16X4,
    types::F32X2,
    types::I8X16,
    types::I16X8,
    types::I32X4,
    types::I64X2,
    types::F16X8,
    types::F32X4,
    types::F64X2,
];

/// Opcodes that no type of a fixed size fits, and why.
pub const WITHOUT_TYPES: [(Opcode, &str); 1] = [(
    Opcode::ExtractVector,
    "takes dynamic vectors, which the target does not have",
)];

/// An opcode with its types.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// The opcode.
    pub opcode: Opcode,
    /// The controlling type; [`types::INVALID`] where there is none.
    pub control: Type,
    /// Types of the operands that the controlling type leaves free ([`free_operands`]): amounts of shifts, sources of
    /// conversions, addresses, …
    pub free: Vec<Type>,
}

/// The operations of an opcode on values of `types`, as far as Cranelift's constraints tell; some of them its verifier
/// refuses.
pub fn of_opcode(opcode: Opcode, types: &[Type]) -> Vec<Operation> {
    if WITHOUT_TYPES.iter().any(|(without, _)| *without == opcode) {
        return Vec::new();
    }
    let controls = match opcode.constraints().ctrl_typeset() {
        Some(set) => members(set, types),
        None => vec![types::INVALID],
    };
    let of_control = |control| {
        let free = free_types(opcode, control, types).into_iter();
        free.map(move |free| Operation {
            opcode,
            control,
            free,
        })
    };
    controls.into_iter().flat_map(of_control).collect()
}

/// The positions of the operands whose types the controlling type leaves free, with the types that they can have.
pub fn free_operands(opcode: Opcode, control: Type) -> impl Iterator<Item = (usize, ValueTypeSet)> {
    let constraints = opcode.constraints();
    (0..constraints.num_fixed_value_arguments()).filter_map(move |operand| {
        match constraints.value_argument_constraint(operand, control) {
            ResolvedConstraint::Free(set) => Some((operand, set)),
            ResolvedConstraint::Bound(_) => None,
        }
    })
}

fn members(set: ValueTypeSet, types: &[Type]) -> Vec<Type> {
    let types = types.iter().copied();
    types.filter(|&ty| set.contains(ty)).collect()
}

/// All combinations of types of the free operands.
fn free_types(opcode: Opcode, control: Type, types: &[Type]) -> Vec<Vec<Type>> {
    let mut combinations = vec![Vec::new()];
    for (_, set) in free_operands(opcode, control) {
        let members = members(set, types);
        let extended = combinations.iter().flat_map(|before: &Vec<Type>| {
            let with = |&ty: &Type| before.iter().copied().chain([ty]).collect();
            members.iter().map(with)
        });
        combinations = extended.collect();
    }
    combinations
}
