//! Algorithms on a GPU over neighbour lists that are whole in its memory: triangles, clustering, cores.
//!
//! The host makes the lists, as for the CPU ([`RowMap`]), and copies them once; a list has each neighbour once,
//! ascending, whichever way edges lead. Results are those of the CPU, number by number. Where the lists do not fit
//! both memories, nothing is done, and the caller is told why.

use std::time::Instant;

use tiergraph_core::{ByteSize, Progress, Result};
use tiergraph_format::manifest::Order;
use tiergraph_gpu::kernels::{CoreKernels, DeviceLists, TriangleKernels};
use tiergraph_gpu::{DeviceBuf, Stream};
use tiergraph_graph::Graph;
use tiergraph_mem::Array;

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
/// As [`triangles`].
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
    // Numbers of neighbours and of triangles.
    let Loaded { mut run, stream, mut lists } = match load(graph, gpu, 12, name, progress)? {
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
/// As [`triangles`].
pub fn core_numbers(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    let n = graph.vertices();
    let _cores = graph.memory().reserve(n as u64 * 8, "the core numbers")?;
    let state = 4 + CoreKernels::bytes(n).div_ceil(n.max(1) as u64);
    let Loaded { mut run, stream, lists } = match load(graph, gpu, state, "kcore", progress)? {
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

/// A run whose lists are on the device.
struct Loaded<'a> {
    run: Run<'a>,
    stream: Stream,
    lists: DeviceLists,
}

/// Has the lists of all vertices on the device, beside `state` bytes a vertex; or says why not.
fn load<'a>(
    graph: &'a Graph,
    gpu: &Gpu,
    state: u64,
    name: &'static str,
    progress: &'a dyn Progress,
) -> Result<OnGpu<Loaded<'a>>> {
    let (n, side) = (graph.vertices() as u64, Side::Both);
    let of_lists = n * 8 + RowMap::arcs(graph, side) * 4;
    let needed = of_lists + n * state;
    if needed > gpu.memory {
        let (needed, has) = (ByteSize(needed), ByteSize(gpu.memory));
        return Ok(Err(format!("lists of neighbours take {needed} of the GPU's memory of {has}")));
    }
    if RowMap::arcs(graph, side) >= u64::from(u32::MAX) || !RowMap::fits(graph, side)? {
        return Ok(Err("lists of all neighbours do not fit the host's memory".into()));
    }
    let _state = graph.memory().reserve_all(&RowMap::memory(graph, side)?)?;
    let degrees = ListDegrees::read(graph, side)?;
    let mut rows = RowMap::new(graph, &degrees)?.simple();
    let mut run = Run::start(graph, name, 0, progress).with_passes_of(rows.round_bytes());
    let begin = Instant::now();
    let Some(made) = rows.whole()? else {
        return Ok(Err("lists of all neighbours do not fit the host's memory".into()));
    };
    let stream = Stream::new(&gpu.device)?;
    let (starts, ends, targets) = made.arrays();
    let lists = DeviceLists::upload(&stream, starts, ends, targets)?;
    run.begin_on(GpuReport {
        name: gpu.device.name().to_owned(),
        transfers: gpu.options.transfers,
        direct: None,
        device_blocks_planned_bytes: gpu.memory - n * state,
        device_resident_bytes: of_lists,
        device_resident_why: "lists of all neighbours are on the device".into(),
        host_resident_bytes: 0,
        host_resident_why: "the host has made the lists".into(),
        pinned: None,
        loaded_bytes: of_lists,
        load_seconds: begin.elapsed().as_secs_f64(),
        busy: None,
    });
    Ok(Ok(Loaded { run, stream, lists }))
}
