//! The twelve programs of the examples, against the same on the host.

use crate::common;
use crate::common::{Random, ran};
use std::collections::HashMap;
use std::sync::LazyLock;
use thisgpu_build::{Buffer, Compiled, Device, Grid, Module};

static PROGRAMS: LazyLock<Compiled> = LazyLock::new(|| common::compiled("programs"));

fn checking() -> (Device, Module) {
    common::checking(&PROGRAMS)
}

fn line(blocks: u32, threads: u32) -> Grid {
    Grid::new([blocks, 1, 1], [threads, 1, 1])
}

fn plane(width: u32, height: u32) -> Grid {
    Grid::new([width.div_ceil(8), height.div_ceil(4), 1], [8, 4, 1])
}

type Vec3 = [f32; 3];

fn add(a: Vec3, b: Vec3) -> Vec3 {
    [0, 1, 2].map(|i| a[i] + b[i])
}

fn scaled(a: Vec3, by: f32) -> Vec3 {
    a.map(|a| a * by)
}

fn less(a: Vec3, b: Vec3) -> Vec3 {
    [0, 1, 2].map(|i| a[i] - b[i])
}

fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn unit(a: Vec3) -> Vec3 {
    scaled(a, 1.0 / dot(a, a).sqrt())
}

/// The distance, and the sphere or the floor.
fn nearest(spheres: &[[f32; 8]], from: Vec3, to: Vec3) -> Option<(f32, Option<&[f32; 8]>)> {
    let mut best = (to[1] < -1e-4).then(|| (-from[1] / to[1], None));
    for sphere in spheres {
        let off = less(from, [sphere[0], sphere[1], sphere[2]]);
        let b = dot(off, to);
        let d = b * b - (dot(off, off) - sphere[3] * sphere[3]);
        if d > 0.0 {
            let t = -b - d.sqrt();
            if t >= 1e-3 && best.is_none_or(|(best, _)| best > t) {
                best = Some((t, Some(sphere)));
            }
        }
    }
    best
}

fn traced(spheres: &[[f32; 8]], mut from: Vec3, mut to: Vec3) -> Vec3 {
    let (mut colour, mut weight) = ([0.0; 3], 1.0);
    for _ in 0..4 {
        let Some((t, what)) = nearest(spheres, from, to) else {
            return add(
                colour,
                scaled([0.3, 0.5, 0.9], weight * (0.5 + 0.5 * to[1])),
            );
        };
        let at = add(from, scaled(to, t));
        let (normal, own, shine) = match what {
            None => {
                let odd = (at[0].floor() as i32 + at[2].floor() as i32) & 1 != 0;
                ([0.0, 1.0, 0.0], [if odd { 0.1 } else { 0.9 }; 3], 0.1)
            }
            Some(s) => (unit(less(at, [s[0], s[1], s[2]])), [s[4], s[5], s[6]], s[7]),
        };
        from = add(at, scaled(normal, 1e-3));
        let light = unit([0.6, 0.7, -0.4]);
        let lit = match nearest(spheres, from, light) {
            None => dot(normal, light).max(0.0),
            Some(_) => 0.0,
        };
        colour = add(
            colour,
            scaled(own, weight * (1.0 - shine) * (0.2 + 0.8 * lit)),
        );
        weight *= shine;
        if weight < 0.01 {
            break;
        }
        to = unit(less(to, scaled(normal, 2.0 * dot(to, normal))));
    }
    colour
}

#[test]
fn a_picture_is_traced() {
    let (device, module) = checking();
    let (width, height) = (41u32, 23u32);
    let spheres: [[f32; 8]; 3] = [
        [0.0, 0.8, 1.0, 0.8, 0.9, 0.2, 0.2, 0.3],
        [-1.3, 0.5, 0.2, 0.5, 0.2, 0.9, 0.3, 0.05],
        [1.2, 0.6, 0.4, 0.6, 0.2, 0.3, 0.9, 0.6],
    ];
    let given = device.upload(&spheres).expect("room");
    let pixels = u64::from(width * height);
    let mut out = device.zeros::<[u8; 4]>(pixels).expect("room");
    ran(&module, "picture", plane(width, height), |launch| {
        let launch = launch.arg(&given).arg(width).arg(height);
        launch.arg((&mut out, [width, height]))
    });
    let picture = out.to_vec().expect("there");
    for (at, pixel) in picture.iter().enumerate() {
        let (x, y) = (at as u32 % width, at as u32 / width);
        let x = (x as f32 + 0.5) / width as f32 * 2.0 - 1.0;
        let y = 1.0 - (y as f32 + 0.5) / height as f32 * 2.0;
        let colour = traced(&spheres, [0.0, 1.0, -4.0], unit([x, y * 0.75, 2.0]));
        let expected = colour.map(|part| (part.clamp(0.0, 1.0) * 255.0) as u8);
        assert_eq!(pixel[..3], expected, "pixel {at}");
    }
}

#[test]
fn fields_are_read() {
    let (device, module) = checking();
    let mut records: Vec<(String, i64)> = vec![
        (r#"{"price": 12}"#.into(), 12),
        (r#"{"a":[1,{"price":3}],"price":-7, "b":null}"#.into(), -7),
        (
            r#"{"name":"x\"y,}","price" : 9223372036854775807}"#.into(),
            i64::MAX,
        ),
        (r#"{"price":99999999999999999999}"#.into(), -3),
        (r#"{"price":1.5}"#.into(), -4),
        (r#"{"other":1}"#.into(), -1),
        (r#"{"price":1"#.into(), -2),
        (r#"["price"]"#.into(), -1000 - i64::from(b'[')),
        ("{\"été\":true,\"price\":31}".into(), 31),
    ];
    let mut random = Random(3);
    for _ in 0..50 {
        let price = random.bits() as i64 >> (random.bits() % 64);
        let nested = format!("[{}, {{\"q\": \"{}\"}}]", random.bits(), random.bits());
        records.push((
            format!(
                "{{ \"n\":\"{}\", \"list\": {nested},\"price\":{price} }}",
                random.bits()
            ),
            price,
        ));
    }
    let mut text: Vec<u8> = Vec::new();
    let mut starts = vec![0];
    for (record, _) in &records {
        text.extend(record.as_bytes());
        starts.push(text.len() as u32);
    }
    // What is no UTF-8: the third byte of a name.
    text.extend(b"{\"ab\xff\":1}");
    starts.push(text.len() as u32);
    let (text, starts) = (
        device.upload(&text).expect("room"),
        device.upload(&starts).expect("room"),
    );
    let mut out = device.zeros::<i64>(records.len() as u64 + 1).expect("room");
    ran(&module, "prices", line(2, 32), |launch| {
        launch.arg(&text).arg(&starts).arg(&mut out)
    });
    let mut expected: Vec<i64> = records.iter().map(|record| record.1).collect();
    expected.push(-12);
    assert_eq!(out.to_vec().expect("there"), expected);
}

#[test]
fn bodies_attract_each_other() {
    let (device, module) = checking();
    let mut random = Random(5);
    let bodies: Vec<[f32; 4]> = (0..150)
        .map(|_| [0; 4].map(|_| (random.bits() >> 40) as f32 / (1 << 24) as f32))
        .collect();
    let given = device.upload(&bodies).expect("room");
    let mut out = device.zeros::<[f32; 3]>(bodies.len() as u64).expect("room");
    ran(&module, "attract", line(3, 64), |launch| {
        launch.arg(&given).arg(&mut out)
    });
    for (own, found) in bodies.iter().zip(out.to_vec().expect("there")) {
        let mut sum = [0.0f64; 3];
        for other in &bodies {
            let d = [0, 1, 2].map(|axis| f64::from(other[axis] - own[axis]));
            let r2 = d.iter().map(|d| d * d).sum::<f64>() + 0.01;
            let force = f64::from(other[3]) / (r2 * r2.sqrt());
            (0..3).for_each(|axis| sum[axis] += d[axis] * force);
        }
        let off = |axis: usize| (f64::from(found[axis]) - sum[axis]).abs();
        assert!((0..3).all(|axis| off(axis) < 1e-2), "{found:?} {sum:?}");
    }
}

#[test]
fn keys_of_blocks_are_sorted() {
    let (device, module) = checking();
    let mut random = Random(7);
    let keys: Vec<u32> = (0..512)
        .map(|at| (random.bits() as u32) >> (at % 31))
        .collect();
    let given = device.upload(&keys).expect("room");
    let mut out = device.zeros::<u32>(512).expect("room");
    ran(&module, "sort_blocks", line(2, 256), |launch| {
        launch.arg(&given).arg(&mut out)
    });
    let mut expected = keys;
    expected.chunks_mut(256).for_each(<[u32]>::sort);
    assert_eq!(out.to_vec().expect("there"), expected);
}

#[test]
fn a_scan_looks_back() {
    let (device, module) = checking();
    let mut random = Random(11);
    let x: Vec<u32> = (0..1000).map(|_| random.bits() as u32).collect();
    let blocks = 8;
    let given = device.upload(&x).expect("room");
    let out = device.zeros::<u32>(1000).expect("room");
    let (ticket, states) = (
        device.zeros::<u32>(1).expect("room"),
        device.zeros::<u64>(blocks.into()).expect("room"),
    );
    ran(&module, "scan", line(blocks, 128), |launch| {
        launch.arg(&given).arg(&ticket).arg(&states).arg(&out)
    });
    let mut sum = 0u32;
    let expected: Vec<u32> = (x.iter())
        .map(|x| {
            sum = sum.wrapping_add(*x);
            sum
        })
        .collect();
    assert_eq!(out.to_vec().expect("there"), expected);
}

#[test]
fn words_are_counted() {
    let (device, module) = checking();
    let mut random = Random(13);
    let words: Vec<u64> = (0..700).map(|_| random.bits() % 90 * 1_000_003).collect();
    let slots = 128;
    let keys = device.upload(&vec![u64::MAX; slots]).expect("room");
    let counts = device.zeros::<u32>(slots as u64).expect("room");
    let lost = device.zeros::<u32>(1).expect("room");
    let given = device.upload(&words).expect("room");
    ran(&module, "add_words", line(3, 64), |launch| {
        launch.arg(&given).arg(&keys).arg(&counts).arg(&lost)
    });
    assert_eq!(lost.to_vec().expect("there"), [0]);
    let mut expected: HashMap<u64, u32> = HashMap::new();
    words
        .iter()
        .for_each(|word| *expected.entry(*word).or_default() += 1);
    let asked: Vec<u64> = (0..100).map(|word| word * 1_000_003).collect();
    let given = device.upload(&asked).expect("room");
    let mut out = device.zeros::<u32>(100).expect("room");
    ran(&module, "count_words", line(2, 64), |launch| {
        launch.arg(&given).arg(&keys).arg(&counts).arg(&mut out)
    });
    let expected: Vec<u32> = (asked.iter())
        .map(|word| expected.get(word).copied().unwrap_or(0))
        .collect();
    assert_eq!(out.to_vec().expect("there"), expected);
}

#[test]
fn points_are_transformed() {
    let (device, module) = checking();
    let mut random = Random(17);
    let x: Vec<[f32; 2]> = (0..512)
        .map(|_| [0; 2].map(|_| (random.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0))
        .collect();
    let given = device.upload(&x).expect("room");
    let mut out = device.zeros::<[f32; 2]>(512).expect("room");
    ran(&module, "transform", line(2, 128), |launch| {
        launch.arg(&given).arg(&mut out)
    });
    let found = out.to_vec().expect("there");
    for (x, found) in x.chunks(256).zip(found.chunks(256)) {
        for (k, found) in found.iter().enumerate() {
            let mut sum = [0.0f64; 2];
            for (n, [re, im]) in x.iter().enumerate() {
                let angle = -std::f64::consts::TAU * (k * n % 256) as f64 / 256.0;
                let (sin, cos) = angle.sin_cos();
                let (re, im) = (f64::from(*re), f64::from(*im));
                sum = [sum[0] + re * cos - im * sin, sum[1] + re * sin + im * cos];
            }
            let off = (0..2).map(|part| (f64::from(found[part]) - sum[part]).abs());
            assert!(off.fold(0.0, f64::max) < 1e-3, "{k}: {found:?} {sum:?}");
        }
    }
}

#[test]
fn an_image_is_filtered() {
    let (device, module) = checking();
    let (width, height) = (37u32, 19u32);
    let mut random = Random(19);
    let image: Vec<u8> = (0..width * height).map(|_| random.bits() as u8).collect();
    let given = device.upload(&image).expect("room");
    let mut out = device.zeros::<u8>(image.len() as u64).expect("room");
    ran(&module, "median", plane(width, height), |launch| {
        let size = [width, height];
        launch.arg((&given, size)).arg((&mut out, size))
    });
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, width as i64 - 1), y.clamp(0, height as i64 - 1));
        image[(y * i64::from(width) + x) as usize]
    };
    let expected: Vec<u8> = (0..i64::from(height))
        .flat_map(|y| (0..i64::from(width)).map(move |x| (x, y)))
        .map(|(x, y)| {
            let mut near: Vec<u8> = (0..9).map(|i| at(x + i % 3 - 1, y + i / 3 - 1)).collect();
            near.sort();
            near[4]
        })
        .collect();
    assert_eq!(out.to_vec().expect("there"), expected);
}

#[test]
fn programs_are_interpreted() {
    let (device, module) = checking();
    let push = |value: i32| (value as u32 & 0xFF_FFFF) << 8;
    let jump = |to: u32| to << 8 | 8;
    let unless = |to: u32| to << 8 | 7;
    let (add, mul, sub, dup, swap, over, stop) = (1, 2, 3, 4, 5, 6, 9);
    let mut cases: Vec<(Vec<u32>, [i32; 2])> = vec![
        (vec![push(6), push(7), mul, stop], [42, 0]),
        (vec![push(-3), push(5), sub, stop], [-8, 0]),
        (vec![push(1), push(2), swap, sub, stop], [1, 0]),
        (vec![push(4), push(9), over, add, mul, stop], [52, 0]),
        (vec![add], [0, 2]),
        (vec![push(1)], [0, 4]),
        (vec![jump(0)], [0, 3]),
        (vec![push(1), 77, stop], [77, 1]),
        (vec![stop], [0, 2]),
    ];
    // Factorials: the product, and n above it.
    for n in 0..12 {
        let turn = [
            dup,
            unless(11),
            swap,
            over,
            mul,
            swap,
            push(-1),
            add,
            jump(2),
        ];
        let program = [&[push(1), push(n)][..], &turn, &[add, stop]].concat();
        cases.push((program, [(1..=n).product(), 0]));
    }
    let mut random = Random(23);
    for _ in 0..40 {
        let length = 3 + random.bits() % 20;
        let program: Vec<u32> = (0..length)
            .map(|_| match random.bits() % 12 {
                0..5 => push(random.bits() as i32 >> 20),
                5 => (random.bits() % length) as u32 >> 1 << 8 | 7,
                6 => ((random.bits() % (length + 1)) << 8 | 8) as u32,
                other => [add, mul, sub, dup, swap][other as usize - 7],
            })
            .chain([stop])
            .collect();
        let expected = interpreted(&program);
        cases.push((program, expected));
    }
    let mut code: Vec<u32> = Vec::new();
    let mut starts = vec![0u32];
    for (program, _) in &cases {
        code.extend(program);
        starts.push(code.len() as u32);
    }
    let (code, starts) = (
        device.upload(&code).expect("room"),
        device.upload(&starts).expect("room"),
    );
    let mut out = device.zeros::<[i32; 2]>(cases.len() as u64).expect("room");
    ran(&module, "interpret", line(2, 32), |launch| {
        launch.arg(&code).arg(&starts).arg(&mut out)
    });
    for ((program, expected), found) in cases.iter().zip(out.to_vec().expect("there")) {
        assert_eq!(found, *expected, "{program:x?}");
    }
}

/// What a program comes to, word by word.
fn interpreted(program: &[u32]) -> [i32; 2] {
    if let Some(wrong) = program.iter().find(|word| **word & 0xFF > 9) {
        return [(*wrong & 0xFF) as i32, 1];
    }
    let (mut stack, mut at): (Vec<i32>, usize) = (Vec::new(), 0);
    for _ in 0..2000 {
        let Some(word) = program.get(at) else {
            return [0, 4];
        };
        at += 1;
        let (needed, argument) = ([0, 2, 2, 2, 1, 2, 2, 1, 0, 1], word >> 8);
        if stack.len() < needed[*word as usize & 0xFF] {
            return [0, 2];
        }
        let n = stack.len();
        match word & 0xFF {
            0 => stack.push((argument as i32) << 8 >> 8),
            code @ 1..=3 => {
                let b = stack.pop().expect("two");
                let a = stack.pop().expect("one");
                stack.push(match code {
                    1 => a.wrapping_add(b),
                    2 => a.wrapping_mul(b),
                    _ => a.wrapping_sub(b),
                });
            }
            4 => stack.push(stack[n - 1]),
            5 => stack.swap(n - 1, n - 2),
            6 => stack.push(stack[n - 2]),
            7 => {
                if stack.pop() == Some(0) {
                    at = argument as usize;
                }
            }
            8 => at = argument as usize,
            _ => return [stack[n - 1], 0],
        }
    }
    [0, 3]
}

#[test]
fn life_goes_on() {
    let (device, module) = checking();
    let (width, height) = (30u32, 17u32);
    let size = [width, height];
    let mut random = Random(29);
    let mut cells: Vec<u8> = (0..width * height)
        .map(|_| u8::from(random.bits().is_multiple_of(3)))
        .collect();
    let mut now = device.upload(&cells).expect("room");
    let mut next = device.zeros::<u8>(cells.len() as u64).expect("room");
    for _ in 0..4 {
        ran(&module, "generation", plane(width, height), |launch| {
            launch.arg((&now, size)).arg((&mut next, size))
        });
        std::mem::swap(&mut now, &mut next);
        let at = |x: u32, y: u32| cells[(y % height * width + x % width) as usize];
        cells = (0..width * height)
            .map(|i| {
                let (x, y) = (i % width + width, i / width + height);
                let around = (0..9).map(|k| (k % 3, k / 3)).filter(|k| *k != (1, 1));
                let sum: u8 = around.map(|(dx, dy)| at(x + dx - 1, y + dy - 1)).sum();
                u8::from(sum == 3 || sum == 2 && at(x, y) == 1)
            })
            .collect();
        assert_eq!(now.to_vec().expect("there"), cells);
    }
}

#[test]
fn points_are_clustered() {
    let (device, module) = checking();
    let mut random = Random(31);
    let points: Vec<[i32; 2]> = (0..300)
        .map(|at| [at % 5 * 400, at % 3 * 500].map(|c| c + random.bits() as i32 % 100))
        .collect();
    let mut centres: Vec<[i32; 2]> = points[..6].to_vec();
    let given = device.upload(&points).expect("room");
    let mut on_device = device.upload(&centres).expect("room");
    let mut nearest = device.zeros::<u32>(300).expect("room");
    for _ in 0..3 {
        let sums = device.zeros::<i32>(12).expect("room");
        let counts = device.zeros::<u32>(6).expect("room");
        ran(&module, "assign", line(3, 128), |launch| {
            let launch = launch.arg(&given).arg(&on_device).arg(&mut nearest);
            launch.arg(&sums).arg(&counts)
        });
        let pairs: Buffer<[i32; 2]> = sums.cast().expect("pairs");
        ran(&module, "settle", line(1, 32), |launch| {
            launch.arg(&pairs).arg(&counts).arg(&mut on_device)
        });
        let distance = |a: &[i32; 2], b: &[i32; 2]| {
            let d = [0, 1].map(|i| i64::from(a[i]) - i64::from(b[i]));
            d[0].pow(2) + d[1].pow(2)
        };
        let of: Vec<usize> = (points.iter())
            .map(|p| {
                (0..6)
                    .min_by_key(|c| distance(p, &centres[*c]))
                    .expect("six")
            })
            .collect();
        let found = nearest.to_vec().expect("there");
        assert!(found.iter().zip(&of).all(|(a, b)| *a as usize == *b));
        for (number, centre) in centres.iter_mut().enumerate() {
            let own = points.iter().zip(&of).filter(|(_, of)| **of == number);
            let own: Vec<[i32; 2]> = own.map(|(point, _)| *point).collect();
            if !own.is_empty() {
                let sum = |axis: usize| own.iter().map(|p| p[axis]).sum::<i32>();
                *centre = [0, 1].map(|axis| sum(axis).div_euclid(own.len() as i32));
            }
        }
        assert_eq!(on_device.to_vec().expect("there"), centres);
    }
}

#[test]
fn matrices_are_inverted() {
    let (device, module) = checking();
    let mut random = Random(37);
    let mut matrices: Vec<[[f64; 5]; 5]> = (0..30)
        .map(|_| [[0; 5]; 5].map(|row| row.map(|_| (random.bits() >> 11) as f64 / 1e15 - 4.5)))
        .collect();
    // Two equal rows.
    matrices[4][3] = matrices[4][1];
    let given = device.upload(&matrices).expect("room");
    let mut out = device.zeros::<[[f64; 5]; 5]>(30).expect("room");
    ran(&module, "inverses", line(1, 32), |launch| {
        launch.arg(&given).arg(&mut out)
    });
    for (number, (a, b)) in matrices
        .iter()
        .zip(out.to_vec().expect("there"))
        .enumerate()
    {
        for (y, row) in a.iter().enumerate() {
            for x in 0..5 {
                let product: f64 = row.iter().zip(&b).map(|(a, b)| a * b[x]).sum();
                let expected = if x == y && number != 4 { 1.0 } else { 0.0 };
                assert!((product - expected).abs() < 1e-6, "{number}: {product}");
            }
        }
    }
}
