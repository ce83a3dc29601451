//! Files to read and write; `-` is standard input or output.

use crate::messages::Usage;
use crate::pipe::Heard;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Display;
use std::fs::{File, Metadata};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// Most bytes of a text or an object: a device that never ends must not fill memory (assigned).
const MOST_BYTES: u64 = 256 << 20;

/// What a message says when standard output cannot be written.
const STANDARD_OUTPUT: &str = "cannot write standard output";

/// The file's name for messages.
pub fn name(path: &Path) -> String {
    if is_standard(path) {
        "<stdin>".to_string()
    } else {
        path.display().to_string()
    }
}

/// Whether the path is `-`.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The contents of a file.
///
/// # Errors
/// When it cannot be read, or holds more than [`MOST_BYTES`].
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    bytes_up_to(MOST_BYTES, path)
}

/// The contents of a file that may hold so many bytes.
pub fn bytes_up_to(most: u64, path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(most + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {}", name(path)))?;
    ensure!(
        bytes.len() as u64 <= most,
        "{} has more than {most} bytes",
        name(path)
    );
    Ok(bytes)
}

/// The contents of a text file.
pub fn text(path: &Path) -> Result<String> {
    text_of(&name(path), bytes(path)?)
}

/// The text that bytes are; `name` is their file's.
pub fn text_of(name: &str, bytes: Vec<u8>) -> Result<String> {
    thisgpu_filetests::text_of(name, bytes).map_err(anyhow::Error::msg)
}

/// The file, to be read line by line.
pub fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>> {
    if is_standard(path) {
        let stdin = Box::new(std::io::stdin().lock());
        return Ok(BufReader::with_capacity(1 << 16, stdin));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 16, Box::new(file)))
}

/// Refuses a list of files that standard input is in twice: the second would be empty.
///
/// # Errors
/// [`Usage`].
pub fn check_inputs<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    if files.into_iter().filter(|file| is_standard(file)).count() > 1 {
        bail!(Usage(
            "`-`, standard input, can be read once only".to_owned()
        ));
    }
    Ok(())
}

/// Refuses an output that is an input, by whatever name, or the same as another output.
///
/// # Errors
/// [`Usage`].
pub fn check_output<'a>(
    option: &str,
    output: &Path,
    others: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<()> {
    let same = others.into_iter().find(|other| is_same_file(output, other));
    if let Some(other) = same {
        let (output, other) = (output.display(), other.display());
        bail!(Usage(format!(
            "{option} {output} would overwrite {other}; write to another file"
        )));
    }
    Ok(())
}

/// Whether two paths name one regular file. What does not exist is compared by its name.
fn is_same_file(a: &Path, b: &Path) -> bool {
    if is_standard(a) || is_standard(b) {
        return false;
    }
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(first), Ok(second)) => {
            first.is_file()
                && (is_same_inode(&first, &second)
                    || a.canonicalize().ok() == b.canonicalize().ok())
        }
        (Err(_), Err(_)) => a == b,
        _ => false,
    }
}

#[cfg(unix)]
fn is_same_inode(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same_inode(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Prints a line on standard output.
pub fn print_line(line: impl Display) -> Result<()> {
    writeln!(Heard::new(std::io::stdout().lock()), "{line}").context(STANDARD_OUTPUT)
}

/// Writes a file as a whole or not at all: a failure leaves what was there before.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if is_standard(path) {
        let mut out = Heard::new(std::io::stdout().lock());
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return written.context(STANDARD_OUTPUT);
    }
    let cannot = || format!("cannot write {}", path.display());
    // Devices and pipes are not replaced.
    if std::fs::metadata(path).is_ok_and(|data| !data.is_file()) {
        return std::fs::write(path, bytes).with_context(cannot);
    }
    // A link stays a link, one that leads nowhere too.
    let target = match (path.canonicalize(), path.is_symlink()) {
        (Ok(target), _) => target,
        (Err(_), true) => return std::fs::write(path, bytes).with_context(cannot),
        (Err(_), false) => path.to_owned(),
    };
    let mut name = target
        .file_name()
        .with_context(|| format!("`{}` names no file", path.display()))?
        .to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = target.with_file_name(name);
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &target));
    if written.is_err() {
        // What cannot be removed was never made.
        let _ = std::fs::remove_file(&temporary);
    }
    written.with_context(cannot)
}
