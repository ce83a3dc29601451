//! Memory and code, as a client reads them.

use super::server::{Answer, Server, data};
use crate::operand::number;
use cranelift_thisgpu::sim::debug::Space;
use serde_json::{Value, json};

/// Bytes of an instruction.
const WORD: u32 = 16;

impl Server {
    pub(super) fn read_memory(&self, arguments: &Value) -> Answer {
        let reference = arguments["memoryReference"]
            .as_str()
            .ok_or("no reference")?;
        let offset = arguments["offset"].as_i64().unwrap_or(0);
        let count = arguments["count"].as_u64().ok_or("no count")?.min(1 << 20) as usize;
        let thread = self.debugger.thread;
        let (space, address) = match reference.split_once(' ') {
            Some((space, address)) => {
                let (space, address, _) = data(&format!("{space} {address} 1"), thread)?;
                (space, address)
            }
            None => (Space::Global, number(reference)?),
        };
        let address = address
            .checked_add_signed(offset)
            .ok_or("no such address")?;
        // What is there of it: a client asks for whole pages.
        let read = |count: usize| self.debugger.session.read(space, address, count);
        let bytes = match read(count) {
            Ok(bytes) => bytes,
            Err(error) => {
                let (mut least, mut most) = (0, count);
                while most - least > 1 {
                    let middle = least + (most - least) / 2;
                    match read(middle) {
                        Ok(_) => least = middle,
                        Err(_) => most = middle,
                    }
                }
                if least == 0 {
                    return Err(error);
                }
                read(least)?
            }
        };
        let unreadable = count - bytes.len();
        let address = format!("{address:#x}");
        Ok(json!({"address": address, "data": base64(&bytes), "unreadableBytes": unreadable}))
    }

    pub(super) fn disassemble(&self, arguments: &Value) -> Answer {
        let reference = arguments["memoryReference"]
            .as_str()
            .ok_or("no reference")?;
        let count = arguments["instructionCount"]
            .as_u64()
            .ok_or("no count")?
            .min(1 << 16);
        let by_bytes = arguments["offset"].as_i64().unwrap_or(0);
        let by_words = arguments["instructionOffset"].as_i64().unwrap_or(0);
        let start = i64::try_from(number(reference)?).map_err(|_| "no such address")?;
        let start = start.saturating_add(by_bytes) / i64::from(WORD);
        let start = start.saturating_add(by_words);
        let session = &self.debugger.session;
        let instruction = |index: i64| {
            let address = index
                .checked_mul(WORD.into())
                .and_then(|a| u32::try_from(a).ok());
            let code = address
                .map(|address| session.disassemble(address, 1))
                .unwrap_or_default();
            // A client asks for as many as it shows, wherever code ends.
            let Some((address, text)) = code.into_iter().next() else {
                let address = format!("{:#x}", index.max(0).saturating_mul(WORD.into()));
                return json!({"address": address, "instruction": "", "presentationHint": "invalid"});
            };
            let line = session
                .image()
                .line_at(address)
                .map(|line| line.location.line);
            let mut shown = json!({"address": format!("{address:#x}"), "instruction": text});
            if let Some(line) = line {
                shown["line"] = self.origin.line(line).into();
            }
            shown
        };
        let all: Vec<Value> = (0..count as i64)
            .map(|i| instruction(start.saturating_add(i)))
            .collect();
        Ok(json!({"instructions": all}))
    }
}

/// Bytes in base 64 (RFC 4648), as the protocol has them.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let mut bits = [0; 3];
        bits[..part.len()].copy_from_slice(part);
        let bits = bits
            .iter()
            .fold(0u32, |all, &byte| all << 8 | u32::from(byte));
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 63;
            let shown = digit <= part.len();
            text.push(if shown {
                char::from(DIGITS[index as usize])
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_base_64() {
        let texts =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(texts, expected);
    }
}
