//! Texts in which sites have stayed, been copied, moved or unrolled.

mod generate;
mod interpret;
mod random;

use super::*;
use crate::Module;

/// A module of one kernel, whose blocks are `body`; places are `!dbg !(100 * line)` of the kernel, or of `inner`, which
/// lines above 50 are in.
fn program(body: &str, attribute: &str) -> Program {
    let places: String = (1..80)
        .map(|line| {
            let (scope, inlined) = if line < 50 {
                (2, String::new())
            } else {
                (3, ", inlinedAt: !700".to_string())
            };
            format!(
                "!{} = !DILocation(line: {line}, column: 5, scope: !{scope}{inlined})\n",
                100 * line
            )
        })
        .collect();
    let text = format!(
        "target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128\"\n\
         define void @k(i1 %c, i32 %n) #0 !dbg !2 {{\n{body}}}\n\
         declare void @__thisgpu_bar_sync() #0\n\
         declare i32 @__thisgpu_tid_x() #0\n\
         attributes #0 = {{ {attribute} nounwind }}\n\
         !1 = !DIFile(filename: \"k.rs\", directory: \"/\")\n\
         !2 = distinct !DISubprogram(name: \"k\", linkageName: \"k\", scope: !1, file: !1, line: 1)\n\
         !3 = distinct !DISubprogram(name: \"inner\", linkageName: \"inner\", scope: !1, file: !1, line: 50)\n\
         {places}"
    );
    let module = Module::parse("k", &text).expect("the text is right");
    Program::link(vec![module]).expect("there is one module")
}

fn messages(body: &str, reference: &str) -> Vec<String> {
    let result = check(
        &program(body, "convergent"),
        &program(reference, "convergent"),
    );
    let errors = result.err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

const STRAIGHT: &str = "  br i1 %c, label %a, label %b
a:
  br label %j
b:
  br label %j
j:
  call void @__thisgpu_bar_sync(), !dbg !300
  ret void
";

const LOOP: &str = "  br label %h
h:
  %i = phi i32 [ 0, %0 ], [ %m, %l ]
  br i1 %c, label %t, label %l
t:
  call void @__thisgpu_bar_sync(), !dbg !300
  br label %l
l:
  %m = add i32 %i, 1
  %d = icmp slt i32 %m, 2
  br i1 %d, label %h, label %e
e:
  ret void
";

#[test]
fn what_stays_is_right() {
    assert_eq!(messages(STRAIGHT, STRAIGHT), [""; 0]);
    assert_eq!(messages(LOOP, LOOP), [""; 0]);
    // Code that is never reached may go.
    assert_eq!(messages("  ret void\n", STRAIGHT), [""; 0]);
}

#[test]
fn a_copy_in_each_arm_is_wrong() {
    let copied = "  br i1 %c, label %a, label %b
a:
  call void @__thisgpu_bar_sync(), !dbg !300
  ret void
b:
  call void @__thisgpu_bar_sync(), !dbg !300
  ret void
";
    let found = messages(copied, STRAIGHT);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("k.rs:3:5: `bar_sync` stands in several branches"),
        "{found:?}"
    );
}

#[test]
fn unrolled_turns_follow_each_other() {
    let unrolled = "  br i1 %c, label %a, label %b
a:
  call void @__thisgpu_bar_sync(), !dbg !300
  br label %b
b:
  br i1 %c, label %d, label %e
d:
  call void @__thisgpu_bar_sync(), !dbg !300
  br label %e
e:
  ret void
";
    assert_eq!(messages(unrolled, LOOP), [""; 0]);
    // Without a loop to unroll the same text is wrong.
    let once = "  br i1 %c, label %a, label %b
a:
  call void @__thisgpu_bar_sync(), !dbg !300
  br label %b
b:
  ret void
";
    assert_eq!(messages(unrolled, once).len(), 1);
}

#[test]
fn moved_sites_are_wrong() {
    let outside = "  call void @__thisgpu_bar_sync(), !dbg !300\n  ret void\n";
    assert_eq!(messages(outside, LOOP), [""; 0]);
    let found = messages(LOOP, outside);
    assert!(found[0].contains("is in more loops"), "{found:?}");
    let elsewhere = "  call void @__thisgpu_bar_sync(), !dbg !400\n  ret void\n";
    let found = messages(elsewhere, outside);
    assert!(
        found[0].starts_with("k.rs:4:5: `bar_sync` is not called from here"),
        "{found:?}"
    );
    let nowhere = "  call void @__thisgpu_bar_sync()\n  ret void\n";
    let found = messages(nowhere, outside);
    assert!(found[0].contains("has no place"), "{found:?}");
    // The same line, but of another function that was inlined.
    let inlined = "  call void @__thisgpu_bar_sync(), !dbg !5100\n  ret void\n";
    assert_eq!(messages(inlined, inlined), [""; 0]);
    assert_eq!(messages(inlined, outside).len(), 1);
}

#[test]
fn what_llvm_was_not_told_is_wrong() {
    let reference = program(STRAIGHT, "");
    let errors = check(&program(STRAIGHT, ""), &reference).expect_err("nothing is convergent");
    assert!(
        errors[0].to_string().contains("without being `convergent`"),
        "{errors:?}"
    );
    check(&program(STRAIGHT, "convergent"), &reference).expect("the reference need not be");
}
