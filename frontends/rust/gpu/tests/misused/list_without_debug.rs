use thisgpu_gpu::{kernel, println};

#[kernel]
pub fn k(x: &[u32]) {
    println!("{}", x);
}

fn main() {}
