//! `--check`: planted mistakes that it must find, and right programs that it must not blame.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::FindingKind;

fn findings(text: &str, threads: u32) -> Vec<(FindingKind, u32)> {
    let config = SimConfig {
        check: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 64]);
    let report = bench.launch(1, threads, &[]);
    assert_eq!(report.fault, None);
    let findings = report.findings.into_iter();
    findings.map(|f| (f.kind, f.place.pc)).collect()
}

#[test]
fn registers_that_hold_nothing() {
    let found = findings("IADD_RI rd=1 ra=0 vb=1", 32);
    assert!(
        matches!(&found[..], [(FindingKind::UndefinedRegister(r), 0)] if r.to_string() == "R0"),
        "{found:?}"
    );
    let found = findings("@P2 NOP_X", 32);
    assert!(
        matches!(&found[..], [(FindingKind::UndefinedRegister(r), 0)] if r.to_string() == "P2"),
        "{found:?}"
    );
    let found = findings("IADD_RU rd=1 ra=255 urb=4", 32);
    assert!(
        matches!(&found[..], [(FindingKind::UndefinedRegister(r), 0)] if r.to_string() == "UR4"),
        "{found:?}"
    );
    // Defined in some lanes only.
    let found = findings(
        &format!(
            "{ADDRESS} ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5\n @P0 MOV_I rd=9 vb=1\n IADD_RI rd=9 ra=9 vb=1"
        ),
        32,
    );
    assert!(
        matches!(&found[..], [(FindingKind::UndefinedRegister(r), 128)] if r.to_string() == "R9"),
        "{found:?}"
    );
}

#[test]
fn saving_registers_that_hold_nothing_is_no_use() {
    let text = "
        MOV_C rd=1 vb=c0:0x28
        IADD_RI rd=1 ra=1 vb=-16
        STL_RR size=64 ra=1 rb=16
        MOV_I rd=16 vb=4
        LDL_R size=64 rd=16 ra=1
        MOV_R rd=20 rb=17";
    assert_eq!(findings(text, 32), []);
    let found = findings(&format!("{text}\n IADD_RI rd=0 ra=20 vb=1"), 32);
    assert!(
        matches!(&found[..], [(FindingKind::UndefinedRegister(r), 96)] if r.to_string() == "R20"),
        "{found:?}"
    );
    // Each word has its own mark, in the register and in memory.
    let text = "
        MOV_C rd=1 vb=c0:0x28
        IADD_RI rd=1 ra=1 vb=-16
        MOV_I rd=17 vb=4
        MOV_I rd=18 vb=5
        STL_RR size=128 ra=1 rb=16
        LDL_R size=128 rd=20 ra=1
        IADD_RR rd=0 ra=21 rb=22";
    assert_eq!(findings(text, 32), []);
    for undefined in [20, 23] {
        let found = findings(&format!("{text}\n IADD_RI rd=0 ra={undefined} vb=1"), 32);
        assert!(
            matches!(&found[..], [(FindingKind::UndefinedRegister(r), 112)] if r.number() == undefined),
            "{found:?}"
        );
    }
}

/// Findings about memory: the use, and the load.
fn unwritten(text: &str, threads: u32) -> Vec<(u32, Option<u32>)> {
    let config = SimConfig {
        check: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 64]);
    let fresh = bench.global.allocate(64).unwrap();
    let own = bench.global.allocate(64).unwrap();
    bench.global.make_private(own).unwrap();
    let pointers = [fresh, own].map(|at| [at as u32, (at >> 32) as u32]);
    let report = bench.launch(1, threads, pointers.as_flattened());
    assert_eq!(report.fault, None);
    let is_memory = |kind: &FindingKind| matches!(kind, FindingKind::UndefinedMemory { .. });
    assert!(
        report.findings.iter().all(|f| is_memory(&f.kind)),
        "{:?}",
        report.findings
    );
    let findings = report.findings.iter();
    findings
        .map(|f| (f.place.pc, f.other.as_ref().map(|load| load.pc)))
        .collect()
}

/// The addresses of three buffers, in R2, R4 and R6: one that the host has written, one that nobody has, and one that
/// nobody has and kernels alone use. 96 bytes.
const BUFFERS: &str = "
    MOV_C rd=2 vb=c0:0x160
    MOV_C rd=3 vb=c0:0x164
    MOV_C rd=4 vb=c0:0x168
    MOV_C rd=5 vb=c0:0x16c
    MOV_C rd=6 vb=c0:0x170
    MOV_C rd=7 vb=c0:0x174
";

#[test]
fn memory_that_holds_nothing() {
    // What is loaded and not used is none.
    assert_eq!(unwritten("LDS_R rd=0 ra=255 addr=8", 1), []);
    let used = "LDS_R rd=0 ra=255 addr=8\n IADD_RI rd=1 ra=0 vb=1";
    assert_eq!(unwritten(used, 1), [(16, Some(0))]);
    let found = findings(used, 1);
    assert!(
        matches!(
            found[..],
            [(
                FindingKind::UndefinedMemory {
                    offset: 8,
                    bytes: 4,
                    ..
                },
                16
            )]
        ),
        "{found:?}"
    );
    let global = |rest: &str| unwritten(&format!("{BUFFERS} LDG_R rd=10 ra=4\n {rest}"), 1);
    assert_eq!(global("IADD_RI rd=1 ra=10 vb=1"), [(112, Some(96))]);
    assert_eq!(
        global("ISETP_RI compop=LT boolop=AND pu=0 ra=10 vb=5"),
        [(112, Some(96))]
    );
    assert_eq!(global("LDS_R rd=1 ra=10"), [(112, Some(96))]);
    // Overwritten first.
    assert_eq!(global("MOV_I rd=10 vb=1\n IADD_RI rd=1 ra=10 vb=1"), []);
    // An atomic uses what it finds.
    assert_eq!(
        unwritten("ATOMS_RR op=ADD atype=U32 rd=0 ra=255 rb=255", 1),
        [(0, None)]
    );
}

/// A store of one byte does not define the word; what takes words apart may load it all the same.
#[test]
fn words_that_are_written_in_part() {
    let text = |uses: &str| {
        format!(
            "STS_RR size=U8 ra=255 rb=255\n LDS_R size=U8 rd=0 ra=255\n LDS_R rd=1 ra=255\n {uses}"
        )
    };
    assert_eq!(unwritten(&text("IADD_RI rd=0 ra=0 vb=1"), 1), []);
    assert_eq!(
        unwritten(&text("LOP3_RIR lut=0xC0 rd=6 ra=1 vb=255 rc=255"), 1),
        []
    );
    assert_eq!(
        unwritten(&text("FADD_RR rd=2 ra=1 rb=1"), 1),
        [(48, Some(32))]
    );
    assert_eq!(unwritten(&text("LDS_R rd=2 ra=1"), 1), [(48, Some(32))]);
    // Byte by byte through another place.
    let copied = "STS_RR ra=255 rb=1 addr=16\n LDS_R size=U8 rd=3 ra=255 addr=";
    for (at, found) in [(16, &[][..]), (17, &[(80, Some(64))][..])] {
        let text = text(&format!("{copied}{at}\n IADD_RI rd=4 ra=3 vb=1"));
        assert_eq!(unwritten(&text, 1), found, "{text}");
    }
}

#[test]
fn copies_of_what_nobody_wrote() {
    let copy = format!(
        "{BUFFERS}
        LDG_R size=64 rd=10 ra=4
        MOV_R rd=12 rb=10
        MOV_R rd=13 rb=11
        STS_RR size=64 ra=255 rb=12
        LDS_R size=64 rd=14 ra=255
        STG_RR size=64 ra=6 rb=14
        LDG_R rd=16 ra=6
        SEL_RR rd=17 ra=16 rb=16 pp=7"
    );
    assert_eq!(unwritten(&copy, 1), []);
    assert_eq!(
        unwritten(&format!("{copy}\n IADD_RI rd=0 ra=17 vb=1"), 1),
        [(224, Some(192))]
    );
    // The host may read where the copy goes.
    assert_eq!(
        unwritten(&format!("{copy}\n STG_RR ra=2 rb=17"), 1),
        [(224, Some(192))]
    );
    // A copy in pieces: the word is shifted and masked on its way.
    let pieces = format!(
        "{BUFFERS}
        LDG_R rd=10 ra=4
        SHF_RIR direction=R lohi=HI rd=12 ra=255 vb=8 rc=10
        LOP3_RIR lut=0xC0 rd=12 ra=12 vb=255 rc=255
        STG_RR size=U8 ra=6 rb=12
        LDG_R size=U8 rd=13 ra=6"
    );
    assert_eq!(unwritten(&pieces, 1), []);
    let uses = pieces
        .lines()
        .filter(|line| !line.trim().is_empty())
        .count() as u32;
    let found = unwritten(&format!("{pieces}\n IADD_RI rd=0 ra=13 vb=1"), 1);
    assert_eq!(found, [(16 * uses, Some(16 * (uses - 1)))]);
    // By how much is shifted is a use.
    let amount =
        format!("{BUFFERS} LDG_R rd=10 ra=4\n SHF_RRR direction=R lohi=HI rd=12 ra=255 rb=10 rc=2");
    assert_eq!(unwritten(&amount, 1), [(112, Some(96))]);
    // And what is shifted by a written amount is what it was.
    let shifted = format!(
        "{BUFFERS} LDG_R rd=10 ra=4\n SHF_RRR direction=R lohi=HI rd=12 ra=255 rb=2 rc=10\n IADD_RI rd=0 ra=12 vb=1"
    );
    assert_eq!(unwritten(&shifted, 1), [(128, Some(96))]);
    // Of a choice the part that is chosen.
    let choose = |compare: &str| {
        format!(
            "{BUFFERS}
            LDG_R rd=10 ra=4
            LDG_R rd=11 ra=2
            ISETP_RI compop={compare} boolop=AND pu=0 ra=255 vb=5
            SEL_RR rd=12 ra=10 rb=11 pp=0
            IADD_RI rd=0 ra=12 vb=1"
        )
    };
    assert_eq!(unwritten(&choose("LT"), 1), [(160, Some(96))]);
    assert_eq!(unwritten(&choose("GT"), 1), []);
    // What is written behind the copy is there.
    let mended = format!(
        "{copy}\n MOV_I rd=18 vb=1\n STG_RR ra=6 rb=18\n LDG_R rd=19 ra=6\n IADD_RI rd=0 ra=19 vb=1"
    );
    assert_eq!(unwritten(&mended, 1), []);
    // In a row of lanes, some of which hold a copy of nothing.
    let row = format!(
        "{ADDRESS}
        {BUFFERS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
        @!P0 MOV_I rd=10 vb=1
        @P0 LDG_R rd=10 ra=4
        IMAD_RIR rd=12 ra=0 vb=4 rc=255
        STS_RR ra=12 rb=10
        LDS_R rd=11 ra=12"
    );
    assert_eq!(unwritten(&row, 16), []);
    let uses = row.lines().filter(|line| !line.trim().is_empty()).count() as u32;
    let found = unwritten(&format!("{row}\n IADD_RI rd=0 ra=11 vb=1"), 16);
    assert_eq!(found, [(16 * uses, Some(16 * (uses - 1)))]);
    assert_eq!(
        unwritten(&format!("{row}\n @!P0 IADD_RI rd=0 ra=11 vb=1"), 16),
        []
    );
}

#[test]
fn uniform_writes_of_a_part_of_the_warp() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
        BSSY_X bn=0 label=>join
        @P0 BRA_X label=>join
        UMOV_I urd=0 vb=1
    join:
        BSYNC_X bn=0
        UMOV_I urd=0 vb=2"
    );
    let found = findings(&text, 32);
    assert!(
        matches!(
            found[..],
            [(
                FindingKind::DivergentUniformWrite {
                    active: 0xFFFF_FFE0,
                    ..
                },
                144
            )]
        ),
        "{found:?}"
    );
}

#[test]
fn uniform_writes_whose_guard_differs() {
    let text = |guard: &str| {
        format!(
            "{ADDRESS}
            ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
            ISETP_RI compop=LT boolop=AND pu=1 ra=0 vb=500
            {guard} UMOV_I urd=0 vb=1"
        )
    };
    let found = findings(&text("@P0"), 32);
    assert!(
        matches!(
            found[..],
            [(FindingKind::DivergentUniformWrite { active: 0x1F, .. }, 128)]
        ),
        "{found:?}"
    );
    // The same in all lanes, true or false.
    assert_eq!(findings(&text("@P1"), 32), []);
    assert_eq!(findings(&text("@!P1"), 32), []);
}

#[test]
fn bsync_of_what_was_never_set() {
    let text = |set: &str| {
        format!(
            "{ADDRESS}
            ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
            @P0 BRA_X label=>join
            {set}
        join:
            BSYNC_X bn=2"
        )
    };
    let found = findings(&text("NOP_X"), 32);
    assert!(
        matches!(found[..], [(FindingKind::UnsetBarrier { barrier: 2 }, 144)]),
        "{found:?}"
    );
    let found = findings(&text("BSSY_X bn=2 label=>join"), 32);
    assert!(
        matches!(found[..], [(FindingKind::UnsetBarrier { barrier: 2 }, 144)]),
        "the lanes that branched: {found:?}"
    );
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
        BSSY_X bn=2 label=>join
        @P0 BRA_X label=>join
    join:
        BSYNC_X bn=2"
    );
    assert_eq!(findings(&text, 32), []);
}

/// Every kind of instruction that writes a uniform register, while the other lanes are elsewhere: ahead, waiting at
/// BSYNC, in a function or gone. Only lanes that have ended do not count.
#[test]
fn uniform_writes_while_others_are_elsewhere() {
    let writes = [
        "UMOV_I urd=0 vb=1",
        "R2UR_R urd=0 rb=0",
        "S2UR_X urd=0 sreg=SR_CTAID_X",
        "ULDC_C width=64 urd=0 vb=c0:0x160",
        "UIADD_RI urd=0 ura=63 vb=1",
    ];
    let head = format!("{ADDRESS} ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5");
    let is_found = |text: &str| {
        let found = findings(text, 40);
        let uniform = |(kind, _): &(FindingKind, u32)| {
            matches!(kind, FindingKind::DivergentUniformWrite { .. })
        };
        assert!(found.iter().all(uniform), "{text}\n{found:?}");
        !found.is_empty()
    };
    for write in writes {
        // The others wait at BSYNC, or have not come so far.
        for side in ["@P0", "@!P0"] {
            let text = format!(
                "{head}
                BSSY_X bn=0 label=>join
                {side} BRA_X label=>join
                {write}
            join:
                BSYNC_X bn=0"
            );
            assert!(is_found(&text), "{text}");
        }
        // Behind a branch that never meets again: each side writes the same.
        let apart = format!("{head}\n @P0 BRA_X label=>next\n NOP_X\n next:\n {write}");
        assert!(is_found(&apart), "{apart}");
        // In a function that a part of the lanes calls, while the others are in another one.
        let calls = format!(
            "{head}
            BSSY_X bn=0 label=>join
            @P0 CALL_I rd=10 vb=>function
            @!P0 CALL_I rd=10 vb=>other
        join:
            BSYNC_X bn=0
            EXIT_X
        function:
            {write}
            RET_R ra=10
        other:
            NOP_X
            RET_R ra=10"
        );
        assert!(is_found(&calls), "{calls}");
        // The guard is false in a part of the lanes that run together.
        assert!(is_found(&format!("{head}\n @P0 {write}")), "{write}");
        // The others have ended, or met again; or the whole warp is there.
        for right in [
            format!("{head}\n @P0 EXIT_X\n {write}"),
            format!(
                "{head}\n BSSY_X bn=0 label=>join\n @P0 BRA_X label=>join\n NOP_X\n join:\n BSYNC_X bn=0\n {write}"
            ),
            format!(
                "{head}\n ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=500\n @P0 {write}\n @!P0 {write}"
            ),
        ] {
            assert!(!is_found(&right), "{right}");
        }
    }
}

/// An address of the own stack that a shuffle gives to another lane.
#[test]
fn stacks_of_other_lanes() {
    let text = |from: u32| {
        format!(
            "MOV_C rd=1 vb=c0:0x28
            IADD_RI rd=1 ra=1 vb=-16
            STL_RR ra=1 rb=1
            MOV_R rd=6 rb=1
            MOV_I rd=7 vb=0x02000000
            SHFL_RI shfmode=BFLY rd=8 ra=6 vb={from}
            SHFL_RI shfmode=BFLY rd=9 ra=7 vb={from}
            LD_R rd=4 ra=8"
        )
    };
    let found = findings(&text(1), 32);
    assert!(
        matches!(
            found[..],
            [(FindingKind::ForeignStack { bytes: 4, .. }, 112)]
        ),
        "{found:?}"
    );
    assert_eq!(findings(&text(0), 32), []);
}
