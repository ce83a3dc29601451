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
        Err(messages) => {
            messages.iter().for_each(|message| eprintln!("{message}"));
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Vec<String>> {
    let (flags, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let plain = |message: String| vec![format!("translate: {message}")];
    let one = |error: Error| vec![error.to_string()];
    let all = |errors: Vec<Error>| errors.iter().map(Error::to_string).collect::<Vec<_>>();
    let Some((names, files)) = words.split_first() else {
        return Err(plain("names of kernels and files expected".into()));
    };
    let mut modules = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|e| plain(format!("{file}: {e}")))?;
        modules.push(Module::parse(file, &text).map_err(one)?);
    }
    let program = Program::link(modules).map_err(one)?;
    let kernels: Vec<Kernel> = (names.split(','))
        .map(|name| Kernel {
            name: name.to_owned(),
            options: KernelOptions::default(),
        })
        .collect();
    if flags.iter().any(|flag| flag == "--clif") {
        return clif(&program, &kernels).map_err(all);
    }
    let translation = translate(&program, &kernels, &Options::default()).map_err(all)?;
    let kernels = translation.code.kernels();
    Ok(kernels
        .iter()
        .map(|kernel| format!("{kernel:#?}\n"))
        .collect())
}
