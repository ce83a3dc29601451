//! Merges equal calls of pure intrinsics and drops everything that nothing needs.
//!
//! To Cranelift's mid-end every call is opaque, so it neither merges `call ex2(v1)` with an equal call before it nor
//! drops one whose result is unused. This pass does both, with the same scoped table over the dominator tree that value
//! numbering uses: a call is replaced by an equal one that dominates it. Constant operands compare by their value,
//! since the mid-end makes a copy of a constant in every block that uses it. It runs before the mid-end, where calls
//! are barriers to its alias analysis, and after it, when more operands have become equal. Convergent calls are left
//! alone.
//!
//! Instructions without effect whose results are unused go too, so that nothing keeps a call alive that is unused
//! itself.

use crate::analysis::uses::{for_each_operand, has_effect};
use crate::constants;
use crate::intrinsics::Intrinsic;
use crate::intrinsics::resolve::Intrinsics;
use crate::values::tracking::Tracking;
use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, Function, Inst, Type, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// What the pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Calls replaced by an equal one.
    pub merged: usize,
    /// Instructions dropped, calls and others.
    pub dropped: usize,
}

/// An operand as far as equality of calls goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operand {
    Value(Value),
    Constant(Type, u64),
}

/// A call: which intrinsic (by the address of its row), of what.
type Key = (*const Intrinsic, SmallVec<[Operand; 4]>);

/// Merges and drops, if there is any call to merge. The dominator tree must be up to date and stays so. Aliases are
/// resolved on return if anything has changed.
pub fn merge_calls(
    func: &mut Function,
    domtree: &DominatorTree,
    intrinsics: &Intrinsics,
    tracking: &Tracking,
) -> Merged {
    if !has_pure_calls(func, intrinsics) {
        return Merged::default();
    }
    let merged = merge(func, domtree, intrinsics);
    if merged > 0 {
        tracking.resolve(func);
    }
    Merged {
        merged,
        dropped: drop_unused(func, intrinsics, domtree.cfg_postorder().iter().copied()),
    }
}

fn has_pure_calls(func: &Function, intrinsics: &Intrinsics) -> bool {
    func.dfg
        .ext_funcs
        .keys()
        .any(|callee| intrinsics.function(callee).is_some_and(Intrinsic::is_pure))
}

fn merge(func: &mut Function, domtree: &DominatorTree, intrinsics: &Intrinsics) -> usize {
    let Some(entry) = func.layout.entry_block() else {
        return 0;
    };
    let mut known: HashMap<Key, Inst> = HashMap::new();
    let mut scope: Vec<Key> = Vec::new();
    let mut merged = 0;
    let mut stack: Vec<(Block, Option<usize>)> = vec![(entry, None)];
    while let Some((block, leaving)) = stack.pop() {
        if let Some(mark) = leaving {
            scope.drain(mark..).for_each(|key| {
                known.remove(&key);
            });
            continue;
        }
        stack.push((block, Some(scope.len())));
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            let Some(intrinsic) = intrinsics
                .of_call(func, inst)
                .filter(|intrinsic| intrinsic.is_pure())
            else {
                continue;
            };
            let operands = func
                .dfg
                .inst_args(inst)
                .iter()
                .map(|arg| operand(func, *arg))
                .collect();
            let key = (std::ptr::from_ref(intrinsic), operands);
            if let Some(first) = known.get(&key) {
                func.dfg.replace_with_aliases(inst, *first);
                func.layout.remove_inst(inst);
                merged += 1;
            } else {
                known.insert(key.clone(), inst);
                scope.push(key);
            }
        }
        stack.extend(domtree.children(block).map(|child| (child, None)));
    }
    merged
}

fn operand(func: &Function, value: Value) -> Operand {
    let value = func.dfg.resolve_aliases(value);
    constants::bits(func, value).map_or(Operand::Value(value), |bits| {
        Operand::Constant(func.dfg.value_type(value), bits)
    })
}

/// Drops instructions that no effect depends on; returns how many. `postorder` has all blocks of the function, each
/// before those that dominate it, so that one sweep sees users before definitions. Aliases must be resolved.
pub fn drop_unused(
    func: &mut Function,
    intrinsics: &Intrinsics,
    postorder: impl IntoIterator<Item = Block>,
) -> usize {
    let mut needed: EntitySet<Value> = EntitySet::with_capacity(func.dfg.num_values());
    let mut dropped = 0;
    for block in postorder {
        let mut next = func.layout.last_inst(block);
        while let Some(inst) = next {
            next = func.layout.prev_inst(inst);
            let mut results = func.dfg.inst_results(inst).iter();
            if results.any(|&result| needed.contains(result)) || has_effect(func, inst, intrinsics)
            {
                for_each_operand(func, inst, |value| {
                    debug_assert!(!func.dfg.value_is_alias(value), "{value} is an alias");
                    needed.insert(value);
                });
            } else {
                func.layout.remove_inst(inst);
                dropped += 1;
            }
        }
    }
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intrinsics::resolve;
    use cranelift_codegen::flowgraph::ControlFlowGraph;

    #[test]
    fn equal_calls_merge_where_one_dominates() {
        let mut func = cranelift_reader::parse_functions(
            "function %f(f32, i64) {
                fn0 = %gpu_ex2_f32(f32) -> f32
                fn1 = %gpu_ballot(i8) -> i32
                fn2 = %gpu_dp4a_s8s8(i32, i32, i32) -> i32
            block0(v0: f32, v1: i64):
                v2 = call fn0(v0)
                v3 = call fn0(v0)
                v4 = fadd v2, v3
                store v4, v1
                v5 = iconst.i8 1
                v6 = call fn1(v5)
                v7 = call fn1(v5)
                v8 = iadd v6, v7
                brif v8, block1, block2
            block1:
                v9 = call fn0(v2)
                v10 = iconst.i32 7
                v11 = call fn2(v10, v10, v8)
                store v9, v1
                store v11, v1
                jump block3
            block2:
                v12 = call fn0(v3)
                store v12, v1
                jump block3
            block3:
                v13 = call fn0(v4)
                v14 = fmul v13, v13
                v15 = iconst.i32 7
                v16 = call fn2(v15, v15, v8)
                store v16, v1
                return
            }",
        )
        .unwrap()
        .remove(0);
        let intrinsics = resolve::resolve(&mut func, &|_| None).unwrap();
        let cfg = ControlFlowGraph::with_function(&func);
        let domtree = DominatorTree::with_function(&func, &cfg);
        let done = merge_calls(&mut func, &domtree, &intrinsics, &Tracking::default());
        let text = func.to_string();
        // v3 merges with v2; v9 and v12 are on different sides; the dp4a of block1 does not dominate block3.
        assert_eq!(done.merged, 1, "{text}");
        // v13 and v14 are unused.
        assert_eq!(done.dropped, 2, "{text}");
        assert_eq!(text.matches("call fn0").count(), 3, "{text}");
        assert_eq!(
            text.matches("call fn1").count(),
            2,
            "convergent calls stay: {text}"
        );
        let flags = cranelift_codegen::settings::Flags::new(cranelift_codegen::settings::builder());
        cranelift_codegen::verify_function(&func, &flags).unwrap();
    }

    #[test]
    fn constants_compare_by_value() {
        let mut func = cranelift_reader::parse_functions(
            "function %f(i32) -> i32 {
                fn0 = %gpu_lop3(i32, i32, i32, i32) -> i32
            block0(v0: i32):
                v1 = iconst.i32 0x96
                v2 = call fn0(v0, v0, v0, v1)
                v3 = iconst.i32 0x96
                v4 = call fn0(v0, v0, v0, v3)
                v5 = iconst.i32 0x97
                v6 = call fn0(v0, v0, v0, v5)
                v7 = iadd v2, v4
                v8 = iadd v7, v6
                return v8
            }",
        )
        .unwrap()
        .remove(0);
        let intrinsics = resolve::resolve(&mut func, &|_| None).unwrap();
        let cfg = ControlFlowGraph::with_function(&func);
        let domtree = DominatorTree::with_function(&func, &cfg);
        let done = merge_calls(&mut func, &domtree, &intrinsics, &Tracking::default());
        assert_eq!(
            done,
            Merged {
                merged: 1,
                dropped: 1
            },
            "{func}"
        );
    }
}
