//! Makes a function smaller that something is wrong with.

use crate::isa::{Register, VReg};
use crate::vcode::{Attachment, VCode};
use hashbrown::HashMap;

/// A smaller function for which `fails` holds, as it does for `code`: without instructions whose results nobody reads,
/// or read from an operand as well.
pub(super) fn reduced(mut code: VCode<VReg>, fails: impl Fn(&VCode<VReg>) -> bool) -> VCode<VReg> {
    loop {
        let before = code.insts.len();
        // Runs of instructions first, single ones last.
        let mut run = (before / 2).max(1);
        loop {
            let mut end = code.insts.len();
            while end > 0 {
                let start = end.saturating_sub(run);
                let smaller = without(&code, start..end);
                if let Some(smaller) = smaller.filter(|c| c.verify().is_ok() && fails(c)) {
                    code = smaller;
                }
                end = start;
            }
            if run == 1 {
                break;
            }
            run /= 2;
        }
        if code.insts.len() == before {
            return code;
        }
    }
}

/// `code` without the instructions of a range. Who reads a result gets an operand of the same class instead; none where
/// there is no such operand.
fn without(code: &VCode<VReg>, range: std::ops::Range<usize>) -> Option<VCode<VReg>> {
    let mut names: HashMap<VReg, Option<VReg>> = HashMap::new();
    for entry in &code.insts[range.clone()] {
        for v in code.definitions(entry) {
            let operand = code.uses(entry).find(|u| u.class() == v.class());
            let name = operand.and_then(|u| names.get(&u).copied().unwrap_or(Some(u)));
            names.insert(v, name);
        }
    }
    let mut smaller = code.clone();
    let mut index = 0;
    smaller.insts.retain(|_| {
        index += 1;
        !range.contains(&(index - 1))
    });
    let left = |at: u32| {
        at - (at as usize)
            .clamp(range.start, range.end)
            .abs_diff(range.start) as u32
    };
    let mut possible = true;
    let mut rename = |v: VReg| match names.get(&v) {
        Some(Some(name)) => *name,
        Some(None) => {
            possible = false;
            v
        }
        None => v,
    };
    for entry in &mut smaller.insts {
        entry.inst = entry.inst.map(&mut rename);
        if let Some(id) = entry.attachment {
            match &mut smaller.attachments[id] {
                Attachment::Else(kept) => kept.iter_mut().flatten().for_each(|v| *v = rename(*v)),
                Attachment::Call(call) => call.uses.iter_mut().for_each(|(v, _)| *v = rename(*v)),
                Attachment::Pack(values) => values.iter_mut().for_each(|v| *v = rename(*v)),
                Attachment::Symbol(_) | Attachment::Label(_) | Attachment::Bit(_) => {}
            }
        }
    }
    for data in smaller.blocks.values_mut() {
        data.insts = left(data.insts.start)..left(data.insts.end);
        data.terminator.for_each_register(|v| *v = rename(*v));
    }
    possible.then_some(smaller)
}

#[test]
fn what_is_left_fails_and_is_small() {
    use super::generate::{self, Shape};
    let shape = Shape {
        control: 20,
        wide: 30,
        ..super::plain(200, 12)
    };
    let code = generate::function(3, &shape);
    let wide_stores = |code: &VCode<VReg>| {
        let store = |e: &&crate::vcode::Entry<VReg>| {
            e.inst.form() == crate::isa::Form::STG_RR
                && e.inst.operands().any(|o| o.regs.len() == 4)
        };
        code.insts.iter().filter(store).count()
    };
    assert!(wide_stores(&code) > 1);
    let small = reduced(code.clone(), |c| wide_stores(c) > 0);
    assert_eq!(wide_stores(&small), 1);
    small.verify().expect("a function");
    assert!(small.insts.len() * 8 < code.insts.len(), "{small}");
}
