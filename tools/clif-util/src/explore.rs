//! `clif-util explore FILE -o REPORT.html`: one self-contained page that shows what every pass made of the functions of
//! a file.
//!
//! In: CLIF, settings, perhaps those of a second variant and a profile of a launch. A copy of the functions is compiled
//! in which every instruction is a place in the source of its own ([`report`]), so that lines of different passes that
//! belong together are found ([`origins`]). Out: the report as JSON, or put into a page whose script draws it.

mod origins;
mod report;

use crate::options::{Settings, parse_setting};
use crate::{Outcome, input, source};
use anyhow::{Context, Result};
use clap::Args;
use cranelift_thisgpu::compile::Compiler;
use std::path::PathBuf;

/// The page, with a place each for the style, the script and the report.
const PAGE: &str = include_str!("explore/page.html");
const STYLE: &str = include_str!("explore/page.css");
/// The script by topic. They share one scope; the last one starts the page.
const SCRIPTS: &[&str] = &[
    include_str!("explore/page/elements.js"),
    include_str!("explore/page/model.js"),
    include_str!("explore/page/registers.js"),
    include_str!("explore/page/lines.js"),
    include_str!("explore/page/compare.js"),
    include_str!("explore/page/schedule.js"),
    include_str!("explore/page/graph_layout.js"),
    include_str!("explore/page/graph.js"),
    include_str!("explore/page/resources.js"),
    include_str!("explore/page/cost.js"),
    include_str!("explore/page/self_test.js"),
    include_str!("explore/page.js"),
];

/// Options of `explore`.
#[derive(Args)]
pub struct Options {
    /// CLIF text.
    file: PathBuf,
    /// Write the page to this file, or the report alone if its name ends in .json.
    #[arg(short, long, value_name = "REPORT.html")]
    output: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Show a second variant beside the first: with this setting over those.
    #[arg(long, value_name = "K=V", value_parser = parse_setting)]
    compare: Vec<String>,
    /// Make this function a kernel.
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Show what each instruction cost in a launch: what `launch --profile` has written.
    #[arg(long, value_name = "PROFILE.json")]
    profile: Option<PathBuf>,
}

impl Options {
    /// Writes the page.
    pub fn run(self) -> Result<Outcome> {
        let inputs = [Some(&self.file), self.profile.as_ref()];
        input::check_inputs(inputs.into_iter().flatten())?;
        input::check_output("-o", &self.output, inputs.into_iter().flatten())?;
        let (name, text) = (input::name(&self.file), input::text(&self.file)?);
        let file = source::parse(&name, &text, &self.kernel)?;
        let profile = match &self.profile {
            Some(path) => Some(
                serde_json::from_str(&input::text(path)?)
                    .with_context(|| format!("{} is no profile", path.display()))?,
            ),
            None => None,
        };
        let report = report::report(file, &self.settings, self.compare, profile);
        if report.is_err() {
            // The copy that is compiled has numbers of instructions where the file has lines: what is wrong is said of
            // the file.
            let file = source::parse(&name, &text, &self.kernel)?;
            source::compile(&mut Compiler::new(self.settings.over(&file)?), &file, 1)?;
        }
        let report = report?;
        let json = serde_json::to_string(&report)?;
        let is_json = self.output.extension().is_some_and(|e| e == "json");
        let text = if is_json { json + "\n" } else { page(&json) };
        input::write(&self.output, text.as_bytes())?;
        Ok(Outcome::Success)
    }
}

/// The page that shows a report.
fn page(json: &str) -> String {
    // A script ends at its end tag, wherever that stands, and not at that if a comment was opened in it. In JSON both
    // can stand in texts only.
    let json = json.replace('<', "\\u003c");
    let script = SCRIPTS.join("\n");
    let parts = [
        ("/*STYLE*/", STYLE),
        ("/*SCRIPT*/", script.as_str()),
        ("/*REPORT*/", json.as_str()),
    ];
    let mut page = PAGE.to_owned();
    for (place, part) in parts {
        let (before, behind) = page.split_once(place).expect("the page has the place");
        page = [before, part, behind].concat();
    }
    page
}
