//! `naga-thisgpu launch`.

use crate::shader::{self, Input};
use anyhow::{Context, Result, bail};
use clap::Args;
use cranelift_thisgpu::{Buffer, Device, SimConfig};
use std::path::PathBuf;
use thisgpu_naga::{Binding, Shader};

/// Local memory of an invocation, in bytes.
const STACK_BYTES: u32 = 256 << 10;

/// A launch.
#[derive(Args)]
pub struct Launch {
    #[command(flatten)]
    input: Input,
    /// Workgroups: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "COUNTS", default_value = "1", value_parser = counts)]
    groups: [u32; 3],
    /// A buffer: the bytes of a file, or with `zeros:N` so many zeros.
    #[arg(long, value_name = "GROUP.BINDING=FILE", value_parser = bound)]
    bind: Vec<((u32, u32), String)>,
    /// Where to write a buffer when the launch has ended; `-` prints its bytes as words in hexadecimal.
    #[arg(long, value_name = "GROUP.BINDING=FILE", value_parser = bound)]
    output: Vec<((u32, u32), String)>,
    /// The bytes of the immediates.
    #[arg(long, value_name = "FILE")]
    immediates: Option<PathBuf>,
    /// Look for races, reads of what nobody wrote, and barriers that a part of a workgroup reaches.
    #[arg(long)]
    check: bool,
    /// Count cycles.
    #[arg(long)]
    timed: bool,
}

fn counts(text: &str) -> Result<[u32; 3], String> {
    let mut counts = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three counts".into());
    }
    for (count, part) in counts.iter_mut().zip(parts) {
        *count = part
            .trim()
            .parse()
            .map_err(|_| "a count is a number".to_string())?;
    }
    Ok(counts)
}

fn bound(text: &str) -> Result<((u32, u32), String), String> {
    let usage = "GROUP.BINDING=FILE expected";
    let (place, file) = text.split_once('=').ok_or(usage)?;
    let (group, binding) = place.split_once('.').ok_or(usage)?;
    let [group, binding] = [group, binding].map(str::parse);
    match (group, binding) {
        (Ok(group), Ok(binding)) => Ok(((group, binding), file.to_string())),
        _ => Err(usage.to_string()),
    }
}

impl Launch {
    /// Each buffer is for one variable of the shader.
    fn check_places(&self, shader: &Shader) -> Result<()> {
        for (number, (place, _)) in self.bind.iter().enumerate() {
            let (group, binding) = *place;
            if self.bind[..number].iter().any(|(other, _)| other == place) {
                bail!("--bind {group}.{binding} is given twice");
            }
            let mut variables = shader.module.global_variables.iter();
            let is_there = variables.any(|(_, variable)| {
                let bound = variable.binding.as_ref();
                bound.is_some_and(|bound| (bound.group, bound.binding) == *place)
            });
            if !is_there {
                bail!("--bind {group}.{binding}: the shader has no variable there");
            }
        }
        Ok(())
    }

    /// Runs it.
    pub fn run(&self) -> Result<()> {
        let shader = self.input.read()?;
        self.check_places(&shader)?;
        let compiled = self.input.compile(&shader)?;
        let device = Device::simulator(SimConfig {
            check: self.check,
            timed: self.timed,
            stack_bytes: STACK_BYTES,
            ..SimConfig::default()
        });
        let pipeline = compiled.load(&device)?;
        let mut bindings = Vec::new();
        for ((group, binding), source) in &self.bind {
            let buffer =
                fill(&device, source)?.named(format!("@group({group}) @binding({binding})"));
            bindings.push(Binding::new(*group, *binding, &buffer));
        }
        let immediates = match &self.immediates {
            Some(file) => {
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?
            }
            None => Vec::new(),
        };
        let report = pipeline.dispatch(self.groups, &bindings, &immediates);
        // What was stored before a fault is written as well.
        for (place, file) in &self.output {
            let found = bindings.iter().find(|b| (b.group, b.binding) == *place);
            let found = found.with_context(|| {
                format!("--output {}.{}: nothing is bound there", place.0, place.1)
            })?;
            let bytes = found.buffer.to_vec()?;
            match file.as_str() {
                "-" => shader::print(&words(&bytes))?,
                file => shader::write(file.as_ref(), &bytes)?,
            }
        }
        let Some(report) = report? else {
            return Ok(());
        };
        if self.timed {
            shader::print(&format!("{} cycles\n", report.stats.cycles))?;
        }
        for finding in &report.findings {
            eprintln!("{finding}");
        }
        for hazard in &report.hazards {
            eprintln!("{hazard}");
        }
        if !report.findings.is_empty() || !report.hazards.is_empty() {
            bail!("{} findings", report.findings.len() + report.hazards.len());
        }
        Ok(())
    }
}

fn fill(device: &Device, source: &str) -> Result<Buffer> {
    if let Some(count) = source.strip_prefix("zeros:") {
        let count = count
            .parse()
            .with_context(|| format!("`{source}`: no number of bytes"))?;
        return Ok(device.allocate_zeroed(count)?);
    }
    let bytes = std::fs::read(source).with_context(|| format!("cannot read {source}"))?;
    Ok(device.upload(&bytes)?)
}

/// Bytes as words in hexadecimal, four a line.
fn words(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let words: Vec<String> = (line.chunks(4))
            .map(|word| {
                word.iter()
                    .rev()
                    .map(|byte| format!("{byte:02x}"))
                    .collect()
            })
            .collect();
        text += &words.join(" ");
        text.push('\n');
    }
    text
}
