//! Truth tables of LOP3: functions of three bits as eight bits.

/// The tables that hand an input on: the rows of the table in which it is set. A function of a, b and c has the table
/// that it gives for these (document 002, LOP3).
pub const INPUTS: [u8; 3] = [0xf0, 0xcc, 0xaa];

/// The truth table when two inputs, the first of them in front of the second, change places: so do the rows in which
/// only one of them is set.
pub fn exchanged(table: u8, first: usize, second: usize) -> u8 {
    let only_first = INPUTS[first] & !INPUTS[second];
    let only_second = INPUTS[second] & !INPUTS[first];
    let distance = (4 >> first) - (4 >> second);
    table & !(only_first | only_second)
        | (table & only_first) >> distance
        | (table & only_second) << distance
}

/// The truth table with an input complemented: the rows in which it is set and the others change places.
pub fn complemented(table: u8, input: usize) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    (table & set) >> distance | (table & !set) << distance
}

/// The truth table when an input is known; it does not depend on it any more.
pub fn known(table: u8, input: usize, value: u8) -> u8 {
    let (set, distance) = (INPUTS[input], 4 >> input);
    match value {
        0 => table & !set | (table & !set) << distance,
        _ => table & set | (table & set) >> distance,
    }
}

/// Whether the value of an input makes a difference.
pub fn depends_on(table: u8, input: usize) -> bool {
    known(table, input, 0) != table
}

/// The input that the table only hands on.
pub fn only_input(table: u8) -> Option<usize> {
    INPUTS.iter().position(|&t| t == table)
}

/// A function over other inputs: the table of what `table` is when its inputs have these tables.
pub fn composed(table: u8, inputs: [u8; 3]) -> u8 {
    let row = |index: usize| {
        let input = |i: usize| match index >> (2 - i) & 1 {
            0 => !inputs[i],
            _ => inputs[i],
        };
        match table >> index & 1 {
            0 => 0,
            _ => input(0) & input(1) & input(2),
        }
    };
    (0..8).fold(0, |all, index| all | row(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's function on bits, as the document defines it.
    fn apply(table: u8, [a, b, c]: [u8; 3]) -> u8 {
        table >> (a << 2 | b << 1 | c) & 1
    }

    #[test]
    fn tables_exchange_and_complement() {
        for table in 0..=255u8 {
            for bits in 0..8u8 {
                let x = [bits >> 2 & 1, bits >> 1 & 1, bits & 1];
                for (first, second) in [(0, 1), (0, 2), (1, 2)] {
                    let mut moved = x;
                    moved.swap(first, second);
                    assert_eq!(
                        apply(exchanged(table, first, second), moved),
                        apply(table, x),
                        "{table:#x} {first} {second} {x:?}"
                    );
                }
                for input in 0..3 {
                    let mut z = x;
                    z[input] = 1;
                    assert_eq!(apply(known(table, input, 1), x), apply(table, z));
                    z[input] = 0;
                    assert_eq!(apply(known(table, input, 0), x), apply(table, z));
                    let mut y = x;
                    y[input] ^= 1;
                    assert_eq!(apply(complemented(table, input), y), apply(table, x));
                }
            }
        }
    }

    /// Composing with the inputs themselves changes nothing, with others is evaluating.
    #[test]
    fn composed_tables_are_functions_of_functions() {
        let value = |table: u8, row: usize| usize::from(table >> row & 1);
        for table in 0..=255u8 {
            assert_eq!(composed(table, INPUTS), table);
            for inputs in [[0x3c, 0xaa, 0x01], [0xff, 0x00, 0x96], [0xf0, 0xf0, 0xcc]] {
                let all = composed(table, inputs);
                for row in 0..8 {
                    let [a, b, c] = inputs.map(|input| value(input, row));
                    assert_eq!(value(all, row), value(table, a << 2 | b << 1 | c));
                }
            }
        }
    }
}
