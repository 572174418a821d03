//! The reduction of `propagate`: any sum, minimum or maximum.
//!
//! It is compiled once for each type of values, and what it does to arcs once for each [`Step`].

use tiergraph_core::Result;
use tiergraph_format::tiles::Segment;
use tiergraph_graph::{Direction, Graph, NextPass, RawRow};
use tiergraph_kernels::{Kernel, Slice};

use super::slice::each_arc;
use super::step::{Combine, Scalar, Step, Vector};
use super::{Propagate, Value, ends};
use crate::edge_map::{
    Buffers, Chunks, Placed, Reduction, StripBuffer, is_within, no_vertices, reduce, reduce_lists,
};

/// Reduces the arcs of segments to their strips' values, to their columns, or to both.
type OfSegments<'a, T> =
    &'a (dyn Fn(&Placed<'_>, &mut [StripBuffer<T>], &mut [T]) -> Result<()> + Sync);

/// Reduces a list of arcs to the value of the vertex at an index of a strip's values.
type OfList<'a, T> = &'a (dyn Fn(&RawRow<'_>, &mut StripBuffer<T>, usize) + Sync);

/// The buffers of a pass's workers.
pub(super) type FoldBuffers<T> = Buffers<StripBuffer<T>, T>;

/// A pass that reduces values: where they come from and go to, and its workers' buffers.
pub(super) struct Fold<'a, T> {
    graph: &'a Graph,
    how: &'a Propagate,
    x: &'a [T],
    y: &'a Chunks<T>,
    buffers: FoldBuffers<T>,
    /// The number of vertices, if that of arcs is not checked otherwise.
    limit: Option<u64>,
}

impl<T: Value> Reduction for Fold<'_, T> {
    type Value = T;

    fn width(&self) -> usize {
        self.how.width
    }

    fn identity(&self) -> T {
        self.how.reduce.identity()
    }

    #[inline(always)]
    fn merge(&self, to: &mut T, value: T) {
        self.how.reduce.apply(to, value);
    }
}

impl<'a, T: Value> Fold<'a, T> {
    pub(super) fn new(
        graph: &'a Graph,
        how: &'a Propagate,
        x: &'a [T],
        y: &'a Chunks<T>,
    ) -> Result<Self> {
        let identity = how.reduce.identity();
        let ends = ends(graph, how.transpose);
        let strips = |count| StripBuffer::batch(count, ends.strip_rows() * how.width, identity);
        let buffers = Buffers::new(graph, ends, how.width, strips)?;
        let limit = graph.is_unchecked().then_some(graph.manifest().vertices);
        Ok(Self { graph, how, x, y, buffers, limit })
    }

    pub(super) fn reduce<C: Combine>(&self) -> Result<()> {
        match (self.how.width, self.how.weights) {
            (1, true) => self.run(Scalar::<C, true>::new()),
            (1, false) => self.run(Scalar::<C, false>::new()),
            (width, true) => self.run(Vector::<C, true>::new(width)),
            (width, false) => self.run(Vector::<C, false>::new(width)),
        }
    }

    fn run(&self, step: impl Step<T>) -> Result<()> {
        match self.graph.tiles().kernel() {
            Some(kernel) => self.tiles(&kernel, &|placed, strips, columns| {
                placed.iter().try_for_each(|&(segment, strip)| {
                    self.segment(&kernel, step, segment, &mut strips[strip].values, columns)
                })
            }),
            None => self.lists(&|row, strip, at| {
                for (i, &column) in row.neighbors.iter().enumerate() {
                    step.arc(&mut strip.values, at, self.x, column as usize, row.weights.get(i));
                }
            }),
        }
    }

    fn tiles(&self, kernel: &Kernel, of_segments: OfSegments<'_, T>) -> Result<()> {
        let all = (&self.graph.tiles().select(|_| true), NextPass::Unknown);
        reduce(self.graph, kernel, all, self, of_segments, &self.buffers, self.y)
    }

    fn lists(&self, of_list: OfList<'_, T>) -> Result<()> {
        let direction = if self.how.transpose { Direction::Out } else { Direction::In };
        let all = (direction, NextPass::Unknown);
        reduce_lists(self.graph, all, self, of_list, &self.buffers, self.y)
    }

    /// Reduces a segment's arcs to `rows`, to its columns' values `y`, or to both.
    fn segment(
        &self,
        kernel: &Kernel,
        step: impl Step<T>,
        segment: &Segment<'_>,
        rows: &mut [T],
        y: &mut [T],
    ) -> Result<()> {
        let (row, column) = (segment.row_base as usize, segment.column_base as usize);
        let (x_rows, x_columns) =
            (&self.x[row * self.how.width..], &self.x[column * self.how.width..]);
        // One walk is compiled for all, not one for each step.
        let walk = |visit: &mut dyn FnMut(&Slice<'_>)| {
            let mut is_sound = true;
            kernel.for_each(segment, |slice| {
                is_sound &= self.limit.is_none_or(|limit| is_within(limit, segment, slice));
                if is_sound {
                    visit(slice);
                }
            })?;
            is_sound.then_some(()).ok_or_else(no_vertices)
        };
        let directed = self.graph.manifest().directed;
        let prefetch = |c| step.prefetch(x_columns, c);
        if directed && !self.how.transpose {
            return walk(&mut |slice| {
                each_arc(step, slice, prefetch, |r, c, weight| {
                    step.arc(rows, r, x_columns, c, weight);
                });
            });
        }
        match directed {
            true => walk(&mut |slice| {
                each_arc(step, slice, |_| (), |r, c, weight| step.arc(y, c, x_rows, r, weight));
            }),
            false => walk(&mut |slice| {
                let both = |r, c, weight| {
                    step.arc(rows, r, x_columns, c, weight);
                    // A self-loop counts once.
                    if row + r != column + c {
                        step.arc(y, c, x_rows, r, weight);
                    }
                };
                each_arc(step, slice, prefetch, both);
            }),
        }
    }
}
