//! The game of life on a torus.

use thisgpu_gpu::*;

/// A generation.
#[kernel]
pub fn generation(cells: View2<u8>, mut next: DisjointMut<u8, Plane>) {
    let index = thread::index2();
    let Some(next) = next.get_mut(&index) else {
        return;
    };
    let (w, h) = (cells.width(), cells.height());
    let columns = [(index.x() + w - 1) % w, index.x(), (index.x() + 1) % w];
    let rows = [(index.y() + h - 1) % h, index.y(), (index.y() + 1) % h];
    let alive = rows.iter().flat_map(|y| columns.map(|x| *cells.at(x, *y)));
    let around = alive.sum::<u8>() - *cells.at(index.x(), index.y());
    *next = u8::from(matches!(
        (cells.at(index.x(), index.y()), around),
        (_, 3) | (1, 2)
    ));
}
