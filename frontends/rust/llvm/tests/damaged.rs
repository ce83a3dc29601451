//! Texts that are damaged are errors, or something else that compiles or not: nothing panics. `DAMAGED_SEED=S` damages
//! them otherwise.

use cranelift_thisgpu::KernelOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thisgpu_llvm::{Kernel, Module, Program, clif};

#[path = "random/rng.rs"]
#[expect(
    dead_code,
    reason = "the numbers that functions get are made elsewhere"
)]
mod rng;

const TEXT: &str = r#"target datalayout = "e-i64:64-i128:128"
%"T" = type { i32, [4 x i8] }
@table = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr getelementptr (i8, ptr @other, i64 4), [16 x i8] c"\04\00\00\00\00\00\00\00\11\00\00\002\00\00\00" }>, align 8
@other = internal global [2 x i64] [i64 3, i64 -4], align 8
@alias = internal alias i64, ptr @other
; a::k
; Function Attrs: nounwind
define void @k(i64 %x, ptr noundef align 8 %out, float %f) unnamed_addr #0 !dbg !1 {
start:
  %slot = alloca [24 x i8], align 8
  %t = trunc i64 %x to i7, !dbg !3
  %c = icmp slt i7 %t, 5, !dbg !3
  br i1 %c, label %then, label %loop, !dbg !3

then:                                             ; preds = %start
  %v = insertelement <4 x i32> <i32 1, i32 2, i32 3, i32 4>, i32 9, i64 %x
  %w = shufflevector <4 x i32> %v, <4 x i32> poison, <2 x i32> <i32 3, i32 0>
  %b = bitcast <2 x i32> %w to i64
  %p = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %b, i64 %x), !dbg !3
  %q = extractvalue { i64, i1 } %p, 0
  %g = getelementptr inbounds %"T", ptr %slot, i64 %q, i32 1, i64 2
  store i64 %q, ptr %g, align 4
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %slot, ptr align 8 @table, i64 24, i1 false)
  switch i64 %x, label %end [
    i64 1, label %end
    i64 7, label %panic
  ], !dbg !3

loop:                                             ; preds = %loop, %start
  %i = phi i64 [ 0, %start ], [ %j, %loop ]
  %j = add nuw i64 %i, 1
  %s = call float @llvm.fma.f32(float %f, float 0x3FB99999A0000000, float 1.5e+00)
  %n = fptosi float %s to i33
  %o = atomicrmw add ptr %out, i64 %j acq_rel, align 8
  %d = icmp eq i64 %j, 10
  br i1 %d, label %end, label %loop

panic:                                            ; preds = %then
  call void @_RNvNtCs_4core9panicking18panic_bounds_check(i64 1, i64 2, ptr align 8 @table) #1, !dbg !3
  unreachable

end:                                              ; preds = %loop, %then, %then
  %r = phi i64 [ %j, %loop ], [ %q, %then ], [ %q, %then ]
  %e = call i64 %r(ptr %slot, i64 %r)
  %l = load volatile i64, ptr @alias, align 8
  store i64 %l, ptr %out, align 8
  ret void
}
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare float @llvm.fma.f32(float, float, float)
declare void @_RNvNtCs_4core9panicking18panic_bounds_check(i64, i64, ptr) #1
attributes #0 = { nounwind "probe-stack"="inline-asm" }
attributes #1 = { cold noreturn }
!1 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "/k")
!3 = !DILocation(line: 12, column: 7, scope: !1)
"#;

/// The text as CLIF, or what is wrong with it.
fn translated(text: &str) -> Result<String, String> {
    let first = |errors: Vec<thisgpu_llvm::Error>| errors[0].to_string();
    let module = Module::parse("m", text).map_err(|error| error.to_string())?;
    let program = Program::link(vec![module]).map_err(|error| error.to_string())?;
    let kernel = Kernel {
        name: "k".into(),
        options: KernelOptions::default(),
    };
    clif(&program, &[kernel]).map_err(first)
}

/// The text with a few words exchanged, left out or repeated, or cut off.
fn damaged(rng: &mut rng::Rng) -> String {
    let mut words: Vec<&str> = TEXT.split_inclusive([' ', '\n', ',', '(', '[']).collect();
    for _ in 0..1 + rng.below(3) {
        let (at, other) = (rng.below(words.len()), rng.below(words.len()));
        match rng.below(5) {
            0 => drop(words.remove(at)),
            1 => words.swap(at, other),
            2 => words.insert(at, words[other]),
            3 => {
                words[at] = rng.pick(&[
                    "i128 ",
                    "%x ",
                    "0 ",
                    "{ ",
                    "], ",
                    "ptr ",
                    "-1, ",
                    "i1 ",
                    "18446744073709551615 ",
                ])
            }
            _ if rng.one_in(8) => words.truncate(at.max(1)),
            _ => words[at] = words[other],
        }
    }
    words.concat()
}

#[test]
fn nothing_panics() {
    translated(TEXT).unwrap();
    let seed = std::env::var("DAMAGED_SEED").map_or(7, |text| text.parse().unwrap());
    let mut rng = rng::Rng(seed);
    let mut compiled = 0;
    for _ in 0..3000 {
        let text = damaged(&mut rng);
        let result = catch_unwind(AssertUnwindSafe(|| translated(&text)));
        let result = result.unwrap_or_else(|_| panic!("of this text:\n{text}"));
        compiled += u32::from(result.is_ok());
    }
    // Most damage is noticed; what is not needed may be anything.
    assert!((50..2500).contains(&compiled), "{compiled}");
}
