//! Matrices, which are their columns one behind the other.

use super::values::Lanes;
use super::{Result, Translator};
use crate::error::invalid;
use crate::mistakes::{Mistake, planted};
use cranelift_codegen::ir;
use cranelift_codegen::ir::InstBuilder;
use naga::{Scalar, TypeInner};

/// A matrix by its lanes.
#[derive(Clone, Copy)]
struct Matrix<'v> {
    lanes: &'v [ir::Value],
    columns: usize,
    rows: usize,
}

impl Matrix<'_> {
    fn at(&self, column: usize, row: usize) -> ir::Value {
        self.lanes[column * self.rows + row]
    }
}

/// A matrix, or a vector as the matrix of one column, if it has so many lanes.
fn matrix<'v>(inner: &TypeInner, lanes: &'v [ir::Value], is_left: bool) -> Option<Matrix<'v>> {
    let (columns, rows) = match *inner {
        TypeInner::Matrix { columns, rows, .. } => {
            (u32::from(columns) as usize, u32::from(rows) as usize)
        }
        // A vector on the left is a row.
        TypeInner::Vector { size, .. } if is_left => (u32::from(size) as usize, 1),
        TypeInner::Vector { size, .. } => (1, u32::from(size) as usize),
        _ => return None,
    };
    (lanes.len() == columns * rows).then_some(Matrix {
        lanes,
        columns,
        rows,
    })
}

impl Translator<'_, '_, '_> {
    /// A product with a matrix in it.
    pub(super) fn matrix_product(
        &mut self,
        left_inner: &TypeInner,
        left: &[ir::Value],
        right_inner: &TypeInner,
        right: &[ir::Value],
    ) -> Result<Lanes> {
        if let [factor] = *left {
            return Ok(right
                .iter()
                .map(|&lane| self.builder.ins().fmul(factor, lane))
                .collect());
        }
        if let [factor] = *right {
            return Ok(left
                .iter()
                .map(|&lane| self.builder.ins().fmul(lane, factor))
                .collect());
        }
        let left = matrix(left_inner, left, !planted(Mistake::RowVector));
        let right = matrix(right_inner, right, false);
        let (Some(left), Some(right)) = (left, right) else {
            return Err(invalid("a product of matrices that are none"));
        };
        if left.columns != right.rows {
            return Err(invalid("a product of matrices that do not fit"));
        }
        let mut lanes = Vec::with_capacity(left.rows * right.columns);
        for column in 0..right.columns {
            for row in 0..left.rows {
                let mut sum = self
                    .builder
                    .ins()
                    .fmul(left.at(0, row), right.at(column, 0));
                for inner in 1..left.columns {
                    let product =
                        (self.builder.ins()).fmul(left.at(inner, row), right.at(column, inner));
                    sum = self.builder.ins().fadd(sum, product);
                }
                lanes.push(sum);
            }
        }
        Ok(lanes)
    }

    /// A matrix with rows and columns exchanged.
    pub(super) fn transposed(&mut self, inner: &TypeInner, lanes: &[ir::Value]) -> Result<Lanes> {
        let matrix =
            matrix(inner, lanes, false).ok_or_else(|| invalid("no matrix to transpose"))?;
        let places =
            (0..matrix.rows).flat_map(|row| (0..matrix.columns).map(move |column| (column, row)));
        Ok(places.map(|(column, row)| matrix.at(column, row)).collect())
    }

    /// The product of a column and a row.
    pub(super) fn outer(&mut self, column: &[ir::Value], row: &[ir::Value]) -> Lanes {
        let mut lanes = Vec::with_capacity(column.len() * row.len());
        for &factor in row {
            for &lane in column {
                lanes.push(self.builder.ins().fmul(lane, factor));
            }
        }
        lanes
    }

    /// The determinant of a square matrix.
    pub(super) fn determinant(&mut self, lanes: &[ir::Value]) -> Result<ir::Value> {
        let size = side(lanes)?;
        let columns: Vec<usize> = (0..size).collect();
        let rows = columns.clone();
        Ok(self.minor(lanes, size, &columns, &rows))
    }

    /// The determinant of some columns and rows, by the first of the columns.
    fn minor(
        &mut self,
        lanes: &[ir::Value],
        size: usize,
        columns: &[usize],
        rows: &[usize],
    ) -> ir::Value {
        let at = |column: usize, row: usize| lanes[column * size + row];
        if let ([a, b], [c, d]) = (columns, rows) {
            let main = self.builder.ins().fmul(at(*a, *c), at(*b, *d));
            let other = self.builder.ins().fmul(at(*b, *c), at(*a, *d));
            return self.builder.ins().fsub(main, other);
        }
        let (column, others) = (columns[0], &columns[1..]);
        if others.is_empty() {
            return at(column, rows[0]);
        }
        let mut sum = None;
        for (number, &row) in rows.iter().enumerate() {
            let rest: Vec<_> = rows.iter().copied().filter(|&other| other != row).collect();
            let minor = self.minor(lanes, size, others, &rest);
            let product = self.builder.ins().fmul(at(column, row), minor);
            sum = Some(match sum {
                None => product,
                Some(sum) if number % 2 == 1 => self.builder.ins().fsub(sum, product),
                Some(sum) => self.builder.ins().fadd(sum, product),
            });
        }
        // There is at least one row.
        sum.unwrap_or_else(|| at(column, 0))
    }

    /// The inverse of a square matrix: its adjugate divided by its determinant.
    pub(super) fn inverse(&mut self, scalar: Scalar, lanes: &[ir::Value]) -> Result<Lanes> {
        let size = side(lanes)?;
        let determinant = self.determinant(lanes)?;
        let one = self.float_constant(scalar, 1.0)?;
        let factor = self.builder.ins().fdiv(one, determinant);
        let mut inverse = Vec::with_capacity(lanes.len());
        for column in 0..size {
            for row in 0..size {
                // The minor without the row `column` and the column `row`.
                let columns: Vec<_> = (0..size).filter(|&other| other != row).collect();
                let rows: Vec<_> = (0..size).filter(|&other| other != column).collect();
                let minor = self.minor(lanes, size, &columns, &rows);
                let minor = match (column + row) % 2 {
                    1 => self.builder.ins().fneg(minor),
                    _ => minor,
                };
                inverse.push(self.builder.ins().fmul(minor, factor));
            }
        }
        Ok(inverse)
    }
}

/// Rows and columns of a square matrix.
fn side(lanes: &[ir::Value]) -> Result<usize> {
    match lanes.len() {
        4 => Ok(2),
        9 => Ok(3),
        16 => Ok(4),
        _ => Err(invalid("a matrix that is not square")),
    }
}
