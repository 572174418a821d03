//! PageRank, personalised PageRank and random walk with restart on a GPU.
//!
//! As [`crate::pagerank`]: what vertices hand on is float32, its sums are float64, results are the
//! CPU's to about 10⁻⁶ relative and differ in the last bits from run to run. 16 bytes of device
//! memory a vertex, 20 if personalised.

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{Ranks, Sum, Vertices};
use tiergraph_graph::{Direction, Graph};

use super::Gpu;
use super::pass::{Passes, zeroed};
use crate::pagerank::{Isolated, Jump, PageRank, Sums, Teleport, check, linked, start};
use crate::pull::padded;
use crate::report::{Run, RunReport};

/// Runs PageRank; the ranks come in the user's order of vertices and sum to 1.
///
/// # Errors
/// As [`crate::pagerank()`], and state that does not fit the device.
pub fn pagerank(
    graph: &Graph,
    gpu: &Gpu,
    options: &PageRank,
    progress: &dyn Progress,
) -> Result<(Vec<f32>, RunReport)> {
    check(graph, options)?;
    let n = graph.vertices();
    let mut degrees = graph.degrees(Direction::Out)?;
    let teleport = Teleport::new(n, &options.sources);
    let linked = linked(graph, &degrees, &teleport)?;
    degrees.truncate(linked);
    let len = padded(graph, linked);
    let _host = graph.reserve(n as u64 * 12, "the ranks")?;
    let mut passes: Passes<'_, Sum> = Passes::new(graph, gpu, Direction::In, len as u64 * 20)?;
    let mut isolated = Isolated::new(n - linked, &teleport);
    let mut x = vec![0f32; len];
    let mut sums = start(&mut x, &degrees, &teleport) + isolated.sums(0.0);
    let mut state = State::new(&passes, gpu, &x, &degrees, &teleport)?;
    passes.load()?;
    let mut run = Run::start(graph, "pagerank", options.iterations as u64, progress).on(gpu);
    let mut converged = options.tolerance.is_none() || n == 0;
    for _ in 0..options.iterations {
        passes.run(&Sum { x: state.x.address(), y: state.y.address() }, None)?;
        let jump = (1.0 - options.damping) + options.damping * sums.sinks;
        let jump = Jump { jump, damping: options.damping, teleport: &teleport };
        sums = state.update(&passes, &jump)? + isolated.update(&jump);
        run.iteration("pass", sums.change);
        if options.tolerance.is_some_and(|t| sums.change < t) {
            converged = true;
            break;
        }
    }
    let report = run.finish(converged)?;
    let mut x = passes.stream.download(&state.x, linked)?;
    for (rank, &degree) in x.iter_mut().zip(&degrees) {
        *rank *= degree.max(1) as f32;
    }
    drop(degrees);
    x.resize(n, isolated.rank as f32);
    Ok((graph.to_user_order(x, 1)?, report))
}

/// What is on the device.
struct State {
    x: DeviceBuf<f32>,
    y: DeviceBuf<f64>,
    degrees: DeviceBuf<u32>,
    teleport: Option<DeviceBuf<f32>>,
    sums: DeviceBuf<f64>,
    vertices: Vertices,
}

impl State {
    fn new(
        passes: &Passes<'_, Sum>,
        gpu: &Gpu,
        x: &[f32],
        degrees: &[u32],
        teleport: &Teleport,
    ) -> Result<Self> {
        let stream = &passes.stream;
        let teleport = match teleport {
            Teleport::All(_) => None,
            Teleport::Sources(_) => {
                let mut probability = vec![0f32; degrees.len()];
                teleport.each(0, degrees.len(), |v, p| probability[v] = p as f32);
                Some(stream.uploaded(&probability)?)
            }
        };
        let state = Self {
            x: stream.uploaded(x)?,
            y: zeroed(&gpu.device, stream, x.len())?,
            degrees: stream.uploaded(degrees)?,
            teleport,
            sums: zeroed(&gpu.device, stream, 2)?,
            vertices: Vertices::new(&gpu.device)?,
        };
        stream.synchronize()?;
        Ok(state)
    }

    /// Makes the next ranks; gives the sums over all vertices here.
    fn update(&mut self, passes: &Passes<'_, Sum>, jump: &Jump<'_>) -> Result<Sums> {
        let stream = &passes.stream;
        stream.fill_bytes(&mut self.sums, 0)?;
        let ranks = Ranks {
            x: &mut self.x,
            y: &mut self.y,
            degrees: &self.degrees,
            teleport: self.teleport.as_ref(),
            sums: &mut self.sums,
            jump: jump.jump,
            even: jump.even(),
            damping: jump.damping,
        };
        self.vertices.next_ranks(stream, &ranks)?;
        let sums = stream.download(&self.sums, 2)?;
        Ok(Sums { sinks: sums[0], change: sums[1] })
    }
}
