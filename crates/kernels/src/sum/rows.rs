//! `y += A x`: a pull over directed arcs.
//!
//! A lane's few dozen values are added in float32, everything above that in float64: a hub's
//! millions of equal terms would otherwise stop counting.

use super::{WIDTH, eight, groups, short_rows, tail};
use crate::Slice;
use crate::single::Single;
use crate::walk::Visit;

/// Sums of rows, for every slice of a segment.
pub(crate) struct SumRows<'a> {
    /// A value for each column of the tile.
    pub x: &'a [f32],
    /// A sum for each of 65,536 rows.
    pub y: &'a mut [f64],
}

impl Visit for SumRows<'_> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        // SAFETY: `Kernel` took slices of the lengths that `walk` masks rows and columns below.
        unsafe {
            match short_rows(slice) {
                Some(1) => self.short::<1>(slice),
                Some(2) => self.short::<2>(slice),
                Some(3) => self.short::<3>(slice),
                Some(4) => self.short::<4>(slice),
                _ => self.long(slice),
            }
        }
    }
}

/// `y[row] += Σ x[column]`.
///
/// # Safety
/// All rows are below `y.len()`, all columns below `x.len()`.
impl SumRows<'_> {
    /// Rows of `N` arcs, one by one.
    #[inline(always)]
    unsafe fn short<const N: usize>(&mut self, slice: &Slice<'_>) {
        let Some(steps) = slice.columns.first_chunk::<N>() else { return };
        for (lane, &row) in slice.rows.iter().enumerate().take(usize::from(slice.active[0])) {
            // SAFETY: the caller's promise.
            unsafe {
                let sum: f32 = steps.iter().map(|s| self.x.get_unchecked(s[lane] as usize)).sum();
                *self.y.get_unchecked_mut(row as usize) += f64::from(sum);
            }
        }
    }

    /// Rows of any length, in groups of eight.
    #[inline(always)]
    unsafe fn long(&mut self, slice: &Slice<'_>) {
        let (x, y) = (self.x, &mut *self.y);
        for group in groups(slice) {
            let mut sums = [Single::new(0.0); WIDTH];
            // SAFETY: the caller's promise.
            unsafe {
                for step in &slice.columns[..group.common] {
                    let columns = eight(step, group.lane);
                    for i in 0..WIDTH {
                        sums[i].add(x.get_unchecked(columns[i]));
                    }
                }
                let mut sums = sums.map(Single::get);
                tail(slice, &group, |i, column| sums[i] += x.get_unchecked(column));
                for (sum, &row) in sums[..group.lanes].iter().zip(&slice.rows[group.lane..]) {
                    *y.get_unchecked_mut(row as usize) += f64::from(*sum);
                }
            }
        }
    }
}
