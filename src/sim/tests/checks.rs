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
