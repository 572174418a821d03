//! `propagate` on a GPU: one pass that reduces neighbours' values.
//!
//! As [`crate::propagate()`]: minima and maxima are the same bit for bit, sums but for the order of
//! their terms. A vertex's values are cut into *panels* of 16 bytes, which one load brings, and every
//! block that arrives is gone over once a panel, so storage is read once for all of them. Panels that
//! do not fit half of the device's memory together take a pass each time they fill it.

use std::borrow::Cow;
use std::ops::Range;

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::{Columns, Fold, Panel, ValueKernels};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::{Direction, Graph, NextPass};
use tiergraph_mem::zeroed_vec;

use super::Gpu;
use super::pass::{Arcs, Passes, zeroed};
use super::staging::BUFFER_BYTES;
use super::vertices::Order;
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
    check(graph, x.len(), how)?;
    let panel = Panel::of(size_of::<T>(), how.width);
    let panel_bytes = State::<T>::panel_bytes(graph, panel);
    let _host = graph.reserve(3 * size_of_val(x) as u64, "the values")?;
    let panels = how.width.div_ceil(panel.width());
    let at_once = (gpu.memory as usize / 2 / panel_bytes)
        .min(BUFFER_BYTES / (panel.width() * size_of::<T>()))
        .clamp(1, panels);
    let state_bytes = (at_once * panel_bytes) as u64;
    let mut passes = Passes::over(graph, gpu, arcs(graph, how), panel.options(), state_bytes)?;
    let mut state = State::new(graph, &passes.stream, (panel, at_once))?;
    let mut run = Run::start(graph, "propagate", panels.div_ceil(at_once) as u64, progress);
    if at_once < panels { passes.load() } else { passes.load_whole() }?;
    run.begin_on(passes.report());
    let order = passes.order(0)?;
    let x = match order {
        Order::Elsewhere => Cow::Owned(graph.from_user_order(x, how.width)?),
        Order::Same | Order::Here(_) => Cow::Borrowed(x),
    };
    let mut y = zeroed_vec(x.len());
    for first in (0..how.width).step_by(at_once * panel.width()) {
        let columns = first..(first + at_once * panel.width()).min(how.width);
        state.take(&passes, &order, (&x, how.width), columns.clone(), how.reduce)?;
        let next = if columns.end == how.width { NextPass::Unknown } else { NextPass::Same };
        passes.run(&state.programs(columns.len(), how.reduce), None, next)?;
        state.place(&passes, &order, (&mut y, how.width), columns)?;
        run.iteration("pass", 0.0);
    }
    let report = run.finish(true)?;
    let y = if let Order::Elsewhere = order { graph.to_user_order(y, how.width)? } else { y };
    Ok((y, report))
}

/// As the CPU's passes go: an undirected graph's arcs have both directions.
fn arcs(graph: &Graph, how: &Propagate) -> Arcs {
    let direction = if how.transpose { Direction::Out } else { Direction::In };
    let transposed = how.transpose && graph.manifest().directed;
    Arcs { direction, weights: how.weights, transposed }
}

/// Columns of all vertices' values, on the device.
struct State<T> {
    /// x and y, cut into panels.
    panels: Vec<(DeviceBuf<T>, DeviceBuf<T>)>,
    width: usize,
    /// Rows of x as they come, in the user's order, and of y as they go.
    rows: DeviceBuf<T>,
    kernels: ValueKernels,
}

impl<T: Value> State<T> {
    /// Bytes of device memory of a panel.
    fn panel_bytes(graph: &Graph, panel: Panel) -> usize {
        3 * padded(graph, graph.vertices()) * panel.width() * size_of::<T>()
    }

    /// Room for `count` panels.
    fn new(graph: &Graph, stream: &Stream, (panel, count): (Panel, usize)) -> Result<Self> {
        let (device, width) = (stream.device(), panel.width());
        let len = padded(graph, graph.vertices()) * width;
        // What kernels see of padding is zero.
        let panel = |_| Ok((zeroed(device, stream, len)?, DeviceBuf::new(device, len)?));
        Ok(Self {
            panels: (0..count).map(panel).collect::<Result<_>>()?,
            width,
            rows: DeviceBuf::new(device, graph.vertices() * width * count)?,
            kernels: ValueKernels::new(device)?,
        })
    }

    /// Where the values of a panel are in rows of `stride` values.
    fn columns<'o>(&self, order: &'o Order, panel: usize, stride: usize) -> Columns<'o> {
        let first = panel * self.width;
        Columns {
            positions: order.positions(),
            vertices: self.rows.len() / (self.width * self.panels.len()),
            stride,
            first,
            columns: self.width.min(stride - first),
            width: self.width,
        }
    }

    /// Takes `columns` of `x`, which has rows of `width` values, and what a reduction begins with.
    fn take(
        &mut self,
        passes: &Passes<'_, Fold>,
        order: &Order,
        (x, width): (&[T], usize),
        columns: Range<usize>,
        reduce: Reduce,
    ) -> Result<()> {
        let (team, stream, stride) = (passes.graph.thread_pool(), &passes.stream, columns.len());
        passes.staging.upload(team, (x, width), (&mut self.rows, stride), |rows, to| {
            let rows = rows.chunks_exact(width).zip(to.chunks_exact_mut(stride));
            rows.for_each(|(row, to)| to.copy_from_slice(&row[columns.clone()]));
        })?;
        for panel in 0..stride.div_ceil(self.width) {
            let columns = self.columns(order, panel, stride);
            let (x, y) = &mut self.panels[panel];
            self.kernels.take(stream, &columns, &self.rows, x)?;
            self.kernels.fill(stream, y, reduce.identity())?;
        }
        Ok(())
    }

    /// For as many columns.
    fn programs(&self, columns: usize, reduce: Reduce) -> Vec<Fold> {
        let operation = match reduce {
            Reduce::Sum => 0,
            Reduce::Min => 1,
            Reduce::Max => 2,
        };
        let program = |(x, y): &(DeviceBuf<T>, DeviceBuf<T>)| Fold {
            x: x.address(),
            y: y.address(),
            operation,
            unused: 0,
        };
        self.panels[..columns.div_ceil(self.width)].iter().map(program).collect()
    }

    /// Gives `columns` of `y`, which has rows of `width` values.
    fn place(
        &mut self,
        passes: &Passes<'_, Fold>,
        order: &Order,
        (y, width): (&mut [T], usize),
        columns: Range<usize>,
    ) -> Result<()> {
        let (team, stream, stride) = (passes.graph.thread_pool(), &passes.stream, columns.len());
        for panel in 0..stride.div_ceil(self.width) {
            let columns = self.columns(order, panel, stride);
            self.kernels.place(stream, &columns, &self.panels[panel].1, &mut self.rows)?;
        }
        stream.synchronize()?;
        passes.staging.download(team, (&self.rows, stride), (y, width), |from, rows| {
            let rows = rows.chunks_exact_mut(width).zip(from.chunks_exact(stride));
            rows.for_each(|(row, from)| row[columns.clone()].copy_from_slice(from));
        })
    }
}
