//! What the documents and docs/errata.md refuse: examples, rules, and texts that contradict the encoding.

use cranelift_thisgpu::asm;
use cranelift_thisgpu::unstable::isa::encode::all_forms;
use cranelift_thisgpu::unstable::isa::generated::OPTYPES;
use cranelift_thisgpu::unstable::isa::random::Random;
use cranelift_thisgpu::unstable::isa::{Control, decode};

/// Examples that contradict their own syntax, with the entry of docs/errata.md and what the message must say.
const REFUSED_EXAMPLES: &[(&str, &str, &str)] = &[
    ("IADD.X R0, P0, R2, -R4", "I-02", "cannot have a `-`"),
    ("LEA R0, R1, 0x10, R3", "I-26", "operand 4 of LEA"),
    (
        "LEA R0, P0, R2, c[0x0][0x160], R7, RZ",
        "I-27",
        "operand 5 of LEA",
    ),
    (
        "LEA.HI.X R1, R2, c[0x0][0x160], R7, RZ, P0",
        "I-27",
        "operand 5 of LEA",
    ),
    ("LEA R0, P0, -R2, R3, R4", "I-27", "operand 5 of LEA"),
    (
        "LEA.HI.X.SX32 R1, ~R2, R3, R5, P0",
        "I-27",
        "operand 4 of LEA",
    ),
    (
        "I2IP.S4.SATRELU R0, R1, R2, RZ",
        "I-73",
        "satrelu is fixed at SAT",
    ),
];

fn one_line(text: &str) -> String {
    text.trim_end_matches([';', ' '])
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

/// The message that a text is refused with.
fn refusal(text: &str) -> String {
    match asm::word(text) {
        Ok(word) => panic!("`{text}` assembles to {word:032x}"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn every_example_assembles_or_is_a_known_mistake() {
    let mut refused = 0;
    let mut assembled = 0;
    for example in OPTYPES.iter().flat_map(|o| o.examples) {
        match REFUSED_EXAMPLES
            .iter()
            .find(|(text, _, _)| *text == one_line(example))
        {
            Some((text, entry, message)) => {
                let found = refusal(text);
                assert!(found.contains(message), "{entry}: `{text}`: {found}");
                refused += 1;
            }
            None => {
                let word = asm::word(example).unwrap_or_else(|e| panic!("{e}"));
                let (inst, control) = decode(word).unwrap();
                let again = asm::word(&inst.assembly(control)).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(again, word, "`{example}` is printed as `{inst}`");
                assembled += 1;
            }
        }
    }
    assert_eq!(refused, REFUSED_EXAMPLES.len(), "an example is gone");
    assert!(assembled > 130, "{assembled}");
    for optype in OPTYPES {
        assert!(
            !optype.examples.is_empty(),
            "{} has no example",
            optype.name
        );
    }
}

/// Every refusal that docs/errata.md and the documents' exceptions ask for: entry, text, what the message says, what is
/// marked.
#[test]
fn refusals_of_the_errata() {
    let mut wrong = Vec::new();
    for (entry, text, message, marked) in [
        (
            "000 exception",
            "HADD2.BF16_V2.FTZ R0, R1, R2",
            "BF16_V2 doesnot support .FTZ/.SAT.",
            "BF16_V2",
        ),
        (
            "000 exception",
            "HMUL2.SAT.BF16_V2 R0, R1, R2",
            "BF16_V2 doesnot support .FTZ/.SAT.",
            "SAT",
        ),
        (
            "000 exception",
            "HFMA2.FTZ.BF16_V2 R0, R1, R2, R3",
            "BF16_V2 doesnot support .FTZ/.SAT.",
            "FTZ",
        ),
        (
            "002 exception",
            "MOV.64 R[0:1], 0x5",
            "MOV_I does not support .64 .",
            "64",
        ),
        (
            "003 exception",
            "MUFU.SIN.F64 R0, R1",
            "MUFU.F64H only supports RCP/RSQ.",
            "F64",
        ),
        (
            "H-01",
            "HADD2.RP R0, R1, R2",
            "`.RP` is no modifier of HADD2",
            "RP",
        ),
        (
            "H-01",
            "HFMA2.RZ R0, R1, R2, R3",
            "`.RZ` is no modifier of HFMA2",
            "RZ",
        ),
        (
            "H-03",
            "HADD2.F32 R0, R1, R2",
            "`.F32` is no modifier of HADD2",
            "F32",
        ),
        (
            "H-06",
            "HFMA2.RELU.SAT R0, R1, R2, R3",
            "HFMA2 does not support .SAT together with .RELU.",
            "RELU",
        ),
        (
            "H-13",
            "HADD2 R0, R1, |1|, 2",
            "cannot have an absolute value",
            "|",
        ),
        (
            "H-27",
            "HFMA2 R0, R1, UR2, UR3",
            "operand 4 of HFMA2",
            "UR3",
        ),
        ("H-27", "HFMA2 R0, UR1, R2, R3", "operand 2 of HFMA2", "UR1"),
        (
            "H-28",
            "HMNMX2 R0, R1, R2",
            "HMNMX2 needs another operand",
            "",
        ),
        (
            "H-28",
            "HSETP2.AND P0, P1, R1, R2",
            "HSETP2 needs one more modifier",
            "HSETP2.AND",
        ),
        ("I-02", "IADD.X R0, P0, R2, -R4", "cannot have a `-`", "-"),
        ("I-05", "IADD R0, P0, R2, R4", "operand 2 of IADD", "P0"),
        ("I-06", "IADD.X R0, R2, ~0x5", "cannot have a `~`", "~"),
        (
            "I-07",
            "IMAD.HI R0, R1, R2, R3",
            "needs the modifier `.X`",
            "IMAD.HI",
        ),
        (
            "I-07",
            "IMAD.X R0, R1, R2, R3",
            "needs the modifier `.HI`",
            "IMAD.X",
        ),
        ("I-12", "IMAD R0, R1, -R2, R3", "cannot have a `-`", "-"),
        (
            "I-17",
            "IMAD.WIDE R[0:1], R2, R3, 0x5",
            "operand 4 of IMAD.WIDE",
            "0x5",
        ),
        (
            "I-22",
            "IDP.4A.S8 R0, R1, R2, R3",
            "IDP.4A needs one more modifier",
            "IDP.4A.S8",
        ),
        ("I-27", "LEA R0, R1, R3, R4", "operand 4 of LEA", "R4"),
        ("I-30", "LEA R0, R1, -R3, 4", "cannot have a `-`", "-"),
        (
            "I-32",
            "LEA.HI R0, R1, R3, 4",
            "needs the modifier",
            "LEA.HI",
        ),
        (
            "I-32",
            "LEA.SX32 R0, R1, R3, 4",
            "needs the modifier",
            "LEA.SX32",
        ),
        ("I-35", "IABS R0, -R1", "cannot have a `-`", "-"),
        ("I-37", "IMNMX R0, -R1, R2, PT", "cannot have a `-`", "-"),
        (
            "I-38",
            "IMNMX R0, R1, R2",
            "IMNMX needs another operand",
            "",
        ),
        ("I-39", "SEL R0, R1, R2", "SEL needs another operand", ""),
        (
            "I-51",
            "ISETP.LE P0, R1, R2, PT",
            "ISETP needs one more modifier",
            "ISETP.LE",
        ),
        (
            "I-52",
            "LOP3 R0, R1, R2, R3, 0x1a, !PT",
            "LOP3 needs one more modifier",
            "LOP3",
        ),
        (
            "I-55",
            "LOP3.POR R0, R1, R2, UR3, 0x1a, !PT",
            "operand 4 of LOP3",
            "UR3",
        ),
        (
            "I-65",
            "SHF R0, R1, R2, R3",
            "SHF needs one more modifier",
            "SHF",
        ),
        (
            "I-66",
            "MOV.64 R[0:1], UR[2:3]",
            "does not support .64",
            "64",
        ),
        (
            "I-66",
            "MOV.64 R[0:1], c[0x0][0x160]",
            "does not support .64",
            "64",
        ),
        (
            "I-73",
            "I2IP.S4.SATRELU R0, R1, R2, RZ",
            "satrelu is fixed at SAT",
            "SATRELU",
        ),
        (
            "I-83",
            "GETGPR R0, R[UR2+0x100]",
            "out of range, -0x100 to 0xff",
            "+0x100",
        ),
        (
            "G-12",
            "IMAD.WIDE R[1:2], R2, R3, R[4:5]",
            "must be a multiple of 2",
            "R[1:2]",
        ),
        (
            "G-12",
            "IMAD.WIDE R0, R2, R3, R[4:5]",
            "operand rd has 64 bits",
            "R0",
        ),
        (
            "G-12",
            "IADD R[0:1], R2, R3",
            "operand rd has 32 bits",
            "R[0:1]",
        ),
        (
            "G-12",
            "IMAD.WIDE R[0:1], R2, R3, c[0x0][0x164]",
            "is not a multiple of 8",
            "c[0x0][0x164]",
        ),
        (
            "G-14",
            "IADD R0, R1, 0x100000000",
            "out of range, -0x80000000 to 0xffffffff",
            "0x100000000",
        ),
        (
            "X-06",
            "MUFU.RCP.F32.SAT R0, R1",
            "`.SAT` is no modifier of MUFU",
            "SAT",
        ),
        ("X-08", "MUFU.RCP.F32 R0, R1.H1", "must hold H0", ".H1"),
        ("X-09", "MUFU.EX2.F16 R0, -R1", "must hold False", "-"),
        (
            "X-14",
            "MUFU.RCP.F16 R0, R1",
            "only supports EX2/TANH",
            "F16",
        ),
    ] {
        let errors = asm::word(text)
            .map(|w| format!("{w:032x}"))
            .expect_err(&format!("{entry}: `{text}` assembles"));
        let span = errors.diagnostics[0].span;
        if &text[span.start..span.end] != marked || !errors.to_string().contains(message) {
            wrong.push(format!(
                "{entry}: expected `{message}` at `{marked}`: {errors}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every rule of the description is reached: some instruction breaks it and is refused by its name, in encoder and
/// assembler.
#[test]
fn every_exception_is_refused_by_name() {
    let mut random = Random::new(11);
    for form in all_forms() {
        for exception in form.info().exceptions {
            let broken = (0..20_000).find_map(|_| {
                let mut inst = random.instruction(form);
                for (i, field) in form.info().fields.iter().enumerate() {
                    use cranelift_thisgpu::unstable::isa::table::{FieldType, FieldValue};
                    if let (FieldType::Enum(e), false) =
                        (field.ty, matches!(field.value, FieldValue::Constant(_)))
                    {
                        inst.set_field(i as u8, random.pick(e.members).1);
                    }
                }
                (exception.broken)(inst.word()).then_some(inst)
            });
            let broken = broken.unwrap_or_else(|| {
                panic!(
                    "{}: nothing breaks `{}`",
                    form.info().name,
                    exception.message
                )
            });
            let error = broken
                .encode(Control::default())
                .expect_err("a broken rule");
            assert!(error.to_string().starts_with(form.info().name), "{error}");
        }
    }
}

/// I-49: the default of ISET's `pp` is `!PT`, so with `.AND` the comparison means nothing.
#[test]
fn a_result_that_is_constant_by_default_is_a_warning() {
    let text = "\
    ISET.LE.U32 R0, R4, R6 ;
    ISET.LE.U32 R0, R4, R6, PT ;
    ISET.LE.U32 R0, R4, R6, !PT ;
    ISET.LE.U32 R0, R4, R6, P2 ;
    ISET.LE.OR.U32 R0, R4, R6 ;
    ISET.LE.XOR.U32 R0, R4, R6 ;
@P0 ISET.GT.BF.X R0, R4, 0x10 &req={1} ;
    SEL R0, R4, R6, PT ;
";
    let assembly = asm::assemble("iset.s", text).unwrap_or_else(|errors| panic!("{errors}"));
    let warnings = &assembly.warnings;
    assert!(!warnings.has_errors());
    let lines: Vec<usize> = warnings
        .diagnostics
        .iter()
        .map(|warning| warnings.position(warning.span.start).0)
        .collect();
    assert_eq!(lines, [1, 7], "{warnings}");
    assert!(
        warnings.to_string().starts_with(
            "iset.s:1:1: warning: the result is always false: the predicate left out is !PT, and .AND combines with \
             it\n \
             1 | ISET.LE.U32 R0, R4, R6 ;\n   | ^"
        ),
        "{warnings}"
    );
    // With an error beside them they are told all the same.
    let errors = asm::assemble("iset.s", &format!("{text}    NONSENSE ;\n")).unwrap_err();
    assert_eq!((errors.diagnostics.len(), errors.has_errors()), (3, true));
}
