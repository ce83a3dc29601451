//! Records of the data on the simulator.

use super::expected::Type;
use super::record::Outcome;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cranelift_thisgpu::{Buffer, Device, Options, SimConfig};
use serde_json::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use thisgpu_naga::naga::{self, back::spv};
use thisgpu_naga::{Binding, Compiled, Error, Pipeline, Reason, Shader, TranslateOptions};

/// Memory that all buffers of a case may have together.
const MEMORY: u64 = 4 << 30;

/// The state of one case: the objects that its operations have made.
pub struct Machine {
    pub device: Device,
    pub buffers: HashMap<u64, Buffer>,
    /// Texts of modules.
    pub modules: HashMap<u64, String>,
    pub pipelines: HashMap<u64, Result<Pipeline, Outcome>>,
    pub groups: HashMap<u64, Vec<Entry>>,
    pub commands: HashMap<u64, Value>,
    /// The operations that are done, and what failed of them.
    pub done: Vec<Value>,
    pub failed: Result<(), Outcome>,
    /// Compiled shaders by text, entry point and constants.
    compiled: HashMap<String, Result<Compiled, Outcome>>,
    /// How many shaders were read.
    pub shaders: usize,
    /// How long each took: translated, compiled.
    pub times: Vec<(Duration, Duration)>,
    is_checking: bool,
}

/// An entry of a bind group.
#[derive(Clone)]
pub struct Entry {
    pub binding: u32,
    pub buffer: u64,
    pub offset: u64,
    pub size: Option<u64>,
}

pub fn wrong(what: impl Into<String>) -> Outcome {
    Outcome::Wrong(what.into())
}

/// A number of a record.
pub fn number(value: &Value, key: &str) -> Result<u64, Outcome> {
    let number = value.get(key).and_then(Value::as_u64);
    number.ok_or_else(|| wrong(format!("no number `{key}` in {value}")))
}

pub fn text<'v>(value: &'v Value, key: &str) -> Result<&'v str, Outcome> {
    let text = value.get(key).and_then(Value::as_str);
    text.ok_or_else(|| wrong(format!("no text `{key}`")))
}

pub fn bytes(value: &Value, key: &str) -> Result<Vec<u8>, Outcome> {
    let decoded = STANDARD.decode(text(value, key)?);
    decoded.map_err(|error| wrong(format!("`{key}`: {error}")))
}

pub fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], Outcome> {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice)
        .ok_or_else(|| wrong(format!("no list `{key}`")))
}

/// What comes of the entry points of a shader when they are translated.
pub fn translated(code: &str) -> Outcome {
    let shader = match Shader::wgsl("shader.wgsl", code) {
        Ok(shader) => shader,
        Err(error) => return refused(&error),
    };
    for entry in shader.entries() {
        if let Err(error) = shader.translate(entry, &TranslateOptions::default()) {
            return refused(&error);
        }
    }
    Outcome::Passed
}

/// Whether a shader computes nothing but the count of a loop, and puts words of constants together: what it stores has
/// been computed by naga.
fn is_constant(code: &str) -> bool {
    use naga::{BinaryOperator as B, Expression as E};
    let Ok(shader) = Shader::wgsl("shader.wgsl", code) else {
        return false;
    };
    let module = &shader.module;
    let bodies = module.functions.iter().map(|(_, function)| function);
    let bodies = bodies.chain(module.entry_points.iter().map(|entry| &entry.function));
    let mut expressions = bodies.flat_map(|body| body.expressions.iter());
    expressions.all(|(_, expression)| match expression {
        E::Binary { op, .. } => matches!(op, B::Add | B::Less | B::And | B::InclusiveOr),
        E::As { convert, .. } => convert.is_none(),
        E::Unary { .. } | E::Math { .. } | E::Select { .. } | E::Relational { .. } => false,
        _ => true,
    })
}

/// A refusal as an outcome. Every one must have its place.
fn refused(error: &Error) -> Outcome {
    match &error.reason {
        Reason::Naga(_) if error.place.position.is_none() => wrong(format!("no place: {error}")),
        Reason::Naga(reason) if reason.contains("panicked") => wrong(error.to_string()),
        Reason::Naga(reason) => Outcome::Naga(reason.lines().next().unwrap_or("").to_string()),
        Reason::Unsupported(_) if error.place.position.is_none() => {
            wrong(format!("no place: {error}"))
        }
        Reason::Unsupported(_) => Outcome::Ours(error.to_string()),
        _ => wrong(error.to_string()),
    }
}

impl Machine {
    /// Without anything.
    pub fn new() -> Machine {
        let is_checking = std::env::var_os("JUDGE_CHECK").is_some();
        let config = SimConfig {
            check: is_checking,
            threads: 1,
            memory_bytes: MEMORY,
            stack_bytes: 256 << 10,
            ..SimConfig::default()
        };
        Machine {
            device: Device::simulator(config),
            buffers: HashMap::new(),
            modules: HashMap::new(),
            pipelines: HashMap::new(),
            groups: HashMap::new(),
            commands: HashMap::new(),
            done: Vec::new(),
            failed: Ok(()),
            compiled: HashMap::new(),
            shaders: 0,
            times: Vec::new(),
            is_checking,
        }
    }

    /// Runs a record and compares what it expects.
    pub fn record(&mut self, record: &Value) -> Result<(), Outcome> {
        match record.get("wgsl") {
            Some(_) => self.expressions(record),
            None => self.trace(record),
        }
    }

    pub fn compile(
        &mut self,
        code: &str,
        entry: Option<&str>,
        constants: &Value,
    ) -> Result<Compiled, Outcome> {
        let key = format!("{entry:?} {constants} {code}");
        if let Some(known) = self.compiled.get(&key) {
            return known.clone();
        }
        self.shaders += 1;
        let compiled = Shader::wgsl("shader.wgsl", code).map_err(|error| refused(&error));
        let compiled = compiled.and_then(|shader| self.translate(&shader, entry, constants));
        self.compiled.insert(key, compiled.clone());
        compiled
    }

    fn translate(
        &mut self,
        shader: &Shader,
        entry: Option<&str>,
        constants: &Value,
    ) -> Result<Compiled, Outcome> {
        let first = shader.entries().next().map(str::to_string);
        let entry = entry.map(str::to_string).or(first);
        let entry = entry.ok_or_else(|| wrong("no entry point"))?;
        let mut options = TranslateOptions::default();
        for (name, value) in constants.as_object().into_iter().flatten() {
            let value = value
                .as_f64()
                .ok_or_else(|| wrong("a constant that is no number"))?;
            options.constants.insert(name.clone(), value);
        }
        let start = Instant::now();
        let translation = shader
            .translate(&entry, &options)
            .map_err(|error| refused(&error))?;
        let translated = start.elapsed();
        let start = Instant::now();
        let compiled = translation
            .compile(&Options::default())
            .map_err(|error| refused(&error))?;
        self.times.push((translated, start.elapsed()));
        Ok(compiled)
    }

    pub fn load(&self, compiled: &Compiled) -> Result<Pipeline, Outcome> {
        compiled
            .load(&self.device)
            .map_err(|error| wrong(error.to_string()))
    }

    pub fn dispatch(
        &self,
        pipeline: &Pipeline,
        groups: [u32; 3],
        bindings: &[Binding],
    ) -> Result<(), Outcome> {
        let report = pipeline.dispatch(groups, bindings, &[]);
        let report = report.map_err(|error| wrong(error.to_string().replace('\n', "; ")))?;
        if self.is_checking
            && let Some(report) = report
            && let Some(finding) = report.findings.first()
        {
            return Err(wrong(format!("finding: {finding}").replace('\n', "; ")));
        }
        Ok(())
    }

    fn upload(&self, data: &[u8]) -> Result<Buffer, Outcome> {
        self.device
            .upload(data)
            .map_err(|error| wrong(error.to_string()))
    }

    /// A shader that evaluates expressions.
    fn expressions(&mut self, record: &Value) -> Result<(), Outcome> {
        let compiled = self.compile(text(record, "wgsl")?, Some("main"), &Value::Null)?;
        let pipeline = self.load(&compiled)?;
        let (count, stride) = (
            number(record, "n")? as usize,
            number(record, "stride")? as usize,
        );
        let outputs = self.upload(&vec![0; (count * stride).next_multiple_of(4)])?;
        let mut bindings = vec![Binding::new(0, 0, &outputs)];
        let mut inputs = bytes(record, "inputs")?;
        if !inputs.is_empty() {
            // Uniform inputs of the data end with the last that is looked at.
            let buffers = compiled.interface.buffers.iter();
            let least = buffers
                .filter(|b| b.binding == 1)
                .map(|b| b.least_bytes)
                .max();
            let least = least.unwrap_or(0) as usize;
            inputs.resize(inputs.len().max(least), 0);
            bindings.push(Binding::new(0, 1, &self.upload(&inputs)?));
        }
        self.dispatch(&pipeline, [1, 1, 1], &bindings)?;
        let outputs = outputs.to_vec().map_err(|error| wrong(error.to_string()))?;
        let ty = Type::of(text(record, "type")?);
        for (number, expected) in list(record, "expected")?.iter().enumerate() {
            let place = outputs.get(number * stride..).unwrap_or(&[]);
            let compared = ty.compare(expected, place);
            if let Err(error) = &compared
                && text(record, "source")? == "const"
                && is_constant(text(record, "wgsl")?)
            {
                return Err(Outcome::Constants(format!("{number}{error}")));
            }
            compared.map_err(|error| {
                wrong(
                    format!("{number}{error}")
                        .chars()
                        .take(400)
                        .collect::<String>(),
                )
            })?;
        }
        Ok(())
    }

    /// Whether a shader on expressions and what naga writes of it as SPIR-V give equal bits. False if it is none, or
    /// naga has no SPIR-V that it reads again.
    pub fn twins(&mut self, record: &Value) -> Result<bool, String> {
        let (Some(code), Some(count), Some(stride)) = (
            record["wgsl"].as_str(),
            record["n"].as_u64(),
            record["stride"].as_u64(),
        ) else {
            return Ok(false);
        };
        let Ok(first) = Shader::wgsl("shader.wgsl", code) else {
            return Ok(false);
        };
        let options = spv::Options::default();
        let Ok(words) = spv::write_vec(&first.module, &first.info, &options, None) else {
            return Ok(false);
        };
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let Ok(second) = Shader::spirv("shader.spv", &words) else {
            return Ok(false);
        };
        let inputs = bytes(record, "inputs").map_err(|error| format!("{error:?}"))?;
        let mut outputs = Vec::new();
        for shader in [&first, &second] {
            let outcome = self.outputs(shader, &inputs, (count * stride) as usize);
            outputs.push(outcome.map_err(|error| format!("{error:?}"))?);
        }
        match outputs[0] == outputs[1] {
            true => Ok(true),
            false => Err("the bits differ".to_string()),
        }
    }

    fn outputs(
        &mut self,
        shader: &Shader,
        inputs: &[u8],
        bytes: usize,
    ) -> Result<Vec<u8>, Outcome> {
        let compiled = self.translate(shader, Some("main"), &Value::Null)?;
        let pipeline = self.load(&compiled)?;
        let outputs = self.upload(&vec![0; bytes.next_multiple_of(4)])?;
        let mut bindings = vec![Binding::new(0, 0, &outputs)];
        if !inputs.is_empty() {
            let least = compiled
                .interface
                .buffers
                .iter()
                .map(|b| b.least_bytes as usize)
                .max();
            let mut inputs = inputs.to_vec();
            inputs.resize(inputs.len().max(least.unwrap_or(0)), 0);
            bindings.push(Binding::new(0, 1, &self.upload(&inputs)?));
        }
        self.dispatch(&pipeline, [1, 1, 1], &bindings)?;
        outputs.to_vec().map_err(|error| wrong(error.to_string()))
    }
}
