//! Decoded arcs, of tiles or of raw blocks, behind one interface.

use tiergraph_core::{Error, ErrorKind, Result};
use tiergraph_format::raw::WeightSlice;
use tiergraph_format::tiles::{LANES, Segment, TilesIndex};
use tiergraph_graph::{Direction, Graph, NextPass, SegmentRun, TileSelection};
use tiergraph_kernels::{MAX_STEPS, Slice};

/// A group of arcs that a pass has decoded: column → row (source → destination).
pub(crate) enum Arcs<'a> {
    /// A slice of a tile, of the segment that begins at `place`: a block, and a byte in it.
    Tile { place: (u32, u32), row_base: u32, column_base: u32, slice: &'a Slice<'a> },
    /// A vertex's in-neighbours.
    Row { row: u32, columns: &'a [u32], weights: WeightSlice<'a> },
}

/// The arcs of a group that lead to one row: their columns, and their weights (1 in a graph without).
pub(crate) enum RowArcs<'a> {
    /// A lane of a slice, and for each step how many arcs of the slice come before it.
    Lane { column_base: u32, slice: &'a Slice<'a>, lane: usize, before: &'a [usize] },
    /// A list of columns.
    List { columns: &'a [u32], weights: WeightSlice<'a> },
}

/// The counts of arcs before each step in a file without weights, where they are not used.
static NO_WEIGHTS: [usize; MAX_STEPS] = [0; MAX_STEPS];

/// For each step, how many arcs come before it.
fn count_before(active: &[u8], before: &mut [usize; MAX_STEPS]) {
    let mut arcs = 0;
    for (before, &active) in before.iter_mut().zip(active) {
        *before = arcs;
        arcs += usize::from(active);
    }
}

impl Arcs<'_> {
    /// Calls `visit` for each row, with its arcs.
    #[inline(always)]
    pub(crate) fn rows(&self, mut visit: impl FnMut(u32, &RowArcs<'_>)) {
        match *self {
            Self::Tile { row_base, column_base, slice, .. } => {
                let mut counted = [0; MAX_STEPS];
                let before = match slice.weight_bytes {
                    0 => &NO_WEIGHTS,
                    _ => {
                        count_before(slice.active, &mut counted);
                        &counted
                    }
                };
                for lane in 0..usize::from(slice.active[0]) {
                    let arcs = RowArcs::Lane { column_base, slice, lane, before };
                    visit(row_base + slice.rows[lane], &arcs);
                }
            }
            Self::Row { row, columns, weights } => visit(row, &RowArcs::List { columns, weights }),
        }
    }
}

impl RowArcs<'_> {
    /// Calls `visit(column)` for each arc until it returns false.
    #[inline(always)]
    pub(crate) fn columns(&self, mut visit: impl FnMut(u32) -> bool) {
        self.each::<false>(&mut |column, _| visit(column));
    }

    /// Calls `visit(column, weight)` for each arc.
    #[inline(always)]
    pub(crate) fn weighted(&self, mut visit: impl FnMut(u32, f64)) {
        self.each::<true>(&mut |column, weight| {
            visit(column, weight);
            true
        });
    }

    /// Shows each arc to `visit` until that wants no more, with its weight or, not `WEIGHTED`, with 1.
    #[inline(always)]
    pub(crate) fn each<const WEIGHTED: bool>(&self, visit: &mut impl VisitArc) {
        match *self {
            Self::Lane { column_base, slice, lane, before } => {
                for ((step, &active), before) in slice.columns.iter().zip(slice.active).zip(before)
                {
                    let column = column_base + step[lane % LANES];
                    if usize::from(active) <= lane {
                        return;
                    }
                    let weight = if WEIGHTED { slice.weight(before + lane) } else { 1.0 };
                    if !visit.arc(column, weight) {
                        return;
                    }
                }
            }
            Self::List { columns, weights } => {
                for (i, &column) in columns.iter().enumerate() {
                    if !visit.arc(column, if WEIGHTED { weights.get(i) } else { 1.0 }) {
                        return;
                    }
                }
            }
        }
    }
}

/// What is shown arcs: a closure, or a type whose `arc` is always inlined.
pub(crate) trait VisitArc {
    /// Looks at an arc; returns whether it wants more.
    fn arc(&mut self, column: u32, weight: f64) -> bool;
}

impl<F: FnMut(u32, f64) -> bool> VisitArc for F {
    #[inline(always)]
    fn arc(&mut self, column: u32, weight: f64) -> bool {
        self(column, weight)
    }
}

/// Whether undirected edges are stored once, so that a visitor must look at each both ways.
pub(crate) fn stored_once(graph: &Graph) -> bool {
    graph.manifest().tiles.is_some_and(|t| t.stored_once)
}

/// Hands every arc of the selected tiles, or of all raw blocks, to `visit`. Each worker has a state that
/// `begin` makes of its number, and `end` takes when the worker's arcs are done.
pub(crate) fn for_each_arc<W>(
    graph: &Graph,
    selection: &TileSelection,
    begin: impl Fn(usize) -> W + Sync,
    visit: impl Fn(&mut W, &Arcs<'_>) + Sync,
    end: impl Fn(W) -> Result<()> + Sync,
) -> Result<()> {
    let Some(kernel) = graph.tiles().kernel() else {
        let one = |w: &mut W, row: &tiergraph_graph::RawRow<'_>| {
            let (columns, weights) = (row.neighbors, row.weights);
            visit(w, &Arcs::Row { row: row.vertex as u32, columns, weights });
            Ok(())
        };
        return graph.raw(Direction::In).pass(NextPass::Unknown, begin, one, end);
    };
    let unchecked = graph.is_unchecked();
    let vertices = if unchecked { graph.tiles().vertices() as u64 } else { 0 };
    let one = |w: &mut W, entry: &TilesIndex, segment: &Segment<'_>| {
        let place = (entry.block, entry.offset);
        let (row_base, column_base) = (segment.row_base as u32, segment.column_base as u32);
        let mut is_sound = true;
        kernel.for_each(segment, |slice| {
            is_sound &= !unchecked || is_within(vertices, segment, slice);
            if is_sound {
                visit(w, &Arcs::Tile { place, row_base, column_base, slice });
            }
        })?;
        is_sound.then_some(()).ok_or_else(no_vertices)
    };
    let each = |w: &mut W, run: &SegmentRun<'_>| {
        run.iter().try_for_each(|(entry, segment)| one(w, entry, segment))
    };
    graph.tiles().pass_by_tile((selection, NextPass::Unknown), usize::MAX, begin, each, end)
}

/// Whether all ends of the arcs of a segment's slice are below `vertices`; damage that is not checked may make others.
pub(crate) fn is_within(vertices: u64, segment: &Segment<'_>, slice: &Slice<'_>) -> bool {
    let rows = vertices.saturating_sub(segment.row_base);
    let columns = vertices.saturating_sub(segment.column_base);
    let used = |lanes: &[u32; LANES], active: u8, below: u64| {
        lanes.iter().take(active.into()).all(|&lane| u64::from(lane) < below)
    };
    let mut steps = slice.columns.iter().zip(slice.active);
    used(slice.rows, slice.active[0], rows) && steps.all(|(step, &n)| used(step, n, columns))
}

/// The error of arcs that [`is_within`] finds none of the graph's.
pub(crate) fn no_vertices() -> Error {
    Error::new(ErrorKind::Format, "pass over the arcs of a tile")
        .expected("those of the graph's vertices")
        .got("others: the file is damaged")
        .hint("`tiergraph verify` lists all damage; rebuild the graph to repair it")
}
