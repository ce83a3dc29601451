//! Calls of functions on the simulator, and what an oracle gives for the same arguments.
//!
//! In: functions and how many arguments to try. Out: for each whether all results are the same. Functions of one file
//! are compiled together; a launch makes all calls of a function, each in a lane of its own.

use crate::catalogue::{self, Catalogue};
use crate::host::Host;
use crate::interpreter::interpret;
use crate::random::Random;
use crate::rules::corpus::Subject;
use crate::rules::numbers::insts;
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Signature, Type, types};
use cranelift_codegen::settings::{self, Flags};
use cranelift_codegen::verify_function;
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::driver::{Device, DeviceError, Grid, Module};
use cranelift_thisgpu::sim::SimConfig;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use thisgpu_filetests::execute::same_but_nans;
use thisgpu_filetests::file::settings_of;
use thisgpu_filetests::program::{Program, kernel_name};
use thisgpu_filetests::trampoline::{SLOT_BYTES, decode_results, encode_arguments, row_bytes};

/// Parameters of so many bits in all are given every value.
const EXHAUSTIVE: u32 = 16;
/// Threads of a block, all of which run the same code with other arguments.
const LANES: usize = 32;

/// What came of the calls of a function.
#[derive(Clone)]
pub(super) struct Compared {
    /// Whether with all arguments that there are.
    pub all: bool,
    /// Calls whose results were compared.
    pub calls: usize,
    /// The first call whose results differ.
    pub difference: Option<String>,
}

/// How functions are called.
pub(super) struct Calls<'a> {
    /// What the oracles can do.
    pub catalogue: &'a Catalogue,
    /// Arguments of a function.
    pub arguments: usize,
    /// Where they come from.
    pub seed: u64,
}

impl Calls<'_> {
    /// Calls functions, those of a file together.
    pub(super) fn of_all(
        &self,
        subjects: &[Subject],
        indices: BTreeSet<usize>,
    ) -> Vec<(usize, Result<Compared, String>)> {
        let mut files: BTreeMap<*const SourceFile, Vec<usize>> = BTreeMap::new();
        for index in indices {
            let file = std::ptr::from_ref(subjects[index].file());
            files.entry(file).or_default().push(index);
        }
        let files: Vec<Vec<usize>> = files.into_values().collect();
        let of_file = |indices: &Vec<usize>| {
            let found = self.of_file(subjects, indices);
            let of_index = |(place, &index): (usize, &usize)| match &found {
                Ok(found) => (index, found[place].clone()),
                Err(reason) => (index, Err(reason.clone())),
            };
            indices.iter().enumerate().map(of_index).collect::<Vec<_>>()
        };
        files.par_iter().flat_map(of_file).collect()
    }

    /// Calls functions of one file; an error for each that the oracle or the target cannot run.
    fn of_file(
        &self,
        subjects: &[Subject],
        indices: &[usize],
    ) -> Result<Vec<Result<Compared, String>>, String> {
        let file = subjects[indices[0]].file();
        let positions: Vec<usize> = indices
            .iter()
            .map(|index| subjects[*index].position())
            .collect();
        let options = settings_of(file, &[], true)?;
        let program =
            Program::compile(file, &positions, &options, true, false).map_err(|e| e.to_string())?;
        let device = Device::simulator(SimConfig::default());
        let module = device
            .load(&program.code)
            .map_err(|error| error.to_string())?;
        let results = positions.iter().map(|&position| {
            if let Some(reason) = program.unavailable.get(&file.functions[position].name()) {
                return Err(reason.reason());
            }
            self.of_function(
                &file.functions[position].func,
                &device,
                &module,
                &kernel_name(position),
            )
        });
        Ok(results.collect())
    }

    fn of_function(
        &self,
        func: &Function,
        device: &Device,
        module: &Module,
        kernel: &str,
    ) -> Result<Compared, String> {
        let types: Vec<Type> = func
            .signature
            .params
            .iter()
            .map(|param| param.value_type)
            .collect();
        let all = types.iter().map(|ty| ty.bits()).sum::<u32>() <= EXHAUSTIVE;
        let arguments = if all {
            every(&types)
        } else {
            self.random(&types)
        };
        let expected = self.expected(func, arguments)?;
        let found = run(&func.signature, device, module, kernel, &expected)?;
        let mut compared = expected.iter().zip(&found);
        let differing =
            compared.find(|((_, expected), found)| !same(&func.signature, expected, found));
        Ok(Compared {
            all,
            calls: expected.len(),
            difference: differing.map(|((arguments, expected), found)| {
                format!(
                    "of {arguments:?}: {found:?}, not {expected:?}\n{}",
                    func.display()
                )
            }),
        })
    }

    fn random(&self, types: &[Type]) -> Vec<Vec<DataValue>> {
        let mut random = Random::new(self.seed);
        (0..self.arguments)
            .map(|_| types.iter().map(|ty| random.value(*ty)).collect())
            .collect()
    }

    /// Arguments with what the oracle makes of each lane of them: it is asked about the same function of scalars. A
    /// function that does not work lane by lane is none of scalars.
    fn by_lanes(
        &self,
        func: &Function,
        ty: Type,
        arguments: Vec<Vec<DataValue>>,
    ) -> Result<Vec<Call>, String> {
        let (vector, lane) = (ty.to_string(), ty.lane_type());
        let text = func
            .display()
            .to_string()
            .replace(&vector, &lane.to_string());
        let other = || "no oracle knows it, and it does not work lane by lane".to_owned();
        let file = SourceFile::parse("lanes.clif", &text).map_err(|_| other())?;
        let scalar = &file.functions.first().ok_or_else(other)?.func;
        verify_function(scalar, &Flags::new(settings::builder())).map_err(|_| other())?;
        let lanes = ty.lane_count() as usize;
        let size = lane.bytes() as usize;
        let of_lane = |value: &DataValue, index: usize| {
            let mut bytes = [0; SLOT_BYTES];
            value.write_to_slice_le(&mut bytes);
            DataValue::read_from_slice_le(&bytes[index * size..], lane)
        };
        let of_lanes = |values: &[DataValue]| {
            let mut bytes = [0; SLOT_BYTES];
            for (value, place) in values.iter().zip(bytes.chunks_exact_mut(size)) {
                value.write_to_slice_le(place);
            }
            DataValue::read_from_slice_le(&bytes, ty)
        };
        let scalars = arguments.iter().flat_map(|arguments| {
            (0..lanes).map(|index| {
                arguments
                    .iter()
                    .map(|value| of_lane(value, index))
                    .collect()
            })
        });
        let scalars = self.expected(scalar, scalars.collect())?;
        if scalars.len() != arguments.len() * lanes {
            return Err("a lane traps".to_owned());
        }
        let calls =
            arguments
                .into_iter()
                .zip(scalars.chunks_exact(lanes))
                .map(|(arguments, lanes)| {
                    let results = (0..func.signature.returns.len()).map(|result| {
                        let each: Vec<DataValue> = lanes
                            .iter()
                            .map(|(_, results)| results[result].clone())
                            .collect();
                        of_lanes(&each)
                    });
                    (arguments, results.collect())
                });
        Ok(calls.collect())
    }

    /// Arguments with what the oracle makes of them; those for which the function traps are left out.
    fn expected(
        &self,
        func: &Function,
        arguments: Vec<Vec<DataValue>>,
    ) -> Result<Vec<Call>, String> {
        let can_trap = insts(func).any(|inst| func.dfg.insts[inst].opcode().can_trap());
        if !can_trap
            && catalogue::host_knows(func)
            && let Ok(isa) = self.catalogue.host()
            && let Ok(host) = Host::compile(isa, &[func])
        {
            let calls = arguments.into_iter().map(|arguments| {
                let results = host.call(0, &arguments)?;
                Ok((arguments, results))
            });
            return calls.collect();
        }
        if let Some(ty) = one_vector(func) {
            return self.by_lanes(func, ty, arguments);
        }
        if let Some(reason) = catalogue::interpreter_mistakes(func) {
            return Err(reason.to_owned());
        }
        let calls = arguments.into_iter().filter_map(|arguments| {
            match interpret(&[func], func, &arguments) {
                Ok(results) => Some(Ok((arguments, results))),
                Err(message) if message.contains("traps") => None,
                Err(message) => Some(Err(message)),
            }
        });
        calls.collect()
    }
}

/// The one type of vectors that parameters and results have, if the oracles lack it.
fn one_vector(func: &Function) -> Option<Type> {
    let params = func.signature.params.iter().chain(&func.signature.returns);
    let mut types = params.map(|param| param.value_type);
    let ty = types.next()?;
    let is_lacked = ty.is_vector() && ty.lane_type() == types::F16;
    (is_lacked && types.all(|other| other == ty)).then_some(ty)
}

/// Arguments and results of a call.
type Call = (Vec<DataValue>, Vec<DataValue>);

/// All arguments of these types.
fn every(types: &[Type]) -> Vec<Vec<DataValue>> {
    let bits: u32 = types.iter().map(|ty| ty.bits()).sum();
    let numbers = 0..1u64 << bits;
    let arguments = |number: u64| {
        let mut rest = number;
        let value = |ty: &Type| {
            let bytes = u128::from(rest).to_le_bytes();
            rest >>= ty.bits();
            DataValue::read_from_slice_le(&bytes, *ty)
        };
        types.iter().map(value).collect()
    };
    numbers.map(arguments).collect()
}

/// The results that the simulator gives for the arguments of calls.
fn run(
    signature: &Signature,
    device: &Device,
    module: &Module,
    kernel: &str,
    calls: &[Call],
) -> Result<Vec<Vec<DataValue>>, String> {
    let Some((last, _)) = calls.last() else {
        return Err("it traps for all arguments".to_owned());
    };
    // Lanes without a call repeat the last one.
    let blocks = calls.len().div_ceil(LANES);
    let padding = std::iter::repeat_n(last, blocks * LANES - calls.len());
    let mut rows = Vec::new();
    for arguments in calls.iter().map(|(arguments, _)| arguments).chain(padding) {
        rows.extend(encode_arguments(signature, arguments).map_err(|error| error.to_string())?);
    }
    let size = row_bytes(&signature.returns);
    let launch = || {
        let arguments = device.upload(&rows)?;
        let results = device.allocate((blocks * LANES * size) as u64)?;
        let grid = Grid::new([blocks as u32, 1, 1], [LANES as u32, 1, 1]);
        let kernel = module.kernel(kernel)?;
        kernel.launch(grid).arg(&arguments).arg(&results).run()?;
        device.download::<u8>(&results)
    };
    let bytes = launch().map_err(|error: DeviceError| error.to_string())?;
    let rows = bytes.chunks_exact(size).take(calls.len());
    Ok(rows.map(|row| decode_results(signature, row)).collect())
}

/// True if results are equal up to the bits of NaNs.
fn same(signature: &Signature, expected: &[DataValue], found: &[DataValue]) -> bool {
    let types = signature.returns.iter().map(|param| param.value_type);
    let mut all = expected.iter().zip(found).zip(types);
    all.all(|((a, b), ty)| a.bitwise_eq(b) || same_but_nans(a, b, ty))
}
