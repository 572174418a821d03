//! Breadth-first search that chooses, level by level, what costs the fewest bytes.
//!
//! Gives each vertex its distance in arcs from the source. A level reads either the pages of the
//! frontier's neighbours (`rows`), or the tiles that join an active column to a strip with
//! unvisited rows (`tiles`), or nothing: once the arcs between unvisited vertices fit a part of the
//! memory, they are kept from a dense level and the search ends in memory (`memory`). The
//! direction-optimising search of Beamer, Asanović, Patterson (SC 2012) with bytes in the place of
//! edges. 4 bytes of state a vertex, and the frontier. Results are identical from run to run.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};

use tiergraph_core::{Error, ErrorKind, Progress, Result};
use tiergraph_graph::{Direction, Graph, RowSelection};

use crate::active::ActiveTiles;
use crate::arcs::{Arcs, for_each_arc, stored_once};
use crate::pull::chunk_log2;
use crate::report::{Run, RunReport};
use crate::residual::{Collector, Part, Residual};

/// The distance of a vertex that cannot be reached.
pub const UNREACHED: u32 = u32::MAX;

/// Random pages cost about this many times as much a byte as whole blocks.
const RANDOM_COST: u64 = 2;
/// Bytes of one arc that is kept for the rest of the search.
const ARC_BYTES: u64 = 8;

/// Searches from `source`, a vertex of the graph's own order.
///
/// # Errors
/// A source that is no vertex, state that does not fit the memory, whatever a pass gives.
pub fn bfs(graph: &Graph, source: u32, progress: &dyn Progress) -> Result<(Vec<u32>, RunReport)> {
    let n = graph.vertices();
    if source as usize >= n {
        return Err(Error::new(ErrorKind::Input, "search from vertex")
            .object(source)
            .expected(format!("a vertex below {n}")));
    }
    let state = graph.reserve(n as u64 * 8, "the distances and the frontier")?;
    let depth: Vec<AtomicU32> = (0..n).map(|_| AtomicU32::new(UNREACHED)).collect();
    depth[source as usize].store(0, Ordering::Relaxed);
    let most = (graph.manifest().arcs / 64 * ARC_BYTES * 2).max(1 << 20);
    let kept = graph.reserve((graph.budget().left() / 8).min(most), "the arcs left")?;
    graph.plan_residency();
    let mut search = Search {
        graph,
        depth,
        level: 0,
        both: stored_once(graph),
        residual: None,
        residual_limit: kept.bytes() / ARC_BYTES / 2,
    };
    let mut run = Run::start(graph, "bfs", 0, progress);
    let mut frontier = vec![source];
    while !frontier.is_empty() {
        let (how, mut next) = search.level(&frontier)?;
        next.sort_unstable();
        run.iteration(how, next.len() as f64);
        frontier = next;
        search.level += 1;
    }
    let report = run.finish(true)?;
    drop((kept, state));
    let depth = search.depth.into_iter().map(AtomicU32::into_inner).collect();
    Ok((graph.to_user_order(depth, 1)?, report))
}

struct Search<'a> {
    graph: &'a Graph,
    depth: Vec<AtomicU32>,
    level: u32,
    both: bool,
    residual: Option<Residual>,
    residual_limit: u64,
}

impl Search<'_> {
    #[inline(always)]
    fn depth(&self, v: u32) -> u32 {
        self.depth[v as usize].load(Ordering::Relaxed)
    }

    /// Makes `v` one of the next level, if no other worker did.
    #[inline(always)]
    fn claim(&self, v: u32, next: &mut Vec<u32>) {
        let depth = &self.depth[v as usize];
        let claimed =
            depth.compare_exchange(UNREACHED, self.level + 1, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_ok() {
            next.push(v);
        }
    }

    /// One level: how it was done, and the next frontier in any order.
    fn level(&mut self, frontier: &[u32]) -> Result<(&'static str, Vec<u32>)> {
        if let Some(residual) = &self.residual {
            let mut next = Vec::new();
            residual.targets(frontier, |v| {
                if self.depth(v) == UNREACHED {
                    self.claim(v, &mut next);
                }
            });
            return Ok(("memory", next));
        }
        let rows = self.rows_if_cheaper(frontier);
        match rows {
            Some(rows) => Ok(("rows", self.sparse(frontier, &rows)?)),
            None => Ok(("tiles", self.dense(frontier)?)),
        }
    }

    /// The rows' plan where it reads less than the tiles would.
    fn rows_if_cheaper(&self, frontier: &[u32]) -> Option<RowSelection> {
        let graph = self.graph;
        let tiles = graph.tiles_bytes().max(graph.raw_bytes(Direction::In));
        if !graph.has_tiles() && !graph.has_raw() {
            return graph.select_rows(Direction::Out, frontier);
        }
        // Even one vertex a page costs more than all tiles: no need to look closer.
        if frontier.len() as u64 * 4096 / 64 > tiles {
            return None;
        }
        let rows = graph.select_rows(Direction::Out, frontier)?;
        (rows.bytes() * RANDOM_COST < tiles).then_some(rows)
    }

    fn sparse(&self, frontier: &[u32], rows: &RowSelection) -> Result<Vec<u32>> {
        let all = Mutex::new(Vec::new());
        self.graph.neighbor_pass(
            rows,
            frontier,
            |_| Vec::new(),
            |next, _, neighbors| {
                for &v in neighbors {
                    if self.depth(v as u32) == UNREACHED {
                        self.claim(v as u32, next);
                    }
                }
                Ok(())
            },
            |next| {
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(next);
                Ok(())
            },
        )?;
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn dense(&mut self, frontier: &[u32]) -> Result<Vec<u32>> {
        let graph = self.graph;
        let log2 = chunk_log2(graph);
        let active = ActiveTiles::none(self.depth.len(), log2);
        frontier.iter().for_each(|&v| active.set(v));
        let unvisited = ActiveTiles::none(self.depth.len(), log2);
        let mut left = 0;
        let with_arcs = graph.vertices_with_tiles();
        for v in 0..with_arcs as u32 {
            if self.depth(v) == UNREACHED {
                unvisited.set(v);
                left += 1;
            }
        }
        // While most vertices are unvisited, so are the ends of most arcs.
        let collect = left < with_arcs / 2;
        let collector = collect.then(|| Collector::new(self.residual_limit));
        // Tiles between unvisited vertices are read too for the arcs that are left.
        let from = |set: bool, other: bool| set || (collect && other);
        let selection = graph.select_tiles(|e| {
            let (row, column) = (unvisited.row(e), unvisited.column(e));
            (row && from(active.column(e), column))
                || (self.both && column && from(active.row(e), row))
        });
        let all = Mutex::new(Vec::new());
        for_each_arc(
            graph,
            &selection,
            |_| (Vec::new(), Part::default()),
            |(next, part), arcs| match &collector {
                Some(collector) => self.visit(arcs, next, |a, b| collector.note(part, a, b)),
                None => self.visit(arcs, next, |_, _| {}),
            },
            |(next, part)| {
                if let Some(collector) = &collector {
                    collector.end(part);
                }
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(next);
                Ok(())
            },
        )?;
        self.residual = collector.and_then(Collector::finish);
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims what the arcs reach from this level; tells `left` of arcs between unvisited ends.
    #[inline(always)]
    fn visit(&self, arcs: &Arcs<'_>, next: &mut Vec<u32>, mut left: impl FnMut(u32, u32)) {
        let level = self.level;
        arcs.rows(|row, arcs| {
            let own = self.depth(row);
            if own == level && self.both {
                arcs.columns(|column| {
                    if self.depth(column) == UNREACHED {
                        self.claim(column, next);
                    }
                    true
                });
            } else if own > level {
                let mut reached = own != UNREACHED;
                arcs.columns(|column| {
                    let other = self.depth(column);
                    if other > level {
                        left(column, row);
                        if self.both {
                            left(row, column);
                        }
                    } else if other == level && !reached {
                        reached = true;
                        self.claim(row, next);
                    }
                    true
                });
            }
        });
    }
}
