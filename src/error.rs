//! The library's error: what is wrong, and where.
//!
//! Every stage from reading CLIF to writing an object reports through [`Errors`], a list that is never empty: a stage
//! collects every item that it cannot handle before it gives up, so one run names all of them. [`Error`] prints on one
//! line as `FILE:LINE: what is wrong and what to do (in function %name)`, with `:COLUMN` where a front end's table of
//! places names one; parts of the place that are unknown are left out. A list prints below each the line of the text
//! with carets, where the text is known; [`Error::column`] is where those begin. Faults of a running kernel are not
//! errors of this kind, they are values of the device.

use crate::locations::Locations;
use crate::text::{excerpt, word_at};
use cranelift_codegen::ir::{Function, Inst, SourceLoc, Type};
use std::fmt;
use std::sync::Arc;

/// What is wrong, without the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A file could not be read or written.
    #[error("{0}")]
    File(String),
    /// The text is not well-formed.
    #[error("{0}")]
    Syntax(String),
    /// The function breaks a rule of Cranelift IR.
    #[error("invalid CLIF: {0}")]
    Verifier(String),
    /// A correct input that this back end does not translate.
    #[error("unsupported: {item}: {remedy}")]
    Unsupported {
        /// The operation as `OPCODE.TYPE`, or the feature.
        item: String,
        /// What the author of the input can do instead.
        remedy: String,
    },
    /// A use of `%gpu_NAME` that the intrinsic table does not allow.
    #[error("intrinsic %gpu_{name}: {message}")]
    Intrinsic {
        /// Name without the `gpu_` prefix.
        name: String,
        /// What is wrong, with the legal signature.
        message: String,
    },
    /// A kernel that cannot be one, for example because it returns a value.
    #[error("kernel: {0}")]
    Kernel(String),
    /// More of a resource is needed than the machine has.
    #[error("{0}")]
    Limit(String),
    /// An unknown setting, or a value that it does not take.
    #[error("setting {name}: {message}")]
    Setting {
        /// Name of the setting.
        name: String,
        /// What is wrong, with the legal values.
        message: String,
    },
    /// A target that this is not.
    #[error("{0}")]
    Target(String),
    /// A mistake of the compiler itself.
    #[error("internal error: {0}; please report it with the input")]
    Internal(String),
}

/// Where it is wrong, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Name of the input, as the user gave it.
    pub file: Option<Arc<str>>,
    /// Line in that input, from 1.
    pub line: Option<u32>,
    /// Column in that line, from 1, where a front end's table of places has it; 0 is unknown. [`Error::column`] knows
    /// it of texts too.
    pub column: u32,
    /// What stands in that line.
    pub text: Option<Box<str>>,
    /// Name of the function as CLIF writes it: `%name` or `u0:1`.
    pub function: Option<Box<str>>,
    /// The operation at fault, in CLIF's or the machine's spelling.
    pub opcode: Option<Box<str>>,
    /// Controlling type of the operation.
    pub ty: Option<Type>,
}

impl Place {
    /// The place of `inst` in `func`: function name, opcode, controlling type, and the line from its source location.
    pub fn of_inst(func: &Function, inst: Inst) -> Self {
        let opcode = func.dfg.insts[inst].opcode();
        let ty = func.dfg.ctrl_typevar(inst);
        Self {
            file: None,
            line: line_of(func.srcloc(inst)),
            column: 0,
            text: None,
            function: Some(func.name.to_string().into()),
            opcode: Some(opcode.to_string().into()),
            ty: (!ty.is_invalid()).then_some(ty),
        }
    }

    /// The place of a whole function.
    pub fn of_function(func: &Function) -> Self {
        Self {
            function: Some(func.name.to_string().into()),
            ..Self::default()
        }
    }

    /// The same place in the named file.
    pub fn in_file(mut self, file: &Arc<str>) -> Self {
        self.file = Some(file.clone());
        self
    }

    /// The same place on another line.
    pub fn at_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }

    /// `OPCODE.TYPE`, or as much of it as is known.
    pub fn operation(&self) -> Option<String> {
        let opcode = self.opcode.as_ref()?;
        Some(match self.ty {
            Some(ty) => format!("{opcode}.{ty}"),
            None => opcode.to_string(),
        })
    }
}

/// The line that a source location stands for: locations are line numbers wherever the text had none of its own.
pub fn line_of(location: SourceLoc) -> Option<u32> {
    (!location.is_default()).then(|| location.bits())
}

/// One error with its place. Prints as `FILE:LINE: PROBLEM (in function NAME)`, also as `Debug`, which is what `main`
/// and `unwrap` show.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub problem: Problem,
    /// Where.
    pub place: Place,
}

impl Error {
    /// An error at `place`.
    pub fn new(problem: Problem, place: Place) -> Self {
        Self { problem, place }
    }

    /// "This back end does not translate the operation at `place`", with what to do instead.
    pub fn unsupported(place: Place, remedy: impl Into<String>) -> Self {
        let item = place
            .operation()
            .unwrap_or_else(|| "this function".to_owned());
        Self {
            problem: Problem::Unsupported {
                item,
                remedy: remedy.into(),
            },
            place,
        }
    }

    /// The same error in the named file, unless it names one already.
    pub fn in_file(mut self, file: &Arc<str>) -> Self {
        self.place.file.get_or_insert_with(|| file.clone());
        self
    }

    /// The same error on `line`, unless it has a line already.
    pub fn or_at_line(mut self, line: u32) -> Self {
        self.place.line.get_or_insert(line);
        self
    }

    /// Column in the line, from 1 and in characters: what the place says, or where the carets of [`Error::excerpt`]
    /// begin. Cranelift's reader says of a mistake only in which line it is: that is then the first character that is
    /// not blank.
    pub fn column(&self) -> Option<u32> {
        let shown = || Some(self.shown()?.1 as u32 + 1);
        match self.place.column {
            0 => shown(),
            column => Some(column),
        }
    }

    /// The line of the text and carets under the operation, or under all of the line where no operation is to blame;
    /// none where the text is not known.
    pub fn excerpt(&self) -> Option<String> {
        let line = self.place.line?;
        let (text, column, marked) = self.shown()?;
        let [text, carets] = excerpt(text, column, marked);
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        Some(format!(" {number} | {text}\n {margin} | {carets}"))
    }

    /// The line of the text, and what of it is marked: characters before it, and its own.
    fn shown(&self) -> Option<(&str, usize, usize)> {
        let text = self.place.text.as_deref()?;
        let start = match &self.place.opcode {
            // A text with source locations of its own has other lines than those.
            Some(opcode) => word_at(text, opcode)?,
            None => text.len() - text.trim_start().len(),
        };
        let marked = match &self.place.opcode {
            Some(opcode) => opcode.chars().count(),
            None => text.split(';').next()?.trim().chars().count().max(1),
        };
        Some((text, text[..start].chars().count(), marked))
    }

    /// True for a correct input that the back end does not translate; a test runner skips rather than fails on it.
    pub fn is_unsupported(&self) -> bool {
        matches!(self.problem, Problem::Unsupported { .. })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place {
            file, line, column, ..
        } = &self.place;
        match (file, line, column) {
            (Some(file), Some(line), 0) => write!(f, "{file}:{line}: ")?,
            (Some(file), Some(line), column) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), None, _) => write!(f, "{file}: ")?,
            (None, Some(line), 0) => write!(f, "line {line}: ")?,
            (None, Some(line), column) => write!(f, "line {line}, column {column}: ")?,
            (None, None, _) => {}
        }
        write!(f, "{}", self.problem)?;
        if let Some(function) = &self.place.function {
            write!(f, " (in function {function})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// It has no source: its text says everything.
impl std::error::Error for Error {}

/// One or more errors, in the order of the input. Prints one per line, with [`Error::excerpt`] below it, also as
/// `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// The errors, at least one.
    pub fn as_slice(&self) -> &[Error] {
        &self.0
    }

    /// The errors in their order.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }

    /// The errors with what stands in their lines of `text`.
    pub fn with_text(mut self, text: &str) -> Self {
        let lines: Vec<&str> = text.lines().collect();
        for error in &mut self.0 {
            let index = error.place.line.map(|line| line.saturating_sub(1) as usize);
            if let Some(line) = index.and_then(|index| lines.get(index)) {
                error.place.text = Some((*line).into());
            }
        }
        self
    }

    /// The errors in the named file; those that name a file keep it.
    pub fn in_file(self, file: &Arc<str>) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|error| error.in_file(file))
                .collect(),
        )
    }

    /// The same errors; those in the function `from` are in `to`, which is what the embedding calls it.
    #[cfg(feature = "module")]
    pub(crate) fn in_function(mut self, from: &str, to: &str) -> Self {
        for error in &mut self.0 {
            let function = &mut error.place.function;
            if function.as_deref() == Some(from) {
                *function = Some(format!("%{to}").into());
            }
        }
        self
    }

    /// The same errors; those without a line get `line`.
    pub fn or_at_line(self, line: u32) -> Self {
        Self(
            self.0
                .into_iter()
                .map(|error| error.or_at_line(line))
                .collect(),
        )
    }

    /// The same errors with what their lines stand for, where those are numbers of a table.
    pub(crate) fn located(self, locations: &Locations) -> Self {
        if !locations.is_table() {
            return self;
        }
        let locate = |mut error: Error| {
            if let Some(number) = error.place.line {
                let location = locations.resolve(number);
                error.place.line = (location.line != 0).then_some(location.line);
                error.place.column = location.column;
                let file = locations.file_name(location.file).map(Arc::from);
                error.place.file = error.place.file.or(file);
            }
            error
        };
        Self(self.0.into_iter().map(locate).collect())
    }

    /// True if nothing but unsupported items is wrong.
    pub fn only_unsupported(&self) -> bool {
        self.0.iter().all(Error::is_unsupported)
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
            if let Some(excerpt) = error.excerpt() {
                write!(f, "\n{excerpt}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// They have no source: their text says everything.
impl std::error::Error for Errors {}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Gathers errors while a stage goes on; equal ones are kept once.
#[derive(Clone, Debug, Default)]
pub struct ErrorList(Vec<Error>);

impl ErrorList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an error unless it is there already.
    pub fn push(&mut self, error: Error) {
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// Adds all errors of another stage.
    pub fn extend(&mut self, errors: impl IntoIterator<Item = Error>) {
        errors.into_iter().for_each(|error| self.push(error));
    }

    /// The same errors by their lines; those without a line come first.
    pub fn in_order_of_lines(mut self) -> Self {
        self.0.sort_by_key(|error| error.place.line);
        self
    }

    /// True if nothing went wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` if nothing went wrong.
    ///
    /// # Errors
    /// The gathered errors, if there are any.
    pub fn finish<T>(self, value: T) -> Result<T, Errors> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(Errors(self.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_codegen::ir::types;

    fn place() -> Place {
        Place {
            file: Some("k.clif".into()),
            line: Some(7),
            column: 0,
            text: None,
            function: Some("%f".into()),
            opcode: Some("fma".into()),
            ty: Some(types::F128),
        }
    }

    #[test]
    fn an_error_prints_its_place_and_what_to_do() {
        let error = Error::unsupported(place(), "use f64");
        assert_eq!(
            error.to_string(),
            "k.clif:7: unsupported: fma.f128: use f64 (in function %f)"
        );
        let bare = Error::new(
            Problem::Kernel("it returns a value".into()),
            Place::default().at_line(3),
        );
        assert_eq!(bare.to_string(), "line 3: kernel: it returns a value");
        assert_eq!(bare.column(), None);
        let mut located = error;
        located.place.column = 12;
        assert!(located.to_string().starts_with("k.clif:7:12: unsupported"));
        assert_eq!(located.column(), Some(12));
    }

    #[test]
    fn a_list_keeps_the_order_and_drops_repetitions() {
        let mut list = ErrorList::new();
        list.push(Error::unsupported(place().at_line(9), "use f64"));
        list.push(Error::unsupported(place(), "use f64"));
        list.push(Error::unsupported(place(), "use f64"));
        let errors = list.finish(()).unwrap_err();
        assert!(errors.only_unsupported());
        assert_eq!(
            errors.to_string(),
            "k.clif:9: unsupported: fma.f128: use f64 (in function %f)\n\
             k.clif:7: unsupported: fma.f128: use f64 (in function %f)"
        );
        assert_eq!(ErrorList::new().finish(1), Ok(1));
        assert_eq!(errors.iter().count(), (&errors).into_iter().count());
    }

    #[test]
    fn a_list_shows_the_lines_of_a_known_text() {
        let text = ["; é", "    v2 = fma v0, v1  ; fma"].join("\n");
        let error = Error::unsupported(place().at_line(2), "use f64");
        let errors = Errors::from(error.clone()).with_text(&text);
        assert_eq!(
            errors.to_string(),
            format!("{error}\n 2 |     v2 = fma v0, v1  ; fma\n   |          ^^^")
        );
        assert_eq!(errors.as_slice()[0].column(), Some(10));
        // The operation is not there: the line is one of another text.
        let elsewhere = Errors::from(Error::unsupported(place().at_line(1), "use f64"));
        assert_eq!(
            elsewhere.clone().with_text(&text).to_string(),
            elsewhere.to_string()
        );
        let whole = Error::new(Problem::Syntax("no".into()), Place::default().at_line(2));
        let whole = Errors::from(whole).with_text(&text);
        assert_eq!(whole.as_slice()[0].column(), Some(5));
        let whole = whole.to_string();
        assert!(whole.ends_with("  |     ^^^^^^^^^^^^^^^"), "{whole}");
    }
}
