//! Allocations by hand: what an allocator may do, whether or not ours does, and the same with a mistake.

use crate::abi;
use crate::emit::testing::{add, equal};
use crate::isa::generated::{BSel, IExt, LoadSize, MOVW, StoreSize, iadd, ldl, mov, p2r, stl};
use crate::isa::operand::{PT, RZ};
use crate::isa::{Inst, PInst, PReg, Register, RegisterClass, Role, VInst, VReg, build};
use crate::regalloc::check::{ADDED, check};
use crate::regalloc::frame::SLOTS;
use crate::regalloc::moves;
use crate::vcode::{
    Attachment, Block, BlockData, Entry, Frame, FunctionKind, Guard, Meeting, SourceLine,
    SymbolKind, SymbolUse, Terminator, VCode,
};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};

/// Values of the entry: R1, the return address, and two arguments in R4 and R5. What a function computes has higher
/// numbers.
const POINTER: u32 = 0;
const ADDRESS: [u32; 2] = [1, 2];
const A: u32 = 3;
const B: u32 = 4;
/// More than any function here has.
const VALUES: u32 = 32;

fn v(index: u32) -> VReg {
    VReg::new(RegisterClass::Gpr, index)
}

fn p(index: u32) -> VReg {
    VReg::new(RegisterClass::Predicate, index)
}

fn r(number: u8) -> PReg {
    PReg::gpr(number)
}

fn q(number: u8) -> PReg {
    PReg::predicate(number)
}

/// A block: parameters, instructions, end.
type Part<R> = (Vec<R>, Vec<Inst<R>>, Terminator<R>);

fn function<R: Register>(
    entry: Vec<(R, PReg)>,
    parts: Vec<Part<R>>,
    attachments: &[(usize, Attachment<R>)],
    spill_bytes: u32,
) -> VCode<R> {
    let mut code = VCode {
        name: "f".to_string(),
        kind: FunctionKind::Device,
        insts: Vec::new(),
        attachments: PrimaryMap::new(),
        blocks: PrimaryMap::new(),
        entry,
        vreg_count: VALUES,
        frame: Frame {
            slot_bytes: 16,
            spill_bytes,
            ..Frame::default()
        },
        holders: Vec::new(),
    };
    for (params, insts, terminator) in parts {
        let start = code.insts.len() as u32;
        code.insts.extend(
            insts
                .into_iter()
                .map(|inst| Entry::new(inst, SourceLine(1))),
        );
        code.blocks.push(BlockData {
            insts: start..code.insts.len() as u32,
            params,
            terminator,
            line: SourceLine(1),
            divergent: false,
            loop_depth: 0,
            cold: false,
            meeting: Meeting::Together,
        });
    }
    for (index, attachment) in attachments {
        code.insts[*index].attachment = Some(code.attachments.push(attachment.clone()));
    }
    code
}

fn before(parts: Vec<Part<VReg>>, attachments: &[(usize, Attachment<VReg>)]) -> VCode<VReg> {
    let entry = [
        (v(POINTER), abi::STACK_POINTER),
        (v(ADDRESS[0]), abi::RETURN_ADDRESS[0]),
        (v(ADDRESS[1]), abi::RETURN_ADDRESS[1]),
        (v(A), r(4)),
        (v(B), r(5)),
    ];
    let code = function(entry.to_vec(), parts, attachments, 0);
    code.verify().expect("a function");
    code
}

/// The end of a function that returns `value`.
fn returns(value: u32) -> Terminator<VReg> {
    Terminator::Return {
        address: ADDRESS.map(v),
        values: vec![(v(value), r(4))],
    }
}

fn returned() -> Terminator<PReg> {
    Terminator::Return {
        address: abi::RETURN_ADDRESS,
        values: vec![(r(4), r(4))],
    }
}

/// An instruction of the allocated code with its index in the code before; none: added.
type Placed = (PInst, Option<u32>);

/// Checks blocks in registers against `code`. Where there is a spill area the frame is made at entry and given up in
/// the last block.
fn verdict(
    code: &VCode<VReg>,
    parts: Vec<(Vec<Placed>, Terminator<PReg>)>,
    spill_bytes: u32,
) -> Result<(), String> {
    let size = (spill_bytes.next_multiple_of(16) + 16) as i32;
    let last = parts.len() - 1;
    let mut origin = Vec::new();
    let mut blocks: Vec<Part<PReg>> = Vec::new();
    for (number, (mut insts, terminator)) in parts.into_iter().enumerate() {
        if number == 0 {
            insts.insert(0, (moves::adjust_stack_pointer(-size), None));
        }
        if number == last {
            insts.push((moves::adjust_stack_pointer(size), None));
        }
        origin.extend(insts.iter().map(|(_, origin)| origin.unwrap_or(ADDED)));
        let insts = insts.into_iter().map(|(inst, _)| inst).collect();
        blocks.push((Vec::new(), insts, terminator));
    }
    let entry = code.entry.iter().map(|(_, r)| (*r, *r)).collect();
    let after = function(entry, blocks, &[], spill_bytes);
    check(code, &after, &origin, 64)
}

/// The verdict on a function of one block that returns R4.
fn straight(code: &VCode<VReg>, insts: &[Placed], spill_bytes: u32) -> Result<(), String> {
    verdict(code, vec![(insts.to_vec(), returned())], spill_bytes)
}

fn one_block(insts: Vec<VInst>, value: u32) -> VCode<VReg> {
    before(vec![(Vec::new(), insts, returns(value))], &[])
}

fn number<R: Register>(d: R, n: u32) -> Inst<R> {
    build::mov_i(mov::Options::new(MOVW::W32), d, n)
}

fn add_number<R: Register>(d: R, a: R, n: u32) -> Inst<R> {
    build::iadd_ri(iadd::Options::new(IExt::NoX), d, PT, a, n, !PT)
}

fn copy(from: PReg, to: PReg) -> PInst {
    build::mov_r(mov::Options::new(MOVW::W32), to, from)
}

#[track_caller]
fn wrong(verdict: Result<(), String>, message: &str) {
    let error = verdict.expect_err(message);
    assert!(error.contains(message), "{error}");
}

#[test]
fn predicates_packed_in_a_register() {
    let code = one_block(
        vec![
            equal(p(10), v(A), v(B)),
            equal(p(11), v(A), v(A)),
            build::sel_rr(v(12), v(A), v(B), p(10)),
            build::sel_rr(v(13), v(12), v(B), p(11)),
        ],
        13,
    );
    let run = |mask: u32, unpacked: u32, first: u8, second: u8| {
        let packed = p2r::Options::new(BSel::B0);
        let insts = [
            (equal(q(0), r(4), r(5)), Some(0)),
            (equal(q(3), r(4), r(4)), Some(1)),
            (build::p2r_ri(packed, r(6), RZ, mask), None),
            (equal(q(0), r(4), r(4)), None),
            (moves::store(r(6), 1, 4), None),
            (moves::load(r(7), 1, 4), None),
            (build::r2p_ri(r(7), unpacked), None),
            (build::sel_rr(r(4), r(4), r(5), q(first)), Some(2)),
            (build::sel_rr(r(4), r(4), r(5), q(second)), Some(3)),
        ];
        straight(&code, &insts, 16)
    };
    assert_eq!(run(0x7f, 0x7f, 0, 3), Ok(()));
    assert_eq!(run(0x9, 0x9, 0, 3), Ok(()));
    wrong(run(0x1, 0x7f, 0, 3), "P2R");
    wrong(run(0x7f, 0x1, 0, 3), "R2P");
    wrong(run(0x7f, 0x7f, 3, 0), "%p10");
    let tested = |first: u8, second: u8, from: u8| {
        let packed = p2r::Options::new(BSel::B0);
        let test = |to: u8, bit: u8| {
            let mut inst = moves::test_bit(q(to), r(from));
            moves::set_mask(&mut inst, 1 << bit);
            (inst, None)
        };
        let insts = [
            (equal(q(0), r(4), r(5)), Some(0)),
            (equal(q(3), r(4), r(4)), Some(1)),
            (build::p2r_ri(packed, r(6), RZ, 0x9), None),
            test(1, first),
            test(0, second),
            (build::sel_rr(r(4), r(4), r(5), q(1)), Some(2)),
            (build::sel_rr(r(4), r(4), r(5), q(0)), Some(3)),
        ];
        straight(&code, &insts, 16)
    };
    assert_eq!(tested(0, 3, 6), Ok(()));
    wrong(tested(3, 0, 6), "%p10");
    wrong(tested(0, 2, 6), "P2R");
    wrong(tested(0, 3, 4), "R4");
}

#[test]
fn wide_spills_and_shared_slots() {
    let code = one_block(
        vec![
            add(v(10), v(A), v(B)),
            add(v(11), v(A), v(10)),
            add(v(12), v(10), v(11)),
        ],
        12,
    );
    let run = |reload: i32, second: u32| {
        let pair = [r(6), r(7)];
        let stored = stl::Options::new(StoreSize::W64);
        let loaded = ldl::Options::new(LoadSize::W32);
        let insts = [
            (add(r(6), r(4), r(5)), Some(0)),
            (add(r(7), r(4), r(6)), Some(1)),
            (
                build::stl_rr(stored, abi::STACK_POINTER, 8, &pair[..]),
                None,
            ),
            (number(r(6), 0), None),
            (number(r(7), 0), None),
            (build::ldl_r(loaded, r(8), abi::STACK_POINTER, reload), None),
            // Somebody else's value in the slot of the first.
            (moves::store(r(4), 1, second), None),
            (moves::load(r(6), 1, 8), None),
            (add(r(4), r(6), r(8)), Some(2)),
        ];
        straight(&code, &insts, 16)
    };
    assert_eq!(run(12, 0), Ok(()));
    assert_eq!(run(12, 12), Ok(()), "read before it is overwritten");
    wrong(run(8, 0), "%v11");
    wrong(run(12, 8), "%v10");
    wrong(run(12, 16), "spill area");
}

/// A constant may lead away from the slots, on a path that never runs: its access is what it was wherever it lies. One
/// that lies there because the allocator says so is a mistake, and so is an outgoing argument behind the arguments.
#[test]
fn accesses_beside_the_slots() {
    let code = |addend: Option<i64>, offset: u32| {
        let slot = addend.map(|addend| {
            let symbol = SymbolUse {
                role: Role::Addr,
                kind: SymbolKind::AbsoluteLow,
                name: SLOTS.to_string(),
                addend,
            };
            (0, Attachment::Symbol(symbol))
        });
        let insts = vec![
            moves::spill_store(v(A), v(POINTER), offset),
            add(v(10), v(A), v(B)),
        ];
        before(vec![(Vec::new(), insts, returns(10))], slot.as_slice())
    };
    // The slots begin behind 16 bytes of spill area and end at 32.
    let run = |code: &VCode<VReg>, offset: u32| {
        let insts = [
            (moves::store(r(4), 1, offset), Some(0)),
            (add(r(4), r(4), r(5)), Some(1)),
        ];
        straight(code, &insts, 16)
    };
    for addend in [-16i64, -12, -4, 0, 4, 12, 16, 400] {
        let (code, offset) = (code(Some(addend), 0), (16 + addend) as u32);
        assert_eq!(run(&code, offset), Ok(()), "{addend}");
        for other in [offset + 4, offset ^ 16, offset.wrapping_sub(4) & 0xfff] {
            wrong(run(&code, other), "a field differs");
        }
    }
    wrong(run(&code(None, 0), 0), "spilled values");
    wrong(run(&code(None, 12), 12), "spilled values");
    assert_eq!(run(&code(None, 16), 16), Ok(()));
}

#[test]
fn addresses_and_sums_made_again() {
    let slot = Attachment::Symbol(SymbolUse {
        role: Role::B,
        kind: SymbolKind::AbsoluteLow,
        name: SLOTS.to_string(),
        addend: 4,
    });
    let code = before(
        vec![(
            Vec::new(),
            vec![
                add_number(v(10), v(POINTER), 0),
                add(v(11), v(A), v(10)),
                add(v(12), v(11), v(10)),
                add(v(13), v(12), v(11)),
            ],
            returns(13),
        )],
        &[(0, slot)],
    );
    // The slots begin behind 16 bytes of spill area. The address is made twice, the sum in R7 too: once where it was,
    // once behind.
    let run = |offset: u32, other: u8| {
        let insts = [
            (add_number(r(6), r(1), 20), Some(0)),
            (add(r(7), r(4), r(6)), Some(1)),
            (add_number(r(9), r(1), offset), None),
            (add(r(8), r(7), r(9)), Some(2)),
            (add(r(7), r(other), r(9)), None),
            (add(r(4), r(8), r(7)), Some(3)),
        ];
        straight(&code, &insts, 16)
    };
    assert_eq!(run(20, 4), Ok(()));
    wrong(run(16, 4), "%v10");
    wrong(run(20, 5), "%v3");
    // The definition itself may be left out.
    let sunk = [
        (add_number(r(6), r(1), 20), None),
        (add(r(7), r(4), r(6)), Some(1)),
        (add(r(8), r(7), r(6)), Some(2)),
        (add(r(4), r(8), r(7)), Some(3)),
    ];
    assert_eq!(straight(&code, &sunk, 16), Ok(()));
    wrong(straight(&code, &sunk[1..], 16), "%v10");
}

/// A loop that adds its second argument to the first until the sum is itself the second, and gives the value before the
/// last.
fn counted() -> VCode<VReg> {
    before(
        vec![
            (
                Vec::new(),
                Vec::new(),
                Terminator::Jump {
                    target: Block::new(1),
                    args: vec![v(A)],
                },
            ),
            (
                vec![v(10)],
                vec![add(v(11), v(10), v(B)), equal(p(12), v(11), v(B))],
                Terminator::Branch {
                    guard: Guard {
                        reg: p(12),
                        negated: false,
                    },
                    taken: Block::new(2),
                    fallthrough: Block::new(3),
                    divergent: false,
                },
            ),
            (
                Vec::new(),
                Vec::new(),
                Terminator::Jump {
                    target: Block::new(1),
                    args: vec![v(11)],
                },
            ),
            (Vec::new(), Vec::new(), returns(10)),
        ],
        &[],
    )
}

#[test]
fn values_of_an_earlier_turn() {
    let code = counted();
    let jump = |block| Terminator::Jump {
        target: Block::new(block),
        args: Vec::new(),
    };
    let run = |back: Vec<Placed>, result: u8| {
        let branch = Terminator::Branch {
            guard: Guard {
                reg: q(0),
                negated: false,
            },
            taken: Block::new(2),
            fallthrough: Block::new(3),
            divergent: false,
        };
        let body = vec![
            (moves::load(r(7), 1, 0), None),
            (add(r(6), r(7), r(5)), Some(0)),
            (equal(q(0), r(6), r(5)), Some(1)),
        ];
        let parts = vec![
            (vec![(moves::store(r(4), 1, 0), None)], jump(1)),
            (body, branch),
            (back, jump(1)),
            (vec![(copy(r(result), r(4)), None)], returned()),
        ];
        verdict(&code, parts, 16)
    };
    let store = |from: u8| vec![(moves::store(r(from), 1, 0), None)];
    assert_eq!(run(store(6), 7), Ok(()));
    wrong(run(store(7), 7), "%v11");
    wrong(run(Vec::new(), 7), "%v11");
    wrong(run(store(6), 6), "%v10");
    wrong(run(store(6), 4), "%v11 is defined after R4");
}

#[test]
fn only_results_may_be_left_out() {
    let code = one_block(
        vec![
            crate::emit::testing::load(v(10), [v(A), v(B)]),
            add(v(11), v(A), v(B)),
            add(v(12), v(A), v(A)),
        ],
        12,
    );
    let load = crate::emit::testing::load(r(6), [r(4), r(5)]);
    let last = (add(r(4), r(4), r(4)), Some(2));
    assert_eq!(straight(&code, &[(load, Some(0)), last], 0), Ok(()));
    wrong(straight(&code, &[last], 0), "is missing");
    let twice = [(load, Some(0)), (load, Some(0)), last];
    wrong(straight(&code, &twice, 0), "stands where");
}

#[test]
fn the_limit() {
    let code = one_block(vec![add(v(10), v(A), v(B)), add(v(11), v(10), v(B))], 11);
    let run = |number: u8| {
        let insts = [
            (add(r(number), r(4), r(5)), Some(0)),
            (add(r(4), r(number), r(5)), Some(1)),
        ];
        straight(&code, &insts, 0)
    };
    assert_eq!(run(63), Ok(()));
    wrong(run(64), "limit");
    wrong(run(16), "R16 of the caller");
}
