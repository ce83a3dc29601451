//! The report: what is on the page, as data.

use super::origins::{self, Line};
use crate::options::Settings;
use crate::source;
use anyhow::{Result, bail};
use cranelift_codegen::ir::{Function, SourceLoc};
use cranelift_thisgpu::DeviceProperties;
use cranelift_thisgpu::compile::{Code, Compiler, KernelResources, Pass, SourceFile};
use cranelift_thisgpu::unstable::report::CodeReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Those of them whose texts are shown, with their titles.
const SHOWN: &[(Pass, &str)] = &[
    (Pass::Clif, "CLIF as selected from"),
    (Pass::Lower, "VCode"),
    (Pass::Control, "Assembly"),
];

/// A profile as `launch --profile` writes it: what the page needs of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Profile {
    kernel: String,
    cycles: u64,
    instructions: Vec<ProfiledInstruction>,
}

/// An instruction of a profile.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct ProfiledInstruction {
    function: Option<String>,
    offset: u32,
    text: String,
    issues: u64,
    lanes: u64,
    stalls: BTreeMap<String, u64>,
    bytes: u64,
    sectors: u64,
    bank_conflicts: u64,
}

/// The whole.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The file's name.
    file: String,
    /// Version of the tool.
    version: &'static str,
    functions: Vec<FunctionReport>,
    profile: Option<Profile>,
    /// What the device has, for the chart of occupancy.
    device: DeviceReport,
}

/// A function.
#[derive(Debug, Serialize)]
struct FunctionReport {
    name: String,
    kernel: bool,
    /// The text that was compiled, numbered.
    source: Vec<Line>,
    /// By number of a place the line of the file.
    lines: BTreeMap<u32, u32>,
    /// One for each set of settings.
    variants: Vec<Variant>,
}

/// What a function became with some settings.
#[derive(Debug, Serialize)]
struct Variant {
    /// The settings, `default` if there are none.
    name: String,
    /// The texts that are shown, in order.
    stages: Vec<StageReport>,
    /// By number of a place that is not in the assembly, the pass that removed its last instruction.
    removed: BTreeMap<u32, &'static str>,
    picture: CodeReport,
    /// Of a kernel.
    resources: Option<KernelResources>,
}

/// A text that is shown.
#[derive(Debug, Serialize)]
struct StageReport {
    pass: &'static str,
    title: &'static str,
    lines: Vec<Line>,
}

/// The device's limits.
#[derive(Debug, Serialize)]
struct DeviceReport {
    warps: u32,
    shared_bytes: u32,
    /// For each number of threads of a block, resident warps by registers a thread, from 8 in steps of 8.
    occupancy: BTreeMap<u32, Vec<u32>>,
    register_step: u32,
}

/// Compiles the functions of a file with `settings`, and once more with `compare` over them if there are any.
pub fn report(
    mut file: SourceFile,
    settings: &Settings,
    compare: Vec<String>,
    profile: Option<Profile>,
) -> Result<Report> {
    let lines = number(&mut file);
    let mut variants = vec![(settings.settings.clone(), variant(&file, settings)?)];
    if !compare.is_empty() {
        let settings = [settings.settings.clone(), compare].concat();
        let second = variant(
            &file,
            &Settings {
                settings: settings.clone(),
            },
        )?;
        variants.push((settings, second));
    }
    if let Some(profile) = &profile {
        if profile.instructions.is_empty() {
            bail!(
                "the profile of {} counts no instruction: its launch ended before the first was issued",
                profile.kernel
            );
        }
        let known = |name: &String| file.functions.iter().any(|f| f.name() == *name);
        let mut named = profile
            .instructions
            .iter()
            .filter_map(|i| i.function.as_ref());
        if !named.any(known) {
            bail!(
                "the profile of {} has no function of {}",
                profile.kernel,
                file.name
            );
        }
    }
    let functions = file.functions.iter().zip(lines).map(|(function, lines)| {
        let name = function.name();
        let variants = variants.iter_mut().map(|(settings, variant)| {
            let seen = variant.seen.remove(&name).unwrap_or_default();
            let stages = origins::stages(&seen.texts);
            let Some(picture) = seen.picture else {
                bail!("{}: %{name} was not compiled", file.name);
            };
            Ok(Variant {
                name: match settings.as_slice() {
                    [] => "default".to_owned(),
                    settings => settings.join(" "),
                },
                removed: origins::removed(&stages),
                stages: shown(stages),
                picture,
                resources: variant
                    .code
                    .kernels()
                    .iter()
                    .find(|k| k.name == name)
                    .cloned(),
            })
        });
        Ok(FunctionReport {
            kernel: function.kernel.is_some(),
            source: numbered_text(&function.func),
            lines,
            variants: variants.collect::<Result<_>>()?,
            name,
        })
    });
    let functions = functions.collect::<Result<_>>()?;
    Ok(Report {
        file: file.name.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        functions,
        profile,
        device: device(),
    })
}

/// Makes every instruction a place of its own. The lines of the file that the places of each function stand for.
fn number(file: &mut SourceFile) -> Vec<BTreeMap<u32, u32>> {
    // Cranelift keeps numbers as distances from that of the first line, and has none for the distance -1: the new ones
    // lie behind all lines.
    let known = file.functions.iter().flat_map(|f| f.inst_lines.values());
    let mut last = known.copied().max().unwrap_or(0);
    let functions = file.functions.iter_mut().map(|function| {
        let mut lines = BTreeMap::new();
        let blocks: Vec<_> = function.func.layout.blocks().collect();
        for block in blocks {
            let insts: Vec<_> = function.func.layout.block_insts(block).collect();
            for inst in insts {
                last += 1;
                function.func.set_srcloc(inst, SourceLoc::new(last));
                lines.insert(last, function.inst_lines[inst]);
            }
        }
        lines
    });
    functions.collect()
}

/// The text of a function whose instructions are places.
fn numbered_text(func: &Function) -> Vec<Line> {
    let stages = origins::stages(&[(Pass::Verify, func.to_string())]);
    let lines = stages.into_iter().flat_map(|stage| stage.lines);
    lines.map(|line| Line { made: None, ..line }).collect()
}

/// The texts that are shown.
fn shown(stages: Vec<origins::Stage>) -> Vec<StageReport> {
    let of = |stage: origins::Stage| {
        let (pass, title) = SHOWN.iter().find(|(pass, _)| *pass == stage.pass)?;
        Some(StageReport {
            pass: pass.name(),
            title,
            lines: stage.lines,
        })
    };
    stages.into_iter().filter_map(of).collect()
}

/// What was seen of a function while it was compiled.
#[derive(Debug, Default)]
struct Seen {
    texts: Vec<(Pass, String)>,
    picture: Option<CodeReport>,
}

/// A file compiled with some settings.
struct Compiled {
    code: Code,
    seen: BTreeMap<String, Seen>,
}

fn variant(file: &SourceFile, settings: &Settings) -> Result<Compiled> {
    let mut compiler = Compiler::new(settings.over(file)?);
    compiler.dump_sources(true);
    compiler.report_code(true);
    let seen: Arc<Mutex<BTreeMap<String, Seen>>> = Arc::default();
    let sink = Arc::clone(&seen);
    compiler.dump_after(
        &looked_at(),
        Box::new(move |dump| {
            let mut seen = sink.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = seen.entry(dump.function.to_owned()).or_default();
            seen.texts.push((dump.pass, dump.text.to_owned()));
            if let Some(picture) = dump.report {
                seen.picture = Some(picture.clone());
            }
        }),
    );
    let code = source::compile(&mut compiler, file, 1)?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Compiled { code, seen })
}

/// Passes after which functions are looked at: all that have a text of instructions of their own.
fn looked_at() -> Vec<Pass> {
    let passes = Pass::PHASES.into_iter();
    let other = |pass: &Pass| matches!(pass, Pass::Analyze | Pass::Emit);
    passes.filter(|pass| !other(pass)).collect()
}

/// The device's limits.
fn device() -> DeviceReport {
    let device = DeviceProperties::ASSIGNED;
    let steps = (1..=256 / device.register_step).map(|step| step * device.register_step);
    let warps = |threads: u32| {
        let of = |registers| device.occupancy(threads, registers, 0).warps;
        (threads, steps.clone().map(of).collect())
    };
    DeviceReport {
        warps: device.warps,
        shared_bytes: device.shared_bytes,
        occupancy: [64, 128, 256, 512, 1024].into_iter().map(warps).collect(),
        register_step: device.register_step,
    }
}
