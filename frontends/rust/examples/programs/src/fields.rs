//! A field of many JSON records.

use thisgpu_gpu::*;

/// Walks over a record.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

#[derive(Debug)]
enum Bad {
    End,
    Unexpected(u8),
    Number(core::num::ParseIntError),
    Text(core::str::Utf8Error),
}

impl From<core::num::ParseIntError> for Bad {
    fn from(error: core::num::ParseIntError) -> Bad {
        Bad::Number(error)
    }
}

impl From<core::str::Utf8Error> for Bad {
    fn from(error: core::str::Utf8Error) -> Bad {
        Bad::Text(error)
    }
}

impl<'a> Reader<'a> {
    fn space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<u8, Bad> {
        self.space();
        let byte = *self.text.get(self.at).ok_or(Bad::End)?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Bad> {
        match self.next()? {
            found if found == wanted => Ok(()),
            found => Err(Bad::Unexpected(found)),
        }
    }

    fn string(&mut self) -> Result<&'a str, Bad> {
        self.expect(b'"')?;
        let start = self.at;
        loop {
            match self.text.get(self.at).ok_or(Bad::End)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(core::str::from_utf8(&self.text[start..self.at - 1])?)
    }

    /// Steps over a value; its text.
    fn value(&mut self) -> Result<&'a [u8], Bad> {
        self.space();
        let start = self.at;
        match self.next()? {
            b'"' => {
                self.at -= 1;
                self.string()?;
            }
            open @ (b'{' | b'[') => {
                let close = if open == b'{' { b'}' } else { b']' };
                loop {
                    match self.next()? {
                        byte if byte == close => break,
                        b',' | b':' => {}
                        _ => {
                            self.at -= 1;
                            self.value()?;
                        }
                    }
                }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                let is_part =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
                while self.text.get(self.at).is_some_and(is_part) {
                    self.at += 1;
                }
            }
            other => return Err(Bad::Unexpected(other)),
        }
        Ok(&self.text[start..self.at])
    }

    fn field(&mut self, wanted: &str) -> Result<Option<i64>, Bad> {
        self.expect(b'{')?;
        let mut found = None;
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            let value = self.value()?;
            if name == wanted {
                found = Some(core::str::from_utf8(value)?.trim().parse::<i64>()?);
            }
            match self.next()? {
                b',' => {}
                b'}' => return Ok(found),
                other => return Err(Bad::Unexpected(other)),
            }
        }
    }
}

/// `"price"` of each record, which begin at `starts`; what is wrong is a negative number.
#[kernel]
pub fn prices(text: &[u8], starts: &[u32], mut out: DisjointMut<i64>) {
    let i = thread::global_id();
    let Some(out) = out.thread_mut() else { return };
    let record = &text[starts[i] as usize..starts[i + 1] as usize];
    *out = match (Reader {
        text: record,
        at: 0,
    })
    .field("price")
    {
        Ok(Some(price)) => price,
        Ok(None) => -1,
        Err(Bad::End) => -2,
        Err(Bad::Unexpected(byte)) => -1000 - i64::from(byte),
        Err(Bad::Number(error)) => match error.kind() {
            core::num::IntErrorKind::PosOverflow => -3,
            _ => -4,
        },
        Err(Bad::Text(error)) => -10 - error.valid_up_to() as i64,
    };
}
