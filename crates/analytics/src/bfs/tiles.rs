//! Levels over tiles, or over raw blocks: a pass over the arcs that can matter.

use tiergraph_core::Result;

use super::residual::{Collector, Part};
use super::{Frontier, Search, Total, UNREACHED};
use crate::bits::Bits;
use crate::edge_map::{ActiveTiles, Program, chunk_log2, edge_map};

impl Search<'_> {
    /// Claims the vertices of the next level in a pass over tiles, or over raw blocks.
    pub(super) fn tiles(&mut self) -> Result<Frontier> {
        let graph = self.graph;
        let log2 = chunk_log2(graph);
        let frontier = self.bits(|depth| depth == self.level)?;
        let unvisited = self.bits(|depth| depth == UNREACHED)?;
        let tiles_of = |bits: &Bits| ActiveTiles::of_bits(bits, self.depth.len(), log2);
        let (with_frontier, with_unvisited) = (tiles_of(&frontier), tiles_of(&unvisited));
        // While most vertices are unvisited, so are the ends of most arcs.
        let collect = self.unvisited < self.with_arcs / 2;
        let collector = collect.then(|| Collector::new(self.residual_limit));
        // Tiles between unvisited vertices are read too for the arcs that are left.
        let from = |set: bool, other: bool| set || (collect && other);
        let selection = graph.tiles().select(|e| {
            let (row, column) = (with_unvisited.row(e), with_unvisited.column(e));
            (row && from(with_frontier.column(e), column))
                || (self.both && column && from(with_frontier.row(e), row))
        });
        let claimed = Total::default();
        let scan = Level {
            search: self,
            frontier: &frontier,
            unvisited: &unvisited,
            collector: collector.as_ref(),
            claimed: &claimed,
        };
        edge_map(graph, &selection, scan)?;
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

/// A level that is done as a pass, and the sets of vertices before it: unvisited rows take from the frontier, rows
/// of the frontier give to unvisited columns, and what is between unvisited ends is noted.
#[derive(Clone, Copy)]
struct Level<'a> {
    search: &'a Search<'a>,
    frontier: &'a Bits,
    /// Less most of those that were claimed in this level, unless there is a collector, which wants their arcs too.
    unvisited: &'a Bits,
    collector: Option<&'a Collector>,
    claimed: &'a Total,
}

/// A row, and whether it is reached.
struct Row {
    vertex: u32,
    is_reached: bool,
}

impl Level<'_> {
    #[inline(always)]
    fn claim(&self, found: &mut Found, v: u32) {
        if self.search.depth(v) == UNREACHED && self.search.claim(v) {
            found.claimed += 1;
            if self.collector.is_none() {
                self.unvisited.take_out(u64::from(v));
            }
        }
    }
}

impl Program for Level<'_> {
    type Worker = Found;
    type Source = u32;
    type Row = Row;

    #[inline(always)]
    fn takes(&self, row: u32) -> bool {
        self.unvisited.has(row)
    }

    #[inline(always)]
    fn gives(&self, row: u32) -> bool {
        self.frontier.has(row)
    }

    #[inline(always)]
    fn load(&self, column: u32) -> u32 {
        column
    }

    #[inline(always)]
    fn empty(&self, vertex: u32) -> Row {
        // Where there is no collector, a row takes only while it is unvisited.
        let is_reached = self.collector.is_some() && self.search.depth(vertex) != UNREACHED;
        Row { vertex, is_reached }
    }

    #[inline(always)]
    fn take(&self, found: &mut Found, row: &mut Row, column: u32, _weight: f64) {
        if let Some(collector) = self.collector
            && self.unvisited.has(column)
        {
            collector.note(&mut found.part, column, row.vertex);
            if self.search.both {
                collector.note(&mut found.part, row.vertex, column);
            }
        } else if !row.is_reached && self.frontier.has(column) {
            row.is_reached = true;
            self.claim(found, row.vertex);
        }
    }

    #[inline(always)]
    fn is_done(&self, row: &Row) -> bool {
        row.is_reached && self.collector.is_none()
    }

    #[inline(always)]
    fn scatter(&self, found: &mut Found, _row: &Row, column: u32, _weight: f64) {
        if self.unvisited.has(column) {
            self.claim(found, column);
        }
    }

    fn end(&self, found: Found) -> Result<()> {
        if let Some(collector) = self.collector {
            collector.end(found.part);
        }
        self.claimed.add(found.claimed)
    }
}
