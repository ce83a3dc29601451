//! Where a client counts lines and columns from: it says so with `initialize`; the debugger counts from 1.

use serde_json::Value;

/// The numbers of a client's first line and first column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    line: u32,
    column: u32,
}

impl Default for Origin {
    /// What the protocol takes a client for that does not say it.
    fn default() -> Origin {
        Origin { line: 1, column: 1 }
    }
}

impl Origin {
    /// As the arguments of `initialize` say.
    pub fn asked(arguments: &Value) -> Origin {
        let first = |name: &str| u32::from(arguments[name].as_bool().unwrap_or(true));
        Origin {
            line: first("linesStartAt1"),
            column: first("columnsStartAt1"),
        }
    }

    /// The client's number of a line; 0, which is none, stays.
    pub fn line(self, line: u32) -> u32 {
        (line + self.line).saturating_sub(1)
    }

    /// The client's number of a column; 0, which is none, stays.
    pub fn column(self, column: u32) -> u32 {
        (column + self.column).saturating_sub(1)
    }

    /// The line of a client's number.
    ///
    /// # Errors
    /// A number that is none of a line, in words.
    pub fn line_of(self, number: &Value) -> Result<u32, String> {
        let number = number.as_u64().ok_or("no line")?;
        let line = u32::try_from(number).ok();
        let line = line.and_then(|line| line.checked_add(1 - self.line));
        line.filter(|&line| line > 0)
            .ok_or_else(|| format!("there is no line {number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;
    use serde_json::json;

    #[test]
    fn lines_are_counted_from_where_the_client_does() {
        let origins = [(json!({}), 1), (json!({"linesStartAt1": false}), 0)];
        for (arguments, first) in origins {
            let origin = Origin::asked(&arguments);
            for line in [1, 7] {
                let number = line - 1 + first;
                assert_eq!(origin.line(line), number);
                assert_eq!(origin.line_of(&number.into()), Ok(line));
            }
            assert_eq!(origin.line(0), 0, "of code without a line");
            assert_eq!((origin.column(0), origin.column(3)), (0, 3));
        }
        let zero = Origin::asked(&json!({"columnsStartAt1": false}));
        assert_eq!((zero.column(0), zero.column(3)), (0, 2));
        for wrong in [json!(0), json!(-1), json!("x"), json!(1u64 << 32)] {
            assert!(Origin::default().line_of(&wrong).is_err(), "{wrong}");
        }
    }
}
