//! Lane groups: branches, loops, locks between lanes, votes and shuffles.

use super::{ADDRESS, Bench};

#[test]
fn both_sides_of_a_branch() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=10
        BSSY_X bn=0 label=>join
        @P0 BRA_X label=>low
        IADD_RI rd=6 ra=0 vb=100
        BRA_X label=>join
    low:
        IADD_RI rd=6 ra=0 vb=200
    join:
        BSYNC_X bn=0
        S2R_X rd=7 sreg=SR_ACTIVEMASK
        IADD_RR rd=6 ra=6 rb=7
        STG_RR ra=2 rb=6
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 32]);
    let report = bench.run(1, 32, &[]);
    // All lanes are together again: the active mask is all ones, -1.
    let expected: Vec<u32> = (0..32)
        .map(|i| i + if i < 10 { 200 } else { 100 } - 1)
        .collect();
    assert_eq!(bench.words(32), expected);
    // The common part is issued once, each side once.
    assert_eq!(
        report.stats.warp_instructions,
        6 + 3 + 1 + 2 + 1 + 2 + 1 + 1 + 1 + 1 - 1
    );
}

#[test]
fn a_loop_with_a_divergent_exit() {
    // Lane i goes round i + 1 times; the lanes meet again behind the loop.
    let text = format!(
        "{ADDRESS}
        MOV_R rd=6
        BSSY_X bn=3 label=>out
    loop:
        IADD_RI rd=6 ra=6 vb=1
        ISETP_RR compop=LE boolop=AND pu=1 ra=6 rb=0
        @P1 BRA_X label=>loop
    out:
        BSYNC_X bn=3
        VOTE_X votemode=ANY rd=7 pp=7
        IADD_RI rd=7 ra=7 vb=1
        IADD_RR rd=6 ra=6 rb=7
        STG_RR ra=2 rb=6
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 32]);
    bench.run(1, 32, &[]);
    assert_eq!(bench.words(32), (1..=32).collect::<Vec<u32>>());
}

#[test]
fn lanes_of_a_warp_share_a_spin_lock() {
    // Every lane takes the lock at word 0, adds one to word 1 without an atomic, and gives the lock back.
    let text = "
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
        ATOMG_RR op=EXCH rd=255 ra=2 rb=255
    out:
        BSYNC_X bn=0
        EXIT_X";
    let mut bench = Bench::new(text, &[0, 0]);
    bench.run(2, 64, &[]);
    assert_eq!(bench.words(2), [0, 128]);
}

#[test]
fn nested_branches_with_one_barrier_each() {
    // Both sides of the outer branch use B1 for their inner one.
    let text = format!(
        "{ADDRESS}
        MOV_R rd=6
        LOP3_RIR lut=0xC0 rd=7 ra=0 vb=1
        LOP3_RIR lut=0xC0 rd=8 ra=0 vb=2
        ISETP_RI compop=NE boolop=AND pu=0 ra=7 vb=0
        ISETP_RI compop=NE boolop=AND pu=1 ra=8 vb=0
        BSSY_X bn=0 label=>join
        @P0 BRA_X label=>odd
        BSSY_X bn=1 label=>even_join
        @P1 BRA_X label=>even_join
        IADD_RI rd=6 ra=6 vb=1
    even_join:
        BSYNC_X bn=1
        IADD_RI rd=6 ra=6 vb=10
        BRA_X label=>join
    odd:
        BSSY_X bn=1 label=>odd_join
        @!P1 BRA_X label=>odd_join
        IADD_RI rd=6 ra=6 vb=2
    odd_join:
        BSYNC_X bn=1
        IADD_RI rd=6 ra=6 vb=20
    join:
        BSYNC_X bn=0
        STG_RR ra=2 rb=6
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 8]);
    bench.run(1, 8, &[]);
    assert_eq!(bench.words(8), [11, 20, 10, 22, 11, 20, 10, 22]);
}

#[test]
fn barriers_survive_a_call_that_uses_them() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=5
        BSSY_X bn=0 label=>join
        @P0 BRA_X label=>join
        CALL_I rd=10 vb=>function
    join:
        BSYNC_X bn=0
        VOTE_X votemode=ALL rd=7 pp=7
        STG_RR ra=2 rb=7
        EXIT_X
    function:
        BMOV_X rd=12 bs=0
        BSSY_X bn=0 label=>inside
        ISETP_RI compop=LT boolop=AND pu=1 ra=0 vb=9
        @P1 BRA_X label=>inside
    inside:
        BSYNC_X bn=0
        BMOV_R bn=0 ra=12
        RET_R ra=10"
    );
    let mut bench = Bench::new(&text, &[0; 32]);
    bench.run(1, 32, &[]);
    assert_eq!(bench.words(32), [u32::MAX; 32]);
}

#[test]
fn branch_tables() {
    // Lane i goes to case i mod 4 through BRX.REL.
    let text = format!(
        "{ADDRESS}
        LOP3_RIR lut=0xC0 rd=6 ra=0 vb=3
        IMAD_RIR rd=6 ra=6 vb=32
        BSSY_X bn=0 label=>join
        BRX_REL_R ra=6 label=>cases
    cases:
        MOV_I rd=7 vb=1000
        BRA_X label=>join
        MOV_I rd=7 vb=2000
        BRA_X label=>join
        MOV_I rd=7 vb=3000
        BRA_X label=>join
        MOV_I rd=7 vb=4000
    join:
        BSYNC_X bn=0
        STG_RR ra=2 rb=7
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 8]);
    bench.run(1, 8, &[]);
    assert_eq!(
        bench.words(8),
        [1000, 2000, 3000, 4000, 1000, 2000, 3000, 4000]
    );
}

#[test]
fn shuffles_votes_and_matches() {
    let text = format!(
        "{ADDRESS}
        IMAD_RIR rd=6 ra=0 vb=10
        SHFL_RI shfmode=DOWN rd=7 pu=0 ra=6 vb=4
        SHFL_RI shfmode=BFLY rd=8 ra=6 vb=1
        MOV_I rd=9 vb=3
        SHFL_RR shfmode=IDX rd=9 ra=6 rb=9
        LOP3_RIR lut=0xC0 rd=10 ra=0 vb=7
        MATCH_R rd=10 ra=10
        VOTE_X votemode=ALL rd=11 pu=1 pp=0
        SEL_RI rd=12 ra=255 vb=1 pp=1
        MOV_C rd=4 vb=c0:0x160
        MOV_C rd=5 vb=c0:0x164
        IMAD_WIDE_RIR rd=2 ra=0 vb=20 rc=4
        STG_RR ra=2 rb=7
        STG_RR ra=2 addr=4 rb=8
        STG_RR ra=2 addr=8 rb=9
        STG_RR ra=2 addr=12 rb=10
        STG_RR ra=2 addr=16 rb=11
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 160]);
    bench.run(1, 32, &[]);
    let result = bench.words(160);
    for i in 0..32u32 {
        let down = if i + 4 < 32 { 10 * (i + 4) } else { 10 * i };
        let same = (0..32)
            .filter(|j| j % 8 == i % 8)
            .fold(0u32, |m, j| m | 1 << j);
        assert_eq!(
            result[5 * i as usize..][..5],
            [down, 10 * (i ^ 1), 30, same, (1 << 28) - 1],
            "lane {i}"
        );
    }
}

#[test]
fn warp_sync_brings_lanes_together() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=16
        @P0 BRA_X label=>meet
        NOP_X
        NOP_X
    meet:
        WARPSYNC_I vb=0xFFFFFFFF
        VOTE_X votemode=ALL rd=6 pp=7
        STG_RR ra=2 rb=6
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 32]);
    bench.run(1, 32, &[]);
    assert_eq!(bench.words(32), [u32::MAX; 32]);
}
