//! What the environment says about the devices, read once, in one place.
//!
//! A value that means nothing is an error of every launch: a program that asks for checks and runs without them would
//! pass for checked.

use crate::{Mode, ThisgpuDevice};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

/// With this in the environment, the default device is another one: `plain`, `checking` or `timed`.
pub const DEVICE_VARIABLE: &str = "CUBECL_THISGPU_DEVICE";

/// With this in the environment, the default device takes so many threads of the host.
pub const THREADS_VARIABLE: &str = "CUBECL_THISGPU_THREADS";

/// With this in the environment, a warp may issue so many instructions before it counts as an endless loop
/// ([`budget`](cranelift_thisgpu::SimConfig::budget)), and the blocks of a launch in proportion.
pub const BUDGET_VARIABLE: &str = "CUBECL_THISGPU_BUDGET";

/// With this in the environment, machine code is kept in the folder that it names.
pub const CACHE_VARIABLE: &str = "CUBECL_THISGPU_CACHE";

/// With this in the environment, what the program does is written to the file that it names: as JSON if that ends in
/// `.json`, else as a page. `%p` in it stands for the process's number: processes write whole files.
pub const PROFILE_VARIABLE: &str = "CUBECL_THISGPU_PROFILE";

/// With `1` in the environment, every launch writes a line to standard error: kernel, cubes, units, what it needs and
/// what it did.
pub const REPORT_VARIABLE: &str = "CUBECL_THISGPU_REPORT";

/// What the names of all variables begin with.
const PREFIX: &str = "CUBECL_THISGPU_";

/// All variables.
const VARIABLES: [&str; 6] = [
    DEVICE_VARIABLE,
    THREADS_VARIABLE,
    BUDGET_VARIABLE,
    CACHE_VARIABLE,
    PROFILE_VARIABLE,
    REPORT_VARIABLE,
];

/// What the variables say. One that is empty says nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Settings {
    /// [`DEVICE_VARIABLE`] and [`THREADS_VARIABLE`].
    pub device: ThisgpuDevice,
    /// [`BUDGET_VARIABLE`].
    pub budget: Option<u64>,
    /// [`CACHE_VARIABLE`].
    pub cache: Option<PathBuf>,
    /// [`PROFILE_VARIABLE`].
    pub profile: Option<PathBuf>,
    /// [`REPORT_VARIABLE`].
    pub has_reports: bool,
    /// Values that mean nothing, each in a line.
    pub errors: Vec<String>,
}

impl Settings {
    /// Reads variables, each by its name. Of those that begin with [`PREFIX`], one that is not known is an error.
    fn read(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Settings {
        let mut errors = Vec::new();
        let mut ours = BTreeMap::new();
        for (name, value) in variables {
            let name = name.to_string_lossy();
            match VARIABLES.iter().find(|known| **known == name) {
                Some(_) if value.is_empty() => {}
                Some(known) => drop(ours.insert(*known, value)),
                None if name.starts_with(PREFIX) => {
                    let known = VARIABLES.join(", ");
                    errors.push(format!("{name} is no variable; there are {known}"));
                }
                None => {}
            }
        }
        let variable = |name: &str| ours.get(name).cloned();
        let mode = parsed(variable, DEVICE_VARIABLE, &mut errors, |value| {
            let found = Mode::ALL.into_iter().find(|mode| mode.name() == value);
            found.ok_or_else(|| {
                format!(
                    "is no device; there are {}",
                    Mode::ALL.map(Mode::name).join(", ")
                )
            })
        });
        let threads = parsed(variable, THREADS_VARIABLE, &mut errors, |value| {
            let most = ThisgpuDevice::MOST_THREADS;
            let threads = value.parse().ok().filter(|&threads| threads <= most);
            threads.ok_or_else(|| format!("is no number of threads, 0 to {most}"))
        });
        let budget = parsed(variable, BUDGET_VARIABLE, &mut errors, |value| {
            let budget = value.parse().ok().filter(|&budget| budget > 0);
            budget.ok_or_else(|| "is no number of instructions, 1 or more".to_string())
        });
        let reports = parsed(
            variable,
            REPORT_VARIABLE,
            &mut errors,
            |value| match value {
                "0" => Ok(false),
                "1" => Ok(true),
                _ => Err("is neither 0 nor 1".to_string()),
            },
        );
        let device = ThisgpuDevice::new(mode.unwrap_or(Mode::Plain));
        Settings {
            device: device.with_threads(threads.unwrap_or(0)),
            budget,
            cache: variable(CACHE_VARIABLE).map(PathBuf::from),
            profile: variable(PROFILE_VARIABLE).map(|path| of_this_process(&path)),
            has_reports: reports.unwrap_or(false),
            errors,
        }
    }
}

/// A path with this process's number for `%p`.
fn of_this_process(path: &OsString) -> PathBuf {
    match path.to_str() {
        Some(path) => PathBuf::from(path.replace("%p", &std::process::id().to_string())),
        None => PathBuf::from(path),
    }
}

/// The value of a variable, if it is set and means something.
fn parsed<T>(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &str,
    errors: &mut Vec<String>,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    let value = variable(name)?;
    let value = value.to_string_lossy();
    let parsed = parse(&value);
    parsed
        .map_err(|error| errors.push(format!("{name}={value:?} {error}")))
        .ok()
}

/// What this process's environment says.
pub fn settings() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| Settings::read(std::env::vars_os()));
    &SETTINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[(&str, &str)]) -> Settings {
        let values = values.iter();
        Settings::read(values.map(|(name, value)| (name.into(), value.into())))
    }

    #[test]
    fn an_empty_variable_says_nothing() {
        assert_eq!(read(&VARIABLES.map(|name| (name, ""))), read(&[]));
    }

    #[test]
    fn variables_say_what_the_default_device_is() {
        let found = read(&[
            (DEVICE_VARIABLE, "checking"),
            (THREADS_VARIABLE, "3"),
            (BUDGET_VARIABLE, "5"),
            (REPORT_VARIABLE, "1"),
        ]);
        assert_eq!(
            found,
            Settings {
                device: ThisgpuDevice::CHECKING.with_threads(3),
                budget: Some(5),
                has_reports: true,
                ..read(&[])
            }
        );
    }

    #[test]
    fn each_value_that_means_nothing_is_an_error() {
        for (name, value) in [
            (DEVICE_VARIABLE, "cheking"),
            (DEVICE_VARIABLE, "Checking"),
            (THREADS_VARIABLE, "-1"),
            (THREADS_VARIABLE, "4096"),
            (BUDGET_VARIABLE, "0"),
            (BUDGET_VARIABLE, "1e6"),
            (REPORT_VARIABLE, "yes"),
        ] {
            let errors = read(&[(name, value)]).errors;
            let [error] = &errors[..] else {
                panic!("{name}={value}: {errors:?}");
            };
            assert!(
                error.starts_with(&format!("{name}={value:?} is n")),
                "{error}"
            );
        }
        let errors = read(&[("CUBECL_THISGPU_DEVCE", "checking")]).errors;
        assert!(
            errors[0].starts_with("CUBECL_THISGPU_DEVCE is no variable; "),
            "{errors:?}"
        );
        assert_eq!(read(&[("CUBECL_DEVICE", "x")]).errors, [""; 0]);
        let both = read(&[(DEVICE_VARIABLE, "x"), (BUDGET_VARIABLE, "x")]);
        assert_eq!(both.errors.len(), 2);
    }
}
