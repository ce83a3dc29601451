//! What a function costs, in numbers.

use super::Side;
use super::weights::{TURNS, Version, weights};
use cranelift_thisgpu::compile::Code;
use serde::Serialize;
use std::fmt;

/// A function's numbers with one set of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Its instructions.
    instructions: usize,
    /// Registers of a thread, with all that it calls.
    registers: u32,
    /// Its predicates.
    predicates: u32,
    /// Bytes of its spill slots.
    spill_bytes: u32,
    /// Instructions of each innermost loop.
    loops: Vec<u32>,
    /// Cycles of all blocks together, by the scheduler's model of one warp, each as often as it may run ([`weights`]).
    cycles: u64,
    /// Whether it has loops, so that how often its blocks run is assumed.
    #[serde(skip)]
    is_assumed: bool,
    /// Cycles of a turn of each innermost loop.
    turns: Vec<u32>,
}

impl Figures {
    /// The numbers of a function on both sides; none of a side that does not have it.
    pub fn of_both(sides: [&Side; 2], name: &str) -> [Option<Figures>; 2] {
        let versions = sides.map(|side| {
            Some(Version {
                model: side.code.cycles().iter().find(|model| model.name == name)?,
                listed: side.listed.get(name)?,
                function: side.code.object().function(name)?,
            })
        });
        let weights = match versions {
            [Some(a), Some(b)] => weights([a, b]).map(Some),
            // A function of the library, or of one side, is compared with itself.
            [one, two] => [one, two].map(|version| {
                let version = version?;
                let [weights, _] = weights([version, version]);
                Some(weights)
            }),
        };
        let [a, b] = weights;
        let of = |side: &Side, weights| Figures::of(&side.code, name, weights);
        [of(sides[0], a), of(sides[1], b)]
    }

    fn of(code: &Code, name: &str, weights: Option<Vec<f64>>) -> Option<Figures> {
        let function = code.object().function(name)?;
        let model = code.cycles().iter().find(|model| model.name == name);
        let blocks = || model.into_iter().flat_map(|model| &model.blocks);
        let weights = weights.unwrap_or_default();
        let cycles = blocks()
            .zip(&weights)
            .map(|(block, weight)| f64::from(block.cycles) * weight);
        Some(Figures {
            is_assumed: model.is_some_and(|model| !model.loops.is_empty()),
            instructions: function.words.len(),
            registers: function.resources.registers,
            predicates: function.own.predicates,
            spill_bytes: function.own.spill_bytes,
            loops: function.own.loops.clone(),
            cycles: cycles.sum::<f64>().round() as u64,
            turns: blocks().filter_map(|block| block.turn).collect(),
        })
    }

    /// Names and values, lists as their sums with the parts behind.
    fn rows(&self) -> [(&'static str, Figure<'_>); 7] {
        [
            ("instructions", Figure::One(self.instructions as u64)),
            ("registers", Figure::One(self.registers.into())),
            ("predicates", Figure::One(self.predicates.into())),
            ("spilled bytes", Figure::One(self.spill_bytes.into())),
            ("innermost loops", Figure::Each(&self.loops)),
            ("weighed cycles", Figure::One(self.cycles)),
            ("cycles of a turn", Figure::Each(&self.turns)),
        ]
    }
}

/// A number, or one for each of several things.
enum Figure<'a> {
    One(u64),
    Each(&'a [u32]),
}

impl fmt::Display for Figure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Figure::One(number) => number.to_string(),
            Figure::Each([]) => "none".to_owned(),
            Figure::Each(list) => {
                let list: Vec<String> = list.iter().map(u32::to_string).collect();
                list.join(",")
            }
        };
        f.pad(&text)
    }
}

/// The numbers of both sides with what changes, as a table. A side without the function has none.
pub fn table(a: Option<&Figures>, b: Option<&Figures>, out: &mut String) -> fmt::Result {
    use fmt::Write;
    let is_assumed = a.into_iter().chain(b).any(|figures| figures.is_assumed);
    let (a, b) = (a.map(Figures::rows), b.map(Figures::rows));
    let (Some(a), Some(b)) = (&a, &b) else {
        let (side, rows) = match (&a, &b) {
            (Some(rows), _) => ("a", rows),
            (_, Some(rows)) => ("b", rows),
            (None, None) => return Ok(()),
        };
        writeln!(out, "  only with the settings of {side}:")?;
        for (name, figure) in rows {
            writeln!(out, "  {name:<18}{figure:>12}")?;
        }
        return Ok(());
    };
    writeln!(out, "  {:<18}{:>12}{:>12}  change", "", "a", "b")?;
    for ((name, a), (_, b)) in a.iter().zip(b) {
        let line = format!("  {name:<18}{a:>12}{b:>12}  {}", change(a, b));
        writeln!(out, "{}", line.trim_end())?;
    }
    if is_assumed {
        writeln!(
            out,
            "  (a loop of the source is taken to turn {TURNS} times; what one turns is said by `launch --timed \
             --stats`)"
        )?;
    }
    Ok(())
}

/// How much more the second is; nothing of lists and of what stays.
fn change(a: &Figure<'_>, b: &Figure<'_>) -> String {
    let (Figure::One(a), Figure::One(b)) = (a, b) else {
        return String::new();
    };
    if a == b {
        return String::new();
    }
    let (sign, by) = if b > a { ('+', b - a) } else { ('-', a - b) };
    if *a == 0 {
        return format!("{sign}{by}");
    }
    format!("{sign}{by} ({sign}{:.1} %)", 100.0 * by as f64 / *a as f64)
}
