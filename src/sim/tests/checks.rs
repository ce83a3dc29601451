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

#[test]
fn memory_that_holds_nothing() {
    let found = findings("LDS_R rd=0 ra=255 addr=8", 1);
    assert!(
        matches!(
            found[..],
            [(
                FindingKind::UndefinedMemory {
                    offset: 8,
                    bytes: 4,
                    ..
                },
                0
            )]
        ),
        "{found:?}"
    );
    let config = SimConfig {
        check: true,
        ..SimConfig::default()
    };
    let text = "MOV_C rd=2 vb=c0:0x168\n MOV_C rd=3 vb=c0:0x16c\n LDG_R rd=4 ra=2\n EXIT_X";
    let mut bench = Bench::with(config, text, &[]);
    let fresh = bench.global.allocate(16).unwrap();
    let report = bench.launch(1, 1, &[fresh as u32, (fresh >> 32) as u32]);
    assert!(matches!(
        report.findings[0].kind,
        FindingKind::UndefinedMemory { offset: 0, .. }
    ));
    // A store of one byte does not define the word.
    let found = findings(
        "STS_RR size=U8 ra=255 rb=255\n LDS_R size=U8 rd=0 ra=255\n LDS_R rd=0 ra=255",
        1,
    );
    assert!(
        matches!(found[..], [(FindingKind::UndefinedMemory { .. }, 32)]),
        "{found:?}"
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
