//! Messages on a stream: a header with their length, and JSON.

use serde::Deserialize;
use serde_json::Value;
use std::io::{BufRead, Read, Write};

/// Longest message that is read (assigned): a client that sends more is broken.
const LONGEST: usize = 64 << 20;
/// Longest line of a header (assigned).
const LONGEST_LINE: u64 = 4096;

/// What a client asks for.
#[derive(Clone, Debug, Deserialize)]
pub struct Request {
    /// Its number.
    pub seq: i64,
    /// What.
    pub command: String,
    /// With what.
    #[serde(default)]
    pub arguments: Value,
}

/// A message from a client.
#[derive(Debug)]
pub enum Incoming {
    /// A request.
    Request(Request),
    /// Something else, and its number if it has one.
    Malformed(i64, String),
}

/// The messages of a stream.
pub struct Reader<R> {
    input: R,
    /// Where the next message begins is not known any more.
    is_lost: bool,
}

impl<R: BufRead> Reader<R> {
    /// From the beginning of the stream.
    pub fn new(input: R) -> Self {
        Self {
            input,
            is_lost: false,
        }
    }

    /// The next message; none at the end, and behind a header without a length.
    pub fn message(&mut self) -> Option<Incoming> {
        let mut length = None;
        while !self.is_lost {
            let mut line = Vec::new();
            let limited = &mut self.input.by_ref().take(LONGEST_LINE);
            if limited.read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim();
            if line.is_empty() {
                // The end of a header; without a length it was a stray line.
                match length {
                    Some(length) => return self.body(length),
                    None => continue,
                }
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("Content-Length")
            {
                match value.trim().parse::<usize>() {
                    Ok(value) if value <= LONGEST => length = Some(value),
                    _ => {
                        self.is_lost = true;
                        return Some(Incoming::Malformed(0, format!("no length: {line}")));
                    }
                }
            }
        }
        None
    }

    fn body(&mut self, length: usize) -> Option<Incoming> {
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes).ok()?;
        let value: Value = match serde_json::from_slice(&bytes) {
            Ok(value) => value,
            Err(error) => return Some(Incoming::Malformed(0, format!("no JSON: {error}"))),
        };
        let seq = value["seq"].as_i64().unwrap_or(0);
        if value["type"] != "request" {
            let text = format!("not a request: {}", value["type"]);
            return Some(Incoming::Malformed(seq, text));
        }
        Some(match serde_json::from_value(value) {
            Ok(request) => Incoming::Request(request),
            Err(error) => Incoming::Malformed(seq, format!("no request: {error}")),
        })
    }
}

/// Writes a message.
///
/// # Errors
/// When nobody reads it.
pub fn write_message(output: &mut impl Write, message: &Value) -> std::io::Result<()> {
    let text = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut reader = Reader::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(message) = reader.message() {
            found.push(match message {
                Incoming::Request(request) => request.command,
                Incoming::Malformed(seq, text) => format!("{seq}: {text}"),
            });
        }
        found
    }

    #[test]
    fn messages_are_read_until_the_end() {
        let body = r#"{"seq":1,"type":"request","command":"threads"}"#;
        let whole = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        assert_eq!(read(&format!("{whole}{whole}")), ["threads", "threads"]);
        assert_eq!(read(&whole[..whole.len() - 1]), [""; 0], "cut off");
    }

    #[test]
    fn what_is_malformed_is_told() {
        let told = read("Content-Length: 2\r\n\r\n{]");
        assert!(told[0].starts_with("0: no JSON"), "{told:?}");
        // Where the next message begins nobody knows.
        let told = read("Content-Length: x\r\n\r\n{}Content-Length: 2\r\n\r\n{]");
        assert!(
            told.len() == 1 && told[0].starts_with("0: no length"),
            "{told:?}"
        );
        let event = r#"{"seq":7,"type":"event"}"#;
        let told = read(&format!("Content-Length: {}\r\n\r\n{event}", event.len()));
        assert!(told[0].starts_with("7: not a request"), "{told:?}");
    }
}
