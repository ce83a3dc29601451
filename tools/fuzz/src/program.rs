//! A program: some functions that call each other, calls of them with arguments, and settings. A seed gives a program.
//!
//! Its text is a run filetest: with the results that the oracle gives as what is expected, it is a test by itself.

use crate::catalogue::{Catalogue, Oracle};
use crate::host::Host;
use crate::interpreter::interpret;
use crate::random::Random;
use crate::swarm::{Form, Swarm};
use crate::write::{self, Callee};
use cranelift_codegen::data_value::{DataValue, DisplayDataValues};
use cranelift_codegen::ir::Function;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::settings::SETTINGS;
use std::fmt::Write;
use thisgpu_filetests::execute;
use thisgpu_filetests::file::TARGET;

/// Functions of a program.
pub const FUNCTIONS: usize = 8;
/// Calls of each function from outside.
const CALLS: usize = 6;
/// Registers that the setting `regs` chooses from.
const REGISTERS: [usize; 2] = [24, 72];

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Where it comes from.
    pub seed: u64,
    /// Who says what the results are.
    pub oracle: Oracle,
    /// `NAME=VALUE` for the compiler.
    pub settings: Vec<String>,
    /// The functions; one calls itself and earlier ones.
    pub functions: Vec<Function>,
    /// Arguments of the calls of each function.
    pub calls: Vec<Vec<Vec<DataValue>>>,
}

/// Results of the calls of each function.
pub type Results = Vec<Vec<Vec<DataValue>>>;

impl Program {
    /// The program of a seed.
    pub fn new(catalogue: &Catalogue, seed: u64) -> Program {
        Self::drawn(catalogue, seed, &Random::new(seed))
    }

    /// What `random` draws; `seed` is its name.
    pub fn drawn(catalogue: &Catalogue, seed: u64, random: &Random) -> Program {
        Self::without(catalogue, seed, random, &[])
    }

    /// The same without some forms.
    pub fn without(catalogue: &Catalogue, seed: u64, random: &Random, forms: &[Form]) -> Program {
        let mut choices = random.fork(0);
        // What the host lacks is a good part of CLIF, but the host is the better oracle.
        let oracle = if catalogue.host().is_err() || choices.once_in(3) {
            Oracle::Interpreter
        } else {
            Oracle::Host
        };
        let mut program = Program {
            seed,
            oracle,
            settings: settings(&mut choices),
            functions: Vec::new(),
            calls: Vec::new(),
        };
        let swarm = Swarm::drawn(&mut choices).without(forms);
        let mut callees: Vec<Callee> = Vec::new();
        for index in 0..FUNCTIONS {
            let name = format!("f{index}");
            let random = random.fork(1 + index as u64);
            let mut values = random.fork(1);
            let (func, callee) = write::function(catalogue, oracle, &callees, swarm, &name, random);
            let mut call = || {
                let params = callee.signature.params.iter();
                params.map(|param| values.value(param.value_type)).collect()
            };
            program.calls.push((0..CALLS).map(|_| call()).collect());
            program.functions.push(func);
            callees.push(callee);
        }
        program
    }

    /// The program of a file: its functions, the arguments of its run lines and its settings. The results in the file
    /// are not read.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(name: &str, text: &str) -> Result<Program, String> {
        let file = SourceFile::parse(name, text).map_err(|errors| errors.to_string())?;
        let mut calls = Vec::new();
        for function in &file.functions {
            let lines = function
                .run_lines(&file.name)
                .map_err(|errors| errors.to_string())?;
            let arguments = lines.iter().map(|line| execute::arguments(line).to_vec());
            calls.push(arguments.collect());
        }
        let header = file.header.settings.iter();
        Ok(Program {
            seed: 0,
            oracle: Oracle::Host,
            settings: header.flat_map(|line| line.words.clone()).collect(),
            functions: file
                .functions
                .into_iter()
                .map(|function| function.func)
                .collect(),
            calls,
        })
    }

    /// The results that the oracle gives.
    ///
    /// # Errors
    /// What the oracle cannot do.
    pub fn expected(&self, catalogue: &Catalogue) -> Result<Results, String> {
        match self.oracle {
            Oracle::Host => self.on_host(catalogue),
            Oracle::Interpreter => self.interpreted(),
        }
    }

    fn on_host(&self, catalogue: &Catalogue) -> Result<Results, String> {
        let functions: Vec<&Function> = self.functions.iter().collect();
        let host = Host::compile(catalogue.host()?, &functions)?;
        self.each_call(|index, arguments| host.call(index, arguments))
    }

    /// The interpreter's results.
    ///
    /// # Errors
    /// What it cannot do, a trap, an endless loop.
    pub fn interpreted(&self) -> Result<Results, String> {
        let functions: Vec<&Function> = self.functions.iter().collect();
        self.each_call(|index, arguments| interpret(&functions, &self.functions[index], arguments))
    }

    fn each_call(
        &self,
        mut call: impl FnMut(usize, &[DataValue]) -> Result<Vec<DataValue>, String>,
    ) -> Result<Results, String> {
        let mut results = Vec::new();
        for (index, calls) in self.calls.iter().enumerate() {
            let each = calls.iter().map(|arguments| call(index, arguments));
            results.push(each.collect::<Result<_, String>>()?);
        }
        Ok(results)
    }

    /// A run filetest that expects `results`.
    pub fn text(&self, results: &Results) -> String {
        let mut text = format!(
            "; Seed {} of the fuzzer; the results are those of the {}.\ntest run\n",
            self.seed, self.oracle
        );
        for setting in &self.settings {
            text.push_str(&format!("set {setting}\n"));
        }
        text.push_str(&format!("target {TARGET}\n"));
        let calls = self.calls.iter().zip(results);
        for (func, (calls, results)) in self.functions.iter().zip(calls) {
            text.push_str(&format!("\n{func}"));
            for (arguments, results) in calls.iter().zip(results) {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "; run: {}{} == {}",
                    func.name,
                    list(arguments, "(", ")"),
                    match &results[..] {
                        [one] => one.to_string(),
                        many => list(many, "[", "]"),
                    }
                );
            }
        }
        text
    }
}

fn list(values: &[DataValue], open: &str, close: &str) -> String {
    let mut text = DisplayDataValues(values).to_string();
    if values.len() != 1 {
        // With brackets of its own.
        text = text.trim_matches(['[', ']']).to_owned();
    }
    format!("{open}{text}{close}")
}

/// Settings for the compiler: each its default, or any legal value.
fn settings(random: &mut Random) -> Vec<String> {
    let mut settings = Vec::new();
    for setting in SETTINGS {
        let value = match setting.name {
            // It would be a lie: accesses of a program need not be aligned.
            "assume_aligned" => continue,
            "unroll" => {
                let value = random.pick(&["off", "auto", "2", "3", "4", "7"]);
                random.once_in(2).then(|| (*value).to_owned())
            }
            "verify" => random.once_in(8).then(|| "true".to_owned()),
            "regs" => {
                let count = random.between(REGISTERS[0], REGISTERS[1]);
                random.once_in(3).then(|| count.to_string())
            }
            _ => {
                let legal = setting.legal_values();
                let values: Vec<&str> = legal.split(", ").collect();
                let value = random.pick(&values).to_owned();
                random.once_in(2).then_some(value)
            }
        };
        settings.extend(value.map(|value| format!("{}={value}", setting.name)));
    }
    settings
}
