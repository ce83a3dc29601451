//! A radix sort of the keys of each block, four bits a turn.

use thisgpu_gpu::*;

const KEYS: usize = 256;
const BITS: u32 = 4;

#[kernel(max_threads = 256)]
pub fn sort_blocks(keys: &[u32], mut out: DisjointMut<u32>) {
    let [from, to] = [shared!([u32; KEYS]), shared!([u32; KEYS])];
    let starts = shared!([u32; 16]);
    let t = thread::index_x() as usize;
    from.set(t, keys[thread::global_id()]);
    for shift in (0..32).step_by(BITS as usize) {
        thread::barrier();
        let key = from.get(t);
        let digit = key >> shift & 15;
        let mut place = 0;
        for value in 0..16 {
            let is = digit == value;
            let before = block::scan_exclusive(u32::from(is), 0, |a, b| a + b);
            let count = block::count(is);
            if t == 0 {
                starts.set(value as usize, count);
            }
            if is {
                place = before;
            }
        }
        thread::barrier();
        let first: u32 = (0..digit as usize).map(|value| starts.get(value)).sum();
        to.set((first + place) as usize, key);
        thread::barrier();
        from.set(t, to.get(t));
    }
    if let Some(out) = out.thread_mut() {
        *out = from.get(t);
    }
}
