//! PageRank, personalised PageRank and random walk with restart.
//!
//! Gives each vertex `PR(v) = (1 − d) t(v) + d (Σ PR(u)/deg⁺(u) + t(v) Σ PR(sink))` over its
//! in-neighbours u: `t` is 1/|V| (LDBC Graphalytics), or spread evenly over the sources of a
//! personalised run. A random walk with restart is a personalised run with one source and restart
//! probability 1 − d. Pull: each pass reads every arc that is not resident once; 16 bytes of state
//! a vertex up to the last that has an arc. Values handed on are float32, their sums are float64:
//! results are those of float64 to about 10⁻⁶ relative, and differ in the last bits from run to
//! run, because the order of additions follows the order of completions.

mod propagation_blocking;
mod sums;

use std::borrow::Cow;
use std::ops::Add;
use std::slice;

use serde::Serialize;
use tiergraph_core::{Error, ErrorKind, Progress, Result, ThreadPool};
use tiergraph_graph::{Direction, Graph, NextPass};
use tiergraph_kernels::widest;
use tiergraph_mem::{Array, MemoryPlan};

use crate::edge_map::{Chunks, chunk_log2, padded};
use crate::report::{Run, RunReport};
use sums::PullSum;

/// Vertices that a thread takes at a time.
const PART: usize = 1 << 16;

/// Options of PageRank.
#[derive(Debug, Clone, Serialize)]
pub struct PageRank {
    /// The damping factor d, in 0 to 1.
    pub damping: f64,
    /// The most iterations that a run does.
    pub iterations: usize,
    /// Ends the run when the sum of the ranks' absolute changes is below this; `None` for a fixed count.
    pub tolerance: Option<f64>,
    /// The vertices, by internal ids, that the walk restarts from; empty for all.
    pub sources: Vec<u32>,
}

impl Default for PageRank {
    /// d = 0.85, at most 100 iterations, until the ranks change by less than 10⁻⁶.
    fn default() -> Self {
        Self { damping: 0.85, iterations: 100, tolerance: Some(1e-6), sources: Vec::new() }
    }
}

/// Sums over all vertices that an iteration makes, for the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    /// The sum of the ranks of vertices without out-arcs.
    pub sinks: f64,
    /// The sum of the absolute changes of all ranks.
    pub change: f64,
}

impl Add for Sums {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { sinks: self.sinks + other.sinks, change: self.change + other.change }
    }
}

/// The PageRank of every vertex, in the user's order; all ranks sum to 1.
///
/// # Errors
/// A damping factor outside 0 to 1, a source that is no vertex, state that does not fit the
/// memory, any error of a pass.
pub fn pagerank(
    graph: &Graph,
    options: &PageRank,
    progress: &dyn Progress,
) -> Result<(Vec<f32>, RunReport)> {
    let mut walk = Walk::new(graph, options)?;
    let (linked, len) = (walk.linked, padded(graph, walk.linked));
    let _state = graph.memory().reserve_all(&memory(graph, linked))?;
    let degrees = graph.degrees().of_first(Direction::Out, linked)?;
    let x = Array::zeroed(len)?;
    // Kernels add to whole tiles' columns.
    let log2 = chunk_log2(graph);
    let y = Chunks::zeroed(linked.next_multiple_of(1 << log2), 1, log2)?;
    let mut state = OnCpu { graph, pull: PullSum::new(graph)?, degrees, x, y };
    graph.memory().plan_residency();
    let threads = graph.thread_pool();
    let sums = start(threads, &mut state.x, &state.degrees, &walk.teleport)?;
    let mut run = Run::start(graph, "pagerank", options.iterations as u64, progress);
    let converged = walk.iterate(&mut run, sums, &mut state)?;
    let report = run.finish(converged)?;
    let OnCpu { mut x, y, degrees, .. } = state;
    drop(y);
    let ranks = &mut x[..linked];
    threads.share(ranks.chunks_mut(PART).zip(degrees.chunks(PART)), |_, parts| {
        for (rank, &degree) in parts.flat_map(|(ranks, degrees)| ranks.iter_mut().zip(degrees)) {
            *rank *= degree.max(1) as f32;
        }
    })?;
    let isolated = walk.isolated_rank();
    let ranks = graph
        .order()
        .in_user(1, |vertex| slice::from_ref(ranks.get(vertex).unwrap_or(&isolated)))?;
    Ok((ranks, report))
}

/// The memory that a run of PageRank reserves: one whose walk restarts from all vertices, or from chosen
/// ones (`personalised`).
///
/// # Errors
/// Degrees that cannot be read, or are damaged.
pub fn pagerank_memory(graph: &Graph, personalised: bool) -> Result<MemoryPlan> {
    let linked =
        if personalised { graph.vertices() } else { graph.degrees().vertices_with_arcs()? };
    Ok(memory(graph, linked))
}

/// The memory of a run in which `linked` vertices have state.
fn memory(graph: &Graph, linked: usize) -> MemoryPlan {
    let state = padded(graph, linked) as u64 * 16;
    MemoryPlan::default()
        .and("the ranks", state.max(graph.vertices() as u64 * 8))
        .and("the workers' sums", PullSum::bytes(graph))
}

/// Ranks and passes in host memory.
struct OnCpu<'a> {
    graph: &'a Graph,
    pull: PullSum<'a>,
    degrees: Vec<u32>,
    x: Array<f32>,
    y: Chunks<f64>,
}

impl Ranks for OnCpu<'_> {
    fn step(&mut self, jump: &Jump<'_>, next: NextPass) -> Result<Sums> {
        self.pull.pass(next, &self.x, &self.y)?;
        update(self.graph.thread_pool(), jump, &self.degrees, &mut self.x, &mut self.y)
    }

    fn get(&self) -> Result<Cow<'_, [f32]>> {
        Ok(self.x[..self.degrees.len()].into())
    }

    fn set(&mut self, read: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()> {
        read(&mut self.x[..self.degrees.len()])
    }
}

/// The ranks of the vertices that have state, each over its vertex's out-degree, and the passes that make the next
/// ones, on some device.
pub(crate) trait Ranks {
    /// Passes over the arcs and makes the next ranks; `next` says whether another pass will probably follow.
    fn step(&mut self, jump: &Jump<'_>, next: NextPass) -> Result<Sums>;

    fn get(&self) -> Result<Cow<'_, [f32]>>;

    /// Replaces them by what `read` puts in their place.
    fn set(&mut self, read: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()>;
}

/// A run of PageRank on any device, without its passes and its vertices' state.
pub(crate) struct Walk<'a> {
    options: &'a PageRank,
    teleport: Teleport,
    /// The number of vertices that have state: up to the last with an arc, or all of them if the walk
    /// restarts from chosen ones, which may be isolated.
    pub linked: usize,
    isolated: Isolated,
    vertices: usize,
}

impl<'a> Walk<'a> {
    pub fn new(graph: &Graph, options: &'a PageRank) -> Result<Self> {
        check(graph, options)?;
        let vertices = graph.vertices();
        let teleport = Teleport::new(vertices, &options.sources);
        let linked = match teleport {
            Teleport::All(_) => graph.degrees().vertices_with_arcs()?,
            Teleport::Sources(_) => vertices,
        };
        let isolated = Isolated::new(vertices - linked, &teleport);
        Ok(Self { options, teleport, linked, isolated, vertices })
    }

    /// Where the walk restarts.
    pub fn teleport(&self) -> &Teleport {
        &self.teleport
    }

    /// The jump by which all walks restart, which makes the ranks that the first pass begins with.
    pub fn beginning(&self) -> Jump<'_> {
        Jump { jump: 1.0, damping: 0.0, teleport: &self.teleport }
    }

    /// Makes the next `ranks` until the options are met; returns whether the ranks converged. `sums` are those of the
    /// ranks before the first pass.
    pub fn iterate(
        &mut self,
        run: &mut Run<'_>,
        sums: Sums,
        ranks: &mut impl Ranks,
    ) -> Result<bool> {
        let mut sums = sums + self.isolated.sums(0.0);
        let PageRank { damping, iterations, tolerance, .. } = *self.options;
        let mut done = [0u64];
        run.resume(self.options, |from| {
            from.array(&mut done)?;
            from.array(slice::from_mut(&mut self.isolated.rank))?;
            let mut both = [0.0; 2];
            from.array(&mut both)?;
            sums = Sums { sinks: both[0], change: both[1] };
            ranks.set(|ranks| from.array(ranks))
        })?;
        for pass in done[0] as usize + 1..=iterations {
            // The ranks' change falls by the damping factor or more.
            let is_last = tolerance.is_some_and(|t| pass > 1 && damping * sums.change < t);
            let next =
                if is_last || pass == iterations { NextPass::Unknown } else { NextPass::Same };
            // Of a restart or a walk out of a sink, what lands on a vertex of probability 1.
            let jump = (1.0 - damping) + damping * sums.sinks;
            let jump = Jump { jump, damping, teleport: &self.teleport };
            sums = ranks.step(&jump, next)? + self.isolated.update(&jump);
            run.iteration("pass", sums.change);
            if tolerance.is_some_and(|t| sums.change < t) {
                return Ok(true);
            }
            run.keep(|to| {
                to.array(&[pass as u64]);
                to.array(&[self.isolated.rank]);
                to.array(&[sums.sinks, sums.change]);
                to.array(&ranks.get()?);
                Ok(())
            })?;
        }
        Ok(tolerance.is_none() || self.vertices == 0)
    }

    /// The rank of each vertex without state.
    pub fn isolated_rank(&self) -> f32 {
        self.isolated.rank as f32
    }
}

fn check(graph: &Graph, options: &PageRank) -> Result<()> {
    let bad = |what: &str| Error::new(ErrorKind::Input, "run PageRank").expected(what.to_owned());
    if !(0.0..=1.0).contains(&options.damping) {
        return Err(bad("a damping factor in 0 to 1").got(options.damping));
    }
    if options.tolerance.is_some_and(|t| t.is_nan() || t < 0.0) {
        return Err(bad("a tolerance of 0 or more").got(options.tolerance.unwrap_or(0.0)));
    }
    match options.sources.iter().find(|&&v| v as usize >= graph.vertices()) {
        Some(v) => Err(bad("sources that are vertices").got(v)),
        None => Ok(()),
    }
}

/// Where the walk restarts, and with which probability.
pub(crate) enum Teleport {
    /// At every vertex with this probability.
    All(f64),
    /// At each of these vertices with its probability.
    Sources(Vec<(u32, f64)>),
}

impl Teleport {
    fn new(n: usize, sources: &[u32]) -> Self {
        if sources.is_empty() {
            return Self::All(1.0 / n.max(1) as f64);
        }
        let mut sorted = sources.to_vec();
        sorted.sort_unstable();
        let each = 1.0 / sources.len() as f64;
        let runs = sorted.chunk_by(|a, b| a == b);
        Self::Sources(runs.map(|run| (run[0], each * run.len() as f64)).collect())
    }

    /// Calls `visit(i, probability)` for each vertex `first + i`, of the `len` from `first` on, at which
    /// the walk restarts.
    pub fn each(&self, first: usize, len: usize, mut visit: impl FnMut(usize, f64)) {
        match self {
            Self::All(p) => (0..len).for_each(|i| visit(i, *p)),
            Self::Sources(sources) => {
                let from = sources.partition_point(|s| (s.0 as usize) < first);
                for (v, p) in &sources[from..] {
                    match (*v as usize - first) < len {
                        true => visit(*v as usize - first, *p),
                        false => break,
                    }
                }
            }
        }
    }
}

/// The vertices without an arc, which all have the same rank.
struct Isolated {
    count: f64,
    rank: f64,
}

impl Isolated {
    fn new(count: usize, teleport: &Teleport) -> Self {
        let rank = if let Teleport::All(p) = teleport { *p } else { 0.0 };
        Self { count: count as f64, rank }
    }

    fn sums(&self, change: f64) -> Sums {
        Sums { sinks: self.count * self.rank, change: self.count * change }
    }

    fn update(&mut self, jump: &Jump<'_>) -> Sums {
        let before = self.rank;
        self.rank = jump.even();
        self.sums((self.rank - before).abs())
    }
}

/// The rank that a vertex gets by restarts, and how much it gets of its in-neighbours' ranks.
pub(crate) struct Jump<'a> {
    /// The rank that restarts would give to a vertex of probability 1.
    pub jump: f64,
    pub damping: f64,
    pub teleport: &'a Teleport,
}

impl Jump<'_> {
    /// The rank that restarts give to every vertex, in a run that is not personalised.
    pub fn even(&self) -> f64 {
        if let Teleport::All(p) = self.teleport { self.jump * p } else { 0.0 }
    }
}

/// Fills `x` with each vertex's first rank over its degree, or its rank where it has no out-arc.
fn start(
    threads: &ThreadPool,
    x: &mut [f32],
    degrees: &[u32],
    teleport: &Teleport,
) -> Result<Sums> {
    let parts = x.chunks_mut(PART).zip(degrees.chunks(PART)).enumerate();
    let sinks = threads.share(parts, |_, parts| {
        let mut sinks = 0.0;
        for (number, (x, degrees)) in parts {
            teleport.each(number * PART, degrees.len(), |v, p| {
                x[v] = (p / f64::from(degrees[v].max(1))) as f32;
                if degrees[v] == 0 {
                    sinks += p;
                }
            });
        }
        sinks
    })?;
    Ok(Sums { sinks: sinks.into_iter().sum(), change: 0.0 })
}

/// Makes the next ranks from the sums in `y`, which it sets to zero.
fn update(
    threads: &ThreadPool,
    jump: &Jump<'_>,
    degrees: &[u32],
    x: &mut [f32],
    y: &mut Chunks<f64>,
) -> Result<Sums> {
    let mut first = 0;
    let mut parts = Vec::new();
    let mut rest = &mut x[..degrees.len()];
    for chunk in y.chunks_mut() {
        let (now, later) = rest.split_at_mut(chunk.len().min(rest.len()));
        let begin = first;
        first += now.len();
        rest = later;
        parts.push((begin, now, chunk));
    }
    let made = threads.share(parts.into_iter(), |_, parts| {
        let of_part = |(first, x, y): (usize, &mut [f32], &mut Array<f64>)| {
            let degrees = &degrees[first..first + x.len()];
            update_part(jump, first, degrees, x, y)
        };
        parts.map(of_part).fold(Sums::default(), Sums::add)
    })?;
    Ok(made.into_iter().fold(Sums::default(), Sums::add))
}

/// The next ranks of the vertices from `first`.
fn update_part(
    jump: &Jump<'_>,
    first: usize,
    degrees: &[u32],
    x: &mut [f32],
    y: &mut [f64],
) -> Sums {
    if let Teleport::Sources(_) = jump.teleport {
        y.iter_mut().for_each(|y| *y *= jump.damping);
        jump.teleport.each(first, x.len(), |i, p| y[i] += jump.jump * p);
        return widest(|| ranks_of_sums(0.0, 1.0, degrees, x, y));
    }
    widest(|| ranks_of_sums(jump.even(), jump.damping, degrees, x, y))
}

/// Makes every `y` zero and `x` that of the rank `base + factor * y`.
#[inline(always)]
fn ranks_of_sums(base: f64, factor: f64, degrees: &[u32], x: &mut [f32], y: &mut [f64]) -> Sums {
    /// Sums that are made side by side, because additions in one order wait for each other.
    const WIDTH: usize = 16;
    let (mut change, mut sinks) = ([0.0; WIDTH], [0.0; WIDTH]);
    let vertices = x.chunks_mut(WIDTH).zip(y.chunks_mut(WIDTH)).zip(degrees.chunks(WIDTH));
    for ((x, y), degrees) in vertices {
        for (i, ((x, y), &degree)) in x.iter_mut().zip(&mut *y).zip(degrees).enumerate() {
            let (rank, out) = (base + factor * *y, f64::from(degree.max(1)));
            change[i] += (rank - f64::from(*x) * out).abs();
            sinks[i] += if degree == 0 { rank } else { 0.0 };
            *x = (rank / out) as f32;
            *y = 0.0;
        }
    }
    Sums { change: change.iter().sum(), sinks: sinks.iter().sum() }
}
