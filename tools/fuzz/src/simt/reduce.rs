//! A smaller kernel that still fails in the same way.
//!
//! Candidates keep to what the generator guarantees as far as the reference and warps of one lane can tell: they have
//! to agree on a candidate if they agreed on the kernel.

use super::check::{self, Failure, Mode};
use super::generate::prune;
use super::kernel::{End, Kernel, Operand, Stmt};
use super::meeting::every_block_ends;

/// A kernel and its failure, as small as was found.
pub fn reduce(kernel: &Kernel, failure: &Failure) -> (Kernel, Failure) {
    let mut best = (kernel.clone(), failure.clone());
    loop {
        let before = best.0.clone();
        for step in STEPS {
            let mut place = 0;
            loop {
                let mut candidate = best.0.clone();
                if step(&mut candidate, place).is_none() {
                    break;
                }
                let mut spine = std::mem::take(&mut candidate.spine);
                for (index, function) in candidate.functions.iter_mut().enumerate() {
                    if index == 0 {
                        prune(function, &mut spine);
                    } else {
                        prune(function, &mut Vec::new());
                    }
                }
                candidate.spine = spine;
                match fails(&candidate, &best.1) {
                    Some(failure) if candidate != best.0 => best = (candidate, failure),
                    _ => place += 1,
                }
            }
        }
        if best.0 == before {
            return best;
        }
    }
}

/// The failure of a candidate if it is of the same kind.
fn fails(kernel: &Kernel, like: &Failure) -> Option<Failure> {
    if !kernel.functions.iter().all(every_block_ends) {
        return None;
    }
    let expected = check::reference(kernel).ok()?;
    let modes = if like.mode == Mode::Alone {
        &[Mode::Alone][..]
    } else {
        &[Mode::Alone, like.mode]
    };
    let failure = check::run(kernel, &expected, &like.settings, modes).err()?;
    ((failure.kind, failure.mode) == (like.kind, like.mode)).then_some(failure)
}

/// Makes a kernel smaller at a place; `None` when there are no more places.
type Step = fn(&mut Kernel, usize) -> Option<()>;

const STEPS: [Step; 7] = [
    fewer_threads,
    drop_spine,
    drop_lock,
    go_one_way,
    drop_statement,
    skip_block,
    simplify_call,
];

fn fewer_threads(kernel: &mut Kernel, place: usize) -> Option<()> {
    match place {
        0 => kernel.grid = 1,
        1 => kernel.threads = 32,
        2 => kernel.threads = kernel.threads.min(8),
        3 => kernel.threads = kernel.threads.min(2),
        _ => return None,
    }
    Some(())
}

fn drop_spine(kernel: &mut Kernel, place: usize) -> Option<()> {
    let block = *kernel.spine.get(place)?;
    // In a loop it is there several times.
    kernel.spine.retain(|other| *other != block);
    kernel.functions[0].blocks[block].stmts.remove(0);
    Some(())
}

/// A lock goes, and what is done under it is done by atomic operations.
fn drop_lock(kernel: &mut Kernel, place: usize) -> Option<()> {
    if place >= kernel.locks.len() {
        return None;
    }
    for block in kernel.functions.iter_mut().flat_map(|f| &mut f.blocks) {
        block.stmts.retain_mut(|stmt| match stmt {
            Stmt::Lock { lock, .. } | Stmt::Unlock { lock, .. } => *lock != place,
            Stmt::TryLock { lock, cell, value } if *lock == place => {
                *stmt = Stmt::Update {
                    cell: *cell,
                    which: Operand::Const(0),
                    value: *value,
                };
                true
            }
            _ => true,
        });
    }
    for cell in &mut kernel.cells {
        cell.lock = cell.lock.filter(|lock| *lock != place);
    }
    Some(())
}

/// The block of a place that counts something in all blocks, and what is left of the place.
fn find(
    kernel: &mut Kernel,
    mut place: usize,
    count: impl Fn(&super::kernel::Block) -> usize,
) -> Option<(&mut super::kernel::Block, usize)> {
    for block in kernel.functions.iter_mut().flat_map(|f| &mut f.blocks) {
        let here = count(block);
        if place < here {
            return Some((block, place));
        }
        place -= here;
    }
    None
}

fn go_one_way(kernel: &mut Kernel, place: usize) -> Option<()> {
    let ways = |end: &End| match end {
        End::Branch { .. } | End::Table { .. } => end.targets().len(),
        End::TailCall { .. } => 1,
        End::Jump(_) | End::Return(_) => 0,
    };
    let (block, way) = find(kernel, place, |block| ways(&block.end))?;
    block.end = match block.end.targets().get(way) {
        Some(target) => End::Jump(*target),
        None => End::Return(Operand::Const(0)),
    };
    Some(())
}

/// Statements that go alone: not locks, and not phases, with which the spine goes.
fn drop_statement(kernel: &mut Kernel, place: usize) -> Option<()> {
    let alone = |stmt: &Stmt| {
        !matches!(
            stmt,
            Stmt::Lock { .. } | Stmt::Unlock { .. } | Stmt::Phase(_)
        )
    };
    let (block, place) = find(kernel, place, |block| {
        block.stmts.iter().filter(|s| alone(s)).count()
    })?;
    let index = block
        .stmts
        .iter()
        .enumerate()
        .filter(|(_, s)| alone(s))
        .nth(place)?
        .0;
    block.stmts.remove(index);
    Some(())
}

/// Whoever goes to an empty block that jumps goes to its target.
fn skip_block(kernel: &mut Kernel, place: usize) -> Option<()> {
    let mut place = place;
    for function in &mut kernel.functions {
        for index in 0..function.blocks.len() {
            if let (true, End::Jump(target)) = (
                function.blocks[index].stmts.is_empty(),
                function.blocks[index].end.clone(),
            ) {
                if place == 0 {
                    for block in &mut function.blocks {
                        block
                            .end
                            .map_targets(|t| if t == index { target } else { t });
                    }
                    return Some(());
                }
                place -= 1;
            }
        }
    }
    None
}

/// One callee less, or a direct call.
fn simplify_call(kernel: &mut Kernel, place: usize) -> Option<()> {
    let callees = |stmt: &Stmt| match stmt {
        Stmt::Call {
            callees, indirect, ..
        } if callees.len() > 1 || *indirect => callees.len(),
        _ => 0,
    };
    let (block, mut place) = find(kernel, place, |block| block.stmts.iter().map(callees).sum())?;
    for stmt in &mut block.stmts {
        let here = callees(stmt);
        if place < here {
            if let Stmt::Call {
                callees, indirect, ..
            } = stmt
            {
                match callees.len() {
                    1 => *indirect = false,
                    _ => {
                        callees.remove(place);
                    }
                }
            }
            return Some(());
        }
        place -= here;
    }
    None
}
