//! `propagate`: one pass that reduces neighbours' values, a building block for users' own algorithms.
//!
//! `y[v] = ⊕ w(u, v) · x[u]` over the arcs u → v (v's in-neighbours), or over v → u with
//! `transpose`; ⊕ is a sum, a minimum or a maximum. Values are float32 or float64, a number or a
//! vector a vertex. A vertex without such neighbours gets the reduction's identity: 0, ∞ or −∞.
//! Bytes: one pass, less what is resident; state: `x`, `y` and a strip of at most 65,536 vertices a worker.
//! Minima and maxima are identical from run to run, sums to the last bits. Where one of the values is NaN, so is what is
//! made of them, as of NumPy's `minimum` and `maximum`.

mod fold;
mod slice;
mod step;

use std::ops::{Add, Mul};

use bytemuck::Pod;
use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::Graph;
use tiergraph_mem::Array;

use crate::edge_map::{Chunks, Ends, chunk_log2};
use crate::report::{Run, RunReport};
use fold::{Fold, FoldBuffers};
use step::{Max, Min, Sum};

/// The operation that makes one value of those that come along several arcs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// The sum of all values.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// A type of vertex values.
pub trait Value:
    Pod + Default + Send + Sync + PartialOrd + Add<Output = Self> + Mul<Output = Self>
{
    /// The value of this type that is nearest to `value`.
    fn from_f64(value: f64) -> Self;

    /// Whether the value is NaN.
    fn is_nan(self) -> bool;
}

impl Value for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Value for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Reduce {
    /// The reduction's identity, which a vertex without neighbours gets.
    pub(crate) fn identity<T: Value>(self) -> T {
        T::from_f64(match self {
            Self::Sum => 0.0,
            Self::Min => f64::INFINITY,
            Self::Max => f64::NEG_INFINITY,
        })
    }
}

/// Options of [`propagate()`].
#[derive(Debug, Clone, Copy)]
pub struct Propagate {
    /// The operation that makes one value of those of a vertex's neighbours.
    pub reduce: Reduce,
    /// Whether vertices get the values of their out-neighbours instead of their in-neighbours.
    pub transpose: bool,
    /// Whether values are multiplied by the arcs' weights.
    pub weights: bool,
    /// The number of values that each vertex has.
    pub width: usize,
}

/// Reduces `x`, `width` values for each vertex in the user's order; the result is in that order.
///
/// # Errors
/// A length that is not `width` × |V|, weights asked of a graph without, state that does not fit
/// the memory, any error of a pass.
pub fn propagate<T: Value>(
    graph: &Graph,
    x: &[T],
    how: &Propagate,
    progress: &dyn Progress,
) -> Result<(Vec<T>, RunReport)> {
    let n = graph.vertices();
    check(graph, x.len(), how)?;
    let _state =
        graph.memory().reserve(bytes::<T>(graph, how.width, how.transpose), "the values")?;
    let given = x;
    let mut x = Array::zeroed(n * how.width)?;
    graph.order().from_user_into(given, how.width, &mut x)?;
    let mut y = Chunks::zeroed(n, how.width, chunk_log2(graph))?;
    y.fill(how.reduce.identity::<T>());
    let pass = Fold::new(graph, how, &x, &y)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "propagate", 1, progress);
    match how.reduce {
        Reduce::Sum => pass.reduce::<Sum>()?,
        Reduce::Min => pass.reduce::<Min>()?,
        Reduce::Max => pass.reduce::<Max>()?,
    }
    drop(pass);
    run.iteration("pass", 0.0);
    let report = run.finish(true)?;
    drop(x);
    let y = y.into_values();
    Ok((graph.order().in_user(how.width, |vertex| y.of(vertex))?, report))
}

/// The most bytes of state that [`propagate()`] reserves for `width` values a vertex, transposed or not.
pub fn propagate_bytes<T: Value>(graph: &Graph, width: usize) -> u64 {
    bytes::<T>(graph, width, true)
}

fn bytes<T: Value>(graph: &Graph, width: usize, transpose: bool) -> u64 {
    let values = (2 * graph.vertices() * width * size_of::<T>()) as u64;
    values + FoldBuffers::<T>::bytes(graph, ends(graph, transpose), width)
}

/// The ends of arcs that values are reduced to.
fn ends(graph: &Graph, transpose: bool) -> Ends {
    Ends::of(graph, transpose).of_vertices(graph)
}

/// Fails for lengths and options that cannot be propagated over this graph.
pub(crate) fn check(graph: &Graph, len: usize, how: &Propagate) -> Result<()> {
    let op = || Error::new(ErrorKind::Input, "propagate values");
    if how.width == 0 || len != graph.vertices() * how.width {
        let each = if how.width == 0 { "some".into() } else { how.width.to_string() };
        return Err(op()
            .expected(format!("{each} values for each of {} vertices", graph.vertices()))
            .got(format!("{len} values")));
    }
    let weighted = graph.manifest().weighted.bytes() > 0;
    if how.weights && !weighted {
        return Err(op().expected("a weighted graph").got("a graph without weights"));
    }
    Ok(())
}
