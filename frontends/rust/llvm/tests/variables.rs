//! Variables as a debugger shows them, against what the host's `{:?}` prints.
//!
//! Random functions have marks, at which the host prints all variables and the debugger stops and looks at the same.
//! Without optimisation all have to be there and equal; with that of the back end what is shown has to be equal.
//! `RANDOM_FUNCTIONS=N` and `RANDOM_SEED=S` are for the ignored test (2,000 functions).

mod common;
#[path = "common/host.rs"]
mod host;
#[path = "random/rng.rs"]
mod rng;
#[path = "variables/source.rs"]
mod source;

use common::Level;
use cranelift_thisgpu::sim::debug::{Breakpoint, FrameId, Path, Place, Session, Stop, Thread};
use cranelift_thisgpu::{Device, Grid, KernelOptions, Options, SimConfig};
use rng::Rng;
use thisgpu_llvm::flags::DebugInfo;
use thisgpu_llvm::{Kernel, translate};

/// Inputs of each function.
const INPUTS: usize = 4;
/// What is not there.
const UNKNOWN: &str = "<not available>";

/// A mark that was come by: its number, and the variables with their values.
type Mark = (u32, Vec<(String, String)>);

/// What was looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    marks: usize,
    variables: usize,
    shown: usize,
    behind: usize,
    /// Those that were shown of the caller, from inside of the mark.
    of_callers: usize,
}

/// The marks of each function and input on the host.
fn on_host(source: &std::path::Path) -> Vec<Vec<Mark>> {
    let text = host::printed(source, &[&[]]);
    let mut runs: Vec<Vec<Mark>> = Vec::new();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap();
        match word {
            "=" => runs.push(Vec::new()),
            "@" => {
                let marks = runs.last_mut().unwrap();
                marks.push((rest.parse().unwrap(), Vec::new()));
            }
            name => {
                let marks = runs.last_mut().unwrap();
                let (_, variables) = marks.last_mut().unwrap();
                variables.push((name.to_owned(), rest.to_owned()));
            }
        }
    }
    runs
}

/// Goes from mark to mark and compares; what differs.
fn follow(
    session: &mut Session,
    expected: &[Mark],
    how: &How,
    count: &mut Count,
) -> Result<(), String> {
    let thread = Thread {
        block: 0,
        thread: 0,
    };
    session.add_breakpoint(Breakpoint::at(Place::Function("mark".into())))?;
    for (number, variables) in expected {
        let stop = session.resume();
        if !matches!(stop, Stop::Breakpoint { .. }) {
            return Err(format!("mark {number}: {stop:?}"));
        }
        let stack = session.stack(thread);
        let inner = stack
            .iter()
            .position(|frame| frame.name.as_deref() == Some("mark"));
        let caller = inner.and_then(|inner| stack.get(inner + 1));
        for (name, value) in variables {
            let path = Path::parse(name).ok_or("no name")?;
            let datum = caller.map(|caller| session.datum(thread, caller.id, &path));
            let Some(Ok(datum)) = datum else {
                continue;
            };
            let shown = session.text(thread, &datum).replace('&', "");
            if shown.contains(UNKNOWN) || how.may_be_behind {
                continue;
            }
            if shown != *value {
                return Err(format!(
                    "from inside of mark {number}: {name} is {shown}, on the host {value}"
                ));
            }
            count.of_callers += 1;
        }
        session.finish(thread, 0);
        count.marks += 1;
        let place = session
            .place(thread)
            .map_or_else(String::new, |place| place.to_string());
        let number = format!("{number} at {place}");
        for (name, value) in variables {
            let path = Path::parse(name).ok_or("no name")?;
            let shown = match session.datum(thread, FrameId::default(), &path) {
                Ok(datum) => session.text(thread, &datum),
                Err(_) if !how.all => UNKNOWN.to_owned(),
                Err(error) => return Err(format!("mark {number}: {name}: {error}")),
            };
            count.variables += 1;
            // References are shown with what they point to.
            let shown = shown.replace('&', "");
            if shown == *value {
                count.shown += 1;
            } else if how.may_be_behind && !shown.contains(UNKNOWN) {
                count.behind += 1;
            } else if how.all || !shown.contains(UNKNOWN) {
                return Err(format!(
                    "mark {number}: {name} is {shown}, on the host {value}"
                ));
            }
        }
    }
    match session.resume() {
        Stop::End => Ok(()),
        stop => Err(format!("behind the last mark: {stop:?}")),
    }
}

/// How the device's code is made.
struct How {
    level: Level,
    settings: &'static [&'static str],
    /// Whether every variable has to be there.
    all: bool,
    /// Whether some may have the value that they had before.
    may_be_behind: bool,
}

const READABLE: How = How {
    level: Level::Of("0"),
    settings: &[
        "opt_level=none",
        "keep_slots=true",
        "reorder=false",
        "if_convert=false",
        "if_convert=false",
    ],
    all: true,
    may_be_behind: false,
};

/// The records of LLVM are exact here, so what is shown has to be right.
const OPTIMISED: [How; 4] = [
    How::optimised(Level::Promoted, &[]),
    How::optimised(Level::Promoted, &["regalloc_algorithm=single_pass"]),
    How::optimised(Level::Promoted, &["regs=24"]),
    How::optimised(Level::Promoted, &["opt_level=none"]),
];

/// Here they are not: where LLVM makes one of two instructions behind assignments in two blocks, it drops the records
/// of those.
const BY_LLVM: How = How {
    may_be_behind: true,
    ..How::optimised(Level::Convergent, &[])
};

impl How {
    const fn optimised(level: Level, settings: &'static [&'static str]) -> How {
        How {
            level,
            settings,
            all: false,
            may_be_behind: false,
        }
    }
}

/// Compares a file of random functions; what was looked at.
fn compare(seed: u64, functions: usize, how: &How) -> Count {
    let mut rng = Rng(seed);
    // Of two of one name LLVM may leave the scope of the outer one alone, where it makes one of two instructions.
    let text = source::functions(&mut rng, functions, how.all);
    let inputs: Vec<u64> = (0..INPUTS).map(|_| rng.number()).collect();
    let level = format!("{:?}-{}", how.level, how.settings.len());
    let name: String = level.chars().filter(char::is_ascii_alphanumeric).collect();
    let folder = common::folder(&format!("variables-{seed:x}-{name}"));
    let (device, host) = (folder.join("device.rs"), folder.join("host.rs"));
    std::fs::write(&device, source::device(&text)).unwrap();
    std::fs::write(&host, source::host(&text, functions, &inputs)).unwrap();
    let expected = on_host(&host);
    let program = common::program(&device, how.level, DebugInfo::Variables);
    let kernels: Vec<Kernel> = (0..functions)
        .map(|number| Kernel {
            name: format!("k{number}"),
            options: KernelOptions::default(),
        })
        .collect();
    let mut options = Options {
        value_locations: true,
        ..Options::default()
    };
    for setting in how.settings {
        options.set(setting).unwrap();
    }
    let translation = translate(&program, &kernels, &options)
        .unwrap_or_else(|errors| panic!("seed {seed:#x}: {}: {:?}", device.display(), errors[0]));
    let simulator = Device::simulator(SimConfig::default());
    let module = simulator.load(&translation.code).unwrap();
    let mut count = Count::default();
    for (run, expected) in expected.iter().enumerate() {
        let (number, input) = (run / INPUTS, inputs[run % INPUTS]);
        let kernel = module.kernel(&format!("k{number}")).unwrap();
        let grid = Grid::new([1; 3], [1; 3]);
        let mut session = kernel.launch(grid).args(&[&input]).debug().unwrap();
        if let Err(error) = follow(&mut session, expected, how, &mut count) {
            panic!(
                "seed {seed:#x}, {name}, {}, k{number}({input}): {error}",
                device.display()
            );
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    count
}

#[test]
fn a_build_to_be_debugged_shows_every_variable_as_the_host_has_it() {
    let count = compare(0x1d, 12, &READABLE);
    assert!(
        count.marks > 200 && count.shown == count.variables,
        "{count:?}"
    );
    assert_eq!(count.of_callers, count.variables, "{count:?}");
}

#[test]
fn an_optimised_build_shows_no_wrong_variable() {
    for (seed, how) in (0x2a..).zip(&OPTIMISED) {
        let count = compare(seed, 6, how);
        println!("{:?} {:?}: {count:?}", how.level, how.settings);
        assert!(
            count.shown * 10 > count.variables,
            "{:?}: {count:?}",
            how.level
        );
        assert!(count.of_callers > 0, "{:?}: {count:?}", how.level);
    }
}

#[test]
fn what_llvm_has_optimised_is_hardly_ever_behind() {
    let count = compare(0x3c, 12, &BY_LLVM);
    println!("{count:?}");
    assert!(
        count.shown > 100 && count.behind * 50 < count.shown,
        "{count:?}"
    );
}

#[test]
fn what_is_kept_grows_with_the_code_alone() {
    /// Statements, each with a variable of its own.
    const LINES: usize = 400;
    let mut text = String::from(
        "#![no_std]\n#![crate_type = \"lib\"]\n#[unsafe(no_mangle)]\n\
         pub extern \"C\" fn k(x: u64, out: &mut u64) {\n    let a0 = x;\n",
    );
    for line in 1..LINES {
        let before = line - 1;
        text += &format!("    let a{line} = a{before}.wrapping_mul({line}) ^ x;\n");
    }
    text += &format!("    *out = a{};\n}}\n", LINES - 1);
    let source = common::folder("straight").join("straight.rs");
    std::fs::write(&source, text).unwrap();
    let program = common::program(&source, READABLE.level, DebugInfo::Variables);
    let mut options = Options {
        value_locations: true,
        ..Options::default()
    };
    for setting in READABLE.settings {
        options.set(setting).unwrap();
    }
    let kernel = Kernel {
        name: "k".into(),
        options: KernelOptions::default(),
    };
    let translation = translate(&program, &[kernel], &options).unwrap();
    let functions = &translation.code.object().functions;
    let scopes = functions.iter().flat_map(|function| &function.scopes);
    let ranges = scopes.map(|scope| {
        let of_variables = scope.variables.iter().map(|variable| variable.ranges.len());
        scope.ranges.len() + of_variables.sum::<usize>()
    });
    let ranges: usize = ranges.sum();
    assert!((2 * LINES..8 * LINES).contains(&ranges), "{ranges}");
}

#[test]
#[ignore = "takes minutes"]
fn many_functions() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let functions = number("RANDOM_FUNCTIONS").unwrap_or(2000) as usize;
    let seed = number("RANDOM_SEED").unwrap_or(1);
    let all = || [&READABLE, &BY_LLVM].into_iter().chain(&OPTIMISED);
    let mut counts = vec![Count::default(); all().count()];
    for file in 0..functions.div_ceil(20) as u64 {
        for (how, sum) in all().zip(&mut counts) {
            let count = compare(seed * 1_000_003 + file, 20, how);
            sum.marks += count.marks;
            sum.variables += count.variables;
            sum.shown += count.shown;
            sum.behind += count.behind;
        }
    }
    for (how, count) in all().zip(&counts) {
        println!("{:?} {:?}: {count:?}", how.level, how.settings);
    }
}
