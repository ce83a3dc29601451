//! Settings, targets, kernels and objects that are not there.

use super::{Table, message};
use cranelift_thisgpu::cranelift::codegen::settings::{Configurable, SetError};
use cranelift_thisgpu::{Compiler, Object, Options, SourceFile, settings, target};

const TEXT: &str = "; kernel\nfunction %saxpy() {\nblock0:\n    return\n}\nfunction %helper() \
 {\nblock0:\n    return\n}";

/// A setting, what it is to be, words of the message.
const SETTINGS: &[(&str, &str, &[&str])] = &[
    (
        "opt_levl",
        "none",
        &["opt_levl", "no such setting", "did you mean `opt_level`"],
    ),
    (
        "regalloc",
        "single_pass",
        &["no such setting", "regalloc_algorithm"],
    ),
    ("", "true", &["no such setting"]),
    (
        "opt_level",
        "fast",
        &["opt_level", "`fast`", "none, speed, speed_and_size"],
    ),
    ("opt_level", "", &["opt_level", "none, speed"]),
    ("regs", "3", &["regs", "`3`", "24 to"]),
    ("regs", "1000", &["regs", "`1000`"]),
    ("regs", "all", &["regs", "`all`"]),
    ("sched", "true", &["sched", "full, serial"]),
    ("unroll", "1", &["unroll", "off, auto, 2 to"]),
    ("unroll", "-2", &["unroll", "`-2`"]),
    ("hoist", "yes", &["hoist", "true, false"]),
    ("verify", "1", &["verify", "true, false"]),
    (
        "regalloc_algorithm",
        "graph",
        &["backtracking, single_pass"],
    ),
];

pub fn rows(table: &mut Table) {
    for (name, value, says) in SETTINGS {
        table.row(&format!("setting {name}={value}"), says, || {
            let mut builder = settings::builder();
            let result = builder.set(name, value).map_err(message);
            assert_eq!(builder, settings::builder(), "nothing has changed");
            result
        });
    }
    table.row(
        "a setting that is no switch enabled",
        &["regs", "`true`"],
        || settings::builder().enable("regs").map_err(message),
    );
    table.row("a setting by Cranelift's trait", &["opt_levl"], || {
        let mut builder = settings::builder();
        let result = Configurable::set(&mut builder, "opt_levl", "none");
        result.map_err(|error: SetError| error.to_string())
    });
    table.row(
        "a setting as an option",
        &["did you mean `assume_aligned`"],
        || Options::default().set("assume_alignd").map_err(message),
    );
    for name in [
        "riscv64",
        "",
        "x86_64-unknown-linux-gnu",
        "nvptx64-nvidia-cuda",
    ] {
        let says = [name, "only `thisgpu`"];
        table.row(&format!("target `{name}`"), &says, || {
            target::lookup_by_name(name).map(|_| ()).map_err(message)
        });
    }
    table.row("a target almost", &["did you mean `thisgpu`"], || {
        target::lookup_by_name("thisgu")
            .map(|_| ())
            .map_err(message)
    });
    table.row(
        "a triple of another machine",
        &["riscv64gc", "only `thisgpu`"],
        || {
            let triple = "riscv64gc-unknown-linux-gnu".parse().unwrap();
            target::lookup(triple).map(|_| ()).map_err(message)
        },
    );
    let code = Compiler::new(Options::default())
        .compile_clif(TEXT)
        .unwrap();
    table.row(
        "a kernel almost",
        &["`saxpi`", "kernels: saxpy", "did you mean `saxpy`"],
        || code.kernel("saxpi").map(|_| ()).map_err(message),
    );
    table.row(
        "a device function as a kernel",
        &["`helper`", "kernels: saxpy"],
        || code.kernel("%helper").map(|_| ()).map_err(message),
    );
    table.row(
        "a function to be marked that is not there",
        &["%saxpi", "did you mean `saxpy`"],
        || {
            let mut file = SourceFile::parse("x.clif", TEXT).unwrap();
            file.mark_kernels(&["saxpi"]).map_err(message)
        },
    );
    table.row(
        "a function to be marked where there is none",
        &["%k", "none"],
        || {
            let mut file = SourceFile::parse("x.clif", "").unwrap();
            file.mark_kernels(&["k"]).map_err(message)
        },
    );
    let elf = code.to_elf().unwrap();
    table.row("an object of no bytes", &["ELF"], || {
        Object::read(&[]).map(|_| ()).map_err(message)
    });
    table.row("an object of text", &["ELF"], || {
        Object::read(TEXT.as_bytes()).map(|_| ()).map_err(message)
    });
    table.row("an object of another machine", &["machine"], || {
        let mut other = elf.clone();
        // e_machine.
        other[18..20].copy_from_slice(&62u16.to_le_bytes());
        Object::read(&other).map(|_| ()).map_err(message)
    });
    table.row("half an object", &[], || {
        Object::read(&elf[..elf.len() / 2])
            .map(|_| ())
            .map_err(message)
    });
}
