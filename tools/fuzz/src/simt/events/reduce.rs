//! A smaller kernel of events that still fails in the same way.
//!
//! Every candidate is one that the reference accepts. Where turns were random, some others are tried too, since another
//! kernel has its mistake at another time.

use super::check;
use super::plan::{
    Bound, Index, Order, Place, Plan, Role, Stmt, Sync, Test, Through, Turning, Wait,
};
use crate::simt::check::{Failure, Mode};

/// Random turns that are tried.
const TURNS: u64 = 24;

/// A kernel and its failure, as small as was found.
pub fn reduce(plan: &Plan, failure: &Failure) -> (Plan, Failure) {
    let mut best = (plan.clone(), failure.clone());
    loop {
        let before = best.0.clone();
        for step in STEPS {
            let mut place = 0;
            loop {
                let mut candidate = best.0.clone();
                if step(&mut candidate, place).is_none() {
                    break;
                }
                let smaller = candidate != best.0;
                match fails(&candidate, &best.1).filter(|_| smaller) {
                    Some(failure) => best = (candidate, failure),
                    None => place += 1,
                }
            }
        }
        let mut settings = best.1.settings.len();
        while settings > 0 {
            settings -= 1;
            let mut like = best.1.clone();
            like.settings.remove(settings);
            if let Some(failure) = fails(&best.0, &like) {
                best.1 = failure;
            }
        }
        if best.0 == before {
            return best;
        }
    }
}

/// The failure of a candidate if it is of the same kind.
fn fails(plan: &Plan, like: &Failure) -> Option<Failure> {
    let expected = check::expected(plan).ok()?;
    let modes = match like.mode {
        Mode::Random(first) => (0..TURNS).map(|turn| Mode::Random(first + turn)).collect(),
        mode => vec![mode],
    };
    let failure = check::run(plan, &expected, &like.settings, &modes).err()?;
    (failure.kind == like.kind).then_some(failure)
}

/// Makes a kernel smaller at a place; `None` when there are no more places.
type Step = fn(&mut Plan, usize) -> Option<()>;

const STEPS: [Step; 8] = [
    fewer_threads,
    simpler_wait,
    drop_statement,
    open_statement,
    fewer_elements,
    simpler_element,
    drop_array,
    simpler_flags,
];

fn fewer_threads(plan: &mut Plan, place: usize) -> Option<()> {
    match place {
        0 => plan.grid = 1,
        1 => plan.rounds = 1,
        2 => plan.stride = 1,
        3 => plan.order = Order::Up,
        8 => plan.pressure = 0,
        4..=7 => {
            let most = [1, 2, 33, 64][place - 4];
            if plan.threads <= most {
                return Some(());
            }
            plan.threads = most;
        }
        _ => return None,
    }
    if matches!(plan.order, Order::Mixed(..)) && !plan.participants().is_power_of_two() {
        plan.order = Order::Up;
    }
    Some(())
}

fn simpler_wait(plan: &mut Plan, place: usize) -> Option<()> {
    let wait = &mut plan.wait;
    match place {
        0 => wait.function = false,
        1 => wait.through = Through::Nothing,
        2 => wait.turning = Turning::Plain,
        3 if plan.sync != Sync::Lock => wait.look = super::plan::Look::Load,
        3 => {}
        4 => plan.release_read = false,
        5 => plan.release = super::plan::Release::Exchange,
        6 => plan.release = super::plan::Release::Store,
        7 => plan.start = 0,
        8 => {
            plan.sync = Sync::Nothing;
            plan.wait = Wait {
                function: false,
                turning: Turning::Plain,
                ..plan.wait
            };
            plan.threads = 1;
            plan.grid = 1;
            plan.order = Order::Up;
        }
        _ => return None,
    }
    Some(())
}

fn simpler_flags(plan: &mut Plan, place: usize) -> Option<()> {
    match place {
        0 => plan.skipped = 0,
        1 => plan.flag_bytes = 4,
        2 => plan.generic = false,
        _ => return None,
    }
    Some(())
}

/// Does something with the statement of a place, among all; whether there is one.
fn with(
    stmts: &mut Vec<Stmt>,
    place: &mut usize,
    act: &mut dyn FnMut(&mut Vec<Stmt>, usize),
) -> bool {
    for index in 0..stmts.len() {
        if *place == 0 {
            act(stmts, index);
            return true;
        }
        *place -= 1;
        let found = match &mut stmts[index] {
            Stmt::If { then, .. } => with(then, place, act),
            Stmt::Loop(inner) => with(&mut inner.body, place, act),
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

fn at(plan: &mut Plan, place: usize, mut act: impl FnMut(&mut Vec<Stmt>, usize)) -> Option<()> {
    let mut place = place;
    for stmts in [&mut plan.before, &mut plan.body, &mut plan.after] {
        if with(stmts, &mut place, &mut act) {
            return Some(());
        }
    }
    None
}

fn drop_statement(plan: &mut Plan, place: usize) -> Option<()> {
    at(plan, place, |stmts, index| {
        stmts.remove(index);
    })
}

/// What is done under a condition is done always; a loop loses what it can.
fn open_statement(plan: &mut Plan, place: usize) -> Option<()> {
    at(plan, place / 4, |stmts, index| {
        match (&mut stmts[index], place % 4) {
            (Stmt::If { then, .. }, 0) => {
                let then = std::mem::take(then);
                stmts.splice(index..=index, then);
            }
            (Stmt::Loop(inner), 0) => inner.leave = None,
            (Stmt::Loop(inner), 1) => inner.rotated = false,
            (Stmt::Loop(inner), 2) => inner.bound.passed = false,
            (Stmt::Loop(inner), _) => inner.bits = 32,
            _ => {}
        }
    })
}

/// An array and what counts its elements become smaller by one.
fn fewer_elements(plan: &mut Plan, place: usize) -> Option<()> {
    let old = plan.arrays.get(place)?.count;
    if old <= 1 || plan.arrays[place].role == Role::Message {
        return Some(());
    }
    plan.arrays[place].count = old - 1;
    for stmts in [&mut plan.before, &mut plan.body, &mut plan.after] {
        shrink(stmts, old);
    }
    Some(())
}

fn shrink(stmts: &mut [Stmt], old: u32) {
    let less = |bound: &mut Bound| {
        if bound.number == old {
            bound.number -= 1;
        }
    };
    for stmt in stmts {
        match stmt {
            Stmt::If { when, then } => {
                if let Test::Inside { below, .. } | Test::Fits { below, .. } = when {
                    less(below);
                }
                shrink(then, old);
            }
            Stmt::Loop(inner) => {
                less(&mut inner.bound);
                shrink(&mut inner.body, old);
            }
            _ => {}
        }
    }
}

/// An index becomes a constant, or simpler, and an access loses its flags.
fn simpler_element(plan: &mut Plan, place: usize) -> Option<()> {
    at(plan, place / 4, |stmts, index| {
        if let Stmt::Load { from: element, .. }
        | Stmt::Store { to: element, .. }
        | Stmt::Update { to: element, .. } = &mut stmts[index]
        {
            match place % 4 {
                0 => element.flags = false,
                1 if element.index.var.is_some() => element.index = Index::constant(0),
                1 => (element.index.split, element.index.offset) = (false, false),
                2 => element.index.pointer = false,
                _ => (element.index.bits, element.index.signed) = (32, false),
            }
        }
    })
}

/// An array that nothing uses becomes as small as can be, and goes if it is the last one.
fn drop_array(plan: &mut Plan, place: usize) -> Option<()> {
    if place >= plan.arrays.len() {
        return None;
    }
    let through = matches!(plan.wait.through,
        Through::Scratch(array) | Through::CalleeScratch(array) if array == place);
    let last = place + 1 == plan.arrays.len();
    let used = plan.stmts().into_iter().any(|stmt| match stmt {
        Stmt::Load { from: element, .. }
        | Stmt::Store { to: element, .. }
        | Stmt::Update { to: element, .. } => element.array == place,
        Stmt::Loop(inner) => matches!(inner.form,
            super::plan::Form::PointerUp(array) | super::plan::Form::PointerDown(array) if array == place),
        _ => false,
    });
    if !used && !through && last {
        plan.arrays.pop();
    } else if !used && !through {
        plan.arrays[place].place = Place::Global;
        plan.arrays[place].count = 1;
        plan.arrays[place].bytes = 4;
    }
    Some(())
}
