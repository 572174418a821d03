//! What the two vertices of a pair have in common, on a GPU, by their lists of different neighbours.
//!
//! Counts are the CPU's; sums of values that are not whole agree up to their last bits. Device memory: 8 bytes a vertex
//! where neighbours do not all count the same, some pairs, and the lists.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::PairKernels;
use tiergraph_graph::Graph;

use super::Gpu;
use super::device_cache::Listed;
use super::device_lists::{Loaded, Needs, OnGpu, load};
use crate::report::RunReport;
use crate::row_map::Side;
use crate::structure::{InCommon, Values, Weighed, check_pairs};

/// Pairs that are compared together: so many that starting kernels takes no time beside copying them.
const TOGETHER: usize = 1 << 20;
/// Bytes of host memory of a pair: its results, and those of pairs that are compared on their way.
const PAIR_BYTES: u64 = 40;

/// The neighbours that both vertices of each pair have, as [`crate::in_common`].
///
/// # Errors
/// Pairs of what are no vertices, 2³² pairs or more, state that does not fit the memory, any error of a pass or of
/// the driver.
pub fn in_common(
    graph: &Graph,
    gpu: &Gpu,
    pairs: &[[u32; 2]],
    weighed: Weighed,
    progress: &dyn Progress,
) -> Result<OnGpu<(InCommon, RunReport)>> {
    check_pairs(graph, pairs)?;
    let (n, most) = (graph.vertices(), pairs.len().min(TOGETHER));
    let (value_bytes, of_host) = if weighed == Weighed::Alike { (0, 0) } else { (8, 12) };
    let bytes = pairs.len() as u64 * PAIR_BYTES + n as u64 * of_host;
    let _state = graph.memory().reserve(bytes, "the pairs")?;
    let of_run = (most * PairKernels::PAIR_BYTES) as u64;
    let listed = Listed::Distinct;
    let needs = Needs { side: Side::Out, state: value_bytes, of_run, listed, ..Needs::SIMPLE };
    let loaded = load(graph, gpu, needs, "similarity", progress)?;
    let Loaded { mut run, stream, lists, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let values: Option<Vec<f64>> = match weighed {
        Weighed::Alike => None,
        Weighed::ByLogarithm | Weighed::ByArcs => {
            let values = Values::of(graph, weighed)?;
            Some((0..n as u32).map(|w| values.value(w)).collect())
        }
    };
    let mut kernels = PairKernels::new(&stream, most, values.as_deref())?;
    drop(values);
    let (sums, neighbors) = (Vec::with_capacity(pairs.len()), Vec::with_capacity(pairs.len()));
    let mut found = InCommon { sums, neighbors };
    for part in pairs.chunks(TOGETHER) {
        graph.cancel().check("compare the pairs")?;
        let (sums, neighbors) = kernels.compare(&stream, &lists, part)?;
        found.sums.extend(sums);
        found.neighbors.extend(neighbors);
        run.iteration("intersect", part.len() as f64);
    }
    let report = run.finish(true)?;
    Ok(Ok((found, report)))
}
