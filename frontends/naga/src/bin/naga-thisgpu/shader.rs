//! A shader as the command line names it, and its entry point.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use cranelift_thisgpu::Options;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use thisgpu_naga::{Bounds, Compiled, Shader, TranslateOptions, Translation};

/// What becomes of indices behind the end.
#[derive(Clone, Copy, ValueEnum)]
enum Policy {
    /// They become the last one.
    Restrict,
    /// Reads give zeros, writes do nothing.
    Zero,
    /// The launch ends with a fault.
    Fault,
}

impl From<Policy> for Bounds {
    fn from(policy: Policy) -> Bounds {
        match policy {
            Policy::Restrict => Bounds::Restrict,
            Policy::Zero => Bounds::Zero,
            Policy::Fault => Bounds::Fault,
        }
    }
}

/// A shader and how it is translated.
#[derive(Args)]
pub struct Input {
    /// The shader: .wgsl, .comp (GLSL) or .spv.
    file: PathBuf,
    /// The entry point; the only one if there is one.
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// The value of an override, by its name or its number.
    #[arg(long = "override", value_name = "NAME=VALUE", value_parser = assignment)]
    overrides: Vec<(String, f64)>,
    /// Indices behind the end of variables and values.
    #[arg(long, value_enum, default_value = "restrict")]
    bounds: Policy,
    /// Indices behind the end of buffers.
    #[arg(long, value_enum, default_value = "restrict")]
    buffer_bounds: Policy,
    /// Leave workgroup memory as it is.
    #[arg(long)]
    no_zero_workgroup: bool,
}

fn assignment(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("NAME=VALUE expected")?;
    let value = match value {
        "true" => 1.0,
        "false" => 0.0,
        value => value
            .parse()
            .map_err(|_| format!("`{value}` is no number"))?,
    };
    Ok((name.to_string(), value))
}

impl Input {
    /// Reads and validates the shader.
    pub fn read(&self) -> Result<Shader> {
        let name = self.file.display().to_string();
        let bytes = std::fs::read(&self.file).with_context(|| format!("cannot read {name}"))?;
        let text =
            || String::from_utf8(bytes.clone()).with_context(|| format!("{name} is no text"));
        Ok(match self.file.extension().and_then(|end| end.to_str()) {
            Some("wgsl") => Shader::wgsl(&name, &text()?)?,
            Some("comp") => Shader::glsl(&name, &text()?)?,
            Some("spv") => Shader::spirv(&name, &bytes)?,
            _ => bail!("{name}: a shader's name ends with .wgsl, .comp or .spv"),
        })
    }

    /// Translates the entry point.
    pub fn translate(&self, shader: &Shader) -> Result<Translation> {
        let entries: Vec<&str> = shader.entries().collect();
        let entry = match (&self.entry, &entries[..]) {
            (Some(entry), _) => entry.as_str(),
            (None, [only]) => only,
            (None, []) => bail!("{}: no compute entry point", self.file.display()),
            (None, _) => bail!("which entry point? there are {}", entries.join(", ")),
        };
        let options = TranslateOptions {
            constants: self.overrides.iter().cloned().collect(),
            bounds: self.bounds.into(),
            buffer_bounds: self.buffer_bounds.into(),
            zero_workgroup: !self.no_zero_workgroup,
        };
        Ok(shader.translate(entry, &options)?)
    }

    /// Translates and compiles the entry point.
    pub fn compile(&self, shader: &Shader) -> Result<Compiled> {
        Ok(self.translate(shader)?.compile(&Options::default())?)
    }
}

/// Writes a file.
pub fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

/// Writes to standard output. Who closes it early has seen enough.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write"),
        _ => Ok(()),
    }
}
