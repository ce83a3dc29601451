//! The target as Cranelift's front ends ask for one: its triple, its settings, what front ends must know.
//!
//! Nobody outside of Cranelift can implement its `TargetIsa`, so [`lookup`] gives [`Builder`] in place of Cranelift's
//! `isa::Builder`. It takes settings in the same way, [`Builder::set`] and [`Builder::enable`], or through the trait
//! `Configurable`:
//!
//! ```
//! use cranelift_thisgpu::{Compiler, target};
//! let mut builder = target::lookup(target::triple())?;
//! builder.set("opt_level", "none")?;
//! builder.enable("assume_aligned")?;
//! let compiler = Compiler::new(builder.finish());
//! # assert!(compiler.options().assume_aligned);
//! # Ok::<(), cranelift_thisgpu::Error>(())
//! ```

pub use crate::settings::{Builder, builder};

use crate::error::{Error, Place, Problem};
use crate::text::did_you_mean;
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use target_lexicon::{
    Architecture, BinaryFormat, CustomVendor, Environment, OperatingSystem, PointerWidth, Triple,
    Vendor,
};

/// The target's name: for `--target`, and as the vendor of [`triple`].
pub const NAME: &str = "thisgpu";
/// Calling convention of functions that the front end does not give one.
pub(crate) const CALL_CONV: CallConv = CallConv::Fast;
/// No pages are seen by programs; front ends take this for the alignment of what they want in pages of its own
/// (*assigned*).
const PAGE_SIZE_ALIGN_LOG2: u8 = 12;

/// The target's triple, `unknown-thisgpu-unknown-unknown-elf`. Its vendor is what identifies it. Triples have no name
/// for the architecture, so ask [`frontend_config`] for the width of pointers, not the triple.
pub fn triple() -> Triple {
    Triple {
        architecture: Architecture::Unknown,
        vendor: Vendor::Custom(CustomVendor::Static(NAME)),
        operating_system: OperatingSystem::Unknown,
        environment: Environment::Unknown,
        binary_format: BinaryFormat::Elf,
    }
}

/// What front ends must know: pointers of 64 bits, the calling convention `fast`.
pub fn frontend_config() -> TargetFrontendConfig {
    TargetFrontendConfig {
        default_call_conv: CALL_CONV,
        pointer_width: PointerWidth::U64,
        page_size_align_log2: PAGE_SIZE_ALIGN_LOG2,
    }
}

/// Settings for a triple: one whose vendor is [`NAME`], whatever the rest of it says.
///
/// # Errors
/// A triple of another target.
pub fn lookup(triple: Triple) -> Result<Builder, Error> {
    match &triple.vendor {
        Vendor::Custom(vendor) if vendor.as_str() == NAME => Ok(builder()),
        _ => Err(unknown(&triple.to_string())),
    }
}

/// Settings for a target by name: [`NAME`], or the text of a triple.
///
/// # Errors
/// The name of another target, or of none.
pub fn lookup_by_name(name: &str) -> Result<Builder, Error> {
    if name == NAME {
        return Ok(builder());
    }
    match name.parse::<Triple>() {
        Ok(triple) => lookup(triple),
        Err(_) => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Error {
    let near = did_you_mean(name, [NAME]);
    let message = format!("there is no target `{name}` here, only `{NAME}`{near}");
    Error::new(Problem::Target(message), Place::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triple_is_read_back_and_found() {
        let text = triple().to_string();
        let read: Triple = text.parse().unwrap();
        assert_eq!(read.vendor.as_str(), NAME);
        assert!(lookup(read).is_ok() && lookup_by_name(&text).is_ok());
        assert!(lookup_by_name(NAME).is_ok());
    }

    #[test]
    fn other_targets_are_errors() {
        for name in [
            "",
            "riscv64",
            "x86_64-unknown-linux-gnu",
            "-",
            "é",
            "thisgpu2",
            "nvptx64-nvidia-cuda",
        ] {
            let error = lookup_by_name(name).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("only `thisgpu`"), "{name}: {error}");
        }
        let near = lookup_by_name("thisgpo")
            .map(|_| ())
            .unwrap_err()
            .to_string();
        assert!(near.ends_with("did you mean `thisgpu`?"), "{near}");
    }
}
