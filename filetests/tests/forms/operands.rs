//! The kernels of `filetests/lower/constant_operands.clif`, and those of `uniform_operands.clif`, which read the same
//! in a uniform register, against references on the host.

use crate::repository;
use cranelift_thisgpu::compile::{Code, Compiler};
use cranelift_thisgpu::driver::{Device, Grid};
use cranelift_thisgpu::settings::Options;
use cranelift_thisgpu::sim::SimConfig;
use cranelift_thisgpu::unstable::isa::random::Random;
use half::f16;

/// What the operands of a kernel are.
#[derive(Clone, Copy, Debug)]
enum Operands {
    /// Words of any bits, the small, the large and the special ones more often.
    Words,
    /// The same with a parameter of 64 bits.
    WideParameter,
    /// Pairs of halves with small integer values, on which all arithmetic is exact.
    Halves,
    /// The same with a parameter of 16 bits.
    OneHalf,
    /// A parameter that is a power of two in f32.
    PowerOfTwo,
}

/// A kernel's name, its operands, and the result as 64 bits from the two words in memory and the parameter.
type Row = (&'static str, Operands, fn(u32, u32, u64) -> u64);

use Operands::{Halves, OneHalf, PowerOfTwo, WideParameter, Words};

const KERNELS: &[Row] = &[
    ("hadd2_rc", Halves, |x, _, p| {
        lanes(x, p as u32, 0, |x, p, _| x + p)
    }),
    ("hmul2_rc", Halves, |x, _, p| {
        lanes(x, p as u32, 0, |x, p, _| x * p)
    }),
    ("hfma2_rrc", Halves, |x, y, p| {
        lanes(x, y, p as u32, |x, y, p| x * y + p)
    }),
    ("hfma2_rcr", Halves, |x, y, p| {
        lanes(x, p as u32, y, |x, p, y| x * p + y)
    }),
    ("hmnmx2_rc", Halves, |x, _, p| {
        lanes(x, p as u32, 0, |x, p, _| x.max(p))
    }),
    ("hsetp2_rc", OneHalf, |x, _, p| {
        u64::from(half(x) < half(p as u32))
    }),
    ("hset2_rc", Halves, |x, _, p| {
        let mask = |shift: u32| half(x >> shift) >= half(p as u32 >> shift);
        (u64::from(mask(0)) * 0xffff) | (u64::from(mask(16)) * 0xffff_0000)
    }),
    ("iadd_rc", Words, |x, _, p| {
        u64::from(x.wrapping_add(p as u32))
    }),
    ("imul_rc", Words, |x, _, p| {
        u64::from(x.wrapping_mul(p as u32))
    }),
    ("imad_rrc", Words, |x, y, p| {
        u64::from(x.wrapping_mul(y).wrapping_add(p as u32))
    }),
    ("imad_rcr", Words, |x, y, p| {
        u64::from(x.wrapping_mul(p as u32).wrapping_add(y))
    }),
    ("imad_wide_rrc", WideParameter, |x, y, p| {
        (u64::from(x) * u64::from(y)).wrapping_add(p)
    }),
    ("imad_wide_rcr", Words, |x, _, p| u64::from(x) * p),
    ("lea_rcr", Words, |x, _, p| {
        u64::from((x << 5).wrapping_add(p as u32))
    }),
    ("iabs_c", Words, |_, _, p| {
        u64::from((p as i32).wrapping_abs() as u32)
    }),
    ("imnmx_rc", Words, |x, _, p| {
        u64::from((x as i32).min(p as i32) as u32)
    }),
    ("isetp_rc", Words, |x, y, p| {
        u64::from(if (x as i32) < p as i32 { x } else { y })
    }),
    (
        "iset_rc",
        Words,
        |x, _, p| if x < p as u32 { 0xffff_ffff } else { 0 },
    ),
    ("sel_rc", Words, |x, y, p| {
        if (x as i32) < y as i32 {
            u64::from(x)
        } else {
            p
        }
    }),
    ("lop3_rcr", Words, |x, y, p| u64::from(x & p as u32 ^ y)),
    ("shf_rcr", Words, |x, _, p| u64::from(x << (p & 31))),
    ("shf_rrc", Words, |x, _, p| p >> (x & 31)),
    ("i2i_c", Words, |_, _, p| {
        u64::from((p as i32).clamp(-128, 127) as u32)
    }),
    ("popc_c", Words, |_, _, p| u64::from(p.count_ones())),
    ("flo_c", Words, |_, _, p| {
        u64::from((p as u32).leading_zeros())
    }),
    ("idp2a_rrc", Words, |x, y, p| dot2(x, y, p as u32, false)),
    ("idp2a_rcr", Words, |x, y, p| dot2(x, p as u32, y, true)),
    ("idp4a_rrc", Words, |x, y, p| dot4(x, y, p as u32, true)),
    ("idp4a_rcr", Words, |x, y, p| dot4(x, p as u32, y, false)),
    ("prmt_rrc", Words, |x, y, p| permuted(x, y, p as u32)),
    ("prmt_rcr", Words, |x, y, p| permuted(x, p as u32, y)),
    ("i2ip_rcr", Words, |x, y, p| {
        let byte = |word: u32| u64::from((word as i32).clamp(-128, 127) as u8);
        u64::from(y & 0xffff) << 16 | byte(x) << 8 | byte(p as u32)
    }),
    ("mufu_c", PowerOfTwo, |_, _, p| {
        u64::from((1.0 / f32::from_bits(p as u32)).to_bits())
    }),
    ("bmsk_rc", Words, |x, _, p| {
        // Ones from bit x upwards, p of them.
        let from = u64::MAX.checked_shl(x).unwrap_or(0);
        let to = u64::from(x) + p;
        from & !u64::MAX.checked_shl(to.min(64) as u32).unwrap_or(0) & 0xffff_ffff
    }),
    ("sgxt_rc", Words, |x, _, p| match (p as u32).min(32) {
        0 => 0,
        bits => u64::from(((x << (32 - bits)) as i32 >> (32 - bits)) as u32),
    }),
    ("f2f_c", Halves, |_, _, p| {
        u64::from((-half((p >> 16) as u32)).to_bits())
    }),
    ("f2i_c", OneHalf, |_, _, p| {
        u64::from(half(p as u32) as i32 as u32)
    }),
    ("frnd_c", Halves, |_, _, p| {
        lanes(p as u32, 0, 0, |p, _, _| p.floor())
    }),
    ("mufu_c_half", OneHalf, |_, _, p| {
        u64::from(f16::from_f32(half(p as u32).exp2()).to_bits())
    }),
];

fn half(bits: u32) -> f32 {
    f16::from_bits(bits as u16).to_f32()
}

/// An operation on each pair of halves.
fn lanes(a: u32, b: u32, c: u32, operation: fn(f32, f32, f32) -> f32) -> u64 {
    let lane = |shift: u32| {
        let value = operation(half(a >> shift), half(b >> shift), half(c >> shift));
        u64::from(f16::from_f32(value).to_bits())
    };
    lane(0) | lane(16) << 16
}

/// c + a.h0 * b.b0 + a.h1 * b.b1, signed; or unsigned with the high bytes of b.
fn dot2(a: u32, b: u32, c: u32, high_unsigned: bool) -> u64 {
    let product = |i: u32| {
        let (half, byte) = (a >> (16 * i), b >> (8 * i));
        if high_unsigned {
            i64::from(half as u16) * i64::from((byte >> 16) as u8)
        } else {
            i64::from(half as i16) * i64::from(byte as i8)
        }
    };
    u64::from((i64::from(c) + product(0) + product(1)) as u32)
}

/// c + the sum of the products of the bytes.
fn dot4(a: u32, b: u32, c: u32, signed: bool) -> u64 {
    let product = |i: usize| {
        let (a, b) = (a.to_le_bytes()[i], b.to_le_bytes()[i]);
        if signed {
            i64::from(a as i8) * i64::from(b as i8)
        } else {
            i64::from(a) * i64::from(b)
        }
    };
    u64::from((i64::from(c) + (0..4).map(product).sum::<i64>()) as u32)
}

/// The bytes of b:a that the nibbles of `selector` choose; bit 3 of one repeats the sign.
fn permuted(a: u32, b: u32, selector: u32) -> u64 {
    let bytes = (u64::from(b) << 32 | u64::from(a)).to_le_bytes();
    let chosen = |i: u32| {
        let nibble = selector >> (4 * i) & 15;
        let byte = bytes[(nibble & 7) as usize];
        let sign = if byte as i8 >= 0 { 0 } else { 0xff };
        u64::from(if nibble & 8 == 0 { byte } else { sign })
    };
    (0..4).fold(0, |word, i| word | chosen(i) << (8 * i))
}

impl Operands {
    fn word(self, random: &mut Random) -> u64 {
        let small_half = |bits: u64| u64::from(f16::from_f32((bits % 17) as f32 - 8.0).to_bits());
        let bits = random.bits();
        match self {
            Words | WideParameter => match bits % 4 {
                0 => bits >> 8 & 63,
                1 => [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff][(bits >> 8) as usize % 5],
                _ => bits >> 32,
            },
            Halves | OneHalf => small_half(bits >> 8) | small_half(bits >> 32) << 16,
            PowerOfTwo => u64::from((1 + (bits >> 8) as u32 % 250) << 23),
        }
    }

    fn parameter(self, random: &mut Random) -> u64 {
        let word = self.word(random);
        match self {
            WideParameter => self.word(random) << 32 | word,
            OneHalf => word & 0xffff,
            Words | Halves | PowerOfTwo => word,
        }
    }
}

fn compile(file: &str) -> Code {
    let path = repository().join("filetests/lower").join(file);
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let compiled = Compiler::new(Options::default()).compile_clif(&text);
    compiled.unwrap_or_else(|errors| panic!("{errors}"))
}

/// Kernels without a sibling that reads a uniform register: half a register is an operand only where it is a vector
/// operation's.
const CONSTANT_ONLY: &[&str] = &["f2f_c", "f2i_c", "frnd_c", "mufu_c_half"];

/// The kernel with a uniform operand that computes what one with a constant operand does.
fn uniform(name: &str) -> Option<String> {
    let (operation, form) = name.rsplit_once('_')?;
    (!CONSTANT_ONLY.contains(&name)).then(|| format!("{operation}_{}", form.replace('c', "u")))
}

#[test]
fn kernels_with_constant_operands_compute_what_they_should() {
    check("constant_operands.clif", |name| Some(name.to_string()));
}

#[test]
fn kernels_with_uniform_operands_compute_the_same() {
    check("uniform_operands.clif", uniform);
}

/// Runs every kernel of a file against the reference of the row that it is the `kernel_of`.
fn check(file: &str, kernel_of: fn(&str) -> Option<String>) {
    let code = compile(file);
    let rows: Vec<(String, &Row)> = KERNELS
        .iter()
        .filter_map(|row| Some((kernel_of(row.0)?, row)))
        .collect();
    assert_eq!(
        code.kernels().len(),
        rows.len(),
        "a reference for each kernel"
    );
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let module = device.load(&code).expect("the code loads");
    let mut random = Random::new(7);
    for (name, (row, operands, reference)) in rows {
        let kernel = module
            .kernel(&name)
            .unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..40 {
            let [x, y] = [(); 2].map(|()| operands.word(&mut random) as u32);
            let p = operands.parameter(&mut random);
            let memory = device.upload(&[x, y, 0, 0]).expect("there is room");
            let launch = kernel.launch(Grid::for_elems(1, 1)).arg(&memory);
            let launch = match operands {
                WideParameter => launch.arg(p),
                OneHalf if name == *row => launch.arg(f16::from_bits(p as u16)),
                PowerOfTwo if name == *row => launch.arg(f32::from_bits(p as u32)),
                _ => launch.arg(p as u32),
            };
            launch
                .run()
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let words: Vec<u32> = device.download(&memory).expect("it is there");
            let result = u64::from(words[3]) << 32 | u64::from(words[2]);
            let expected = reference(x, y, p);
            assert_eq!(
                result, expected,
                "{name} of {x:#x}, {y:#x}, parameter {p:#x}"
            );
        }
    }
}
