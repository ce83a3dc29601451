//! Timed mode: cycles, and planted hazards that it must find.

use super::super::SimConfig;
use super::super::timed::HazardKind::{self, *};
use super::Bench;

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
