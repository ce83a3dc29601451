//! Functions built by hand, for the tests of everything behind allocation.

use super::{Code, Constants, EmitBuffers, EmitError, LayoutError, emit, layout};
use crate::isa::generated::{
    AccessOrder, BoolOp, CompOp, IExt, IType, LoadSize, MOVW, StoreSize, iadd, isetp, ldg, mov, stg,
};
use crate::isa::operand::PT;
use crate::isa::{Inst, PInst, PReg, Register, build};
use crate::linear::Linear;
use crate::sched::Scheduled;
use crate::sched::control::{Waiting, schedule};
use crate::testing::Random;
use crate::vcode::{
    Block, BlockData, Entry, Frame, FunctionKind, KernelInfo, SourceLine, Terminator, VCode,
};
use cranelift_codegen::entity::{EntityRef, PrimaryMap};

/// The code in its final order.
///
/// # Errors
/// Those of the layout.
pub fn linear(code: &VCode<PReg>) -> Result<Linear, LayoutError> {
    layout(code.clone(), &mut EmitBuffers::default())
}

/// The code with control bits.
///
/// # Panics
/// When it has no layout.
pub fn scheduled(code: &VCode<PReg>, waiting: Waiting) -> Scheduled {
    let linear = linear(code).expect("a layout");
    schedule(linear, waiting, &mut Default::default())
}

/// The words of the code; its tables go to `constants`.
///
/// # Errors
/// Those of emission.
///
/// # Panics
/// When it has no layout.
pub fn words(
    code: &VCode<PReg>,
    waiting: Waiting,
    constants: &mut Constants,
) -> Result<Code, EmitError> {
    let scheduled = scheduled(code, waiting);
    emit(scheduled, true, constants, &mut EmitBuffers::default())
}

/// The block of a number.
pub fn block(number: usize) -> Block {
    Block::new(number)
}

/// A kernel of these blocks.
pub fn kernel<R: Register>(blocks: Vec<(Vec<Inst<R>>, Terminator<R>)>) -> VCode<R> {
    let mut code = VCode {
        name: "test".to_string(),
        kind: FunctionKind::Kernel(KernelInfo::default()),
        insts: Vec::new(),
        attachments: PrimaryMap::new(),
        blocks: PrimaryMap::new(),
        entry: Vec::new(),
        vreg_count: 0,
        frame: Frame::default(),
        holders: Vec::new(),
    };
    for (insts, terminator) in blocks {
        let first = code.insts.len() as u32;
        let line = SourceLine(code.blocks.len() as u32 + 1);
        code.insts
            .extend(insts.into_iter().map(|inst| Entry::new(inst, line)));
        let insts = first..code.insts.len() as u32;
        code.blocks.push(BlockData {
            meeting: crate::vcode::Meeting::Together,
            insts,
            params: Vec::new(),
            terminator,
            line,
            divergent: false,
            loop_depth: 0,
            cold: false,
        });
    }
    code
}

/// `MOV reg, value`.
pub fn mov(reg: u8, value: u32) -> PInst {
    build::mov_i(mov::Options::new(MOVW::W32), PReg::gpr(reg), value)
}

/// `IADD result, a, b`.
pub fn add<R: Register>(result: R, a: R, b: R) -> Inst<R> {
    build::iadd_rr(iadd::Options::new(IExt::NoX), result, PT, a, b, !PT)
}

/// `ISETP.EQ.AND result, a, b`.
pub fn equal<R: Register>(result: R, a: R, b: R) -> Inst<R> {
    let options = isetp::Options::new(IExt::NoX, IType::S32, CompOp::Eq, BoolOp::And);
    build::isetp_rr(options, result, PT, a, b, PT, PT)
}

/// `LDG result, [address]`.
pub fn load<R: Register>(result: R, address: [R; 2]) -> Inst<R> {
    let options = ldg::Options::new(LoadSize::W32, AccessOrder::Weak);
    build::ldg_r(options, result, address, 0)
}

/// `STG [address], value`.
pub fn store<R: Register>(address: [R; 2], value: R) -> Inst<R> {
    let options = stg::Options::new(StoreSize::W32, AccessOrder::Weak);
    build::stg_rr(options, address, 0, value)
}

/// `jump target`.
pub fn jump<R>(target: usize) -> Terminator<R> {
    Terminator::Jump {
        target: block(target),
        args: Vec::new(),
    }
}

/// A random terminator of a kernel of `blocks` blocks; jump tables go to `table`, which makes a place for that many
/// targets.
pub fn random_terminator(
    random: &mut Random,
    blocks: usize,
    mut table: impl FnMut(usize) -> (PReg, u32),
) -> Terminator<PReg> {
    let target = |random: &mut Random| block(1 + random.below(blocks as u64 - 1) as usize);
    if blocks < 2 {
        return Terminator::Exit;
    }
    match random.below(12) {
        0 => Terminator::Exit,
        1 => Terminator::Trap(random.below(200) as u8),
        2 => Terminator::Return {
            address: [PReg::gpr(2), PReg::gpr(3)],
            values: Vec::new(),
        },
        3 => {
            let targets: Vec<Block> = (0..1 + random.below(4)).map(|_| target(random)).collect();
            let (index, place) = table(targets.len());
            Terminator::Table {
                index,
                table: Some(place),
                targets,
                divergent: false,
            }
        }
        4..6 => Terminator::Jump {
            target: target(random),
            args: Vec::new(),
        },
        _ => {
            let guard = crate::vcode::Guard {
                reg: PReg::predicate(0),
                negated: random.flip(),
            };
            Terminator::Branch {
                guard,
                taken: target(random),
                fallthrough: target(random),
                divergent: random.flip(),
            }
        }
    }
}
