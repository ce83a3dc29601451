//! The decision itself, where golden files would show it only in part.

use crate::analysis;
use crate::clif::source::SourceFile;
use crate::clif::{self, Preparer};
use crate::isa::{Optype, Register, RegisterClass, VReg};
use crate::lower::{self, Facts, Input};
use crate::remarks::Remarks;
use crate::vcode::{FunctionKind, KernelInfo, Parameter, VCode};
use cranelift_codegen::ir::types;
use std::fmt::Write;

/// The kernel `(i64, i32, i32)` with these lines after v10, the number of the block, and v11, that of the thread.
fn kernel(lines: &str) -> VCode<VReg> {
    let parameters = [
        (0x160, types::I64),
        (0x168, types::I32),
        (0x16c, types::I32),
    ]
    .map(|(offset, ty)| Parameter { offset, ty })
    .to_vec();
    let kind = FunctionKind::Kernel(KernelInfo {
        parameters,
        ..KernelInfo::default()
    });
    function(lines, "; kernel\n", kind)
}

fn function(lines: &str, mark: &str, kind: FunctionKind) -> VCode<VReg> {
    let text = format!(
        "{mark}function %k(i64, i32, i32) {{\nfn0 = %gpu_ctaid_x() -> i32\nfn1 = %gpu_tid_x() -> i32\nfn2 = %other()\n\
         block0(v0: i64, v1: i32, v2: i32):\nv10 = call fn0()\nv11 = call fn1()\n{lines}\n}}"
    );
    let function = (SourceFile::parse("k.clif", &text).unwrap().functions).remove(0);
    let options = clif::Options {
        kernel: function.kernel,
        ..clif::Options::DEVICE
    };
    let prepared = (Preparer::new())
        .prepare(function.func, &options, &mut |_, _| {})
        .unwrap();
    let facts = analysis::Facts::compute(&prepared.subject());
    let input = Input {
        func: &prepared.func,
        name: "k",
        kind,
        facts: Facts {
            flow: &prepared.flow,
            meetings: &prepared.meetings,
            uniformity: &facts.uniformity,
            provenance: &facts.provenance,
            alignment: &facts.alignment,
            users: &facts.users,
            truths: &facts.truths,
            intrinsics: &prepared.intrinsics,
            ordering: &facts.ordering,
        },
        names: &|_| "other".to_owned(),
        tables: &|_| None,
        assume_aligned: false,
        stack_redzones: false,
        tracking: None,
    };
    let code = lower::lower(
        &input,
        &mut lower::Scratch::default(),
        &mut crate::emit::Constants::new(),
        &mut Remarks::default(),
    );
    let code = code.unwrap();
    code.verify().unwrap();
    code
}

fn count(code: &VCode<VReg>, optype: Optype) -> usize {
    let of = code.insts.iter().filter(|e| e.inst.optype() == optype);
    of.count()
}

/// Words of parameters of blocks in uniform registers.
fn parameters(code: &VCode<VReg>) -> usize {
    let all = code.blocks.values().flat_map(|data| &data.params);
    all.filter(|p| p.class() == RegisterClass::Uniform).count()
}

#[test]
fn a_value_stays_when_many_that_are_made_of_it_go() {
    // Stores need general registers: forty products go, and what they are made of is the other factor of a
    // multiplication.
    let mut lines = "v20 = iadd v10, v1\n".to_owned();
    for i in 0..40 {
        let (factor, product) = (100 + 2 * i, 101 + 2 * i);
        writeln!(lines, "v{factor} = load.i32 v0+{}", 4 * i).unwrap();
        writeln!(lines, "v{product} = imul v20, v{factor}").unwrap();
        writeln!(lines, "store v{product}, v0+{}", 4 * i + 256).unwrap();
        // Uniform itself, until it is stored.
        writeln!(lines, "v{} = bxor v20, v11", 300 + 2 * i).unwrap();
        writeln!(lines, "v{} = isub v20, v{}", 301 + 2 * i, 300 + 2 * i).unwrap();
        writeln!(lines, "store v{}, v0+{}", 301 + 2 * i, 4 * i + 512).unwrap();
    }
    let code = kernel(&(lines + "return"));
    assert_eq!(count(&code, Optype::UIADD), 1, "{code}");
    assert_eq!(count(&code, Optype::UIMAD), 0, "{code}");
    assert!(count(&code, Optype::IMUL) > 0, "{code}");
}

#[test]
fn what_is_read_in_general_registers_is_computed_there_only() {
    // A store has no place for it.
    let code = kernel("v20 = iadd v10, v1\nv21 = imul v20, v2\nstore v21, v0\nreturn");
    assert_eq!(
        count(&code, Optype::S2UR) + count(&code, Optype::UIMAD),
        0,
        "{code}"
    );
    assert_eq!(count(&code, Optype::S2R), 1, "{code}");
}

#[test]
fn one_of_two_in_the_same_instruction_stays() {
    // Only one operand of an addition may be uniform; the value that was there first is.
    let code = kernel(
        "v20 = imul v10, v1\nv21 = ishl v20, v2\nv22 = bxor v11, v20\nv23 = fcvt_from_sint.f32 v22\n\
         v24 = fcvt_to_sint_sat.i32 v23\nv25 = imul v24, v20\nstore v25, v0\nstore v21, v0+4\nreturn",
    );
    assert_eq!(count(&code, Optype::UIMAD), 0, "{code}");
    let code = kernel(
        "v20 = imul v10, v1\nv22 = bxor v11, v20\nv25 = imul v22, v20\nstore v25, v0\nreturn",
    );
    assert_eq!(count(&code, Optype::UIMAD), 1, "{code}");
}

#[test]
fn only_what_a_loop_carries_counts_as_its_chain() {
    let around = |before: &str, inside: &str| {
        format!(
            "v20 = iconst.i32 0\nv21 = iconst.i32 1\n{before}\njump block1(v20, v11)\n\
             block1(v30: i32, v31: i32):\n{inside}\nv33 = bxor v31, v30\n\
             v34 = icmp ult v32, v2\nbrif v34, block1(v32, v33), block2\nblock2:\nstore v33, v0\nreturn"
        )
    };
    let far = "v22 = iadd v10, v1\nv23 = imul v22, v2\nv24 = isub v23, v22\nv25 = imul v24, v23\nv26 = isub v25, v24";
    // One addition from round to round, of a value that takes long but is there before.
    let invariant = kernel(&around(far, "v32 = iadd v30, v26"));
    assert_eq!(parameters(&invariant), 1, "{invariant}");
    // The same operations on what is carried.
    let chain = "v22 = iadd v30, v1\nv23 = imul v22, v2\nv24 = isub v23, v22\nv25 = imul v24, v23\nv32 = isub v25, v24";
    let carried = kernel(&around("", chain));
    assert_eq!(parameters(&carried), 0, "{carried}");
}

#[test]
fn what_is_moved_up_stands_in_order() {
    // A divergent block in another one: all of it is computed in the entry, operands first.
    let code = kernel(
        "brif v11, block1, block4\nblock1:\nv20 = iadd v10, v1\nv21 = imul v20, v2\n\
         v22 = isub v21, v20\nv23 = bxor v11, v22\n\
         v24 = icmp ult v23, v11\nbrif v24, block2, block4\nblock2:\nv25 = isub v22, v2\n\
         v26 = bxor v23, v25\nstore v26, v0\njump block4\nblock4:\nstore v11, v0+8\nreturn",
    );
    let entry = code.block_insts(code.entry_block());
    let mut seen: Vec<VReg> = Vec::new();
    let moved = entry
        .iter()
        .filter(|e| e.inst.form().is_on_uniform_datapath());
    for entry in moved.clone() {
        assert!(entry.inst.uses().all(|reg| seen.contains(&reg)), "{code}");
        seen.extend(entry.inst.definitions());
    }
    assert!(moved.clone().count() >= 4, "{code}");
    let total = code
        .insts
        .iter()
        .filter(|e| e.inst.form().is_on_uniform_datapath());
    assert_eq!(total.count(), moved.count(), "{code}");
}

#[test]
fn nothing_is_uniform_beside_a_call() {
    let text = "v20 = iadd v10, v1\nv21 = bxor v11, v20\nstore v21, v0\nreturn";
    assert_eq!(count(&kernel(text), Optype::UIADD), 1);
    let beside = kernel(&format!("call fn2()\n{text}"));
    assert_eq!(count(&beside, Optype::UIADD), 0, "{beside}");
    let device = function(text, "", FunctionKind::Device);
    assert_eq!(count(&device, Optype::UIADD), 0, "{device}");
}
