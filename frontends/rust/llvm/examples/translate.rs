//! Translates files of LLVM IR: `translate [--clif] KERNEL[,KERNEL…] FILE.ll…` prints the CLIF of what the kernels
//! reach, or what they need on the device.

use cranelift_thisgpu::{KernelOptions, Options};
use thisgpu_llvm::{Error, Kernel, Module, Program, clif, translate};

fn main() -> std::process::ExitCode {
    match run() {
        Ok(text) => {
            print!("{text}");
            std::process::ExitCode::SUCCESS
        }
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("{error}"));
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Vec<Error>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let plain = |message: String| vec![Error::of_module("translate", message)];
    let Some((names, files)) = words.split_first() else {
        return Err(plain("names of kernels and files expected".into()));
    };
    let mut modules = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| plain(format!("{file}: {e}")))?;
        modules.push(Module::parse(file, &text).map_err(|error| vec![error])?);
    }
    let program = Program::link(modules).map_err(|error| vec![error])?;
    let kernels: Vec<Kernel> = (names.split(','))
        .map(|name| Kernel {
            name: name.to_owned(),
            options: KernelOptions::default(),
        })
        .collect();
    if flags.iter().any(|flag| flag == "--clif") {
        return clif(&program, &kernels);
    }
    let translation = translate(&program, &kernels, &Options::default())?;
    let kernels = translation.code.kernels();
    Ok(kernels
        .iter()
        .map(|kernel| format!("{kernel:#?}\n"))
        .collect())
}
