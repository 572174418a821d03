//! `y += A x` in both directions at once: undirected edges that are stored once.
//!
//! Sums of columns are float64: a hub is a column of every strip, and its millions of equal terms
//! would otherwise stop counting. Those of rows have two parts. What short lanes add is float32 and lies
//! beside the row's value, one cache line for both: the lanes of sparse tiles are short, and a row has few
//! in a tile. What long lanes add, of which a hub has many in each tile, is float64 and lies apart.
//!
//! Arcs of a sparse tile share few cache lines, and what they touch is mostly not in the nearest
//! caches. There slices wait until others are unpacked, of the same segment or of those after it:
//! what they touch comes from memory meanwhile.

use bytemuck::Zeroable;
use tiergraph_core::Result;
use tiergraph_format::tiles::{LANES, STRIP_ROWS, TileOptions};
use tiergraph_mem::{Array, prefetch};

use super::{SHORT, WIDTH, eight, groups, short_rows, tail};
use crate::Slice;
use crate::take::Visit;

/// A row's value, and the sum of what its short lanes add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Zeroable)]
#[repr(C)]
struct RowState {
    x: f32,
    short: f32,
}

/// So many rows share a mark that one of them has a sum of long lanes.
const MARKED: usize = 64;

/// A lane is long if it has more arcs than one in so many of those that a lane has room for. A row with more arcs than
/// that has mostly long lanes.
const LONG: usize = 8;

/// The arcs of the longest lanes that are short, in tiles of `options`.
pub(crate) fn most_of_short(options: &TileOptions) -> usize {
    options.max_row_arcs() / LONG
}

/// The values of a strip's rows, which are added to columns, and the sums of the values of their columns.
///
/// A short lane's sum is added in float32. Of values that are not negative the sum of a row is then off by at
/// most 2^-24 of it for each short lane that the row has, a few for each segment.
#[derive(Debug)]
pub struct SymmetricStrip {
    /// 65,536 rows.
    rows: Array<RowState>,
    /// For each row the sum of what its long lanes add.
    long: Array<f64>,
    /// For each [`MARKED`] rows, whether one of them has such a sum.
    has_long: [bool; STRIP_ROWS / MARKED],
}

impl SymmetricStrip {
    /// Bytes of memory that a row takes.
    pub const ROW_BYTES: usize = size_of::<RowState>() + size_of::<f64>();

    /// So many strips without rows.
    ///
    /// # Errors
    /// The system has no such amount of memory.
    pub fn batch(count: usize) -> Result<Vec<Self>> {
        let (rows, long) = (Array::batch(count, STRIP_ROWS)?, Array::batch(count, STRIP_ROWS)?);
        let make = |(rows, long)| Self { rows, long, has_long: [false; _] };
        Ok(rows.into_iter().zip(long).map(make).collect())
    }

    /// Makes this a strip of rows with the values `x`, whose sums are 0.
    ///
    /// # Panics
    /// If there are more than 65,536.
    pub fn begin(&mut self, x: &[f32]) {
        let (rows, padding) = self.rows.split_at_mut(x.len());
        rows.iter_mut().zip(x).for_each(|(row, &x)| *row = RowState { x, short: 0.0 });
        // Slices are padded with rows that the strip does not have.
        padding.fill(RowState::default());
        for (long, has_long) in self.long.chunks_mut(MARKED).zip(&mut self.has_long) {
            if std::mem::take(has_long) {
                long.fill(0.0);
            }
        }
    }

    /// The sums of the first `rows` rows.
    ///
    /// # Panics
    /// If there are more than 65,536.
    pub fn sums(&self, rows: usize) -> impl ExactSizeIterator<Item = f64> {
        self.rows[..rows].iter().enumerate().map(|(row, state)| {
            let long = if self.has_long[row / MARKED] { self.long[row] } else { 0.0 };
            f64::from(state.short) + long
        })
    }
}

impl AsMut<Self> for SymmetricStrip {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Vertex state that tiles of edges stored once read and add to: tiles of the same columns.
#[derive(Debug)]
pub struct SymmetricState<'a, S> {
    /// The value of each column of the tiles.
    pub x_columns: &'a [f32],
    /// The sum of each column of the tiles.
    pub y_columns: &'a mut [f64],
    /// The strips, each with a [`SymmetricStrip`].
    pub strips: &'a mut [S],
}

/// A segment's strip, and what else its slices need to be summed.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The index of the segment's strip in [`SymmetricState::strips`].
    pub strip: usize,
    /// Column minus row of a self-loop, as slices have them; `None` if the segment has no diagonal.
    pub diagonal: Option<i64>,
    /// Whether the arcs are so few that they share few cache lines.
    pub is_sparse: bool,
}

/// Adds values along both directions of the arcs of every slice of some segments.
pub(crate) struct SumBoth<'a, S> {
    state: SymmetricState<'a, S>,
    /// The arcs of the longest lanes that are short.
    most_of_short: usize,
    /// The place of the segment whose slices come.
    place: Place,
    /// A ring of slices.
    waiting: [Waiting; MOST_WAITING],
    /// The index of the slice that has waited longest.
    oldest: usize,
    /// The number of slices that wait.
    count: usize,
    /// The number of arcs of the slices that wait.
    arcs: usize,
}

/// So many slices wait at most: segments that are nearly empty have slices of a few lanes.
const MOST_WAITING: usize = 4;
/// Slices wait with other slices while they have at most so many arcs, each of which touches three cache lines:
/// a part of the first cache.
const MOST_ARCS: usize = 64;

/// A slice of short rows that is summed later.
#[derive(Clone, Copy)]
struct Waiting {
    place: Place,
    rows: [u32; LANES],
    columns: [[u32; LANES]; SHORT],
    active: [u8; SHORT],
    steps: usize,
}

impl<'a, S: AsMut<SymmetricStrip>> SumBoth<'a, S> {
    /// `state` has columns of the length that `walk` masks columns below.
    pub(crate) fn new(state: SymmetricState<'a, S>, most_of_short: usize) -> Self {
        let place = Place { strip: 0, diagonal: None, is_sparse: false };
        let (rows, columns) = ([0; LANES], [[0; LANES]; SHORT]);
        let waiting = Waiting { place, rows, columns, active: [0; SHORT], steps: 0 };
        let waiting = [waiting; MOST_WAITING];
        Self { state, most_of_short, place, waiting, oldest: 0, count: 0, arcs: 0 }
    }

    /// The slices that come are those of the segment at `place`.
    pub(crate) fn move_to(&mut self, place: Place) {
        self.place = place;
    }

    /// Sums the slices that wait.
    pub(crate) fn finish(&mut self) {
        while self.count > 0 {
            self.sum_oldest();
        }
    }

    /// Sums the slice that has waited longest.
    #[inline(always)]
    fn sum_oldest(&mut self) {
        let Waiting { place, ref rows, ref columns, ref active, steps } = self.waiting[self.oldest];
        let (columns, active) = (&columns[..steps], &active[..steps]);
        let slice = Slice { rows, columns, active, weights: &[], weight_bytes: 0 };
        sum(&mut self.state, place, self.most_of_short, &slice);
        self.arcs -= arcs(&slice);
        self.oldest = (self.oldest + 1) % MOST_WAITING;
        self.count -= 1;
    }

    /// Prefetches what `slice` touches, and has it wait.
    #[inline(always)]
    fn defer(&mut self, slice: &Slice<'_>) {
        let lanes = usize::from(slice.active[0]);
        let rows = &self.state.strips[self.place.strip].as_mut().rows;
        slice.rows[..lanes].iter().for_each(|&row| prefetch(rows, row as usize));
        for &column in slice.columns.iter().flat_map(|step| &step[..lanes]) {
            prefetch(self.state.x_columns, column as usize);
            prefetch(self.state.y_columns, column as usize);
        }
        self.arcs += arcs(slice);
        while self.count == MOST_WAITING || self.count > 0 && self.arcs > MOST_ARCS {
            self.sum_oldest();
        }
        let steps = slice.columns.len();
        let waiting = &mut self.waiting[(self.oldest + self.count) % MOST_WAITING];
        self.count += 1;
        waiting.rows = *slice.rows;
        waiting.columns[..steps].copy_from_slice(slice.columns);
        waiting.active[..steps].copy_from_slice(slice.active);
        (waiting.place, waiting.steps) = (self.place, steps);
    }
}

/// The arcs of a slice of rows that have as many each.
#[inline(always)]
fn arcs(slice: &Slice<'_>) -> usize {
    slice.columns.len() * usize::from(slice.active[0])
}

impl<S: AsMut<SymmetricStrip>> Visit for &mut SumBoth<'_, S> {
    #[inline(never)]
    fn slice(&mut self, slice: &Slice<'_>) {
        if self.place.is_sparse && short_rows(slice).is_some() {
            self.defer(slice);
        } else {
            sum(&mut self.state, self.place, self.most_of_short, slice);
        }
    }
}

/// Adds the values of a slice's arcs, both ways.
#[inline(always)]
fn sum<S: AsMut<SymmetricStrip>>(
    state: &mut SymmetricState<'_, S>,
    place: Place,
    most_of_short: usize,
    slice: &Slice<'_>,
) {
    let SymmetricStrip { rows, long, has_long } = state.strips[place.strip].as_mut();
    let (rows, long) = (&mut rows[..STRIP_ROWS], &mut long[..STRIP_ROWS]);
    let (x_columns, y_columns) = (state.x_columns, &mut *state.y_columns);
    let mut state = OfStrip { x_columns, y_columns, rows, long, has_long };
    // SAFETY: `Kernel` took columns of the length that `walk` masks columns below, and `rows` are as many as it masks
    // rows below.
    unsafe {
        match short_rows(slice) {
            _ if slice.columns.len() > most_of_short => state.by_eight::<true>(slice),
            Some(1) => state.short::<1>(slice),
            Some(2) => state.short::<2>(slice),
            Some(3) => state.short::<3>(slice),
            Some(4) => state.short::<4>(slice),
            _ => state.by_eight::<false>(slice),
        }
    }
    if let Some(diagonal) = place.diagonal {
        undo_loops(slice, &mut state, diagonal);
    }
}

/// [`SymmetricState`] with the rows of one strip.
struct OfStrip<'a> {
    x_columns: &'a [f32],
    y_columns: &'a mut [f64],
    rows: &'a mut [RowState],
    long: &'a mut [f64],
    has_long: &'a mut [bool; STRIP_ROWS / MARKED],
}

/// Adds `x_columns[column]` to the row's sum, and `rows[row].x` to `y_columns[column]`.
///
/// # Safety
/// All rows are below the length of `rows`, all columns below those of the column slices.
impl OfStrip<'_> {
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
                row.short += sum;
            }
        }
    }

    /// Rows of any length, in groups of eight; their sums go apart if the lanes are `LONG`.
    #[inline(always)]
    unsafe fn by_eight<const LONG: bool>(&mut self, slice: &Slice<'_>) {
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
                    if LONG {
                        *self.long.get_unchecked_mut(row as usize) += f64::from(*sum);
                        *self.has_long.get_unchecked_mut(row as usize / MARKED) = true;
                    } else {
                        self.rows.get_unchecked_mut(row as usize).short += sum;
                    }
                }
            }
        }
    }
}

/// Takes back what was added twice: a self-loop, whose column is its row plus `diagonal`, counts
/// once. Columns never exceed rows, so it is at the end of its lane.
fn undo_loops(slice: &Slice<'_>, state: &mut OfStrip<'_>, diagonal: i64) {
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
