//! `test run`: run and print lines on the simulator.
//!
//! All lines of a function go in one launch, one block of one thread each; if that ends in a fault, each line gets a
//! launch of its own. Lines with the right result run again side by side in the 32 lanes of a warp, in timed mode: the
//! results must not change, and no hazard may show.

use crate::applicability::Reason;
use crate::file::Stepped;
use crate::program::{Program, Unavailable, kernel_name};
use crate::report::FileReport;
use crate::stepping::Stepping;
use crate::trampoline::{decode_results, encode_arguments, row_bytes};
use cranelift_codegen::data_value::{DataValue, DisplayDataValues};
use cranelift_codegen::ir::{Signature, Type, types};
use cranelift_reader::{Comparison, Invocation, RunCommand};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::driver::{Device, DeviceError, Grid, Kernel, Module};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::clif::source::RunLine;

/// Lanes of a warp.
const LANES: usize = 32;

/// Runs all lines of a file. With `strict`, what is unsupported is an error rather than skipped.
/// [`Stepped`] launches are made twice.
pub fn run_file(
    file: &SourceFile,
    options: &Options,
    strict: bool,
    stepped: Option<&Stepped>,
    report: &mut FileReport,
) {
    let mut lines: Vec<(usize, Vec<RunLine>)> = Vec::new();
    for (index, function) in file.functions.iter().enumerate() {
        match function.run_lines(&file.name) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => lines.push((index, found)),
            Err(errors) => report.fail(errors.as_slice().len(), errors),
        }
    }
    let run: Vec<usize> = lines.iter().map(|(index, _)| *index).collect();
    let program = match Program::compile(file, &run, options, !strict, report.timings.is_some()) {
        Ok(program) => program,
        Err(errors) => {
            return report.fail(
                lines.iter().map(|(_, lines)| lines.len()).sum(),
                errors.in_file(&file.name),
            );
        }
    };
    report.add_timings(&program.timings);
    let devices = match Devices::load(&program, strict, stepped) {
        Ok(devices) => devices,
        Err(error) => {
            return report.fail(
                lines.iter().map(|(_, lines)| lines.len()).sum(),
                format!("{}: {error}", file.name),
            );
        }
    };
    for (index, lines) in &lines {
        let function = &file.functions[*index];
        match program.unavailable.get(&function.name()) {
            Some(reason) => {
                let place = format!("{}:{}: %{}", file.name, function.line, function.name());
                match (reason, reason.mistake()) {
                    (_, Some(mistake)) => report.fail(lines.len(), mistake),
                    (Unavailable::Unsupported(errors), None) if strict => {
                        report.fail(lines.len(), errors);
                    }
                    (_, None) if strict => {
                        report.fail(lines.len(), format!("{place}: {}", reason.reason()));
                    }
                    (_, None) => report.skip(reason.reason(), lines.len()),
                }
            }
            None => {
                let lines = Lines {
                    file,
                    signature: &function.func.signature,
                    lines,
                    strict,
                };
                lines.run(&devices, &kernel_name(*index), report);
            }
        }
    }
    // A wrong function without run lines is an error all the same.
    let with_lines: Vec<String> = lines
        .iter()
        .map(|(index, _)| file.functions[*index].name())
        .collect();
    for (name, reason) in &program.unavailable {
        report
            .errors
            .extend(reason.mistake().filter(|_| !with_lines.contains(name)));
    }
}

/// The program on a functional device and on a timed one; both check own files, whose kernels are correct. Where
/// launches are stepped neither is timed.
struct Devices {
    functional: (Device, Module),
    timed: (Device, Module),
}

impl Devices {
    fn load(
        program: &Program,
        check: bool,
        stepped: Option<&Stepped>,
    ) -> Result<Self, DeviceError> {
        let load = |timed| {
            let config = SimConfig {
                timed,
                check,
                ..SimConfig::default()
            };
            let device = match stepped {
                None => Device::simulator(config),
                Some(Stepped {
                    points,
                    seed,
                    tally,
                }) => Device::new(Stepping::new(config, *points, *seed, tally.clone())),
            };
            let module = device.load(&program.code)?;
            Ok::<_, DeviceError>((device, module))
        };
        Ok(Self {
            functional: load(false)?,
            timed: load(true)?,
        })
    }
}

/// The lines of one function.
struct Lines<'a> {
    file: &'a SourceFile,
    signature: &'a Signature,
    lines: &'a [RunLine],
    strict: bool,
}

/// Most instructions of a launch that runs again side by side: timed mode is slow, and long lines are loops.
const MAX_REPEATED: u64 = 200_000;

/// What came of a launch.
struct Launched {
    /// Results, one list for each thread.
    values: Vec<Vec<DataValue>>,
    /// Instructions that warps issued.
    instructions: u64,
}

impl Lines<'_> {
    fn run(&self, devices: &Devices, kernel: &str, report: &mut FileReport) {
        let mut rows = Vec::new();
        for line in self.lines {
            match encode_arguments(self.signature, arguments(line)) {
                Ok(row) => rows.push(row),
                Err(error) => {
                    return report.fail(self.lines.len(), self.message(line, &error.to_string()));
                }
            }
        }
        let all: Vec<usize> = (0..rows.len()).collect();
        let mut instructions = 0;
        let results: Vec<Result<Vec<DataValue>, String>> =
            match self.launch(&devices.functional, kernel, &rows, &all, 1) {
                Ok(launched) => {
                    instructions = launched.instructions;
                    launched.values.into_iter().map(Ok).collect()
                }
                Err(_) => {
                    let mut alone = |index: &usize| {
                        let on = &devices.functional;
                        let mut launched = self.launch(on, kernel, &rows, &[*index], 1)?;
                        instructions += launched.instructions;
                        Ok(launched.values.remove(0))
                    };
                    all.iter().map(&mut alone).collect()
                }
            };
        let mut right = Vec::new();
        for ((index, line), result) in self.lines.iter().enumerate().zip(results) {
            if let Ok(values) = &result
                && !self.strict
                && differs_in_nans(&line.command, values, self.signature)
            {
                report.skip(Reason::OtherArchitecture, 1);
                continue;
            }
            match result.and_then(|values| judge(&line.command, &values)) {
                Ok(printed) => {
                    report.pass(line);
                    report.prints.extend(printed);
                    right.push(index);
                }
                Err(error) => report.fail(1, self.message(line, &error)),
            }
        }
        if instructions > MAX_REPEATED {
            return;
        }
        if let Err(error) = self.side_by_side(devices, kernel, &rows, &right) {
            report
                .errors
                .push(self.message(&self.lines[0], &format!("in a full warp: {error}")));
        }
    }

    /// Runs lines in all lanes of a warp, each lane another line as far as there are enough.
    fn side_by_side(
        &self,
        devices: &Devices,
        kernel: &str,
        rows: &[Vec<u8>],
        right: &[usize],
    ) -> Result<(), String> {
        if right.is_empty() {
            return Ok(());
        }
        let chosen: Vec<usize> = right.iter().copied().cycle().take(LANES).collect();
        let launched = self.launch(&devices.timed, kernel, rows, &chosen, LANES)?;
        for (lane, (index, values)) in chosen.into_iter().zip(launched.values).enumerate() {
            let line = &self.lines[index];
            judge(&line.command, &values)
                .map_err(|error| format!("lane {lane}, line {}: {error}", line.line))?;
        }
        Ok(())
    }

    /// Launches the kernel with these rows of arguments, `width` threads to a block.
    fn launch(
        &self,
        on: &(Device, Module),
        kernel: &str,
        rows: &[Vec<u8>],
        chosen: &[usize],
        width: usize,
    ) -> Result<Launched, String> {
        let (device, module) = on;
        let kernel = module.kernel(kernel).map_err(|error| error.to_string())?;
        self.launch_on(device, &kernel, rows, chosen, width)
            .map_err(|error| error.to_string())?
    }

    fn launch_on(
        &self,
        device: &Device,
        kernel: &Kernel,
        rows: &[Vec<u8>],
        chosen: &[usize],
        width: usize,
    ) -> Result<Result<Launched, String>, DeviceError> {
        let bytes: Vec<u8> = chosen
            .iter()
            .flat_map(|index| &rows[*index])
            .copied()
            .collect();
        let arguments = device.upload(&bytes)?;
        let size = row_bytes(&self.signature.returns);
        let results = device.allocate((chosen.len() * size) as u64)?;
        let blocks = u32::try_from(chosen.len() / width).unwrap_or(u32::MAX);
        let grid = Grid::new(
            [blocks, 1, 1],
            [u32::try_from(width).unwrap_or(u32::MAX), 1, 1],
        );
        let report = kernel.launch(grid).arg(&arguments).arg(&results).run()?;
        if let Some(hazard) = report.hazards.first() {
            return Ok(Err(hazard.to_string()));
        }
        if let Some(finding) = report.findings.first() {
            return Ok(Err(finding.to_string()));
        }
        let bytes: Vec<u8> = device.download(&results)?;
        let rows = bytes.chunks_exact(size);
        Ok(Ok(Launched {
            values: rows
                .map(|row| decode_results(self.signature, row))
                .collect(),
            instructions: report.stats.warp_instructions,
        }))
    }

    fn message(&self, line: &RunLine, text: &str) -> String {
        format!("{}:{}: {}: {text}", self.file.name, line.line, line.command)
    }
}

/// The arguments of a line.
pub fn arguments(line: &RunLine) -> &[DataValue] {
    match &line.command {
        RunCommand::Run(Invocation { args, .. }, ..)
        | RunCommand::Print(Invocation { args, .. }) => args,
    }
}

/// Compares results with what a command expects; gives the text of a print command.
///
/// # Errors
/// Expected and actual values.
pub fn judge(command: &RunCommand, results: &[DataValue]) -> Result<Option<String>, String> {
    match command {
        RunCommand::Print(invocation) => Ok(Some(format!(
            "{invocation} -> {}",
            DisplayDataValues(results)
        ))),
        RunCommand::Run(invocation, Comparison::NotEquals, expected)
            if is_bare(invocation, expected) =>
        {
            match results {
                [value] if is_zero(value) => Err("the result is zero".to_owned()),
                [_] => Ok(None),
                _ => Err(format!(
                    "a bare `; run` needs one result, there are {}",
                    results.len()
                )),
            }
        }
        RunCommand::Run(_, comparison, expected) => {
            let same = results.len() == expected.len()
                && results
                    .iter()
                    .zip(expected)
                    .all(|(result, expected)| result.bitwise_eq(expected));
            if same == (*comparison == Comparison::Equals) {
                return Ok(None);
            }
            Err(format!("the result is {}", DisplayDataValues(results)))
        }
    }
}

/// True if results differ from what a command expects in nothing but the bits of NaNs. CLIF leaves open which NaN an
/// operation returns; files for one machine expect that machine's.
fn differs_in_nans(command: &RunCommand, results: &[DataValue], signature: &Signature) -> bool {
    let RunCommand::Run(_, Comparison::Equals, expected) = command else {
        return false;
    };
    let same = |(result, expected): (&DataValue, &DataValue)| result.bitwise_eq(expected);
    let pairs = || results.iter().zip(expected);
    results.len() == expected.len()
        && !pairs().all(same)
        && pairs()
            .zip(&signature.returns)
            .all(|((result, expected), param)| {
                result.bitwise_eq(expected) || same_but_nans(result, expected, param.value_type)
            })
}

/// True if the float lanes of two values are equal or both NaN.
pub fn same_but_nans(a: &DataValue, b: &DataValue, ty: Type) -> bool {
    // Bits of the fraction, and the bits below the sign.
    let fraction = match ty.lane_type() {
        types::F16 => 10,
        types::F32 => 23,
        types::F64 => 52,
        _ => return false,
    };
    let bytes = ty.lane_type().bytes() as usize;
    let magnitude = (1u64 << (bytes * 8 - 1)) - 1;
    let is_nan = |bits: u64| bits & magnitude > (magnitude >> fraction) << fraction;
    let lanes = |value: &DataValue| {
        let mut all = [0; crate::trampoline::SLOT_BYTES];
        value.write_to_slice_le(&mut all);
        let lane = |chunk: &[u8]| {
            chunk
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        };
        all.chunks_exact(bytes).map(lane).collect::<Vec<u64>>()
    };
    lanes(a)
        .into_iter()
        .zip(lanes(b))
        .all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}

/// True for what the reader makes of `; run` alone.
fn is_bare(invocation: &Invocation, expected: &[DataValue]) -> bool {
    invocation.func == "default" && invocation.args.is_empty() && expected == [DataValue::I8(0)]
}

fn is_zero(value: &DataValue) -> bool {
    let mut bytes = [0; crate::trampoline::SLOT_BYTES];
    value.write_to_slice_le(&mut bytes);
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types::{F32, F32X2, I32};

    #[test]
    fn only_the_bits_of_nans_are_left_open() {
        let float =
            |bits: u32| DataValue::F32(cranelift_codegen::ir::immediates::Ieee32::with_bits(bits));
        assert!(same_but_nans(&float(0x7fc0_0000), &float(0xffc0_0001), F32));
        assert!(
            !same_but_nans(&float(0x7f80_0000), &float(0x7fc0_0000), F32),
            "infinity is no NaN"
        );
        assert!(!same_but_nans(&float(0), &float(0x8000_0000), F32));
        let pair = |low: u32, high: u32| {
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&low.to_le_bytes());
            bytes[4..].copy_from_slice(&high.to_le_bytes());
            DataValue::V64(bytes)
        };
        assert!(same_but_nans(
            &pair(1, 0x7fc0_0000),
            &pair(1, 0xffc0_0000),
            F32X2
        ));
        assert!(!same_but_nans(
            &pair(1, 0x7fc0_0000),
            &pair(2, 0xffc0_0000),
            F32X2
        ));
        assert!(!same_but_nans(
            &DataValue::I32(0x7fc0_0000),
            &DataValue::I32(0x7fc0_0001),
            I32
        ));
    }
}
