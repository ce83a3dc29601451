//! What `launch` and `debug` run: files, a kernel, its grid and its arguments.

use super::argument::{LaunchArgument, Prepared};
use super::fault::Texts;
use crate::messages::{self, Several};
use crate::options::Settings;
use crate::{input, source};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::asm;
use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, Grid, Kernel, Launch};
use cranelift_thisgpu::object::{Linker, Object};
use cranelift_thisgpu::settings::Options;
use std::path::{Path, PathBuf};

/// Changes settings.
type Amend<'a> = &'a dyn Fn(&mut Options);

/// A kernel with what it is launched with.
#[derive(Args)]
pub struct Target {
    /// CLIF, assembly text (.s) or objects; several are linked.
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The kernel.
    #[arg(long, value_name = "NAME")]
    pub kernel: String,
    /// Blocks.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    grid: [u32; 3],
    /// Threads of a block.
    #[arg(long, value_name = "X[,Y,Z]", value_parser = parse_extent)]
    block: [u32; 3],
    /// Dynamic shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    shared: u32,
    /// The next argument: i8, i16, i32, i64, i128, f16, bf16, f32, f64 (inf, nan, -0.0 too) by value, several with
    /// commas as a vector; in:FILE, inout:FILE, zero:BYTES are buffers, passed by address; so is uninit:BYTES, which
    /// the kernel must write before it reads (see --check). FILE:TYPE is a text with numbers of this type.
    #[arg(long = "arg", value_name = "KIND:VALUE", allow_hyphen_values = true)]
    pub arguments: Vec<LaunchArgument>,
    #[command(flatten)]
    settings: Settings,
}

/// Reads `X`, `X,Y` or `X,Y,Z`.
pub fn parse_extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > extent.len() {
        return Err("at most three numbers: X,Y,Z".to_owned());
    }
    for (place, part) in extent.iter_mut().zip(parts) {
        *place = part
            .trim()
            .parse()
            .map_err(|_| format!("`{part}` is no number"))?;
    }
    Ok(extent)
}

impl Target {
    /// The files that are read.
    ///
    /// # Errors
    /// When standard input is to be read twice.
    pub fn inputs(&self) -> Result<Vec<PathBuf>> {
        let mut inputs = self.files.clone();
        inputs.extend(self.arguments.iter().filter_map(LaunchArgument::file));
        input::check_inputs(&inputs)?;
        Ok(inputs)
    }

    /// The kernel and its arguments on a device.
    pub fn load(&self, device: &Device, object: &Object) -> Result<(Kernel, Vec<Prepared>)> {
        let name = self.files.iter().map(|file| input::name(file));
        let name = name.collect::<Vec<_>>().join(", ");
        let module = device.load(object).with_context(|| name.clone())?;
        let kernel = module.kernel(&self.kernel).with_context(|| name)?;
        let arguments = (self.arguments.iter().enumerate())
            .map(|(index, argument)| argument.prepare(device, index))
            .collect::<Result<_>>()?;
        Ok((kernel, arguments))
    }

    /// The launch.
    pub fn launch<'a>(&self, kernel: &'a Kernel, arguments: &[Prepared]) -> Launch<'a> {
        let launch = kernel
            .launch(Grid::new(self.grid, self.block))
            .shared(self.shared);
        arguments
            .iter()
            .fold(launch, |launch, argument| launch.arg(argument))
    }

    /// What is to be loaded: a file, or several linked. `amend` changes the settings that files are compiled with.
    /// What is compiled goes to `texts`.
    pub fn object(&self, amend: Amend<'_>, texts: &mut Texts) -> Result<Object> {
        if let [file] = self.files.as_slice() {
            return self.read(file, true, amend, texts);
        }
        let mut linker = Linker::new();
        for file in &self.files {
            linker = linker.add(input::name(file), &self.read(file, false, amend, texts)?);
        }
        Ok(linker
            .link()
            .map_err(|errors| Several::of(errors.as_slice()))?)
    }

    /// What a file holds: by its contents an object, by its extension assembly text, otherwise CLIF, which has the
    /// kernel if it is `alone`. What is compiled goes to `texts`.
    fn read(
        &self,
        file: &Path,
        alone: bool,
        amend: Amend<'_>,
        texts: &mut Texts,
    ) -> Result<Object> {
        let name = input::name(file);
        let extension = file.extension();
        if extension.is_some_and(|e| e == "s") {
            let assembly = asm::assemble(&name, &input::text(file)?)?;
            messages::print_diagnostics(&assembly.warnings, messages::FIRST);
            return Ok(assembly.object);
        }
        let bytes = input::bytes(file)?;
        if Object::is_elf(&bytes) || extension.is_some_and(|e| e == "elf" || e == "o") {
            return Object::read(&bytes).with_context(|| name);
        }
        let text = input::text_of(&name, bytes)?;
        let mut file = source::parse(&name, &text, &[])?;
        texts.insert(name, text);
        let wanted = self.kernel.trim_start_matches('%');
        if alone || file.functions.iter().any(|f| f.name() == wanted) {
            file.mark_kernels(std::slice::from_ref(&self.kernel))?;
        }
        let mut options = self.settings.over(&file)?;
        amend(&mut options);
        let mut compiler = Compiler::new(options);
        let code = source::compile(&mut compiler, &file, 1)?;
        // What is left to others is an error when it is linked.
        messages::print_warnings(&file.warnings);
        Ok(code.into_object())
    }
}
