//! Single-source shortest paths: Bellman-Ford over active tiles, in place, and then delta-stepping along lists in memory
//! (`near`): of the arcs that can still lower a distance (`useful`), or, where passes would look at most arcs in
//! vain, of all. Without weights, a breadth-first search.
//!
//! A vertex's distance is the least sum of weights (float64, non-negative) of a path from the source,
//! or infinity. Distances are lowered in place while a pass goes on, so that a path advances by
//! several arcs a pass where its tiles come in a good order; a pass reads only tiles with a column
//! whose distance fell since the pass before. Ends when none fell. 8 bytes of state a vertex, and
//! as many of the result. Results are identical from run to run: the fixed point does not depend on
//! the order.

mod buckets;
pub(crate) mod near;
mod useful;

use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use tiergraph_core::{Progress, Result, ThreadPool};
use tiergraph_format::manifest::Weights;
use tiergraph_graph::{Graph, TileSelection};
use tiergraph_mem::{Array, vec_from_fn};

use crate::bfs::{Caller, UNREACHED, search_as};
use crate::edge_map::{ActiveTiles, Program, chunk_log2, edge_map, stored_once};
use crate::report::{Run, RunReport};
use crate::source::{check_source, with_state};
use near::{Near, PassHistory};
use useful::{Sink, Useful};

/// The distance of each vertex, in the user's order, from `source`, a vertex by its internal id;
/// infinity where there is no path. Without weights, every arc weighs 1: a breadth-first search finds them,
/// but in the least memory, where passes do.
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, any error of a pass.
pub fn sssp(graph: &Graph, source: u32, progress: &dyn Progress) -> Result<(Vec<f64>, RunReport)> {
    check_source(graph, "find paths from vertex", source)?;
    // When the search's state is gone, hops and distances are left.
    let hops = Caller { name: "sssp", result_bytes: graph.vertices() as u64 * 4 };
    let is_search = graph.manifest().weighted == Weights::None;
    let budget = graph.memory().budget();
    let missing = hops.plan(graph).bytes().saturating_sub(budget.left());
    if is_search && missing == 0 {
        return by_hops(&hops, graph, source, progress);
    }
    let n = with_state(graph, source);
    // Those in the graph's order, and the result.
    let _state = graph.memory().reserve((n + graph.vertices()) as u64 * 8, "the distances")?;
    let mut distances = Distances::new(graph.thread_pool(), n, |v| {
        if v == source as usize { 0.0 } else { f64::INFINITY }
    })?;
    graph.memory().plan_residency();
    let log2 = chunk_log2(graph);
    let (mut active, mut next) = (ActiveTiles::none(n, log2), ActiveTiles::none(n, log2));
    active.set(source);
    let both = stored_once(graph);
    let mut run = Run::start(graph, "sssp", 0, progress);
    let (mut history, mut useful) = (PassHistory::default(), Useful::default());
    run.resume(&json!({ "source": source }), |from| {
        from.array(&mut distances.0)?;
        from.array(active.flags_mut())
    })?;
    let all = graph.tiles().select(|_| true);
    let arcs_of = |selection: &TileSelection| match graph.tiles().is_stored() {
        true => graph.tiles().arcs_of(selection),
        false => graph.manifest().arcs,
    };
    let stored = arcs_of(&all);
    while active.any() {
        let wanted = graph.tiles().select(|e| active.column(e) || (both && active.row(e)));
        let looked_at = arcs_of(&wanted);
        let gathered = useful.gather(graph, n, looked_at > stored / 4 * 3)?;
        let fell = match &gathered {
            None => relax(graph, &wanted, &distances, &next, useful.horizon, &())?,
            Some(sink) => relax(graph, &all, &distances, &next, useful.horizon, sink)?,
        };
        useful.note(fell.least);
        run.iteration("tiles", fell.count as f64);
        active.clear();
        std::mem::swap(&mut active, &mut next);
        if let Some(gathered) = gathered
            && useful.finish(graph, gathered, &distances, &mut run)?
        {
            break;
        }
        run.keep(|to| {
            to.array(&distances.0);
            to.array(active.flags());
            Ok(())
        })?;
        if history.note(graph, (looked_at, stored), fell.count) {
            if let Some(near) = Near::new(graph)? {
                near.finish(graph, &distances, |v| active.has(v), &mut run)?;
                break;
            }
            match is_search {
                true => run.shorter_way("a breadth-first search", budget.limit() + missing),
                false => run.shorter_way("going along lists", Near::budget(graph)),
            }
        }
    }
    let report = run.finish(true)?;
    let reached = distances.to_vec(graph.thread_pool())?;
    drop(distances);
    let of = |v: usize| slice::from_ref(reached.get(v).unwrap_or(&f64::INFINITY));
    Ok((graph.order().in_user(1, of)?, report))
}

/// The distances where every arc weighs 1.
fn by_hops(
    caller: &Caller,
    graph: &Graph,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<f64>, RunReport)> {
    let (hops, report) = search_as(caller, graph, source, progress)?;
    let distance = |v: usize| match hops[v] {
        UNREACHED => f64::INFINITY,
        hops => hops.into(),
    };
    Ok((vec_from_fn(graph.thread_pool(), hops.len(), distance)?, report))
}

/// What fell in a pass.
#[derive(Clone, Copy)]
struct Fell {
    /// How often distances did.
    count: u64,
    /// The least of them.
    least: f64,
}

impl Default for Fell {
    fn default() -> Self {
        Self { count: 0, least: f64::INFINITY }
    }
}

impl Fell {
    #[inline(always)]
    fn note(&mut self, distance: f64) {
        self.count += 1;
        self.least = self.least.min(distance);
    }
}

/// Lowers distances along the arcs of the selected tiles, or of all raw blocks; notes in `next` where.
fn relax<S: Sink>(
    graph: &Graph,
    selection: &TileSelection,
    distances: &Distances,
    next: &ActiveTiles,
    horizon: f64,
    sink: &S,
) -> Result<Fell> {
    let fell = Mutex::default();
    edge_map(graph, selection, Relax { distances, next, horizon, sink, fell: &fell })?;
    Ok(fell.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Lowers distances along arcs, both ways along edges that are stored once.
struct Relax<'a, S> {
    distances: &'a Distances,
    /// The tiles in which distances fall.
    next: &'a ActiveTiles,
    /// Whatever falls later ends here or behind.
    horizon: f64,
    /// Takes arcs that can still lower a distance.
    sink: &'a S,
    /// What fell in the parts of the pass that have ended.
    fell: &'a Mutex<Fell>,
}

/// A row's distance before its first arc, and the least that came along one since.
struct Row {
    vertex: u32,
    before: f64,
    now: f64,
}

impl<S> Clone for Relax<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Relax<'_, S> {}

impl<S: Sink> Relax<'_, S> {
    /// Lowers the distance of `v`, if another worker has not lowered it further.
    #[inline(always)]
    fn lower(&self, fell: &mut Fell, v: u32, distance: f64) {
        if self.distances.lower(v, distance) {
            self.next.set(v);
            fell.note(distance);
            self.sink.fell(v);
        }
    }
}

impl<S: Sink> Program for Relax<'_, S> {
    type Worker = (Fell, S::Worker);
    type Source = (u32, f64);
    type Row = Row;

    const WEIGHTED: bool = true;

    #[inline(always)]
    fn load(&self, column: u32) -> (u32, f64) {
        (column, self.distances.get(column))
    }

    #[inline(always)]
    fn empty(&self, vertex: u32) -> Row {
        let before = self.distances.get(vertex);
        Row { vertex, before, now: before }
    }

    #[inline(always)]
    fn take(
        &self,
        (_, worker): &mut Self::Worker,
        row: &mut Row,
        (column, distance): (u32, f64),
        weight: f64,
    ) {
        if distance + weight < row.now {
            row.now = distance + weight;
        }
        if S::IS_ANY && distance.min(self.horizon) + weight < row.now {
            self.sink.arc(worker, column, row.vertex, weight);
        }
    }

    #[inline(always)]
    fn scatter(
        &self,
        (fell, worker): &mut Self::Worker,
        row: &Row,
        (column, mut distance): (u32, f64),
        weight: f64,
    ) {
        if row.now + weight < distance {
            distance = row.now + weight;
            self.lower(fell, column, distance);
        }
        if S::IS_ANY && row.now.min(self.horizon) + weight < distance {
            self.sink.arc(worker, row.vertex, column, weight);
        }
    }

    #[inline(always)]
    fn apply(&self, (fell, _): &mut Self::Worker, row: Row) {
        if row.now < row.before {
            self.lower(fell, row.vertex, row.now);
        }
    }

    fn end(&self, (of_worker, worker): Self::Worker) -> Result<()> {
        self.sink.end(worker);
        let mut all = self.fell.lock().unwrap_or_else(PoisonError::into_inner);
        all.count += of_worker.count;
        all.least = all.least.min(of_worker.least);
        Ok(())
    }
}

/// Distances as the bits of non-negative floats, which order as the floats do.
pub(crate) struct Distances(Array<AtomicU64>);

impl Distances {
    /// # Errors
    /// The system has no such amount of memory.
    pub(crate) fn new(
        threads: &ThreadPool,
        vertices: usize,
        distance: impl Fn(usize) -> f64 + Sync,
    ) -> Result<Self> {
        Array::from_fn(threads, vertices, |v| AtomicU64::new(distance(v).to_bits())).map(Self)
    }

    /// The distances of all vertices.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](tiergraph_core::ErrorKind::Io) if the system gives no threads to start `threads`.
    pub(crate) fn to_vec(&self, threads: &ThreadPool) -> Result<Vec<f64>> {
        vec_from_fn(threads, self.0.len(), |v| self.get(v as u32))
    }

    #[inline(always)]
    fn get(&self, v: u32) -> f64 {
        f64::from_bits(self.0[v as usize].load(Ordering::Relaxed))
    }

    /// Lowers the distance of `v`; returns whether it fell.
    #[inline(always)]
    fn lower(&self, v: u32, distance: f64) -> bool {
        distance < self.get(v)
            && self.0[v as usize].fetch_min(distance.to_bits(), Ordering::Relaxed)
                > distance.to_bits()
    }
}
