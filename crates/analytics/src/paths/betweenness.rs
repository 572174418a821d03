//! Betweenness centrality: the shares of shortest paths that vertices lie on.
//!
//! For each source, a breadth-first search counts shortest paths, and a second sweep, from the farthest level
//! back, adds up what depends on each vertex: `δ(v) = Σ σ(v)/σ(w) · (1 + δ(w))` over the arcs to vertices one
//! level farther (Brandes, J. Math. Sociol. 25, 2001). Both sweeps look at out-neighbours only. Where all lists fit the
//! memory, each thread has a source of its own; where not, every level reads the pages of its vertices, or all
//! of them if it has many. Sums are added in the order of
//! sources: results do not depend on the number of threads
//! (the last bits of codec `raw` are those of the order in which its blocks come). 24 bytes a vertex
//! and 20 a source that is at work.

use serde::Serialize;
use tiergraph_core::{Progress, Result};
use tiergraph_graph::Graph;

use crate::per_worker::PerWorker;
use crate::report::{Run, RunReport};
use crate::row_map::{ListDegrees, Lists, RowMap, Side};
use crate::source::check_source;

/// A vertex that the search has not reached.
const FAR: u32 = u32::MAX;

/// The betweenness of every vertex, in the user's order: over all pairs of a source among `sources`, by
/// internal ids, and another vertex, the sum of the shares of shortest paths that the vertex lies between.
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, any error of a pass.
pub fn betweenness(
    graph: &Graph,
    sources: &[u32],
    progress: &dyn Progress,
) -> Result<(Vec<f64>, RunReport)> {
    let n = graph.vertices();
    sources.iter().try_for_each(|&s| check_source(graph, "count paths from vertex", s))?;
    let side = Side::Out;
    let fits = RowMap::fits(graph, side)?;
    let searches = if fits { graph.thread_pool().size() } else { 1 };
    let plan = RowMap::memory(graph, side)?
        .and("the sums", n as u64 * 16)
        .and("the searches", n as u64 * (20 + 4) * searches as u64);
    let _state = graph.memory().reserve_all(&plan)?;
    let degrees = ListDegrees::read(graph, side)?;
    let mut rows = RowMap::new(graph, &degrees)?;
    graph.memory().plan_residency();
    let mut run = Run::start(graph, "betweenness", sources.len() as u64, progress)
        .with_passes_of(rows.round_bytes());
    let (mut sums, mut done) = (vec![0.0; n], [0u64]);
    run.resume(&OfSources { sources }, |from| {
        from.array(&mut done)?;
        from.array(&mut sums)
    })?;
    let keep = |run: &mut Run<'_>, sums: &[f64], done: &mut [u64; 1], more: usize| {
        done[0] += more as u64;
        run.keep(|to| {
            to.array(done);
            to.array(sums);
            Ok(())
        })
    };
    let sources = &sources[(done[0] as usize).min(sources.len())..];
    if rows.is_whole() {
        let all = PerWorker::new((0..searches).map(|_| Search::new(n)));
        for batch in sources.chunks(searches) {
            let Some(lists) = rows.whole()? else { break };
            let found = graph.thread_pool().share(batch.iter().enumerate(), |_, sources| {
                for (place, &source) in sources {
                    all.of(place).run(source, &mut InMemory { graph, lists })?;
                }
                Ok(())
            })?;
            found.into_iter().collect::<Result<()>>()?;
            (0..batch.len()).for_each(|place| all.of(place).add_to(&mut sums));
            run.iterations("lists", batch.len() as u32, 0.0);
            keep(&mut run, &sums, &mut done, batch.len())?;
        }
    } else {
        let mut search = Search::new(n);
        for &source in sources {
            search.run(source, &mut rows)?;
            search.add_to(&mut sums);
            run.iteration("pages", 0.0);
            keep(&mut run, &sums, &mut done, 1)?;
        }
    }
    let report = run.finish(true)?;
    Ok((graph.order().to_user(sums, 1)?, report))
}

/// What tells a run's checkpoints from others'.
#[derive(Serialize)]
pub(crate) struct OfSources<'a> {
    pub(crate) sources: &'a [u32],
}

/// A provider of the out-neighbours of vertices: lists in memory, or pages that are read.
trait Neighbors {
    /// Calls `visit` with each of `vertices`, which ascend, and its neighbours.
    fn each(&mut self, vertices: &[u32], visit: &mut dyn FnMut(u32, &[u32])) -> Result<()>;
}

struct InMemory<'a> {
    graph: &'a Graph,
    lists: &'a Lists,
}

impl Neighbors for InMemory<'_> {
    fn each(&mut self, vertices: &[u32], visit: &mut dyn FnMut(u32, &[u32])) -> Result<()> {
        vertices.iter().for_each(|&v| visit(v, self.lists.of(v)));
        self.graph.cancel().check("count paths")
    }
}

impl Neighbors for RowMap<'_> {
    fn each(&mut self, vertices: &[u32], visit: &mut dyn FnMut(u32, &[u32])) -> Result<()> {
        self.one_by_one(vertices, visit)
    }
}

/// The state of a search from one source.
struct Search {
    depth: Vec<u32>,
    /// Shortest paths to each vertex.
    paths: Vec<f64>,
    /// The dependency of the source on each vertex: the shares of its paths that lead through it.
    depends: Vec<f64>,
    /// All vertices that were reached, level by level, and where each level ends.
    reached: Vec<u32>,
    ends: Vec<usize>,
    source: u32,
}

impl Search {
    fn new(vertices: usize) -> Self {
        Self {
            depth: vec![FAR; vertices],
            paths: vec![0.0; vertices],
            depends: vec![0.0; vertices],
            reached: Vec::new(),
            ends: Vec::new(),
            source: 0,
        }
    }

    fn run(&mut self, source: u32, from: &mut impl Neighbors) -> Result<()> {
        let Self { depth, paths, depends, reached, ends, .. } = self;
        for &v in &*reached {
            (depth[v as usize], paths[v as usize], depends[v as usize]) = (FAR, 0.0, 0.0);
        }
        reached.clear();
        ends.clear();
        reached.push(source);
        (depth[source as usize], paths[source as usize]) = (0, 1.0);
        self.source = source;
        let (mut begin, mut next) = (0, Vec::new());
        while begin < reached.len() {
            let level = ends.len() as u32;
            from.each(&reached[begin..], &mut |v, neighbors| {
                let own = paths[v as usize];
                for &w in neighbors {
                    let depth = &mut depth[w as usize];
                    if *depth == FAR {
                        *depth = level + 1;
                        next.push(w);
                    }
                    if *depth == level + 1 {
                        paths[w as usize] += own;
                    }
                }
            })?;
            begin = reached.len();
            ends.push(begin);
            next.sort_unstable();
            reached.append(&mut next);
        }
        for level in (0..ends.len().saturating_sub(1)).rev() {
            let first = level.checked_sub(1).map_or(0, |before| ends[before]);
            from.each(&reached[first..ends[level]], &mut |v, neighbors| {
                let mut sum = 0.0;
                for &w in neighbors {
                    if depth[w as usize] == level as u32 + 1 {
                        sum += (1.0 + depends[w as usize]) / paths[w as usize];
                    }
                }
                depends[v as usize] = sum * paths[v as usize];
            })?;
        }
        Ok(())
    }

    fn add_to(&self, sums: &mut [f64]) {
        for &v in self.reached.iter().filter(|&&v| v != self.source) {
            sums[v as usize] += self.depends[v as usize];
        }
    }
}
