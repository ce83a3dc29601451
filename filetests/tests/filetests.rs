//! All files under `filetests/`, one test each.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use thisgpu_filetests::expectation;
use thisgpu_filetests::file::{TestOptions, test_file};
use thisgpu_filetests::find_files;
use thisgpu_filetests::report::Outcome;

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = find_files(root).expect("the folder can be read");
    let options = TestOptions {
        bless: expectation::blessing(),
        ..TestOptions::default()
    };
    let trials = files.into_iter().map(|path| {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let options = options.clone();
        Trial::test(name, move || {
            let report = test_file(&path, &options);
            match report.outcome() {
                Outcome::Passed => Ok(()),
                Outcome::Failed => Err(Failed::from(report.errors.join("\n"))),
                Outcome::Skipped => Err(Failed::from(format!(
                    "nothing was tested: {:?}",
                    report.reasons
                ))),
            }
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
