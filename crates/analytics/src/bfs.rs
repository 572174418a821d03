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
    let kept = graph.reserve(graph.budget().left() / 8, "the arcs left")?;
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
        for v in 0..self.depth.len() as u32 {
            if self.depth(v) == UNREACHED {
                unvisited.set(v);
            }
        }
        let both = self.both;
        // Tiles between unvisited vertices are read for the arcs that are left.
        let usable = |column: bool, row: bool| column && row;
        let selection = graph.select_tiles(|entry| {
            let (row, column) = (unvisited.row(entry), unvisited.column(entry));
            usable(active.column(entry) || column, row)
                || (both && usable(active.row(entry) || row, column))
        });
        let collector = Collector::new(self.residual_limit);
        let all = Mutex::new(Vec::new());
        for_each_arc(
            graph,
            &selection,
            |_| (Vec::new(), Part::default()),
            |(next, part), arcs| self.visit(arcs, next, &collector, part),
            |(next, part)| {
                collector.end(part);
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(next);
                Ok(())
            },
        )?;
        self.residual = collector.finish();
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn visit(&self, arcs: &Arcs<'_>, next: &mut Vec<u32>, collector: &Collector, part: &mut Part) {
        let level = self.level;
        arcs.for_each(|row, column, _| {
            let (to, from) = (self.depth(row), self.depth(column));
            if to > level {
                if from == level {
                    self.claim(row, next);
                } else if from > level {
                    collector.note(part, column, row);
                    if self.both {
                        collector.note(part, row, column);
                    }
                }
            } else if self.both && to == level && from == UNREACHED {
                self.claim(column, next);
            }
        });
    }
}
