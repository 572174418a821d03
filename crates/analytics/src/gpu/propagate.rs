//! `propagate` on a GPU: one pass that reduces neighbours' values.
//!
//! As [`crate::propagate()`]: minima and maxima are the same bit for bit, sums but for the order of
//! their terms. A vertex's values are cut into *panels* of 16 bytes, which one load brings, and every
//! block that arrives is gone over once a panel, so storage is read once for all of them. Panels that
//! do not fit half of the device's memory together take a pass each time they fill it.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::{Fold, Panel};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, Then};
use tiergraph_mem::zeroed_vec;

use super::Gpu;
use super::pass::{Arcs, Passes};
use crate::propagate::{Propagate, Reduce, Value, check};
use crate::pull::padded;
use crate::report::{Run, RunReport};

/// Reduces `x`, `width` values for each vertex in the user's order; the result is in that order.
///
/// # Errors
/// As [`crate::propagate()`], and state that does not fit the device.
pub fn propagate<T: Value>(
    graph: &Graph,
    gpu: &Gpu,
    x: &[T],
    how: &Propagate,
    progress: &dyn Progress,
) -> Result<(Vec<T>, RunReport)> {
    let n = graph.vertices();
    check(graph, x.len(), how)?;
    let (panel, len) = (Panel::of(size_of::<T>(), how.width), padded(graph, n));
    let panel_bytes = len * panel.width() * size_of::<T>();
    let _host = graph.reserve((2 * size_of_val(x) + panel_bytes) as u64, "the values")?;
    let panels: Vec<usize> = (0..how.width.div_ceil(panel.width())).collect();
    let at_once = (gpu.memory as usize / 2 / (2 * panel_bytes)).clamp(1, panels.len());
    let state_bytes = (2 * at_once * panel_bytes) as u64;
    let mut passes = Passes::over(graph, gpu, arcs(graph, how), panel.options(), state_bytes)?;
    let state = |_| State::new(&passes.stream, len * panel.width());
    let mut states = (0..at_once).map(state).collect::<Result<Vec<State<T>>>>()?;
    let rows = Rows { values: graph.from_user_order(x, how.width)?, width: how.width };
    let mut y = Rows { values: zeroed_vec(x.len()), width: how.width };
    let mut host = zeroed_vec(len * panel.width());
    let total = panels.len().div_ceil(at_once) as u64;
    let mut run = Run::start(graph, "propagate", total, progress);
    if at_once < panels.len() { passes.load() } else { passes.load_whole() }?;
    run.begin_on(passes.report());
    for group in panels.chunks(at_once) {
        for (state, &number) in states.iter_mut().zip(group) {
            rows.copy_panel(number, panel.width(), &mut host);
            state.begin(&passes.stream, &mut host, how.reduce)?;
        }
        let programs: Vec<Fold> = states.iter().map(|s| s.program(how.reduce)).collect();
        let is_last = group.last() == panels.last();
        let then = if is_last { Then::Stop } else { Then::Again };
        passes.run(&programs[..group.len()], None, then)?;
        for (state, &number) in states.iter().zip(group) {
            let values = passes.stream.download(&state.y, n * panel.width())?;
            y.set_panel(number, panel.width(), &values);
        }
        run.iteration("pass", 0.0);
    }
    let report = run.finish(true)?;
    Ok((graph.to_user_order(y.values, how.width)?, report))
}

/// As the CPU's passes go: an undirected graph's arcs have both directions.
fn arcs(graph: &Graph, how: &Propagate) -> Arcs {
    let direction = if how.transpose { Direction::Out } else { Direction::In };
    let transposed = how.transpose && graph.manifest().directed;
    Arcs { direction, weights: how.weights, transposed }
}

/// A panel on the device.
struct State<T> {
    x: DeviceBuf<T>,
    y: DeviceBuf<T>,
}

impl<T: Value> State<T> {
    fn new(stream: &Stream, len: usize) -> Result<Self> {
        let device = stream.device();
        Ok(Self { x: DeviceBuf::new(device, len)?, y: DeviceBuf::new(device, len)? })
    }

    /// Takes `x`, and what the sums begin with.
    fn begin(&mut self, stream: &Stream, x: &mut [T], reduce: Reduce) -> Result<()> {
        stream.upload(&mut self.x, x)?;
        x.fill(reduce.identity());
        stream.upload(&mut self.y, x)
    }

    fn program(&self, reduce: Reduce) -> Fold {
        let operation = match reduce {
            Reduce::Sum => 0,
            Reduce::Min => 1,
            Reduce::Max => 2,
        };
        Fold { x: self.x.address(), y: self.y.address(), operation, unused: 0 }
    }
}

/// `width` values for each vertex.
struct Rows<T> {
    values: Vec<T>,
    width: usize,
}

impl<T: Value> Rows<T> {
    /// Values `number * width` to `(number + 1) * width` of each vertex; where there are none, zeros.
    fn copy_panel(&self, number: usize, width: usize, to: &mut [T]) {
        to.fill(T::default());
        let columns = self.columns(number, width);
        let rows = self.values.chunks_exact(self.width).zip(to.chunks_exact_mut(width));
        rows.for_each(|(row, to)| to[..columns.len()].copy_from_slice(&row[columns.clone()]));
    }

    fn set_panel(&mut self, number: usize, width: usize, from: &[T]) {
        let columns = self.columns(number, width);
        let rows = self.values.chunks_exact_mut(self.width).zip(from.chunks_exact(width));
        rows.for_each(|(row, from)| row[columns.clone()].copy_from_slice(&from[..columns.len()]));
    }

    fn columns(&self, number: usize, width: usize) -> std::ops::Range<usize> {
        number * width..((number + 1) * width).min(self.width)
    }
}
