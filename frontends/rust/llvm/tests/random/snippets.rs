//! Statements: what Rust programs are made of, with random expressions in them.

use super::expressions::{I64, Scope, Ty, U8, U32, U64};

/// A statement that mixes something into `h`, or declares a variable; statements in it may be so deep.
pub fn statement(scope: &mut Scope<'_>, depth: usize) -> String {
    let kinds: [fn(&mut Scope<'_>, usize) -> String; 34] = [
        declaration,
        declaration,
        assignment,
        assignment,
        mixing,
        mixing,
        condition,
        condition,
        match_int,
        match_tuple,
        loop_while,
        loop_labelled,
        range_fold,
        array,
        array_sort,
        slice_methods,
        windows,
        structure,
        enumeration,
        kinds_of_enum,
        option_chain,
        result_chain,
        closure,
        closure_state,
        dynamic,
        recursion,
        strings,
        tables,
        atomics,
        cells,
        bytes,
        iterator,
        chars,
        arrays_of_arrays,
    ];
    let kind = scope.rng.pick(&kinds);
    let text = kind(scope, depth);
    format!("    {}\n", text.trim_end())
}

/// Statements in braces, whose variables end there.
fn block(scope: &mut Scope<'_>, depth: usize) -> String {
    let mark = scope.mark();
    let mut text = String::from("{\n");
    for _ in 0..1 + scope.rng.below(2) {
        text.push_str(&match depth {
            0 => mixing(scope, 0),
            depth => statement(scope, depth - 1),
        });
    }
    scope.release(mark);
    text.push_str(" }");
    text
}

fn declaration(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.any();
    let value = scope.expression(ty, 3);
    let name = scope.declare(ty);
    format!("let mut {name}: {ty} = {value};")
}

fn assignment(scope: &mut Scope<'_>, depth: usize) -> String {
    let Some((name, ty)) = scope.assignable() else {
        return mixing(scope, depth);
    };
    let value = scope.expression(ty, 3);
    format!("{name} = {value};")
}

fn mixing(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.any();
    let value = scope.expression(ty, 3);
    let mixed = scope.mixed(ty, "value");
    format!("{{ let value: {ty} = {value}; {mixed} }}")
}

fn condition(scope: &mut Scope<'_>, depth: usize) -> String {
    let condition = scope.expression(Ty::Bool, 2);
    let (then, otherwise) = (block(scope, depth), block(scope, depth));
    format!("if {condition} {then} else {otherwise}")
}

fn match_int(scope: &mut Scope<'_>, depth: usize) -> String {
    let ty = scope.int();
    let on = scope.expression(ty, 2);
    let mut arms = String::new();
    let mut least = 0_u32;
    for _ in 0..2 + scope.rng.below(5) {
        let most = least + scope.rng.below(9) as u32;
        let arm = match scope.rng.below(4) {
            0 => block(scope, depth.saturating_sub(1)),
            1 => format!("mix(&mut h, (n as u64) ^ {least}),"),
            _ => format!("mix(&mut h, {}),", scope.rng.next()),
        };
        arms.push_str(&match most == least {
            true => format!(" n @ {least} => {arm}"),
            false => format!(" n @ {least}..={most} => {arm}"),
        });
        least = most + 1 + scope.rng.below(3) as u32;
        if least > 100 {
            break;
        }
    }
    format!("match {on} {{ {arms} n => mix(&mut h, n as u64) }}")
}

fn match_tuple(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U8, 2), scope.expression(Ty::Bool, 2));
    let c = scope.expression(I64, 2);
    format!(
        "mix(&mut h, match ({a}, {b}, {c}) {{ (0, _, n) if n > 5 => n as u64, (b'a'..=b'z', true, _) => 3, (x, false, n @ -9..=9) => (x as i64 + n) as u64, \
         (x, true, i64::MIN..=-1) => x as u64 * 7, (1 | 3 | 5 | 9, ..) => 11, (x, _, n) => n as u64 ^ x as u64 }});"
    )
}

fn loop_while(scope: &mut Scope<'_>, depth: usize) -> String {
    let turns = 1 + scope.rng.below(9);
    let counter = scope.fresh().replace('v', "w");
    let mark = scope.mark();
    scope.introduce(&counter, U32);
    let (condition, body) = (
        scope.expression(Ty::Bool, 1),
        block(scope, depth.saturating_sub(1)),
    );
    scope.release(mark);
    format!(
        "{{ let mut {counter} = 0_u32; while {counter} < {turns} && ({counter} < 2 || {condition}) {{ {counter} += 1; {body} }} }}"
    )
}

fn loop_labelled(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U32, 2), scope.expression(U8, 1));
    format!(
        "{{ let (mut n, mut turns) = ({a}, 0); let found = 'outer: loop {{ turns += 1; if turns > 40 {{ break n; }} for i in 0..7_u32 {{ if n % 5 == i {{ break 'outer n ^ i; }} if i == {b} as u32 % 9 {{ n = n.wrapping_mul(3); \
         continue 'outer; }} n = n.wrapping_add(i) >> 1; }} if n < 4 {{ break n; }} }}; mix(&mut h, found as u64); }}"
    )
}

fn range_fold(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let (start, from) = (scope.expression(ty, 1), scope.rng.below(20));
    let to = from + scope.rng.below(20);
    let mark = scope.mark();
    scope.introduce("acc", ty);
    scope.introduce("i", U32);
    let step = scope.expression(ty, 2);
    scope.release(mark);
    let adapter = scope.rng.pick(&[
        "",
        ".rev()",
        ".step_by(3)",
        ".filter(|i| i % 3 != 1)",
        ".take(5)",
        ".skip(2)",
    ]);
    let mixed = scope.mixed(ty, "sum");
    format!(
        "{{ let sum: {ty} = ({from}..{to}_u32){adapter}.fold({start}, |acc: {ty}, i| {step}); {mixed} }}"
    )
}

fn array(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.any();
    let length = 1 + scope.rng.below(12);
    let values: Vec<String> = (0..length).map(|_| scope.expression(ty, 1)).collect();
    let (at, to) = (scope.expression(U32, 2), scope.expression(U32, 2));
    let new = scope.expression(ty, 2);
    let index = match scope.panics {
        true => format!("{at} as usize % 16"),
        false => format!("{at} as usize % {length}"),
    };
    let mixed = scope.mixed(ty, "*value");
    format!(
        "{{ let mut a: [{ty}; {length}] = [{}]; a[{index}] = {new}; a.swap(0, {to} as usize % {length}); for value in &a {{ {mixed} }} }}",
        values.join(", ")
    )
}

fn array_sort(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let length = 2 + scope.rng.below(30);
    let seed = scope.expression(ty, 2);
    let sort = scope.rng.pick(&[
        "a.sort_unstable();",
        "a.sort_unstable_by(|x, y| y.cmp(x));",
        "a.sort_unstable_by_key(|x| x.count_ones());",
        "a.reverse();",
    ]);
    let mixed = scope.mixed(ty, "value");
    // Equal keys may be in any order on any machine; the library's code is the same, so the order is too.
    format!(
        "{{ let mut n = {seed}; let mut a: [{ty}; {length}] = core::array::from_fn(|i| {{ n = n.wrapping_mul(37 as {ty}).wrapping_add(i as {ty}); n ^ (n >> 3) }}); {sort} \
         for value in a {{ {mixed} }} a.sort_unstable(); mix(&mut h, a.binary_search(&n).is_ok() as u64); mix(&mut h, a.partition_point(|x| *x < n) as u64); }}"
    )
}

fn slice_methods(scope: &mut Scope<'_>, _: usize) -> String {
    let (seed, k) = (scope.expression(U32, 2), scope.rng.below(17));
    let what = scope.rng.pick(&[
        "a.rotate_left(k);",
        "a.rotate_right(k);",
        "a.fill(n); a[k / 2] = 1;",
        "a.copy_within(k / 2..k, 3);",
        "{ let (x, y) = a.split_at_mut(k); for (p, q) in x.iter_mut().zip(y) { core::mem::swap(p, q); } }",
        "for c in a.chunks_mut(1 + k / 3) { c.reverse(); }",
        "for c in a.chunks_exact_mut(4) { c[1] ^= c[3]; c.swap(0, 2); }",
        "a[k..].iter_mut().for_each(|x| *x = x.wrapping_add(5));",
        "if let [first, .., last] = &mut a[..] { *first ^= *last; }",
        "if let Some(x) = a.get_mut(k) { *x = 9; }",
        "mix(&mut h, a.iter().rposition(|x| x % 7 == 2).unwrap_or(99) as u64);",
        "mix(&mut h, a.contains(&n) as u64); mix(&mut h, a.first().copied().unwrap_or(0) as u64); mix(&mut h, (a < [n; 17]) as u64);",
        "mix(&mut h, a.iter().max().map_or(0, |x| *x as u64)); mix(&mut h, a.iter().min_by_key(|x| *x % 13).map_or(0, |x| *x as u64));",
        "mix(&mut h, (a[..k] == a[17 - k..]) as u64); mix(&mut h, a[..k].cmp(&a[1..]) as i8 as u64);",
    ]);
    format!(
        "{{ let mut n = {seed}; let k = {k}_usize; let mut a = [0_u32; 17]; for x in a.iter_mut() {{ n = n.wrapping_mul(1664525).wrapping_add(1013904223); *x = n >> 20; }} {what} \
         for x in a {{ mix(&mut h, x as u64); }} }}"
    )
}

fn windows(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let values: Vec<String> = (0..9).map(|_| scope.expression(ty, 1)).collect();
    let what = scope.rng.pick(&[
        "a.windows(2).filter(|w| w[0] < w[1]).count() as u64",
        "a.chunks(4).map(|c| c.len() as u64 * 3 + c[0] as u64).fold(0, u64::wrapping_add)",
        "a.iter().enumerate().map(|(i, x)| (*x as u64).wrapping_mul(i as u64)).fold(7, |a, b| a ^ b.rotate_left(9))",
        "a.iter().zip(a.iter().skip(3)).filter(|(x, y)| x > y).map(|(x, _)| *x as u64).fold(0, |a, b| a.wrapping_add(b))",
        "a.iter().rev().take_while(|x| **x as u64 & 3 != 0).count() as u64",
        "a.split(|x| *x as u64 % 3 == 0).map(|s| s.len() as u64).fold(1, |a, b| a * 4 + b)",
        "a.iter().copied().reduce(|a, b| a.max(b) ^ 1).unwrap_or(0) as u64",
        "a.iter().scan(0_u64, |s, x| { *s = s.wrapping_add(*x as u64); Some(*s) }).fold(0, |a, b| a ^ b)",
        "a.iter().any(|x| *x as u8 == 7) as u64 * 2 + a.iter().all(|x| *x as u8 != 3) as u64",
        "a.iter().flat_map(|x| [*x as u64, (*x as u64) >> 3]).fold(5, |a, b| a.wrapping_mul(31) ^ b)",
        "a.iter().step_by(2).chain(&a[1..4]).fold(2, |s, x| s ^ (*x as u64).wrapping_mul(s | 1))",
        "a.iter().map(|x| *x as u8 as u64).sum::<u64>() + a.iter().map(|x| (*x as u8 & 3) as u64).product::<u64>()",
    ]);
    format!(
        "{{ let a: [{ty}; 9] = [{}]; mix(&mut h, {what}); }}",
        values.join(", ")
    )
}

fn structure(scope: &mut Scope<'_>, _: usize) -> String {
    let (x, y) = (
        scope.expression(Ty::Int(32, true), 2),
        scope.expression(U8, 2),
    );
    let (z, other) = (scope.expression(I64, 2), scope.expression(I64, 1));
    let pick = scope.expression(Ty::Bool, 2);
    format!(
        "{{ let p = Point {{ x: {x}, y: {y}, z: {z} }}; let q = Point {{ z: {other}, ..p }}; let mut r = if {pick} {{ p }} else {{ q }}; r.x = r.x.wrapping_add(1); \
         core::mem::swap(&mut r.z, &mut {{ q }}.z); let Point {{ x, y, z }} = r; mix(&mut h, x as u64 ^ (y as u64) << 40 ^ z as u64); \
         mix(&mut h, (p == q) as u64 * 2 + (p < r) as u64); mix(&mut h, p.max(r).z as u64); }}"
    )
}

fn enumeration(scope: &mut Scope<'_>, _: usize) -> String {
    let (k, v) = (scope.expression(U32, 2), scope.expression(U64, 2));
    format!(
        "{{ let s = core::hint::black_box(shape({k}, {v})); let t = match s {{ Shape::Empty => Shape::Line(3), Shape::Line(n) => Shape::Box {{ w: n as u32, h: -1 }}, other => other }}; \
         mix(&mut h, match t {{ Shape::Empty => 1, Shape::Line(n) => n as u64, Shape::Box {{ w, h }} if h < 0 => w as u64 ^ 99, Shape::Box {{ w, h }} => w as u64 * h as u64, \
         Shape::Far(n) => (n >> 37) as u64 }}); }}"
    )
}

fn kinds_of_enum(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U32, 2), scope.expression(U32, 2));
    format!(
        "{{ let (a, b) = (kind({a}), kind({b})); mix(&mut h, a as u64 * 5 + (a < b) as u64 + (a == b) as u64 * 2); mix(&mut h, match (a, b) {{ (Kind::A, _) => 4, (Kind::C, Kind::D) => 9, \
         (_, Kind::B) => 2, _ => b as u64 }}); }}"
    )
}

fn option_chain(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let (a, b) = (scope.expression(ty, 2), scope.expression(ty, 2));
    let c = scope.expression(Ty::Bool, 2);
    let what = scope.rng.pick(&[
        "o.map(|x| x ^ 1).or(p).unwrap_or(3)",
        "o.filter(|x| *x > q).xor(p).unwrap_or_default()",
        "o.zip(p).map_or(9, |(x, y)| x.wrapping_sub(y))",
        "match (o, p) { (Some(x), Some(y)) if x < y => y, (Some(x), _) => x, (None, Some(y)) => !y, (None, None) => 0 }",
        "{ let mut m = o; let t = m.take(); m.get_or_insert(q).wrapping_add(t.unwrap_or(1)) }",
        "o.and_then(|x| x.checked_mul(q)).unwrap_or_else(|| q.wrapping_neg())",
        "if let Some(x) = o && x > q { x } else { q }",
        "[o, p, None, Some(q)].into_iter().flatten().fold(0, |a, b| a ^ b)",
    ]);
    let mixed = scope.mixed(ty, "r");
    let unwrapped = match scope.panics {
        true => "mix(&mut h, o.unwrap() as u64);",
        false => "",
    };
    format!(
        "{{ let q = {a}; let o: Option<{ty}> = {c}.then_some({b}); let p: Option<{ty}> = q.checked_add(100 as {ty}); let r: {ty} = {what}; {mixed} {unwrapped} }}"
    )
}

fn result_chain(scope: &mut Scope<'_>, _: usize) -> String {
    let a = scope.expression(U32, 2);
    let text = scope.rng.pick(&[
        "\"1f\"",
        "\"\"",
        "\"zz\"",
        "\"fffffffff\"",
        "WORDS[n as usize % 5]",
        "\"7B\"",
    ]);
    format!(
        "{{ let n = {a}; let r = parse({text}).and_then(|x| x.checked_add(n).ok_or(1)); mix(&mut h, match r {{ Ok(v) => v as u64, Err(e) => e as u64 + 1000 }}); \
         let t: Result<u8, _> = u8::try_from(n); mix(&mut h, t.is_ok() as u64 + i16::try_from(n as i64 - 40000).map_or(7, |x| x as u64)); \
         mix(&mut h, r.map_err(|e| e.wrapping_mul(3)).unwrap_or_else(|e| e as u32) as u64); }}"
    )
}

fn closure(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let mark = scope.mark();
    scope.introduce("p", ty);
    scope.introduce("q", ty);
    let body = scope.expression(ty, 3);
    scope.release(mark);
    let (a, b) = (scope.expression(ty, 1), scope.expression(ty, 1));
    let mixed = scope.mixed(ty, "r");
    format!(
        "{{ let g = |p: {ty}, q: {ty}| -> {ty} {{ {body} }}; let r = g({a}, {b}); {mixed} let r = g(r, r); {mixed} }}"
    )
}

fn closure_state(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U64, 2), scope.expression(U32, 1));
    format!(
        "{{ let mut state = {a}; let mut next = |by: u32| {{ state = state.wrapping_mul(6364136223846793005).wrapping_add(by as u64); (state >> 33) as u32 }}; \
         let (p, q) = (next({b}), next(1)); let g: fn(u64) -> u64 = if p < q {{ |x| x ^ 0xff }} else {{ |x| x.swap_bytes() }}; mix(&mut h, core::hint::black_box(g)(p as u64)); mix(&mut h, state); }}"
    )
}

fn dynamic(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U32, 2), scope.expression(U8, 2));
    let v = scope.expression(U64, 2);
    let k = scope.rng.below(4);
    format!(
        "{{ let (a, b) = (Add({a}), Rot({b})); let all: [&dyn Step; 4] = [&a, &b, &Neg, &a]; let mut v = {v}; for s in core::hint::black_box(&all) {{ v = s.step(v); }} \
         mix(&mut h, apply(all[{k}], v)); mix(&mut h, apply(&b, v) ^ apply(&Neg, v)); }}"
    )
}

fn recursion(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U64, 2), scope.expression(U64, 2));
    match scope.rng.below(3) {
        0 => format!("mix(&mut h, gcd({a}, {b}));"),
        1 => format!("mix(&mut h, ackermann(({a} % 3) as u32, ({b} % 3) as u32) as u64);"),
        _ => format!(
            "mix(&mut h, gcd({a} % 1000, {b} | 1) + ackermann(1, ({a} & 7) as u32) as u64);"
        ),
    }
}

fn strings(scope: &mut Scope<'_>, _: usize) -> String {
    let a = scope.expression(U32, 2);
    let what = scope.rng.pick(&[
        "w.bytes().fold(0, |a, b| a * 31 + b as u64)",
        "w.chars().map(|c| c as u64).fold(1, |a, b| a.wrapping_mul(b | 1))",
        "w.chars().rev().filter(|c| c.is_ascii_lowercase()).count() as u64",
        "w.char_indices().map(|(i, c)| i as u64 * c.len_utf8() as u64).sum::<u64>()",
        "w.as_bytes().first().map_or(0, |b| *b as u64) + w.len() as u64",
        "(w == \"lane\") as u64 + w.eq_ignore_ascii_case(\"WARP\") as u64 * 2 + w.starts_with(\"bl\") as u64 * 4",
        "w.get(1..3).map_or(77, |s| s.len() as u64) + w.is_empty() as u64",
        "WORDS.iter().map(|w| w.len() as u64).max().unwrap_or(0) ^ (w < \"m\") as u64",
    ]);
    format!("{{ let w = WORDS[{a} as usize % 5]; mix(&mut h, {what}); }}")
}

fn tables(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U32, 2), scope.expression(U8, 2));
    let index = if scope.panics { 20 } else { 16 };
    format!(
        "{{ let n = TABLE[{a} as usize % {index}]; let (k, s) = NESTED[{b} as usize % 3]; mix(&mut h, n as u64 ^ k as u64); mix(&mut h, s.iter().map(|x| *x as i64).sum::<i64>() as u64); \
         mix(&mut h, s.get({b} as usize & 1).copied().unwrap_or(-5) as u64); const C: [u64; 3] = [5, 6 << 40, !0]; mix(&mut h, C[n as usize % 3]); }}"
    )
}

fn atomics(scope: &mut Scope<'_>, _: usize) -> String {
    let (name, ty) = scope.rng.pick(&[
        ("AtomicU32", U32),
        ("AtomicU64", U64),
        ("AtomicU16", Ty::Int(16, false)),
        ("AtomicI8", Ty::Int(8, true)),
    ]);
    let (a, b) = (scope.expression(ty, 2), scope.expression(ty, 2));
    let operation = scope
        .rng
        .pick(&["add", "sub", "and", "or", "xor", "nand", "max", "min"]);
    format!(
        "{{ let a = {name}::new({a}); let b = {b}; mix(&mut h, a.fetch_{operation}(b, Ordering::SeqCst) as u64); mix(&mut h, a.swap(b, Ordering::AcqRel) as u64); \
         mix(&mut h, match a.compare_exchange(b, 5, Ordering::AcqRel, Ordering::Relaxed) {{ Ok(x) => x as u64, Err(x) => !(x as u64) }}); \
         let _ = a.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |x| x.checked_add(3)); mix(&mut h, a.load(Ordering::Acquire) as u64); }}"
    )
}

fn cells(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U64, 2), scope.expression(U64, 1));
    format!(
        "{{ use core::cell::{{Cell, RefCell}}; let c = Cell::new({a}); let d = &c; d.set(d.get() ^ {b}); let r = RefCell::new([c.get(), 2, 3]); r.borrow_mut()[1] = d.replace(8); \
         mix(&mut h, r.borrow().iter().fold(c.take(), |a, b| a.rotate_left(5) ^ b)); let m = core::mem::replace(&mut *r.borrow_mut(), [0; 3]); mix(&mut h, m[1]); }}"
    )
}

fn bytes(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.int();
    let Ty::Int(bits, _) = ty else {
        return String::new();
    };
    let size = bits / 8;
    let a = scope.expression(ty, 2);
    let k = scope.rng.below(size as usize);
    let mixed = scope.mixed(ty, "back");
    format!(
        "{{ let mut bytes: [u8; {size}] = ({a}).to_be_bytes(); bytes[{k}] = bytes[{k}].wrapping_add(1); for b in &mut bytes {{ *b = b.rotate_left(3); }} \
         let back = {ty}::from_le_bytes(bytes); {mixed} let mut wide = [0_u8; 20]; wide[1..1 + {size}].copy_from_slice(&bytes); \
         mix(&mut h, u64::from_ne_bytes(wide[3..11].try_into().unwrap_or([1; 8]))); }}"
    )
}

fn iterator(scope: &mut Scope<'_>, _: usize) -> String {
    let (a, b) = (scope.expression(U32, 2), scope.expression(U32, 2));
    let what = scope.rng.pick(&[
        "it.take(12).map(u64::from).fold(0, |a, b| a ^ b.rotate_left(3))",
        "it.skip_while(|x| *x < 100).next().unwrap_or(4) as u64",
        "it.filter(|x| x % 2 == 0).take(6).map(u64::from).sum()",
        "it.enumerate().find(|(i, x)| i * 7 > *x as usize % 64).map_or(0, |(i, _)| i as u64)",
        "it.zip(Fib(1, 2)).map(|(x, y)| u64::from(x ^ y)).take(20).max().unwrap_or(0)",
        "{ let mut p = it.peekable(); let mut n = 0_u64; while let Some(x) = p.next() { if p.peek().is_none() { n ^= x as u64; } n = n.wrapping_add(1); } n }",
        "it.last().unwrap_or(1) as u64",
        "core::iter::successors(Some(1_u64), |x| x.checked_mul(3)).zip(it).map(|(a, b)| a ^ b as u64).fold(0, |a, b| a ^ b)",
    ]);
    format!("{{ let it = Fib({a} % 1000, {b} % 1000 + 1); mix(&mut h, {what}); }}")
}

fn chars(scope: &mut Scope<'_>, _: usize) -> String {
    let a = scope.expression(U32, 2);
    format!(
        "{{ let c = char::from_u32({a} % 0x11_0000).unwrap_or('?'); let mut b = [0; 4]; let s = c.encode_utf8(&mut b); mix(&mut h, s.len() as u64 + c.len_utf16() as u64 * 10); \
         mix(&mut h, b.iter().fold(0, |a, b| a << 8 | *b as u64)); mix(&mut h, c.to_ascii_uppercase() as u64 + c.is_ascii_punctuation() as u64); \
         mix(&mut h, c.to_digit(36).map_or(50, u64::from)); mix(&mut h, ('a'..='f').contains(&c) as u64 + char::from_digit({a} % 20, 16).map_or(0, |c| c as u64)); }}"
    )
}

fn arrays_of_arrays(scope: &mut Scope<'_>, _: usize) -> String {
    let ty = scope.rng.pick(&[
        U32,
        U64,
        Ty::Int(16, true),
        Ty::F32,
        Ty::F64,
        Ty::Int(128, false),
    ]);
    let (a, b) = (scope.expression(ty, 2), scope.expression(ty, 2));
    let (i, j) = (scope.expression(U8, 1), scope.expression(U8, 1));
    let sum = match ty {
        Ty::F32 | Ty::F64 => "m[r][k] * m[k][c]".to_owned(),
        _ => "m[r][k].wrapping_mul(m[k][c])".to_owned(),
    };
    let add = match ty {
        Ty::F32 | Ty::F64 => "+",
        _ => "^",
    };
    let zero = if matches!(ty, Ty::F32 | Ty::F64) {
        "0.0"
    } else {
        "0"
    };
    let mixed = scope.mixed(ty, "v");
    format!(
        "{{ let mut m = [[{a}; 3]; 3]; m[{i} as usize % 3][{j} as usize % 3] = {b}; let mut p: [[{ty}; 3]; 3] = [[{zero}; 3]; 3]; for r in 0..3 {{ for c in 0..3 {{ for k in 0..3 {{ \
         p[r][c] = p[r][c] {add} {sum}; }} }} }} for v in p.as_flattened() {{ let v = *v; {mixed} }} }}"
    )
}
