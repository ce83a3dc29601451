//! The functions on the host: for each input of the standard input, a line with the function's name and its result.

use std::io::{self, BufRead, BufWriter, Write};

fn main() -> io::Result<()> {
    let inputs = io::stdin()
        .lock()
        .lines()
        .map(|line| line.and_then(|line| line.trim().parse::<u64>().map_err(io::Error::other)));
    let inputs = inputs.collect::<io::Result<Vec<u64>>>()?;
    let mut out = BufWriter::new(io::stdout().lock());
    for (name, function) in registry::FUNCTIONS.iter().copied().flatten() {
        for input in &inputs {
            writeln!(out, "{name} {}", function(*input))?;
        }
    }
    out.flush()
}
