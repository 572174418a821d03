//! Breadth-first search that chooses, level by level, what costs least.
//!
//! Gives each vertex its distance in arcs from the source. The direction-optimising search of
//! Beamer, Asanović, Patterson (SC 2012), with bytes to read beside edges to look at. A level
//! either pushes the frontier's neighbours (`push`), or lets every unvisited vertex look for a
//! neighbour in the frontier and stop at the first (`pull`), both on the pages of rows that hold
//! those lists; or it passes over the tiles that join an active column to a strip with unvisited
//! rows (`tiles`); or it needs no storage (`memory`): once the arcs between unvisited vertices fit
//! a part of the memory, they are collected by a pulled level and the search ends among them. A search
//! with many small levels goes over to lists in memory (`lists`), where a level costs what it reaches, or
//! to pages that stay in memory (`pages`).
//! 4 bytes of state a vertex, and the frontier. Results are identical from run to run.

mod choice;
mod lists;
mod residual;
mod rows;
mod tiles;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::{Direction, Graph, NearLists, PassStats};
use tiergraph_mem::{Array, MemoryPlan, Reservation, as_atomic, vec_from_fn};

use crate::bits::Bits;
use crate::edge_map::stored_once;
use crate::report::{Run, RunReport};
use crate::source::{check_source, with_state};
pub(crate) use choice::{PULL_COST, TILES_COST};

use choice::Plan;
use lists::{LevelsDone, SmallLevels};
use residual::{ARC_BYTES, Residual};

/// The distance of a vertex to which the source has no path.
pub const UNREACHED: u32 = u32::MAX;

/// A frontier is listed from the depths, and not sorted, if it has this share of the vertices.
const LIST_SHARE: usize = 64;

/// The distance in arcs of each vertex, in the user's order, from `source`, a vertex by its internal id;
/// [`UNREACHED`] where there is no path.
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, any error of a pass.
pub fn bfs(graph: &Graph, source: u32, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    search_as(&Caller { name: "bfs", result_bytes: 0 }, graph, source, progress)
}

/// The algorithm that a search is run for.
pub(crate) struct Caller {
    pub(crate) name: &'static str,
    /// Bytes that are reserved during the search for what is made of its result.
    pub(crate) result_bytes: u64,
}

impl Caller {
    fn state_bytes(&self, graph: &Graph) -> u64 {
        state_bytes(graph) + self.result_bytes
    }

    /// The memory that a search takes at least.
    pub(crate) fn plan(&self, graph: &Graph) -> MemoryPlan {
        MemoryPlan::default()
            .and("the distances and the frontier", self.state_bytes(graph))
            .and("the pages of small levels", NearLists::least_bytes(graph, Direction::Out))
    }
}

/// Searches as [`bfs`] does, in a run of the algorithm `caller`.
pub(crate) fn search_as(
    caller: &Caller,
    graph: &Graph,
    source: u32,
    progress: &dyn Progress,
) -> Result<(Vec<u32>, RunReport)> {
    search(caller, graph, source, progress, |search, frontier| search.plan(frontier))
}

/// Searches from `source`; `how` chooses the plan of each level.
fn search(
    caller: &Caller,
    graph: &Graph,
    source: u32,
    progress: &dyn Progress,
    how: impl Fn(&Search<'_>, &mut Frontier) -> Plan,
) -> Result<(Vec<u32>, RunReport)> {
    check_source(graph, "search from vertex", source)?;
    let mut state = graph.memory().reserve_all(&caller.plan(graph))?;
    state.shrink_to(caller.state_bytes(graph));
    let pages = graph.memory().budget().count(NearLists::least_bytes(graph, Direction::Out));
    let depth = Array::from_fn(graph.thread_pool(), with_state(graph, source), |_| {
        AtomicU32::new(UNREACHED)
    })?;
    depth[source as usize].store(0, Ordering::Relaxed);
    let (mut search, residual) = Search::new(graph, depth, 0)?;
    let mut run = Run::start(graph, caller.name, 0, progress);
    let mut frontier = Frontier::from(vec![source]);
    let mut level = [0];
    if run.resume(&json!({ "source": source }), |from| {
        from.array(&mut level)?;
        from.array(&mut search.depth)
    })? {
        search.level = level[0];
        frontier = search.frontier();
    }
    search.unvisited = search.with_arcs.saturating_sub(search.reached());
    search.run(SmallLevels::new(pages), frontier, &mut run, how)?;
    let report = run.finish(true)?;
    drop(residual);
    let distances = in_user_order(graph, &search.depth)?;
    drop(state);
    Ok((distances, report))
}

/// Bytes that a search's distances and frontier take.
fn state_bytes(graph: &Graph) -> u64 {
    graph.vertices() as u64 * 8 + graph.vertices() as u64 / 4
}

/// Ends a search that a GPU began and that has many small levels; returns all distances, in the user's
/// order. `depth` holds the distances of the vertices that the GPU reached, up to `level`.
///
/// # Errors
/// As [`bfs`], but where there is no memory for it.
pub(crate) fn finish(
    graph: &Graph,
    depth: Array<AtomicU32>,
    level: u32,
    run: &mut Run<'_>,
) -> Result<Vec<u32>> {
    let (mut search, _residual) = Search::new(graph, depth, level)?;
    search.unvisited = search.with_arcs.saturating_sub(search.reached());
    let frontier = search.frontier();
    let small = SmallLevels::many(graph)?;
    search.run(small, frontier, run, |search, frontier| search.plan(frontier))?;
    in_user_order(graph, &search.depth)
}

/// Distances in the user's order; vertices beyond `depth` have no arcs.
fn in_user_order(graph: &Graph, depth: &[AtomicU32]) -> Result<Vec<u32>> {
    let mut out = vec_from_fn(graph.thread_pool(), graph.vertices(), |_| UNREACHED)?;
    let places = as_atomic(&mut out);
    graph.order().for_each_position(depth.len(), |v, position| {
        let distance = depth.get(v).map_or(UNREACHED, |depth| depth.load(Ordering::Relaxed));
        if let Some(to) = places.get(position).filter(|_| distance != UNREACHED) {
            to.store(distance, Ordering::Relaxed);
        }
    })?;
    Ok(out)
}

/// The frontier of a search: the vertices whose depth is the level. Most levels need no list of them.
#[derive(Debug)]
struct Frontier {
    /// The number of vertices in the frontier.
    count: usize,
    /// The vertices in any order, if they are listed.
    list: Option<Vec<u32>>,
}

impl From<Vec<u32>> for Frontier {
    fn from(list: Vec<u32>) -> Self {
        Self { count: list.len(), list: Some(list) }
    }
}

/// The state of a search.
struct Search<'a> {
    graph: &'a Graph,
    /// The graph's counters before the search.
    before: PassStats,
    /// The distance of each vertex that a level reached, [`UNREACHED`] of others.
    depth: Array<AtomicU32>,
    /// The level whose vertices have been reached last.
    level: u32,
    /// The end of the vertices with arcs: none from this one on has any.
    with_arcs: usize,
    /// The number of vertices with arcs that no level has reached.
    unvisited: usize,
    /// Whether undirected edges are stored once.
    both: bool,
    /// The arcs that later levels can still use, once they are few.
    residual: Option<Residual>,
    /// The most arcs that `residual` may have.
    residual_limit: u64,
}

impl<'a> Search<'a> {
    /// A search that is at `level`, and the memory of the residual arcs that it may collect.
    fn new(graph: &'a Graph, depth: Array<AtomicU32>, level: u32) -> Result<(Self, Reservation)> {
        let most = (graph.manifest().arcs / 64 * ARC_BYTES * 2).max(1 << 20);
        let arcs = graph
            .memory()
            .reserve((graph.memory().budget().left() / 8).min(most), "the arcs left")?;
        graph.memory().plan_residency();
        let search = Self {
            graph,
            before: graph.totals().get(),
            depth,
            level,
            with_arcs: graph.tiles().vertices(),
            unvisited: 0,
            both: stored_once(graph),
            residual: None,
            residual_limit: arcs.bytes() / ARC_BYTES / 2,
        };
        Ok((search, arcs))
    }

    /// How many vertices were reached.
    fn reached(&self) -> usize {
        self.depth.iter().filter(|depth| depth.load(Ordering::Relaxed) != UNREACHED).count()
    }

    /// The vertices of the level that was reached last.
    fn frontier(&self) -> Frontier {
        let of_level = |depth: &&AtomicU32| depth.load(Ordering::Relaxed) == self.level;
        Frontier { count: self.depth.iter().filter(of_level).count(), list: None }
    }

    /// Searches from `frontier` on; levels are done as `plan` says.
    fn run(
        &mut self,
        mut small: SmallLevels<'a>,
        mut frontier: Frontier,
        run: &mut Run<'_>,
        plan: impl Fn(&Self, &mut Frontier) -> Plan,
    ) -> Result<()> {
        while frontier.count > 0 && self.unvisited > 0 {
            let done = self.next(&mut small, frontier, &plan)?;
            run.iterations(done.how, done.levels, done.reached as f64);
            self.graph.cancel().check("search the graph")?;
            self.unvisited = self.unvisited.saturating_sub(done.reached);
            self.level += done.levels;
            frontier = done.next;
            run.keep(|to| {
                to.array(&[self.level]);
                to.array(&self.depth);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The set of vertices with arcs whose depth is `wanted`.
    fn bits(&self, wanted: impl Fn(u32) -> bool + Sync) -> Result<Bits> {
        Bits::of(self.graph.thread_pool(), &self.depth[..self.with_arcs], wanted)
    }

    #[inline(always)]
    fn depth(&self, v: u32) -> u32 {
        self.depth[v as usize].load(Ordering::Relaxed)
    }

    /// Sets the depth of `v` to the next level; false if another worker did.
    #[inline(always)]
    fn claim(&self, v: u32) -> bool {
        let depth = &self.depth[v as usize];
        depth
            .compare_exchange(UNREACHED, self.level + 1, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Does one level, or several small ones that are followed together.
    fn next(
        &mut self,
        small: &mut SmallLevels<'a>,
        mut frontier: Frontier,
        plan: impl Fn(&Self, &mut Frontier) -> Plan,
    ) -> Result<LevelsDone> {
        if let Some(done) = small.follow(self, &mut frontier)? {
            return Ok(done);
        }
        let began = Instant::now();
        let (how, next) = self.level(frontier, plan)?;
        small.note(self, began.elapsed(), &next)?;
        Ok(LevelsDone { how, levels: 1, reached: next.count, next })
    }

    /// Does one level; returns how it was done, and the next frontier.
    fn level(
        &mut self,
        mut frontier: Frontier,
        plan: impl Fn(&Self, &mut Frontier) -> Plan,
    ) -> Result<(&'static str, Frontier)> {
        if let Some(residual) = &mut self.residual {
            let next =
                residual.level(&self.depth, self.level, frontier.list, self.graph.thread_pool())?;
            return Ok(("memory", next.into()));
        }
        Ok(match plan(self, &mut frontier) {
            Plan::Push(rows) => ("push", self.push(&rows)?.into()),
            Plan::Pull(rows) => ("pull", self.pull(&rows)?),
            Plan::PushRaw(raw, frontier) => ("push", self.push_raw(&raw, &frontier)?.into()),
            Plan::Tiles => ("tiles", self.tiles()?),
        })
    }

    /// The vertices of the frontier in ascending order.
    fn sorted<'f>(&self, frontier: &'f mut Frontier) -> &'f [u32] {
        let small = frontier.count < self.with_arcs / LIST_SHARE;
        let list = match frontier.list.take() {
            Some(mut list) if small => {
                list.sort_unstable();
                list
            }
            _ => {
                let mut list = Vec::with_capacity(frontier.count);
                list.extend((0..self.depth.len() as u32).filter(|&v| self.depth(v) == self.level));
                list
            }
        };
        frontier.list.insert(list)
    }
}

/// A sum that all workers add to.
#[derive(Debug, Default)]
struct Total(AtomicUsize);

impl Total {
    fn add(&self, count: usize) -> Result<()> {
        self.0.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// The frontier of as many vertices as the sum says, which are not listed.
    fn frontier(self) -> Frontier {
        Frontier { count: self.0.into_inner(), list: None }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use tiergraph_core::{Cancel, Silent};
    use tiergraph_graph::OpenOptions;
    use tiergraph_ingest::build::{self, BuildOptions, Purpose, build};
    use tiergraph_ingest::generate::{Generated, GeneratorOptions, Rmat};

    use super::*;

    fn kronecker(path: &Path, direction: build::Direction) -> Graph {
        let model = Rmat::new(12, 8, Rmat::GRAPH500, 7).unwrap();
        let mut source = Generated::new(model, 7, GeneratorOptions::default());
        let options = BuildOptions {
            direction,
            purpose: Purpose::Both,
            memory: Some(64 << 20),
            threads: 1,
            block_bytes: 1 << 14,
            ..BuildOptions::default()
        };
        build(&mut source, path, &options, &Silent, &Cancel::default()).unwrap();
        let options = OpenOptions { threads: Some(3), ..OpenOptions::default() };
        Graph::open(path, &options).unwrap()
    }

    /// Every way to do a level gives the same level.
    #[test]
    fn plans_agree() {
        let directory = tempfile::tempdir().unwrap();
        for direction in [build::Direction::Directed, build::Direction::Undirected] {
            let path = directory.path().join(format!("{direction:?}.tg"));
            let graph = kronecker(&path, direction);
            let done = |name, plan: &dyn Fn(&Search<'_>, &mut Frontier) -> Plan| {
                let (depths, report) = search(
                    &Caller { name: "bfs", result_bytes: 0 },
                    &graph,
                    5,
                    &Silent,
                    |search, frontier| plan(search, frontier),
                )
                .unwrap();
                assert!(report.details.iter().any(|step| step.how == name), "no level of {name}");
                depths
            };
            let push = done("push", &|search, frontier| {
                Plan::Push(graph.rows(Direction::Out).select(search.sorted(frontier)).unwrap())
            });
            assert!(push.iter().filter(|&&depth| depth != UNREACHED).count() > 1000);
            let pull = done("pull", &|search, _| Plan::Pull(search.unvisited_rows().unwrap()));
            let tiles = done("tiles", &|_, _| Plan::Tiles);
            assert!(push == pull && push == tiles, "{direction:?}");
            assert_eq!(push, bfs(&graph, 5, &Silent).unwrap().0);
        }
    }
}
