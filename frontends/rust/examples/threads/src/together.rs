//! What lanes and blocks do together, with numbers and structures.

use core::sync::atomic::Ordering::{AcqRel, Relaxed};
use thisgpu_gpu::*;

/// Three numbers of different sizes.
#[derive(Clone, Copy, Element)]
#[repr(C)]
pub struct Mixed {
    small: i8,
    half: u16,
    wide: u64,
    pair: [f32; 2],
}

/// The product of two functions x ↦ a · x + b, which is associative and not commutative.
#[derive(Clone, Copy, Element)]
#[repr(C)]
pub struct Affine {
    a: u32,
    b: u32,
}

impl Affine {
    fn then(self, next: Affine) -> Affine {
        Affine {
            a: self.a.wrapping_mul(next.a),
            b: self.b.wrapping_mul(next.a).wrapping_add(next.b),
        }
    }
}

/// Structures from other lanes: from the next, from the one below, from the one above, from the opposite.
#[kernel]
pub fn move_lanes(x: &[Mixed], mut out: DisjointMut<[Mixed; 4]>) {
    let own = x[thread::global_id() % x.len()];
    let moved = [
        warp::shuffle(own, warp::lane() + 1),
        warp::shuffle_up(own, 3),
        warp::shuffle_down(own, 3),
        warp::shuffle_xor(own, 31),
    ];
    if let Some(out) = out.thread_mut() {
        *out = moved;
    }
}

/// Prefixes, sums and matches of a warp: of functions, of bytes, of floats of 64 bits.
#[kernel]
pub fn warp_results(
    functions: &[Affine],
    bytes: &[u8],
    doubles: &[f64],
    mut out: DisjointMut<[u32; 6]>,
    mut sums: DisjointMut<f64>,
) {
    let i = thread::global_id();
    let (f, byte) = (functions[i], bytes[i]);
    let one = Affine { a: 1, b: 0 };
    let (prefix, before) = (
        warp::scan(f, Affine::then),
        warp::scan_exclusive(f, one, Affine::then),
    );
    let found = [
        prefix.b,
        before.b,
        warp::reduce(byte, u8::max).into(),
        warp::match_any(byte),
        u32::from(warp::match_all(byte)) | u32::from(warp::match_all(doubles[0])) << 1,
        warp::broadcast_first(byte).into(),
    ];
    let sum = warp::sum(doubles[i]);
    if let Some((out, sums)) = thread::own((&mut out, &mut sums)) {
        (*out, *sums) = (found, sum);
    }
}

/// All that a group does, as one number each.
#[inline(always)]
fn of_tile<const N: u32>(value: u32) -> [u32; 10] {
    let tile = warp::Tile::<N>::this();
    let is_odd = value % 2 == 1;
    [
        tile.rank() | tile.index() << 8 | tile.size() << 16,
        tile.shuffle(value, tile.rank() + 1),
        tile.shuffle_up(value, 1),
        tile.shuffle_down(value, 2),
        tile.shuffle_xor(value, 1),
        tile.reduce(value, u32::wrapping_add),
        tile.scan(value, u32::wrapping_add),
        tile.scan_exclusive(value, 7, u32::wrapping_add),
        tile.ballot(is_odd),
        u32::from(tile.all(is_odd))
            | u32::from(tile.any(is_odd)) << 1
            | tile.match_any(value % 3) << 2,
    ]
}

/// Groups of each size.
#[kernel]
pub fn tiles(size: u32, x: &[u32], mut out: DisjointMut<[u32; 10]>) {
    let value = x[thread::global_id()];
    let found = match size {
        2 => of_tile::<2>(value),
        4 => of_tile::<4>(value),
        8 => of_tile::<8>(value),
        16 => of_tile::<16>(value),
        _ => of_tile::<32>(value),
    };
    if let Some(out) = out.thread_mut() {
        *out = found;
    }
}

/// Groups that part: of each eight lanes the first four multiply, the others add, and all eight meet again.
#[kernel]
pub fn nested_tiles(x: &[u32], mut out: DisjointMut<u32>) {
    let value = x[thread::global_id()];
    let eight = warp::Tile::<8>::this();
    let four = eight.part::<4>();
    let of_four = if eight.rank() < 4 {
        four.reduce(value, u32::wrapping_mul)
    } else {
        four.reduce(value, u32::wrapping_add)
    };
    let all = eight.reduce(of_four, u32::wrapping_add);
    if let Some(out) = out.thread_mut() {
        *out = all;
    }
}

/// Groups that do different things at once: every other one all that there is, the others something else.
#[kernel]
pub fn groups_apart(x: &[u32], mut out: DisjointMut<[u32; 10]>) {
    let value = x[thread::global_id()];
    let tile = warp::Tile::<4>::this();
    let found = if tile.index().is_multiple_of(2) {
        of_tile::<4>(value)
    } else {
        [tile.reduce(value, u32::max); 10]
    };
    if let Some(out) = out.thread_mut() {
        *out = found;
    }
}

/// Reductions and prefixes of a block, one after the other through the same shared memory, of several sizes of values.
#[kernel]
pub fn block_results(
    x: &[u32],
    mut out: DisjointMut<[u32; 10], Blocks>,
    mut each: DisjointMut<[u32; 4]>,
) {
    let number = thread::number_in_block();
    let first = (thread::block_number() * thread::block_size()) as usize;
    let value = x[first + number as usize];
    let f = Affine {
        a: value | 1,
        b: value,
    };
    let all = block::reduce(f, Affine::then);
    let wide = block::reduce([u64::from(value) << 20, 1], |a, b| {
        [a[0] + b[0], a[1] + b[1]]
    });
    let floats = block::reduce([value as f32; 5], |a, b| {
        core::array::from_fn(|i| a[i].max(b[i]))
    });
    let last = block::broadcast(value, thread::block_size() - 1);
    let (even, every, some) = (
        block::count(value % 2 == 0),
        block::all(value < 1000),
        block::any(value == 5),
    );
    let prefix = block::scan(f, Affine::then);
    let before = block::scan_exclusive(f, Affine { a: 1, b: 0 }, Affine::then);
    let small = block::scan(value as u8, u8::wrapping_add);
    if let Some(each) = each.thread_mut() {
        *each = [prefix.a, prefix.b, before.b, small.into()];
    }
    if let Some(out) = out.thread_mut() {
        *out = [
            all.a,
            all.b,
            wide[0] as u32,
            (wide[0] >> 32) as u32,
            wide[1] as u32,
            floats[4] as u32,
            last,
            even,
            u32::from(every),
            u32::from(some),
        ];
    }
}

/// The same in blocks of any dimensions.
#[kernel]
pub fn block_sums_of_any(x: View3<u32>, mut out: DisjointMut<u32, Blocks>) {
    let index = thread::index3();
    let sum = block::sum(x.get(index.x(), index.y(), index.z()).copied().unwrap_or(0));
    if let Some(out) = out.thread_mut() {
        *out = sum;
    }
}

/// Atomics of floats: sums, least and greatest, in global memory, and sums in shared memory.
#[kernel]
pub fn float_atomics(x: &[f32], single: &[AtomicF32], double: &[AtomicF64], pairs: &[AtomicF16x2]) {
    let own = shared!(AtomicF64).atomics();
    let own_pair = shared!(AtomicF16x2).atomics();
    if thread::is_first_of_block() {
        own.store(0.0, Relaxed);
        own_pair.store(F16x2::default(), Relaxed);
    }
    thread::barrier();
    for x in thread::strided(x) {
        let pair = F16x2::new(F16::from_f32(*x), F16::from_f32(1.0));
        single[0].fetch_add(*x, Relaxed);
        single[1].fetch_min(*x, Relaxed);
        single[2].fetch_max(*x, AcqRel);
        single[3].fetch_sub(*x, AcqRel);
        double[1].fetch_min((*x).into(), Relaxed);
        double[2].fetch_max((*x).into(), AcqRel);
        pairs[1].fetch_min(pair, Relaxed);
        pairs[2].fetch_max(pair, Relaxed);
        own.fetch_add((*x).into(), Relaxed);
        own_pair.fetch_add(pair, AcqRel);
    }
    thread::barrier();
    if thread::is_first_of_block() {
        double[0].fetch_add(own.load(Relaxed), Relaxed);
        pairs[0].fetch_add(own_pair.load(Relaxed), Relaxed);
        single[4].swap(2.5, Relaxed);
        let _ = double[3].compare_exchange(0.0, 4.5, AcqRel, Relaxed);
    }
}

/// y = a · x + y for several types.
#[kernel(instances(f32, f64, u32))]
pub fn axpy<T>(a: T, x: &[T], mut y: DisjointMut<T>)
where
    T: Element + Parameter + core::ops::Mul<Output = T> + core::ops::Add<Output = T>,
{
    if let Some((x, y)) = thread::own((x, &mut y)) {
        *y = a * *x + *y;
    }
}

/// The sums of groups of a few lanes, for types and sizes.
#[kernel(name = "sums_of", max_threads = 64, instances(<u32, 4>, <i64, 32>, <[u16; 2], 2>))]
pub fn group_sums<T: Sum, const N: u32>(x: &[T], mut sums: DisjointMut<T>) {
    let own = x[thread::global_id()];
    let sum = warp::Tile::<N>::this().reduce(own, T::plus);
    if let Some(out) = sums.thread_mut() {
        *out = sum;
    }
}

/// What can be added, without a panic.
pub trait Sum: Element {
    /// The sum of two.
    fn plus(self, other: Self) -> Self;
}

impl Sum for u32 {
    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
}

impl Sum for i64 {
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
}

impl Sum for [u16; 2] {
    fn plus(self, other: [u16; 2]) -> [u16; 2] {
        core::array::from_fn(|i| self[i].wrapping_add(other[i]))
    }
}

/// Coefficients that the host fills.
#[device_static]
pub static COEFFICIENTS: [f32; 4];

/// A number that the host may change.
#[device_static]
static SCALE: u32 = 3;

/// Polynomials with coefficients of the module.
#[kernel]
pub fn polynomials(mut x: DisjointMut<f32>) {
    if let Some(x) = x.thread_mut() {
        let all = 0..COEFFICIENTS.len();
        let value = all.rev().fold(0.0, |sum, i| sum * *x + COEFFICIENTS.at(i));
        *x = value * SCALE.read() as f32;
    }
}

/// A structure that can be printed.
#[derive(Clone, Copy, Debug, Print)]
pub struct Label<'a> {
    /// A name.
    pub name: &'a str,
    at: Option<[u32; 2]>,
}

/// What has no names for its fields.
#[derive(Print)]
struct Wrapped(u8, char);

/// Prints texts, lists and structures; and a record that has no room.
#[kernel]
pub fn tell(x: &[u32]) {
    let i = thread::global_id();
    let names = ["zero", "one: \"ä\"", ""];
    let (name, part) = (names[i % 3], &x[..i.min(x.len())]);
    println!(
        "{i} {name:>6}|{name:?} {part:?} {:?} {:2x?}",
        x.get(i),
        [Some(i as u8); 2]
    );
    println!(
        "{:?} {:#?}",
        Wrapped(i as u8, 'ß'),
        Label {
            name,
            at: x.get(i).map(|x| [*x, 7])
        }
    );
    if i == 2 {
        println!("{:?}", &x[..]);
    }
}

/// What a warp finds behind indices that are checked, a panic with a message each: the steps that each lane took along
/// a list, which lanes took more than two, and what a scan by a table comes to.
#[kernel]
pub fn behind_checks(next: &[u32], table: &[u32], mut out: DisjointMut<[u32; 3]>) {
    let mut at = warp::lane();
    let mut steps = 0;
    while at != 0 {
        at = next[at as usize];
        steps += 1;
    }
    let many = warp::ballot(steps > 2);
    let scanned = warp::scan([warp::lane(); 10], |before, own| {
        core::array::from_fn(|i| {
            let factor = table[before[i] as usize % 4];
            before[i]
                .wrapping_mul(table[0])
                .wrapping_add(own[i].wrapping_mul(factor))
        })
    });
    if let Some(out) = out.thread_mut() {
        *out = [steps, many, scanned[9]];
    }
}
