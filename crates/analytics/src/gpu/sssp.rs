//! Single-source shortest paths on a GPU: Bellman-Ford over active tiles, in place.
//!
//! As [`crate::sssp`]: the same result, bit for bit. 8 bytes of device memory a vertex.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::kernels::Relax;
use tiergraph_graph::{Direction, Graph, Then};

use super::Gpu;
use super::bfs::Flags;
use super::pass::Passes;
use crate::pull::{chunk_log2, padded};
use crate::report::{Run, RunReport};
use crate::source::check_source;

/// Finds the distances from `source`, a vertex of the graph's own order. Without weights, every
/// arc weighs 1.
///
/// # Errors
/// A source that is no vertex, state that does not fit the device, whatever a pass gives.
pub fn sssp(
    graph: &Graph,
    gpu: &Gpu,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<f64>, RunReport)> {
    let n = graph.vertices();
    check_source(graph, "find paths from vertex", source)?;
    let (state, log2) = (padded(graph, n), chunk_log2(graph));
    let _host = graph.reserve(n as u64 * 16, "the distances")?;
    let mut passes: Passes<'_, Relax> = Passes::new(graph, gpu, Direction::In, state as u64 * 8)?;
    let mut distance = vec![f64::INFINITY; state];
    distance[source as usize] = 0.0;
    let distance = passes.stream.uploaded(&distance)?;
    let mut flags = Flags::new(&passes, gpu, state.div_ceil(1 << log2), source >> log2)?;
    passes.load()?;
    let mut run = Run::start(graph, "sssp", 0, progress).on(passes.report());
    loop {
        let program = Relax {
            distance: distance.address(),
            lowered: flags.next.address(),
            count: flags.count.address(),
            log2,
            unused: 0,
        };
        passes.run(&[program], Some((&flags.host, &flags.now)), Then::Stop)?;
        let lowered = flags.turn(&passes)?;
        run.iteration("tiles", f64::from(lowered));
        if lowered == 0 {
            break;
        }
    }
    let report = run.finish(true)?;
    let distance = passes.stream.download(&distance, n)?;
    Ok((graph.to_user_order(distance, 1)?, report))
}
