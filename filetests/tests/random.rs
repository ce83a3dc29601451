//! Random functions of integer operations, with branches and loops, compiled and run, against Cranelift's interpreter.
//!
//! `THISGPU_RANDOM_SEED` and `THISGPU_RANDOM_FUNCTIONS` choose the first seed and how many functions. A failure prints the text of its
//! function, which is a test file by itself.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Type, types};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::unstable::isa::random::Random as Sequence;
use std::fmt::Write;
use thisgpu_filetests::file::{TestOptions, test_text};
use thisgpu_filetests::interpret;
use thisgpu_filetests::report::FileReport;

const TYPES: [Type; 5] = [types::I8, types::I16, types::I32, types::I64, types::I128];
const BINARY: [&str; 10] = [
    "iadd", "isub", "imul", "band", "bor", "bxor", "smin", "smax", "umin", "umax",
];
const UNARY: [&str; 7] = ["ineg", "bnot", "iabs", "clz", "ctz", "popcnt", "bitrev"];
const SHIFTS: [&str; 5] = ["ishl", "ushr", "sshr", "rotl", "rotr"];
const DIVISIONS: [&str; 2] = ["udiv", "urem"];
const OVERFLOWS: [&str; 4] = [
    "uadd_overflow",
    "sadd_overflow",
    "usub_overflow",
    "ssub_overflow",
];
const CONDITIONS: [&str; 10] = [
    "eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge",
];
/// Run lines of a function.
const LINES: usize = 3;
/// Functions of a file: they are launched together.
const PER_FILE: u64 = 20;

/// Reproducible numbers.
struct Random(Sequence);

impl Random {
    fn next(&mut self) -> u64 {
        self.0.bits()
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// The bits of a value: a corner as often as not.
    fn value(&mut self, ty: Type) -> u128 {
        let bits = ty.bits();
        let mask = u128::MAX >> (128 - bits);
        let sign = 1u128 << (bits - 1);
        let wide = u128::from(self.next()) << 64 | u128::from(self.next());
        mask & match self.below(4) {
            0 => self.pick(&[0, 1, 2, mask, mask - 1, sign, sign - 1, sign + 1]),
            1 => wide >> self.below(127),
            _ => wide,
        }
    }
}

/// A function while it is written.
struct Writer {
    random: Random,
    text: String,
    values: u32,
    blocks: u32,
    /// What can be read at this place.
    scope: Vec<(u32, Type)>,
}

impl Writer {
    fn new_value(&mut self) -> u32 {
        self.values += 1;
        self.values
    }

    fn new_block(&mut self) -> u32 {
        self.blocks += 1;
        self.blocks
    }

    fn line(&mut self, text: &str) {
        writeln!(self.text, "    {text}").expect("a string");
    }

    /// Writes `vN = text`.
    fn define(&mut self, ty: Type, text: &str) -> u32 {
        let value = self.new_value();
        self.line(&format!("v{value} = {text}"));
        self.scope.push((value, ty));
        value
    }

    fn constant(&mut self, ty: Type, bits: u128) -> u32 {
        if ty == types::I128 {
            let low = self.constant(types::I64, bits & u128::from(u64::MAX));
            let high = self.constant(types::I64, bits >> 64);
            return self.define(ty, &format!("iconcat v{low}, v{high}"));
        }
        let shift = 128 - ty.bits();
        let value = (bits << shift) as i128 >> shift;
        self.define(ty, &format!("iconst.{ty} {value}"))
    }

    /// A value of a type: a late one, or a constant.
    fn operand(&mut self, ty: Type) -> u32 {
        let known: Vec<u32> = self
            .scope
            .iter()
            .rev()
            .filter(|&&(_, t)| t == ty)
            .map(|&(value, _)| value)
            .take(4)
            .collect();
        if known.is_empty() || self.random.below(8) == 0 {
            let bits = self.random.value(ty);
            return self.constant(ty, bits);
        }
        self.random.pick(&known)
    }

    fn operand_of_any_type(&mut self) -> u32 {
        let ty = self.random.pick(&TYPES);
        self.operand(ty)
    }

    fn operation(&mut self) {
        let ty = self.random.pick(&TYPES);
        match self.random.below(20) {
            0..=6 => {
                let (x, y) = (self.operand(ty), self.operand(ty));
                let name = self.random.pick(&BINARY);
                self.define(ty, &format!("{name} v{x}, v{y}"));
            }
            7 | 8 => {
                let x = self.operand(ty);
                let name = self.random.pick(&UNARY);
                self.define(ty, &format!("{name} v{x}"));
            }
            9..=11 => {
                let (x, n) = (self.operand(ty), self.operand_of_any_type());
                let name = self.random.pick(&SHIFTS);
                self.define(ty, &format!("{name} v{x}, v{n}"));
            }
            12 | 13 => {
                let (x, y) = (self.operand(ty), self.operand(ty));
                let condition = self.random.pick(&CONDITIONS);
                self.define(types::I8, &format!("icmp {condition} v{x}, v{y}"));
            }
            14 => {
                let (c, x, y) = (
                    self.operand_of_any_type(),
                    self.operand(ty),
                    self.operand(ty),
                );
                self.define(ty, &format!("select v{c}, v{x}, v{y}"));
            }
            15 => {
                let (c, x, y) = (self.operand(ty), self.operand(ty), self.operand(ty));
                self.define(ty, &format!("bitselect v{c}, v{x}, v{y}"));
            }
            16 | 17 => {
                let from = self.random.pick(&TYPES);
                let x = self.operand(from);
                let name = match from.bits().cmp(&ty.bits()) {
                    std::cmp::Ordering::Greater => "ireduce",
                    std::cmp::Ordering::Less => self.random.pick(&["uextend", "sextend"]),
                    std::cmp::Ordering::Equal => return,
                };
                self.define(ty, &format!("{name}.{ty} v{x}"));
            }
            18 => {
                // A divisor with its lowest bit set is not zero.
                let (x, y) = (self.operand(ty), self.operand(ty));
                let one = self.constant(ty, 1);
                let divisor = self.define(ty, &format!("bor v{y}, v{one}"));
                let name = self.random.pick(&DIVISIONS);
                self.define(ty, &format!("{name} v{x}, v{divisor}"));
            }
            _ => {
                let (x, y) = (self.operand(ty), self.operand(ty));
                let (result, flag) = (self.new_value(), self.new_value());
                let name = self.random.pick(&OVERFLOWS);
                self.line(&format!("v{result}, v{flag} = {name} v{x}, v{y}"));
                self.scope.push((result, ty));
                self.scope.push((flag, types::I8));
            }
        }
    }

    fn operations(&mut self, most: usize) {
        for _ in 0..=self.random.below(most) {
            self.operation();
        }
    }

    /// Two sides that meet again with a value each.
    fn branch(&mut self) {
        let ty = self.random.pick(&TYPES);
        let condition = self.operand_of_any_type();
        let (yes, no, join) = (self.new_block(), self.new_block(), self.new_block());
        self.line(&format!("brif v{condition}, block{yes}, block{no}"));
        let outside = self.scope.len();
        for block in [yes, no] {
            writeln!(self.text, "block{block}:").expect("a string");
            self.operations(4);
            let result = self.operand(ty);
            self.line(&format!("jump block{join}(v{result})"));
            self.scope.truncate(outside);
        }
        let joined = self.new_value();
        writeln!(self.text, "block{join}(v{joined}: {ty}):").expect("a string");
        self.scope.push((joined, ty));
    }

    /// A loop of at most eight turns that changes one value.
    fn repetition(&mut self) {
        let ty = self.random.pick(&TYPES);
        let (start, count) = (self.operand(ty), self.operand(types::I32));
        let seven = self.constant(types::I32, 7);
        let turns = self.define(types::I32, &format!("band v{count}, v{seven}"));
        let (body, after) = (self.new_block(), self.new_block());
        self.line(&format!("jump block{body}(v{start}, v{turns})"));
        let outside = self.scope.len();
        let (carried, left, result) = (self.new_value(), self.new_value(), self.new_value());
        writeln!(self.text, "block{body}(v{carried}: {ty}, v{left}: i32):").expect("a string");
        self.scope.push((carried, ty));
        self.operations(5);
        let next = self.operand(ty);
        let minus_one = self.constant(types::I32, u128::from(u32::MAX));
        let fewer = self.define(types::I32, &format!("iadd v{left}, v{minus_one}"));
        self.line(&format!(
            "brif v{left}, block{body}(v{next}, v{fewer}), block{after}(v{next})"
        ));
        self.scope.truncate(outside);
        writeln!(self.text, "block{after}(v{result}: {ty}):").expect("a string");
        self.scope.push((result, ty));
    }
}

/// A function of this seed, without run lines, and the types of its parameters.
fn function(seed: u64) -> (String, Vec<Type>) {
    let mut random = Random(Sequence::new(seed));
    let parameters: Vec<Type> = (0..=random.below(4)).map(|_| random.pick(&TYPES)).collect();
    let mut writer = Writer {
        random,
        text: String::new(),
        values: 0,
        blocks: 0,
        scope: Vec::new(),
    };
    let mut names = Vec::new();
    for &ty in &parameters {
        let value = writer.new_value();
        writer.scope.push((value, ty));
        names.push(format!("v{value}: {ty}"));
    }
    writer.operations(6);
    for _ in 0..writer.random.below(4) {
        match writer.random.below(3) {
            0 => writer.branch(),
            1 => writer.repetition(),
            _ => writer.operations(6),
        }
    }
    let mut results = Vec::new();
    let mut result_types = Vec::new();
    for _ in 0..=writer.random.below(2) {
        let ty = writer.random.pick(&TYPES);
        results.push(format!("v{}", writer.operand(ty)));
        result_types.push(ty.to_string());
    }
    let types: Vec<String> = parameters.iter().map(Type::to_string).collect();
    let text = format!(
        "function %random_{seed}({}) -> {} {{\nblock0({}):\n{}    return {}\n}}\n",
        types.join(", "),
        result_types.join(", "),
        names.join(", "),
        writer.text,
        results.join(", "),
    );
    (text, parameters)
}

fn data_value(ty: Type, bits: u128) -> DataValue {
    match ty {
        types::I8 => DataValue::I8(bits as i8),
        types::I16 => DataValue::I16(bits as i16),
        types::I32 => DataValue::I32(bits as i32),
        types::I64 => DataValue::I64(bits as i64),
        _ => DataValue::I128(bits as i128),
    }
}

/// The function with run lines whose results are the interpreter's.
fn with_run_lines(seed: u64) -> String {
    let (mut text, parameters) = function(seed);
    let file = SourceFile::parse("random.clif", &text)
        .unwrap_or_else(|errors| panic!("seed {seed}: {errors}\n{text}"));
    let func = &file.functions[0].func;
    let mut random = Random(Sequence::new(!seed));
    for _ in 0..LINES {
        let arguments: Vec<DataValue> = parameters
            .iter()
            .map(|&ty| data_value(ty, random.value(ty)))
            .collect();
        let results = interpret::call(&[func], func, &arguments)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let list = |values: &[DataValue]| {
            let texts: Vec<String> = values.iter().map(DataValue::to_string).collect();
            texts.join(", ")
        };
        let results = match &results[..] {
            [one] => one.to_string(),
            many => format!("[{}]", list(many)),
        };
        writeln!(
            text,
            "; run: %random_{seed}({}) == {results}",
            list(&arguments)
        )
        .expect("a string");
    }
    text
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => default,
    }
}

#[test]
fn random_functions_agree_with_the_interpreter() {
    let first = number("THISGPU_RANDOM_SEED", 1);
    let count = number("THISGPU_RANDOM_FUNCTIONS", 300);
    println!("seeds {first} to {}", first + count - 1);
    for start in (first..first + count).step_by(PER_FILE as usize) {
        let mut text = String::from("test run\ntarget thisgpu\n\n");
        let end = (start + PER_FILE).min(first + count);
        for seed in start..end {
            text.push_str(&with_run_lines(seed));
            text.push('\n');
        }
        let mut report = FileReport::new("random.clif");
        test_text(&text, &TestOptions::default(), &mut report);
        assert!(
            report.errors.is_empty() && report.passed == LINES * (end - start) as usize,
            "seeds {start} to {}: {:#?}\n{text}",
            end - 1,
            report.errors
        );
    }
}
