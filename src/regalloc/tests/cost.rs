//! What the check costs, by the size of the function.

use super::generate::{self, Shape};
use super::plain;
use crate::regalloc::{Options, Path, Scratch, check, finish, fit};
use std::time::Instant;

/// Functions of 1,250 to 40,000 instructions; the time an instruction must not grow with the function. Run with `THISGPU_HEAVY=1`.
#[test]
fn check_is_linear() {
    if std::env::var_os("THISGPU_HEAVY").is_none_or(|v| v != "1") {
        return;
    }
    let options = Options {
        path: Path::Direct,
        gpr_limit: 64,
        verify: true,
    };
    let mut scratch = Scratch::default();
    let mut each = Vec::new();
    for size in [1250, 2500, 5000, 10000, 20000, 40000] {
        let shape = Shape {
            device: true,
            control: 30,
            guarded: 10,
            wide: 10,
            ..plain(size, 80)
        };
        let code = generate::function(1, &shape);
        let start = Instant::now();
        let constrained = fit(code.clone(), &options, &mut scratch).expect("a colouring");
        let (after, _, origin) = finish(&constrained, &scratch.colouring, None);
        let allocated = start.elapsed();
        let start = Instant::now();
        let origin = origin.expect("recorded");
        check::check(&code, &after, &origin, options.gpr_limit).expect("right");
        let checked = start.elapsed();
        let count = after.insts.len();
        println!(
            "{count} instructions, {} blocks: allocated in {allocated:?}, checked in {checked:?}",
            after.blocks.len()
        );
        each.push(checked.as_secs_f64() / count as f64);
    }
    assert!(each[4] < 4.0 * each[1], "seconds an instruction: {each:?}");
}
