//! Shaders as texts: read and validated by naga.

use crate::binary::Binary;
use crate::error::{Error, Place, Reason};
use crate::nesting::deep;
use crate::translate::{TranslateOptions, Translation, translate};
use crate::{alignment, dimensions, nesting};
use naga::front::{glsl, spv, wgsl};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, ShaderStage, Span};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What of naga's capabilities is translated.
pub fn capabilities() -> Capabilities {
    Capabilities::IMMEDIATES
        | Capabilities::FLOAT64
        | Capabilities::SHADER_INT64
        | Capabilities::SHADER_INT16
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
        | Capabilities::SHADER_INT64_ATOMIC_MIN_MAX
        | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
        | Capabilities::SHADER_FLOAT32_ATOMIC
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::MEMORY_DECORATION_COHERENT
        | Capabilities::MEMORY_DECORATION_VOLATILE
}

/// What the spans of a module are places in.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    /// Where its lines begin; none of SPIR-V, where a line is a word.
    lines: Option<Vec<u32>>,
    /// Of SPIR-V, from which byte on how many words are not in spans.
    uncounted: Vec<(u32, u32)>,
}

impl Source {
    /// A text, with the name that messages give it.
    pub fn text(name: impl Into<String>, text: &str) -> Source {
        let behind = text.bytes().zip(1..).filter(|(byte, _)| *byte == b'\n');
        let lines = std::iter::once(0).chain(behind.map(|(_, offset)| offset));
        Source {
            name: name.into(),
            lines: Some(lines.collect()),
            uncounted: Vec::new(),
        }
    }

    /// A SPIR-V binary, or a text that is not known: the line of a place is the number of the four bytes that it
    /// begins in, from 1.
    pub fn words(name: impl Into<String>) -> Source {
        Source {
            name: name.into(),
            lines: None,
            uncounted: Vec::new(),
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line and column of the beginning of a span, from 1; the column counts bytes.
    pub fn position(&self, span: Span) -> Option<(u32, u32)> {
        let start = span.to_range()?.start as u32;
        let Some(lines) = &self.lines else {
            let behind = (self.uncounted).partition_point(|&(from, _)| from <= start);
            let last = behind
                .checked_sub(1)
                .and_then(|last| self.uncounted.get(last));
            return Some((start / 4 + 1 + last.map_or(0, |(_, words)| *words), 1));
        };
        let line = lines.partition_point(|&first| first <= start);
        let first = lines.get(line.checked_sub(1)?)?;
        Some((line as u32, start - first + 1))
    }

    /// The place of a span.
    pub fn place(&self, span: Span) -> Place {
        Place {
            file: self.name.clone(),
            position: self.position(span),
        }
    }

    /// An error at a span.
    pub(crate) fn error(&self, span: Span, reason: Reason) -> Error {
        Error {
            place: self.place(span),
            reason,
        }
    }
}

/// A shader that naga has read and found valid.
#[derive(Clone, Debug)]
pub struct Shader {
    /// The module.
    pub module: Module,
    /// What the validator found out about it.
    pub info: ModuleInfo,
    /// What its spans are places in.
    pub source: Source,
}

impl Shader {
    /// Reads WGSL; messages call it `name`.
    ///
    /// # Errors
    /// What naga refuses, and structures that it puts where `@align` forbids.
    pub fn wgsl(name: &str, text: &str) -> Result<Shader, Error> {
        let source = Source::text(name, text);
        let options = wgsl::Options {
            parse_doc_comments: false,
            capabilities: capabilities(),
        };
        let shader = Shader::read(source, |source| {
            let parsed = wgsl::Frontend::new_with_options(options).parse(text);
            parsed.map_err(|error| {
                let labels = error.labels().map(|(span, _)| span);
                let span = labels.into_iter().find(Span::is_defined);
                let labels = error.labels().map(|(_, label)| label);
                let labels = labels.filter(|label| !label.is_empty());
                let parts = std::iter::once(error.message()).chain(labels);
                let message = parts.collect::<Vec<_>>().join(": ");
                source.error(span.unwrap_or(first()), Reason::Naga(message))
            })
        })?;
        let checked = alignment::check(&shader.module, text);
        checked.map_err(|(span, reason)| shader.source.error(span, reason))?;
        Ok(shader)
    }

    /// Reads a compute shader in GLSL; messages call it `name`.
    ///
    /// # Errors
    /// What naga refuses.
    pub fn glsl(name: &str, text: &str) -> Result<Shader, Error> {
        let source = Source::text(name, text);
        Shader::read(source, |source| {
            let options = glsl::Options::from(ShaderStage::Compute);
            let parsed = glsl::Frontend::default().parse(&options, text);
            let module = parsed.map_err(|errors| {
                let messages = errors.errors.iter().map(ToString::to_string);
                let messages = messages.collect::<Vec<_>>().join("; ");
                let spans = errors.errors.iter().map(|error| error.meta);
                let span = spans.into_iter().find(Span::is_defined);
                source.error(span.unwrap_or(first()), Reason::Naga(messages))
            })?;
            let checked = dimensions::check(&module);
            checked.map_err(|(span, reason)| source.error(span, reason))?;
            Ok(module)
        })
    }

    /// Reads a SPIR-V binary; messages call it `name`.
    ///
    /// # Errors
    /// What naga refuses. It says no places in SPIR-V that it does not read.
    pub fn spirv(name: &str, bytes: &[u8]) -> Result<Shader, Error> {
        let binary = Binary::new(bytes);
        let source = Source {
            uncounted: binary.uncounted.clone(),
            ..Source::words(name)
        };
        Shader::read(source, |source| {
            let options = spv::Options {
                adjust_coordinate_space: false,
                strict_capabilities: false,
                block_ctx_dump_prefix: None,
            };
            let parsed = spv::parse_u8_slice(bytes, &options);
            let parsed = parsed.map_err(|error| Reason::Naga(chain(&error)));
            let mut module = parsed.map_err(|reason| source.error(Span::UNDEFINED, reason))?;
            let mended = binary.mend(&mut module);
            mended.map_err(|(span, reason)| source.error(span, reason))?;
            Ok(module)
        })
    }

    /// A module that somebody else has read and validated; messages call it `name`. With its text, places are lines of
    /// that; without, the line is the number of the four bytes that a span begins in.
    ///
    /// # Errors
    /// Of WGSL, structures that naga puts where `@align` forbids.
    pub fn validated(
        name: &str,
        module: Module,
        info: ModuleInfo,
        text: Option<&str>,
    ) -> Result<Shader, Error> {
        let source = match text {
            Some(text) => Source::text(name, text),
            None => Source::words(name),
        };
        let shader = Shader {
            module,
            info,
            source,
        };
        let checked = nesting::check(&shader.module)
            .and_then(|()| text.map_or(Ok(()), |text| alignment::check(&shader.module, text)));
        checked.map_err(|(span, reason)| shader.source.error(span, reason))?;
        Ok(shader)
    }

    /// A module that is to be read and validated.
    fn read(
        source: Source,
        parse: impl FnOnce(&Source) -> Result<Module, Error> + Send,
    ) -> Result<Shader, Error> {
        let (module, info) = deep(&source, || {
            let module = guarded(&source, || parse(&source))?;
            let checked = nesting::check(&module);
            checked.map_err(|(span, reason)| source.error(span, reason))?;
            let info = guarded(&source, || {
                let mut validator = Validator::new(ValidationFlags::all(), capabilities());
                validator.validate(&module).map_err(|error| {
                    let spans = error.spans().map(|(span, _)| *span);
                    let span = spans.into_iter().find(Span::is_defined);
                    let reason = Reason::Naga(chain(error.as_inner()));
                    source.error(span.unwrap_or(first()), reason)
                })
            })?;
            Ok((module, info))
        })?;
        Ok(Shader {
            module,
            info,
            source,
        })
    }

    /// Translates an entry point, see [`translate`].
    ///
    /// # Errors
    /// As [`translate`].
    pub fn translate(&self, entry: &str, options: &TranslateOptions) -> Result<Translation, Error> {
        translate(&self.module, &self.info, &self.source, entry, options)
    }

    /// The names of its compute entry points.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        let entries = self.module.entry_points.iter();
        let entries = entries.filter(|entry| entry.stage == ShaderStage::Compute);
        entries.map(|entry| entry.name.as_str())
    }
}

/// The place of what naga says no place of: the beginning.
fn first() -> Span {
    Span::new(0, 1)
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Runs a part of naga, whose panics are errors here.
pub(crate) fn guarded<T>(
    source: &Source,
    part: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| {
        let text = (panic.downcast_ref::<String>().cloned())
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        let text = text.unwrap_or_else(|| "without a message".to_string());
        Err(source.error(first(), Reason::Naga(format!("naga panicked: {text}"))))
    })
}
