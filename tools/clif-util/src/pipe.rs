//! Streams whose reader may have gone: a closed pipe is no failure.

use std::io::{ErrorKind, Write};

/// A stream that somebody reads, or no longer: what is written then goes nowhere, and the command ends as it would
/// with a reader.
pub struct Heard<W> {
    stream: W,
    /// Whether nobody reads it any more.
    is_closed: bool,
}

impl<W> Heard<W> {
    /// Of this stream.
    pub fn new(stream: W) -> Self {
        let is_closed = false;
        Self { stream, is_closed }
    }

    /// Whether nobody reads it any more.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What came of writing; `without` where nobody reads.
    fn done<T>(&mut self, result: std::io::Result<T>, without: T) -> std::io::Result<T> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(without)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Heard<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.is_closed {
            return Ok(bytes.len());
        }
        let written = self.stream.write(bytes);
        self.done(written, bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if self.is_closed {
            return Ok(());
        }
        let flushed = self.stream.flush();
        self.done(flushed, ())
    }
}
