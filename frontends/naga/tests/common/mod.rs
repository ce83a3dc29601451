//! What the tests share: a shader run on the simulator, and words in and out.
#![allow(dead_code, reason = "each test takes a part of it")]

use cranelift_thisgpu::{Buffer, Device, Options, Report, SimConfig};
use thisgpu_naga::{Binding, LaunchError, Pipeline, Shader, TranslateOptions};

/// A simulator that looks for races, reads of what nobody wrote, and barriers that a part of a workgroup reaches.
pub fn checking() -> Device {
    Device::simulator(SimConfig {
        check: true,
        stack_bytes: 256 << 10,
        ..SimConfig::default()
    })
}

/// A simulator that only runs.
pub fn plain() -> Device {
    Device::simulator(SimConfig {
        stack_bytes: 256 << 10,
        ..SimConfig::default()
    })
}

/// An entry point, loaded.
pub fn pipeline(
    device: &Device,
    shader: &Shader,
    entry: &str,
    options: &TranslateOptions,
) -> Pipeline {
    let translation = shader.translate(entry, options);
    let translation = translation.unwrap_or_else(|error| panic!("{error}"));
    let compiled = translation.compile(&Options::default());
    let compiled = compiled.unwrap_or_else(|error| panic!("{error}"));
    compiled
        .load(device)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A dispatch with buffers of words at the bindings of group 0, which hold what came of it then.
pub fn dispatch(
    device: &Device,
    pipeline: &Pipeline,
    groups: [u32; 3],
    buffers: &mut [Vec<u32>],
) -> Result<Report, LaunchError> {
    let bound: Vec<Buffer<u32>> = (buffers.iter())
        .map(|words| device.upload(words).expect("there is room"))
        .collect();
    let bindings: Vec<Binding> = (bound.iter().zip(0..))
        .map(|(buffer, number)| Binding::new(0, number, &buffer.cast().expect("bytes")))
        .collect();
    let report = pipeline.dispatch(groups, &bindings, &[]);
    for (words, buffer) in buffers.iter_mut().zip(&bound) {
        *words = buffer.to_vec().expect("it can be read");
    }
    report.map(|report| report.expect("there are workgroups"))
}

/// A WGSL text with one entry point `main`, run once on a checking simulator that must find nothing.
pub fn run(text: &str, groups: [u32; 3], buffers: &mut [Vec<u32>]) {
    let shader = Shader::wgsl("test.wgsl", text).unwrap_or_else(|error| panic!("{error}"));
    let device = checking();
    let pipeline = pipeline(&device, &shader, "main", &TranslateOptions::default());
    let report = dispatch(&device, &pipeline, groups, buffers);
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
