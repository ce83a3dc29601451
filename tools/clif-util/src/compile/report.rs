//! What `compile` prints besides the code: texts of functions between passes, and what kernels need.

use crate::options::Format;
use anyhow::Result;
use cranelift_thisgpu::compile::{Code, Compiler, Pass};
use std::sync::{Arc, Mutex, PoisonError};

/// What is collected while functions are compiled.
#[derive(Default)]
pub struct Texts {
    /// Functions after passes.
    pub reports: String,
    /// Machine instructions before register allocation.
    pub vcode: String,
}

/// Texts that a compiler still adds to.
pub struct Collected(Arc<Mutex<Texts>>);

impl Collected {
    /// What there is so far.
    pub fn take(&self) -> Texts {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Has texts collected: every function after the passes `dumps`, with `print` as it is selected from, with `vcode` its
/// machine instructions.
pub fn observe(compiler: &mut Compiler, dumps: &[Pass], print: bool, vcode: bool) -> Collected {
    let texts = Arc::new(Mutex::new(Texts::default()));
    let collected = Collected(Arc::clone(&texts));
    let mut passes = dumps.to_vec();
    if print {
        passes.push(Pass::Clif);
    }
    if vcode {
        passes.push(Pass::BEFORE_ALLOCATION);
    }
    // With a sink nothing is taken from a cache.
    if passes.is_empty() {
        return collected;
    }
    let dumps = dumps.to_vec();
    compiler.dump_after(
        &passes,
        Box::new(move |dump| {
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            if print && dump.pass == Pass::Clif {
                texts.reports.push_str(dump.text);
                texts.reports.push('\n');
            }
            if dumps.contains(&dump.pass) {
                let heading = format!(
                    "; %{} after {}\n{}\n",
                    dump.function,
                    dump.pass.name(),
                    dump.text.trim_end()
                );
                texts.reports.push_str(&heading);
            }
            if vcode && dump.pass == Pass::BEFORE_ALLOCATION {
                texts.vcode.push_str(dump.text);
            }
        }),
    );
    collected
}

/// What the kernels need.
pub fn resource_usage(codes: &[&Code], format: Format) -> Result<String> {
    let kernels: Vec<_> = codes.iter().flat_map(|code| code.kernels()).collect();
    Ok(match format {
        Format::Text => kernels.iter().map(|kernel| format!("{kernel}\n")).collect(),
        Format::Json => serde_json::to_string(&kernels)? + "\n",
    })
}
