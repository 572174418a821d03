//! Betweenness on a GPU: one source after the other, each level by all threads.
//!
//! The result is that of [`crate::betweenness`] up to the last bits, in which the order of additions shows. 32 bytes of
//! device memory a vertex, and the lists of out-neighbours.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::PathKernels;
use tiergraph_graph::Graph;

use super::Gpu;
use super::device_lists::{Loaded, Needs, OnGpu, load};
use crate::paths::OfSources;
use crate::report::RunReport;
use crate::row_map::Side;
use crate::source::check_source;

/// Betweenness of every vertex, as [`crate::betweenness`].
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, any error of a pass or of the driver.
pub fn betweenness(
    graph: &Graph,
    gpu: &Gpu,
    sources: &[u32],
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<f64>, RunReport)>> {
    let n = graph.vertices();
    sources.iter().try_for_each(|&s| check_source(graph, "count paths from vertex", s))?;
    let _sums = graph.memory().reserve(n as u64 * 16, "the sums")?;
    // Depths, paths, what depends on vertices, the sums, and the queue.
    let needs = Needs { side: Side::Out, state: 32, ..Needs::EVERY_ARC };
    let loaded = load(graph, gpu, needs, "betweenness", progress)?;
    let Loaded { mut run, stream, lists, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let (mut sums, mut done) = (vec![0.0; n], [0u64]);
    run.resume(&OfSources { sources }, |from| {
        from.array(&mut done)?;
        from.array(&mut sums)
    })?;
    let mut paths = PathKernels::new(&gpu.device, stream.uploaded(&sums)?)?;
    for &source in &sources[(done[0] as usize).min(sources.len())..] {
        graph.cancel().check("count paths")?;
        paths.add(&stream, &lists, source)?;
        done[0] += 1;
        run.iteration("lists", 0.0);
        run.keep(|to| {
            to.array(&done);
            to.array(&stream.download(paths.sums(), n)?);
            Ok(())
        })?;
    }
    let sums = stream.download(paths.sums(), n)?;
    let report = run.finish(true)?;
    Ok(Ok((graph.order().to_user(sums, 1)?, report)))
}
