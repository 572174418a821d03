//! The pass of `propagate` over a graph.
//!
//! Passes are compiled once for each type of values, and what they do to arcs once for each [`Step`].

use tiergraph_core::Result;
use tiergraph_format::raw::WeightSlice;
use tiergraph_format::tiles::{STRIP_ROWS, Segment};
use tiergraph_graph::{Direction, Graph, NextPass};
use tiergraph_kernels::{Kernel, Slice};
use tiergraph_mem::Array;

use super::slice::each_arc;
use super::step::{Combine, Scalar, Step, Vector};
use super::{Propagate, Value, scratch_columns};
use crate::arcs::RowArcs;
use crate::state::{Chunks, PerWorker, Scratch, StripBuffer};

/// Reduces a segment's arcs to its strip's values and its tile's columns, with scratch for the latter.
type OfSegment<'a, T> = &'a (dyn Fn(&Segment<'_>, &mut [T], &mut [T]) -> Result<()> + Sync);

/// Reduces a list of arcs, with weights, to the value of the vertex at an index of a strip's values.
type OfRow<'a, T> = &'a (dyn Fn(&mut [T], usize, &[u32], WeightSlice<'_>) + Sync);

/// A pass: where values come from and go to, and its workers' buffers.
pub(super) struct Pass<'a, T> {
    graph: &'a Graph,
    how: &'a Propagate,
    x: &'a [T],
    y: &'a Chunks<T>,
    strips: PerWorker<StripBuffer<T>>,
    /// Scratch for the values of a tile's columns.
    columns: PerWorker<Array<T>>,
}

impl<'a, T: Value> Pass<'a, T> {
    pub(super) fn new(
        graph: &'a Graph,
        how: &'a Propagate,
        x: &'a [T],
        y: &'a Chunks<T>,
    ) -> Result<Self> {
        let columns = scratch_columns(graph, how.transpose) * how.width;
        let columns =
            PerWorker::new(Array::batch(graph.thread_pool().size(), columns)?.into_iter());
        let strips =
            StripBuffer::each(graph.thread_pool().size(), how.width, how.reduce.identity::<T>())?;
        Ok(Self { graph, how, x, y, strips, columns })
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
            Some(kernel) => self.tiles(&|segment, rows, scratch| {
                self.segment(&kernel, step, segment, rows, scratch)
            }),
            None => self.raw(&|to, at, columns, weights| {
                let arcs = RowArcs::List { columns, weights };
                arcs.weighted(|column, weight| step.arc(to, at, self.x, column as usize, weight));
            }),
        }
    }

    fn merge(&self) -> impl FnMut(&mut T, T) {
        let reduce = self.how.reduce;
        move |a, b| reduce.apply(a, b)
    }

    fn tiles(&self, visit: OfSegment<'_, T>) -> Result<()> {
        let to_rows = !(self.graph.manifest().directed && self.how.transpose);
        self.graph.tiles().pass(
            &self.graph.tiles().select(|_| true),
            NextPass::Unknown,
            |worker| (self.strips.of(worker), self.columns.of(worker)),
            |(strip, columns), _, segment| {
                if to_rows {
                    let (row, rows) = (segment.row_base as usize, segment.rows as usize);
                    strip.move_to(row, rows, self.y, self.merge());
                }
                visit(segment, &mut strip.values, columns)
            },
            |(mut strip, _)| {
                strip.flush(self.y, self.merge());
                Ok(())
            },
        )
    }

    /// Reduces a segment's arcs to `rows`, to the columns' `y`, or to both.
    fn segment(
        &self,
        kernel: &Kernel,
        step: impl Step<T>,
        segment: &Segment<'_>,
        rows: &mut [T],
        scratch: &mut [T],
    ) -> Result<()> {
        let (row, column) = (segment.row_base as usize, segment.column_base as usize);
        let (x_rows, x_columns) =
            (&self.x[row * self.how.width..], &self.x[column * self.how.width..]);
        // One walk is compiled for all, not one for each step.
        let walk = |visit: &mut dyn FnMut(&Slice<'_>)| kernel.for_each(segment, visit);
        let directed = self.graph.manifest().directed;
        let prefetch = |c| step.prefetch(x_columns, c);
        if directed && !self.how.transpose {
            return walk(&mut |slice| {
                each_arc(step, slice, prefetch, |r, c, weight| {
                    step.arc(rows, r, x_columns, c, weight);
                });
            });
        }
        let chunk = column >> kernel.options().columns_log2;
        let scratch = Scratch { values: scratch, identity: self.how.reduce.identity() };
        self.y.visit(chunk, segment.len, scratch, self.merge(), |y| match directed {
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
        })
    }

    fn raw(&self, visit: OfRow<'_, T>) -> Result<()> {
        let direction = if self.how.transpose { Direction::Out } else { Direction::In };
        self.graph.raw(direction).pass(
            NextPass::Unknown,
            |worker| self.strips.of(worker),
            |strip, row| {
                let vertex = row.vertex as usize;
                let first = vertex / STRIP_ROWS * STRIP_ROWS;
                strip.move_to(first, vertex - first + 1, self.y, self.merge());
                visit(&mut strip.values, vertex - first, row.neighbors, row.weights);
                Ok(())
            },
            |mut strip| {
                strip.flush(self.y, self.merge());
                Ok(())
            },
        )
    }
}
