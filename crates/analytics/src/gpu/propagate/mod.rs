//! `propagate` on a GPU: one pass that reduces neighbours' values.
//!
//! The results of [`crate::propagate()`]: minima and maxima bit for bit, sums up to the order of their
//! terms. A vertex's values are cut into *panels* of 16 bytes, which one load brings, and every
//! block that arrives is gone over once a panel, so storage is read once for all of them. Panels that
//! do not fit half of the device's memory together take a pass each time they fill it.
//!
//! Values come from host memory and go back there ([`propagate`]), or stay on the device
//! ([`propagate_on_device`]).

mod panels;
mod rows;

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceView;
use tiergraph_gpu::kernels::{Fold, Panel};
use tiergraph_graph::{Direction, Graph, NextPass};

use super::Gpu;
use super::pass::{Arcs, Passes};
use super::vertices::Order;
use crate::propagate::{Propagate, Value, check};
use crate::report::{Run, RunReport};
use panels::Panels;
use rows::{DeviceRows, HostRows, Rows};

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
    let _host = graph.memory().reserve(3 * size_of_val(x) as u64, "the values")?;
    let mut rows = HostRows::new(x, how.width);
    let report = reduce(graph, gpu, &mut rows, how, progress)?;
    Ok((rows.into_result(graph)?, report))
}

/// Reduces `x` to `y`, both in device memory with `width` values a vertex in the user's order; `y` may
/// be `x`. Work that writes `x` or reads `y` has ended before the call; `y` is written on return.
///
/// # Errors
/// As [`propagate`], and an order of vertices that does not fit the device beside the state.
pub fn propagate_on_device<T: Value>(
    graph: &Graph,
    gpu: &Gpu,
    x: DeviceView<T>,
    y: DeviceView<T>,
    how: &Propagate,
    progress: &dyn Progress,
) -> Result<RunReport> {
    check(graph, x.len(), how)?;
    check(graph, y.len(), how)?;
    reduce(graph, gpu, &mut DeviceRows::new(x, y, how.width), how, progress)
}

/// Goes over the columns of `rows`, as many at a time as the device holds panels of.
fn reduce<T: Value>(
    graph: &Graph,
    gpu: &Gpu,
    rows: &mut impl Rows<T>,
    how: &Propagate,
    progress: &dyn Progress,
) -> Result<RunReport> {
    let panel = Panel::of(size_of::<T>(), how.width);
    let panel_bytes = Panels::<T>::bytes(graph, panel) + rows.bytes(graph, panel.width());
    let all = how.width.div_ceil(panel.width());
    let at_once = (gpu.memory as usize / 2 / panel_bytes)
        .min(rows.most_columns() / panel.width())
        .clamp(1, all);
    let state_bytes = (at_once * panel_bytes) as u64 + rows.order_bytes(graph);
    let mut passes = Passes::over(graph, gpu, arcs(graph, how), panel.options(), state_bytes)?;
    let panels = Panels::new(graph, &passes.stream, panel, at_once)?;
    rows.prepare(&passes, at_once * panel.width())?;
    let mut run = Run::start(graph, "propagate", all.div_ceil(at_once) as u64, progress);
    if at_once < all { passes.load() } else { passes.load_whole() }?;
    run.begin_on(passes.report());
    let order = rows.order(&passes)?;
    reduce_columns(&mut passes, panels, rows, &order, how, &mut run)?;
    run.finish(true)
}

/// Reduces the columns of `rows`, as many at a time as `panels` hold.
fn reduce_columns<T: Value>(
    passes: &mut Passes<'_, Fold<T>>,
    mut panels: Panels<T>,
    rows: &mut impl Rows<T>,
    order: &Order,
    how: &Propagate,
    run: &mut Run<'_>,
) -> Result<()> {
    for first in (0..how.width).step_by(panels.columns()) {
        let columns = first..(first + panels.columns()).min(how.width);
        let from = rows.begin(passes, order, columns.clone())?;
        panels.load(&passes.stream, order, from, how.reduce)?;
        let next = if columns.end == how.width { NextPass::Unknown } else { NextPass::Same };
        passes.run(&panels.programs(columns.len(), how.reduce), None, next)?;
        panels.store(&passes.stream, order, rows.target(columns.clone()))?;
        passes.stream.synchronize()?;
        rows.end(passes, columns)?;
        run.iteration("pass", 0.0);
    }
    Ok(())
}

/// The arcs that values are propagated along, as on the CPU: an undirected graph's have both directions.
fn arcs(graph: &Graph, how: &Propagate) -> Arcs {
    let direction = if how.transpose { Direction::Out } else { Direction::In };
    let transposed = how.transpose && graph.manifest().directed;
    Arcs { direction, weights: how.weights, transposed }
}
