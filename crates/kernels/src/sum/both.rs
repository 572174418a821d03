//! `y += A x` in both directions at once: undirected edges that are stored once.
//!
//! Sums of columns are float64: a hub is a column of every strip, and its millions of equal terms
//! would otherwise stop counting. Sums of rows are float32 and lie beside the rows' values, one
//! cache line for both: a row's columns never exceed it, so that even a hub, which is one of the
//! first rows, gets few terms here, each the sum of up to a few dozen arcs.

use bytemuck::Zeroable;
use tiergraph_format::tiles::LANES;

use super::{WIDTH, eight, groups, short_rows, tail};
use crate::Slice;
use crate::take::Visit;

/// A row's value and the sum of its neighbours' values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Zeroable)]
#[repr(C)]
pub struct RowState {
    /// The row's value, which is added to its columns.
    pub x: f32,
    /// The sum of the values of the row's columns.
    pub y: f32,
}

/// Vertex state that a tile of edges stored once reads and adds to.
#[derive(Debug)]
pub struct SymmetricState<'a> {
    /// The value of each column of the tile.
    pub x_columns: &'a [f32],
    /// The sum of each column of the tile.
    pub y_columns: &'a mut [f64],
    /// The state of 65,536 rows, of which the strip's are the first.
    pub rows: &'a mut [RowState],
}

/// Adds values along both directions of the arcs of every slice of a segment.
pub(crate) struct SumBoth<'a> {
    pub state: SymmetricState<'a>,
    /// Column minus row of a self-loop, as the slice has them; `None` if the segment has no diagonal.
    pub diagonal: Option<i64>,
}

impl Visit for SumBoth<'_> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        // SAFETY: `Kernel` took slices of the lengths that `walk` masks rows and columns below.
        unsafe {
            match short_rows(slice) {
                Some(1) => self.state.short::<1>(slice),
                Some(2) => self.state.short::<2>(slice),
                Some(3) => self.state.short::<3>(slice),
                Some(4) => self.state.short::<4>(slice),
                _ => self.state.long(slice),
            }
        }
        if let Some(diagonal) = self.diagonal {
            undo_loops(slice, &mut self.state, diagonal);
        }
    }
}

/// `rows[row].y += x_columns[column]` and `y_columns[column] += rows[row].x`.
///
/// # Safety
/// All rows are below the length of `rows`, all columns below those of the column slices.
impl SymmetricState<'_> {
    /// Rows of `N` arcs, one by one.
    #[inline(always)]
    unsafe fn short<const N: usize>(&mut self, slice: &Slice<'_>) {
        let Some(steps) = slice.columns.first_chunk::<N>() else { return };
        for (lane, &row) in slice.rows.iter().enumerate().take(usize::from(slice.active[0])) {
            // SAFETY: the caller's promise.
            unsafe {
                let row = self.rows.get_unchecked_mut(row as usize);
                let (own, mut sum) = (f64::from(row.x), 0.0);
                for step in steps {
                    let column = step[lane] as usize;
                    sum += self.x_columns.get_unchecked(column);
                    *self.y_columns.get_unchecked_mut(column) += own;
                }
                row.y += sum;
            }
        }
    }

    /// Rows of any length, in groups of eight.
    #[inline(always)]
    unsafe fn long(&mut self, slice: &Slice<'_>) {
        let (x, y) = (self.x_columns, &mut *self.y_columns);
        for group in groups(slice) {
            let rows = &slice.rows[group.lane..group.lane + group.lanes];
            let (mut sums, mut own) = ([0f32; WIDTH], [0f64; WIDTH]);
            // SAFETY: the caller's promise.
            unsafe {
                for (own, &row) in own.iter_mut().zip(rows) {
                    *own = f64::from(self.rows.get_unchecked(row as usize).x);
                }
                for step in &slice.columns[..group.common] {
                    let columns = eight(step, group.lane);
                    for i in 0..WIDTH {
                        sums[i] += x.get_unchecked(columns[i]);
                        *y.get_unchecked_mut(columns[i]) += own[i];
                    }
                }
                tail(slice, &group, |i, column| {
                    sums[i] += x.get_unchecked(column);
                    *y.get_unchecked_mut(column) += own[i];
                });
                for (sum, &row) in sums.iter().zip(rows) {
                    self.rows.get_unchecked_mut(row as usize).y += sum;
                }
            }
        }
    }
}

/// Takes back what was added twice: a self-loop, whose column is its row plus `diagonal`, counts
/// once. Columns never exceed rows, so it is at the end of its lane.
fn undo_loops(slice: &Slice<'_>, state: &mut SymmetricState<'_>, diagonal: i64) {
    let mut steps = slice.columns.len();
    for lane in 0..usize::from(slice.active[0]) {
        while steps > 0 && usize::from(slice.active[steps - 1]) <= lane {
            steps -= 1;
        }
        let row = slice.rows[lane];
        let is_loop = |step: &&[u32; LANES]| i64::from(step[lane]) == i64::from(row) + diagonal;
        for step in slice.columns[..steps].iter().rev().take_while(is_loop) {
            let own = state.rows[row as usize].x;
            state.y_columns[step[lane] as usize] -= f64::from(own);
        }
    }
}
