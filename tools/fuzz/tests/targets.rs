//! Every target of the coverage-guided engines for a moment: the inputs that they begin with, and damaged ones.

use flate2::read::GzDecoder;
use fuzz::random::Random;
use fuzz::targets::{Input, TARGETS, Target, corpus};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Inputs that are tried: those that run code take longer.
fn count(target: &Target) -> usize {
    match target.input {
        Input::Choices => 3,
        Input::Entry => 60,
        Input::Clif | Input::Objects => 40,
        _ => 80,
    }
}

/// An input with bytes changed, left out, repeated, or taken from another one.
fn damaged(input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.between(1, 4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(9)).min(bytes.len());
        match random.below(4) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let part = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, part));
            }
            _ => {
                let from = random.below(other.len() + 1);
                let part = &other[from..(from + 16).min(other.len())];
                drop(bytes.splice(at..end, part.iter().copied()));
            }
        }
    }
    bytes
}

#[test]
fn every_target_survives_its_inputs_and_damaged_ones() {
    let seed = std::env::var("FUZZ_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("FUZZ_SEED={seed}");
    for target in TARGETS {
        let inputs = corpus::inputs(&target, &root().join("filetests/lower")).unwrap();
        assert!(!inputs.is_empty(), "{}", target.name);
        let mut random = Random::new(seed);
        for index in 0..count(&target) {
            let input = &inputs[random.below(inputs.len())];
            let other = &inputs[random.below(inputs.len())];
            let input = match index % 4 {
                0 => input.clone(),
                _ => damaged(input, other, &mut random),
            };
            (target.run)(&input);
        }
    }
}

/// Inputs that campaigns have left, which cover most.
#[test]
fn every_target_survives_what_campaigns_have_left() {
    let seed = std::env::var("FUZZ_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("FUZZ_SEED={seed}");
    for target in TARGETS {
        let path = root().join(format!("fuzz/seeds/{}.tar.gz", target.name));
        // Of choices and entries nothing is kept: other code makes something else of them.
        let Ok(file) = std::fs::File::open(&path) else {
            assert!(
                matches!(target.input, Input::Choices | Input::Entry),
                "{path:?}"
            );
            continue;
        };
        let file = GzDecoder::new(file);
        let mut archive = tar::Archive::new(file);
        let inputs = archive.entries().unwrap().map(|entry| {
            let mut input = Vec::new();
            entry.unwrap().read_to_end(&mut input).unwrap();
            input
        });
        let mut inputs: Vec<_> = inputs.collect();
        assert!(!inputs.is_empty(), "{}", target.name);
        let mut random = Random::new(seed);
        for _ in 0..count(&target).min(inputs.len()) {
            let input = inputs.swap_remove(random.below(inputs.len()));
            (target.run)(&input);
        }
    }
}

/// Each target has a shim with its name, and nothing else has one.
#[test]
fn every_target_has_a_shim() {
    let folder = root().join("fuzz/fuzz_targets");
    let mut shims: Vec<String> = (std::fs::read_dir(folder).unwrap())
        .map(|file| file.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    shims.sort();
    // These take front ends and clif-util, on which nothing here depends.
    shims.retain(|name| !["exec", "llvm", "wgsl"].contains(&name.as_str()));
    let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    names.sort_unstable();
    assert_eq!(shims, names);
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for name in names {
        assert!(
            manifest.contains(&format!("\"fuzz_targets/{name}.rs\"")),
            "{name}"
        );
    }
}
