//! The text: what may be written and how, errors with their places, objects through their listing; in `errata` every
//! example of the documents and every refusal that docs/errata.md predicts.

#![cfg(feature = "asm")]

#[path = "assembly/errata.rs"]
mod errata;

use cranelift_thisgpu::asm::{self, assemble, listing};
use cranelift_thisgpu::object::Object;
use cranelift_thisgpu::unstable::isa::encode::all_forms;
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::{PReg, VReg, decode};

/// Instructions as the documents write them in examples are printed like that.
#[test]
fn prints_as_the_documents_write() {
    for text in [
        "HADD2.SAT R3, R6, -R7 ;",
        "HADD2.FTZ R1, -|R4|, -1, 1 ;",
        "HMUL2.SAT R3, R6, -R7.H0_H0 ;",
        "HMUL2.FTZ R1, -|R4|, 0, -1 ;",
        "HMNMX2 R0, R1, 0.125, -2, !P1 ;",
        "HSETP2.FTZ.GTU.OR P0, P1, -|R5|, -1, 0, !PT ;",
        "HSET2.FTZ.GTU.OR.BF R0, -|R5|, -1, 0, !PT ;",
        "HFMA2 R0, R1, R2.H1_H1, RZ ;",
        "HFMA2.BF16_V2.RELU R0, R1, |R2.H0_H0|, c[0x0][0x160].H1_H1 ;",
        "IADD R0, R1, -0x114514 ;",
        "IADD R0, R1, -9 ;",
        "IADD R0, R1, -0xa ;",
        "IADD R0, R1, 0x7fffffff ;",
        "IADD.X R1, P1, R3, ~R5, P0 ;",
        "@!P0 IADD R0, R1, R2 &req={0,3} &wr=1 &rd=2 ?4 ;",
        "IMAD.HI.X.U32 R1, R2, 0x114514, R5, P0 ;",
        "IMAD.WIDE.X R[2:3], RZ, RZ, RZ, P0 ;",
        "IMAD.WIDE.U32 R[0:1], R7, 0x114514, -R[4:5] ;",
        "IDP.2A.HI.U16.S8 R0, R1, R2, 0 ;",
        "IDP.4A.U8.S8 R0, R1, R2, 0 ;",
        "LEA.HI.X R1, R2, c[0x0][0x160], R7, 3, P0 ;",
        "P2R.B1 R7, PR, R0, 0xff ;",
        "R2P PR, R7.B1, 0xff ;",
        "ISETP.GT.OR.X P0, R5, 0, PT, P0 ;",
        "ISET.GT.OR.BF.X R0, R5, 0, PT, P0 ;",
        "LOP3.POR R7, R7, RZ, R0, 0x1a, !PT ;",
        "LOP3.PAND P1, R7, R1, RZ, R0, 0x1a, P0 ;",
        "PLOP3 P0, P1, !P2, UPT, 0x1a ;",
        "SHF.L.HI R7, R7, 0x24, R0 ;",
        "SHF.R.WRAP.U64 R7, R7, UR3, R0 ;",
        "MOV.64 R[0:1], R[2:3] ;",
        "SETGPR R[UR2+0x1], R1 ;",
        "GETGPR R1, R[UR2-0x1] ;",
        "MUFU.EX2.F16 R7, R0.H1 ;",
        "MUFU.RCP.F32 R7, -|c[0x3][0x10]| ;",
        "MUFU.EX2.F16_V2 R7, 1, -0.5 ;",
        "FLO.SH.U32 R1, ~RZ ;",
        "FADD.RZ R0, R1, 0.1 ;",
        "FMUL R0, R1, -INF ;",
        "FMUL R0, R1, +INF ;",
        "FMUL R0, R1, -0 ;",
        "FMUL R0, R1, 0x7fc00001 ;",
        "F2F.F32.F64 R0, 1.5 ;",
        "LDG.64 R[0:1], [R[2:3]+UR[4:5]-0x10] ;",
        "LDS R0, [RZ+0x20] ;",
        "STL [R1], R2 ;",
        "BRA .-0x10 ;",
        "BSSY B3, .+0x40 ;",
        "S2R R0, SR_TID_X ;",
        "EXIT ;",
    ] {
        let word = asm::word(text).unwrap_or_else(|e| panic!("{e}"));
        let (inst, control) = decode(word).unwrap();
        assert_eq!(inst.assembly(control), text);
    }
}

/// Two ways to write one instruction.
#[test]
fn equal_texts() {
    for (a, b) in [
        (
            "ISETP.LE.U32.AND P0, PT, R4, R6, PT",
            "ISETP.LE.AND.U32 P0, R4, R6, PT",
        ),
        (
            "HADD2.RN.FTZ R1, R4, R5",
            "HADD2.F16_V2.FTZ R1, R4.H1_H0, R5",
        ),
        (
            "ISET.BF.X.GT.OR R0, R5, 0x0, PT, P0",
            "ISET.GT.OR.BF.X R0, R5, 0, PT, P0 ;",
        ),
        ("IMAD.LO.S32 R0, R1, R2, R3", "IMAD R0, PT, R1, R2, R3"),
        ("IMUL.LO.S32 R0, R1, R2", "IMUL R0, R1, R2"),
        ("MOV.32 R0, R1", "MOV R0, R1"),
        ("I2IP.SAT.U16 R0, R1, R2, RZ", "I2IP.U16 R0, R1, R2, RZ"),
        ("IADD R0, R1, 0xffffffff", "IADD R0, R1, -1"),
        ("IADD R0, R1, 4294967295", "IADD R0, R1, -0x1"),
        ("FADD R0, R1, 0x3f800000", "FADD R0, R1, 1.0"),
        ("FADD R0, R1, 1e0", "FADD R0, R1, +1"),
        ("FADD R0, R1, INF", "FADD R0, R1, +INF"),
        ("HADD2 R0, R1, 0xbc00, 0x3c00", "HADD2 R0, R1, -1, 1"),
        (
            "HADD2.BF16_V2 R0, R1, 0xbf80, 0x3f80",
            "HADD2.BF16_V2 R0, R1, -1.0, 1.0",
        ),
        ("HADD2 R0, -|R1|.H0_H0, R2", "HADD2 R0, -|R1.H0_H0|, R2"),
        (
            "IADD R0, R1, R2 ?4 &rd=2 &wr=1 &req={3,0}",
            "IADD R0, R1, R2 &req={0,3} &wr=1 &rd=2 ?4 ;",
        ),
        ("IADD R0, R1, R2 &req={} ?0", "IADD R0, R1, R2"),
        ("@PT IADD R0, R1, R2", "IADD R0, R1, R2"),
        ("LDG R0, [UR[4:5]+0x10]", "LDG R0, [RZ+UR[4:5]+0x10]"),
        ("LDS R0, [0x10]", "LDS R0, [RZ+0x10]"),
        (
            "IADD R0, R1, R2 // comment",
            "/* comment */ IADD R0, /* here */ R1, R2 # and here",
        ),
        ("IADD\tR0,R1,R2;", "IADD R0 , R1 , R2 ;"),
        (
            "IMAD.U32 R0, P0, R2, 0x114514, R4,   ;",
            "IMAD.U32 R0, P0, R2, 0x114514, R4 ;",
        ),
        ("IADD.X R0, R1, R2, !PT", "IADD.X R0, PT, R1, R2"),
        (
            "LOP3.POR PT, R7, R7, RZ, R0, 26, !PT",
            "LOP3.POR R7, R7, RZ, R0, 0x1A, !PT",
        ),
    ] {
        let word = |text: &str| asm::word(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(word(a), word(b), "`{a}` and `{b}`");
    }
    assert_eq!(
        asm::word("HADD2 R0, R1, -1, 1").unwrap() >> 32 & 0xffff_ffff,
        0xbc00_3c00,
        "the high half is written first"
    );
    assert_eq!(
        asm::word("IADD R0, R1, c[0x1][0x160]").unwrap() >> 32 & 0x3f_ffff,
        1 << 17 | 0x160
    );
}

#[test]
fn all_errors_of_a_file_in_one_run() {
    let text = "IADDD R0, R1, R2 ;\n  IADD.Y R0, R1, R2 ;\nHADD2.BF16_V2.FTZ R0, R1, R2 ;\n\tBRA nowere \
     ;\nnowhere:\nISETP.XX.AND P0, R1, R2, PT\n.kernl x\nIADD R0, R300, R2\nIADD R0 R1\n";
    let errors = assemble("k.s", text).unwrap_err();
    let places: Vec<(usize, usize)> = errors
        .diagnostics
        .iter()
        .map(|d| errors.position(d.span.start))
        .collect();
    assert_eq!(
        places,
        [
            (1, 1),
            (2, 8),
            (3, 7),
            (4, 6),
            (6, 7),
            (7, 1),
            (8, 10),
            (9, 9)
        ],
        "{errors}"
    );
    let message = errors.to_string();
    for part in [
        "k.s:1:1: error: there is no instruction `IADDD`",
        "did you mean `IADD`?",
        "k.s:2:8: error: `.Y` is no modifier of IADD",
        "there is no label or function `nowere`",
        "did you mean `nowhere`?",
        "expected .EQ, .NE, .LT, .LE, .GT, .GE,",
        "did you mean `.kernel`?",
        "there is no register 300",
        "expected a register (R0 to R254, RZ)",
        " 2 |   IADD.Y R0, R1, R2 ;\n   |        ^\n",
    ] {
        assert!(message.contains(part), "`{part}` is missing in\n{message}");
    }
}

#[test]
fn mistakes_of_directives_and_labels() {
    for (text, message) in [
        (".kernel a\n.kernel a\n", "`a` is defined twice"),
        ("a:\na:\n", "label `a` is defined twice"),
        ("R1:\n", "`R1` is a register and no label"),
        (".func f\n.param 4\n", "only a kernel has parameters"),
        (".kernel f\n.param 3\n", "no parameter has 3 bytes"),
        (
            ".const\nIADD R0, R1, R2\n",
            "instructions belong to a function",
        ),
        (
            ".kernel f\n.param 8 at 0x1160\n",
            "the parameters of a kernel are at",
        ),
        (
            ".data d\n.zero 0xffffffffff\n.byte 1\n",
            "so many belong to a data object",
        ),
        (
            ".data d\n.byte 1\n.zero 50000000\n.data e\n.byte 1\n.zero 50000000\n",
            "so many belong to a data object",
        ),
        (
            ".const\n.zero 100000000\n",
            "so many belong to a data object",
        ),
        (".word 1\n", "data belongs behind"),
        (".const\n.byte 256\n", "out of range, 0 to 0xff"),
        (".data d align 3\n", "power of two"),
        (".data d\n.quad nobody\n", "there is no symbol `nobody`"),
        ("MOV R0, lo(nobody)\n", "there is no symbol `nobody`"),
        ("a: MOV R0, lo(a)\n", "`a` is a label, and only functions"),
        (
            "BRA .+0x80000000\n",
            "out of range, -0x80000000 to 0x7fffffff",
        ),
        (
            "IADD R0, R1, R2 ; IADD R0, R1, R2\n",
            "one instruction a line",
        ),
        ("IADD R0, R1, R2 &req={6}\n", "there is no scoreboard 6"),
        ("IADD R0, R1, R2 ?16\n", "no stall of 16"),
        ("IADD R0, R1, R2 ?1 ?2\n", "given twice"),
        ("/* no end", "this comment does not end"),
        ("BAR ;", "expected `BAR.SYNC`"),
        ("@R1 IADD R0, R1, R2", "a guard is a predicate"),
        ("IADD.X.X R0, R1, R2", "is given twice"),
        ("S2R R0, SR_NOTHING", "is no SReg"),
        ("FADD R0, R1, 1e99", "larger than every finite number"),
        ("FADD R0, R1, -0x1", "a bit pattern and has no sign"),
        ("IADD R0, R1, 1.5", "`1.5` is no integer"),
        ("SHFL.BFLY R0, R1, 32", "out of range, 0 to 0x1f"),
        ("IADD R0, %v1, R2", "belongs to another phase"),
    ] {
        let errors = assemble("x.s", text).expect_err(text);
        assert!(errors.to_string().contains(message), "{text}: {errors}");
    }
}

#[test]
fn virtual_registers_are_read_back() {
    for text in [
        "@!%p0 IADD %v1, %v2, -%v3 ;",
        "IMAD.WIDE %v1:%v9, %v2, %u3, -%v4:%v5 ;",
        "LDG.128 %v1:%v2:%v3:%v4, [%v5:%v6+%u7:%u8+0x10] &wr=1 ;",
        "ISETP.LT.AND %p1, RZ, c[0x0][0x160], PT ;",
    ] {
        let (inst, control) = asm::instruction::<VReg>(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(inst.assembly(control), text);
        assert!(asm::instruction::<PReg>(text).is_err());
    }
    assert!(asm::instruction::<VReg>("IADD R0, %v1, %v2").is_err());
}

const PROGRAM: &str = "
.extern \"other one\"
.kernel \"sax py\"
    .param 1
    .param 16 ptr
    .param 4 at 0x200
    .shared 512
    .local 32
    .line 3
    S2R R0, SR_TID_X &wr=0 ;
    .line 4
    @P0 BRA end ;
again:
    MOV R6, lo(table+4) ;
    MOV R7, hi(table-0x10) ;
    CALL R[2:3], L1 ;
    CALL R[2:3], \"other one\" ;
    BRA again ;
    BSSY B3, end ;
    BRA end+0x10 ;
end:
    EXIT ;
.func L1 local
    BAR.SYNC ;
    IADD R99, R1, R2 ;
    RET R[2:3] ;
.const
    .half 1, -2
    .byte 0xff
.data table readonly align 8
    .byte 1, 2, 3, 4, 5, 6, 7, 8
    .quad \"sax py\"+16, table-8, 5
    .byte 9
.data zeros local
    .zero 1000
";

#[test]
fn listing_assembles_to_the_same_object() {
    let object = assemble("p.s", PROGRAM)
        .unwrap_or_else(|e| panic!("{e}"))
        .object;
    let (text, bad) = listing(&object);
    assert_eq!(bad, []);
    let again = assemble("listing", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(again.object, object, "{text}");
    assert_eq!(Object::read(&object.write().unwrap()).unwrap(), object);
    let kernel = &object.functions[0];
    assert_eq!(
        (kernel.resources.registers, kernel.resources.barriers),
        (100, 1),
        "the callee's are the caller's"
    );
    let parameters: Vec<u32> = kernel
        .kernel
        .as_ref()
        .unwrap()
        .parameters
        .iter()
        .map(|p| p.offset)
        .collect();
    assert_eq!(parameters, [0x160, 0x170, 0x200]);
    assert_eq!(kernel.line_at(16), Some(4));
    assert!(
        text.contains("L2:") && !text.contains("\nL1:"),
        "labels are no symbols:\n{text}"
    );
}

/// Objects of random instructions, with branches to anywhere, survive their listing.
#[test]
fn random_listings_survive() {
    let seed = 5;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let forms: Vec<_> = all_forms().collect();
    for _ in 0..20 {
        let mut text = String::from(".kernel k\n");
        for _ in 0..100 {
            let form = *random.pick(&forms);
            let inst = random.instruction(form);
            text += &(inst.assembly(random.control()) + "\n");
        }
        text += ".const\n.byte 1, 2, 3\n";
        let object = assemble("random", &text)
            .unwrap_or_else(|e| panic!("{e}"))
            .object;
        let again = assemble("listing", &listing(&object).0).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again.object, object);
    }
}

/// Whatever the text, the assembler answers.
#[test]
fn mutilated_texts_do_not_panic() {
    let seed = 9;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let forms: Vec<_> = all_forms().collect();
    let pieces = [
        "R",
        "[",
        "]",
        ":",
        ",",
        "-",
        "~",
        "|",
        ".",
        "+",
        "0x",
        "R[0:1]",
        "c[",
        "%v",
        "\"",
        "&req={",
        "?",
        "@",
        ";",
        "é",
        "lo(",
        "/*",
        "99999999999999999999",
        "UR[",
        "\n",
    ];
    for i in 0..3_000 {
        let mut text = if i % 10 == 0 {
            PROGRAM.to_string()
        } else {
            let form = *random.pick(&forms);
            random.instruction(form).assembly(random.control())
        };
        for _ in 0..1 + random.below(4) {
            let at = random.below(text.len() + 1);
            let at = (0..=at)
                .rev()
                .find(|i| text.is_char_boundary(*i))
                .unwrap_or(0);
            match random.below(3) {
                0 => text.insert_str(at, pieces[random.below(pieces.len())]),
                1 => text.truncate(at),
                _ => {
                    if let Some(c) = text[at..].chars().next() {
                        text.replace_range(at..at + c.len_utf8(), "");
                    }
                }
            }
        }
        if let Err(errors) = assemble("mutilated", &text) {
            assert!(!errors.to_string().is_empty());
        }
    }
}

/// All files of CLIF below a folder.
fn clif_files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            clif_files(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "clif")
        {
            found.push(path);
        }
    }
}

/// What the compiler makes, its listing says: `--emit asm` assembles to the same object, byte for byte, for every file
/// test.
#[test]
fn compiled_objects_survive_their_listing() {
    use cranelift_thisgpu::SourceFile;
    use cranelift_thisgpu::compile::Compiler;
    use cranelift_thisgpu::settings::Options;
    let mut files = Vec::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    clif_files(&root, &mut files);
    files.sort();
    let mut compared = 0;
    for path in &files {
        let text = std::fs::read_to_string(path).unwrap();
        // Whether it can be read, and compiles, is for the filetests to say.
        let Ok(file) = SourceFile::parse("a file.clif", &text) else {
            continue;
        };
        for settings in [&[][..], &["stack_redzones=true", "opt_level=none"]] {
            let mut options = Options::default();
            settings.iter().for_each(|s| options.set(s).unwrap());
            let Ok(code) = Compiler::new(options).file(&file) else {
                continue;
            };
            let place = format!("{} {settings:?}", path.display());
            let (text, bad) = listing(code.object());
            assert_eq!(bad, [], "{place}");
            let again = assemble("listing", &text).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(&again.object, code.object(), "{place}\n{text}");
            assert!(
                again.object.write().unwrap() == code.to_elf().unwrap(),
                "{place}"
            );
            compared += 1;
        }
    }
    assert!(
        compared > files.len(),
        "only {compared} objects of {} files",
        files.len()
    );
}

/// A million mistakes are named in the time that a million lines take: only the first are explained.
#[test]
fn explanations_have_an_end() {
    let text = [
        "FADDD R0, R1, R2",
        "FADD.XX R0, R1, R2",
        ".locla 4",
        "BRA lost",
    ]
    .map(|line| format!("{line}\n").repeat(1000));
    for text in text {
        let text = format!(".func found\n{text}");
        let errors = assemble("many", &text).unwrap_err();
        assert_eq!(errors.diagnostics.len(), 1000);
        let explained = |d: &&asm::Diagnostic| !d.notes.is_empty() || !d.expected.is_empty();
        assert_eq!(errors.diagnostics.iter().filter(explained).count(), 200);
        assert!(explained(&&errors.diagnostics[0]));
    }
}
