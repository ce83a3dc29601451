//! Mistakes planted in a small description: each must be reported with its place, and nothing may panic.

use isagen::diagnostic::{Diagnostic, render};
use isagen::resolve::load_with_warnings;
use isagen::source::SourceMap;

const DESCRIPTION: &str = include_str!("small.isa");

fn diagnostics(text: &str) -> (SourceMap, Vec<Diagnostic>) {
    let mut sources = SourceMap::default();
    sources.add("machine.isa", text);
    let (_, diagnostics) = load_with_warnings(&sources);
    (sources, diagnostics)
}

#[test]
fn the_description_itself_has_no_mistake() {
    let (sources, found) = diagnostics(DESCRIPTION);
    let texts: Vec<String> = found.iter().map(|d| render(d, &sources, false)).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

/// Text to replace, replacement, the message, and the text at the caret.
type Plant = (&'static str, &'static str, &'static str, &'static str);

const PLANTS: &[Plant] = &[
    // Fields.
    (
        "field<72, 1> Flag ra.neg",
        "field<24, 1> Flag ra.neg",
        "field `ra.neg` overlaps field `ra`",
        "field<24, 1> Flag ra.neg = False",
    ),
    (
        "field<32, 8> Reg rb;\n  __OperandInfo\n    InList<pg, ra",
        "field<110, 8> Reg rb;\n  __OperandInfo\n    InList<pg, ra",
        "field `rb` overlaps field `sched`",
        "field<110, 8> Reg rb",
    ),
    (
        "field<32, 32> SImm32 vb",
        "field<120, 32> SImm32 vb",
        "field `vb` ends past bit 127",
        "120",
    ),
    (
        "field<24, 8> Reg ra",
        "field<24, 9> Reg ra",
        "field `ra` is wider than its type: 9 bits, but `Reg` has 8",
        "9",
    ),
    (
        "field<24, 8> Reg ra",
        "field<24, 7> Reg ra",
        "field `ra` is narrower than its type: 7 bits, but `Reg` has 8",
        "7",
    ),
    (
        "field<32, 32> SImm32 vb",
        "field<32, 0> SImm32 vb",
        "a field has 1 to 64 bits, not 0",
        "0",
    ),
    (
        "field<74, 2> Round round",
        "field<74, 2> Rond round",
        "type `Rond` is not defined",
        "Rond",
    ),
    (
        "round = NEAREST;",
        "round = DOWN;",
        "`DOWN` is no value of `Round`",
        "DOWN",
    ),
    (
        "round = NEAREST;",
        "round = 2;",
        "`2` is no value of `Round`",
        "2",
    ),
    (
        "sched = 0;",
        "sched = 16;",
        "16 does not fit the 4 bits of field `sched`",
        "16",
    ),
    ("pg = PT;", "pg = P9;", "`P9` is no value of `Pred`", "P9"),
    (
        "field<24, 8> Reg ra;",
        "field<24, 8> Reg ra;\nfield<40, 8> Reg ra;",
        "field `ra` is defined twice",
        "ra",
    ),
    (
        "    field<32, 32> SImm32 vb;\n",
        "    filed<32, 32> SImm32 vb;\n",
        "this begins no statement: `filed`",
        "filed",
    ),
    (
        "    field<24, 8> Reg ra;",
        "    field<24 8> Reg ra;",
        "expected `,`, found `8`",
        "8",
    ),
    (
        "    field<24, 8> Reg ra;",
        "    field<24, 8> Reg ra",
        "expected `;` behind this",
        "a",
    ),
    (
        "    field<24, 8> Reg ra;",
        "    field<0xfffffffffffffffff, 8> Reg ra;",
        "`0xfffffffffffffffff` is not a number of at most 64 bits",
        "0xfffffffffffffffff",
    ),
    // Types.
    (
        "UP = 3;",
        "UP = 4;",
        "`UP` = 4 does not fit the 2 bits of `Round`",
        "4",
    ),
    (
        "UP = 3;",
        "ZERO = 3;",
        "member `ZERO` is defined twice",
        "ZERO",
    ),
    (
        "    ZERO;",
        "    ZERO 7;",
        "expected `NAME;` or `NAME = NUMBER;`, found `ZERO`",
        "ZERO",
    ),
    (
        "__DefBitFieldType Round<2>",
        "__DefBitFieldType Width<2>",
        "type `Width` is defined twice",
        "Width",
    ),
    (
        "__DefBitFieldType Width<1>",
        "__DefBitFieldType SImm9<1>",
        "type `SImm9` is built in",
        "SImm9",
    ),
    (
        "Round<2>",
        "Round<200>",
        "a type has 1 to 64 bits, not 200",
        "200",
    ),
    (
        "Round<2>",
        "Round",
        "expected `<`, found `NEAREST`",
        "NEAREST",
    ),
    (
        "__DefBitFieldType Pred<3> PT = 7;",
        "",
        "the number of `PT` is not defined",
        "PT",
    ),
    // Inheritance.
    (
        "__DefGroup ALU : [ALL]",
        "__DefGroup ALU : [AL]",
        "group `AL` is not defined",
        "AL",
    ),
    (
        "__DefGroup ALL\n",
        "__DefGroup ALL : [ALU]\n",
        "inherits from itself",
        "ALL",
    ),
    (
        "ADD_RI : [ADD]",
        "ADD_RI : [AD]",
        "optype `AD` is not defined",
        "AD",
    ),
    (
        "ADD_RI : [ADD]",
        "ADD_RI",
        "form `ADD_RI` names nothing that it inherits from",
        "ADD_RI",
    ),
    (
        "ADD_RI : [ADD]",
        "ADD_RR : [ADD]",
        "form `ADD_RR` is defined twice",
        "ADD_RR",
    ),
    (
        "__DefOptype MOVE :",
        "__DefOptype ADD :",
        "optype `ADD` is defined twice",
        "ADD",
    ),
    (
        "__DefOptype MOVE :",
        "__DefOptyp MOVE :",
        "unknown definition `__DefOptyp`",
        "__DefOptyp",
    ),
    (
        "optype == ADD;",
        "optype = ADD;",
        "optype `ADD` has no constant field `optype`",
        "ADD",
    ),
    (
        "stype == RI;",
        "stype = RI;",
        "form `ADD_RI` has no constant field `stype`",
        "ADD_RI",
    ),
    // Sections.
    (
        "  __Encoding\n    field<8, 4> SType stype == RI;",
        "  __Encodng\n    field<8, 4> SType stype == RI;",
        "unknown section `__Encodng`",
        "__Encodng",
    ),
    (
        "// a comment\n\n.round = {.NEAREST*, .ZERO, .UP}\n```",
        "\n",
        "this code block is not closed",
        "```",
    ),
    (
        "```asm\nMOVE{.32} Rd, SrcB  $sched ;\nMOVE.64   Rd, SrcB  $sched ;\n```",
        "MOVE Rd",
        "the syntax is not in a fenced code block",
        "__Syntax",
    ),
    (
        "__Provenance Assigned;",
        "__Provenance Guessed;",
        "unknown provenance `Guessed`",
        "Guessed",
    ),
    // Operands.
    (
        "InList<pg, ra, rb>;",
        "InList<pg, ra, rx>;",
        "there is no field `rx`",
        "rx",
    ),
    (
        "OutList<rd>;\n    Order<pg, rd, ra, rb>",
        "OutList<ra>;\n    Order<pg, rd, ra, rb>",
        "`ra` is both in `InList` and in `OutList`",
        "ra",
    ),
    (
        "Order<pg, rd, ra, rb>;",
        "Order<pg, rd, ra, rb, rq>;",
        "there is no field `rq`",
        "rq",
    ),
    (
        "Order<pg, rd, ra, rb>;",
        "Order<pg, rd, ra>;",
        "`rb` is in `InList`, but not in `Order`",
        "rb",
    ),
    (
        "Order<pg, rd, ra, rb>;",
        "Order<pg, rd, ra, rb, rb>;",
        "`rb` is listed twice",
        "rb",
    ),
    (
        "    Order<pg, rd, ra, rb>;\n",
        "",
        "form `ADD_RR` has no `Order`",
        "ADD_RR",
    ),
    (
        "    Order<pg, rd, ra, rb>;\n",
        "    Order<pg, rd, ra, rb>;\n    Order<pg>;\n",
        "`Order` is stated twice",
        "Order",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<rx> = 32;",
        "there is no field `rx`",
        "rx",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<round> = 32;",
        "`round` has a width, but is not in `Order`",
        "round",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<rb> = 48;",
        "the width of `rb` can be 48",
        "48",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<rb> = 32 + (round==\"UP\")*8;",
        "the width of `rb` can be 40",
        "32 + (round==\"UP\")*8",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<rb> = 32 + ra*rd;",
        "this width depends on too much",
        "32 + ra*rd",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidht<rb> = 32;",
        "this begins no statement: `Bitwidht`",
        "Bitwidht",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Bitwidth<rb> = ;",
        "expected a number, a field or a quoted member, found `;`",
        ";",
    ),
    (
        "Bitwidth<rb> = 32;",
        "AsmFormat<ra.neg> = CvtINegX(ra.neg, ext);",
        "there is no field `ext`",
        "ext",
    ),
    (
        "Bitwidth<rb> = 32;",
        "AsmFormat<ra.neg> = Cvt(ra.neg, round);",
        "unknown format function `Cvt`",
        "Cvt",
    ),
    (
        "Bitwidth<rb> = 32;",
        "Effect<load>;",
        "a form has the effects of its optype",
        "load",
    ),
    (
        "Ra must be a register.\n",
        "    Effect<lode>;\n",
        "unknown effect `lode`",
        "lode",
    ),
    // Exceptions.
    (
        "ra.neg==\"True\"",
        "ra.abs==\"True\"",
        "there is no field `ra.abs`",
        "ra.abs",
    ),
    (
        "round==\"UP\" and",
        "round==\"DOWN\" and",
        "`DOWN` is no value of `Round`",
        "\"DOWN\"",
    ),
    (
        "round==\"UP\" and",
        "\"UP\" and",
        "a member stands alone here",
        "\"UP\"",
    ),
    (
        "<Illegal, \"ADD",
        "<Illegal, ADD",
        "expected the message in quotes, found `ADD.UP`",
        "ADD.UP",
    ),
    (
        "= vb == 0;",
        "= vx == 0;",
        "this concerns no form of `ADD`",
        "\"no immediate 0.\"",
    ),
    ("__Amend ADD", "__Amend SUB", "`SUB` is not defined", "SUB"),
    (
        "__Amend ADD\n",
        "__Amend ADD\n  __OperandInfo\n    Order<pg>;\n",
        "an amendment cannot change `Order`",
        "Order",
    ),
    (
        "__Provenance Assigned;\n",
        "__DefLatency FAST\n  __Timing result = 1; predicat = 2;\n  __Optypes ADD, SUB;\n",
        "unknown figure `predicat`",
        "predicat",
    ),
    (
        "__Provenance Assigned;\n",
        "__DefLatency FAST\n  __Timing result = 1;\n  __Optypes ADD, SUB;\n",
        "latency class `FAST` has no `wide`",
        "FAST",
    ),
    (
        "__Provenance Assigned;\n",
        "__DefLatency FAST\n  __Optypes ADD, SUB;\n",
        "optype `SUB` is not defined",
        "SUB",
    ),
    (
        "__Provenance Assigned;\n",
        "__DefLatency FAST\n  __Optypes ADD;\n",
        "optype `MOVE` has no latency class",
        "MOVE",
    ),
    // Syntax.
    (
        ", SrcB   $sched $req ;",
        "$sched $req ;",
        "operand `rb` of form `ADD_RR` is in no line of the syntax",
        "field<32, 8> Reg rb",
    ),
    (
        "ADD{.round} Rd, {-}Ra",
        "ADD{.round} Rd, {-}Rd, {-}Ra",
        "field `rd` is twice in this line",
        "",
    ),
    (
        "ADD{.round} Rd,",
        "ADD{.round Rd,",
        "a brace is not closed",
        "",
    ),
    (
        "ADD{.round} Rd,",
        "ADD{round} Rd,",
        "`r` does not belong in a list of modifiers",
        "r",
    ),
    (
        "ADD{.round} Rd,",
        "{.round} Rd,",
        "this is no mnemonic",
        "{",
    ),
    (
        "ADD{.round} Rd,",
        "ADD Rd,",
        "no line uses the values of `.round`",
        "round",
    ),
    (
        ", .ZERO, .UP}",
        ", .ZERO, .DOWN}",
        "`DOWN` is no value of `Round`",
        "DOWN",
    ),
    (
        ".round = {.NEAREST*, .ZERO, .UP}",
        ".round = {.NEAREST, .ZERO*, .UP}",
        "the starred value of `.round` is not the default of field `round`",
        "ZERO",
    ),
    (
        ".round = {.NEAREST*, .ZERO, .UP}",
        ".round = .NEAREST",
        "the values of a modifier stand in braces",
        ".NEAREST",
    ),
    (
        "MOVE.64   Rd, SrcB",
        "MOVER.64   Rd, SrcB",
        "this line is of `MOVER`, another of `MOVE`",
        "MOVER",
    ),
    (
        "MOVE.64   Rd, SrcB",
        "MOVE.32   Rd, SrcB",
        "a syntax line of form `MOVE_R` can never be chosen",
        "MOVE_R",
    ),
    (
        "MOVE.64   Rd, SrcB  $sched ;",
        "MOVE.64   Rd, SrcB  $shed ;",
        "unknown control token",
        "shed",
    ),
    (
        "MOVE.64   Rd, SrcB  $sched ;",
        "MOVE.64   Rd, SrcB  $sched",
        "expected `;`, found the end of the line",
        "",
    ),
    (
        "MOVE.64   Rd, SrcB  $sched ;",
        "MOVE.64   Rd, [SrcB  $sched ;",
        "a part of an address is expected here",
        "$",
    ),
    (
        "MOVE.64   Rd, SrcB  $sched ;",
        "MOVE.64   Rd, Sreg, SrcB  $sched ;",
        "`Sreg` is no operand of form `MOVE_R`",
        "Sreg",
    ),
    // The whole machine.
    (
        "stype == RI;",
        "stype == RR;",
        "no constant field tells `ADD_RI` from `ADD_RR`",
        "ADD_RI",
    ),
    (
        "    MOVE;",
        "    MOVE = 1;",
        "optypes `MOVE` and `ADD` have the number 1",
        "MOVE",
    ),
];

#[test]
fn planted_mistakes_are_reported_with_their_place() {
    let mut wrong = Vec::new();
    for (from, to, message, at) in PLANTS {
        assert!(DESCRIPTION.contains(from), "`{from}` is in the description");
        let text = DESCRIPTION.replacen(from, to, 1);
        let (sources, found) = diagnostics(&text);
        let hit = found.iter().find(|d| d.message.contains(message));
        let place = hit.map(|d| &text[d.span.start as usize..d.span.end as usize]);
        if place.is_none_or(|place| !at.is_empty() && place != *at) {
            let found: Vec<String> = found.iter().map(|d| render(d, &sources, false)).collect();
            wrong.push(format!(
                "`{from}` → `{to}`: at {place:?}\n{}",
                found.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
