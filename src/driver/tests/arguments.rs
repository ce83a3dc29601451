//! Arguments against the types of parameters.

use crate::driver::{Device, DeviceError, DevicePointer, Grid, Launch};
use crate::sim::SimConfig;
use half::{bf16, f16};

/// A kernel with one parameter of each type, which does nothing.
fn module(device: &Device, parameters: &[&str]) -> crate::driver::Module {
    let kernels: String = parameters
        .iter()
        .map(|p| format!(".kernel k{}\n.param {p}\n EXIT ;\n", p.replace(' ', "_")))
        .collect();
    let assembled = crate::asm::assemble("k.s", &kernels).unwrap_or_else(|e| panic!("{e}"));
    // What the object's file says is what counts.
    device
        .load_elf(&assembled.object.write().unwrap())
        .unwrap_or_else(|e| panic!("{e}"))
}

type Give<'a> = &'a dyn Fn(Launch<'_>) -> Result<crate::launch::Report, DeviceError>;

#[test]
fn a_parameter_takes_its_kind_and_size() {
    let device = Device::simulator(SimConfig::default());
    let parameters = [
        "1 i8", "2 i16", "4 i32", "8 i64", "16 i128", "2 f16", "4 f32", "8 f64", "4 f16x2",
        "16 i32x4", "8 ptr", "4",
    ];
    let module = module(&device, &parameters);
    let buffer = device.zeros::<f32>(4).unwrap();
    let values: [(&str, Give, &[&str]); 22] = [
        ("i8", &|l| l.arg(-1i8).run(), &["1 i8"]),
        ("u8", &|l| l.arg(1u8).run(), &["1 i8"]),
        ("i16", &|l| l.arg(1i16).run(), &["2 i16"]),
        ("u16", &|l| l.arg(1u16).run(), &["2 i16"]),
        ("bf16", &|l| l.arg(bf16::ONE).run(), &["2 i16"]),
        ("f16", &|l| l.arg(f16::ONE).run(), &["2 f16"]),
        ("i32", &|l| l.arg(1i32).run(), &["4 i32", "4 f16x2", "4"]),
        ("u32", &|l| l.arg(1u32).run(), &["4 i32", "4 f16x2", "4"]),
        ("f32", &|l| l.arg(1f32).run(), &["4 f32", "4 f16x2", "4"]),
        (
            "[f16; 2]",
            &|l| l.arg([f16::ONE; 2]).run(),
            &["4 f16x2", "4"],
        ),
        ("i64", &|l| l.arg(1i64).run(), &["8 i64"]),
        ("u64", &|l| l.arg(1u64).run(), &["8 i64"]),
        ("f64", &|l| l.arg(1f64).run(), &["8 f64"]),
        ("i128", &|l| l.arg(1i128).run(), &["16 i128", "16 i32x4"]),
        ("u128", &|l| l.arg(1u128).run(), &["16 i128", "16 i32x4"]),
        ("[i32; 4]", &|l| l.arg([1i32; 4]).run(), &["16 i32x4"]),
        ("[f32; 3]", &|l| l.arg([1f32; 3]).run(), &[]),
        ("buffer", &|l| l.arg(&buffer).run(), &["8 i64", "8 ptr"]),
        (
            "slice",
            &|l| l.arg(buffer.slice(1..).unwrap()).run(),
            &["8 i64", "8 ptr"],
        ),
        (
            "bytes",
            &|l| l.arg(buffer.cast::<u8>().unwrap()).run(),
            &["8 i64", "8 ptr"],
        ),
        (
            "pointer",
            &|l| l.arg(DevicePointer(0)).run(),
            &["8 i64", "8 ptr"],
        ),
        ("number", &|l| l.arg(1i32).run(), &["4 i32", "4 f16x2", "4"]),
    ];
    for (name, give, takes) in values {
        for parameter in parameters {
            let kernel = module
                .kernel(&format!("k{}", parameter.replace(' ', "_")))
                .unwrap();
            let result = give(kernel.launch(Grid::for_elems(1, 1)));
            let fits = takes.contains(&parameter);
            assert_eq!(result.is_ok(), fits, "{name} for `.param {parameter}`");
            if !fits {
                assert!(
                    matches!(result, Err(DeviceError::Argument { index: 0, .. })),
                    "{name} for `.param {parameter}`: {result:?}"
                );
            }
        }
    }
}

/// A message names the argument, what the kernel takes and what was given.
#[test]
fn what_does_not_fit_is_said() {
    let device = Device::simulator(SimConfig::default());
    let module = module(&device, &["4 f32", "2 f16", "4 i32", "4 f16x2"]);
    let cases: [(&str, Give, &str); 4] = [
        (
            "k4_f32",
            &|l| l.arg(1i32).run(),
            "is i32, the parameter is f32",
        ),
        (
            "k2_f16",
            &|l| l.arg(bf16::ONE).run(),
            "is bf16, which goes to an i16, the parameter is f16",
        ),
        (
            "k4_i32",
            &|l| l.arg(device.zeros::<u8>(1).unwrap()).run(),
            "is an address, the parameter is i32",
        ),
        (
            "k4_f16x2",
            &|l| l.arg(1i64).run(),
            "is i64, the parameter is f16x2, 4 bytes",
        ),
    ];
    for (kernel, give, text) in cases {
        let launch = module.kernel(kernel).unwrap();
        let message = give(launch.launch(Grid::for_elems(1, 1)))
            .unwrap_err()
            .to_string();
        assert_eq!(message, format!("argument 0 of kernel `{kernel}` {text}"));
    }
}
