//! Functions built by hand, for the tests of everything behind allocation.

use crate::isa::{Form, Inst, PInst, PReg, Register, Role};
use crate::sim::semantics::tests::random::Random;
use crate::vcode::{
    Block, BlockData, Entry, Frame, FunctionKind, KernelInfo, SourceLine, Terminator, VCode,
};
use cranelift_entity::{EntityRef, PrimaryMap};

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
    };
    for (insts, terminator) in blocks {
        let first = code.insts.len() as u32;
        let line = SourceLine(code.blocks.len() as u32 + 1);
        code.insts.extend(insts.into_iter().map(|inst| Entry {
            inst,
            line,
            attachment: None,
        }));
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
    let mut inst = PInst::new(Form::MOV_I);
    inst.set(Role::D, PReg::gpr(reg));
    inst.set_named("vb", u64::from(value));
    inst
}

/// `jump target`.
pub fn jump<R>(target: usize) -> Terminator<R> {
    Terminator::Jump {
        target: block(target),
        args: Vec::new(),
    }
}

/// A random terminator of a kernel of `blocks` blocks; jump tables go to `table`, which makes a place for that many targets.
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
