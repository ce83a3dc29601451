//! How many instructions operations on 64-bit integers take, counted in finished code, moves of the register allocator
//! included.
//!
//! A kernel loads its operands, works, and stores the result; what it has beyond a kernel that only copies is the
//! operation's. Operands are registers, immediates (in registers where no instruction takes them) and the constant
//! bank's parameters.

use cranelift_thisgpu::compile::{Compiler, KernelResources};
use cranelift_thisgpu::settings::Options;

/// The kernel's resources. `x` is v3, `y` v4, the result v9.
fn resources(loads: &str, work: &str, store: &str) -> KernelResources {
    let text = format!(
        "; kernel
function %k(i64, i64) {{
block0(v0: i64, v1: i64):
{loads}
{work}
    {store} v9, v0+32
    return
}}
"
    );
    let code = Compiler::new(Options::default())
        .compile_clif(&text)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    code.kernels()[0].clone()
}

/// Where the second operand comes from.
#[derive(Clone, Copy, Debug)]
enum Second {
    Register,
    Immediate(i64),
    Parameter,
}

impl Second {
    const LOAD_X: &'static str = "    v3 = load.i64 aligned v0";

    fn loads(self) -> String {
        match self {
            Self::Register => format!("{}\n    v4 = load.i64 aligned v0+8", Self::LOAD_X),
            Self::Immediate(value) => format!("{}\n    v4 = iconst.i64 {value}", Self::LOAD_X),
            Self::Parameter => format!("{}\n    v4 = bor v1, v1", Self::LOAD_X),
        }
    }

    fn load_count(self) -> u32 {
        match self {
            Self::Register => 2,
            Self::Immediate(_) | Self::Parameter => 1,
        }
    }
}

/// Instructions of `work` on x and y.
fn count(second: Second, work: &str) -> u32 {
    let copied = resources(Second::LOAD_X, "    v9 = bor v3, v3", "store aligned");
    let whole = resources(&second.loads(), work, "store aligned");
    assert!(whole.loops.is_empty(), "{work}: {whole:?}");
    whole.instructions - copied.instructions - (second.load_count() - 1)
}

/// Immediates of all kinds: small, of either sign, of one word, of the other word, of both.
const IMMEDIATES: [i64; 12] = [
    1,
    -1,
    7,
    100,
    -100,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    -(1 << 40),
    0x1234_5678_9abc_def1,
    i64::MIN,
    i64::MAX,
];

fn seconds() -> Vec<Second> {
    let immediates = IMMEDIATES.map(Second::Immediate);
    [Second::Register, Second::Parameter]
        .into_iter()
        .chain(immediates)
        .collect()
}

fn at_most(limit: u32, second: Second, work: &str) {
    let found = count(second, work);
    assert!(
        found <= limit,
        "{found} instructions, at most {limit}: {second:?}: {work}"
    );
}

#[test]
fn sums_and_differences_take_two() {
    for second in seconds() {
        for work in ["iadd v3, v4", "isub v3, v4", "isub v4, v3", "iadd v4, v3"] {
            at_most(2, second, &format!("    v9 = {work}"));
        }
    }
}

#[test]
fn products_take_at_most_five() {
    for second in seconds() {
        at_most(5, second, "    v9 = imul v3, v4");
        at_most(5, second, "    v9 = imul v4, v3");
    }
}

#[test]
fn comparisons_take_two() {
    for second in seconds() {
        for condition in [
            "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
        ] {
            for (a, b) in [("v3", "v4"), ("v4", "v3")] {
                // Two selections and no more make a result of 64 bits of it.
                let work = format!(
                    "    v5 = icmp {condition} {a}, {b}\n    v6 = load.i64 aligned v0+16\n    v7 = load.i64 aligned \
                     v0+24\n    v9 = select v5, v6, v7"
                );
                let loads = 2;
                at_most(2 + 2 + loads, second, &work);
            }
        }
    }
}

#[test]
fn shifts_and_rotations_by_constants_take_two() {
    for amount in 0..64 {
        for operation in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
            at_most(
                2,
                Second::Immediate(amount),
                &format!("    v9 = {operation} v3, v4"),
            );
        }
    }
}

/// What is shifted or rotated may be a parameter. With the amount as immediate SHF takes registers only, so its words
/// are moved first.
#[test]
fn parameters_are_moved_and_shifted() {
    for amount in [1, 8, 31, 32, 33, 63] {
        for operation in ["ishl", "ushr", "sshr", "rotl", "rotr"] {
            let work = format!(
                "    v5 = iconst.i64 {amount}\n    v6 = {operation} v4, v5\n    v9 = iadd v6, v3"
            );
            let (moves, sum) = (3, 2);
            at_most(moves + 2 + sum, Second::Parameter, &work);
        }
    }
}

#[test]
fn conversions_to_float_and_back_have_no_loop() {
    for (from, to) in [
        ("i64", "f32"),
        ("i64", "f64"),
        ("f32", "i64"),
        ("f64", "i64"),
    ] {
        for sign in ["sint", "uint"] {
            let works = match from {
                "i64" => vec![format!("fcvt_from_{sign}.{to} v4")],
                _ => vec![
                    format!("fcvt_to_{sign}_sat.{to} v4"),
                    format!("fcvt_to_{sign}.{to} v4"),
                ],
            };
            for work in works {
                let found = resources(
                    &format!("    v4 = load.{from} aligned v0"),
                    &format!("    v9 = {work}"),
                    "store aligned",
                );
                assert!(found.loops.is_empty(), "{work}: {found:?}");
                assert!(found.instructions <= 24, "{work}: {found:?}");
            }
        }
    }
}

/// The count tells longer sequences from shorter ones.
#[test]
fn counts_count() {
    let one = count(Second::Register, "    v9 = iadd v3, v4");
    assert_eq!(one, 2);
    assert_eq!(
        count(
            Second::Register,
            "    v5 = iadd v3, v4\n    v6 = bxor v5, v3\n    v9 = iadd v6, v4"
        ),
        6
    );
    assert!(count(Second::Register, "    v9 = udiv v3, v4") > 20);
}
