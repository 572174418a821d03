//! Breadth-first search on a GPU, level by level over the tiles that the frontier touches.
//!
//! As [`crate::bfs`]: the same result, bit for bit. 4 bytes of device memory a vertex. Rows that
//! were visited are skipped before their columns are decoded, tiles without a frontier column
//! before their slices are looked at, blocks without such a tile before they are read.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::Level;
use tiergraph_graph::{Direction, Graph, Then};

use super::Gpu;
use super::pass::{Passes, zeroed};
use crate::bfs::UNREACHED;
use crate::pull::{chunk_log2, padded};
use crate::report::{Run, RunReport};
use crate::source::check_source;

/// Searches from `source`, a vertex of the graph's own order.
///
/// # Errors
/// A source that is no vertex, state that does not fit the device, whatever a pass gives.
pub fn bfs(
    graph: &Graph,
    gpu: &Gpu,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    check_source(graph, "search from vertex", source)?;
    let (state, log2) = (padded(graph, n), chunk_log2(graph));
    let _host = graph.reserve(n as u64 * 8, "the distances")?;
    let mut passes: Passes<'_, Level> = Passes::new(graph, gpu, Direction::In, state as u64 * 4)?;
    let mut depth = vec![UNREACHED; state];
    depth[source as usize] = 0;
    let depth = passes.stream.uploaded(&depth)?;
    let mut flags = Flags::new(&passes, gpu, state.div_ceil(1 << log2), source >> log2)?;
    passes.load()?;
    let mut run = Run::start(graph, "bfs", 0, progress).on(passes.report());
    for level in 0.. {
        let program = Level {
            depth: depth.address(),
            reached: flags.next.address(),
            count: flags.count.address(),
            level,
            log2,
        };
        passes.run(&[program], Some((&flags.host, &flags.now)), Then::Stop)?;
        let reached = flags.turn(&passes)?;
        run.iteration("tiles", f64::from(reached));
        if reached == 0 {
            break;
        }
    }
    let report = run.finish(true)?;
    let depth = passes.stream.download(&depth, n)?;
    Ok((graph.to_user_order(depth, 1)?, report))
}

/// Which tiles are active now and next, and how many vertices changed.
pub(super) struct Flags {
    pub host: Vec<u8>,
    pub now: DeviceBuf<u8>,
    pub next: DeviceBuf<u8>,
    pub count: DeviceBuf<u32>,
}

impl Flags {
    /// `tiles` flags, of which one is set.
    pub fn new<P: tiergraph_gpu::kernels::Program>(
        passes: &Passes<'_, P>,
        gpu: &Gpu,
        tiles: usize,
        set: u32,
    ) -> Result<Self> {
        let mut host = vec![0u8; tiles];
        host[set as usize] = 1;
        let now = passes.stream.uploaded(&host)?;
        let next = zeroed(&gpu.device, &passes.stream, tiles)?;
        let count = zeroed(&gpu.device, &passes.stream, 1)?;
        passes.stream.synchronize()?;
        Ok(Self { host, now, next, count })
    }

    /// Makes what was set next current; gives how many vertices changed.
    pub fn turn<P: tiergraph_gpu::kernels::Program>(
        &mut self,
        passes: &Passes<'_, P>,
    ) -> Result<u32> {
        let stream = &passes.stream;
        std::mem::swap(&mut self.now, &mut self.next);
        self.host = stream.download(&self.now, self.now.len())?;
        let count = stream.download(&self.count, 1)?[0];
        stream.fill_bytes(&mut self.next, 0)?;
        stream.fill_bytes(&mut self.count, 0)?;
        stream.synchronize()?;
        Ok(count)
    }
}
