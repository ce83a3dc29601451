//! A function that holds one case and nothing else of interest.

use crate::case::{Case, Variant};
use cranelift_codegen::ir::instructions::{InstructionFormat, ResolvedConstraint};
use cranelift_codegen::ir::{Endianness, Opcode, Type, types};

/// The types of the operands of a case.
pub fn operands(case: &Case) -> Vec<Type> {
    let constraints = case.opcode.constraints();
    let mut free = case.free.iter();
    (0..constraints.num_fixed_value_arguments())
        .map(
            |n| match constraints.value_argument_constraint(n, case.ty) {
                ResolvedConstraint::Bound(ty) => ty,
                ResolvedConstraint::Free(_) => *free.next().expect("a type for each free operand"),
            },
        )
        .collect()
}

/// The types of its results.
pub fn results(case: &Case) -> Vec<Type> {
    let constraints = case.opcode.constraints();
    (0..constraints.num_fixed_results())
        .map(|n| constraints.result_type(n, case.ty))
        .collect()
}

/// The text of a function whose parameters are the operands of the case and which returns its results.
pub fn function(case: &Case, name: &str) -> String {
    let (operands, results) = (operands(case), results(case));
    let Parts {
        preamble,
        instruction,
        terminates,
        blocks,
    } = parts(case, operands.len());
    let parameters: Vec<String> = operands
        .iter()
        .enumerate()
        .map(|(n, ty)| format!("v{n}: {ty}"))
        .collect();
    let values: Vec<String> = (0..results.len())
        .map(|n| format!("v{}", 100 + n))
        .collect();
    let assignment = match values.is_empty() {
        true => String::new(),
        false => format!("{} = ", values.join(", ")),
    };
    let end = match terminates {
        true => String::new(),
        false => format!("    return {}\n", values.join(", ")),
    };
    let returned = match results.is_empty() || terminates {
        true => String::new(),
        false => format!(" -> {}", list(&results)),
    };
    format!(
        "function %{name}({}){returned} tail \
         {{\n{preamble}block0({}):\n    {assignment}{instruction}\n{end}{blocks}}}\n",
        list(&operands),
        parameters.join(", "),
    )
}

fn list(types: &[Type]) -> String {
    types
        .iter()
        .map(Type::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// What an instruction needs around it.
#[derive(Default)]
struct Parts {
    preamble: String,
    instruction: String,
    /// Whether it ends its block.
    terminates: bool,
    /// Blocks after the first.
    blocks: String,
}

/// The instruction as text, by its format.
fn parts(case: &Case, operands: usize) -> Parts {
    let opcode = case.opcode;
    let typed = match case.ty.is_invalid() {
        true => opcode.to_string(),
        false => format!("{opcode}.{}", case.ty),
    };
    let values: Vec<String> = (0..operands).map(|n| format!("v{n}")).collect();
    let values = values.join(", ");
    let order = match case.variant {
        Variant::Order(Endianness::Big) => " big",
        Variant::Order(Endianness::Little) if opcode == Opcode::Bitcast => " little",
        _ => "",
    };
    let plain = |instruction: String| Parts {
        instruction,
        ..Parts::default()
    };
    let ends = |instruction: String| Parts {
        instruction,
        terminates: true,
        ..Parts::default()
    };
    let before = |preamble: &str, instruction: String| Parts {
        preamble: format!("    {preamble}\n"),
        instruction,
        ..Parts::default()
    };
    let vector_bytes = |ty: Type| format!("0x{}", "01".repeat(ty.bytes() as usize));
    match opcode.format() {
        InstructionFormat::Unary | InstructionFormat::Binary | InstructionFormat::Ternary => {
            plain(format!("{typed} {values}"))
        }
        InstructionFormat::MultiAry => ends(typed),
        InstructionFormat::NullAry => plain(typed),
        InstructionFormat::BinaryImm8 | InstructionFormat::TernaryImm8 => {
            plain(format!("{typed} {values}, 1"))
        }
        InstructionFormat::IntCompare | InstructionFormat::FloatCompare => {
            let condition = match case.variant {
                Variant::Integers(cc) => cc.to_string(),
                Variant::Floats(cc) => cc.to_string(),
                _ => String::new(),
            };
            plain(format!("{typed} {condition} {values}"))
        }
        InstructionFormat::Load | InstructionFormat::LoadNoOffset => {
            plain(format!("{typed}{order} {values}"))
        }
        InstructionFormat::Store | InstructionFormat::StoreNoOffset => {
            plain(format!("{typed}{order} {values}"))
        }
        InstructionFormat::AtomicCas => plain(format!("{typed}{order} {values}")),
        InstructionFormat::AtomicRmw => {
            let operation = match case.variant {
                Variant::Modify(op) => op.to_string(),
                _ => String::new(),
            };
            plain(format!("{typed} {operation} {values}"))
        }
        InstructionFormat::UnaryImm => plain(format!("{typed} 1")),
        InstructionFormat::UnaryIeee16
        | InstructionFormat::UnaryIeee32
        | InstructionFormat::UnaryIeee64 => plain(format!("{typed} 0x1.8p1")),
        InstructionFormat::UnaryConst if opcode == Opcode::F128const => before(
            "const0 = 0x00112233445566778899aabbccddeeff",
            format!("{typed} const0"),
        ),
        InstructionFormat::UnaryConst => before(
            &format!("const0 = {}", vector_bytes(case.ty)),
            format!("{typed} const0"),
        ),
        InstructionFormat::Shuffle => plain(format!(
            "{typed} {values}, 0x1f0e1d0c1b0a19080706050403020100"
        )),
        InstructionFormat::UnaryGlobalValue => {
            let symbol = match (opcode, case.ty) {
                (Opcode::TlsValue, _) => "symbol tls %data",
                // Only shared memory has addresses of 32 bits.
                (_, types::I32) => "symbol %gpu_shared",
                _ => "symbol %data",
            };
            before(&format!("gv0 = {symbol}"), format!("{typed} gv0"))
        }
        InstructionFormat::StackAddr => before("ss0 = explicit_slot 16", format!("{typed} ss0+4")),
        InstructionFormat::DynamicStackAddr => before(
            "gv0 = dyn_scale_target_const.i32x4\n    dt0 = i32x4*gv0\n    dss0 = explicit_dynamic_slot dt0",
            format!("{typed} dss0"),
        ),
        InstructionFormat::FuncAddr => before("fn0 = %other() tail", format!("{typed} fn0")),
        InstructionFormat::Call if opcode == Opcode::ReturnCall => Parts {
            terminates: true,
            ..before("fn0 = %other() tail", format!("{typed} fn0()"))
        },
        InstructionFormat::Call => before("fn0 = %other() tail", format!("{typed} fn0()")),
        InstructionFormat::CallIndirect if opcode == Opcode::ReturnCallIndirect => Parts {
            terminates: true,
            ..before("sig0 = () tail", format!("{typed} sig0, v0()"))
        },
        InstructionFormat::CallIndirect => before("sig0 = () tail", format!("{typed} sig0, v0()")),
        InstructionFormat::TryCall => Parts {
            terminates: true,
            blocks: "block1:\n    return\n".to_owned(),
            ..before(
                "sig0 = () tail\n    fn0 = %other sig0",
                format!("{typed} fn0(), sig0, block1(), [ default: block1() ]"),
            )
        },
        InstructionFormat::TryCallIndirect => Parts {
            terminates: true,
            blocks: "block1:\n    return\n".to_owned(),
            ..before(
                "sig0 = () tail",
                format!("{typed} v0(), sig0, block1(), [ default: block1() ]"),
            )
        },
        InstructionFormat::ExceptionHandlerAddress => Parts {
            preamble: "    sig0 = () tail\n    fn0 = %other sig0\n".to_owned(),
            blocks:
                "    trapz v100, user1\n    jump block1\nblock1:\n    try_call fn0(), sig0, block2(), [ default: \
                 block2() ]\nblock2:\n    return\n"
                    .to_owned(),
            ..ends(format!("{typed} block1, 0"))
        },
        InstructionFormat::Jump => Parts {
            blocks: "block1:\n    return\n".to_owned(),
            ..ends(format!("{typed} block1"))
        },
        InstructionFormat::Brif => Parts {
            blocks: "block1:\n    return\nblock2:\n    return\n".to_owned(),
            ..ends(format!("{opcode} {values}, block1, block2"))
        },
        InstructionFormat::BranchTable => Parts {
            blocks: "block1:\n    return\nblock2:\n    return\n".to_owned(),
            ..ends(format!("{opcode} {values}, block1, [block1, block2]"))
        },
        InstructionFormat::Trap => match opcode {
            Opcode::Trap => ends(format!("{opcode} user1")),
            _ => plain(format!("{opcode} user1")),
        },
        InstructionFormat::CondTrap => plain(format!("{typed} {values}, user1")),
        InstructionFormat::IntAddTrap => plain(format!("{typed} {values}, user1")),
    }
}
