//! Colours in messages: on a terminal only, unless `--color` or the environment (`NO_COLOR`, `CLICOLOR`,
//! `CLICOLOR_FORCE`) says otherwise.

use anstream::AutoStream;
use clap::builder::Styles;
use clap::{ColorChoice, Command, ValueEnum};
use std::ffi::OsString;
use std::fmt;

/// What a message begins with.
#[derive(Clone, Copy, Debug)]
pub enum Label {
    /// `error:`
    Error,
    /// `warning:`
    Warning,
}

impl fmt::Display for Label {
    /// In the colours of the command line's own messages, where standard error takes colours.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let styles = Styles::styled();
        let (text, style) = match self {
            Label::Error => ("error:", styles.get_error()),
            Label::Warning => ("warning:", styles.get_invalid()),
        };
        match AutoStream::choice(&std::io::stderr()) {
            anstream::ColorChoice::Never => f.write_str(text),
            _ => write!(f, "{style}{text}{style:#}"),
        }
    }
}

/// The command with the colours that its command line asks for: what is wrong with the rest of that is said in them
/// too.
pub fn applied(command: Command) -> Command {
    let choice = chosen(std::env::args_os().skip(1)).unwrap_or_default();
    let global = match choice {
        ColorChoice::Auto => anstream::ColorChoice::Auto,
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
    };
    global.write_global();
    command.color(choice)
}

/// The value of the last `--color` before `--`; the command line is not read yet, and may be wrong.
fn chosen(arguments: impl Iterator<Item = OsString>) -> Option<ColorChoice> {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let mut arguments = arguments.take_while(|argument| argument != "--");
    let mut found = None;
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--color") {
            Some("") => arguments.next(),
            Some(value) => value.strip_prefix('=').map(str::to_owned),
            None => None,
        };
        let choice = value.and_then(|value| ColorChoice::from_str(&value, false).ok());
        found = choice.or(found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_choice_before_the_dashes_counts() {
        let of = |line: &str| chosen(line.split(' ').map(OsString::from));
        assert_eq!(of("test x"), None);
        assert_eq!(of("--color never test x"), Some(ColorChoice::Never));
        assert_eq!(of("test --color=always x"), Some(ColorChoice::Always));
        assert_eq!(
            of("--color=never --color always"),
            Some(ColorChoice::Always)
        );
        assert_eq!(of("--color=blue --colors always"), None);
        assert_eq!(of("test -- --color always"), None);
    }
}
