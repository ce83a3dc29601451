//! Profiles and traces: they add up to the launch's counts, and sectors and conflicts are those counted by hand.

use super::super::SimConfig;
use super::{ADDRESS, Bench, Report};
use crate::isa::Optype;
use crate::launch::profile::{Counts, Profile, Stall};
use crate::launch::trace::{Event, Row, What};
use std::collections::BTreeMap;

const PROFILED: fn() -> SimConfig = || SimConfig {
    timed: true,
    profile: true,
    trace_events: Some(1 << 20),
    ..SimConfig::default()
};

/// A barrier that warps reach at different times, loops of different lengths, accesses of two windows.
fn program() -> String {
    format!(
        "{ADDRESS}
        LDG_R rd=6 ra=2 &wr=0
        LOP3_RIR lut=0xC0 rd=7 ra=1 vb=96 ?4
        again:
        IADD_RI rd=6 ra=6 vb=1 &req=1 ?4
        IADD_RI rd=7 ra=7 vb=-32 ?4
        ISETP_RI compop=GE boolop=AND pu=0 ra=7 vb=0 ?13
        @P0 BRA_X label=>again ?6
        IMAD_RIR rd=8 ra=1 vb=4 ?5
        STS_RR ra=8 rb=6 &rd=1
        BAR_X ?6
        LDS_R rd=9 ra=8 &wr=2
        STG_RR ra=2 rb=9 &req=6 &rd=1
        MEMBAR_X ?2
        EXIT_X ?5 &req=2"
    )
}

fn launched(config: SimConfig, grid: u32) -> Report {
    let mut bench = Bench::with(config, &program(), &[1; 512]);
    let report = bench.launch(grid, 128, &[]);
    assert_eq!(report.fault, None);
    report
}

fn counts(profile: &Profile, name: &str) -> Counts {
    let named = |text: &str| text.split_whitespace().any(|word| word.starts_with(name));
    let mut found = profile.instructions.iter().filter(|i| named(&i.text));
    let counts = found.next().expect("issued").counts.clone();
    assert_eq!(found.next(), None, "{name} is there twice");
    counts
}

/// The events of each warp of each block in their order.
fn rows(events: &[Event]) -> BTreeMap<([u32; 3], u32), Vec<Event>> {
    let mut rows: BTreeMap<_, Vec<Event>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.row == Row::Warp) {
        rows.entry((event.block, event.warp))
            .or_default()
            .push(*event);
    }
    rows
}

/// What was recorded adds up to the launch's counts: rows without a gap, every cycle an issue or a wait, the trace as
/// the profile. The last cycle of a row.
fn adds_up(report: &Report, warps: usize) -> u64 {
    let profile = report.profile.as_ref().expect("wanted");
    let all = profile.instructions.iter().map(|i| &i.counts);
    let sum = |of: fn(&Counts) -> u64| all.clone().map(of).sum::<u64>();
    assert_eq!(sum(|c| c.issues), report.stats.warp_instructions);
    assert_eq!(sum(|c| c.lanes), report.stats.thread_instructions);
    assert_eq!(profile.cycles, report.stats.cycles);

    let trace = report.trace.as_ref().expect("wanted");
    assert_eq!((trace.dropped, trace.cycles), (0, report.stats.cycles));
    let rows = rows(&trace.events);
    assert_eq!(rows.len(), warps);
    let (mut spent, mut last) = (0, 0);
    for events in rows.values() {
        // Nothing overlaps, nothing is missing.
        for pair in events.windows(2) {
            assert_eq!(pair[0].start + pair[0].cycles, pair[1].start, "{pair:?}");
        }
        let end = events.last().expect("an exit");
        spent += end.start + end.cycles - events[0].start;
        last = last.max(end.start + end.cycles);
    }
    assert_eq!(spent, sum(|c| c.issues) + sum(|c| c.stalls.total()));
    // Wherever a wait is in the trace, it is in the profile.
    for stall in Stall::all() {
        let waits = trace
            .events
            .iter()
            .filter(|event| matches!(event.what, What::Wait { stall: why, .. } if why == stall));
        let traced: u64 = waits.map(|event| event.cycles).sum();
        let counted: u64 = all.clone().map(|c| c.stalls.of(stall)).sum();
        assert_eq!(traced, counted, "{}", stall.name());
    }
    last
}

/// A launch without records, otherwise as [`PROFILED`].
const PLAIN: fn() -> SimConfig = || SimConfig {
    profile: false,
    trace_events: None,
    ..PROFILED()
};

#[test]
fn what_is_recorded_adds_up_and_changes_nothing() {
    let report = launched(PROFILED(), 3);
    let plain = launched(PLAIN(), 3);
    assert_eq!(report.stats, plain.stats);
    assert_eq!((plain.profile, plain.trace), (None, None));
    // Four warps of three blocks.
    assert_eq!(adds_up(&report, 12), report.stats.cycles);
}

#[test]
fn parts_of_warps_have_rows_of_their_own() {
    let config = SimConfig {
        warp_lanes: 8,
        ..PROFILED()
    };
    let report = launched(config, 2);
    assert_eq!(adds_up(&report, 32), report.stats.cycles);
}

/// Blocks that are resident together begin together.
#[test]
fn blocks_that_run_together_add_up() {
    let text = program().replace("STG_RR", "RED_RR op=ADD");
    let [report, plain] = [PROFILED(), PLAIN()].map(|config| {
        let report = Bench::with(config, &text, &[1; 512]).launch(4, 128, &[]);
        assert_eq!(report.fault, None);
        report
    });
    assert_eq!(report.stats, plain.stats);
    assert_eq!(adds_up(&report, 16), report.stats.cycles);
    let events = &report.trace.expect("wanted").events;
    let starts = rows(events).into_values().map(|row| row[0].start);
    // Those that issue later wait from the first cycle on.
    assert_eq!(starts.max(), Some(0));
}

/// What was issued before a fault is counted, and what faulted is not.
#[test]
fn a_fault_ends_the_records() {
    let [report, plain] = [PROFILED(), PLAIN()].map(|config| {
        // Behind the third block there is no memory.
        Bench::with(config, &program(), &[1; 384]).launch(5, 128, &[])
    });
    assert!(report.fault.is_some() && report.fault == plain.fault);
    assert_eq!(report.stats, plain.stats);
    let warps = rows(&report.trace.as_ref().expect("wanted").events).len();
    assert!(warps > 12, "{warps}");
    assert!(adds_up(&report, warps) <= report.stats.cycles);
}

#[test]
fn every_wait_has_its_reason() {
    let profile = launched(PROFILED(), 1).profile.expect("wanted");
    let of = |name, stall| counts(&profile, name).stalls.of(stall);
    // The barrier itself is where the warps wait that came first.
    assert!(of("BAR", Stall::BARRIER) > 0);
    assert!(of("EXIT", Stall::FENCE) > 0);
    assert!(of("ISETP", Stall::FIXED) > 0);
    let global = Stall::scoreboard(Optype::LDG);
    assert_eq!(global.name(), "global");
    // The first of the two additions waits for the load.
    let first = profile
        .instructions
        .iter()
        .find(|i| i.text.contains("IADD R6"));
    assert!(first.expect("issued").counts.stalls.of(global) > 200);
    assert!(of("STG", Stall::scoreboard(Optype::LDS)) > 0);
    let alone = profile.instructions.iter();
    assert!(
        alone
            .map(|i| i.counts.stalls.of(Stall::NOT_SELECTED))
            .sum::<u64>()
            > 0
    );
}

/// Counts of one access of a full warp, its address being `lane * stride` bytes into the memory.
fn access(instruction: &str, stride: u32) -> Counts {
    let text = format!(
        "S2R_X rd=1 sreg=SR_TID_X &wr=0
        MOV_C rd=4 vb=c0:0x160 &req=1 ?1
        MOV_C rd=5 vb=c0:0x164 ?4
        IMAD_RIR rd=8 ra=1 vb={stride} ?5
        IMAD_WIDE_RIR itype=U32 rd=2 ra=1 vb={stride} rc=4 ?6
        {instruction} &wr=1
        EXIT_X &req=2 ?5"
    );
    let mut bench = Bench::with(PROFILED(), &text, &[0; 2048]);
    bench.shared = 8192;
    let report = bench.launch(1, 32, &[]);
    assert_eq!(report.fault.map(|fault| fault.to_string()), None);
    let profile = report.profile.expect("wanted");
    let name = instruction.split('_').next().expect("a name");
    counts(&profile, name)
}

#[test]
fn sectors_are_those_of_32_bytes() {
    for (instruction, stride, sectors, bytes) in [
        ("LDG_R rd=12 ra=2", 4, 4, 128),
        ("LDG_R rd=12 ra=2", 8, 8, 128),
        ("LDG_R rd=12 ra=2", 64, 32, 128),
        ("LDG_R rd=12 ra=2", 0, 1, 128),
        ("LDG_R size=128 rd=12 ra=2", 16, 16, 512),
        ("LDG_R size=U8 rd=12 ra=2", 1, 1, 32),
        // Words of 32 lanes at one offset are beside each other, however far the offsets of a thread are apart.
        ("LDL_R rd=12 ra=255 addr=64", 4, 4, 128),
        ("LDS_R rd=12 ra=8", 64, 0, 128),
    ] {
        let counts = access(instruction, stride);
        assert_eq!(
            (counts.sectors, counts.bytes),
            (sectors, bytes),
            "{instruction} {stride}"
        );
    }
}

#[test]
fn conflicts_are_those_of_32_banks() {
    for (instruction, stride, conflicts) in [
        ("LDS_R rd=12 ra=8", 4, 0),
        ("LDS_R rd=12 ra=8", 8, 1),
        ("LDS_R rd=12 ra=8", 128, 31),
        ("LDS_R rd=12 ra=8", 132, 0),
        ("LDS_R rd=12 ra=8", 0, 0),
        ("STS_RR ra=8 rb=8", 64, 15),
        // Half of the lanes in each of two turns.
        ("LDS_R size=64 rd=12 ra=8", 8, 0),
        ("LDS_R size=64 rd=12 ra=8", 16, 2),
        ("LDS_R size=128 rd=12 ra=8", 16, 0),
        ("LDG_R rd=12 ra=2", 128, 0),
    ] {
        let counts = access(instruction, stride);
        assert_eq!(counts.bank_conflicts, conflicts, "{instruction} {stride}");
    }
}

/// The trace is whole up to its limit, says what is left out, and is what viewers read.
#[test]
fn a_trace_has_a_limit() {
    let config = SimConfig {
        trace_events: Some(100),
        profile: false,
        ..PROFILED()
    };
    let all = launched(PROFILED(), 2).trace.expect("wanted");
    let some = launched(config, 2).trace.expect("wanted");
    assert_eq!(some.events, all.events[..100]);
    assert_eq!(some.dropped, all.events.len() as u64 - 100);
    let json = serde_json::to_value(&all).expect("numbers and texts");
    let events = json["traceEvents"].as_array().expect("a list");
    let slices = events.iter().filter(|event| event["ph"] == "X");
    assert_eq!(slices.clone().count(), all.events.len());
    let issues = slices.clone().filter(|event| event["cat"] == "issue");
    assert_eq!(issues.count() as u64, all.warp_instructions);
    for event in slices {
        for key in ["ts", "dur", "pid", "tid"] {
            assert!(event[key].is_u64(), "{key} of {event}");
        }
        // Viewers keep number 0 for what is idle.
        assert!(event["pid"] != 0 && event["tid"] != 0, "{event}");
        assert!(event["name"].is_string());
    }
    assert_eq!(json["otherData"]["cycles"], all.cycles);
    let names = events
        .iter()
        .filter(|event| event["name"] == "process_name");
    let names: Vec<_> = names.map(|event| &event["args"]["name"]).collect();
    assert_eq!(names, ["block 0,0,0", "block 1,0,0"]);
}
