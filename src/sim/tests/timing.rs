//! Timed mode: cycles, and planted hazards that it must find.

use super::super::SimConfig;
use super::Bench;
use crate::launch::HazardKind::{self, *};

fn timed(text: &str) -> super::Report {
    let config = SimConfig {
        timed: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{text}\n EXIT_X"), &[0; 32]);
    let report = bench.launch(1, 32, &[]);
    assert_eq!(report.fault, None);
    report
}

/// Kind, register and addresses of the two instructions of each hazard.
fn hazards(text: &str) -> Vec<(HazardKind, String, u32, u32)> {
    let report = timed(text);
    assert_eq!(report.stats.hazards, report.hazards.len() as u64);
    report
        .hazards
        .iter()
        .map(|h| (h.kind, h.register.to_string(), h.place.pc, h.earlier.0))
        .collect()
}

fn hazard(
    kind: HazardKind,
    register: &str,
    pc: u32,
    earlier: u32,
) -> Vec<(HazardKind, String, u32, u32)> {
    vec![(kind, register.to_string(), pc, earlier)]
}

#[test]
fn a_result_of_fixed_latency() {
    // IADD takes four cycles.
    assert_eq!(hazards("IADD_RI rd=0 vb=1 ?4\n IADD_RI rd=1 ra=0 vb=1"), []);
    assert_eq!(
        hazards("IADD_RI rd=0 vb=1 ?3\n IADD_RI rd=1 ra=0 vb=1"),
        hazard(ReadAfterWrite, "R0", 16, 0)
    );
    assert_eq!(
        hazards("IADD_RI rd=0 vb=1 ?2\n NOP_X ?2\n IADD_RI rd=1 ra=0 vb=1"),
        []
    );
    assert_eq!(
        hazards("IADD_RI rd=0 vb=1\n IADD_RI rd=1 vb=1\n IADD_RI rd=2 ra=0 rd=2 vb=1"),
        hazard(ReadAfterWrite, "R0", 32, 0)
    );
}

#[test]
fn a_predicate_takes_longer() {
    let text =
        |stall| format!("ISETP_RI compop=LT boolop=AND pu=0 vb=1 ?{stall}\n @P0 IADD_RI rd=1 vb=1");
    let latency = u32::from(crate::isa::Optype::ISETP.info().latency.predicate);
    assert_eq!(hazards(&text(latency)), []);
    assert_eq!(
        hazards(&text(latency - 1)),
        hazard(ReadAfterWrite, "P0", 16, 0)
    );
}

#[test]
fn a_result_of_variable_latency_needs_its_scoreboard() {
    let load = "MOV_C rd=2 vb=c0:0x160\n MOV_C rd=3 vb=c0:0x164 ?4\n LDG_R rd=4 ra=2 &wr=1\n";
    assert_eq!(
        hazards(&format!("{load} IADD_RI rd=5 ra=4 vb=1 &req=2")),
        []
    );
    assert_eq!(
        hazards(&format!("{load} IADD_RI rd=5 ra=4 vb=1")),
        hazard(ReadAfterWrite, "R4", 48, 32)
    );
    assert_eq!(
        hazards(&format!("{load} IADD_RI rd=5 ra=4 vb=1 &req=1")),
        hazard(ReadAfterWrite, "R4", 48, 32),
        "another scoreboard"
    );
    // However long after.
    let long = "NOP_X ?15\n".repeat(40);
    assert_eq!(
        hazards(&format!("{load}{long} IADD_RI rd=5 ra=4 vb=1")).len(),
        1
    );
    // A wait under a false guard counts.
    assert_eq!(
        hazards(&format!(
            "{load} @!P0 NOP_X &req=2\n @P0 NOP_X &req=2\n IADD_RI rd=5 ra=4 vb=1"
        )),
        []
    );
}

#[test]
fn a_scoreboard_is_a_counter() {
    // Two loads on one scoreboard: waiting for it waits for both.
    let text = "
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164 ?4
        LDG_R rd=4 ra=2 &wr=0
        LDC_R rd=5 bank=0 ra=255 &wr=0
        IADD_RR rd=6 ra=4 rb=5 &req=1";
    let report = timed(text);
    assert_eq!(report.stats.hazards, 0);
    assert!(
        report.stats.cycles > 300,
        "the load's latency is waited for: {}",
        report.stats.cycles
    );
}

#[test]
fn overwriting_too_early() {
    // The conversion takes longer than the addition that overwrites its result.
    let slow = "IMAD_WIDE_RIR rd=4 ra=255 vb=4 ?1\n";
    assert_eq!(
        hazards(&format!("{slow} MOV_R rd=4")),
        hazard(WriteAfterWrite, "R4", 16, 0)
    );
    assert_eq!(
        hazards("IMAD_WIDE_RIR rd=4 ra=255 vb=4 ?4\n MOV_R rd=4"),
        []
    );
    assert_eq!(
        hazards("MUFU_R mufuop=EX2 dtype=F32 rd=4 rb=255 &wr=0 ?15\n NOP_X ?15\n MOV_R rd=4"),
        hazard(WriteAfterWrite, "R4", 32, 0)
    );
    assert_eq!(
        hazards("MUFU_R mufuop=EX2 dtype=F32 rd=4 rb=255 &wr=0\n MOV_R rd=4 &req=1"),
        []
    );
}

#[test]
fn slow_readers() {
    let store = "MOV_C rd=2 vb=c0:0x160\n MOV_C rd=3 vb=c0:0x164 ?4\n";
    assert_eq!(
        hazards(&format!("{store} STG_RR ra=2 rb=5 ?15\n MOV_R rd=5")),
        hazard(WriteAfterRead, "R5", 48, 32)
    );
    assert_eq!(
        hazards(&format!(
            "{store} STG_RR ra=2 rb=5 &rd=3\n MOV_R rd=5 &req=8"
        )),
        []
    );
    // The result of a load tells that its address has been read.
    assert_eq!(
        hazards(&format!(
            "{store} LDG_R rd=6 ra=2 &wr=3\n MOV_R rd=2 &req=8"
        )),
        []
    );
    // An instruction may overwrite its own sources.
    assert_eq!(
        hazards(&format!("{store} LDG_R size=64 rd=2 ra=2 &wr=3")),
        []
    );
}

#[test]
fn uniform_registers_have_hazards_too() {
    assert_eq!(
        hazards("UMOV_I urd=1 vb=5 ?2\n IADD_RU rd=0 ra=255 urb=1"),
        hazard(ReadAfterWrite, "UR1", 16, 0)
    );
    assert_eq!(
        hazards("UMOV_I urd=1 vb=5 ?6\n IADD_RU rd=0 ra=255 urb=1"),
        []
    );
    assert_eq!(
        hazards("R2UR_R urd=1 rb=0 &wr=0 ?15\n IADD_RU rd=2 ra=255 urb=1"),
        hazard(ReadAfterWrite, "UR1", 16, 0)
    );
}

/// Words, pairs and predicates of the uniform datapath take the same six cycles.
#[test]
fn uniform_results_need_their_stall() {
    for (write, read, register) in [
        ("UIMAD_RIR urd=2 vb=3", "IADD_RU rd=0 urb=2", "UR2"),
        ("UIMAD_WIDE_RIR urd=2 vb=3", "IADD_RU rd=0 urb=3", "UR3"),
        (
            "USHF_64_RI direction=L urd=2 vb=3",
            "MOV_U rd=0 urb=3",
            "UR3",
        ),
        (
            "ULEA_RI width=64 urd=2 vb=3 shiftamt=2",
            "UMOV_U width=64 urd=4 urb=2",
            "UR2",
        ),
        (
            "UISETP_RI compop=EQ boolop=AND pu=1 vb=3 pp=7",
            "@P1 IADD_RI rd=0 vb=1",
            "P1",
        ),
        (
            "UISETP_RI compop=EQ boolop=AND pu=1 vb=3 pp=7",
            "USEL_RI urd=0 vb=1 pp=1",
            "P1",
        ),
    ] {
        let found = hazards(&format!("{write} ?5\n {read}"));
        let first = found.iter().map(|h| (h.0, h.1.as_str())).next();
        assert_eq!(first, Some((ReadAfterWrite, register)), "{write}, {read}");
        assert_eq!(
            hazards(&format!("{write} ?6\n {read}")),
            [],
            "{write}, {read}"
        );
    }
    // Predicates come late from elsewhere.
    let text = |stall| {
        format!("ISETP_RI compop=EQ boolop=AND pu=1 vb=3 ?{stall}\n USEL_RI urd=0 vb=1 pp=1")
    };
    assert_eq!(hazards(&text(12)), hazard(ReadAfterWrite, "P1", 16, 0));
    assert_eq!(hazards(&text(13)), []);
}

#[test]
fn lanes_where_the_guard_is_false_have_no_hazard() {
    let text = "
        ISETP_RI compop=GT boolop=AND pu=0 vb=1 ?13
        @P0 IADD_RI rd=0 vb=1 ?1
        IADD_RI rd=1 ra=0 vb=1";
    assert_eq!(hazards(text), []);
}

#[test]
fn stalls_make_cycles() {
    // Ten instructions with a stall of five, then EXIT.
    let report = timed(&"NOP_X ?5\n".repeat(10));
    assert_eq!(report.stats.cycles, 51);
    // A second warp fills the gaps: no more than one cycle more.
    let config = SimConfig {
        timed: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, &format!("{} EXIT_X", "NOP_X ?5\n".repeat(10)), &[]);
    assert_eq!(bench.launch(1, 64, &[]).stats.cycles, 52);
    assert_eq!(
        bench.launch(3, 32, &[]).stats.cycles,
        3 * 51,
        "CTAs one after another"
    );
}

#[test]
fn convergence_barriers_have_hazards() {
    let text = |stall| format!("BSSY_X bn=2 label=>join ?{stall}\n join:\n BSYNC_X bn=2");
    let latency = u32::from(crate::isa::Optype::BSSY.info().latency.result);
    assert_eq!(hazards(&text(latency)), []);
    assert_eq!(
        hazards(&text(latency - 1)),
        hazard(ReadAfterWrite, "B2", 16, 0)
    );
}

#[test]
fn registers_known_at_run_time_may_be_any() {
    let latency = crate::isa::Optype::SETGPR.info().latency.result;
    let set = "UMOV_I urd=0 vb=9 ?6\n SETGPR_U ra=255 urb=0 ridx=0";
    assert_eq!(
        hazards(&format!("{set}\n IADD_RI rd=255 ra=3 vb=1")),
        hazard(ReadAfterWrite, "R3", 32, 16)
    );
    assert_eq!(
        hazards(&format!("{set} ?{latency}\n IADD_RI rd=255 ra=3 vb=1")),
        []
    );
    let get = "UMOV_I urd=0 vb=9 ?6\n MOV_R rd=5\n GETGPR_U rd=1 urb=0 ridx=0";
    assert_eq!(hazards(get), hazard(ReadAfterWrite, "R[]", 32, 16));
}

/// Kind, register and addresses of the hazards of a launch of so many threads.
fn hazards_of(text: &str, threads: u32) -> Vec<(HazardKind, String, u32, u32)> {
    let config = SimConfig {
        timed: true,
        ..SimConfig::default()
    };
    let mut bench = Bench::with(config, text, &[0; 1024]);
    let report = bench.launch(1, threads, &[]);
    assert_eq!(report.fault, None);
    let hazards = report.hazards.iter();
    hazards
        .map(|h| (h.kind, h.register.to_string(), h.place.pc, h.earlier.0))
        .collect()
}

#[test]
fn other_warps_hide_no_short_stall() {
    let text = "IADD_RI rd=0 vb=1 ?3\n IADD_RI rd=1 ra=0 vb=1\n EXIT_X";
    for threads in [1, 32, 64, 1024] {
        assert_eq!(
            hazards_of(text, threads),
            hazard(ReadAfterWrite, "R0", 16, 0),
            "{threads} threads"
        );
    }
}

#[test]
fn what_holds_a_warp_hides_no_short_stall() {
    // A fence holds the warp for long, and so does a scoreboard: neither is what the sum relies on.
    let fence = "IADD_RI rd=0 vb=1 ?1\n MEMBAR_X ?1\n IADD_RI rd=1 ra=0 vb=1\n EXIT_X";
    assert_eq!(hazards_of(fence, 32), hazard(ReadAfterWrite, "R0", 32, 0));
    let wait = "
        S2R_X rd=2 sreg=SR_LANEID &wr=0
        IADD_RI rd=0 vb=1 ?1
        IADD_RR rd=1 ra=0 rb=2 &req=1
        EXIT_X";
    assert_eq!(hazards_of(wait, 32), hazard(ReadAfterWrite, "R0", 32, 16));
    let barrier = "IADD_RI rd=0 vb=1 ?1\n BAR_X ?1\n IADD_RI rd=1 ra=0 vb=1\n EXIT_X";
    for threads in [32, 256] {
        assert_eq!(
            hazards_of(barrier, threads),
            hazard(ReadAfterWrite, "R0", 32, 0)
        );
    }
}

/// Lanes below 16 go to `other`, the others run `here`; both meet at `join`, behind which R5 is computed from R4.
fn two_sides(here: &str, other: &str) -> String {
    format!(
        "S2R_X rd=0 sreg=SR_LANEID &wr=0
         ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=16 &req=1 ?13
         MOV_R rd=4 ?4
         BSSY_X bn=0 label=>join ?15
         @P0 BRA_X label=>other ?1
         {here}
         BRA_X label=>join ?1
         other:
         {other}
         join:
         BSYNC_X bn=0 ?1
         IADD_RI rd=5 ra=4 vb=1 ?4
         EXIT_X"
    )
}

#[test]
fn another_group_hides_no_short_stall() {
    let long = "NOP_X ?15\n NOP_X ?15\n NOP_X ?15";
    let sum = |stall| format!("IADD_RI rd=4 vb=1 ?{stall}");
    assert_eq!(hazards_of(&two_sides(&sum(2), long), 32), []);
    assert_eq!(
        hazards_of(&two_sides(&sum(1), long), 32),
        hazard(ReadAfterWrite, "R4", 11 * 16, 5 * 16),
        "behind a branch and BSYNC three cycles have passed"
    );
    assert_eq!(hazards_of(&two_sides(long, &sum(3)), 32), []);
    assert_eq!(
        hazards_of(&two_sides(long, &sum(2)), 32),
        hazard(ReadAfterWrite, "R4", 11 * 16, 9 * 16)
    );
    // A wait of one group tells nothing to another: the other side's load is not waited for.
    let load = "MOV_C rd=2 vb=c0:0x160\n MOV_C rd=3 vb=c0:0x164 ?4\n LDG_R rd=4 ra=2 &wr=1 ?1";
    assert_eq!(
        hazards_of(&two_sides(load, "NOP_X &req=2"), 32),
        hazard(ReadAfterWrite, "R4", 11 * 16, 7 * 16)
    );
    assert_eq!(
        hazards_of(&two_sides(&format!("{load}\n NOP_X &req=2"), long), 32),
        []
    );
}

#[test]
fn lanes_that_waited_in_one_group_may_rely_on_it_in_another() {
    // One side reads a uniform register slowly and waits for it; the other side never does, and all overwrite it
    // behind.
    let store = "STG_RRU ra=255 urc=2 rb=4 &rd=1 ?1\n NOP_X &req=2";
    let text =
        |side: &str| two_sides(side, "NOP_X").replace("EXIT_X", "UMOV_I urd=2 vb=5 ?6\n EXIT_X");
    let text = |side: &str| format!("ULDC_C width=64 urd=2 vb=c0:0x160 ?6\n {}", text(side));
    assert_eq!(hazards_of(&text(store), 32), []);
    let early = hazards_of(&text(store.lines().next().unwrap_or("")), 32);
    assert_eq!(early.len(), 1);
    assert_eq!((early[0].0, early[0].1.as_str()), (WriteAfterRead, "UR2"));
}
