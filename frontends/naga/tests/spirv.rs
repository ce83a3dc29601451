//! Control barriers of SPIR-V: who waits is said by the scope of execution, whatever memory is ordered.

use thisgpu_naga::naga::back::spv;
use thisgpu_naga::{Error, Reason, Shader, TranslateOptions, Translation};

const OP_CONTROL_BARRIER: u32 = 224;

/// A shader with these barriers, as words, and where each barrier is.
fn binary(barriers: &str) -> (Vec<u32>, Vec<usize>) {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @compute @workgroup_size(64) fn main() {{ out[0] = 1u; {barriers} out[1] = 2u; }}"
    );
    let shader = Shader::wgsl("barriers.wgsl", &text).unwrap_or_else(|error| panic!("{error}"));
    let options = spv::Options::default();
    let words = spv::write_vec(&shader.module, &shader.info, &options, None);
    let words = words.unwrap_or_else(|error| panic!("{error}"));
    let (mut found, mut at) = (Vec::new(), 5);
    while at < words.len() {
        if words[at] & 0xffff == OP_CONTROL_BARRIER {
            found.push(at);
        }
        at += (words[at] >> 16) as usize;
    }
    (words, found)
}

fn translated(words: &[u32]) -> Result<Translation, Error> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let shader = Shader::spirv("barriers.spv", &bytes)?;
    shader.translate("main", &TranslateOptions::default())
}

/// The intrinsics of barriers, in their order.
fn waits(translation: &Translation) -> Vec<&'static str> {
    let text = translation.function.display().to_string();
    let names = ["gpu_bar_sync", "gpu_warp_sync"];
    let found = names
        .into_iter()
        .filter_map(|name| Some((text.find(name)?, name)));
    let mut found: Vec<_> = found.collect();
    found.sort();
    found.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn barriers_go_by_the_scope_of_execution() {
    let (mut words, at) = binary("workgroupBarrier(); subgroupBarrier();");
    let straight = translated(&words).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(waits(&straight), ["gpu_bar_sync", "gpu_warp_sync"]);
    // The memory that each orders stays.
    words.swap(at[0] + 1, at[1] + 1);
    let swapped = translated(&words).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(waits(&swapped), ["gpu_warp_sync", "gpu_bar_sync"]);
}

#[test]
fn barriers_of_other_scopes_are_refused() {
    let (mut words, at) = binary("storageBarrier();");
    words[at[0] + 1] = words[at[0] + 2];
    let error = translated(&words).expect_err("no device waits for all of its threads");
    assert_eq!(error.place.position, Some((at[0] as u32 + 1, 1)), "{error}");
    assert!(matches!(error.reason, Reason::Unsupported(_)), "{error}");
}
