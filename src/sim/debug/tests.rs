//! A launch that is stepped is the launch; back and forward is where it was.

use super::*;
use crate::asm;
use crate::driver::{Buffer, Device, Grid, Kernel};
use crate::launch::{AccessKind, FaultKind};
use crate::sim::SimConfig;
use crate::testing::Random;

/// Sums of blocks of 64 numbers in shared memory, with a barrier and lanes that part.
const SUMS: &str = "
.kernel sums
    .param 8 i64
    .shared 256
    .registers 12
    .barriers 1
    S2R R0, SR_TID_X &wr=0 ?1 ;
    S2R R1, SR_CTAID_X &wr=1 ?1 ;
    LEA R2, R1, R0, 6 &req={0,1} ?4 ;
    MOV R3, 4 ?4 ;
    IMAD.WIDE.U32 R[4:5], R2, R3, c[0x0][0x160] ?5 ;
    LDG R6, [R[4:5]] &wr=0 ?1 ;
    SHF.L.WRAP.U32 R7, R0, 2, RZ ?4 ;
    STS [R7], R6 &req={0} &rd=0 ?1 ;
    BAR.SYNC &req={0} ?1 ;
    ISETP.GT.AND.U32 P0, R0, 31, PT ?13 ;
    @P0 EXIT ?1 ;
    LDS R8, [R7+0x80] &wr=0 ?1 ;
    BSSY B0, L1 ?13 ;
    ISETP.GT.AND.U32 P1, R0, 15, PT ?13 ;
    @P1 BRA L1 ?6 ;
    IADD R6, R6, 0x100 ?4 ;
L1:
    BSYNC B0 ?6 ;
    IADD R6, R6, R8 &req={0} ?4 ;
    STG [R[4:5]], R6 &rd=0 ?1 ;
    EXIT &req={0} ?1 ;
";

fn kernel(text: &str, name: &str) -> (Device, Kernel) {
    let assembly = asm::assemble("debug.s", text).unwrap_or_else(|e| panic!("{e:?}"));
    let device = Device::simulator(SimConfig::default());
    let module = device.load(&assembly.object).unwrap();
    let kernel = module.kernel(name).unwrap();
    (device, kernel)
}

fn numbers(device: &Device, count: u32) -> Buffer<u32> {
    let numbers: Vec<u32> = (0..count).map(|n| n.wrapping_mul(0x9e37_79b1)).collect();
    device.upload(&numbers).unwrap()
}

#[test]
fn stepping_is_launching() {
    let (device, kernel) = kernel(SUMS, "sums");
    let (a, b) = (numbers(&device, 256), numbers(&device, 256));
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let report = kernel.launch(grid).arg(&a).run().unwrap();
    let mut session = kernel.launch(grid).arg(&b).debug().unwrap();
    let mut steps = 0;
    while session.step() == Stop::Step {
        steps += 1;
    }
    assert_eq!(session.report().stats, report.stats);
    assert_eq!(steps, report.stats.warp_instructions);
    assert_eq!(a.to_vec().unwrap(), b.to_vec().unwrap());
}

/// Everything that can be seen.
fn all(
    session: &mut Session,
    buffer: &Buffer<u32>,
) -> (Vec<WarpView>, Vec<Option<Value>>, Vec<u32>) {
    let warps = session.warps();
    let threads = warps.iter().map(|warp| Thread {
        block: warp.block,
        thread: warp.warp * 32,
    });
    let threads: Vec<Thread> = threads.collect();
    let registers = threads
        .iter()
        .flat_map(|&thread| (0..12).map(move |number| (thread, number)));
    let registers = registers.map(|(thread, number)| session.register(thread, number));
    let registers = registers.collect();
    (warps, registers, buffer.to_vec().unwrap())
}

#[test]
fn back_and_forward_is_where_it_was() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 1024);
    let grid = Grid::new([16, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    session.resume();
    let end = session.position();
    let mut random = Random::for_test("back and forward");
    for _ in 0..200 {
        let (from, back) = (random.below(end), random.below(40));
        session.go_to(from);
        let before = (all(&mut session, &buffer), session.fingerprint());
        session.step_back(back);
        assert_eq!(session.position(), from.saturating_sub(back));
        for _ in 0..from - session.position() {
            session.step();
        }
        assert_eq!(session.position(), from);
        assert!(
            (all(&mut session, &buffer), session.fingerprint()) == before,
            "at {from}, {back} back"
        );
    }
}

#[test]
fn a_fingerprint_is_that_of_one_state() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 256);
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let mut seen = std::collections::BTreeSet::new();
    seen.insert(session.fingerprint());
    while session.step() == Stop::Step {
        let is_new = seen.insert(session.fingerprint());
        assert!(is_new, "at {}", session.position());
        assert!(!seen.insert(session.fingerprint()));
    }
    // A register of a lane, a word of memory.
    session.go_to(20);
    let first = session.fingerprint();
    let thread = Thread {
        block: 0,
        thread: 31,
    };
    assert!(session.set_register(thread, 11, 1));
    let second = session.fingerprint();
    buffer.write(&[7; 256]).unwrap();
    let third = session.fingerprint();
    assert!(first != second && second != third && first != third);
}

#[test]
fn breakpoints_stop_the_lanes_that_are_meant() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 256);
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    // What half of the lanes jump over.
    let text = "IADD R6, R6, 0x100";
    let code = session.disassemble(0, 100);
    let pc = code.iter().find(|(_, found)| found == text).unwrap().0;
    let mut breakpoint = Breakpoint::at(Place::Address(pc));
    breakpoint.block = Some(2);
    breakpoint.condition = Some(Condition {
        operand: Operand::Register(0),
        comparison: Comparison::Greater,
        value: Number::Integer(12),
    });
    let id = session.add_breakpoint(breakpoint).unwrap();
    let stop = session.resume();
    let thread = Thread {
        block: 2,
        thread: 13,
    };
    let lanes = 0b111 << 13;
    assert_eq!(stop, Stop::Breakpoint { id, thread, lanes });
    let group = &session.warps()[0].groups[0];
    assert_eq!((group.lanes, group.pc), (0xffff, pc));
    let waiting = &session.warps()[0].groups[1];
    let missing = 0xffff;
    assert_eq!(waiting.wait, WaitView::Barrier { number: 0, missing });
    assert_eq!(session.place(thread).unwrap().instruction, text);
    // It goes back to the beginning of the launch, and comes here again.
    assert_eq!(session.resume_back(), Stop::Beginning);
    assert_eq!(session.resume(), Stop::Breakpoint { id, thread, lanes });
    assert!(session.remove(id));
    assert_eq!(session.resume(), Stop::End);
    assert_eq!(
        session.resume_back(),
        Stop::Beginning,
        "no breakpoint is left"
    );
}

#[test]
fn watched_memory_stops_behind_the_access() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 256);
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let address = buffer.address() + 4 * 70;
    let watch = |watch| Watchpoint {
        space: Space::Global,
        address,
        bytes: 4,
        watch,
    };
    session.add_watchpoint(watch(Watch::Write)).unwrap();
    let old = buffer.to_vec().unwrap()[70];
    let Stop::Watchpoint(stop) = session.resume() else {
        panic!("nothing was written");
    };
    let watched = &stop[0];
    let thread = Thread {
        block: 1,
        thread: 6,
    };
    assert_eq!((watched.thread, watched.lanes), (thread, 1 << 6));
    assert_eq!((watched.kind, watched.old), (AccessKind::Store, old.into()));
    assert_eq!(watched.new, buffer.to_vec().unwrap()[70].into());
    // Backwards, the load of the same place; forward, the store again.
    session.add_watchpoint(watch(Watch::Read)).unwrap();
    let Stop::Watchpoint(read) = session.resume_back() else {
        panic!("nothing was read");
    };
    let read = &read[0];
    assert_eq!((read.kind, read.thread), (AccessKind::Load, thread));
    assert_eq!(buffer.to_vec().unwrap()[70], old);
    assert_eq!(session.resume(), Stop::Watchpoint(stop.clone()));
    // Shared memory of one block.
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let shared = Watchpoint {
        space: Space::Shared { block: 3 },
        address: 0x80 + 5 * 4,
        bytes: 1,
        watch: Watch::Access,
    };
    // What no access can reach is no place to watch.
    let local = |block, thread| Space::Local(Thread { block, thread });
    for (space, address, bytes, expected) in [
        (Space::Shared { block: 3 }, u64::MAX, 2, "are behind the"),
        (Space::Shared { block: 3 }, 1 << 20, 1, "are behind the"),
        (Space::Shared { block: 99 }, 0, 1, "there is no block 99"),
        (local(99, 0), 0, 1, "there is no block 99"),
        (local(0, 2000), 0, 1, "there is no thread 2000"),
        (local(0, 0), 1 << 40, 1, "are behind the"),
        (Space::Global, 0x10, 4, "no allocation has 4 bytes at 0x10"),
        (Space::Global, u64::MAX, 4, "no allocation"),
        (Space::Shared { block: 3 }, 0x80, 0, "0 bytes"),
    ] {
        let refused = session.add_watchpoint(Watchpoint {
            space,
            address,
            bytes,
            watch: Watch::Access,
        });
        let told = refused.unwrap_err();
        assert!(told.contains(expected), "{told}");
    }
    session.add_watchpoint(shared).unwrap();
    let kinds: Vec<(AccessKind, Thread)> = std::iter::from_fn(|| match session.resume() {
        Stop::Watchpoint(watched) => Some((watched[0].kind, watched[0].thread)),
        _ => None,
    })
    .collect();
    let by = |thread| Thread { block: 3, thread };
    assert_eq!(
        kinds,
        [(AccessKind::Store, by(37)), (AccessKind::Load, by(5))]
    );
}

#[test]
fn a_fault_can_be_gone_back_from() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 100);
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let Stop::Fault(fault) = session.resume() else {
        panic!("no fault");
    };
    assert!(
        matches!(fault.kind, FaultKind::OutOfBounds { .. }),
        "{fault}"
    );
    assert_eq!(session.report().stats.faults, 1);
    let near = fault.near.as_ref().unwrap();
    assert_eq!(near.allocation.bytes, 400, "{near}");
    let thread = Thread {
        block: 1,
        thread: 36,
    };
    assert_eq!(session.resume(), Stop::Fault(fault.clone()));
    session.step_instruction_back(thread);
    assert_eq!(session.report().fault, None);
    assert_eq!(
        session.place(thread).unwrap().instruction,
        "IMAD.WIDE.U32 R[4:5], R2, R3, c[0x0][0x160]"
    );
    assert_eq!(session.resume(), Stop::Fault(fault));
}

#[test]
fn an_endless_loop_can_be_paused() {
    let text = ".kernel turns\n.registers 2\nL1:\n IADD R0, R0, 1 ?4 ;\n BRA L1 ?6 ;\n";
    let (_device, kernel) = kernel(text, "turns");
    let mut session = kernel
        .launch(Grid::new([1, 1, 1], [32, 1, 1]))
        .debug()
        .unwrap();
    let pause = session.pause();
    // Asked for before the loop began, it is paused there: then it has longer.
    for doubled in 0..16 {
        let stop = std::thread::scope(|scope| {
            let going = scope.spawn(|| session.resume());
            // However long that takes, the loop goes on.
            std::thread::sleep(std::time::Duration::from_millis(1 << doubled));
            pause.ask();
            going.join().unwrap()
        });
        assert_eq!(stop, Stop::Paused);
        if session.position() > 0 {
            return;
        }
    }
    panic!("the loop never began");
}

#[test]
fn checks_stop_where_they_find_something_and_go_back() {
    // Without its barrier, warp 1 stores what warp 0 loads.
    let text = SUMS.replace("    BAR.SYNC &req={0} ?1 ;\n", "");
    let assembly = asm::assemble("debug.s", &text).unwrap_or_else(|e| panic!("{e:?}"));
    let device = Device::simulator(SimConfig {
        check: true,
        ..SimConfig::default()
    });
    let kernel = device
        .load(&assembly.object)
        .unwrap()
        .kernel("sums")
        .unwrap();
    let (a, b) = (numbers(&device, 64), numbers(&device, 64));
    let grid = Grid::new([1, 1, 1], [64, 1, 1]);
    let report = kernel.launch(grid).arg(&a).run().unwrap();
    let mut session = kernel.launch(grid).arg(&b).debug().unwrap();
    let mut stops = Vec::new();
    while let Stop::Finding(findings) = session.resume() {
        // Looking takes nothing away.
        session.warps();
        stops.push((session.position(), findings));
    }
    let found: Vec<_> = stops
        .iter()
        .flat_map(|(_, findings)| findings.clone())
        .collect();
    assert!(!found.is_empty());
    assert_eq!(found.len(), report.findings.len());
    assert_eq!(session.report().findings, report.findings);
    assert_eq!(session.report().stats, report.stats);
    // Once more, backwards.
    for (position, finding) in stops.into_iter().rev() {
        assert_eq!(session.resume_back(), Stop::Finding(finding));
        assert_eq!(session.position(), position);
    }
    assert_eq!(session.resume_back(), Stop::Beginning);
    assert_eq!(session.report().findings, []);
}

#[test]
fn nothing_that_stops_is_passed_over() {
    let (device, kernel) = kernel(SUMS, "sums");
    let buffer = numbers(&device, 256);
    let grid = Grid::new([4, 1, 1], [64, 1, 1]);
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let id = session
        .add_breakpoint(Breakpoint::at(Place::Function("sums".to_owned())))
        .unwrap();
    // Where the launch stands, too; and once for each warp.
    for warp in 0..8 {
        let thread = Thread {
            block: warp / 2,
            thread: warp as u32 % 2 * 32,
        };
        let lanes = u32::MAX;
        assert_eq!(session.resume(), Stop::Breakpoint { id, thread, lanes });
    }
    assert_eq!(session.resume(), Stop::End);
    // Two watchpoints, one instruction.
    let mut session = kernel.launch(grid).arg(&buffer).debug().unwrap();
    let ids = [3, 9].map(|element| {
        let watchpoint = Watchpoint {
            space: Space::Global,
            address: buffer.address() + 4 * element,
            bytes: 4,
            watch: Watch::Write,
        };
        session.add_watchpoint(watchpoint).unwrap()
    });
    let Stop::Watchpoint(watched) = session.resume() else {
        panic!("nothing was written");
    };
    assert_eq!(
        watched.iter().map(|watched| watched.id).collect::<Vec<_>>(),
        ids
    );
    // A thread that has not begun is waited for, one that has ended is not.
    let thread = |block| Thread { block, thread: 40 };
    session.remove(ids[0]);
    session.remove(ids[1]);
    assert_eq!(session.step_instruction(thread(3)), Stop::Step);
    assert!(session.place(thread(3)).is_some());
    let position = session.position();
    assert_eq!(session.step_instruction(thread(1)), Stop::Step);
    assert_eq!(session.position(), position);
}

#[test]
fn an_exhausted_launch_is_blamed_on_the_same_block() {
    let assembly = asm::assemble("debug.s", SUMS).unwrap_or_else(|e| panic!("{e:?}"));
    for budget in 1..80 {
        let kernel = || {
            let device = Device::simulator(SimConfig {
                launch_budget: budget,
                ..SimConfig::default()
            });
            let module = device.load(&assembly.object).unwrap();
            let kernel = module.kernel("sums").unwrap();
            (numbers(&device, 256), kernel)
        };
        // On devices of their own, where memory has the same addresses.
        let [(a, launched), (b, debugged)] = [kernel(), kernel()];
        let grid = Grid::new([4, 1, 1], [64, 1, 1]);
        let report = launched.launch(grid).arg(&a).run_to_report().unwrap();
        let mut session = debugged.launch(grid).arg(&b).debug().unwrap();
        session.resume();
        let stepped = session.report();
        assert_eq!(
            (stepped.stats, stepped.fault),
            (report.stats, report.fault),
            "{budget}"
        );
    }
}
