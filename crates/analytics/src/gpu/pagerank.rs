//! PageRank, personalised PageRank and random walk with restart on a GPU.
//!
//! Precision is that of [`crate::pagerank`]: values handed on are float32, sums float64. Tests hold
//! results to the CPU's within 10⁻⁴ relative; the last bits differ from run to run. 16 bytes of device
//! memory a vertex that has an arc and 4 of every other, 20 if personalised; where edges are stored
//! once, up to 4 more for [`hubs`].

use std::borrow::Cow;

use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{self, LANES, RankKernels, Sum};
use tiergraph_graph::{Direction, Graph, NextPass};
use tiergraph_mem::zeroed_vec;

use super::Gpu;
use super::pass::{Passes, zeroed};
use super::vertices::Values;
use crate::edge_map::padded;
use crate::edge_map::stored_once;
use crate::pagerank::{Jump, PageRank, Ranks, Sums, Teleport, Walk};
use crate::report::{Run, RunReport};

/// The most hubs, each of which has a sum for every lane of a warp: 2 MiB of sums. An eighth of them
/// gains nearly as much, eight times as many no more (RMAT-24).
const HUBS: usize = 8192;

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
    let mut walk = Walk::new(graph, options)?;
    let (linked, len) = (walk.linked, padded(graph, walk.linked));
    let _host = graph.memory().reserve(graph.vertices() as u64 * 8, "the ranks")?;
    let hubs = hubs(graph, linked);
    // Degrees are of all vertices.
    let state_bytes = len * 16 + graph.vertices() * 4 + hubs * LANES * size_of::<f64>();
    let mut passes: Passes<'_, Sum> = Passes::new(graph, gpu, Direction::In, state_bytes as u64)?;
    let mut state = State::new(&passes, gpu, &walk, len, hubs)?;
    let sums = state.update(&passes, &walk.beginning())?;
    let mut run = Run::start(graph, "pagerank", options.iterations as u64, progress);
    passes.load()?;
    run.begin_on(passes.report());
    let converged =
        walk.iterate(&mut run, sums, &mut OnGpu { passes: &mut passes, state: &mut state })?;
    let report = run.finish(converged)?;
    state.kernels.unscale(&passes.stream, &mut state.x, &state.degrees, linked)?;
    Ok((passes.to_user_order(&state.x, linked, walk.isolated_rank())?, report))
}

/// How many of the `linked` vertices with arcs are hubs: the first ones, which have the most arcs, where
/// edges are stored once and so rows add to columns.
fn hubs(graph: &Graph, linked: usize) -> usize {
    // Kernels count sums by u32.
    if stored_once(graph) && linked < 1 << 31 { HUBS.min(linked / 64) } else { 0 }
}

/// Ranks and passes on a GPU.
struct OnGpu<'a, 'p> {
    passes: &'a mut Passes<'p, Sum>,
    state: &'a mut State,
}

impl Ranks for OnGpu<'_, '_> {
    fn step(&mut self, jump: &Jump<'_>, next: NextPass) -> Result<Sums> {
        self.passes.run(&[self.state.program()], None, next)?;
        self.state.update(self.passes, jump)
    }

    fn get(&self) -> Result<Cow<'_, [f32]>> {
        Ok(self.passes.download(&self.state.x, self.state.linked)?.into())
    }

    fn set(&mut self, read: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()> {
        let mut ranks = zeroed_vec(self.state.linked);
        read(&mut ranks)?;
        self.passes.stream.upload_at(&mut self.state.x, 0, &ranks)?;
        self.passes.stream.synchronize()
    }
}

/// The state of a run, on the device; [`kernels::Ranks`] says what each part is.
struct State {
    x: DeviceBuf<f32>,
    y: DeviceBuf<f64>,
    hubs: u32,
    by_lane: u32,
    linked: usize,
    degrees: Values,
    teleport: Option<DeviceBuf<f32>>,
    sums: DeviceBuf<f64>,
    kernels: RankKernels,
}

impl State {
    fn new(
        passes: &Passes<'_, Sum>,
        gpu: &Gpu,
        walk: &Walk<'_>,
        len: usize,
        hubs: usize,
    ) -> Result<Self> {
        let stream = &passes.stream;
        let teleport = match walk.teleport() {
            Teleport::All(_) => None,
            Teleport::Sources(_) => {
                let mut probability = vec![0f32; walk.linked];
                walk.teleport().each(0, walk.linked, |v, p| probability[v] = p as f32);
                Some(stream.uploaded(&probability)?)
            }
        };
        Ok(Self {
            x: zeroed(&gpu.device, stream, len)?,
            y: zeroed(&gpu.device, stream, len + hubs * LANES)?,
            hubs: hubs as u32,
            by_lane: len as u32,
            linked: walk.linked,
            degrees: passes.degrees()?,
            teleport,
            sums: zeroed(&gpu.device, stream, 2)?,
            kernels: RankKernels::new(&gpu.device)?,
        })
    }

    fn program(&self) -> Sum {
        Sum { x: self.x.ptr(), y: self.y.ptr(), hubs: self.hubs, by_lane: self.by_lane }
    }

    /// Makes the next ranks; returns the sums over the vertices that have state.
    fn update(&mut self, passes: &Passes<'_, Sum>, jump: &Jump<'_>) -> Result<Sums> {
        let stream = &passes.stream;
        stream.fill_bytes(&mut self.sums, 0)?;
        let ranks = kernels::Ranks {
            vertices: self.linked,
            x: &mut self.x,
            y: &mut self.y,
            hubs: self.hubs,
            by_lane: self.by_lane,
            degrees: &self.degrees,
            teleport: self.teleport.as_ref(),
            sums: &mut self.sums,
            jump: jump.jump,
            even: jump.even(),
            damping: jump.damping,
        };
        self.kernels.next(stream, &ranks)?;
        let sums = stream.download(&self.sums, 2)?;
        Ok(Sums { sinks: sums[0], change: sums[1] })
    }
}
