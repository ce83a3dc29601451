//! Finished words with fences, waits and accesses taken away or moved: who notices?
//!
//! Random kernels of accesses in both spaces, ordered and not, around a branch and a loop, are compiled with every
//! check on. Then their words are changed one at a time, in ways that undo an order; each must be found.

use super::order::{Disorder, disorders, program_of};
use super::verify;
use crate::clif::source::SourceFile;
use crate::compile::{Compiler, FunctionInput, Unit};
use crate::emit::Code;
use crate::isa::encode::{WORD_BYTES, decode};
use crate::isa::generated::{MemScope, membar};
use crate::isa::table::Effects;
use crate::isa::{Control, Optype, PInst, build};
use crate::settings::Options;
use crate::testing::Random;
use crate::vcode::{MemoryEffect, MemoryOrder};
use std::fmt::Write;

/// The code of a kernel of the global addresses v0 and v1 and the shared one v2, with these instructions in its last
/// block.
fn compile(body: &str) -> Code {
    let text = format!(
        "; kernel shared=64
function %k(i64, i64) {{
    gv0 = symbol %gpu_shared
    fn0 = %gpu_bar_sync()
    fn1 = %gpu_membar_cta()
block0(v0: i64, v1: i64):
    v2 = symbol_value.i64 gv0
    v3 = iconst.i32 7
{body}}}
"
    );
    let file = SourceFile::parse("k.clif", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let options = Options {
        verify: true,
        ..Options::default()
    };
    let mut compiler = Compiler::new(options);
    let mut unit = Unit::new();
    unit.announce_file(&file);
    let function = &file.functions[0];
    let name = function.name();
    (compiler.compile_function(&FunctionInput::of_source(function, &name), &mut unit))
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    unit.functions().next().expect("one function").clone()
}

/// What a kernel is made of; values are numbered from `next` on, and all of them are of i32.
struct Writer<'a> {
    random: &'a mut Random,
    text: String,
    next: u32,
    has_fences: bool,
}

impl Writer<'_> {
    /// An address of some word.
    fn place(&mut self) -> &'static str {
        ["v0", "v1", "v2"][self.random.below(3) as usize]
    }

    fn offset(&mut self) -> u64 {
        8 * u64::from(self.random.below(4) as u32)
    }

    /// A new value, made by `definition`.
    fn define(&mut self, definition: &str) -> u32 {
        self.next += 1;
        let _ = writeln!(self.text, "    v{} = {definition}", self.next);
        self.next
    }

    /// Some accesses and fences, which write one of the last values; the value that was read last, if one was.
    fn accesses(&mut self, count: u32) -> Option<u32> {
        let mut last = None;
        for _ in 0..count {
            let (place, offset) = (self.place(), self.offset());
            let written = last.unwrap_or(3);
            match self.random.below(12) {
                0..=2 => last = Some(self.define(&format!("load.i32 aligned {place}+{offset}"))),
                3..=5 => {
                    let _ = writeln!(self.text, "    store aligned v{written}, {place}+{offset}");
                }
                6 => last = Some(self.define(&format!("atomic_load.i32 aligned {place}"))),
                7 => {
                    let _ = writeln!(self.text, "    atomic_store aligned v{written}, {place}");
                }
                8 => {
                    let made = format!("atomic_rmw.i32 aligned add {place}, v{written}");
                    let old = self.define(&made);
                    last = self.random.flip().then_some(old).or(last);
                }
                9 => {
                    let made = format!("atomic_rmw.i32 aligned can_move add {place}, v3");
                    let old = self.define(&made);
                    last = self.random.flip().then_some(old).or(last);
                }
                10 if self.has_fences => self.text += "    fence\n",
                _ => {
                    let callee = match self.has_fences {
                        true => self.random.below(2),
                        false => 0,
                    };
                    let _ = writeln!(self.text, "    call fn{callee}()");
                }
            }
        }
        last
    }
}

/// A kernel with a branch around some accesses and a loop of others.
fn random_kernel(random: &mut Random, has_fences: bool) -> String {
    let mut w = Writer {
        random,
        text: String::new(),
        next: 10,
        has_fences,
    };
    // Barriers stand where all threads come.
    w.accesses(6);
    let condition = w.define("load.i32 aligned v0+40");
    let _ = writeln!(w.text, "    brif v{condition}, block1, block2");
    w.text += "block1:\n";
    let before = w.text.len();
    w.accesses(4);
    let side = w.text.split_off(before);
    let side = side.lines().filter(|line| !line.contains("fn0"));
    side.for_each(|line| w.text += &format!("{line}\n"));
    w.text += "    jump block2\nblock2:\n    jump block3\nblock3:\n";
    w.accesses(5);
    let again = w.define("atomic_load.i32 aligned can_move v1+0");
    let _ = writeln!(w.text, "    brif v{again}, block3, block4");
    w.text += "block4:\n";
    w.accesses(4);
    w.text += "    return\n";
    w.text.replace(" v1+0\n", " v1\n")
}

/// The code with another word at a place.
fn with_word(code: &Code, position: usize, word: u128) -> Code {
    let mut changed = code.clone();
    changed.words[position] = word;
    changed
}

/// The code with the instructions at a place and behind it exchanged.
fn exchanged(code: &Code, position: usize) -> Code {
    let mut changed = code.clone();
    changed.words.swap(position, position + 1);
    for noted in &mut changed.accesses {
        if noted.position as usize == position {
            noted.position += 1;
        } else if noted.position as usize == position + 1 {
            noted.position -= 1;
        }
    }
    changed.accesses.sort_by_key(|noted| noted.position);
    changed
}

/// How many changes were made of each kind, and how many found.
#[derive(Debug, Default)]
struct Tally {
    made: [u32; 4],
    found: [u32; 4],
}

impl Tally {
    fn count(&mut self, kind: usize, original: &Code, changed: &Code) {
        let program = program_of(original).expect("the words are legal");
        let found: Vec<Disorder> = disorders(changed, Some(&program));
        self.made[kind] += 1;
        self.found[kind] += u32::from(!found.is_empty());
        if found.is_empty() {
            let text = |code: &Code| -> String {
                let insts = code.words.iter().map(|&w| decode(w).expect("legal"));
                insts.map(|(i, c)| format!("    {i}{c}\n")).collect()
            };
            println!(
                "not found, kind {kind}:\n{}\n{}",
                text(original),
                text(changed)
            );
        }
    }

    /// Makes every change that undoes an order.
    fn mutate(&mut self, code: &Code, has_fences: bool) {
        let decoded: Vec<(PInst, Control)> = code
            .words
            .iter()
            .map(|&w| decode(w).expect("legal"))
            .collect();
        let noted = |position: usize| {
            let mut all = code.accesses.iter();
            all.find(|noted| noted.position as usize == position)
        };
        for (position, (inst, control)) in decoded.iter().enumerate() {
            // A fence of the kernel itself may stand where nothing needs it.
            if inst.optype() == Optype::MEMBAR && !has_fences {
                let nop: PInst = build::nop_x();
                self.count(0, code, &with_word(code, position, nop.pack(*control)));
                if is_for_the_device(code, &decoded, position) {
                    let weaker: PInst = build::membar_x(membar::Options::new(MemScope::Cta));
                    self.count(1, code, &with_word(code, position, weaker.pack(*control)));
                }
            }
            // What only memory asks a wait for.
            for board in 0..6 {
                if control.wait() >> board & 1 == 0 {
                    continue;
                }
                let mut less = *control;
                less.set_wait(control.wait() & !(1 << board));
                let changed = with_word(code, position, inst.pack(less));
                if verify(&changed).is_empty() {
                    self.count(2, code, &changed);
                }
            }
            if let (Some(a), Some(b)) = (noted(position), noted(position + 1))
                && decoded[position].0.guard() == decoded[position + 1].0.guard()
            {
                let fence =
                    |at: usize| MemoryEffect::of(&decoded[at].0) == Some(MemoryEffect::Fence);
                let ordered = |order| order == MemoryOrder::Ordered;
                let relates = ordered(a.order) || ordered(b.order);
                if relates || fence(position) || fence(position + 1) {
                    self.count(3, code, &exchanged(code, position));
                }
            }
        }
    }
}

/// Whether a MEMBAR is of device scope because of what stands before it in the same straight code.
fn is_for_the_device(code: &Code, decoded: &[(PInst, Control)], position: usize) -> bool {
    let noted = |at: usize| {
        code.accesses
            .iter()
            .find(|noted| noted.position as usize == at)
    };
    let is_global = |at: usize| {
        let effects = decoded[at].0.optype().info().effects;
        effects.contains(Effects::GLOBAL) && decoded[at].0.is_unguarded()
    };
    let Some(later) = (position + 1..decoded.len()).find(|&at| noted(at).is_some()) else {
        return false;
    };
    let Some(order) = noted(later)
        .map(|noted| noted.order)
        .filter(|_| is_global(later))
    else {
        return false;
    };
    let part = MemoryEffect::of(&decoded[later].0);
    // From the MEMBAR back to where something else orders, or control comes from elsewhere.
    for at in (0..position).rev() {
        let inst = &decoded[at].0;
        let effects = inst.optype().info().effects;
        if MemoryEffect::of(inst) == Some(MemoryEffect::Fence)
            || effects.intersects(Effects::CONTROL)
        {
            return false;
        }
        let (Some(earlier), true) = (noted(at), is_global(at)) else {
            continue;
        };
        let releases = order == MemoryOrder::Ordered && part != Some(MemoryEffect::Load);
        let reads = order == MemoryOrder::Weak && part == Some(MemoryEffect::Load);
        let writes = earlier.order == MemoryOrder::Weak
            && MemoryEffect::of(inst) == Some(MemoryEffect::Store);
        let acquires = earlier.order == MemoryOrder::Ordered
            && MemoryEffect::of(inst) != Some(MemoryEffect::Store);
        if releases && writes || reads && acquires {
            return true;
        }
    }
    false
}

#[test]
fn what_undoes_an_order_is_found() {
    let mut random = Random::for_test("orders undone");
    let mut tally = Tally::default();
    for kernel in 0..120 {
        let has_fences = kernel % 2 == 1;
        let code = compile(&random_kernel(&mut random, has_fences));
        assert_eq!(disorders(&code, None), [], "{}", code.name);
        tally.mutate(&code, has_fences);
    }
    println!("{tally:?}");
    let Tally { made, found } = &tally;
    assert_eq!([made[1], made[3]], [found[1], found[3]]);
    // A MEMBAR or a wait may stand where another one sees to it on all paths: that is waste, no mistake.
    assert!(
        [0, 2]
            .iter()
            .all(|&kind| found[kind] * 100 >= made[kind] * 99),
        "{tally:?}"
    );
    assert!(tally.made.iter().all(|&made| made >= 25), "{tally:?}");
}

/// The operations of the accesses of a kernel, in order.
fn operations(code: &Code) -> Vec<String> {
    let names = code.accesses.iter().map(|noted| {
        let (inst, _) = decode(code.words[noted.position as usize]).expect("legal");
        let text = inst.to_string();
        let mut parts = text.split_whitespace();
        parts
            .find(|part| !part.starts_with('@'))
            .unwrap_or_default()
            .to_owned()
    });
    names.collect()
}

#[test]
fn a_message_is_published_before_its_flag() {
    // In the other space the machine keeps no order by itself.
    let code = compile("store aligned v3, v0\nv9 = atomic_rmw.i32 aligned xchg v2, v3\nreturn\n");
    assert_eq!(operations(&code), ["STG", "MEMBAR.CTA", "ATOMS.EXCH"]);
    let code = compile("store aligned v3, v2\natomic_store aligned v3, v0\nreturn\n");
    assert_eq!(operations(&code), ["STS", "MEMBAR.GL", "STG.STRONG"]);
}

#[test]
fn relaxed_accesses_have_no_fences() {
    let relaxed = "store aligned v3, v0
        v9 = atomic_rmw.i32 aligned can_move add v1, v3
        v10 = atomic_rmw.i32 aligned can_move add v2, v3
        atomic_store aligned can_move v10, v1
        v11 = atomic_load.i32 aligned can_move v2
        store aligned v11, v0+4
        return\n";
    let code = compile(relaxed);
    assert_eq!(code.accesses, [], "nothing is ordered");
    let fence = MemoryEffect::Fence;
    let fences = |w: &u128| MemoryEffect::of(&decode(*w).expect("legal").0) == Some(fence);
    assert!(!code.words.iter().any(fences));
}

#[test]
fn who_waits_for_nothing_says_nothing() {
    // A reduction tells nobody that it has been performed: only the last accesses of a kernel may be one.
    let last = compile("v9 = atomic_rmw.i32 aligned add v0, v3\nreturn\n");
    assert_eq!(operations(&last), ["RED.ADD"]);
    let before = compile(
        "v9 = atomic_rmw.i32 aligned add v0, v3\nv10 = load.i32 aligned v2\nstore aligned v10, v1\nreturn\n",
    );
    assert_eq!(operations(&before)[..2], ["ATOMG.ADD", "LDS"]);
}

/// A branch in a branch gets both guards as one, and is behind the fence of the outer one.
#[test]
fn a_fence_under_a_guard_is_one_for_guards_within() {
    let code = compile(
        "v9 = atomic_load.i32 aligned v1
        brif v9, block1, block3(v9)
    block1:
        v10 = load.i32 aligned v0
        v11 = band v9, v3
        brif v11, block2, block3(v10)
    block2:
        v12 = load.i32 aligned v0+4
        v13 = iadd v12, v10
        jump block3(v13)
    block3(v14: i32):
        store aligned v14, v0+8
        return\n",
    );
    let guarded = |w: &&u128| {
        let inst = decode(**w).expect("legal").0;
        MemoryEffect::of(&inst) == Some(MemoryEffect::Fence) && !inst.is_unguarded()
    };
    assert_eq!(code.words.iter().filter(guarded).count(), 1);
    assert_eq!(disorders(&code, None), []);
}

/// Lanes that do not make an access have nothing to wait for: a fence under its guard, or under one that holds wherever
/// its own does, is enough for a release that all lanes make.
#[test]
fn a_fence_under_the_guard_of_an_access_settles_it() {
    let once = "v9 = atomic_load.i32 aligned v1
        brif v9, block1, block3(v9)
    block1:
        store aligned v3, v0
        v10 = load.i32 aligned v0+4
        jump block3(v10)
    block3(v14: i32):
        atomic_store aligned v14, v1
        return\n";
    let twice = "v9 = atomic_load.i32 aligned v1
        brif v9, block1, block3(v9)
    block1:
        v11 = band v9, v3
        brif v11, block2, block4
    block2:
        store aligned v3, v0
        jump block4
    block4:
        v10 = load.i32 aligned v0+4
        jump block3(v10)
    block3(v14: i32):
        atomic_store aligned v14, v1
        return\n";
    for body in [once, twice] {
        let code = compile(body);
        let fences = ["MEMBAR.GL", "LDG", "STG.STRONG"];
        assert_eq!(operations(&code)[..2], ["LDG.STRONG", "STG"], "{body}");
        assert_eq!(operations(&code)[2..], fences, "{body}");
        assert_eq!(disorders(&code, None), [], "{body}");
    }
}

/// What a fence has settled stays settled in the next turn, where the access is made under the guard again.
#[test]
fn a_fence_under_the_guard_of_an_access_settles_it_in_every_turn() {
    let code = compile(
        "v4 = load.i32 aligned v1
        v5 = load.i32 aligned v1+4
        jump block1
    block1:
        v9 = atomic_rmw.i32 xchg v2, v3
        brif v9, block3(v4), block2
    block2:
        store aligned v3, v0
        v10 = atomic_rmw.i32 sub v2, v3
        jump block3(v5)
    block3(v14: i32):
        brif v14, block4, block1
    block4:
        return\n",
    );
    let guarded = |w: &&u128| {
        let inst = decode(**w).expect("legal").0;
        MemoryEffect::of(&inst) == Some(MemoryEffect::Fence) && !inst.is_unguarded()
    };
    assert_eq!(code.words.iter().filter(guarded).count(), 1);
    assert_eq!(disorders(&code, None), []);
}

#[test]
fn a_loop_that_polls_has_no_fence() {
    let code = compile(
        "store aligned v3, v0
        jump block1
    block1:
        v9 = atomic_cas.i32 aligned v2, v3, v3
        brif v9, block1, block2
    block2:
        v10 = load.i32 aligned v1
        v11 = iadd v10, v3
        store aligned v11, v1
        atomic_store aligned v3, v2
        return\n",
    );
    let insts: Vec<PInst> = (code.words.iter())
        .map(|&word| decode(word).expect("legal").0)
        .collect();
    let first = |optype| {
        let mut insts = insts.iter();
        insts
            .position(|inst| inst.optype() == optype)
            .expect("it is there")
    };
    let branch = first(Optype::BRA);
    let label = insts[branch].label().expect("a branch has a label");
    // In bytes from the next instruction, negative back.
    let unused = 64 - u32::from(insts[branch].info().fields[label.field as usize].width);
    let raw = insts[branch].number(label.role).expect("a number");
    let distance = ((raw << unused) as i64 >> unused) / WORD_BYTES as i64;
    let target = (branch as i64 + 1 + distance) as usize;
    assert!(
        target < branch && first(Optype::MEMBAR) < target,
        "in front of the loop"
    );
    assert_eq!(
        operations(&code),
        [
            "STG",
            "MEMBAR.CTA",
            "ATOMS.CAS",
            "LDG",
            "STG",
            "MEMBAR.CTA",
            "STS.STRONG"
        ]
    );
}
