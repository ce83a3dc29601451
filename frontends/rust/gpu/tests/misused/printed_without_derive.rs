use thisgpu_gpu::{kernel, println, thread};

struct Point(u32);

#[kernel]
pub fn k() {
    println!("{:?}", Point(thread::index_x()));
}

fn main() {}
