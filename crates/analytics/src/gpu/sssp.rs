//! Single-source shortest paths on a GPU: Bellman-Ford over active tiles, in place.
//!
//! The result is that of [`crate::sssp`], bit for bit. 8 bytes of device memory a vertex. Once passes
//! took longer than lists in memory would, the CPU does the rest along those, if they fit the memory.

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{Relax, ValueKernels};
use tiergraph_graph::{Direction, Graph, NextPass};

use super::Gpu;
use super::pass::{ActiveFlags, Passes, zeroed};
use crate::adjacency::Adjacency;
use crate::edge_map::ActiveTiles;
use crate::edge_map::{chunk_log2, padded};
use crate::report::{Run, RunReport};
use crate::source::{check_source, with_state};
use crate::sssp::Distances;
use crate::sssp::near::Near;

/// The distance of each vertex, in the user's order, from `source`, a vertex by its internal id;
/// infinity where there is no path. Without weights, every arc weighs 1.
///
/// # Errors
/// A source that is no vertex, state that does not fit the device, any error of a pass.
pub fn sssp(
    graph: &Graph,
    gpu: &Gpu,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<f64>, RunReport)> {
    let n = graph.vertices();
    check_source(graph, "find paths from vertex", source)?;
    let (state, log2) = (padded(graph, n), chunk_log2(graph));
    let _host = graph.memory().reserve(n as u64 * 16, "the distances")?;
    let mut passes: Passes<'_, Relax> = Passes::new(graph, gpu, Direction::In, state as u64 * 8)?;
    let mut distance = DeviceBuf::new(&gpu.device, state)?;
    let values = ValueKernels::new(&gpu.device)?;
    values.fill(&passes.stream, &mut distance, f64::INFINITY)?;
    passes.stream.upload_at(&mut distance, source as usize, &[0.0])?;
    let mut flags = Flags::new(&passes, gpu, state.div_ceil(1 << log2), source >> log2)?;
    let mut run = Run::start(graph, "sssp", 0, progress);
    passes.load()?;
    run.begin_on(passes.report());
    let with_state = with_state(graph, source);
    let host_flags = with_state.div_ceil(1 << log2);
    run.resume(&json!({ "source": source }), |from| {
        passes.stream.upload_at(&mut distance, 0, &from.list::<f64>(with_state)?)?;
        from.array(&mut flags.host[..host_flags])?;
        passes.stream.upload_at(&mut flags.now, 0, &flags.host)?;
        passes.stream.synchronize()
    })?;
    loop {
        let program = Relax {
            distance: distance.ptr(),
            lowered: flags.next.ptr(),
            count: flags.count.ptr(),
            log2,
        };
        let active = ActiveFlags { host: &flags.host, device: &flags.now };
        passes.run(&[program], Some(active), NextPass::Unknown)?;
        let lowered = flags.turn(&passes)?;
        run.iteration("tiles", f64::from(lowered));
        if lowered == 0 {
            break;
        }
        run.keep(|to| {
            to.array(&passes.download(&distance, with_state)?);
            to.array(&passes.stream.download(&flags.now, host_flags)?);
            Ok(())
        })?;
        if Adjacency::pays(graph, &run, true, n as u64 * 24)
            && let Some(near) = Near::new(graph)?
        {
            let flags = passes.stream.download(&flags.now, flags.now.len())?;
            let reached = passes.download(&distance, n)?;
            drop((passes, distance));
            let active = ActiveTiles::of(&flags, log2);
            let distances = Distances::new(graph.thread_pool(), n, |v| reached[v])?;
            drop(reached);
            near.finish(graph, &distances, |v| active.has(v), &mut run)?;
            let report = run.finish(true)?;
            let reached = distances.to_vec(graph.thread_pool())?;
            drop(distances);
            return Ok((graph.order().to_user(reached, 1)?, report));
        }
    }
    let report = run.finish(true)?;
    Ok((passes.to_user_order(&distance, n, f64::INFINITY)?, report))
}

/// Flags of the tiles that are active now and in the next pass, and the count of fallen distances.
struct Flags {
    host: Vec<u8>,
    now: DeviceBuf<u8>,
    next: DeviceBuf<u8>,
    count: DeviceBuf<u32>,
}

impl Flags {
    /// Flags for `tiles` tiles, of which number `set` is active.
    fn new(passes: &Passes<'_, Relax>, gpu: &Gpu, tiles: usize, set: u32) -> Result<Self> {
        let mut host = vec![0u8; tiles];
        host[set as usize] = 1;
        let now = passes.stream.uploaded(&host)?;
        let next = zeroed(&gpu.device, &passes.stream, tiles)?;
        let count = zeroed(&gpu.device, &passes.stream, 1)?;
        passes.stream.synchronize()?;
        Ok(Self { host, now, next, count })
    }

    /// Makes the tiles active in which distances fell; returns how many distances that were.
    fn turn(&mut self, passes: &Passes<'_, Relax>) -> Result<u32> {
        let stream = &passes.stream;
        std::mem::swap(&mut self.now, &mut self.next);
        if passes.looks_at_flags() {
            self.host = stream.download(&self.now, self.now.len())?;
        }
        let count = stream.download(&self.count, 1)?[0];
        stream.fill_bytes(&mut self.next, 0)?;
        stream.fill_bytes(&mut self.count, 0)?;
        Ok(count)
    }
}
