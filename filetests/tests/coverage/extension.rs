//! What stands above a narrow result in its register is what lowering says of it.
//!
//! A value of 8 or 16 bits has a register of 32, whose upper bits are anything unless `src/lower/facts.rs` knows
//! better: where it says that there are zeros, or copies of the sign, extending the value costs nothing. So every
//! operation with a narrow result is run with a `uextend` and a `sextend` behind it and without, on operands with
//! anything above their types. The kernel calls these functions as if their narrow parameters were words, so that it
//! decides what is there.

use crate::case::{Case, Variant};
use crate::probe;
use cranelift_codegen::ir::instructions::InstructionFormat;
use cranelift_codegen::ir::{Endianness, Opcode, Type, types};
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::random::Random;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Sets of operands, each of which is a thread.
const ROWS: u32 = 64;
/// Bytes of an operand in a row.
const SLOT_BYTES: usize = 16;
/// What is done to the result: nothing, then the two extensions. Each has a function and a kernel of that name.
const USES: [&str; 3] = ["nothing", "uextend", "sextend"];
/// How many opcodes there are at least whose result is extended with zeros for nothing.
const LEAST_FREE: usize = 20;

/// A function that ends by returning one narrow result of an operation.
struct Probe {
    case: Case,
    text: String,
    result: Type,
    /// Which of the operation's results.
    index: usize,
}

impl Probe {
    /// The functions for a case: operands that are parameters, one that is a constant, other lanes.
    fn of_case(case: &Case) -> Vec<Probe> {
        let (operands, results) = (probe::operands(case), probe::results(case));
        let plain = probe::function(case, "probe");
        let mut texts = vec![plain.clone()];
        let format = case.opcode.format();
        if matches!(
            format,
            InstructionFormat::Binary | InstructionFormat::IntCompare
        ) {
            let scalars = (operands.iter().enumerate())
                .filter(|(_, ty)| ty.is_int() && !ty.is_vector() && ty.bits() <= 64);
            let constants = scalars.flat_map(|(n, ty)| [1, 0x35].map(|c| (n, ty, c)));
            texts.extend(constants.map(|(n, ty, c)| with_constant(&plain, n, *ty, c)));
        }
        if format == InstructionFormat::BinaryImm8 {
            let lanes = operands[0].lane_count().min(8);
            texts.extend((0..lanes).map(|lane| plain.replace(", 1\n", &format!(", {lane}\n"))));
        }
        let narrow = (results.iter().enumerate()).filter(|(_, ty)| ty.is_int() && ty.bits() < 32);
        let probes = narrow.flat_map(|(index, &result)| {
            texts.iter().map(move |text| Probe {
                case: case.clone(),
                text: text.clone(),
                result,
                index,
            })
        });
        probes.collect()
    }

    /// The functions and kernels for all that is done to the result.
    fn program(&self) -> String {
        let mut program = String::new();
        for extension in USES {
            program += &self.function(extension);
            program += &self.kernel(extension);
        }
        program
    }

    fn function(&self, extension: &str) -> String {
        let value = format!("v{}", 100 + self.index);
        let (ty, end) = match extension {
            "nothing" => (self.result, format!("    return {value}\n")),
            _ => (
                types::I32,
                format!("    v200 = {extension}.i32 {value}\n    return v200\n"),
            ),
        };
        let lines = self.text.lines().map(|line| match line {
            _ if line.starts_with("function") => {
                let parameters = line.split([')', '(']).nth(1).unwrap_or_default();
                format!("function %{extension}({parameters}) -> {ty} tail {{\n")
            }
            _ if line.starts_with("    return") => end.clone(),
            _ => format!("{line}\n"),
        });
        lines.collect()
    }

    /// A kernel that calls a function with parameters and a result of at least a word.
    fn kernel(&self, extension: &str) -> String {
        let operands = probe::operands(&self.case);
        let list = |types: &[Type]| {
            let names: Vec<String> = types.iter().map(Type::to_string).collect();
            names.join(", ")
        };
        let wide: Vec<Type> = operands.iter().map(|&ty| widened(ty)).collect();
        let result = match extension {
            "nothing" => self.result,
            _ => types::I32,
        };
        let mut kernel = format!(
            "; kernel
function %run_{extension}(i64, i64) {{
    sig0 = ({}) -> i32 tail
    fn0 = %{extension}({}) -> {result} tail
    fn1 = %gpu_tid_x() -> i32
block0(v0: i64, v1: i64):
    v2 = call fn1()
    v3 = uextend.i64 v2
    v4 = iconst.i64 {}
    v5 = imul v3, v4
    v6 = iadd v0, v5
    v7 = iconst.i64 4
    v8 = imul v3, v7
    v9 = iadd v1, v8
",
            list(&wide),
            list(&operands),
            self.row_bytes(),
        );
        let mut arguments = Vec::new();
        for (n, ty) in wide.iter().enumerate() {
            if n == 0 && is_access(&self.case) {
                arguments.push("v6".to_string());
                continue;
            }
            let offset = n * SLOT_BYTES;
            let _ = writeln!(kernel, "    v{} = load.{ty} aligned v6+{offset}", 20 + n);
            arguments.push(format!("v{}", 20 + n));
        }
        let arguments = arguments.join(", ");
        kernel
            + &format!(
                "    v10 = func_addr.i64 fn0
    v11 = call_indirect sig0, v10({arguments})
    store aligned v11, v9
    return
}}
"
            )
    }

    fn row_bytes(&self) -> usize {
        probe::operands(&self.case).len().max(1) * SLOT_BYTES
    }

    /// The operand that must not be anything, because the operation would trap, and its bits: a small odd divisor, a
    /// float that is converted.
    fn tame(&self, random: &mut Random) -> Option<(usize, u64)> {
        let format = self.case.opcode.format();
        match (format, probe::operands(&self.case).as_slice()) {
            _ if !self.case.opcode.can_trap() => None,
            (InstructionFormat::Binary, [_, _]) => Some((1, random.bits() & 0x7f | 1)),
            (InstructionFormat::Unary, [types::F16]) => Some((0, 0x3c00)),
            (InstructionFormat::Unary, [types::F32]) => Some((0, 1f32.to_bits().into())),
            (InstructionFormat::Unary, [types::F64]) => Some((0, 1f64.to_bits())),
            _ => None,
        }
    }

    /// Operands for all threads: anything, but for those that would trap, with anything above their types.
    fn rows(&self, random: &mut Random) -> Vec<u8> {
        let operands = probe::operands(&self.case);
        let mut rows = Vec::new();
        for _ in 0..ROWS {
            let mut row = vec![0; self.row_bytes()];
            for word in row.chunks_exact_mut(8) {
                word.copy_from_slice(&number(random).to_le_bytes());
            }
            if let Some((operand, low)) = self.tame(random) {
                let ones = u64::MAX >> (64 - operands[operand].bits().min(64));
                let value = random.bits() & !ones | low;
                row[operand * SLOT_BYTES..][..8].copy_from_slice(&value.to_le_bytes());
            }
            rows.extend(row);
        }
        rows
    }

    /// What the kernels store.
    fn run(&self, code: &Code, device: &Device, random: &mut Random) -> [Vec<u32>; 3] {
        let rows = self.rows(random);
        let module = device.load(code).expect("it can be loaded");
        USES.map(|extension| {
            let input = device.upload(&rows).expect("there is memory");
            let output = device.zeros::<u32>(ROWS.into()).expect("there is memory");
            let kernel = module.kernel(&format!("run_{extension}"));
            let kernel = kernel.expect("it has this kernel");
            let launch = kernel.launch(Grid::new([1; 3], [ROWS, 1, 1]));
            let report = launch.args(&[&input, &output]).run_to_report();
            let report = report.expect("it can be launched");
            if let Some(fault) = report.fault {
                panic!("{}: {fault}\n{}", self.case, self.program());
            }
            output.to_vec().expect("it can be read")
        })
    }
}

/// The text with a constant in place of an operand.
fn with_constant(text: &str, operand: usize, ty: Type, constant: i64) -> String {
    let name = format!("v{operand}");
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some((value, instruction)) if line.starts_with("    v10") => {
            let words = instruction
                .split(' ')
                .map(|word| match word.strip_suffix(',') {
                    Some(word) if word == name => "v90,".to_string(),
                    _ if word == name => "v90".to_string(),
                    _ => word.to_string(),
                });
            let words: Vec<String> = words.collect();
            format!(
                "    v90 = iconst.{ty} {constant}\n{value} = {}\n",
                words.join(" ")
            )
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// The type that stands for one as a parameter of the same register.
fn widened(ty: Type) -> Type {
    match ty.bits() {
        ..32 => types::I32,
        _ => ty,
    }
}

/// Whether the first operand is an address.
fn is_access(case: &Case) -> bool {
    case.opcode.can_load() || case.opcode.can_store()
}

/// A case whose results can be looked at: one that leaves its block as it entered it, and knows where memory is.
fn is_probed(case: &Case) -> bool {
    let address = probe::operands(case).first().copied();
    !case.opcode.is_call()
        && !case.opcode.is_terminator()
        && case.types().all(|ty| ty.bits() <= 128)
        && (!is_access(case) || address == Some(types::I64))
        && case.variant != Variant::Order(Endianness::Big)
}

/// Bits, often near a limit of a narrow type, with anything above.
fn number(random: &mut Random) -> u64 {
    let bits = random.bits();
    let limit: u64 = match random.below(8) {
        0 => 0,
        1 => 0x7f,
        2 => 0x80,
        3 => 0x7fff,
        4 => 0x8000,
        _ => return bits,
    };
    let low = limit.wrapping_add(random.bits() % 3).wrapping_sub(1);
    bits & !0xffff | low & 0xffff
}

#[test]
fn what_is_above_narrow_results_is_known() {
    let mut compiler = Compiler::new(Options::default());
    let device = Device::simulator(SimConfig::default());
    let mut random = Random::new(1);
    let mut free: BTreeSet<String> = BTreeSet::new();
    let (mut complaints, mut run) = (Vec::new(), 0);
    let cases = Case::all().into_iter().filter(is_probed);
    for probe in cases.flat_map(|case| Probe::of_case(&case)) {
        // What is no operation, or is refused, the other test looks at.
        let Ok(code) = compiler.compile_clif(&probe.program()) else {
            continue;
        };
        run += 1;
        let functions = &code.object().functions;
        let length = |name: &str| {
            let function = functions.iter().find(|function| function.name == name);
            function.map_or(0, |function| function.words.len())
        };
        if length("uextend") <= length("nothing") {
            free.insert(probe.case.opcode.to_string());
        }
        let [plain, zeros, signs] = probe.run(&code, &device, &mut random);
        let unused = 32 - probe.result.bits();
        for ((plain, zeros), signs) in plain.into_iter().zip(zeros).zip(signs) {
            let low = plain << unused;
            if zeros != low >> unused || signs != (low as i32 >> unused) as u32 {
                complaints.push(format!(
                    "{}: {plain:#x} is {zeros:#x} with zeros above it, {signs:#x} with its sign\n{}",
                    probe.case, probe.text
                ));
                break;
            }
        }
    }
    println!("{run} functions, zeros above are known of {free:?}");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(free.len() >= LEAST_FREE, "{free:?}");
    assert!(!free.contains(&Opcode::Iadd.to_string()), "{free:?}");
}
