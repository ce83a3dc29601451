//! Compile, assemble, disassemble, simulate and test for the thisgpu target.
//!
//! One file per subcommand. Exit status: 0 success, 1 failure of what was asked, 2 usage. `-` as a file is standard
//! input.

mod asm;
mod bugpoint;
mod cat;
mod colours;
mod compile;
mod completions;
mod debug;
mod diff;
mod disasm;
mod exec;
mod explore;
mod input;
mod interpret;
mod isa;
mod launch;
mod link;
mod messages;
mod objdump;
mod options;
mod pass;
mod pipe;
mod port;
mod progress;
mod prove;
mod run;
mod run_lines;
mod source;
mod test;

use clap::{ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand};
use messages::Usage;
use std::process::ExitCode;
use thisgpu_filetests::report::Totals;

/// Tools for the thisgpu code generator.
#[derive(Parser)]
#[command(name = "clif-util", version)]
struct Arguments {
    /// Colour messages; auto is on a terminal, if NO_COLOR is not set.
    #[arg(long, global = true, value_name = "WHEN", default_value_t)]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile CLIF to assembly text, words or an object.
    Compile(compile::Options),
    /// Run the `; run:` and `; print:` lines of CLIF files on the simulator.
    Run(run::Options),
    /// Run one kernel on the simulator.
    Launch(launch::Options),
    /// Stop one kernel on the simulator, look into it, and run it backwards.
    Debug(debug::Options),
    /// Link objects to one with addresses.
    Link(link::Options),
    /// Assemble text to words or an object.
    Asm(asm::Options),
    /// Disassemble an object or lines of hexadecimal words.
    Disasm(disasm::Options),
    /// Show what is in objects: headers, symbols, relocations, resources, code beside words and source.
    Objdump(objdump::Options),
    /// Compile a file with two sets of settings and show what differs.
    Diff(diff::Options),
    /// Run straight-line code in one warp, once for each state.
    Exec(exec::Options),
    /// Carry assembly of the predecessor SPA 5.3 over to this set.
    Port(port::Options),
    /// Make a page that shows what every pass made of each line.
    Explore(explore::Options),
    /// Show the instruction set description.
    Isa(isa::Options),
    /// Run test files.
    Test(test::Options),
    /// Run the `; run:` and `; print:` lines of CLIF files on Cranelift's interpreter.
    Interpret(interpret::Options),
    /// Prove that the code of functions does what their CLIF says, for all inputs.
    Prove(prove::Options),
    /// Print the functions of CLIF files.
    Cat(cat::Options),
    /// Print the control-flow graphs of CLIF files in dot format.
    PrintCfg(cat::Options),
    /// Print functions after passes of the compiler.
    Pass(pass::Options),
    /// Make a CLIF file smaller that makes the compiler fail.
    Bugpoint(bugpoint::Options),
    /// Print a script that has a shell complete the commands and their options.
    Completions(completions::Completions),
    /// Print the page for man, or write one for each command.
    Man(completions::Pages),
}

impl Command {
    /// Whether `-d` is given.
    fn wants_debug_output(&self) -> bool {
        let output = match self {
            Command::Compile(options) => &options.debug,
            Command::Run(options) => &options.debug,
            Command::Test(options) => &options.debug,
            Command::Interpret(options) => &options.debug,
            Command::Cat(options) | Command::PrintCfg(options) => &options.debug,
            Command::Pass(options) => &options.debug,
            Command::Bugpoint(options) => &options.debug,
            _ => return false,
        };
        output.debug
    }
}

/// Log messages go to standard error: warnings of this compiler, or what RUST_LOG asks for, and with `debug` all but
/// the finest.
fn start_logging(debug: bool) {
    let environment = env_logger::Env::default();
    let mut logger;
    if debug {
        logger = env_logger::Builder::from_env(environment);
        logger.filter_level(log::LevelFilter::Debug);
    } else {
        let ours = environment.default_filter_or("cranelift_thisgpu=warn");
        logger = env_logger::Builder::from_env(ours);
    }
    logger.init();
}

/// The command line, or the status to end with: what is wrong with it is printed.
fn arguments() -> Result<Arguments, ExitCode> {
    let matches = colours::applied(Arguments::command()).try_get_matches();
    let arguments = matches.and_then(|matches| Arguments::from_arg_matches(&matches));
    arguments.map_err(|error| {
        let text = error.render();
        let shown = messages::cut(&text.to_string());
        // What asks for help goes to standard output as it is; a message may quote an endless argument.
        if !error.use_stderr() || shown == text.to_string() {
            error.exit();
        }
        messages::say(shown);
        ExitCode::from(USAGE)
    })
}

fn main() -> ExitCode {
    let command = match arguments() {
        Ok(arguments) => arguments.command,
        Err(status) => return status,
    };
    start_logging(command.wants_debug_output());
    let result = match command {
        Command::Compile(options) => options.run(),
        Command::Run(options) => options.run(),
        Command::Launch(options) => options.run(),
        Command::Debug(options) => options.run(),
        Command::Link(options) => options.run(),
        Command::Asm(options) => options.run(),
        Command::Disasm(options) => options.run(),
        Command::Objdump(options) => options.run(),
        Command::Diff(options) => options.run(),
        Command::Exec(options) => options.run(),
        Command::Port(options) => options.run(),
        Command::Explore(options) => options.run(),
        Command::Isa(options) => options.run(),
        Command::Test(options) => options.run(),
        Command::Interpret(options) => options.run(),
        Command::Prove(options) => options.run(),
        Command::Cat(options) => options.cat(),
        Command::PrintCfg(options) => options.print_cfg(),
        Command::Pass(options) => options.run(),
        Command::Bugpoint(options) => options.run(),
        Command::Completions(options) => options.run(Arguments::command()),
        Command::Man(options) => options.run(Arguments::command()),
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            messages::print_error(&error);
            ExitCode::from(if error.is::<Usage>() { USAGE } else { FAILURE })
        }
    }
}

/// Exit status of a failure of what was asked.
const FAILURE: u8 = 1;
/// Exit status of a wrong command line.
const USAGE: u8 = 2;

/// What came of a command that could be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All is well.
    Success,
    /// What was asked failed, and the reasons are already printed.
    Failure,
}

impl Outcome {
    /// Whether all files of a test passed.
    fn of(totals: &Totals) -> Outcome {
        if totals.files.failed == 0 {
            Outcome::Success
        } else {
            Outcome::Failure
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Success => ExitCode::SUCCESS,
            Outcome::Failure => ExitCode::from(FAILURE),
        }
    }
}
