//! Texts of CLIF that cannot be compiled, and of assembly that cannot be assembled.

use super::{Table, message};
use cranelift_thisgpu::{Compiler, Options, asm};

/// Name, text, words of the message.
const CLIF: &[(&str, &str, &[&str])] = &[
    ("no CLIF at all", "hello", &["<clif>:1", "hello"]),
    (
        "an operation that does not exist",
        "function %f() {\nblock0:\n    frobnicate\n    return\n}",
        &["<clif>:3", "^"],
    ),
    (
        "an operation almost",
        "function %f(i32) -> i32 {\nblock0(v0: i32):\n    v1 = imull v0, v0\n    return v1\n}",
        &["<clif>:3", "did you mean `imul`?"],
    ),
    (
        "an operation with a constant, of an older Cranelift",
        "function %f(i32) -> i32 {\nblock0(v0: i32):\n    v1 = band_imm.i32 v0, 3\n    return v1\n}",
        &["<clif>:3", "`iconst`, and use `band`"],
    ),
    (
        "a load of a stack slot, of an older Cranelift",
        "function %f() -> i32 {\n    ss0 = explicit_slot 8\nblock0:\n    v1 = stack_load.i32 ss0\n    return v1\n}",
        &["<clif>:4", "`stack_addr.i64`, and use `load`"],
    ),
    (
        "an atomic load with an offset",
        "function %f(i64) -> i32 {\nblock0(v0: i64):\n    v1 = atomic_load.i32 aligned v0+8\n    return v1\n}",
        &[
            "<clif>:3",
            "`atomic_load`",
            "`vA = iconst.i64 8`",
            "`vB = iadd v0, vA`",
        ],
    ),
    (
        "an atomic store with an offset",
        "function %f(i64, i32) {\nblock0(v0: i64, v1: i32):\n    atomic_store v1, v0-16\n    return\n}",
        &[
            "<clif>:3",
            "`atomic_store`",
            "`vA = iconst.i64 -16`",
            "`v0-16`",
        ],
    ),
    (
        "a signature behind one without a number",
        "function %f() {\n    fn0 = %g(i32) -> i32\n    sig0 = (i32)\nblock0:\n    return\n}",
        &["duplicate entity: sig0", "declare this one first"],
    ),
    (
        "a function without an end",
        "function %f() {\nblock0:\n    return\n",
        &["<clif>:"],
    ),
    (
        "a value that is not defined",
        "function %f() -> i32 {\nblock0:\n    return v7\n}",
        &["<clif>:3", "v7"],
    ),
    (
        "a block that is not defined",
        "function %f() {\nblock0:\n    jump block9\n}",
        &["<clif>:3", "block9"],
    ),
    (
        "a type that does not exist",
        "function %f(i33) {\nblock0(v0: i33):\n    return\n}",
        &["<clif>:1"],
    ),
    (
        "operands of two types",
        "function %f(i32, i64) -> i32 {\nblock0(v0: i32, v1: i64):\n    v2 = iadd v0, v1\n    return v2\n}",
        &["<clif>:3", "%f", "iadd", "^"],
    ),
    (
        "too few results",
        "function %f() -> i32 {\nblock0:\n    return\n}",
        &["<clif>:3", "%f"],
    ),
    (
        "a block without an end",
        "function %f() {\nblock0:\n    v0 = iconst.i32 1\n}",
        &["%f"],
    ),
    (
        "a function twice",
        "function %f() {\nblock0:\n    return\n}\nfunction %f() {\nblock0:\n    return\n}",
        &["<clif>:5", "%f is defined twice", "line 1"],
    ),
    (
        "a number of a value that would fill the memory",
        "function %f() {\nblock0:\n    v4000000000 = iconst.i32 1\n    return\n}",
        &["<clif>:3"],
    ),
    (
        "a kernel with a result",
        "; kernel\nfunction %k() -> i32 {\nblock0:\n    v0 = iconst.i32 1\n    return v0\n}",
        &["%k", "kernel"],
    ),
    (
        "a kernel with an unknown option",
        "; kernel shard=4\nfunction %k() {\nblock0:\n    return\n}",
        &["<clif>:1", "shard"],
    ),
    (
        "a kernel with shared memory that is no number",
        "; kernel shared=many\nfunction %k() {\nblock0:\n    return\n}",
        &["<clif>:1", "many"],
    ),
    (
        "a kernel with too much shared memory",
        "; kernel shared=1000000\nfunction %k() {\nblock0:\n    return\n}",
        &["1000000", "shared"],
    ),
    (
        "a kernel that is called",
        "; kernel\nfunction %k() {\nblock0:\n    return\n}\nfunction %f() \
         {\n    fn0 = %k()\nblock0:\n    call fn0()\n    return\n}",
        &["<clif>:9", "%k is a kernel"],
    ),
    (
        "an intrinsic that does not exist",
        "function %f() -> i32 {\n    fn0 = %gpu_tidx() -> i32\nblock0:\n    v0 = call fn0()\n    return v0\n}",
        &["%gpu_tidx", "did you mean %gpu_tid_x() -> i32"],
    ),
    (
        "an intrinsic with nothing like it",
        "function %f() -> i32 {\n    fn0 = %gpu_telephone() -> i32\nblock0:\n    v0 = call fn0()\n    return v0\n}",
        &["%gpu_telephone", "reserved"],
    ),
    (
        "an intrinsic of another signature",
        "function %f(i64) -> i32 {\n    fn0 = %gpu_shfl_up(i64, i32) -> i32\nblock0(v0: i64):\n    v1 = iconst.i32 1\n    v2 = call fn0(v0, v1)\n    return v2\n}",
        &["%gpu_shfl_up(i32, i32) -> i32"],
    ),
    (
        "an intrinsic whose operand must be constant",
        "function %f(i32, i32) -> i32 {\n    fn0 = %gpu_lop3(i32, i32, i32, i32) -> i32\nblock0(v0: i32, v1: i32):\n    v2 = call fn0(v0, v0, v0, v1)\n    return v2\n}",
        &["<clif>:4", "gpu_lop3", "operand 4"],
    ),
    (
        "an intrinsic whose constant is too large",
        "function %f(i32) -> i32 {\n    fn0 = %gpu_lop3(i32, i32, i32, i32) -> i32\nblock0(v0: i32):\n    v1 = iconst.i32 999\n    v2 = call fn0(v0, v0, v0, v1)\n    return v2\n}",
        &["<clif>:5", "999"],
    ),
    (
        "an f128",
        "function %f(f128, f128) -> f128 {\nblock0(v0: f128, v1: f128):\n    v2 = fadd v0, v1\n    return v2\n}",
        &["f128", "unsupported"],
    ),
    (
        "an atomic of 128 bits",
        "function %f(i64, i128) -> i128 \
         {\nblock0(v0: i64, v1: i128):\n    v2 = atomic_rmw.i128 add v0, v1\n    return v2\n}",
        &["i128", "%f"],
    ),
    (
        "thread-local data",
        "function %f() -> i64 {\n    gv0 = symbol tls %x\nblock0:\n    v0 = tls_value.i64 gv0\n    return v0\n}",
        &["tls", "%f"],
    ),
    (
        "a stop for a debugger",
        "function %f() {\nblock0:\n    debugtrap\n    return\n}",
        &["<clif>:3", "debugtrap", "%f", "^^^^^^^^^"],
    ),
    (
        "a pinned register",
        "function %f() -> i64 {\nblock0:\n    v0 = get_pinned_reg.i64\n    return v0\n}",
        &["get_pinned_reg", "%f"],
    ),
    (
        "two mistakes in two functions",
        "function %f() {\nblock0:\n    frobnicate\n}\nfunction %g(f128, f128) -> f128 \
         {\nblock0(v0: f128, v1: f128):\n    v2 = fadd v0, v1\n    return v2\n}",
        &["<clif>:3", "unsupported", "f128", "%g"],
    ),
    (
        "two functions that cannot be read",
        "function %f() {\nblock0:\n    frobnicate\n}\nfunction %g() {\nblock0:\n    defrobnicate\n}",
        &["<clif>:3", "<clif>:7"],
    ),
    (
        "a comparison of floats with a condition of integers",
        "function %f(f32, f32) -> i8 {\nblock0(v0: f32, v1: f32):\n    v2 = fcmp slt v0, v1\n    return v2\n}",
        &["<clif>:3", "slt"],
    ),
    (
        "a constant that its type does not hold",
        "function %f() -> i8 {\nblock0:\n    v0 = iconst.i8 70000\n    return v0\n}",
        &["<clif>:3"],
    ),
];

/// Name, text, words of the message.
const ASSEMBLY: &[(&str, &str, &[&str])] = &[
    (
        "an instruction that does not exist",
        "IADDD R0, R1, R2 ;",
        &["x.s:1:1", "IADDD", "did you mean `IADD`", "^^^^^"],
    ),
    (
        "an operand of the wrong kind",
        "IADD R0, P1, R2 ;",
        &["x.s:1:10", "expected"],
    ),
    (
        "a register that does not exist",
        "IADD R0, R999, R2 ;",
        &["x.s:1:", "R999"],
    ),
    ("too few operands", "IADD R0 ;", &["x.s:1:"]),
    (
        "a modifier that does not exist",
        "IADD.Y R0, R1, R2 ;",
        &["x.s:1:", "Y"],
    ),
    (
        "a label that is not defined",
        "BRA nowhere ;",
        &["x.s:1:5", "nowhere"],
    ),
    ("a label twice", "a:\nEXIT ;\na:\nEXIT ;", &["x.s:3:1", "a"]),
    (
        "a directive that does not exist",
        ".kernl k\nEXIT ;",
        &["x.s:1:1", "did you mean `.kernel`"],
    ),
    (
        "an immediate that is too large",
        "IADD R0, R1, 0x1ffffffff ;",
        &["x.s:1:14"],
    ),
    ("a quotation mark", "IADD R0, \"one\", R2 ;", &["x.s:1:10"]),
];

pub fn rows(table: &mut Table) {
    for (name, text, says) in CLIF {
        let compile = || {
            Compiler::new(Options::default())
                .compile_clif(text)
                .map(|_| ())
        };
        table.row(name, says, || compile().map_err(message));
    }
    for (name, text, says) in ASSEMBLY {
        table.row(name, says, || {
            asm::assemble("x.s", text).map(|_| ()).map_err(message)
        });
    }
}
