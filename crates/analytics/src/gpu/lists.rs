//! Algorithms on a GPU over neighbour lists that are whole in its memory: triangles, clustering, cores, labels.
//!
//! The host makes the lists, as for the CPU ([`RowMap`]), and copies them once; but for labels, a list has each
//! neighbour once, ascending, whichever way edges lead. Results are those of the CPU, number by number. Where the lists do not fit
//! both memories, nothing is done, and the caller is told why.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use serde_json::json;
use tiergraph_core::{ByteSize, Progress, Result};
use tiergraph_format::manifest::Order;
use tiergraph_gpu::kernels::{CoreKernels, DeviceLists, LabelKernels, TriangleKernels};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, zeroed_vec};

use super::pass::zeroed;
use super::{Gpu, GpuReport};
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, RowMap, Side};
use crate::structure::{Triangles, WedgesClosed, clustering_of, triangles_of};

/// What a run on a GPU gives, or why there was none.
pub type OnGpu<T> = std::result::Result<T, String>;

/// Counts triangles, as [`crate::triangles`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn triangles(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Triangles, RunReport)>> {
    match close(graph, gpu, "triangles", progress)? {
        Ok(found) => Ok(Ok(triangles_of(graph, found)?)),
        Err(why) => Ok(Err(why)),
    }
}

/// Local clustering coefficients, as [`crate::clustering`], of graphs whose edges have no direction.
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn clustering(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<f64>, RunReport)>> {
    if graph.manifest().directed {
        return Ok(Err("of edges with directions, the CPU counts the arcs".into()));
    }
    match close(graph, gpu, "clustering", progress)? {
        Ok(found) => Ok(Ok(clustering_of(graph, found)?)),
        Err(why) => Ok(Err(why)),
    }
}

fn close(
    graph: &Graph,
    gpu: &Gpu,
    name: &'static str,
    progress: &dyn Progress,
) -> Result<OnGpu<WedgesClosed>> {
    let n = graph.vertices();
    let _counts = graph.memory().reserve(n as u64 * 24, "the counts")?;
    let Loaded { mut run, stream, mut lists, .. } = match load(graph, gpu, WEDGES, name, progress)?
    {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let kernels = TriangleKernels::new(&gpu.device)?;
    let mut neighbors = DeviceBuf::new(&gpu.device, n)?;
    kernels.count(&stream, &lists, &mut neighbors)?;
    let is_ordered = graph.manifest().order == Order::Degree;
    kernels.keep_higher(&stream, &mut lists, &neighbors, is_ordered)?;
    let mut closed = zeroed(&gpu.device, &stream, n)?;
    let mut next = zeroed(&gpu.device, &stream, 1)?;
    kernels.close(&stream, &lists, &mut closed, &mut next)?;
    let of = stream.download(&closed, n)?;
    run.iteration("intersect", of.iter().sum::<u64>() as f64 / 3.0);
    let report = run.finish(true)?;
    let closed = Array::from_fn(n, |v| of[v])?;
    Ok(Ok(WedgesClosed { closed, neighbors: stream.download(&neighbors, n)?, report }))
}

/// Core numbers, as [`crate::core_numbers`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn core_numbers(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    let n = graph.vertices();
    let _cores = graph.memory().reserve(n as u64 * 8, "the core numbers")?;
    let loaded = load(graph, gpu, CORES, "kcore", progress)?;
    let Loaded { mut run, stream, lists, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let mut degrees = DeviceBuf::new(&gpu.device, n)?;
    TriangleKernels::new(&gpu.device)?.count(&stream, &lists, &mut degrees)?;
    let mut kernels = CoreKernels::new(&gpu.device, degrees)?;
    let (mut left, mut level) = (n as u64, 0);
    while left > 0 {
        graph.cancel().check("find the core numbers")?;
        let (went, least) = kernels.peel(&stream, &lists, level)?;
        left -= u64::from(went);
        run.iteration("level", f64::from(went));
        // Where none went, no degree fell either.
        level = if went == 0 { least } else { level + 1 };
    }
    let report = run.finish(true)?;
    let cores = stream.download(kernels.degrees(), n)?;
    Ok(Ok((graph.order().to_user(cores, 1)?, report)))
}

/// Labels, as [`crate::label_propagation`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn label_propagation(
    graph: &Graph,
    gpu: &Gpu,
    iterations: usize,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    let n = graph.vertices();
    let bytes = (n as u64 * 16).max(graph.ids().of_positions_bytes());
    let _labels = graph.memory().reserve(bytes, "the labels")?;
    let loaded = load(graph, gpu, LABELS, "cdlp", progress)?;
    let Loaded { mut run, stream, lists, many } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let mut own: Vec<u32> = zeroed_vec(n);
    let places = Array::from_fn(n, |_| AtomicU32::new(0))?;
    graph.order().for_each_position(n, |v, position| {
        places[v].store(position as u32, Ordering::Relaxed);
    })?;
    own.iter_mut().zip(&*places).for_each(|(own, place)| *own = place.load(Ordering::Relaxed));
    drop(places);
    let mut done = [0u64];
    run.resume(&json!({ "iterations": iterations }), |from| {
        from.array(&mut done)?;
        from.array(&mut own)
    })?;
    let kernels = LabelKernels::new(&gpu.device)?;
    let (mut labels, many) = (stream.uploaded(&own)?, stream.uploaded(&many)?);
    let mut next = DeviceBuf::new(&gpu.device, n)?;
    let mut converged = false;
    for iteration in done[0]..iterations as u64 {
        graph.cancel().check("propagate labels")?;
        let changed = kernels.propagate(&stream, &lists, &labels, &mut next, &many)?;
        std::mem::swap(&mut labels, &mut next);
        run.iteration("lists", f64::from(changed));
        converged = changed == 0;
        if converged {
            break;
        }
        run.keep(|to| {
            to.array(&[iteration + 1]);
            to.array(&stream.download(&labels, n)?);
            Ok(())
        })?;
    }
    let report = run.finish(converged)?;
    let labels = stream.download(&labels, n)?;
    Ok(Ok((graph.order().to_user(labels, 1)?, report)))
}

/// What an algorithm needs on the device beside the neighbour lists.
pub(super) struct Needs {
    /// The arcs that make a vertex's list.
    pub(super) side: Side,
    /// Bytes of device memory a vertex.
    pub(super) state: u64,
    /// Whether a list has each neighbour once, ascending, and not the vertex itself.
    pub(super) is_simple: bool,
    /// The neighbours of more than which a vertex has many; `None` if that is not asked.
    pub(super) few: Option<u32>,
}

/// Numbers of neighbours and of triangles.
const WEDGES: Needs = Needs { side: Side::Both, state: 12, is_simple: true, few: None };
/// Degrees, and the queue.
const CORES: Needs = Needs { side: Side::Both, state: 8, is_simple: true, few: None };
/// Labels before and after an iteration, and the vertices of many neighbours.
const LABELS: Needs =
    Needs { side: Side::Both, state: 12, is_simple: false, few: Some(LabelKernels::FEW) };

/// A run whose lists are on the device.
pub(super) struct Loaded<'a> {
    pub(super) run: Run<'a>,
    pub(super) stream: Stream,
    pub(super) lists: DeviceLists,
    /// The vertices of many neighbours, those with most first.
    pub(super) many: Vec<u32>,
}

/// Has the lists of all vertices on the device, beside what the algorithm needs; or says why not.
pub(super) fn load<'a>(
    graph: &'a Graph,
    gpu: &Gpu,
    needs: Needs,
    name: &'static str,
    progress: &'a dyn Progress,
) -> Result<OnGpu<Loaded<'a>>> {
    let (n, side) = (graph.vertices() as u64, needs.side);
    let of_lists = n * 8 + RowMap::arcs(graph, side) * 4;
    let needed = of_lists + n * needs.state + (1 << 20);
    if needed > gpu.memory {
        let (needed, has) = (ByteSize(needed), ByteSize(gpu.memory));
        return Ok(Err(format!("lists of neighbours take {needed} of the GPU's memory of {has}")));
    }
    if RowMap::arcs(graph, side) >= u64::from(u32::MAX) || !RowMap::fits(graph, side)? {
        return Ok(Err("lists of all neighbours do not fit the host's memory".into()));
    }
    let _state = graph.memory().reserve_all(&RowMap::memory(graph, side)?)?;
    let degrees = ListDegrees::read(graph, side)?;
    let rows = RowMap::new(graph, &degrees)?;
    let mut rows = if needs.is_simple { rows.simple() } else { rows };
    let mut run = Run::start(graph, name, 0, progress).with_passes_of(rows.round_bytes());
    let begin = Instant::now();
    let Some(made) = rows.whole()? else {
        return Ok(Err("lists of all neighbours do not fit the host's memory".into()));
    };
    let stream = Stream::new(&gpu.device)?;
    let (starts, ends, targets) = made.arrays();
    let lists = DeviceLists::upload(&stream, starts, ends, targets)?;
    let count = |v: u32| ends[v as usize] - starts[v as usize];
    let has_many = |&v: &u32| needs.few.is_some_and(|few| count(v) > few);
    let mut many: Vec<u32> = (0..n as u32).filter(has_many).collect();
    many.sort_by_key(|&v| Reverse(count(v)));
    run.begin_on(GpuReport {
        name: gpu.device.name().to_owned(),
        transfers: gpu.options.transfers,
        direct: None,
        device_blocks_planned_bytes: gpu.memory - n * needs.state,
        device_resident_bytes: of_lists,
        device_resident_why: "lists of all neighbours are on the device".into(),
        host_resident_bytes: 0,
        host_resident_why: "the host has made the lists".into(),
        pinned: None,
        loaded_bytes: of_lists,
        load_seconds: begin.elapsed().as_secs_f64(),
        busy: None,
    });
    Ok(Ok(Loaded { run, stream, lists, many }))
}
