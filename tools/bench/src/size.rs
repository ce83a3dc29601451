//! What kernels become: instructions, registers, innermost loops, cycles that the control bits hold back, and simulated
//! cycles of the launches that are known ([`kernels`]); beside the figures of another compiler where a table of those
//! is given.

use anyhow::{Context, Result};
use cranelift_thisgpu::compile::SourceFile;
use cranelift_thisgpu::compile::{Code, Compiler, KernelResources};
use cranelift_thisgpu::unstable::isa::encode::decode;
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use thisgpu_filetests::kernels;

/// Figures of a kernel. The stalls are the sum of the stall fields.
struct Figures {
    instructions: u32,
    registers: u32,
    loops: String,
    stalls: u32,
    /// Of all launches, where there are any.
    cycles: Option<u64>,
}

/// Columns of the peers' table that are compared: without unrolling (`nu_`).
const COLUMNS: [&str; 4] = ["nu_total", "regs", "nu_loops", "nu_stall"];

/// Prints a line for each kernel of `files`.
///
/// # Errors
/// A file that cannot be read, or a kernel that does not compile.
pub fn table(files: &[PathBuf], compiler: &mut Compiler, peers: Option<&Path>) -> Result<String> {
    let peers = peers.map(read_peers).transpose()?;
    let mut out = String::new();
    writeln!(out, "{:<16} {:<54}peer", "kernel", "thisgpu")?;
    let mut ratios = Ratios::default();
    for path in files {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        // A file that is a test of errors does not parse; it has no kernels.
        let Ok(file) = SourceFile::parse(&path.display().to_string(), &text) else {
            continue;
        };
        if file.functions.iter().all(|f| f.kernel.is_none()) {
            continue;
        }
        let Ok(code) = compiler.file(&file) else {
            continue;
        };
        for kernel in code.kernels() {
            let own = figures(&code, kernel)?;
            let peer = peers.as_ref().and_then(|p| p.get(&kernel.name));
            if let Some(peer) = peer {
                ratios.add(&own, peer);
            }
            let peer = peer.map(row).unwrap_or_default();
            let line = format!("{:<16} {:<54}{peer}", kernel.name, row(&own));
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(out + &ratios.to_string())
}

/// Geometric means of this compiler's figures over the peer's.
#[derive(Default)]
struct Ratios {
    kernels: u32,
    /// Sums of the logarithms of instructions, registers, stalls.
    logarithms: [f64; 3],
}

impl Ratios {
    fn add(&mut self, own: &Figures, peer: &Figures) {
        let figures = |f: &Figures| [f.instructions, f.registers, f.stalls].map(f64::from);
        self.kernels += 1;
        for (sum, (own, peer)) in
            (self.logarithms.iter_mut()).zip(figures(own).into_iter().zip(figures(peer)))
        {
            *sum += (own / peer).ln();
        }
    }
}

impl std::fmt::Display for Ratios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.kernels == 0 {
            return Ok(());
        }
        let [instructions, registers, stalls] = self
            .logarithms
            .map(|sum| (sum / f64::from(self.kernels)).exp());
        writeln!(
            f,
            "geometric means of {} kernels against the peer: instructions {instructions:.3}, registers {registers:.3}, \
             stalls {stalls:.3}",
            self.kernels
        )
    }
}

fn row(figures: &Figures) -> String {
    let cycles = figures
        .cycles
        .map(|c| format!("cycles {c}"))
        .unwrap_or_default();
    format!(
        "{:>4} {:>3} R  loops {:<8} stall {:<5} {cycles}",
        figures.instructions, figures.registers, figures.loops, figures.stalls
    )
}

fn figures(code: &Code, kernel: &KernelResources) -> Result<Figures> {
    let function = code.kernel(&kernel.name)?.function();
    let stall = |word: &u128| decode(*word).map_or(0, |(_, control)| u32::from(control.stall()));
    let example = kernels::ALL.iter().find(|e| e.name == kernel.name);
    let stats = example.map(|e| kernels::run(e, code, true)).transpose()?;
    let loops: Vec<String> = kernel.loops.iter().map(u32::to_string).collect();
    Ok(Figures {
        instructions: kernel.instructions,
        registers: kernel.registers,
        loops: if loops.is_empty() {
            "-".to_owned()
        } else {
            loops.join(",")
        },
        stalls: function.words.iter().map(stall).sum(),
        cycles: stats.map(|s| s.cycles),
    })
}

/// A table with a header line and a line for each kernel, separated by tabs; lines with `#` are remarks.
fn read_peers(path: &Path) -> Result<HashMap<String, Figures>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let header: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let places: Vec<usize> = COLUMNS
        .iter()
        .map(|name| {
            let place = header.iter().position(|h| h == name);
            place.with_context(|| format!("{}: no column {name}", path.display()))
        })
        .collect::<Result<_>>()?;
    let mut out = HashMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let cell = |i: usize| cells.get(places[i]).copied().unwrap_or_default();
        let number = |i: usize| {
            let parsed = cell(i).parse::<u32>();
            parsed.with_context(|| format!("{}: {line}", path.display()))
        };
        let figures = Figures {
            instructions: number(0)?,
            registers: number(1)?,
            loops: cell(2).to_owned(),
            stalls: number(3)?,
            cycles: None,
        };
        out.insert(cells[0].to_owned(), figures);
    }
    Ok(out)
}
