//! `y += A x` over a slice: sums of rows, and both directions at once.
//!
//! Rows of at most [`SHORT`] arcs go one by one, longer ones eight lanes at a time, each with a
//! scalar accumulator: a load of the column and a load-and-add an arc. Where hardware gathers are
//! fast (`gathers`), sums of rows alone are made by these instead, while columns are still in
//! registers. `examples/tiles_speed.rs` measures them.

mod both;
mod rows;

use tiergraph_format::tiles::LANES;

use crate::Slice;

pub use both::{SymmetricState, SymmetricStrip};

pub(crate) use both::{Place, SumBoth, most_of_short};
pub(crate) use rows::{GatherRows, InOrder, OfRows, SumRows, Sums};

/// Rows of up to so many arcs have loops of their own: what a group of eight needs before its first
/// arc would take longer than the arcs.
const SHORT: usize = 4;

/// How many arcs each row of a slice has, if all have as many and at most [`SHORT`].
#[inline(always)]
fn short_rows(slice: &Slice<'_>) -> Option<usize> {
    let len = slice.columns.len();
    (len <= SHORT && slice.active.first() == slice.active.last()).then_some(len)
}

/// How many lanes are summed together: their sums and values stay in registers.
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

/// The columns of a group's eight lanes in a step.
#[inline(always)]
fn eight(step: &[u32; LANES], lane: usize) -> [usize; WIDTH] {
    std::array::from_fn(|i| step[(lane + i) % LANES] as usize)
}
