//! Whole programs that are right.

use super::super::SimConfig;
use super::{ADDRESS, Bench};

/// y = a * x + y over a buffer of x, then y.
fn saxpy() -> String {
    format!(
        "{ADDRESS}
        ISETP_RC compop=GE boolop=AND pu=0 ra=0 vb=c0:0x168 ?13
        @P0 EXIT_X
        MOV_C rd=6 vb=c0:0x168 ?4
        IMAD_WIDE_RIR rd=6 ra=6 vb=4 rc=2 ?6      // y = x + 4 n
        LDG_R rd=8 ra=2 &wr=0
        LDG_R rd=9 ra=6 &wr=0
        MOV_C rd=10 vb=c0:0x16c ?4
        FFMA_RRR rd=8 ra=8 rb=10 rc=9 &req=1 ?4
        STG_RR ra=6 rb=8
        EXIT_X"
    )
}

fn check_saxpy(config: SimConfig) -> super::Report {
    let n = 1000;
    let mut buffer: Vec<u32> = (0..n).map(|i| (i as f32 * 0.5).to_bits()).collect();
    buffer.extend((0..n).map(|i| (1000.0 - i as f32).to_bits()));
    let mut bench = Bench::with(config, &saxpy(), &buffer);
    let report = bench.run(4, 256, &[n, 3.0f32.to_bits()]);
    let result = bench.words(2 * n as usize);
    for i in 0..n as usize {
        let expected = (i as f32 * 0.5).mul_add(3.0, 1000.0 - i as f32);
        assert_eq!(
            f32::from_bits(result[n as usize + i]),
            expected,
            "element {i}"
        );
    }
    report
}

#[test]
fn saxpy_functional() {
    let stats = check_saxpy(SimConfig::default()).stats;
    // 7 instructions to the comparison, the guarded exit by the 24 lanes past the end, 9 for the others.
    assert_eq!(stats.warp_instructions, 32 * 8 + 32 * 8 + 1 - 1);
    assert_eq!(stats.thread_instructions, 1024 * 7 + 24 + 1000 * 8);
    assert_eq!((stats.cycles, stats.hazards, stats.faults), (0, 0, 0));
}

#[test]
fn saxpy_timed_and_checked() {
    let stats = check_saxpy(SimConfig {
        timed: true,
        check: true,
        ..SimConfig::default()
    })
    .stats;
    assert!(stats.cycles > 4 * 300, "{} cycles", stats.cycles);
}

#[test]
fn nested_calls_return_lane_by_lane() {
    // outer(x) = inner(x) + inner(x + 10), inner(x) = x * x; R4 argument and result, R[2:3] return address.
    let text = format!(
        "{ADDRESS}
        MOV_R rd=20 rb=2
        MOV_R rd=21 rb=3
        MOV_C rd=1 vb=c0:0x28
        MOV_R rd=4 rb=0
        CALL_I rd=2 vb=>outer
        MOV_R rd=2 rb=20
        MOV_R rd=3 rb=21
        STG_RR ra=2 rb=4
        EXIT_X
    outer:
        IADD_RI rd=1 ra=1 vb=-16
        STL_RR size=64 ra=1 rb=2
        STL_RR ra=1 addr=8 rb=4
        CALL_I rd=2 vb=>inner
        STL_RR ra=1 addr=12 rb=4
        LDL_R rd=4 ra=1 addr=8
        IADD_RI rd=4 ra=4 vb=10
        CALL_I rd=2 vb=>inner
        LDL_R rd=5 ra=1 addr=12
        IADD_RR rd=4 ra=4 rb=5
        LDL_R size=64 rd=2 ra=1
        IADD_RI rd=1 ra=1 vb=16
        RET_R ra=2
    inner:
        IMAD_RRR rd=4 ra=4 rb=4
        RET_R ra=2"
    );
    let mut bench = Bench::with(
        SimConfig {
            check: true,
            ..SimConfig::default()
        },
        &text,
        &[0; 64],
    );
    bench.run(1, 64, &[]);
    for (i, value) in bench.words(64).into_iter().enumerate() {
        let i = i as u32;
        assert_eq!(value, i * i + (i + 10) * (i + 10));
    }
}

#[test]
fn calls_through_registers_may_differ() {
    // Even lanes call `one`, odd ones `two`, whose addresses are 16 bytes apart.
    let text = format!(
        "{ADDRESS}
        BSSY_X bn=0 label=>join
        LOP3_RIR lut=0xC0 rd=6 ra=0 vb=1
        MOV_I rd=7 vb=208
        MOV_R rd=9
        IMAD_RIR rd=6 ra=6 vb=16
        IADD_RR rd=8 ra=7 rb=6
        CALL_R rd=10 rb=8
    join:
        BSYNC_X bn=0
        BRA_X label=>store
    one:
        BRA_X label=>sets1
    two:
        MOV_I rd=4 vb=222
        RET_R ra=10
    sets1:
        MOV_I rd=4 vb=111
        RET_R ra=10
    store:
        S2R_X rd=5 sreg=SR_ACTIVEMASK
        STG_RR ra=2 rb=4
        EXIT_X"
    );
    let one = super::words(&text).len() - 8;
    let text = text.replace("vb=208", &format!("vb={}", 16 * one));
    let mut bench = Bench::new(&text, &[0; 32]);
    let report = bench.run(1, 32, &[]);
    let expected: Vec<u32> = (0..32)
        .map(|i| if i % 2 == 0 { 111 } else { 222 })
        .collect();
    assert_eq!(bench.words(32), expected);
    assert!(report.stats.warp_instructions > 20);
}

#[test]
fn a_barrier_joins_the_warps_of_a_cta() {
    // Shared memory reversed: thread i stores i, waits, loads what thread 95 - i stored.
    let text = format!(
        "{ADDRESS}
        IMAD_RIR rd=6 ra=0 vb=4
        STS_RR ra=6 rb=0
        BAR_X
        IADD_RI ra.neg=1 rd=7 ra=6 vb=380
        LDS_R rd=8 ra=7
        STG_RR ra=2 rb=8
        EXIT_X"
    );
    for (timed, check) in [(false, false), (false, true)] {
        let mut bench = Bench::with(
            SimConfig {
                timed,
                check,
                ..SimConfig::default()
            },
            &text,
            &[0; 96],
        );
        bench.run(1, 96, &[]);
        assert_eq!(bench.words(96), (0..96).rev().collect::<Vec<u32>>());
    }
}

#[test]
fn exited_warps_do_not_hold_up_a_barrier() {
    let text = format!(
        "{ADDRESS}
        ISETP_RI compop=LT boolop=AND pu=0 ra=0 vb=32
        @P0 EXIT_X
        BAR_X
        STG_RR ra=2 rb=0
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[7; 64]);
    bench.run(1, 64, &[]);
    assert_eq!(bench.words(64)[31..33], [7, 32]);
}

#[test]
fn atomics_of_all_threads_add_up() {
    let text = "
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        S2R_X rd=0 sreg=SR_TID_X
        MOV_I rd=4 vb=1
        ATOMG_RR op=ADD rd=6 ra=2 rb=4
        ATOM_RR op=MAX ra=2 rb=0 addr=4 rd=255
        RED_RR op=ADD atype=U64 ra=2 addr=8 rb=4
        MOV_I rd=4 vb=0x3F800000
        RED_RR op=ADD atype=F32 ra=2 addr=16 rb=4
        EXIT_X";
    let mut bench = Bench::new(text, &[0; 5]);
    bench.run(10, 100, &[]);
    assert_eq!(bench.words(5), [1000, 99, 1000, 0, 1000f32.to_bits()]);
}

#[test]
fn blocks_wait_for_each_other_with_atomics() {
    // Every block counts itself in, then spins until all eight are there.
    let text = "
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        MOV_I rd=4 vb=1
        RED_RR op=ADD ra=2 rb=4
    spin:
        LDG_R order=STRONG rd=5 ra=2
        ISETP_RI compop=LT boolop=AND pu=0 ra=5 vb=8
        @P0 BRA_X label=>spin
        EXIT_X";
    let mut bench = Bench::new(text, &[0]);
    bench.run(8, 1, &[]);
    assert_eq!(bench.words(1), [8]);
}

#[test]
fn generic_addresses_reach_every_window() {
    // Through LD and ST: shared at 0x0100.., local at 0x0200.., each holding its own.
    let text = format!(
        "{ADDRESS}
        MOV_R rd=6
        MOV_I rd=7 vb=0x01000000
        IMAD_RIR rd=6 ra=0 vb=8
        MOV_I rd=8 vb=64
        MOV_I rd=9 vb=0x02000000
        ST_RR ra=6 rb=0
        IADD_RI rd=10 ra=0 vb=1000
        ST_RR size=U16 ra=8 rb=10
        LD_R rd=11 ra=6
        LDL_R size=U16 rd=12 ra=8
        LDS_R rd=13 ra=6
        IADD_RR rd=11 ra=11 rb=12
        IADD_RR rd=11 ra=11 rb=13
        ST_RR ra=2 rb=11
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 32]);
    bench.run(1, 32, &[]);
    assert_eq!(
        bench.words(32),
        (0..32).map(|i| 3 * i + 1000).collect::<Vec<u32>>()
    );
}

#[test]
fn narrow_loads_extend() {
    let text = "
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        LDG_R size=S8 rd=4 ra=2
        LDG_R size=U8 rd=5 ra=2
        LDG_R size=S16 rd=6 ra=2
        LDG_R size=U16 rd=7 ra=2
        STG_RR size=128 ra=2 addr=16 rb=4
        LDG_R size=128 rd=8 ra=2 addr=16
        STG_RR size=64 ra=2 addr=32 rb=10
        STG_RR size=U8 ra=2 addr=41 rb=4
        EXIT_X";
    let mut bench = Bench::new(text, &[0xFFFF_FE80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    bench.run(1, 1, &[]);
    assert_eq!(
        bench.words(11)[4..],
        [
            0xFFFF_FF80,
            0x80,
            0xFFFF_FE80,
            0xFE80,
            0xFFFF_FE80,
            0xFE80,
            0x8000
        ]
    );
}

#[test]
fn uniform_registers_hold_one_value_a_warp() {
    let text = format!(
        "{ADDRESS}
        ULDC_C width=64 urd=4 vb=c0:0x160
        S2UR_X urd=0 sreg=SR_CTAID_X
        UIADD_RI urd=0 ura=0 vb=40
        R2UR_R urd=1 rb=0
        IADD_RU rd=6 ra=0 urb=0
        IADD_RU rd=6 ra=6 urb=1
        IMAD_RIR rd=8 ra=0 vb=4
        MOV_R rd=9
        STG_RRU ra=8 urc=4 rb=6
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 64]);
    bench.run(2, 32, &[]);
    let expected: Vec<u32> = (0..64).map(|i| i + 40 + i / 32 + i / 32 * 32).collect();
    assert_eq!(bench.words(64), expected);
}

/// Each result goes to a word of its own; operands in constant memory stand behind the buffer's address.
#[test]
fn uniform_arithmetic_takes_every_kind_of_operand() {
    let operands: [(&str, u64); 9] = [
        // 3 * -7 + 5, the high word of 2^31 * 6, and 1000 - 12 * 4.
        ("UIMAD_RIR urd=20 ura=8 vb=-7 urc=9", -16i64 as u64),
        ("UIMAD_RCR itype=U32 lohi=HI urd=20 ura=10 vb=c0:0x16c", 3),
        ("UIMAD_RRI urd=20 ura=11 urb=12 vc=1000", 952),
        // -3 * 5 - (2^32 + 1), 3 * 5 - 1.
        (
            "UIMAD_WIDE_RUR urd=20 ura=13 urb=9 urc=14 urc.neg=1",
            (-15i64 - (1 << 32) - 1) as u64,
        ),
        ("UIMAD_WIDE_RRI urd=20 ura=8 urb=9 vc=-1", 14),
        ("USHF_64_RI direction=L urd=20 ura=14 vb=4", (1 << 36) + 16),
        (
            "ULEA_RC width=64 urd=20 ura=14 vb=c0:0x170 shiftamt=3",
            (9 << 32) + 15,
        ),
        ("ULOP3_RIR urd=20 ura=9 vb=7 urc=8 lut=0x96", 1),
        ("UMNMX_RI itype=S64 urd=20 ura=14 vb=-2 pp=7", -2i64 as u64),
    ];
    let mut text = "
        ULDC_C width=64 urd=4 vb=c0:0x160
        UMOV_I urd=8 vb=3
        UMOV_I urd=9 vb=5
        UMOV_I urd=10 vb=0x80000000
        UMOV_I urd=11 vb=12
        UMOV_I urd=12 vb=-4
        UMOV_I urd=13 vb=-3
        UMOV_I urd=14 vb=1
        UMOV_I urd=15 vb=1
        MOV_U rd=2 urb=4
        MOV_U rd=3 urb=5\n"
        .to_string();
    for (i, (instruction, _)) in operands.iter().enumerate() {
        let wide = ["WIDE", "64"].iter().any(|w| instruction.contains(w));
        let high = if wide {
            "MOV_U rd=9 urb=21"
        } else {
            "MOV_R rd=9"
        };
        text += &format!(
            "{instruction}\n MOV_U rd=8 urb=20\n {high}\n STG_RR size=64 ra=2 addr={} rb=8\n",
            8 * i
        );
    }
    text += "EXIT_X";
    let mut bench = Bench::new(&text, &[0; 18]);
    bench.run(1, 32, &[0, 6, 7, 1]);
    let words = bench.words(18);
    let results: Vec<u64> = (words.chunks(2))
        .map(|w| u64::from(w[1]) << 32 | u64::from(w[0]))
        .collect();
    for ((instruction, expected), result) in operands.iter().zip(results) {
        let wide = ["WIDE", "64"].iter().any(|w| instruction.contains(w));
        let expected = if wide {
            *expected
        } else {
            u64::from(*expected as u32)
        };
        assert_eq!(result, expected, "{instruction}");
    }
}

/// USEL and UMNMX ask the lowest lane in which they run; UISETP answers every lane in which it runs, with that lane's
/// own `pp`.
#[test]
fn uniform_instructions_and_ordinary_predicates() {
    let text = |guard: &str| {
        format!(
            "{ADDRESS}
            ISETP_RI compop=GE boolop=AND pu=0 ra=0 vb=3
            ISETP_RI compop=EQ boolop=AND pu=1 ra=0 vb=0
            ISETP_RI compop=LT boolop=AND pu=2 ra=0 vb=16
            UMOV_I urd=0 vb=10
            UMOV_I urd=1 vb=20
            UMOV_I urd=2 vb=0
            UMOV_I urd=3 vb=0
            {guard} USEL_RU urd=2 ura=0 urb=1 pp=1
            {guard} UMNMX_RU urd=3 ura=0 urb=1 pp=1
            MOV_U rd=6 urb=2
            MOV_U rd=7 urb=3
            IMAD_RIR rd=6 ra=6 vb=100 rc=7
            {guard} UISETP_RI compop=GT boolop=AND pu=3 ura=1 vb=10 pp=2
            @P3 IADD_RI rd=6 ra=6 vb=1
            STG_RR ra=2 rb=6
            EXIT_X"
        )
    };
    // Lane 0 chooses the first operand and the minimum.
    let mut bench = Bench::new(&text(""), &[0; 32]);
    bench.run(1, 32, &[]);
    let expected: Vec<u32> = (0..32).map(|i| 1010 + u32::from(i < 16)).collect();
    assert_eq!(bench.words(32), expected);
    // Lane 3, the lowest whose guard holds, the others.
    let mut bench = Bench::new(&text("@P0"), &[0; 32]);
    bench.run(1, 32, &[]);
    let expected: Vec<u32> = (0..32)
        .map(|i| 2020 + u32::from((3..16).contains(&i)))
        .collect();
    assert_eq!(bench.words(32), expected);
    // Without a lane whose guard holds nothing happens.
    let mut bench = Bench::new(&text("@P4"), &[0; 32]);
    bench.run(1, 32, &[]);
    assert_eq!(bench.words(32), [0; 32]);
}

#[test]
fn registers_by_index() {
    let text = format!(
        "{ADDRESS}
        MOV_I rd=10 vb=77
        UMOV_I urd=0 vb=9
        SETGPR_U urb=0 ridx=2 ra=10
        GETGPR_U rd=12 urb=0 ridx=1
        IADD_RR rd=12 ra=12 rb=11
        STG_RR ra=2 rb=12
        EXIT_X"
    );
    let mut bench = Bench::new(&text, &[0; 1]);
    bench.run(1, 1, &[]);
    assert_eq!(bench.words(1), [77 + 77]);
}

#[test]
fn special_registers_in_three_dimensions() {
    let text = "
        S2R_X rd=4 sreg=SR_TID_X
        S2R_X rd=5 sreg=SR_TID_Y
        S2R_X rd=6 sreg=SR_TID_Z
        S2R_X rd=7 sreg=SR_CTAID_Z
        S2R_X rd=8 sreg=SR_NTID_Y
        S2R_X rd=9 sreg=SR_NCTAID_X
        S2R_X rd=10 sreg=SR_LANEID
        S2R_X rd=11 sreg=SR_WARPID
        MOV_C rd=2 vb=c0:0x160
        MOV_C rd=3 vb=c0:0x164
        ISETP_RI compop=NE boolop=AND pu=0 ra=11 vb=1
        ISETP_RI compop=NE boolop=OR pu=0 ra=10 vb=3 pp=0
        @P0 EXIT_X
        STG_RR size=128 ra=2 rb=4
        STG_RR size=128 ra=2 addr=16 rb=8
        EXIT_X";
    let bench = Bench::new(text, &[0; 8]);
    let parameters = bench.buffer.to_le_bytes();
    let request = super::LaunchRequest {
        kernel: "test",
        entry: 0,
        grid: [1, 2, 3],
        block: [4, 3, 5],
        static_shared: 0,
        dynamic_shared: 0,
        local_bytes: 0,
        parameters: &parameters,
        progress: None,
        time_limit: None,
    };
    let report = bench
        .loaded
        .launch(&request, bench.global.table(), &bench.config)
        .unwrap();
    assert_eq!(report.fault, None);
    // Thread 35 = 3 + 4 * (2 + 3 * 2); the last block is (0, 1, 2).
    assert_eq!(bench.words(8), [3, 2, 2, 2, 3, 1, 3, 1]);
}
