//! Weakly connected components on a GPU: union-find in one pass over the arcs.
//!
//! The result is that of [`crate::wcc`], bit for bit. 4 bytes of device memory a vertex.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{ForestKernels, Join, ValueKernels};
use tiergraph_graph::{Direction, Graph, NextPass};

use super::Gpu;
use super::pass::Passes;
use super::vertices::Order;
use crate::components::memory;
use crate::edge_map::padded;
use crate::labels::canonical_labels;
use crate::report::{Run, RunReport};

/// Labels every vertex, in the user's order, with the first position in its weakly connected component.
///
/// # Errors
/// State that does not fit the device, any error of a pass.
pub fn wcc(graph: &Graph, gpu: &Gpu, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    let state = padded(graph, n);
    let _host = graph.memory().reserve_all(&memory(graph))?;
    let mut passes: Passes<'_, Join> = Passes::new(graph, gpu, Direction::In, state as u64 * 4)?;
    let forest = ForestKernels::new(&gpu.device)?;
    let mut parent = DeviceBuf::new(&gpu.device, state)?;
    forest.plant(&passes.stream, &mut parent)?;
    passes.stream.synchronize()?;
    let mut run = Run::start(graph, "wcc", 1, progress);
    passes.load_whole()?;
    run.begin_on(passes.report());
    passes.run(&[Join { parent: parent.ptr() }], None, NextPass::Unknown)?;
    forest.compress(&passes.stream, &mut parent)?;
    passes.stream.synchronize()?;
    run.iteration("pass", 0.0);
    let report = run.finish(true)?;
    match passes.order(2 * size_of::<u32>())? {
        // A root is its tree's smallest vertex.
        Order::Same => {}
        Order::ByDevice(positions) => {
            let mut least = DeviceBuf::new(&gpu.device, state)?;
            ValueKernels::new(&gpu.device)?.fill(&passes.stream, &mut least, u32::MAX)?;
            forest.label(&passes.stream, &mut parent, &positions, &mut least)?;
        }
        Order::ByHost => {
            let roots = passes.download(&parent, graph.tiles().vertices())?;
            return Ok((canonical_labels(graph, |v| roots[v])?, report));
        }
    }
    Ok((passes.to_user_order(&parent, n, 0)?, report))
}
