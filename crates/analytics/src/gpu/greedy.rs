//! Independent sets and colourings on a GPU: what was decided of the vertices before a vertex decides it.
//!
//! Results are those of the CPU ([`crate::structure`]), number by number, because they are those of the order alone.
//! Each vertex waits for a count of neighbours (Jones and Plassmann, 1993), so that its list is looked at three times,
//! however many rounds there are. 20 bytes of device memory a vertex, and the lists.

use std::sync::atomic::Ordering;

use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_gpu::kernels::{Choice, GreedyKernels};
use tiergraph_graph::Graph;

use super::Gpu;
use super::device_lists::{Loaded, Needs, OnGpu, load};
use crate::report::RunReport;
use crate::structure::{color_priority, priorities, set_priority};

/// A maximal independent set, as [`crate::independent_set`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn independent_set(
    graph: &Graph,
    gpu: &Gpu,
    seed: u64,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    decide(graph, gpu, ("independent_set", Choice::Set), set_priority(seed), progress)
}

/// Colours, as [`crate::coloring`].
///
/// # Errors
/// State that does not fit the memory, any error of a pass or of the driver.
pub fn coloring(
    graph: &Graph,
    gpu: &Gpu,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    decide(graph, gpu, ("coloring", Choice::Color), color_priority, progress)
}

fn decide(
    graph: &Graph,
    gpu: &Gpu,
    (name, choice): (&'static str, Choice),
    priority: impl Fn(u32, u64) -> u64 + Sync,
    progress: &dyn Progress,
) -> Result<OnGpu<(Vec<u32>, RunReport)>> {
    let n = graph.vertices();
    let _states = graph.memory().reserve(n as u64 * 16, "the vertices' states")?;
    // Priorities, states, what is waited for, and the queue.
    let needs = Needs { state: 20, ..Needs::SIMPLE };
    let Loaded { mut run, stream, lists, .. } = match load(graph, gpu, needs, name, progress)? {
        Ok(loaded) => loaded,
        Err(why) => return Ok(Err(why)),
    };
    let of: Vec<u64> =
        priorities(graph, priority)?.iter().map(|own| own.load(Ordering::Relaxed)).collect();
    let priority = stream.uploaded(&of)?;
    drop(of);
    let mut pass = GreedyKernels::new(&gpu.device, &stream, &lists, priority, choice)?;
    let mut open = n;
    while open > 0 {
        graph.cancel().check("decide the vertices")?;
        let rounds = pass.rounds(&stream, &lists)?;
        if rounds.is_empty() {
            let error = Error::new(ErrorKind::Internal, "decide the vertices");
            return Err(error
                .expected("one that waits for no other")
                .got(format!("none of {open}")));
        }
        for decided in rounds {
            run.iteration("round", f64::from(decided));
            open -= decided as usize;
        }
    }
    let report = run.finish(true)?;
    let decided = stream.download(pass.state(), n)?;
    Ok(Ok((graph.order().to_user(decided, 1)?, report)))
}
