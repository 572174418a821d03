//! Breadth-first search on a GPU, level by level.
//!
//! The result is that of [`crate::bfs`], bit for bit. A pass over tiles visits those with a frontier
//! column: rows that can neither be reached nor reach others are skipped before their columns are
//! decoded, the others stop at the first frontier vertex that they find. Other tiles are skipped before
//! their slices are looked at, blocks without such a tile before they are read. Over raw blocks,
//! unvisited rows look for a frontier vertex and stop at the first, or, in undirected graphs, the
//! frontier's rows give to their neighbours, whichever has fewer arcs to look at. 4 bytes of device
//! memory a vertex; 8 over raw blocks of undirected graphs.
//!
//! Where blocks stream to the device and a level has few vertices, the pages that have their lists are read
//! instead, if they cost less ([`FrontierPages`]).
//!
//! A level is some launches and a copy, whatever its frontier. Once levels took longer than lists in
//! memory do, the search ends along those, on the CPU, if they fit the memory ([`Adjacency`]).

use std::sync::atomic::AtomicU32;

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_gpu::DeviceBuf;
use tiergraph_gpu::kernels::{Frontier, Level, LevelKernel, Levels, ValueKernels};
use tiergraph_graph::{Direction, Graph, NextPass};
use tiergraph_mem::Array;

use super::Gpu;
use super::frontier_pages::FrontierPages;
use super::pass::{ActiveFlags, Passes, zeroed};
use super::vertices::Values;
use crate::adjacency::Adjacency;
use crate::bfs::{UNREACHED, finish};
use crate::edge_map::{chunk_log2, padded};
use crate::report::{Run, RunReport};
use crate::source::{check_source, with_state};

/// An arc that is pushed costs as much as this many that may be pulled, most of which are not looked
/// at: Beamer, Asanović, Patterson, SC 2012.
const PUSH_COST: u64 = 14;

/// The distance in arcs of each vertex, in the user's order, from `source`, a vertex by its internal id;
/// [`UNREACHED`] where there is no path.
///
/// # Errors
/// A source that is no vertex, state that does not fit the device, any error of a pass.
pub fn bfs(
    graph: &Graph,
    gpu: &Gpu,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    check_source(graph, "search from vertex", source)?;
    let _host = graph.memory().reserve(n as u64 * 8, "the distances")?;
    let state = Search::device_bytes(graph);
    let all_fits = Passes::<Level>::fit(graph, gpu, Direction::In, state)?;
    let for_pages = FrontierPages::device_bytes(graph, gpu, all_fits);
    let mut passes: Passes<'_, Level> = Passes::new(graph, gpu, Direction::In, state + for_pages)?;
    let mut search = Search::new(graph, gpu, &passes, source)?;
    let mut run = Run::start(graph, "bfs", 0, progress);
    let mut pages = match for_pages {
        0 => None,
        bytes => FrontierPages::new(graph, &passes.stream, bytes)?,
    };
    passes.load()?;
    run.begin_on(passes.report());
    let (with_depth, mut level) = (with_state(graph, source), [0]);
    run.resume(&json!({ "source": source }), |from| {
        from.array(&mut level)?;
        passes.stream.upload_at(&mut search.depth, 0, &from.list::<u32>(with_depth)?)?;
        passes.stream.synchronize()
    })?;
    let mut found = search.find(&passes, level[0])?;
    for level in level[0].. {
        if found.vertices == 0 {
            break;
        }
        let is_pushed = match &mut pages {
            Some(pages) => search.push_pages(&passes, pages, &found, level)?,
            None => false,
        };
        let how = if is_pushed { "push" } else { search.pass(&mut passes, &found, level)? };
        found = search.find(&passes, level + 1)?;
        run.iteration(how, found.vertices as f64);
        run.keep(|to| {
            to.array(&[level + 1]);
            to.array(&passes.download(&search.depth, with_depth)?);
            Ok(())
        })?;
        let state = n as u64 * 8;
        if found.vertices > 0 && Adjacency::pays(graph, &run, false, state) {
            let depth = passes.download(&search.depth, n)?;
            run.count_frontier(pages.as_ref().map(FrontierPages::reads));
            drop((pages, passes, search));
            let _lists = graph.memory().reserve(state, "the distances and the frontier")?;
            let depth = Array::from_fn(graph.thread_pool(), n, |v| AtomicU32::new(depth[v]))?;
            let distances = finish(graph, depth, level + 1, &mut run)?;
            return Ok((distances, run.finish(true)?));
        }
    }
    run.count_frontier(pages.as_ref().map(FrontierPages::reads));
    let report = run.finish(true)?;
    Ok((passes.to_user_order(&search.depth, n, UNREACHED)?, report))
}

/// A search's state, on the device.
struct Search {
    vertices: usize,
    kernel: LevelKernel,
    depth: DeviceBuf<u32>,
    /// Each vertex's degree, where rows can push as well as pull.
    degrees: Option<Values>,
    reached: DeviceBuf<u8>,
    unvisited: DeviceBuf<u8>,
    counts: DeviceBuf<u64>,
    log2: u32,
    tiles: bool,
}

/// Counts of a level's vertices and arcs.
struct Found {
    vertices: u64,
    /// Arcs of the level's vertices; 0 where the search does not count arcs.
    arcs: u64,
    /// Arcs of unvisited vertices; 0 where the search does not count arcs.
    unvisited_arcs: u64,
    /// A flag for every tile, set if it has a vertex of the level. Empty if passes do not need flags.
    flags: Vec<u8>,
}

impl Search {
    fn new(graph: &Graph, gpu: &Gpu, passes: &Passes<'_, Level>, source: u32) -> Result<Self> {
        let (vertices, tiles, stream) =
            (graph.vertices(), graph.tiles().is_stored(), &passes.stream);
        let log2 = if tiles { chunk_log2(graph) } else { Levels::LEAST_LOG2 };
        let state = padded(graph, vertices);
        let mut depth = DeviceBuf::new(&gpu.device, state)?;
        let values = ValueKernels::new(&gpu.device)?;
        values.fill(stream, &mut depth, UNREACHED)?;
        stream.upload_at(&mut depth, source as usize, &[0])?;
        let flags = || zeroed(&gpu.device, stream, state.div_ceil(1 << log2));
        Ok(Self {
            vertices,
            kernel: LevelKernel::new(&gpu.device)?,
            depth,
            degrees: Self::pushes(graph).then(|| passes.degrees()).transpose()?,
            reached: flags()?,
            unvisited: flags()?,
            counts: zeroed(&gpu.device, stream, 3)?,
            log2,
            tiles,
        })
    }

    /// Whether rows can push as well as pull: they list the neighbours of both directions.
    fn pushes(graph: &Graph) -> bool {
        !graph.tiles().is_stored() && !graph.manifest().directed
    }

    fn device_bytes(graph: &Graph) -> u64 {
        let state = padded(graph, graph.vertices()) as u64;
        if Self::pushes(graph) { state * 8 } else { state * 4 }
    }

    fn find(&mut self, passes: &Passes<'_, Level>, level: u32) -> Result<Found> {
        let stream = &passes.stream;
        let levels = Levels {
            depth: &self.depth,
            degrees: self.degrees.as_deref(),
            reached: &mut self.reached,
            unvisited: &mut self.unvisited,
            counts: &mut self.counts,
            vertices: self.vertices,
            level,
            log2: self.log2,
        };
        self.kernel.find(stream, levels)?;
        let counts = stream.download(&self.counts, 3)?;
        let flags = if passes.looks_at_flags() { self.reached.len() } else { 0 };
        Ok(Found {
            vertices: counts[0],
            arcs: counts[1],
            unvisited_arcs: counts[2],
            flags: stream.download(&self.reached, flags)?,
        })
    }

    /// Finds the level after `level` along pages of the frontier's lists, if they cost less than its blocks;
    /// returns whether they do.
    fn push_pages(
        &self,
        passes: &Passes<'_, Level>,
        pages: &mut FrontierPages<'_>,
        found: &Found,
        level: u32,
    ) -> Result<bool> {
        if !passes.looks_at_flags() {
            return Ok(false);
        }
        let bytes = passes.missing_bytes(&found.flags)?;
        let frontier = Frontier { depth: &self.depth, vertices: self.vertices, level };
        pages.push(&passes.stream, frontier, found.vertices, bytes)
    }

    /// Finds the level after `level` by a pass; returns how.
    fn pass(
        &self,
        passes: &mut Passes<'_, Level>,
        found: &Found,
        level: u32,
    ) -> Result<&'static str> {
        let (how, program) = self.plan(found, level);
        let active = ActiveFlags { host: &found.flags, device: &self.reached };
        passes.run(&[program], Some(active), NextPass::Unknown)?;
        Ok(how)
    }

    /// The program that finds the level after `level`, and its name in the run's report.
    fn plan(&self, found: &Found, level: u32) -> (&'static str, Level) {
        let push =
            self.degrees.is_some() && found.arcs.saturating_mul(PUSH_COST) < found.unvisited_arcs;
        let how = match (self.tiles, push) {
            (true, _) => "tiles",
            (false, true) => "push",
            (false, false) => "pull",
        };
        let program = Level {
            depth: self.depth.ptr(),
            reached: self.reached.ptr(),
            unvisited: self.unvisited.ptr(),
            level,
            log2: self.log2,
            push: push.into(),
        };
        (how, program)
    }
}
