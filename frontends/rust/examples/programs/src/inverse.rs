//! Inverses of small matrices by Gauss and Jordan, with pivots.

use thisgpu_gpu::*;

struct Matrix<const N: usize>([[f64; N]; N]);

impl<const N: usize> Matrix<N> {
    fn identity() -> Self {
        Matrix(core::array::from_fn(|y| {
            core::array::from_fn(|x| f64::from(u8::from(x == y)))
        }))
    }

    /// None if there is none.
    fn inverse(mut self) -> Option<Self> {
        let mut result = Self::identity();
        for column in 0..N {
            let pivot = (column..N).max_by(|a, b| {
                self.0[*a][column]
                    .abs()
                    .total_cmp(&self.0[*b][column].abs())
            })?;
            if self.0[pivot][column].abs() < 1e-9 {
                return None;
            }
            self.0.swap(column, pivot);
            result.0.swap(column, pivot);
            let by = self.0[column][column];
            for value in self.0[column].iter_mut().chain(&mut result.0[column]) {
                *value /= by;
            }
            for row in (0..N).filter(|row| *row != column) {
                let by = self.0[row][column];
                for x in 0..N {
                    self.0[row][x] -= by * self.0[column][x];
                    result.0[row][x] -= by * result.0[column][x];
                }
            }
        }
        Some(result)
    }
}

/// The inverse of each matrix of five rows, row after row; zeros if it has none.
#[kernel]
pub fn inverses(matrices: &[[[f64; 5]; 5]], mut out: DisjointMut<[[f64; 5]; 5]>) {
    if let Some((matrix, out)) = thread::own((matrices, &mut out)) {
        *out = Matrix(*matrix)
            .inverse()
            .map_or([[0.0; 5]; 5], |inverse| inverse.0);
    }
}
