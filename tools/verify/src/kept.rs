//! Verdicts in a file, by a hash of all that they depend on: the function, what it is compared with, the limits, and
//! the sources that say what both mean.
//!
//! A line is a hash and a verdict. Lines are only appended, so processes may share a file; of two lines for one hash the
//! later counts. A counterexample is not kept: it is cheap to find again. Nor is that no solver answered in time.

use crate::clif::Limits;
use crate::proof::{NO_ANSWER, Verdict};
use crate::solver::SolverError;
use cranelift_codegen::ir::{Function, Opcode, Value};
use hashbrown::HashMap;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a verdict depends on, as a hash that is being made.
#[derive(Debug)]
pub struct Key(Sha256);

impl Key {
    /// Of a function, how far its paths are followed, and how long a solver may take.
    pub fn new(func: &Function, kernel: bool, limits: Limits, time: Duration) -> Self {
        let mut key = Key(Sha256::new());
        key.text(env!("THISGPU_MEANING_HASH"));
        key.function(func);
        let Limits { paths, steps } = limits;
        key.text(&format!("{kernel} {paths} {steps} {}", time.as_millis()));
        key
    }

    /// And of another function.
    pub fn function(&mut self, func: &Function) {
        self.text(&func.display().to_string());
        if asks_compiler(func) {
            self.text(env!("THISGPU_COMPILER_HASH"));
        }
    }

    /// And of code.
    pub fn words(&mut self, words: &[u128]) {
        for word in words {
            self.0.update(word.to_le_bytes());
        }
    }

    /// And of the constants that the code reads.
    pub fn constants(&mut self, constants: &[u8]) {
        self.0.update((constants.len() as u64).to_le_bytes());
        self.0.update(constants);
    }

    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text);
    }

    fn digits(self) -> String {
        let bytes = self.0.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether what a function means depends on compiled code: of divisions, of operations that round, of intrinsics.
fn asks_compiler(func: &Function) -> bool {
    let insts = func
        .layout
        .blocks()
        .flat_map(|b| func.layout.block_insts(b));
    let is_float = |&v: &Value| func.dfg.value_type(v).lane_type().is_float();
    let mut asks = insts.map(|inst| {
        let opcode = func.dfg.insts[inst].opcode();
        let is_division = matches!(
            opcode,
            Opcode::Udiv | Opcode::Sdiv | Opcode::Urem | Opcode::Srem
        );
        let mut values = func
            .dfg
            .inst_args(inst)
            .iter()
            .chain(func.dfg.inst_results(inst));
        is_division || opcode.is_call() || values.any(is_float)
    });
    asks.any(|asks| asks)
}

/// Verdicts of a file.
#[derive(Debug)]
pub struct Kept {
    known: Mutex<HashMap<String, Verdict>>,
    file: Mutex<File>,
}

impl Kept {
    /// Reads a file, or makes one. Lines that are none of verdicts are passed over.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let line = |line: &str| {
            let (hash, verdict) = line.split_once(' ')?;
            let verdict = match verdict {
                "proven" => Verdict::Proven,
                other => Verdict::Open(other.strip_prefix("open ")?.to_owned()),
            };
            Some((hash.to_owned(), verdict))
        };
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        // A process that was stopped may have left a part of a line.
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Kept {
            known: Mutex::new(text.lines().filter_map(line).collect()),
            file: Mutex::new(file),
        })
    }

    /// The verdict of a key: the one that is kept, or what is found now.
    ///
    /// # Errors
    /// Those of finding it.
    pub fn known(
        &self,
        key: Key,
        find: impl FnOnce() -> Result<Verdict, SolverError>,
    ) -> Result<Verdict, SolverError> {
        let hash = key.digits();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = known().get(&hash) {
            return Ok(verdict.clone());
        }
        let verdict = find()?;
        let line = match &verdict {
            Verdict::Proven => format!("{hash} proven\n"),
            // Another time a solver may answer.
            Verdict::Open(reason) if reason == NO_ANSWER => return Ok(verdict),
            Verdict::Open(reason) => format!("{hash} open {reason}\n"),
            Verdict::Refuted(_) => return Ok(verdict),
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be kept is found again.
        if let Err(error) = file.write_all(line.as_bytes()) {
            log::warn!("a verdict is not kept: {error}");
        }
        known().insert(hash, verdict.clone());
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_not_asked_again() {
        let path = std::env::temp_dir().join(format!("verdicts-{}", std::process::id()));
        let func = Function::new();
        let limits = Limits { paths: 1, steps: 1 };
        let key = |seconds| Key::new(&func, false, limits, Duration::from_secs(seconds));
        for times in 0..2 {
            let kept = Kept::open(&path).unwrap();
            let mut asked = 0;
            let mut known = |seconds| {
                let found = kept.known(key(seconds), || {
                    asked += 1;
                    Ok(Verdict::Open("a reason".to_owned()))
                });
                found.unwrap()
            };
            for seconds in [1, 2, 1] {
                assert_eq!(known(seconds), Verdict::Open("a reason".to_owned()));
            }
            assert_eq!(asked, [2, 0][times]);
        }
        std::fs::remove_file(path).unwrap();
    }
}
