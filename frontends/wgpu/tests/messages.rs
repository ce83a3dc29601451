//! Bugs of shaders, each reported with its line of WGSL, and the loss of the device.

mod common;

use common::{Gpu, marked};
use cranelift_thisgpu::launch::FindingKind;
use cranelift_thisgpu::{FaultKind, SimConfig};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use thisgpu_wgpu::{Message, Options, wgpu};

const HEAD: &str = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
var<workgroup> w: array<u32, 64>;
";

/// Runs a shader on two workgroups.
fn run(options: Options, body: &str) -> (Gpu, String) {
    let gpu = Gpu::new(options);
    let text = format!("{HEAD}{body}");
    let a = gpu.buffer(&[7; 64]);
    gpu.run(&gpu.pipeline(&text), &[&a], 2);
    (gpu, text)
}

/// The finding of a kind, at the marked line.
fn found(body: &str, is_wanted: fn(&FindingKind) -> bool) -> Message {
    let (gpu, text) = run(Options::checking(), body);
    let message = gpu.message(
        |message| matches!(message, Message::Finding { finding, .. } if is_wanted(&finding.kind)),
    );
    let line = Some(marked(&text));
    assert!(
        message.line() == line || message.other_line() == line,
        "{message}"
    );
    let said = message.to_string();
    assert!(said.starts_with("pipeline `test pipeline`: "), "{said}");
    assert!(said.contains("of test.wgsl"), "{said}");
    // The device goes on.
    assert_eq!(gpu.read(&gpu.buffer(&[1])), [1]);
    message
}

#[test]
fn races_of_a_workgroup_name_their_line() {
    found(
        "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
             w[l] = l; // here
             a[l] = w[63u - l];
         }",
        |kind| matches!(kind, FindingKind::Race { .. }),
    );
}

#[test]
fn races_between_workgroups_name_their_line() {
    found(
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             a[3] = g.x; // here
         }",
        |kind| matches!(kind, FindingKind::Race { .. }),
    );
}

#[test]
fn divergent_barriers_name_their_line() {
    found(
        "var<private> odd: u32;
         @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {
             odd = l;
             for (var n = 0u; n < 2u; n++) {
                 if odd >= 32u { return; }
                 workgroupBarrier(); // here
             }
             a[l] = l;
         }",
        |kind| matches!(kind, FindingKind::PartialBarrier { .. }),
    );
}

/// wgpu zeroes buffers, so that only workgroup memory can be what nobody wrote, where a program wants that.
#[test]
fn reads_of_what_nobody_wrote_name_their_line() {
    let gpu = Gpu::new(Options::checking());
    let text = format!(
        "{HEAD}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) l: u32) {{
             let n = w[l]; // here
             a[l] = n + 1u;
         }}"
    );
    let compilation = wgpu::PipelineCompilationOptions {
        zero_initialize_workgroup_memory: false,
        ..wgpu::PipelineCompilationOptions::default()
    };
    let pipeline = gpu.pipeline_with(&gpu.module(&text), None, compilation);
    gpu.run(&pipeline, &[&gpu.buffer(&[7; 64])], 1);
    let message = gpu.message(|message| {
        let Message::Finding { finding, .. } = message else {
            return false;
        };
        matches!(finding.kind, FindingKind::UndefinedMemory { .. })
    });
    let line = Some(marked(&text));
    assert!(
        message.line() == line || message.other_line() == line,
        "{message}"
    );
}

/// A mistake that is made again is said once.
#[test]
fn findings_are_kept_once() {
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = heard.clone();
    let options = Options::checking().on_message(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let gpu = Gpu::new(options);
    let pipeline = gpu.pipeline(&format!(
        "{HEAD}@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {{ a[3] = g.x; }}"
    ));
    let a = gpu.buffer(&[7; 64]);
    for _ in 0..5 {
        gpu.run(&pipeline, &[&a], 2);
    }
    assert_eq!(gpu.reports.messages().len(), 1, "{:?}", gpu.reports);
    assert_eq!(heard.load(Ordering::Relaxed), 1);
    assert_eq!(gpu.reports.take().len(), 1);
    assert!(gpu.reports.messages().is_empty());
}

const RACES: &str =
    "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) { a[3] = g.x; }";

/// Each device has its own messages; the options have those of all.
#[test]
fn messages_are_the_devices_own() {
    let options = Options::checking();
    let all = options.reports().clone();
    let (first, _) = run(options, RACES);
    let second = first.beside();
    assert_eq!(first.reports.messages().len(), 1);
    assert!(second.reports.messages().is_empty());
    let a = second.buffer(&[7; 64]);
    let behind = "@compute @workgroup_size(1) fn main() { a[a[0] * 100u] = 1u; }";
    second.run(&second.pipeline(&format!("{HEAD}{behind}")), &[&a], 1);
    assert!(second.reports.messages()[0].is_fatal());
    assert_eq!(first.reports.messages().len(), 1);
    assert_eq!(all.messages().len(), 2);
}

/// What `a_message_that_nobody_hears_is_printed` runs in a process of its own.
#[test]
#[ignore = "a part of another test"]
fn nobody_hears() {
    let (gpu, _) = run(Options::checking(), RACES);
    assert_eq!(gpu.reports.messages().len(), 1);
}

/// As the one before.
#[test]
#[ignore = "a part of another test"]
fn somebody_hears() {
    run(Options::checking().on_message(|_| ()), RACES);
}

/// As the one before.
#[test]
#[ignore = "a part of another test"]
fn devices_are_named() {
    let gpu = Gpu::new(Options::from_env());
    let sampler = wgpu::SamplerDescriptor::default();
    let error = gpu.error(|| gpu.device.create_sampler(&sampler));
    assert!(error.is_some());
}

/// What one of the tests above prints to standard error, with a device named in the environment.
fn printed(test: &str, device: &str) -> String {
    let this = std::env::current_exe().expect("it has a path");
    let output = std::process::Command::new(this)
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(thisgpu_wgpu::DEVICE_VARIABLE, device)
        .output()
        .expect("it runs");
    String::from_utf8(output.stderr).expect("it is text")
}

/// Without a logger and a listener a message is printed: a program that is checked is not to look as if it had no
/// mistake.
#[test]
fn a_message_that_nobody_hears_is_printed() {
    let said = printed("nobody_hears", "plain");
    assert!(
        said.contains("thisgpu: pipeline `test pipeline`: "),
        "{said}"
    );
    assert!(said.contains("of test.wgsl"), "{said}");
    let said = printed("somebody_hears", "plain");
    assert!(!said.contains("thisgpu:"), "{said}");
}

/// A name that is wrong, and what wgpu has no text for, are not said to a logger alone.
#[test]
fn what_no_error_says_is_printed() {
    let said = printed("devices_are_named", "cheking");
    let wrong =
        "thisgpu: THISGPU_WGPU_DEVICE=cheking is no device; there are plain, checking, timed";
    assert!(said.contains(wrong), "{said}");
    assert!(said.contains("thisgpu: unsupported: samplers"), "{said}");
    let said = printed("devices_are_named", "timed");
    assert!(!said.contains("is no device"), "{said}");
}

/// Runs a shader that ends with a fault: the device is lost, and nothing panics.
fn lost(options: Options, body: &str) -> Message {
    let gpu = Gpu::new(options);
    let reason = Arc::new(Mutex::new(None));
    let told = reason.clone();
    gpu.device.set_device_lost_callback(move |reason, _| {
        *told.lock().expect("nobody panics") = Some(reason);
    });
    let text = format!("{HEAD}{body}");
    let (a, pipeline) = (gpu.buffer(&[7; 64]), gpu.pipeline(&text));
    let group = gpu.group(&pipeline.get_bind_group_layout(0), &[&a]);
    let again = || {
        gpu.pass(|pass| {
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(2, 1, 1);
        });
    };
    again();
    let message = gpu.message(|message| matches!(message, Message::Fault { .. }));
    assert_eq!(message.line(), Some(marked(&text)), "{message}");
    assert!(message.is_fatal());
    let reason = *reason.lock().expect("nobody panics");
    assert_eq!(reason, Some(wgpu::DeviceLostReason::Unknown));
    // A new device of the adapter works, and what is asked of the old one is no panic.
    again();
    assert_eq!(gpu.reports.take().len(), 1, "what is lost does not run");
    let fresh = gpu.beside();
    assert_eq!(fresh.read(&fresh.buffer(&[3, 4])), [3, 4]);
    message
}

#[test]
fn indices_behind_the_end_lose_the_checking_device() {
    let message = lost(
        Options::checking(),
        "fn later(n: u32) -> u32 { return n + 1u; }
         @compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             a[later(a[g.x] * 9u)] = 1u; // here
         }",
    );
    let Message::Fault { fault, .. } = &message else {
        panic!("{message}");
    };
    let code = thisgpu_wgpu::Bounds::TRAP;
    assert!(
        matches!(fault.kind, FaultKind::Trap { code: it } if it == code),
        "{message}"
    );
}

#[test]
fn endless_loops_lose_the_device() {
    let options = Options::from(SimConfig {
        budget: 10_000,
        ..SimConfig::default()
    });
    let message = lost(
        options,
        "@compute @workgroup_size(1) fn main(@builtin(workgroup_id) g: vec3<u32>) {
             var n = a[g.x];
             while n != 0u { n = (n * 5u) | 1u; } // here
             a[g.x] = n;
         }",
    );
    assert!(message.to_string().contains("budget"), "{message}");
}

#[test]
fn hazards_are_not_found() {
    let (gpu, _) = run(
        Options::timed(),
        "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) {
             a[g.x] = u32(sqrt(f32(g.x))) / 3u;
         }",
    );
    assert!(gpu.reports.messages().is_empty(), "{:?}", gpu.reports);
}
