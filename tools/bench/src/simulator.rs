//! How fast the simulator is: kernels with launches of many blocks, in thread-instructions a second.
//!
//! Every kernel is compiled once and launched in each mode, the fastest round counts. What it writes is the same in all
//! modes, which is checked, and so is how many instructions its threads execute. Arithmetic kernels hash the thread's
//! number in a loop, so that memory hardly counts. Beside that the same CLIF [on the host](crate::native): so many
//! instructions of the device a second are done there.

use crate::native::Native;
use anyhow::{Context, Result, bail};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::Ieee32;
use cranelift_thisgpu::compile::Compiler;
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::{SimConfig, Simd};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// The column of the host's own speed.
const HOST: &str = "host";
/// Threads of a block, but for the tiles.
const BLOCK: u32 = 256;

/// A kernel and its launch.
struct Load {
    name: &'static str,
    /// Name of the function.
    function: String,
    text: String,
    grid: Grid,
    /// Arguments in front of those buffers.
    scalars: Vec<Scalar>,
    /// Contents of the buffers whose addresses are the last arguments. The last buffer is the result.
    buffers: Vec<Vec<u32>>,
}

/// An argument that is no buffer.
#[derive(Clone, Copy)]
enum Scalar {
    I32(u32),
    I64(u64),
    F32(f32),
}

/// What to measure.
pub struct Wanted<'a> {
    /// Kernels whose name contains this.
    pub filter: &'a str,
    /// How to compile them.
    pub options: &'a Options,
    /// Launches in each mode.
    pub rounds: u32,
    /// Modes whose name contains this, all modes if that is nothing.
    pub mode: &'a str,
    /// Twice as many threads so many times.
    pub scale: u32,
}

/// Prints the table: thread-instructions a second of every kernel in every mode.
///
/// # Errors
/// A kernel that does not compile or faults, or modes that differ.
pub fn table(wanted: &Wanted) -> Result<()> {
    let Wanted {
        filter,
        options,
        rounds,
        mode,
        scale,
    } = *wanted;
    let functional = SimConfig {
        threads: 1,
        ..SimConfig::default()
    };
    let all = SimConfig::default();
    let any_order = SimConfig {
        deterministic: false,
        ..all
    };
    let [timed, check] = [(true, false), (false, true)].map(|(timed, check)| SimConfig {
        timed,
        check,
        ..functional
    });
    let check_all = SimConfig { check: true, ..all };
    let [narrow, portable] =
        [Simd::Avx2, Simd::Portable].map(|simd| SimConfig { simd, ..functional });
    let modes = [
        ("functional", functional),
        ("all cores", all),
        ("any order", any_order),
        ("timed", timed),
        ("check", check),
        ("check all", check_all),
        ("avx2", narrow),
        ("portable", portable),
    ];
    let modes: Vec<_> = (modes.into_iter())
        .filter(|(name, _)| name.contains(mode))
        .collect();
    let on_host = HOST.contains(mode);
    if modes.is_empty() {
        bail!("no mode of the simulator is called {mode}");
    }
    println!("thread-instructions a second, in millions; fastest of {rounds}");
    print!("{:<12} {:>10} {:>8}", "kernel", "million", "ms");
    modes.iter().for_each(|(name, _)| print!(" {name:>10}"));
    println!(
        "{}",
        if on_host {
            format!(" {HOST:>10}")
        } else {
            String::new()
        }
    );
    for load in loads(scale)?
        .iter()
        .filter(|load| load.name.contains(filter))
    {
        let rows = modes.iter();
        let rows = rows.map(|(_, config)| measure(load, options, *config, rounds));
        let rows = rows.collect::<Result<Vec<Row>>>()?;
        let first = &rows[0];
        if (rows.iter()).any(|row| (row.count, &row.result) != (first.count, &first.result)) {
            bail!("{}: the modes differ", load.name);
        }
        let million = first.count as f64 / 1e6;
        let ms = first.time.as_secs_f64() * 1e3;
        print!("{:<12} {million:>10.2} {ms:>8.2}", load.name);
        for row in &rows {
            print!(" {:>10.1}", million / row.time.as_secs_f64());
        }
        match measure_native(load, rounds, &first.result).context(load.name) {
            _ if !on_host => {}
            Ok(Some(time)) => print!(" {:>10.1}", million / time.as_secs_f64()),
            Ok(None) => print!(" {:>10}", "-"),
            Err(error) => return Err(error),
        }
        println!();
    }
    Ok(())
}

/// What the launches of a kernel in one mode came to.
struct Row {
    /// Thread-instructions of a launch.
    count: u64,
    /// The fastest.
    time: Duration,
    /// The last buffer after the first launch.
    result: Vec<u32>,
}

fn measure(load: &Load, options: &Options, config: SimConfig, rounds: u32) -> Result<Row> {
    let code = Compiler::new(options.clone()).compile_clif(&load.text)?;
    let device = Device::simulator(config);
    let kernel = device.load(&code)?.kernel(&load.function)?;
    let mut row = Row {
        count: 0,
        time: Duration::MAX,
        result: Vec::new(),
    };
    let buffers = load.buffers.iter().map(|values| device.upload(values));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    for round in 0..rounds.max(1) {
        let mut launch = kernel.launch(load.grid);
        for scalar in &load.scalars {
            launch = match *scalar {
                Scalar::I32(value) => launch.arg(value),
                Scalar::I64(value) => launch.arg(value),
                Scalar::F32(value) => launch.arg(value),
            };
        }
        for buffer in &buffers {
            launch = launch.arg(buffer);
        }
        let start = Instant::now();
        let report = launch.run()?;
        row.time = row.time.min(start.elapsed());
        row.count = report.stats.thread_instructions;
        if let (0, Some(last)) = (round, buffers.last()) {
            row.result = device.download(last)?;
        }
    }
    Ok(row)
}

/// The fastest run of a kernel on the host; none where threads need each other.
fn measure_native(load: &Load, rounds: u32, expected: &[u32]) -> Result<Option<Duration>> {
    let Some(native) = Native::new(&load.text)? else {
        return Ok(None);
    };
    let [blocks, ..] = load.grid.blocks;
    let [threads, ..] = load.grid.threads;
    let mut fastest = Duration::MAX;
    let mut buffers = load.buffers.clone();
    for round in 0..rounds.max(1) {
        let scalars = load.scalars.iter().map(|scalar| match *scalar {
            Scalar::I32(value) => DataValue::I32(value as i32),
            Scalar::I64(value) => DataValue::I64(value as i64),
            Scalar::F32(value) => DataValue::F32(Ieee32::with_float(value)),
        });
        let addresses = buffers.iter_mut().map(|buffer| buffer.as_mut_ptr() as i64);
        let arguments: Vec<DataValue> = scalars.chain(addresses.map(DataValue::I64)).collect();
        let start = Instant::now();
        native.run(&arguments, blocks, threads)?;
        fastest = fastest.min(start.elapsed());
        if round == 0 && buffers.last().is_some_and(|last| last != expected) {
            bail!("the host and the simulator differ");
        }
    }
    Ok(Some(fastest))
}

/// Reproducible words.
fn noise(count: u32) -> Vec<u32> {
    (0..count)
        .map(|i| i.wrapping_mul(0x9E37_79B9) ^ i >> 7)
        .collect()
}

/// The same numbers as floats between 0 and 1.
fn fractions(count: u32) -> Vec<u32> {
    let fraction = |bits: u32| ((bits >> 8) as f32 / (1 << 24) as f32).to_bits();
    noise(count).into_iter().map(fraction).collect()
}

fn loads(scale: u32) -> Result<Vec<Load>> {
    let n = (1u32 << 18) << scale;
    let each = Grid::for_elems(n, BLOCK);
    let size = 256u32;
    let kernel =
        |name: &'static str, function: &str, grid, scalars: &[Scalar], buffers| -> Result<Load> {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests/kernels");
            Ok(Load {
                name,
                function: function.to_owned(),
                text: std::fs::read_to_string(folder.join(format!("{function}.clif")))?,
                grid,
                scalars: scalars.to_vec(),
                buffers,
            })
        };
    let own = |name: &'static str, text: String| Load {
        name,
        function: name.to_owned(),
        text: with_constants(&text),
        grid: Grid::for_elems(n >> 4, BLOCK),
        scalars: Vec::new(),
        buffers: vec![vec![0; n as usize >> 4]],
    };
    let matrices = || {
        vec![
            fractions(size * size),
            fractions(size * size),
            vec![0; (size * size) as usize],
        ]
    };
    let tile = |edge: u32| Grid::new([size / edge, size / edge, 1], [8, 8, 1]);
    let indices: Vec<u32> = noise(n).into_iter().map(|x| x % (n / 64)).collect();
    let mut gather = kernel(
        "gather",
        "gather64",
        each,
        &[Scalar::I32(n)],
        vec![fractions(n), indices, fractions(n), vec![0; n as usize]],
    )?;
    gather.scalars.push(Scalar::I64(24));
    let small: Vec<u32> = noise(n / 8)
        .into_iter()
        .map(|x| x % (1 << 20) + 1)
        .collect();
    Ok(vec![
        kernel(
            "saxpy",
            "saxpy_f32",
            each,
            &[Scalar::I32(n), Scalar::F32(2.5)],
            vec![fractions(n), fractions(n)],
        )?,
        gather,
        kernel(
            "chacha_qr",
            "chacha_qr",
            each,
            &[Scalar::I32(n)],
            vec![noise(4 * n)],
        )?,
        own("chacha", chacha()),
        own("hash", looped("hash", "i32", 512, "i32", HASH)),
        kernel(
            "fmix64",
            "fmix64",
            each,
            &[Scalar::I32(n)],
            vec![noise(2 * n)],
        )?,
        own(
            "xoroshiro",
            looped("xoroshiro", "i64", 128, "i64", XOROSHIRO),
        ),
        kernel(
            "matmul8",
            "matmul8",
            tile(8),
            &[Scalar::I32(size)],
            matrices(),
        )?,
        kernel(
            "matmul8x8",
            "matmul_rt8x8",
            tile(64),
            &[Scalar::I32(size)],
            matrices(),
        )?,
        kernel(
            "collatz",
            "collatz",
            Grid::for_elems(n / 8, BLOCK),
            &[Scalar::I32(n / 8)],
            vec![small, vec![0; n as usize / 8]],
        )?,
        own("gcd", gcd()),
        own("counts", counts()),
    ])
}

/// Instructions `OP_imm.TYPE VALUE, NUMBER` as CLIF has them: the number is a value of its own.
fn with_constants(text: &str) -> String {
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let parts = line.split_once("_imm.").and_then(|(head, rest)| {
            let (ty, rest) = rest.split_once(' ')?;
            let (value, constant) = rest.split_once(", ")?;
            Some((head, ty, value, constant))
        });
        let _ = match parts {
            Some((head, ty, value, constant)) => {
                let name = 10_000 + number;
                writeln!(
                    out,
                    "    v{name} = iconst.{ty} {constant}\n{head} {value}, v{name}"
                )
            }
            None => writeln!(out, "{line}"),
        };
    }
    out
}

/// The head of a kernel of one parameter, `v0`: the number of the thread is `v1`, the place of its result `v2`.
fn head(name: &str) -> String {
    format!(
        "target thisgpu\n; kernel\nfunction %{name}(i64) \
         {{\n    fn0 = %gpu_ctaid_x() -> i32\n    fn1 = %gpu_tid_x() -> i32\nblock0(v0: i64):\n    \
         v10 = call fn0()\n    v11 = call fn1()\n    v12 = imul_imm.i32 v10, {BLOCK}\n    v1 = iadd v12, v11\n    v13 \
         = uextend.i64 v1\n    \
         v14 = ishl_imm.i64 v13, 2\n    v2 = iadd v0, v14\n    v3 = uextend.i64 v1\n"
    )
}

/// A turn of MurmurHash3 on `v100` with the block `v101`, which becomes `v120` and `v101`.
const HASH: &str = "
    v102 = iconst.i32 0xcc9e2d51
    v103 = imul v101, v102
    v104 = rotl_imm.i32 v103, 15
    v105 = iconst.i32 0x1b873593
    v106 = imul v104, v105
    v107 = bxor v100, v106
    v108 = rotl_imm.i32 v107, 13
    v109 = iconst.i32 0xe6546b64
    v110 = imul_imm.i32 v108, 5
    v120 = iadd v110, v109
    v121 = iadd v101, v120
";

/// A turn of xoroshiro128+ on the state `v100`, `v101`, which becomes `v120` and `v121`.
const XOROSHIRO: &str = "
    v102 = bxor v101, v100
    v103 = rotl_imm.i64 v100, 24
    v104 = bxor v103, v102
    v105 = ishl_imm.i64 v102, 16
    v120 = bxor v104, v105
    v121 = rotl_imm.i64 v102, 37
";

/// A kernel that does `turn` so many times on two values of type `ty` made from its number.
fn looped(name: &str, ty: &str, count: u32, counter: &str, turn: &str) -> String {
    let seed = if ty == "i64" { "v3" } else { "v1" };
    let result = if ty == "i64" {
        "ireduce.i32 v100"
    } else {
        "iadd_imm.i32 v100, 0"
    };
    format!(
        "{}    v4 = iadd_imm.{ty} {seed}, 77\n    v5 = imul_imm.{ty} {seed}, 0x10dcd\n    v6 = iconst.{counter} \
         {count}\n    jump block1(v4, v5, v6)\n\
         block1(v100: {ty}, v101: {ty}, v7: {counter}):{turn}    v8 = iadd_imm.{counter} v7, -1\n    brif v8, \
         block1(v120, v121, v8), block2\n\
         block2:\n    v9 = {result}\n    store aligned v9, v2\n    return\n}}\n",
        head(name)
    )
}

/// ChaCha20's ten double rounds on a state made from the thread's number.
fn chacha() -> String {
    let mut text = head("chacha");
    for word in 0..16 {
        let _ = writeln!(
            text,
            "    v{} = imul_imm.i32 v1, {}",
            20 + word,
            0x0101_0101 + 2 * word
        );
    }
    let list = |names: &[u32], ty: &str| {
        let names = names.iter().map(|n| format!("v{n}{ty}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let first: Vec<u32> = (20..36).collect();
    let mut state: Vec<u32> = (40..56).collect();
    let _ = writeln!(
        text,
        "    v17 = iconst.i32 10\n    jump block1({}, v17)",
        list(&first, "")
    );
    let _ = writeln!(text, "block1({}, v18: i32):", list(&state, ": i32"));
    let mut next = 100;
    let columns = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]];
    let diagonals = [[0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];
    for [a, b, c, d] in columns.into_iter().chain(diagonals) {
        for (to, from, mixed, by) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
            let _ = writeln!(text, "    v{next} = iadd v{}, v{}", state[to], state[from]);
            let _ = writeln!(text, "    v{} = bxor v{}, v{next}", next + 1, state[mixed]);
            let _ = writeln!(text, "    v{} = rotl_imm.i32 v{}, {by}", next + 2, next + 1);
            (state[to], state[mixed]) = (next, next + 2);
            next += 3;
        }
    }
    let _ = writeln!(
        text,
        "    v19 = iadd_imm.i32 v18, -1\n    brif v19, block1({}, v19), block2",
        list(&state, "")
    );
    let _ = writeln!(
        text,
        "block2:\n    v{next} = bxor v{}, v{}\n    store aligned v{next}, v2\n    return\n}}",
        state[0], state[15]
    );
    text
}

/// Euclid's algorithm on the thread's number and a permutation of it, a different number of turns in every thread.
fn gcd() -> String {
    head("gcd")
        + "    v20 = imul_imm.i32 v1, 0x9e3779b1
    v21 = bor_imm.i32 v20, 1
    v22 = iadd_imm.i32 v1, 12345
    v23 = imul_imm.i32 v22, 0x85ebca6b
    jump block1(v21, v23)
block1(v24: i32, v25: i32):
    brif v25, block2, block3
block2:
    v26 = urem v24, v25
    jump block1(v25, v26)
block3:
    store aligned v24, v2
    return
}
"
}

/// Counts in 1,024 words by atomic additions whose results are looked at: blocks run in order unless nobody asks for
/// one.
fn counts() -> String {
    format!(
        "{}    v4 = iadd_imm.i32 v1, 77
    v5 = imul_imm.i32 v1, 0x10dcd
    v6 = iconst.i32 64
    v8 = iconst.i32 0
    v9 = iconst.i32 1
    jump block1(v4, v5, v6, v8)
block1(v100: i32, v101: i32, v7: i32, v30: i32):{HASH}
    v31 = band_imm.i32 v120, 1023
    v32 = uextend.i64 v31
    v33 = ishl_imm.i64 v32, 2
    v34 = iadd v0, v33
    v35 = atomic_rmw.i32 add v34, v9
    v36 = bor v30, v35
    v37 = iadd_imm.i32 v7, -1
    brif v37, block1(v120, v121, v37, v36), block2
block2:
    v38 = ushr_imm.i32 v36, 31
    trapnz v38, user1
    return
}}
",
        head("counts")
    )
}
