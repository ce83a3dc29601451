//! One return for a device function.
//!
//! A divergent branch reconverges at its post-dominator. If lanes could return from different places, they would come
//! back to the caller one group after the other, and the caller's code behind the call would run once per group. With a
//! single return block every branch that does not leave the function otherwise has a post-dominator. Kernels are left
//! alone: their returns end lanes, nobody waits for them.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{BlockArg, Function, Inst, InstBuilder, Opcode, Type, Value};
use smallvec::SmallVec;

/// Sends all returns of `func` to one block, if there are several. True if the graph has changed.
pub fn unify_returns(func: &mut Function) -> bool {
    let returns: SmallVec<[Inst; 4]> = func
        .layout
        .blocks()
        .filter_map(|block| func.layout.last_inst(block))
        .filter(|inst| func.dfg.insts[*inst].opcode() == Opcode::Return)
        .collect();
    let &[_, .., last] = &returns[..] else {
        return false;
    };
    let exit = func.dfg.make_block();
    func.layout.append_block(exit);
    let types: Vec<Type> = func
        .signature
        .returns
        .iter()
        .map(|result| result.value_type)
        .collect();
    let values: Vec<Value> = types
        .into_iter()
        .map(|ty| func.dfg.append_block_param(exit, ty))
        .collect();
    let location = func.srcloc(last);
    FuncCursor::new(func)
        .at_bottom(exit)
        .with_srcloc(location)
        .ins()
        .return_(&values);
    for inst in returns {
        let args: Vec<BlockArg> = func
            .dfg
            .inst_args(inst)
            .iter()
            .map(|arg| (*arg).into())
            .collect();
        func.replace(inst).jump(exit, &args);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_returns_become_one() {
        let mut func = cranelift_reader::parse_functions(
            "function %f(i32) -> i32, i64 {
            block0(v0: i32):
                v1 = uextend.i64 v0
                brif v0, block1, block2
            block1:
                return v0, v1
            block2:
                v2 = iconst.i32 7
                return v2, v1
            }",
        )
        .unwrap()
        .remove(0);
        assert!(unify_returns(&mut func));
        let text = func.to_string();
        assert_eq!(text.matches("return").count(), 1, "{text}");
        assert!(
            text.contains("jump block3(v0, v1)") && text.contains("jump block3(v2, v1)"),
            "{text}"
        );
        let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
        cranelift_codegen::verify_function(&func, &flags).unwrap();
        assert!(!unify_returns(&mut func), "one return stays");
    }
}
