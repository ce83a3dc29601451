//! What proofs take CLIF to mean, against the specifications that Cranelift's own effort of verification has
//! (`src/spec/inst_specs.isle` of cranelift-codegen), for all operands: equal results, traps for the same operands.
//!
//! The file is read from the sources of the pinned crate. Of its 73 opcodes those on integers without memory are
//! compared, at each width at which both are there.

use anyhow::{Context, Result, bail};
use cranelift_codegen::ir::{Function, InstructionData};
use cranelift_isle::ast::{Def, Spec, SpecExpr, SpecMacro, SpecOp};
use cranelift_isle::lexer::Lexer;
use cranelift_isle::parser::parse;
use fuzz::operation::Operation;
use fuzz::random::Random;
use fuzz::straight;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use thisgpu_verify::clif::{self, parameter, width_of};
use thisgpu_verify::outcome::Outcome;
use thisgpu_verify::solver::Answer;
use thisgpu_verify::sweep::can_hold;
use thisgpu_verify::term::{Term, clear};
use thisgpu_verify::{Limits, Solvers};

/// Conditions of comparisons that are tried.
const CHOICES: u64 = 24;
const LIMITS: Limits = Limits {
    paths: 8,
    steps: 100,
};

/// What an expression of a specification is.
#[derive(Clone, Debug)]
enum Value {
    Bits(Term),
    Truth(Term),
    Number(i128),
    /// A condition, by its name in ISLE.
    Name(String),
    /// A type, by its bits.
    Type(u32),
    Pair(Box<(Value, Value)>),
    /// A variable that only has to be there.
    Any,
}

impl Value {
    fn bits(&self) -> Result<Term> {
        match self {
            Self::Bits(term) => Ok(*term),
            other => bail!("bits are expected, not {other:?}"),
        }
    }

    fn truth(&self) -> Result<Term> {
        match self {
            Self::Truth(term) => Ok(*term),
            other => bail!("a truth is expected, not {other:?}"),
        }
    }

    fn number(&self) -> Result<u32> {
        match self {
            Self::Number(number) => Ok(u32::try_from(*number)?),
            other => bail!("a number is expected, not {other:?}"),
        }
    }

    fn choose(condition: Term, yes: Value, no: Value) -> Result<Value> {
        Ok(match (&yes, &no) {
            (Self::Truth(yes), Self::Truth(no)) => {
                let taken = condition.and(*yes);
                Self::Truth(taken.or(condition.not().and(*no)))
            }
            _ => Self::Bits(Term::choose(condition, yes.bits()?, no.bits()?)),
        })
    }

    fn equals(&self, other: &Value) -> Result<Term> {
        Ok(match (self, other) {
            (Self::Bits(a), Self::Bits(b)) => a.equals(*b),
            (Self::Truth(a), Self::Truth(b)) => a.and(*b).or(a.not().and(b.not())),
            (Self::Number(a), Self::Number(b)) => Term::known(a == b),
            (Self::Pair(pair), Self::Bits(whole)) => {
                let (high, low) = (&pair.0, &pair.1);
                let high = high.bits()?;
                match low {
                    Self::Any => {
                        let from = whole.width() - high.width();
                        whole.part(from, high.width()).equals(high)
                    }
                    low => high.above(low.bits()?).equals(*whole),
                }
            }
            other => bail!("no comparison of {other:?}"),
        })
    }
}

type Names = HashMap<String, Value>;

/// The macros of the specifications.
struct Reader {
    macros: HashMap<String, SpecMacro>,
}

impl Reader {
    fn value(&self, expr: &SpecExpr, names: &Names) -> Result<Value> {
        Ok(match expr {
            SpecExpr::ConstInt { val, .. } => Value::Number(*val),
            SpecExpr::ConstBitVec { val, width, .. } => {
                Value::Bits(Term::number(*val, *width as u32))
            }
            SpecExpr::ConstBool { val, .. } => Value::Truth(Term::known(*val)),
            SpecExpr::Var { var, .. } => {
                let value = names.get(&var.0).cloned();
                value.with_context(|| format!("nothing is named {}", var.0))?
            }
            SpecExpr::Field { field, x, .. } => match (field.0.as_str(), self.value(x, names)?) {
                ("bits", Value::Type(bits)) => Value::Number(bits.into()),
                other => bail!("no field {other:?}"),
            },
            SpecExpr::Match { x, arms, .. } => {
                let Value::Name(name) = self.value(x, names)? else {
                    bail!("a condition is expected");
                };
                let arm = arms.iter().find(|arm| arm.variant.0 == name);
                let arm = arm.with_context(|| format!("no arm for {name}"))?;
                self.value(&arm.body, names)?
            }
            SpecExpr::Let { defs, body, .. } => {
                let mut inner = names.clone();
                for (name, value) in defs {
                    let value = self.value(value, &inner)?;
                    inner.insert(name.0.clone(), value);
                }
                self.value(body, &inner)?
            }
            SpecExpr::With { decls, body, .. } => {
                let mut inner = names.clone();
                inner.extend(decls.iter().map(|name| (name.0.clone(), Value::Any)));
                self.value(body, &inner)?
            }
            SpecExpr::Expand { name, args, .. } => {
                let found = self.macros.get(&name.0);
                let found = found.with_context(|| format!("no macro {}", name.0))?;
                let mut inner = Names::new();
                for (name, value) in found.params.iter().zip(args) {
                    inner.insert(name.0.clone(), self.value(value, names)?);
                }
                self.value(&found.body, &inner)?
            }
            SpecExpr::Pair { l, r, .. } => {
                Value::Pair(Box::new((self.value(l, names)?, self.value(r, names)?)))
            }
            SpecExpr::Op { op, args, .. } => self.operation(op, args, names)?,
            other => bail!("no reading of {other:?}"),
        })
    }

    fn operation(&self, op: &SpecOp, args: &[SpecExpr], names: &Names) -> Result<Value> {
        if matches!(op, SpecOp::Switch) {
            return self.switch(args, names);
        }
        let values = args.iter().map(|arg| self.value(arg, names));
        let values: Vec<Value> = values.collect::<Result<_>>()?;
        let bits = |index: usize| values[index].bits();
        let number = |index: usize| values[index].number();
        let truths = |join: fn(Term, Term) -> Term, first: bool| {
            let all = values.iter().map(Value::truth);
            let all: Result<Vec<Term>> = all.collect();
            Ok::<_, anyhow::Error>(all?.into_iter().fold(Term::known(first), join))
        };
        let not_below = |a: Term, b: Term| a.is_below(b).not();
        let not_less = |a: Term, b: Term| a.is_less(b).not();
        Ok(match op {
            SpecOp::Eq => Value::Truth(values[0].equals(&values[1])?),
            SpecOp::And => Value::Truth(truths(Term::and, true)?),
            SpecOp::Or => Value::Truth(truths(Term::or, false)?),
            SpecOp::Not => Value::Truth(values[0].truth()?.not()),
            SpecOp::If => Value::choose(values[0].truth()?, values[1].clone(), values[2].clone())?,
            SpecOp::BVUlt => Value::Truth(bits(0)?.is_below(bits(1)?)),
            SpecOp::BVUgt => Value::Truth(bits(1)?.is_below(bits(0)?)),
            SpecOp::BVUle => Value::Truth(not_below(bits(1)?, bits(0)?)),
            SpecOp::BVUge => Value::Truth(not_below(bits(0)?, bits(1)?)),
            SpecOp::BVSlt => Value::Truth(bits(0)?.is_less(bits(1)?)),
            SpecOp::BVSgt => Value::Truth(bits(1)?.is_less(bits(0)?)),
            SpecOp::BVSle => Value::Truth(not_less(bits(1)?, bits(0)?)),
            SpecOp::BVSge => Value::Truth(not_less(bits(0)?, bits(1)?)),
            SpecOp::WidthOf => Value::Number(bits(0)?.width().into()),
            SpecOp::Concat if matches!(values[1], Value::Any) => {
                Value::Pair(Box::new((values[0].clone(), Value::Any)))
            }
            SpecOp::Int2BV => {
                let (width, Value::Number(number)) = (number(0)?, &values[1]) else {
                    bail!("a number is expected");
                };
                Value::Bits(Term::number(*number as u128, width))
            }
            SpecOp::Extract => {
                let (high, low) = (number(0)?, number(1)?);
                Value::Bits(bits(2)?.part(low, high - low + 1))
            }
            SpecOp::ZeroExt => Value::Bits(bits(1)?.zero_extended(number(0)?)),
            SpecOp::SignExt => Value::Bits(bits(1)?.sign_extended(number(0)?)),
            SpecOp::ConvTo => {
                let (width, value) = (number(0)?, bits(1)?);
                Value::Bits(match width.cmp(&value.width()) {
                    std::cmp::Ordering::Less => value.part(0, width),
                    _ => value.zero_extended(width),
                })
            }
            _ => {
                let operands: Vec<Term> = values.iter().map(Value::bits).collect::<Result<_>>()?;
                Value::Bits(arithmetic(op, &operands)?)
            }
        })
    }

    /// The arm for a number: arms of other widths need not make sense.
    fn switch(&self, args: &[SpecExpr], names: &Names) -> Result<Value> {
        let Value::Number(number) = self.value(&args[0], names)? else {
            bail!("a number is expected");
        };
        for arm in &args[1..] {
            let SpecExpr::Pair { l, r, .. } = arm else {
                bail!("an arm is expected");
            };
            if matches!(**l, SpecExpr::ConstInt { val, .. } if val == number) {
                return self.value(r, names);
            }
        }
        bail!("no arm for {number}")
    }
}

/// Operations whose result is bits. Counts of bits are written here again, bit by bit.
fn arithmetic(op: &SpecOp, operands: &[Term]) -> Result<Term> {
    let (a, b) = (operands[0], operands.get(1).copied());
    let second = || b.context("a second operand");
    let width = a.width();
    let zero = Term::number(0, width);
    let is_negative = |term: Term| term.is_less(Term::number(0, width));
    let magnitude = |term: Term| Term::choose(is_negative(term), zero.minus(term), term);
    let with_sign = |negative: Term, term: Term| Term::choose(negative, zero.minus(term), term);
    let differ = |a: Term, b: Term| a.and(b.not()).or(a.not().and(b));
    Ok(match op {
        SpecOp::BVNot => a.not(),
        SpecOp::BVNeg => zero.minus(a),
        SpecOp::BVAnd => a.and(second()?),
        SpecOp::BVOr => a.or(second()?),
        SpecOp::BVXor => a.xor(second()?),
        SpecOp::BVAdd => a.plus(second()?),
        SpecOp::BVSub => a.minus(second()?),
        SpecOp::BVMul => a.times(second()?),
        SpecOp::BVUdiv => a.quotient(second()?),
        SpecOp::BVUrem => a.remainder(second()?),
        SpecOp::BVSdiv => {
            let b = second()?;
            let quotient = magnitude(a).quotient(magnitude(b));
            with_sign(differ(is_negative(a), is_negative(b)), quotient)
        }
        SpecOp::BVSrem => {
            let remainder = magnitude(a).remainder(magnitude(second()?));
            with_sign(is_negative(a), remainder)
        }
        SpecOp::BVShl => a.shifted_up(second()?),
        SpecOp::BVLshr => a.shifted_down(second()?),
        SpecOp::BVAshr => a.shifted_down_signed(second()?),
        SpecOp::Rotl | SpecOp::Rotr => {
            let by = second()?;
            let back = Term::number(width.into(), width).minus(by);
            match op {
                SpecOp::Rotl => a.shifted_up(by).or(a.shifted_down(back)),
                _ => a.shifted_down(by).or(a.shifted_up(back)),
            }
        }
        SpecOp::Concat => a.above(second()?),
        SpecOp::Popcnt => {
            let bits = (0..width).map(|i| a.part(i, 1).zero_extended(width));
            bits.fold(zero, Term::plus)
        }
        SpecOp::Rev => {
            let bits = (1..width).map(|i| a.part(i, 1));
            bits.fold(a.part(0, 1), Term::above)
        }
        SpecOp::Clz => zeros_above(a, width),
        // Those above the sign that are like it.
        SpecOp::Cls => {
            let changes = a.xor(a.shifted_down_signed(Term::number(1, width)));
            zeros_above(changes, width).minus(Term::number(1, width))
        }
        other => bail!("no reading of {other:?}"),
    })
}

/// How many zeros are above the highest bit that is set.
fn zeros_above(a: Term, width: u32) -> Term {
    let all = Term::number(width.into(), width);
    (0..width).fold(all, |below, i| {
        let is_set = a.part(i, 1).equals(Term::number(1, 1));
        Term::choose(is_set, Term::number((width - 1 - i).into(), width), below)
    })
}

/// The folder with the specifications of the crate that is compiled in.
fn folder() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").context("tests are run by cargo")?;
    // Crates for other machines need not be there.
    let version = Command::new("rustc").arg("-vV").output()?;
    let version = String::from_utf8(version.stdout)?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let mut command = Command::new(cargo);
    command.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--filter-platform",
    ]);
    let output = command.arg(host.context("a host")?).output()?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let codegen = packages
        .iter()
        .find(|package| package["name"] == "cranelift-codegen")
        .context("cranelift-codegen")?;
    let manifest = codegen["manifest_path"].as_str().context("a path")?;
    Ok(PathBuf::from(manifest).with_file_name("src").join("spec"))
}

fn definitions() -> Result<Vec<Def>> {
    let folder = folder()?;
    let mut all = Vec::new();
    for file in ["prelude_spec.isle", "inst_specs.isle"] {
        let text = std::fs::read_to_string(folder.join(file)).context(file)?;
        let failed = |error: cranelift_isle::error::Error| anyhow::anyhow!("{file}: {error:?}");
        all.extend(parse(Lexer::new(0, &text).map_err(failed)?).map_err(failed)?);
    }
    Ok(all)
}

/// The condition of a comparison, by its name in ISLE.
fn condition(func: &Function) -> Option<String> {
    let block = func.layout.entry_block()?;
    let mut insts = func.layout.block_insts(block);
    insts.find_map(|inst| match func.dfg.insts[inst] {
        InstructionData::IntCompare { cond, .. } => Some(format!("{cond:?}")),
        _ => None,
    })
}

/// Whether a function of one operation can differ from what the specification says of it.
fn differs(reader: &Reader, spec: &Spec, func: &Function) -> Result<Term> {
    clear();
    let params = func.signature.params.iter().map(|param| param.value_type);
    let widths: Vec<u32> = params.map(width_of).collect::<Result<_, _>>()?;
    let numbered = widths.iter().enumerate();
    let arguments: Vec<Term> = numbered.map(|(i, &width)| parameter(i, width)).collect();
    let result = func.signature.returns[0].value_type.bits();
    let outcome = Outcome::of(&clif::paths(func, &arguments, LIMITS)?, &[result]);
    let traps = outcome.trap.equals(Term::number(0, 8)).not();
    let mut names = Names::new();
    let mut operands = arguments.iter();
    for name in &spec.args {
        let value = match name.0.as_str() {
            "ty" => Value::Type(result),
            "cc" => Value::Name(condition(func).context("a condition")?),
            "flags" | "trap_code" => Value::Any,
            _ => Value::Bits(*operands.next().context("an operand")?),
        };
        names.insert(name.0.clone(), value);
    }
    names.insert("result".to_owned(), Value::Bits(outcome.results[0]));
    names.insert("clif_trap".to_owned(), Value::Truth(traps));
    let mut holds = Term::known(true);
    for provided in &spec.provides {
        let value = reader.value(provided, &names)?;
        // Of `(= result …)` nothing is said where it traps.
        let truth = value.truth()?;
        let is_of_result = spec.modifies.is_empty() || !mentions_result(provided);
        let truth = if is_of_result { truth } else { traps.or(truth) };
        holds = holds.and(truth);
    }
    Ok(holds.not())
}

/// Whether an equation gives the result itself.
fn mentions_result(expr: &SpecExpr) -> bool {
    matches!(expr, SpecExpr::Op { op: SpecOp::Eq, args, .. }
        if matches!(&args[0], SpecExpr::Var { var, .. } if var.0 == "result"))
}

#[test]
fn operations_mean_what_specifications_say() -> Result<()> {
    let solvers = match Solvers::find(Duration::from_secs(20)) {
        Ok(solvers) => solvers,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    let (mut macros, mut specs) = (HashMap::new(), BTreeMap::new());
    for definition in definitions()? {
        match definition {
            Def::SpecMacro(found) => drop(macros.insert(found.name.0.clone(), found)),
            Def::Spec(spec) => drop(specs.insert(spec.term.0.clone(), spec)),
            _ => {}
        }
    }
    let reader = Reader { macros };
    let is_scalar = |operation: &Operation| {
        let width = operation.control.bits();
        operation.control.is_int() && (width < 128 || operation.opcode.to_string() == "iadd")
    };
    let (mut compared, mut count, mut open) = (BTreeSet::new(), 0, Vec::new());
    for operation in straight::operations().into_iter().filter(is_scalar) {
        let name = operation.opcode.to_string();
        let Some(spec) = specs.get(&name) else {
            continue;
        };
        let choices = if name == "icmp" { CHOICES } else { 1 };
        for choice in 0..choices {
            let func = straight::alone(operation, &mut Random::new(choice));
            if func
                .signature
                .params
                .iter()
                .any(|p| p.value_type.bits() == 128)
            {
                continue;
            }
            let question = differs(&reader, spec, &func).with_context(|| operation.to_string())?;
            match can_hold(question, &solvers)? {
                Answer::Never => count += 1,
                Answer::Unknown => open.push(operation.to_string()),
                Answer::Holds(inputs) => panic!("{operation} differs for {inputs:?}:\n{func}"),
            }
            compared.insert(name.clone());
        }
    }
    // A wrong reading would be found.
    let of_name = |name: &str| {
        let found = straight::operations().into_iter();
        found
            .filter(is_scalar)
            .find(|operation| operation.opcode.to_string() == name)
    };
    let difference = of_name("isub").context("isub")?;
    let func = straight::alone(difference, &mut Random::new(0));
    let question = differs(&reader, &specs["iadd"], &func)?;
    assert!(matches!(can_hold(question, &solvers)?, Answer::Holds(_)));
    println!(
        "{} opcodes agree in {count} functions, open: {open:?}",
        compared.len()
    );
    println!("{compared:?}");
    assert!(compared.len() >= 36, "only {compared:?}");
    assert!(open.is_empty(), "{open:?}");
    Ok(())
}
