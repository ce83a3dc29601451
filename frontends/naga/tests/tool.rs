//! The command `naga-thisgpu` on the three languages.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use thisgpu_naga::Shader;
use thisgpu_naga::naga::back::spv;

const WGSL: &str = "override by: u32 = 3u;
var<immediate> plus: u32;
@group(0) @binding(0) var<storage, read_write> values: array<u32>;
@group(1) @binding(2) var<storage, read> more: array<u32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    values[id.x] = values[id.x] * by + more[id.x] + plus;
}
";

const GLSL: &str = "#version 450
layout(local_size_x = 4) in;
layout(std430, set = 0, binding = 0) buffer Values { uint values[]; };
void main() { values[gl_GlobalInvocationID.x] += 100u; }
";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn tool(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_naga-thisgpu"));
    let output = command.args(arguments).current_dir(folder).output();
    output.expect("the tool runs")
}

fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = tool(folder, arguments);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {message}");
    String::from_utf8(output.stdout).expect("a text")
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).expect("the file can be written");
}

#[test]
fn shaders_of_three_languages_are_launched() {
    let folder = folder("launched");
    write(&folder, "a.wgsl", WGSL.as_bytes());
    write(&folder, "b.comp", GLSL.as_bytes());
    let shader = Shader::glsl("b.comp", GLSL).unwrap_or_else(|error| panic!("{error}"));
    let options = spv::Options::default();
    let binary = spv::write_vec(&shader.module, &shader.info, &options, None);
    write(
        &folder,
        "c.spv",
        &words(&binary.unwrap_or_else(|error| panic!("{error}"))),
    );
    write(&folder, "values", &words(&[1, 2, 3, 4]));
    write(&folder, "more", &words(&[10, 20, 30, 40]));
    write(&folder, "plus", &words(&[1000]));
    let first = [
        "launch",
        "a.wgsl",
        "--bind",
        "0.0=values",
        "--bind",
        "1.2=more",
        "--immediates",
        "plus",
        "--override",
        "by=5",
        "--output",
        "0.0=-",
        "--check",
    ];
    assert_eq!(
        succeeds(&folder, &first),
        "000003f7 00000406 00000415 00000424\n"
    );
    for file in ["b.comp", "c.spv"] {
        let launch = [
            "launch",
            file,
            "--bind",
            "0.0=values",
            "--output",
            "0.0=out",
        ];
        succeeds(&folder, &launch);
        let out = std::fs::read(folder.join("out")).expect("it is written");
        assert_eq!(out, words(&[101, 102, 103, 104]), "{file}");
    }
}

#[test]
fn shaders_are_compiled_and_printed() {
    let folder = folder("compiled");
    write(&folder, "a.wgsl", WGSL.as_bytes());
    let text = succeeds(&folder, &["compile", "a.wgsl"]);
    assert!(
        text.contains(".kernel main") && text.contains("EXIT"),
        "{text}"
    );
    succeeds(&folder, &["compile", "a.wgsl", "-o", "a.elf"]);
    let object = std::fs::read(folder.join("a.elf")).expect("it is written");
    assert_eq!(object[..4], *b"\x7fELF");
    let text = succeeds(&folder, &["cat", "a.wgsl"]);
    assert!(text.contains("@group(1) @binding(2) more Read"), "{text}");
    assert!(
        text.contains("function %main(i64, i32, i64, i32, i64)"),
        "{text}"
    );
}

#[test]
fn what_goes_wrong_ends_with_a_message() {
    let folder = folder("wrong");
    write(&folder, "a.wgsl", WGSL.as_bytes());
    write(&folder, "bad.wgsl", b"fn f() {\n  let a = ;\n}");
    write(&folder, "plus", &words(&[1]));
    let cases: &[(&[&str], i32, &str)] = &[
        (&["compile", "bad.wgsl"], 1, "bad.wgsl:2:11"),
        (&["compile", "none.wgsl"], 1, "cannot read none.wgsl"),
        (&["compile", "plus"], 1, ".wgsl, .comp or .spv"),
        (
            &["compile", "a.wgsl", "--entry", "other"],
            1,
            "there are main",
        ),
        (
            &["launch", "a.wgsl", "--immediates", "plus"],
            1,
            "@group(0) @binding(0)",
        ),
        (
            &["launch", "a.wgsl", "--bind", "0=plus"],
            2,
            "GROUP.BINDING=FILE",
        ),
        (
            &[
                "launch", "a.wgsl", "--bind", "0.0=plus", "--bind", "0.0=plus",
            ],
            1,
            "--bind 0.0 is given twice",
        ),
        (
            &["launch", "a.wgsl", "--bind", "0.7=plus"],
            1,
            "--bind 0.7: the shader has no variable there",
        ),
    ];
    for (arguments, status, message) in cases {
        let output = tool(&folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(*status), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: {said}");
    }
}
