//! Settings of a compilation, as `--set NAME=VALUE` and `set` lines of filetests give them.
//!
//! [`SETTINGS`] is the one list: names, legal values, meaning and access. Help texts and messages are made from it.

use crate::abi;
use crate::error::{Error, Place, Problem};
pub use crate::regalloc::Algorithm;
use crate::text::did_you_mean;
use cranelift_codegen::settings::{Configurable, SetError, SetResult};
use std::fmt;

/// What a compilation is asked to do. More settings will come, so take [`Options::default`] and change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much the CLIF is optimised before selection.
    pub opt_level: OptLevel,
    /// Which register allocator is used; none: what [`Options::allocator`] says.
    pub regalloc_algorithm: Option<Algorithm>,
    /// General-purpose registers that may be used, R0 included.
    pub registers: u8,
    /// How control bits are found.
    pub sched: Sched,
    /// Trust that every access is naturally aligned.
    pub assume_aligned: bool,
    /// Make adjacent accesses one wide access where that is proven to be the same.
    pub merge_accesses: bool,
    /// Leave gaps around the stack slots that checking mode watches.
    pub stack_redzones: bool,
    /// Turn short divergent branches into guarded instructions.
    pub if_convert: bool,
    /// How often loops are unrolled.
    pub unroll: Unroll,
    /// Move what every turn of a loop computes alike in front of the loop.
    pub hoist: bool,
    /// Make counters of products with counters of loops.
    pub reduce_strength: bool,
    /// Move the tests of loops to their ends.
    pub rotate: bool,
    /// Apply this back end's own rules on CLIF.
    pub rewrite: bool,
    /// Take constants out of addresses, into the offsets of accesses.
    pub split_addresses: bool,
    /// Reorder the instructions of blocks.
    pub reorder: bool,
    /// Say in the object which instructions are of which line of the source.
    pub lines: bool,
    /// Say in the object where values of the source are.
    pub value_locations: bool,
    /// Keep the stack slots of the CLIF in memory.
    pub keep_slots: bool,
    /// Run Cranelift's verifier on the CLIF first. Without it invalid CLIF is the caller's mistake and may end in a
    /// panic.
    pub enable_verifier: bool,
    /// Verify the code after each pass.
    pub verify: bool,
}

impl Options {
    /// What holds where nothing else is asked for.
    pub const DEFAULT: Self = Self {
        opt_level: OptLevel::Speed,
        regalloc_algorithm: None,
        registers: abi::MAX_GPR,
        sched: Sched::Full,
        assume_aligned: false,
        merge_accesses: true,
        stack_redzones: false,
        if_convert: true,
        unroll: Unroll::Auto,
        hoist: true,
        reduce_strength: true,
        rotate: true,
        rewrite: true,
        split_addresses: true,
        reorder: true,
        lines: true,
        value_locations: false,
        keep_slots: false,
        enable_verifier: true,
        verify: cfg!(debug_assertions),
    };

    /// True if the passes on CLIF run that make code better.
    pub fn optimizes(&self) -> bool {
        self.opt_level != OptLevel::None
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An enumeration whose values have names.
trait Named: Copy + PartialEq + 'static {
    const NAMES: &'static [(&'static str, Self)];

    fn name(self) -> &'static str {
        let row = Self::NAMES.iter().find(|(_, value)| *value == self);
        row.map_or("", |(name, _)| name)
    }

    fn parse(text: &str) -> Option<Self> {
        let row = Self::NAMES.iter().find(|(name, _)| *name == text);
        row.map(|(_, value)| *value)
    }

    fn legal() -> String {
        let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

/// How much the CLIF is optimised before selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptLevel {
    /// Not at all.
    None,
    /// For speed.
    Speed,
    /// For speed and size.
    SpeedAndSize,
}

impl Named for OptLevel {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("speed", Self::Speed),
        ("speed_and_size", Self::SpeedAndSize),
    ];
}

impl Named for Algorithm {
    const NAMES: &'static [(&'static str, Self)] = &[
        ("backtracking", Self::Backtracking),
        ("single_pass", Self::SinglePass),
    ];
}

/// How control bits are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sched {
    /// From dependences and latencies.
    Full,
    /// Every instruction waits for everything before it.
    Serial,
}

impl Named for Sched {
    const NAMES: &'static [(&'static str, Self)] =
        &[("full", Self::Full), ("serial", Self::Serial)];
}

impl Named for bool {
    const NAMES: &'static [(&'static str, Self)] = &[("true", true), ("false", false)];
}

/// How often loops are unrolled whose turns can be counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unroll {
    /// Never, whatever the text asks for.
    Off,
    /// As it seems worth it, with `opt_level=speed` only, and where the text asks for it.
    #[default]
    Auto,
    /// So many times, but where the text asks for another number.
    Times(u8),
}

/// Most times that loops can be unrolled by a setting or by the text.
pub const MOST_TIMES: u8 = 255;

impl Unroll {
    fn name(self) -> String {
        match self {
            Unroll::Off => "off".to_owned(),
            Unroll::Auto => "auto".to_owned(),
            Unroll::Times(times) => times.to_string(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Unroll::Off),
            "auto" => Some(Unroll::Auto),
            _ => {
                let times = text.parse().ok()?;
                (2..=MOST_TIMES)
                    .contains(&times)
                    .then_some(Unroll::Times(times))
            }
        }
    }
}

/// Fewest registers that any function can be compiled for: those of the calling convention and the widest operands.
const MIN_REGISTERS: u8 = 24;

/// A setting: what a user can write, and how it gets into [`Options`].
#[non_exhaustive]
pub struct Setting {
    /// Name in `NAME=VALUE`.
    pub name: &'static str,
    /// Meaning.
    pub help: &'static str,
    legal: fn() -> String,
    get: fn(&Options) -> String,
    set: fn(&mut Options, &str) -> Option<()>,
}

impl Setting {
    /// The values that can be given.
    pub fn legal_values(&self) -> String {
        (self.legal)()
    }

    /// The value in `options`.
    pub fn value(&self, options: &Options) -> String {
        (self.get)(options)
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=<{}>", self.name, self.legal_values())
    }
}

/// A row of [`SETTINGS`] for a field whose type is [`Named`].
macro_rules! named {
    ($name:literal, $field:ident: $ty:ty, $help:literal) => {
        Setting {
            name: $name,
            help: $help,
            legal: <$ty as Named>::legal,
            get: |options| Named::name(options.$field).to_owned(),
            set: |options, text| Named::parse(text).map(|value| options.$field = value),
        }
    };
}

/// All settings.
pub static SETTINGS: &[Setting] = &[
    named!("opt_level", opt_level: OptLevel, "how much the CLIF is optimised before selection"),
    Setting {
        name: "regalloc_algorithm",
        help: "regalloc2, or the colouring, which is faster; by default the colouring with opt_level=none, in short \
         functions without calls and loops, and in functions of more than 20,000 machine instructions",
        legal: Algorithm::legal,
        get: |options| options.allocator().name().to_owned(),
        set: |options, text| {
            Algorithm::parse(text).map(|value| options.regalloc_algorithm = Some(value))
        },
    },
    Setting {
        name: "regs",
        help: "general-purpose registers that may be used",
        legal: || format!("{MIN_REGISTERS} to {}", abi::MAX_GPR),
        get: |options| options.registers.to_string(),
        set: |options, text| {
            let count = text.parse().ok()?;
            (MIN_REGISTERS..=abi::MAX_GPR)
                .contains(&count)
                .then(|| options.registers = count)
        },
    },
    named!("sched", sched: Sched, "control bits from latencies, or waiting for everything"),
    named!("assume_aligned", assume_aligned: bool, "trust that every access is naturally aligned"),
    named!("merge_accesses", merge_accesses: bool, "make adjacent accesses one wide access (not with opt_level=none)"),
    named!("stack_redzones", stack_redzones: bool, "leave gaps around stack slots, in which --check finds every \
     access"),
    named!("if_convert", if_convert: bool, "guard the instructions of short divergent branches"),
    Setting {
        name: "unroll",
        help: "how often loops are unrolled; auto: short ones, with opt_level=speed",
        legal: || format!("off, auto, 2 to {MOST_TIMES}"),
        get: |options| options.unroll.name(),
        set: |options, text| Unroll::parse(text).map(|value| options.unroll = value),
    },
    named!("hoist", hoist: bool, "move what every turn of a loop computes alike in front of it (not with \
     opt_level=none)"),
    named!("reduce_strength", reduce_strength: bool, "make counters of products with counters of loops (not with \
     opt_level=none)"),
    named!("rotate", rotate: bool, "move the tests of loops to their ends (not with opt_level=none)"),
    named!("rewrite", rewrite: bool, "apply the rules of isle/clif_opt.isle (not with opt_level=none)"),
    named!("split_addresses", split_addresses: bool, "take constants out of addresses, into offsets (not with \
     opt_level=none)"),
    named!("reorder", reorder: bool, "reorder the instructions of blocks (not with sched=serial)"),
    named!("lines", lines: bool, "say in the object which instructions are of which line of the source"),
    named!("value_locations", value_locations: bool, "say in the object where values and variables are, for debuggers"),
    named!("keep_slots", keep_slots: bool, "keep stack slots in memory, where a debugger finds them"),
    named!("enable_verifier", enable_verifier: bool, "run Cranelift's verifier on the CLIF first (false: the caller \
     has done so)"),
    named!("verify", verify: bool, "verify the code after each pass"),
];

impl Options {
    /// The register allocator that these settings mean: regalloc2, but where nothing is optimised.
    pub fn allocator(&self) -> Algorithm {
        self.regalloc_algorithm.unwrap_or(match self.opt_level {
            OptLevel::None => Algorithm::SinglePass,
            OptLevel::Speed | OptLevel::SpeedAndSize => Algorithm::Backtracking,
        })
    }

    /// Applies one `NAME=VALUE`; `NAME` alone means `NAME=true`.
    ///
    /// # Errors
    /// An unknown name, or a value that the setting does not take; the message lists what is legal.
    pub fn set(&mut self, text: &str) -> Result<(), Error> {
        let (name, value) = text.split_once('=').unwrap_or((text, "true"));
        self.set_to(name, value)
    }

    /// Gives one setting a value.
    fn set_to(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let wrong = |message| {
            let problem = Problem::Setting {
                name: name.to_owned(),
                message,
            };
            Error::new(problem, Place::default())
        };
        let Some(setting) = find(name) else {
            let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(wrong(format!(
                "no such setting; there are {}{}",
                names.join(", "),
                did_you_mean(name, names.iter().copied())
            )));
        };
        (setting.set)(self, value).ok_or_else(|| {
            wrong(format!(
                "`{value}` is not legal; legal values: {}",
                setting.legal_values()
            ))
        })
    }

    /// True if a setting of this name exists.
    pub fn knows(name: &str) -> bool {
        find(name).is_some()
    }
}

/// Settings while they are made, by Cranelift's conventions: [`Builder::set`] and [`Builder::enable`] by name, then
/// [`Builder::finish`]. [`SETTINGS`] lists the names. Code that is written for any `Configurable` of Cranelift takes it
/// too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "settings do nothing until a compiler has them"]
pub struct Builder {
    options: Options,
}

/// Default settings, to be changed by name.
pub fn builder() -> Builder {
    Builder::default()
}

impl Builder {
    /// Gives a setting a value.
    ///
    /// # Errors
    /// An unknown name, or a value that the setting does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.options.set_to(name, value)
    }

    /// Switches a setting on.
    ///
    /// # Errors
    /// An unknown name, or a setting that is no switch.
    pub fn enable(&mut self, name: &str) -> Result<(), Error> {
        self.options.set_to(name, "true")
    }

    /// The list of settings: names, meanings, legal values.
    pub fn iter(&self) -> impl Iterator<Item = &'static Setting> {
        SETTINGS.iter()
    }

    /// The settings, for a compiler.
    pub fn finish(self) -> Options {
        self.options
    }
}

impl Configurable for Builder {
    fn set(&mut self, name: &str, value: &str) -> SetResult<()> {
        let setting = find(name).ok_or_else(|| SetError::BadName(name.to_owned()))?;
        let set = (setting.set)(&mut self.options, value);
        set.ok_or_else(|| SetError::BadValue(format!("any among {}", setting.legal_values())))
    }

    fn enable(&mut self, name: &str) -> SetResult<()> {
        let setting = find(name).ok_or_else(|| SetError::BadName(name.to_owned()))?;
        (setting.set)(&mut self.options, "true").ok_or(SetError::BadType)
    }
}

fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_reads_back_what_it_prints() {
        for setting in SETTINGS {
            let mut options = Options::default();
            let printed = setting.value(&options);
            options.set(&format!("{}={printed}", setting.name)).unwrap();
            let values = |options: &Options| {
                SETTINGS
                    .iter()
                    .map(|s| s.value(options))
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                values(&options),
                values(&Options::default()),
                "{}",
                setting.name
            );
            let wrong = options.set(&format!("{}=blue", setting.name)).unwrap_err();
            assert!(
                wrong.to_string().contains(&setting.legal_values()),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_builder_works_as_those_of_cranelift() {
        fn configure(settings: &mut dyn Configurable) {
            settings.set("opt_level", "none").unwrap();
            settings.enable("assume_aligned").unwrap();
            assert!(matches!(
                settings.set("opt_levl", "none"),
                Err(SetError::BadName(_))
            ));
            assert!(matches!(
                settings.set("regs", "3"),
                Err(SetError::BadValue(_))
            ));
            assert!(matches!(settings.enable("regs"), Err(SetError::BadType)));
        }
        let mut builder = builder();
        configure(&mut builder);
        let error = builder.set("opt_levl", "none").unwrap_err().to_string();
        assert!(error.ends_with("did you mean `opt_level`?"), "{error}");
        assert_eq!(builder.iter().count(), SETTINGS.len());
        let options = builder.finish();
        assert!(options.assume_aligned && options.opt_level == OptLevel::None);
    }

    #[test]
    fn settings_change_the_options() {
        let mut options = Options::default();
        for text in [
            "regs=32",
            "regalloc_algorithm=single_pass",
            "sched=serial",
            "assume_aligned",
            "opt_level=none",
        ] {
            options.set(text).unwrap();
        }
        assert_eq!(
            options,
            Options {
                registers: 32,
                regalloc_algorithm: Some(Algorithm::SinglePass),
                sched: Sched::Serial,
                assume_aligned: true,
                opt_level: OptLevel::None,
                ..Options::default()
            }
        );
        assert!(options.set("regs=3").is_err());
        assert!(options.set("regs=255").is_err());
        let unknown = options.set("speed=11").unwrap_err().to_string();
        assert!(
            unknown.contains("opt_level, regalloc_algorithm"),
            "{unknown}"
        );
    }
}
