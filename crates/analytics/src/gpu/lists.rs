//! Algorithms on a GPU over neighbour lists that are whole in its memory: triangles, clustering, cores, labels.
//!
//! But for labels, a list has each neighbour once, ascending, whichever way edges lead. Results are those of the CPU,
//! number by number. Where the lists do not fit, nothing is done, and the caller is told why.

use std::sync::atomic::Ordering;

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_format::manifest::Order;
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{Closed, CoreKernels, LabelKernels, TriangleKernels};
use tiergraph_graph::Graph;
use tiergraph_mem::{Array, as_atomic, zeroed_vec};

use super::Gpu;
use super::device_cache::Listed;
use super::device_lists::{Loaded, Needs, OnGpu, load};
use super::pass::zeroed;
use crate::report::RunReport;
use crate::structure::{Mutual, Triangles, WedgesClosed, clustering_of, mutual_of, triangles_of};

/// Numbers of neighbours and of triangles.
const WEDGES: Needs = Needs { state: 12, ..Needs::SIMPLE };
/// Degrees, and the queue.
const CORES: Needs = Needs { state: 8, ..Needs::SIMPLE };
/// Labels before and after an iteration, and the vertices of many neighbours.
const LABELS: Needs = Needs { state: 12, few: Some(LabelKernels::FEW), ..Needs::EVERY_ARC };

/// Counts triangles, as [`crate::triangles`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn triangles(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Triangles, RunReport)>> {
    match close(graph, gpu, "triangles", Closed::Edges, progress)? {
        Ok(found) => Ok(Ok(triangles_of(graph, found)?)),
        Err(why) => Ok(Err(why)),
    }
}

/// Local clustering coefficients, as [`crate::clustering`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn clustering(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<f64>, RunReport)>> {
    let what = if graph.manifest().directed { Closed::Arcs } else { Closed::Edges };
    match close(graph, gpu, "clustering", what, progress)? {
        Ok(found) => Ok(Ok(clustering_of(graph, found)?)),
        Err(why) => Ok(Err(why)),
    }
}

fn close(
    graph: &Graph,
    gpu: &Gpu,
    name: &'static str,
    what: Closed,
    progress: &dyn Progress,
) -> Result<OnGpu<WedgesClosed>> {
    let n = graph.vertices();
    let _counts = graph.memory().reserve(n as u64 * 24, "the counts")?;
    let is_ordered = graph.manifest().order == Order::Degree;
    // Lists in any other order are copied in part.
    let of_arcs = if is_ordered { 0 } else { 4 };
    let listed = if what == Closed::Arcs { Listed::Joined } else { Listed::Simple };
    let needs = Needs { of_arcs, listed, ..WEDGES };
    let loaded = load(graph, gpu, needs, name, progress)?;
    let Loaded { mut run, stream, lists, kernels: of_lists, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let kernels = TriangleKernels::new(&gpu.device, what)?;
    let mut neighbors = DeviceBuf::new(&gpu.device, n)?;
    of_lists.count(&stream, &lists, &mut neighbors)?;
    let lists = kernels.higher(&stream, &lists, &neighbors, is_ordered)?;
    let mut closed = zeroed(&gpu.device, &stream, n)?;
    let mut next = zeroed(&gpu.device, &stream, 1)?;
    kernels.close(&stream, &lists, &mut closed, &mut next)?;
    let of = stream.download(&closed, n)?;
    run.iteration("intersect", of.iter().sum::<u64>() as f64 / 3.0);
    let report = run.finish(true)?;
    let closed = Array::from_fn(graph.thread_pool(), n, |v| of[v])?;
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
    let Loaded { mut run, stream, lists, kernels: of_lists, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let mut degrees = DeviceBuf::new(&gpu.device, n)?;
    of_lists.count(&stream, &lists, &mut degrees)?;
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

/// Mutual neighbours, as [`crate::mutual`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn mutual(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Mutual, RunReport)>> {
    let n = graph.vertices();
    let _counts = graph.memory().reserve(n as u64 * 8, "the counts")?;
    let directed = graph.manifest().directed;
    let listed = if directed { Listed::Sides } else { Listed::Simple };
    let needs = Needs { state: 4, listed, ..Needs::SIMPLE };
    let loaded = load(graph, gpu, needs, "mutual", progress)?;
    let Loaded { mut run, stream, lists, kernels, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let (of, all) = if directed {
        kernels.mutual(&stream, &lists)?
    } else {
        let mut counts = DeviceBuf::new(&gpu.device, n)?;
        kernels.count(&stream, &lists, &mut counts)?;
        let of = stream.download(&counts, n)?;
        let all = of.iter().map(|&count| u64::from(count)).sum();
        (of, all)
    };
    run.iteration("lists", 0.0);
    Ok(Ok(mutual_of(graph, of, all, run.finish(true)?)?))
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
    let Loaded { mut run, stream, lists, many, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let mut own: Vec<u32> = zeroed_vec(n);
    let places = as_atomic(&mut own);
    graph.order().for_each_position(n, |v, position| {
        places[v].store(position as u32, Ordering::Relaxed);
    })?;
    let mut done = [0u64];
    run.resume(&json!({ "iterations": iterations }), |from| {
        from.array(&mut done)?;
        from.array(&mut own)
    })?;
    let kernels = LabelKernels::new(&gpu.device)?;
    let mut labels = stream.uploaded(&own)?;
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
