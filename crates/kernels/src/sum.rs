//! `y += A x` over a slice: sums of rows, and both directions at once.
//!
//! Eight lanes at a time, each with a scalar accumulator: a load of the column and a load-and-add
//! an arc. No hardware gathers: they can be slow where microcode guards against Gather Data
//! Sampling, and the loops run alike everywhere. `examples/tiles_speed.rs` measures them.
//!
//! A lane's few dozen values are added in float32, everything above that in float64: a hub's
//! millions of equal terms would otherwise stop counting.

use tiergraph_format::tiles::LANES;

use crate::walk::Visit;
use crate::{Slice, SymmetricState};

/// Lanes that are summed together: their sums and values stay in registers.
const WIDTH: usize = 8;

/// Up to eight neighbouring lanes of a slice.
struct Group {
    /// The first lane.
    lane: usize,
    lanes: usize,
    /// The first steps, in which all eight have an arc.
    common: usize,
}

#[inline(always)]
fn groups(slice: &Slice<'_>) -> impl Iterator<Item = Group> {
    let full = usize::from(slice.active[0]);
    let mut common = slice.columns.len();
    (0..full).step_by(WIDTH).map(move |lane| {
        while common > 0 && usize::from(slice.active[common - 1]) < lane + WIDTH {
            common -= 1;
        }
        Group { lane, lanes: WIDTH.min(full - lane), common }
    })
}

/// Calls `arc(lane in the group, column)` for the arcs after the common steps.
#[inline(always)]
fn tail(slice: &Slice<'_>, group: &Group, mut arc: impl FnMut(usize, usize)) {
    let from = group.common;
    for (step, &active) in slice.columns[from..].iter().zip(&slice.active[from..]) {
        let lanes = usize::from(active).saturating_sub(group.lane).min(WIDTH);
        if lanes == 0 {
            break;
        }
        for (i, &column) in step[group.lane..][..lanes].iter().enumerate() {
            arc(i, column as usize);
        }
    }
}

/// A float in a register of its own. Left to itself the compiler packs sums of different lanes into
/// vectors, and then shuffles every loaded value into place.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Single(std::arch::x86_64::__m128);

#[cfg(target_arch = "x86_64")]
impl Single {
    #[inline(always)]
    fn new(value: f32) -> Self {
        // SAFETY: SSE is part of x86-64.
        Self(unsafe { std::arch::x86_64::_mm_set_ss(value) })
    }

    #[inline(always)]
    fn add(&mut self, value: &f32) {
        use std::arch::x86_64::{_mm_add_ss, _mm_load_ss};
        // SAFETY: SSE is part of x86-64; a reference may be read.
        self.0 = unsafe { _mm_add_ss(self.0, _mm_load_ss(value)) };
    }

    #[inline(always)]
    fn get(self) -> f32 {
        // SAFETY: SSE is part of x86-64.
        unsafe { std::arch::x86_64::_mm_cvtss_f32(self.0) }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy)]
struct Single(f32);

#[cfg(not(target_arch = "x86_64"))]
impl Single {
    #[inline(always)]
    fn new(value: f32) -> Self {
        Self(value)
    }

    #[inline(always)]
    fn add(&mut self, value: &f32) {
        self.0 += value;
    }

    #[inline(always)]
    fn get(self) -> f32 {
        self.0
    }
}

/// The columns of a group's eight lanes in a step.
#[inline(always)]
fn eight(step: &[u32; LANES], lane: usize) -> [usize; WIDTH] {
    std::array::from_fn(|i| step[(lane + i) % LANES] as usize)
}

/// `y[row] += Σ x[column]`.
///
/// # Safety
/// All rows are below `y.len()`, all columns below `x.len()`.
#[inline(always)]
pub(crate) unsafe fn rows(slice: &Slice<'_>, x: &[f32], y: &mut [f64]) {
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

/// `y_rows[row] += x_columns[column]` and `y_columns[column] += x_rows[row]`.
///
/// # Safety
/// All rows are below the lengths of the row slices, all columns below those of the column slices.
#[inline(always)]
pub(crate) unsafe fn both(slice: &Slice<'_>, state: &mut SymmetricState<'_>) {
    let (x, y) = (state.x_columns, &mut *state.y_columns);
    for group in groups(slice) {
        let rows = &slice.rows[group.lane..group.lane + group.lanes];
        let (mut sums, mut own) = ([0f32; WIDTH], [0f64; WIDTH]);
        // SAFETY: the caller's promise.
        unsafe {
            for (own, &row) in own.iter_mut().zip(rows) {
                *own = f64::from(*state.x_rows.get_unchecked(row as usize));
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
                *state.y_rows.get_unchecked_mut(row as usize) += f64::from(*sum);
            }
        }
    }
}

/// [`rows`] for every slice of a segment.
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
        unsafe { rows(slice, self.x, self.y) }
    }
}

/// [`both`] for every slice of a segment.
pub(crate) struct SumBoth<'a> {
    pub state: SymmetricState<'a>,
    /// Where the segment meets the diagonal: column minus row of a self-loop.
    pub diagonal: Option<i64>,
}

impl Visit for SumBoth<'_> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        // SAFETY: as in `SumRows`, for all four slices.
        unsafe { both(slice, &mut self.state) };
        if let Some(diagonal) = self.diagonal {
            undo_loops(slice, &mut self.state, diagonal);
        }
    }
}

/// Takes back what [`both`] added twice: a self-loop, whose column is its row plus `diagonal`,
/// counts once. Columns never exceed rows, so it is at the end of its lane.
pub(crate) fn undo_loops(slice: &Slice<'_>, state: &mut SymmetricState<'_>, diagonal: i64) {
    let mut steps = slice.columns.len();
    for lane in 0..usize::from(slice.active[0]) {
        while steps > 0 && usize::from(slice.active[steps - 1]) <= lane {
            steps -= 1;
        }
        let row = slice.rows[lane];
        let is_loop = |step: &&[u32; LANES]| i64::from(step[lane]) == i64::from(row) + diagonal;
        for step in slice.columns[..steps].iter().rev().take_while(is_loop) {
            state.y_columns[step[lane] as usize] -= f64::from(state.x_rows[row as usize]);
        }
    }
}
