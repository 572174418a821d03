//! Levels over tiles, or over raw blocks: a pass over the arcs that can matter.

use tiergraph_core::Result;

use super::bits::Bits;
use super::residual::{Collector, Part};
use super::{Frontier, Search, Total, UNREACHED};
use crate::active::ActiveTiles;
use crate::arcs::{Arcs, RowArcs, for_each_arc};
use crate::pull::chunk_log2;

impl Search<'_> {
    /// Claims the vertices of the next level in a pass over tiles, or over raw blocks.
    pub(super) fn tiles(&mut self) -> Result<Frontier> {
        let graph = self.graph;
        let log2 = chunk_log2(graph);
        let active = ActiveTiles::none(self.depth.len(), log2);
        let unvisited = ActiveTiles::none(self.depth.len(), log2);
        for v in 0..self.with_arcs as u32 {
            match self.depth(v) {
                UNREACHED => unvisited.set(v),
                depth if depth == self.level => active.set(v),
                _ => {}
            }
        }
        // While most vertices are unvisited, so are the ends of most arcs.
        let collect = self.unvisited < self.with_arcs / 2;
        let collector = collect.then(|| Collector::new(self.residual_limit));
        // Tiles between unvisited vertices are read too for the arcs that are left.
        let from = |set: bool, other: bool| set || (collect && other);
        let selection = graph.tiles().select(|e| {
            let (row, column) = (unvisited.row(e), unvisited.column(e));
            (row && from(active.column(e), column))
                || (self.both && column && from(active.row(e), row))
        });
        let claimed = Total::default();
        let scan = Scan {
            search: self,
            frontier: self.bits(|depth| depth == self.level)?,
            unvisited: self.bits(|depth| depth == UNREACHED)?,
            collector: collector.as_ref(),
        };
        for_each_arc(
            graph,
            &selection,
            |_| Found::default(),
            |found, arcs| scan.visit(found, arcs),
            |found| {
                if let Some(collector) = &collector {
                    collector.end(found.part);
                }
                claimed.add(found.claimed)
            },
        )?;
        self.residual = collector.and_then(Collector::finish);
        Ok(claimed.frontier())
    }
}

/// What a worker finds in a pass: how many vertices it claimed, and arcs for later levels.
#[derive(Default)]
struct Found {
    claimed: usize,
    part: Part,
}

/// A level that is done as a pass, and the sets of vertices before it.
struct Scan<'a> {
    search: &'a Search<'a>,
    frontier: Bits,
    unvisited: Bits,
    collector: Option<&'a Collector>,
}

impl Scan<'_> {
    /// Claims what the arcs reach from the frontier; notes those between unvisited ends.
    #[inline(always)]
    fn visit(&self, found: &mut Found, arcs: &Arcs<'_>) {
        arcs.rows(|row, arcs| {
            if self.unvisited.has(u64::from(row)) {
                self.look(found, row, arcs);
            } else if self.search.both && self.frontier.has(u64::from(row)) {
                arcs.columns(|column| {
                    if self.unvisited.has(u64::from(column)) {
                        self.claim(found, column);
                    }
                    true
                });
            }
        });
    }

    /// Looks for a frontier vertex among the sources of arcs to `row`.
    #[inline(always)]
    fn look(&self, found: &mut Found, row: u32, arcs: &RowArcs<'_>) {
        let mut reached = self.search.depth(row) != UNREACHED;
        let Some(collector) = self.collector else {
            if !reached {
                arcs.columns(|column| {
                    reached = self.frontier.has(u64::from(column));
                    !reached
                });
                if reached {
                    self.claim(found, row);
                }
            }
            return;
        };
        arcs.columns(|column| {
            if self.unvisited.has(u64::from(column)) {
                collector.note(&mut found.part, column, row);
                if self.search.both {
                    collector.note(&mut found.part, row, column);
                }
            } else if !reached && self.frontier.has(u64::from(column)) {
                reached = true;
                self.claim(found, row);
            }
            true
        });
    }

    #[inline(always)]
    fn claim(&self, found: &mut Found, v: u32) {
        if self.search.depth(v) == UNREACHED && self.search.claim(v) {
            found.claimed += 1;
        }
    }
}
