//! Kernels that read shared memory by an address that is computed from numbers of the launch, and may lie outside.
//!
//! An address is the start of shared memory and a sum of words, products, choices and constants, of which the compiler
//! may find bounds. For some launches it is inside, for others it is not: by little, or by multiples of 2^32. The other
//! side is a kernel that gets the sum from the launch, so that nothing is known of it: both read the same, or fault.

use super::check::{Failure, Found, Kind, Mode, compile, device, report, run_text, settings_of};
use super::emit::NAME;
use crate::random::Random;
use cranelift_thisgpu::compile::Code;
use cranelift_thisgpu::driver::{Device, DevicePointer, Grid};
use cranelift_thisgpu::launch::Report;
use std::fmt::{Display, Write};

/// Words that a launch passes.
const WORDS: usize = 3;
/// Launches of a kernel.
const LAUNCHES: usize = 6;
/// Words of shared memory.
const SHARED: u32 = 16;
/// Settings in which a smaller kernel has to fail.
const SETTINGS: usize = 2;
/// Warp instructions.
const BUDGET: u64 = 1 << 12;

/// What is added to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// A number.
    Constant(i64),
    /// A word of the launch and how it is bounded, extended and multiplied.
    Product {
        word: usize,
        bound: Bound,
        signed: bool,
        factor: i64,
    },
    /// One number or another, by a bit of a word.
    Choice { word: usize, either: i64, or: i64 },
}

/// Bounds of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    None,
    Mask(u32),
    Most(u32),
    Below(u32),
}

/// A kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where it comes from.
    pub seed: u64,
    terms: Vec<Term>,
    offset: i32,
    launches: Vec<[u32; WORDS]>,
}

/// A number that is small, or about a multiple of 2^32.
fn number(random: &mut Random) -> i64 {
    let small = random.below(SHARED as usize) as i64 * 4;
    match random.below(4) {
        0 => small,
        1 => -small,
        2 => small + away(random),
        _ => (random.bits() as i64 >> random.below(60)) & !3,
    }
}

/// Some multiple of 2^32.
fn away(random: &mut Random) -> i64 {
    (random.between(1, 9) as i64 - 5) * (1 << 32)
}

impl Term {
    fn drawn(random: &mut Random) -> Term {
        let word = random.below(WORDS);
        match random.below(4) {
            0 => Term::Constant(number(random)),
            1 | 2 => {
                let either = number(random);
                let or = match random.once_in(2) {
                    true => number(random),
                    // The same as far as a word tells, or beside that.
                    false => either.wrapping_add(away(random) + random.between(0, 2) as i64 * 4),
                };
                Term::Choice { word, either, or }
            }
            _ => Term::Product {
                word,
                bound: match random.below(4) {
                    0 => Bound::None,
                    1 => Bound::Mask(random.pick(&[3, 7, 15, 0xff, u32::MAX >> 1])),
                    2 => Bound::Most(random.between(1, 100) as u32),
                    _ => Bound::Below(random.between(1, 100) as u32),
                },
                signed: random.once_in(3),
                factor: random.pick(&[4, 4, 8, -4, 1 << 20, 1 << 31]),
            },
        }
    }

    /// Its value.
    fn of(self, words: &[u32; WORDS]) -> i64 {
        match self {
            Term::Constant(number) => number,
            Term::Choice { word, either, or } => match words[word] & 1 {
                0 => or,
                _ => either,
            },
            Term::Product {
                word,
                bound,
                signed,
                factor,
            } => {
                let word = match bound {
                    Bound::None => words[word],
                    Bound::Mask(mask) => words[word] & mask,
                    Bound::Most(most) => words[word].min(most),
                    Bound::Below(end) => words[word] % end,
                };
                let wide = match signed {
                    true => i64::from(word as i32),
                    false => i64::from(word),
                };
                wide.wrapping_mul(factor)
            }
        }
    }

    /// Writes it as the value of a number, with others from a thousand times that on.
    fn write(self, value: usize, text: &mut String) {
        let inner = 1000 * value;
        // Writing to a string cannot fail.
        let _ = match self {
            Term::Constant(number) => writeln!(text, "    v{value} = iconst.i64 {number}"),
            Term::Choice { word, either, or } => writeln!(
                text,
                "    v{inner} = iconst.i32 1
    v{} = band v{}, v{inner}
    v{} = iconst.i64 {either}
    v{} = iconst.i64 {or}
    v{value} = select v{}, v{}, v{}",
                inner + 1,
                word + 1,
                inner + 2,
                inner + 3,
                inner + 1,
                inner + 2,
                inner + 3
            ),
            Term::Product {
                word,
                bound,
                signed,
                factor,
            } => {
                let extension = if signed { "sextend" } else { "uextend" };
                let (opcode, number) = match bound {
                    Bound::None => ("bor", 0),
                    Bound::Mask(mask) => ("band", mask),
                    Bound::Most(most) => ("umin", most),
                    Bound::Below(end) => ("urem", end),
                };
                writeln!(
                    text,
                    "    v{inner} = iconst.i32 {number}
    v{} = {opcode} v{}, v{inner}
    v{} = {extension}.i64 v{}
    v{} = iconst.i64 {factor}
    v{value} = imul v{}, v{}",
                    inner + 1,
                    word + 1,
                    inner + 2,
                    inner + 1,
                    inner + 3,
                    inner + 2,
                    inner + 3
                )
            }
        };
    }
}

impl Plan {
    /// What `random` draws; `seed` is its name.
    pub fn drawn(seed: u64, random: &Random) -> Plan {
        let mut random = random.fork(0x71d0);
        let count = random.between(1, 3);
        let mut terms: Vec<Term> = (0..count).map(|_| Term::drawn(&mut random)).collect();
        let mut words = [0; WORDS].map(|_: u32| random.bits() as u32 >> random.below(32));
        let mut launches = vec![words];
        for _ in 1..LAUNCHES {
            let word = random.below(WORDS);
            words[word] = match random.below(4) {
                0 | 1 => words[word] ^ 1,
                2 => random.below(20) as u32,
                _ => random.bits() as u32,
            };
            launches.push(words);
        }
        let offset = random.pick(&[0, 0, 4, -4, 64]);
        // The first launch is inside.
        let wanted = random.below(SHARED as usize) as i64 * 4 - i64::from(offset);
        let sum = sum(&terms, &launches[0]);
        terms.insert(0, Term::Constant(wanted.wrapping_sub(sum)));
        Plan {
            seed,
            terms,
            offset,
            launches,
        }
    }

    /// As CLIF.
    pub fn text(&self) -> String {
        let mut body = String::new();
        let mut last = 10;
        for (place, term) in self.terms.iter().enumerate() {
            let value = 11 + 2 * place;
            term.write(value, &mut body);
            // Writing to a string cannot fail.
            let _ = writeln!(body, "    v{} = iadd v{last}, v{value}", value + 1);
            last = value + 1;
        }
        self.around(&body, last)
    }

    /// The same with a sum that the launch passes.
    fn plain(&self) -> String {
        self.around("    v12 = iadd v10, v5\n", 12)
    }

    fn around(&self, body: &str, address: usize) -> String {
        let stores: String = (0..SHARED)
            .map(|word| {
                let value = 100 + word;
                format!(
                    "    v{value} = iconst.i32 {}
    store aligned v{value}, v9+{}\n",
                    word * 77 + 5,
                    4 * word
                )
            })
            .collect();
        format!(
            "; Seed {} of the generator of addresses.
; kernel shared={}
function %{NAME}(i64, i32, i32, i32, i64) {{
    gv0 = symbol %gpu_shared

block0(v0: i64, v1: i32, v2: i32, v3: i32, v5: i64):
    v9 = symbol_value.i32 gv0
    v10 = symbol_value.i64 gv0
{stores}{body}    v6 = load.i32 aligned v{address}{:+}
    store aligned v6, v0
    return
}}
",
            self.seed,
            4 * SHARED,
            self.offset
        )
    }

    /// Compiles and runs it in so many settings; gives the number of launches.
    ///
    /// # Errors
    /// The first failure.
    pub fn check(&self, settings: usize) -> Result<u64, Failure> {
        let modes = [Mode::Alone];
        let plain = compile(&self.plain(), &[]).map_err(|(kind, message)| Failure {
            kind,
            settings: Vec::new(),
            mode: Mode::Alone,
            message,
        })?;
        for settings in settings_of(self.seed, settings) {
            let launch = |code: &Code, _| self.compare(&plain, code);
            run_text(&settings, &modes, || self.text(), launch)?;
        }
        Ok((settings * self.launches.len()) as u64)
    }

    fn compare(&self, plain: &Code, code: &Code) -> Found<()> {
        for words in &self.launches {
            let [wanted, found] = [plain, code].map(|code| self.outcome(code, words));
            let (wanted, found) = (wanted?, found?);
            if wanted != found {
                let sum = sum(&self.terms, words);
                let text = |read: Option<u32>| match read {
                    Some(read) => read.to_string(),
                    None => "a fault".to_owned(),
                };
                let message = format!(
                    "{words:?}, {sum} from the start: {}, not {}",
                    text(found),
                    text(wanted)
                );
                return Err((Kind::Value, message));
            }
        }
        Ok(())
    }

    /// What a launch reads; none if it faults.
    fn outcome(&self, code: &Code, words: &[u32; WORDS]) -> Found<Option<u32>> {
        let (report, read) = self.launched(&device(Mode::Alone, BUDGET), code, words)?;
        Ok(report.fault.is_none().then_some(read))
    }

    /// Runs it on a device to its end or fault.
    pub(super) fn run_on(&self, device: &Device, code: &Code) -> Found<Report> {
        Ok(self.launched(device, code, &self.launches[0])?.0)
    }

    fn launched(&self, device: &Device, code: &Code, words: &[u32; WORDS]) -> Found<(Report, u32)> {
        let fails = |error: &dyn Display| (Kind::Fault, error.to_string());
        let module = device.load(code).map_err(|e| fails(&e))?;
        let entry = module.kernel(NAME).map_err(|e| fails(&e))?;
        let out = device.upload(&[0u32]).map_err(|e| fails(&e))?;
        let mut launch = entry.launch(Grid::new([1, 1, 1], [1, 1, 1]));
        launch = launch.arg(DevicePointer(out.address()));
        for word in words {
            launch = launch.arg(*word);
        }
        launch = launch.arg(sum(&self.terms, words) as u64);
        let report = report(launch, Mode::Alone).map_err(|e| fails(&e))?;
        let read = out.read::<u32>().map_err(|e| fails(&e))?;
        Ok((report, read[0]))
    }

    /// Without one of its terms, or one of its launches.
    fn smaller(&self) -> impl Iterator<Item = Plan> {
        let terms = (0..self.terms.len()).map(|place| {
            let mut plan = self.clone();
            plan.terms.remove(place);
            plan
        });
        let launches = (0..self.launches.len()).map(|place| Plan {
            launches: vec![self.launches[place]],
            ..self.clone()
        });
        terms.chain(launches.filter(|plan| plan.launches != self.launches))
    }

    /// A smaller one that fails in the same way.
    pub fn reduce(&self, failure: &Failure) -> (Plan, Failure) {
        let fails = |plan: &Plan| {
            let found = plan.check(SETTINGS).err();
            found.filter(|found| found.kind == failure.kind)
        };
        let found = self.smaller().find_map(|plan| {
            let failure = fails(&plan)?;
            Some((plan, failure))
        });
        match found {
            Some((plan, failure)) => plan.reduce(&failure),
            None => (self.clone(), failure.clone()),
        }
    }
}

fn sum(terms: &[Term], words: &[u32; WORDS]) -> i64 {
    let sum = terms.iter().map(|term| term.of(words));
    sum.fold(0, i64::wrapping_add)
}
