//! How the resolver reads `__Syntax`: the irregular lines of the documents, each with what it must mean.

use std::path::Path;

use isagen::model::{
    Decorated, Direction, FieldType, FieldValue, Form, Machine, Mode, SyntaxOperandKind,
};
use isagen::resolve::load;
use isagen::source::SourceMap;

fn machine() -> Machine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/isa/description");
    let mut sources = SourceMap::default();
    sources.read(&folder).expect("the description is readable");
    load(&sources).expect("the description has no mistake")
}

fn form<'m>(machine: &'m Machine, name: &str) -> &'m Form {
    let found = machine.forms.iter().find(|form| form.name == name);
    found.unwrap_or_else(|| panic!("form {name}"))
}

fn name(form: &Form, field: usize) -> &str {
    &form.fields[field].name
}

/// Modifiers as `field?=TEXT/TEXT`, literals of the mode with `!`.
fn modifiers(form: &Form, mode: &Mode) -> Vec<String> {
    let text = |m: &isagen::model::Modifier| {
        let values: Vec<&str> = m.values.iter().map(|(text, _)| text.as_str()).collect();
        format!(
            "{}{}{}={}",
            m.field.map_or("", |field| name(form, field)),
            if m.optional { "?" } else { "" },
            if m.literal { "!" } else { "" },
            values.join("/")
        )
    };
    mode.modifiers.iter().map(text).collect()
}

/// Operands as `-|~!field.suffix`, `^` for a sign whose meaning another field decides, `?` for optional ones.
fn operands(form: &Form, mode: &Mode) -> String {
    let plain = |d: &Decorated| {
        let mut text = String::new();
        for (part, sign) in [
            (d.negate, "-"),
            (d.negate_by, "^"),
            (d.absolute, "|"),
            (d.bitnot, "~"),
            (d.not, "!"),
        ] {
            text.push_str(part.map_or("", |_| sign));
        }
        let suffix = d.suffix.map_or("", |field| name(form, field));
        let suffix = suffix.strip_prefix(name(form, d.field)).unwrap_or(suffix);
        text + name(form, d.field) + suffix
    };
    let part = |field: &Option<usize>| field.map_or("", |field| name(form, field)).to_owned();
    let operands: Vec<String> = mode
        .operands
        .iter()
        .map(|operand| {
            let text = match &operand.kind {
                SyntaxOperandKind::Plain(d) => plain(d),
                SyntaxOperandKind::AllPredicates => "PR".to_owned(),
                SyntaxOperandKind::Indexed { base, offset } => {
                    format!("R[{}+{}]", name(form, *base), name(form, *offset))
                }
                SyntaxOperandKind::Memory {
                    base,
                    uniform,
                    offset,
                } => format!("[{}+{}+{}]", part(base), part(uniform), part(offset)),
            };
            let optional = if operand.optional { "?" } else { "" };
            format!("{optional}{text}")
        })
        .collect();
    operands.join(", ")
}

fn fixed(form: &Form, mode: &Mode) -> Vec<(String, u64)> {
    let mut fixed: Vec<_> = mode
        .fixed
        .iter()
        .map(|&(field, value)| (name(form, field).to_owned(), value))
        .collect();
    fixed.sort();
    fixed
}

fn hidden<'f>(form: &'f Form, mode: &Mode) -> Vec<&'f str> {
    mode.hidden.iter().map(|&field| name(form, field)).collect()
}

fn hidden_value(form: &Form, field: &str) -> u64 {
    let found = form.fields.iter().find(|f| f.name == field);
    found.unwrap_or_else(|| panic!("field {field}")).hidden
}

fn pairs(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect()
}

#[test]
fn mnemonics_take_the_literals_that_belong_to_no_field() {
    let machine = machine();
    for (optype, mnemonic) in [
        ("IMAD_WIDE", "IMAD.WIDE"),
        ("IDP2A", "IDP.2A"),
        ("IDP4A", "IDP.4A"),
        ("IMAD", "IMAD"),
        ("LEA", "LEA"),
        ("MOV", "MOV"),
        ("BAR", "BAR.SYNC"),
    ] {
        let found = machine.optypes.iter().find(|o| o.name == optype);
        assert_eq!(found.expect(optype).mnemonic, mnemonic);
    }
}

#[test]
fn lines_of_one_optype_are_modes() {
    let machine = machine();
    let iadd = form(&machine, "IADD_RR");
    let [plain, extended] = &iadd.modes[..] else {
        panic!("IADD has two modes")
    };
    assert_eq!(fixed(iadd, plain), pairs(&[("ext", 0)]));
    assert_eq!(operands(iadd, plain), "rd, -^ra, -^rb");
    assert_eq!(hidden(iadd, plain), ["pp", "pp.not", "pu"]);
    assert_eq!(fixed(iadd, extended), pairs(&[("ext", 1)]));
    assert_eq!(modifiers(iadd, extended), ["ext!=X"]);
    assert_eq!(operands(iadd, extended), "rd, ?pu, -^ra, -^rb, ?!pp");

    let lea = form(&machine, "LEA_RRR");
    let modes: Vec<_> = lea.modes.iter().map(|mode| fixed(lea, mode)).collect();
    assert_eq!(
        modes,
        [
            pairs(&[("ext", 0), ("lohi", 0), ("sx32", 0)]),
            pairs(&[("ext", 1), ("lohi", 1), ("sx32", 0)]),
            pairs(&[("ext", 1), ("lohi", 1), ("sx32", 1)]),
        ]
    );
    assert_eq!(modifiers(lea, &lea.modes[0]), ["lohi?!=LO"]);
    assert_eq!(operands(lea, &lea.modes[0]), "rd, ?pu, -^ra, rb, shiftamt");
    assert_eq!(
        operands(lea, &lea.modes[1]),
        "rd, ?pu, -^ra, rb, rc, shiftamt, ?!pp"
    );
    assert_eq!(hidden(lea, &lea.modes[0]), ["pp", "pp.not", "rb.neg", "rc"]);
    assert_eq!(hidden(lea, &lea.modes[2]), ["rb.neg", "rc"]);
    assert_eq!(hidden_value(lea, "rc"), 255, "RZ");
    assert_eq!(hidden_value(lea, "rb.neg"), 0);

    let imad = form(&machine, "IMAD_RRC");
    assert_eq!(
        modifiers(imad, &imad.modes[0]),
        ["lohi?!=LO", "itype?=S32/U32"]
    );
    assert_eq!(
        modifiers(imad, &imad.modes[1]),
        ["lohi!=HI", "ext!=X", "itype?=S32/U32"]
    );
    assert_eq!(
        operands(imad, &imad.modes[1]),
        "rd, ?pu, ra, rb, -^vc, ?!pp"
    );

    let isetp = form(&machine, "ISETP_RI");
    assert_eq!(operands(isetp, &isetp.modes[0]), "pu, ?pv, ra, vb, !pp");
    assert_eq!(
        operands(isetp, &isetp.modes[1]),
        "pu, ?pv, ra, vb, !pp, ?!pq"
    );
    assert_eq!(hidden(isetp, &isetp.modes[0]), ["pq", "pq.not"]);
}

#[test]
fn a_literal_in_braces_selects_a_mode_only_if_it_is_the_default() {
    let machine = machine();
    let mov = form(&machine, "MOV_R");
    assert_eq!(modifiers(mov, &mov.modes[0]), ["width?!=32"]);
    assert_eq!(modifiers(mov, &mov.modes[1]), ["width!=64"]);
    assert_eq!(fixed(mov, &mov.modes[1]), pairs(&[("width", 1)]));
    assert_eq!(operands(mov, &mov.modes[1]), "rd, rb");
    assert_eq!(mov.operands[1].max_width, 64);

    let flo = form(&machine, "FLO_R");
    assert_eq!(modifiers(flo, &flo.modes[0]), ["sh?=SH", "itype?=S32/U32"]);
    assert!(flo.modes[0].fixed.is_empty());
    assert_eq!(operands(flo, &flo.modes[0]), "rd, ~rb");
}

#[test]
fn modifiers_without_field_keep_only_what_needs_no_encoding() {
    let machine = machine();
    let hadd2 = form(&machine, "HADD2_RR");
    assert_eq!(
        modifiers(hadd2, &hadd2.modes[0]),
        ["hfmt_v2?=F16_V2/BF16_V2", "ftz?=FTZ", "sat?=SAT", "?=RN"],
        ".F32 and the other roundings have no encoding"
    );
    let mufu = form(&machine, "MUFU_I");
    assert_eq!(
        modifiers(mufu, &mufu.modes[0]),
        [
            "mufuop=COS/SIN/EX2/LG2/RCP/RSQ/SQRT/TANH",
            "dtype=F32/F64/F16_V2/BF16_V2/F16/BF16"
        ],
        ".SAT has no encoding"
    );
    assert_eq!(operands(mufu, &mufu.modes[0]), "rd, vb");
}

#[test]
fn lists_are_matched_by_name_or_else_by_position() {
    let machine = machine();
    let shf = form(&machine, "SHF_RIR");
    let mode = &shf.modes[0];
    assert_eq!(
        modifiers(shf, mode),
        [
            "direction=L/R",
            "lohi?=LO/HI",
            "cwmod?=CLAMP/WRAP",
            "itype?=S32/U32/S64/U64"
        ]
    );
    let codes = |i: usize| {
        mode.modifiers[i]
            .values
            .iter()
            .map(|v| v.1)
            .collect::<Vec<_>>()
    };
    assert_eq!(codes(2), [0, 1], "C and W");
    assert_eq!(codes(3), [2, 3, 0, 1], "as SHFDType numbers them");

    let i2ip = form(&machine, "I2IP_RUR");
    assert_eq!(
        modifiers(i2ip, &i2ip.modes[0]),
        ["dsttype=S2/U2/S4/U4/S8/U8/S16/U16", "satrelu?=SAT/SATRELU"]
    );
    let satrelu = i2ip.fields.iter().find(|f| f.name == "satrelu");
    assert_eq!(satrelu.map(|f| f.value), Some(FieldValue::Constant(0)));

    let idp = form(&machine, "IDP4A_RRU");
    assert_eq!(modifiers(idp, &idp.modes[0]), ["afmt=S8/U8", "bfmt=S8/U8"]);
    let imul = form(&machine, "IMUL_RR");
    assert_eq!(
        modifiers(imul, &imul.modes[0]),
        ["lohi?=LO/HI", "itype?=S32/U32"]
    );
}

#[test]
fn operands_are_matched_with_fields() {
    let machine = machine();
    for (name, mode, expected) in [
        ("HFMA2_RRU", 0, "rd, -|ra.hsel2, -|rb.hsel2, -|urc.hsel2"),
        ("HFMA2_RIR", 0, "rd, -|ra.hsel2, vb, -|rc.hsel2"),
        ("IMAD_WIDE_RCR", 1, "rd, ?pu, ra, vb, -^rc, ?!pp"),
        ("IDP2A_RRI", 0, "rd, ?pu, ra, rb, vc, ?!pp"),
        ("IABS_I", 0, "rd, vb"),
        ("IMNMX_RC", 0, "rd, ra, vb, !pp"),
        ("P2R_RU", 0, "rd, PR, ra, urb"),
        ("R2P_RI", 0, "PR, ra.bsel, vb"),
        ("LOP3_RIR", 0, "?pu, rd, ra, vb, rc, lut, !pp"),
        ("PLOP3_U", 0, "pu, !pa, !pb, !upc, lut"),
        ("R2UR_R", 0, "urd, rb"),
        ("SETGPR_U", 0, "R[urb+ridx], ra"),
        ("GETGPR_U", 0, "rd, R[urb+ridx]"),
        ("POPC_I", 0, "rd, vb"),
        ("LDG_R", 0, "rd, [ra++addr]"),
        ("LDG_RU", 0, "rd, [ra+urc+addr]"),
        ("BSSY_X", 0, "bn, label"),
        ("S2R_X", 0, "rd, sreg"),
    ] {
        let form = form(&machine, name);
        assert_eq!(operands(form, &form.modes[mode]), expected, "{name}");
    }
}

#[test]
fn operand_lists_keep_order_direction_and_width() {
    let machine = machine();
    let list = |name: &str| {
        let form = form(&machine, name);
        let operands = form.operands.iter().map(|operand| {
            let direction = match operand.direction {
                Direction::In => "<",
                Direction::Out => ">",
                Direction::Neither => "=",
            };
            format!("{}{direction}{}", operand.name, operand.max_width)
        });
        operands.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        list("IMAD_WIDE_RCR"),
        "pg<1 pu>1 rd>64 ra<32 vb<32 rc<64 pp<1"
    );
    assert_eq!(
        list("LEA_RRR"),
        "pg<1 rd>32 pu>1 ra<32 rb<32 rc<32 shiftamt=5 pp<1"
    );
    assert_eq!(list("R2P_RR"), "pg<1 PR>8 ra<32 rb<32");
    assert_eq!(list("SETGPR_U"), "pg<1 R[urb, ridx]<32 ra<32");
    assert_eq!(list("LDG_R"), "pg<1 rd>128 ra<64 addr=24");
    let r2ur = form(&machine, "R2UR_R");
    assert_eq!(r2ur.fields.iter().filter(|f| f.name == "pg").count(), 1);
    assert_eq!(
        r2ur.fields.iter().find(|f| f.name == "urd").map(|f| f.ty),
        Some(FieldType::Uniform)
    );
}

#[test]
fn amendments_apply_to_the_forms_that_have_the_fields() {
    let machine = machine();
    let mufu = form(&machine, "MUFU_U");
    let hsel = mufu
        .fields
        .iter()
        .find(|f| f.name == "urb.hsel")
        .expect("urb.hsel");
    assert!(hsel.shown.is_some());
    assert_eq!(hsel.hidden, 0);
    let hfma2 = form(&machine, "HFMA2_RRR");
    assert!(hfma2.exceptions.iter().any(|e| e.message.contains(".RELU")));
    let hadd2 = form(&machine, "HADD2_RR");
    assert_eq!(hadd2.exceptions.len(), 1);
    assert!(form(&machine, "IADD_RR").exceptions.is_empty());
}

#[test]
fn expressions_print_as_they_are_written() {
    let machine = machine();
    let text = |form: &Form, e: &isagen::expr::Expr| e.text(&|f| form.fields[f].name.clone());
    let hadd2 = form(&machine, "HADD2_RR");
    assert_eq!(
        text(hadd2, &hadd2.exceptions[0].condition),
        "(hfmt_v2==\"BF16_V2\") and ((ftz==\"FTZ\") or (sat==\"SAT\"))"
    );
    let mov = form(&machine, "MOV_R");
    assert_eq!(
        text(mov, &mov.operands[1].width),
        "32 + ((width==\"64\") * 32)"
    );
    let mufu = form(&machine, "MUFU_R");
    assert_eq!(
        text(mufu, &mufu.exceptions[0].condition),
        "((dtype==\"F64H\") and mufuop!=\"RCP\") and mufuop!=\"RSQ\""
    );
}
