//! The scheduling control fields, bits 112..127 of every word (*assigned*; docs/assigned.md).

use super::generated::control;
use std::fmt;

/// Number of scoreboards of a warp.
pub const SCOREBOARDS: u8 = 6;
/// Code of "no scoreboard".
const NONE: u64 = 7;

/// A scoreboard: a counter that is raised at issue and lowered when the result is written or the sources have been
/// read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scoreboard(u8);

impl Scoreboard {
    /// Scoreboard 0 to 5.
    pub const fn new(number: u8) -> Option<Scoreboard> {
        if number < SCOREBOARDS {
            Some(Scoreboard(number))
        } else {
            None
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Scoreboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What an instruction waits for and signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Control {
    stall: u8,
    wait: u8,
    /// Lowered when the result is written (`&wr`).
    pub write: Option<Scoreboard>,
    /// Lowered when the sources have been read (`&rd`).
    pub read: Option<Scoreboard>,
}

impl Control {
    /// Largest stall.
    pub const MAX_STALL: u8 = 15;

    /// Cycles until this warp issues again; 0 counts as 1.
    pub const fn stall(self) -> u8 {
        self.stall
    }

    /// Sets the stall.
    ///
    /// # Panics
    /// When it is above [`Control::MAX_STALL`].
    pub fn set_stall(&mut self, cycles: u8) {
        assert!(cycles <= Self::MAX_STALL, "stall of {cycles}");
        self.stall = cycles;
    }

    /// Mask of the scoreboards that must be zero before issue.
    pub const fn wait(self) -> u8 {
        self.wait
    }

    /// Sets the mask of the scoreboards to wait for.
    ///
    /// # Panics
    /// When a bit above scoreboard 5 is set.
    pub fn set_wait(&mut self, mask: u8) {
        assert!(mask >> SCOREBOARDS == 0, "wait mask {mask:#x}");
        self.wait = mask;
    }

    /// The control bits at their place in a word.
    pub fn encode(self) -> u128 {
        let board = |s: Option<Scoreboard>| s.map_or(NONE, |s| u64::from(s.0));
        let word = control::SCHED.with_raw(0, u64::from(self.stall));
        let word = control::REQ.with_raw(word, u64::from(self.wait));
        let word = control::WSB.with_raw(word, board(self.write));
        control::RSB.with_raw(word, board(self.read))
    }

    /// The control bits of a word; the name of the field whose value is illegal (6) otherwise.
    ///
    /// # Errors
    /// `wsb` or `rsb` when it holds a scoreboard that does not exist.
    pub fn decode(word: u128) -> Result<Control, &'static str> {
        let board = |value: u64, name| match value {
            NONE => Ok(None),
            v => Scoreboard::new(v as u8).map(Some).ok_or(name),
        };
        Ok(Control {
            stall: control::SCHED.raw(word) as u8,
            wait: control::REQ.raw(word) as u8,
            write: board(control::WSB.raw(word), "wsb")?,
            read: board(control::RSB.raw(word), "rsb")?,
        })
    }
}

impl fmt::Display for Control {
    /// The suffix of the assembly text, with a leading space for each part: ` &req={0,3} &wr=1 &rd=2 ?4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wait != 0 {
            let list: Vec<String> = (0..SCOREBOARDS)
                .filter(|i| self.wait >> i & 1 != 0)
                .map(|i| i.to_string())
                .collect();
            write!(f, " &req={{{}}}", list.join(","))?;
        }
        if let Some(s) = self.write {
            write!(f, " &wr={s:?}")?;
        }
        if let Some(s) = self.read {
            write!(f, " &rd={s:?}")?;
        }
        if self.stall != 0 {
            write!(f, " ?{}", self.stall)?;
        }
        Ok(())
    }
}
