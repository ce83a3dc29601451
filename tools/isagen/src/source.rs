//! Source texts and places in them.

use std::path::Path;

/// A byte range in one of the files of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Index of the file.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of this one to the end of `other`, in the same file.
    pub fn to(self, other: Span) -> Span {
        Span {
            end: other.end.max(self.end),
            ..self
        }
    }
}

/// One text and the name it is reported under.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Shown in messages.
    pub name: String,
    /// All of it.
    pub text: String,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The texts a machine is read from.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a text, without the byte order mark it may begin with, and returns its index.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u32 {
        let mut text = text.into();
        // Behind the mark the first line would not begin with `__Def`, and its definition would pass for prose.
        if text.starts_with(BYTE_ORDER_MARK) {
            text.drain(..BYTE_ORDER_MARK.len_utf8());
        }
        self.files.push(SourceFile {
            name: name.into(),
            text,
        });
        (self.files.len() - 1) as u32
    }

    /// Reads a file, or the description files below a folder ([`crate::description_files`]). Bytes that are no UTF-8
    /// are replaced.
    ///
    /// # Errors
    /// When a file or folder cannot be read.
    pub fn read(&mut self, path: &Path) -> std::io::Result<()> {
        let files = if path.is_dir() {
            crate::description_files(path)?
        } else {
            vec![path.to_owned()]
        };
        for file in files {
            let bytes = std::fs::read(&file)?;
            self.add(file.display().to_string(), String::from_utf8_lossy(&bytes));
        }
        Ok(())
    }

    /// The file of index `file`.
    ///
    /// # Panics
    /// When no file has this index.
    pub fn file(&self, file: u32) -> &SourceFile {
        &self.files[file as usize]
    }

    /// All files in the order they were added.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Line and column, from 1, of a span's start.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let text = &self.file(span.file).text;
        let before = &text[..(span.start as usize).min(text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        (line, column)
    }
}
