//! Messages of Cranelift's verifier about types.

use crate::text::list;
use cranelift_codegen::ir::instructions::ResolvedConstraint;
use cranelift_codegen::ir::types::{F16, F32, F32X4, F64, I8, I16, I32, I32X4, I64, I128};
use cranelift_codegen::ir::{Function, Inst};

/// A message of the verifier with the types that an operation takes, where it shows how Cranelift represents a set of
/// them.
pub fn with_types_listed(func: &Function, inst: Inst, message: String) -> String {
    const SET: &str = "ValueTypeSet {";
    let Some((before, set)) = message.split_once(SET) else {
        return message;
    };
    let mut open = 1;
    let end = set.find(|c| {
        open += i32::from(c == '{') - i32::from(c == '}');
        open == 0
    });
    let constraints = func.dfg.insts[inst].opcode().constraints();
    let argument = before
        .rsplit_once("arg ")
        .and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let set_of_types = match argument {
        Some(index) if index < constraints.num_fixed_value_arguments() => {
            match constraints.value_argument_constraint(index, func.dfg.ctrl_typevar(inst)) {
                ResolvedConstraint::Free(types) => Some(types),
                ResolvedConstraint::Bound(_) => None,
            }
        }
        _ => constraints.ctrl_typeset(),
    };
    let scalars = [I8, I16, I32, I64, I128, F16, F32, F64];
    let mut types: Vec<String> = (scalars.into_iter())
        .filter(|&ty| set_of_types.is_some_and(|types| types.contains(ty)))
        .map(|ty| ty.to_string())
        .collect();
    if set_of_types.is_some_and(|types| types.contains(I32X4) || types.contains(F32X4)) {
        types.push("vectors".to_owned());
    }
    let rest = end.map_or("", |end| &set[end + 1..]);
    format!("{before}{}{rest}", list(&types))
}

#[cfg(test)]
mod tests {
    use crate::build::{self, GpuBuilder};
    use crate::clif;
    use cranelift_codegen::ir::InstBuilder;
    use cranelift_codegen::ir::types::{F32, I64, I128};

    #[test]
    fn the_types_that_an_operation_takes_are_named() {
        let func = build::function("f", &[F32, I128], &[], |b, p| {
            b.ins().uextend(I64, p[1]);
            b.if_then(p[0], |_| ());
            b.ins().return_(&[]);
        });
        let errors = clif::verify(&func).unwrap_err();
        let errors = errors.to_string();
        assert!(!errors.contains("ValueTypeSet"), "{errors}");
        for part in [
            "failed to satisfy type set i8, i16 or i32",
            "(allowed set is i8, i16, i32, i64 or i128)",
        ] {
            assert!(errors.contains(part), "{part}: {errors}");
        }
    }
}
