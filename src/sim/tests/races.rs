//! `--check` on accesses of several threads: races that it must find, and order that it must see.

use super::super::SimConfig;
use super::{ADDRESS, Bench};
use crate::launch::Finding;
use crate::launch::FindingKind;

/// Races of a launch of so many blocks and threads, as pcs of the later and the earlier access.
fn races(text: &str, blocks: u32, threads: u32) -> Vec<(u32, u32)> {
    found(text, blocks, threads)
        .iter()
        .map(|f| {
            assert!(matches!(f.kind, FindingKind::Race { .. }), "{f}");
            let other = f.other.as_ref().expect("a race has two places");
            assert_ne!(
                (f.place.block, f.place.thread),
                (other.block, other.thread),
                "{f}"
            );
            (f.place.pc, other.pc)
        })
        .collect()
}

fn found(text: &str, blocks: u32, threads: u32) -> Vec<Finding> {
    let config = SimConfig {
        check: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 4096]);
    let report = bench.launch(blocks, threads, &[]);
    assert_eq!(report.fault, None);
    report.findings
}

#[test]
fn neighbours_exchange_words_of_shared_memory() {
    // Thread i writes word i and reads word i ^ 1.
    let exchange = |between: &str| {
        format!(
            "{ADDRESS}
            IMAD_RIR rd=6 ra=0 vb=4
            STS_RR ra=6 rb=0
            {between}
            LOP3_RIR lut=0x3C rd=7 ra=6 vb=4
            LDS_R rd=8 ra=7"
        )
    };
    assert_eq!(races(&exchange(""), 1, 32), [(144, 112)]);
    assert_eq!(races(&exchange("BAR_X"), 1, 64), []);
    assert_eq!(races(&exchange("WARPSYNC_I vb=0xFFFFFFFF"), 1, 32), []);
    // A WARPSYNC of the even lanes does not order them with the odd ones.
    let part = "
        LOP3_RIR lut=0xC0 rd=9 ra=0 vb=1
        ISETP_RI compop=NE boolop=AND pu=0 ra=9 vb=0
        BSSY_X bn=0 label=>join
        @P0 BRA_X label=>join
        WARPSYNC_I vb=0x55555555
    join:
        BSYNC_X bn=0";
    assert_eq!(races(&exchange(part), 1, 32).len(), 1);
}

#[test]
fn a_lane_that_has_left_is_behind_nobody() {
    // The last lane stores and ends; the others read it behind a WARPSYNC.
    let text = |sync: &str| {
        format!(
            "{ADDRESS}
            ISETP_RI compop=EQ boolop=AND pu=0 ra=0 vb=31
            @P0 STS_RR ra=255 rb=0
            @P0 EXIT_X
            {sync}
            LDS_R rd=8 ra=255"
        )
    };
    assert_eq!(races(&text("WARPSYNC_I vb=0xFFFFFFFF"), 1, 32), []);
    assert_eq!(races(&text("NOP_X"), 1, 32), [(160, 112)]);
}

#[test]
fn read_by_all_then_written_by_one() {
    let text =
        format!("{ADDRESS} STS_RR ra=255 rb=255\n BAR_X\n LDS_R rd=7 ra=255\n STS_RR ra=255 rb=0");
    assert!(races(&text, 1, 64).contains(&(144, 128)));
}

#[test]
fn a_race_is_told_once() {
    let text = format!(
        "{ADDRESS}
        MOV_R rd=6
    again:
        STS_RR ra=255 rb=0
        IADD_RI rd=6 ra=6 vb=1
        ISETP_RI compop=LT boolop=AND pu=0 ra=6 vb=10
        @P0 BRA_X label=>again"
    );
    assert_eq!(races(&text, 2, 64), [(112, 112)]);
}

#[test]
fn atomics_and_repeated_stores_do_not_race() {
    // Atomics do not race with each other; the same value from one instruction neither.
    let text = "STS_RR ra=255 rb=255\n BAR_X\n MOV_I rd=4 vb=1\n ATOMS_RR op=ADD rd=5 ra=255 rb=4";
    assert_eq!(races(text, 1, 64), []);
    assert_eq!(
        races(&format!("{text}\n LDS_R rd=7 ra=255"), 1, 32),
        [(64, 48)]
    );
    let strong = "STS_RR ra=255 rb=255\n BAR_X\n LDS_R order=STRONG rd=5 ra=255\n STS_RR order=STRONG ra=255 rb=255";
    assert_eq!(races(strong, 1, 64), []);
    // Without the barrier the plain store of the first line races with what is strong in other threads.
    assert_ne!(races(&strong.replace("BAR_X", "NOP_X"), 1, 64), []);
}

/// Threads 0 and 32 add to a word; thread 32 tells thread 64, which reads the word and knows nothing of thread 0.
#[test]
fn an_older_atomic_is_remembered() {
    let program = |third: &str| {
        format!(
            "STS_RR size=64 ra=255 rb=255
            BAR_X
            S2R_X rd=0 sreg=SR_TID_X &wr=0
            ISETP_RI compop=EQ boolop=AND pu=0 ra=0 vb=0 &req=1 ?13
            ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=32 ?13
            ISETP_RI compop=EQ boolop=AND pu=2 ra=0 vb=64 ?13
            MOV_I rd=2 vb=1
            @P0 ATOMS_RR op=ADD rd=255 ra=255 rb=2
            @P1 ATOMS_RR op=ADD rd={third} ra=255 rb=2
            @P1 STS_RR order=STRONG ra=255 addr=4 rb=2
            @P2 LDS_R order=STRONG rd=6 ra=255 addr=4
            @P2 LDS_R rd=7 ra=255"
        )
    };
    // Nobody reads what the second atomic returns: it is not behind the first one.
    assert_eq!(races(&program("255"), 1, 96), [(176, 112)]);
    // Otherwise it is, and so is thread 64.
    assert_eq!(races(&program("8"), 1, 96), []);
}

/// A word that one thread stores to and another one adds to races with a third thread that uses it plainly, twice.
#[test]
fn a_plain_store_behind_an_atomic_is_remembered() {
    for last in ["LDS_R rd=6 ra=255", "STS_RR ra=255 rb=0"] {
        let text = format!(
            "STS_RR ra=255 rb=255
            BAR_X
            S2R_X rd=0 sreg=SR_TID_X &wr=0
            ISETP_RI compop=EQ boolop=AND pu=0 ra=0 vb=0 &req=1 ?13
            ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=32 ?13
            ISETP_RI compop=EQ boolop=AND pu=2 ra=0 vb=64 ?13
            MOV_I rd=2 vb=1
            @P0 STS_RR ra=255 rb=2
            @P1 ATOMS_RR op=ADD rd=255 ra=255 rb=2
            @P2 {last}"
        );
        let found = races(&text, 1, 96);
        assert!(
            found.contains(&(128, 112)) && found.contains(&(144, 112)),
            "{found:?}"
        );
    }
}

#[test]
fn an_older_reader_is_remembered() {
    // Lanes 0, 1 and 2 read one after the other; 1 and 2 meet lane 3, which writes.
    let program = |mask: u32| {
        format!(
            "STS_RR ra=255 rb=255
            BAR_X
            S2R_X rd=0 sreg=SR_TID_X &wr=0
            ISETP_RI compop=EQ boolop=AND pu=0 ra=0 vb=0 &req=1 ?13
            ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=1 ?13
            ISETP_RI compop=EQ boolop=AND pu=2 ra=0 vb=2 ?13
            ISETP_RI compop=EQ boolop=AND pu=3 ra=0 vb=3 ?13
            @P0 LDS_R rd=1 ra=255
            @P1 LDS_R rd=1 ra=255
            @P2 LDS_R rd=1 ra=255
            MOV_I rd=2 vb=1
            {} BRA_X label=>sync
            BRA_X label=>behind
        sync:
            WARPSYNC_I vb={mask}
        behind:
            @P3 STS_RR ra=255 rb=2",
            if mask == 0xF { "" } else { "@!P0" }
        )
    };
    assert_eq!(races(&program(0xF), 1, 4), []);
    assert_eq!(races(&program(0xE), 1, 4), [(224, 112)]);
}

#[test]
fn bytes_of_a_word_are_apart() {
    let text = |size: &str| {
        format!("{ADDRESS} STS_RR size={size} ra=0 rb=0\n LDS_R size={size} rd=1 ra=0")
    };
    assert_eq!(races(&text("U8"), 1, 32), []);
    let overlap = format!(
        "{ADDRESS} STS_RR size=U8 ra=0 rb=0\n LOP3_RIR lut=0xC0 rd=6 ra=0 vb=-4\n LDS_R rd=1 ra=6"
    );
    assert_eq!(races(&overlap, 1, 4), [(128, 96)]);
}

#[test]
fn blocks_that_are_not_resident_together() {
    // 1,000 blocks without global atomics run one by one.
    let text = "MOV_C rd=2 vb=c0:0x160\n MOV_C rd=3 vb=c0:0x164\n S2R_X rd=4 sreg=SR_CTAID_X\n STG_RR ra=2 rb=4";
    let found = found(text, 1000, 1);
    assert_eq!(found.len(), 1);
    let other = found[0].other.as_ref().expect("the other block");
    assert_eq!((found[0].place.block, other.block), ([1, 0, 0], [0, 0, 0]));
    // All store the same.
    assert_eq!(races(&text.replace("rb=4", "rb=255"), 1000, 1), []);
    // Each its own word.
    let own = format!("{ADDRESS} STG_RR ra=2 rb=0");
    assert_eq!(races(&own, 30, 100), []);
}

/// Every thread takes the lock at word 0, adds one to word 1, and gives the lock back with `release`.
fn lock(release: &str) -> String {
    format!(
        "
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        MOV_I rd=4 vb=1
        BSSY_X bn=0 label=>out
    again:
        ATOMG_CAS_RRR rd=5 ra=2 rb=255 rc=4
        ISETP_RI compop=NE boolop=AND pu=0 ra=5 vb=0
        @P0 BRA_X label=>again
        LDG_R rd=6 ra=2 addr=4
        IADD_RI rd=6 ra=6 vb=1
        STG_RR ra=2 addr=4 rb=6
        {release}
    out:
        BSYNC_X bn=0"
    )
}

#[test]
fn a_lock_orders() {
    for release in [
        "ATOMG_RR op=EXCH rd=255 ra=2 rb=255",
        "STG_RR order=STRONG ra=2 rb=255",
    ] {
        assert_eq!(races(&lock(release), 5, 64), [], "{release}");
    }
    // A plain store gives the lock back without order, and races with those who ask for it.
    let found = races(&lock("STG_RR ra=2 rb=255"), 5, 64);
    assert!(found.contains(&(160, 64)), "{found:?}");
    // A reader that does not take it.
    let late = format!(
        "{}\n LDG_R rd=6 ra=2 addr=4",
        lock("ATOMG_RR op=EXCH rd=255 ra=2 rb=255")
    );
    assert!(!races(&late, 5, 64).is_empty());
}

#[test]
fn order_goes_through_barriers_and_atomics() {
    // Thread 1 of block 0 stores, the barrier hands it to thread 0, whose atomic hands it to block 1, whose barrier to
    // thread 1 there.
    let text = |barrier: &str| {
        format!(
            "MOV_C rd=2 vb=c0:0x160
            MOV_C rd=3 vb=c0:0x164
            MOV_I rd=4 vb=1
            S2R_X rd=0 sreg=SR_TID_X &wr=0
            S2R_X rd=1 sreg=SR_CTAID_X &wr=0
            ISETP_RI compop=EQ boolop=AND pu=0 ra=0 vb=0 &req=1 ?13
            ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=33 ?13
            ISETP_RI compop=NE boolop=AND pu=2 ra=1 vb=0 ?13
            @P2 BRA_X label=>second
            @P1 STG_RR ra=2 addr=64 rb=4
            {barrier}
            @P0 ATOMG_RR op=ADD rd=5 ra=2 rb=4
            EXIT_X
        second:
            @!P0 BRA_X label=>seen
            BSSY_X bn=0 label=>seen0
        wait:
            LDG_R order=STRONG rd=6 ra=2
            ISETP_RI compop=EQ boolop=AND pu=3 ra=6 vb=0
            @P3 BRA_X label=>wait
        seen0:
            BSYNC_X bn=0
        seen:
            WARPSYNC_I vb=0xFFFFFFFF
            BAR_X
            @P1 LDG_R rd=7 ra=2 addr=64"
        )
    };
    assert_eq!(races(&text("BAR_X"), 2, 64), []);
    assert_eq!(races(&text("NOP_X"), 2, 64).len(), 1);
}
