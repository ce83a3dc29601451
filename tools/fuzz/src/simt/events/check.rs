//! One kernel of events on the simulator.

use super::emit;
use super::plan::{Place, Plan};
use super::reference::{self, Expected};
use crate::simt::check::{
    Failure, Found, Kind, Mode, device, judge, modes, report, run_text, settings_of,
};
use crate::simt::emit::NAME;
use crate::simt::kernel::{Space, VARS};
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::{Buffer, Device, DevicePointer, Grid};
use cranelift_thisgpu::launch::Report;
use std::fmt::Display;

/// Warp instructions that a warp may issue (measured: four of 19,000 kernels with waits between 2 and 120 threads need
/// more than a quarter of it, in random turns).
const BUDGET: u64 = 1 << 21;

/// Compiles and runs a kernel in so many settings, in order and in so many random turns; gives the number of launches.
///
/// # Errors
/// The first failure.
pub fn check(plan: &Plan, settings: usize, turns: u64) -> Result<u64, Failure> {
    let expected = expected(plan)?;
    let modes = modes(plan.seed, turns);
    for settings in settings_of(plan.seed, settings) {
        run(plan, &expected, &settings, &modes)?;
    }
    Ok((settings * modes.len()) as u64)
}

/// What a kernel should leave.
///
/// # Errors
/// When it does what it must not.
pub fn expected(plan: &Plan) -> Result<Expected, Failure> {
    reference::execute(plan).map_err(|message| Failure {
        kind: Kind::Endless,
        settings: Vec::new(),
        mode: Mode::Alone,
        message: format!("the reference finds {message}"),
    })
}

/// Compiles a kernel and runs it in some modes.
///
/// # Errors
/// What is wrong.
pub fn run(
    plan: &Plan,
    expected: &Expected,
    settings: &[String],
    modes: &[Mode],
) -> Result<(), Failure> {
    run_text(
        settings,
        modes,
        || emit::text(plan),
        |code, mode| launch(plan, expected, code, mode),
    )
}

/// What a kernel works on.
struct Memory {
    /// Arrays in global memory and then the flags.
    buffers: Vec<Buffer>,
    collected: Buffer,
    results: Buffer<u32>,
}

fn fails(error: &dyn Display) -> (Kind, String) {
    (Kind::Fault, error.to_string())
}

/// Runs a kernel on a device to its end or fault, as if nothing were expected of it.
pub(in crate::simt) fn run_on(device: &Device, plan: &Plan, code: &Code) -> Found<Report> {
    let (report, _) = launched(device, plan, code, Mode::Functional)?;
    Ok(report)
}

/// Launches a kernel.
fn launched(device: &Device, plan: &Plan, code: &Code, mode: Mode) -> Found<(Report, Memory)> {
    let module = device.load(code).map_err(|e| fails(&e))?;
    let entry = module.kernel(NAME).map_err(|e| fails(&e))?;
    let upload = |bytes: &[u8]| device.upload(bytes).map_err(|e| fails(&e));
    let mut buffers = Vec::new();
    for (index, array) in plan.arrays.iter().enumerate() {
        if array.place == Place::Global {
            let elements = 0..plan.copies(array) * array.count;
            let elements = elements.map(|element| plan.initial(index, element).to_le_bytes());
            let width = array.bytes as usize;
            let bytes: Vec<u8> = elements.flat_map(|e| e.into_iter().take(width)).collect();
            buffers.push(upload(&bytes)?);
        }
    }
    if plan.space == Space::Global && plan.flags() != 0 {
        let flag = &plan.start.to_le_bytes()[..plan.flag_bytes as usize];
        buffers.push(upload(&flag.repeat(plan.flags() as usize))?);
    }
    let (_, _, end) = plan.shared_layout();
    let collected = upload(&vec![0; (end * plan.grid).max(1) as usize])?;
    let results = vec![0u32; plan.all_threads() as usize * VARS];
    let results = device.upload(&results).map_err(|e| fails(&e))?;
    let mut launch = entry.launch(Grid::new([plan.grid, 1, 1], [plan.threads, 1, 1]));
    for buffer in &buffers {
        launch = launch.arg(DevicePointer(buffer.address()));
    }
    launch = launch.arg(DevicePointer(collected.address()));
    launch = launch.arg(DevicePointer(results.address()));
    for number in plan.passed() {
        launch = launch.arg(number);
    }
    let report = report(launch.arg(plan.seed as u32), mode).map_err(|e| fails(&e))?;
    let memory = Memory {
        buffers,
        collected,
        results,
    };
    Ok((report, memory))
}

fn launch(plan: &Plan, expected: &Expected, code: &Code, mode: Mode) -> Found<()> {
    let (report, memory) = launched(&device(mode, BUDGET), plan, code, mode)?;
    let Memory {
        buffers,
        collected,
        results,
    } = memory;
    judge(&report, true)?;
    let (layout, _, end) = plan.shared_layout();
    let vars = results.read::<u32>().map_err(|e| fails(&e))?;
    for (thread, (wanted, found)) in expected
        .vars
        .iter()
        .zip(vars.chunks_exact(VARS))
        .enumerate()
    {
        let pairs = wanted.iter().zip(found).enumerate();
        let differs = |(_, (wanted, found)): &(_, (_, _))| wanted != found;
        if let Some((var, (wanted, found))) = pairs.into_iter().find(differs) {
            let message =
                format!("variable {var} of thread {thread} is {found:#x}, not {wanted:#x}");
            return Err((Kind::Value, message));
        }
    }
    let collected = collected.read::<u8>().map_err(|e| fails(&e))?;
    let mut buffers = buffers.iter();
    for (index, array) in plan.arrays.iter().enumerate() {
        let found = match array.place {
            Place::Stack => continue,
            Place::Global => match buffers.next() {
                Some(buffer) => buffer.read::<u8>().map_err(|e| fails(&e))?,
                None => continue,
            },
            Place::Shared | Place::Generic => {
                let start = layout[index] as usize;
                let size = (plan.copies(array) * array.size()) as usize;
                let blocks = collected.chunks_exact(end as usize);
                blocks
                    .flat_map(|block| &block[start..start + size])
                    .copied()
                    .collect()
            }
        };
        let Some(wanted) = &expected.arrays[index] else {
            continue;
        };
        if let Some(at) = wanted
            .iter()
            .zip(&found)
            .position(|(wanted, found)| wanted != found)
        {
            let message = format!(
                "byte {at} of array {index} ({:?}, {:?}) is {:#x}, not {:#x}",
                array.place, array.role, found[at], wanted[at]
            );
            return Err((Kind::Value, message));
        }
    }
    Ok(())
}
