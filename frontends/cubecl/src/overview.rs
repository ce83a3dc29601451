//! What a whole program did on the devices, kernel by kernel, for who asks for it: a page of HTML, or the same as JSON.
//!
//! The file is written anew whenever the program reads from a device or waits for it, as it stands then: nobody tells
//! the runtime that a program ends.

use crate::ThisgpuDevice;
use crate::compiler::CompiledKernel;
use crate::environment::{PROFILE_VARIABLE, settings};
use cranelift_thisgpu::{Grid, Kernel, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, io};

/// The page, up to where the data goes, and behind that.
const PAGE: &str = include_str!("overview.html");
/// What stands in the page where the data goes.
const PLACE: &str = "{{data}}";

/// What is known of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its symbol.
    pub kernel: String,
    /// The device: what it looks for, and its threads where a number is given.
    pub device: String,
    /// Units of a cube.
    pub units: u32,
    /// How often it was launched.
    pub launches: u64,
    /// Launches that were refused or that a fault ended, of which nothing else but the host's time is counted.
    pub failed: u64,
    /// Launches that ended with findings or hazards.
    pub found: u64,
    /// Cubes of all launches.
    pub cubes: u64,
    /// Instructions that warps issued.
    pub warp_instructions: u64,
    /// The same times the lanes in which they ran.
    pub unit_instructions: u64,
    /// Cycles, on a device that counts them.
    pub cycles: u64,
    /// Bytes that units asked for, on a device that counts cycles.
    pub bytes: u64,
    /// Microseconds of the host in launches.
    pub host_us: u64,
    /// Instructions of its code.
    pub code: u32,
    /// Registers of a unit.
    pub registers: u32,
    /// Bytes that a unit has no registers for.
    pub spilled: u32,
    /// Bytes of shared memory of a cube.
    pub shared: u32,
    /// Warps that are resident together, of 100 that could be.
    pub occupancy: u32,
    /// Microseconds of the host in CubeCL's passes.
    pub passes_us: u64,
    /// Microseconds of the host in the translation of what they leave.
    pub translation_us: u64,
    /// Microseconds of the host in code generation.
    pub code_us: u64,
    /// Whether the code was in the cache.
    pub was_kept: bool,
}

/// What is known of a program.
struct Overview {
    path: PathBuf,
    rows: BTreeMap<(u16, String), Row>,
    has_changed: bool,
    /// Whether it was said that the file cannot be written.
    is_told: bool,
}

static OVERVIEW: LazyLock<Option<Mutex<Overview>>> = LazyLock::new(|| {
    Some(Mutex::new(Overview {
        path: settings().profile.clone()?,
        rows: BTreeMap::new(),
        has_changed: false,
        is_told: false,
    }))
});

fn overview() -> Option<MutexGuard<'static, Overview>> {
    let overview = OVERVIEW.as_ref()?;
    Some(overview.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Counts a launch on a device, of which there is a report if it came to its end.
pub fn count(
    device: ThisgpuDevice,
    compiled: &CompiledKernel,
    kernel: &Kernel,
    grid: Grid,
    report: Option<&Report>,
    host: Duration,
) {
    let Some(mut overview) = overview() else {
        return;
    };
    overview.has_changed = true;
    let key = (device.number(), compiled.name().to_string());
    let row = overview.rows.entry(key);
    let row = row.or_insert_with(|| first(device, compiled, kernel, grid));
    row.launches += 1;
    row.host_us += micros(host);
    let Some(report) = report else {
        row.failed += 1;
        return;
    };
    if !report.findings.is_empty() || !report.hazards.is_empty() {
        row.found += 1;
    }
    let stats = &report.stats;
    row.cubes += grid.blocks.iter().map(|&n| u64::from(n)).product::<u64>();
    row.warp_instructions += stats.warp_instructions;
    row.unit_instructions += stats.thread_instructions;
    row.cycles += stats.cycles;
    if let Some(profile) = &report.profile {
        let bytes = profile.instructions.iter().map(|one| one.counts.bytes);
        row.bytes += bytes.sum::<u64>();
    }
}

/// Counts a launch of a kernel that could not be made, or that there is no room for.
pub fn refuse(device: ThisgpuDevice, kernel: &str, units: u32) {
    let Some(mut overview) = overview() else {
        return;
    };
    overview.has_changed = true;
    let row = overview.rows.entry((device.number(), kernel.to_string()));
    let row = row.or_insert_with(|| Row {
        kernel: kernel.to_string(),
        device: device.to_string(),
        units,
        ..Row::default()
    });
    row.launches += 1;
    row.failed += 1;
}

/// A kernel before its first launch.
fn first(device: ThisgpuDevice, compiled: &CompiledKernel, kernel: &Kernel, grid: Grid) -> Row {
    let units = grid.threads.iter().product();
    let occupancy = kernel.occupancy(units, 0);
    let times = compiled.times();
    let mut row = Row {
        kernel: compiled.name().to_string(),
        device: device.to_string(),
        units,
        occupancy: 100 * occupancy.warps / occupancy.most_warps.max(1),
        passes_us: micros(times.passes),
        translation_us: micros(times.translation),
        code_us: micros(times.code),
        was_kept: times.was_kept,
        ..Row::default()
    };
    if let Ok(found) = compiled.code().kernel(compiled.name()) {
        let needs = found.resources();
        row.code = needs.instructions;
        row.registers = needs.registers;
        row.spilled = needs.spill_bytes;
        row.shared = needs.shared_bytes;
    }
    row
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Writes the file, if anything was launched since it was written last.
pub fn write() {
    let Some(mut overview) = overview() else {
        return;
    };
    if !std::mem::take(&mut overview.has_changed) {
        return;
    }
    if let Err(error) = overview.write() {
        // Once is enough for who has asked for the file.
        if !std::mem::replace(&mut overview.is_told, true) {
            let path = overview.path.display();
            eprintln!("{PROFILE_VARIABLE}: {path} is not written: {error}");
        }
    }
}

impl Overview {
    fn write(&self) -> io::Result<()> {
        let rows: Vec<&Row> = self.rows.values().collect();
        let data = serde_json::to_string(&rows).map_err(io::Error::other)?;
        let is_json = self.path.extension().is_some_and(|end| end == "json");
        let text = if is_json { data } else { page(&data) };
        // Whoever looks at it meanwhile has the old one or the new one.
        let mut temporary = self.path.clone().into_os_string();
        temporary.push(format!(".{}.tmp", std::process::id()));
        let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }
}

/// The page with its data. Nothing in it ends the element that it stands in.
fn page(data: &str) -> String {
    PAGE.replacen(PLACE, &data.replace('<', "\\u003c"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel's name cannot end the script.
    #[test]
    fn data_stays_data() {
        let row = Row {
            kernel: "</script><b>".to_string(),
            ..Row::default()
        };
        let text = page(&serde_json::to_string(&[row]).expect("rows are data"));
        assert!(!text.contains(PLACE));
        assert!(!text.contains("</script><b>"));
        let start = text.find("[{").expect("the data is there");
        let end = text[start..].find("</script>").expect("the element ends");
        let read: serde_json::Value =
            serde_json::from_str(text[start..start + end].trim()).expect("it is JSON");
        assert_eq!(read[0]["kernel"], "</script><b>");
    }
}
