//! Lowering alone: the VCode of small functions, looked at as text. Golden files of whole functions are in
//! `filetests/`.

use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::{Options, Unroll};
use cranelift_thisgpu::unstable::abi;
use cranelift_thisgpu::unstable::analysis;
use cranelift_thisgpu::unstable::clif::{self, Preparer};
use cranelift_thisgpu::unstable::emit::Constants;
use cranelift_thisgpu::unstable::lower::{self, Facts, Input, Scratch};
use cranelift_thisgpu::unstable::remarks::Remarks;
use cranelift_thisgpu::unstable::vcode::{FunctionKind, KernelInfo, Parameter};

/// The VCode of the first function of `text`; a kernel when it is marked.
fn lowered(text: &str) -> String {
    let file = SourceFile::parse("test.clif", text).expect("valid CLIF");
    let function = &file.functions[0];
    // Loops are lowered as they are written.
    let settings = Options {
        unroll: Unroll::Off,
        ..Options::DEFAULT
    };
    let options = clif::Options {
        kernel: function.kernel,
        settings: &settings,
        ..clif::Options::DEVICE
    };
    let prepared = Preparer::new()
        .prepare(function.func.clone(), &options, &mut |_, _| {})
        .expect("valid function");
    let facts = analysis::Facts::compute(&prepared.subject());
    let types: Vec<_> = prepared
        .func
        .signature
        .params
        .iter()
        .map(|p| p.value_type)
        .collect();
    let (offsets, _) = abi::parameter_offsets(types.iter().map(|t| t.bytes()));
    let parameters = offsets
        .into_iter()
        .zip(types)
        .map(|(offset, ty)| Parameter { offset, ty })
        .collect();
    let kind = match prepared.kernel {
        Some(_) => FunctionKind::Kernel(KernelInfo {
            parameters,
            shared_bytes: 0,
            max_threads: None,
            min_blocks: None,
        }),
        None => FunctionKind::Device,
    };
    let input = Input {
        func: &prepared.func,
        name: "f",
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
        names: &|name| format!("{name:?}"),
        tables: &|_| None,
        assume_aligned: false,
        stack_redzones: false,
        tracking: None,
    };
    let code = lower::lower(
        &input,
        &mut Scratch::default(),
        &mut Constants::default(),
        &mut Remarks::default(),
    )
    .expect("every operation has a rule");
    code.verify().unwrap_or_else(|e| panic!("{e}\n{code}"));
    code.to_string()
}

fn expect(text: &str, lines: &[&str]) {
    let code = lowered(text);
    println!("{code}");
    let mut rest = code.as_str();
    for line in lines {
        let at = rest
            .find(line)
            .unwrap_or_else(|| panic!("no `{line}` (in this order) in\n{code}"));
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn saxpy_uses_parameters_and_wide_products() {
    expect(
        "; kernel
function %saxpy(i32, f32, i64, i64) {
    gv0 = symbol colocated %gpu_tid_x
    gv1 = symbol colocated %gpu_ctaid_x
    gv2 = symbol colocated %gpu_ntid_x
block0(v0: i32, v1: f32, v2: i64, v3: i64):
    v4 = symbol_value.i32 gv0
    v5 = symbol_value.i32 gv1
    v6 = symbol_value.i32 gv2
    v7 = imul v5, v6
    v8 = iadd v7, v4
    v9 = icmp uge v8, v0
    brif v9, block2, block1
block1:
    v10 = uextend.i64 v8
    v17 = iconst.i32 2
    v11 = ishl v10, v17
    v12 = iadd v2, v11
    v13 = iadd v3, v11
    v14 = load.f32 aligned v12
    v15 = load.f32 aligned v13
    v16 = fma v1, v14, v15
    store aligned v16, v13
    jump block2
block2:
    return
}
",
        &[
            "S2R",
            "IMAD",
            "ISETP.GE.AND.U32",
            "branch",
            "IMAD.WIDE.U32",
            "c[0x0][",
            "LDG",
            "FFMA",
            "c[0x0][0x164]",
            "STG",
            "exit",
        ],
    );
}

#[test]
fn wide_sums_are_carry_chains() {
    expect(
        "function %f(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iadd v0, v1
    return v2
}
",
        &["IADD.X", "IADD.X", "return"],
    );
}

#[test]
fn loops_carry_values_on_edges() {
    expect(
        "function %f(i32) -> i32 {
block0(v0: i32):
    v1 = iconst.i32 0
    jump block1(v1, v0)
block1(v2: i32, v3: i32):
    v4 = iadd v2, v3
    v6 = iconst.i32 -1
    v5 = iadd v3, v6
    brif v5, block1(v4, v5), block2
block2:
    return v4
}
",
        &[
            "jump block1",
            "block1(",
            "IADD",
            "ISETP.NE",
            "branch",
            "return",
        ],
    );
}

#[test]
fn pointers_of_computed_offsets_are_uniform() {
    expect(
        "; kernel
function %f(i8, i8, i64, i64) {
block0(v0: i8, v1: i8, v2: i64, v3: i64):
    v4 = load.i64 aligned v3
    v5 = iadd v2, v4
    v6 = iadd v0, v1
    store.i8 v6, v5
    return
}
",
        &[
            "LDC.U8", "ULDC.64", "ULDC.64", "LDG.64", "[RZ+%u", "ST.U8 [", "+%u",
        ],
    );
}

#[test]
fn bit_tests_are_one_lop3() {
    expect(
        "function %f(i32, i8) -> i32 {
block0(v0: i32, v1: i8):
    v2 = iconst.i32 64
    v3 = band v0, v2
    v4 = iconst.i32 0
    v5 = icmp ne v3, v4
    v6 = select v5, v0, v2
    v7 = select v1, v6, v4
    return v7
}
",
        &[
            "LOP3.POR %p",
            "RZ, %",
            "0x40",
            "SEL",
            "LOP3.POR %p",
            "0xff",
            "SEL",
            "return",
        ],
    );
}

/// Instructions of a function of one block that returns the result of one operation.
fn instructions(parameters: &str, result: &str, body: &str) -> usize {
    let names: Vec<String> = parameters
        .split(", ")
        .enumerate()
        .map(|(i, ty)| format!("v{i}: {ty}"))
        .collect();
    let text = lowered(&format!(
        "function %f({parameters}) -> {result} {{
        block0({}):
            {body}
            return v9
        }}",
        names.join(", ")
    ));
    text.lines()
        .skip_while(|line| !line.starts_with("block"))
        .skip(1)
        .take_while(|line| !line.trim_start().starts_with("return"))
        .count()
}

#[test]
fn integer_operations_take_few_instructions() {
    for (most, parameters, result, body) in [
        (2, "i64, i64", "i64", "v9 = iadd v0, v1"),
        (2, "i64, i64", "i64", "v9 = isub v0, v1"),
        (3, "i64, i64", "i64", "v9 = imul v0, v1"),
        (
            1,
            "i32, i32, i64",
            "i64",
            "v3 = sextend.i64 v0\n v4 = sextend.i64 v1\n v5 = imul v3, v4\n v9 = iadd v5, v2",
        ),
        (6, "i64, i64", "i64", "v9 = umulhi v0, v1"),
        (12, "i128, i128", "i128", "v9 = imul v0, v1"),
        (4, "i128, i128", "i128", "v9 = iadd v0, v1"),
        // Two comparisons, and the choice of a word.
        (
            3,
            "i64, i64, i32, i32",
            "i32",
            "v4 = icmp slt v0, v1\n v9 = select v4, v2, v3",
        ),
        (2, "i64", "i64", "v1 = iconst.i64 13\n v9 = ishl v0, v1"),
        (2, "i64", "i64", "v1 = iconst.i64 13\n v9 = ushr v0, v1"),
        (2, "i64", "i64", "v1 = iconst.i64 45\n v9 = sshr v0, v1"),
        (2, "i64", "i64", "v1 = iconst.i64 45\n v9 = rotl v0, v1"),
        (2, "i64, i32", "i64", "v9 = ishl v0, v1"),
        (4, "i128", "i128", "v1 = iconst.i64 45\n v9 = sshr v0, v1"),
        (2, "i32", "i32", "v9 = clz v0"),
        (3, "i32", "i32", "v9 = ctz v0"),
        (2, "i64", "i64", "v9 = bswap v0"),
        (10, "i32", "i32", "v9 = bitrev v0"),
        (5, "i64", "i64", "v9 = iabs v0"),
        (18, "i32, i32", "i32", "v9 = udiv v0, v1"),
        (52, "i64, i64", "i64", "v9 = udiv v0, v1"),
        (
            1,
            "i32",
            "i32",
            "v1 = iconst.i32 9\n v2 = ishl v0, v1\n v9 = sshr v2, v1",
        ),
        (5, "i8x4, i8x4", "i8x4", "v9 = iadd v0, v1"),
        (4, "i16x2, i16x2", "i16x2", "v9 = isub v0, v1"),
        (2, "i32x2, i32x2", "i16x4", "v9 = snarrow v0, v1"),
        (14, "i8x4, i8x4", "i8x4", "v9 = sadd_sat v0, v1"),
    ] {
        let count = instructions(parameters, result, body);
        assert!(
            count <= most && count > 0,
            "{count} instructions for {body}"
        );
    }
}

/// Two operations go into one LOP3, however long the chain is and whether its trees are remembered or not.
#[test]
fn chains_of_bitwise_operations_fill_their_trees() {
    for length in 1..40 {
        let mut text =
            "function %f(i32, i32, i32) -> i32 {\nblock0(v0: i32, v1: i32, v2: i32):\n".to_owned();
        let operations = ["band", "bor", "bxor"];
        for step in 0..length {
            let (operation, operand) = (operations[step % 3], [1, 2, 0][step % 3]);
            let before = if step == 0 { 0 } else { step + 2 };
            text += &format!("    v{} = {operation} v{before}, v{operand}\n", step + 3);
        }
        text += &format!("    return v{}\n}}\n", length + 2);
        let code = lowered(&text);
        let trees = code.matches("LOP3").count();
        assert!(trees <= length.div_ceil(2), "{length} operations:\n{code}");
    }
}
