//! `propagate`: one pass that reduces neighbours' values, for users' own algorithms.
//!
//! `y[v] = ⊕ w(u, v) · x[u]` over the arcs u → v (v's in-neighbours), or over v → u with
//! `transpose`; ⊕ is a sum, a minimum or a maximum. Values are float32 or float64, a number or a
//! vector a vertex. A vertex without such neighbours gets the reduction's identity: 0, ∞ or −∞.
//! Bytes: one pass, less what is resident; state: `x`, `y` and a strip of 65,536 vertices a worker.
//! Minima and maxima are identical from run to run, sums to the last bits.

use std::ops::{Add, Mul};

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_format::tiles::STRIP_ROWS;
use tiergraph_graph::{Direction, Graph, Then};
use tiergraph_kernels::Slice;

use crate::arcs::RowArcs;
use crate::pull::{chunk_log2, padded};
use crate::report::{Run, RunReport};
use crate::state::{Chunks, PerWorker, StripBuffer};

/// How values of several arcs become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

/// A type of vertex values.
pub trait Value:
    Pod + Default + Send + Sync + PartialOrd + Add<Output = Self> + Mul<Output = Self>
{
    /// Nearest value.
    fn from_f64(value: f64) -> Self;
}

impl Value for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Value for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
}

impl Reduce {
    /// What a vertex without neighbours gets.
    pub(crate) fn identity<T: Value>(self) -> T {
        T::from_f64(match self {
            Self::Sum => 0.0,
            Self::Min => f64::INFINITY,
            Self::Max => f64::NEG_INFINITY,
        })
    }

    #[inline(always)]
    fn apply<T: Value>(self, a: &mut T, b: T) {
        match self {
            Self::Sum => *a = *a + b,
            Self::Min => *a = if b < *a { b } else { *a },
            Self::Max => *a = if b > *a { b } else { *a },
        }
    }
}

/// What to propagate.
#[derive(Debug, Clone, Copy)]
pub struct Propagate {
    /// How values become one.
    pub reduce: Reduce,
    /// From out-neighbours instead of in-neighbours.
    pub transpose: bool,
    /// Whether values are multiplied by the arcs' weights.
    pub weights: bool,
    /// Values a vertex.
    pub width: usize,
}

/// Reduces `x`, `width` values for each vertex in the user's order; the result is in that order.
///
/// # Errors
/// A length that is not `width` × |V|, weights asked of a graph without, state that does not fit
/// the memory, whatever a pass gives.
pub fn propagate<T: Value>(
    graph: &Graph,
    x: &[T],
    how: &Propagate,
    progress: &dyn Progress,
) -> Result<(Vec<T>, RunReport)> {
    let n = graph.vertices();
    check(graph, x.len(), how)?;
    let _state = graph.reserve(propagate_bytes::<T>(graph, how.width), "the values")?;
    let mut x = graph.from_user_order(x, how.width)?;
    x.resize(padded(graph, n) * how.width, T::default());
    let mut y = Chunks::zeroed(n, how.width, chunk_log2(graph))?;
    y.fill(how.reduce.identity::<T>());
    let strips = StripBuffer::each(graph.threads(), how.width, how.reduce.identity::<T>())?;
    graph.plan_residency();
    let mut run = Run::start(graph, "propagate", 1, progress);
    let pass = Pass { graph, how, x: &x, y: &y, strips };
    match graph.has_tiles() {
        true => pass.tiles()?,
        false => pass.raw()?,
    }
    run.iteration("pass", 0.0);
    let report = run.finish(true)?;
    drop(x);
    Ok((graph.to_user_order(y.into_vec(n), how.width)?, report))
}

/// Bytes of state that [`propagate`] reserves for `width` values a vertex.
pub fn propagate_bytes<T>(graph: &Graph, width: usize) -> u64 {
    let vertices = 2 * padded(graph, graph.vertices()) + graph.threads() * STRIP_ROWS;
    (vertices * width * size_of::<T>()) as u64
}

/// Refuses what cannot be propagated.
pub(crate) fn check(graph: &Graph, len: usize, how: &Propagate) -> Result<()> {
    let op = || Error::new(ErrorKind::Input, "propagate values");
    if how.width == 0 || len != graph.vertices() * how.width {
        return Err(op()
            .expected(format!("{} values for each of {} vertices", how.width, graph.vertices()))
            .got(format!("{len} values")));
    }
    let weighted = graph.manifest().weighted.bytes() > 0;
    if how.weights && !weighted {
        return Err(op().expected("a weighted graph").got("a graph without weights"));
    }
    Ok(())
}

struct Pass<'a, T> {
    graph: &'a Graph,
    how: &'a Propagate,
    x: &'a [T],
    y: &'a Chunks<T>,
    strips: PerWorker<StripBuffer<T>>,
}

impl<T: Value> Pass<'_, T> {
    /// `to[at] ⊕= weight · x[from]` for the values of two vertices.
    #[inline(always)]
    fn arc(&self, to: &mut [T], at: usize, from: usize, weight: f64) {
        let width = self.how.width;
        let to = &mut to[at * width..(at + 1) * width];
        let from = &self.x[from * width..(from + 1) * width];
        if self.how.weights {
            let weight = T::from_f64(weight);
            to.iter_mut().zip(from).for_each(|(to, &x)| self.how.reduce.apply(to, weight * x));
        } else {
            to.iter_mut().zip(from).for_each(|(to, &x)| self.how.reduce.apply(to, x));
        }
    }

    fn merge(&self) -> impl FnMut(&mut T, T) {
        let reduce = self.how.reduce;
        move |a, b| reduce.apply(a, b)
    }

    fn tiles(&self) -> Result<()> {
        let Some(kernel) = self.graph.kernel() else {
            return Err(self.graph.missing_layout("propagate over", "tiles"));
        };
        let both = !self.graph.manifest().directed;
        let (to_rows, to_columns) = (both || !self.how.transpose, both || self.how.transpose);
        let log2 = kernel.options().columns_log2;
        self.graph.tile_pass(
            &self.graph.select_tiles(|_| true),
            Then::Stop,
            |worker| self.strips.of(worker),
            |strip, _, segment| {
                let (row, column) = (segment.row_base as usize, segment.column_base as usize);
                if to_rows {
                    strip.move_to(row, segment.rows as usize, self.y, self.merge());
                    kernel.for_each(segment, |slice| {
                        each(slice, |r, c, w| self.arc(&mut strip.values, r, column + c, w));
                    })?;
                }
                if to_columns {
                    let mut y = self.y.lock(column >> log2);
                    kernel.for_each(segment, |slice| {
                        each(slice, |r, c, w| {
                            // A self-loop counts once.
                            if !both || row + r != column + c {
                                self.arc(&mut y, c, row + r, w);
                            }
                        });
                    })?;
                }
                Ok(())
            },
            |mut strip| {
                strip.flush(self.y, self.merge());
                Ok(())
            },
        )
    }

    fn raw(&self) -> Result<()> {
        let direction = if self.how.transpose { Direction::Out } else { Direction::In };
        self.graph.raw_pass(
            direction,
            Then::Stop,
            |worker| self.strips.of(worker),
            |strip, row| {
                let vertex = row.vertex as usize;
                let first = vertex / STRIP_ROWS * STRIP_ROWS;
                strip.move_to(first, vertex - first + 1, self.y, self.merge());
                let arcs = RowArcs::List { columns: row.neighbors, weights: row.weights };
                arcs.weighted(|column, weight| {
                    self.arc(&mut strip.values, vertex - first, column as usize, weight);
                });
                Ok(())
            },
            |mut strip| {
                strip.flush(self.y, self.merge());
                Ok(())
            },
        )
    }
}

/// Calls `visit(row in the strip, column in the tile, weight)` for each arc of a slice.
#[inline(always)]
fn each(slice: &Slice<'_>, mut visit: impl FnMut(usize, usize, f64)) {
    let mut at = 0;
    for (step, &active) in slice.columns.iter().zip(slice.active) {
        let lanes = usize::from(active);
        for (lane, &column) in step[..lanes].iter().enumerate() {
            visit(slice.rows[lane] as usize, column as usize, slice.weight(at + lane));
        }
        at += lanes;
    }
}
