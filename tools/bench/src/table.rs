//! The table of costs: by source and class of size, the reference beside this compiler in every setting that is
//! compared.

use crate::corpus::{Class, Source};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// What costs are counted in.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum Measure {
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Instructions of the host.
    #[serde(rename = "instructions")]
    Instructions,
}

/// Sums over the functions of a source and class.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// Functions that all compilers compile.
    pub functions: usize,
    /// CLIF instructions of them.
    pub clif: usize,
    /// Cost of the reference; 0 when it did not run.
    pub reference: f64,
    /// Cost in each compared setting.
    pub subjects: Vec<f64>,
}

/// Functions that are not in the table, because one of the compilers does not compile them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Skipped {
    /// This compiler refused, in any of the compared settings.
    pub ours: usize,
    /// This compiler panicked.
    pub our_panics: usize,
    /// The reference refused.
    pub theirs: usize,
    /// The reference panicked.
    pub their_panics: usize,
}

/// Costs, as they come in.
pub struct Table {
    measure: Measure,
    with_reference: bool,
    subjects: Vec<String>,
    sources: Vec<String>,
    cells: BTreeMap<(usize, Class), Cell>,
    /// By source.
    skipped: Vec<Skipped>,
}

/// A line of the machine-readable table.
#[derive(Serialize)]
struct Row<'a> {
    source: &'a str,
    class: &'a str,
    #[serde(flatten)]
    cell: &'a Cell,
    ratios: Vec<Option<f64>>,
}

impl Cell {
    fn add(&mut self, other: &Cell) {
        self.functions += other.functions;
        self.clif += other.clif;
        self.reference += other.reference;
        self.subjects.resize(other.subjects.len(), 0.0);
        for (sum, cost) in self.subjects.iter_mut().zip(&other.subjects) {
            *sum += cost;
        }
    }

    /// Each setting's cost against the reference's.
    fn ratios(&self) -> Vec<Option<f64>> {
        let ratio = |cost: &f64| (self.reference > 0.0).then(|| cost / self.reference);
        self.subjects.iter().map(ratio).collect()
    }
}

impl Table {
    /// An empty table.
    pub fn new(
        measure: Measure,
        with_reference: bool,
        subjects: Vec<String>,
        sources: &[Source],
    ) -> Self {
        Self {
            measure,
            with_reference,
            subjects,
            sources: sources.iter().map(|source| source.name.clone()).collect(),
            cells: BTreeMap::new(),
            skipped: vec![Skipped::default(); sources.len()],
        }
    }

    /// Adds costs to a cell.
    pub fn add(&mut self, source: usize, class: Class, cell: &Cell) {
        self.cells.entry((source, class)).or_default().add(cell);
    }

    /// The functions of a source that are left out.
    pub fn skipped(&mut self, source: usize) -> &mut Skipped {
        &mut self.skipped[source]
    }

    /// Whether no function is in it.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Cells with the names of their rows: each source by class and in all, and the sum of all sources.
    fn rows(&self) -> Vec<(&str, &str, Cell)> {
        let mut rows = Vec::new();
        let mut total = Cell::default();
        for (index, source) in self.sources.iter().enumerate() {
            let mut all = Cell::default();
            for class in Class::ALL {
                if let Some(cell) = self.cells.get(&(index, class)) {
                    all.add(cell);
                    rows.push((source.as_str(), class.name(), cell.clone()));
                }
            }
            total.add(&all);
            rows.push((source, "all", all));
        }
        if self.sources.len() > 1 {
            rows.push(("all", "all", total));
        }
        rows
    }

    /// The same for programs.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn json(&self, seed: u64) -> Result<serde_json::Value> {
        let rows = self.rows();
        let rows: Vec<Row<'_>> = (rows.iter())
            .map(|(source, class, cell)| Row {
                source,
                class,
                cell,
                ratios: cell.ratios(),
            })
            .collect();
        let skipped: BTreeMap<&String, &Skipped> = self.sources.iter().zip(&self.skipped).collect();
        Ok(serde_json::json!({
            "measure": self.measure,
            "seed": seed,
            "subjects": self.subjects,
            "rows": serde_json::to_value(rows)?,
            "skipped": skipped,
        }))
    }
}

impl fmt::Display for Table {
    /// Costs a function, and ratios of the sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.measure {
            Measure::Microseconds => "microseconds a function",
            Measure::Instructions => "thousand instructions a function",
        };
        writeln!(f, "{unit}; ratios of sums")?;
        let reference = if self.with_reference { "x86-64" } else { "" };
        write!(
            f,
            "{:<20} {:<9} {:>9} {reference:>10}",
            "source", "class", "functions"
        )?;
        for subject in &self.subjects {
            write!(f, " {subject:>30} ratio")?;
        }
        writeln!(f)?;
        let scale = match self.measure {
            Measure::Microseconds => 1.0,
            Measure::Instructions => 1e-3,
        };
        for (source, class, cell) in self.rows() {
            let each = |cost: f64| cost * scale / cell.functions.max(1) as f64;
            write!(f, "{source:<20} {class:<9} {:>9}", cell.functions)?;
            if self.with_reference {
                write!(f, " {:>10.1}", each(cell.reference))?;
            } else {
                write!(f, " {:>10}", "")?;
            }
            for (cost, ratio) in cell.subjects.iter().zip(cell.ratios()) {
                let ratio = ratio.map_or(String::new(), |ratio| format!("{ratio:.3}"));
                write!(f, " {:>30.1} {ratio:>5}", each(*cost))?;
            }
            writeln!(f)?;
        }
        for (source, skipped) in self.sources.iter().zip(&self.skipped) {
            let Skipped {
                ours,
                our_panics,
                theirs,
                their_panics,
            } = skipped;
            if ours + our_panics + theirs + their_panics > 0 {
                writeln!(
                    f,
                    "{source}: left out: thisgpu refuses {ours} and panics at {our_panics}, x86-64 refuses {theirs} \
                     and panics at {their_panics}"
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_sums() {
        let source = |name: &str| Source {
            name: name.to_owned(),
            files: Vec::new(),
            unparsed: 0,
        };
        let sources = [source("a"), source("b")];
        let mut table = Table::new(Measure::Microseconds, true, vec!["x".to_owned()], &sources);
        assert!(table.is_empty());
        for (index, reference, cost) in [(0, 1.0, 3.0), (0, 3.0, 3.0), (1, 4.0, 2.0)] {
            let cell = Cell {
                functions: 1,
                clif: 3,
                reference,
                subjects: vec![cost],
            };
            table.add(index, Class::of(3), &cell);
        }
        let json = table.json(1).unwrap();
        let ratios: Vec<f64> = (json["rows"].as_array().unwrap().iter())
            .map(|row| row["ratios"][0].as_f64().unwrap())
            .collect();
        // By source and class, each followed by all classes, and all sources in the end.
        assert_eq!(ratios, [1.5, 1.5, 0.5, 0.5, 1.0]);
    }
}
