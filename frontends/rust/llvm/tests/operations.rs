//! Operations that rustc writes seldom or only at some levels, as texts, on the simulator; and what is refused.

use cranelift_thisgpu::{Device, Grid, KernelOptions, Options, SimConfig};
use thisgpu_llvm::{Error, Kernel, Module, Program, Translation, translate};

const HEADER: &str = "target datalayout = \"e-i64:64-i128:128\"\n";
const FOOTER: &str = r#"
attributes #0 = { cold noreturn }
!1 = distinct !DISubprogram(name: "k", scope: !2, file: !2, line: 3)
!2 = !DIFile(filename: "src/lib.rs", directory: "/k")
!3 = !DILocation(line: 12, column: 7, scope: !1)
"#;

fn compiled(text: &str) -> Result<Translation, Vec<Error>> {
    let module = Module::parse("m", &format!("{HEADER}{text}{FOOTER}")).unwrap();
    let program = Program::link(vec![module]).unwrap();
    let kernel = Kernel {
        name: "k".into(),
        options: KernelOptions::default(),
    };
    translate(&program, &[kernel], &Options::default())
}

/// A kernel that stores `%r`.
fn program(declarations: &str, body: &str) -> String {
    format!(
        "{declarations}\ndefine void @k(i64 %x, ptr %out) {{\nstart:\n{body}\n  store i64 %r, ptr %out, align 8\n  ret \
         void\n}}\n"
    )
}

/// What a body that computes `%r`, an i64, from `%x`, an i64, gives.
fn run(declarations: &str, body: &str, x: u64) -> u64 {
    let translation = compiled(&program(declarations, body))
        .unwrap_or_else(|errors| panic!("{body}: {}", errors[0]));
    let device = Device::simulator(SimConfig::default());
    let out = device.zeros::<u64>(1).unwrap();
    let kernel = device.load(&translation.code).unwrap().kernel("k").unwrap();
    let launch = kernel.launch(Grid::new([1; 3], [1; 3])).args(&[&x, &out]);
    launch
        .run()
        .unwrap_or_else(|error| panic!("{body}: {error}"));
    out.to_vec().unwrap()[0]
}

#[test]
fn operations_give_what_llvm_says() {
    let cases: &[(&str, u64, u64)] = &[
        // Integers of odd widths.
        (
            "%a = trunc i64 %x to i24\n%b = mul i24 %a, %a\n%r = zext i24 %b to i64",
            0x1_2345,
            0x1_2345_u64.pow(2) & 0xff_ffff,
        ),
        (
            "%a = trunc i64 %x to i7\n%b = ashr i7 %a, 2\n%r = sext i7 %b to i64",
            0x44,
            -15_i64 as u64,
        ),
        (
            "%a = trunc i64 %x to i33\n%b = sdiv i33 %a, 3\n%r = sext i33 %b to i64",
            0x1_ffff_fffa,
            -2_i64 as u64,
        ),
        (
            "%a = trunc i64 %x to i5\n%b = shl i5 %a, 3\n%c = icmp slt i5 %b, 0\n%r = zext i1 %c to i64",
            2,
            1,
        ),
        (
            "%a = zext i64 %x to i100\n%b = shl i100 %a, 40\n%c = lshr i100 %b, 36\n%r = trunc i100 %c to i64",
            5,
            80,
        ),
        (
            "%a = trunc i64 %x to i1\n%r = sext i1 %a to i64",
            3,
            u64::MAX,
        ),
        // Intrinsics of odd widths and shifts of two numbers.
        (
            "%a = trunc i64 %x to i20\n%b = call i20 @llvm.ctlz.i20(i20 %a, i1 false)\n%r = zext i20 %b to i64",
            0xff,
            12,
        ),
        (
            "%a = trunc i64 %x to i20\n%b = call i20 @llvm.cttz.i20(i20 %a, i1 false)\n%r = zext i20 %b to i64",
            0,
            20,
        ),
        (
            "%a = trunc i64 %x to i24\n%b = call i24 @llvm.bswap.i24(i24 %a)\n%r = zext i24 %b to i64",
            0x12_3456,
            0x56_3412,
        ),
        (
            "%a = trunc i64 %x to i24\n%b = call i24 @llvm.fshl.i24(i24 %a, i24 %a, i24 28)\n%r = zext i24 %b to i64",
            0x80_0001,
            0x18,
        ),
        (
            "%r = call i64 @llvm.fshr.i64(i64 1, i64 %x, i64 4)",
            0x50,
            0x1000_0000_0000_0005,
        ),
        (
            "%r = call i64 @llvm.fshl.i64(i64 %x, i64 9, i64 64)",
            0x50,
            0x50,
        ),
        (
            "%a = trunc i64 %x to i8\n%b = call i8 @llvm.sshl.sat.i8(i8 %a, i8 3)\n%r = sext i8 %b to i64",
            100,
            127,
        ),
        (
            "%a = trunc i64 %x to i8\n%b = call i8 @llvm.ssub.sat.i8(i8 %a, i8 100)\n%r = sext i8 %b to i64",
            0x90,
            -128_i64 as u64,
        ),
        (
            "%a = trunc i64 %x to i12\n%p = call { i12, i1 } @llvm.smul.with.overflow.i12(i12 %a, i12 20)\n%b = \
             extractvalue { i12, i1 } %p, 1\n%r = zext i1 %b to i64",
            103,
            1,
        ),
        (
            "%a = trunc i64 %x to i12\n%p = call { i12, i1 } @llvm.smul.with.overflow.i12(i12 %a, i12 20)\n%b = \
             extractvalue { i12, i1 } %p, 0\n%r = sext i12 %b to i64",
            102,
            2040,
        ),
        (
            "%a = call i8 @llvm.scmp.i8.i64(i64 %x, i64 -1)\n%r = sext i8 %a to i64",
            -5_i64 as u64,
            -1_i64 as u64,
        ),
        // Vectors: lanes, packed bits, reductions, elements that are known late.
        (
            "%v = insertelement <4 x i32> <i32 1, i32 2, i32 3, i32 4>, i32 9, i64 %x\n%s = call i32 \
             @llvm.vector.reduce.add.v4i32(<4 x i32> %v)\n%r = zext i32 %s to i64",
            2,
            16,
        ),
        (
            "%v = insertelement <2 x i64> splat (i64 5), i64 %x, i32 1\n%c = icmp ugt <2 x i64> %v, splat (i64 6)\n%b \
             = bitcast <2 x i1> %c to i2\n%r = zext i2 %b to i64",
            7,
            2,
        ),
        (
            "%b = bitcast i64 %x to <8 x i8>\n%s = shufflevector <8 x i8> %b, <8 x i8> poison, <8 x i32> <i32 7, i32 \
             6, i32 5, i32 4, i32 3, i32 2, i32 1, i32 0>\n%r = bitcast <8 x i8> %s to i64",
            0x0102_0304_0506_0708,
            0x0807_0605_0403_0201,
        ),
        (
            "%i = and i64 %x, 3\n%e = extractelement <4 x i16> <i16 10, i16 20, i16 30, i16 40>, i64 %i\n%r = zext i16 \
             %e to i64",
            6,
            30,
        ),
        (
            "%t = trunc i64 %x to i12\n%v = bitcast i12 %t to <3 x i4>\n%e = extractelement <3 x i4> %v, i64 1\n%r = \
             zext i4 %e to i64",
            0xabc,
            0xb,
        ),
        (
            "%p = alloca <12 x i1>, align 2\n%t = trunc i64 %x to i12\n%v = bitcast i12 %t to <12 x i1>\nstore <12 x \
             i1> %v, ptr %p, align 2\n%l = load i16, ptr %p, align 2\n%r = zext i16 %l to i64",
            0x9bc,
            0x9bc,
        ),
        // Floats.
        (
            "%f = bitcast i64 %x to double\n%c = call i1 @llvm.is.fpclass.f64(double %f, i32 144)\n%r = zext i1 %c to \
             i64",
            1,
            1,
        ),
        (
            "%f = bitcast i64 %x to double\n%c = call i1 @llvm.is.fpclass.f64(double %f, i32 3)\n%r = zext i1 %c to \
             i64",
            0x7ff0_0000_0000_0000,
            0,
        ),
        (
            "%f = bitcast i64 %x to double\n%c = call i1 @llvm.is.fpclass.f64(double %f, i32 516)\n%r = zext i1 %c to \
             i64",
            0xfff0_0000_0000_0000,
            1,
        ),
        (
            "%f = bitcast i64 %x to double\n%i = call i20 @llvm.fptosi.sat.i20.f64(double %f)\n%r = sext i20 %i to i64",
            (-1e9_f64).to_bits(),
            -524_288_i64 as u64,
        ),
        (
            "%f = bitcast i64 %x to double\n%h = fptrunc double %f to half\n%g = fadd half %h, 0xH3C00\n%b = bitcast \
             half %g to i16\n%r = zext i16 %b to i64",
            2.0_f64.to_bits(),
            0x4200,
        ),
        (
            "%f = bitcast i64 %x to double\n%m = call double @llvm.minimumnum.f64(double %f, double 3.0)\n%r = bitcast \
             double %m to i64",
            f64::NAN.to_bits(),
            3.0_f64.to_bits(),
        ),
        (
            "%f = bitcast i64 %x to double\n%m = frem double %f, 3.0\n%r = bitcast double %m to i64",
            7.5_f64.to_bits(),
            1.5_f64.to_bits(),
        ),
        (
            "%f = bitcast i64 %x to double\n%m = call double @llvm.powi.f64.i32(double %f, i32 3)\n%r = bitcast double \
             %m to i64",
            4.0_f64.to_bits(),
            64.0_f64.to_bits(),
        ),
        // Memory: odd sizes, low alignments, copies, fills.
        (
            "%p = alloca i64, align 8\nstore i64 -1, ptr %p, align 8\n%t = trunc i64 %x to i24\nstore i24 %t, ptr %p, \
             align 4\n%r = load i64, ptr %p, align 8",
            0xffff_0012_3456,
            0xffff_ffff_ff12_3456,
        ),
        (
            "%p = alloca [24 x i8], align 8\n%q = getelementptr i8, ptr %p, i64 2\nstore i64 %x, ptr %q, align 2\n%s = \
             getelementptr i8, ptr %p, i64 4\n%l = load i32, ptr %s, align 4\n%r = zext i32 %l to i64",
            0x1122_3344_5566_7788,
            0x3344_5566,
        ),
        (
            "%p = alloca [64 x i8], align 8\ncall void @llvm.memset.p0.i64(ptr align 8 %p, i8 7, i64 64, i1 \
             false)\nstore i64 %x, ptr %p, align 8\n%q = getelementptr i8, ptr %p, i64 3\ncall void \
            @llvm.memmove.p0.p0.i64(ptr align 1 %q, ptr align 8 %p, i64 10, i1 false)\n%s = getelementptr i8, ptr %p, \
            i64 8\n%r = load i64, ptr %s, align 8",
            0x0102_0304_0506_0708,
            0x0707_0707_0701_0203,
        ),
        (
            "%p = alloca i64, align 64\n%a = ptrtoint ptr %p to i64\n%b = and i64 %a, 63\nstore i64 %x, ptr %p, align \
             64\n%l = load i64, ptr %p, align 64\n%r = add i64 %l, %b",
            77,
            77,
        ),
        // Atomics that are loops.
        (
            "%p = alloca float, align 4\nstore float 1.5, ptr %p, align 4\n%o = atomicrmw fadd ptr %p, float 2.0 \
             monotonic, align 4\n%l = load i32, ptr %p, align 4\n%r = zext i32 %l to i64",
            0,
            3.5_f32.to_bits() as u64,
        ),
        (
            "%p = alloca i32, align 4\n%t = trunc i64 %x to i32\nstore i32 %t, ptr %p, align 4\n%o = atomicrmw \
             uinc_wrap ptr %p, i32 9 seq_cst, align 4\n%l = load i32, ptr %p, align 4\n%r = zext i32 %l to i64",
            9,
            0,
        ),
        (
            "%p = alloca i8, align 1\n%t = trunc i64 %x to i8\nstore i8 %t, ptr %p, align 1\n%c = cmpxchg weak ptr %p, \
             i8 3, i8 5 acq_rel monotonic, align 1\n%ok = extractvalue { i8, i1 } %c, 1\n%l = load volatile i8, ptr \
            %p, align 1\n%s = select i1 %ok, i8 %l, i8 99\n%r = zext i8 %s to i64",
            3,
            5,
        ),
        // Constants.
        (
            "%l = load i64, ptr getelementptr inbounds (i8, ptr @table, i64 8), align 8\n%r = add i64 %l, %x",
            1,
            31,
        ),
        (
            "%p = load ptr, ptr @pointer, align 8\n%l = load i64, ptr %p, align 8\n%r = add i64 %l, %x",
            1,
            41,
        ),
        (
            "%q = freeze i64 undef\n%z = and i64 %q, 0\n%r = or i64 %z, %x",
            6,
            6,
        ),
    ];
    let names = [
        "i20 @llvm.ctlz.i20(i20, i1)",
        "i20 @llvm.cttz.i20(i20, i1)",
        "i24 @llvm.bswap.i24(i24)",
        "i24 @llvm.fshl.i24(i24, i24, i24)",
        "i64 @llvm.fshr.i64(i64, i64, i64)",
        "i64 @llvm.fshl.i64(i64, i64, i64)",
        "i8 @llvm.sshl.sat.i8(i8, i8)",
        "i8 @llvm.ssub.sat.i8(i8, i8)",
        "{ i12, i1 } @llvm.smul.with.overflow.i12(i12, i12)",
        "i8 @llvm.scmp.i8.i64(i64, i64)",
        "i32 @llvm.vector.reduce.add.v4i32(<4 x i32>)",
        "i1 @llvm.is.fpclass.f64(double, i32)",
        "i20 @llvm.fptosi.sat.i20.f64(double)",
        "double @llvm.minimumnum.f64(double, double)",
        "double @llvm.powi.f64.i32(double, i32)",
        "void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        "void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    ];
    let mut declarations: String = names
        .iter()
        .map(|name| format!("declare {name}\n"))
        .collect();
    declarations.push_str(
        "@table = private constant [3 x i64] [i64 20, i64 30, i64 40], align 8\n@pointer = internal global ptr \
         getelementptr (i8, ptr @alias, i64 8), align 8\n\
         @alias = internal alias i64, ptr getelementptr (i8, ptr @table, i64 8)\n",
    );
    for (body, x, expected) in cases {
        let found = run(&declarations, body, *x);
        assert_eq!(
            found, *expected,
            "{body}\nof {x:#x}: {found:#x}, not {expected:#x}"
        );
    }
}

#[test]
fn control_flow_with_phis_and_switches() {
    let text = r#"
define void @k(i64 %x, ptr %out) {
start:
  switch i64 %x, label %never [
    i64 -1, label %join
    i64 3, label %join
    i64 4, label %loop
    i64 9, label %other
  ]
loop:
  %i = phi i64 [ 0, %start ], [ %j, %loop ]
  %a = phi i64 [ 1, %start ], [ %b, %loop ]
  %b = phi i64 [ 2, %start ], [ %a, %loop ]
  %j = add i64 %i, 1
  %c = icmp eq i64 %j, 4
  br i1 %c, label %join, label %loop
other:
  %s = select i1 true, { i64, i8 } { i64 8, i8 1 }, { i64, i8 } zeroinitializer
  %v = extractvalue { i64, i8 } %s, 0
  br label %join
never:
  unreachable
join:
  %r = phi i64 [ 100, %start ], [ 100, %start ], [ %a, %loop ], [ %v, %other ]
  store i64 %r, ptr %out, align 8
  ret void
}
"#;
    let translation = compiled(text).unwrap();
    let device = Device::simulator(SimConfig::default());
    let kernel = device.load(&translation.code).unwrap().kernel("k").unwrap();
    for (x, expected) in [(u64::MAX, 100), (3, 100), (4, 2), (9, 8)] {
        let out = device.zeros::<u64>(1).unwrap();
        kernel
            .launch(Grid::new([1; 3], [1; 3]))
            .args(&[&x, &out])
            .run()
            .unwrap();
        assert_eq!(out.to_vec().unwrap(), [expected], "{x}");
    }
}

#[test]
fn what_is_refused_names_the_line_and_says_why() {
    let cases = [
        ("%a = alloca i8, i64 %x, align 1, !dbg !3", "known late"),
        (
            "%a = load atomic i128, ptr %out acquire, align 16, !dbg !3",
            "128 bits",
        ),
        ("%a = zext i64 %x to i512, !dbg !3", "512 bits"),
        (
            "%a = load x86_fp80, ptr %out, align 16, !dbg !3",
            "x86_fp80",
        ),
        (
            "%a = load ptr addrspace(3), ptr %out, align 8, !dbg !3",
            "address space 3",
        ),
        (
            "call void asm sideeffect \"nop\", \"\"(), !dbg !3",
            "assembly of the host",
        ),
        ("call void @missing(), !dbg !3", "`a::missing` has no body"),
        (
            "%a = call ptr @__rust_alloc(i64 8, i64 8), !dbg !3",
            "the program has no heap",
        ),
        ("%a = call i32 @__thisgpu_tid_w(), !dbg !3", "no intrinsic"),
        ("%a = call i64 @__thisgpu_tid_x(), !dbg !3", "other types"),
        (
            "%a = load i64, ptr @local, align 8, !dbg !3",
            "thread-local",
        ),
        (
            "%a = load i64, ptr @elsewhere, align 8, !dbg !3",
            "defined nowhere",
        ),
        (
            "%a = call i64 @llvm.readcyclecounter(), !dbg !3",
            "llvm.readcyclecounter",
        ),
        (
            "%a = va_arg ptr %out, i32, !dbg !3",
            "`va_arg` is not supported",
        ),
        (
            "%a = landingpad { ptr, i32 } cleanup, !dbg !3",
            "panic=abort",
        ),
        (
            "fence seq_cst\n  call void @missing(i64 %x), !dbg !3",
            "no body",
        ),
    ];
    for (body, words) in cases {
        let text = format!(
            "@local = thread_local global i64 0\n@elsewhere = external global i64\n; a::missing\ndeclare void \
             @missing()\ndeclare ptr @__rust_alloc(i64, i64)\n\
             declare i32 @__thisgpu_tid_w()\ndeclare i64 @__thisgpu_tid_x()\ndeclare i64 @llvm.readcyclecounter()\n\
             define void @k(i64 %x, ptr %out) !dbg !1 {{\nstart:\n  {body}\n  ret void\n}}\n"
        );
        let errors = compiled(&text).expect_err(body);
        let said = errors[0].to_string();
        assert!(
            said.starts_with("src/lib.rs:12:7: ") && said.contains(words),
            "{body}: {said}"
        );
        assert_eq!(errors.len(), 1, "{body}: {errors:?}");
    }
}

#[test]
fn a_value_of_another_type_is_an_error_and_no_panic() {
    let errors = compiled("define void @k(i64 %x) {\nstart:\n  %a = add i8 %x, 1\n  ret void\n}\n");
    assert!(errors.unwrap_err()[0].to_string().contains("used as"));
}

/// A product of 128 bits by 128, of which rustc's division by a constant takes the upper half.
#[test]
fn products_of_256_bits_are_whole() {
    let body = "%a = zext i64 %x to i128\n%b = shl i128 %a, 63\n%c = or i128 %b, 12345\n%w = zext i128 %c to i256\n%m = \
                mul nuw i256 %w, 76624777043294442917917351357515459181\n%n = add i256 %m, %w\n%s = lshr i256 %n, \
                SHIFT\n%t = trunc i256 %s to i128\n%h = lshr i128 %t, 64\n%i = xor i128 %h, %t\n%r = trunc i128 %i to i64";
    // 64 digits of 32 bits each are enough to see every carry.
    let product = |x: u128, y: u128| {
        let digits = |value: u128| {
            (0..8).map(move |at| {
                if at < 4 {
                    (value >> (32 * at)) as u32
                } else {
                    0
                }
            })
        };
        let mut all = [0u64; 9];
        for (i, a) in digits(x).enumerate() {
            let mut carry = 0u64;
            for (j, b) in digits(y).take(8 - i).enumerate() {
                let sum = all[i + j] + u64::from(a) * u64::from(b) + carry;
                (all[i + j], carry) = (sum & 0xffff_ffff, sum >> 32);
            }
        }
        all
    };
    for x in [
        0,
        1,
        3,
        u64::MAX,
        0x8000_0000_0000_0001,
        0x1234_5678_9abc_def0,
    ] {
        let c = (u128::from(x) << 63) | 12345;
        let mut all = product(c, 76_624_777_043_294_442_917_917_351_357_515_459_181);
        let mut carry = 0;
        for (at, digit) in all.iter_mut().enumerate().take(8) {
            let own = if at < 4 { (c >> (32 * at)) as u32 } else { 0 };
            let sum = *digit + u64::from(own) + carry;
            (*digit, carry) = (sum & 0xffff_ffff, sum >> 32);
        }
        for shift in [0, 1, 64, 127, 128, 179, 255] {
            let bit = |at: usize| {
                let at = at + shift;
                at < 256 && all[at / 32] >> (at % 32) & 1 == 1
            };
            let low = (0..128).fold(0u128, |sum, at| sum | u128::from(bit(at)) << at);
            let expected = ((low >> 64) ^ low) as u64;
            let body = body.replace("SHIFT", &shift.to_string());
            assert_eq!(run("", &body, x), expected, "{x:#x} >> {shift}");
        }
    }
}

/// LLVM cuts copies of enumerations into pieces, and an address that stands in one with them.
#[test]
fn parts_of_addresses_are_numbers() {
    let text = "@text = private constant [5 x i8] c\"hello\"";
    let stored = "%p = alloca ptr, align 8\nstore ptr @text, ptr %p, align 8\nstore i8 ptrtoint (ptr @text to i8), ptr \
                  %p, align 8\n%q = load ptr, ptr %p, align 8\n%b = load i8, ptr %q, align 1\n%r = zext i8 %b to i64";
    assert_eq!(run(text, stored, 0), u64::from(b'h'));
    let chosen = "%c = icmp eq i64 %x, 0\nbr i1 %c, label %one, label %two\none:\nbr label %two\ntwo:\n%part = phi i32 \
                  [ trunc (i64 add (i64 ptrtoint (ptr @text to i64), i64 3) to i32), %one ], [ 5, %start ]\n%whole = \
                  ptrtoint ptr @text to i64\n%low = trunc i64 %whole to i32\n%d = sub i32 %part, %low\n%w = select i1 \
                  %c, i32 %d, i32 %part\n%r = zext i32 %w to i64";
    assert_eq!((run(text, chosen, 0), run(text, chosen, 1)), (3, 5));
}

/// Declarations, a body, and what it gives.
type Case = (&'static str, &'static str, fn(u64) -> u64);

/// Assembly that crates have for x86-64, and its intrinsics.
#[test]
fn what_is_written_for_the_hosts_processor_has_its_meaning() {
    let flags = "~{dirflag},~{fpsr},~{flags}";
    let cases: &[Case] = &[
        // A barrier for the compiler alone.
        (
            "",
            "call void asm sideeffect inteldialect \"# ${0}\", \"r,~{memory}\"(i64 %x)\n%r = add i64 %x, 1",
            |x| x.wrapping_add(1),
        ),
        (
            "",
            "%f = uitofp i64 %x to double\n%s = call double asm inteldialect \"sqrtsd ${0:x}, ${0:x}\", \
             \"=&x,0,FLAGS\"(double %f)\n%r = bitcast double %s to i64",
            |x| (x as f64).sqrt().to_bits(),
        ),
        (
            "",
            "%o = or i64 %x, 65536\n%d = call { i64, i64 } asm inteldialect \"div ${2:q}\", \
             \"=&{dx},=&{ax},r,0,1,FLAGS\"(i64 %o, i64 65535, i64 %x)\n%a = extractvalue { i64, i64 } %d, 0\n%b = \
             extractvalue { i64, i64 } %d, 1\n%c = mul i64 %b, 31\n%r = xor i64 %a, %c",
            |x| {
                let (whole, by) = (u128::from(x) | 65535 << 64, u128::from(x | 65536));
                (whole % by) as u64 ^ ((whole / by) as u64).wrapping_mul(31)
            },
        ),
        (
            "",
            "%c = trunc i64 %x to i8\n%r = call i64 asm inteldialect \"test ${1}, ${1}\\0Acmovnz ${0:q}, ${3:q}\", \
             \"=r,q,0,r,FLAGS\"(i8 %c, i64 7, i64 %x)",
            |x| if x as u8 != 0 { x } else { 7 },
        ),
        (
            "",
            "%d = call { i64, i16 } asm inteldialect \"xor ${0:q}, ${3:q}\\0Acmovz ${1:k}, ${5:k}\", \
             \"=&r,=r,0,r,1,r,FLAGS\"(i64 %x, i64 256, i16 5, i16 9)\n%a = extractvalue { i64, i16 } %d, 1\n%r = zext \
             i16 %a to i64",
            |x| if x == 256 { 9 } else { 5 },
        ),
        (
            "declare { i8, i64 } @llvm.x86.addcarry.64(i8, i64, i64)\ndeclare { i8, i64 } @llvm.x86.subborrow.64(i8, i64, \
             i64)",
            "%a = call { i8, i64 } @llvm.x86.addcarry.64(i8 2, i64 %x, i64 -1)\n%b = extractvalue { i8, i64 } %a, 0\n%c \
             = extractvalue { i8, i64 } %a, 1\n%d = call { i8, i64 } @llvm.x86.subborrow.64(i8 %b, i64 %c, i64 256)\n%e = \
             extractvalue { i8, i64 } %d, 0\n%f = extractvalue { i8, i64 } %d, 1\n%g = zext i8 %e to i64\n%h = shl i64 \
             %g, 62\n%r = xor i64 %f, %h",
            // Minus one and the carry are nothing, and the carry out is always there.
            |x| {
                let (part, first) = x.overflowing_sub(256);
                let (whole, second) = part.overflowing_sub(1);
                whole ^ u64::from(first || second) << 62
            },
        ),
        (
            "declare <2 x double> @llvm.x86.sse2.min.pd(<2 x double>, <2 x double>)\ndeclare <2 x double> \
             @llvm.x86.sse2.cmp.pd(<2 x double>, <2 x double>, i8)",
            "%f = bitcast i64 %x to double\n%v = insertelement <2 x double> zeroinitializer, double %f, i32 0\n%m = call \
             <2 x double> @llvm.x86.sse2.min.pd(<2 x double> %v, <2 x double> splat (double 1.000000e+00))\n%k = call <2 x \
             double> @llvm.x86.sse2.cmp.pd(<2 x double> %v, <2 x double> splat (double 1.000000e+00), i8 5)\n%a = \
             extractelement <2 x double> %m, i32 0\n%b = extractelement <2 x double> %k, i32 0\n%c = bitcast double %a to \
             i64\n%d = bitcast double %b to i64\n%e = and i64 %d, 255\n%r = xor i64 %c, %e",
            |x| {
                let x = f64::from_bits(x);
                let least = if x < 1.0 { x } else { 1.0 };
                least.to_bits() ^ if x < 1.0 { 0 } else { 255 }
            },
        ),
    ];
    for (declarations, body, expected) in cases {
        let body = body.replace("FLAGS", flags);
        for x in [
            0,
            1,
            255,
            256,
            0x3fe0_0000_0000_0000,
            u64::MAX,
            0x8000_0000_0000_0000,
            0x7ff8_0000_0000_0000,
        ] {
            assert_eq!(run(declarations, &body, x), expected(x), "{body} of {x:#x}");
        }
    }
}

/// Constants of the program that are indexed alike in all lanes are read from constant memory.
#[test]
fn what_is_constant_is_in_constant_memory() {
    let body = "%i = and i64 %x, 3\n%p = getelementptr inbounds [4 x i64], ptr @t, i64 0, i64 %i\n%r = load i64, ptr \
                %p";
    let values = [7, u64::MAX, 1 << 40, 9];
    let declared = format!("@t = private constant [4 x i64] [{}], align 8", {
        let elements = values.map(|value| format!("i64 {}", value as i64));
        elements.join(", ")
    });
    for x in 0..5 {
        assert_eq!(run(&declared, body, x), values[x as usize & 3]);
    }
    let text = program(&declared, body);
    let translation = compiled(&text).unwrap();
    assert_eq!(
        translation.code.object().constants[..],
        *values.map(u64::to_le_bytes).as_flattened()
    );
}

/// A symbol that nobody defines is the library's, the library's own are those of the program, and panics say what.
#[test]
fn libraries_are_linked_behind_the_program() {
    use thisgpu_llvm::Panics;
    let program = format!(
        "{HEADER}define void @k(i64 %x, ptr %out) {{\nstart:\n  %a = call i64 @_Rtwice(i64 %x)\n  store i64 %a, ptr %out, \
         align 8\n  %b = icmp ugt i64 %x, 9\n  br i1 %b, label %bad, label %good\nbad:\n  call void @_Rfail(i64 %x) #0\n  \
         unreachable\ngood:\n  ret void\n}}\ndefine i64 @_Rown(i64 %x) {{\n  ret i64 100\n}}\ndeclare i64 \
         @_Rtwice(i64)\ndeclare void @_Rfail(i64) #0\n{FOOTER}"
    );
    let library = format!(
        "{HEADER}@said = global i64 0\ndefine internal i64 @_Rown(i64 %x) {{\n  ret i64 1\n}}\ndefine internal i64 \
         @_Rtwice(i64 %x) {{\n  %a = add i64 %x, %x\n  %b = call i64 @_Rown(i64 %a)\n  %c = add i64 %a, %b\n  ret i64 \
         %c\n}}\ndefine internal void @_Rfail(i64 %x) #0 {{\n  store i64 %x, ptr @said\n  call void @__thisgpu_panicked() \
         #0\n  unreachable\n}}\ndefine internal void @_Runused() {{\n  call void @nonsense()\n  ret void\n}}\ndeclare void \
         @nonsense()\ndeclare void @__thisgpu_panicked() #0\n{FOOTER}"
    );
    let parsed = Module::parse("m", &program).unwrap();
    for (panics, said) in [(Panics::Trap, None), (Panics::Message, Some(10))] {
        let linked = Program::link(vec![parsed.clone()]).unwrap();
        let wanted = linked.undefined(Panics::Message);
        assert_eq!(wanted, ["_Rfail", "_Rtwice"]);
        assert_eq!(linked.undefined(Panics::Trap), ["_Rtwice"]);
        let module = Module::parse_part("library", &library, wanted.iter().copied()).unwrap();
        assert!(!module.items.contains_key("_Runused"));
        let linked = linked.with_library(module).with_panics(panics);
        assert!(linked.undefined(panics).is_empty());
        let kernel = Kernel {
            name: "k".into(),
            options: KernelOptions::default(),
        };
        let code = translate(&linked, &[kernel], &Options::default())
            .unwrap()
            .code;
        let device = Device::simulator(SimConfig::default());
        let out = device.zeros::<u64>(1).unwrap();
        let module = device.load(&code).unwrap();
        let launch = |x: u64| {
            let kernel = module.kernel("k").unwrap();
            kernel
                .launch(Grid::new([1; 3], [1; 3]))
                .args(&[&x, &out])
                .run()
        };
        launch(4).unwrap();
        assert_eq!(out.to_vec().unwrap(), [108]);
        let fault = launch(10).unwrap_err().to_string();
        assert!(fault.contains("trap"), "{fault}");
        let written = module
            .data("said")
            .map(|said| said.read::<u64>().unwrap()[0]);
        assert_eq!(written, said);
    }
}
