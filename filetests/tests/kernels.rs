//! The kernels of `filetests/kernels` against references on the host, with both allocators, in both modes of the simulator, without hazards.

use cranelift_thisgpu::settings::Algorithm;
use cranelift_thisgpu::settings::{Options, Unroll};
use libtest_mimic::{Arguments, Trial};
use thisgpu_filetests::kernels::{self, Example};

fn main() {
    let mut trials = vec![Trial::test("loops_need_no_copies", || {
        loops_need_no_copies();
        Ok(())
    })];
    for example in kernels::ALL {
        for algorithm in [Algorithm::Backtracking, Algorithm::SinglePass] {
            let name = format!("{} {algorithm:?}", example.name);
            trials.push(Trial::test(name, move || {
                let code = compile(&example, algorithm);
                for timed in [false, true] {
                    kernels::run(&example, &code, timed).map_err(|failure| failure.to_string())?;
                }
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn compile(example: &Example, algorithm: Algorithm) -> cranelift_thisgpu::compile::Code {
    let options = Options {
        regalloc_algorithm: Some(algorithm),
        ..Options::default()
    };
    example
        .compile(&options)
        .unwrap_or_else(|errors| panic!("{errors}"))
}

/// What loops carry from one iteration to the next stays where it is, and what is stored together at the end stands together: no loop is
/// longer than its work, nothing is copied behind it. Loops are as they are written, not unrolled.
fn loops_need_no_copies() {
    let options = Options {
        unroll: Unroll::Off,
        ..Options::default()
    };
    let lengths = |name: &str| {
        let example = kernels::ALL.iter().find(|e| e.name == name).unwrap();
        let code = (example.compile(&options)).unwrap_or_else(|errors| panic!("{errors}"));
        let kernel = code.kernels().iter().find(|k| k.name == name).unwrap();
        (kernel.instructions, kernel.loops.clone())
    };
    let (_, loops) = lengths("i64_loop");
    assert!(loops[0] <= 9, "{loops:?}");
    let (_, loops) = lengths("softmax");
    assert!(
        loops[0] <= 7 && loops[1] <= 12 && loops[2] <= 9,
        "{loops:?}"
    );
    let (instructions, loops) = lengths("matmul_rt8x8");
    assert!(instructions <= 656, "{instructions}");
    assert!(loops[0] <= 567, "{loops:?}");
}
