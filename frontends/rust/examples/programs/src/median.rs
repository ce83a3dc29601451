//! An image filter: the median of the pixels around each.

use thisgpu_gpu::*;

#[kernel]
pub fn median(image: View2<u8>, mut out: DisjointMut<u8, Plane>) {
    let index = thread::index2();
    let Some(out) = out.get_mut(&index) else {
        return;
    };
    let (w, h) = (image.width() as isize, image.height() as isize);
    let mut around = [0u8; 9];
    let near = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)));
    for (slot, (dx, dy)) in around.iter_mut().zip(near) {
        let x = (index.x() as isize + dx).clamp(0, w - 1) as usize;
        let y = (index.y() as isize + dy).clamp(0, h - 1) as usize;
        *slot = *image.at(x, y);
    }
    around.sort_unstable();
    *out = around[4];
}
